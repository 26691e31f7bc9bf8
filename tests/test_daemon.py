"""The daemon as a person and their agents meet it: real processes, a real socket, signals at any moment."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

import recollect
from recollect.app import open_memory
from recollect.asking import Estimate
from recollect.config import load
from recollect.consolidate.run import KEY, KIND
from recollect.extract.run import KIND as EXTRACT
from recollect.ingest import watch
from recollect.ingest.run import KIND as INGEST
from recollect.models.embed.catalog import FOLDERS
from recollect.store.database import Transaction
from recollect.store.jobs import Jobs, RetryPolicy
from recollect.store.workers import this_worker
from recollect.surfaces.daemon import place
from recollect.surfaces.daemon.daemon import Daemon
from recollect.surfaces.daemon.lanes import Lane
from recollect.surfaces.daemon.server import THREADS, WAITING, Server
from recollect.surfaces.daemon.work import MOST, Backlog, Result, Task, Work, joined
from recollect.surfaces.daemon.worker import Worker, limited
from recollect.surfaces.hooks import client
from recollect.types import JobStatus
from tests.command import run
from tests.daemons import RECOLLECT, Home, home, wait
from tests.embedders import installed
from tests.transcripts import START, append, claude, entries, talk, texts, write

SESSION = "aaaaaaaa-2222-4333-8444-555555555555"


@pytest.fixture
def there(tmp_path: Path) -> Iterator[Home]:
    with home(tmp_path) as made:
        yield made


def ask(there: Home, *fields: str, payload: bytes = b"", seconds: float = 5.0) -> bytes:
    return client.ask(str(there.path), fields, payload, time.monotonic() + seconds)


# One per home


def test_there_is_one_daemon_per_home_and_it_says_so(there: Home) -> None:
    pid = there.start()
    again = there.json("serve", "--background")
    assert (again["state"], again["pid"]) == ("running already", pid)
    status = there.json("status")["daemon"]
    assert status["running"] and status["pid"] == pid and status["since"] and "waiting" in status
    assert f"process {pid}" in there.run("status").stdout
    lines = (there.path / client.LOCK).read_text().splitlines()
    assert lines[0] == str(pid) and lines[1] == status["since"]
    assert there.json("serve", "--stop")["pid"] == pid
    assert there.json("status")["daemon"] == {"running": False}
    assert there.json("serve", "--stop")["state"] == "not running"


def test_the_socket_is_its_owners_alone_and_goes_with_the_daemon(there: Home) -> None:
    there.start()
    path = there.path / client.SOCKET
    assert stat.S_IMODE(path.stat().st_mode) == 0o600 and stat.S_IMODE(there.path.stat().st_mode) == 0o700
    there.stop()
    assert not path.exists()


def test_what_a_killed_daemon_left_is_no_obstacle(there: Home) -> None:
    pid = there.start()
    os.kill(pid, signal.SIGKILL)
    wait(lambda: there.pid() == 0)
    assert (there.path / client.SOCKET).exists() and (there.path / client.LOCK).read_text().startswith(str(pid))
    assert there.json("status")["daemon"] == {"running": False}
    assert there.start() != pid


def test_whoever_takes_the_lock_is_named_there_at_once(tmp_path: Path) -> None:
    (tmp_path / client.LOCK).write_text("1\n2026-03-02T09:00:00.000Z\nunix:daemon.sock\n")
    assert place.running(tmp_path) is None
    lock = place.acquire(tmp_path)
    assert lock is not None
    found = place.running(tmp_path)
    assert found is not None and found.pid == os.getpid()
    assert place.acquire(tmp_path) is None
    lock.release()
    assert place.running(tmp_path) is None


def test_many_starts_at_once_make_one_daemon(there: Home) -> None:
    started = [subprocess.Popen([*RECOLLECT, "serve"], env=there.environ, stdout=subprocess.DEVNULL) for _ in range(4)]
    wait(lambda: sum(each.poll() is None for each in started) == 1)
    wait(there.is_serving)
    assert [each.pid for each in started if each.poll() is None] == [there.pid()]
    assert {each.returncode for each in started} == {0, None}
    there.stop()
    wait(lambda: all(each.poll() == 0 for each in started))


def test_a_home_with_a_long_path_has_a_daemon_too(tmp_path: Path) -> None:
    deep = tmp_path / ("d" * 60) / ("e" * 60)
    deep.mkdir(parents=True)
    with home(deep) as there:
        pid = there.start()
        assert json.loads(ask(there, "status"))["waiting"] is not None
        assert there.hook("Stop", {"session_id": "s"}) == "" and there.pid() == pid


def test_a_home_that_is_removed_ends_its_daemon(tmp_path: Path) -> None:
    with home(tmp_path, RECOLLECT_POLL_INTERVAL_SECONDS="0.2") as there:
        pid = there.start()
        there.settle()
        there.path.rename(tmp_path / "elsewhere")
        wait(lambda: not _is_alive(pid))


def test_a_changed_configuration_is_read_by_itself(tmp_path: Path) -> None:
    with home(tmp_path, RECOLLECT_POLL_INTERVAL_SECONDS="0.2") as there:
        pid, since = there.start(), there.json("status")["daemon"]["since"]
        (there.path / "config.toml").write_text("log_level = 'info'\n")
        wait(lambda: (there.json("status")["daemon"].get("since") or since) != since)
        assert there.pid() == pid
        (there.path / "config.toml").write_text("enabled = false\n")
        wait(lambda: not _is_alive(pid))
        done = there.run("serve", "--background")
        assert done.status == 1 and "switched off" in done.stderr


def test_an_upgrade_is_noticed(tmp_path: Path) -> None:
    installed = tmp_path / "lib" / "recollect"
    shutil.copytree(Path(recollect.__file__).parent, installed, ignore=shutil.ignore_patterns("__pycache__", "bench"))
    with home(tmp_path, RECOLLECT_POLL_INTERVAL_SECONDS="0.2", PYTHONPATH=str(installed.parent)) as there:
        pid, since = there.start(), there.json("status")["daemon"]["since"]
        (installed / "surfaces" / "daemon" / "daemon.py").touch()
        wait(lambda: (there.json("status")["daemon"].get("since") or since) != since)
        assert there.pid() == pid


def test_a_database_that_is_replaced_or_removed_is_opened_anew(tmp_path: Path) -> None:
    with home(tmp_path, RECOLLECT_POLL_INTERVAL_SECONDS="0.2") as there:
        file = write(there.projects / "-p" / f"{SESSION}.jsonl", talk(1, 4, SESSION))
        pid, since = there.start(), there.json("status")["daemon"]["since"]
        there.settle()
        for path in there.path.glob("recollect.db*"):
            path.rename(tmp_path / path.name)
        wait(lambda: (there.json("status")["daemon"].get("since") or since) != since)
        append(file, talk(5, 6, SESSION))
        with open_memory(there.path, environ=there.environ) as memory:
            wait(lambda: len(entries(memory)) == 6)
        assert there.pid() == pid


def test_a_damaged_database_is_set_aside_with_no_daemon_at_it(there: Home) -> None:
    """One that went on with the old file would give what is erased from the new one."""
    there.run("remember", "Deploy on Tuesdays only.", "--everywhere")
    pid = there.start()
    there.settle()
    database = there.path / "recollect.db"
    with database.open("r+b") as file:
        file.write(b"\xff" * 100)
    assert there.json("doctor", "--fix")["problems"][0]["fixed"]
    assert there.pid() not in (0, pid) and not _is_alive(pid)
    opened = {each.readlink() for each in Path(f"/proc/{there.pid()}/fd").iterdir() if each.is_symlink()}
    assert database in opened and not any("damaged" in each.name for each in opened)
    there.stop()
    database.write_bytes(b"\xff" * 100)
    assert there.json("doctor", "--fix")["problems"][0]["fixed"] and there.pid() == 0


def test_a_relative_home_is_the_same_one_for_the_daemon(there: Home) -> None:
    environ = {**there.environ, "RECOLLECT_HOME": there.path.name}
    for how in ("--background", "--foreground"):
        started = subprocess.Popen(
            [*RECOLLECT, "serve", how], env=environ, cwd=there.user, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
        wait(there.is_serving)
        there.settle()
        there.stop()
        assert started.communicate(timeout=20) == (None, b"") and started.returncode == 0
        assert not (there.path / there.path.name).exists()


def test_a_relative_home_is_the_same_one_when_the_daemon_begins_anew(tmp_path: Path) -> None:
    with home(tmp_path, RECOLLECT_POLL_INTERVAL_SECONDS="0.2") as there:
        environ = {**there.environ, "RECOLLECT_HOME": there.path.name}
        process = subprocess.Popen([*RECOLLECT, "serve"], env=environ, cwd=there.user)
        wait(there.is_serving)
        since = there.json("status")["daemon"]["since"]
        (there.path / "config.toml").write_text("log_level = 'info'\n")
        wait(lambda: (there.json("status")["daemon"].get("since") or since) != since)
        assert there.pid() == process.pid and not (there.path / there.path.name).exists()
        there.stop()
        assert process.wait(20) == 0


# It follows and works


def test_it_takes_in_what_was_there_and_what_is_written(there: Home) -> None:
    file = write(there.projects / "-code-tides" / f"{SESSION}.jsonl", talk(1, 4, SESSION))
    there.start()
    with open_memory(there.path, environ=there.environ) as memory:
        wait(lambda: len(entries(memory)) == 4)
        append(file, talk(5, 6, SESSION))
        wait(lambda: len(entries(memory)) == 6)


def test_the_end_of_a_session_makes_memories_of_it(there: Home) -> None:
    """The transcript lags behind the hook; and a session that ended is not silent yet."""
    now = time.time() - stamp_seconds()
    rule = "Please always run make lint before you commit, the pipeline rejects everything else."
    lines = claude(1, rule, session=SESSION, at=now) + claude(
        2, "Understood.", role="assistant", session=SESSION, at=now + 1
    )
    file = write(there.projects / "-code-tides" / f"{SESSION}.jsonl", lines)
    there.start()
    there.settle()
    told = {"session_id": SESSION, "transcript_path": str(file), "cwd": "/code/tides"}
    started = time.monotonic()
    assert there.hook("Stop", told) == ""
    with open_memory(there.path, environ=there.environ) as memory:
        wait(lambda: len(entries(memory)) == 2)
        there.settle()
        assert [str(each.status) for each in memory.conversations()] == ["active"]  # Stop is not the end
        started = time.monotonic()
        assert there.hook("SessionEnd", told) == ""
        assert time.monotonic() - started < 1.5
        append(file, claude(3, "Bye.", session=SESSION, at=now + 2))
        wait(lambda: "archived" in {str(each.status) for each in memory.conversations()})
        there.settle()
        assert rule in "\n".join([each.text for each in memory.memories()])
    assert rule in there.said("SessionStart", {"session_id": "next", "cwd": "/code/tides"})
    assert there.said("SessionStart", {"session_id": "next", "cwd": "/code/other"}) == ""
    ready = (there.path / "context" / client.INDEX).read_text()
    assert "/code/tides" in ready and rule in "".join(p.read_text() for p in (there.path / "context").glob("*.md"))


def test_a_session_that_is_resumed_has_not_ended_any_more(tmp_path: Path) -> None:
    file = write(tmp_path / "projects" / "-p" / f"{SESSION}.jsonl", talk(1, 6, SESSION))
    told = Work(task=Task.TAKE, path=str(file), source="claude-code", session=SESSION)
    with open_memory(tmp_path / "home", clock=lambda: START + timedelta(minutes=10)) as memory:
        worker = Worker(memory)
        assert worker.do(replace(told, ended=True)).ready == 1
        append(file, claude(7, "what comes late", session=SESSION))
        assert worker.do(Work(task=Task.TAKE, path=str(file))).ready == 1  # the watcher saw it
        append(file, talk(8, 8, SESSION))
        assert worker.do(told).ready == 0  # an answer was given: it goes on
        append(file, talk(9, 9, SESSION))
        assert worker.do(Work(task=Task.TAKE, path=str(file))).ready == 0
        assert [str(each.status) for each in memory.conversations()] == ["active"]
        assert worker.do(replace(told, ended=True)).ready == 1


def test_a_model_of_an_earlier_version_is_replaced_in_the_background(tmp_path: Path) -> None:
    installed()  # skips where the package index cannot be reached
    models = tmp_path / "models"
    (models / "all-minilm-l6-v2-7").mkdir(parents=True)
    with home(tmp_path, RECOLLECT_MODELS_FOLDER=str(models), RECOLLECT_EMBEDDER="auto") as there:
        there.start()
        wait(lambda: [each.name for each in models.iterdir()] == [FOLDERS["arctic"]], 60)


def test_names_that_are_not_utf8_stop_nothing(tmp_path: Path) -> None:
    with home(tmp_path, RECOLLECT_POLL_INTERVAL_SECONDS="0.2") as there:
        there.start()
        there.settle()
        for name in (b"caf\xe9.jsonl", f"{SESSION}.jsonl".encode()):
            write(tmp_path / "new" / os.fsdecode(name), talk(1, 4, SESSION))
        (tmp_path / "new").rename(there.projects / "new")
        with open_memory(there.path, environ=there.environ) as memory:
            wait(lambda: len(entries(memory)) == 4)
            write(there.projects / "new" / os.fsdecode(b"caf\xe9.jsonl"), talk(1, 5, SESSION))
            append(there.projects / "new" / f"{SESSION}.jsonl", talk(5, 6, SESSION))
            wait(lambda: len(entries(memory)) == 6)
        there.settle()  # it watches again
        said = (there.path / "logs" / "worker-bulk.log").read_text()
        assert r"caf\xe9.jsonl: its name is not UTF-8" in said


def test_without_reports_of_the_system_it_looks_by_itself_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise OSError("OS file watch limit reached")

    monkeypatch.setattr(watch, "RustNotify", refused)
    file = write(tmp_path / ".claude" / "projects" / "-p" / f"{SESSION}.jsonl", talk(1, 4, SESSION))
    settings = load(flags={"poll_interval_seconds": 0.2})
    lock = place.acquire(settings.home)
    assert lock is not None
    daemon = Daemon(settings, lock, "")
    running = threading.Thread(target=daemon.run)
    running.start()
    try:
        with open_memory() as memory:
            wait(lambda: len(entries(memory)) == 4)
            append(file, talk(5, 6, SESSION))
            wait(lambda: len(entries(memory)) == 6)
        assert daemon.shown()["watching"] is False
        assert "not watching" in run(settings.home, "status").stdout
        (settings.home / "config.toml").write_text("log_level = 'info'\n")
        wait(lambda: daemon.is_outdated)
    finally:
        daemon.stop()
        running.join(20)


def test_what_fails_at_a_poll_ends_nothing(tmp_path: Path) -> None:
    with home(tmp_path, RECOLLECT_POLL_INTERVAL_SECONDS="0.2") as there:
        pid, since = there.start(), there.json("status")["daemon"]["since"]
        there.settle()
        with open_memory(there.path, environ=there.environ) as memory:
            with memory.database.write() as tx:
                tx.run("ALTER TABLE memory_conversations RENAME TO elsewhere")
            wait(lambda: "no such table" in (there.path / "logs" / "daemon.log").read_text())
            with memory.database.write() as tx:
                tx.run("ALTER TABLE elsewhere RENAME TO memory_conversations")
        (there.path / "config.toml").write_text("log_level = 'info'\n")
        wait(lambda: (there.json("status")["daemon"].get("since") or since) != since)
        assert there.pid() == pid


def test_what_waits_in_the_spool_keeps_no_daemon_from_coming_up(tmp_path: Path) -> None:
    soon = {"RECOLLECT_POLL_INTERVAL_SECONDS": "0.2", "RECOLLECT_BUSY_TIMEOUT_SECONDS": "0.5"}
    with home(tmp_path, **soon) as there, open_memory(there.path, environ=there.environ) as memory:
        spool = Path(client.made(str(there.path), client.SPOOL))
        started = {"event": "SessionStart", "input": {"session_id": SESSION, "cwd": "/code/tides"}}
        (spool / "1.json").write_text(json.dumps(started))  # of an older version: nothing that was given
        (spool / "2.json").write_text("[" * 15_000)
        (spool / "3.json").write_text(json.dumps({**started, "given": [["m-abcdefghijklmnop", "1"]]}))
        with memory.database.write():  # held by another
            there.start()
            assert [each.name for each in spool.iterdir()] == ["3.json"]
        wait(lambda: not list(spool.iterdir()))


@contextmanager
def done_by_itself(tmp_path: Path, **leases: Any) -> Iterator[tuple[Jobs, Transaction]]:
    """Somebody leaves a job undone beside a daemon: in its time it is done."""
    with (
        home(tmp_path, RECOLLECT_POLL_INTERVAL_SECONDS="0.2") as there,
        open_memory(there.path, environ=there.environ) as memory,
    ):
        jobs = Jobs(memory.owner, **leases)

        def is_done() -> bool:
            with memory.database.read() as tx:
                return jobs.watermarks(tx, KIND, [KEY])[KEY][0] is JobStatus.SUCCEEDED

        there.start()
        there.settle()
        with memory.database.write() as tx:
            jobs.enqueue(tx, KIND, [(KEY, "1")])
            yield jobs, tx
        wait(is_done)


def test_what_backs_off_is_tried_again_by_itself_when_its_time_comes(tmp_path: Path) -> None:
    with done_by_itself(tmp_path, policy=RetryPolicy(first_delay=2.0)) as (jobs, tx):
        (lease,) = jobs.claim(tx, KIND, limit=1)
        assert jobs.fail(tx, lease, "no answer") is JobStatus.BACKING_OFF


def test_a_lease_that_ran_out_is_taken_up_by_itself(tmp_path: Path) -> None:
    with done_by_itself(tmp_path, lease_seconds=2.0) as (jobs, tx):
        assert jobs.claim(tx, KIND, limit=1)


def test_a_file_that_was_held_is_taken_up_when_it_is_free(tmp_path: Path) -> None:
    with (
        home(tmp_path, RECOLLECT_POLL_INTERVAL_SECONDS="0.2") as there,
        open_memory(there.path, environ=there.environ) as memory,
    ):
        file = write(there.projects / "-p" / f"{SESSION}.jsonl", talk(1, 4, SESSION))
        there.start()
        wait(lambda: len(entries(memory)) == 4)
        there.settle()
        jobs, key = Jobs(memory.owner), f"claude-code/-p/{SESSION}.jsonl"
        with memory.database.write() as tx:
            jobs.enqueue(tx, INGEST, [(key, "as it was")])
            (lease,) = jobs.claim(tx, INGEST, limit=1, keys=[key])
        append(file, talk(5, 6, SESSION))

        def is_wanted() -> bool:
            with memory.database.read() as tx:
                return jobs.watermarks(tx, INGEST, [key])[key][1] != "as it was"

        wait(is_wanted)
        there.settle()  # it waits for the file no longer
        with memory.database.write() as tx:
            jobs.complete(tx, lease)
        wait(lambda: len(entries(memory)) == 6)


def test_the_end_of_a_session_waits_for_a_database_that_is_held(tmp_path: Path) -> None:
    """However long, and whatever is told of the session meanwhile."""
    soon = {"RECOLLECT_POLL_INTERVAL_SECONDS": "0.2", "RECOLLECT_BUSY_TIMEOUT_SECONDS": "0.2"}
    with home(tmp_path, **soon) as there, open_memory(there.path, environ=there.environ) as memory:
        now = time.time() - stamp_seconds()
        lines = b"".join(claude(number, f"message {number}", session=SESSION, at=now) for number in range(6))
        file = write(there.projects / "-p" / f"{SESSION}.jsonl", lines)
        told = {"session_id": SESSION, "transcript_path": str(file), "cwd": "/code/tides"}
        there.start()
        wait(lambda: len(entries(memory)) == 6)
        there.settle()
        assert [str(each.status) for each in memory.conversations()] == ["active"]
        log = there.path / "logs" / "daemon.log"
        with memory.database.write():
            assert there.hook("SessionEnd", told) == ""
            wait(lambda: log.read_text().count("take: ") >= 3)
        wait(lambda: "active" not in {str(each.status) for each in memory.conversations()})


@pytest.mark.parametrize("event", ["SessionStart", "UserPromptSubmit"])
def test_a_start_by_a_hook_does_what_was_left(tmp_path: Path, event: str) -> None:
    """A conversation that is ready, and one whose worker was killed."""
    with (
        home(tmp_path, RECOLLECT_MAX_ROLLOUT_AGE_DAYS="36500") as there,
        open_memory(there.path, environ=there.environ) as memory,
    ):
        for session in (SESSION, SESSION[::-1]):
            write(there.projects / "-p" / f"{session}.jsonl", talk(1, 6, session))
        memory.ingest()
        gone = subprocess.Popen(["true"])
        gone.wait()
        machine, _, *rest = this_worker().split("|")
        jobs = Jobs(memory.owner, worker="|".join((machine, str(gone.pid), *rest)))
        key = memory.conversations()[0].session_key
        with memory.database.write() as tx:
            jobs.enqueue(tx, EXTRACT, [(key, "1")])
            assert jobs.claim(tx, EXTRACT, limit=1)
            tx.run("UPDATE memory_conversations SET status = 'processing' WHERE session_key = :key", {"key": key})
        path = str(there.projects / "-code-tides" / "next.jsonl")
        told = {"session_id": "next", "cwd": "/code/tides", "transcript_path": path, "prompt": "tides?"}
        there.hook(event, told)
        wait(lambda: not {"ready", "processing"} & {str(each.status) for each in memory.conversations()})


def test_vectors_that_another_process_took_are_made_again_by_itself(tmp_path: Path) -> None:
    with (
        home(tmp_path, RECOLLECT_POLL_INTERVAL_SECONDS="0.2", RECOLLECT_EMBEDDER="static") as there,
        open_memory(there.path, environ=there.environ) as memory,
    ):
        memory.remember("Deploy on Tuesdays only.", everywhere=True)
        there.start()
        there.settle()
        for _ in range(2):
            with memory.database.write() as tx:
                assert tx.run("DELETE FROM memory_vectors")
            wait(lambda: not any(memory.vectors.backlog().values()))


def stamp_seconds() -> float:
    return START.timestamp()


def test_a_compaction_that_a_hook_tells_becomes_its_artifact_once(there: Home) -> None:
    file = write(there.projects / "-code-tides" / f"{SESSION}.jsonl", talk(1, 6, SESSION))
    there.start()
    there.settle()
    told = {"session_id": SESSION, "transcript_path": str(file), "cwd": "/code/tides", "trigger": "auto"}
    assert there.hook("PreCompact", told) == ""
    assert there.hook("PostCompact", {**told, "compact_summary": "They agreed on tide tables of 1999."}) == ""
    folder = there.path / "memory"
    wait(lambda: [p for p in folder.glob("*compaction*") if "tide tables of 1999" in p.read_text()])
    in_file = claude(7, "They sail at noon.", session=SESSION, isCompactSummary=True)
    append(file, in_file)
    assert there.hook("PostCompact", {**told, "compact_summary": "They sail at noon."}) == ""
    there.settle()
    there.run("process")
    assert len([p for p in folder.glob("*compaction*") if "sail at noon" in p.read_text()]) == 1


def test_an_answer_that_cites_a_memory_counts_once_as_use(there: Home) -> None:
    memory_id = there.json("remember", "Deploy on Tuesdays only.", "--project", str(there.user))["id"]
    said = f"As you prefer ({memory_id}), I wait for Tuesday; m-aaaaaaaaaaaaaaaa is nobody's."
    lines = claude(1, "deploy?", session=SESSION) + claude(2, said, role="assistant", session=SESSION)
    file = write(there.projects / "-code-tides" / f"{SESSION}.jsonl", lines)
    there.start()
    there.settle()
    uses(there, {memory_id: 1})
    for _ in range(2):
        there.hook("Stop", {"session_id": SESSION, "transcript_path": str(file), "cwd": "/code/tides"})
    there.run("ingest", "--dir", str(there.projects), "--reimport")
    append(file, claude(3, f"{memory_id} {memory_id}", role="user", session=SESSION))
    there.settle()
    uses(there, {memory_id: 1})
    append(file, claude(4, f"again {memory_id}", role="assistant", session=SESSION))
    wait(lambda: uses(there) == {memory_id: 2})
    short = f"by {memory_id[:8]} r1, and m-zzzzzz or m-series"
    append(file, claude(5, short, role="assistant", session=SESSION))
    wait(lambda: uses(there) == {memory_id: 3})
    assert there.json("show", memory_id[:8])["id"] == memory_id


def uses(there: Home, expected: dict[str, int] | None = None) -> dict[str, int]:
    from recollect.store import memories

    with open_memory(there.path, environ=there.environ) as memory, memory.database.read() as tx:
        found = {key: use.count for key, use in memories.uses(tx, memory.owner).items()}
    assert expected is None or found == expected
    return found


# It ends


@pytest.mark.parametrize("delay", [0.0, 0.2, 0.4, 0.8])
def test_sigterm_ends_it_cleanly_at_any_moment(there: Home, delay: float) -> None:
    for number in range(40):
        write(there.projects / "-p" / f"{number:08d}{SESSION[8:]}.jsonl", talk(1, 40, f"{number:08d}{SESSION[8:]}"))
    process = subprocess.Popen([*RECOLLECT, "serve"], env=there.environ, stderr=subprocess.PIPE)
    time.sleep(delay)
    process.terminate()
    said = process.communicate(timeout=20)[1]
    assert process.returncode in (0, -signal.SIGTERM) and b"Traceback" not in said
    assert place.running(there.path) is None
    with open_memory(there.path, environ=there.environ) as memory:
        memory.ingest()
        assert len(entries(memory)) == 40 * 40 and "running" not in memory.status().jobs


ASKED_AT_EACH_STEP = """
import os, signal, sys, threading
from recollect.surfaces.cli.common import stop_on_signals

def is_asked(step):
    ended, left = threading.Event(), step
    stop_on_signals(ended.set)
    def profile(frame, event, argument):
        nonlocal left
        left -= event in ("call", "c_call")
        if left == 0:
            os.kill(os.getpid(), signal.SIGTERM)
    timer = threading.Timer(1.0, ended.set)  # where it waits before that step
    timer.start()
    sys.setprofile(profile)
    ended.wait()
    sys.setprofile(None)
    was_in_time = timer.is_alive()
    timer.cancel()
    return was_in_time

print(next(step for step in range(1, 100) if not is_asked(step)))
"""


def test_sigterm_is_heard_at_each_step_of_beginning_to_wait() -> None:
    call = [sys.executable, "-c", ASKED_AT_EACH_STEP]
    done = subprocess.run(call, capture_output=True, text=True, timeout=30, check=True)
    assert int(done.stdout) > 5, "the steps of an Event's wait"


ASKED_BY_ANOTHER_THREAD = """
import signal, threading
from recollect.surfaces.cli.common import stop_on_signals

ended = threading.Event()
stop_on_signals(ended.set)
other = threading.Thread(target=threading.Event().wait, daemon=True)
other.start()
threading.Timer(0.2, signal.pthread_kill, (other.ident, signal.SIGTERM)).start()
ended.wait()
"""


def test_sigterm_is_heard_whichever_thread_it_comes_in() -> None:
    """Right behind a SIGCONT the kernel often gives it to another than the main thread."""
    subprocess.run([sys.executable, "-c", ASKED_BY_ANOTHER_THREAD], timeout=20, check=True)


def test_a_worker_that_is_started_while_the_lane_is_stopped_is_asked_too() -> None:
    backlog = Backlog()
    backlog.add(Work(task=Task.SCAN))

    class StopsAsItStarts(Lane):
        def _start(self) -> subprocess.Popen[bytes]:
            backlog.close()
            self.stop()
            return super()._start()

    lane = StopsAsItStarts("bulk", backlog, load(), lambda work, result: pytest.fail(f"it was not asked: {result}"))
    lane.start()
    lane.join(20)
    assert not lane.is_alive()


def _is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def test_its_workers_end_with_it_however_it_ends(there: Home) -> None:
    for how in (signal.SIGTERM, signal.SIGKILL):
        write(there.projects / "-p" / f"{SESSION}.jsonl", talk(1, 4, SESSION))
        pid = there.start()
        wait(lambda pid=pid: _children(pid))
        children = _children(pid)
        os.kill(pid, how)
        wait(lambda children=children: not any(_is_alive(each) for each in children))
        wait(lambda: there.pid() == 0)


def _children(pid: int) -> list[int]:
    try:
        return [
            int(each)
            for task in Path(f"/proc/{pid}/task").iterdir()
            for each in (task / "children").read_text().split()
        ]
    except OSError:
        return []


def kills(there: Home, number: int, seed: int) -> int:
    """Kills the daemon at random while sessions write and hooks are called; how many were hit."""
    chance, written, hit = random.Random(seed), 0, 0
    there.path.mkdir(mode=0o700)
    stop = threading.Event()
    slow: list[float] = []

    def call() -> None:
        while not stop.is_set():
            told = {"session_id": f"{SESSION[:-1]}{chance.randrange(4)}", "cwd": "/code/tides", "prompt": "tides"}
            file = there.projects / "-p" / f"{told['session_id']}.jsonl"
            event = chance.choice(client.EVENTS)
            started = time.monotonic()
            there.hook(event, {**told, "transcript_path": str(file)})
            slow.append(time.monotonic() - started)

    caller = threading.Thread(target=call)
    caller.start()
    try:
        for _ in range(number):
            for _ in range(chance.randrange(1, 30)):
                written += 1
                session = f"{SESSION[:-1]}{chance.randrange(4)}"
                file = there.projects / "-p" / f"{session}.jsonl"
                file.parent.mkdir(exist_ok=True)
                append(file, claude(written, f"message {written}", session=session))
            wait(there.is_serving)  # the next hook brings it back
            time.sleep(chance.random() * 0.8)
            pid = there.pid()
            if pid and _is_alive(pid):
                os.kill(pid, signal.SIGKILL)
                hit += 1
                wait(lambda pid=pid: there.pid() != pid)
    finally:
        stop.set()
        caller.join()
    assert max(slow) < 5.0  # no client hung
    path = str(there.projects / "-p" / "last.jsonl")
    there.hook("SessionStart", {"session_id": "last", "cwd": "/code/tides", "transcript_path": path})
    wait(there.is_serving)
    with open_memory(there.path, environ=there.environ) as memory:
        wait(lambda: len(entries(memory)) == written)
        there.settle()
        assert sorted(texts(memory)) == sorted(f"message {n}" for n in range(1, written + 1))
    return hit


def test_five_kills_under_load_lose_nothing_and_hang_nobody(there: Home) -> None:
    assert kills(there, 5, seed=3) >= 4


@pytest.mark.soak
def test_fifty_kills_under_load_lose_nothing_and_hang_nobody(there: Home) -> None:
    assert kills(there, 50, seed=5) >= 45


# The server by itself


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[Path, threading.Event, list[bytes]]]:
    """A server whose answers wait until they are let go."""
    go, seen = threading.Event(), []

    def answer(fields: object, payload: bytes) -> bytes:
        seen.append(payload)
        go.wait(10)
        return b"answered"

    listener, _, token = place.listen(tmp_path)
    server = Server(listener, token, answer)
    server.start()
    yield tmp_path, go, seen
    go.set()
    server.stop()


def test_beyond_its_bounds_it_says_busy_at_once(served: tuple[Path, threading.Event, list[bytes]]) -> None:
    folder, go, seen = served
    outcomes: list[object] = []

    def call() -> None:
        try:
            outcomes.append(client.ask(str(folder), ["hook"], b"x", time.monotonic() + 8))
        except (OSError, client.Refused) as error:
            outcomes.append(str(error))

    callers = [threading.Thread(target=call) for _ in range(THREADS + WAITING + 20)]
    for each in callers:
        each.start()
    wait(lambda: len(outcomes) == 20 and len(seen) == THREADS)
    assert set(outcomes) == {"the daemon is busy"}
    go.set()
    for each in callers:
        each.join()
    assert outcomes.count(b"answered\n") == THREADS + WAITING


def test_a_client_that_stalls_holds_nobody_up(served: tuple[Path, threading.Event, list[bytes]]) -> None:
    folder, go, _ = served
    go.set()
    stalled = []
    for _ in range(THREADS):
        each = socket.socket(socket.AF_UNIX)
        each.connect(str(folder / client.SOCKET))
        each.send(b"hook\t")
        stalled.append(each)
    assert client.ask(str(folder), ["hook"], b"x", time.monotonic() + 5) == b"answered\n"
    for each in stalled:
        each.close()


def test_a_request_that_is_too_long_is_not_taken(served: tuple[Path, threading.Event, list[bytes]]) -> None:
    folder, go, seen = served
    go.set()
    with pytest.raises((OSError, client.Refused)):
        client.ask(str(folder), ["hook"], b"x" * 2_000_000, time.monotonic() + 5)
    assert seen == []
    assert client.ask(str(folder), ["hook"], b"x", time.monotonic() + 5) == b"answered\n"


def test_without_unix_sockets_a_token_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lock = place.acquire(tmp_path)
    assert lock is not None
    listener, address, token = place.listen(tmp_path, unix=False)
    lock.tell("2026-03-02T09:00:00.000Z", address)
    server = Server(listener, token, lambda fields, payload: "/".join(fields).encode() + payload)
    server.start()
    monkeypatch.setattr(client, "_unix", lambda: None)
    assert client.ask(str(tmp_path), ["hook", "Stop"], b"!", time.monotonic() + 5) == b"hook/Stop!\n"
    assert stat.S_IMODE((tmp_path / client.LOCK).stat().st_mode) == 0o600
    lock.tell("2026-03-02T09:00:00.000Z", address.replace(token, "0" * len(token)))
    with pytest.raises(client.Refused):
        client.ask(str(tmp_path), ["hook", "Stop"], b"!", time.monotonic() + 5)
    server.stop()
    lock.release()


# What waits


def test_a_paid_model_is_sent_no_more_than_a_person_would_be_asked_about() -> None:
    assert limited(None, 100) is None and limited(Estimate(16, 100, 0.0), 100) is None
    assert limited(Estimate(16, 400, 0.0), 100) == 4 and limited(Estimate(2, 10_000, 1.0), 100) == 1


def test_the_backlog_holds_each_thing_once_and_never_too_many() -> None:
    backlog = Backlog()
    for _ in range(3):
        backlog.add(Work(task=Task.RUN))
        backlog.add(Work(task=Task.TAKE, path="/a", session="s"))
    backlog.add(Work(task=Task.TAKE, path="/a", session="s", ended=True))
    assert backlog.shown() == {"doing": [], "waiting": {"take": 1, "run": 1}}
    for number in range(2 * MOST):
        backlog.add(Work(task=Task.TAKE, path=f"/{number}"))
    assert backlog.shown()["waiting"] == {"take": MOST, "run": 1, "scan": 1}
    first = backlog.next("live", 0)
    assert first is not None and (first.path, first.ended) == ("/a", True)
    assert backlog.next("bulk", 0) == Work(task=Task.SCAN)
    assert backlog.shown()["doing"] == ["take", "scan"] and backlog.next("bulk", 0.01) is None
    backlog.close()
    assert backlog.next("live", None) is None


def test_what_is_told_last_decides_whether_a_session_ended() -> None:
    end, stop = Work(task=Task.TAKE, path="/a", ended=True), Work(task=Task.TAKE, path="/a", compaction="so far")
    assert joined(stop, end) == Work(task=Task.TAKE, path="/a", ended=True, compaction="so far")
    assert joined(end, stop).ended is False  # resumed
    backlog = Backlog()
    backlog.add(stop)
    backlog.put_back(end)  # told before, and not done
    assert backlog.next("live", 0) == stop
    backlog.put_back(Work(task=Task.RUN))
    assert backlog.next("live", 0) == Work(task=Task.RUN)


def test_a_worker_that_dies_is_replaced_and_its_work_done(there: Home) -> None:
    there.start()
    there.settle()
    write(there.projects / "-p" / f"{SESSION}.jsonl", talk(1, 4, SESSION))
    killed = 0
    with open_memory(there.path, environ=there.environ) as memory:
        deadline = time.monotonic() + 30
        while len(entries(memory)) < 4:
            assert time.monotonic() < deadline
            if killed == 0:
                for child in _children(there.pid()):
                    os.kill(child, signal.SIGKILL)
                    killed += 1
            time.sleep(0.01)
    assert killed


def test_a_lane_outlives_what_it_cannot_do(tmp_path: Path) -> None:
    file = write(tmp_path / ".claude" / "projects" / "-p" / f"{SESSION}.jsonl", talk(1, 4, SESSION))
    backlog, done = Backlog(), list[tuple[Work, Result]]()
    backlog.add(Work(task=Task.TAKE, path=os.fsdecode(b"/caf\xe9.jsonl")))
    backlog.add(Work(task=Task.TAKE, path=str(file)))
    lane = Lane("live", backlog, load(), lambda work, result: done.append((work, result)))
    lane.start()
    wait(lambda: done)
    backlog.close()
    lane.join(20)
    ((work, result),) = done
    assert (work.path, result.entries) == (str(file), 4)


def test_the_service_unit_is_written_shown_and_removed(there: Home) -> None:
    shown = there.run("service", "install", "--print", XDG_RUNTIME_DIR="").stdout
    unit = there.user / ".config" / "systemd" / "user" / "recollect.service"
    assert sys.executable in shown and "serve --foreground" in shown and not unit.exists()
    done = there.json("service", "install")
    assert unit.read_text() == shown and done["installed"]
    assert done["to_run"] == [] or done["to_run"][0].startswith("systemctl --user")
    assert there.json("service", "status")["installed"]
    assert not there.json("service", "remove")["installed"] and not unit.exists()
