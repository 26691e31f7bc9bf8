"""Search by meaning, as ranking asks for it: one question, then similarities of documents within its reach."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from recollect.models.embed.base import Matrix
from recollect.search.values import Asked
from recollect.search.vectors.vectors import Vectors
from recollect.store.vectors import Filter, Kind, Ref

_EVERYWHERE = ""  # how vectors name the project of a memory that holds in every project


@dataclass(frozen=True, slots=True)
class ByVectors:
    vectors: Vectors

    def ask(self, text: str, projects: Sequence[str] | None) -> Asked | None:
        row, model = self.vectors.query(text), self.vectors.serving()
        if row is None or model is None:
            return None
        wide = None if projects is None else frozenset((*projects, _EVERYWHERE) if projects else ())
        return _Question(self.vectors, row, wide, model.name)


@dataclass(frozen=True, slots=True)
class _Question:
    vectors: Vectors
    row: Matrix
    projects: frozenset[str] | None
    model: str

    def nearest(self, kinds: frozenset[Kind], limit: int) -> dict[Ref, float]:
        scope = Filter(self.projects, kinds)
        found = self.vectors.nearest(self.row, limit, scope, exact=False)
        best: dict[Ref, float] = {}
        for near in found:  # best first; a memory may come by several revisions
            best.setdefault(near.ref if not near.ref.revision else Ref(near.ref.kind, near.ref.key), near.similarity)
        return best

    def similarities(self, refs: Sequence[Ref]) -> dict[Ref, float]:
        return self.vectors.similarities(self.row, refs, exact=False)
