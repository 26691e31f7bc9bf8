"""`recollect ingest`."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from recollect.errors import UsageError
from recollect.surfaces.cli.common import (
    author,
    count,
    day_and_time,
    echo,
    embed,
    is_terminal,
    memory,
    options,
    print_json,
    progress_bar,
    size,
    table,
)

if TYPE_CHECKING:
    from recollect.app import Memory
    from recollect.ingest.intake import Missing
    from recollect.ingest.run import Report

_SHOWN = 20


@click.command(
    "ingest",
    epilog="""\b
Examples:
  recollect ingest                                  every agent found on this machine
  recollect ingest --file ~/.claude/projects-backup/-Users-foo/abc.jsonl
  recollect ingest --dir ~/.claude/projects-backup  a folder and all below it
  recollect ingest ~/.claude/projects-backup        the same
  recollect ingest --dir ~/old --reimport           read it again from the beginning""",
)
@click.argument("path", required=False)
@click.option("--file", metavar="F", help="One transcript.")
@click.option("--dir", "folder", metavar="D", help="A folder and all below it.")
@click.option("--source", metavar="S", help="Take files for this format; without a path: only its folders.")
@click.option("--reimport", is_flag=True, help="Read from the beginning; what is no longer there goes.")
@click.option("--yes", is_flag=True, help="Do not ask before a re-import removes messages.")
@options
def command(
    path: str | None,
    file: str | None,
    folder: str | None,
    source: str | None,
    reimport: bool,
    yes: bool,
    as_json: bool,
    agent_id: str | None,
) -> int:
    """Take in transcripts: a file, a folder, or every agent's on this machine.

    Only what is new since last time is read. Running it twice, or in two terminals, is safe.
    """
    if sum(each is not None for each in (path, file, folder)) > 1:
        raise UsageError("a path, --file and --dir exclude each other")
    if "" in (path, file, folder):  # a variable that is not set: not the current folder
        raise UsageError("an empty path names no file and no folder")
    if path is not None:
        file, folder = (None, path) if Path(path).is_dir() else (path, None)
    one, all_in = Path(file) if file else None, Path(folder) if folder else None
    with memory(agent_id) as opened:
        if reimport and not yes:
            _ask(opened.intake.missing(file=one, folder=all_in, source=source), as_json)
        with progress(as_json) as report_to:
            by = author(opened)
            report = opened.ingest(file=one, folder=all_in, source=source, reimport=reimport, author=by, **report_to)
        if not as_json:
            describe(opened, report, everything=one is None and all_in is None, source=source)
        waits = embed(opened, quiet=as_json)
        if as_json:
            print_json(as_dict(report, waits))
    return 1 if report.problems else 0


def _ask(missing: Sequence[Missing], as_json: bool) -> None:
    """A backup that is older than what was read from the live file removes nothing by surprise."""
    if not missing:
        return
    messages = count(sum(each.messages for each in missing), "message")
    told = [f"{messages} of {count(len(missing), 'file')}, which the files do not hold any more:"]
    told += [
        f"  {each.path}: {count(each.messages, 'message')}, the newest of {day_and_time(each.newest)}"
        for each in missing[:_SHOWN]
    ]
    told += [f"  and {len(missing) - _SHOWN:,} more files"] if len(missing) > _SHOWN else []
    if as_json or not (sys.stdin.isatty() and is_terminal()):
        shown = "\n".join(("this removes " + told[0], *told[1:]))
        raise UsageError(
            shown, hint="Nothing was read. Add --yes to go on, or leave --reimport away: nothing goes then."
        )
    echo("\n".join(("This removes " + told[0], *told[1:])), err=True)
    click.confirm("Go on?", abort=True, err=True)


def as_dict(report: Report, waits: str) -> dict[str, Any]:
    """`waits`: why there are no vectors yet; empty where there are."""
    return {
        "files": report.files,
        "skipped": report.skipped,
        "entries": report.entries,
        "conversations": report.conversations,
        "malformed": report.malformed,
        "malformed_lines": [
            {"source": each.source, "file": each.file_path, "line": each.line_number, "reason": each.reason}
            for each in report.malformed_lines
        ],
        "without_folder": report.unplaced,
        "bytes": report.bytes,
        "text_bytes": report.text,
        "seconds": round(report.seconds, 3),
        "index_seconds": round(report.index_seconds, 3),
        "problems": [*map(asdict, report.problems), *([{"path": "", "reason": waits}] if waits else [])],
    }


def describe(opened: Memory, report: Report, *, everything: bool, source: str | None = None) -> None:
    entries = count(report.entries, "new entry", "new entries")
    echo(
        f"{count(report.files, 'file')} read, {report.skipped:,} unchanged or skipped: {entries}"
        f" in {count(report.conversations, 'conversation')}, {size(report.bytes)} in {report.seconds:.1f} s"
    )
    if everything and not report.files and not report.skipped:
        found = opened.intake.roots().items()
        looked = [str(root) for name, roots in found for root in roots if source in (None, name)]
        echo("No transcripts were found. Looked in:\n" + "\n".join(f"  {each}" for each in looked))
    if report.malformed:
        echo(f"{count(report.malformed, 'line')} could not be understood:")
        table(
            ("file", "line", "reason"),
            [(each.file_path, each.line_number, each.reason) for each in report.malformed_lines[:20]],
        )
    if report.unplaced:
        echo(
            f"{count(report.unplaced, 'message')} left out: no folder is named, and `ignore` or `disabled_projects` may"
            " be about it. Once neither is set, `recollect ingest` takes them in."
        )
    for problem in report.problems:
        echo(f"could not read {problem.path}: {problem.reason}", err=True)


@contextmanager
def progress(quiet: bool) -> Iterator[dict[str, Any]]:
    """A bar with bytes, rate and time left on a terminal; nothing elsewhere."""
    with progress_bar("reading", quiet, "DownloadColumn", "TransferSpeedColumn", "TimeRemainingColumn") as move:
        yield {
            "expect": lambda bytes_, files: move(total=bytes_),
            "progress": lambda bytes_, files: move(advance=bytes_),
        }
