"""Asks a model at most once per question: the answer is stored, with its price, before anything is done with it.

The daily cap is checked before every call. What a failed call cost is charged too.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, TypeVar

from recollect.errors import RecollectError
from recollect.models.base import Failure, LanguageModel, ModelFailed, Usage
from recollect.redact import redact
from recollect.store import answers
from recollect.store.answers import Spent
from recollect.store.database import Database
from recollect.types import Clock, Owner, timestamp

if TYPE_CHECKING:
    from pydantic import BaseModel

    Schema = TypeVar("Schema", bound=BaseModel)


class CapReached(RecollectError):
    """The tokens of the day are used up."""

    def __init__(self, message: str, until: datetime) -> None:
        super().__init__(message, hint="Raise max_tokens_per_day, or wait until midnight (UTC).")
        self.until = until


@dataclass(slots=True)
class Paid:
    """The account of one job."""

    database: Database
    owner: Owner
    clock: Clock
    kind: str
    key: str
    most_per_day: int  # tokens; 0: no cap
    usage: Usage = field(default_factory=Usage)  # of this run

    def answer(
        self, model: LanguageModel, instructions: str, content: str, schema: type[Schema], *, seconds: float
    ) -> Schema:
        """The stored answer to exactly this question, else the model's."""
        question = digest(model.name, instructions, schema.__name__, content)
        with self.database.read() as tx:
            stored = answers.load(tx, self.owner, self.kind, self.key, question)
        if stored is not None:
            return schema.model_validate_json(stored.answer)
        self.check_cap()
        try:
            given = model.answer(instructions, content, schema, seconds=seconds)
        except ModelFailed as failed:
            self.charge(model.name, failed.usage)
            raise
        text = redact(given.value.model_dump_json()).replace("\\u0000", "")
        try:
            value = schema.model_validate_json(text)
        except ValueError as error:  # redaction cut into the JSON
            self.charge(model.name, given.usage)
            raise ModelFailed(Failure.INVALID, "the answer held secrets and could not be cleaned") from error
        self.charge(model.name, given.usage, question, text)
        return value

    def check_cap(self) -> None:
        now = self.clock()
        with self.database.read() as tx:
            used = answers.tokens_on(tx, self.owner, now.date().isoformat())
        if self.most_per_day and used >= self.most_per_day:
            midnight = (now + timedelta(days=1)).replace(hour=0, minute=0, second=0, microsecond=0)
            raise CapReached(f"{used:,} of {self.most_per_day:,} tokens were used today (max_tokens_per_day)", midnight)

    def charge(self, model: str, usage: Usage, question: str = "", answer: str = "") -> None:
        """Books what a call cost, together with its answer if there is one."""
        self.usage = self.usage + usage
        now = self.clock()
        spent = Spent(
            day=now.date().isoformat(),
            model=model,
            requests=usage.requests,
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            cost_micros=round(usage.cost * 1_000_000),
        )
        with self.database.write() as tx:
            if question:
                answers.save(tx, self.owner, self.kind, self.key, question, answer, timestamp(now))
            if usage.requests:
                answers.charge(tx, self.owner, self.kind, self.key, spent)


def digest(*parts: str) -> str:
    """Names a question by everything that was asked."""
    return hashlib.sha256("\x1f".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:40]
