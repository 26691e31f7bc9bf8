"""The only hand that writes canonical files: *create if absent* and *replace if the revision matches*.

A write is a temporary file in the same folder, fsync, rename, fsync of the folder, under a lock that the kernel gives
back when a process dies. There is one writer at a time, so the temporary file has one name and crashes leave no litter.
Files are their owner's alone, and a symbolic link is never followed below the home.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Set
from contextlib import contextmanager, suppress
from pathlib import Path

from recollect.artifacts.document import BadFrontmatter, ChecksumMismatch, Manifest, parse
from recollect.artifacts.names import FOLDER, Name
from recollect.artifacts.names import parse as parse_name
from recollect.errors import ArtifactError
from recollect.text import one_line
from recollect.workspace import AS_FOLDER, TO_READ, fill, make_private

ASIDE = ".changed"  # behind the name of a file that was changed by hand, where it is kept
_LOCK = ".recollect.lock"
_TEMPORARY = ".recollect.tmp"
_AGENT = re.compile(rb'^agent_id: "([^"\\]+)"$', re.MULTILINE)
_BEGINNING = 256  # bytes of a file that hold its kind and agent


class ContentDiffers(ArtifactError):
    """There is a file of that name with other content, and artifacts never change."""


class OtherIdentity(ArtifactError):
    """There is a file of that name that belongs to another conversation."""


class Tampered(ArtifactError):
    """There is a file of that name that was changed by hand, or no file can have that name."""


class RevisionChanged(ArtifactError):
    """Somebody else wrote the file in the meantime; read it and try again."""


class Files:
    """Paths are relative to the home. `wrote` is called after every change on disk; a test crashes there."""

    def __init__(self, home: Path, *, wrote: Callable[[str], None] = lambda path: None) -> None:
        self._home = home
        self._wrote = wrote

    def names(self, token: str = "", within: str = FOLDER) -> list[Name]:
        """The artifacts of a conversation, or of all, oldest first."""
        marker = f"--{token}--" if token else "--"
        try:
            with self._folder(within) as folder:
                found = [each for each in os.listdir(folder) if marker in each]  # noqa: PTH208  twice as fast as scandir
        except FileNotFoundError:
            return []
        return sorted(name for file in found if (name := parse_name(file)))

    def read(self, path: str) -> str | None:
        """The text of a file; None when there is none. UnicodeError never: half characters show as such."""
        name = _name(path)
        try:
            with self._folder(name.folder) as folder:
                return _read(name.file, folder)
        except FileNotFoundError:
            return None

    def others(self, paths: Iterable[str], agent_id: str) -> set[str]:
        """Those that say in their first lines that they are another agent's: all share a folder."""
        found = set()
        with suppress(FileNotFoundError), self._folder() as folder:
            for path in paths:
                with suppress(OSError, Tampered):
                    descriptor = os.open(_name(path).file, TO_READ, dir_fd=folder)
                    try:
                        told = _AGENT.search(os.read(descriptor, _BEGINNING))
                    finally:
                        os.close(descriptor)
                    if told and told[1].decode("utf-8", "replace") != agent_id:
                        found.add(path)
        return found

    def signatures(self, paths: Iterable[str]) -> dict[str, str]:
        """Of stat: a signature changes whenever its file does. Files that are gone are left out."""
        found = {}
        with suppress(FileNotFoundError), self._folder() as folder:
            for path in paths:
                with suppress(FileNotFoundError):
                    found[path] = signature(os.stat(_name(path).file, dir_fd=folder, follow_symlinks=False))
        return found

    def scan(self) -> Iterator[tuple[Name, str]]:
        """Every artifact with its signature, in no order."""
        with suppress(FileNotFoundError), self._folder() as folder, os.scandir(folder) as listed:
            for each in listed:
                name = parse_name(each.name)
                if name is not None:
                    with suppress(FileNotFoundError):
                        yield name, signature(each.stat(follow_symlinks=False))

    def create(self, path: str, text: str) -> bool:
        """Writes a file that is not there. False when it is, with just that text; other content is an error."""
        name = _name(path)
        with self._locked(name.folder) as folder:
            before = _read(name.file, folder)
            if before is not None:
                _compare(path, before, text)
                return False
            self._put(path, folder, text)
        self._wrote(path)
        return True

    def replace(self, path: str, text: str, revision: int) -> None:
        """Writes a manifest if the one that is there has this revision; 0: if there is none."""
        name = _name(path)
        with self._locked(name.folder) as folder:
            before = _read(name.file, folder)
            if (0 if before is None else manifest(path, before).revision) != revision:
                raise RevisionChanged(f"{path}: not at revision {revision} any more")
            self._put(path, folder, text)
        self._wrote(path)

    def set_aside(self, path: str) -> str:
        """Gives a file a name that no artifact has, and returns its path: it stays, and stands in nobody's way."""
        name = _name(path)
        with self._locked(name.folder) as folder:
            taken = set(os.listdir(folder))  # noqa: PTH208
            kept = f"{name.file}{ASIDE}"
            number = 1
            while kept in taken:
                number += 1
                kept = f"{name.file}{ASIDE}-{number}"
            os.rename(name.file, kept, src_dir_fd=folder, dst_dir_fd=folder)
            os.fsync(folder)
        self._wrote(path)
        return f"{name.folder}/{kept}"

    def delete_aside(self, tokens: Set[str]) -> None:
        """Files of these conversations under names that no artifact has: what was set aside, copies that a person or a
        synchronised folder made. And what a process that died left half-written."""
        with self._locked(FOLDER) as folder:
            with suppress(FileNotFoundError):
                os.unlink(_TEMPORARY, dir_fd=folder)
            for file in os.listdir(folder):  # noqa: PTH208
                if parse_name(file) is None and tokens & set(file.split("--")):
                    with suppress(IsADirectoryError):  # a person's own
                        os.unlink(file, dir_fd=folder)
            os.fsync(folder)

    def delete(self, path: str) -> None:
        name = _name(path)
        with self._locked(name.folder) as folder:
            try:
                os.unlink(name.file, dir_fd=folder)
            except (FileNotFoundError, IsADirectoryError):
                return
            os.fsync(folder)
        self._wrote(path)

    def _put(self, path: str, folder: int, text: str) -> None:
        with suppress(FileNotFoundError):  # a crash left it
            os.unlink(_TEMPORARY, dir_fd=folder)
        try:
            fill(_TEMPORARY, folder, text.encode("utf-8"))
            os.rename(_TEMPORARY, _name(path).file, src_dir_fd=folder, dst_dir_fd=folder)
        except OSError as error:
            with suppress(FileNotFoundError):
                os.unlink(_TEMPORARY, dir_fd=folder)
            error.filename = path
            raise
        os.fsync(folder)

    @contextmanager
    def _folder(self, path: str = FOLDER) -> Iterator[int]:
        """Opened name by name: no link leads out."""
        folder = os.open(self._home, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            for part in path.split("/"):
                inner = os.open(part, AS_FOLDER, dir_fd=folder)
                os.close(folder)
                folder = inner
            yield folder
        finally:
            os.close(folder)

    @contextmanager
    def _locked(self, path: str) -> Iterator[int]:
        make_private(self._home / FOLDER)
        make_private(self._home / path)
        with self._folder(path) as folder:
            lock = os.open(_LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=folder)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX)
                yield folder
            finally:
                os.close(lock)


def signature(found: os.stat_result) -> str:
    return f"{found.st_mtime_ns}-{found.st_size}-{found.st_ino}"


def _name(path: str) -> Name:
    found = parse_name(path)
    if found is None or found.path != path:
        raise Tampered(f"{path!r} is no artifact's path")
    return found


def _read(file: str, folder: int) -> str | None:
    try:
        descriptor = os.open(file, TO_READ, dir_fd=folder)
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise Tampered(f"{file}: a symbolic link stands in its place") from None
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise Tampered(f"{file}: no file stands in its place")
    with os.fdopen(descriptor, "rb") as opened:
        return opened.read().decode("utf-8", "replace")


def _compare(path: str, before: str, wanted: str) -> None:
    """Nothing when they are equal; else the error that says why they are not."""
    if before == wanted:
        return
    try:
        there = parse(before)
    except (BadFrontmatter, ChecksumMismatch) as error:
        raise Tampered(f"{path}: {error.message}") from None
    if there.identity != parse(wanted).identity:
        raise OtherIdentity(
            f"{path}: it belongs to {one_line(there.head.session_key)} of {one_line(there.head.agent_id)}"
        )
    raise ContentDiffers(f"{path}: there with other content")


def manifest(path: str, text: str) -> Manifest:
    """What a manifest's file says; Tampered when it is none."""
    try:
        head = parse(text).head
    except (BadFrontmatter, ChecksumMismatch) as error:
        raise Tampered(f"{path}: {error.message}") from None
    if not isinstance(head, Manifest):
        raise Tampered(f"{path}: no manifest")
    return head
