"""The sanitizer: what of a message may stand in a file. Pure.

VERSION names its rules and those of redaction; it changes when any of them does. A file keeps the version that wrote
it, and files of every version are read. Rules are repeated until nothing changes: whatever one rule lays bare to
another, sanitizing twice is sanitizing once.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from itertools import count

from recollect import redact
from recollect.blocks import escape, strip_blocks
from recollect.text import printable, trimmed, unix_lines

VERSION = f"sanitize_transcript_v4+{redact.VERSION}"
RULES: tuple[Callable[[str], str], ...] = (unix_lines, printable, strip_blocks, redact.redact, trimmed)
_ROUNDS = 8  # of which honest text needs two; blocks one inside of another would need one each


def sanitized(text: str) -> str:
    for turn in count():
        before = text if turn < _ROUNDS else escape(text)
        text = before
        for rule in RULES:
            text = rule(text)
        if text == before:
            break
    return text


@lru_cache(maxsize=4096)  # MEMORY.md shows the same lines again and again
def line(text: str) -> str:
    """The same for what has to stand on one line."""
    return sanitized(" ".join(sanitized(text).split()))
