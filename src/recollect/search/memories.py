"""Which memories may have to do with some texts, and what speaks for each. Evidence only: whoever asks judges it.

Candidates come by words and by meaning, from the indexes; whatever is told of one is looked up within the reach, in
SQL, and a memory that came by its words is compared in meaning, too. Nothing is read but the few that are asked for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log1p

import numpy as np

from recollect.models.embed.base import Matrix
from recollect.search.meaning import Question, ask
from recollect.search.vectors.vectors import Vectors
from recollect.store import search as rows
from recollect.store.database import Database
from recollect.store.search import EVERYWHERE, TEXTS, Counts, Found, Matches, Reach
from recollect.store.vectors import Kind, Ref

_BUDGET = 20_000  # postings that one question reads: common words are no evidence
_BY_WORDS = 80  # candidates by their words
_NEAREST = 50  # by their meaning, for each text
_MANY = 500  # with fewer documents, that a word is in few of them says little


@dataclass(frozen=True, slots=True)
class Clue:
    """What speaks for one memory."""

    row: int  # of what is indexed
    everywhere: bool  # it holds in every project
    similar: tuple[float | None, ...]  # to each text; None: not known
    words: frozenset[str]  # of those asked for, that it contains
    told: bool = False  # somebody said when it matters
    ref: str = ""  # the memory's id


@dataclass(frozen=True, slots=True)
class Clues:
    model: str  # by which meanings were compared; empty: by none
    vector: Matrix | None  # of the first text
    rarity: dict[str, float]  # word → 0 to 1, whatever the number of memories; a word nobody uses is the rarest
    each: list[Clue]


class MemorySearch:
    def __init__(self, database: Database, vectors: Vectors | None) -> None:
        self._database = database
        self._vectors = vectors
        self._counts: Counts = {}

    def clues(self, texts: Sequence[str], words: Mapping[str, float], reach: Reach) -> Clues:
        """`words` are looked for with these weights, which choose the candidates where there are many."""
        asked = [ask(self._vectors, text, reach) for text in texts]
        near = [one.nearest(frozenset({Kind.MEMORY}), _NEAREST) if one else {} for one in asked]
        with self._database.read() as tx:
            matched = rows.matches(tx, reach, TEXTS, list(words), _BUDGET, self._counts)
            rarity = _rarity(matched)
            by_words = _best(matched, {word: words[word] * rarity[word] for word in rarity}, _BY_WORDS)
            by_meaning = rows.text_ids(tx, reach, {ref for each in near for ref in each})
            marks = rows.memory_marks(tx, reach, sorted({*by_words, *by_meaning.values()}))
        refs = [Ref(Kind.MEMORY, mark.ref) for mark in marks]
        known = [_known(one, found, refs) for one, found in zip(asked, near, strict=True)]
        held = {word: frozenset(ids.tolist()) for word, ids in matched.found.items()}
        return Clues(
            next((one.model for one in asked if one), ""),
            asked[0].vector(Kind.MEMORY) if asked and asked[0] else None,
            rarity,
            [
                Clue(
                    mark.id,
                    mark.project_id == EVERYWHERE,
                    tuple(each.get(ref) for each in known),
                    frozenset(word for word, ids in held.items() if mark.id in ids),
                    bool(mark.told),
                    mark.ref,
                )
                for mark, ref in zip(marks, refs, strict=True)
            ],
        )

    def read(self, found: Sequence[int], reach: Reach) -> dict[int, Found]:
        """The memories of these rows, as they hold now."""
        with self._database.read() as tx:
            return {each.id: each for each in rows.texts(tx, reach, found, [Kind.MEMORY])}


def _rarity(matched: Matches) -> dict[str, float]:
    """Words that were skipped are common, and left out."""
    many = max(matched.total, _MANY)
    full = log1p(many / 0.5)
    counts = {word: min(len(ids), many) for word, ids in matched.found.items()}
    return {word: log1p((many - count + 0.5) / (count + 0.5)) / full for word, count in counts.items()}


def _best(matched: Matches, worth: Mapping[str, float], most: int) -> list[int]:
    """Documents whose words are worth most; of equals the newest."""
    lists = [matched.found[word] for word in worth]
    if not lists:
        return []
    ids, place = np.unique(np.concatenate(lists), return_inverse=True)
    scores = np.bincount(place, np.repeat(list(worth.values()), [len(each) for each in lists]), len(ids))
    return [int(each) for each in ids[np.lexsort((-ids, -scores))[:most]]]


def _known(asked: Question | None, near: Mapping[Ref, float], refs: Sequence[Ref]) -> dict[Ref, float]:
    missing = [ref for ref in refs if ref not in near]
    return {**near, **(asked.similarities(missing) if asked and missing else {})}
