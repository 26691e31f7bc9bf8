"""Values that travel the path. No behaviour beyond what a value knows about itself; imports nothing of ours.

Time is kept as `Timestamp`: ISO-8601 text in UTC with milliseconds and a `Z`. Its order as text is its order in
time, both databases store it as it is, and the hot path never converts it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, NewType

import msgspec

Timestamp = NewType("Timestamp", str)

Clock = Callable[[], datetime]
"""Gives the present as an aware UTC datetime. Passed in everywhere, so that tests own the time."""


def utc_now() -> datetime:
    return datetime.now(UTC)


def timestamp(moment: datetime) -> Timestamp:
    """Aware datetime → canonical text. Precision below a millisecond is cut off, never rounded up."""
    return Timestamp(moment.astimezone(UTC).isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z")


def moment(text: Timestamp) -> datetime:
    return datetime.fromisoformat(text)


def parse_timestamp(text: str) -> Timestamp:
    """Any ISO-8601 text → canonical text; a time without a zone is UTC. ValueError when it is no time at all."""
    parsed = datetime.fromisoformat(text)
    if len(text) == 24 and text[23] == "Z" and text[10] == "T" and text[19] == "." and text[7] == "-":
        return Timestamp(text)
    if parsed.tzinfo is None:
        parsed = parsed.replace(tzinfo=UTC)
    try:
        return timestamp(parsed)
    except OverflowError as error:  # year 1 or 9999 moved across the edge by its zone
        raise ValueError(str(error)) from error


class Role(StrEnum):
    USER = "user"
    ASSISTANT = "assistant"


class FileStatus(StrEnum):
    IDLE = "idle"  # processed up to last_processed_offset
    INGESTING = "ingesting"  # being read; after a crash: to be rolled back to last_processed_offset


class ConversationStatus(StrEnum):
    ACTIVE = "active"  # may still grow
    READY = "ready"  # paused longer than the gap, waits for extraction
    PROCESSING = "processing"  # an extraction job holds it
    ARCHIVED = "archived"  # extracted
    SKIPPED = "skipped"  # too short, or nothing worth keeping


SETTLED = (ConversationStatus.ARCHIVED, ConversationStatus.SKIPPED)  # nothing is due


class JobStatus(StrEnum):
    PENDING = "pending"  # waits for a worker
    RUNNING = "running"  # leased
    COOLING_DOWN = "cooling_down"  # done, and not again before its time
    BACKING_OFF = "backing_off"  # failed, will be tried again
    PAUSED = "paused"  # held by a cap
    SUCCEEDED = "succeeded"
    SUCCEEDED_NO_OUTPUT = "succeeded_no_output"  # a valid run that found nothing
    FAILED = "failed"  # permanent: the input is bad
    DEAD = "dead"  # out of attempts


def project_name(project_id: str) -> str:
    """As people call it: a repository without a remote by its folder, not by where git keeps it."""
    return project_id.removesuffix("/.git") or project_id


@dataclass(frozen=True, slots=True)
class Owner:
    """Whose memory it is: the first two columns of every key."""

    tenant: str = "default"
    agent_id: str = "default"

    def names(self) -> dict[str, Any]:
        """To bind: every statement names them."""
        return {"tenant": self.tenant, "agent_id": self.agent_id}


class Author(StrEnum):
    """Who wrote a part of a message."""

    TYPED = "typed"  # by the person
    CHOSEN = "chosen"  # by the person, in answer to the agent: an answer, words behind a rejection
    PASTED = "pasted"  # text of others that the person put in, and whatever nobody knows the author of
    CLIENT = "client"  # by the agent's program: a plan that it hands over, a notification
    AGENT = "agent"
    TOOL = "tool"  # a line about a tool call


PERSON = (Author.TYPED, Author.CHOSEN)  # whose words may bind


@dataclass(frozen=True, slots=True)
class Part:
    """A run of a message's text by one author."""

    author: Author
    text: str


class Happened(StrEnum):
    """What a transcript says by its structure."""

    ANSWER = "answer"  # question → answer
    REJECTED = "rejected"  # a tool call that the person refused, with what they said
    INTERRUPT = "interrupt"
    PLAN = "plan"  # approved
    TASK = "task"  # opened, or still open
    DONE = "done"  # a task
    COMMIT = "commit"  # its message
    PULL_REQUEST = "pull_request"  # its title
    RULES = "rules"  # a file of rules was edited
    TITLE = "title"  # of the session, by its client


class Event(msgspec.Struct, frozen=True, array_like=True):
    """Something that a transcript tells without a sentence."""

    kind: Happened
    text: str = ""  # redacted


class Entry(msgspec.Struct, frozen=True, gc=False):
    """One user or assistant message, as a source understood it. A struct, not a dataclass: made a million times."""

    uuid: str  # native id, else "h-" and a hash
    session_id: str  # the record's own
    role: Role
    content: str  # text, then a line per tool use
    timestamp: Timestamp
    line_offset: int  # byte offset of the (first) line it came from
    tool_names: str = ""  # comma-separated, in order of first use
    cwd: str = ""
    branch: str = ""
    remote: str = ""  # the repository's remote, where the transcript records it
    project: str = ""  # the project's id, where the transcript says it outright
    user: str = ""  # of a chat: whose words these are; empty: the owner's
    authors: str = ""  # of its content, as `Message.parts` reads them
    events: tuple[Event, ...] = ()


@dataclass(frozen=True, slots=True)
class Conversation:
    """A run of entries of one session in one file without a pause longer than the gap."""

    id: int
    session_id: str
    session_key: str  # {session_id}@{first_message_at}: stable across re-imports
    source: str
    source_file: str
    project: str  # the working directory of its first entry
    project_id: str
    branch: str
    first_message_at: Timestamp
    last_message_at: Timestamp
    entry_count: int
    status: ConversationStatus
    status_reason: str  # why it was skipped or reopened; empty otherwise
    user: str = ""  # of a chat; empty: the owner


@dataclass(frozen=True, slots=True)
class Message:
    """An entry, as extraction and artifacts see it."""

    uuid: str
    role: Role
    text: str
    timestamp: str = ""
    tools: str = ""  # names, comma-separated
    cwd: str | None = None  # None: that of the conversation; so the next two
    project_id: str | None = None
    branch: str | None = None
    authors: str = ""  # "typed:12,pasted:30": how many characters each wrote; empty: nobody knows
    events: tuple[Event, ...] = ()

    @property
    def parts(self) -> tuple[Part, ...]:
        """Its text by author. Where that is not known, no word of it is the person's."""
        found: list[Part] = []
        at = 0
        for run in filter(None, self.authors.split(",")):
            name, _, length = run.partition(":")
            found.append(Part(Author(name), self.text[at : at + int(length)]))
            at += int(length)
        if at == len(self.text):
            return tuple(found)
        return (Part(Author.PASTED if self.role is Role.USER else Author.AGENT, self.text),)

    @property
    def told(self) -> str:
        """Its text, and what it tells without a sentence."""
        return "\n".join([self.text, *(each.text for each in self.events)])

    def said(self, *authors: Author) -> str:
        """What these wrote of it."""
        return "\n\n".join(text for part in self.parts if part.author in authors and (text := part.text.strip()))

    def rewritten(self, change: Callable[[str], str]) -> Message:
        """With another text, by the same authors. Where a change goes across the border of two parts, nobody knows."""
        text = change(self.text)
        authors, before, at = [], "", 0
        for part in self.parts if text != self.text else ():
            before += part.text
            prefix = change(before)
            end = len(text) if len(before) == len(self.text) else len(prefix)
            authors.append(f"{part.author}:{end - at}")
            if not text.startswith(prefix) or end < at:
                return replace(self, text=text, authors="")
            at = end
        return replace(self, text=text, authors=",".join(authors) if text != self.text else self.authors)

    def between(self, start: int, end: int) -> Message:
        """A piece of its text."""
        runs, at = [], 0
        for part in self.parts:
            length = min(at + len(part.text), end) - max(at, start)
            runs += [f"{part.author}:{length}"] if length > 0 else []
            at += len(part.text)
        return replace(self, text=self.text[start:end], authors=",".join(runs), events=() if start else self.events)


class MemoryKind(StrEnum):
    PREFERENCE = "preference"
    DECISION = "decision"
    FACT = "fact"
    LESSON = "lesson"
    PROCEDURE = "procedure"
    CONSTRAINT = "constraint"
    OPEN_THREAD = "open_thread"


class Severity(StrEnum):
    MUST = "must"
    PREFER = "prefer"
    ALLOW = "allow"
    AVOID = "avoid"
    DO_NOT = "do_not"
    NONE = "none"


BINDING = (Severity.MUST, Severity.DO_NOT)  # what may never be left out or broken
STRICT = (*BINDING, Severity.AVOID)  # what only a person's own words may demand


class Scope(StrEnum):
    USER = "user"  # only when the user said so
    PROJECT = "project"
    CONVERSATION = "conversation"

    def id(self, project_id: str, session_key: str) -> str:
        """What tells one scope of this kind from another."""
        return {Scope.USER: "", Scope.PROJECT: project_id, Scope.CONVERSATION: session_key}[self]


class Hand(StrEnum):
    """Who wrote something into memory."""

    PERSON = "person"  # by a command or the Python API
    AGENT = "agent"  # over MCP, or by a command in an agent's shell
    PIPELINE = "pipeline"  # read in a conversation


class Trust(StrEnum):
    """How far the words of a memory are trusted: by the weakest link of where they come from."""

    SAID = "said"  # typed by the person
    CHOSEN = "chosen"  # the person's answer to, approval or correction of what the agent wrote
    FOUND = "found"  # by the agent
    NOTED = "noted"  # an agent wrote it through a tool
    PASSED_ON = "passed_on"  # text of others that the person pasted, and made theirs


MAY_BIND = (Trust.SAID, Trust.CHOSEN)  # what alone may demand something, or hold in every project


@dataclass(frozen=True, slots=True)
class Statement:
    """What extraction found: a memory before it has an identity."""

    kind: MemoryKind
    text: str
    severity: Severity = Severity.NONE
    scope: Scope = Scope.PROJECT
    entries: tuple[str, ...] = ()  # uuids of the entries that say so
    exact: bool = False  # in a person's own words: one with nearly the same words is another
    target: str = ""  # the memory that a person speaks of by its id
    revision: int = 0  # of the target, that it is
    pinned: bool = False
    occasions: tuple[str, ...] = ()  # on which it matters
    hand: Hand = Hand.PIPELINE
    trust: Trust = Trust.SAID
    near: str = ""  # the memory that its author says it repeats or replaces
    replaces: bool = False  # it takes the place of that memory
    may_overrule: bool = True  # False: it changes nothing that binds or is pinned


@dataclass(frozen=True, slots=True)
class Remembered:
    """One revision of a memory."""

    id: str
    revision: int
    kind: MemoryKind
    text: str
    severity: Severity
    scope: Scope
    scope_id: str  # project_id or session_key; empty for the user
    created_at: Timestamp  # when the memory was first seen
    valid_from: Timestamp  # when this revision was said
    sources: tuple[tuple[str, str], ...] = ()  # (session_key, entry uuid)
    pinned: bool = False  # by a person; later revisions keep it
    occasions: tuple[str, ...] = ()  # on which it matters, as its sources tell; only ever searched
    user: str = ""  # of a chat, to whom alone it belongs; empty: the owner
    loosened: bool = False  # its file calls it binding or user-wide, and no source of it may say so
    trust: Trust = Trust.FOUND


@dataclass(frozen=True, slots=True)
class Stage1:
    """What phase 1 made of a conversation."""

    session_key: str
    source: str
    session_id: str
    project: str
    project_id: str
    first_message_at: Timestamp
    source_updated_at: Timestamp  # the last message that was extracted
    entry_count: int
    snapshot: str  # hash of the entries that were extracted
    generated_at: Timestamp
    strategy: str
    parts: int
    raw_memory: str
    rollout_summary: str
    rollout_slug: str
    memory_sentence: str
    user: str = ""  # of a chat; empty: the owner
