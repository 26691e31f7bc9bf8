"""Keeps the codes of a model level with the database: adds what is new, drops what is gone, in doubt begins anew."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from recollect.search.vectors import codes
from recollect.search.vectors.index import Index, Rows, Writer, writing
from recollect.store import vectors as store
from recollect.store.database import Database
from recollect.store.vectors import Kind, Model, Vectors
from recollect.types import Owner

KINDS = {kind: number for number, kind in enumerate(Kind)}  # as the codes know them
_PAGE = 4_096  # vectors read at a time
_SAMPLE = 32


def pages(database: Database, owner: Owner, model: Model, last: int) -> Iterator[Vectors]:
    """Vectors with a greater id, some at a time."""
    while True:
        with database.read() as tx:
            page = store.after(tx, owner, model, last, _PAGE)
        if page.ids:
            yield page
        if len(page.ids) < _PAGE:
            return
        last = page.ids[-1]


def catch_up(database: Database, owner: Owner, folder: Path, model: Model, *, wait: bool = True) -> bool:
    """False when another process is at it and nobody wants to wait."""
    with writing(folder, wait=wait) as mine:
        if not mine:
            return False
        writer = Writer(folder, model.dimensions)
        if not _agrees(database, owner, folder, model):
            writer.clear()
        _drop_gone(database, owner, model, writer)
        if writer.is_wasteful:
            writer.clear()
        for page in pages(database, owner, model, writer.state.last):
            writer.add(Rows(page.ids, [KINDS[ref.kind] for ref in page.refs], page.projects, page.rows))
    return True


def drop_gone(database: Database, owner: Owner, folder: Path, model: Model) -> None:
    """Overwrites the codes of vectors that are gone."""
    if folder.exists():
        with writing(folder):
            _drop_gone(database, owner, model, Writer(folder, model.dimensions))


def _drop_gone(database: Database, owner: Owner, model: Model, writer: Writer) -> None:
    held = writer.ids()
    with database.read() as tx:
        expected = store.count(tx, owner, model.name, writer.state.last) - writer.state.empty
        there = np.array([] if expected == len(held) else store.ids(tx, owner, model.name), np.int64)
    if expected == len(held):
        return
    gone = held[~np.isin(held, there)]
    if len(held) - len(gone) != expected or len(gone) * 8 > len(held):
        writer.clear()  # something is missing that should be there, or it is quicker to write the rest anew
    else:
        writer.drop(gone)


def _agrees(database: Database, owner: Owner, folder: Path, model: Model) -> bool:
    """Whether some of the codes are those of the vectors in the database."""
    ids, signs = Index(folder, model.dimensions).sample(_SAMPLE)
    with database.read() as tx:
        found = store.of_ids(tx, owner, model, ids)
    if len(found.ids) * 2 < len(ids):
        return False
    expected = dict(zip(found.ids, codes.signs(found.rows).T.tolist(), strict=True))
    return all(expected.get(id, code) == code for id, code in zip(ids, signs.T.tolist(), strict=True))
