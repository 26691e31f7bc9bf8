"""Reads the weights of an encoder out of an ONNX file that holds them as 8-bit integers: as 32-bit numbers again.

Only what such a file needs is understood: the named tensors of the graph, and which of them each product takes. Field
numbers are those of onnx.proto. The weights are trusted: their hash was compared before.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

_GRAPH, _NODES, _TENSORS = 7, 1, 5  # of the model, and of its graph
_INPUTS, _NAME, _OPERATOR = 1, 3, 4  # of a node
_SIZES, _TYPE, _FLOATS, _INTEGERS, _LABEL, _RAW = 1, 2, 4, 5, 8, 9  # of a tensor
_TYPES: dict[int, np.dtype[Any]] = {1: np.dtype("<f4"), 2: np.dtype("u1"), 3: np.dtype("i1")}
_QUANTISED = "_quantized"
_PRODUCT = "/MatMul_quant"

Fields = Iterator[tuple[int, Any]]


def read_weights(data: bytes) -> dict[str, NDArray[np.float32]]:
    """The weights by the names that BERT's have; those of products stand the other way round than in the graph.

    ValueError when the file has none.
    """
    (graph,) = (value for field, value in _fields(memoryview(data)) if field == _GRAPH)
    tensors: dict[str, NDArray[Any]] = {}
    factors: dict[str, str] = {}  # tensor → weight, by the product that takes it
    for field, value in _fields(graph):
        if field == _TENSORS:
            name, tensor = _tensor(value)
            tensors[name] = tensor
        elif field == _NODES:
            operator, name, inputs = _node(value)
            if operator == "MatMulInteger":
                of = name.strip("/").removesuffix(_PRODUCT).replace("/", ".")
                factors[inputs[1].removesuffix(_QUANTISED)] = f"{of}.weight"
    weights = {name: value for name, value in tensors.items() if name.endswith((".weight", ".bias"))}
    for name, codes in tensors.items():
        if name.endswith(_QUANTISED):
            of = name.removesuffix(_QUANTISED)
            zero, scale = tensors[f"{of}_zero_point"].astype(np.float32), tensors[f"{of}_scale"]
            numbers = (codes.astype(np.float32) - zero) * scale
            weights[factors.get(of, of)] = numbers.T if of in factors else numbers
    if not factors:
        raise ValueError("no ONNX file with 8-bit weights")
    return weights


def _tensor(data: memoryview) -> tuple[str, NDArray[Any]]:
    sizes, name, kind, raw = [], "", 0, b""
    for field, value in _fields(data):
        if field == _SIZES:
            sizes += [value] if isinstance(value, int) else _numbers(value)
        elif field == _TYPE:
            kind = value
        elif field == _LABEL:
            name = bytes(value).decode()
        elif field in (_FLOATS, _RAW):
            raw += bytes(value)
        elif field == _INTEGERS:
            raw += bytes(each & 255 for each in (_numbers(value) if isinstance(value, memoryview) else [value]))
    return name, np.frombuffer(raw, _TYPES[kind]).reshape(sizes)


def _node(data: memoryview) -> tuple[str, str, list[str]]:
    operator, name, inputs = "", "", []
    for field, value in _fields(data):
        if field == _INPUTS:
            inputs.append(bytes(value).decode())
        elif field in (_NAME, _OPERATOR):
            text = bytes(value).decode()
            operator, name = (text, name) if field == _OPERATOR else (operator, text)
    return operator, name, inputs


def _fields(data: memoryview) -> Fields:
    """Number and value of each field of a message: an integer, or the bytes of anything longer."""
    place = 0
    while place < len(data):
        key, place = _varint(data, place)
        if key & 7 == 0:
            value, place = _varint(data, place)
            yield key >> 3, value
            continue
        if key & 7 == 2:
            size, place = _varint(data, place)
        else:
            size = {1: 8, 5: 4}[key & 7]
        yield key >> 3, data[place : place + size]
        place += size


def _numbers(data: memoryview) -> list[int]:
    found, place = [], 0
    while place < len(data):
        value, place = _varint(data, place)
        found.append(value)
    return found


def _varint(data: memoryview, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[place]
        value |= (byte & 127) << shift
        place, shift = place + 1, shift + 7
        if byte < 128:
            return value, place
