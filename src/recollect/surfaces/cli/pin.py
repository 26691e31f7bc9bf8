"""`recollect pin`."""

from __future__ import annotations

import click

from recollect.surfaces.cli.common import MEMORY_ID, author, memory, options
from recollect.surfaces.cli.notes import tell


@click.command("pin", epilog="\b\nExample:\n  recollect pin m-qgyxbr4twjuii5ya")
@click.argument("memory_id", metavar="ID", type=MEMORY_ID)
@options
def command(memory_id: str, as_json: bool, agent_id: str | None) -> int:
    """Put a memory first, and keep it there.

    It stands first in MEMORY.md and in the workspace, however long nobody used it, and stays pinned when it is
    corrected.
    """
    with memory(agent_id) as opened:
        found = opened.pin(memory_id, author=author(opened))
    return tell(found, "Pinned", as_json)
