"""The runner: takes the files that changed, under a lease each, and stores what their folds give.

For every file: claim and mark it `ingesting`; read complete lines up to the size it had then; commit entries, offset
and the fold's state together, in bounded batches; the last batch marks it `idle` and completes its job. Small files
share a transaction. Whatever happens in between, the store holds whole batches only, and the offset says how many.

Nothing is decided here that a pure module decides: what a line means (`sources`), what belongs together
(`conversations`), which file is which (`identify` below). No file is read inside a transaction.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from itertools import takewhile
from pathlib import Path, PurePath

import msgspec

from recollect import note
from recollect.errors import LeaseLost
from recollect.ingest.erasure import blanked, erased
from recollect.ingest.fold import Batch, fold_lines
from recollect.ingest.forks import Ancestry, ForkState, Saved, ancestry, drop_copied
from recollect.ingest.gate import Gate
from recollect.ingest.scan import Found, Problem, refresh
from recollect.ingest.sources.base import Source, State, bounded, without_secrets
from recollect.ingest.tail import PROBE, Lines, Transcript
from recollect.ingest.writer import Chunk, Touched, Writer
from recollect.projects.paths import is_redacted, stored
from recollect.store import entries as entry_rows
from recollect.store import files
from recollect.store.database import Database, Transaction
from recollect.store.entries import FileKey
from recollect.store.files import FileState, MalformedLine
from recollect.store.jobs import Jobs, Lease
from recollect.types import Clock, FileStatus, Owner, timestamp

log = logging.getLogger(__name__)

KIND = "ingest"
_GROUP = 1024  # files claimed at a time
# Per commit. Measured: larger ones let the other process wait for the lock, smaller ones write index pages too often.
_ENTRIES = 6_000
_TEXT = 16 * 1024 * 1024
_BYTES = 128 * 1024 * 1024

Progress = Callable[[int, int], None]  # (bytes read, files finished) since the last call


@dataclass(slots=True)
class Report:
    """What a run did; the JSON of `recollect ingest`."""

    files: int = 0  # read
    skipped: int = 0  # unchanged, unknown, excluded or busy
    entries: int = 0  # new in the store
    malformed: int = 0
    malformed_lines: list[MalformedLine] = field(default_factory=list)
    unplaced: int = 0  # messages that name no folder, and were left out because something is switched off
    bytes: int = 0
    text: int = 0  # characters kept
    seconds: float = 0.0  # of the whole run, scan included
    indexed: int = 0  # entries that entered the full-text index afterwards
    index_seconds: float = 0.0
    problems: list[Problem] = field(default_factory=list)
    busy: list[Found] = field(default_factory=list)  # another process works on them
    deferred: list[tuple[Found, str]] = field(default_factory=list)  # forks whose parent (source) was not read yet
    touched: set[tuple[str, str]] = field(default_factory=set)  # (file, session key)

    @property
    def conversations(self) -> int:
        return len(self.touched)

    def read_files(self) -> set[str]:
        return {file for file, _ in self.touched}

    def add(self, other: Report) -> None:
        """What another process did, but for its time and what it deferred."""
        self.files += other.files
        self.skipped += other.skipped
        self.entries += other.entries
        self.malformed += other.malformed
        self.malformed_lines += other.malformed_lines
        self.unplaced += other.unplaced
        self.bytes += other.bytes
        self.text += other.text
        self.problems += other.problems
        self.busy += other.busy
        self.touched |= other.touched


@dataclass(frozen=True, slots=True)
class Work:
    """A file to read."""

    found: Found
    source: Source

    @property
    def job_key(self) -> str:
        return f"{self.source.name}/{self.found.key}"


@dataclass(slots=True)
class _Reading:
    """A claimed file: the state it was in, and the lease it is read under."""

    work: Work
    lease: Lease
    state: FileState
    fresh: bool  # nothing of it was read under its key


@dataclass(slots=True)
class _Pending:
    """Chunks that wait for the next commit, and what they amount to."""

    chunks: list[Chunk] = field(default_factory=list)
    entries: int = 0
    text: int = 0
    bytes: int = 0

    def append(self, chunk: Chunk) -> None:
        self.chunks.append(chunk)
        self.entries += len(chunk.rows)
        self.text += chunk.batch.text
        self.bytes += chunk.batch.end - chunk.batch.start

    def is_full(self) -> bool:
        return self.entries >= _ENTRIES or self.text >= _TEXT or self.bytes >= _BYTES

    def take(self) -> list[Chunk]:
        chunks, self.chunks = self.chunks, []
        self.entries = self.text = self.bytes = 0
        return chunks


@dataclass(slots=True)
class _Copies:
    """What a file repeats of sessions that it was forked from, as far as it was compared."""

    fork: ForkState
    ancestry: Ancestry = field(default_factory=Ancestry)
    kept: set[str] = field(default_factory=set)  # compared, and not dropped
    gone: set[str] = field(default_factory=set)  # copied, and erased there


@dataclass(frozen=True, slots=True)
class _Head:
    """How a file began when reading began."""

    transcript: Transcript
    size: int
    digest: str

    @classmethod
    def of(cls, transcript: Transcript, size: int) -> _Head:
        size = min(size, PROBE)
        return cls(transcript, size, (transcript.probes(size) or ("", ""))[0])

    def probes(self, offset: int) -> tuple[str, str]:
        """What tells the file by; nothing does when it was rewritten meanwhile: it is read from its beginning then."""
        found = self.transcript.probes(offset) or ("", "")
        same = found[0] == self.digest
        if not same and min(offset, PROBE) != self.size:
            same = self.of(self.transcript, self.size) == self
        return found if same else ("", "")


class _Deferred(Exception):
    """A fork came before its parent."""

    def __init__(self, fold: State) -> None:
        self.session, self.parent = fold.session_id, fold.fork_of


@dataclass(frozen=True, slots=True)
class _Waiting:
    """A fork that was deferred."""

    work: Work
    session: str
    parent: str


class Ingest:
    def __init__(
        self,
        database: Database,
        owner: Owner,
        jobs: Jobs,
        *,
        gap: timedelta,
        gate: Gate,
        clock: Clock,
        switches: str = "",
    ) -> None:
        """`switches` names what is off at present."""
        self._database = database
        self._owner = owner
        self._jobs = jobs
        self._gate = gate
        self._switches = switches
        self._writer = Writer(owner, gap, gate.project_id, clock)
        self._clock = clock
        self._defer = False
        self._moved: list[Work] = []  # to be read again, from where they were before
        self._renew_at = time.monotonic() + jobs.lease_seconds / 4

    def run(
        self,
        works: Iterable[Work],
        report: Report,
        *,
        reimport: bool = False,
        hurry: bool = True,
        defer: bool = False,
        progress: Progress = lambda size, count: None,
    ) -> None:
        """Reads every file once. De-duplicated by file key; files that another process holds are reported busy.

        A fork whose parent is not in the store, or not all of it, waits for the others, among which it may be. With
        `defer` it is left for a second run.
        """
        self._defer = True
        waiting = self._read({work.job_key: work for work in works}.values(), report, reimport, hurry, progress)
        if defer:
            report.deferred += [(each.work.found, each.work.source.name) for each in waiting]
            return
        self._defer = False
        while waiting:
            sessions = {each.session for each in waiting}
            ready = [each.work for each in waiting if each.parent not in sessions]
            if ready:
                waiting = [each for each in waiting if each.parent in sessions]
            else:  # a circle
                ready, waiting = [each.work for each in waiting], []
            self._read(ready, report, reimport, hurry, progress)

    def _read(
        self, works: Iterable[Work], report: Report, reimport: bool, hurry: bool, progress: Progress
    ) -> list[_Waiting]:
        """Returns the forks that are to wait for their parents."""
        queue = deque(works)
        again: deque[Work] = deque()  # tried before without success: one at a time, so that the culprit is known
        waiting: list[_Waiting] = []
        while queue or again:
            group = [queue.popleft() for _ in range(min(_GROUP, len(queue)))] or [again.popleft()]
            readings = self._claim(group, report, reimport, hurry, alone=again if len(group) > 1 else None)
            waiting += self._read_group(readings, report, progress)
            again += self._moved
            self._moved = []
        return waiting

    def _claim(
        self, group: Sequence[Work], report: Report, reimport: bool, hurry: bool, alone: deque[Work] | None
    ) -> list[_Reading]:
        works = {work.job_key: work for work in group}
        suffix = f"#{timestamp(self._clock())}" if reimport else f" {self._switches}"
        readings = []
        with self._database.write() as tx:
            self._jobs.enqueue(tx, KIND, [(key, work.found.signature + suffix) for key, work in works.items()])
            if reimport:
                for key in works:
                    self._jobs.revive(tx, KIND, key)
            leases = self._jobs.claim(tx, KIND, limit=len(works), keys=list(works), hurry=hurry)
            for lease in leases:
                work = works.pop(lease.key)
                if lease.attempts > 1 and alone is not None:
                    self._jobs.release(tx, lease)
                    alone.append(work)
                    continue
                found = work.found
                known = files.load(tx, self._owner, work.source.name, found.key)
                state = known or FileState(work.source.name, found.key, stored(found.root))
                if reimport:
                    state = state.next_generation(reimporting=True)
                elif state.refused and state.refused != self._switches:
                    state = state.next_generation(reimporting=state.reimporting)
                elif state.signature == files.signed(found.signature, state.refused):
                    self._jobs.complete(tx, lease)  # another process was faster, or it only moved
                    report.skipped += 1
                    continue
                state = replace(state, status=FileStatus.INGESTING, root=stored(found.root))
                readings.append(_Reading(work, lease, state, fresh=known is None))
            files.save(tx, self._owner, [reading.state for reading in readings])
        for work in works.values():
            report.skipped += 1
            report.busy.append(work.found)
        return readings

    def _read_group(self, readings: list[_Reading], report: Report, progress: Progress) -> list[_Waiting]:
        pending = _Pending()
        waiting: list[_Waiting] = []
        held = {reading.lease.key: reading for reading in readings}
        try:
            for reading in readings:
                try:
                    for chunk in self._chunks(reading, lambda: self._flush(pending, held, report)):
                        pending.append(chunk)
                        progress(chunk.batch.end - chunk.batch.start, int(chunk.last))
                        if pending.is_full():
                            self._flush(pending, held, report)
                        if reading.lease.key not in held:
                            break  # the lease was lost
                except _Deferred as fork:
                    waiting.append(_Waiting(reading.work, fork.session, fork.parent))
                    self._abandon([held.pop(reading.lease.key)])
                except OSError as error:
                    self._flush(pending, held, report)
                    self._fail(reading, error, held, report)
            self._flush(pending, held, report)
            return waiting
        finally:
            if held:  # Ctrl-C, or a bug: give back what is not done
                self._abandon(held.values())

    def _chunks(self, reading: _Reading, settle: Callable[[], None]) -> Iterator[Chunk]:
        """A file's new lines, a commit's worth at a time; the last chunk, perhaps without lines, ends the file."""
        source, found = reading.work.source, reading.work.found
        with Transcript(Path(found.path)) as transcript:
            found = refresh(found, transcript.status())
            head = _Head.of(transcript, found.size)
            state, fold, fork = _resume(source, identify(reading.state, transcript))
            copies = _Copies(fork)
            batch = Batch(state.last_processed_offset, state.last_processed_offset, refused=bool(state.refused))
            admit = partial(self._gate.admit, is_ours=source.name == note.SOURCE)
            damage: list[OSError] = []
            for lines in _until(damage, transcript.lines(state.last_processed_offset, found.size)):
                fold_lines(source, fold, lines, batch, admit)
                comparing = fold.fork_of != "" and not copies.fork.done
                if comparing:
                    if not copies.ancestry.said:
                        settle()  # the parent may be among what is not stored yet
                        copies.ancestry = self._ancestry(source, fold)
                        missing = not copies.ancestry.said and not copies.fork.matched
                        if self._defer and (missing or not copies.ancestry.is_read):
                            raise _Deferred(fold)
                    self._drop_copies(source, fold, batch, copies, last=False)
                far = batch.end - batch.start >= _BYTES and not comparing  # a copy is compared whole, not cut off here
                if far or len(batch.entries) >= _ENTRIES or batch.text >= _TEXT:
                    self._drop_copies(source, fold, batch, copies, last=True)
                    state = self._advance(state, found, batch, _saved(fold, copies), head)
                    yield self._writer.prepare(reading.lease, state, batch, last=False)
                    batch = Batch(batch.end, batch.end, refused=batch.refused)
            self._drop_copies(source, fold, batch, copies, last=True)
            state = self._advance(state, found, batch, _saved(fold, copies), head)
            if damage:
                if batch.lines:
                    yield self._writer.prepare(reading.lease, state, batch, last=False)
                raise damage[0]
            signature = files.signed(found.signature, state.refused)
            done = replace(state, status=FileStatus.IDLE, signature=signature)
            yield self._writer.prepare(reading.lease, done, batch, last=True)

    def _advance(self, state: FileState, found: Found, batch: Batch, saved: str, head: _Head) -> FileState:
        """The state after the batch, as it is committed with it."""
        newest = max((entry.timestamp for entry in batch.entries.values()), default=None)
        first, last = head.probes(batch.end) if batch.lines else (state.head_hash, state.tail_hash)
        return replace(
            state,
            signature=files.signed("", self._switches) if batch.refused else state.signature,
            last_modified=found.modified_ms,
            file_size=found.size,
            last_processed_offset=batch.end,
            last_entry_timestamp=max(filter(None, (state.last_entry_timestamp, newest)), default=None),
            line_count=state.line_count + batch.lines,
            malformed_count=state.malformed_count + len(batch.malformed),
            head_hash=first,
            tail_hash=last,
            parser_state=saved,
        )

    def _ancestry(self, source: Source, fold: State) -> Ancestry:
        with self._database.read() as tx:
            return ancestry(tx, self._owner, source.name, fold)

    def _drop_copies(self, source: Source, fold: State, batch: Batch, copies: _Copies, *, last: bool) -> None:
        """What a fork repeats leaves the batch. An entry that may still grow is not compared, nor what follows it,
        but in the `last` comparison before the batch is stored."""
        if not fold.fork_of or copies.fork.done:
            return
        growing = {bounded(message.uuid) for message in fold.opened if not last}
        grown = [
            entry
            for entry in takewhile(lambda entry: entry.uuid not in growing, batch.entries.values())
            if entry.uuid not in copies.kept
        ]
        with self._database.read() as tx:
            for session in copies.ancestry.sessions:
                copies.gone |= erased(tx, self._owner, source.name, [*grown, *batch.compactions], session)
        own, copies.fork = drop_copied(grown, copies.ancestry.said, copies.fork, copies.gone)
        copies.kept |= {entry.uuid for entry in own}
        for entry in grown:
            if entry.uuid not in copies.kept:
                del batch.entries[entry.uuid]
                batch.text -= len(entry.content)
        batch.compactions = [each for each in batch.compactions if each.uuid not in copies.gone]

    def _flush(self, pending: _Pending, held: dict[str, _Reading], report: Report) -> None:
        """Commits what was read. A chunk whose lease is lost goes, with all that follows it in its file."""
        chunks = self._without_moved(pending.take(), held)
        if not chunks:
            return
        try:
            self._commit(chunks, held, report)
        except LeaseLost:
            for chunk in chunks:
                if chunk.lease.key in held:
                    try:
                        self._commit([chunk], held, report)
                    except LeaseLost as error:
                        log.warning("%s", error)
                        report.skipped += 1
                        report.busy.append(held.pop(chunk.lease.key).work.found)

    def _without_moved(self, chunks: list[Chunk], held: dict[str, _Reading]) -> list[Chunk]:
        """A new file that is one which moved takes over what is known of it, and is read again."""
        new = {key for key, reading in held.items() if reading.fresh}
        fresh = [chunk for chunk in chunks if chunk.rows and chunk.batch.start == 0 and chunk.lease.key in new]
        moved = {key: was for key, was in self._namesakes(fresh).items() if not _is_there(was)}
        for key, was in moved.items():
            reading = held.pop(key)
            self._moved.append(reading.work)
            with self._database.write() as tx:
                if self._jobs.release(tx, reading.lease):
                    files.move(tx, self._owner, was, reading.state)
                    self._jobs.forget(tx, KIND, f"{was.source}/{was.file_path}")
        return [chunk for chunk in chunks if chunk.lease.key not in moved]

    def _namesakes(self, chunks: Sequence[Chunk]) -> dict[str, FileState]:
        """Job key → the file of the same name in another place that has what this one begins with."""
        found: dict[str, FileState] = {}
        for source in sorted({chunk.state.source for chunk in chunks}):
            begins = {chunk.rows[0].uuid: chunk for chunk in chunks if chunk.state.source == source}
            with self._database.read() as tx:
                for uuid, stored in entry_rows.find(tx, FileKey(self._owner, source, ""), list(begins)).items():
                    path, other = PurePath(begins[uuid].state.file_path), PurePath(stored.source_file)
                    if path != other and path.name == other.name:
                        was = files.load(tx, self._owner, source, stored.source_file)
                        if was is not None and was.status is FileStatus.IDLE:
                            found[begins[uuid].lease.key] = was
        return found

    def _commit(self, chunks: Sequence[Chunk], held: dict[str, _Reading], report: Report) -> None:
        with self._database.write() as tx:
            self._gate.save_projects(tx)
            stored = [self._writer.store(tx, chunk) for chunk in chunks]
            files.save(tx, self._owner, [touched.state for touched in stored])
            self._jobs.complete(tx, *(chunk.lease for chunk in chunks if chunk.last))
            if lost := self._jobs.heartbeat(tx, [chunk.lease for chunk in chunks if not chunk.last], progress=True):
                raise LeaseLost(f"{lost[0].key} was taken over by another process")
            self._renew(tx, held.values())
        for chunk, touched in zip(chunks, stored, strict=True):
            _account(report, chunk, touched)
            if chunk.last:
                del held[chunk.lease.key]

    def _renew(self, tx: Transaction, readings: Iterable[_Reading]) -> None:
        """Leases of files that wait their turn; one that is lost is noticed when its file is committed."""
        if time.monotonic() >= self._renew_at:
            self._jobs.heartbeat(tx, [reading.lease for reading in readings])
            self._renew_at = time.monotonic() + self._jobs.lease_seconds / 4

    def _fail(self, reading: _Reading, error: OSError, held: dict[str, _Reading], report: Report) -> None:
        """The file cannot be read: it stays as it was and is tried again later."""
        problem = Problem.of(reading.work.found.path, error)
        report.problems.append(problem)
        report.skipped += 1
        if held.pop(reading.lease.key, None) is None:
            return
        with self._database.write() as tx:
            if not self._jobs.heartbeat(tx, [reading.lease]):
                self._jobs.fail(tx, reading.lease, problem.reason)
                self._idle(tx, reading)

    def _abandon(self, readings: Iterable[_Reading]) -> None:
        with self._database.write() as tx:
            for reading in readings:
                if self._jobs.release(tx, reading.lease):
                    self._idle(tx, reading)

    def _idle(self, tx: Transaction, reading: _Reading) -> None:
        state = files.load(tx, self._owner, reading.state.source, reading.state.file_path)
        if state is not None:
            files.save(tx, self._owner, [replace(state, status=FileStatus.IDLE)])


def identify(state: FileState, transcript: Transcript) -> FileState:
    """Is this the file that was read before, grown? Otherwise it was cut off or replaced: a new generation begins."""
    if not state.last_processed_offset:
        return state
    if transcript.probes(state.last_processed_offset) == (state.head_hash, state.tail_hash):
        return state
    log.info("%s was cut off or replaced; reading it from its beginning", state.file_path)
    return state.next_generation(reimporting=state.reimporting)


def _resume(source: Source, state: FileState) -> tuple[FileState, State, ForkState]:
    """Where reading stopped. A fold's state that this version cannot read any more means: from the beginning."""
    if state.parser_state:
        try:
            saved = msgspec.json.decode(state.parser_state, type=Saved)
            return state, msgspec.json.decode(saved.fold, type=source.state_type), saved.fork
        except msgspec.DecodeError:
            log.info("%s is read from its beginning: its state is of another version", state.file_path)
            state = state.next_generation(reimporting=state.reimporting)
    return state, source.begin(PurePath(state.file_path)), ForkState()


def _saved(fold: State, copies: _Copies) -> str:
    saved = Saved(msgspec.Raw(msgspec.json.encode(without_secrets(fold))), copies.fork)
    return blanked(msgspec.json.encode(saved).decode(), copies.gone)


def _until(damage: list[OSError], lines: Iterator[Lines]) -> Iterator[Lines]:
    """What can be read before the file turns out to be damaged."""
    try:
        yield from lines
    except OSError as error:
        damage.append(error)


def _is_there(state: FileState) -> bool:
    """Or is where nobody may look."""
    path = f"{state.root}/{state.file_path}"
    try:
        if is_redacted(path) or not Path(state.root).is_dir():
            return True
        return any(Path(each).exists() for each in (path, f"{path}.zst"))
    except OSError:
        return True


def _account(report: Report, chunk: Chunk, touched: Touched) -> None:
    state, batch = chunk.state, chunk.batch
    report.files += int(chunk.last)
    report.entries += touched.entries
    report.touched |= {(state.file_path, key) for key in touched.session_keys}
    report.bytes += batch.end - batch.start
    report.text += batch.text
    report.malformed += len(batch.malformed)
    report.unplaced += len(batch.unplaced)
    report.malformed_lines += chunk.malformed_lines()
