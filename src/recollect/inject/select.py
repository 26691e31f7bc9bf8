"""What may be given: pinned memories and kinds, what the prompt is about, and what replaces a line that is visible.

Everything is read within one reach: the named projects and what holds everywhere for whoever reads, be it the owner or
a user of a chat; never what belongs to another user or to one conversation, never a revision that was superseded,
never what a person called wrong.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Protocol

from recollect.inject import render
from recollect.inject.values import Exchange, InjectorConfig, Line, Section, Sort
from recollect.store import feedback, injections, memories
from recollect.store.database import Database
from recollect.store.memories import Use
from recollect.store.search import Reach
from recollect.types import BINDING, Clock, MemoryKind, Remembered, Scope, Severity, Timestamp, moment

_HALF = 90.0  # days after which a memory that nobody uses counts half
_KINDS = {MemoryKind.CONSTRAINT: 1.0, MemoryKind.PREFERENCE: 0.9, MemoryKind.DECISION: 0.8, MemoryKind.LESSON: 0.7}
_SEVERITIES = {Severity.MUST: 1.0, Severity.DO_NOT: 1.0, Severity.AVOID: 0.5, Severity.PREFER: 0.4}
_CONSIDERED = 200  # of a kind, the newest
_HITS = 30  # for a prompt
_OPEN = 5  # threads, the newest, for a prompt that asks what was left


class Contextually(Protocol):
    """What finds memories by the prompt."""

    def find(
        self,
        prompt: str,
        exchanges: Sequence[Exchange],
        scope: Reach,
        limit: int,
        now: datetime,
        visible: Collection[str] = (),
    ) -> list[Line]: ...


def importance(memory: Remembered, use: Use | None, now: datetime) -> float:
    """Follows from kind, severity and use; fades with the time since it was said or used. Computed, never stored."""
    last = Timestamp(max(memory.valid_from, use.last if use else ""))
    days = max(0.0, (now - moment(last)).total_seconds() / 86400)
    used = math.log1p(use.count) / 4 if use else 0.0
    worth = _KINDS.get(memory.kind, 0.5) + _SEVERITIES.get(memory.severity, 0.0) + used
    return worth * math.exp2(-days / _HALF)


def within(reach: Reach, memory: Remembered) -> bool:
    """Is it the reader's own, or nobody's and of one of the reader's projects? What tests alone said is neither."""
    if memory.id in reach.unlisted.memories:
        return False
    if memory.scope is Scope.PROJECT:
        if reach.projects is None:
            return memory.user == reach.user
        return memory.user in (reach.user, "") and memory.scope_id in reach.projects
    return memory.scope is Scope.USER and memory.user == reach.user


class Selection:
    def __init__(
        self,
        database: Database,
        reach: Reach,
        config: InjectorConfig,
        clock: Clock,
        contextual: Contextually,
        *,
        off: bool = False,
    ) -> None:
        self.config = config
        self._database = database
        self._reach = reach
        self._clock = clock
        self._contextual = contextual
        self._off = off  # nothing is given

    def current(self, ids: Iterable[str]) -> dict[str, Remembered]:
        """The memories that hold and may be shown here, by id."""
        held, wrong = self._read(ids)
        return {each.id: each for each in held if within(self._reach, each) and each.id not in wrong}

    def hidden(self, ids: Iterable[str]) -> dict[str, str]:
        """Why the others are not shown here, by id."""
        wanted = set(ids)
        held, wrong = self._read(wanted)
        reasons = dict.fromkeys(wanted - {each.id for each in held}, "is not in this memory")
        reasons |= dict.fromkeys(wrong, "was called wrong")
        return reasons | {each.id: "is not of this scope" for each in held if not within(self._reach, each)}

    def _read(self, ids: Iterable[str]) -> tuple[list[Remembered], set[str]]:
        """The revisions that hold, and which memories a person called wrong."""
        wanted = sorted(set(ids))
        if not wanted:
            return [], set()
        with self._database.read() as tx:
            held = memories.current(memories.find(tx, self._reach.owner, wanted))
            return held, feedback.wrong(tx, self._reach.owner, wanted)

    def replacements(self, stale: Sequence[str]) -> list[Line]:
        """What those say now whose lines no longer hold."""
        if self._off:
            return []
        reason = "replaces an earlier revision that was shown"
        held = self.current(stale).values()
        return [replace(render.made(each, render.WHOLE, reason=reason), replaces=True) for each in held]

    @property
    def projects(self) -> tuple[str, ...]:
        """Whose sessions may be told of; none where nothing is, nor of chats."""
        return () if self._off or self._reach.user else tuple(self._reach.projects or ())

    def open_threads(self) -> list[Line]:
        """What was left open last."""
        with self._database.read() as tx:
            ids = [] if self._off else injections.ambient(tx, self._reach, (MemoryKind.OPEN_THREAD,), (), _OPEN)
        held = [each for each in self.current(ids).values() if each.kind is MemoryKind.OPEN_THREAD]
        held.sort(key=lambda each: (each.valid_from, each.id), reverse=True)
        return [render.made(each, render.WHOLE, Section.RELEVANT, 0.0, "is still open") for each in held]

    def candidates(
        self,
        prompt: str,
        exchanges: Sequence[Exchange],
        visible: Collection[str],
        stale: Sequence[str],
        given: Sequence[Line] = (),
        *,
        start: bool = False,
    ) -> list[Line]:
        """Best first. `visible` are ids of memories that may be held back, `stale` ids of lines that no longer hold,
        `given` the lines that this turn was given already. The `start` of a session is given all rules that bind."""
        config, now = self.config, self._clock()
        if self._off:
            return []
        found: list[Line] = self._ambient(BINDING if start else (), now) if config.ambient_enabled else []
        found += self.replacements(stale)
        if prompt.strip():
            limit = max(_HITS, config.max_total) + len(visible)  # more than fit: a rule further down has its place, too
            hits = self._contextual.find(prompt, exchanges, self._reach, limit, now, visible)
            held = self.current(each.id for each in hits)
            found += [
                render.made(held[each.id], render.WHOLE, Section.RELEVANT, each.score, each.reason)
                for each in hits
                if each.id in held
            ]
        found += [
            render.made(each, render.WHOLE, Section.RELEVANT, 0.0, "given earlier in this turn")
            for each in self.current(line.id for line in given).values()
        ]
        places = {line.id: (number, line) for number, line in enumerate(given, start=1)}
        found = [replace(each, replaces=each.id in stale) for each in found]
        return [_again(each, *places[each.id]) if each.id in places else each for each in found]

    def _ambient(self, binding: Sequence[Severity], now: datetime) -> list[Line]:
        """What is pinned, by a person or by its kind, and all of these severities; rules that bind first."""
        config = self.config
        with self._database.read() as tx:
            ids = injections.ambient(tx, self._reach, config.pinned_kinds, binding, _CONSIDERED)
            uses = memories.uses_of(tx, self._reach.owner, ids)
        held = self.current(ids).values()
        if config.ambient_sort is Sort.RECENCY:
            newest = sorted(held, key=lambda each: (each.valid_from, each.id), reverse=True)
        else:
            newest = sorted(held, key=lambda each: (-importance(each, uses.get(each.id), now), each.id))
        newest.sort(key=lambda each: each.severity not in BINDING)
        chosen, counts = [], dict.fromkeys(MemoryKind, 0)
        for each in newest:
            if each.pinned:
                chosen.append(render.made(each, render.WHOLE, Section.PINNED, 0.0, "pinned by a person"))
            elif each.severity in binding:
                chosen.append(
                    render.made(each, render.WHOLE, Section.PINNED, 0.0, f"a rule that binds: {each.severity}")
                )
            elif counts[each.kind] < config.per_kind_limit:
                counts[each.kind] += 1
                chosen.append(
                    render.made(
                        each, render.WHOLE, Section.PINNED, 0.0, f"every {each.kind} is pinned by the configuration"
                    )
                )
        return chosen


def _again(each: Line, place: int, line: Line) -> Line:
    """As long as it stands in this turn's block."""
    rows = {render.row(render.shown(each, tokens)): tokens for tokens in reversed(render.LENGTHS)}
    return replace(each, place=place, length=rows.get(render.row(line), render.LONGEST))
