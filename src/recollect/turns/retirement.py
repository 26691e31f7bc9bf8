"""A note by which memories are retired, or hold again: no agent is told them, and nothing that they say is changed.

A retirement is a line of a log before anything follows from it, and becomes a conversation with a transcript in
Markdown, as every note does. Whatever fails in between, the line is there, and the next `ingest` and `process` take it
up. The lines of one run are one note.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from recollect.artifacts.sets import after
from recollect.extract.run import Extract
from recollect.ingest.intake import Intake
from recollect.ingest.sources.recollect import Retired
from recollect.note import SOURCE, new_retirement
from recollect.store import conversations, feedback, memories
from recollect.store.ground import Ground, Part
from recollect.turns.log import TurnLog
from recollect.types import Remembered, Timestamp, timestamp

_USER = "default"  # of notes: the person whose home it is
_AT_ONCE = 100  # memories that a line names


class RetirementNote(Part):
    """One note; it is written when the first memories are added."""

    def __init__(self, ground: Ground) -> None:
        super().__init__(ground)
        self._log = TurnLog(self._settings.turns)
        self._lines = 0
        self.path: Path | None = None  # of its log; none: nothing was retired

    @cached_property
    def session(self) -> str:
        return new_retirement()

    def retire(self, ids: Sequence[str], why: str) -> list[Remembered]:
        """Those of these memories that were not retired before."""
        with self._database.read() as tx:
            before = feedback.retired(tx, self._owner, ids)
        return self._changed([each for each in ids if each not in before], why, is_undone=False)

    def restore(self, ids: Sequence[str] | None) -> list[Remembered]:
        """Those of these memories that were retired, else all that the newest note retired."""
        with self._database.read() as tx:
            held = feedback.retired(tx, self._owner, ids)
        newest = max(((each.at, each.note) for each in held.values()), default=("", ""))[1]
        due = [name for name, each in held.items() if ids is not None or each.note == newest]
        return self._changed(due, "what was retired holds again", is_undone=True)

    def _changed(self, ids: Sequence[str], why: str, *, is_undone: bool) -> list[Remembered]:
        with self._database.read() as tx:
            held = memories.current(memories.find(tx, self._owner, ids))
        if held:
            self.add([each.id for each in held], why, is_undone=is_undone)
        return held

    def add(self, ids: Sequence[str], why: str, *, is_undone: bool = False) -> None:
        """Retires these memories, or has them hold again. Its time is after all that was said of them."""
        at = self._after(ids)
        for start in range(0, len(ids), _AT_ONCE):
            self._lines += 1
            some = tuple(ids[start : start + _AT_ONCE])
            entry = f"{self.session}:{self._lines}"
            told = Retired(id=self.session, entry=entry, at=at, memories=some, why=why, is_undone=is_undone, user=_USER)
            self.path = self._log.append(self.session, told)

    def _after(self, ids: Sequence[str]) -> Timestamp:
        """Now, or the first moment after what was said of their retirement; not before they were stated, whatever the
        clocks said."""
        with self._database.read() as tx:
            before = feedback.retirements(tx, self._owner)
            stated = [each.created_at for each in memories.find(tx, self._owner, ids)]
        told = [after(before[each].at) for each in ids if each in before]
        return max(timestamp(self._clock()), *stated, *told)

    def take_in(self, intake: Intake, extract: Extract) -> None:
        """Has the note go the way of every conversation, up to its files."""
        if self.path is None:
            return
        intake.ingest(file=self.path, source=SOURCE)
        with self._database.read() as tx:
            keys = {each.session_key for each in conversations.of_session_id(tx, self._owner, SOURCE, self.session)}
        extract.run(keys=sorted(keys), now=True)
