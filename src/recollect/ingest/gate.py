"""What may be read and stored: ignore globs, switched-off projects, and nothing that recollect itself made.

Also resolves each working directory to its project; that touches the disk, so it happens here, while reading, once per
folder and gate, and never in a transaction.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable, Sequence
from enum import StrEnum
from pathlib import Path

from msgspec.structs import replace

from recollect.ingest.scan import Ignore
from recollect.ingest.sources.base import Source
from recollect.projects.folders import Folders
from recollect.projects.paths import redacted, shown, stored
from recollect.projects.repository import normalise_remote
from recollect.redact import redact
from recollect.store.database import Transaction
from recollect.store.projects import Project, Recorded
from recollect.types import Clock, Entry, Owner, timestamp


class Refused(StrEnum):
    """Why an entry is not stored."""

    OFF = "off"  # its folder or project is switched off, or it is recollect's own
    NO_FOLDER = "no_folder"  # nobody knows where it was said, and something is switched off


class Gate:
    def __init__(
        self, owner: Owner, recorded: Recorded, *, ignore: Ignore, disabled: Sequence[str], own_home: Path, clock: Clock
    ) -> None:
        self._owner = owner
        self._folders = Folders(recorded)
        self._found: dict[tuple[str, str], tuple[Project, Project | None]] = {}  # and what it was before
        self._has_switches = bool(disabled or ignore)
        self._ignore = ignore
        self._disabled = sorted({name for each in disabled for name in _names(each)})
        self._own_homes = {str(own_home), os.path.realpath(own_home)}  # processes are told the real one
        self._clock = clock
        self._verdicts: dict[tuple[str, str, str], bool] = {}
        self._shown: dict[tuple[str, str, str], tuple[str, str, str]] = {}  # cwd, branch, tools → as they are stored

    def admit(self, entry: Entry, *, is_ours: bool = False) -> Entry | Refused:
        """The entry as it may be stored. `is_ours`: a note or a chat's turn, which need no folder."""
        if not is_ours and self._has_switches and not _is_placed(entry.cwd):
            return Refused.NO_FOLDER
        asked = (entry.cwd, entry.remote, self.project_id(entry))
        verdict = self._verdicts.get(asked)
        if verdict is None:
            verdict = self._verdicts[asked] = not self._is_off_there(*asked)
        return self._as_stored(entry) if verdict else Refused.OFF

    def allowed(self, cwd: str, project: str = "") -> str | None:
        """The project of what is said in a folder, unless it is told; None when nothing of it may be stored."""
        found = project or self.find(cwd).project_id
        return None if self._is_off_there(cwd, "", found) else found

    def find(self, cwd: str, remote: str = "") -> Project:
        """The project of a folder now."""
        return self._look(cwd, remote)[0]

    def project_id(self, entry: Entry) -> str:
        """What was said before another repository came into the folder is still the earlier one's; where that time is
        not told, it is the later one's."""
        if entry.project:
            return entry.project
        now, before = self._look(entry.cwd, entry.remote)
        if before is not None and "" < entry.timestamp < before.resolved_at:
            return before.project_id
        return now.project_id

    def _look(self, cwd: str, remote: str) -> tuple[Project, Project | None]:
        found = self._found.get((cwd, remote))
        if found is None:
            now = self._folders.find(cwd, remote)
            before = None if remote else self._folders.before(cwd)  # what a record names is its own
            found = self._found[(cwd, remote)] = (now, before)
        return found

    @property
    def is_news(self) -> bool:
        """Is there a project to save?"""
        return self._folders.has_news

    def save_projects(self, tx: Transaction) -> None:
        self._folders.save(tx, self._owner, timestamp(self._clock()), self._is_off)

    def confirm(self, cwd: str) -> Project:
        """A person says that the folder is the project that it says it is."""
        self._found.clear()
        return self._folders.confirm(cwd)

    def excludes_file(self, path: str, source: Source | None, head: Iterable[bytes]) -> bool:
        """The folder is named after a switched-off project, as Claude Code and Pi do, and the first record that names
        a folder does not belie it: the names are lossy."""
        if not self._disabled:
            return False
        folder = Path(path).parent.name.strip("-")
        named = [each for each in self._disabled if folder == _encoded(each)]
        if not named:
            return False
        cwd = next(filter(None, map(source.folder_of, head)), "") if source else ""
        return not cwd or any(_is_below(cwd, each) for each in named)

    def _as_stored(self, entry: Entry) -> Entry:
        names = (entry.cwd, entry.branch, entry.tool_names)
        kept = self._shown.get(names)
        if kept is None:
            kept = self._shown[names] = (stored(entry.cwd), redact(entry.branch), redact(entry.tool_names))
        if kept == names:
            return entry
        cwd, branch, tools = kept
        return replace(entry, cwd=cwd, branch=branch, tool_names=tools, project=self.project_id(entry))

    def _is_off_there(self, cwd: str, remote: str, project_id: str) -> bool:
        """Also where the folder, or the transcript, only says that it is a project that is switched off."""
        if self._is_off(cwd, project_id):
            return True
        if not self._disabled or not (cwd or remote):
            return False
        claims = {self.find(cwd, remote).claim, self.find(cwd).claim, normalise_remote(remote)}
        return any(self._is_off("", claim) for claim in claims - {""})

    def _is_off(self, cwd: str, project_id: str) -> bool:
        paths = _names(shown(cwd)) if cwd else set()
        if any(_is_below(path, home) for path in paths for home in self._own_homes):
            return True  # a model process that recollect started
        if any(map(self._ignore.matches, paths)):
            return True
        named = project_id.casefold()  # hosts tell no case apart, and who copies a name may
        return any(each.casefold() == named or any(_is_below(path, each) for path in paths) for each in self._disabled)


def switches(ignore: Iterable[str], disabled: Iterable[str]) -> str:
    """Names what is off: another name, other things."""
    told = json.dumps([sorted({*ignore}), sorted({*disabled})])
    return hashlib.sha256(told.encode()).hexdigest()[:16]


def _names(project: str) -> set[str]:
    """A folder's as it was written, the one behind its links, which is what agents record, and both as they are
    stored."""
    if not project.startswith("/"):
        return {project, stored(project)}
    names = {project, os.path.normpath(project), os.path.realpath(project)}
    return {each.rstrip("/") or "/" for name in names for each in (name, redacted(name), stored(name))}


def _is_placed(cwd: str) -> bool:
    """Does it say where it is? A relative path does not."""
    return cwd.startswith(("/", "\\\\")) or re.match(r"[A-Za-z]:[\\/]", cwd) is not None


def _encoded(folder: str) -> str:
    """How they name it. Lossy, so only the whole name counts; a sub-folder's file is read, and its records tell."""
    return folder.replace("/", "-").replace(".", "-").strip("-")


def _is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")
