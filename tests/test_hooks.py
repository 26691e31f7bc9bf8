"""Hooks as agents call them: what they print, what they never do, and what is left when nobody answers."""

from __future__ import annotations

import ast
import json
import os
import random
import shutil
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recollect.app import Memory, open_memory
from recollect.surfaces.daemon.work import Task, Work
from recollect.surfaces.hooks import client
from recollect.surfaces.hooks.answer import CLAUDE, CODEX, Event, Hooks, checked, guessed
from recollect.surfaces.hooks.keeper import Keeper
from tests.daemons import Home, home, hook_command, is_starting, wait
from tests.transcripts import START, claude, talk, write

RULE = "Never deploy the lighthouse service on a Friday."
EVERYWHERE = "In all my projects, always answer in British English."
SESSION = "bbbbbbbb-2222-4333-8444-555555555555"


@pytest.fixture
def there(tmp_path: Path) -> Iterator[Home]:
    with home(tmp_path) as made:
        yield made


@pytest.fixture
def tides(tmp_path: Path) -> Path:
    """A project, with a repository's mark."""
    folder = tmp_path / "tides"
    (folder / ".git").mkdir(parents=True)
    (folder / "src").mkdir()
    return folder


def told(cwd: Path | str, **more: Any) -> dict[str, Any]:
    """An event of a session that keeps a transcript."""
    path = f"/nowhere/.claude/projects/-tides/{SESSION}.jsonl"
    return {"session_id": SESSION, "cwd": str(cwd), "transcript_path": path, "source": "startup", **more}


# What is said


def test_a_new_session_is_oriented_and_another_project_is_not(there: Home, tides: Path) -> None:
    there.json("remember", RULE, "--project", str(tides))
    there.json("remember", EVERYWHERE, "--everywhere")
    there.start()
    given = there.said("SessionStart", told(tides / "src"))
    assert RULE in given and "British English" in given and given.startswith("[Context from memory]")
    other = there.said("SessionStart", told(there.user / "other", session_id="other"))
    assert RULE not in other and "British English" in other
    assert len(given) < 10_000


def test_a_prompt_gets_what_has_to_do_with_it_once(there: Home, tides: Path) -> None:
    there.json("remember", RULE, "--project", str(tides))
    there.start()
    asks = told(tides, prompt="Can we deploy the lighthouse service today?")
    assert RULE in there.said("UserPromptSubmit", asks)
    assert there.said("UserPromptSubmit", asks) == ""  # it is in the history already
    assert there.said("UserPromptSubmit", {**asks, "cwd": str(there.user), "session_id": "elsewhere"}) == ""
    for source in ("compact", "clear"):
        assert RULE in there.said("SessionStart", told(tides, source=source))  # what was injected counts as gone
    assert there.said("UserPromptSubmit", asks) == ""  # the orientation told it
    assert there.json("context", "--last")["blocks"]


def test_a_session_that_goes_on_is_told_what_it_does_not_see_yet(there: Home, tides: Path) -> None:
    memory_id = there.json("remember", RULE, "--project", str(tides))["id"]
    there.start()
    assert RULE in there.said("SessionStart", told(tides))
    wait(lambda: there.json("context", "--last")["blocks"])
    assert there.said("SessionStart", told(tides, source="resume")) == ""
    there.json("correct", memory_id, "Never deploy the lighthouse service on a Monday.")
    assert "Monday" in there.said("SessionStart", told(tides, source="resume"))
    assert "Monday" in there.said("SessionStart", told(tides, source="compact"))
    assert "Monday" in there.said("SessionStart", told(tides, source="fork", session_id="branched"))


def test_the_command_prints_the_very_bytes_that_a_hook_gives(there: Home, tides: Path) -> None:
    there.json("remember", RULE, "--project", str(tides))
    there.json("remember", EVERYWHERE, "--everywhere")
    there.start()

    def shown(*call: str) -> list[str]:
        return [block["text"] for block in there.json("context", *call)["blocks"]]

    expected = shown("--project", str(tides))
    started = there.said("SessionStart", told(tides))
    assert [started] == expected
    there.json("remember", "The lighthouse lamp is checked on Mondays.", "--project", str(tides))
    prompt = "When is the lighthouse lamp checked?"
    wait(lambda: there.json("context", "--last")["blocks"])
    expected = shown("--project", str(tides), "--prompt", prompt, "--session", SESSION)
    given = there.said("UserPromptSubmit", told(tides, prompt=prompt))
    assert "lamp" in given and [given] == expected and RULE not in given
    wait(lambda: len(there.json("context", "--last", "--session", SESSION)["blocks"]) == 2)
    blocks = there.json("context", "--last", "--session", SESSION)["blocks"]
    assert [block["text"] for block in blocks] == [given, started]
    assert all(line["reason"] for block in blocks for line in block["lines"])


def test_a_session_begins_with_a_sign_for_the_person_once(there: Home, tides: Path) -> None:
    there.json("remember", RULE, "--project", str(tides))
    sign = "recollect: 1 note about tides"

    def shown(source: str, **more: Any) -> str:
        return str(json.loads(there.hook("SessionStart", told(tides, source=source, **more))).get("systemMessage", ""))

    assert shown("startup") == sign, "nobody answers"
    wait(there.is_serving)
    assert shown("startup", session_id="s2") == sign and shown("compact", session_id="s2") == ""
    assert shown("resume", session_id="s3") == ""
    (there.path / "config.toml").write_text("session_message = false\n")
    there.stop()
    there.start()
    assert shown("startup", session_id="s4") == ""


def test_without_a_daemon_a_compaction_frees_what_was_told(there: Home, tides: Path) -> None:
    there.json("remember", RULE, "--project", str(tides))
    asks = told(tides, prompt="Can we deploy the lighthouse service today?")
    there.start()
    assert RULE in there.said("UserPromptSubmit", asks)
    there.stop()
    assert RULE in there.said("SessionStart", told(tides, source="compact"))
    wait(there.is_serving)
    wait(lambda: list((there.path / client.SPOOL).iterdir()) == [])
    with open_memory(there.path, environ=there.environ) as memory:
        assert [each.visible for each in memory.given_last(SESSION)] == [True, False]


def test_after_forgetting_nothing_is_said_with_or_without_a_daemon(there: Home, tides: Path) -> None:
    memory_id = there.json("remember", RULE, "--project", str(tides))["id"]
    there.start()
    assert RULE in there.said("SessionStart", told(tides))
    there.json("forget", "--memory", memory_id, "--yes")
    assert RULE not in there.said("SessionStart", told(tides, session_id="after"))
    assert there.said("UserPromptSubmit", told(tides, session_id="new", prompt="deploy the lighthouse service?")) == ""
    there.stop()
    assert there.said("SessionStart", told(tides, session_id="down")) == ""
    assert "lighthouse" not in "".join(path.read_text() for path in (there.path / "context").rglob("*.md"))


def test_a_correction_replaces_what_is_ready_to_send(there: Home, tides: Path) -> None:
    memory_id = there.json("remember", RULE, "--project", str(tides))["id"]
    there.json("correct", memory_id, "Never deploy the lighthouse service on a Monday.")
    text = there.said("SessionStart", told(tides))  # nobody answers: from context/
    assert "Monday" in text and "Friday" not in text


def test_a_repository_made_around_a_folder_later_does_not_tell_its_other_folders(there: Home) -> None:
    for name in ("one", "other"):
        (there.user / "work" / name).mkdir(parents=True)
    there.json("remember", RULE, "--project", str(there.user / "work/one"))
    (there.user / "work/.git").mkdir()
    there.json("remember", "Tea is served at five.", "--project", str(there.user / "work/one"))
    assert RULE in there.said("SessionStart", told(there.user / "work/one"))  # nobody answers: from context/
    assert RULE not in there.said("SessionStart", told(there.user / "work/other", session_id="other"))


def test_another_repository_at_a_path_is_not_told_what_the_first_one_knows(there: Home, tides: Path) -> None:
    config = tides / ".git/config"
    config.write_text('[remote "origin"]\n\turl = https://github.com/clientA/app.git\n')
    there.json("remember", RULE, "--project", str(tides))
    assert RULE in there.said("SessionStart", told(tides))  # nobody answers: from context/
    there.stop()
    config.write_text('[remote "origin"]\n\turl = https://github.com/clientB/app.git\n')
    assert RULE not in there.said("SessionStart", told(tides, session_id="second"))
    there.start()
    assert RULE not in there.said("SessionStart", told(tides, session_id="third"))


def test_another_clone_is_told_nothing_until_a_person_confirms_it(there: Home, tides: Path) -> None:
    shutil.rmtree(tides / ".git")
    subprocess.run(["git", "init", "-q"], cwd=tides, check=True)
    subprocess.run(["git", "remote", "add", "origin", "https://example.com/me/tides"], cwd=tides, check=True)
    there.json("remember", RULE, "--project", str(tides))
    copy, kept = there.user / "copy", there.user / "kept"
    shutil.copytree(tides, copy)
    assert there.hook("SessionStart", told(copy)) == ""
    wait(there.is_serving)
    asks = told(copy, prompt="deploy the lighthouse service?")
    assert there.hook("SessionStart", asks) == "" and there.hook("UserPromptSubmit", asks) == ""
    command = f"recollect project confirm {copy}"
    wait(lambda: command in there.run("status").stdout)
    for call in (["search", "lighthouse"], ["remember", "Use tabs."], ["context"], ["timeline"]):
        done = there.run(*call, "--project", str(copy))
        assert command in done.stdout + done.stderr and RULE not in done.stdout
    for wrong in ("", str(copy / "nowhere"), str(copy / ".git/config")):
        done = there.run("project", "confirm", wrong)
        assert done.status == 2 and "folder" in done.stderr
    expected = {"folder": str(copy), "project": "example.com/me/tides"}
    assert there.json("project", "confirm", f"{copy}/../copy/") == expected
    assert RULE in there.said("SessionStart", asks)
    there.stop()
    tides.rename(kept)
    copy.rename(tides)
    assert there.hook("SessionStart", told(tides)) == "", "nobody answers: what was made ready is of another clone"


def test_a_pipe_in_the_place_of_a_repositorys_file_stops_no_hook(there: Home, tides: Path) -> None:
    config = tides / ".git/config"
    config.write_text('[remote "origin"]\n\turl = https://github.com/clientA/app.git\n')
    there.json("remember", RULE, "--project", str(tides))
    config.unlink()
    os.mkfifo(config)
    there.hook("SessionStart", told(tides))  # nobody answers: from context/


@pytest.mark.parametrize("more", [{"agent_id": "sub-1"}, {"cwd": ""}])
def test_sub_agents_and_sessions_without_a_folder_get_nothing(there: Home, tides: Path, more: dict[str, str]) -> None:
    there.json("remember", RULE, "--project", str(tides))
    there.start()
    for event in ("SessionStart", "UserPromptSubmit"):
        assert there.hook(event, {**told(tides, prompt="deploy the lighthouse service?"), **more}) == ""
    there.stop()
    assert there.hook("SessionStart", {**told(tides), **more}) == ""


def test_switched_off_it_does_nothing(there: Home, tides: Path) -> None:
    there.json("remember", RULE, "--project", str(tides))
    (there.path / "config.toml").write_text("enabled = false\n")
    assert there.hook("SessionStart", told(tides)) == ""
    wait(lambda: "switched off" in _read(there.path / "logs" / "daemon.err"))
    wait(lambda: there.pid() == 0)
    (there.path / "config.toml").unlink()
    assert there.hook("SessionStart", told(tides), RECOLLECT_ENABLED="false") == ""


def test_a_project_that_is_switched_off_is_told_nothing(there: Home, tides: Path) -> None:
    there.json("remember", RULE, "--project", str(tides))
    there.json("remember", EVERYWHERE, "--everywhere")
    (there.path / "config.toml").write_text(f'disabled_projects = ["{tides}"]\n')
    assert there.hook("SessionStart", told(tides)) == ""  # what is ready may be out of date
    wait(there.is_serving)
    assert there.said("SessionStart", told(tides)) == ""
    assert there.said("UserPromptSubmit", told(tides, prompt="deploy the lighthouse service?")) == ""


@pytest.mark.parametrize(
    "variable",
    ["DISABLED_PROJECTS={}", "DISABLED_PROJECTS=GitHub.com/clientA/App", "IGNORE=tides", "AGENT_ID=ada", "TENANT=x"],
)
def test_without_a_daemon_the_environment_is_heard(there: Home, tides: Path, variable: str) -> None:
    (tides / ".git/config").write_text('[remote "origin"]\n\turl = https://github.com/clientA/app.git\n')
    there.json("remember", RULE, "--project", str(tides))
    name, _, value = variable.format(tides).partition("=")
    assert there.hook("SessionStart", told(tides), **{f"RECOLLECT_{name}": value}) == ""
    wait(there.is_serving)
    there.stop()
    (there.user / "other").mkdir()
    there.environ["RECOLLECT_DISABLED_PROJECTS"] = str(there.user / "other")
    there.json("remember", "Tea is served at five.", "--project", str(tides))
    assert RULE in there.said("SessionStart", told(tides)), "as it was when the file was made"


def test_without_a_daemon_a_folder_that_is_switched_off_in_a_repository_is_told_nothing(
    there: Home, tides: Path
) -> None:
    there.path.mkdir(mode=0o700)
    (there.path / "config.toml").write_text(f'disabled_projects = ["{tides}/src"]\n')
    there.json("remember", RULE, "--project", str(tides))
    assert there.hook("SessionStart", told(tides / "src")) == ""
    wait(there.is_serving)
    there.stop()
    assert RULE in there.said("SessionStart", told(tides))


@pytest.mark.parametrize("event", client.EVENTS)
def test_bypassed_every_hook_is_a_no_op(there: Home, tides: Path, event: str) -> None:
    assert there.hook(event, told(tides), RECOLLECT_BYPASS="1") == ""
    assert not there.path.exists()


def test_a_paused_session_is_told_nothing_until_it_goes_on(there: Home, tides: Path) -> None:
    there.json("remember", RULE, "--project", str(tides))
    there.start()
    asks = told(tides, prompt="deploy the lighthouse service?")
    assert there.json("pause", "--session", SESSION) == {"id": SESSION, "paused": True}
    assert there.hook("SessionStart", asks) == "" and there.hook("UserPromptSubmit", asks) == ""
    assert RULE in there.said("SessionStart", told(tides, session_id="another"))
    there.stop()
    assert there.hook("SessionStart", asks) == ""
    assert there.json("pause", "--session", SESSION, "--resume")["paused"] is False
    wait(there.is_serving)
    assert RULE in there.said("UserPromptSubmit", asks)


def test_pause_finds_the_session_by_the_environment_or_the_folder(there: Home, tides: Path) -> None:
    done = there.run("pause", "--json", CLAUDE_CODE_SESSION_ID="from-environment")
    assert json.loads(done.stdout)["id"] == "from-environment"
    assert there.run("pause").status == 2
    there.start()
    there.hook("UserPromptSubmit", told(tides, prompt="hello"))
    call = [sys.executable, "-m", "recollect", "pause", "--json"]
    done = subprocess.run(call, cwd=tides, env=there.environ, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["id"] == SESSION
    assert "--session elsewhere --resume" in there.run("pause", "--session", "elsewhere").stdout
    for wrong in ("../x", "a/b", "x" * 200):
        assert there.run("pause", "--session", wrong).status == 2


# Nobody answers


def test_without_a_daemon_a_session_is_given_what_is_ready_and_one_is_started(there: Home, tides: Path) -> None:
    there.json("remember", RULE, "--project", str(tides))
    assert there.pid() == 0
    given = there.said("SessionStart", told(tides / "src"))
    assert RULE in given
    wait(there.is_serving)
    assert "no daemon" in there.log()
    assert stat.S_IMODE((there.path / "logs" / "hooks.log").stat().st_mode) == 0o600
    wait(lambda: list((there.path / client.SPOOL).iterdir()) == [])
    assert there.said("UserPromptSubmit", told(tides, prompt="Can we deploy the lighthouse service?")) == "", (
        "it has it"
    )
    (last,) = there.json("context", "--last")["blocks"]
    assert last["session"] == SESSION and last["text"] == given, "word for word"
    (there.path / client.SPOOL).rmdir()
    (there.path / client.SPOOL).touch()
    there.stop()
    assert RULE in there.said("SessionStart", told(tides)), "also where nobody can be told of it"


@pytest.mark.parametrize("where", ["unknown", "tides/nested", ".."])
def test_without_a_daemon_a_folder_that_is_not_known_gets_nothing(there: Home, tides: Path, where: str) -> None:
    there.json("remember", RULE, "--project", str(tides))
    folder = there.user / where
    (folder / ".git").mkdir(parents=True, exist_ok=True) if where == "tides/nested" else None
    assert there.hook("SessionStart", told(folder)) == ""


def test_an_end_that_nobody_heard_is_not_lost(there: Home) -> None:
    there.path.mkdir(mode=0o700)
    now = time.time()
    lines = claude(1, "please always run make lint before you commit", session=SESSION, at=now - START.timestamp())
    file = write(there.projects / "-code-tides" / f"{SESSION}.jsonl", lines)
    there.hook("SessionEnd", told("/code/tides", transcript_path=str(file), last_assistant_message="secret words"))
    spooled = list((there.path / client.SPOOL).glob("*.json"))
    assert all("secret" not in path.read_text() for path in spooled)
    wait(there.is_serving)
    with open_memory(there.path, environ=there.environ) as memory:
        wait(lambda: memory.conversations() and str(memory.conversations()[0].status) == "archived")
    assert list((there.path / client.SPOOL).iterdir()) == []


def test_a_daemon_that_cannot_come_up_is_not_started_at_every_hook(there: Home, tides: Path) -> None:
    there.path.mkdir(mode=0o700)
    (there.path / "config.toml").write_text("nonsense = 1\n")
    mark = there.path / client.STARTING
    assert there.hook("Stop", told(tides)) == ""
    wait(lambda: "nonsense" in _read(there.path / "logs" / "daemon.err"))
    wait(lambda: mark.read_bytes().startswith(b"refused"))
    (there.path / "logs" / "daemon.err").unlink()
    for _ in range(3):
        assert there.hook("Stop", told(tides)) == ""
    time.sleep(0.3)
    assert not (there.path / "logs" / "daemon.err").exists() and there.pid() == 0
    os.utime(mark, (1, 1))  # long ago
    assert there.hook("Stop", told(tides)) == ""
    wait(lambda: "nonsense" in _read(there.path / "logs" / "daemon.err"))
    wait(lambda: mark.stat().st_mtime > 1 and not is_starting(there.path))
    (there.path / "config.toml").unlink()  # mended
    assert there.hook("Stop", told(tides)) == ""
    wait(there.is_serving)


@pytest.mark.parametrize("wrong", [{"RECOLLECT_TENANT": "no tenant"}, {"RECOLLECT_ENABLED": "False"}])
def test_a_daemon_that_refuses_one_environment_is_started_for_another(
    there: Home, tides: Path, wrong: dict[str, str]
) -> None:
    there.path.mkdir(mode=0o700)
    assert there.hook("Stop", told(tides), **wrong) == ""
    if "RECOLLECT_ENABLED" in wrong:
        assert list(there.path.iterdir()) == [], "switched off, it does nothing"
    else:
        wait(lambda: _read(there.path / client.STARTING).startswith("refused") and not is_starting(there.path))
    assert there.hook("Stop", told(tides)) == ""
    wait(there.is_serving)


@pytest.mark.parametrize("event", client.EVENTS)
@pytest.mark.parametrize("other", [{"agent_id": "a1"}, {"transcript_path": None}, {"transcript_path": ""}])
def test_sub_agents_and_ephemeral_sessions_start_no_daemon(
    there: Home, tides: Path, event: str, other: dict[str, Any]
) -> None:
    there.path.mkdir(mode=0o700)
    assert there.hook(event, told(tides, **other)) == ""
    assert not (there.path / client.STARTING).exists()


def test_a_sub_agent_sets_no_pipeline_going(there: Home) -> None:
    at = time.time() - 86_400
    lines = claude(1, "please always run make lint before you commit", session=SESSION, at=at - START.timestamp())
    write(there.projects / "-code-tides" / f"{SESSION}.jsonl", lines)
    there.json("ingest")
    (before,) = there.json("conversations")
    assert before["status"] == "ready"
    for event in ("SessionStart", "Stop"):
        there.hook(event, told("/code/tides", agent_id="a1"))
    time.sleep(0.5)
    assert there.json("conversations") == [before] and there.pid() == 0


def test_a_daemon_that_breaks_at_its_start_is_not_started_at_every_hook(there: Home, tides: Path) -> None:
    there.path.mkdir(mode=0o700)
    (there.path / client.SOCKET).mkdir()  # nobody can listen there
    assert there.hook("Stop", told(tides)) == ""
    wait(lambda: _read(there.path / client.STARTING).startswith("refused"))


def test_an_installed_hook_does_not_bring_back_a_home_that_was_purged(there: Home, tides: Path) -> None:
    for event in client.EVENTS:
        assert there.hook(event, told(tides)) == ""
    assert not there.path.exists()
    call = [sys.executable, "-m", "recollect", "hook", "Stop"]  # a person may call it anywhere
    subprocess.run(call, env=there.environ, input=json.dumps(told(tides)).encode(), check=True)
    wait(there.is_serving)


@pytest.mark.parametrize("call", [("hook", "Stop"), ("pause", "--session", "s1")])
def test_a_home_is_its_owners_alone_whoever_makes_it(there: Home, call: tuple[str, ...]) -> None:
    unreachable = {"RECOLLECT_DATABASE": "postgresql://me@127.0.0.1:9/x", "RECOLLECT_BUSY_TIMEOUT_SECONDS": "1"}
    before = os.umask(0o022)
    try:
        assert there.run(*call, **unreachable).status == 0
    finally:
        os.umask(before)
    assert {stat.S_IMODE(each.stat().st_mode) & 0o077 for each in (there.path, *there.path.iterdir())} == {0}


def test_many_hooks_at_once_start_one_daemon(there: Home, tides: Path) -> None:
    there.path.mkdir(mode=0o700)
    call = hook_command("SessionStart")
    data = json.dumps(told(tides)).encode()
    started = [subprocess.Popen(call, env=there.environ, stdin=subprocess.PIPE) for _ in range(12)]
    for each in started:
        each.communicate(data, timeout=20)
    assert {each.returncode for each in started} == {0}
    wait(there.is_serving)
    pid = there.pid()
    time.sleep(1.0)
    assert there.pid() == pid
    log = (there.path / "logs" / "daemon.log").read_text()
    assert log.count("serving") == 1


def test_a_log_of_failures_stays_small(tmp_path: Path) -> None:
    for _ in range(6000):
        client.log(str(tmp_path), "Stop", "no daemon: " + "x" * 60)
    sizes = [path.stat().st_size for path in (tmp_path / "logs").iterdir()]
    assert len(sizes) == 2 and max(sizes) < 300_000


# Hostile input

HOSTILE: list[bytes] = [
    b"",
    b"{",
    b"null",
    b"[]",
    b"42",
    b'"text"',
    b"\xff\xfe\x00",
    b"{" * 100_000,
    b"[" * 200_000,
    b'{"session_id": 5}',
    b'{"session_id": "../../etc/passwd", "cwd": "/"}',
    b'{"session_id": "s", "cwd": ["/"]}',
    b'{"session_id": "s", "cwd": "/a\\u0000b", "prompt": "x"}',
    b'{"session_id": "s", "cwd": "relative", "prompt": "x"}',
    b'{"session_id": "s", "transcript_path": "/etc/passwd", "cwd": "/"}',
    b'{"session_id": "s", "transcript_path": "/etc/../etc/x.jsonl", "cwd": "/"}',
    b'{"session_id": "s", "transcript_path": 7}',
    b'{"session_id": "s", "prompt": {"a": 1}}',
    b'{"session_id": "s"}, "event": "SessionStart"}\nhook\tSessionStart\t\t',
    b'{"session_id": "s\\n\\thook"}',
    b"x" * 5_000_000,
    b'{"session_id": "' + b"s" * 900_000 + b'"}',
    b'{"session_id": "s", "prompt": "' + b"p" * 3_000_000 + b'"}',
]


def test_hostile_input_ends_well_says_nothing_and_stores_nothing(there: Home) -> None:
    """To a daemon that lives, and without one: real processes, the events by turns."""
    write(there.user / "outside" / "-p" / f"{SESSION}.jsonl", talk(1, 4, SESSION))
    pid = there.start()
    there.settle()
    before = _rows(there)
    for number, data in enumerate(HOSTILE):
        for event in (*client.EVENTS[number % 3 :: 3], "Nonsense", "--agent"):
            assert there.hook(event, data) == "", (event, data[:80])
    there.settle()
    assert there.pid() == pid and _rows(there) == before
    there.stop()
    refused = client.situation(str(there.path), there.environ)
    (there.path / client.STARTING).write_text(refused)  # none is started meanwhile
    for data in HOSTILE:
        for event in ("SessionStart", "SessionEnd"):
            assert there.hook(event, data) == "", (event, data[:80])
    assert there.pid() == 0


def _rows(there: Home) -> dict[str, int]:
    return {table: number for table, number in there.json("status")["tables"].items() if table != "memory_jobs"}


def test_an_agent_that_does_not_close_its_pipe_is_not_waited_for(there: Home, tides: Path) -> None:
    there.json("remember", RULE, "--project", str(tides))
    there.start()
    process = subprocess.Popen(
        hook_command("SessionStart"), env=there.environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(json.dumps(told(tides)).encode())
    process.stdin.flush()
    started = time.monotonic()
    assert process.wait(10) == 0 and time.monotonic() - started < 5
    assert RULE in process.stdout.read().decode()
    process.stdin.close()
    process.stdout.close()


class Queue:
    def __init__(self) -> None:
        self.works: list[Work] = []

    def __call__(self, work: Work) -> None:
        self.works.append(work)


@pytest.fixture
def hooks(tmp_path: Path) -> Iterator[tuple[Hooks, Queue, Memory]]:
    queue = Queue()
    environ = {"HOME": str(tmp_path), "RECOLLECT_EMBEDDER": "none"}
    with open_memory(tmp_path / ".recollect", environ=environ) as memory:
        made = Hooks(memory, queue)
        yield made, queue, memory
        made.close()


def test_the_first_prompt_does_not_wait_for_the_embedder(tmp_path: Path) -> None:
    with open_memory(tmp_path / ".recollect", environ={"HOME": str(tmp_path)}, embedder="static") as memory:
        memory.remember(RULE, everywhere=True)
    with open_memory(tmp_path / ".recollect", environ={"HOME": str(tmp_path)}, embedder="static") as memory:
        made = Hooks(memory, Queue())
        made.warm()
        made.close()
        assert memory.vectors._embedders


@pytest.mark.parametrize(("source", "resumed"), [("resume", True), ("startup", False)])
def test_a_session_that_is_resumed_is_said_not_to_have_ended(
    hooks: tuple[Hooks, Queue, Memory], tmp_path: Path, source: str, resumed: bool
) -> None:
    made, queue, _ = hooks
    file = write(tmp_path / ".claude" / "projects" / "-p" / f"{SESSION}.jsonl", talk(1, 2, SESSION))
    event = told(tmp_path, source=source, transcript_path=str(file))
    made.answer(["SessionStart", "claude-code"], json.dumps(event).encode())
    goes_on = Work(task=Task.TAKE, path=str(file), source="claude-code", session=SESSION)
    assert queue.works == [*([goes_on] if resumed else []), Work(task=Task.RUN)]


def test_half_a_character_in_an_event_does_not_spoil_the_rest_of_it(
    hooks: tuple[Hooks, Queue, Memory], tmp_path: Path
) -> None:
    made, queue, memory = hooks
    file = write(tmp_path / ".claude" / "projects" / "-p" / f"{SESSION}.jsonl", talk(1, 2, SESSION))
    event = told(tmp_path, transcript_path=str(file), last_assistant_message="Done \ud83d", prompt="lighthouse? \ud83d")
    made.answer(["SessionEnd", "claude-code"], json.dumps(event).encode())
    assert queue.works == [Work(task=Task.TAKE, path=str(file), source="claude-code", session=SESSION, ended=True)]
    memory.remember(RULE, project=tmp_path)
    assert RULE.encode() in made.answer(["UserPromptSubmit", "claude-code"], json.dumps(event).encode())


@pytest.mark.parametrize("name", ["no\u00a0break", "join\u200ded", "\ue0b0", "two\nlines"])
def test_a_folder_may_have_any_name(hooks: tuple[Hooks, Queue, Memory], tmp_path: Path, name: str) -> None:
    made, _, memory = hooks
    folder = tmp_path / name
    folder.mkdir()
    memory.remember(RULE, project=folder)
    assert RULE.encode() in made.answer(["SessionStart", "codex"], json.dumps(told(folder)).encode())


KEYS = ("session_id", "cwd", "transcript_path", "agent_id", "source", "prompt", "compact_summary", "turn_id", "x")
VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=60),
    st.sampled_from(["s", "/", "/etc/passwd", "/tmp/x.jsonl", "compact", "../x", "\x00", "\ud800", "m-" + "a" * 16]),
    st.lists(st.integers(), max_size=3),
    st.dictionaries(st.text(max_size=5), st.integers(), max_size=3),
)


@settings(max_examples=400)
@given(
    event=st.sampled_from([*client.EVENTS, "Other", ""]),
    agent=st.sampled_from(["", "claude-code", "codex", "pi", "\t"]),
    payload=st.one_of(
        st.binary(max_size=400),
        st.dictionaries(st.sampled_from(KEYS), VALUES).map(lambda d: json.dumps(d).encode()),
        st.recursive(VALUES, lambda inner: st.lists(inner, max_size=3), max_leaves=10).map(
            lambda d: json.dumps(d).encode()
        ),
    ),
)
def test_whatever_comes_is_answered_or_ignored_and_nothing_is_stored(
    hooks: tuple[Hooks, Queue, Memory], event: str, agent: str, payload: bytes
) -> None:
    answers, queue, _ = hooks
    printed = answers.answer([event, agent, "/home/x", "", ""], payload)
    assert printed == b"" or json.loads(printed)["hookSpecificOutput"]["hookEventName"] == event
    assert all(not work.path for work in queue.works)  # nothing outside of the agents' folders is ever read
    queue.works.clear()


# Decisions


def test_what_is_kept_later_is_kept_in_order_and_the_next_answer_waits_for_it() -> None:
    keeper, done, go = Keeper(), [], threading.Event()
    keeper.later("a", lambda: go.wait(5) and done.append(1))
    keeper.later("a", lambda: done.append(2))
    keeper.settle("b")  # another session waits for nobody
    assert done == []
    go.set()
    keeper.settle("a")
    assert done == [1, 2]
    go.clear()
    keeper.later("a", lambda: go.wait(5))
    for _ in range(1000):
        keeper.later("a", lambda: done.append(3))
    go.set()
    keeper.close()
    assert 200 < done.count(3) < 300  # never more than fit


def test_a_write_that_fails_whatever_the_reason_keeps_no_other_from_being_done() -> None:
    keeper, done = Keeper(), []
    keeper.later("a", lambda: 1 // 0)
    keeper.later("a", lambda: done.append(1))
    keeper.settle("a")
    keeper.close()
    assert done == [1]


def test_a_write_that_hangs_does_not_keep_the_daemon_from_its_end_however_many_wait_behind_it() -> None:
    keeper, go = Keeper(), threading.Event()
    for _ in range(300):
        keeper.later("a", lambda: go.wait(60))
    closing = threading.Thread(target=keeper.close, daemon=True)
    closing.start()
    closing.join(20)
    ended = not closing.is_alive()
    go.set()
    assert ended


def test_transcripts_are_taken_from_agents_folders_only(hooks: tuple[Hooks, Queue, Memory], tmp_path: Path) -> None:
    answers, queue, _ = hooks
    inside = write(tmp_path / ".claude" / "projects" / "-p" / "s.jsonl", talk(1, 2))
    elsewhere = write(tmp_path / "config" / "projects" / "-p" / "s.jsonl", talk(1, 2))
    link = inside.with_name("link.jsonl")
    link.symlink_to(write(tmp_path / "private.jsonl", talk(1, 2)))
    for path in (link, elsewhere, tmp_path / "private.jsonl", inside.with_suffix(".txt")):
        answers.answer(
            ["Stop", CLAUDE, str(tmp_path), "", ""], json.dumps(told("/p", transcript_path=str(path))).encode()
        )
    assert queue.works == []
    folders = [str(tmp_path), str(tmp_path / "config"), ""]  # its CLAUDE_CONFIG_DIR is another
    answers.answer(["Stop", CLAUDE, *folders], json.dumps(told("/p", transcript_path=str(elsewhere))).encode())
    answers.answer(["SessionEnd", CLAUDE, *folders], json.dumps(told("/p", transcript_path=str(inside))).encode())
    assert [(work.path, work.ended) for work in queue.works] == [(str(elsewhere), False), (str(inside), True)]


@pytest.mark.parametrize(
    "more, runs",
    [
        ({"transcript_path": "/t.jsonl"}, 1),
        ({"transcript_path": "/t.jsonl", "source": "resume"}, 1),
        ({"transcript_path": "/t.jsonl", "source": "compact"}, 0),
        ({"transcript_path": "/t.jsonl", "agent_id": "sub"}, 0),
        ({"transcript_path": None}, 0),
    ],
    ids=["startup", "resume", "compact", "sub-agent", "ephemeral"],
)
def test_the_start_of_a_root_session_asks_for_one_run(
    hooks: tuple[Hooks, Queue, Memory], more: dict[str, Any], runs: int
) -> None:
    answers, queue, _ = hooks
    answers.answer(["SessionStart", CLAUDE, "", "", ""], json.dumps(told("/p", **more)).encode())
    assert queue.works == [Work(task=Task.RUN)] * runs


def test_codex_has_no_summary_in_its_compaction_and_no_end_in_its_stop(
    hooks: tuple[Hooks, Queue, Memory], tmp_path: Path
) -> None:
    answers, queue, _ = hooks
    path = write(tmp_path / ".codex" / "sessions" / "2026" / "03" / "02" / "rollout-x.jsonl", b"{}\n")
    for event in ("Stop", "PostCompact", "SessionEnd"):
        payload = json.dumps({**told("/p", transcript_path=str(path)), "turn_id": "1", "model": "m"}).encode()
        answers.answer([event, "", str(tmp_path), "", ""], payload)
    assert [(work.source, work.ended, work.compaction) for work in queue.works] == [
        (CODEX, False, ""),
        (CODEX, False, ""),
        (CODEX, True, ""),
    ]


def test_whose_event_it_is_is_guessed_where_nobody_says() -> None:
    assert guessed(Event("s", turn_id="1")) == CODEX
    assert guessed(Event("s", transcript_path="/h/.codex/sessions/rollout-2026.jsonl")) == CODEX
    assert guessed(Event("s", transcript_path="/h/.claude/projects/-p/s.jsonl")) == CLAUDE
    call = checked(["Stop", "codex", "/home"], b'{"session_id": "s"}')
    assert call is not None and (call.agent, call.folders) == (CODEX, {"HOME": "/home"})


def test_nothing_is_printed_for_nothing() -> None:
    assert client.printed("Stop", "") == b""
    assert json.loads(client.printed("SessionStart", "a\nb")) == {
        "hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": "a\nb"}
    }
    assert b"\n" not in client.printed("SessionStart", "a\nb")


# The client


def test_a_daemon_gets_a_pythonpath_only_where_it_is_found_by_it() -> None:
    root = str(Path(client.__file__).parents[3])
    for needed in ({"PYTHONPATH": f"/x:{root}"}, {"PYTHONUSERBASE": str(Path(root).parent), "PYTHONPATH": "/x"}):
        assert client.for_daemon("/h", {**needed, "A": "1"}) == {**needed, "A": "1", "RECOLLECT_HOME": "/h"}
    for project in ({"PYTHONPATH": ".:/x"}, {"PYTHONPATH": "", "PYTHONUSERBASE": ""}, {"PYTHONUSERBASE": "/"}):
        assert client.for_daemon("/h", {**project, "PYTHONHOME": "/x"}) == {"RECOLLECT_HOME": "/h"}


def test_the_client_imports_little_and_nothing_of_ours() -> None:
    tree = ast.parse(Path(client.__file__).read_text())
    names = {
        alias.name if isinstance(node, ast.Import) else str(node.module)
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    assert names <= {
        "__future__",
        "os",
        "sys",
        "time",
        "pwd",
        "select",
        "_signal",
        "_socket",
        "binascii",
        "fcntl",
        "json",
        "collections.abc",
        "typing",
    }
    call = [sys.executable, "-X", "importtime", *hook_command("Stop")[1:]]
    done = subprocess.run(call, env={"RECOLLECT_HOME": "/dev/null/x"}, input=b"{}", capture_output=True, check=True)
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.decode().splitlines()}
    assert not loaded & {"json", "re", "enum", "socket", "typing", "site", "pathlib", "recollect"}


def test_the_command_line_goes_to_the_client_before_anything_else() -> None:
    call = [sys.executable, "-X", "importtime", "-m", "recollect", "hook", "Stop"]
    done = subprocess.run(call, env={"RECOLLECT_HOME": "/dev/null/x"}, input=b"{}", capture_output=True, check=True)
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.decode().splitlines()}
    assert "recollect.surfaces.hooks.client" in loaded and not loaded & {"click", "msgspec", "recollect.app"}


def test_the_name_of_the_event_may_stand_in_the_event(there: Home, tides: Path) -> None:
    there.json("remember", RULE, "--project", str(tides))
    data = json.dumps({**told(tides), "hook_event_name": "SessionStart"}).encode()
    call = hook_command()
    environ = {**there.environ, "RECOLLECT_HOME": "/elsewhere"}
    done = subprocess.run([*call, "--home", str(there.path)], env=environ, input=data, capture_output=True, check=True)
    assert RULE in done.stdout.decode()


def _read(path: Path) -> str:
    return path.read_text() if path.exists() else ""


def test_random_bytes_to_real_hooks_end_well(there: Home) -> None:
    chance = random.Random(7)
    there.start()
    for _ in range(12):
        data = chance.randbytes(chance.randrange(2000))
        assert there.hook(chance.choice(client.EVENTS), data) == ""
    assert there.pid()
