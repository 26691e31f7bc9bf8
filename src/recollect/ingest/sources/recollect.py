"""Our own turn logs and notes: `turns/<tenant>/<project>/<user>/<conversation>.jsonl` under RECOLLECT_HOME.

Every line has `type: recollect` and says in `line` what it is: a `turn` (what the user said and what the assistant
answered), a `note` (what a person told the memory), a `retirement` (memories that no agent is told any more, or that
hold again) or a `reaction` (what somebody thought of a turn or a memory; no
message). Lines and keys that are not known here are passed over: later versions add some. docs/turn-log.md is the
format's page; `recollect.turns.log` writes it.

A note is a conversation of its own, whatever file it stands in. A conversation's name is unique only for its project
and user, so its session is told from others of that name by a hash of the three. A turn counts once, as its first line
has it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import partial
from pathlib import Path, PurePath
from typing import Any

import msgspec

from recollect import note
from recollect.authors import coded, written
from recollect.ingest.sources.base import (
    NOTHING,
    UNDECODABLE,
    Change,
    Malformed,
    Source,
    State,
    clean,
    decode,
    read_time,
)
from recollect.occasions import occasions
from recollect.types import Author, Entry, Hand, MemoryKind, Role, Scope, Severity

NAME = note.SOURCE
TYPE = "recollect"


class Turn(msgspec.Struct, frozen=True, kw_only=True, tag_field="line", tag="turn"):
    """One turn of a chat. Further keys of the line (a fingerprint, say) are their writer's."""

    id: str  # unique in the conversation
    at: str  # when the user spoke
    project: str  # project id
    user: str
    conversation: str
    user_text: str = ""
    assistant_text: str = ""
    answered_at: str = ""  # empty: as `at`
    cwd: str = ""


class Reaction(msgspec.Struct, frozen=True, kw_only=True, tag_field="line", tag="reaction"):
    """What somebody thought of a turn or of a memory."""

    at: str
    project: str
    user: str
    reaction: str  # ok | not_ok | neutral
    turn: str = ""  # either this
    memory: str = ""  # or this
    revision: int = 0  # of the memory, that it is about; 0: the one of that time
    conversation: str = ""
    text: str = ""
    confidence: float = 1.0
    origin: str = "user"  # or machine


class Noted(msgspec.Struct, frozen=True, kw_only=True, tag_field="line", tag="note"):
    """What a person or an agent told the memory; see `recollect.note`."""

    id: str  # n-… of a person, a-… of an agent
    at: str
    project: str
    user: str
    verb: note.Verb
    text: str
    kind: MemoryKind
    severity: Severity
    scope: Scope
    pinned: bool = False
    target: str = ""
    revision: int = 0
    occasions: tuple[str, ...] = ()
    session: str = ""  # of the agent that wrote it
    cwd: str = ""
    memory_of: str = ""  # the user of a chat whose memory it is about; empty: the owner


class Retired(msgspec.Struct, frozen=True, kw_only=True, tag_field="line", tag="retirement"):
    """Memories that are retired, or hold again; see `recollect.note`."""

    id: str  # r-…
    entry: str  # of this line
    at: str
    memories: tuple[str, ...]  # ids
    why: str
    is_undone: bool = False
    project: str = ""  # of none, and of nobody in particular
    user: str = ""


class _Head(msgspec.Struct):
    type: Any = None
    line: Any = None


_heads = msgspec.json.Decoder(_Head)
_turns = msgspec.json.Decoder(Turn)
_notes = msgspec.json.Decoder(Noted)
_retirements = msgspec.json.Decoder(Retired)
_reactions = msgspec.json.Decoder(Reaction)


def begin(key: PurePath) -> State:
    return State()


def fold(state: State, line: bytes, offset: int) -> Sequence[Change]:
    head = decode(_heads, line)
    if head.type != TYPE:
        raise Malformed("no line of a turn log")
    if head.line == "turn":
        return _turn(state, decode(_turns, line), offset)
    if head.line == "note":
        return _note(state, decode(_notes, line), offset)
    if head.line == "retirement":
        return _retirement(state, decode(_retirements, line), offset)
    return NOTHING


def session(project: str, user: str, conversation: str) -> str:
    """The session id of a conversation. Never that of a note."""
    digest = hashlib.sha256("\x1f".join((project, user, conversation)).encode("utf-8", "surrogatepass")).hexdigest()
    return f"{conversation[:100]}.{digest[:12]}".replace("\0", "")


def entry_id(session_id: str, turn: str, role: Role) -> str:
    return f"{session_id}:{turn}:{role}".replace("\0", "")


def turn_of(uuid: str, session_id: str, role: str) -> str:
    """The turn that an entry of the session belongs to; empty: none."""
    inside = uuid.removeprefix(f"{session_id}:")
    return inside.removesuffix(f":{role}") if inside != uuid and inside.endswith(f":{role}") else ""


def reaction_id(told: Reaction) -> str:
    """Names what somebody wrote about a memory."""
    return f"reaction:{told.memory}@{told.at}"


def reacted(line: bytes) -> list[str]:
    """Ids of the entries, or of the memory, that a reaction is about; nothing for another line."""
    try:
        told = _reactions.decode(line)
    except UNDECODABLE:
        return []
    where = session(told.project, told.user, told.conversation)
    return [entry_id(where, told.turn, role) for role in Role] if told.turn else [told.memory]


def _turn(state: State, turn: Turn, offset: int) -> Sequence[Change]:
    if not turn.id or not turn.conversation:
        raise Malformed("a turn without an id or a conversation")
    at = read_time(turn.at, state)
    answered = read_time(turn.answered_at or turn.at, state)
    where = session(turn.project, turn.user, turn.conversation)
    state.session_id, state.last_timestamp = where, max(at, answered)
    cwd, project, user = (name.replace("\0", "") for name in (turn.cwd, turn.project, turn.user))
    place = partial(Entry, cwd=cwd, project=project, user=user)
    told = ((Role.USER, clean(turn.user_text), at), (Role.ASSISTANT, clean(turn.assistant_text), answered))
    return [
        place(entry_id(where, turn.id, role), where, role, text, moment, offset, authors=written(text, role))
        for role, text, moment in told
        if text
    ]


def _note(state: State, noted: Noted, offset: int) -> Sequence[Change]:
    if not note.is_session(noted.id) or note.is_retirement(noted.id):
        raise Malformed("a note's id is n- or a- and 16 letters")
    at = read_time(noted.at, state)
    names = ("verb", "kind", "severity", "scope", "pinned", "target", "revision", "session")
    try:
        told = note.Note(
            text=clean(noted.text),
            occasions=occasions(map(clean, noted.occasions)),
            **{name: getattr(noted, name) for name in names},
        )
    except ValueError as error:
        raise Malformed(str(error)) from None
    state.session_id, state.last_timestamp = noted.id, at
    if not told.text:
        return NOTHING
    cwd, project, user = (name.replace("\0", "") for name in (noted.cwd, noted.project, noted.memory_of))
    text = clean(note.rendered(told))
    author = Author.AGENT if note.hand_of(noted.id) is Hand.AGENT else Author.TYPED
    entry = Entry(noted.id, noted.id, Role.USER, text, at, offset, cwd=cwd, project=project, user=user)
    return [msgspec.structs.replace(entry, authors=coded([(author, len(text))]))]


def _retirement(state: State, told: Retired, offset: int) -> Sequence[Change]:
    text = clean(str(note.Retirement(told.memories, told.why, told.is_undone)))
    if not (note.is_retirement(told.id) and told.entry.startswith(told.id) and note.parse_retirement(text)):
        raise Malformed("a retirement's id is r- and 16 letters, and it names memories")
    state.session_id, state.last_timestamp = told.id, read_time(told.at, state)
    entry = Entry(told.entry, told.id, Role.USER, text, state.last_timestamp, offset)
    return [msgspec.structs.replace(entry, authors=coded([(Author.CLIENT, len(text))]))]


def recognises(head: Sequence[bytes]) -> bool:
    for line in head:
        try:
            record = _heads.decode(line)
        except UNDECODABLE:
            continue
        if record.type == TYPE and isinstance(record.line, str):
            return True
    return False


def root_of(path: Path) -> Path:
    """`<root>/<project>/<user>/<file>`."""
    return path.parents[min(2, len(path.parents) - 1)]


# Its root lies under RECOLLECT_HOME, which the configuration knows and the environment may not.
SOURCE = Source(NAME, begin, State, fold, recognises, lambda environ: [], root_of)
