"""Where a bench keeps what it makes: a home that is gone afterwards; and commands in a process of their own."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from recollect import processes
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


def answer(home: Path, *command: str, **environ: str) -> dict[str, Any]:
    """Of a command in a process of its own, to a user who lives in the folder around that home."""
    user = {**os.environ, "RECOLLECT_HOME": str(home), "HOME": str(home.parent), **environ}
    done = processes.run(processes.python("recollect", *command, "--json"), user, capture_output=True)
    done.check_returncode()
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def installed_models() -> str:
    return str(folder(load()))
