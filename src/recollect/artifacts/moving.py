"""Export and import: everything that cannot be derived, in one archive, and back from it on any machine and database.

What only rows hold is written into files first, where that takes no model; the rest is counted. Rows go into the
archive before files do: whatever a row says was done, its files are there. Coming back it is the other way round:
files, then what follows from them, then rows, so that nothing counts as done before it is there. Nothing is written
before the whole archive was checked, nothing that is there is changed, and an import that was interrupted is simply run
again.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.metadata import version
from itertools import groupby
from pathlib import Path
from typing import IO, Any

import msgspec

from recollect.artifacts import archive, names, tombstones
from recollect.artifacts.archive import LARGEST, LIST, TURNS, BadArchive, Contents, Member
from recollect.artifacts.document import BadFrontmatter, Document
from recollect.artifacts.files import Files
from recollect.artifacts.names import TOMBSTONES, Kind, Name, session_token
from recollect.artifacts.reindex import Assessed, Held, Problem, Report, assess, unreadable
from recollect.artifacts.tombstones import Graveyard, Tombstone
from recollect.artifacts.upkeep import Upkeep
from recollect.errors import ArtifactError, SchemaTooNew, StoreFull, UsageError, no_file
from recollect.extract.jobs import KIND as EXTRACT
from recollect.ingest.run import KIND as INGEST
from recollect.models.base import ToolRefused
from recollect.note import SOURCE
from recollect.store import artifacts as artifact_rows
from recollect.store import conversations, transfer
from recollect.store.ground import Ground, Part
from recollect.store.migrate import migrations
from recollect.store.tombstones import entry_hash
from recollect.turns.log import reaction_ids, told_ids
from recollect.types import JobStatus, timestamp
from recollect.workspace import READ_LIMIT, Workspace, make_private

_PAGE = 500  # rows in memory, and in a commit, at a time
_SPOOL = 8 << 20  # bytes of rows that are kept in memory before they are packed
_TRIES = 3  # to see a conversation as a whole while it is being written
_FILES = "memory_file_states"


@dataclass(slots=True)
class Exported:
    """The JSON of `recollect export`."""

    file: str
    bytes: int = 0
    conversations: int = 0
    artifacts: int = 0
    tombstones: int = 0
    turns: int = 0  # logs and buckets
    rows: dict[str, int] = field(default_factory=dict)
    waiting: int = 0  # conversations of which something has no file yet, and did not go along
    problems: list[Problem] = field(default_factory=list)  # what could not go along


@dataclass(frozen=True, slots=True)
class Conflict:
    """A file that is here with another content; its conversation was left as it is."""

    path: str
    what: str


@dataclass(slots=True)
class Imported:
    """The JSON of `recollect import`."""

    file: str
    conversations: int = 0  # of which something is new
    created: int = 0  # files
    unchanged: int = 0  # files that are here already
    erased: int = 0  # files that were erased, and stay so
    left_out: list[str] = field(default_factory=list)  # logs that are not here, and may tell what was erased here
    rows: dict[str, int] = field(default_factory=dict)  # new ones
    known_rows: int = 0  # that are here already, or follow from the files
    conflicts: list[Conflict] = field(default_factory=list)
    index: Report | None = None


_BASELINE = ("selected_for_phase2_source_updated_at", "selected_for_phase2_generated_at")


# Decisions


def carried(table: str, row: Mapping[str, Any], files: set[tuple[str, str]]) -> dict[str, Any] | None:
    """The row as it holds on another machine; None: it means nothing there. `files` are those that go along."""
    if table == "memory_malformed_lines":
        return dict(row) if (row["source"], row["file_path"]) in files else None
    if table == "memory_stage1_use":  # the workspace is made anew there
        return {**row, "selected_for_phase2": 0, **dict.fromkeys(_BASELINE, "")}
    if table == "memory_vector_models":  # vectors and their folders are made there
        return None
    if table != "memory_jobs":
        return dict(row)
    if row["kind"] == INGEST and tuple(row["job_key"].split("/", 1)) not in files:
        return None
    if row["kind"] not in (INGEST, EXTRACT):  # what they keep is derived, and made there
        return None
    status = JobStatus.PENDING if row["status"] == JobStatus.RUNNING else row["status"]
    return {**row, "status": str(status), "worker": "", "lease_expires_at": ""}


def welcome(table: str, row: Mapping[str, Any], agent_id: str, touched: frozenset[str]) -> bool:
    """False: it may hold words that were erased here since. `touched` are tokens of conversations that lost some."""
    if not touched:
        return True
    if table == "memory_answers" and row["kind"] == EXTRACT:
        return session_token(agent_id, row["job_key"], "") not in touched
    return table not in (_FILES, "memory_answers", "memory_active_sets")  # which do not say whose words they hold


@dataclass(frozen=True, slots=True)
class Plan:
    create: frozenset[str]
    unchanged: frozenset[str]
    erased: frozenset[str]
    conflicts: tuple[Conflict, ...]


def plan(members: Mapping[str, Member], here: Mapping[str, str], erased: Graveyard) -> Plan:
    """Which canonical files are written. `here`: path → hash of those that are there; empty: not readable."""
    wanted = [name for path in members if (name := names.parse(path))]
    gone = {name.path for name in wanted if name.kind is not Kind.TOMBSTONE and erased.covers(name)}
    touched = {name.token for name in wanted if name.path in gone}
    kept = sorted(_group(name) for name in wanted if name.path not in gone)
    groups = groupby(kept, lambda each: each[0])
    create: set[str] = set()
    unchanged: set[str] = set()
    conflicts: list[Conflict] = []
    for group, pairs in groups:
        paths = [path for _, path in pairs]
        differ = [path for path in paths if path in here and here[path] != members[path].sha256]
        only_manifests = all(path.endswith(f"--{Kind.MANIFEST}.md") for path in differ)
        if group in touched and only_manifests and all(path in here for path in paths):
            gone.update(differ)  # it lists what was erased, and nothing that is not here
            differ, paths = [], [path for path in paths if path not in gone]
        conflicts += [Conflict(path, "it is here with another content") for path in differ]
        if not differ:
            unchanged.update(path for path in paths if path in here)
            create.update(path for path in paths if path not in here)
    return Plan(frozenset(create), frozenset(unchanged), frozenset(gone), tuple(conflicts))


def _group(name: Name) -> tuple[str, str]:
    """Files of one conversation come in together or not at all; a tombstone waits for nobody."""
    return (name.path if name.kind is Kind.TOMBSTONE else name.token), name.path


def joined(ours: str | None, theirs: str) -> str | None:
    """A log only ever grows: the longer of two of which one begins the other. None when they differ."""
    if ours is None or theirs.startswith(ours):
        return theirs
    return ours if ours.startswith(theirs) else None


def unerased(log: str, hashes: Set[str]) -> str:
    """A turn log without the lines that tell what was erased, or tell something about it. Turns keep their ids, so
    texts need no look."""
    if not hashes:
        return log
    told = ((line, [*told_ids(line.encode()), *reaction_ids(line.encode())]) for line in log.split("\n"))
    return "\n".join(line for line, ids in told if not any(entry_hash(SOURCE, each) in hashes for each in ids))


def buried(stones: Iterable[Tombstone | None], agent_id: str) -> frozenset[str]:
    """Tokens of the conversations that lost something."""
    graves = tombstones.graveyard(stones, agent_id)
    return graves.tokens | {name.token for path in graves.paths if (name := names.parse(path))}


# Export


class Export(Part):
    def __init__(self, ground: Ground, upkeep: Upkeep) -> None:
        super().__init__(ground)
        self._files = Files(self._settings.root)
        self._upkeep = upkeep

    def run(self, file: Path, *, force: bool = False) -> Exported:
        if file.is_dir() or not file.parent.is_dir():
            raise UsageError(f"{file} is no place for a file", hint="Give the archive's name in a folder that exists.")
        if file.exists() and not force:
            raise UsageError(f"{file} exists", hint="Choose another name, or --force to replace it.")
        make_private(self._settings.home)
        report = Exported(str(file), waiting=self._settle())
        descriptor, part = tempfile.mkstemp(prefix=f".{file.name}.", suffix=".part", dir=file.parent)  # owner-only
        try:
            with os.fdopen(descriptor, "wb") as out:
                self._pack(archive.Writer(out, int(self._clock().timestamp())), report)
                out.flush()
                os.fsync(out.fileno())
                report.bytes = out.tell()
            Path(part).replace(file)
        except BaseException:
            with suppress(FileNotFoundError):
                Path(part).unlink()
            raise
        _sync_folder(file.parent)
        return report

    def _settle(self) -> int:
        """Files for what only rows hold, as far as that takes no model. How many conversations are left over."""
        before = -1
        while (left := self._waiting()) != before and self._upkeep.run().written:
            before = left
        return left

    def _waiting(self) -> int:
        with self._database.read() as tx:
            return conversations.not_in_files(tx, self._owner, but=SOURCE)  # turn logs go along

    def _pack(self, writer: archive.Writer, report: Exported) -> None:
        files: set[tuple[str, str]] = set()
        for table in sorted(transfer.operational().values(), key=lambda each: each.name != _FILES):
            report.rows[table.name] = self._pack_rows(writer, table, files)
        stones = tombstones.read_all(self._files)
        report.problems += unreadable(stones)
        for path, stone in stones.items():
            is_ours = stone is not None and stone.agent_id == self._owner.agent_id
            if is_ours and (text := self._files.read(path)) is not None:
                report.tombstones += 1
                writer.add(path, text.encode())
        listed = sorted((name.token, name) for name in self._files.names())
        told = (name for _, name in listed)
        graves = tombstones.erased(stones.values(), self._database, self._owner, told)
        for token, pairs in groupby(listed, lambda each: each[0]):
            self._pack_conversation(writer, token, [name for _, name in pairs], graves, report)
        self._pack_turns(writer, report)
        made = (version("recollect"), migrations()[-1].version, self._owner.agent_id, timestamp(self._clock()))
        writer.finish(Contents(archive.FORMAT, *made, writer.members))

    def _pack_rows(self, writer: archive.Writer, table: transfer.Table, files: set[tuple[str, str]]) -> int:
        number, size, hashed = 0, 0, hashlib.sha256()
        after: tuple[Any, ...] | None = None
        with tempfile.SpooledTemporaryFile(_SPOOL, dir=str(self._settings.home)) as spool:
            while True:
                with self._database.read() as tx:
                    rows = transfer.page(tx, self._owner, table, after, _PAGE)
                for row in rows:
                    if table.name == _FILES:
                        files.add((row["source"], row["file_path"]))
                    if (kept := carried(table.name, row, files)) is not None:
                        line = msgspec.json.encode(kept) + b"\n"
                        spool.write(line)
                        hashed.update(line)
                        number, size = number + 1, size + len(line)
                if len(rows) < _PAGE:
                    break
                after = tuple(rows[-1][name] for name in table.key)
            spool.seek(0)
            writer.copy(f"tables/{table.name}.jsonl", spool, Member(size, hashed.hexdigest()))
        return number

    def _pack_conversation(
        self, writer: archive.Writer, token: str, there: Sequence[Name], graves: Graveyard, report: Exported
    ) -> None:
        for attempt in range(_TRIES):
            texts, documents = self._read(there)
            if self._is_foreign(documents):
                return
            found = assess(Held(dict.fromkeys(documents, ""), documents), self._owner.agent_id, graves)
            if attempt + 1 == _TRIES or not any(each.kind == "BrokenLink" for each in found.problems):
                break
            there = self._files.names(token)  # it was being written
        problems = [*found.problems, *self._edited(found)]
        report.problems += problems
        bad = {each.path for each in problems if each.kind not in ("BrokenLink", "NoManifest")}
        good = [
            name for name in sorted(texts, key=lambda each: (each.kind is Kind.MANIFEST, each)) if name.path not in bad
        ]
        for name in good:
            data = texts[name].encode()
            if len(data) > LARGEST:
                report.problems.append(Problem(name.path, "TooLarge", f"{len(data):,} bytes are too many"))
                continue
            writer.add(name.path, data)
            report.artifacts += 1
        report.conversations += bool(good)

    def _edited(self, found: Assessed) -> Iterator[Problem]:
        """Files whose frontmatter is not what it was when they were indexed: a checksum is of the body alone."""
        key = found.session_key
        with self._database.read() as tx:
            known = {row.source_path: row for row in artifact_rows.of_keys(tx, self._owner, [key]).get(key, ())}
        for row in found.files:
            was = known.get(row.source_path, row)
            if row._replace(signature="") != was._replace(signature=""):
                what = ", ".join(
                    name for name in row._fields if name != "signature" and getattr(row, name) != getattr(was, name)
                )
                yield Problem(row.source_path, "Edited", f"its frontmatter was changed by hand: {what}")

    def _read(self, there: Iterable[Name]) -> tuple[dict[Name, str], dict[Name, Document | ArtifactError]]:
        """Texts with our line ends, and what they say, as far as an import would take them."""
        texts: dict[Name, str] = {}
        documents: dict[Name, Document | ArtifactError] = {}
        for name in there:
            try:
                if (text := self._files.read(name.path)) is None:
                    continue
                texts[name] = text.replace("\r\n", "\n")
                found = archive.checked(name, texts[name])
                if isinstance(found, Tombstone):
                    raise BadFrontmatter("a tombstone lies elsewhere")
                documents[name] = found
            except ArtifactError as error:
                documents[name] = error
        return texts, documents

    def _is_foreign(self, documents: Mapping[Name, Document | ArtifactError]) -> bool:
        agents = {each.head.agent_id for each in documents.values() if isinstance(each, Document)}
        broken = (name.path for name, each in documents.items() if isinstance(each, ArtifactError))
        return bool(agents - {self._owner.agent_id} or self._files.others(broken, self._owner.agent_id))

    def _pack_turns(self, writer: archive.Writer, report: Exported) -> None:
        folder = Workspace(self._settings.turns, most=None)
        for path in folder.files():
            try:
                text = folder.read(path)
            except ToolRefused as error:
                report.problems.append(Problem(f"{TURNS}{path}", "TooLarge", str(error)))
                continue
            if archive.is_file(f"{TURNS}{path}"):
                writer.add(f"{TURNS}{path}", text[: text.rfind("\n") + 1].encode())
                report.turns += 1


# Import


class Import(Part):
    """`rebuild` makes the derived rows and MEMORY.md; `wrote` is called after every file and commit: a test crashes
    there."""

    def __init__(
        self, ground: Ground, rebuild: Callable[[], Report], *, wrote: Callable[[str], None] = lambda what: None
    ) -> None:
        super().__init__(ground)
        self._rebuild = rebuild
        self._wrote = wrote
        self._files = Files(self._settings.root, wrote=wrote)

    def run(self, file: Path) -> Imported:
        if not file.is_file():
            raise UsageError(no_file(file), hint="`recollect export FILE` makes one.")
        make_private(self._settings.home)
        report = Imported(str(file))
        with file.open("rb") as opened:
            check = _Check()
            archive.walk(opened, check.visit)
            contents = check.verdict(self._owner.agent_id)
            here = tombstones.read_all(self._files)
            stones = [*check.stones, *here.values()]
            told = (name for path in contents.members if (name := names.parse(path)))
            erased = tombstones.erased(stones, self._database, self._owner, told)
            since = buried(
                (stone for path, stone in here.items() if path not in contents.members), self._owner.agent_id
            )
            chosen = plan(contents.members, self._here(contents.members), erased)
            self._require_space(contents, chosen)
            report.unchanged, report.erased = len(chosen.unchanged), len(chosen.erased)
            report.conflicts += chosen.conflicts
            self._write_files(opened, contents, chosen, erased.hashes, since, report)
            report.index = self._rebuild()
            self._write_rows(opened, since, report)
        return report

    def _here(self, members: Iterable[str]) -> dict[str, str]:
        there = {each.path for within in (names.FOLDER, TOMBSTONES) for each in self._files.names(within=within)}
        found = {}
        for path in there.intersection(members):
            try:
                found[path] = hashlib.sha256((self._files.read(path) or "").encode()).hexdigest()
            except ArtifactError:
                found[path] = ""
        return found

    def _require_space(self, contents: Contents, chosen: Plan) -> None:
        needed = sum(each.size for path, each in contents.members.items() if path in chosen.create) * 2  # and the rows
        free = shutil.disk_usage(self._settings.home).free
        if needed > free:
            raise StoreFull(f"{needed:,} bytes are needed under {self._settings.home}, and {free:,} are free")

    def _write_files(
        self,
        opened: IO[bytes],
        contents: Contents,
        chosen: Plan,
        erased: Set[str],
        since: frozenset[str],
        report: Imported,
    ) -> None:
        """`erased`: hashes of what was said; `since`: conversations that lost something here after the archive was
        made."""
        turns = Workspace(self._settings.turns, most=None)
        new: set[str] = set()

        def visit(name: str, size: int, data: IO[bytes]) -> None:
            if name not in chosen.create and not name.startswith(TURNS):
                return
            text = _again(name, archive.whole(name, size, data), contents)
            if name.startswith(TURNS):
                left = unerased(text, erased)
                if since and not (turns.root / name.removeprefix(TURNS)).exists():
                    report.erased += not left.strip()
                    report.left_out += [name] if left.strip() else []
                else:
                    self._write_turns(turns, name, left, report)
            elif self._files.create(name, text):
                report.created += 1
                if not name.startswith(TOMBSTONES):
                    new.add(name.split("--")[1])
            else:
                report.unchanged += 1

        archive.walk(opened, visit)
        report.conversations = len(new)

    def _write_turns(self, folder: Workspace, name: str, text: str, report: Imported) -> None:
        path = name.removeprefix(TURNS)
        try:
            ours = folder.read(path) if (folder.root / path).exists() else None
            both = joined(ours, text)
            if both is None:
                report.conflicts.append(Conflict(name, "it is here with other lines"))
            elif folder.write(path, both, limit=READ_LIMIT):
                report.created += 1
                self._wrote(name)
            else:
                report.unchanged += 1
        except ToolRefused as error:
            report.conflicts.append(Conflict(name, str(error)))

    def _write_rows(self, opened: IO[bytes], touched: frozenset[str], report: Imported) -> None:
        files: set[tuple[str, str]] = set()

        def visit(name: str, size: int, data: IO[bytes]) -> None:
            table = archive.table_of(name)
            if table is None:
                return
            batch: list[dict[str, Any]] = []
            for _, row in archive.rows(name, table, data):
                if welcome(table.name, row, self._owner.agent_id, touched):
                    if table.name == _FILES:
                        files.add((row["source"], row["file_path"]))
                    if (kept := carried(table.name, row, files)) is not None:
                        batch.append(kept)
                if len(batch) == _PAGE:
                    self._add(table, batch, report)
                    batch = []
            self._add(table, batch, report)

        archive.walk(opened, visit)

    def _add(self, table: transfer.Table, batch: Sequence[Mapping[str, Any]], report: Imported) -> None:
        with self._database.write() as tx:
            added = transfer.add(tx, self._owner, table, batch)
        report.rows[table.name] = report.rows.get(table.name, 0) + added
        report.known_rows += len(batch) - added
        self._wrote(table.name)


class _Check:
    """Looks at every member of an archive, and changes nothing."""

    def __init__(self) -> None:
        self.stones: list[Tombstone] = []
        self._seen: dict[str, Member] = {}
        self._agents: set[str] = set()
        self._unknown = ""
        self._contents: Contents | None = None

    def visit(self, name: str, size: int, data: IO[bytes]) -> None:
        if self._contents is not None or name in self._seen:
            raise BadArchive(f"{name[:200]!r} stands in the archive twice, or behind its end")
        if name == LIST:
            self._contents = archive.contents(archive.whole(name, size, data))
            return
        hashed = hashlib.sha256()
        table = archive.table_of(name)
        if table is not None:
            for line, row in archive.rows(name, table, data):
                hashed.update(line)
                _check_states(name, table.name, row)
        elif archive.is_file(name):
            whole = archive.whole(name, size, data)
            hashed.update(whole)
            self._look_at(name, whole)
        else:
            self._unknown = self._unknown or name[:200]
        self._seen[name] = Member(size, hashed.hexdigest())

    def _look_at(self, name: str, data: bytes) -> None:
        try:
            text = data.decode()
        except UnicodeDecodeError:
            raise BadArchive(f"{name} in the archive is no text") from None
        parsed = names.parse(name)
        if parsed is None:
            return
        found = archive.canonical(parsed, text)
        self._agents.add(found.agent_id if isinstance(found, Tombstone) else found.head.agent_id)
        if isinstance(found, Tombstone):
            self.stones.append(found)

    def verdict(self, agent_id: str) -> Contents:
        """What the archive says of itself, now that all of it was seen."""
        told = self._contents
        if told is None:
            raise BadArchive("the archive ends too early")
        if told.format > archive.FORMAT or told.schema > migrations()[-1].version:
            raise SchemaTooNew(f"the archive was made by recollect {told.recollect[:40]}, which is newer")
        if self._unknown:
            raise BadArchive(f"{self._unknown!r} does not belong into an archive")
        for name in self._seen.keys() ^ told.members.keys():
            raise BadArchive(f"{name[:200]!r} is in the archive or on its list, and not in both")
        for name, member in self._seen.items():
            if told.members[name] != member:
                raise BadArchive(f"{name} in the archive is not what its list says")
        if self._agents - {told.agent_id}:
            raise BadArchive("the archive holds files of several agents")
        if told.agent_id != agent_id:
            raise UsageError(
                f"the archive holds the memory of {told.agent_id[:64]!r}, and this is {agent_id!r}",
                hint=f"Run it with --agent-id {told.agent_id[:64]}.",
            )
        return told


def _check_states(name: str, table: str, row: Mapping[str, Any]) -> None:
    """What the rest of recollect takes for granted of a row."""
    if table == "memory_jobs" and row.get("status") not in set(JobStatus):
        raise BadArchive(f"{name} in the archive: no job is {str(row.get('status'))[:40]!r}")
    if table == _FILES and row.get("status") != "idle":
        raise BadArchive(f"{name} in the archive: a file that is not idle")


def _again(name: str, data: bytes, contents: Contents) -> str:
    """The same as when it was checked."""
    if hashlib.sha256(data).hexdigest() != contents.members[name].sha256:
        raise BadArchive(f"{name}: the archive changed while it was read", hint="Run it again.")
    return data.decode()


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
