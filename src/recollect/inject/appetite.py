"""How many memories a prompt like this one wants, whatever there is: about none for "what year was that?", two or three
for "write the release notes".

One direction among the vectors of each embedder that has one, from the labelled prompts of training/ (`judge.py`
there). It moves the judgement of `relevance.py` a little; which memories are meant it does not know.
"""

from __future__ import annotations

from functools import cache
from importlib import resources

import numpy as np

from recollect.models.embed.base import Matrix
from recollect.models.embed.safetensors import read_tensors


def appetite(model: str, vector: Matrix | None) -> float:
    """0 where nobody knows."""
    direction = _directions().get(model)
    return 0.0 if direction is None or vector is None else float(np.dot(vector, direction))


@cache
def _directions() -> dict[str, Matrix]:
    """By the id of the embedder: those of another training are none."""
    file = resources.files("recollect.inject") / "appetite.safetensors"
    return {model: row.astype(np.float32) for model, row in read_tensors(file.read_bytes()).items()}
