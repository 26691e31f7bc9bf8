"""Lists for a person: current memories by what they are, page by page, and counted; and memory_seen, what they saw.

A page begins behind the last row of the one before it, so that a list of any length costs as much. What is counted and
what a list is narrowed by are the same expressions.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from recollect.store.database import Transaction, outside, rows_of
from recollect.store.memories import CURRENT, OWN, UNOWNED
from recollect.types import Owner, Timestamp

EVERYWHERE = "*"  # the project of what holds in every one
LONGEST = 500  # rows of a page

_AGENT = (  # by the sources first: that is an order which SQLite keeps
    "COALESCE((SELECT MIN(c.source) FROM memory_sources s CROSS JOIN memory_conversations c WHERE s.tenant = m.tenant"
    " AND s.agent_id = m.agent_id AND s.memory_id = m.memory_id AND s.revision = m.revision"
    " AND c.tenant = s.tenant AND c.agent_id = s.agent_id AND c.session_key = s.session_key), '')"
)
_AGENTS = (  # the same of all at once, which is quicker than of one after the other
    "SELECT s.memory_id, s.revision, MIN(c.source) AS source FROM memory_sources s JOIN"
    " (SELECT session_key, MIN(source) AS source FROM memory_conversations WHERE tenant = :tenant"
    " AND agent_id = :agent_id GROUP BY session_key) c ON c.session_key = s.session_key"
    " WHERE s.tenant = :tenant AND s.agent_id = :agent_id GROUP BY s.memory_id, s.revision"
)
_USED = (
    "EXISTS (SELECT 1 FROM memory_use u WHERE u.tenant = m.tenant AND u.agent_id = m.agent_id"
    " AND u.memory_id = m.memory_id AND u.usage_count > 0)"
)
_EXPRESSIONS: Mapping[str, str] = {
    "project": f"CASE m.scope WHEN 'user' THEN '{EVERYWHERE}' ELSE m.scope_id END",
    "kind": "m.kind",
    "severity": "m.severity",
    "trust": "m.trust",
    "agent": _AGENT,
    "pinned": "CASE WHEN m.pinned = 1 THEN 'yes' ELSE 'no' END",
    "used": f"CASE WHEN {_USED} THEN 'yes' ELSE 'no' END",
    "revised": "CASE WHEN m.revision > 1 THEN 'yes' ELSE 'no' END",
    "age": "CASE WHEN m.valid_from >= :week THEN 'week' WHEN m.valid_from >= :month THEN 'month' ELSE 'older' END",
}
FACETS = tuple(_EXPRESSIONS)
_UNSEEN = (  # and not said by the person in a note
    " AND NOT EXISTS (SELECT 1 FROM memory_seen e WHERE e.tenant = m.tenant AND e.agent_id = m.agent_id"
    " AND e.memory_id = m.memory_id AND e.revision >= m.revision)"
    " AND NOT EXISTS (SELECT 1 FROM memory_sources p WHERE p.tenant = m.tenant AND p.agent_id = m.agent_id"
    " AND p.memory_id = m.memory_id AND p.revision = m.revision AND SUBSTR(p.session_key, 1, 2) IN ('n-', 'p-'))"
)


class Listed(NamedTuple):
    """A memory in a list: its id, when it was said, and what it is by each of FACETS."""

    id: str
    valid_from: Timestamp
    facets: tuple[str, ...]


class Within(NamedTuple):
    """What may be listed: beginnings of the ages, ids that are left out, and whether only what nobody has seen."""

    week: str
    month: str
    without: Collection[str] = ()
    unseen: bool = False


def page(
    tx: Transaction,
    owner: Owner,
    within: Within,
    chosen: Mapping[str, str],
    before: tuple[str, str] | None,
    limit: int,
) -> list[tuple[str, Timestamp]]:
    """(id, time) of those that are what is `chosen` by facet, newest first, behind the last row of the last page."""
    where, names = _where(tx, owner, within, chosen)
    if before is not None:
        where += " AND (m.valid_from < :at OR (m.valid_from = :at AND m.memory_id < :last))"
        names |= {"at": before[0], "last": before[1]}
    sql = (
        f"SELECT m.memory_id, m.valid_from FROM memory_memories m WHERE {where}"
        " ORDER BY m.valid_from DESC, m.memory_id DESC LIMIT :limit"
    )
    return [(name, at) for name, at in tx.rows(sql, {**names, "limit": limit})]


def among(tx: Transaction, owner: Owner, within: Within, ids: Sequence[str]) -> dict[str, Listed]:
    """Of these memories those that may be listed."""
    where, names = _where(tx, owner, within, {})
    sql = (
        f"SELECT m.memory_id, m.valid_from, {', '.join(_EXPRESSIONS.values())} FROM memory_memories m WHERE {where}"
        " AND m.memory_id IN ({among})"
    )
    return {row[0]: Listed(row[0], row[1], tuple(row[2:])) for row in rows_of(tx, sql, names, ids)}


def counts(tx: Transaction, owner: Owner, within: Within) -> dict[tuple[str, ...], int]:
    """How many memories are the same by every one of FACETS."""
    where, names = _where(tx, owner, within, {})
    columns = ", ".join({**_EXPRESSIONS, "agent": "COALESCE(a.source, '')"}.values())
    sql = (
        f"SELECT {columns}, COUNT(*) FROM memory_memories m LEFT JOIN ({_AGENTS}) a ON a.memory_id = m.memory_id"
        f" AND a.revision = m.revision WHERE {where} GROUP BY {', '.join(str(n + 1) for n in range(len(FACETS)))}"
    )
    return {tuple(row[:-1]): row[-1] for row in tx.rows(sql, names)}


def holding(tx: Transaction, owner: Owner, within: Within, text: str, limit: int) -> list[str]:
    """Ids of memories whose text contains these characters, whatever their case; newest first."""
    where, names = _where(tx, owner, within, {})
    sql = (
        f"SELECT m.memory_id FROM memory_memories m WHERE {where} AND LOWER(m.text) LIKE :like ESCAPE '!'"
        " ORDER BY m.valid_from DESC, m.memory_id DESC LIMIT :limit"
    )
    return [name for (name,) in tx.rows(sql, {**names, "like": like(text), "limit": limit})]


def like(text: str) -> str:
    """The pattern of what contains a text."""
    plain = text.lower().replace("!", "!!").replace("%", "!%").replace("_", "!_")
    return f"%{plain}%"


def judged(tx: Transaction, owner: Owner) -> list[str]:
    """Ids of memories whose newest reaction is that they are wrong."""
    sql = "SELECT memory_id FROM memory_feedback WHERE tenant = :tenant AND agent_id = :agent_id"
    return [name for (name,) in tx.rows(f"{sql} AND user_reaction = 'not_ok' ORDER BY memory_id", owner.names())]


def see(tx: Transaction, owner: Owner, seen: Sequence[tuple[str, int]], now: Timestamp) -> int:
    """A person looked at these revisions; how many they had not seen."""
    return tx.run_many(
        "INSERT INTO memory_seen (tenant, agent_id, memory_id, revision, seen_at)"
        " VALUES (:tenant, :agent_id, :id, :revision, :now)"
        " ON CONFLICT (tenant, agent_id, memory_id) DO UPDATE SET revision = excluded.revision,"
        " seen_at = excluded.seen_at WHERE excluded.revision > memory_seen.revision",
        [{**owner.names(), "id": name, "revision": revision, "now": now} for name, revision in seen],
    )


def unsee(tx: Transaction, owner: Owner, ids: Sequence[str]) -> int:
    """They are new again; how many were seen."""
    sql = "DELETE FROM memory_seen WHERE tenant = :tenant AND agent_id = :agent_id AND memory_id = :id"
    return tx.run_many(sql, [{**owner.names(), "id": name} for name in ids])


def projects(tx: Transaction, owner: Owner) -> list[tuple[str, int]]:
    """(project id, conversations) of every project that something was said in, the busiest first."""
    sql = (
        "SELECT project_id, COUNT(*) FROM memory_conversations WHERE tenant = :tenant AND agent_id = :agent_id"
        " AND project_id <> '' AND source <> 'recollect' GROUP BY project_id ORDER BY COUNT(*) DESC, project_id"
    )
    return [(name, number) for name, number in tx.rows(sql, owner.names())]


def days(tx: Transaction, owner: Owner, since: str) -> list[tuple[str, int]]:
    """(day, messages) of conversations with agents that ended since then."""
    sql = (
        "SELECT SUBSTR(last_message_at, 1, 10), SUM(entry_count) FROM memory_conversations WHERE tenant = :tenant"
        " AND agent_id = :agent_id AND last_message_at >= :since AND source <> 'recollect'"
        " GROUP BY 1 ORDER BY 1"
    )
    return [(day, int(number)) for day, number in tx.rows(sql, {**owner.names(), "since": since})]


def _where(tx: Transaction, owner: Owner, within: Within, chosen: Mapping[str, str]) -> tuple[str, dict[str, object]]:
    listed, more = outside(tx.dialect, "m.memory_id", within.without)
    narrowed = "".join(f" AND ({_EXPRESSIONS[name]}) = :{name}" for name in chosen)
    where = f"{OWN} AND {UNOWNED} AND {CURRENT}{listed}{narrowed}{_UNSEEN if within.unseen else ''}"
    return where, {**owner.names(), **more, **chosen, "week": within.week, "month": within.month}
