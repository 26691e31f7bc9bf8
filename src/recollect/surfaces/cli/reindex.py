"""`recollect reindex`."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from recollect.surfaces.cli.common import count, counting, echo, memory, options, print_json

if TYPE_CHECKING:
    from recollect.app import Memory
    from recollect.artifacts.reindex import Report

_SHOWN = 20


@click.command(
    "reindex",
    epilog="""\b
Examples:
  recollect reindex          what changed on disk
  recollect reindex --full   every file, also those that seem unchanged""",
)
@click.option("--full", is_flag=True, help="Read every file, also those that seem unchanged.")
@options
def command(full: bool, as_json: bool, agent_id: str | None) -> int:
    """Rebuild the database's content and MEMORY.md from the files in memory/.

    The files are the history: a lost or damaged database comes back from them, and no model is asked again. Rows that
    somebody changed in the database become what the files say. Use, offsets and jobs stay as they are. What is wrong
    with a file is listed, and changes nothing.
    """
    with memory(agent_id) as opened, counting("reading", as_json) as progress:
        report = opened.reindex(full=full, progress=progress)
        if as_json:
            print_json(as_dict(opened, report))
        else:
            describe(report)
    return 1 if report.problems else 0


def as_dict(opened: Memory, report: Report) -> dict[str, Any]:
    status = opened.status()
    problems = [asdict(each) | {"hint": each.hint} for each in report.problems]
    return {**asdict(report), "problems": problems, "tables": status.tables, "jobs": status.jobs}


def describe(report: Report) -> None:
    rebuilt = f"{count(report.conversations, 'conversation')}, {count(report.entries, 'entry', 'entries')}"
    echo(
        f"{count(report.files, 'file')}, {report.read:,} read in {report.seconds:.1f} s:"
        f" {rebuilt} and {count(report.memories, 'memory', 'memories')} rebuilt"
    )
    if report.changed:
        echo(f"{report.changed:,} changed in the database, and made again from the files")
    if report.skipped:
        echo(f"{count(report.skipped, 'conversation')} left to the pipeline: newer than their files")
    for problem in report.problems[:_SHOWN]:
        echo(f"{problem.path}: {problem.what}\n  {problem.hint}", err=True)
    if len(report.problems) > _SHOWN:
        echo(f"and {len(report.problems) - _SHOWN:,} more; --json lists all", err=True)
