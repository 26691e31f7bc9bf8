"""Project identity: which repository a working directory belongs to.

`host/owner/repo` of the remote, without credentials, else the git common directory (worktrees share it), else the
path. Git's files are read directly: starting git for every folder would cost more than the rest of an ingest.
"""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import urlsplit

from recollect.store.projects import Project

_SCP = re.compile(r"^(?:[^@/\s]+@)?([^:/\s]+):(?!//)(.+)$")  # git@github.com:owner/repo.git
_SECTION = re.compile(r'^\s*\[\s*remote\s+"([^"]+)"\s*\]')


def resolve(cwd: str, remote: str = "") -> Project:
    """`remote` is what the transcript recorded; it also serves for folders that are gone or on another machine."""
    if remote and (found := normalise_remote(remote)):
        return Project(cwd, found, "remote")
    common = git_common_directory(Path(cwd)) if cwd else None
    if common is None:
        return Project(cwd, cwd, "path")
    if found := normalise_remote(_remote_url(common)):
        return Project(cwd, found, "remote")
    return Project(cwd, str(common), "git")


def normalise_remote(url: str) -> str:
    """`https://me:secret@GitHub.com/Owner/repo.git` → `github.com/Owner/repo`; empty for a path or nonsense."""
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
    return f"{host.lower()}/{path}" if host and path else ""


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
    text = _read(dot_git)
    if not text.startswith("gitdir:"):
        return None
    directory = (folder / text.removeprefix("gitdir:").strip()).resolve()
    common = _read(directory / "commondir").strip()
    return (directory / common).resolve() if common else directory


def _remote_url(common: Path) -> str:
    """The url of `origin`, else of the first remote."""
    urls: dict[str, str] = {}
    section = ""
    for line in _read(common / "config").splitlines():
        if line.lstrip().startswith("["):
            found = _SECTION.match(line)
            section = found[1] if found else ""
        elif section:
            name, equals, value = line.partition("=")
            if equals and name.strip().lower() == "url":
                urls.setdefault(section, value.strip().strip('"'))
    return urls.get("origin") or next(iter(urls.values()), "")


def _read(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""
