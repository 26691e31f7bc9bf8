"""Opens the configured database and brings its schema up to date."""

from __future__ import annotations

from recollect.config import Settings
from recollect.errors import ConfigError
from recollect.store.database import Database
from recollect.store.migrate import migrate
from recollect.types import Clock


def open_database(settings: Settings, clock: Clock) -> Database:
    url, timeout = settings.config.database, settings.config.busy_timeout_seconds
    database: Database
    if not url:
        from recollect.store.sqlite import SqliteDatabase

        database = SqliteDatabase(settings.database_file, timeout)
    elif url.startswith(("postgresql://", "postgres://")):
        from recollect.store.postgres import PostgresDatabase

        database = PostgresDatabase(url, timeout)
    else:
        raise ConfigError("`database` must be empty or a postgresql:// URL")
    try:
        migrate(database, clock)
    except BaseException:
        database.close()
        raise
    return database


def identity(settings: Settings) -> tuple[int, int] | None:
    """Tells the SQLite file from another under its name; None: there is none."""
    if settings.config.database:
        return None
    try:
        found = settings.database_file.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
