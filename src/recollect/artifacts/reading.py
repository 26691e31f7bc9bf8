"""Finds a record by whatever names it, and reads what belongs to it: rows in one transaction, files after it.

Everything is the owner's own: a file of another agent in the same folder is not opened for reading out. Canonical files
are read where they lie; `open` finds them without any row.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from recollect.artifacts import bodies, lineage, names
from recollect.artifacts.document import BadFrontmatter, ChecksumMismatch, Content, Document, Manifest, parse
from recollect.artifacts.files import Files
from recollect.artifacts.lineage import Day, Origin, Shown, Type
from recollect.artifacts.names import Kind, Name
from recollect.errors import NotFound
from recollect.store import artifacts, conversations, entries, feedback, files, memories, stage1
from recollect.store.artifacts import Indexed
from recollect.store.database import Transaction
from recollect.store.entries import FileKey, Line
from recollect.store.feedback import Feedback, Retired
from recollect.store.files import FileState
from recollect.store.ground import Ground, Part
from recollect.turns.log import TurnLog
from recollect.turns.rows import reason
from recollect.types import Conversation, Remembered, Timestamp

LAST = "last"

_REVISION = re.compile(r"-r(\d{1,9})$")
_TOKEN = re.compile(r"[a-z2-7]{16}")
_FEW = 6  # candidates that an ambiguous name is answered with
_BLOCK = 1 << 20
_HINT = "`recollect conversations` and `recollect timeline` list what there is; `recollect reindex` takes in files."


@dataclass(frozen=True, slots=True)
class Target:
    """What a name stands for."""

    type: Type
    id: str
    revision: int | None = None  # None: the current one
    talks: tuple[Conversation, ...] = ()
    entry: tuple[str, str] | None = None  # source, uuid
    file: Indexed | None = None


@dataclass(slots=True)
class Rows:
    """What the database holds of it."""

    held: list[Remembered] = field(default_factory=list)
    talks: list[Conversation] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)
    files: list[Indexed] = field(default_factory=list)
    summaries: dict[str, str] = field(default_factory=dict)  # session key → what was done and left
    states: dict[tuple[str, str], FileState] = field(default_factory=dict)
    uses: memories.Use = field(default_factory=lambda: memories.Use(0, ""))
    thought: Feedback = field(default_factory=lambda: Feedback(0, 0, "", Timestamp("")))
    why: str = ""  # the user thinks so; from the log
    retired: Retired | None = None


@dataclass(frozen=True, slots=True)
class Opened:
    """A canonical file."""

    path: str  # relative to the root
    kind: Kind
    text: str
    head: Content | Manifest | None  # None: it was changed by hand, and cannot be trusted
    problem: str  # why
    siblings: tuple[str, ...]  # the other files of the same conversation


class Reader(Part):
    """What is asked for by its name is read; days leave out what is kept and not listed."""

    def __init__(self, ground: Ground) -> None:
        super().__init__(ground)
        self._root = ground.settings.root
        self._log = TurnLog(ground.settings.turns)
        self._files = Files(self._root)

    def show(self, text: str, project: str = "") -> Shown:
        """`project` is where it is asked: of several memories whose ids begin so, its own are meant."""
        with self._database.read() as tx:
            target = self._find(tx, text, project)
            rows = self._load(tx, target)
        written = self._written(rows)
        said = lineage.said(rows.lines, written, self._origins(rows))
        talks = tuple(
            lineage.talk(each, rows.files, said, rows.summaries.get(each.session_key, "")) for each in rows.talks
        )
        revisions = lineage.revisions(rows.held)
        if rows.thought.user_reaction:
            rows.why = reason(self._log, target.id, rows.thought.last)
        if target.type is not Type.MEMORY:
            keys, uuid = {each.session_key for each in talks}, target.entry[1] if target.entry else None
            revisions = tuple(each for each in revisions if _cites(each, keys, uuid))
        return Shown(target.type, target.id, _record(target, rows, said, talks, revisions), revisions, talks)

    def timeline(
        self,
        *,
        project: str | None,
        since: str,
        until: str | None,
        limit: int,
        memory: str | None = None,
        user: str = "",
    ) -> list[Day]:
        """`project` None: all of them. `user`: of that user of chats; empty: of none. `memory`: the conversations that
        stated it, and its revisions, whoever's it is."""
        with self._database.read() as tx:
            if memory is not None:
                target = self._find(tx, memory, project or "")
                if target.type is not Type.MEMORY:
                    raise NotFound(f"{memory!r} is no memory", hint="A memory's id begins with `m-`.")
                held = memories.find(tx, self._owner, [target.id])
                talks = self._stating(tx, held, project, since, until)[:limit]
            else:
                hidden = self._ground.unlisted(tx)
                talks = conversations.search(
                    tx,
                    self._owner,
                    project=project,
                    since=since,
                    until=until,
                    limit=limit,
                    user=user,
                    without=hidden.sessions,
                )
                stated = memories.stated_in(tx, self._owner, [each.session_key for each in talks])
                held = [hidden.without(each) for each in stated]
            indexed = self._files_of(tx, talks)
            told = stage1.summaries(tx, self._owner, [each.session_key for each in talks])
        shown = (lineage.talk(each, indexed, summary=told.get(each.session_key, "")) for each in talks)
        return lineage.days(shown, held, since, until)

    # Names

    def _find(self, tx: Transaction, text: str, project: str) -> Target:
        name = self._plain(text)
        if not name or not name.isprintable():
            raise NotFound(f"{text!r} names nothing", hint=_HINT)
        steps: tuple[Callable[[Transaction, str], Target | None], ...] = (
            partial(self._as_memory, project=project),
            self._as_file,
            self._as_conversation,
            self._as_entry,
        )
        for step in steps:
            if found := step(tx, name):
                return found
        raise NotFound(f"nothing is called {text!r}", hint=_HINT)

    def _plain(self, text: str) -> str:
        """Without what a link or a path has around the name."""
        name = text.strip()
        if links := names.wikilinks(name):
            name = links[0][0]
        if "#^" in name:
            name = name.partition("#^")[2]
        name = name.removeprefix(f"{self._root}/")
        found = names.parse(name)
        return found.path if found else name

    def _as_memory(self, tx: Transaction, name: str, project: str) -> Target | None:
        one = memories.named(tx, self._owner, name, project)
        said = _REVISION.search(name)
        return Target(Type.MEMORY, one, revision=int(said[1]) if said else None) if one else None

    def _as_file(self, tx: Transaction, name: str) -> Target | None:
        is_path = names.parse(name) is not None
        if not is_path and not _TOKEN.fullmatch(name):
            return None
        found = artifacts.find(tx, self._owner, name)
        if not found:
            return None
        talks = tuple(conversations.of_key(tx, self._owner, found[0].session_key))
        if not talks:  # another agent's, of which only the name is known
            return None
        if is_path:
            return Target(Type.ARTIFACT, name, talks=talks, file=found[0])
        return Target(Type.CONVERSATION, found[0].session_key, talks=talks)

    def _as_conversation(self, tx: Transaction, name: str) -> Target | None:
        if name == LAST:
            newest = conversations.search(tx, self._owner, limit=1)
            return Target(Type.CONVERSATION, newest[0].session_key, talks=tuple(newest)) if newest else None
        if name.isascii() and name.isdigit() and len(name) < 16:
            number = conversations.numbered(tx, self._owner, int(name))
            if number:
                return Target(Type.CONVERSATION, number.session_key, talks=(number,))
        if talks := conversations.of_key(tx, self._owner, name):
            return Target(Type.CONVERSATION, name, talks=tuple(talks))
        sessions = conversations.sessions(tx, self._owner, f"{name}@", _FEW)
        if name not in sessions:
            sessions = conversations.sessions(tx, self._owner, name, _FEW)
        one = _only(name, sessions, "sessions")
        if one is None:
            return None
        near = conversations.with_key(tx, self._owner, name if "@" in name else f"{one}@")
        talks = [each for each in near if each.session_id == one]
        if len({each.session_key for each in talks}) == 1:
            return Target(Type.CONVERSATION, talks[0].session_key, talks=tuple(talks))
        return Target(Type.SESSION, one, talks=tuple(talks))

    def _as_entry(self, tx: Transaction, name: str) -> Target | None:
        found = entries.uuids(tx, self._owner, name, _FEW)
        one = _only(name, [uuid for _, uuid in found], "messages")
        if one is None:
            return None
        source = next(source for source, uuid in found if uuid == one)
        (line,) = entries.lines(tx, self._owner, source, [one])
        around = conversations.of_session(tx, FileKey(self._owner, source, line.source_file), line.session_id)
        talks = tuple(each for each in around if each.first_message_at <= line.timestamp <= each.last_message_at)
        return Target(Type.ENTRY, one, talks=talks, entry=(source, one))

    # Rows

    def _load(self, tx: Transaction, target: Target) -> Rows:
        rows = Rows(talks=list(target.talks))
        if target.type is Type.MEMORY:
            rows.held = memories.find(tx, self._owner, [target.id])
            rows.talks = self._stating(tx, rows.held, None, "", None)
            rows.uses = memories.uses(tx, self._owner).get(target.id, rows.uses)
            rows.retired = feedback.retired(tx, self._owner, [target.id]).get(target.id)
            rows.thought = feedback.of_memories(tx, self._owner, [target.id]).get(target.id, rows.thought)
        else:
            rows.held = memories.stated_in(tx, self._owner, [each.session_key for each in rows.talks])
        cited = sorted({uuid for each in rows.held for _, uuid in each.sources if uuid})
        if target.entry:
            rows.lines = entries.lines(tx, self._owner, target.entry[0], [target.entry[1]])
        elif target.type in (Type.MEMORY, Type.ARTIFACT):
            for source in sorted({each.source for each in rows.talks}):
                rows.lines += entries.lines(tx, self._owner, source, cited)
        else:
            for each in rows.talks:
                key = FileKey(self._owner, each.source, each.source_file)
                span = (each.session_id, each.first_message_at, each.last_message_at)
                rows.lines += entries.lines_of_conversation(tx, key, *span)
        rows.files = self._files_of(tx, rows.talks)
        rows.summaries = stage1.summaries(tx, self._owner, [each.session_key for each in rows.talks])
        for source, path in {(each.source, each.source_file) for each in rows.lines}:
            if state := files.load(tx, self._owner, source, path):
                rows.states[source, path] = state
        return rows

    def _files_of(self, tx: Transaction, talks: Sequence[Conversation]) -> list[Indexed]:
        keys = sorted({each.session_key for each in talks})
        return [file for found in artifacts.of_keys(tx, self._owner, keys).values() for file in found]

    def _stating(
        self, tx: Transaction, held: Iterable[Remembered], project: str | None, since: str, until: str | None
    ) -> list[Conversation]:
        """The conversations that these revisions come from, newest first."""
        keys = sorted({key for each in held for key, _ in each.sources})
        found = [each for key in keys for each in conversations.of_key(tx, self._owner, key)]
        wanted = [
            each
            for each in found
            if project is None or project in (each.project, each.project_id)
            if since <= each.last_message_at and (until is None or each.last_message_at < until)
        ]
        return sorted(wanted, key=lambda each: (each.last_message_at, each.id), reverse=True)

    # Files

    def _written(self, rows: Rows) -> dict[str, tuple[str, int]]:
        """uuid → path and line of the newest transcript that holds it."""
        found: dict[str, tuple[str, int]] = {}
        wanted = {each.uuid for each in rows.lines}
        for each in sorted(rows.files, key=lambda each: (each.is_current, each.captured_at)):
            if each.source_kind == Kind.TRANSCRIPT:
                places = bodies.places(self._files.read(each.source_path) or "")
                found |= {uuid: (each.source_path, line) for uuid, line in places.items() if uuid in wanted}
        return found

    def _origins(self, rows: Rows) -> dict[str, Origin]:
        found: dict[str, Origin] = {}
        for (source, path), state in rows.states.items():
            file = Path(state.root, path)
            mine = [each for each in rows.lines if (each.source, each.source_file) == (source, path)]
            now = [each.line_offset for each in mine if each.generation == state.generation]
            numbers = line_numbers(file, now)
            for each in mine:
                number = numbers.get(each.line_offset) if each.generation == state.generation else None
                found[each.uuid] = Origin(str(file), each.line_offset, number)
        return found

    # Opening

    def open(self, session: str, kind: Kind | None = None) -> Opened:
        """The current file of a conversation: of this kind, else its summary, else its transcript."""
        token, path = self._place(session)
        kinds = (kind,) if kind else (Kind.SUMMARY, Kind.TRANSCRIPT, Kind.COMPACTION, Kind.MANIFEST)
        there = self._files.names(token)
        if path is None:
            current = self._current(there)
            path = next((current[each] for each in kinds if each in current), None)
        if path is None:
            has = ", ".join(sorted({str(each.kind) for each in there})) or "no files yet"
            raise NotFound(f"no {kind or 'file'} of {session!r}: it has {has}", hint="`recollect process` writes them.")
        return self._opened(path, there)

    def _opened(self, path: str, there: Sequence[Name]) -> Opened:
        name, text = names.parse(path), self._files.read(path)
        if name is None or text is None:
            raise NotFound(f"{path} is gone", hint="`recollect doctor` tells what else is missing.")
        found, problem = _parsed(text)
        siblings = tuple(each.path for each in there if each.path != path)
        return Opened(path, name.kind, text, found.head if found else None, problem, siblings)

    def _place(self, session: str) -> tuple[str, str | None]:
        """Token, and the path where one was named. By rows, else by the files alone."""
        name = self._plain(session)
        if (parsed := names.parse(name)) and self._is_ours(self._files.names(parsed.token)):
            return parsed.token, parsed.path
        if _TOKEN.fullmatch(name) and self._is_ours(self._files.names(name)):
            return name, None
        token = names.session_token(self._owner.agent_id, name, "")
        if self._files.names(token):
            return token, None
        with self._database.read() as tx:
            found = self._as_conversation(tx, name) if name.isprintable() and name else None
        if found:
            newest = max(found.talks, key=lambda each: each.last_message_at)
            return names.session_token(self._owner.agent_id, newest.session_key, newest.session_id), None
        return self._by_files(name), None

    def _by_files(self, name: str) -> str:
        """Reads frontmatter, newest first: what is left when there are no rows."""
        sessions: dict[str, str] = {}
        for each in reversed(self._files.names()):
            if each.kind is Kind.MANIFEST and (head := self._head(each)) and head.agent_id == self._owner.agent_id:
                if name == LAST:
                    return each.token
                if name and head.session_key.startswith(name):
                    sessions.setdefault(head.session_id, each.token)
        one = _only(name, sorted(sessions), "sessions")
        if one is None:
            raise NotFound(f"no conversation is called {name!r}", hint=_HINT)
        return sessions[one]

    def _current(self, there: Sequence[Name]) -> dict[Kind, str]:
        """Kind → path: what the manifest points at, else the newest."""
        found = {each.kind: each.path for each in there}
        manifest = next((each for each in there if each.kind is Kind.MANIFEST), None)
        head = self._head(manifest) if manifest else None
        if not isinstance(head, Manifest) or manifest is None:
            return found
        told = {
            Kind.SUMMARY: head.summary_path,
            Kind.TRANSCRIPT: head.transcript_path,
            Kind.COMPACTION: head.compaction_path,
            Kind.MANIFEST: manifest.path,
        }
        return {kind: path for kind, path in told.items() if path}

    def _is_ours(self, there: Iterable[Name]) -> bool:
        heads = [head for each in there if (head := self._head(each))]
        return bool(heads) and all(head.agent_id == self._owner.agent_id for head in heads)

    def _head(self, name: Name) -> Content | Manifest | None:
        found, _ = _parsed(self._files.read(name.path) or "")
        return found.head if found else None


def line_numbers(file: Path, offsets: Sequence[int]) -> dict[int, int]:
    """Offset → number of the line that begins there. Empty for a file that is gone or compressed."""
    found: dict[int, int] = {}
    try:
        if not offsets or file.suffix == ".zst" or not file.is_file():
            return {}
        with file.open("rb") as opened:
            at, number, before = 0, 1, b"\n"
            for offset in sorted(set(offsets)):
                while at < offset:
                    block = opened.read(min(_BLOCK, offset - at))
                    if not block:
                        return found
                    at, number, before = at + len(block), number + block.count(b"\n"), block[-1:]
                if before == b"\n":
                    found[offset] = number
    except OSError:  # not ours to read any more
        return {}
    return found


def _only(name: str, found: Sequence[str], what: str) -> str | None:
    """The one that is meant: itself, or the only one that begins so."""
    if name in found or len(found) == 1:
        return name if name in found else found[0]
    if found:
        more = ", …" if len(found) == _FEW else ""
        raise NotFound(f"{name!r} may be any of these {what}: {', '.join(found)}{more}", hint="Give more of it.")
    return None


def _parsed(text: str) -> tuple[Document | None, str]:
    try:
        return parse(text), ""
    except (BadFrontmatter, ChecksumMismatch) as error:
        return None, error.message


def _cites(revision: lineage.Revision, keys: set[str], uuid: str | None) -> bool:
    return any(each["session_key"] in keys and uuid in (None, each["entry_uuid"]) for each in revision.sources)


def _verdict(thought: Feedback, why: str) -> dict[str, Any] | None:
    """A person's newest reaction; None when there is none."""
    if not thought.user_reaction:
        return None
    return {"opinion": thought.user_reaction, "at": thought.last, "revision": thought.revision, "text": why}


def _record(
    target: Target,
    rows: Rows,
    said: Sequence[lineage.Said],
    talks: Sequence[lineage.Talk],
    revisions: Sequence[lineage.Revision],
) -> dict[str, Any]:
    """The fields of the record itself."""
    if target.type is Type.MEMORY:
        wanted = [each for each in revisions if target.revision in (None, each.revision)]
        if not wanted:
            raise NotFound(
                f"{target.id} has no revision {target.revision}",
                hint=f"It has {', '.join(str(each.revision) for each in revisions)}.",
            )
        chosen = next((each for each in wanted if each.current), wanted[0])
        record = asdict(chosen)
        del record["id"]
        used = {"uses": rows.uses.count, "last_used": rows.uses.last}
        judged = {"called_wrong": feedback.stands(rows.thought, rows.held), "verdict": _verdict(rows.thought, rows.why)}
        retired = {"at": rows.retired.at, "why": rows.retired.why} if rows.retired else None
        judged["retired"] = retired
        return record | used | {"ok": rows.thought.ok, "not_ok": rows.thought.not_ok} | judged
    if target.file is not None:
        record = target.file._asdict()
        del record["signature"]
        return record
    if target.entry is not None:
        return {"source": target.entry[0], **asdict(said[0])}
    record = asdict(talks[-1])
    del record["files"], record["entries"]
    if target.type is Type.SESSION:
        record = {key: record[key] for key in ("session_id", "source", "project", "project_id")}
        record |= {"first_message_at": talks[0].first_message_at, "last_message_at": talks[-1].last_message_at}
    return record
