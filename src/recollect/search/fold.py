"""Near-duplicates: the best stands for all. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from recollect.text import content_words, overlap

_T = TypeVar("_T")
_SAME = 0.9  # share of words in common
_LENGTH = 600  # characters that are compared


def folded(ranked: Iterable[_T], text_of: Callable[[_T], str], limit: int) -> list[tuple[_T, int]]:
    """The first `limit` that say something new, best first, each with the number of those folded into it."""
    kept: list[tuple[_T, frozenset[str]]] = []
    also: list[int] = []
    for each in ranked:
        words = content_words(text_of(each)[:_LENGTH])
        same = next((place for place, (_, theirs) in enumerate(kept) if _alike(words, theirs)), None)
        if same is not None:
            also[same] += 1
        elif len(kept) < limit:
            kept.append((each, words))
            also.append(0)
    return [(each, number) for (each, _), number in zip(kept, also, strict=True)]


def _alike(one: frozenset[str], other: frozenset[str]) -> bool:
    """Words in common; texts of very different size cannot have enough of them."""
    small, large = sorted((len(one), len(other)))
    return small >= 3 and small >= _SAME * large and overlap(one, other) >= _SAME
