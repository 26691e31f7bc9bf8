"""Export and import: round trips between databases, merging, crashes, and archives that are not to be trusted."""

from __future__ import annotations

import hashlib
import io
import json
import re
import shutil
import stat
import tarfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from recollect.app import Memory, open_memory
from recollect.artifacts import archive, document, names, tombstones
from recollect.artifacts.archive import LIST, BadArchive
from recollect.artifacts.moving import Import, joined
from recollect.artifacts.names import Kind
from recollect.artifacts.tombstones import Tombstone
from recollect.errors import RecollectError, SchemaTooNew, UsageError
from recollect.store import answers, conversations, memories, transfer
from recollect.store.answers import Spent
from recollect.store.database import Database
from recollect.store.jobs import Jobs
from recollect.store.vectors import Model, Status
from recollect.turns.chat import Turns
from recollect.types import Timestamp
from recollect.workspace import READ_LIMIT
from tests.command import run
from tests.conftest import Clock, Place
from tests.test_extract import CHAT, FACT, OTHER, RULE, TALK, Scripted, by, extract, ingest, session
from tests.test_store import TABLES, everything
from tests.transcripts import SESSION, START, append, entries, stamp, write

KEY = f"{SESSION}@{stamp(60)}"
DERIVED = (
    "memory_transcript_entries",
    "memory_conversations",
    "memory_stage1",
    "memory_artifacts",
    "memory_memories",
    "memory_sources",
)
IGNORED = {"words", "id", "tenant", "agent_id", "generation", "line_offset", "updated_at", "signature", "owned"}


@pytest.fixture
def clock() -> Clock:
    return Clock(START + timedelta(days=1))


@pytest.fixture
def lived(memory: Memory, root: Path) -> Memory:
    """A memory that was used: content, use, costs, a turn log."""
    ingest(memory, root, *CHAT, name=OTHER)
    ingest(memory, root, *TALK)
    memory.process(now=True)
    memory.consolidate(now=True)
    with memory.database.write() as tx:
        (held,) = [each for each in memories.all_of(tx, memory.owner) if each.text == RULE]
        answers.charge(tx, memory.owner, "extract", KEY, Spent("2026-03-02", "a:model", 1, 100, 10, 5))
        answers.save(tx, memory.owner, "extract", KEY, "h1", '{"a": "é"}', Timestamp(stamp(0)))
    memory.cite([held.id])
    write(memory.settings.turns / "tides" / "ada" / "one.jsonl", b'{"line": "turn"}\n')
    return memory


@pytest.fixture
def packed(lived: Memory, tmp_path: Path) -> Path:
    lived.export(tmp_path / "memory.tar.zst")
    return tmp_path / "memory.tar.zst"


@pytest.fixture
def other(tmp_path: Path, clock: Clock, database_url: Place, request: pytest.FixtureRequest) -> Iterator[Memory]:
    """An empty home on another machine, with the other database."""
    with ExitStack() as stack:
        url = ""
        if database_url.kind == "sqlite":
            url = stack.enter_context(request.getfixturevalue("postgres").database())
        yield stack.enter_context(open_memory(tmp_path / "other", database=url, clock=clock))


def columns(memory: Memory, table: str) -> list[str]:
    with memory.database.read() as tx:
        if tx.dialect.name == "sqlite":
            return [row[1] for row in tx.rows(f"PRAGMA table_info({table})")]
        sql = "SELECT column_name FROM information_schema.columns WHERE table_name = :name ORDER BY ordinal_position"
        return [name for (name,) in tx.rows(sql, {"name": table})]


def content(memory: Memory) -> dict[str, list[tuple[Any, ...]]]:
    """What can be derived, but for numbers that a database gives itself."""
    return {
        table: rows(memory, table, *(name for name in columns(memory, table) if name not in IGNORED))
        for table in DERIVED
    }


def rows(memory: Memory, table: str, *chosen: str) -> list[tuple[Any, ...]]:
    with memory.database.read() as tx:
        sql = f"SELECT {', '.join(chosen)} FROM {table} WHERE tenant = :tenant AND agent_id = :agent_id"
        return sorted(tx.rows(sql, asdict(memory.owner)))


def tree(memory: Memory) -> dict[str, bytes]:
    """Every canonical file and turn log."""
    home = memory.settings.home
    found = [*home.glob("memory/**/*.md"), *home.glob("turns/**/*.jsonl")]
    return {path.relative_to(home).as_posix(): path.read_bytes() for path in found}


def state(memory: Memory) -> tuple[Any, ...]:
    with memory.database.read() as tx:
        return tree(memory), everything(tx, memory.owner)


def unpacked(file: Path) -> dict[str, bytes]:
    plain = io.BytesIO(zstandard.ZstdDecompressor().decompressobj().decompress(file.read_bytes()))
    with tarfile.open(fileobj=plain) as tar:
        return {info.name: tar.extractfile(info).read() for info in tar}  # type: ignore[union-attr]


# Round trips


def test_everything_comes_back_on_another_machine_and_the_other_database(
    lived: Memory, packed: Path, other: Memory, root: Path
) -> None:
    report = other.import_(packed)
    assert report.index is not None
    assert (report.conversations, report.conflicts, report.index.problems) == (2, [], [])
    assert tree(other) == tree(lived)
    assert content(other) == content(lived)
    for table, chosen in {
        "memory_use": ("memory_id", "usage_count", "last_usage"),
        "memory_stage1_use": ("session_key", "usage_count", "last_usage"),
        "memory_answers": ("kind", "job_key", "input_hash", "answer", "answered_at"),
        "memory_token_accounts": ("day", "kind", "job_key", "model", "requests", "input_tokens", "cost_micros"),
        "memory_file_states": (
            "source",
            "file_path",
            "last_processed_offset",
            "generation",
            "tail_hash",
            "parser_state",
        ),
    }.items():
        assert rows(other, table, *chosen) == rows(lived, table, *chosen) != []
    done = ("kind", "job_key", "status", "success_watermark")
    kept = [row for row in rows(lived, "memory_jobs", *done) if row[0] in ("extract", "ingest")]
    assert [row for row in rows(other, "memory_jobs", *done) if row[0] in ("extract", "ingest")] == kept
    ledger = "MEMORY.md"
    assert (other.settings.home / ledger).read_bytes() == (lived.settings.home / ledger).read_bytes()


def test_afterwards_nothing_is_read_or_paid_for_twice_and_work_goes_on(
    lived: Memory, packed: Path, other: Memory, root: Path, clock: Clock
) -> None:
    other.import_(packed)
    assert other.ingest(folder=root).entries == 0
    made = other.consolidate(now=True)
    assert made.outcome == "succeeded" and made.added and not made.retained, "the workspace is made anew"
    assert RULE in (other.settings.workspace / "handbook.md").read_text()
    append(root / "-code-tides" / f"{SESSION}.jsonl", session("We deploy on Tuesdays only.", "Ok.", first=7))
    for each in (lived, other):
        each.ingest(folder=root)
        each.process(now=True)
    assert content(other)["memory_memories"] == content(lived)["memory_memories"]
    assert [row[4] for row in entries(other)] == [row[4] for row in entries(lived)]


def test_a_compaction_travels(lived: Memory, other: Memory, tmp_path: Path) -> None:
    assert lived.record_compaction(KEY, "So far the tide table was shown.", Timestamp(stamp(400)), "c1")
    lived.export(tmp_path / "a.tar.zst")
    report = other.import_(tmp_path / "a.tar.zst")
    assert report.index is not None and report.index.problems == []
    assert tree(other) == tree(lived) and "tide table" in other.open(KEY, "compaction").text
    assert rows(other, "memory_compactions", "summary") == rows(lived, "memory_compactions", "summary") != []


def test_a_model_is_not_asked_again(memory: Memory, root: Path, other: Memory, tmp_path: Path) -> None:
    ingest(memory, root, *TALK)
    extract(memory, by(Scripted())).run(now=True)
    memory.export(tmp_path / "a.tar.zst")
    other.import_(tmp_path / "a.tar.zst")
    other.ingest(folder=root, reimport=True)
    model = Scripted()
    extract(other, by(model)).run(now=True)
    assert model.calls == []


def test_what_has_no_artifact_yet_is_read_again(lived: Memory, other: Memory, root: Path, tmp_path: Path) -> None:
    """A file whose last conversation is still open would count as read, and its messages would be nowhere."""
    append(root / "-code-tides" / f"{SESSION}.jsonl", session("Still talking.", *TALK, first=300))
    lived.ingest(folder=root)
    report = lived.export(tmp_path / "a.tar.zst")
    assert report.rows["memory_file_states"] == 1 and report.waiting == 1
    other.import_(tmp_path / "a.tar.zst")
    assert "Still talking." not in {row[4] for row in entries(other)}
    other.ingest(folder=root)
    assert [row[4] for row in entries(other)] == [row[4] for row in entries(lived)]


def test_what_is_too_old_to_be_extracted_goes_along(
    memory: Memory, other: Memory, root: Path, tmp_path: Path, clock: Clock
) -> None:
    ingest(memory, root, *TALK)
    clock.now += timedelta(days=400)
    report = memory.export(tmp_path / "a.tar.zst")
    assert (report.conversations, report.waiting) == (1, 0)
    other.import_(tmp_path / "a.tar.zst")
    assert [row[4] for row in entries(other)] == [row[4] for row in entries(memory)] != []


def test_what_was_said_after_a_conversation_was_read_has_a_file_however_old(
    memory: Memory, root: Path, tmp_path: Path, clock: Clock
) -> None:
    path = ingest(memory, root, *TALK)
    memory.process(now=True)
    append(path, session("The kraken buoy is decommissioned.", "Noted.", first=7))
    memory.ingest(folder=root)
    clock.now += timedelta(days=40)
    memory.process()
    (transcript,) = [text for name, text in tree(memory).items() if "transcript" in name and b"kraken buoy" in text]
    assert RULE.encode() in transcript and RULE.encode() in b"".join(tree(memory).values())
    before = tree(memory)
    memory.process()
    assert tree(memory) == before, "once"
    report = memory.export(tmp_path / "a.tar.zst")
    assert (report.waiting, report.problems, memory.doctor().problems) == (0, [], [])
    assert memory.process(now=True).claimed == 1, "nobody has read it yet"


@pytest.mark.parametrize("way", ["import", "reindex", "doctor and reindex", "reindex in place"])
def test_what_nobody_has_read_does_not_count_as_read(
    memory: Memory, other: Memory, root: Path, tmp_path: Path, clock: Clock, way: str
) -> None:
    """Too old, or too short: only a person who asks has it read. What was read is not read again."""
    ingest(memory, root, *TALK)
    ingest(memory, root, "We moved the harbour map to SVG.", "Ok.", name="2" + SESSION[1:])
    ingest(memory, root, *CHAT, name=OTHER)
    extract(memory).run(now=True, keys=[f"{OTHER}@{stamp(60)}"])
    clock.now += timedelta(days=40)
    memory.process()
    taker = memory if way == "reindex in place" else other
    if way == "import":
        memory.export(tmp_path / "a.tar.zst")
        taker.import_(tmp_path / "a.tar.zst")
    else:
        if way == "doctor and reindex":
            token = names.session_token("default", f"{OTHER}@{stamp(60)}", "")
            next(memory.settings.home.glob(f"memory/*--{token}--transcript.md")).unlink()
            assert memory.doctor(fix=True).problems
        if taker is other:
            shutil.copytree(memory.settings.home / "memory", other.settings.home / "memory", dirs_exist_ok=True)
        taker.reindex(full=True)
    assert taker.process().claimed == 0, "nobody asked"
    with taker.database.read() as tx:
        assert conversations.unwritten(tx, taker.owner, 9, aged=Timestamp(stamp(0))) == []
    done = taker.process(now=True)
    assert (done.claimed, done.succeeded + done.succeeded_no_output) == (2, 2)
    assert taker.process(now=True).claimed == 0


def test_the_command_says_what_is_not_in_the_archive(memory: Memory, root: Path, tmp_path: Path) -> None:
    ingest(memory, root, *TALK)
    settings = f'max_rollout_age_days = 9999\ndatabase = "{memory.settings.config.database}"\n'
    write(memory.settings.home / "config.toml", settings.encode())
    done = run(memory.settings.home, "export", str(tmp_path / "a.tar.zst"))
    assert done.status == 0 and "not whole: 1 conversation " in done.stderr and "process --now" in done.stderr
    assert run(memory.settings.home, "process", "--now").status == 0
    assert run(memory.settings.home, "export", str(tmp_path / "b.tar.zst")).stderr == ""


def test_what_was_packed_and_what_was_taken_in_are_the_same_figures(
    lived: Memory, other: Memory, tmp_path: Path
) -> None:
    said = lived.remember("I love figs.", everywhere=True)
    lived.remember("I love pears.", everywhere=True)
    lived.forget(memory=said.id, reason="wrong")
    packed = lived.export(tmp_path / "archive")
    files = packed.artifacts + packed.tombstones + packed.turns
    assert packed.tombstones and packed.turns
    taken = other.import_(tmp_path / "archive")
    assert (taken.conversations, taken.created, taken.unchanged) == (packed.conversations, files, 0)
    assert sum(taken.rows.values()) + taken.known_rows == sum(packed.rows.values())
    again = other.import_(tmp_path / "archive")
    assert (again.conversations, again.created, again.unchanged) == (0, 0, files)
    assert (sum(again.rows.values()), again.known_rows) == (0, sum(packed.rows.values()))


def test_a_lease_does_not_travel(lived: Memory, other: Memory, tmp_path: Path, clock: Clock) -> None:
    jobs = Jobs(lived.owner, clock=clock)
    with lived.database.write() as tx:
        jobs.enqueue(tx, "extract", [("later@1", "w1")])
        jobs.claim(tx, "extract", limit=1, keys=["later@1"])
    lived.export(tmp_path / "a.tar.zst")
    other.import_(tmp_path / "a.tar.zst")
    found = {row[0]: row[1:] for row in rows(other, "memory_jobs", "job_key", "status", "worker", "lease_expires_at")}
    assert found["later@1"] == ("pending", "", "")


def test_the_tables_of_the_archive_are_those_that_call_themselves_operational(
    memory: Memory, database: Database
) -> None:
    from recollect.store.migrate import migrations

    text = "".join(migration.sql for migration in migrations())
    called = {name for name in TABLES if f"CREATE TABLE {name} " in text.split("-- derived")[0] or name in text}
    tables = transfer.operational()
    assert set(tables) <= called and not set(tables) & set(DERIVED) and "memory_jobs" in tables
    assert text.count("-- operational:") == len(tables)
    for name, table in tables.items():
        assert columns(memory, name) == ["tenant", "agent_id", *(column.name for column in table.columns)]
        assert set(table.key) <= {column.name for column in table.columns}


def test_an_archive_holds_nothing_derived_and_only_its_owners(lived: Memory, root: Path, tmp_path: Path) -> None:
    url, home = lived.settings.config.database, lived.settings.home
    with open_memory(home, database=url, clock=lived.clock, agent_id="eve") as eve:
        write(
            root / "-e" / f"{'7' * 8}{SESSION[8:]}.jsonl",
            session("Our vault is called Heron.", "Ok.", name="7" * 8 + SESSION[8:]),
        )
        eve.ingest(folder=root)
        eve.process(now=True)
    report = lived.export(tmp_path / "a.tar.zst")
    found = unpacked(tmp_path / "a.tar.zst")
    assert {name.split("/")[0] for name in found} == {"tables", "memory", "turns", LIST}
    assert not any(b"Heron" in data for data in found.values())
    assert {name for name in found if name.startswith("tables/")} == {
        f"tables/{name}.jsonl" for name in transfer.operational()
    }
    assert report.artifacts == sum(name.startswith("memory/") for name in found) == 6
    with open_memory(home, database=url, clock=lived.clock, agent_id="eve") as eve:
        with pytest.raises(UsageError, match="the memory of") as error:
            eve.import_(tmp_path / "a.tar.zst")
        assert "--agent-id default" in error.value.hint


def test_an_export_is_private_whole_and_never_in_the_way(lived: Memory, packed: Path) -> None:
    assert stat.S_IMODE(packed.stat().st_mode) == 0o600
    before = packed.read_bytes()
    with pytest.raises(UsageError, match="exists"):
        lived.export(packed)
    for wrong in (packed.parent, packed.parent / "missing" / "a"):
        with pytest.raises(UsageError):
            lived.export(wrong)
    lived.database.close()
    home = lived.settings.home
    if not lived.settings.config.database:
        (home / "recollect.db").write_bytes(b"no database" * 1000)
        for name in ("recollect.db-wal", "recollect.db-shm"):
            (home / name).unlink(missing_ok=True)
    with pytest.raises((RecollectError, Exception)):
        lived.export(packed, force=True)
    assert packed.read_bytes() == before
    assert [each.name for each in packed.parent.iterdir() if each.name.endswith(".part")] == []


def test_force_replaces_and_a_damaged_file_is_left_out_and_told(lived: Memory, packed: Path, other: Memory) -> None:
    (path,) = (each for each in lived.settings.home.glob("memory/*--summary.md") if "make lint" in each.read_text())
    path.write_text(path.read_text().replace("make lint", "make love"))
    report = lived.export(packed, force=True)
    assert [each.path for each in report.problems if each.kind == "ChecksumMismatch"] == [f"memory/{path.name}"]
    assert not any(b"make love" in data for data in unpacked(packed).values())
    taken = other.import_(packed)
    assert taken.index is not None and {each.kind for each in taken.index.problems} == {"BrokenLink"}


@pytest.mark.parametrize(
    ("kind", "was", "now"),
    [
        (Kind.SUMMARY, 'branch: ""', 'branch: ""\ntags:\n  - tide'),
        (Kind.SUMMARY, 'project: "/code/tides"', "project: /code/tides"),
        (Kind.SUMMARY, 'manifest_path: "memory/', 'manifest_path: "'),
        (Kind.TRANSCRIPT, "hash_scope", "# mine\nhash_scope"),
        (Kind.MANIFEST, 'summary_path: "memory/', 'summary_path: "'),
    ],
)
def test_a_file_that_an_import_would_refuse_is_left_out_and_told(
    lived: Memory, packed: Path, taker: Memory, kind: Kind, was: str, now: str
) -> None:
    (path,) = lived.settings.home.glob(f"memory/*--{names.session_token('default', KEY, '')}--{kind}.md")
    text = re.sub(r"(?m)^frontmatter_sha256: .*\n", "", path.read_text())  # as earlier versions wrote it
    assert was in text
    path.write_text(text.replace(was, now, 1))
    report = lived.export(packed, force=True)
    assert f"memory/{path.name}" in {each.path for each in report.problems if each.kind == "BadFrontmatter"}
    assert f"memory/{path.name}" not in unpacked(packed)
    assert taker.import_(packed).conversations


# Merging


def test_into_a_home_with_memories_only_what_is_missing_is_added(
    lived: Memory, packed: Path, other: Memory, tmp_path: Path
) -> None:
    third = "33333333" + SESSION[8:]
    ingest(other, tmp_path / "theirs", "please remember: we release on Mondays, never later.", "Ok.", *CHAT, name=third)
    other.process(now=True)
    before = tree(other)
    with lived.database.read() as tx:
        (held,) = [each for each in memories.all_of(tx, lived.owner) if each.text == RULE]
    with other.database.write() as tx:
        memories.cite(tx, other.owner, [held.id] * 1, Timestamp("2020-01-01T00:00:00.000Z"))
    report = other.import_(packed)
    assert report.conversations == 2 and tree(other) == before | tree(lived)
    assert rows(other, "memory_use", "memory_id", "last_usage") == [(held.id, "2020-01-01T00:00:00.000Z")]
    texts = {row[0] for row in rows(other, "memory_memories", "text")}
    assert {RULE, FACT} < texts
    again = other.import_(packed)
    assert (again.created, sum(again.rows.values()), again.conflicts) == (0, 0, [])


def test_a_conversation_that_differs_is_listed_and_left_alone(
    lived: Memory, packed: Path, other: Memory, root: Path
) -> None:
    token = names.session_token("default", KEY, "")
    ingest(other, root.parent / "others", RULE, "Well.", FACT, "Noted.", "And now?", "Nothing.")
    other.process(now=True)
    (summary,) = other.settings.home.glob("memory/*--summary.md")
    summary.unlink()  # the archive has one under this name
    before = {name: data for name, data in tree(other).items() if token in name}
    report = other.import_(packed)
    assert {each.path for each in report.conflicts} <= set(before) and report.conflicts
    assert {name: data for name, data in tree(other).items() if token in name} == before
    assert report.conversations == 1, "the other one is here now"


def test_turn_logs_grow_together(lived: Memory, packed: Path, other: Memory) -> None:
    log = other.settings.turns / "tides" / "ada" / "one.jsonl"
    for ours, conflicts, theirs in (
        (b"", 0, b'{"line": "turn"}\n'),
        (b'{"line": "turn"}\n{"line": "note"}\n', 0, b'{"line": "turn"}\n{"line": "note"}\n'),
        (b'{"line": "other"}\n', 1, b'{"line": "other"}\n'),
    ):
        write(log, ours)
        assert len(other.import_(packed).conflicts) == conflicts and log.read_bytes() == theirs


@given(st.text(), st.text(), st.text())
def test_joining_logs_loses_no_line(common: str, ours: str, theirs: str) -> None:
    both = joined(common + ours, common + theirs)
    if both is None:
        assert ours and theirs
    else:
        assert both.startswith(common + ours) and both.startswith(common + theirs)
    assert joined(None, theirs) == theirs


def bury(memory: Memory, **changes: Any) -> None:
    token = names.session_token("default", KEY, "")
    stone = Tombstone(Kind.TOMBSTONE, "default", token, Timestamp(stamp(9)), "private", (), (token,), ("0" * 40,))
    stone = replace(stone, **changes)
    write(memory.settings.home / stone.path, tombstones.rendered(stone).encode())


def test_what_no_archive_takes_is_told_with_what_to_do(lived: Memory, tmp_path: Path) -> None:
    with (lived.settings.turns / "tides" / "ada" / "one.jsonl").open("ab") as log:
        log.truncate(READ_LIMIT + 1)
    (problem,) = lived.export(tmp_path / "a.tar.zst").problems
    assert (problem.kind, problem.hint) == ("TooLarge", "It stays as it is, and is in no archive: copy it by hand.")


def test_what_was_erased_here_does_not_come_back(lived: Memory, packed: Path, other: Memory) -> None:
    bury(other)
    report = other.import_(packed)
    assert report.erased == 3 and report.conversations == 1
    assert not any(RULE.encode() in data for data in tree(other).values())
    assert rows(other, "memory_answers", "answer") == [] and rows(other, "memory_file_states", "file_path") == []
    assert RULE not in {row[4] for row in entries(other)}
    assert report.left_out == ["turns/tides/ada/one.jsonl"], "who knows what is in it"
    assert report.conflicts == []


def test_a_backup_from_before_does_not_bring_back_what_was_forgotten(lived: Memory, packed: Path) -> None:
    home = lived.settings.home
    with lived.database.read() as tx:
        (held,) = [each for each in memories.all_of(tx, lived.owner) if each.text == FACT]
    for forget in ({"memory": held.id}, {"conversation": KEY}):
        lived.forget(**forget, reason="private")
        report = lived.import_(packed)
        assert report.erased > 0 and report.conflicts == [], "a manifest that lists what was erased is none"
        assert [each for each in home.rglob("*") if each.is_file() and b"tide-stg-2" in each.read_bytes()] == []
        with lived.database.read() as tx:
            assert "tide-stg-2" not in str(everything(tx, lived.owner))


def test_a_home_moves_with_its_tombstones(lived: Memory, other: Memory, tmp_path: Path, root: Path) -> None:
    lived.forget(conversation=KEY, reason="private")
    lived.export(tmp_path / "a.tar.zst")
    report = other.import_(tmp_path / "a.tar.zst")
    assert report.conflicts == [] and tree(other) == tree(lived), "turn logs too: the archive knew of the removal"
    other.ingest(folder=root)
    assert RULE not in {row[4] for row in entries(other)}, "and it stays erased"


@pytest.mark.parametrize("is_older", [False, True])
def test_a_file_whose_frontmatter_was_changed_is_told(lived: Memory, tmp_path: Path, is_older: bool) -> None:
    (path, *_) = sorted((lived.settings.home / "memory").glob("*--summary.md"))
    text = path.read_text()
    if is_older:  # than the checksum of the frontmatter
        text = re.sub(r"(?m)^frontmatter_sha256: .*\n", "", text)
        path.write_text(text)
    before = lived.export(tmp_path / "a.tar.zst")
    assert before.problems == []
    front = re.sub(r"(?m)^project_id: .*$", 'project_id: "elsewhere"', text, count=1)
    assert front != text
    path.write_text(front)
    after = lived.export(tmp_path / "b.tar.zst")
    (problem,) = after.problems
    assert after.artifacts == before.artifacts - 1 and problem.path == f"memory/{path.name}"
    assert problem.kind == ("Edited" if is_older else "ChecksumMismatch")
    assert ("project_id" in problem.what) is is_older


def test_a_tombstone_travels(lived: Memory, other: Memory, tmp_path: Path) -> None:
    bury(lived)
    report = lived.export(tmp_path / "a.tar.zst")
    assert report.tombstones == 1 and report.problems == [], "what it names went before the archive was made"
    taken = other.import_(tmp_path / "a.tar.zst")
    assert not any(RULE.encode() in data for data in tree(other).values())
    assert any(name.startswith(names.TOMBSTONES) for name in tree(other)) and taken.conversations == 1


WORD = "Zanzibarquelle"


@pytest.fixture
def chatted(memory: Memory, clock: Clock, tmp_path: Path) -> Turns:
    """A chat of two conversations, of which the second says the word; packed as chat.tar.zst."""
    turns = memory.turns(project="tides", user="ada", conversation="c1")
    for number, text, title in ((1, "Where are the tide tables?", ""), (2, f"My sister lives in {WORD}.", WORD)):
        with turns.turn(f"t{number}", text) as turn:
            turn.update_fingerprint(conversation_title=title)
            turn.persist("Noted.")
        turns.react(f"t{number}", "ok", f"About {text}")
        clock.advance(86_400)
    memory.ingest()
    memory.process(now=True)
    with memory.database.write() as tx:
        answers.save(tx, memory.owner, "consolidate", "workspace", "h1", f'"{WORD}"', Timestamp(stamp(0)))
    memory.export(tmp_path / "chat.tar.zst")
    return turns


def says(memory: Memory, word: str) -> bool:
    with memory.database.read() as tx:
        rows_ = str(everything(tx, memory.owner))
    return word in rows_ or any(word.encode() in data for data in tree(memory).values())


@pytest.mark.parametrize("which", [0, 1])
def test_a_backup_does_not_bring_back_lines_of_a_turn_log(
    memory: Memory, chatted: Turns, other: Memory, tmp_path: Path, which: int
) -> None:
    key = sorted(each.session_key for each in memory.conversations())[which]
    word = ("tide tables", WORD)[which]
    memory.forget(conversation=key, reason="private")
    before = tree(memory)
    assert len(next(data for name, data in before.items() if name.endswith("c1.jsonl")).splitlines()) == 2
    report = memory.import_(tmp_path / "chat.tar.zst")
    assert report.conflicts == [] and tree(memory) == before
    memory.ingest()
    assert not says(memory, word) and chatted.payload(f"t{which + 1}") is None
    other.import_(tmp_path / "chat.tar.zst")
    assert says(other, word), "nothing was erased there"


def test_a_backup_does_not_bring_back_what_a_chat_had_chosen(
    memory: Memory, chatted: Turns, other: Memory, tmp_path: Path
) -> None:
    assert chatted.title() == WORD
    chatted.forget("private")
    memory.import_(tmp_path / "chat.tar.zst")
    assert chatted.title() == "" and not says(memory, WORD)
    other.import_(tmp_path / "chat.tar.zst")
    assert other.turns(project="tides", user="ada", conversation="c1").title() == WORD
    assert rows(other, "memory_answers", "answer") == [(f'"{WORD}"',)]


# Crashes


class Crash(Exception):
    pass


def test_an_import_that_dies_anywhere_is_finished_by_the_next(
    lived: Memory, packed: Path, tmp_path: Path, clock: Clock
) -> None:
    steps: list[str] = []

    def take_in(home: Path, wrote: Callable[[str], None]) -> Memory:
        memory = open_memory(home, clock=clock)
        Import(memory.ground, memory.reindex, wrote=wrote).run(packed)
        return memory

    with take_in(tmp_path / "whole", steps.append) as whole:
        wanted = tree(whole), content(whole), rows(whole, "memory_jobs", "kind", "job_key", "status")
    assert len(steps) > 8
    for number in range(len(steps)):
        left = [number]

        def crash(what: str, left: list[int] = left) -> None:
            if left[0] == 0:
                raise Crash(what)
            left[0] -= 1

        home = tmp_path / f"died-{number}"
        with pytest.raises(Crash):
            take_in(home, crash)
        with take_in(home, lambda what: None) as memory:
            assert (tree(memory), content(memory), rows(memory, "memory_jobs", "kind", "job_key", "status")) == wanted


# Archives that are not to be trusted


def pack(file: Path, members_: dict[str, bytes], /, *, listed: bool = True, **changes: Any) -> Path:
    """Members with a list that fits them, whatever they are."""
    told = {name: {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()} for name, data in members_.items()}
    head = {
        "format": 1,
        "recollect": "0.1.0",
        "schema": 1,
        "agent_id": "default",
        "created_at": stamp(0),
        "members": told,
    }
    whole = {**members_, LIST: json.dumps(head | changes).encode()} if listed else members_
    return squeeze(file, [(tarfile.TarInfo(name), data) for name, data in whole.items()])


def squeeze(file: Path, members: list[tuple[tarfile.TarInfo, bytes]], form: int = tarfile.USTAR_FORMAT) -> Path:
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w", format=form) as tar:
        for info, data in members:
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    file.write_bytes(zstandard.ZstdCompressor(write_checksum=True).compress(plain.getvalue()))
    return file


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The members of a true archive, without its list."""
    folder = tmp_path_factory.mktemp("good")
    with open_memory(folder / "home", environ={"HOME": str(folder)}, clock=Clock(START + timedelta(days=1))) as memory:
        ingest(memory, folder / "projects", *TALK)
        memory.process(now=True)
        memory.export(folder / "a.tar.zst")
    found = unpacked(folder / "a.tar.zst")
    del found[LIST]
    return found


@contextmanager
def home_of_somebody(folder: Path) -> Iterator[Memory]:
    with open_memory(
        folder / "victim", environ={"HOME": str(folder)}, clock=Clock(START + timedelta(days=1))
    ) as opened:
        ingest(opened, folder / "own", *CHAT, name=OTHER)
        opened.process(now=True)
        yield opened


@pytest.fixture(scope="module")
def victim(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Memory]:
    """One for all: nothing may change it."""
    with home_of_somebody(tmp_path_factory.mktemp("victim")) as opened:
        yield opened


@pytest.fixture
def taker(tmp_path: Path) -> Iterator[Memory]:
    """One that takes archives in."""
    with home_of_somebody(tmp_path) as opened:
        yield opened


def refused(victim: Memory, file: Path, kind: type[RecollectError] = BadArchive) -> RecollectError:
    before = state(victim)
    around = sorted(path for path in victim.settings.home.parent.rglob("*") if "home" not in path.name)
    with pytest.raises(kind) as error:
        victim.import_(file)
    assert error.value.hint
    assert state(victim) == before
    assert sorted(path for path in victim.settings.home.parent.rglob("*") if "home" not in path.name) == around
    return error.value


def test_the_members_as_they_are_make_a_good_archive(taker: Memory, good: dict[str, bytes], tmp_path: Path) -> None:
    """So that what is refused below is refused for its own fault."""
    report = taker.import_(pack(tmp_path / "a", good))
    assert report.conversations == 1 and report.conflicts == []


@pytest.mark.parametrize(
    "name",
    [
        "/etc/passwd",
        "../outside.md",
        "memory/../../outside.md",
        "memory/sub/2026-03-28T22-34-06.792Z--qgyxbr4twjuii5ya--summary.md",
        "memory/2026-03-28T22-34-06.792Z--qgyxbr4twjuii5ya--tombstone.md",
        "memory/notes.md",
        "./memory/x.md",
        "MEMORY.md",
        "config.toml",
        "recollect.db",
        "turns/a/b.jsonl",
        "turns/a/b/../c.jsonl",
        "turns/a/b/.c.jsonl",
        "turns/A/b/c.jsonl",
        "tables/memory_memories.jsonl",
        "tables/sqlite_master.jsonl",
        "tables/memory_jobs.jsonl/x",
        "memory/a\nb.md",
    ],
)
def test_a_member_that_does_not_belong_is_refused(
    victim: Memory, good: dict[str, bytes], tmp_path: Path, name: str
) -> None:
    refused(victim, pack(tmp_path / "a", {**good, name: b"x"}))


@pytest.mark.parametrize(
    "type_", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE, tarfile.DIRTYPE]
)
def test_links_devices_and_folders_are_refused(
    victim: Memory, good: dict[str, bytes], tmp_path: Path, type_: bytes
) -> None:
    info = tarfile.TarInfo(next(name for name in good if name.endswith("summary.md")))
    info.type, info.linkname = type_, "/etc/passwd"
    error = refused(victim, squeeze(tmp_path / "a", [(info, b"")]))
    assert "no plain file" in error.message


def test_headers_that_go_on_elsewhere_are_refused(victim: Memory, tmp_path: Path) -> None:
    long = tarfile.TarInfo("memory/" + "x" * 300)
    for form in (tarfile.PAX_FORMAT, tarfile.GNU_FORMAT):
        assert "no plain file" in refused(victim, squeeze(tmp_path / "a", [(long, b"")], form)).message


def test_a_header_that_promises_more_than_fits_is_refused_before_it_is_read(victim: Memory, tmp_path: Path) -> None:
    info = tarfile.TarInfo("turns/a/b/c.jsonl")
    info.size = archive.LARGEST + 1
    head = info.tobuf(tarfile.USTAR_FORMAT)
    plain = head + b"\0" * (1 << 20)
    (tmp_path / "a").write_bytes(zstandard.ZstdCompressor(write_checksum=True).compress(plain))
    assert "too large" in refused(victim, tmp_path / "a").message


def test_the_list_has_to_fit(victim: Memory, good: dict[str, bytes], tmp_path: Path) -> None:
    file = tmp_path / "a"
    name = next(iter(good))
    refused(victim, pack(file, good, listed=False))
    refused(victim, pack(file, good, members={}))
    told = {key: {"size": len(data), "sha256": "0" * 64} for key, data in good.items()}
    assert "not what its list says" in refused(victim, pack(file, good, members=told)).message
    refused(victim, pack(file, good, members="all"))
    twice = [(tarfile.TarInfo(name), good[name])] * 2
    refused(victim, squeeze(file, twice))
    head = unpacked(pack(file, good))[LIST]
    behind = [(tarfile.TarInfo(each), data) for each, data in {**good, LIST: head, "turns/a/b/c.jsonl": b""}.items()]
    refused(victim, squeeze(file, behind))
    refused(victim, pack(file, good, format=2), SchemaTooNew)
    refused(victim, pack(file, {**good, "tables/memory_new.jsonl": b""}, schema=999), SchemaTooNew)
    refused(victim, pack(file, good, agent_id="eve"))
    refused(victim, pack(file, {}, agent_id="eve"), UsageError)


def test_no_archive_at_all_is_refused(victim: Memory, tmp_path: Path) -> None:
    squeezed = zstandard.ZstdCompressor().compress
    for data in (b"", b"hello", squeezed(b""), squeezed(b"hello" * 1000), squeezed(b"\0" * 10240), b"\x1f\x8b" * 99):
        (tmp_path / "a").write_bytes(data)
        refused(victim, tmp_path / "a")
    refused(victim, tmp_path / "missing", UsageError)
    refused(victim, tmp_path, UsageError)


CACHES = {"model": "other/1", "dimensions": 256, "status": "serving", "cache": "0" * 16, "created_at": stamp(0)}


def test_whose_vectors_serve_is_not_taken_from_an_archive(
    taker: Memory, good: dict[str, bytes], tmp_path: Path
) -> None:
    """Neither the model, nor the folder that an update writes to and clears."""
    outside = tmp_path / "outside"
    write(outside / "thesis.txt", b"precious")
    taker.embed()
    before = taker.vectors.serving()
    lines = [json.dumps(CACHES | {"cache": str(outside)}), json.dumps(CACHES | {"model": "static", "cache": "../.."})]
    pack(tmp_path / "a", {**good, "tables/memory_vector_models.jsonl": "\n".join(lines).encode()})
    assert taker.import_(tmp_path / "a").rows["memory_vector_models"] == 0
    taker.embed()
    assert before is not None and taker.vectors.serving() == before
    assert [path.name for path in outside.iterdir()] == ["thesis.txt"]
    taker.export(tmp_path / "b")
    assert unpacked(tmp_path / "b")["tables/memory_vector_models.jsonl"] == b""


@pytest.mark.parametrize("cache", ["/etc", "../..", "..", "", ".", "a/b", "0" * 15 + "/", "0" * 16 + "\n", "é" * 16])
def test_codes_lie_below_their_owners_folder_whatever_a_row_says(victim: Memory, cache: str) -> None:
    vectors = victim.vectors
    folder = vectors.folder(Model("other/1", 256, Status.SERVING, cache))
    assert folder.resolve().parent == vectors.folder_of_owner.resolve() and re.fullmatch("[0-9a-f]{16}", folder.name)
    named = vectors.folder(Model("other/1", 256, Status.SERVING, "0123456789abcdef"))
    assert named.name == "0123456789abcdef"


def changed(good: dict[str, bytes], kind: Kind, change: Callable[[str], str]) -> dict[str, bytes]:
    (name,) = [each for each in good if each.endswith(f"--{kind}.md")]
    text = change(good[name].decode())
    data = text.encode("utf-8", "surrogateescape")
    assert data != good[name]
    return {**good, name: data}


def resealed(text: str, **values: Any) -> str:
    found = document.parse(text)
    body = values.pop("body", found.body)
    return document.rendered(*document.sealed(replace(found.head, **values), body))


def rebodied(text: str, pattern: str, to: str) -> str:
    """With another text in the first place of its body."""
    body, number = re.subn(pattern, to, document.parse(text).body, count=1)
    assert number == 1
    return resealed(text, body=body)


def reheaded(text: str, heading: str) -> str:
    """Its first heading with another id."""
    return rebodied(text, r"(### \w+ · \S+ · )\S+", rf"\g<1>{heading}")


ELSEWHERE = "memory/2026-03-28T22-34-06.792Z--qgyxbr4twjuii5yb--transcript.md"
BOMB = "a: &a [x, x]\nb: &b [*a, *a]\nagent_id: *b\n"


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        (Kind.SUMMARY, lambda text: text.replace("make lint", "make love")),
        (Kind.SUMMARY, lambda text: text.replace("\n", "\r\n")),
        (Kind.SUMMARY, lambda text: text + "\udcff"),
        (Kind.SUMMARY, lambda text: text.replace("---\n", "---\n" + BOMB, 1)),
        (Kind.SUMMARY, lambda text: text.replace('branch: ""', "branch: !!python/object:os.system x")),
        (Kind.SUMMARY, lambda text: resealed(text, body="# No sections")),
        (Kind.SUMMARY, lambda text: resealed(text, captured_at="2020-01-01T00:00:00.000Z")),
        (Kind.SUMMARY, lambda text: resealed(text, session_key="somebody@else")),
        (Kind.SUMMARY, lambda text: rebodied(text, r"-r1\b", f"-r{1 << 63}")),
        (Kind.SUMMARY, lambda text: rebodied(text, r"(first seen \S+ from) \S+", r"\1 %ED%A0%80")),
        (Kind.SUMMARY, lambda text: rebodied(text, r"\w+, project", "none, conversation of %00")),
        (Kind.SUMMARY, lambda text: resealed(text, manifest_path="evil]]")),
        (Kind.SUMMARY, lambda text: resealed(text, manifest_path=ELSEWHERE.replace("transcript", "manifest"))),
        (Kind.SUMMARY, lambda text: resealed(text, ended_at="9")),
        (Kind.TRANSCRIPT, lambda text: resealed(text, agent_id="eve")),
        (Kind.TRANSCRIPT, lambda text: resealed(text, branch="\0")),
        (Kind.TRANSCRIPT, lambda text: rebodied(text, "make lint", "make\0lint")),
        (Kind.TRANSCRIPT, lambda text: reheaded(text, "%FF")),
        (Kind.TRANSCRIPT, lambda text: reheaded(text, "%00")),
        (Kind.TRANSCRIPT, lambda text: reheaded(text, "e1 · cwd=%ED%A0%80")),
        (Kind.MANIFEST, lambda text: resealed(text, transcript_path="../../etc/passwd")),
        (Kind.MANIFEST, lambda text: resealed(text, transcript_path=ELSEWHERE)),
        (Kind.MANIFEST, lambda text: resealed(text, superseded=(document.Listed(ELSEWHERE, ""),))),
        (Kind.MANIFEST, lambda text: resealed(text, compactions=(document.Listed(ELSEWHERE, ""),))),
    ],
)
def test_a_file_that_is_not_what_it_says_is_refused(
    victim: Memory, good: dict[str, bytes], tmp_path: Path, kind: Kind, change: Callable[[str], str]
) -> None:
    refused(victim, pack(tmp_path / "a", changed(good, kind, change)))


def test_a_compaction_that_cannot_be_read_is_refused(victim: Memory, lived: Memory, tmp_path: Path) -> None:
    assert lived.record_compaction(KEY, "So far the tide table was shown.", Timestamp(stamp(400)), "c1")
    lived.export(tmp_path / "a.tar.zst")
    found = unpacked(tmp_path / "a.tar.zst")
    del found[LIST]
    for wrong in ("%FF", "%ED%A0%80", "c1 c2"):
        told = changed(found, Kind.COMPACTION, partial(reheaded, heading=wrong))
        refused(victim, pack(tmp_path / "a", told))


def unlisted(hashes: str) -> tuple[str, bytes]:
    """Path and text of a tombstone whose hashes are no list, or none of texts."""
    token = names.session_token("default", KEY, "")
    stone = Tombstone(Kind.TOMBSTONE, "default", token, Timestamp(stamp(9)), "private", (), (), ())
    assert tombstones.parse(tombstones.rendered(stone)) == stone
    return stone.path, tombstones.rendered(stone).replace("hashes: []", f"hashes:{hashes}").encode()


@pytest.mark.parametrize("hashes", [" 5", ' "abc"', " null", '\n- "\\0"'])
def test_a_tombstone_that_is_none_is_refused(
    victim: Memory, good: dict[str, bytes], tmp_path: Path, hashes: str
) -> None:
    path, data = unlisted(hashes)
    refused(victim, pack(tmp_path / "a", {**good, path: data}))


def test_files_that_cannot_be_read_are_reported_and_stop_nothing(lived: Memory, tmp_path: Path) -> None:
    """However they came here."""
    paths = [path for path in lived.settings.home.glob("memory/*--transcript.md") if RULE in path.read_text()]
    paths[0].write_text(reheaded(paths[0].read_text(), "%FF"))
    stone, data = unlisted(" 5")
    write(lived.settings.home / stone, data)
    problems = {(each.path, each.kind) for each in lived.reindex(full=True).problems}
    assert {(f"memory/{paths[0].name}", "BadBody"), (stone, "BadFrontmatter")} <= problems
    assert lived.doctor().problems
    name = Tombstone(Kind.TOMBSTONE, "default", "a" * 16, Timestamp(stamp(9)), "private", (), (), ())
    for folder in ("memory", "memory/tombstones"):
        write(lived.settings.home / folder / Path(name.path).name, tombstones.rendered(name).encode())
    report = lived.export(tmp_path / "a.tar.zst")
    left_out = {each.path for each in report.problems} - {name.path}
    assert {f"memory/{paths[0].name}", stone} <= left_out and not left_out & unpacked(tmp_path / "a.tar.zst").keys()


JOB = {
    "kind": "extract",
    "job_key": "k",
    "status": "pending",
    "worker": "",
    "fencing_token": 1,
    "lease_expires_at": "",
    "not_before": "",
    "attempts": 0,
    "last_error": "",
    "input_watermark": "",
    "success_watermark": "",
    "created_at": "",
    "updated_at": "",
}


@pytest.mark.parametrize(
    "lines",
    [
        [JOB | {"status": "happy"}],
        [JOB | {"tenant": "else"}],
        [JOB | {"agent_id": "else"}],
        [JOB | {"x; DROP TABLE memory_jobs": 1}],
        [JOB | {"attempts": "many"}],
        [JOB | {"attempts": 1 << 70}],
        [JOB | {"attempts": True}],
        [JOB | {"attempts": None}],
        [JOB | {"worker": "a\0b"}],
        [JOB | {"worker": ["a"]}],
        [{"kind": "extract"}],
        [JOB, {"kind": "extract", "job_key": "j", "status": "pending"}],
        ["row"],
        [],
    ],
)
def test_rows_that_are_none_are_refused(
    victim: Memory, good: dict[str, bytes], tmp_path: Path, lines: list[Any]
) -> None:
    data = b"".join(json.dumps(line).encode() + b"\n" for line in lines) or b"\xff{\n"
    refused(victim, pack(tmp_path / "a", {**good, "tables/memory_jobs.jsonl": data}))


def test_a_row_as_it_has_to_be_is_taken(taker: Memory, good: dict[str, bytes], tmp_path: Path) -> None:
    pack(tmp_path / "a", {**good, "tables/memory_jobs.jsonl": json.dumps(JOB).encode()})
    assert taker.import_(tmp_path / "a").rows["memory_jobs"] == 1


def test_a_truncated_archive_is_refused_or_whole(taker: Memory, good: dict[str, bytes], tmp_path: Path) -> None:
    whole = pack(tmp_path / "whole", good).read_bytes()
    assert not refused_or_whole(taker, good, tmp_path, (whole[:size] for size in range(0, len(whole) - 60, 97)))
    refused_or_whole(taker, good, tmp_path, [whole[:-1], whole])


def test_a_flipped_bit_is_found_or_without_effect(taker: Memory, good: dict[str, bytes], tmp_path: Path) -> None:
    whole = pack(tmp_path / "whole", good).read_bytes()

    def flipped(at: int) -> bytes:
        return whole[:at] + bytes([whole[at] ^ 1 << at % 8]) + whole[at + 1 :]

    refused_or_whole(taker, good, tmp_path, (flipped(at) for at in range(0, len(whole), 7)))


def refused_or_whole(taker: Memory, good: dict[str, bytes], tmp_path: Path, archives: Iterable[bytes]) -> int:
    """How many were taken: all of what the good archive holds, and nothing at all from the others."""
    before, taken = tree(taker), 0
    wanted = {**before, **{name: data for name, data in good.items() if name.startswith("memory/")}}
    for data in archives:
        (tmp_path / "a").write_bytes(data)
        try:
            taker.import_(tmp_path / "a")
        except (BadArchive, SchemaTooNew):  # a bit of the number that it names is one, too
            assert tree(taker) == before
        else:
            before, taken = wanted, taken + 1
            assert tree(taker) == wanted
    return taken


# The command line


def test_what_was_erased_since_an_archive_was_made_is_no_conflict(tmp_path: Path) -> None:
    home, file = tmp_path / "h", str(tmp_path / "a.tar.zst")
    note = run(home, "remember", "The boat is called Nixe.", "--json", cwd=tmp_path).json["id"]
    run(home, "feedback", note, "ok", "--json")
    assert "1 conversation in 5 files, " in run(home, "export", file).stdout, "with what only logs hold"
    assert run(home, "forget", "--memory", note, "--yes").status == 0
    done = run(home, "import", file)
    assert done.status == 0 and done.stderr == "" and "conflict" not in done.stdout
    assert "4 files left out: erased here" in done.stdout
    assert "1 turn log left out: not here any more" in done.stdout and f"{note}.jsonl" in done.stdout
    assert run(home, "search", "Nixe", "--all-projects", "--json").json["hits"] == []


def test_the_commands_say_what_they_did(good: dict[str, bytes], tmp_path: Path) -> None:
    file = pack(tmp_path / "a.tar.zst", good)
    assert "3 new files of 1 conversation" in run(tmp_path / "h", "import", str(file)).stdout
    told = run(tmp_path / "h", "import", str(file), "--json").json
    assert (told["created"], told["unchanged"], told["conflicts"]) == (0, 3, [])
    done = run(tmp_path / "h", "export", str(tmp_path / "b.tar.zst"), "--json")
    assert done.status == 0 and done.json["conversations"] == 1
    assert "exists" in run(tmp_path / "h", "export", str(tmp_path / "b.tar.zst")).stderr
    assert run(tmp_path / "h", "import", str(tmp_path / "missing")).status == 2
    file.write_bytes(file.read_bytes()[:900])
    damaged = run(tmp_path / "i", "import", str(file), "--json")
    assert damaged.status == 1 and damaged.json["error"]["kind"] == "BadArchive"
