"""Stage 1 as a whole: find the files that changed, read them, close the conversations that fell silent.

`ingest` is what a person calls: it recovers first, and shares a large backlog with helpers. `take` is what the watcher
calls for single files. Both compare stats, tell each new file's format from its content, and hand what is left to the
runner.
"""

from __future__ import annotations

import errno
import os
import re
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property, partial
from pathlib import Path, PurePath

from recollect import note, redact
from recollect.config import Settings
from recollect.errors import ConfigError, StoreBusy, UsageError, nearest, no_file
from recollect.hand import PERSON, Author, refusal
from recollect.ingest import conversations as rules
from recollect.ingest import erasure, recovery, workers
from recollect.ingest.fold import Batch, fold_lines
from recollect.ingest.gate import Gate, switches
from recollect.ingest.reread import reread
from recollect.ingest.rescan import rescan
from recollect.ingest.resplit import resplit
from recollect.ingest.run import Ingest, Progress, Report, Work
from recollect.ingest.scan import Found, Ignore, Problem, keyed, look, scan
from recollect.ingest.sources import all_sources, detect, get_source
from recollect.ingest.sources.base import Source
from recollect.ingest.tail import Transcript
from recollect.ingest.workers import Helper, shares
from recollect.ingest.writer import Writer
from recollect.projects.paths import redacted, stored
from recollect.standing import asks_to_keep
from recollect.store import conversations as conversation_rows
from recollect.store import entries as entry_rows
from recollect.store import files, projects
from recollect.store.database import Transaction
from recollect.store.entries import FileKey
from recollect.store.files import FileState
from recollect.store.ground import Ground, Part
from recollect.store.projects import Project, Resolved
from recollect.types import (
    Conversation,
    ConversationStatus,
    FileStatus,
    Message,
    Role,
    Timestamp,
    moment,
    parse_timestamp,
    timestamp,
)

_EVER = (Timestamp(""), Timestamp("~"))
_PATIENCE = 2.0  # seconds to wait for files that another process holds
_GLOB = re.compile(r"[*?\[$]")
UNKNOWN = "unknown"  # the source of files that are no transcript: remembered, so that they cost one stat next time


@dataclass(frozen=True, slots=True)
class Missing:
    """Messages that are stored of a file, and that it does not hold."""

    path: str
    messages: int
    newest: Timestamp


class Intake(Part):
    """`bury` makes tombstones known, by their paths; whoever takes nothing in by himself does without."""

    def __init__(self, ground: Ground, bury: Callable[[Collection[str]], object] = lambda paths: None) -> None:
        super().__init__(ground)
        settings = ground.settings
        self._gap = timedelta(minutes=settings.config.conversation_gap_minutes)
        if strange := sorted(settings.config.roots.keys() - all_sources().keys()):
            raise ConfigError(f"`roots`: unknown source `{strange[0]}`{nearest(strange[0], all_sources())}")
        globs = [_expanded(each, settings) for each in settings.config.ignore]
        self._ignore = Ignore({name for each in globs for name in (each, _literal(redacted(each)))}, settings.user_home)
        self._disabled = [_expanded(each, settings) for each in settings.config.disabled_projects]
        self._switches = switches(settings.config.ignore, settings.config.disabled_projects)
        self._jobs = ground.jobs()
        self._bury_them = bury
        self._buried: frozenset[str] = frozenset()  # tombstones that were looked at

    def roots(self) -> dict[str, list[Path]]:
        """Source → the folders that it is read from."""
        chosen = self._settings.config.roots
        found = {
            name: [_absolute(self._settings.expand(each)) for each in chosen[name]]
            if name in chosen
            else source.default_roots(self._settings.environ)
            for name, source in all_sources().items()
        }
        found[note.SOURCE] = [self._settings.turns, *found[note.SOURCE]]
        return found

    def project_of(self, cwd: str, project: str = "") -> str | None:
        """The project of a folder, unless it is told; None when nothing of it may be stored."""
        gate = self._gate()
        found = gate.allowed(cwd, project)
        if found is not None and gate.is_news:
            with suppress(StoreBusy), self._database.write() as tx:  # else the next one keeps it
                gate.save_projects(tx)
        return found

    def allowed(self, folders: Iterable[str]) -> dict[str, str]:
        """Folder → project, of those of which something may be stored."""
        gate = self._gate()
        return {folder: found for folder in folders if (found := gate.allowed(folder)) is not None}

    def told(self, folders: Iterable[str]) -> dict[str, str]:
        """Folder → project, of those in which an agent may be told something."""
        gate = self._gate()
        allowed = ((folder, gate.allowed(folder)) for folder in folders)
        return {
            folder: found
            for folder, found in allowed
            if found is not None and gate.find(folder).resolved_by != Resolved.WAITING
        }

    def confirm(self, cwd: str) -> Project:
        """A person says that a folder is the project that it says it is."""
        gate = self._gate()
        if gate.allowed(cwd) is None:
            raise UsageError(f"{cwd} is switched off", hint="`disabled_projects` or `ignore` name it.")
        found = gate.confirm(cwd)
        with self._database.write() as tx:
            gate.save_projects(tx)
        return found

    def permitted(self, talks: Iterable[Conversation]) -> list[Conversation]:
        """Those that may be stored, as the configuration is now, and whose file is not being read."""
        gate = self._gate()
        with self._database.read() as tx:
            reading = self._reading(tx)
        return [
            each
            for each in talks
            if (each.source, each.source_file) not in reading
            and gate.allowed(each.project, each.project_id) is not None
        ]

    def _reading(self, tx: Transaction) -> set[tuple[str, str]]:
        """Source and key of files that are being read, or that somebody left half read: more of them is to come."""
        return {(each.source, each.file_path) for each in files.with_status(tx, self._owner, FileStatus.INGESTING)}

    def off(self, project_ids: Iterable[str]) -> set[str]:
        """Of these projects and those that are known, the ones of which nothing may be stored: switched off by name, or
        in every folder of theirs."""
        with self._database.read() as tx:
            known = projects.load_all(tx, self._owner).values()
        folders: dict[str, list[str]] = {each: [] for each in project_ids}
        for each in known:
            folders.setdefault(each.project_id, []).append(each.cwd)
        gate = self._gate()
        return {
            project_id
            for project_id, cwds in folders.items()
            if project_id and all(gate.allowed(cwd, project_id) is None for cwd in cwds or [""])
        }

    def ingest(
        self,
        *,
        file: Path | None = None,
        folder: Path | None = None,
        source: str | None = None,
        reimport: bool = False,
        since: str = "",
        author: Author = PERSON,
        progress: Progress = lambda size, count: None,
        expect: Progress = lambda size, count: None,
    ) -> Report:
        """A file, a folder, or every agent's folders. Files that were written last before `since` are left alone;
        `expect` is told bytes and files before reading begins. NotForAgents where an agent brings notes along."""
        started = time.perf_counter()
        forced = get_source(source) if source else None
        report, gate = Report(), self._gate()
        self._bury()
        left_out = self._recover(gate, report)
        rescan(self._database, self._owner, self._jobs, redact.VERSION, redact.redact)
        reread(self._database, self._owner, self._jobs)
        report.touched |= resplit(self._database, self._owner, self._jobs, self._writer(gate), self._gap)
        oldest = moment(parse_timestamp(since)).timestamp() * 1000 if since else 0
        found = [each for each in self._find(file, folder, forced, report) if each.modified_ms >= oldest]
        found = _without(found, left_out, report)
        changed, unread = self._changed(found, report, everything=reimport)
        if author.is_agent and (notes := self._notes_elsewhere(changed, forced)):
            raise refusal("take in notes, whoever seems to have written them", ("ingest", notes))
        expect(sum(each.size for each in changed), len(changed))
        mine, *others = shares(changed, self._settings.config.ingest_workers if unread > workers.SHARE_ABOVE else 1)
        with self._helpers(others, source, reimport, progress) as helpers:
            self._read_shared(mine, forced, helpers, gate, report, reimport, progress)
        self._read_busy(changed, forced, gate, report, reimport)
        self.mark_ready()
        report.seconds = time.perf_counter() - started
        return report

    def missing(
        self, *, file: Path | None = None, folder: Path | None = None, source: str | None = None
    ) -> list[Missing]:
        """What reading these files again from the beginning would remove. Nothing is stored."""
        gate, report = self._gate(), Report()
        forced = get_source(source) if source else None
        found = list(self._find(file, folder, forced, report))
        works = list(self._choose(found, gate, forced, report))
        return [each for work in works if (each := self._missing(work, gate))]

    def _missing(self, work: Work, gate: Gate) -> Missing | None:
        key = FileKey(self._owner, work.source.name, work.found.key)
        with self._database.read() as tx:
            sessions = entry_rows.sessions_of_file(tx, key)
            rows = [row for each in sessions for row in entry_rows.of_conversation(tx, key, each, *_EVER)]
        if not rows:
            return None
        batch, fold = Batch(0, 0), work.source.begin(PurePath(key.source_file))
        admit = partial(gate.admit, is_ours=work.source.name == note.SOURCE)
        try:
            with Transcript(Path(work.found.path)) as transcript:
                for lines in transcript.lines(0, work.found.size):
                    fold_lines(work.source, fold, lines, batch, admit)
        except OSError:
            return None  # whoever reads it says so, and removes nothing
        standing, gone = {row[0] for row in rows}, []
        added = (each for uuid, each in batch.entries.items() if uuid not in standing)
        renamed: Counter[tuple[str, str, str]] = Counter()  # see `entries.adopt`
        renamed.update((str(each.role), each.content, each.timestamp) for each in added)
        for _, role, text, at, *_ in (row for row in rows if row[0] not in batch.entries):
            renamed[role, text, at] -= 1
            if renamed[role, text, at] < 0:
                gone.append(at)
        return Missing(work.found.path, len(gone), Timestamp(max(gone))) if gone else None

    def waiting(self) -> tuple[int, int]:
        """Files in the agents' folders, and bytes of them, that `ingest` would read."""
        changed, unread = self._changed(list(self._find(None, None, None, Report())), Report())
        return len(changed), unread

    def used_at(self) -> datetime | None:
        """When an agent on this machine last wrote to a transcript, as the files are now."""
        found = self._find(None, None, None, Report())
        written = max((each.modified_ms for each in found if each.root != str(self._settings.turns)), default=0)
        return datetime.fromtimestamp(written / 1000, UTC) if written else None

    def unreadable(self) -> list[Problem]:
        """Files and folders of the agents that `ingest` cannot read. Nothing is opened."""
        report = Report()
        found = [each for each in self._find(None, None, None, report) if not os.access(each.path, os.R_OK)]
        return report.problems + [Problem(each.path, os.strerror(errno.EACCES)) for each in found]

    def read(self, found: Sequence[Found], source: str | None, *, reimport: bool, progress: Progress) -> Report:
        """A share of another process's files; forks whose parent is not stored yet are handed back."""
        report, gate = Report(), self._gate()
        works = list(self._choose(found, gate, get_source(source) if source else None, report))
        self._runner(gate).run(works, report, reimport=reimport, defer=True, progress=progress)
        self.mark_ready(report.read_files())
        return report

    def take(self, paths: Iterable[Path]) -> Report:
        """Files that the watcher saw change. Jobs that back off keep their time."""
        report, gate = Report(), self._gate()
        self._bury()
        found = [each for path in paths if (each := self._look(path, None, report))]
        works = list(self._choose(self._changed(found, report)[0], gate, None, report))
        self._runner(gate).run(works, report, hurry=False)
        return report

    def mark_ready(self, within: Collection[str] | None = None) -> int:
        """Active conversations that fell silent become ready, or skipped when too short to be worth it; notes do at
        once. Those within these files, or all."""
        silent = timestamp(self._clock() - self._gap)
        with self._database.read() as tx:
            idle = conversation_rows.idle_since(tx, self._owner, silent)
            known = {each.id for each in idle}
            ours = conversation_rows.search(tx, self._owner, statuses=[ConversationStatus.ACTIVE], source=note.SOURCE)
            idle += [each for each in ours if note.is_note(each) and each.id not in known]
            reading = self._reading(tx)
            idle = [each for each in idle if (each.source, each.source_file) not in reading]
            chosen = [each for each in idle if within is None or each.source_file in within]
            decided = [(each, *self._outcome(tx, each)) for each in chosen]
        return self._decide(decided)

    def end(self, source: str, session_id: str) -> int:
        """The agent said that a session ended: nobody waits for silence. How many conversations that changed."""
        with self._database.read() as tx:
            found = conversation_rows.of_session_id(tx, self._owner, source, stored(session_id))
            active = [each for each in found if each.status is ConversationStatus.ACTIVE]
            decided = [(each, *self._outcome(tx, each)) for each in active]
        return self._decide(decided)

    def _decide(self, decided: Sequence[tuple[Conversation, ConversationStatus, str]]) -> int:
        changed = 0
        for start in range(0, len(decided), 500):
            with self._database.write() as tx:
                now = timestamp(self._clock())
                changed += conversation_rows.set_status(tx, self._owner, decided[start : start + 500], now)
        return changed

    def _outcome(self, tx: Transaction, conversation: Conversation) -> tuple[ConversationStatus, str]:
        """What a conversation becomes that fell silent, and why."""
        rules.check_transition(conversation.status, ConversationStatus.READY)
        if conversation.entry_count < self._settings.config.min_conversation_messages and not _is_ours(conversation):
            if not asks_to_keep(self._messages(tx, conversation)):
                rules.check_transition(ConversationStatus.READY, ConversationStatus.SKIPPED)
                return ConversationStatus.SKIPPED, f"too short: {conversation.entry_count} messages"
        return ConversationStatus.READY, ""

    def _messages(self, tx: Transaction, conversation: Conversation) -> Iterator[Message]:
        key = FileKey(self._owner, conversation.source, conversation.source_file)
        span = (conversation.session_id, conversation.first_message_at, conversation.last_message_at)
        for uuid, role, text, at, tools, authors, events, *_ in entry_rows.of_conversation(tx, key, *span):
            told = entry_rows.events_of(events)
            yield Message(uuid, Role(role), text, at, tools, authors=authors, events=told)

    def _gate(self) -> Gate:
        with self._database.read() as tx:
            recorded = projects.load(tx, self._owner)
        return Gate(
            self._owner,
            recorded,
            ignore=self._ignore,
            disabled=self._disabled,
            own_home=self._settings.home,
            clock=self._clock,
        )

    def _writer(self, gate: Gate) -> Writer:
        return Writer(self._owner, self._gap, gate.project_id, self._clock)

    def _runner(self, gate: Gate) -> Ingest:
        return Ingest(
            self._database,
            self._owner,
            self._jobs,
            gap=self._gap,
            gate=gate,
            clock=self._clock,
            switches=self._switches,
        )

    @contextmanager
    def _helpers(
        self, parts: Sequence[Sequence[Found]], source: str | None, reimport: bool, progress: Progress
    ) -> Iterator[list[Helper]]:
        """A further process for each part of a large backlog."""
        helpers = [Helper(self._settings, part, source or "", reimport, progress) for part in parts]
        try:
            yield helpers
        finally:
            for helper in helpers:
                helper.stop()

    def _read_shared(
        self,
        mine: Sequence[Found],
        forced: Source | None,
        helpers: Sequence[Helper],
        gate: Gate,
        report: Report,
        reimport: bool,
        progress: Progress,
    ) -> None:
        """This process and its helpers read a share each; then, here, what they left."""

        def step(size: int, files: int) -> None:
            progress(size, files)
            for helper in helpers:
                helper.poll()

        runner = self._runner(gate)
        runner.run(list(self._choose(mine, gate, forced, report)), report, reimport=reimport, defer=True, progress=step)
        if helpers:
            self.mark_ready(report.read_files())  # while they finish
        deferred = report.deferred
        failed: list[Found] = []
        for helper in helpers:
            if theirs := helper.finish():
                report.add(theirs)
                deferred += theirs.deferred
            else:
                failed += helper.found
        later = [Work(found, get_source(source)) for found, source in deferred]
        later += self._choose(failed, gate, forced, report)
        runner.run(later, report, reimport=reimport, progress=progress)

    def _read_busy(
        self, found: Sequence[Found], forced: Source | None, gate: Gate, report: Report, reimport: bool
    ) -> None:
        """Files that others held: a process that is about to finish, or one that was just killed, is waited for."""
        deadline = time.monotonic() + _PATIENCE
        while report.busy and time.monotonic() < deadline:
            time.sleep(_PATIENCE / 20)
            left_out = self._recover(gate, report)
            report.skipped -= len(report.busy)
            paths = {each.path for each in _without(report.busy, left_out, report)}
            report.busy = []
            works = list(self._choose([each for each in found if each.path in paths], gate, forced, report))
            self._runner(gate).run(works, report, reimport=reimport)

    def _bury(self) -> None:
        """Nothing comes in before every tombstone on disk is known: the database may be newer than they are."""
        there = erasure.stones(self._settings.root)
        if new := there - self._buried:
            self._bury_them(new)
        self._buried = there

    def recover(self) -> int:
        """Files that a dead process left half read are rolled back; how many."""
        return recovery.recover(self._database, self._owner, self._jobs, self._writer(self._gate()))[0]

    def _recover(self, gate: Gate, report: Report) -> set[str]:
        """Rolls back what is half read. The keys of files for which that failed: this run leaves them out."""
        _, failed = recovery.recover(self._database, self._owner, self._jobs, self._writer(gate))
        problems = [Problem(f"{each.root}/{each.file_path}", "roll-back failed") for each in failed]
        report.problems += [each for each in problems if each not in report.problems]
        return {each.file_path for each in failed}

    def _find(self, file: Path | None, folder: Path | None, forced: Source | None, report: Report) -> Iterator[Found]:
        if file is not None:
            if not file.is_file():
                raise UsageError(f"{file}: is a folder; use --dir" if file.is_dir() else no_file(file))
            found = self._look(file, forced, report)
            if found and found.size and not (forced or _told(Path(found.path))[0]):
                report.problems.append(Problem(found.path, "no transcript of a known agent"))
                report.skipped += 1
            elif found:
                yield found
            return
        if folder is not None:
            if not folder.is_dir():
                raise UsageError(f"{folder}: {'not a folder; use --file' if folder.exists() else 'no such folder'}")
            yield from self._scan(folder, report)
            return
        for name, roots in self.roots().items():
            there = [root for root in roots if root.is_dir() and (forced is None or forced.name == name)]
            best: dict[str, Found] = {}  # of a file and its backup, which are one, the one that has more
            for each in (each for root in there for each in self._scan(root, report)):
                if each.key not in best or each.size > best[each.key].size:
                    best[each.key] = each
            yield from best.values()

    def _scan(self, folder: Path, report: Report) -> Iterator[Found]:
        """Keys are relative to the folder, or to the agent's own root that it, or the file, lies in."""
        folder = _absolute(folder)
        above, below = self._root_above(folder), self._roots_below(folder)
        own = folder.is_relative_to(self._settings.turns)
        for found in scan(folder, self._ignore, None if own else self._settings.home, report.problems):
            root = above or next((each for each in below if found.path.startswith(f"{each}/")), None)
            yield keyed(found, root) if root else found

    def _look(self, path: Path, forced: Source | None, report: Report) -> Found | None:
        """A single file, keyed relative to the root that its source would have."""
        path = _absolute(path)
        if self._ignore.matches(str(path)):
            report.skipped += 1
            return None
        try:
            if root := self._root_above(path):  # most are not even opened: their stat tells that they did not change
                return look(path, root)
            source = forced or _told(path)[0]
            return look(path, source.root_of(path) if source else path.parent)
        except OSError as error:
            report.problems.append(Problem.of(str(path), error))
            return None

    def _root_above(self, path: Path) -> Path | None:
        absolute = str(path.absolute())
        return next((each for each in self._every_root if absolute.startswith(f"{str(each).rstrip('/')}/")), None)

    def _roots_below(self, folder: Path) -> list[Path]:
        below = (each for each in self._every_root if each.is_relative_to(folder.absolute()))
        return [root for root in below if root != folder.absolute()]

    @cached_property
    def _every_root(self) -> list[Path]:
        return [root.absolute() for roots in self.roots().values() for root in roots]

    def _is_misplaced(self, source: Source, root: str) -> bool:
        """Our own folder holds our own logs only; agents' folders hold none: what is written there, no person said."""
        if root == str(self._settings.turns):
            return source.name != note.SOURCE
        if source.name != note.SOURCE:
            return False
        theirs = (each for name, roots in self.roots().items() if name != note.SOURCE for each in roots)
        return root in {str(each.absolute()) for each in theirs}

    def _notes_elsewhere(self, found: Sequence[Found], forced: Source | None) -> str:
        """A log of ours among these that would be read, and lies in no folder for them; empty: there is none."""
        own = {str(each.absolute()) for each in self.roots()[note.SOURCE]}
        for each in (each for each in found if each.root not in own):
            with suppress(OSError):  # whoever reads it says so
                source = forced or _told(Path(each.path))[0]
                if source and source.name == note.SOURCE and not self._is_misplaced(source, each.root):
                    return each.path
        return ""

    def _changed(self, found: Sequence[Found], report: Report, everything: bool = False) -> tuple[list[Found], int]:
        """Those whose stat is not what it was when they were read, and how many bytes of them were not read yet."""
        if everything:
            return list(found), sum(each.size for each in found)
        with self._database.read() as tx:
            known = files.signatures(tx, self._owner, [each.key for each in found])
        changed = [each for each in found if self._signatures(each).isdisjoint(known.get(each.key, ()))]
        report.skipped += len(found) - len(changed)
        offsets = (max(known.get(each.key, {}).values(), default=0) for each in changed)
        return changed, sum(max(each.size - offset, 0) for each, offset in zip(changed, offsets, strict=True))

    def _signatures(self, found: Found) -> set[str]:
        """Of the file as it is, where all of it, or not all, was allowed."""
        return {found.signature, files.signed(found.signature, self._switches)}

    def _choose(self, changed: Sequence[Found], gate: Gate, forced: Source | None, report: Report) -> Iterator[Work]:
        """Drops what is unwanted or no transcript."""
        unknown: list[FileState] = []
        for each in changed:
            if each.size == 0:
                report.skipped += 1
                continue
            try:
                told, head = _told(Path(each.path))
            except OSError as error:
                report.problems.append(Problem.of(each.path, error))
                report.skipped += 1
                continue
            if gate.excludes_file(each.path, told, head):
                report.skipped += 1
                unknown.append(_passed_over(each, files.signed(each.signature, self._switches)))
                continue
            source = forced or told
            if source and source.wants(PurePath(each.key)) and not self._is_misplaced(source, each.root):
                yield Work(each, source)
                continue
            report.skipped += 1
            unknown.append(
                FileState(UNKNOWN, each.key, stored(each.root), signature=each.signature, file_size=each.size)
            )
        if unknown:
            with self._database.write() as tx:
                files.save(tx, self._owner, unknown)


def _without(found: Sequence[Found], keys: Collection[str], report: Report) -> list[Found]:
    """The files but for those with these keys, which are skipped."""
    kept = [each for each in found if each.key not in keys]
    report.skipped += len(found) - len(kept)
    return kept


def _passed_over(found: Found, signature: str) -> FileState:
    return FileState(UNKNOWN, found.key, stored(found.root), signature=signature, file_size=found.size)


def _literal(glob: str) -> str:
    """With markers that stand for themselves, and for no set of characters."""
    return glob.replace("[redacted:", "[[]redacted:")


def _expanded(text: str, settings: Settings) -> str:
    """A path from `~` or `~name`; all else, names and globs too, as it is."""
    is_path = text == "~" or (text.startswith("~") and "/" in text and not _GLOB.search(text.partition("/")[0]))
    return str(settings.expand(text)) if is_path else text


def _absolute(path: Path) -> Path:
    """Without `..`, links as they are: keys are relative to a root that it must lie in."""
    return Path(os.path.abspath(path))  # noqa: PTH100


def _is_ours(conversation: Conversation) -> bool:
    """Notes, and chats: what a turn says was weighed when it was said, however short the talk."""
    return conversation.source == note.SOURCE


def _told(path: Path) -> tuple[Source | None, list[bytes]]:
    """The source of a file by its content, and the lines that told it."""
    lines: list[bytes] = []
    with Transcript(path) as transcript:
        for lines in transcript.head():
            if source := detect(lines):
                return source, lines
    return None, lines
