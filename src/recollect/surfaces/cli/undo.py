"""`recollect undo`."""

from __future__ import annotations

import click

from recollect.surfaces.cli.common import MEMORY_ID, author, memory, options
from recollect.surfaces.cli.notes import tell


@click.command(
    "undo",
    epilog="""\b
Examples:
  recollect undo m-qgyxbr4twjuii5ya    it says again what it said before""",
)
@click.argument("memory_id", metavar="ID", type=MEMORY_ID)
@options
def command(memory_id: str, as_json: bool, agent_id: str | None) -> int:
    """Take the last change of a memory back: a correction, a pin, a move, or that it was called wrong.

    It is a revision like any other: history only grows. What was erased cannot be taken back.
    """
    with memory(agent_id) as opened:
        found = opened.undo(memory_id, author=author(opened))
    return tell(found, "Undone", as_json)
