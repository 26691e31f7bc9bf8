"""The line in agents' settings: run by real shells, it ends with 0, in time and in silence, whatever is missing."""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from recollect.surfaces.hooks import client, launcher
from recollect.surfaces.hooks.launcher import Call, Program
from tests.daemons import Home, home

SHELLS = [path for name in ("sh", "bash", "zsh", "fish", "tcsh", "ksh", "busybox") if (path := shutil.which(name))]
EVENT = json.dumps({"session_id": "s1", "cwd": "/code/tides", "prompt": "tides?"}).encode()
SOON = 3.0  # seconds, on a busy machine
NOBODY = 65534


def run(line: str, *, shell: str = "/bin/sh", **more: Any) -> subprocess.CompletedProcess[bytes]:
    """As an agent runs it."""
    options = {"input": EVENT, "capture_output": True, "timeout": 20, **more}
    program = [shell, "sh", "-c"] if shell.endswith("busybox") else [shell, "-c"]
    return subprocess.run([*program, line], check=False, **options)


def ends_well(line: str, **more: Any) -> None:
    started = time.monotonic()
    done = run(line, **more)
    assert (done.returncode, done.stdout or b"") == (0, b""), done
    assert time.monotonic() - started < SOON


def at(folder: Path, text: str = "") -> str:
    """A line that leads to a home with this launcher."""
    folder.mkdir(parents=True, exist_ok=True)
    if text:
        (folder / launcher.NAME).write_text(text)
    return Call("UserPromptSubmit", "codex", str(folder)).line


def a_program(folder: Path, status: int) -> str:
    """An interpreter's name for what is none any more."""
    program = folder / "bin" / "python"
    program.parent.mkdir(parents=True, exist_ok=True)
    program.write_text(f"#!/bin/sh\necho damaged >&2\nexit {status}\n")
    program.chmod(0o755)
    return str(program)


OWN = launcher.own()
GONE: list[Callable[[Path], str]] = [
    at,
    lambda folder: at(folder / "not" / "a folder")[:-1] + "x'",
    lambda folder: at(folder, Program("/nowhere/bin/python", OWN.client).launcher),
    lambda folder: at(folder, Program(OWN.python, "/nowhere/recollect/surfaces/hooks/hook.py").launcher),
    lambda folder: at(folder, Program("/dev/null", OWN.client).launcher),
    lambda folder: at(folder, Program(a_program(folder, 2), OWN.client).launcher),
    lambda folder: at(folder, Program(a_program(folder, 2), "/nowhere/hook.py").launcher),
    lambda folder: at(folder, "exit 2\n"),
    lambda folder: at(folder, "if ( ; then 'never closed\n"),
    lambda folder: at(folder, "\0\1\2" * 1000),
    lambda folder: at(folder, ". /nowhere\nexit 2"),
    lambda folder: at(folder) if (folder.mkdir(), (folder / launcher.NAME).mkdir()) else "",
    lambda folder: at(folder) if (folder.mkdir(), os.mkfifo(folder / launcher.NAME)) else "",
]


@pytest.mark.parametrize("made", GONE)
def test_whatever_is_missing_or_damaged_the_line_ends_with_0(made: Callable[[Path], str], tmp_path: Path) -> None:
    ends_well(made(tmp_path / "home"))


@pytest.mark.parametrize("shell", SHELLS)
def test_the_line_works_in_every_shell_and_with_any_home(shell: str, tmp_path: Path) -> None:
    folder = tmp_path / 'it\'s a "home" of $HOME & `co`; é'
    said = tmp_path / "said"
    client_file = tmp_path / "hook.py"
    client_file.write_text(f"import sys\nopen({str(said)!r}, 'w').write(repr((sys.argv[1:], sys.stdin.read())))\n")
    line = at(folder, Program(sys.executable, str(client_file)).launcher)
    ends_well(line, shell=shell)
    assert said.read_text() == repr((["UserPromptSubmit", "--agent", "codex", "--home", str(folder)], EVENT.decode()))
    (folder / launcher.NAME).unlink()
    said.unlink()
    ends_well(line, shell=shell)
    assert not said.exists()


@pytest.mark.parametrize(
    "environ",
    [
        {"HOME": "/dev/null"},
        {"HOME": ""},
        {},
        {"HOME": "/nowhere", "PATH": ""},
        {"RECOLLECT_HOME": "home"},
        {"RECOLLECT_HOME": "./home", "HOME": "."},
        {"HOME": "home"},
    ],
)
def test_a_home_that_is_none_or_relative_runs_nothing(environ: dict[str, str], tmp_path: Path) -> None:
    for folder in (tmp_path / "home", tmp_path / "home" / ".recollect", tmp_path / ".recollect"):
        at(folder, f"echo ran > {tmp_path}/ran\n")
    for shell in SHELLS:
        ends_well(Call("Stop", "codex").line, shell=shell, env=environ, cwd=tmp_path)
    assert not (tmp_path / "ran").exists()


def test_a_folder_that_is_gone_stops_no_hook(tmp_path: Path) -> None:
    line = at(tmp_path / "home")
    (tmp_path / "gone").mkdir()
    ends_well(f"cd {tmp_path / 'gone'} && rmdir {tmp_path / 'gone'} && {line}")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")
def test_a_home_of_another_user_or_one_that_cannot_be_read_runs_nothing(tmp_path: Path) -> None:
    folder = Path("/tmp") / f"recollect-{os.getpid()}"  # pytest's own folders are root's alone
    folder.mkdir(mode=0o755)
    try:
        theirs = at(folder / "theirs", f"touch {folder}/ran\n")
        closed = at(folder / "closed", f"touch {folder}/ran\n")
        os.chown(folder / "closed", NOBODY, NOBODY)
        os.chown(folder / "closed" / launcher.NAME, NOBODY, NOBODY)
        folder.chmod(0o777)
        for line, mode in ((theirs, 0o755), (closed, 0o700), (closed, 0o000)):
            Path(line.split("--home ")[1]).chmod(mode)
            ends_well(line, user=NOBODY, group=NOBODY, extra_groups=[])
            assert (folder / "ran").exists() is (line == closed and mode != 0), "where it can be read it runs"
            (folder / "ran").unlink(missing_ok=True)
        (folder / "closed").chmod(0o700)
        clone = folder / "clone.sh"  # their own file, and what somebody else wrote
        clone.write_text(f"touch {folder}/ran\n")
        os.chown(clone, NOBODY, NOBODY)
        for line in (theirs, closed):
            link = Path(line.split("--home ")[1]) / launcher.NAME
            link.replace(link.with_name("kept"))
            link.symlink_to(clone)
            ends_well(line, user=NOBODY, group=NOBODY, extra_groups=[])
            assert not (folder / "ran").exists(), "a link leads to no script"
            link.unlink()
            os.link(clone, link)
            ends_well(line, user=NOBODY, group=NOBODY, extra_groups=[])
            assert (folder / "ran").exists() is (line == closed), "nor does a home of somebody else"
            (folder / "ran").unlink(missing_ok=True)
            link.with_name("kept").replace(link)
        ends_well(closed, user=NOBODY, group=NOBODY, extra_groups=[], preexec_fn=_cannot_fork)
        assert not (folder / "ran").exists(), "a shell that cannot fork ends with 2 by itself"
    finally:
        shutil.rmtree(folder)


def _cannot_fork() -> None:
    resource.setrlimit(resource.RLIMIT_NPROC, (1, 1))


# What the client itself does where things go wrong


@pytest.fixture
def plugged_in(tmp_path: Path) -> Any:
    with home(tmp_path) as made:
        made.path.mkdir(mode=0o700)
        launcher.install(made.path, launcher.own())
        yield made


HOSTILE = {
    "PYTHONPATH": ".:/nowhere",
    "PYTHONHOME": "/nowhere",
    "PYTHONSTARTUP": "/nowhere/start.py",
    "PYTHONINSPECT": "1",
    "PYTHONWARNINGS": "error",
    "PYTHONIOENCODING": "nonsense",
    "PYTHONMALLOC": "debug",
    "BASH_ENV": "/nowhere",
    "ENV": "/nowhere",
    "SHELLOPTS": "errexit:nounset",
    "IFS": "/",
    "CDPATH": "/",
    "LC_ALL": "nonsense",
}


def test_a_hostile_environment_does_not_matter(plugged_in: Home, tmp_path: Path) -> None:
    folder = tmp_path / "hostile"
    folder.mkdir()
    for name in ("os.py", "select.py", "json.py", "client.py", "recollect.py", "sitecustomize.py"):
        (folder / name).write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\nraise SystemExit(2)\n")
    for shell in SHELLS:
        for event in ("SessionStart", "UserPromptSubmit"):
            ends_well(
                Call(event, "codex").line,
                shell=shell,
                env={**plugged_in.environ, **HOSTILE, "PYTHONPATH": str(folder)},
                cwd=folder,
            )
    assert not (tmp_path / "ran").exists() and "no daemon" in plugged_in.log()


def test_streams_that_are_closed_full_or_endless_end_well(plugged_in: Home) -> None:
    line, env = Call("SessionStart", "claude-code").line, plugged_in.environ
    for more in (">&-", "<&-", "<&- >&- 2>&-", ">/dev/full", "</dev/zero", "</", "<>/dev/tty"):
        started = time.monotonic()
        done = run(f"{line} {more}", env=env)
        assert done.returncode == 0 or more == "<>/dev/tty", (more, done)  # where there is none, no shell runs it
        assert done.stdout == b"" and time.monotonic() - started < SOON
    with subprocess.Popen(["/bin/sh", "-c", line], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.wait(SOON) == 0, "a pipe that stays open is not waited for"


def test_a_full_disk_ends_well(plugged_in: Home) -> None:
    event = {"session_id": "s1", "cwd": "/code/tides", "transcript_path": "/code/t.jsonl", "source": "startup"}

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))

    for name in client.EVENTS:
        ends_well(Call(name, "codex").line, env=plugged_in.environ, input=json.dumps(event).encode(), preexec_fn=limit)


def test_a_client_that_hangs_is_ended(plugged_in: Home, tmp_path: Path) -> None:
    """In a place that nothing of ours bounds."""
    hanging = tmp_path / "hanging.py"
    hanging.write_text(
        f"import sys\nsys.path.append({str(Path(client.__file__).parent)!r})\nimport client\n"
        "client.run = lambda *_: client.os.read(client.os.pipe()[0], 1)\nclient.main(installed=True)\n"
    )
    launcher.install(plugged_in.path, Program(sys.executable, str(hanging)))
    started = time.monotonic()
    assert run(Call("Stop", "codex").line, env=plugged_in.environ).returncode == 0
    assert time.monotonic() - started < client._END + SOON


def test_where_the_client_moved_the_package_is_asked_for(plugged_in: Home) -> None:
    moved = Program(sys.executable, "/nowhere/lib/python3.10/site-packages/recollect/surfaces/hooks/hook.py")
    launcher.install(plugged_in.path, moved)
    ends_well(Call("UserPromptSubmit", "codex").line, env=plugged_in.environ)
    assert "no daemon" in plugged_in.log(), "it ran"
