"""What a client writes into a person's message between tags, told apart from the person's own words.

Shared by the sources. A client puts its text before the person's words or behind them; whatever the text holds, the
wrapper ends at its last closing tag. Where nothing tells who wrote a passage, it is kept as a Markdown quotation:
stored and found, but nobody's own words. Everything here takes time proportional to the text, whatever stands in it.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Collection
from dataclasses import dataclass
from itertools import pairwise

_CLOSING = re.compile(r"</([\w\- ]+)>")
_LINE_ENDS = re.compile(r"[ \t]*(?:\r?\n|<|\Z)")  # what follows a closing tag that a client writes
_SPACE = re.compile(r"\s*")
_ATTRIBUTES = r"(?:\s[^<>]*)?"


def inside(text: str, tag: str) -> str | None:
    """What stands between the first opening and the last closing tag, without white space around it."""
    content, closed, _ = text.partition(f"<{tag}>")[2].rpartition(f"</{tag}>")
    return content.strip() if closed else None


def quoted(text: str) -> str:
    """Text that may not be the person's, as a quotation in their message."""
    lines = text.strip().splitlines()
    return "\n\n" + "\n".join(f"> {line}".rstrip() for line in lines) + "\n\n" if lines else ""


@dataclass(frozen=True, slots=True)
class _Passage:
    """A wrapper with all that stands in it."""

    start: int
    end: int
    tag: str


class Wrappers:
    """The tags of one client. Those in `alone` are never in one message with a person's words.

    With `leading`, a client writes them only before the person's words; `header` may stand before the first tag.
    """

    def __init__(
        self,
        tags: str,
        *,
        alone: Collection[str] = (),
        leading: bool = False,
        header: str = "",
        attributes: str = _ATTRIBUTES,
    ) -> None:
        self._tag = re.compile(rf"<({tags}){attributes}>")
        self._first = re.compile(rf"(?:{header})?{self._tag.pattern}")
        self._alone = frozenset(alone)
        self._leading = leading

    def without(self, text: str) -> str:
        """The person's part of a message. A tag that is never closed is part of it."""
        if not self._tag.search(text):
            return text
        ends = _Ends(text, self._tag, self._alone)
        found = self._front(text, ends)
        front, at = len(found), found[-1].end if found else 0
        first = {passage.tag: passage for passage in found}
        for begun in self._tag.finditer(text, at):
            before = first.get(begun[1].casefold())
            if begun.start() < at or (self._leading and not self._goes_on(text, before, begun.start())):
                continue
            if passage := ends.passage(begun):
                found.append(passage)
                at = passage.end
        return self._joined(text, found, front) if found else text

    def _goes_on(self, text: str, before: _Passage | None, start: int) -> bool:
        """May a wrapper go on up to where another of its kind begins? One that ended as a client ends it does not go on
        in the middle of a line."""
        if before is None:
            return False
        return _begins_line(text, start) or not _LINE_ENDS.match(text, before.end)

    def _front(self, text: str, ends: _Ends) -> list[_Passage]:
        """The wrappers that a message begins with."""
        found: list[_Passage] = []
        at = 0
        while begun := self._first.match(text, _behind_space(text, at)):
            passage = ends.passage(begun)
            if passage is None:
                break
            found.append(passage)
            at = passage.end
        return found

    def _joined(self, text: str, found: list[_Passage], front: int) -> str:
        """The text with every wrapper dropped, or quoted where a person may have put it."""
        back = self._back(text, found, front)
        kept, at, before = [], 0, ""  # the tag of the passage before
        seen: dict[str, _Passage] = {}
        for number, passage in enumerate(found):
            again = self._goes_on(text, seen.get(passage.tag), passage.start)
            between = text[at : passage.start]
            kept.append(quoted(between) if again else self._behind(between, before))
            if front <= number < back and not (again and _begins_line(text, passage.start)):
                kept.append(quoted(text[passage.start : passage.end]))
            seen[passage.tag] = passage
            at, before = passage.end, passage.tag
        rest = text[at:]
        is_alone = any(passage.tag in self._alone for passage in found[:front])
        kept.append(quoted(rest) if is_alone else self._behind(rest, before))
        return "".join(kept).strip()

    def _behind(self, text: str, tag: str) -> str:
        """What stands behind a wrapper. Up to another end of it, it may be the client's."""
        opened = next((each.start() for each in self._tag.finditer(text) if each[1].casefold() == tag), len(text))
        ends = (each.end() for each in _CLOSING.finditer(text, 0, opened) if each[1].casefold() == tag)
        last = max(ends, default=0)
        return quoted(text[:last]) + text[last:]

    def _back(self, text: str, found: list[_Passage], front: int) -> int:
        """The number of the first wrapper of those that a message ends with."""
        end = len(text)
        for number in range(len(found), front, -1):
            passage = found[number - 1]
            while end > passage.end and text[end - 1].isspace():
                end -= 1
            if end > passage.end or (passage.tag in self._alone and not _begins_line(text, passage.start)):
                return number
            end = passage.start
        return front


def _begins_line(text: str, at: int) -> bool:
    return at == 0 or text[at - 1] == "\n"


def _behind_space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at


class _Ends:
    """Where the wrappers of a text end."""

    def __init__(self, text: str, opening: re.Pattern[str], alone: frozenset[str]) -> None:
        self._text = text
        self._alone = alone
        self._closings: dict[str, list[int]] = {}
        self._last: dict[tuple[str, bool], int] = {}  # (tag, on a line of its own) → where its last one ends
        for found in _CLOSING.finditer(text):
            tag = found[1].casefold()
            self._closings.setdefault(tag, []).append(found.end())
            if _LINE_ENDS.match(text, found.end()):
                self._last[tag, False] = found.end()
                if text.startswith("\n", found.start() - 1):
                    self._last[tag, True] = found.end()
        openings: dict[str, list[int]] = {}
        for found in opening.finditer(text):
            openings.setdefault(found[1].casefold(), []).append(found.start())
        self._pairs = {tag for tag, starts in openings.items() if _alternate(starts, self._closings.get(tag, []))}
        self._whole = max((self._closings[tag][-1] for tag in alone if tag in self._closings), default=0)

    def passage(self, begun: re.Match[str]) -> _Passage | None:
        """The wrapper that begins here; None when it has no end."""
        tag, start = begun[1].casefold(), begun.end()
        closings = self._closings.get(tag, [])
        number = bisect_left(closings, start + 1)
        if number == len(closings):
            return None
        if tag in self._alone:
            return _Passage(begun.start(), self._whole, tag)
        end = closings[number]
        if tag not in self._pairs:
            is_line = self._text.startswith("\n", start)
            end = max(end, self._last.get((tag, is_line)) or self._last.get((tag, False), 0))
        return _Passage(begun.start(), end, tag)


def _alternate(starts: list[int], ends: list[int]) -> bool:
    """Is each opening tag followed by one closing tag of its own?"""
    if len(starts) != len(ends):
        return False
    places = [place for pair in zip(starts, ends, strict=True) for place in pair]
    return all(one < other for one, other in pairwise(places))
