"""The static embedder: the mean of token vectors, with the weights that the `wordllama` package ships.

The package itself is not imported: its loader looks for the tokenizer in the wrong folder and then on the network, and
its import sets up logging for the whole process. Its two files are read instead, which is also ten times faster.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from recollect.models.embed import catalog
from recollect.models.embed.base import Matrix, ModelMissing, OneView, encodable, unit
from recollect.models.embed.safetensors import read_tensors

_LONGEST = 4000  # characters; what comes after them moves a mean very little


class Static(OneView):
    id = catalog.STATIC
    dimensions = 256

    def __init__(self) -> None:
        from tokenizers import Tokenizer

        folder = _package()
        weights = folder / "weights" / "l2_supercat_256.safetensors"
        self._vectors = read_tensors(weights.read_bytes())["embedding.weight"]  # 16-bit floats
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizers" / "l2_supercat_tokenizer_config.json"))
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()

    def embed(self, texts: Sequence[str]) -> Matrix:
        rows = np.zeros((len(texts), self.dimensions), np.float32)
        whole = [encodable(text.strip()[:_LONGEST]) for text in texts]
        for row, encoded in zip(rows, self._tokenizer.encode_batch_fast(whole, add_special_tokens=False), strict=True):
            if encoded.ids:
                self._vectors[encoded.ids].sum(axis=0, dtype=np.float32, out=row)
        return unit(rows)


def _package() -> Path:
    found = importlib.util.find_spec("wordllama")
    if found is None or found.origin is None:
        raise ModelMissing(
            "the package wordllama, which holds the static model, is missing", hint="Reinstall recollect."
        )
    return Path(found.origin).parent
