"""Makes the vectors that are missing, in small committed steps: it may stop or be killed anywhere and goes on there.

Another configured model is *staged*: its vectors are made beside those that serve, and it takes over when every
document has one. Until then the old model answers, and goes on embedding what is new where it can. A long first backlog
begins with the static model, which is done in minutes, and the transformer takes over from it in the same way.

One process works at a time, under a lock; another one says so and leaves it to it.
"""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from recollect.models.embed import catalog
from recollect.models.embed.base import Embedder, Matrix, unit
from recollect.search.vectors import cache
from recollect.search.vectors.index import writing
from recollect.search.vectors.passages import passages
from recollect.search.vectors.vectors import view
from recollect.store import pgvector
from recollect.store import vectors as store
from recollect.store.vectors import Kind, Model, Part, Ref, Status
from recollect.types import timestamp

if TYPE_CHECKING:
    from recollect.search.vectors.vectors import Vectors

BATCH = 64  # documents that are embedded and committed together
LONG = 4_000  # documents: a first backlog that is longer begins with the static model
_ORDER = (Kind.MEMORY, Kind.SUMMARY, Kind.ENTRY)
_LIST = 20_000  # missing documents that are listed at a time
_EVERY = 4_096  # documents after which the codes catch up
_REMEMBERED = 20_000  # short texts, said over and over, whose vectors are kept during a run
_SHORT = 200  # characters
_OCCASION = 0.375  # what each counts beside the text

Progress = Callable[[int, int], None]
"""Told how many documents are done, of how many."""


@dataclass(slots=True)
class Report:
    """What a run did."""

    model: str = ""  # id of the configured embedder; empty: vectors are switched off
    serving: str = ""  # id of the one whose vectors answer
    made: dict[Kind, int] = field(default_factory=lambda: dict.fromkeys(Kind, 0))  # documents that got vectors
    left: dict[Kind, int] = field(default_factory=lambda: dict.fromkeys(Kind, 0))  # documents still without one
    busy: bool = False  # another process is at it


def blended(text: Matrix, occasions: Matrix) -> Matrix:
    """What a memory says, and when it matters, as one vector."""
    whole: Matrix = unit((text + _OCCASION * occasions.sum(axis=0))[None])
    return whole.reshape(-1)


class Update:
    """One run."""

    def __init__(self, vectors: Vectors, progress: Progress) -> None:
        self._vectors = vectors
        self._progress = progress
        self._report = Report()
        self._known: dict[str, Matrix] = {}  # of short texts

    def run(self, limit: int | None) -> Report:
        vectors = self._vectors
        name = catalog.wanted(vectors.settings)
        if name is None:
            return self._report
        self._report.model = name
        with writing(vectors.folder_of_owner, wait=False) as mine:
            self._report.busy = not mine
            if mine and not self._is_done(name):
                wanted = vectors.embedder(name) or catalog.embedder(vectors.settings)  # a model loads slowly: once
                assert wanted is not None
                self._run(wanted, limit)
        serving = vectors.serving()
        self._report.serving = serving.name if serving else ""
        self._report.left = self._left(name)
        return self._report

    def _is_done(self, name: str) -> bool:
        """Whether there is nothing to embed: then no model is loaded, and only the codes are looked after."""
        with self._vectors.database.read() as tx:
            known = store.models(tx, self._vectors.owner)
        if [each.name for each in known] != [name] or any(self._left(name).values()):
            return False
        self._catch_up(known[0])
        return True

    def _run(self, wanted: Embedder, limit: int | None) -> None:
        vectors = self._vectors
        if vectors.extension:
            pgvector.create(vectors.database)
        serving, target = self._stage(wanted)
        stages = [(serving, vectors.embedder(serving.name))] if serving.name != target.name else []
        for model, by in [*stages, (target, wanted)]:
            if by is not None:
                limit = self._fill(model, by, limit)
        if target.status is Status.STAGED and not any(self._left(target.name).values()):
            with vectors.database.write() as tx:
                store.save_model(tx, vectors.owner, replace(target, status=Status.SERVING), timestamp(vectors.clock()))
        self._retire(target)

    def _stage(self, wanted: Embedder) -> tuple[Model, Model]:
        """The model that serves and the one that is wanted, both known to the database; often they are one."""
        vectors = self._vectors
        with vectors.database.read() as tx:
            known = {each.name: each for each in store.models(tx, vectors.owner)}
        serving = next((each for each in known.values() if each.status is Status.SERVING), None)
        if serving is not None and serving.name != wanted.id and vectors.embedder(serving.name) is None:
            serving = None  # nobody could ask it anything
        if serving is None:
            serving = known.get(wanted.id) or self._new(self._first(wanted))
            serving = self._save(replace(serving, status=Status.SERVING))
        if serving.name == wanted.id:
            return serving, serving
        target = known.get(wanted.id)
        return serving, target or self._save(self._new(wanted))

    def _first(self, wanted: Embedder) -> Embedder:
        """Who serves first where nobody did."""
        settings = self._vectors.settings
        if settings.config.embedder != "auto" or sum(self._left(wanted.id).values()) <= LONG:
            return wanted
        return catalog.embedder(settings, "static") or wanted

    def _new(self, by: Embedder) -> Model:
        return Model(by.id, by.dimensions, Status.STAGED, secrets.token_hex(8))

    def _save(self, model: Model) -> Model:
        vectors = self._vectors
        with vectors.database.write() as tx:
            store.save_model(tx, vectors.owner, model, timestamp(vectors.clock()))
            if vectors.pgvector:
                pgvector.create_index(tx, model)
        return model

    def _fill(self, model: Model, by: Embedder, limit: int | None) -> int | None:
        """Makes what is missing; returns what is left of the limit."""
        total, done, level = sum(self._left(model.name).values()), 0, 0
        self._progress(0, total)
        for kind in _ORDER:
            self._known.clear()
            for refs in self._missing(model, kind, limit):
                made = self._embed(model, view(by, kind), refs)
                self._report.made[kind] += made
                done, level = done + made, level + made
                limit = None if limit is None else limit - len(refs)
                self._progress(done, max(done, total))
                if level >= _EVERY:
                    level = 0
                    self._catch_up(model)
        self._catch_up(model)
        if done >= _EVERY // 4:
            with self._vectors.database.write() as tx:
                pgvector.analyze(tx)
        return limit

    def _left(self, model: str) -> dict[Kind, int]:
        with self._vectors.database.read() as tx:
            return store.backlog(tx, self._vectors.owner, model)

    def _missing(self, model: Model, kind: Kind, limit: int | None) -> Iterator[Sequence[Ref]]:
        """Documents without a vector, in batches; each once."""
        seen: set[Ref] = set()
        given = 0
        while limit is None or given < limit:
            with self._vectors.database.read() as tx:
                most = _LIST if limit is None else min(_LIST, limit - given)
                listed = store.missing(tx, self._vectors.owner, model.name, kind, most)
            fresh = [ref for ref in listed if ref not in seen]
            if not fresh:
                return
            if limit is not None:
                fresh = fresh[: limit - given]
            given += len(fresh)
            seen = set(listed)
            for start in range(0, len(fresh), BATCH):
                yield fresh[start : start + BATCH]

    def _embed(self, model: Model, by: Embedder, refs: Sequence[Ref]) -> int:
        """One batch. A document that changed in the meantime is left for the next time."""
        vectors = self._vectors
        with vectors.database.read() as tx:
            documents = store.load(tx, vectors.owner, refs)
        parts = [
            (Part(each, number), text)
            for each in documents
            for number, text in enumerate([each.text, *([] if each.whole else passages(each.text))])
        ]
        rows = self._rows(by, [text for _, text in parts] + [text for each in documents for text in each.occasions])
        told = len(parts)  # where the occasions begin, in the order of their documents
        for place, (part, _) in enumerate(parts):
            if part.number == 0 and (many := len(part.document.occasions)):
                rows[place] = blended(rows[place], rows[told : told + many])
                told += many
        with vectors.database.write() as tx:
            same = set(store.load(tx, vectors.owner, refs)) & set(documents)
            keep = [place for place, (part, _) in enumerate(parts) if part.document in same]
            store.insert(tx, vectors.owner, model.name, [parts[place][0] for place in keep], rows[keep])
        return len(same)

    def _rows(self, by: Embedder, texts: Sequence[str]) -> Matrix:
        """Their vectors; equal texts are embedded once."""
        known = self._known
        new = list(dict.fromkeys(text for text in texts if text not in known))
        rows = by.embed(new) if new else np.zeros((0, by.dimensions), np.float32)
        found = dict(zip(new, rows, strict=True))
        result = np.array([found[text] if text in found else known[text] for text in texts], np.float32)
        if len(known) < _REMEMBERED:
            known.update((text, row) for text, row in found.items() if len(text) <= _SHORT)
        return result.reshape(len(texts), by.dimensions)

    def _catch_up(self, model: Model) -> None:
        vectors = self._vectors
        if not vectors.pgvector:
            cache.catch_up(vectors.database, vectors.owner, vectors.folder(model), model)

    def _retire(self, target: Model) -> None:
        """Models that neither serve nor are wanted go, with vectors and codes; so do folders that belong to none."""
        vectors = self._vectors
        with vectors.database.read() as tx:
            known = store.models(tx, vectors.owner)
        old = [each for each in known if each.status is not Status.SERVING and each.name != target.name]
        for model in old:
            gone = 1
            while gone:
                with vectors.database.write() as tx:
                    gone = store.delete_model(tx, vectors.owner, model.name)
        kept = {each.cache for each in known if each not in old}
        for folder in vectors.folder_of_owner.iterdir():
            if folder.is_dir() and folder.name not in kept:
                shutil.rmtree(folder, ignore_errors=True)
