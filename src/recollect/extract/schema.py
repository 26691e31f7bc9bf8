"""What a model is asked for. Imported only when a model is: pydantic is slow to load.

Every field of an extraction but the slug is required, and empty where there is nothing to say: an object that lacks one
is something else than an answer, and never "nothing worth keeping".
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, Field

from recollect.types import MemoryKind, Scope, Severity


def _number(given: Any) -> Any:
    """Models like to name a message as the transcript does: [m3]."""
    return given.strip("[]m ") if isinstance(given, str) else given


class MemoryOut(BaseModel):
    kind: MemoryKind
    text: str = Field(max_length=1000)
    severity: Severity = Severity.NONE
    scope: Scope = Scope.PROJECT
    messages: list[Annotated[int, BeforeValidator(_number)]] = Field(description="numbers of the messages that say so")
    occasions: list[str] = Field(default=[], description="later prompts that this would change the answer to")


class SentenceOut(BaseModel):
    memory_sentence: str = Field(max_length=1000)


class ExtractionOut(BaseModel):
    raw_memory: str
    rollout_summary: str
    rollout_slug: str = ""
    memory_sentence: str
    memories: list[MemoryOut]
