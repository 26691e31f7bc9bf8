"""Pi sessions: `~/.pi/agent/sessions/--<folder>--/<time>_<session>.jsonl`, versions 1 to 3.

The payload trusted here: a header `{type: session, id, cwd}`, then records; a `message` record has a `message` with
`role` and `content` (text, or a list of blocks). Kept are the user's text and shell commands, and the assistant's text
with a line per tool call. Left out: tool results, thinking, what extensions put in, files named on the command line,
shell commands that the user kept from the model (`!!`).

From version 2 on the records are a tree: `id` and `parentId`, unique only within the file. What counts is the path from
the root to the message that was written last. A message that grows elsewhere abandons the branch it left: its entries
are withdrawn, and restored when the talk returns to them. The state holds the tree, a few bytes for a node, and no text
but that of the message whose tool results are still to come.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path, PurePath
from typing import Any

import msgspec
from msgspec import UNSET, Raw, UnsetType, field

from recollect.authors import written
from recollect.ingest.sources.base import (
    NOTHING,
    Change,
    Compaction,
    Malformed,
    OpenMessage,
    OpenTool,
    Restored,
    Source,
    State,
    Withdrawn,
    as_text,
    clean,
    content_id,
    decode,
    read_time,
    session_name,
)
from recollect.ingest.sources.events import IN_COMMANDS, told
from recollect.ingest.sources.tags import Wrappers
from recollect.ingest.sources.tools import summarise
from recollect.types import Entry, Role, Timestamp

NAME = "pi"
_MOST_OPEN = 2  # assistant messages that may still wait for tool results


class _Message(msgspec.Struct, rename="camel"):
    role: Any = None
    content: Raw = Raw()
    timestamp: Any = None
    tool_call_id: Any = None
    is_error: Any = None
    command: Any = None
    exclude_from_context: Any = None  # `!!`: the user kept it from the model
    summary: Any = None


class _Record(msgspec.Struct, rename="camel"):
    type: Any = None
    id: Any = None  # text, once `fold` has seen it
    parent_id: Any = UNSET
    timestamp: Any = None
    message: _Message | list[Raw] | str | float | bool | None = None
    summary: Any = None
    cwd: Any = None
    parent_session: Any = None
    branched_from: Any = None  # version 1


class _Block(msgspec.Struct):
    type: Any = None
    text: Any = None
    id: Any = None
    name: Any = None
    arguments: Raw = Raw()


class PiState(State, kw_only=True):
    identified: bool = False  # the header was seen
    cwd: str = ""
    nodes: dict[str, str] = field(default_factory=dict)  # id → "+" if it gave an entry, else "-"; its parent's id
    leaf: str = ""  # the message written last


_records = msgspec.json.Decoder(_Record)
_contents = msgspec.json.Decoder(str | list[_Block | list[Raw] | str | float | bool | None] | None)
_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_TIME = re.compile(r"(\d{4}-\d\d-\d\dT\d\d)-(\d\d)-(\d\d)-(\d{3})Z")


def begin(key: PurePath) -> PiState:
    """Session and time are those in the name until the header says so: that line may be broken."""
    time = _TIME.match(key.name)
    state = PiState(session_id=_session_in(key.name))
    with suppress(Malformed):
        state.last_timestamp = read_time(f"{time[1]}:{time[2]}:{time[3]}.{time[4]}" if time else None, state)
    return state


def _session_in(path: str) -> str:
    """The session id in a file's name or path; an id alone is one too."""
    name = re.split(r"[/\\]", path)[-1].removesuffix(".jsonl")
    found = _ID.findall(name)
    return found[-1] if found else session_name(name.rpartition("_")[2])


def fold(state: PiState, line: bytes, offset: int) -> Sequence[Change]:
    try:
        record = decode(_records, line)
        kind = record.type
        if not isinstance(kind, str):
            raise Malformed("a record without a type")
        record.id = as_text(record.id)
        if kind == "message":
            return _message(state, record, offset)
        if kind == "session":
            return _header(state, record)
    except RecursionError:  # comes from decoding only, which is always done before the state is touched
        raise Malformed("nested too deeply") from None
    if kind == "compaction":
        return _compaction(state, record, record.summary, offset)
    _grow(state, record)
    return NOTHING


def _header(state: PiState, record: _Record) -> Sequence[Change]:
    if state.identified:
        return NOTHING
    state.identified = True
    state.cwd = as_text(record.cwd)
    if not state.nodes:  # else uuids were already given under the id in the file's name
        state.session_id = session_name(record.id) or state.session_id
    if isinstance(record.timestamp, str) and not state.last_timestamp:
        with suppress(Malformed):  # the header is of use without it
            state.last_timestamp = read_time(record.timestamp, state)
    parent = as_text(record.parent_session) or as_text(record.branched_from)
    state.fork_of = _session_in(parent) if parent else ""
    return NOTHING


def _time(state: PiState, record: _Record) -> Timestamp:
    """The record's own time, else that of its message."""
    if type(record.timestamp) is str and record.timestamp:
        return read_time(record.timestamp, state)
    message = record.message
    for value in (record.timestamp, message.timestamp if isinstance(message, _Message) else None):
        if value and type(value) in (str, int, float):
            return read_time(value, state)
    return read_time(None, state)


# The tree


def _grow(state: PiState, record: _Record, *, speaks: bool = False) -> str:
    """Hangs the record into the tree and gives its node, "" when it has no id: version 1 is a plain list."""
    node: str = record.id
    if node and node not in state.nodes:
        state.nodes[node] = ("+" if speaks else "-") + _parent(state, record)
    return node


def _parent(state: PiState, record: _Record) -> str:
    """A parent that is missing stood in a line that could not be read: then the record before is the best."""
    if record.parent_id is None:
        return ""
    if isinstance(record.parent_id, str) and record.parent_id in state.nodes:
        return record.parent_id
    return next(reversed(state.nodes), "")


def _path(state: PiState, node: str) -> list[str]:
    """The nodes from `node` to the root. A parent is always an older node, so there is an end."""
    path = []
    while node:
        path.append(node)
        node = state.nodes[node][1:]
    return path


def _move(state: PiState, node: str) -> list[Change]:
    """The message `node` was written: makes its path the current one."""
    if not node:
        return []
    old, state.leaf = state.leaf, node
    above = state.nodes[node][1:]
    while above and above != old:
        above = state.nodes[above][1:]
    if above == old or not old:
        return []
    before, now = _path(state, old), _path(state, node)[1:]
    left, back = _entries(state, before, set(now)), _entries(state, now, set(before))
    state.opened = [message for message in state.opened if message.uuid not in left]
    return [*map(Withdrawn, left), *map(Restored, back)]


def _entries(state: PiState, path: list[str], shared: set[str]) -> list[str]:
    """The entries on a path, oldest first, but for those that it shares with another."""
    own = [node for node in reversed(path) if node not in shared]
    return [_uuid(state, node) for node in own if state.nodes[node].startswith("+")]


def _uuid(state: PiState, node: str) -> str:
    return f"{state.session_id}:{node}"


# Messages


def _message(state: PiState, record: _Record, offset: int) -> Sequence[Change]:
    message = record.message
    if not isinstance(message, _Message) or not isinstance(message.role, str):
        raise Malformed("a message without a role")
    if record.id in state.nodes:
        return NOTHING  # written twice
    role = message.role
    if role == "toolResult" and message.is_error is not True and not state.nodes and not record.id:
        return NOTHING  # by far the most lines of a version 1 file
    if role == "assistant":
        return _assistant(state, record, message.content, offset)
    if role == "user" or role == "bashExecution":
        return _user(state, record, message, offset)
    if role == "compactionSummary":
        return _compaction(state, record, message.summary, offset)
    changes = _move(state, _grow(state, record))
    if role == "toolResult" and message.is_error is True:
        changes.extend(_failed(state, message.tool_call_id))
    return changes


def _user(state: PiState, record: _Record, message: _Message, offset: int) -> Sequence[Change]:
    if message.role == "bashExecution":
        raw = "" if message.exclude_from_context is True else as_text(message.command)
        text = clean(f"! {raw}") if raw.strip() else ""
    else:
        raw = "\n\n".join(block.text for block in _blocks(message.content) if block.type == "text")
        text = clean(_own_words(raw))
    at = _time(state, record)
    uuid = _identity(state, record, at, Role.USER, raw) if text else ""
    state.last_timestamp = at
    changes = _move(state, _grow(state, record, speaks=bool(text)))
    if text:
        authors = written(text)
        changes.append(Entry(uuid, state.session_id, Role.USER, text, at, offset, cwd=state.cwd, authors=authors))
    return changes


def _assistant(state: PiState, record: _Record, content: Raw, offset: int) -> Sequence[Change]:
    texts: list[str] = []
    lines: list[OpenTool] = []
    names: dict[str, None] = {}
    for block in _blocks(content):
        if block.type == "text":
            if text := clean(block.text):
                texts.append(text)
        elif block.type == "toolCall":
            name = as_text(block.name) or "tool"
            names[name] = None
            call = as_text(block.id)
            lines.append(OpenTool(call, summarise(name, block.arguments), events=told(name, block.arguments)))
    at = _time(state, record)
    said = bool(texts or lines)
    uuid = _identity(state, record, at, Role.ASSISTANT, content) if said else ""
    state.last_timestamp = at
    changes = _move(state, _grow(state, record, speaks=said))
    if not said:
        return changes
    opened = OpenMessage(
        uuid=uuid,
        session_id=state.session_id,
        timestamp=at,
        line_offset=offset,
        cwd=state.cwd,
        texts=texts,
        tools=lines,
        names=list(names),
    )
    if lines:  # without calls there is nothing to come
        state.opened.append(opened)
        del state.opened[:-_MOST_OPEN]
    changes.append(opened.entry())
    return changes


def _identity(state: PiState, record: _Record, at: Timestamp, role: str, raw: str | Raw) -> str:
    return _uuid(state, record.id) if record.id else content_id(state, NAME, state.session_id, at, role, raw)


def _failed(state: PiState, call_id: object) -> Sequence[Change]:
    for message in reversed(state.opened):
        for tool in reversed(message.tools):
            if tool.call_id == call_id and call_id and not tool.failed:
                tool.failed = True
                return [message.entry()]
    return NOTHING


def _compaction(state: PiState, record: _Record, summary: object, offset: int) -> Sequence[Change]:
    if record.id in state.nodes:
        return NOTHING
    at, text = _time(state, record), as_text(summary)
    uuid = _identity(state, record, at, "compaction", text)
    state.last_timestamp = at
    _grow(state, record)
    return [Compaction(uuid, state.session_id, clean(text), at, offset)]


_FILES = Wrappers("file", leading=True, attributes=' name="[^"<>]*"')  # `pi @notes.md`: the file's text, not the user's
_SKILLS = Wrappers("skill", leading=True)
_SKILL = re.compile(r'<skill name="([^"<>]*)"[^<>]*>')


def _own_words(text: str) -> str:
    """The person's part of a message; of a skill its name and what was typed behind it."""
    text = _FILES.without(text).lstrip()
    if (skill := _SKILL.match(text)) is None:
        return text
    own = _SKILLS.without(text) if "</skill>" in text else ""
    return f"/skill:{skill[1]}" + ("\n\n" if own.startswith(">") else " ") + own


def _blocks(content: Raw) -> list[_Block]:
    """Blocks whose text is text. What is no block, or of a kind that we do not know, is passed over."""
    value = decode(_contents, content)
    if not isinstance(value, list):
        return [_Block(type="text", text=value)] if value else []
    return [
        block
        for item in value
        for block in (item if type(item) is _Block else _Block("text", item),)
        if type(block.text) is str or block.type == "toolCall"
    ]


# The files


def folder_of(line: bytes) -> str:
    """The header names it."""
    try:
        record = decode(_records, line)
    except Malformed:
        return ""
    return as_text(record.cwd) if record.type == "session" else ""


def recognises(head: Sequence[bytes]) -> bool:
    for line in head:
        try:
            record = _heads.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            continue
        if record.type == "recollect":
            return False
        if record.payload or record.session_id is not UNSET or record.uuid is not UNSET:
            continue
        dated = isinstance(record.timestamp, str)
        if record.type == "session" and isinstance(record.id, str) and (dated or isinstance(record.cwd, str)):
            return True
        if record.type == "message" and isinstance(record.message, _Message):
            if isinstance(record.message.role, str):
                return True
        elif record.type in ("model_change", "thinking_level_change") and dated:
            return True
    return False


class _Head(_Record, rename="camel"):
    payload: Raw = Raw()
    session_id: Any | UnsetType = UNSET
    uuid: Any | UnsetType = UNSET


_heads = msgspec.json.Decoder(_Head)


def default_roots(environ: Mapping[str, str]) -> list[Path]:
    base = environ.get("PI_CODING_AGENT_DIR")
    home = Path(base) if base else Path(environ.get("HOME") or Path.home()) / ".pi" / "agent"
    return [home / "sessions"]


def root_of(path: Path) -> Path:
    """`<root>/<project folder>/<file>`."""
    return path.parent.parent


SOURCE = Source(
    NAME, begin, PiState, fold, recognises, default_roots, root_of, folder_of=folder_of, tells=frozenset(IN_COMMANDS)
)
