"""memory_injection_sessions and memory_injected_lines: what sessions were given; and what is given unasked.

Growth is bounded: a session keeps its last blocks, and one that nobody asked for in a month is forgotten.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from recollect.store import memories
from recollect.store.database import Transaction, marks, outside
from recollect.store.search import Reach
from recollect.types import MemoryKind, Owner, Scope, Severity, Timestamp, moment, timestamp

KEPT_BLOCKS = 50  # of a session
KEPT = timedelta(days=30)
_OWN = "tenant = :tenant AND agent_id = :agent_id"


@dataclass(frozen=True, slots=True)
class Injected:
    """A line that a session was given."""

    block: int  # its number in the session
    turn: int  # prompts of the session when it was given
    given_at: str
    visible: bool  # the harness did not compact its history since
    memory_id: str
    revision: int
    section: str
    score: float
    reason: str
    tokens: int


_COLUMNS = "block, turn, given_at, visible, memory_id, revision, section, score, reason, tokens"


def turns(tx: Transaction, owner: Owner, name: str) -> int:
    """Prompts of a session so far."""
    row = tx.row(
        f"SELECT turns FROM memory_injection_sessions WHERE {_OWN} AND session = :session",
        {**owner.names(), "session": name},
    )
    return row[0] if row else 0


def lines(tx: Transaction, owner: Owner, name: str) -> list[Injected]:
    """From the oldest."""
    rows = tx.rows(
        f"SELECT {_COLUMNS} FROM memory_injected_lines WHERE {_OWN} AND session = :session ORDER BY block, position",
        {**owner.names(), "session": name},
    )
    return [replace(Injected(*row), visible=bool(row[3]), score=row[7] / 1000) for row in rows]


def sessions(tx: Transaction, owner: Owner, limit: int) -> list[str]:
    """Those that were given something; the last one first."""
    rows = tx.rows(
        f"SELECT session FROM memory_injection_sessions WHERE {_OWN} AND blocks > 0"
        " ORDER BY last DESC, session LIMIT :limit",
        {**owner.names(), "limit": limit},
    )
    return [name for (name,) in rows]


def of_memory(tx: Transaction, owner: Owner, memory_id: str, limit: int) -> list[tuple[str, Injected]]:
    """(session, line) of where a memory was given, the last time first."""
    rows = tx.rows(
        f"SELECT session, {_COLUMNS} FROM memory_injected_lines WHERE {_OWN} AND memory_id = :id"
        " ORDER BY given_at DESC, session, block DESC LIMIT :limit",
        {**owner.names(), "id": memory_id, "limit": limit},
    )
    return [(row[0], replace(Injected(*row[1:]), visible=bool(row[4]), score=row[8] / 1000)) for row in rows]


def save(tx: Transaction, owner: Owner, name: str, now: Timestamp, given: Sequence[Injected], *, prompts: int) -> None:
    """One more block, if there are lines, after so many more prompts. Numbers are set here."""
    names = {**owner.names(), "session": name, "now": now}
    row = tx.row(
        "INSERT INTO memory_injection_sessions (tenant, agent_id, session, turns, blocks, last)"
        " VALUES (:tenant, :agent_id, :session, :turns, :blocks, :now)"
        " ON CONFLICT (tenant, agent_id, session) DO UPDATE SET"
        " turns = memory_injection_sessions.turns + excluded.turns,"
        " blocks = memory_injection_sessions.blocks + excluded.blocks, last = excluded.last RETURNING turns, blocks",
        {**names, "turns": prompts, "blocks": int(bool(given))},
    )
    assert row is not None
    turn, block = row
    if given:
        tx.run_many(
            f"INSERT INTO memory_injected_lines (tenant, agent_id, session, position, {_COLUMNS})"
            " VALUES (:tenant, :agent_id, :session, :position, :block, :turn, :now, 1, :memory_id, :revision,"
            " :section, :score, :reason, :tokens)",
            [
                {
                    **names,
                    "position": position,
                    "block": block,
                    "turn": turn,
                    "memory_id": each.memory_id,
                    "revision": each.revision,
                    "section": each.section,
                    "score": round(each.score * 1000),
                    "reason": each.reason,
                    "tokens": each.tokens,
                }
                for position, each in enumerate(given, start=1)
            ],
        )
    old = f"DELETE FROM memory_injected_lines WHERE {_OWN} AND session = :session AND block <= :block"
    tx.run(old, {**owner.names(), "session": name, "block": block - KEPT_BLOCKS})
    _forget_old(tx, owner, timestamp(moment(now) - KEPT))


def hide(tx: Transaction, owner: Owner, name: str) -> int:
    """Nothing of what the session was given is visible any more; how many lines were."""
    return tx.run(
        f"UPDATE memory_injected_lines SET visible = 0 WHERE {_OWN} AND session = :session AND visible = 1",
        {**owner.names(), "session": name},
    )


def delete(tx: Transaction, owner: Owner, names: Sequence[str]) -> int:
    """Everything about sessions; how many rows went."""
    return sum(
        tx.run(f"DELETE FROM {table} WHERE {_OWN} AND session = :session", {**owner.names(), "session": name})
        for table in ("memory_injected_lines", "memory_injection_sessions")
        for name in names
    )


def ambient(
    tx: Transaction, reach: Reach, kinds: Sequence[MemoryKind], severities: Iterable[Severity], most: int
) -> list[str]:
    """Ids of current memories within reach that are pinned, or of these kinds or severities; of each the newest."""
    chosen = [("kind = :value", str(kind)) for kind in kinds]
    chosen += [("severity = :value", str(severity)) for severity in severities]
    return memories.newest(tx, *_within(tx, reach), chosen, most)


def _within(tx: Transaction, reach: Reach) -> tuple[str, dict[str, Any]]:
    listed, more = outside(tx.dialect, "m.memory_id", reach.unlisted.memories)
    own, reached = f"{memories.OWN}{listed}", reach.names() | more
    if reach.projects is None:
        return f"{own} AND m.user_id = :user AND m.scope <> '{Scope.CONVERSATION}'", reached
    chosen, names = marks("project", list(reach.projects))
    wide = f"(m.scope = '{Scope.USER}' AND m.scope_id = '' AND m.user_id = :user)"
    whose = "m.user_id IN (:user, '')"
    within = f"(m.scope = '{Scope.PROJECT}' AND m.scope_id IN ({chosen or 'NULL'}) AND {whose})"
    return f"{own} AND ({wide} OR {within})", {**reached, **names}


def _forget_old(tx: Transaction, owner: Owner, before: Timestamp) -> None:
    rows = tx.rows(
        f"DELETE FROM memory_injection_sessions WHERE {_OWN} AND last < :before RETURNING session",
        {**owner.names(), "before": before},
    )
    for (name,) in rows:
        tx.run(
            f"DELETE FROM memory_injected_lines WHERE {_OWN} AND session = :session", {**owner.names(), "session": name}
        )
