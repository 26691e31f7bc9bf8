"""Finds transcript files below a folder. An unchanged file costs one stat; nothing is opened here.

Folders behind links are followed once (a loop ends where it began). What may not be looked at, and what has a name
that is not UTF-8, is reported, not raised. Our own home is never entered, but for the folder of our own turn logs.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path, PurePath

from recollect.projects.paths import is_redacted, stored
from recollect.text import is_utf8

SUFFIXES = (".jsonl", ".jsonl.zst")


@dataclass(frozen=True, slots=True)
class Found:
    """A file that may be a transcript."""

    root: str
    key: str  # relative to the root, with forward slashes, without .zst
    path: str
    size: int
    modified_ms: int
    signature: str


@dataclass(frozen=True, slots=True)
class Problem:
    """Something a person may want to mend."""

    path: str
    reason: str

    @classmethod
    def of(cls, path: str, error: OSError) -> Problem:
        """Bytes of a name that are not UTF-8 are told by their numbers: every reader takes that."""
        return cls(os.fsencode(path).decode("utf-8", "backslashreplace"), error.strerror or str(error))


class Ignore:
    """Globs over paths: `**` spans folders, `~` is the home folder, a glob without a slash matches any one name.
    `/**` at the end changes nothing: a folder that matches takes all below it with it."""

    def __init__(self, globs: Iterable[str], user_home: str) -> None:
        self._patterns = [_compile(glob, user_home) for glob in globs]

    def __bool__(self) -> bool:
        return bool(self._patterns)

    def matches(self, path: str) -> bool:
        return any(pattern.search(path) for pattern in self._patterns)


@cache
def _compile(glob: str, user_home: str) -> re.Pattern[str]:
    if glob == "~" or glob.startswith("~/"):
        glob = user_home.rstrip("/") + glob[1:]
    glob = glob.rstrip("/")
    while glob.endswith("/**") and glob != "/**":  # what is said in a folder is in it
        glob = glob[:-3].rstrip("/") or "/**"
    parts = []
    for token in re.findall(r"\*\*/|\*\*|\*|\?|\[[^\]]+\]|.", glob, re.DOTALL):
        if token == "**/":
            parts.append("(?:.*/)?")
        elif token == "**":
            parts.append(".*")
        elif token == "*":
            parts.append("[^/]*")
        elif token == "?":
            parts.append("[^/]")
        elif len(token) > 1:
            inside = token[1:-1].replace("[", r"\[")
            parts.append(f"[^{inside[1:]}]" if inside.startswith("!") else f"[{inside}]")
        else:
            parts.append(re.escape(token))
    start = "^" if glob.startswith(("/", "**")) else "(?:^|/)"
    return re.compile(f"{start}{''.join(parts)}(?:/|$)")  # a folder that matches takes all below it with it


def scan(root: Path, ignore: Ignore, own_home: Path | None, problems: list[Problem]) -> Iterator[Found]:
    """Every transcript file below `root`, in the order of their keys."""
    top = os.path.abspath(root)  # noqa: PTH100 - keys are relative to the path the user chose, links included
    home = str(own_home) if own_home else ""
    seen: set[tuple[int, int]] = set()

    def walk(folder: str) -> Iterator[Found]:
        try:
            _check_name(folder)
            status = os.stat(folder)  # noqa: PTH116 - this loop is measured; Path costs twice as much
            if (status.st_dev, status.st_ino) in seen or (home and _is_below(folder, home)):
                return
            seen.add((status.st_dev, status.st_ino))
            with os.scandir(folder) as listing:
                entries = sorted(listing, key=lambda entry: entry.name)
        except OSError as error:
            problems.append(Problem.of(folder, error))
            return
        names = {entry.name for entry in entries}  # a file beside its compressed copy goes first
        for entry in entries:
            try:
                if entry.is_dir():
                    if not ignore.matches(entry.path):
                        yield from walk(entry.path)
                elif entry.name.endswith(SUFFIXES):
                    if entry.name.endswith(".zst") and entry.name.removesuffix(".zst") in names:
                        continue
                    if not ignore.matches(entry.path) and (found := _found(top, entry.path, entry.stat())):
                        yield found
            except OSError as error:
                problems.append(Problem.of(entry.path, error))

    yield from walk(top)


def look(path: Path, root: Path) -> Found | None:
    """One file; None when it is no regular file. OSError when it may not be looked at, or its name is not UTF-8."""
    return _found(os.path.abspath(root), os.path.abspath(path), path.stat())  # noqa: PTH100


def is_gone(key: str, root: Path) -> bool:
    """Is there no such file below a root that is there? A name without its secret leads to no file."""
    if is_redacted(f"{root}/{key}") or not root.is_dir():
        return False
    return not any(os.path.lexists(root / f"{key}{end}") for end in ("", ".zst"))


def keyed(found: Found, root: Path) -> Found:
    """The same file, as it is named below another root that it lies in."""
    top = os.path.abspath(root)  # noqa: PTH100
    return replace(found, root=top, key=_key(top, found.path))


def refresh(found: Found, status: os.stat_result) -> Found:
    """The same file as it is now."""
    return replace(
        found,
        size=status.st_size,
        modified_ms=status.st_mtime_ns // 1_000_000,
        signature=_signature(status),
    )


def _signature(status: os.stat_result) -> str:
    return f"{status.st_size}:{status.st_mtime_ns}:{status.st_dev}:{status.st_ino}"


def _found(root: str, path: str, status: os.stat_result) -> Found | None:
    if not stat.S_ISREG(status.st_mode):
        return None
    _check_name(path)
    return Found(
        root=root,
        key=_key(root, path),
        path=path,
        size=status.st_size,
        modified_ms=status.st_mtime_ns // 1_000_000,
        signature=_signature(status),
    )


def _key(root: str, path: str) -> str:
    key = path[len(root) :].lstrip(os.sep).removesuffix(".zst")
    folder, slash, name = (key if os.sep == "/" else PurePath(key).as_posix()).rpartition("/")
    stem, suffix = os.path.splitext(name)  # noqa: PTH122 - this loop is measured
    return f"{stored(folder)}{slash}{stored(stem)}{suffix}"


def _is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _check_name(path: str) -> None:
    if not is_utf8(path):
        raise OSError(errno.EILSEQ, "its name is not UTF-8")
