"""memory_feedback: what was thought of a memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from recollect.store.database import Transaction, marks
from recollect.types import Owner, Timestamp

_CHUNK = 400


@dataclass(frozen=True, slots=True)
class Feedback:
    ok: int
    not_ok: int
    user_reaction: str  # ok | not_ok; empty: none
    last: Timestamp


def react(tx: Transaction, owner: Owner, memory_id: str, reaction: str, now: Timestamp) -> None:
    """A person's reaction, instead of the one before."""
    table = "memory_feedback"
    again = ", ".join(
        f"{name} = {table}.{name} - (CASE WHEN {table}.user_reaction = '{name}' THEN 1 ELSE 0 END) + excluded.{name}"
        for name in ("ok", "not_ok")
    )
    tx.run(
        f"INSERT INTO {table} (tenant, agent_id, memory_id, ok, not_ok, user_reaction, last)"
        " VALUES (:tenant, :agent_id, :id, :ok, :not_ok, :reaction, :now)"
        f" ON CONFLICT (tenant, agent_id, memory_id) DO UPDATE SET {again},"
        " user_reaction = excluded.user_reaction, last = excluded.last",
        {
            **owner.names(),
            "id": memory_id,
            "ok": int(reaction == "ok"),
            "not_ok": int(reaction == "not_ok"),
            "reaction": reaction,
            "now": now,
        },
    )


def wrong(tx: Transaction, owner: Owner, ids: Sequence[str]) -> set[str]:
    """Of these memories those that a person called wrong."""
    return {each for each, found in of_memories(tx, owner, ids).items() if found.user_reaction == "not_ok"}


def of_memories(tx: Transaction, owner: Owner, ids: Sequence[str]) -> dict[str, Feedback]:
    """Of those that somebody reacted to."""
    found: dict[str, Feedback] = {}
    for start in range(0, len(ids), _CHUNK):
        placeholders, chosen = marks("id", ids[start : start + _CHUNK])
        rows = tx.rows(
            "SELECT memory_id, ok, not_ok, user_reaction, last FROM memory_feedback WHERE tenant = :tenant"
            f" AND agent_id = :agent_id AND memory_id IN ({placeholders}) ORDER BY memory_id",
            {**owner.names(), **chosen},
        )
        found |= {row[0]: Feedback(*row[1:]) for row in rows}
    return found
