"""`recollect forget` is stopped at random moments: whoever runs next finishes it, and nothing else is lost."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from recollect.app import Memory, open_memory
from tests.command import run
from tests.conftest import Clock, Place, Server
from tests.test_extract import ingest
from tests.test_forget import PROJECT, SECRET, chatted, filled, memory_with, traces
from tests.transcripts import SESSION

NEXT: tuple[tuple[str, ...], ...] = (
    ("process",),
    ("ingest", "--dir", "{root}"),
    ("search", SECRET, "--all-projects"),
    ("context", "--project", PROJECT, "--prompt", f"Where is {SECRET}?"),
    ("context", "--project", PROJECT),
    ("status",),
    ("conversations",),
    ("timeline", "--all-projects"),
    ("consolidate",),
    ("reindex",),
    ("doctor", "--fix"),
)
DAEMON = ("serve",)
CHAT = "I always sit at the window."


class Prepared(NamedTuple):
    """A home that is copied for every stop."""

    place: Place
    root: Path
    targets: dict[str, list[str]]  # name → arguments of `forget`


def prepare(place: Place, root: Path) -> Prepared:
    clock = Clock()
    with open_memory(place.home, database=place.url, clock=clock) as memory:
        filled(memory, root, clock)
        ingest(memory, root, CHAT, "Noted.", "Yes.", "Good.", name="33333333-2222-4333-8444-555555555555")
        memory.process(now=True)
        chat = chatted(memory, clock)
        name = memory_with(memory, SECRET)
        memory.correct(name, f"She moved away from {SECRET}.")
        memory.feedback(name, "ok", f"yes, from {SECRET}")
        talks = [each.session_key for each in memory.conversations() if each.session_id in (SESSION, chat)]
    both = {"session": ["--session", SESSION], "memory": ["--memory", name], "text": ["--text", SECRET.upper()]}
    both |= {f"conversation {n}": ["--conversation", key] for n, key in enumerate(sorted(talks))}
    return Prepared(place, root, {**both, "project": ["--project", PROJECT], "chat": ["--session", chat]})


@contextmanager
def copied(prepared: Prepared, request: pytest.FixtureRequest, home: Path) -> Iterator[Place]:
    shutil.copytree(prepared.place.home, home, ignore=shutil.ignore_patterns("*.sock", ".lock"))
    if not prepared.place.url:
        yield Place("sqlite", "", home)
    else:
        server: Server = request.getfixturevalue("postgres")
        with server.database(prepared.place.url.partition("@/")[2].partition("?")[0]) as url:
            yield Place("postgres", url, home)
    shutil.rmtree(home)


def environ(place: Place) -> dict[str, str]:
    return (
        {"RECOLLECT_HOME": str(place.home), "RECOLLECT_DATABASE": place.url}
        if place.url
        else {"RECOLLECT_HOME": str(place.home)}
    )


def start(place: Place, *arguments: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-P", "-m", "recollect", *arguments]
    quiet = subprocess.DEVNULL
    return subprocess.Popen(command, env={**os.environ, **environ(place)}, stdin=quiet, stdout=quiet, stderr=quiet)


def stop_at_random(place: Place, arguments: list[str], chance: random.Random, window: float) -> bool:
    """Was it stopped after its tombstone was written, and before its end?"""
    child = start(place, "forget", *arguments, "--yes")
    stones = place.home / "memory" / "tombstones"
    before = chance.random() < 0.1
    while child.poll() is None and not before and not (stones.is_dir() and any(stones.glob("*.md"))):
        time.sleep(0.001)
    time.sleep(chance.uniform(0, window))
    how = chance.choice((signal.SIGTERM, signal.SIGKILL, signal.SIGSTOP))
    is_running = child.poll() is None
    child.send_signal(how)
    if how == signal.SIGSTOP:
        child.kill()
    child.wait()
    return is_running and stones.is_dir() and any(stones.glob("*.md"))


def kept(memory: Memory) -> Any:
    """Everything that is told of what stays."""
    with memory.database.read() as tx:
        said = tx.rows("SELECT entry_uuid, content FROM memory_transcript_entries ORDER BY entry_uuid")
        held = tx.rows("SELECT memory_id, revision, text FROM memory_memories ORDER BY memory_id, revision")
        talks = tx.rows("SELECT session_key, entry_count, status FROM memory_conversations ORDER BY session_key, id")
    return said, held, talks


def go_on(place: Place, memory: Memory, root: Path, command: tuple[str, ...]) -> None:
    if command == DAEMON:
        child = start(place, *DAEMON)
        deadline = time.monotonic() + 60
        while memory.is_erasing() and time.monotonic() < deadline:
            time.sleep(0.05)
        child.terminate()
        child.wait(30)
    else:
        done = run(place.home, *(each.format(root=root) for each in command), RECOLLECT_DATABASE=place.url)
        assert done.status in (0, 1) or "no project" in done.stderr, done.stderr


def stops(request: pytest.FixtureRequest, tmp_path: Path, number: int, seed: int) -> int:
    """How many hit a removal under way."""
    chance, hits, window = random.Random(seed), 0, 0.3
    prepared = prepare(request.getfixturevalue("database_url"), tmp_path / "projects")
    undisturbed: dict[str, Any] = {}
    for done in range(number):
        name = chance.choice(sorted(prepared.targets))
        command = DAEMON if chance.random() < 0.05 else chance.choice(NEXT)
        home = tmp_path / f"home-{done}"
        with copied(prepared, request, home) as place:
            if name not in undisturbed:
                assert start(place, "forget", *prepared.targets[name], "--yes").wait() == 0
                with open_memory(home, database=place.url) as memory:
                    undisturbed[name] = kept(memory), traces(memory)
        with copied(prepared, request, home) as place:
            hit = stop_at_random(place, prepared.targets[name], chance, window)
            hits += hit
            window = min(window * 1.05, 0.6) if hit else max(window * 0.8, 0.02)
            if not any((home / "memory" / "tombstones").glob("*.md")):
                continue
            with closing(open_memory(home, database=place.url)) as memory:
                go_on(place, memory, prepared.root, command)
                where = (seed, done, name, command)
                assert not memory.is_erasing(), where
                assert undisturbed[name][1] or traces(memory) == [], where  # else others say it, and keep it
                assert kept(memory) == undisturbed[name][0], where
    return hits


def test_a_few_stops_of_forget_leave_no_word(
    request: pytest.FixtureRequest, database_url: Place, tmp_path: Path
) -> None:
    assert stops(request, tmp_path, 5, seed=7) >= 1


@pytest.mark.soak
def test_two_hundred_stops_of_forget_leave_no_word(
    request: pytest.FixtureRequest, database_url: Place, tmp_path: Path
) -> None:
    hits = stops(request, tmp_path, 200, seed=23)
    print(f"\n{database_url.kind}: 200 stops of `forget`, {hits} of them under way")
    assert hits >= 100
