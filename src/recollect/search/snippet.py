"""The part of a text that shows why it was found. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import cache

from recollect.text import RUNS, readable, stem, unix_lines

_BREAK = re.compile(r"[\n\t]")
_LONGEST = 20_000  # characters that are looked through


def snippet(text: str, is_wanted: Callable[[str], bool], length: int = 240) -> tuple[str, tuple[tuple[int, int], ...]]:
    """The stretch with most of the wanted words, on one line, and where they stand in it."""
    text = _BREAK.sub(" ", readable(unix_lines(text)))
    hits = [match for match in RUNS.finditer(text[:_LONGEST]) if is_wanted(match.group().lower())]
    begin = _best_start(hits, length) if hits else 0
    start = max(0, begin - length // 6)
    start = 0 if start == 0 else text.find(" ", start, begin + 1) + 1 or begin
    end = min(len(text), start + length)
    if end < len(text) and " " in text[start:end]:
        end = max(text.rfind(" ", start + length // 2, end), start + length // 2)
    cut = ("… " if start else "") + " ".join(text[start:end].split()) + (" …" if end < len(text) else "")
    return cut, tuple(match.span() for match in RUNS.finditer(cut) if is_wanted(match.group().lower()))


def recogniser(words: Iterable[str]) -> Callable[[str], bool]:
    """Tells whether a word is one of these, or a form of one. It remembers: texts repeat their words."""
    stems = {stem(word) for word in words}
    beginnings = {each[:3] for each in stems if len(each) >= 3}

    @cache
    def is_wanted(word: str) -> bool:
        return (
            word[:3] in beginnings
            and any(word.startswith(each) and len(word) - len(each) <= 3 for each in stems if len(each) >= 3)
        ) or stem(word) in stems

    return is_wanted


def _best_start(hits: list[re.Match[str]], length: int) -> int:
    """Where the window begins that holds most different words."""
    best, most = hits[0].start(), 0
    for number, first in enumerate(hits[:100]):
        near = (each for each in hits[number : number + 20] if each.end() - first.start() <= length)
        seen = len({each.group().lower() for each in near})
        if seen > most:
            best, most = first.start(), seen
    return best
