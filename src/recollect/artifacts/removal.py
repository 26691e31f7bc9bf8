"""What goes when something is forgotten: the messages, the conversations they are of, and every file that tells them.

Pure functions decide; the planner reads the rows and files that they need, and changes nothing. A conversation was not
always what it is: it may have been parted, or joined with another one, and its messages stand in files of those as
well. A summary without its transcript may tell whatever the next transcript tells.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from pathlib import Path

from recollect import note as notes
from recollect.artifacts import bodies, rows, sets
from recollect.artifacts.document import Content, Document, Manifest
from recollect.artifacts.files import Files
from recollect.artifacts.names import Kind, Name, session_token
from recollect.artifacts.names import parse as parse_name
from recollect.artifacts.sanitize import line
from recollect.artifacts.tombstones import Graveyard, Tombstone
from recollect.errors import ArtifactError, UsageError
from recollect.extract.load import load
from recollect.extract.offline import summary as prose
from recollect.extract.offline.statements import statements
from recollect.extract.values import Extraction, Transcript
from recollect.ingest.erasure import COMPACTION
from recollect.ingest.sources.recollect import entry_id, session
from recollect.store import conversations as conversation_rows
from recollect.store import erasing, memories
from recollect.store import tombstones as tombstone_rows
from recollect.store.database import Database, Transaction
from recollect.store.erasing import Said
from recollect.store.tombstones import entry_hash, project_hash, text_hash
from recollect.text import COMMON, content_words, sentences
from recollect.turns.log import TurnLog
from recollect.turns.values import TURN_LOG
from recollect.types import Conversation, Message, Owner, Remembered, Role, Timestamp

_SAME = 0.6  # of a statement's words in one sentence: it says the same
_FEW = 4  # messages that use a name
_NAME = re.compile(r"\b\w*(?:\w[-_.@/:]\w|\d)[\w\-.@/:]*\w|(?<=[^.!?\s] )[^\W\d_a-z]\w+|\b\w+[^\W\d_a-z]\w*\b")
_PARTLY = "Some of what was said in this conversation was removed."

Read = Document | ArtifactError | None  # None: it is there, and was not read


@dataclass(frozen=True, slots=True)
class Target:
    """What is to be erased: exactly one of them, but that a project may narrow a user."""

    session: str = ""
    conversation: str = ""  # session key
    memory: str = ""  # id
    project: str = ""  # path or project id
    user: str = ""  # of chats: everything that is theirs


@dataclass(frozen=True, slots=True)
class Plan:
    """What goes."""

    whole: tuple[str, ...]  # session keys of which nothing stays
    partly: Mapping[str, frozenset[str]]  # session key → ids of the entries that go
    said: tuple[Said, ...]  # every entry and compaction that goes
    talks: Mapping[str, Sequence[Conversation]]
    kept: Mapping[str, str]  # session key of a conversation that loses a part → its key without that part
    beside: tuple[tuple[str, Name], ...] = ()  # files of others that tell it, with the keys of those
    vanished: frozenset[str] = frozenset()  # of those, the keys of conversations that are others' by now
    logs: frozenset[str] = frozenset()  # log files of a user who goes: what a crash tore in them goes, too
    memories: tuple[Remembered, ...] = ()  # that nothing states afterwards, as they are now

    @property
    def keys(self) -> list[str]:
        return sorted({*self.whole, *self.partly})

    @property
    def lost(self) -> list[str]:
        """Session keys that there are no more."""
        return [*self.whole, *(key for key, left in self.kept.items() if left != key)]


# Decisions


def repeats(text: str, statement: str) -> bool:
    """Does a sentence of the text say what the statement says? Then it goes with it."""
    wanted = set(content_words(statement))
    if not wanted:
        return False
    return any(len(wanted & set(content_words(each))) >= _SAME * len(wanted) for each in sentences(text))


def names_in(text: str) -> set[str]:
    """Words of a statement that name something: with a digit or a sign in them, or with a capital inside it."""
    return {word.casefold() for word in _NAME.findall(text) if len(word) > 3 and word.casefold() not in COMMON}


def said_again(
    messages: Sequence[Message], sources: Set[str], texts: Sequence[str], withdrawn: Sequence[Said] = ()
) -> set[str]:
    """Ids of the messages that go with a memory: those it came from, those that say the same, and the few others that
    use a name of it. A name that is used all over is not what the memory is about. What was `withdrawn` goes alike, and
    does not count."""
    every: list[Message | Said] = [*messages, *withdrawn]
    gone = {each.uuid for each in every if each.uuid in sources or any(repeats(each.text, text) for text in texts)}
    standing = {each.uuid for each in messages}
    for name in sorted({name for text in texts for name in names_in(text)}):
        using = {each.uuid for each in every if name in each.text.casefold()} - gone
        gone |= using if len(using & standing) <= _FEW else set()
    return gone


def remaining(stated: Iterable[Remembered], session_key: str, gone: Set[str]) -> list[Remembered]:
    """What a conversation still states: memories none of whose sources in it is erased."""
    return [each for each in rows.own(stated, session_key) if not any(uuid in gone for _, uuid in each.sources)]


def retold(transcript: Transcript, kept: Sequence[Remembered]) -> Extraction:
    """Prose about what is left, without a model."""
    if not transcript.messages:
        return Extraction()
    found = statements(transcript.messages)
    told = prose.story(transcript.messages)
    if not kept and not found:
        return Extraction()
    return Extraction(
        raw_memory=prose.raw_memory(told, found),
        rollout_summary=prose.rollout_summary(told, found) or _PARTLY,
        rollout_slug=prose.slug(told, found),
    )


def stone(owner: Owner, plan: Plan, paths: Iterable[str], reason: str, now: Timestamp, project: str = "") -> Tombstone:
    """What is known of the plan for good; of a `project` that goes, its name as a hash."""
    tokens = [session_token(owner.agent_id, key, "") for key in plan.keys]
    tokens += [session_token(owner.agent_id, "", each.session_id) for each in plan.said[:1]]  # of no conversation
    hashes = {entry_hash(each.source, each.uuid) for each in plan.said}
    texts = (each for each in plan.said if each.source != notes.SOURCE)  # whose ids are for good
    hashes |= {text_hash(each.source, each.session_id, each.role, each.text) for each in texts}
    hashes |= {project_hash(project)} if project else set()
    return Tombstone(
        kind=str(Kind.TOMBSTONE),
        agent_id=owner.agent_id,
        session_token=tokens[0],
        removed_at=now,
        reason=line(reason),
        removed_paths=tuple(sorted(paths)),
        whole_tokens=tuple(sorted(session_token(owner.agent_id, key, "") for key in plan.lost)),
        hashes=tuple(sorted(hashes)),
    )


def shortened(talk: Conversation, left: Sequence[Message]) -> Conversation:
    """The conversation of the messages that are left; there is at least one."""
    first, last = Timestamp(left[0].timestamp), Timestamp(left[-1].timestamp)
    key = f"{talk.session_id}@{first}"
    return replace(talk, session_key=key, first_message_at=first, last_message_at=last, entry_count=len(left))


def telling(documents: Mapping[Name, Read], gone: Callable[[str, str], bool]) -> set[Name]:
    """Of the files of one conversation, those that tell a message which is gone by its source and id: transcripts, and
    summaries, by their names, that go with one, or that stand alone and are no newer."""
    told = {name: found for name, found in documents.items() if name.kind is Kind.TRANSCRIPT}
    hit = {name for name, found in told.items() if any(gone(*each) for each in spoken(found))}
    newest = max(hit, default=None)
    if newest is None:
        return set()
    clean = {name.captured_at for name in told.keys() - hit}
    summaries = {name for name in documents if name.kind is Kind.SUMMARY and name.captured_at <= newest.captured_at}
    return hit | {name for name in summaries if name.captured_at not in clean}


def spoken(found: Read) -> list[tuple[str, str]]:
    """(source, id) of the messages of a transcript; nothing of one that cannot be read."""
    if not isinstance(found, Document):
        return []
    try:
        return [(found.head.harness, each.uuid) for each in rows.messages_of(found)]
    except bodies.BadBody:
        return []


def swallowed_by(manifests: Mapping[str, Manifest | None], going: Set[str]) -> set[str]:
    """Keys of conversations whose messages are, by now, those of some that go."""
    found: set[str] = set()
    while more := {
        key
        for key, head in manifests.items()
        if key not in found and head and head.superseded_by and head.superseded_by in going | found
    }:
        found |= more
    return found


def listed(head: Manifest, token: str) -> set[str]:
    """Files of its conversation that a manifest names, there or not."""
    return {path for path in head.paths if (name := parse_name(path)) and name.token == token and name.path == path}


def _goes(each: Said, gone: Set[str]) -> bool:
    """A summary that the agent made of its history may say it in other words: it goes, too."""
    return each.uuid in gone or each.role == COMPACTION


@dataclass(slots=True)
class _Found:
    """A plan in the making."""

    whole: set[str] = field(default_factory=set)
    partly: dict[str, frozenset[str]] = field(default_factory=dict)
    said: dict[tuple[str, str, str], Said] = field(default_factory=dict)
    talks: dict[str, Sequence[Conversation]] = field(default_factory=dict)
    kept: dict[str, str] = field(default_factory=dict)
    logs: set[str] = field(default_factory=set)

    def say(self, found: Iterable[Said]) -> None:
        for each in found:
            self.said.setdefault((each.source, each.role, each.uuid), each)

    def part(self, key: str, transcript: Transcript, gone: Set[str]) -> bool:
        """The conversation loses these messages; false, and it goes as a whole, when none is left."""
        left = [each for each in transcript.messages if each.uuid not in gone]
        if not left:
            self.whole.add(key)
            return False
        self.partly[key] = frozenset(gone)
        self.kept[key] = shortened(transcript.conversation, left).session_key
        return True


# The planner


class Planner:
    """`turns` is the folder of our own logs, below `home`."""

    def __init__(self, database: Database, owner: Owner, files: Files, home: Path, turns: Path) -> None:
        self._database = database
        self._owner = owner
        self._files = files
        self._logs = turns.relative_to(home).as_posix()
        self._turns = TurnLog(turns)

    def plan(self, target: Target) -> Plan:
        """What would go. UsageError when there is no such thing."""
        chosen = [name for name in ("session", "conversation", "memory", "user", "project") if getattr(target, name)]
        if chosen == ["user", "project"]:
            chosen = ["user"]
        if len(chosen) > 1:
            raise UsageError(f"only one thing at a time: {' and '.join(chosen)} were named", hint="Name one of them.")
        if not chosen:
            raise UsageError("say what to forget: a session, a conversation, a memory, a project or a user of chats")
        found = _Found()
        if target.memory:
            self._add_memory(found, target.memory)
        else:
            self._add_target(found, target)
            if not (found.whole or found.said or found.logs):
                raise UsageError(
                    f"no {chosen[0]} {getattr(target, chosen[0])}",
                    hint="`recollect conversations` lists what there is.",
                )
        return self._finished(found)

    def buried(self, graves: Graveyard) -> Plan | None:
        """What tombstones name and rows still hold: a removal was cut short, or made elsewhere. None: nothing."""
        found = _Found()
        with self._database.read() as tx:
            found.say(tombstone_rows.standing(tx, self._owner, graves.hashes))
            logs = [self._turn(*each) for each in tombstone_rows.turns(tx, self._owner, TURN_LOG)]
            begun = set(self._sessions(found))  # in another chat, the same ids may have been used again since
            found.say(
                each
                for each in logs
                if each.session_id in begun and entry_hash(each.source, each.uuid) in graves.hashes
            )
            every = tombstone_rows.session_keys(tx, self._owner)
            near = {key for each in self._sessions(found) for key in erasing.keys(tx, self._owner, session=each)}
        named = {key for key in every if self.token(key) in graves.tokens}
        if not named and not found.said:
            return None
        erased = {(each.source, each.uuid) for each in found.said.values()}
        for key in sorted(named | near):
            transcript = self._transcript(key, found)
            gone = _ids(transcript) & erased if transcript else set()
            if transcript and gone:
                found.part(key, transcript, {uuid for _, uuid in gone})
            elif key in named:
                found.whole.add(key)
        return self._finished(found)

    def token(self, session_key: str) -> str:
        return session_token(self._owner.agent_id, session_key, "")

    def names(self, keys: Iterable[str]) -> list[Name]:
        """The files of these conversations."""
        tokens = {self.token(key) for key in keys}
        return [name for name in self._files.names() if name.token in tokens]

    def paths(self, plan: Plan, names: Sequence[Name]) -> set[str]:
        """Of files that go for good, there or not. The name of a manifest comes again, unless its conversation goes."""
        lost = {self.token(key) for key in plan.lost}
        paths = {name.path for name in names if name.kind is not Kind.MANIFEST or name.token in lost}
        for name in self.names({*plan.keys, *plan.vanished}):
            found = sets.load(self._files, name.path) if name.kind is Kind.MANIFEST else None
            paths |= listed(found.head, name.token) if found and isinstance(found.head, Manifest) else set()
        return paths

    def _finished(self, found: _Found) -> Plan:
        self._add_whole(found)
        beside, vanished = self._add_earlier(found)
        summaries = [each for each in found.said.values() if each.role == COMPACTION]
        with self._database.read() as tx:
            told = erasing.compaction_files(tx, self._owner, summaries)
            lost = self._memories(tx, found, vanished)
        going = {*found.whole, *found.partly}
        beside |= {(key, name) for key, path in told if key not in going and (name := parse_name(path))}
        return Plan(
            tuple(sorted(found.whole)),
            found.partly,
            tuple(found.said.values()),
            found.talks,
            found.kept,
            tuple(sorted(beside)),
            frozenset(vanished),
            frozenset(found.logs),
            tuple(memories.current(lost)),
        )

    def _memories(self, tx: Transaction, found: _Found, vanished: Set[str]) -> list[Remembered]:
        """Every revision of the memories that nothing states any more."""
        going = {*found.whole, *found.partly, *vanished}
        stated = {key: memories.of_session(tx, self._owner, key) for key in sorted(going)}
        left = {each.id for key, gone in found.partly.items() for each in remaining(stated[key], key, gone)}
        ids = sorted({each.id for several in stated.values() for each in several} - left)
        held = memories.find(tx, self._owner, ids)
        kept = {each.id for each in held if any(key not in going for key, _ in each.sources)}
        return [each for each in held if each.id not in kept]

    def _add_target(self, found: _Found, target: Target) -> None:
        with self._database.read() as tx:
            keys = erasing.keys(
                tx,
                self._owner,
                session=target.session,
                key=target.conversation,
                project=target.project,
                user=target.user,
            )
            if target.session:
                found.say(erasing.said_in_session(tx, self._owner, target.session))
            elif target.user:
                found.say(erasing.said_by(tx, self._owner, target.user, target.project))
            elif target.project:
                found.say(erasing.withdrawn_in_project(tx, self._owner, target.project))
            within = {"session_id": target.session, "project": target.project, "user_id": target.user}
            within = {name: value for name, value in within.items() if value}
            logs = tombstone_rows.turns(tx, self._owner, TURN_LOG, **within) if within else []
        found.say(self._turn(*each) for each in logs)  # also those that became no message
        if target.user:
            self._add_logs(found, target.user, target.project)
        found.whole |= self._with_notes(keys)

    def _add_logs(self, found: _Found, user: str, project: str) -> None:
        """Turns of a user that stand in logs alone."""
        for path, told in self._turns.of_user(user, project):
            found.logs.add(path)
            for turn in told:
                where = session(turn.project, turn.user, turn.conversation)
                roles = Role if turn.assistant_text else (Role.USER,)
                found.say(Said(notes.SOURCE, entry_id(where, turn.id, role), where, role, "", path) for role in roles)

    def _turn(self, session: str, turn: str, hosted_uri: str) -> Said:
        file = hosted_uri.partition("#")[0].removeprefix(f"{self._logs}/")
        return Said(notes.SOURCE, entry_id(session, turn, Role.USER), session, Role.USER, "", file)

    def _with_notes(self, keys: Sequence[str]) -> set[str]:
        """These conversations, the notes about memories that only they state, as a correction is, and the notes that
        say again what they state."""
        found = set(keys)
        with self._database.read() as tx:
            stated = [each for key in keys for each in memories.of_session(tx, self._owner, key)]
            held = memories.find(tx, self._owner, sorted({each.id for each in stated}))
            written = erasing.notes(tx, self._owner)
        said_elsewhere = {each.id for each in held for key, _ in each.sources if key not in found and not _is_note(key)}
        for each in held:
            again = any(repeats(each.text, was.text) for was in stated if was.id == each.id)
            if again or each.id not in said_elsewhere:
                found |= {key for key, _ in each.sources if _is_note(key)}
        gone = {each.id for each in held} - said_elsewhere
        about = ((key, notes.parse(text)) for key, text in written)  # also those that are no memory yet
        return found | {key for key, note in about if note and note.target in gone}

    def _add_memory(self, found: _Found, memory_id: str) -> None:
        """Every entry that any revision of it came from, and those beside it that say the same."""
        with self._database.read() as tx:
            revisions = memories.find(tx, self._owner, [memory_id])
        if not revisions:
            raise UsageError(f"no memory {memory_id}", hint="`recollect search` and `recollect timeline` show ids.")
        sources: dict[str, set[str]] = {}
        for each in revisions:
            for key, uuid in each.sources:
                sources.setdefault(key, set()).add(uuid)
        for key in sorted(sources):
            transcript = self._transcript(key, found)
            if transcript is None:
                raise UsageError(
                    f"{key}: its conversation is not in the database", hint="Run `recollect reindex` first."
                )
            with self._database.read() as tx:
                said = [each for talk in found.talks[key] for each in erasing.said(tx, self._owner, talk)]
            standing = {each.uuid for each in transcript.messages}
            withdrawn = [each for each in said if each.uuid not in standing and each.role != COMPACTION]
            gone = said_again(transcript.messages, sources[key], [each.text for each in revisions], withdrawn)
            if found.part(key, transcript, gone):
                found.say(each for each in said if _goes(each, gone))

    def _add_whole(self, found: _Found) -> None:
        """Everything said in conversations of which nothing stays, by rows and by files."""
        with self._database.read() as tx:
            for key in sorted(found.whole):
                found.talks[key] = conversation_rows.of_key(tx, self._owner, key)
                for talk in found.talks[key]:
                    found.say(erasing.said(tx, self._owner, talk))
        for name, document in sets.read(self._files, self.names(found.whole)).items():
            if name.kind is Kind.TRANSCRIPT and not isinstance(document, ArtifactError):
                found.say(_written(document))

    def _add_earlier(self, found: _Found) -> tuple[set[tuple[str, Name]], set[str]]:
        """Files of other conversations of the same sessions that tell what goes. One that still consists of such files
        loses a part, or was swallowed and vanishes; of another one, older files go."""
        gone = {(each.source, each.uuid) for each in found.said.values()}
        going = {*found.whole, *found.partly}
        with self._database.read() as tx:
            near = {key for each in self._sessions(found) for key in erasing.keys(tx, self._owner, session=each)}
        held = self._held(near - going)
        swallowed = swallowed_by({key: _manifest(each) for key, each in held.items()}, going)
        files: set[tuple[str, Name]] = set()
        vanished: set[str] = set()
        for key in held:
            told = telling(held[key], lambda source, uuid: (source, uuid) in gone)
            told |= {name for name in held[key] if name.kind in sets.SET and key in swallowed}
            if not told:
                continue
            transcript = self._transcript(key, found)
            if transcript is None:
                vanished.add(key)
            elif any(_is_current(name, held[key]) for name in told):
                found.part(key, transcript, {uuid for _, uuid in gone})
                continue
            left = held[key].keys() - told
            told |= left if all(name.kind is Kind.MANIFEST for name in left) else set()
            files |= {(key, name) for name in told}
        return files, vanished

    def _held(self, keys: Set[str]) -> dict[str, dict[Name, Read]]:
        """The files of these conversations: what their messages are, and what they consist of."""
        by_token: dict[str, list[Name]] = {}
        for name in self.names(keys):
            by_token.setdefault(name.token, []).append(name)
        held: dict[str, dict[Name, Read]] = {}
        for key in sorted(keys):
            names = by_token.get(self.token(key), [])
            read = sets.read(self._files, (name for name in names if name.kind in (Kind.TRANSCRIPT, Kind.MANIFEST)))
            held[key] = {name: read.get(name) for name in names}
        return held

    def _transcript(self, key: str, found: _Found) -> Transcript | None:
        """None when there is no such conversation."""
        with self._database.read() as tx:
            found.talks[key] = conversation_rows.of_key(tx, self._owner, key)
        return load(self._database, self._owner, found.talks[key]) if found.talks[key] else None

    def _sessions(self, found: _Found) -> list[str]:
        return sorted({each.session_id for each in found.said.values()})


def _is_note(session_key: str) -> bool:
    return notes.is_session(session_key.rpartition("@")[0])


def _ids(transcript: Transcript) -> set[tuple[str, str]]:
    return {(transcript.conversation.source, each.uuid) for each in transcript.messages}


def _is_current(name: Name, held: Mapping[Name, Read]) -> bool:
    """Does the conversation consist of it? Without a manifest that can be read, of the newest set."""
    manifest = _manifest(held)
    if manifest is not None:
        return name.path in sets.current(manifest)
    return name.captured_at == max(each.captured_at for each in held if each.kind in sets.SET)


def _manifest(held: Mapping[Name, Read]) -> Manifest | None:
    heads = (each.head for each in held.values() if isinstance(each, Document))
    return next((head for head in heads if isinstance(head, Manifest)), None)


def _written(document: Document) -> Iterator[Said]:
    """What only files know of a conversation."""
    head = document.head
    assert isinstance(head, Content)
    try:
        messages = rows.messages_of(document)
    except bodies.BadBody:
        return
    for each in messages:
        yield Said(head.harness, each.uuid, head.session_id, each.role, each.text, head.source_file)
