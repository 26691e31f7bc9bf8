"""`recollect ui`."""

from __future__ import annotations

import os
import secrets
import sys
import threading
import time
from html import escape
from pathlib import Path

import click

from recollect import processes
from recollect.errors import RecollectError
from recollect.surfaces.cli.common import (
    agent_option,
    json_option,
    only_for_people,
    print_json,
    settings,
    stop_on_signals,
)
from recollect.surfaces.hooks import client
from recollect.surfaces.http import place
from recollect.surfaces.http.launch import Page

_PATIENCE = 20.0  # seconds that the page gets to come up
_OPENER = """<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0;url={url}">
<title>recollect</title><p><a href="{url}">Open the page</a></p>
"""


@click.command(
    "ui",
    epilog="""\b
Examples:
  recollect ui                open the page in the browser
  recollect ui --print        print an address that opens it once, within a minute""",
)
@click.option("--print", "only_print", is_flag=True, help="Print the address, and open no browser.")
@json_option
@agent_option
def command(only_print: bool, as_json: bool, agent_id: str | None) -> int:
    """Open the page: see, search, correct and erase what agents remember.

    It is served on this machine alone, by a process of its own that leaves when nobody looks. Where the daemon runs it
    starts that process; else this command does, and stays until Ctrl-C. The address opens the page once; the browser
    may come back until it is 90 days old.
    """
    only_for_people("open the page", "ui")
    chosen = settings(agent_id)
    page = _started(chosen.home, agent_id or "")
    token = place.mint(chosen.home)
    there = place.running(chosen.home)
    if there is None:
        raise RecollectError("the page left again", hint="See logs/page.log under RECOLLECT_HOME.")
    url = f"http://{there[1]}/enter?token={token}"
    if as_json:
        print_json({"url": url, "seconds": int(place.TOKEN_SECONDS)})
    elif only_print or not _opened(chosen.home, url):
        click.echo(url)
    if page is not None:
        sys.stdout.flush()
        _stay(page)
    return 0


def _started(home: Path, agent_id: str) -> Page | None:
    """The page answers now. Returns it where this process has started it, and has to stay."""
    page: Page | None = None
    if place.running(home) is None:
        try:
            client.ask(str(home), ["ui"], b"", time.monotonic() + 2)
        except (OSError, client.Refused):
            home.mkdir(mode=0o700, parents=True, exist_ok=True)
            page = Page(home, dict(os.environ), agent_id)
            page.start()
    deadline = time.monotonic() + _PATIENCE
    while place.running(home) is None:
        if time.monotonic() > deadline or (page is not None and page.ended.is_set()):
            raise RecollectError("the page did not come up", hint="See logs/page.log under RECOLLECT_HOME.")
        time.sleep(0.02)
    return page


def _opened(home: Path, url: str) -> bool:
    """Opens a file that leads there: an address in an argument list could be read by every user of this machine."""
    name = "open" if sys.platform == "darwin" else "xdg-open"
    program = processes.program(name, os.environ)
    if program is None:
        return False
    text = _OPENER.format(url=escape(url, quote=True))
    file = place.write(home, f"open-{secrets.token_hex(8)}.html", text.encode())
    return processes.run([program, str(file)], os.environ, timeout=_PATIENCE).returncode == 0


def _stay(page: Page) -> None:
    stopped = threading.Event()
    stop_on_signals(stopped.set)
    while not stopped.wait(0.2):
        if page.ended.is_set():
            return
    page.stop()
