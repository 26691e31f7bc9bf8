"""Runs a command in this process: starting another one takes longer than the command."""

from __future__ import annotations

import io
import json
import os
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

from recollect.surfaces import cli


class Done(NamedTuple):
    status: int
    stdout: str
    stderr: str

    @property
    def json(self) -> Any:
        return json.loads(self.stdout)


def run(home: Path, *arguments: str, cwd: Path | None = None) -> Done:
    out, err = io.StringIO(), io.StringIO()
    before = os.environ.get("RECOLLECT_HOME")
    os.environ["RECOLLECT_HOME"] = str(home)
    try:
        with redirect_stdout(out), redirect_stderr(err), chdir(cwd or Path.cwd()):
            status = cli.run(arguments)
    finally:
        del os.environ["RECOLLECT_HOME"]
        if before is not None:
            os.environ["RECOLLECT_HOME"] = before
    return Done(status, out.getvalue(), err.getvalue())
