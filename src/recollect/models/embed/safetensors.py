"""Reads the safetensors format: eight bytes of length, a JSON header, then the numbers as they are."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

_TYPES: dict[str, np.dtype[Any]] = {
    "F32": np.dtype("<f4"),
    "F16": np.dtype("<f2"),
    "I64": np.dtype("<i8"),
    "U8": np.dtype("u1"),
}


def read_tensors(data: bytes) -> dict[str, NDArray[Any]]:
    """Every tensor, as views into `data`. ValueError when it is something else."""
    try:
        start = 8 + int.from_bytes(data[:8], "little")
        header = msgspec.json.decode(data[8:start])
        header.pop("__metadata__", None)
        return {
            name: np.frombuffer(
                data, _TYPES[each["dtype"]], math.prod(each["shape"]), start + each["data_offsets"][0]
            ).reshape(each["shape"])
            for name, each in header.items()
        }
    except (msgspec.DecodeError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"no safetensors file: {error}") from error
