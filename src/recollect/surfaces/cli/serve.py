"""`recollect serve`."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from recollect import processes
from recollect.config import HOME_VARIABLE, located
from recollect.errors import RecollectError
from recollect.home import open_own
from recollect.surfaces.cli.common import (
    agent_option,
    is_terminal,
    json_option,
    log_to,
    print_json,
    settings,
    stop_on_signals,
)

if TYPE_CHECKING:
    from recollect.config import Settings
    from recollect.surfaces.daemon.place import Lock, Running

_PATIENCE = 15.0  # seconds that a daemon gets to come up, or to stop


@click.command(
    "serve",
    epilog="""\b
Examples:
  recollect serve                until Ctrl-C, or `recollect serve --stop` elsewhere
  recollect serve --background   return when it answers (hooks start it by themselves, too)
  recollect serve --stop         stop it, and wait until it has
  recollect status               tells whether it runs, and what it is at""",
)
@click.option("--stop", is_flag=True, help="Stop the daemon of this home.")
@click.option("--foreground/--background", default=True, help="Stay here, or return when it answers.")
@json_option
@agent_option
def command(stop: bool, foreground: bool, as_json: bool, agent_id: str | None) -> int:
    """Follow the agents and answer their hooks: one daemon per home."""
    from recollect.surfaces.daemon import place
    from recollect.surfaces.hooks import client

    try:
        return _command(stop, foreground, as_json, agent_id)
    except Exception:  # it would end so again, at each hook
        place.came_up(Path(client.parse((), os.environ)[2]), refused=True)
        raise


def _command(stop: bool, foreground: bool, as_json: bool, agent_id: str | None) -> int:
    from recollect.surfaces.daemon import place
    from recollect.surfaces.hooks import client

    if stop:
        was = stopped(located().home)
        _say(as_json, "stopped" if was else "not running", was)
        return 0
    read = client.stamp(client.parse((), os.environ)[2] + "/config.toml")  # before it is: a change after that is seen
    chosen = settings(agent_id)
    told = chosen.origins["agent_id"] not in ("default", "config.toml")
    lock = place.acquire(chosen.home, chosen.config.agent_id if told else "")
    if lock is None:
        _say(as_json, "running already", place.running(chosen.home))
        return 0
    if foreground:
        return _serve(chosen, lock, read, as_json)
    lock.release()
    _say(as_json, "running", started(chosen, agent_id))
    return 0


def _serve(chosen: Settings, lock: Lock, read: str, as_json: bool) -> int:
    from recollect.surfaces.daemon import place
    from recollect.surfaces.daemon.daemon import Daemon

    log_to(chosen, "daemon.log")
    os.environ[HOME_VARIABLE] = str(chosen.home)  # a relative one would mean another from here on
    os.chdir(chosen.home)  # no folder of the user's is kept busy
    daemon = Daemon(chosen, lock, read)
    if as_json:
        _say(as_json, "running", place.running(chosen.home))
    elif is_terminal():
        click.echo(f"serving {chosen.home}, process {os.getpid()}", err=True)
    stop_on_signals(daemon.stop)
    daemon.run()
    if daemon.is_outdated:  # the same process, from its beginning
        again = [each for each in sys.argv[1:] if each != "--json"]  # its document is printed
        processes.become(processes.python("recollect", *again))
    return 0


def started(chosen: Settings, agent_id: str | None) -> Running:
    """A daemon in the background that answers."""
    from recollect.surfaces.daemon import place
    from recollect.surfaces.hooks import client

    told = chosen.home / "logs" / "daemon.err"
    told.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    command = processes.python("recollect", "serve", *(["--agent-id", agent_id] if agent_id else []))
    environ = {**os.environ, HOME_VARIABLE: str(chosen.home)}
    nothing = subprocess.DEVNULL
    with os.fdopen(open_own(told, os.O_WRONLY | os.O_CREAT), "wb") as errors:
        errors.truncate(0)
        process = processes.start(
            command, environ, cwd=chosen.home, stdin=nothing, stdout=nothing, stderr=errors, start_new_session=True
        )
    deadline = time.monotonic() + _PATIENCE
    while process.poll() is None and time.monotonic() < deadline:
        try:
            client.ask(str(chosen.home), ["status"], b"", time.monotonic() + 1)
        except (OSError, client.Refused):
            time.sleep(0.02)
            continue
        if there := place.running(chosen.home):
            return there
    said = told.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    raise RecollectError(f"the daemon did not come up: {said[0] if said else 'no answer'}", hint=f"See {told}.")


def stopped(home: Path) -> Running | None:
    """The daemon that there was."""
    from recollect.surfaces.daemon import place

    was = place.running(home)
    if was is None or not was.pid:
        return None
    os.kill(was.pid, signal.SIGTERM)
    deadline = time.monotonic() + _PATIENCE
    while (there := place.running(home)) is not None and there.pid == was.pid:
        if time.monotonic() > deadline:
            raise RecollectError(
                f"the daemon, process {was.pid}, does not stop", hint="It may be killed: nothing is lost."
            )
        time.sleep(0.02)
    return was


def _say(as_json: bool, state: str, daemon: Running | None) -> None:
    pid, since = (daemon.pid, daemon.since) if daemon else (None, None)
    if as_json:
        print_json({"state": state, "pid": pid, "since": since})
    else:
        click.echo(f"daemon: {state}" + (f", process {pid} since {since}" if daemon else ""))
