"""Near-duplicates: the best stands for all. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import TypeVar

from recollect.near import sense
from recollect.text import content_words, overlap

_T = TypeVar("_T")
_SAME = 0.9  # share of words in common, and of length
_FEW = 3  # words that say something
_LENGTH = 4000  # characters that are compared
_LONG = re.compile(r"[^\W_]{6,}")  # a word that tells texts apart
_SOME = 8  # of them


def folded(ranked: Iterable[_T], text_of: Callable[[_T], str], limit: int) -> list[tuple[_T, list[_T]]]:
    """The first `limit` that say something new, best first, each with those folded into it."""
    kept: list[tuple[_T, str]] = []
    also: list[list[_T]] = []
    for each in ranked:
        text = text_of(each)
        same = next((place for place, (_, theirs) in enumerate(kept) if _alike(text, theirs)), None)
        if same is not None:
            also[same].append(each)
        elif len(kept) < limit:
            kept.append((each, text))
            also.append([])
    return [(each, others) for (each, _), others in zip(kept, also, strict=True)]


def _alike(one: str, other: str) -> bool:
    """About as long, and nearly all words in common. A beginning in common is not enough."""
    if len(one) < _SAME * len(other) or len(other) < _SAME * len(one) or not _resemble(one, other):
        return False
    mine, theirs = content_words(one[:_LENGTH]), content_words(other[:_LENGTH])
    same = len(mine) >= _FEW and overlap(mine, theirs) >= _SAME
    return same and sense(one[:_LENGTH]) == sense(other[:_LENGTH])  # "push" is not "do not push"


def _resemble(one: str, other: str) -> bool:
    """A cheap look before all words are compared: of some long words of the one, half stand in the other."""
    some = [found.group().lower() for found, _ in zip(_LONG.finditer(one), range(_SOME), strict=False)]
    lower = other.lower()
    return 2 * sum(word in lower for word in some) >= len(some)
