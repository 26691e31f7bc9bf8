"""Which embedders there are, by id and by where they lie. Imports nothing heavy: `status` asks."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from recollect.config import Settings

STATIC = "wordllama-l2-256/1"
MINILM = "all-minilm-l6-v2/int8-7"  # another conversion or training gets another number, here and below
MINILM_FOLDER = "all-minilm-l6-v2-7"  # under the folder of models
MODEL, OF_MEMORIES, TOKENIZER = "model.onnx", "memories.onnx", "tokenizer.json"
BESIDE = Path(sys.prefix, "share", "recollect", "models")  # beside the program: every home that it serves has them


def folder(settings: Settings) -> Path:
    """Of models: the one that was named, else the home's, else the one beside the program."""
    own = settings.models
    return own if settings.config.models_folder or is_installed(own) or not is_installed(BESIDE) else BESIDE


def is_installed(models: Path) -> bool:
    """Whether the transformer is there for us to read. Its own folder appears when it is complete."""
    return os.access(models / MINILM_FOLDER / MODEL, os.R_OK)


def outdated(models: Path) -> list[Path]:
    """What earlier versions of recollect installed: nothing reads it any more."""
    return [each for each in models.glob(f"{MINILM_FOLDER.rpartition('-')[0]}-*") if each.name != MINILM_FOLDER]


def wanted(settings: Settings) -> str | None:
    """The id of the configured embedder; None when vectors are switched off."""
    name = settings.config.embedder
    if name == "auto":
        return MINILM if is_installed(folder(settings)) else STATIC
    return {"none": None, "minilm": MINILM, "static": STATIC}.get(name, name)
