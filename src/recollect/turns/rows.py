"""Rows of turn memory, made from the lines of turn logs and from bucket files, and what people thought of memories.
Persisting a turn and rebuilding from files use the same step: whatever crashed in between, the rows come out equal.
"""

from __future__ import annotations

import hashlib
import stat
from collections.abc import Iterator
from contextlib import nullcontext
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from recollect import note
from recollect.config import Settings
from recollect.errors import UsageError
from recollect.ingest.sources.base import UNDECODABLE
from recollect.ingest.sources.recollect import Reaction, Turn, entry_id, session
from recollect.store import feedback, tombstones
from recollect.store import turns as rows
from recollect.store.database import Transaction
from recollect.store.ground import Ground
from recollect.store.tombstones import entry_hash
from recollect.store.turns import Artifact
from recollect.text import plain
from recollect.turns import buckets
from recollect.turns.log import TurnLog, safe_name
from recollect.turns.values import (
    BINDING_TAG,
    BUCKET,
    FINGERPRINT,
    REACTION,
    TITLE_TAG,
    TURN_LOG,
    Feedback,
    Fingerprint,
    Opinion,
    Origin,
    encode,
)
from recollect.types import Owner, Role, Scope, Timestamp, moment, parse_timestamp, timestamp

_EXCERPT = 400  # characters of what was said, in a compressed view
_BATCH = 500  # rows in a commit
_MOST_REVISIONS = 10**9  # as a note can name
_SAID_IN = "turn:"  # in the ref of a reaction: followed by the turn that told it


class _Log(msgspec.Struct):
    state: dict[str, Any] = {}
    entries: list[dict[str, Any]] = []


class _Line(msgspec.Struct):
    turn_log: _Log | None = None


_turns = msgspec.json.Decoder(Turn)
_reactions = msgspec.json.Decoder(Reaction)
_logs = msgspec.json.Decoder(_Line)


def fingerprint_of(line: bytes) -> tuple[Turn, Fingerprint | None] | None:
    """The turn that a line tells, and its fingerprint; None for another line."""
    try:
        turn = _turns.decode(line)
        log = _logs.decode(line).turn_log
    except UNDECODABLE:
        return None
    told = log.state.get("fingerprint") if log else None
    return turn, Fingerprint.of(told) if isinstance(told, dict) else None


def artifacts(line: bytes, hosted_uri: str, keep: timedelta) -> list[Artifact]:
    """The rows of one line; none for a note, a reaction to a memory, or what cannot be read."""
    try:
        found = fingerprint_of(line)
        if found is None:
            return _reaction(_reactions.decode(line), hosted_uri, keep)
        turn, told = found
        at = parse_timestamp(turn.at)
    except (*UNDECODABLE, ValueError, UsageError):
        return []
    place = (turn.project, turn.user, turn.conversation)
    end = (at, expiry(at, keep))
    compact = {"user": excerpt(turn.user_text), "assistant": excerpt(turn.assistant_text)}
    made = [_artifact(place, TURN_LOG, turn.id, "", encode(compact), f"{hosted_uri}#{turn.id}", *end)]
    if told is not None:
        text = encode(told.json() | {"turn_id": turn.id})
        here = any(each.is_binding and each.scope is Scope.CONVERSATION for each in told.items)
        own = (*((BINDING_TAG,) if here else ()), *((TITLE_TAG,) if told.conversation_title else ()))
        tags = (*told.tags, *(f"{tag}:{session(*place)}" for tag in own))
        made.append(_artifact(place, FINGERPRINT, turn.id, "", text, "", *end, tags))
    log = _logs.decode(line).turn_log
    for each in log.entries if log else ():
        said = _judged(each, at)
        if said is not None:
            made.append(_reaction_row(place, said, f"{_SAID_IN}{turn.id}", keep))
    return made


def verdict(line: bytes) -> Reaction | None:
    """What a person thought of a memory, its time as rows have it; None for another line."""
    try:
        told = _reactions.decode(line)
        at = parse_timestamp(told.at)
    except (*UNDECODABLE, ValueError, UsageError):
        return None
    counts = told.origin == Origin.USER and told.reaction in (Opinion.OK, Opinion.NOT_OK)
    known = told.memory and "\0" not in told.memory and 0 <= told.revision < _MOST_REVISIONS
    return msgspec.structs.replace(told, at=at) if counts and known else None


def reason(log: TurnLog, memory_id: str, at: Timestamp) -> str:
    """Why a person thought so of the memory at that time, as the files that are named after it tell."""
    for path in sorted(log.root.glob(f"*/*/{safe_name(memory_id)}.jsonl")):
        for line in (log.read(path.relative_to(log.root).as_posix()) or b"").splitlines():
            told = verdict(line)
            if told and (told.memory, told.at) == (memory_id, at):
                return told.text
    return ""


class _Judged(msgspec.Struct):
    """What a turn's user said about an earlier answer."""

    area: Literal["feedback"]
    turn_id: Annotated[str, msgspec.Meta(min_length=1)]
    reaction: Opinion
    confidence: Annotated[float, msgspec.Meta(ge=0.0, le=1.0)]
    text: str = ""


def _judged(entry: dict[str, Any], at: Timestamp) -> Feedback | None:
    try:
        told = msgspec.convert(entry, _Judged)
    except msgspec.ValidationError:
        return None
    return Feedback(told.turn_id, told.reaction, told.text, told.confidence, Origin.MACHINE, at)


def excerpt(text: str) -> str:
    flat = " ".join(plain(text).split())
    return flat if len(flat) <= _EXCERPT else flat[:_EXCERPT].rsplit(" ", 1)[0] + "…"


def _reaction(told: Reaction, hosted_uri: str, keep: timedelta) -> list[Artifact]:
    if not told.turn or not told.conversation:
        return []
    said = Feedback(
        told.turn,
        Opinion(told.reaction),
        told.text,
        told.confidence,
        Origin(told.origin),
        parse_timestamp(told.at),
    )
    if not said.counts:
        return []
    ref = "user"
    if said.origin is Origin.MACHINE:
        told_once = "\x1f".join((said.reaction, said.text, str(said.confidence)))  # the same again is one reaction
        ref = "machine:" + hashlib.sha256(told_once.encode("utf-8", "replace")).hexdigest()[:16]
    return [_reaction_row((told.project, told.user, told.conversation), said, ref, keep)]


def _reaction_row(place: tuple[str, str, str], said: Feedback, ref: str, keep: timedelta) -> Artifact:
    tags = (REACTION, f"origin:{said.origin}")
    end = (said.at, expiry(said.at, keep))
    return _artifact(place, REACTION, said.turn_id, ref, said.serialized(), "", *end, tags)


def _artifact(
    place: tuple[str, str, str],
    kind: str,
    turn: str,
    ref: str,
    text: str,
    hosted: str,
    at: str,
    expires: str,
    tags: tuple[str, ...] = (),
) -> Artifact:
    return Artifact(*place, kind, turn, ref, session(*place), at, text, hosted, expires, tags)


def expiry(at: Timestamp, keep: timedelta) -> Timestamp:
    try:
        return timestamp(moment(at) + keep)
    except OverflowError:
        return Timestamp("9999-12-31T23:59:59.999Z")


def keep_for(settings: Settings) -> timedelta:
    return timedelta(days=settings.config.turn_ttl_days)


def rebuild(ground: Ground, *, full: bool = False) -> int:
    """Rows of every log and bucket file that changed since its rows were made; how many are new or other than they
    were. What was erased, or is past its time, does not come back; use was counted when it happened."""
    database, settings, owner = ground.database, ground.settings, ground.owner
    log = TurnLog(settings.turns)
    now = timestamp(ground.clock())
    with database.read() as tx:
        known = {} if full else rows.signatures(tx, owner)
    made = 0
    for path, signature in _files(settings.turns):
        if known.get(path) == signature:
            continue
        with nullcontext() if path.endswith(".jsonl") else log.alone():  # a bucket is erased before this, or after it
            found, told = _told(settings, path, log.read(path) or b"")
            for start in range(0, max(len(found), 1), _BATCH):
                batch = [each for each in found[start : start + _BATCH] if each.expires_at > now]
                with database.write() as tx:
                    left = _unerased(tx, owner, batch)
                    made += rows.save(tx, owner, [each for each in left if each.kind not in (REACTION, BUCKET)])
                    newer = [each for each in left if each.kind in (REACTION, BUCKET)]
                    made += rows.save(tx, owner, newer, replacing=True)
                    if start + _BATCH >= len(found):
                        for one in told:
                            at = Timestamp(one.at)
                            made += feedback.react(tx, owner, one.memory, one.revision, one.reaction, at)
                        rows.save_signatures(tx, owner, {path: signature})
    return made


def _told(settings: Settings, path: str, data: bytes) -> tuple[list[Artifact], list[Reaction]]:
    """The rows of a file, and the newest verdict on each memory."""
    hosted, keep = hosted_uri(settings, path), keep_for(settings)
    if not path.endswith(".jsonl"):
        bucket = buckets.parsed(data)
        return [bucket.artifact(hosted, expiry(Timestamp(bucket.updated_at), keep))] if bucket else [], []
    lines = data[: data.rfind(b"\n") + 1].splitlines(keepends=True)
    told = sorted(filter(None, map(verdict, lines)), key=lambda each: each.at)
    return [each for line in lines for each in artifacts(line, hosted, keep)], [
        *{one.memory: one for one in told}.values()
    ]


def hosted_uri(settings: Settings, path: str) -> str:
    return (settings.turns / path).relative_to(settings.home).as_posix()


def _unerased(tx: Transaction, owner: Owner, found: list[Artifact]) -> list[Artifact]:
    """Without what tells of erased turns, or was told by one. Turns keep their ids, so texts need no look."""
    if not tombstones.exist(tx, owner):
        return found
    told = [(each, _hashes(each)) for each in found]
    gone = tombstones.erased(tx, owner, [one for _, hashes in told for one in hashes])
    return [each for each, hashes in told if not gone.intersection(hashes)]


def _hashes(each: Artifact) -> list[str]:
    turns = [each.turn_id, *([each.ref.removeprefix(_SAID_IN)] if each.ref.startswith(_SAID_IN) else [])]
    return [entry_hash(note.SOURCE, entry_id(each.session_id, turn, role)) for turn in turns for role in Role]


def _files(root: Path) -> Iterator[tuple[str, str]]:
    """Logs and buckets below the root, with the signature of each; links are somebody else's."""
    found = [*root.glob("*/*/*.jsonl"), *root.glob(f"*/*/{buckets.FOLDER}/*.json")]
    for path in sorted(found):
        try:
            status = path.lstat()
        except FileNotFoundError:  # erased since
            continue
        if stat.S_ISREG(status.st_mode):
            key = path.relative_to(root).as_posix()
            yield key, f"{status.st_size}:{status.st_mtime_ns}:{status.st_ino}"
