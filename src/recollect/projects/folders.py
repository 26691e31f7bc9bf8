"""Decides which project a folder is. A project is what it was first, unless a person says otherwise.

What is recorded of a folder has to match what lies there now: its remote, and the git directory that was seen first. A
repository that is moved keeps its git directory. A worktree and a sub-folder share it; a submodule has its own. The
first repository with a remote is that project. Another one that says that it is a known project waits until a person
confirms it: until then it has a project of its own, and agents in it are told nothing.

Folders that were known before repositories were recorded, or whose repository is not there any more, are trusted at the
first look, all those of a project at once: what is not recorded cannot be compared.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import PurePath

from recollect.errors import UsageError
from recollect.projects.paths import digest, stored
from recollect.projects.repository import Sighting, beside, look, normalise_remote
from recollect.store import projects
from recollect.store.database import Transaction
from recollect.store.projects import Project, Recorded, Repository, Resolved
from recollect.types import Owner, Timestamp


class Folders:
    """The projects of folders, by what is recorded and what lies there. `save` keeps what was new."""

    def __init__(self, recorded: Recorded, seal: Callable[[str], str] = stored) -> None:
        """`seal` gives a name as it is stored."""
        self._seal = seal
        self._before = recorded.folders
        self._folders = dict(recorded.folders)
        self._repositories = dict(recorded.repositories)
        self._changed: dict[str, Project] = {}
        self._new: dict[str, Repository] = {}
        self._first: set[str] = set()  # of the new ones, those of projects that nothing was known of
        self._names: dict[str, str] = {}  # a project, in any spelling of its remote → as it is known
        self._compared: set[str] = set()  # projects of which a repository, or a folder, is recorded
        for folder in self._folders.values():
            self._name(folder)
        for repository in self._repositories.values():
            self._compare(repository.project_id)

    def find(self, cwd: str, remote: str = "") -> Project:
        """The project of what is said in a folder. `remote` is what the transcript recorded: it tells the project of
        folders that are gone, and of those that were another repository then."""
        seen, known = look(cwd), self._folders.get(self._seal(cwd))
        now = self._decide(seen)
        said = self._seal(normalise_remote(remote)) if remote else ""
        told = self._as_recorded(seen, now, said) if said else now
        self._note(told if known is None and not seen.is_there else now)
        return told

    def before(self, cwd: str) -> Project | None:
        """What was recorded of the folder before this look."""
        return self._before.get(self._seal(cwd))

    def confirm(self, cwd: str) -> Project:
        """A person says that the folder is the project that it says it is."""
        seen = look(cwd)
        if not seen.is_there:
            raise UsageError(f"{cwd}: no such folder")
        now = self._decide(seen)
        if now.resolved_by == Resolved.WAITING:
            now = replace(now, project_id=now.claim, resolved_by=Resolved.CONFIRMED)
            self._record(seen.identity or _folder(seen), now.project_id, is_confirmed=True)
        self._note(now)
        return now

    @property
    def has_news(self) -> bool:
        """Is there anything to save?"""
        return bool(self._changed or self._new)

    def save(self, tx: Transaction, owner: Owner, now: Timestamp, is_off: Callable[[str, str], bool]) -> None:
        """Keep what was new; nothing of what is switched off."""
        if not self.has_news:
            return
        changed = [each for each in self._changed.values() if not is_off(each.cwd, each.claim or each.project_id)]
        projects.save(tx, owner, [each for each in changed if each.cwd not in self._before], now)
        projects.move(tx, owner, [each for each in changed if each.cwd in self._before], now)
        taken = {each.project_id for each in projects.load(tx, owner).repositories.values()}
        late = {each for each in self._first if self._new[each].project_id in taken}  # another process was faster
        new = [each for each in self._new.values() if each.identity not in late and not is_off("", each.project_id)]
        projects.record(tx, owner, new, now)
        self._changed, self._new, self._first = {}, {}, set()

    def _decide(self, seen: Sighting) -> Project:
        known = self._folders.get(self._seal(seen.cwd))
        by = Resolved.REMOTE if seen.remote else Resolved.GIT if seen.top else Resolved.PATH
        claim = Project(self._seal(seen.cwd), self._known_as(self._seal(seen.claim)), by)
        if not seen.is_there and (gone := known or self._waited_above(seen.cwd)):
            return gone
        if not seen.top:
            return self._without_repository(seen, known, claim)
        if known is not None and not seen.is_root and self._grew_from_path(seen, known):
            return known  # the repository was made around it later
        if repository := self._repositories.get(seen.identity):
            if known is not None and known.project_id == repository.project_id:
                return known
            return replace(claim, project_id=repository.project_id)
        if known is not None and not seen.is_stray and self._grew(seen, known):
            self._record_places(known.project_id)  # not this one alone: the next one would wait
            self._record(seen.identity, known.project_id)
            return known
        if self._is_known(claim.project_id):
            self._record_places(claim.project_id)
            if seen.identity in self._repositories:
                return claim
        elif not seen.is_stray:
            self._record(seen.identity, claim.project_id)
            self._first.add(seen.identity)
            return claim
        return self._waiting(seen, claim.project_id)

    def _as_recorded(self, seen: Sighting, now: Project, said: str) -> Project:
        """The project of what a transcript recorded under this remote. A folder that is there and was never that
        project may have said so for the occasion: then what was said has a project of its own."""
        if now.resolved_by == Resolved.WAITING or _same(said, now.project_id) or _same(said, seen.remote):
            return now
        before = self._before.get(now.cwd)
        was_so = before is not None and _same(before.project_id, said)
        if was_so or not seen.is_there or not self._is_recorded(said):
            return Project(now.cwd, self._known_as(said), Resolved.REMOTE)
        return self._waiting(seen, said)

    def _without_repository(self, seen: Sighting, known: Project | None, claim: Project) -> Project:
        """The path is all there is, unless another folder is there by now. Where a repository was, the folder is not
        that project any more."""
        if seen.is_there and self._took_the_place(seen, claim.project_id):
            return self._waiting(replace(seen, identity=_folder(seen)), claim.project_id)
        if seen.is_there:
            self._record(_folder(seen), claim.project_id)
        return known if known is not None and known.project_id == claim.project_id else claim

    def _took_the_place(self, seen: Sighting, project_id: str) -> bool:
        """Is it certainly another folder than the one that was there first? That one lies beside it, or this one was
        known at another path. One that was made anew cannot be told from one that a tool wrote again: it stays."""
        if not seen.folder or _folder(seen) in self._repositories or not self._is_recorded(project_id):
            return False
        if seen.cwd != os.path.realpath(seen.cwd):
            return False
        known = [(each, one.project_id) for each, one in self._repositories.items() if each.startswith("folder ")]
        places = [(*identity.split(" ")[1:], project) for identity, project in known]
        own = digest(seen.cwd)
        first = {inode for inode, path, project in places if path == own and project == project_id}
        moved = any(inode == seen.folder and path != own for inode, path, _ in places)
        return bool(first) and (moved or bool(first & beside(seen.cwd)))

    def _grew(self, seen: Sighting, known: Project) -> bool:
        """Is it what was known, in which a repository was made, or of which none is recorded?"""
        if self._grew_from_path(seen, known):
            return True
        is_open = known.resolved_by != Resolved.WAITING and not self._is_recorded(known.project_id)
        return is_open and self._matches(seen, known.project_id)

    def _grew_from_path(self, seen: Sighting, known: Project) -> bool:
        """Is it the folder that was known when it was in no repository?"""
        if known.project_id != self._seal(seen.cwd):
            return False
        return not self._is_recorded(known.project_id) or self._is_folder_of(seen, known.project_id)

    def _matches(self, seen: Sighting, project_id: str) -> bool:
        return _same(self._seal(seen.claim), project_id) or self._seal(seen.common) == project_id

    def _record_places(self, project_id: str) -> None:
        """Record the repositories of a project whose folders are known, and none of whose repositories is."""
        if self._is_recorded(project_id):
            return
        places = [each for each in self._folders.values() if each.resolved_by != Resolved.WAITING]
        for place in [each for each in places if _same(each.project_id, project_id)]:
            seen = look(place.cwd)
            if seen.is_there and seen.top and not seen.is_stray and self._matches(seen, project_id):
                self._record(seen.identity, project_id)

    def _waited_above(self, cwd: str) -> Project | None:
        """A folder that is gone was a part of the one around it, if that one waits."""
        above = (self._folders.get(self._seal(str(each))) for each in PurePath(cwd).parents)
        found = next((each for each in above if each is not None and each.resolved_by == Resolved.WAITING), None)
        return replace(found, cwd=self._seal(cwd)) if found else None

    def _waiting(self, seen: Sighting, claim: str) -> Project:
        """A project of its own: no other folder, and no other repository in its place, has that name."""
        top = self._seal(seen.top or seen.cwd)
        name = f"{top}@{digest(f'{seen.identity} {claim}')}"
        return Project(self._seal(seen.cwd), name, Resolved.WAITING, claim=claim)

    def _note(self, now: Project) -> None:
        known = self._folders.get(now.cwd)
        if known is None or (known.project_id, known.resolved_by) != (now.project_id, now.resolved_by):
            self._folders[now.cwd] = self._changed[now.cwd] = now
            self._name(now)

    def _name(self, folder: Project) -> None:
        if folder.resolved_by != Resolved.WAITING:
            self._names[folder.project_id] = folder.project_id
            self._names.setdefault(_folded(folder.project_id), folder.project_id)

    def _record(self, identity: str, project_id: str, *, is_confirmed: bool = False) -> None:
        if identity and (is_confirmed or identity not in self._repositories):
            self._repositories[identity] = self._new[identity] = Repository(identity, project_id, is_confirmed)
            self._compare(project_id)

    def _compare(self, project_id: str) -> None:
        self._compared.add(_folded(project_id))
        self._names[project_id] = project_id
        self._names.setdefault(_folded(project_id), project_id)

    def _is_folder_of(self, seen: Sighting, project_id: str) -> bool:
        found = self._repositories.get(_folder(seen))
        return found is not None and found.project_id == project_id

    def _is_recorded(self, project_id: str) -> bool:
        """Is there a repository of that project, or a folder, to compare with?"""
        return _folded(project_id) in self._compared

    def _is_known(self, project_id: str) -> bool:
        return project_id in self._names or _folded(project_id) in self._names

    def _known_as(self, project_id: str) -> str:
        """Hosts tell no case apart: another spelling of a known project is that project."""
        return self._names.get(project_id) or self._names.get(_folded(project_id), project_id)


def _folded(project_id: str) -> str:
    return project_id if project_id.startswith("/") else project_id.casefold()


def _same(one: str, other: str) -> bool:
    return _folded(one) == _folded(other)


def _folder(seen: Sighting) -> str:
    """Names a folder without a repository: another one in its place is told by it."""
    return f"folder {seen.folder} {digest(seen.cwd)}" if seen.folder else ""
