"""`recollect feedback`."""

from __future__ import annotations

import click

from recollect.surfaces.cli.common import MEMORY_ID, author, memory, options
from recollect.surfaces.cli.notes import tell


@click.command(
    "feedback",
    epilog="""\b
Examples:
  recollect feedback m-qgyxbr4twjuii5ya ok
  recollect feedback m-qgyxbr4twjuii5ya not_ok --text "only on the main branch" """,
)
@click.argument("memory_id", metavar="ID", type=MEMORY_ID)
@click.argument("opinion", type=click.Choice(["ok", "not_ok"]))
@click.option("--text", default="", metavar="TEXT", help="Why.")
@options
def command(memory_id: str, opinion: str, text: str, as_json: bool, agent_id: str | None) -> int:
    """Say whether a memory is right.

    `ok` counts as use. What is `not_ok` is given to no agent until it is corrected, remembered again or pinned. Your
    newest reaction to a memory replaces the one before; `show` tells it. To change what a memory says, use `correct`.
    """
    with memory(agent_id) as opened:
        found = opened.feedback(memory_id, opinion, text, author=author(opened))
    tell(found, "Called right" if opinion == "ok" else "Called wrong", as_json)
    if not as_json and opinion == "ok":
        click.echo("That counts as use.")
    elif not as_json:
        click.echo(
            "It is given to no agent from now on, until it is corrected, remembered again or pinned."
            f" To take it back: recollect feedback {found.id} ok"
        )
    return 0
