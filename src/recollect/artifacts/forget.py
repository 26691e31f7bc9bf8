"""Erases conversations, or the messages that a memory came from: tombstone, files, rows, projections, free pages.

The tombstone is written first, so that whatever crashes later, nothing of it can come in again. Then files, then rows,
then what was made of them: MEMORY.md and the workspace. A conversation that loses only some of its messages gets a new
set of files without them, made without a model; what it states otherwise stays. What goes is decided in `removal`.

All of it is one job, which is asked for before the tombstone is written. As long as the job is not done a removal is
unfinished, and `finish` ends it from what tombstones name, whichever process calls it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePath

from recollect import note as notes
from recollect.artifacts import sets, tombstones
from recollect.artifacts.files import Files, Tampered
from recollect.artifacts.names import Kind, Name
from recollect.artifacts.names import parse as parse_name
from recollect.artifacts.planner import Planner
from recollect.artifacts.removal import Plan, Target, remaining, retold, shortened, stone
from recollect.artifacts.session_end import SessionEnd
from recollect.artifacts.sets import Points
from recollect.artifacts.tombstones import Graveyard, Tombstone, Unfinished
from recollect.config import DAMAGED_DATABASES
from recollect.errors import HalfErased, LeaseLost, Outdated, RecollectError, StoreBusy, StoreError, UsageError
from recollect.extract.jobs import KIND as EXTRACT
from recollect.extract.jobs import watermark
from recollect.extract.load import load
from recollect.extract.values import Transcript, Written
from recollect.ingest.erasure import blanked
from recollect.ingest.erasure import stones as stones_below
from recollect.ingest.run import KIND as INGEST
from recollect.ingest.scan import is_gone
from recollect.store import answers, erasing, files, injections, memories, stage1, turns
from recollect.store import artifacts as artifact_rows
from recollect.store import tombstones as tombstone_rows
from recollect.store.artifacts import Indexed
from recollect.store.database import Transaction
from recollect.store.erasing import Standing
from recollect.store.ground import Ground, Part
from recollect.store.jobs import Lease
from recollect.store.tombstones import JOB, KEY, KIND
from recollect.store.workers import certainly_dead
from recollect.turns.erasing import erase_buckets, turns_of
from recollect.turns.log import TurnLog
from recollect.types import SETTLED, Conversation, JobStatus, timestamp
from recollect.workspace import remove_empty

_STRATEGY = "after a removal"
_ALONE = threading.Lock()  # one removal at a time in this process


@dataclass(slots=True)
class Report:
    """The JSON of `recollect forget`."""

    removed_paths: list[str] = field(default_factory=list)
    removed_rows: int = 0
    tombstone: str = ""
    conversations: int = 0  # of which nothing, or not everything, is left
    entries: int = 0
    memories: list[str] = field(default_factory=list)  # ids that are gone
    also: list[dict[str, str]] = field(default_factory=list)  # what stays although it quotes, or is near, what went
    problems: list[str] = field(default_factory=list)  # what could not be done at once
    resumed: bool = False  # it finished a removal that was cut short


@dataclass(frozen=True, slots=True)
class _Rewritten:
    """A conversation that lost a part."""

    talks: tuple[Conversation, ...]
    written: Written
    mark: str  # watermark of what is left

    @property
    def key(self) -> str:
        return self.talks[0].session_key


# The runner


class Forget(Part):
    """`refresh` makes anew what was made of conversations, and tells what it could not; `scrub` leaves no
    page and no file with what was deleted; `similar` finds what means nearly the same as a text; `wrote` is told after
    every step, a test crashes there."""

    def __init__(
        self,
        ground: Ground,
        *,
        refresh: Callable[[], Iterable[str]] = lambda: (),
        scrub: Callable[[Collection[str] | None], str] | None = None,
        similar: Callable[[str], Iterable[Standing]] = lambda text: (),
        wrote: Callable[[str], None] = lambda step: None,
    ) -> None:
        super().__init__(ground)
        settings = ground.settings
        self._wrote = wrote
        self._files = Files(settings.root, wrote=self._step)
        self._planner = Planner(ground.database, ground.owner, self._files, settings.home, settings.turns, similar)
        self._jobs = ground.jobs()
        self._refresh = refresh
        self._scrub = scrub or ground.database.scrub
        self._log = TurnLog(settings.turns)
        self._unfinished = Unfinished(ground, self._files)
        self._lease: Lease | None = None
        self._renewed = 0.0

    def plan(self, target: Target) -> Plan:
        """What would go. UsageError when there is no such thing."""
        self.finish(hurry=True)
        return self._planner.plan(target)

    def run(self, target: Target, reason: str = "", digest: str = "") -> Report:
        """Whoever asks again for what was cut short finds it finished. With a `digest` nothing goes by another plan."""
        resumed = self.finish(hurry=True)
        buried = stones_below(self._settings.root)
        try:
            report = self._run(target, self._planner.plan(target), buried, reason, digest)
        except UsageError:
            self.finish(hurry=True)  # somebody else erased it meanwhile, and may have been cut short
            if resumed is None:
                raise
            return resumed
        return report

    def _run(self, target: Target, plan: Plan, known: Set[str], reason: str, digest: str) -> Report:
        """Carry out the plan. Whoever erased something since, and left another tombstone than those `known`, may have
        erased what it is about: then it is planned anew; so it is where a person confirmed a plan by its digest."""
        with self._leased(self._settings.config.busy_timeout_seconds) as lease:
            if lease is None:
                raise StoreBusy("another removal is going on", hint="Run it again when that one is done.")
            if digest or stones_below(self._settings.root) != known:
                plan = self._planner.plan(target)
            if digest and plan.digest != digest:
                raise Outdated("something else would go by now than what you were shown")
            try:
                names = self._going(plan)
                self._hide()  # hooks without a daemon look for no tombstone
                self._revoke(plan)
                paths = self._planner.paths(plan, names)
                buried = self._bury(stone(self._owner, plan, paths, reason, timestamp(self._clock()), target.project))
                report, touched = self._carry_out(plan, names, paths, {target.project})
                report.problems, rows = self._project(lease, plan.whole, touched)
            except RecollectError as error:
                raise HalfErased(f"half erased: {error.message}") from error
        report.removed_rows += rows
        report.tombstone = buried.path
        report.also = [each.told() for each in plan.also]
        return report

    def finish(self, *, hurry: bool = False) -> Report | None:
        """Finish what was cut short. None: nothing was, or a process that is alive is at it."""
        if not self._unfinished.is_there(hurry=hurry):
            return None
        with self._leased() as lease:
            if lease is None:
                return None
            try:
                graves = self._graves()
                report = self._complete(graves)
                report.problems, rows = self._project(lease, self._unlisted(graves))
            except RecollectError as error:
                raise HalfErased(f"half erased: {error.message}") from error
        report.removed_rows += rows
        report.resumed = True
        return report

    def risen(self, graves: Graveyard) -> str:
        """What tombstones name and rows hold, in words; empty: nothing. A removal was cut short, or an older database
        was put back."""
        plan = self._planner.buried(graves) if graves else None
        if plan is None:
            return ""
        return f"the database holds what was erased: {len(plan.said)} messages of {len(plan.keys)} conversations"

    def complete(self, graves: Graveyard) -> int:
        """Erase what tombstones name and rows still hold, so that `finish` has the rest to do. How many conversations
        and messages that were."""
        plan = self._planner.buried(graves)
        if plan is None:
            return 0
        with self._database.write() as tx:
            tombstones.demand(tx, self._ground)
        self._clear(plan)
        return len(plan.keys) + len(plan.said)

    def _clear(self, plan: Plan) -> Report:
        self._revoke(plan)
        names = self._going(plan)
        return self._carry_out(plan, names, self._planner.paths(plan, names))[0]

    def _complete(self, graves: Graveyard) -> Report:
        plan = self._planner.buried(graves)
        self._hide()
        self._step("hidden")
        report = self._clear(plan) if plan else Report()
        for name in self._files.names():  # a worker that was at it may have written since
            if graves.covers(name):
                self._files.delete(name.path)
        with self._database.write() as tx:
            report.removed_rows += tombstone_rows.delete_projects(tx, self._owner, graves.hashes)
        return report

    def _graves(self) -> Graveyard:
        stones = tombstones.read_all(self._files)
        return tombstones.erased(stones.values(), self._database, self._owner, self._files.names())

    def _unlisted(self, graves: Graveyard) -> list[str]:
        """Conversations that phase 2 knows and that are erased."""
        with self._database.read() as tx:
            known = stage1.used(tx, self._owner)
        return [key for key in known if self._planner.token(key) in graves.tokens]

    # The job

    @contextmanager
    def _leased(self, patience: float = 0.0) -> Iterator[Lease | None]:
        """The job, under a lease: nobody else erases meanwhile. None: somebody who is alive does. What was not
        completed is still to be done."""
        deadline = time.monotonic() + patience
        if not _ALONE.acquire(timeout=patience):
            yield None
            return
        try:
            while (lease := self._claimed()) is None and time.monotonic() < deadline:
                time.sleep(0.05)
            self._lease, self._renewed = lease, time.monotonic()
            yield lease
        finally:
            if self._lease is not None:
                with suppress(RecollectError), self._database.write() as tx:
                    self._jobs.release(tx, self._lease)
            self._lease = None
            _ALONE.release()

    def _claimed(self) -> Lease | None:
        """In this process nobody else is at it: what it held before, it left behind."""
        own = self._jobs.worker.rpartition("|")[0]
        with self._database.write() as tx:
            self._jobs.reap(tx, KIND, lambda worker: worker.startswith(own) or certainly_dead(worker))
            if self._jobs.is_held(tx, *JOB, lock=True):
                return None
            for _ in range(2):  # the first finds it dead, perhaps: of killed processes, each took an attempt
                tombstones.demand(tx, self._ground)
                if leases := self._jobs.claim(tx, KIND, limit=1, keys=[KEY], hurry=True):
                    return leases[0]
        return None

    def _step(self, name: str) -> None:
        self._wrote(name)
        if self._lease and time.monotonic() - self._renewed > self._settings.config.lease_seconds / 4:
            self._renewed = time.monotonic()
            with self._database.write() as tx:
                self._jobs.heartbeat(tx, [self._lease])

    # The steps

    def _going(self, plan: Plan) -> list[Name]:
        return [*self._planner.names(plan.keys), *(name for _, name in plan.beside)]

    def _hide(self) -> None:
        """Remove what is ready to be told where nobody is there to ask; it is made again at the end."""
        for page in (self._settings.workspace.parent / "context").glob("*.md"):
            with suppress(OSError):
                page.unlink()

    def _carry_out(
        self, plan: Plan, names: Sequence[Name], paths: Set[str], projects: Set[str] = frozenset()
    ) -> tuple[Report, Set[str]]:
        """`names` are the files that go; of `paths`, no name may come again. `projects` were named to go. With the
        tables that lost something."""
        removed = sorted({name.path for name in names} & paths)
        report = Report(removed, conversations=len(plan.keys), entries=len(plan.said))
        self._hide()
        self._step("hidden")
        for name in names:
            self._files.delete(name.path)
        rewritten = [self._rewrite(plan, key, paths) for key in sorted(plan.partly)]
        relinked = {key: self._relink(key) for key in sorted({key for key, _ in plan.beside})}
        before = self._ids(plan)
        unstated = self._unstated(plan, before, rewritten)
        self._erase_logs(plan, unstated)  # as long as there are rows, a run that was cut short can be repeated
        self._files.delete_aside({self._planner.token(key) for key in plan.keys})
        for kept in self._settings.home.glob(DAMAGED_DATABASES):
            kept.unlink()
        self._step("logs")
        vanished, unlogged = self._vanished(plan), self._gone_logs()
        with self._database.write() as tx:
            places = erasing.places(tx, self._owner, _files(plan))
            report.removed_rows = self._erase(tx, plan, rewritten, relinked)
            report.removed_rows += turns.delete_signatures(tx, self._owner, unlogged)
            report.removed_rows += self._erase_names(tx, vanished, {*places, *projects})
            touched = tx.touched() | erasing.PASSED_THROUGH
        self._step("rows")
        self._erase_buckets(plan)  # somebody may have taken them in again as long as there were rows
        for name in self._planner.names(plan.whole):  # a worker that was at it may have written meanwhile
            self._files.delete(name.path)
        report.memories = sorted(before - self._ids(plan, before))
        return report, touched

    def _project(self, lease: Lease, gone: Sequence[str], touched: Set[str] | None = None) -> tuple[list[str], int]:
        """Make what was made of rows without those that are gone; then no page of the tables that were `touched`, or of
        any, and no file holds them. What could not be done, and how many rows went. What a later run would do better is
        tried again."""
        removed = 0
        problems = list(self._refresh())
        if not problems:  # else the workspace is still to see that they are gone
            with self._database.write() as tx:
                removed = erasing.delete_baseline(tx, self._owner, gone)
        self._step("projections")
        left = ""
        try:
            left = self._scrub(touched)
        except StoreError as error:
            problems.append(error.message)
        with suppress(LeaseLost), self._database.write() as tx:
            if problems:
                self._jobs.fail(tx, lease, "; ".join(problems))
            else:
                self._jobs.complete(tx, lease)
        self._lease = None
        return problems + ([left] if left else []), removed

    def _bury(self, buried: Tombstone) -> Tombstone:
        """Two removals in one millisecond are two tombstones."""
        while self._files.read(buried.path) is not None:
            buried = replace(buried, removed_at=sets.after(buried.removed_at))
        self._files.create(buried.path, tombstones.rendered(buried))
        with self._database.write() as tx:
            told = (buried.hashes, buried.whole_tokens, buried.removed_paths)
            tombstone_rows.save(tx, self._owner, buried.path, *told)
        self._step("buried")
        return buried

    def _revoke(self, plan: Plan) -> None:
        """Whoever is at one of these conversations, or at the workspace, has lost it."""
        keys = sorted({*plan.keys, *plan.vanished})
        with self._database.write() as tx:
            self._jobs.revoke(tx, keys)
            answers.delete_all(tx, self._owner, keys)

    def _rewrite(self, plan: Plan, key: str, gone: Set[str]) -> _Rewritten:
        """A new set of files without what goes, under names of its own. A conversation that lost its beginning has
        another key."""
        before = load(self._database, self._owner, plan.talks[key])
        left = [each for each in before.messages if each.uuid not in plan.partly[key]]
        talks = [shortened(each, left) for each in plan.talks[key]]
        transcript = Transcript(shortened(before.conversation, left), left)
        with self._database.read() as tx:
            held = remaining(memories.of_session(tx, self._owner, key), plan.partly[key])
        now_key = transcript.conversation.session_key
        stated = [  # what was said of when they matter may be of what goes
            replace(each, sources=tuple((now_key, uuid) for _, uuid in each.sources), occasions=()) for each in held
        ]
        end = SessionEnd(self._files, self._owner.agent_id)
        now = max([timestamp(self._clock()), *(sets.after(name.captured_at) for name in self._taken(key, gone))])
        written = end.write(transcript, retold(transcript, stated), stated, now, _STRATEGY)
        mark = watermark(transcript.conversation.last_message_at, transcript.snapshot)
        return _Rewritten(tuple(talks), written, mark)

    def _taken(self, key: str, paths: Set[str]) -> list[Name]:
        names = (parse_name(path) for path in paths)
        return [name for name in names if name and name.token == self._planner.token(key) and name.kind in sets.SET]

    def _relink(self, session_key: str) -> tuple[Indexed, ...]:
        """The files of a conversation that lost a summary of another one, or older files: its manifest names what is
        left. One that was changed by hand stays as it is."""
        token = self._planner.token(session_key)

        def write() -> tuple[Indexed, ...]:
            known = sets.look(self._files, token)
            head, name = known.manifest, known.manifest_name
            if head is None or name is None:
                return ()
            at = max(head.updated_at, timestamp(self._clock()))
            to = sets.points(head)
            if to.transcript and parse_name(to.transcript.path) not in known.contents:
                to = Points()
            head = sets.composed(known, name, head, to, at, head.superseded_by)
            sets.commit(self._files, known, name, head)
            return sets.index(self._files, known, name, head)

        try:
            return sets.retried(write)
        except Tampered:
            return ()

    def _erase(
        self,
        tx: Transaction,
        plan: Plan,
        rewritten: Sequence[_Rewritten],
        relinked: Mapping[str, Sequence[Indexed]],
    ) -> int:
        """Jobs before the rest, as everywhere. Returns how many rows went."""
        owner = self._owner
        settled = [each for each in rewritten if all(talk.status in SETTLED for talk in each.talks)]
        self._jobs.settle(tx, EXTRACT, [(each.key, each.mark, _status(each.written)) for each in settled])
        gone = {each.uuid for each in plan.said}
        for source, path in _files(plan):
            state = files.load(tx, owner, source, path)
            if state is not None:
                files.save(tx, owner, [replace(state, parser_state=blanked(state.parser_state, gone))])
        removed = erasing.delete_said(tx, owner, plan.said)
        removed += injections.delete(tx, owner, sorted({key.rpartition("@")[0] for key in plan.whole}))
        removed += turns.erase(tx, owner, turns_of(plan.said))
        removed += erasing.delete_conversations(tx, owner, plan.whole)
        unstated = sorted({*plan.keys, *plan.vanished})
        stage1.delete(tx, owner, unstated)
        memories.replace_sessions(tx, owner, dict.fromkeys(unstated, ()))
        artifact_rows.replace_sessions(tx, owner, plan.keys, ())
        for each in rewritten:
            stage1.save(tx, owner, [each.written.stage1] if each.written.stage1 else [])
            memories.replace_sessions(tx, owner, {each.key: each.written.stated})
            erasing.recount(tx, owner, each.talks, timestamp(self._clock()))
            artifact_rows.replace_sessions(tx, owner, [each.key], each.written.files)
        for key, left in relinked.items():
            older = any(name.kind in sets.SET for of, name in plan.beside if of == key)
            artifact_rows.replace_sessions(tx, owner, [key], left, () if older else (Kind.COMPACTION, Kind.MANIFEST))
        return removed + erasing.delete_unstated(tx, owner)

    def _vanished(self, plan: Plan) -> list[tuple[str, str]]:
        """Files beside those that go, and these, that were read and are gone. One that is there keeps its offset; so
        does one that may be on another machine, or on a disk that is away."""
        with self._database.read() as tx:
            beside = erasing.states_beside(tx, self._owner, _files(plan))
        return [(source, key) for source, key, root in beside if is_gone(key, Path(root))]

    def _erase_names(self, tx: Transaction, vanished: Sequence[tuple[str, str]], places: Set[str]) -> int:
        """What tells only that a project was there, when nothing else of it is left. Returns how many rows went."""
        removed = erasing.delete_states(tx, self._owner, vanished)
        for source, key in removed:
            self._jobs.forget(tx, INGEST, f"{source}/{key}")
        return len(removed) + erasing.delete_projects(tx, self._owner, places)

    def _gone_logs(self) -> list[str]:
        """Logs and buckets that rows were made of, and that are gone."""
        with self._database.read() as tx:
            known = turns.signatures(tx, self._owner)
        return [path for path in known if not (self._settings.turns / path).exists()]

    def _erase_logs(self, plan: Plan, ids: Set[str]) -> None:
        """What was said to recollect itself stands in its own logs: notes, turns, and reactions to memories."""
        gone = {each.uuid for each in plan.said if each.source == notes.SOURCE}
        told = {each.source_file for each in plan.said if each.source == notes.SOURCE}
        for path in sorted(told | plan.logs):
            self._log.erase(path, lambda uuids: bool(gone.intersection(uuids)))
        self._log.erase_reactions(ids)
        self._erase_buckets(plan)

    def _erase_buckets(self, plan: Plan) -> None:
        erase_buckets(self._ground, plan.said)
        for source, key in _files(plan):
            if source == notes.SOURCE:
                remove_empty(self._settings.turns, PurePath(key).parent)

    def _unstated(self, plan: Plan, ids: Set[str], rewritten: Sequence[_Rewritten]) -> set[str]:
        """Those of the memories that nothing states when the plan is carried out."""
        kept = {each.id for one in rewritten for each in one.written.stated}
        going = {*plan.keys, *plan.vanished}
        with self._database.read() as tx:
            held = memories.find(tx, self._owner, sorted(ids))
        return {*ids} - kept - {each.id for each in held if any(key not in going for key, _ in each.sources)}

    def _ids(self, plan: Plan, among: Set[str] = frozenset()) -> set[str]:
        """Memories that the conversations state, or those of some that still exist."""
        with self._database.read() as tx:
            if among:
                return {each.id for each in memories.find(tx, self._owner, sorted(among))}
            return {each.id for key in plan.keys for each in memories.of_session(tx, self._owner, key)}


def _files(plan: Plan) -> list[tuple[str, str]]:
    """(source, key) of the files that something of what goes stands in."""
    return sorted({(each.source, each.source_file) for each in plan.said})


def _status(written: Written) -> JobStatus:
    return JobStatus.SUCCEEDED if written.stage1 else JobStatus.SUCCEEDED_NO_OUTPUT
