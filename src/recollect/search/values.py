"""What a search asks for and what it gives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from recollect.store.vectors import Kind


class AllProjects(Enum):
    """The one value that widens a search beyond named projects: it has to be said, it is never assumed."""

    ALL = "all projects"


ALL_PROJECTS = AllProjects.ALL
Scope = str | Path | Sequence[str | Path] | AllProjects
"""A project (path or project id), several, or `ALL_PROJECTS`."""


@dataclass(frozen=True, slots=True)
class Why:
    """How a hit came to its score: parts of relevance between 0 and 1, then what moved it among the relevant."""

    words: float  # share of the query's words in the text, by rarity
    around: float  # the same for the text and its neighbours
    meaning: float  # similarity; guessed from the words where it is not known yet
    meaning_around: float
    known: bool  # the similarity was measured
    relevance: float  # the weighted mean of the four
    matched: tuple[str, ...] = ()  # the query's words that the text contains
    boosts: dict[str, float] = field(default_factory=dict)  # time, role, speaker, recency, exact, kind, use


@dataclass(frozen=True, slots=True)
class Hit:
    id: str  # a memory's id, a summary's session_key, an entry's uuid
    kind: Kind
    memory_kind: str  # of a memory, else empty
    score: float
    text: str  # whole
    snippet: str  # the part that shows why
    marks: tuple[tuple[int, int], ...]  # where the query's words stand in the snippet
    session_id: str
    session_key: str
    source: str
    source_file: str
    project_id: str
    role: str
    timestamp: str
    path: str  # the file to look into, where one is known
    entry_uuid: str  # of an entry, else empty
    revision: int  # of a memory, else 0
    also: tuple[str, ...]  # ids of others that say nearly the same: folded into this one, best first
    why: Why


@dataclass(frozen=True, slots=True)
class Wanted:
    """What narrows a search inside its scope."""

    kinds: frozenset[Kind] = frozenset(Kind)
    role: str = ""
    source: str = ""
    since: str = ""  # timestamps; inclusive
    until: str = ""  # exclusive
    file: str = ""  # entries of files whose key begins so; nothing else then

    @property
    def narrow(self) -> bool:
        return bool(self.role or self.source or self.since or self.until or self.file)

    def allows(self, role: str, source: str, timestamp: str, file: str) -> bool:
        return file.startswith(self.file) and (
            (not self.role or role == self.role)
            and (not self.source or source == self.source)
            and (not self.since or timestamp >= self.since)
            and (not self.until or timestamp < self.until)
        )
