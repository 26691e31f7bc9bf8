"""The seam between SQL and the two databases: transactions with named parameters, and nothing about our tables.

SQL is written once, with `:name` parameters. What the dialects do not share is a `Dialect` attribute or lives beside
its twin in the module that needs it. Nothing but SQL runs inside a transaction.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol, TypeVar

Row = tuple[Any, ...]
Parameters = Mapping[str, Any]
_Given = TypeVar("_Given")
_PART = 400  # values of an `IN (…)`


@dataclass(frozen=True, slots=True)
class Dialect:
    name: str
    skip_locked: str  # appended to the claim's select: rows that another worker is claiming are passed over
    for_update: str  # appended to a select whose rows are then decided upon
    types: Mapping[str, str]  # column types that differ, for the migrations


class Transaction(Protocol):
    dialect: Dialect

    def rows(self, sql: str, parameters: Parameters | None = None) -> list[Row]: ...

    def row(self, sql: str, parameters: Parameters | None = None) -> Row | None: ...

    def run(self, sql: str, parameters: Parameters | None = None) -> int:
        """Rows affected."""
        ...

    def run_many(self, sql: str, parameters: Iterable[Parameters | Row]) -> int:
        """Rows affected by all of them together. A tuple gives the parameters in the order of their appearance."""
        ...

    def script(self, sql: str) -> None:
        """Several statements without parameters."""
        ...

    def touched(self) -> set[str]:
        """Tables in which this transaction changed or deleted rows, where `scrub` asks for them."""
        ...


class Database(Protocol):
    dialect: Dialect

    def write(self) -> AbstractContextManager[Transaction]:
        """A transaction that holds the write lock from its start; commits at the end, rolls back on an exception."""
        ...

    def read(self) -> AbstractContextManager[Transaction]:
        """One consistent view."""
        ...

    def size(self) -> int:
        """Bytes on disk."""
        ...

    def pulse(self) -> str:
        """Another text, in the same thread, once anything was changed since; seldom without that."""
        ...

    def scrub(self, tables: Collection[str] | None = None) -> str:
        """What was changed or deleted in these tables, or in all, is on no page of a file any more, as far as the
        database can tell; else why not. StoreBusy when others read or write and do not stop."""
        ...

    def close(self) -> None: ...


_PARAMETER = re.compile(r"(?<![:\w]):([a-z_]\w*)|(%)")


@lru_cache(maxsize=512)
def pyformat(sql: str) -> str:
    """`:name` → `%(name)s`, as psycopg wants it; `::type` casts are left alone."""
    return _PARAMETER.sub(lambda m: f"%({m[1]})s" if m[1] else "%%", sql)


@lru_cache(maxsize=64)
def positional(sql: str) -> str:
    """`:name` → `%s`, for parameters that come as tuples."""
    return _PARAMETER.sub(lambda m: "%s" if m[1] else "%%", sql)


def beginning(column: str, text: str) -> tuple[str, dict[str, str]]:
    """The condition that a key begins with a text, as a range: an index serves it, and no character is special."""
    return f"{column} >= :first AND {column} < :last", {"first": text, "last": text + "\U0010ffff"}


def keys_of(session_id: str) -> tuple[str, dict[str, str]]:
    """The condition that a session key is one of this session's: "@" is what follows its id in them."""
    return beginning("session_key", f"{session_id}@")


def marks(prefix: str, values: Sequence[Any]) -> tuple[str, dict[str, Any]]:
    """Placeholders for `IN (…)` and their parameters; the text holds generated names only, never a value."""
    names = {f"{prefix}{i}": value for i, value in enumerate(values)}
    return ", ".join(f":{name}" for name in names), names


def outside(dialect: Dialect, column: str, values: Collection[str]) -> tuple[str, dict[str, Any]]:
    """The condition, to be added to others, that a column is none of these values: one parameter, however many they
    are."""
    if not values:
        return "", {}
    if dialect.name == "sqlite":
        return f" AND {column} NOT IN (SELECT value FROM json_each(:outside))", {"outside": json.dumps(sorted(values))}
    return f" AND {column} <> ALL (CAST(:outside AS TEXT[]))", {"outside": sorted(values)}


def in_parts(
    call: Callable[[str, dict[str, Any]], _Given], sql: str, names: Parameters, values: Sequence[Any]
) -> Iterator[_Given]:
    """What the call gives, some values at a time: they stand in the statement in place of `{among}`."""
    for start in range(0, len(values), _PART):
        placeholders, chosen = marks("among", values[start : start + _PART])
        yield call(sql.format(among=placeholders), {**names, **chosen})


def rows_of(within: Transaction, sql: str, names: Parameters, values: Sequence[Any]) -> list[Row]:
    """The rows of all parts."""
    return [row for rows in in_parts(within.rows, sql, names, values) for row in rows]


def run_of(within: Transaction, sql: str, names: Parameters, values: Sequence[Any]) -> int:
    """Rows affected by all parts together."""
    return sum(in_parts(within.run, sql, names, values))
