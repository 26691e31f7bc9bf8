"""Which embedders there are, by id and by where they lie. Imports nothing heavy: `status` asks."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from recollect.config import Settings

STATIC = "wordllama-l2-256/1"
MINILM = "all-minilm-l6-v2/int8-7"  # another conversion or training gets another number, here and in its folder
MPNET = "all-mpnet-base-v2/int8-1"  # beside MiniLM, whose vectors are a part of its own
NAMES = {"mpnet": MPNET, "minilm": MINILM, "static": STATIC}  # as they are configured, the best first
FOLDERS = {"mpnet": "all-mpnet-base-v2-1", "minilm": "all-minilm-l6-v2-7"}  # under the folder of models
MODEL, OF_MEMORIES, TOKENIZER = "model.onnx", "memories.onnx", "tokenizer.json"
BESIDE = Path(sys.prefix, "share", "recollect", "models")  # beside the program: every home that it serves has them


def folder(settings: Settings) -> Path:
    """Of models: the one that was named, else the home's, unless the one beside the program has more."""
    own = settings.models
    return own if settings.config.models_folder or installed(own) >= installed(BESIDE) else BESIDE


def installed(models: Path) -> frozenset[str]:
    """Names of the transformers that are there for us to read. A folder appears when it is complete."""
    there = {name for name, each in FOLDERS.items() if os.access(models / each / OF_MEMORIES, os.R_OK)}
    return frozenset(there if "minilm" in there else ())


def outdated(models: Path) -> dict[str, list[Path]]:
    """What earlier versions of recollect installed, by name: nothing reads it any more."""
    kinds = {name: kept.rpartition("-")[0] for name, kept in FOLDERS.items()}
    return {
        name: [each for each in models.glob(f"{kind}-*") if each.name != FOLDERS[name]] for name, kind in kinds.items()
    }


def best(models: Path) -> str:
    """The name of the best embedder that is there."""
    there = installed(models)
    return next((name for name in FOLDERS if name in there), "static")


def wanted(settings: Settings) -> str | None:
    """The id of the configured embedder; None when vectors are switched off."""
    name = settings.config.embedder
    if name == "auto":
        name = best(folder(settings))
    return None if name == "none" else NAMES.get(name, name)
