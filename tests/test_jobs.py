"""The life of a job: who may take it, when, and what a worker that lost its lease can still do (nothing)."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import count
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from recollect.errors import LeaseLost, StoreBusy
from recollect.store.database import Database, Transaction
from recollect.store.jobs import PATIENT, Job, Jobs, Lease, RetryPolicy, Standing
from recollect.store.workers import certainly_dead, this_worker
from recollect.types import JobStatus, Owner, timestamp
from tests.conftest import Clock, Place

KIND = "extract"
LEASE = 120.0
COLUMNS = (
    "status, worker, fencing_token, lease_expires_at, not_before, attempts, last_error, input_watermark,"
    " success_watermark"
)
WAITING = (JobStatus.BACKING_OFF, JobStatus.COOLING_DOWN, JobStatus.PAUSED)
ENDED = (JobStatus.SUCCEEDED, JobStatus.SUCCEEDED_NO_OUTPUT, JobStatus.FAILED, JobStatus.DEAD)


@pytest.fixture
def jobs(owner: Owner, clock: Clock) -> Jobs:
    return Jobs(owner, LEASE, clock=clock, worker="first", chance=random.Random(7))


@pytest.fixture
def other(jobs: Jobs) -> Jobs:
    """Another worker."""
    return replace(jobs, worker="second")


def job(tx: Transaction, key: str = "a") -> dict[str, Any]:
    (row,) = tx.rows(f"SELECT {COLUMNS} FROM memory_jobs WHERE job_key = :key", {"key": key})
    return dict(zip(COLUMNS.split(", "), row, strict=True))


def put(tx: Transaction, status: JobStatus, **columns: object) -> None:
    """The job `a` in a state, however it came there."""
    names = {"status": str(status), **columns}
    tx.run(f"UPDATE memory_jobs SET {', '.join(f'{name} = :{name}' for name in names)} WHERE job_key = 'a'", names)


def claimed(tx: Transaction, jobs: Jobs, key: str = "a", watermark: str = "w1") -> Lease:
    jobs.enqueue(tx, KIND, [(key, watermark)])
    (lease,) = jobs.claim(tx, KIND, limit=1, keys=[key])
    return lease


# enqueue


def test_a_new_job_is_pending(database: Database, jobs: Jobs) -> None:
    with database.write() as tx:
        assert jobs.enqueue(tx, KIND, [("a", "w1"), ("b", "w1")]) == 2
        assert job(tx) == {
            "status": "pending",
            "worker": "",
            "fencing_token": 0,
            "lease_expires_at": "",
            "not_before": "",
            "attempts": 0,
            "last_error": "",
            "input_watermark": "w1",
            "success_watermark": "",
        }


@pytest.mark.parametrize("status", JobStatus)
def test_equal_input_changes_nothing_whatever_the_state(
    database: Database, jobs: Jobs, clock: Clock, status: JobStatus
) -> None:
    with database.write() as tx:
        jobs.enqueue(tx, KIND, [("a", "w1")])
        put(tx, status, attempts=3, last_error="why", not_before="2026-03-03T00:00:00.000Z")
        before = tx.rows("SELECT * FROM memory_jobs")
        clock.advance(60)
        assert jobs.enqueue(tx, KIND, [("a", "w1")]) == 0
        assert tx.rows("SELECT * FROM memory_jobs") == before


@pytest.mark.parametrize("status", ENDED)
def test_new_input_makes_a_job_that_ended_pending_with_a_fresh_count(
    database: Database, jobs: Jobs, status: JobStatus
) -> None:
    with database.write() as tx:
        jobs.enqueue(tx, KIND, [("a", "w1")])
        put(tx, status, attempts=5)
        assert jobs.enqueue(tx, KIND, [("a", "w2")]) == 1
        assert (job(tx)["status"], job(tx)["attempts"], job(tx)["input_watermark"]) == ("pending", 0, "w2")
        assert [lease.watermark for lease in jobs.claim(tx, KIND, limit=1)] == ["w2"]


@pytest.mark.parametrize("status", WAITING)
def test_new_input_does_not_bypass_a_wait(database: Database, jobs: Jobs, clock: Clock, status: JobStatus) -> None:
    later = timestamp(clock() + timedelta(hours=1))
    with database.write() as tx:
        jobs.enqueue(tx, KIND, [("a", "w1")])
        put(tx, status, not_before=later, attempts=2)
        assert jobs.enqueue(tx, KIND, [("a", "w2")]) == 1
        assert (job(tx)["status"], job(tx)["not_before"], job(tx)["input_watermark"]) == (status, later, "w2")
        assert jobs.claim(tx, KIND, limit=1) == []


def test_new_input_does_not_forgive_a_job_that_backs_off(database: Database, jobs: Jobs) -> None:
    with database.write() as tx:
        jobs.fail(tx, claimed(tx, jobs), "no")
        jobs.enqueue(tx, KIND, [("a", "w2")])
        assert job(tx)["attempts"] == 1


def test_new_input_while_a_job_runs_makes_it_pending_when_it_completes(database: Database, jobs: Jobs) -> None:
    with database.write() as tx:
        lease = claimed(tx, jobs)
        assert jobs.enqueue(tx, KIND, [("a", "w2")]) == 1
        assert job(tx)["status"] == "running"
        assert jobs.claim(tx, KIND, limit=1) == []
        jobs.complete(tx, lease)
        assert (job(tx)["status"], job(tx)["success_watermark"], job(tx)["input_watermark"]) == ("pending", "w1", "w2")
        (again,) = jobs.claim(tx, KIND, limit=1)
        assert (again.watermark, again.attempts) == ("w2", 1)
        jobs.complete(tx, again)
        assert job(tx)["status"] == "succeeded"


@pytest.mark.parametrize("permanent", [True, False])
def test_new_input_while_a_job_runs_outlives_the_failure_of_the_old(
    database: Database, jobs: Jobs, permanent: bool
) -> None:
    jobs = replace(jobs, policy=RetryPolicy(max_attempts=1))
    with database.write() as tx:
        lease = claimed(tx, jobs)
        jobs.enqueue(tx, KIND, [("a", "w2")])
        jobs.fail(tx, lease, "the old input is bad", permanent=permanent)
        jobs.enqueue(tx, KIND, [("a", "w2")])  # as every later scan would
        assert [each.watermark for each in jobs.claim(tx, KIND, limit=1)] == ["w2"]


def test_new_input_while_a_job_runs_does_not_bypass_its_cooling_down(
    database: Database, jobs: Jobs, clock: Clock
) -> None:
    with database.write() as tx:
        lease = claimed(tx, jobs)
        jobs.enqueue(tx, KIND, [("a", "w2")])
        jobs.complete(tx, lease, status=JobStatus.COOLING_DOWN, not_before=clock() + timedelta(hours=6))
        assert jobs.claim(tx, KIND, limit=1) == []
        clock.advance(6 * 3600)
        assert [each.watermark for each in jobs.claim(tx, KIND, limit=1)] == ["w2"]


# claim


def test_a_claim_takes_at_most_its_limit_oldest_first(database: Database, jobs: Jobs, clock: Clock) -> None:
    with database.write() as tx:
        for key in ("c", "b", "a"):
            jobs.enqueue(tx, KIND, [(key, "w1"), (key + "2", "w1")])
            clock.advance(1)
        assert jobs.claim(tx, KIND, limit=0) == []
        assert [lease.key for lease in jobs.claim(tx, KIND, limit=3)] == ["b", "c", "c2"]
        assert [lease.key for lease in jobs.claim(tx, KIND, limit=9)] == ["a", "a2", "b2"]
        assert jobs.claim(tx, KIND, limit=9) == []


def test_jobs_that_were_tried_before_come_after_the_others(database: Database, jobs: Jobs, clock: Clock) -> None:
    with database.write() as tx:
        claimed(tx, jobs, "tried")
        clock.advance(LEASE)
        jobs.enqueue(tx, KIND, [("fresh", "w1")])
        assert [lease.key for lease in jobs.claim(tx, KIND, limit=1)] == ["fresh"]
        assert [lease.key for lease in jobs.claim(tx, KIND, limit=1)] == ["tried"]


def test_a_claim_is_a_lease_with_a_rising_token(database: Database, jobs: Jobs, other: Jobs, clock: Clock) -> None:
    with database.write() as tx:
        first = claimed(tx, jobs)
        assert first == Lease(KIND, "a", 1, 1, "w1", timestamp(clock() + timedelta(seconds=LEASE)))
        assert (job(tx)["worker"], job(tx)["status"]) == ("first", "running")
        clock.advance(LEASE)
        (second,) = other.claim(tx, KIND, limit=1)
        assert (second.token, second.attempts, job(tx)["worker"]) == (2, 2, "second")


def test_a_claim_looks_at_its_own_kind_and_keys_only(database: Database, jobs: Jobs) -> None:
    with database.write() as tx:
        jobs.enqueue(tx, KIND, [(key, "w1") for key in ("a", "b", "c")])
        jobs.enqueue(tx, "other", [("a", "w1")])
        assert jobs.claim(tx, KIND, limit=9, keys=[]) == []
        assert jobs.claim(tx, KIND, limit=9, keys=["unknown"]) == []
        leases = jobs.claim(tx, KIND, limit=9, keys=["c", "a", "unknown"])
        assert [(lease.kind, lease.key) for lease in leases] == [(KIND, "a"), (KIND, "c")]
        assert [lease.key for lease in jobs.claim(tx, "other", limit=9)] == ["a"]


def test_a_claim_waits_for_a_job_that_backs_off_unless_a_person_is_in_a_hurry(
    database: Database, jobs: Jobs, clock: Clock
) -> None:
    with database.write() as tx:
        jobs.fail(tx, claimed(tx, jobs), "no")
        assert jobs.claim(tx, KIND, limit=1) == []
        (hurried,) = jobs.claim(tx, KIND, limit=1, hurry=True)
        assert hurried.attempts == 2
        jobs.fail(tx, hurried, "no")
        clock.advance(10_000)
        assert len(jobs.claim(tx, KIND, limit=1)) == 1


def test_hurry_takes_nothing_that_another_holds_or_a_cap_pauses_or_that_ended(database: Database, jobs: Jobs) -> None:
    with database.write() as tx:
        claimed(tx, jobs)
        assert jobs.claim(tx, KIND, limit=1, hurry=True) == []
        for status in ENDED:
            put(tx, status)
            assert jobs.claim(tx, KIND, limit=1, hurry=True) == []


def test_a_paused_job_waits_for_its_time_even_when_a_person_asks(database: Database, jobs: Jobs, clock: Clock) -> None:
    with database.write() as tx:
        lease = claimed(tx, jobs)
        jobs.pause(tx, lease, "2,000 tokens were used today", clock() + timedelta(hours=1))
        assert (job(tx)["status"], job(tx)["attempts"]) == ("paused", 0)
        assert jobs.claim(tx, KIND, limit=1, hurry=True) == []
        with pytest.raises(LeaseLost):
            jobs.pause(tx, lease, "", clock())
        clock.advance(3600)
        assert [each.key for each in jobs.claim(tx, KIND, limit=1)] == [lease.key]


@pytest.mark.parametrize("paused", [False, True])
def test_the_workspace_that_is_revoked_can_be_claimed_at_once(
    database: Database, jobs: Jobs, clock: Clock, paused: bool
) -> None:
    with database.write() as tx:
        jobs.enqueue(tx, "consolidate", [("workspace", "w1")])
        (lease,) = jobs.claim(tx, "consolidate", limit=1)
        if paused:
            jobs.pause(tx, lease, "the cap", clock() + timedelta(hours=1))
        jobs.revoke(tx, ["a"])
        found = jobs.find(tx, "consolidate", "workspace")
        assert found is not None and (found.status, found.not_before) == (JobStatus.PENDING, "")
        assert jobs.heartbeat(tx, [lease]) == [lease]
        (again,) = jobs.claim(tx, "consolidate", limit=1)
        assert again.token > lease.token


def test_a_job_that_cools_down_is_claimed_when_its_time_has_come(database: Database, jobs: Jobs, clock: Clock) -> None:
    with database.write() as tx:
        jobs.complete(tx, claimed(tx, jobs), status=JobStatus.COOLING_DOWN, not_before=clock() + timedelta(hours=6))
        assert (job(tx)["status"], job(tx)["success_watermark"]) == ("cooling_down", "w1")
        jobs.enqueue(tx, KIND, [("a", "w2")])
        clock.advance(6 * 3600 - 0.001)
        assert jobs.claim(tx, KIND, limit=1) == []
        clock.advance(0.001)
        assert [lease.watermark for lease in jobs.claim(tx, KIND, limit=1)] == ["w2"]


def test_a_job_that_cooled_down_without_new_input_has_nothing_to_do(
    database: Database, jobs: Jobs, clock: Clock
) -> None:
    with database.write() as tx:
        jobs.complete(tx, claimed(tx, jobs), status=JobStatus.COOLING_DOWN, not_before=clock() + timedelta(hours=6))
        clock.advance(100 * 3600)
        assert jobs.claim(tx, KIND, limit=1) == []
        assert jobs.claim(tx, KIND, limit=1, hurry=True) == []
        jobs.enqueue(tx, KIND, [("a", "w2")])
        assert len(jobs.claim(tx, KIND, limit=1)) == 1


def test_a_lease_is_free_at_the_moment_it_expires_and_not_before(
    database: Database, jobs: Jobs, other: Jobs, clock: Clock
) -> None:
    with database.write() as tx:
        claimed(tx, jobs)
        clock.advance(LEASE - 0.001)
        assert other.claim(tx, KIND, limit=1) == []
        assert other.is_held(tx, KIND, "a")
        clock.advance(0.001)
        assert not other.is_held(tx, KIND, "a")
        assert len(other.claim(tx, KIND, limit=1)) == 1


# heartbeat


def test_a_heartbeat_renews_and_tells_what_is_lost(database: Database, jobs: Jobs, other: Jobs, clock: Clock) -> None:
    with database.write() as tx:
        kept, late, taken, ended = (claimed(tx, jobs, key) for key in "abcd")
        clock.advance(LEASE / 2)
        assert jobs.heartbeat(tx, [kept]) == []
        jobs.complete(tx, ended)
        clock.advance(LEASE / 2)
        other.claim(tx, KIND, limit=1, keys=["c"])
        assert jobs.heartbeat(tx, [kept, late, taken, ended]) == [taken, ended]
        clock.advance(LEASE - 0.001)
        assert job(tx, "c")["worker"] == "second"
        jobs.complete(tx, kept)


def test_progress_forgives_earlier_attempts(database: Database, jobs: Jobs, clock: Clock) -> None:
    with database.write() as tx:
        lease = claimed(tx, jobs)
        for _ in range(3):
            clock.advance(LEASE)
            (lease,) = jobs.claim(tx, KIND, limit=1)
        assert job(tx)["attempts"] == 4
        jobs.heartbeat(tx, [lease])
        assert job(tx)["attempts"] == 4
        jobs.heartbeat(tx, [lease], progress=True)
        assert job(tx)["attempts"] == 0


def test_a_job_that_made_progress_on_its_last_attempt_is_not_dead_when_it_fails(database: Database, jobs: Jobs) -> None:
    jobs = replace(jobs, policy=RetryPolicy(max_attempts=2))
    with database.write() as tx:
        jobs.fail(tx, claimed(tx, jobs), "no")
        (last,) = jobs.claim(tx, KIND, limit=1, hurry=True)
        jobs.heartbeat(tx, [last], progress=True)
        assert jobs.fail(tx, last, "no") is JobStatus.BACKING_OFF


# complete, and the fence


@pytest.mark.parametrize("status", [JobStatus.SUCCEEDED, JobStatus.SUCCEEDED_NO_OUTPUT])
def test_a_completed_job_has_ended_and_forgets_its_errors(database: Database, jobs: Jobs, status: JobStatus) -> None:
    with database.write() as tx:
        jobs.fail(tx, claimed(tx, jobs), "no")
        (lease,) = jobs.claim(tx, KIND, limit=1, hurry=True)
        jobs.complete(tx, lease, status=status)
        expected = {"status": status, "attempts": 0, "last_error": "", "lease_expires_at": "", "not_before": ""}
        assert job(tx) == {**job(tx), **expected, "success_watermark": "w1", "fencing_token": 2}
        assert jobs.claim(tx, KIND, limit=1, hurry=True) == []


Act = Callable[[Jobs, Transaction, Lease], object]
ACTS: dict[str, Act] = {
    "complete": lambda jobs, tx, lease: jobs.complete(tx, lease),
    "fail": lambda jobs, tx, lease: jobs.fail(tx, lease, "no"),
    "fail for good": lambda jobs, tx, lease: jobs.fail(tx, lease, "no", permanent=True),
}
LOSSES: dict[str, Callable[[Jobs, Transaction, Lease, Clock], object]] = {
    "it expired and was taken": lambda other, tx, lease, clock: (clock.advance(LEASE), claimed(tx, other)),
    "it was taken and completed": lambda other, tx, lease, clock: (
        clock.advance(LEASE),
        other.complete(tx, claimed(tx, other)),
    ),
    "it was reaped": lambda other, tx, lease, clock: other.reap(tx, KIND, lambda worker: True),
    "it was reaped and taken": lambda other, tx, lease, clock: (
        other.reap(tx, KIND, lambda worker: True),
        claimed(tx, other),
    ),
    "it was released": lambda other, tx, lease, clock: other.release(tx, lease),
    "it was completed": lambda other, tx, lease, clock: other.complete(tx, lease),
}


@pytest.mark.parametrize("act", ACTS)
@pytest.mark.parametrize("loss", LOSSES)
def test_a_worker_that_lost_its_lease_changes_nothing(
    database: Database, jobs: Jobs, other: Jobs, clock: Clock, act: str, loss: str
) -> None:
    with database.write() as tx:
        lease = claimed(tx, jobs)
        LOSSES[loss](other, tx, lease, clock)
        before = tx.rows("SELECT * FROM memory_jobs")
        with pytest.raises(LeaseLost, match=f"{KIND} a"):
            ACTS[act](jobs, tx, lease)
        assert not jobs.release(tx, lease)
        assert jobs.heartbeat(tx, [lease], progress=True) == [lease]
        assert tx.rows("SELECT * FROM memory_jobs") == before


def test_the_effect_of_a_lost_lease_is_rolled_back_with_the_transaction(
    database: Database, jobs: Jobs, clock: Clock
) -> None:
    with database.write() as tx:
        lease = claimed(tx, jobs)
        clock.advance(LEASE)
        claimed(tx, jobs)
    with pytest.raises(LeaseLost), database.write() as tx:
        jobs.enqueue(tx, "effect", [("of the work", "w1")])
        jobs.complete(tx, lease)
    with database.read() as tx:
        assert jobs.count(tx) == {KIND: {"running": 1}}


@pytest.mark.parametrize("act", [*ACTS, "release", "pause"])
def test_a_lease_that_ran_out_and_that_nobody_took_is_renewed(
    database: Database, jobs: Jobs, other: Jobs, clock: Clock, act: str
) -> None:
    acts = {
        **ACTS,
        "release": lambda jobs, tx, lease: jobs.release(tx, lease),
        "pause": lambda jobs, tx, lease: jobs.pause(tx, lease, "a cap", clock.now),
    }
    with database.write() as tx:
        lease = claimed(tx, jobs)
        clock.advance(10 * LEASE)
        assert jobs.heartbeat(tx, [lease]) == []
        assert other.claim(tx, KIND, limit=1) == []
        clock.advance(LEASE)
        acts[act](jobs, tx, lease)
        assert job(tx)["status"] != "running"


def test_an_older_token_is_refused_even_if_its_worker_holds_the_newer_one(
    database: Database, jobs: Jobs, clock: Clock
) -> None:
    with database.write() as tx:
        old = claimed(tx, jobs)
        clock.advance(LEASE)
        (new,) = jobs.claim(tx, KIND, limit=1)
        with pytest.raises(LeaseLost):
            jobs.complete(tx, old)
        with pytest.raises(LeaseLost):
            jobs.complete(tx, replace(new, token=new.token + 1))
        jobs.complete(tx, new)


# fail


@given(
    st.integers(1, 200),
    st.floats(0.001, 1000),
    st.floats(0.001, 100_000),
    st.integers(0, 2**32),
)
def test_a_delay_grows_within_half_and_all_of_it_up_to_the_longest(
    attempts: int, first: float, longest: float, seed: int
) -> None:
    delay = RetryPolicy(first_delay=first, longest_delay=longest).delay(attempts, random.Random(seed))
    full = min(longest, first * 2.0 ** min(attempts - 1, 40))
    assert full / 2 <= delay <= full


@given(st.integers(0, 2**32))
def test_a_night_without_a_network_leaves_no_job_dead(seed: int) -> None:
    chance = random.Random(seed)
    delays = [PATIENT.delay(attempt, chance) for attempt in range(1, PATIENT.max_attempts)]
    assert delays[0] <= 30 and delays[1] <= 360 and sum(delays) > 6.5 * 3600


def test_delays_of_workers_that_failed_together_differ() -> None:
    chance = random.Random(7)
    assert len({RetryPolicy().delay(1, chance) for _ in range(100)}) == 100


def test_a_failed_job_backs_off_longer_each_time_and_then_is_dead(database: Database, jobs: Jobs, clock: Clock) -> None:
    jobs = replace(jobs, policy=RetryPolicy(max_attempts=6, first_delay=30, longest_delay=200))
    with database.write() as tx:
        jobs.enqueue(tx, KIND, [("a", "w1")])
        for attempt, full in enumerate((30, 60, 120, 200, 200), 1):
            (lease,) = jobs.claim(tx, KIND, limit=1)
            assert lease.attempts == attempt
            assert jobs.fail(tx, lease, f"no {attempt}") is JobStatus.BACKING_OFF
            state = job(tx)
            assert (state["status"], state["last_error"], state["attempts"]) == (
                "backing_off",
                f"no {attempt}",
                attempt,
            )
            earliest, latest = (timestamp(clock() + timedelta(seconds=part)) for part in (full / 2, full))
            assert earliest <= state["not_before"] <= latest
            clock.advance(full)
        (last,) = jobs.claim(tx, KIND, limit=1)
        assert jobs.fail(tx, last, "no 6") is JobStatus.DEAD
        assert (job(tx)["status"], job(tx)["last_error"], job(tx)["not_before"]) == ("dead", "no 6", "")
        clock.advance(1_000_000)
        assert jobs.claim(tx, KIND, limit=1, hurry=True) == []


@pytest.mark.parametrize("seconds", [1772442000.0, 1e14, float("inf"), float("nan"), -1e14])
def test_nobody_makes_a_job_wait_for_longer_than_a_day(
    database: Database, jobs: Jobs, clock: Clock, seconds: float
) -> None:
    with database.write() as tx:
        assert jobs.fail(tx, claimed(tx, jobs), "slow down", at_least=seconds) is JobStatus.BACKING_OFF
        clock.advance(86400)
        assert len(jobs.claim(tx, KIND, limit=1)) == 1


def test_whose_a_job_is_does_not_depend_on_time(database: Database, jobs: Jobs, other: Jobs, clock: Clock) -> None:
    with database.write() as tx:
        lease = claimed(tx, jobs)
        clock.advance(LEASE)
        assert jobs.standing(tx, lease) is Standing.OURS
        other.claim(tx, KIND, limit=1)
        assert jobs.standing(tx, lease) is Standing.TAKEN
        jobs.revoke(tx, [lease.key])
        assert jobs.standing(tx, lease) is Standing.GONE
        again = claimed(tx, other)
        assert again.token == lease.token and jobs.standing(tx, lease) is Standing.GONE


def test_bad_input_fails_for_good_at_once(database: Database, jobs: Jobs, clock: Clock) -> None:
    with database.write() as tx:
        assert jobs.fail(tx, claimed(tx, jobs), "no such thing", permanent=True) is JobStatus.FAILED
        clock.advance(1_000_000)
        assert jobs.claim(tx, KIND, limit=1, hurry=True) == []
        assert job(tx)["last_error"] == "no such thing"


def test_a_long_error_is_cut_off(database: Database, jobs: Jobs) -> None:
    with database.write() as tx:
        jobs.fail(tx, claimed(tx, jobs), "é" * 10_000)
        assert job(tx)["last_error"] == "é" * 500


# release


def test_a_released_job_gets_its_attempt_back(database: Database, jobs: Jobs, other: Jobs) -> None:
    with database.write() as tx:
        lease = claimed(tx, jobs)
        assert jobs.release(tx, lease)
        assert (job(tx)["status"], job(tx)["attempts"], job(tx)["lease_expires_at"]) == ("pending", 0, "")
        (again,) = other.claim(tx, KIND, limit=1)
        assert (again.token, again.attempts) == (2, 1)
        assert not jobs.release(tx, lease)


def test_a_job_can_be_released_any_number_of_times(database: Database, jobs: Jobs) -> None:
    with database.write() as tx:
        for _ in range(20):
            assert jobs.release(tx, claimed(tx, jobs))
        lease = claimed(tx, jobs)
        jobs.heartbeat(tx, [lease], progress=True)
        assert jobs.release(tx, lease)
        assert job(tx)["attempts"] == 0


def test_a_claim_that_does_not_count_is_no_attempt_until_it_begins(database: Database, jobs: Jobs, other: Jobs) -> None:
    with database.write() as tx:
        jobs.enqueue(tx, KIND, [("a", "w1")])
        for _ in range(9):
            jobs.claim(tx, KIND, limit=1, counts=False)
            jobs.reap(tx, KIND, lambda worker: True)
        assert (job(tx)["status"], job(tx)["attempts"]) == ("pending", 0)
        (lease,) = jobs.claim(tx, KIND, limit=1, counts=False)
        assert jobs.begin(tx, lease) and jobs.begin(tx, lease)
        assert job(tx)["attempts"] == 1
        assert jobs.release(tx, lease)
        assert job(tx)["attempts"] == 0
        (again,) = other.claim(tx, KIND, limit=1, counts=False)
        assert not jobs.begin(tx, lease)
        other.fail(tx, again, "no")
        assert job(tx)["attempts"] == 1


# reap and bury

SAY_WHO = "from recollect.store.workers import this_worker; print(this_worker(), flush=True); input()"


def start_worker() -> tuple[subprocess.Popen[str], str]:
    process = subprocess.Popen(
        [sys.executable, "-c", SAY_WHO], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    return process, process.stdout.readline().strip()


def test_only_the_leases_of_workers_whose_process_is_gone_are_reaped(database: Database, jobs: Jobs) -> None:
    (dead, dead_name), (living, living_name) = start_worker(), start_worker()
    try:
        dead.kill()
        dead.communicate()
        elsewhere = dead_name.replace("/", "-elsewhere/", 1)
        with database.write() as tx:
            for key, worker in (("a", dead_name), ("b", living_name), ("c", elsewhere), ("d", "unreadable")):
                claimed(tx, replace(jobs, worker=worker), key)
            jobs.complete(tx, claimed(tx, replace(jobs, worker=dead_name), "e"))
            claimed_elsewhere = replace(jobs, worker=dead_name)
            claimed_elsewhere.enqueue(tx, "other", [("a", "w1")])
            claimed_elsewhere.claim(tx, "other", limit=1)
            assert jobs.reap(tx, KIND) == 1
            assert jobs.reap(tx, KIND) == 0
            assert jobs.count(tx) == {KIND: {"pending": 1, "running": 3, "succeeded": 1}, "other": {"running": 1}}
            (lease,) = jobs.claim(tx, KIND, limit=9)
            assert (lease.key, lease.token, lease.attempts) == ("a", 2, 2)  # the attempt counts
    finally:
        living.communicate("\n")


def test_a_process_that_has_the_number_of_a_dead_one_is_not_taken_for_it() -> None:
    place, pid, started, name = this_worker().split("|")
    assert not certainly_dead(this_worker())
    assert certainly_dead("|".join((place, pid, str(int(started) - 1), name)))


@pytest.mark.parametrize("part", range(3))
def test_a_worker_of_another_host_boot_or_namespace_is_taken_for_alive(part: int) -> None:
    process, name = start_worker()
    process.communicate("\n")
    assert certainly_dead(name)
    place, rest = name.split("|", 1)
    parts = place.split("/")
    parts[part] += "x"
    assert not certainly_dead("/".join(parts) + "|" + rest)


@pytest.mark.parametrize("name", ["", "|", "x|1|2", "x|y|z|w", "a|b|c|d|e", "/|-1||"])
def test_a_name_that_says_nothing_is_taken_for_alive(name: str) -> None:
    assert not certainly_dead(name)
    assert not certainly_dead(this_worker().split("|")[0] + name)


def test_a_killed_worker_is_dead_before_its_parent_has_waited_for_it() -> None:
    process, name = start_worker()
    os.kill(process.pid, signal.SIGKILL)
    try:
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # dead, and a zombie
        assert certainly_dead(name)
    finally:
        process.communicate()


def test_every_worker_of_a_process_has_a_name_of_its_own() -> None:
    assert this_worker() != this_worker()


def test_a_job_whose_workers_die_every_time_is_dead_in_the_end(database: Database, jobs: Jobs, clock: Clock) -> None:
    jobs = replace(jobs, policy=RetryPolicy(max_attempts=3))
    with database.write() as tx:
        jobs.enqueue(tx, KIND, [("a", "w1")])
        for attempt in range(1, 4):
            (lease,) = jobs.claim(tx, KIND, limit=1)
            assert lease.attempts == attempt
            if attempt % 2:
                clock.advance(LEASE)
            else:
                jobs.reap(tx, KIND, lambda worker: True)
        assert jobs.claim(tx, KIND, limit=1, hurry=True) == []
        assert (job(tx)["status"], job(tx)["last_error"]) == ("dead", "its worker died or stalled every time")


def test_a_job_that_runs_on_its_last_attempt_is_not_buried(database: Database, jobs: Jobs, other: Jobs) -> None:
    jobs, other = (replace(each, policy=RetryPolicy(max_attempts=1)) for each in (jobs, other))
    with database.write() as tx:
        lease = claimed(tx, jobs)
        assert other.claim(tx, KIND, limit=1) == []
        jobs.complete(tx, lease)
        assert job(tx)["status"] == "succeeded"


# revive, is_held, list, count


def test_reviving_gives_a_fresh_start_to_what_failed(database: Database, jobs: Jobs) -> None:
    with database.write() as tx:
        for status in JobStatus:
            jobs.enqueue(tx, KIND, [(status, "w1")])
            tx.run(
                "UPDATE memory_jobs SET status = :status, attempts = 5, not_before = '2027' WHERE job_key = :status",
                {"status": str(status)},
            )
        jobs.enqueue(tx, "other", [("dead", "w1")])
        assert jobs.revive(tx, KIND, "dead") == 1
        assert jobs.revive(tx, KIND, "unknown") == 0
        assert jobs.revive(tx, KIND, "succeeded") == 0
        assert jobs.revive(tx, KIND) == 3
        for status in ("dead", "failed", "backing_off", "paused"):
            rows = tx.rows(
                "SELECT status, attempts, not_before FROM memory_jobs WHERE job_key = :key AND kind = :kind",
                {"key": status, "kind": KIND},
            )
            assert rows == [("pending", 0, "")]
        untouched = {"running", "cooling_down", "succeeded", "succeeded_no_output"}
        assert jobs.count(tx)[KIND] == {"pending": 5, **dict.fromkeys(untouched, 1)}


def test_a_job_is_held_while_a_living_lease_covers_it(
    database: Database, jobs: Jobs, other: Jobs, clock: Clock
) -> None:
    with database.write() as tx:
        assert not other.is_held(tx, KIND, "a")
        jobs.enqueue(tx, KIND, [("a", "w1")])
        assert not other.is_held(tx, KIND, "a")
        lease = claimed(tx, jobs)
        assert other.is_held(tx, KIND, "a")
        assert not other.is_held(tx, "other", "a")
        jobs.complete(tx, lease)
        assert not other.is_held(tx, KIND, "a")


@pytest.mark.parametrize("age", [LEASE - 1, LEASE, LEASE + 1])  # asked while it is held, and when it has run out
def test_a_job_that_was_asked_for_with_a_lock_cannot_be_claimed_until_the_end(
    database: Database,
    database_url: Place,
    jobs: Jobs,
    other: Jobs,
    clock: Clock,
    age: float,
) -> None:
    """Who finds that a lease ran out, and acts upon it, must not be overtaken by the next claim."""
    with database.write() as tx:
        claimed(tx, jobs)
    clock.advance(age)
    second = database_url.open(clock, busy_timeout=0.1)
    try:
        with database.write() as tx:
            assert jobs.is_held(tx, KIND, "a", lock=True) == (age < LEASE)
            clock.advance(1)
            taken = []
            with suppress(StoreBusy), second.write() as elsewhere:  # busy on SQLite, passed over on PostgreSQL
                taken = other.claim(elsewhere, KIND, limit=1)
            assert taken == []
        with second.write() as tx:
            assert len(other.claim(tx, KIND, limit=1)) == 1
    finally:
        second.close()


def test_jobs_are_listed_by_status_newest_first(database: Database, jobs: Jobs, clock: Clock) -> None:
    with database.write() as tx:
        for key in ("a", "b", "c"):
            jobs.fail(tx, claimed(tx, jobs, key), f"no {key}", permanent=key != "b")
            clock.advance(1)
        claimed(tx, jobs, "d")
        listed = jobs.list(tx, [JobStatus.FAILED, JobStatus.BACKING_OFF])
        assert [each.key for each in listed] == ["c", "b", "a"]
        assert [each.key for each in jobs.list(tx, [JobStatus.FAILED], limit=1)] == ["c"]
        when = timestamp(clock() - timedelta(seconds=1))
        assert listed[0] == Job(KIND, "c", JobStatus.FAILED, 1, "", "no c", when)  # type: ignore[arg-type]
        assert listed[1].not_before > listed[1].updated_at


def test_no_status_lists_no_job(database: Database, jobs: Jobs, request: pytest.FixtureRequest) -> None:
    with database.write() as tx:
        claimed(tx, jobs)
        assert jobs.list(tx, []) == []


def test_jobs_are_counted_by_kind_and_status(database: Database, jobs: Jobs) -> None:
    with database.write() as tx:
        assert jobs.count(tx) == {}
        jobs.enqueue(tx, "ingest", [("a", "w1"), ("b", "w1"), ("c", "w1")])
        jobs.claim(tx, "ingest", limit=1)
        jobs.enqueue(tx, KIND, [("a", "w1")])
        assert jobs.count(tx) == {"ingest": {"running": 1, "pending": 2}, KIND: {"pending": 1}}


# The whole life, against a model


@dataclass
class Expected:
    """What a job should look like."""

    input: str
    born: float  # seconds after the start
    status: str = "pending"
    success: str = ""
    token: int = 0
    attempts: int = 0
    expires: float = 0.0
    not_before: float = 0.0
    worker: str = ""

    @property
    def wants_a_run(self) -> bool:
        """When its time has come. A job that cools down has nothing to do without new input."""
        return self.status == "backing_off" or (self.status == "cooling_down" and self.input != self.success)


class Sure(random.Random):
    """No jitter: a delay is always the whole of it."""

    def random(self) -> float:
        return 1.0


class Life(RuleBasedStateMachine):
    """Two workers, three jobs, and a clock."""

    database: Database
    owners = count()
    policy = RetryPolicy(max_attempts=2, first_delay=40, longest_delay=100)
    times = st.sampled_from([1, 39, 40, 41, 60, 100, 121])
    keys = st.sampled_from(["a", "b", "c"])
    names = st.sampled_from(["first", "second"])

    def __init__(self) -> None:
        super().__init__()
        self.clock, self.start = Clock(), Clock().now
        owner = Owner("life", str(next(self.owners)))
        self.workers = {name: Jobs(owner, 100.0, self.policy, self.clock, name, Sure()) for name in ("first", "second")}
        self.expected: dict[str, Expected] = {}
        self.leases: list[Lease] = []

    @property
    def now(self) -> float:
        return (self.clock.now - self.start).total_seconds()

    def holds(self, lease: Lease) -> bool:
        expected = self.expected[lease.key]
        return expected.status == "running" and expected.token == lease.token

    @initialize()
    def there_is_work(self) -> None:
        self.input_arrives("b", "w1")
        self.input_arrives("a", "w1")

    @rule(seconds=times)
    def time_passes(self, seconds: int) -> None:
        self.clock.advance(seconds)

    @rule(key=keys, watermark=st.sampled_from(["w1", "w2", "w3"]))
    def input_arrives(self, key: str, watermark: str) -> None:
        with self.database.write() as tx:
            changed = self.workers["first"].enqueue(tx, KIND, [(key, watermark)])
        expected = self.expected.get(key)
        if expected is None:
            self.expected[key] = Expected(watermark, self.now)
        elif expected.input != watermark:
            expected.input = watermark
            if expected.status not in ("running", "backing_off"):
                expected.attempts = 0
                if expected.status != "cooling_down":
                    expected.status = "pending"
        else:
            assert changed == 0
            return
        assert changed == 1

    @rule(
        name=names,
        limit=st.integers(1, 3),
        hurry=st.booleans(),
        only=st.none() | st.lists(keys, max_size=2),
        counts=st.booleans(),
    )
    def worker_claims(self, name: str, limit: int, hurry: bool, only: list[str] | None, counts: bool) -> None:
        with self.database.write() as tx:
            leases = self.workers[name].claim(tx, KIND, limit=limit, keys=only, hurry=hurry, counts=counts)
        due = []
        for key, expected in self.expected.items():
            if only == []:
                continue
            free = expected.status == "pending" or (expected.status == "running" and expected.expires <= self.now)
            if free and expected.attempts >= self.policy.max_attempts:
                expected.status = "dead"
            elif only is not None and key not in only:
                continue
            elif free or (expected.wants_a_run and (hurry or expected.not_before <= self.now)):
                due.append(key)
        due.sort(key=lambda key: (self.expected[key].attempts, self.expected[key].born, key))
        for key in due[:limit]:
            expected = self.expected[key]
            expected.status, expected.worker, expected.expires = "running", name, self.now + 100
            expected.token += 1
            expected.attempts += counts
        got = [(lease.key, lease.token, lease.attempts, lease.watermark) for lease in leases]
        chosen = [(key, self.expected[key]) for key in sorted(due[:limit])]
        assert got == [(key, each.token, each.attempts, each.input) for key, each in chosen]
        self.leases += leases

    def finish(self, lease: Lease, act: Callable[[Transaction], object]) -> bool:
        """Did it hold its lease? If not, nothing may have changed, which the invariant sees."""
        held = self.holds(lease)
        if held:
            with self.database.write() as tx:
                act(tx)
        else:
            with pytest.raises(LeaseLost), self.database.write() as tx:
                act(tx)
        return held

    @precondition(lambda self: self.leases)
    @rule(data=st.data(), cool=st.booleans())
    def worker_completes(self, data: st.DataObject, cool: bool) -> None:
        lease = data.draw(st.sampled_from(self.leases))
        expected = self.expected[lease.key]
        status = JobStatus.COOLING_DOWN if cool else JobStatus.SUCCEEDED
        later = self.clock.now + timedelta(seconds=60) if cool else None
        if self.finish(lease, lambda tx: self.workers["first"].complete(tx, lease, status=status, not_before=later)):
            expected.status = str(status) if cool or expected.input == lease.watermark else "pending"
            expected.success, expected.attempts = lease.watermark, 0
            expected.not_before = self.now + 60 if cool else 0

    @precondition(lambda self: self.leases)
    @rule(data=st.data(), permanent=st.booleans())
    def worker_fails(self, data: st.DataObject, permanent: bool) -> None:
        lease = data.draw(st.sampled_from(self.leases))
        expected = self.expected[lease.key]
        if self.finish(lease, lambda tx: self.workers["first"].fail(tx, lease, "no", permanent=permanent)):
            if not lease.counts:
                expected.attempts = lease.earlier + 1
            if not permanent and expected.attempts < self.policy.max_attempts:
                expected.status, expected.not_before = "backing_off", self.now + 40
            elif expected.input != lease.watermark:  # what came in the meantime was not tried yet
                expected.status, expected.attempts = "pending", 0
            else:
                expected.status = "failed" if permanent else "dead"

    @precondition(lambda self: self.leases)
    @rule(data=st.data(), progress=st.booleans())
    def worker_renews(self, data: st.DataObject, progress: bool) -> None:
        lease = data.draw(st.sampled_from(self.leases))
        with self.database.write() as tx:
            lost = self.workers["first"].heartbeat(tx, [lease], progress=progress)
        assert lost == ([] if self.holds(lease) else [lease])
        if not lost:
            self.expected[lease.key].expires = self.now + 100
            if progress:
                self.expected[lease.key].attempts = 0

    @precondition(lambda self: self.leases)
    @rule(data=st.data())
    def worker_begins(self, data: st.DataObject) -> None:
        lease = data.draw(st.sampled_from(self.leases))
        with self.database.write() as tx:
            assert self.workers["first"].begin(tx, lease) == self.holds(lease)
        if self.holds(lease):
            self.expected[lease.key].attempts = lease.earlier + 1

    @precondition(lambda self: self.leases)
    @rule(data=st.data())
    def worker_gives_back(self, data: st.DataObject) -> None:
        lease = data.draw(st.sampled_from(self.leases))
        held, expected = self.holds(lease), self.expected[lease.key]
        with self.database.write() as tx:
            assert self.workers["first"].release(tx, lease) == held
        if held:
            expected.status, expected.attempts = "pending", min(expected.attempts, lease.earlier)

    @rule(name=names)
    def worker_dies(self, name: str) -> None:
        with self.database.write() as tx:
            reaped = self.workers["first"].reap(tx, KIND, lambda worker: worker == name)
        theirs = [each for each in self.expected.values() if each.status == "running" and each.worker == name]
        assert reaped == len(theirs)
        for expected in theirs:
            expected.status = "pending"

    @rule(key=st.none() | keys)
    def person_retries(self, key: str | None) -> None:
        with self.database.write() as tx:
            revived = self.workers["first"].revive(tx, KIND, key)
        unwell = [
            each
            for name, each in self.expected.items()
            if key in (None, name) and each.status in ("dead", "failed", "backing_off")
        ]
        assert revived == len(unwell)
        for expected in unwell:
            expected.status, expected.attempts, expected.not_before = "pending", 0, 0

    @invariant()
    def the_table_is_as_expected(self) -> None:
        owner = self.workers["first"].owner
        with self.database.read() as tx:
            rows = tx.rows(
                "SELECT job_key, status, fencing_token, attempts, input_watermark, success_watermark, lease_expires_at,"
                " not_before FROM memory_jobs WHERE tenant = :tenant AND agent_id = :agent_id ORDER BY job_key",
                {"tenant": owner.tenant, "agent_id": owner.agent_id},
            )
            held = [key for key in "abc" if self.workers["first"].is_held(tx, KIND, key)]
        for key, status, token, attempts, asked, done, expires, later in rows:
            expected = self.expected[key]
            assert (status, token, attempts) == (expected.status, expected.token, expected.attempts), key
            assert (asked, done) == (expected.input, expected.success), key
            if status == "running":
                assert expires == timestamp(self.start + timedelta(seconds=expected.expires))
            if status in ("backing_off", "cooling_down"):
                assert later == timestamp(self.start + timedelta(seconds=expected.not_before))
        assert len(rows) == len(self.expected)
        running = [key for key, each in self.expected.items() if each.status == "running" and each.expires > self.now]
        assert held == sorted(running)


def test_the_whole_life_of_jobs_is_as_the_model_says(database: Database) -> None:
    machine = type("LifeOnThisDatabase", (Life,), {"database": database})
    run_state_machine_as_test(machine, settings=settings(max_examples=80, stateful_step_count=40))
