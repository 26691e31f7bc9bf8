"""`recollect bench inject`, the latency: the prompts of one person of the set, asked of a store of many memories.

Memories are made: each is one of that person's with words exchanged for others, half of them from the other memories,
half made up, and its vector moved as far as another text would. The embedder is real: its time counts. The floor is
embedding the prompt; the peer is plain search.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from recollect.app import Memory
from recollect.models.embed import catalog
from recollect.models.embed.base import Matrix, unit
from recollect.search.vectors import cache
from recollect.store import memories
from recollect.store import vectors as store
from recollect.store.vectors import Document, Kind, Model, Part, Ref, Status
from recollect.surfaces.bench.home import passing_home
from recollect.surfaces.bench.inject import NOW, SET, Case, contextual, somebody
from recollect.surfaces.bench.search import Language
from recollect.surfaces.bench.times import latency, timed
from recollect.text import COMMON
from recollect.types import Remembered, timestamp

_PERSON = SET.joinpath("mara")  # whose prompts and memories
_BATCH = 2_000
_EXCHANGED = 0.6  # share of a text's words
_MOVED = 0.7  # how far a vector is moved, as a share of its length


def run(size: int, embedder: str, questions: int | None = None) -> dict[str, Any]:
    """`questions`: no more than so many."""
    with passing_home(embedder=embedder, clock=lambda: NOW) as memory:
        _fill(memory, size)
        cases = somebody(_PERSON).prompts[:questions]
        ways: dict[str, Callable[[Case], Any]] = {
            "find": contextual(memory),
            "prepare": lambda case: memory.injector(case.project).prepare([], case.text),
            "search": lambda case: memory.search(case.text, scope=case.project, kinds=["memory"], limit=5),
            "embedding": lambda case: memory.vectors.query(case.text, Kind.MEMORY),
        }
        result: dict[str, Any] = {"memories": size}
        for way, ask in ways.items():
            for case in cases[:5]:  # what is opened once is not counted
                ask(case)
            _, wall, cpu = timed(ask, cases)
            result |= latency(way, wall, cpu)
    return result


def _fill(memory: Memory, size: int) -> None:
    embedder = catalog.embedder(memory.settings)
    base = somebody(_PERSON).memories
    centres = embedder.of_memories.embed([each.text for each in base]) if embedder else None
    chance = np.random.default_rng(5)
    model = Model(embedder.id, embedder.dimensions, Status.SERVING, "bench") if embedder else None
    if model:
        with memory.database.write() as tx:
            store.save_model(tx, memory.owner, model, timestamp(NOW))
    made = _made(base, size, chance)
    for first in range(0, size, _BATCH):
        rows = [next(made) for _ in range(min(_BATCH, size - first))]
        with memory.database.write() as tx:
            memories.replace_sessions(tx, memory.owner, {f"bench@{first}": rows})
            if model and centres is not None:
                near = centres[[(first + place) % len(base) for place in range(len(rows))]]
                store.insert(tx, memory.owner, model.name, list(map(_part, rows)), _moved(near, chance))
    if model:
        cache.catch_up(memory.database, memory.owner, memory.vectors.folder(model), model)


def _part(row: Remembered) -> Part:
    return Part(Document(Ref(Kind.MEMORY, row.id, row.revision), row.scope_id, "", False), 0)


def _moved(rows: Matrix, chance: np.random.Generator) -> Matrix:
    return unit(rows + _MOVED * unit(chance.standard_normal(rows.shape, np.float32)))


def _made(base: Sequence[Remembered], size: int, chance: np.random.Generator) -> Iterator[Remembered]:
    language = Language(vocabulary=5_000)
    known = [word for each in base for word in each.text.split() if word.lower() not in COMMON]
    for number in range(size):
        each = base[number % len(base)]
        words = each.text.split()
        others = [known[place] for place in chance.integers(0, len(known), len(words))]
        drawn = language.draw(len(words))
        kinds = chance.random(len(words))
        text = " ".join(
            word if kind >= _EXCHANGED or word.lower() in COMMON else other if kind < _EXCHANGED / 2 else strange
            for word, other, strange, kind in zip(words, others, drawn, kinds, strict=True)
        )
        yield replace(
            each, id=f"m-{number}", text=text, sources=((f"bench@{number // _BATCH * _BATCH}", f"e{number}"),)
        )
