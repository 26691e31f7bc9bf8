"""Whose rows are, where an earlier schema did not say it: conversations of chats, and memories that users shared.

What is nobody's yet has the user `UNKNOWN`, which no chat can name: nobody sees it until it is told apart.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence

from recollect.note import is_session
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


def part(tx: Transaction, owner: Owner, ids: Sequence[str]) -> None:
    """Each of these memories is the owner's if one of their own conversations states it, else the first user's by name,
    with the notes about it; every other user who states it gets a memory of their own. The same rows, the same ids."""
    said: dict[str, list[Row]] = {}
    for row in rows_of(tx, _SAID, owner.names(), ids):
        said.setdefault(row[0], []).append(row)
    for memory_id, rows in sorted(said.items()):
        first = [row for row in rows if not _is_about(row)]
        users = sorted({row[5] for row in first} - {UNKNOWN})
        if not users:
            continue
        keeper, *others = users
        for user in others:
            _move(tx, owner, memory_id, user, sorted({row[2] for row in first if row[5] == user}))
        names = {**owner.names(), "id": memory_id, "user": keeper}
        tx.run(f"UPDATE memory_memories SET user_id = :user WHERE {_OWN} AND memory_id = :id", names)
        tx.run(
            f"DELETE FROM memory_memories WHERE {_OWN} AND memory_id = :id AND NOT EXISTS (SELECT 1"
            " FROM memory_sources s WHERE s.tenant = memory_memories.tenant AND s.agent_id = memory_memories.agent_id"
            " AND s.memory_id = memory_memories.memory_id AND s.revision = memory_memories.revision)",
            names,
        )
        for session, file in sorted({(row[3], row[4]) for row in rows if _is_about(row) and row[5] != keeper}):
            assign(tx, owner, session, file, keeper)


def _is_about(row: Row) -> bool:
    """Is it a note about a memory that was there before? It says nothing about whose that is."""
    return is_session(row[3]) and row[1] > 1


def _move(tx: Transaction, owner: Owner, memory_id: str, user: str, session_keys: Sequence[str]) -> None:
    """What these conversations state of the memory is one of this user's own."""
    digest = hashlib.sha256("\x1f".join(("parted", user, memory_id)).encode("utf-8", "surrogatepass")).digest()
    names = {**owner.names(), "id": memory_id, "user": user}
    names["new"] = "m-" + base64.b32encode(digest).decode().lower()[:16]
    for key in session_keys:
        chosen = {**names, "key": key}
        theirs = f"{_OWN} AND memory_id = :id AND session_key = :key"
        tx.run(
            "INSERT INTO memory_memories (tenant, agent_id, memory_id, revision, kind, text, severity, scope, scope_id,"
            " created_at, valid_from, pinned, occasions, user_id) SELECT tenant, agent_id, :new, revision, kind, text,"
            " severity, scope, scope_id, created_at, valid_from, pinned, occasions, :user FROM memory_memories"
            f" WHERE {_OWN} AND memory_id = :id AND revision IN (SELECT revision FROM memory_sources WHERE {theirs})"
            " ON CONFLICT DO NOTHING",
            chosen,
        )
        tx.run(
            "INSERT INTO memory_sources (tenant, agent_id, memory_id, revision, session_key, entry_uuid, occasions)"
            " SELECT tenant, agent_id, :new, revision, session_key, entry_uuid, occasions FROM memory_sources"
            f" WHERE {theirs} ON CONFLICT DO NOTHING",
            chosen,
        )
        tx.run(f"DELETE FROM memory_sources WHERE {theirs}", chosen)
