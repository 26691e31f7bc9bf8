"""The runner of phase 1: claims conversations under leases, has a strategy process them, stores what comes of it.

For every conversation: claim its job and mark it `processing`; load its entries up to the claimed watermark; ask the
strategy; store the answer with its time; resolve its statements and store that, too; write artifacts; then commit, in
one transaction, the stage-1 row, its memories, the conversation's state and the job's end: rows follow files. The same
transaction says that MEMORY.md is due, which is written when the batch is done. A rerun after a crash finds what was
stored and goes on from there: it writes equal artifacts, whatever was learnt elsewhere meanwhile.

A claim costs nothing. An attempt counts once the strategy is asked or files are written, and a run that is stopped
gives it back: only what kills or fails a run again and again is out of attempts in the end.

Strategies work in threads, so that models are asked in parallel; everything else happens in the calling thread, which
renews the leases meanwhile.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from enum import StrEnum
from functools import partial
from typing import TypeVar

import msgspec

from recollect.artifacts.files import Files
from recollect.errors import ArtifactError, LeaseLost, StoreBusy, StoreError
from recollect.extract.clean import cleaned
from recollect.extract.fence import Fence
from recollect.extract.jobs import GIVEN_UP, KIND, by_rules, is_due, plan_limit, read_by, reads_anew, resume, watermark
from recollect.extract.load import load, stated_before, with_known
from recollect.extract.notes import Notes
from recollect.extract.resolve import Place, resolve
from recollect.extract.threads import Threads
from recollect.extract.turns import ChatItems, next_of
from recollect.extract.values import (
    NOTHING,
    Artifacts,
    Backlog,
    Extraction,
    Reading,
    Report,
    Strategy,
    Transcript,
    Written,
    nothing,
)
from recollect.ingest.conversations import check_transition
from recollect.models.base import Failure, ModelFailed
from recollect.models.paid import CapReached, Paid, committed, digest
from recollect.note import is_chat, is_note
from recollect.processes import Terminated
from recollect.redact import redact
from recollect.store import answers, memories, stage1
from recollect.store import artifacts as artifact_rows
from recollect.store import conversations as conversation_rows
from recollect.store.database import Transaction
from recollect.store.ground import Ground, Part
from recollect.store.jobs import PATIENT, Lease
from recollect.types import Conversation, ConversationStatus, JobStatus, Remembered, Scope, Timestamp, moment, timestamp

log = logging.getLogger(__name__)

_KINDS = ("transcript", "summary", "manifest")  # files of a session's end; compactions come and go without it
_BATCH = 64  # conversations claimed at a time
_LAST_ANSWERS = 3.0  # seconds that a run waits for answers once it was told to end
_READ = (ConversationStatus.ARCHIVED, ConversationStatus.SKIPPED)
_UNCHANGED = "unchanged since it was extracted"


class Step(StrEnum):
    """Where a run may be interrupted; a test crashes at each."""

    CLAIMED = "claimed"
    LOADED = "loaded"
    ANSWERED = "answered"  # and stored
    RESOLVED = "resolved"  # and stored
    WRITTEN = "written"  # artifacts
    STORED = "stored"
    PROJECTED = "projected"  # MEMORY.md, once for all that was stored


@dataclass(frozen=True, slots=True)
class Pending:
    """An answer whose files and rows are not done yet."""

    snapshot: str
    strategy: str
    answered_at: Timestamp


@dataclass(slots=True)
class _Claimed:
    lease: Lease
    conversations: Sequence[Conversation]
    before: Sequence[Conversation]  # the same, as they were


@dataclass(frozen=True, slots=True)
class _Answered:
    transcript: Transcript
    extraction: Extraction
    captured_at: Timestamp
    question: str  # names the stored answer
    strategy: str  # who gave it


class _Changed(Exception):
    """The conversation is not what it was when it was claimed."""


Progress = Callable[[int, int], None]  # (done, of)
Ended = TypeVar("Ended")
_FORESEEN = (LeaseLost, _Changed, CapReached, ModelFailed, ArtifactError, OSError, StoreError)


class Extract(Part):
    def __init__(
        self,
        ground: Ground,
        strategy: Strategy,
        artifacts: Artifacts,
        *,
        workers: int = 1,
        reading: Reading = Reading.USUAL,
        stopping: Callable[[int], None] = lambda running: None,
        reached: Callable[[Step], None] = lambda step: None,
        permitted: Callable[[list[Conversation]], list[Conversation]] = lambda talks: talks,
        retiring: Callable[[Sequence[str], str], object] | None = None,
    ) -> None:
        """`permitted` leaves out what was switched off since it was taken in. `retiring` writes down the ids of
        memories that another strategy kept and this one does not, and why; without it they go."""
        super().__init__(ground)
        self._config = ground.settings.config
        self._strategy = strategy
        self._notes: Strategy = Notes()
        self._chats = ChatItems(self._database, self._owner, strategy)
        self._workers = workers
        self._limit: ModelFailed | None = None  # of a plan, once it was reached
        self._reading = reading
        self._artifacts = artifacts
        self._stopping = stopping
        self._reached = reached
        self._permitted = permitted
        self._retiring = retiring
        self._jobs = ground.jobs(PATIENT)
        self._fence = Fence(self._database, self._jobs, Files(self._settings.root))

    def run(
        self,
        *,
        limit: int | None = None,
        now: bool = False,
        again: bool = False,
        keys: Sequence[str] | None = None,
        progress: Progress = lambda done, of: None,
    ) -> Report:
        """Processes what is eligible. `now` (a person asks) lifts idleness, age, minimum length and batch size; `again`
        takes what was read in another way, too. `keys` are the only conversations to look at.
        """
        report = Report()
        self._recover()
        self._limit = self._standing_limit()
        waiting = self._eligible(now, again, keys)
        most = self._most(waiting, limit, now)
        total = min(most, len(waiting))
        while waiting and report.claimed < most and not report.limited:
            batch = next_of(waiting, min(_BATCH, most - report.claimed))
            claimed = self._claim(batch, now, again, report)
            self._process(claimed, report, lambda: progress(_done(report), total))
        report.waiting = len(waiting)
        return report

    def backlog(self, *, limit: int | None = None, now: bool = False, again: bool = False) -> Backlog:
        """How much `run` would send to a model."""
        from recollect.extract.model import backlog  # its libraries are slow to import

        return backlog(self.sent(limit, now, again), self._config.model_part_tokens)

    def sent(self, limit: int | None, now: bool, again: bool) -> Iterator[Transcript]:
        """The conversations that `run` would send to a model."""
        waiting = self._eligible(now, again)
        left = self._most(waiting, limit, now)
        for group in waiting:
            if not left:
                return
            transcript = load(self._database, self._owner, group)
            known = self._known([group]).get(group[0].session_key)
            due = is_due(known, _watermark(transcript)) or (again and self._reads_anew(group))
            if not is_note(group[0]) and due:
                asked = self._chats.asks(transcript) if is_chat(group[0]) else transcript
                if asked.messages:
                    left -= 1
                    yield asked

    def stored(self, session_key: str) -> Pending | None:
        """The answer for a conversation as it is now, if it is stored and not used up."""
        with self._database.read() as tx:
            group = conversation_rows.of_key(tx, self._owner, session_key)
        if not group:
            return None
        transcript = load(self._database, self._owner, group)
        strategy, snapshot = self._strategy_for(group[0]), transcript.snapshot
        with self._database.read() as tx:
            found = answers.load(tx, self._owner, KIND, session_key, digest(strategy.id, snapshot))
        if found is None:
            return None
        return Pending(snapshot, strategy.id, found.answered_at)

    def _strategy_for(self, talk: Conversation) -> Strategy:
        """A note is what a person said, and nobody is asked about it; a chat's turns are known by fingerprints."""
        if is_note(talk):
            return self._notes
        return self._chats if is_chat(talk) else self._strategy

    def _most(self, waiting: Sequence[object], limit: int | None, now: bool) -> int:
        if limit is not None:
            return limit
        return len(waiting) if now else self._config.max_rollouts_per_startup

    # Eligibility and claim

    def _recover(self) -> None:
        """Conversations whose worker died are ready again."""
        with self._database.write() as tx:
            self._jobs.reap(tx, KIND)
            resume(tx, self._owner, self._jobs)

    def _eligible(self, now: bool, again: bool, keys: Sequence[str] | None = None) -> list[list[Conversation]]:
        """Conversations by key, newest first; one that several files hold as a whole, when all of it is at rest."""
        asked, since = [ConversationStatus.READY], ""
        if now:
            asked += [ConversationStatus.ACTIVE, ConversationStatus.SKIPPED]
        else:
            since = timestamp(self._clock() - timedelta(days=self._config.max_rollout_age_days))
        statuses = [*dict.fromkeys((*asked, *_READ))] if again else asked
        with self._database.read() as tx:
            if keys is None:
                found = conversation_rows.search(tx, self._owner, statuses=statuses, since=since)
            else:
                every = [each for key in keys for each in conversation_rows.of_key(tx, self._owner, key)]
                found = [each for each in every if each.status in statuses]
            groups = {each.session_key: [each] for each in found}
            states = conversation_rows.states(tx, self._owner, list(groups)).items()
            groups |= {key: conversation_rows.of_key(tx, self._owner, key) for key, each in states if len(each) > 1}
        at_rest = {*asked, *_READ}
        allowed = {each.id for each in self._permitted([each for group in groups.values() for each in group])}
        whole = [each for each in groups.values() if all(one.status in at_rest and one.id in allowed for one in each)]
        return [group for group in whole if any(each.status in asked for each in group) or self._reads_anew(group)]

    def _reads_anew(self, group: Sequence[Conversation]) -> bool:
        with self._database.read() as tx:
            row = stage1.load(tx, self._owner, group[0].session_key)
        settled = all(each.status in _READ for each in group)
        if self._reading is Reading.UNDOING:
            before = row.strategy if row else read_by(group[0])
            return settled and bool(before) and not by_rules(before)
        return settled and reads_anew(self._strategy_for(group[0]).id, group[0], row)

    def _known(self, groups: Sequence[Sequence[Conversation]]) -> dict[str, tuple[JobStatus, str, str]]:
        with self._database.read() as tx:
            return self._jobs.watermarks(tx, KIND, [group[0].session_key for group in groups])

    def _claim(self, batch: Sequence[Sequence[Conversation]], now: bool, again: bool, report: Report) -> list[_Claimed]:
        known = self._known(batch)
        anew = {group[0].session_key for group in batch if again and self._reads_anew(group)}
        marks = {group[0].session_key: _watermark(load(self._database, self._owner, group)) for group in batch}
        groups = {group[0].session_key: group for group in batch}
        claimed = []
        with self._database.write() as tx:
            self._jobs.reopen(tx, KIND, sorted(anew))
            due = {key: mark for key, mark in marks.items() if key in anew or is_due(known.get(key), mark)}
            self._jobs.enqueue(tx, KIND, due.items())
            leases = self._jobs.claim(tx, KIND, limit=max(len(due), 1), keys=list(due), hurry=now, counts=False)
            for lease in leases:
                group = groups[lease.key]
                if self._set(tx, group, ConversationStatus.PROCESSING, "") == len(group):
                    taken = [replace(each, status=ConversationStatus.PROCESSING) for each in group]
                    claimed.append(_Claimed(lease, taken, group))
                else:  # it grew in the meantime
                    self._jobs.release(tx, lease)
            for key, group in groups.items():
                if key not in anew and known.get(key, ("", "", ""))[2] == marks[key]:
                    self._settle(tx, group, known[key][0])
            self._tell_given_up(tx, marks.keys() - {lease.key for lease in leases}, marks, report)
        report.claimed += len(claimed)
        report.skipped += len(batch) - len(claimed)
        self._reached(Step.CLAIMED)
        return claimed

    def _tell_given_up(self, tx: Transaction, keys: Collection[str], marks: Mapping[str, str], report: Report) -> None:
        """Those of them that are left alone until a person asks, as nothing of theirs has changed since."""
        for key, (status, newest, _) in self._jobs.watermarks(tx, KIND, sorted(keys)).items():
            if status in GIVEN_UP and newest == marks[key]:
                report.given_up += 1
                job = self._jobs.find(tx, KIND, key)
                report.problems.append((key, job.last_error if job else ""))

    def _settle(self, tx: Transaction, group: Sequence[Conversation], status: JobStatus) -> None:
        """Reopened, and yet the same: what was made of it still holds."""
        ended = ConversationStatus.ARCHIVED
        if status is JobStatus.SUCCEEDED_NO_OUTPUT:
            ended = ConversationStatus.SKIPPED
        reason = NOTHING if ended is ConversationStatus.SKIPPED else _UNCHANGED
        self._set(tx, [each for each in group if each.status is ConversationStatus.READY], ended, reason)

    # Processing

    def _process(self, claimed: Sequence[_Claimed], report: Report, step: Callable[[], None]) -> None:
        """The first Ctrl-C begins nothing new and waits for answers that were asked for; the second gives them up.
        SIGTERM waits for them a moment."""
        held = {each.lease.key: each for each in claimed}
        items = [(each, self._paid(each.lease)) for each in claimed]
        interrupted: KeyboardInterrupt | None = None
        beat, before, until = self._beat(held), report.stored, math.inf
        with self._abandoning(held), Threads(self._workers, self._answer, items) as threads:
            while threads.left and time.monotonic() < until:
                try:
                    taken = threads.take(min(self._jobs.lease_seconds / 4, max(0.0, until - time.monotonic())))
                    beat()
                    if taken is not None:
                        (each, paid), future = taken
                        report.tokens += paid.usage.tokens
                        report.cost += paid.usage.cost
                        if held.get(each.lease.key) is each:
                            self._finish(each, future, report)
                            del held[each.lease.key]
                        step()
                except KeyboardInterrupt as again:
                    if interrupted is not None:
                        raise
                    interrupted = again
                    until = time.monotonic() + _LAST_ANSWERS if isinstance(again, Terminated) else until
                    threads.cancel()
                    self._stopping(threads.left)
            if report.stored > before or self._fence.withdrew:
                self._fence.withdrew = False
                self._artifacts.project()
                self._reached(Step.PROJECTED)
            if interrupted is not None:
                raise interrupted

    @contextmanager
    def _abandoning(self, held: dict[str, _Claimed]) -> Iterator[None]:
        """Ctrl-C, or a bug: gives back what is not done."""
        try:
            yield
        except BaseException:
            with suppress(StoreBusy), self._database.write() as tx:  # else the leases run out
                for each in held.values():
                    if self._jobs.release(tx, each.lease):
                        self._restore(tx, each, "interrupted")
            raise

    def _restore(self, tx: Transaction, claimed: _Claimed, reason: str) -> None:
        """Ready for a later run; as it was where the agent, or an undoing, was to read it once more."""
        for was, now in zip(claimed.before, claimed.conversations, strict=True):
            read = was.status in _READ and self._reading is not Reading.USUAL
            self._set(
                tx, [now], was.status if read else ConversationStatus.READY, was.status_reason if read else reason
            )

    def _paid(self, lease: Lease) -> Paid:
        return Paid(self._ground, KIND, lease.key, holds=partial(self._fence.is_ours, lease))

    def _beat(self, held: dict[str, _Claimed]) -> Callable[[], None]:
        """Renews the leases when it is time to; those that were lost are not held any more."""
        every = self._jobs.lease_seconds / 4
        due = time.monotonic() + every

        def beat() -> None:
            nonlocal due
            if time.monotonic() < due:
                return
            lost: list[Lease] = []
            with suppress(StoreBusy), self._database.write() as tx:  # the next beat is in time, too
                lost = self._jobs.heartbeat(tx, [each.lease for each in held.values()])
            for lease in lost:
                log.warning("%s was taken over by another process", lease.key)
                del held[lease.key]
            due = time.monotonic() + every

        return beat

    def _answer(self, item: tuple[_Claimed, Paid]) -> _Answered:
        """In a thread: the answer, stored before it is used."""
        claimed, paid = item
        transcript = load(self._database, self._owner, claimed.conversations)
        if _watermark(transcript) != claimed.lease.watermark:
            raise _Changed
        self._reached(Step.LOADED)
        strategy = self._strategy_for(transcript.conversation)
        question = digest(strategy.id, transcript.snapshot)
        key = claimed.lease.key
        with self._database.read() as tx:
            stored = answers.load(tx, self._owner, KIND, key, question)
        if stored is None:
            extraction = Extraction()
            if strategy.should_process(transcript):
                if strategy.asks_model:
                    transcript = with_known(self._ground, transcript)
                self._fence.begin(claimed.lease)
                extraction = cleaned(self._asked(strategy, transcript, paid))
            stored = self._fence.keep(claimed.lease, question, msgspec.json.encode(extraction).decode())
        self._reached(Step.ANSWERED)
        extraction = msgspec.json.decode(stored.answer, type=Extraction)
        return _Answered(transcript, extraction, stored.answered_at, question, strategy.id)

    def _asked(self, strategy: Strategy, transcript: Transcript, paid: Paid) -> Extraction:
        """Once a plan's limit is reached, nothing more is asked in this run."""
        if self._limit is not None and strategy.asks_model:
            raise self._limit
        try:
            return strategy.process(transcript, paid)
        except ModelFailed as failed:
            if failed.failure is Failure.PLAN_LIMIT:
                self._limit = failed
            raise

    def _standing_limit(self) -> ModelFailed | None:
        with self._database.read() as tx:
            job = plan_limit(tx, self._jobs)
        if job is None:
            return None
        wait = (moment(job.not_before) - self._clock()).total_seconds()
        return ModelFailed(Failure.PLAN_LIMIT, job.last_error.removeprefix(f"{Failure.PLAN_LIMIT}: "), retry_after=wait)

    def _finish(self, claimed: _Claimed, future: Future[_Answered], report: Report) -> None:
        """From the answer to the files and rows, or why not."""
        if _is_odd(error := future.exception()):  # it must not hold up the others, and is tried only so often
            log.error("%s", claimed.lease.key, exc_info=error)
            self._fail(claimed, redact(f"{type(error).__name__}: {error}"), report)
            return
        try:
            answered = future.result()
            stated, gone = self._resolve(claimed.lease, answered)
            self._reached(Step.RESOLVED)
            self._fence.begin(claimed.lease)
            files = self._artifacts.write(
                answered.transcript, answered.extraction, stated, answered.captured_at, answered.strategy
            )
            self._fence.hold(claimed.lease, files)
            report.ungrounded += answered.extraction.ungrounded
            self._reached(Step.WRITTEN)
            self._store(claimed, files, report)
            report.retired += [(each.id, each.text) for each in gone]
        except LeaseLost as error:
            log.warning("%s", error)
            report.skipped += 1
        except _Changed:
            report.skipped += 1
            committed(self._database, partial(self._jobs.release, lease=claimed.lease))
        except CapReached as cap:
            report.paused += 1
            report.problems.append((claimed.lease.key, cap.message))
            pause = partial(self._jobs.pause, lease=claimed.lease, reason=cap.message, until=cap.until)
            self._give_back(claimed, cap.message, pause)
        except ModelFailed as failed:
            if failed.failure is Failure.PLAN_LIMIT:
                self._hold(claimed, failed, report)
                return
            reason = f"{failed.failure}: {failed.message}"
            self._fail(claimed, reason, report, permanent=failed.permanent, at_least=failed.retry_after or 0.0)
        except OSError as error:  # an artifact could not be written
            self._fail(claimed, f"{error.filename}: {error.strerror}", report)
        except ArtifactError as error:
            self._fail(claimed, f"{error.kind}: {error.message}", report)

    def _hold(self, claimed: _Claimed, failed: ModelFailed, report: Report) -> None:
        """A plan's limit: whatever was claimed waits until it resets."""
        until = self._clock() + timedelta(seconds=failed.retry_after or 0.0)
        report.paused += 1
        if not report.limited:
            report.limited = f"{failed.failure}: {failed.message}"
            report.problems.append((claimed.lease.key, report.limited))
        pause = partial(self._jobs.pause, lease=claimed.lease, reason=report.limited, until=until)
        self._give_back(claimed, report.limited, pause)

    def _fail(
        self, claimed: _Claimed, reason: str, report: Report, *, permanent: bool = False, at_least: float = 0.0
    ) -> None:
        report.failed += 1
        report.problems.append((claimed.lease.key, reason))
        fail = partial(self._jobs.fail, lease=claimed.lease, error=reason, permanent=permanent, at_least=at_least)
        report.given_up += self._give_back(claimed, reason, fail) in GIVEN_UP

    def _give_back(self, claimed: _Claimed, reason: str, end: Callable[[Transaction], Ended]) -> Ended | None:
        def give(tx: Transaction) -> Ended:
            ended = end(tx)
            self._restore(tx, claimed, reason[:200])
            return ended

        try:
            return committed(self._database, give)
        except LeaseLost as error:
            log.warning("%s", error)
            return None

    def _resolve(self, lease: Lease, answered: _Answered) -> tuple[list[Remembered], list[Remembered]]:
        """The revisions that the answer states, with what it stated before and states no more: that stays in its files.
        What is retired of it, as nobody else states it, is written down first. Decided once, and stored before
        anything is written."""
        conversation = answered.transcript.conversation
        question = digest(answered.question, "resolved", *filter(None, [conversation.user]))
        scopes = [(scope, scope.id(conversation.project_id, lease.key)) for scope in Scope]
        with self._database.read() as tx:
            stored = answers.load(tx, self._owner, KIND, lease.key, question)
            existing = [] if stored else self._existing(tx, answered, scopes)
        gone: list[Remembered] = []
        if stored is None:
            times = {message.uuid: Timestamp(message.timestamp) for message in answered.transcript.messages}
            last = conversation.last_message_at
            place = Place(
                lease.key,
                conversation.project_id,
                lambda uuid: times.get(uuid, last),
                answered.captured_at,
                conversation.user,
            )
            stated = resolve(answered.extraction.statements, existing, place)
            before = stated_before(self._ground, lease.key, is_undone=self._reading is Reading.UNDOING)
            stated = before.held_again(stated, place.now)
            gone, kept = before.gone(stated, answered.strategy, times), before.valued | before.retired.keys()
            if self._retiring and (ids := {each.id for each in gone}):
                self._retiring(sorted(ids), f"{answered.strategy} would not keep it")
                kept |= ids
            kept -= {each.id for each in stated}
            stated += [each for each in before.stated if each.id in kept]
            stored = self._fence.keep(lease, question, msgspec.json.encode(stated).decode())
        return msgspec.json.decode(stored.answer, type=list[Remembered]), gone

    def _existing(self, tx: Transaction, answered: _Answered, scopes: Sequence[tuple[Scope, str]]) -> list[Remembered]:
        """What others say that is known of this user in these scopes, and of memories that are named; and what this
        conversation said before. A test changes nothing that others say."""
        key, user = answered.transcript.conversation.session_key, answered.transcript.conversation.user
        is_test = self._ground.is_unlisted(answered.transcript.conversation.session_id)
        scopes = () if is_test else scopes
        targets = {each.target for each in answered.extraction.statements if each.target}
        named = [each for each in memories.find(tx, self._owner, sorted(targets)) if each.user == user]
        found = {
            (each.id, each.revision): each for each in (*memories.in_scopes(tx, self._owner, scopes, user), *named)
        }
        others = [replace(each, sources=tuple(one for one in each.sources if one[0] != key)) for each in found.values()]
        own = memories.of_session(tx, self._owner, key)
        return [*(each for each in others if each.sources), *(each for each in own if each.user == user)]

    def _store(self, claimed: _Claimed, written: Written, report: Report) -> None:
        """Everything that follows from the files, at once or not at all."""
        key = claimed.lease.key
        ended, status, reason = ConversationStatus.ARCHIVED, JobStatus.SUCCEEDED, ""
        if written.stage1 is None:
            ended, status = ConversationStatus.SKIPPED, JobStatus.SUCCEEDED_NO_OUTPUT
            reason = nothing(self._strategy_for(claimed.conversations[0]).id)

        def store(tx: Transaction) -> None:
            if not self._fence.is_ours(claimed.lease, tx):
                raise LeaseLost(f"{key} is not ours any more")
            self._jobs.complete(tx, claimed.lease, status=status)  # jobs before the rest: no deadlock
            self._set(tx, claimed.conversations, ended, reason)  # not where it gained entries: those reopened it
            if written.stage1 is None:
                stage1.delete(tx, self._owner, [key])
            else:
                stage1.save(tx, self._owner, [written.stage1])
            memories.replace_sessions(tx, self._owner, {key: written.stated})  # search asks that row for their project
            artifact_rows.replace_sessions(tx, self._owner, [key], written.files, _KINDS)
            answers.delete(tx, self._owner, KIND, key)
            self._artifacts.due(tx)

        committed(self._database, store)
        self._reached(Step.STORED)
        report.memories += len(written.stated)
        report.succeeded += written.stage1 is not None
        report.succeeded_no_output += written.stage1 is None

    # Rows

    def _set(self, tx: Transaction, group: Sequence[Conversation], status: ConversationStatus, reason: str) -> int:
        for each in group:
            check_transition(each.status, status)
        changes = [(each, status, reason) for each in group]
        return conversation_rows.set_status(tx, self._owner, changes, timestamp(self._clock()))


def _watermark(transcript: Transcript) -> str:
    return watermark(transcript.conversation.last_message_at, transcript.snapshot)


def _is_odd(error: BaseException | None) -> bool:
    """Something that nobody foresaw; what ends the process is none."""
    return isinstance(error, Exception) and not isinstance(error, _FORESEEN)


def _done(report: Report) -> int:
    return report.stored + report.failed + report.paused + report.skipped
