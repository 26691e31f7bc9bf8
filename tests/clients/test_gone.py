"""Recollect goes away under real agents: a prompt reaches the model as soon as without hooks."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.clients.conftest import Machine, program
from tests.clients.model import Model
from tests.clients.test_claude_code import PROGRAM as CLAUDE
from tests.clients.test_claude_code import claude
from tests.clients.test_codex import PROGRAM as CODEX
from tests.clients.test_codex import codex, config, trust
from tests.daemons import is_starting, wait

pytestmark = pytest.mark.clients

LATER = 1.0  # seconds that a prompt may take longer to reach the model
NOBODY = 65534
PROMPT = "Which way does the tide run?"


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    repository = Path(__file__).parents[2]
    _pip("wheel", "--no-deps", "--no-build-isolation", "--no-index", "-w", str(folder), str(repository))
    return next(folder.glob("*.whl"))


def _pip(*arguments: str) -> None:
    command = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments]
    subprocess.run(command, capture_output=True, timeout=120, check=True)


class Installed:
    """An environment with recollect in it, which uses the libraries of this one."""

    def __init__(self, folder: Path, wheel: Path) -> None:
        self.folder = folder
        self.python = folder / "bin" / "python"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], timeout=60, check=True)
        _pip("--python", str(self.python), "install", "--no-deps", "--no-index", "--no-compile", str(wheel))
        (packages,) = folder.glob("lib/python*/site-packages")
        (packages / "libraries.pth").write_text(sysconfig.get_path("purelib") + "\n")

    def pip_uninstall(self, machine: Machine) -> None:
        _pip("--python", str(self.python), "uninstall", "--yes", "recollect")

    def delete(self, machine: Machine) -> None:
        shutil.rmtree(self.folder)

    def rename_the_interpreter(self, machine: Machine) -> None:
        self.python.rename(self.python.with_name("former"))

    def close_the_home(self, machine: Machine) -> None:
        machine.memory.chmod(0)


@pytest.fixture
def open_machine() -> Iterator[Machine]:
    """One that every user of this machine can reach: what pytest makes is its owner's alone."""
    with tempfile.TemporaryDirectory(dir="/tmp", ignore_cleanup_errors=True) as folder, Model() as model:
        Path(folder).chmod(0o755)
        yield Machine(Path(folder) / "home", model)


@pytest.mark.parametrize("name", ["claude-code", "codex"])
@pytest.mark.parametrize(
    "goes",
    [Installed.pip_uninstall, Installed.delete, Installed.rename_the_interpreter, Installed.close_the_home],
)
def test_a_prompt_is_not_held_up(
    open_machine: Machine, wheel: Path, name: str, goes: Callable[[Installed, Machine], None]
) -> None:
    machine, installed = open_machine, Installed(open_machine.home.parent / "venv", wheel)
    machine.python = str(installed.python)
    (machine.memory / "config.toml").write_text("enabled = false\n")  # hooks find no daemon, and none stays
    pond = machine.project("pond")
    for each in (".claude", ".codex"):
        (machine.home / each).mkdir()
    (machine.home / ".codex" / "config.toml").write_text(config(machine))
    agent = _reachable(machine, *(CLAUDE if name == "claude-code" else CODEX))
    if goes is Installed.close_the_home:
        _as_another_user(machine, but=machine.memory)  # `init` takes no home of somebody else's
    without = min(_seconds(machine, pond, name, agent) for _ in range(2))

    machine.recollect("init", "--agent", name, "--yes")
    if name == "codex":
        trust(machine, pond)
    if goes is Installed.close_the_home:
        _as_another_user(machine)
    else:  # another user could not run this interpreter
        _seconds(machine, pond, name, agent)
        assert "UserPromptSubmit no daemon" in machine.logs(), "hooks run"
        wait(lambda: "switched off" in machine.logs() and not is_starting(machine.memory))
    before = machine.logs()
    goes(installed, machine)
    late = [_seconds(machine, pond, name, agent) - without for _ in range(2)]
    assert min(late) < LATER, "a busy machine is late once, a prompt that is held up each time"
    assert machine.logs() == before, "hooks do nothing"


def _seconds(machine: Machine, project: Path, name: str, agent: str) -> float:
    """Until the prompt has reached the model."""
    first, started = len(machine.model.asked), time.monotonic()
    (claude if name == "claude-code" else codex)(machine, project, PROMPT, found=agent)
    asked = [each for each in machine.model.asked[first:] if PROMPT in each.text]
    assert asked, "the prompt was held up"
    return asked[0].at - started


def _reachable(machine: Machine, *places: str) -> str:
    """The agent's program where every user can run it."""
    found = Path(program(*places))
    if found.suffix:  # a script that looks for others beside it
        return str(found)
    copy = machine.home.parent / found.name
    try:
        copy.hardlink_to(found.resolve())
    except OSError:
        shutil.copy(found, copy)
    return str(copy)


def _as_another_user(machine: Machine, but: Path | None = None) -> None:
    """Root can read everything; whoever is not root is kept out of a closed folder as well as another user."""
    if os.geteuid() == 0:
        machine.user = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
        for path in (machine.home, *machine.home.rglob("*")):
            if but is None or not path.is_relative_to(but):
                os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
