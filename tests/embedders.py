"""Embedders for tests: the real transformers, beside the program as `make` puts them, and one without intelligence.

The transformers' weights come from the package index. Where that cannot be reached, and only there, the tests that
need them are skipped. The larger one (405 MB) belongs to `make test-models`, and lies in a folder of its own: what
`auto` means must not change while other tests run.
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
from recollect.models.embed.catalog import BESIDE, FOLDERS
from recollect.models.embed.install import InstallFailed, install
from recollect.text import words

TRANSFORMERS = ["minilm", pytest.param("mpnet", marks=pytest.mark.models)]


@cache
def installed(name: str = "minilm") -> Path:
    """The folder of models, with this one in it."""
    models = BESIDE if name == "minilm" else BESIDE.with_name(f"{BESIDE.name}-{name}")
    models.mkdir(parents=True, exist_ok=True)
    with (models / ".lock").open("w") as lock:  # workers of pytest-xdist begin at the same time
        fcntl.flock(lock, fcntl.LOCK_EX)
        small = models / FOLDERS["minilm"]
        if name != "minilm" and not small.exists():
            small.symlink_to(installed() / FOLDERS["minilm"])
        try:
            install(name, models)
        except InstallFailed as error:
            if "offline" not in error.hint:
                raise
            pytest.skip(f"{name} cannot be installed: {error.message}")
    return models


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
