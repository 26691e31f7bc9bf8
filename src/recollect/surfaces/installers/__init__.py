"""Installers: recollect's entries in the settings of agents. Pure functions merge texts; `files.py` acts."""

from __future__ import annotations

from pathlib import Path

from recollect.config import Settings
from recollect.surfaces.installers import claude_code, codex
from recollect.surfaces.installers.values import Agent, Commands


def agents(settings: Settings) -> list[Agent]:
    """Every agent that recollect can plug into, on this machine or not."""
    user_home = Path(settings.user_home)
    commands = Commands(None if settings.home == default_home(settings) else settings.home)
    return [each.agent(settings.environ, user_home, commands) for each in (claude_code, codex)]


def default_home(settings: Settings) -> Path:
    """Where hooks look that name no home."""
    return Path(settings.user_home) / ".recollect"
