"""A chat's turns: five calls around every answer. `preload`, `view`, `reconcile`, `update_fingerprint`, `persist`.

A `Turns` is bound to a tenant, project, user and conversation; nothing else is ever read or written through it. A turn
is persisted once: a line in the turn log, synced, then the rows that follow from that line. A crash in between loses
nothing and doubles nothing: the same call again, an ingest or a re-index finds the line and makes the rows. The
database is read once per turn; the core is synchronous, and every call may come from any thread.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from recollect.errors import NotFound, RecollectError, UsageError
from recollect.ingest.sources.base import UNDECODABLE
from recollect.ingest.sources.recollect import Reaction, entry_id, session, turn_of
from recollect.ingest.sources.recollect import Turn as Line
from recollect.models.base import ModelFailed
from recollect.models.choose import language_model
from recollect.models.paid import Paid
from recollect.note import SOURCE
from recollect.redact import redact
from recollect.search.values import Wanted
from recollect.store import tombstones
from recollect.store import turns as rows
from recollect.store.database import Transaction
from recollect.store.ground import Ground, Part
from recollect.store.search import Reach
from recollect.store.tombstones import entry_hash
from recollect.store.turns import Artifact, Person
from recollect.store.vectors import Kind as IndexKind
from recollect.store.words import index_entries
from recollect.turns import present, prompts
from recollect.turns.buckets import Bucket, BucketFiles, Changes, parsed
from recollect.turns.log import TurnLog, rendered
from recollect.turns.overruled import as_held
from recollect.turns.reconcile import Ask
from recollect.turns.rows import artifacts, expiry, fingerprint_of, hosted_uri, keep_for
from recollect.turns.turn import ChatTurn, TurnState
from recollect.turns.values import (
    ACTIVE_SET,
    BINDING_TAG,
    BUCKET,
    FINGERPRINT,
    KEY_TAG,
    REACTION,
    SIGNAL_TAG,
    TITLE_TAG,
    TURN_LOG,
    ActiveSet,
    Feedback,
    Fingerprint,
    Kind,
    Opinion,
    Origin,
    PriorTurn,
    SaidSignal,
    TurnMemory,
    TurnScope,
    after,
    key_tag,
    require_name,
    tidy,
)
from recollect.types import Role, Scope, Timestamp, moment, timestamp

if TYPE_CHECKING:
    from pydantic import BaseModel

    from recollect.ingest.intake import Intake
    from recollect.models.base import LanguageModel
    from recollect.search.run import Search
    from recollect.search.vectors.vectors import Vectors

_MOST_DELTA = 30  # turn memories since the last reconcile that are shown at the most
_STANDING = 40  # older turns that hold what binds, each something of its own: here, and anywhere
_MOST_STANDING = 400  # turns in which they are looked for
_LATER, _MOST_LATER = 25, 200  # turns in which is looked for what was said about keys since: at a time, and in all
_RECALLED = 24  # messages that search may find
_EMBEDDED = 16  # documents that a turn makes vectors of: somebody waits
_LOOKED_AT = 120  # turns in which is looked for what matters by its meaning
_ALIKE = 0.4  # how near it has to be
_KEYS = 30  # of what was recalled, that are looked up once more
_PURGED = 20  # expired rows that a turn removes
_RECONCILED = 1_000  # turns that one reconcile takes into buckets
_TITLE = 80


Place = tuple[str, str]  # conversation and turn
Read = Callable[[Artifact], TurnMemory]  # of a row, and none twice

log = logging.getLogger(__name__)


class TurnConflict(UsageError):
    """A turn of that id is persisted already, with other words, or was erased."""

    hint = "Give every turn an id of its own; the same turn may be persisted again as it was."


class Matter(NamedTuple):
    """What an item is about: of those of a kind the newest holds."""

    kind: Kind
    about: tuple[str, tuple[str, ...]]

    @property
    def key(self) -> str:
        return self.about[0]


class Turns(Part):
    """One conversation of one user."""

    def __init__(
        self,
        ground: Ground,
        scope: TurnScope,
        intake: Intake,
        search: Callable[[], Search],
        vectors: Callable[[], Vectors],
        forget: Callable[..., object],  # session, reason
    ) -> None:
        if not isinstance(scope, TurnScope):
            raise UsageError(f"no scope: {scope!r}"[:200], hint="Give project, user and conversation by their names.")
        if scope.tenant not in (None, ground.owner.tenant):
            raise UsageError(f"this memory is not of tenant `{scope.tenant}`", hint="Open one with its tenant.")
        if intake.project_of("", scope.project) != scope.project:
            raise UsageError(f"nothing of {scope.project} may be stored", hint="It is switched off by configuration.")
        self.scope = scope
        self.session_id = session(scope.project, scope.user, scope.conversation)
        super().__init__(ground)
        self._intake = intake
        self._search = search
        self._vectors = vectors
        self._forget = forget
        self._person = Person(ground.owner, scope.project, scope.user)
        self._log = TurnLog(ground.settings.turns)

    def turn(self, turn_id: str, user_text: str = "") -> ChatTurn:
        """A turn, for a `with` statement: persisted when it is left without an exception, and only then."""
        return ChatTurn(self, turn_id, user_text)

    def react(
        self, turn_id: str, reaction: str, text: str = "", *, confidence: float = 1.0, origin: str = Origin.USER
    ) -> Feedback:
        """What somebody thought of a turn. The user's newest reaction replaces the one before; a machine's is one
        more, and below a confidence of 0.7 nothing at all."""
        require_name("turn", turn_id)
        try:
            told = Feedback(turn_id, Opinion(reaction), tidy(text), confidence, Origin(origin), self.now)
        except ValueError as error:
            raise UsageError(str(error), hint="ok, not_ok or neutral; of user or machine.") from None
        with self._database.read() as tx:
            known = rows.find(tx, self._person, self.scope.conversation, TURN_LOG, [turn_id], self.now)
            before = rows.find(tx, self._person, self.scope.conversation, REACTION, [turn_id], self.now)
        if not known:
            raise NotFound(f"no turn `{turn_id}` in this conversation")
        own = [after(Timestamp(each.at)) for each in before if each.ref == Origin.USER == told.origin]
        told = replace(told, at=max([told.at, *own]))
        if not told.counts:
            return told
        scope = self.scope
        record = Reaction(
            at=told.at,
            project=scope.project,
            user=scope.user,
            turn=turn_id,
            conversation=scope.conversation,
            reaction=told.reaction,
            text=told.text,
            confidence=confidence,
            origin=told.origin,
        )
        path = self._log.append(scope.conversation, record)
        made = artifacts(rendered(record), self._hosted(path), keep_for(self._settings))
        with self._database.write() as tx:
            rows.save(tx, self._owner, made, replacing=True)
        return told

    def title(self) -> str:
        """The conversation's title: as it was chosen, else as it began; empty before the first turn."""
        with self._database.read() as tx:
            chosen = self._active_set(tx).conversation_title
            begun = None if chosen else rows.first(tx, self._person, self.scope.conversation, TURN_LOG, self.now)
            named = rows.tagged(tx, self._person, f"{TITLE_TAG}:{self.session_id}", self.now, 1) if begun else []
            first = rows.first(tx, self._person, self.scope.conversation, FINGERPRINT, self.now) if begun else None
        if chosen or begun is None:
            return chosen
        told = next((self.memory(each).fingerprint.conversation_title for each in (*named, first) if each), "")
        return present.inert(told or msgspec.json.decode(begun.text)["user"], _TITLE)

    def artifacts(self, kind: str, limit: int = 50) -> list[Artifact]:
        """Stored artifacts of the conversation, newest first, with their tags; buckets are the user's."""
        where = "" if kind == BUCKET else self.scope.conversation
        with self._database.read() as tx:
            if kind == ACTIVE_SET:
                held = rows.load_active_set(tx, self._person, where, self.now)
                return [held._replace(kind=kind, tags=(kind,))] if held else []
            found = rows.newest(tx, self._person, where, kind, self.now, limit)
            tags = rows.tags(tx, self._person, where, kind)
        return [each._replace(tags=(kind, *tags.get((each.turn_id, each.ref), ()))) for each in found]

    def payload(self, turn_id: str) -> dict[str, Any] | None:
        """A turn as its log has it, with the feedback that came later; None when there is none."""
        path = self._log.path(*self._place).relative_to(self._log.root).as_posix()
        found: dict[str, Any] | None = None
        said: list[dict[str, Any]] = []
        for line in (self._log.read(path) or b"").splitlines():
            try:
                record = msgspec.json.decode(line, type=dict[str, Any])
            except UNDECODABLE:
                continue
            if record.get("line") == "turn" and record.get("id") == turn_id and found is None:
                found = record
            elif record.get("line") == "reaction" and record.get("turn") == turn_id:
                names = ("at", "reaction", "text", "confidence", "origin")
                said.append({name: record[name] for name in names if name in record})
        if found is not None and isinstance(found.get("turn_log"), dict):
            log = found["turn_log"]
            log["feedbacks"] = [*log.get("feedbacks", ()), *said]
            log["entries"] = [*log.get("entries", ()), *({"area": "feedback", **each} for each in said)]
        return found

    def recall(self, text: str, limit: int = _RECALLED) -> list[TurnMemory]:
        """Old turn memories of this user in this project by their meaning, best first; of other conversations only
        what holds beyond them."""
        folder = self._log.path(*self._place).parent
        self._intake.take(sorted(folder.glob("*.jsonl")))
        mine = folder.relative_to(self._log.root).as_posix() + "/"
        reach = Reach(self._owner, (self.scope.project,), self.scope.user)
        wanted = Wanted(kinds=frozenset({IndexKind.ENTRY}), source=SOURCE, file=mine)
        index_entries(self._database)
        self._embed()
        hits = self._search().run(text, reach, wanted, limit, self._clock())
        pairs = dict.fromkeys((hit.session_id, turn_of(hit.entry_uuid, hit.session_id, hit.role)) for hit in hits)
        recalled = self._matters(text)
        with self._database.read() as tx:
            found = rows.said_in(tx, self._person, [each for each in pairs if each[1]], FINGERPRINT, self.now)
            recalled |= {each.turn: each for each in map(self.memory, found)}
            about = dict.fromkeys(key_tag(one) for each in recalled.values() for one in each.fingerprint.items)
            recalled |= {each.turn: each for each in self._said_last(tx, list(about)[:_KEYS])}
            held = as_held(tx, self._owner, recalled.values(), self._entries)
        return [each for each in held if each.fingerprint.items]

    def _matters(self, text: str) -> dict[Place, TurnMemory]:
        """The newest turns that hold something that matters to a text, in whatever words."""
        with self._database.read() as tx:
            told = list(map(self.memory, rows.latest(tx, self._person, FINGERPRINT, self.now, _LOOKED_AT)))
        said = [(each, one.text) for each in told for one in each.fingerprint.items]
        near = self._vectors().likeness(text, [one for _, one in said])
        return {each.turn: each for (each, _), one in zip(said, near, strict=True) if one >= _ALIKE}

    def _said_last(self, tx: Transaction, tags: Sequence[str]) -> Iterator[TurnMemory]:
        """What was said last about the keys of these tags, in whatever words: by the newest turn of each, unless that
        is of another conversation alone."""
        read = self._reader()
        newest = {tag: each for tag in tags for each in map(read, rows.tagged(tx, self._person, tag, self.now, 1))}
        told = {tag: each for tag, each in newest.items() if tag in each.fingerprint.tags}
        yield from told.values()
        for tag, later in self._later(tx, [tag for tag in newest if tag not in told], read):
            yield from itertools.islice((each for each in later if tag in each.fingerprint.tags), 1)

    def buckets(self) -> list[Bucket]:
        """The user's buckets as their files have them."""
        return BucketFiles(self._log, self.scope.project, self.scope.user).all()

    def disable_bucket(self, bucket_id: str) -> None:
        """It is not picked any more; nothing is deleted."""
        with self._log.alone():
            made = BucketFiles(self._log, self.scope.project, self.scope.user).disable(bucket_id, self.now)
            if made is None:
                raise NotFound(f"no bucket `{bucket_id}`")
            with self._database.write() as tx:
                self._save_buckets(tx, [made])

    def reconcile_buckets(self) -> Changes:
        """Takes turns that are in no bucket yet into the user's buckets. Nothing when they are switched off."""
        if not self.has_buckets:
            return Changes()
        now = self.now
        with self._log.alone():  # what is erased meanwhile is taken out after this
            with self._database.read() as tx:
                before = self._active_set(tx)
                last = before.last_reconciled_ts
                new = rows.newest(tx, self._person, self.scope.conversation, FINGERPRINT, now, _RECONCILED, since=last)
            pending = 0
            if len(new) == _RECONCILED:  # those of the last moment may have company that was not read
                new, pending = [each for each in new if each.at < new[-1].at] or new, self.reconciles_after
            said = [replace(self.memory(each), conversation=each.conversation) for each in new]
            stale = timestamp(moment(now) - keep_for(self._settings))
            files = BucketFiles(self._log, self.scope.project, self.scope.user)
            changed, changes = files.reconcile(said, now, stale)
            done = max((each.at for each in new), default=last)
            after = replace(before, last_reconciled_ts=done, since_last_reconcile=pending)
            with self._database.write() as tx:
                self._save_buckets(tx, changed.values())
                self._choose(tx, lambda held: after if held == before else held)  # a turn came meanwhile: once more
        return changes

    def forget(self, reason: str) -> object:
        """Erases the conversation for good, everywhere."""
        return self._forget(session=self.session_id, reason=reason)

    def _embed(self) -> None:
        """The newest turns are found by their meaning; where that cannot be, by their words."""
        try:
            self._vectors().update(_EMBEDDED)
        except RecollectError as error:
            log.warning("the newest turns have no vectors yet: %s", error)

    # For its turns

    @property
    def now(self) -> Timestamp:
        return timestamp(self._clock())

    @property
    def has_buckets(self) -> bool:
        config = self._settings.config
        return config.memory_reconcile_enabled and not config.long_memories_log

    @property
    def _place(self) -> tuple[str, str, str]:
        return self.scope.project, self.scope.user, self.scope.conversation

    def _hosted(self, path: Path) -> str:
        return hosted_uri(self._settings, path.relative_to(self._log.root).as_posix())

    def memory(self, row: Artifact, *, binding: bool = False) -> TurnMemory:
        """Of another conversation only what holds beyond it; with `binding`, only what binds."""
        told = Fingerprint.of(msgspec.json.decode(row.text), binding=binding)
        if row.conversation == self.scope.conversation:
            return TurnMemory(row.turn_id, Timestamp(row.at), told)
        lasting = told.with_items(lambda each: each.scope is not Scope.CONVERSATION)
        return TurnMemory(row.turn_id, Timestamp(row.at), lasting, row.conversation)

    def _entries(self, memory: TurnMemory) -> list[str]:
        """The ids of the turn's messages."""
        where = session(self.scope.project, self.scope.user, memory.conversation or self.scope.conversation)
        return [entry_id(where, memory.turn_id, role) for role in Role]

    def held_buckets(self) -> tuple[Bucket, ...]:
        """The user's buckets as their rows have them; none when they are switched off."""
        if not self.has_buckets:
            return ()
        with self._database.read() as tx:
            return self._buckets(tx)

    def _buckets(self, tx: Transaction) -> tuple[Bucket, ...]:
        held = rows.newest(tx, self._person, "", BUCKET, self.now, 200)
        return tuple(made for each in held if (made := parsed(each.text)) is not None)

    def _reader(self) -> Read:
        known: dict[Place, TurnMemory] = {}

        def read(row: Artifact) -> TurnMemory:
            place = row.conversation, row.turn_id
            if place not in known:
                known[place] = self.memory(row)
            return known[place]

        return read

    def load(self, turn_id: str) -> TurnState:
        """One look at the database, before the turn of that id. TurnConflict when it was erased."""
        config, now, where = self._settings.config, self.now, self.scope.conversation
        most, read = config.turn_window, self._reader()
        with self._database.read() as tx:
            self._refuse_erased(tx, turn_id)
            chosen = self._active_set(tx)
            window = min(max(most, chosen.since_last_reconcile), max(most, _MOST_DELTA))
            told = rows.newest(tx, self._person, where, FINGERPRINT, now, window)
            seen = {each.turn_id for each in told}
            again = [each for each in chosen.selected_local_memories_turn_ids if each not in seen]
            told += rows.find(tx, self._person, where, FINGERPRINT, again, now)
            memories = {each.turn: each for each in map(read, told)}
            unread = self._with_rules(tx, memories, read)
            held = as_held(tx, self._owner, memories.values(), self._entries)
            prior = rows.newest(tx, self._person, where, TURN_LOG, now, most)
            said = rows.newest(tx, self._person, where, REACTION, now, most)
            promoted = rows.tagged(tx, self._person, SIGNAL_TAG, now, config.assistant_signals_limit)
            buckets = self._buckets(tx) if self.has_buckets else ()
        promoted_signals = [
            SaidSignal(one, each.turn_id, each.conversation, Timestamp(each.at))
            for each in promoted
            for one in Fingerprint.of(msgspec.json.decode(each.text)).assistant_signals
        ]
        return TurnState(
            prior=tuple(_prior(each) for each in prior),
            memories=tuple(sorted(held, key=lambda each: (each.at, each.turn_id), reverse=True)),
            feedback=tuple(Feedback.parse(each.text, each.conversation) for each in said),
            signals=tuple(promoted_signals[: config.assistant_signals_limit]),
            buckets=buckets,
            active_set=chosen,
            unread=unread,
        )

    def _refuse_erased(self, tx: Transaction, turn_id: str) -> None:
        ids = [entry_hash(SOURCE, entry_id(self.session_id, turn_id, role)) for role in Role]
        if tombstones.erased(tx, self._owner, ids):
            hint = "Give the turn an id that was never used, or begin a conversation with another id."
            raise TurnConflict(f"turn `{turn_id}` was erased", hint=hint)

    def _with_rules(self, tx: Transaction, memories: dict[Place, TurnMemory], read: Read) -> bool:
        """Adds what binds of turns that are not among these, and what was said since about the same. Is there more
        than was looked at?"""
        found, unread = self._standing(tx, read)
        binding = {each for memory in (*memories.values(), *found.values()) for each in _rules(memory)}
        about = {each.about for each in binding}
        for memory in self._since(tx, binding, read):
            found[memory.turn] = memory
        for turn, memory in found.items():
            told = memory.fingerprint.with_items(lambda one: one.about in about)
            memories.setdefault(turn, replace(memory, fingerprint=told))
        return unread

    def _since(self, tx: Transaction, binding: set[Matter], read: Read) -> Iterator[TurnMemory]:
        """The turns that spoke of these matters last. The newest that names a key mostly tells; one that speaks of
        other places, or is of another conversation alone, does not."""
        tags = {f"{KEY_TAG}:{each.key}": each.key for each in sorted(binding)}
        told: set[Matter] = set()
        for tag, key in tags.items():
            for memory in map(read, rows.tagged(tx, self._person, tag, self.now, 1)):
                told |= _matters(memory, key)
                yield memory
        missing = {each.key for each in binding - told}
        for tag, later in self._later(tx, [tag for tag, key in tags.items() if key in missing], read):
            wanted, said = {each for each in binding if each.key == tags[tag]}, set[Matter]()
            for memory in later:
                new = _matters(memory, tags[tag]) - said
                if new:
                    yield memory
                said |= new
                if wanted <= said:
                    break

    def _later(self, tx: Transaction, tags: Sequence[str], read: Read) -> Iterator[tuple[str, Iterator[TurnMemory]]]:
        """The turns of every tag, newest first: so many in all, and what one tag does not need the next may have."""
        left = _MOST_LATER

        def some(tag: str, most: int) -> Iterator[TurnMemory]:
            nonlocal left
            for row in itertools.islice(self._tagged(tx, tag, min(most, _LATER)), most):
                left -= 1
                yield read(row)

        for place, tag in enumerate(tags):
            if most := left // (len(tags) - place):
                yield tag, some(tag, most)

    def _standing(self, tx: Transaction, read: Read) -> tuple[dict[Place, TurnMemory], bool]:
        """The newest turns that hold something that binds, each something of its own or what that replaced; and whether
        some were not looked at."""
        found: dict[Place, TurnMemory] = {}
        unread = False
        for tag in (BINDING_TAG, f"{BINDING_TAG}:{self.session_id}"):
            told: dict[Matter, list[str]] = {}  # the newest value, and the one before
            holding = 0
            for place, row in enumerate(self._tagged(tx, tag, _STANDING)):
                memory = self.memory(row, binding=True)
                is_new = not _rules(memory) <= told.keys()
                if place >= _MOST_STANDING or (is_new and holding >= _STANDING):
                    unread = True
                    break
                holding += is_new
                for one in memory.fingerprint.items:
                    values, value = told.setdefault(Matter(one.kind, one.about), []), f"{one.severity} {one.value}"
                    if value not in values and len(values) < 2:
                        values.append(value)
                        found[memory.turn] = read(row)
        return found, unread

    def _tagged(self, tx: Transaction, tag: str, page: int) -> Iterator[Artifact]:
        """Newest first, as many as are asked for."""
        for offset in itertools.count(0, page):
            found = rows.tagged(tx, self._person, tag, self.now, page, offset)
            yield from found
            if len(found) < page:
                return

    def asks(self, name: str, schema: type[BaseModel]) -> Ask:
        """Asks the configured model with one of our prompts."""
        config, model = self._settings.config, self.model
        assert model is not None
        paid = Paid(self._ground, "turns", self.session_id)

        def ask(content: str) -> Mapping[str, Any]:
            paid.check_cap()
            try:
                given = model.answer(prompts.load(name), redact(content), schema, seconds=config.model_timeout_seconds)
            except ModelFailed as failed:
                paid.charge(model.name, failed.usage)
                raise
            paid.charge(model.name, given.usage)
            return given.value.model_dump()

        return ask

    @cached_property
    def model(self) -> LanguageModel | None:
        config = self._settings.config
        return language_model(self._settings, config.turn_model or config.model)

    @property
    def block_tokens(self) -> int:
        return self._settings.config.turn_block_tokens

    @property
    def reconciles_after(self) -> int:
        return self._settings.config.memory_reconcile_turns

    def write(
        self, line: Line, more: Mapping[str, Any], chosen: Callable[[ActiveSet, Fingerprint], ActiveSet]
    ) -> Fingerprint:
        """The line, then what follows from it. Returns the fingerprint that stands."""
        latest = Timestamp(line.at)
        with self._database.read() as tx:
            self._refuse_erased(tx, line.id)
            last = rows.newest(tx, self._person, self.scope.conversation, TURN_LOG, self.now, 1)
            known = rows.find(tx, self._person, self.scope.conversation, TURN_LOG, [line.id], self.now)
        if last and last[0].at >= latest and last[0].turn_id != line.id:  # turns of one moment stay in order
            later = after(Timestamp(last[0].at))
            line = msgspec.structs.replace(line, at=later, answered_at=max(later, line.answered_at))
        written, is_new = self._log.append_once(line, more, known=bool(known))
        if not is_new and _said(written) != _said(rendered(line, more)):
            raise TurnConflict(f"turn `{line.id}` is persisted already, with other words")
        told = fingerprint_of(written)
        standing = told[1] if told and told[1] else Fingerprint()
        made = artifacts(written, self._hosted(self._log.path(*self._place)), keep_for(self._settings))
        self._reached()
        with self._database.write() as tx:
            self._refuse_erased(tx, line.id)
            if rows.save(tx, self._owner, made):
                self._choose(tx, lambda held: _with_late(chosen(held, standing), Timestamp(made[0].at)))
            rows.purge(tx, self._owner, self.now, _PURGED)
        return standing

    def _reached(self) -> None:
        """Between the line and its rows; a test crashes here."""

    def _active_set(self, tx: Transaction) -> ActiveSet:
        return _parsed(rows.load_active_set(tx, self._person, self.scope.conversation, self.now))

    def _choose(self, tx: Transaction, chosen: Callable[[ActiveSet], ActiveSet]) -> None:
        """Changes what the conversation has chosen, alone with it."""
        now = self.now
        own = (self._person, self.scope.conversation, self.session_id)
        end = expiry(now, keep_for(self._settings))
        held = _parsed(rows.hold_active_set(tx, *own, now, end))
        rows.save_active_set(tx, *own, chosen(held).serialized(), now, end)

    def _save_buckets(self, tx: Transaction, changed: Iterable[Bucket]) -> None:
        keep = keep_for(self._settings)
        made = [
            each.artifact(hosted_uri(self._settings, each.path), expiry(Timestamp(each.updated_at), keep))
            for each in changed
        ]
        rows.save(tx, self._owner, made, replacing=True)


def _matters(memory: TurnMemory, key: str) -> set[Matter]:
    found = {Matter(one.kind, one.about) for one in memory.fingerprint.items}
    return {each for each in found if each.key == key}


def _rules(memory: TurnMemory) -> set[Matter]:
    return {Matter(one.kind, one.about) for one in memory.fingerprint.items if one.is_binding}


def _parsed(held: Artifact | None) -> ActiveSet:
    return ActiveSet.parse(held.text) if held else ActiveSet()


def _with_late(held: ActiveSet, at: Timestamp) -> ActiveSet:
    """A turn whose row came after those of later ones is in no bucket yet."""
    late = at <= held.last_reconciled_ts
    return replace(held, last_reconciled_ts=timestamp(moment(at) - timedelta(milliseconds=1))) if late else held


def _prior(row: Artifact) -> PriorTurn:
    told = msgspec.json.decode(row.text)
    return PriorTurn(row.turn_id, Timestamp(row.at), told["user"], told["assistant"])


def _said(line: bytes) -> tuple[str, str]:
    told = msgspec.json.decode(line, type=Line)
    return told.user_text, told.assistant_text
