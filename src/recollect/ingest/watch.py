"""Follows the agents' folders: a scan at the start, then only what the system reports as changed.

Changes that come together are taken together, and each file once. A file that another process holds is tried again at
the next poll. Between changes nothing runs but one look per poll for conversations that fell silent. Where the system
cannot report changes (too few watches, a name that is not UTF-8), everything is looked at once per poll instead.
"""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from threading import Event

from watchfiles import Change
from watchfiles._rust_notify import RustNotify  # the public watch() begins only when it waits: too late for the scan

from recollect.errors import RecollectError, StoreBusy
from recollect.ingest.intake import Intake
from recollect.ingest.run import Report
from recollect.ingest.scan import SUFFIXES
from recollect.text import is_utf8

log = logging.getLogger(__name__)

_COALESCE_MS = 300  # changes within this time are taken together
_STEP_MS = 100  # between looks whether more changes came

Roots = dict[Path, tuple[int, int]]  # folder → device and number: another one in its place is not what is followed


def watch(intake: Intake, stop: Event, poll_seconds: float, on_change: Callable[[Report], None]) -> None:
    """Until `stop` is set."""

    def take(paths: list[Path]) -> list[Path]:
        report = intake.take(paths)
        on_change(report)
        return [Path(found.path) for found in report.busy]

    follow(
        lambda: existing(intake),
        stop,
        poll_seconds,
        begin=lambda reported: on_change(intake.ingest()),
        take=take,
        poll=intake.mark_ready,
    )


def follow(
    find_roots: Callable[[], Roots],
    stop: Event,
    poll_seconds: float,
    *,
    begin: Callable[[bool], object],
    take: Callable[[list[Path]], Iterable[Path]],
    poll: Callable[[], object],
) -> None:
    """Until `stop` is set. `begin` looks at everything, at the start and when a root appeared or was replaced, and is
    told whether changes are reported from now on: while they are not, it is called once per poll. `take` is given files
    that changed and returns those to try again; `poll` is called after changes and once in a while."""

    def until_others() -> None:
        """Until there are other roots."""
        roots = find_roots()
        # The watcher stands before the scan: what is written in between is reported, not lost.
        with RustNotify([str(root) for root in roots], False, False, 300, True, True) as watcher:
            begin(True)
            waiting: set[Path] = set()
            gone = False  # a root: what comes in its place, perhaps under the same number, is not followed
            while not stop.is_set() and not gone and find_roots() == roots:
                seen = _changes(watcher, roots, stop, poll_seconds)
                gone = any(kind is Change.deleted and Path(path) in roots for kind, path in seen)
                waiting |= {file for kind, path in seen for file in _files(kind, path)}
                try:
                    if waiting and not stop.is_set():
                        waiting = set(take(sorted(waiting)))
                    poll()
                except StoreBusy as error:  # the next poll tries again
                    log.warning("%s", error)

    while not stop.is_set():
        try:
            until_others()
        except RecollectError:
            raise
        except Exception:  # reason: whatever the system refuses, everything can still be looked at
            log.exception("changes are not reported: everything is looked at once per poll")
            with suppress(StoreBusy):  # the next poll tries again
                begin(False)
                poll()
            stop.wait(poll_seconds)


def _changes(watcher: RustNotify, roots: Roots, stop: Event, seconds: float) -> set[tuple[Change, str]]:
    """What changed; nothing when nothing did in this time."""
    if not roots:
        stop.wait(seconds)
        return set()
    seen = watcher.watch(_COALESCE_MS, _STEP_MS, int(seconds * 1000), stop)
    if not isinstance(seen, set):
        return set()
    return {(Change(kind), path) for kind, path in seen}


def existing(intake: Intake) -> Roots:
    found: Roots = {}
    for root in (root for roots in intake.roots().values() for root in roots):
        with suppress(OSError):
            status = root.stat()
            if stat.S_ISDIR(status.st_mode):
                found[root] = (status.st_dev, status.st_ino)
    return found


def _files(change: Change, path: str) -> list[Path]:
    """The transcripts that a change is about. A new folder's are looked up: what was written into it before it was
    followed is never reported. (Not by `rglob`, which raises when a folder is gone again.) One whose name is not UTF-8
    is left to the scan, which tells of it."""
    if change is Change.deleted:
        return []
    if change is Change.added and Path(path).is_dir():
        found = [Path(place, name) for place, _, names in os.walk(path) for name in names if name.endswith(SUFFIXES)]
        return [each for each in found if is_utf8(str(each)) and each.is_file()]
    return [Path(path)] if path.endswith(SUFFIXES) else []
