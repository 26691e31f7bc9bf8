"""Whose rows are, where an earlier schema did not say it: conversations of chats, and memories that users shared.

What is nobody's yet has the user `UNKNOWN`, which no chat can name: nobody sees it until it is told apart.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import replace

from recollect.note import is_session
from recollect.store import memories, sums
from recollect.store.database import Row, Transaction, rows_of
from recollect.types import Owner

UNKNOWN = " "

_OWN = "tenant = :tenant AND agent_id = :agent_id"
_WAITING = f"{_OWN} AND user_id = '{UNKNOWN}' AND user_id <> ''"  # the second as the indexes have it
_SAID = (
    "SELECT s.memory_id, s.revision, s.session_key, c.session_id, c.source_file, c.user_id FROM memory_sources s"
    " JOIN memory_conversations c ON c.tenant = s.tenant AND c.agent_id = s.agent_id AND c.session_key = s.session_key"
    " WHERE s.tenant = :tenant AND s.agent_id = :agent_id AND s.memory_id IN ({among})"
)


def waiting(tx: Transaction, owner: Owner) -> int:
    """Conversations and memories of which it is not known whose they are."""
    tables = ("memory_conversations", "memory_memories")
    counts = [tx.row(f"SELECT COUNT(*) FROM {table} WHERE {_WAITING}", owner.names()) for table in tables]
    return sum(int(row[0]) for row in counts if row)


def unknown(tx: Transaction, owner: Owner) -> list[tuple[str, str]]:
    """(session, file) of the chats among these. A note goes with the memory that it is about."""
    sql = f"SELECT DISTINCT session_id, source_file FROM memory_conversations WHERE {_WAITING}"
    return sorted((session, file) for session, file in tx.rows(sql, owner.names()) if not is_session(session))


def assign(tx: Transaction, owner: Owner, session_id: str, source_file: str, user: str) -> None:
    """A session of our own logs is this user's."""
    sums.drop_sessions(tx, owner, [session_id])
    names = {**owner.names(), "session": session_id, "file": source_file, "user": user}
    mine = f"{_OWN} AND source = 'recollect' AND session_id = :session"
    for table in ("memory_conversations", "memory_transcript_entries"):
        tx.run(f"UPDATE {table} SET user_id = :user WHERE {mine} AND source_file = :file", names)
    tx.run(f"UPDATE memory_stage1 SET user_id = :user WHERE {mine}", names)


def mixed(tx: Transaction, owner: Owner) -> list[str]:
    """Ids of memories that nobody knows whose they are, or whose revisions are of several users."""
    rows = tx.rows(
        f"SELECT memory_id FROM memory_memories WHERE {_OWN} GROUP BY memory_id"
        f" HAVING MIN(user_id) <> MAX(user_id) OR MAX(user_id) = '{UNKNOWN}' ORDER BY memory_id",
        owner.names(),
    )
    return [memory_id for (memory_id,) in rows]


def part(tx: Transaction, owner: Owner, ids: Sequence[str], *, full: bool = False) -> None:
    """Each of these memories is the owner's if one of their own conversations states it, else the first user's by name,
    with the notes about it; every other user who states it gets a memory of their own. The same rows, the same ids.
    One that notes alone are about is the owner's, too, if the rows are `full`: nobody else states it."""
    said: dict[str, list[Row]] = {}
    for row in rows_of(tx, _SAID, owner.names(), ids):
        said.setdefault(row[0], []).append(row)
    for memory_id, rows in sorted(said.items()):
        sums.drop(tx, owner, sorted({row[2] for row in rows}))
        first = [row for row in rows if not _is_about(row)]
        users = sorted({row[5] for row in first} - {UNKNOWN})
        if not users and (first or not full):
            continue
        users = users or [""]
        keeper, *others = users
        for user in others:
            for key in sorted({row[2] for row in first if row[5] == user}):
                _move(tx, owner, memory_id, user, key)
        for table in ("memory_memories", "memory_sources"):
            sql = f"UPDATE {table} SET user_id = :user WHERE {_OWN} AND memory_id = :id"
            tx.run(sql, {**owner.names(), "id": memory_id, "user": keeper})
        for session, file in sorted({(row[3], row[4]) for row in rows if _is_about(row) and row[5] != keeper}):
            assign(tx, owner, session, file, keeper)


def _is_about(row: Row) -> bool:
    """Is it a note about a memory that was there before? It says nothing about whose that is."""
    return is_session(row[3]) and row[1] > 1


def _move(tx: Transaction, owner: Owner, memory_id: str, user: str, session_key: str) -> None:
    """What this conversation states of the memory is one of its user's own."""
    digest = hashlib.sha256("\x1f".join(("parted", user, memory_id)).encode("utf-8", "surrogatepass")).digest()
    own = "m-" + base64.b32encode(digest).decode().lower()[:16]
    stated = memories.of_session(tx, owner, session_key)
    moved = [replace(each, id=own, user=user) if each.id == memory_id else each for each in stated]
    memories.replace_sessions(tx, owner, {session_key: moved})
