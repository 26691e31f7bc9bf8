"""Tags in the text of a message, found in a time that grows with the text and no faster, whatever stands in it.

Shared by the sources: what a harness writes into the user's messages stands between tags.
"""

from __future__ import annotations

import re
from bisect import bisect_right

_CLOSING = re.compile(r"</([\w\- ]+)>")


def inside(text: str, tag: str) -> str | None:
    """What stands in the first pair of a tag, without white space around it."""
    found, closed, _ = text.partition(f"<{tag}>")[2].partition(f"</{tag}>")
    return found.strip() if closed else None


def without(text: str, opening: re.Pattern[str]) -> str:
    """A text without its fragments. `opening` matches where one begins; its group is the tag. Fragments are always
    closed: of a tag that is not, the user speaks."""
    if not opening.search(text):
        return text
    ends = _ends(text)
    kept, at = [], 0
    for begun in opening.finditer(text):
        closings = ends.get(begun[1].casefold(), [])
        number = bisect_right(closings, begun.end())
        if begun.start() >= at and number < len(closings):
            kept.append(text[at : begun.start()])
            at = closings[number]
    return "".join(kept) + text[at:]


def behind(text: str, opening: re.Pattern[str]) -> str:
    """A text without the fragments that it begins with; otherwise as above."""
    ends = _ends(text)
    at = 0
    while begun := opening.match(text, at):
        closings = ends.get(begun[1].casefold(), [0])
        if closings[-1] <= begun.end():
            break
        # Instructions may speak of their own tags: what begins and ends as a fragment is one.
        at = len(text) if closings[-1] == len(text) else closings[bisect_right(closings, begun.end())]
    return text[at:].lstrip()


def _ends(text: str) -> dict[str, list[int]]:
    """Tag → where its closings end."""
    ends: dict[str, list[int]] = {}
    for found in _CLOSING.finditer(text):
        ends.setdefault(found[1].casefold(), []).append(found.end())
    return ends
