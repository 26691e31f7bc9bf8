"""The schema: the same whichever version a database comes from, and true to the rules that every table follows."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import apsw
import pytest

from recollect.errors import SchemaTooNew
from recollect.store.database import Database, Transaction
from recollect.store.migrate import Migration, migrate, migrations
from recollect.store.postgres import PostgresDatabase
from recollect.store.sqlite import SqliteDatabase
from tests.conftest import EMPTY, Clock, Place, Server, placed

VERSIONS = [migration.version for migration in migrations()]
HEAD = VERSIONS[-1]
TRUTHS = ("canonical", "derived", "operational")
GENERATED = {"id", "words"}  # what the database makes: a key, the words of a text
UNSCOPED = {"memory_schema"}  # belongs to the database, not to an owner


@contextmanager
def unmigrated(place: Place) -> Iterator[Database]:
    database: Database
    if place.kind == "sqlite":
        database = SqliteDatabase(place.home / "recollect.db", 10.0)
    else:
        database = PostgresDatabase(place.url, 10.0)
    try:
        yield database
    finally:
        database.close()


def tables(tx: Transaction) -> list[str]:
    if tx.dialect.name == "sqlite":  # what belongs to a full-text index is its own business
        sql = (
            "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table'"
            " AND name NOT LIKE 'sqlite_%' ORDER BY name"
        )
    else:
        sql = "SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY tablename"
    return [name for (name,) in tx.rows(sql)]


def catalog(tx: Transaction) -> dict[str, Any]:
    """Everything the database knows about the schema."""
    if tx.dialect.name == "sqlite":
        return {
            "objects": tx.rows("SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY type, name"),
            "columns": {table: tx.rows(f"PRAGMA table_xinfo({table})") for table in tables(tx)},
            "indexes": {
                index: tx.rows(f"PRAGMA index_xinfo({index})")
                for table in tables(tx)
                for _, index, *_ in tx.rows(f"PRAGMA index_list({table})")
            },
        }
    return {
        "columns": tx.rows(
            "SELECT table_name, ordinal_position, column_name, data_type, collation_name, is_nullable, column_default,"
            " identity_generation, is_generated FROM information_schema.columns WHERE table_schema = 'public'"
            " ORDER BY table_name, ordinal_position"
        ),
        "indexes": tx.rows("SELECT indexdef FROM pg_indexes WHERE schemaname = 'public' ORDER BY indexdef"),
        "constraints": tx.rows(
            "SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint"
            " WHERE connamespace = 'public'::regnamespace ORDER BY 1, 2"
        ),
        "others": tx.rows(
            "SELECT relkind::text, relname::text FROM pg_class"
            " WHERE relnamespace = 'public'::regnamespace ORDER BY 1, 2"
        ),
        "functions": tx.rows(
            "SELECT proname::text FROM pg_proc WHERE pronamespace = 'public'::regnamespace ORDER BY 1"
        ),
    }


def unique_keys(tx: Transaction) -> list[tuple[str, tuple[str, ...]]]:
    """(table, columns) of every primary and unique key."""
    if tx.dialect.name == "sqlite":
        keys = []
        for table in tables(tx):
            columns = tx.rows(f"PRAGMA table_info({table})")
            primary = sorted((place, name) for _, name, _, _, _, place in columns if place)
            keys.append((table, tuple(name for _, name in primary)))
            for _, index, unique, origin, _ in tx.rows(f"PRAGMA index_list({table})"):
                if unique and origin != "pk":
                    keys.append((table, tuple(row[2] for row in tx.rows(f"PRAGMA index_info({index})"))))
        return keys
    rows = tx.rows(
        "SELECT i.indrelid::regclass::text, array_agg(a.attname::text ORDER BY k.place) FROM pg_index i"
        " JOIN pg_class c ON c.oid = i.indrelid AND c.relnamespace = 'public'::regnamespace"
        " CROSS JOIN LATERAL unnest(i.indkey) WITH ORDINALITY AS k(attnum, place)"
        " JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum"
        " WHERE i.indisunique GROUP BY i.indexrelid, i.indrelid ORDER BY 1, 2"
    )
    return [(table, tuple(columns)) for table, columns in rows]


def add_a_row_to_every_table(tx: Transaction) -> None:
    """So that a migration meets rows: what works on an empty table may fail on a full one."""
    for table in tables(tx):
        if table in UNSCOPED:
            continue
        if tx.dialect.name == "sqlite":
            columns = [(name, kind) for _, name, kind, *_ in tx.rows(f"PRAGMA table_info({table})")]
        else:
            columns = tx.rows(
                "SELECT column_name, data_type FROM information_schema.columns WHERE table_name = :table",
                {"table": table},
            )
        samples = {"text": "x", "array": [1.0]}
        values = {name: samples.get(kind.lower(), 1) for name, kind in columns if name not in GENERATED}
        tx.run(f"INSERT INTO {table} ({', '.join(values)}) VALUES ({', '.join(':' + name for name in values)})", values)


def test_migrations_are_numbered_from_one_without_a_gap_and_have_names() -> None:
    assert [number for number, _ in enumerate(migrations(), 1)] == VERSIONS
    assert all(re.fullmatch(r"[a-z][a-z0-9_]*", migration.name) for migration in migrations())


@pytest.fixture(params=["sqlite", "postgres"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """Without our tables."""
    with placed(request, tmp_path / ".recollect", lambda server: EMPTY) as made:
        yield made


@pytest.fixture(scope="module")
def fresh(postgres: Server, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """The schema of databases that were migrated in one go."""
    home, found = tmp_path_factory.mktemp("fresh") / ".recollect", {}
    with postgres.database(postgres.migrated) as url:
        for place in (Place("sqlite", "", home), Place("postgres", url, home)):
            with closing(place.open()) as opened, opened.read() as tx:
                found[place.kind] = catalog(tx)
    return found


@pytest.mark.parametrize("version", [0, *VERSIONS])
def test_a_migrated_schema_equals_a_fresh_one(
    database_url: Place, fresh: dict[str, dict[str, Any]], version: int
) -> None:
    """It stops at a version, is filled, and goes on."""
    with unmigrated(database_url) as database:
        if version:
            assert migrate(database, Clock(), target=version) == version
            with database.write() as tx:
                assert tx.rows("SELECT MAX(version) FROM memory_schema") == [(version,)]
                add_a_row_to_every_table(tx)
        assert migrate(database, Clock()) == HEAD
        with database.read() as tx:
            assert catalog(tx) == fresh[database_url.kind]
            assert [row[0] for row in tx.rows("SELECT version FROM memory_schema ORDER BY version")] == VERSIONS


def test_the_comparison_of_schemas_sees_a_difference(database: Database) -> None:
    with database.read() as tx:
        before = catalog(tx)
    for change in (
        "ALTER TABLE memory_jobs ADD COLUMN more TEXT",
        "CREATE INDEX more ON memory_jobs (tenant)",
        "CREATE TABLE more (x TEXT)",
        "DROP INDEX memory_jobs_status",
    ):
        with pytest.raises(RuntimeError), database.write() as tx:
            tx.script(change)
            assert catalog(tx) != before, change
            raise RuntimeError


def test_migrating_again_does_nothing(database: Database, clock: Clock) -> None:
    with database.read() as tx:
        before = catalog(tx), tx.rows("SELECT * FROM memory_schema")
    clock.advance(60)
    assert migrate(database, clock) == HEAD
    assert migrate(database, clock, target=0) == HEAD
    with database.read() as tx:
        assert (catalog(tx), tx.rows("SELECT * FROM memory_schema")) == before


def test_every_migration_is_recorded_with_its_name_and_time(database: Database) -> None:
    with database.read() as tx:
        recorded = tx.rows("SELECT version, name, applied_at FROM memory_schema ORDER BY version")
    assert recorded == [(each.version, each.name, "2026-03-02T09:00:00.000Z") for each in migrations()]


OPEN = """
import sys
from pathlib import Path
from recollect import config
from recollect.store.migrate import migrations
from recollect.store.open import open_database
from recollect.types import utc_now

settings = config.load({}, home=Path(sys.argv[1]), flags={"database": sys.argv[2]})
print("ready", flush=True)
sys.stdin.readline()
database = open_database(settings, utc_now)
with database.read() as tx:
    assert tx.row("SELECT MAX(version) FROM memory_schema") == (migrations()[-1].version,)
    assert tx.row("SELECT COUNT(*) FROM memory_jobs") == (0,)
database.close()
"""


def test_a_new_database_that_another_process_is_creating_is_waited_for(tmp_path: Path) -> None:
    place = Place("sqlite", "", tmp_path / "home")
    place.home.mkdir()
    other = apsw.Connection(str(place.home / "recollect.db"))
    other.execute("BEGIN IMMEDIATE")
    release = threading.Timer(0.2, lambda: other.execute("COMMIT"))
    release.start()
    try:
        place.open(busy_timeout=10.0).close()
    finally:
        release.join()
        other.close()


def test_processes_that_open_a_new_database_at_once_all_succeed(
    database_url: Place, request: pytest.FixtureRequest
) -> None:
    command = [sys.executable, "-c", OPEN, database_url.home, database_url.url]
    pipe = subprocess.PIPE
    processes = [subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) for _ in range(4)]
    for process in processes:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    errors = [process.communicate()[1] for process in processes]
    assert errors == [""] * len(processes)
    assert [process.returncode for process in processes] == [0] * len(processes)


class Disturbed:
    """A database in which something happens at the worst moment."""

    def __init__(
        self, inner: Database, *, before: Callable[[], object] = int, inside: Callable[[], object] = int
    ) -> None:
        self._inner, self._before, self._inside = inner, before, inside
        self.dialect, self.read, self.size, self.close = inner.dialect, inner.read, inner.size, inner.close

    @contextmanager
    def write(self) -> Iterator[Transaction]:
        self._before()  # after the look at its version
        with self._inner.write() as tx:
            yield tx
            self._inside()  # everything is done, nothing is committed


def test_a_process_that_comes_second_waits_for_the_first(database_url: Place) -> None:
    arrived, outcomes = threading.Event(), list[object]()

    def second() -> None:
        with unmigrated(database_url) as database:
            try:
                outcomes.append(migrate(Disturbed(database, before=arrived.set), Clock()))
            except Exception as error:
                outcomes.append(error)

    thread = threading.Thread(target=second)

    def let_the_second_come() -> None:
        if thread.ident is not None:
            return  # it came during an earlier migration
        thread.start()
        arrived.wait(10)
        time.sleep(0.2)  # it is waiting now, or has gone wrong

    with unmigrated(database_url) as database:
        assert migrate(Disturbed(database, inside=let_the_second_come), Clock()) == HEAD
        thread.join()
        assert not isinstance(outcomes[0], Exception), outcomes
        with database.read() as tx:
            assert tx.rows("SELECT COUNT(*) FROM memory_schema") == [(HEAD,)]


def test_a_migration_that_another_process_made_counts_as_made(database_url: Place) -> None:
    with unmigrated(database_url) as database:
        assert migrate(Disturbed(database, before=lambda: migrate(database, Clock())), Clock()) == HEAD


def test_a_newer_schema_is_refused_and_left_alone(database: Database, database_url: Place) -> None:
    with database.write() as tx:
        tx.run(
            "INSERT INTO memory_schema (version, name, applied_at) VALUES (:version, 'future', '')",
            {"version": HEAD + 1},
        )
        before = catalog(tx)
    with pytest.raises(SchemaTooNew) as raised:
        database_url.open()
    assert str(HEAD + 1) in raised.value.message
    assert "RECOLLECT_HOME" not in raised.value.hint, "a database elsewhere is not in that folder"
    with database.read() as tx:
        assert catalog(tx) == before


def test_a_migration_that_fails_leaves_nothing_behind(database_url: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = Migration(1, "broken", "CREATE TABLE first (x TEXT); CREATE TABLE first (x TEXT);")
    monkeypatch.setattr("recollect.store.migrate.migrations", lambda: (broken,))
    with unmigrated(database_url) as database:
        with pytest.raises(Exception, match="already exists"):
            migrate(database, Clock())
        with database.read() as tx:
            assert tables(tx) == []
        monkeypatch.undo()
        assert migrate(database, Clock()) == HEAD


def test_the_comment_above_every_table_says_which_kind_of_truth_it_holds(database: Database) -> None:
    said: dict[str, str] = {}
    for migration in migrations():
        for comment, table in re.findall(r"((?:^--.*\n)+)CREATE TABLE (\w+)", migration.sql, re.MULTILINE):
            said[table] = comment
    with database.read() as tx:
        assert sorted(said) == [table for table in tables(tx) if table not in UNSCOPED]
    for table, comment in said.items():
        kind = comment.removeprefix("-- ").split(":")[0]
        assert kind in TRUTHS[1:], f"{table}: the comment must begin with one of {TRUTHS[1:]}"


def test_every_unique_key_begins_with_tenant_and_agent(database: Database) -> None:
    with database.read() as tx:
        keys = unique_keys(tx)
        scoped = {table for table in tables(tx) if table not in UNSCOPED}
    for table, columns in keys:
        if table not in UNSCOPED and set(columns) != {"id"}:
            assert columns[:2] == ("tenant", "agent_id"), f"{table} {columns}"
    with_scope = {table for table, columns in keys if columns[:2] == ("tenant", "agent_id")}
    assert with_scope == scoped  # a generated id is not the only key of any table


def test_every_other_index_begins_with_tenant_and_agent(database: Database) -> None:
    """No query may walk through another owner's rows."""
    with database.read() as tx:
        found = catalog(tx)["indexes"]
    if database.dialect.name == "postgres":
        starts = {tuple(re.findall(r"\w+", definition.split("(", 1)[1])[:2]) for (definition,) in found}
    else:
        starts = {tuple(row[2] for row in rows[:2] if row[2]) for rows in found.values()}
    # words: a full-text index holds a word for every scope, and every query names one
    assert starts <= {("tenant", "agent_id"), ("id",), ("version",), ("words",)}


@pytest.mark.parametrize("database_url", ["postgres"], indirect=True)
def test_a_dump_can_be_restored(database: Database) -> None:
    """It is read without a search path."""
    with database.write() as tx:
        tx.run("SET LOCAL search_path = ''")
        tx.run(
            "INSERT INTO public.memory_search_texts (tenant, agent_id, kind, ref, project_id, text)"
            " VALUES ('t', 'a', 'memory', 'm', 'p', 'The Who')"
        )
        assert tx.row("SELECT COUNT(*) FROM public.memory_search_texts WHERE words @@ 'who'") == (1,)


def test_keys_compare_byte_by_byte_in_both_databases(database: Database) -> None:
    with database.write() as tx:
        for name in ("b", "a", "B", "é", "_", "Z", "ab", "a b", "a-b"):
            tx.run(
                "INSERT INTO memory_projects (tenant, agent_id, cwd, project_id, resolved_by, resolved_at)"
                " VALUES ('t', 'a', :name, :name, 'path', '')",
                {"name": name},
            )
        ordered = [name for (name,) in tx.rows("SELECT cwd FROM memory_projects ORDER BY cwd")]
    assert ordered == sorted(ordered, key=str.encode)
