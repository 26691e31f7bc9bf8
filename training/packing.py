"""What a training changed, as it lies in a file of `src/recollect/models/embed/`: `tuning.py` there reads it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from recollect.models.embed.tuning import BITS, STEPS, Weights

PLANES = 3  # bits that are kept of each number
STEP = 0.586  # of the spread of a row: so three bits lose least


def packed(changes: Weights) -> dict[str, NDArray[Any]]:
    result: dict[str, NDArray[Any]] = {}
    for name, change in changes.items():
        if change.ndim == 1:
            result[name] = change.astype(np.float16)
            continue
        steps = (STEP * change.std(axis=1)).astype(np.float32)
        most = 2**PLANES - 1
        codes = np.clip(np.floor(change / steps[:, None]) + (most + 1) / 2, 0, most).astype(np.uint8)
        result[name + BITS] = np.stack([np.packbits(codes >> plane & 1) for plane in range(PLANES)])
        result[name + STEPS] = steps
    return result
