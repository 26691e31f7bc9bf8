"""The prompts of phase 1: files in the package, versioned by their names. A change of wording is a new file."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from importlib import resources

from recollect.types import Message

EXTRACT = "extract_v2"
MERGE = "merge_v1"
COMPACTION = "compaction_v1"


@cache
def load(name: str) -> str:
    return resources.files("recollect.extract").joinpath("prompts", f"{name}.md").read_text(encoding="utf-8")


def transcript(messages: Sequence[Message], numbers: Sequence[int]) -> str:
    """The messages as data: whatever they contain, they can neither end the block nor look like another message."""
    parts = [
        f"[m{number}] {message.role} {message.timestamp}\n{_harmless(message.text)}"
        for number, message in zip(numbers, messages, strict=True)
    ]
    return "<transcript>\n" + "\n\n".join(parts) + "\n</transcript>"


def compaction(text: str) -> str:
    return f"<transcript>\n{_harmless(text)}\n</transcript>"


def parts(answers: Sequence[str]) -> str:
    return "<parts>\n" + "\n".join(_harmless(answer) for answer in answers) + "\n</parts>"


_TAG = re.compile(r"<(/?)(?=(?:transcript|parts)\b)", re.IGNORECASE)
_HEAD = re.compile(r"^\[m(?=\d+\])", re.MULTILINE)


def _harmless(text: str) -> str:
    return _HEAD.sub("[ m", _TAG.sub(r"‹\1", text))
