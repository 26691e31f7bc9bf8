"""A large backlog is shared with further processes, each under leases of its own: parsing is bound by one core.

The helper is this module run as a program: it reads one JSON document (settings and its share of the files) from
standard input, which is a file, so that its parent need not wait for it; it writes a line per progress step and at
last its report. It stops when its parent is gone. What a helper could not finish is simply not done: the parent takes
it up, as any other process would.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from recollect.config import BYPASS_VARIABLE, Config, Settings
from recollect.ingest.run import Progress, Report
from recollect.ingest.scan import Found
from recollect.store.ground import Ground

SHARE_ABOVE = 48 * 1024 * 1024  # bytes; below this a process costs more than it saves

_PER_FILE = 64 * 1024  # what else a file costs, in bytes read
_HEAD_START = 24 * 1024 * 1024  # what this process reads while a helper starts


class Order(msgspec.Struct):
    """What a helper is told."""

    home: str
    config: Config
    found: list[Found]
    source: str  # of all of them; empty: each file tells its own
    reimport: bool


class Step(msgspec.Struct):
    """What a helper says: progress, and at last a report."""

    bytes: int = 0
    files: int = 0
    report: Report | None = None


def shares(found: Sequence[Found], number: int) -> list[list[Found]]:
    """Parts of about equal cost, each in the given order; the first is for this process. A key is in one part only.
    None of the others is empty: there may be fewer than asked for."""
    loads = [0, *[_HEAD_START] * (number - 1)]
    part_of: dict[str, int] = {}
    for each in sorted(found, key=lambda each: -each.size):
        part = part_of.setdefault(each.key, loads.index(min(loads)))
        loads[part] += each.size + _PER_FILE
    mine, *others = [[each for each in found if part_of[each.key] == part] for part in range(number)]
    return [mine, *filter(None, others)]


class Helper:
    """A process that reads a share of the files."""

    def __init__(
        self, settings: Settings, found: Sequence[Found], source: str, reimport: bool, progress: Progress
    ) -> None:
        import selectors  # what a helper itself has no use for: its start counts
        import subprocess
        import tempfile

        from recollect import processes

        self.found = found
        self._progress = progress
        self._report: Report | None = None
        self._pending = b""
        order = Order(str(settings.home), settings.config, list(found), source, reimport)
        with tempfile.TemporaryFile() as file:
            file.write(msgspec.json.encode(order))
            file.seek(0)
            self._process = processes.start(
                processes.python(__name__),
                {**settings.environ, BYPASS_VARIABLE: "1"},
                stdin=file,
                stdout=subprocess.PIPE,
                start_new_session=True,  # Ctrl-C is the parent's to handle: it stops its helpers
            )
        assert self._process.stdout is not None
        self._output = self._process.stdout
        self._ready = selectors.DefaultSelector()
        self._ready.register(self._output, selectors.EVENT_READ)

    def poll(self, timeout: float | None = 0) -> bool:
        """Takes what it has said; false when it will say no more."""
        while self._ready.select(timeout):
            data = os.read(self._output.fileno(), 65536)
            if not data:
                return False
            *lines, self._pending = (self._pending + data).split(b"\n")
            for line in lines:
                step = msgspec.json.decode(line, type=Step)
                self._report = step.report or self._report
                self._progress(step.bytes, step.files)
        return True

    def finish(self) -> Report | None:
        """Its report; none when it failed."""
        while self.poll(None):
            pass
        self._process.wait()
        self._close()
        return self._report

    def stop(self) -> None:
        if self._process.poll() is None:
            self._process.terminate()
            self._process.wait()
        self._close()

    def _close(self) -> None:
        self._ready.close()
        self._output.close()


def die_with_parent() -> None:
    """On Linux at once, so that its leases are known to be dead; elsewhere at the next step it takes."""
    if sys.platform == "linux":
        import ctypes

        pr_set_pdeathsig, sigkill = 1, 9
        ctypes.CDLL(None).prctl(pr_set_pdeathsig, sigkill)


def main() -> None:
    """The helper's side."""
    import signal

    from recollect.ingest.intake import Intake
    from recollect.store.open import open_database
    from recollect.types import Owner, utc_now

    parent = os.getppid()
    die_with_parent()
    order = msgspec.json.decode(sys.stdin.buffer.read(), type=Order)

    def say(step: Step) -> None:
        sys.stdout.buffer.write(msgspec.json.encode(step) + b"\n")
        sys.stdout.buffer.flush()

    def progress(size: int, files: int) -> None:
        if os.getppid() != parent:
            raise KeyboardInterrupt
        say(Step(size, files))

    settings = Settings(home=Path(order.home), config=order.config, origins={}, environ=dict(os.environ))
    database = open_database(settings, utc_now)
    try:
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # until now there was nothing to give back
        intake = Intake(Ground(database, settings, Owner(order.config.tenant, order.config.agent_id), utc_now))
        report = intake.read(order.found, order.source or None, reimport=order.reimport, progress=progress)
        say(Step(report=report))
        status = 0
    except (KeyboardInterrupt, BrokenPipeError):
        status = 1
    finally:
        database.close()
    os._exit(status)  # the parent waits: an interpreter that tidies up takes 20 ms


if __name__ == "__main__":
    main()
