"""What a memory is made of: every part is wired here, and made when it is first used.

Reading commands do not pay for parsers, models or vectors: nothing of the path is imported before it is needed.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from dataclasses import asdict
from functools import cached_property, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

from recollect.config import Settings
from recollect.errors import Disabled, HalfErased, RecollectError, StoreBusy, Unconfirmed, UsageError
from recollect.hand import Author, may, refusal
from recollect.store import projects
from recollect.store.database import Database
from recollect.store.ground import Ground
from recollect.store.open import open_database
from recollect.store.projects import Project, Resolved
from recollect.types import Clock, Owner, utc_now

if TYPE_CHECKING:
    from datetime import datetime

    from recollect.artifacts.forget import Forget
    from recollect.artifacts.forget import Report as Erased
    from recollect.artifacts.projection import Projection
    from recollect.artifacts.reading import Reader
    from recollect.artifacts.removal import Target
    from recollect.artifacts.tombstones import Unfinished
    from recollect.artifacts.upkeep import Upkeep
    from recollect.consolidate.run import Report as Consolidated
    from recollect.extract.offer import Offer
    from recollect.extract.run import Extract
    from recollect.extract.values import Reading, Strategy
    from recollect.ingest.intake import Intake
    from recollect.inject.briefing import Briefing
    from recollect.inject.run import Injection
    from recollect.projects.folders import Folders
    from recollect.search.run import Search
    from recollect.search.values import Scope as SearchScope
    from recollect.search.vectors.vectors import Vectors
    from recollect.store.erasing import Standing
    from recollect.turns.notes import Notebook
    from recollect.turns.retirement import RetirementNote
    from recollect.types import Conversation, Remembered

log = logging.getLogger(__name__)

_P = ParamSpec("_P")
_R = TypeVar("_R")
_Parts = TypeVar("_Parts", bound="Parts")

_NOWHERE = "none"  # where nothing was said that may be told: what holds everywhere is left
_ALIKE = 10  # texts that mean nearly the same as one to be erased
AGENTS_AT_ONCE = 2  # processes of the person's own agent
_NOTE = 4  # documents that are embedded at once with a note: memories come first


class Parts:
    """The parts of one memory, and how they tell each other what changed."""

    def __init__(self, settings: Settings, clock: Clock = utc_now) -> None:
        self.settings = settings
        self.owner = Owner(settings.config.tenant, settings.config.agent_id)
        self.clock = clock
        self.database: Database = open_database(settings, clock)
        self.ground = Ground(self.database, settings, self.owner, clock)

    def close(self) -> None:
        self.database.close()

    @cached_property
    def intake(self) -> Intake:
        """Stage 1. Made on first use: reading commands do not pay for parsers."""
        from recollect.ingest.intake import Intake

        if not self.settings.config.enabled:
            raise Disabled
        return Intake(self.ground, self._bury)

    def _bury(self, paths: Collection[str]) -> None:
        from recollect.artifacts.files import Files
        from recollect.artifacts.tombstones import bury

        bury(self.ground, Files(self.settings.root), paths)

    @cached_property
    def vectors(self) -> Vectors:
        """What search by meaning goes by."""
        from recollect.search.vectors.vectors import Vectors

        return Vectors(self.ground)

    @cached_property
    def briefing(self) -> Briefing:
        """What a new session is told."""
        from recollect.inject.briefing import Briefing

        return Briefing(self.ground, self.intake.told)

    @cached_property
    def _injection(self) -> Injection:
        from recollect.inject.run import Injection

        return Injection(self.ground, self.project, lambda: self._search, self.told)

    @cached_property
    def _search(self) -> Search:
        from recollect.search.run import Search

        return Search(self.database, self.vectors)

    @cached_property
    def _projection(self) -> Projection:
        from recollect.artifacts.projection import Projection

        return Projection(self.ground, also=self._refresh_context)

    @cached_property
    def _upkeep(self) -> Upkeep:
        from recollect.artifacts.files import Files
        from recollect.artifacts.upkeep import Upkeep
        from recollect.models.choose import language_model

        return Upkeep(
            self.ground,
            Files(self.settings.root),
            self._projection,
            model=lambda: language_model(self.settings, self.settings.config.model),
            permitted=self.intake.permitted,
        )

    @cached_property
    def _notebook(self) -> Notebook:
        from recollect.turns.notes import Notebook

        extract = self._extract(model_name="offline")  # notes ask no model
        return Notebook(self.ground, self.intake, extract, self._projection, changed=self._restate)

    def _retirement(self, write: Callable[[RetirementNote], list[Remembered]], author: Author) -> list[Remembered]:
        """The memories that a note of retirement changed, once that is told everywhere."""
        from recollect.turns.retirement import RetirementNote

        if author.is_agent:
            raise refusal("retire memories, or undo that", ("process", "--again", "--undo"))
        self.finish_removals()
        note = RetirementNote(self.ground)
        changed = write(note)
        if changed:
            note.take_in(self.intake, self._extract(model_name="offline"))
            self._projection.update()
            self._restate(*changed)
        return changed

    @property
    def _noting(self) -> Notebook:
        """A note is written down, whatever is in the way of finishing a removal first."""
        with suppress(StoreBusy, HalfErased):
            self.finish_removals()
        return self._notebook

    @cached_property
    def _reader(self) -> Reader:
        from recollect.artifacts.reading import Reader

        return Reader(self.ground)

    def _used_at(self) -> datetime | None:
        """When somebody last used an agent."""
        return self.intake.used_at()

    @cached_property
    def offer(self) -> Offer:
        """What the person's own agent may read."""
        from recollect.extract.offer import Offer

        return Offer(self.ground, self._used_at)

    def _extract(
        self,
        stopping: Callable[[int], None] = lambda running: None,
        *,
        model_name: str = "",
        reading: Reading | None = None,
        retirement: RetirementNote | None = None,
    ) -> Extract:
        """By the model that is configured, or the one that is named. What the person's own agent reads is checked
        against what they agreed to once more. `retirement` is the note of what is retired on the way."""
        from recollect.artifacts.files import Files
        from recollect.artifacts.session_end import SessionEnd
        from recollect.extract.offer import agreed
        from recollect.extract.run import Extract
        from recollect.extract.values import Reading
        from recollect.models.choose import language_model
        from recollect.turns.retirement import RetirementNote

        if not self.settings.config.enabled:
            raise Disabled
        config = self.settings.config
        model = language_model(self.settings, model_name or config.model)
        names = agreed(config).get(model_name, frozenset())
        permitted: dict[Reading, Callable[[list[Conversation]], list[Conversation]]] = {
            Reading.USUAL: lambda talks: self.offer.left_alone(self.intake.permitted(talks)),
            Reading.OFFERED: lambda talks: [each for each in self.intake.permitted(talks) if each.project_id in names],
            Reading.UNDOING: lambda talks: talks,
        }
        reading = reading or Reading.USUAL
        workers = 1 if model is None else config.extraction_concurrency
        strategy: Strategy
        if model is None:
            from recollect.extract.offline.strategy import Offline

            strategy = Offline()
        else:
            from recollect.extract.model import ByModel

            strategy = ByModel(model, part_tokens=config.model_part_tokens, seconds=config.model_timeout_seconds)
        return Extract(
            self.ground,
            strategy,
            SessionEnd(Files(self.settings.root), self.owner.agent_id, self._projection),
            workers=min(workers, AGENTS_AT_ONCE) if reading is Reading.OFFERED else workers,
            reading=reading,
            stopping=stopping,
            permitted=permitted[reading],
            retiring=(retirement or RetirementNote(self.ground)).add,
        )

    def consolidate(self, *, now: bool = False) -> Consolidated:
        """Phase 2: brings the workspace up to date. `now` does not wait for the pause after the last one."""
        from recollect.consolidate.run import Consolidation, Outcome
        from recollect.models.choose import language_model

        if not self.settings.config.enabled:
            raise Disabled
        self.finish_removals(hurry=True)
        config = self.settings.config
        model = language_model(self.settings, config.consolidation_model or config.model)
        done = Consolidation(self.ground, model).run(now=now)
        if done.outcome is Outcome.SUCCEEDED:
            self.briefing.refresh()
        return done

    @cached_property
    def _eraser(self) -> Forget:
        from recollect.artifacts.forget import Forget

        return Forget(
            self.ground,
            refresh=self._refresh,
            scrub=lambda tables: self.vectors.erase((), tables),
            similar=self._alike,
        )

    def _alike(self, text: str) -> Iterator[Standing]:
        """Memories and summaries that mean nearly the same as a text, where an encoder is there."""
        from recollect.search.values import Wanted
        from recollect.store.erasing import Place, Standing
        from recollect.store.search import Reach
        from recollect.store.vectors import Kind

        if self.vectors.serving() is None:
            return
        kinds = Wanted(kinds=frozenset({Kind.MEMORY, Kind.SUMMARY}))
        for hit in self._search.run(text, Reach(self.owner, None), kinds, _ALIKE, self.clock()):
            place = Place.MEMORY if hit.kind is Kind.MEMORY else Place.SUMMARY
            yield Standing(place, hit.id, hit.snippet, session_key=hit.session_key)

    def finish_removals(self, *, hurry: bool = False) -> Erased | None:
        """Erase what a `forget` left that was cut short; None: none was, or a process that is alive is at it. One look
        where there is nothing to do, so that whatever tells or makes something begins with it."""
        return self._eraser.finish(hurry=hurry) if self.is_erasing(hurry=hurry) else None

    def is_erasing(self, *, hurry: bool = False) -> bool:
        """Was a removal cut short, or is one going on? In a `hurry`: also one that failed and waits for its time."""
        return self._unfinished.is_there(hurry=hurry)

    @cached_property
    def _unfinished(self) -> Unfinished:
        from recollect.artifacts.files import Files
        from recollect.artifacts.tombstones import Unfinished

        return Unfinished(self.ground, Files(self.settings.root))

    def _refresh(self) -> Iterator[str]:
        """MEMORY.md and the workspace without what is gone, and without a model; tells what could not be done."""
        from recollect.consolidate.run import Consolidation, Outcome

        config = self.settings.config
        self._projection.update()
        if failure := self._projection.failure():
            yield failure
        if self.settings.workspace.is_dir():
            consolidation = Consolidation(self.ground, None)
            if (config.consolidation_model or config.model) != "offline":  # what a model wrote stays, but for that
                if failure := consolidation.strike():
                    yield failure
            else:
                done = consolidation.run(now=True)
                if done.outcome not in (Outcome.SUCCEEDED, Outcome.UNCHANGED, Outcome.NO_INPUT):
                    yield f"the workspace: {done.reason or done.outcome}"
        if refused := self._refresh_context():
            yield f"context: {refused}"

    def _named(self, memory: str, author: Author) -> str:
        """The id that the name of a memory stands for; the name where there is none."""
        from recollect.store import memories

        with self.database.read() as tx:
            return (memory and memories.named(tx, self.owner, memory, author.project)) or memory

    def _require_may_forget(self, target: Target, reason: str, author: Author) -> None:
        """NotForAgents where only a person may erase that."""
        from recollect.store import memories

        with self.database.read() as tx:
            revisions = memories.find(tx, self.owner, [target.memory]) if target.memory else []
        told = {f"--{name}": value for name, value in asdict(target).items() if value}
        named = [part for flag, value in told.items() for part in ((flag,) if value is True else (flag, value))]
        why = ("--reason", reason) if reason else ()
        own = () if target.also else revisions  # what quotes it may be anybody's
        refused = may(author, "forget", ("forget", *named, *why), own)
        if refused and (revisions or not target.memory):  # what is not there is told by whoever looks for it
            raise refused

    def _refresh_context(self) -> str:
        """Why it could not be done."""
        return self.briefing.refresh() if self.settings.config.enabled else ""

    def _embedded(self, memory: Remembered) -> Remembered:
        """Found by its meaning at once; where that cannot be, by its words until the next run."""
        try:
            self.vectors.update(_NOTE)
        except RecollectError as error:
            log.warning("%s has no vector yet: %s", memory.id, error)
        return memory

    def _restate(self, *memories: Remembered) -> None:
        """The workspace says at once what they say now; where consolidating costs nothing, as a whole."""
        from recollect.consolidate.restate import restate
        from recollect.models.base import ToolRefused
        from recollect.store import feedback
        from recollect.workspace import Workspace

        config, folder = self.settings.config, self.settings.workspace
        if folder.is_dir():
            with self.database.read() as tx:
                wrong = feedback.wrong(tx, self.owner, [each.id for each in memories])
            try:
                restate(Workspace(folder), *memories, wrong=wrong)
            except (OSError, ToolRefused) as error:
                log.warning("the workspace still says what %s was: %s", ", ".join(each.id for each in memories), error)
            if (config.consolidation_model or config.model) == "offline":
                self.consolidate(now=True)
        self.briefing.refresh()

    def untold(self, place: str) -> RecollectError | None:
        """Why an agent is given nothing there, whatever is known; None: it is given something."""
        if not self.settings.config.enabled:
            return Disabled("memory is switched off (enabled = false)")
        folder = self.settings.folder(place)
        is_folder = Path(folder).is_dir()
        if not self.intake.allowed([folder]) if is_folder else place in self.intake.off([place]):
            return Disabled(f"{place} is switched off (disabled_projects, ignore)", hint="config.toml says so.")
        return self.unconfirmed(folder if is_folder else place)

    def unconfirmed(self, place: str) -> Unconfirmed | None:
        """Why nothing is told in a folder that says that it is a known project, or of the project that it has until a
        person confirms it."""
        folder = self.settings.folder(place)
        if Path(folder).is_dir():
            found = self._folders().find(folder)
            return Unconfirmed.of(folder, found.claim) if found.claim else None
        return next((why for found, why in self._waiting() if found.project_id == place), None)

    def waiting(self) -> list[Unconfirmed]:
        """Folders where agents are told nothing until a person confirms them."""
        return [why for _, why in self._waiting()]

    def _waiting(self) -> Iterator[tuple[Project, Unconfirmed]]:
        with self.database.read() as tx:
            known = projects.load_all(tx, self.owner).values()
        waiting = [each.cwd for each in known if each.resolved_by == Resolved.WAITING]
        folders = self._folders() if waiting else None
        for cwd in sorted(waiting):
            if folders is not None and (found := folders.find(cwd)).claim:
                yield found, Unconfirmed.of(cwd, found.claim)

    def told(self, scope: SearchScope) -> SearchScope | None:
        """Of these projects those that an agent may be told of; None: of nothing."""
        from recollect.search.values import AllProjects
        from recollect.store import conversations

        config = self.settings.config
        if not config.enabled:
            return None
        if isinstance(scope, AllProjects):
            if not (config.disabled_projects or config.ignore):
                return scope
            with self.database.read() as tx:
                known = {each.project_id for each in conversations.search(tx, self.owner)}
            return sorted(known - self.intake.off(known) - {""}) or [_NOWHERE]
        named = [scope] if isinstance(scope, str | Path) else scope
        return [each for each in named if self.untold(str(each)) is None] or None

    def project(self, place: str | Path) -> str:
        """The id of a project; `place` is a folder in it, or the id itself."""
        from recollect.store import conversations
        from recollect.text import is_utf8

        if place == "":
            raise UsageError("an empty name is no project", hint="Name a folder, or a project's id.")
        if isinstance(place, str) and not place.startswith("/"):
            if not place.startswith(("~", ".")) and not Path(place).is_dir():
                return place
            with self.database.read() as tx:  # an id goes before a folder of that name
                if is_utf8(place) and conversations.search(tx, self.owner, project=place, limit=1):
                    return place
        folder = self.settings.folder(str(place))
        if not is_utf8(folder):
            raise UsageError(f"{folder!r} is not UTF-8", hint="Rename the folder, or name another project.")
        real = os.path.realpath(folder)
        folders = self._folders()
        for each in (folder, real):
            if folders.before(each):
                return folders.find(each).project_id
        # a folder that is not there is no part of the repository around it
        return folders.find(real).project_id if Path(real).is_dir() else folder

    def _folders(self) -> Folders:
        """What is recorded of folders, for those who only read: where no name holds a secret, none is looked for."""
        from recollect.projects.folders import Folders
        from recollect.projects.paths import is_redacted, stored

        with self.database.read() as tx:
            recorded = projects.load(tx, self.owner)
        has_secrets = any(map(is_redacted, recorded.folders))
        return Folders(recorded, stored if has_secrets else str)


def settled(verb: Callable[Concatenate[_Parts, _P], _R]) -> Callable[Concatenate[_Parts, _P], _R]:
    """A verb that tells something, or builds on it: what an interrupted `forget` left goes first."""

    @wraps(verb)
    def called(self: _Parts, /, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        self.finish_removals()
        return verb(self, *args, **kwargs)

    return called
