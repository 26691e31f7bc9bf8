"""The archive's form: a tar file compressed with zstandard, whose last member lists all others with their hashes.

    tables/memory_jobs.jsonl …            operational rows, one JSON object per line
    memory/….md, memory/tombstones/….md   canonical files
    turns/<project>/<user>/<talk>.jsonl   turn logs
    turns/<project>/<user>/buckets/<id>.json   what a user said over many turns
    recollect.json                        versions, whose memory it is, size and hash of every member

Nothing but plain files under these names is read from an archive: everything else in it makes it a bad one. Members
pass through one at a time, so that memory does not grow with the archive.
"""

from __future__ import annotations

import hashlib
import io
import re
import tarfile
from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import IO, Any

import msgspec
import zstandard

from recollect.artifacts import bodies, names, tombstones
from recollect.artifacts.document import BadFrontmatter, Content, Document, Manifest, parse
from recollect.artifacts.names import Kind, Name
from recollect.artifacts.rows import compacted, messages_of, parsed_summary
from recollect.artifacts.tombstones import Tombstone
from recollect.errors import ArtifactError, RecollectError
from recollect.store import transfer

FORMAT = 1
LIST = "recollect.json"
TURNS = "turns/"
LARGEST = 64 << 20  # bytes of a member, or of a line of rows: as much is in memory at once

_TABLE = re.compile(r"tables/(\w{1,64})\.jsonl", re.ASCII)
_PART = r"[a-z0-9][a-z0-9_-]{0,63}"
_TURNS = re.compile(rf"turns/{_PART}/{_PART}/(?:{_PART}\.jsonl|buckets/b-[0-9a-f]{{12}}\.json)", re.ASCII)
_WINDOW = 1 << 27  # of the decompressor: what a stranger may make us set aside


class BadArchive(RecollectError):
    """This is no archive of recollect, or a damaged one."""

    hint = "Nothing was changed. Copy the archive again, or make a new one with `recollect export`."


class Member(msgspec.Struct, frozen=True):
    size: int
    sha256: str


class Contents(msgspec.Struct, frozen=True):
    """The last member."""

    format: int
    recollect: str  # version that wrote it
    schema: int  # of its database
    agent_id: str
    created_at: str
    members: dict[str, Member]


def table_of(name: str) -> transfer.Table | None:
    found = _TABLE.fullmatch(name)
    return transfer.operational().get(found[1]) if found else None


def is_file(name: str) -> bool:
    """A canonical file or a turn log, and nothing that leads anywhere else."""
    parsed = names.parse(name)
    return (parsed is not None and parsed.path == name) or _TURNS.fullmatch(name) is not None


# Writing


class Writer:
    def __init__(self, file: IO[bytes], written_at: int) -> None:
        self._stream = zstandard.ZstdCompressor(level=6, write_checksum=True).stream_writer(file, closefd=False)
        self._tar = tarfile.open(fileobj=self._stream, mode="w|", format=tarfile.USTAR_FORMAT)  # noqa: SIM115 - `finish`
        self._written_at = written_at
        self.members: dict[str, Member] = {}

    def add(self, name: str, data: bytes) -> None:
        self.copy(name, io.BytesIO(data), Member(len(data), hashlib.sha256(data).hexdigest()))

    def copy(self, name: str, data: IO[bytes], member: Member) -> None:
        """From where `data` stands."""
        info = tarfile.TarInfo(name)
        info.size, info.mtime, info.mode = member.size, self._written_at, 0o600
        self._tar.addfile(info, data)
        self._tar.members.clear()  # type: ignore[attr-defined]  # it would keep every one
        self.members[name] = member

    def finish(self, contents: Contents) -> None:
        self.add(LIST, msgspec.json.encode(contents))
        self._tar.close()
        self._stream.flush(zstandard.FLUSH_FRAME)


# Reading

Visit = Callable[[str, int, IO[bytes]], None]
"""Takes a member's name, size and data; what it does not read is passed over."""


def walk(file: IO[bytes], visit: Visit) -> None:
    """Every member in order. BadArchive for whatever is not a plain file or cannot be read."""
    file.seek(0)
    try:
        with (
            zstandard.ZstdDecompressor(max_window_size=_WINDOW).stream_reader(file, closefd=False) as stream,
            tarfile.open(fileobj=stream, mode="r|", tarinfo=_Plain) as tar,
        ):
            for info in tar:
                data = tar.extractfile(info)
                assert data is not None
                visit(info.name, info.size, data)
                tar.members.clear()  # type: ignore[attr-defined]
    except (zstandard.ZstdError, tarfile.TarError, EOFError) as error:
        raise BadArchive(f"the archive cannot be read: {error}") from error


class _Plain(tarfile.TarInfo):
    """Refuses links, devices and headers that go on elsewhere before any of them is acted on."""

    def _proc_member(self, tar: Any) -> tarfile.TarInfo:
        if self.type not in (tarfile.REGTYPE, tarfile.AREGTYPE) or self.size < 0:
            raise BadArchive(f"{self.name[:200]!r} in the archive is no plain file")
        return super()._proc_member(tar)  # type: ignore[misc, no-any-return]


def whole(name: str, size: int, data: IO[bytes]) -> bytes:
    if size > LARGEST:
        raise BadArchive(f"{name} in the archive is too large: {size:,} bytes")
    return data.read()


def rows(name: str, table: transfer.Table, data: IO[bytes]) -> Iterator[tuple[bytes, dict[str, Any]]]:
    """Each line, and the row that it is."""
    columns: frozenset[str] | None = None
    while line := data.readline(LARGEST + 1):
        try:
            row = msgspec.json.decode(line, type=dict[str, str | int | None])
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise BadArchive(f"{name} in the archive: {error}") from None
        columns = columns or frozenset(row)
        wrong = table.wrong(row) or ("" if columns == frozenset(row) else "its rows have different columns")
        if wrong:
            raise BadArchive(f"{name} in the archive: {wrong}")
        yield line, row


_WORDS, _NUMBER = transfer.Column("", 0, nullable=True), transfer.Column("", 63, nullable=False)
_TEXT = r'"(?:[^"\\]|\\.)*"'
_FRONT = re.compile(
    rf"(?:[a-z0-9_]+:(?: (?:{_TEXT}|null|-?\d{{1,18}}|\[\]))?|(?:- |  )(?:[a-z0-9_]+: )?{_TEXT})", re.ASCII
)


def canonical(name: Name, text: str) -> Document | Tombstone:
    """The file under this name, or BadArchive when it is not what was once written there."""
    try:
        return checked(name, text)
    except ArtifactError as error:
        raise BadArchive(f"{name.path} in the archive: {error.message}") from None


def checked(name: Name, text: str) -> Document | Tombstone:
    """The same for a file that is no archive's yet: an ArtifactError says why none would take it."""
    front = text.partition("\n---\n")[0].removeprefix("---\n")
    if "\r" in text or not all(_FRONT.fullmatch(line) for line in front.split("\n")):
        raise BadFrontmatter("its frontmatter is not as recollect writes it")
    found = tombstones.parse(text) if name.kind is Kind.TOMBSTONE else parse(text)
    if not all((_NUMBER if isinstance(each, int) else _WORDS).holds(each) for each in _stored(found)):
        raise bodies.BadBody("it holds what no database can hold")
    told = found.path if isinstance(found, Tombstone) else found.name.path
    if told != name.path:
        raise BadFrontmatter(f"by its frontmatter it is {told}")
    if isinstance(found, Document):
        _check_links(name, found.head)
    return found


def _check_links(name: Name, head: Content | Manifest) -> None:
    if isinstance(head, Content) and not head.manifest_path.endswith(f"--{Kind.MANIFEST}.md"):
        raise BadFrontmatter(f"it leads to {head.manifest_path[:200]!r}, which is no manifest")
    for path in head.paths if isinstance(head, Manifest) else [head.manifest_path]:
        there = names.parse(path)
        if there is None or there.path != path or there.token != name.token:
            raise BadFrontmatter(f"it leads to {path[:200]!r}, which is not its own")


def _stored(found: Document | Tombstone) -> Iterator[str | int | None]:
    """What of a file becomes rows. BadBody when its body is not what its kind has."""
    if isinstance(found, Tombstone):
        yield from found.hashes
        return
    head = found.head
    yield found.body
    yield from (value for value in asdict(head).values() if type(value) is str)
    if head.kind is Kind.TRANSCRIPT:
        for message in messages_of(found):
            yield from (message.uuid, message.tools, message.cwd, message.project_id, message.branch)
    elif head.kind is Kind.SUMMARY:
        for memory in parsed_summary(found).memories:
            yield from (memory.revision, memory.scope_id)
            yield from (uuid for _, uuid in memory.sources)
    elif head.kind is Kind.COMPACTION:
        yield compacted(found).uuid


def contents(data: bytes) -> Contents:
    try:
        return msgspec.json.decode(data, type=Contents)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadArchive(f"{LIST} in the archive: {error}") from None
