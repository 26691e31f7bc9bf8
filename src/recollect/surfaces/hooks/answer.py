"""What each event of an agent gets, inside the daemon.

An event is somebody else's text: it is checked here, once, and what is not as it must be gets nothing and leaves
nothing. A transcript is only ever read from where agents keep theirs. Sub-agents and paused sessions get nothing.

- SessionStart: the briefing of the session's project; after `resume` and `fork` what the session does not see yet,
  else what was injected before counts as gone.
  A session that keeps a transcript also asks for one run of the pipeline.
- UserPromptSubmit: what is relevant to the prompt, usually nothing.
- Stop, PreCompact, PostCompact, SessionEnd: the transcript is queued; nothing is printed.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import msgspec

from recollect.app import Memory
from recollect.errors import RecollectError
from recollect.home import UnsafeHome, open_own, require_folder
from recollect.ingest.scan import SUFFIXES
from recollect.ingest.sources import all_sources
from recollect.surfaces.daemon.work import Task, Work
from recollect.surfaces.hooks import client
from recollect.surfaces.hooks.keeper import Keeper

log = logging.getLogger(__name__)

CLAUDE, CODEX = client.AGENTS
_QUESTION = "which database does the deployment use?"  # one that memories are looked up for: small talk is not
_GOING_ON = ("resume", "fork")  # sources of a SessionStart that keep the history
_LONGEST_PATH = 4096
_REMEMBERED = 256  # folders whose last session is known


class Event(msgspec.Struct):
    """The fields that are used; others may be there. Anything of another type makes the event invalid."""

    session_id: str
    cwd: str = ""
    transcript_path: str | None = None
    agent_id: str | None = None  # of a sub-agent
    source: str = ""  # of a SessionStart
    prompt: str = ""
    compact_summary: str | None = None
    turn_id: str | None = None  # Codex


@dataclass(frozen=True, slots=True)
class Call:
    """An event that was checked."""

    name: str
    agent: str  # the source of its transcripts
    event: Event
    folders: Mapping[str, str]  # variables of the agent's environment that tell where it keeps transcripts


class Hooks:
    """`queue` takes work without waiting."""

    def __init__(self, memory: Memory, queue: Callable[[Work], None]) -> None:
        self._memory = memory
        self._queue = queue
        self._keeper = Keeper()
        self._sessions: dict[str, str] = {}  # folder → the session that was seen there last

    def answer(self, fields: Sequence[str], payload: bytes) -> bytes:
        """What the agent is to read, as one line of JSON; empty: nothing."""
        call = checked(fields, payload)
        if call is None or call.event.agent_id:
            return b""
        self._notice(call.event)
        if call.name in ("SessionStart", "UserPromptSubmit") and self._memory.is_erasing():
            self._queue(Work(task=Task.RUN))  # it finishes a removal that was cut short; until then nothing is told
            return b""
        if call.name == "SessionStart":
            return self._start(call)
        if call.name == "UserPromptSubmit":
            return client.printed(call.name, self._prompt(call))
        self._enqueue(call)
        return b""

    def _notice(self, event: Event) -> None:
        if event.cwd:
            self._sessions.pop(event.cwd, None)
            self._sessions[event.cwd] = event.session_id
            if len(self._sessions) > _REMEMBERED:
                del self._sessions[next(iter(self._sessions))]

    def last_session(self, cwd: str) -> str:
        """Empty: none was seen there."""
        return self._sessions.get(cwd, "")

    def close(self) -> None:
        """What was given is kept."""
        self._keeper.close()

    def warm(self) -> None:
        """So that the first prompt does not wait for what is loaded once."""
        try:
            self._memory.context("recollect/warm", _QUESTION)
        except RecollectError as error:
            log.warning("%s", error)

    def spooled(self) -> Iterator[Work]:
        """Sessions that ended when nobody was there to take them; of those that began, what they were given is kept."""
        folder = self._memory.settings.home / client.SPOOL
        if not folder.is_dir():
            return
        try:
            require_folder(folder)
        except UnsafeHome as error:
            log.warning("%s", error)
            return
        for path in sorted(folder.glob("*")):
            try:
                work = self._spooled(path)
            except (UnsafeHome, OSError, ValueError, TypeError, AttributeError, LookupError, RecursionError) as error:
                log.warning("%s: not understood: %s", path.name, type(error).__name__)  # not ours
                work = None
            except RecollectError as error:  # of the database: the next look takes it
                log.warning("%s", error)
                return
            if work is not None:
                yield work
            with suppress(OSError):
                path.unlink()

    def _spooled(self, path: Path) -> Work | None:
        told = json.loads(_read(path)) if path.suffix == ".json" else {}
        call = checked([told.get("event", ""), told.get("agent", "")], json.dumps(told.get("input")).encode())
        if call is None or call.name != "SessionStart":
            return self._work(call) if call else None
        self._notice(call.event)
        given = [(str(name), int(revision)) for name, revision in told["given"]]
        if call.event.source not in _GOING_ON:
            self._memory.compacted(call.event.session_id)
        self._memory.briefing.started(call.event.session_id, given)
        return None

    # What an agent is told

    def _start(self, call: Call) -> bytes:
        event = call.event
        session = event.session_id
        fresh = event.source not in _GOING_ON
        if fresh:
            self._keeper.later(session, lambda: self._memory.compacted(session))
        else:
            self._keeper.settle(session)
        if event.transcript_path and event.source != "compact":  # no transcript: an ephemeral session
            if event.source == "resume":
                self._enqueue(call)  # so that it has not ended any more
            self._queue(Work(task=Task.RUN))
        project = self._project(event)
        if project is None:
            if event.cwd:  # `status` tells of a folder that waits to be confirmed
                self._keeper.later(session, partial(self._memory.intake.project_of, event.cwd))
            return b""
        later = partial(self._keeper.later, session)
        given = self._memory.briefing.start(project, session, later, event.cwd, fresh=fresh)
        is_new = fresh and event.source != "compact"
        return client.printed(call.name, given.text, self._memory.briefing.sign(project, given) if is_new else "")

    def _prompt(self, call: Call) -> str:
        project = self._project(call.event)
        if not project or not call.event.prompt.strip():
            return ""
        session = call.event.session_id
        self._keeper.settle(session)
        later = partial(self._keeper.later, session)
        return self._memory.give(project, call.event.prompt, session, later=later).text

    def _project(self, event: Event) -> str | None:
        """None: nothing may be said there."""
        if not event.cwd or client.is_paused(str(self._memory.settings.home), event.session_id):
            return None
        return self._memory.intake.told([event.cwd]).get(event.cwd)

    # What is taken from it

    def _enqueue(self, call: Call) -> None:
        work = self._work(call)
        if work is not None:
            self._queue(work)

    def _work(self, call: Call) -> Work | None:
        event = call.event
        path = self._transcript(call)
        if event.transcript_path and not path:
            log.warning("%s: a transcript outside of the agents' folders is not read", call.name)
            return None
        ended = call.name == "SessionEnd"
        compaction = event.compact_summary or "" if call.name == "PostCompact" else ""
        if not path and not ended:
            return None
        return Work(
            task=Task.TAKE,
            path=path,
            source=call.agent,
            session=event.session_id,
            ended=ended,
            compaction=compaction,
        )

    def _transcript(self, call: Call) -> str:
        """The path, if it lies where an agent keeps its transcripts; links are followed first."""
        path = call.event.transcript_path or ""
        if not path.startswith("/") or len(path) > _LONGEST_PATH or not path.endswith(SUFFIXES) or "\0" in path:
            return ""
        roots = [root for roots in self._memory.intake.roots().values() for root in roots]
        if call.folders.get("HOME"):
            roots += all_sources()[call.agent].default_roots(call.folders)
        real = os.path.realpath(path)
        inside = any(Path(real).is_relative_to(os.path.realpath(root)) for root in roots)
        return path if inside else ""


def _read(path: Path) -> bytes:
    with os.fdopen(open_own(path, os.O_RDONLY), "rb") as file:
        return file.read(20_000)


def checked(fields: Sequence[str], payload: bytes) -> Call | None:
    """None: not an event that we know."""
    name, agent, *folders = [*fields, "", ""]
    try:
        event = decoded(payload)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        log.info("%s: not understood: %s", name, type(error).__name__)
        return None
    if name not in client.EVENTS or not client.is_name(event.session_id):
        return None
    if event.cwd and (not event.cwd.startswith("/") or len(event.cwd) > _LONGEST_PATH or "\0" in event.cwd):
        return None
    known = {key: value for key, value in zip(client.FOLDERS, folders, strict=False) if value.startswith("/")}
    return Call(name, agent if agent in client.AGENTS else guessed(event), event, known)


def decoded(payload: bytes) -> Event:
    """Also where half a surrogate pair stands in it: JavaScript writes one where a text was cut in two."""
    try:
        return msgspec.json.decode(payload, type=Event)
    except msgspec.ValidationError:
        raise
    except msgspec.DecodeError:
        whole = json.dumps(json.loads(payload), ensure_ascii=False).encode("utf-8", "replace")
        return msgspec.json.decode(whole, type=Event)


def guessed(event: Event) -> str:
    """Whose event it is, where the command line does not say."""
    file = Path(event.transcript_path or "").name
    return CODEX if event.turn_id or file.startswith("rollout-") else CLAUDE
