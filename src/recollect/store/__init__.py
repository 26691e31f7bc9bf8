"""Tables, migrations, SQLite and PostgreSQL, jobs and leases. No decisions of the path are made here."""
