"""Project identity: which repository a working directory belongs to.

`host/owner/repo` of the remote, without credentials, else the git common directory (worktrees share it), else the
path. Git's files are read directly: starting git for every folder would cost more than the rest of an ingest, and would
do what a stranger's repository is set up to do. Whatever lies there instead of them tells nothing, and stops nobody.

What was found first stays, also when the folder is gone; only another remote in its place is another project.
"""

from __future__ import annotations

import os
import re
import stat
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit

from recollect.store.projects import Project
from recollect.types import timestamp

_SCP = re.compile(r"^(?:[^@/\s]+@)?([^:/\s]+):(?!//)(.+)$")  # git@github.com:owner/repo.git
_NAME = re.compile(r"[\w.~%+@:/,=&$-]{1,512}")  # no words that a context would be told, and no more than an index takes
_SECTION = re.compile(r'^\s*\[\s*remote\s+"([^"]+)"\s*\]')
_CONFIG, _PATH = 1_000_000, 4096  # bytes that are read of git's files
_LONGEST = 512  # characters of a folder's name


def resolve(cwd: str, remote: str = "") -> Project:
    """`remote` is what the transcript recorded; it also serves for folders that are gone or on another machine."""
    if remote and (found := normalise_remote(remote)):
        return Project(cwd, found, "remote")
    common = git_common_directory(Path(cwd)) if cwd.startswith("/") else None
    if common is None:
        return Project(cwd, cwd, "path")
    if found := normalise_remote(_remote_url(common)):
        return Project(cwd, found, "remote")
    return Project(cwd, str(common), "git")


def settled(known: Project, remote: str = "") -> Project:
    """The project of a folder that is known: another one only where it was that of a remote, and the record, or else
    the folder as it is now, has another remote. A repository that was there when the folder became known, and is called
    otherwise now, is the same."""
    by_remote = known.resolved_by in ("remote", "artifact") and not known.project_id.startswith("/")
    there = by_remote and (normalise_remote(remote) or os.path.isdir(known.cwd))  # noqa: PTH112 - it never raises
    found = resolve(known.cwd, remote) if there else known
    same = found.project_id.casefold() == known.project_id.casefold()
    if same or found.resolved_by != "remote":
        return known
    return known if not remote and "" < began(known.cwd) < known.resolved_at else found


def began(cwd: str) -> str:
    """When the repository of a folder was made, as far as git's files tell: nothing changes this one."""
    common = git_common_directory(Path(cwd))
    try:
        made = (common / "description").stat().st_mtime if common else 0
    except OSError:
        return ""
    return timestamp(datetime.fromtimestamp(made, UTC))


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


def git_common_directory(cwd: Path) -> Path | None:
    """The `.git` that all worktrees of the repository share."""
    for folder in (cwd, *cwd.parents):
        dot_git = folder / ".git"
        try:
            if dot_git.is_dir():
                return dot_git
            if dot_git.is_file():
                return _linked(folder, dot_git)
        except OSError:
            return None
    return None


def _linked(folder: Path, dot_git: Path) -> Path | None:
    """A worktree or submodule: `.git` is a file that names its directory, which may name the common one."""
    text = _read(dot_git, _PATH)
    if not text.startswith("gitdir:"):
        return None
    directory = Path(os.path.realpath(folder / text.removeprefix("gitdir:").strip()))
    common = os.path.realpath(directory / _read(directory / "commondir", _PATH).strip())
    return Path(common) if len(common) <= _LONGEST else None


def _remote_url(common: Path) -> str:
    """The url of `origin`, else of the first remote."""
    urls: dict[str, str] = {}
    section = ""
    for line in _read(common / "config", _CONFIG).splitlines():
        if line.lstrip().startswith("["):
            found = _SECTION.match(line)
            section = found[1] if found else ""
        elif section:
            name, equals, value = line.partition("=")
            if equals and name.strip().lower() == "url":
                urls.setdefault(section, value.strip().strip('"'))
    return urls.get("origin") or next(iter(urls.values()), "")


def _read(path: Path, most: int) -> str:
    """What a plain file says. A pipe would keep us waiting, a device goes on for ever."""
    try:
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            plain = stat.S_ISREG(os.fstat(file.fileno()).st_mode)
            return file.read(most).replace(b"\0", b"").decode("utf-8", "replace") if plain else ""
    except OSError:
        return ""
