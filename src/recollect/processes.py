"""How recollect starts other processes, and is stopped: none takes a module or a program from the current folder.

We are often started in a folder that a stranger made, such as a cloned repository. `python -m` searches the current
folder first, and so does every list of folders that holds an empty or relative element. So this module alone names the
interpreter, looks for programs and starts them; only the hook, which imports nothing of ours, does so by itself.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    import subprocess

_SEARCHED = ("PATH", "PYTHONPATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "DYLD_FRAMEWORK_PATH")
"""Variables that list folders where programs, modules and libraries are looked for."""
_FOLDERS = ("PYTHONHOME", "PYTHONUSERBASE", "PYTHONPYCACHEPREFIX")
"""Variables that name one such folder."""


def python(module: str, *arguments: str) -> list[str]:
    """Return the command that runs a module with this interpreter."""
    return [sys.executable, "-P", "-m", module, *arguments]


def script(name: str) -> Path:
    """Return where a console script of this installation lies, if it has one."""
    return Path(sys.executable).with_name(name)


def isolated(name: str) -> list[str]:
    """Return the command that runs a console script of ours whatever environment somebody else starts it in.

    Without one beside the interpreter the package may lie on the PYTHONPATH, so that is searched then."""
    file = script(name)
    return [sys.executable, "-E", "-P", str(file)] if file.is_file() else python(name)


def environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return a copy in which no variable leads to the current folder."""
    cleaned = dict(environ)
    for name in (*_SEARCHED, *_FOLDERS):
        if name not in environ:
            continue
        parts = environ[name].split(os.pathsep) if name in _SEARCHED else [environ[name]]
        cleaned[name] = os.pathsep.join(part for part in parts if os.path.isabs(part))  # noqa: PTH117 - of a string
        if not cleaned[name]:
            del cleaned[name]
    return cleaned


def program(name: str, environ: Mapping[str, str]) -> str | None:
    """Return the path of a program on the PATH of an environment; None when it is not there."""
    import shutil

    return shutil.which(name, path=environment(environ).get("PATH", os.defpath))


def start(command: Sequence[str], environ: Mapping[str, str], **options: Any) -> subprocess.Popen[bytes]:
    """Start a program by its full path; `options` are those of `subprocess.Popen`."""
    import subprocess

    return subprocess.Popen(command, env=environment(environ), **options)


def run(command: Sequence[str], environ: Mapping[str, str], **options: Any) -> subprocess.CompletedProcess[bytes]:
    """Run a program by its full path to its end; `options` are those of `subprocess.run`."""
    import subprocess

    return subprocess.run(command, env=environment(environ), check=False, **options)


def become(command: Sequence[str]) -> NoReturn:
    """Replace this process by another program."""
    os.execve(command[0], [*command], environment(os.environ))


class Terminated(KeyboardInterrupt):
    """SIGTERM: stopped as by Ctrl-C, and soon."""


@contextmanager
def terminable() -> Iterator[None]:
    """SIGTERM raises Terminated in the main thread, so that what was begun is given back; once, so that nothing stops
    that."""

    def end(number: int, frame: object) -> NoReturn:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        raise Terminated

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
