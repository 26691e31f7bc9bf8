"""`recollect project`."""

from __future__ import annotations

from pathlib import Path

import click

from recollect.surfaces.cli.common import echo, memory, only_for_people, options, print_json


@click.group("project")
def command() -> None:
    """Say which project a folder is.

    A repository is the project that it was when it was first seen, wherever it is moved. Another folder that says that
    it is the same project (a second clone, a copy, an unpacked archive) waits until you confirm it: agents there are
    told nothing, and what is said there is kept as a project of its own.
    """


@command.command(
    "confirm",
    epilog="""\b
Examples:
  recollect project confirm .              this clone is mine
  recollect project confirm ~/code/api-2""",
)
@click.argument("folder")
@options
def confirm(folder: str, as_json: bool, agent_id: str | None) -> int:
    """Say that FOLDER is the project that it says it is.

    New sessions there belong to that project. What was said there before stays what it is.
    """
    only_for_people("confirm a project", "project", "confirm", str(Path(folder).absolute()))  # they run it elsewhere
    with memory(agent_id) as opened:
        found = opened.confirm_project(folder)
        place = opened.settings.folder(folder)
    if as_json:
        print_json({"folder": place, "project": found})
    else:
        echo(f"{place} is {found}.")
    return 0
