"""`recollect retry`."""

from __future__ import annotations

import click

from recollect.surfaces.cli.common import count, memory, options, print_json


@click.command("retry", epilog="\b\nExample:\n  recollect retry && recollect process")
@options
def command(as_json: bool, agent_id: str | None) -> int:
    """Give jobs that failed a fresh start.

    Jobs that are dead, failed, paused or waiting for their next try become pending; the next run of their command
    takes them up.
    """
    with memory(agent_id) as opened:
        number = opened.retry()
    if as_json:
        print_json({"revived": number})
    else:
        click.echo(f"{count(number, 'job')} will be tried again.")
    return 0
