"""`recollect pause`."""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from pathlib import Path

import click

from recollect.config import located
from recollect.errors import ConfigError, StoreError, UsageError
from recollect.hand import SESSIONS
from recollect.surfaces.cli.common import echo, memory, options, print_json


@click.command(
    "pause",
    epilog="""\b
Examples:
  recollect pause                     the session that this is called from, or the last one in this folder
  recollect pause --session 1f0c…     that session
  recollect pause --resume            go on""",
)
@click.option("--session", metavar="ID", help="Another session than this one.")
@click.option("--resume", is_flag=True, help="Go on.")
@options
def command(session: str | None, resume: bool, as_json: bool, agent_id: str | None) -> int:
    """Tell one session nothing from memory until it is resumed.

    Its transcript is still taken in. To erase a session that is over: `recollect forget --session ID`.
    `recollect status` lists the sessions that are paused.
    """
    from recollect.surfaces.hooks import client

    home = located().home
    chosen = _named(session, agent_id) if session else _this_session(home)
    if not client.is_name(chosen):
        raise UsageError(f"{chosen!r} is no session's id")
    mark = home / client.PAUSED / chosen
    if resume:
        with suppress(FileNotFoundError):
            mark.unlink()
    else:
        client.made(str(home), client.PAUSED)
        mark.touch(mode=0o600)
    if as_json:
        print_json({"id": chosen, "paused": not resume})
    else:
        again = f"paused; `recollect pause --session {chosen} --resume` goes on"
        echo(f"session {chosen}: " + ("goes on" if resume else again))
    return 0


def _named(session: str, agent_id: str | None) -> str:
    """One that is not taken in yet may be paused, too, by the whole of its id; so may any, whatever is wrong here."""
    try:
        with memory(agent_id) as opened:
            return opened.session(session)
    except (ConfigError, StoreError):
        return session


def _this_session(home: Path) -> str:
    """As the agent that we run in tells it, else the last one that the daemon saw in this folder."""
    from recollect.surfaces.hooks import client

    for name in SESSIONS:
        if os.environ.get(name):
            return os.environ[name]
    with suppress(OSError, client.Refused, ValueError):
        answer = client.ask(str(home), ["session"], os.fsencode(Path.cwd()), time.monotonic() + 1)
        if found := json.loads(answer):
            return str(found)
    raise UsageError(
        "which session?", hint="Name it: `recollect pause --session ID`. `recollect conversations` lists them."
    )
