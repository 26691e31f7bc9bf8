"""Which embedders there are, by id and by where they lie, and which one is configured.

Libraries are imported when one is asked for, not before: they are slow, and `status` only looks.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from recollect.config import Settings

if TYPE_CHECKING:
    from recollect.models.embed.base import Embedder

STATIC = "wordllama-l2-256/1"
ARCTIC = "snowflake-arctic-embed-s/int8-1"  # another conversion or training gets another number, here and in its folder
NAMES = {"arctic": ARCTIC, "static": STATIC}  # as they are configured, the best first
FOLDERS = {"arctic": "snowflake-arctic-embed-s-1"}  # under the folder of models
_KINDS = (
    "snowflake-arctic-embed-s",
    "all-minilm-l6-v2",
    "all-mpnet-base-v2",
)  # of folders, those of earlier versions too
MODEL, OF_MEMORIES, TOKENIZER = "model.onnx", "memories.onnx", "tokenizer.json"
BESIDE = Path(sys.prefix, "share", "recollect", "models")  # beside the program: every home that it serves has them


def folder(settings: Settings) -> Path:
    """Of models: the one that was named, else the home's, unless the one beside the program has more."""
    own = settings.models
    return own if settings.config.models_folder or installed(own) >= installed(BESIDE) else BESIDE


def installed(models: Path) -> frozenset[str]:
    """Names of the transformers that are there for us to read. A folder appears when it is complete."""
    return frozenset(name for name, each in FOLDERS.items() if os.access(models / each / OF_MEMORIES, os.R_OK))


def outdated(models: Path) -> list[Path]:
    """Folders that earlier versions of recollect installed: nothing reads them any more."""
    found = (each for kind in _KINDS for each in sorted(models.glob(f"{kind}-*")))
    return [each for each in found if each.name not in FOLDERS.values()]


def stale(settings: Settings) -> Path | None:
    """The folder of models in which `auto` finds only what an earlier version of recollect installed."""
    if settings.config.embedder != "auto" or installed(folder(settings)):
        return None
    places = [settings.models] if settings.config.models_folder else [settings.models, BESIDE]
    return next((each for each in places if outdated(each)), None)


def wanted(settings: Settings) -> str | None:
    """The id of the configured embedder; None when vectors are switched off."""
    name = _chosen(settings)
    return None if name == "none" else NAMES.get(name, name)


def _chosen(settings: Settings) -> str:
    """The configured name; for `auto` that of the best transformer that is installed, else of the static model."""
    if settings.config.embedder != "auto":
        return settings.config.embedder
    there = installed(folder(settings))
    return next((name for name in FOLDERS if name in there), "static")


def embedder(settings: Settings, name: str = "") -> Embedder | None:
    """The one of that name, else the configured one; None when vectors are switched off."""
    name = name or _chosen(settings)
    if name == "none":
        return None
    if name in FOLDERS:
        from recollect.models.embed.transformer import Arctic

        return Arctic(folder(settings), settings.config.embed_threads)
    if name == "static":
        from recollect.models.embed.static import Static

        return Static()
    from recollect.models.embed.endpoint import Endpoint

    return Endpoint(settings, name)


def by_id(settings: Settings, id: str) -> Embedder | None:
    """The embedder that made vectors of this id; None when this machine has it no more."""
    name = next((name for name, each in NAMES.items() if each == id), id)
    there = installed(folder(settings)) if name in FOLDERS else ("static", settings.config.embedder)
    return embedder(settings, name) if name in there else None
