"""Extraction, consolidation and compaction are stopped at random moments while a slow model answers: what was answered
is not asked for again, nothing is dead that was not asked for, and in the end all is as if nothing had happened.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from recollect.app import Memory, open_memory
from recollect.store import memories
from tests.conftest import Place, Server
from tests.model_server import Answer, ModelServer, Reply, Request, ToolCall
from tests.test_extract import session
from tests.transcripts import write

MODEL = "openai:slow"
LEASE = 2.0
TALKS = 8
PARTS = ("hull", "mast", "keel", "rudder", "anchor", "tiller", "galley", "cabin")
SAID = "The crew agreed on how the {} is painted, and wrote it down for the next shift."
COMPACT = (
    "import sys; from recollect import open_memory\n"
    "with open_memory() as memory:\n"
    "    memory.record_compaction(sys.argv[1], 'So far the crew agreed on colours.', uuid='c-1')"
)
VERBS = {
    "process": ["-m", "recollect", "process", "--now", "--yes"],
    "consolidate": ["-m", "recollect", "consolidate", "--now"],
    "compact": ["-c", COMPACT],
}


class Slow:
    """A model that takes its time, and answers the same whenever it is asked the same."""

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()
        self.wait: Callable[[float], bool] = lambda seconds: False
        self._chance = random.Random(5)

    def __call__(self, request: Request) -> Reply:
        turn = len(request.tool_results)
        if not turn:
            self.asked[request.user] += 1
        self.wait(self._chance.uniform(0.02, 0.5))
        return self._keep(request, turn) if "list_files" in request.tools else self._extract(request)

    def _extract(self, request: Request) -> Answer:
        said = request.user.rpartition("<transcript>")[2]
        found = re.search(r"please always paint the (\w+) (\w+)", said)
        if found is None:
            return Answer({"memory_sentence": "The crew agreed on how the ship is painted."})
        rule = {"kind": "constraint", "text": f"{found[0]}.", "severity": "must", "scope": "project"}
        rule["evidence"] = [{"message": 1, "quote": found[0]}]
        return Answer(
            {
                "raw_memory": f"They want the {found[1]} {found[2]}.",
                "done": f"About the {found[1]}.",
                "left": "",
                "rollout_slug": f"paint-the-{found[1]}",
                "memory_sentence": f"The crew wants the {found[1]} painted {found[2]}.",
                "memories": [rule],
            }
        )

    def _keep(self, request: Request, turn: int) -> Reply:
        present = request.user.partition("removed:")[0]
        keys = re.findall(r"^- \[(\S+)\] \S+, \S+, ", present, re.M)
        projects = re.findall(r"^- (\S+) → (\S+)$", request.user, re.M)
        lines = "".join(f"- Known. [{key}]\n" for key in sorted(keys))
        texts = [("handbook.md", f"# Handbook\n\n{lines}"), ("summary.md", "# Everywhere\n\nNothing yet.\n")]
        texts += [(path, f"# Ship\n\n{lines}") for _, path in projects]
        if turn < len(texts):
            path, text = texts[turn]
            return ToolCall("write_file", {"path": path, "text": text})
        return Answer("done")


class Yard:
    """A home that is copied for every round, and the processes that work in the copy."""

    def __init__(self, request: pytest.FixtureRequest, place: Place, url: str) -> None:
        self._request, self._place, self._url = request, place, url
        place.home.mkdir(mode=0o700, exist_ok=True)
        with self.opened(place) as memory:
            for number, part in enumerate(PARTS[:TALKS]):
                name = f"{number:08d}-2222-4333-8444-555555555555"
                said = [f"please always paint the {part} blue", "Ok.", SAID.format(part), "Good.", "thanks", "Sure."]
                write(
                    place.home.parent / "talks" / "-code-ship" / f"{name}.jsonl",
                    session(*said, name=name, first=number),
                )
            memory.ingest(folder=place.home.parent / "talks")
            self.compacted = memory.conversations()[0].session_id

    @contextmanager
    def opened(self, place: Place) -> Iterator[Memory]:
        with open_memory(place.home, database=place.url, environ={"HOME": str(place.home.parent)}) as memory:
            yield memory

    @contextmanager
    def copy(self, home: Path) -> Iterator[Place]:
        shutil.copytree(self._place.home, home, ignore=shutil.ignore_patterns("*.sock", ".lock"))
        if not self._place.url:
            yield Place("sqlite", "", home)
        else:
            server: Server = self._request.getfixturevalue("postgres")
            with server.database(self._place.url.partition("@/")[2].partition("?")[0]) as url:
                yield Place("postgres", url, home)
        shutil.rmtree(home)

    def start(self, place: Place, verb: str) -> subprocess.Popen[bytes]:
        env = {**os.environ, "HOME": str(place.home.parent), "RECOLLECT_HOME": str(place.home)}
        env |= {"RECOLLECT_MODEL": MODEL, "RECOLLECT_MODEL_URL": self._url, "RECOLLECT_EXTRACTION_CONCURRENCY": "1"}
        env |= {"RECOLLECT_LEASE_SECONDS": str(LEASE)} | ({"RECOLLECT_DATABASE": place.url} if place.url else {})
        arguments = [*VERBS[verb], *([self.compacted] if verb == "compact" else [])]
        quiet = subprocess.DEVNULL
        return subprocess.Popen([sys.executable, "-P", *arguments], env=env, stdin=quiet, stdout=quiet, stderr=quiet)

    def finish(self, place: Place) -> dict[str, Any]:
        """Everything that is left once all is done. What is dead was asked for five times."""
        with self.opened(place) as memory:
            with memory.database.read() as tx:
                dead = tx.rows("SELECT job_key, attempts FROM memory_jobs WHERE status = 'dead'", {})
            assert all(attempts >= 5 for _, attempts in dead), dead
            memory.retry()
        for verb in ("compact", "process", "consolidate", "process"):
            assert self.start(place, verb).wait(120) in (0, 1), verb
        with self.opened(place) as memory:
            assert memory.doctor().problems == []
            return _state(memory)


def _state(memory: Memory) -> dict[str, Any]:
    root = memory.settings.root
    with memory.database.read() as tx:
        held = memories.current(memories.all_of(tx, memory.owner))
        files = tx.rows("SELECT source_kind, session_id FROM memory_artifacts WHERE is_current = 1", {})
        compacted = tx.rows("SELECT compaction_uuid, summary FROM memory_compactions", {})
        running = tx.rows("SELECT kind FROM memory_jobs WHERE status IN ('running', 'pending', 'backing_off')", {})
    return {
        "memories": sorted((each.text, each.severity, each.revision, len(each.sources)) for each in held),
        "conversations": sorted((each.session_key, each.status) for each in memory.conversations()),
        "files": sorted(files),
        "on disk": Counter(each.name.rpartition("--")[2] for each in (root / "memory").glob("*.md")),
        "compacted": compacted,
        "ledger": sorted(re.findall(r"session=(\S+)", (root / "MEMORY.md").read_text())),
        "workspace": {
            each.relative_to(root).as_posix(): sorted(re.findall(r"\[(\S+@\S+)\]", each.read_text()))
            for each in (root / "workspace").rglob("*.md")
            if "rollout_summaries" not in each.parts
        },
        "context": sorted(each.name for each in (root / "context").glob("*.md")),
        "waiting": running,
    }


def _stop(yard: Yard, place: Place, chance: random.Random) -> tuple[bool, int]:
    """One process is stopped. Did it still run, and how many questions may have to be asked again for that?"""
    verb = chance.choices(list(VERBS), (8, 3, 2))[0]
    child = yard.start(place, verb)
    time.sleep(chance.uniform(0.2, 2.2))
    how, hit = chance.choice((signal.SIGTERM, signal.SIGKILL, signal.SIGSTOP)), child.poll() is None
    child.send_signal(how)
    if how is signal.SIGSTOP:
        taken = chance.random() < 0.3
        time.sleep(LEASE + 0.2)
        if taken:
            yard.start(place, verb).wait(120)
        child.send_signal(signal.SIGCONT)
        child.wait(120)
        return hit, int(taken)
    child.wait(120)
    return hit, 1


def stops(request: pytest.FixtureRequest, place: Place, tmp_path: Path, number: int, seed: int, each: int) -> int:
    """How many there were, until so many hit a process at work. Rounds of some stops, each in a home of its own."""
    chance, hits, done, slow = random.Random(seed), 0, 0, Slow()
    with ModelServer(slow) as server:
        slow.wait = server.wait
        yard = Yard(request, place, server.url_for(MODEL))
        with yard.copy(tmp_path / "straight") as straight:
            wanted = yard.finish(straight)
        assert len(wanted["memories"]) == TALKS and wanted["waiting"] == []
        while hits < number:
            slow.asked.clear()
            again = 0
            with yard.copy(tmp_path / f"round-{done}") as copied:
                for _ in range(each):
                    hit, more = _stop(yard, copied, chance)
                    hits, again, done = hits + hit, again + more, done + 1
                assert yard.finish(copied) == wanted, (seed, done)
            assert sum(slow.asked.values()) - len(slow.asked) <= again, (seed, done, slow.asked)
    return done


def test_a_few_stops_of_the_pipeline_change_nothing_in_the_end(
    request: pytest.FixtureRequest, database_url: Place, tmp_path: Path
) -> None:
    assert stops(request, database_url, tmp_path, 1, seed=3, each=2) >= 1


@pytest.mark.soak
def test_two_hundred_stops_of_the_pipeline_change_nothing_in_the_end(
    request: pytest.FixtureRequest, database_url: Place, tmp_path: Path
) -> None:
    done = stops(request, database_url, tmp_path, 200, seed=29, each=8)
    print(f"\n{database_url.kind}: {done} stops of process, consolidate and compaction, 200 of them under way")
