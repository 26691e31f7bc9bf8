"""The transformer: all-MiniLM-L6-v2 through onnxruntime, from the folder that `recollect models install` filled.

There are two of it: the original, for talk, and one that was trained to tell which memories a prompt wants (tuning.py),
which is loaded when it is needed. Trained for one thing, a model so small gets worse at the other.

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
from recollect.models.embed.base import Matrix, ModelMissing, encodable, unit
from recollect.models.embed.bert import HIDDEN, LONGEST
from recollect.models.embed.catalog import MINILM_FOLDER, MODEL, OF_MEMORIES, TOKENIZER, is_installed

_BATCH = 16
_CHARACTERS = LONGEST * 12  # more than the tokens that are looked at can have; the rest need not be split into tokens


class MiniLM:
    id = catalog.MINILM
    dimensions = HIDDEN
    has_two_views = True

    def __init__(self, models: Path, threads: int = 1, file: str = MODEL) -> None:
        folder = models / MINILM_FOLDER
        if not is_installed(models):
            raise ModelMissing(f"the model minilm is not in {models}")
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
            hint = f"Remove {folder} and run `recollect models install minilm`."
            raise ModelMissing(f"the model in {folder} cannot be loaded: {error}", hint=hint) from error
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(LONGEST)
        self._models, self._threads = models, threads

    @cached_property
    def of_memories(self) -> MiniLM:
        return MiniLM(self._models, self._threads, OF_MEMORIES)

    def embed(self, texts: Sequence[str]) -> Matrix:
        rows = np.zeros((len(texts), HIDDEN), np.float32)
        present = [index for index, text in enumerate(texts) if text.strip()]
        whole = [encodable(texts[index].strip()[:_CHARACTERS]) for index in present]
        tokens = [encoded.ids for encoded in self._tokenizer.encode_batch_fast(whole)]
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

    def _run(self, tokens: Sequence[Sequence[int]]) -> Matrix:
        longest = max(map(len, tokens))
        ids = np.zeros((len(tokens), longest), np.int64)
        mask = np.zeros((len(tokens), longest), np.float32)
        for row, each in enumerate(tokens):
            ids[row, : len(each)] = each
            mask[row, : len(each)] = 1.0
        (sums,) = self._session.run(None, {"ids": ids, "mask": mask})
        return np.asarray(sums, np.float32)
