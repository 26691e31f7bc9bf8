"""The search itself: candidates by words and by meaning, authorised, ranked, and only then read.

Ids come from the indexes; whatever is looked up for them is looked up within the reach of the query, in SQL. Text is
read of the few that may be shown. Nothing but SQL runs in a transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from recollect import note
from recollect.search import ranking, signals
from recollect.search.fold import folded
from recollect.search.meaning import Question, ask
from recollect.search.memories import MemorySearch
from recollect.search.query import Query, parse
from recollect.search.ranking import BY_MODEL, WEIGHTS, Flags, Floats, Places, Relevance, Weights
from recollect.search.snippet import recogniser, snippet
from recollect.search.values import Hit, Wanted, Why
from recollect.search.vectors.vectors import Vectors
from recollect.store import memories
from recollect.store import search as rows
from recollect.store.database import Database, Transaction
from recollect.store.search import ENTRIES, TEXTS, Counts, Found, Mark, Matches, Reach
from recollect.store.vectors import Kind, Ref

if TYPE_CHECKING:
    from recollect.store.search import Ids

BUDGET = 100_000  # postings that one query reads
_POOL = 120  # entries that are looked at closely; more, where many hits are wanted
_NARROW_POOL = 4_000  # the same, where most may fall to a filter
_NEAREST = 100  # documents nearest in meaning; the same
_READ = 40  # texts that are read at the least
_WIDER = 10  # times as many of all these, where all that was read is copies of a few texts
_WIDEST = 4_000  # at most, unless more hits are wanted
_FAR = 0.2  # similarity of what is not among the nearest


@dataclass(frozen=True, slots=True)
class Judged:
    """Documents side by side."""

    words: tuple[str, ...]
    present: Flags  # words × documents
    known: Flags  # similarity was measured
    parts: Relevance


class Candidate(NamedTuple):
    """A document that may be shown, before its text is read. A tuple: a query makes hundreds."""

    key: tuple[bool, int]  # whether it is an entry; its row
    judged: Judged
    place: int  # among those
    relevance: float
    first_score: float  # with the time it was said at, without what only its text can tell

    def why(self, boosts: dict[str, float]) -> Why:
        judged, place, parts = self.judged, self.place, self.judged.parts
        return Why(
            words=float(parts.own[place]),
            around=float(parts.around[place]),
            meaning=float(parts.meaning[place]),
            meaning_around=float(parts.meaning_around[place]),
            known=bool(judged.known[place]),
            relevance=float(self.relevance),
            matched=tuple(word for word, there in zip(judged.words, judged.present[:, place], strict=True) if there),
            boosts=boosts,
        )


class Search:
    def __init__(self, database: Database, vectors: Vectors | None, weights: Weights | None = None) -> None:
        """Without vectors by words alone; without weights by those of the model that serves."""
        self._database = database
        self._vectors = vectors
        self._weights = weights
        self._counts: Counts = {}
        self.memories = MemorySearch(database, vectors)

    def run(self, text: str, reach: Reach, wanted: Wanted, limit: int, now: datetime) -> list[Hit]:
        query = parse(text, now)
        asked = ask(self._vectors, text, reach)
        by = self._weights or BY_MODEL.get(asked.model if asked else "", WEIGHTS)
        for times in (1, _WIDER, _WIDER * _WIDER):
            most = _many(_READ, limit, times)
            best = self._best(query, asked, reach, wanted, limit, times, by)[:most]
            hits = self._show(query, best, reach, wanted, limit, now, by)
            if len(hits) >= limit or len(best) < most:
                break
        return hits

    def _best(
        self,
        query: Query,
        asked: Question | None,
        reach: Reach,
        wanted: Wanted,
        limit: int,
        times: int,
        by: Weights,
    ) -> list[Candidate]:
        near = asked.nearest(wanted.kinds, _many(_NEAREST, limit, times)) if asked else {}
        pool: list[Mark] = []
        candidates: list[Candidate] = []
        documents = 0
        with self._database.read() as tx:
            if Kind.ENTRY in wanted.kinds:
                entries = rows.matches(tx, reach, ENTRIES, list(query.words), BUDGET, self._counts)
                documents += entries.total
                size = _many(_POOL, limit, times)
                pool = _pool(tx, reach, wanted, size, *_from_afar(query, entries, near, by))
            if wanted.kinds - {Kind.ENTRY}:
                texts = rows.matches(tx, reach, TEXTS, list(query.words), BUDGET, self._counts)
                documents += texts.total
                places = rows.text_ids(tx, reach, [ref for ref in near if ref.kind is not Kind.ENTRY])
                candidates += _allowed(tx, reach, wanted, _texts(query, texts, places, near, by))
        if pool:
            candidates += _entries(query, entries, pool, asked, wanted, by)
        return _relevant(candidates, by, documents)

    def _show(
        self,
        query: Query,
        best: Sequence[Candidate],
        reach: Reach,
        wanted: Wanted,
        limit: int,
        now: datetime,
        by: Weights,
    ) -> list[Hit]:
        """Reads the best, and lets what their text says have its say."""
        with self._database.read() as tx:
            found = rows.entries(tx, reach, [each.key[1] for each in best if each.key[0]])
            found += rows.texts(tx, reach, [each.key[1] for each in best if not each.key[0]], sorted(wanted.kinds))
        found = [
            each
            for each in found
            if wanted.allows(each.role or wanted.role, each.source, each.timestamp, each.source_file)
        ]
        judged = {each.key: each for each in best}
        scored = []
        for each, boosts in zip(found, signals.boosts(query, found, now, by), strict=True):
            candidate = judged[each.kind is Kind.ENTRY, each.id]
            scored.append((candidate.relevance + sum(boosts.values()), each, candidate, boosts))
        scored.sort(key=lambda row: (-row[0], row[1].kind, row[1].ref))
        told = self._told(reach, [row[1] for row in scored])
        scored = [row for row in scored if row[1].kind is Kind.MEMORY or row[1].session_id not in told]
        is_wanted = recogniser(query.words)
        return [
            _hit(is_wanted, *row, tuple(other[1].ref for other in also))
            for row, also in folded(scored, lambda row: row[1].text, limit)
        ]

    def _told(self, reach: Reach, found: Sequence[Found]) -> set[str]:
        """The notes that memories among these were made by: a memory stands for them, and says it once."""
        ids = [each.ref for each in found if each.kind is Kind.MEMORY]
        if not ids or not any(each.kind is not Kind.MEMORY and note.is_session(each.session_id) for each in found):
            return set()
        with self._database.read() as tx:
            held = memories.find(tx, reach.owner, ids)
        return {uuid for each in held for _, uuid in each.sources if note.is_session(uuid)}


def _many(usual: int, limit: int, times: int) -> int:
    least = max(usual, 2 * limit)
    return max(least, min(times * least, _WIDEST))


def _from_afar(query: Query, matched: Matches, near: Mapping[Ref, float], by: Weights) -> tuple[Ids, Floats]:
    """Every entry with a word of the query or near its meaning, and a first guess at its score."""
    rarities = _rarities(query, matched)
    close = {int(ref): value for (kind, ref, _), value in near.items() if kind is Kind.ENTRY}
    lists = [*matched.found.values(), np.array(sorted(close), np.int64)]
    ids, place = np.unique(np.concatenate(lists), return_inverse=True)
    weights = np.repeat([*rarities, 0.0], [len(each) for each in lists])
    words = np.bincount(place, weights, len(ids)) / max(float(rarities.sum()), 1e-9)
    meaning = np.full(len(ids), _FAR)
    meaning[np.searchsorted(ids, lists[-1])] = [close[int(each)] for each in lists[-1]]
    return ids, ranking.spread(ids, (by.own + by.around) * words) + (by.meaning + by.meaning_around) * meaning


def _rarities(query: Query, matched: Matches) -> Floats:
    counts = np.array([len(ids) for ids in matched.found.values()], np.float64)
    return ranking.rarity(matched.total, counts, np.array([query.words[word] for word in matched.found], np.float64))


def _pool(tx: Transaction, reach: Reach, wanted: Wanted, size: int, ids: Ids, scores: Floats) -> list[Mark]:
    """The entries that look best from afar, of equals the newest, with those said around them."""
    best = ids[np.lexsort((-ids, -scores))]
    if wanted.narrow:
        best = best[:_NARROW_POOL]
        fit = {
            mark.id
            for mark in rows.marks_of(tx, reach, best)
            if wanted.allows(mark.role, mark.source, mark.timestamp, mark.source_file)
        }
        best = best[np.isin(best, list(fit))]
    return rows.marks_of(tx, reach, rows.around(tx, reach, best[:size].tolist(), ranking.WINDOW))


def _entries(
    query: Query,
    matched: Matches,
    pool: Sequence[Mark],
    asked: Question | None,
    wanted: Wanted,
    by: Weights,
) -> list[Candidate]:
    ids = np.array([mark.id for mark in pool], np.int64)
    refs = [Ref(Kind.ENTRY, str(mark.id)) for mark in pool]
    known = asked.similarities(refs) if asked else {}
    judged = _judge(
        query,
        matched,
        ids,
        np.array([mark.size for mark in pool], np.float64),
        np.array([known.get(ref, np.nan) for ref in refs], np.float64),
        ranking.neighbourhood([(mark.source_file, mark.session_id) for mark in pool]),
    )
    total = judged.parts.total(by)
    fit = [(place, pool[place], float(total[place])) for place in np.flatnonzero(total >= by.floor).tolist()]
    return [
        Candidate((True, mark.id), judged, place, relevance, relevance + signals.in_time(query, mark.timestamp, by))
        for place, mark, relevance in fit
        if wanted.allows(mark.role, mark.source, mark.timestamp, mark.source_file)
    ]


def _texts(
    query: Query, matched: Matches, places: Mapping[Ref, int], near: Mapping[Ref, float], by: Weights
) -> list[Candidate]:
    """Summaries and memories stand for themselves: they have no neighbours, and their length is no reason for doubt."""
    similar = {place: near[ref] for ref, place in places.items()}
    ids = np.unique(np.concatenate([*matched.found.values(), np.array(list(similar), np.int64)]))
    known = np.array([similar.get(int(each), np.nan) for each in ids], np.float64)
    judged = _judge(query, matched, ids, np.zeros(len(ids)), known, np.full((len(ids), 1), -1))
    total = judged.parts.total(by)
    return [
        Candidate((False, int(each)), judged, place, float(total[place]), float(total[place]))
        for place, each in enumerate(ids)
        if total[place] >= by.floor
    ]


def _allowed(tx: Transaction, reach: Reach, wanted: Wanted, candidates: list[Candidate]) -> list[Candidate]:
    """What a filter lets through, before only the best are kept."""
    if not wanted.narrow:
        return candidates
    best = sorted(candidates, key=lambda each: -each.relevance)[:_NARROW_POOL]
    times = rows.text_times(tx, reach, [each.key[1] for each in best])
    fit = {number for number, when, source in times if wanted.allows(wanted.role, source, when, "")}
    return [each for each in best if each.key[1] in fit]


def _judge(query: Query, matched: Matches, ids: Ids, sizes: Floats, similarity: Floats, neighbours: Places) -> Judged:
    present: Flags = np.zeros((len(matched.found), len(ids)), np.bool_)
    for row, found in zip(present, matched.found.values(), strict=True):
        if len(found):
            row[:] = found[np.minimum(np.searchsorted(found, ids), len(found) - 1)] == ids
    parts = ranking.relevance(_rarities(query, matched), present, sizes, similarity, neighbours)
    return Judged(tuple(matched.found), present, ~np.isnan(similarity), parts)


def _relevant(candidates: Sequence[Candidate], by: Weights, documents: int) -> list[Candidate]:
    fit = ranking.above_floor(np.array([each.relevance for each in candidates], np.float64), by, documents)
    good = [each for each, passes in zip(candidates, fit, strict=True) if passes]
    return sorted(good, key=lambda each: (-each.first_score, each.key[0], -each.key[1]))


def _hit(
    is_wanted: Callable[[str], bool],
    score: float,
    found: Found,
    candidate: Candidate,
    boosts: dict[str, float],
    also: tuple[str, ...],
) -> Hit:
    shown, marked = snippet(found.text, is_wanted)
    return Hit(
        id=found.ref,
        kind=found.kind,
        memory_kind=found.memory_kind,
        score=round(float(score), 4),
        text=found.text,
        snippet=shown,
        marks=marked,
        session_id=found.session_id,
        session_key=found.session_key,
        source=found.source,
        source_file=found.source_file,
        project_id=found.project_id,
        role=found.role,
        timestamp=found.timestamp,
        path=found.path,
        entry_uuid=found.ref if found.kind is Kind.ENTRY else "",
        revision=found.revision,
        also=also,
        why=candidate.why(boosts),
    )
