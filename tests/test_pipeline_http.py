"""The whole pipeline against real HTTP servers: what a model says, and everything that a model may do instead."""

from __future__ import annotations

import importlib
import json
import os
import re
import signal
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

from recollect.app import Memory, open_memory
from recollect.store import memories
from recollect.types import ConversationStatus
from tests import command
from tests.command import run
from tests.conftest import Clock
from tests.model_server import (
    Answer,
    Drop,
    HalfJson,
    ModelServer,
    Nonsense,
    RateLimit,
    Refusal,
    Reply,
    Request,
    Script,
    Stall,
    Status,
    ToolCall,
    Truncated,
)
from tests.test_extract import RULE, TALK, session
from tests.transcripts import SESSION, START, write

pytestmark = pytest.mark.usefixtures("plain_http")
DIALECTS = ("openai:tiny", "openai-responses:tiny", "anthropic:tiny")
EXTRACTED = {
    "raw_memory": "The user wants make lint before every commit.",
    "done": "About make lint.",
    "left": "",
    "rollout_slug": "make-lint",
    "memory_sentence": "The user wants make lint before commits in tides.",
    "memories": [
        {
            "kind": "constraint",
            "text": "Always run make lint before a commit.",
            "severity": "must",
            "scope": "project",
            "evidence": [{"message": 1, "quote": "always run make lint"}],
        }
    ],
}


@pytest.fixture(scope="module", autouse=True)
def _imported() -> None:
    """Before a deadline begins: on a busy machine the dialects' libraries take longer than that."""
    for name in ("recollect.models.providers", "pydantic_ai.models.openai", "pydantic_ai.models.anthropic"):
        importlib.import_module(name)


@pytest.fixture
def clock() -> Clock:
    return Clock(START + timedelta(days=1))


@contextmanager
def opened(home: Path, server: ModelServer, model: str, clock: Clock, **more: Any) -> Iterator[Memory]:
    settings = {"model": model, "model_url": server.url_for(model), "model_timeout_seconds": 5.0} | more
    with open_memory(home, clock=clock, environ={"HOME": str(home.parent)}, **settings) as memory:
        yield memory


def take_in(memory: Memory, root: Path) -> None:
    write(root / "-code-tides" / f"{SESSION}.jsonl", session(*TALK))
    memory.ingest(folder=root)


def kept(memory: Memory) -> list[str]:
    with memory.database.read() as tx:
        return [each.text for each in memories.current(memories.all_of(tx, memory.owner))]


def state(memory: Memory) -> str:
    (job,) = [job for kind, states in memory.status().kinds.items() if kind == "extract" for job in states]
    return job


class Keeper:
    """A model that extracts, and then consolidates with its tools as a good one would."""

    def __init__(self) -> None:
        self.turn = 0

    def __call__(self, request: Request) -> Reply:
        if "list_files" not in request.tools:
            return Answer(EXTRACTED)
        self.turn += 1
        source = re.search(r"\[?([0-9a-f-]{36}@[0-9TZ:.-]+)", json.dumps(request.body))
        project = re.search(r"projects/[\w.-]+/summary\.md", json.dumps(request.body))
        assert source and project
        line = f"- Always run make lint before a commit. [{source[1]}]\n"
        written = {
            1: ("list_files", {}),
            2: ("read_file", {"path": "raw_memories.md"}),
            3: ("write_file", {"path": "../outside.md", "text": "x"}),
            4: ("write_file", {"path": "handbook.md", "text": f"# Handbook\n\n## tides\n\n### Rules\n\n{line}"}),
            5: ("write_file", {"path": "summary.md", "text": "# Everywhere\n\nNothing yet.\n"}),
            6: ("write_file", {"path": project[0], "text": f"# tides\n\n{line}"}),
        }
        return ToolCall(*written[self.turn]) if self.turn in written else Answer("done")


@pytest.mark.parametrize("off", [{"disabled_projects": ["/code/tides"]}, {"ignore": ["**/tides"]}])
def test_what_is_switched_off_before_it_was_sent_is_not_sent(
    tmp_path: Path, clock: Clock, off: dict[str, list[str]]
) -> None:
    with ModelServer(Keeper()) as server:
        with opened(tmp_path / "home", server, DIALECTS[0], clock) as memory:
            take_in(memory, tmp_path / "projects")
        with opened(tmp_path / "home", server, DIALECTS[0], clock, **off) as memory:
            assert memory.process(now=True).claimed == 0 and not server.requests
        with opened(tmp_path / "home", server, DIALECTS[0], clock) as memory:
            assert memory.process(now=True).succeeded == 1, "it was only put off"


@pytest.mark.parametrize("model", DIALECTS)
def test_both_phases_with_a_model_that_behaves(tmp_path: Path, clock: Clock, model: str) -> None:
    keeper = Keeper()
    with ModelServer(keeper) as server, opened(tmp_path / "home", server, model, clock) as memory:
        take_in(memory, tmp_path / "projects")
        report = memory.process(now=True)
        assert (report.succeeded, report.failed) == (1, 0) and report.tokens == 120
        assert kept(memory) == ["Always run make lint before a commit."]
        consolidated = memory.consolidate(now=True)
        assert consolidated.outcome == "succeeded", consolidated.reason
        folder = memory.settings.workspace
        assert "make lint" in (folder / "handbook.md").read_text()
        assert not (folder.parent / "outside.md").exists(), "the tools cannot leave the folder"
        assert "make lint" in next(folder.glob("projects/*/summary.md")).read_text()
        calls = len(server.requests)
        assert (memory.process(now=True).claimed, memory.consolidate(now=True).outcome) == (0, "unchanged")
        assert len(server.requests) == calls, "nothing new, no call"
        (spent,) = memory.status().tokens
        assert spent.requests == calls and spent.input_tokens == 100 * calls
        assert RULE in server.requests[0].user and "<transcript>" in server.requests[0].user


BAD: dict[str, tuple[Script, str]] = {
    "error": (Status(500, body="boom"), "unavailable"),
    "overloaded": (Status(529, body="busy"), "unavailable"),
    "rate limit": (RateLimit(90), "rate_limited"),
    "nonsense": (Nonsense(), "invalid"),
    "half a JSON": (HalfJson(), "invalid"),
    "refusal": (Refusal(), "invalid"),
    "wrong shape": (Answer({"raw_memory": 5, "memories": "none"}), "invalid"),
    "nothing at all": (Answer({}), "invalid"),
    "an error": (Answer({"error": {"message": "overloaded"}}), "invalid"),
    "one level too deep": (Answer({"result": EXTRACTED}), "invalid"),
    "wait for ages": (Status(429, {"Retry-After": "99999999999999"}, "slow down"), "rate_limited"),
    "stall": (Stall(30), "timeout"),
    "stall in the body": (Stall(30, "body"), "timeout"),
    "dropped": (Drop(), "unavailable"),
}


@pytest.mark.parametrize("model", DIALECTS)
@pytest.mark.parametrize("case", BAD)
def test_a_model_that_misbehaves_costs_one_try_and_loses_nothing(
    tmp_path: Path, clock: Clock, model: str, case: str
) -> None:
    script, expected = BAD[case]
    replies: list[Script] = [script]
    more = {"model_timeout_seconds": 1.5}
    with (
        ModelServer(lambda request: next_reply(replies, request)) as server,
        opened(tmp_path / "home", server, model, clock, **more) as memory,
    ):
        take_in(memory, tmp_path / "projects")
        started = time.monotonic()
        report = memory.process(now=True)
        assert time.monotonic() - started < 8, "one deadline around everything"
        assert report.failed == 1 and report.problems[0][1].startswith(expected), report.problems
        assert memory.conversations()[0].status is ConversationStatus.READY and kept(memory) == []
        assert state(memory) == "backing_off"
        assert memory.process().claimed == 0, "it waits before it tries again"
        replies[0] = Answer(EXTRACTED)
        clock.advance(86400)
        assert memory.process().succeeded == 1 and len(kept(memory)) == 1


def next_reply(replies: list[Script], request: Request) -> Reply:
    reply = replies[0]
    assert not isinstance(reply, list | tuple) and not callable(reply)
    return reply


@pytest.mark.parametrize(
    "reply, why",
    [
        (Status(401, body="bad key"), "rejected"),
        (Status(404, body="no such model"), "rejected"),
        (Truncated(), "(model_output_tokens)"),
    ],
)
def test_what_configuration_must_mend_fails_for_good_and_says_so(
    tmp_path: Path, clock: Clock, reply: Reply, why: str
) -> None:
    with ModelServer(reply) as server, opened(tmp_path / "home", server, DIALECTS[0], clock) as memory:
        take_in(memory, tmp_path / "projects")
        assert memory.process(now=True).failed == 1 and state(memory) == "failed"
        (trouble,) = [each for each in memory.status().problems if "extract" in each.problem]
        assert why in trouble.problem and "retry" in trouble.hint


@pytest.mark.parametrize("code, hint", [(401, "`recollect retry`"), (500, "by themselves")])
def test_the_command_says_whether_it_is_tried_again(tmp_path: Path, code: int, hint: str) -> None:
    write(tmp_path / "projects" / "-code-tides" / f"{SESSION}.jsonl", session(*TALK))
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    with ModelServer(Status(code, body="no")) as server:
        url = server.url_for(DIALECTS[0])
        (home / "config.toml").write_text(f'model = "{DIALECTS[0]}"\nmodel_url = "{url}"\n')
        command.run(home, "ingest", "--dir", str(tmp_path / "projects"))
        done = command.run(home, "process", "--now")
    assert done.status == 1 and [each for each in ("`recollect retry`", "by themselves") if each in done.stderr] == [
        hint
    ]


@pytest.mark.parametrize("reply", [Status(500, body="boom"), Nonsense(), Stall(30)])
def test_a_failed_consolidation_leaves_the_files_in_place(tmp_path: Path, clock: Clock, reply: Reply) -> None:
    keeper = Keeper()
    script: list[Script] = [keeper]
    more = {"consolidation_timeout_seconds": 3.0}

    def play(request: Request) -> Reply:
        now = script[0]
        assert not isinstance(now, list | tuple)
        return now(request) if callable(now) else now  # type: ignore[return-value]

    with ModelServer(play) as server, opened(tmp_path / "home", server, DIALECTS[0], clock, **more) as memory:
        take_in(memory, tmp_path / "projects")
        memory.process(now=True)
        assert memory.consolidate(now=True).outcome == "succeeded"
        folder = memory.settings.workspace
        before = {path: path.read_bytes() for path in folder.rglob("*summary.md")} | {
            folder / "handbook.md": (folder / "handbook.md").read_bytes()
        }
        text = session("The deploy window is Tuesday from 9 to 11.", "Ok.", *TALK[:4], name="7" * 8, first=300)
        write(tmp_path / "projects" / "-code-tides" / "77777777.jsonl", text)
        memory.ingest(folder=tmp_path / "projects")
        memory.process(now=True)
        script[0] = reply
        assert memory.consolidate(now=True).outcome == "failed"
        assert {path: path.read_bytes() for path in before} == before


def test_a_large_backlog_is_not_sent_by_surprise(tmp_path: Path) -> None:
    """A paid model, more tokens than the limit, and nobody to ask."""
    root = tmp_path / "projects"
    write(root / "-code-tides" / f"{SESSION}.jsonl", session(*TALK, "words " * 4000, "Ok."))
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    (home / "config.toml").write_text(
        'model = "openai:any"\nmodel_url = "http://192.0.2.1:9/v1"\nconfirm_above_tokens = 1000\n'
        "model_input_price = 100\n"
    )
    assert run(home, "ingest", "--dir", str(root)).status == 0
    done = run(home, "process", "--now")
    assert done.status == 2 and "tokens" in done.stderr and "--yes" in done.stderr
    said = run(home, "process", "--now", "--json").json
    assert "US dollars, to openai:any" in said["error"]["message"] and "--limit" in said["error"]["hint"]
    assert run(home, "status", "--json").json["tokens"] == []


@pytest.mark.parametrize("twice", [False, True], ids=["once", "twice"])
def test_ctrl_c_waits_for_an_answer_that_is_paid_for_and_the_second_does_not(tmp_path: Path, twice: bool) -> None:
    """A real process in the middle of a call."""
    root, home = tmp_path / "projects", tmp_path / "home"
    write(root / "-code-tides" / f"{SESSION}.jsonl", session(*TALK))
    waited_for = threading.Event()

    def slow(request: Request) -> Reply:
        waited_for.wait(60)
        return Answer(EXTRACTED)

    with ModelServer(Stall(120) if twice else slow) as server:
        env = {**os.environ, "HOME": str(tmp_path), "RECOLLECT_HOME": str(home)}
        env |= {"RECOLLECT_MODEL": DIALECTS[0], "RECOLLECT_MODEL_URL": server.url_for(DIALECTS[0])}
        run(home, "ingest", "--dir", str(root))
        program = [sys.executable, "-m", "recollect", "process", "--now"]
        child = subprocess.Popen(program, env=env, stderr=subprocess.PIPE, text=True)
        while not server.requests and child.poll() is None:
            time.sleep(0.02)
        child.send_signal(signal.SIGINT)
        assert child.stderr is not None
        assert any("waiting for 1 answer" in line for line in child.stderr)
        waited_for.set()
        if twice:
            child.send_signal(signal.SIGINT)
        assert child.wait(60) == 130  # which is not long enough for the answer that stalls
        assert "Traceback" not in child.stderr.read()
        child.stderr.close()
    with open_memory(home, environ={"HOME": str(tmp_path)}) as memory:
        assert kept(memory) == ([] if twice else ["Always run make lint before a commit."])
        assert memory.status().jobs.get("running", 0) == 0
        expected = ConversationStatus.READY if twice else ConversationStatus.ARCHIVED
        assert memory.conversations()[0].status is expected


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL], ids=lambda how: how.name)
def test_a_run_that_is_stopped_is_charged_for_what_it_asked_alone(tmp_path: Path, how: signal.Signals) -> None:
    """A time limit costs no attempt; a kill costs one of the conversation that the model was asked about."""
    root, home = tmp_path / "projects", tmp_path / "home"
    for number in range(3):
        name = f"{number:08d}{SESSION[8:]}"
        write(root / "-code-tides" / f"{name}.jsonl", session(*TALK, name=name, first=100 * number))
    with ModelServer([Answer(EXTRACTED), Stall(120)]) as server:
        env = {
            **os.environ,
            "HOME": str(tmp_path),
            "RECOLLECT_HOME": str(home),
            "RECOLLECT_EXTRACTION_CONCURRENCY": "1",
        }
        env |= {"RECOLLECT_MODEL": DIALECTS[0], "RECOLLECT_MODEL_URL": server.url_for(DIALECTS[0])}
        run(home, "ingest", "--dir", str(root))
        program = [sys.executable, "-m", "recollect", "process", "--now"]
        child = subprocess.Popen(program, env=env, stderr=subprocess.PIPE, text=True)
        with open_memory(
            home, environ={"HOME": str(tmp_path)}
        ) as memory:  # the first one's files and rows take a moment
            while (len(server.requests) < 2 or not kept(memory)) and child.poll() is None:
                time.sleep(0.05)
        child.send_signal(how)
        said = child.communicate(timeout=60)[1]
        assert child.returncode == (143 if how == signal.SIGTERM else -how) and "Traceback" not in said
    with open_memory(home, environ={"HOME": str(tmp_path)}) as memory:
        assert kept(memory) == ["Always run make lint before a commit."], "the first one was committed by itself"
        with memory.database.read() as tx:
            jobs = tx.rows("SELECT attempts, COUNT(*) FROM memory_jobs WHERE kind = 'extract' GROUP BY attempts", {})
        assert dict(jobs) == ({0: 3} if how == signal.SIGTERM else {0: 2, 1: 1})
