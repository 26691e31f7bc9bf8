"""Stage 1 end to end on real files and both databases: each entry once, whatever the files do."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from recollect.app import Memory, open_memory
from recollect.errors import Disabled, UnknownSource, UsageError
from recollect.ingest.gate import Gate
from recollect.ingest.run import KIND as INGEST
from recollect.ingest.scan import Ignore
from recollect.ingest.sources import get_source
from recollect.store import memories
from recollect.store.jobs import Jobs
from recollect.store.projects import Recorded
from recollect.types import ConversationStatus, Owner, Remembered, utc_now
from tests.command import Done, run
from tests.transcripts import (
    SESSION,
    START,
    append,
    claude,
    conversations,
    entries,
    file_states,
    stamp,
    talk,
    texts,
    write,
)


class Now:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.now = START + timedelta(days=1)

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def clock() -> Now:
    return Now()


@pytest.fixture
def memory(database_url: tuple[str, str, Path], clock: Now) -> Iterator[Memory]:
    _, url, home = database_url
    with open_memory(home, database=url, clock=clock) as opened:
        yield opened


@pytest.fixture
def file(root: Path) -> Path:
    return write(root / "-work-tides" / f"{SESSION}.jsonl", talk(1, 6))


def test_a_folder_longer_than_any_real_one_stops_nothing(memory: Memory, root: Path) -> None:
    cwd = "/code/" + "".join(f"{number}/" for number in range(3000))  # nothing that a database could compress
    said = [claude(n, f"we always check the tide table {n}", cwd=cwd) for n in range(1, 7)]
    write(root / "-work-tides" / f"{SESSION}.jsonl", b"".join(said))
    assert memory.ingest(folder=root).entries == 6
    (found,) = memory.conversations()
    assert found.project.startswith("/code/0/1/2/") and len(found.project) <= 512
    assert memory.process(now=True).succeeded == 1


def test_a_file_becomes_entries_and_a_conversation(memory: Memory, root: Path, file: Path) -> None:
    report = memory.ingest(folder=root)
    assert (report.files, report.entries, report.conversations, report.malformed) == (1, 6, 1, 0)
    assert texts(memory) == [f"message {n}" for n in range(1, 7)]
    assert conversations(memory) == [
        (f"-work-tides/{SESSION}.jsonl", f"{SESSION}@{stamp(60)}", stamp(360), 6, "ready", "/code/tides", "/code/tides")
    ]


def test_an_unchanged_file_is_not_read_again(memory: Memory, root: Path, file: Path) -> None:
    memory.ingest(folder=root)
    file.chmod(0)
    again = memory.ingest(folder=root)
    assert (again.files, again.skipped, again.entries, again.problems) == (0, 1, 0, [])


def test_an_append_is_read_from_the_offset(memory: Memory, root: Path, file: Path) -> None:
    memory.ingest(folder=root)
    append(file, talk(7, 8))
    report = memory.ingest(folder=root)
    assert (report.entries, report.bytes) == (2, len(talk(7, 8)))
    assert len(texts(memory)) == 8


def test_a_half_written_last_line_waits_for_its_end(memory: Memory, root: Path, file: Path) -> None:
    line = claude(7, "message 7")
    append(file, line[:40])
    assert memory.ingest(folder=root).entries == 6
    assert file_states(memory)[0][3] == len(talk(1, 6))
    append(file, line[40:])
    assert memory.ingest(folder=root).entries == 1
    assert texts(memory)[-1] == "message 7"


def test_a_last_record_without_a_newline_is_taken_once(memory: Memory, root: Path, file: Path) -> None:
    append(file, claude(7, "message 7").rstrip())
    assert memory.ingest(folder=root).entries == 7
    append(file, b"\n" + claude(8, "message 8") + b"broken\n")
    report = memory.ingest(folder=root)
    assert report.entries == 1
    assert [line.line_number for line in report.malformed_lines] == [9]
    assert memory.ingest(folder=root).files == 0


def test_conversations_split_where_the_talk_pauses(memory: Memory, root: Path) -> None:
    lines = [claude(n, f"m{n}", at=n * 60 + (7200 if n > 3 else 0)) for n in range(1, 7)]
    write(root / "-p" / f"{SESSION}.jsonl", b"".join(lines))
    memory.ingest(folder=root)
    assert [(row[1], row[3]) for row in conversations(memory)] == [
        (f"{SESSION}@{stamp(60)}", 3),
        (f"{SESSION}@{stamp(7440)}", 3),
    ]


def test_another_gap_splits_what_is_stored_anew(
    memory: Memory, database_url: tuple[str, str, Path], root: Path, clock: Now
) -> None:
    """What it leaves as it was stays as it is, and a file that is being read is split when it is free."""
    _, url, home = database_url
    write(
        root / "-p" / f"{SESSION}.jsonl", talk(1, 6) + b"".join(claude(n, f"m{n}", at=5400 + n) for n in range(7, 13))
    )
    write(root / "-p" / f"{SESSION[::-1]}.jsonl", talk(1, 6, SESSION[::-1]))
    memory.ingest(folder=root)
    memory.process()
    before = conversations(memory)
    for gap, counts in ((120, [6, 12]), (120, [6, 12]), (60, [6, 6, 6])):
        with open_memory(home, database=url, clock=clock, conversation_gap_minutes=gap) as other:
            jobs, key = Jobs(other.owner, clock=clock), f"claude-code/-p/{SESSION}.jsonl"
            with other.database.write() as tx:
                jobs.enqueue(tx, INGEST, [(key, f"held {gap}")])
                leases = jobs.claim(tx, INGEST, limit=1, keys=[key])
            split = conversations(other)
            other.ingest(folder=root)
            assert conversations(other) == split
            with other.database.write() as tx:
                jobs.complete(tx, *leases)
            other.ingest(folder=root)
            assert sorted(each.entry_count for each in other.conversations()) == counts
            assert before[-1] in conversations(other), "it is as it was, and so it is not extracted again"
            other.process()
    assert [row[:4] for row in conversations(memory)] == [row[:4] for row in before]


def test_conversations_split_where_the_session_changes(memory: Memory, root: Path) -> None:
    other = "99999999-2222-4333-8444-555555555555"
    lines = [claude(n, f"m{n}", session=SESSION if n % 2 else other) for n in range(1, 9)]
    write(root / "-p" / f"{SESSION}.jsonl", b"".join(lines))
    memory.ingest(folder=root)
    assert [row[3] for row in conversations(memory)] == [4, 4]


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    gaps=st.lists(st.sampled_from([0, 1, 30, 3600, 3601, 9000, -600, -9000]), min_size=1, max_size=25),
    cuts=st.sets(st.integers(1, 24)),
)
def test_any_order_and_any_split_of_appends_gives_what_a_straight_import_gives(
    tmp_path_factory: pytest.TempPathFactory, gaps: list[int], cuts: set[int]
) -> None:
    """SQLite only: the rules are pure, the statements are tested on both elsewhere."""
    base = tmp_path_factory.mktemp("split")
    at, lines = 100_000, []
    for number, gap in enumerate(gaps):
        at += gap
        lines.append(claude(number, f"m{number}", at=at, session=SESSION if number % 5 else "other-session"))
    path = base / "a" / "-p" / f"{SESSION}.jsonl"
    environ = {"HOME": str(base)}
    with open_memory(base / "one", environ=environ) as pieces, open_memory(base / "two", environ=environ) as whole:
        write(path, b"")
        for number, line in enumerate(lines):
            append(path, line)
            if number in cuts:
                pieces.ingest(folder=base / "a")
        pieces.ingest(folder=base / "a")
        whole.ingest(folder=base / "a")
        assert entries(pieces) == entries(whole)
        assert conversations(pieces) == conversations(whole)


def test_a_finished_conversation_reopens_when_it_gains_entries(memory: Memory, root: Path, file: Path) -> None:
    memory.ingest(folder=root)
    for status in ("archived", "skipped", "processing"):
        with memory.database.write() as tx:
            tx.run("UPDATE memory_conversations SET status = :status", {"status": status})
        number = len(texts(memory)) + 1
        append(file, talk(number, number))
        memory.intake.take([file])
        (conversation,) = memory.conversations()
        assert (conversation.status, conversation.entry_count) == (ConversationStatus.ACTIVE, number)
        assert status in conversation.status_reason


def test_a_conversation_becomes_ready_when_it_was_silent_for_the_gap(
    memory: Memory, root: Path, file: Path, clock: Now
) -> None:
    clock.now = START + timedelta(seconds=360, minutes=59)
    memory.ingest(folder=root)
    assert memory.conversations()[0].status is ConversationStatus.ACTIVE
    clock.now += timedelta(minutes=1)
    assert memory.intake.mark_ready() == 1
    assert memory.conversations()[0].status is ConversationStatus.READY


@pytest.mark.parametrize(
    ("words", "status"),
    [
        ("hello there", "skipped"),
        ("never mind", "skipped"),
        ("look at this mail:\n\nDear all,\n\nNever push to main.\n\nRegards", "skipped"),
        ("please remember the port is 8080", "ready"),
        ("Never push to main.", "ready"),
        ("You should always use the sandbox.", "ready"),
        ("from now on, name branches after their tickets", "ready"),
        ("ab sofort nehmen wir pnpm", "ready"),
    ],
)
def test_a_short_conversation_is_skipped_unless_the_user_stated_a_rule(
    memory: Memory, root: Path, words: str, status: str
) -> None:
    write(root / "-p" / f"{SESSION}.jsonl", claude(1, words) + claude(2, "never mind", role="assistant"))
    memory.ingest(folder=root)
    (conversation,) = memory.conversations()
    assert conversation.status == status
    assert ("too short" in conversation.status_reason) == (status == "skipped")


@pytest.mark.parametrize(("said", "status"), [("use the sandbox", "ready"), ("", "skipped")])
def test_a_short_conversation_counts_when_the_user_refused_a_call_with_a_reason(
    memory: Memory, root: Path, said: str, status: str
) -> None:
    why = f"The user doesn't want to proceed with this tool use. To tell you how, the user said:\n{said}"
    block = {"type": "tool_result", "tool_use_id": "t", "is_error": True, "content": why}
    refusal = claude(2, "", message={"role": "user", "content": [block]}, toolDenialKind="user-rejected")
    write(root / "-p" / f"{SESSION}.jsonl", claude(1, "hello there") + refusal)
    memory.ingest(folder=root)
    assert [str(each.status) for each in memory.conversations()] == [status]


@pytest.mark.parametrize(("answers", "status"), [({"Which database?": "Postgres"}, "ready"), ({}, "skipped")])
def test_a_short_conversation_counts_when_the_user_answered_a_question(
    memory: Memory, root: Path, answers: dict[str, str], status: str
) -> None:
    call = {
        "type": "tool_use",
        "id": "t",
        "name": "AskUserQuestion",
        "input": {"questions": [{"question": "Which database?"}]},
    }
    asked = claude(2, "", role="assistant", message={"id": "m", "content": [call]})
    block = {"type": "tool_result", "tool_use_id": "t", "content": "Your questions have been answered: ..."}
    told = claude(3, "", message={"role": "user", "content": [block]}, toolUseResult={"answers": answers})
    write(root / "-p" / f"{SESSION}.jsonl", claude(1, "hello there") + asked + told)
    memory.ingest(folder=root)
    assert [str(each.status) for each in memory.conversations()] == [status]


def test_a_backup_and_the_live_file_are_one(memory: Memory, tmp_path: Path, file: Path, root: Path) -> None:
    backup = write(tmp_path / "projects-backup" / "-work-tides" / file.name, talk(1, 4))
    assert memory.ingest(file=backup).entries == 4
    assert memory.ingest(folder=root).entries == 2
    assert [row[1] for row in file_states(memory)] == [f"-work-tides/{SESSION}.jsonl"]
    memory.ingest(file=backup)
    memory.ingest(folder=root)
    assert len(texts(memory)) == 6
    assert len(memory.conversations()) == 1


def test_history_copied_into_a_fork_is_not_doubled(memory: Memory, root: Path, file: Path) -> None:
    fork = "77777777-2222-4333-8444-555555555555"
    own = claude(50, "only in the fork", session=fork, at=500)
    write(root / "-a-fork" / f"{fork}.jsonl", talk(1, 6) + own)  # read before the original
    memory.ingest(folder=root)
    assert sorted(texts(memory)) == sorted([*(f"message {n}" for n in range(1, 7)), "only in the fork"])
    files = {row[4]: row[2] for row in entries(memory)}
    assert files["message 1"].endswith(f"{SESSION}.jsonl"), "the file named after the session owns its entries"
    assert sorted(row[3] for row in conversations(memory)) == [1, 6]


def test_what_a_fork_says_it_copied_is_not_its_own_whichever_file_comes_first(
    memory: Memory, root: Path, file: Path
) -> None:
    fork = "77777777-2222-4333-8444-555555555555"
    roles = ("assistant", "user")
    copies = b"".join(
        claude(n, f"message {n}", role=roles[n % 2], sessionId=fork, forkedFrom={"sessionId": SESSION})
        for n in range(1, 7)
    )
    write(root / "-a-fork" / f"{fork}.jsonl", copies + claude(50, "only in the fork", session=fork, at=500))
    memory.ingest(folder=root)
    assert {row[1]: row[3] for row in conversations(memory)} == {f"{SESSION}@{stamp(60)}": 6, f"{fork}@{stamp(500)}": 1}
    assert {row[2] for row in entries(memory) if row[1] == SESSION} == {f"-work-tides/{SESSION}.jsonl"}


@pytest.mark.parametrize("suffix", [".jsonl", ".jsonl.zst"])
def test_a_file_of_many_commits_is_read_whole(
    memory: Memory, root: Path, suffix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("recollect.ingest.run._ENTRIES", 3000)
    lines = b"".join(claude(n, f"message {n} " + "words " * (n % 70), at=n) for n in range(1, 13_001))
    data = zstandard.compress(lines) if suffix.endswith("zst") else lines
    write(root / "-p" / f"{SESSION}{suffix}", data)
    report = memory.ingest(folder=root)
    assert (report.entries, report.malformed, report.bytes) == (13_000, 0, len(lines))
    stored = entries(memory)
    offsets = {row[0]: row[9] for row in stored}
    assert offsets[f"{SESSION[:8]}-013000"] == len(lines) - len(lines.splitlines(keepends=True)[-1])
    assert [row[3] for row in conversations(memory)] == [13_000]


def test_a_file_that_shrank_starts_a_new_generation_and_loses_nothing(memory: Memory, root: Path, file: Path) -> None:
    memory.ingest(folder=root)
    file.write_bytes(talk(1, 2) + claude(90, "after the cut", at=400))
    memory.ingest(folder=root)
    assert texts(memory) == [*(f"message {n}" for n in range(1, 7)), "after the cut"]
    assert file_states(memory)[0][6] == 2


def test_a_file_replaced_by_a_longer_one_is_read_from_its_beginning(memory: Memory, root: Path, file: Path) -> None:
    memory.ingest(folder=root)
    new = b"".join(claude(n, f"another {n}", at=9000 + n) for n in range(100, 120))
    other = write(root / "-work-tides" / "tmp", new)
    other.replace(file)
    report = memory.ingest(folder=root)
    assert report.entries == 20
    assert len(texts(memory)) == 26


def test_a_rewrite_in_place_while_it_is_read_loses_nothing(
    memory: Memory, root: Path, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("recollect.ingest.tail.CHUNK", 400)
    monkeypatch.setattr("recollect.ingest.run._ENTRIES", 2)
    new = b"".join(claude(n, f"another {n}", at=9000 + n) for n in range(100, 112))

    def rewrite(size: int, count: int) -> None:
        if file.read_bytes() != new:
            file.write_bytes(new)

    memory.ingest(folder=root, progress=rewrite)
    memory.ingest(folder=root)
    assert {f"another {n}" for n in range(100, 112)} <= set(texts(memory))
    assert memory.ingest(folder=root).files == 0


def test_a_rewrite_in_place_that_keeps_head_and_size_is_noticed(memory: Memory, root: Path, file: Path) -> None:
    memory.ingest(folder=root)
    data = file.read_bytes()
    changed = data[: len(talk(1, 5))] + claude(6, "message X", role="assistant", at=361)
    file.write_bytes(changed.replace(b"-000006", b"-00000X"))
    memory.ingest(folder=root)
    assert "message X" in texts(memory)


def test_a_file_rewritten_with_other_ids_is_not_doubled(memory: Memory, root: Path, file: Path) -> None:
    """Pi does so with its old files when it opens them."""
    append(file, claude(7, "go on", at=400) + claude(8, "go on", at=400))
    memory.ingest(folder=root)
    file.write_bytes(file.read_bytes().replace(b"11111111-0", b"99999999-0") + claude(9, "one more"))
    report = memory.ingest(folder=root)
    assert report.entries == 1
    assert texts(memory) == [*(f"message {n}" for n in range(1, 7)), "go on", "go on", "one more"]
    assert [row[3] for row in conversations(memory)] == [9]


@pytest.mark.parametrize("again", [False, True], ids=["at once", "after it was processed again"])
def test_a_memory_follows_its_messages_to_their_other_ids(memory: Memory, root: Path, again: bool) -> None:
    said = ["please remember: always use pnpm here, never npm.", "Deploys only ever happen from the main branch."]
    lines = [
        claude(n, text, role=role)
        for n, (role, text) in enumerate(zip(("user", "assistant") * 3, said * 3, strict=True), 1)
    ]
    file = write(root / "-p" / f"{SESSION}.jsonl", b"".join(lines))
    memory.ingest(folder=root)
    memory.process(now=True)
    (known,) = {each.id for each in _memories(memory) if "pnpm" in each.text}
    file.write_bytes(file.read_bytes().replace(b"11111111-0", b"99999999-0"))
    memory.ingest(folder=root)
    (talk,) = memory.conversations()
    assert talk.status is ConversationStatus.READY, "its files name the old ids"
    if again:
        memory.process(now=True)
    assert {uuid[:8] for each in _memories(memory) for _, uuid in each.sources} == {"99999999"}
    assert memory.forget(memory=known, reason="private").memories == [known]
    assert not any("pnpm" in text for text in texts(memory))


def _memories(memory: Memory) -> list[Remembered]:
    with memory.database.read() as tx:
        ids = [each for (each,) in tx.rows("SELECT DISTINCT memory_id FROM memory_memories")]
        return memories.find(tx, memory.owner, ids)


def test_reimport_reads_from_the_beginning_and_drops_what_is_gone(memory: Memory, root: Path, file: Path) -> None:
    memory.ingest(folder=root)
    with memory.database.write() as tx:
        tx.run("UPDATE memory_conversations SET status = 'archived'")
    report = memory.ingest(folder=root, reimport=True)
    assert (report.files, report.entries) == (1, 0)
    assert memory.conversations()[0].status is ConversationStatus.ARCHIVED, "unchanged: not extracted again"
    file.write_bytes(talk(1, 4))
    memory.ingest(folder=root, reimport=True)
    assert texts(memory) == [f"message {n}" for n in range(1, 5)]
    assert [row[3] for row in conversations(memory)] == [4]
    assert memory.ingest(folder=root).files == 0


def test_a_reimport_of_an_older_backup_says_what_would_go_and_needs_a_yes(
    memory: Memory, root: Path, file: Path, tmp_path: Path
) -> None:
    memory.ingest(folder=root)
    append(file, talk(7, 9) + claude(10, "message 1", at=60.0))
    memory.ingest(folder=root)
    older = tmp_path / "backup" / file.relative_to(root)

    def again(*more: str) -> Done:
        database = memory.settings.config.database
        return run(
            memory.settings.home, "ingest", str(tmp_path / "backup"), "--reimport", *more, RECOLLECT_DATABASE=database
        )

    write(older, file.read_bytes().replace(b"-000001", b"-rewritten"))
    assert again().status == 0 and len(texts(memory)) == 10, "with other ids, and as much"
    write(older, talk(1, 6))
    for more in ((), ("--json",)):
        done = again(*more)
        assert done.status == 2 and len(texts(memory)) == 10
        told = done.json["error"]["message"] if more else done.stderr
        assert "4 messages" in told and str(older) in told and stamp(540)[:10] in told
    assert again("--yes").status == 0 and texts(memory) == [f"message {n}" for n in range(1, 7)]
    assert again().status == 0


@pytest.mark.parametrize("ids", [{}, {"uuid": None}], ids=["with ids", "whose ids are hashes"])
def test_a_reimport_that_changes_a_text_reopens_its_conversation_only(
    memory: Memory, root: Path, ids: dict[str, None]
) -> None:
    lines = [claude(n, f"m{n}", at=n * 60 + (7200 if n > 6 else 0), **ids) for n in range(1, 13)]
    path = write(root / "-p" / f"{SESSION}.jsonl", b"".join(lines))
    memory.ingest(folder=root)
    with memory.database.write() as tx:
        tx.run("UPDATE memory_conversations SET status = 'archived'")
    path.write_bytes(path.read_bytes().replace(b'"m9"', b'"another"'))
    memory.intake.ingest(folder=root, reimport=True)
    assert texts(memory)[8] == "another"
    assert [row[4] for row in conversations(memory)] == ["archived", "ready"]


def test_lines_that_cannot_be_understood_are_reported_with_their_numbers(memory: Memory, root: Path) -> None:
    data = talk(1, 2) + b'{"half": \n\n[1]\n' + talk(3, 4) + b"{}\n"
    write(root / "-p" / f"{SESSION}.jsonl", data)
    report = memory.ingest(folder=root)
    assert (report.entries, report.malformed) == (4, 3)
    assert [(line.file_path, line.line_number) for line in report.malformed_lines] == [
        (f"-p/{SESSION}.jsonl", number) for number in (3, 5, 8)
    ]
    named = " ".join(trouble.problem for trouble in memory.health().problems)
    assert f"-p/{SESSION}.jsonl:5" in named


def test_numbers_of_malformed_lines_count_from_the_beginning_after_an_append(
    memory: Memory, root: Path, file: Path
) -> None:
    memory.ingest(folder=root)
    append(file, b"nonsense\n")
    assert [line.line_number for line in memory.ingest(folder=root).malformed_lines] == [7]


@pytest.mark.parametrize(
    "broken",
    [b"caf\xe9", b"x\x00y", b"\\ud83d alone", b"\\u0000 escaped"],
    ids=["bad utf-8", "NUL byte", "half a surrogate pair", "NUL escape"],
)
def test_a_message_with_broken_characters_is_kept(memory: Memory, root: Path, broken: bytes) -> None:
    line = claude(2, "MARK and more", role="assistant").replace(b"MARK", broken)
    write(root / "-p" / f"{SESSION}.jsonl", claude(1, "one") + line + claude(3, "three"))
    report = memory.ingest(folder=root)
    assert report.entries == 3
    kept = texts(memory)[1]
    assert kept.endswith("and more") and "\0" not in kept
    assert all("kept with replacement" in each.reason for each in report.malformed_lines)


def test_ids_that_no_index_would_take_are_hashed(memory: Memory, root: Path) -> None:
    long = "x" * 20_000
    lines = [claude(n, f"m{n}", uuid=f"{long}{n}", sessionId=long) for n in range(1, 7)]
    path = write(root / "-p" / f"{SESSION}.jsonl", b"".join(lines))
    assert memory.ingest(folder=root).entries == 6
    assert memory.ingest(file=path, reimport=True).entries == 0
    assert [row[3] for row in conversations(memory)] == [6]


def test_hostile_nesting_is_a_malformed_line(memory: Memory, root: Path) -> None:
    deep = b"[" * 100_000 + b"]" * 100_000
    lines = [
        deep,
        b'{"type":"user","uuid":"x","timestamp":"2026-03-02T09:00:00Z","message":' + deep + b"}",
        b'{"a":' * 50_000 + b"1" + b"}" * 50_000,
    ]
    write(root / "-p" / f"{SESSION}.jsonl", talk(1, 2) + b"\n".join(lines) + b"\n" + talk(3, 4) + lines[2])
    report = memory.ingest(folder=root)
    assert (report.entries, report.malformed) == (4, 3)


def test_a_line_of_100_mb_is_passed_over_in_bounded_memory(memory: Memory, root: Path) -> None:
    path = write(root / "-p" / f"{SESSION}.jsonl", claude(1, "before"))
    with path.open("ab") as out:
        out.write(b'{"type":"user","message":{"content":"')
        for _ in range(100):
            out.write(b"a" * 1_000_000)
        out.write(b'"}}\n')
    append(path, claude(2, "after"))
    report = memory.ingest(folder=root)
    assert texts(memory) == ["before", "after"]
    assert [(line.line_number, line.reason) for line in report.malformed_lines] == [
        (2, "longer than 16 MB, passed over")
    ]
    assert memory.ingest(folder=root).files == 0


def test_odd_files_have_a_defined_outcome(memory: Memory, root: Path, file: Path) -> None:
    write(root / "-p" / "empty.jsonl", b"")
    write(root / "-p" / "notes.jsonl", b'{"a": 1}\n{"b": 2}\n')
    write(root / "-p" / "binary.jsonl", bytes(range(256)) * 100)
    write(root / "folder.jsonl" / "inside.jsonl", talk(20, 21, "aaaaaaaa-0000-4000-8000-000000000000"))
    (root / "loop").symlink_to(root)
    (root / "-p" / "nowhere.jsonl").symlink_to(root / "missing")
    (root / "-p" / "self.jsonl").symlink_to("self.jsonl")
    os.mkfifo(root / "-p" / "pipe.jsonl")
    report = memory.ingest(folder=root)
    assert (report.files, report.entries) == (2, 8)
    assert all("nowhere" in each.path or "self" in each.path for each in report.problems)
    again = memory.ingest(folder=root)
    assert (again.files, again.entries) == (0, 0)


def test_a_name_that_is_not_utf8_is_a_problem_and_the_rest_is_taken(memory: Memory, root: Path, file: Path) -> None:
    odd = write(root / os.fsdecode(b"caf\xe9.jsonl"), talk(20, 21, "aaaaaaaa-0000-4000-8000-000000000000"))
    write(root / os.fsdecode(b"fold\xe9r") / "inside.jsonl", odd.read_bytes())
    (root / os.fsdecode(b"l\xefnk.jsonl")).symlink_to(root / "missing")
    report = memory.ingest(folder=root)
    assert (report.files, report.entries) == (1, 6)
    assert [(each.path, each.reason) for each in report.problems] == [
        (rf"{root}/caf\xe9.jsonl", "its name is not UTF-8"),
        (rf"{root}/fold\xe9r", "its name is not UTF-8"),
        (rf"{root}/l\xefnk.jsonl", "No such file or directory"),
    ]
    assert memory.ingest(folder=root, reimport=True).entries == 0
    append(file, talk(7, 8))
    for report in (memory.ingest(file=odd), memory.intake.take([odd, file])):
        assert [each.path for each in report.problems] == [rf"{root}/caf\xe9.jsonl"]
    assert report.entries == 2


def test_a_file_without_permission_is_a_problem_and_taken_later() -> None:
    """Root may read everything, so root becomes nobody for a while (after everything was imported)."""
    with tempfile.TemporaryDirectory() as name, open_memory(Path(name) / "home", environ={"HOME": name}) as memory:
        base, user = Path(name), os.geteuid()
        path = write(base / "projects" / "-p" / f"{SESSION}.jsonl", talk(1, 6))
        other = write(base / "projects" / "-p" / "99999999-2222-4333-8444-555555555555.jsonl", talk(1, 1, "9" * 36))
        assert memory.ingest(file=other).entries == 1
        path.chmod(0)
        try:
            if user == 0:
                for each in (base, *base.rglob("*")):
                    os.chown(each, 65534, 65534)
                os.seteuid(65534)
            report = memory.ingest(folder=base / "projects")
            assert [each.reason for each in report.problems] == ["Permission denied"]
            path.chmod(0o600)
            assert memory.ingest(folder=base / "projects").entries == 6
        finally:
            os.seteuid(user)


def test_a_file_that_fails_while_it_is_read_is_a_problem_and_taken_later(
    memory: Memory, root: Path, file: Path
) -> None:
    """It vanished between the scan and the reading: what any failing read amounts to."""
    from recollect.ingest.run import Report, Work
    from recollect.ingest.scan import look
    from recollect.ingest.sources import get_source

    found = look(file, root)
    assert found is not None
    data = file.read_bytes()
    file.unlink()
    report = Report()
    memory.intake._runner(memory.intake._gate()).run([Work(found, get_source("claude-code"))], report)
    assert [each.reason for each in report.problems] == ["No such file or directory"]
    assert [job.status for job in memory.status().waiting] == ["backing_off"]
    assert [row[2] for row in file_states(memory)] == ["idle"]
    write(file, data)
    assert memory.ingest(folder=root).entries == 6


def test_a_transcript_that_vanished_is_not_forgotten(memory: Memory, root: Path, file: Path) -> None:
    memory.ingest(folder=root)
    file.unlink()
    memory.ingest(folder=root)
    assert len(texts(memory)) == 6


def test_compressed_and_archived_rollouts_are_not_doubled(memory: Memory, tmp_path: Path) -> None:
    session = "0199aaaa-bbbb-7ccc-8ddd-eeeeffff0001"
    lines = [
        {"timestamp": stamp(0), "type": "session_meta", "payload": {"id": session, "cwd": "/code/x", "source": "cli"}}
    ]
    for number in range(1, 7):
        role, kind = ("user", "input_text") if number % 2 else ("assistant", "output_text")
        payload = {"type": "message", "role": role, "content": [{"type": kind, "text": f"codex {number}"}]}
        lines.append({"timestamp": stamp(number), "type": "response_item", "payload": payload})
    data = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
    sessions = tmp_path / "codex" / "sessions" / "2026" / "03" / "02"
    path = write(sessions / f"rollout-2026-03-02T09-00-00-{session}.jsonl", data)
    assert memory.ingest(folder=tmp_path / "codex" / "sessions").entries == 6
    write(path.with_suffix(".jsonl.zst"), zstandard.compress(data))
    assert memory.ingest(folder=tmp_path / "codex" / "sessions").files == 0, "the plain file goes first"
    path.unlink()
    again = memory.ingest(folder=tmp_path / "codex" / "sessions")
    assert (again.files, again.entries) == (1, 0)
    write(tmp_path / "codex" / "archived_sessions" / path.name, data)
    assert memory.ingest(folder=tmp_path / "codex" / "archived_sessions").entries == 0
    assert [row[3] for row in conversations(memory)] == [6]


def test_a_compressed_file_that_is_still_being_written_is_read_as_far_as_it_goes(memory: Memory, root: Path) -> None:
    data = zstandard.compress(talk(1, 6))
    path = write(root / "-p" / f"{SESSION}.jsonl.zst", data[:-12])
    memory.ingest(folder=root)
    path.write_bytes(data)
    memory.ingest(folder=root)
    assert len(texts(memory)) == 6


def test_a_codex_fork_drops_what_it_copied_whichever_file_comes_first(memory: Memory, tmp_path: Path) -> None:
    parent, fork = "0199aaaa-bbbb-7ccc-8ddd-eeeeffff0001", "0199aaaa-bbbb-7ccc-8ddd-eeeeffff0002"

    def rollout(session: str, words: list[str], late: int, **meta: str) -> bytes:
        lines = [{"timestamp": stamp(late), "type": "session_meta", "payload": {"id": session, "cwd": "/w", **meta}}]
        for number, text in enumerate(words, 1):
            role, kind = ("user", "input_text") if number % 2 else ("assistant", "output_text")
            payload = {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}
            lines.append({"timestamp": stamp(late + number), "type": "response_item", "payload": payload})
        return b"".join(json.dumps(line).encode() + b"\n" for line in lines)

    folder = tmp_path / "sessions"
    copied = ["one", "two", "three", "four"]
    write(
        folder / "2026/03/01" / f"rollout-2026-03-01T09-00-00-{fork}.jsonl",
        rollout(fork, [*copied, "mine", "yours"], 900, forked_from_id=parent),
    )
    write(folder / "2026/03/02" / f"rollout-2026-03-02T09-00-00-{parent}.jsonl", rollout(parent, copied, 0))
    report = memory.ingest(folder=folder)
    assert report.files == 2
    assert sorted(texts(memory)) == sorted([*copied, "mine", "yours"])


def test_a_copied_message_that_is_amended_later_does_not_become_the_forks_own() -> None:
    from recollect.ingest.forks import ForkState, drop_copied
    from recollect.types import Entry, Role, Timestamp

    def entry(uuid: str, text: str) -> Entry:
        return Entry(uuid, "s", Role.ASSISTANT, text, Timestamp(stamp(0)), 0)

    parent = [("assistant", "a", False), ("assistant", "b", False)]
    own, state = drop_copied([entry("1", "a")], parent, ForkState())
    assert (own, state.matched) == ([], 1)
    own, state = drop_copied([entry("1", "a (failed)"), entry("2", "b"), entry("3", "mine")], parent, state)
    assert [each.uuid for each in own] == ["3"]
    assert (state.matched, state.done) == (2, True)


def test_a_state_of_another_version_means_reading_from_the_beginning(memory: Memory, root: Path, file: Path) -> None:
    memory.ingest(folder=root)
    with memory.database.write() as tx:
        tx.run("UPDATE memory_file_states SET parser_state = :state", {"state": '{"fold": {"open": 7}, "fork": {}}'})
    append(file, talk(7, 8))
    report = memory.ingest(folder=root)
    assert (report.entries, report.problems) == (2, [])
    assert texts(memory) == [f"message {n}" for n in range(1, 9)]


def test_ignored_files_and_projects_are_neither_read_nor_stored(
    database_url: tuple[str, str, Path], root: Path, tmp_path: Path
) -> None:
    _, url, home = database_url
    for number, cwd in enumerate(("/code/open", "/code/secret", "/code/secret/deep", "/code/client-x/api"), 1):
        session = f"{number:08d}-0000-4000-8000-000000000000"
        data = b"".join(claude(n, f"{cwd} {n}", session=session, cwd=cwd) for n in range(1, 7))
        write(root / cwd.replace("/", "-") / f"{session}.jsonl", data)
    write(root / "-private" / f"{SESSION}.jsonl", talk(1, 6))
    options = {"ignore": ["**/-private", "/code/client-*/**"], "disabled_projects": ["/code/secret"]}
    with open_memory(home, database=url, **options) as memory:
        memory.ingest(folder=root)
        assert {row[7] for row in entries(memory)} == {"/code/open"}
        with memory.database.read() as tx:
            assert tx.rows("SELECT cwd FROM memory_projects") == [("/code/open",)]
            stored = repr(tx.rows("SELECT file_path, parser_state FROM memory_file_states"))
        assert "/code/secret 1" not in stored and "-private" not in stored


def test_a_project_that_is_switched_on_again_is_read(
    database_url: tuple[str, str, Path], root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, url, home = database_url
    monkeypatch.setattr("recollect.ingest.tail.CHUNK", 400)
    monkeypatch.setattr("recollect.ingest.run._ENTRIES", 2)
    lines = [claude(n, f"m{n}", cwd="/code/secret" if n < 4 else "/code/open") for n in range(1, 9)]
    path = write(root / "-p" / f"{SESSION}.jsonl", b"".join(lines))
    other = "99999999-2222-4333-8444-555555555555"
    write(root / "-code-secret" / f"{other}.jsonl", claude(99, "m99", session=other, cwd="/code/secret"))
    opened: list[int] = []
    with open_memory(home, database=url, disabled_projects=["/code/secret"]) as memory:
        memory.ingest(folder=root)
        append(path, claude(9, "m9", cwd="/code/secret"))
        memory.ingest(folder=root)
        assert texts(memory) == [f"m{n}" for n in range(4, 9)]
        memory.ingest(folder=root, expect=lambda size, count: opened.append(count))
        assert opened == [0], "what is off is not looked at again"
    with open_memory(home, database=url) as memory:
        memory.ingest(folder=root)
        assert texts(memory) == ["m99", *(f"m{n}" for n in range(1, 10))]
        assert [row[3] for row in conversations(memory)] == [1, 9]
        assert memory.ingest(folder=root).files == 0


def test_transcripts_of_processes_that_recollect_started_are_not_taken_in(memory: Memory, root: Path) -> None:
    inside = str(memory.settings.home / "agents" / "run")
    write(root / "-p" / f"{SESSION}.jsonl", b"".join(claude(n, "own", cwd=inside) for n in range(1, 7)))
    write(memory.settings.home / "stray" / f"{SESSION}.jsonl", talk(1, 6))
    memory.ingest(folder=root)
    memory.ingest(folder=memory.settings.home.parent / memory.settings.home.name)
    assert texts(memory) == []


def test_switched_off_means_off(database_url: tuple[str, str, Path], root: Path, file: Path) -> None:
    _, url, home = database_url
    with open_memory(home, database=url, enabled=False) as memory:
        with pytest.raises(Disabled):
            memory.ingest(folder=root)
        assert texts(memory) == []


def test_two_agents_share_nothing(database_url: tuple[str, str, Path], root: Path, file: Path) -> None:
    _, url, home = database_url
    with open_memory(home, database=url, agent_id="a") as a, open_memory(home, database=url, agent_id="b") as b:
        assert a.ingest(folder=root).entries == 6
        assert (texts(b), b.conversations(), b.status().tables["memory_jobs"]) == ([], [], 0)
        assert b.ingest(folder=root).entries == 6
        append(file, talk(7, 7))
        assert a.ingest(folder=root).entries == 1
        assert (len(texts(a)), len(texts(b))) == (7, 6)


@pytest.mark.parametrize("name", ["missing.jsonl", "-work-tides"])
def test_a_wrong_path_is_an_error_that_says_so(memory: Memory, root: Path, file: Path, name: str) -> None:
    with pytest.raises(UsageError, match=r"no such file|use --dir"):
        memory.ingest(file=root / name)
    with pytest.raises(UsageError, match=r"no such folder|use --file"):
        memory.ingest(folder=root / "missing")
    with pytest.raises(UnknownSource):
        memory.ingest(folder=root, source="cluade")


CODEX = "0199aaaa-bbbb-7ccc-8ddd-eeeeffff0009"
ROLLOUT = f"rollout-2026-03-02T09-00-00-{CODEX}.jsonl"
META = (
    json.dumps({"timestamp": stamp(0), "type": "session_meta", "payload": {"id": CODEX, "cwd": "/w"}}).encode() + b"\n"
)
ROLLED_BACK = {"timestamp": stamp(9), "type": "event_msg", "payload": {"type": "thread_rolled_back", "num_turns": 1}}
ROLLBACK = json.dumps(ROLLED_BACK).encode() + b"\n"


def codex(*numbers: int) -> bytes:
    lines = []
    for number in numbers:
        role, kind = ("user", "input_text") if number % 2 else ("assistant", "output_text")
        payload = {"type": "message", "role": role, "content": [{"type": kind, "text": f"m{number}"}]}
        lines.append({"timestamp": stamp(number), "type": "response_item", "payload": payload})
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def pi(number: int, above: int | None) -> bytes:
    message = {"role": "user" if number % 2 else "assistant", "content": [{"type": "text", "text": f"m{number}"}]}
    parent = f"n{above}" if above else None
    record = {"type": "message", "id": f"n{number}", "parentId": parent, "timestamp": stamp(number), "message": message}
    return json.dumps(record).encode() + b"\n"


def test_rolled_back_entries_leave_counts_but_stay_stored(memory: Memory, tmp_path: Path) -> None:
    path = write(tmp_path / "s" / ROLLOUT, META + codex(*range(1, 7)))
    memory.ingest(file=path)
    append(path, ROLLBACK)
    memory.ingest(file=path)
    assert texts(memory) == ["m1", "m2", "m3", "m4"]
    assert len(entries(memory)) == 6
    assert [row[3] for row in conversations(memory)] == [4]
    with memory.database.write() as tx:
        tx.run("UPDATE memory_conversations SET status = 'archived'")
    memory.intake.ingest(file=path, reimport=True)
    assert [row[3:5] for row in conversations(memory)] == [(4, "archived")], "nothing changed"


@pytest.mark.parametrize("reimport", [False, True])
def test_what_a_restored_file_did_not_roll_back_is_there_again(memory: Memory, tmp_path: Path, reimport: bool) -> None:
    path = write(tmp_path / "s" / ROLLOUT, META + codex(*range(1, 7)) + ROLLBACK)
    memory.ingest(file=path)
    assert texts(memory) == ["m1", "m2", "m3", "m4"]
    path.write_bytes(META + codex(*range(1, 7)))
    memory.ingest(file=path, reimport=reimport)
    assert texts(memory) == [f"m{n}" for n in range(1, 7)]
    assert [row[3] for row in conversations(memory)] == [6]


PI_HEADER = json.dumps({"type": "session", "version": 3, "id": CODEX, "timestamp": stamp(0), "cwd": "/w"}).encode()
MOVED = {  # from, to, the file, what was appended when it had moved, what stands then
    "codex, to the archive": (
        f"sessions/2026/03/02/{ROLLOUT}",
        f"archived_sessions/{ROLLOUT}",
        META + codex(1, 2, 3, 4),
        ROLLBACK + codex(5, 6),
        ["m1", "m2", "m5", "m6"],
    ),
    "pi, to another folder": (
        f"sessions/--a--/2026-03-02T09-00-00-000Z_{CODEX}.jsonl",
        f"sessions/--b--/2026-03-02T09-00-00-000Z_{CODEX}.jsonl",
        PI_HEADER + b"\n" + pi(1, None) + pi(2, 1) + pi(3, 2),
        pi(5, 2),
        ["m1", "m2", "m5"],
    ),
    "claude, half of an answer": (
        f"projects/-a/{SESSION}.jsonl",
        f"projects/-b/{SESSION}.jsonl",
        claude(1, "m1")
        + claude(2, "", role="assistant", message={"id": "msg_1", "content": [{"type": "text", "text": "m2"}]}),
        claude(3, "", role="assistant", message={"id": "msg_1", "content": [{"type": "text", "text": "m3"}]})
        + claude(4, "m4"),
        ["m1", "m2\n\nm3", "m4"],
    ),
}


@pytest.mark.parametrize(("before", "after", "data", "more", "stands"), MOVED.values(), ids=MOVED.keys())
def test_a_file_that_moved_goes_on_where_it_was(
    memory: Memory, tmp_path: Path, before: str, after: str, data: bytes, more: bytes, stands: list[str]
) -> None:
    old, new = tmp_path / before, tmp_path / after
    memory.ingest(folder=write(old, data) and tmp_path / before.partition("/")[0])
    with memory.database.write() as tx:
        tx.run("UPDATE memory_conversations SET status = 'archived'")
    new.parent.mkdir(parents=True)
    old.rename(new)
    folder = tmp_path / after.partition("/")[0]
    report = memory.intake.ingest(folder=folder)
    assert (report.entries, report.files) == (0, 0)
    assert [row[4] for row in conversations(memory)] == ["archived"], "nothing changed"
    for place, other in ((old, new), (new, old)):  # there and back again
        other.rename(place)
        assert memory.intake.ingest(folder=tmp_path / place.relative_to(tmp_path).parts[0]).busy == []
    append(new, more)
    memory.ingest(folder=folder)
    assert texts(memory) == stands
    assert [row[3] for row in conversations(memory)] == [len(stands)]
    assert [row[1] for row in file_states(memory)] == [str(new.relative_to(folder))]
    write(old, data)
    memory.ingest(folder=tmp_path / before.partition("/")[0])
    assert texts(memory) == stands, "a copy beside the file that went on"


def test_a_disk_that_is_not_there_does_not_make_its_copy_the_file(memory: Memory, tmp_path: Path) -> None:
    disk, copy = tmp_path / "disk", tmp_path / "copy"
    file = write(disk / "-a" / f"{SESSION}.jsonl", claude(1, "m1") + claude(2, "m2"))
    memory.ingest(folder=disk)
    disk.rename(tmp_path / "away")
    write(copy / "-b" / f"{SESSION}.jsonl", claude(1, "m1") + claude(2, "m2"))
    memory.ingest(folder=copy)
    (tmp_path / "away").rename(disk)
    append(file, claude(3, "m3"))
    memory.ingest(folder=disk)
    assert [row[3] for row in conversations(memory)] == [3]


@pytest.fixture
def backlog(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """A tree that is large enough to be shared, and an environment."""
    from recollect.ingest import workers
    from recollect.surfaces.bench.transcripts import write_tree

    write_tree(root, 6)
    monkeypatch.setattr(workers, "SHARE_ABOVE", 1_000_000)
    monkeypatch.setattr(workers, "_HEAD_START", 0)
    return {**os.environ, "HOME": str(tmp_path)}


def test_a_second_process_is_used_for_a_large_backlog_and_changes_nothing(
    tmp_path: Path, root: Path, backlog: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from recollect.ingest import workers

    read: list[int] = []  # by each helper
    finish = workers.Helper.finish

    def noted(helper: workers.Helper) -> workers.Report | None:
        report = finish(helper)
        read.append(report.files if report else 0)
        return report

    monkeypatch.setattr(workers.Helper, "finish", noted)
    with open_memory(tmp_path / "one", environ=backlog, ingest_workers=1) as alone:
        first = alone.ingest(folder=root)
        with open_memory(tmp_path / "two", environ=backlog, ingest_workers=3) as shared:
            second = shared.ingest(folder=root)
            assert entries(shared) == entries(alone)
            assert conversations(shared) == conversations(alone)
            assert (first.files, first.entries, first.bytes) == (second.files, second.entries, second.bytes)
    assert len(read) == 2 and min(read) > 0


def test_a_helper_starts_without_what_it_has_no_use_for(tmp_path: Path) -> None:
    """Not a timed test of the machine: each of these costs some milliseconds of every shared ingest."""
    probe = (
        "import sys\n"
        "from pathlib import Path\n"
        "from recollect.ingest import intake, workers\n"
        "from recollect.config import Config, Settings\n"
        "from recollect.store.open import open_database\n"
        "from recollect.types import utc_now\n"
        "settings = Settings(home=Path(sys.argv[1]), config=Config(), origins={}, environ={})\n"
        "open_database(settings, utc_now).close()\n"
        "print(sorted({'tomllib', 'zstandard', 'zipfile', 'importlib.resources', 'tempfile'} & set(sys.modules)))\n"
    )
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-S", "-c", probe, str(tmp_path)]
    assert subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout.strip() == "[]"


@pytest.mark.parametrize("program", ["false", "true"])
def test_what_a_helper_left_is_read_here(
    tmp_path: Path, root: Path, backlog: dict[str, str], monkeypatch: pytest.MonkeyPatch, program: str
) -> None:
    from recollect.ingest import workers

    with open_memory(tmp_path / "one", environ=backlog, ingest_workers=1) as alone:
        expected = alone.ingest(folder=root)
        monkeypatch.setattr(workers.sys, "executable", shutil.which(program))  # ends at once and says nothing
        with open_memory(tmp_path / "two", environ=backlog, ingest_workers=2) as shared:
            report = shared.ingest(folder=root)
            assert (report.files, report.entries, report.skipped) == (expected.files, expected.entries, 0)
            assert conversations(shared) == conversations(alone)


def without_folder(first: int, last: int) -> bytes:
    """Records of which none names a folder."""
    return b"".join(claude(n, f"m{n}", cwd=None) for n in range(first, last + 1))


@pytest.mark.parametrize("cwd", [None, "", "./private", 7])
@pytest.mark.parametrize(
    "switch", [{"ignore": ["/code/**"]}, {"ignore": ["~/private"]}, {"disabled_projects": ["/code/x"]}]
)
def test_what_names_no_folder_waits_while_something_is_switched_off(
    tmp_path: Path, root: Path, switch: dict[str, list[str]], cwd: object
) -> None:
    compacted = claude(3, "It was about m1.", isCompactSummary=True, cwd=cwd)
    write(root / "-p" / f"{SESSION}.jsonl", claude(1, "m1", cwd=cwd) + claude(2, "m2", cwd=cwd) + compacted)
    with open_memory(tmp_path / "home", embedder="none", **switch) as memory:
        report = memory.ingest(folder=root)
        assert (report.entries, report.unplaced, texts(memory)) == (0, 2, [])
        assert memory.status().tables["memory_compactions"] == 0
        assert memory.ingest(folder=root).files == 0
        memory.remember("I write British English.", everywhere=True)  # a note needs none
    with open_memory(tmp_path / "home", embedder="none") as memory:
        report = memory.ingest(folder=root)
        assert (report.entries, report.unplaced) == (2, 0)


@pytest.mark.parametrize("cwd", ["/code/open/../secret", "{link}/deep", "/code/secret"])
def test_a_switch_holds_for_every_path_to_a_folder(tmp_path: Path, root: Path, cwd: str) -> None:
    (tmp_path / "secret/deep").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "secret")
    folder = cwd.format(link=tmp_path / "link")
    write(root / "-p" / f"{SESSION}.jsonl", b"".join(claude(n, f"m{n}", cwd=folder) for n in (1, 2)))
    off = ["/code/secret", str(tmp_path / "secret")]
    for switch in ({"ignore": off}, {"disabled_projects": off}):
        with open_memory(tmp_path / "home", embedder="none", **switch) as memory:
            assert memory.ingest(folder=root).entries == 0


@pytest.mark.parametrize(
    "line",
    [
        {"type": "session", "id": SESSION, "version": 3, "cwd": "/code/client-x/api"},
        {"type": "session_meta", "payload": {"id": SESSION, "cwd": "/code/client-x/api"}},
        {"type": "system", "cwd": "/code/client-x/api"},
    ],
)
def test_a_file_is_told_from_a_folder_of_a_like_name_wherever_its_source_names_it(line: dict[str, object]) -> None:
    head = [json.dumps({"timestamp": stamp(0), **line}).encode(), claude(1, "m1", cwd=None).strip()]
    source = {"session": "pi", "session_meta": "codex", "system": "claude-code"}[str(line["type"])]
    for off, is_out in (("/code/client/x-api", False), ("/code/client-x/api", True)):
        gate = Gate(Owner(), Recorded(), ignore=Ignore([], "/"), disabled=[off], own_home=Path("/home"), clock=utc_now)
        assert gate.excludes_file("/sessions/--code-client-x-api--/a.jsonl", get_source(source), head) is is_out
