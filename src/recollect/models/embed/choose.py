"""From the configuration to the embedder. Libraries are imported when one is asked for, not before: they are slow."""

from __future__ import annotations

from recollect.config import Settings
from recollect.models.embed.base import Embedder
from recollect.models.embed.catalog import FOLDERS, NAMES, best, folder, installed


def embedder(settings: Settings) -> Embedder | None:
    """The configured one; None when vectors are switched off."""
    return named(settings, settings.config.embedder)


def named(settings: Settings, name: str) -> Embedder | None:
    """`auto`: the best transformer that is installed, else the static model."""
    models = folder(settings)
    if name == "auto":
        name = best(models)
    if name == "none":
        return None
    if name in FOLDERS:
        from recollect.models.embed.transformer import MiniLM, MPNet

        return (MPNet if name == "mpnet" else MiniLM)(models, settings.config.embed_threads)
    if name == "static":
        from recollect.models.embed.static import Static

        return Static()
    from recollect.models.embed.endpoint import Endpoint

    return Endpoint(settings, name)


def by_id(settings: Settings, id: str) -> Embedder | None:
    """The embedder that made vectors of this id; None when this machine has it no more."""
    name = next((name for name, each in NAMES.items() if each == id), id)
    if name in FOLDERS:
        return named(settings, name) if name in installed(folder(settings)) else None
    return named(settings, name) if name in ("static", settings.config.embedder) else None
