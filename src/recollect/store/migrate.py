"""Numbered migrations: `migrations/NNNN_name.sql`, applied in order, one transaction each with its record.

Only ever append: a file that was released does not change. Opening a database that a newer recollect wrote is refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import resources

from recollect.errors import SchemaTooNew
from recollect.store.database import Database, Transaction
from recollect.types import Clock, timestamp

_CREATE = """
CREATE TABLE IF NOT EXISTS memory_schema (version BIGINT PRIMARY KEY, name TEXT NOT NULL, applied_at TEXT NOT NULL)
"""
_LOCK = "SELECT pg_advisory_xact_lock(7305809217)"  # two processes may open a new database at once


@dataclass(frozen=True, slots=True)
class Migration:
    version: int
    name: str
    sql: str


@cache
def migrations() -> tuple[Migration, ...]:
    found = []
    for file in sorted(resources.files("recollect.store").joinpath("migrations").iterdir(), key=lambda f: f.name):
        if file.name.endswith(".sql"):
            number, _, name = file.name.removesuffix(".sql").partition("_")
            found.append(Migration(int(number), name, file.read_text()))
    return tuple(found)


def migrate(database: Database, clock: Clock, *, target: int | None = None) -> int:
    """Brings the schema up to `target` (the newest by default); returns the version it has now."""
    newest = migrations()[-1].version
    current = _version(database)
    if current > newest:
        raise SchemaTooNew(f"the database has schema {current}, this recollect knows {newest}")
    for migration in migrations():
        if current < migration.version <= (newest if target is None else target):
            with database.write() as tx:
                _lock(tx)
                tx.script(_CREATE)
                if _recorded(tx) < migration.version:  # else another process was faster
                    tx.script(migration.sql.format(**tx.dialect.types))
                    tx.run(
                        "INSERT INTO memory_schema (version, name, applied_at) VALUES (:version, :name, :now)",
                        {"version": migration.version, "name": migration.name, "now": timestamp(clock())},
                    )
            current = migration.version
    return current


def _lock(tx: Transaction) -> None:
    if tx.dialect.name == "postgres":
        tx.rows(_LOCK)


def _version(database: Database) -> int:
    with database.read() as tx:
        if tx.dialect.name == "postgres":
            exists = tx.row("SELECT to_regclass('memory_schema') IS NOT NULL")
        else:
            exists = tx.row("SELECT COUNT(*) FROM sqlite_master WHERE name = 'memory_schema'")
        return _recorded(tx) if exists and exists[0] else 0


def _recorded(tx: Transaction) -> int:
    found = tx.row("SELECT COALESCE(MAX(version), 0) FROM memory_schema")
    return int(found[0]) if found else 0
