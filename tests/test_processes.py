"""No process of ours takes a module or a program from the folder that it is started in."""

from __future__ import annotations

import importlib.metadata
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from recollect import processes
from recollect.config import Settings, load
from recollect.models.agent_cli import AgentCli
from recollect.models.base import ModelFailed
from recollect.surfaces.hooks import launcher
from recollect.surfaces.installers.values import Commands
from tests import daemons
from tests.transcripts import claude

SCRIPT = str(Path(sys.executable).with_name("recollect"))
SCANNED = 28_000_000  # bytes of a transcript; two such files make a backlog that is shared
PROGRAMS = ("claude", "codex", "git", "npm", "node", "pip", "python3", "sh", "systemctl", "uname", "gcc", "ldconfig")


class Trap:
    """A folder of modules and programs that each leave a mark when they are used."""

    def __init__(self, tmp_path: Path) -> None:
        self.folder = tmp_path / "cloned"
        self._marks = tmp_path / "marks"
        self.folder.mkdir()
        self._marks.mkdir()
        modules = {*sys.stdlib_module_names, *importlib.metadata.packages_distributions()}
        for name in sorted(modules | {"recollect", "pip", "sitecustomize", "usercustomize"}):
            if name.isidentifier():
                (self.folder / f"{name}.py").write_text(f"open({str(self._marks / name)!r}, 'w').close()\n")
        for name in PROGRAMS:
            (self.folder / name).write_text(f"#!/bin/sh\n: > {shlex.quote(str(self._marks / name))}-run\n")
            (self.folder / name).chmod(0o755)

    def sprung(self) -> list[str]:
        return sorted(each.name for each in self._marks.iterdir())


@pytest.fixture
def trap(tmp_path: Path) -> Trap:
    return Trap(tmp_path)


def test_the_trap_works(trap: Trap) -> None:
    subprocess.run([sys.executable, "-m", "this"], cwd=trap.folder, capture_output=True, check=False)
    assert trap.sprung()


def environment(home: daemons.Home) -> dict[str, str]:
    return {
        **home.environ,
        "PATH": f":.:{os.environ['PATH']}:",
        "PIP_INDEX_URL": "file:///nowhere",
        "PIP_NO_INDEX": "1",
    }


def write_backlog(root: Path) -> None:
    root.mkdir(parents=True)
    for number in range(2):
        said = claude(number, "We use figs.", session=f"s-{number}")
        padding = b'{"type":"progress","text":"' + b"x" * (SCANNED // 2) + b'"}\n'
        (root / f"s-{number}.jsonl").write_bytes(said + 2 * padding)


@pytest.mark.parametrize(
    ("status", "arguments"),
    [
        (0, ("ingest", "--dir", "backlog")),
        (1, ("models", "install", "arctic")),
        (0, ("mcp",)),
        (0, ("serve", "--background")),
        (0, ("service", "install")),
        (0, ("status",)),
    ],
    ids=lambda each: each[0] if isinstance(each, tuple) else "",
)
def test_a_command_takes_nothing_from_the_current_folder(
    tmp_path: Path, trap: Trap, status: int, arguments: tuple[str, ...]
) -> None:
    with daemons.home(tmp_path, RECOLLECT_MODELS_FOLDER=str(tmp_path / "models")) as home:
        if "backlog" in arguments:
            write_backlog(trap.folder / "backlog" / "-code-tides")
        call, env = [SCRIPT, *arguments], environment(home)
        done = subprocess.run(call, env=env, cwd=trap.folder, input=b"", capture_output=True, check=False)
        assert (done.returncode, trap.sprung()) == (status, []), done.stderr


def test_a_daemon_that_a_hook_starts_takes_nothing_from_the_current_folder(tmp_path: Path, trap: Trap) -> None:
    with daemons.home(tmp_path, PYTHONPATH=f":.:{trap.folder}:{Path(__file__).parent}") as home:
        transcript = home.projects / "-code-tides" / "s-1.jsonl"
        transcript.parent.mkdir()
        transcript.write_bytes(claude(1, "We use figs."))
        told = {"session_id": "s-1", "cwd": str(trap.folder), "transcript_path": str(transcript)}
        home.path.mkdir(mode=0o700)
        launcher.install(home.path, launcher.own())
        for event in ("SessionStart", "SessionEnd"):
            subprocess.run(
                ["/bin/sh", "-c", launcher.Call(event, "claude-code").line],
                env=environment(home),
                cwd=trap.folder,
                input=json.dumps(told).encode(),
                timeout=20,
                check=True,
            )
            daemons.wait(home.is_serving)
        home.settle()  # both lanes had work
        assert trap.sprung() == []


def test_a_server_that_an_agent_starts_takes_nothing_from_the_current_folder(tmp_path: Path, trap: Trap) -> None:
    with daemons.home(tmp_path) as home:
        server = Commands(home.path).server()
        for path in (":/nowhere", ".", str(trap.folder)):
            env = {**environment(home), **server["env"], "PYTHONPATH": path, "PYTHONHOME": path}
            call = [server["command"], *server["args"]]
            done = subprocess.run(call, env=env, cwd=trap.folder, input=b"", capture_output=True, check=False)
            assert (done.returncode, trap.sprung()) == (0, []), done.stderr


def test_watching_takes_nothing_from_the_current_folder(tmp_path: Path, trap: Trap) -> None:
    with daemons.home(tmp_path) as home:
        watching = subprocess.Popen([SCRIPT, "watch"], env=environment(home), cwd=trap.folder)
        daemons.wait((home.path / "recollect.db").exists)
        watching.terminate()
        watching.wait(20)
        assert trap.sprung() == []


def test_a_process_of_ours_gets_no_relative_folder_to_search(
    trap: Trap, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(trap.folder)
    environ = {
        "PATH": f":.:bin:{tmp_path}",
        "PYTHONPATH": f":.:{tmp_path}",
        "PYTHONUSERBASE": "base",
        "PYTHONPYCACHEPREFIX": ".",
        "LD_LIBRARY_PATH": ":",
        "HOME": "kept",
    }
    cleaned = {"PATH": str(tmp_path), "PYTHONPATH": str(tmp_path), "HOME": "kept"}
    assert processes.environment(environ) == cleaned
    probe = "import os, sys; print(os.path.abspath('') in sys.path or '' in sys.path, os.environ['PATH'])"
    (tmp_path / "probe_of_ours.py").write_text(probe)
    with processes.start(processes.python("probe_of_ours"), environ, stdout=subprocess.PIPE) as process:
        assert process.communicate(timeout=20)[0].split() == [b"False", str(tmp_path).encode()]
    assert trap.sprung() == []


def test_a_program_is_never_taken_from_the_current_folder(
    trap: Trap, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(trap.folder)
    for path in ("", ":", ".", f":.:{tmp_path}", "../cloned"):
        assert processes.program("claude", {"PATH": path}) is None
    assert processes.program("sh", {"PATH": f".:{os.environ['PATH']}"}) == processes.program("sh", os.environ)
    settings: Settings = load({"HOME": str(tmp_path), "PATH": ".:"})
    from recollect.extract.schema import ExtractionOut

    with pytest.raises(ModelFailed, match="not on the PATH"):
        AgentCli(settings, "cli:claude").answer("", "", ExtractionOut, seconds=1)
    assert trap.sprung() == []
