"""`recollect open`."""

from __future__ import annotations

import os
import sys
from dataclasses import asdict

import click

from recollect.surfaces.cli.common import echo, memory, options, print_json
from recollect.text import readable


@click.command(
    "open",
    epilog="""\b
Examples:
  recollect open last
  recollect open 5f2c9a70 --transcript
  recollect open qgyxbr4twjuii5ya --path
  $EDITOR ~/.recollect/"$(recollect open last --path)\"""",
)
@click.argument("session", metavar="SESSION")
@click.option("--summary", "kind", flag_value="summary", help="The summary with its memories; else what there is.")
@click.option("--transcript", "kind", flag_value="transcript", help="Every message.")
@click.option(
    "--compaction", "kind", flag_value="compaction", help="What the agent wrote when it compacted its context."
)
@click.option("--manifest", "kind", flag_value="manifest", help="What belongs together, and what was superseded.")
@click.option("--path", "path_only", is_flag=True, help="Print where it lies, relative to RECOLLECT_HOME, and no more.")
@options
def command(session: str, kind: str | None, path_only: bool, as_json: bool, agent_id: str | None) -> int:
    """Read the Markdown of a conversation.

    SESSION is a session's id or key, the beginning of one, a token, a path, the number that `conversations` shows, or
    `last`. Of a session with several conversations the newest is opened. Without an option: the summary, else the
    transcript. On a terminal $PAGER shows it.
    """
    with memory(agent_id) as opened:
        found = opened.open(session, kind)
    if as_json:
        head = asdict(found.head) if found.head else {}
        shown = {"path": found.path, "kind": found.kind, "problem": found.problem, "head": head}
        print_json({**shown, "files": found.siblings, **({} if path_only else {"text": found.text})})
        return 0
    if found.problem:
        echo(f"recollect: {found.path} was changed by hand: {found.problem}", err=True)
        click.echo("  `recollect doctor` tells what to do about it.", err=True)
    if path_only:
        click.echo(found.path)
    elif sys.stdout.isatty() and os.environ.get("PAGER"):
        click.echo_via_pager(readable(found.text))
    else:
        click.echo(readable(found.text) if sys.stdout.isatty() else found.text, nl=False)
    return 0
