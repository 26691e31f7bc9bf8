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
WITHOUT_MODEL = "offline"  # how the names of strategies begin that ask no model


def nothing(strategy: str) -> str:
    """Why nothing was kept of a conversation: what this strategy says of it."""
    return f"{NOTHING} ({strategy})" if strategy else NOTHING


@dataclass(frozen=True, slots=True)
class Transcript:
    """A conversation up to the claimed watermark."""

    conversation: Conversation
    messages: Sequence[Message]

    @property
    def snapshot(self) -> str:
        """Changes when any message does, and with nothing else. The same for what was read back from an artifact."""
        hashed = hashlib.sha256()
        for message in self.messages:
            for field in (message.uuid, message.role, message.timestamp, plain(message.text)):
                hashed.update(field.encode("utf-8", "surrogatepass") + b"\x1f")
        return hashed.hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class Extraction:
    """What one conversation is worth remembering. No raw memory and no statements: nothing."""

    raw_memory: str = ""
    rollout_summary: str = ""
    rollout_slug: str = ""
    memory_sentence: str = ""
    statements: tuple[Statement, ...] = ()
    parts: int = 1
    ungrounded: int = 0  # statements that were dropped: the messages they name do not say so

    @property
    def is_empty(self) -> bool:
        return not (self.raw_memory or self.statements)


@dataclass(frozen=True, slots=True)
class Written:
    """The rows that follow from a conversation's canonical files."""

    stage1: Stage1 | None  # None: nothing was worth keeping
    stated: tuple[Remembered, ...]
    files: tuple[Indexed, ...]


class Strategy(Protocol):
    """A way to process a conversation."""

    id: str  # with everything that changes its answers: prompt version, model

    def should_process(self, transcript: Transcript) -> bool:
        """False: there is nothing in it for this strategy."""
        ...

    def process(self, transcript: Transcript, paid: Paid) -> Extraction:
        """ModelFailed or CapReached when there is no answer; an empty extraction when nothing is worth keeping."""
        ...
