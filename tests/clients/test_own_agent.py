"""Claude Code itself as the model, by the offer of `init`, against a scripted server."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.clients.conftest import SECONDS, Machine, program
from tests.clients.model import Asked
from tests.clients.test_claude_code import PROGRAM, claude
from tests.transcripts import START
from tests.transcripts import claude as line

pytestmark = pytest.mark.clients

TALK = (
    "Please always run make lint before you commit, the pipeline rejects everything else.",
    "Understood.",
    "Show me the tide table.",
    "It stands in docs/tides.md now.",
    "Thanks.",
    "Bye.",
)
MEMORY = "Lint comes before every commit."
DONE = "The tide table was moved to the docs."


def extraction(asked: Asked) -> str:
    """As a model answers phase 1; anything else as in a session."""
    said = re.search(r"^\[m(\d+)\] .*\nperson: (.*)", asked.text, re.MULTILINE)
    if "JSON schema" not in asked.text or said is None:
        return "Understood."
    evidence = [{"message": int(said[1]), "quote": " ".join(said[2].split()[:5])}]
    memory = {"kind": "constraint", "text": MEMORY, "severity": "must", "evidence": evidence}
    told = {"raw_memory": "raw", "done": DONE, "left": "", "rollout_slug": "lint", "memory_sentence": "Lint first."}
    return json.dumps({**told, "memories": [memory]})


def session(machine: Machine, number: int, project: Path, days: float) -> None:
    ago = timedelta(days=days)
    at, name = (datetime.now(UTC) - ago - START).total_seconds(), f"{number}aaaaaaa-1"
    lines = (
        line(n, text, role=("assistant", "user")[n % 2], session=name, cwd=str(project), at=at + n * 60)
        for n, text in enumerate(TALK, 1)
    )
    file = machine.home / ".claude" / "projects" / "-p" / f"{name}.jsonl"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(b"".join(lines))
    os.utime(file, (0, (datetime.now(UTC) - ago).timestamp() + 400))


@pytest.fixture
def machine(machine: Machine) -> Iterator[Machine]:
    """With `claude` on the PATH, sessions of five days in three projects, and one that is older."""
    folder = machine.home / "bin"
    folder.mkdir()
    (folder / "claude").symlink_to(program(*PROGRAM))
    machine.environ |= {
        "PATH": f"{folder}:/usr/bin:/bin",
        "ANTHROPIC_BASE_URL": machine.model.url,
        "ANTHROPIC_API_KEY": "sk-none",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
    }
    tides, secret, nets = (machine.project(name) for name in ("tides", "secret", "nets"))
    for number, (project, days) in enumerate([(tides, 1), (tides, 1.5), (secret, 2), (tides, 3), (nets, 4)]):
        session(machine, number, project, days)
    session(machine, 8, tides, 20)
    machine.model.script = extraction
    yield machine


def init(machine: Machine, answers: str, *arguments: str) -> str:
    """What `init` says to somebody who answers."""
    ours, theirs = pty.openpty()
    command = [machine.python, "-P", "-m", "recollect", "init", *arguments]
    with subprocess.Popen(
        command, stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=machine.environ
    ) as process:
        os.write(ours, answers.encode())
        said = process.communicate(timeout=2 * SECONDS)[0].decode()
    os.close(ours), os.close(theirs)
    assert process.returncode == 0, said
    return said


def questions(machine: Machine) -> list[Asked]:
    return [each for each in machine.model.asked if "JSON schema" in each.text]


def test_the_offer_from_the_estimate_to_the_next_sessions_briefing(machine: Machine) -> None:
    before = set((machine.home / ".claude").rglob("*.jsonl"))
    said = init(machine, "y\ny\n" + "y\ny\nn\n" + "y\ny\n")
    estimate = re.search(r"newest week: 5 conversations, about ([\d,]+) tokens, (\d+) min", said)
    assert estimate and int(estimate[1].replace(",", "")) > 10_000, said
    assert "Claude Code with its model haiku" in said and "without a model:" in said and DONE in said and MEMORY in said
    assert re.search(r"3 conversations, [\d,]+ tokens, \d+\.\d min", said), "a trial has real figures"
    asked = questions(machine)
    assert len(asked) == 4, "three sessions, and what is left of the week"
    assert all(each.tools == [] and "haiku" in each.body["model"] for each in asked)
    assert not any(str(machine.project("secret")) in each.text for each in asked)
    assert set((machine.home / ".claude").rglob("*.jsonl")) == before, "no session of its own"

    status = machine.recollect("status")
    assert (status["missed"]["due"], status["missed"]["older"], status["missed"]["elsewhere"]) == (0, 1, 1)
    tides = machine.project("tides")
    shown = "\n".join(each.read_text() for each in (machine.memory / "memory").glob("*--summary.md"))
    assert DONE in shown and MEMORY in shown
    given = machine.given(lambda: claude(machine, tides, "What did we do?"))
    assert MEMORY in given and DONE in given, machine.logs()

    machine.recollect("init", "--model", "offline")
    assert MEMORY not in machine.given(lambda: claude(machine, tides, "And now?"))
    assert "agreed" not in (machine.memory / "config.toml").read_text()


def test_it_waits_while_an_agent_is_in_use_and_stops_at_its_caps(machine: Machine) -> None:
    machine.recollect("init", "--yes")
    assert questions(machine) == [], "--yes agrees to nothing of that kind"
    tides = machine.project("tides")
    told = machine.recollect("init", "--model", "cli:claude:haiku", "--project", str(tides))
    assert told["estimate"]["conversations"] == 3 and told["estimate"]["tokens"] > 5_000
    os.utime(next(machine.home.rglob("0aaaaaaa-1.jsonl")))
    waits = machine.recollect("process")
    assert "in use" in waits["agent_waits"] and waits["left_to_agent"] == 3 and questions(machine) == []

    machine.environ["RECOLLECT_MAX_TOKENS_PER_DAY"] = "1"
    machine.environ["RECOLLECT_EXTRACTION_CONCURRENCY"] = "1"
    machine._run([machine.python, "-P", "-m", "recollect", "process", "--now"], machine.home)
    assert len(questions(machine)) == 1, "what is over the cap is not asked"
    assert "max_tokens_per_day" in machine.recollect("process", "--now")["agent_waits"]


def test_a_plans_limit_is_told_and_nothing_more_is_asked(machine: Machine) -> None:
    machine.recollect("init", "--yes")
    machine.recollect("init", "--model", "cli:claude:haiku", "--project", str(machine.project("tides")))
    reset = int(time.time()) + 7200
    machine.model.script = lambda asked: f"Claude AI usage limit reached|{reset}"
    machine.environ["RECOLLECT_EXTRACTION_CONCURRENCY"] = "1"
    said = machine._run([machine.python, "-P", "-m", "recollect", "process", "--now"], machine.home)
    assert "STOPPED: the limit of your plan is reached" in said
    assert len(questions(machine)) == 1
    assert "limit of the plan" in machine.recollect("process", "--now")["agent_waits"] and len(questions(machine)) == 1


def test_a_refusal_is_told_and_what_was_known_stays(machine: Machine) -> None:
    machine.recollect("init", "--yes")
    tides = machine.project("tides")
    machine.recollect("init", "--model", "cli:claude:haiku", "--project", str(tides))
    machine.model.script = lambda asked: "I cannot help with that."
    done = subprocess.run(
        [machine.python, "-P", "-m", "recollect", "process", "--now", "--json"],
        cwd=machine.home,
        env=machine.environ,
        capture_output=True,
        text=True,
        timeout=2 * SECONDS,
        check=False,
    )
    report = json.loads(done.stdout)
    assert done.returncode == 1 and report["failed"] and "no JSON object" in report["problems"][0]["reason"]
    assert machine.recollect("search", "make lint", "--kind", "memory", cwd=tides)["hits"], "read without a model"
