"""`recollect conversations`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

import click

from recollect.note import is_note
from recollect.surfaces.cli.common import count, day_and_time, memory, options, print_json, table
from recollect.types import Conversation, ConversationStatus, project_name

_MOST = 200  # rows that a person is shown unasked


@click.command(
    "conversations",
    epilog="""\b
Examples:
  recollect conversations
  recollect conversations --status ready
  recollect conversations --project ~/code/api
  recollect conversations --project github.com/acme/api --json""",
)
@click.option("--status", type=click.Choice([str(each) for each in ConversationStatus]), help="Only in this state.")
@click.option("--project", metavar="P", help="Only of this project: a path or a project id.")
@click.option("--limit", type=click.IntRange(1, 1_000_000), metavar="N", help="At most so many, newest first.")
@options
def command(status: str | None, project: str | None, limit: int | None, as_json: bool, agent_id: str | None) -> int:
    """List conversations, newest first: all with --json, else the newest 200 unless --limit says otherwise.

    What you told with `remember`, `correct` and the like are conversations too, of one message each: only --json names
    them here, and `timeline` shows them.
    """
    with memory(agent_id) as opened:
        chosen = ConversationStatus(status) if status else None
        found = opened.conversations(chosen, project, limit if as_json else None)
        if not found:
            opened.require_project(project)
    if as_json:
        print_json([{name: value for name, value in asdict(each).items() if name != "branch"} for each in found])
        return 0
    talks = [each for each in found if not is_note(each)]
    if not talks:
        click.echo("No conversations.")
    else:
        _show(talks[: limit or _MOST])
    if limit is None and len(talks) > _MOST:
        click.echo(f"and {len(talks) - _MOST:,} older ones; --limit shows more")
    if notes := len(found) - len(talks):
        click.echo(f"{count(notes, 'note')} beside them: `recollect timeline` shows what you told.")
    return 0


def _show(talks: Sequence[Conversation]) -> None:
    table(
        ("id", "last message", "messages", "status", "source", "project", "session"),
        [
            (
                each.id,
                day_and_time(each.last_message_at),
                each.entry_count,
                each.status,
                each.source,
                project_name(each.project_id) or each.project,
                each.session_id[:8],
            )
            for each in talks
        ],
        right=("id", "messages"),
    )
