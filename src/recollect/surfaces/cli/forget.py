"""`recollect forget`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from recollect.artifacts.ledger import shortened
from recollect.errors import NotForAgents, UsageError
from recollect.surfaces.cli.common import (
    MEMORY_ID,
    author,
    count,
    day_and_time,
    echo,
    is_terminal,
    memory,
    options,
    print_json,
)

if TYPE_CHECKING:
    from recollect.app import Memory
    from recollect.artifacts.forget import Report
    from recollect.artifacts.removal import Plan

_SHOWN = 10  # conversations and memories that are named
_WIDTH = 70  # characters of each


@click.command(
    "forget",
    epilog="""\b
Examples:
  recollect forget --memory m-3f9a0c1d2e4b5a67
  recollect forget --text "Ada Lovelace" --dry-run
  recollect forget --session 3f0c… --reason "customer data"
  recollect forget --project ~/code/old --reason "contract ended" --yes
  recollect forget --user ada@example.com --reason "asked to" --yes""",
)
@click.option("--session", metavar="S", default="", help="Everything said in an agent's session.")
@click.option(
    "--conversation", metavar="KEY", default="", help="One conversation, by its session key or the beginning of it."
)
@click.option("--memory", "memory_id", type=MEMORY_ID, default="", help="A memory and the messages it came from.")
@click.option(
    "--project", metavar="P", default="", help="Every conversation of a project: its id, or a folder and all in it."
)
@click.option(
    "--user", metavar="U", default="", help="Everything of a user of chats, in all projects or in that of --project."
)
@click.option("--text", metavar="T", help="Everything that says a name or a text, in all projects.")
@click.option("--also", is_flag=True, help="Erase as well what quotes it, or is near the text; else it is only listed.")
@click.option("--reason", metavar="R", default="", help="Why; it is kept in the tombstone.")
@click.option("--dry-run", is_flag=True, help="Show what would go, and erase nothing.")
@click.option("--digest", metavar="D", default="", help="Erase only what --dry-run showed: the digest that it told.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@options
def command(
    session: str,
    conversation: str,
    memory_id: str,
    project: str,
    user: str,
    text: str | None,
    also: bool,
    reason: str,
    dry_run: bool,
    digest: str,
    yes: bool,
    as_json: bool,
    agent_id: str | None,
) -> int:
    """Erase something for good: files, rows, indexes, and every line that was made of it.

    It shows what goes and asks; where nobody can be asked, it needs --yes. It stays erased: a tombstone with hashes,
    never text, keeps it from coming back by a re-index, a re-import of the same transcript or a copy of it. Agents' own
    transcripts are not touched.
    """
    from recollect.artifacts.mentions import wanted as check

    with memory(agent_id) as opened:
        by = author(opened)
        resumed = opened.finish_removals(hurry=True)
        if text is not None:
            check(text)
        chosen = {"session": opened.session(session), "conversation": opened.conversation(conversation)}
        chosen |= {"memory": memory_id, "project": project, "user": user, "text": text or ""}
        try:
            plan = opened.forgetting(**chosen, also=also, reason=reason, author=by)
        except NotForAgents:
            raise
        except UsageError:
            if resumed is None or not any(chosen.values()):
                raise
            return _report(resumed, (), as_json)  # it was asked for before
        lines = _listed(opened, plan)
        if dry_run:
            return _show(plan, lines, as_json)
        if not yes:
            _ask(lines, as_json)
        return _report(opened.forget(**chosen, also=also, reason=reason, digest=digest, author=by), lines, as_json)


def _listed(opened: Memory, plan: Plan) -> list[str]:
    """What goes, for a person: every conversation and memory by name, up to a bound."""
    talks = []
    for key in plan.keys:
        (talk, *_) = (*plan.talks.get(key, ()), None)
        whole = "all of it" if key in plan.whole else count(len(plan.partly[key]), "message")
        where = f"{day_and_time(talk.first_message_at)}  {talk.project}: " if talk else ""
        talks.append(f"    {where}{shortened(opened.opening(talk), _WIDTH) if talk else key} ({whole})")
    held = [f"    {each.id}  {shortened(each.text, _WIDTH)}" for each in plan.memories]
    messages, talking = count(len(plan.said), "message"), count(len(talks), "conversation")
    lines = [f"  {messages} of {talking}{':' if talks else ''}", *_first(talks)]
    lines += [f"  {count(len(held), 'memory', 'memories')}{':' if held else ''}", *_first(held)]
    near = [
        f"    {each.at.place} {each.at.id}, {each.why}: {shortened(each.snippet, _WIDTH)}"
        for each in plan.also
        if not each.is_name
    ]
    named = [f"    {each.at.place} {shortened(each.snippet, _WIDTH)}" for each in plan.also if each.is_name]
    lines += ["  and leaves, unless --also is given:", *_first(near)] if near else []
    return [
        *lines,
        *(["  and leaves names; --project, --user and --session erase theirs:", *_first(named)] if named else []),
    ]


def _first(lines: Sequence[str]) -> list[str]:
    more = len(lines) - _SHOWN
    return [*lines[:_SHOWN], *([f"    and {more:,} more"] if more > 0 else [])]


def _ask(lines: Sequence[str], as_json: bool) -> None:
    """Go on only if a person says so."""
    if as_json or not (sys.stdin.isatty() and is_terminal()):
        shown = "\n".join(("this erases for good, and nobody can be asked:", *lines))
        raise UsageError(shown, hint="Nothing was erased. Add --yes to erase it, or --dry-run to look only.")
    echo("\n".join(("This erases for good:", *lines)), err=True)
    click.confirm("Go on?", abort=True, err=True)


def _show(plan: Plan, lines: Sequence[str], as_json: bool) -> int:
    if as_json:
        held = [{"id": each.id, "text": each.text} for each in plan.memories]
        also = [each.told() for each in plan.also]
        print_json(
            {
                "conversations": plan.keys,
                "entries": len(plan.said),
                "memories": held,
                "also": also,
                "digest": plan.digest,
            }
        )
    else:
        echo("\n".join(("This would erase for good:", *lines, f"  --digest {plan.digest} erases no more than this")))
    return 0


def _report(report: Report, lines: Sequence[str], as_json: bool) -> int:
    if as_json:
        print_json(asdict(report))
        return 1 if report.problems else 0
    if report.resumed:
        echo("Finished a removal that was cut short.")
    else:
        echo(
            f"Erased: {count(report.entries, 'message')} of {count(report.conversations, 'conversation')},"
            f" {count(len(report.memories), 'memory', 'memories')}, {count(len(report.removed_paths), 'file')}."
        )
        echo("\n".join(lines))
        echo(f"  {report.tombstone} keeps it from coming back.")
    for problem in report.problems:
        echo(f"  not done yet: {problem}", err=True)
    if report.problems:
        echo("  Mend it; `recollect doctor --fix` does what is still to be done then.", err=True)
    return 1 if report.problems else 0
