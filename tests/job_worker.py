"""A worker as a real program, to be killed and stopped by `test_jobs_processes`.

    python job_worker.py URL HOME LEASE SEED     claims and completes jobs until none is left
    python job_worker.py URL HOME LEASE          does what it is told on standard input: `claim`, `complete`

A job's effect is a row in the table `effects`, inserted in the transaction that completes the job.
"""

from __future__ import annotations

import random
import sys
import time
from pathlib import Path

from recollect import config
from recollect.errors import LeaseLost
from recollect.store.database import Database
from recollect.store.jobs import Jobs, Lease, RetryPolicy
from recollect.store.open import open_database
from recollect.types import JobStatus, Owner, utc_now

KIND = "work"
OWNER = Owner("acme", "ada")
EFFECT = "INSERT INTO effects (job_key, token, worker) VALUES (:key, :token, :worker)"


def make_jobs(lease_seconds: float) -> Jobs:
    """Workers die here many times over: that must not use up a job's attempts."""
    return Jobs(OWNER, lease_seconds=lease_seconds, policy=RetryPolicy(max_attempts=1000))


def complete(database: Database, jobs: Jobs, lease: Lease, pause: float = 0.0) -> bool:
    """False when the lease was lost, and with it the effect."""
    try:
        with database.write() as tx:
            tx.run(EFFECT, {"key": lease.key, "token": lease.token, "worker": jobs.worker})
            time.sleep(pause)  # here it has had its effect, and is not complete
            jobs.complete(tx, lease)
    except LeaseLost:
        return False
    return True


def work(database: Database, jobs: Jobs, chance: random.Random) -> None:
    while True:
        with database.write() as tx:
            jobs.reap(tx, KIND)
            leases = jobs.claim(tx, KIND, limit=chance.randint(1, 10))
            left = {status: number for status, number in jobs.count(tx)[KIND].items() if status != JobStatus.SUCCEEDED}
        if not left:
            return
        if not leases:
            time.sleep(0.05)
        for lease in leases:
            time.sleep(chance.random() * 0.15)
            if chance.random() < 0.3:
                with database.write() as tx:
                    jobs.heartbeat(tx, leases)
            complete(database, jobs, lease, chance.random() * 0.003)


def obey(database: Database, jobs: Jobs) -> None:
    leases: list[Lease] = []
    for line in sys.stdin:
        match line.strip():
            case "claim":
                with database.write() as tx:
                    leases = jobs.claim(tx, KIND, limit=1)
                answer = f"claimed {len(leases)}"
            case "complete":
                answer = "completed" if complete(database, jobs, leases[0]) else "lost"
            case other:
                answer = f"what is {other}?"
        print(answer, flush=True)


def main(url: str, home: str, lease_seconds: str, seed: str = "") -> None:
    settings = config.load({"HOME": home}, home=Path(home), flags={"database": url})
    database, jobs = open_database(settings, utc_now), make_jobs(float(lease_seconds))
    if seed:
        work(database, jobs, random.Random(int(seed)))
    else:
        obey(database, jobs)
    database.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
