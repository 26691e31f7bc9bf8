"""`recollect mcp`."""

from __future__ import annotations

import os
import signal

import click

from recollect import hand
from recollect.surfaces.cli.common import agent_option, memory


@click.command(
    "mcp",
    epilog="""\b
Examples:
  recollect mcp                          as `recollect init` puts it into an agent's settings
  recollect mcp --project ~/code/api     always about this project""",
)
@click.option(
    "--project", metavar="P", default="", help="Always this project: a path or an id. [default: the client's]"
)
@agent_option
def command(project: str, agent_id: str | None) -> int:
    """Serve memory to an agent over MCP (agents start it).

    It speaks the protocol on standard input and output, until its input ends. The project is the one that a call
    names, else --project, else the client's first root, else the folder it was started in.
    """
    from recollect.surfaces.mcp.scope import Launch
    from recollect.surfaces.mcp.server import build

    signal.signal(signal.SIGINT, signal.SIG_DFL)  # else it is noticed only when the next request has come
    with memory(agent_id) as opened:
        folder = os.getcwd()  # noqa: PTH109 - as the agent recorded it
        named = opened.settings.folder(project) if project.startswith(("~", ".")) else project
        session = hand.session(opened.settings.environ)
        build(opened, Launch(named, folder, opened.settings.user_home, session)).run("stdio")
    return 0
