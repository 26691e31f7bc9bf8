"""What an embedder is: texts in, a matrix out. A text's vector depends on that text alone, never on its neighbours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray

from recollect.errors import RecollectError

Matrix = NDArray[np.float32]


class ModelMissing(RecollectError):
    """The embedding model is not installed."""

    hint = "Run `recollect models install arctic`, or set `embedder` to `static`."


class Embedder(Protocol):
    @property
    def id(self) -> str:
        """Model and version. Every stored vector knows it; vectors of two ids are not comparable."""
        ...

    @property
    def dimensions(self) -> int: ...

    @property
    def has_two_views(self) -> bool:
        """Whether it sees memories in another way than the rest."""
        ...

    @property
    def of_memories(self) -> Embedder:
        """For memories, and for what they are looked for with. Vectors of the two views are not comparable."""
        ...

    def embed(self, texts: Sequence[str]) -> Matrix:
        """A row of length 1 per text; a row of zeros for a text that has nothing in it."""
        ...

    def embed_question(self, text: str) -> Matrix:
        """The row of a text that looks for others."""
        ...


class OneView:
    """An embedder that sees memories and questions like anything else."""

    has_two_views = False

    @property
    def of_memories(self) -> Self:
        return self

    def embed(self, texts: Sequence[str]) -> Matrix:
        raise NotImplementedError

    def embed_question(self, text: str) -> Matrix:
        row: Matrix = self.embed([text])[0]
        return row


def unit(rows: Matrix) -> Matrix:
    """Rows of length 1; rows of zeros stay."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.where(lengths > 0, lengths, 1.0), np.float32)


def encodable(text: str) -> str:
    """Half a surrogate pair is no text that a tokenizer or a server would take."""
    return text.encode("utf-8", "replace").decode()
