"""`recollect forget`."""

from __future__ import annotations

from dataclasses import asdict

import click

from recollect.surfaces.cli.common import MEMORY_ID, count, echo, is_terminal, memory, options, print_json


@click.command(
    "forget",
    epilog="""\b
Examples:
  recollect forget --memory m-3f9a0c1d2e4b5a67 --reason "wrong, and private"
  recollect forget --session 3f0c… --reason "customer data"
  recollect forget --project ~/code/old --reason "contract ended" --yes
  recollect forget --user ada@example.com --reason "asked to" --yes""",
)
@click.option("--session", metavar="S", default="", help="Everything said in an agent's session.")
@click.option("--conversation", metavar="KEY", default="", help="One conversation, by its session key.")
@click.option("--memory", "memory_id", type=MEMORY_ID, default="", help="A memory and the messages it came from.")
@click.option(
    "--project", metavar="P", default="", help="Every conversation of a project: its id, or a folder and all in it."
)
@click.option(
    "--user", metavar="U", default="", help="Everything of a user of chats, in all projects or in that of --project."
)
@click.option("--reason", metavar="R", required=True, help="Why; it is kept in the tombstone.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@options
def command(
    session: str,
    conversation: str,
    memory_id: str,
    project: str,
    user: str,
    reason: str,
    yes: bool,
    as_json: bool,
    agent_id: str | None,
) -> int:
    """Erase something for good: files, rows, indexes, and every line that was made of it.

    It stays erased: a tombstone with hashes, never text, keeps it from coming back by a re-index, a re-import of the
    same transcript or a copy of it. Agents' own transcripts are not touched.
    """
    with memory(agent_id) as opened:
        chosen = {"session": opened.session(session), "conversation": conversation}
        chosen |= {"memory": memory_id, "project": project, "user": user}
        if not yes and not as_json and is_terminal():
            plan = opened.forgetting(**chosen)
            talks = count(len(plan.keys), "conversation")
            click.confirm(f"This erases {count(len(plan.said), 'message')} of {talks} for good. Go on?", abort=True)
        report = opened.forget(**chosen, reason=reason)
    if as_json:
        print_json(asdict(report))
    else:
        echo(
            f"Erased: {count(report.entries, 'message')} of {count(report.conversations, 'conversation')},"
            f" {count(len(report.memories), 'memory', 'memories')}, {count(len(report.removed_paths), 'file')}."
        )
        echo(f"  {report.tombstone} keeps it from coming back.")
        for problem in report.problems:
            echo(f"  not done yet: {problem}", err=True)
        if report.problems:
            echo("  Mend it; `recollect doctor --fix` does what is still to be done then.", err=True)
    return 1 if report.problems else 0
