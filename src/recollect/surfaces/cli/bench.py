"""`recollect bench`: each benchmark prints its figure beside a floor from the same run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from recollect.surfaces.cli.common import print_json, table


@click.group("bench")
def command() -> None:
    """Measure this machine against a floor from the same run."""


@command.command("ingest")
@click.option("--mb", type=click.IntRange(min=1), default=200, show_default=True, help="Size of the tree that is made.")
@click.option(
    "--samples",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Copy these transcripts instead.",
)
@click.option("--files", type=click.IntRange(min=1), default=20_000, show_default=True, help="Files in the scan test.")
@click.option("--database", default="", help="A postgresql:// URL instead of SQLite.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def ingest(mb: int, samples: Path | None, files: int, database: str, as_json: bool) -> int:
    """Ingest rate beside the floor of reading and decoding every line; memory; scan; append."""
    from recollect.surfaces.bench import ingest as bench

    result = bench.run(megabytes=mb, samples=samples, scan_files=files, database=database)
    _show(result, as_json)
    return 0


@command.command("redact")
@click.option(
    "--transcripts",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Real text for false positives.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def redact(transcripts: Path | None, as_json: bool) -> int:
    """Recall on synthetic secrets, false positives on real text, and speed."""
    from recollect.surfaces.bench import redact as bench

    _show(bench.run(transcripts), as_json)
    return 0


@command.command("quality")
@click.option("--show", type=click.Choice(["fit", "held"]), help="List what was missed and what was wrong.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def quality(show: str | None, as_json: bool) -> int:
    """Recall and precision of offline extraction on labelled conversations."""
    from recollect.surfaces.bench import quality as bench

    result = bench.run(show or "")
    listed = {name: result.pop(name) for name in ("missed", "wrong") if name in result}
    _show(result | listed if as_json else result, as_json)
    if not as_json:
        for name, lines in listed.items():
            click.echo(f"\n{name}:\n" + "\n".join(f"  {line}" for line in lines))
    return 0


@command.command("pipeline")
@click.option("--mb", type=click.IntRange(min=1), default=20, show_default=True, help="Size of the tree that is made.")
@click.option(
    "--samples",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Copy these transcripts instead.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def pipeline(mb: int, samples: Path | None, as_json: bool) -> int:
    """Conversations per minute offline, and the share of time spent outside the model."""
    from recollect.surfaces.bench import pipeline as bench

    _show(bench.run(mb, samples), as_json)
    return 0


@command.command("lineage")
@click.option("--artifacts", type=click.IntRange(min=30), default=20_000, show_default=True, help="Files in the store.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def lineage(artifacts: int, as_json: bool) -> int:
    """One session's end, MEMORY.md, a full and an incremental re-index; beside reading and hashing the same files."""
    from recollect.surfaces.bench import lineage as bench

    _show(bench.run(artifacts), as_json)
    return 0


def _show(result: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json(result)
    else:
        table(("", ""), result.items())
