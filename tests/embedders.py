"""Embedders for tests: the real transformers, beside the program as `make` puts them, and one without intelligence.

The transformers' weights come from the package index. Where that cannot be reached, and only there, the tests that
need them are skipped; the larger one is fetched by CI alone.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from recollect.models.embed import catalog
from recollect.models.embed.base import Matrix, OneView, unit
from recollect.models.embed.catalog import BESIDE
from recollect.models.embed.install import InstallFailed, install
from recollect.text import words


@cache
def installed(name: str = "minilm") -> Path:
    """The folder of models, with this one in it."""
    BESIDE.mkdir(parents=True, exist_ok=True)
    with (BESIDE / ".lock").open("w") as lock:  # workers of pytest-xdist begin at the same time
        fcntl.flock(lock, fcntl.LOCK_EX)
        if name == "mpnet" and name not in catalog.installed(BESIDE) and not os.environ.get("CI"):
            pytest.skip("405 MB: `recollect models install mpnet` first")
        try:
            install(name, BESIDE)
        except InstallFailed as error:
            if "offline" not in error.hint:
                raise
            pytest.skip(f"{name} cannot be installed: {error.message}")
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
