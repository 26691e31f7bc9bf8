"""MEMORY.md as `process` leaves it: rows from frontmatter, one writer, one file per agent."""

from __future__ import annotations

import re
import shutil
import threading
from datetime import timedelta
from pathlib import Path

import pytest

from recollect.app import Memory, open_memory
from recollect.artifacts.document import Content, parse
from recollect.artifacts.ledger import FILE, HEADING
from recollect.artifacts.names import wikilinks
from recollect.artifacts.projection import KIND, Projection
from recollect.store.jobs import Jobs
from recollect.surfaces.bench import lineage
from recollect.types import utc_now
from tests.conftest import Clock
from tests.test_extract import CHAT, FACT, OTHER, RULE, TALK, Scripted, by, extract, ingest, session
from tests.transcripts import SESSION, START, append

ROW = re.compile(
    r"^- \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z \| session=\S+ \| project=\S+ \| \S.*[.!?] "
    r"\[\[memory/\S+--summary\.md\|summary\]\] \[\[memory/\S+--transcript\.md\|transcript\]\] "
    r"\[\[memory/\S+--manifest\.md\|manifest\]\]$",
    re.MULTILINE,
)


@pytest.fixture
def clock() -> Clock:
    return Clock(START + timedelta(days=1))


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of 460 conversations within nine days: to write them takes longer than what is done with them."""
    home = tmp_path_factory.mktemp("files") / ".recollect"
    with open_memory(home, environ={}) as memory:
        lineage._fill(memory, 460)
    return home / "memory"


def projection(memory: Memory) -> Projection:
    return Projection(memory.ground)


def shown(memory: Memory) -> str:
    return (memory.settings.workspace.parent / FILE).read_text()


def test_process_leaves_a_row_per_conversation_and_every_link_leads_somewhere(memory: Memory, root: Path) -> None:
    ingest(memory, root, *TALK)
    ingest(memory, root, *CHAT, name=OTHER)
    memory.process(now=True)
    text = shown(memory)
    assert HEADING in text and "### 2026-03-02" in text
    assert len(ROW.findall(text)) == 2, "small talk, too"
    assert RULE in text.partition(HEADING)[0] and "## Learnt last" in text
    for path, _ in wikilinks(text):
        assert (memory.settings.home / path.partition("#")[0]).is_file()
    assert (memory.settings.home / FILE).stat().st_mode & 0o777 == 0o600


def test_rows_are_the_sentences_of_the_files_and_no_model_is_asked(memory: Memory, root: Path) -> None:
    """Validation test 13: every row is the `memory_sentence` of its summary's frontmatter, whatever the bodies say."""
    model = Scripted()
    ingest(memory, root, *TALK)
    ingest(memory, root, *TALK, "And Omar owns tide-prod-1.", "Noted.", name=OTHER)
    extract(memory, by(model)).run(now=True)
    asked = len(model.calls)
    for made in (projection(memory).update, memory.reindex):
        made()
        rows = ROW.findall(shown(memory))
        sentences = [parse(path.read_text()).head for path in (memory.settings.home / "memory").glob("*--summary.md")]
        assert len(rows) == len(sentences) == 2
        for head in sentences:
            assert isinstance(head, Content)
            assert sum(f" | {head.memory_sentence} [[" in row for row in rows) == 1
    assert len(model.calls) == asked


def test_it_stays_byte_for_byte_until_something_changes(memory: Memory, root: Path, clock: Clock) -> None:
    path = ingest(memory, root, *TALK)
    memory.process(now=True)
    file = memory.settings.home / FILE
    before, stamp = file.read_bytes(), file.stat().st_mtime_ns
    clock.advance(3600)
    memory.process(now=True)
    assert not projection(memory).update() and (file.read_bytes(), file.stat().st_mtime_ns) == (before, stamp)
    append(path, session("From now on deploys happen on Tuesdays only, Priya decides.", "Ok.", first=20))
    memory.ingest(folder=root)
    memory.process(now=True)
    assert file.read_bytes() != before and len(ROW.findall(shown(memory))) == 1, "the newest set, once"
    clock.advance(40 * 86400)
    projection(memory).update()
    assert ROW.findall(shown(memory)) == [] and "No conversation" in shown(memory)


def test_the_window_moves_on_though_nothing_is_processed(memory: Memory, root: Path, clock: Clock) -> None:
    ingest(memory, root, *TALK)
    memory.process(now=True)
    jobs = Jobs(memory.owner, clock=clock)

    def asked() -> str:
        with memory.database.read() as tx:
            return jobs.watermarks(tx, KIND, [FILE])[FILE][1]

    before = asked()
    clock.advance(20 * 86400)
    memory.process()
    assert asked() == before and len(ROW.findall(shown(memory))) == 1, "idle is idle"
    clock.advance(25 * 86400)
    memory.process()
    assert ROW.findall(shown(memory)) == [] and "No conversation" in shown(memory)
    assert not projection(memory).is_stale()
    before = asked()
    memory.process()
    assert asked() == before


def test_the_window_moves_on_behind_what_the_budget_shows(database_url: tuple[str, str, Path], files: Path) -> None:
    _, url, home = database_url
    clock = Clock(utc_now())
    with open_memory(home, database=url, clock=clock) as memory:
        shutil.copytree(files, home / "memory")
        memory.reindex()
        assert "of 460 conversations" in shown(memory)
        clock.advance(20.95 * 86400)
        memory.process()
        assert "of 45" in shown(memory) and not projection(memory).is_stale()


def test_a_file_that_is_gone_comes_back_and_a_tampered_summary_is_no_witness(memory: Memory, root: Path) -> None:
    ingest(memory, root, *TALK)
    memory.process(now=True)
    before = shown(memory)
    (memory.settings.home / FILE).unlink()
    memory.process()
    assert shown(memory) == before
    (summary,) = (memory.settings.home / "memory").glob("*--summary.md")
    summary.write_text(summary.read_text() + "\nThe user loves telemetry.\n")
    memory.reindex()
    assert "telemetry" not in shown(memory) and ROW.findall(shown(memory)) == []


def test_every_agent_has_its_own(memory: Memory, database_url: tuple[str, str, Path], clock: Clock, root: Path) -> None:
    _, url, home = database_url
    with open_memory(home, database=url, clock=clock, agent_id="ada") as ada:
        ingest(memory, root, *TALK)
        memory.process(now=True)
        ada.ingest(folder=root)
        ada.process(now=True)
        assert (home / "agents" / "ada" / FILE).is_file()
        links = [{path.partition("#")[0] for path, _ in wikilinks(shown(each))} for each in (memory, ada)]
        assert links[0] and links[1] and not links[0] & links[1]


def test_who_asks_while_another_writes_is_not_left_out(memory: Memory, root: Path) -> None:
    ingest(memory, root, *TALK)
    jobs = Jobs(memory.owner, clock=memory.clock, worker="somebody else")
    with memory.database.write() as tx:
        jobs.enqueue(tx, KIND, [(FILE, "w1")])
        (lease,) = jobs.claim(tx, KIND, limit=1)
    memory.process(now=True)
    assert not (memory.settings.home / FILE).exists(), "the lease is another's"
    with memory.database.write() as tx:
        jobs.complete(tx, lease)
    assert projection(memory).update() and FACT in shown(memory)


def test_a_file_that_cannot_be_written_is_a_job_that_failed_and_mends_itself(memory: Memory, root: Path) -> None:
    ingest(memory, root, *TALK)
    memory.settings.home.mkdir(mode=0o700, exist_ok=True)
    (memory.settings.home / FILE).symlink_to(memory.settings.home / "elsewhere")
    assert memory.process(now=True).succeeded == 1
    assert memory.status().kinds[KIND] == {"failed": 1} and not (memory.settings.home / "elsewhere").exists()
    (memory.settings.home / FILE).unlink()
    assert projection(memory).update() and RULE in shown(memory)


@pytest.mark.parametrize(
    ("tests", "rows"), [(("s-00000?",), 450), (("s-000[0-3]??", "s-0004[0-2]?"), 30)], ids=["few", "the newest"]
)
def test_it_is_made_from_rows_alone_and_sessions_of_tests_take_no_place(
    database_url: tuple[str, str, Path], files: Path, tests: tuple[str, ...], rows: int
) -> None:
    _, url, home = database_url
    with open_memory(home, database=url, test_sessions=tests) as memory:
        shutil.copytree(files, home / "memory")
        memory.reindex()
        shutil.rmtree(home / "memory")
        (home / FILE).unlink()
        memory.process()
        made = shown(memory)
        assert f"of {rows} conversations" in made or len(ROW.findall(made)) == rows


def test_ten_writers_at_once_lose_no_row(database_url: tuple[str, str, Path], clock: Clock, root: Path) -> None:
    _, url, home = database_url
    for agent in ("default", "ada"):
        with open_memory(home, database=url, clock=clock, agent_id=agent) as opened:
            for number in range(10):
                ingest(opened, root, *TALK, name=f"{number:08d}{SESSION[8:]}")

    def work(agent: str) -> None:
        with open_memory(home, database=url, clock=clock, agent_id=agent) as opened:
            opened.process(limit=2)

    threads = [threading.Thread(target=work, args=(agent,)) for agent in ("default", "ada") * 5]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for agent in ("default", "ada"):
        with open_memory(home, database=url, clock=clock, agent_id=agent) as opened:
            opened.process()
            projection(opened).update()
            assert len(ROW.findall(shown(opened))) == 10
