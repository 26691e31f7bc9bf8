"""The hand that writes turn logs: one redacted JSON line per turn, reaction or note, appended and synced.

A line is written as a whole under a lock that the kernel gives back when a process dies; what a crash left half-written
is closed first, so that it spoils no other line. Names in a path are made safe, every folder is opened by name below
the root and never through a link, and all of it is its owner's alone. What the lines say is defined in
`recollect.ingest.sources.recollect`.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache, wraps
from pathlib import Path
from typing import IO, Any, ParamSpec, TypeVar

import msgspec

from recollect.errors import ArtifactError
from recollect.ingest.sources.base import UNDECODABLE, Malformed, State
from recollect.ingest.sources.recollect import (
    TYPE,
    Noted,
    Reaction,
    Retired,
    Turn,
    entry_id,
    fold,
    reacted,
    reaction_id,
    session,
)
from recollect.redact import redact
from recollect.text import in_texts
from recollect.types import Entry, Role
from recollect.workspace import make_private

VERSION = 1

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_APPEND = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
_LOCK = ".lock"
_PLAIN = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}", re.ASCII)
_HASHED = re.compile(r".*-[0-9a-f]{8}", re.ASCII)
_LONGEST = 48
# Bytes, some 200 turns: where a turn is looked for whose process died before its rows were written. One further back
# would stand there twice, and counts once, as its first line has it.
_LOOK_BACK = 512 * 1024
_NAMES = frozenset(
    ("line", "id", "at", "answered_at", "project", "user", "conversation", "turn", "memory", "memory_of", "target")
)


_TRIES = 8  # to write into a folder that others remove
_P = ParamSpec("_P")
_R = TypeVar("_R")


class RevisionChanged(ArtifactError):
    """Somebody else wrote the file in the meantime; read it and try again."""


def _again(write: Callable[_P, _R]) -> Callable[_P, _R]:
    """A folder in which nothing is left goes with what is erased, also while it is written to: it is made again."""

    @wraps(write)
    def written(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        for _ in range(_TRIES - 1):
            with suppress(FileNotFoundError):
                return write(*args, **kwargs)
        return write(*args, **kwargs)

    return written


class TurnLog:
    """The logs below one root: `Settings.turns`."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def path(self, project: str, user: str, conversation: str) -> Path:
        """Where a conversation's lines are."""
        return self.root / safe_name(project) / safe_name(user) / f"{safe_name(conversation)}.jsonl"

    @_again
    def append(
        self, conversation: str, record: Turn | Reaction | Noted | Retired, more: Mapping[str, Any] | None = None
    ) -> Path:
        """Adds a line, durably; `more` are further keys of it, none of ours. Returns the file."""
        path = self.path(record.project, record.user, conversation)
        with self._folder(path.parent.relative_to(self.root).parts) as folder, _held(path.name, folder) as descriptor:
            _append(folder, descriptor, rendered(record, more))
        return path

    @_again
    def append_once(self, turn: Turn, more: Mapping[str, Any], *, known: bool = False) -> tuple[bytes, bool]:
        """Adds a turn's line, unless the conversation has one with its id: the line that stands, and whether it is
        new. One that is `known` to be there is looked for in the whole file."""
        path = self.path(turn.project, turn.user, turn.conversation)
        line = rendered(turn, more)
        with self._folder(path.parent.relative_to(self.root).parts) as folder, _held(path.name, folder) as descriptor:
            before = _line_of(descriptor, turn, os.fstat(descriptor).st_size if known else _LOOK_BACK)
            if before is None:
                _append(folder, descriptor, line)
            return before or line, before is None

    def create(self, path: str, text: str) -> None:
        """Writes a file (its path below the root) that is not there. RevisionChanged when it is."""
        self.replace(path, text, 0)

    @_again
    def replace(self, path: str, text: str, revision: int) -> None:
        """Writes a file if the one that is there has this revision; 0: if there is none."""
        *parts, name = path.split("/")
        with self._folder(tuple(parts)) as folder, _locked(folder):
            if _revision(name, folder) != revision:
                raise RevisionChanged(f"{path}: not at revision {revision} any more")
            _replace(name, folder, text.encode())
            os.fsync(folder)

    @_again
    def delete(self, path: str, revision: int) -> None:
        """Removes a file if it has this revision."""
        *parts, name = path.split("/")
        with self._folder(tuple(parts)) as folder, _locked(folder):
            if _revision(name, folder) != revision:
                raise RevisionChanged(f"{path}: not at revision {revision} any more")
            os.unlink(name, dir_fd=folder)
            os.fsync(folder)

    def read(self, path: str) -> bytes | None:
        """A file below the root; None when there is none. Links are not followed."""
        *parts, name = path.split("/")
        if not (self.root / path).is_file():  # and no folder is made for looking
            return None
        with self._folder(tuple(parts)) as folder, suppress(FileNotFoundError), _opened(name, folder) as file:
            return file.read()
        return None

    @_again
    def erase(self, file: str, gone: Callable[[Sequence[str]], bool]) -> None:
        """Lines of a log (its path below the root) whose entries are gone, and those that nobody can read: what a
        crash tore may say the same. The file, if no line is left. A reaction that is gone by itself loses its text."""
        path = self.root / file
        if not path.resolve().is_relative_to(self.root.resolve()) or not path.is_file():
            return
        with self._folder(path.parent.relative_to(self.root).parts) as folder, _held(path.name, folder) as descriptor:
            with suppress(FileNotFoundError):
                os.unlink(_temporary(path.name), dir_fd=folder)
            lines = _lines(descriptor)
            kept = [_silenced(line, gone) for line in lines if _is_readable(line) and not gone(told_ids(line))]
            if not kept:
                os.unlink(path.name, dir_fd=folder)
            elif kept != lines:
                _replace(path.name, folder, b"".join(kept))
            os.fsync(folder)

    def erase_reactions(self, memory_ids: Iterable[str]) -> None:
        """What was said about memories stands in files of their own; a chat may have the same name."""
        gone = set(memory_ids)
        names = {f"{safe_name(each)}.jsonl" for each in gone}
        for path in sorted(self.root.glob("*/*/*.jsonl")) if names else ():
            if path.name in names:
                self.erase(path.relative_to(self.root).as_posix(), lambda told: bool(gone.intersection(told)))

    def of_user(self, user: str, project: str = "") -> Iterator[tuple[str, list[Turn]]]:
        """Log files that hold turns of a user (in one project, or in all) with these; and files of theirs of which
        nothing can be read."""
        for file in sorted(self.root.glob(f"*/{safe_name(user)}/*.jsonl")):
            path = file.relative_to(self.root).as_posix()
            own = [each for each in self.turns_in(path) if each.user == user and project in ("", each.project)]
            if own or not (project or any(map(_is_readable, (self.read(path) or b"").splitlines()))):
                yield path, own

    def turns_in(self, path: str) -> Iterator[Turn]:
        """The turns of a log, its path below the root."""
        for line in (self.read(path) or b"").splitlines():
            with suppress(*UNDECODABLE):
                yield msgspec.json.decode(line, type=Turn)

    def sweep(self, path: str) -> None:
        """Removes what processes that died left half-written in a folder below the root; for whoever is alone there."""
        names = [each.name for each in (self.root / path).glob(_temporary("*"))]
        if names:
            with self._folder(tuple(path.split("/"))) as folder:
                for name in names:
                    os.unlink(name, dir_fd=folder)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Nobody else is inside: for whoever reads a revision and writes the next one."""
        with self._folder(()) as folder, _locked(folder):
            yield

    @contextmanager
    def _folder(self, parts: tuple[str, ...]) -> Iterator[int]:
        make_private(self.root)
        folder = os.open(self.root, _FOLDER)
        try:
            for part in parts:
                try:
                    deeper = os.open(part, _FOLDER, dir_fd=folder)
                except FileNotFoundError:
                    _make(part, folder)
                    deeper = os.open(part, _FOLDER, dir_fd=folder)
                os.close(folder)
                folder = deeper
            yield folder
        finally:
            os.close(folder)


def safe_name(text: str) -> str:
    """The text as a file's name everywhere: as it is where nothing can go wrong, else a slug and a hash."""
    if _PLAIN.fullmatch(text) and not _HASHED.fullmatch(text):
        return text
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    slug = re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[-_LONGEST:].strip("-")
    return f"{slug or 'none'}-{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"


@contextmanager
def _locked(folder: int) -> Iterator[None]:
    lock = os.open(_LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=folder)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def _opened(name: str, folder: int) -> IO[bytes]:
    return os.fdopen(os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder), "rb")


def _revision(name: str, folder: int) -> int:
    try:
        with _opened(name, folder) as file:
            return msgspec.json.decode(file.read(), type=_Revised).revision
    except FileNotFoundError:
        return 0
    except UNDECODABLE:
        return -1  # changed by hand: nothing of ours replaces it


class _Revised(msgspec.Struct):
    revision: int


def _make(name: str, folder: int) -> None:
    try:
        os.mkdir(name, 0o700, dir_fd=folder)
    except FileExistsError:  # another process was faster
        return
    os.fsync(folder)


@contextmanager
def _held(name: str, folder: int) -> Iterator[int]:
    """The file, alone with it: one that was replaced while we waited is not it any more."""
    while True:
        descriptor = os.open(name, _APPEND, 0o600, dir_fd=folder)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            try:
                same = os.stat(name, dir_fd=folder, follow_symlinks=False).st_ino == os.fstat(descriptor).st_ino
            except FileNotFoundError:
                same = False
            if same:
                yield descriptor
                return
        finally:
            os.close(descriptor)


def _lines(descriptor: int) -> list[bytes]:
    with os.fdopen(os.dup(descriptor), "rb") as file:
        file.seek(0)
        return file.readlines()


def _temporary(name: str) -> str:
    return f".recollect-{name}.tmp"  # as `doctor` knows them


def _replace(name: str, folder: int, data: bytes) -> None:
    temporary = _temporary(name)
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600, dir_fd=folder)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(descriptor)
    os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)


def rendered(record: Turn | Reaction | Noted | Retired, more: Mapping[str, Any] | None = None) -> bytes:
    """A line as it is written: without secrets."""
    told = msgspec.to_builtins({**(more or {}), **msgspec.to_builtins(record)})
    redacted = cache(_redacted)  # a turn says the same in several places
    clean = {key: value if key in _NAMES else in_texts(value, redacted) for key, value in told.items()}
    return msgspec.json.encode({"type": TYPE, "v": VERSION, **clean}) + b"\n"


def _line_of(descriptor: int, turn: Turn, look_back: int) -> bytes | None:
    """The line of the turn, if it is among the last bytes: lines that do not hold its id anywhere are not decoded."""
    start = max(os.fstat(descriptor).st_size - look_back, 0)
    data = os.pread(descriptor, look_back, start)
    data = data[data.find(b"\n") + 1 :] if start else data
    needle = msgspec.json.encode(turn.id)
    place = data.find(needle)
    while place >= 0:
        end = data.find(b"\n", place)
        if end < 0:
            return None  # torn by a crash: it tells nothing
        line = data[data.rfind(b"\n", 0, place) + 1 : end + 1]
        with suppress(*UNDECODABLE):
            if msgspec.json.decode(line, type=Turn).id == turn.id:
                return line
        place = data.find(needle, end)
    return None


def told_ids(line: bytes) -> list[str]:
    """Ids of the entries that a line tells, or of what it tells something about; of a turn both, whatever its words."""
    with suppress(*UNDECODABLE):
        turn = msgspec.json.decode(line, type=Turn)
        return [entry_id(session(turn.project, turn.user, turn.conversation), turn.id, role) for role in Role]
    try:
        return [each.uuid for each in fold(State(), line, 0) if isinstance(each, Entry)] or reacted(line)
    except Malformed:
        return []


def reaction_ids(line: bytes) -> list[str]:
    """The id of what somebody wrote in a reaction to a memory; nothing for another line."""
    with suppress(*UNDECODABLE):
        told = msgspec.json.decode(line, type=Reaction)
        return [reaction_id(told)] if told.memory and told.text else []
    return []


def _silenced(line: bytes, gone: Callable[[Sequence[str]], bool]) -> bytes:
    ids = reaction_ids(line)
    return msgspec.json.encode({**msgspec.json.decode(line), "text": ""}) + b"\n" if ids and gone(ids) else line


def _is_readable(line: bytes) -> bool:
    try:
        fold(State(), line, 0)
    except Malformed:
        return False
    return True


def _append(folder: int, descriptor: int, line: bytes) -> None:
    size = os.fstat(descriptor).st_size
    if size and os.pread(descriptor, 1, size - 1) != b"\n":
        line = b"\n" + line
    try:
        written = 0
        while written < len(line):
            written += os.write(descriptor, line[written:])
        os.fsync(descriptor)
    except OSError:
        os.ftruncate(descriptor, size)  # a full disk leaves no half line
        raise
    if not size:
        os.fsync(folder)


def _redacted(text: str) -> str:
    return redact(text.replace("\0", "").encode("utf-8", "replace").decode())
