"""What a training lives by: projects as tables of prompts and memories, and the loss. See README.md beside it.

A step is one project: all of its prompts against all of its memories. The loss is the one that injection lives by, the
probability that a prompt wants a memory, with what words say already counted in: the vectors learn the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from fit import logistic
from labelled import HELD_OUT, Row, read
from torch import Tensor
from torch.nn import functional as F

from recollect.inject import relevance
from recollect.search.run import Search
from recollect.store.search import Reach
from recollect.surfaces.bench.inject import NOW, opened, remembered

RANKING = 0.5  # weight of the order among a project's memories
ACROSS = 0.5  # weight of the order among the prompts that could want a memory

Floats = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True)
class Project:
    """`wanted` and `said` are prompts × memories; `said` is what words and circumstances say, column by column."""

    prompts: list[str]
    memories: list[str]
    wanted: Floats
    said: Floats  # × columns
    asked: np.ndarray[Any, np.dtype[np.bool_]]  # prompts; of small talk nothing is asked


Alike = Callable[[Project], Tensor]
"""Similarities of a project's prompts to its memories."""


def everybody() -> tuple[list[Project], list[Project]]:
    """To learn from, and of the writers that are held out."""
    memories, prompts = read("memories"), read("prompts")
    made = {writer: list(projects(memories[writer], prompts[writer])) for writer in memories}
    held = [each for writer in HELD_OUT for each in made.pop(writer)]
    return [each for some in made.values() for each in some], held


def projects(memories: list[Row], prompts: list[Row]) -> Iterator[Project]:
    """What words say is asked from a store that holds the writer's memories, as injection does, without vectors."""
    with opened("none", remembered(memories)) as memory:
        found = Search(memory.database, None).memories
        for project in sorted({row["project"] for row in prompts}):
            mine = [row for row in memories if row["project"] in ("", project)]
            asked = [row for row in prompts if row["project"] == project]
            place = {row["id"]: number for number, row in enumerate(mine)}
            said = np.zeros((len(asked), len(mine), 5))
            said[:, [number for number, row in enumerate(mine) if not row["project"]], 2] = 1.0
            questions = [relevance.question(row["text"], (), NOW) for row in asked]
            for number, question in enumerate(questions):
                if question is None:
                    continue
                said[number, :, 3:] = question.ours, question.general
                reach = Reach(memory.owner, (project,))
                clues = found.clues(question.texts, question.words, reach)
                texts = found.read([each.row for each in clues.each], reach)
                for clue in clues.each:
                    seen = relevance.features(question, clue, clues.rarity)
                    said[number, place[texts[clue.row].ref], :2] = seen.words, seen.share
            yield Project(
                [row["text"] for row in asked],
                [row["text"] for row in mine],
                np.array([[float(each["id"] in row["wanted"]) for each in mine] for row in asked]),
                said,
                np.array([question is not None for question in questions]),
            )


def by_words(alike: Alike, chosen: Sequence[Project]) -> Floats:
    """Weights of the judge with the model as it was: of similarity, of what words say, and the bias."""
    tables, right = [], []
    with torch.no_grad():
        for each in chosen:
            similar = alike(each).numpy()[..., None]
            tables.append(np.concatenate([similar, each.said], axis=2)[each.asked].reshape(-1, 6))
            right.append(each.wanted[each.asked].reshape(-1))
    return logistic(np.concatenate(tables), np.concatenate(right), ridge=1e-3)


def judging(alike: Alike, project: Project, weights: Floats, scale: Tensor, bias: Tensor) -> Tensor:
    rest = torch.tensor(project.said @ weights[1:-1] + weights[-1]).float()
    wanted = torch.tensor(project.wanted).float()
    logits = scale * alike(project) + rest + bias
    asked = torch.tensor(project.asked)
    loss = F.binary_cross_entropy_with_logits(logits[asked], wanted[asked], reduction="sum") / len(project.prompts)
    return loss + RANKING * order(logits, wanted) + ACROSS * order(logits[asked].T, wanted[asked].T)


def order(logits: Tensor, wanted: Tensor) -> Tensor:
    """Of each row that wants something: how far the wanted columns are from being the first."""
    some = wanted.sum(1) > 0
    return (-(torch.log_softmax(logits, 1) * wanted).sum(1)[some] / wanted.sum(1)[some]).mean()


def curve(alike: Alike, chosen: Sequence[Project], weights: Floats) -> str:
    """Of all pairs by what the judge says: recall at some precisions."""
    with torch.no_grad():
        judged = [float(weights[0]) * alike(each).numpy() + each.said @ weights[1:-1] for each in chosen]
    scores = np.concatenate([score[each.asked].reshape(-1) for score, each in zip(judged, chosen, strict=True)])
    right = np.concatenate([each.wanted[each.asked].reshape(-1) for each in chosen])[np.argsort(-scores)]
    precision = np.cumsum(right) / np.arange(1, len(right) + 1)
    recall = np.cumsum(right) / sum(each.wanted.sum() for each in chosen)
    reached = {floor: float(recall[20:][precision[20:] >= floor].max(initial=0.0)) for floor in (0.9, 0.8, 0.7)}
    return " ".join(f"{found:.3f} at {floor}" for floor, found in reached.items())
