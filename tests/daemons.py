"""Real daemons and hooks for tests: each in a home of its own, and none of them left behind."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from recollect.surfaces.daemon import place
from recollect.surfaces.hooks import client, launcher
from tests import command
from tests.command import Done

RECOLLECT = [sys.executable, "-m", "recollect"]
PROCESSES = {"serve", "hook", "doctor", "init", "service"}  # what they start is no child of the tests


def hook_command(*words: str) -> list[str]:
    """What the launcher of a home runs."""
    return [*launcher.own().command, *words]


class Home:
    """A home, the agents' folders beside it, and whatever runs there."""

    def __init__(self, tmp_path: Path, **environ: str) -> None:
        self.user = tmp_path
        self.path = tmp_path / ".recollect"
        self.environ = {**os.environ, "HOME": str(tmp_path), "RECOLLECT_HOME": str(self.path), **environ}
        self.projects = tmp_path / ".claude" / "projects"
        self.projects.mkdir(parents=True, exist_ok=True)

    def run(self, *arguments: str, **environ: str) -> Done:
        call, env = [*RECOLLECT, *arguments], {**self.environ, **environ}
        if arguments[0] not in PROCESSES:
            return command.run(self.path, *arguments, **env)
        done = subprocess.run(call, env=env, input="", capture_output=True, text=True, timeout=60, check=False)
        return Done(done.returncode, done.stdout, done.stderr)

    def json(self, *arguments: str) -> Any:
        done = self.run(*arguments, "--json")
        assert done.status == 0, done
        return done.json

    def hook(self, event: str, told: object, *, agent: str = "claude-code", **environ: str) -> str:
        """What it printed; it must have ended well, and in silence."""
        data = told if isinstance(told, bytes) else json.dumps(told).encode()
        env = {**self.environ, **environ}
        done = subprocess.run(
            hook_command(event, "--agent", agent), env=env, input=data, capture_output=True, timeout=10, check=False
        )
        assert (done.returncode, done.stderr) == (0, b"")
        return done.stdout.decode()

    def said(self, event: str, told: object, **more: str) -> str:
        """The context that it gave."""
        printed = self.hook(event, told, **more)
        if not printed:
            return ""
        output = json.loads(printed)["hookSpecificOutput"]
        assert output["hookEventName"] == event
        return str(output["additionalContext"])

    def start(self) -> int:
        """The process id of a daemon that answers."""
        return int(self.json("serve", "--background")["pid"])

    def pid(self) -> int:
        there = place.running(self.path)
        return there.pid if there else 0

    def is_serving(self) -> bool:
        """Whoever holds the lock listens."""
        there = place.running(self.path)
        return bool(there and there.since)

    def is_idle(self) -> bool:
        try:
            told = json.loads(client.ask(str(self.path), ["status"], b"", time.monotonic() + 2))
        except (OSError, client.Refused):
            return False
        return told["watching"] and not told["doing"] and not told["waiting"]

    def settle(self) -> None:
        wait(self.is_idle)

    def stop(self) -> None:
        pid = self.pid()
        if not pid:
            return
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
        wait(lambda: self.pid() != pid)

    def log(self) -> str:
        path = self.path / "logs" / "hooks.log"
        return path.read_text() if path.exists() else ""


@contextmanager
def home(tmp_path: Path, **environ: str) -> Iterator[Home]:
    made = Home(tmp_path, **environ)
    try:
        yield made
    finally:
        wait(lambda: not is_starting(made.path))
        made.stop()


def is_starting(path: Path) -> bool:
    """Has a hook started a daemon that does not serve yet? It holds a lock from its first moment."""
    try:
        descriptor = os.open(path / client.STARTING, os.O_RDWR)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return False
    except OSError:
        there = place.running(path)
        return not (there and there.since)  # who it is, is known a moment after it holds its own lock
    finally:
        os.close(descriptor)


def wait(condition: Callable[[], object], seconds: float = 30.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.02)
