"""Finds what is wrong with a home, and mends what can be mended without asking a model or losing a word.

What is wrong is decided in pure functions of what was read. A file that was changed by hand is never overwritten: it is
kept beside its place under another name, and the conversation gets a new set from the rows that still hold it. What was
mended is looked at again: a problem counts as fixed when it is not found any more.
"""

from __future__ import annotations

import os
import shutil
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from enum import StrEnum
from pathlib import Path
from typing import Any

from recollect.artifacts import changed, forget, reindex, rows, sets, tombstones
from recollect.artifacts.document import Content, Document, Manifest
from recollect.artifacts.files import Files
from recollect.artifacts.names import Kind, Name, session_token
from recollect.artifacts.names import parse as parse_name
from recollect.artifacts.projection import Projection
from recollect.artifacts.reindex import Held, assess
from recollect.artifacts.session_end import SessionEnd
from recollect.artifacts.sets import Known
from recollect.artifacts.states import Evidence, State, detect
from recollect.artifacts.tombstones import Graveyard
from recollect.config import DAMAGED_DATABASES, Settings
from recollect.errors import ArtifactError
from recollect.extract.jobs import KIND as EXTRACT
from recollect.extract.jobs import abandoned, read_by, resume
from recollect.extract.load import load
from recollect.extract.values import Extraction
from recollect.ingest.intake import Intake
from recollect.ingest.scan import Problem
from recollect.inject.briefing import Briefing
from recollect.overview import LOW_SPACE, UNREADABLE, damage, half_read
from recollect.redact import scan
from recollect.store import artifacts as artifact_rows
from recollect.store import conversations, entries, memories, stage1
from recollect.store.entries import FileKey
from recollect.store.ground import Ground, Part
from recollect.store.jobs import Job
from recollect.store.tombstones import JOB
from recollect.types import SETTLED, Conversation, ConversationStatus, JobStatus, timestamp

_OLD_LITTER = 60.0  # seconds after which nobody is writing a temporary file any more
_PATIENCE = timedelta(days=1)  # before waiting conversations are a backlog


class Fault(StrEnum):
    """What can be wrong, beside what `reindex` finds in a file."""

    BAD_FRONTMATTER = "BadFrontmatter"
    CHECKSUM_MISMATCH = "ChecksumMismatch"
    TAMPERED = "Tampered"  # a link, or no file at all, in its place
    BAD_BODY = "BadBody"
    WRONG_NAME = "WrongName"
    NO_MANIFEST = "NoManifest"
    UNCOMMITTED = "Uncommitted"  # a set that the manifest does not point at
    BROKEN_LINK = "BrokenLink"
    MISSING = "Missing"
    ERASED = "Erased"  # and here again, or still
    SECRET = "Secret"  # written under rules of redaction that did not know it, here or elsewhere
    NOT_INDEXED = "NotIndexed"  # files that the rows do not tell of
    CHANGED_ROWS = "ChangedRows"  # somebody changed them in the database
    LEFTOVER = "Leftover"  # a temporary file of a process that died
    STUCK_FILE = "StuckFile"
    STUCK_CONVERSATION = "StuckConversation"
    FAILED_JOB = "FailedJob"
    STALE_LEDGER = "StaleLedger"
    SPOILED_CONTEXT = "SpoiledContext"  # what a new session is told where nobody is there to ask
    DAMAGED_DATABASE = "DamagedDatabase"
    TOO_OPEN = "TooOpen"
    LOW_SPACE = "LowSpace"
    BACKLOG = "Backlog"
    UNPLUGGED = "Unplugged"  # an agent calls nothing, another home, or what can hold it up
    UNREADABLE = "Unreadable"  # a transcript, or a folder of an agent's


_SPOILED = {Fault.BAD_FRONTMATTER, Fault.CHECKSUM_MISMATCH, Fault.TAMPERED, Fault.BAD_BODY, Fault.WRONG_NAME}
_UNFINISHED = {Fault.NO_MANIFEST, Fault.UNCOMMITTED}
_REMADE = {*_SPOILED, Fault.NO_MANIFEST, Fault.BROKEN_LINK, Fault.MISSING}


@dataclass(frozen=True, slots=True)
class Finding:
    kind: Fault
    what: str
    hint: str
    path: str = ""  # of the file that it is about
    key: str = ""  # session key, or kind and key of a job
    fixed: bool = False

    @property
    def identity(self) -> tuple[str, str, str]:
        """The same in the next look, whatever the numbers in its text are then."""
        return self.kind, self.path, self.key


@dataclass(slots=True)
class Report:
    """The JSON of `recollect doctor`."""

    files: int = 0  # canonical files that were read
    problems: list[Finding] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)  # files that were changed by hand, where they are now

    @property
    def remaining(self) -> int:
        return sum(not each.fixed for each in self.problems)


# Decisions

_FIX = "`recollect doctor --fix` mends it."
_NO_ROWS = "The database does not hold it either: put the file back from a backup, or `recollect import` an archive."

_STONE = "Put it back from a backup: until then it keeps nothing erased."


def of_files(found: Iterable[reindex.Problem], keys: Mapping[str, str], written: Mapping[str, str]) -> list[Finding]:
    """Token → session key: `keys` of conversations that the rows hold as they were written, `written` of those whose
    files tell whose they are."""
    findings = []
    for each in found:
        name = parse_name(each.path)
        is_stone = name is not None and name.kind is Kind.TOMBSTONE  # never moved: what it names must not come back
        key = keys.get(name.token, "") if name and not is_stone else ""
        kind = Fault(each.kind)
        if name and kind in _UNFINISHED:
            key = key or written.get(name.token, "")
        hint = _FIX if key or kind is Fault.ERASED else _STONE if is_stone else _NO_ROWS
        findings.append(Finding(kind, f"{each.path}: {each.what}", hint, each.path, key))
    return findings


def uncommitted(held: Held, agent_id: str) -> str:
    """The path of a compaction of ours that our manifest does not list, or of a set that it does not point at; empty:
    there is none."""
    good = {name: found.head for name, found in held.documents.items() if isinstance(found, Document)}
    manifests = [(name, head) for name, head in good.items() if isinstance(head, Manifest)]
    if len(manifests) != 1 or any(head.agent_id != agent_id for head in good.values()):
        return ""
    (name, manifest) = manifests[0]
    contents = {each: head if isinstance(head, Content) else None for each, head in good.items() if each != name}
    known = Known(name.token, manifest, name, contents)
    evidence = Evidence(known, None, False, False, {})
    if State.NO_MANIFEST not in detect(evidence):
        return ""
    return max(sets.unlisted(known) or contents).path


def _is_compaction(path: str) -> bool:
    name = parse_name(path)
    return name is not None and name.kind is Kind.COMPACTION


def of_secrets(held: Held, agent_id: str, session_key: str) -> list[Finding]:
    """What today's rules of redaction would take out of files of ours."""
    found = []
    for name, document in sorted(held.documents.items()):
        if not isinstance(document, Document) or document.head.agent_id != agent_id:
            continue
        if rules := sorted({each.rule for each in scan(document.body)}):
            what = f"{name.path} holds what looks like a secret: {', '.join(rules)}"
            hint = f"Read it; `recollect forget --conversation {session_key}` erases the conversation."
            found.append(Finding(Fault.SECRET, what, hint, name.path, session_key))
    return found


def of_index(changed: Iterable[Name], bad: Iterable[str]) -> list[Finding]:
    """Files whose rows are missing or older. Those with faults of their own are told elsewhere."""
    faulty = {name.token for path in bad if (name := parse_name(path))}
    new = [name for name in changed if name.token not in faulty]
    if not new:
        return []
    return [
        Finding(Fault.NOT_INDEXED, f"{_count(new, 'file')} changed since they were indexed", "`recollect reindex`.")
    ]


def of_rows(found: changed.Changed, stones: Iterable[str]) -> list[Finding]:
    """What somebody changed in the database: rows of conversations, memories and tombstones."""
    told = "rows of {} are not what its files say"
    names = (*found.conversations, *found.memories, *stones)
    return [Finding(Fault.CHANGED_ROWS, told.format(name), _FIX, key=name) for name in names]


def of_stuck(reading: Sequence[str], processing: Sequence[Conversation]) -> list[Finding]:
    """Files and conversations that nobody who is alive works on."""
    findings = [
        Finding(
            Fault.STUCK_FILE, f"{path} was left in the middle of being read", "`recollect ingest` resumes it.", key=path
        )
        for path in reading
    ]
    return findings + [
        Finding(
            Fault.STUCK_CONVERSATION,
            f"{each.session_key} was left in the middle of being processed",
            "`recollect process` resumes it.",
            key=each.session_key,
        )
        for each in processing
    ]


def of_jobs(jobs: Iterable[Job]) -> list[Finding]:
    return [
        Finding(
            Fault.FAILED_JOB,
            f"{job.kind} {job.key} is {job.status} after {job.attempts} attempts: {job.last_error}",
            "Mend the cause, then run `recollect retry`; `recollect doctor --fix` does both where it can.",
            key=f"{job.kind} {job.key}",
        )
        for job in jobs
        if job.status in (JobStatus.DEAD, JobStatus.FAILED)
    ]


def of_context(names: Iterable[str]) -> list[Finding]:
    told = "is not as it was made, or is of a project that is told nothing"
    hint = f"{_FIX} A link or a folder in its place is yours to remove."
    return [Finding(Fault.SPOILED_CONTEXT, f"context/{each} {told}", hint, f"context/{each}") for each in names]


def of_modes(paths: Sequence[str]) -> list[Finding]:
    if not paths:
        return []
    what = f"{_count(paths, 'file or folder', 'files and folders')} can be read by other users, {paths[0]} first"
    return [Finding(Fault.TOO_OPEN, what, _FIX)]


def of_space(free: int) -> list[Finding]:
    if free >= LOW_SPACE:
        return []
    return [Finding(Fault.LOW_SPACE, f"only {free >> 20} MB of disk space are left", "Free some space.")]


def of_transcripts(unreadable: Iterable[Problem]) -> list[Finding]:
    return [Finding(Fault.UNREADABLE, f"{each.path}: {each.reason}", UNREADABLE, each.path) for each in unreadable]


def of_backlog(ready: Sequence[Conversation], since: str, until: str) -> list[Finding]:
    """Conversations that became ready in time and were not taken up. Older ones are left alone on purpose."""
    waiting = [each for each in ready if since <= each.last_message_at < until]
    if not waiting:
        return []
    oldest = min(each.last_message_at for each in waiting)[:10]
    what = f"{_count(waiting, 'conversation')} since {oldest} wait to be processed"
    return [Finding(Fault.BACKLOG, what, "Run `recollect process`.")]


def outcome(before: Sequence[Finding], after: Sequence[Finding]) -> list[Finding]:
    """What was found, each marked as fixed if it is not there any more; then what appeared since."""
    left = {each.identity for each in after}
    seen = {each.identity for each in before}
    told = [replace(each, fixed=each.identity not in left) for each in before]
    return told + [each for each in after if each.identity not in seen]


def is_held(group: Sequence[Conversation], has_row: bool, snapshot: str, written: str) -> bool:
    """Do the rows hold the conversation as it was written? `written`: the snapshot that the stage-1 row was made of."""
    if not group or any(each.status not in SETTLED for each in group):
        return False
    archived = any(each.status is ConversationStatus.ARCHIVED for each in group)
    return archived == has_row and (not has_row or snapshot == written)


def _count(found: Sequence[Any], noun: str, plural: str = "") -> str:
    return f"1 {noun}" if len(found) == 1 else f"{len(found):,} {plural or noun + 's'}"


# The runner


class Doctor(Part):
    """`recover` resumes the end of a session that was interrupted (`artifacts.states`); `reindex` is Memory's;
    `briefing` is None while everything is switched off."""

    def __init__(
        self,
        ground: Ground,
        recover: Callable[[str], object],
        reindex: Callable[[], object],
        briefing: Briefing | None,
    ) -> None:
        super().__init__(ground)
        self._briefing = briefing
        self._recover = recover
        self._reindex = reindex
        self._files = Files(self._settings.root)
        self._jobs = ground.jobs()
        self._projection = Projection(ground, also=briefing.refresh if briefing else lambda: None)

    def run(self, *, fix: bool = False) -> Report:
        report = Report()
        before = self.examine(report)
        report.problems = before
        if fix and before:
            self._mend(before, report)
            report.problems = outcome(before, self.examine(report))
        return report

    # Looking

    def examine(self, report: Report) -> list[Finding]:
        """Everything that is wrong now; nothing is changed."""
        found = self._damage()
        if found:  # nothing that such a database says counts
            return found + of_space(self._free())
        found += self._look_at_files(report)
        with self._database.read() as tx:
            reading = half_read(tx, self._owner, self._jobs)
            idle = abandoned(tx, self._owner, self._jobs)
            unwell = self._jobs.list(tx, (JobStatus.DEAD, JobStatus.FAILED), limit=1000)
            ready = conversations.search(tx, self._owner, statuses=[ConversationStatus.READY])
            job = self._jobs.find(tx, *JOB)
            is_cut_short = job is not None and job.status is not JobStatus.SUCCEEDED
            if job is not None and job.status is JobStatus.RUNNING:  # by a process that is alive?
                is_cut_short = JOB in {each[:2] for each in self._jobs.due(tx)}
        now = self._clock()
        oldest = timestamp(now - timedelta(days=self._settings.config.max_rollout_age_days))
        if is_cut_short:
            found.append(Finding(Fault.ERASED, "a removal is not done: what was made of it is still there", _FIX))
        found += of_stuck(reading, idle)
        found += of_jobs(unwell)
        found += of_backlog(ready, oldest, timestamp(now - _PATIENCE))
        found += of_transcripts(self._intake().unreadable() if self._settings.config.enabled else ())
        is_right = all(each.kind is not Fault.CHANGED_ROWS for each in found)  # else nothing can be told of them
        if is_right and self._projection.is_stale():
            hint = "It is written anew by `recollect process` and `recollect doctor --fix`."
            found.append(Finding(Fault.STALE_LEDGER, "MEMORY.md is not what it would be now", hint))
        found += of_context(self._briefing.spoiled() if self._briefing and is_right else ())
        found += of_modes([str(path.relative_to(self._settings.home)) for path in self._too_open()])
        found += [
            Finding(Fault.LEFTOVER, f"{path} was left by a process that died", _FIX, path) for path in self._leftovers()
        ]
        return found + of_space(self._free())

    def _intake(self) -> Intake:
        return Intake(self._ground)

    def _damage(self) -> list[Finding]:
        with self._database.read() as tx:
            if tx.dialect.name != "sqlite":
                return []
            broken = damage(tx)
        hint = "`recollect doctor --fix` sets it aside and rebuilds it from the files; use, jobs and costs begin anew."
        return [Finding(Fault.DAMAGED_DATABASE, f"the database is damaged: {broken[0]}", hint)] if broken else []

    def _look_at_files(self, report: Report) -> list[Finding]:
        stones = tombstones.read_all(self._files)
        erased = tombstones.erased(stones.values(), self._database, self._owner, self._files.names())
        problems = reindex.unreadable(stones)
        there = dict(self._files.scan())
        report.files = len(there)
        with self._database.read() as tx:
            known = artifact_rows.signatures(tx, self._owner)
        there = reindex.ours(self._files, there, known, self._owner.agent_id)
        groups: dict[str, dict[Name, str]] = {}
        for name, signature in there.items():
            groups.setdefault(name.token, {})[name] = signature
        written: dict[str, str] = {}
        secrets: list[Finding] = []
        for token in sorted(groups):
            held = reindex.loaded(self._files, groups[token])
            assessed = assess(held, self._owner.agent_id, erased)
            problems += assessed.problems
            written[token] = assessed.session_key
            secrets += of_secrets(held, self._owner.agent_id, assessed.session_key)
            loose = uncommitted(held, self._owner.agent_id)
            if loose and (_is_compaction(loose) or self._is_settled(assessed.session_key)):
                problems.append(reindex.Problem(loose, Fault.UNCOMMITTED, "the manifest does not point at it"))
        problems += reindex.missing(known, there, erased)
        tokens = {faulty.token for each in problems if (faulty := parse_name(each.path))}
        rows = changed.find(self._ground)
        held_keys = {*self._held(tokens)} - rows.conversations.keys()  # no file is made of what somebody changed
        keys = {self._token(key): key for key in held_keys}
        bad = [each.path for each in problems]
        newer = [name for name, signature in there.items() if known.get(name.path) != signature]
        found = (
            of_files(problems, keys, written)
            + of_index(newer, bad)
            + of_rows(rows, tombstones.untold(self._ground, stones))
        )
        return found + secrets + self._risen(erased)

    def _risen(self, erased: Graveyard) -> list[Finding]:
        what = forget.Forget(self._ground).risen(erased)
        return [Finding(Fault.ERASED, what, _FIX, key="rows")] if what else []

    def _is_settled(self, session_key: str) -> bool:
        """Nobody is going to finish it by himself."""
        with self._database.read() as tx:
            return all(each.status in SETTLED for each in conversations.of_key(tx, self._owner, session_key))

    def _token(self, session_key: str) -> str:
        return session_token(self._owner.agent_id, session_key, "")

    def _held(self, tokens: set[str]) -> list[str]:
        """Session keys of these conversations whose rows are as they were written."""
        if not tokens:
            return []
        with self._database.read() as tx:
            settled = conversations.search(tx, self._owner, statuses=SETTLED)
        groups: dict[str, list[Conversation]] = {}
        for each in settled:
            if self._token(each.session_key) in tokens:
                groups.setdefault(each.session_key, []).append(each)
        found = []
        for key in sorted(groups):
            with self._database.read() as tx:
                group = conversations.of_key(tx, self._owner, key)
                row = stage1.load(tx, self._owner, key)
            snapshot = load(self._database, self._owner, group).snapshot
            if is_held(group, row is not None, snapshot, row.snapshot if row else ""):
                found.append(key)
        return found

    def _walk(self) -> Iterator[tuple[Path, os.stat_result]]:
        """Everything under the home that is no link, the home first."""
        home = self._settings.home
        yield home, home.stat()
        for folder, folders, names in os.walk(home):
            for each in (*folders, *names):
                path = Path(folder, each)
                try:
                    details = path.lstat()
                except FileNotFoundError:
                    continue
                if stat.S_ISREG(details.st_mode) or stat.S_ISDIR(details.st_mode):
                    yield path, details

    def _too_open(self) -> list[Path]:
        return [path for path, details in self._walk() if stat.S_IMODE(details.st_mode) & 0o077]

    def _leftovers(self) -> list[str]:
        now = time.time()
        return sorted(
            path.relative_to(self._settings.home).as_posix()
            for path, details in self._walk()
            if path.name.startswith(".recollect") and path.suffix == ".tmp" and now - details.st_mtime > _OLD_LITTER
        )

    def _free(self) -> int:
        return shutil.disk_usage(self._settings.home).free

    # Mending

    def _mend(self, found: Sequence[Finding], report: Report) -> None:
        """In this order: what comes later builds on what came before."""
        kinds = {each.kind for each in found}
        steps: tuple[tuple[set[Fault], Callable[[], object]], ...] = (
            ({Fault.TOO_OPEN}, self._close),
            ({Fault.LEFTOVER}, lambda: self._sweep(found)),
            ({Fault.ERASED}, lambda: self._delete_erased(found)),
            ({Fault.STUCK_FILE}, lambda: self._intake().recover()),
            ({Fault.STUCK_CONVERSATION}, self._release),
            (_UNFINISHED, lambda: self._finish(found)),
            (_REMADE, lambda: self._remake(found, report)),
            ({Fault.NOT_INDEXED, Fault.CHANGED_ROWS, Fault.ERASED, *_REMADE, *_UNFINISHED}, self._reindex),
            ({Fault.FAILED_JOB}, lambda: self._revive(found)),
        )
        for faults, step in steps:
            if kinds & faults:
                step()
        if self._projection.is_stale():
            self._projection.update()
        if self._briefing and Fault.SPOILED_CONTEXT in kinds:
            self._briefing.refresh()

    def _close(self) -> None:
        for path in self._too_open():
            path.chmod(stat.S_IMODE(path.lstat().st_mode) & ~0o077)

    def _sweep(self, found: Sequence[Finding]) -> None:
        for each in found:
            if each.kind is Fault.LEFTOVER:
                (self._settings.home / each.path).unlink(missing_ok=True)

    def _delete_erased(self, found: Sequence[Finding]) -> None:
        """A set that tells more than what was erased goes once rows hold the rest: a re-index takes it in."""
        names = [name for each in found if each.kind is Fault.ERASED and (name := parse_name(each.path))]
        stones = tombstones.read_all(self._files)
        erased = tombstones.erased(stones.values(), self._database, self._owner, names)
        rest: dict[str, set[tuple[str, str]]] = {}
        for token in sorted({name.token for name in names if not erased.covers(name)}):
            held = reindex.loaded(self._files, dict.fromkeys(self._files.names(token), ""))
            rest[token] = reindex.beside(held, self._owner.agent_id, erased)
            keys = {each.head.session_key for each in held.documents.values() if isinstance(each, Document)}
            with self._database.write() as tx:
                artifact_rows.replace_sessions(tx, self._owner, sorted(keys), ())  # read again, whatever was known
        if any(rest.values()):
            self._reindex()
        for name in names:
            if erased.covers(name) or self._holds(rest[name.token]):
                self._files.delete(name.path)

    def _holds(self, messages: set[tuple[str, str]]) -> bool:
        with self._database.read() as tx:
            return all(
                entries.find(tx, FileKey(self._owner, source, ""), [uuid]).keys() == {uuid} for source, uuid in messages
            )

    def _release(self) -> None:
        with self._database.write() as tx:
            self._jobs.reap(tx, EXTRACT)
            resume(tx, self._owner, self._jobs)

    def _finish(self, found: Sequence[Finding]) -> None:
        """The manifest of files that are there."""
        for key in sorted({each.key for each in found if each.kind in _UNFINISHED and each.key}):
            with suppress(ArtifactError):  # found again, and told
                self._recover(key)

    def _remake(self, found: Sequence[Finding], report: Report) -> None:
        """A new set for every conversation that the rows hold; then what was changed by hand is out of its way."""
        by_key: dict[str, list[Finding]] = {}
        for each in found:
            if each.kind in _REMADE and each.key:
                by_key.setdefault(each.key, []).append(each)
        for key, faults in by_key.items():
            spoiled = sorted({each.path for each in faults if each.kind in {*_SPOILED, Fault.BROKEN_LINK}})
            report.kept += [self._files.set_aside(path) for path in spoiled if self._is_spoiled(path)]
            if self._is_broken(key, faults):
                with suppress(ArtifactError):  # somebody else is at it: found again, and told
                    self._write(key)

    def _is_broken(self, key: str, faults: Sequence[Finding]) -> bool:
        """Still, after what was mended so far."""
        names = self._files.names(self._token(key))
        gone = {each.path for each in faults if each.kind is Fault.MISSING} - {name.path for name in names}
        return bool(gone or self._problems(names))

    def _is_spoiled(self, path: str) -> bool:
        """Not put back by somebody in the meantime. What leads to another manifest than its own is spoiled, too: it
        never changes, and a manifest does."""
        name = parse_name(path)
        assert name is not None
        if any(each.kind in _SPOILED for each in self._problems([name])):
            return True
        around = self._problems(self._files.names(name.token))
        misled = {each.path for each in around if each.kind == Fault.BROKEN_LINK}
        return name.kind is not Kind.MANIFEST and path in misled

    def _problems(self, names: Sequence[Name]) -> Sequence[reindex.Problem]:
        """Of these files of a conversation, whatever was erased."""
        held = reindex.loaded(self._files, dict.fromkeys(names, ""))
        nothing = tombstones.graveyard((), self._owner.agent_id)
        return assess(held, self._owner.agent_id, nothing).problems

    def _write(self, key: str) -> None:
        with self._database.read() as tx:
            group = conversations.of_key(tx, self._owner, key)
            row = stage1.load(tx, self._owner, key)
            stated = memories.of_session(tx, self._owner, key)
        transcript = load(self._database, self._owner, group)
        extraction, strategy = (rows.retold(row), row.strategy) if row else (Extraction(), read_by(group[0]))
        end = SessionEnd(self._files, self._owner.agent_id, self._projection)
        end.write(transcript, extraction, stated, timestamp(self._clock()), strategy)

    def _revive(self, found: Sequence[Finding]) -> None:
        with self._database.write() as tx:
            for each in found:
                if each.kind is Fault.FAILED_JOB:
                    self._jobs.revive(tx, *each.key.split(" ", 1))


def set_aside_database(settings: Settings, now: str) -> Path | None:
    """A damaged SQLite file under another name; None when there is none. The next to open it finds an empty one."""
    file = settings.database_file
    if settings.config.database or not file.exists():
        return None
    kept = file.with_name(DAMAGED_DATABASES.replace("*", now.replace(":", "-")))
    for suffix in ("-wal", "-shm"):  # they belong to it
        side = file.with_name(file.name + suffix)
        if side.exists():
            side.rename(kept.with_name(kept.name + suffix))
    file.rename(kept)
    return kept
