"""Near-duplicates: the best stands for all. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from recollect.near import Near, sense, weigh
from recollect.text import content_words, overlap

_T = TypeVar("_T")
_SAME = 0.9  # share of words in common, and of length
_FEW = 3  # words that say something; texts with fewer have to be the same
_LENGTH = 4000  # characters that are compared


def folded(ranked: Iterable[_T], text_of: Callable[[_T], str], limit: int) -> list[tuple[_T, list[_T]]]:
    """The first `limit` that say something new, best first, each with those folded into it."""
    every = list(ranked)
    about = [content_words(text_of(each)[:_LENGTH]) for each in every]
    near: Near[int] = Near(weigh(about), _SAME)  # places among those kept
    equal: dict[str, int] = {}  # text → the same
    kept: list[tuple[_T, list[_T]]] = []
    for each, mine in zip(every, about, strict=True):
        plain = " ".join(text_of(each).casefold().split())
        same = equal.get(plain)
        if same is None:
            found = near.within(mine) if len(mine) >= _FEW else []
            close = sorted(place for theirs, place in found if overlap(mine, theirs) >= _SAME)
            same = next((place for place in close if _alike(text_of(each), text_of(kept[place][0]))), None)
        if same is not None:
            kept[same][1].append(each)
        elif len(kept) < limit:
            near.add(mine, len(kept))
            equal[plain] = len(kept)
            kept.append((each, []))
    return kept


def _alike(one: str, other: str) -> bool:
    """Of texts with nearly all words in common: they are about as long. A beginning in common is not enough."""
    if len(one) < _SAME * len(other) or len(other) < _SAME * len(one):
        return False
    return sense(one[:_LENGTH]) == sense(other[:_LENGTH])  # "push" is not "do not push"
