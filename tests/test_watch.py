"""`recollect watch` as a process: what is written is in the store shortly after, and it stops when told."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from watchfiles import Change

from recollect.app import Memory, open_memory
from recollect.ingest import watch
from tests.conftest import comes_and_goes, meanwhile
from tests.transcripts import SESSION, append, conversations, talk, texts, write


@contextmanager
def watching(database_url: tuple[str, str, Path], tmp_path: Path, **more: str) -> Iterator[subprocess.Popen[bytes]]:
    _, url, home = database_url
    environ = {**os.environ, "HOME": str(tmp_path), "RECOLLECT_HOME": str(home), **more}
    if url:
        environ["RECOLLECT_DATABASE"] = url
    child = subprocess.Popen([sys.executable, "-m", "recollect", "watch"], env=environ, stderr=subprocess.PIPE)
    try:
        yield child
    finally:
        if child.poll() is None:
            child.terminate()
        assert child.stderr is not None
        errors = child.stderr.read()
        child.stderr.close()
        assert child.wait(10) == 0
        assert b"Traceback" not in errors


def wait_for(memory: Memory, number: int) -> None:
    deadline = time.monotonic() + 15
    while len(texts(memory)) != number and time.monotonic() < deadline:
        time.sleep(0.02)
    assert len(texts(memory)) == number


def test_watch_scans_first_then_follows_appends_new_files_and_new_folders(
    database_url: tuple[str, str, Path], tmp_path: Path
) -> None:
    _, url, home = database_url
    projects = tmp_path / ".claude" / "projects"
    path = write(projects / "-work-tides" / f"{SESSION}.jsonl", talk(1, 3))
    with open_memory(home, database=url) as memory, watching(database_url, tmp_path):
        wait_for(memory, 3)
        half = talk(4, 4)
        append(path, half[:30])
        append(path, half[30:] + talk(5, 5))
        wait_for(memory, 5)
        other = "22222222-2222-4333-8444-555555555555"
        write(projects / "-new-folder" / f"{other}.jsonl", talk(1, 4, other))
        wait_for(memory, 9)


def test_watch_goes_on_where_vectors_cannot_be_made(database_url: tuple[str, str, Path], tmp_path: Path) -> None:
    _, url, home = database_url
    path = write(tmp_path / ".claude" / "projects" / "-p" / f"{SESSION}.jsonl", talk(1, 3))
    nobody = {"RECOLLECT_EMBEDDER": "openai:any", "RECOLLECT_EMBEDDER_URL": "http://127.0.0.1:9/v1"}
    with open_memory(home, database=url) as memory, watching(database_url, tmp_path, OPENAI_API_KEY="x", **nobody):
        wait_for(memory, 3)
        append(path, talk(4, 5))
        wait_for(memory, 5)


def test_watch_marks_silent_conversations_ready(database_url: tuple[str, str, Path], tmp_path: Path) -> None:
    _, url, home = database_url
    write(tmp_path / ".claude" / "projects" / "-p" / f"{SESSION}.jsonl", talk(1, 6))
    with open_memory(home, database=url) as memory:
        with watching(database_url, tmp_path, RECOLLECT_POLL_INTERVAL_SECONDS="0.2"):
            wait_for(memory, 6)
            with memory.database.write() as tx:
                tx.run("UPDATE memory_conversations SET status = 'active'")
            deadline = time.monotonic() + 10
            while conversations(memory)[0][4] != "ready" and time.monotonic() < deadline:
                time.sleep(0.05)
        assert conversations(memory)[0][4] == "ready"


def test_watch_waits_for_a_folder_that_is_not_there_yet(database_url: tuple[str, str, Path], tmp_path: Path) -> None:
    _, url, home = database_url
    poll = {"RECOLLECT_POLL_INTERVAL_SECONDS": "0.2"}
    with open_memory(home, database=url) as memory, watching(database_url, tmp_path, **poll):
        time.sleep(0.5)
        write(tmp_path / ".codex" / "sessions" / "x", b"")
        write(tmp_path / ".claude" / "projects" / "-p" / f"{SESSION}.jsonl", talk(1, 6))
        wait_for(memory, 6)


def test_watch_follows_what_comes_in_the_place_of_a_folder(database_url: tuple[str, str, Path], tmp_path: Path) -> None:
    _, url, home = database_url
    agent, projects = tmp_path / ".claude", tmp_path / ".claude" / "projects"
    write(projects / "-p" / "1.jsonl", talk(1, 1, "1"))
    poll = {"RECOLLECT_POLL_INTERVAL_SECONDS": "0.2"}
    away = (
        lambda: projects.rename(agent / "projects-backup"),
        lambda: shutil.rmtree(projects),
        lambda: agent.rename(tmp_path / "agent-backup"),
    )
    with open_memory(home, database=url) as memory, watching(database_url, tmp_path, **poll):
        wait_for(memory, 1)
        for number, go in enumerate(away, 2):
            go()
            projects.mkdir(parents=True)
            time.sleep(1)  # until nothing of it is new
            write(projects / "-p" / f"{number}.jsonl", talk(1, 1, str(number)))
            wait_for(memory, number)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_watch_stops_cleanly_when_told(database_url: tuple[str, str, Path], tmp_path: Path, number: int) -> None:
    (tmp_path / ".claude" / "projects").mkdir(parents=True)
    with watching(database_url, tmp_path) as child:
        assert child.stderr is not None
        child.stderr.readline()
        time.sleep(0.5)
        child.send_signal(number)
        assert child.wait(10) == 0


def test_watch_goes_on_where_a_name_is_not_utf8(database_url: tuple[str, str, Path], tmp_path: Path) -> None:
    _, url, home = database_url
    projects = tmp_path / ".claude" / "projects"
    file = write(projects / "-p" / f"{SESSION}.jsonl", talk(1, 3))
    poll = {"RECOLLECT_POLL_INTERVAL_SECONDS": "0.2"}
    with open_memory(home, database=url) as memory, watching(database_url, tmp_path, **poll):
        wait_for(memory, 3)
        write(projects / "-p" / os.fsdecode(b"caf\xe9.jsonl"), talk(1, 3))  # with this the system's reports end
        append(file, talk(4, 4))
        wait_for(memory, 4)
        append(file, talk(5, 5))
        wait_for(memory, 5)


def test_a_file_of_a_new_folder_whose_name_is_not_utf8_is_left_out(tmp_path: Path) -> None:
    for name in (b"caf\xe9.jsonl", b"talk.jsonl"):
        (tmp_path / os.fsdecode(name)).touch()
    assert watch._files(Change.added, str(tmp_path)) == [tmp_path / "talk.jsonl"]


def test_a_new_folder_that_is_gone_again_is_no_reason_to_stop(tmp_path: Path) -> None:
    (tmp_path / "talk.jsonl").touch()
    with meanwhile(comes_and_goes(tmp_path)):
        for _ in range(3000):
            assert watch._files(Change.added, str(tmp_path)) == [tmp_path / "talk.jsonl"]
