"""memory_citations: which memories an assistant's message named, and whether that was counted as use.

A short reference stands for the one memory whose id begins so. Noted in the transaction that stores the message, so
that an answer counts once, however often its file is read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from recollect.store import memories
from recollect.store.database import Transaction
from recollect.store.entries import FileKey
from recollect.types import Entry, Owner, Role

_ID = re.compile(r"(?<![0-9A-Za-z-])m-[a-z2-7]{6,16}(?![0-9A-Za-z-])")
_WHOLE = len("m-") + 16  # characters of an id; what is shorter is a reference


def note(tx: Transaction, key: FileKey, entries: Iterable[Entry]) -> int:
    """What these entries of a file cite; how much of it is new."""
    named = [
        (entry.uuid, name)
        for entry in entries
        if entry.role is Role.ASSISTANT and "m-" in entry.content
        for name in dict.fromkeys(_ID.findall(entry.content))
    ]
    known = {name: [name] if len(name) == _WHOLE else memories.ids(tx, key.owner, name, 2) for _, name in named}
    found = [
        (key.owner.tenant, key.owner.agent_id, key.source, uuid, known[name][0])
        for uuid, name in named
        if len(known[name]) == 1
    ]
    if not found:
        return 0
    return tx.run_many(
        "INSERT INTO memory_citations (tenant, agent_id, source, entry_uuid, memory_id, counted)"
        " VALUES (:tenant, :agent_id, :source, :uuid, :memory_id, 0) ON CONFLICT DO NOTHING",
        found,
    )


def waiting(tx: Transaction, owner: Owner) -> list[tuple[str, str, str]]:
    """(source, uuid of the entry, id of the memory) of those that are to be counted: the memory exists, and is no
    other user's than the one whose chat it was named in."""
    rows = tx.rows(
        "SELECT source, entry_uuid, memory_id FROM memory_citations c WHERE tenant = :tenant"
        " AND agent_id = :agent_id AND counted = 0 AND EXISTS (SELECT 1 FROM memory_memories m"
        " WHERE m.tenant = c.tenant AND m.agent_id = c.agent_id AND m.memory_id = c.memory_id AND (m.user_id = ''"
        " OR m.user_id = (SELECT e.user_id FROM memory_transcript_entries e WHERE e.tenant = c.tenant"
        " AND e.agent_id = c.agent_id AND e.source = c.source AND e.entry_uuid = c.entry_uuid)))",
        owner.names(),
    )
    return sorted((row[0], row[1], row[2]) for row in rows)


def settle(tx: Transaction, owner: Owner, citations: Sequence[tuple[str, str, str]]) -> None:
    """They are counted."""
    tx.run_many(
        "UPDATE memory_citations SET counted = 1 WHERE tenant = :tenant AND agent_id = :agent_id"
        " AND source = :source AND entry_uuid = :uuid AND memory_id = :memory_id",
        [{**owner.names(), "source": source, "uuid": uuid, "memory_id": each} for source, uuid, each in citations],
    )
