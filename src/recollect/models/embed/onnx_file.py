"""Writes an ONNX file: the few messages of the format that our graph needs, straight as protobuf.

The `onnx` package would be a dependency of 9 MB for a conversion that runs once. Field numbers are those of onnx.proto;
the runtime checks the whole graph when it is loaded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

IR_VERSION, OPSET = 9, 20
_TYPES = {"float32": 1, "uint8": 2, "int8": 3, "int32": 6, "int64": 7}
_FLOAT, _INT, _INTS = 1, 2, 7  # AttributeProto.type


class Graph:
    """Nodes in the order they are added, which must be the order of their inputs. A value is known by its name."""

    def __init__(self) -> None:
        self._nodes: list[bytes] = []
        self._constants: list[bytes] = []
        self._inputs: list[bytes] = []
        self._outputs: list[bytes] = []
        self._count = 0

    def input(self, name: str, dtype: str, shape: Sequence[str | int]) -> str:
        self._inputs.append(_value(name, dtype, shape))
        return name

    def output(self, name: str, dtype: str, shape: Sequence[str | int]) -> None:
        self._outputs.append(_value(name, dtype, shape))

    def constant(self, array: NDArray[Any]) -> str:
        name = self._name("c")
        dims = b"".join(_number(1, size) for size in array.shape)
        data = np.ascontiguousarray(array).tobytes()
        self._constants.append(dims + _number(2, _TYPES[array.dtype.name]) + _bytes(8, name.encode()) + _bytes(9, data))
        return name

    def node(self, operator: str, *inputs: str, outputs: int = 1, **attributes: Any) -> Any:
        """The name of its output; a tuple of names when there are several."""
        names = [self._name("v") for _ in range(outputs)]
        message = b"".join(_bytes(1, name.encode()) for name in inputs)
        message += b"".join(_bytes(2, name.encode()) for name in names)
        message += _bytes(4, operator.encode())
        message += b"".join(_bytes(5, _attribute(name, value)) for name, value in attributes.items())
        self._nodes.append(message)
        return names[0] if outputs == 1 else tuple(names)

    def encode(self, notes: Mapping[str, str]) -> bytes:
        """The file. `notes` are kept as its metadata."""
        graph = b"".join(_bytes(1, node) for node in self._nodes) + _bytes(2, b"recollect")
        graph += b"".join(_bytes(5, each) for each in self._constants)
        graph += b"".join(_bytes(11, each) for each in self._inputs) + b"".join(
            _bytes(12, each) for each in self._outputs
        )
        model = _number(1, IR_VERSION) + _bytes(2, b"recollect") + _bytes(7, graph)
        model += _bytes(8, _bytes(1, b"") + _number(2, OPSET)) + _bytes(8, _bytes(1, b"com.microsoft") + _number(2, 1))
        notes_ = (_bytes(1, key.encode()) + _bytes(2, value.encode()) for key, value in notes.items())
        return model + b"".join(_bytes(14, each) for each in notes_)

    def _name(self, prefix: str) -> str:
        self._count += 1
        return f"{prefix}{self._count}"


def _attribute(name: str, value: float | int | Sequence[int]) -> bytes:
    message = _bytes(1, name.encode())
    if isinstance(value, float):
        return message + _tag(2, 5) + np.float32(value).tobytes() + _number(20, _FLOAT)
    if isinstance(value, int):
        return message + _number(3, value) + _number(20, _INT)
    return message + b"".join(_number(8, each) for each in value) + _number(20, _INTS)


def _value(name: str, dtype: str, shape: Sequence[str | int]) -> bytes:
    sizes = (_bytes(2, each.encode()) if isinstance(each, str) else _number(1, each) for each in shape)
    tensor = _number(1, _TYPES[dtype]) + _bytes(2, b"".join(_bytes(1, size) for size in sizes))
    return _bytes(1, name.encode()) + _bytes(2, _bytes(1, tensor))


def _bytes(field: int, data: bytes) -> bytes:
    return _tag(field, 2) + _varint(len(data)) + data


def _number(field: int, value: int) -> bytes:
    return _tag(field, 0) + _varint(value)


def _tag(field: int, wire: int) -> bytes:
    return _varint(field << 3 | wire)


def _varint(value: int) -> bytes:
    value &= 2**64 - 1  # a negative number is its two's complement
    encoded = bytearray()
    while value > 127:
        encoded.append(value & 127 | 128)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)
