"""The person's own agent as the model: what it may read, when, how it stops, and how it is undone."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from recollect.app import Memory, open_memory
from recollect.config import Config
from recollect.extract import OFFLINE
from recollect.extract.offer import Situation, agreed, is_open, reason_to_wait, since
from recollect.store import answers, stage1
from recollect.surfaces.daemon.work import Task, Work
from recollect.surfaces.daemon.worker import Worker
from recollect.types import ConversationStatus
from tests.command import run
from tests.conftest import Clock, Place
from tests.test_artifacts import conversation
from tests.transcripts import START, append, claude, write

NOW = datetime(2026, 3, 4, 12, 0, tzinfo=UTC)
RULE = "Please always run make lint before you commit, the pipeline rejects everything else."
TALK = (RULE, "Understood.", "Show me the tide table.", "It stands in docs/tides.md now.", "Thanks.", "Bye.")
AGENT = """\
import json, os, re, sys
prompt = sys.stdin.read()
with open(os.environ["ASKED"], "a") as log:
    log.write(json.dumps({"arguments": sys.argv[1:], "prompt": prompt}) + chr(10))
reply, failed = os.environ.get("REPLY", ""), bool(os.environ.get("REPLY"))
if not failed:
    said = re.findall(r"^\\[m(\\d+)\\] .*\\nperson: (.*)", prompt, re.M)
    number, quote = said[0]
    memory = {"kind": "constraint", "text": "Lint comes before every commit.", "severity": "must",
              "evidence": [{"message": int(number), "quote": " ".join(quote.split()[:5])}]}
    reply = json.dumps({"raw_memory": "raw", "done": "The agent told what was done.", "left": "", "memories": [memory],
                        "rollout_slug": "lint", "memory_sentence": "Lint first."})
print(json.dumps({"type": "result", "is_error": failed, "result": reply,
                  "usage": {"input_tokens": 4000, "output_tokens": 100}}))
sys.exit(failed)
"""


class Machine:
    """A home with sessions in two projects, and a Claude Code that answers by rote."""

    def __init__(self, place: Place, clock: Clock) -> None:
        self.place, self.clock = place, clock
        self.user = place.home.parent
        self.asked_log = self.user / "asked"
        program = write(self.user / "bin" / "claude", f"#!{sys.executable}\n{AGENT}".encode())
        program.chmod(0o755)
        self.environ = {"HOME": str(self.user), "PATH": str(program.parent), "ASKED": str(self.asked_log)}
        self.flags: dict[str, Any] = {"database": place.url, "embedder": "none"}

    def open(self, *projects: str, **flags: Any) -> Memory:
        named = {"agreed_projects": {"cli:claude": projects}} if projects else {}
        return open_memory(self.place.home, environ=self.environ, clock=self.clock, **self.flags, **named, **flags)

    def session(self, name: str, project: str = "/code/tides", *, days: float = 0.0) -> Path:
        """As it was written so many days before START."""
        at = -days * 86400
        lines = (
            claude(n, text, role=("assistant", "user")[n % 2], session=name, cwd=project, at=at + n * 60)
            for n, text in enumerate(TALK, 1)
        )
        file = write(self.user / ".claude" / "projects" / "-p" / f"{name}.jsonl", b"".join(lines))
        os.utime(file, (0, (START - timedelta(days=days)).timestamp() + 400))
        return file

    @property
    def asked(self) -> list[dict[str, Any]]:
        lines = self.asked_log.read_text().splitlines() if self.asked_log.exists() else []
        return [json.loads(each) for each in lines]


@pytest.fixture
def machine(tables: Place) -> Iterator[Machine]:
    yield Machine(tables, Clock(START + timedelta(days=1)))


@pytest.fixture(autouse=True)
def _idle(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever else this machine does."""
    monkeypatch.setattr(os, "getloadavg", lambda: (0.0, 0.0, 0.0))


def told(memory: Memory) -> list[str]:
    return sorted(each.text for each in memory.memories())


def readers(memory: Memory) -> set[str]:
    with memory.database.read() as tx:
        return {each.rpartition("/")[2] for each in stage1.strategies(tx, memory.owner).values()}


# Deciding


@pytest.mark.parametrize(
    ("situation", "said", "to_a_person"),
    [
        (Situation(NOW), "", ""),
        (Situation(NOW, used_at=NOW - timedelta(minutes=4)), "in use", ""),
        (Situation(NOW, used_at=NOW - timedelta(minutes=5)), "", ""),
        (Situation(NOW, load=0.9), "busy", ""),
        (Situation(NOW, load=0.5), "", ""),
        (Situation(NOW, spent=999), "", ""),
        (Situation(NOW, spent=1000), "max_tokens_per_day", "max_tokens_per_day"),
        (Situation(NOW, limited_until=NOW + timedelta(hours=2)), "2026-03-04T14:00Z", "2026-03-04T14:00Z"),
        (Situation(NOW, limited_until=NOW), "", ""),
    ],
)
def test_why_the_agent_is_asked_nothing_now(situation: Situation, said: str, to_a_person: str) -> None:
    config = Config(max_tokens_per_day=1000)
    for asked, words in ((False, said), (True, to_a_person)):
        why = reason_to_wait(situation, config, asked=asked)
        assert bool(why) == bool(words) and words in why
    assert reason_to_wait(Situation(NOW, NOW, 9.0), Config(agent_quiet_minutes=0)) == ""


def test_a_project_that_is_not_named_is_not_agreed_to() -> None:
    assert agreed(Config()) == agreed(Config(agreed_projects={"cli:claude": ()})) == {}
    both = Config(agreed_projects={"cli:claude": ("/a", "/b"), "cli:codex": ("/b", "/c")})
    assert agreed(both) == {"cli:claude": {"/a", "/b"}, "cli:codex": {"/c"}}, "one agent reads a project"
    assert agreed(Config(model="cli:claude", agreed_projects={"cli:claude": ("/a",)})) == {}, "it reads all anyway"


def test_the_window_begins_with_the_consent_and_is_never_older_than_the_usual_one() -> None:
    assert since(Config(agreed_since="2026-03-01T00:00:00Z"), NOW) == "2026-03-01T00:00:00Z"
    for text in ("", "2020-01-01T00:00:00Z"):
        assert since(Config(agreed_since=text), NOW) == "2026-02-02T12:00:00.000Z"


@pytest.mark.parametrize(
    ("status", "reason", "strategy", "open_"),
    [
        ("ready", "", None, True),
        ("ready", "", "extract_v3+merge_v2/cli:claude", True),
        ("archived", "", OFFLINE, True),
        ("archived", "", "extract_v3+merge_v2/cli:claude", False),
        ("archived", "", "extract_v2/openai:x", False),
        ("skipped", "nothing worth keeping (offline-v10)", None, True),
        ("skipped", "nothing worth keeping (extract_v3+merge_v2/cli:claude)", None, False),
        ("skipped", "too short: 2 messages", None, False),
        ("active", "", None, False),
    ],
)
def test_the_agent_reads_what_no_model_has_read(status: str, reason: str, strategy: str | None, open_: bool) -> None:
    talk = conversation(status=ConversationStatus(status), status_reason=reason)
    assert is_open(talk, strategy) is open_
    assert not is_open(conversation(status=talk.status, status_reason=reason, source="recollect"), strategy)


# Reading


def test_without_consent_nothing_is_sent(machine: Machine) -> None:
    machine.session("aaaaaaaa-1")
    for projects in ((), ("/code/other",), ("/code/tide",), ("/code",)):
        with machine.open(*projects) as memory:
            memory.ingest()
            memory.process(now=True, again=True)
            assert memory.estimate(now=True, again=True) is None
    assert machine.asked == []


def test_the_agent_reads_what_was_agreed_to_and_nothing_else(machine: Machine) -> None:
    machine.session("aaaaaaaa-1")
    machine.session("bbbbbbbb-1", "/code/secret")
    with machine.open("/code/tides") as memory:
        memory.ingest()
        report = memory.process()
        assert (report.by_agent, report.left_to_agent, report.agent_waits) == (1, 0, "")
        assert len(machine.asked) == 1 and report.tokens == 4100
        assert readers(memory) == {"cli:claude", OFFLINE}
        assert "Lint comes before every commit." in told(memory)
        assert memory.process(now=True, again=True).by_agent == 0 and len(machine.asked) == 1, "once"
    arguments = machine.asked[0]["arguments"]
    assert "--no-session-persistence" in arguments and arguments[arguments.index("--tools") + 1] == ""


def test_what_the_agent_read_waits_for_it_when_it_goes_on(machine: Machine) -> None:
    file = machine.session("aaaaaaaa-1")
    with machine.open("/code/tides") as memory:
        memory.ingest()
        memory.process()
        append(file, claude(9, "And the harbour?", session="aaaaaaaa-1"))
        os.utime(file, (0, machine.clock.now.timestamp() - 60))
        memory.ingest()
        machine.clock.advance(30)
        assert memory.process(now=False).agent_waits == "an agent was in use less than 5 minutes ago"
        assert "Lint comes before every commit." in told(memory), "rules do not take the agent's place"
        assert memory.status().missed.due == 1 and "in use" in memory.status().missed.waits
        machine.clock.advance(600)
        assert memory.process().by_agent == 1 and len(machine.asked) == 2


def test_it_waits_for_quiet_unless_a_person_asks(machine: Machine) -> None:
    file = machine.session("aaaaaaaa-1")
    os.utime(file, (0, machine.clock.now.timestamp() - 10))
    with machine.open("/code/tides") as memory:
        memory.ingest()
        report = memory.process()
        assert report.left_to_agent == 1 and "in use" in report.agent_waits and machine.asked == []
        assert told(memory) != [], "what is known without it does not wait"
        assert memory.process(now=True).by_agent == 1


def test_an_answer_that_was_paid_for_is_not_thrown_away(machine: Machine) -> None:
    """The process died between the agent's answer and its files."""
    file = machine.session("aaaaaaaa-1")
    with machine.open("/code/tides") as memory:
        memory.ingest()
        (talk,) = memory.conversations()
        with memory.database.write() as tx:
            answers.save(tx, memory.owner, "extract", talk.session_key, "asked", "{}", talk.last_message_at)
        os.utime(file, (0, machine.clock.now.timestamp() - 10))
        assert (memory.process().claimed, memory.conversations()[0].status) == (0, ConversationStatus.READY)
        machine.clock.advance(600)
        assert memory.process().by_agent == 1
    with machine.open() as memory:
        machine.session("bbbbbbbb-1")
        memory.ingest()
        assert memory.process(now=True).succeeded == 1, "without a consent nothing waits"


def test_the_daemon_is_told_to_come_back_once_it_is_quiet(machine: Machine) -> None:
    file = machine.session("aaaaaaaa-1")
    os.utime(file, (0, machine.clock.now.timestamp() - 10))
    with machine.open("/code/tides") as memory:
        memory.ingest()
        worker = Worker(memory)
        assert worker.do(Work(task=Task.RUN)).agent_goes_on and machine.asked == []
        machine.clock.advance(600)
        assert not worker.do(Work(task=Task.RUN)).agent_goes_on and len(machine.asked) == 1
        assert not worker.do(Work(task=Task.RUN)).changed and len(machine.asked) == 1, "idle means idle"


def test_what_is_older_than_the_consent_is_read_where_a_person_asks(machine: Machine) -> None:
    machine.session("aaaaaaaa-1")
    machine.session("bbbbbbbb-1", days=3)
    machine.session("cccccccc-1", days=90)
    with machine.open("/code/tides", agreed_since="2026-03-01T00:00:00Z") as memory:
        memory.ingest()
        assert memory.process(now=True).by_agent == 1
        missed = memory.status().missed
        assert (missed.models, missed.due, missed.older, missed.elsewhere) == (("cli:claude",), 0, 2, 0)
        estimate = memory.estimate(now=True, again=True)
        assert estimate is not None and (estimate.conversations, estimate.model) == (2, "cli:claude")
        assert memory.process(now=True, again=True).by_agent == 2 and len(machine.asked) == 3


def test_a_plans_limit_stops_it_and_what_was_known_stays(machine: Machine) -> None:
    for number in range(3):
        machine.session(f"{number}aaaaaaa-1")
    reset = int(datetime.now(UTC).timestamp()) + 7200
    machine.environ["REPLY"] = f"Claude AI usage limit reached|{reset}"
    with machine.open("/code/tides", extraction_concurrency=1) as memory:
        memory.ingest()
        report = memory.process()
        assert len(machine.asked) == 1 and "limit reached" in report.limited and report.left_to_agent == 3
        assert {each.status for each in memory.conversations()} == {ConversationStatus.ARCHIVED}
        assert readers(memory) == {OFFLINE} and told(memory)
        for now in (False, True):
            assert "limit of the plan" in memory.process(now=now).agent_waits
        assert len(machine.asked) == 1 and "limit of the plan" in memory.status().missed.waits
        machine.clock.advance(7300)
    del machine.environ["REPLY"]
    with machine.open("/code/tides") as memory:
        assert memory.process().by_agent == 3


def test_the_cap_of_the_day_holds_for_it(machine: Machine) -> None:
    for number in range(5):
        machine.session(f"{number}aaaaaaa-1")
    with machine.open("/code/tides", max_tokens_per_day=4000, extraction_concurrency=1) as memory:
        memory.ingest()
        memory.process()
        assert len(machine.asked) == 1
        assert "max_tokens_per_day" in memory.process(now=True).agent_waits and len(machine.asked) == 1


def test_a_failure_ends_its_turn(machine: Machine) -> None:
    for number in range(9):
        machine.session(f"{number}aaaaaaa-1")
    machine.environ["REPLY"] = "Not logged in"
    with machine.open("/code/tides") as memory:
        memory.ingest()
        report = memory.process()
        assert report.failed == len(machine.asked) == 4 and told(memory)


def test_the_estimate_counts_whole_prompts(machine: Machine) -> None:
    machine.session("aaaaaaaa-1")
    with machine.open("/code/tides") as memory:
        memory.ingest()
        estimate = memory.estimate(now=True)
        assert estimate is not None and estimate.seconds > 0
        ((key, questions),) = memory.questions(now=True)
        memory.process(now=True)
    assert [each["prompt"] for each in machine.asked] == questions, "to the letter"
    assert key.startswith("aaaaaaaa-1@")
    rendered = -(-len(questions[0].encode()) * 2 // 7)
    assert 0.8 * rendered < estimate.tokens - 1_700 < 1.5 * rendered


# Undoing


def test_all_that_it_wrote_is_undone_at_once_and_stays_undone(machine: Machine) -> None:
    file = machine.session("aaaaaaaa-1")
    machine.session("bbbbbbbb-1", "/code/nets")
    with machine.open() as memory:
        memory.ingest()
        memory.process(now=True)
        without = told(memory)
    with machine.open("/code/tides", "/code/nets") as memory:
        memory.process(now=True)
        by_agent = told(memory)
        assert by_agent != without
        first = memory.memories(project="/code/nets")[0]
        memory.cite([first.id])  # of use, and still the agent's
        assert memory.without_agent(["/code/nets"]).stored == 1 and readers(memory) == {"cli:claude", OFFLINE}
    with machine.open() as memory:
        append(file, claude(9, "And the harbour?", session="aaaaaaaa-1"))
        memory.ingest()
        memory.without_agent()
        assert told(memory) == without and readers(memory) == {OFFLINE}
        assert "Lint comes before" not in (memory.settings.home / "MEMORY.md").read_text()
        assert memory.reindex(full=True).problems == [] and told(memory) == without
        assert memory.without_agent().claimed == 0


# Asking


class Person:
    """Somebody at a terminal, with an agent of theirs and sessions of the last days."""

    def __init__(self, user: Path, **environ: str) -> None:
        self.user, self.home = user, user / ".recollect"
        program = write(user / "bin" / "claude", f"#!{sys.executable}\n{AGENT}".encode())
        program.chmod(0o755)
        (user / ".claude").mkdir()
        kept = {name: value for name, value in os.environ.items() if not name.startswith("RECOLLECT")}
        path = f"{program.parent}:/usr/bin:/bin"
        mine = {"HOME": str(user), "RECOLLECT_HOME": str(self.home), "PATH": path, "ASKED": str(user / "asked")}
        self.environ = {**kept, **mine, "RECOLLECT_EMBEDDER": "none", **environ}

    def session(self, number: int, project: str, days: float) -> None:
        at = (datetime.now(UTC) - timedelta(days=days) - START).total_seconds()
        name = f"{number}aaaaaaa-1"
        lines = (
            claude(n, text, role=("assistant", "user")[n % 2], session=name, cwd=project, at=at + n * 60)
            for n, text in enumerate(TALK, 1)
        )
        file = write(self.user / ".claude" / "projects" / "-p" / f"{name}.jsonl", b"".join(lines))
        os.utime(file, (0, datetime.now(UTC).timestamp() - days * 86400))

    def run(self, *arguments: str, answers: str = "") -> str:
        ours, theirs = pty.openpty()
        command = [sys.executable, "-P", "-m", "recollect", *arguments]
        with subprocess.Popen(
            command, stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=self.environ
        ) as process:
            os.write(ours, answers.encode())
            said = process.communicate(timeout=90)[0].decode()
        os.close(ours), os.close(theirs)
        assert process.returncode == 0, said
        return said

    @property
    def asked(self) -> int:
        log = self.user / "asked"
        return len(log.read_text().splitlines()) if log.exists() else 0

    @property
    def config(self) -> str:
        file = self.home / "config.toml"
        return file.read_text() if file.exists() else ""


@pytest.fixture
def person(tmp_path: Path) -> Person:
    found = Person(tmp_path)
    for number, (project, days) in enumerate(
        [("/code/tides", 0.3), ("/code/tides", 0.6), ("/code/secret", 0.7), ("/code/tides", 1), ("/code/nets", 2)]
    ):
        found.session(number, project, days)
    found.session(8, "/code/tides", 20)
    return found


PLUG_IN = "y\ny\n"  # the agent, and its history


def test_a_no_costs_one_key_and_sends_nothing(person: Person) -> None:
    said = person.run("init", answers=PLUG_IN + "\n")
    assert "Claude Code with its model haiku" in said and "6 conversations, about" in said
    assert "newest week: 5 conversations" in said and "Nothing is sent" in said
    assert person.asked == 0 and "agreed" not in person.config
    assert "6 conversations that your own agent could read" in person.run("status")
    assert person.run("init", "--yes") and person.asked == 0, "--yes agrees to nothing of that kind"


def test_what_would_be_sent_is_shown_before_anybody_agrees(person: Person) -> None:
    said = person.run("init", answers=PLUG_IN + "s\nn\n")
    assert "[m1]" in said and "Please always run make lint" in said and person.asked == 0


def test_a_trial_then_the_newest_week(person: Person) -> None:
    # projects in the order of their sessions: tides yes, secret no; the trial; the week yes; nets yes
    said = person.run("init", answers=PLUG_IN + "y\ny\nn\n" + "y\ny\n")
    assert "May Claude Code read /code/tides (4 conversations)?" in said and said.count("read /code/secret") == 1
    without, _, beside = said.partition("with Claude Code with its model haiku:")
    assert "The agent told what was done." in beside and "without a model:" in without
    assert "3 conversations, 12,300 tokens" in said, said
    assert "/code/secret" not in person.config and "/code/nets" in person.config and "agreed_since" in person.config
    assert person.asked == 4 and "--model" in (person.user / "asked").read_text()
    assert "recollect process --again --now" in said and "1 older conversation" in said
    status = json.loads(person.run("status", "--json"))
    assert status["missed"] == {"models": ["cli:claude:haiku"], "due": 0, "older": 1, "elsewhere": 1, "waits": ""}
    assert "2 conversations read" not in said
    undone = person.run("init", "--model", "offline")
    assert "4 conversations read without a model again" in undone and "agreed" not in person.config


def test_a_no_after_the_trial_undoes_it(person: Person) -> None:
    said = person.run("init", answers=PLUG_IN + "y\ny\nn\n" + "n\n")
    assert person.asked == 3 and "read without a model again" in said and "agreed" not in person.config
    assert "Lint comes before" not in person.run("memories", "--project", "/code/tides")


def test_a_model_that_does_not_do_it_is_followed_by_the_next(person: Person) -> None:
    person.environ["ONLY"] = "default"
    refuse = 'if os.environ.get("ONLY") and "--model" in sys.argv: sys.exit("There is no such model.")\n'
    program = person.user / "bin" / "claude"
    program.write_text(program.read_text().replace("reply, failed", refuse + "reply, failed", 1))
    person.run("init", answers=PLUG_IN + "y\ny\nn\n" + "y\nn\n")
    assert '"cli:claude" = ["/code/tides"]' in person.config and "haiku" not in person.config


def test_consent_without_questions_names_its_projects(person: Person) -> None:
    person.run("init", "--yes")
    environ = {"HOME": str(person.user), "PATH": person.environ["PATH"], "ASKED": person.environ["ASKED"]}
    (person.home / "config.toml").write_text('# mine\nlog_level = "error"\n\n[roots]\npi = []\n')
    done = run(person.home, "init", "--model", "cli:claude", "--json", **environ)
    assert done.status == 2 and "--project" in done.json["error"]["hint"]
    done = run(person.home, "init", "--model", "cli:claude", "--project", "/code/other", "--json", **environ)
    assert done.status != 0 and "agreed" not in person.config
    done = run(person.home, "init", "--model", "claude", "--project", "/code/tides", "--json", **environ)
    assert done.status == 2 and "cli:claude" in done.stdout
    tides = ("init", "--model", "cli:claude", "--project", "/code/tides", "--json")
    done = run(person.home, *tides, CLAUDECODE="1", **environ)
    assert done.status != 0 and "an agent may not" in done.stdout and "agreed" not in person.config
    done = run(person.home, *tides, **environ)
    assert done.status == 0 and done.json["estimate"]["conversations"] == 3 and person.asked == 0
    assert person.config.endswith('# mine\nlog_level = "error"\n\n[roots]\npi = []\n')
    done = run(person.home, "init", "--model", "cli:claude", "--project", "/code/nets", "--json", **environ)
    assert '"cli:claude" = ["/code/nets", "/code/tides"]' in person.config
    run(person.home, "init", "--model", "offline", "--project", "/code/nets", "--json", **environ)
    assert '"cli:claude" = ["/code/tides"]' in person.config and "agreed_since" in person.config
    run(person.home, "init", "--model", "offline", "--json", **environ)
    assert person.config == '# mine\nlog_level = "error"\n\n[roots]\npi = []\n'
