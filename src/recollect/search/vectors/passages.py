"""Passages of a text: what is said in one sentence of a long message is found by that sentence's own vector. Pure."""

from __future__ import annotations

import re

LONGEST = 160  # characters of a passage
MOST = 16  # of one text
_BREAK = re.compile(r"(?<=[.!?])\s+|\n+")


def passages(text: str) -> list[str]:
    """Sentences, joined up to a length; none when that is the whole text."""
    found: list[str] = []
    for sentence in filter(None, map(str.strip, _BREAK.split(text))):
        if found and len(found[-1]) + len(sentence) < LONGEST:
            found[-1] += f" {sentence}"
        elif len(found) == MOST:
            break
        else:
            found.append(sentence)
    return found if len(found) > 1 else []
