"""Starts the process of the page, and again when it was killed. Imports nothing of what that process needs."""

from __future__ import annotations

import logging
import subprocess
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from recollect import processes
from recollect.config import BYPASS_VARIABLE, HOME_VARIABLE
from recollect.surfaces.http import place

log = logging.getLogger(__name__)

_PAUSE = 0.5  # seconds before one that was killed is started again
_SHORT = 5.0  # seconds: a process that ends so soon is not started again by itself
_GRACE = 5.0


class Page:
    """The process of one home's page."""

    def __init__(self, home: Path, environ: Mapping[str, str], agent_id: str = "") -> None:
        self._home = home
        self._environ = {**environ, HOME_VARIABLE: str(home), BYPASS_VARIABLE: "1"}
        self._arguments = ["--agent-id", agent_id] if agent_id else []
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()
        self.stopping = threading.Event()
        self.ended = threading.Event()

    def start(self) -> None:
        """Unless one is there, or coming up."""
        with self._lock:
            if self.stopping.is_set() or place.running(self._home) or (self._process and self._process.poll() is None):
                return
            nothing = subprocess.DEVNULL
            self.ended.clear()
            self._process = processes.start(
                processes.python("recollect.surfaces.http.serve", *self._arguments),
                self._environ,
                cwd=self._home,
                stdin=nothing,
                stdout=nothing,
                stderr=nothing,
                start_new_session=True,
            )
            threading.Thread(target=self._wait, args=(self._process,), name="page", daemon=True).start()

    def keep(self) -> None:
        """Start it where one was killed, by whomever it was started."""
        if place.was_killed(self._home):
            self.start()

    def stop(self) -> None:
        """End the one that was started here."""
        self.stopping.set()
        process = self._process
        if process is not None and process.poll() is None:
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(_GRACE)

    def _wait(self, process: subprocess.Popen[bytes]) -> None:
        since = time.monotonic()
        status = process.wait()
        if status < 0 and not self.stopping.wait(_PAUSE) and time.monotonic() - since > _SHORT:
            log.warning("the page was killed by signal %s; it is started again", -status)
            self.start()
        else:
            self.ended.set()
