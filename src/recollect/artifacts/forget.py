"""Erases conversations, or the messages that a memory came from: tombstone, files, rows, projections, free pages.

The tombstone is written first, so that whatever crashes later, nothing of it can come in again. Then files, then rows,
then what was made of them: MEMORY.md and the workspace. A conversation that loses only some of its messages gets a new
set of files without them, made without a model; what it states otherwise stays.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from datetime import timedelta

from recollect import note as notes
from recollect.artifacts import bodies, rows, sets, tombstones
from recollect.artifacts.document import Content, parse
from recollect.artifacts.files import Files, Tampered
from recollect.artifacts.names import Kind, Name, session_token
from recollect.artifacts.names import parse as parse_name
from recollect.artifacts.session_end import SessionEnd
from recollect.artifacts.tombstones import Tombstone
from recollect.config import DAMAGED_DATABASES, Settings
from recollect.errors import ArtifactError, UsageError
from recollect.extract.jobs import KIND as EXTRACT
from recollect.extract.jobs import watermark
from recollect.extract.load import load
from recollect.extract.offline import summary as prose
from recollect.extract.offline.statements import statements
from recollect.extract.values import Extraction, Transcript, Written
from recollect.ingest.erasure import COMPACTION, blanked
from recollect.store import answers, erasing, files, injections, memories, stage1, turns
from recollect.store import artifacts as artifact_rows
from recollect.store import conversations as conversation_rows
from recollect.store import tombstones as tombstone_rows
from recollect.store.artifacts import Indexed
from recollect.store.database import Database, Transaction
from recollect.store.erasing import Said
from recollect.store.jobs import Jobs
from recollect.store.tombstones import entry_hash, text_hash
from recollect.text import COMMON, content_words, sentences
from recollect.turns.erasing import erase_buckets, turns_of
from recollect.turns.log import TurnLog
from recollect.types import (
    Clock,
    Conversation,
    ConversationStatus,
    JobStatus,
    Message,
    Owner,
    Remembered,
    Timestamp,
    moment,
    timestamp,
)

_STRATEGY = "after a removal"
_SAME = 0.6  # of a statement's words in one sentence: it says the same
_FEW = 4  # messages that use a name
_NAME = re.compile(r"\b\w*(?:\w[-_.@/:]\w|\d)[\w\-.@/:]*\w|(?<=[^.!?\s] )[^\W\d_a-z]\w+|\b\w+[^\W\d_a-z]\w*\b")
_SETTLED = (ConversationStatus.ARCHIVED, ConversationStatus.SKIPPED)
_PARTLY = "Some of what was said in this conversation was removed."


@dataclass(frozen=True, slots=True)
class Target:
    """What is to be erased; exactly one of them."""

    session: str = ""
    conversation: str = ""  # session key
    memory: str = ""  # id
    project: str = ""  # path or project id


@dataclass(slots=True)
class Report:
    """The JSON of `recollect forget`."""

    removed_paths: list[str] = field(default_factory=list)
    removed_rows: int = 0
    tombstone: str = ""
    conversations: int = 0  # of which nothing, or not everything, is left
    entries: int = 0
    memories: list[str] = field(default_factory=list)  # ids that are gone
    problems: list[str] = field(default_factory=list)  # what could not be done at once


@dataclass(frozen=True, slots=True)
class Plan:
    """What goes."""

    whole: tuple[str, ...]  # session keys of which nothing stays
    partly: Mapping[str, frozenset[str]]  # session key → ids of the entries that go
    said: tuple[Said, ...]  # every entry and compaction that goes
    talks: Mapping[str, Sequence[Conversation]]
    kept: Mapping[str, str]  # session key of a conversation that loses a part → its key without that part

    @property
    def keys(self) -> list[str]:
        return sorted({*self.whole, *self.partly})


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


def stone(owner: Owner, plan: Plan, paths: Sequence[str], reason: str, now: Timestamp) -> Tombstone:
    tokens = {key: session_token(owner.agent_id, key, "") for key in plan.keys}
    lost = [key for key, left in plan.kept.items() if left != key]  # their conversations begin later now
    hashes = {entry_hash(each.source, each.uuid) for each in plan.said}
    hashes |= {text_hash(each.source, each.session_id, each.role, each.text) for each in plan.said}
    return Tombstone(
        kind=str(Kind.TOMBSTONE),
        agent_id=owner.agent_id,
        session_token=tokens[plan.keys[0]],
        removed_at=now,
        reason=" ".join(reason.split()),
        removed_paths=tuple(sorted(paths)),
        whole_tokens=tuple(sorted(tokens[key] for key in (*plan.whole, *lost))),
        hashes=tuple(sorted(hashes)),
    )


def shortened(talk: Conversation, left: Sequence[Message]) -> Conversation:
    """The conversation of the messages that are left; there is at least one."""
    first, last = Timestamp(left[0].timestamp), Timestamp(left[-1].timestamp)
    key = f"{talk.session_id}@{first}"
    return replace(talk, session_key=key, first_message_at=first, last_message_at=last, entry_count=len(left))


@dataclass(frozen=True, slots=True)
class _Rewritten:
    """A conversation that lost a part."""

    talks: tuple[Conversation, ...]
    written: Written
    mark: str  # watermark of what is left

    @property
    def key(self) -> str:
        return self.talks[0].session_key


# The runner


class Forget:
    """`refresh` makes anew what was made of conversations, and tells what it could not; `scrub` leaves no
    page and no file with what was deleted; `wrote` is told after every step, a test crashes there."""

    def __init__(
        self,
        database: Database,
        settings: Settings,
        owner: Owner,
        clock: Clock,
        *,
        refresh: Callable[[], Iterable[str]] = lambda: (),
        scrub: Callable[[], object] | None = None,
        wrote: Callable[[str], None] = lambda step: None,
    ) -> None:
        self._database = database
        self._settings = settings
        self._owner = owner
        self._clock = clock
        self._files = Files(settings.home, wrote=wrote)
        self._jobs = Jobs(owner, settings.config.lease_seconds, clock=clock)
        self._refresh = refresh
        self._scrub = scrub or database.scrub
        self._log = TurnLog(settings.turns)
        self._wrote = wrote

    def plan(self, target: Target) -> Plan:
        """What would go. UsageError when there is no such thing."""
        chosen = [name for name in ("session", "conversation", "memory", "project") if getattr(target, name)]
        if len(chosen) != 1:
            raise UsageError("say what to forget: a session, a conversation, a memory or a project")
        if target.memory:
            return self._plan_memory(target.memory)
        with self._database.read() as tx:
            keys = erasing.keys(
                tx, self._owner, session=target.session, key=target.conversation, project=target.project
            )
        if not keys:
            raise UsageError(
                f"no {chosen[0]} {getattr(target, chosen[0])}", hint="`recollect conversations` lists what there is."
            )
        return self._plan_whole(self._with_notes(keys), target)

    def _with_notes(self, keys: Sequence[str]) -> list[str]:
        """Notes that say again what these conversations state, as a pin does, go with them."""
        found = set(keys)
        with self._database.read() as tx:
            for key in keys:
                stated = memories.of_session(tx, self._owner, key)
                ids = sorted({each.id for each in stated})
                for each in memories.find(tx, self._owner, ids):
                    if any(repeats(each.text, was.text) for was in stated if was.id == each.id):
                        found |= {name for name, _ in each.sources if notes.is_session(name.partition("@")[0])}
        return sorted(found)

    def _plan_whole(self, keys: Sequence[str], target: Target | None = None) -> Plan:
        said: dict[tuple[str, str, str], Said] = {}
        talks: dict[str, list[Conversation]] = {}
        with self._database.read() as tx:
            for key in keys:
                talks[key] = conversation_rows.of_key(tx, self._owner, key)
                for talk in talks[key]:
                    found = erasing.said(tx, self._owner, talk)
                    said |= {(each.source, each.role, each.uuid): each for each in found}
            found = []
            if target is not None and target.session:
                found = erasing.said_in_session(tx, self._owner, target.session)
            elif target is not None and target.project:
                found = erasing.withdrawn_in_project(tx, self._owner, target.project)
            said |= {(each.source, each.role, each.uuid): each for each in found}
        for each in self._written(keys):
            said.setdefault((each.source, each.role, each.uuid), each)
        return Plan(tuple(keys), {}, tuple(said.values()), talks, {})

    def _plan_memory(self, memory_id: str) -> Plan:
        """Every entry that any revision of it came from, and those beside it that say the same."""
        with self._database.read() as tx:
            revisions = memories.find(tx, self._owner, [memory_id])
        if not revisions:
            raise UsageError(f"no memory {memory_id}", hint="`recollect search` and `recollect timeline` show ids.")
        sources: dict[str, set[str]] = {}
        for each in revisions:
            for key, uuid in each.sources:
                sources.setdefault(key, set()).add(uuid)
        whole: list[str] = []
        partly: dict[str, frozenset[str]] = {}
        said: list[Said] = []
        talks: dict[str, list[Conversation]] = {}
        kept: dict[str, str] = {}
        for key in sorted(sources):
            transcript = self._transcript(key, talks)
            with self._database.read() as tx:
                found = [each for talk in talks[key] for each in erasing.said(tx, self._owner, talk)]
            standing = {each.uuid for each in transcript.messages}
            withdrawn = [each for each in found if each.uuid not in standing and each.role != COMPACTION]
            gone = said_again(transcript.messages, sources[key], [each.text for each in revisions], withdrawn)
            left = [each for each in transcript.messages if each.uuid not in gone]
            if not left:
                whole.append(key)
                continue
            partly[key] = frozenset(gone)
            kept[key] = shortened(transcript.conversation, left).session_key
            said += [each for each in found if _goes(each, gone)]
        rest = self._plan_whole(whole)
        return Plan(rest.whole, partly, (*said, *rest.said), {**talks, **rest.talks}, kept)

    def _transcript(self, key: str, talks: dict[str, list[Conversation]]) -> Transcript:
        with self._database.read() as tx:
            talks[key] = conversation_rows.of_key(tx, self._owner, key)
        if not talks[key]:
            raise UsageError(f"{key}: its conversation is not in the database", hint="Run `recollect reindex` first.")
        return load(self._database, self._owner, talks[key])

    def _written(self, keys: Iterable[str]) -> Iterator[Said]:
        """What only files know of these conversations."""
        for name in self._names(keys):
            if name.kind is not Kind.TRANSCRIPT:
                continue
            try:
                document = parse(self._files.read(name.path) or "")
                messages = bodies.parse_transcript(document.body)
            except ArtifactError:
                continue
            head = document.head
            assert isinstance(head, Content)
            for each in messages:
                yield Said(head.harness, each.uuid, head.session_id, each.role, each.text, head.source_file)

    def _names(self, keys: Iterable[str]) -> list[Name]:
        tokens = {session_token(self._owner.agent_id, key, "") for key in keys}
        return [name for name in self._files.names() if name.token in tokens]

    def _beside(self, plan: Plan) -> list[tuple[str, Name]]:
        """Files of summaries that go, with the keys of the conversations that they stand with and that stay."""
        summaries = [each for each in plan.said if each.role == COMPACTION]
        with self._database.read() as tx:
            found = erasing.compaction_files(tx, self._owner, summaries)
        return [(key, name) for key, path in found if key not in plan.keys and (name := parse_name(path))]

    def run(self, target: Target, reason: str) -> Report:
        plan = self.plan(target)
        beside = self._beside(plan)
        names = [*self._names(plan.keys), *(name for _, name in beside)]
        paths = [name.path for name in names if self._goes_away(name, plan)]
        with self._database.write() as tx:
            self._revoke(tx, plan)
        buried = self._bury(stone(self._owner, plan, paths, reason, timestamp(self._clock())))
        report = Report(paths, 0, buried.path, len(plan.keys), len(plan.said))
        for name in names:
            self._files.delete(name.path)
        rewritten = [self._rewrite(plan, key) for key in sorted(plan.partly)]
        relinked = {key: self._relink(key) for key in sorted({key for key, _ in beside})}
        before = self._ids(plan)
        self._erase_logs(plan, before)  # as long as there are rows, a run that was cut short can be repeated
        self._files.delete_aside({session_token(self._owner.agent_id, key, "") for key in plan.keys})
        for kept in self._settings.home.glob(DAMAGED_DATABASES):
            kept.unlink()
        self._wrote("logs")
        with self._database.write() as tx:
            report.removed_rows = self._erase(tx, plan, buried, rewritten, relinked)
        self._wrote("rows")
        for name in self._names(plan.whole):  # a worker that was at it may have written meanwhile
            self._files.delete(name.path)
        report.memories = sorted(before - self._ids(plan, before))
        report.problems = list(self._refresh())
        with self._database.write() as tx:
            report.removed_rows += erasing.delete_baseline(tx, self._owner, plan.whole)
        self._wrote("projections")
        self._scrub()
        return report

    def _bury(self, buried: Tombstone) -> Tombstone:
        """Two removals in one millisecond are two tombstones."""
        while self._files.read(buried.path) is not None:
            later = moment(buried.removed_at) + timedelta(milliseconds=1)
            buried = replace(buried, removed_at=timestamp(later))
        self._files.create(buried.path, tombstones.rendered(buried))
        return buried

    def _goes_away(self, name: Name, plan: Plan) -> bool:
        """For good: every file of a conversation that goes; of one that loses a part, all but its manifest, whose name
        comes again."""
        keeping = {session_token(self._owner.agent_id, key, "") for key, left in plan.kept.items() if key == left}
        return name.token not in keeping or name.kind is not Kind.MANIFEST

    def _revoke(self, tx: Transaction, plan: Plan) -> None:
        """Whoever is at one of these conversations, or at the workspace, has lost it."""
        self._jobs.revoke(tx, plan.keys)
        answers.delete_all(tx, self._owner, plan.keys)

    def _rewrite(self, plan: Plan, key: str) -> _Rewritten:
        """A new set of files without what goes. A conversation that lost its beginning has another key."""
        before = self._transcript(key, {})
        left = [each for each in before.messages if each.uuid not in plan.partly[key]]
        talks = [shortened(each, left) for each in plan.talks[key]]
        transcript = Transcript(shortened(before.conversation, left), left)
        with self._database.read() as tx:
            held = remaining(memories.of_session(tx, self._owner, key), key, plan.partly[key])
        now_key = transcript.conversation.session_key
        stated = [  # what was said of when they matter may be of what goes
            replace(each, sources=tuple((now_key, uuid) for _, uuid in each.sources), occasions=()) for each in held
        ]
        gap = timedelta(minutes=self._settings.config.conversation_gap_minutes)
        end = SessionEnd(self._files, self._owner.agent_id, gap)
        written = end.write(transcript, retold(transcript, stated), stated, timestamp(self._clock()), _STRATEGY)
        mark = watermark(transcript.conversation.last_message_at, transcript.snapshot)
        return _Rewritten(tuple(talks), written, mark)

    def _relink(self, session_key: str) -> tuple[Indexed, ...]:
        """The files of a conversation that lost a summary of another one: its manifest names what is left. One that
        was changed by hand stays as it is."""
        token = session_token(self._owner.agent_id, session_key, "")

        def write() -> tuple[Indexed, ...]:
            known = sets.look(self._files, token)
            head, name = known.manifest, known.manifest_name
            if head is None or name is None:
                return ()
            at = max(head.updated_at, timestamp(self._clock()))
            head = sets.composed(known, name, head, sets.points(head), at, head.memory_md_refs, head.superseded_by)
            sets.commit(self._files, known, name, head)
            return sets.index(self._files, name, head, known.readable)

        try:
            return sets.retried(write)
        except Tampered:
            return ()

    def _erase(
        self,
        tx: Transaction,
        plan: Plan,
        buried: Tombstone,
        rewritten: Sequence[_Rewritten],
        relinked: Mapping[str, Sequence[Indexed]],
    ) -> int:
        """Jobs before the rest, as everywhere. Returns how many rows went."""
        owner = self._owner
        settled = [each for each in rewritten if all(talk.status in _SETTLED for talk in each.talks)]
        self._jobs.settle(tx, EXTRACT, [(each.key, each.mark, _status(each.written)) for each in settled])
        tombstone_rows.save(tx, owner, buried.path, buried.hashes)
        gone = {each.uuid for each in plan.said}
        for source, path in sorted({(each.source, each.source_file) for each in plan.said}):
            state = files.load(tx, owner, source, path)
            if state is not None:
                files.save(tx, owner, [replace(state, parser_state=blanked(state.parser_state, gone))])
        removed = erasing.delete_said(tx, owner, plan.said)
        removed += injections.delete(tx, owner, sorted({key.partition("@")[0] for key in plan.whole}))
        removed += turns.erase(tx, owner, turns_of(plan.said))
        removed += erasing.delete_conversations(tx, owner, plan.whole)
        memories.replace_sessions(tx, owner, dict.fromkeys(plan.keys, ()))
        stage1.delete(tx, owner, plan.keys)
        artifact_rows.replace_sessions(tx, owner, plan.keys, ())
        for each in rewritten:
            memories.replace_sessions(tx, owner, {each.key: each.written.stated})
            stage1.save(tx, owner, [each.written.stage1] if each.written.stage1 else [])
            artifact_rows.replace_sessions(tx, owner, [each.key], each.written.files)
            erasing.recount(tx, owner, each.talks, timestamp(self._clock()))
        for key, left in relinked.items():
            artifact_rows.replace_sessions(tx, owner, [key], left, (Kind.COMPACTION, Kind.MANIFEST))
        return removed + erasing.delete_unstated(tx, owner)

    def _erase_logs(self, plan: Plan, ids: Set[str]) -> None:
        """What was said to recollect itself stands in its own logs: notes, turns, and reactions to memories."""
        gone = {each.uuid for each in plan.said if each.source == notes.SOURCE}
        for path in sorted({each.source_file for each in plan.said if each.source == notes.SOURCE}):
            self._log.erase(path, lambda uuids: bool(gone.intersection(uuids)))
        erase_buckets(self._database, self._settings, self._owner, timestamp(self._clock()), plan.said)
        self._log.erase_reactions(ids)

    def _ids(self, plan: Plan, among: Set[str] = frozenset()) -> set[str]:
        """Memories that the conversations state, or those of some that still exist."""
        with self._database.read() as tx:
            if among:
                return {each.id for each in memories.find(tx, self._owner, sorted(among))}
            return {each.id for key in plan.keys for each in memories.of_session(tx, self._owner, key)}


def _goes(each: Said, gone: Set[str]) -> bool:
    """A summary that the agent made of its history may say it in other words: it goes, too."""
    return each.uuid in gone or each.role == COMPACTION


def _status(written: Written) -> JobStatus:
    return JobStatus.SUCCEEDED if written.stage1 else JobStatus.SUCCEEDED_NO_OUTPUT
