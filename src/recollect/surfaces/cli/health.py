"""`recollect health`."""

from __future__ import annotations

import click

from recollect.surfaces.cli.common import memory, options
from recollect.surfaces.cli.status import show


@click.command("health")
@options
def command(as_json: bool, agent_id: str | None) -> int:
    """Check everything and say what to do about what is wrong.

    Exit status 1 when the database is damaged or work has failed; malformed lines alone are no failure.
    """
    from recollect.surfaces.installers.upkeep import troubles

    with memory(agent_id) as opened:
        result = opened.health()
    result.problems += troubles(opened.settings)
    show(result, as_json)
    if not as_json and not result.problems:
        click.echo("No problems.")
    broken = any("damaged" in trouble.problem for trouble in result.problems)
    return 1 if broken or result.jobs.get("dead") or result.jobs.get("failed") else 0
