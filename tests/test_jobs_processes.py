"""Jobs under real processes that are killed and stopped: every effect happens once."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from recollect.store.database import Database
from tests.conftest import Place
from tests.job_worker import KIND, complete, make_jobs

PROGRAM = Path(__file__).with_name("job_worker.py")
WORKERS, JOBS = 8, 500
MISHAPS = 40  # then the survivors are left in peace, so that a slow machine comes to an end too
SHORT, LONG = 1.0, 60.0  # leases, in seconds: one that runs out within a test, and one that does not


class Workers:
    """The processes of a test; none survives it."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._all: list[subprocess.Popen[str]] = []

    def start(self, seed: int | None = None, lease: float = SHORT) -> subprocess.Popen[str]:
        seeds = [] if seed is None else [str(seed)]
        arguments = [sys.executable, PROGRAM, self._place.url, self._place.home, str(lease), *seeds]
        process = subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
        self._all.append(process)
        return process

    def stop(self) -> None:
        for process in self._all:
            if process.poll() is None:
                process.kill()
            process.communicate()


@pytest.fixture
def workers(database_url: Place) -> Iterator[Workers]:
    started = Workers(database_url)
    yield started
    started.stop()


@pytest.fixture
def store(database: Database) -> Database:
    with database.write() as tx:
        tx.script("CREATE TABLE effects (job_key TEXT NOT NULL, token BIGINT NOT NULL, worker TEXT NOT NULL)")
    return database


def tell(process: subprocess.Popen[str], order: str) -> str:
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(order + "\n")
    process.stdin.flush()
    return process.stdout.readline().strip()


def count_of(database: Database) -> dict[str, int]:
    with database.read() as tx:
        return make_jobs(SHORT).count(tx)[KIND]


def test_whatever_dies_or_stalls_every_job_is_done_exactly_once(store: Database, workers: Workers) -> None:
    with store.write() as tx:
        assert make_jobs(SHORT).enqueue(tx, KIND, [(f"job{number:03d}", "w1") for number in range(JOBS)]) == JOBS
    chance = random.Random(2026)
    running = [workers.start(seed) for seed in range(1, WORKERS + 1)]
    stopped: dict[int, float] = {}  # place of a stopped worker → when it may go on
    deadline, killed, stalled = time.monotonic() + 60, 0, 0
    while count_of(store) != {"succeeded": JOBS}:
        assert time.monotonic() < deadline, count_of(store)
        time.sleep(chance.random() * 0.3)
        for place, until in list(stopped.items()):
            if time.monotonic() >= until:
                running[place].send_signal(signal.SIGCONT)
                del stopped[place]
        place = chance.randrange(WORKERS)
        if place in stopped or running[place].poll() is not None or killed + stalled >= MISHAPS:
            continue
        if chance.random() < 0.7:
            running[place].kill()
            running[place].wait()
            killed += 1
            running[place] = workers.start(1000 + killed)
        else:
            running[place].send_signal(signal.SIGSTOP)
            stopped[place] = time.monotonic() + SHORT * 1.3
            stalled += 1
    for place in stopped:
        running[place].send_signal(signal.SIGCONT)
    for process in running:
        assert process.wait(timeout=20) == 0  # nothing is left to do, also for those that were stopped
    with store.read() as tx:
        effects = tx.rows("SELECT job_key, token FROM effects")
        done = dict(tx.rows("SELECT job_key, fencing_token FROM memory_jobs"))
    assert Counter(key for key, _ in effects) == Counter(dict.fromkeys(done, 1))
    assert dict(effects) == done  # by whoever claimed it last
    assert len(done) == JOBS
    assert killed >= 5 and stalled >= 2 and max(done.values()) > 1, "nothing happened that could have gone wrong"


def ready(*processes: subprocess.Popen[str]) -> None:
    """They have started, and found nothing to do."""
    for process in processes:
        assert tell(process, "claim") == "claimed 0"


def enqueue(database: Database, *keys: str) -> None:
    with database.write() as tx:
        make_jobs(SHORT).enqueue(tx, KIND, [(key, "w1") for key in keys])


@pytest.mark.parametrize("wakes", ["while the other works", "when the other is done"])
def test_a_worker_that_was_stopped_past_its_lease_cannot_complete_what_another_took(
    store: Database, workers: Workers, wakes: str
) -> None:
    sleeper, other = workers.start(), workers.start(lease=LONG)
    ready(sleeper, other)
    enqueue(store, "the one")
    assert tell(sleeper, "claim") == "claimed 1"
    sleeper.send_signal(signal.SIGSTOP)
    while tell(other, "claim") == "claimed 0":
        time.sleep(0.05)
    if wakes == "when the other is done":
        assert tell(other, "complete") == "completed"
    sleeper.send_signal(signal.SIGCONT)
    assert tell(sleeper, "complete") == "lost"
    if wakes == "while the other works":
        assert tell(other, "complete") == "completed"
    with store.read() as tx:
        assert tx.rows("SELECT job_key, token FROM effects") == [("the one", 2)]
    assert count_of(store) == {"succeeded": 1}


def test_a_worker_that_was_stopped_past_its_lease_completes_what_nobody_took(store: Database, workers: Workers) -> None:
    sleeper = workers.start()
    ready(sleeper)
    enqueue(store, "the one")
    assert tell(sleeper, "claim") == "claimed 1"
    sleeper.send_signal(signal.SIGSTOP)
    time.sleep(SHORT * 1.1)
    sleeper.send_signal(signal.SIGCONT)
    assert tell(sleeper, "complete") == "completed"
    with store.read() as tx:
        assert tx.rows("SELECT job_key, token FROM effects") == [("the one", 1)]
    assert count_of(store) == {"succeeded": 1}


def test_workers_that_claim_at_once_never_claim_the_same_job(store: Database, workers: Workers) -> None:
    processes = [workers.start(lease=LONG) for _ in range(6)]
    ready(*processes)
    enqueue(store, "a", "b", "c", "d")
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("claim\n")
        process.stdin.flush()
    answers = Counter(process.stdout.readline().strip() for process in processes if process.stdout is not None)
    assert answers == {"claimed 1": 4, "claimed 0": 2}


def test_the_job_of_a_killed_worker_is_free_at_once(store: Database, workers: Workers) -> None:
    worker, jobs = workers.start(lease=LONG), make_jobs(LONG)
    ready(worker)
    enqueue(store, "the one")
    assert tell(worker, "claim") == "claimed 1"
    with store.write() as tx:
        assert jobs.reap(tx, KIND) == 0
    worker.kill()
    worker.wait()
    with store.write() as tx:
        assert jobs.reap(tx, KIND) == 1
        (lease,) = jobs.claim(tx, KIND, limit=1)
    assert (lease.token, lease.attempts) == (2, 2)
    assert complete(store, jobs, lease)
