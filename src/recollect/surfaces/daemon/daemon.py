"""The daemon: one per home. It follows the agents' folders, keeps two lanes at work and answers hooks.

This process only watches and answers; everything long is done by the lanes' processes, so that an answer waits for
nobody. Idle, it waits: for the system to report a change, for a connection, and once per poll interval for
conversations that fell silent, jobs whose time has come and vectors that are missing. It may end at any moment: what it
queued is found again by the scan at its next start, and the run after it.
"""

from __future__ import annotations

import json
import logging
import math
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from recollect.app import Memory
from recollect.config import Settings
from recollect.errors import Disabled, RecollectError
from recollect.ingest.run import KIND as INGEST
from recollect.ingest.watch import existing, follow
from recollect.models.embed import catalog
from recollect.store.jobs import Jobs
from recollect.store.open import identity
from recollect.store.vectors import Kind
from recollect.surfaces.daemon import place
from recollect.surfaces.daemon.lanes import Lane
from recollect.surfaces.daemon.server import Server
from recollect.surfaces.daemon.work import LANES, Backlog, Result, Task, Work
from recollect.surfaces.hooks import client
from recollect.surfaces.hooks.answer import Hooks
from recollect.surfaces.http.launch import Page
from recollect.types import timestamp

log = logging.getLogger(__name__)

_PATIENCE = 10.0  # seconds in which its threads are to end; their processes end with it in any case


class Daemon:
    """Made by the holder of the lock. `read` is the stamp of config.toml as it was read. `stop` ends it from any
    thread."""

    is_outdated = False  # it ended because another one has to read configuration or database anew, or is newer

    def __init__(self, settings: Settings, lock: place.Lock, read: str) -> None:
        if not settings.config.enabled:
            raise Disabled
        self._memory = Memory(settings)
        self._settings = settings
        self._lock = lock
        self._backlog = Backlog()
        self._stopping = threading.Event()
        self._watching = False
        self._since = timestamp(self._memory.clock())
        self._config = read
        self._code = client.stamp(__file__)
        self._database = identity(settings)
        self._is_fresh = True  # until its first scan
        self._due: dict[Task, set[tuple[str, str, int]]] = {}  # jobs that were due at the last look, by who does them
        self._written = ""  # what told, at the last look for missing vectors, that the database changed
        self._missing: dict[Kind, int] = {}  # documents that had no vector then
        self._agent_looked = math.inf  # when it was last looked whether the agent may go on; inf: it has nothing to do
        self._hooks = Hooks(self._memory, self._backlog.add)
        listener, address, token = place.listen(settings.home)
        self._server = Server(listener, token, self._answer)
        self._lanes = [Lane(name, self._backlog, settings, self._finished) for name in LANES]
        self._page = Page(settings.home, settings.environ, lock.agent)
        self._watcher = threading.Thread(target=self._watch, name="watch", daemon=True)
        lock.tell(self._since, address)

    def stop(self) -> None:
        self._stopping.set()

    def run(self) -> None:
        """Until it is stopped."""
        log.info("serving %s", self._settings.home)
        self._take_spooled()  # before anything is asked: what a session was given is not given again
        self._server.start()
        place.came_up(self._settings.home)
        for thread in (*self._lanes, self._watcher):
            thread.start()
        self._hooks.warm()
        self._page.keep()
        mcp = None
        if self._settings.config.mcp_http_port:
            from recollect.surfaces.mcp.http import start  # its libraries take 30 MB, and few switch it on

            mcp = start(self._settings)
        self._stopping.wait()
        if mcp is not None:
            mcp.close()
        self._close()

    def _close(self) -> None:
        log.info("stopping")
        self._backlog.close()
        for lane in self._lanes:
            lane.stop()
        self._server.stop()
        if not self.is_outdated:  # the page looks after itself when something changes
            self._page.stop()
        self._hooks.close()
        deadline = time.monotonic() + _PATIENCE
        for thread in (*self._lanes, self._watcher):
            thread.join(max(0.0, deadline - time.monotonic()))
        if self._lock.is_valid():
            with suppress(OSError):
                (self._settings.home / client.SOCKET).unlink()
        self._memory.close()
        self._lock.release()

    # What it is asked

    def _answer(self, fields: Sequence[str], payload: bytes) -> bytes:
        kind, *rest = fields
        if kind == "hook":
            return self._hooks.answer(rest, payload)
        if kind == "status":
            return json.dumps(self.shown()).encode()
        if kind == "ui":
            self._page.start()
            return b"started"
        if kind == "session":
            return json.dumps(self._hooks.last_session(payload.decode("utf-8", "replace"))).encode()
        return b""

    def shown(self) -> dict[str, Any]:
        """For `status`."""
        return {
            "since": self._since,
            "watching": self._watching,
            **self._backlog.shown(),
            "turned_away": self._server.turned_away,
        }

    # What it does by itself

    def _watch(self) -> None:
        follow(
            lambda: existing(self._memory.intake),
            self._stopping,
            self._settings.config.poll_interval_seconds,
            begin=self._begin,
            take=self._changed,
            poll=self._poll,
        )

    def _take_spooled(self) -> None:
        for work in self._hooks.spooled():
            self._backlog.add(work)

    def _begin(self, reported: bool) -> None:
        self._backlog.add(Work(task=Task.SCAN))
        if catalog.stale(self._settings):
            self._backlog.add(Work(task=Task.REPLACE))
        self._watching = reported

    def _changed(self, paths: Sequence[Path]) -> tuple[()]:
        for path in paths:
            self._backlog.add(Work(task=Task.TAKE, path=str(path)))
        return ()

    def _poll(self) -> None:
        if not self._lock.is_valid():
            log.warning("the home was moved or removed")
            self.stop()
        elif change := self._change():
            log.info("%s", change)
            self.is_outdated = True
            self.stop()
        else:
            try:
                self._page.keep()
                self._take_spooled()
                ready = self._memory.intake.mark_ready()
                due = self._became_due()
                if Task.SCAN in due:
                    self._backlog.add(Work(task=Task.SCAN))
                if ready or Task.RUN in due or self._memory.is_erasing():
                    self._backlog.add(Work(task=Task.RUN))
                if self._agent_may_go_on():
                    self._backlog.add(Work(task=Task.RUN))
                if self._vectors_wait():
                    self._backlog.add(Work(task=Task.EMBED))
            except RecollectError as error:  # the next poll may find it mended
                log.warning("%s", error)
            except Exception:  # reason: the watcher must not end with it; the next poll may be another matter
                log.exception("poll")

    def _became_due(self) -> set[Task]:
        """The tasks for which other jobs are due than at the last look. A job that no task takes up is not tried again
        and again."""
        with self._memory.database.read() as tx:
            jobs = Jobs(self._memory.owner, clock=self._memory.clock).due(tx)
        due: dict[Task, set[tuple[str, str, int]]] = {}
        for job in jobs:
            due.setdefault(Task.SCAN if job[0] == INGEST else Task.RUN, set()).add(job)
        before, self._due = self._due, due
        return {task for task in due if due[task] != before.get(task)}

    def _agent_may_go_on(self) -> bool:
        """Has the person's own agent something to read, and is nothing in its way any more? Looked at now and then: it
        takes a look at every transcript."""
        if time.monotonic() < self._agent_looked + 2 * self._settings.config.poll_interval_seconds:
            return False
        self._agent_looked = time.monotonic()
        if self._memory.offer.waits():
            return False
        self._agent_looked = math.inf
        return True

    def _vectors_wait(self) -> bool:
        """Does anything else lack a vector than at the last look? A command may have changed a text, and counting costs
        too much to do it while nobody writes. What cannot be made is not tried again and again."""
        file = self._settings.database_file
        written = "" if self._settings.config.database else client.stamp(str(file)) + client.stamp(f"{file}-wal")
        if written and written == self._written:
            return False
        missing = self._memory.vectors.backlog()
        before, self._missing, self._written = self._missing, missing, written
        return any(missing.values()) and missing != before

    def _change(self) -> str:
        """Why another one has to begin; empty: there is no reason."""
        if self._config != client.stamp(str(self._settings.home / "config.toml")):
            return "config.toml changed"
        if self._database != identity(self._settings):
            return "the database was replaced or removed"
        return "recollect was upgraded" if self._code != client.stamp(__file__) else ""

    def _finished(self, work: Work, result: Result) -> None:
        if result.error:
            log.warning("%s: %s", work.task, result.error)
        if result.ready or (self._is_fresh and work.task is Task.SCAN):  # a session found no daemon, or it was killed
            self._backlog.add(Work(task=Task.RUN))
        if work.task is Task.SCAN:
            self._is_fresh = False
        if work.task is Task.RUN:
            self._agent_looked = time.monotonic() if result.agent_goes_on else math.inf
        if result.made:
            self._missing = {}
        if (result.entries or result.made or result.changed) and self._settings.config.embedder != "none":
            self._backlog.add(Work(task=Task.EMBED))
