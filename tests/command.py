"""Runs a command in this process: starting another one takes longer than the command."""

from __future__ import annotations

import io
import json
import logging
import sys
from collections.abc import Iterator
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from recollect.surfaces import cli


class Done(NamedTuple):
    status: int
    stdout: str
    stderr: str

    @property
    def json(self) -> Any:
        return json.loads(self.stdout)


def run(home: Path, *arguments: str, cwd: Path | None = None, **environ: str) -> Done:
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, _log_of_its_own():
        for name, value in {"RECOLLECT_HOME": str(home), **environ}.items():
            patch.setenv(name, value)
        patch.setattr(sys, "stdin", io.StringIO())  # there is nobody to ask
        with redirect_stdout(out), redirect_stderr(err), chdir(cwd or Path.cwd()):
            status = cli.run(arguments)
    return Done(status, out.getvalue(), err.getvalue())


@contextmanager
def _log_of_its_own() -> Iterator[None]:
    """A command sends the log to its home, for as long as its process would live."""
    log = logging.getLogger("recollect")
    handlers, level, propagate = log.handlers[:], log.level, log.propagate
    try:
        yield
    finally:
        for handler in log.handlers:
            if handler not in handlers:
                handler.close()
        log.handlers, log.propagate = handlers, propagate
        log.setLevel(level)
