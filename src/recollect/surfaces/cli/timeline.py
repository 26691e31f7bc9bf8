"""`recollect timeline`."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import click

from recollect.artifacts.ledger import shortened
from recollect.artifacts.lineage import Day, Talk
from recollect.artifacts.names import Kind
from recollect.artifacts.sanitize import line
from recollect.note import is_session
from recollect.surfaces.cli.common import confirmed, echo, memory, options, place_of, print_json, since, until
from recollect.types import project_name

_LONGEST = 240  # characters of what was left
_LINKED = (Kind.SUMMARY, Kind.TRANSCRIPT, Kind.MANIFEST)


@click.command(
    "timeline",
    epilog="""\b
Examples:
  recollect timeline                              this project
  recollect timeline --all-projects --since 7d
  recollect timeline --project ~/code/api --since 2026-03-01 --until 2026-03-31
  recollect timeline --memory m-k3v7q2            how a memory came to be""",
)
@click.option("--project", metavar="P", help="Of this project: a path or a project id. [default: the current folder's]")
@click.option("--all-projects", is_flag=True, help="Of every project.")
@click.option(
    "--user", metavar="U", default="", help="The chats of this user: in all projects, or in that of --project."
)
@click.option(
    "--since", "first", callback=since, metavar="T", help="Not before: a day, a time, or how long ago (7d, 12h)."
)
@click.option("--until", "last", callback=until, metavar="T", help="Not after.")
@click.option(
    "--limit", type=click.IntRange(1, 1_000_000), default=50, metavar="N", help="At most so many conversations."
)
@click.option("--memory", "name", metavar="ID", help="Only what has to do with this memory, in any project.")
@options
def command(
    project: str | None,
    all_projects: bool,
    user: str,
    first: str | None,
    last: str | None,
    limit: int,
    name: str | None,
    as_json: bool,
    agent_id: str | None,
) -> int:
    """Show what happened when, and what was learnt.

    Newest first, by day (UTC): conversations with their sentence and files, and the memories that were learnt or
    corrected in them. The chats of users are left out, but those of --user.
    """
    if project is not None and all_projects:
        raise click.UsageError("--project and --all-projects exclude each other")
    with memory(agent_id) as opened:
        wide = all_projects or ((name is not None or user) and project is None)
        chosen = None if wide else opened.project(confirmed(opened, place_of(project)))
        days = opened.timeline(project=chosen, since=first or "", until=last, limit=limit, memory=name, user=user)
        if not days:
            opened.require_project(project)
    if as_json:
        print_json({"project": chosen, "days": [_day(each) for each in days]})
        return 0
    if not days:
        where = f" in {chosen}" if chosen else ""
        echo(f"Nothing happened{where}." + (" --all-projects looks everywhere." if chosen else ""))
    for number, each in enumerate(days):
        echo(("\n" if number else "") + each.day)
        told_below = {learnt.session_key for learnt in each.learnt}
        for talk in each.conversations:
            if not (is_session(talk.session_id) and talk.session_key in told_below):  # of a note one line is enough
                _show(talk, with_project=chosen is None)
        for learnt in each.learnt:
            told = learnt.revision
            where = f"  {line(project_name(told.scope_id))}" if chosen is None else ""
            echo(f"  {learnt.what}: {line(told.text)}  [{told.kind} {told.id}-r{told.revision}]{where}")
    return 0


def _show(talk: Talk, *, with_project: bool) -> None:
    where = f"  {line(project_name(talk.project_id) or talk.project)}" if with_project else ""
    echo(f"  {talk.first_message_at[11:16]}–{talk.last_message_at[11:16]}  {line(talk.session_id)[:8]}{where}")
    echo(f"    {line(talk.sentence) or f'{talk.messages} messages, {talk.status}'}")
    if talk.left:
        echo(f"    left: {shortened(talk.left, _LONGEST)}")
    if links := [path for kind in _LINKED if (path := talk.path(kind))]:
        echo(f"    {links[0]}")


def _day(day: Day) -> dict[str, Any]:
    talks = []
    for each in day.conversations:
        told = asdict(each)
        del told["entries"], told["files"]
        talks.append(told | {"links": {str(kind): path for kind in _LINKED if (path := each.path(kind))}})
    learnt = [{"what": each.what, "session_key": each.session_key, **asdict(each.revision)} for each in day.learnt]
    return {"day": day.day, "conversations": talks, "learnt": learnt}
