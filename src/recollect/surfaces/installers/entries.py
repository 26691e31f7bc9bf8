"""What recollect writes into an agent's settings, and how it knows its own entries again: by their command.

Settings files have no place for a marker (Codex refuses a file with keys it does not know), so the command is the
mark. An entry is *ours* when its command is a call of recollect and nothing else; it is upgraded and removed. One that
only *mentions* such a call, because somebody built on it, is theirs: it is left alone, and none is put beside it.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum, auto
from pathlib import PurePath

from recollect.surfaces.hooks.launcher import is_line

NAME = "recollect"  # of the MCP server, in every agent's settings


class Whose(StrEnum):
    OURS = auto()
    MENTIONS = auto()
    THEIRS = auto()


@dataclass(frozen=True, slots=True)
class Hook:
    """A command that an agent calls at an event."""

    event: str
    command: str  # as a shell takes it
    timeout: int  # seconds


def whose(command: object) -> Whose:
    """Of a hook's command line."""
    if not isinstance(command, str):
        return Whose.THEIRS
    try:
        words = shlex.split(command)
    except ValueError:  # an open quote: no shell runs it
        return Whose.THEIRS
    if _is_hook_call(words) and shlex.join(words) == command:  # plain words: nothing that a shell would act on
        return Whose.OURS
    return Whose.MENTIONS if any(_is_hook_call(words[place:]) for place in range(len(words))) else Whose.THEIRS


def is_own_server(command: object, args: object) -> bool:
    """Of an MCP server's command and arguments."""
    if not isinstance(command, str) or not isinstance(args, list):
        return False
    words = [command, *(each for each in args if isinstance(each, str))]
    return (rest := _after_program(words)) is not None and rest[:1] == ["mcp"]


def _is_hook_call(words: Sequence[str]) -> bool:
    """`recollect hook EVENT …`, through the launcher, the program, the module or the script that it would run."""
    if is_line(words):
        return True
    rest = _after_program(words)
    if rest is not None:
        return len(rest) >= 2 and rest[0] == "hook"
    return bool(_after_script(words))


def _after_program(words: Sequence[str]) -> list[str] | None:
    """What follows `recollect`, `python …/recollect` or `python -m recollect`; None when that is not what is called."""
    options = _python_options(words) or 0
    if len(words) > options and PurePath(words[options]).name in (NAME, f"{NAME}.exe"):
        return list(words[options + 1 :])
    if not options or list(words[options : options + 2]) != ["-m", NAME]:
        return None
    return list(words[options + 2 :])


def _after_script(words: Sequence[str]) -> list[str]:
    """What follows `python …/recollect/surfaces/hooks/….py`."""
    options = _python_options(words)
    if options is None or options >= len(words):
        return []
    parts = PurePath(words[options]).parts
    return list(words[options + 1 :]) if parts[-4:-1] == (NAME, "surfaces", "hooks") else []


def _python_options(words: Sequence[str]) -> int | None:
    """Where Python's own options end; None when the call is not one of Python."""
    if not words or not re.fullmatch(r"python[\d.]*(\.exe)?", PurePath(words[0]).name):
        return None
    return next((place for place in range(1, len(words)) if not re.fullmatch(r"-[IPSsEBuO]+", words[place])), 1)
