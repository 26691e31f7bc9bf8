"""From the configured name to the model. Clients are imported when one is asked for, not before: they are slow."""

from __future__ import annotations

from recollect.config import Settings
from recollect.models.base import LanguageModel


def language_model(settings: Settings, name: str) -> LanguageModel | None:
    """The model of that name; None for `offline`. The name is one that the configuration accepts."""
    if name == "offline":
        return None
    if name.startswith("cli:"):
        from recollect.models.agent_cli import AgentCli

        return AgentCli(settings, name)
    from recollect.models.providers import Provider

    return Provider(settings, name)
