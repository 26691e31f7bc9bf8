"""One line about a tool call: the tool, what it was aimed at, nothing of its output.

Shared by the sources, so that "Bash" of one agent and "exec_command" of another read alike.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import msgspec

from recollect.ingest.sources.base import UNDECODABLE, clean

_LONGEST = 200  # characters of a command or path that are kept

_TARGETS = (  # argument names that say what a call was aimed at, most telling first
    "command",
    "cmd",
    "file_path",
    "notebook_path",
    "path",
    "filename",
    "url",
    "query",
    "pattern",
    "skill",
    "description",
    "prompt",
    "title",
    "name",
    "questions",
)

_Arguments = msgspec.defstruct("_Arguments", [(name, Any, None) for name in _TARGETS])
_decoder = msgspec.json.Decoder(_Arguments)


def summarise(name: str, arguments: bytes | msgspec.Raw | str | None) -> str:
    """`[Bash] npm test`. Arguments are JSON text, or anything else, which is then left out."""
    target = ""
    if arguments:
        try:
            target = _target(_decoder.decode(arguments))
        except UNDECODABLE:
            target = ""
    return line(name, target)


def line(name: str, target: str) -> str:
    name = _name(name)
    if not target:
        return f"[{name}]"
    target = clean(" ".join(target[: _LONGEST * 8].split()))
    if len(target) > _LONGEST:
        target = target[: _LONGEST - 1] + "…"
    return f"[{name}] {target}" if target else f"[{name}]"


@lru_cache(maxsize=1024)
def _name(name: str) -> str:
    """Whoever sets up a server of tools names it."""
    return clean(name)


def _target(arguments: Any) -> str:
    for name in _TARGETS:
        value = getattr(arguments, name)
        if isinstance(value, str) and value:
            return value
        if isinstance(value, list) and value and all(isinstance(part, str) for part in value):
            return _command(value)
        if name == "questions" and isinstance(value, list):
            asked = [part.get("question") for part in value if isinstance(part, dict)]
            return " ".join(each for each in asked if isinstance(each, str))
    return ""


def _command(words: list[str]) -> str:
    """`["bash", "-lc", "npm test"]` is `npm test`."""
    if len(words) == 3 and words[0].rsplit("/", 1)[-1] in {"bash", "sh", "zsh"} and words[1].startswith("-"):
        return words[2]
    return " ".join(words)
