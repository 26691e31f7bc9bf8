"""What flows through phase 1: a transcript in, an extraction out; and what a strategy is."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

from recollect.store.artifacts import Indexed
from recollect.store.database import Transaction
from recollect.text import plain
from recollect.types import Conversation, Message, Remembered, Stage1, Statement, Timestamp

if TYPE_CHECKING:
    from recollect.models.paid import Paid

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
            for part in (message.uuid, message.role, message.timestamp, plain(message.text)):
                hashed.update(part.encode("utf-8", "surrogatepass") + b"\x1f")
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
    answers: int = 0  # that a model gives

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens


@dataclass(frozen=True, slots=True)
class Written:
    """The rows that follow from a conversation's canonical files."""

    stage1: Stage1 | None  # None: nothing was worth keeping
    stated: tuple[Remembered, ...]
    files: tuple[Indexed, ...]


@dataclass(slots=True)
class Report:
    """The JSON of `recollect process`."""

    claimed: int = 0
    succeeded: int = 0
    succeeded_no_output: int = 0
    failed: int = 0
    given_up: int = 0  # not tried again before a person asks, whenever they failed
    paused: int = 0  # until a cap or a plan's limit lets go
    limited: str = ""  # what told that a plan's limit is reached: nothing more was asked
    skipped: int = 0  # busy, backing off or unchanged
    waiting: int = 0  # eligible, but more than a run takes up
    memories: int = 0  # statements found
    ungrounded: int = 0  # statements of a model that were dropped
    retired: list[tuple[str, str]] = field(default_factory=list)  # (id, text) of what is stated no more
    tokens: int = 0
    cost: float = 0.0
    problems: list[tuple[str, str]] = field(default_factory=list)  # (session key, reason)
    by_agent: int = 0  # of those that succeeded, how many the person's own agent read
    left_to_agent: int = 0  # conversations that it is still to read
    agent_waits: str = ""  # why it reads them later

    @property
    def stored(self) -> int:
        """Conversations whose rows were committed."""
        return self.succeeded + self.succeeded_no_output

    def add(self, other: Report) -> None:
        """What another run did."""
        for each in fields(self):
            mine, more = getattr(self, each.name), getattr(other, each.name)
            setattr(self, each.name, mine or more if isinstance(mine, str) else mine + more)


class Reading(StrEnum):
    """What a run is about."""

    USUAL = "usual"
    OFFERED = "offered"  # the person's agent reads what was read without it; what it cannot read stays as it was
    UNDOING = "undoing"  # what a model read is read without one, and nothing of the model's stays


class Artifacts(Protocol):
    """Where canonical files are written, between the stored answer and the rows made from it."""

    def write(
        self,
        transcript: Transcript,
        extraction: Extraction,
        stated: Sequence[Remembered],
        captured_at: Timestamp,
        strategy: str,
    ) -> Written:
        """OSError and ArtifactError when it could not be done; nothing is lost by trying again."""
        ...

    def due(self, tx: Transaction) -> None:
        """MEMORY.md has to be brought up to date with what the transaction stores, by whoever comes to it."""
        ...

    def project(self) -> None:
        """Brings MEMORY.md up to date. Holds nobody up when it cannot."""
        ...


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
