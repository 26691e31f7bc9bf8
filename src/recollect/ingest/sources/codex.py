"""Codex rollouts: `$CODEX_HOME/sessions/YYYY/MM/DD/rollout-<time>-<thread>.jsonl`.

The payload trusted here: lines `{timestamp, type, payload}`; in files of mid-2025 a bare meta line (id, timestamp,
git), then payloads alone. Kept are the user's words and the assistant's text with a line per tool call; not developer
messages, instruction fragments, reasoning, tool output, sub-agents' threads.

A message stands in up to three streams: `response_item`, the `event_msg` of its role, `item_completed`. Whichever line
comes first gives the entry; the others are its twins and give nothing. Twins share role and text (compared without
white space) and are neighbours: the other side says and does nothing between them. A stream names a message once, so
that one really said twice stays two.

A turn begins with a message of the user, or with a review; `thread_rolled_back` withdraws the entries of the last
turns. Words of the user that begin none: a shell command, and an answer to `request_user_input`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path, PurePath
from typing import Any, NamedTuple

import msgspec
from msgspec import Raw, field

from recollect.blocks import strip_blocks
from recollect.ingest.sources import tools
from recollect.ingest.sources.base import (
    NOTHING,
    Change,
    Compaction,
    Malformed,
    OpenMessage,
    OpenTool,
    Pieces,
    Source,
    State,
    Withdrawn,
    as_text,
    authored,
    clean,
    content_id,
    decode,
    read_time,
    session_name,
)
from recollect.ingest.sources.codex_payload import (
    HANDED_ON,
    Result,
    answers,
    is_ill,
    own_words,
    parts,
    patched,
    string,
    tells_failure,
)
from recollect.ingest.sources.events import IN_COMMANDS, told
from recollect.types import Author, Entry, Event, Happened, Role, Timestamp

NAME = "codex"
_MOST_OPEN = 4  # assistant messages that may still wait for tool results
_MOST_TOOLS = 64  # tool lines on one entry: each new one gives the whole entry again
_MOST_RECENT = 32  # messages that may still wait for their twins
_MOST_TURNS = 500  # turns that can be rolled back
_SHORTEST_ID = 16  # a shorter id ("msg_1", as local models give them) is unique nowhere

_When = str | float | None  # a timestamp as the line has it


class _Record(msgspec.Struct):
    """A line or its payload: every field that any of them is read for, and nothing else is built."""

    timestamp: Any = None
    type: Any = None
    payload: _Record | list[Raw] | str | float | bool | None = None
    record_type: Any = None
    id: Any = None
    role: Any = None
    content: Raw = Raw()
    message: Any = None  # text of an event, summary of a compaction
    images: Raw = Raw()
    local_images: Raw = Raw()
    item: Raw = Raw()
    name: Any = None
    namespace: Any = None
    arguments: Raw = Raw()
    input: Raw = Raw()
    action: Raw = Raw()
    status: Any = None
    call_id: Any = None
    output: Raw = Raw()
    result: Raw = Raw()
    success: Any = None
    exit_code: Any = None
    num_turns: Any = None
    target: Any = None  # of a review
    prompt: Any = None  # the same, in older files
    user_facing_hint: Any = None
    cwd: Any = None
    git: Any = None
    instructions: Raw = Raw()
    source: Any = None
    thread_source: Any = None
    forked_from_id: Any = None
    history_base: Any = None
    parent_thread_id: Any = None
    agent_role: Any = None
    agent_nickname: Any = None


class _Seen(msgspec.Struct, array_like=True):
    """A message whose twins may still come."""

    digest: str
    uuid: str
    streams: str  # a letter for each stream it was seen in


class CodexState(State, kw_only=True):
    identified: bool = False  # a meta line was seen; later ones are repetitions, or a parent's
    cwd: str = ""
    branch: str = ""
    remote: str = ""
    turns: list[list[str]] = field(default_factory=list)  # uuids of the entries of each turn
    in_turn: bool = False  # the last opened message belongs to the current turn
    recent: list[_Seen] = field(default_factory=list)  # the present run of messages of one role
    recent_role: str = ""
    compacted: str = ""  # in what kinds of lines the compaction just made was reported


class _Said(NamedTuple):
    """A message as one of the streams has it."""

    role: Role
    texts: list[str]  # by part
    images: bool
    native: str  # its own id, if that is worth anything
    stream: str  # i(tem), e(vent), c(ompleted item) or r(eview)
    when: _When
    offset: int


_records = msgspec.json.Decoder(_Record)

_ENVELOPES = frozenset({"session_meta", "response_item", "event_msg", "turn_context", "compacted"})
_CALLS = frozenset({"function_call", "custom_tool_call", "local_shell_call", "web_search_call", "mcp_call"})
_OUTPUTS = frozenset({"function_call_output", "custom_tool_call_output"})
_BARE = _CALLS | _OUTPUTS | {"message"}
_COMPACTIONS = frozenset({"compaction", "context_compaction", "compaction_summary"})
_ENDINGS = frozenset({"patch_apply_end", "exec_command_end", "mcp_tool_call_end"})
_ROLES = {"usermessage": Role.USER, "agentmessage": Role.ASSISTANT}
_ID = re.compile(r"([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})(?:_[0-9a-f-]{36})?$", re.IGNORECASE)
_TIME = re.compile(r"(\d{4}-\d\d-\d\dT\d\d)-(\d\d)-(\d\d)")


def begin(key: PurePath) -> CodexState:
    """Thread and time are those in the name until the meta line says so: that line may be broken."""
    stem = key.name.removesuffix(".zst").removesuffix(".jsonl")
    thread, time = _ID.search(stem), _TIME.search(stem)
    state = CodexState(session_id=thread[1] if thread else session_name(stem))
    with suppress(Malformed):
        state.last_timestamp = read_time(f"{time[1]}:{time[2]}:{time[3]}" if time else None, state)
    return state


def fold(state: CodexState, line: bytes, offset: int) -> Sequence[Change]:
    if state.excluded:
        return NOTHING
    try:
        record = decode(_records, line)
        if record.type is None:
            return _untyped(state, record)
        return _typed(state, record, offset)
    except RecursionError:  # comes from decoding only, which is always done before the state is touched
        raise Malformed("nested too deeply") from None


def _typed(state: CodexState, record: _Record, offset: int) -> Sequence[Change]:
    kind, payload = record.type, record.payload
    if not isinstance(kind, str):
        raise Malformed("the type is no text")
    when = record.timestamp if record.timestamp and type(record.timestamp) in (str, int, float) else None
    if kind not in _ENVELOPES:
        return _item(state, record, when, offset) if payload is None and kind in _BARE else NOTHING
    if not isinstance(payload, _Record):
        raise Malformed(f"a {kind} without a payload")
    if kind == "response_item":
        return _item(state, payload, when, offset)
    if kind == "event_msg":
        return _event(state, payload, when, offset)
    if kind == "session_meta":
        return _meta(state, payload)
    if kind == "compacted":
        return _compaction(state, "r", payload, when, offset)
    state.cwd = as_text(payload.cwd) or state.cwd
    return NOTHING


def _native(identity: object) -> str:
    return as_text(identity) if len(as_text(identity)) >= _SHORTEST_ID else ""


def _is_known(state: CodexState, uuid: str) -> bool:
    return uuid != "" and any(uuid in turn for turn in state.turns)


def _untyped(state: CodexState, record: _Record) -> Sequence[Change]:
    """The bare meta line and the state lines of mid-2025."""
    if isinstance(record.record_type, str):
        return NOTHING
    if not as_text(record.id) or not isinstance(record.timestamp, str) or record.payload is not None:
        raise Malformed("neither a type nor a meta line")
    at = read_time(record.timestamp, state)
    if not state.identified:
        state.last_timestamp = at
    return _meta(state, record)


def _meta(state: CodexState, meta: _Record) -> Sequence[Change]:
    thread = session_name(meta.id)
    if state.identified and thread != state.session_id:
        if not state.turns and not state.fork_of:
            state.fork_of = thread  # a fork copies its parent's meta line; older ones tell of it nowhere else
        return NOTHING
    state.cwd = as_text(meta.cwd) or state.cwd
    if isinstance(meta.git, dict):
        state.branch = as_text(meta.git.get("branch")) or state.branch
        remote = as_text(meta.git.get("repository_url"))
        state.remote = re.sub(r"://[^/@]*@", "://", remote) or state.remote  # without credentials
    if state.identified:
        return NOTHING
    state.identified = True
    state.session_id = thread or state.session_id
    if not isinstance(meta.history_base, dict):  # else the file refers to its parent's, and repeats nothing
        state.fork_of = session_name(meta.forked_from_id)
    state.excluded = _is_subagent(meta)
    return _roll_back(state, len(state.turns)) if state.excluded else NOTHING


def _is_subagent(meta: _Record) -> bool:
    if as_text(meta.parent_thread_id) or as_text(meta.agent_role) or as_text(meta.agent_nickname):
        return True
    kinds = [*meta.source] if isinstance(meta.source, dict) else [meta.source]
    names = [as_text(kind).replace("_", "").lower() for kind in (*kinds, meta.thread_source)]
    return any(name.startswith(("subagent", "internal", "guardian")) for name in names)


def _roll_back(state: CodexState, turns: object) -> Sequence[Change]:
    if not isinstance(turns, int) or turns <= 0:
        return NOTHING
    gone = state.turns[-turns:]
    del state.turns[-turns:]
    state.opened.clear()
    state.recent.clear()
    state.in_turn = False
    return [Withdrawn(uuid) for turn in gone for uuid in turn]


# Messages


def _item(state: CodexState, payload: _Record, when: _When, offset: int) -> Sequence[Change]:
    kind, role = payload.type, payload.role
    if not isinstance(kind, str):
        raise Malformed("an item without a type")
    if kind == "message" and not isinstance(role, str):
        raise Malformed("a message without a role")
    if kind == "message" and (role == "user" or role == "assistant"):
        texts, images = parts(payload.content)
        return _message(state, _Said(Role(role), texts, images, _native(payload.id), "i", when, offset))
    if kind in _OUTPUTS:
        return _answered(state, payload, when, offset) or _fail(state, payload.call_id, payload.output)
    if kind in _CALLS:
        return _call(state, payload, when, offset)
    if kind in _COMPACTIONS:
        return _compaction(state, "i", payload, when, offset)
    return NOTHING


def _event(state: CodexState, payload: _Record, when: _When, offset: int) -> Sequence[Change]:
    kind = payload.type
    if not isinstance(kind, str):
        raise Malformed("an event without a type")
    if kind == "user_message" or kind == "agent_message":
        text = payload.message
        if text is not None and not isinstance(text, str):
            raise Malformed(f"a {kind} without text")
        images = any(memoryview(raw).nbytes > len("null") for raw in (payload.images, payload.local_images))
        role = Role.USER if kind == "user_message" else Role.ASSISTANT
        return _message(state, _Said(role, [text] if text else [], images, "", "e", when, offset))
    if kind == "item_completed":
        item = decode(_records, bytes(payload.item))
        kind = as_text(item.type).replace("_", "").lower()
        if kind == "contextcompaction":
            return _compaction(state, "c", item, when, offset)
        if kind not in _ROLES:
            return NOTHING
        texts, images = parts(item.content)
        return _message(state, _Said(_ROLES[kind], texts, images, _native(item.id), "c", when, offset))
    if kind == "thread_rolled_back":
        return _roll_back(state, payload.num_turns)
    if kind == "turn_aborted" and state.opened and state.in_turn:
        state.opened[-1].events = (Event(Happened.INTERRUPT),)
        return [state.opened[-1].entry()]
    if kind == "entered_review_mode" and (asked := _review(payload)):
        return _message(state, _Said(Role.USER, [asked], False, "", "r", when, offset))
    if kind == "context_compacted":
        return _compaction(state, "e", payload, when, offset)
    if kind in _ENDINGS:
        result = Result(exit_code=payload.exit_code, success=payload.success, right=payload.result)
        return _fail(state, payload.call_id, result)
    return NOTHING


def _message(state: CodexState, said: _Said) -> Sequence[Change]:
    if said.role is Role.USER:
        texts = [text for text in said.texts if not _IMAGE_TAG.fullmatch(text)]
        words = [own for own in map(own_words, texts) if own]
        if not words and (not said.images or any(map(str.strip, texts))):
            if found := _CWD.search("\n".join(texts).partition("<environment_context>")[2]):
                state.cwd = as_text(found[1].strip())  # mid-2025 it is named nowhere else
            return _fragment(state, said, texts) if said.stream == "i" else NOTHING
    elif not (words := [own for own in (_CITATION.sub("", text).strip() for text in said.texts) if own]):
        return NOTHING
    digests = [_digest("".join(words))]
    if len(words) > 1 and said.role is Role.ASSISTANT:  # there may be an event for each part
        digests.extend(map(_digest, words))
    if (twin := _twin(state, said, digests)) is not None:
        return _completed(state, twin, words)
    at = read_time(said.when, state)
    uuid = said.native or content_id(state, NAME, state.session_id, at, said.role, "".join(said.texts))
    state.last_timestamp = at
    _speaks(state, said.role)
    state.recent.extend(_Seen(digest, uuid, said.stream) for digest in digests)
    del state.recent[:-_MOST_RECENT]
    if said.role is Role.ASSISTANT:
        text = clean("\n\n".join(words))
        return [_opened(state, uuid, at, said.offset, [text]).entry()] if text else NOTHING
    _begin_turn(state)  # in any case: rollbacks count it
    return _users(state, uuid, [(Author.TYPED, each) for each in words], at, said.offset)


def _begin_turn(state: CodexState) -> None:
    state.in_turn = False
    state.turns.append([])
    del state.turns[:-_MOST_TURNS]


def _users(state: CodexState, uuid: str, words: Pieces, at: Timestamp, offset: int, *events: Event) -> Sequence[Change]:
    """The user's entry, in the turn that has begun."""
    text, authors = authored(words)
    if not text:
        return NOTHING
    state.turns[-1].append(uuid)
    place = {"cwd": state.cwd, "branch": state.branch, "remote": state.remote}
    return [Entry(uuid, state.session_id, Role.USER, text, at, offset, **place, authors=authors, events=events)]


def _aside(state: CodexState, words: Pieces, native: str, when: _When, offset: int, *events: Event) -> Sequence[Change]:
    """Words of the user that begin no turn."""
    if not words or _is_known(state, native):
        return NOTHING
    text, at = "\n\n".join(each for _, each in words), read_time(when, state)
    uuid = native or content_id(state, NAME, state.session_id, at, Role.USER, text)
    state.last_timestamp = at
    _speaks(state, Role.USER)
    if not state.turns:
        _begin_turn(state)
    state.in_turn = False
    return _users(state, uuid, words, at, offset, *events)


def _fragment(state: CodexState, said: _Said, texts: list[str]) -> Sequence[Change]:
    """What the user did, as Codex tells it: ran a command, or had a review made: a turn, unless its request was one."""
    begun = [text.lstrip() for text in texts]
    if any(text.startswith("<user_action>") for text in begun):
        if not any("r" in seen.streams for seen in state.recent):
            _begin_turn(state)
        return NOTHING
    commands = [_SHELL.search(text) for text in begun if text.startswith("<user_shell_command>")]
    words = [(Author.TYPED, f"! {command[1]}") for command in commands if command and command[1]]
    return _aside(state, words, said.native, said.when, said.offset)


def _review(payload: _Record) -> str:
    """What the user typed to be looked at. Of a review from the menu, and of one that a machine asked for, the hint is
    another text than the request."""
    target, hint = payload.target, as_text(payload.user_facing_hint).strip()
    if isinstance(target, dict):
        asked = as_text(target.get("instructions")).strip() if target.get("type") == "custom" else ""
        return asked if hint in ("", asked) else ""
    return hint if hint == as_text(payload.prompt).strip() else ""


def _opened(state: CodexState, uuid: str, at: Timestamp, offset: int, texts: list[str]) -> OpenMessage:
    if not state.turns:
        state.turns.append([])
    state.turns[-1].append(uuid)
    message = OpenMessage(
        uuid=uuid,
        session_id=state.session_id,
        timestamp=at,
        line_offset=offset,
        cwd=state.cwd,
        branch=state.branch,
        remote=state.remote,
        texts=texts,
    )
    state.opened.append(message)
    del state.opened[:-_MOST_OPEN]
    state.in_turn = True
    return message


def _speaks(state: CodexState, role: Role) -> None:
    """Somebody said or did something new: no more twins will come of what the other side said before."""
    if state.recent_role != role:
        state.recent.clear()
        state.recent_role = role
    state.compacted = ""


def _twin(state: CodexState, said: _Said, digests: list[str]) -> str | None:
    """The uuid of the entry that another line has already given for this message."""
    if _is_known(state, said.native):
        return said.native
    if state.recent_role != said.role:
        return None
    free = {seen.digest: seen for seen in reversed(state.recent) if said.stream not in seen.streams}
    for wanted in (digests[:1], digests[1:]):  # the whole message, or an event for each of its parts
        if wanted and all(digest in free for digest in wanted):
            for digest in wanted:
                free[digest].streams += said.stream
            return free[wanted[0]].uuid
    return None


def _completed(state: CodexState, uuid: str, words: list[str]) -> Sequence[Change]:
    """An event leaves out the plan that its item has."""
    for message in state.opened:
        if message.uuid == uuid and any("<proposed_plan>" in word for word in words):
            message.texts = [clean("\n\n".join(words))]
            return [message.entry()]
    return NOTHING


_IMAGE_TAG = re.compile(r"\s*</?(?:local_)?image\b[^<>]*>\s*")
_CITATION = re.compile(r"<oai-mem-citation>.*?(?:</oai-mem-citation>|\Z)", re.DOTALL)
_UNSHARED = re.compile(r"<proposed_plan>.*?(?:</proposed_plan>|\Z)|\[REDACTED_[A-Z_]+", re.DOTALL)
_SHELL = re.compile(r"<command>\s*(.*?)\s*</command>(?=\s*<result>|\s*</user_shell_command>)", re.DOTALL)
_CWD = re.compile(r"(?:<cwd>|Current working directory: )([^<>\n]+)")


def _digest(text: str) -> str:
    """Equal for the forms of a message: an event has no plan, an anonymised file (`[REDACTED_TEXT …]`) names fields."""
    letters = "".join(strip_blocks(_UNSHARED.sub("", text)).split())
    return hashlib.blake2b(letters.encode(errors="replace"), digest_size=8).hexdigest()


def _call(state: CodexState, payload: _Record, when: _When, offset: int) -> Sequence[Change]:
    name, line, raw = _described(payload)
    events = told(name, raw)
    call_id = as_text(payload.call_id) or as_text(payload.id)
    if state.in_turn and state.opened and len(state.opened[-1].tools) < _MOST_TOOLS:
        message = state.opened[-1]
    else:
        at = read_time(when, state)
        raw = "\x1f".join((payload.type, call_id, name, raw))
        uuid = "" if _is_known(state, _native(payload.id)) else _native(payload.id)
        uuid = uuid or content_id(state, NAME, state.session_id, at, Role.ASSISTANT, raw)
        message = _opened(state, uuid, at, offset, [])
        state.last_timestamp = at
    _speaks(state, Role.ASSISTANT)
    message.tools.append(OpenTool(call_id, line, failed=payload.status == "failed", events=events))
    if name not in message.names:
        message.names.append(name)
    return [message.entry()]


def _described(payload: _Record) -> tuple[str, str, str]:
    """Name, line and raw arguments of a call."""
    if payload.type == "local_shell_call" or payload.type == "web_search_call":
        name = payload.type.removesuffix("_call")
        return name, tools.summarise(name, payload.action), string(payload.action)
    name, space = as_text(payload.name) or "tool", as_text(payload.namespace)
    if space and not name.startswith(space):
        name = space + name if space.endswith(("_", ".")) else f"{space}.{name}"
    free = payload.type == "custom_tool_call"
    text = string(payload.input if free else payload.arguments)
    if "*** Begin Patch" in text and (files := patched(text)):
        target = ", ".join(dict.fromkeys(files))
        return name, tools.line(name, target if name == "apply_patch" else f"apply_patch {target}"), text
    return name, tools.line(name, text) if free else tools.summarise(name, text), text


def _fail(state: CodexState, call_id: object, output: Raw | Result) -> Sequence[Change]:
    """Whether its call failed is all that an output is read for."""
    for message in reversed(state.opened):
        for tool in reversed(message.tools):
            if tool.call_id == call_id:
                ill = is_ill(output) if isinstance(output, Result) else tells_failure(string(output))
                if tool.failed or not ill:
                    return NOTHING
                tool.failed = True
                return [message.entry()]
    return NOTHING


def _answered(state: CodexState, payload: _Record, when: _When, offset: int) -> Sequence[Change]:
    """What the user answered: only Codex writes the output of a call that asked."""
    calls = (tool for message in state.opened for tool in message.tools if tool.call_id == payload.call_id != "")
    call = next((call for call in calls if call.line.startswith("[request_user_input]")), None)
    if call is None:
        return NOTHING
    given = answers(string(payload.output))
    asked = call.line.partition("] ")[2]
    event = Event(Happened.ANSWER, clean(f"{asked} → {'; '.join(given)}"))
    changes = _aside(state, [(Author.CHOSEN, each) for each in given], "", when, offset, event)
    if changes:
        call.call_id = ""  # what is written twice was said once
    return changes


def _compaction(state: CodexState, sign: str, payload: _Record, when: _When, offset: int) -> Sequence[Change]:
    """Up to four kinds of lines report a compaction; the first of them, the record, has the summary."""
    if state.compacted and sign not in state.compacted:
        state.compacted += sign
        return NOTHING
    message = as_text(payload.message)
    preface, _, rest = message.partition("\n")
    at = read_time(when, state)
    uuid = _native(payload.id) or content_id(state, NAME, state.session_id, at, "compaction", message)
    state.last_timestamp = at
    state.compacted = sign
    summary = clean(rest if preface.startswith(HANDED_ON) else message)
    return [Compaction(uuid, state.session_id, summary, at, offset)]


def folder_of(line: bytes) -> str:
    """The meta line and the context of a turn name it, in their payload."""
    with suppress(Malformed):
        payload = decode(_records, line).payload
        return as_text(payload.cwd) if isinstance(payload, _Record) else ""
    return ""


def recognises(head: Sequence[bytes]) -> bool:
    for line in head:
        try:
            record = decode(_records, line)
        except (Malformed, RecursionError):
            continue
        kind = record.type
        if kind == "recollect":
            return False
        if kind is None:
            named = isinstance(record.id, str) and isinstance(record.timestamp, str)
            told = bool(record.instructions) or isinstance(record.git, dict)
            known = (named and told) or record.record_type == "state"
        elif isinstance(record.payload, _Record):
            known = kind in tuple(_ENVELOPES)
        else:
            known = kind in tuple(_BARE) and isinstance(record.role or record.call_id, str)
        if known:
            return True
    return False


def default_roots(environ: Mapping[str, str]) -> list[Path]:
    base = environ.get("CODEX_HOME")
    home = Path(base) if base else Path(environ.get("HOME") or Path.home()) / ".codex"
    return [home / "sessions", home / "archived_sessions"]


def root_of(path: Path) -> Path:
    """`<root>/YYYY/MM/DD/<file>`, or a file that lies flat in the archive, or in any other folder."""
    if re.fullmatch(r"\d{4}/\d\d/\d\d", "/".join(path.parts[-4:-1])):
        return path.parents[3]
    return path.parent if path.parent.name == "archived_sessions" else path.parent.parent


def wants(key: PurePath) -> bool:
    is_listing = key.name in {"history.jsonl", "session_index.jsonl"}
    return not is_listing and (key.name.startswith("rollout-") or key.name.endswith((".jsonl", ".jsonl.zst")))


_TELLS = frozenset({Happened.ANSWER, Happened.INTERRUPT, Happened.TASK, Happened.DONE, *IN_COMMANDS})
SOURCE = Source(NAME, begin, CodexState, fold, recognises, default_roots, root_of, wants, folder_of, tells=_TELLS)
