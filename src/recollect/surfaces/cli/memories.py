"""`recollect memories`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import click

from recollect.artifacts.sanitize import line
from recollect.note import hand
from recollect.surfaces.cli.common import (
    confirmed,
    count,
    day_and_time,
    echo,
    memory,
    options,
    place_of,
    print_json,
    since,
)
from recollect.types import MemoryKind, Remembered, Scope, Timestamp, Trust, project_name, timestamp

_MOST = 100  # that a person is shown unasked
_NEW = timedelta(days=7)


@click.command(
    "memories",
    epilog="""\b
Examples:
  recollect memories                         what is known in this project, and everywhere
  recollect memories --new                   what was learnt in the last seven days
  recollect memories --trust found           what agents found out by themselves
  recollect memories --kind decision --all-projects --json""",
)
@click.option("--project", metavar="P", help="Of this project: a path or a project id. [default: the current folder's]")
@click.option("--all-projects", is_flag=True, help="Of every project.")
@click.option("--kind", type=click.Choice([str(each) for each in MemoryKind]), help="Only of this kind.")
@click.option("--trust", type=click.Choice([str(each) for each in Trust]), help="Only what is trusted so far.")
@click.option("--new", is_flag=True, help="Only what was said in the last seven days.")
@click.option("--since", "first", callback=since, metavar="T", help="Not before: a day, a time, or how long ago (7d).")
@click.option("--counts", is_flag=True, help="How many there are of each kind, project, age and so on.")
@click.option("--limit", type=click.IntRange(1, 1_000_000), metavar="N", help="At most so many, newest first.")
@options
def command(
    project: str | None,
    all_projects: bool,
    kind: str | None,
    trust: str | None,
    new: bool,
    first: Timestamp | None,
    counts: bool,
    limit: int | None,
    as_json: bool,
    agent_id: str | None,
) -> int:
    """List memories, newest first: those of this project and those that hold everywhere.

    Each line says how far a memory is trusted: said or chosen by you, found or noted by an agent, or passed on.
    One that is none is taken out by `recollect wrong ID`.
    """
    if project is not None and all_projects:
        raise click.UsageError("--project and --all-projects exclude each other")
    if new and first is not None:
        raise click.UsageError("--new and --since exclude each other")
    if counts:
        return _count(agent_id, as_json)
    with memory(agent_id) as opened:
        chosen = None if all_projects else opened.project(confirmed(opened, place_of(project)))
        begin = timestamp(opened.clock() - _NEW) if new else first or ""
        held = opened.memories(chosen, begin)
        if not held:
            opened.require_project(project)
    found = [each for each in held if trust in (None, each.trust) and kind in (None, each.kind)]
    if as_json:
        print_json([plain(each) for each in found[:limit]])
        return 0
    show(found[: limit or _MOST], with_project=chosen is None)
    if not found:
        where = "" if chosen is None else f" in {project_name(chosen) or chosen}"
        echo(f"No memories{where}." + ("" if chosen is None else " --all-projects looks everywhere."))
    elif len(found) > (limit or _MOST) and limit is None:
        echo(f"and {count(len(found) - _MOST, 'older one')}; --limit shows more")
    return 0


def _count(agent_id: str | None, as_json: bool) -> int:
    with memory(agent_id) as opened:
        found = opened.browse(limit=1).facets
    if as_json:
        print_json(found)
        return 0
    for name, values in found.items():
        told = ", ".join(f"{line(value) or '-'} {number:,}" for value, number in values.items())
        echo(f"{name}: {told or '-'}")
    return 0


def plain(each: Remembered) -> dict[str, object]:
    """As JSON tells it."""
    names = ("id", "revision", "kind", "severity", "scope", "scope_id", "trust", "pinned", "valid_from", "text")
    sources = [{"session_key": key, "entry_uuid": uuid} for key, uuid in each.sources]
    return {name: getattr(each, name) for name in names} | {"hand": hand(each), "sources": sources}


def show(found: Sequence[Remembered], *, with_project: bool) -> None:
    """For a person, two lines each."""
    for each in found:
        where = "everywhere" if each.scope == Scope.USER else project_name(each.scope_id) if with_project else ""
        severity = "" if each.severity == "none" else each.severity.replace("_", " ")
        labels = [each.kind.replace("_", " "), severity, each.trust.replace("_", " ")]
        labels += ["pinned" if each.pinned else "", line(where)]
        echo(f"{each.id}  {day_and_time(each.valid_from)[:10]}  {', '.join(filter(None, labels))}")
        echo(f"  {line(each.text)}")
