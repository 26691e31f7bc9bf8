"""`recollect move`."""

from __future__ import annotations

import click

from recollect.surfaces.cli.common import MEMORY_ID, author, memory, options
from recollect.surfaces.cli.notes import tell


@click.command(
    "move",
    epilog="""\b
Examples:
  recollect move m-qgyxbr4twjuii5ya --project ~/code/api
  recollect move m-qgyxbr4twjuii5ya --everywhere""",
)
@click.argument("memory_id", metavar="ID", type=MEMORY_ID)
@click.option("--project", metavar="P", help="A path or a project id.")
@click.option("--everywhere", is_flag=True, help="It holds in all projects.")
@options
def command(memory_id: str, project: str | None, everywhere: bool, as_json: bool, agent_id: str | None) -> int:
    """Say that a memory holds in another project, or everywhere. It keeps its id; `undo` takes it back."""
    with memory(agent_id) as opened:
        place = None if project is None else opened.project(project)
        found = opened.move(memory_id, project=place, everywhere=everywhere, author=author(opened))
    return tell(found, "Moved", as_json)
