"""A home of the last release becomes one of today, whichever statement, batch or file it is killed at on the way."""

from __future__ import annotations

import os
import re
import shutil
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from recollect.app import Memory, open_memory
from recollect.ingest import reread
from recollect.store.migrate import migrate
from recollect.store.postgres import PostgresDatabase, PostgresTransaction
from recollect.store.sqlite import SqliteDatabase, SqliteTransaction
from tests.conftest import EMPTY, Clock, Place, Server, placed
from tests.model_server import ModelServer, Status
from tests.test_extract import OTHER, RULE, ingest
from tests.test_migrations import GENERATED, UNSCOPED, tables, unmigrated
from tests.test_record import OUTCOME, aged, answered, claude_talk, differences, everything
from tests.transcripts import START, write

LAST_RELEASE = 22  # its schema
THIRD = "22222222-2222-4333-8444-555555555555"
FOLLOWS = {"memory_search_texts"}  # triggers fill it
KILLED = 9


@pytest.fixture
def clock() -> Clock:
    return Clock(START + timedelta(days=1))


# The home of the last release


def written(home: Path, root: Path, clock: Clock) -> None:
    """A home with answers, tasks, a commit, a paste and notes; one agent's transcript is gone, one talk goes on."""
    with open_memory(home, clock=clock, environ={}, embedder="none") as memory:
        answered(root, memory)
        gone = ingest(
            memory, root, RULE, "Yes.", "We decided to keep tides on PostgreSQL.", "Good.", "Bye.", name=OTHER
        )
        write(root / "-code-tides" / f"{THIRD}.jsonl", claude_talk(OUTCOME, THIRD))
        memory.ingest(folder=root)
        memory.process(now=True)
        memory.pin(memory.remember("Deploy on Mondays.", project="/code/tides").id)
        memory.feedback(memory.remember("Answer in French.", everywhere=True).id, "not_ok")
        memory.process(now=True)
        gone.unlink()
    aged(home)


def rows_of_release(home: Path, columns: dict[str, list[str]]) -> dict[str, list[dict[str, Any]]]:
    """What the database of that home holds, as the last release would have it."""
    database = SqliteDatabase(home / "recollect.db", 10.0)
    try:
        with database.read() as tx:
            found = {
                table: [
                    dict(zip(names, row, strict=True)) for row in tx.rows(f"SELECT {', '.join(names)} FROM {table}")
                ]
                for table, names in columns.items()
            }
    finally:
        database.close()
    found["memory_jobs"] = [row for row in found["memory_jobs"] if row["kind"] != reread.KIND]
    return found


def stepped_back(home: Path, place: Place) -> None:
    """The database of the last release, with what today's of that home holds, in its place."""
    with unmigrated(place) as old:
        migrate(old, Clock(), target=LAST_RELEASE)
        with old.write() as tx:
            scoped = [each for each in tables(tx) if each not in UNSCOPED | FOLLOWS]
            columns = {table: [each for each in names_of(tx, table) if each not in GENERATED] for table in scoped}
            for table, rows in rows_of_release(home, columns).items():
                names = columns[table]
                values = ", ".join(f":{name}" for name in names)
                tx.run_many(f"INSERT INTO {table} ({', '.join(names)}) VALUES ({values})", rows)


def names_of(tx: Any, table: str) -> list[str]:
    if tx.dialect.name == "sqlite":
        return [name for _, name, *_ in tx.rows(f"PRAGMA table_info({table})")]
    sql = "SELECT column_name FROM information_schema.columns WHERE table_name = :table AND table_schema = 'public'"
    return [name for (name,) in tx.rows(sql, {"table": table})]


class Release:
    """The home of the last release, of which every run has a copy."""

    def __init__(self, kind: str, folder: Path, clock: Clock, request: pytest.FixtureRequest) -> None:
        self._kind, self._folder, self._clock, self._request = kind, folder, clock, request
        self.root = folder / "projects"
        self._home = folder / "old"
        today = folder / "today"
        written(today, self.root, clock)
        shutil.copytree(today, self._home, ignore=shutil.ignore_patterns("recollect.db*"))
        self._url = ""
        if kind == "sqlite":
            stepped_back(today, Place(kind, "", self._home))
        self._today = today

    @contextmanager
    def prepared(self) -> Iterator[None]:
        """With a database to copy."""
        if self._kind == "sqlite":
            yield
            return
        server: Server = self._request.getfixturevalue("postgres")
        with server.database(EMPTY) as url:
            stepped_back(self._today, Place(self._kind, url, self._home))
            self._url = url
            yield

    @contextmanager
    def copy(self, name: str) -> Iterator[Place]:
        home = self._folder / name
        shutil.copytree(self._home, home)
        like = self._url.partition("@/")[2].partition("?")[0]
        self._request.param = self._kind  # type: ignore[attr-defined]
        with placed(self._request, home, lambda server: like) as place:
            yield place
        shutil.rmtree(home)


# Interruptions


def starts(place: Place, root: Path, clock: Clock, model_url: str) -> Memory:
    """What happens at the next quiet time, with a model configured since."""
    memory = open_memory(
        place.home,
        clock=clock,
        environ={},
        database=place.url,
        model="openai:any",
        model_url=model_url,
        embedder="none",
    )
    memory.ingest(folder=root)
    memory.process()
    return memory


def child(work: Callable[[], object], fatal: int) -> tuple[int, int]:
    """Runs it in a process of its own, which dies at that step: its exit status, and how many steps it made."""
    reading, writing = os.pipe()
    process = os.fork()
    if not process:
        status = 1
        try:
            steps = count_steps(fatal)
            work()
            os.write(writing, str(steps[0]).encode())
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    os.close(writing)
    with os.fdopen(reading) as told:
        said = told.read()
    _, status = os.waitpid(process, 0)
    return os.waitstatus_to_exitcode(status), int(said or 0)


def count_steps(fatal: int) -> list[int]:
    """From now on every statement of a migration, every commit and every file that is moved into place is a step, each
    before it and once it is done. In a child: nothing is put back."""
    steps = [0]

    def step() -> None:
        steps[0] += 1
        if steps[0] == fatal:
            os._exit(KILLED)

    def around(owner: Any, name: str) -> None:
        inner = getattr(owner, name)

        def stepping(*args: Any, **options: Any) -> Any:
            step()
            done = inner(*args, **options)
            step()
            return done

        setattr(owner, name, stepping)

    around(os, "rename")
    around(os, "replace")
    for database, transaction in ((SqliteDatabase, SqliteTransaction), (PostgresDatabase, PostgresTransaction)):
        _count_statements(transaction, step)
        _count_commits(database, step)
    reread._BATCH = 5  # type: ignore[misc]
    return steps


def _count_statements(transaction: Any, step: Callable[[], None]) -> None:
    inner = transaction.script

    def script(self: Any, sql: str) -> None:
        for each in re.sub(r"--.*", "", sql).split(";"):
            if each.strip():
                inner(self, each)
                step()

    transaction.script = script


def _count_commits(database: Any, step: Callable[[], None]) -> None:
    inner = database.write

    @contextmanager
    def write(self: Any) -> Iterator[Any]:
        with inner(self) as tx:
            yield tx
            step()  # all is done, and nothing is committed
        step()

    database.write = write


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_an_upgrade_that_is_killed_at_any_step_ends_as_one_that_is_not(
    kind: str, tmp_path: Path, clock: Clock, request: pytest.FixtureRequest
) -> None:
    release = Release(kind, tmp_path, clock, request)
    with release.prepared(), ModelServer(Status(500)) as server:

        def start(place: Place) -> Memory:
            return starts(place, release.root, clock, server.url_for("openai:any"))

        with release.copy("straight") as place:
            ended, steps = child(lambda: start(place), 0)
            assert ended == 0
            with start(place) as memory:
                wanted = everything(memory)
                talks = [(each.session_key, str(each.status), each.entry_count) for each in memory.conversations()]
                assert memory.reindex(full=True).problems == [] == memory.doctor().problems
                assert {*differences(wanted, everything(memory))} <= {"memory_artifacts", "memory_sums"}
        assert steps > 30 and all(row["authors"] for row in wanted["memory_transcript_entries"])
        assert any(row["events"] for row in wanted["memory_transcript_entries"])
        assert {status for _, status, _ in talks} == {"archived"}
        for fatal in range(1, steps + 1):
            with release.copy(f"killed-{fatal}") as place:
                ended, _ = child(lambda: start(place), fatal)
                assert ended == KILLED, fatal
                with start(place) as memory:
                    assert differences(wanted, everything(memory)) == {}, fatal
        assert server.requests == []
