"""The known transcript formats. A module in this folder that defines SOURCE is one; adding a source is one file."""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Sequence

from recollect.errors import UnknownSource
from recollect.ingest.sources.base import Source


@functools.cache
def all_sources() -> dict[str, Source]:
    found = {}
    for module in pkgutil.iter_modules(__path__):
        source = getattr(importlib.import_module(f"{__name__}.{module.name}"), "SOURCE", None)
        if isinstance(source, Source):
            found[source.name] = source
    return dict(sorted(found.items()))


def get_source(name: str) -> Source:
    try:
        return all_sources()[name]
    except KeyError:
        known = ", ".join(all_sources())
        raise UnknownSource(f"unknown source `{name}`", hint=f"Known sources: {known}.") from None


def detect(head: Sequence[bytes]) -> Source | None:
    """The source whose format the first lines of a file are in."""
    for source in all_sources().values():
        if source.recognises(head):
            return source
    return None
