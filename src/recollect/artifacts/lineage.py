"""Where a record comes from: memory → conversation → canonical files → messages → the line of the agent's transcript.

Pure: rows and places in, values out. What they hold is what `recollect show` and `recollect timeline` tell; nothing is
left out silently: a message whose row is gone is still named by the source that cites it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby, pairwise
from typing import Any

from recollect import note
from recollect.artifacts.names import Kind
from recollect.extract.values import left_of
from recollect.store import memories
from recollect.store.artifacts import Indexed
from recollect.store.entries import Line
from recollect.types import Conversation, Remembered, Timestamp


class Type(StrEnum):
    MEMORY = "memory"
    CONVERSATION = "conversation"
    SESSION = "session"
    ENTRY = "entry"
    ARTIFACT = "artifact"


@dataclass(frozen=True, slots=True)
class Origin:
    """A line of the agent's own transcript."""

    file: str  # where it was last seen
    offset: int  # byte at which the line begins
    line: int | None  # its number; None where the file is gone, compressed, or another one by now


@dataclass(frozen=True, slots=True)
class Said:
    """A message, and where it stands."""

    uuid: str
    session_id: str
    role: str
    timestamp: Timestamp
    text: str
    path: str  # of the transcript among the canonical files; empty: not written yet
    line: int | None  # there
    origin: Origin


@dataclass(frozen=True, slots=True)
class File:
    """A canonical file of a conversation."""

    kind: str
    path: str
    captured_at: Timestamp
    current: bool  # false: a newer set took its place
    sha256: str


@dataclass(frozen=True, slots=True)
class Talk:
    """A conversation."""

    session_key: str
    session_id: str
    source: str
    source_file: str
    project: str
    project_id: str
    branch: str
    user: str  # of a chat; empty: the owner
    first_message_at: Timestamp
    last_message_at: Timestamp
    messages: int
    status: str
    sentence: str  # empty: not processed yet
    done: str  # what was done in it, and what was left at its end; empty where nothing was
    left: str
    files: tuple[File, ...]
    entries: tuple[Said, ...]  # those that the record is about

    def path(self, kind: Kind) -> str:
        """Of the current file of this kind; empty when there is none."""
        return next((each.path for each in self.files if each.kind == kind and each.current), "")


@dataclass(frozen=True, slots=True)
class Revision:
    """What a memory said at a time."""

    id: str
    revision: int
    kind: str
    text: str
    severity: str
    scope: str
    scope_id: str
    user: str  # of a chat, whose memory it is; empty: the owner
    created_at: Timestamp
    valid_from: Timestamp
    pinned: bool
    occasions: tuple[str, ...]  # when it matters
    current: bool  # holds now
    sources: tuple[Mapping[str, str], ...]  # session_key and entry_uuid
    hand: str  # person, agent or pipeline: who stands behind it
    trust: str  # said, chosen, found, noted or passed_on: how far its words are trusted


@dataclass(frozen=True, slots=True)
class Shown:
    """A record with its lineage."""

    type: Type
    id: str
    record: Mapping[str, Any]  # what it is, by its type
    revisions: tuple[Revision, ...]
    conversations: tuple[Talk, ...]


@dataclass(frozen=True, slots=True)
class Learnt:
    revision: Revision
    session_key: str  # of the conversation that said so
    what: str  # learnt | corrected | pinned | unpinned


@dataclass(frozen=True, slots=True)
class Day:
    day: str  # UTC
    conversations: tuple[Talk, ...]  # newest first
    learnt: tuple[Learnt, ...]  # the same


def revisions(held: Iterable[Remembered]) -> tuple[Revision, ...]:
    """Newest first within each memory."""
    found = sorted(held, key=lambda each: (each.id, each.valid_from, each.revision))
    holding = {(each.id, each.revision) for each in memories.current(found)}
    return tuple(
        Revision(
            id=each.id,
            revision=each.revision,
            kind=str(each.kind),
            text=each.text,
            severity=str(each.severity),
            scope=str(each.scope),
            scope_id=each.scope_id,
            user=each.user,
            created_at=each.created_at,
            valid_from=each.valid_from,
            pinned=each.pinned,
            occasions=each.occasions,
            current=(each.id, each.revision) in holding,
            sources=tuple({"session_key": key, "entry_uuid": uuid} for key, uuid in each.sources),
            hand=str(note.hand(each)),
            trust=str(each.trust),
        )
        for _, members in groupby(found, key=lambda each: each.id)
        for each in reversed(list(members))
    )


def said(lines: Iterable[Line], written: Mapping[str, tuple[str, int]], origins: Mapping[str, Origin]) -> list[Said]:
    """`written`: uuid → path and line of a canonical transcript; `origins`: uuid → the agent's own."""
    found = []
    for each in lines:
        path, number = written.get(each.uuid, ("", None))
        origin = origins.get(each.uuid) or Origin(each.source_file, each.line_offset, None)
        found.append(Said(each.uuid, each.session_id, each.role, each.timestamp, each.content, path, number, origin))
    return found


def talk(conversation: Conversation, files: Sequence[Indexed], entries: Sequence[Said] = (), summary: str = "") -> Talk:
    """`files` and `entries` may be those of others, too; `summary` tells its outcome."""
    done, left = left_of(summary)
    mine = [each for each in files if each.session_key == conversation.session_key]
    named = sorted(mine, key=lambda each: each.source_kind == Kind.COMPACTION)  # it tells what came before
    first, last = conversation.first_message_at, conversation.last_message_at
    return Talk(
        session_key=conversation.session_key,
        session_id=conversation.session_id,
        source=conversation.source,
        source_file=conversation.source_file,
        project=conversation.project,
        project_id=conversation.project_id,
        branch=conversation.branch,
        user=conversation.user,
        first_message_at=first,
        last_message_at=last,
        messages=conversation.entry_count,
        status=str(conversation.status),
        sentence=next((each.memory_sentence for each in named if each.is_current and each.memory_sentence), ""),
        done=done,
        left=left,
        files=tuple(
            File(each.source_kind, each.source_path, each.captured_at, bool(each.is_current), each.source_sha256)
            for each in mine
        ),
        entries=tuple(
            each for each in entries if each.session_id == conversation.session_id and first <= each.timestamp <= last
        ),
    )


def days(talks: Iterable[Talk], held: Iterable[Remembered], since: str = "", until: str | None = None) -> list[Day]:
    """By UTC day, newest first: a conversation on the day of its last message, a revision on the day it was said."""
    shown = sorted(talks, key=lambda each: (each.last_message_at, each.session_key), reverse=True)
    keys = {each.session_key for each in shown}
    told = revisions(held)
    before = {(each.id, each.revision): older for each, older in pairwise(told) if each.id == older.id}
    learnt = [
        Learnt(each, source, _what(each, before.get((each.id, each.revision))))
        for each in told
        if since <= each.valid_from and (until is None or each.valid_from < until)
        if (source := next((one["session_key"] for one in each.sources if one["session_key"] in keys), ""))
    ]
    learnt.sort(key=lambda each: (each.revision.valid_from, each.revision.id), reverse=True)
    found: defaultdict[str, tuple[list[Talk], list[Learnt]]] = defaultdict(lambda: ([], []))
    for one in shown:
        found[one.last_message_at[:10]][0].append(one)
    for each in learnt:
        found[each.revision.valid_from[:10]][1].append(each)
    return [Day(day, tuple(found[day][0]), tuple(found[day][1])) for day in sorted(found, reverse=True)]


def _what(revision: Revision, before: Revision | None) -> str:
    """What came with a revision, seen from the one before it."""
    if before is None:
        return "learnt"
    if revision.pinned != before.pinned:
        return "pinned" if revision.pinned else "unpinned"
    return "corrected"
