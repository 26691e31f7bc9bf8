"""Phase 1 of chats: what fingerprints say becomes memories as it is, and is not looked for a second time.

Fingerprints are read from the turn log that the conversation came from, else from the rows made of it. Turns without
one go the usual way.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePath

import msgspec

from recollect.extract.offline.strategy import told
from recollect.extract.values import Extraction, Strategy, Transcript
from recollect.ingest.sources.recollect import Turn, session, turn_of
from recollect.models.paid import Paid
from recollect.note import is_chat
from recollect.store import files, memories
from recollect.store import turns as rows
from recollect.store.database import Database, Transaction
from recollect.turns.rows import fingerprint_of
from recollect.turns.values import (
    FINGERPRINT,
    Fingerprint,
    Item,
    Kind,
    TurnMemory,
    is_sentence,
    normalise_key,
    settled,
    shown,
)
from recollect.types import (
    Conversation,
    MemoryKind,
    Message,
    Owner,
    Remembered,
    Role,
    Scope,
    Severity,
    Statement,
    Timestamp,
)

_VERSION = "turns-v1"


class ChatItems:
    """`rest` takes the turns that have no fingerprint."""

    def __init__(self, database: Database, owner: Owner, rest: Strategy) -> None:
        self._database = database
        self._owner = owner
        self._rest = rest
        self.id = f"{_VERSION}+{rest.id}"
        self.asks_model = rest.asks_model

    def should_process(self, transcript: Transcript) -> bool:
        return bool(transcript.messages)

    def process(self, transcript: Transcript, paid: Paid) -> Extraction:
        known = self._fingerprints(transcript.conversation)
        bare = self._bare(transcript, known)
        other = Extraction()
        if self._rest.should_process(bare):
            other = self._rest.process(bare, paid)
        if len(bare.messages) == len(transcript.messages):
            return other
        found = [*self._statements(transcript, known), *other.statements]
        if not found:
            return other
        whole = told(transcript.messages, PurePath(transcript.conversation.project_id).name)
        lines = "\n".join(f"- {each.text}" for each in found)
        return replace(
            whole,
            raw_memory="\n\n".join(filter(None, (lines, whole.raw_memory, other.raw_memory))),
            rollout_summary=whole.rollout_summary or other.rollout_summary,
            statements=tuple(found),
            parts=other.parts,
            ungrounded=other.ungrounded,
        )

    def asks(self, transcript: Transcript) -> Transcript:
        """What of it is not known by fingerprints."""
        return self._bare(transcript, self._fingerprints(transcript.conversation))

    def _bare(self, transcript: Transcript, known: Mapping[str, Fingerprint]) -> Transcript:
        left = [each for each in transcript.messages if _turn(transcript.conversation, each) not in known]
        return replace(transcript, messages=left)

    def _fingerprints(self, talk: Conversation) -> dict[str, Fingerprint]:
        """Turn → fingerprint, as its first line has it; without those that nobody filled in."""
        with self._database.read() as tx:
            state = files.load(tx, self._owner, talk.source, talk.source_file)
            stored = rows.of_session(tx, self._owner, talk.session_id, FINGERPRINT)
        found = {each.turn_id: Fingerprint.of(msgspec.json.decode(each.text)) for each in stored}
        path = Path(state.root) / state.file_path if state else None
        logged: dict[str, Fingerprint] = {}
        for line in path.read_bytes().splitlines() if path is not None and path.is_file() else ():
            line_of = fingerprint_of(line)
            if line_of is not None and line_of[1] is not None and _session(line_of[0]) == talk.session_id:
                logged.setdefault(line_of[0].id, line_of[1])
        every = found | logged
        return {turn: each for turn, each in every.items() if each.objective or each.topics or each.items}

    def _statements(self, transcript: Transcript, known: Mapping[str, Fingerprint]) -> list[Statement]:
        talk = transcript.conversation
        said: dict[str, list[Message]] = {}
        for message in transcript.messages:
            said.setdefault(_turn(talk, message), []).append(message)
        turns = [
            TurnMemory(turn, Timestamp(messages[0].timestamp), known[turn])
            for turn, messages in said.items()
            if turn in known
        ]
        entries: dict[str, list[str]] = {}  # text of an item → who says so, whatever replaced it since
        for memory in turns:
            first = min(said[memory.turn_id], key=lambda each: each.role is not Role.USER)
            for text in dict.fromkeys(one.text for one in memory.fingerprint.items):
                entries.setdefault(text, []).append(first.uuid)
        with self._database.read() as tx:
            return [self._aimed(tx, talk, one, statement(one, entries[one.text])) for one in _standing(turns)]

    def _aimed(self, tx: Transaction, talk: Conversation, one: Item, each: Statement) -> Statement:
        """The same key with another value corrects what the user said about it in another conversation, or in this
        chat before it fell silent."""
        if each.scope is Scope.CONVERSATION:
            return each
        near = memories.in_scopes(tx, self._owner, [(each.scope, each.scope.id(talk.project_id, ""))], talk.user)
        if any(held.text == each.text and _is_stated(held, talk) for held in near):
            return each  # as it was before the conversation went on
        others = [held for held in near if any(key != talk.session_key for key, _ in held.sources)]
        about = [held for held in memories.current(others) if held.text != each.text and _is_about(held, one, each)]
        for held in about[:1]:
            newest = max(other.revision for other in others if other.id == held.id)
            return replace(each, target=held.id, revision=newest + 1)
        return each


def _standing(turns: Sequence[TurnMemory]) -> list[Item]:
    """What holds, in the order of the conversation: a passing wish replaces no lasting one, nor repeats it."""
    found: list[Item] = []
    for passing in (False, True):

        def keep(one: Item, passing: bool = passing) -> bool:
            return (one.scope is Scope.CONVERSATION) is passing

        parts = [replace(each, fingerprint=each.fingerprint.with_items(keep)) for each in turns]
        said = {one.text for one in found}
        every = [one for memory in reversed(settled(parts)) for one in memory.fingerprint.items]
        found += [one for one in every if one.text not in said]
    return found


def _is_stated(held: Remembered, talk: Conversation) -> bool:
    return any(key == talk.session_key for key, _ in held.sources)


def _is_about(held: Remembered, one: Item, each: Statement) -> bool:
    """Does the memory name the item's key, for the same places and on the same side? A sentence names none."""
    ends = (sign.span() for sign in re.finditer(": ", held.text))
    key = normalise_key(one.key)
    rest = next((held.text[end:] for start, end in ends if normalise_key(held.text[:start]) == key), "")
    value, new = rest.removesuffix(one.places), shown(one.value)
    if not rest or is_sentence(new) or is_sentence(value):
        return False
    placed = value != rest if one.places else _is_placed(new) or not _is_placed(rest)
    return placed and _side(held.kind, held.severity) == _side(each.kind, each.severity)


def _is_placed(value: str) -> bool:
    """Does it end like one that holds somewhere?"""
    return " (for " in value and value.endswith(")")


def _side(kind: MemoryKind, severity: Severity) -> str:
    """For something, against it, or neither."""
    if kind is MemoryKind.FACT:
        return "neither"
    return "against" if severity in (Severity.AVOID, Severity.DO_NOT) else "for"


def statement(one: Item, entries: Sequence[str]) -> Statement:
    """An item as a memory before it has an identity."""
    severity = Severity.NONE if one.kind is Kind.FACT else Severity(one.severity)
    kind = MemoryKind.CONSTRAINT if one.is_binding else MemoryKind.PREFERENCE
    kind = MemoryKind.FACT if one.kind is Kind.FACT else kind
    return Statement(kind, one.text, severity, one.scope, tuple(entries), exact=True)


def next_of(waiting: list[list[Conversation]], most: int) -> list[list[Conversation]]:
    """Takes the first ones, no two chats of one user among them: the later one may correct what the earlier one said,
    which has to be stored by then."""
    found: list[list[Conversation]] = []
    users: set[PurePath] = set()
    while waiting and len(found) < most:
        user = PurePath(waiting[0][0].source_file).parent
        if is_chat(waiting[0][0]):
            if user in users:
                break
            users.add(user)
        found.append(waiting.pop(0))
    return found


def _turn(talk: Conversation, message: Message) -> str:
    return turn_of(message.uuid, talk.session_id, message.role)


def _session(turn: Turn) -> str:
    return session(turn.project, turn.user, turn.conversation)
