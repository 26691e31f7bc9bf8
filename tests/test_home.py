"""A home is its owner's alone: nothing that others could have put there is trusted or written to."""

from __future__ import annotations

import json
import os
import pwd
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from recollect.app import open_memory
from recollect.config import located
from recollect.errors import UsageError
from recollect.home import UnsafeHome
from recollect.surfaces.hooks import client
from tests import daemons
from tests.command import run
from tests.daemons import hook_command

NOBODY = 65534
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be two users")


@pytest.fixture
def shared() -> Iterator[Path]:
    """A folder that every user can enter."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


def hook(home: Path, event: str = "SessionStart") -> bytes:
    told = json.dumps({"session_id": "s", "cwd": "/code/tides", "prompt": "figs?"}).encode()
    command = hook_command(event, "--home", str(home))
    done = subprocess.run(command, input=told, capture_output=True, timeout=20, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    return done.stdout


# Which folder it is


def test_an_empty_name_is_never_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert located({"RECOLLECT_HOME": ""}).home == tmp_path / ".recollect"
    with pytest.raises(UsageError, match="empty"):
        open_memory("")
    assert run(tmp_path, "hook", "Stop", "--home", "").status == 2
    for arguments in (["Stop", "--home", ""], ["Stop"]):
        command = hook_command(*arguments)
        environ = {**os.environ, "RECOLLECT_HOME": ""}
        done = subprocess.run(command, env=environ, input=b"{}", capture_output=True, timeout=20, check=False)
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert list(here.iterdir()) == []


@pytest.mark.parametrize("home", ["", ".", "rel"])
def test_the_home_of_a_user_is_never_a_relative_folder(monkeypatch: pytest.MonkeyPatch, home: str) -> None:
    monkeypatch.setenv("HOME", home)
    theirs = f"{pwd.getpwuid(os.geteuid()).pw_dir}/.recollect"
    assert str(located({"HOME": home}).home) == theirs == client.parse((), {"HOME": home})[2]


# Whose it is


def test_a_home_that_is_open_by_mistake_is_closed(tmp_path: Path) -> None:
    home = tmp_path / ".recollect"
    assert run(home, "status").status == 0
    home.chmod(0o777)
    assert hook(home, "SessionEnd") == b"" and not (home / "spool").exists()
    done = run(home, "status")
    assert done.status == 0 and home.stat().st_mode & 0o777 == 0o700


def test_an_open_folder_with_other_files_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    home = tmp_path / "work"
    home.mkdir()
    home.chmod(0o775)
    (home / "thesis.tex").touch()
    done = run(home, "status", "--json")
    error = done.json["error"]
    assert (done.status, error["kind"]) == (1, "UnsafeHome")
    assert "thesis.tex" in error["message"] and "chmod" in error["hint"]
    assert home.stat().st_mode & 0o777 == 0o775 and [each.name for each in home.iterdir()] == ["thesis.tex"]


@as_root
@pytest.mark.parametrize("what", ["home", "link", "planted"])
def test_what_somebody_else_made_is_refused(tmp_path: Path, what: str) -> None:
    home, real = tmp_path / ".recollect", tmp_path / "real"
    real.mkdir(mode=0o700)
    (real / "config.toml").write_text("enabled = 3\n")
    if what == "link":
        home.symlink_to(real)
        os.chown(home, NOBODY, NOBODY, follow_symlinks=False)
    else:
        real.rename(home)
        os.chown(home if what == "home" else home / "config.toml", NOBODY, NOBODY)
        home.chmod(0o777)
    before = sorted(each.name for each in home.iterdir())
    for command in (["status"], ["serve", "--background"], ["serve", "--stop"], ["pause", "--session", "s"]):
        done = run(home, *command, "--json")
        assert (done.status, done.json["error"]["kind"]) == (1, "UnsafeHome"), done
        assert "nobody" in done.json["error"]["message"]
    if what != "link":
        assert hook(home) == b""
    assert sorted(each.name for each in home.iterdir()) == before


@as_root
def test_the_home_of_another_user_is_neither_read_nor_written(shared: Path) -> None:
    """The other way round: this process is not root, and the home is."""
    home = shared / "home"
    home.mkdir()
    home.chmod(0o777)
    (home / "config.toml").touch()
    with as_nobody():
        assert client.run(["Stop", "--home", str(home)], {}) == (b"", "")
        with pytest.raises(UnsafeHome, match="belongs to root"):
            open_memory(home)
    assert [each.name for each in home.iterdir()] == ["config.toml"]


def test_a_link_of_ones_own_is_followed(tmp_path: Path) -> None:
    real = tmp_path / "disk" / "memory"
    real.mkdir(parents=True, mode=0o700)
    (tmp_path / ".recollect").symlink_to(real)
    assert run(tmp_path / ".recollect", "status").status == 0
    assert (real / "recollect.db").exists()


# What lies in it


@pytest.mark.parametrize(
    ("name", "how"),
    [("daemon.lock", how) for how in ("link", "dangling", "hard link")]
    + [("logs/daemon.err", "link"), ("logs/daemon.log", "link")],
)
def test_a_daemon_writes_to_no_file_but_its_own(tmp_path: Path, name: str, how: str) -> None:
    victim = tmp_path / "victim"
    if how != "dangling":
        victim.write_text("precious")
    with daemons.home(tmp_path) as home:
        path = home.path / name
        path.parent.mkdir(mode=0o700, parents=True)
        os.link(victim, path) if how == "hard link" else path.symlink_to(victim)
        done = home.run("serve", "--background", "--json")
        path.unlink()
        assert done.status == 1 and str(path) in done.json["error"]["message"], done
    assert victim.exists() is (how != "dangling")
    assert how == "dangling" or victim.read_text() == "precious"


@pytest.mark.parametrize("name", ["daemon.starting", "logs/daemon.err", "logs/hooks.log"])
def test_a_hook_writes_through_no_link(tmp_path: Path, name: str) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    with daemons.home(tmp_path) as home:
        path = home.path / name
        path.parent.mkdir(mode=0o700, parents=True)
        path.symlink_to(victim)
        home.hook("SessionStart", {"session_id": "s"})
        daemons.wait(lambda: not daemons.is_starting(home.path) if name != "daemon.starting" else True)
        path.unlink()
    assert victim.read_text() == "precious"


@pytest.mark.parametrize("name", ["logs", "spool"])
def test_a_linked_folder_of_a_home_is_not_used(tmp_path: Path, name: str) -> None:
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "1.json").write_text("{}")
    with daemons.home(tmp_path) as home:
        home.path.mkdir(mode=0o700)
        (home.path / name).symlink_to(victim)
        home.hook("SessionEnd", {"session_id": "s"})
        if name == "spool":
            home.start()
    assert [each.name for each in victim.iterdir()] == ["1.json"]


@as_root
def test_a_hook_does_not_talk_to_a_socket_of_somebody_else(shared: Path) -> None:
    home = shared / "home"
    home.mkdir()
    home.chmod(0o777)
    with as_nobody(), socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(home / client.SOCKET))
        listener.listen()
        listener.settimeout(0)
        os.seteuid(0)
        assert hook(home, "UserPromptSubmit") == b"" and not (home / "logs").exists()
        with pytest.raises(BlockingIOError):
            listener.accept()
        home.chmod(0o700)  # by hand: the socket is still there
        with pytest.raises(PermissionError, match="somebody else"):
            client.ask(str(home), ["status"], b"", time.monotonic() + 1)
        with listener.accept()[0] as heard:
            assert heard.recv(100) == b""


@contextmanager
def as_nobody() -> Iterator[None]:
    """Makes files, sockets and decisions as another user."""
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)
