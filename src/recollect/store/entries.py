"""memory_transcript_entries and memory_compactions.

An entry's uuid is unique per owner and source. A copy that stands in another file is not stored again; which file
owns it is decided by the caller. Order inside a file is (timestamp, generation, line_offset).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, NamedTuple

import msgspec

from recollect.authors import by_form
from recollect.store.compactions import INSERT
from recollect.store.database import Transaction, beginning, keys_of, rows_of
from recollect.text import plain
from recollect.types import Entry, Event, Message, Owner, Role, Timestamp

# || '': the source would choose the index of ids, and with it every entry of that agent
_FILE = "tenant = :tenant AND agent_id = :agent_id AND source || '' = :source AND source_file = :source_file"
_UUID = "tenant = :tenant AND agent_id = :agent_id AND source = :source AND entry_uuid = :uuid"


@dataclass(frozen=True, slots=True)
class FileKey:
    """A file of one owner: the columns that scope everything read from it."""

    owner: Owner
    source: str
    source_file: str

    def names(self) -> dict[str, Any]:
        return {**self.owner.names(), "source": self.source, "source_file": self.source_file}


@dataclass(frozen=True, slots=True)
class Stored:
    """Where an entry with some uuid stands now."""

    uuid: str
    source_file: str
    session_id: str
    generation: int
    line_offset: int
    owned: bool
    withdrawn: bool = False


@dataclass(frozen=True, slots=True)
class Line:
    """An entry, and the line of a transcript that it came from."""

    source: str
    source_file: str
    generation: int
    line_offset: int
    uuid: str
    session_id: str
    role: str
    content: str
    timestamp: Timestamp


_LINE = "source, source_file, generation, line_offset, entry_uuid, session_id, role, content, timestamp"
_IN_ORDER = "ORDER BY timestamp, generation, line_offset"
_BETWEEN = f"AND timestamp >= :first AND timestamp <= :last {_IN_ORDER}"

Mark = tuple[Timestamp, str, str, str, str]
"""What grouping needs to know of an entry: its time, working directory, project, branch and user."""

Touch = tuple[str, Timestamp]
"""Session and time of an entry that is not what it was."""


class EntryRow(NamedTuple):
    """The columns of a new entry, in their order; a tuple, since millions are bound."""

    tenant: str
    agent_id: str
    source: str
    uuid: str
    session_id: str
    source_file: str
    generation: int
    line_offset: int
    role: str
    content: str
    tool_names: str
    timestamp: str
    cwd: str
    project_id: str
    branch: str
    owned: int
    user: str = ""
    authors: str = ""
    events: str = ""  # JSON


_INSERT = f"""
INSERT INTO memory_transcript_entries (tenant, agent_id, source, entry_uuid, session_id, source_file, generation,
  line_offset, role, content, tool_names, timestamp, cwd, project_id, branch, owned, user_id, authors, events,
  withdrawn)
VALUES ({", ".join(":" + name for name in EntryRow._fields)}, 0)
ON CONFLICT DO NOTHING
"""


def row(key: FileKey, generation: int, entry: Entry, project_id: str, owned: bool) -> EntryRow:
    return EntryRow(
        key.owner.tenant,
        key.owner.agent_id,
        key.source,
        entry.uuid,
        entry.session_id,
        key.source_file,
        generation,
        entry.line_offset,
        entry.role,
        entry.content,
        entry.tool_names,
        entry.timestamp,
        entry.cwd,
        project_id,
        entry.branch,
        int(owned),
        entry.user,
        entry.authors,
        told(entry.events),
    )


def told(events: Sequence[Event]) -> str:
    return msgspec.json.encode(events).decode() if events else ""


_events = msgspec.json.Decoder(tuple[Event, ...])


def events_of(told: str) -> tuple[Event, ...]:
    return _events.decode(told) if told else ()


def insert(tx: Transaction, rows: Sequence[EntryRow]) -> int:
    """How many were new; the others stand in the store already."""
    return tx.run_many(_INSERT, rows) if rows else 0


def restore(tx: Transaction, rows: Sequence[EntryRow]) -> None:
    """Entries as canonical files tell them: new ones, and the text of those that stand here with another one."""
    if rows:
        tx.run_many(
            _INSERT.replace(
                "DO NOTHING",
                "(tenant, agent_id, source, entry_uuid) DO UPDATE SET content = excluded.content, role = excluded.role,"
                " timestamp = excluded.timestamp, user_id = excluded.user_id, authors = excluded.authors,"
                " events = excluded.events"
                " WHERE memory_transcript_entries.content <> excluded.content"
                " OR memory_transcript_entries.authors <> excluded.authors"
                " OR memory_transcript_entries.events <> excluded.events"
                " OR memory_transcript_entries.role <> excluded.role"
                " OR memory_transcript_entries.user_id <> excluded.user_id"
                " OR memory_transcript_entries.timestamp <> excluded.timestamp",
            ),
            with_authors(tx, rows),
        )


def with_authors(tx: Transaction, rows: Sequence[EntryRow]) -> list[EntryRow]:
    """Return the rows of canonical files with authors where files of older versions tell none: those that stand here,
    as long as the text is the same, else those that the form of the text tells. Events that stand here stay, too."""
    silent: dict[tuple[Owner, str], list[str]] = {}
    for row in rows:
        if not row.authors:
            silent.setdefault((Owner(row.tenant, row.agent_id), row.source), []).append(row.uuid)
    known: dict[tuple[str, str], tuple[str, str, str]] = {}
    for (owner, source), uuids in silent.items():
        known |= {(source, uuid): found for uuid, found in authors(tx, owner, source, uuids).items()}
    return [row if row.authors else _as_known(row, *known.get((row.source, row.uuid), ("", "", ""))) for row in rows]


def _as_known(row: EntryRow, authors: str, events: str, content: str) -> EntryRow:
    """The row of a file that tells no authors, by what stands here. A file holds no signs of a terminal."""
    before = Message("", Role(row.role), content, authors=authors)
    if before.text != row.content:
        before = before.rewritten(plain)
    is_same = bool(authors) and before.text == row.content
    by = before.authors if is_same else by_form(row.content, Role(row.role)) if row.content else ""
    return row._replace(authors=by, events=row.events or events)


def overwrite(tx: Transaction, rows: Sequence[EntryRow], withdrawn: Collection[str] = ()) -> None:
    """The row of that uuid becomes this one, whichever file it stood in. What its file says now counts: it is
    withdrawn if it is among those, else not. Its project stays: the folder's may be another by now."""
    tx.run_many(
        "UPDATE memory_transcript_entries SET session_id = :session_id, source_file = :source_file,"
        " generation = :generation, line_offset = :line_offset, role = :role, content = :content,"
        " tool_names = :tool_names, timestamp = :timestamp, cwd = :cwd, branch = :branch,"
        " project_id = CASE WHEN cwd = :cwd THEN project_id ELSE :project_id END,"
        " authors = :authors, events = :events,"
        f" owned = :owned, user_id = :user, withdrawn = :withdrawn WHERE {_UUID}",
        [{**row._asdict(), "withdrawn": int(row.uuid in withdrawn)} for row in rows],
    )


def find(tx: Transaction, key: FileKey, uuids: Sequence[str]) -> dict[str, Stored]:
    """Where these entries stand, in any file of the source."""
    sql = (
        "SELECT entry_uuid, source_file, session_id, generation, line_offset, owned, withdrawn"
        " FROM memory_transcript_entries WHERE tenant = :tenant AND agent_id = :agent_id AND source = :source"
        " AND entry_uuid IN ({among})"
    )
    return {
        uuid: Stored(uuid, file, session, generation, offset, bool(owned), bool(withdrawn))
        for uuid, file, session, generation, offset, owned, withdrawn in rows_of(tx, sql, key.names(), uuids)
    }


def adopt(tx: Transaction, key: FileKey, generation: int, entries: Sequence[Entry]) -> list[Touch]:
    """A file that was rewritten may give its messages new ids: an older one that says the same at the same time, and
    whose id is not used any more, takes the new id, with what was made of it. Returns those."""
    new: dict[tuple[str, str, str], list[str]] = {}
    for entry in entries:
        new.setdefault((entry.timestamp, str(entry.role), entry.content), []).append(entry.uuid)
    names = {**key.names(), "generation": generation}
    names |= {"first": min(each[0] for each in new), "last": max(each[0] for each in new)}
    rows = tx.rows(
        f"SELECT entry_uuid, session_id, timestamp, role, content FROM memory_transcript_entries WHERE {_FILE}"
        f" AND generation < :generation AND timestamp >= :first AND timestamp <= :last {_IN_ORDER}",
        names,
    )
    ids, standing = {entry.uuid for entry in entries}, {row[0] for row in rows}
    adopted: list[Touch] = []
    for uuid, session, at, role, content in rows:
        free = [each for each in new.get((at, role, content), ()) if each not in standing]
        if free and uuid not in ids:
            new[at, role, content].remove(free[0])
            if _rename(tx, key, session, uuid, free[0]):
                adopted.append((session, at))
    return adopted


_NAMING = (  # what names an entry: table, which rows may, and what two rows with the same name may not share
    ("memory_transcript_entries", "source = :source", ("source",)),
    ("memory_citations", "source = :source", ("source", "memory_id")),
    ("memory_sources", "session_key >= :first AND session_key < :last", ("memory_id", "revision", "session_key")),
)


def _rename(tx: Transaction, key: FileKey, session_id: str, uuid: str, renamed: str) -> bool:
    """Memories and citations follow their entry. False when that id stands already."""
    names = {**key.names(), **keys_of(session_id)[1], "uuid": uuid, "renamed": renamed}
    entry, *others = (
        f"UPDATE {table} SET entry_uuid = :renamed WHERE tenant = :tenant AND agent_id = :agent_id AND {among}"
        f" AND entry_uuid = :uuid AND NOT EXISTS (SELECT 1 FROM {table} AS other WHERE other.tenant = :tenant"
        " AND other.agent_id = :agent_id AND other.entry_uuid = :renamed"
        f"{''.join(f' AND other.{column} = {table}.{column}' for column in shared)})"
        for table, among, shared in _NAMING
    )
    if not tx.run(entry, names):
        return False
    for sql in others:
        tx.run(sql, names)
    return True


def amend(tx: Transaction, key: FileKey, entries: Iterable[Entry]) -> list[Entry]:
    """New text of entries that this file owns; returns those that changed."""
    return [
        entry
        for entry in entries
        if tx.run(
            "UPDATE memory_transcript_entries SET content = :content, tool_names = :tool_names, authors = :authors,"
            f" events = :events WHERE {_UUID} AND source_file = :source_file"
            " AND (content <> :content OR tool_names <> :tool_names OR authors <> :authors OR events <> :events)",
            {
                **key.names(),
                "uuid": entry.uuid,
                "content": entry.content,
                "tool_names": entry.tool_names,
                "authors": entry.authors,
                "events": told(entry.events),
            },
        )
    ]


class Unread(NamedTuple):
    """A message whose authors are not known."""

    source: str
    uuid: str
    role: str
    content: str


_NOBODY = "tenant = :tenant AND agent_id = :agent_id AND authors = '' AND content <> ''"


def files_without_authors(tx: Transaction, owner: Owner) -> list[tuple[str, str]]:
    """(source, file) of messages whose authors are not known."""
    sql = f"SELECT DISTINCT source, source_file FROM memory_transcript_entries WHERE {_NOBODY}"
    return sorted((source, path) for source, path in tx.rows(sql, owner.names()))


def without_authors(tx: Transaction, owner: Owner, after: tuple[str, str], limit: int) -> list[Unread]:
    """Those behind a (source, uuid), in that order."""
    rows = tx.rows(
        f"SELECT source, entry_uuid, role, content FROM memory_transcript_entries WHERE {_NOBODY}"
        " AND (source, entry_uuid) > (:source, :uuid) ORDER BY source, entry_uuid LIMIT :limit",
        {**owner.names(), "source": after[0], "uuid": after[1], "limit": limit},
    )
    return [Unread(*row) for row in rows]


def authors(tx: Transaction, owner: Owner, source: str, uuids: Sequence[str]) -> dict[str, tuple[str, str, str]]:
    """uuid → (authors, events, content) of these messages."""
    sql = (
        "SELECT entry_uuid, authors, events, content FROM memory_transcript_entries WHERE tenant = :tenant"
        " AND agent_id = :agent_id AND source = :source AND entry_uuid IN ({among})"
    )
    found = rows_of(tx, sql, {**owner.names(), "source": source}, uuids)
    return {uuid: tuple(known) for uuid, *known in found}


def keep_authors(tx: Transaction, place: Mapping[str, Any], change: Callable[[str], str]) -> None:
    """Who wrote the parts of a message whose text, `before`, is about to change."""
    where = f"WHERE {_UUID.replace(':uuid', ':entry_uuid')} AND content = :before AND authors <> ''"
    for role, known in tx.rows(f"SELECT role, authors FROM memory_transcript_entries {where}", place):
        message = Message("", Role(role), place["before"], authors=known).rewritten(change)
        sql = f"UPDATE memory_transcript_entries SET authors = :authors {where}"
        tx.run(sql, {**place, "authors": message.authors})


def tell_authors(tx: Transaction, owner: Owner, source: str, found: Iterable[Entry]) -> int:
    """Authors and events of messages that have none, and that stand here with the same text."""
    return tx.run_many(
        f"UPDATE memory_transcript_entries SET authors = :authors, events = :events WHERE {_UUID} AND authors = ''"
        " AND content = :content",
        [
            {
                **owner.names(),
                "source": source,
                "uuid": each.uuid,
                "content": each.content,
                "authors": each.authors,
                "events": told(each.events),
            }
            for each in found
        ],
    )


def tell_authors_of(tx: Transaction, owner: Owner, found: Iterable[tuple[Unread, str]]) -> int:
    """The authors of these messages, where nobody has told them meanwhile."""
    return tx.run_many(
        f"UPDATE memory_transcript_entries SET authors = :authors WHERE {_UUID} AND authors = ''"
        " AND content = :content",
        [
            {**owner.names(), "source": each.source, "uuid": each.uuid, "content": each.content, "authors": authors}
            for each, authors in found
        ],
    )


def set_withdrawn(tx: Transaction, key: FileKey, uuids: Iterable[str], withdrawn: bool) -> list[Touch]:
    """Returns those that were not so before."""
    touched = []
    for uuid in uuids:
        row = tx.row(
            f"UPDATE memory_transcript_entries SET withdrawn = :withdrawn WHERE {_UUID}"
            " AND source_file = :source_file AND withdrawn <> :withdrawn RETURNING session_id, timestamp",
            {**key.names(), "uuid": uuid, "withdrawn": int(withdrawn)},
        )
        if row:
            touched.append((row[0], row[1]))
    return touched


def _said(tx: Transaction, columns: str, key: FileKey, session_id: str, rest: str, **names: object) -> list[Any]:
    """What stands of a session in a file; `rest` narrows and orders it."""
    where = f"{_FILE} AND session_id = :session_id AND withdrawn = 0 {rest}"
    sql = f"SELECT {columns} FROM memory_transcript_entries WHERE {where}"
    return tx.rows(sql, {**key.names(), "session_id": session_id, **names})


def marks_of_session(tx: Transaction, key: FileKey, session_id: str) -> list[Mark]:
    return [(*row,) for row in _said(tx, "timestamp, cwd, project_id, branch, user_id", key, session_id, _IN_ORDER)]


def sessions_of_file(tx: Transaction, key: FileKey) -> set[str]:
    sql = f"SELECT DISTINCT session_id FROM memory_transcript_entries WHERE {_FILE}"
    return {session for (session,) in tx.rows(sql, key.names())}


def delete_from(tx: Transaction, key: FileKey, generation: int, offset: int) -> int:
    """Entries of a generation at or after an offset: what a roll-back removes."""
    names = {**key.names(), "generation": generation, "offset": offset}
    where = f"{_FILE} AND generation = :generation AND line_offset >= :offset"
    tx.run(f"DELETE FROM memory_compactions WHERE {where}", names)
    return tx.run(f"DELETE FROM memory_transcript_entries WHERE {where}", names)


def delete_older(tx: Transaction, key: FileKey, generation: int) -> list[Touch]:
    """Entries of earlier generations: what a finished re-import leaves behind. Returns them."""
    names = {**key.names(), "generation": generation}
    tx.run(f"DELETE FROM memory_compactions WHERE {_FILE} AND generation < :generation", names)
    rows = tx.rows(
        f"DELETE FROM memory_transcript_entries WHERE {_FILE} AND generation < :generation"
        " RETURNING session_id, timestamp",
        names,
    )
    return [(session, at) for session, at in rows]


def of_session(tx: Transaction, owner: Owner, source: str, session_id: str) -> list[tuple[str, str, bool]]:
    """(role, content, withdrawn) of a session in order, from whichever files hold it."""
    rows: list[Any] = []
    for file in files_of_session(tx, owner, source, session_id):  # one by one: each leads the index
        rows += tx.rows(
            "SELECT timestamp, generation, line_offset, role, content, withdrawn FROM memory_transcript_entries"
            f" WHERE {_FILE} AND session_id = :session_id {_IN_ORDER}",
            {**FileKey(owner, source, file).names(), "session_id": session_id},
        )
    rows.sort(key=itemgetter(0, 1, 2))
    return [(role, content, bool(withdrawn)) for *_, role, content, withdrawn in rows]


def files_of_session(tx: Transaction, owner: Owner, source: str, session_id: str) -> list[str]:
    """Files that a session has entries in, or that have its id in their name: all of it may be a copy, or erased."""
    where, names = keys_of(session_id)
    rows = tx.rows(
        "SELECT source_file FROM memory_conversations WHERE tenant = :tenant AND agent_id = :agent_id"
        f" AND source = :source AND session_id = :session_id AND {where}"
        " UNION SELECT file_path FROM memory_file_states WHERE tenant = :tenant AND agent_id = :agent_id"
        " AND source = :source AND REPLACE(file_path, :session_id, '') <> file_path",
        {**owner.names(), "source": source, "session_id": session_id, **names},
    )
    return sorted(path for (path,) in rows)


def last_of_session(tx: Transaction, key: FileKey, session_id: str, limit: int) -> list[tuple[str, str]]:
    """(role, content) of what was said last, in order."""
    newest = "ORDER BY timestamp DESC, generation DESC, line_offset DESC LIMIT :limit"
    return _said(tx, "role, content", key, session_id, newest, limit=limit)[::-1]


def user_texts(
    tx: Transaction, key: FileKey, session_id: str, first: Timestamp, last: Timestamp, limit: int = 1000
) -> list[str]:
    """What the user said between two times, in order."""
    names = {"first": first, "last": last, "role": Role.USER, "limit": limit}
    rows = _said(tx, "content", key, session_id, f"AND role = :role {_BETWEEN} LIMIT :limit", **names)
    return [content for (content,) in rows]


def of_conversation(
    tx: Transaction, key: FileKey, session_id: str, first: Timestamp, last: Timestamp
) -> list[tuple[str, str, str, str, str, str, str, str, str, str]]:
    """(uuid, role, content, timestamp, tools, authors, events, cwd, project_id, branch) between two times, in order."""
    columns = "entry_uuid, role, content, timestamp, tool_names, authors, events, cwd, project_id, branch"
    return _said(tx, columns, key, session_id, _BETWEEN, first=first, last=last)


def lines(tx: Transaction, owner: Owner, source: str, uuids: Sequence[str]) -> list[Line]:
    """These entries, withdrawn or not, in order."""
    sql = (
        f"SELECT {_LINE} FROM memory_transcript_entries WHERE tenant = :tenant AND agent_id = :agent_id"
        " AND source = :source AND entry_uuid IN ({among})"
    )
    rows = rows_of(tx, sql, {**owner.names(), "source": source}, uuids)
    return sorted((Line(*row) for row in rows), key=lambda each: (each.timestamp, each.generation, each.line_offset))


def lines_of_conversation(
    tx: Transaction, key: FileKey, session_id: str, first: Timestamp, last: Timestamp
) -> list[Line]:
    return [Line(*row) for row in _said(tx, _LINE, key, session_id, _BETWEEN, first=first, last=last)]


def page(
    tx: Transaction,
    key: FileKey,
    session_id: str,
    span: tuple[Timestamp, Timestamp],
    limit: int,
    *,
    after: tuple[str, int, int] | None = None,
    before: tuple[str, int, int] | None = None,
    like: str = "",
) -> list[tuple[Line, str]]:
    """Entries with their authors between two times, in order: those `after` a (time, generation, offset), or the last
    ones `before` it; of those whose text is `like` a pattern, where one is given."""
    where, order = "AND timestamp >= :first AND timestamp <= :last", _IN_ORDER
    names: dict[str, object] = {"first": span[0], "last": span[1], "limit": limit}
    if at := after or before:
        sign = ">" if after else "<"
        where += (
            f" AND (timestamp {sign} :at OR (timestamp = :at AND (generation {sign} :generation"
            f" OR (generation = :generation AND line_offset {sign} :offset))))"
        )
        names |= {"at": at[0], "generation": at[1], "offset": at[2]}
    if before:
        order = "ORDER BY timestamp DESC, generation DESC, line_offset DESC"
    if like:
        where += " AND LOWER(content) LIKE :like ESCAPE '!'"
        names["like"] = like
    rows = _said(tx, f"{_LINE}, authors", key, session_id, f"{where} {order} LIMIT :limit", **names)
    found = [(Line(*row[:-1]), row[-1]) for row in rows]
    return found[::-1] if before else found


def uuids(tx: Transaction, owner: Owner, text: str, limit: int) -> list[tuple[str, str]]:
    """(source, uuid) of entries whose uuid begins with this text."""
    known = "SELECT DISTINCT source FROM memory_conversations WHERE tenant = :tenant AND agent_id = :agent_id"
    where, names = beginning("entry_uuid", text)
    found: list[tuple[str, str]] = []
    for (source,) in sorted(tx.rows(known, owner.names())):
        rows = tx.rows(
            "SELECT source, entry_uuid FROM memory_transcript_entries WHERE tenant = :tenant AND agent_id = :agent_id"
            f" AND source = :source AND {where} ORDER BY entry_uuid LIMIT :limit",
            {**owner.names(), **names, "source": source, "limit": limit},
        )
        found += [(row[0], row[1]) for row in rows]
    return found[:limit]


def insert_compactions(tx: Transaction, rows: Sequence[Mapping[str, Any]]) -> None:
    tx.run_many(
        f"{INSERT} ON CONFLICT (tenant, agent_id, source, compaction_uuid) DO UPDATE SET summary = excluded.summary,"
        " generation = excluded.generation, line_offset = excluded.line_offset"
        " WHERE memory_compactions.source_file = excluded.source_file",
        rows,
    )
