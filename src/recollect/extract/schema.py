"""What a model is asked for. Imported only when a model is: pydantic is slow to load.

Every field of an extraction but the slug is required, and empty where there is nothing to say: an object that lacks one
is something else than an answer, and never "nothing worth keeping".
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, Field

from recollect.types import MemoryKind, Scope, Severity


def _number(given: Any) -> Any:
    """Models like to name a message as the transcript does: [m3]; and none as nothing."""
    return (given.strip("[]m ") or 0) if isinstance(given, str) else given or 0


class EvidenceOut(BaseModel):
    message: Annotated[int, BeforeValidator(_number)]
    quote: str = Field(max_length=600, description="words in a row that stand in that message")


class Relation(StrEnum):
    """What a statement is to a memory that is there already."""

    NEW = "new"
    SAME = "same"
    REPLACES = "replaces"


class MemoryOut(BaseModel):
    kind: MemoryKind
    text: str = Field(max_length=1000)
    severity: Severity = Severity.NONE
    scope: Scope = Scope.PROJECT
    evidence: list[EvidenceOut]
    relation: Relation = Relation.NEW
    memory: Annotated[int, BeforeValidator(_number)] = Field(0, description="the number of that memory")
    occasions: list[str] = Field(default=[], description="later prompts that this would change the answer to")


class SentenceOut(BaseModel):
    memory_sentence: str = Field(max_length=1000)


class ExtractionOut(BaseModel):
    memories: list[MemoryOut]
    done: str
    left: str
    memory_sentence: str
    rollout_slug: str = ""
    raw_memory: str = ""
