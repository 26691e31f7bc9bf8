"""`recollect search`."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

import click

from recollect.artifacts.sanitize import line
from recollect.ingest.sources import all_sources
from recollect.search.values import ALL_PROJECTS, Hit
from recollect.store.vectors import Kind
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
    until,
)
from recollect.types import Role


def _source(_context: click.Context, _option: click.Parameter, value: str) -> str:
    if value and value not in all_sources():
        raise click.BadParameter(f"`{value}` is none of {', '.join(all_sources())}")
    return value


@click.command(
    "search",
    epilog="""\b
Examples:
  recollect search "how do we deploy the api"
  recollect search parseHeader src/http.py:42 --kind entry
  recollect search "what did we decide last week" --kind memory --explain
  recollect search "pond pump" --all-projects --since 2026-03-01 --json""",
)
@click.argument("query", nargs=-1, required=True, metavar="QUERY")
@click.option(
    "--limit", type=click.IntRange(1, 1000), default=10, show_default=True, metavar="K", help="At most so many."
)
@click.option(
    "--kind", "kinds", type=click.Choice([str(kind) for kind in Kind]), multiple=True, help="Only of this kind."
)
@click.option("--project", metavar="P", help="Search this project: a path or a project id. [default: this folder's]")
@click.option("--all-projects", is_flag=True, help="Search every project.")
@click.option(
    "--user", metavar="U", default="", help="As a chat of this user: in all projects, or in that of --project."
)
@click.option(
    "--since", "first", callback=since, metavar="T", help="Not before: a day, a time, or how long ago (7d, 12h)."
)
@click.option("--until", "last", callback=until, metavar="T", help="Not after.")
@click.option(
    "--role", type=click.Choice([str(role) for role in Role]), default=None, help="Only entries of this role."
)
@click.option("--source", default="", callback=_source, metavar="S", help="Only of this source, e.g. claude-code.")
@click.option("--explain", is_flag=True, help="Show why each hit ranked.")
@options
def command(
    query: tuple[str, ...],
    limit: int,
    kinds: tuple[str, ...],
    project: str | None,
    all_projects: bool,
    user: str,
    first: str | None,
    last: str | None,
    role: str | None,
    source: str,
    explain: bool,
    as_json: bool,
    agent_id: str | None,
) -> int:
    """Find memories, summaries and messages.

    QUERY is plain words: a question, a name, a path, an error message; nothing in it is syntax. Times in it ("last
    week", "in March") count. Only what is relevant is shown: a question about something unknown finds nothing.
    """
    if project is not None and all_projects:
        raise click.UsageError("--project and --all-projects exclude each other")
    if not " ".join(query).strip():
        raise click.UsageError("QUERY is empty")
    with memory(agent_id) as opened:
        hits = opened.search(
            " ".join(query),
            scope=ALL_PROJECTS if all_projects or (user and project is None) else confirmed(opened, place_of(project)),
            user=user,
            limit=limit,
            kinds=kinds,
            role=role or "",
            source=source,
            since=first or "",
            until=last or "",
        )
        if not hits:
            opened.require_project(project)
    if as_json:
        print_json({"hits": [_plain(hit, explain) for hit in hits]})
        return 0
    if not hits:
        click.echo("Nothing relevant." + ("" if all_projects else " --all-projects looks into every project."))
        return 0
    for hit in hits:
        _print(hit, explain)
    return 0


def _plain(hit: Hit, explain: bool) -> dict[str, Any]:
    hidden = ("marks",) if explain else ("marks", "why")
    return {name: value for name, value in asdict(hit).items() if name not in hidden}


def _print(hit: Hit, explain: bool) -> None:
    what = hit.memory_kind or (f"{hit.kind} {hit.role}".strip())
    also = f"  +{len(hit.also)} alike" if hit.also else ""
    head = f"{hit.score:.2f}  {what}  {day_and_time(hit.timestamp)}  {line(hit.id)}{also}"
    echo(head, dim=True)
    click.echo("  " + _highlighted(hit.snippet, hit.marks))
    if explain:
        echo("  " + _because(hit), dim=True)


def _highlighted(text: str, marks: Iterable[tuple[int, int]]) -> str:
    """The query's words in bold on a terminal; elsewhere the plain text."""
    if not sys.stdout.isatty():
        return text
    shown, end = [], 0
    for start, stop in marks:
        shown += [text[end:start], click.style(text[start:stop], bold=True)]
        end = stop
    return "".join([*shown, text[end:]])


def _because(hit: Hit) -> str:
    why = hit.why
    meaning = f"meaning {why.meaning:.2f}" + ("" if why.known else " (guessed)")
    parts = [f"words {why.words:.2f}", f"around {why.around:.2f}", meaning, f"meaning around {why.meaning_around:.2f}"]
    boosts = [f"{name} {value:+.2f}" for name, value in why.boosts.items()]
    matched = f"; {count(len(why.matched), 'word')}: {', '.join(why.matched)}" if why.matched else ""
    return f"relevance {why.relevance:.2f} ({', '.join(parts)}) {' '.join(boosts)}{matched}"
