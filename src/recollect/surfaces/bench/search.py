"""`recollect bench search`: latency of full text, meaning and both at several sizes, beside brute force.

Entries are made: lengths as in conversations, a vocabulary after Zipf whose head are the usual English words, questions
of 6 to 12 words about something that was said. Wall time is what a user waits; CPU time is what stays comparable on a
machine that does other things.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from recollect.app import Memory
from recollect.search import run as search
from recollect.search.values import ALL_PROJECTS, Wanted
from recollect.search.vectors import cache
from recollect.store import entries
from recollect.store.entries import EntryRow
from recollect.store.search import Reach
from recollect.store.vectors import Filter, Kind
from recollect.surfaces.bench.home import passing_home
from recollect.surfaces.bench.times import latency, timed
from recollect.text import COMMON

_PROJECT, _SESSION = "bench/search", 60  # entries of a session
_BATCH = 10_000
_QUESTIONS = 100
_UNLIMITED = 10**9
_BEST = 100  # vectors among which there are ten messages


class Language:
    """Words by rank, and chance."""

    def __init__(self, vocabulary: int = 60_000) -> None:
        self.chance = np.random.default_rng(7)
        syllables = [
            a + b for a in "b c d f g h k l m n p r s t v br st tr pl".split() for b in "a e i o u ai ou".split()
        ]
        made = ("".join(self.chance.choice(syllables, size=2 + rank % 3)) for rank in range(2 * vocabulary))
        words = list(dict.fromkeys([*sorted(COMMON), *made]))[:vocabulary]
        self.words = np.array(words, object)
        shares = 1 / np.arange(1, len(words) + 1) ** 1.05
        self._edges = np.cumsum(shares / shares.sum())

    def draw(self, number: int) -> Any:
        return self.words[np.searchsorted(self._edges, self.chance.random(number))]

    def texts(self, number: int) -> list[str]:
        """A median of 30 words, a few of many hundreds."""
        lengths = np.clip(self.chance.lognormal(3.4, 1.0, number), 3, 2000).astype(int)
        edges = np.concatenate([[0], np.cumsum(lengths)])
        drawn = self.draw(int(lengths.sum()))
        return [" ".join(drawn[start:end]) for start, end in pairwise(edges)]

    def question(self, text: str) -> str:
        """Two to four words of what was said that tell something, the others as they come."""
        known = [word for word in dict.fromkeys(text.split()) if word not in COMMON]
        few = self.chance.choice(known, size=min(len(known), int(self.chance.integers(2, 5))), replace=False).tolist()
        return " ".join([*self.draw(int(self.chance.integers(6, 13)) - len(few)), *few])


def run(sizes: Sequence[int], embedder: str, **flags: Any) -> list[dict[str, Any]]:
    results = []
    for size in sizes:
        with passing_home(embedder=embedder, **flags) as memory:
            results.append(_measure(memory, size))
    return results


def _measure(memory: Memory, size: int) -> dict[str, Any]:
    language = Language()
    result: dict[str, Any] = {"entries": size}
    started = time.process_time()
    for first in range(0, size, _BATCH):
        _store(memory, first, language.texts(min(_BATCH, size - first)))
    result["stored_per_cpu_s"] = round(size / (time.process_time() - started))
    started = time.process_time()
    memory.index()
    result["indexed_per_cpu_s"] = round(size / max(time.process_time() - started, 1e-3))
    with memory.database.read() as tx:
        (text,) = tx.row("SELECT SUM(octet_length(content)) FROM memory_transcript_entries") or (0,)
        (words,) = tx.row("SELECT SUM(length(block)) FROM memory_entry_words_data") or (0,)
    result |= {"text_mb": round(text / 1e6, 1), "text_index_mb": round(words / 1e6, 1)}
    started = time.process_time()
    memory.vectors.update()
    result["vectors_per_cpu_s"] = round(size / max(time.process_time() - started, 1e-3))
    result |= _latencies(memory, list(_questions(memory, language, size)))
    result["peak_memory_mb"] = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
    return result


def _store(memory: Memory, first: int, texts: Sequence[str]) -> None:
    owner = memory.owner
    rows = [
        EntryRow(
            owner.tenant, owner.agent_id, "bench", f"u{place}", f"s{place // _SESSION}", f"{place // _SESSION}.jsonl",
            1, place, "user", text, "", f"2026-01-01T00:00:{place % 60:02d}.000Z", "", _PROJECT, "", 1,
        )
        for place, text in enumerate(texts, first)
    ]  # fmt: skip
    with memory.database.write() as tx:
        entries.insert(tx, rows)


def _questions(memory: Memory, language: Language, size: int) -> Iterator[str]:
    ids = language.chance.integers(1, size + 1, _QUESTIONS * 2).tolist()
    with memory.database.read() as tx:
        rows = [tx.row("SELECT content FROM memory_transcript_entries WHERE id = :id", {"id": id}) for id in ids]
    texts = [row[0] for row in rows if row and len(set(row[0].split()) - COMMON) >= 4]
    yield from (language.question(text) for text in texts[:_QUESTIONS])


def _latencies(memory: Memory, questions: Sequence[str]) -> dict[str, Any]:
    reach, now = Reach(memory.owner, (_PROJECT,)), memory.clock()
    words_only = search.Search(memory.database, None)
    ways: dict[str, Callable[[str], list[str]]] = {
        "text": lambda text: [hit.id for hit in words_only.run(text, reach, Wanted(), 10, now)],
        "vector": lambda text: _nearest(memory, text),
        "hybrid": lambda text: [hit.id for hit in memory.search(text, scope=_PROJECT)],
        "everywhere": lambda text: [hit.id for hit in memory.search(text, scope=ALL_PROJECTS)],
    }
    result: dict[str, Any] = {}
    found: dict[str, list[list[str]]] = {}
    for name, ask in ways.items():
        ask(questions[0])  # what is opened once is not counted
        found[name], wall, cpu = timed(ask, questions)
        result |= latency(name, wall, cpu)
    result |= _references(memory, questions, found, reach)
    return result


def _nearest(memory: Memory, text: str) -> list[str]:
    row = memory.vectors.query(text)
    scope = Filter(frozenset({_PROJECT}), frozenset({Kind.ENTRY}))
    return [near.ref.key for near in memory.vectors.nearest(row, 10, scope)] if row is not None else []


def _references(
    memory: Memory, questions: Sequence[str], found: dict[str, list[list[str]]], reach: Reach
) -> dict[str, float]:
    """What brute force finds: text without pruning, and every vector compared."""
    budget, now = search.BUDGET, memory.clock()
    everything = search.Search(memory.database, None)
    try:
        search.BUDGET = _UNLIMITED
        whole = [[hit.id for hit in everything.run(text, reach, Wanted(), 10, now)] for text in questions]
    finally:
        search.BUDGET = budget
    result = {"text_recall_of_unpruned": _overlap(found["text"], whole)}
    refs, matrix = _all_vectors(memory)
    if len(refs):
        exact, times = [], []
        for text in questions:
            row = memory.vectors.query(text)
            started = time.process_time()
            scores = matrix @ row
            best = np.argpartition(-scores, _BEST)[:_BEST]
            best = best[np.argsort(-scores[best])]
            times.append(time.process_time() - started)
            exact.append(list(dict.fromkeys(refs[place] for place in best))[:10])  # a message may have several vectors
        result["vector_recall_of_exact"] = _overlap(found["vector"], exact)
        result["exact_p95_cpu_ms"] = round(float(np.percentile(times, 95)) * 1000, 1)
    return result


def _overlap(found: Sequence[Sequence[str]], wanted: Sequence[Sequence[str]]) -> float:
    shares = [len(set(one) & set(other)) / len(other) for one, other in zip(found, wanted, strict=True) if other]
    return round(float(np.mean(shares)), 3) if shares else 1.0


def _all_vectors(memory: Memory) -> tuple[list[str], Any]:
    model = memory.vectors.serving()
    refs: list[str] = []
    parts = []
    for page in cache.pages(memory.database, memory.owner, model, 0) if model else ():
        inside = np.array([project == _PROJECT for project in page.projects], bool)
        refs += [ref.key for ref, there in zip(page.refs, inside, strict=True) if there]
        parts.append(page.rows[inside])
    return refs, np.concatenate(parts) if parts else np.zeros((0, 0), np.float32)
