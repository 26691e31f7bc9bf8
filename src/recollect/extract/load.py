"""A conversation's entries as a transcript, and the memories that are near it. Read only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Sequence
from dataclasses import dataclass, replace
from math import fsum

from recollect.artifacts.sets import after
from recollect.extract.resolve import retire
from recollect.extract.rules import rules_of
from recollect.extract.values import Transcript
from recollect.note import hand_of
from recollect.store import entries, feedback, memories, stage1
from recollect.store.database import Database
from recollect.store.entries import FileKey
from recollect.store.ground import Ground
from recollect.text import content_words
from recollect.types import Conversation, Hand, Message, Owner, Remembered, Role, Scope, Timestamp


def load(database: Database, owner: Owner, group: Sequence[Conversation]) -> Transcript:
    """Up to the last message it had when it was listed. A group is one conversation, from each file that holds it."""
    messages: dict[str, Message] = {}
    with database.read() as tx:
        for each in group:
            key = FileKey(owner, each.source, each.source_file)
            rows = entries.of_conversation(tx, key, each.session_id, each.first_message_at, each.last_message_at)
            messages |= {row[0]: _message(each, *row) for row in rows}
    newest = max(group, key=lambda each: each.last_message_at)
    return Transcript(newest, sorted(messages.values(), key=lambda message: message.timestamp))


def _message(
    talk: Conversation, uuid: str, role: str, text: str, at: str, tools: str, authors: str, events: str, *place: str
) -> Message:
    """Its place (folder, project, branch) only where it is not the conversation's."""
    usual = (talk.project, talk.project_id, talk.branch)
    cwd, project_id, branch = (None if own == known else own for own, known in zip(place, usual, strict=True))
    told = entries.events_of(events)
    return Message(uuid, Role(role), text, at, tools, cwd, project_id, branch, authors, told)


def with_known(ground: Ground, transcript: Transcript) -> Transcript:
    """With what others said that is near it, and what the project's files say: nothing of it is worth a second line.
    What it stated itself is not known yet: it goes where it is not stated again. Not redacted: the prompt is."""
    talk = transcript.conversation
    scopes = [(Scope.USER, ""), (Scope.PROJECT, talk.project_id)]
    with ground.database.read() as tx:
        hidden = ground.unlisted(tx).memories
        found = memories.in_scopes(tx, ground.owner, scopes, talk.user)
    others = [each for each in found if any(key != talk.session_key for key, _ in each.sources)]
    held = memories.current(others)
    near = nearest([each for each in held if each.id not in hidden], transcript.messages)
    return replace(transcript, known=near, rules=rules_of(talk.project))


@dataclass(frozen=True, slots=True)
class Before:
    """What a conversation states up to now."""

    stated: list[Remembered]
    valued: set[str]  # ids of what of it an agent cited, or a person called right, pinned or corrected
    shared: set[str]  # of what others state, too
    retired: dict[str, Timestamp]  # when
    strategy: str  # by which it was read; empty: nothing is known of that

    def held_again(self, stated: Sequence[Remembered], now: Timestamp) -> list[Remembered]:
        """These statements; what was retired of them is first seen after that, so that it holds."""
        return [
            replace(each, created_at=max(now, after(self.retired[each.id]))) if each.id in self.retired else each
            for each in stated
        ]

    def gone(self, stated: Sequence[Remembered], strategy: str, said: Container[str]) -> list[Remembered]:
        """What another strategy kept of these messages and this one does not, as nobody else states it."""
        if self.strategy in ("", strategy):
            return []
        left = retire(self.stated, stated, self.valued | self.retired.keys() | self.shared)
        return [each for each in left if any(uuid in said or not uuid for _, uuid in each.sources)]


def stated_before(ground: Ground, session_key: str, *, is_undone: bool = False) -> Before:
    """What a conversation states. That an agent cited it saves nothing from being undone."""
    with ground.database.read() as tx:
        held = memories.of_session(tx, ground.owner, session_key)
        ids = sorted({each.id for each in held})
        used = memories.uses_of(tx, ground.owner, ids)
        thought = feedback.of_memories(tx, ground.owner, ids)
        retired = feedback.retired(tx, ground.owner, ids)
        row = stage1.load(tx, ground.owner, session_key)
        sources = [(each.id, key) for each in memories.find(tx, ground.owner, ids) for key, _ in each.sources]
    others = [(name, key) for name, key in sources if key != session_key]
    noted = {name for name, key in others if hand_of(key.rpartition("@")[0]) is not Hand.PIPELINE}
    right = {name for name, each in thought.items() if each.user_reaction == "ok"}
    valued = right | noted | (set() if is_undone else {*used})
    return Before(
        held,
        valued,
        {name for name, _ in others},
        {name: each.at for name, each in retired.items()},
        row.strategy if row else "",
    )


_NEAR = 12  # memories that a reader of a conversation is shown


def nearest(held: Sequence[Remembered], messages: Sequence[Message]) -> tuple[Remembered, ...]:
    """The memories that share most words with a conversation, those that many share counting least. Pure."""
    said = {word for each in messages for word in content_words(each.text[:20_000])}
    spread = Counter(word for each in held for word in content_words(each.text))

    def weight(each: Remembered) -> float:
        own = content_words(each.text)
        return fsum(1 / spread[word] for word in own & said) / (1 + fsum(1 / spread[word] for word in own))

    found = sorted(((weight(each), each.valid_from, each.id, each) for each in held), reverse=True)
    return tuple(each for score, *_, each in found[:_NEAR] if score > 0)
