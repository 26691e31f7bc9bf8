"""What the project's own files tell every agent, as far as it can be read: a reader of a session need not write it down
again. Read only, and never through a link that leads out of the folder."""

from __future__ import annotations

import os
from pathlib import Path

_FILES = ("AGENTS.md", "CLAUDE.md", ".claude/CLAUDE.md", "CLAUDE.local.md")
_MOST = 6_000  # characters of a file


def rules_of(folder: str) -> str:
    """Empty where there are none, or the folder is not on this machine."""
    root = Path(folder)
    if not folder or not root.is_absolute():
        return ""
    told: dict[str, None] = {}
    for name in _FILES:
        if text := _read(root, root / name):
            told[text] = None  # CLAUDE.md is often a link to AGENTS.md
    return "\n\n".join(told)


def _read(root: Path, path: Path) -> str:
    try:
        real = path.resolve(strict=True)
        if not real.is_relative_to(root.resolve()) or not real.is_file():
            return ""
        opened = os.open(real, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(opened, "rb") as file:
            return file.read(_MOST * 4).decode(errors="replace")[:_MOST].strip()
    except (OSError, RuntimeError, ValueError):  # a loop of links; a name that no file can have
        return ""
