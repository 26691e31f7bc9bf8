"""`recollect config`."""

from __future__ import annotations

import click

from recollect.config import describe
from recollect.models.base import shown_url
from recollect.surfaces.cli.common import options, print_json, settings, table


@click.command("config")
@options
def command(as_json: bool, agent_id: str | None) -> int:
    """Show every setting and where its value came from.

    A value comes from a flag, RECOLLECT_<KEY>, config.toml under RECOLLECT_HOME, or the default, in this order.
    """
    loaded = settings(agent_id)
    values = {key.name: _public(key.name, getattr(loaded.config, key.name)) for key in describe()}
    if as_json:
        keys = {name: {"value": value, "from": loaded.origins[name]} for name, value in values.items()}
        print_json({"home": str(loaded.home), "file": str(loaded.home / "config.toml"), "keys": keys})
        return 0
    click.echo(f"{loaded.home / 'config.toml'}")
    table(
        ("key", "value", "from"),
        [(name, _shown(value), loaded.origins[name]) for name, value in values.items()],
    )
    return 0


def _public(name: str, value: object) -> object:
    """Some settings are URLs, which may hold a password; so may a database's address that is none."""
    if name == "database" and value and "://" not in str(value):
        return "[redacted]"
    return shown_url(value) if isinstance(value, str) else value


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return ", ".join(value) or "-"
    return str(value) if value not in ("", {}) else "-"
