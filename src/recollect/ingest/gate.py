"""What may be read and stored: ignore globs, switched-off projects, and nothing that recollect itself made.

Also resolves each working directory to its project, once; that touches the disk, so it happens here, while reading,
and never in a transaction.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from recollect.ingest.projects import resolve
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
        self._ignore = ignore
        self._disabled = sorted({name for each in disabled for name in _names(each)})
        self._own_homes = {str(own_home), os.path.realpath(own_home)}  # processes are told the real one
        self._clock = clock
        self._resolver = resolver
        self._verdicts: dict[str, bool] = {}

    def allows(self, entry: Entry) -> bool:
        if entry.project:
            return not self._is_off(entry.cwd, entry.project)
        verdict = self._verdicts.get(entry.cwd)
        if verdict is None:
            if entry.cwd not in self._known:
                project = self._resolver(entry.cwd, entry.remote)
                self._known[entry.cwd] = project
                self._unsaved.append(project)
            verdict = self._verdicts[entry.cwd] = not self._is_off(entry.cwd, self._known[entry.cwd].project_id)
        return verdict

    def project_id(self, entry: Entry) -> str:
        """Of an entry that was allowed."""
        return entry.project or self._known[entry.cwd].project_id

    @property
    def is_news(self) -> bool:
        """Is there a project to save?"""
        return bool(self._unsaved)

    def save_projects(self, tx: Transaction) -> None:
        if self._unsaved:
            allowed = [project for project in self._unsaved if self._verdicts.get(project.cwd)]
            projects.save(tx, self._owner, allowed, timestamp(self._clock()))
            self._unsaved.clear()

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
        return any(each == project_id or (cwd and _is_below(cwd, each)) for each in self._disabled)


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
