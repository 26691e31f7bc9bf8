"""What tools answer: short, with ids to look further. Clients see these as JSON schemas."""

from __future__ import annotations

from pydantic import BaseModel, Field

_CALLED_WRONG = "The user says that this is wrong: do not rely on it."


class Found(BaseModel):
    id: str = Field(description="For get_memory (kind memory) or open_session (any other: its session).")
    kind: str = Field(description="rule, preference, fact, … of a memory; `summary` or `entry` otherwise.")
    text: str
    date: str
    session: str = Field(description="For open_session.")
    project: str
    score: float
    called_wrong: bool = Field(description=_CALLED_WRONG)


class Search(BaseModel):
    """What is known about it, best first; empty when nothing relevant is."""

    project: str = Field(description="The project that was searched; empty: all of them.")
    hits: list[Found]


class Source(BaseModel):
    session: str = Field(description="For open_session.")
    date: str
    role: str
    text: str


class Memory(BaseModel):
    """A memory as it holds now, and what it came from."""

    id: str
    revision: int
    kind: str
    severity: str
    text: str
    scope: str = Field(description="user: holds in every project.")
    hand: str = Field(description="Who stands behind it: a person, an agent, or the pipeline, which read it somewhere.")
    since: str
    pinned: bool
    called_wrong: bool = Field(description=_CALLED_WRONG)
    sources: list[Source]
    earlier: list[str] = Field(description="What it said before, newest first.")


class Session(BaseModel):
    session: str = Field(description="For open_session.")
    ended: str
    messages: int
    about: str = Field(description="One sentence; empty: not processed yet.")
    project: str


class Sessions(BaseModel):
    """Newest first."""

    project: str = Field(description="Empty: all of them.")
    sessions: list[Session]


class Page(BaseModel):
    """A part of what is known of a session, as Markdown."""

    session: str
    kind: str
    text: str
    next_offset: int | None = Field(description="Pass it as `offset` to read on; null at the end.")


class Noted(BaseModel):
    id: str
    revision: int
    text: str
    scope: str


class Forgotten(BaseModel):
    """It is erased for good."""

    memories: int
    messages: int
    files: int
    problems: list[str]


class Context(BaseModel):
    """What a session in this project would be given."""

    project: str
    text: str = Field(description="Empty: nothing is relevant.")
    tokens: int
