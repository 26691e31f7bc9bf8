"""What an agent is to the installer: which files it has, and two pure functions from their texts to their texts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from recollect import processes
from recollect.config import HOME_VARIABLE
from recollect.errors import RecollectError
from recollect.surfaces.hooks.client import EVENTS
from recollect.surfaces.hooks.launcher import Call
from recollect.surfaces.installers.entries import NAME, Hook

_TIMEOUTS = {"UserPromptSubmit": 5, "SessionEnd": 5}  # seconds; the others: 10

Texts = Mapping[Path, str | None]  # file → what it says; None: there is none


class Refused(RecollectError):
    """A settings file cannot be understood, so it is left as it is."""

    hint = "Nothing was changed. Mend the file and run it again, or name the other agent with --agent."


@dataclass(frozen=True, slots=True)
class Commands:
    """How agents call this installation of recollect."""

    home: Path | None  # where it is not the default one

    def hooks(self, agent: str, **timeouts: int) -> tuple[Hook, ...]:
        """One per event; `timeouts` are those in which this agent differs."""
        seconds = _TIMEOUTS | timeouts
        home = str(self.home) if self.home else ""
        lines = {event: Call(event, agent, home).line for event in EVENTS}
        return tuple(Hook(event, line, seconds.get(event, 10)) for event, line in lines.items())

    def server(self) -> dict[str, Any]:
        """The MCP server, as an agent starts it from anywhere, with whatever `PYTHONPATH` a project asks for."""
        command, *args = processes.isolated(NAME)
        env = {HOME_VARIABLE: str(self.home)} if self.home else {}  # Codex hands no variables on
        return {"command": command, "args": [*args, "mcp"], "env": env}


@dataclass(frozen=True, slots=True)
class Entry:
    """A hook of ours as it stands in an agent's settings."""

    file: Path
    command: str
    is_trusted: bool  # the agent skips one that is not


@dataclass(frozen=True, slots=True)
class Agent:
    """An agent that recollect plugs into."""

    name: str  # as in --agent
    title: str  # as people call it
    files: tuple[Path, ...]  # its settings, whether they exist or not
    signs: tuple[Path, ...]  # where one of them is, the agent is in use on this machine
    merged: Callable[[Texts], dict[Path, str]]  # settings with ours; files that need no change may be left out
    stripped: Callable[[Texts], dict[Path, str]]  # settings without anything of ours
    renewed: Callable[[Texts], dict[Path, str]]  # settings in which no hook of ours can block; others are left out
    entries: Callable[[Texts], list[Entry]]
    server: Callable[[Texts], list[str]]  # the programs that our MCP server needs; empty: there is no such server
    switched_off: Callable[[Texts], str]  # why hooks do not run there, if the user's own settings say so
    advice: str  # what its user has to do after the hooks changed


@contextmanager
def reading(file: Path) -> Iterator[None]:
    """Names the file in whatever its parser says."""
    try:
        yield
    except ValueError as error:
        raise Refused(f"{file} cannot be understood: {error}") from error
