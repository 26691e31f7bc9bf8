"""memory_feedback: what was thought of a memory.

A verdict is about what the memory said when it was judged. Whether it stands follows from revisions and notes since;
nothing is ever marked as withdrawn. Neither is what was retired: that follows from the notes that say so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from recollect.note import RETIREMENTS, SOURCE, hand_of, parse_retirement
from recollect.store import memories
from recollect.store.database import Transaction, beginning, rows_of
from recollect.types import Hand, Owner, Remembered, Timestamp


@dataclass(frozen=True, slots=True)
class Feedback:
    ok: int
    not_ok: int
    user_reaction: str  # ok | not_ok; empty: none
    last: Timestamp
    revision: int = 0  # that the user reacted to; 0: not known


def react(tx: Transaction, owner: Owner, memory_id: str, revision: int, reaction: str, at: Timestamp) -> int:
    """A person's reaction to what a memory says, instead of the one before. One that is not newer changes nothing; how
    many rows changed."""
    table = "memory_feedback"
    again = ", ".join(
        f"{name} = {table}.{name} - (CASE WHEN {table}.user_reaction = '{name}' THEN 1 ELSE 0 END) + excluded.{name}"
        for name in ("ok", "not_ok")
    )
    return tx.run(
        f"INSERT INTO {table} (tenant, agent_id, memory_id, ok, not_ok, user_reaction, last, revision)"
        " VALUES (:tenant, :agent_id, :id, :ok, :not_ok, :reaction, :at, :revision)"
        f" ON CONFLICT (tenant, agent_id, memory_id) DO UPDATE SET {again},"
        " user_reaction = excluded.user_reaction, last = excluded.last, revision = excluded.revision"
        f" WHERE excluded.last > {table}.last",
        {
            **owner.names(),
            "id": memory_id,
            "ok": int(reaction == "ok"),
            "not_ok": int(reaction == "not_ok"),
            "reaction": reaction,
            "at": at,
            "revision": revision,
        },
    )


@dataclass(frozen=True, slots=True)
class Retired:
    """What the newest note about the retirement of a memory says."""

    at: Timestamp
    why: str
    note: str  # session id of that note
    is_undone: bool


def retirements(tx: Transaction, owner: Owner) -> dict[str, Retired]:
    """id → what was said last of its retirement, of every memory of which something was; the newest note last."""
    where, names = beginning("c.session_key", RETIREMENTS)
    rows = tx.rows(
        "SELECT e.timestamp, e.session_id, e.content FROM memory_conversations c JOIN memory_transcript_entries e"
        " ON e.tenant = c.tenant AND e.agent_id = c.agent_id AND e.source_file = c.source_file"
        " AND e.session_id = c.session_id AND e.source || '' = c.source"
        f" WHERE c.tenant = :tenant AND c.agent_id = :agent_id AND {where} AND c.source = :source AND e.withdrawn = 0",
        {**owner.names(), **names, "source": SOURCE},
    )
    found: dict[str, Retired] = {}
    for at, session, text in sorted(rows):
        told = parse_retirement(text)
        for each in told.memories if told else ():
            found.pop(each, None)
            found[each] = Retired(at, told.why if told else "", session, bool(told and told.is_undone))
    return found


def retired(tx: Transaction, owner: Owner, ids: Sequence[str] | None = None) -> dict[str, Retired]:
    """Those of these memories, or of all, that were retired, and that no conversation or person stated since."""
    told = {name: each for name, each in retirements(tx, owner).items() if not each.is_undone}
    due = sorted(told if ids is None else told.keys() & {*ids})
    if not due:
        return {}
    sql = (
        "SELECT memory_id, session_key, created_at FROM memory_sources WHERE tenant = :tenant"
        " AND agent_id = :agent_id AND memory_id IN ({among})"
    )
    again = {name for name, key, at in rows_of(tx, sql, owner.names(), due) if _stated_at(key, at) > told[name].at}
    thought = of_memories(tx, owner, due)
    again |= {name for name, each in thought.items() if each.user_reaction == "ok" and each.last > told[name].at}
    return {name: told[name] for name in due if name not in again}


def _stated_at(session_key: str, created_at: str) -> str:
    """When a statement was made: a note as it was written, what was read in a conversation when that was read."""
    session, _, began = session_key.rpartition("@")
    return created_at if hand_of(session) is Hand.PIPELINE else max(created_at, began)


def wrong(tx: Transaction, owner: Owner, ids: Sequence[str]) -> set[str]:
    """Of these memories those that no agent is told: that a person called wrong and nobody put right or said again
    since, or that were retired."""
    return called_wrong(tx, owner, ids) | retired(tx, owner, ids).keys()


def called_wrong(tx: Transaction, owner: Owner, ids: Sequence[str]) -> set[str]:
    """Of these memories those that a person called wrong, and that nobody put right or said again since."""
    judged = {each: found for each, found in of_memories(tx, owner, ids).items() if found.user_reaction == "not_ok"}
    held: dict[str, list[Remembered]] = {}
    for each in memories.find(tx, owner, sorted(judged)):
        held.setdefault(each.id, []).append(each)
    return {each for each, revisions in held.items() if stands(judged[each], revisions)}


def stands(thought: Feedback, revisions: Sequence[Remembered]) -> bool:
    """Is the memory of these revisions wrong, as a person sees it? Until a newer revision says something else, or a
    person says or pins it again; taking a pin off says nothing about it. Pure."""
    ordered = sorted(revisions, key=lambda each: (each.valid_from, each.revision))
    judged = [
        number
        for number, each in enumerate(ordered)
        if (each.revision == thought.revision if thought.revision else each.valid_from <= thought.last)
    ]
    if thought.user_reaction != "not_ok" or not judged:
        return False
    since = ordered[judged[-1] :]
    unpinned = {after.valid_from for before, after in pairwise(since) if before.pinned and not after.pinned}
    keys = [key.rpartition("@") for each in since for key, _ in each.sources]
    again = {at for session, _, at in keys if hand_of(session) is Hand.PERSON and at > thought.last}
    return len({each.text for each in since}) == 1 and again <= unpinned


def of_memories(tx: Transaction, owner: Owner, ids: Sequence[str]) -> dict[str, Feedback]:
    """Of those that somebody reacted to."""
    sql = (
        "SELECT memory_id, ok, not_ok, user_reaction, last, revision FROM memory_feedback WHERE tenant = :tenant"
        " AND agent_id = :agent_id AND memory_id IN ({among}) ORDER BY memory_id"
    )
    return {row[0]: Feedback(*row[1:]) for row in rows_of(tx, sql, owner.names(), ids)}
