"""Claude Code transcripts: `~/.claude/projects/<folder>/<session>.jsonl`.

The payload trusted here: records with `type`, `uuid`, `sessionId`, `timestamp` and, for `user` and `assistant`, a
`message` with `role` and `content` (text, or a list of blocks). Kept are the user's text and the assistant's text with
a line per tool call. Left out: tool results (they arrive as user records), `isMeta`, `isSidechain` and sub-agent
records, attachments, hook output, API errors, everything that is no message. One assistant message may stand on
several lines with the same `message.id`: it is one entry, with the uuid of its first line.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any

import msgspec

from recollect.ingest.sources.base import (
    NOTHING,
    UNDECODABLE,
    Change,
    Compaction,
    Malformed,
    OpenMessage,
    OpenTool,
    Source,
    State,
    clean,
    content_id,
    decode,
    read_time,
)
from recollect.ingest.sources.tags import inside
from recollect.ingest.sources.tools import summarise
from recollect.types import Entry, Role

NAME = "claude-code"
_MOST_OPEN = 4  # assistant messages that may still wait for lines or tool results


class _Block(msgspec.Struct):
    type: str | None = None
    text: str | None = None
    id: str | None = None
    name: str | None = None
    input: msgspec.Raw = msgspec.Raw()
    tool_use_id: str | None = None
    is_error: bool | None = None


class _Message(msgspec.Struct):
    content: str | list[_Block]
    id: str | None = None


class _Origin(msgspec.Struct):
    kind: str | None = None


class _Record(msgspec.Struct, rename="camel"):
    type: str
    uuid: str | None = None
    session_id: str | None = None
    timestamp: str | float | None = None
    cwd: str | None = None
    git_branch: str | None = None
    agent_id: str | None = None
    is_meta: bool | None = None
    is_sidechain: bool | None = None
    is_compact_summary: bool | None = None
    is_api_error_message: bool | None = None
    origin: _Origin | None = None
    message: _Message | None = None


class _Envelope(msgspec.Struct, rename="camel"):
    """A record of which only the kind is looked at: those that are no message may have any shape inside."""

    type: str
    is_meta: bool | None = None
    is_sidechain: bool | None = None
    agent_id: str | None = None


class _Opened(OpenMessage, kw_only=True):
    lines: list[str] = []  # uuids of the lines it was made of


class ClaudeState(State, kw_only=True):
    open: dict[str, _Opened] = {}  # message.id → the message that may still grow


_records = msgspec.json.Decoder(_Record)
_envelopes = msgspec.json.Decoder(_Envelope)


def begin(key: PurePath) -> ClaudeState:
    return ClaudeState(session_id=key.stem)


def fold(state: ClaudeState, line: bytes, offset: int) -> Sequence[Change]:
    try:
        record = _records.decode(line)
    except UNDECODABLE as error:
        return _not_a_message(line, error)
    kind = record.type
    if kind != "assistant" and kind != "user":
        return NOTHING
    if record.is_meta or record.is_sidechain or record.agent_id or record.is_api_error_message:
        return NOTHING
    if record.origin is not None and record.origin.kind == "task-notification":
        return NOTHING
    message = record.message
    if message is None:
        raise Malformed(f"a {kind} record without a message")
    if kind == "assistant":
        return _assistant(state, record, message, line, offset)
    return _user(state, record, message, offset)


def _not_a_message(line: bytes, error: Exception) -> Sequence[Change]:
    """Nothing to complain about when the record is one that would be left out anyway."""
    envelope = decode(_envelopes, line)
    if envelope.type in ("user", "assistant") and not (envelope.is_meta or envelope.is_sidechain or envelope.agent_id):
        raise Malformed(str(error))
    return NOTHING


def _user(state: ClaudeState, record: _Record, message: _Message, offset: int) -> Sequence[Change]:
    blocks = message.content
    if isinstance(blocks, str):
        text, changes = blocks, []
    else:
        text = "\n\n".join(block.text for block in blocks if block.type == "text" and block.text)
        changes = _tool_results(state, blocks)
    if not text:
        return changes
    at = read_time(record.timestamp, state)
    session = state.session_id = record.session_id or state.session_id
    uuid = record.uuid or content_id(state, NAME, session, at, Role.USER, text)
    state.last_timestamp = at
    if record.is_compact_summary:
        state.open.clear()
        return [*changes, Compaction(uuid, session, clean(text), at, offset)]
    text = clean(_own_words(text))
    if not text:
        return changes
    state.open.clear()  # the user spoke: nothing before this can still grow
    entry = Entry(
        uuid=uuid,
        session_id=session,
        role=Role.USER,
        content=text,
        timestamp=at,
        line_offset=offset,
        cwd=record.cwd or "",
        branch=record.git_branch or "",
    )
    return [*changes, entry]


def _assistant(state: ClaudeState, record: _Record, message: _Message, line: bytes, offset: int) -> Sequence[Change]:
    texts: list[str] = []
    tools: list[_Block] = []
    if isinstance(message.content, str):
        texts.append(clean(message.content))
    else:
        for block in message.content:
            if block.type == "text":
                texts.append(clean(block.text or ""))
            elif block.type == "tool_use" or block.type == "server_tool_use":
                tools.append(block)
    texts = [text for text in texts if text]
    if not texts and not tools:
        return NOTHING
    key = message.id or record.uuid
    opened = state.open.get(key) if key else None
    if opened is None:
        at = read_time(record.timestamp, state)
        session = state.session_id = record.session_id or state.session_id
        opened = _Opened(
            uuid=record.uuid or content_id(state, NAME, session, at, Role.ASSISTANT, line),
            session_id=session,
            timestamp=at,
            line_offset=offset,
            cwd=record.cwd or "",
            branch=record.git_branch or "",
        )
        state.last_timestamp = at
        state.open[key or opened.uuid] = opened
        while len(state.open) > _MOST_OPEN:
            del state.open[next(iter(state.open))]
    if record.uuid:
        if record.uuid in opened.lines:
            return NOTHING  # written twice
        opened.lines.append(record.uuid)
    opened.texts.extend(texts)
    for block in tools:
        if not block.id or all(block.id != tool.call_id for tool in opened.tools):  # not a call written twice
            opened.tools.append(OpenTool(block.id or "", summarise(block.name or "tool", block.input)))
        if block.name and block.name not in opened.names:
            opened.names.append(block.name)
    return [opened.entry()]


def _tool_results(state: ClaudeState, blocks: Sequence[_Block]) -> list[Change]:
    """A result says whether its call failed; what the tool printed is not kept."""
    failed = {
        block.tool_use_id for block in blocks if block.type == "tool_result" and block.is_error and block.tool_use_id
    }
    changes: list[Change] = []
    if failed:
        for message in state.open.values():
            hits = [tool for tool in message.tools if tool.call_id in failed and not tool.failed]
            for tool in hits:
                tool.failed = True
            if hits:
                changes.append(message.entry())
    return changes


_CAVEAT = "Caveat: The messages below were generated by the user while running local commands."
_INSERTED = re.compile(
    r"<(system-reminder|local-command-stdout|local-command-stderr|local-command-caveat|bash-stdout|bash-stderr|"
    r"user-prompt-submit-hook|ide_selection|ide_opened_file|ide_diagnostics|new-diagnostics)>.*?(?:</\1>|\Z)",
    re.DOTALL,
)
_BASH = re.compile(r"<bash-input>(.*?)</bash-input>", re.DOTALL)


def _own_words(text: str) -> str:
    """The user's part of a user record: without what the harness wrote into it; a command as it was typed."""
    if "<" not in text:
        return "" if text.startswith(_CAVEAT) else text
    text = _INSERTED.sub("", text)
    if (command := inside(text, "command-name")) is not None:
        return f"/{command.removeprefix('/')} {inside(text, 'command-args') or ''}".strip()
    closed, closing, rest = text.rpartition("</bash-input>")  # behind the last one a search would be in vain
    text = _BASH.sub(lambda found: f"! {found[1].strip()}", closed + closing) + rest
    return "" if text.startswith(_CAVEAT) else text


_KNOWN_TYPES = frozenset(
    {
        "user",
        "assistant",
        "system",
        "summary",
        "progress",
        "attachment",
        "file-history-snapshot",
        "queue-operation",
        "last-prompt",
        "permission-mode",
        "mode",
        "custom-title",
        "ai-title",
        "agent-name",
        "agent-setting",
        "pr-link",
        "bridge-session",
        "worktree-state",
    }
)


class _Head(msgspec.Struct, rename="camel"):
    type: str
    session_id: Any = None
    uuid: Any = None
    leaf_uuid: Any = None
    message: msgspec.Raw = msgspec.Raw()
    payload: msgspec.Raw = msgspec.Raw()
    snapshot: msgspec.Raw = msgspec.Raw()


_heads = msgspec.json.Decoder(_Head)


def recognises(head: Sequence[bytes]) -> bool:
    for line in head:
        try:
            record = _heads.decode(line)
        except UNDECODABLE:
            continue
        if record.payload or record.type not in _KNOWN_TYPES:
            continue
        if isinstance(record.session_id, str) or isinstance(record.leaf_uuid, str) or record.snapshot:
            return True
        if isinstance(record.uuid, str) and record.message:
            return True
    return False


def default_roots(environ: Mapping[str, str]) -> list[Path]:
    base = environ.get("CLAUDE_CONFIG_DIR")
    return [(Path(base) if base else Path(environ.get("HOME") or Path.home()) / ".claude") / "projects"]


def root_of(path: Path) -> Path:
    """`<root>/<project folder>/<session>.jsonl`."""
    return path.parent.parent


def wants(key: PurePath) -> bool:
    """Sub-agents' files carry their parent's session id and are never the user's talk."""
    return "subagents" not in key.parts[:-1] and not key.name.startswith("agent-") and key.name != "history.jsonl"


SOURCE = Source(
    name=NAME,
    begin=begin,
    state_type=ClaudeState,
    fold=fold,
    recognises=recognises,
    default_roots=default_roots,
    root_of=root_of,
    wants=wants,
)
