"""Forks on real files: what a session repeats of those it descends from is stored once, and stays erased."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from recollect.app import Memory, open_memory
from recollect.ingest import forks
from tests.conftest import Place
from tests.transcripts import claude, entries, stamp, texts, write

A, B, C = (f"0199aaaa-bbbb-7ccc-8ddd-eeeeffff000{number}" for number in range(1, 4))
SECRET = "Our launch codename is zebrafinch, keep it out of the docs."
FIRST = [SECRET, "Understood.", "Next, fix the tests.", "Fixed."]
SECOND = ["A question of the fork.", "Its answer."]
THIRD = ["A question of the fork's fork.", "Another answer."]
ROLLBACK = "\0"  # of one turn

Writer = Callable[[Path, str, Sequence[str], int, str], Path]


def rollout(folder: Path, session: str, words: Sequence[str], late: int, parent: str = "", calls: int = 0) -> Path:
    """A Codex thread, `late` minutes after the first; each answer makes some calls, the second of which fails."""
    meta = {"id": session, "cwd": "/w", "source": "cli"} | ({"forked_from_id": parent} if parent else {})
    lines: list[tuple[str, dict[str, Any]]] = [("session_meta", meta)]
    number = 0
    for text in words:
        if text == ROLLBACK:
            lines.append(("event_msg", {"type": "thread_rolled_back", "num_turns": 1}))
            continue
        number += 1
        role, kind = ("user", "input_text") if number % 2 else ("assistant", "output_text")
        content = [{"type": kind, "text": text}]
        lines.append(("response_item", {"type": "message", "role": role, "content": content}))
        for call in range(calls if role == "assistant" else 0):
            name = f"c{number}-{call}"
            asked = json.dumps({"command": ["bash", "-lc", f"make step{name}"]})
            lines.append(
                ("response_item", {"type": "function_call", "name": "shell", "arguments": asked, "call_id": name})
            )
            told = json.dumps({"output": "y" * 300, "metadata": {"exit_code": int(call == 1)}})
            lines.append(("response_item", {"type": "function_call_output", "call_id": name, "output": told}))
    data = [
        {"timestamp": stamp(late * 60 + number), "type": kind, "payload": payload}
        for number, (kind, payload) in enumerate(lines)
    ]
    path = folder / f"2026/03/02/rollout-2026-03-02T09-{late:02d}-00-{session}.jsonl"
    return write(path, b"".join(json.dumps(each).encode() + b"\n" for each in data))


def pi(folder: Path, session: str, words: Sequence[str], late: int, parent: str = "") -> Path:
    """A Pi session; a fork has its parent's records under their ids."""
    header: dict[str, Any] = {"type": "session", "version": 3, "id": session, "timestamp": stamp(0), "cwd": "/w"}
    if parent:
        header["parentSession"] = f"/home/ada/.pi/agent/sessions/--w--/2026-03-02T09-00-00-000Z_{parent}.jsonl"
    lines = [header]
    for number, text in enumerate(words):
        message = {"role": "assistant" if number % 2 else "user", "content": [{"type": "text", "text": text}]}
        above = f"n{number - 1}" if number else None
        at = stamp(late * 60 + number)
        lines.append({"type": "message", "id": f"n{number}", "parentId": above, "timestamp": at, "message": message})
    path = folder / "--w--" / f"2026-03-02T09-{late:02d}-00-000Z_{session}.jsonl"
    return write(path, b"".join(json.dumps(each).encode() + b"\n" for each in lines))


writers = pytest.mark.parametrize("fork", [rollout, pi], ids=["codex", "pi"])


def counts(memory: Memory) -> dict[str, int]:
    return dict(Counter(row[1] for row in entries(memory)))


@writers
@pytest.mark.parametrize("late", [(0, 20, 40), (40, 20, 0)], ids=["parents first", "forks first"])
def test_a_fork_of_a_fork_keeps_only_its_own(
    memory: Memory, root: Path, fork: Writer, late: tuple[int, int, int]
) -> None:
    fork(root, A, FIRST, late[0], "")
    fork(root, B, [*FIRST, *SECOND], late[1], A)
    fork(root, C, [*FIRST, *SECOND, *THIRD], late[2], B)
    assert memory.ingest(folder=root).files == 3
    assert counts(memory) == {A: 4, B: 2, C: 2}
    assert sorted(texts(memory)) == sorted([*FIRST, *SECOND, *THIRD])


@writers
@pytest.mark.parametrize("gone", [(A,), (A, B)], ids=["the first", "both"])
def test_what_was_erased_of_any_ancestor_does_not_come_back(
    memory: Memory, root: Path, fork: Writer, gone: tuple[str, ...]
) -> None:
    fork(root, A, FIRST, 0, "")
    fork(root, B, [*FIRST, *SECOND], 20, A)
    memory.ingest(folder=root)
    for session in gone:
        memory.forget(session=session, reason="private")
    fork(root, C, [*FIRST, *SECOND, *THIRD], 40, B)
    memory.ingest(folder=root)
    assert texts(memory) == [*(SECOND if B not in gone else []), *THIRD]


@writers
def test_a_fork_in_which_nothing_was_said_hands_its_ancestry_on(memory: Memory, root: Path, fork: Writer) -> None:
    fork(root, A, FIRST, 0, "")
    fork(root, B, FIRST, 20, A)
    memory.ingest(folder=root)
    fork(root, C, [*FIRST, *THIRD], 40, B)
    memory.ingest(folder=root)
    assert texts(memory) == [*FIRST, *THIRD]


def test_a_fork_that_only_copied_its_parent_s_meta_line_keeps_only_its_own(memory: Memory, root: Path) -> None:
    parent = rollout(root, A, FIRST, 0)
    fork = rollout(root, B, [*FIRST, *SECOND], 20)
    own, *rest = fork.read_bytes().splitlines(keepends=True)
    fork.write_bytes(b"".join([own, parent.read_bytes().splitlines(keepends=True)[0], *rest]))
    memory.ingest(folder=root)
    assert counts(memory) == {A: 4, B: 2}


def test_a_fork_follows_its_parent_s_branch_and_not_what_was_said_there_later(memory: Memory, root: Path) -> None:
    later = ["Said in the first after the fork.", "Aye."]
    rollout(root, A, [*FIRST, *later], 0)
    rollout(root, B, [*FIRST, *SECOND], 20, A)
    rollout(root, C, [*FIRST, *SECOND, *THIRD], 40, B)
    memory.ingest(folder=root)
    assert counts(memory) == {A: 6, B: 2, C: 2}


ONE, TWO, THREE, AGAIN = ([f"question {name}", f"answer {name}"] for name in ("one", "two", "three", "four"))
AGAIN[0] = TWO[0]


@pytest.mark.parametrize("chunk", [300, 2**20])
@pytest.mark.parametrize(
    ("said", "copied"),
    [
        ([*ONE, *TWO, ROLLBACK, *THREE], [*ONE, *TWO, ROLLBACK, *THREE]),
        ([*ONE, *TWO, ROLLBACK, *THREE], [*ONE, *THREE]),
        ([*ONE, ROLLBACK, *TWO], [*ONE, ROLLBACK, *TWO]),
        ([*ONE, *TWO, ROLLBACK, *AGAIN], [*ONE, *TWO, ROLLBACK, *AGAIN]),
        ([*ONE, *TWO, ROLLBACK, *AGAIN], [*ONE, *AGAIN]),
    ],
    ids=["as it was written", "what was left", "all of it", "asked again", "what was left, asked again"],
)
def test_a_fork_of_a_thread_that_was_rolled_back_keeps_only_its_own(
    memory: Memory, root: Path, monkeypatch: pytest.MonkeyPatch, said: list[str], copied: list[str], chunk: int
) -> None:
    monkeypatch.setattr("recollect.ingest.tail.CHUNK", chunk)
    rollout(root, A, said, 0)
    rollout(root, B, [*copied, *SECOND], 20, A)
    rollout(root, C, [*copied, *SECOND, *THIRD], 40, B)
    memory.ingest(folder=root)
    stands = [*ONE, *AGAIN] if AGAIN[1] in said else [*ONE, *THREE] if THREE[0] in said else TWO
    assert texts(memory) == [*stands, *SECOND, *THIRD]


def test_what_a_fork_goes_on_with_stands_although_its_parent_took_it_back(memory: Memory, root: Path) -> None:
    rollout(root, A, [*ONE, *TWO, ROLLBACK, *THREE], 0)
    rollout(root, B, [*ONE, *TWO, *SECOND], 20, A)
    memory.ingest(folder=root)
    assert texts(memory) == [*ONE, *THREE, *TWO, *SECOND]


@writers
@pytest.mark.parametrize("late", [0, 59], ids=["before", "behind"])
def test_a_fork_waits_for_the_rest_of_its_parent(memory: Memory, root: Path, fork: Writer, late: int) -> None:
    fork(root, A, FIRST[:2], 30, "")
    memory.ingest(folder=root)
    fork(root, A, FIRST, 30, "")
    fork(root, B, [*FIRST, *SECOND], late, A)
    memory.ingest(folder=root)
    assert counts(memory) == {A: 4, B: 2}


def test_where_the_first_is_missing_a_fork_still_waits_for_its_parent(memory: Memory, root: Path) -> None:
    rollout(root, C, [*FIRST, *SECOND, *THIRD], 0, B)
    rollout(root, B, [*FIRST, *SECOND], 20, A)
    memory.ingest(folder=root)
    assert counts(memory) == {B: 6, C: 2}


def test_sessions_that_claim_to_descend_from_each_other_or_themselves_are_read(memory: Memory, root: Path) -> None:
    rollout(root, A, FIRST, 0, B)
    rollout(root, B, [*FIRST, *SECOND], 20, A)
    rollout(root, C, THIRD, 40, C)
    for reimport in (False, True):
        memory.ingest(folder=root, reimport=reimport)
        assert set(texts(memory)) == {*FIRST, *SECOND, *THIRD}
        assert counts(memory)[C] == 2


def test_a_line_of_descent_has_an_end(memory: Memory, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forks, "_MOST_ANCESTORS", 2)
    words: list[str] = []
    names = [f"0199aaaa-bbbb-7ccc-8ddd-eeeeffff00{number:02d}" for number in range(10, 15)]
    for number, session in enumerate(names):
        words += [f"question {number}", f"answer {number}"]
        rollout(root, session, words, number, names[number - 1] if number else "")
        memory.ingest(folder=root)
    assert [counts(memory)[name] for name in names] == [2, 2, 2, 8, 2], "too far from the first, and so read whole"
    assert set(texts(memory)) == set(words)


def test_a_copy_is_compared_when_it_is_whole_wherever_reading_pauses(
    memory: Memory, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is read at a time ends between an answer and its calls, or between a call and its failure."""
    words = [f"{'answer' if number % 2 else 'question'} {number}" for number in range(16)]
    monkeypatch.setattr("recollect.ingest.run._BYTES", 3000)
    rollout(root, A, words, 0, calls=4)
    memory.ingest(folder=root)
    for number, chunk in enumerate((300, 700, 1500, 4000)):
        monkeypatch.setattr("recollect.ingest.tail.CHUNK", chunk)
        session = f"0199aaaa-bbbb-7ccc-8ddd-eeeeffff01{number:02d}"
        path = rollout(root, session, [*words, *SECOND], 20 + number, A, calls=4)
        report = memory.ingest(file=path)
        assert (report.entries, counts(memory)[session]) == (2, 2)
        kept = [row[4] for row in entries(memory) if row[1] == session]
        assert report.text == sum(map(len, kept))


@pytest.mark.parametrize("stop", range(1, 5))
def test_a_fork_whose_reading_was_cut_short_loses_and_doubles_nothing(
    memory: Memory, root: Path, monkeypatch: pytest.MonkeyPatch, stop: int
) -> None:
    monkeypatch.setattr("recollect.ingest.tail.CHUNK", 700)
    monkeypatch.setattr("recollect.ingest.run._ENTRIES", 12)
    words = [f"{'answer' if number % 2 else 'question'} {number}" for number in range(16)]
    own = [f"{'own answer' if number % 2 else 'own question'} {number}" for number in range(40)]
    rollout(root, A, words, 0, calls=4)
    memory.ingest(folder=root)
    path = rollout(root, B, [*words, *own], 20, A, calls=4)
    told = 0

    def interrupt(size: int, count: int) -> None:
        nonlocal told
        told += 1
        if told == stop:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        memory.ingest(file=path, progress=interrupt)
    memory.ingest(file=path)
    assert counts(memory) == {A: 16, B: 40}


def test_leases_of_files_that_wait_are_renewed_while_others_are_committed(
    database_url: Place, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("recollect.ingest.run._ENTRIES", 1)  # a commit for each file
    for number in range(24):
        session = f"{number:08d}-0000-4000-8000-000000000000"
        write(root / "-p" / f"{session}.jsonl", claude(1, "hello", session=session))
    with open_memory(database_url.home, database=database_url.url, lease_seconds=1.0) as memory:
        report = memory.ingest(folder=root, progress=lambda size, count: time.sleep(0.1))
        assert (report.files, report.skipped) == (24, 0)
        with memory.database.read() as tx:
            assert tx.rows("SELECT MAX(fencing_token) FROM memory_jobs WHERE kind = 'ingest'") == [(1,)], "taken once"


def test_a_fork_waits_for_its_parent_however_long_the_others_take(
    database_url: Place, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("recollect.ingest.run._ENTRIES", 1)
    rollout(root, C, THIRD, 0)
    rollout(root, B, [*FIRST, *SECOND], 20, A)
    rollout(root, A, FIRST, 40)
    with open_memory(database_url.home, database=database_url.url, lease_seconds=2.0) as memory:
        memory.ingest(folder=root, progress=lambda size, count: time.sleep(0.6))
        assert counts(memory) == {A: 4, B: 2, C: 2}
