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


def behind(text: str, opening: re.Pattern[str]) -> str:
    """A text without the fragments that it begins with. `opening` matches where one begins; its group is the tag."""
    ends: dict[str, list[int]] = {}  # tag → where its closings end
    for found in _CLOSING.finditer(text):
        ends.setdefault(found[1].casefold(), []).append(found.end())
    at = 0
    while begun := opening.match(text, at):
        closings = ends.get(begun[1].casefold(), [0])
        if closings[-1] <= begun.end():
            break  # the user speaks of a tag; fragments are always closed
        # Instructions may speak of their own tags: what begins and ends as a fragment is one.
        at = len(text) if closings[-1] == len(text) else closings[bisect_right(closings, begun.end())]
    return text[at:].lstrip()
