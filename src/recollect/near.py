"""Texts that say nearly the same, found without comparing everything with everything. Pure and exact."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from typing import Generic, TypeVar

from recollect.text import content_words, overlap, words

Value = TypeVar("Value")

NEGATIONS = frozenset(
    """no not never none nor without avoid stop stopped quit don't doesn't didn't isn't aren't wasn't weren't can't
    cannot couldn't won't wouldn't shouldn't mustn't needn't hasn't haven't hadn't""".split()
)


def weigh(texts: Iterable[frozenset[str]]) -> Counter[str]:
    """In how many of the texts each word stands."""
    return Counter(word for text in texts for word in text)


class Near(Generic[Value]):
    """Sets of words, each listed under its rarest: a text that holds `share` of a set holds one of those."""

    def __init__(self, weights: Counter[str], share: float) -> None:
        self._weights = weights
        self._share = share
        self._lists: dict[str, list[tuple[frozenset[str], Value]]] = {}

    def add(self, text: frozenset[str], value: Value) -> None:
        entry = (text, value)
        rarest = sorted(text, key=lambda word: (self._weights[word], word))
        for word in rarest[: len(text) - math.ceil(self._share * len(text) - 1e-9) + 1]:
            self._lists.setdefault(word, []).append(entry)

    def within(self, text: frozenset[str]) -> list[tuple[frozenset[str], Value]]:
        """Those of which the text holds at least `share`, in the order they were added under each word."""
        found: dict[int, tuple[frozenset[str], Value]] = {}
        for word in sorted(text):
            for entry in self._lists.get(word, ()):
                if id(entry) not in found and len(entry[0] & text) >= self._share * len(entry[0]) - 1e-9:
                    found[id(entry)] = entry
        return list(found.values())


def alike(text: str, other: str, share: float) -> bool:
    """Do two texts say nearly the same: so many words of theirs, and what turns their sense?"""
    own, others = content_words(text), content_words(other)
    if min(len(own), len(others)) < share * max(len(own), len(others)):
        return False
    return overlap(own, others) >= share and sense(text) == sense(other)


def sense(text: str) -> tuple[int, frozenset[str]]:
    """What two texts must have in common to be one statement: how often they negate, and every number and version."""
    every = words(text.replace("’", "'"))
    numbers = frozenset(word for word in every if any(letter.isdigit() for letter in word))
    return sum(word in NEGATIONS for word in every), numbers
