"""Search by meaning, as ranking asks for it: one question, then similarities of documents within its reach."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from recollect.models.embed.base import Matrix
from recollect.models.embed.catalog import ARCTIC
from recollect.search.vectors.vectors import Vectors
from recollect.store.search import Reach
from recollect.store.vectors import Filter, Kind, Ref, room

# By model, how similar to a question is what has nothing to do with it, where that is not about 0. This holds for what
# was said; memories are seen by another encoder.
_UNRELATED = {ARCTIC: 0.28}
_EVERYWHERE = ""  # how vectors name the project of a memory that holds in every project


def ask(vectors: Vectors | None, text: str, reach: Reach) -> Question | None:
    """None when there is nothing to compare with."""
    if vectors is None or (model := vectors.serving()) is None or not (views := vectors.views(model)):
        return None
    rooms = None
    if reach.projects is not None:
        wide = (*reach.projects, _EVERYWHERE) if reach.projects else ()
        rooms = frozenset((*reach.projects, *(room(project, reach.user) for project in wide)))
    return Question(vectors, text, rooms, reach.user, model.name, views)


@dataclass(frozen=True, slots=True)
class Question:
    """A query by its meaning. Documents are asked for, and answered, without their revision."""

    vectors: Vectors
    text: str
    rooms: frozenset[str] | None
    user: str
    model: str  # what meanings are compared by
    views: Sequence[frozenset[Kind]]
    rows: dict[frozenset[Kind], Matrix | None] = field(default_factory=dict)  # by view, as far as they were needed

    def nearest(self, kinds: frozenset[Kind], limit: int) -> dict[Ref, float]:
        """In each view as many."""
        best: dict[Ref, float] = {}
        for view in self.views:
            row = self._row(view) if view & kinds else None
            if row is None:
                continue
            for near in self.vectors.nearest(row, limit, Filter(self.rooms, view & kinds, self.user), exact=False):
                ref = near.ref if not near.ref.revision else Ref(near.ref.kind, near.ref.key)
                best.setdefault(ref, self._likeness(ref.kind, near.similarity))
        return best

    def similarities(self, refs: Sequence[Ref]) -> dict[Ref, float]:
        """Those that are known."""
        found: dict[Ref, float] = {}
        for view in self.views:
            these = [ref for ref in refs if ref.kind in view]
            row = self._row(view) if these else None
            if row is not None:
                near = self.vectors.similarities(row, these, exact=False)
                found |= {ref: self._likeness(ref.kind, similarity) for ref, similarity in near.items()}
        return found

    def vector(self, kind: Kind) -> Matrix | None:
        """By which documents of that kind are compared; None when there is nothing in the text."""
        return next((self._row(view) for view in self.views if kind in view), None)

    def _likeness(self, kind: Kind, similarity: float) -> float:
        """Likeness on the scale of every model: about 0 for what has nothing to do with the question."""
        unrelated = 0.0 if kind is Kind.MEMORY else _UNRELATED.get(self.model, 0.0)
        return (similarity - unrelated) / (1.0 - unrelated)

    def _row(self, view: frozenset[Kind]) -> Matrix | None:
        if view not in self.rows:
            self.rows[view] = self.vectors.query(self.text, min(view))
        return self.rows[view]
