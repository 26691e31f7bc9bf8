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


def __getattr__(name: str) -> Any:
    """Imported on first use: the command line and the hooks must not pay for what they do not need."""
    if name == "ALL_PROJECTS":
        from recollect.search.values import ALL_PROJECTS

        return ALL_PROJECTS
    if name == "InjectorConfig":
        from recollect.inject.values import InjectorConfig

        return InjectorConfig
    if name == "render_for_compaction":
        from recollect.inject.injector import render_for_compaction

        return render_for_compaction
    if name in __all__:
        from recollect import app

        return getattr(app, name)
    raise AttributeError(name)
