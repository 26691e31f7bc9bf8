"""Plans a removal: which messages, conversations and files go, by the rows and files that are there. Changes nothing.

A conversation was not always what it is: it may have been parted, or joined with another one, and its messages stand in
files of those as well. A summary without its transcript may tell whatever the next transcript tells.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from pathlib import Path

from recollect import note as notes
from recollect.artifacts import bodies, rows, sets
from recollect.artifacts.document import Content, Document, Manifest
from recollect.artifacts.files import Files
from recollect.artifacts.mentions import Mention, Mentions, Why, is_only_named, wanted
from recollect.artifacts.names import Kind, Name, session_token
from recollect.artifacts.names import parse as parse_name
from recollect.artifacts.removal import (
    Plan,
    Read,
    Target,
    goes,
    listed,
    remaining,
    repeats,
    said_again,
    shortened,
    swallowed_by,
    telling,
)
from recollect.artifacts.tombstones import Graveyard
from recollect.errors import ArtifactError, UsageError
from recollect.extract.load import load
from recollect.extract.values import Transcript
from recollect.ingest.erasure import COMPACTION
from recollect.ingest.sources.recollect import entry_id, session, turn_of
from recollect.store import conversations as conversation_rows
from recollect.store import erasing, memories
from recollect.store import tombstones as tombstone_rows
from recollect.store.database import Database, Transaction
from recollect.store.erasing import Place, Said, Standing
from recollect.store.tombstones import entry_hash
from recollect.turns.erasing import turns_of
from recollect.turns.log import TurnLog
from recollect.turns.values import TURN_LOG
from recollect.types import Conversation, Owner, Remembered, Role


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


class Planner:
    """`turns` is the folder of our own logs, below `home`; `similar` finds what means nearly the same as a text."""

    def __init__(
        self,
        database: Database,
        owner: Owner,
        files: Files,
        home: Path,
        turns: Path,
        similar: Callable[[str], Iterable[Standing]] = lambda text: (),
    ) -> None:
        self._database = database
        self._owner = owner
        self._files = files
        self._logs = turns.relative_to(home).as_posix()
        self._turns = TurnLog(turns)
        self._mentions = Mentions(database, owner, turns)
        self._similar = similar

    def plan(self, target: Target) -> Plan:
        """What would go, and what has to do with it and stays. UsageError when there is no such thing."""
        found = _Found()
        if target.text:
            near = self._add_text(found, target)
        else:
            self._add_named(found, target)
            near = []
        plan = self._finished(found)
        also = self._also(plan, near)
        if not target.also or not also:
            return replace(plan, also=tuple(also))
        self._add_mentions(found, also)
        plan = self._finished(found)
        return replace(plan, also=tuple(self._also(plan, [each for each in near if each.is_name])))

    def _add_named(self, found: _Found, target: Target) -> None:
        chosen = [name for name in ("session", "conversation", "memory", "user", "project") if getattr(target, name)]
        if chosen == ["user", "project"]:
            chosen = ["user"]
        if len(chosen) > 1:
            raise UsageError(f"only one thing at a time: {' and '.join(chosen)} were named", hint="Name one of them.")
        if not chosen:
            raise UsageError(
                "say what to forget: a session, a conversation, a memory, a project, a user of chats or a text"
            )
        if target.memory:
            self._add_memory(found, target.memory)
        else:
            self._add_target(found, target)
            if not (found.whole or found.said or found.logs):
                raise UsageError(
                    f"no {chosen[0]} {getattr(target, chosen[0])}",
                    hint="`recollect conversations` lists what there is.",
                )

    def _add_text(self, found: _Found, target: Target) -> list[Mention]:
        """Everything that says a text; returns what is near it."""
        others = [name for name in ("session", "conversation", "memory", "user", "project") if getattr(target, name)]
        if others:
            raise UsageError(f"only one thing at a time: text and {' and '.join(others)} were named")
        name = wanted(target.text)
        named = self._mentions.names(name)
        places = [each.at.text for each in named if each.at.place is Place.PROJECT]
        mentions = self._mentions.of(name)
        mentions += [Mention(each, each.text, Why.SIMILAR) for each in self._similar(target.text)]
        summaries = {each.at.id: each.at.text for each in mentions if each.at.place is Place.SUMMARY and each.at.source}
        titled = {key for key, text in summaries.items() if is_only_named(text, name, places)} if places else set()
        mentions = [each for each in mentions if each.at.place is not Place.SUMMARY or each.at.id not in titled]
        says = [each for each in mentions if each.why is Why.SAYS]
        near = [each for each in mentions if each.why is not Why.SAYS]
        if not says and not (near and target.also):
            raise _unsaid(target.text.strip(), near, named)
        self._add_mentions(found, says)
        if not (found.said or found.partly or found.whole or (near and target.also)):
            raise _unsaid(target.text.strip(), near, named)
        return near + named

    def _add_mentions(self, found: _Found, mentions: Iterable[Mention]) -> None:
        """The messages that these texts are, or came from; a summary is written anew."""
        gone: dict[str, set[str]] = {}
        for at in (each.at for each in mentions if not each.is_name):
            if at.place is Place.MEMORY:
                with self._database.read() as tx:
                    held = memories.find(tx, self._owner, [at.id])
                for key, uuid in (source for each in held for source in each.sources):
                    gone.setdefault(key, set()).add(uuid)
            elif at.place is Place.FEEDBACK:
                found.say([Said(notes.SOURCE, at.id, "", "feedback", "", at.source_file)])
            elif at.place is Place.COMPACTION:
                found.say([Said(at.source, at.id, at.session_id, COMPACTION, at.text, at.source_file)])
            elif at.place is Place.SUMMARY:
                gone.setdefault(at.session_key, set())
            else:
                self._add_message(found, at, gone)
        for key, uuids in sorted(gone.items()):
            transcript = self._transcript(key, found) if key not in found.whole else None
            if transcript is None:
                continue
            uuids |= found.partly.get(key, frozenset())
            with self._database.read() as tx:
                said = [each for talk in found.talks[key] for each in erasing.said(tx, self._owner, talk)]
            if found.part(key, transcript, uuids):
                found.say(each for each in said if each.uuid in uuids or (uuids and each.role == COMPACTION))

    def _add_message(self, found: _Found, at: Standing, gone: dict[str, set[str]]) -> None:
        """An entry goes alone; a turn of a chat goes as a whole, as it stands in its log."""
        turn = at.id if at.place is Place.TURN else turn_of(at.id, at.session_id, at.role)
        is_chat = at.place is Place.TURN or (at.source == notes.SOURCE and bool(turn))
        if is_chat and not at.session_id:  # a bucket, which follows from its turns
            return
        file = at.source_file.partition("#")[0].removeprefix(f"{self._logs}/")
        uuids = [entry_id(at.session_id, turn, role) for role in Role] if is_chat else [at.id]
        source = notes.SOURCE if is_chat else at.source
        text = at.content if at.place is Place.MESSAGE else at.text
        found.say(Said(source, uuid, at.session_id, at.role or Role.USER, text, file) for uuid in uuids)
        with self._database.read() as tx:
            keys = [at.session_key] if at.session_key else erasing.keys(tx, self._owner, session=at.session_id)
        for key in keys if is_chat or at.session_key else ():
            gone.setdefault(key, set()).update(uuids)

    def _also(self, plan: Plan, near: Iterable[Mention]) -> list[Mention]:
        """What quotes what goes, or is near it, and stays."""
        going = {(Place.MESSAGE, each.uuid) for each in plan.said} | {(Place.MEMORY, each.id) for each in plan.memories}
        going |= {(Place.SUMMARY, key) for key in plan.keys} | {(Place.COMPACTION, each.uuid) for each in plan.said}
        going |= {(Place.FEEDBACK, each.uuid) for each in plan.said}
        going |= {(Place.TURN, turn) for _, turn in turns_of(plan.said)}
        texts = [held.text for held in plan.memories] + [said.told for said in plan.said]
        statements = [held.text for held in plan.memories]
        quotes = self._mentions.quotes(texts, statements, going)
        found = {(each.at.place, each.at.id, each.at.text): each for each in (*quotes, *near)}
        return [each for (place, name, _), each in found.items() if (place, name) not in going]

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
            removed = [path for path in graves.paths if f"--{Kind.MANIFEST}." not in path]
            stale = set(erasing.keys_of_files(tx, self._owner, sorted(removed)))  # rows say what those files said
        named = {key for key in every if self.token(key) in graves.tokens}
        if not (named or found.said or stale):
            return None
        erased = {(each.source, each.uuid) for each in found.said.values()}
        for key in sorted(named | near | stale):
            transcript = self._transcript(key, found)
            gone = _ids(transcript) & erased if transcript else set()
            if transcript and (gone or (key in stale and key not in named)):
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
        left = {each.id for key, gone in found.partly.items() for each in remaining(stated[key], gone)}
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
                found.say(each for each in said if goes(each, gone))

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


def _unsaid(text: str, near: Sequence[Mention], named: Sequence[Mention]) -> UsageError:
    texts = "1 text is" if len(near) == 1 else f"{len(near)} texts are"
    where = f"; {texts} near it: `--also --dry-run` shows them" if near else ""
    if named:
        where += f"; it is part of the name of {', '.join(f'{each.at.place} {each.at.text}' for each in named[:3])}"
        hint = "`--project P`, `--user U` and `--session S` erase what has it in its name."
        return UsageError(f"no text says `{text}`{where}", hint=hint)
    return UsageError(f"no text says `{text}`{where}", hint="Look with `recollect search`.")


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
