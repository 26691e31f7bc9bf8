"""Buckets: what a user said over many turns and conversations, by topic, with the evidence for every value.

`reconciled` is pure: turn memories go in, and it tells which buckets are added, changed or disabled; none is ever
deleted but by erasing. Values that contradict each other stand side by side, each with the turns that said so and
their number as its weight; severity and scope stay as they were said. The same turn counts once, however often it is
reconciled. What was said for one conversation only is in none. A bucket is a file of its own with a revision; rows
follow from it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from enum import StrEnum

import msgspec

from recollect.ingest.sources.base import UNDECODABLE
from recollect.ingest.sources.recollect import session
from recollect.store.turns import Artifact
from recollect.text import content_words
from recollect.turns.log import TurnLog, safe_name
from recollect.turns.values import BUCKET, Item, Kind, TurnMemory, Value, encode, item, normalise_key
from recollect.types import Scope

FOLDER = "buckets"
GENERAL = "general"  # the topic of what has none
_MOST_EVIDENCE = 20  # turns that are named for a value; its weight counts on


class BucketStatus(StrEnum):
    ENABLED = "enabled"
    STALE = "stale"  # disabled: nobody said anything about it for long; new evidence enables it
    DISABLED = "disabled"  # by the caller, for good


class Evidence(msgspec.Struct, frozen=True):
    conversation: str
    turn_id: str
    at: str


class Held(msgspec.Struct, frozen=True):
    """A value and who said so."""

    value: Value
    severity: str
    weight: int  # turns that said it
    evidence: tuple[Evidence, ...]  # newest first


class About(msgspec.Struct, frozen=True):
    """All values of one key."""

    kind: Kind
    key: str
    scope: Scope
    applies_to: tuple[str, ...]
    values: tuple[Held, ...]  # newest evidence first

    @property
    def same(self) -> tuple[str, str, str, tuple[str, ...]]:
        return self.kind, normalise_key(self.key), self.scope, self.applies_to

    def item(self) -> Item:
        """As it holds now: what was said last."""
        held = self.values[0]
        return item(self.kind, self.key, held.value, held.severity, scope=self.scope, applies_to=self.applies_to)


class Bucket(msgspec.Struct, frozen=True):
    id: str
    revision: int
    project: str
    user: str
    name: str
    status: BucketStatus
    updated_at: str
    entries: tuple[About, ...] = ()
    kind: str = BUCKET

    @property
    def tag(self) -> str:
        return f"mem:bucket:{self.id}"

    @property
    def path(self) -> str:
        return f"{safe_name(self.project)}/{safe_name(self.user)}/{FOLDER}/{self.id}.json"

    def artifact(self, hosted_uri: str, expires_at: str) -> Artifact:
        place = (self.project, self.user, "", BUCKET, "", self.id, "", self.updated_at)
        return Artifact(*place, encode(self), hosted_uri, expires_at, (BUCKET, self.tag))


@dataclass(slots=True)
class Changes:
    """What a reconcile did; ids."""

    added: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    disabled: list[str] = field(default_factory=list)


def parsed(data: bytes | str) -> Bucket | None:
    try:
        return msgspec.json.decode(data, type=Bucket)
    except UNDECODABLE:
        return None


# Decisions


def bucket_id(project: str, user: str, name: str) -> str:
    return "b-" + hashlib.sha256("\x1f".join((project, user, name)).encode("utf-8", "replace")).hexdigest()[:12]


def reconciled(
    held: Sequence[Bucket], memories: Iterable[TurnMemory], project: str, user: str, now: str, stale_before: str
) -> tuple[dict[str, Bucket], Changes]:
    """The buckets that are not what they were, each with its next revision."""
    now_held = {each.id: each for each in held}
    before = dict(now_held)
    for memory in sorted(memories, key=lambda each: (each.at, each.turn_id)):
        topic = normalise_key(next(iter(memory.fingerprint.topics), "")) or GENERAL
        for said in memory.fingerprint.items:
            if said.scope is Scope.CONVERSATION:
                continue
            target = _home(now_held, said) or now_held.get(bucket_id(project, user, topic))
            if target is None:
                made = bucket_id(project, user, topic)
                target = Bucket(made, 0, project, user, topic, BucketStatus.ENABLED, memory.at)
            told = Evidence(memory.conversation, memory.turn_id, memory.at)
            now_held[target.id] = _with(target, said, told)
    changes, changed = Changes(), {}
    for each in now_held.values():
        each = _status(each, stale_before)
        if each == before.get(each.id):
            continue
        changed[each.id] = msgspec.structs.replace(each, revision=each.revision + 1, updated_at=now)
        was = before.get(each.id)
        stopped = each.status is not BucketStatus.ENABLED and was is not None and was.status is BucketStatus.ENABLED
        (changes.added if was is None else changes.disabled if stopped else changes.changed).append(each.id)
    return changed, changes


def _home(held: Mapping[str, Bucket], said: Item) -> Bucket | None:
    same = (said.kind, normalise_key(said.key), said.scope, said.applies_to)
    return next((each for each in held.values() if any(one.same == same for one in each.entries)), None)


def _with(bucket: Bucket, said: Item, told: Evidence) -> Bucket:
    same = (said.kind, normalise_key(said.key), said.scope, said.applies_to)
    about = next((each for each in bucket.entries if each.same == same), None)
    others = tuple(each for each in bucket.entries if each.same != same)
    about = about or About(said.kind, said.key, said.scope, said.applies_to, ())
    one = next(
        (each for each in about.values if (each.value, each.severity) == (said.value, said.severity)),
        Held(said.value, str(said.severity), 0, ()),
    )
    unnamed = one.weight > len(one.evidence)  # and earlier than those that are named
    if told in one.evidence or (unnamed and told.at <= one.evidence[-1].at):
        return bucket
    evidence = tuple(sorted((told, *one.evidence), key=lambda each: each.at, reverse=True)[:_MOST_EVIDENCE])
    values = [each for each in about.values if each is not one]
    values.append(Held(one.value, one.severity, one.weight + 1, evidence))
    values.sort(key=lambda each: each.evidence[0].at, reverse=True)
    return msgspec.structs.replace(bucket, entries=(*others, msgspec.structs.replace(about, values=tuple(values))))


def _status(bucket: Bucket, stale_before: str) -> Bucket:
    if bucket.status is BucketStatus.DISABLED:
        return bucket
    newest = max((held.evidence[0].at for each in bucket.entries for held in each.values), default="")
    status = BucketStatus.ENABLED if newest >= stale_before else BucketStatus.STALE
    return msgspec.structs.replace(bucket, status=status)


def without(bucket: Bucket, gone: Set[tuple[str, str]]) -> Bucket | None:
    """Without the evidence of erased turns, by (session, turn); None when nothing else is left."""
    entries = []
    for about in bucket.entries:
        values = []
        for held in about.values:
            left = tuple(
                each
                for each in held.evidence
                if (session(bucket.project, bucket.user, each.conversation), each.turn_id) not in gone
            )
            if left:
                weight = held.weight - (len(held.evidence) - len(left))
                values.append(Held(held.value, held.severity, weight, left))
        if values:
            entries.append(msgspec.structs.replace(about, values=tuple(values)))
    if not entries or tuple(entries) == bucket.entries:
        return bucket if entries else None
    name = normalise_key(entries[0].key)  # it may have been a topic of what goes
    return msgspec.structs.replace(bucket, name=name, entries=tuple(entries))


def picked(held: Iterable[Bucket], text: str, limit: int) -> list[Bucket]:
    """Enabled buckets that share words with the text, best first."""
    wanted = content_words(text)
    scored = []
    for each in held:
        told = [each.name.replace("_", " ")]
        told += [f"{about.key.replace('_', ' ')} {one.value}" for about in each.entries for one in about.values]
        shared = len(wanted & content_words(" ".join(told)))
        if shared and each.status is BucketStatus.ENABLED:
            scored.append((-shared, each.id, each))
    return [each for _, _, each in sorted(scored, key=lambda row: row[:2])[:limit]]


# Files


class BucketFiles:
    """The buckets of one user in one project. Whoever writes them is alone with the log until their rows are there."""

    def __init__(self, log: TurnLog, project: str, user: str) -> None:
        self._log = log
        self._project = project
        self._user = user

    def all(self) -> list[Bucket]:
        folder = self._log.root / safe_name(self._project) / safe_name(self._user) / FOLDER
        return bucket_files(self._log, folder.relative_to(self._log.root).as_posix())

    def reconcile(
        self, memories: Sequence[TurnMemory], now: str, stale_before: str
    ) -> tuple[dict[str, Bucket], Changes]:
        held = [each for each in self.all() if (each.project, each.user) == (self._project, self._user)]
        changed, changes = reconciled(held, memories, self._project, self._user, now, stale_before)
        for each in changed.values():
            self._log.replace(each.path, encode(each) + "\n", each.revision - 1)
        return changed, changes

    def disable(self, bucket_id: str, now: str) -> Bucket | None:
        """By hand; None when there is no such bucket."""
        found = next((each for each in self.all() if each.id == bucket_id), None)
        if found is None:
            return None
        made = msgspec.structs.replace(found, status=BucketStatus.DISABLED, revision=found.revision + 1, updated_at=now)
        self._log.replace(made.path, encode(made) + "\n", found.revision)
        return made


def bucket_files(log: TurnLog, folder: str) -> list[Bucket]:
    """Every bucket of a folder below the root that can be read, by id."""
    names = sorted(path.name for path in (log.root / folder).glob("b-*.json"))
    read = (_read(log, f"{folder}/{name}") for name in names)
    return [found for found in read if found is not None]


def _read(log: TurnLog, path: str) -> Bucket | None:
    data = log.read(path)
    return None if data is None else parsed(data)


def holding(log: TurnLog, folder: str, gone: Set[tuple[str, str]]) -> list[Bucket]:
    """A user's buckets that hold evidence of these turns."""
    return [each for each in bucket_files(log, f"{folder}/{FOLDER}") if without(each, gone) != each]


def erase(log: TurnLog, path: str, gone: Set[tuple[str, str]], now: str) -> Bucket | None:
    """Takes the evidence of erased turns out of a bucket's file: what is left, None when it is gone."""
    held = _read(log, path)
    left = None if held is None else without(held, gone)
    if held is None or left == held:
        return held
    if left is None:
        log.delete(path, held.revision)
        return None
    left = msgspec.structs.replace(left, revision=held.revision + 1, updated_at=max(now, held.updated_at))
    log.replace(path, encode(left) + "\n", held.revision)
    return left
