"""Versioned sanitizers: what of a message may stand in a file. Pure.

A version is its rules in their order and never changes once files were written with it; a newer version is a new name
beside it. Rules are repeated until nothing changes: whatever one rule lays bare to another, a sanitizer is idempotent.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from recollect.artifacts.document import normalised
from recollect.blocks import strip_blocks
from recollect.redact import redact

Rule = Callable[[str], str]

_ANSI = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # colours and cursor movements
    r"|(?:\x1b\]|\x9d)[^\x07\x1b\x9c\n]*(?:\x07|\x1b\\|\x9c)?"  # titles and links
    r"|\x1b[PX^_][^\x1b\x9c\n]*(?:\x1b\\|\x9c)?"
    r"|\x1b[ -/]*[0-Z\\^_`a-~]"
)
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_SURROGATE = re.compile(r"[\ud800-\udfff]")


def _newlines(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _controls(text: str) -> str:
    """No terminal sequences, no control characters but line feed and tab, no half characters."""
    return _SURROGATE.sub("\ufffd", _CONTROL.sub("", _ANSI.sub("", text)))


_RULES: dict[str, Sequence[Rule]] = {
    "sanitize_transcript_v1": (_newlines, _controls, strip_blocks, redact, normalised),
}
CURRENT = "sanitize_transcript_v1"


def sanitized(text: str, version: str = CURRENT) -> str:
    """KeyError when there is no such version."""
    rules = _RULES[version]
    while True:
        before = text
        for rule in rules:
            text = rule(text)
        if text == before:
            return text


def plain(text: str) -> str:
    """The rules that need no judgement: what a clean text and its copy in a file have in common."""
    while True:
        before = text
        text = normalised(_controls(_newlines(text)))
        if text == before:
            return text


def line(text: str, version: str = CURRENT) -> str:
    """The same for what has to stand on one line."""
    return sanitized(" ".join(sanitized(text, version).split()), version)
