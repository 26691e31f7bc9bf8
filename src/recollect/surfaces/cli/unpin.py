"""`recollect unpin`."""

from __future__ import annotations

import click

from recollect.surfaces.cli.common import MEMORY_ID, author, memory, options
from recollect.surfaces.cli.notes import tell


@click.command("unpin", epilog="\b\nExample:\n  recollect unpin m-qgyxbr4twjuii5ya")
@click.argument("memory_id", metavar="ID", type=MEMORY_ID)
@options
def command(memory_id: str, as_json: bool, agent_id: str | None) -> int:
    """Take a memory's pin away.

    The memory itself stays.
    """
    with memory(agent_id) as opened:
        found = opened.unpin(memory_id, author=author(opened))
    return tell(found, "Unpinned", as_json)
