"""recollect: long-term memory for AI agents that a person can read, search, correct and erase.

from recollect import open_memory

with open_memory() as memory:
    memory.ingest()
    memory.search("how do we deploy", scope="github.com/acme/api")
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from recollect.app import Memory, open_memory
    from recollect.inject.injector import render_for_compaction
    from recollect.inject.values import InjectorConfig
    from recollect.search.values import ALL_PROJECTS

__version__ = "0.1.0"
__all__ = ["ALL_PROJECTS", "InjectorConfig", "Memory", "open_memory", "render_for_compaction"]
_ELSEWHERE = {
    "ALL_PROJECTS": "search.values",
    "InjectorConfig": "inject.values",
    "render_for_compaction": "inject.injector",
}


def __getattr__(name: str) -> Any:
    """Imported on first use: the command line and the hooks must not pay for what they do not need."""
    from importlib import import_module

    if name not in __all__:
        raise AttributeError(name)
    return getattr(import_module(f"recollect.{_ELSEWHERE.get(name, 'app')}"), name)
