"""From the weights of a sentence encoder to an ONNX graph that computes with 8-bit integers.

Activations are quantised row by row, each token by its own largest value, so that a vector does not depend on what
else is in the batch (one scale for the whole batch moved vectors by up to 0.03 in cosine). Weights take 7 bits: on
processors without VNNI, products of 8-bit weights overflow silently. Measured against MiniLM in 32 bits: cosine 0.996,
a quarter of the size, 2.3 times the speed. Weights that came in 7 bits keep every one of them.

The graph takes token numbers and a mask, and gives the masked sum of the last layer, or its first token: the direction
is the embedding.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recollect.models.embed.onnx_file import Graph

LONGEST = 256  # tokens
_FLOAT = 1  # ONNX's number of the type
_ACTIVATION = 127  # largest quantised value
_EPSILON = 1e-12
_FAR = 10_000.0  # what a masked position is pushed down by

Weights = Mapping[str, NDArray[Any]]


@dataclass(frozen=True, slots=True)
class Shape:
    layers: int
    heads: int
    hidden: int
    epsilon: float  # of its norms
    by_first: bool  # the first token stands for the text, else the sum of all
    largest: int  # quantised weight, 64 at the most; what came quantised keeps every weight by its own


MINILM = Shape(layers=6, heads=12, hidden=384, epsilon=1e-12, by_first=False, largest=63)
ARCTIC = Shape(layers=12, heads=12, hidden=384, epsilon=1e-12, by_first=True, largest=64)


def build(weights: Weights, shape: Shape, notes: Mapping[str, str]) -> bytes:
    """The ONNX file. KeyError when the weights are not those of the model."""
    return _Builder(weights, shape).build(notes)


class _Builder:
    def __init__(self, weights: Weights, shape: Shape) -> None:
        self._weights = weights
        self._shape = shape
        self._graph = Graph()

    def build(self, notes: Mapping[str, str]) -> bytes:
        graph = self._graph
        ids = graph.input("ids", "int64", ["batch", "tokens"])
        mask = graph.input("mask", "float32", ["batch", "tokens"])
        bias = graph.node("Mul", graph.node("Sub", mask, self._floats(1.0)), self._floats(_FAR))
        bias = graph.node("Unsqueeze", bias, self._ints(1, 2))
        value = self._embed(ids)
        for number in range(self._shape.layers):
            value = self._layer(value, bias, f"encoder.layer.{number}.")
        if self._shape.by_first:
            whole = graph.node("Gather", value, graph.constant(np.array(0, np.int64)), axis=1)
        else:
            summed = graph.node("MatMul", graph.node("Unsqueeze", mask, self._ints(1)), value)
            whole = graph.node("Squeeze", summed, self._ints(1))
        graph.output(whole, "float32", ["batch", self._shape.hidden])
        return graph.encode(notes)

    def _embed(self, ids: str) -> str:
        """Word, position and type of each token. The table of words is kept in 8 bits, a scale per word."""
        graph, table = self._graph, self._weights["embeddings.word_embeddings.weight"]
        scales = np.maximum(np.abs(table).max(axis=1, keepdims=True), _EPSILON) / 127
        rounded = graph.node("Gather", graph.constant(np.rint(table / scales).astype(np.int8)), ids)
        scale = graph.node("Gather", graph.constant(scales.astype(np.float32)), ids)
        words = graph.node("Mul", graph.node("Cast", rounded, to=_FLOAT), scale)
        places = self._weights["embeddings.position_embeddings.weight"][:LONGEST]
        places = places + self._weights["embeddings.token_type_embeddings.weight"][0]
        length = graph.node("Shape", ids, start=1, end=2)
        zero = self._ints(0)
        here = graph.node("Slice", graph.constant(places.astype(np.float32)), zero, length, zero)
        return self._norm(graph.node("Add", words, here), "embeddings.LayerNorm")

    def _layer(self, value: str, bias: str, name: str) -> str:
        graph = self._graph
        attended = self._linear(self._attend(value, bias, f"{name}attention.self."), f"{name}attention.output.dense")
        value = self._norm(graph.node("Add", attended, value), f"{name}attention.output.LayerNorm")
        wide = graph.node("Gelu", self._linear(value, f"{name}intermediate.dense"))
        narrow = self._linear(wide, f"{name}output.dense")
        return self._norm(graph.node("Add", narrow, value), f"{name}output.LayerNorm")

    def _attend(self, value: str, bias: str, name: str) -> str:
        graph, shape = self._graph, self._shape
        size = shape.hidden // shape.heads
        heads, flat = self._ints(0, 0, shape.heads, size), self._ints(0, 0, shape.hidden)
        parts = [f"{name}{each}" for each in ("query", "key", "value")]
        split = graph.node("Split", self._linear(value, *parts), outputs=3, axis=-1, num_outputs=3)
        shaped = [graph.node("Reshape", each, heads) for each in split]
        orders = ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3])
        query, key, content = (
            graph.node("Transpose", each, perm=order) for each, order in zip(shaped, orders, strict=True)
        )
        scores = graph.node("Mul", graph.node("MatMul", query, key), self._floats(size**-0.5))
        attention = graph.node("Softmax", graph.node("Add", scores, bias), axis=-1)
        mixed = graph.node("Transpose", graph.node("MatMul", attention, content), perm=[0, 2, 1, 3])
        return str(graph.node("Reshape", mixed, flat))

    def _linear(self, value: str, *names: str) -> str:
        """`value` times the weights of these layers side by side, plus their biases."""
        graph = self._graph
        weight = np.concatenate([self._weights[f"{name}.weight"] for name in names]).T
        bias = np.concatenate([self._weights[f"{name}.bias"] for name in names])
        scales = np.maximum(np.abs(weight).max(axis=0), _EPSILON) / self._shape.largest
        rounded = graph.constant(np.rint(weight / scales).astype(np.int8))
        largest = graph.node("ReduceMax", graph.node("Abs", value), self._ints(-1), keepdims=1)
        largest = graph.node("Max", largest, self._floats(1e-9))
        step = graph.constant(np.array(1 / _ACTIVATION, np.float32))
        middle = graph.constant(np.array(128, np.uint8))
        quantised = graph.node("QuantizeLinear", graph.node("Div", value, largest), step, middle)
        zeros = graph.constant(np.zeros(len(bias), np.int8))
        product = graph.node("Cast", graph.node("MatMulInteger", quantised, rounded, middle, zeros), to=_FLOAT)
        scale = graph.constant((scales / _ACTIVATION).astype(np.float32))
        scaled = graph.node("Mul", graph.node("Mul", product, largest), scale)
        return str(graph.node("Add", scaled, graph.constant(bias)))

    def _norm(self, value: str, name: str) -> str:
        gain, shift = (self._graph.constant(self._weights[f"{name}.{part}"]) for part in ("weight", "bias"))
        return str(self._graph.node("LayerNormalization", value, gain, shift, axis=-1, epsilon=self._shape.epsilon))

    def _ints(self, *values: int) -> str:
        return self._graph.constant(np.array(values, np.int64))

    def _floats(self, *values: float) -> str:
        return self._graph.constant(np.array(values, np.float32))
