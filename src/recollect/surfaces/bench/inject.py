"""`recollect bench inject`: are the right memories injected, usually none, and how long does it take?

The set lies in `inject/` (see its README): a folder per made-up person with memories of several projects, prompts with
the memories they want, half of them with none, and follow-ups. Weights and the floor were fitted on the `fit` halves;
the figures to look at are those of `test`; a set of one's own needs no halves. Beside them, what is found when it is
known of every memory when it matters: as extraction notes it without a model (the request in whose course it was said),
and as a model says it. Peers in the same run: the five best of `search` with its own floor, and of full text alone.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Any, TypeVar

from recollect.app import Memory
from recollect.errors import UsageError
from recollect.inject.contextual import Contextual
from recollect.inject.values import Exchange, InjectorConfig
from recollect.occasions import occasions
from recollect.search.run import Search
from recollect.search.values import Wanted
from recollect.search.vectors.vectors import Vectors
from recollect.store import memories
from recollect.store.search import Reach
from recollect.store.vectors import Kind
from recollect.surfaces.bench.home import passing_home
from recollect.types import MemoryKind, Remembered, Scope, Severity, timestamp

NOW = datetime(2026, 11, 2, 9, 0, tzinfo=UTC)
MOST = 10  # lines of a block
_PEERS_MOST = 5
_FORMAT = "docs/benchmarks.md shows what a set looks like."
_ON_TOPIC = ("direct", "indirect")
_OURS, _BARE = "ours", "ours_without_enrichment"
_ASKED, _TOLD = "ours_knowing_requests", "ours_told_when"
_PEERS = ("search_top_5", "full_text_top_5")
HALVES = ("test", "fit")
WAYS = (_OURS, _ASKED, _TOLD, *_PEERS)
SET: Traversable = resources.files("recollect.surfaces.bench").joinpath("inject")

Find = Callable[["Case"], list[str]]
Row = dict[str, Any]
_Made = TypeVar("_Made")


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
        return bool(self.wanted)


@dataclass(frozen=True, slots=True)
class Person:
    name: str
    memories: Sequence[Remembered]
    asked: Sequence[Remembered]  # the same, each with the request in whose course it was said; none: nobody knows
    told: Sequence[Remembered]  # the same, with the occasions on which a model says that they matter; or none
    prompts: Sequence[Case]
    followups: Sequence[Case]


@dataclass(frozen=True, slots=True)
class Answer:
    person: str
    case: Case
    lines: Mapping[str, Sequence[str]]  # way of finding → ids of memories


def run(embedder: str = "auto", show: str = "", folder: Traversable = SET) -> dict[str, Any]:
    """`show` is a half whose wrong and missing lines are listed."""
    everybody, served = people(folder), ""
    asked: list[Answer] = []
    told: list[Answer] = []
    turned: list[Answer] = []
    for person in everybody:
        with opened(embedder, person.memories) as memory:
            served, ours = _served(memory), contextual(memory)
            peers = dict(zip(_PEERS, (_search(memory, memory.vectors), _search(memory, None)), strict=True))
            found = _answers(person, person.prompts, {_OURS: ours, **peers})
            told += _answers(person, person.followups, {_OURS: ours, _BARE: contextual(memory, enrich=False)})
            turned += _answers(person, _interrupting(person), {_OURS: ours})
        for way, held in ((_ASKED, person.asked), (_TOLD, person.told)):
            if not held:
                continue
            with opened(embedder, held) as memory:
                more = _answers(person, person.prompts, {way: contextual(memory)})
            found = [replace(one, lines={**one.lines, **two.lines}) for one, two in zip(found, more, strict=True)]
        asked += found
    result: dict[str, Any] = {
        "embedder": served,
        "memories": sum(len(each.memories) for each in everybody),
        "prompts": len(asked),
    }
    for half in HALVES:
        prompts, after, away = ([each for each in every if each.case.half == half] for every in (asked, told, turned))
        if not prompts:
            continue
        ways = [way for way in WAYS if all(way in each.lines for each in prompts)]
        result[half] = {way: figures(prompts, way) for way in ways}
        if after:
            result[half] |= {
                "off_topic_empty_after_an_exchange": _silence(away),
                "follow_ups": _hits(after, _OURS),
                "follow_ups_without_enrichment": _hits(after, _BARE),
            }
        result[half]["people"] = {
            person.name: figures([each for each in prompts if each.person == person.name], _OURS)
            for person in everybody
        }
        if half == show:
            result["listed"] = list(_faults([*prompts, *after], everybody))
    return result


def flat(figures: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Names with dots instead of figures within figures."""
    for name, value in figures.items():
        if isinstance(value, dict):
            yield from ((f"{name}.{inner}", each) for inner, each in value.items())
        else:
            yield name, value


def people(folder: Traversable = SET) -> list[Person]:
    """Of a folder per person, or of one's own."""
    if folder.joinpath("prompts.jsonl").is_file():
        return [somebody(folder)]
    found = [each for each in folder.iterdir() if each.joinpath("prompts.jsonl").is_file()]
    if not found:
        raise UsageError(f"no memories.jsonl and prompts.jsonl in {folder}", hint=_FORMAT)
    return [somebody(each) for each in sorted(found, key=lambda each: each.name)]


def somebody(folder: Traversable) -> Person:
    held = _read(folder, "memories", _remembered)
    when = dict(_read(folder, "occasions", lambda _, row: (row["id"], (row["request"], row["occasions"]))))
    asked = [replace(each, occasions=occasions([when.get(each.id, ("", ()))[0]])) for each in held if when]
    told = [replace(each, occasions=occasions(when.get(each.id, ("", ()))[1])) for each in held if when]
    prompts, followups = (_read(folder, name, _case) for name in ("prompts", "followups"))
    if not any(case.wanted for case in prompts):
        raise UsageError(f"no prompt of {folder.name} wants a memory", hint=_FORMAT)
    if lost := {each for case in prompts for each in case.wanted} - {each.id for each in held}:
        raise UsageError(f"{folder.name}/prompts.jsonl wants {min(lost)}, which is no memory of it", hint=_FORMAT)
    return Person(folder.name, held, asked, told, prompts, followups)


@contextmanager
def opened(embedder: str, held: Sequence[Remembered], **flags: Any) -> Iterator[Memory]:
    """A home of its own, with the models that are installed; it holds these memories and their vectors."""
    with passing_home(embedder=embedder, **flags) as memory:
        with memory.database.write() as tx:
            memories.replace_sessions(tx, memory.owner, {"bench@1": held})
        memory.vectors.update()
        yield memory


def contextual(memory: Memory, *, enrich: bool = True) -> Find:
    found = Contextual(Search(memory.database, memory.vectors).memories, InjectorConfig(enrich=enrich))
    return lambda case: [each.id for each in found.find(case.text, case.before, reach(memory, case), MOST, NOW)]


def reach(memory: Memory, case: Case) -> Reach:
    return Reach(memory.owner, (case.project,))


def figures(answers: Sequence[Answer], way: str) -> dict[str, Any]:
    """Of lines: how many are right, how many of the right ones there are. Of off-topic prompts: how many get none."""
    given = sum(len(each.lines[way]) for each in answers)
    right = sum(_right(each, way) for each in answers)
    silent = [not each.lines[way] for each in answers if not each.case.on_topic]
    helped = [bool(_right(each, way)) for each in answers if each.case.on_topic]
    result: dict[str, Any] = {
        "precision": round(right / max(given, 1), 3),
        "recall": round(right / max(sum(len(each.case.wanted) for each in answers), 1), 3),
        "off_topic_empty": round(sum(silent) / max(len(silent), 1), 3),
        "lines": given,
        "on_topic_helped": round(sum(helped) / max(len(helped), 1), 3),
    }
    for kind in _ON_TOPIC:
        these = [each for each in answers if each.case.kind == kind]
        wanted = sum(len(each.case.wanted) for each in these)
        result[f"recall_{kind}"] = round(sum(_right(each, way) for each in these) / wanted, 3) if wanted else None
    return result


def _answers(person: Person, cases: Sequence[Case], ways: Mapping[str, Find]) -> list[Answer]:
    return [Answer(person.name, case, {way: find(case) for way, find in ways.items()}) for case in cases]


def _right(answer: Answer, way: str) -> int:
    return len(answer.case.wanted & set(answer.lines[way]))


def _interrupting(person: Person) -> list[Case]:
    """The off-topic prompts, each behind every exchange of its project and half."""
    return [
        replace(case, before=other.before)
        for case in person.prompts
        for other in person.followups
        if not case.on_topic and (case.project, case.half) == (other.project, other.half)
    ]


def _silence(answers: Sequence[Answer]) -> float:
    """The share that gets nothing."""
    return round(sum(not each.lines[_OURS] for each in answers) / max(len(answers), 1), 3)


def _hits(answers: Sequence[Answer], way: str) -> dict[str, Any]:
    """Of prompts that lean on the exchange: how many get what they want. Of those that turn away: what comes along."""
    leaning = [each for each in answers if each.case.kind == "leans"]
    turned = [each for each in answers if each.case.kind == "shift"]
    given = sum(len(each.lines[way]) for each in leaning)
    return {
        "hit_rate": round(sum(bool(_right(each, way)) for each in leaning) / max(len(leaning), 1), 3),
        "precision": round(sum(_right(each, way) for each in leaning) / max(given, 1), 3),
        "dragged_along": sum(len(set(each.lines[way]) - each.case.wanted) for each in turned),
    }


def _faults(answers: Sequence[Answer], everybody: Sequence[Person]) -> Iterator[str]:
    texts = {(person.name, each.id): each.text for person in everybody for each in person.memories}
    for answer in answers:
        case, lines = answer.case, set(answer.lines[_OURS])
        for name, ids in (("wrong", lines - case.wanted), ("missing", case.wanted - lines)):
            for each in sorted(ids):
                yield f"{answer.person}, {case.kind}: {case.text} — {name}: {texts[answer.person, each]}"


def remembered(rows: Sequence[Row]) -> list[Remembered]:
    return [_remembered(number, row) for number, row in enumerate(rows)]


def _remembered(number: int, row: Row) -> Remembered:
    """They were said over the last ten months."""
    said = timestamp(NOW - timedelta(days=number * 7 % 300 + 1))
    project = row.get("project", "")
    return Remembered(
        row["id"],
        1,
        MemoryKind(row.get("kind", "fact")),
        row["text"],
        Severity(row.get("severity", "none")),
        Scope.PROJECT if project else Scope.USER,
        project,
        said,
        said,
        (("bench@1", f"e{number}"),),
    )


def _case(_: int, row: Row) -> Case:
    wanted, half = frozenset(row["wanted"]), row.get("half", HALVES[0])
    if half not in HALVES:
        raise ValueError(half)
    return Case(
        half,
        row.get("project", ""),
        row.get("kind", _ON_TOPIC[0] if wanted else ""),
        row["text"],
        wanted,
        (Exchange(row["user"], row["assistant"]),) if "user" in row else (),
    )


def _read(folder: Traversable, name: str, make: Callable[[int, Row], _Made]) -> list[_Made]:
    """A line each; none where there is no such file."""
    file = folder.joinpath(f"{name}.jsonl")
    lines = file.read_text(encoding="utf-8").splitlines() if file.is_file() else []
    found = []
    for number, line in enumerate(lines):
        try:
            found.append(make(number, json.loads(line)))
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise UsageError(f"{folder.name}/{name}.jsonl, line {number + 1}: {error!r}", hint=_FORMAT) from error
    return found


def _served(memory: Memory) -> str:
    model = memory.vectors.serving()
    return model.name if model else "none"


def _search(memory: Memory, vectors: Vectors | None) -> Find:
    found = Search(memory.database, vectors)
    wanted = Wanted(frozenset({Kind.MEMORY}))
    return lambda case: [hit.id for hit in found.run(case.text, reach(memory, case), wanted, _PEERS_MOST, NOW)]
