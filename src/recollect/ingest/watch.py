"""Follows the agents' folders: a scan at the start, then only what the system reports as changed.

Changes that come together are taken together, and each file once. A file that another process holds is tried again at
the next poll. Between changes nothing runs but one look per poll for conversations that fell silent.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from threading import Event

from watchfiles import Change
from watchfiles._rust_notify import RustNotify  # the public watch() begins only when it waits: too late for the scan

from recollect.errors import StoreBusy
from recollect.ingest.intake import Intake
from recollect.ingest.run import Report
from recollect.ingest.scan import SUFFIXES

log = logging.getLogger(__name__)

_COALESCE_MS = 300  # changes within this time are taken together
_LOOK_FOR_ROOTS = 10  # polls between looks for an agent's folder that did not exist before


def watch(intake: Intake, stop: Event, poll_seconds: float, on_change: Callable[[Report], None]) -> None:
    """Until `stop` is set."""
    while not stop.is_set():
        roots = _existing(intake)
        # The watcher stands before the scan: what is written in between is reported, not lost.
        with RustNotify([str(root) for root in roots], False, False, 300, True, True) as watcher:
            on_change(intake.ingest())
            if roots:
                _follow(intake, watcher, roots, stop, poll_seconds, on_change)
            else:
                stop.wait(poll_seconds)


def _follow(
    intake: Intake,
    watcher: RustNotify,
    roots: list[Path],
    stop: Event,
    poll_seconds: float,
    on_change: Callable[[Report], None],
) -> None:
    """Returns when it is time to begin anew: stopped, or another root appeared."""
    waiting: set[Path] = set()
    polls = 0
    while polls < _LOOK_FOR_ROOTS or _existing(intake) == roots:
        polls = polls % _LOOK_FOR_ROOTS
        seen = watcher.watch(_COALESCE_MS, 100, int(poll_seconds * 1000), stop)
        if seen in ("stop", "signal"):
            return
        if isinstance(seen, set):
            waiting |= {file for kind, path in seen for file in _files(Change(kind), path)}
        else:
            polls += 1
        try:
            if waiting:
                report = intake.take(sorted(waiting))
                waiting = {Path(found.path) for found in report.busy}
                on_change(report)
            intake.mark_ready()
        except StoreBusy as error:  # the next poll tries again
            log.warning("%s", error)


def _existing(intake: Intake) -> list[Path]:
    return [root for roots in intake.roots().values() for root in roots if root.is_dir()]


def _files(change: Change, path: str) -> list[Path]:
    """The transcripts that a change is about. A new folder's are looked up: what was written into it before it was
    followed is never reported."""
    if change is Change.deleted:
        return []
    if change is Change.added and Path(path).is_dir():
        return [each for each in Path(path).rglob("*") if each.name.endswith(SUFFIXES) and each.is_file()]
    return [Path(path)] if path.endswith(SUFFIXES) else []
