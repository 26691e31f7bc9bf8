"""What training changed in the weights of MiniLM, added to them when they are converted.

The model was trained on sentences that mean the same; a prompt and the memory that it wants rarely do ("is it safe to
ship on a Friday?" wants the hours in which nothing is deployed). `tuning.safetensors` holds the differences: of a
matrix three bits of each number, in steps of its row's own, one plane of bits after the other. Where they come from:
training/README.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import resources
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recollect.models.embed.safetensors import read_tensors

BITS, STEPS = ".bits", ".steps"  # of a matrix: planes × bytes, and a step per row
_PLANES = 3
_MIDDLE = 2 ** (_PLANES - 1) - 0.5
_STEP = 0.586  # of the spread of a row: with three bits it loses least

Weights = Mapping[str, NDArray[Any]]


def tuned(weights: Weights) -> dict[str, NDArray[Any]]:
    """The weights after training. KeyError when they are not those that were trained."""
    file = resources.files("recollect.models.embed") / "tuning.safetensors"
    return add(weights, read_tensors(file.read_bytes()))


def add(weights: Weights, differences: Weights) -> dict[str, NDArray[Any]]:
    result = dict(weights)
    for name, value in differences.items():
        if name.endswith(STEPS):
            continue
        of = name.removesuffix(BITS)
        added = value.astype(np.float32) if name == of else _unpacked(value, differences[of + STEPS], weights[of].shape)
        result[of] = weights[of] + added
    return result


def packed(changes: Weights) -> dict[str, NDArray[Any]]:
    """As `add` takes them."""
    result: dict[str, NDArray[Any]] = {}
    for name, change in changes.items():
        if change.ndim == 1:
            result[name] = change.astype(np.float16)
            continue
        steps = (_STEP * change.std(axis=1)).astype(np.float32)
        codes = np.clip(np.floor(change / steps[:, None]) + _MIDDLE + 0.5, 0, 2 * _MIDDLE).astype(np.uint8)
        result[name + BITS] = np.stack([np.packbits(codes >> plane & 1) for plane in range(_PLANES)])
        result[name + STEPS] = steps
    return result


def _unpacked(planes: NDArray[Any], steps: NDArray[Any], shape: tuple[int, ...]) -> NDArray[np.float32]:
    bits = np.unpackbits(planes, axis=1, count=shape[0] * shape[1]).astype(np.float32)
    codes = np.tensordot(2.0 ** np.arange(_PLANES, dtype=np.float32), bits, 1).reshape(shape)
    return np.asarray((codes - _MIDDLE) * steps[:, None], np.float32)
