"""Trains MPNet: what `mpnet.safetensors` and `turn.safetensors` of `src/recollect/models/embed/` hold. See README.md.

Five times MiniLM: its weights stay as they are, in 16 bits, and products of two narrow matrices beside those of its
upper layers are learnt, with the gains of their norms. Of the prompts that want nothing each step takes half, counted
twice.
"""

from __future__ import annotations

import argparse
import math
import random
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from judging import ACROSS, RANKING, Floats, Project, by_words, curve, everybody, order
from labelled import HELD_OUT, HERE, read
from packing import packed
from safetensors.numpy import save_file
from safetensors.torch import load_file
from tokenizers import Tokenizer
from torch import Tensor, nn
from torch.nn import functional as F

from recollect.models.embed import bert, catalog
from recollect.models.embed.base import unit
from recollect.models.embed.bert import build
from recollect.models.embed.safetensors import read_tensors
from recollect.models.embed.transformer import Encoder
from recollect.models.embed.tuning import DOWN, UP, add, unpacked

OUT = HERE.parent / "src/recollect/models/embed"

SEED, RATE, EPOCHS, WARM_UP = 11, 5e-4, 1.6, 60  # warming up: steps
RANK, SCALE = 32, 2.0  # of a product; queries, keys and values share one of twice the rank
LOWEST = 3  # layers below learn nothing
LONGEST, CHUNK = 128, 1400  # tokens of a text, and of what is computed at a time
PLANES = 5  # bits that are kept of each number
SAMPLE = 5_000  # texts from which the turn is computed
BESIDE = 0.5  # what the similarity of MiniLM counts beside MPNet's


class Learning(nn.Module):
    """One or several matrices above each other, as they are, and what is added to them."""

    def __init__(self, weights: dict[str, Tensor], names: Sequence[str], rank: int) -> None:
        super().__init__()
        self.names = names
        weight = torch.cat([weights[f"{name}.weight"] for name in names])
        self.register_buffer("weight", weight.bfloat16(), False)
        self.register_buffer("bias", torch.cat([weights[f"{name}.bias"] for name in names]).bfloat16(), False)
        if rank:
            self.down = nn.Parameter(torch.randn(rank, weight.shape[1]) / math.sqrt(3 * weight.shape[1]))
            self.up = nn.Parameter(torch.zeros(len(weight), rank))
        self.rank = rank

    def forward(self, value: Tensor) -> Tensor:
        said = F.linear(value, self.weight, self.bias)
        if self.rank:
            said = said + F.linear(F.linear(value, self.down.bfloat16()), (self.up * SCALE).bfloat16())
        return said


class Layer(nn.Module):
    def __init__(self, weights: dict[str, Tensor], number: int) -> None:
        super().__init__()
        name, rank = f"encoder.layer.{number}.", RANK if number >= LOWEST else 0
        self.parts = Learning(weights, [f"{name}attention.attn.{each}" for each in "qkv"], 2 * rank)
        self.out = Learning(weights, [f"{name}attention.attn.o"], rank)
        self.wide = Learning(weights, [f"{name}intermediate.dense"], rank)
        self.narrow = Learning(weights, [f"{name}output.dense"], rank)
        self.norms = nn.ParameterDict(
            {
                f"{norm}.{part}".replace(".", "/"): nn.Parameter(weights[f"{name}{norm}.{part}"].float(), bool(rank))
                for norm in ("attention.LayerNorm", "output.LayerNorm")
                for part in ("weight", "bias")
            }
        )

    def forward(self, value: Tensor, bias: Tensor) -> Tensor:
        batch, length, size = value.shape
        heads = self.parts(value).view(batch, length, 3, bert.MPNET.heads, -1).permute(2, 0, 3, 1, 4)
        scores = heads[0] @ heads[1].transpose(-1, -2) * heads.shape[-1] ** -0.5 + bias
        mixed = (torch.softmax(scores, -1) @ heads[2]).transpose(1, 2).reshape(batch, length, size)
        value = self._norm(value + self.out(mixed), "attention/LayerNorm")
        return self._norm(value + self.narrow(F.gelu(self.wide(value))), "output/LayerNorm")

    def _norm(self, value: Tensor, name: str) -> Tensor:
        gain, shift = self.norms[f"{name}/weight"], self.norms[f"{name}/bias"]
        return F.layer_norm(value.float(), gain.shape, gain, shift, bert.MPNET.epsilon).bfloat16()


class MPNet(nn.Module):
    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.weights = load_file(folder / "model.safetensors")
        self.layers = nn.ModuleList(Layer(self.weights, number) for number in range(bert.MPNET.layers))
        self.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.tokenizer.no_padding()
        self.tokenizer.enable_truncation(LONGEST)

    def forward(self, texts: Sequence[str]) -> Tensor:
        tokens = [each.ids for each in self.tokenizer.encode_batch_fast(list(texts))]
        parts, now = [], []
        for place in sorted(range(len(tokens)), key=lambda each: len(tokens[each])):
            if now and len(tokens[place]) * (len(now) + 1) > CHUNK:
                parts.append(now)
                now = []
            now.append(place)
        parts.append(now)
        rows = torch.cat([self._run([tokens[place] for place in part]) for part in parts])
        return rows[torch.tensor(np.argsort([place for part in parts for place in part]))]

    def _run(self, tokens: list[list[int]]) -> Tensor:
        length = max(map(len, tokens))
        ids = torch.tensor([[*each, *[1] * (length - len(each))] for each in tokens])
        mask = torch.tensor([[1.0] * len(each) + [0.0] * (length - len(each)) for each in tokens])
        table = self.weights["encoder.relative_attention_bias.weight"]
        apart = table[torch.tensor(bert._buckets(length, len(table)))].permute(2, 0, 1)
        bias = (apart + ((mask - 1) * 1e4)[:, None, None, :]).bfloat16()
        value = self.weights["embeddings.word_embeddings.weight"][ids]
        value = value + self.weights["embeddings.position_embeddings.weight"][torch.arange(length) + 2]
        gain, shift = (self.weights[f"embeddings.LayerNorm.{part}"] for part in ("weight", "bias"))
        value = F.layer_norm(value, gain.shape, gain, shift, bert.MPNET.epsilon).bfloat16()
        with torch.no_grad():
            for layer in self.layers[:LOWEST]:
                value = layer(value, bias)
        for layer in self.layers[LOWEST:]:
            value = layer(value, bias)
        return F.normalize((value.float() * mask[..., None]).sum(1), dim=1)

    def alike(self, project: Project) -> Tensor:
        rows = self([*project.prompts, *project.memories])
        return rows[: len(project.prompts)] @ rows[len(project.prompts) :].T

    def changes(self) -> dict[str, np.ndarray[Any, Any]]:
        """What was learnt, by the names of the weights."""
        found = {}
        for number, layer in enumerate(self.layers):
            for name, value in layer.norms.items():
                of = f"encoder.layer.{number}.{name.replace('/', '.')}"
                found[of] = (value.detach() - self.weights[of]).numpy()
            for each in (layer.parts, layer.out, layer.wide, layer.narrow):
                if each.rank:
                    of = "+".join(f"{name}.weight" for name in each.names)
                    found[of + UP] = SCALE * each.up.detach().numpy()
                    found[of + DOWN] = each.down.detach().numpy()
        return {name: value for name, value in found.items() if value.any()}


def loss_of(model: MPNet, project: Project, weights: Floats, scale: Tensor, bias: Tensor) -> Tensor:
    some = project.wanted.sum(1) > 0
    kept = np.flatnonzero(project.asked & (some | (np.array([random.random() for _ in some]) < 0.5)))
    rows = model([*(project.prompts[each] for each in kept), *project.memories])
    rest = torch.tensor(project.said[kept] @ weights[1:-1] + weights[-1]).float()
    logits = scale * rows[: len(kept)] @ rows[len(kept) :].T + rest + bias
    wanted = torch.tensor(project.wanted[kept]).float()
    counts = torch.tensor(np.where(some[kept], 1.0, 2.0)).float()[:, None]
    loss = (F.binary_cross_entropy_with_logits(logits, wanted, reduction="none") * counts).sum() / len(project.prompts)
    return loss + RANKING * order(logits, wanted) + ACROSS * order(logits.T, wanted.T)


def train(model: MPNet, weights: Floats, chosen: list[Project]) -> None:
    scale, bias = nn.Parameter(torch.tensor(float(weights[0]))), nn.Parameter(torch.tensor(0.0))
    learning = [each for each in model.parameters() if each.requires_grad]
    groups = [{"params": learning, "weight_decay": 0.01}, {"params": [scale, bias], "lr": 1e-2, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=RATE)
    steps = int(EPOCHS * len(chosen))
    slope = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min((step + 1) / WARM_UP, max(0.01, 1 - step / steps))
    )
    began, losses = time.monotonic(), []
    for step, project in enumerate(_drawn(chosen, steps), start=1):
        loss = loss_of(model, project, weights, scale, bias)
        loss.backward()
        losses.append(loss.item())
        nn.utils.clip_grad_norm_(learning, 1.0)
        optimizer.step()
        slope.step()
        optimizer.zero_grad()
        if step % 20 == 0:
            print(f"{step} of {steps}: loss {np.mean(losses[-20:]):.3f}, {time.monotonic() - began:.0f} s", flush=True)


def _drawn(chosen: list[Project], steps: int) -> Iterator[Project]:
    """Each once, then each once more."""
    for number in range(steps):
        if number % len(chosen) == 0:
            now = random.sample(chosen, len(chosen))
        yield now[number % len(chosen)]


def turned(folder: Path, changes: dict[str, np.ndarray[Any, Any]], minilm: Path) -> np.ndarray[Any, Any]:
    """What brings vectors of both models, side by side, to the numbers that say most: the principal directions of texts
    that were trained on. Made with the graphs that will be used."""
    place = Path(tempfile.mkdtemp())
    weights = read_tensors((folder / "model.safetensors").read_bytes())
    (place / catalog.OF_MEMORIES).write_bytes(build(add(weights, changes), bert.MPNET, {}))
    (place / catalog.TOKENIZER).write_bytes((folder / "tokenizer.json").read_bytes())
    texts = [
        row["text"]
        for name in ("memories", "prompts")
        for writer, rows in read(name).items()
        if writer not in HELD_OUT
        for row in rows
    ]
    texts = random.Random(SEED).sample(texts, SAMPLE)
    rows = [
        part * Encoder(where, catalog.OF_MEMORIES, size, 2).embed(texts)
        for where, size, part in (
            (minilm, bert.MINILM.hidden, math.sqrt(BESIDE)),
            (place, bert.MPNET.hidden, 1.0),
        )
    ]
    both = unit(np.concatenate(rows, axis=1))
    _, directions = np.linalg.eigh(both.T.astype(np.float64) @ both)
    first = directions[:, ::-1][:, : bert.MINILM.hidden].T
    first[:, : bert.MINILM.hidden] *= math.sqrt(BESIDE)
    return np.asarray(first)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument(
        "model", type=Path, help="folder with model.safetensors and tokenizer.json of all-mpnet-base-v2"
    )
    options.add_argument("minilm", type=Path, help="folder of the installed MiniLM")
    given = options.parse_args()
    random.seed(SEED)
    torch.manual_seed(SEED)
    model = MPNet(given.model)
    chosen, development = everybody()
    weights = by_words(model.alike, random.sample(chosen, 12))
    train(model, weights, chosen)
    print(f"recall of pairs {curve(model.alike, development, weights)}", flush=True)
    file = packed(model.changes(), PLANES)
    save_file(file, OUT / "mpnet.safetensors")
    save_file({"turn": turned(given.model, unpacked(file), given.minilm).astype(np.float16)}, OUT / "turn.safetensors")


if __name__ == "__main__":
    main()
