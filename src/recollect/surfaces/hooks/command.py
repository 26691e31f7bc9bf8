"""The command line that an agent's settings get for an event."""

from __future__ import annotations

import sys
from pathlib import Path


def hook_command(event: str, *, agent: str = "", home: Path | None = None) -> list[str]:
    """Without a shell, and without a search for packages: `-I -S`. `home` where it is not the default one."""
    command = [sys.executable, "-I", "-S", str(Path(__file__).with_name("hook.py")), event]
    command += ["--agent", agent] if agent else []
    return command + (["--home", str(home)] if home else [])
