"""The line that an agent's settings hold for an event, and the launcher that the line reads.

The line is the same, byte for byte, in every release of recollect and of Python: Codex trusts a hook by its bytes. It
ends with status 0 whatever happens, since both agents take a 2 for "block the prompt", and prints nothing of its own.
It reads the launcher, a file in the home, and does nothing where that is missing, unreadable or a link, or where file
or home is another user's: whoever can make a link there could have any file of the user's read as a script.

The launcher names an interpreter and the client of one installation. Another installation takes it over only when the
one that it names is gone.
"""

from __future__ import annotations

import os
import re
import secrets
import shlex
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePath

from recollect.surfaces.hooks.client import AGENTS, EVENTS

NAME = "hook"  # of the launcher, in the home

# $5 is the home, where it is not the default one. A shell that cannot fork ends with 2: hence the trap, and the `exec`
# for the agent's own shell.
_SCRIPT = (
    'trap "exit 0" 0; h=${5:-${RECOLLECT_HOME:-$HOME/.recollect}}; case $h in /*) [ -O "$h" ] && f=$h/hook &&'
    ' [ -f "$f" ] && [ ! -L "$f" ] && [ -O "$f" ] && (. "$f") 2>/dev/null;; esac'
)
_LINE = ["exec", "/bin/sh", "-c", _SCRIPT, "recollect"]
_CLIENT = "recollect/surfaces/hooks/hook.py"
_PYTHON = re.compile(r"python[\d.]*(\.exe)?")
# Where the client moved, because the Python of an environment was upgraded, the package is asked for.
_LAUNCHER = """\
# The program that answers the events of agents. `recollect init` writes this file.
[ -f {client} ] && exec {python} -I -S {client} "$@"
exec {python} -I -m recollect hook "$@"
"""


@dataclass(frozen=True, slots=True)
class Call:
    """A hook as settings hold it."""

    event: str
    agent: str
    home: str = ""  # empty: the default one, or what RECOLLECT_HOME says

    @property
    def line(self) -> str:
        return shlex.join([*_LINE, *self.words])

    @property
    def words(self) -> list[str]:
        """What the client is given."""
        return [self.event, "--agent", self.agent, *(["--home", self.home] if self.home else [])]


@dataclass(frozen=True, slots=True)
class Program:
    """What answers a hook."""

    python: str
    client: str  # the file that it runs

    @property
    def is_there(self) -> bool:
        return os.access(self.python, os.X_OK) and Path(self.client).is_file()

    @property
    def command(self) -> list[str]:
        """Without a search for packages, which costs more than the answer."""
        return [self.python, "-I", "-S", self.client]

    @property
    def launcher(self) -> str:
        return _LAUNCHER.format(python=shlex.quote(self.python), client=shlex.quote(self.client))


def own() -> Program:
    return Program(sys.executable, str(Path(__file__).with_name("hook.py")))


def is_line(words: Sequence[str]) -> bool:
    """Is a command of these words a line of ours, whatever it calls, also one of before the first release?"""
    begins = [*words[:3], *(each.partition(";")[0] for each in words[3:4]), *words[4:5]]
    return begins == [*_LINE[:3], _SCRIPT.partition(";")[0], *_LINE[4:]] and len(words) > len(_LINE)


def called(command: str) -> Call | None:
    """The call whose line this is."""
    words = shlex.split(command)
    call = _call(words[len(_LINE) :]) if is_line(words) else None
    return call if call and call.line == command else None


def direct(command: str) -> tuple[Program, Call] | None:
    """Program and call of an entry as earlier releases wrote it. It ends with 2 when the program is gone."""
    words = shlex.split(command)
    if len(words) < 5 or words[1:3] != ["-I", "-S"] or shlex.join(words) != command:
        return None
    call, program = _call(words[4:]), Program(words[0], words[3])
    if not _PYTHON.fullmatch(PurePath(program.python).name) or not program.client.endswith(f"/{_CLIENT}"):
        return None
    return (program, call) if call and [*program.command, *call.words] == words else None


def _call(words: Sequence[str]) -> Call | None:
    match words:
        case [event, "--agent", agent, *rest] if event in EVENTS and agent in AGENTS:
            match rest:
                case []:
                    return Call(event, agent)
                case ["--home", home] if home.startswith("/"):
                    return Call(event, agent, home)
    return None


# The file


def installed(home: Path) -> Program | None:
    """The program that the launcher of a home names. OSError: it cannot be read."""
    words = shlex.split(os.fsdecode((home / NAME).read_bytes()), comments=True)
    program = Program(words[6], words[9]) if len(words) > 9 else None
    return program if program and shlex.split(program.launcher, comments=True) == words else None


def install(home: Path, program: Program) -> None:
    """Write the launcher of a home that exists, as a whole or not at all."""
    temporary = home / f".recollect-{secrets.token_hex(8)}.tmp"
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(os.fsencode(program.launcher))
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(home / NAME)
    finally:
        temporary.unlink(missing_ok=True)


def remove(home: Path) -> None:
    with suppress(FileNotFoundError, NotADirectoryError):
        (home / NAME).unlink()


def take_over(home: Path) -> Program | None:
    """Name this installation where the launcher names one that is gone; return that one."""
    with suppress(OSError, ValueError):
        program = installed(home)
        if program and not program.is_there and own().is_there and _is_mine(home / NAME) and _is_mine(home):
            install(home, own())
            return program
    return None


def fault(home: Path) -> str:
    """Why the line finds nothing to run; empty: it does."""
    file = home / NAME
    if file.is_symlink():
        return f"{file} is a link"
    try:
        for each in (home, file):
            if not _is_mine(each):
                return f"{each} belongs to another user"
        program = installed(file.parent)
    except FileNotFoundError:
        return f"there is no {file if home.is_dir() else home}"
    except (OSError, ValueError):
        return f"{file} cannot be read"
    if program is None:
        return f"{file} is not as recollect writes it"
    if program.is_there:
        return ""
    return f"{program.client if os.access(program.python, os.X_OK) else program.python} is gone"


def _is_mine(path: Path) -> bool:
    return path.stat().st_uid == os.geteuid()
