"""The verbs with which a person goes through what is kept, page by page, and says what is to be done about it.

Command line and page call these; VERBS names them all. A list is continued by the cursor that came with its last page,
so that what is written meanwhile neither repeats nor hides a row.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from threading import local
from typing import TYPE_CHECKING

from recollect.errors import NotFound, UsageError
from recollect.hand import PERSON, Author
from recollect.parts import settled
from recollect.records import Records
from recollect.store import listing
from recollect.store.listing import FACETS, LONGEST, Within
from recollect.types import Conversation, Remembered, Timestamp, timestamp

if TYPE_CHECKING:
    from recollect.artifacts.lineage import Shown, Talk
    from recollect.search.values import Hit
    from recollect.store.database import Transaction
    from recollect.store.entries import FileKey, Line
    from recollect.store.injections import Injected
    from recollect.types import Part

PAGE = 50  # rows, unless somebody wants another number
_FOUND = 200  # memories that a query is answered with, at most
_SHORT = 2  # characters of a query that is looked for inside words
_COUNTED = 4  # lists whose counts a thread keeps
_AROUND = 2  # messages on either side of the one that a memory came from
_TOLD = 50  # times that a memory was given, the last ones
_WEEK, _MONTH = timedelta(days=7), timedelta(days=30)
_REVISION = re.compile(r"-r([1-9][0-9]{0,8})$", re.ASCII)
_HOUR = len("2026-03-02T09")  # ages are told to the hour: what is counted stays the same for as long
_CURSOR = re.compile(r"([0-9TZ:.-]{20,30})~([\w.-]{1,100})", re.ASCII)


@dataclass(frozen=True, slots=True)
class Verb:
    """One of them: how the command line calls it, and whether it changes something."""

    name: str
    command: str
    writes: bool = False


VERBS = (
    Verb("browse", "memories"),
    Verb("inbox", "inbox"),
    Verb("record", "show"),
    Verb("talks", "sessions"),
    Verb("read", "sessions"),
    Verb("seen", "inbox", writes=True),
    Verb("correct", "correct", writes=True),
    Verb("pin", "pin", writes=True),
    Verb("unpin", "unpin", writes=True),
    Verb("feedback", "wrong", writes=True),
    Verb("move", "move", writes=True),
    Verb("undo", "undo", writes=True),
    Verb("forget", "forget", writes=True),
)


@dataclass(frozen=True, slots=True)
class Card:
    """A memory in a list."""

    memory: Remembered
    agent: str  # whose transcript it comes from
    used: int
    marks: tuple[tuple[int, int], ...] = ()  # where the query's words stand in its text
    why: str = ""  # it was found, in a sentence


@dataclass(frozen=True, slots=True)
class Memories:
    """A page of a list of memories."""

    cards: tuple[Card, ...]
    total: int
    facets: Mapping[str, Mapping[str, int]]  # facet → value → memories, if that value were chosen
    following: str  # cursor of the next page; empty: this is the last


@dataclass(frozen=True, slots=True)
class Spoken:
    """A message as it is read: its parts by author, and the memories that were learnt from it."""

    line: Line
    parts: tuple[Part, ...]
    learnt: tuple[Remembered, ...] = ()
    is_cited: bool = False  # it is the message that a memory came from


@dataclass(frozen=True, slots=True)
class Evidence:
    """The message that a memory came from, among its neighbours."""

    talk: Talk
    messages: tuple[Spoken, ...]
    origin: str  # file, line and byte of the agent's transcript


@dataclass(frozen=True, slots=True)
class Record:
    """One memory with everything about it."""

    memory: Remembered
    shown: Shown
    is_wrong: bool
    evidence: tuple[Evidence, ...]
    told: tuple[tuple[str, Injected], ...]  # (session, line) of where it was given, the last first


@dataclass(frozen=True, slots=True)
class Talks:
    """A page of conversations, newest first."""

    talks: tuple[Talk, ...]
    following: str


@dataclass(frozen=True, slots=True)
class Reading:
    """A page of one conversation."""

    talk: Talk
    messages: tuple[Spoken, ...]
    following: str
    memories: tuple[Remembered, ...] = field(default=())  # learnt in it


class Browse(Records):
    """Lists, single records, and what a person does with them."""

    @settled
    def browse(
        self,
        query: str = "",
        chosen: Mapping[str, str] | None = None,
        *,
        wrong: bool = False,
        after: str = "",
        limit: int = PAGE,
    ) -> Memories:
        """Current memories, newest first, or those that a query finds, best first. `chosen` is a value by facet; with
        `wrong` those alone that were called wrong, which no other list has."""
        chosen = _checked(chosen or {})
        within, only = self._within(wrong=wrong)
        if query.strip() or only is not None:
            return self._found(query.strip(), chosen, within, only, limit, after)
        return self._page(chosen, within, after, limit)

    @settled
    def inbox(self, *, after: str = "", limit: int = PAGE) -> Memories:
        """Current memories that nobody looked at since they say what they say, but for what a person noted."""
        within, _ = self._within(unseen=True)
        return self._page({}, within, after, limit)

    def seen(self, names: Sequence[str] = (), *, again: bool = False) -> int:
        """Takes memories out of the inbox, or all of it where none is named; puts them back with `again`. How many.
        A name may say which revision was looked at, as in m-qgyxbr4t-r2: a newer one stays."""
        looked = [(self.memory(each).id, _REVISION.search(each)) for each in names]
        told = [(name, int(shown[1]) if shown else self.memory(name).revision) for name, shown in looked]
        if not names:
            told = [(each.memory.id, each.memory.revision) for each in self._unseen()]
        with self.database.write() as tx:
            if again:
                return listing.unsee(tx, self.owner, [name for name, _ in told])
            return listing.see(tx, self.owner, told, timestamp(self.clock()))

    def record(self, name: str) -> Record:
        """A memory with its history, the messages it came from, and where it was told. To look is no use of it."""
        from recollect.store import injections

        memory = self.memory(name)
        shown = self.show(memory.id)
        with self.database.read() as tx:
            told = injections.of_memory(tx, self.owner, memory.id, _TOLD)
            evidence = tuple(self._evidence(tx, memory, each) for each in shown.conversations if each.entries)
        return Record(memory, shown, bool(shown.record["called_wrong"]), evidence, tuple(told))

    @settled
    def talks(self, project: str | None = None, *, after: str = "", limit: int = PAGE) -> Talks:
        """Conversations with agents, newest first, with what was done and left in them."""
        from recollect.artifacts import lineage
        from recollect.store import artifacts, conversations, stage1

        before = _cursor(after)
        with self.database.read() as tx:
            hidden = self.ground.unlisted(tx)
            found = conversations.search(
                tx,
                self.owner,
                project=project,
                user="",
                limit=_bounded(limit) + 1,
                without=hidden.sessions,
                before=(before[0], _number(before[1])) if before else None,
                agents=True,
            )
            keys = [each.session_key for each in found[:limit]]
            files = artifacts.of_keys(tx, self.owner, keys)
            told = stage1.summaries(tx, self.owner, keys)
        shown = [
            lineage.talk(each, files.get(each.session_key, ()), (), told.get(each.session_key, ""))
            for each in found[:limit]
        ]
        last = found[limit - 1] if len(found) > limit else None
        return Talks(tuple(shown), f"{last.last_message_at}~{last.id}" if last else "")

    @settled
    def read(self, name: str, *, after: str = "", limit: int = PAGE, holding: str = "") -> Reading:
        """The messages of a conversation in order, a page at a time, each with what was learnt from it; with `holding`
        those alone that contain this text."""
        from recollect.store import entries, memories

        shown = self._conversation(name)
        key = entries.FileKey(self.owner, shown.source, shown.source_file)
        span, at = (shown.first_message_at, shown.last_message_at), _place(after)
        like = listing.like(holding.strip()) if holding.strip() else ""
        with self.database.read() as tx:
            rows = entries.page(tx, key, shown.session_id, span, _bounded(limit) + 1, after=at, like=like)
            stated = memories.of_session(tx, self.owner, shown.session_key)
            held = memories.current(memories.find(tx, self.owner, [each.id for each in stated]))
            talk = self._talk(tx, shown)
        learnt = {uuid: each for each in stated for _, uuid in each.sources}
        now = {each.id: each for each in held}
        said = [
            _spoken(line, authors, [now[learnt[line.uuid].id]] if line.uuid in learnt else []) for line, authors in rows
        ]
        last = said[limit - 1].line if len(said) > limit else None
        following = f"{last.timestamp}~{last.generation}.{last.line_offset}" if last else ""
        return Reading(talk, tuple(said[:limit]), following, tuple(held))

    def move(
        self,
        name: str,
        *,
        project: Path | str | None = None,
        everywhere: bool = False,
        revision: int = 0,
        author: Author = PERSON,
    ) -> Remembered:
        """The memory holds in another project from now on, or everywhere; Outdated where somebody saw another
        `revision` than it has."""
        if everywhere is bool(project):
            raise UsageError("where is it to hold?", hint="Name a project, or say everywhere.")
        return self._embedded(self._noting.move(name, project, revision=revision, author=author))

    def undo(self, name: str, *, revision: int = 0, author: Author = PERSON) -> Remembered:
        """Takes the last change of a memory back: a correction, a pin, a move, or that it was called wrong."""
        return self._embedded(self._noting.undo(name, revision=revision, author=author))

    def projects(self) -> list[tuple[str, int]]:
        """(project id, conversations) of those that something was said in."""
        with self.database.read() as tx:
            return listing.projects(tx, self.owner)

    def activity(self, since: Timestamp) -> list[tuple[str, int]]:
        """(day, messages) of what was said to agents since then."""
        with self.database.read() as tx:
            return listing.days(tx, self.owner, since)

    # What a list is made of

    def _within(self, *, wrong: bool = False, unseen: bool = False) -> tuple[Within, list[str] | None]:
        """What may be listed, and ids that it is narrowed to."""
        from recollect.store import feedback

        now = self.clock()
        with self.database.read() as tx:
            judged = feedback.wrong(tx, self.owner, listing.judged(tx, self.owner))
            hidden = set(self.ground.unlisted(tx).memories)
        without = frozenset(hidden if wrong else hidden | judged)
        within = Within(timestamp(now - _WEEK)[:_HOUR], timestamp(now - _MONTH)[:_HOUR], without, unseen)
        return within, sorted(judged) if wrong else None

    def _page(self, chosen: Mapping[str, str], within: Within, after: str, limit: int) -> Memories:
        pulse = self.database.pulse()
        with self.database.read() as tx:
            rows = listing.page(tx, self.owner, within, chosen, _cursor(after), _bounded(limit) + 1)
            counted = self._counted(tx, within, pulse)
            listed = listing.among(tx, self.owner, within, [name for name, _ in rows[:limit]])
            cards = self._cards(tx, [listed[name] for name, _ in rows[:limit]])
        following = f"{rows[limit - 1][1]}~{rows[limit - 1][0]}" if len(rows) > limit else ""
        return Memories(cards, _total(counted, chosen), facets_of(counted, chosen), following)

    def _counted(self, tx: Transaction, within: Within, pulse: str) -> Mapping[tuple[str, ...], int]:
        """Counts of facets: anew where anything was changed since this thread counted. `pulse` is from before `tx`."""
        known: tuple[str, dict[Within, dict[tuple[str, ...], int]]] = getattr(self._last_counts, "known", ("", {}))
        if known[0] != pulse or len(known[1]) > _COUNTED:
            known = self._last_counts.known = (pulse, {})
        if within not in known[1]:
            known[1][within] = listing.counts(tx, self.owner, within)
        return known[1][within]

    @cached_property
    def _last_counts(self) -> local:
        return local()

    def _found(
        self, query: str, chosen: Mapping[str, str], within: Within, only: list[str] | None, limit: int, after: str
    ) -> Memories:
        if after and not re.fullmatch(r"[0-9]{1,4}", after):
            raise UsageError("that is no place in this list", hint="Begin at its first page.")
        hits = {each.id: each for each in self._hits(query)} if query else {}
        with self.database.read() as tx:
            ids = list(hits) if query else list(only or ())
            if len(query) >= _SHORT:
                ids += [one for one in listing.holding(tx, self.owner, within, query, _FOUND) if one not in hits]
            if only is not None:
                ids = [each for each in ids if each in only]
            listed = listing.among(tx, self.owner, within, ids)
            rows = [listed[each] for each in ids if each in listed][:_FOUND]
            counted = Counter(each.facets for each in rows)
            rows = [each for each in rows if _is(each.facets, chosen)]
            begin = int(after or 0)
            cards = self._cards(tx, rows[begin : begin + limit], hits, query)
        following = str(begin + limit) if len(rows) > begin + limit else ""
        return Memories(cards, len(rows), facets_of(counted, chosen), following)

    def _hits(self, query: str) -> list[Hit]:
        from recollect.search.request import reach, wanted
        from recollect.search.values import ALL_PROJECTS

        with self.database.read() as tx:
            hidden = self.ground.unlisted(tx)
        within = reach(self.owner, ALL_PROJECTS, self.project, "", hidden)
        return self._search.run(query, within, wanted(["memory"]), _FOUND, self.clock())

    def _cards(
        self, tx: Transaction, rows: Sequence[listing.Listed], hits: Mapping[str, Hit] | None = None, query: str = ""
    ) -> tuple[Card, ...]:
        from recollect.store import memories

        ids = [each.id for each in rows]
        held = {each.id: each for each in memories.current(memories.find(tx, self.owner, ids))}
        uses = memories.uses_of(tx, self.owner, ids)
        agents = {each.id: each.facets[FACETS.index("agent")] for each in rows}
        hits = hits or {}
        return tuple(
            Card(
                held[each],
                agents[each],
                uses[each].count if each in uses else 0,
                marked(held[each].text, hits[each].why.matched if each in hits else (), query),
                _why(hits.get(each), query),
            )
            for each in ids
            if each in held
        )

    def _unseen(self) -> list[Card]:
        """All of the inbox."""
        found: list[Card] = []
        after = ""
        while True:
            one = self.inbox(after=after, limit=LONGEST)
            found += one.cards
            after = one.following
            if not after:
                return found

    # What a conversation is made of

    def _conversation(self, name: str) -> Conversation:
        """By its key, or the beginning of it."""
        from recollect.store import conversations

        with self.database.read() as tx:
            found = conversations.of_key(tx, self.owner, name) or conversations.with_key(tx, self.owner, name)
        if not name or not found or len({each.session_key for each in found}) > 1:
            raise NotFound(f"no conversation `{name}`", hint="`recollect sessions` lists them.")
        return max(found, key=lambda each: each.entry_count)

    def _talk(self, tx: Transaction, one: Conversation) -> Talk:
        from recollect.artifacts import lineage
        from recollect.store import artifacts, stage1

        files = artifacts.of_keys(tx, self.owner, [one.session_key]).get(one.session_key, [])
        told = stage1.summaries(tx, self.owner, [one.session_key])
        return lineage.talk(one, files, (), told.get(one.session_key, ""))

    def _evidence(self, tx: Transaction, memory: Remembered, talk: Talk) -> Evidence:
        """The first message of a conversation that the memory rests on, with those around it."""
        from recollect.store import entries

        cited = {uuid for key, uuid in memory.sources}
        said = next((each for each in talk.entries if each.uuid in cited), talk.entries[0])
        key = entries.FileKey(self.owner, talk.source, talk.source_file)
        (line,) = entries.lines(tx, self.owner, talk.source, [said.uuid])
        at = (line.timestamp, line.generation, line.line_offset)
        span = (talk.first_message_at, talk.last_message_at)
        before = entries.page(tx, key, talk.session_id, span, _AROUND, before=at)
        after = entries.page(tx, key, talk.session_id, span, _AROUND, after=at)
        told = self._written(tx, key, line)
        spoken = [_spoken(one, authors) for one, authors in before]
        spoken += [_spoken(line, told, [memory], is_cited=True)]
        spoken += [_spoken(one, authors) for one, authors in after]
        where = (
            f"{said.origin.file}, {f'line {said.origin.line}, ' if said.origin.line else ''}byte {said.origin.offset:,}"
        )
        return Evidence(talk, tuple(spoken), where)

    def _written(self, tx: Transaction, key: FileKey, line: Line) -> str:
        """The parts of a message, each with its author."""
        from recollect.store import entries

        return entries.authors(tx, self.owner, line.source, [line.uuid]).get(line.uuid, ("", ""))[0]


def facets_of(counted: Mapping[tuple[str, ...], int], chosen: Mapping[str, str]) -> dict[str, dict[str, int]]:
    """Facet → value → how many memories that value would leave, with what is chosen by the others; the most first.
    Pure."""
    found: dict[str, dict[str, int]] = {}
    for place, name in enumerate(FACETS):
        others = {each: value for each, value in chosen.items() if each != name}
        values: Counter[str] = Counter()
        for facets, number in counted.items():
            if _is(facets, others):
                values[facets[place]] += number
        found[name] = dict(sorted(values.items(), key=lambda each: (-each[1], each[0])))
    return found


def marked(text: str, matched: Sequence[str], query: str) -> tuple[tuple[int, int], ...]:
    """Where words that were matched, or the query itself, stand in a text. Pure."""
    words = sorted({*matched, *query.split(), query} - {""}, key=len, reverse=True)
    if not words:
        return ()
    found = re.finditer("|".join(map(re.escape, words)), text, re.IGNORECASE)
    return tuple((each.start(), each.end()) for each in found if each.end() > each.start())


def _why(hit: Hit | None, query: str) -> str:
    if hit is None:
        return f"it contains “{query}”" if query else ""
    meaning = f", similar in meaning by {hit.why.meaning:.2f}" if hit.why.known else ""
    said = f"{len(hit.why.matched)} of its words ({', '.join(hit.why.matched)})" if hit.why.matched else "no word"
    return f"relevance {hit.why.relevance:.2f}: {said} of the query{meaning}"


def _total(counted: Mapping[tuple[str, ...], int], chosen: Mapping[str, str]) -> int:
    return sum(number for facets, number in counted.items() if _is(facets, chosen))


def _is(facets: Sequence[str], chosen: Mapping[str, str]) -> bool:
    return all(facets[FACETS.index(name)] == value for name, value in chosen.items())


def _spoken(line: Line, authors: str, learnt: Sequence[Remembered] = (), *, is_cited: bool = False) -> Spoken:
    from recollect.types import Message, Role

    message = Message(line.uuid, Role(line.role), line.content, authors=authors)
    return Spoken(line, message.parts, tuple(learnt), is_cited)


def _checked(chosen: Mapping[str, str]) -> dict[str, str]:
    if unknown := sorted(set(chosen) - set(FACETS)):
        raise UsageError(f"nothing is counted by `{unknown[0]}`", hint=f"There are: {', '.join(FACETS)}.")
    return dict(chosen)


def _bounded(limit: int) -> int:
    if not 1 <= limit <= LONGEST:
        raise UsageError(f"a page has 1 to {LONGEST} rows, not {limit}")
    return limit


def _cursor(text: str) -> tuple[str, str] | None:
    """(time, name) that a page ended with."""
    if not text:
        return None
    found = _CURSOR.fullmatch(text)
    if found is None:
        raise UsageError("that is no place in this list", hint="Begin at its first page.")
    return found[1], found[2]


def _number(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,18}", text):
        raise UsageError("that is no place in this list", hint="Begin at its first page.")
    return int(text)


def _place(text: str) -> tuple[str, int, int] | None:
    """(time, generation, offset) of the last message of a page."""
    found = _cursor(text)
    if found is None:
        return None
    generation, _, offset = found[1].partition(".")
    return found[0], _number(generation), _number(offset)
