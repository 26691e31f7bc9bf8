"""Fits the judgement of `src/recollect/inject/` for one embedder: first `appetite.safetensors`, on the prompts that the
encoder was trained on, then the weights of `relevance.py`, on the writers held out from training and on the fit half of
`recollect bench inject`, each counting as much.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator

import fit
import numpy as np
from fit import Example
from labelled import HELD_OUT, HERE, read
from safetensors.numpy import load_file, save_file

from recollect.inject import relevance
from recollect.models.embed.catalog import NAMES
from recollect.store.vectors import Kind
from recollect.surfaces.bench.inject import NOW, Case, opened, remembered

DIRECTIONS = HERE.parent / "src/recollect/inject/appetite.safetensors"
RIDGE = 3.0
MOST = 4  # memories wanted; more count as so many
EVERY = 3  # of how many prompts one is looked at: so many tell enough


def teach_appetite(embedder: str) -> None:
    """Least squares: from a prompt's vector to how many memories it wants."""
    vectors, counts = [], []
    with opened(embedder, remembered(read("memories")[HELD_OUT[0]])) as memory:
        model = memory.vectors.serving()
        assert model is not None
        for writer, prompts in read("prompts").items():
            for row in prompts[::EVERY] if writer not in HELD_OUT else ():
                asked = relevance.question(row["text"], (), NOW)
                vector = memory.vectors.query(asked.text, Kind.MEMORY) if asked else None
                if vector is not None:
                    vectors.append(vector)
                    counts.append(min(len(row["wanted"]), MOST))
    table, wanted = np.array(vectors, np.float64), np.array(counts, np.float64)
    table -= table.mean(axis=0)
    found = np.linalg.solve(table.T @ table + RIDGE * np.eye(table.shape[1]), table.T @ (wanted - wanted.mean()))
    others = {name: row for name, row in load_file(DIRECTIONS).items() if name in NAMES.values()}
    save_file({**others, model.name: found.astype(np.float16)}, DIRECTIONS)


def examples(embedder: str) -> Iterator[Example]:
    memories, prompts = read("memories"), read("prompts")
    before = 0
    for writer in HELD_OUT:
        cases = [
            Case("", row["project"], row["kind"], row["text"], frozenset(row["wanted"])) for row in prompts[writer]
        ]
        with opened(embedder, remembered(memories[writer])) as memory:
            for number, found, right in fit.examples(memory, cases):
                yield before + number, found, right
        before += len(cases)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("embedder", nargs="?", default="arctic", choices=[*NAMES])
    given = options.parse_args()
    teach_appetite(given.embedder)
    print(json.dumps(fit.run(given.embedder, list(examples(given.embedder))), indent=2))


if __name__ == "__main__":
    main()
