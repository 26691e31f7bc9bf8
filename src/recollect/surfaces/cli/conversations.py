"""`recollect conversations`."""

from __future__ import annotations

import click

from recollect.surfaces.cli.common import day_and_time, memory, options, print_json, require_project, table
from recollect.types import ConversationStatus

_KEYS = (
    "id",
    "session_id",
    "session_key",
    "source",
    "source_file",
    "project",
    "project_id",
    "first_message_at",
    "last_message_at",
    "entry_count",
    "status",
    "status_reason",
)


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
    """List conversations, newest first."""
    with memory(agent_id) as opened:
        found = opened.conversations(ConversationStatus(status) if status else None, project, limit)
        if not found:
            require_project(opened, project)
    if as_json:
        print_json([{key: getattr(each, key) for key in _KEYS} for each in found])
        return 0
    if not found:
        click.echo("No conversations.")
        return 0
    table(
        ("id", "last message", "messages", "status", "source", "project", "session"),
        [
            (
                each.id,
                day_and_time(each.last_message_at),
                each.entry_count,
                each.status,
                each.source,
                each.project_id or each.project,
                each.session_id[:8],
            )
            for each in found
        ],
        right=("id", "messages"),
    )
    return 0
