"""`recollect bench vectors`: search by meaning at several sizes, beside exact search over the same vectors in memory.

Vectors are synthetic and shaped like those of real text: many clusters of unequal size in a space whose directions
carry unequal weight (an effective dimension of about 110 of 384), questions somewhat off everything that was said. The
floor is one matrix product over all of them, held in memory. Queries go through `Vectors.nearest` and the database.
"""

from __future__ import annotations

import functools
import resource
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from recollect.app import Memory, open_memory
from recollect.models.embed.base import Matrix, unit
from recollect.search.vectors import cache
from recollect.search.vectors.vectors import Vectors
from recollect.store import entries
from recollect.store import vectors as store
from recollect.store.vectors import EVERYTHING, Document, Filter, Kind, Model, Part, Ref, Status
from recollect.surfaces.bench.times import timed
from recollect.types import Entry, Role, Timestamp, timestamp

DIMENSIONS = 384
_CLUSTERS, _SPREAD = 2_000, 0.9
_BATCH = 10_000
_BEST = 10
_SMALL = "small"  # a project of few documents among all the others
_EVERY = 2_000  # documents per document of the small project
_TIMES = 200
_REFS = 1_000


def run(sizes: Sequence[int], database: str = "") -> list[dict[str, Any]]:
    return [_measure(size, database) for size in sizes]


def _measure(size: int, database: str) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="recollect-bench-") as name:
        flags: dict[str, Any] = {"database": database, "agent_id": f"bench{size}-{time.time_ns()}"} if database else {}
        with open_memory(Path(name) / "home", environ={"HOME": name}, **flags) as memory:
            vectors = memory.vectors
            model = Model("bench/1", DIMENSIONS, Status.SERVING, "bench")
            made, inserted = _fill(memory, model, size)
            result = {"vectors": size, "inserted_per_s": round(size / inserted)}
            if not vectors.pgvector:
                result |= _build(memory, vectors, model, size)
            result |= _ask(vectors, made, size)
    return result


@functools.cache
def _space() -> Matrix:
    """Directions of unequal weight that lie along no axis."""
    weights = np.arange(1, DIMENSIONS + 1, dtype=np.float32) ** -0.35
    turned, _ = np.linalg.qr(np.random.default_rng(2).standard_normal((DIMENSIONS, DIMENSIONS)))
    return np.asarray(weights[:, None] * turned, np.float32)


def shaped(chance: np.random.Generator, number: int, centres: Matrix | None = None) -> Matrix:
    """Vectors around centres; without any, the centres themselves."""
    noise = unit(chance.standard_normal((number, DIMENSIONS), np.float32) @ _space())
    if centres is None:
        return noise
    picked = np.minimum(chance.zipf(1.3, number), len(centres)) - 1
    return unit(centres[picked] + _SPREAD * noise)


def _fill(memory: Memory, model: Model, size: int) -> tuple[Matrix, float]:
    """Entries and their vectors; the seconds that storing the vectors took."""
    chance = np.random.default_rng(7)
    centres = shaped(chance, _CLUSTERS)
    made = np.empty((size, DIMENSIONS), np.float16)
    spent = 0.0
    with memory.database.write() as tx:
        store.save_model(tx, memory.owner, model, timestamp(memory.clock()))
    first = 0
    for ids in _entries(memory, size):
        rows = shaped(chance, len(ids), centres)
        made[first : first + len(ids)] = rows
        parts = [
            Part(Document(Ref(Kind.ENTRY, str(id)), _project(first + place), "", False), 0)
            for place, id in enumerate(ids)
        ]
        started = time.perf_counter()
        with memory.database.write() as tx:
            store.insert(tx, memory.owner, model.name, parts, rows)
        spent += time.perf_counter() - started
        first += len(ids)
    return made.astype(np.float32), spent


def _entries(memory: Memory, size: int) -> Iterator[list[int]]:
    key = entries.FileKey(memory.owner, "bench", "bench.jsonl")
    now = Timestamp(timestamp(memory.clock()))
    last = 0
    for start in range(0, size, _BATCH):
        rows = [
            entries.row(key, 1, Entry(f"e{n}", "s", Role.USER, f"entry {n}", now, n), _project(n), True)
            for n in range(start, min(start + _BATCH, size))
        ]
        with memory.database.write() as tx:
            entries.insert(tx, rows)
            found = tx.rows(
                "SELECT id FROM memory_transcript_entries WHERE id > :last AND agent_id = :agent_id ORDER BY id",
                {"last": last, "agent_id": memory.owner.agent_id},
            )
        last = found[-1][0]
        yield [id for (id,) in found]


def _project(number: int) -> str:
    return _SMALL if number % _EVERY == 0 else f"project-{number % 40}"


def _build(memory: Memory, vectors: Vectors, model: Model, size: int) -> dict[str, Any]:
    folder = vectors.folder(model)
    started = time.perf_counter()
    cache.catch_up(memory.database, memory.owner, folder, model)
    seconds = time.perf_counter() - started
    started = time.perf_counter()
    Vectors(memory.database, memory.settings, memory.owner, memory.clock).nearest(_probe(), 1, EVERYTHING)
    return {
        "codes_per_s": round(size / seconds),
        "codes_mb": round(sum(path.stat().st_blocks * 512 for path in folder.iterdir()) / 1e6, 1),
        "database_mb": round(memory.database.size() / 1e6, 1),
        "open_and_first_ms": _ms(time.perf_counter() - started),
    }


def _probe() -> Matrix:
    return np.asarray(shaped(np.random.default_rng(1), 1)[0], np.float32)


def _ask(vectors: Vectors, made: Matrix, size: int) -> dict[str, Any]:
    chance = np.random.default_rng(11)
    near = made[chance.integers(0, size, _TIMES)]
    questions = unit(near + 0.8 * shaped(chance, _TIMES))
    few = Filter(frozenset({_SMALL}))
    for question in questions[:5]:
        vectors.nearest(question, _BEST, EVERYTHING)
    found, every, work = timed(lambda q: vectors.nearest(q, _BEST, EVERYTHING), questions)
    exact, small, _ = timed(lambda q: vectors.nearest(q, _BEST, few), questions[: _TIMES // 2])
    _, floor, least = timed(lambda q: np.argpartition(-(made @ q), min(_BEST, size - 1)), questions[:20])
    refs = [Ref(Kind.ENTRY, str(id)) for id in chance.choice(size, min(size, _REFS), replace=False) + 1]
    _, some, some_work = timed(lambda q: vectors.similarities(q, refs, exact=False), questions[:50])
    _, rough, rough_work = timed(lambda q: vectors.nearest(q, _BEST * 10, EVERYTHING, exact=False), questions)
    rows = np.arange(0, size, _EVERY)
    return {
        "recall_at_10": round(_recall(found, questions, made), 4),
        "recall_at_10_small_project": round(_recall(exact, questions, made[rows]), 4),
        **{f"p{share}_ms": _ms(np.percentile(every, share)) for share in (50, 95, 99)},
        **{f"small_project_p{share}_ms": _ms(np.percentile(small, share)) for share in (50, 95)},
        "quick_100_p50_ms": _ms(np.percentile(rough, 50)),
        "quick_100_p95_ms": _ms(np.percentile(rough, 95)),
        "exact_floor_p50_ms": _ms(statistics.median(floor)),
        "cpu_ms": _ms(statistics.median(work)),
        "quick_100_cpu_ms": _ms(statistics.median(rough_work)),
        "quick_similarities_of_1000_cpu_ms": _ms(statistics.median(some_work)),
        "exact_floor_cpu_ms": _ms(statistics.median(least)),
        "quick_similarities_of_1000_p50_ms": _ms(statistics.median(some)),
        "peak_memory_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
        "of_it_the_floors_matrix_mb": round(made.nbytes * 1.5 / 2**20),
    }


def _recall(found: Sequence[Any], questions: Matrix, made: Matrix) -> float:
    """How many of the ten best similarities were reached; equal vectors count as one another."""
    shares = []
    for near, question in zip(found, questions, strict=False):
        best = np.sort(made @ question)[::-1][:_BEST]
        reached = sum(1 for each in near if each.similarity >= best[-1] - 1e-3)
        shares.append(min(reached, len(best)) / len(best))
    return statistics.mean(shares)


def _ms(seconds: float) -> float:
    return round(float(seconds) * 1000, 2)
