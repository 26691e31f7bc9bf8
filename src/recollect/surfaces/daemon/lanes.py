"""A lane: a thread that hands work to a process of its own, one piece at a time.

The process is started when there is work and leaves when there was none for a while, so that an idle daemon has no
memory in use for it. One that dies is replaced; the work it died at is tried once more. The lane itself never dies.
"""

from __future__ import annotations

import logging
import subprocess
import threading
from collections.abc import Callable
from contextlib import suppress

import msgspec

from recollect import processes
from recollect.config import BYPASS_VARIABLE, Settings
from recollect.surfaces.daemon.work import Backlog, Result, Work
from recollect.surfaces.daemon.worker import Order

log = logging.getLogger(__name__)

_IDLE = 30.0  # seconds after which a process without work leaves
_GRACE = 5.0  # to finish a batch when it is asked to stop
_PAUSE = 1.0  # before what met a database that is held or away is tried again


class Lane(threading.Thread):
    def __init__(
        self, name: str, backlog: Backlog, settings: Settings, finished: Callable[[Work, Result], None]
    ) -> None:
        super().__init__(name=f"lane-{name}", daemon=True)
        self._lane = name
        self._backlog = backlog
        self._settings = settings
        self._finished = finished
        self._process: subprocess.Popen[bytes] | None = None
        self._failed: Work | None = None
        self._stopping = threading.Event()

    def run(self) -> None:
        while not self._backlog.closed:
            work = self._backlog.next(self._lane, _IDLE if self._process else None)
            if work is None:
                self._dismiss()
                continue
            try:
                result = self._do(work)
                self._finished(work, result)
                self._failed = None
                if result.busy:
                    self._backlog.put_back(work)
                    self._stopping.wait(_PAUSE)
            except OSError as error:
                self._dismiss()
                log.warning("the worker for %s died: %s", work.task, error)
                if work != self._failed:
                    self._backlog.put_back(work)
                self._failed = work
            except Exception:  # reason: the next piece of work may be another matter; the log tells of this one
                log.exception("%s", work.task)
        self._dismiss()

    def stop(self) -> None:
        """It is asked to; `join` waits until it has."""
        self._stopping.set()
        process = self._process
        if process is not None:
            process.terminate()

    def _do(self, work: Work) -> Result:
        if self._process is None:
            self._process = self._start()
            if self._backlog.closed:  # while it was started: `stop` may have found nobody to ask
                self._process.terminate()
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(msgspec.json.encode(work) + b"\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line.endswith(b"\n"):
            raise BrokenPipeError("it broke off")
        return msgspec.json.decode(line, type=Result)

    def _start(self) -> subprocess.Popen[bytes]:
        process = processes.start(
            processes.python("recollect.surfaces.daemon.worker"),
            {**self._settings.environ, BYPASS_VARIABLE: "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        assert process.stdin is not None
        process.stdin.write(
            msgspec.json.encode(Order(str(self._settings.home), self._settings.config, self._lane)) + b"\n"
        )
        return process

    def _dismiss(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        assert process.stdin is not None and process.stdout is not None
        with suppress(OSError):
            process.stdin.close()
        try:
            process.wait(_GRACE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()
