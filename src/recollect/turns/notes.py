"""What people and agents tell the memory: remember, correct, pin, unpin, feedback.

A note is written to the log first; then, before the command returns, it goes the way of every conversation: ingest,
phase 1, artifacts, rows, MEMORY.md. Whatever fails in between, the line is there, and the next `ingest` and `process`
take it up, once. Commands that raise a revision are alone with the log, so that two of them do not raise the same one.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from pathlib import Path

from recollect.artifacts.projection import Projection
from recollect.artifacts.sanitize import line, sanitized
from recollect.artifacts.sets import after
from recollect.errors import NoteWaits, NotForAgents, Outdated, StoreError, UnknownMemory, UsageError, one_of
from recollect.everywhere import holds_everywhere
from recollect.extract.offline.statements import typed
from recollect.extract.resolve import inherited, replaced
from recollect.extract.run import Extract
from recollect.hand import PERSON, Author, may, refusal
from recollect.ingest.intake import Intake
from recollect.ingest.sources.recollect import Noted, Reaction
from recollect.note import SOURCE, Note, Verb, hand, new_session
from recollect.occasions import MOST, occasions
from recollect.projects.paths import stored
from recollect.store import conversations, feedback, memories, stage1
from recollect.store.ground import Ground, Part
from recollect.text import normalised, words
from recollect.turns.log import TurnLog
from recollect.types import BINDING, STRICT, Hand, MemoryKind, Remembered, Scope, Severity, Timestamp, timestamp

log = logging.getLogger(__name__)

USER = "default"  # of notes: the person whose home it is
LONGEST = 4_000  # characters: a memory is a statement, not a document
_PATIENCE = 10.0  # seconds to wait for another process that took the note up


class Opinion(StrEnum):
    """What a person thinks of a memory."""

    OK = "ok"
    NOT_OK = "not_ok"


class Step(StrEnum):
    """Where a command may be interrupted; a test crashes at each."""

    LOGGED = "logged"
    INGESTED = "ingested"
    EXTRACTED = "extracted"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a note belongs."""

    cwd: str
    project_id: str
    user: str = ""  # of a chat, whose memory it is about


class Notebook(Part):
    """`changed` is called when a memory that was known has another revision; `reached` is told every step."""

    def __init__(
        self,
        ground: Ground,
        intake: Intake,
        extract: Extract,
        projection: Projection,
        *,
        changed: Callable[[Remembered], None] = lambda memory: None,
        reached: Callable[[Step], None] = lambda step: None,
    ) -> None:
        super().__init__(ground)
        self._intake = intake
        self._extract = extract
        self._changed = changed
        self._reached = reached
        self._log = TurnLog(self._settings.turns)
        self._projection = projection

    def remember(
        self,
        text: str,
        *,
        project: Path | str | None,
        everywhere: bool = False,
        kind: MemoryKind | None = None,
        severity: Severity | None = None,
        when: Sequence[str] = (),
        author: Author = PERSON,
    ) -> Remembered:
        """`project` is a folder, or as text the id or the folder of a project that is known. What an agent notes never
        binds, and holds in its project."""
        said = _said(text)
        kind, severity = _known(kind, severity)
        wide = everywhere or (holds_everywhere(said) and not author.is_agent)
        scope = Scope.USER if wide else Scope.PROJECT
        if scope is Scope.PROJECT and not project:
            raise UsageError("no project was given", hint="Name one, or say that it holds everywhere.")
        if refused := _refused(author, said, everywhere, severity):
            raise refused
        place = self._place("" if scope is Scope.USER else project or "")
        if author.is_agent and place.project_id != author.project:
            command = ("remember", said, "--project", place.project_id)
            raise refusal("note something for another project than its own", command)
        with self._log.alone():
            kind, severity = self._typed(said, kind, severity, scope, place)
            severity = _permitted(severity, author)
            note = Note(Verb.REMEMBER, said, kind, severity, scope, occasions=_occasions(when))
            found = self._state(note, place, timestamp(self._clock()), author)
            if found.revision > 1:
                self._changed(found)
            return found

    def correct(
        self,
        memory_id: str,
        text: str,
        *,
        kind: MemoryKind | None = None,
        severity: Severity | None = None,
        when: Sequence[str] = (),
        revision: int = 0,
        author: Author = PERSON,
    ) -> Remembered:
        """The next revision of a memory. What the words do not tell, and nobody says, stays as it was. The same again
        is a revision only of what was called wrong: from then on it holds. Outdated, where it is not the `revision`
        any more that somebody saw."""
        said, told = _said(text), _occasions(when)
        kind, severity = _known(kind, severity)
        strict = ("--severity", str(severity)) if severity in STRICT else ()
        with self._log.alone():
            held, following = self._held(memory_id, author, "correct", said, *strict)
            _require(held, revision)
            if strict and author.is_agent:
                raise refusal("note what binds", ("correct", held.id, said, *strict))
            if kind is None:
                binds = held.kind is MemoryKind.FACT and typed(said)[1] in BINDING  # what becomes a rule is one
                kind = typed(said)[0] if binds else held.kind
            if severity is None:
                severity = self._as_corrected(held, said, kind)
            severity = _permitted(severity, author)
            same = (held.text, held.kind, held.severity, held.occasions)
            if (said, kind, severity, told or held.occasions) == same and not self._is_wrong(held):
                return held
            note = Note(Verb.CORRECT, said, kind, severity, held.scope, held.pinned, held.id, following, told)
            return self._revise(note, held, author)

    def pin(self, memory_id: str, *, pinned: bool = True, author: Author = PERSON) -> Remembered:
        """States the memory again, with the flag or without it. What was called wrong holds when it is pinned. A pin
        makes a statement the person's own: it binds as its words tell."""
        verb = Verb.PIN if pinned else Verb.UNPIN
        with self._log.alone():
            held, revision = self._held(memory_id, author, verb)
            if held.pinned is pinned and not (pinned and self._is_wrong(held)):
                return held
            severity = self._as_corrected(held, held.text, held.kind) if pinned else held.severity
            note = Note(verb, held.text, held.kind, severity, held.scope, pinned, held.id, revision)
            return self._revise(note, held, author)

    def move(
        self, memory_id: str, project: Path | str | None, *, revision: int = 0, author: Author = PERSON
    ) -> Remembered:
        """It holds in another project from now on, or everywhere where none is named."""
        scope = Scope.PROJECT if project else Scope.USER
        with self._log.alone():
            held, following = self._held(memory_id, author, "move")
            _require(held, revision)
            place = replace(self._place(project), user=held.user) if project else self._place_of(held)
            if (held.scope, held.scope_id) == (scope, scope.id(place.project_id, "")):
                return held
            note = Note(Verb.CORRECT, held.text, held.kind, held.severity, scope, held.pinned, held.id, following)
            return self._revise(note, held, author, place)

    def undo(self, memory_id: str, *, revision: int = 0, author: Author = PERSON) -> Remembered:
        """Takes the last change back: what was called wrong holds, else it says what it said before, where it said
        it."""
        with self._log.alone():
            held, following = self._held(memory_id, author, "undo")
            _require(held, revision)
            if not self._is_wrong(held):
                before = self._before(held)
                place = self._place(before.scope_id) if before.scope is Scope.PROJECT else self._place_of(held)
                said = (before.text, before.kind, before.severity, before.scope, before.pinned)
                note = Note(Verb.CORRECT, *said, held.id, following, before.occasions)
                return self._revise(note, held, author, replace(place, user=held.user))
        return self.feedback(held.id, Opinion.OK, author=author)

    def feedback(self, memory_id: str, opinion: Opinion, text: str = "", author: Author = PERSON) -> Remembered:
        """A person's reaction to what the memory says, instead of the one before; `ok` counts as use. Its time is after
        both, whatever the clocks said. An agent may call wrong what agents noted."""
        held, _ = self._held(memory_id, author, "feedback", opinion)
        said = (held.valid_from, *(Timestamp(key.rpartition("@")[2]) for key, _ in held.sources))
        now = max(timestamp(self._clock()), *said, self._after_verdict(held))
        told = Reaction(
            at=now,
            project=held.scope_id if held.scope is Scope.PROJECT else "",
            user=held.user or USER,
            memory=held.id,
            revision=held.revision,
            reaction=opinion,
            text=sanitized(text),
        )
        self._log.append(held.id, told)
        with self._database.write() as tx:
            feedback.react(tx, self._owner, held.id, held.revision, str(opinion), now)
            if opinion is Opinion.OK:
                memories.cite(tx, self._owner, [held.id], now)
                stage1.cite(tx, self._owner, list(dict.fromkeys(key for key, _ in held.sources)), now)
        self._projection.update()
        return held

    # Where, and what is known

    def _place(self, project: Path | str) -> Place:
        """Nowhere in particular, a folder, or a project that is known."""
        if isinstance(project, Path):
            return self._checked(str(project.absolute()), "")
        if not project:
            return self._checked("", "")
        with self._database.read() as tx:
            known = conversations.search(tx, self._owner, project=project, limit=1)
        if not known:
            raise UsageError(f"no project `{project}` is known", hint="Give the project's folder.")
        return self._checked(known[0].project, known[0].project_id)

    def _place_of(self, held: Remembered) -> Place:
        """Where it was said last."""
        with self._database.read() as tx:
            said = [each for key, _ in held.sources for each in conversations.of_key(tx, self._owner, key)]
        newest = max(said, key=lambda each: each.last_message_at, default=None)
        project = held.scope_id if held.scope is Scope.PROJECT else ""
        found = self._checked(newest.project if newest else "", project or (newest.project_id if newest else ""))
        return replace(found, user=held.user)

    def _checked(self, cwd: str, project: str) -> Place:
        found = self._intake.project_of(cwd, project)
        if found is None:
            raise UsageError(
                f"nothing of {project or cwd} may be stored",
                hint="It is switched off by `disabled_projects` or `ignore`, or is recollect's own folder.",
            )
        return Place(stored(cwd), found)

    def _held(self, name: str, author: Author, verb: str, *more: str) -> tuple[Remembered, int]:
        """The memory of that name as it is now, and the number of its next revision. NotForAgents when an agent may not
        do this to it. `more` ends the command that a person would run."""
        with self._database.read() as tx:
            memory_id = memories.named(tx, self._owner, name, author.project)
            revisions = memories.find(tx, self._owner, [memory_id])
        if not revisions:
            raise UnknownMemory(f"no memory `{name}`")
        (held,) = memories.current(revisions)
        command = (verb, held.id, *more)
        is_open = verb == "correct" or more == (Opinion.NOT_OK,)
        if refused := may(author, verb, command, revisions if is_open else ()):
            raise refused
        return held, max(each.revision for each in revisions) + 1

    def _before(self, held: Remembered) -> Remembered:
        """The revision before this one."""
        with self._database.read() as tx:
            revisions = memories.find(tx, self._owner, [held.id])
        older = [each for each in revisions if (each.valid_from, each.revision) < (held.valid_from, held.revision)]
        if not older:
            raise UsageError(f"{held.id} was never changed", hint="There is nothing to undo.")
        return max(older, key=lambda each: (each.valid_from, each.revision))

    def _as_corrected(self, held: Remembered, said: str, kind: MemoryKind) -> Severity:
        """As it was, where its words tell the same; what nobody but a conversation or an agent said binds by a person's
        words from now on."""
        told, before = typed(said, kind)[1], typed(held.text, kind)[1]
        is_known = held.severity in STRICT or hand(held) is Hand.PERSON
        return held.severity if told is before and is_known else told

    def _is_wrong(self, held: Remembered) -> bool:
        with self._database.read() as tx:
            return bool(feedback.wrong(tx, self._owner, [held.id]))

    def _after_verdict(self, held: Remembered) -> Timestamp:
        """The first moment after the last reaction to the memory, or its retirement; empty: there is none."""
        with self._database.read() as tx:
            thought = feedback.of_memories(tx, self._owner, [held.id]).get(held.id)
            retired = feedback.retired(tx, self._owner, [held.id]).get(held.id)
        told = [after(at) for at in (thought and thought.last, retired and retired.at) if at]
        return max(told, default=Timestamp(""))

    def _typed(
        self, said: str, kind: MemoryKind | None, severity: Severity | None, scope: Scope, place: Place
    ) -> tuple[MemoryKind, Severity]:
        """As it was said, else as the same words or what they replace are remembered, else as the words tell."""
        if kind is None and severity is None:
            with self._database.read() as tx:
                near = memories.in_scopes(tx, self._owner, [(scope, scope.id(place.project_id, ""))])
            held = memories.current(near)
            same = [each for each in held if normalised(each.text) == normalised(said)]
            if same:
                return same[0].kind, same[0].severity
            if older := replaced(said, held, exact=True):
                return inherited(said, *typed(said), older)
        guessed, told = typed(said, kind)
        if kind is None and severity not in (None, Severity.NONE) and told is Severity.NONE:
            guessed = MemoryKind.CONSTRAINT  # what is strict is a rule
        return guessed, told if severity is None else severity

    # The way into memory

    def _revise(self, note: Note, held: Remembered, author: Author, place: Place | None = None) -> Remembered:
        """Its time is not before what it replaces, and after what was thought of that, whatever the clocks said."""
        at = max(timestamp(self._clock()), held.valid_from, self._after_verdict(held))
        found = self._state(note, place or self._place_of(held), at, author)
        self._changed(found)
        return found

    def _state(self, note: Note, place: Place, at: Timestamp, author: Author) -> Remembered:
        session, told = new_session(author.hand), asdict(replace(note, session=author.session))
        said = Noted(
            id=session,
            at=at,
            project=place.project_id,
            user=place.user or USER,
            memory_of=place.user,
            cwd=place.cwd,
            **told,
        )
        path = self._log.append(session, said)
        self._reached(Step.LOGGED)
        try:
            return self._taken_in(path, f"{session}@{at}")
        except StoreError as error:
            raise NoteWaits(f"the note is written down, but it is no memory yet: {error.message}") from error

    def _taken_in(self, path: Path, session_key: str) -> Remembered:
        self._intake.ingest(file=path, source=SOURCE)
        self._reached(Step.INGESTED)
        found = self._extracted(session_key)
        self._reached(Step.EXTRACTED)
        self._projection.update()
        return found

    def _extracted(self, session_key: str) -> Remembered:
        """What the note states, once it is in memory: by this process, or by one that took it up first."""
        deadline = time.monotonic() + _PATIENCE
        while True:
            report = self._extract.run(keys=[session_key], now=True)
            with self._database.read() as tx:
                stated = memories.of_session(tx, self._owner, session_key)  # a note is one statement
                found = memories.find(tx, self._owner, [each.id for each in stated])
            for each in found:
                if each.revision == stated[0].revision:
                    return each
            if report.problems or time.monotonic() > deadline:
                reason = "; ".join(why for _, why in report.problems) or "another process holds it"
                raise NoteWaits(f"the note is written down, but it is no memory yet: {reason}")
            time.sleep(0.05)


def _refused(author: Author, said: str, everywhere: bool, severity: Severity | None) -> NotForAgents | None:
    """What no agent may note, whatever it is about."""
    if not author.is_agent:
        return None
    if everywhere:
        return refusal("note what holds in every project", ("remember", said, "--everywhere"))
    if severity in STRICT:
        return refusal("note what binds", ("remember", said, "--severity", str(severity)))
    return None


def _require(held: Remembered, revision: int) -> None:
    """Outdated where somebody saw another revision; 0: they do not say which."""
    if revision and revision != held.revision:
        raise Outdated(f"{held.id} is at revision {held.revision} by now, not at {revision}")


def _permitted(severity: Severity, author: Author) -> Severity:
    """What an agent notes never binds, however it is worded."""
    return Severity.NONE if author.is_agent and severity in STRICT else severity


def _said(text: str) -> str:
    """As it is kept: without secrets, injected blocks and control characters."""
    said = sanitized(text).strip()
    if not words(said):
        raise UsageError("there is nothing to remember in that text", hint="Say it in a sentence.")
    if len(said) > LONGEST:
        raise UsageError(f"{len(said):,} characters, and {LONGEST:,} are the most", hint="Say it in a few sentences.")
    return said


def _known(kind: str | None, severity: str | None) -> tuple[MemoryKind | None, Severity | None]:
    """A line that cannot be read would be no memory, ever."""
    return (
        None if kind is None else one_of(MemoryKind, kind, "a kind"),
        None if severity is None else one_of(Severity, severity, "a severity"),
    )


def _occasions(given: Sequence[str]) -> tuple[str, ...]:
    """As they are kept; a text is one."""
    given = [given] if isinstance(given, str) else given
    if len(given) > MOST:
        raise UsageError(f"{len(given)} occasions, and {MOST} are the most", hint="Give the likeliest ones.")
    return occasions(map(line, given))
