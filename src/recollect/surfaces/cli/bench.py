"""`recollect bench`: each benchmark prints its figure beside a floor from the same run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from recollect.surfaces.cli.common import json_option, print_json, table

_SIZES = (10_000, 100_000, 1_000_000)

_database = click.option("--database", default="", help="A postgresql:// URL instead of SQLite.")
_samples = click.option(
    "--samples",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Copy these transcripts instead.",
)


@click.group("bench")
def command() -> None:
    """Measure this machine against a floor from the same run."""


@command.command("ingest")
@click.option("--mb", type=click.IntRange(min=1), default=200, show_default=True, help="Size of the tree that is made.")
@_samples
@click.option("--files", type=click.IntRange(min=1), default=20_000, show_default=True, help="Files in the scan test.")
@_database
@json_option
def ingest(mb: int, samples: Path | None, files: int, database: str, as_json: bool) -> int:
    """Ingest rate beside the floor of reading and decoding every line; memory; scan; append."""
    from recollect.surfaces.bench import ingest as bench

    return _show(bench.run(megabytes=mb, samples=samples, scan_files=files, database=database), as_json)


@command.command("redact")
@click.option(
    "--transcripts",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Real text for false positives.",
)
@json_option
def redact(transcripts: Path | None, as_json: bool) -> int:
    """Recall on synthetic secrets, false positives on real text, and speed."""
    from recollect.surfaces.bench import redact as bench

    return _show(bench.run(transcripts), as_json)


@command.command("inject")
@click.option("--embedder", default="auto", show_default=True, help="What makes the vectors; `none`: words alone.")
@click.option(
    "--size", type=click.IntRange(min=0), default=100_000, show_default=True, help="Memories for the latency; 0: none."
)
@click.option("--show", type=click.Choice(["fit", "test"]), help="List what was wrong and what was missing.")
@click.option(
    "--set",
    "folder",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Prompts and memories of your own: a folder with prompts.jsonl and memories.jsonl, or several such.",
)
@json_option
def inject(embedder: str, size: int, show: str | None, folder: Path | None, as_json: bool) -> int:
    """Relevance of what is injected, on labelled prompts, and its latency; search and full text beside it."""
    from recollect.surfaces.bench import inject as bench
    from recollect.surfaces.bench import inject_speed

    result = bench.run(embedder, show or "", folder or bench.SET)
    if size:
        result["latency"] = inject_speed.run(size, embedder)
    if as_json:
        print_json(result)
        return 0
    click.echo(f"{result['embedder']}, {result['prompts']:,} prompts, {result['memories']:,} memories")
    for half in [each for each in bench.HALVES if each in result]:
        figures = result[half]
        click.echo(f"\n{half} half")
        rows = {way: figures[way] for way in bench.WAYS if way in figures} | {
            f"ours, {each}": of for each, of in figures.pop("people").items()
        }
        beside(rows)
        if more := [pair for pair in bench.flat(figures) if pair[0].split(".")[0] not in bench.WAYS]:
            table(("", ""), more)
    if size:
        table(("", ""), result["latency"].items())
    for line in result.get("listed", ()):
        click.echo(line)
    return 0


@command.command("pipeline")
@click.option("--mb", type=click.IntRange(min=1), default=20, show_default=True, help="Size of the tree that is made.")
@_samples
@json_option
def pipeline(mb: int, samples: Path | None, as_json: bool) -> int:
    """Conversations per minute offline, and the share of time spent outside the model."""
    from recollect.surfaces.bench import pipeline as bench

    return _show(bench.run(mb, samples), as_json)


@command.command("lineage")
@click.option("--artifacts", type=click.IntRange(min=30), default=20_000, show_default=True, help="Files in the store.")
@json_option
def lineage(artifacts: int, as_json: bool) -> int:
    """One session's end, MEMORY.md, a full and an incremental re-index; beside reading and hashing the same files."""
    from recollect.surfaces.bench import lineage as bench

    return _show(bench.run(artifacts), as_json)


@command.command("retrieval")
@click.option("--locomo", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="A file of LoCoMo.")
@click.option(
    "--longmemeval", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="A file of LongMemEval."
)
@click.option("--embedder", help="Another embedder than the configured one.")
@click.option("--home", type=click.Path(file_okay=False, path_type=Path), help="Keep the store here for another run.")
@_database
@json_option
def retrieval(
    locomo: Path | None, longmemeval: Path | None, embedder: str | None, home: Path | None, database: str, as_json: bool
) -> int:
    """Evidence recall of search on questions about conversations; FTS5 alone and vectors alone beside it."""
    from recollect.surfaces.bench import retrieval as bench

    if locomo is None and longmemeval is None:
        raise click.UsageError("name a file: --locomo FILE, --longmemeval FILE, or both")
    result = bench.run(locomo, longmemeval, home=home, database=database, embedder=embedder)
    if as_json:
        print_json(result)
        return 0
    for name, figures in result.items():
        click.echo(f"{name}: {figures['turns']:,} turns, {figures['questions']:,} questions")
        beside({way: figures[way] for way in ("fts", "vectors", "ours")})
        click.echo(f"off-topic questions that get no answer: {figures['off_topic_empty']:.1%}\n")
    return 0


@command.command("search")
@click.option(
    "--size", "sizes", type=click.IntRange(min=1000), multiple=True, help="Entries. [default: 10000, 100000, 1000000]"
)
@click.option("--embedder", default="static", show_default=True, help="What makes the vectors.")
@json_option
def search(sizes: tuple[int, ...], embedder: str, as_json: bool) -> int:
    """Latency of full text, meaning and both at several sizes; rates, sizes, and brute force beside it."""
    from recollect.surfaces.bench import search as bench

    return _side_by_side(bench.run(sizes or _SIZES, embedder), as_json)


@command.command("hooks")
@click.option("--mb", type=click.IntRange(min=1), default=1000, show_default=True, help="Size of the import.")
@click.option("--sessions", type=click.IntRange(min=1), default=50, show_default=True, help="Sessions at once.")
@click.option("--idle-seconds", type=click.FloatRange(min=1), default=60, show_default=True, help="How long to idle.")
@json_option
def hooks(mb: int, sessions: int, idle_seconds: float, as_json: bool) -> int:
    """Latency of hooks with the daemon up, down and busy, and of many at once; CPU and memory of an idle daemon."""
    from recollect.surfaces.bench import hooks as bench

    result = bench.run(mb, sessions, idle_seconds)
    if as_json:
        print_json(result)
        return 0
    columns = ("p50", "p95", "p99", "calls", "answered")
    table(("milliseconds", *columns), bench.rows(result), right=columns)
    for name in ("import", "idle"):
        click.echo(f"{name}: " + ", ".join(f"{key} {value}" for key, value in result[name].items()))
    return 0


@command.command("turns")
@click.option("--turns", type=click.IntRange(min=100), default=100_000, show_default=True, help="Turns in all.")
@click.option("--users", type=click.IntRange(min=1), default=1_000, show_default=True, help="Users they belong to.")
@click.option("--own", type=click.IntRange(min=1), default=1_000, show_default=True, help="Turns of the conversation.")
@click.option("--measured", type=click.IntRange(min=20), default=200, show_default=True, help="Turns that are timed.")
@_database
@json_option
def turns(turns: int, users: int, own: int, measured: int, database: str, as_json: bool) -> int:
    """What a chat pays for a turn's memory: preload and view, and persist; beside an append and a commit."""
    from recollect.surfaces.bench import turns as bench

    return _show(bench.run(turns, users, own, measured, database), as_json)


def _show(result: dict[str, Any], as_json: bool) -> int:
    if as_json:
        print_json(result)
    else:
        table(("", ""), result.items())
    return 0


def beside(ways: Mapping[str, Mapping[str, object]]) -> None:
    """A line per way, with the same figures of each."""
    columns = list(next(iter(ways.values())))
    table(("", *columns), [(way, *figures.values()) for way, figures in ways.items()], right=columns)


def _side_by_side(results: Sequence[Mapping[str, Any]], as_json: bool) -> int:
    if as_json:
        print_json(results)
    else:
        keys = list(dict.fromkeys(key for result in results for key in result))
        table(("", *("" for _ in results)), [(key, *(result.get(key, "") for result in results)) for key in keys])
    return 0
