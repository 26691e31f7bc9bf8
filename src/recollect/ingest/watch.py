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
from watchfiles import watch as follow

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
        on_change(intake.ingest())
        if roots:
            _follow(intake, roots, stop, poll_seconds, on_change)
        else:
            stop.wait(poll_seconds)


def _follow(
    intake: Intake, roots: list[Path], stop: Event, poll_seconds: float, on_change: Callable[[Report], None]
) -> None:
    """Returns when it is time to begin anew: stopped, or another root appeared."""
    waiting: set[Path] = set()
    polls = 0
    for changes in follow(
        *roots,
        watch_filter=_is_transcript,
        debounce=_COALESCE_MS,
        step=50,
        rust_timeout=int(poll_seconds * 1000),
        yield_on_timeout=True,
        stop_event=stop,
        raise_interrupt=False,
        recursive=True,
    ):
        waiting |= {file for _, path in changes for file in _files(Path(path))}
        try:
            if waiting:
                report = intake.take(sorted(waiting))
                waiting = {Path(found.path) for found in report.busy}
                on_change(report)
            intake.mark_ready()
        except StoreBusy as error:  # the next poll tries again
            log.warning("%s", error)
        polls += not changes
        if polls >= _LOOK_FOR_ROOTS:
            polls = 0
            if _existing(intake) != roots:
                return


def _existing(intake: Intake) -> list[Path]:
    return [root for roots in intake.roots().values() for root in roots if root.is_dir()]


def _is_transcript(change: Change, path: str) -> bool:
    """Or a folder that is new: what was written into it before it was followed is never reported."""
    if change is Change.deleted:
        return False
    return path.endswith(SUFFIXES) or (change is Change.added and Path(path).is_dir())


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    return [each for each in path.rglob("*") if each.name.endswith(SUFFIXES) and each.is_file()]
