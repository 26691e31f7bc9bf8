"""`python fit.py EMBEDDER`: the weights of `inject/relevance.py`, from the fit halves of `recollect bench inject`.

Logistic regression with a ridge; cross-validated by prompt, so that no prompt judges itself. The features are those
that injection computes, taken from the same store. Other labelled prompts (judge.py) count as much as the fit halves,
all together; what is cross-validated is the fit halves. The weight of `told` comes last, beside the others as
they are in the code: what makes the probabilities true for memories of which a model said when they matter.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recollect.app import Memory
from recollect.inject import relevance
from recollect.inject.contextual import Contextual, Judged
from recollect.inject.relevance import Features
from recollect.inject.values import InjectorConfig
from recollect.search.run import Search
from recollect.store.search import Found as Candidate
from recollect.surfaces.bench.inject import NOW, Case, Person, opened, people, reach

Floats = NDArray[np.float64]
Example = tuple[int, Features, bool]  # the number of its prompt, what speaks for a memory, whether it is wanted

_RIDGE = 3.0
_FOLDS = 11
_APART = 10_000  # numbers of one person's prompts from those of the next
_SETTLED = 4  # times after which weights change no more
_FLOORS = [number / 50 for number in range(20, 43)]  # 0.4, 0.42 and so on
_ROUNDS = 4  # of cross-validation, each with other folds
PLAIN = ("similar", "words", "share", "everywhere", "ours", "general", "appetite")
LEANING = ("similar", "words", "context", "context_words", "everywhere")
_BLIND = ("similar", "context", "appetite")  # what nobody knows without vectors


def run(embedder: str, beside: Sequence[Example] = ()) -> dict[str, Any]:
    return {**weights(embedder, beside), "told, beside the weights in the code": round(_told(embedder), 2)}


def weights(embedder: str, beside: Sequence[Example] = ()) -> dict[str, dict[str, Any]]:
    """Of prompts, and of what leans on an exchange."""
    plain, leaning = examples_of_everybody(embedder)
    known = any(found.similar is not None for _, found, _ in plain)
    used = [[each for each in columns if known or each not in _BLIND] for columns in (PLAIN, LEANING)]
    return {
        "plain": fitted(used[0], plain, beside, crowded=True),
        "leaning": fitted(used[1], leaning, (), crowded=False),
    }


def examples_of_everybody(embedder: str) -> tuple[list[Example], list[Example]]:
    """Of the fit halves: prompts, and what leans on an exchange."""
    plain: list[Example] = []
    leaning: list[Example] = []
    for before, person in enumerate(people()):
        cases, told = [case for case in person.prompts if case.half == "fit"], _leaning(person)
        with opened(embedder, person.memories) as memory:
            for every, found in (
                (plain, examples(memory, cases)),
                (leaning, examples(memory, told, leaning=True)),
            ):
                every += ((before * _APART + number, features, right) for number, features, right in found)
    return plain, leaning


def _told(embedder: str) -> float:
    """The weight in the code, and what is missing for as many lines to be right as the probabilities promise."""
    logits: list[float] = []
    right: list[bool] = []
    weight = 0.0
    for person in people():
        with opened(embedder, person.told) as memory:
            cases = [case for case in person.prompts if case.half == "fit"]
            for number, each, candidate in _judged(memory, cases):
                weight = each.by.plain.told
                logits.append(np.log(each.score) - np.log1p(-each.score))
                right.append(candidate.ref in cases[number].wanted)
    known, low, high = np.array(logits), -5.0, 5.0
    for _ in range(30):
        middle = (low + high) / 2
        promised = float((1 / (1 + np.exp(-known - middle))).sum())
        low, high = (middle, high) if promised < sum(right) else (low, middle)
    return weight + low


def _leaning(person: Person) -> list[Case]:
    """Follow-ups, and prompts that look like one behind an exchange that has nothing to do with them."""
    told = [case for case in person.followups if case.half == "fit"]
    before = {case.project: case.before for case in told}
    strays = [
        replace(case, kind="stray", before=before[case.project])
        for case in person.prompts
        if case.half == "fit" and case.project in before
    ]
    return [*told, *strays]


def examples(memory: Memory, cases: Sequence[Case], *, leaning: bool = False) -> Iterator[Example]:
    for number, each, candidate in _judged(memory, cases, leaning=leaning):
        right = candidate.ref in cases[number].wanted
        if right or not (leaning and relevance.just_said(candidate.text, cases[number].before)):
            yield number, each.features, right


def _judged(memory: Memory, cases: Sequence[Case], *, leaning: bool = False) -> Iterator[tuple[int, Judged, Candidate]]:
    found = Search(memory.database, memory.vectors).memories
    judge = Contextual(found, InjectorConfig()).judge
    for number, case in enumerate(cases):
        asked = relevance.question(case.text, case.before, NOW)
        if asked is None or bool(asked.context) is not leaning:
            continue
        judged = judge(asked, reach(memory, case))
        texts = found.read([each.clue.row for each in judged], reach(memory, case))
        yield from ((number, each, texts[each.clue.row]) for each in judged)


def fitted(columns: Sequence[str], rows: Sequence[Example], beside: Sequence[Example], crowded: bool) -> dict[str, Any]:
    last = max(number for number, _, _ in rows)
    every = [*rows, *((last + 1 + number, each, right) for number, each, right in beside)]
    table = np.array([[float(getattr(each, name) or 0.0) for name in columns] for _, each, _ in every])
    right = np.array([float(each) for _, _, each in every])
    group = np.unique([number for number, _, _ in every], return_inverse=True)[1]
    mine = np.arange(len(every)) < len(rows)
    weight = np.where(mine, max(1.0, len(np.unique(group[~mine])) / len(np.unique(group[mine]))), 1.0)
    found = logistic(table, right, weight=weight)
    for _ in range(_SETTLED if crowded else 0):  # what speaks for the others depends on the weights, too
        alone = table[:, : len(columns)]
        table = np.c_[alone, _crowds(alone @ found[: len(columns)] + found[-1], group, float(found[-1]))]
        found = logistic(table, right, weight=weight)
    names = (*columns, "crowd", "bias") if crowded else (*columns, "bias")
    curves = [
        _curve(cross_validated(table, right, weight, np.where(mine, group, -1), seed)[mine], right[mine])
        for seed in range(_ROUNDS)
    ]
    return {
        "weights": {name: round(float(each), 2) for name, each in zip(names, found, strict=True)},
        "examples": len(every),
        "right": int(right.sum()),
        "cross_validated": {
            name: round(float(np.mean([each[name] for each in curves])), 3)
            for name in curves[0]
            if all(name in each for each in curves)
        },
    }


def _crowds(strengths: Floats, group: NDArray[np.int64], nothing: float) -> Floats:
    """Prompt by prompt."""
    found = np.zeros(len(strengths))
    for each in range(group.max() + 1):
        found[group == each] = relevance.crowds(strengths[group == each].tolist(), nothing)
    return found


def logistic(table: Floats, right: Floats, ridge: float = _RIDGE, weight: Floats | None = None) -> Floats:
    """Weights and, last, the bias; columns are scaled, so that the ridge means the same for each."""
    counts = np.ones(len(right)) if weight is None else weight
    middle, spread = table.mean(axis=0), table.std(axis=0) + 1e-9
    scaled = np.c_[(table - middle) / spread, np.ones(len(table))]
    penalty = np.diag([ridge] * table.shape[1] + [1e-6])
    found = np.zeros(scaled.shape[1])
    for _ in range(30):
        chance = 1 / (1 + np.exp(-np.clip(scaled @ found, -30, 30)))
        curvature = scaled.T * (counts * chance * (1 - chance) + 1e-9) @ scaled + penalty
        found -= np.linalg.solve(curvature, scaled.T @ (counts * (chance - right)) + penalty @ found)
    return np.append(found[:-1] / spread, found[-1] - float((found[:-1] * middle / spread).sum()))


def cross_validated(table: Floats, right: Floats, weight: Floats, group: NDArray[np.int64], seed: int) -> Floats:
    """Of each group by weights that the others gave; group -1 gives weights and is not judged."""
    fold = np.append(np.random.default_rng(seed).permutation(group.max() + 1) % _FOLDS, -1)
    chances = np.zeros(len(right))
    for each in range(_FOLDS):
        out = fold[group] == each
        found = logistic(table[~out], right[~out], weight=weight[~out])
        chances[out] = 1 / (1 + np.exp(-(table[out] @ found[:-1] + found[-1])))
    return chances


def _curve(chances: Floats, right: Floats) -> dict[str, float]:
    order = np.argsort(-chances)
    hits = np.cumsum(right[order])
    precision, recall = hits / np.arange(1, len(order) + 1), hits / right.sum()
    result = {"average_precision": float((np.diff(np.r_[0.0, recall]) * precision).sum())}
    for floor in _FLOORS:
        number = int((chances >= floor).sum())
        if number:
            result[f"precision_at_{floor}"] = float(precision[number - 1])
            result[f"recall_at_{floor}"] = float(recall[number - 1])
    return result


if __name__ == "__main__":
    print(json.dumps(run(sys.argv[1]), indent=2))
