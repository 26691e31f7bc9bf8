"""What a model is to recollect: a schema in, a validated value or a typed failure out.

Every call has one deadline that covers all of it, retries included. A failure carries the tokens that it cost: they
are accounted for like those of an answer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from recollect.errors import RecollectError

if TYPE_CHECKING:
    from pydantic import BaseModel

    Schema = TypeVar("Schema", bound=BaseModel)

Value = TypeVar("Value")

_LONGEST_MESSAGE = 300
_USER = re.compile(r"(?<=://).*(?=@)")
# how servers and programs say that the input does not fit
SAYS_TOO_LONG = re.compile(
    r"context.?(?:length|size|window)|maximum (?:context|prompt length|number of (?:input )?tokens)|"
    r"too (?:long|many tokens)|(?:request|prompt|input) (?:is )?too large|reduce the length",
    re.IGNORECASE,
)
_SECRET = re.compile(r"([?&]\w*(?:passw|key|token|secret)\w*=)[^&#]+", re.IGNORECASE)


def shown_url(url: str) -> str:
    """A URL as it may be shown: without its user, its password and the keys of its query."""
    return _SECRET.sub(r"\1[redacted]", _USER.sub("[redacted]", url))


def shown_message(message: str, key: str = "") -> str:
    """What went wrong, as it may be shown: on one line, not long, and without a secret."""
    from recollect.redact import redact

    message = message.replace(key, "[redacted:key]") if key else message
    return " ".join(redact(message).split())[:_LONGEST_MESSAGE]


@dataclass(frozen=True, slots=True)
class Usage:
    """What a call cost."""

    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float = 0.0  # in US dollars, as far as prices are known

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.requests + other.requests,
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cost + other.cost,
        )


@dataclass(frozen=True, slots=True)
class Answer(Generic[Value]):
    value: Value
    usage: Usage


class Failure(StrEnum):
    """Why there is no answer."""

    TIMEOUT = "timeout"  # the deadline passed
    RATE_LIMITED = "rate_limited"
    PLAN_LIMIT = "plan_limit"  # of a subscription: nobody is asked again before it resets
    UNAVAILABLE = "unavailable"  # no connection, or the server failed
    REJECTED = "rejected"  # credentials, model name, request: trying again will not help
    INVALID = "invalid"  # it answered, but not what was asked for
    TOO_LONG = "too_long"  # the input does not fit
    CUT_OFF = "cut_off"  # the answer does not: it would end at the same place again, and cost as much
    EXHAUSTED = "exhausted"  # a cap on requests or tokens was reached


class ModelFailed(RecollectError):
    """A model gave no answer."""

    def __init__(
        self,
        failure: Failure,
        message: str,
        *,
        usage: Usage = Usage(),  # noqa: B008 - frozen
        retry_after: float | None = None,
        hint: str = "",
    ) -> None:
        super().__init__(message, hint=hint)
        self.failure = failure
        self.usage = usage
        self.retry_after = retry_after  # seconds, when the server said so

    @property
    def permanent(self) -> bool:
        return self.failure in (Failure.REJECTED, Failure.CUT_OFF)


Tool = Callable[..., str]
"""Something an agent may do. Parameters and their meaning are read off the function's signature and docstring.

It returns text for the model. What it must not do it refuses by raising ToolRefused: the model is told.
"""


class ToolRefused(Exception):
    """The call is not allowed, or cannot work; the message says why."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Caps on one agent run."""

    seconds: float
    requests: int = 50
    tokens: int = 400_000


class LanguageModel(Protocol):
    name: str  # as configured, "openai:gpt-5-mini"
    paid: bool  # somebody is billed for it: ask before a large backlog
    has_tools: bool  # `work` is possible

    def price(self, input_tokens: int, output_tokens: int) -> float:
        """US dollars, as far as prices are known."""
        ...

    def answer(self, instructions: str, content: str, schema: type[Schema], *, seconds: float) -> Answer[Schema]:
        """One structured answer about `content`, which is data and never instructions. ModelFailed otherwise."""
        ...

    def work(self, instructions: str, content: str, tools: Sequence[Tool], limits: Limits) -> Answer[str]:
        """Lets the model use the tools until it is done; the value is its last word. ModelFailed otherwise."""
        ...
