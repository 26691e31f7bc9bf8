"""What waits for the daemon's workers: each thing once, and never more of them than fit.

Two lanes, so that a session that ends does not wait for an import of a year: `live` takes single transcripts and runs
the pipeline, `bulk` scans everything, replaces an embedding model of an earlier version and makes vectors.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

import msgspec

MOST = 500  # transcripts that wait by name; beyond that a scan finds them


class Task(StrEnum):
    TAKE = "take"  # one transcript
    RUN = "run"  # phase 1, then phase 2
    SCAN = "scan"  # every agent's folders
    REPLACE = "replace"  # an embedding model that an earlier version installed
    EMBED = "embed"  # vectors, for a little while
    REFRESH = "refresh"  # the files in context/


LANES: Mapping[str, tuple[Task, ...]] = {
    "live": (Task.TAKE, Task.RUN, Task.REFRESH),
    "bulk": (Task.SCAN, Task.REPLACE, Task.EMBED),
}


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """One piece of work."""

    task: Task
    path: str = ""  # of the transcript; empty: not known
    source: str = ""
    session: str = ""
    ended: bool = False  # its session ended: its conversations are ready
    compaction: str = ""  # what an agent replaced its history by


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """What came of it."""

    entries: int = 0
    ready: int = 0  # conversations that are ready now
    made: int = 0  # vectors
    changed: bool = False  # memories
    error: str = ""
    agent_goes_on: bool = False  # the person's own agent is to read more once nothing is in the way
    busy: bool = False  # it was not done: the database was held or away


class Backlog:
    def __init__(self) -> None:
        self._transcripts: dict[tuple[str, str], Work] = {}  # (path, session), oldest first
        self._others: set[Task] = set()
        self._changed = threading.Condition()
        self.closed = False
        self.doing: dict[str, Task] = {}  # lane → what it is at

    def add(self, work: Work) -> None:
        with self._changed:
            key = (work.path, work.session)
            if work.task is not Task.TAKE:
                self._others.add(work.task)
            elif key in self._transcripts or len(self._transcripts) < MOST:
                self._transcripts[key] = joined(self._transcripts.get(key), work)
            else:
                self._others.add(Task.SCAN)
            self._changed.notify_all()

    def put_back(self, work: Work) -> None:
        """Add work that could not be done. What came in about the same transcript meanwhile is newer."""
        with self._changed:
            if work.task is not Task.TAKE:
                self._others.add(work.task)
            else:
                key = (work.path, work.session)
                newer = self._transcripts.get(key)
                self._transcripts[key] = joined(work, newer) if newer else work
            self._changed.notify_all()

    def next(self, lane: str, seconds: float | None) -> Work | None:
        """None: nothing came in time, or no more will."""
        with self._changed:
            self.doing.pop(lane, None)
            self._changed.wait_for(lambda: self.closed or self._first(lane) is not None, seconds)
            task = None if self.closed else self._first(lane)
            if task is None:
                return None
            self.doing[lane] = task
            if task is Task.TAKE:
                return self._transcripts.pop(next(iter(self._transcripts)))
            self._others.discard(task)
            return Work(task=task)

    def _first(self, lane: str) -> Task | None:
        for task in LANES[lane]:
            if task in self._others or (task is Task.TAKE and self._transcripts):
                return task
        return None

    def close(self) -> None:
        with self._changed:
            self.closed = True
            self._changed.notify_all()

    def shown(self) -> dict[str, Any]:
        with self._changed:
            waiting = {str(task): 1 for task in Task if task in self._others}
            if self._transcripts:
                waiting[Task.TAKE] = len(self._transcripts)
            return {"doing": [str(task) for task in self.doing.values()], "waiting": waiting}


def joined(one: Work | None, other: Work) -> Work:
    """Both, about the same transcript."""
    if one is None:
        return other
    return msgspec.structs.replace(
        other,
        source=other.source or one.source,
        ended=other.ended,  # what was told last: a session that ended may have been resumed
        compaction=other.compaction or one.compaction,
    )
