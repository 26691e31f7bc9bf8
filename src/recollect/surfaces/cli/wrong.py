"""`recollect wrong`."""

from __future__ import annotations

import click

from recollect.artifacts.sanitize import line
from recollect.surfaces.cli.common import MEMORY_ID, author, count, echo, memory, options, print_json


@click.command(
    "wrong",
    epilog="""\b
Examples:
  recollect wrong m-qgyxbr4t
  recollect wrong m-qgyxbr4t m-k3v7q2hx --reason "one-off orders, not rules"
  recollect feedback m-qgyxbr4t ok              takes it back""",
)
@click.argument("ids", metavar="ID...", nargs=-1, required=True, type=MEMORY_ID)
@click.option("--reason", default="", metavar="TEXT", help="Why, for whoever looks at it later.")
@options
def command(ids: tuple[str, ...], reason: str, as_json: bool, agent_id: str | None) -> int:
    """Say that memories are none: no agent is told them again.

    They stay in their files and in `show`; `forget` erases. To change what a memory says, use `correct`.
    """
    with memory(agent_id) as opened:
        by = author(opened)
        held = [opened.memory(each, by.project) for each in ids]  # a name that is none changes nothing
        found = [opened.feedback(each.id, "not_ok", reason, author=by) for each in held]
    if as_json:
        print_json([{"id": each.id, "revision": each.revision, "text": each.text} for each in found])
        return 0
    for each in found:
        echo(f"{each.id}  {line(each.text)}")
    what = count(len(found), "memory", "memories")
    echo(f"{what}: told to no agent from now on, until corrected, remembered again or pinned.")
    return 0
