"""What the commands share: options, the opened memory, JSON and tables."""

from __future__ import annotations

import logging
import os
import re
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from functools import partial
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Any, TypeVar

import click

from recollect import hand
from recollect.app import Memory, open_memory
from recollect.config import Settings, load
from recollect.errors import RecollectError, UsageError
from recollect.hand import Author
from recollect.home import open_own, require_folder
from recollect.text import readable
from recollect.types import Timestamp, parse_timestamp, timestamp, utc_now

_EMBED_SECONDS = 5.0  # that a command spends on vectors for search; what is left waits for the next one
_SHORT = 18  # characters of a cell that stays in one piece, as a memory's id does, if lines get too long by it
_FOLDED = 12  # columns that any other cell has at least

_Function = TypeVar("_Function", bound=Callable[..., Any])


json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
agent_option = click.option("--agent-id", metavar="ID", help="Whose memory. [default: default]")


def options(function: _Function) -> _Function:
    """On every command that reports something."""
    return agent_option(json_option(function))


class _MemoryId(click.ParamType[str]):
    """As it is shown: MEMORY.md, summaries and the timeline name the revision, too."""

    name = "ID"

    def convert(self, value: str, param: click.Parameter | None, context: click.Context | None) -> str:
        return re.sub(r"^\^?(m-.*?)(?:-r\d+)?$", r"\1", value)


MEMORY_ID = _MemoryId()


def memory(agent_id: str | None) -> Memory:
    opened = open_memory(agent_id=agent_id)
    _log_to_file(opened.settings)
    return opened


def author(opened: Memory) -> Author:
    """Who runs this command, and in which project."""
    try:
        project = opened.project(Path.cwd())
    except (OSError, UsageError):  # the folder is gone, or can be none
        project = ""
    return hand.author(opened.settings.environ, project)


def only_for_people(what: str, *command: str) -> None:
    """NotForAgents in the shell of an agent; `command` is what the user runs instead."""
    if hand.author(os.environ).is_agent:
        raise hand.refusal(what, command)


def place_of(project: str | None) -> str:
    return str(Path.cwd()) if project is None else project


def confirmed(opened: Memory, place: str) -> str:
    """The place, or the error that says why it is not yet the project that a person expects there."""
    if waiting := opened.unconfirmed(place):
        raise waiting
    return place


def settings(agent_id: str | None) -> Settings:
    return load(flags={"agent_id": agent_id})


def embed(opened: Memory, *, quiet: bool) -> str:
    """Makes vectors for search. Where they cannot be made they wait: told as a warning, and returned as the reason."""
    try:
        with counting("embedding", quiet) as progress:
            opened.embed(seconds=_EMBED_SECONDS, progress=progress)
    except RecollectError as error:
        reason = f"vectors wait: {error.message}"
        echo(f"recollect: {reason}\n  {error.hint or 'The next run makes them.'}", err=True)
        return reason
    return ""


def print_json(value: Any) -> None:
    import orjson

    def plain(each: Any) -> Any:
        return dict(each.items()) if hasattr(each, "items") else str(each)

    click.echo(orjson.dumps(value, default=plain, option=orjson.OPT_INDENT_2).decode())


def echo(text: str, *, err: bool = False, **style: Any) -> None:
    """Prints for a person. It may hold what a transcript says: nothing of it is a command to the terminal."""
    shown = readable(text)
    click.echo(click.style(shown, **style) if style else shown, err=err)


def table(columns: Sequence[str], rows: Iterable[Sequence[object]], *, right: Sequence[str] = ()) -> None:
    """The same, in columns."""
    from rich.cells import cell_len
    from rich.console import Console
    from rich.table import Table

    cells = [["-" if cell is None else readable(str(cell)) for cell in row] for row in rows]
    shown = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 2, 0, 0))
    room = -2
    for name, *each in zip(columns, *cells, strict=True):
        widest = max(map(cell_len, (name, *each)))
        least, whole = (widest, True) if widest <= _SHORT else (_FOLDED, False)
        shown.add_column(
            name, justify="right" if name in right else "left", min_width=least, no_wrap=whole, overflow="fold"
        )
        room += least + 2
    for row in cells:
        shown.add_row(*row)
    console = Console(highlight=False, markup=False)
    console.width = max(console.width, room) if console.is_terminal else 200
    with console.capture() as text:
        console.print(shown)
    click.echo(text.get(), nl=False)  # rich would end the process when the reader went away


def size(number: float) -> str:
    for unit in ("B", "kB", "MB"):
        if number < 1000:
            return f"{number:.0f} {unit}" if unit == "B" else f"{number:.1f} {unit}"
        number /= 1000
    return f"{number:.1f} GB"


def count(number: int, noun: str, plural: str = "") -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {plural or noun + 's'}"


def day_and_time(text: str) -> str:
    return text[:16].replace("T", " ")


def since(context: click.Context, option: click.Parameter, value: str | None) -> Timestamp | None:
    """A day, a time, or how long ago: `2026-03-02`, `2026-03-02T09:30`, `7d`, `12h`. As canonical text, in UTC."""
    if value is None:
        return None
    if found := re.fullmatch(r"(\d{1,4})([hdw])", value.strip()):
        hours = int(found[1]) * {"h": 1, "d": 24, "w": 168}[found[2]]
        return timestamp(utc_now() - timedelta(hours=hours))
    try:
        return parse_timestamp(value.strip())
    except ValueError:
        wanted = "a time is needed: `2026-03-02`, `2026-03-02T09:30`, `7d` or `12h`"
        raise click.BadParameter(f"{value!r}; {wanted}", context, option) from None


def until(context: click.Context, option: click.Parameter, value: str | None) -> Timestamp | None:
    """The same; a day stands for its end."""
    from recollect.search.request import day_end

    return day_end(value or "") or since(context, option, value)


def stop_on_signals(stop: Callable[[], None]) -> None:
    """Ctrl-C and SIGTERM call it, in a thread that waits for a byte. A handler would not do: it runs in the main thread
    alone, which may hold the lock of the very event that `stop` sets, and which sleeps on where the kernel gave the
    signal to another thread, as it does on the heels of a SIGCONT."""
    asked, wakeup = os.pipe()
    os.set_blocking(wakeup, False)
    signal.set_wakeup_fd(wakeup)  # written to at once, in whichever thread the signal comes
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, frame: None)

    def until_asked() -> None:
        os.read(asked, 1)
        stop()

    threading.Thread(target=until_asked, name="signals", daemon=True).start()


def is_terminal() -> bool:
    return sys.stderr.isatty()


@contextmanager
def progress_bar(verb: str, quiet: bool, *columns: str) -> Iterator[Callable[..., None]]:
    """What moves a bar on, with these columns of `rich.progress` behind it, on a terminal; nothing elsewhere."""
    if quiet or not is_terminal():
        yield lambda **_: None
        return
    from rich import progress
    from rich.console import Console

    shown = (progress.TextColumn(verb), progress.BarColumn(), *(getattr(progress, each)() for each in columns))
    with progress.Progress(*shown, console=Console(stderr=True), transient=True) as bar:
        yield partial(bar.update, bar.add_task("", total=None))


@contextmanager
def counting(
    verb: str, quiet: bool, columns: Sequence[str] = ("MofNCompleteColumn", "TimeRemainingColumn")
) -> Iterator[Callable[[int, int], None]]:
    """A bar that takes (done, of)."""
    with progress_bar(verb, quiet, *columns) as move:
        yield lambda done, of: move(completed=done, total=of)


class _OwnersFile(RotatingFileHandler):
    """Log files that nobody else may read."""

    def _open(self) -> TextIOWrapper:
        descriptor = open_own(Path(self.baseFilename), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        return os.fdopen(descriptor, "a", encoding="utf-8")


def log_to(settings: Settings, name: str) -> None:
    """What this long-running process has to say goes to logs/<name>; warnings of libraries, too."""
    logging.getLogger().addHandler(_log_file(settings, name, backups=2))
    ours = logging.getLogger("recollect")
    ours.setLevel(min(logging.INFO, logging.getLevelName(settings.config.log_level.upper())))


def _log_file(settings: Settings, name: str, backups: int) -> logging.Handler:
    """Writes logs/<name>, which stays small."""
    from recollect.workspace import make_private

    folder = settings.home / "logs"
    make_private(folder)
    require_folder(folder)
    with suppress(FileNotFoundError):  # a link is told now: later a logger would have to
        os.close(open_own(folder / name, os.O_WRONLY))
    handler = _OwnersFile(folder / name, maxBytes=1_000_000, backupCount=backups, delay=True)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    return handler


def _log_to_file(settings: Settings) -> None:
    """Warnings go to logs/recollect.log; nothing is printed."""
    root = logging.getLogger("recollect")
    root.handlers[:] = [_log_file(settings, "recollect.log", backups=3)]  # once, however often a memory is opened
    root.setLevel(settings.config.log_level.upper())
    root.propagate = False
