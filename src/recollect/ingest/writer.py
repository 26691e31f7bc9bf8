"""Stores a batch: entries, what became of earlier ones, and the conversations they form, in the caller's transaction.

The common case, new entries at the end of a file, costs an insert per entry and touches the open conversation only.
Copies, amendments, withdrawals and late entries take the slower way: the session's conversations are built anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from operator import itemgetter
from pathlib import PurePath

from recollect.ingest.conversations import Plan, Span, append, group, rebuild
from recollect.ingest.erasure import blanked, erased
from recollect.ingest.fold import Batch
from recollect.store import citations, files, sums
from recollect.store import conversations as conversation_rows
from recollect.store import entries as entry_rows
from recollect.store.database import Transaction
from recollect.store.entries import EntryRow, FileKey, Mark, Touch
from recollect.store.files import MALFORMED_KEPT, FileState, MalformedLine
from recollect.store.jobs import Lease
from recollect.types import Clock, Conversation, ConversationStatus, Entry, Owner, Timestamp, timestamp


@dataclass(frozen=True, slots=True)
class Chunk:
    """A commit's worth of a file, with everything that can be made ready before the transaction."""

    lease: Lease
    state: FileState  # as it is after the batch
    batch: Batch
    last: bool  # the end of the file was reached
    rows: Sequence[EntryRow]  # a row per new entry
    spans: Mapping[str, Sequence[Span]]  # session → conversations that its new entries form by themselves

    def malformed_lines(self) -> list[MalformedLine]:
        """The first ones of the file, with their numbers in it."""
        before = self.state.line_count - self.batch.lines
        room = MALFORMED_KEPT - (self.state.malformed_count - len(self.batch.malformed))
        return [
            MalformedLine(self.state.source, self.state.file_path, before + number, offset, reason[:200])
            for number, offset, reason in self.batch.malformed[: max(room, 0)]
        ]


@dataclass(slots=True)
class Touched:
    """What storing a chunk changed."""

    state: FileState  # as it is to be saved
    entries: int = 0  # rows that are new
    session_keys: set[str] = field(default_factory=set)


@dataclass(slots=True)
class _Slow:
    """Sessions whose conversations must be built anew, per file, and which of their entries are not what they were."""

    sessions: set[tuple[str, str]] = field(default_factory=set)  # (file, session)
    touched: dict[str, list[Timestamp]] = field(default_factory=dict)  # session → times

    def add(self, file: str, sessions: Iterable[str]) -> None:
        self.sessions |= {(file, session) for session in sessions}

    def touch(self, file: str, entries: Iterable[Touch]) -> None:
        for session, at in entries:
            self.sessions.add((file, session))
            self.touched.setdefault(session, []).append(at)


class Writer:
    def __init__(self, owner: Owner, gap: timedelta, project_of: Callable[[Entry], str], clock: Clock) -> None:
        self._owner = owner
        self._gap = gap
        self._project_of = project_of
        self._clock = clock

    def prepare(self, lease: Lease, state: FileState, batch: Batch, *, last: bool) -> Chunk:
        key = FileKey(self._owner, state.source, state.file_path)
        stem = PurePath(state.file_path).stem
        rows: list[EntryRow] = []
        sessions: dict[str, tuple[bool, list[Mark]]] = {}
        for entry in batch.entries.values():
            found = sessions.get(entry.session_id)
            if found is None:
                found = sessions[entry.session_id] = (is_named_after(stem, entry.session_id), [])
            owned, marks = found
            project = self._project_of(entry)
            rows.append(entry_rows.row(key, state.generation, entry, project, owned))
            marks.append((entry.timestamp, entry.cwd, project, entry.branch, entry.user))
        spans = {session: group(sorted(own, key=itemgetter(0)), self._gap) for session, (_, own) in sessions.items()}
        return Chunk(lease, state, batch, last, rows, spans)

    def store(self, tx: Transaction, chunk: Chunk) -> Touched:
        """Everything but the file's state, which the caller saves with those of other files."""
        chunk = self._without_erased(tx, chunk)
        state = chunk.state
        key = FileKey(self._owner, state.source, state.file_path)
        touched, slow = Touched(state), _Slow()
        if chunk.rows:
            touched.entries = self._insert(tx, key, chunk, slow)
        self._revise(tx, key, chunk.batch, slow)
        citations.note(tx, key, (*chunk.batch.entries.values(), *chunk.batch.amended.values()))
        if chunk.last and state.reimporting:
            sums.drop_sessions(tx, self._owner, entry_rows.sessions_of_file(tx, key))
            slow.touch(key.source_file, entry_rows.delete_older(tx, key, state.generation))
            touched.state = replace(state, reimporting=False)
        self._group(tx, key, chunk.spans, slow, touched)
        self._keep(tx, key, chunk)
        return touched

    def _without_erased(self, tx: Transaction, chunk: Chunk) -> Chunk:
        batch = chunk.batch
        gone = erased(tx, self._owner, chunk.state.source, (*batch.entries.values(), *batch.compactions))
        if not gone:
            return chunk
        kept = replace(
            batch,
            entries={uuid: entry for uuid, entry in batch.entries.items() if uuid not in gone},
            compactions=[each for each in batch.compactions if each.uuid not in gone],
        )
        state = replace(chunk.state, parser_state=blanked(chunk.state.parser_state, gone))
        return self.prepare(chunk.lease, state, kept, last=chunk.last)

    def _insert(self, tx: Transaction, key: FileKey, chunk: Chunk, slow: _Slow) -> int:
        entries, generation = list(chunk.batch.entries.values()), chunk.state.generation
        withdrawn = {uuid for uuid, gone in chunk.batch.withdrawn.items() if gone}
        if generation > 1:
            slow.touch(key.source_file, entry_rows.adopt(tx, key, generation, entries))
        new = entry_rows.insert(tx, chunk.rows)
        if new == len(chunk.rows):
            return new
        standing = entry_rows.find(tx, key, [entry.uuid for entry in entries])
        replacing = []
        for entry, row in zip(entries, chunk.rows, strict=True):
            old = standing[entry.uuid]
            again = old.source_file == key.source_file and old.generation < generation
            stolen = old.source_file != key.source_file and row.owned and not old.owned
            if again:
                slow.touch(key.source_file, _touches(entry_rows.amend(tx, key, [entry])))
            if again or stolen:
                replacing.append(row)
                slow.add(old.source_file, [old.session_id])
                if old.withdrawn != (entry.uuid in withdrawn):
                    slow.touch(key.source_file, _touches([entry]))
        entry_rows.overwrite(tx, replacing, withdrawn)
        slow.add(key.source_file, chunk.spans)
        return new

    def _revise(self, tx: Transaction, key: FileKey, batch: Batch, slow: _Slow) -> None:
        if batch.amended:
            slow.touch(key.source_file, _touches(entry_rows.amend(tx, key, batch.amended.values())))
        for withdrawn in (True, False):
            uuids = [uuid for uuid, flag in batch.withdrawn.items() if flag is withdrawn]
            if uuids:
                slow.touch(key.source_file, entry_rows.set_withdrawn(tx, key, uuids, withdrawn))

    def _group(
        self, tx: Transaction, key: FileKey, spans: Mapping[str, Sequence[Span]], slow: _Slow, touched: Touched
    ) -> None:
        for session, new in spans.items():
            if (key.source_file, session) in slow.sessions:
                continue
            latest = conversation_rows.latest(tx, key, session)
            if latest is not None and new[0].first < latest.last_message_at:
                slow.add(key.source_file, [session])
            else:
                self._apply(tx, append(latest, new, self._blank(key, session), self._gap), touched)
        for file, session in sorted(slow.sessions):
            self.rebuild(tx, FileKey(self._owner, key.source, file), session, touched, slow.touched.get(session, ()))

    def rebuild(
        self, tx: Transaction, key: FileKey, session: str, touched: Touched, times: Sequence[Timestamp] = ()
    ) -> None:
        """A session's conversations from its stored entries."""
        sums.drop_sessions(tx, self._owner, [session])
        spans = group(entry_rows.marks_of_session(tx, key, session), self._gap)
        existing = conversation_rows.of_session(tx, key, session)
        self._apply(tx, rebuild(existing, spans, self._blank(key, session), times), touched)

    def _apply(self, tx: Transaction, plan: Plan, touched: Touched) -> None:
        now = timestamp(self._clock())
        if plan.delete:
            conversation_rows.delete(tx, self._owner, plan.delete)
        if plan.update:
            conversation_rows.update(tx, self._owner, plan.update, now)
        if plan.insert:
            conversation_rows.insert(tx, self._owner, plan.insert, now)
        touched.session_keys |= {each.session_key for each in (*plan.insert, *plan.update)}

    def _keep(self, tx: Transaction, key: FileKey, chunk: Chunk) -> None:
        state = chunk.state
        if chunk.batch.compactions:
            sums.drop_sessions(tx, self._owner, {each.session_id for each in chunk.batch.compactions})
            rows = [
                {
                    **key.names(),
                    "generation": state.generation,
                    "uuid": each.uuid,
                    "session_id": each.session_id,
                    "line_offset": each.line_offset,
                    "timestamp": each.timestamp,
                    "summary": each.summary,
                }
                for each in chunk.batch.compactions
            ]
            entry_rows.insert_compactions(tx, rows)
        if chunk.batch.start == 0 and state.generation > 1:
            files.clear_malformed(tx, self._owner, state)
        if chunk.batch.malformed:
            files.save_malformed(tx, self._owner, chunk.malformed_lines())

    def _blank(self, key: FileKey, session: str) -> Conversation:
        nothing = Timestamp("")
        return Conversation(
            id=0,
            session_id=session,
            session_key="",
            source=key.source,
            source_file=key.source_file,
            project="",
            project_id="",
            branch="",
            first_message_at=nothing,
            last_message_at=nothing,
            entry_count=0,
            status=ConversationStatus.ACTIVE,
            status_reason="",
        )


def _touches(entries: Iterable[Entry]) -> list[Touch]:
    return [(entry.session_id, entry.timestamp) for entry in entries]


def is_named_after(stem: str, session_id: str) -> bool:
    """The file named after a session owns its entries where they stand in several files."""
    return bool(session_id) and stem.endswith(session_id)
