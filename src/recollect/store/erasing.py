"""Deletes across tables: entries, compactions and everything that is known of a conversation.

What was taken in and what was made of it goes; token accounts and other people's rows stay, and so do offsets of files
that are there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

from recollect.note import SOURCE
from recollect.store import sums
from recollect.store.database import Transaction, rows_of, run_of
from recollect.store.entries import events_of
from recollect.types import Conversation, Owner, Timestamp

_OWN = "tenant = :tenant AND agent_id = :agent_id"
_SAID = "SELECT source, entry_uuid, session_id, role, content, source_file, events FROM memory_transcript_entries"
_SUMMED = "SELECT source, compaction_uuid, session_id, 'compaction', summary, source_file, '' FROM memory_compactions"


# Tables that words come to and leave again: what is erased now may have stood there before.
PASSED_THROUGH = frozenset(
    """memory_active_sets memory_answers memory_artifacts memory_compactions memory_file_states memory_memories
    memory_search_texts memory_sources memory_stage1 memory_turn_artifacts""".split()
)


class Place(StrEnum):
    """What a text is."""

    MESSAGE = "message"
    COMPACTION = "compaction"
    SUMMARY = "summary"
    MEMORY = "memory"
    TURN = "turn"
    FEEDBACK = "feedback"
    PROJECT = "project"
    BRANCH = "branch"
    USER = "user"
    CHAT = "chat"


class Standing(NamedTuple):
    """A text, and where it stands."""

    place: Place
    id: str  # of an entry, compaction, memory, turn, reaction or project; the session key of a summary
    text: str
    source: str = ""
    session_id: str = ""
    source_file: str = ""
    timestamp: str = ""
    role: str = ""
    session_key: str = ""
    content: str = ""  # of an entry, without what else it tells


class Said(NamedTuple):
    """An entry or a compaction, wherever it stands."""

    source: str
    uuid: str
    session_id: str
    role: str  # user | assistant | compaction
    text: str
    source_file: str
    events: str = ""  # JSON: what the entry tells without a sentence

    @property
    def told(self) -> str:
        return "\n".join([self.text, *(each.text for each in events_of(self.events))])


def keys(
    tx: Transaction, owner: Owner, *, session: str = "", key: str = "", project: str = "", user: str = ""
) -> list[str]:
    """Session keys of a session, a key, a project (its path or id) or a user of chats (in one project, or in all), by
    rows or by files; of nothing, when none is given."""
    if user:
        chosen, values = _of_user(user, project)
        sql = f"SELECT DISTINCT session_key FROM memory_conversations WHERE {_OWN} AND {chosen}"
        return sorted(found for (found,) in tx.rows(sql, {**owner.names(), **values}))
    where, names = _chosen(session, key, project)
    rows = tx.rows(
        " UNION ".join(
            f"SELECT session_key FROM {table} WHERE {_OWN} AND {where}"
            for table in ("memory_conversations", "memory_artifacts")
        ),
        {**owner.names(), **names},
    )
    return sorted(found for (found,) in rows)


def said(tx: Transaction, owner: Owner, talk: Conversation) -> list[Said]:
    """Everything said in a conversation, and the summaries an agent made of it; of what was withdrawn also what stands
    between it and the conversations beside it."""
    names = {
        **owner.names(),
        "source": talk.source,
        "file": talk.source_file,
        "session": talk.session_id,
        "first": talk.first_message_at,
        "last": talk.last_message_at,
    }
    where = f"WHERE {_OWN} AND source = :source AND source_file = :file AND session_id = :session"
    another = (
        f"SELECT 1 FROM memory_conversations c {where}"
        " AND ((c.first_message_at > :first AND c.first_message_at <= e.timestamp)"
        " OR (c.first_message_at < :first AND c.last_message_at >= e.timestamp))"
    )
    rows = tx.rows(
        f"{_SAID} e {where} AND ((e.timestamp >= :first AND e.timestamp <= :last)"
        f" OR (e.withdrawn = 1 AND NOT EXISTS ({another})))",
        names,
    )
    rows += tx.rows(f"{_SUMMED} {where} AND timestamp >= :first", names)
    return [Said(*row) for row in rows]


def said_in_session(tx: Transaction, owner: Owner, session_id: str) -> list[Said]:
    names = {**owner.names(), "session": session_id}
    where = f"WHERE {_OWN} AND session_id = :session"
    return [Said(*row) for row in (*tx.rows(f"{_SAID} {where}", names), *tx.rows(f"{_SUMMED} {where}", names))]


def said_by(tx: Transaction, owner: Owner, user: str, project: str) -> list[Said]:
    """What a user of chats said, in one project or in all; it may belong to no conversation."""
    where, names = _of_user(user, project)
    return [Said(*row) for row in tx.rows(f"{_SAID} WHERE {_OWN} AND {where}", {**owner.names(), **names})]


def withdrawn_in_project(tx: Transaction, owner: Owner, project: str) -> list[Said]:
    """What was withdrawn may belong to no conversation."""
    chosen, names = _in_project("cwd", project)
    where = f"WHERE {_OWN} AND withdrawn = 1 AND {chosen}"
    return [Said(*row) for row in tx.rows(f"{_SAID} {where}", {**owner.names(), **names})]


_PAGE = 2000  # messages that are looked through at a time
_TEXTS = {
    Place.COMPACTION: "SELECT compaction_uuid, summary, source, session_id, source_file, timestamp, 'compaction'"
    " FROM memory_compactions",
    Place.SUMMARY: "SELECT session_key, rollout_slug || ' ' || memory_sentence || ' ' || rollout_summary || ' ' ||"
    " raw_memory, source, session_id, '', '', '', session_key FROM memory_stage1",
    Place.MEMORY: "SELECT DISTINCT memory_id, text || ' ' || occasions FROM memory_sources",
    Place.TURN: "SELECT turn_id, text, '', session_id, hosted_uri FROM memory_turn_artifacts",
}
_SPOKEN = "memory_transcript_entries"
_NAMES = {
    Place.PROJECT: f"SELECT project_id, cwd FROM {_SPOKEN} WHERE {_OWN}"
    f" UNION SELECT project_id, project_id FROM {_SPOKEN} WHERE {_OWN}",
    Place.BRANCH: f"SELECT DISTINCT project_id, branch FROM {_SPOKEN} WHERE {_OWN}",
    Place.USER: f"SELECT DISTINCT user_id, user_id FROM {_SPOKEN} WHERE {_OWN}",
    Place.CHAT: f"SELECT DISTINCT session_id, conversation FROM memory_turn_artifacts WHERE {_OWN}",
}


def texts(tx: Transaction, owner: Owner) -> Iterator[Standing]:
    """Every text that rows hold, once for each row."""
    after = -1
    columns = "id, entry_uuid, content || ' ' || tool_names, source, session_id, source_file, timestamp, role"
    columns += ", content, events"
    sql = f"SELECT {columns} FROM memory_transcript_entries WHERE {_OWN} AND id > :after ORDER BY id LIMIT {_PAGE}"
    while rows := tx.rows(sql, {**owner.names(), "after": after}):
        for _, uuid, text, *at, content, events in rows:
            text = "\n".join([text, *(each.text for each in events_of(events))])
            yield Standing(Place.MESSAGE, uuid, text, *at)._replace(content=content)
        after = rows[-1][0]
    for place, select in _TEXTS.items():
        yield from (Standing(place, *row) for row in tx.rows(f"{select} WHERE {_OWN}", owner.names()))


def names(tx: Transaction, owner: Owner) -> list[Standing]:
    """What projects, branches, users and chats are called."""
    return [Standing(place, *row) for place, select in _NAMES.items() for row in sorted(tx.rows(select, owner.names()))]


def key_at(tx: Transaction, owner: Owner, each: Standing) -> str:
    """The session key of the conversation that a message is of; empty: of none."""
    names = {"source": each.source, "file": each.source_file, "session": each.session_id, "at": each.timestamp}
    row = tx.row(
        f"SELECT session_key FROM memory_conversations WHERE {_OWN} AND source = :source AND source_file = :file"
        " AND session_id = :session AND first_message_at <= :at AND last_message_at >= :at",
        {**owner.names(), **names},
    )
    return str(row[0]) if row else ""


def keys_of_files(tx: Transaction, owner: Owner, paths: Sequence[str]) -> list[str]:
    """Session keys of the conversations that these canonical files are of, by rows."""
    sql = f"SELECT DISTINCT session_key FROM memory_artifacts WHERE {_OWN} AND source_path IN ({{among}})"
    return sorted(key for (key,) in rows_of(tx, sql, owner.names(), paths))


def notes(tx: Transaction, owner: Owner) -> list[tuple[str, str]]:
    """(session key, text) of every note that a person wrote."""
    sql = (
        "SELECT c.session_key, e.content FROM memory_conversations c JOIN memory_transcript_entries e"
        " ON e.tenant = c.tenant AND e.agent_id = c.agent_id AND e.source = c.source AND e.entry_uuid = c.session_id"
        " WHERE c.tenant = :tenant AND c.agent_id = :agent_id AND c.source = :source"
    )
    return [(key, text) for key, text in tx.rows(sql, {**owner.names(), "source": SOURCE})]


def compaction_files(tx: Transaction, owner: Owner, gone: Iterable[Said]) -> list[tuple[str, str]]:
    """(session key, path) of the files of these compactions."""
    sql = (
        f"SELECT session_key, source_path FROM memory_artifacts WHERE {_OWN}"
        " AND source_node_id = :uuid AND source_node_id <> '' AND harness = :source"
    )
    found: set[tuple[str, str]] = set()
    for each in gone:
        rows = tx.rows(sql, {**owner.names(), "source": each.source, "uuid": each.uuid})
        found |= {(key, path) for key, path in rows}
    return sorted(found)


def delete_said(tx: Transaction, owner: Owner, gone: Iterable[Said]) -> int:
    """How many rows went."""
    gone = list(gone)
    rows = [{**owner.names(), "source": each.source, "uuid": each.uuid} for each in gone]
    if not rows:
        return 0
    sums.drop_sessions(tx, owner, {each.session_id for each in gone})
    where = f"WHERE {_OWN} AND source = :source AND"
    removed = tx.run_many(f"DELETE FROM memory_transcript_entries {where} entry_uuid = :uuid", rows)
    return removed + tx.run_many(f"DELETE FROM memory_compactions {where} compaction_uuid = :uuid", rows)


def delete_conversations(tx: Transaction, owner: Owner, session_keys: Sequence[str]) -> int:
    """How many rows went."""
    return _delete_keys(tx, owner, "memory_conversations", session_keys)


def delete_baseline(tx: Transaction, owner: Owner, session_keys: Sequence[str]) -> int:
    """What phase 2 knows of conversations, when it has seen that they are gone; how many rows went."""
    return _delete_keys(tx, owner, "memory_stage1_use", session_keys)


def delete_unstated(tx: Transaction, owner: Owner) -> int:
    """Use of memories that nobody states any more, opinions of them, and who was given them; how many rows went."""
    return sum(
        tx.run(
            f"DELETE FROM {table} WHERE {_OWN} AND NOT EXISTS (SELECT 1 FROM memory_memories m"
            f" WHERE m.tenant = {table}.tenant AND m.agent_id = {table}.agent_id AND m.memory_id = {table}.memory_id)"
            f" AND NOT EXISTS (SELECT 1 FROM memory_stage1 s WHERE s.tenant = {table}.tenant"  # what a session came to
            f" AND s.agent_id = {table}.agent_id AND s.session_key = {table}.memory_id)",
            owner.names(),
        )
        for table in ("memory_use", "memory_feedback", "memory_injected_lines", "memory_citations", "memory_seen")
    )


def recount(tx: Transaction, owner: Owner, left: Iterable[Conversation], now: Timestamp) -> None:
    """Conversations that lost entries, as they are now; how many entries are left is counted."""
    for talk in left:
        names = {
            **owner.names(),
            "id": talk.id,
            "source": talk.source,
            "file": talk.source_file,
            "session": talk.session_id,
            "first": talk.first_message_at,
            "last": talk.last_message_at,
            "key": talk.session_key,
            "now": now,
        }
        tx.run(
            "UPDATE memory_conversations SET updated_at = :now, session_key = :key, first_message_at = :first,"
            " last_message_at = :last, entry_count = (SELECT COUNT(*) FROM"
            " memory_transcript_entries e WHERE e.tenant = :tenant AND e.agent_id = :agent_id AND e.source = :source"
            " AND e.source_file = :file AND e.session_id = :session AND e.timestamp >= :first AND e.timestamp <= :last"
            f" AND e.withdrawn = 0) WHERE {_OWN} AND id = :id",
            names,
        )


# What is named after a project of which nothing is left


def places(tx: Transaction, owner: Owner, files: Iterable[tuple[str, str]]) -> set[str]:
    """Folders and ids of the projects that something in these files (source, key) was said in."""
    found: set[str] = set()
    for source, path in files:
        names = {**owner.names(), "source": source, "path": path}
        for table, folder in (("memory_transcript_entries", "cwd"), ("memory_conversations", "project")):
            where = f"WHERE {_OWN} AND source = :source AND source_file = :path"
            for row in tx.rows(f"SELECT DISTINCT {folder}, project_id FROM {table} {where}", names):
                found.update(row)
    return found


def delete_projects(tx: Transaction, owner: Owner, names: Iterable[str]) -> int:
    """Of the folders of these projects (paths, with all below them, or ids), those nothing is left of, and then the
    repositories of projects without a folder; how many rows went."""
    mine = "x.tenant = memory_projects.tenant AND x.agent_id = memory_projects.agent_id"
    left = " AND ".join(
        f"NOT EXISTS (SELECT 1 FROM {table} x WHERE {mine} AND ({same}))"
        for table, same in (
            ("memory_conversations", "x.project = memory_projects.cwd OR x.project_id = memory_projects.project_id"),
            ("memory_artifacts", "x.project = memory_projects.cwd OR x.project_id = memory_projects.project_id"),
            ("memory_memories", "x.scope = 'project' AND x.scope_id = memory_projects.project_id"),
            ("memory_turn_artifacts", "x.project = memory_projects.project_id"),
            ("memory_transcript_entries", "x.cwd = memory_projects.cwd OR x.project_id = memory_projects.project_id"),
        )
    )
    removed = 0
    for name in sorted({*names} - {""}):
        chosen, values = _in_project("cwd", name)
        removed += tx.run(
            f"DELETE FROM memory_projects WHERE {_OWN} AND {chosen} AND {left}", {**owner.names(), **values}
        )
    return removed + tx.run(
        f"DELETE FROM memory_repositories WHERE {_OWN} AND NOT EXISTS (SELECT 1 FROM memory_projects x WHERE"
        " x.tenant = memory_repositories.tenant AND x.agent_id = memory_repositories.agent_id"
        " AND x.project_id = memory_repositories.project_id)",
        owner.names(),
    )


def states_beside(tx: Transaction, owner: Owner, files: Iterable[tuple[str, str]]) -> list[tuple[str, str, str]]:
    """(source, key, root) of every file that was read and lies in a folder of these (source, key)."""
    found: set[tuple[str, str, str]] = set()
    for name in {path.rpartition("/")[0] or path for _, path in files}:
        names = {**owner.names(), "name": name, "below": f"{name}/", "size": len(name) + 1}
        sql = f"SELECT source, file_path, root FROM memory_file_states WHERE {_OWN}"
        where = "(file_path = :name OR substr(file_path, 1, :size) = :below)"
        found |= {(source, path, root) for source, path, root in tx.rows(f"{sql} AND {where}", names)}
    return sorted(found)


def delete_states(tx: Transaction, owner: Owner, files: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """How far files were read that are gone: those of which no row tells anything. Returns these."""
    removed = []
    for source, path in files:
        names = {**owner.names(), "source": source, "path": path}
        where = f"{_OWN} AND source = :source AND"
        left = " AND ".join(
            f"NOT EXISTS (SELECT 1 FROM {table} WHERE {where} source_file = :path)"
            for table in ("memory_transcript_entries", "memory_compactions", "memory_conversations")
        )
        sql = f"DELETE FROM memory_file_states WHERE {where} file_path = :path AND status = 'idle' AND {left}"
        if tx.run(sql, names):
            tx.run(f"DELETE FROM memory_malformed_lines WHERE {where} file_path = :path", names)
            tx.run(f"DELETE FROM memory_turn_files WHERE {_OWN} AND path = :path", names)
            removed.append((source, path))
    return removed


def _delete_keys(tx: Transaction, owner: Owner, table: str, session_keys: Sequence[str]) -> int:
    sql = f"DELETE FROM {table} WHERE {_OWN} AND session_key IN ({{among}})"
    return run_of(tx, sql, owner.names(), session_keys)


def _chosen(session: str, key: str, project: str) -> tuple[str, Mapping[str, str | int]]:
    if session:
        return "session_id = :session", {"session": session}
    if key:
        return "session_key = :key", {"key": key}
    if project:
        return _in_project("project", project)
    return "1 = 0", {}


def _of_user(user: str, project: str) -> tuple[str, dict[str, str | int]]:
    """In a project, or in all."""
    within, names = _in_project("project_id", project) if project else ("1 = 1", {})
    return f"user_id = :user AND user_id <> '' AND {within}", {**names, "user": user}


def _in_project(column: str, project: str) -> tuple[str, dict[str, str | int]]:
    """By its id, or by a folder with all that lies below it."""
    names: dict[str, str | int] = {"project": project}
    if not project.startswith("/") or project == "/":
        return f"({column} = :project OR project_id = :project)", names
    names |= {"below": f"{project}/", "size": len(project) + 1}
    return f"({column} = :project OR project_id = :project OR substr({column}, 1, :size) = :below)", names
