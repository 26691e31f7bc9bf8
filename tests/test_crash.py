"""kill -9 at random moments while files grow: after a restart and a scan the store is what a straight import gives."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import nullcontext
from functools import partial
from pathlib import Path

import pytest

from recollect.app import Memory, open_memory
from tests.conftest import Place, meanwhile
from tests.transcripts import claude, conversations, entries

FILES = 6
GROWTH = 1500  # records that the files gain, together, before every kill


class Growing:
    """A set of transcripts that gain records, and whose last line may be half written at any moment."""

    def __init__(self, root: Path, chance: random.Random) -> None:
        self.paths = [root / f"-p{n % 3}" / f"{n:08d}-aaaa-4bbb-8ccc-dddddddddddd.jsonl" for n in range(FILES)]
        self._chance = chance
        self._number = 0
        self._halves: dict[Path, bytes] = {}
        for path in self.paths:
            path.parent.mkdir(parents=True, exist_ok=True)

    def grow(self, records: int, half: bool) -> None:
        lines: dict[Path, list[bytes]] = {}
        for _ in range(records):
            path = self._chance.choice(self.paths)
            self._number += 1
            text = f"message {self._number} " + "words " * self._chance.randrange(3, 60)
            role = "user" if self._number % 2 else "assistant"
            line = claude(self._number, text, role=role, session=path.stem, at=self._number * 7)
            lines.setdefault(path, []).append(line)
        for path, chunk in lines.items():
            data = self._halves.pop(path, b"") + b"".join(chunk)
            cut = len(data) - self._chance.randrange(1, len(chunk[-1])) if half else len(data)
            self._write(path, data[:cut])
            if cut < len(data):
                self._halves[path] = data[cut:]

    def finish(self) -> None:
        for path, rest in self._halves.items():
            self._write(path, rest)
        self._halves.clear()

    @staticmethod
    def _write(path: Path, data: bytes) -> None:
        with path.open("ab") as file:
            file.write(data)


def is_ingesting(memory: Memory) -> bool:
    with memory.database.read() as tx:
        found = tx.row("SELECT COUNT(*) FROM memory_file_states WHERE status = 'ingesting'")
    return bool(found and found[0])


def kill_at_random(memory: Memory, root: Path, chance: random.Random, window: float) -> bool:
    """Starts the program and kills it at a random moment, mostly after it began to read. Was a file `ingesting`?"""
    arguments = [str(memory.settings.home), memory.settings.config.database, str(root)]
    environ = {**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)}
    command = [sys.executable, "-m", "tests.crash_child", *arguments]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, env=environ)
    assert child.stdout is not None
    assert child.stdout.readline() == b"ready\n"
    if chance.random() < 0.95:
        deadline = time.monotonic() + 5
        while not is_ingesting(memory) and time.monotonic() < deadline:
            time.sleep(0.001)
    time.sleep(chance.uniform(0, window))
    child.send_signal(signal.SIGKILL)
    child.wait()
    child.stdout.close()
    return is_ingesting(memory)


def run(
    database_url: tuple[str, str, Path], tmp_path: Path, kills: int, seed: int, busy_writer: bool, until: int = 0
) -> int:
    """Returns how many kills hit while a file was `ingesting`. Goes on until so many did, four times as long at most:
    where a kill falls depends on the machine."""
    _, url, home = database_url
    chance, root = random.Random(seed), tmp_path / "tree"
    growing, done, hits, window = Growing(root, chance), 0, 0, 0.02
    with open_memory(home, database=url) as memory:
        while done < kills or (hits < until and done < 4 * kills):
            done += 1
            growing.grow(GROWTH, half=True)
            with meanwhile(partial(growing.grow, 5, half=True), 0.002) if busy_writer else nullcontext():
                hit = kill_at_random(memory, root, chance, window)
            hits += hit
            window = min(window * 1.03, 0.1) if hit else max(window * 0.5, 0.001)  # stay where the work is
        growing.finish()
        memory.ingest(folder=root)
        assert not is_ingesting(memory)
        with open_memory(tmp_path / "straight", environ={"HOME": str(tmp_path)}) as straight:
            report = straight.ingest(folder=root)
            assert report.malformed == 0
            assert len(entries(straight)) == growing._number
            assert entries(memory) == entries(straight)
            assert conversations(memory) == conversations(straight)
        assert memory.ingest(folder=root).entries == 0
        assert memory.status().jobs.keys() <= {"succeeded"}
    return hits


@pytest.mark.parametrize("busy_writer", [False, True], ids=["growing files", "half lines all the while"])
def test_ten_kills_lose_and_double_nothing(
    database_url: tuple[str, str, Path], tmp_path: Path, busy_writer: bool
) -> None:
    assert run(database_url, tmp_path, 10, seed=11, busy_writer=busy_writer, until=5) >= 5


@pytest.mark.soak
@pytest.mark.parametrize("busy_writer", [False, True], ids=["growing files", "half lines all the while"])
def test_two_hundred_kills_lose_and_double_nothing(
    database_url: tuple[str, str, Path], tmp_path: Path, busy_writer: bool, record_property: pytest.RecordProperty
) -> None:
    hits = run(database_url, tmp_path, 200, seed=23, busy_writer=busy_writer)
    record_property("kills while ingesting", hits)
    print(f"\n{database_url[0]}, busy writer {busy_writer}: 200 kills, {hits} of them while a file was `ingesting`")
    assert hits >= 150


def test_two_processes_at_once_do_no_double_work(database_url: tuple[str, str, Path], tmp_path: Path) -> None:
    import json

    _, url, home = database_url
    root = tmp_path / "tree"
    chance = random.Random(5)
    for number in range(300):
        session = f"{number:08d}-aaaa-4bbb-8ccc-dddddddddddd"
        data = b"".join(claude(n, "words " * chance.randrange(1, 50), session=session) for n in range(1, 20))
        path = root / f"-p{number % 9}" / f"{session}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    environ = {**os.environ, "RECOLLECT_HOME": str(home), "HOME": str(tmp_path)}
    if url:
        environ["RECOLLECT_DATABASE"] = url
    command = [sys.executable, "-m", "recollect", "ingest", "--dir", str(root), "--json"]
    started = [subprocess.Popen(command, env=environ, stdout=subprocess.PIPE) for _ in range(3)]
    reports = [json.loads(process.communicate()[0]) for process in started]
    assert [process.returncode for process in started] == [0, 0, 0]
    assert sum(report["files"] for report in reports) == 300
    assert sum(report["entries"] for report in reports) == 300 * 19
    with open_memory(home, database=url) as memory:
        assert len(entries(memory)) == 300 * 19
        assert len(memory.conversations()) == 300


def test_a_kill_of_a_large_import_takes_its_helper_along(tmp_path: Path) -> None:
    from recollect.surfaces.bench.transcripts import write_tree

    write_tree(tmp_path / "big", 60)
    environ = {**os.environ, "RECOLLECT_HOME": str(tmp_path / "home"), "HOME": str(tmp_path)}
    command = [sys.executable, "-m", "recollect", "ingest", "--dir", str(tmp_path / "big"), "--json"]
    for delay in (0.35, 0.5):
        child = subprocess.Popen(command, env=environ, stdout=subprocess.DEVNULL)
        time.sleep(delay)
        child.kill()
        child.wait()
    with open_memory(tmp_path / "home") as memory, open_memory(tmp_path / "straight") as straight:
        memory.ingest(folder=tmp_path / "big")
        straight.ingest(folder=tmp_path / "big")
        assert entries(memory) == entries(straight)
        assert conversations(memory) == conversations(straight)


@pytest.fixture
def taken_in(database_url: Place, tmp_path: Path) -> Iterator[tuple[Memory, Path]]:
    """A tree, and a memory that has taken it in."""
    root = tmp_path / "tree"
    Growing(root, random.Random(1)).grow(60, half=False)
    with open_memory(database_url.home, database=database_url.url) as memory:
        memory.ingest(folder=root)
        yield memory, root


def test_a_file_whose_process_died_is_rolled_back_before_the_scan(taken_in: tuple[Memory, Path]) -> None:
    """The state a crash would leave if batches were not atomic: entries behind the offset, a dead worker's lease."""
    from recollect.store.jobs import Jobs

    memory, root = taken_in
    expected = entries(memory)
    dead = subprocess.run([sys.executable, "-c", WORKER], capture_output=True, check=True, text=True).stdout.strip()
    with memory.database.write() as tx:
        tx.run("UPDATE memory_file_states SET status = 'ingesting', last_processed_offset = 0, signature = ''")
        tx.run("UPDATE memory_file_states SET parser_state = '', line_count = 0")
        tx.run(
            "UPDATE memory_jobs SET status = 'running', worker = :dead, lease_expires_at = '2999-01-01'",
            {"dead": dead},
        )
    report = memory.ingest(folder=root)
    assert report.entries == len(expected)
    assert entries(memory) == expected
    with memory.database.write() as tx:  # a living worker's file is left alone
        tx.run("UPDATE memory_file_states SET status = 'ingesting', signature = ''")
        tx.run(
            "UPDATE memory_jobs SET status = 'running', worker = :alive, lease_expires_at = '2999-01-01'",
            {"alive": Jobs(memory.owner).worker},
        )
    report = memory.ingest(folder=root)
    assert (report.files, len(report.busy)) == (0, FILES)


WORKER = "from recollect.store.workers import this_worker; print(this_worker())"


def test_a_roll_back_that_fails_leaves_that_file_out_and_goes_on(taken_in: tuple[Memory, Path]) -> None:
    memory, root = taken_in
    with memory.database.write() as tx:
        tx.run("UPDATE memory_file_states SET status = 'ingesting'")
        (broken,) = tx.row("SELECT MIN(file_path) FROM memory_file_states") or ("",)
        if memory.database.dialect.name == "sqlite":
            tx.script(
                "CREATE TRIGGER refuse BEFORE UPDATE ON memory_file_states WHEN OLD.file_path ="
                f" '{broken}' BEGIN SELECT RAISE(ABORT, 'refused'); END"
            )
        else:
            tx.script(
                "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
                f" IF OLD.file_path = '{broken}' THEN RAISE EXCEPTION 'refused'; END IF; RETURN NEW; END $$;"
                "CREATE TRIGGER refuse BEFORE UPDATE ON memory_file_states FOR EACH ROW EXECUTE FUNCTION refuse()"
            )
    with next(root.rglob(Path(broken).name)).open("a") as file:  # there is more to read, and nobody reads it
        file.write("{}\n")
    with memory.database.read() as tx:
        before = tx.rows("SELECT fencing_token FROM memory_jobs WHERE job_key LIKE :key", {"key": f"%{broken}"})
    report = memory.ingest(folder=root)
    assert [Path(problem.path).name for problem in report.problems] == [Path(broken).name]
    with memory.database.read() as tx:
        after = tx.rows("SELECT fencing_token FROM memory_jobs WHERE job_key LIKE :key", {"key": f"%{broken}"})
    assert len(before) == 1 and after == before, "left out"
    with memory.database.read() as tx:
        stuck = tx.rows("SELECT file_path FROM memory_file_states WHERE status = 'ingesting'")
    assert stuck == [(broken,)]


def test_ctrl_c_keeps_what_was_finished_and_gives_the_rest_back(
    database_url: tuple[str, str, Path], tmp_path: Path
) -> None:
    _, url, home = database_url
    root = tmp_path / "tree"
    growing = Growing(root, random.Random(2))
    growing.grow(3000, half=False)
    with open_memory(home, database=url) as memory:

        def interrupt(size: int, files: int) -> None:
            if files:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            memory.ingest(folder=root, progress=interrupt)
        assert not is_ingesting(memory)
        assert "running" not in memory.status().jobs
        memory.ingest(folder=root)
        assert len(entries(memory)) == growing._number
