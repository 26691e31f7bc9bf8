"""`recollect context`."""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import Any

import click

from recollect.app import Memory
from recollect.errors import RecollectError
from recollect.inject.values import Given
from recollect.surfaces.cli.common import (
    count,
    day_and_time,
    echo,
    memory,
    options,
    place_of,
    print_json,
    table,
)


@click.command(
    "context",
    epilog="""\b
Examples:
  recollect context                                       at the start of a session in this project
  recollect context --prompt "how do we sign tokens?"
  recollect context --project ~/code/api --prompt "deploy" --json
  recollect context --last                                what the last sessions were given
  recollect context --last --session 0192f3a4""",
)
@click.option("--project", metavar="P", help="A path or a project id. [default: this folder's]")
@click.option("--prompt", default="", metavar="TEXT", help="What the user says.")
@click.option("--session", default="", metavar="S", help="As in this session, which may have been given some already.")
@click.option("--last", is_flag=True, help="Show what was given, instead of what would be.")
@options
def command(project: str | None, prompt: str, session: str, last: bool, as_json: bool, agent_id: str | None) -> int:
    """Show the very text that an agent would be given now, and why. Nothing is changed by looking.

    Without --prompt it is what a session is told at its start. With --session it is what that one would be given, which
    sees what it was given before."""
    if last and (prompt or project is not None):
        raise click.UsageError("--last shows what was given: it takes no --prompt and no --project")
    off: RecollectError | None = None
    with memory(agent_id) as opened:
        if last:
            told = opened.given_last(opened.session(session))
            keys = ("session", "turn", "given_at")
            shown = [(each.given, {key: getattr(each, key) for key in keys}) for each in told]
        else:
            place = place_of(project)
            off = opened.untold(place)
            shown = [] if off else [(_given(opened, place, prompt, session), {})]
            if shown and not shown[0][0].lines and not shown[0][0].held:
                opened.require_project(project)
    blocks = [(each, about) for each, about in shown if each.lines]
    if as_json:
        plain = [{**about, **_plain(each)} for each, about in blocks]
        held = [asdict(one) for each, _ in shown for one in each.held]
        why = {"off": off.message, "hint": off.hint} if off else {}
        print_json({"blocks": plain, "tokens": sum(each.tokens for each, _ in blocks), "held": held, **why})
        return 0
    for each, about in blocks:
        if about:
            echo(f"session {about['session'] or '-'}, {day_and_time(about['given_at'])}", bold=True)
        _print(each)
    if not blocks:
        echo(f"Nothing: {off.message}.\n  {off.hint}" if off else _nothing(last, session, prompt))
    _print_held([each for each, _ in shown])
    return 0


def _given(opened: Memory, place: str, prompt: str, session: str) -> Given:
    """To a prompt, or at the start of a session."""
    if prompt.strip():
        return opened.context(place, prompt, session)
    opened.finish_removals()
    return opened.briefing.told(opened.project(place), session, place, fresh=not session)


def _plain(given: Given) -> dict[str, Any]:
    lines = [{each.name: getattr(line, each.name) for each in fields(line) if each.repr} for line in given.lines]
    return {"text": given.text, "tokens": given.tokens, "lines": lines}


def _print(given: Given) -> None:
    echo(given.text)
    echo("")
    rows = [
        (line.id, line.section, f"{line.score:.2f}" if line.score else "", line.tokens, line.reason)
        for line in given.lines  # what is pinned or told at the start was not judged
    ]
    table(("memory", "section", "score", "tokens", "why"), rows, right=("score", "tokens"))
    echo(f"{count(given.tokens, 'token')}\n", dim=True)


def _print_held(shown: list[Given]) -> None:
    held = [(one.id, one.reason) for each in shown for one in each.held]
    if held:
        echo("Not given:")
        table(("memory", "why"), held)


def _nothing(last: bool, session: str, prompt: str) -> str:
    if last:
        return f"Nothing was given to session {session}." if session else "Nothing was given to any session yet."
    if prompt:
        start = "`recollect context` shows what a session is told at its start"
        return f"Nothing: no other memory of this project is about that, as far as can be told; {start}."
    return "Nothing: no memory of this project, and none that holds everywhere."
