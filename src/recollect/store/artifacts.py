"""memory_artifacts: which canonical files there are, and what of them is in the other tables.

A row follows from its file alone; files are never read from here but to be shown, linked or found unchanged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from recollect.store import sums
from recollect.store.database import Transaction, beginning, keys_of, marks, rows_of, run_of
from recollect.types import Owner, Timestamp

_OWN = "tenant = :tenant AND agent_id = :agent_id"


class Indexed(NamedTuple):
    """A canonical file; the columns in their order. A tuple, since it is bound as it is."""

    source_path: str
    source_sha256: str
    source_kind: str
    session_token: str
    session_key: str
    session_id: str
    harness: str
    project: str
    project_id: str
    captured_at: Timestamp
    ended_at: str  # empty: the conversation may still grow
    manifest_path: str
    memory_sentence: str  # empty for a manifest
    source_node_id: str  # of a compaction: its uuid
    is_current: int  # 1: the manifest, or what it points at
    signature: str  # of stat, when it was read or written


class Summarised(NamedTuple):
    """A few columns of a summary's row: MEMORY.md looks at hundreds."""

    source_path: str
    session_key: str
    session_id: str
    project: str
    captured_at: Timestamp
    ended_at: str
    manifest_path: str
    memory_sentence: str
    of_user: int  # 1: of a user of a chat
    told: str  # what was done and left; empty where nothing was kept


_COLUMNS = Indexed._fields
_SELECT = f"SELECT {', '.join(_COLUMNS)} FROM memory_artifacts WHERE {_OWN}"
_BY_PATH = "ORDER BY source_path || ''"  # of no use to an index: SQLite would walk through all paths for a few


def replace_sessions(
    tx: Transaction, owner: Owner, session_keys: Sequence[str], rows: Sequence[Indexed], kinds: Sequence[str] = ()
) -> None:
    """The files of these conversations are exactly these; those of `kinds` alone, where some are named. Whatever else
    follows from them is stored by now: its sum is kept."""
    among, of = marks("kind", [str(kind) for kind in kinds])
    where = f" AND source_kind IN ({among})" if kinds else ""
    sql = f"DELETE FROM memory_artifacts WHERE {_OWN} AND session_key IN ({{among}}){where}"
    run_of(tx, sql, {**owner.names(), **of}, session_keys)
    if rows:
        tx.run_many(
            f"INSERT INTO memory_artifacts (tenant, agent_id, {', '.join(_COLUMNS)}) VALUES (:tenant, :agent_id,"
            f" {', '.join(':' + name for name in _COLUMNS)}) ON CONFLICT (tenant, agent_id, source_path) DO UPDATE SET"
            f" {', '.join(f'{name} = excluded.{name}' for name in _COLUMNS[1:])}",
            [(owner.tenant, owner.agent_id, *row) for row in rows],
        )
    sums.keep(tx, owner, sorted({*session_keys, *(row.session_key for row in rows)}))


def of_session(tx: Transaction, owner: Owner, session_key: str) -> list[Indexed]:
    """The files of a conversation, oldest first."""
    return _load(tx, f" AND session_key = :key {_BY_PATH}", owner, {"key": session_key})


def find(tx: Transaction, owner: Owner, text: str) -> list[Indexed]:
    """The file with this path, or the files with this token."""
    return _load(tx, " AND (source_path = :text OR session_token = :text) ORDER BY source_path", owner, {"text": text})


def of_keys(
    tx: Transaction, owner: Owner, session_keys: Sequence[str], *, lock: bool = False
) -> dict[str, list[Indexed]]:
    """session key → its files. With `lock` nobody else changes these rows until the transaction ends."""
    sql = f"{_SELECT} AND session_key IN ({{among}}) {_BY_PATH} {tx.dialect.for_update if lock else ''}"
    found: dict[str, list[Indexed]] = {}
    for row in map(Indexed._make, rows_of(tx, sql, owner.names(), session_keys)):
        found.setdefault(row.session_key, []).append(row)
    return found


def signatures(tx: Transaction, owner: Owner) -> dict[str, str]:
    """path → signature of every file that is known."""
    return dict(tx.rows(f"SELECT source_path, signature FROM memory_artifacts WHERE {_OWN}", owner.names()))


_OF_USER = (
    "EXISTS (SELECT 1 FROM memory_conversations c WHERE c.tenant = memory_artifacts.tenant"
    " AND c.agent_id = memory_artifacts.agent_id AND c.session_key = memory_artifacts.session_key AND c.user_id <> '')"
)
_SUMMARISED = (
    f"{', '.join(Summarised._fields[:-2])}, CASE WHEN {_OF_USER} THEN 1 ELSE 0 END,"
    " COALESCE((SELECT t.rollout_summary FROM memory_stage1 t WHERE t.tenant = memory_artifacts.tenant"
    " AND t.agent_id = memory_artifacts.agent_id AND t.session_key = memory_artifacts.session_key), '')"
)
_SUMMARIES = f"FROM memory_artifacts WHERE {_OWN} AND source_kind = 'summary' AND is_current = 1"
_AT = "COALESCE(NULLIF(ended_at, ''), captured_at)"  # when a conversation ended, else when it was captured


def newest(tx: Transaction, owner: Owner, first: str, last: str, limit: int) -> list[Summarised]:
    """The newest of those of conversations that ended between two times, in no order."""
    sql = (
        f"SELECT {_SUMMARISED} FROM memory_artifacts WHERE {_OWN} AND source_path IN ("
        f"SELECT source_path {_SUMMARIES} AND captured_at >= :first AND {_AT} >= :first AND {_AT} <= :last"
        f" ORDER BY {_AT} DESC LIMIT :limit)"
    )
    names = {**owner.names(), "first": first, "last": last, "limit": limit}
    return [Summarised(*row) for row in tx.rows(sql, names)]


def recent(tx: Transaction, owner: Owner, project_id: str, limit: int) -> list[Summarised]:
    """The last conversations of a project in which something was worth keeping, newest first; none of the users of
    chats."""
    sql = (
        f"SELECT {_SUMMARISED} {_SUMMARIES} AND project_id = :project AND NOT {_OF_USER}"
        " AND EXISTS (SELECT 1 FROM memory_stage1 s WHERE s.tenant = memory_artifacts.tenant"
        " AND s.agent_id = memory_artifacts.agent_id AND s.session_key = memory_artifacts.session_key)"
        f" ORDER BY {_AT} DESC, source_path DESC LIMIT :limit"
    )
    return [Summarised(*row) for row in tx.rows(sql, {**owner.names(), "project": project_id, "limit": limit})]


def told_of(tx: Transaction, owner: Owner, key: str) -> list[Summarised]:
    """Of the conversations whose key begins so, the newest first; none of the users of chats."""
    where, names = beginning("session_key", key)
    sql = (
        f"SELECT {_SUMMARISED} {_SUMMARIES} AND {where} AND NOT {_OF_USER}"
        f" ORDER BY {_AT} DESC, source_path DESC LIMIT 9"
    )
    return [Summarised(*row) for row in tx.rows(sql, {**owner.names(), **names})]


def sessions(tx: Transaction, owner: Owner, first: str, last: str) -> list[str]:
    """Of all of those, the session."""
    sql = f"SELECT session_id {_SUMMARIES} AND captured_at >= :first AND {_AT} >= :first AND {_AT} <= :last"
    return [found for (found,) in tx.rows(sql, {**owner.names(), "first": first, "last": last})]


def of_sessions(tx: Transaction, owner: Owner, session_id: str, kind: str) -> list[Indexed]:
    """What the manifests of a session's conversations point at, oldest conversation first."""
    among, names = keys_of(session_id)
    where = f" AND source_kind = :kind AND is_current = 1 AND {among} AND session_id = :session_id"
    names |= {"kind": str(kind), "session_id": session_id}
    return _load(tx, f"{where} ORDER BY session_key, source_path", owner, names)


def vanished(tx: Transaction, owner: Owner, limit: int) -> list[Indexed]:
    """Manifests of conversations that there are no more: their entries belong to others now."""
    where = (
        " AND source_kind = 'manifest' AND is_current = 1 AND NOT EXISTS (SELECT 1 FROM memory_conversations c"
        " WHERE c.tenant = memory_artifacts.tenant AND c.agent_id = memory_artifacts.agent_id"
        " AND c.session_key = memory_artifacts.session_key) ORDER BY source_path LIMIT :limit"
    )
    return _load(tx, where, owner, {"limit": limit})


def paths(tx: Transaction, owner: Owner, kind: str, session_keys: Sequence[str]) -> dict[str, str]:
    """session key → the file of this kind that its manifest points at."""
    sql = (
        "SELECT session_key, source_path, source_kind, is_current FROM memory_artifacts"
        f" WHERE {_OWN} AND session_key IN ({{among}})"  # a few rows each: the kind would choose another index
    )
    rows = rows_of(tx, sql, owner.names(), session_keys)
    return {key: path for key, path, of, is_current in rows if of == kind and is_current}


def _load(tx: Transaction, where: str, owner: Owner, names: Mapping[str, object]) -> list[Indexed]:
    return [Indexed(*row) for row in tx.rows(_SELECT + where, {**owner.names(), **names})]
