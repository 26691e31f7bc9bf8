"""From the configuration to the embedder. Libraries are imported when one is asked for, not before: they are slow."""

from __future__ import annotations

from recollect.config import Settings
from recollect.models.embed.base import Embedder
from recollect.models.embed.catalog import MINILM, STATIC, folder, is_installed


def embedder(settings: Settings) -> Embedder | None:
    """The configured one; None when vectors are switched off."""
    return named(settings, settings.config.embedder)


def named(settings: Settings, name: str) -> Embedder | None:
    """`auto`: the transformer where it is installed, else the static model."""
    if name == "none":
        return None
    if name in ("auto", "minilm"):
        from recollect.models.embed.minilm import MiniLM

        models = folder(settings)
        if name == "minilm" or is_installed(models):
            return MiniLM(models, settings.config.embed_threads)
    if name in ("auto", "static"):
        from recollect.models.embed.static import Static

        return Static()
    from recollect.models.embed.endpoint import Endpoint

    return Endpoint(settings, name)


def by_id(settings: Settings, id: str) -> Embedder | None:
    """The embedder that made vectors of this id; None when this machine has it no more."""
    if id == MINILM:
        return named(settings, "minilm") if is_installed(folder(settings)) else None
    if id == STATIC:
        return named(settings, "static")
    return named(settings, id) if id == settings.config.embedder else None
