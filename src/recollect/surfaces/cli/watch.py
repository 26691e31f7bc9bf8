"""`recollect watch`."""

from __future__ import annotations

from threading import Event
from typing import TYPE_CHECKING

import click

from recollect.surfaces.cli.common import agent_option, count, echo, memory, stop_on_signals

if TYPE_CHECKING:
    from recollect.ingest.run import Report


@click.command("watch")
@agent_option
def command(agent_id: str | None) -> int:
    """Take in what changes, until stopped (Ctrl-C)."""
    stop = Event()
    stop_on_signals(stop.set)
    with memory(agent_id) as opened:
        for name, roots in opened.intake.roots().items():
            for root in roots:
                echo(f"{name}: {root}{'' if root.is_dir() else ' (not there yet)'}", err=True)
        opened.watch(stop, _report)
    return 0


def _report(report: Report) -> None:
    if report.entries or report.malformed or report.problems:
        echo(f"{count(report.entries, 'new entry', 'new entries')} from {count(report.files, 'file')}")
    for problem in report.problems:
        echo(f"could not read {problem.path}: {problem.reason}", err=True)
