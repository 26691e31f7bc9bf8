"""`recollect consolidate`."""

from __future__ import annotations

from dataclasses import asdict

import click

from recollect.surfaces.cli.common import count, echo, memory, options, print_json

_SAID = {
    "no_input": "Nothing to consolidate yet: run `recollect process` first.",
    "unchanged": "The workspace is up to date.",
    "busy": "Another process is consolidating.",
    "cooling_down": "The last consolidation was a short while ago; `--now` does not wait.",
}


@click.command(
    "consolidate",
    epilog="""\b
Examples:
  recollect consolidate          when there is something new and the last time is six hours ago
  recollect consolidate --now    when there is something new""",
)
@click.option("--now", is_flag=True, help="Do not wait for the pause after the last consolidation.")
@options
def command(now: bool, as_json: bool, agent_id: str | None) -> int:
    """Bring the memory workspace up to date (phase 2)."""
    with memory(agent_id) as opened:
        report = opened.consolidate(now=now)
        folder = opened.settings.workspace
    if as_json:
        print_json(asdict(report))
    elif report.outcome in _SAID:
        echo(_SAID[report.outcome] + (f" ({report.reason})" if report.reason else ""))
    elif report.outcome == "succeeded":
        echo(
            f"{count(len(report.added), 'conversation')} added, {len(report.retained):,} retained,"
            f" {len(report.removed):,} removed: {folder}"
        )
    else:
        echo(f"The consolidation {report.outcome}: {report.reason}", err=True)
    return 1 if report.outcome == "failed" else 0
