"""`recollect status`."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from recollect.errors import RecollectError
from recollect.extract.offer import Missed, installed
from recollect.overview import Overview
from recollect.surfaces.cli.common import count, echo, memory, options, print_json, size, table

AGREED = "the projects in `agreed_projects`"


@click.command("status")
@options
def command(as_json: bool, agent_id: str | None) -> int:
    """Show what is in memory and what is going on."""
    from recollect.surfaces.installers.upkeep import troubles

    with memory(agent_id) as opened:
        result = opened.status()
        if {"pending", "running"} & result.kinds.get("erase", {}).keys():
            with suppress(RecollectError):  # it tells so
                opened.finish_removals()
            result = opened.status()
    result.problems += troubles(opened.settings)
    daemon = _daemon(opened.settings.home)
    paused = _paused(opened.settings.home)
    if as_json:
        print_json({**asdict(result), "paused": paused, "daemon": daemon})
        return 0
    show(result, as_json, has_agent=bool(installed(opened.settings)))
    for session in paused:
        echo(f"session {session}: paused (`recollect pause --session {session} --resume`)")
    if not daemon["running"]:
        echo("daemon: not running (a hook, or `recollect serve --background`, starts it)")
        return 0
    told = ", ".join(
        [*daemon.get("doing", ()), *(f"{n:,} {what} waiting" for what, n in daemon.get("waiting", {}).items())]
    )
    blind = "" if daemon.get("watching", True) else ", not watching"
    state = (told or "idle") + blind if daemon.get("answers", True) else "does not answer (`recollect serve --stop`)"
    echo(f"daemon: process {daemon['pid']} since {daemon['since']}, {state}")
    return 0


def _tell_missed(missed: Missed, has_agent: bool) -> None:
    """What the person's own agent has not read, and what to do about it."""
    if missed.models and missed.due:
        echo(f"  {count(missed.due, 'conversation')} to read" + (f", later: {missed.waits}" if missed.waits else ""))
    if missed.models and missed.older:
        older = count(missed.older, "older conversation")
        echo(f"  {older} it did not read: `recollect process --again --now`")
    elsewhere = count(missed.elsewhere, "conversation")
    if missed.elsewhere and missed.models:
        echo(f"  {elsewhere} of other projects: `recollect init --model {missed.models[0]} --project P` agrees to one")
    elif missed.elsewhere and has_agent:
        echo(f"  {elsewhere} that your own agent could read: `recollect init`")


def _paused(home: Path) -> list[str]:
    """Sessions that are told nothing until they are resumed."""
    from recollect.surfaces.hooks import client

    folder = home / client.PAUSED
    return sorted(each.name for each in folder.iterdir()) if folder.is_dir() else []


def _daemon(home: Path) -> dict[str, Any]:
    """Whether it runs, since when, and what it is at."""
    import json
    import time

    from recollect.surfaces.daemon import place
    from recollect.surfaces.hooks import client

    there = place.running(home)
    if there is None:
        return {"running": False}
    found = {"running": True, "pid": there.pid, "since": there.since}
    try:
        answer: dict[str, Any] = json.loads(client.ask(str(home), ["status"], b"", time.monotonic() + 2))
        return found | answer
    except (OSError, client.Refused, ValueError):
        return found | {"answers": False}


def show(result: Overview, as_json: bool, *, has_agent: bool = False) -> None:
    if as_json:
        print_json(asdict(result))
        return
    echo(f"{result.database} ({size(result.database_bytes)})")
    if not result.tables["memory_transcript_entries"]:
        files = any((Path(result.root) / "memory").glob("*.md"))
        lost = "The database is empty, but memory/ is not: run `recollect reindex`."
        echo(lost if files else "Nothing taken in yet: run `recollect ingest`.")
    if result.sources:
        table(
            ("source", "files", "entries"),
            [(name, f"{n['files']:,}", f"{n['entries']:,}") for name, n in result.sources.items()],
            right=("files", "entries"),
        )
    shown = [("conversations", result.conversations), ("memories", result.memories)]
    shown += [(f"{kind} jobs", states) for kind, states in result.kinds.items()]
    for title, numbers in shown:
        if numbers:
            echo(f"{title}: " + ", ".join(f"{number:,} {state}" for state, number in numbers.items()))
    if result.loosened:
        what = count(result.loosened, "memory", "memories")
        echo(f"no longer binding, or no longer user-wide: {what} read without a model, which does not know whose words")
        echo("  they are, or noted by an earlier version, which did not record whether a person or an agent noted it")
        echo("  `recollect pin ID` makes one binding, `recollect remember TEXT --everywhere` makes one user-wide")
    backlog = result.vectors["backlog"].items()
    waiting = ", ".join(count(number, kind, f"{kind[:-1]}ies") for kind, number in backlog if number)
    none = "switched off" if result.vectors["embedder"] == "none" else "none yet"
    echo(f"vectors: {result.vectors['serving'] or none}" + (f", waiting: {waiting}" if waiting else ""))
    echo(f"model: {result.model}" + "".join(f", {each} for {AGREED}" for each in result.missed.models))
    _tell_missed(result.missed, has_agent)
    for spent in result.tokens:
        cost = f", {spent.cost_micros / 1_000_000:.2f} US dollars" if spent.cost_micros else ""
        tokens = f"{spent.input_tokens + spent.output_tokens:,} tokens in {count(spent.requests, 'request')}"
        echo(f"  {spent.day} {spent.model}: {tokens}{cost}")
    if result.problems:
        echo(count(len(result.problems), "problem") + ":")
        for trouble in result.problems:
            echo(f"  {trouble.problem}\n    {trouble.hint}")
