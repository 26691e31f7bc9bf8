"""Where a bench keeps what it makes: a home that is gone afterwards."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from recollect.app import Memory, open_memory
from recollect.config import load
from recollect.models.embed.catalog import folder


@contextmanager
def passing_home(**flags: Any) -> Iterator[Memory]:
    """Empty, with the models that are installed."""
    with (
        tempfile.TemporaryDirectory(prefix="recollect-bench-") as name,
        open_memory(Path(name), models_folder=installed_models(), **flags) as memory,
    ):
        yield memory


def installed_models() -> str:
    return str(folder(load()))
