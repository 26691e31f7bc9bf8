"""Claude Code transcripts: `~/.claude/projects/<folder>/<session>.jsonl`.

The payload trusted here: records with `type`, `uuid`, `sessionId`, `timestamp` and, for `user` and `assistant`, a
`message` with `content` (text, or a list of blocks). A field of another kind than it should be counts as missing. Kept
are the user's text and the assistant's text with a line per tool call. What the user typed while the agent worked
stands in an `attachment` of the type `queued_command`, what was typed to refuse a tool call in its result
(`toolDenialKind`), what was answered to a question in the result of `AskUserQuestion`, and nowhere else. Left out: tool
results (they arrive as user records), `isMeta`, `isSidechain` and sub-agent records, what another agent or the harness
said in the user's place (`origin`) or the model's (`<synthetic>`), other attachments, hook output, API errors,
everything that is no message. Each text of a record is looked at alone: the person's part of it is what the client did
not write, and a text whose author is not known is kept as a quotation. One assistant message may stand on several lines
with the same `message.id`: it is one entry, with the uuid of its first line.

Who goes back to an earlier prompt (`/rewind`, Esc Esc) leaves the records behind it in the file: the new prompt has the
same `parentUuid` as the one that it stands for. What was said from there on is withdrawn, and restored if somebody goes
on with it after all: two processes may write one file. No other shape of the tree tells a return: calls that run side
by side, hooks and gaps give records several children, too.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any, TypeGuard

import msgspec
from msgspec import Raw, field
from msgspec.structs import replace

from recollect.ingest.sources.base import (
    NOTHING,
    UNDECODABLE,
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
    authored,
    clean,
    content_id,
    read_time,
    session_name,
)
from recollect.ingest.sources.claude_results import answers, refusal
from recollect.ingest.sources.events import told
from recollect.ingest.sources.tags import Wrappers, inside, quoted
from recollect.ingest.sources.tools import summarise
from recollect.types import Author, Entry, Event, Happened, Role, Timestamp

NAME = "claude-code"
_MOST_OPEN = 4  # assistant messages that may still wait for lines or tool results
_MOST_TURNS = 50  # prompts that the user may go back to
_MOST_LEFT = 8  # branches that somebody may go on with


class _Block(msgspec.Struct):
    type: Any = None
    text: Any = None
    id: Any = None
    name: Any = None
    input: Raw = Raw()
    tool_use_id: Any = None
    is_error: Any = None
    content: Raw = Raw()  # of a tool's result


_Item = _Block | list[Raw] | str | float | bool | None  # what is no block is one of text, if it is text
_Content = str | list[_Item] | _Block | float | bool | None


class _Message(msgspec.Struct):
    content: _Content = None
    id: Any = None
    model: Any = None
    role: Any = None


class _Attachment(msgspec.Struct):
    type: Any = None
    prompt: _Content = None
    mode: Any = field(default=None, name="commandMode")
    is_meta: Any = field(default=None, name="isMeta")
    origin: Any = None
    source_uuid: Any = None  # what its user record would have had


class _Record(msgspec.Struct, rename="camel"):
    type: Any = None
    uuid: Any = None
    parent_uuid: Any = None
    session_id: Any = None
    timestamp: Any = None
    cwd: Any = None
    git_branch: Any = None
    agent_id: Any = None
    is_meta: Any = None
    is_sidechain: Any = None
    is_compact_summary: Any = None
    is_api_error_message: Any = None
    is_visible_in_transcript_only: Any = None
    origin: Any = None
    source_tool_use_id: Any = field(default=None, name="sourceToolUseID")
    source_tool_assistant_uuid: Any = field(default=None, name="sourceToolAssistantUUID")
    tool_denial_kind: Any = None
    ai_title: Any = None
    custom_title: Any = None
    tool_use_result: Raw = Raw()
    forked_from: Any = None
    message: _Message | list[Raw] | str | float | bool | None = None
    attachment: _Attachment | list[Raw] | str | float | bool | None = None


class _Opened(OpenMessage, kw_only=True):
    lines: list[str] = []  # uuids of the lines it was made of


class _Turn(msgspec.Struct, array_like=True):
    """A prompt, and what was said since."""

    parent: str  # the record before the prompt; empty when it is not told
    at: str
    entries: list[str] = []


class _Left(msgspec.Struct, array_like=True):
    """What was withdrawn when the user went back."""

    leaf: str  # its last record
    entries: list[str]


class ClaudeState(State, kw_only=True):
    open: dict[str, _Opened] = {}  # message.id → the message that may still grow
    leaf: str = ""  # the record written last
    turns: list[_Turn] = []
    left: list[_Left] = []


_records = msgspec.json.Decoder(_Record)
_contents = msgspec.json.Decoder(_Content)
_SYNTHETIC = "<synthetic>"  # the model of what the harness says in the model's place
_NO_PERSON = ("task-notification", "peer", "coordinator", "observer", "observer-activity", "auto-continuation")
_PERSON = (None, "human", "channel")  # kinds of origin


def begin(key: PurePath) -> ClaudeState:
    return ClaudeState(session_id=session_name(key.stem))


def fold(state: ClaudeState, line: bytes, offset: int) -> Sequence[Change]:
    try:
        record = _records.decode(line)
    except UNDECODABLE as error:
        raise Malformed(str(error)) from None
    changes = _changes(state, record, line, offset)
    if record.uuid and not record.is_sidechain and not record.agent_id:
        if state.left and record.message is not None:
            changes = [*_resumed(state, as_text(record.parent_uuid)), *changes]
        state.leaf = as_text(record.uuid)
    return changes


def _changes(state: ClaudeState, record: _Record, line: bytes, offset: int) -> Sequence[Change]:
    kind = record.type
    if kind != "assistant" and kind != "user":
        if not isinstance(kind, str):
            raise Malformed("a record without a type")
        if kind in ("ai-title", "custom-title") and (title := clean(as_text(record.ai_title or record.custom_title))):
            return _end(state, set(), [Event(Happened.TITLE, title)])
        if kind != "attachment" or not _is_queued(record.attachment):
            return NOTHING
        record = _as_user(record, record.attachment)
    if record.is_meta or record.is_sidechain or record.agent_id or record.is_api_error_message:
        return NOTHING
    if record.is_visible_in_transcript_only and not record.is_compact_summary:
        return NOTHING
    if isinstance(record.origin, dict) and record.origin.get("kind") in _NO_PERSON:
        return NOTHING
    message = record.message
    if not isinstance(message, _Message):
        raise Malformed(f"a {kind} record without a message")
    if isinstance(message.role, str) and message.role != kind and kind != "attachment":
        raise Malformed(f"a {kind} record whose message has another role")
    blocks = message.content if type(message.content) is list else _alone(message.content)
    if kind == "assistant":
        if message.model == _SYNTHETIC:
            return NOTHING
        return _assistant(state, record, as_text(message.id), blocks, line, offset)
    return _user(state, record, blocks, offset)


def _is_queued(attachment: object) -> TypeGuard[_Attachment]:
    found = attachment if isinstance(attachment, _Attachment) else _Attachment()
    return found.type == "queued_command" and found.mode in ("prompt", None)


def _as_user(record: _Record, queued: _Attachment) -> _Record:
    """What was typed while the agent worked, as the user record that it would have been otherwise."""
    uuid, meta = as_text(queued.source_uuid) or record.uuid, record.is_meta or queued.is_meta
    return replace(record, uuid=uuid, is_meta=meta, origin=queued.origin, message=_Message(queued.prompt))


def _alone(content: _Content) -> list[_Item]:
    """Text, or a block, that stands where a list should."""
    if isinstance(content, str | _Block):
        return [content]
    raise Malformed("a message without content")


def _time(state: ClaudeState, record: _Record) -> Timestamp:
    return read_time(record.timestamp if type(record.timestamp) in (str, int, float) else None, state)


def _session(state: ClaudeState, record: _Record) -> str:
    """Where it was said: a fork stamps what it copies with its own session, and names the other."""
    state.session_id = session_name(record.session_id) or state.session_id
    source = record.forked_from
    return (isinstance(source, dict) and session_name(source.get("sessionId"))) or state.session_id


def _user(state: ClaudeState, record: _Record, blocks: Sequence[_Item], offset: int) -> Sequence[Change]:
    texts: list[str] = []  # as the record has them
    words: list[tuple[Author, str]] = []  # the person's part of each
    events: list[Event] = []
    failed: set[str] = set()
    for item in blocks:
        block = item if type(item) is _Block else _Block("text", item)
        if block.type == "tool_result":
            own: list[str] = []
            if block.is_error is True:
                failed.add(as_text(block.tool_use_id))
                said = refusal(block.content)
                if said is not None:  # what a tool prints may look like one
                    own += [said] if said and record.tool_denial_kind == "user-rejected" else []
                    events.append(Event(Happened.REJECTED, *map(clean, own)))
            else:
                own, given = _answered(state, as_text(block.tool_use_id), block.content, record.tool_use_result)
                events += given
            texts += own
            words += [(Author.CHOSEN, each) for each in own]
        elif block.type == "text" and type(block.text) is str and block.text:
            if _INTERRUPT.fullmatch(block.text):
                events.append(Event(Happened.INTERRUPT))
            else:
                texts.append(block.text)
                words.append((Author.TYPED, _typed_by(record, block.text)))
    if not texts:
        return _end(state, failed, events) if failed or events else NOTHING
    text, at = "\n\n".join(texts), _time(state, record)
    changes = _end(state, failed, ())
    session = _session(state, record)
    uuid = as_text(record.uuid) or content_id(state, NAME, session, at, Role.USER, text)
    state.last_timestamp = at
    if record.is_compact_summary or text.startswith(_CONTINUED):
        state.open.clear()
        state.turns.clear()  # nobody goes back behind it
        return [*changes, Compaction(uuid, session, clean(text), at, offset)]
    text, authors = authored(words)
    if not text:
        return [*changes, *_end(state, set(), events)]
    state.open.clear()  # the user spoke: nothing before this can still grow
    if record.type == "user" and not any(type(item) is _Block and item.type == "tool_result" for item in blocks):
        changes += _prompted(state, as_text(record.parent_uuid), uuid, at)
    _note(state, uuid)
    entry = Entry(
        uuid=uuid,
        session_id=session,
        role=Role.USER,
        content=text,
        timestamp=at,
        line_offset=offset,
        cwd=as_text(record.cwd),
        branch=as_text(record.git_branch),
        authors=authors,
        events=tuple(events),
    )
    return [*changes, entry]


def _typed_by(record: _Record, text: str) -> str:
    """The person's part of a text, as the record tells who wrote it."""
    if record.source_tool_use_id:
        return ""  # a tool put it in, the text of a skill for one
    own = _own_words(text)
    origin = record.origin.get("kind") if isinstance(record.origin, dict) else None
    is_result = bool(record.tool_use_result or record.source_tool_assistant_uuid)
    return own if origin in _PERSON and not is_result else quoted(own)


def _assistant(
    state: ClaudeState, record: _Record, identity: str, blocks: Sequence[_Item], line: bytes, offset: int
) -> Sequence[Change]:
    texts: list[str] = []
    tools: list[_Block] = []
    for item in blocks:
        block = item if type(item) is _Block else _Block("text", item)
        if block.type == "text":
            if type(block.text) is str and (text := clean(block.text)):
                texts.append(text)
        elif block.type == "tool_use" or block.type == "server_tool_use":
            tools.append(block)
    if not texts and not tools:
        return NOTHING
    uuid = as_text(record.uuid)
    key = identity or uuid
    opened = state.open.get(key) if key else None
    if opened is None:
        at = _time(state, record)
        session = _session(state, record)
        opened = _Opened(
            uuid=uuid or content_id(state, NAME, session, at, Role.ASSISTANT, line),
            session_id=session,
            timestamp=at,
            line_offset=offset,
            cwd=as_text(record.cwd),
            branch=as_text(record.git_branch),
        )
        state.last_timestamp = at
        _note(state, opened.uuid)
        state.open[key or opened.uuid] = opened
        while len(state.open) > _MOST_OPEN:
            del state.open[next(iter(state.open))]
    if uuid:
        if uuid in opened.lines:
            return NOTHING  # written twice
        opened.lines.append(uuid)
    opened.texts.extend(texts)
    for block in tools:
        call, name = as_text(block.id), as_text(block.name)
        if not call or all(call != tool.call_id for tool in opened.tools):  # not a call written twice
            about = summarise(name or "tool", block.input)
            opened.tools.append(OpenTool(call, about, events=told(name, block.input)))
        if name and name not in opened.names:
            opened.names.append(name)
    return [opened.entry()]


def _prompted(state: ClaudeState, parent: str, uuid: str, at: str) -> list[Change]:
    """A turn begins. Where an earlier one begins at the same record, the user went back; but the same prompt written
    anew, as a copy or at the same time, is no return: what is said behind it is nobody's to take back."""
    place = next((n for n, turn in enumerate(state.turns) if parent and turn.parent == parent), None)
    gone = [] if place is None else [each for turn in state.turns[place:] for each in turn.entries]
    copied = uuid in gone or any(uuid in left.entries for left in state.left)
    if copied or (place is not None and state.turns[place].at == at):
        parent, gone = "", []
    elif place is not None:
        del state.turns[place:]
        state.left.append(_Left(state.leaf, gone))
        del state.left[:-_MOST_LEFT]
    state.turns.append(_Turn(parent, at))
    del state.turns[:-_MOST_TURNS]
    return [Withdrawn(each) for each in gone]


def _note(state: ClaudeState, uuid: str) -> None:
    if state.turns and state.turns[-1].parent:
        state.turns[-1].entries.append(uuid)


def _resumed(state: ClaudeState, parent: str) -> list[Change]:
    back = [left for left in state.left if left.leaf == parent]
    state.left = [left for left in state.left if left.leaf != parent]
    return [Restored(each) for left in back for each in left.entries]


def _answered(state: ClaudeState, call: str, content: Raw, result: Raw) -> tuple[list[str], list[Event]]:
    """What the user answered, by itself and with its question: only the harness writes the result of a call that
    asked."""
    asked = (tool.line for message in state.open.values() for tool in message.tools if tool.call_id == call)
    if not call or not any(line.startswith("[AskUserQuestion]") for line in asked):
        return [], []
    words: list[str] = []
    events: list[Event] = []
    for question, own in answers(content, result):
        words += own
        events.append(Event(Happened.ANSWER, clean(f"{' '.join(question.split())} → {'; '.join(own)}")))
    return words, events


def _end(state: ClaudeState, calls: set[str], events: Sequence[Event]) -> list[Change]:
    """A result says whether its call failed; what the tool printed is not kept. What happened without a word of the
    user's stands with the last thing that the agent did."""
    changes: list[Change] = []
    if events and state.open:
        last = next(reversed(state.open.values()))
        last.events += tuple(each for each in events if each not in last.events)
        changes.append(last.entry())
    if calls:
        for message in state.open.values():
            hits = [tool for tool in message.tools if tool.call_id in calls and tool.call_id and not tool.failed]
            for tool in hits:
                tool.failed = True
            if hits:
                changes.append(message.entry())
    return changes


_CONTINUED = "This session is being continued from a previous conversation that ran out of context."
_CAVEAT = "Caveat: The messages below were generated by the user while running local commands."
_ALONE = (
    "local-command-stdout",
    "local-command-stderr",
    "local-command-caveat",
    "bash-stdout",
    "bash-stderr",
    "task-notification",
    "teammate-message",
    "agent-message",
    "cross-session-message",
    "mcp-resource-update",
    "mcp-polling-update",
)
_WRAPPERS = Wrappers(
    "|".join(_ALONE)
    + "|system-reminder|user-prompt-submit-hook|session-start-hook|ide_selection|ide_opened_file|ide_diagnostics|"
    "new-diagnostics",
    alone=_ALONE,
)
_BEHIND_TASK = re.compile(r"^(?:Read the output file to retrieve the result|Full transcript available at): .*", re.M)
_CLIENTS = re.compile(  # how a text begins that the client wrote as a whole
    rf"{re.escape(_CAVEAT)}|\[SYSTEM NOTIFICATION\b|Base directory for this skill: /|\(no content\)\Z|"
    r"Operation stopped by hook: |[A-Z]\w+(?::[^\s:]{1,80})?(?: operation blocked by hook| hook feedback):\r?\n|"
    r"Another Claude session sent a message:\s*<"
)
_INTERRUPT = re.compile(r"\s*\[Request interrupted by user(?: for tool use)?\]\s*")
_BLOCKED = "\n\nOriginal prompt: "  # what a hook did not let pass
_PLAN = re.compile(r"Implement the following plan:\r?\n\s*(?:#+ [^\n]*)?")  # the agent's, with the first line of it
_BEHIND_PLAN = re.compile(r"\n+If you need specific details from before exiting plan mode [^\n]*\Z")
_COMMAND = ("<command-name>", "<command-message>")  # how a command begins
_MEMORY = "<user-memory-input>"  # `# Use tabs.`, typed to be remembered
_BASH = "<bash-input>"


def _own_words(text: str) -> str:
    """The person's part of one text of a user record; a command as it was typed. Empty when the client wrote it."""
    text = _INTERRUPT.sub("", text, count=1) if _INTERRUPT.match(text) else text.strip()
    if _CLIENTS.match(text):
        return text.partition(_BLOCKED)[2] if "blocked by hook" in text[:120] else ""
    if plan := _PLAN.match(text):
        return plan[0].strip() + quoted(_BEHIND_PLAN.sub("", text[plan.end() :]))
    if "<" not in text:
        return text
    if not text.startswith((*_COMMAND, _BASH)):
        text = _WRAPPERS.without(_BEHIND_TASK.sub("", text) if "<task-notification" in text else text)
    return _typed(text)


def _typed(text: str) -> str:
    """A command, a note to remember or a shell command as the person typed it; other text as it is."""
    if text.startswith(_COMMAND) and (command := _first(text, "command-name")) is not None:
        return f"/{command.removeprefix('/')} {inside(text, 'command-args') or ''}".strip()
    if text.startswith(_MEMORY) and (told := inside(text, "user-memory-input")) is not None:
        return told
    if text.startswith(_BASH):
        shell = inside(text, "bash-input") if text.endswith("</bash-input>") else _first(text, "bash-input")
        if shell is not None:
            rest = "" if text.endswith("</bash-input>") else text.partition("</bash-input>")[2]
            own = _WRAPPERS.without(rest)
            return "".join((f"! {shell}", own if own == rest else f"\n\n{own}")).rstrip()
    return text


def _first(text: str, tag: str) -> str | None:
    """What stands in the first pair of a tag."""
    content, closed, _ = text.partition(f"<{tag}>")[2].partition(f"</{tag}>")
    return content.strip() if closed else None


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
    message: Raw = Raw()
    payload: Raw = Raw()
    snapshot: Raw = Raw()


_heads = msgspec.json.Decoder(_Head)


def folder_of(line: bytes) -> str:
    """Every record may name it."""
    try:
        return as_text(_records.decode(line).cwd)
    except UNDECODABLE:
        return ""


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
    folder_of=folder_of,
    recognises=recognises,
    default_roots=default_roots,
    root_of=root_of,
    wants=wants,
    tells=frozenset(Happened),
)
