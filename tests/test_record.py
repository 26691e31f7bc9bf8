"""The record: what files and agents' transcripts tell comes back, whatever happened to the database."""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pytest

from recollect.app import Memory, open_memory
from recollect.artifacts.document import Manifest, parse, rendered, sealed
from recollect.artifacts.ledger import FILE
from recollect.authors import by_form
from recollect.errors import NotForAgents
from recollect.hand import Author
from recollect.store import memories as memory_rows
from recollect.store.checksum import as_written
from recollect.turns.retirement import RetirementNote
from recollect.types import Hand, Role
from tests.conftest import Clock, Place
from tests.test_changed import ROWS
from tests.test_extract import OTHER, RULE, TALK, ingest, session
from tests.test_golden import GOLDEN
from tests.test_outcome import TALK as OUTCOME
from tests.test_outcome import run
from tests.test_reindex import content, empty
from tests.transcripts import SESSION, START, append, claude, write

ASKED = "Which branch, please?\n\nTraceback (most recent call last):\n  File \"tides.py\", line 3\nKeyError: 'tide'"


@pytest.fixture
def clock() -> Clock:
    return Clock(START + timedelta(days=1))


def aged(home: Path) -> None:
    """Make the canonical files those of the last release: without authors, events and trust."""
    sums: dict[str, str] = {}
    documents = {path: parse(path.read_text()) for path in sorted((home / "memory").glob("*--*.md"))}
    for path, found in documents.items():
        if not isinstance(found.head, Manifest):
            body = re.sub(r"(?m)(^### .*) · events=\d+$\n\n(?:^> .*\n)+", r"\1\n", found.body)
            body = re.sub(r"(?m)^(### .*?) · authors=\S*$", r"\1", body)
            body = re.sub(r"(?m)^(- \*\*\w+\*\* \([^)]*?), (?:said|chosen|found|noted|passed_on)\b", r"\1", body)
            head, body = sealed(found.head, body)
            path.write_text(rendered(head, body))
            sums[f"memory/{path.name}"] = head.content_sha256
    for path, found in documents.items():
        if isinstance(found.head, Manifest):
            told = found.head
            links = {
                name: tuple(replace(each, sha256=sums.get(each.path, each.sha256)) for each in getattr(told, name))
                for name in ("superseded", "compactions")
            }
            summed: Any = {
                f"{name}_sha256": sums.get(getattr(told, f"{name}_path") or "") for name in ("summary", "transcript")
            }
            path.write_text(rendered(*sealed(replace(told, **links, **summed), found.body)))


def said(memory: Memory) -> list[tuple[Any, ...]]:
    """What is known of who wrote each message, and of what it tells by its structure."""
    found = content(memory, {"memory_transcript_entries": "entry_uuid, role, content, authors, events"})
    return found["memory_transcript_entries"]


def answered(root: Path, memory: Memory) -> None:
    """A conversation with a paste, and with a question that the agent asked and the person answered."""
    path = ingest(memory, root, *TALK)
    append(path, claude(7, ASKED))
    question = {"question": "Which database?", "header": "Store", "options": [{"label": "PostgreSQL"}]}
    call = {"type": "tool_use", "id": "t1", "name": "AskUserQuestion", "input": {"questions": [question]}}
    told = 'User has answered your questions: "Which database?"="PostgreSQL". You can now continue.'
    result = {"type": "tool_result", "tool_use_id": "t1", "content": told}
    answers = {"questions": [question], "answers": {"Which database?": "PostgreSQL"}}
    append(path, claude(8, [call], role="assistant"))
    append(path, claude(9, [result], toolUseResult=answers) + claude(10, "Done.", role="assistant"))
    memory.ingest(folder=root)
    memory.process(now=True)


# Files of the last release


def test_files_that_tell_no_authors_take_none_away(memory: Memory, root: Path) -> None:
    answered(root, memory)
    before = said(memory)
    assert any(row[-1] for row in before) and all(row[-2] for row in before)
    aged(memory.settings.home)
    assert memory.reindex(full=True).problems == []
    assert said(memory) == before


def test_messages_of_such_files_alone_have_the_authors_of_their_form(memory: Memory, root: Path) -> None:
    answered(root, memory)
    aged(memory.settings.home)
    empty(memory)
    assert memory.reindex().problems == []
    rows = said(memory)
    assert [row[3] for row in rows] == [by_form(row[2], Role(row[1])) for row in rows]
    assert {row[4] for row in rows} == {""} and "pasted" in str(rows)
    assert memory.reindex(full=True).problems == [] and said(memory) == rows
    with memory.database.write() as tx:  # somebody changes a message: its authors fit the text of the file again
        tx.run("UPDATE memory_transcript_entries SET content = 'wrong', authors = 'typed:5'")
    memory.reindex(full=True)
    assert said(memory) == rows


# Retirement


def stale(memory: Memory) -> list[str]:
    """Three memories that rules of an older version kept in the conversation that is there: their ids."""
    with memory.database.write() as tx:
        tx.run("UPDATE memory_stage1 SET strategy = 'offline-v1' WHERE session_key LIKE '1%'")
        tx.run("DELETE FROM memory_sums")
        ((key,),) = tx.rows("SELECT session_key FROM memory_stage1 WHERE session_key LIKE '1%'")
        held = memory_rows.of_session(tx, memory.owner, key)
        ids = [f"m-{letter * 16}" for letter in "abc"]
        junk = [replace(held[0], id=name, text=f"Junk of {name}.") for name in ids]
        memory_rows.replace_sessions(tx, memory.owner, {key: [*held, *junk]})
    return ids


def listed(memory: Memory) -> list[str]:
    return sorted(each.id for each in memory.memories())


def test_what_newer_rules_would_not_keep_is_retired_by_a_note_and_can_be_undone(
    memory: Memory, root: Path, clock: Clock
) -> None:
    ingest(memory, root, *TALK)
    memory.process(now=True)
    before = listed(memory)
    junk = stale(memory)
    memory.pin(junk[0])
    clock.advance(60)
    report = memory.process(now=True, again=True)
    assert sorted(name for name, _ in report.retired) == junk[1:]
    assert listed(memory) == sorted([*before, junk[0]])
    notes = [path.read_text() for path in (memory.settings.home / "memory").glob("*--transcript.md")]
    assert sum(f"Retire {', '.join(junk[1:])}: " in each for each in notes) == 1
    assert memory.show(junk[1]).record["retired"]["why"].endswith("would not keep it")
    assert "Junk" not in (memory.settings.home / FILE).read_text().replace(f"Junk of {junk[0]}", "")
    rows = content(memory)
    empty(memory)
    assert memory.reindex().problems == [] and listed(memory) == sorted([*before, junk[0]])
    assert content(memory)["memory_sources"] == rows["memory_sources"]
    clock.advance(60)
    assert sorted(each.id for each in memory.restore()) == junk[1:] and memory.restore() == []
    assert listed(memory) == sorted([*before, *junk]) and content(memory)["memory_sources"] == rows["memory_sources"]
    empty(memory)
    assert memory.reindex().problems == [] and listed(memory) == sorted([*before, *junk])
    assert memory.process(now=True, again=True).claimed == 0


@pytest.mark.parametrize("how", ["pin", "correct", "remember", "feedback"])
def test_what_a_person_states_again_is_retired_no_more(memory: Memory, root: Path, clock: Clock, how: str) -> None:
    ingest(memory, root, *TALK)
    memory.process(now=True)
    (one,) = [each for each in memory.memories() if each.text == RULE]
    assert [each.id for each in memory.retire([one.id], "a test")] == [one.id]
    assert one.id not in listed(memory) and memory.retire([one.id], "again") == []
    clock.advance(60)
    say = {
        "pin": lambda: memory.pin(one.id),
        "correct": lambda: memory.correct(one.id, one.text),
        "remember": lambda: memory.remember(one.text, project="/code/tides"),
        "feedback": lambda: memory.feedback(one.id, "ok"),
    }
    say[how]()
    assert one.id in listed(memory)


def test_what_a_later_conversation_states_is_retired_no_more(memory: Memory, root: Path, clock: Clock) -> None:
    ingest(memory, root, *TALK)
    memory.process(now=True)
    (one,) = [each for each in memory.memories() if each.text == RULE]
    memory.retire([one.id], "a test")
    clock.advance(60)
    ingest(memory, root, RULE, "Understood.", "Thanks.", "You are welcome.", name=OTHER)
    memory.process(now=True)
    assert one.id in listed(memory)


def test_no_agent_retires_or_restores(memory: Memory, root: Path) -> None:
    ingest(memory, root, *TALK)
    memory.process(now=True)
    (one, *_) = memory.memories()
    for change in (memory.restore, partial(memory.retire, why="tidy")):
        with pytest.raises(NotForAgents):
            change([one.id], author=Author(Hand.AGENT, "/code/tides"))


def test_a_run_that_ends_before_its_note_is_read_retires_all_the_same(
    memory: Memory, root: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    ingest(memory, root, *TALK)
    memory.process(now=True)
    before, junk = listed(memory), stale(memory)
    clock.advance(60)

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(RetirementNote, "take_in", killed)
        memory.process(now=True, again=True)
    assert listed(memory) == sorted([*before, *junk])
    memory.ingest(folder=memory.settings.turns)
    memory.process()
    assert listed(memory) == before and [each.id for each in memory.restore()] == junk


# A deleted database

TABLES = {
    **ROWS,
    "memory_tombstones": "hash, source_path",
    "memory_feedback": "memory_id, ok, not_ok, user_reaction, last, revision",
    "memory_search_texts": "kind, ref, project_id, user_id, text",
    "memory_sums": "session_key, checksum",
}


def everything(memory: Memory) -> dict[str, Any]:
    """Every row that follows from files, MEMORY.md, and what agents may be told. What a person took back by going to an
    earlier turn, and a compaction whose text no agent tells, are in no file."""
    found: dict[str, Any] = {}
    unsaid = {"memory_transcript_entries": "WHERE withdrawn = 0", "memory_compactions": "WHERE summary <> ''"}
    with memory.database.read() as tx:
        for table, columns in TABLES.items():
            kept = unsaid.get(table, "")
            names = columns.split(", ")
            found[table] = [
                dict(zip(names, row, strict=True)) for row in tx.rows(f"SELECT {columns} FROM {table} {kept}")
            ]
    for row in found["memory_transcript_entries"]:
        row["content"], row["authors"] = as_written(row["content"], row["authors"])
    for rows in found.values():
        rows.sort(key=repr)
    found["MEMORY.md"] = (memory.settings.home / FILE).read_text()
    found["listed"] = listed(memory)
    return found


def differences(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    """Of each table the rows that are only here, and only there."""
    return {
        name: ([each for each in held if each not in after[name]], [each for each in after[name] if each not in held])
        for name, held in before.items()
        if held != after[name]
    }


def deleted(place: Place) -> None:
    """The database is gone, as a person would delete it."""
    if place.kind == "sqlite":
        for path in place.home.glob("recollect.db*"):
            path.unlink()
    else:
        with psycopg.connect(place.url, autocommit=True) as connection:
            connection.execute("DROP SCHEMA public CASCADE")
            connection.execute("CREATE SCHEMA public")


def lived(memory: Memory, root: Path, clock: Clock) -> None:
    """A home with all that it can hold."""
    for source in ("claude-code", "codex", "pi"):
        shutil.copytree(GOLDEN / source, root / source)
        memory.ingest(folder=root / source, source=source)
    answered(root, memory)
    worked = claude_talk(OUTCOME, "22222222-2222-4333-8444-555555555555")
    write(root / "-code-tides" / "22222222-2222-4333-8444-555555555555.jsonl", worked)
    gone = session("We decided to host the tides on tide-prod-9.", "Noted.", RULE, "Yes.", "Bye.", name=OTHER)
    write(root / "-code-tides" / f"{OTHER}.jsonl", gone)
    memory.ingest(folder=root)
    memory.process(now=True)
    stale(memory)
    clock.advance(3600)
    memory.process(now=True, again=True)
    said = [memory.remember(text, project="/code/tides") for text in ("Deploy on Mondays.", "Omar owns billing.")]
    said.append(memory.remember("Answer in English.", everywhere=True))
    clock.advance(60)
    memory.correct(said[0].id, "Deploy on Tuesdays.")
    memory.pin(said[1].id)
    memory.feedback(said[2].id, "not_ok", "sometimes in French")
    retired = memory.retire([each.id for each in memory.memories()[:3]], "a test")
    clock.advance(60)
    memory.restore([retired[0].id])
    memory.forget(session=OTHER)
    memory.process(now=True)


def claude_talk(lines: Sequence[bytes], session_id: str) -> bytes:
    return b"".join(lines).replace(SESSION.encode(), session_id.encode()).replace(b"11111111-", b"22222222-")


def test_a_deleted_database_comes_back_row_by_row(tables: Place, root: Path, clock: Clock) -> None:
    with open_memory(tables.home, database=tables.url, clock=clock) as memory:
        lived(memory, root, clock)
        memory.index()
        before = everything(memory)
        assert {*map(bool, before.values())} == {True}
        assert {each["source"] for each in before["memory_conversations"]} == {
            "claude-code",
            "codex",
            "pi",
            "recollect",
        }
    deleted(tables)
    with open_memory(tables.home, database=tables.url, clock=clock) as memory:
        assert memory.reindex().problems == []
        assert differences(before, everything(memory)) == {}
        assert memory.process(now=True, again=True).claimed == 0
        memory.ingest(folder=root)
        assert memory.process(now=True, again=True).claimed == 0
        assert memory.reindex(full=True).problems == []
        memory.ingest(folder=root)
        assert differences(before, everything(memory)) == {}


def test_the_command_tells_what_was_retired_and_undoes_it(memory: Memory, root: Path, clock: Clock) -> None:
    ingest(memory, root, *TALK)
    memory.process(now=True)
    junk = stale(memory)
    done = run(memory, "process", "--again", "--now")
    assert done.status == 0 and "3 memories retired:" in done.stdout and all(each in done.stdout for each in junk)
    assert "recollect process --again --undo" in done.stdout
    assert "retired on " in run(memory, "show", junk[0]).stdout
    assert run(memory, "process", "--undo").status == 2
    refused = run(memory, "process", "--again", "--undo", CLAUDECODE="1")
    assert refused.status != 0 and not {*junk} & {*listed(memory)}
    undone = run(memory, "process", "--again", "--undo", "--json").json
    assert sorted(name for name, _ in undone["restored"]) == junk and {*junk} <= {*listed(memory)}
    assert run(memory, "process", "--again", "--undo").stdout.strip() == "0 memories hold again."


def test_what_a_conversation_says_no_more_is_not_retired_but_gone(memory: Memory, root: Path, clock: Clock) -> None:
    """Neither where its messages are others now, nor where the same rules read it again."""
    path = ingest(memory, root, *TALK)
    memory.process(now=True)
    junk = stale(memory)
    with memory.database.write() as tx:
        tx.run("UPDATE memory_sources SET entry_uuid = 'gone' WHERE memory_id = :id", {"id": junk[0]})
        tx.run("DELETE FROM memory_sums")
    clock.advance(60)
    assert sorted(name for name, _ in memory.process(now=True, again=True).retired) == junk[1:]
    append(path, session("And Omar owns tide-prod-1.", "Noted.", first=20))
    memory.ingest(folder=root)
    report = memory.process(now=True)
    assert (report.claimed, report.retired) == (1, [])
    assert sorted(each.id for each in memory.restore()) == junk[1:] and junk[0] not in listed(memory)
