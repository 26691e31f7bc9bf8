"""Commands that have to do with the daemon: `serve`, `service`, and `doctor` where the database has to be made anew."""

from __future__ import annotations

import json
import os
import pty
import shutil
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from recollect.app import open_memory
from recollect.surfaces.cli.service import unit_text
from tests.command import run
from tests.daemons import RECOLLECT, Home, home
from tests.test_extract import TALK, ingest


@pytest.fixture
def there(tmp_path: Path) -> Iterator[Home]:
    with home(tmp_path, RECOLLECT_EMBEDDER="none") as made:
        made.run("remember", "Deploy on Tuesdays only.", "--everywhere")
        yield made


def damage(path: Path) -> None:
    with (path / "recollect.db").open("r+b") as file:
        file.write(b"\xff" * 100)


# A database that is made anew


def test_every_agents_and_tenants_memories_come_back_when_the_database_is_made_anew(tmp_path: Path) -> None:
    place = tmp_path / "home"
    for name in ("default", "bob"):
        with open_memory(place, agent_id=name) as memory:
            memory.remember(f"{name} deploys on Tuesdays only.", everywhere=True)
    for name in ("default", "bob"):
        with open_memory(place, tenant="acme", agent_id=name) as memory:
            memory.remember(f"{name} deploys on Mondays only.", everywhere=True)
    with open_memory(place, agent_id="eve") as memory:
        ingest(memory, tmp_path / "projects", *TALK)
        memory.process(now=True)
        learnt = [each.text for each in memory.memories()]
    assert learnt
    damage(place)
    assert run(place, "doctor", "--fix", "--agent-id", "bob", "--json").status == 0
    for name, held in {"default": 1, "bob": 1, "eve": len(learnt)}.items():
        with open_memory(place, agent_id=name) as memory:
            assert len([each.text for each in memory.memories()]) == held, name
    for name in ("default", "bob"):
        with open_memory(place, tenant="acme", agent_id=name) as memory:
            assert [each.text for each in memory.memories()] == [f"{name} deploys on Mondays only."]


def test_a_damaged_database_is_told_with_the_same_keys_and_with_what_to_do(tmp_path: Path) -> None:
    place = tmp_path / "home"
    open_memory(place).close()
    damage(place)
    told = run(place, "doctor", "--json").json
    assert told.keys() == {"files", "problems", "kept", "tables", "jobs"} and told["tables"] == told["jobs"] == {}
    fixed = run(place, "doctor", "--fix").stdout
    assert "recollect.db.damaged-" in fixed and "`recollect ingest` reads the rest" in fixed


def test_a_daemon_comes_back_for_the_agent_that_it_served(there: Home) -> None:
    pid = there.json("serve", "--background", "--agent-id", "bob")["pid"]
    there.settle()
    damage(there.path)
    assert there.json("doctor", "--fix")["problems"][0]["fixed"]
    assert there.pid() not in (0, pid)
    assert b"bob" in Path(f"/proc/{there.pid()}/cmdline").read_bytes().split(b"\0")


def test_a_daemon_comes_back_where_the_database_could_not_be_made_anew(there: Home) -> None:
    pid = there.start()
    there.settle()
    damage(there.path)
    shutil.rmtree(there.path / "memory", ignore_errors=True)
    (there.path / "memory").write_text("no folder")
    assert there.run("doctor", "--fix").status == 1
    assert there.pid() not in (0, pid)


def test_a_daemon_that_does_not_come_back_is_a_finding(there: Home) -> None:
    there.start()
    there.settle()
    damage(there.path)
    (there.path / "daemon.sock").unlink()
    (there.path / "daemon.sock").mkdir()
    done = there.run("doctor", "--fix", "--json")
    problems = json.loads(done.stdout)["problems"]
    assert done.status == 1 and problems[0]["fixed"]
    assert "the daemon did not come up" in problems[-1]["what"] and not problems[-1]["fixed"]


# serve


def test_a_daemon_is_stopped_and_recollect_taken_out_whatever_the_configuration_says(there: Home) -> None:
    there.start()
    (there.path / "config.toml").write_text("nonsense = 1\n")
    assert there.json("pause", "--session", "s1")["paused"]
    assert there.json("serve", "--stop")["state"] in ("stopped", "not running")
    assert not there.pid()
    assert there.json("service", "remove")["installed"] is False
    assert there.run("init", "--uninstall", "--yes").status == 0
    assert there.run("init", "--yes").status == 2


def test_a_daemon_in_the_background_leaves_a_home_that_is_well(there: Home) -> None:
    there.start()
    modes = {stat.S_IMODE(path.stat().st_mode) & 0o077 for path in (there.path / "logs").iterdir()}
    assert modes == {0}
    assert there.json("doctor")["problems"] == []


@pytest.mark.parametrize("as_json", [False, True])
def test_in_the_foreground_it_says_that_it_serves(there: Home, as_json: bool) -> None:
    call = [*RECOLLECT, "serve", *(["--json"] if as_json else [])]
    ours, theirs = pty.openpty()
    with subprocess.Popen(call, env=there.environ, text=True, stdout=subprocess.PIPE, stderr=theirs) as child:
        os.write(theirs, b"told: ")
        there.settle()
        child.send_signal(signal.SIGTERM)
        out, _ = child.communicate(timeout=30)
    told = os.read(ours, 4096).decode()
    os.close(ours), os.close(theirs)
    if as_json:
        assert json.loads(out)["pid"] == child.pid and told == "told: "
    else:
        assert out == "" and told.strip() == f"told: serving {there.path}, process {child.pid}"


def test_a_daemon_that_hangs_is_not_said_to_be_idle(there: Home) -> None:
    pid = there.start()
    os.kill(pid, signal.SIGSTOP)
    try:
        told = there.run("status").stdout
        assert "idle" not in told and "does not answer" in told
    finally:
        os.kill(pid, signal.SIGCONT)
    there.stop()  # on the heels of that: SIGTERM comes in any thread


# service


def test_a_unit_is_a_document_where_one_is_asked_for(there: Home) -> None:
    told = there.json("service", "install", "--print")
    assert told["unit"].endswith("recollect.service") and sys.executable in told["text"]
    assert not Path(told["unit"]).exists()


def test_a_unit_names_its_program_and_home_as_systemd_reads_them() -> None:
    text = unit_text(['/home/a b/$venv/100%/bin/py"thon', "-P", "-m", "recollect", "serve"], "/home/a b/$h\\ome")
    assert 'ExecStart="/home/a b/$$venv/100%%/bin/py\\"thon" -P -m recollect serve' in text
    assert 'Environment="RECOLLECT_HOME=/home/a b/$h\\\\ome"' in text


def test_a_unit_gives_up_where_the_daemon_refuses_to_come_up() -> None:
    said = dict(line.split("=", 1) for line in unit_text(["python"], "/home").splitlines() if "=" in line)
    pauses = (int(said["StartLimitBurst"]) - 1) * int(said["RestartSec"])
    assert pauses < int(said["StartLimitIntervalSec"]) / 2  # the rest is for the starts themselves


def test_a_unit_takes_the_place_of_a_daemon_that_a_hook_started(there: Home, tmp_path: Path) -> None:
    there.start()
    fake = tmp_path / "bin" / "systemctl"
    fake.parent.mkdir()
    fake.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/asked\n')
    fake.chmod(0o755)
    path = f"{fake.parent}:{there.environ['PATH']}"
    assert there.run("service", "install", XDG_RUNTIME_DIR=str(tmp_path), PATH=path).status == 0
    assert "enable --now" in (tmp_path / "asked").read_text() and not there.pid()
