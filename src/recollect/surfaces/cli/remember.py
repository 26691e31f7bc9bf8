"""`recollect remember`."""

from __future__ import annotations

from pathlib import Path

import click

from recollect.app import Memory
from recollect.errors import UsageError
from recollect.surfaces.cli.common import author, confirmed, memory, options
from recollect.surfaces.cli.notes import REMEMBERED, as_kind, as_severity, kind_options, tell, when_option


@click.command(
    "remember",
    epilog="""\b
Examples:
  recollect remember "Run make lint before every commit."
  recollect remember "Answer in British English." --everywhere
  recollect remember "The staging server is tide-stg-2." --project ~/code/tides
  recollect remember "No service mesh." --when "add istio" --when "mtls between services"
  recollect remember "Releases wait for Priya." --severity must""",
)
@click.argument("text")
@click.option("--everywhere", is_flag=True, help="It holds in every project.")
@click.option("--project", metavar="P", help="A folder, or a project's id. [default: the current directory]")
@when_option
@kind_options
@options
def command(
    text: str,
    everywhere: bool,
    project: str | None,
    when: tuple[str, ...],
    kind: str | None,
    severity: str | None,
    as_json: bool,
    agent_id: str | None,
) -> int:
    """Remember something, in this project or everywhere.

    It is in memory when the command returns. The same words again are the same memory.
    """
    if everywhere and project is not None:
        raise UsageError("--everywhere and --project exclude each other")
    with memory(agent_id) as opened:
        found = opened.remember(
            text,
            project=None if everywhere else _project(opened, project),
            everywhere=everywhere,
            kind=as_kind(kind),
            severity=as_severity(severity),
            when=when,
            author=author(opened),
        )
    return tell(found, REMEMBERED, as_json)


def _project(opened: Memory, given: str | None) -> Path | str:
    folder = Path.cwd() if given is None else Path(given).expanduser()
    if given is not None and (not given or not folder.is_dir()):
        return given
    confirmed(opened, str(folder))
    known, real = opened.project(folder), folder.resolve()  # or the error that says why it cannot be one
    return real if opened.project(real) == known else folder
