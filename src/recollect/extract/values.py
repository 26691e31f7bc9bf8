"""What flows through phase 1: a transcript in, an extraction out; and what a strategy is."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from recollect.models.paid import Paid
from recollect.store.artifacts import Indexed
from recollect.text import plain
from recollect.types import Conversation, Message, Remembered, Stage1, Statement

NOTHING = "nothing worth keeping"


def nothing(strategy: str) -> str:
    """Why nothing was kept of a conversation: what this strategy says of it."""
    return f"{NOTHING} ({strategy})" if strategy else NOTHING


@dataclass(frozen=True, slots=True)
class Transcript:
    """A conversation up to the claimed watermark."""

    conversation: Conversation
    messages: Sequence[Message]
    known: tuple[Remembered, ...] = ()  # memories that are near it
    rules: str = ""  # what the project's own files tell every agent

    @property
    def snapshot(self) -> str:
        """Changes when any message does, and with nothing else. The same for what was read back from an artifact."""
        hashed = hashlib.sha256()
        for message in self.messages:
            for field in (message.uuid, message.role, message.timestamp, plain(message.text)):
                hashed.update(field.encode("utf-8", "surrogatepass") + b"\x1f")
        return hashed.hexdigest()[:32]


_LEFT = "\n\nLeft: "


def outcome(done: str, left: str) -> str:
    """What a session leaves behind, as its summary tells it: what was done and, at the end, what was left."""
    done, left = done.strip(), left.strip()
    return done + (f"{_LEFT if done else _LEFT.lstrip()}{left}" if left else "")


def left_of(summary: str) -> tuple[str, str]:
    """What was done, and what was left, as a summary tells them."""
    done, told, left = f"\n\n{summary}".rpartition(_LEFT)
    return (done.strip(), left.strip()) if told else (summary.strip(), "")


@dataclass(frozen=True, slots=True)
class Extraction:
    """What one conversation is worth remembering. Nothing was done and nothing stated: nothing."""

    raw_memory: str = ""
    rollout_summary: str = ""
    rollout_slug: str = ""
    memory_sentence: str = ""
    statements: tuple[Statement, ...] = ()
    parts: int = 1
    ungrounded: int = 0  # statements that were dropped: the messages they name do not say so

    @property
    def is_empty(self) -> bool:
        return not (self.raw_memory or self.rollout_summary or self.statements)


@dataclass(frozen=True, slots=True)
class Backlog:
    """What a run would take up."""

    conversations: int
    input_tokens: int  # estimated
    output_tokens: int

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens


@dataclass(frozen=True, slots=True)
class Written:
    """The rows that follow from a conversation's canonical files."""

    stage1: Stage1 | None  # None: nothing was worth keeping
    stated: tuple[Remembered, ...]
    files: tuple[Indexed, ...]


class Strategy(Protocol):
    """A way to process a conversation."""

    id: str  # with everything that changes its answers: prompt version, model
    asks_model: bool  # and a model is shown the memories that are near, and the project's rules

    def should_process(self, transcript: Transcript) -> bool:
        """False: there is nothing in it for this strategy."""
        ...

    def process(self, transcript: Transcript, paid: Paid) -> Extraction:
        """ModelFailed or CapReached when there is no answer; an empty extraction when nothing is worth keeping."""
        ...
