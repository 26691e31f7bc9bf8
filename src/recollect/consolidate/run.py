"""One consolidation: claim, load, select, make the files, check them, publish them, remember what was consumed.

Nothing is published that was not checked, and nothing after the lease was lost: whoever writes is alone in the folder
from the look at the lease to the end of the job, so that whoever revokes it and then looks finds all that was written.
What a model answered is stored, with its price, before any file is written, so that a run that was cut short goes on
with the same answer. The baseline, the answer and the job change in one transaction at the very end: until then a rerun
does the same work again and ends in the same state.

The watermark is the newest input ever known, a hash of the selection, and one of the files that the last run left:
`{timestamp}#{hash}#{files}`. The first part never goes backwards; the second makes the job dirty when there is
something to do without new input, as when time passes, something is removed, or the files are not what was left.
"""

from __future__ import annotations

import hashlib
import shutil
import time
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from enum import StrEnum
from typing import TYPE_CHECKING

import msgspec

from recollect.consolidate import offline, render
from recollect.consolidate.restate import struck
from recollect.consolidate.selection import Selection, amended, select, statements
from recollect.consolidate.validate import Standard
from recollect.errors import LeaseLost, StoreBusy
from recollect.extract.threads import Threads
from recollect.models.base import Answer, Failure, LanguageModel, ModelFailed, ToolRefused, Usage
from recollect.models.paid import CapReached, Paid
from recollect.redact import redact
from recollect.store import answers, feedback, memories, stage1
from recollect.store.ground import Ground, Part
from recollect.store.jobs import PATIENT, Job, Lease, Standing
from recollect.store.memories import Use
from recollect.types import JobStatus, Remembered, timestamp
from recollect.workspace import READ_LIMIT, Workspace, make_private

if TYPE_CHECKING:
    from recollect.consolidate.agent import Task

KIND = "consolidate"
KEY = "workspace"

_GRACE = 60.0  # seconds beyond its deadline after which a model is given up
_NAMED = 20  # problems that a report lists
_STAGING = "workspace-staging-"


class Outcome(StrEnum):
    SUCCEEDED = "succeeded"
    NO_INPUT = "no_input"  # nothing was ever chosen
    UNCHANGED = "unchanged"
    BUSY = "busy"  # another process is at it
    COOLING_DOWN = "cooling_down"  # there is something to do, later
    PAUSED = "paused"  # the daily cap on tokens was reached
    FAILED = "failed"


class Step(StrEnum):
    """Boundaries at which a run may be cut short."""

    CLAIMED = "claimed"
    LOADED = "loaded"
    SYNCED = "synced"  # raw memories and rollout summaries of the union are on disk
    MADE = "made"  # there is a result
    STORED = "stored"  # a model's result is in the database
    VALIDATED = "validated"
    PUBLISHING = "publishing"  # after every single file
    PUBLISHED = "published"
    PRUNED = "pruned"
    COMPLETED = "completed"


@dataclass(frozen=True, slots=True)
class Report:
    outcome: Outcome
    added: tuple[str, ...] = ()
    retained: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    watermark: str = ""  # the newest input that is known
    reason: str = ""
    tokens: int = 0


@dataclass(frozen=True, slots=True)
class Material:
    """One consistent view of all that a consolidation reads."""

    selection: Selection
    memories: list[Remembered]  # current ones that the chosen conversations state
    evidence: list[Remembered]  # and those of the union
    uses: dict[str, Use]
    newest: str  # source_updated_at of the newest row of late, chosen or not


class _Invalid(Exception):
    """The result breaks the rules; the arguments are the problems."""


class Consolidation(Part):
    """Phase 2 of one owner. `model` None: offline. `reached` is told every step; tests cut runs short there."""

    def __init__(
        self,
        ground: Ground,
        model: LanguageModel | None,
        *,
        reached: Callable[[Step], None] = lambda step: None,
    ) -> None:
        super().__init__(ground)
        self._config = ground.settings.config
        self._model = model
        self._reached = reached
        self._jobs = ground.jobs(PATIENT)
        self._workspace = Workspace(
            self._settings.workspace, most=None
        )  # what we write is bounded; other people's is not
        self._paid = Paid(ground, KIND, KEY)

    def run(self, now: bool = False) -> Report:
        """`now` (a person asks) lifts the cooldown, never the check whether there is anything to do."""
        self._paid.usage = Usage()
        seen = self._load()
        try:
            with self._workspace.alone():
                self._workspace.sweep()
                lease, waiting = self._claim(seen, now)
        except (OSError, ToolRefused) as error:
            return self._report(seen.selection, Outcome.FAILED, "", f"the workspace: {error}")
        if lease is None:
            return self._report(seen.selection, *waiting)
        taken = lease
        self._paid.holds = lambda tx: self._jobs.standing(tx, taken) is Standing.OURS
        self._clear_staging()
        self._reached(Step.CLAIMED)
        material = self._load()
        self._reached(Step.LOADED)
        try:
            return self._consolidate(lease, material)
        except LeaseLost as error:
            return self._report(material.selection, Outcome.FAILED, lease.watermark, error.message)
        except CapReached as cap:
            return self._pause(lease, material.selection, cap)
        except ModelFailed as error:
            self._charge(error.usage)
            reason = f"{error.failure}: {error.message}"
            later = error.retry_after or 0.0
            return self._fail(lease, material.selection, reason, permanent=error.permanent, at_least=later)
        except _Invalid as error:
            return self._fail(lease, material.selection, "; ".join(error.args[:_NAMED]), forget=True)
        except (OSError, ToolRefused) as error:
            return self._fail(lease, material.selection, f"the workspace: {error}")
        except BaseException:  # stopped, or a bug: gives the job back
            with suppress(StoreBusy), self._database.write() as tx:
                self._jobs.release(tx, lease)
            raise

    def strike(self) -> str:
        """What was erased goes from the files; all else stays as the last run left it, and so does what that was made
        of. Why it could not be; empty: it is done."""
        try:
            with self._workspace.alone():
                material = self._load()
                self._sync(self._raw(material, union=False))
                kept, known = self._present(render.is_kept), self._known(material)
                self._replace({path: struck(text, known) for path, text in kept.items()})
        except (OSError, ToolRefused) as error:
            return f"the workspace: {error}"
        return ""

    @staticmethod
    def _known(material: Material) -> set[str]:
        """Names of the conversations that the last run was made of and that did not change, and of their memories."""
        rows = {each.row.session_key for each in material.selection.union if each.selected == each.row.generated_at}
        held = (each for each in material.evidence if any(key in rows for key, _ in each.sources))
        return {*map(render.source_name, rows), *(render.memory_name(each.id) for each in held)}

    # Before: what is there, and may we?

    def _load(self) -> Material:
        """What may be selected and what was consumed last time, and nothing else."""
        days, most = self._config.max_unused_days, self._config.max_raw_memories_for_consolidation
        since = timestamp(self._clock() - timedelta(days=days))
        with self._database.read() as tx:
            on_top = {key for each in memories.pinned(tx, self._owner) for key, _ in each.sources}
            hidden = self._ground.unlisted(tx).conversations
            keys = sorted(on_top | {*stage1.candidates(tx, self._owner, since, most, hidden)})
            inputs = stage1.inputs(tx, self._owner, keys)
            vanished = stage1.vanished(tx, self._owner)
            newest = stage1.newest(tx, self._owner, since)
            revisions = [each for each in memories.stated_in(tx, self._owner, keys) if not each.user]
            ids = sorted({each.id for each in revisions})
            uses = memories.uses_of(tx, self._owner, ids)
            wrong = feedback.wrong(tx, self._owner, ids)
        amended_inputs = amended(inputs, revisions, wrong)
        revisions = [each for each in revisions if each.id not in wrong]
        pinned = {key for each in memories.current(revisions) if each.pinned for key, _ in each.sources}
        selection = select(
            amended_inputs,
            vanished,
            self._clock(),
            max_unused_days=days,
            most=most,
            pinned=pinned,
            unlisted=hidden,
        )
        return Material(
            selection,
            statements(revisions, selection.keys),
            statements(revisions, {each.row.session_key for each in selection.union}),
            uses,
            newest,
        )

    def _claim(self, seen: Material, now: bool) -> tuple[Lease | None, tuple[Outcome, str, str]]:
        """The lease, or why there is none: outcome, watermark, reason."""
        with self._database.read() as tx:
            before, known, done = self._jobs.watermarks(tx, KIND, [KEY]).get(KEY, (None, "", ""))
        damaged = self._is_made(seen.selection) and not self._is_intact(seen, _left(done))
        is_due = damaged or seen.selection.is_news
        mending = damaged and self._model is None and before is JobStatus.COOLING_DOWN  # which costs nothing
        with self._database.write() as tx:
            self._jobs.reap(tx, KIND)
            watermark = _watermark(max(seen.newest, _time(known)), seen.selection, _left(done), is_due=is_due)
            self._jobs.enqueue(tx, KIND, [(KEY, watermark)])
            leases = self._jobs.claim(tx, KIND, limit=1, keys=[KEY], hurry=now or mending, counts=False)
            if leases:
                return leases[0], (Outcome.SUCCEEDED, "", "")
            status, newest, done = self._jobs.watermarks(tx, KIND, [KEY])[KEY]
            outcome = _waiting(status, is_due and newest != done, seen.selection)
            told = outcome in (Outcome.FAILED, Outcome.PAUSED, Outcome.COOLING_DOWN)
            job = self._jobs.find(tx, KIND, KEY) if told else None
        return None, (outcome, watermark, _reason(job) if job else "")

    def _is_made(self, selection: Selection) -> bool:
        """Is there anything to hold, or a file of ours? A run that was killed may have left some of what is gone."""
        files = self._workspace.files() if not selection.chosen else ()
        return bool(selection.chosen) or any(render.is_raw(path) or render.is_kept(path) for path in files)

    def _is_intact(self, material: Material, left: str) -> bool:
        """Do the files on disk hold what the last run `left`? Those that are made from the rows change with them."""
        try:
            kept = self._present(render.is_kept)
            raw = self._present(render.is_raw)
        except (ToolRefused, OSError):
            return False
        if left and _files(kept) != left:
            return False
        if material.selection.is_news:
            return True
        problems = Standard(material.selection, material.memories).problems(kept)
        return not problems and raw == self._raw(material, union=False)

    def _present(self, is_ours: Callable[[str], bool]) -> dict[str, str]:
        return {path: self._workspace.read(path) for path in self._workspace.files() if is_ours(path)}

    # The run itself

    def _consolidate(self, lease: Lease, material: Material) -> Report:
        selection = material.selection
        if not selection.removed and not self._is_made(selection):
            return self._nothing_to_do(lease, selection, Outcome.NO_INPUT)
        raw = self._raw(material, union=True)
        with self._workspace.alone(create=True):
            if not selection.is_news and self._is_intact(material, _left(lease.watermark)):
                outcome = Outcome.UNCHANGED if selection.chosen else Outcome.NO_INPUT
                return self._nothing_to_do(lease, selection, outcome)
            self._hold(lease)
            self._sync(raw)
        self._reached(Step.SYNCED)
        standard = Standard(selection, material.memories)
        files = self._result(lease, material, standard, raw)
        if problems := standard.problems(files) + (standard.idleness(files) if self._model else []):
            raise _Invalid(*problems)
        self._reached(Step.VALIDATED)
        with self._workspace.alone(create=True):
            self._hold(lease, material)
            watermark = self._publish(lease, material, files)
        self._reached(Step.COMPLETED)
        return self._report(selection, Outcome.SUCCEEDED, watermark)

    def _publish(self, lease: Lease, material: Material, files: Mapping[str, str]) -> str:
        """The files, then the end of the job: its watermark. Where the job is another's by then, they go again."""
        selection = material.selection
        raw = self._raw(material, union=False)
        newest = max(_time(lease.watermark), selection.newest)
        watermark = _watermark(newest, selection, _files(files), is_due=False)
        try:
            self._replace(files)
            self._reached(Step.PUBLISHED)
            self._sync(raw)
            self._reached(Step.PRUNED)
            self._finish(lease, selection, watermark)
        except LeaseLost:
            with self._database.write() as tx:
                ran_out = self._jobs.standing(tx, lease) is Standing.OURS
            for path in () if ran_out else (*files, *raw):
                with suppress(ToolRefused):
                    self._workspace.delete(path)
            raise
        return watermark

    def _raw(self, material: Material, *, union: bool) -> dict[str, str]:
        selection = material.selection
        if union:
            files = render.raw_files(selection.union, material.evidence)
        else:
            files = render.raw_files(selection.chosen, material.memories)
        return {path: redact(text) for path, text in files.items()}

    def _sync(self, raw: Mapping[str, str]) -> None:
        """raw_memories.md and rollout_summaries/ hold just this."""
        for path, text in raw.items():
            self._workspace.write(path, text, limit=READ_LIMIT)
        for path in self._workspace.files():
            if render.is_raw(path) and path not in raw:
                self._workspace.delete(path)

    def _result(self, lease: Lease, material: Material, standard: Standard, raw: Mapping[str, str]) -> dict[str, str]:
        """path → text of the files to keep."""
        selection = material.selection
        if self._model is None or not selection.chosen:
            made = offline.keep(selection, material.memories, material.uses)
            self._reached(Step.MADE)
            return {path: redact(text) for path, text in made.items()}
        from recollect.consolidate.agent import Task, clean, prompt_name

        question = _question(self._model.name, prompt_name(self._model), selection, raw)
        with self._database.read() as tx:
            stored = answers.load(tx, self._owner, KIND, KEY, question)
        if stored is not None:
            return msgspec.json.decode(stored.answer, type=dict[str, str])
        self._paid.check_cap()
        present = set(self._workspace.files())
        kept = {path: clean(self._workspace.read(path)) for path in standard.required if path in present}
        answer = self._ask(lease, self._model, Task(selection, material.memories, standard, kept, raw))
        self._reached(Step.MADE)
        text = msgspec.json.encode(answer.value, order="sorted").decode()
        self._paid.charge(self._model.name, answer.usage, question, text)
        self._reached(Step.STORED)
        return answer.value

    def _replace(self, files: Mapping[str, str]) -> None:
        """All or none; summaries of projects without input go."""
        with closing(self._workspace.replace(files)) as replaced:
            for _ in replaced:
                self._reached(Step.PUBLISHING)
        for path in self._workspace.files():
            if render.is_kept(path) and path not in files:
                self._workspace.delete(path)

    # The model

    def _ask(self, lease: Lease, model: LanguageModel, task: Task) -> Answer[dict[str, str]]:
        """The model works in a thread of its own; this one renews the lease meanwhile."""
        from recollect.consolidate import agent

        staging = self._workspace.root.with_name(f"{_STAGING}{lease.token}")
        make_private(staging)
        folder = Workspace(staging, durable=False, most=None)  # an agent may write only what is listed
        try:
            return self._attend(lease, lambda: agent.consolidate(model, task, folder, self._config))
        finally:
            shutil.rmtree(staging, ignore_errors=True)

    def _attend(self, lease: Lease, call: Callable[[], Answer[dict[str, str]]]) -> Answer[dict[str, str]]:
        """A lost lease is noticed, and the call waited for: what it costs is known only then."""
        started = time.monotonic()
        lost = False
        with Threads(1, lambda work: work(), [call]) as threads:
            while not (taken := threads.take(self._config.lease_seconds / 4)):
                lost = lost or not self._is_held(lease)
                if time.monotonic() - started > self._config.consolidation_timeout_seconds + _GRACE:
                    raise ModelFailed(Failure.TIMEOUT, "the model did not end at its deadline")
        answer = taken[1].result()
        if lost:
            self._charge(answer.usage)
            raise LeaseLost("the lease was lost while the model worked; nothing was published")
        return answer

    def _is_held(self, lease: Lease) -> bool:
        try:
            with self._database.write() as tx:
                return not self._jobs.heartbeat(tx, [lease])
        except StoreBusy:  # the next beat is in time, too
            return True

    def _charge(self, usage: Usage) -> None:
        if self._model is not None:
            self._paid.charge(self._model.name, usage)

    def _clear_staging(self) -> None:
        """Whoever left one behind has lost the lease that we hold."""
        for folder in self._workspace.root.parent.glob(f"{_STAGING}*"):
            shutil.rmtree(folder, ignore_errors=True)

    # The end

    def _hold(self, lease: Lease, material: Material | None = None) -> None:
        """The last look before files are written, from which on the attempt counts: the job is ours, and nothing of a
        result's material was erased while it was made."""
        with self._database.write() as tx:
            lost = not self._jobs.begin(tx, lease) or self._jobs.heartbeat(tx, [lease])
            gone = {each.row.session_key for each in material.selection.union} if material else set()
            if gone:
                gone -= {each.row.session_key for each in stage1.inputs(tx, self._owner, sorted(gone))}
        if lost:
            raise LeaseLost("the lease was lost; nothing was published")
        if gone:
            self._sync(self._raw(self._load(), union=False))
            raise _Invalid(*(f"[{key}] was removed while the result was made" for key in sorted(gone)))

    def _finish(self, lease: Lease, selection: Selection, watermark: str) -> None:
        later = self._clock() + timedelta(hours=self._config.consolidation_cooldown_hours)
        with self._database.write() as tx:
            self._jobs.enqueue(tx, KIND, [(KEY, watermark)])
            stage1.mark_selected(tx, self._owner, [each.row for each in selection.chosen])
            answers.delete(tx, self._owner, KIND, KEY)
            self._jobs.complete(
                tx, replace(lease, watermark=watermark), status=JobStatus.COOLING_DOWN, not_before=later
            )

    def _nothing_to_do(self, lease: Lease, selection: Selection, outcome: Outcome) -> Report:
        with self._database.write() as tx:
            self._jobs.complete(tx, lease)
        return self._report(selection, outcome, lease.watermark)

    def _pause(self, lease: Lease, selection: Selection, cap: CapReached) -> Report:
        try:
            with self._database.write() as tx:
                self._jobs.pause(tx, lease, cap.message, cap.until)
        except LeaseLost as error:
            return self._report(selection, Outcome.FAILED, lease.watermark, error.message)
        return self._report(selection, Outcome.PAUSED, lease.watermark, cap.message)

    def _fail(
        self,
        lease: Lease,
        selection: Selection,
        reason: str,
        *,
        permanent: bool = False,
        at_least: float = 0.0,
        forget: bool = False,
    ) -> Report:
        """To be tried again, `at_least` so many seconds later. `forget` deletes the answer: it is of no use."""
        reason = redact(reason)
        try:
            with self._database.write() as tx:
                if forget:
                    answers.delete(tx, self._owner, KIND, KEY)
                self._jobs.fail(tx, lease, reason, permanent=permanent, at_least=at_least)
        except LeaseLost as error:
            reason = f"{reason}; {error.message}"
        return self._report(selection, Outcome.FAILED, lease.watermark, reason)

    def _report(self, selection: Selection, outcome: Outcome, watermark: str, reason: str = "") -> Report:
        return Report(
            outcome,
            selection.added,
            selection.retained,
            selection.removed,
            _time(watermark),
            reason,
            self._paid.usage.tokens,
        )


def _waiting(status: JobStatus, is_due: bool, selection: Selection) -> Outcome:
    """Why a job could not be claimed."""
    if status is JobStatus.PAUSED:
        return Outcome.PAUSED
    if status in (JobStatus.BACKING_OFF, JobStatus.FAILED, JobStatus.DEAD):
        return Outcome.FAILED
    if status is JobStatus.COOLING_DOWN and is_due:
        return Outcome.COOLING_DOWN
    if status in (JobStatus.RUNNING, JobStatus.PENDING):
        return Outcome.BUSY
    return Outcome.UNCHANGED if selection.chosen or selection.removed else Outcome.NO_INPUT


def _reason(job: Job) -> str:
    """Why it waits, and until when."""
    later = f"not before {job.not_before}" if job.not_before else ""
    return "; ".join(part for part in (job.last_error, later) if part)


def _watermark(newest: str, selection: Selection, left: str, *, is_due: bool) -> str:
    snapshots = sorted((each.row.session_key, each.row.generated_at) for each in selection.chosen)
    return f"{newest}#{_hash([snapshots, is_due])[:16]}#{left}"


def _time(watermark: str) -> str:
    return watermark.partition("#")[0]


def _left(watermark: str) -> str:
    """The files that a run left, as `_files` tells them; empty: nobody knows."""
    return watermark.partition("#")[2].partition("#")[2]


def _files(files: Mapping[str, str]) -> str:
    return _hash(sorted(files.items()))[:16]


def _question(model: str, prompt: str, selection: Selection, raw: Mapping[str, str]) -> str:
    """Everything that was asked, but for the files as they are: those change while the answer is published."""
    return _hash(
        [model, prompt, sorted(selection.added), sorted(selection.retained), selection.removed, sorted(raw.items())]
    )


def _hash(value: object) -> str:
    return hashlib.sha256(msgspec.json.encode(value)).hexdigest()
