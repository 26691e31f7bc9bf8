"""What people and agents tell the memory, as the text of an entry: readable, and read back into the same value. Pure.

    Remember (constraint, must, project): Run make lint first.
    Remember (decision, none, project; when: add istio; mtls between services): No service mesh.
    Correct m-qgyxbr4twjuii5ya r2 (constraint, must, project, pinned): Run make check first.
    Remember (fact, none, project, by an agent in 5f2c9a70-11aa): The staging host is tide-stg-2.

    Retire m-qgyxbr4twjuii5ya, m-k3v7q2hxtwjuii5y: offline-v10 would not keep it.
    Restore m-qgyxbr4twjuii5ya: what was retired holds again.

A note is a conversation of its own with this one entry; a retirement may have several, and states nothing. The text
carries all that the memory needs, so that it can be made again from the entry alone: kind, severity, scope, when it
matters, and for every verb but `remember` the id and the revision that the note states. The id of the note says whose
hand wrote it.
"""

from __future__ import annotations

import base64
import re
import secrets
from dataclasses import dataclass
from enum import StrEnum

from recollect.occasions import joined, parted
from recollect.types import Conversation, Hand, MemoryKind, Remembered, Scope, Severity

SOURCE = "recollect"  # of our own turn logs and notes

_TEXT = re.compile(
    r"(Remember|Correct|Pin|Unpin)(?: (m-[0-9A-Za-z-]+) r([1-9][0-9]{0,8}))?"
    r" \((\w+), (\w+), (\w+)(, pinned)?(?:, by an agent in ([\w.:@-]+))?(?:; when: ([^()]+))?\): (.+)",
    re.DOTALL | re.ASCII,
)
_RETIREMENT = re.compile(r"(Retire|Restore) (m-[0-9A-Za-z-]+(?:, m-[0-9A-Za-z-]+)*): (.+)", re.DOTALL | re.ASCII)
_SESSION = re.compile(r"[npar]-[a-z2-7]{16}", re.ASCII)
SESSION_NAME = re.compile(r"[\w.:@-]{1,100}", re.ASCII)  # of an agent, as a note names it
_AGENTS = "a-"  # how the ids of their notes begin
_PEOPLES = "p-"
RETIREMENTS = "r-"  # the pipeline's, which agents and people may have asked for
_UNSIGNED = "n-"  # a person's or an agent's: earlier versions did not record whose hand it was


class Verb(StrEnum):
    REMEMBER = "remember"
    CORRECT = "correct"  # the target says something else from now on
    PIN = "pin"
    UNPIN = "unpin"


@dataclass(frozen=True, slots=True)
class Note:
    verb: Verb
    text: str  # what holds from now on
    kind: MemoryKind
    severity: Severity = Severity.NONE
    scope: Scope = Scope.PROJECT
    pinned: bool = False
    target: str = ""  # the memory that it is about; empty for `remember`
    revision: int = 0  # of the target, that the note states; 0 for `remember`
    occasions: tuple[str, ...] = ()  # as `recollect.occasions` leaves them
    session: str = ""  # of the agent that wrote it, where it is known

    def __post_init__(self) -> None:
        if (self.verb is Verb.REMEMBER) is bool(self.target) or bool(self.target) is not (self.revision > 0):
            raise ValueError("every verb but `remember` names a memory and its revision")
        if self.session and not SESSION_NAME.fullmatch(self.session):
            raise ValueError("that is no name of a session")


@dataclass(frozen=True, slots=True)
class Retirement:
    """Memories that no agent is told from now on, or, undone, that hold again. What they say stays where it stands."""

    memories: tuple[str, ...]  # ids
    why: str
    is_undone: bool = False

    def __str__(self) -> str:
        return f"{'Restore' if self.is_undone else 'Retire'} {', '.join(self.memories)}: {self.why}"


def parse_retirement(text: str) -> Retirement | None:
    """None when it is none."""
    found = _RETIREMENT.fullmatch(text)
    return Retirement(tuple(found[2].split(", ")), found[3], found[1] == "Restore") if found else None


def is_note(talk: Conversation) -> bool:
    return talk.source == SOURCE and is_session(talk.session_id)


def is_chat(talk: Conversation) -> bool:
    return talk.source == SOURCE and not is_session(talk.session_id)


def new_session(hand: Hand = Hand.PERSON) -> str:
    """The id of a note, and of the conversation that it is. It tells whose hand wrote it, wherever it is cited."""
    begin = _AGENTS if hand is Hand.AGENT else _PEOPLES
    return f"{begin}{base64.b32encode(secrets.token_bytes(10)).decode().lower()}"


def new_retirement() -> str:
    """The id of a retirement, and of the conversation that it is."""
    return new_session().replace(_PEOPLES, RETIREMENTS, 1)


def is_retirement(session_id: str) -> bool:
    return is_session(session_id) and session_id.startswith(RETIREMENTS)


def is_session(session_id: str) -> bool:
    """No other conversation of this source has such an id."""
    return _SESSION.fullmatch(session_id) is not None


def hand_of(session_id: str) -> Hand:
    """Who wrote what a session states. What an earlier version noted may be a person's: no agent changes it."""
    if not is_session(session_id) or session_id.startswith(RETIREMENTS):
        return Hand.PIPELINE
    return Hand.AGENT if session_id.startswith(_AGENTS) else Hand.PERSON


def is_signed(session_id: str) -> bool:
    """Does the id tell whose hand it was, or is it no note? What nobody signed binds nothing."""
    return not (is_session(session_id) and session_id.startswith(_UNSIGNED))


def hand(memory: Remembered) -> Hand:
    """Who stands behind what a memory says: a person who noted it, else whoever said it in a conversation. It is an
    agent's only where nobody but agents noted it."""
    hands = {hand_of(key.rpartition("@")[0]) for key, _ in memory.sources}
    return next(
        (each for each in (Hand.PERSON, Hand.PIPELINE) if each in hands), Hand.AGENT if hands else Hand.PIPELINE
    )


def rendered(note: Note) -> str:
    target = f" {note.target} r{note.revision}" if note.target else ""
    pinned = ", pinned" if note.pinned else ""
    when = f"; when: {joined(note.occasions)}" if note.occasions else ""
    by = f", by an agent in {note.session}" if note.session else ""
    head = f"{note.verb.capitalize()}{target} ({note.kind}, {note.severity}, {note.scope}{pinned}{by}{when})"
    return f"{head}: {note.text}"


def parse(text: str) -> Note | None:
    """None when it is no note."""
    found = _TEXT.fullmatch(text)
    if found is None:
        return None
    verb, target, revision, kind, severity, scope, pinned, by, told, said = found.groups()
    try:
        return Note(
            Verb(verb.lower()),
            said,
            MemoryKind(kind),
            Severity(severity),
            Scope(scope),
            bool(pinned),
            target or "",
            int(revision or 0),
            parted(told or ""),
            by or "",
        )
    except ValueError:
        return None
