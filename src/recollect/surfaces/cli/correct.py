"""`recollect correct`."""

from __future__ import annotations

import click

from recollect.surfaces.cli.common import MEMORY_ID, author, memory, options
from recollect.surfaces.cli.notes import as_kind, as_severity, kind_options, tell, when_option


@click.command(
    "correct",
    epilog="""\b
Examples:
  recollect correct m-qgyxbr4twjuii5ya "Run make check before every commit."
  recollect correct m-qgyxbr4twjuii5ya "Deploys on Friday are fine." --severity allow""",
)
@click.argument("memory_id", metavar="ID", type=MEMORY_ID)
@click.argument("text")
@when_option
@kind_options
@options
def command(
    memory_id: str,
    text: str,
    when: tuple[str, ...],
    kind: str | None,
    severity: str | None,
    as_json: bool,
    agent_id: str | None,
) -> int:
    """Say what a memory should say instead.

    It keeps its id and gets the next revision; MEMORY.md and the workspace say it at once. Files are never edited: what
    was said before stays in the history.
    """
    with memory(agent_id) as opened:
        strict, by = as_severity(severity), author(opened)
        found = opened.correct(memory_id, text, kind=as_kind(kind), severity=strict, when=when, author=by)
    return tell(found, "Corrected", as_json)
