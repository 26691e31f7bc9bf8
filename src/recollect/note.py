"""What a person tells the memory, as the text of an entry: readable, and read back into the same value. Pure.

    Remember (constraint, must, project): Run make lint first.
    Remember (decision, none, project; when: add istio; mtls between services): No service mesh.
    Correct m-qgyxbr4twjuii5ya r2 (constraint, must, project, pinned): Run make check first.

A note is a conversation of its own with this one entry. The text carries all that the memory needs, so that it can be
made again from the entry alone: kind, severity, scope, when it matters, and for every verb but `remember` the id and
the revision that the note states.
"""

from __future__ import annotations

import base64
import re
import secrets
from dataclasses import dataclass
from enum import StrEnum

from recollect.occasions import joined, parted
from recollect.types import Conversation, MemoryKind, Scope, Severity

SOURCE = "recollect"  # of our own turn logs and notes

_TEXT = re.compile(
    r"(Remember|Correct|Pin|Unpin)(?: (m-[0-9A-Za-z-]+) r([1-9][0-9]{0,8}))?"
    r" \((\w+), (\w+), (\w+)(, pinned)?(?:; when: ([^()]+))?\): (.+)",
    re.DOTALL | re.ASCII,
)
_SESSION = re.compile(r"n-[a-z2-7]{16}", re.ASCII)


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

    def __post_init__(self) -> None:
        if (self.verb is Verb.REMEMBER) is bool(self.target) or bool(self.target) is not (self.revision > 0):
            raise ValueError("every verb but `remember` names a memory and its revision")


def is_note(talk: Conversation) -> bool:
    return talk.source == SOURCE and is_session(talk.session_id)


def is_chat(talk: Conversation) -> bool:
    return talk.source == SOURCE and not is_session(talk.session_id)


def new_session() -> str:
    """The id of a note, and of the conversation that it is."""
    return f"n-{base64.b32encode(secrets.token_bytes(10)).decode().lower()}"


def is_session(session_id: str) -> bool:
    """No other conversation of this source has such an id."""
    return _SESSION.fullmatch(session_id) is not None


def rendered(note: Note) -> str:
    target = f" {note.target} r{note.revision}" if note.target else ""
    pinned = ", pinned" if note.pinned else ""
    when = f"; when: {joined(note.occasions)}" if note.occasions else ""
    head = f"{note.verb.capitalize()}{target} ({note.kind}, {note.severity}, {note.scope}{pinned}{when})"
    return f"{head}: {note.text}"


def parse(text: str) -> Note | None:
    """None when it is no note."""
    found = _TEXT.fullmatch(text)
    if found is None:
        return None
    verb, target, revision, kind, severity, scope, pinned, told, said = found.groups()
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
        )
    except ValueError:
        return None
