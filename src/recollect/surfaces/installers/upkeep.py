"""Keeps alive what agents call. Every command and the daemon mend it at their start; `status` and `doctor` tell of it.

Settings are changed in one case alone: a hook of ours as earlier releases wrote it, which can block a prompt.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from recollect import processes
from recollect.config import Settings
from recollect.errors import RecollectError
from recollect.surfaces.hooks import launcher
from recollect.surfaces.installers import agents, default_home
from recollect.surfaces.installers.files import apply, read, renewing
from recollect.surfaces.installers.values import Agent, Entry

if TYPE_CHECKING:
    from recollect.overview import Trouble

_EARLIER = b"/recollect/surfaces/hooks/hook.py"  # in a hook as earlier releases wrote it
_INIT = "`recollect init` mends it."


def mend(settings: Settings, now: datetime) -> str:
    """Return what was mended, in sentences; empty: there was nothing to do, or it cannot be done now."""
    told = []
    if gone := launcher.take_over(settings.home):
        told.append(f"Agents called {gone.python}, which is gone; they call this installation now.")
    for agent in agents(settings):
        try:
            files = _renew(agent, settings, now)
        except (OSError, RecollectError):  # `status` tells of it
            continue
        if files:
            advice = f" {agent.advice}" if agent.name == "codex" else ""
            told.append(f"Hooks in {', '.join(files)} can hold up no prompt any more; copies are beside.{advice}")
    return " ".join(told)


def _renew(agent: Agent, settings: Settings, now: datetime) -> list[str]:
    if not any(_EARLIER in file.read_bytes() for file in agent.files if file.is_file()):
        return []
    earlier = [found for entry in agent.entries(read(agent)) if (found := launcher.direct(entry.command))]
    changes = renewing(agent)
    for program, call in earlier if changes else ():
        home = Path(call.home) if call.home else default_home(settings)
        if home.is_dir() and home.stat().st_uid == os.geteuid() and not (home / launcher.NAME).exists():
            launcher.install(home, program if program.is_there else launcher.own())
    apply(changes, now)
    return [str(each.file) for each in changes]


def is_plugged_in(settings: Settings) -> bool:
    """Does a hook of an agent lead to this home, or may one do so?"""
    try:
        entries = [entry for agent in agents(settings) for entry in agent.entries(read(agent))]
    except (OSError, RecollectError):
        return True
    calls = [launcher.called(each.command) for each in entries]
    return any(call and _home(call, settings) == settings.home for call in calls)


def troubles(settings: Settings) -> list[Trouble]:
    """What keeps agents from calling this installation, or from going on without it."""
    from recollect.overview import Trouble  # it costs 20 ms, and every command looks for what it can mend

    found: list[Trouble] = []
    for agent in agents(settings):
        try:
            texts = read(agent)
            entries, programs = agent.entries(texts), agent.server(texts)
        except (OSError, RecollectError):  # `init` says what is wrong with the file
            continue
        found += [Trouble(what, hint) for what, hint in _of_hooks(agent, entries, settings)]
        if gone := [each for each in programs if processes.program(each, settings.environ) is None]:
            found.append(Trouble(f"{agent.title}: the MCP server's program {gone[0]} is gone", _INIT))
    return found


def _of_hooks(agent: Agent, entries: Sequence[Entry], settings: Settings) -> Iterator[tuple[str, str]]:
    """What is wrong with them, each with a hint."""
    calls = [launcher.called(each.command) for each in entries]
    for file in dict.fromkeys(each.file for each, call in zip(entries, calls, strict=True) if call is None):
        what = f"{agent.title}: hooks in {file} can hold up a prompt when recollect is gone"
        yield what, "`recollect init` brings them up to date."
    for home in dict.fromkeys(_home(call, settings) for call in calls if call):
        if fault := launcher.fault(home):
            yield f"{agent.title}: hooks do nothing, {fault}", _INIT
        elif home != settings.home:
            yield f"{agent.title}: hooks lead to {home}, not here", "`recollect init` makes them lead here."
    if waiting := sum(not each.is_trusted for each in entries):
        what = f"{agent.title} skips {waiting} hooks of recollect until you trust them"
        yield what, "Start `codex`, type /hooks, look at the entries of recollect and trust them."


def _home(call: launcher.Call, settings: Settings) -> Path:
    return Path(call.home) if call.home else default_home(settings)
