"""What a model is asked for. Imported only when a model is: pydantic is slow to load."""

from __future__ import annotations

from pydantic import BaseModel, Field

from recollect.types import MemoryKind, Scope, Severity


class MemoryOut(BaseModel):
    kind: MemoryKind
    text: str = Field(max_length=1000)
    severity: Severity = Severity.NONE
    scope: Scope = Scope.PROJECT
    messages: list[int] = Field(description="numbers of the messages that say so")
    occasions: list[str] = Field(default=[], description="later prompts that this would change the answer to")


class ExtractionOut(BaseModel):
    raw_memory: str = ""
    rollout_summary: str = ""
    rollout_slug: str = ""
    memory_sentence: str = ""
    memories: list[MemoryOut] = []
