"""What templates draw, as plain values: word diffs, marked text, a calendar. Pure."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, timedelta
from typing import NamedTuple

from recollect.types import project_name

_WEEKS = 26  # of the calendar
_STEPS = (1, 20, 80, 200)  # messages of a day, from which it is darker


class Piece(NamedTuple):
    """A run of text, and whether it is `same`, `added`, `removed`, `marked` or `plain`."""

    text: str
    what: str


class Square(NamedTuple):
    """A day of the calendar."""

    day: str
    messages: int
    column: int
    row: int
    step: int  # 0 to 4


def diff(before: str, now: str) -> list[Piece]:
    """Words that came and went."""
    one, other = _words(before), _words(now)
    found: list[Piece] = []
    for what, first, end, begin, last in difflib.SequenceMatcher(None, one, other, autojunk=False).get_opcodes():
        if what == "equal":
            found.append(Piece("".join(one[first:end]), "same"))
            continue
        found += [Piece("".join(one[first:end]), "removed")] if first < end else []
        found += [Piece("".join(other[begin:last]), "added")] if begin < last else []
    return found


def _words(text: str) -> list[str]:
    return re.findall(r"\s*\S+|\s+$", text)


def pieces(text: str, marks: Iterable[tuple[int, int]]) -> list[Piece]:
    """The text, with marked runs apart."""
    found, at = [], 0
    for begin, end in sorted(marks):
        if begin < at:
            continue
        found += [Piece(text[at:begin], "plain")] if at < begin else []
        found.append(Piece(text[begin:end], "marked"))
        at = end
    return [*found, Piece(text[at:], "plain")] if at < len(text) else found


def calendar(days: Sequence[tuple[str, int]], today: date) -> list[Square]:
    """The last half year, a column for each week."""
    known: Mapping[str, int] = dict(days)
    first = today - timedelta(days=today.weekday() + 7 * (_WEEKS - 1))
    found = []
    for number in range((today - first).days + 1):
        day = (first + timedelta(days=number)).isoformat()
        messages = known.get(day, 0)
        step = sum(messages >= each for each in _STEPS)
        found.append(Square(day, messages, number // 7, number % 7, step))
    return found


def place_name(project: str) -> str:
    """A project as a person calls it: the last two names of its path."""
    if project in ("*", ""):
        return "everywhere" if project == "*" else "no project"
    return "/".join(project_name(project).rstrip("/").split("/")[-2:])


def one_line(text: str, most: int = 160) -> str:
    told = " ".join(text.split())
    return told if len(told) <= most else f"{told[: most - 1].rstrip()}…"
