"""Jobs and leases: one table for every kind of background work.

A claim gives a Lease: a value with a fencing token that rises with every claim. Whatever a worker commits under a
lease checks, in the same statement, that the token is still the newest and the job is still running. A lease that ran
out is free to be taken; until somebody takes it, its worker may renew it and end the job, so that a laptop that slept
loses no work. Every call takes the caller's transaction, so that a job's effect and its completion commit together.

A job remembers the newest input it was asked for (input watermark) and the one it did (success watermark). Input that
arrives while it runs makes it pending again when it completes.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from recollect.errors import LeaseLost
from recollect.store.database import Row, Transaction, marks
from recollect.store.workers import certainly_dead, this_worker
from recollect.types import Clock, JobStatus, Owner, Timestamp, timestamp, utc_now

_LONGEST_WAIT = 86_400.0  # seconds that somebody else may ask us to wait


class Standing(StrEnum):
    """Whose a claimed job is, whatever the clock says."""

    OURS = "ours"  # nobody claimed it since
    TAKEN = "taken"  # another worker did
    GONE = "gone"  # what it is about was erased


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    max_attempts: int = 5
    first_delay: float = 30.0  # seconds
    growth: float = 2.0  # with every attempt
    longest_delay: float = 12 * 3600.0

    def delay(self, attempts: int, chance: random.Random) -> float:
        """Between half and all of the exponential delay: workers that failed together do not return together."""
        full = min(self.longest_delay, self.first_delay * self.growth ** min(attempts - 1, 40))
        return full * (0.5 + chance.random() / 2)


# Where a model is asked: in half a minute, in minutes, in an hour, in half a day. A night without a network leaves no
# job dead.
PATIENT = RetryPolicy(growth=12.0)


@dataclass(frozen=True, slots=True)
class Lease:
    """A claimed job."""

    kind: str
    key: str
    token: int
    attempts: int  # that count against it, with this one where the claim counts
    watermark: str  # the input that was claimed: extraction and ingest go no further
    expires_at: Timestamp
    counts: bool = True  # the claim is an attempt; else one is counted by `begin`

    @property
    def earlier(self) -> int:
        """Attempts before this one."""
        return self.attempts - self.counts


@dataclass(frozen=True, slots=True)
class Job:
    """What `status` shows."""

    kind: str
    key: str
    status: JobStatus
    attempts: int
    not_before: Timestamp
    last_error: str
    updated_at: Timestamp


@dataclass(frozen=True, slots=True)
class Jobs:
    """The jobs of one owner, as one worker sees them."""

    owner: Owner
    lease_seconds: float = 120.0
    policy: RetryPolicy = field(default_factory=RetryPolicy)
    clock: Clock = utc_now
    worker: str = field(default_factory=this_worker)
    chance: random.Random = field(default_factory=random.Random)

    def enqueue(self, tx: Transaction, kind: str, items: Iterable[tuple[str, str]]) -> int:
        """(key, watermark) pairs; equal input is a no-op. New input revives what failed, not what waits its turn."""
        now = self._now()
        # sorted, here and below: two workers that lock rows in the same order cannot wait for each other in a circle
        rows = [{**self._key(kind, key), "watermark": watermark, "now": now} for key, watermark in sorted(items)]
        return tx.run_many(_ENQUEUE, rows)

    def claim(
        self,
        tx: Transaction,
        kind: str,
        *,
        limit: int,
        keys: Sequence[str] | None = None,
        hurry: bool = False,
        counts: bool = True,
    ) -> list[Lease]:
        """At most `limit` jobs that nobody holds. `hurry` (a person asks) lifts every waiting time. Where a claim does
        not count as an attempt, the worker calls `begin`."""
        if keys is not None and not keys:
            return []
        now = self.clock()
        names = {**self.owner.names(), "kind": kind, "now": timestamp(now)}
        tx.run(_BURY, {**names, "most": self.policy.max_attempts})
        placeholders, chosen = marks("key", keys or [])
        sql = _CLAIM.format(
            among=f"AND job_key IN ({placeholders})" if keys else "",
            due="" if hurry else "AND not_before <= :now",
            skip_locked=tx.dialect.skip_locked,
        )
        expires = timestamp(now + timedelta(seconds=self.lease_seconds))
        given = {"limit": limit, "worker": self.worker, "expires": expires, "counts": int(counts)}
        rows = tx.rows(sql, {**names, **chosen, **given})
        return [
            Lease(kind, key, token, attempts, watermark, expires, counts)
            for key, token, attempts, watermark in sorted(rows)
        ]

    def begin(self, tx: Transaction, lease: Lease) -> bool:
        """Counts the attempt, once for a lease: what costs something begins. False when the job is not ours."""
        return tx.run(_BEGIN, {**self._held(lease), "attempts": lease.earlier + 1}) == 1

    def heartbeat(self, tx: Transaction, leases: Iterable[Lease], *, progress: bool = False) -> list[Lease]:
        """Renews them, also those that ran out, and returns those that are lost. `progress` (something was committed)
        forgives earlier attempts."""
        until = timestamp(self.clock() + timedelta(seconds=self.lease_seconds))
        names = {"expires": until, "progress": int(progress)}
        ordered = sorted(leases, key=lambda lease: (lease.kind, lease.key))
        return [lease for lease in ordered if not tx.run(_HEARTBEAT, {**self._held(lease), **names})]

    def complete(
        self,
        tx: Transaction,
        *leases: Lease,
        status: JobStatus = JobStatus.SUCCEEDED,
        not_before: datetime | None = None,
    ) -> None:
        """Ends the jobs, or makes them pending again when newer input arrived. LeaseLost when one is not ours any
        more."""
        more = {"status": str(status), "not_before": timestamp(not_before) if not_before else ""}
        ordered = sorted(leases, key=lambda lease: (lease.kind, lease.key))
        rows = [{**self._held(lease), **more, "watermark": lease.watermark} for lease in ordered]
        if rows and tx.run_many(_COMPLETE, rows) != len(rows):
            raise LeaseLost(", ".join(f"{lease.kind} {lease.key}" for lease in ordered[:3]) + ": not ours any more")

    def fail(
        self, tx: Transaction, lease: Lease, error: str, *, permanent: bool = False, at_least: float = 0.0
    ) -> JobStatus:
        """Permanent: the input is bad. Otherwise it is tried again later (`at_least` so many seconds, a day at most),
        until it is out of attempts. What fails before it began has begun."""
        if not lease.counts:
            self.begin(tx, lease)
        held = tx.row(_ATTEMPTS.format(for_update=tx.dialect.for_update), self._held(lease))
        if held is None:
            raise LeaseLost(f"{lease.kind} {lease.key}: the lease is not ours any more")
        attempts, newest = held
        status, later = JobStatus.BACKING_OFF, ""
        if permanent or attempts >= self.policy.max_attempts:
            status = JobStatus.FAILED if permanent else JobStatus.DEAD
            if newest != lease.watermark:  # what arrived in the meantime deserves its own chance
                status, attempts = JobStatus.PENDING, 0
        else:
            asked = at_least if at_least < _LONGEST_WAIT else _LONGEST_WAIT  # NaN, too
            delay = max(asked, self.policy.delay(max(attempts, 1), self.chance))
            later = timestamp(self.clock() + timedelta(seconds=delay))
        names = {"status": status, "not_before": later, "error": error[:500], "attempts": attempts}
        tx.run(_FAIL, {**self._held(lease), **names})
        return status

    def pause(self, tx: Transaction, lease: Lease, reason: str, until: datetime) -> None:
        """A cap was reached: not before `until`, not even for a person. The attempt does not count."""
        names = {**self._given_back(lease), "error": reason[:500], "not_before": timestamp(until)}
        self._must_change(tx.run(_PAUSE, names), lease)

    def release(self, tx: Transaction, lease: Lease) -> bool:
        """Gives a job back; the attempt does not count. False when the lease was gone already."""
        return tx.run(_RELEASE, self._given_back(lease)) == 1

    def standing(self, tx: Transaction, lease: Lease) -> Standing:
        """Whose the job is, also when the lease ran out; until the transaction ends that does not change."""
        row = tx.row(_TOKEN.format(for_update=tx.dialect.for_update), self._key(lease.kind, lease.key))
        token, worker = row or (0, "")
        if (token, worker) == (lease.token, self.worker):
            return Standing.OURS
        return Standing.TAKEN if token > lease.token else Standing.GONE

    def is_held(self, tx: Transaction, kind: str, key: str, *, lock: bool = False) -> bool:
        """Does a living lease cover the job? With `lock` nobody can claim it until the transaction ends."""
        row = tx.row(_LEASE.format(for_update=tx.dialect.for_update if lock else ""), self._key(kind, key))
        return row is not None and row[0] == JobStatus.RUNNING and row[1] > self._now()

    def revoke(self, tx: Transaction, keys: Sequence[str]) -> int:
        """Jobs of any kind with these keys, and the workspace's, are nobody's any more: what is being done for them is
        thrown away. What is known of the former goes; the latter waits for no cap, which stands before every question
        to a model."""
        rows = [{**self.owner.names(), "key": key} for key in sorted(keys)]
        where = "WHERE tenant = :tenant AND agent_id = :agent_id"
        removed = tx.run_many(f"DELETE FROM memory_jobs {where} AND job_key = :key", rows)
        tx.run(
            "UPDATE memory_jobs SET status = 'pending', lease_expires_at = '', fencing_token = fencing_token + 1,"
            f" not_before = '', updated_at = :now {where} AND kind = 'consolidate' AND status IN ('running', 'paused')",
            {**self.owner.names(), "now": self._now()},
        )
        return removed

    def reap(self, tx: Transaction, kind: str, is_dead: Callable[[str], bool] = certainly_dead) -> int:
        """Ends the leases of workers on this machine whose process is gone. Their attempts keep counting."""
        names = {**self.owner.names(), "kind": kind, "now": self._now()}
        holders = tx.rows(_HOLDERS, names)
        return sum(tx.run(_REAP, {**names, "worker": worker}) for (worker,) in holders if is_dead(worker))

    def revive(self, tx: Transaction, kind: str | None = None, key: str | None = None) -> int:
        """Dead, failed, backing-off and paused jobs, of one kind or all, become pending with a fresh count. A cap
        stands before every question to a model: what it paused is paused again while it holds."""
        every = {"every_kind": int(kind is None), "every": int(key is None)}
        return tx.run(_REVIVE, {**self._key(kind or "", key or ""), **every, "now": self._now()})

    def forget(self, tx: Transaction, kind: str, key: str) -> None:
        """A job that nobody holds, of something that is not there any more: equal input would be news."""
        where = f"WHERE {_OURS} AND job_key = :key AND status <> 'running'"
        tx.run(f"DELETE FROM memory_jobs {where}", self._key(kind, key))

    def reopen(self, tx: Transaction, kind: str, keys: Sequence[str]) -> int:
        """Jobs that were done are to be done again, on the same input."""
        now = self._now()
        return tx.run_many(_REOPEN, [{**self._key(kind, key), "now": now} for key in keys]) if keys else 0

    def settle(self, tx: Transaction, kind: str, jobs: Iterable[tuple[str, str, JobStatus]]) -> None:
        """(key, watermark, status) of jobs that were done, as far as their results tell; a known one stays as it is."""
        now = self._now()
        rows = [
            {**self._key(kind, key), "watermark": watermark, "status": str(status), "now": now}
            for key, watermark, status in sorted(jobs)
        ]
        tx.run_many(_SETTLE, rows)

    def watermarks(self, tx: Transaction, kind: str, keys: Sequence[str]) -> dict[str, tuple[JobStatus, str, str]]:
        """key → its state, the newest input it knows, and the input that was done."""
        if not keys:
            return {}
        placeholders, chosen = marks("key", keys)
        names = {**self.owner.names(), "kind": kind, **chosen}
        rows = tx.rows(f"{_WATERMARKS} AND job_key IN ({placeholders})", names)
        return {key: (JobStatus(status), newest, done) for key, status, newest, done in rows}

    def find(self, tx: Transaction, kind: str, key: str) -> Job | None:
        row = tx.row(_FIND, self._key(kind, key))
        return _job(row) if row else None

    def list(self, tx: Transaction, statuses: Sequence[JobStatus], limit: int = 100) -> list[Job]:
        if not statuses:
            return []
        placeholders, chosen = marks("status", [str(status) for status in statuses])
        names = {**self.owner.names(), "limit": limit, **chosen}
        return [_job(row) for row in tx.rows(_LIST.format(among=placeholders), names)]

    def due(self, tx: Transaction, is_dead: Callable[[str], bool] = certainly_dead) -> set[tuple[str, str, int]]:
        """Jobs that wait no longer, those whose worker is gone or let its lease run out, and files that are pending:
        somebody held one when more of it came, or gave it back. (kind, key, token)"""
        rows = tx.rows(_DUE, self.owner.names())
        now = self._now()
        return {(kind, key, token) for kind, key, token, until, worker in rows if until <= now or is_dead(worker)}

    def count(self, tx: Transaction) -> dict[str, dict[str, int]]:
        """kind → status → number."""
        counts: dict[str, dict[str, int]] = {}
        for kind, status, number in tx.rows(_COUNT, self.owner.names()):
            counts.setdefault(kind, {})[status] = number
        return counts

    def _now(self) -> Timestamp:
        return timestamp(self.clock())

    def _key(self, kind: str, key: str) -> dict[str, object]:
        return {**self.owner.names(), "kind": kind, "key": key}

    def _held(self, lease: Lease) -> dict[str, object]:
        return {**self._key(lease.kind, lease.key), "token": lease.token, "now": self._now()}

    def _given_back(self, lease: Lease) -> dict[str, object]:
        return {**self._held(lease), "earlier": lease.earlier}

    @staticmethod
    def _must_change(changed: int, lease: Lease) -> None:
        if changed != 1:
            raise LeaseLost(f"{lease.kind} {lease.key}: the lease is not ours any more")


_ENQUEUE = """
INSERT INTO memory_jobs (tenant, agent_id, kind, job_key, status, worker, fencing_token, lease_expires_at, not_before,
                         attempts, last_error, input_watermark, success_watermark, created_at, updated_at)
VALUES (:tenant, :agent_id, :kind, :key, 'pending', '', 0, '', '', 0, '', :watermark, '', :now, :now)
ON CONFLICT (tenant, agent_id, kind, job_key) DO UPDATE SET
  input_watermark = excluded.input_watermark,
  updated_at = excluded.updated_at,
  status = CASE WHEN memory_jobs.status IN ('running', 'backing_off', 'cooling_down', 'paused')
                THEN memory_jobs.status ELSE 'pending' END,
  attempts = CASE WHEN memory_jobs.status IN ('running', 'backing_off') THEN memory_jobs.attempts ELSE 0 END
WHERE memory_jobs.input_watermark <> excluded.input_watermark
"""

_SETTLE = """
INSERT INTO memory_jobs (tenant, agent_id, kind, job_key, status, worker, fencing_token, lease_expires_at, not_before,
                         attempts, last_error, input_watermark, success_watermark, created_at, updated_at)
VALUES (:tenant, :agent_id, :kind, :key, :status, '', 0, '', '', 0, '', :watermark, :watermark, :now, :now)
ON CONFLICT DO NOTHING
"""

_OURS = "tenant = :tenant AND agent_id = :agent_id AND kind = :kind"
_HELD = f"{_OURS} AND job_key = :key AND fencing_token = :token AND status = 'running'"

_BURY = f"""
UPDATE memory_jobs SET status = 'dead', last_error = 'its worker died or stalled every time', updated_at = :now
WHERE {_OURS} AND attempts >= :most
  AND (status = 'pending' OR (status = 'running' AND lease_expires_at <= :now))
"""

_CLAIM = """
WITH due AS MATERIALIZED (
  SELECT job_key FROM memory_jobs
  WHERE tenant = :tenant AND agent_id = :agent_id AND kind = :kind {among}
    AND (status = 'pending' OR (status = 'backing_off' {due})
         OR (status = 'cooling_down' AND input_watermark <> success_watermark {due})
         OR (status = 'paused' AND not_before <= :now)
         OR (status = 'running' AND lease_expires_at <= :now))
  ORDER BY attempts, created_at, job_key
  LIMIT :limit {skip_locked}
)
UPDATE memory_jobs SET status = 'running', worker = :worker, fencing_token = fencing_token + 1,
  lease_expires_at = :expires, attempts = attempts + :counts, updated_at = :now
WHERE tenant = :tenant AND agent_id = :agent_id AND kind = :kind AND job_key IN (SELECT job_key FROM due)
RETURNING job_key, fencing_token, attempts, input_watermark
"""

_HEARTBEAT = f"""
UPDATE memory_jobs SET lease_expires_at = :expires, attempts = CASE WHEN :progress = 1 THEN 0 ELSE attempts END
WHERE {_HELD}
"""

_BEGIN = f"UPDATE memory_jobs SET attempts = :attempts, updated_at = :now WHERE {_HELD}"

_COMPLETE = f"""
UPDATE memory_jobs SET
  status = CASE WHEN input_watermark = :watermark OR :status = 'cooling_down' THEN :status ELSE 'pending' END,
  success_watermark = :watermark, attempts = 0, last_error = '', lease_expires_at = '', not_before = :not_before,
  updated_at = :now
WHERE {_HELD}
"""

_ATTEMPTS = f"SELECT attempts, input_watermark FROM memory_jobs WHERE {_HELD} {{for_update}}"

_FAIL = f"""
UPDATE memory_jobs SET status = :status, attempts = :attempts, last_error = :error, lease_expires_at = '',
  not_before = :not_before, updated_at = :now
WHERE {_HELD}
"""

_RELEASE = f"""
UPDATE memory_jobs SET status = 'pending', lease_expires_at = '',
  attempts = CASE WHEN attempts < :earlier THEN attempts ELSE :earlier END, updated_at = :now
WHERE {_HELD}
"""

_PAUSE = f"""
UPDATE memory_jobs SET status = 'paused', lease_expires_at = '', last_error = :error, not_before = :not_before,
  attempts = CASE WHEN attempts < :earlier THEN attempts ELSE :earlier END, updated_at = :now
WHERE {_HELD}
"""

_WATERMARKS = f"SELECT job_key, status, input_watermark, success_watermark FROM memory_jobs WHERE {_OURS}"

_LEASE = f"SELECT status, lease_expires_at FROM memory_jobs WHERE {_OURS} AND job_key = :key {{for_update}}"

_TOKEN = f"SELECT fencing_token, worker FROM memory_jobs WHERE {_OURS} AND job_key = :key {{for_update}}"

_HOLDERS = f"SELECT DISTINCT worker FROM memory_jobs WHERE {_OURS} AND status = 'running'"

_REAP = f"""
UPDATE memory_jobs SET status = 'pending', lease_expires_at = '', updated_at = :now
WHERE {_OURS} AND status = 'running' AND worker = :worker
"""

_REVIVE = """
UPDATE memory_jobs SET status = 'pending', attempts = 0, not_before = '', updated_at = :now
WHERE tenant = :tenant AND agent_id = :agent_id AND (:every_kind = 1 OR kind = :kind)
  AND (:every = 1 OR job_key = :key) AND status IN ('dead', 'failed', 'backing_off', 'paused')
"""

_REOPEN = f"""
UPDATE memory_jobs SET status = 'pending', success_watermark = '', attempts = 0, not_before = '', updated_at = :now
WHERE {_OURS} AND job_key = :key AND status IN ('succeeded', 'succeeded_no_output')
"""

_COUNT = """
SELECT kind, status, COUNT(*) FROM memory_jobs WHERE tenant = :tenant AND agent_id = :agent_id
GROUP BY kind, status ORDER BY kind, status
"""

_DUE = """
SELECT kind, job_key, fencing_token, not_before, '' FROM memory_jobs
WHERE tenant = :tenant AND agent_id = :agent_id
  AND (status IN ('backing_off', 'paused', 'cooling_down') OR (status = 'pending' AND kind = 'ingest'))
UNION ALL
SELECT kind, job_key, fencing_token, lease_expires_at, worker FROM memory_jobs
WHERE tenant = :tenant AND agent_id = :agent_id AND status = 'running'
"""

_JOB = "SELECT kind, job_key, status, attempts, not_before, last_error, updated_at FROM memory_jobs"

_FIND = f"{_JOB} WHERE {_OURS} AND job_key = :key"

_LIST = f"""
{_JOB} WHERE tenant = :tenant AND agent_id = :agent_id AND status IN ({{among}})
ORDER BY updated_at DESC, job_key LIMIT :limit
"""


def _job(row: Row) -> Job:
    kind, key, status, attempts, later, error, updated = row
    return Job(kind, key, JobStatus(status), attempts, Timestamp(later), error, Timestamp(updated))
