"""Embedders for tests: the real transformer, beside the program as `make` puts them, and one without intelligence.

The transformer's weights come from the package index. Where that cannot be reached, and only there, the tests that
need them are skipped.
"""

from __future__ import annotations

import fcntl
import hashlib
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from recollect.models.embed.base import Matrix, OneView, unit
from recollect.models.embed.catalog import BESIDE
from recollect.models.embed.install import InstallFailed, install
from recollect.text import words


@cache
def installed() -> Path:
    """The folder of models, with the transformer in it."""
    BESIDE.mkdir(parents=True, exist_ok=True)
    with (BESIDE / ".lock").open("w") as lock:  # workers of pytest-xdist begin at the same time
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            install("arctic", BESIDE)
        except InstallFailed as error:
            if "offline" not in error.hint:
                raise
            pytest.skip(f"arctic cannot be installed: {error.message}")
    return BESIDE


class Hashed(OneView):
    """Every word has a direction of its own: texts are as alike as the words they share. Fast, and always the same."""

    def __init__(self, id: str = "hashed/1", dimensions: int = 64) -> None:
        self.id = id
        self.dimensions = dimensions
        self.texts: list[str] = []  # everything it was asked for

    def embed(self, texts: Sequence[str]) -> Matrix:
        self.texts += texts
        rows = np.zeros((len(texts), self.dimensions), np.float32)
        for row, text in zip(rows, texts, strict=True):
            for word in words(text):
                row += self._direction(word)
        return unit(rows)

    def _direction(self, word: str) -> Matrix:
        seed = hashlib.sha256(f"{self.id} {word}".encode()).digest()[:8]
        return np.random.default_rng(int.from_bytes(seed)).standard_normal(self.dimensions).astype(np.float32)
