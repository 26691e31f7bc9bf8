"""What training changed in the weights of the encoder of memories, added to them when they are converted.

It was trained on sentences that mean the same; a prompt and the memory that it wants rarely do ("is it safe to ship on
a Friday?" wants the hours in which nothing is deployed). A file holds the differences: of each number of a matrix three
bits, in steps of its row's own, one plane of bits after the other. Where they come from: training/README.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import resources
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recollect.models.embed.safetensors import read_tensors

BITS, STEPS = ".bits", ".steps"  # of a matrix: planes × bytes, and a step per row

Weights = Mapping[str, NDArray[Any]]


def read(name: str) -> dict[str, NDArray[Any]]:
    """A file of this folder, its matrices unpacked."""
    return unpacked(read_tensors((resources.files("recollect.models.embed") / f"{name}.safetensors").read_bytes()))


def add(weights: Weights, changes: Weights) -> dict[str, NDArray[Any]]:
    """The weights after training. KeyError when they are not those that were trained."""
    return {**weights, **{name: weights[name] + change for name, change in changes.items()}}


def unpacked(file: Weights) -> dict[str, NDArray[Any]]:
    result: dict[str, NDArray[Any]] = {}
    for name, value in file.items():
        if name.endswith(BITS):
            of = name.removesuffix(BITS)
            result[of] = _numbers(value, file[of + STEPS])
        elif not name.endswith(STEPS):
            result[name] = value.astype(np.float32)
    return result


def _numbers(planes: NDArray[Any], steps: NDArray[Any]) -> NDArray[np.float32]:
    bits = np.unpackbits(planes, axis=1).astype(np.float32)  # rows have a multiple of eight numbers
    codes = np.tensordot(2.0 ** np.arange(len(planes), dtype=np.float32), bits, 1).reshape(len(steps), -1)
    return np.asarray((codes - (2 ** len(planes) - 1) / 2) * steps[:, None], np.float32)
