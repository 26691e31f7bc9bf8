"""`recollect bench inject`: are the right memories injected, usually none, and how long does it take?

The set lies in `inject/` (see its README): memories of several projects, prompts with the memories they want, half of
them with none, and follow-ups. Weights and the floor were fitted on its `fit` half; the figures to look at are those of
`test`. Peers in the same run: the five best of `search` with its own floor, and of full text alone.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from importlib import resources
from typing import Any

from recollect.app import Memory
from recollect.inject.contextual import Contextual
from recollect.inject.values import Exchange, InjectorConfig
from recollect.search.run import Search
from recollect.search.values import Wanted
from recollect.store import memories
from recollect.store.search import Reach
from recollect.store.vectors import Kind
from recollect.surfaces.bench.home import passing_home
from recollect.types import MemoryKind, Remembered, Scope, Severity, timestamp

NOW = datetime(2026, 11, 2, 9, 0, tzinfo=UTC)
MOST = 10  # lines of a block
_PEERS_MOST = 5
_ON_TOPIC = ("direct", "indirect")
WAYS = ("ours", "search_top_5", "full_text_top_5")

Find = Callable[["Case"], list[str]]


@dataclass(frozen=True, slots=True)
class Case:
    half: str  # fit or test
    project: str
    kind: str
    text: str
    wanted: frozenset[str]  # ids of memories
    before: tuple[Exchange, ...] = ()

    @property
    def on_topic(self) -> bool:
        return self.kind in _ON_TOPIC


def run(embedder: str = "auto", show: str = "") -> dict[str, Any]:
    """`show` is a half whose wrong and missing lines are listed."""
    with opened(embedder) as memory:
        ours, bare = contextual(memory), contextual(memory, enrich=False)
        result: dict[str, Any] = {"embedder": _served(memory), "memories": len(stored())}
        ways = dict(zip(WAYS, (ours, _search(memory), _full_text(memory)), strict=True))
        for half in ("test", "fit"):
            cases = [case for case in prompts() if case.half == half]
            told = [case for case in followups() if case.half == half]
            result[half] = {name: figures(cases, find) for name, find in ways.items()} | {
                "off_topic_empty_after_an_exchange": _silence(_interrupting(cases, told), ours),
                "follow_ups": _hits(told, ours),
                "follow_ups_without_enrichment": _hits(told, bare),
            }
            if half == show:
                result["listed"] = list(_faults([*cases, *told], ours))
    return result


def flat(figures: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Names with dots instead of figures within figures."""
    for name, value in figures.items():
        if isinstance(value, dict):
            yield from ((f"{name}.{inner}", each) for inner, each in value.items())
        else:
            yield name, value


def prompts() -> list[Case]:
    return [
        Case(row["half"], row["project"], row["kind"], row["text"], frozenset(row["wanted"]))
        for row in _rows("prompts")
    ]


def followups() -> list[Case]:
    return [
        Case(
            row["half"], row["project"], row["kind"], row["text"], frozenset(row["wanted"]),
            (Exchange(row["user"], row["assistant"]),),
        )
        for row in _rows("followups")
    ]  # fmt: skip


@contextmanager
def opened(embedder: str, held: Sequence[Remembered] | None = None, **flags: Any) -> Iterator[Memory]:
    """A home of its own, with the models that are installed; it holds the set's memories, or others, and vectors."""
    with passing_home(embedder=embedder, **flags) as memory:
        with memory.database.write() as tx:
            memories.replace_sessions(tx, memory.owner, {"bench@1": stored() if held is None else held})
        memory.vectors.update()
        yield memory


def contextual(memory: Memory, *, enrich: bool = True) -> Find:
    found = Contextual(Search(memory.database, _meaning(memory)).memories, InjectorConfig(enrich=enrich))
    return lambda case: [each.id for each in found.find(case.text, case.before, reach(memory, case), MOST, NOW)]


def reach(memory: Memory, case: Case) -> Reach:
    return Reach(memory.owner, (case.project,))


def figures(cases: Sequence[Case], find: Find) -> dict[str, Any]:
    """Of lines: how many are right, how many of the right ones there are. Of off-topic prompts: how many get none."""
    found = [find(case) for case in cases]
    given = sum(map(len, found))
    right = sum(len(case.wanted & set(lines)) for case, lines in zip(cases, found, strict=True))
    silent = [not lines for case, lines in zip(cases, found, strict=True) if not case.on_topic]
    result = {
        "precision": round(right / max(given, 1), 3),
        "recall": round(right / sum(len(case.wanted) for case in cases), 3),
        "off_topic_empty": round(sum(silent) / len(silent), 3),
        "lines": given,
    }
    helped = [bool(case.wanted & set(lines)) for case, lines in zip(cases, found, strict=True) if case.on_topic]
    result["on_topic_helped"] = round(sum(helped) / len(helped), 3)
    for kind in _ON_TOPIC:
        these = [(case, lines) for case, lines in zip(cases, found, strict=True) if case.kind == kind]
        hits = sum(len(case.wanted & set(lines)) for case, lines in these)
        result[f"recall_{kind}"] = round(hits / sum(len(case.wanted) for case, _ in these), 3)
    return result


def _interrupting(cases: Sequence[Case], told: Sequence[Case]) -> list[Case]:
    """The off-topic prompts, each behind every exchange of its project."""
    return [
        replace(case, before=other.before)
        for case in cases
        for other in told
        if not case.on_topic and case.project == other.project
    ]


def _silence(cases: Sequence[Case], find: Find) -> float:
    """The share that gets nothing."""
    return round(sum(not find(case) for case in cases) / len(cases), 3)


def _hits(cases: Sequence[Case], find: Find) -> dict[str, Any]:
    """Of prompts that lean on the exchange: how many get what they want. Of those that turn away: what comes along."""
    found = [(case, set(find(case))) for case in cases]
    leaning = [each for each in found if each[0].kind == "leans"]
    turned = [each for each in found if each[0].kind == "shift"]
    right = sum(len(case.wanted & lines) for case, lines in leaning)
    return {
        "hit_rate": round(sum(bool(case.wanted & lines) for case, lines in leaning) / len(leaning), 3),
        "precision": round(right / max(sum(len(lines) for _, lines in leaning), 1), 3),
        "dragged_along": sum(len(lines - case.wanted) for case, lines in turned),
    }


def _faults(cases: Sequence[Case], find: Find) -> Iterator[str]:
    texts = {each.id: each.text for each in stored()}
    for case in cases:
        lines = find(case)
        for name, ids in (("wrong", [x for x in lines if x not in case.wanted]), ("missing", case.wanted - set(lines))):
            yield from (f"{case.kind}: {case.text} — {name}: {texts[each]}" for each in sorted(ids))


def stored() -> list[Remembered]:
    return remembered(_rows("memories"))


def remembered(rows: Sequence[Mapping[str, Any]]) -> list[Remembered]:
    """As memories; they were said over the last ten months."""
    return [
        Remembered(
            row["id"],
            1,
            MemoryKind(row["kind"]),
            row["text"],
            Severity(row["severity"]),
            Scope.PROJECT if row["project"] else Scope.USER,
            row["project"],
            timestamp(NOW - timedelta(days=number * 7 % 300 + 1)),
            timestamp(NOW - timedelta(days=number * 7 % 300 + 1)),
            (("bench@1", f"e{number}"),),
        )
        for number, row in enumerate(rows)
    ]


def _rows(name: str) -> list[dict[str, Any]]:
    file = resources.files("recollect.surfaces.bench").joinpath("inject", f"{name}.jsonl")
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def _meaning(memory: Memory) -> Any:
    from recollect.search.meaning import ByVectors

    return ByVectors(memory.vectors)


def _served(memory: Memory) -> str:
    model = memory.vectors.serving()
    return model.name if model else "none"


def _search(memory: Memory) -> Find:
    found = Search(memory.database, _meaning(memory))
    wanted = Wanted(frozenset({Kind.MEMORY}))
    return lambda case: [hit.id for hit in found.run(case.text, reach(memory, case), wanted, _PEERS_MOST, NOW)]


def _full_text(memory: Memory) -> Find:
    found = Search(memory.database, None)
    wanted = Wanted(frozenset({Kind.MEMORY}))
    return lambda case: [hit.id for hit in found.run(case.text, reach(memory, case), wanted, _PEERS_MOST, NOW)]
