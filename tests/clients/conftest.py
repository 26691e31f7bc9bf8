"""Real agents on a machine of their own: a private home, a scripted model on loopback, nothing of the user's.

`make test-clients` installs them. Where they are not installed the tests say so: they are skipped, and in CI they fail.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.clients.model import Model

INSTALLED = Path(os.environ.get("RECOLLECT_TEST_CLIENTS") or Path(sys.prefix) / "clients") / "node_modules"
SECONDS = 90.0  # that a session, or what follows from it, may take on a busy machine


class Machine:
    """A home with agents in it, and projects."""

    def __init__(self, home: Path, model: Model) -> None:
        self.home = home
        self.model = model
        self.memory = home / ".recollect"
        self.memory.mkdir(mode=0o700, parents=True)
        (self.memory / "config.toml").write_text('embedder = "none"\n')  # Codex hands no variables on
        self.environ: dict[str, str] = {"PATH": os.environ["PATH"], "HOME": str(home), "LANG": "C.UTF-8"}
        self.python = sys.executable  # of the installation that is used
        self.user: dict[str, Any] = {}  # who agents run as: keywords of `subprocess.run`

    def project(self, name: str) -> Path:
        folder = self.home / "code" / name
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def recollect(self, *arguments: str, cwd: Path | None = None) -> Any:
        """A command's JSON."""
        return json.loads(self._run([self.python, "-P", "-m", "recollect", *arguments, "--json"], cwd or self.home))

    def run(self, command: list[str], cwd: Path, **environ: str) -> str:
        """What an agent prints."""
        return self._run(command, cwd, **self.user, env={**self.environ, **environ})

    def _run(self, command: list[str], cwd: Path, **options: Any) -> str:
        """What it prints; a failure is told with everything it said."""
        done = subprocess.run(
            command,
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
            **{"env": self.environ, **options},
        )
        assert done.returncode == 0, f"{command[0]}: {done.stdout[-2000:]}\n{done.stderr[-2000:]}"
        return done.stdout

    def given(self, session: Callable[[], object]) -> str:
        """What the model was given in a session."""
        first = len(self.model.asked)
        session()
        assert len(self.model.asked) > first, "the agent asked no model"
        return self.model.since(first)

    def learnt(self, words: str, project: Path) -> str:
        """The id of a memory that comes to be, by what the agent's hooks set going."""
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline:
            hits = self.recollect("search", words, "--kind", "memory", cwd=project)["hits"]
            if hits:
                return str(hits[0]["id"])
            time.sleep(0.5)
        raise AssertionError(f"nothing was learnt about {words!r}: {self.recollect('status')}\n{self.logs()}")

    def cited(self, memory: str) -> None:
        """Waits until the agent's answer counts as use. To look counts, too, from the next look on."""
        deadline, looks = time.monotonic() + SECONDS, 0
        while self.recollect("show", memory)["uses"] <= looks:
            looks += 1
            assert time.monotonic() < deadline, f"no use of {memory}: {self.logs()}"
            time.sleep(0.5)

    def logs(self) -> str:
        return "\n".join(f"{each.name}: {each.read_text()[-3000:]}" for each in sorted(self.memory.glob("logs/*")))


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    with Model() as model:
        found = Machine(tmp_path / "home", model)
        try:
            yield found
        finally:
            found.recollect("serve", "--stop")


def program(*places: str) -> str:
    """The first of these files that is installed."""
    for place in places:
        for path in sorted(INSTALLED.glob(place)):
            return str(path)
    what = f"{places[0]} is not installed; `make test-clients` does it"
    if os.environ.get("CI"):
        pytest.fail(what)
    pytest.skip(what)
