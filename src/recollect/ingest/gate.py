"""What may be read and stored: ignore globs, switched-off projects, and nothing that recollect itself made.

Also resolves each working directory to its project; that touches the disk, so it happens here, while reading, once per
folder and gate, and never in a transaction.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from recollect.ingest.projects import began, resolve, settled
from recollect.ingest.scan import Ignore
from recollect.ingest.sources.base import UNDECODABLE
from recollect.store import projects
from recollect.store.database import Transaction
from recollect.store.projects import Project
from recollect.types import Clock, Entry, Owner, timestamp


class _Placed(msgspec.Struct):
    """A record of which only its folder is looked at."""

    cwd: Any = None


_placed = msgspec.json.Decoder(_Placed)


class Gate:
    def __init__(
        self,
        owner: Owner,
        known: Mapping[str, Project],
        *,
        ignore: Ignore,
        disabled: Sequence[str],
        own_home: Path,
        clock: Clock,
        resolver: Callable[[str, str], Project] = resolve,
    ) -> None:
        self._owner = owner
        self._known = dict(known)
        self._unsaved: list[Project] = []
        self._moved: list[Project] = []  # folders that another repository is in
        self._found: dict[tuple[str, str], tuple[Project, Project, str]] = {}
        self._ignore = ignore
        self._disabled = sorted({name for each in disabled for name in _names(each)})
        self._own_homes = {str(own_home), os.path.realpath(own_home)}  # processes are told the real one
        self._clock = clock
        self._resolver = resolver
        self._verdicts: dict[tuple[str, str], bool] = {}

    def allows(self, entry: Entry) -> bool:
        asked = (entry.cwd, self.project_id(entry))
        verdict = self._verdicts.get(asked)
        if verdict is None:
            verdict = self._verdicts[asked] = not self._is_off(*asked)
        return verdict

    def project_id(self, entry: Entry) -> str:
        if entry.project:
            return entry.project
        place = (entry.cwd, entry.remote)
        found = self._found.get(place)
        if found is None:
            found = self._found[place] = self._look(*place)
        now, before, since = found
        return (before if "" < entry.timestamp < since else now).project_id

    @property
    def is_news(self) -> bool:
        """Is there a project to save?"""
        return bool(self._unsaved or self._moved)

    def save_projects(self, tx: Transaction) -> None:
        for save, found in ((projects.save, self._unsaved), (projects.move, self._moved)):
            if found:
                allowed = [each for each in found if not self._is_off(each.cwd, each.project_id)]
                save(tx, self._owner, allowed, timestamp(self._clock()))
                found.clear()

    def _look(self, cwd: str, remote: str) -> tuple[Project, Project, str]:
        """The folder's project, the one that was known, and since when it is not that one any more.

        What was said there before the repository was made, and is read only now, is still the known one's; where that
        time is not told, or another run has noted the new one already, it counts as the new one's."""
        known = self._known.get(cwd)
        if known is None:
            known = self._known[cwd] = self._resolver(cwd, remote)
            self._unsaved.append(known)
            return known, known, ""
        now = settled(known, remote)
        if now == known or remote:  # what a record names is its own: the folder may have another by now
            return now, known, ""
        self._moved.append(now)
        return now, known, began(cwd)

    def excludes_file(self, path: str, head: Iterable[bytes]) -> bool:
        """The folder is named after a switched-off project, as Claude Code and Pi do, and the first record that names
        a folder does not belie it: the names are lossy."""
        if not self._disabled:
            return False
        folder = Path(path).parent.name.strip("-")
        named = [each for each in self._disabled if folder == _encoded(each)]
        return bool(named) and (not (cwd := _first_folder(head)) or any(_is_below(cwd, each) for each in named))

    def _is_off(self, cwd: str, project_id: str) -> bool:
        if any(_is_below(cwd, home) for home in self._own_homes):
            return True  # a model process that recollect started
        if cwd and self._ignore.matches(cwd):
            return True
        named = project_id.casefold()  # hosts tell no case apart, and who copies a name may
        return any(each.casefold() == named or (cwd and _is_below(cwd, each)) for each in self._disabled)


def switches(ignore: Iterable[str], disabled: Iterable[str]) -> str:
    """Names what is off: another name, other things."""
    told = json.dumps([sorted({*ignore}), sorted({*disabled})])
    return hashlib.sha256(told.encode()).hexdigest()[:16]


def _names(project: str) -> set[str]:
    """A folder's as it was written, and the one behind its links, which is what agents record."""
    names = {project, os.path.realpath(project)} if project.startswith("/") else {project}
    return {each.rstrip("/") or "/" for each in names}


def _encoded(folder: str) -> str:
    """How they name it. Lossy, so only the whole name counts; a sub-folder's file is read, and its records tell."""
    return folder.replace("/", "-").replace(".", "-").strip("-")


def _first_folder(head: Iterable[bytes]) -> str:
    for line in head:
        try:
            cwd = _placed.decode(line).cwd
        except UNDECODABLE:
            continue
        if isinstance(cwd, str) and cwd:
            return cwd
    return ""


def _is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")
