"""memory_conversations: rows in, rows out. Which conversations there are is decided in `ingest.conversations`."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from recollect.store import sums
from recollect.store.database import Transaction, beginning, marks, outside, rows_of
from recollect.store.entries import FileKey
from recollect.types import Conversation, ConversationStatus, Owner, Timestamp

_COLUMNS = {  # by field
    name: "user_id" if name == "user" else name for name in Conversation.__dataclass_fields__
}
_SELECT = (
    f"SELECT {', '.join(_COLUMNS.values())} FROM memory_conversations WHERE tenant = :tenant AND agent_id = :agent_id"
)
_STATUS = [*_COLUMNS].index("status")
_VALUES = {name: column for name, column in _COLUMNS.items() if name != "id"}


def of_session(tx: Transaction, key: FileKey, session_id: str) -> list[Conversation]:
    return _load(
        tx,
        " AND source = :source AND source_file = :source_file AND session_id = :session_id ORDER BY first_message_at",
        {**key.names(), "session_id": session_id},
    )


def latest(tx: Transaction, key: FileKey, session_id: str) -> Conversation | None:
    found = _load(
        tx,
        " AND source = :source AND source_file = :source_file AND session_id = :session_id"
        " ORDER BY first_message_at DESC LIMIT 1",
        {**key.names(), "session_id": session_id},
    )
    return found[0] if found else None


def search(
    tx: Transaction,
    owner: Owner,
    *,
    statuses: Sequence[ConversationStatus] = (),
    source: str = "",
    project: str | None = None,
    since: str = "",
    until: str | None = None,
    limit: int | None = None,
    user: str | None = None,
    without: Collection[str] = (),
    before: tuple[str, int] | None = None,
    agents: bool = False,
) -> list[Conversation]:
    """Newest first. `statuses`, `source`: of those, where some are named. `project` is a path or a project id; the last
    message lies in [since, until). `user`: of that user of a chat, or of none if empty. `without` these sessions.
    `before`: behind the last message and id of the one that a page ended with. `agents`: none of notes and chats."""
    where, more = outside(tx.dialect, "session_id", without)
    names = owner.names() | more
    if statuses:
        among, chosen = marks("status", [str(status) for status in statuses])
        where += f" AND status IN ({among})"
        names |= chosen
    if source:
        where += " AND source = :source"
        names["source"] = source
    if project is not None:
        where += " AND (project = :project OR project_id = :project)"
        names["project"] = project
    if since:
        where += " AND last_message_at >= :since"
        names["since"] = since
    if until is not None:
        where += " AND last_message_at < :until"
        names["until"] = until
    if user is not None:
        where += " AND user_id = :user"
        names["user"] = user
    if before is not None:
        where += " AND (last_message_at < :at OR (last_message_at = :at AND id < :last))"
        names |= {"at": before[0], "last": before[1]}
    if agents:
        where += " AND source <> 'recollect'"
    where += " ORDER BY last_message_at DESC, id DESC"
    if limit is not None:
        where += " LIMIT :limit"
        names["limit"] = limit
    return _load(tx, where, names)


def idle_since(tx: Transaction, owner: Owner, moment: Timestamp) -> list[Conversation]:
    """Active conversations whose last message is older."""
    names = {**owner.names(), "moment": moment}
    return _load(tx, " AND status = 'active' AND last_message_at <= :moment ORDER BY id", names)


def of_key(tx: Transaction, owner: Owner, session_key: str) -> list[Conversation]:
    """One, but for a session that stands in several files."""
    return _load(tx, " AND session_key = :key ORDER BY id", {**owner.names(), "key": session_key})


def numbered(tx: Transaction, owner: Owner, number: int) -> Conversation | None:
    """By id, as `conversations` lists it."""
    found = _load(tx, " AND id = :id", {**owner.names(), "id": number})
    return found[0] if found else None


def sessions(tx: Transaction, owner: Owner, text: str, limit: int) -> list[str]:
    """Ids of the sessions with a conversation whose key begins with this text."""
    where, names = beginning("session_key", text)
    rows = tx.rows(
        "SELECT DISTINCT session_id FROM memory_conversations WHERE tenant = :tenant AND agent_id = :agent_id"
        f" AND {where} ORDER BY session_id LIMIT :limit",
        {**owner.names(), **names, "limit": limit},
    )
    return [session for (session,) in rows]


def with_key(tx: Transaction, owner: Owner, text: str) -> list[Conversation]:
    """Those whose key begins with this text, oldest first."""
    where, names = beginning("session_key", text)
    return _load(tx, f" AND {where} ORDER BY first_message_at, id", {**owner.names(), **names})


def states(tx: Transaction, owner: Owner, session_keys: Sequence[str]) -> dict[str, list[ConversationStatus]]:
    """session key → the state of its conversation in each file that holds it."""
    found: dict[str, list[ConversationStatus]] = {}
    sql = (
        "SELECT session_key, status FROM memory_conversations WHERE tenant = :tenant AND agent_id = :agent_id"
        " AND session_key IN ({among})"
    )
    for key, status in rows_of(tx, sql, owner.names(), session_keys):
        found.setdefault(key, []).append(ConversationStatus(status))
    return found


def of_session_id(tx: Transaction, owner: Owner, source: str, session_id: str) -> list[Conversation]:
    """Of whichever files hold it, in order of time."""
    found = with_key(tx, owner, f"{session_id}@")
    return [each for each in found if (each.source, each.session_id) == (source, session_id)]


def unwritten(tx: Transaction, owner: Owner, limit: int, *, aged: Timestamp) -> list[Conversation]:
    """Conversations without a summary's file that nobody will extract by itself: settled ones, and ready ones that
    are older than `aged`. Those, too, that were not extracted and have messages which no run has seen. Newest first."""
    where = (
        " AND (status IN ('archived', 'skipped') OR (status = 'ready' AND last_message_at < :aged))"
        " AND (NOT EXISTS (SELECT 1 FROM memory_artifacts a"
        " WHERE a.tenant = :tenant AND a.agent_id = :agent_id AND a.session_key = memory_conversations.session_key"
        " AND a.source_kind = 'summary') OR (status <> 'archived' AND NOT EXISTS (SELECT 1 FROM memory_jobs j"
        " WHERE j.tenant = :tenant AND j.agent_id = :agent_id AND j.kind IN ('extract', 'archive')"
        " AND j.job_key = memory_conversations.session_key"
        " AND substr(j.success_watermark, 1, 24) >= memory_conversations.last_message_at)))"
        " ORDER BY last_message_at DESC, id DESC LIMIT :limit"
    )
    return _load(tx, where, {**owner.names(), "limit": limit, "aged": aged})


def not_in_files(tx: Transaction, owner: Owner, *, but: str) -> int:
    """How many have messages that no transcript file holds yet; those of the source `but` are left out."""
    sql = (
        "SELECT COUNT(DISTINCT session_key) FROM memory_conversations c"
        " WHERE tenant = :tenant AND agent_id = :agent_id AND source <> :but AND NOT EXISTS ("
        "SELECT 1 FROM memory_artifacts a WHERE a.tenant = :tenant AND a.agent_id = :agent_id"
        " AND a.session_key = c.session_key AND a.source_kind || '' = 'transcript' AND a.is_current = 1"  # not by kind
        " AND a.ended_at >= c.last_message_at)"
    )
    return int(tx.rows(sql, {**owner.names(), "but": but})[0][0])


def insert(tx: Transaction, owner: Owner, conversations: Sequence[Conversation], now: Timestamp) -> None:
    sums.drop(tx, owner, [each.session_key for each in conversations])
    tx.run_many(
        f"INSERT INTO memory_conversations (tenant, agent_id, updated_at, {', '.join(_VALUES.values())})"
        f" VALUES (:tenant, :agent_id, :now, {', '.join(':' + name for name in _VALUES)})",
        [_names(owner, each, now) for each in conversations],
    )


def update(tx: Transaction, owner: Owner, conversations: Sequence[Conversation], now: Timestamp) -> int:
    """By id."""
    sums.drop(tx, owner, [each.session_key for each in conversations])
    changes = ", ".join(f"{column} = :{name}" for name, column in _VALUES.items())
    return tx.run_many(
        f"UPDATE memory_conversations SET updated_at = :now, {changes}"
        " WHERE tenant = :tenant AND agent_id = :agent_id AND id = :id",
        [_names(owner, each, now) for each in conversations],
    )


def set_status(
    tx: Transaction, owner: Owner, changes: Iterable[tuple[Conversation, ConversationStatus, str]], now: Timestamp
) -> int:
    """Status and reason. How many took it: one that changed in the meantime does not, compared where it is written."""
    changes = sorted(changes, key=lambda change: change[0].id)  # in one order: no deadlock
    rows = [
        (
            str(status),
            reason,
            now,
            owner.tenant,
            owner.agent_id,
            was.id,
            was.status,
            was.last_message_at,
            was.entry_count,
        )
        for was, status, reason in changes
    ]
    if not rows:
        return 0
    sums.drop(tx, owner, [was.session_key for was, _, _ in changes])
    return tx.run_many(
        "UPDATE memory_conversations SET status = :status, status_reason = :reason, updated_at = :now"
        " WHERE tenant = :tenant AND agent_id = :agent_id AND id = :id AND status = :was"
        " AND last_message_at = :last AND entry_count = :count",
        rows,
    )


def delete(tx: Transaction, owner: Owner, conversations: Sequence[Conversation]) -> None:
    sums.drop(tx, owner, [each.session_key for each in conversations])
    tx.run_many(
        "DELETE FROM memory_conversations WHERE tenant = :tenant AND agent_id = :agent_id AND id = :id",
        [{**owner.names(), "id": each.id} for each in conversations],
    )


def count_by_status(tx: Transaction, owner: Owner) -> dict[str, int]:
    sql = (
        "SELECT status, COUNT(*) FROM memory_conversations WHERE tenant = :tenant AND agent_id = :agent_id"
        " GROUP BY status ORDER BY status"
    )
    return dict(tx.rows(sql, owner.names()))


def _load(tx: Transaction, where: str, names: dict[str, object]) -> list[Conversation]:
    found = []
    for row in tx.rows(_SELECT + where, names):
        values = [*row]
        values[_STATUS] = ConversationStatus(values[_STATUS])
        found.append(Conversation(*values))
    return found


def _names(owner: Owner, conversation: Conversation, now: Timestamp) -> dict[str, object]:
    return {**owner.names(), **{name: getattr(conversation, name) for name in _COLUMNS}, "now": now}
