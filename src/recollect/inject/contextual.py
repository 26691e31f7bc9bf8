"""Memories that have to do with a prompt."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

from recollect.inject.values import Exchange, Found, InjectorConfig
from recollect.search.values import Hit
from recollect.store.search import Reach
from recollect.types import MemoryKind, Severity

FLOOR = 0.31  # of what is relevant


class Contextual:
    """`search` finds memories within a reach: (query, reach, limit, now) → hits, best first."""

    def __init__(self, search: Callable[[str, Reach, int, datetime], list[Hit]], config: InjectorConfig) -> None:
        self._search = search
        self._floor = config.contextual_min_score or FLOOR

    def find(self, prompt: str, exchanges: Sequence[Exchange], scope: Reach, limit: int, now: datetime) -> list[Found]:
        return [
            Found(
                id=hit.id,
                revision=hit.revision,
                kind=MemoryKind(hit.memory_kind),
                severity=Severity.NONE,
                text=hit.text,
                date=hit.timestamp[:10],
                score=hit.score,
                why=f"relevance {hit.why.relevance:.2f}: {', '.join(hit.why.matched) or 'by its meaning'}",
            )
            for hit in self._search(prompt, scope, limit, now)
            if hit.why.relevance >= self._floor
        ]
