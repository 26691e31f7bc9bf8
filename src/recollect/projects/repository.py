"""What lies in a folder: the repository it belongs to, as far as git's own files tell.

The files are read directly: starting git for every folder would cost more than the rest of an ingest, and would do what
a stranger's repository is set up to do. Whatever lies there instead of them tells nothing, and stops nobody.

A repository is told from others by its git directory, which worktrees and submodules of one clone share with nobody
else: its inode, and the time that it was made. A `.git` that only points at a git directory counts as a part of that
repository if the repository points back. Otherwise it stands for itself.
"""

from __future__ import annotations

import os
import re
import stat
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

from recollect.projects.paths import digest
from recollect.text import is_utf8

_SCP = re.compile(r"^(?:[^@/\s]+@)?([^:/\s]+):(?!//)(.+)$")  # git@github.com:owner/repo.git
_NAME = re.compile(r"[\w.~%+@:/,=&$-]{1,512}")  # no words that a context would be told, and no more than an index takes
_SECTION = re.compile(r'^\s*\[\s*(\w+)(?:\s+"([^"]+)")?\s*\]')
_CONFIG, _PATH = 1_000_000, 4096  # bytes that are read of git's files
_LONGEST = 512  # characters of a folder's name


@dataclass(frozen=True, slots=True)
class Sighting:
    """What was seen in a folder."""

    cwd: str
    is_there: bool  # the folder exists
    folder: str = ""  # tells it from another folder that is put in its place
    identity: str = ""  # of the git directory, or of a `.git` that points at one and is not pointed back at
    top: str = ""  # the folder that holds `.git`; empty: there is no repository
    common: str = ""  # the git directory that all worktrees share
    remote: str = ""  # host/owner/repo; empty: none
    is_stray: bool = False  # `.git` points into another folder's repository, which does not point back

    @property
    def is_root(self) -> bool:
        """Is it the folder that holds `.git`, and not one below it?"""
        return self.top == os.path.realpath(self.cwd)

    @property
    def claim(self) -> str:
        """The project that the folder says it is."""
        return self.remote or self.common or self.cwd


def look(cwd: str) -> Sighting:
    """What is in a folder now. Of one that is gone, the repository around it."""
    if not cwd.startswith("/"):
        return Sighting(cwd, False)
    try:
        real = Path(os.path.realpath(cwd))
        folder = _inode(real) if real.is_dir() else ""
        seen = Sighting(cwd, bool(folder), folder)
        for top in (real, *real.parents):
            dot_git = top / ".git"
            if dot_git.is_symlink() or dot_git.is_file():
                found = _linked(seen, top, dot_git)
                return found if _is_storable(found) else seen
            if dot_git.is_dir():
                remote = normalise_remote(_config(dot_git).url())
                identity = _identity(dot_git, remote)
                found = replace(seen, identity=identity, top=str(top), common=str(dot_git), remote=remote)
                return found if _is_storable(found) else seen
    except (OSError, ValueError):
        return Sighting(cwd, os.path.isdir(cwd))  # noqa: PTH112 - it never raises
    return seen


def _is_storable(seen: Sighting) -> bool:
    """May its project be named by its path? A link leads to names that no transcript could hold."""
    return is_utf8(seen.top + seen.common) and max(len(seen.top), len(seen.common)) <= _LONGEST


def normalise_remote(url: str) -> str:
    """`https://me:secret@GitHub.com/Owner/repo.git` → `github.com/Owner/repo`; empty for a path or nonsense.
    Sessions are told it, and whoever made the repository wrote it."""
    url = url.strip()
    if "://" in url:
        try:
            parts = urlsplit(url)
            host, path = parts.hostname or "", parts.path
        except ValueError:
            return ""
        if parts.scheme == "file":
            return ""
    elif (scp := _SCP.match(url)) and not (len(scp[1]) == 1 and "\\" in url):  # C:\… is a path
        host, path = scp[1].lower(), scp[2]
    else:
        return ""
    path = path.strip("/").removesuffix(".git").strip("/")
    found = f"{host.lower()}/{path}" if host and path else ""
    return found if _NAME.fullmatch(found) else ""


def mark(top: str) -> str:
    """Tells a repository, by the folder that holds its `.git`, from every other one; empty: there is none. The hook's
    client does the same."""
    dot_git = Path(top, ".git")
    try:
        found = made = dot_git.lstat()
        for name in ("description", "config"):  # git writes the first once
            if (dot_git / name).exists():
                made = (dot_git / name).stat()
                break
    except OSError:
        return ""
    return f"{top} {found.st_dev}:{found.st_ino}:{made.st_mtime_ns}" if top else ""


def branch(folder: str) -> str:
    """The branch that is checked out in the repository around a folder; empty: none, or nobody can tell."""
    seen = look(folder)
    dot_git = Path(seen.top, ".git") if seen.top else None
    if dot_git is None:
        return ""
    text = "" if dot_git.is_dir() else _read(dot_git, _PATH)
    directory = Path(seen.top, text.removeprefix("gitdir:").strip()) if text.startswith("gitdir:") else dot_git
    head = _read(directory / "HEAD", _PATH).strip()
    return head.removeprefix("ref: refs/heads/") if head.startswith("ref: refs/heads/") else ""


def _linked(seen: Sighting, top: Path, dot_git: Path) -> Sighting:
    """A worktree, a submodule, or a git directory elsewhere: `.git` names it, as a link or in its text."""
    text = f"gitdir: {dot_git.readlink()}" if dot_git.is_symlink() else _read(dot_git, _PATH)
    if not text.startswith("gitdir:"):
        return seen
    directory = Path(os.path.realpath(top / text.removeprefix("gitdir:").strip()))
    common = Path(os.path.realpath(directory / _read(directory / "commondir", _PATH).strip()))
    config = _config(common)
    if common != directory:  # a worktree
        back = directory / _read(directory / "gitdir", _PATH).strip()
        is_own = directory.parent == common / "worktrees" and back.name == ".git" and _is(back.parent, top)
    else:
        is_own = directory.is_relative_to(top) or _is(directory / config.get("core", "worktree"), top)
    remote = normalise_remote(config.url())
    identity = _identity(common, remote) if is_own else f"{_inode(dot_git)}@{dot_git.lstat().st_mtime_ns}"
    return replace(
        seen,
        identity=identity,
        top=str(top),
        common=str(common),
        remote=remote,
        is_stray=not is_own and ".git" in common.parts,
    )


def _is(told: Path, there: Path) -> bool:
    return os.path.realpath(told) == str(there)


def _identity(directory: Path, remote: str) -> str:
    """What a git directory keeps when it is moved, and no other has, not even a later one with the same inode.

    The device counts only where the time is not known: some file systems get another number at every start."""
    try:
        made = (directory / "description").stat().st_mtime_ns  # git writes it once
    except OSError:
        return f"{_inode(directory)} {digest(remote)}"
    return f"{directory.stat().st_ino}@{made}"


def place(folder: str) -> str:
    """Tells a folder that is in no repository from another one that is put in its place; empty: it is gone. The hook's
    client does the same."""
    try:
        found = os.stat(folder)  # noqa: PTH116 - as there
    except OSError:
        return ""
    return f"{folder} {found.st_dev}:{found.st_ino}"


def beside(folder: str) -> set[str]:
    """What tells the other folders from each other that lie in the same one."""
    above, name = os.path.split(folder)
    try:
        device = os.stat(above).st_dev  # noqa: PTH116 - of a text
        with os.scandir(above) as found:
            return {f"{device}:{each.inode()}" for each in found if each.name != name}
    except OSError:
        return set()


def _inode(path: Path) -> str:
    try:
        found = path.lstat()
    except OSError:
        return ""
    return f"{found.st_dev}:{found.st_ino}"


class _Config:
    """The keys of a git configuration: (section, subsection, name) → value."""

    def __init__(self, text: str) -> None:
        self._values: dict[tuple[str, str, str], str] = {}
        section, name = "", ""
        for line in text.splitlines():
            if found := _SECTION.match(line):
                section, name = found[1].lower(), found[2] or ""
            elif line.lstrip().startswith("["):
                section = name = ""
            key, equals, value = line.partition("=")
            if equals and section:
                self._values.setdefault((section, name, key.strip().lower()), value.strip().strip('"'))

    def get(self, section: str, name: str) -> str:
        return self._values.get((section, "", name), "")

    def url(self) -> str:
        """That of `origin`, else of the first remote."""
        urls = {name: url for (section, name, key), url in self._values.items() if (section, key) == ("remote", "url")}
        return urls.get("origin") or next(iter(urls.values()), "")


def _config(common: Path) -> _Config:
    return _Config(_read(common / "config", _CONFIG))


def _read(path: Path, most: int) -> str:
    """What a plain file says. A pipe would keep us waiting, a device goes on for ever."""
    try:
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            plain = stat.S_ISREG(os.fstat(file.fileno()).st_mode)
            return file.read(most).replace(b"\0", b"").decode("utf-8", "replace") if plain else ""
    except OSError:
        return ""
