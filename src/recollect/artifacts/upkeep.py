"""Brings the files of conversations up to date that no extraction touches: under leases, bounded, and quick when idle.

- A conversation that nobody will extract gets its files with no model: one that was skipped or is too old gets a
  summary that has its sentence alone; one that was extracted before there were files, or went on since and is too old,
  what the rows kept of it.
- A compaction without a file gets one.
- A conversation that vanished by a new split is marked `superseded_by` once the files of its successor hold its
  entries. Until then it stays: nothing is forgotten in between.

As everywhere: files first, then rows, then MEMORY.md.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial

from recollect.artifacts import rows, sets
from recollect.artifacts.bodies import BadBody
from recollect.artifacts.compaction import Compactions, owner_of
from recollect.artifacts.files import Files
from recollect.artifacts.names import Kind, session_token
from recollect.artifacts.projection import Projection
from recollect.artifacts.sanitize import sanitized
from recollect.artifacts.session_end import SessionEnd
from recollect.artifacts.sets import Points
from recollect.errors import ArtifactError, LeaseLost
from recollect.extract import prompt
from recollect.extract.jobs import KIND as EXTRACT
from recollect.extract.load import load
from recollect.extract.values import Extraction, Transcript
from recollect.models.base import LanguageModel, ModelFailed
from recollect.models.paid import CapReached, Paid, digest
from recollect.store import answers, artifacts, compactions, conversations, memories, stage1, sums
from recollect.store.artifacts import Indexed
from recollect.store.compactions import Compacted
from recollect.store.database import Transaction
from recollect.store.ground import Ground, Part
from recollect.store.jobs import Lease
from recollect.types import Conversation, JobStatus, Timestamp, timestamp

log = logging.getLogger(__name__)

KIND = "archive"
_MOST = 100  # of each kind of work in a run
_LATE = timedelta(days=1)  # since when a compaction's sentence is asked for: a history is sent to nobody unasked
_READ = 16_000  # characters of a compaction that a model is sent


@dataclass(slots=True)
class Need:
    """What a conversation lacks."""

    group: Sequence[Conversation] = ()  # the conversation, from each file that holds it; none: it vanished
    settle: bool = False  # transcript, summary and manifest
    compacted: list[Compacted] = field(default_factory=list)
    vanished: Indexed | None = None  # its manifest

    @property
    def watermark(self) -> str:
        last = max((each.last_message_at for each in self.group), default="")
        states = [f"{each.status}{each.entry_count}" for each in self.group]
        return f"{last}#{digest(*states, str(self.settle), *(each.uuid for each in self.compacted))}"


@dataclass(slots=True)
class Report:
    written: int = 0  # conversations whose files or rows changed
    problems: list[tuple[str, str]] = field(default_factory=list)  # (session key, reason)


@dataclass(frozen=True, slots=True)
class _Done:
    lease: Lease
    files: tuple[Indexed, ...]
    kinds: tuple[str, ...]  # of files that the rows are replaced for
    forget: bool  # stage-1 row and memories go: a successor states them


class Upkeep(Part):
    def __init__(
        self,
        ground: Ground,
        files: Files,
        ledger: Projection,
        *,
        model: Callable[[], LanguageModel | None] = lambda: None,
        permitted: Callable[[list[Conversation]], list[Conversation]] = lambda talks: talks,
    ) -> None:
        """The `model` writes the sentence of a compaction; `permitted` leaves out what is switched off."""
        super().__init__(ground)
        config, agent_id = ground.settings.config, ground.owner.agent_id
        self._oldest = timedelta(days=config.max_rollout_age_days)  # that is extracted unasked
        self._files = files
        self._ledger = ledger
        self._jobs = ground.jobs()
        self._end = SessionEnd(files, agent_id, ledger)
        self._compactions = Compactions(files, agent_id, ground.clock)
        self._model = model
        self._permitted = permitted

    def run(self) -> Report:
        report = Report()
        with self._database.read() as tx:
            unknown = sums.unknown(tx, self._owner, _MOST)
        if unknown:
            with self._database.write() as tx:
                sums.take(tx, self._owner, unknown)
        needs = self._needs()
        if not needs:
            return report
        leases = self._claim(needs)
        try:
            for lease in leases:
                if done := self._write(lease, needs[lease.key], report):
                    report.written += self._store(done)
        except BaseException:  # Ctrl-C, or a bug: gives back what is not done
            with self._database.write() as tx:
                for lease in leases:
                    self._jobs.release(tx, lease)
            raise
        return report

    def record(self, session: str, text: str, at: Timestamp, uuid: str = "") -> Conversation | None:
        """An agent compacted a running conversation, named by its key or its session: its text is in a file when this
        returns. Without a uuid, its text is what makes it one. None: no such conversation."""
        with self._database.read() as tx:
            group = conversations.of_key(tx, self._owner, session)
            near = [] if group else conversations.with_key(tx, self._owner, f"{session}@")
        each = owner_of(group or [one for one in near if one.session_id == session], at)
        if each is None:
            return None
        said, session_key = sanitized(text), each.session_key
        uuid = uuid or f"c-{digest(session_key, said)[:32]}"
        compacted = Compacted(uuid, each.source, each.session_id, each.source_file, at, said)
        with self._database.write() as tx:  # before the file: whoever runs next finishes what is cut short from here on
            if not conversations.of_key(tx, self._owner, session_key):
                return None  # it was erased
            compactions.save(tx, self._owner, [compacted])
            told = compactions.of_session(tx, self._owner, each.source, each.session_id)
        compacted = next((one for one in told if one.uuid == uuid), compacted)  # as it was reported first
        try:
            files = self._compactions.write(each, compacted, partial(self._sentence, each, compacted))
        except LeaseLost:  # it was erased while the model was asked
            return None
        with self._database.write() as tx:
            answers.delete(tx, self._owner, KIND, session_key)
            artifacts.replace_sessions(tx, self._owner, [session_key], files, (Kind.COMPACTION, Kind.MANIFEST))
            self._ledger.due(tx)
        self._ledger.update()
        return each

    def _sentence(self, talk: Conversation, compacted: Compacted) -> str:
        """The model's sentence for a compaction; empty where none is configured, or it gives none."""
        model = self._model()
        if model is None or not self._permitted([talk]):
            return ""
        from recollect.extract.schema import SentenceOut

        def holds(tx: Transaction) -> bool:
            return bool(conversations.of_key(tx, self._owner, talk.session_key))  # else it was erased

        paid = Paid(self._ground, KIND, talk.session_key, holds=holds)
        content = prompt.compaction(sanitized(compacted.summary)[:_READ])
        seconds = self._ground.settings.config.model_timeout_seconds
        try:
            found = paid.answer(model, prompt.load(prompt.COMPACTION), content, SentenceOut, seconds=seconds)
        except (ModelFailed, CapReached) as error:
            log.warning("a compaction of %s has no sentence of the model's: %s", talk.session_key, error)
            return ""
        return found.memory_sentence

    # What there is to do

    def _needs(self) -> dict[str, Need]:
        """By session key."""
        needs: dict[str, Need] = {}
        aged = timestamp(self._clock() - self._oldest)
        with self._database.read() as tx:
            settled = conversations.unwritten(tx, self._owner, _MOST, aged=aged)
            loose = compactions.unwritten(tx, self._owner, _MOST)
            vanished = artifacts.vanished(tx, self._owner, _MOST)
            for each in settled:
                needs[each.session_key] = Need(conversations.of_key(tx, self._owner, each.session_key), settle=True)
            for one in loose:
                known = conversations.of_session_id(tx, self._owner, one.source, one.session_id)
                if found := owner_of(known, one.timestamp):
                    group = [each for each in known if each.session_key == found.session_key]
                    needs.setdefault(found.session_key, Need(group)).compacted.append(one)
        for row in vanished:
            needs[row.session_key] = Need(vanished=row)
        return needs

    def _claim(self, needs: dict[str, Need]) -> list[Lease]:
        with self._database.write() as tx:
            self._jobs.reap(tx, KIND)
            known = self._jobs.watermarks(tx, KIND, list(needs))
            marks = {key: self._watermark(tx, need) for key, need in needs.items()}
            due = {}
            for key, mark in marks.items():
                status, _, done = known.get(key, (JobStatus.PENDING, "", ""))
                again = status is JobStatus.SUCCEEDED and done.startswith(mark) and not needs[key].vanished
                due[key] = f"{mark}#{timestamp(self._clock())}" if again else mark  # done, and yet not there
            self._jobs.enqueue(tx, KIND, due.items())
            return self._jobs.claim(tx, KIND, limit=len(due), keys=list(due))

    def _watermark(self, tx: Transaction, need: Need) -> str:
        """A vanished conversation is looked at again when the files of its session changed."""
        if need.vanished is None:
            return need.watermark
        others = artifacts.of_sessions(tx, self._owner, need.vanished.session_id, Kind.TRANSCRIPT)
        return f"#{digest(*(each.source_path for each in others))}"

    # Files

    def _write(self, lease: Lease, need: Need, report: Report) -> _Done | None:
        try:
            if need.vanished:
                return self._supersede(lease, need.vanished)
            files: tuple[Indexed, ...] = ()
            newest = max(need.group, key=lambda each: each.last_message_at)
            if need.settle:
                files = self._settle(load(self._database, self._owner, need.group))
            for each in need.compacted:
                is_late = each.timestamp >= timestamp(self._clock() - _LATE)
                ask = partial(self._sentence, newest, each) if is_late else str
                files = self._compactions.write(newest, each, ask)
            kinds = () if need.settle else (Kind.COMPACTION, Kind.MANIFEST)
            return _Done(lease, files, kinds, forget=False)
        except LeaseLost as lost:
            log.warning("%s", lost)
            return None
        except OSError as error:
            reason = f"{error.filename}: {error.strerror}"
        except ArtifactError as error:
            reason = f"{error.kind}: {error.message}"
        report.problems.append((lease.key, reason))
        try:
            with self._database.write() as tx:
                self._jobs.fail(tx, lease, reason)
        except LeaseLost as lost:
            log.warning("%s", lost)
        return None

    def _settle(self, transcript: Transcript) -> tuple[Indexed, ...]:
        """From the rows of before, else as one that nobody has read."""
        key, now = transcript.conversation.session_key, timestamp(self._clock())
        with self._database.read() as tx:
            row = stage1.load(tx, self._owner, key)
            stated = memories.of_session(tx, self._owner, key)
        if row is None:
            return self._end.settle(transcript, Extraction(), (), now)
        at = row.generated_at if row.snapshot == transcript.snapshot else now
        return self._end.settle(transcript, rows.retold(row), stated, at, row.strategy)

    def _supersede(self, lease: Lease, row: Indexed) -> _Done:
        """Nothing while no successor has its entries in a file."""
        known = sets.look(self._files, session_token(self._owner.agent_id, row.session_key, row.session_id))
        if known.manifest is None or known.manifest_name is None:
            return _Done(lease, (), (), forget=False)
        with self._database.read() as tx:
            others = artifacts.of_sessions(tx, self._owner, row.session_id, Kind.TRANSCRIPT)
        theirs = {
            each.session_key: self._entries(each.source_path)
            for each in others
            if each.session_key != row.session_key and each.harness == row.harness
        }
        mine = self._entries(known.manifest.transcript_path or "")
        by = known.manifest.superseded_by or successor(mine, theirs)
        if by is None:
            return _Done(lease, (), (), forget=False)
        nothing = Points(None, None, known.manifest.snapshot)
        now = timestamp(self._clock())
        head = sets.composed(known, known.manifest_name, known.manifest, nothing, now, by)
        sets.commit(self._files, known, known.manifest_name, head)
        gone = self._end.drop(head.superseded, theirs.get(by, set()))
        return _Done(lease, sets.index(self._files, known, known.manifest_name, head, gone), (), forget=True)

    def _entries(self, path: str) -> set[str]:
        found = sets.load(self._files, path)
        try:
            return {each.uuid for each in rows.messages_of(found)} if found else set()
        except BadBody:
            return set()

    # Rows

    def _store(self, done: _Done) -> int:
        key = done.lease.key
        try:
            with self._database.write() as tx:
                self._jobs.complete(tx, done.lease)
                answers.delete(tx, self._owner, KIND, key)
                if done.forget:
                    stage1.delete(tx, self._owner, [key])
                    memories.replace_sessions(tx, self._owner, {key: ()})
                    answers.delete(tx, self._owner, EXTRACT, key)
                if done.files:
                    artifacts.replace_sessions(tx, self._owner, [key], done.files, done.kinds)
                    self._ledger.due(tx)
        except LeaseLost as lost:
            log.warning("%s", lost)
            return 0
        return int(bool(done.files))


def successor(mine: set[str], theirs: dict[str, set[str]]) -> str | None:
    """The conversation whose file holds most of the entries of one that vanished; None when none holds any."""
    shared = {key: len(mine & entries) for key, entries in theirs.items() if mine & entries}
    return min(shared, key=lambda key: (-shared[key], key), default=None)
