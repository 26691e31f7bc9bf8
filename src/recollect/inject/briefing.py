"""The briefing of a session, live, and ready to send in context/<project>.md for when nobody is there to ask.

index.json tells which folder is given which file: folders that agents worked in, and the repositories around them. A
folder that is not named there is given nothing, nor one with another repository by now, nor any where the environment
says otherwise whose memory it is or what is switched off. Rows are read and files written under one lock, so that
whoever writes last has read last: what was erased does not come back through a slower writer.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import logging
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from recollect import note
from recollect.consolidate.render import project_folder
from recollect.extract.values import left_of
from recollect.inject import render
from recollect.inject.brief import SESSIONS, Known, brief, line_of, outcome_line, sign
from recollect.inject.values import Given, Line, Outcome, injected
from recollect.models.base import ToolRefused
from recollect.projects.paths import is_redacted
from recollect.projects.repository import branch, mark, place
from recollect.store import artifacts, feedback, injections, memories, projects
from recollect.store.database import Transaction
from recollect.store.ground import Ground, Part
from recollect.store.migrate import migrations
from recollect.text import estimate_tokens
from recollect.types import Remembered, Scope, timestamp
from recollect.workspace import READ_LIMIT, Workspace, make_private

log = logging.getLogger(__name__)

INDEX = "index.json"
AT_START = "told at the start of the session"  # why a line is there that was made ready before
_SWITCHES = ("enabled", "tenant", "agent_id", "ignore", "disabled_projects")  # keys that decide who is told what where


class Briefing(Part):
    """`allowed` gives the projects of those folders in which an agent may be told something."""

    def __init__(self, ground: Ground, allowed: Callable[[Iterable[str]], dict[str, str]]) -> None:
        super().__init__(ground)
        settings = ground.settings
        self._allowed = allowed
        self._folder = Workspace(settings.workspace.parent / "context", most=None)

    def orientation(self, project_id: str) -> str:
        """What a session in this project is told now; empty: nothing."""
        return self.told(project_id).text

    def told(self, project_id: str, session: str = "", folder: str = "", *, fresh: bool = True) -> Given:
        """The same with its lines. Where the history is not `fresh`, without what the session still sees."""
        with self._database.read() as tx:
            scopes = [(Scope.USER, "")] + ([(Scope.PROJECT, project_id)] if project_id else [])
            held = self._right(tx, memories.current(memories.in_scopes(tx, self._owner, scopes)))
            shown = [] if fresh or not session else injections.lines(tx, self._owner, session)
            seen = {(each.memory_id, each.revision) for each in shown if each.visible}
            known = self._known(tx, project_id, held, memories.uses(tx, self._owner))
        outcomes = [each for each in known.outcomes if each.session_key.partition("@")[0] != session]
        return self._given(replace(known, outcomes=outcomes, branch=branch(folder) if folder else ""), seen)

    def start(
        self,
        project_id: str,
        session: str,
        later: Callable[[Callable[[], object]], object],
        folder: str = "",
        *,
        fresh: bool = True,
    ) -> Given:
        """The same, and it is kept that the session has it: prompts need not bring it once more. `later` is given the
        write that keeps it."""
        given = self.told(project_id, session, folder, fresh=fresh)
        later(lambda: self._keep(session, given.lines))
        return given

    def started(self, session: str, given: Sequence[tuple[str, int]]) -> None:
        """A session was given these lines, by reference and revision, when nobody was there to keep it."""
        with self._database.read() as tx:
            names = {name: memories.ids(tx, self._owner, name, 2) for name, revision in given if revision}
            held = memories.find(tx, self._owner, [each for found in names.values() for each in found])
            made = {
                (name, each.revision): line_of(each, AT_START, name)
                for name, found in names.items()
                for each in held
                if each.id in found
            }
            for name in (name for name, revision in given if not revision):
                for talk in artifacts.told_of(tx, self._owner, name)[:1]:
                    made[name, 0] = replace(outcome_line(outcome_of(talk), ()), reason=AT_START)
        self._keep(session, [made[each] for each in given if each in made])

    def sign(self, project_id: str, given: Given) -> str:
        """What the person is shown of a briefing; empty where that is switched off."""
        return sign(project_id, given.lines, self._clock()) if self._settings.config.session_message else ""

    def _given(self, known: Known, visible: Collection[tuple[str, int]] = ()) -> Given:
        lines = brief(known, self._clock(), frozenset(visible))
        text = render.rendered(lines)
        return Given(text, estimate_tokens(text), lines)

    def _keep(self, session: str, lines: Sequence[Line]) -> None:
        with self._database.write() as tx:
            injections.save(tx, self._owner, session, timestamp(self._clock()), injected(lines), prompts=0)

    def refresh(self) -> str:
        """Brings every file up to date; those of projects that nothing is known of go. Why that could not be, where
        somebody put something else in the place of a file or of the folder."""
        with self._alone():
            texts, index = self._made()
            try:
                self._folder.sweep()
                for name, text in texts.items():
                    self._folder.write(name, text)
                self._folder.write(INDEX, json.dumps(index, indent=1) + "\n", limit=READ_LIMIT)
                for path in self._folder.files():
                    if path.endswith(".md") and path not in texts:
                        self._folder.delete(path)
            except ToolRefused as error:
                log.warning("what a new session is told is not up to date: %s", error)
                return str(error)
        return ""

    def is_outdated(self) -> bool:
        """Were the files made from rows of an older schema? A migration may have changed what the rows say."""
        try:
            made = json.loads(self._folder.read(INDEX)).get("schema")
        except (OSError, ToolRefused, ValueError, AttributeError):
            return False
        return bool(made != migrations()[-1].version)

    def spoiled(self) -> list[str]:
        """Files that are not as they were made, or of projects that are told nothing any more. What was learnt since is
        no fault: the next run brings it."""
        texts, _ = self._made()
        try:
            known = dict(json.loads(self._folder.read(INDEX))["files"])
        except (OSError, ToolRefused, ValueError, KeyError, TypeError):
            return [INDEX] if texts else []
        there = {path: self._checksum(path) for path in self._folder.files() if path.endswith(".md")}
        names = sorted({*known, *there})
        return [each for each in names if each not in texts or each not in there or there[each] != known.get(each)]

    def _checksum(self, path: str) -> str:
        try:
            return _checksum(self._folder.read(path))
        except ToolRefused:
            return ""

    def _made(self) -> tuple[dict[str, str], dict[str, Any]]:
        """Name → text of every file, and the index."""
        with self._database.read() as tx:
            known = projects.load_all(tx, self._owner)
            held = self._right(tx, memories.current(memories.all_of(tx, self._owner, user="")))
            uses = memories.uses(tx, self._owner)
            by_scope: dict[tuple[Scope, str], list[Remembered]] = {}
            for each in held:
                by_scope.setdefault((each.scope, each.scope_id), []).append(each)
            everywhere = by_scope.get((Scope.USER, ""), [])
            told = {
                project_id: self._given(
                    self._known(tx, project_id, [*everywhere, *by_scope.get((Scope.PROJECT, project_id), ())], uses)
                )
                for project_id in {each.project_id for each in known.values()} - {""}
            }
        folders = self._allowed(cwd for cwd in known if cwd and not is_redacted(cwd))
        names = {
            project: f"{project_folder(project)}.md"
            for project in set(folders.values())
            if project in told and told[project].text
        }
        texts = {name: told[project].text for project, name in names.items()}
        index = {cwd: names[project] for cwd, project in sorted(folders.items()) if project in names}
        index = self._repositories(index, folders) | index
        config = self._settings.config
        return texts, {
            "schema": migrations()[-1].version,
            "config": stamp(self._settings.home / "config.toml"),
            "environ": self._settings.variables(_SWITCHES),
            "folders": index,
            "marks": {cwd: mark(_repository(cwd)) or place(cwd) for cwd in index},
            "whole": not (config.ignore or config.disabled_projects),  # else a folder below may be switched off
            "files": {name: _checksum(text) for name, text in texts.items()},
            "signs": {name: self.sign(project, notes_of(told[project])) for project, name in names.items()},
        }

    def _right(self, tx: Transaction, held: Sequence[Remembered]) -> list[Remembered]:
        """Without what a person called wrong, and what tests alone said."""
        gone = feedback.wrong(tx, self._owner, [each.id for each in held]) | self._ground.unlisted(tx).memories
        return [each for each in held if each.id not in gone]

    def _repositories(self, index: Mapping[str, str], folders: Mapping[str, str]) -> dict[str, str]:
        """Of those folders; only where the repository is the same project: one that was made around it later is not."""
        around = {cwd: top for cwd in index if (top := _repository(cwd))}
        projects = self._allowed(set(around.values()))
        return {top: index[cwd] for cwd, top in around.items() if projects.get(top) == folders[cwd]}

    def _known(
        self, tx: Transaction, project_id: str, held: Sequence[Remembered], uses: Mapping[str, memories.Use]
    ) -> Known:
        return Known(project_id, held, uses, outcomes(tx, self._ground, project_id))

    @contextmanager
    def _alone(self) -> Iterator[None]:
        make_private(self._folder.root)
        descriptor = os.open(self._folder.root / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)


def notes_of(given: Given) -> Given:
    """Without what sessions came to: when that was changes daily."""
    return replace(given, lines=tuple(each for each in given.lines if each.kind))


def outcomes(tx: Transaction, ground: Ground, project_id: str) -> list[Outcome]:
    """What the last sessions of a project came to, the newest first; no notes."""
    found = artifacts.recent(tx, ground.owner, project_id, 4 * SESSIONS) if project_id else []
    return [
        outcome_of(row) for row in found if not (note.is_session(row.session_id) or ground.is_unlisted(row.session_id))
    ]


def outcome_of(talk: artifacts.Summarised) -> Outcome:
    """What a conversation came to, by its summary; where that does not tell, by its sentence."""
    done, left = left_of(talk.told)
    return Outcome(talk.session_key, talk.ended_at or talk.captured_at, done or talk.memory_sentence, left)


def stamp(path: Path) -> str:
    """Tells a file from what it was; as the hook's client does."""
    try:
        found = path.stat()
    except OSError:
        return ""
    return f"{found.st_size}:{found.st_mtime_ns}"


def _checksum(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _repository(cwd: str) -> str:
    """The folder at or above this one that holds a `.git`; empty: none."""
    for folder in (Path(cwd), *Path(cwd).parents):
        try:
            if (folder / ".git").exists():
                return str(folder)
        except OSError:
            break
    return ""
