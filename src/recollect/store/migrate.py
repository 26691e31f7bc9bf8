"""Numbered migrations: `migrations/NNNN_name.sql`, applied in order, one transaction each with its record.

What the dialects have to say in their own words, triggers above all, follows in `NNNN_name.<dialect>.sql`.
Only ever append: a file that was released does not change. Opening a database that a newer recollect wrote is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from recollect.errors import SchemaTooNew, StoreError
from recollect.store.database import Database, Transaction
from recollect.types import Clock, timestamp

_CREATE = """
CREATE TABLE IF NOT EXISTS memory_schema (version BIGINT PRIMARY KEY, name TEXT NOT NULL, applied_at TEXT NOT NULL)
"""
OLDEST_POSTGRES = 14  # functions whose body is parsed when they are made
_POSTGRES = """
SELECT to_regclass('memory_schema') IS NOT NULL, current_setting('server_encoding'),
  CAST(current_setting('server_version_num') AS INTEGER), current_setting('server_version')
"""
_LOCK = "SELECT pg_advisory_xact_lock(7305809217)"  # two processes may open a new database at once


@dataclass(frozen=True, slots=True)
class Migration:
    version: int
    name: str
    sql: str  # for both, with the dialect's types to be filled in
    own: Mapping[str, str] = field(default_factory=dict)  # dialect → what follows, as it is


@cache
def migrations() -> tuple[Migration, ...]:
    files = Path(__file__).with_name("migrations").glob("*.sql")
    texts = {file.name.removesuffix(".sql"): file.read_text(encoding="utf-8") for file in files}
    found = []
    for stem in sorted(stem for stem in texts if "." not in stem):
        number, _, name = stem.partition("_")
        own = {key.removeprefix(f"{stem}."): text for key, text in texts.items() if key.startswith(f"{stem}.")}
        found.append(Migration(int(number), name, texts[stem], own))
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
                    tx.script(migration.own.get(tx.dialect.name, ""))
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
            exists = tx.row(_POSTGRES)
            if exists and exists[1] != "UTF8":
                raise StoreError(
                    f"the database's encoding is {exists[1]}; what people write needs UTF8",
                    hint="Make another database: CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0.",
                )
            if exists and exists[2] < OLDEST_POSTGRES * 10_000:
                raise StoreError(
                    f"the server is PostgreSQL {exists[3]}", hint=f"It has to be {OLDEST_POSTGRES} or newer."
                )
        else:
            exists = tx.row("SELECT COUNT(*) FROM sqlite_master WHERE name = 'memory_schema'")
        return _recorded(tx) if exists and exists[0] else 0


def _recorded(tx: Transaction) -> int:
    found = tx.row("SELECT COALESCE(MAX(version), 0) FROM memory_schema")
    return int(found[0]) if found else 0
