"""What a source is: a pure fold over the lines of one agent's transcripts.

    fold(state, line, offset) -> changes

`state` is a small msgspec struct that the fold updates in place; it is saved as JSON with the file's offset, so that
reading may stop and go on after any complete line, in another process, with equal results. A fold touches neither
files nor the database and knows no clock. Text leaves it through `clean`, so that no secret and no injected memory
block is in an entry or in a saved state.

A change is an Entry (added; or amended, when its uuid was given before), a Withdrawn or Restored one, or a
Compaction. A line that is no record of the format raises Malformed before the state was touched; one that is a record
without a message for us gives no change.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePath
from typing import Any, TypeVar

import msgspec

from recollect.authors import coded, judged, written
from recollect.blocks import strip_blocks
from recollect.projects.paths import stored
from recollect.redact import redact
from recollect.types import Author, Entry, Event, Happened, Role, Timestamp, parse_timestamp, timestamp


class Malformed(ValueError):
    """The line is no record of this format; the message says why."""


@dataclass(frozen=True, slots=True)
class Withdrawn:
    """The agent took an entry back (a rollback, an abandoned branch)."""

    uuid: str


@dataclass(frozen=True, slots=True)
class Restored:
    """A withdrawn entry is back (the agent returned to a branch)."""

    uuid: str


@dataclass(frozen=True, slots=True)
class Compaction:
    """The agent replaced its history by a summary. Not an entry: nobody said it."""

    uuid: str
    session_id: str
    summary: str  # cleaned; may be empty when the format keeps it to itself
    timestamp: Timestamp
    line_offset: int


Change = Entry | Withdrawn | Restored | Compaction
NOTHING: tuple[Change, ...] = ()


class State(msgspec.Struct, kw_only=True):
    """What every fold remembers; sources derive from it."""

    session_id: str = ""  # of the file, until a record says otherwise
    last_timestamp: str = ""
    fork_of: str = ""  # session this file was forked from, if its leading run must be compared with it
    opened: list[OpenMessage] = []  # assistant messages that may still grow, in a source whose files may be forks
    excluded: bool = False  # the whole file is out: a sub-agent's thread
    occurrences: dict[str, int] = {}  # digests seen at last_timestamp, for `content_id`


@dataclass(frozen=True, slots=True)
class Source:
    """One agent's format. `sources/<name>.py` defines one as SOURCE; nothing else needs to know it."""

    name: str
    begin: Callable[[PurePath], Any]  # file key → fresh state
    state_type: type[State]
    fold: Callable[[Any, bytes, int], Sequence[Change]]  # (state, line, byte offset) → changes
    recognises: Callable[[Sequence[bytes]], bool]  # the first lines of a file → is it this format?
    default_roots: Callable[[Mapping[str, str]], list[Path]]  # environment → folders it writes to
    root_of: Callable[[Path], Path]  # a file → the folder its key is relative to
    wants: Callable[[PurePath], bool] = lambda key: True  # file key → may it hold a transcript of the main agent?
    folder_of: Callable[[bytes], str] = lambda line: ""  # a line → the working directory that it names, if it does
    tells: frozenset[Happened] = frozenset()  # events that its transcripts have


_Record = TypeVar("_Record")

UNDECODABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)  # what a decoder may raise on any bytes


def decode(decoder: msgspec.json.Decoder[_Record], line: bytes | msgspec.Raw) -> _Record:
    try:
        return decoder.decode(line)
    except UNDECODABLE as error:
        raise Malformed(str(error)) from None


def as_text(value: object) -> str:
    """A name or an id as it may be stored; empty when it is no text."""
    if not isinstance(value, str):
        return ""
    return value.replace("\0", "") if "\0" in value else value


def session_name(value: object) -> str:
    """The id of a session as it may be stored; empty when it is no text."""
    return stored(as_text(value))


def clean(text: str) -> str:
    """Text as it may be stored: no injected block, no secret, no NUL, no white space around it."""
    if "\0" in text:
        text = text.replace("\0", "")
    return redact(strip_blocks(text)).strip()


Pieces = Sequence[tuple[Author, str]]
"""Texts of a record with who wrote each."""


def authored(pieces: Pieces) -> tuple[str, str]:
    """The words of a person's message as they may be stored, and who wrote which part of them."""
    told = [(author, text) for author, text in pieces if text]
    text = clean("\n\n".join(text for _, text in told))
    if all(author is Author.TYPED for author, _ in told):
        return text, written(text)
    parts = [(author, piece) for author, words in told if (piece := clean(words))]
    if "\n\n".join(piece for _, piece in parts) != text:  # a secret went over a border
        return text, coded([(Author.PASTED, len(text))])
    runs: list[tuple[Author, int]] = []
    for author, piece in parts:
        runs += [(author, 2)] if runs else []
        runs += judged(piece) if author is Author.TYPED else [(author, len(piece))]
    return text, coded(runs)


def read_time(value: str | float | None, state: State) -> Timestamp:
    """The record's own time; the last one seen when it has none. Malformed when there never was one."""
    try:
        if isinstance(value, str):
            found = parse_timestamp(value)
        elif isinstance(value, int | float):
            found = from_epoch_ms(value)
        else:
            found = Timestamp(state.last_timestamp)
    except (ValueError, OverflowError) as error:
        raise Malformed(f"not a time: {value!r:.40}") from error
    if not found:
        raise Malformed("the record has no timestamp")
    return found


def from_epoch_ms(value: float) -> Timestamp:
    try:
        return timestamp(datetime.fromtimestamp(value / 1000, UTC))
    except (OSError, OverflowError) as error:
        raise ValueError(str(error)) from error


def content_id(
    state: State, source: str, session_id: str, at: Timestamp, role: str, raw: str | bytes | msgspec.Raw
) -> str:
    """Identity of a message without a native id: equal wherever the same record stands, also in a copy of the file.

    Two equal messages at one timestamp are told apart by their number in that run, which needs no more state than
    the run itself.
    """
    if at != state.last_timestamp:
        state.occurrences = {}
    place = "\x1f".join((source, session_id, at, role, "")).encode(errors="replace")
    said = raw.encode(errors="replace") if isinstance(raw, str) else raw
    digest = hashlib.sha256(b"".join((place, said))).hexdigest()[:32]
    number = state.occurrences.get(digest, 0)
    state.occurrences[digest] = number + 1
    return f"h-{digest}" if number == 0 else f"h-{digest}-{number}"


def bounded(identity: str) -> str:
    """An id as the transcript has it, or a hash of one that no index would take."""
    if len(identity) <= 128:
        return identity
    return "h-" + hashlib.sha256(identity.encode(errors="replace")).hexdigest()[:32]


def bounded_folder(cwd: str) -> str:
    """A folder as the transcript has it; of one that no index would take the beginning, which tells what it lies in."""
    return cwd if len(cwd) <= 512 else f"{cwd[:476]}-{bounded(cwd)}"


class OpenTool(msgspec.Struct):
    """A tool call whose result has not been seen."""

    call_id: str
    line: str  # its summary
    failed: bool = False
    events: tuple[Event, ...] = ()  # what it tells, if it did not fail


class OpenMessage(msgspec.Struct, kw_only=True):
    """An assistant message that later lines may still add to. Holds cleaned text only."""

    uuid: str
    session_id: str
    timestamp: str
    line_offset: int
    cwd: str = ""
    branch: str = ""
    remote: str = ""
    texts: list[str] = []
    tools: list[OpenTool] = []
    names: list[str] = []
    events: tuple[Event, ...] = ()  # what happened to it: it was interrupted, a call was refused

    def entry(self) -> Entry:
        content = "\n\n".join(self.texts)
        authors = f"agent:{len(content)}" if content else ""
        if self.tools:
            lines = "\n".join([tool.line + " (failed)" if tool.failed else tool.line for tool in self.tools])
            content = f"{content}\n\n{lines}" if content else lines
            between = len(content) - len(lines)
            authors = f"agent:{between},tool:{len(lines)}" if between else f"tool:{len(lines)}"
        done = tuple([event for tool in self.tools if not tool.failed for event in tool.events])
        return Entry(
            self.uuid,
            self.session_id,
            Role.ASSISTANT,
            content,
            Timestamp(self.timestamp),
            self.line_offset,
            ",".join(self.names),
            self.cwd,
            self.branch,
            self.remote,
            authors=authors,
            events=self.events + done,
        )


def without_secrets(state: State) -> State:
    """The state as it may be stored. Its texts are clean; the names of folders, branches and tools are raw, as switches
    need them."""
    if not any(map(_changes, (state, *state.opened, *getattr(state, "open", {}).values()))):
        return state
    state = deepcopy(state)
    for each in (state, *state.opened, *getattr(state, "open", {}).values()):
        for name, value in _changes(each):
            setattr(each, name, value)
    return state


def _changes(part: msgspec.Struct) -> list[tuple[str, Any]]:
    """Fields of a state, or of a message that is open, that hold a secret, and what they may hold."""
    found: list[tuple[str, Any]] = []
    for name in ("cwd", "branch", "remote"):
        raw = getattr(part, name, "")
        if raw and (kept := stored(raw) if name == "cwd" else redact(raw)) != raw:
            found.append((name, kept))
    names = getattr(part, "names", [])
    if names and (clean := [redact(each) for each in names]) != names:
        found.append(("names", clean))
    return found
