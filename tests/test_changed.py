"""Rows that somebody changed in the database: they are noticed, and made again from the files; no message is lost."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import apsw
import psycopg
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from recollect.app import Memory
from recollect.artifacts.document import parse, rendered, sealed
from recollect.artifacts.ledger import FILE
from recollect.ingest.rescan import rescan
from recollect.redact import VERSION, redact
from recollect.store.checksum import as_written, clean
from recollect.store.jobs import Jobs
from tests.conftest import Clock
from tests.test_extract import CHAT, OTHER, TALK, ingest
from tests.test_forks import ROLLBACK, A, B, rollout
from tests.test_reindex import content, empty, fill
from tests.transcripts import SESSION, START, append, claude, entries, texts, write

EXAMPLES = 1  # each changes every column, and deletes a row of every table
COMPACTION = "They agreed on make lint in tides, and Priya owns tide-stg-2."
SAID = "kind, text, severity, scope, scope_id, created_at, valid_from, pinned, occasions, user_id, loosened, trust"
ROWS = {  # derived table → the columns that follow from files
    "memory_transcript_entries": "source, entry_uuid, session_id, source_file, role, content, tool_names, timestamp,"
    " cwd, project_id, branch, user_id, withdrawn, authors, events",
    "memory_conversations": "source, session_id, source_file, session_key, project, project_id, branch,"
    " first_message_at, last_message_at, entry_count, status, status_reason, user_id",
    "memory_compactions": "source, compaction_uuid, session_id, source_file, timestamp, summary",
    "memory_stage1": "session_key, source, session_id, project, project_id, first_message_at, source_updated_at,"
    " entry_count, snapshot, generated_at, strategy, parts, raw_memory, rollout_summary, rollout_slug,"
    " memory_sentence, user_id",
    "memory_memories": f"memory_id, revision, {SAID}",
    "memory_sources": f"memory_id, revision, session_key, entry_uuid, {SAID}",
    "memory_artifacts": "source_path, source_sha256, source_kind, session_token, session_key, session_id, harness,"
    " project, project_id, captured_at, ended_at, manifest_path, memory_sentence, source_node_id, is_current,"
    " signature",
}


@pytest.fixture
def clock() -> Clock:
    return Clock(START + timedelta(days=1))


@pytest.fixture
def full(memory: Memory, root: Path) -> Memory:
    """Four conversations, a compaction, a note, and a memory that two conversations state."""
    fill(memory, root)
    path = next((root / "-code-tides").glob("1111*.jsonl"))
    append(path, claude(7, COMPACTION, isCompactSummary=True))
    memory.ingest(folder=root)
    memory.process(now=True)
    memory.remember("Deploy tides on Mondays alone.", everywhere=True)
    memory.process(now=True)
    memory.settings.home.chmod(0o700)
    return memory


def rows(memory: Memory) -> dict[str, list[Any]]:
    """As a file would have it: the agent's own file may hold signs of a terminal."""
    found = content(memory, ROWS)
    said = found["memory_transcript_entries"]
    found["memory_transcript_entries"] = [
        (*row[:5], *as_written(row[5], row[-2])[:1], *row[6:-2], as_written(row[5], row[-2])[1], row[-1])
        for row in said
    ]
    return {
        table: sorted((tuple(clean(each) if isinstance(each, str) else each for each in row) for row in some), key=repr)
        for table, some in found.items()
    }


def indexes(memory: Memory) -> list[Any]:
    """How many texts the index of words has, and which."""
    return content(memory, {"memory_search_texts": "kind, ref, project_id, user_id, text"})["memory_search_texts"]


def change(memory: Memory, table: str, name: str, which: int, value: int) -> str:
    """Somebody deletes a row, or changes a column of it: to what another row has in it, or to something else."""
    columns = ROWS[table].split(", ")
    held = sorted(content(memory, ROWS)[table], key=repr)
    row = dict(zip(columns, held[which % len(held)], strict=True))
    where = " AND ".join(f"{column} = :{column}" for column in columns)
    sql, values = f"DELETE FROM {table} WHERE {where}", row
    if name:
        other = [0, 1, 7] if isinstance(row[name], int) else ["", "x", "2026-03-02T09:01:30.000Z"]
        others = [each[columns.index(name)] for each in held] + other
        free = [each for each in others if each != row[name]]
        sql, values = f"UPDATE {table} SET {name} = :after WHERE {where}", {**row, "after": free[value % len(free)]}
    try:
        with memory.database.write() as tx:
            assert tx.run(sql, values) == 1
    except (apsw.ConstraintError, psycopg.errors.IntegrityError):  # another row is called so
        return ""
    return f"{sql.partition(' WHERE')[0]} {values.get('after')!r} {row}"


@pytest.mark.parametrize("is_rebuilt", [False, True])
def test_any_row_that_somebody_changed_is_noticed_and_made_again(full: Memory, is_rebuilt: bool) -> None:
    before, words = rows(full), indexes(full)
    if is_rebuilt:
        empty(full)
        full.reindex()
        assert rows(full) == before and indexes(full) == words
    cases = [(table, name) for table, columns in ROWS.items() for name in ("", *columns.split(", "))]
    failed: list[str] = []

    @settings(max_examples=EXAMPLES, phases=[Phase.generate])  # the next case begins with what this one left
    @given(st.integers(0, 99), st.integers(0, 99))
    def holds(which: int, value: int) -> None:
        for number, (table, name) in enumerate(cases):
            what = change(full, table, name, which + number, value + number)
            found = full.doctor().problems
            full.reindex()
            if what and not (found and rows(full) == before and indexes(full) == words):
                failed.append(what)
                empty(full)
                full.reindex()

    holds()
    assert failed == []
    assert full.reindex().problems == [] == full.doctor().problems


# Nothing is lost


def late(memory: Memory, root: Path) -> None:
    """A message that was said earlier comes late; another conversation of the session follows on the next day."""
    path = ingest(memory, root, *TALK)
    memory.process(now=True)
    append(path, claude(8, "Omar is on call.", at=150) + claude(9, "And Omar owns tide-prod-1.", at=80_000))
    memory.ingest(folder=root)


def goes_back(memory: Memory, root: Path) -> None:
    """A person takes back a turn, before its conversation is read and after it."""
    rollout(root, A, [*TALK, ROLLBACK], 0)
    memory.ingest(folder=root)
    memory.process(now=True)
    rollout(root, A, [*TALK, ROLLBACK, "Keep the tide tables in PostgreSQL.", "Done.", ROLLBACK], 0)
    memory.ingest(folder=root)


def is_read_anew(memory: Memory, root: Path) -> None:
    """One file says another word, another one where it was said, which opens no conversation again."""
    path, other = ingest(memory, root, *TALK), ingest(memory, root, *CHAT, name=OTHER)
    memory.process(now=True)
    path.write_bytes(path.read_bytes().replace(b"Show me", b"Show us"))
    other.write_bytes(other.read_bytes().replace(b"/code/tides", b"/code/other"))
    memory.ingest(folder=root, reimport=True)


def is_forked(memory: Memory, root: Path) -> None:
    rollout(root, B, [*TALK, *CHAT], 20, A)  # before its parent is known
    memory.ingest(folder=root)
    memory.process(now=True)
    rollout(root, A, TALK, 0)
    memory.ingest(folder=root)


def is_in_two_files(memory: Memory, root: Path) -> None:
    """A session in two files, whose times lie between each other."""
    ingest(memory, root, *TALK)
    other = [claude(n, text, at=n * 60 + 30, uuid=f"other-{n}") for n, text in enumerate(CHAT, 1)]
    write(root / "-code-other" / f"{SESSION}.jsonl", b"".join(other))
    memory.ingest(folder=root)


def is_rebuilt(memory: Memory, root: Path) -> None:
    """The files of the agent are read where rows came from canonical ones."""
    fill(memory, root)
    empty(memory)
    memory.reindex()
    memory.ingest(folder=root)


CHANGES = (
    "UPDATE memory_memories SET text = 'wrong'",
    "UPDATE memory_stage1 SET raw_memory = 'wrong'",
    "UPDATE memory_conversations SET project = 'wrong'",
    "DELETE FROM memory_sources",
    "UPDATE memory_sums SET checksum = 'another'",
)


def spoken(memory: Memory) -> list[tuple[Any, ...]]:
    """Every message, and whether it was taken back."""
    return [(*row[:7], *row[9:]) for row in entries(memory)]


@pytest.mark.parametrize("happens", [late, goes_back, is_read_anew, is_forked, is_in_two_files, is_rebuilt])
def test_no_message_is_lost_and_no_alarm_is_false(
    memory: Memory, root: Path, happens: Callable[[Memory, Path], None]
) -> None:
    happens(memory, root)
    for _ in range(2):  # as it was read, and when it has settled
        said = spoken(memory)
        assert memory.reindex().changed == 0 and "ChangedRows" not in str(memory.doctor().problems)
        for sql in CHANGES:
            with memory.database.write() as tx:
                tx.run(sql)
            memory.reindex()
            assert spoken(memory) == said, sql
        memory.process(now=True)
    assert spoken(memory) == said
    memory.ingest(folder=root, reimport=True)
    assert {*texts(memory)} == {row[4] for row in said if not row[-1]}


def test_a_turn_that_was_taken_back_is_taken_back_again(memory: Memory, root: Path) -> None:
    rollout(root, A, [*TALK, ROLLBACK, "We decided to keep the tide tables in PostgreSQL.", "Done."], 0)
    memory.ingest(folder=root)
    memory.process(now=True)
    said = entries(memory)
    with memory.database.write() as tx:
        assert tx.run("UPDATE memory_transcript_entries SET withdrawn = 0 WHERE withdrawn = 1") == 2
    assert memory.reindex().changed == 1 and entries(memory) == said


def test_what_files_do_not_tell_stays_and_is_told(memory: Memory, root: Path) -> None:
    ingest(memory, root, *TALK)
    memory.process(now=True)
    with memory.database.write() as tx:  # as if the rows had never been what the files say
        tx.run("UPDATE memory_transcript_entries SET content = 'wrong' WHERE content LIKE 'Understood%'")
        tx.run("UPDATE memory_transcript_entries SET entry_uuid = 'own' WHERE content LIKE 'Noted%'")
        tx.run("DELETE FROM memory_sums")
    assert memory.reindex().changed == 0, "it is summed as it is"
    with memory.database.write() as tx:
        tx.run("DELETE FROM memory_sources")
    assert [each.kind for each in memory.reindex().problems] == ["ChangedRows"]
    assert sorted(texts(memory)) == sorted([*TALK, "Noted."])
    with memory.database.read() as tx:
        assert tx.row("SELECT COUNT(*) FROM memory_sources") != (0,)
    assert memory.reindex().problems == [] == memory.doctor().problems


# Redaction


@pytest.mark.parametrize("is_cut_short", [True, False])
def test_newer_redaction_stays(memory: Memory, root: Path, monkeypatch: pytest.MonkeyPatch, is_cut_short: bool) -> None:
    ingest(memory, root, *TALK)
    memory.process(now=True)
    calls = []

    def newer(text: str) -> str:
        calls.append(text)
        if is_cut_short and len(calls) > 4:
            raise KeyboardInterrupt
        return text.replace("make lint", "[redacted:command]").replace("Priya", "[redacted:person]")

    monkeypatch.setattr("recollect.ingest.rescan._BATCH", 1)
    with suppress(KeyboardInterrupt):
        rescan(memory.database, memory.owner, Jobs(memory.owner), VERSION + 1, newer)
    said = texts(memory)
    assert "[redacted:" in str(said)
    for sql in CHANGES:
        assert "ChangedRows" not in str(memory.doctor().problems)
        memory.process(now=True)
        with memory.database.write() as tx:
            tx.run(sql)
        assert not memory.reindex().changed or not is_cut_short, "nothing is known as long as it is not done"
        assert texts(memory) == said, sql


def test_what_newer_rules_take_out_does_not_come_back_from_a_file(memory: Memory, root: Path) -> None:
    ingest(memory, root, *TALK)
    memory.process(now=True)
    secret = "login: bob pass: Zk29dkQ7pw"
    folder = memory.settings.home / "memory"
    (transcript,), (manifest,) = folder.glob("*--transcript.md"), folder.glob("*--manifest.md")
    written, links = parse(transcript.read_text()), parse(manifest.read_text())  # as an earlier version wrote them
    head, body = sealed(written.head, written.body.replace("Noted.", secret))
    transcript.write_text(rendered(head, body))
    manifest.write_text(rendered(*sealed(replace(links.head, transcript_sha256=head.content_sha256), links.body)))
    assert memory.reindex().problems == [] and secret in texts(memory)
    rescan(memory.database, memory.owner, Jobs(memory.owner), VERSION + 1, redact)
    said = sorted(texts(memory))
    memory.process(now=True)
    for sql in (*CHANGES, "DELETE FROM memory_transcript_entries"):
        with memory.database.write() as tx:
            tx.run(sql)
        report = memory.reindex()
        assert sorted(texts(memory)) == said and "Zk29" not in str(said), sql
        assert report.changed and (report.problems == [] or "sums" in sql), sql


# What is told


def test_the_doctor_names_what_was_changed_and_mends_it(full: Memory) -> None:
    before, ledger = rows(full), (full.settings.home / FILE).read_bytes()
    with full.database.write() as tx:
        tx.run("UPDATE memory_memories SET text = 'wrong' WHERE text LIKE 'Deploy%'")
        tx.run("UPDATE memory_artifacts SET memory_sentence = 'wrong'")
    found = full.doctor().problems
    assert {each.kind for each in found} == {"ChangedRows"} and len(found) == 4 and all(each.hint for each in found)
    assert all(each.fixed for each in full.doctor(fix=True).problems)
    assert rows(full) == before and (full.settings.home / FILE).read_bytes() == ledger


def test_a_home_of_before_is_summed_by_process(full: Memory) -> None:
    before = rows(full)
    with full.database.write() as tx:
        tx.run("DELETE FROM memory_sums")
    full.process()
    with full.database.write() as tx:
        tx.run("UPDATE memory_sources SET text = 'wrong'")
    assert full.reindex().changed and rows(full) == before


def test_what_a_tombstone_says_is_known_again(memory: Memory, root: Path) -> None:
    ingest(memory, root, *TALK)
    memory.process(now=True)
    memory.forget(session=SESSION)
    before = content(memory, {"memory_tombstones": "*"})
    with memory.database.write() as tx:
        (one,) = tx.rows("SELECT MIN(hash) FROM memory_tombstones WHERE length(hash) = 40")[0]
        tx.run("DELETE FROM memory_tombstones WHERE hash = :hash", {"hash": one})
    assert "ChangedRows" in str(memory.doctor().problems)
    assert memory.reindex().changed == 1
    assert content(memory, {"memory_tombstones": "*"}) == before and memory.doctor().problems == []


def test_a_file_that_moved_is_known_where_it_is(memory: Memory, root: Path) -> None:
    path = ingest(memory, root, *TALK)
    memory.process(now=True)
    path.rename(write(root / "-code-moved" / path.name, b""))
    memory.ingest(folder=root)
    said = entries(memory)
    for sql in (*CHANGES[:-1], "DELETE FROM memory_transcript_entries WHERE content LIKE 'Noted%'"):
        with memory.database.write() as tx:
            tx.run(sql)
        assert memory.reindex().problems == []
    assert [row[:9] for row in entries(memory)] == [row[:9] for row in said] and "-code-moved" in said[0][2]
