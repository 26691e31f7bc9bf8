"""What every part of a memory stands on: made once when the memory is opened."""

from __future__ import annotations

from dataclasses import dataclass

from recollect.config import Settings
from recollect.store import unlisted as tests
from recollect.store.database import Database, Transaction
from recollect.store.jobs import Jobs, RetryPolicy
from recollect.store.unlisted import Unlisted
from recollect.types import Clock, Owner


@dataclass(frozen=True, slots=True)
class Ground:
    database: Database
    settings: Settings
    owner: Owner
    clock: Clock

    def jobs(self, policy: RetryPolicy | None = None) -> Jobs:
        """Under leases as long as they are configured."""
        return Jobs(self.owner, self.settings.config.lease_seconds, policy or RetryPolicy(), self.clock)

    def unlisted(self, tx: Transaction) -> Unlisted:
        """What is kept of sessions that are tests, and told nowhere."""
        return tests.unlisted(tx, self.owner, self.settings.config.test_sessions)

    def is_unlisted(self, session_id: str) -> bool:
        """Is it the session of a test?"""
        return tests.is_unlisted(self.settings.config.test_sessions, session_id)


class Part:
    """Something that stands on it, and calls it by these names."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground
        self._database = ground.database
        self._settings = ground.settings
        self._owner = ground.owner
        self._clock = ground.clock
