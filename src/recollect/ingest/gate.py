"""What may be read and stored: ignore globs, switched-off projects, and nothing that recollect itself made.

Also resolves each working directory to its project, once; that touches the disk, so it happens here, while reading,
and never in a transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from recollect.ingest.projects import resolve
from recollect.ingest.scan import Ignore
from recollect.store import projects
from recollect.store.database import Transaction
from recollect.store.projects import Project
from recollect.types import Clock, Entry, Owner, timestamp


class Gate:
    def __init__(
        self,
        owner: Owner,
        known: Mapping[str, Project],
        *,
        ignore: Ignore,
        disabled: Sequence[str],
        own_home: Path,
        user_home: str,
        clock: Clock,
        resolver: Callable[[str, str], Project] = resolve,
    ) -> None:
        self._owner = owner
        self._known = dict(known)
        self._unsaved: list[Project] = []
        self._ignore = ignore
        self._disabled = [_expanded(each, user_home) for each in disabled]
        self._own_home = str(own_home)
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

    def excludes_file(self, path: str) -> bool:
        """Known without opening it: the folder is named after a switched-off project, as Claude Code and Pi do."""
        if not self._disabled:
            return False
        folder = Path(path).parent.name.strip("-")
        return any(folder == _encoded(each) for each in self._disabled)

    def _is_off(self, cwd: str, project_id: str) -> bool:
        if _is_below(cwd, self._own_home):
            return True  # a model process that recollect started
        if cwd and self._ignore.matches(cwd):
            return True
        return any(each == project_id or (cwd and _is_below(cwd, each)) for each in self._disabled)


def _expanded(project: str, user_home: str) -> str:
    if project == "~" or project.startswith("~/"):
        project = user_home + project[1:]
    return project.rstrip("/") or "/"


def _encoded(folder: str) -> str:
    """How they name it. Lossy, so only the whole name counts; a sub-folder's file is opened, and its records tell."""
    return folder.replace("/", "-").replace(".", "-").strip("-")


def _is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")
