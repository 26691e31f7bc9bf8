"""One suite for the store, run unchanged on SQLite and PostgreSQL.

A function of the store that reads has a row in READS, one that writes has a row in WRITES: that is how it is tested
against other owners' rows and against a locked database. A function without a row fails the suite.
"""

from __future__ import annotations

import importlib
import inspect
import os
import pkgutil
import re
import shutil
import stat
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, replace
from itertools import count, permutations
from pathlib import Path
from types import ModuleType
from typing import Any

import apsw
import msgspec
import numpy as np
import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recollect import store
from recollect.app import open_memory
from recollect.errors import ConfigError, StoreAway, StoreBusy, StoreDamaged, StoreError, StoreFull
from recollect.models.embed import catalog
from recollect.models.paid import committed
from recollect.store import (
    answers,
    artifacts,
    citations,
    compactions,
    conversations,
    entries,
    erasing,
    feedback,
    files,
    injections,
    listing,
    memories,
    mending,
    projects,
    search,
    stage1,
    sums,
    tombstones,
    transfer,
    turns,
    unlisted,
    users,
    vectors,
)
from recollect.store.answers import Spent
from recollect.store.artifacts import Indexed
from recollect.store.compactions import Compacted
from recollect.store.database import Database, Transaction
from recollect.store.entries import FileKey, Stored
from recollect.store.erasing import Said
from recollect.store.files import FileState, MalformedLine
from recollect.store.injections import Injected
from recollect.store.jobs import Jobs, Lease, Standing
from recollect.store.listing import Within
from recollect.store.migrate import migrations
from recollect.store.open import open_database
from recollect.store.projects import Project, Repository
from recollect.store.search import Reach
from recollect.store.sqlite import SqliteDatabase, SqliteTransaction
from recollect.store.vectors import EVERYTHING, Kind, Model, Part, Ref, Status
from recollect.types import (
    Conversation,
    ConversationStatus,
    Entry,
    FileStatus,
    JobStatus,
    MemoryKind,
    Owner,
    Remembered,
    Role,
    Scope,
    Severity,
    Stage1,
    Timestamp,
)
from tests.conftest import Clock, Place, Server

SOURCE, FILE, SESSION = "codex", "2026/rollout-s1.jsonl", "s1"
TABLES = re.findall(r"^CREATE TABLE (\w+)", "".join(migration.sql for migration in migrations()), re.MULTILINE)
NOW = Timestamp("2026-03-02T09:00:00.000Z")
KIND = "ingest"
WITHIN = Within("2026-02-23", "2026-02-01")


def at(minute: int, hour: int = 8) -> Timestamp:
    return Timestamp(f"2026-03-02T{hour:02d}:{minute:02d}:00.000Z")


def an_entry(uuid: str = "e1", minute: int = 0, **changes: Any) -> Entry:
    made = Entry(
        uuid=uuid,
        session_id=SESSION,
        role=Role.USER,
        content=f"text of {uuid}",
        timestamp=at(minute),
        line_offset=minute * 100,
        tool_names="Bash,Edit",
        cwd="/code/garden",
        branch="main",
        remote="git@example.com:ada/garden.git",
        authors="typed:10" if uuid == "e1" else "",
    )
    return msgspec.structs.replace(made, **changes)


def a_conversation(first: int = 0, last: int = 30, **changes: Any) -> Conversation:
    made = Conversation(
        id=0,
        session_id=SESSION,
        session_key=f"{SESSION}@{at(first)}",
        source=SOURCE,
        source_file=FILE,
        project="/code/garden",
        project_id="example.com/ada/garden",
        branch="main",
        first_message_at=at(first),
        last_message_at=at(last),
        entry_count=7,
        status=ConversationStatus.ACTIVE,
        status_reason="",
    )
    return replace(made, **changes)


def a_state(**changes: Any) -> FileState:
    made = FileState(
        source=SOURCE,
        file_path=FILE,
        root="/home/ada/.codex/sessions",
        status=FileStatus.INGESTING,
        last_modified=1_772_000_000_123,
        signature="1772000000123-5000000000",
        file_size=5_000_000_000,
        last_processed_offset=4_999_999_999,
        last_entry_timestamp=at(5),
        line_count=3_000_000_000,
        malformed_count=2,
        generation=3,
        reimporting=True,
        head_hash="h",
        tail_hash="t",
        parser_state='{"fold": {}}',
    )
    return replace(made, **changes)


def key_of(owner: Owner, source: str = SOURCE, file: str = FILE) -> FileKey:
    return FileKey(owner, source, file)


def rows_of(key: FileKey, *made: Entry, generation: int = 1, owned: bool = True) -> list[dict[str, Any]]:
    return [entries.row(key, generation, each, "example.com/ada/garden", owned) for each in made]


def compaction(key: FileKey, uuid: str = "c1", **changes: Any) -> dict[str, Any]:
    made = {"uuid": uuid, "session_id": SESSION, "generation": 1, "line_offset": 50, "timestamp": at(1)}
    return {**key.names(), **made, "summary": "what happened so far", **changes}


def everything(tx: Transaction, owner: Owner) -> dict[str, list[tuple[Any, ...]]]:
    """All rows of one owner, whatever the table."""
    return {
        table: sorted(tx.rows(f"SELECT * FROM {table} WHERE tenant = :tenant AND agent_id = :agent_id", asdict(owner)))
        for table in TABLES
    }


# Files


def test_a_file_state_comes_back_as_it_was_saved(database: Database, owner: Owner) -> None:
    full, fresh = a_state(), FileState(SOURCE, "other.jsonl", "/root")
    with database.write() as tx:
        files.save(tx, owner, [full, fresh])
    with database.read() as tx:
        assert files.load(tx, owner, *full.key) == full
        assert files.load(tx, owner, *fresh.key) == fresh
        assert files.load(tx, owner, "pi", FILE) is None
        assert files.load(tx, owner, SOURCE, FILE.upper()) is None


def test_saving_a_file_state_again_replaces_every_field(database: Database, owner: Owner) -> None:
    later = FileState(SOURCE, FILE, "/elsewhere", line_count=1)
    with database.write() as tx:
        files.save(tx, owner, [a_state()])
        files.save(tx, owner, [later])
        assert files.load(tx, owner, *later.key) == later


def test_a_next_generation_starts_from_the_beginning_under_the_same_key() -> None:
    before = a_state()
    after = before.next_generation(reimporting=False)
    assert (after.key, after.root, after.generation) == (before.key, before.root, before.generation + 1)
    fresh = FileState(SOURCE, FILE, before.root)
    for name in ("signature", "last_processed_offset", "line_count", "malformed_count", "head_hash", "parser_state"):
        assert getattr(after, name) == getattr(fresh, name)
    assert not after.reimporting


def test_files_are_listed_by_status_in_the_order_of_their_bytes(database: Database, owner: Owner) -> None:
    names = ["b", "a", "B", "é", "z", "Z", "a-", "a.b", "_"]
    with database.write() as tx:
        files.save(tx, owner, [a_state(file_path=name) for name in names])
        files.save(tx, owner, [a_state(file_path="idle", status=FileStatus.IDLE), a_state(source="pi", file_path="a")])
        listed = files.with_status(tx, owner, FileStatus.INGESTING)
    assert [state.file_path for state in listed] == [*sorted(names, key=str.encode), "a"]


@pytest.mark.parametrize("others", [0, 50_000])  # asked for a few files, and for so many that all are read
def test_signatures_tell_the_known_states_of_files_of_any_source(database: Database, owner: Owner, others: int) -> None:
    with database.write() as tx:
        assert files.signatures(tx, owner, [FILE]) == {}
        files.save(tx, owner, [a_state(), a_state(source="pi", signature="other"), a_state(file_path="x")])
        known = files.signatures(tx, owner, [FILE, "x", "unknown", *(f"u{number}" for number in range(others))])
        assert files.signatures(tx, owner, []) == {}
    here = a_state()
    first = {here.signature: here.last_processed_offset}
    assert known == {FILE: {**first, "other": here.last_processed_offset}, "x": first}


def test_a_file_that_moved_takes_everything_of_it_along(database: Database, owner: Owner) -> None:
    was, now = a_state(), FileState(SOURCE, "archived.jsonl", "/archive", FileStatus.INGESTING)
    with database.write() as tx:
        fill(tx, owner)
        files.save(tx, owner, [now, replace(was, source="pi")])
        files.move(tx, owner, was, now)
        assert files.load(tx, owner, *now.key) == replace(was, file_path=now.file_path, root=now.root)
        assert files.load(tx, owner, *was.key) is None
        assert files.load(tx, owner, "pi", FILE) is not None
        held = {
            table: set(tx.rows(f"SELECT {column} FROM {table} WHERE source = :source", {"source": SOURCE}))
            for table, column in files._OF_A_FILE
        }
    assert held == {table: {(now.file_path,)} for table in held}


def test_signed_is_what_was_refused_by_which_switches() -> None:
    assert (files.signed("1:2", ""), files.signed("1:2", "off")) == ("1:2", "1:2 off")
    for refused in ("", "off"):
        assert a_state(signature=files.signed("1:2", refused)).refused == refused


def test_malformed_lines_come_back_in_order_and_once(database: Database, owner: Owner) -> None:
    lines = [MalformedLine(SOURCE, FILE, number, number * 10, f"no JSON: {number}") for number in range(1, 6)]
    with database.write() as tx:
        files.save_malformed(tx, owner, reversed(lines))
        files.save_malformed(tx, owner, [replace(lines[0], reason="said before")])
        assert files.malformed(tx, owner) == lines
        assert files.malformed(tx, owner, limit=2) == lines[:2]


def test_clearing_malformed_lines_touches_one_file_only(database: Database, owner: Owner) -> None:
    line = MalformedLine(SOURCE, FILE, 1, 0, "no JSON")
    others = [replace(line, file_path="x"), replace(line, source="pi")]
    with database.write() as tx:
        files.save_malformed(tx, owner, [line, *others])
        files.clear_malformed(tx, owner, a_state())
        assert files.malformed(tx, owner) == others


# Entries


def test_an_entry_is_stored_with_every_field(database: Database, owner: Owner) -> None:
    key, made = key_of(owner), an_entry(role=Role.ASSISTANT, line_offset=5_000_000_000)
    with database.write() as tx:
        assert entries.insert(tx, rows_of(key, made, generation=4, owned=False)) == 1
        columns = (
            "source, entry_uuid, session_id, source_file, generation, line_offset, role, content, tool_names,"
            " timestamp, cwd, project_id, branch, owned, withdrawn"
        )
        (row,) = tx.rows(f"SELECT {columns} FROM memory_transcript_entries")
    text = ("assistant", made.content, made.tool_names, made.timestamp, made.cwd, "example.com/ada/garden", made.branch)
    assert row == (SOURCE, made.uuid, SESSION, FILE, 4, 5_000_000_000, *text, 0, 0)


def test_insert_counts_what_is_new(database: Database, owner: Owner) -> None:
    key = key_of(owner)
    with database.write() as tx:
        assert entries.insert(tx, []) == 0
        assert entries.insert(tx, rows_of(key, an_entry("a"), an_entry("b"), an_entry("a"))) == 2
        assert entries.insert(tx, rows_of(key, an_entry("b"), an_entry("c"))) == 1
        assert entries.insert(tx, rows_of(key_of(owner, file="copy"), an_entry("a"), an_entry("b"))) == 0


def test_a_uuid_is_unique_per_owner_and_source_and_not_across_them(database: Database, owner: Owner) -> None:
    keys = [
        key_of(owner),
        key_of(owner, source="pi"),
        key_of(Owner(owner.tenant, "other")),
        key_of(Owner("other", owner.agent_id)),
    ]
    with database.write() as tx:
        for key in keys:
            assert entries.insert(tx, rows_of(key, an_entry())) == 1
            assert entries.insert(tx, rows_of(key, an_entry())) == 0


def test_uuids_that_differ_in_case_only_are_two(database: Database, owner: Owner) -> None:
    with database.write() as tx:
        assert entries.insert(tx, rows_of(key_of(owner), an_entry("abc"), an_entry("ABC"), an_entry("abc "))) == 3


def test_find_tells_where_entries_stand_in_any_file_of_the_source(database: Database, owner: Owner) -> None:
    many = [f"u{number}" for number in range(1001)]  # more than fit into one statement
    with database.write() as tx:
        entries.insert(tx, rows_of(key_of(owner), *(an_entry(uuid, line_offset=7) for uuid in many)))
        entries.insert(tx, rows_of(key_of(owner, file="x"), an_entry("elsewhere", 3), generation=2, owned=False))
        entries.insert(tx, rows_of(key_of(owner, source="pi"), an_entry("foreign")))
        found = entries.find(tx, key_of(owner), [*many, "elsewhere", "foreign", "nowhere", many[0]])
        assert entries.find(tx, key_of(owner), []) == {}
    assert found.pop("elsewhere") == Stored("elsewhere", "x", SESSION, 2, 300, False)
    assert found == {uuid: Stored(uuid, FILE, SESSION, 1, 7, True) for uuid in many}


def test_overwrite_moves_an_entry_to_its_new_file_whose_word_counts(database: Database, owner: Owner) -> None:
    copy, original = key_of(owner, file="copy"), key_of(owner)
    with database.write() as tx:
        entries.insert(tx, rows_of(copy, an_entry("a"), an_entry("b", 1), owned=False))
        entries.set_withdrawn(tx, copy, ["a"], True)
        moved = an_entry(
            "a", 5, content="as it stands there", role=Role.ASSISTANT, session_id="s2", cwd="/x", branch="y"
        )
        for withdrawn in (True, False):
            rows = rows_of(original, moved, an_entry("unknown"), generation=2)
            entries.overwrite(tx, rows, ["a"] if withdrawn else [])
            assert entries.find(tx, copy, ["a", "b", "unknown"]) == {
                "a": Stored("a", FILE, "s2", 2, 500, True, withdrawn),
                "b": Stored("b", "copy", SESSION, 1, 100, False),
            }
        assert entries.marks_of_session(tx, original, "s2") == [(at(5), "/x", "example.com/ada/garden", "y", "")]


def test_an_older_entry_that_says_the_same_takes_the_id_of_a_rewritten_file(database: Database, owner: Owner) -> None:
    key = key_of(owner)
    with database.write() as tx:
        old = [an_entry("old1", 1, content="one"), an_entry("old2", 2, content="two"), an_entry("kept", 3, content="x")]
        twins = [an_entry(f"twin{number}", 8, content="go on", line_offset=number) for number in range(3)]
        entries.insert(tx, rows_of(key, *old, *twins, generation=1))
        entries.insert(tx, rows_of(key, an_entry("same generation", 4, content="four"), generation=2))
        entries.insert(tx, rows_of(key_of(owner, file="other"), an_entry("other", 5, content="five")))
        entries.insert(tx, rows_of(key_of(owner, file="other"), an_entry("taken", 6)))
        entries.insert(tx, rows_of(key, an_entry("old7", 7, content="seven")))
        new = [
            an_entry("new1", 1, content="one"),
            an_entry("new2", 2, content="two", role=Role.ASSISTANT),  # said by another
            an_entry("kept", 3, content="x"),
            an_entry("new4", 4, content="four"),
            an_entry("new5", 5, content="five"),
            an_entry("taken", 7, content="seven"),  # an id that stands elsewhere already
            an_entry("twin1", 8, content="go on"),
            *(an_entry(f"new{number}", 8, content="go on") for number in (8, 9)),
        ]
        assert entries.adopt(tx, key, 2, new) == [(SESSION, at(1)), (SESSION, at(8)), (SESSION, at(8))]
        stored = tx.rows("SELECT entry_uuid FROM memory_transcript_entries ORDER BY timestamp, line_offset")
    kept = ["new1", "old2", "kept", "same generation", "other", "taken", "old7", "new8", "twin1", "new9"]
    assert [uuid for (uuid,) in stored] == kept


def test_what_names_an_entry_follows_it_to_its_new_id(database: Database, owner: Owner) -> None:
    key, elsewhere = key_of(owner), "s2@1"
    told = replace(A_MEMORY, sources=((f"{SESSION}@1", "old"), (f"{SESSION}@1", "beside"), (elsewhere, "old")))
    cited = an_entry("old", content=f"as m-{'a' * 16} says", role=Role.ASSISTANT)
    with database.write() as tx:
        entries.insert(tx, rows_of(key, cited))
        memories.replace_sessions(tx, owner, {f"{SESSION}@1": [told], elsewhere: [told]})
        citations.note(tx, key, [cited])
        entries.adopt(tx, key, 2, [msgspec.structs.replace(cited, uuid="new")])
        (found,) = memories.find(tx, owner, [told.id])
        assert citations.note(tx, key, [msgspec.structs.replace(cited, uuid="new")]) == 0, "it counted before"
    assert set(found.sources) == {(f"{SESSION}@1", "new"), (f"{SESSION}@1", "beside"), (elsewhere, "old")}


def test_amend_changes_text_that_this_file_owns_and_tells_which(database: Database, owner: Owner) -> None:
    key = key_of(owner)
    with database.write() as tx:
        entries.insert(tx, rows_of(key, an_entry("a"), an_entry("b", 1, session_id="s2"), an_entry("c", 2)))
        entries.insert(tx, rows_of(key_of(owner, file="other"), an_entry("d")))
        amended = [
            an_entry("a", content="grown"),
            an_entry("b", 1, session_id="s2", tool_names="Bash"),
            an_entry("c", 2),  # says the same as before
            an_entry("d", content="not from this file"),
            an_entry("unknown"),
        ]
        assert {entry.session_id for entry in entries.amend(tx, key, amended)} == {SESSION, "s2"}
        assert entries.amend(tx, key, amended) == []
        stored = tx.rows("SELECT entry_uuid, content, tool_names FROM memory_transcript_entries ORDER BY entry_uuid")
    assert stored == [
        ("a", "grown", "Bash,Edit"),
        ("b", "text of b", "Bash"),
        ("c", "text of c", "Bash,Edit"),
        ("d", "text of d", "Bash,Edit"),
    ]


def test_withdrawing_tells_the_sessions_and_can_be_taken_back(database: Database, owner: Owner) -> None:
    key = key_of(owner)
    with database.write() as tx:
        entries.insert(tx, rows_of(key, an_entry("a"), an_entry("b", 1, session_id="s2")))
        entries.insert(tx, rows_of(key_of(owner, file="other"), an_entry("c")))
        assert entries.set_withdrawn(tx, key, ["a", "b", "c", "unknown"], True) == [(SESSION, at(0)), ("s2", at(1))]
        assert entries.set_withdrawn(tx, key, ["a", "b"], True) == []
        assert entries.marks_of_session(tx, key, SESSION) == []
        assert entries.user_texts(tx, key, SESSION, at(0), at(59)) == []
        assert entries.set_withdrawn(tx, key, ["a"], False) == [(SESSION, at(0))]
        assert len(entries.marks_of_session(tx, key, SESSION)) == 1


def test_marks_stand_in_the_order_of_time_then_generation_then_line(database: Database, owner: Owner) -> None:
    key = key_of(owner)
    with database.write() as tx:
        late, early = an_entry("late", 9, branch="late"), an_entry("early", 1, branch="early")
        entries.insert(tx, rows_of(key, late, early))
        entries.insert(tx, rows_of(key, an_entry("new", 5, line_offset=0, branch="new"), generation=2))
        second, first = (an_entry(name, 5, line_offset=n, branch=name) for name, n in (("second", 10), ("first", 9)))
        entries.insert(tx, rows_of(key, second, first, an_entry("foreign", session_id="s2")))
        marks = entries.marks_of_session(tx, key, SESSION)
    assert [mark[3] for mark in marks] == ["early", "first", "second", "new", "late"]


def test_sessions_of_a_file_are_those_of_its_entries(database: Database, owner: Owner) -> None:
    with database.write() as tx:
        entries.insert(tx, rows_of(key_of(owner), an_entry("a"), an_entry("b", session_id="s2")))
        entries.insert(tx, rows_of(key_of(owner, file="other"), an_entry("c", session_id="s3")))
        assert entries.sessions_of_file(tx, key_of(owner)) == {SESSION, "s2"}


def test_delete_from_removes_the_end_of_one_generation(database: Database, owner: Owner) -> None:
    key, other = key_of(owner), key_of(owner, file="other")
    with database.write() as tx:
        entries.insert(tx, rows_of(key, *(an_entry(f"g1-{n}", n) for n in range(4)), generation=1))
        entries.insert(tx, rows_of(key, *(an_entry(f"g2-{n}", n) for n in range(4)), generation=2))
        entries.insert(tx, rows_of(other, an_entry("other", 3), generation=2))
        entries.insert_compactions(
            tx, [compaction(key, f"g{g}-{n}", generation=g, line_offset=n) for g, n in ((1, 300), (2, 199), (2, 200))]
        )
        assert entries.delete_from(tx, key, 2, 200) == 2
        left = tx.rows("SELECT entry_uuid FROM memory_transcript_entries ORDER BY entry_uuid")
        compactions = tx.rows("SELECT compaction_uuid FROM memory_compactions ORDER BY compaction_uuid")
    assert [uuid for (uuid,) in left] == ["g1-0", "g1-1", "g1-2", "g1-3", "g2-0", "g2-1", "other"]
    assert [uuid for (uuid,) in compactions] == ["g1-300", "g2-199"]


def test_delete_older_removes_earlier_generations_and_tells_their_sessions(database: Database, owner: Owner) -> None:
    key, other = key_of(owner), key_of(owner, file="other")
    with database.write() as tx:
        entries.insert(tx, rows_of(key, an_entry("a", session_id="s0"), generation=1))
        entries.insert(tx, rows_of(key, an_entry("b"), generation=2))
        entries.insert(tx, rows_of(key, an_entry("c", session_id="s2"), generation=3))
        entries.insert(tx, rows_of(other, an_entry("d", session_id="s3"), generation=1))
        entries.insert_compactions(tx, [compaction(key, "old", generation=2), compaction(key, "new", generation=3)])
        assert sorted(entries.delete_older(tx, key, 3)) == [("s0", at(0)), (SESSION, at(0))]
        assert entries.delete_older(tx, key, 3) == []
        assert set(entries.find(tx, key, list("abcd"))) == {"c", "d"}
        assert tx.rows("SELECT compaction_uuid FROM memory_compactions") == [("new",)]


def test_a_session_is_read_in_order_from_whichever_files_hold_it(database: Database, owner: Owner) -> None:
    first, second = key_of(owner), key_of(owner, file="continued")
    said = [
        ("one", 0, first),
        ("two", 10, first),
        ("withdrawn", 12, first),
        ("three", 40, second),
        ("withdrawn later", 59, first),
    ]
    with database.write() as tx:
        for text, minute, key in said:
            entries.insert(tx, rows_of(key, an_entry(text, minute, content=text)))
        entries.set_withdrawn(tx, first, ["withdrawn", "withdrawn later"], True)
        made = [a_conversation(0, 30), a_conversation(40, 45, source_file="continued")]
        foreign = a_conversation(0, 59, session_id="s10", session_key=f"s10@{at(0)}")
        conversations.insert(tx, owner, [*made, foreign], NOW)
        entries.insert(tx, rows_of(first, an_entry("foreign", 3, session_id="s10")))
        heard = [("user", text, text.startswith("withdrawn")) for text, _, _ in said]
        assert entries.of_session(tx, owner, SOURCE, SESSION) == heard
        assert entries.of_session(tx, owner, "pi", SESSION) == []


def test_a_session_whose_name_begins_with_another_and_an_at_is_another(database: Database, owner: Owner) -> None:
    with database.write() as tx:
        for session in ("bob", "bob@example.com"):
            made = a_conversation(session_id=session, session_key=f"{session}@{at(0)}")
            conversations.insert(tx, owner, [made], NOW)
            entries.insert(tx, rows_of(key_of(owner), an_entry(session, content=session, session_id=session)))
        assert entries.of_session(tx, owner, SOURCE, "bob@example.com") == [("user", "bob@example.com", False)]
        assert entries.of_session(tx, owner, SOURCE, "bob") == [("user", "bob", False)]


def test_the_users_texts_of_a_span_include_its_ends(database: Database, owner: Owner) -> None:
    key = key_of(owner)
    with database.write() as tx:
        made = [an_entry(f"m{minute}", minute, content=f"m{minute}") for minute in (4, 1, 2, 3, 5)]
        answer = an_entry("answer", 2, role=Role.ASSISTANT)
        entries.insert(tx, rows_of(key, *made, answer, an_entry("s2", 3, session_id="s2")))
        assert entries.user_texts(tx, key, SESSION, at(2), at(4)) == ["m2", "m3", "m4"]
        assert entries.user_texts(tx, key, SESSION, at(2), at(4), limit=2) == ["m2", "m3"]


def test_a_compaction_is_replaced_by_its_own_file_only(database: Database, owner: Owner) -> None:
    key = key_of(owner)
    columns = "compaction_uuid, session_id, source_file, generation, line_offset, timestamp, summary"
    with database.write() as tx:
        entries.insert_compactions(tx, [compaction(key)])
        entries.insert_compactions(tx, [compaction(key_of(owner, file="copy"), summary="a copy")])
        first = tx.rows(f"SELECT {columns} FROM memory_compactions")
        entries.insert_compactions(tx, [compaction(key, generation=2, line_offset=60, summary="better")])
        second = tx.rows(f"SELECT {columns} FROM memory_compactions")
    assert first == [("c1", SESSION, FILE, 1, 50, at(1), "what happened so far")]
    assert second == [("c1", SESSION, FILE, 2, 60, at(1), "better")]


# Conversations


def test_a_conversation_comes_back_as_it_was_inserted(database: Database, owner: Owner) -> None:
    made = a_conversation(status=ConversationStatus.SKIPPED, status_reason="too short", entry_count=5_000_000_000)
    with database.write() as tx:
        conversations.insert(tx, owner, [made], NOW)
        (stored,) = conversations.search(tx, owner)
    assert stored.id > 0
    assert replace(stored, id=0) == made


def test_conversations_of_a_session_stand_in_order_and_the_latest_is_the_last(database: Database, owner: Owner) -> None:
    made = [a_conversation(minute, minute + 2) for minute in (20, 0, 10)]
    foreign = [
        a_conversation(50, session_id="s2"),
        a_conversation(55, source_file="x"),
        a_conversation(56, source="pi"),
    ]
    with database.write() as tx:
        conversations.insert(tx, owner, [*made, *foreign], NOW)
        listed = conversations.of_session(tx, key_of(owner), SESSION)
        latest = conversations.latest(tx, key_of(owner), SESSION)
        assert conversations.latest(tx, key_of(owner), "unknown") is None
    assert [each.first_message_at for each in listed] == [at(0), at(10), at(20)]
    assert latest == listed[-1]


def test_conversations_are_found_newest_first_by_status_and_project(database: Database, owner: Owner) -> None:
    made = [
        a_conversation(0, 5),
        a_conversation(10, 40, status=ConversationStatus.READY),
        a_conversation(20, 30, project="/code/house", project_id="example.com/ada/house"),
    ]
    with database.write() as tx:
        conversations.insert(tx, owner, made, NOW)

        def found(**wanted: Any) -> list[str]:
            return [each.first_message_at for each in conversations.search(tx, owner, **wanted)]

        assert found() == [at(10), at(20), at(0)]
        assert found(limit=2) == [at(10), at(20)]
        assert found(limit=0) == []
        assert found(statuses=[ConversationStatus.READY]) == [at(10)]
        assert found(project="/code/house") == [at(20)]
        assert found(project="example.com/ada/house") == [at(20)]
        assert found(project="/work") == []
        assert found(project="/code/garden", statuses=[ConversationStatus.ACTIVE]) == [at(0)]


def test_two_conversations_of_a_session_cannot_start_at_once(database: Database, owner: Owner) -> None:
    with database.write() as tx:
        conversations.insert(tx, owner, [a_conversation()], NOW)
    with pytest.raises((apsw.ConstraintError, psycopg.errors.UniqueViolation)), database.write() as tx:
        conversations.insert(tx, owner, [a_conversation(last=31)], NOW)
    with database.write() as tx:
        conversations.insert(tx, Owner("other", "other"), [a_conversation()], NOW)
        assert len(conversations.search(tx, owner)) == 1


def test_an_update_replaces_every_field_but_the_id(database: Database, owner: Owner) -> None:
    with database.write() as tx:
        conversations.insert(tx, owner, [a_conversation(0, 5), a_conversation(10, 15)], NOW)
        second, first = conversations.search(tx, owner)
        changed = Conversation(
            first.id, "s9", f"s9@{at(1)}", "pi", "y", "/p", "p", "b", at(1), at(6), 9, ConversationStatus.READY, "why"
        )
        assert conversations.update(tx, owner, [changed, replace(second, id=second.id + 1000)], at(59)) == 1
        assert conversations.search(tx, owner) == [second, changed]
        assert tx.rows("SELECT DISTINCT updated_at FROM memory_conversations ORDER BY updated_at") == [
            (at(59),),
            (NOW,),
        ]


def test_active_conversations_that_fell_silent_are_found(database: Database, owner: Owner) -> None:
    made = [a_conversation(0, 10), a_conversation(20, 30), a_conversation(40, 50)]
    with database.write() as tx:
        conversations.insert(tx, owner, [*made, a_conversation(1, 5, status=ConversationStatus.READY)], NOW)
        assert [each.last_message_at for each in conversations.idle_since(tx, owner, at(30))] == [at(10), at(30)]


def test_a_status_is_set_only_if_nothing_changed_in_the_meantime(database: Database, owner: Owner) -> None:
    ready, skipped = ConversationStatus.READY, ConversationStatus.SKIPPED
    with database.write() as tx:
        conversations.insert(tx, owner, [a_conversation()], NOW)
        (seen,) = conversations.search(tx, owner)
        for stale in (
            replace(seen, status=ready),
            replace(seen, last_message_at=at(29)),
            replace(seen, entry_count=6),
            replace(seen, id=seen.id + 1),
        ):
            assert not conversations.set_status(tx, owner, [(stale, skipped, "short")], NOW)
        assert conversations.search(tx, owner) == [seen]
        assert conversations.set_status(tx, owner, [(seen, skipped, "short")], NOW)
        assert not conversations.set_status(tx, owner, [(seen, ready, "")], NOW)
        assert conversations.search(tx, owner) == [replace(seen, status=skipped, status_reason="short")]


def test_conversations_are_counted_by_status_and_deleted_by_id(database: Database, owner: Owner) -> None:
    statuses = [ConversationStatus.ACTIVE, ConversationStatus.READY, ConversationStatus.READY]
    with database.write() as tx:
        conversations.insert(tx, owner, [a_conversation(n, status=status) for n, status in enumerate(statuses)], NOW)
        assert conversations.count_by_status(tx, owner) == {"active": 1, "ready": 2}
        conversations.delete(tx, owner, conversations.search(tx, owner, statuses=[ConversationStatus.READY]))
        assert conversations.count_by_status(tx, owner) == {"active": 1}


# Projects


class Planned(SqliteTransaction):
    """Says how SQLite finds what it is asked for."""

    def __init__(self, tx: Any) -> None:
        super().__init__(tx._connection)
        self.plans: list[str] = []

    def rows(self, sql: str, parameters: Any = None) -> list[Any]:
        self.plans += [row[3] for row in super().rows(f"EXPLAIN QUERY PLAN {sql}", parameters)]
        return super().rows(sql, parameters)


def test_what_belongs_to_a_conversation_is_looked_up_by_its_key_and_not_among_all(tmp_path: Path) -> None:
    with open_memory(tmp_path, environ={}) as memory, memory.database.write() as tx:
        planned = Planned(tx)
        artifacts.of_session(planned, memory.owner, "s@1")
        artifacts.of_keys(planned, memory.owner, ["s@1", "s@2"])
        memories.replace_sessions(planned, memory.owner, {"s@1": [A_MEMORY]})
    searches = [plan for plan in planned.plans if plan.startswith("SEARCH")]
    assert len(searches) >= 5
    assert [plan for plan in searches if not re.search(r"(session_key|memory_id)=", plan)] == []


def test_what_is_asked_for_is_looked_up_and_not_searched_among_all_that_an_owner_has(tmp_path: Path) -> None:
    with open_memory(tmp_path, environ={}) as memory, memory.database.write() as tx:
        planned, own = Planned(tx), memory.owner
        memories.in_scopes(planned, own, [(Scope.PROJECT, "/code/garden")])
        memories.of_session(planned, own, "s@1")
        memories.stated_in(planned, own, ["s@1"])
        memories.leading(planned, own, 3)
        artifacts.recent(planned, own, "/code/garden", 3)
        artifacts.told_of(planned, own, "s@1")
        entries.last_of_session(planned, FileKey(own, "pi", "a.jsonl"), "s", 3)
        conversations.not_in_files(planned, own, but="recollect")
        search.texts(planned, Reach(own, None), [1], [Kind.SUMMARY, Kind.MEMORY])
        files.with_status(planned, own, FileStatus.INGESTING)
        citations.waiting(planned, own)
    of_few = r"_(?:pinned|ingesting|waiting) \(|SEARCH c "  # indexes that have only a few rows; all that is counted
    wide = r"\(tenant=\? AND agent_id=\?(?: AND source=\?| AND source_kind=\? AND is_current=\?)?\)"
    walked = [plan for plan in planned.plans if re.search(wide, plan) and not re.search(of_few, plan)]
    assert len(planned.plans) > 20 and walked == []


def test_the_first_resolution_of_a_folder_stays(database: Database, owner: Owner) -> None:
    first, second = Project("/code/garden", "example.com/ada/garden", "remote"), Project("/tmp/x", "/tmp/x", "path")
    with database.write() as tx:
        projects.save(tx, owner, [first, second], NOW)
        projects.save(tx, owner, [replace(first, project_id="other", resolved_by="git")], NOW)
        assert projects.load_all(tx, owner) == {"/code/garden": first, "/tmp/x": second}


# Whatever the text

NASTY = [
    "'; DROP TABLE memory_jobs; --",
    '" OR 1=1 --',
    "' OR tenant <> '",
    "100 % %s %(tenant)s %%",
    ":tenant ::text :1 ?1 @x $1 $tenant",
    "{KEY} {{}} {0} {tenant}",
    "\\'; \\x00 \\",
    "a\tb\r\nc\x0b\x1b[31m\x7f",
    "e\u0301 é ﷺ \u202e \ufeff \u2028",
    "👩\u200d👩\u200d👧 🦜",
    "",
    " ",
]
texts = st.sampled_from(NASTY) | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=60)
numbers = st.integers(0, 2**63 - 1)
moments = st.sampled_from([at(n) for n in range(60)])
owners = count()


def new_owner(text: str) -> Owner:
    """One that no example had before."""
    return Owner(f"{next(owners)}{text}", text)


@settings(max_examples=150)
@given(
    texts,
    st.builds(
        FileState,
        **dict.fromkeys(("source", "file_path", "root", "signature", "head_hash", "tail_hash", "parser_state"), texts),
        **dict.fromkeys(("last_modified", "file_size", "last_processed_offset", "line_count", "generation"), numbers),
        malformed_count=numbers,
        status=st.sampled_from(FileStatus),
        last_entry_timestamp=st.none() | texts,
        reimporting=st.booleans(),
    ),
    texts,
)
def test_any_text_of_a_file_comes_back_as_it_was(database: Database, name: str, state: FileState, reason: str) -> None:
    owner = new_owner(name)
    line = MalformedLine(state.source, state.file_path, state.line_count, state.file_size, reason)
    with database.write() as tx:
        files.save(tx, owner, [state])
        files.save_malformed(tx, owner, [line])
    with database.read() as tx:
        assert files.load(tx, owner, *state.key) == state
        assert files.with_status(tx, owner, state.status) == [state]
        assert files.signatures(tx, owner, [state.file_path]) == {
            state.file_path: {state.signature: state.last_processed_offset}
        }
        assert files.malformed(tx, owner) == [line]


@settings(max_examples=150)
@given(
    st.builds(FileKey, st.just(Owner()), texts, texts),
    st.builds(
        Entry,
        **dict.fromkeys(("uuid", "session_id", "content", "tool_names", "cwd", "branch"), texts),
        role=st.sampled_from(Role),
        timestamp=moments,
        line_offset=numbers,
    ),
    texts,
)
def test_any_text_of_an_entry_comes_back_as_it_was(database: Database, key: FileKey, made: Entry, project: str) -> None:
    key = replace(key, owner=new_owner(project))
    summary = compaction(key, made.uuid, session_id=made.session_id, summary=made.content)
    with database.write() as tx:
        assert entries.insert(tx, [entries.row(key, 1, made, project, True)]) == 1
        entries.insert_compactions(tx, [summary])
    with database.write() as tx:
        where = Stored(made.uuid, key.source_file, made.session_id, 1, made.line_offset, True)
        assert entries.find(tx, key, [made.uuid]) == {made.uuid: where}
        assert entries.sessions_of_file(tx, key) == {made.session_id}
        assert entries.marks_of_session(tx, key, made.session_id) == [
            (made.timestamp, made.cwd, project, made.branch, made.user)
        ]
        said = entries.user_texts(tx, key, made.session_id, made.timestamp, made.timestamp)
        assert said == ([made.content] if made.role is Role.USER else [])
        other = msgspec.structs.replace(made, content=made.content + "'")
        assert entries.amend(tx, key, [other]) == [other]
        names = {"tenant": key.owner.tenant, "agent_id": key.owner.agent_id}
        where_owner = "WHERE tenant = :tenant AND agent_id = :agent_id"
        assert tx.rows(f"SELECT content, tool_names FROM memory_transcript_entries {where_owner}", names) == [
            (made.content + "'", made.tool_names)
        ]
        assert tx.rows(f"SELECT summary FROM memory_compactions {where_owner}", names) == [(made.content,)]


@settings(max_examples=150)
@given(
    st.builds(
        Conversation,
        **dict.fromkeys(("session_id", "session_key", "source", "source_file", "project", "project_id"), texts),
        **dict.fromkeys(("branch", "status_reason"), texts),
        id=st.just(0),
        first_message_at=moments,
        last_message_at=moments,
        entry_count=numbers,
        status=st.sampled_from(ConversationStatus),
    ),
    texts,
)
def test_any_text_of_a_conversation_comes_back_as_it_was(database: Database, made: Conversation, reason: str) -> None:
    owner = new_owner(reason)
    with database.write() as tx:
        conversations.insert(tx, owner, [made], NOW)
    with database.write() as tx:
        (stored,) = conversations.search(tx, owner, statuses=[made.status], project=made.project)
        assert replace(stored, id=0) == made
        assert conversations.of_session(tx, FileKey(owner, made.source, made.source_file), made.session_id) == [stored]
        assert conversations.set_status(tx, owner, [(stored, ConversationStatus.ARCHIVED, reason)], NOW)
        (stored,) = conversations.search(tx, owner, project=made.project_id)
        assert stored.status_reason == reason


@settings(max_examples=150)
@given(texts, texts, texts, texts)
def test_any_text_of_a_project_or_a_job_comes_back_as_it_was(
    database: Database, one: str, two: str, three: str, four: str
) -> None:
    owner, project = new_owner(one), Project(one, two, three)
    jobs = Jobs(owner, clock=Clock(), worker=four)
    with database.write() as tx:
        projects.save(tx, owner, [project], NOW)
        assert jobs.enqueue(tx, one, [(two, "w" + three)]) == 1
        (lease,) = jobs.claim(tx, one, limit=1, keys=[two])
        assert (lease.kind, lease.key, lease.watermark) == (one, two, "w" + three)
        jobs.fail(tx, lease, four)
    with database.read() as tx:
        assert projects.load_all(tx, owner) == {one: project}
        (job,) = jobs.list(tx, [JobStatus.BACKING_OFF])
        assert (job.kind, job.key, job.last_error) == (one, two, four)
        assert jobs.count(tx) == {one: {"backing_off": 1}}


def test_a_megabyte_of_text_comes_back_as_it_was(database: Database, owner: Owner) -> None:
    text = ("'%:x\\ 🦜\n" * 150_000)[: 1024 * 1024]
    key = key_of(owner)
    with database.write() as tx:
        entries.insert(tx, rows_of(key, an_entry(content=text)))
        files.save(tx, owner, [a_state(parser_state=text)])
    with database.read() as tx:
        assert entries.user_texts(tx, key, SESSION, at(0), at(1)) == [text]
        state = files.load(tx, owner, SOURCE, FILE)
        assert state is not None and state.parser_state == text


# Owners

ADA, BOB, EVE = Owner("acme", "ada"), Owner("acme", "bob"), Owner("zeta", "ada")
LEASE = Lease(KIND, "running", 1, 1, "w1", NOW)

Read = Callable[[Transaction, Owner], object]

A_ROW = Stage1(
    session_key="s@1",
    source=SOURCE,
    session_id="s",
    project="/code/garden",
    project_id="garden",
    first_message_at=at(0),
    source_updated_at=at(1),
    entry_count=2,
    snapshot="abc",
    generated_at=NOW,
    strategy="offline-v1",
    parts=1,
    raw_memory="raw",
    rollout_summary="summary",
    rollout_slug="slug",
    memory_sentence="One sentence.",
)
A_MEMORY = Remembered(
    id="m-one",
    revision=1,
    kind=MemoryKind.FACT,
    text="The pond is deep.",
    severity=Severity.NONE,
    scope=Scope.PROJECT,
    scope_id="garden",
    created_at=NOW,
    valid_from=at(1),
    sources=(("s@1", "e1"),),
    pinned=True,
    loosened=True,
)
A_LINE = Injected(1, 1, NOW, True, "m-one", 1, "relevant", 0.5, "relevance 0.50: pond", 20)
A_FILE = Indexed(
    source_path="memory/a.md",
    source_sha256="abc",
    source_kind="summary",
    session_token="token",
    session_key="s@1",
    session_id="s",
    harness=SOURCE,
    project="/code/garden",
    project_id="garden",
    captured_at=NOW,
    ended_at=at(1),
    manifest_path="memory/m.md",
    memory_sentence="One sentence.",
    source_node_id="",
    is_current=1,
    signature="1-2-3",
)
SPENT = Spent(NOW[:10], "a:model", 1, 100, 10, 5)
A_TURN = turns.Artifact("shop", "ann", "c", "fp", "t1", "", "c.1", NOW, "{}", "", at(59, 23), ("fp", "signal"))
A_BUCKET = A_TURN._replace(
    conversation="", kind="bucket", turn_id="", ref="b-1", session_id="", tags=("mem:bucket:b-1",)
)


def ann(owner: Owner) -> turns.Person:
    return turns.Person(owner, "shop", "ann")


def jobs_of(owner: Owner, **changes: Any) -> Jobs:
    return Jobs(owner, clock=Clock(), worker="somebody", **changes)


def only(tx: Transaction, owner: Owner) -> Conversation:
    (found,) = conversations.search(tx, owner, statuses=[ConversationStatus.ACTIVE])
    return found


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_a_memory_matters_on_the_occasions_that_its_sources_tell(
    database: Database, owner: Owner, order: tuple[int, ...]
) -> None:
    told = {"a@2026-03-01": ("plant roses",), "b@2026-03-03": ("mow", "plant roses"), "c@2026-03-02": ()}
    stated = {
        key: [replace(A_MEMORY, sources=((key, "e1"), (key, "e2")), occasions=when)] for key, when in told.items()
    }
    with database.write() as tx:
        for number in order:
            key = list(told)[number]
            memories.replace_sessions(tx, owner, {key: stated[key]})
        (held,) = memories.all_of(tx, owner)
        assert held.occasions == ("mow", "plant roses"), "the newest first, whoever was stored first"
        for key, when in told.items():
            (own,) = memories.of_session(tx, owner, key)
            assert own.occasions == when
        memories.replace_sessions(tx, owner, {"b@2026-03-03": []})
        assert [each.occasions for each in memories.all_of(tx, owner)] == [("plant roses",)]
        memories.replace_sessions(tx, owner, {"a@2026-03-01": []})
        assert [each.occasions for each in memories.all_of(tx, owner)] == [()]


READS: dict[str, Read] = {
    "turns.newest": lambda tx, owner: turns.newest(tx, ann(owner), "c", "fp", NOW, 9),
    "turns.latest": lambda tx, owner: turns.latest(tx, ann(owner), "fp", NOW, 9),
    "turns.first": lambda tx, owner: turns.first(tx, ann(owner), "c", "fp", NOW),
    "turns.find": lambda tx, owner: turns.find(tx, ann(owner), "c", "fp", ["t1"], NOW),
    "turns.said_in": lambda tx, owner: turns.said_in(tx, ann(owner), [("c.1", "t1")], "fp", NOW),
    "turns.tagged": lambda tx, owner: turns.tagged(tx, ann(owner), "signal", NOW, 9),
    "turns.tags": lambda tx, owner: turns.tags(tx, ann(owner), "c", "fp"),
    "turns.of_session": lambda tx, owner: turns.of_session(tx, owner, "c.1", "fp"),
    "turns.load_active_set": lambda tx, owner: turns.load_active_set(tx, ann(owner), "c", NOW),
    "turns.signatures": turns.signatures,
    "stage1.used": stage1.used,
    "stage1.summaries": lambda tx, owner: stage1.summaries(tx, owner, ["s@1"]),
    "stage1.strategies": stage1.strategies,
    "stage1.kept_by_older": lambda tx, owner: stage1.kept_by_older(tx, owner, "offline", "offline-v99"),
    "entries.authors": lambda tx, owner: entries.authors(tx, owner, SOURCE, ["e1"]),
    "entries.with_authors": lambda tx, owner: [
        each
        for each in entries.with_authors(
            tx, rows_of(key_of(owner), an_entry("e1", role=Role.ASSISTANT, authors=""))
        )  # by its form it would be an agent's
        if each.authors.startswith("typed")
    ],
    "entries.files_without_authors": entries.files_without_authors,
    "entries.without_authors": lambda tx, owner: entries.without_authors(tx, owner, ("", ""), 9),
    "turns.user_of": lambda tx, owner: turns.user_of(tx, owner, "c.1"),
    "users.waiting": users.waiting,
    "users.unknown": users.unknown,
    "users.mixed": users.mixed,
    "files.load": lambda tx, owner: files.load(tx, owner, SOURCE, FILE),
    "files.with_status": lambda tx, owner: files.with_status(tx, owner, FileStatus.INGESTING),
    "files.signatures": lambda tx, owner: files.signatures(tx, owner, [FILE]),
    "files.malformed": files.malformed,
    "entries.find": lambda tx, owner: entries.find(tx, key_of(owner), ["e1", "e2"]),
    "entries.marks_of_session": lambda tx, owner: entries.marks_of_session(tx, key_of(owner), SESSION),
    "entries.sessions_of_file": lambda tx, owner: entries.sessions_of_file(tx, key_of(owner)),
    "entries.lines": lambda tx, owner: entries.lines(tx, owner, SOURCE, ["e1", "e2"]),
    "entries.lines_of_conversation": lambda tx, owner: entries.lines_of_conversation(
        tx, key_of(owner), SESSION, at(0), at(59)
    ),
    "entries.page": lambda tx, owner: entries.page(
        tx, key_of(owner), SESSION, (at(0), at(59)), 9, after=(at(0), 0, 0), like="%text%"
    ),
    "entries.uuids": lambda tx, owner: entries.uuids(tx, owner, "e", 9),
    "entries.of_session": lambda tx, owner: entries.of_session(tx, owner, SOURCE, SESSION),
    "entries.files_of_session": lambda tx, owner: entries.files_of_session(tx, owner, SOURCE, SESSION),
    "entries.last_of_session": lambda tx, owner: entries.last_of_session(tx, key_of(owner), SESSION, 9),
    "entries.user_texts": lambda tx, owner: entries.user_texts(tx, key_of(owner), SESSION, at(0), at(59)),
    "conversations.of_session": lambda tx, owner: conversations.of_session(tx, key_of(owner), SESSION),
    "conversations.latest": lambda tx, owner: conversations.latest(tx, key_of(owner), SESSION),
    "conversations.search": conversations.search,
    "conversations.numbered": lambda tx, owner: (
        conversations.numbered(tx, owner, only(tx, owner).id) if conversations.search(tx, owner) else None
    ),
    "conversations.sessions": lambda tx, owner: conversations.sessions(tx, owner, SESSION[:1], 9),
    "conversations.with_key": lambda tx, owner: conversations.with_key(tx, owner, f"{SESSION}@"),
    "conversations.idle_since": lambda tx, owner: conversations.idle_since(tx, owner, at(59)),
    "conversations.count_by_status": conversations.count_by_status,
    "conversations.not_in_files": lambda tx, owner: conversations.not_in_files(tx, owner, but="recollect"),
    "projects.load": lambda tx, owner: projects.load(tx, owner).repositories,
    "projects.load_all": projects.load_all,
    "projects.names": projects.names,
    "conversations.of_key": lambda tx, owner: (
        conversations.of_key(tx, owner, only(tx, owner).session_key) if conversations.search(tx, owner) else []
    ),
    "conversations.states": lambda tx, owner: conversations.states(
        tx, owner, [each.session_key for each in conversations.search(tx, owner)]
    ),
    "artifacts.of_keys": lambda tx, owner: artifacts.of_keys(tx, owner, ["s@1"]),
    "erasing.keys": lambda tx, owner: erasing.keys(tx, owner, session=SESSION),
    "erasing.texts": lambda tx, owner: list(erasing.texts(tx, owner)),
    "erasing.names": erasing.names,
    "erasing.key_at": lambda tx, owner: erasing.key_at(
        tx, owner, erasing.Standing(erasing.Place.MESSAGE, "e1", "", SOURCE, SESSION, FILE, at(0))
    ),
    "erasing.keys_of_files": lambda tx, owner: erasing.keys_of_files(tx, owner, [A_FILE.source_path]),
    "erasing.notes": erasing.notes,
    "erasing.said": lambda tx, owner: [
        said for talk in conversations.search(tx, owner) for said in erasing.said(tx, owner, talk)
    ],
    "erasing.said_in_session": lambda tx, owner: erasing.said_in_session(tx, owner, SESSION),
    "erasing.said_by": lambda tx, owner: erasing.said_by(tx, owner, "ann", ""),
    "erasing.withdrawn_in_project": lambda tx, owner: erasing.withdrawn_in_project(tx, owner, "/code/garden"),
    "erasing.places": lambda tx, owner: erasing.places(tx, owner, [(SOURCE, FILE)]),
    "erasing.states_beside": lambda tx, owner: erasing.states_beside(tx, owner, [(SOURCE, FILE)]),
    "erasing.compaction_files": lambda tx, owner: erasing.compaction_files(
        tx, owner, [erasing.Said(SOURCE, "c9", SESSION, "compaction", "", FILE)]
    ),
    "memories.of_session": lambda tx, owner: memories.of_session(tx, owner, "s@1"),
    "tombstones.exist": tombstones.exist,
    "tombstones.hashes": tombstones.hashes,
    "tombstones.erased": lambda tx, owner: tombstones.erased(tx, owner, ["h1", "h2"]),
    "tombstones.known": lambda tx, owner: tombstones.known(tx, owner, ["memory/tombstones/a.md"]),
    "tombstones.covered": lambda tx, owner: tombstones.covered(tx, owner, {"memory/a.md": "t1", "memory/b.md": "t2"}),
    "tombstones.standing": lambda tx, owner: tombstones.standing(tx, owner, {tombstones.entry_hash(SOURCE, "e1")}),
    "tombstones.session_keys": tombstones.session_keys,
    "tombstones.turns": lambda tx, owner: tombstones.turns(tx, owner, A_TURN.kind),
    "entries.of_conversation": lambda tx, owner: entries.of_conversation(tx, key_of(owner), SESSION, at(0), at(59)),
    "artifacts.of_session": lambda tx, owner: artifacts.of_session(tx, owner, "s@1"),
    "artifacts.find": lambda tx, owner: artifacts.find(tx, owner, A_FILE.source_path),
    "artifacts.signatures": artifacts.signatures,
    "artifacts.recent": lambda tx, owner: artifacts.recent(tx, owner, "garden", 9),
    "artifacts.told_of": lambda tx, owner: artifacts.told_of(tx, owner, "s@1"),
    "citations.waiting": citations.waiting,
    "compactions.of_session": lambda tx, owner: compactions.of_session(tx, owner, SOURCE, SESSION),
    "artifacts.newest": lambda tx, owner: artifacts.newest(tx, owner, "", "9", 9),
    "artifacts.sessions": lambda tx, owner: artifacts.sessions(tx, owner, "", "9"),
    "artifacts.of_sessions": lambda tx, owner: artifacts.of_sessions(tx, owner, "s", "summary"),
    "artifacts.vanished": lambda tx, owner: artifacts.vanished(tx, owner, 9),
    "compactions.unwritten": lambda tx, owner: compactions.unwritten(tx, owner, 9),
    "conversations.of_session_id": lambda tx, owner: conversations.of_session_id(tx, owner, SOURCE, SESSION),
    "conversations.unwritten": lambda tx, owner: conversations.unwritten(tx, owner, 9, aged=NOW),
    "artifacts.paths": lambda tx, owner: artifacts.paths(tx, owner, "summary", ["s@1"]),
    "stage1.load": lambda tx, owner: stage1.load(tx, owner, "s@1"),
    "stage1.inputs": lambda tx, owner: stage1.inputs(tx, owner, ["s@1"]),
    "stage1.candidates": lambda tx, owner: stage1.candidates(tx, owner, Timestamp("2026"), 9),
    "stage1.newest": lambda tx, owner: stage1.newest(tx, owner, Timestamp("2026")),
    "memories.pinned": memories.pinned,
    "unlisted.unlisted": lambda tx, owner: unlisted.unlisted(tx, owner, ["s*"]),
    "stage1.vanished": stage1.vanished,
    "memories.in_scopes": lambda tx, owner: memories.in_scopes(tx, owner, [(Scope.PROJECT, "garden")]),
    "memories.all_of": memories.all_of,
    "memories.leading": lambda tx, owner: memories.leading(tx, owner, 9),
    "memories.find": lambda tx, owner: memories.find(tx, owner, ["m-one"]),
    "memories.named": lambda tx, owner: memories.named(tx, owner, "m-on"),
    "memories.ids": lambda tx, owner: memories.ids(tx, owner, "m-", 9),
    "memories.judged": lambda tx, owner: memories.judged(tx, owner, ["e1"]),
    "memories.stated_in": lambda tx, owner: memories.stated_in(tx, owner, ["s@1"]),
    "memories.uses": memories.uses,
    "memories.uses_of": lambda tx, owner: memories.uses_of(tx, owner, ["m-one"]),
    "injections.turns": lambda tx, owner: injections.turns(tx, owner, SESSION),
    "injections.lines": lambda tx, owner: injections.lines(tx, owner, SESSION),
    "injections.of_memory": lambda tx, owner: injections.of_memory(tx, owner, "m-one", 9),
    "listing.page": lambda tx, owner: listing.page(tx, owner, WITHIN, {"kind": "fact"}, None, 9),
    "listing.among": lambda tx, owner: listing.among(tx, owner, WITHIN, ["m-one"]),
    "listing.counts": lambda tx, owner: listing.counts(tx, owner, WITHIN),
    "listing.holding": lambda tx, owner: listing.holding(tx, owner, WITHIN, "POND", 9),
    "listing.judged": listing.judged,
    "listing.projects": listing.projects,
    "listing.days": lambda tx, owner: listing.days(tx, owner, ""),
    "injections.sessions": lambda tx, owner: injections.sessions(tx, owner, 9),
    "injections.ambient": lambda tx, owner: injections.ambient(tx, Reach(owner, None), [MemoryKind.FACT], [], 9),
    "feedback.of_memories": lambda tx, owner: feedback.of_memories(tx, owner, ["m-one"]),
    "feedback.retirements": feedback.retirements,
    "feedback.retired": lambda tx, owner: feedback.retired(tx, owner, ["m-one"]),
    "feedback.called_wrong": lambda tx, owner: feedback.called_wrong(tx, owner, ["m-one"]),
    "feedback.wrong": lambda tx, owner: feedback.wrong(tx, owner, ["m-one"]),
    "memories.newest": lambda tx, owner: memories.newest(
        tx, memories.OWN, owner.names(), [("kind = :value", "fact")], 9
    ),
    "memories.count_by_kind": memories.count_by_kind,
    "memories.loosened": memories.loosened,
    "memories.unlike": lambda tx, owner: memories.unlike(tx, owner, {"s2@1"}),
    "sums.load": lambda tx, owner: sums.load(tx, owner, ["s2@1"]),
    "sums.known": sums.known,
    "sums.unknown": lambda tx, owner: sums.unknown(tx, owner, 9),
    "sums.changed": lambda tx, owner: sums.changed(tx, owner, ["s2@1"]),
    "answers.keys": lambda tx, owner: answers.keys(tx, owner, KIND),
    "answers.load": lambda tx, owner: answers.load(tx, owner, KIND, "running", "h1"),
    "answers.tokens_on": lambda tx, owner: answers.tokens_on(tx, owner, NOW[:10]),
    "answers.spent": answers.spent,
    "transfer.page": lambda tx, owner: transfer.page(tx, owner, transfer.operational()["memory_jobs"], ("a", ""), 9),
    "vectors.models": vectors.models,
    "vectors.backlog": lambda tx, owner: {k: n for k, n in vectors.backlog(tx, owner, MODEL.name).items() if n},
    "vectors.count": lambda tx, owner: vectors.count(tx, owner, MODEL.name, 2**60),
    "vectors.missing": lambda tx, owner: vectors.missing(tx, owner, MODEL.name, Kind.ENTRY, 9),
    "vectors.load": lambda tx, owner: vectors.load(tx, owner, documents_of(tx)),
    "vectors.after": lambda tx, owner: vectors.after(tx, owner, MODEL, 0, 9).refs,
    "vectors.ids": lambda tx, owner: vectors.ids(tx, owner, MODEL.name),
    "vectors.of_ids": lambda tx, owner: vectors.of_ids(tx, owner, MODEL, list(range(1, 99))).refs,
    "vectors.visible": lambda tx, owner: vectors.visible(tx, owner, MODEL, EVERYTHING, list(range(99))).refs,
    "vectors.of_documents": lambda tx, owner: vectors.of_documents(tx, owner, MODEL, documents_of(tx)).refs,
    "vectors.locate": lambda tx, owner: vectors.locate(tx, owner, MODEL.name, documents_of(tx)),
    "vectors.refs_of": lambda tx, owner: vectors.refs_of(tx, owner, MODEL.name, list(range(1, 99))),
    "search.matches": lambda tx, owner: (
        search.matches(tx, Reach(owner, None), search.TEXTS, ["pond"], 99).found.get("pond", np.zeros(0)).tolist()
    ),
    "search.around": lambda tx, owner: search.around(tx, Reach(owner, None), range(99), 2),
    "search.marks_of": lambda tx, owner: search.marks_of(tx, Reach(owner, None), range(99)),
    "search.entries": lambda tx, owner: search.entries(tx, Reach(owner, None), range(99)),
    "search.texts": lambda tx, owner: search.texts(tx, Reach(owner, None), range(99), list(Kind)),
    "search.memory_marks": lambda tx, owner: search.memory_marks(tx, Reach(owner, None), range(99)),
    "search.text_times": lambda tx, owner: search.text_times(tx, Reach(owner, None), range(99)),
    "search.text_ids": lambda tx, owner: search.text_ids(tx, Reach(owner, None), [Ref(Kind.MEMORY, "m-one")]),
    "Jobs.watermarks": lambda tx, owner: jobs_of(owner).watermarks(tx, KIND, ["running"]),
    "Jobs.find": lambda tx, owner: jobs_of(owner).find(tx, KIND, "running"),
    "Jobs.list": lambda tx, owner: jobs_of(owner).list(tx, list(JobStatus)),
    "Jobs.due": lambda tx, owner: jobs_of(owner).due(tx, lambda worker: True),
    "Jobs.count": lambda tx, owner: jobs_of(owner).count(tx),
    "Jobs.is_held": lambda tx, owner: jobs_of(owner).is_held(tx, KIND, "running"),
    "Jobs.standing": lambda tx, owner: jobs_of(owner).standing(tx, LEASE) is not Standing.GONE,
}

WRITES: dict[str, Read] = {
    "turns.save": lambda tx, owner: turns.save(tx, owner, [A_TURN._replace(text="new")], replacing=True),
    "turns.save_active_set": lambda tx, owner: turns.save_active_set(
        tx, ann(owner), "c", "c.1", "other", NOW, at(59, 23)
    ),
    "turns.hold_active_set": lambda tx, owner: turns.hold_active_set(tx, ann(owner), "new", "n.1", NOW, at(59, 23)),
    "turns.save_signatures": lambda tx, owner: turns.save_signatures(tx, owner, {"a/b/c.jsonl": "2"}),
    "turns.delete_signatures": lambda tx, owner: turns.delete_signatures(tx, owner, ["a/b/c.jsonl"]),
    "users.assign": lambda tx, owner: users.assign(tx, owner, "c.1", FILE, "ann"),
    "users.part": lambda tx, owner: users.part(tx, owner, ["m-two"]),
    "turns.purge": lambda tx, owner: turns.purge(tx, owner, at(59, 23), 1),
    "turns.delete_bucket": lambda tx, owner: turns.delete_bucket(tx, ann(owner), "b-1", "bucket"),
    "turns.erase": lambda tx, owner: turns.erase(tx, owner, [("c.1", "t1")]),
    "files.save": lambda tx, owner: files.save(tx, owner, [a_state(line_count=1)]),
    "files.move": lambda tx, owner: files.move(tx, owner, a_state(), a_state(file_path="other")),
    "files.save_malformed": lambda tx, owner: files.save_malformed(
        tx, owner, [MalformedLine(SOURCE, FILE, 9, 9, "no JSON")]
    ),
    "files.clear_malformed": lambda tx, owner: files.clear_malformed(tx, owner, a_state()),
    "entries.insert": lambda tx, owner: entries.insert(tx, rows_of(key_of(owner), an_entry("new"))),
    "entries.overwrite": lambda tx, owner: entries.overwrite(tx, rows_of(key_of(owner), an_entry(content="other"))),
    "entries.adopt": lambda tx, owner: entries.adopt(tx, key_of(owner), 9, [an_entry("new", content="text of e1")]),
    "entries.amend": lambda tx, owner: entries.amend(tx, key_of(owner), [an_entry(content="other")]),
    "entries.tell_authors": lambda tx, owner: entries.tell_authors(
        tx, owner, SOURCE, [an_entry("e2", authors="typed:10")]
    ),
    "entries.tell_authors_of": lambda tx, owner: entries.tell_authors_of(
        tx, owner, [(entries.Unread(SOURCE, "e2", "user", "text of e2"), "typed:10")]
    ),
    "entries.keep_authors": lambda tx, owner: entries.keep_authors(
        tx, {**owner.names(), "entry_uuid": "e1", "source": SOURCE, "before": "text of e1"}, lambda text: text[:4]
    ),
    "entries.set_withdrawn": lambda tx, owner: entries.set_withdrawn(tx, key_of(owner), ["e1"], True),
    "entries.delete_from": lambda tx, owner: entries.delete_from(tx, key_of(owner), 1, 0),
    "entries.delete_older": lambda tx, owner: entries.delete_older(tx, key_of(owner), 2),
    "entries.insert_compactions": lambda tx, owner: entries.insert_compactions(
        tx, [compaction(key_of(owner), summary="other")]
    ),
    "conversations.insert": lambda tx, owner: conversations.insert(tx, owner, [a_conversation(50)], NOW),
    "conversations.update": lambda tx, owner: conversations.update(
        tx, owner, [replace(only(tx, owner), branch="other")], NOW
    ),
    "conversations.set_status": lambda tx, owner: conversations.set_status(
        tx, owner, [(only(tx, owner), ConversationStatus.READY, "")], NOW
    ),
    "conversations.delete": lambda tx, owner: conversations.delete(tx, owner, [only(tx, owner)]),
    "projects.save": lambda tx, owner: projects.save(tx, owner, [Project("/new", "new", "path")], NOW),
    "projects.rename": lambda tx, owner: projects.rename(tx, owner, {"/code/garden": "/code/yard"}),
    "projects.record": lambda tx, owner: projects.record(tx, owner, [Repository("8@9", "new")], NOW),
    "projects.move": lambda tx, owner: projects.move(tx, owner, [Project("/code/garden", "other", "remote")], NOW),
    "erasing.delete_said": lambda tx, owner: erasing.delete_said(
        tx, owner, [Said(SOURCE, "e1", SESSION, "user", "", FILE)]
    ),
    "erasing.delete_conversations": lambda tx, owner: erasing.delete_conversations(
        tx, owner, [only(tx, owner).session_key]
    ),
    "erasing.delete_baseline": lambda tx, owner: erasing.delete_baseline(tx, owner, ["s@1"]),
    "erasing.delete_unstated": lambda tx, owner: (
        memories.replace_sessions(tx, owner, {"s@1": []}),
        erasing.delete_unstated(tx, owner),
    ),
    "erasing.delete_projects": lambda tx, owner: (
        projects.save(tx, owner, [Project("/gone", "gone", "path"), Project("/new", "new", "path")], NOW),
        erasing.delete_projects(tx, owner, ["gone", "example.com/ada/garden"]),
    ),
    "erasing.delete_states": lambda tx, owner: (
        files.save(tx, owner, [a_state(file_path="gone", status=FileStatus.IDLE), a_state(file_path="new")]),
        erasing.delete_states(tx, owner, [(SOURCE, "gone"), (SOURCE, FILE)]),
    ),
    "erasing.recount": lambda tx, owner: erasing.recount(tx, owner, [only(tx, owner)], at(9)),
    "answers.delete_all": lambda tx, owner: answers.delete_all(tx, owner, ["running"]),
    "Jobs.revoke": lambda tx, owner: jobs_of(owner).revoke(tx, ["waiting"]),
    "Jobs.forget": lambda tx, owner: jobs_of(owner).forget(tx, KIND, "waiting"),
    "tombstones.save": lambda tx, owner: tombstones.save(tx, owner, "memory/tombstones/b.md", ["h2"]),
    "tombstones.delete_projects": lambda tx, owner: (
        projects.save(tx, owner, [Project("/gone", "gone", "path"), Project("/new", "new", "path")], NOW),
        tombstones.delete_projects(tx, owner, {tombstones.project_hash("gone")}),
    ),
    "entries.restore": lambda tx, owner: entries.restore(tx, rows_of(key_of(owner), an_entry("e1", content="other"))),
    "Jobs.reopen": lambda tx, owner: (
        jobs_of(owner).settle(tx, KIND, [("done", "w1", JobStatus.SUCCEEDED)]),
        jobs_of(owner).reopen(tx, KIND, ["done"]),
    ),
    "Jobs.settle": lambda tx, owner: jobs_of(owner).settle(tx, KIND, [("done", "w1", JobStatus.SUCCEEDED)]),
    "artifacts.replace_sessions": lambda tx, owner: artifacts.replace_sessions(tx, owner, ["s@1"], []),
    "citations.note": lambda tx, owner: citations.note(
        tx, key_of(owner), [an_entry("e3", role=Role.ASSISTANT, content="as m-abcdefghijklmnop says")]
    ),
    "citations.settle": lambda tx, owner: citations.settle(tx, owner, [(SOURCE, "e1", "m-one")]),
    "compactions.save": lambda tx, owner: compactions.save(
        tx, owner, [Compacted("c2", SOURCE, SESSION, FILE, at(2), "so far")]
    ),
    "stage1.save": lambda tx, owner: stage1.save(tx, owner, [replace(A_ROW, raw_memory="other")]),
    "stage1.delete": lambda tx, owner: stage1.delete(tx, owner, ["s@1"]),
    "stage1.mark_selected": lambda tx, owner: stage1.mark_selected(tx, owner, [replace(A_ROW, snapshot="x")]),
    "stage1.cite": lambda tx, owner: stage1.cite(tx, owner, ["s@1"], at(3)),
    "memories.replace_sessions": lambda tx, owner: memories.replace_sessions(tx, owner, {"s@1": []}),
    "memories.restate": lambda tx, owner: memories.restate(tx, owner, [replace(A_MEMORY, text="other")]),
    "memories.derive": lambda tx, owner: memories.derive(tx, owner, ["m-two"]),
    "sums.keep": lambda tx, owner: sums.keep(tx, owner, ["c.1@1"]),
    "sums.take": lambda tx, owner: sums.take(tx, owner, ["c.1@1"]),
    "sums.drop": lambda tx, owner: sums.drop(tx, owner, ["s2@1"]),
    "sums.drop_sessions": lambda tx, owner: sums.drop_sessions(tx, owner, ["s2"]),
    "sums.drop_all": sums.drop_all,
    "mending.put": lambda tx, owner: mending.put(
        tx, owner, only(tx, owner), rows_of(key_of(owner), an_entry(content="other")), [], NOW, exact=True
    ),
    "mending.drop_strays": lambda tx, owner: mending.drop_strays(
        tx, owner, replace(A_ROW, session_key="s@2"), [replace(A_MEMORY, id="m-lost", sources=(("s@2", "e1"),))]
    ),
    "memories.cite": lambda tx, owner: memories.cite(tx, owner, ["m-one"], at(3)),
    "injections.save": lambda tx, owner: injections.save(tx, owner, SESSION, at(3), [A_LINE], prompts=1),
    "injections.hide": lambda tx, owner: injections.hide(tx, owner, SESSION),
    "injections.delete": lambda tx, owner: injections.delete(tx, owner, [SESSION]),
    "feedback.react": lambda tx, owner: feedback.react(tx, owner, "m-one", 1, "ok", at(59, 23)),
    "listing.see": lambda tx, owner: listing.see(tx, owner, [("m-one", 9)], NOW),
    "listing.unsee": lambda tx, owner: listing.unsee(tx, owner, ["m-one"]),
    "answers.save": lambda tx, owner: answers.save(tx, owner, KIND, "running", "h2", "{}", NOW),
    "answers.delete": lambda tx, owner: answers.delete(tx, owner, KIND, "running"),
    "answers.charge": lambda tx, owner: answers.charge(tx, owner, KIND, "running", SPENT),
    "transfer.add": lambda tx, owner: transfer.add(
        tx, owner, transfer.operational()["memory_use"], [{"memory_id": "m-new", "usage_count": 1, "last_usage": ""}]
    ),
    "vectors.save_model": lambda tx, owner: vectors.save_model(tx, owner, replace(MODEL, name="other"), NOW),
    "vectors.delete_model": lambda tx, owner: vectors.delete_model(tx, owner, MODEL.name),
    "vectors.insert": lambda tx, owner: embed(tx, owner, Kind.ENTRY),
    "vectors.delete": lambda tx, owner: vectors.delete(tx, owner, documents_of(tx)),
    "Jobs.pause": lambda tx, owner: jobs_of(owner).pause(tx, LEASE, "cap", Clock()()),
    "Jobs.enqueue": lambda tx, owner: jobs_of(owner).enqueue(tx, KIND, [("waiting", "w2")]),
    "Jobs.claim": lambda tx, owner: jobs_of(owner).claim(tx, KIND, limit=9, hurry=True),
    "Jobs.begin": lambda tx, owner: jobs_of(owner).begin(tx, replace(LEASE, counts=False)),
    "Jobs.heartbeat": lambda tx, owner: jobs_of(owner, lease_seconds=999).heartbeat(tx, [LEASE]),
    "Jobs.complete": lambda tx, owner: jobs_of(owner).complete(tx, LEASE),
    "Jobs.fail": lambda tx, owner: jobs_of(owner).fail(tx, LEASE, "no"),
    "Jobs.release": lambda tx, owner: jobs_of(owner).release(tx, LEASE),
    "Jobs.reap": lambda tx, owner: jobs_of(owner).reap(tx, KIND, lambda worker: True),
    "Jobs.revive": lambda tx, owner: jobs_of(owner).revive(tx, KIND),
}


MODEL = Model(catalog.STATIC, 4, Status.SERVING, "cache")


def embed(tx: Transaction, owner: Owner, kind: Kind) -> None:
    """A vector for the newest document without one."""
    made = vectors.load(tx, owner, vectors.missing(tx, owner, MODEL.name, kind, 1))
    vectors.insert(tx, owner, MODEL.name, [Part(each, 0) for each in made], np.full((len(made), 4), 0.5, np.float32))


def documents_of(tx: Transaction) -> list[Ref]:
    """Every document there is, whoever owns it."""
    entry_ids = [str(id) for (id,) in tx.rows("SELECT id FROM memory_transcript_entries ORDER BY id")]
    return [*(Ref(Kind.ENTRY, id) for id in entry_ids), Ref(Kind.SUMMARY, "s@1"), Ref(Kind.MEMORY, "m-one", 1)]


def fill(tx: Transaction, owner: Owner) -> None:
    """Something for every row above; the same keys for every owner."""
    key = key_of(owner)
    files.save(tx, owner, [a_state()])
    files.save_malformed(tx, owner, [MalformedLine(SOURCE, FILE, 1, 10, "no JSON")])
    entries.insert(tx, rows_of(key, an_entry("e1"), an_entry("e2", 1), an_entry("taken-back", 2, user="ann")))
    entries.set_withdrawn(tx, key, ["taken-back"], True)
    entries.insert_compactions(tx, [compaction(key)])
    conversations.insert(tx, owner, [a_conversation()], NOW)
    settled = a_conversation(session_id="s2", session_key="s2@1", status=ConversationStatus.ARCHIVED)
    conversations.insert(tx, owner, [settled], NOW)
    chat = replace(settled, source="recollect", session_id="c.1", session_key="c.1@1", user=users.UNKNOWN)
    conversations.insert(tx, owner, [chat], NOW)
    note = replace(settled, source="recollect", session_id="n-1", session_key="n-1@1")
    conversations.insert(tx, owner, [note], NOW)
    entries.insert(tx, rows_of(entries.FileKey(owner, "recollect", "n.jsonl"), an_entry("n-1")))
    retirement = replace(note, session_id="r-1", session_key="r-1@1", source_file="r.jsonl")
    conversations.insert(tx, owner, [retirement], NOW)
    said = an_entry("r-1", session_id="r-1", content="Retire m-one: a test", timestamp=at(59, 23))
    entries.insert(tx, rows_of(entries.FileKey(owner, "recollect", "r.jsonl"), said))
    projects.save(tx, owner, [Project("/code/garden", "example.com/ada/garden", "remote")], NOW)
    projects.record(tx, owner, [Repository("7@8", "example.com/ada/garden")], NOW)
    manifest = A_FILE._replace(source_path="m", source_kind="manifest")
    summed = A_FILE._replace(source_path="c", source_kind="compaction", source_node_id="c9")
    artifacts.replace_sessions(tx, owner, ["s@1"], [A_FILE, manifest, summed])
    for name in ("s2@1", "c.1@1"):  # a conversation of each kind: its sum is kept, or not known
        transcript = A_FILE._replace(source_path=name, source_kind="transcript", session_key=name)
        artifacts.replace_sessions(tx, owner, [name], [transcript])
    sums.drop(tx, owner, ["c.1@1"])
    tombstones.save(tx, owner, "memory/tombstones/a.md", ["h1"], ["t1"], ["memory/b.md"])
    stage1.save(tx, owner, [A_ROW])
    stage1.mark_selected(tx, owner, [A_ROW, replace(A_ROW, session_key="gone@1")])
    nobodys = replace(A_MEMORY, id="m-two", user=users.UNKNOWN, sources=(("s2@1", "e1"),))
    memories.replace_sessions(tx, owner, {"s@1": [A_MEMORY], "s2@1": [nobodys]})
    memories.replace_sessions(tx, owner, {"lost@1": [replace(A_MEMORY, id="m-lost", sources=(("lost@1", "e1"),))]})
    tx.run("UPDATE memory_memories SET text = 'x' WHERE agent_id = :agent_id AND memory_id = 'm-two'", owner.names())
    memories.cite(tx, owner, ["m-one"], NOW)
    feedback.react(tx, owner, "m-one", 1, "not_ok", NOW)
    listing.see(tx, owner, [("m-one", 1)], NOW)
    injections.save(tx, owner, SESSION, NOW, [A_LINE], prompts=1)
    turns.save(tx, owner, [A_TURN, A_BUCKET])
    turns.save_active_set(tx, ann(owner), "c", "c.1", "{}", NOW, at(59, 23))
    turns.save_signatures(tx, owner, {"a/b/c.jsonl": "1"})
    tx.run(
        "INSERT INTO memory_citations (tenant, agent_id, source, entry_uuid, memory_id, counted)"
        " VALUES (:tenant, :agent_id, :source, 'e1', 'm-one', 0)",
        {**asdict(owner), "source": SOURCE},
    )
    answers.save(tx, owner, KIND, "running", "h1", '{"a": 1}', NOW)
    answers.charge(tx, owner, KIND, "running", SPENT)
    vectors.save_model(tx, owner, MODEL, NOW)
    for kind in Kind:
        embed(tx, owner, kind)
    jobs = jobs_of(owner)
    jobs.enqueue(tx, KIND, [("running", "w1"), ("failed", "w1")])
    running, failed = sorted(jobs.claim(tx, KIND, limit=2), key=lambda lease: lease.key == "failed")
    assert (running.key, running.token) == (LEASE.key, LEASE.token)
    jobs.fail(tx, failed, "no", permanent=True)
    jobs.enqueue(tx, KIND, [("waiting", "w1")])


def test_every_function_of_the_store_has_a_row() -> None:
    def of(module: ModuleType | type, name: str) -> set[str]:
        return {
            f"{name}.{each}"
            for each, function in inspect.getmembers(module, inspect.isfunction)
            if not each.startswith("_") and "tx" in inspect.signature(function).parameters
        }

    names = {each.name for each in pkgutil.iter_modules(store.__path__)} - {
        "jobs",
        "pgvector",
    }  # tested with the vectors
    functions = {each for name in names for each in of(importlib.import_module(f"recollect.store.{name}"), name)}
    assert functions | of(Jobs, "Jobs") == set(READS) | set(WRITES)
    assert not set(READS) & set(WRITES)


def test_no_read_sees_rows_of_another_owner(database: Database) -> None:
    with database.write() as tx:
        fill(tx, ADA)
        alone = {name: read(tx, ADA) for name, read in READS.items()}
        fill(tx, BOB)
        fill(tx, EVE)
        assert [name for name, result in alone.items() if not result] == []  # each had something to see
        assert {name: read(tx, ADA) for name, read in READS.items()} == alone
        for stranger in (Owner("zeta", "bob"), Owner("acme", ""), Owner("", "ada"), Owner("ACME", "ADA")):
            assert [name for name, read in READS.items() if read(tx, stranger)] == []


def test_no_write_touches_rows_of_another_owner(database: Database) -> None:
    class Undone(Exception):
        pass

    with database.write() as tx:
        for owner in (ADA, BOB, EVE):
            fill(tx, owner)
        before = {owner: everything(tx, owner) for owner in (ADA, BOB, EVE)}
    touched = {}
    for name, write in WRITES.items():
        with suppress(Undone), database.write() as tx:
            write(tx, ADA)
            touched[name] = [owner for owner, rows in before.items() if everything(tx, owner) != rows]
            raise Undone
    assert touched == {name: [ADA] for name in WRITES}  # each had something to do


def test_the_id_of_another_owners_conversation_opens_nothing(database: Database) -> None:
    with database.write() as tx:
        fill(tx, ADA)
        foreign = only(tx, ADA)
        before = everything(tx, ADA)
        for stranger in (BOB, EVE):
            assert conversations.update(tx, stranger, [replace(foreign, branch="mine")], NOW) == 0
            assert not conversations.set_status(tx, stranger, [(foreign, ConversationStatus.READY, "")], NOW)
            conversations.delete(tx, stranger, [foreign])
        assert everything(tx, ADA) == before


def test_status_counts_the_rows_of_its_owner(database_url: Place, clock: Clock) -> None:
    def memory(owner: Owner) -> Any:
        names = {"database": database_url.url, "tenant": owner.tenant, "agent_id": owner.agent_id}
        return open_memory(database_url.home, environ={}, clock=clock, embedder="static", **names)

    with memory(ADA) as ada, memory(BOB) as bob:
        with ada.database.write() as tx:
            fill(tx, ADA)
            fill(tx, EVE)
            entries.insert(tx, rows_of(key_of(ADA, source="pi"), an_entry()))
        status, nothing = ada.status(), bob.status()
    assert status.tables == {
        "memory_file_states": 1,
        "memory_transcript_entries": 6,
        "memory_conversations": 5,
        "memory_compactions": 1,
        "memory_projects": 1,
        "memory_repositories": 1,
        "memory_malformed_lines": 1,
        "memory_jobs": 3,
        "memory_stage1": 1,
        "memory_artifacts": 5,
        "memory_memories": 3,
        "memory_sources": 3,
        "memory_answers": 1,
        "memory_vectors": 3,
    }
    assert status.vectors["backlog"] == {"entry": 5, "summary": 0, "memory": 2}
    assert (status.memories, [each.requests for each in status.tokens]) == ({"fact": 3}, [1])
    assert status.sources == {
        "codex": {"files": 1, "entries": 3},
        "pi": {"files": 0, "entries": 1},
        "recollect": {"files": 0, "entries": 2},
    }
    assert status.conversations == {"active": 1, "archived": 4}
    assert status.jobs == {"running": 1, "failed": 1, "pending": 1}
    assert [job.key for job in status.waiting] == ["failed"]
    assert status.database_bytes > 0
    assert set(nothing.tables.values()) == {0}
    assert (nothing.sources, nothing.conversations, nothing.jobs) == ({}, {}, {})


# Transactions


EVERY_TABLE = (
    "turns.save_active_set",
    "turns.erase",
    "turns.save_signatures",
    "files.save",
    "files.clear_malformed",
    "entries.delete_from",
    "conversations.update",
    "projects.save",
    "projects.record",
    "artifacts.replace_sessions",
    "tombstones.save",
    "stage1.delete",
    "stage1.cite",
    "memories.replace_sessions",
    "memories.cite",
    "citations.settle",
    "feedback.react",
    "injections.save",
    "listing.see",
    "answers.delete",
    "answers.charge",
    "vectors.save_model",
    "vectors.insert",
    "sums.drop_all",
    "Jobs.complete",
)


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, GeneratorExit])
def test_an_exception_rolls_everything_back(database: Database, owner: Owner, error: type[BaseException]) -> None:
    with database.write() as tx:
        fill(tx, owner)
        before = everything(tx, owner)
    with pytest.raises(error), database.write() as tx:
        for name in EVERY_TABLE:
            WRITES[name](tx, owner)
        changed = everything(tx, owner)
        assert [table for table in TABLES if changed[table] == before[table]] == []
        raise error
    with database.read() as tx:
        assert everything(tx, owner) == before


def test_closing_beside_a_thread_that_was_given_up_raises_nothing(tmp_path: Path) -> None:
    database = SqliteDatabase(tmp_path / "a.db", 1.0)
    inside, done = threading.Event(), threading.Event()

    def work() -> None:
        with database.read() as tx:
            tx._connection.create_scalar_function("wait", lambda: inside.set() or done.wait(10) or 1, 0)  # type: ignore[attr-defined]
            tx.rows("SELECT wait()")

    thread = threading.Thread(target=work)
    thread.start()
    assert inside.wait(10)
    database.close()
    done.set()
    thread.join()


def test_a_statement_that_fails_rolls_everything_back(database: Database, owner: Owner) -> None:
    with pytest.raises((apsw.Error, psycopg.Error)), database.write() as tx:
        fill(tx, owner)
        tx.run("INSERT INTO memory_jobs (tenant) VALUES (:tenant)", {"tenant": "x"})
    with database.write() as tx:
        assert not any(everything(tx, owner).values())
        fill(tx, owner)


def test_what_is_not_committed_is_not_seen(database: Database, database_url: Place, owner: Owner) -> None:
    other = database_url.open()
    with database.write() as tx:
        fill(tx, owner)
        with other.read() as elsewhere:
            assert not any(everything(elsewhere, owner).values())
    with other.read() as elsewhere:
        assert any(everything(elsewhere, owner).values())
    other.close()


def test_a_read_is_one_consistent_view(
    database: Database, database_url: Place, owner: Owner, request: pytest.FixtureRequest
) -> None:
    other = database_url.open()
    try:
        with database.read() as tx:
            assert projects.load_all(tx, owner) == {}
            with other.write() as elsewhere:
                fill(elsewhere, owner)
            assert projects.load_all(tx, owner) == {}
    finally:
        other.close()


def test_threads_write_side_by_side(database: Database, owner: Owner) -> None:
    def work(name: str) -> None:
        for number in range(20):
            with database.write() as tx:
                entries.insert(tx, rows_of(key_of(owner), an_entry(f"{name}-{number}")))

    threads = [threading.Thread(target=work, args=(str(number),)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with database.read() as tx:
        assert tx.row("SELECT COUNT(*) FROM memory_transcript_entries") == (80,)


def test_threads_that_ended_leave_no_connection_open(database: Database, request: pytest.FixtureRequest) -> None:
    def read() -> None:
        with database.read() as tx:
            tx.row("SELECT COUNT(*) FROM memory_jobs")

    def descriptors() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    read()
    before = descriptors()
    for _ in range(20):
        thread = threading.Thread(target=read)
        thread.start()
        thread.join()
    assert descriptors() - before < 10


# Anomalies


@contextmanager
def held(place: Place) -> Iterator[None]:
    """Another connection holds the database against writing."""
    if place.kind == "sqlite":
        connection = apsw.Connection(str(place.home / "recollect.db"))
        connection.execute("BEGIN IMMEDIATE")
        yield
        connection.execute("ROLLBACK")
        connection.close()
    else:
        with psycopg.connect(place.url) as other:
            other.execute(f"LOCK TABLE {', '.join(TABLES)} IN EXCLUSIVE MODE")
            yield
            other.rollback()


def test_while_another_holds_the_database_writes_are_busy_and_reads_work(database_url: Place, owner: Owner) -> None:
    database_url.open().close()  # the first connection takes the longest
    database = database_url.open(busy_timeout=0.05)
    with database.write() as tx:
        fill(tx, owner)
        before = everything(tx, owner)
        conversation = only(tx, owner)
    locking: dict[str, Read] = {
        "is_held(lock)": lambda tx, owner: jobs_of(owner).is_held(tx, KIND, "running", lock=True),
        "Jobs.standing": READS["Jobs.standing"],
    }
    outcomes: dict[str, str] = {}
    with held(database_url):
        for name, write in {**WRITES, **locking}.items():
            try:
                with database.write() as tx:
                    write(tx, owner)
                outcomes[name] = "done"
            except StoreBusy as error:
                outcomes[name] = "busy" if error.hint else "busy, and no hint"
        for name, read in READS.items():
            with database.read() as tx:
                assert name in locking or read(tx, owner), name
        with database.read() as tx:
            assert everything(tx, owner) == before
    assert outcomes == dict.fromkeys({*WRITES, *locking}, "busy")
    with database.write() as tx:
        assert conversations.set_status(tx, owner, [(conversation, ConversationStatus.READY, "")], NOW)
    database.close()


def test_status_can_be_read_while_a_worker_is_in_a_transaction(
    database_url: Place, owner: Owner, clock: Clock, request: pytest.FixtureRequest
) -> None:
    flags = {"database": database_url.url, "tenant": owner.tenant, "agent_id": owner.agent_id}
    with open_memory(database_url.home, environ={}, clock=clock, busy_timeout_seconds=0.1, **flags) as memory:
        jobs = jobs_of(owner)
        with memory.database.write() as tx:
            files.save(tx, owner, [a_state()])
            jobs.enqueue(tx, KIND, [(f"{SOURCE}/{FILE}", "w1")])
            (lease,) = jobs.claim(tx, KIND, limit=1)
        worker = database_url.open()
        try:
            with worker.write() as tx:
                jobs.heartbeat(tx, [lease], progress=True)
                assert memory.status().problems == []
        finally:
            worker.close()


@contextmanager
def full_disk(database: Database) -> Iterator[None]:
    """Room for a few more pages. PostgreSQL is told by a trigger what its disk would tell it."""
    with database.write() as tx:
        if tx.dialect.name == "sqlite":
            ((pages,),) = tx.rows("PRAGMA page_count")
            tx.rows(f"PRAGMA max_page_count = {pages + 4}")
        else:
            tx.script(
                "CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
                " IF (SELECT COUNT(*) FROM memory_transcript_entries) > 5 THEN"
                " RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = '53100';"
                " END IF; RETURN NEW; END $$;"
                "CREATE TRIGGER full_disk BEFORE INSERT ON memory_transcript_entries"
                " FOR EACH ROW EXECUTE FUNCTION full_disk()"
            )
    yield
    with database.write() as tx:
        if tx.dialect.name == "sqlite":
            tx.rows("PRAGMA max_page_count = 1000000")
        else:
            tx.script("DROP FUNCTION full_disk CASCADE")


def test_a_full_disk_writes_nothing_and_the_store_works_again_when_there_is_room(
    database: Database, owner: Owner
) -> None:
    with database.write() as tx:
        fill(tx, owner)
        before = everything(tx, owner)
    large = [an_entry(f"large{number}", content="x" * 20_000) for number in range(10)]
    with full_disk(database):
        with pytest.raises(StoreFull) as raised, database.write() as tx:
            projects.save(tx, owner, [Project("/new", "new", "path")], NOW)
            entries.insert(tx, rows_of(key_of(owner), *large))
        assert raised.value.hint
        with database.read() as tx:
            assert everything(tx, owner) == before
    with database.write() as tx:
        assert entries.insert(tx, rows_of(key_of(owner), *large)) == 10


ON_A_FULL_DISK = """
import sys
from pathlib import Path
from recollect.errors import StoreFull
from recollect.store import entries
from recollect.types import Owner
from tests.conftest import Place
from tests.test_store import an_entry, key_of, rows_of

disk = Path(sys.argv[1])
place, owner = Place("sqlite", "", disk / "home"), Owner()
database = place.open()
batches = 0
try:
    while True:
        batch = [an_entry(f"{batches}-{number}", content="x" * 5000) for number in range(10)]
        with database.write() as tx:
            entries.insert(tx, rows_of(key_of(owner), *batch))
        batches += 1
except StoreFull:
    pass
count = "SELECT COUNT(*) FROM memory_transcript_entries"
with database.read() as tx:
    assert tx.row(count) == (batches * 10,), (tx.row(count), batches)
database.close()
(disk / "ballast").unlink()
database = place.open()
with database.write() as tx:
    assert tx.row(count) == (batches * 10,)
    assert entries.insert(tx, rows_of(key_of(owner), *batch)) == 10
    assert tx.rows("PRAGMA integrity_check") == [("ok",)]
database.close()
assert batches > 3
"""


def run_on_a_small_disk(program: str, folder: Path, megabytes: int) -> subprocess.CompletedProcess[str]:
    """Runs it with a disk of its own in `folder`, half filled by a file named `ballast`; nobody else sees that disk."""
    folder.mkdir()
    mount = (
        f'mount -t tmpfs -o size={megabytes}m tmpfs "$1" && '
        f'head -c {megabytes * 512 * 1024} /dev/zero > "$1/ballast" && exec "$2" -c "$3" "$1"'
    )
    command = ["unshare", "--map-root-user", "--mount", "sh", "-c", mount, "sh", folder, sys.executable, program]
    path = [str(Path(__file__).parent.parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(path)}
    return subprocess.run(command, env=environ, capture_output=True, text=True, check=False)


def can_mount() -> bool:
    command = ["unshare", "--map-root-user", "--mount", "mount", "-t", "tmpfs", "tmpfs", "/mnt"]
    return (
        shutil.which("unshare") is not None
        and subprocess.run(command, capture_output=True, check=False).returncode == 0
    )


needs_mount = pytest.mark.skipif(not can_mount(), reason="this machine does not let a test mount a disk of its own")


@needs_mount
def test_a_disk_that_is_really_full_keeps_whole_batches_only(tmp_path: Path) -> None:
    done = run_on_a_small_disk(ON_A_FULL_DISK, tmp_path / "disk", 8)
    assert done.returncode == 0, done.stderr


OPEN_ON_A_FULL_DISK = """
import sys
from pathlib import Path
from recollect.errors import StoreFull
from tests.conftest import Place

disk = Path(sys.argv[1])
try:
    with (disk / "more").open("wb") as file:
        while True:
            file.write(bytes(4096))
            file.flush()
except OSError:
    pass
place = Place("sqlite", "", disk / "home")
try:
    place.open()
    raise SystemExit("opened")
except StoreFull:
    pass
(disk / "more").unlink()
place.open().close()
"""


@needs_mount
def test_opening_a_new_database_on_a_full_disk_says_that_it_is_full(tmp_path: Path) -> None:
    done = run_on_a_small_disk(OPEN_ON_A_FULL_DISK, tmp_path / "disk", 8)
    assert done.returncode == 0, done.stderr


def sqlite(tmp_path: Path) -> Place:
    return Place("sqlite", "", tmp_path / "home")


@pytest.mark.parametrize(
    "content", [b"this is no database\n" * 500, b"\0" * 8192, b"SQLite format 3\0" + b"\xff" * 9000]
)
def test_a_file_that_is_no_database_is_damaged(tmp_path: Path, content: bytes) -> None:
    place = sqlite(tmp_path)
    place.home.mkdir()
    (place.home / "recollect.db").write_bytes(content)
    with pytest.raises(StoreDamaged) as raised:
        place.open()
    assert str(place.home / "recollect.db") in raised.value.message
    assert raised.value.hint
    assert (place.home / "recollect.db").read_bytes() == content


def test_a_database_with_torn_pages_is_damaged(tmp_path: Path, owner: Owner) -> None:
    place = sqlite(tmp_path)
    database = place.open()
    with database.write() as tx:
        entries.insert(
            tx, rows_of(key_of(owner), *(an_entry(f"e{number}", content="x" * 500) for number in range(3000)))
        )
    database.close()
    with (place.home / "recollect.db").open("r+b") as file:
        size = (place.home / "recollect.db").stat().st_size
        file.seek(size // 2)  # the schema stands in front
        file.write(b"\xa5" * size)
    database = place.open()
    with pytest.raises(StoreDamaged), database.read() as tx:
        everything(tx, owner)
    database.close()


def test_a_home_that_cannot_be_made_is_a_store_error(tmp_path: Path) -> None:
    place = sqlite(tmp_path)
    settings = place.settings()
    place.home.write_text("a file")
    with pytest.raises(StoreError) as raised:
        open_database(settings, Clock())
    assert raised.value.hint


def test_a_server_that_is_not_there_is_a_store_error(tmp_path: Path) -> None:
    place = Place("postgres", f"postgresql://postgres@/x?host={tmp_path}", tmp_path)
    with pytest.raises(StoreError) as raised:
        place.open(busy_timeout=0.2)
    assert isinstance(raised.value, StoreAway)
    assert "server" in raised.value.hint


def test_a_role_that_may_not_make_tables_is_a_store_error(postgres: Server, tmp_path: Path) -> None:
    with postgres.database() as url:
        for option in ("role=pg_monitor", "search_path=nowhere", "default_transaction_read_only=on"):
            place = Place("postgres", f"{url}&options=-c{option.replace('=', '%3D')}", tmp_path)
            with pytest.raises(StoreError) as raised:
                place.open()
            assert "search path" in raised.value.hint


def test_the_schema_that_an_address_chooses_is_the_one_that_is_used(
    postgres: Server, tmp_path: Path, owner: Owner
) -> None:
    with postgres.database() as url:
        with psycopg.connect(url) as connection:
            connection.execute("CREATE SCHEMA apart")
        database = Place("postgres", f"{url}&options=-csearch_path%3Dapart", tmp_path).open()
        with database.write() as tx:
            fill(tx, owner)
            assert tx.rows("SELECT DISTINCT schemaname FROM pg_tables WHERE tablename LIKE 'memory%'") == [("apart",)]
            assert tx.row("SHOW lock_timeout") == ("10s",)
        database.close()


def test_the_rest_of_a_password_is_no_host_and_is_not_shown(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as raised:
        Place("postgres", "postgresql://me:ab@s3cret@127.0.0.1:1/x", tmp_path).open(busy_timeout=0.2)
    assert "s3cret" not in f"{raised.value}{raised.value.hint}" and "%40" in raised.value.hint


def test_a_server_that_is_too_old_is_refused(postgres: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with postgres.database() as url:
        monkeypatch.setattr("recollect.store.migrate.OLDEST_POSTGRES", 99)
        with pytest.raises(StoreError, match=r"PostgreSQL \d") as raised:
            Place("postgres", url, tmp_path).open()
        assert "99 or newer" in raised.value.hint


def test_a_database_that_cannot_hold_every_text_is_refused(postgres: Server, tmp_path: Path) -> None:
    with postgres.database() as url, psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
        try:
            with pytest.raises(StoreError, match="LATIN1"):
                Place("postgres", postgres.url("latin"), tmp_path).open()
        finally:
            connection.execute("DROP DATABASE latin WITH (FORCE)")


def test_a_client_encoding_of_the_surroundings_changes_no_text(postgres: Server, tmp_path: Path) -> None:
    with postgres.database(postgres.migrated) as url:
        database = Place("postgres", f"{url}&client_encoding=LATIN1", tmp_path).open()
        with database.read() as tx:
            assert tx.row("SELECT CAST(:text AS TEXT)", {"text": "\u6570"}) == ("\u6570",)
        database.close()


def test_a_server_that_was_restarted_answers_the_next_call(postgres: Server, tmp_path: Path) -> None:
    with postgres.database(postgres.migrated) as url:
        database = Place("postgres", url, tmp_path).open(busy_timeout=3.0)
        with ExitStack() as many:
            for _ in range(6):
                many.enter_context(database.read())
        with psycopg.connect(url) as other:
            other.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
        with database.read() as tx:
            assert tx.row("SELECT 1") == (1,)
        database.close()


@pytest.mark.parametrize("database_url", ["postgres"], indirect=True)
def test_why_the_server_ended_a_transaction_is_said(database: Database) -> None:
    def ended(setting: str, then: str) -> StoreError:
        with pytest.raises(StoreError) as raised, database.write() as tx:
            tx.run(f"SET LOCAL {setting} = 50")
            time.sleep(0.2)
            tx.rows(then)
        return raised.value

    assert isinstance(ended("idle_in_transaction_session_timeout", "SELECT 1"), StoreAway)
    assert isinstance(ended("lock_timeout", "SELECT 1 FROM pg_terminate_backend(pg_backend_pid())"), StoreAway)
    limited = ended("statement_timeout", "SELECT pg_sleep(9)")
    assert not isinstance(limited, StoreBusy) and "statement_timeout" in limited.hint


@pytest.mark.parametrize("database_url", ["postgres"], indirect=True)
def test_what_waits_for_the_database_outlives_a_connection_that_is_lost(database: Database) -> None:
    begun = []

    def act(tx: Transaction) -> int:
        begun.append(tx.rows("SELECT 1"))
        if len(begun) == 1:
            tx.rows("SELECT pg_terminate_backend(pg_backend_pid())")
        return len(begun)

    assert committed(database, act) == 2


@pytest.mark.parametrize("database_url", ["postgres"], indirect=True)
def test_a_process_all_of_whose_connections_are_in_use_is_busy(database_url: Place) -> None:
    database = database_url.open(busy_timeout=0.3)
    with ExitStack() as many, pytest.raises(StoreBusy) as raised:
        for _ in range(9):
            many.enter_context(database.read())
    assert not isinstance(raised.value, StoreAway)
    database.close()


@pytest.mark.parametrize("url", ["postgresql://me:s3%cr3t@db/x", "postgresql://me:s3cr3t@[::1/x"])
def test_an_address_that_postgresql_does_not_understand_is_told_without_its_password(tmp_path: Path, url: str) -> None:
    with pytest.raises(ConfigError) as raised:
        Place("postgres", url, tmp_path).open()
    told = "".join(traceback.format_exception(raised.value))
    assert "cr3t" not in told


def test_an_address_that_is_no_postgresql_url_is_a_configuration_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError):
        Place("mysql", "mysql://localhost/x", tmp_path).open()


def test_the_database_and_its_folder_belong_to_their_owner_only(tmp_path: Path, owner: Owner) -> None:
    before = os.umask(0)  # the most generous one
    try:
        place = sqlite(tmp_path)
        database = place.open()
        with database.write() as tx:
            fill(tx, owner)
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (place.home, *place.home.iterdir())}
        database.close()
    finally:
        os.umask(before)
    assert modes == {"home": 0o700, "recollect.db": 0o600, "recollect.db-wal": 0o600, "recollect.db-shm": 0o600}


def test_the_size_of_the_database_grows_with_what_is_stored(database: Database, owner: Owner) -> None:
    before = database.size()
    with database.write() as tx:
        entries.insert(
            tx, rows_of(key_of(owner), *(an_entry(f"e{n}", content=os.urandom(5000).hex()) for n in range(50)))
        )
    assert database.size() > before + 200_000


def test_a_closed_database_leaves_nothing_but_its_file(tmp_path: Path, owner: Owner) -> None:
    place = sqlite(tmp_path)
    database = place.open()
    with database.write() as tx:
        fill(tx, owner)
    database.close()
    assert [path.name for path in place.home.iterdir()] == ["recollect.db"]
