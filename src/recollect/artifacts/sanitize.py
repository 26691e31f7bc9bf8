"""Versioned sanitizers: what of a message may stand in a file. Pure.

A version is its rules in their order and never changes once files were written with it; a newer version is a new name
beside it. Rules are repeated until nothing changes: whatever one rule lays bare to another, a sanitizer is idempotent.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import count

from recollect.blocks import escape, strip_blocks
from recollect.redact import redact
from recollect.text import printable, trimmed, unix_lines

Rule = Callable[[str], str]

_RULES: dict[str, Sequence[Rule]] = {
    "sanitize_transcript_v1": (unix_lines, printable, strip_blocks, redact, trimmed),
}
CURRENT = "sanitize_transcript_v1"
_ROUNDS = 8  # of which honest text needs two; blocks one inside of another would need one each


def sanitized(text: str, version: str = CURRENT) -> str:
    """KeyError when there is no such version."""
    rules = _RULES[version]
    for turn in count():
        before = text if turn < _ROUNDS else escape(text)
        text = before
        for rule in rules:
            text = rule(text)
        if text == before:
            break
    return text


@lru_cache(maxsize=4096)  # MEMORY.md shows the same lines again and again
def line(text: str, version: str = CURRENT) -> str:
    """The same for what has to stand on one line."""
    return sanitized(" ".join(sanitized(text, version).split()), version)
