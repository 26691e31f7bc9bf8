"""`open_memory()` and what can be done with a memory: the verbs of the command line. Nothing else opens a store."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from threading import Event
from types import TracebackType
from typing import TYPE_CHECKING, Any

from recollect import config as configuration
from recollect.browse import Browse
from recollect.errors import RecollectError, UsageError, one_of
from recollect.hand import PERSON, Author
from recollect.parts import settled
from recollect.types import Clock, parse_timestamp, timestamp, utc_now

log = logging.getLogger(__name__)

_SHORT_ID = 8  # characters, as `conversations` shows them
_FEW = 3  # of several that a beginning may mean, those that are named
_EMBEDDED_AT_ONCE = 256  # documents between two looks at the clock

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from recollect.artifacts.forget import Report as Forgotten
    from recollect.artifacts.moving import Exported, Imported
    from recollect.artifacts.reindex import Progress as Reading
    from recollect.artifacts.reindex import Report as Reindexed
    from recollect.artifacts.removal import Plan, Target
    from recollect.doctor import Report as Examined
    from recollect.extract.run import Progress as Done
    from recollect.extract.values import Report as Processed
    from recollect.ingest.run import Progress, Report
    from recollect.inject.injector import Injector
    from recollect.inject.run import Told
    from recollect.inject.values import Exchange, Given, InjectorConfig
    from recollect.overview import Overview
    from recollect.search.values import Hit
    from recollect.search.values import Scope as SearchScope
    from recollect.search.vectors.update import Progress as Embedding
    from recollect.turns.chat import Turns
    from recollect.turns.values import TurnScope
    from recollect.types import MemoryKind, Remembered, Severity, Timestamp


def open_memory(
    home: Path | str | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    clock: Clock = utc_now,
    **flags: Any,
) -> Memory:
    """The memory under `home` (else RECOLLECT_HOME, else ~/.recollect). Further keywords are configuration keys."""
    if home == "":
        raise UsageError("the name of the home is empty", hint="Leave it away, or name a folder.")
    return Memory(configuration.load(environ, home=None if home is None else Path(home), flags=flags), clock)


class Memory(Browse):
    """Everything recollect does, by the names of its commands. Close it, or use it in a `with` statement."""

    def __enter__(self) -> Memory:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @settled
    def ingest(
        self,
        *,
        file: Path | str | None = None,
        folder: Path | str | None = None,
        source: str | None = None,
        reimport: bool = False,
        since: str = "",
        author: Author = PERSON,
        progress: Progress = lambda size, count: None,
        expect: Progress = lambda size, count: None,
    ) -> Report:
        """Takes in a file, a folder, or every agent's transcripts on this machine; those written `since` a time."""
        report = self.intake.ingest(
            file=None if file is None else Path(file),
            folder=None if folder is None else Path(folder),
            source=source,
            reimport=reimport,
            since=since,
            author=author,
            progress=progress,
            expect=expect,
        )
        self._rebuild_turns()
        started = time.perf_counter()
        report.indexed = self.index()
        report.index_seconds = time.perf_counter() - started
        self.count_citations()
        return report

    def process(
        self,
        *,
        limit: int | None = None,
        now: bool = False,
        again: bool = False,
        progress: Done = lambda done, of: None,
        stopping: Callable[[int], None] = lambda running: None,
    ) -> Processed:
        """Phase 1: extracts memories from the conversations that are ready. `now` takes everything there is; `again`
        also what was read without the model that is configured now, or by another one.

        `stopping` is told how many answers are waited for after a first Ctrl-C.
        """
        from recollect.artifacts.users import settle
        from recollect.turns.retirement import RetirementNote

        self.finish_removals(hurry=True)
        if settle(self.ground):  # then the workspace may tell of it
            for problem in self._refresh():
                log.warning("%s", problem)
        self.intake.mark_ready()
        retirement = RetirementNote(self.ground)
        extract = self._extract(stopping, retirement=retirement)
        report = extract.run(limit=limit, now=now, again=again, progress=progress)
        self.have_agent_read(
            report, limit=limit, now=now, again=again, progress=progress, stopping=stopping, retirement=retirement
        )
        retirement.take_in(self.intake, self._extract(model_name="offline"))
        kept = self._upkeep.run()
        report.failed += len(kept.problems)
        report.problems += kept.problems
        outdated = self.briefing.is_outdated()
        if outdated:
            self._restate_loosened()
        changed = report.stored or outdated or self._projection.is_due()
        if changed or not self._projection.exists() or self._projection.is_past():
            self._projection.update()
        return report

    def retire(self, ids: Iterable[str], why: str, *, author: Author = PERSON) -> list[Remembered]:
        """No agent is told these memories any more; what they say stays in their files and in `show`. Returns those
        that were not retired before. NotForAgents for agents."""
        return self._retirement(lambda note: note.retire(list(ids), why), author)

    def restore(self, ids: Iterable[str] | None = None, *, author: Author = PERSON) -> list[Remembered]:
        """Undoes the retirement of these memories; without `ids` of all that the newest retirement named. Returns those
        that hold again. NotForAgents for agents."""
        return self._retirement(lambda note: note.restore(None if ids is None else list(ids)), author)

    def _restate_loosened(self) -> None:
        """What binds no more since an upgrade is told so in the workspace, too."""
        from recollect.store import memories

        with self.database.read() as tx:
            found = memories.current(memories.find(tx, self.owner, memories.loosened(tx, self.owner)))
        if found:
            self._restate(*found)

    @settled
    def record_compaction(
        self, session: str, summary: str, at: Timestamp | None = None, uuid: str = "", *, reset: bool = True
    ) -> bool:
        """An agent replaced its history by this text: kept in a file when this returns, and only then is what the
        session was given no longer visible; not `reset` where the session's new start says that by itself. `session`
        is its id, a session key, or what the turns of a chat call their conversation. False: no such conversation."""
        from recollect.text import is_utf8

        if not isinstance(session, str) or not session.strip() or not is_utf8(session):
            raise UsageError("which session was compacted?", hint="Name it by its id, a chat by its conversation.")
        if not isinstance(uuid, str) or not is_utf8(uuid):
            raise UsageError("the uuid of a compaction is a text that can be stored", hint="It may be left out.")
        try:
            at = parse_timestamp(at) if at else timestamp(self.clock())
        except (ValueError, TypeError):
            raise UsageError(f"`{at}` is no time", hint="Pass ISO-8601 text, or nothing: then it is now.") from None
        if not isinstance(summary, str) or not summary.strip():
            raise UsageError("a compaction needs its summary: what stands in the place of the history")
        talk = self._upkeep.record(self._chat(session) or session, summary, at, uuid)
        if talk is not None and reset:
            for name in {session, talk.session_id}:
                self.compacted(name)
        return talk is not None

    def _chat(self, name: str) -> str:
        """The session of the chat whose turns call it so, read as far as it goes; empty: there is none."""
        from recollect.note import is_chat
        from recollect.store import conversations
        from recollect.turns.log import safe_name

        logs = list(self.settings.turns.glob(f"*/*/{safe_name(name)}.jsonl"))
        if not logs:
            return ""
        self.intake.take(logs)
        with self.database.read() as tx:
            near = conversations.with_key(tx, self.owner, f"{name[:100]}.")
        found = sorted({each.session_id for each in near if is_chat(each)})
        own = [each for each in found if each.rpartition(".")[0] == name[:100]]
        if len(own) > 1:
            raise UsageError(f"several chats are called {name}", hint=f"Name one by its session: {', '.join(own)}.")
        return "".join(own)

    def recover(self, session_key: str) -> list[str]:
        """Finishes what an interrupted run left of a conversation; the states that were found."""
        from recollect.artifacts.files import Files
        from recollect.artifacts.states import Recovery

        recovery = Recovery(self.ground, Files(self.settings.root), self._projection, self._extract())
        return [str(state) for state in recovery.recover(session_key)]

    def reindex(self, *, full: bool = False, progress: Reading = lambda done, of: None) -> Reindexed:
        """Rebuilds content and MEMORY.md from the canonical files alone; what only the database knows stays."""
        from recollect.artifacts.reindex import Problem, Reindex

        before = self.finish_removals(hurry=True)
        report = Reindex(self.ground).run(full=full, progress=progress)
        self._rebuild_turns(full=full)
        finished = [each for each in (before, self.finish_removals()) if each]
        report.erased += sum(each.conversations + each.entries for each in finished)
        report.problems += [Problem("workspace", "NotRefreshed", what) for each in finished for what in each.problems]
        self._projection.update()
        return report

    @settled
    def export(self, file: Path | str, *, force: bool = False) -> Exported:
        """Everything that cannot be derived, in one archive. `force` replaces a file of that name."""
        from recollect.artifacts.moving import Export

        return Export(self.ground, self._upkeep).run(Path(file), force=force)

    @settled
    def import_(self, file: Path | str) -> Imported:
        """Takes in an archive: into an empty home, or beside what is there."""
        from recollect.artifacts.moving import Import

        return Import(self.ground, self.reindex).run(Path(file))

    def forget(
        self,
        *,
        session: str = "",
        conversation: str = "",
        memory: str = "",
        project: str = "",
        user: str = "",
        text: str = "",
        also: bool = False,
        reason: str = "",
        digest: str = "",
        author: Author = PERSON,
    ) -> Forgotten:
        """Erases for good: a session, a conversation by its key, what a memory came from, a project, or everything of a
        user of chats, in all projects or in the one that is named beside; or everything that says a `text`. With `also`
        what quotes it, or is near the text, goes too: else the report lists it. The tombstone keeps the `reason`.
        With the `digest` of a plan nothing goes unless it is what that plan told: Outdated."""
        from recollect.artifacts.removal import Target

        named = Target(session, conversation, memory, project, user, text, also)
        target = self._target(named, reason, author)
        return self._eraser.run(target, reason, digest)

    def forgetting(
        self,
        *,
        session: str = "",
        conversation: str = "",
        memory: str = "",
        project: str = "",
        user: str = "",
        text: str = "",
        also: bool = False,
        reason: str = "",
        author: Author = PERSON,
    ) -> Plan:
        """What `forget` would erase. Whoever may not erase it is not shown it either."""
        from recollect.artifacts.removal import Target

        named = Target(session, conversation, memory, project, user, text, also)
        return self._eraser.plan(self._target(named, reason, author))

    def _target(self, named: Target, reason: str, author: Author) -> Target:
        """The target by the names that rows have. NotForAgents where only a person may erase it."""
        from recollect.artifacts.mentions import says

        if self.settings.config.enabled and self.settings.turns.is_dir():  # turns that nobody has taken in yet
            self.intake.ingest(folder=self.settings.turns)
        if named.text and says(reason, named.text):
            raise UsageError("the reason says the text, and it is kept", hint="Give another reason, or none.")
        target = replace(named, memory=self._named(named.memory, author), project=self._stored_as(named.project))
        self._require_may_forget(target, reason, author)
        return target

    def session(self, name: str) -> str:
        """The id of the session that is meant: of one that is known, the beginning of it will do."""
        from recollect.store import conversations

        with self.database.read() as tx:
            return _meant(name, conversations.sessions(tx, self.owner, name, _FEW), "sessions")

    def conversation(self, name: str) -> str:
        """The key of the conversation that is meant: of one that is known, the beginning of it will do."""
        from recollect.store import conversations

        with self.database.read() as tx:
            near = conversations.with_key(tx, self.owner, name) if len(name) >= _SHORT_ID else []
        return _meant(name, list(dict.fromkeys(each.session_key for each in near)), "conversations")

    def _stored_as(self, project: str) -> str:
        """As rows have it: an id, or the folder that is named, by whatever path."""
        from recollect.store import erasing
        from recollect.text import is_utf8

        def known(name: str) -> bool:
            with self.database.read() as tx:
                return is_utf8(name) and bool(erasing.keys(tx, self.owner, project=name))

        if not project or known(project):
            return project
        folder = self.settings.folder(project)
        return next(filter(known, (folder, os.path.realpath(folder))), project)

    @settled
    def confirm_project(self, folder: Path | str) -> str:
        """A person says that a folder is the project that it says it is: another clone, or a copy of one. Returns the
        project's id."""
        if not str(folder):
            raise UsageError("an empty name is no folder", hint="Name the folder that you confirm.")
        confirmed = self.intake.confirm(self.settings.folder(str(folder)))
        self.briefing.refresh()
        return confirmed.project_id

    def remember(
        self,
        text: str,
        *,
        project: Path | str | None = None,
        everywhere: bool = False,
        kind: MemoryKind | None = None,
        severity: Severity | None = None,
        when: Sequence[str] = (),
        author: Author = PERSON,
    ) -> Remembered:
        """What a person says, as a memory of the project, or of the user if it holds everywhere.

        `project` is a folder, or as text the id or the folder of a project that is known. `when` are prompts that it
        would change the answer to, in words that it does not have itself: it is found by them, too.
        """
        project = self._stored_as(project) if isinstance(project, str) else project
        held = self._noting.remember(
            text, project=project, everywhere=everywhere, kind=kind, severity=severity, when=when, author=author
        )
        return self._embedded(held)

    def correct(
        self,
        memory_id: str,
        text: str,
        *,
        kind: MemoryKind | None = None,
        severity: Severity | None = None,
        when: Sequence[str] = (),
        revision: int = 0,
        author: Author = PERSON,
    ) -> Remembered:
        """The memory says this from now on, everywhere; `when` as with `remember`. Outdated, and nothing changed, where
        somebody saw another `revision` than it has."""
        said = self._noting.correct(
            memory_id, text, kind=kind, severity=severity, when=when, revision=revision, author=author
        )
        return self._embedded(said)

    def pin(self, memory_id: str, *, author: Author = PERSON) -> Remembered:
        """The memory stands first, and stays."""
        return self._embedded(self._noting.pin(memory_id, author=author))

    def unpin(self, memory_id: str, *, author: Author = PERSON) -> Remembered:
        """It stands where it stood before."""
        return self._embedded(self._noting.pin(memory_id, pinned=False, author=author))

    def feedback(self, memory_id: str, opinion: str, text: str = "", *, author: Author = PERSON) -> Remembered:
        """`ok` or `not_ok`; the newest one counts."""
        from recollect.turns.notes import Opinion

        held = self._noting.feedback(memory_id, one_of(Opinion, opinion, "an opinion"), text, author)
        self._restate(held)
        return held

    @settled
    def search(
        self,
        query: str,
        *,
        scope: SearchScope,
        user: str = "",
        limit: int = 10,
        kinds: Iterable[str] = (),
        role: str = "",
        source: str = "",
        since: str = "",
        until: str = "",
        now: datetime | None = None,
    ) -> list[Hit]:
        """What is known about the query within the scope, best first; nothing, when nothing is relevant.

        `scope` is a project (path or id), several, or `ALL_PROJECTS`. With the `user` of a chat it is what is theirs,
        and the memories of the projects that are no user's; without one nothing of any user is found. `now` is what
        "last week" counts from.
        """
        from recollect.search.request import reach, wanted

        with self.database.read() as tx:
            hidden = self.ground.unlisted(tx)
        within = reach(self.owner, scope, self.project, user, hidden)
        narrowed = wanted(kinds, role=role, source=source, since=since, until=until)
        if limit < 1 or not query.strip():
            return []
        self.index()
        return self._search.run(query, within, narrowed, limit, now or self.clock())

    def injector(
        self,
        scope: SearchScope,
        config: InjectorConfig | None = None,
        *,
        user: str = "",
        session: str = "",
        form: str = "",
        **settings: Any,
    ) -> Injector:
        """Puts memories into the message list of one conversation. `scope` is a project (path or id), several, or
        `ALL_PROJECTS`; `user` is that of a chat, as for `search`; `session` is what `recollect context --last` calls
        the conversation; `form` names the message format (openai, responses, anthropic, pydantic-ai) where the messages
        leave it open; `settings` are fields of `InjectorConfig`."""
        self.finish_removals()
        return self._injection.injector(scope, config, user=user, session=session, form=form, **settings)

    @settled
    def context(
        self,
        project: SearchScope,
        prompt: str = "",
        session: str = "",
        exchanges: Sequence[Exchange] = (),
        *,
        user: str = "",
    ) -> Given:
        """What a session in the project, or one of a chat's user, would be given now. Changes nothing."""
        return self._injection.context(project, prompt, session, exchanges, user)

    @settled
    def give(
        self,
        project: SearchScope,
        prompt: str,
        session: str,
        exchanges: Sequence[Exchange] = (),
        later: Callable[[Callable[[], object]], object] = lambda write: write(),
    ) -> Given:
        """The same, for a harness that owns its history: it is kept that the session has it. `later` is given the write
        that keeps it, for callers who do not wait for that."""
        return self._injection.give(project, prompt, session, exchanges, later)

    def compacted(self, session: str) -> int:
        """A harness cleared or compacted a session's history: nothing it was given is visible any more."""
        return self._injection.compacted(session)

    @settled
    def given_last(self, session: str = "") -> list[Told]:
        """What a session, or each of the last ones, was given last."""
        return self._injection.last(session)

    def _rebuild_turns(self, *, full: bool = False) -> None:
        """Turn memory follows from its files."""
        from recollect.turns.rows import rebuild

        rebuild(self.ground, full=full)

    @settled
    def turns(
        self, scope: TurnScope | None = None, *, project: str = "", user: str = "", conversation: str = ""
    ) -> Turns:
        """The turns of one conversation of one user: turn memory for a chat. A missing name is an error."""
        from recollect.turns.chat import Turns
        from recollect.turns.values import TurnScope

        chosen = TurnScope(project, user, conversation) if scope is None else scope
        return Turns(self.ground, chosen, self.intake, lambda: self._search, lambda: self.vectors, self.forget)

    def index(self) -> int:
        """Brings the full text up to date; how many entries were new to it."""
        from recollect.store.words import index_entries

        return index_entries(self.database)

    @settled
    def embed(self, *, seconds: float | None = None, progress: Embedding = lambda done, of: None) -> int:
        """Makes vectors that are missing, newest first, for so many seconds; how many documents got one."""
        made, started = 0, time.monotonic()

        def told(done: int, of: int) -> None:
            progress(made + done, made + of)

        while True:
            done = sum(self.vectors.update(None if seconds is None else _EMBEDDED_AT_ONCE, told).made.values())
            made += done
            if not done or seconds is None or time.monotonic() - started >= seconds:
                return made

    def retry(self) -> int:
        """Dead, failed, backing-off and paused jobs get a fresh start, and a removal is done at once; how many."""
        from recollect.store.jobs import Jobs

        with self.database.write() as tx:
            revived = Jobs(self.owner, clock=self.clock).revive(tx)
        self.finish_removals()
        return revived

    def status(self) -> Overview:
        """What is there and what is going on."""
        from recollect.overview import overview

        return overview(self)

    def health(self) -> Overview:
        """The same, with every malformed line named and the database checked."""
        from recollect.overview import overview

        return overview(self, deep=True)

    def doctor(self, *, fix: bool = False) -> Examined:
        """Everything that is wrong; `fix` mends what can be mended."""
        from recollect.doctor import Doctor

        told = self.briefing if self.settings.config.enabled else None
        return Doctor(self.ground, self.recover, self.reindex, told).run(fix=fix)

    def watch(self, stop: Event, on_change: Callable[[Report], None] = lambda report: None) -> None:
        """Takes in what changes until `stop` is set."""
        from recollect.ingest.watch import watch

        def changed(report: Report) -> None:
            if report.entries:
                self.index()
            on_change(report)
            try:
                self.embed(seconds=1.0)
            except RecollectError as error:  # an endpoint that does not answer: vectors wait, the rest goes on
                log.warning("vectors wait: %s", error)

        watch(self.intake, stop, self.settings.config.poll_interval_seconds, changed)


def _meant(name: str, found: list[str], what: str) -> str:
    """Return the one of `found` that the name stands for, or the name itself where that is not to be told."""
    if len(name) < _SHORT_ID or not found or name in found:
        return name
    if len(found) > 1:
        raise UsageError(f"{name} may be any of these {what}: {', '.join(found[:_FEW])}", hint="Give more of it.")
    return found[0]
