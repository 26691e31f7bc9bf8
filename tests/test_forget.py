"""Erasing: after it, no byte of what was erased is in the home folder or the database, and nothing brings it back."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path, PurePath
from typing import Any

import msgspec
import psycopg
import pytest
import yaml
import zstandard

from recollect.app import Memory, open_memory
from recollect.artifacts import tombstones
from recollect.artifacts.files import Files
from recollect.artifacts.forget import Forget, Target
from recollect.artifacts.mentions import Why, found_in, wanted
from recollect.artifacts.removal import names_in, repeats, said_again
from recollect.config import DAMAGED_DATABASES
from recollect.consolidate.run import KEY, KIND, Consolidation, Outcome, Step
from recollect.errors import HalfErased, UsageError
from recollect.ingest.erasure import stones
from recollect.ingest.sources.recollect import Turn
from recollect.models.base import Usage
from recollect.models.paid import Paid
from recollect.search.values import ALL_PROJECTS
from recollect.store import tombstones as tombstone_rows
from recollect.store.erasing import Said
from recollect.turns.log import TurnLog
from recollect.turns.values import FINGERPRINT, fact
from recollect.types import ConversationStatus, Message, Role
from recollect.workspace import remove_empty
from tests.command import Done, run
from tests.conftest import Clock, Place
from tests.test_extract import (
    FACT,
    OTHER,
    RULE,
    TALK,
    TOLD,
    Scripted,
    by,
    extract,
    ingest,
    memory_of,
    one_memory,
    quote,
    session,
)
from tests.test_reindex import content, empty, files
from tests.test_store import held
from tests.transcripts import SESSION, START, append, claude, entries, stamp, write

SECRET = "Zanzibarquelle"  # a word that stands in what is erased and nowhere else
PRIVATE = f"Remember: my sister lives in {SECRET} and works at the harbour."
FRIDAY = "Please remember: we never deploy on a Friday."
PROJECT = "/code/tides"
UNDO = "undo"  # the role of a line by which the last turn is rolled back
THREAD = "019a0000-0000-7000-8000-000000000001"
DAY = 86_400


@pytest.fixture
def clock() -> Clock:
    return Clock(START + timedelta(days=1))


def traces(memory: Memory, word: str = SECRET) -> list[str]:
    """Where a word, or the stem that an index keeps of it, stands: files of the home, bytes of the database, rows."""
    found = []
    word = word[:9].lower()
    for path in memory.settings.home.rglob("*"):
        if path.is_file() and word.encode() in path.read_bytes().lower():
            found.append(str(path.relative_to(memory.settings.home)))
    with memory.database.read() as tx:
        if tx.dialect.name == "postgres":
            tables = tx.rows("SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'")
        else:
            tables = tx.rows("SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'")
        for (table,) in tables:
            if any(word in str(row).lower() for row in tx.rows(f"SELECT * FROM {table}")):
                found.append(table)
    return found


def filled(memory: Memory, root: Path, clock: Clock) -> None:
    """Two sessions, extracted and consolidated; the word stands in one of them, in three of its messages."""
    texts = (
        *TALK,
        PRIVATE,
        f"Understood: your sister lives in {SECRET} and works at the harbour.",
        FRIDAY,
        f"ok, {SECRET}",
    )
    ingest(memory, root, *texts)
    ingest(memory, root, "Remember that we keep the tide tables in PostgreSQL.", "Good.", "Yes.", "Done.", name=OTHER)
    memory.process(now=True)
    memory.consolidate(now=True)
    memory.embed()
    clock.advance(60)


def own(found: dict[str, list[Any]], agent: str = "bob") -> dict[str, list[Any]]:
    return {table: [row for row in rows if agent in row] for table, rows in found.items()}


def memory_with(memory: Memory, word: str) -> str:
    with memory.database.read() as tx:
        rows = tx.rows("SELECT memory_id FROM memory_memories WHERE text LIKE :word", {"word": f"%{word}%"})
    return str(rows[0][0])


def texts(memory: Memory) -> str:
    with memory.database.read() as tx:
        return repr(tx.rows("SELECT text FROM memory_memories ORDER BY text"))


@pytest.mark.parametrize("what", ["session", "conversation", "project"])
def test_a_search_for_what_was_erased_finds_nothing(memory: Memory, root: Path, clock: Clock, what: str) -> None:
    filled(memory, root, clock)
    assert len(traces(memory)) > 6  # it was everywhere
    key = next(each.session_key for each in memory.conversations() if each.session_id == SESSION)
    target = {"session": SESSION, "conversation": key, "project": PROJECT}[what]
    report = memory.forget(**{what: target}, reason="private")
    assert traces(memory) == []
    assert report.removed_paths and report.removed_rows and report.problems == []
    assert (memory.settings.home / report.tombstone).is_file()
    assert ("PostgreSQL" in texts(memory)) is (what != "project")


def test_a_number_that_was_erased_names_nothing_else(memory: Memory, root: Path, clock: Clock) -> None:
    def numbers() -> dict[str, set[int]]:
        tables = ("memory_transcript_entries", "memory_conversations", "memory_search_texts")
        with memory.database.read() as tx:
            return {table: {number for (number,) in tx.rows(f"SELECT id FROM {table}")} for table in tables}

    filled(memory, root, clock)
    before = numbers()
    memory.forget(project=PROJECT)
    assert not any(numbers().values())
    ingest(memory, root, *TALK, name=SESSION[::-1])
    memory.process(now=True)
    assert all(numbers()[table] and numbers()[table].isdisjoint(before[table]) for table in before)


def test_a_single_memory_goes_with_the_messages_it_came_from(memory: Memory, root: Path, clock: Clock) -> None:
    filled(memory, root, clock)
    name = memory_with(memory, SECRET)
    report = memory.forget(memory=name, reason="private")
    assert report.memories == [name]
    assert traces(memory) == []
    assert "make lint" in texts(memory) and "Friday" in texts(memory)
    assert memory.reindex(full=True).problems == []
    assert "sister" not in json.dumps([path.read_text() for path in files(memory)])


@pytest.mark.parametrize("partly", [False, True])
def test_a_request_that_is_erased_no_longer_says_when_a_memory_matters(
    memory: Memory, root: Path, clock: Clock, partly: bool
) -> None:
    """The rule was said in the course of it, and stays: in the rest of the conversation, or in another one."""
    word = "Quellenbad" if partly else SECRET
    asked = f"can you draw the page about boats in {word}?"
    said = f"{asked} {PRIVATE}" if partly else asked
    ingest(memory, root, said, "Here it is.", RULE, "Sure.", TOLD, "Noted.")
    if not partly:
        ingest(memory, root, "Show me the tables of the tides.", "Here.", RULE, "Sure.", TOLD, "Noted.", name=OTHER)

    def answer(content: str) -> dict[str, Any]:
        """What was asked first is when the rule matters; what is private is a memory, too."""
        rule = memory_of(RULE, 3, "make lint") | {"occasions": [asked if asked in content else "tables of the tides"]}
        private = [memory_of(PRIVATE, 1, quote(content, 1))] if partly else []
        return one_memory(content) | {"memories": [rule, *private]}

    extract(memory, by(Scripted(answer))).run(now=True)
    with memory.database.read() as tx:
        (when,) = next(iter(tx.rows("SELECT occasions FROM memory_memories WHERE text LIKE '%make lint%'")))
    assert word in when and ("tables of the tides" in when) is not partly
    target = {"memory": memory_with(memory, SECRET)} if partly else {"session": SESSION}
    memory.forget(**target, reason="private")
    assert traces(memory, word) == [] and "make lint" in texts(memory)
    assert memory.reindex(full=True).problems == [] and traces(memory, word) == []


def test_a_memory_whose_conversation_begins_with_it_leaves_the_rest(memory: Memory, root: Path) -> None:
    ingest(memory, root, PRIVATE, "ok", RULE, "Sure.", FACT, "Noted.")
    memory.process(now=True)
    memory.consolidate(now=True)
    memory.forget(memory=memory_with(memory, SECRET), reason="private")
    assert traces(memory) == []
    model = Scripted()
    memory.ingest(folder=root, reimport=True)
    report = extract(memory, by(model)).run(now=True)
    assert (report.claimed, model.calls, traces(memory)) == (0, [], [])
    assert "make lint" in texts(memory)
    (talk,) = memory.conversations()
    assert (talk.entry_count, talk.status) == (5, ConversationStatus.ARCHIVED)
    assert memory.reindex(full=True).problems == []


def test_11_nothing_brings_it_back(memory: Memory, root: Path, clock: Clock, database_url: Place) -> None:
    """Validation test 11: a removal survives a re-index, a re-import, a copy, a re-extraction and a lost database."""
    filled(memory, root, clock)
    talk = root / "-code-tides" / f"{SESSION}.jsonl"
    memory.forget(session=SESSION, reason="private")
    memory.ingest(folder=root)
    memory.ingest(folder=root, reimport=True)
    copy = write(root / "-code-tides" / "copy.jsonl", talk.read_bytes())
    memory.ingest(file=copy)
    memory.process(now=True)
    memory.reindex(full=True)
    memory.consolidate(now=True)
    assert traces(memory) == []
    with memory.database.write() as tx:
        for table in ("memory_tombstones", "memory_file_states", "memory_jobs", "memory_artifacts"):
            tx.run(f"DELETE FROM {table}")
    memory.reindex()
    memory.ingest(folder=root)
    memory.process(now=True)
    assert traces(memory) == []


def test_files_that_come_back_from_a_backup_are_not_taken_in(memory: Memory, root: Path, clock: Clock) -> None:
    filled(memory, root, clock)
    backup = shutil.copytree(memory.settings.home / "memory", root / "backup")
    memory.forget(session=SESSION, reason="private")
    shutil.copytree(backup, memory.settings.home / "memory", dirs_exist_ok=True)
    report = memory.reindex(full=True)
    assert {each.kind for each in report.problems} == {"Erased"}
    assert SECRET not in texts(memory)
    assert not [row for row in content(memory)["memory_transcript_entries"] if SECRET in str(row)]


@pytest.mark.parametrize("take", [False, True])
def test_a_lost_database_is_told_what_was_erased_before_anything_comes_in(
    memory: Memory, root: Path, clock: Clock, database_url: Place, take: bool
) -> None:
    filled(memory, root, clock)
    memory.forget(session=SESSION, reason="private")
    empty(memory)
    with memory.database.write() as tx:
        tx.run("DELETE FROM memory_tombstones")
    with open_memory(database_url.home, environ={}, clock=clock, database=database_url.url) as found:
        if take:
            found.intake.take([root / "-code-tides" / f"{SESSION}.jsonl"])
        else:
            found.ingest(folder=root)
        found.process(now=True)
        assert SESSION not in {each.session_id for each in found.conversations()}
        assert traces(found) == []
        there = stones(found.settings.home)
        with found.database.read() as tx:
            assert len(there) == 1 and tombstone_rows.known(tx, found.owner, [*there]) == there


def test_a_tombstone_that_is_deleted_lets_nothing_in_until_the_database_is_made_anew(
    memory: Memory, root: Path, clock: Clock, database_url: Place
) -> None:
    filled(memory, root, clock)
    report = memory.forget(session=SESSION, reason="private")
    (memory.settings.home / report.tombstone).unlink()
    memory.reindex(full=True)
    memory.ingest(folder=root, reimport=True)
    assert traces(memory) == []
    empty(memory)
    with memory.database.write() as tx:
        tx.run("DELETE FROM memory_tombstones")
    memory.reindex()
    memory.ingest(folder=root)
    assert "memory_transcript_entries" in traces(memory)


@pytest.mark.parametrize("what", ["session", "memory"])
@pytest.mark.parametrize("database_url", ["postgres"], indirect=True)
def test_another_home_on_the_same_database_brings_nothing_back(
    memory: Memory, root: Path, clock: Clock, tmp_path: Path, database_url: Place, what: str
) -> None:
    filled(memory, root, clock)
    with open_memory(tmp_path / "other", environ={}, clock=clock, database=database_url.url) as other:
        shutil.copytree(memory.settings.home / "memory", other.settings.home / "memory")
        target = SESSION if what == "session" else memory_with(memory, SECRET)
        memory.forget(**{what: target}, reason="private")
        assert {each.kind for each in other.reindex(full=True).problems} >= {"Erased"}
        other.export(tmp_path / "archive")
        with (tmp_path / "archive").open("rb") as file:
            assert SECRET.encode() not in zstandard.ZstdDecompressor().stream_reader(file).read()
        assert traces(memory) == []
        other.doctor(fix=True)
        assert traces(memory) == traces(other) == []


@pytest.mark.parametrize("repair", ["reindex", "doctor", "search"])
@pytest.mark.parametrize("what", ["session", "memory"])
def test_an_older_copy_of_the_database_that_was_put_back_is_told_until_it_is_mended(
    tmp_path: Path, root: Path, clock: Clock, what: str, repair: str
) -> None:
    home = tmp_path / "home"
    with open_memory(home, environ={}, clock=clock) as memory:
        filled(memory, root, clock)
        memory.database.scrub()  # all of it is in one file
        shutil.copy(home / "recollect.db", tmp_path / "older")
        target = SESSION if what == "session" else memory_with(memory, SECRET)
        memory.forget(**{what: target}, reason="private")
        assert [each for each in memory.health().problems if "erased" in each.problem] == []
    for file in home.glob("recollect.db*"):
        file.unlink()
    shutil.copy(tmp_path / "older", home / "recollect.db")
    with open_memory(home, environ={}, clock=clock) as memory:
        (trouble,) = (each for each in memory.health().problems if "erased" in each.problem)
        assert "recollect reindex" in trouble.hint
        assert "Erased" in {each.kind for each in memory.doctor().problems}
        if repair == "search":
            assert memory.search(SECRET, scope=ALL_PROJECTS) == []
        else:
            memory.reindex() if repair == "reindex" else memory.doctor(fix=True)
        assert traces(memory) == [] and memory.doctor().problems == []
        assert [each for each in memory.health().problems if "erased" in each.problem] == []


class Killed(BaseException):
    pass


def killed(memory: Memory, clock: Clock, target: Target, at: str = "logs") -> None:
    """A removal that dies after a step."""

    def die(step: str) -> None:
        if step == at:
            raise Killed

    with pytest.raises(Killed):
        Forget(memory.ground, wrote=die).run(target, "private")


@pytest.mark.parametrize("at", ["logs", "rows", "projections"])
def test_a_removal_that_another_process_stops_half_way_says_what_to_do(
    memory: Memory, root: Path, clock: Clock, database_url: Place, at: str
) -> None:
    filled(memory, root, clock)
    flags = {"database": database_url.url, "busy_timeout_seconds": 0.1}
    with ExitStack() as holding, open_memory(database_url.home, environ={}, clock=clock, **flags) as hasty:

        def hold(step: str) -> None:
            if step == at:
                holding.enter_context(held(database_url))

        eraser = Forget(hasty.ground, refresh=hasty._refresh, scrub=lambda tables: "", wrote=hold)
        with pytest.raises(HalfErased, match="half erased: ") as raised:
            eraser.run(Target(session=SESSION), "private")
    assert "recollect process" in raised.value.hint
    memory.process()
    assert traces(memory) == [] and memory.doctor().problems == []


def bytes_of(memory: Memory) -> dict[str, bytes]:
    """Files of the database's tables and indexes, and what they hold."""
    with psycopg.connect(memory.settings.config.database, autocommit=True) as owner:
        owner.execute("CHECKPOINT")
        (found,) = owner.execute("SHOW data_directory").fetchall()
        (number,) = owner.execute("SELECT oid FROM pg_database WHERE datname = current_database()").fetchall()
        folder = Path(found[0]) / "base" / str(number[0])
        names = {
            str(node): name
            for node, name in owner.execute("SELECT pg_relation_filenode(oid), relname FROM pg_class").fetchall()
        }
    return {names.get(path.name, path.name): path.read_bytes().lower() for path in folder.iterdir()}


@pytest.mark.parametrize("what", ["session", "memory"])
@pytest.mark.parametrize("database_url", ["postgres"], indirect=True)
def test_no_file_of_a_table_or_an_index_holds_what_was_erased(
    memory: Memory, root: Path, clock: Clock, what: str
) -> None:
    word = SECRET[:9].lower().encode()
    filled(memory, root, clock)
    memory.correct(memory_with(memory, "PostgreSQL"), f"We keep the tide tables in {SECRET}DB.")
    memory.correct(memory_with(memory, f"{SECRET}DB"), "We keep the tide tables in DuckDB.")  # the word is left behind
    with psycopg.connect(memory.settings.config.database, autocommit=True) as owner:
        owner.execute("ANALYZE")  # statistics hold samples of what stands in columns
        owner.execute("VACUUM")
        untouched = owner.execute("SELECT pg_relation_filenode('memory_token_accounts')").fetchall()
    assert sum(word in data for data in bytes_of(memory).values()) > 5
    target = {"session": SESSION, "memory": memory_with(memory, "sister")}[what]
    assert memory.forget(**{what: target}, reason="private").problems == []
    assert memory.forget(memory=memory_with(memory, "DuckDB"), reason="private").problems == []
    assert traces(memory) == []
    assert [name for name, data in bytes_of(memory).items() if word in data] == []
    with psycopg.connect(memory.settings.config.database) as owner:
        assert owner.execute("SELECT pg_relation_filenode('memory_token_accounts')").fetchall() == untouched


@pytest.mark.parametrize("database_url", ["postgres"], indirect=True)
def test_a_table_that_others_hold_is_named_and_rewritten_later(
    memory: Memory, root: Path, clock: Clock, database_url: Place
) -> None:
    filled(memory, root, clock)
    flags: dict[str, Any] = {"database": database_url.url, "busy_timeout_seconds": 0.5}
    with psycopg.connect(database_url.url) as reader:

        def hold(step: str) -> None:
            if step == "projections":
                reader.execute("SELECT COUNT(*) FROM memory_stage1")

        with open_memory(database_url.home, environ={}, clock=clock, **flags) as hasty:
            report = Forget(hasty.ground, refresh=hasty._refresh, wrote=hold).run(Target(session=SESSION), "private")
        assert "memory_stage1" in report.problems[0] and "memory_transcript_entries" not in report.problems[0]
        assert "doctor --fix" in report.problems[0]
    assert any(SECRET[:9].lower().encode() in data for data in bytes_of(memory).values())
    memory.doctor(fix=True)
    assert [name for name, data in bytes_of(memory).items() if SECRET[:9].lower().encode() in data] == []


@pytest.mark.parametrize("database_url", ["postgres"], indirect=True)
def test_a_role_that_may_not_vacuum_is_told_so(memory: Memory, root: Path, clock: Clock, database_url: Place) -> None:
    filled(memory, root, clock)
    with psycopg.connect(database_url.url, autocommit=True) as owner:
        owner.execute("CREATE ROLE guest LOGIN")
        try:
            owner.execute("GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO guest")
            owner.execute("GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO guest")
            url = database_url.url.replace("postgres@", "guest@")
            with open_memory(database_url.home, environ={}, clock=clock, database=url) as guest:
                (told,) = guest.forget(session=SESSION, reason="private").problems
        finally:
            owner.execute("DROP OWNED BY guest")
            owner.execute("DROP ROLE guest")
    assert "memory_" in told and "owner" in told
    assert memory.doctor().problems == [], "no further run would do better"


@pytest.mark.parametrize("database_url", ["postgres"], indirect=True)
def test_dead_rows_that_another_transaction_may_still_see_are_not_taken_for_gone(
    memory: Memory, root: Path, clock: Clock, database_url: Place
) -> None:
    filled(memory, root, clock)
    flags: dict[str, Any] = {"database": database_url.url, "busy_timeout_seconds": 0.3}
    with psycopg.connect(database_url.url) as reader:
        reader.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        reader.execute("SELECT 1")
        with open_memory(database_url.home, environ={}, clock=clock, **flags) as hasty:
            (told,) = hasty.forget(session=SESSION, reason="private").problems
        assert "began earlier" in told and memory.doctor().problems
    memory.doctor(fix=True)
    assert memory.doctor().problems == [] and traces(memory) == []


@pytest.mark.parametrize("repair", ["reindex", "doctor"])
@pytest.mark.parametrize("what", ["session", "memory", "beginning"])
def test_what_a_killed_removal_left_in_rows_is_found_and_goes(
    memory: Memory, root: Path, clock: Clock, what: str, repair: str
) -> None:
    first = (PRIVATE, "ok") if what == "beginning" else ()
    rest = () if first else (PRIVATE, f"Understood: {SECRET}.", FRIDAY, "ok")
    ingest(memory, root, *first, *TALK, *rest)
    memory.process(now=True)
    clock.advance(60)
    target = Target(session=SESSION) if what == "session" else Target(memory=memory_with(memory, SECRET))
    killed(memory, clock, target)
    assert "memory_memories" in traces(memory)
    clock.advance(60)
    if repair == "reindex":
        assert memory.reindex().erased
    else:
        memory.doctor(fix=True)
        memory.briefing.refresh()
    assert traces(memory) == []
    assert ("make lint" in texts(memory)) is (what != "session")
    assert memory.reindex(full=True).problems == [] and memory.doctor().problems == []
    memory.ingest(folder=root, reimport=True)
    memory.process(now=True)
    assert traces(memory) == [] and memory.reindex(full=True).erased == 0


@pytest.mark.parametrize("what", ["session", "memory"])
def test_what_was_erased_elsewhere_goes_here_when_its_tombstone_comes_in(
    memory: Memory, root: Path, clock: Clock, tmp_path: Path, what: str
) -> None:
    filled(memory, root, clock)
    memory.export(tmp_path / "before")
    with open_memory(tmp_path / "there", environ={}, clock=clock) as there:
        there.import_(tmp_path / "before")
        there.ingest(folder=root)
        assert SECRET in texts(there)
        clock.advance(60)
        there.consolidate(now=True)
        target = {"session": SESSION} if what == "session" else {"memory": memory_with(memory, SECRET)}
        memory.forget(**target, reason="private")
        memory.export(tmp_path / "after")
        there.import_(tmp_path / "after")
        assert traces(there) == []
        assert "PostgreSQL" in texts(there) and ("make lint" in texts(there)) is (what == "memory")
        assert there.reindex(full=True).problems == [] and there.doctor().problems == []


def resplit(memory: Memory, root: Path, clock: Clock, how: str, *, process: bool) -> Memory:
    """What was said in one conversation stands in files of another one as well: two were joined by a late message, or
    one was parted."""
    one = [claude(n, text, at=n) for n, text in enumerate((RULE, "Good.", FACT, "Noted."))]
    two = [claude(10 + n, text, at=4800 + n) for n, text in enumerate((PRIVATE, "ok", FRIDAY))]
    talk = write(root / "-code-tides" / f"{SESSION}.jsonl", b"".join(one + two))
    gap = {"joined": 60, "parted": 120}[how]
    options: dict[str, Any] = {"environ": {}, "clock": clock, "database": memory.settings.config.database}
    with open_memory(memory.settings.home, conversation_gap_minutes=gap, **options) as before:
        before.ingest(folder=root)
        before.process(now=True)
    clock.advance(DAY)
    after = open_memory(memory.settings.home, conversation_gap_minutes=60, **options)
    if how == "joined":
        append(talk, claude(20, "By the way, the harbour map is outdated.", at=2400))
    after.ingest(folder=root, reimport=how == "parted")
    if process:
        after.process(now=True)
        after.process(now=True)
    assert len(after.conversations()) == {"joined": 1, "parted": 2}[how]
    clock.advance(60)
    return after


@pytest.mark.parametrize("how", ["joined", "parted"])
@pytest.mark.parametrize("what", ["memory", "conversation", "unprocessed"])
def test_files_of_an_earlier_split_that_tell_it_go_too(
    memory: Memory, root: Path, clock: Clock, how: str, what: str
) -> None:
    with resplit(memory, root, clock, how, process=what != "unprocessed") as found:
        key = next(each.session_key for each in found.conversations())  # the newest, which holds it
        report = found.forget(
            **({what: memory_with(found, SECRET)} if what == "memory" else {"conversation": key}), reason="x"
        )
        assert traces(found) == []
        stone = tombstones.parse((found.settings.home / report.tombstone).read_text())
        assert set(report.removed_paths) <= set(stone.removed_paths)
        assert ("make lint" in texts(found)) is (what == "memory" or how == "parted")
        found.process(now=True)
        assert found.reindex(full=True).problems == [] and found.doctor().problems == []
        found.ingest(folder=root, reimport=True)
        found.process(now=True)
        assert traces(found) == []


def test_a_superseded_file_that_was_gone_before_is_known_when_it_comes_back(
    memory: Memory, root: Path, clock: Clock
) -> None:
    talk = ingest(memory, root, *TALK, PRIVATE, "ok")
    memory.process(now=True)
    backup = shutil.copytree(memory.settings.home / "memory", root / "backup")
    append(talk, session("One more thing for the harbour.", first=20))
    memory.ingest(folder=root)
    clock.advance(3600)
    memory.process(now=True)
    memory.forget(memory=memory_with(memory, SECRET), reason="private")
    for path in backup.glob("*--t*.md"):
        shutil.copy(path, memory.settings.home / "memory")
    assert {each.kind for each in memory.reindex(full=True).problems} == {"Erased"}
    memory.doctor(fix=True)
    assert traces(memory) == [] and memory.doctor().problems == []


@pytest.mark.parametrize("renamed", [False, True])
def test_a_set_that_tells_it_is_erased_whatever_its_name(
    memory: Memory, root: Path, clock: Clock, database_url: Place, renamed: bool
) -> None:
    """Its time, and with it its name, is another one where another machine wrote it."""
    ingest(memory, root, *TALK, PRIVATE, "ok")
    memory.process(now=True)
    memory.forget(memory=memory_with(memory, SECRET), reason="private")
    (stone,) = (memory.settings.home / "memory" / "tombstones").glob("*.md")
    kept = stone.read_text()
    shutil.rmtree(memory.settings.home / "memory")
    empty(memory)
    with memory.database.write() as tx:
        tx.run("DELETE FROM memory_tombstones")
    clock.advance(7200)
    with open_memory(database_url.home, environ={}, clock=clock, database=database_url.url) as there:
        there.ingest(folder=root, reimport=True)
        there.process(now=True)
        Files(there.settings.home).create(tombstones.parse(kept).path, kept)
        if renamed:
            empty(there)
        report = there.reindex()
        assert report.problems == [] and "make lint" in texts(there)
        assert traces(there) == [] and there.doctor().problems == []


def test_a_new_set_never_takes_a_name_that_was_erased(memory: Memory, root: Path) -> None:
    ingest(memory, root, *TALK, PRIVATE, "ok")
    memory.process(now=True)
    memory.forget(memory=memory_with(memory, SECRET), reason="private")  # in the same millisecond
    assert memory.reindex(full=True).problems == []
    memory.doctor(fix=True)
    assert len(files(memory)) == 3 and "make lint" in texts(memory)


def test_memory_md_leaves_out_what_a_late_worker_wrote(memory: Memory, root: Path, clock: Clock) -> None:
    filled(memory, root, clock)
    backup = shutil.copytree(memory.settings.home / "memory", root / "backup")
    memory.forget(session=SESSION, reason="private")
    shutil.copytree(backup, memory.settings.home / "memory", dirs_exist_ok=True)
    memory._projection.update()
    ledger = (memory.settings.home / "MEMORY.md").read_text()
    assert SESSION not in ledger and OTHER in ledger


def codex(path: Path, name: str, said: list[tuple[str, str]], first: int, parent: str = "") -> Path:
    meta: dict[str, Any] = {"id": name, "cwd": PROJECT, "originator": "codex_cli", "cli_version": "1"}
    if parent:
        meta["forked_from_id"] = parent
    at = [f"2026-03-02T09:{first + n:02d}:00.000Z" for n in range(len(said) + 1)]
    lines: list[dict[str, Any]] = [{"timestamp": at[0], "type": "session_meta", "payload": meta}]
    for (role, text), when in zip(said, at[1:], strict=True):
        if role == UNDO:
            event = {"type": "thread_rolled_back", "num_turns": 1}
            lines.append({"timestamp": when, "type": "event_msg", "payload": event})
            continue
        kind = "input_text" if role == "user" else "output_text"
        payload = {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}
        lines.append({"timestamp": when, "type": "response_item", "payload": payload})
    return write(path, b"".join(json.dumps(each).encode() + b"\n" for each in lines))


def test_a_fork_that_copied_it_under_other_ids_does_not_bring_it_back(memory: Memory, tmp_path: Path) -> None:
    root = tmp_path / "sessions"
    one, two = "019a0000-0000-7000-8000-000000000001", "019a0000-0000-7000-8000-000000000002"
    said = [("user", PRIVATE), ("assistant", f"Noted, {SECRET}."), ("user", RULE), ("assistant", "Fine.")]
    codex(root / "2026/03/02" / f"rollout-2026-03-02T09-00-00-{one}.jsonl", one, said, 0)
    memory.ingest(folder=root)
    memory.process(now=True)
    memory.forget(session=one, reason="private")
    own = [("user", FRIDAY), ("assistant", "All right.")]
    codex(root / "2026/03/02" / f"rollout-2026-03-02T09-30-00-{two}.jsonl", two, [*said, *own], 30, parent=one)
    memory.ingest(folder=root)
    memory.process(now=True)
    assert traces(memory) == []
    with memory.database.read() as tx:
        rows = tx.rows("SELECT content FROM memory_transcript_entries ORDER BY timestamp")
    assert [text for (text,) in rows] == [FRIDAY, "All right."]


def rolled(memory: Memory, tmp_path: Path, *said: tuple[str, str]) -> None:
    """A thread in which something was rolled back, extracted."""
    root = tmp_path / "sessions"
    codex(root / "2026/03/02" / f"rollout-2026-03-02T09-00-00-{THREAD}.jsonl", THREAD, list(said), 0)
    memory.ingest(folder=root)
    memory.process(now=True)
    assert any(SECRET in each[4] and each[10] for each in entries(memory))


@pytest.mark.parametrize("what", ["memory", "conversation"])
def test_what_was_rolled_back_and_said_again_goes_with_it(memory: Memory, tmp_path: Path, what: str) -> None:
    rolled(
        memory,
        tmp_path,
        ("user", f"My sister lives in {SECRET}."),  # before the conversation, as it stands now, begins
        (UNDO, ""),
        ("user", RULE),
        ("assistant", "Good."),
        ("user", PRIVATE.replace("harbour", "harbor")),
        ("assistant", f"Noted: {SECRET}."),
        (UNDO, ""),
        ("user", "Where is the lighthouse?"),
        (UNDO, ""),
        ("user", PRIVATE),
        ("assistant", "Understood."),
        ("user", FRIDAY),
        ("assistant", "ok"),
    )
    (talk,) = memory.conversations()
    target = {"memory": memory_with(memory, SECRET), "conversation": talk.session_key}[what]
    memory.forget(**{what: target}, reason="private")
    assert traces(memory) == []
    left = [each[4] for each in entries(memory)]
    stays = [
        RULE,
        "Good.",
        "Where is the lighthouse?",
        "Understood.",
        FRIDAY,
        "ok",
    ]
    assert left == (stays if what == "memory" else [])


@pytest.mark.parametrize("what", ["session", "conversation", "project"])
def test_a_last_turn_that_was_rolled_back_goes_with_its_conversation(memory: Memory, tmp_path: Path, what: str) -> None:
    rolled(
        memory, tmp_path, ("user", RULE), ("assistant", "Good."), ("user", PRIVATE), ("assistant", "Hm."), (UNDO, "")
    )
    (talk,) = memory.conversations()
    target = {"session": THREAD, "conversation": talk.session_key, "project": PROJECT}[what]
    memory.forget(**{what: target}, reason="private")
    assert traces(memory) == [] and entries(memory) == []


def test_a_thread_that_was_rolled_back_as_a_whole_goes_with_its_project(memory: Memory, tmp_path: Path) -> None:
    rolled(memory, tmp_path, ("user", PRIVATE), ("assistant", "Hm."), (UNDO, ""))
    ingest(memory, tmp_path / "projects", *TALK)
    assert [each.session_id for each in memory.conversations()] == [SESSION]
    memory.forget(project=PROJECT, reason="private")
    assert traces(memory) == [] and entries(memory) == []


def test_what_another_conversation_rolled_back_stays(memory: Memory, root: Path, clock: Clock) -> None:
    later = session("Let us mend the parser.", "Fine.", "Go on.", "Done.", first=2 * DAY // 60)
    write(root / "-code-tides" / f"{SESSION}.jsonl", session(*TALK) + later)
    clock.advance(3 * DAY)
    memory.ingest(folder=root)
    with memory.database.write() as tx:
        tx.run("UPDATE memory_transcript_entries SET withdrawn = 1 WHERE content IN ('Fine.', 'Noted.')")
    memory.forget(conversation=f"{SESSION}@{stamp(60)}", reason="private")
    assert [each[4] for each in entries(memory)] == ["Let us mend the parser.", "Fine.", "Go on.", "Done."]


def summed_up(memory: Memory, root: Path, clock: Clock) -> tuple[str, str]:
    """A session of two conversations, whose agent repeats the first in the second; their keys."""
    said = f"They work in tides, and the sister lives in {SECRET}."
    kept = session("Let us mend the parser of the tide tables.", "Fine.", "Go on.", "Done.", first=DAY // 60)
    summary = claude(99, said, at=DAY + 90, isCompactSummary=True)
    write(root / "-code-tides" / f"{SESSION}.jsonl", session(PRIVATE, "ok", RULE, "Sure.") + kept + summary)
    clock.advance(3 * DAY)
    memory.ingest(folder=root)
    memory.process(now=True)
    first, second = sorted(each.session_key for each in memory.conversations())
    assert len(files(memory, "compaction")) == 1 and memory.reindex(full=True).problems == []
    return first, second


@pytest.mark.parametrize("what", ["conversation", "memory"])
def test_a_summary_in_a_later_conversation_goes_and_that_conversation_stays(
    memory: Memory, root: Path, clock: Clock, what: str
) -> None:
    first, second = summed_up(memory, root, clock)
    (path,) = files(memory, "compaction")
    backup = shutil.copytree(memory.settings.home / "memory", root / "backup")
    target = {"conversation": first, "memory": memory_with(memory, SECRET)}[what]
    report = memory.forget(**{what: target}, reason="private")
    assert f"memory/{path.name}" in report.removed_paths
    assert traces(memory) == []
    assert second in [each.session_key for each in memory.conversations()]
    memory.ingest(folder=root, reimport=True)
    memory.process(now=True)
    assert memory.reindex(full=True).problems == [] and memory.doctor().problems == []
    assert traces(memory) == []
    shutil.copy(backup / path.name, path)
    assert {each.kind for each in memory.reindex(full=True).problems} == {"Erased"}
    memory.doctor(fix=True)
    memory.database.scrub()
    assert traces(memory) == [] and memory.doctor().problems == []


def test_a_summary_goes_also_where_the_manifest_that_names_it_was_changed_by_hand(
    memory: Memory, root: Path, clock: Clock
) -> None:
    first, second = summed_up(memory, root, clock)
    (path,) = (each for each in files(memory, "manifest") if second in each.read_text())
    path.write_text(path.read_text() + "by hand")
    memory.forget(conversation=first, reason="private")
    assert traces(memory) == [] and "by hand" in path.read_text()


def test_the_workspace_is_made_anew_while_a_cap_pauses_it_and_no_model_is_asked(
    memory: Memory, root: Path, clock: Clock
) -> None:
    filled(memory, root, clock)
    Paid(memory.ground, KIND, KEY).charge("scripted:1", Usage(1, 100, 10, 0.001))
    config = msgspec.structs.replace(memory.settings.config, max_tokens_per_day=50)
    capped, model = replace(memory.settings, config=config), Scripted()

    def asked(name: str) -> Outcome:
        ingest(memory, root, f"remember that we call the boat {name}.", "Good.", "Yes.", "Done.", name=name * 6)
        memory.process(now=True)
        return Consolidation(replace(memory.ground, settings=capped), model).run(now=True).outcome

    assert asked("Nixe") is Outcome.PAUSED
    report = memory.forget(session=SESSION, reason="private")
    assert report.problems == [] and traces(memory) == []
    assert asked("Undine") is Outcome.PAUSED and model.calls == []


def test_a_message_that_is_still_growing_is_forgotten_in_the_saved_state_too(memory: Memory, root: Path) -> None:
    ingest(memory, root, "hello", f"I see: {SECRET}, {SECRET}")
    assert "memory_file_states" in traces(memory)
    memory.forget(session=SESSION, reason="private")
    assert traces(memory) == []
    memory.ingest(folder=root, reimport=True)
    assert traces(memory) == []
    append(root / "-code-tides" / f"{SESSION}.jsonl", session("something new", first=3))
    memory.ingest(folder=root)
    assert [each.entry_count for each in memory.conversations()] == [1]


def test_notes_go_from_our_own_log_too(memory: Memory, root: Path, clock: Clock) -> None:
    filled(memory, root, clock)
    name = memory_with(memory, SECRET)
    memory.pin(name)
    memory.feedback(name, "not_ok", f"why {SECRET}?")
    other = memory.remember("The boat is called Nixe.", project=Path(PROJECT), when=[f"which boat lies in {SECRET}"])
    assert any(trace.startswith("turns/") for trace in traces(memory))
    memory.forget(session=SESSION, reason="private")  # the pin said it again
    assert {trace.partition("/")[0] for trace in traces(memory)} >= {"memory", "turns"}  # the other note is untouched
    memory.forget(memory=other.id, reason="private")
    assert traces(memory) == []
    assert memory.reindex(full=True).problems == []
    memory.ingest()
    memory.process(now=True)
    assert traces(memory) == []


@pytest.mark.parametrize("what", ["memory", "session"])
def test_what_a_person_thought_of_a_memory_that_stays_stays_in_its_log(
    memory: Memory, root: Path, clock: Clock, what: str
) -> None:
    """It is stated by the rest of the conversation, or by another one."""
    filled(memory, root, clock)
    ingest(memory, root, RULE, "ok", name="33333333-2222-4333-8444-555555555555")
    memory.process(now=True)
    rule, private = memory_with(memory, "make lint"), memory_with(memory, SECRET)
    memory.feedback(rule, "not_ok", "only on main")
    memory.feedback(private, "not_ok", f"why {SECRET}?")
    memory.forget(**{what: {"memory": private, "session": SESSION}[what]}, reason="private")
    assert traces(memory) == []
    empty(memory)
    with memory.database.write() as tx:
        for table in ("memory_feedback", "memory_turn_files"):
            tx.run(f"DELETE FROM {table}")
    memory.reindex()
    assert memory.show(rule).record["verdict"]["text"] == "only on main"


NAMED = "/home/ada/acme-merger"


def named(memory: Memory) -> list[str]:
    """Where the project's name stands, files' and folders' names included."""
    paths = (str(each.relative_to(memory.settings.home)) for each in memory.settings.home.rglob("*"))
    return [each for each in paths if "acme-merger" in each] + traces(memory, "acme-merger")


def said_in_named(memory: Memory, root: Path, clock: Clock) -> Path:
    """A session in the project, a note with a reaction to it, and a note of another project; the session's file."""
    path = root / "-home-ada-acme-merger" / f"{SESSION}.jsonl"
    write(path, session(*TALK, PRIVATE, "ok").replace(PROJECT.encode(), f"{NAMED}/src".encode()))
    memory.ingest(folder=root)
    kept = memory.remember("The offer is three million.", project=Path(NAMED))
    memory.feedback(kept.id, "ok", "yes")
    memory.remember("The boat is called Nixe.", project=Path(PROJECT))
    memory.process(now=True)
    memory.consolidate(now=True)
    clock.advance(60)
    assert len(named(memory)) > 6
    return path


@pytest.mark.parametrize("way", ["project", "session"])
def test_nothing_is_named_after_a_project_of_which_nothing_is_left(
    memory: Memory, root: Path, clock: Clock, way: str
) -> None:
    path = said_in_named(memory, root, clock)
    backup = path.read_bytes()
    path.unlink()  # agents delete theirs
    if way == "project":
        memory.forget(project=NAMED, reason="private")
    else:
        for each in {each.session_id for each in memory.conversations() if each.project.startswith(NAMED)}:
            assert named(memory)
            memory.forget(session=each, reason="private")
    assert named(memory) == []
    assert "Nixe" in texts(memory)
    with memory.database.read() as tx:
        assert tx.rows("SELECT cwd FROM memory_projects") == [(PROJECT,)]
    path.write_bytes(backup)
    assert memory.ingest(folder=root).entries == 0
    assert traces(memory) == []
    memory.remember("The boat is red.", project=Path(NAMED))  # its folder may be made again
    assert named(memory)


def test_a_transcript_that_is_there_keeps_its_offset_when_its_project_is_erased(
    memory: Memory, root: Path, clock: Clock
) -> None:
    path = said_in_named(memory, root, clock)
    memory.forget(project=NAMED, reason="private")
    with memory.database.read() as tx:
        rows = tx.rows("SELECT file_path, last_processed_offset FROM memory_file_states WHERE source = 'claude-code'")
    assert rows == [(f"-home-ada-acme-merger/{SESSION}.jsonl", path.stat().st_size)]
    assert {each for each in named(memory) if "/" in each} == set()
    memory.ingest(folder=root)
    memory.ingest(folder=root, reimport=True)
    assert traces(memory) == []


def test_a_project_of_which_something_is_left_keeps_its_name(memory: Memory, root: Path, clock: Clock) -> None:
    path = said_in_named(memory, root, clock)
    path.unlink()
    memory.forget(session=SESSION, reason="private")
    with memory.database.read() as tx:
        assert (NAMED,) in tx.rows("SELECT cwd FROM memory_projects")
        assert tx.rows("SELECT 1 FROM memory_file_states WHERE source = 'claude-code'") == []
    assert any(each.startswith("turns/") for each in named(memory))
    assert "three million" in texts(memory)


def test_a_line_of_a_log_goes_and_the_others_stay(tmp_path: Path) -> None:
    log = TurnLog(tmp_path / "turns")
    for number in (1, 2, 3):
        turn = Turn(
            id=f"t{number}",
            at=f"2026-03-02T09:0{number}:00.000Z",
            project="",
            user="ada",
            conversation="c",
            user_text=f"text {number}",
            assistant_text="ok",
        )
        path = log.append("c", turn)
    file = str(path.relative_to(log.root))
    log.erase(file, lambda uuids: any(":t2:" in uuid for uuid in uuids))
    assert [json.loads(line)["id"] for line in path.read_bytes().splitlines()] == ["t1", "t3"]
    log.erase("../../etc/passwd", lambda uuids: True)
    log.erase(file, lambda uuids: True)
    assert not path.exists()
    log.append("c", turn)
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_folder_that_is_removed_while_a_line_is_written_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, open_file = TurnLog(tmp_path / "turns"), os.open
    (log.root / "tides" / "ada").mkdir(parents=True)

    def open_(path: str, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if path == "c.jsonl":
            monkeypatch.undo()
            remove_empty(log.root, PurePath("tides/ada"))
        return open_file(path, flags, mode, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", open_)
    turn = Turn(id="t1", at=stamp(0), project="tides", user="ada", conversation="c", user_text="x", assistant_text="ok")
    assert log.append("c", turn).read_bytes().count(b"\n") == 1


def test_stored_answers_go_and_a_worker_that_is_at_it_loses_it(memory: Memory, root: Path, clock: Clock) -> None:
    ingest(memory, root, *TALK, PRIVATE, "ok")

    def forget(step: str) -> None:
        if step == "resolved":
            memory.forget(session=SESSION, reason="private")

    report = extract(memory, reached=forget).run(now=True)
    assert (report.succeeded, report.skipped) == (0, 1)
    assert traces(memory) == []


def chatted(memory: Memory, clock: Clock) -> str:
    """A chat whose word stands in its log, a bucket and the workspace; its session."""
    turns = memory.turns(project="tides", user="ada", conversation="c1")
    for number, text in enumerate(
        (f"My sister lives in {SECRET} and works at the harbour.", "I prefer short answers.")
    ):
        with turns.turn(f"t{number}", text) as turn:
            turn.reconcile()
            turn.persist("ok")
        clock.advance(60)
    turns.reconcile_buckets()
    clock.advance(86400)
    memory.ingest()
    memory.process(now=True)
    memory.consolidate(now=True)
    return turns.session_id


@pytest.mark.parametrize("what", ["session", "project"])
def test_a_turn_that_became_no_message_goes_with_its_chat(
    memory: Memory, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """Nothing of it was taken in: its line is too long."""
    turns = memory.turns(project="tides", user="ada", conversation="c1")
    monkeypatch.setattr("recollect.ingest.fold.LONGEST_LINE", 2000)
    with turns.turn("t1", f"My sister lives in {SECRET}. " + "Hm. " * 1000) as turn:
        turn.update_fingerprint(facts=[fact("sister", SECRET)])
        turn.persist("ok")
    assert entries(memory) == [] and turns.artifacts(FINGERPRINT)
    report = memory.forget(**{what: {"session": turns.session_id, "project": "tides"}[what]}, reason="private")
    assert report.problems == [] and traces(memory) == []
    assert turns.artifacts(FINGERPRINT) == []


def test_what_is_reconciled_while_it_is_erased_leaves_no_evidence(memory: Memory, clock: Clock) -> None:
    turns = memory.turns(project="tides", user="ada", conversation="c1")
    with turns.turn("t1", "Where does she live?") as turn:
        turn.update_fingerprint(facts=[fact("sister", SECRET)])
        turn.persist("ok")
    memory.ingest(folder=memory.settings.turns)

    def reconcile(step: str) -> None:
        if step == "logs":
            turns.reconcile_buckets()

    Forget(memory.ground, refresh=memory._refresh, wrote=reconcile).run(Target(session=turns.session_id), "private")
    assert traces(memory) == [] and turns.buckets() == []


def test_a_later_turn_may_say_what_an_erased_one_said(memory: Memory, clock: Clock) -> None:
    turns = memory.turns(project="tides", user="ada", conversation="c1")
    for number, text in enumerate((f"My sister lives in {SECRET}.", "I always sit at the aisle.")):
        with turns.turn(f"t{number}", text) as turn:
            turn.update_fingerprint(facts=[fact(f"about {number}", text)])
            turn.persist("Noted.")
        clock.advance(2 * DAY)
    memory.ingest(folder=memory.settings.turns)
    first = min(each.session_key for each in memory.conversations())
    memory.forget(conversation=first, reason="private")
    memory.ingest(folder=memory.settings.turns, reimport=True)
    assert {each[4] for each in entries(memory)} == {"I always sit at the aisle.", "Noted."}
    memory.reindex(full=True)
    assert [each.turn_id for each in turns.artifacts(FINGERPRINT)] == ["t1"]


def test_what_killed_processes_left_half_written_goes(memory: Memory, clock: Clock) -> None:
    name = chatted(memory, clock)
    home, turns = memory.settings.home, next(memory.settings.turns.glob("*/*"))
    left = [home / ".recollect-1.tmp", home / "memory" / ".recollect.tmp", turns / ".c1.jsonl.tmp"]
    left += [memory.settings.workspace / "projects" / ".recollect-2.tmp", home / "context" / ".recollect-3.tmp"]
    left += [turns / "buckets" / ".b-1.json.tmp", memory.settings.workspace.with_name("workspace-staging-7") / "a.md"]
    for each in left:
        each.parent.mkdir(parents=True, exist_ok=True)
        each.write_text(SECRET)
    with memory.database.write() as tx:  # as the one that left a copy of the workspace behind
        tx.run("UPDATE memory_jobs SET status = 'running' WHERE kind = 'consolidate'")
    memory.forget(session=name, reason="private")
    assert traces(memory) == []


def test_a_first_consolidation_that_was_killed_leaves_nothing(memory: Memory, root: Path, clock: Clock) -> None:
    ingest(memory, root, *TALK, PRIVATE, "ok")
    memory.process(now=True)

    def crash(step: Step) -> None:
        if step is Step.PUBLISHING:
            raise KeyboardInterrupt

    with suppress(KeyboardInterrupt):
        Consolidation(memory.ground, None, reached=crash).run(now=True)
    assert any(each.startswith("workspace/") for each in traces(memory))
    assert memory.forget(session=SESSION, reason="private").problems == []
    assert traces(memory) == []
    assert memory.consolidate(now=True).outcome is Outcome.NO_INPUT


NEXT: dict[str, Callable[[Memory, Path], object]] = {
    "process": lambda memory, root: memory.process(),
    "search": lambda memory, root: memory.search(SECRET, scope=ALL_PROJECTS),
    "ingest": lambda memory, root: memory.ingest(folder=root),
    "context": lambda memory, root: memory.context(Path(PROJECT), f"Where is {SECRET}?"),
    "reindex": lambda memory, root: memory.reindex(),
    "export": lambda memory, root: memory.export(memory.settings.home.parent / "archive", force=True),
    "remember": lambda memory, root: memory.remember("The boat is called Nixe.", project=Path(PROJECT)),
    "reimport": lambda memory, root: memory.ingest(folder=root, reimport=True),
    "doctor": lambda memory, root: memory.doctor(fix=True),
    "timeline": lambda memory, root: memory.timeline(project=None),
    "forget": lambda memory, root: memory.forget(session=SESSION, reason="private"),
    "consolidate": lambda memory, root: memory.consolidate(),
}


@pytest.mark.parametrize("chat", [False, True])
def test_whoever_runs_next_finishes_what_was_stopped_after_any_step(
    database_url: Place, clock: Clock, tmp_path: Path, chat: bool
) -> None:
    steps: list[str] = []
    for number in range(60):
        home = tmp_path / f"home-{number}"
        options: dict[str, Any] = {"database": database_url.url, "agent_id": f"a{number}", "clock": clock}
        options["embedder"] = "static"
        with open_memory(home, environ={}, **options) as memory:
            if chat:
                root, target = memory.settings.turns, Target(session=chatted(memory, clock))
                assert any("/buckets/" in each for each in traces(memory))
            else:
                root = tmp_path / "projects"
                filled(memory, root, clock)
                target = [Target(session=SESSION), Target(memory=memory_with(memory, SECRET))][number % 2]
            damaged = memory.settings.home / DAMAGED_DATABASES.replace("*", "then")
            damaged.write_text(SECRET)
            steps.clear()

            def crash(step: str, limit: int = number) -> None:
                steps.append(step)
                if len(steps) > limit:
                    raise KeyboardInterrupt

            eraser = Forget(memory.ground, refresh=memory._refresh, wrote=crash)
            try:
                eraser.run(target, "private")
            except KeyboardInterrupt:
                name, command = list(NEXT.items())[number % len(NEXT)]
                with suppress(UsageError):  # nothing is left that could be asked for
                    command(memory, root)
                assert traces(memory) == [], (steps, name)
                assert memory.doctor().problems == [], (steps, name)
                assert chat or any("make lint" in each.text for each in memory.memories()) is bool(target.memory)
                continue
            break
    assert number > 8, steps


@pytest.mark.parametrize("file", ["workspace/handbook.md", "MEMORY.md", "context/code-tides-08c1b607.md"])
def test_a_file_that_cannot_be_written_is_told_and_loses_it_when_it_can(
    memory: Memory, root: Path, clock: Clock, file: str
) -> None:
    filled(memory, root, clock)
    path = memory.settings.home / file
    kept = path.rename(path.with_name("kept"))
    path.mkdir()
    (problem,) = memory.forget(session=SESSION, reason="private").problems
    assert path.name in problem
    path.rmdir()
    kept.rename(path)
    assert traces(memory)
    assert "not done" in repr([each.what for each in memory.doctor().problems])
    assert memory.doctor(fix=True).remaining == 0
    assert traces(memory) == []


def test_a_workspace_that_could_not_be_written_loses_it_in_the_next_consolidation(memory: Memory, root: Path) -> None:
    ingest(memory, root, *TALK, PRIVATE, "ok")
    memory.process(now=True)
    memory.consolidate(now=True)
    handbook = memory.settings.workspace / "handbook.md"
    kept = handbook.rename(handbook.with_name("kept"))
    handbook.mkdir()
    assert memory.forget(session=SESSION, reason="private").problems
    handbook.rmdir()
    kept.rename(handbook)
    memory.consolidate(now=True)
    assert traces(memory) == []


def test_another_agent_keeps_what_is_its_own(memory: Memory, root: Path, clock: Clock, database_url: Place) -> None:
    filled(memory, root, clock)
    with open_memory(database_url.home, environ={}, clock=clock, database=database_url.url, agent_id="bob") as bob:
        ingest(bob, root, *TALK, PRIVATE, "ok")
        bob.process(now=True)
        before = own(content(bob))
        memory.forget(session=SESSION, reason="private")
        assert own(content(bob)) == before
        assert SECRET in texts(bob)


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ({"session": "nobody"}, "no session"),
        ({"memory": "m-none"}, "no memory"),
        ({}, "say what to forget"),
        ({"session": SESSION, "memory": "m-none"}, "session and memory were named"),
    ],
)
def test_what_is_not_there_is_said_and_nothing_changes(
    memory: Memory, root: Path, clock: Clock, target: dict[str, str], message: str
) -> None:
    filled(memory, root, clock)
    before = content(memory)
    with pytest.raises(UsageError, match=message):
        memory.forget(**{"reason": "x", **target})
    assert content(memory) == before
    assert not list((memory.settings.home / "memory").glob("tombstones/*"))


def test_a_tombstone_holds_no_text_and_reads_back(memory: Memory, root: Path, clock: Clock) -> None:
    filled(memory, root, clock)
    token = "ghp_16C7e42F292c6912E7710c838347Ae178B4a"
    report = memory.forget(session=SESSION, reason=f"private: asked by mail {token}")
    path = memory.settings.home / report.tombstone
    stone = tombstones.parse(path.read_text())
    assert stone.reason.startswith("private: asked by mail [") and token not in path.read_text()
    assert stone.removed_paths == tuple(sorted(report.removed_paths))
    assert stone.whole_tokens == (stone.session_token,)
    assert (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    path.write_text(path.read_text().replace(stone.hashes[0], "0" * 40))
    assert list(tombstones.read_all(Files(memory.settings.home)).values()) == [None]


def test_a_sentence_that_says_the_same_is_recognised() -> None:
    assert repeats("Sure. I noted that your sister lives in Oslo.", "My sister lives in Oslo.")
    assert not repeats("Oslo is nice.", "My sister lives in Oslo.")
    assert not repeats("", "") and not repeats("anything", "")


def test_a_name_is_no_common_word_and_one_used_all_over_takes_nothing_with_it() -> None:
    assert names_in("We moved to tide-stg-2 with Priya, says the API of openPort.") == {
        "tide-stg-2",
        "priya",
        "openport",
    }
    talk = [Message(f"e{n}", Role.USER, f"PostgreSQL again, {n}") for n in range(9)]
    undone = [Said("", f"u{n}", "", "user", "Priya? PostgreSQL?" if n else "PostgreSQL", "") for n in range(9)]
    assert said_again([Message("x", Role.USER, "ask Priya")], set(), ["Ask Priya."], undone) == {
        "x",
        *(f"u{n}" for n in range(1, 9)),
    }
    assert said_again([*talk, Message("x", Role.USER, "ask Priya")], {"e0"}, ["Ask PostgreSQL or Priya."]) == {
        "e0",
        "x",
    }


def test_the_command_line_names_what_goes_and_needs_a_yes(memory: Memory, root: Path, clock: Clock) -> None:
    def call(*arguments: str) -> Done:
        return run(memory.settings.home, "forget", *arguments, RECOLLECT_DATABASE=memory.settings.config.database)

    filled(memory, root, clock)
    name, rule = memory_with(memory, SECRET), memory_with(memory, "Friday")
    for refused in (call("--session", SESSION), call("--memory", name), call("--session", SESSION, "--json")):
        told = refused.json["error"] if refused.stdout else {"message": refused.stderr, "hint": refused.stderr}
        assert refused.status == 2 and "--yes" in told["hint"]
        assert name in told["message"] and SECRET in told["message"] and "tides: " in told["message"]
        assert (rule in told["message"]) is ("10 messages" in told["message"])
    shown = call("--session", SESSION, "--dry-run", "--json").json
    assert {each["id"] for each in shown["memories"]} >= {name, rule} and shown["entries"] == 10
    assert traces(memory)
    done = call("--json", "--session", SESSION, "--yes")
    assert (done.status, done.json["problems"]) == (0, [])
    assert {"removed_paths", "removed_rows", "tombstone"} <= done.json.keys()
    assert traces(memory) == []
    wrong = call("--json", "--session", SESSION, "--yes")
    assert wrong.status == 2 and "no session" in wrong.json["error"]["message"]


def test_the_same_command_again_finishes_what_was_cut_short(memory: Memory, root: Path, clock: Clock) -> None:
    filled(memory, root, clock)
    killed(memory, clock, Target(session=SESSION), "rows")
    home, database = memory.settings.home, memory.settings.config.database
    done = run(home, "forget", "--session", SESSION, RECOLLECT_DATABASE=database)
    assert done.status == 0 and "Finished a removal that was cut short" in done.stdout
    assert traces(memory) == []


def carried(root: Path, tmp_path: Path, clock: Clock) -> str:
    """What a tombstone says that another machine wrote when one message of six was erased there."""
    with open_memory(tmp_path / "there", environ={}, clock=clock) as there:
        ingest(there, root, RULE, "Sure.", PRIVATE, "ok", TOLD, "Noted.")
        there.process(now=True)
        report = there.forget(memory=memory_with(there, SECRET), reason="private")
        return (there.settings.home / report.tombstone).read_text()


@pytest.mark.parametrize("repair", ["reindex", "doctor"])
@pytest.mark.parametrize("database", ["lost", "without it"])
def test_what_else_a_set_tells_stays_where_no_row_holds_it(
    memory: Memory, root: Path, clock: Clock, tmp_path: Path, database: str, repair: str
) -> None:
    """One message of six was erased elsewhere; the set that tells it has names that its tombstone does not list."""
    kept = carried(root, tmp_path, clock)
    clock.advance(77)
    memory.ingest(folder=root)
    memory.process(now=True)
    Files(memory.settings.home).create(tombstones.parse(kept).path, kept)
    if database == "lost":
        empty(memory)
    else:
        with memory.database.write() as tx:
            tx.run("DELETE FROM memory_transcript_entries WHERE content LIKE :word", {"word": f"%{SECRET}%"})
            tx.run("UPDATE memory_conversations SET entry_count = entry_count - 1")
    if repair == "reindex":
        report = memory.reindex(full=database != "lost")
        assert report.problems == [] and report.erased
    else:
        memory.doctor(fix=True)
        memory.briefing.refresh()
        memory.database.scrub()
    assert traces(memory) == []
    assert [each[4] for each in entries(memory)] == [RULE, "Sure.", "ok", TOLD, "Noted."]
    assert "make lint" in texts(memory) and "tide-stg-2" in texts(memory)
    assert memory.doctor().problems == [] and memory.reindex(full=True).problems == []
    assert len(files(memory)) == 3


def test_an_older_set_that_tells_it_stays_until_rows_hold_what_else_it_tells(
    memory: Memory, root: Path, clock: Clock, tmp_path: Path
) -> None:
    kept = carried(root, tmp_path, clock)
    clock.advance(77)
    memory.ingest(folder=root)
    memory.process(now=True)
    old = {path: path.read_bytes() for path in files(memory) if "manifest" not in path.name}
    Files(memory.settings.home).create(tombstones.parse(kept).path, kept)
    memory.reindex()
    for path, data in old.items():
        write(path, data).chmod(0o600)
    with memory.database.write() as tx:
        tx.run("UPDATE memory_conversations SET status = 'ready'")
        tx.run("DELETE FROM memory_transcript_entries WHERE content = :text", {"text": TOLD})
    memory.doctor(fix=True)
    assert all(path.exists() for path in old)
    with memory.database.write() as tx:
        tx.run("UPDATE memory_conversations SET status = 'archived'")
    memory.doctor(fix=True)
    memory.database.scrub()
    assert traces(memory) == [] and TOLD in [each[4] for each in entries(memory)]
    assert memory.doctor().problems == []


@pytest.mark.parametrize("how", ["plain", "flow", "quoted", "indented"])
def test_a_tombstone_that_an_editor_wrote_anew_keeps_out_what_it_names(
    memory: Memory, root: Path, clock: Clock, database_url: Place, how: str
) -> None:
    ingest(memory, root, *TALK, PRIVATE, "ok")
    memory.process(now=True)
    report = memory.forget(session=SESSION, reason="it's private")
    path = memory.settings.home / report.tombstone
    _, front, body = path.read_text().split("---\n", 2)
    values = yaml.safe_load(front)
    styles: dict[str, dict[str, Any]] = {
        "plain": {},
        "flow": {"default_flow_style": True},
        "quoted": {"default_style": "'"},
    }
    front = yaml.safe_dump(values, sort_keys=False, **styles.get(how, {}))
    path.write_text(f"---\n{front.replace('- ', '  - ') if how == 'indented' else front}---\n{body}")
    assert tombstones.parse(path.read_text()).hashes == tuple(values["hashes"])
    for first in (True, False):
        empty(memory)
        with memory.database.write() as tx:
            tx.run("DELETE FROM memory_tombstones")
        with open_memory(database_url.home, environ={}, clock=clock, database=database_url.url) as found:
            if first:
                assert found.reindex().problems == []
                with found.database.read() as tx:
                    assert tombstone_rows.known(tx, found.owner, [report.tombstone])
            found.ingest(folder=root)
            assert entries(found) == []


def test_planning_a_removal_lists_the_folder_a_few_times(
    memory: Memory, root: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many conversations a session has."""
    said = [(day, n, text) for day in range(5) for n, text in enumerate((RULE, "ok", FACT, "Noted."))]
    lines = [claude(day * 10 + n, text, at=day * DAY + n) for day, n, text in said]
    write(root / "-code-tides" / f"{SESSION}.jsonl", b"".join(lines))
    clock.advance(9 * DAY)
    memory.ingest(folder=root)
    memory.process(now=True)
    listed: list[str] = []
    read: list[str] = []
    names, text = Files.names, Files.read
    monkeypatch.setattr(Files, "names", lambda *given, **more: listed.append("") or names(*given, **more))
    monkeypatch.setattr(Files, "read", lambda held, path: read.append(path) or text(held, path))
    key = min(each.session_key for each in memory.conversations())
    plan = Forget(memory.ground).plan(Target(conversation=key))
    assert plan.whole == (key,) and len(memory.conversations()) == 5
    assert len(listed) <= 3
    assert len([path for path in read if "--summary" in path]) <= 1


QUOTE = f"You told me: my sister lives in {SECRET} and works at the harbour."


def quoted(memory: Memory, root: Path, clock: Clock) -> None:
    """What is said in one session is quoted by the agent in another one, and by what a person thinks of a memory."""
    filled(memory, root, clock)
    name = "33333333-2222-4333-8444-555555555555"
    ingest(memory, root, RULE, QUOTE, "remember that we call the boat Undine.", "Good.", name=name)
    memory.process(now=True)
    memory.feedback(memory_with(memory, "Undine"), "ok", f"as in {SECRET}, on the quay")
    clock.advance(60)


@pytest.mark.parametrize("also", [False, True])
@pytest.mark.parametrize("what", ["memory", "session"])
def test_quotes_elsewhere_are_told_or_go_too(memory: Memory, root: Path, clock: Clock, what: str, also: bool) -> None:
    quoted(memory, root, clock)
    target = {"memory": memory_with(memory, "sister")} if what == "memory" else {"session": SESSION}
    report = memory.forget(**target, also=also)
    told = [each for each in report.also if SECRET.lower() in each["text"].lower()]
    assert bool(told) is not also and bool([row for row in entries(memory) if SECRET in str(row)]) is not also
    if not also:
        assert {"message"} <= {each["kind"] for each in told} and all(each["conversation"] for each in told)
        assert SECRET not in (memory.settings.home / report.tombstone).read_text()
    assert "Undine" in texts(memory)


@pytest.mark.parametrize("what", ["text", "memory"])
def test_what_a_message_tells_without_a_sentence_goes_too(memory: Memory, root: Path, clock: Clock, what: str) -> None:
    """A commit, a task, a question: they are in no text of a message, or only in part."""
    body = f"Move the tides\n\n{'Why. ' * 80}\n\n{PRIVATE}"
    uses = [("Bash", {"command": f"git commit -m '{body}'"}), ("TaskCreate", {"subject": PRIVATE})]
    blocks = [{"type": "tool_use", "id": name, "name": name, "input": arguments} for name, arguments in uses]
    lines = session(*TALK) + claude(8, "", role="assistant", message={"id": "m", "content": blocks})
    write(root / "-code-tides" / f"{SESSION}.jsonl", lines + claude(9, "thanks") + session(PRIVATE, "ok", first=10))
    memory.ingest(folder=root)
    memory.process(now=True)
    memory.consolidate(now=True)
    assert SECRET not in "".join(each[4] for each in entries(memory)[:8])
    assert "memory_transcript_entries" in traces(memory)
    backup = shutil.copytree(memory.settings.home / "memory", root / "backup")
    memory.forget(**{what: SECRET if what == "text" else memory_with(memory, SECRET)}, reason="private")
    assert traces(memory) == [] and "make lint" in texts(memory) and len(entries(memory)) == 8
    memory.ingest(folder=root, reimport=True)
    memory.process(now=True)
    shutil.copytree(backup, memory.settings.home / "memory", dirs_exist_ok=True)
    memory.reindex(full=True)
    memory.doctor(fix=True)
    memory.database.scrub()
    assert traces(memory) == []


@pytest.mark.parametrize("written", [SECRET, f"  {SECRET.upper()}\n", "Zanzibar\u00adquelle", "ｚanzibarquelle"])
def test_everything_that_says_a_text_goes(memory: Memory, root: Path, clock: Clock, written: str) -> None:
    quoted(memory, root, clock)
    chatted(memory, clock)
    report = memory.forget(text=written)
    assert report.problems == [] and traces(memory) == []
    assert "Undine" in texts(memory) and "make lint" in texts(memory) and "short answers" in texts(memory)
    undine = memory.show(memory_with(memory, "Undine")).record["verdict"]
    assert (undine["opinion"] if "opinion" in undine else undine["reaction"]) == "ok"
    assert memory.reindex(full=True).problems == [] and memory.doctor().problems == []
    memory.ingest(folder=root, reimport=True)
    memory.process(now=True)
    assert traces(memory) == []


@pytest.mark.parametrize("step", ["buried", "logs", "rows"])
def test_a_text_that_only_a_summary_says_goes_whatever_stops_it(
    memory: Memory, root: Path, clock: Clock, step: str
) -> None:
    filled(memory, root, clock)
    (key,) = (each.session_key for each in memory.conversations() if each.session_id == OTHER)
    with memory.database.write() as tx:
        tx.run("UPDATE memory_stage1 SET rollout_summary = 'About Quellenbad.' WHERE session_key = :key", {"key": key})
    killed(memory, clock, Target(text="quellenbad"), step)
    memory.search("boat", scope=ALL_PROJECTS)
    assert traces(memory, "Quellenbad") == [] and "PostgreSQL" in texts(memory)


def test_a_text_inside_a_longer_word_is_told_and_one_that_is_everywhere_refused(
    memory: Memory, root: Path, clock: Clock
) -> None:
    filled(memory, root, clock)
    with pytest.raises(UsageError, match="near it"):
        memory.forget(text=SECRET[:8])
    assert {each.why for each in memory.forgetting(text=SECRET[:8], also=True).also} == set()
    for empty_text in ("", " \n", "a", "the", "?!"):
        done = run(memory.settings.home, "forget", "--text", empty_text, "--yes")
        assert done.status == 2 and ("text to erase is empty" in done.stderr or "may stand anywhere" in done.stderr)
    assert memory.forget(text=SECRET[:8], also=True).problems == [] and traces(memory) == []


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("राम", "मुझे रामायण पढ़ना पसंद है", Why.INSIDE),
        ("สมชาย", "วันนี้สมชายมา", Why.INSIDE),
        ("Jose", "call Jose\u0301 now", Why.WRITTEN),
        ("Ada Lovelace", "> by Ada\n> **Lovelace**", Why.WRITTEN),
        ("Ada Lovelace", "as Ada-Lovelace says", Why.WRITTEN),
        ("O'Brien", "O’Brien's tides", Why.SAYS),
        ("李明", "今天李明来了", Why.SAYS),
        ("F-1", "on f 2 or f1", None),
    ],
)
def test_a_name_is_found_in_whatever_writing(name: str, text: str, why: Why | None) -> None:
    hit = found_in(text, wanted(name))
    assert (hit and hit[0]) == why


def test_a_text_is_no_field_and_no_value_of_what_is_kept_of_turns(memory: Memory, clock: Clock) -> None:
    chatted(memory, clock)
    for word in ("severity", "confidence", "turn_id", "t1"):
        with pytest.raises(UsageError, match="no text says"):
            memory.forget(text=word)
    assert memory.forget(text="short answers").entries and traces(memory)


def test_names_that_hold_a_text_are_told_and_stay(memory: Memory, root: Path, clock: Clock) -> None:
    words = (RULE, "Sure.", PRIVATE, "ok", FRIDAY, "Yes.")
    home, branch = f"/code/{SECRET}", f"feat/{SECRET.lower()}-tides"
    records = [
        claude(n, text, role=("user", "assistant")[n % 2], cwd=home, gitBranch=branch) for n, text in enumerate(words)
    ]
    memory.ingest(folder=write(root / "-code-x" / f"{SESSION}.jsonl", b"".join(records)).parent.parent)
    turns = memory.turns(project="tides", user=SECRET, conversation=f"c-{SECRET}")
    with turns.turn("t1", "I prefer short answers.") as turn:
        turn.persist("ok")
    memory.process(now=True)
    with pytest.raises(UsageError, match="the reason says the text"):
        memory.forget(text=SECRET, reason=f"asked by {SECRET.upper()}")
    done = run(memory.settings.home, "forget", "--text", SECRET, RECOLLECT_DATABASE=memory.settings.config.database)
    assert done.status == 2 and f"project {home}" in done.stderr and "--project, --user" in done.stderr
    report = memory.forget(text=SECRET, also=True)
    assert report.entries == 1 and {each["kind"] for each in report.also} == {"project", "branch", "user", "chat"}
    assert {each["why"] for each in report.also} == {"has it in its name"} and "sister" not in repr(entries(memory))
    with pytest.raises(UsageError, match=f"says `{SECRET}`; it is part of the name of project") as raised:
        memory.forget(text=SECRET)
    assert "--project" in str(raised.value.hint) and "Friday" in texts(memory)
    memory.forget(project=home)
    memory.forget(user=SECRET)
    assert traces(memory) == []


def test_a_short_statement_that_is_repeated_elsewhere_is_told(memory: Memory, root: Path, clock: Clock) -> None:
    """Four words, of which two carry meaning; and one in a script without spaces."""
    ingest(memory, root, "remember: our office is in Aarhus.", "Noted.", "Thanks.", "Bye.")
    memory.remember("总是使用制表符。", project=Path(PROJECT))
    quotes = ("As you said: our office is in **Aarhus**.", "你说过：总是使用制表符。")
    ingest(memory, root, "Where is it?", quotes[0], "And?", quotes[1], "Thanks.", "Bye.", name=OTHER)
    memory.process(now=True)
    told = memory.forget(memory=memory_with(memory, "Aarhus")).also
    told_of = {(each["kind"], each["why"]) for each in told if "aarhus" in each["text"]}
    assert told_of == {(kind, "repeats what is erased") for kind in ("message", "summary")}
    assert quotes[1] not in repr(told)
    told = memory.forget(memory=memory_with(memory, "制表符")).also
    assert "message" in {each["kind"] for each in told if "制表符" in each["text"]}


@pytest.mark.parametrize(
    "command",
    [
        ("status",),
        ("health",),
        ("doctor",),
        ("config",),
        ("models",),
        ("pause", "--session", "another"),
        ("service", "status"),
        ("conversations",),
        ("context", "--project", PROJECT),
        ("context", "--last"),
        ("retry",),
        ("show", SESSION),
        ("remember", "The boat is called Nixe."),
        ("import", "nothing.tar.zst"),
    ],
)
def test_any_command_finishes_what_was_cut_short(
    memory: Memory, root: Path, clock: Clock, command: tuple[str, ...]
) -> None:
    filled(memory, root, clock)
    assert any(memory.settings.home.glob("context/*.md"))
    killed(memory, clock, Target(session=SESSION), "buried")
    assert not any(memory.settings.home.glob("context/*.md"))  # hooks without a daemon look for no tombstone
    done = run(memory.settings.home, *command, RECOLLECT_DATABASE=memory.settings.config.database)
    assert SECRET not in done.stdout + done.stderr and traces(memory) == []


def test_a_command_for_another_agent_finishes_what_was_cut_short_there(
    database_url: Place, root: Path, clock: Clock
) -> None:
    with open_memory(database_url.home, database=database_url.url, clock=clock, agent_id="b") as other:
        filled(other, root, clock)
        killed(other, clock, Target(session=SESSION), "buried")
        for command, is_done in ((("config",), False), (("config", "--agent-id", "b"), True)):
            assert run(database_url.home, *command, RECOLLECT_DATABASE=database_url.url).status == 0
            assert (traces(other) == []) == is_done


def test_what_somebody_else_erases_meanwhile_is_not_planned_upon(memory: Memory, root: Path, clock: Clock) -> None:
    """The one that waits for the other has seen its conversation whole."""
    filled(memory, root, clock)
    others: list[Any] = []

    def similar(text: str) -> tuple[()]:
        if not others:
            others.append(memory.forget(session=SESSION))
        return ()

    eraser = Forget(memory.ground, refresh=memory._refresh, similar=similar)
    with pytest.raises(UsageError, match="no text says"):
        eraser.run(Target(text="harbour"))
    assert traces(memory) == [] and not memory.is_erasing() and memory.doctor().problems == []
    assert eraser.run(Target(text="PostgreSQL")).entries == 1
