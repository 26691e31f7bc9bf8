"""`recollect sessions`."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import click

from recollect.artifacts.sanitize import line
from recollect.browse import Reading, Spoken
from recollect.surfaces.cli.common import day_and_time, echo, memory, options, print_json


@click.command(
    "sessions",
    epilog="""\b
Examples:
  recollect sessions                         with what was done and left, newest first
  recollect sessions --project ~/code/api
  recollect sessions 3f0c…@2026-03-02T09:00:00.000Z          read one
  recollect sessions 3f0c… --holding "refresh token"         what it says about that""",
)
@click.argument("name", metavar="[KEY]", default="")
@click.option("--project", metavar="P", help="Of this project: a path or a project id.")
@click.option("--holding", metavar="TEXT", default="", help="Of the conversation those messages that contain this.")
@click.option("--after", metavar="CURSOR", default="", help="The next page: `following` of the last one.")
@click.option("--limit", type=click.IntRange(1, 500), default=20, metavar="N", help="At most so many.")
@options
def command(
    name: str, project: str | None, holding: str, after: str, limit: int, as_json: bool, agent_id: str | None
) -> int:
    """List conversations with agents and what came of them, or read one, page by page."""
    with memory(agent_id) as opened:
        if name:
            read = opened.read(name, after=after, limit=limit, holding=holding)
        else:
            chosen = None if project is None else opened.project(project)
            found = opened.talks(chosen, after=after, limit=limit)
    if name:
        return _read(read, as_json)
    if as_json:
        told = [{key: value for key, value in asdict(each).items() if key != "entries"} for each in found.talks]
        print_json({"conversations": told, "following": found.following})
        return 0
    for each in found.talks:
        echo(f"{each.session_key}  {each.source}, {each.messages} messages, {line(each.project_id)}", bold=True)
        for label, text in (("", each.sentence), ("done: ", each.done), ("left: ", each.left)):
            if text:
                echo(f"  {label}{line(text)}")
    if not found.talks:
        echo("No conversations yet. `recollect ingest` takes them in.")
    elif found.following:
        echo(f"more: --after {found.following}")
    return 0


def _read(read: Reading, as_json: bool) -> int:
    if as_json:
        print_json({"messages": [_plain(each) for each in read.messages], "following": read.following})
        return 0
    for each in read.messages:
        echo(f"{each.line.role}, {day_and_time(each.line.timestamp)}", bold=True)
        echo(each.line.content)
        for learnt in each.learnt:
            echo(f"  → {learnt.id} {line(learnt.text)}", dim=True)
        echo("")
    if read.following:
        echo(f"more: --after {read.following}")
    return 0


def _plain(each: Spoken) -> dict[str, Any]:
    names = ("uuid", "role", "timestamp", "content")
    return {name: getattr(each.line, name) for name in names} | {"memories": [one.id for one in each.learnt]}
