"""Which embedders there are, by id and by where they lie. Imports nothing heavy: `status` asks."""

from __future__ import annotations

from pathlib import Path

from recollect.config import Settings

STATIC = "wordllama-l2-256/1"
MINILM = "all-minilm-l6-v2/int8-7"  # another conversion or training gets another number, here and below
MINILM_FOLDER = "all-minilm-l6-v2-7"  # under the folder of models
MODEL, OF_MEMORIES, TOKENIZER = "model.onnx", "memories.onnx", "tokenizer.json"


def is_installed(models: Path) -> bool:
    """Whether the transformer is in the folder of models. Its own folder appears when it is complete."""
    return (models / MINILM_FOLDER / MODEL).is_file()


def outdated(models: Path) -> list[Path]:
    """What earlier versions of recollect installed: nothing reads it any more."""
    return [each for each in models.glob(f"{MINILM_FOLDER.rpartition('-')[0]}-*") if each.name != MINILM_FOLDER]


def wanted(settings: Settings) -> str | None:
    """The id of the configured embedder; None when vectors are switched off."""
    name = settings.config.embedder
    if name == "auto":
        return MINILM if is_installed(settings.models) else STATIC
    return {"none": None, "minilm": MINILM, "static": STATIC}.get(name, name)
