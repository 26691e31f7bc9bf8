"""Puts rows right that somebody changed: those of a conversation become what its files say.

What files do not know of a row stays: where it stands in the agent's file, and the signs of a terminal. No entry is
ever deleted: one that the files do not tell is withdrawn, so that a message of the agent's own file is never lost.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict, replace
from typing import Any

from recollect.store import compactions, conversations, entries, memories, sums
from recollect.store.checksum import SAID, TALK, as_written, clean, reason
from recollect.store.compactions import Compacted
from recollect.store.database import Transaction, rows_of
from recollect.store.entries import EntryRow, FileKey
from recollect.types import Conversation, Owner, Remembered, Stage1, Timestamp

_OWN = "tenant = :tenant AND agent_id = :agent_id"
_SET = ", ".join(f"{sums.COLUMNS.get(name, name)} = :{name}" for name in SAID)
_TALK = ", ".join(f"{sums.COLUMNS.get(name, name)} = :{name}" for name in TALK)
_MARK = "[redacted:"
_ENTRY = "source = :source AND entry_uuid = :uuid"
_NOBODYS = "".join(  # there is no conversation with this key, and no file of one
    f" AND NOT EXISTS (SELECT 1 FROM {table} x WHERE x.tenant = s.tenant AND x.agent_id = s.agent_id"
    " AND x.session_key = s.session_key)"
    for table in ("memory_conversations", "memory_artifacts")
)


def put(
    tx: Transaction,
    owner: Owner,
    talk: Conversation,
    said: Sequence[EntryRow],
    compacted: Sequence[Compacted],
    now: Timestamp,
    *,
    exact: bool,
) -> None:
    """Make these the rows of a conversation. `exact`: the files say all that was stored; else rows that they do not
    tell stay as they are, and so does where and when the conversation took place."""
    place = _place(tx, owner, talk, said)
    standing = replace(talk, source_file=place)
    _put_conversation(tx, owner, standing, now, exact)
    _put_messages(tx, owner, standing, said, exact)
    for each in compacted:
        here = place if each.source_file == talk.source_file else each.source_file
        _put_compaction(tx, owner, replace(each, source_file=here), exact)


def _place(tx: Transaction, owner: Owner, talk: Conversation, said: Sequence[EntryRow]) -> str:
    """The agent's file that most of the messages stand in; it may have moved since the canonical files were written."""
    found = entries.find(tx, FileKey(owner, talk.source, ""), [row.uuid for row in said])
    files = Counter(each.source_file for each in found.values())
    return max(files, key=lambda file: (files[file], file == talk.source_file), default=talk.source_file)


def _put_conversation(tx: Transaction, owner: Owner, talk: Conversation, now: Timestamp, exact: bool) -> None:
    fields = ("session_key", "source_file", *TALK)
    names: dict[str, Any] = {**owner.names(), **{name: getattr(talk, name) for name in fields}, "now": now}
    select = f"SELECT id, status_reason FROM memory_conversations WHERE {_OWN} AND"
    group = tx.rows(f"{select} session_key = :session_key ORDER BY last_message_at DESC, id", names) or tx.rows(
        f"{select} source = :source AND source_file = :source_file AND session_id = :session_id"
        " AND first_message_at = :first_message_at",
        names,
    )
    if not group:
        conversations.insert(tx, owner, [talk], now)
        return
    number, before = group[0]
    if reason(before) == reason(talk.status_reason):
        names["status_reason"] = before
    changes = (
        "session_key = :session_key, project = :project, project_id = :project_id, branch = :branch, user_id = :user"
    )
    if exact and len(group) == 1:
        changes = f"session_key = :session_key, source_file = :source_file, {_TALK}"
    sql = f"UPDATE memory_conversations SET updated_at = :now, {changes} WHERE {_OWN} AND id = :id"
    tx.run(sql, names | {"id": number})


def _put_messages(tx: Transaction, owner: Owner, talk: Conversation, said: Sequence[EntryRow], exact: bool) -> None:
    told = {row.uuid: row for row in said}
    members = {row[0]: row for row in sums.load(tx, owner, [talk.session_key])[talk.session_key].messages}
    strangers = members.keys() - told.keys()
    standing = entries.find(tx, FileKey(owner, talk.source, ""), list(told))
    near = (0, 0)  # an entry that is missing stands behind the one before it
    for uuid, row in told.items():
        here = row._replace(source_file=talk.source_file)
        if held := standing.get(uuid):
            near = (held.generation, held.line_offset)
            known = members.get(uuid)
            is_right = known == tuple(getattr(row, name) for name in SAID)
            if not is_right and (exact or (known and not _is_redacted(known[SAID.index("content")], row.content))):
                _overwrite(tx, here._replace(source_file=held.source_file) if known else here, row.source, uuid)
        elif exact and (twin := _twin(tx, here, strangers)):
            _overwrite(tx, here, *twin)
            strangers.discard(twin[1])
        else:
            entries.insert(tx, [here._replace(generation=near[0], line_offset=near[1])])
    if exact:
        gone = [{**owner.names(), "source": talk.source, "uuid": uuid} for uuid in strangers]
        tx.run_many(f"UPDATE memory_transcript_entries SET withdrawn = 1 WHERE {_OWN} AND {_ENTRY}", gone)


def _is_redacted(text: str, before: str) -> bool:
    """Has more been taken out of the text? Then newer rules judged it than those that its file was written by."""
    return text.count(_MARK) > before.count(_MARK)


def _twin(tx: Transaction, row: EntryRow, strangers: Collection[str]) -> tuple[str, str] | None:
    """(source, uuid) of the entry that this one became when its name was changed."""
    rows = tx.rows(
        f"SELECT source, entry_uuid, content FROM memory_transcript_entries WHERE {_OWN} AND source_file = :source_file"
        " AND timestamp = :timestamp AND session_id = :session_id AND role = :role ORDER BY id",
        row._asdict(),
    )
    same = ((source, uuid) for source, uuid, content in rows if clean(content) == row.content)
    return next(
        (each for each in same if each[1] == row.uuid or (each[0] == row.source and each[1] in strangers)), None
    )


def _overwrite(tx: Transaction, row: EntryRow, source: str, uuid: str) -> None:
    """Make the entry with this name that row. Its text stays where a file would hold the same."""
    names = {**row._asdict(), "was": source, "named": uuid}
    where = f"{_OWN} AND source = :was AND entry_uuid = :named"
    ((content, authors),) = tx.rows(f"SELECT content, authors FROM memory_transcript_entries WHERE {where}", names)
    if as_written(content, authors) == (row.content, row.authors):
        names |= {"content": content, "authors": authors}
    tx.run(
        f"UPDATE memory_transcript_entries SET source = :source, source_file = :source_file, session_id = :session_id,"
        f" withdrawn = 0, {_SET} WHERE {where}",
        names,
    )


def _put_compaction(tx: Transaction, owner: Owner, each: Compacted, exact: bool) -> None:
    names = {**owner.names(), **asdict(each)}
    found = tx.rows(
        f"SELECT source, compaction_uuid, summary FROM memory_compactions s WHERE {_OWN} AND ((source = :source"
        " AND compaction_uuid = :uuid) OR (session_id = :session_id AND timestamp = :timestamp AND NOT EXISTS (SELECT 1"
        " FROM memory_artifacts x WHERE x.tenant = s.tenant AND x.agent_id = s.agent_id AND x.harness = s.source"
        " AND x.source_node_id = s.compaction_uuid AND x.source_node_id <> '')))",
        names,
    )
    own = [row for row in found if row[:2] == (each.source, each.uuid)]
    twins = [row for row in found if clean(row[2]) == each.summary and (row[0] == each.source or row[1] == each.uuid)]
    if not (own or twins):
        compactions.save(tx, owner, [each])
        return
    source, uuid, summary = (own or twins)[0]
    stays = clean(summary) == each.summary or (not exact and _is_redacted(summary, each.summary))
    names |= {"was": source, "named": uuid, "summary": summary if stays else each.summary}
    tx.run(
        "UPDATE memory_compactions SET source = :source, compaction_uuid = :uuid, session_id = :session_id,"
        " source_file = :source_file, timestamp = :timestamp, summary = :summary"
        f" WHERE {_OWN} AND source = :was AND compaction_uuid = :named",
        names,
    )


def drop_strays(tx: Transaction, owner: Owner, row: Stage1, stated: Iterable[Remembered]) -> None:
    """What a conversation says and stands under a key that there is none with: its key was changed."""
    tx.run(
        f"DELETE FROM memory_stage1 AS s WHERE {_OWN} AND source = :source AND session_id = :session"
        f" AND first_message_at = :first{_NOBODYS}",
        {**owner.names(), "source": row.source, "session": row.session_id, "first": row.first_message_at},
    )
    told = {(each.id, each.revision, uuid) for each in stated for _, uuid in each.sources}
    sql = f"SELECT memory_id, revision, entry_uuid, session_key FROM memory_sources s WHERE {_OWN}{_NOBODYS}"
    rows = rows_of(tx, f"{sql} AND memory_id IN ({{among}})", owner.names(), sorted({name for name, _, _ in told}))
    memories.replace_sessions(tx, owner, {key: () for *name, key in rows if tuple(name) in told})
