"""Keeps MEMORY.md: one writer at a time, under a lease that covers the write. A projection of the files.

Whoever asked while another one was writing makes the job pending again, and the writer goes round once more: nobody's
conversation is left out.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from datetime import timedelta

from recollect.artifacts import ledger
from recollect.artifacts.document import Content, parse
from recollect.artifacts.files import Files
from recollect.artifacts.ledger import Placed, Row
from recollect.artifacts.names import Kind, Name, session_token
from recollect.config import Settings
from recollect.errors import ArtifactError
from recollect.models.base import ToolRefused
from recollect.store import artifacts, memories
from recollect.store.artifacts import Indexed
from recollect.store.database import Database
from recollect.store.jobs import Jobs, Lease
from recollect.types import Clock, Owner, Timestamp, timestamp
from recollect.workspace import READ_LIMIT, Workspace

KIND = "ledger"
FILE = "MEMORY.md"
_ROUNDS = 20  # of one writer while others ask again and again


class Projection:
    def __init__(self, database: Database, settings: Settings, owner: Owner, clock: Clock) -> None:
        self._database = database
        self._owner = owner
        self._clock = clock
        self._files = Files(settings.home)
        self._folder = Workspace(settings.workspace.parent, most=None)  # beside it lie all artifacts
        self._jobs = Jobs(owner, settings.config.lease_seconds, clock=clock)

    def exists(self) -> bool:
        return (self._folder.root / FILE).is_file()

    def update(self) -> bool:
        """Brings the file up to date; false when another process does, when nothing changed, or when it cannot be
        written: then the job says why, and tries again when it is asked to."""
        changed = False
        with self._database.write() as tx:
            self._jobs.reap(tx, KIND)
            self._jobs.enqueue(tx, KIND, [(FILE, f"{timestamp(self._clock())}#{secrets.token_hex(8)}")])
        for _ in range(_ROUNDS):
            with self._database.write() as tx:
                leases = self._jobs.claim(tx, KIND, limit=1, keys=[FILE], hurry=True)
            if not leases:
                break
            changed |= self._write(leases[0])
        return changed

    def _write(self, lease: Lease) -> bool:
        try:
            newest = self._newest()
            text = ledger.render(self._rows(newest), self._placed(newest), self._clock())
            changed = self._folder.write(FILE, text, limit=READ_LIMIT)
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

    def _newest(self) -> dict[str, Name]:
        """token → the summary of its newest set; a conversation whose newest set has none is not there."""
        sets: dict[str, Name] = {}
        for name in self._files.names():
            if name.kind in (Kind.TRANSCRIPT, Kind.SUMMARY):
                best = sets.get(name.token)
                if best is None or (name.captured_at, name.kind is Kind.SUMMARY) >= (
                    best.captured_at,
                    best.kind is Kind.SUMMARY,
                ):
                    sets[name.token] = name
        return {token: name for token, name in sets.items() if name.kind is Kind.SUMMARY}

    def _rows(self, newest: Mapping[str, Name]) -> Iterator[Row]:
        """What was captured before the window ended before it, too: those files are not opened. Nor are files that
        are what they were when they were indexed."""
        first = timestamp(self._clock() - timedelta(days=ledger.DAYS))
        inside = {name.path: name for name in newest.values() if name.captured_at >= first}
        signatures = self._files.signatures(inside)
        with self._database.read() as tx:
            known = {row.source_path: row for row in artifacts.current(tx, self._owner, Kind.SUMMARY, since=first)}
        for path, name in inside.items():
            indexed = known.get(path)
            head: Indexed | Content | None = indexed
            if indexed is None or indexed.signature != signatures.get(path):
                head = self._head(name)
            if head is not None:
                yield Row(
                    Timestamp(head.ended_at or head.captured_at),
                    head.session_id,
                    head.project,
                    head.memory_sentence,
                    path,
                    Name(name.captured_at, name.token, Kind.TRANSCRIPT).path,
                    head.manifest_path,
                )

    def _head(self, name: Name) -> Content | None:
        try:
            head = parse(self._files.read(name.path) or "").head
        except ArtifactError:
            return None  # not what was written: no witness
        return head if isinstance(head, Content) and head.agent_id == self._owner.agent_id else None

    def _placed(self, newest: Mapping[str, Name]) -> Iterator[Placed]:
        with self._database.read() as tx:
            held = memories.current(memories.all_of(tx, self._owner))
        for memory in held:
            tokens = [session_token(self._owner.agent_id, key, "") for key, _ in memory.sources]
            if paths := sorted(newest[token].path for token in tokens if token in newest):
                yield Placed(memory, paths[-1])
