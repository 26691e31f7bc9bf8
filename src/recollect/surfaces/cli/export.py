"""`recollect export`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from recollect.surfaces.cli.common import count, echo, memory, options, print_json, size

_SHOWN = 20


@click.command(
    "export",
    epilog="""\b
Examples:
  recollect export ~/backup/memory.tar.zst
  recollect export memory.tar.zst --force      replaces the one of yesterday
  tar --zstd -tf memory.tar.zst                what is in it""",
)
@click.argument("file", type=click.Path(path_type=Path), metavar="FILE")
@click.option("--force", is_flag=True, help="Replace the file if it exists.")
@options
def command(file: Path, force: bool, as_json: bool, agent_id: str | None) -> int:
    """Pack everything into one archive.

    Canonical files, tombstones, turn logs, and what only the database knows: jobs, use, offsets, costs. Everything else
    is made from these again. `recollect import` takes it in, on any machine and either database. The archive holds all
    of your memory, is readable by you alone and not encrypted; config.toml is not in it. A conversation that was not
    processed yet has no file, and is counted instead.
    """
    with memory(agent_id) as opened:
        report = opened.export(file, force=force)
    if as_json:
        print_json(asdict(report) | {"problems": [asdict(each) | {"hint": each.hint} for each in report.problems]})
    else:
        files = report.artifacts + report.tombstones + report.turns
        packed = f"{count(report.conversations, 'conversation')} in {count(files, 'file')}"
        echo(f"{report.file}: {packed}, {count(sum(report.rows.values()), 'row')}, {size(report.bytes)}")
        if report.waiting:
            what = count(report.waiting, "conversation")
            echo(f"not in it, or not whole: {what} not processed yet", err=True)
            echo("  Run `recollect process --now`, then export again.", err=True)
        for problem in report.problems[:_SHOWN]:
            echo(f"left out: {problem.path}: {problem.what}\n  {problem.hint}", err=True)
        if len(report.problems) > _SHOWN:
            echo(f"and {len(report.problems) - _SHOWN:,} more; --json lists all", err=True)
    return 1 if report.problems else 0
