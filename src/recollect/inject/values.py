"""What injection is told and what it gives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Any

from recollect.config import value_of
from recollect.errors import UsageError
from recollect.store.injections import Injected
from recollect.types import BINDING, MemoryKind, Severity


class Sort(StrEnum):
    """The order of what is given without being asked for."""

    RECENCY = "recency"
    IMPORTANCE = "importance"


class Section(StrEnum):
    """Where in a block a line stands."""

    PINNED = "pinned"  # given without being asked for
    RELEVANT = "relevant"  # has to do with the prompt
    OUTCOME = "outcome"  # what an earlier session came to, which the prompt asks for
    RULE = "rule"  # at the start of a session: what binds, is pinned, or a person noted as a rule
    NOTE = "note"  # at its start: everything else that is known
    SESSION = "session"  # at its start: what an earlier session came to


@dataclass(frozen=True, slots=True)
class InjectorConfig:
    """Every field is the configuration key `memory_injection_<field>`, with the same default."""

    max_injected_blocks_in_history: int = 3  # 0: none is left when the turn is over
    context_window_depth: int = 10  # turns for which a memory that is visible is not given again
    max_total: int = 10  # memories in a block
    contextual_min_score: float = 0.0  # what is relevant; 0: the calibrated floor
    ambient_enabled: bool = True  # pinned memories and kinds
    semantic_threshold: float = 0.8  # share of words in common from which two lines of a block say the same
    max_tokens_per_block: int = 1_500
    max_tokens_total: int = 4_000  # of all blocks in the history
    enrich: bool = True  # the last exchanges count when a prompt says "that"
    pinned_kinds: tuple[MemoryKind, ...] = ()  # kinds that are given whatever the prompt is
    per_kind_limit: int = 5  # of each of them
    ambient_sort: Sort = Sort.IMPORTANCE


PREFIX = "memory_injection_"  # of the configuration's keys


def configured(config: object, overrides: Mapping[str, Any]) -> InjectorConfig:
    """From the configuration, or from another `InjectorConfig`, with some fields changed."""
    names = [each.name for each in fields(InjectorConfig)]
    if unknown := sorted(set(overrides) - set(names)):
        raise UsageError(f"no setting `{unknown[0]}`", hint=f"There are: {', '.join(names)}.")
    prefix = "" if isinstance(config, InjectorConfig) else PREFIX
    values = {name: getattr(config, prefix + name) for name in names} | dict(overrides)
    made = {name: value_of(PREFIX + name, value, f"`{name}`") for name, value in values.items()}
    kinds, sort = map(MemoryKind, made["pinned_kinds"]), Sort(made["ambient_sort"])
    return InjectorConfig(**made | {"pinned_kinds": tuple(kinds), "ambient_sort": sort})


@dataclass(frozen=True, slots=True)
class Exchange:
    """A prompt and its answer, without injected blocks."""

    user: str
    assistant: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a session came to."""

    session_key: str
    at: str  # when it ended
    done: str
    left: str


ALL, PART = 0, -1  # in place of a revision: all that a session came to, or a part of it


@dataclass(frozen=True, slots=True)
class Line:
    """A memory, or what a session came to, as it stands in a block."""

    id: str  # of the memory; of what a session came to, its key
    revision: int  # of what a session came to, ALL or PART
    kind: MemoryKind | None  # None: what a session came to
    severity: Severity
    text: str  # as it is shown: on one line, inert, perhaps shortened
    date: str  # the day it was said
    section: Section
    score: float  # of what is relevant, else 0
    reason: str  # why it is there, in a sentence
    tokens: int
    by_agent: bool = False  # only agents noted it
    ref: str = ""  # a short reference, where the block has those; empty: the id
    # Of a line that is not in a block yet, and whole; shown to nobody:
    replaces: bool = field(default=False, repr=False)  # a line that was shown, and would else be gone without a word
    place: int = field(
        default=0, repr=False
    )  # in the block that this turn was given already, from 1; 0: it was not in it
    length: int = field(default=0, repr=False)  # tokens that its text may have there

    @property
    def firm(self) -> bool:
        return self.replaces or self.place > 0 or self.severity in BINDING


def injected(lines: Sequence[Line]) -> list[Injected]:
    """As it is kept that a session has them; numbers are set when they are saved."""
    return [
        Injected(0, 0, "", True, each.id, each.revision, each.section, each.score, each.reason, each.tokens)
        for each in lines
    ]


@dataclass(frozen=True, slots=True)
class Held:
    """A memory that was considered and not given."""

    id: str
    revision: int
    reason: str  # in a sentence


@dataclass(frozen=True, slots=True)
class Given:
    """What is injected, and what is not."""

    text: str = ""  # the whole block; empty: nothing
    tokens: int = 0
    lines: tuple[Line, ...] = ()
    held: tuple[Held, ...] = ()


@dataclass(frozen=True, slots=True)
class Prepared:
    """A turn that may be sent."""

    history: list[Any]  # to send: with the prompt, and the block before it
    block: Any  # the message that was put in; None: nothing
    given: Given
    repairs: tuple[str, ...] = ()  # what was wrong with the blocks of the history, in sentences
