"""The prompts of turn memory: files with a version in their name. A changed prompt is a new file."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

RECONCILE = "reconcile_v1"
SIGNALS = "signals_v1"


@cache
def load(name: str) -> str:
    return files(__name__).joinpath(f"{name}.md").read_text(encoding="utf-8")
