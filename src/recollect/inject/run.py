"""The stage as a whole: injectors for those who own a history, and the same selection for harnesses that own theirs.

A harness's history cannot be read, nor its blocks taken out: what a session was given is kept in the database, and
counts as visible until the harness says that it compacted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from types import MappingProxyType
from typing import Any

from recollect.blocks import without_memories
from recollect.errors import UsageError
from recollect.inject import render
from recollect.inject.asks import of_last_time, subject
from recollect.inject.brief import outcome_line
from recollect.inject.briefing import outcome_of, outcomes
from recollect.inject.contextual import Contextual
from recollect.inject.injector import EXCHANGES, Injector
from recollect.inject.plan import Seen, choose, visible
from recollect.inject.select import Selection
from recollect.inject.values import ALL, Exchange, Given, InjectorConfig, Line, Outcome, Section, configured, injected
from recollect.search.request import reach
from recollect.search.run import Search
from recollect.search.values import Scope
from recollect.store import artifacts, conversations, entries, injections, memories
from recollect.store.ground import Ground, Part
from recollect.store.injections import Injected
from recollect.text import estimate_tokens, is_utf8
from recollect.types import BINDING, Remembered, Role, timestamp

_SESSIONS = 20  # that are shown
_SESSIONS_ASKED = 3  # that are told of when a prompt asks for the last ones
_LISTED = 30  # memories, for a prompt that asks what is known of a subject
_RESERVED = 10  # one token in so many is kept for corrections and rules: nothing can be taken back for them
_LONGEST, _SHORTER = 3_000, 300  # bytes of what such a session did, and of what it left
_ENTRIES = 16  # of a session, in which its last exchanges are looked for


@dataclass(frozen=True, slots=True)
class Told:
    """What a session was given last."""

    session: str
    turn: int  # of a harness's session, its prompts until then; of an injector, its turns that had a block
    given_at: str
    visible: bool  # still
    given: Given


class Injection(Part):
    """`search` gives the search when it is first needed; `project_of` turns a path into a project id, `told` gives what
    an agent may be told of a scope, if anything."""

    def __init__(
        self,
        ground: Ground,
        project_of: Callable[[str | Path], str],
        search: Callable[[], Search],
        told: Callable[[Scope], Scope | None],
    ) -> None:
        super().__init__(ground)
        self._project_of = project_of
        self._search = search
        self._told = told

    def injector(
        self,
        scope: Scope,
        config: InjectorConfig | None = None,
        *,
        user: str = "",
        session: str = "",
        form: str = "",
        **overrides: Any,
    ) -> Injector:
        """As `Memory.injector` tells; `overrides` are its settings."""
        _check(session)
        if config is not None and not isinstance(config, InjectorConfig):
            raise UsageError(f"no configuration: {type(config).__name__}", hint="Pass settings by name: max_total=5.")
        selection = self._selection(scope, config, overrides, user)
        return Injector(selection, lambda given: self._save(session, given, prompts=1), form)

    def context(self, scope: Scope, prompt: str, session: str, exchanges: Sequence[Exchange], user: str = "") -> Given:
        """What a session would be given now. Changes nothing."""
        _check(session)
        if not isinstance(prompt, str):
            raise UsageError(f"a prompt is a text, not {type(prompt).__name__}", hint="At the start, an empty text.")
        selection, seen = self._selection(scope, user=user), self._seen(session, bool(prompt.strip()))
        exchanges = exchanges or self.exchanges(session, prompt)
        config = selection.config
        known = {name: revision for each in seen for name, revision in sorted(each.keys)}
        stale = [name for name, memory in selection.current(known).items() if memory.revision != known[name]]
        said = without_memories(prompt)  # a block that somebody pasted is not what is asked
        held = visible(seen, config)
        candidates = selection.candidates(said, exchanges, {name for name, _ in held}, stale, start=not prompt.strip())
        if not prompt.strip():  # all rules
            rules = sum(each.severity in BINDING for each in candidates)
            config = replace(config, max_total=max(config.max_total, rules))
        left = max(0, config.max_tokens_total - sum(each.tokens for each in seen if not each.start))
        room = min(config.max_tokens_per_block, left)
        reserve = max(0, room + config.max_tokens_total // _RESERVED - left)
        if subject(said):  # all that is known of it, as far as there is room
            config = replace(config, max_total=max(config.max_total, _LISTED))
        if is_of_last_time := of_last_time(said):
            candidates += selection.open_threads()
        given = choose(candidates, held, config, room, reserve, whole=True)
        return self._with_outcomes(given, selection.projects, held, room) if is_of_last_time else given

    def _with_outcomes(
        self, given: Given, projects: Sequence[str], held: Mapping[tuple[str, int], int], room: int
    ) -> Given:
        """With what the last sessions came to, as far as there is room, for a prompt that asks for it."""
        lines = list(given.lines)
        with self._database.read() as tx:
            found = [each for project in projects for each in outcomes(tx, self._ground, project)[:_SESSIONS_ASKED]]
        for each in found:
            told = [other.text for other in lines]
            lengths = (outcome_line(each, told, Section.OUTCOME, longest) for longest in (_LONGEST, _SHORTER))
            fits = (line for line in lengths if estimate_tokens(render.rendered([*lines, line])) <= room)
            if (each.session_key, ALL) not in held and (line := next(fits, None)) and line.text:
                lines.append(line)
        text = render.rendered(lines)
        return Given(text, estimate_tokens(text), tuple(lines), given.held)

    def give(
        self,
        scope: Scope,
        prompt: str,
        session: str,
        exchanges: Sequence[Exchange],
        later: Callable[[Callable[[], object]], object],
    ) -> Given:
        """The same, and it is kept that the session has it. A prompt is a turn."""
        given = self.context(scope, prompt, session, exchanges)
        later(lambda: self._save(session, given, prompts=int(bool(prompt.strip()))))
        return given

    def exchanges(self, session: str, prompt: str) -> tuple[Exchange, ...]:
        """What was said last in a session, as far as its transcript was read; the prompt itself is not among it."""
        if not session:
            return ()
        with self._database.read() as tx:
            near = conversations.with_key(tx, self._owner, f"{session}@")
            talks = [each for each in near if each.session_id == session]
            if not talks:
                return ()
            last = max(talks, key=lambda each: each.last_message_at)
            key = entries.FileKey(self._owner, last.source, last.source_file)
            said = entries.last_of_session(tx, key, last.session_id, _ENTRIES)
        return paired(said, prompt)

    def compacted(self, session: str) -> int:
        """The harness cleared or summed up its history; how many lines were visible until then."""
        _check(session)
        with self._database.write() as tx:
            return injections.hide(tx, self._owner, session)

    def last(self, session: str = "") -> list[Told]:
        """The blocks of a session, the last one first, or the last one of each of the last sessions; what was erased
        since is not in them."""
        _check(session)
        with self._database.read() as tx:
            names = [session] if session else injections.sessions(tx, self._owner, _SESSIONS)
            rows = {name: injections.lines(tx, self._owner, name) for name in names}
            ids = {line.memory_id for each in rows.values() for line in each}
            known = {(each.id, each.revision): each for each in memories.find(tx, self._owner, sorted(ids))}
            keys = sorted({line.memory_id for each in rows.values() for line in each if line.revision <= ALL})
            came = {key: outcome_of(talk) for key in keys for talk in artifacts.told_of(tx, self._owner, key)[:1]}
        blocks = [(name, list(own)) for name in names for _, own in groupby(rows[name], key=lambda each: each.block)]
        last = blocks[::-1] if session else [(name, own) for name, own in dict(blocks).items()]
        return [_told(name, own, known, came) for name, own in last]

    def _selection(
        self,
        scope: Scope,
        config: InjectorConfig | None = None,
        overrides: Mapping[str, Any] = MappingProxyType({}),
        user: str = "",
    ) -> Selection:
        chosen = configured(config or self._settings.config, overrides)
        with self._database.read() as tx:
            hidden = self._ground.unlisted(tx)
        within = reach(self._owner, scope, self._project_of, user, hidden)
        told = self._told(scope)
        if told not in (None, scope):
            within = reach(self._owner, told, self._project_of, user, hidden)
        found = Contextual(self._search().memories, chosen)
        return Selection(self._database, within, chosen, self._clock, found, off=told is None)

    def _seen(self, session: str, asked: bool) -> list[Seen]:
        """Blocks that the session was given and has not lost; a new prompt makes them a turn older."""
        if not session:
            return []
        with self._database.read() as tx:
            turns = injections.turns(tx, self._owner, session) + int(asked)
            rows = [each for each in injections.lines(tx, self._owner, session) if each.visible]
        found = []
        for _, group in groupby(rows, key=lambda each: each.block):
            own = list(group)
            keys = frozenset((each.memory_id, each.revision) for each in own)
            start = Section(own[0].section) in render.STARTS
            frame = estimate_tokens(render.START_FRAME if start else render.FRAME)
            found.append(Seen(turns - own[0].turn, frame + sum(each.tokens for each in own), keys, start))
        return found

    def _save(self, session: str, given: Given, *, prompts: int) -> None:
        with self._database.write() as tx:
            now = timestamp(self._clock())
            injections.save(tx, self._owner, session, now, injected(given.lines), prompts=prompts)


def _check(session: object) -> None:
    if not isinstance(session, str):
        raise UsageError(f"a session is a text, not {type(session).__name__}", hint="Pass its name, or an empty text.")
    if not is_utf8(session):
        raise UsageError("a session's name holds half a character", hint="Pass text that can be stored.")


def paired(said: Sequence[tuple[str, str]], prompt: str) -> tuple[Exchange, ...]:
    """(role, text) in order → the last exchanges."""
    found: list[Exchange] = []
    for role, text in said:
        if role == Role.USER:
            found.append(Exchange(text, ""))
        elif found:
            last = found[-1]
            found[-1] = Exchange(last.user, f"{last.assistant}\n{text}".strip())
    if found and not found[-1].assistant and found[-1].user.strip() == prompt.strip():
        found.pop()  # the transcript has it already
    return tuple(found[-EXCHANGES:])


def _told(
    session: str,
    rows: Sequence[Injected],
    known: Mapping[tuple[str, int], Remembered],
    came: Mapping[str, Outcome],
) -> Told:
    refs = render.short({each.memory_id for each in rows if each.revision > ALL})
    lines: list[Line] = []
    for each in rows:
        if memory := known.get((each.memory_id, each.revision)):
            lines.append(_line(each, memory, refs[each.memory_id]))
        elif outcome := came.get(each.memory_id):
            told = [line.text for line in lines]
            whole = outcome_line(outcome, told, Section(each.section), _LONGEST)
            lines.append(whole if whole.tokens == each.tokens else outcome_line(outcome, told, Section(each.section)))
    text = render.rendered(lines)
    given = Given(text, estimate_tokens(text), tuple(lines))
    return Told(session, rows[0].turn, rows[0].given_at, rows[0].visible, given)


def _line(each: Injected, memory: Remembered, ref: str) -> Line:
    """Shortened as it was then."""
    section = Section(each.section)
    if section in render.STARTS:
        return render.made(memory, render.WHOLE, section, each.score, each.reason, ref)
    every = (render.WHOLE, *render.LENGTHS)
    lengths = (made for tokens in every if (made := render.made(memory, tokens)).tokens == each.tokens)
    shown = next(lengths, render.made(memory))
    return replace(shown, section=section, score=each.score, reason=each.reason)
