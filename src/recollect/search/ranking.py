"""Why one document stands above another. Pure functions over arrays; no database, no model.

Relevance is a weighted mean of four things between 0 and 1, so that a floor means the same for every query: how much
of the query's words a text contains (by their rarity), the same for it and its neighbours together, its similarity in
meaning, and that of its neighbourhood. What is no evidence that a text is about the query (time, role, recency, use)
moves it up or down among the relevant, and cannot make it relevant.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log1p, log10

import numpy as np
from numpy.typing import NDArray

from recollect.models.embed.catalog import ARCTIC

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Places = NDArray[np.int64]

WINDOW = 2  # neighbours on either side


@dataclass(frozen=True, slots=True)
class Weights:
    """Fitted on two sets of questions about conversations (listwise, one half against the other), then rounded."""

    # relevance
    own: float = 1.0  # the query's words in the text
    around: float = 2.0  # in the text and its neighbours
    meaning: float = 2.8  # similarity of the text
    meaning_around: float = 1.5  # mean similarity of the text and its neighbours
    # what moves the relevant, in the same unit
    time: float = 1.7  # said at the time that the query names
    speaker: float = 0.6  # said by whom the query names
    role: float = 0.4  # said by the user, or by the assistant where the query asks for its words
    recency: float = 0.3
    exact: float = 0.8  # names, paths, versions and quotations stand there as typed
    memory: float = 0.7  # what was distilled stands above what was said
    summary: float = 0.5
    use: float = 0.3
    feedback: float = 0.5
    # the floor, as shares of full relevance
    gate: float = 0.31  # the best hit must be so relevant, else there is no answer
    tenfold: float = 0.0  # more with every tenfold of documents: of more strangers, the best comes nearer
    floor: float = 0.2  # and every further one at least so

    @property
    def full(self) -> float:
        return self.own + self.around + self.meaning + self.meaning_around


WEIGHTS = Weights()
# By the model that compares meanings. Fitted listwise on conversations, each judged by weights of the others, then with
# the gate on those and a large pool of sessions.
BY_MODEL = {
    ARCTIC: Weights(
        own=0.7,
        around=2.0,
        meaning=3.3,
        meaning_around=4.5,
        time=1.7,
        speaker=0.8,
        role=0.3,
        recency=0.2,
        exact=0.3,
        gate=0.22,
        tenfold=0.04,
    )
}

_MANY = 500  # with fewer documents, that a word is in none of them says little
_SHARPER = 1.25  # rare words count more than in proportion
_PLAIN_SIZE = 300.0  # bytes up to which a text's length is no reason for doubt
_OWN_LENGTH, _NEIGHBOUR_LENGTH = 0.3, 0.6
_UNKNOWN_BASE, _UNKNOWN_SLOPE = 0.25, 0.3  # meaning that is not known yet is guessed from the words
_RECENCY_DAYS = 90.0


@dataclass(frozen=True, slots=True)
class Relevance:
    """The four parts per document, and their weighted mean."""

    own: Floats
    around: Floats
    meaning: Floats
    meaning_around: Floats

    def total(self, by: Weights) -> Floats:
        words = by.own * self.own + by.around * self.around
        return np.asarray((words + by.meaning * self.meaning + by.meaning_around * self.meaning_around) / by.full)


def rarity(total: int, counts: Floats, weights: Floats) -> Floats:
    """How much each word tells: its inverse document frequency, sharpened."""
    many = np.maximum(max(total, _MANY), counts)
    idf = np.log1p((many - counts + 0.5) / (counts + 0.5))
    return np.asarray(weights * idf**_SHARPER, np.float64)


def relevance(rarities: Floats, present: Flags, sizes: Floats, similarity: Floats, neighbours: Places) -> Relevance:
    """`present` is words × documents; `similarity` is NaN where it is not known; `neighbours` is documents × places,
    -1 for none."""
    whole = max(float(rarities.sum()), 1e-9)
    short = np.minimum(1.0, _PLAIN_SIZE / np.maximum(sizes, 1.0))
    own = (rarities @ present) / whole * short**_OWN_LENGTH
    heard = present * short**_NEIGHBOUR_LENGTH
    padded = np.concatenate([heard, np.zeros((len(rarities), 1))], axis=1)
    around = (rarities @ np.maximum(heard, padded[:, neighbours].max(axis=2, initial=0.0))) / whole
    meaning = np.where(np.isnan(similarity), _UNKNOWN_BASE + _UNKNOWN_SLOPE * own, np.maximum(similarity, 0.0))
    others = np.concatenate([meaning, [0.0]])[neighbours]
    near = (neighbours >= 0).sum(axis=1)
    return Relevance(own, around, meaning, (meaning + others.sum(axis=1)) / (1 + near))


def recency(days: float) -> float:
    """1 today, less with age."""
    return exp(-max(days, 0.0) / _RECENCY_DAYS)


def usefulness(uses: int, days_since: float) -> float:
    """0 to 1: what was used often and lately."""
    return min(1.0, log1p(uses) / log1p(10)) * recency(days_since)


def spread(ids: Places, scores: Floats) -> Floats:
    """Scores of rows stored next to each other help each other: a first guess at who has matching neighbours."""
    helped = scores.copy()
    for distance in (1, 2):
        close = np.flatnonzero(ids[distance:] - ids[:-distance] == distance)
        helped[close + distance] += 0.5 * scores[close]
        helped[close] += 0.5 * scores[close + distance]
    return helped


def neighbourhood(sessions: Sequence[object], window: int = WINDOW) -> Places:
    """Places of the documents before and behind each in its session; documents stand in the order they were stored."""
    numbers: dict[object, int] = {}
    session = np.array([numbers.setdefault(each, len(numbers)) for each in sessions], np.int64)
    order = np.argsort(session, kind="stable")
    found = np.full((len(sessions), 2 * window), -1, np.int64)
    for distance in range(1, window + 1):
        before, behind = order[:-distance], order[distance:]
        same = session[before] == session[behind]
        found[behind[same], distance - 1] = before[same]
        found[before[same], window + distance - 1] = behind[same]
    return found


def above_floor(relevances: Floats, by: Weights, documents: int) -> Flags:
    """Which hits are an answer, of so many documents within reach. None, when not even the best is clearly one."""
    if not len(relevances) or relevances.max() < by.gate + by.tenfold * log10(max(documents, 1)):
        return np.zeros(len(relevances), np.bool_)
    return np.asarray(relevances >= by.floor)
