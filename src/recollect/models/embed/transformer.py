"""The transformers, through onnxruntime, from the folder that `recollect models install` filled.

What was said is seen by snowflake-arctic-embed-s as it comes; a question to it begins with an instruction. Memories,
and prompts that look for them, are seen by an all-MiniLM-L6-v2 that was trained to tell which memories a prompt wants
(tuning.py): trained for one thing, a model so small gets worse at the other.

One thread by default: on a machine that does other things, two are slower than one. English, 256 tokens of a text.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from pathlib import Path

import numpy as np

from recollect.models.embed import catalog
from recollect.models.embed.base import Embedder, Matrix, ModelMissing, OneView, encodable, unit
from recollect.models.embed.bert import ARCTIC, LONGEST, MINILM, Shape
from recollect.models.embed.catalog import MODEL, OF_MEMORIES, TOKENIZER

_BATCH = 16
_INSTRUCTION = "Represent this sentence for searching relevant passages: "  # as its authors trained it
_EDGES = 2  # tokens around every text
_CHARACTERS = LONGEST * 12  # more than the tokens that are looked at can have; the rest need not be split into tokens


class Encoder:
    """One graph and its tokenizer."""

    def __init__(self, folder: Path, file: str, shape: Shape, threads: int) -> None:
        os.environ["ORT_DISABLE_TELEMETRY"] = "1"  # before it is imported: it would keep and send events of its own
        import onnxruntime  # not above: it is slow
        from tokenizers import Tokenizer

        onnxruntime.disable_telemetry_events()

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 3
        try:
            self._session = onnxruntime.InferenceSession(
                os.fspath(folder / file), options, providers=["CPUExecutionProvider"]
            )
            self._tokenizer = Tokenizer.from_file(os.fspath(folder / TOKENIZER))
        except Exception as error:  # reason: both libraries raise what they like when a file is damaged
            hint = f"Remove {folder} and run `recollect models install` again."
            raise ModelMissing(f"the model in {folder} cannot be loaded: {error}", hint=hint) from error
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(LONGEST)
        self._unknown = self._tokenizer.token_to_id("[UNK]")
        self._dimensions, self._threads = shape.hidden, threads

    def embed(self, texts: Sequence[str], instruction: str = "") -> Matrix:
        rows = np.zeros((len(texts), self._dimensions), np.float32)
        whole = [encodable(text.strip()[:_CHARACTERS]) for text in texts]
        every = [encoded.ids for encoded in self._tokenizer.encode_batch_fast(whole)]
        present = [index for index, ids in enumerate(every) if self._says_something(ids)]
        before = self._tokenizer.encode(instruction, add_special_tokens=False).ids if instruction else []
        tokens = [[every[index][0], *before, *every[index][1:]][:LONGEST] for index in present]
        # texts of about the same length together: little is spent on padding
        order = sorted(range(len(present)), key=lambda each: len(tokens[each]))
        batches = [order[start : start + _BATCH] for start in range(0, len(order), _BATCH)]

        def run(batch: Sequence[int]) -> None:
            rows[[present[each] for each in batch]] = self._run([tokens[each] for each in batch])

        if self._threads == 1 or len(batches) < 2:
            for batch in batches:
                run(batch)
        else:  # the runtime releases Python's lock: threads are as good as processes, and share the weights
            with ThreadPoolExecutor(self._threads) as pool:
                list(pool.map(run, batches))
        return unit(rows)

    def _says_something(self, ids: Sequence[int]) -> bool:
        """Half of it is known at least: one token stands for all that is not, so that texts in a script which the model
        cannot read would all mean the same."""
        known = len(ids) - _EDGES - ids.count(self._unknown)
        return known > 0 and 2 * known >= len(ids) - _EDGES

    def _run(self, tokens: Sequence[Sequence[int]]) -> Matrix:
        longest = max(map(len, tokens))
        ids = np.zeros((len(tokens), longest), np.int64)
        mask = np.zeros((len(tokens), longest), np.float32)
        for row, each in enumerate(tokens):
            ids[row, : len(each)] = each
            mask[row, : len(each)] = 1.0
        (sums,) = self._session.run(None, {"ids": ids, "mask": mask})
        return np.asarray(sums, np.float32)


class Arctic:
    name = "arctic"
    id = catalog.ARCTIC
    dimensions = ARCTIC.hidden
    has_two_views = True

    def __init__(self, models: Path, threads: int = 1) -> None:
        if self.name not in catalog.installed(models):
            hint = f"Run `recollect models install {self.name}`, or set `embedder` to `auto`."
            raise ModelMissing(f"the model {self.name} is not in {models}", hint=hint)
        self._models, self._threads = models, threads

    def embed(self, texts: Sequence[str]) -> Matrix:
        return self._talk.embed(texts)

    def embed_question(self, text: str) -> Matrix:
        row: Matrix = self._talk.embed([text], _INSTRUCTION)[0]
        return row

    @cached_property
    def _talk(self) -> Encoder:
        return self._encoder(MODEL, ARCTIC)

    @cached_property
    def of_memories(self) -> Embedder:
        return _View(self.id, self._encoder(OF_MEMORIES, MINILM))

    def _encoder(self, file: str, shape: Shape) -> Encoder:
        return Encoder(self._models / catalog.FOLDERS[self.name], file, shape, self._threads)


class _View(OneView):
    """How memories are seen."""

    dimensions = MINILM.hidden

    def __init__(self, id: str, encoder: Encoder) -> None:
        self.id = id
        self._encoder = encoder

    def embed(self, texts: Sequence[str]) -> Matrix:
        return self._encoder.embed(texts)
