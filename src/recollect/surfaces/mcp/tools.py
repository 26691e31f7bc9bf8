"""The tools as a model reads them, and what they do on an opened memory.

Each finds out first which project it is about. Whatever is named by an id has to belong to that project or to the
owner: an id from elsewhere, or of a user of a chat, is as good as none.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Literal

from mcp.server.mcpserver import Context
from mcp.server.mcpserver.resolve import ListRoots, Resolve
from mcp_types import ListRootsResult
from pydantic import Field

from recollect import note
from recollect.app import Memory
from recollect.artifacts import ledger, names
from recollect.artifacts.lineage import Shown, Talk, Type
from recollect.errors import Disabled, NotFound, StoreError
from recollect.hand import Author
from recollect.occasions import MOST
from recollect.search.values import ALL_PROJECTS
from recollect.store import feedback, memories
from recollect.store.open import identity
from recollect.store.vectors import Kind
from recollect.surfaces.mcp import answers
from recollect.surfaces.mcp.scope import Launch, NoProject, place
from recollect.text import estimate_tokens
from recollect.types import Hand, MemoryKind, Remembered, Scope, Severity

PAGE = 8_000  # characters of a session that one call gives
_SHORT = 400  # characters of a hit
_SOURCES = 5
_ROWS = 50  # of the ledger


class Erased(StoreError):
    """The memory that this server was started with is gone."""

    hint = "Start the server again, or a new session."


def client_roots(ctx: Context, project: str | None = None) -> ListRootsResult | ListRoots:
    """The client is asked for its roots only when the call does not name a project, and when it has any."""
    able = ctx.client_capabilities is not None and ctx.client_capabilities.roots is not None
    return ListRoots() if able and project is None else ListRootsResult(roots=[])


def own_roots(ctx: Context) -> ListRootsResult | ListRoots:
    """Who writes is asked for its roots in any case: an agent writes for the project that it works in."""
    return client_roots(ctx)


Roots = Annotated[ListRootsResult, Resolve(client_roots)]
OwnRoots = Annotated[ListRootsResult, Resolve(own_roots)]
Project = Annotated[
    str | None,
    Field(description="Path or id of the project. Leave it out for the project you are working in."),
]
Everywhere = Annotated[bool, Field(description="Look into every project. Only when the user asks for that.")]
MemoryId = Annotated[str, Field(description="As in search results: m-…", min_length=1)]
When = Annotated[
    Sequence[str],
    Field(
        description="Up to six short prompts that the user may type later and that this would change the answer to, in"
        " words that it does not have itself (other names, tools, tasks, symptoms). It is found by them, too.",
        max_length=MOST,
    ),
]
Day = Annotated[str, Field(description="A day or time, e.g. 2026-03-28.")]


class Tools:
    """Their parameters and docstrings are what a model reads."""

    def __init__(self, memory: Memory, launch: Launch) -> None:
        self._opened = memory
        self._database = identity(memory.settings)
        self._launch = launch

    def search_memory(
        self,
        query: Annotated[str, Field(description="Plain words: a question, a name, a path, an error.", min_length=1)],
        roots: Roots,
        project: Project = None,
        all_projects: Everywhere = False,
        limit: Annotated[int, Field(ge=1, le=50)] = 8,
        kinds: Annotated[list[Kind] | None, Field(description="Only these. Default: all.")] = None,
        since: Day = "",
        until: Day = "",
    ) -> answers.Search:
        """Finds memories, summaries and messages of earlier sessions; nothing when nothing is relevant."""
        where = self._where(project, roots, everywhere=all_projects)
        scope = where or self._memory.told(ALL_PROJECTS) or ""
        wanted = [str(each) for each in kinds or ()]
        hits = self._memory.search(query, scope=scope, limit=limit, kinds=wanted, since=since, until=until)
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
        return answers.Search(project=where or "", hits=found)

    def get_memory(self, id: MemoryId, roots: Roots, project: Project = None) -> answers.Memory:
        """A memory in full, with what it came from. Cite its id when you rely on it."""
        here = self.here(project, roots)
        shown = self._memory.show(self._require(id, here))
        now, *_ = [each for each in shown.revisions if each.revision == shown.record["revision"]]
        told = [
            talk for talk in shown.conversations if talk.project_id == here and not talk.user
        ]  # what others said is theirs
        said = [(talk, entry) for talk in told for entry in talk.entries][:_SOURCES]
        return answers.Memory(
            id=now.id,
            revision=now.revision,
            kind=now.kind,
            severity=now.severity,
            text=now.text,
            scope=now.scope,
            hand=now.hand,
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

    def open_session(
        self,
        session: Annotated[str, Field(description="As in search results or recent_sessions.", min_length=1)],
        roots: Roots,
        kind: Annotated[
            Literal["summary", "transcript", "compaction"] | None, Field(description="Default: the summary.")
        ] = None,
        offset: Annotated[int, Field(ge=0, description="next_offset of the part before.")] = 0,
        project: Project = None,
    ) -> answers.Page:
        """What is kept of an earlier session, part by part."""
        talk = self._talk(session, self.here(project, roots))
        opened = self._memory.open(talk.session_key, kind)
        end = offset + PAGE
        more = end if end < len(opened.text) else None
        return answers.Page(
            session=talk.session_key, kind=str(opened.kind), text=opened.text[offset:end], next_offset=more
        )

    def recent_sessions(
        self,
        roots: Roots,
        project: Project = None,
        all_projects: Everywhere = False,
        limit: Annotated[int, Field(ge=1, le=50)] = 10,
    ) -> answers.Sessions:
        """What was done lately, a sentence per session."""
        return self.sessions(self._where(project, roots, everywhere=all_projects), limit)

    def remember(
        self,
        text: Annotated[str, Field(description="One statement that is understood without its context.", min_length=1)],
        roots: OwnRoots,
        everywhere: Annotated[bool, Field(description="It holds in every project, not only in this one.")] = False,
        kind: Annotated[MemoryKind | None, Field(description="Default: as the words tell.")] = None,
        severity: Annotated[Severity | None, Field(description="Default: as the words tell.")] = None,
        when: When = (),
        project: Project = None,
    ) -> answers.Noted:
        """Notes something for this project, marked as an agent's. It binds nobody: rules, and what holds everywhere,
        are for the user to say (the error names the command). The same words again are the same memory."""
        self._require_confirmed(roots)
        where = None if everywhere else self._place(project, roots)
        folder = Path(where or "")
        of = folder if folder.is_absolute() and folder.is_dir() else where
        by = Author(Hand.AGENT) if everywhere else self._author(roots, where or "")
        return _noted(
            self._memory.remember(
                text, project=of, everywhere=everywhere, kind=kind, severity=severity, when=when, author=by
            )
        )

    def correct_memory(
        self,
        id: MemoryId,
        text: Annotated[str, Field(description="What it should say, in full.", min_length=1)],
        roots: OwnRoots,
        when: When = (),
        project: Project = None,
    ) -> answers.Noted:
        """Makes a note of an agent's say something else from now on; what it said stays in its history. Any other
        memory is corrected by the user: the error names the command."""
        here = self.here(project, roots)
        return _noted(self._memory.correct(self._require(id, here), text, when=when, author=self._author(roots, here)))

    def forget_memory(
        self,
        id: MemoryId,
        reason: Annotated[str, Field(description="Why; it is kept, the text is not.", min_length=1)],
        roots: OwnRoots,
        project: Project = None,
    ) -> answers.Forgotten:
        """Erases a note of an agent's for good. Any other memory is erased by the user: the error names the command."""
        here = self.here(project, roots)
        by = self._author(roots, here)
        report = self._memory.forget(memory=self._require(id, here), reason=reason, author=by)
        return answers.Forgotten(
            memories=len(report.memories),
            messages=report.entries,
            files=len(report.removed_paths),
            problems=list(report.problems),
        )

    def memory_feedback(
        self,
        id: MemoryId,
        opinion: Literal["ok", "not_ok"],
        roots: OwnRoots,
        text: Annotated[str, Field(description="What is wrong with it.")] = "",
        project: Project = None,
    ) -> answers.Noted:
        """Says that a note of an agent's turned out wrong: it is no longer injected. Any other memory is judged by the
        user: the error names the command."""
        here = self.here(project, roots)
        by = self._author(roots, here)
        return _noted(self._memory.feedback(self._require(id, here), opinion, text, author=by))

    def memory_context(
        self,
        roots: Roots,
        prompt: Annotated[str, Field(description="What you are about to do; empty: in general.")] = "",
        project: Project = None,
    ) -> answers.Context:
        """What matters from memory for a task in this project."""
        return self.context(prompt, self.here(project, roots))

    # What pages show, too

    def here(self, project: str | None, roots: ListRootsResult) -> str:
        """The id of the project that a call is about, if an agent may be told of it. One that the call names has to be
        known."""
        self._memory.finish_removals()
        self._require_confirmed(roots)
        found = self._place(project, roots)
        if off := self._memory.untold(found):
            raise off
        if project is not None:
            self._memory.require_project(found)
        return self._memory.project(found)

    def context(self, prompt: str, project: str) -> answers.Context:
        """For a prompt; without one what a new session is told."""
        if not prompt.strip():
            told = self._memory.briefing.orientation(project)
            return answers.Context(project=project, text=told, tokens=estimate_tokens(told))
        given = self._memory.context(project, prompt)
        return answers.Context(project=project, text=given.text, tokens=given.tokens)

    def sessions(self, project: str | None, limit: int) -> answers.Sessions:
        """Without notes: each is a memory, and no session that somebody had. `project` None: of all but those
        that are switched off."""
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

    def ledger(self, project: str) -> str:
        """The rows of MEMORY.md that are this project's."""
        rows = [
            ledger.Row(
                each.last_message_at,
                each.session_id,
                each.project_id,
                each.sentence,
                each.path(names.Kind.SUMMARY),
                each.path(names.Kind.TRANSCRIPT),
                each.path(names.Kind.MANIFEST),
            ).text
            for each in self._talks(project, _ROWS)
            if each.path(names.Kind.MANIFEST)
        ]
        return "\n".join(["# Sessions of this project", "", *(rows or ["No session yet."]), ""])

    # What these stand on

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

    def _place(self, project: str | None, roots: ListRootsResult) -> str:
        return place(project, self._launch, [str(root.uri) for root in roots.roots])

    def _where(self, project: str | None, roots: ListRootsResult, *, everywhere: bool) -> str | None:
        """The project that a call is about; None: every project."""
        if not everywhere:
            return self.here(project, roots)
        self._require_confirmed(roots)
        return None

    def _require_confirmed(self, roots: ListRootsResult) -> None:
        """An agent in a folder that nobody has confirmed is told nothing, whatever project it names."""
        with suppress(NoProject):
            if waiting := self._memory.unconfirmed(self._place(None, roots)):
                raise waiting

    def _off(self) -> set[str]:
        """Projects that an agent may not be told of."""
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
        own = [each for each in shown.conversations if each.project_id == project and not each.user] if shown else []
        if not own:
            raise NotFound(
                f"no session {session!r} in this project", hint="recent_sessions and search_memory name them."
            )
        return own[-1]

    def _require(self, name: str, project: str) -> str:
        """The id of a memory of the project or of the user; the beginning of one will do."""
        with self._memory.database.read() as tx:
            found = memories.named(tx, self._memory.owner, name, project)
        shown = self._look(found) if found else None
        if shown is None or shown.type is not Type.MEMORY or not _belongs(shown, project):
            raise NotFound(f"no memory {name!r} in this project", hint="search_memory gives ids of memories.")
        return found

    def _author(self, roots: ListRootsResult, named: str) -> Author:
        """The agent, in the project that its session is in; where nobody says which, in the one that the call names."""
        try:
            here = self._place(None, roots)
        except NoProject:
            here = named
        return Author(Hand.AGENT, self._memory.project(here), self._launch.session)

    def _look(self, name: str) -> Shown | None:
        try:
            return self._memory.show(name)
        except NotFound:
            return None


def _belongs(shown: Shown, project: str) -> bool:
    scope, scope_id = shown.record["scope"], shown.record["scope_id"]
    if shown.record["user"]:  # of a chat
        return False
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
