"""Installers: recollect's entries in the settings of agents. Pure functions merge texts; `files.py` acts."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

from recollect.config import HOME_VARIABLE, Settings
from recollect.surfaces.hooks.command import hook_command
from recollect.surfaces.installers import claude_code, codex
from recollect.surfaces.installers.entries import NAME, Server
from recollect.surfaces.installers.values import Agent, Commands


def agents(settings: Settings) -> list[Agent]:
    """Every agent that recollect can plug into, on this machine or not."""
    user_home = Path(settings.user_home)
    home = None if settings.home == user_home / ".recollect" else settings.home

    def hook(event: str, agent: str) -> str:
        return shlex.join(hook_command(event, agent=agent, home=home))

    command, *args = program()
    env = {HOME_VARIABLE: str(home)} if home else {}  # Codex hands no variables on
    commands = Commands(hook, Server(command, (*args, "mcp"), env))
    return [each.agent(settings.environ, user_home, commands) for each in (claude_code, codex)]


def program() -> list[str]:
    """How this installation is called from anywhere. -P: an agent's folder must not be searched for modules."""
    script = Path(sys.executable).with_name(NAME)
    return [str(script)] if script.is_file() else [sys.executable, "-P", "-m", NAME]
