"""Operational rows as plain values, to be moved to another database: every table whose comment says so.

What a table holds is read from the migrations, so that a new operational table is moved from its first day on. Owner
columns are left out: rows belong to whoever takes them in. A row that is there already is never changed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from recollect.store.database import Row, Transaction
from recollect.store.migrate import migrations
from recollect.types import Owner

_TABLE = re.compile(r"^-- operational\b[^\n]*\n(?:--[^\n]*\n)*CREATE TABLE (\w+) \((.*?)^\);", re.MULTILINE | re.DOTALL)
_COLUMN = re.compile(r"(\w+) (\{KEY\}|TEXT|BIGINT|SMALLINT)( NOT NULL)?")
_ADDED = re.compile(rf"^ALTER TABLE (\w+) ADD COLUMN {_COLUMN.pattern}", re.MULTILINE)
_KEY = re.compile(r"PRIMARY KEY \(tenant, agent_id, ([\w, ]+)\)")
_OWNER = ("tenant", "agent_id")
_BITS = {"BIGINT": 63, "SMALLINT": 15}

# A file counts as read on another machine only if everything that was read from it goes along as artifacts; else it is
# read again there, from its beginning.
_CARRIED = {
    "memory_file_states": """ AND status = 'idle' AND NOT EXISTS (
      SELECT 1 FROM memory_conversations c WHERE c.tenant = :tenant AND c.agent_id = :agent_id
      AND c.source = memory_file_states.source AND c.source_file = memory_file_states.file_path
      AND (c.status NOT IN ('archived', 'skipped') OR NOT EXISTS (
        SELECT 1 FROM memory_artifacts a WHERE a.tenant = :tenant AND a.agent_id = :agent_id
        AND a.session_key = c.session_key AND a.source_kind || '' = 'transcript' AND a.is_current = 1)))
    AND NOT EXISTS (
      SELECT 1 FROM memory_transcript_entries e WHERE e.tenant = :tenant AND e.agent_id = :agent_id
      AND e.source_file = memory_file_states.file_path AND e.source = memory_file_states.source AND e.withdrawn = 1)"""
}


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    bits: int  # of a whole number; 0: text
    nullable: bool

    def holds(self, value: Any) -> bool:
        """May the value stand in it, on either database?"""
        if value is None:
            return self.nullable
        if self.bits:
            return type(value) is int and -(1 << self.bits) <= value < 1 << self.bits
        return type(value) is str and "\0" not in value and not re.search("[\ud800-\udfff]", value)


@dataclass(frozen=True, slots=True)
class Table:
    name: str
    columns: tuple[Column, ...]  # without the owner's
    key: tuple[str, ...]  # the same

    def wrong(self, row: Mapping[str, Any]) -> str:
        """Why this is no row of the table; empty when it is one."""
        known = {column.name: column for column in self.columns}
        for name in (*self.key, *row):
            if name not in known:
                return f"there is no column {name!r}"
            if name not in row:
                return f"{name} is missing"
            if not known[name].holds(row[name]):
                return f"{name} cannot be {str(row[name])[:40]!r}"
        return ""


@cache
def operational() -> Mapping[str, Table]:
    """By name, in the order of the migrations."""
    text = "".join(migration.sql for migration in migrations())
    found = {}
    for name, body in _TABLE.findall(text):
        columns = [each for line in body.split("\n") if (each := _COLUMN.match(line.strip()))]
        added = [each[1:] for each in _ADDED.findall(text) if each[0] == name]
        key = _KEY.search(body)
        assert key is not None, name
        found[name] = Table(
            name,
            tuple(
                Column(column, _BITS.get(kind, 0), not required)
                for column, kind, required in [*(each.groups() for each in columns), *added]
                if column not in _OWNER
            ),
            tuple(key[1].split(", ")),
        )
    return found


def page(tx: Transaction, owner: Owner, table: Table, after: Row | None, limit: int) -> list[dict[str, Any]]:
    """Rows in the order of their keys, behind that key. Only what means something on another machine."""
    names: dict[str, Any] = {**owner.names(), "limit": limit}
    where = _CARRIED.get(table.name, "")
    if after is not None:
        chosen = {f"after{number}": value for number, value in enumerate(after)}
        where += f" AND ({', '.join(table.key)}) > ({', '.join(':' + name for name in chosen)})"
        names |= chosen
    columns = [column.name for column in table.columns]
    rows = tx.rows(
        f"SELECT {', '.join(columns)} FROM {table.name} WHERE tenant = :tenant AND agent_id = :agent_id{where}"
        f" ORDER BY {', '.join(table.key)} LIMIT :limit",
        names,
    )
    return [dict(zip(columns, row, strict=True)) for row in rows]


def add(tx: Transaction, owner: Owner, table: Table, rows: Sequence[Mapping[str, Any]]) -> int:
    """Rows of equal columns; how many were not there before."""
    if not rows:
        return 0
    columns = [*_OWNER, *rows[0]]
    return tx.run_many(
        f"INSERT INTO {table.name} ({', '.join(columns)}) VALUES ({', '.join(':' + name for name in columns)})"
        " ON CONFLICT DO NOTHING",
        [{**owner.names(), **row} for row in rows],
    )
