"""A folder that files can be listed in, read from, searched and written to, and nothing outside of it.

Every path is opened one name at a time, relative to the folder opened before it and never through a symbolic link, so
that no link and no race leads out. A file is replaced as a whole or not at all, and several only when all of them can
be. What is not allowed is refused with `ToolRefused`: the consolidation agent calls these operations, and what it asks
for is not trusted.
"""

from __future__ import annotations

import errno
import fcntl
import os
import secrets
import stat
import time
import unicodedata
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path, PurePath
from typing import NoReturn

from recollect.models.base import ToolRefused

FILE_LIMIT = 256 * 1024  # bytes that a file may have
READ_LIMIT = 16 * 1024 * 1024  # raw_memories.md, which we write ourselves, may be longer than what an agent may write
FILES_LIMIT = 2000

AS_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
TO_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # non-blocking: a pipe must not stop us
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_FORBIDDEN = frozenset('<>:"|?*\\')  # not on every file system
_DEEPEST = 6
LOCK = ".lock"
_TEMPORARY = ".recollect-"
_LONGEST_LINE = 240
_PATIENCE = 60.0  # seconds to wait for another one who writes


class Workspace:
    """Paths are relative, with forward slashes. Hidden files are somebody else's: neither listed nor touched."""

    def __init__(self, root: Path, *, durable: bool = True, most: int | None = FILES_LIMIT) -> None:
        self.root = root
        self._most = most  # files; None: as many as there are
        self._durable = durable  # a staging folder is worth nothing after a crash
        self._count: int | None = None

    def files(self) -> list[str]:
        """Every regular file, sorted."""
        found = []
        for folder, names, descriptor in self._walk():
            for name in names:
                details = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
                if not name.startswith(".") and stat.S_ISREG(details.st_mode):
                    found.append((folder / name).as_posix())
        return sorted(found)

    def read(self, path: str) -> str:
        parts = _parts(path)
        with self._folder(parts[:-1]) as folder:
            return _read(parts[-1], folder, path).decode("utf-8", "replace")

    @contextmanager
    def alone(self, *, create: bool = False) -> Iterator[None]:
        """Whoever else asks for it waits, in any process. A folder that is not there is not waited for."""
        if not create and not self.root.is_dir():
            yield
            return
        deadline = time.monotonic() + _PATIENCE
        with self._folder((), create=create) as folder:
            while True:
                try:
                    fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if time.monotonic() > deadline:
                        raise ToolRefused(f"{self.root}: another process is writing there") from None
                    time.sleep(0.02)
            yield

    def write(self, path: str, text: str, *, limit: int = FILE_LIMIT) -> bool:
        """Replaces the file atomically; False, and nothing is touched, when it holds just that already."""
        return dict(self.replace({path: text}, limit=limit))[path]

    def replace(self, files: Mapping[str, str], *, limit: int = FILE_LIMIT) -> Generator[tuple[str, bool], None, None]:
        """Replaces all of them, each atomically, once it is certain that each can be: tells path by path whether it
        changed."""
        temporaries: dict[str, str] = {}
        try:
            for path, text in files.items():
                if temporary := self._prepared(path, _encoded(path, text, limit)):
                    temporaries[path] = temporary
            for path in files:
                temporary = temporaries.get(path, "")
                if temporary:
                    *folders, name = _parts(path)
                    with self._folder(tuple(folders)) as folder:
                        os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
                        del temporaries[path]
                        self._sync(folder)
                yield path, bool(temporary)
        finally:
            for path, temporary in temporaries.items():
                with suppress(OSError, ToolRefused), self._folder(_parts(path)[:-1]) as folder:
                    os.unlink(temporary, dir_fd=folder)

    def _prepared(self, path: str, data: bytes) -> str:
        """The name of a file beside it that holds the data; empty when it holds just that already."""
        parts = _parts(path)
        with self._folder(parts[:-1], create=True) as folder:
            before = self._before(parts[-1], folder, path)
            if before == data:
                return ""
            if before is None:
                self._make_room(path)
            temporary = f"{_TEMPORARY}{secrets.token_hex(8)}.tmp"
            try:
                fill(temporary, folder, data, durable=self._durable)
            except BaseException:
                with suppress(FileNotFoundError):
                    os.unlink(temporary, dir_fd=folder)
                raise
        return temporary

    def delete(self, path: str) -> None:
        """Removes the file, and the folders that it leaves empty."""
        parts = _parts(path)
        with self._folder(parts[:-1]) as folder:
            try:
                os.unlink(parts[-1], dir_fd=folder)
            except FileNotFoundError:
                return
            self._sync(folder)
        self._count = None
        for depth in range(len(parts) - 1, 0, -1):
            with self._folder(parts[: depth - 1]) as parent:
                try:
                    os.rmdir(parts[depth - 1], dir_fd=parent)
                except OSError:  # somebody keeps other files there
                    return

    def search(self, query: str, *, most: int = 50) -> list[str]:
        """`path:line: text` of lines that hold the query, or all of its words; upper and lower case are the same."""
        wanted = query.casefold().strip()
        if not wanted:
            raise ToolRefused("the query is empty")
        words = wanted.split()
        found = []
        for path in self.files():
            for number, line in enumerate(self.read(path).splitlines(), 1):
                text = line.casefold()
                if wanted in text or all(word in text for word in words):
                    found.append(f"{path}:{number}: {line.strip()[:_LONGEST_LINE]}")
                    if len(found) == most:
                        return found
        return found

    def sweep(self, *, below: bool = True) -> None:
        """Removes what a killed process left half-written; not `below`: in the folder itself."""
        for _, names, descriptor in self._walk():
            for name in names:
                if name.startswith(_TEMPORARY):
                    os.unlink(name, dir_fd=descriptor)
            if not below:
                return

    def _walk(self) -> Iterator[tuple[Path, list[str], int]]:
        """Every folder that is not hidden: its relative path, the names of its files, and itself opened."""
        if not self.root.is_dir():
            return
        for folder, folders, names, descriptor in os.fwalk(self.root, follow_symlinks=False):
            folders[:] = [name for name in folders if not name.startswith(".")]
            yield Path(folder).relative_to(self.root), names, descriptor

    @contextmanager
    def _folder(self, parts: tuple[str, ...], *, create: bool = False) -> Iterator[int]:
        descriptor = self._open_folder(parts, create)
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    def _open_folder(self, parts: tuple[str, ...], create: bool) -> int:
        if create:
            make_private(self.root)
        try:
            descriptor = os.open(self.root, AS_FOLDER)
        except OSError as error:
            _refuse(str(self.root), error)
        for part in parts:
            try:
                if create:
                    _check_case(part, descriptor)
                    with suppress(FileExistsError):
                        os.mkdir(part, 0o700, dir_fd=descriptor)
                deeper = os.open(part, AS_FOLDER, dir_fd=descriptor)
            except OSError as error:
                _refuse(part, error)
            finally:
                os.close(descriptor)
            descriptor = deeper
        return descriptor

    def _before(self, name: str, folder: int, path: str) -> bytes | None:
        """What the file holds now; None when there is none."""
        _check_case(name, folder)
        try:
            details = os.stat(name, dir_fd=folder, follow_symlinks=False)
        except FileNotFoundError:
            return None
        if not stat.S_ISREG(details.st_mode):
            raise ToolRefused(f"{path}: a symbolic link, a folder or a device, not a file")
        return _read(name, folder, path) if details.st_size <= READ_LIMIT else b""

    def _make_room(self, path: str) -> None:
        if self._most is None:
            return
        if self._count is None:
            self._count = len(self.files())
        if self._count >= self._most:
            raise ToolRefused(f"{path}: there are {self._most} files already, which is the most")
        self._count += 1

    def _sync(self, descriptor: int) -> None:
        if self._durable:
            os.fsync(descriptor)


def fill(name: str, folder: int, data: bytes, *, durable: bool = True) -> None:
    """A new file in an opened folder, for its owner only."""
    descriptor = os.open(name, _CREATE, 0o600, dir_fd=folder)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        if durable:
            os.fsync(descriptor)


def make_private(folder: Path) -> None:
    """The folder and its missing parents, for their owner only."""
    for each in (*reversed(folder.parents), folder):
        if not each.exists() and not each.is_symlink():
            each.mkdir(mode=0o700, exist_ok=True)


def remove_empty(root: Path, folder: PurePath) -> None:
    """A folder below the root, those in it and those above it, where nothing but a lock that nobody holds is left, and
    what a process that died left half-written."""
    place = root / folder
    if not place.is_dir() or place.resolve() != root.resolve() / folder:  # a link leads elsewhere
        return
    with suppress(FileNotFoundError):  # somebody else removes them, too
        for half in place.rglob(".*.tmp"):
            half.unlink()
        inside = [each for each in sorted(place.rglob("*"), reverse=True) if each.is_dir() and not each.is_symlink()]
        above = [root / each for each in (folder, *folder.parents) if each.parts]
        for each in (*inside, *above):
            if not _remove_folder(each):
                return


def _remove_folder(folder: Path) -> bool:
    if any(each.name != LOCK for each in folder.iterdir()):
        return False
    try:
        with suppress(FileNotFoundError), (folder / LOCK).open("rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            (folder / LOCK).unlink()
        folder.rmdir()
    except OSError:  # somebody is at it
        return False
    return True


def _parts(path: str) -> tuple[str, ...]:
    if not path or path.startswith(("/", "~")):
        raise ToolRefused(f"{path!r}: a relative path is needed")
    parts = tuple(path.split("/"))
    for part in parts:
        if part in ("", ".", ".."):
            raise ToolRefused(f"{path!r}: no `.`, no `..` and no empty name in a path")
        if part.startswith("."):
            raise ToolRefused(f"{path!r}: hidden files are not part of the workspace")
        if _FORBIDDEN & set(part) or not part.isprintable() or part.endswith((" ", ".")) or part.startswith(" "):
            raise ToolRefused(f"{path!r}: characters that a file name cannot have everywhere")
        if len(part.encode("utf-8", "replace")) > 200 or unicodedata.normalize("NFKC", part) != part:
            raise ToolRefused(f"{path!r}: too long, or not in normal form")
    if len(parts) > _DEEPEST:
        raise ToolRefused(f"{path!r}: too deep")
    return parts


def _encoded(path: str, text: str, limit: int) -> bytes:
    try:
        data = text.encode("utf-8")
    except UnicodeEncodeError:
        raise ToolRefused(f"{path}: not valid text") from None
    if b"\0" in data:
        raise ToolRefused(f"{path}: text with NUL characters")
    if len(data) > limit:
        raise ToolRefused(f"{path}: {len(data)} bytes, and {limit} are the most")
    return data


def _check_case(name: str, folder: int) -> None:
    """One file must not pass for another where upper and lower case are the same."""
    for other in os.listdir(folder):
        if other != name and _folded(other) == _folded(name):
            raise ToolRefused(f"{name}: there is {other} already")


def _folded(name: str) -> str:
    return unicodedata.normalize("NFKC", name).casefold()


def _read(name: str, folder: int, path: str) -> bytes:
    try:
        descriptor = os.open(name, TO_READ, dir_fd=folder)
    except OSError as error:
        _refuse(path, error)
    try:
        details = os.fstat(descriptor)
        if not stat.S_ISREG(details.st_mode):
            raise ToolRefused(f"{path}: not a file")
        if details.st_size > READ_LIMIT:
            raise ToolRefused(f"{path}: {details.st_size} bytes, which is too much to read")
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            return file.read(READ_LIMIT)
    finally:
        os.close(descriptor)


def _refuse(path: str, error: OSError) -> NoReturn:
    if error.errno == errno.ENOENT:
        raise ToolRefused(f"{path}: no such file") from None
    if error.errno in (errno.ELOOP, errno.ENOTDIR, errno.EISDIR, errno.ENXIO):
        raise ToolRefused(f"{path}: a symbolic link, or not what its place asks for") from None
    raise error
