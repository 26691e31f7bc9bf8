"""What a session leaves behind, who said it, the verbs that show both; older homes that learn authors and events."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from recollect.app import Memory
from recollect.artifacts.ledger import FILE
from recollect.extract.resolve import retire
from recollect.extract.values import left_of, outcome
from recollect.store import entries as entry_rows
from recollect.store import memories as memory_rows
from recollect.types import Happened, Trust
from tests.command import Done
from tests.command import run as run_in
from tests.conftest import Clock
from tests.transcripts import START, claude, write


def run(memory: Memory, *arguments: str, **environ: str) -> Done:
    """A command on the database of this test."""
    settings = memory.settings
    return run_in(settings.home, *arguments, RECOLLECT_DATABASE=settings.config.database, **environ)


RULE = "Always run the checkout tests with `pytest -x`, the suite takes an hour."


def tool(number: int, name: str, **arguments: Any) -> bytes:
    call = {"type": "tool_use", "id": f"toolu_{number}", "name": name, "input": arguments}
    return claude(number, [call], role="assistant")


TALK = (
    claude(1, f"The checkout tests are flaky. Please find out why. {RULE}"),
    tool(2, "TaskCreate", subject="Freeze the clock"),
    tool(3, "TaskCreate", subject="Rename the fixture"),
    tool(4, "Edit", file_path="/code/tides/checkout.py"),
    tool(5, "Bash", command='git commit -m "Freeze the clock in the checkout tests"'),
    tool(6, "TaskUpdate", taskId="1", status="completed"),
    claude(7, "The clock is passed into `Checkout` now, and the tests use a fixed one.", role="assistant"),
)
DONE = "Committed: Freeze the clock in the checkout tests."
LEFT = "Open tasks: Rename the fixture."


@pytest.fixture
def clock() -> Clock:
    return Clock(START + timedelta(days=1))


@pytest.fixture
def told(memory: Memory, root: Path) -> Memory:
    write(root / "-code-tides" / "11111111-2222-4333-8444-555555555555.jsonl", b"".join(TALK))
    memory.ingest(folder=root)
    memory.process(now=True)
    return memory


def test_the_outcome_stands_in_the_timeline_the_ledger_and_the_next_briefing(told: Memory) -> None:
    (day,) = told.timeline(project="/code/tides")
    (talk,) = day.conversations
    assert DONE in talk.done and talk.left == LEFT
    assert f"Left: {LEFT}" in (told.settings.home / FILE).read_text()
    told.consolidate(now=True)
    assert f"Left: {LEFT}" in told.briefing.orientation("/code/tides")
    done = run(told, "timeline", "--project", "/code/tides")
    assert f"left: {LEFT}" in done.stdout
    assert f"left: {LEFT}" in run(told, "show", "11111111").stdout


def test_the_outcome_follows_from_the_files(told: Memory) -> None:
    before = told.timeline(project="/code/tides")
    with told.database.write() as tx:
        tx.run("DELETE FROM memory_stage1")
        tx.run("DELETE FROM memory_transcript_entries")
    told.reindex(full=True)
    assert told.timeline(project="/code/tides") == before
    with told.database.read() as tx:
        (told_,) = entry_rows.authors(tx, told.owner, "claude-code", ["11111111-000005"]).values()
    assert [each.kind for each in entry_rows.events_of(told_[1])] == [Happened.COMMIT]


@pytest.mark.parametrize(
    ("done", "left", "text"),
    [("Did it.", "The rest.", "Did it.\n\nLeft: The rest."), ("Did it.", "", "Did it."), ("", "All.", "Left: All.")],
)
def test_a_summary_tells_both(done: str, left: str, text: str) -> None:
    assert outcome(done, left) == text
    assert left_of(text) == (done, left)


def test_memories_are_listed_with_their_trust(told: Memory) -> None:
    told.remember("Deploy on Mondays.", project="/code/tides")
    (noted, typed) = told.memories("/code/tides")
    assert (noted.trust, typed.trust, typed.text) == (Trust.SAID, Trust.SAID, RULE)
    listed = run(told, "memories", "--project", "/code/tides", "--json").json
    assert [(each["text"], each["trust"]) for each in listed] == [(noted.text, "said"), (RULE, "said")]
    assert run(told, "memories", "--project", "/code/tides", "--trust", "found", "--json").json == []
    assert run(told, "memories", "--all-projects", "--kind", "preference", "--json").json[0]["text"] == RULE
    assert run(told, "memories", "--project", "no/such").status == 2
    assert run(told, "memories", "--new", "--since", "7d").status == 2
    assert run(told, "memories", "--project", "/code/tides", "--all-projects").status == 2


def test_what_is_called_wrong_is_listed_and_told_no_more(told: Memory) -> None:
    told.remember("Deploy on Mondays.", project="/code/tides")
    one, other = (each.id for each in told.memories("/code/tides"))
    missing = run(told, "wrong", one, "m-nothing")
    assert missing.status == 2 and "m-nothing" in missing.stderr
    assert len(told.memories("/code/tides")) == 2  # a name that is none changes nothing
    done = run(told, "wrong", one[:9], other, "--reason", "one-off", "--json")
    assert [each["id"] for each in done.json] == [one, other] and told.memories("/code/tides") == []
    assert "called wrong" in run(told, "show", one).stdout
    told.feedback(one, "ok")
    assert [each.id for each in told.memories("/code/tides")] == [one]


def silent(memory: Memory) -> None:
    """As an older version would have stored it."""
    with memory.database.write() as tx:
        tx.run("UPDATE memory_transcript_entries SET authors = '', events = ''")
        tx.run("DELETE FROM memory_jobs WHERE kind = 'authors'")


def authors(memory: Memory) -> dict[str, tuple[str, str]]:
    with memory.database.read() as tx:
        return {
            row[0]: (row[1], row[2])
            for row in tx.rows("SELECT entry_uuid, authors, events FROM memory_transcript_entries")
        }


def test_an_older_home_learns_authors_and_events_and_reopens_nothing(told: Memory, root: Path) -> None:
    known, before = authors(told), told.conversations()
    silent(told)
    told.ingest(folder=root)
    assert authors(told) == known and told.conversations() == before
    assert told.process(now=True).claimed == 0
    assert told.reindex().changed == 0


def test_where_the_agents_file_is_gone_authors_follow_from_the_text(told: Memory, root: Path) -> None:
    known = authors(told)
    silent(told)
    next(root.glob("*/*.jsonl")).unlink()
    told.ingest(folder=root)
    now = authors(told)
    assert {uuid: by for uuid, (by, _) in now.items()} == {uuid: by for uuid, (by, _) in known.items()}
    assert not any(events for _, events in now.values())


def test_a_reading_that_was_cut_short_is_begun_anew(told: Memory, root: Path) -> None:
    known = authors(told)
    silent(told)
    with told.database.write() as tx:
        tx.run("UPDATE memory_transcript_entries SET authors = 'pasted:1' WHERE entry_uuid = '11111111-000001'")
    told.ingest(folder=root)
    now = authors(told)
    assert now.pop("11111111-000001") == ("pasted:1", "")  # what is known stays
    known.pop("11111111-000001")
    assert now == known


def test_a_conversation_is_called_by_its_own_sentence(memory: Memory, root: Path) -> None:
    compaction = claude(8, "Let me chronologically analyze the conversation.", isCompactSummary=True)
    write(root / "-code-tides" / "11111111-2222-4333-8444-555555555555.jsonl", b"".join((*TALK, compaction)))
    memory.ingest(folder=root)
    memory.process(now=True)
    (day,) = memory.timeline(project="/code/tides")
    assert "chronologically" not in day.conversations[0].sentence


def test_what_is_stated_no_more_is_retired_unless_it_was_of_value(told: Memory) -> None:
    (held,) = told.memories("/code/tides")
    assert retire([held], [], {held.id}) == [] and retire([held], [held], ()) == [] and retire([held], [], ()) == [held]


def test_a_dry_run_prints_what_a_model_would_be_sent_and_sends_nothing(memory: Memory, root: Path) -> None:
    write(root / "-code-tides" / "11111111-2222-4333-8444-555555555555.jsonl", b"".join(TALK))
    memory.ingest(folder=root)
    refused = run(memory, "process", "--dry-run", "--now")
    assert refused.status == 2 and "without a model nothing is sent" in refused.stderr
    told = run(memory, "process", "--dry-run", "--now", "--json", RECOLLECT_MODEL="openai:none").json
    ((key, (question,)),) = [(each["session_key"], each["questions"]) for each in told]
    assert (
        key.startswith("11111111") and f"person: The checkout tests are flaky. Please find out why. {RULE}" in question
    )
    assert "event: commit: Freeze the clock in the checkout tests" in question and "event: task done: #1" in question
    assert json.dumps(told) and [each.status for each in memory.conversations()] == ["ready"]


def test_health_says_what_older_rules_kept_and_reading_again_retires_it(told: Memory, clock: Clock) -> None:
    with told.database.write() as tx:
        tx.run("UPDATE memory_stage1 SET strategy = 'offline-v9'")
        tx.run("DELETE FROM memory_sums")
        ((key,),) = tx.rows("SELECT session_key FROM memory_stage1")
    (held,) = told.memories("/code/tides")
    junk = [replace(held, id=f"m-{n:016d}", text=f"Junk {n}.") for n in range(10)]
    with told.database.write() as tx:
        memory_rows.replace_sessions(tx, told.owner, {key: [held, *junk]})
        memory_rows.cite(tx, told.owner, [junk[0].id], held.valid_from)
    health = run(told, "health")
    assert "11 memories were kept without a model by the rules of an older version" in health.stdout
    clock.advance(3600)
    report = told.process(now=True, again=True)
    assert sorted(text for _, text in report.retired) == sorted(each.text for each in junk[1:])
    assert {each.text for each in told.memories("/code/tides")} == {held.text, junk[0].text}
    assert "older version" not in run(told, "health").stdout
