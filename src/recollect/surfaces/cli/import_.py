"""`recollect import`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from recollect.surfaces.cli.common import count, echo, memory, only_for_people, options, print_json
from recollect.surfaces.cli.reindex import describe

_SHOWN = 20


@click.command(
    "import",
    epilog="""\b
Examples:
  recollect import ~/backup/memory.tar.zst
  RECOLLECT_HOME=/tmp/look recollect import memory.tar.zst     into a home of its own, to look at it""",
)
@click.argument("file", type=click.Path(path_type=Path), metavar="FILE")
@options
def command(file: Path, as_json: bool, agent_id: str | None) -> int:
    """Take in an archive from another machine.

    The whole archive is checked before anything is written. What is here already stays as it is: a conversation that is
    here with another content is listed and left alone, and what was erased here does not come back. An import that was
    interrupted is run again.
    """
    only_for_people("import memories", "import", str(file))
    with memory(agent_id) as opened:
        report = opened.import_(file)
    index = report.index
    assert index is not None
    if as_json:
        problems = [asdict(each) | {"hint": each.hint} for each in index.problems]
        print_json(asdict(report) | {"index": asdict(index) | {"problems": problems}})
    else:
        told = f"{count(report.created, 'new file')} of {count(report.conversations, 'conversation')}"
        rows = f"{count(sum(report.rows.values()), 'new row')}, {report.known_rows:,} here already"
        echo(f"{told}, {report.unchanged:,} here already; {rows}")
        if report.erased:
            echo(f"{count(report.erased, 'file')} left out: erased here")
        if report.left_out:
            logs = count(len(report.left_out), "turn log")
            echo(f"{logs} left out: not here any more, and may tell what was erased here since")
            for path in report.left_out[:_SHOWN]:
                echo(f"  {path}")
        describe(index)
        for conflict in report.conflicts[:_SHOWN]:
            echo(f"{conflict.path}: {conflict.what}", err=True)
        if report.conflicts:
            echo(
                f"  {count(len(report.conflicts), 'conflict')}: nothing of these conversations was changed."
                " Move your own file away to take the archive's.",
                err=True,
            )
    return 1 if report.conflicts or index.problems else 0
