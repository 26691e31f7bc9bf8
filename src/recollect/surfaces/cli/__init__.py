"""The command line: a file per command, imported when that command runs.

`run` is the contract's edge: exit status 0 done, 1 some of the work failed, 2 the call was wrong; with --json one
document on standard output and nothing else there, an error included.
"""

from __future__ import annotations

import importlib
import keyword
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import pairwise
from threading import current_thread, main_thread

import click

from recollect.errors import RecollectError, UsageError
from recollect.processes import Terminated, terminable

_COMMANDS = {
    "init": "Plug recollect into the agents on this machine.",
    "ingest": "Take in transcripts: a file, a folder, or every agent's on this machine.",
    "watch": "Take in what changes, until stopped.",
    "serve": "Follow the agents and answer their hooks (the daemon).",
    "hook": "Answer an agent's event; agents call it.",
    "service": "Keep the daemon running by systemd.",
    "pause": "Tell a session nothing from memory for a while.",
    "process": "Extract memories from conversations that are ready (phase 1).",
    "consolidate": "Bring the memory workspace up to date (phase 2).",
    "remember": "Remember something, in this project or everywhere.",
    "correct": "Say what a memory should say instead.",
    "pin": "Put a memory first, and keep it there.",
    "unpin": "Take a memory's pin away.",
    "feedback": "Say whether a memory is right.",
    "wrong": "Say that memories are none: no agent is told them again.",
    "retry": "Give jobs that failed a fresh start.",
    "search": "Find memories, summaries and messages.",
    "context": "Show what an agent would be given now, or was given last, and why.",
    "memories": "List memories, and how far each is trusted.",
    "inbox": "Show what is new since you last looked.",
    "move": "Say that a memory holds in another project, or everywhere.",
    "undo": "Take the last change of a memory back.",
    "sessions": "List what was done and left in sessions, or read one.",
    "ui": "Open the page: see, search, correct and erase.",
    "conversations": "List conversations.",
    "timeline": "Show what happened when, and what was learnt.",
    "show": "Show a memory, conversation or message and where it comes from.",
    "open": "Read the Markdown of a conversation.",
    "project": "Say which project a folder is.",
    "forget": "Erase a session, a conversation, a memory or a project for good.",
    "reindex": "Rebuild the database's content and MEMORY.md from the files in memory/.",
    "export": "Pack everything into one archive.",
    "import": "Take in an archive from another machine.",
    "status": "Show what is in memory and what is going on.",
    "doctor": "Find what is wrong, and mend it.",
    "health": "Check everything and say what to do about what is wrong.",
    "config": "Show every setting and where its value came from.",
    "models": "List embedding models, or install one.",
    "mcp": "Serve memory to an agent over MCP (agents start it).",
    "bench": "Measure this machine against a floor from the same run.",
}


_WITHOUT_UPKEEP = ("init", "hook")  # the first does more, the second has no time
_ENDS_AT_ONCE = ("hook", "mcp", "serve", "ui", "watch")  # by SIGTERM, or in a way of its own
_FINISHES_BY_ITSELF = (*_ENDS_AT_ONCE, "forget")  # what goes on looks again and again; `forget` tells what went


class _Commands(click.Group):
    """Knows every command's summary without importing it."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module = f"{cmd_name}_" if keyword.iskeyword(cmd_name) else cmd_name
        command = importlib.import_module(f"recollect.surfaces.cli.{module}").command
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(_COMMANDS.items()))


@click.group(
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Everything lives under RECOLLECT_HOME (~/.recollect). `recollect COMMAND --help` shows examples.",
)
@click.version_option(package_name="recollect", message="recollect %(version)s")
@click.pass_context
def cli(context: click.Context) -> None:
    """Long-term memory for AI agents that a person can read, search, correct and erase."""
    if context.invoked_subcommand not in _ENDS_AT_ONCE and current_thread() is main_thread():
        context.with_resource(terminable())
    if context.invoked_subcommand not in _WITHOUT_UPKEEP:
        _mend_hooks()
    if context.invoked_subcommand not in _FINISHES_BY_ITSELF:
        _finish_removal(context.obj)


def _mend_hooks() -> None:
    """See to it that agents can call us, and can do without us. No command fails by it."""
    from recollect.config import located
    from recollect.surfaces.installers.upkeep import mend
    from recollect.types import utc_now

    with suppress(OSError, RecollectError, RuntimeError):
        if told := mend(located(), utc_now()):
            click.echo(f"recollect: {told}", err=True)


def _finish_removal(agent_id: str | None) -> None:
    """Erase what a `forget` left that was cut short, whatever the command is. Where nothing was ever erased this is one
    look into a folder. No command fails by it: `status` tells what could not be done."""
    from recollect.artifacts.names import TOMBSTONES
    from recollect.config import load

    with suppress(OSError, RecollectError, RuntimeError):
        if (load(flags={"agent_id": agent_id}).root / TOMBSTONES).is_dir():
            from recollect.surfaces.cli.common import memory

            with memory(agent_id) as opened:
                opened.finish_removals()


def _agent_id(arguments: Sequence[str]) -> str | None:
    """Whose memory the command is about, before the command itself is imported."""
    named = [each.partition("=")[2] for each in arguments if each.startswith("--agent-id=")]
    named += [value for flag, value in pairwise(arguments) if flag == "--agent-id"]
    return named[-1] if named else None


def run(arguments: Sequence[str]) -> int:
    """Runs a command; returns the exit status."""

    def call() -> object:
        color = False if os.environ.get("TERM") == "dumb" else None  # None: on a terminal
        agent_id = _agent_id(arguments)
        with cli.make_context("recollect", list(arguments), obj=agent_id, color=color) as context:  # main() would exit
            try:
                return cli.invoke(context)
            except UnicodeEncodeError as error:  # of the database: it holds nothing that is not UTF-8
                for each in arguments:
                    if not each.isascii() and each in str(error.object):
                        raise UsageError(f"{each!r} is not UTF-8") from error
                raise

    return guarded(call, as_json="--json" in arguments)


def guarded(call: Callable[[], object], *, as_json: bool) -> int:
    """What it returns as exit status, 0 if that is none; errors are said as the contract wants it."""
    _open_streams()
    try:
        result = call()
        sys.stdout.flush()
        return result if isinstance(result, int) else 0
    except click.exceptions.Exit as done:
        return done.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        return 2
    except click.ClickException as error:
        where = error.ctx.command_path if isinstance(error, click.UsageError) and error.ctx else "recollect"
        return _say(as_json, "UsageError", error.format_message(), f"Try `{where} --help`.", 2)
    except RecollectError as error:
        return _say(as_json, error.kind, error.message, error.hint, 2 if isinstance(error, UsageError) else 1)
    except click.Abort:
        return _say(as_json, "Aborted", "not confirmed; nothing more was done", "", 1)
    except Terminated:
        return _say(as_json, "Terminated", "stopped; what was finished is kept", "Run it again to go on.", 143)
    except KeyboardInterrupt:
        return _say(as_json, "Interrupted", "stopped; what was finished is kept", "Run it again to go on.", 130)
    except BrokenPipeError:  # the reader went away (`| head`): not an error of ours
        _drop_output()
        return 0
    except OSError as error:
        message = f"{error.filename}: {error.strerror}" if error.filename else str(error.strerror or error)
        if isinstance(error, FileNotFoundError) and not error.filename and _is_nowhere():
            message = "the current folder is gone"
        return _say(as_json, "OSError", message, "", 1)
    except RuntimeError as error:
        if "home directory" not in str(error):  # of pathlib: `~` is nobody's
            raise
        hint = "Set HOME, or write the path in full."
        return _say(as_json, "UsageError", "`~` stands for a home folder that is not known", hint, 2)


def _is_nowhere() -> bool:
    try:
        return not os.getcwd()  # noqa: PTH109
    except OSError:
        return True


def _open_streams() -> None:
    """A stream that was closed before we began (`>&-`) says nothing, or takes what nobody reads."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: PTH123, SIM115 - as long as we live


def _drop_output() -> None:
    """What is still buffered has no reader: the interpreter would fail on it at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _say(as_json: bool, kind: str, message: str, hint: str, status: int) -> int:
    """In words where standard output takes no document."""
    import json

    from recollect.text import readable

    try:
        if as_json:
            click.echo(json.dumps({"error": {"kind": kind, "message": message, "hint": hint}}))
            return status
        sys.stdout.flush()
    except OSError:
        _drop_output()
    with suppress(OSError):
        click.echo(readable(f"recollect: {message}" + (f"\n  {hint}" if hint else "")), err=True)
    return status
