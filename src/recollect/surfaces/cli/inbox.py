"""`recollect inbox`."""

from __future__ import annotations

import click

from recollect.surfaces.cli.common import MEMORY_ID, count, echo, memory, only_for_people, options, print_json
from recollect.surfaces.cli.memories import plain, show


@click.command(
    "inbox",
    epilog="""\b
Examples:
  recollect inbox                     what was learnt or changed since you last looked
  recollect inbox --seen m-qgyxbr4t   you looked at it
  recollect inbox --all               you looked at all of it""",
)
@click.option("--seen", "seen", multiple=True, type=MEMORY_ID, help="You looked at this memory.")
@click.option("--unseen", "unseen", multiple=True, type=MEMORY_ID, help="Put it back.")
@click.option("--all", "everything", is_flag=True, help="You looked at all of it.")
@click.option("--after", metavar="CURSOR", default="", help="The next page: `following` of the last one.")
@click.option("--limit", type=click.IntRange(1, 500), default=50, metavar="N", help="At most so many, newest first.")
@options
def command(
    seen: tuple[str, ...],
    unseen: tuple[str, ...],
    everything: bool,
    after: str,
    limit: int,
    as_json: bool,
    agent_id: str | None,
) -> int:
    """Show what is new: memories that nobody looked at since they say what they say.

    What you noted yourself is not among them.
    """
    if sum(map(bool, (seen, unseen, everything))) > 1:
        raise click.UsageError("--seen, --unseen and --all exclude each other")
    with memory(agent_id) as opened:
        if seen or unseen or everything:
            only_for_people("look through what is new", "inbox")
            done = opened.seen(seen or unseen, again=bool(unseen))
            if as_json:
                print_json({"changed": done})
            else:
                echo(f"{count(done, 'memory', 'memories')} {'put back' if unseen else 'seen'}.")
            return 0
        found = opened.inbox(after=after, limit=limit)
    if as_json:
        print_json({"memories": [plain(each.memory) for each in found.cards], "following": found.following})
        return 0
    show([each.memory for each in found.cards], with_project=True)
    if not found.cards:
        echo("Nothing is new. What agents learn shows up here when a session ends.")
    elif found.following:
        echo(f"and {found.total - len(found.cards):,} more: --after {found.following}")
    return 0
