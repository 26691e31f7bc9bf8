"""The fence of phase 1: what is stored and written for a conversation while its job is ours, and only then.

What a person erases while a worker is at it stays erased: no answer about it is stored afterwards, and files that were
being written go again.
"""

from __future__ import annotations

from recollect.artifacts.files import Files
from recollect.errors import LeaseLost
from recollect.extract.jobs import KIND
from recollect.extract.values import Written
from recollect.models.paid import committed
from recollect.store import answers, conversations
from recollect.store.database import Database, Transaction
from recollect.store.jobs import Jobs, Lease, Standing
from recollect.types import timestamp

_OF_A_SET = ("transcript", "summary")


class Fence:
    def __init__(self, database: Database, jobs: Jobs, files: Files) -> None:
        self._database = database
        self._jobs = jobs
        self._files = files
        self.withdrew = False  # were files deleted that MEMORY.md may name?

    def is_ours(self, lease: Lease, tx: Transaction) -> bool:
        """May an answer be stored? A job that was erased and made anew is another one, though its tokens begin anew,
        too."""
        return self._jobs.standing(tx, lease) is Standing.OURS

    def keep(self, lease: Lease, question: str, answer: str) -> answers.Stored:
        """Stores what was answered or decided. LeaseLost when the job is not ours any more."""
        now = timestamp(self._jobs.clock())

        def save(tx: Transaction) -> bool:
            ours = self.is_ours(lease, tx)
            if ours:
                answers.save(tx, self._jobs.owner, KIND, lease.key, question, answer, now)
            return ours

        if not committed(self._database, save):
            raise LeaseLost(f"{lease.key} is not ours any more; its answer was not stored")
        return answers.Stored(answer, now)

    def begin(self, lease: Lease) -> None:
        """Renews the lease and counts the attempt. LeaseLost when the job is not ours: nothing is begun."""

        def begin(tx: Transaction) -> bool:
            return self._jobs.begin(tx, lease) and not self._jobs.heartbeat(tx, [lease])

        if not committed(self._database, begin):
            raise LeaseLost(f"{lease.key} was taken over by another process, or erased")

    def hold(self, lease: Lease, written: Written) -> None:
        """Renews the lease once files are written. LeaseLost when that cannot be: the files go if their conversation
        was erased meanwhile. Where another worker took over, they stay: it writes the same."""

        def renew(tx: Transaction) -> tuple[Standing, bool]:
            standing = self._jobs.standing(tx, lease)
            return standing, standing is Standing.OURS and not self._jobs.heartbeat(tx, [lease])

        standing, is_held = committed(self._database, renew)
        if is_held:
            return
        if standing is Standing.GONE:
            self._withdraw(lease, written)
        raise LeaseLost(f"{lease.key} was taken over by another process, or erased")

    def _withdraw(self, lease: Lease, written: Written) -> None:
        """Every file; of a conversation that goes on without some of its messages, those that were written now."""
        with self._database.read() as tx:
            left = conversations.of_key(tx, self._jobs.owner, lease.key)
        for each in written.files:
            if not left or (each.is_current and each.source_kind in _OF_A_SET):
                self._files.delete(each.source_path)
        self.withdrew = True
