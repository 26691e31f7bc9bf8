"""What a model is asked for. Imported only when a model is: pydantic is slow to load."""

from __future__ import annotations

from pydantic import BaseModel, Field


class ItemOut(BaseModel):
    key: str = Field(max_length=120)
    value: str | bool | int | float  # in full: what is left out is made another number
    severity: str = ""
    scope: str = ""
    applies_to: list[str] = []


class FeedbackOut(BaseModel):
    turn_id: str
    reaction: str
    text: str = ""
    confidence: float = 0.0


class ReconciledOut(BaseModel):
    objective: str = ""
    topics: list[str] = []
    assertions: list[ItemOut] = []
    exceptions: list[ItemOut] = []
    facts: list[ItemOut] = []
    local_memories_turn_ids: list[str] = Field(default=[], description="ids from the table of candidates only")
    feedback: FeedbackOut | None = None


class SignalOut(BaseModel):
    key: str
    value: str
    severity: str = "mention"


class SignalsOut(BaseModel):
    assistant_signals: list[SignalOut] = []
