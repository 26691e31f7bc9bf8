"""Asks a model at most once per question: the answer is stored, with its price, before anything is done with it.

The daily cap is checked before every call. What a failed call cost is charged too. What was paid for waits for a
database that another process holds or whose server is away, and is not stored once the job is somebody else's or its
subject was erased.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, TypeVar

from recollect.errors import LeaseLost, RecollectError, StoreBusy
from recollect.models.base import Failure, LanguageModel, ModelFailed, Usage
from recollect.redact import redact
from recollect.store import answers
from recollect.store.answers import Spent
from recollect.store.database import Database, Transaction
from recollect.store.ground import Ground
from recollect.text import in_texts
from recollect.types import timestamp

if TYPE_CHECKING:
    from pydantic import BaseModel

    Schema = TypeVar("Schema", bound=BaseModel)

Result = TypeVar("Result")

MOST_COUNTED = 10**9  # tokens or dollars of one call; more is no count
_PATIENCE = 300.0  # seconds that what was paid for waits for the database


class CapReached(RecollectError):
    """The tokens of the day are used up."""

    def __init__(self, message: str, until: datetime) -> None:
        super().__init__(message, hint="Raise max_tokens_per_day and run `recollect retry`, or wait.")
        self.until = until


@dataclass(slots=True)
class Paid:
    """The account of one job."""

    ground: Ground
    kind: str
    key: str
    usage: Usage = field(default_factory=Usage)  # of this run
    holds: Callable[[Transaction], bool] = lambda tx: True  # is the job still ours? Asked where an answer is stored

    def answer(
        self, model: LanguageModel, instructions: str, content: str, schema: type[Schema], *, seconds: float
    ) -> Schema:
        """The stored answer to exactly this question, else the model's."""
        question = digest(model.name, instructions, schema.__name__, content)
        with self.ground.database.read() as tx:
            stored = answers.load(tx, self.ground.owner, self.kind, self.key, question)
        if stored is not None:
            return schema.model_validate_json(stored.answer)
        self.check_cap()
        try:
            given = model.answer(instructions, content, schema, seconds=seconds)
        except ModelFailed as failed:
            self.charge(model.name, failed.usage)
            raise
        try:
            value = schema.model_validate(in_texts(given.value.model_dump(mode="json"), _clean))
        except ValueError as error:  # what stands for a secret is longer than the text may be
            self.charge(model.name, given.usage)
            raise ModelFailed(Failure.INVALID, "the answer held secrets and could not be cleaned") from error
        self.charge(model.name, given.usage, question, value.model_dump_json())
        return value

    def check_cap(self) -> None:
        now = self.ground.clock()
        with self.ground.database.read() as tx:
            used = answers.tokens_on(tx, self.ground.owner, now.date().isoformat())
        most = self.ground.settings.config.max_tokens_per_day  # 0: no cap
        if most and used >= most:
            midnight = (now + timedelta(days=1)).replace(hour=0, minute=0, second=0, microsecond=0)
            raise CapReached(f"{used:,} of {most:,} tokens were used today (max_tokens_per_day)", midnight)

    def charge(self, model: str, usage: Usage, question: str = "", answer: str = "") -> None:
        """Books what a call cost, together with its answer if there is one. LeaseLost when the job is not ours any
        more: then the price alone is booked."""
        self.usage = self.usage + usage
        now = self.ground.clock()
        spent = Spent(
            day=now.date().isoformat(),
            model=model,
            requests=usage.requests,
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            cost_micros=round(usage.cost * 1_000_000),
        )

        def book(tx: Transaction) -> bool:
            ours = not question or self.holds(tx)  # jobs before the rest: no deadlock
            if question and ours:
                answers.save(tx, self.ground.owner, self.kind, self.key, question, answer, timestamp(now))
            if usage.requests:
                answers.charge(tx, self.ground.owner, self.kind, self.key, spent)
            return ours

        if not committed(self.ground.database, book):
            raise LeaseLost(f"{self.key} is not ours any more; its answer was not stored")


def committed(database: Database, act: Callable[[Transaction], Result]) -> Result:
    """One transaction that writes; StoreBusy only when the database cannot be used for minutes."""
    deadline = time.monotonic() + _PATIENCE
    while True:
        try:
            with database.write() as tx:
                return act(tx)
        except StoreBusy:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


def _clean(text: str) -> str:
    """No secret and no NUL."""
    return redact(text.replace("\0", ""))


def is_count(given: object) -> bool:
    """Can it be a number of tokens? Servers and programs send what they like."""
    return isinstance(given, int) and not isinstance(given, bool) and 0 <= given <= MOST_COUNTED


def digest(*parts: str) -> str:
    """Names a question by everything that was asked."""
    return hashlib.sha256("\x1f".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:40]
