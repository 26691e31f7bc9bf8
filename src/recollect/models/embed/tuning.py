"""What training changed in the weights of MiniLM, added to them when they are converted.

The model was trained on sentences that mean the same; a prompt and the memory that it wants rarely do ("is it safe to
ship on a Friday?" wants the hours in which nothing is deployed). `tuning.safetensors` holds the differences, each
matrix as the product of two thin ones. Where they come from: training/README.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import resources
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recollect.models.embed.safetensors import read_tensors

LEFT, RIGHT, SCALE = ".left", ".right", ".scale"  # of a matrix: tall and wide ones of 8 bits, what each pair counts

Weights = Mapping[str, NDArray[Any]]


def tuned(weights: Weights) -> dict[str, NDArray[Any]]:
    """The weights after training. KeyError when they are not those that were trained."""
    file = resources.files("recollect.models.embed") / "tuning.safetensors"
    return add(weights, read_tensors(file.read_bytes()))


def add(weights: Weights, differences: Weights) -> dict[str, NDArray[Any]]:
    result = dict(weights)
    for name, value in differences.items():
        if name.endswith((RIGHT, SCALE)):
            continue
        of = name.removesuffix(LEFT)
        added = value.astype(np.float32)
        if name != of:
            added = added * differences[of + SCALE] @ differences[of + RIGHT].astype(np.float32)
        result[of] = weights[of] + added
    return result
