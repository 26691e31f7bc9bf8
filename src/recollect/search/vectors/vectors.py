"""`Vectors`: what search asks. Which documents are near a query, and how near exactly.

One model serves at a time, for every kind of document. It may see memories in another way than the rest: then a
question has two vectors, each for the documents of its view. The database has the last word: a candidate whose document
is gone, withdrawn or out of scope is dropped before anything about it is told.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from recollect.errors import StoreError
from recollect.models.embed.base import Embedder, Matrix
from recollect.models.embed.catalog import by_id, wanted
from recollect.search.vectors import cache
from recollect.search.vectors.index import Index
from recollect.store import pgvector
from recollect.store import vectors as store
from recollect.store.ground import Ground
from recollect.store.vectors import Filter, Kind, Model, Ref, Status

if TYPE_CHECKING:
    from recollect.search.vectors.update import Progress, Report

Candidates = tuple[NDArray[np.int64], Matrix]  # ids and approximate similarities, best first

_TAIL = 2_000  # vectors that the cache does not have yet and that a query compares itself
_MARGIN = 0.02  # approximate similarities are off by less
_FOLDER = re.compile("[0-9a-f]{16}")  # how the folder of a model's codes is named
_LIKENED = 2_000  # texts whose vectors are kept in memory


class Near(NamedTuple):
    """A document near the query."""

    ref: Ref
    similarity: float  # cosine, -1 to 1: that of the nearest of its vectors


class Vectors:
    """The vectors of one owner."""

    def __init__(self, ground: Ground, *, extension: bool = True) -> None:
        self.database = ground.database
        self.settings = ground.settings
        self.owner = ground.owner
        self.clock = ground.clock
        self.extension = extension and self.database.dialect.name == "postgres"  # pgvector is used where it is there
        self._pgvector = False
        self._indexes: dict[Path, Index] = {}
        self._embedders: dict[str, Embedder | None] = {}
        self._likened: dict[tuple[str, str], Matrix] = {}  # model, and a text that is stored nowhere

    # ---- Questions

    def query(self, text: str, kind: Kind = Kind.ENTRY) -> Matrix | None:
        """The vector of a question to documents of that kind, by the model that serves; None when there is no such
        model, or nothing in the question."""
        model = self.serving()
        embedder = self.embedder(model.name) if model else None
        if embedder is None:
            return None
        row = view(embedder, kind).embed_question(text)
        return row if row.any() else None

    def likeness(self, question: str, texts: Sequence[str]) -> list[float]:
        """How near texts that are stored nowhere are to a question, seen as memories are; all are far where no model
        serves that was trained to see those."""
        model = self.serving()
        embedder = self.embedder(model.name) if model else None
        if embedder is None or not embedder.has_two_views:
            return [0.0] * len(texts)
        asked = [(embedder.id, text) for text in dict.fromkeys((question, *texts))]
        held = self._likened
        missing = [each for each in asked if each not in held]
        new = zip(missing, embedder.of_memories.embed([text for _, text in missing]), strict=True)
        known = {each: held[each] for each in asked if each in held} | dict(new)
        self._likened = {**dict(list(held.items())[-_LIKENED:]), **known}  # whole: threads may ask at once
        return [float(known[embedder.id, text] @ known[embedder.id, question]) for text in texts]

    def views(self, model: Model) -> list[frozenset[Kind]]:
        """Kinds of documents that one vector of a question can be compared with; none when nobody can ask the model."""
        embedder = self.embedder(model.name)
        if embedder is None:
            return []
        memories = frozenset({Kind.MEMORY})
        return [frozenset(Kind) - memories, memories] if embedder.has_two_views else [frozenset(Kind)]

    def nearest(self, query: Matrix, limit: int, scope: Filter, *, exact: bool = True) -> list[Near]:
        """The nearest documents within the scope, best first. An empty scope has none.

        `exact=False` is quicker: similarities are off by up to 0.01, and it is left to the caller to see whether a
        document is withdrawn. Of one that is gone or has changed nothing is told either way.
        """
        model = self.serving()
        if model is None or limit < 1 or not scope.kinds or scope.projects == frozenset() or not query.any():
            return []
        if len(query) != model.dimensions:
            raise ValueError(f"the query has {len(query)} dimensions, the vectors of {model.name} {model.dimensions}")
        propose = self._by_pgvector if self.pgvector else self._by_codes
        ids, scores = propose(model, query, limit, scope)
        best: dict[Ref, float] = {}
        start, size = 0, max(64, limit * 3 // 2)
        while start < len(ids):
            page = slice(start, start + size)
            with self.database.read() as tx:
                if exact:
                    _take_best(best, store.visible(tx, self.owner, model, scope, ids[page].tolist()), query)
                else:
                    refs = store.refs_of(tx, self.owner, model.name, ids[page].tolist())
                    for id, similarity in zip(ids[page].tolist(), scores[page].tolist(), strict=True):
                        if id in refs:
                            best.setdefault(refs[id], similarity)
            start += size
            ranked = sorted(best.values(), reverse=True)
            margin = _MARGIN if exact else 0.0
            if len(ranked) >= limit and start < len(ids) and scores[start] + margin < ranked[limit - 1]:
                break
        return sorted((Near(*each) for each in best.items()), key=lambda near: (-near.similarity, near.ref))[:limit]

    def similarities(self, query: Matrix, refs: Sequence[Ref], *, exact: bool = True) -> dict[Ref, float]:
        """How near these documents are, each by the nearest of its vectors; those without one are left out.

        They are documents that the caller was already allowed to see. `exact=False` is quicker: off by up to 0.01.
        """
        model = self.serving()
        best: dict[Ref, float] = {}
        if model is None or len(query) != model.dimensions:
            return best
        if not exact and not self.pgvector:
            refs = self._roughly(model, query, refs, best)
        if refs:
            with self.database.read() as tx:
                found = store.of_documents(tx, self.owner, model, refs)
            _take_best(best, found, query)
        return best

    def _roughly(self, model: Model, query: Matrix, refs: Sequence[Ref], best: dict[Ref, float]) -> list[Ref]:
        """Similarities by codes; returns the documents that the cache does not have."""
        with self.database.read() as tx:
            located = store.locate(tx, self.owner, model.name, refs)
        scores = self._index(model).similarities(query, np.array([id for id, _ in located], np.int64)).tolist()
        missing = {ref for (_, ref), score in zip(located, scores, strict=True) if score != score}
        for (_, ref), score in zip(located, scores, strict=True):
            if ref not in missing and score > best.get(ref, -2.0):
                best[ref] = score
        return list(missing)

    # ---- Upkeep

    def backlog(self) -> dict[Kind, int]:
        """Documents that have no vector yet of the model that is configured."""
        model = wanted(self.settings)
        with self.database.read() as tx:
            return store.backlog(tx, self.owner, model) if model else dict.fromkeys(Kind, 0)

    def update(self, limit: int | None = None, progress: Progress = lambda done, of: None) -> Report:
        """Makes vectors that are missing, newest documents first; at most for `limit` documents."""
        from recollect.search.vectors.update import Update

        return Update(self, progress).run(limit)

    def erase(self, refs: Sequence[Ref], tables: Collection[str] | None = None) -> str:
        """The vectors of these documents, from the database and from every file; what is left all the same, and why.
        `tables` are those that lost something; None: any may have."""
        with self.database.write() as tx:
            known = store.models(tx, self.owner)
            store.delete(tx, self.owner, refs)
        left = self.database.scrub(tables)
        for model in known:  # also what went before, together with its document
            cache.drop_gone(self.database, self.owner, self.folder(model), model)
        return left

    # ---- What the two stand on

    def serving(self) -> Model | None:
        """The model whose vectors answer; None before there are any, and while they are switched off."""
        if wanted(self.settings) is None:
            return None
        with self.database.read() as tx:
            return next((each for each in store.models(tx, self.owner) if each.status is Status.SERVING), None)

    def embedder(self, id: str) -> Embedder | None:
        """The embedder of that id; None when this machine has it no more."""
        if id not in self._embedders:
            self._embedders[id] = by_id(self.settings, id)
        return self._embedders[id]

    @property
    def pgvector(self) -> bool:
        """Whether the server compares vectors itself."""
        if self.extension and not self._pgvector:
            with self.database.read() as tx:
                self._pgvector = pgvector.is_there(tx)
        return self._pgvector

    @property
    def folder_of_owner(self) -> Path:
        return self.settings.home / "index" / self.owner.tenant / self.owner.agent_id

    def folder(self, model: Model) -> Path:
        """Where its codes lie: below the owner's folder, whatever name a row gives it."""
        name = model.cache
        if not _FOLDER.fullmatch(name):
            name = hashlib.sha256(name.encode()).hexdigest()[:16]
        return self.folder_of_owner / name

    def _by_pgvector(self, model: Model, query: Matrix, limit: int, scope: Filter) -> Candidates:
        with self.database.read() as tx:
            return pgvector.nearest(tx, self.owner, model, query, max(200, limit * 4), scope)

    def _by_codes(self, model: Model, query: Matrix, limit: int, scope: Filter) -> Candidates:
        """What the cache proposes, and what it does not have yet, compared one by one."""
        index = self._index(model)
        with self.database.read() as tx:
            tail = store.after(tx, self.owner, model, index.state.last, _TAIL + 1)
        if len(tail.ids) > _TAIL:
            with suppress(StoreError):  # a cache that cannot be written makes a query slow, not wrong
                cache.catch_up(self.database, self.owner, self.folder(model), model, wait=False)
            index = self._index(model)
        kinds = None if scope.kinds == frozenset(Kind) else [cache.KINDS[kind] for kind in scope.kinds]
        known = index.state.projects
        rooms = None if all(map(scope.sees, known)) else frozenset(filter(scope.sees, known))
        parts = [index.candidates(query, limit * 4, kinds, rooms)]
        if not tail.ids:
            return parts[0]
        for page in cache.pages(self.database, self.owner, model, index.state.last):
            allowed = [scope.allows(ref.kind, project) for ref, project in zip(page.refs, page.projects, strict=True)]
            here = np.array(allowed, bool) & page.rows.any(axis=1)
            parts.append((np.array(page.ids, np.int64)[here], np.vecdot(page.rows[here], query)))
        ids, scores = (np.concatenate(each) for each in zip(*parts, strict=True))
        order = np.argsort(-scores)
        return ids[order], scores[order]

    def _index(self, model: Model) -> Index:
        """Opened once, and again when somebody wrote to it."""
        folder = self.folder(model)
        known = self._indexes.get(folder)
        if known is None or not known.is_current():
            known = self._indexes[folder] = Index(folder, model.dimensions)
        return known


def view(of: Embedder, kind: Kind) -> Embedder:
    """How the embedder sees documents of that kind."""
    return of.of_memories if kind is Kind.MEMORY else of


def _take_best(best: dict[Ref, float], found: store.Vectors, query: Matrix) -> None:
    """Each document's best similarity; a row of zeros is near nothing."""
    present = np.flatnonzero(found.rows.any(axis=1))
    for place, similarity in zip(present.tolist(), np.vecdot(found.rows[present], query).tolist(), strict=True):
        best[found.refs[place]] = max(similarity, best.get(found.refs[place], -1.0))
