"""Keeps MEMORY.md: one writer at a time, under a lease that covers the write. A projection of the files' rows.

Whoever stores rows that it is made of says in the same transaction that it is `due`; where that process ends before it
is written, whoever runs next writes it.

Whoever asked while another one was writing makes the job pending again, and the writer goes round once more: nobody's
conversation is left out.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from datetime import timedelta

from recollect.artifacts import ledger
from recollect.artifacts.files import Files
from recollect.artifacts.ledger import FILE, Placed, Row
from recollect.artifacts.names import Kind
from recollect.extract.values import left_of
from recollect.models.base import ToolRefused
from recollect.store import artifacts, feedback, memories
from recollect.store.artifacts import Summarised
from recollect.store.database import Transaction
from recollect.store.ground import Ground, Part
from recollect.store.jobs import Lease
from recollect.types import JobStatus, timestamp
from recollect.workspace import READ_LIMIT, Workspace

KIND = "ledger"
_LEADING = 24  # memories of each kind that the head may choose from
_ROUNDS = 20  # of one writer while others ask again and again


class Projection(Part):
    """`also` makes what else follows from the same rows, before the file. `wrote` is called after every change on
    disk; a test crashes there."""

    def __init__(
        self,
        ground: Ground,
        *,
        also: Callable[[], object] = lambda: None,
        wrote: Callable[[str], None] = lambda path: None,
    ) -> None:
        super().__init__(ground)
        self._also = also
        settings = ground.settings
        self._files = Files(settings.root)
        self._folder = Workspace(settings.workspace.parent, most=None)  # beside it lie all artifacts
        self._jobs = ground.jobs()
        self._path = (settings.workspace.parent.relative_to(settings.root) / FILE).as_posix()
        self._wrote = wrote

    def exists(self) -> bool:
        return (self._folder.root / FILE).is_file()

    def lists(self, manifest_path: str) -> bool:
        """Whether the file has a row of the conversation with this manifest."""
        try:
            return ledger.lists(self._folder.read(FILE), manifest_path)
        except (OSError, ToolRefused):  # it is not there, or not ours to read
            return False

    def is_stale(self) -> bool:
        """Is the file not what it would be now? Where there are no conversations it need not be there."""
        wanted = self._text()
        try:
            return self._folder.read(FILE) != wanted
        except ToolRefused:
            return wanted != ledger.render((), (), self._clock()) or (self._folder.root / FILE).is_symlink()

    def is_past(self) -> bool:
        """Did the window move on, so that the file is not what the rows say? Costs a look at the file until it did."""
        try:
            text = self._folder.read(FILE)
        except (OSError, ToolRefused):  # it is not there, or not ours to read
            return False
        return ledger.may_be_past(text, self._clock()) and text != self._text()

    def due(self, tx: Transaction) -> None:
        """The file has to be brought up to date with what this transaction stores."""
        self._jobs.enqueue(tx, KIND, [(FILE, f"{timestamp(self._clock())}#{secrets.token_hex(8)}")])

    def is_due(self) -> bool:
        """Did a process end after it stored rows, and before the file was written?"""
        with self._database.write() as tx:
            self._jobs.reap(tx, KIND)
            job = self._jobs.find(tx, KIND, FILE)
        return job is not None and job.status is JobStatus.PENDING

    def update(self) -> bool:
        """Brings the file up to date; false when another process does, when nothing changed, or when it cannot be
        written: then the job says why, and tries again when it is asked to."""
        changed = False
        with self._database.write() as tx:
            self._jobs.reap(tx, KIND)
            self.due(tx)
        for _ in range(_ROUNDS):
            with self._database.write() as tx:
                leases = self._jobs.claim(tx, KIND, limit=1, keys=[FILE], hurry=True)
            if not leases:
                break
            changed |= self._write(leases[0])
        return changed

    def failure(self) -> str:
        """Why the file could not be written at the last attempt."""
        with self._database.read() as tx:
            job = self._jobs.find(tx, KIND, FILE)
        return job.last_error if job and job.status is JobStatus.FAILED else ""

    def _write(self, lease: Lease) -> bool:
        try:
            self._also()
            self._folder.sweep(below=False)
            changed = self._folder.write(FILE, self._text(), limit=READ_LIMIT)
            if changed:
                self._wrote(self._path)
        except (OSError, ToolRefused) as error:
            with self._database.write() as tx:
                self._jobs.fail(tx, lease, f"{FILE}: {error}", permanent=True)
            return False
        except BaseException:
            with self._database.write() as tx:
                self._jobs.release(tx, lease)
            raise
        with self._database.write() as tx:
            self._jobs.complete(tx, lease)
        return changed

    def _text(self) -> str:
        rows, older = self._rows()
        return ledger.render(rows, self._placed(), self._clock(), older=older)

    def _rows(self) -> tuple[list[Row], int]:
        """What the database knows, as far as it is shown, and how many more there are."""
        now = self._clock()
        window = timestamp(now - timedelta(days=ledger.DAYS)), timestamp(now)
        with self._database.read() as tx:
            sessions = artifacts.sessions(tx, self._owner, *window)
            tests = sum(map(self._ground.is_unlisted, sessions))
            known = artifacts.newest(tx, self._owner, *window, ledger.ENOUGH + tests)
        shown = [each for each in known if not self._ground.is_unlisted(each.session_id)]
        return [_row(each) for each in shown], len(sessions) - tests - len(shown)

    def _placed(self) -> Iterator[Placed]:
        with self._database.read() as tx:
            without = self._ground.unlisted(tx).memories | feedback.retired(tx, self._owner).keys()
            held = memories.leading(tx, self._owner, _LEADING, without)
            wrong = feedback.wrong(tx, self._owner, [each.id for each in held])
            held = [each for each in held if each.id not in wrong]
            keys = {
                key
                for memory in held
                for key, _ in memory.sources
                if not self._ground.is_unlisted(key.rpartition("@")[0])
            }
            paths = artifacts.paths(tx, self._owner, Kind.SUMMARY, sorted(keys))
        for memory in held:
            if told := [paths[key] for key, _ in memory.sources if key in paths]:
                yield Placed(memory, told[0])


def _row(head: Summarised) -> Row:
    path = head.source_path
    return Row(
        ledger.listed_at(head.ended_at, head.captured_at),
        head.session_id,
        head.project,
        ledger.OF_A_CHAT if head.of_user else head.memory_sentence,
        path,
        path.removesuffix(f"{Kind.SUMMARY}.md") + f"{Kind.TRANSCRIPT}.md",  # of the same set
        head.manifest_path,
        "" if head.of_user else left_of(head.told)[1],
    )
