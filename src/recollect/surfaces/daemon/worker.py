"""A worker of the daemon: one process that does long work, so that answers never wait for it.

It reads its orders from standard input, first the settings and then a line per piece of work, and answers each with a
line. It ends when its input does, at once when the daemon is killed (what it held is recovered like any other
process's), and after the current batch when it is asked to.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import time
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO

import msgspec

from recollect.app import Memory
from recollect.asking import Estimate
from recollect.config import Config, Settings
from recollect.consolidate.run import Outcome
from recollect.errors import RecollectError, StoreBusy
from recollect.ingest.workers import die_with_parent
from recollect.models.embed import catalog
from recollect.processes import terminable
from recollect.projects.paths import redacted
from recollect.redact import redact
from recollect.store import compactions
from recollect.surfaces.cli.common import log_to
from recollect.surfaces.daemon.work import Result, Task, Work
from recollect.types import timestamp

log = logging.getLogger(__name__)

_EMBED_SECONDS = 2.0  # at a time: then other work has its turn
_PATIENCE = 3.0  # seconds to wait for a file that another process holds, or for a line that is still to be written
_AFTERWARDS = 60.0  # seconds in which what is still written to an ended session's transcript does not reopen it


class Order(msgspec.Struct):
    """What a worker is told first."""

    home: str
    config: Config
    lane: str


class Worker:
    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._ended: dict[tuple[str, str], float] = {}  # (source, session) → when

    def do(self, work: Work) -> Result:
        tasks: dict[Task, Callable[[Work], Result]] = {
            Task.TAKE: self._take,
            Task.RUN: self._run,
            Task.SCAN: self._scan,
            Task.REPLACE: self._replace,
            Task.EMBED: self._embed,
            Task.REFRESH: self._refresh,
        }
        try:
            return tasks[work.task](work)
        except StoreBusy as error:
            log.warning("%s: %s", work.task, error)
            return Result(error=str(error), busy=True)
        except (RecollectError, OSError) as error:
            log.warning("%s: %s", work.task, error)
            return Result(error=str(error))
        except Exception as error:  # reason: the next piece of work may be another matter; the log tells of this one
            log.exception("%s", work.task)
            return Result(error=repr(error))

    def _take(self, work: Work) -> Result:
        entries = self._read(work.path)
        if entries:
            self._memory.index()
            self._memory.count_citations()
        if work.compaction:
            self._compacted(work)
        if work.ended:
            self._ended[work.source, work.session] = time.monotonic()
        else:
            self._ended.pop((work.source, work.session), None)  # it was resumed
        ready = sum(
            self._memory.intake.end(*session)
            for session, since in self._ended.items()
            if time.monotonic() - since < _AFTERWARDS
        )
        return Result(entries=entries, ready=ready)

    def _read(self, path: str) -> int:
        deadline = time.monotonic() + _PATIENCE
        while path:
            report = self._memory.intake.take([Path(path)])
            for problem in report.problems:
                log.warning("%s: %s", redacted(problem.path), problem.reason)
            if not report.busy or time.monotonic() > deadline:
                return report.entries
            time.sleep(0.1)
        return 0

    def _compacted(self, work: Work) -> None:
        """Its artifact. The transcript reports it too, often a moment later: then that one counts. What the session
        was given is gone since the start that followed, which may have told it anew by now."""
        text = redact(work.compaction).strip()
        deadline = time.monotonic() + _PATIENCE
        while True:
            with self._memory.database.read() as tx:
                known = compactions.of_session(tx, self._memory.owner, work.source, work.session)
            if any(_same(text, each.summary) for each in known):
                return
            if time.monotonic() > deadline:
                break
            time.sleep(0.3)
            self._read(work.path)
        talks = [each for each in self._memory.conversations() if each.session_id == work.session]
        if talks and text:
            uuid = "h-" + sha256(f"{work.session}\n{text}".encode()).hexdigest()[:32]
            now = timestamp(self._memory.clock())
            self._memory.record_compaction(talks[0].session_key, text, now, uuid, reset=False)

    def _run(self, work: Work) -> Result:
        config = self._memory.settings.config
        estimate = None if config.model == "offline" else self._memory.estimate()
        done = self._memory.process(limit=limited(estimate, config.confirm_above_tokens))
        for key, reason in done.problems:
            log.warning("%s: %s", key, reason)
        made = self._memory.consolidate()
        changed = bool(done.claimed) or made.outcome is Outcome.SUCCEEDED
        error = made.reason if made.outcome is Outcome.FAILED else ""
        goes_on = bool(done.left_to_agent) and (bool(done.agent_waits) or done.by_agent > 0) and not done.limited
        return Result(changed=changed, error=error, agent_goes_on=goes_on)

    def _scan(self, work: Work) -> Result:
        report = self._memory.ingest(since=self._memory.settings.config.history_since)
        for problem in report.problems:
            log.warning("%s: %s", redacted(problem.path), problem.reason)
        return Result(entries=report.entries, ready=report.conversations)

    def _replace(self, work: Work) -> Result:
        models = catalog.stale(self._memory.settings)
        if models is None:
            return Result()
        from recollect.models.embed.install import install  # here: what it needs is loaded once in a lifetime

        return Result(changed=install("arctic", models))

    def _embed(self, work: Work) -> Result:
        return Result(made=self._memory.embed(seconds=_EMBED_SECONDS))

    def _refresh(self, work: Work) -> Result:
        self._memory.briefing.refresh()
        return Result(changed=True)


def limited(estimate: Estimate | None, most: int) -> int | None:
    """How many conversations a run takes, so that a paid model is not sent more than a person would be asked about."""
    if estimate is None or estimate.tokens <= most:
        return None
    return max(1, estimate.conversations * most // estimate.tokens)


def _same(one: str, other: str) -> bool:
    """Agents put a sentence before the text where they write it down."""
    one, other = " ".join(one.split()), " ".join(other.split())
    return bool(one) and (one in other or other in one)


def opened(settings: Settings) -> Memory:
    """The memory, once the database can be used."""
    while True:
        try:
            return Memory(settings)
        except StoreBusy as error:
            log.warning("%s", error)
            time.sleep(1.0)


def serve(memory: Memory, orders: BinaryIO, answers: BinaryIO) -> None:
    worker = Worker(memory)
    for line in orders:
        answers.write(msgspec.json.encode(worker.do(msgspec.json.decode(line, type=Work))) + b"\n")
        answers.flush()


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the daemon's to handle
    die_with_parent()
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever a library prints is no answer
    orders = sys.stdin.buffer
    order = msgspec.json.decode(orders.readline(), type=Order)
    os.nice(10 if order.lane == "bulk" else 5)
    settings = Settings(home=Path(order.home), config=order.config, origins={}, environ=dict(os.environ))
    log_to(settings, f"worker-{order.lane}.log")
    try:
        with terminable(), opened(settings) as memory:  # until now there was nothing to finish
            serve(memory, orders, answers)
    except (KeyboardInterrupt, BrokenPipeError):
        sys.exit(1)


if __name__ == "__main__":
    main()
