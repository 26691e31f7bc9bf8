"""What the tools and resources do, on an opened memory and with a project that is already known.

Whatever is named by an id has to belong to that project or to the user: an id from elsewhere is as good as none.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from recollect import note
from recollect.app import Memory
from recollect.artifacts import ledger
from recollect.artifacts.lineage import Shown, Talk, Type
from recollect.artifacts.names import Kind
from recollect.errors import Disabled, NotFound, StoreError
from recollect.search.values import ALL_PROJECTS
from recollect.search.values import Scope as SearchScope
from recollect.store import feedback
from recollect.store.open import identity
from recollect.surfaces.mcp import answers
from recollect.text import estimate_tokens
from recollect.types import MemoryKind, Remembered, Scope, Severity

PAGE = 8_000  # characters of a session that one call gives
_SHORT = 400  # characters of a hit
_SOURCES = 5
_ROWS = 50  # of the ledger
_NOWHERE = "none"  # where nothing was said that may be told: what holds everywhere is left

OpenKind = Literal["summary", "transcript", "compaction"]


class Erased(StoreError):
    """The memory that this server was started with is gone."""

    hint = "Start the server again, or a new session."


class Calls:
    def __init__(self, memory: Memory) -> None:
        self._opened = memory
        self._database = identity(memory.settings)

    @property
    def _memory(self) -> Memory:
        """As it is on the disk: a file that was erased or replaced could be read from here for as long as we live."""
        if not self._opened.settings.config.enabled:
            raise Disabled
        there = identity(self._opened.settings)
        if there != self._database:
            self._opened.close()
            if there is None:  # nothing is made anew here: it was purged
                raise Erased
            self._opened, self._database = Memory(self._opened.settings), there
        return self._opened

    def project(self, place: str, *, named: bool) -> str:
        """The id of the project that a path or an id names, if an agent may be told of it. `named` by the call: then
        it has to be known."""
        if off := self._memory.switched_off(place):
            raise Disabled(off, hint="The user's config.toml says so.")
        if named:
            self._memory.require_project(place)
        return self._memory.project(place)

    def search(
        self, query: str, project: str | None, limit: int, kinds: Sequence[str], since: str, until: str
    ) -> answers.Search:
        """`project` None: in all of them but those that are switched off."""
        scope = self._told() if project is None else project
        hits = self._memory.search(query, scope=scope, limit=limit, kinds=kinds, since=since, until=until)
        with self._memory.database.read() as tx:
            wrong = feedback.wrong(tx, self._memory.owner, [each.id for each in hits if each.memory_kind])
        found = [
            answers.Found(
                id=each.id,
                kind=each.memory_kind or str(each.kind),
                text=_short(each.snippet if len(each.text) > _SHORT else each.text),
                date=each.timestamp[:10],
                session=each.session_key or each.session_id,
                project=each.project_id,
                score=round(each.score, 3),
                called_wrong=each.id in wrong,
            )
            for each in hits
        ]
        return answers.Search(project=project or "", hits=found)

    def get(self, memory_id: str, project: str) -> answers.Memory:
        """It counts as use."""
        self._require(memory_id, project)
        shown = self._memory.show(memory_id)
        now, *_ = [each for each in shown.revisions if each.revision == shown.record["revision"]]
        here = [talk for talk in shown.conversations if talk.project_id == project]  # what others said is theirs
        said = [(talk, entry) for talk in here for entry in talk.entries][:_SOURCES]
        return answers.Memory(
            id=now.id,
            revision=now.revision,
            kind=now.kind,
            severity=now.severity,
            text=now.text,
            scope=now.scope,
            since=now.valid_from[:10],
            pinned=now.pinned,
            called_wrong=shown.record["called_wrong"],
            sources=[
                answers.Source(
                    session=talk.session_key, date=entry.timestamp[:10], role=entry.role, text=_short(entry.text)
                )
                for talk, entry in said
            ],
            earlier=[
                each.text
                for each in shown.revisions
                if each.revision < now.revision and (each.scope, each.scope_id) == (now.scope, now.scope_id)
            ],
        )

    def open(self, session: str, kind: OpenKind | None, offset: int, project: str) -> answers.Page:
        talk = self._talk(session, project)
        opened = self._memory.open(talk.session_key, kind)
        end = offset + PAGE
        more = end if end < len(opened.text) else None
        return answers.Page(
            session=talk.session_key, kind=str(opened.kind), text=opened.text[offset:end], next_offset=more
        )

    def sessions(self, project: str | None, limit: int) -> answers.Sessions:
        """Without notes: each is a memory, and no session that somebody had. `project` as with `search`."""
        off = self._off() if project is None else set()

        def wanted(talk: Talk) -> bool:
            return _is_session(talk) and talk.project_id not in off

        size, talks = limit, self._talks(project, limit)
        while len(talks) == size and sum(map(wanted, talks)) < limit:
            size *= 4
            talks = self._talks(project, size)
        found = [
            answers.Session(
                session=each.session_key,
                ended=each.last_message_at,
                messages=each.messages,
                about=each.sentence,
                project=each.project_id,
            )
            for each in [talk for talk in talks if wanted(talk)][:limit]
        ]
        return answers.Sessions(project=project or "", sessions=found)

    def remember(
        self,
        text: str,
        place: str | None,
        everywhere: bool,
        kind: MemoryKind | None,
        severity: Severity | None,
        when: Sequence[str],
    ) -> answers.Noted:
        """`place` is a path or a project id; None where it holds everywhere."""
        folder = Path(place or "")
        project = folder if folder.is_absolute() and folder.is_dir() else place
        return _noted(
            self._memory.remember(text, project=project, everywhere=everywhere, kind=kind, severity=severity, when=when)
        )

    def correct(self, memory_id: str, text: str, when: Sequence[str], project: str) -> answers.Noted:
        self._require(memory_id, project)
        return _noted(self._memory.correct(memory_id, text, when=when))

    def feedback(self, memory_id: str, opinion: str, text: str, project: str) -> answers.Noted:
        self._require(memory_id, project)
        return _noted(self._memory.feedback(memory_id, opinion, text))

    def forget(self, memory_id: str, reason: str, project: str) -> answers.Forgotten:
        self._require(memory_id, project)
        report = self._memory.forget(memory=memory_id, reason=reason)
        return answers.Forgotten(
            memories=len(report.memories),
            messages=report.entries,
            files=len(report.removed_paths),
            problems=list(report.problems),
        )

    def context(self, prompt: str, project: str) -> answers.Context:
        """For a prompt; without one what a new session is told."""
        if not prompt.strip():
            told = self._memory.briefing.orientation(project)
            return answers.Context(project=project, text=told, tokens=estimate_tokens(told))
        given = self._memory.context(project, prompt)
        return answers.Context(project=project, text=given.text, tokens=given.tokens)

    def ledger(self, project: str) -> str:
        """The rows of MEMORY.md that are this project's."""
        rows = [
            ledger.Row(
                each.last_message_at,
                each.session_id,
                each.project_id,
                each.sentence,
                each.path(Kind.SUMMARY),
                each.path(Kind.TRANSCRIPT),
                each.path(Kind.MANIFEST),
            ).text
            for each in self._talks(project, _ROWS)
            if each.path(Kind.MANIFEST)
        ]
        return "\n".join(["# Sessions of this project", "", *(rows or ["No session yet."]), ""])

    def _told(self) -> SearchScope:
        """All projects that an agent may be told of."""
        off = self._off()
        if not off:
            return ALL_PROJECTS
        return sorted({each.project_id for each in self._memory.conversations()} - off - {""}) or [_NOWHERE]

    def _off(self) -> set[str]:
        """Projects that it may not."""
        config = self._memory.settings.config
        if not (config.disabled_projects or config.ignore):
            return set()
        return self._memory.intake.off(each.project_id for each in self._memory.conversations())

    def _talks(self, project: str | None, limit: int) -> list[Talk]:
        days = self._memory.timeline(project=project, limit=limit)
        return [talk for day in days for talk in day.conversations][:limit]

    def _talk(self, session: str, project: str) -> Talk:
        """The newest conversation of that name, if it is this project's."""
        shown = self._look(session)
        own = [each for each in shown.conversations if each.project_id == project] if shown else []
        if not own:
            raise NotFound(
                f"no session {session!r} in this project", hint="recent_sessions and search_memory name them."
            )
        return own[-1]

    def _require(self, memory_id: str, project: str) -> None:
        shown = self._look(memory_id)
        if shown is None or shown.type is not Type.MEMORY or not _belongs(shown, project):
            raise NotFound(f"no memory {memory_id!r} in this project", hint="search_memory gives ids of memories.")

    def _look(self, name: str) -> Shown | None:
        try:
            return self._memory.show(name, use=False)
        except NotFound:
            return None


def _belongs(shown: Shown, project: str) -> bool:
    scope, scope_id = shown.record["scope"], shown.record["scope_id"]
    if scope == Scope.USER:
        return True
    if scope == Scope.PROJECT:
        return bool(scope_id == project)
    return any(each.session_key == scope_id and each.project_id == project for each in shown.conversations)


def _is_session(talk: Talk) -> bool:
    return talk.source != note.SOURCE or not note.is_session(talk.session_id)


def _short(text: str) -> str:
    return text if len(text) <= _SHORT else text[: _SHORT - 1].rstrip() + "…"


def _noted(found: Remembered) -> answers.Noted:
    return answers.Noted(id=found.id, revision=found.revision, text=found.text, scope=str(found.scope))
