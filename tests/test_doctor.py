"""`recollect doctor`: each damage is made on a real home, found, mended, and gone the second time."""

from __future__ import annotations

import os
import re
import shutil
import stat
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from recollect import doctor
from recollect.app import Memory, open_memory
from recollect.artifacts import names
from recollect.artifacts.document import Content, parse, rendered, sealed
from recollect.artifacts.files import Files
from recollect.artifacts.names import Kind
from recollect.doctor import Fault, Finding
from recollect.overview import LOW_SPACE
from recollect.store import conversations, files, memories
from recollect.store.jobs import Jobs
from recollect.types import ConversationStatus, FileStatus, Timestamp
from tests.command import run
from tests.conftest import Clock
from tests.test_archive import bury, content, state, tree
from tests.test_extract import CHAT, FACT, OTHER, RULE, TALK, ingest, session
from tests.transcripts import SESSION, START, append, claude, stamp, write

KEY = f"{SESSION}@{stamp(60)}"
TOKEN = names.session_token("default", KEY, "")


@pytest.fixture
def clock() -> Clock:
    return Clock(START + timedelta(hours=12))


@pytest.fixture
def well(memory: Memory, root: Path) -> Memory:
    ingest(memory, root, *CHAT, name=OTHER)
    ingest(memory, root, *TALK)
    memory.process(now=True)
    memory.settings.home.chmod(0o700)
    assert memory.doctor().problems == []
    return memory


def path(memory: Memory, kind: Kind, token: str = TOKEN) -> Path:
    (found,) = memory.settings.home.glob(f"memory/*--{token}--{kind}.md")
    return found


def newest(memory: Memory, kind: Kind) -> Path:
    return max(memory.settings.home.glob(f"memory/*--{TOKEN}--{kind}.md"))


def found(memory: Memory) -> set[str]:
    return {str(each.kind) for each in memory.doctor().problems}


def mended(memory: Memory, *kinds: Fault) -> doctor.Report:
    """The damage is found, nothing is changed by looking, and after mending nothing is found any more."""
    before = state(memory)
    assert found(memory) == {*kinds}, memory.doctor().problems
    assert state(memory) == before
    report = memory.doctor(fix=True)
    assert {str(each.kind) for each in report.problems} == {*kinds}
    assert report.remaining == 0, report.problems
    assert memory.doctor(fix=True).problems == []
    return report


def statements(memory: Memory) -> set[tuple[str, str]]:
    with memory.database.read() as tx:
        return {(each.id, each.text) for each in memories.all_of(tx, memory.owner)}


# What a new session is told


def test_what_is_ready_for_new_sessions_is_made_anew_where_it_was_changed_or_is_gone(well: Memory) -> None:
    folder = well.settings.home / "context"
    (told,) = folder.glob("*.md")
    before = told.read_bytes()
    for damage in (
        told.unlink,
        lambda: told.write_text("x"),
        (folder / "index.json").unlink,
        lambda: shutil.rmtree(folder),
    ):
        damage()
        mended(well, Fault.SPOILED_CONTEXT)
        assert told.read_bytes() == before
    write(folder / "another.md", b"of a project that was erased")
    (folder / "another.md").chmod(0o600)
    mended(well, Fault.SPOILED_CONTEXT)
    assert [each.name for each in folder.glob("*.md")] == [told.name]
    flags = {"database": well.settings.config.database, "clock": well.clock, "disabled_projects": ["/code/tides"]}
    with open_memory(well.settings.home, environ={}, **flags) as off:
        assert found(off) == {Fault.SPOILED_CONTEXT} and off.doctor(fix=True).remaining == 0 and not told.exists()


def test_what_was_learnt_since_new_sessions_were_made_ready_is_no_fault(well: Memory, root: Path) -> None:
    held = well.remember("Figs are eaten everywhere.", everywhere=True)
    write(root / "-code-new" / "s9.jsonl", claude(1, RULE, session="s9", cwd="/code/new"))
    well.ingest(folder=root)
    well.cite([held.id])
    assert found(well) == set()


# Files


def edited(file: Path) -> None:
    file.write_text(file.read_text().replace("Conversation of", "Talk of").replace("make lint", "make love"))


def garbled(file: Path) -> None:
    file.write_bytes(b"\xff\x00 no frontmatter")


def linked(file: Path) -> None:
    target = file.with_suffix(".target")
    file.rename(target)
    file.symlink_to(target)


@pytest.mark.parametrize(
    ("damage", "fault"),
    [(edited, Fault.CHECKSUM_MISMATCH), (garbled, Fault.BAD_FRONTMATTER), (linked, Fault.TAMPERED)],
)
def test_a_file_that_was_changed_by_hand_is_kept_and_its_conversation_written_anew(
    well: Memory, clock: Clock, damage: Callable[[Path], None], fault: Fault
) -> None:
    before = statements(well)
    for kind in (Kind.SUMMARY, Kind.TRANSCRIPT, Kind.MANIFEST):
        clock.advance(60)
        file = newest(well, kind)
        damage(file)
        spoiled = file.read_bytes()
        assert fault in found(well)
        report = well.doctor(fix=True)
        assert report.remaining == 0 and well.doctor().problems == []
        (kept,) = report.kept
        assert kept == f"memory/{file.name}.changed" and (well.settings.home / kept).read_bytes() == spoiled
        for each in (Kind.SUMMARY, Kind.TRANSCRIPT):
            opened = well.open(SESSION, each)
            assert RULE in opened.text and opened.problem == ""
    assert statements(well) == before and well.reindex(full=True).problems == []
    assert well.process(now=True).claimed == 0, "nothing is asked again"


@pytest.mark.parametrize("kind", [Kind.SUMMARY, Kind.TRANSCRIPT])
@pytest.mark.parametrize("to", ["2026", f"memory/2026-03-02T09-01-00.000Z--{'a' * 16}--manifest.md", ""])
def test_a_link_to_a_manifest_that_was_changed_by_hand_stops_nothing(
    well: Memory, clock: Clock, kind: Kind, to: str
) -> None:
    clock.advance(60)
    before, file = statements(well), newest(well, kind)
    older = re.sub(r"(?m)^frontmatter_sha256: .*\n", "", file.read_text())
    file.write_text(re.sub('manifest_path: ".*"', f'manifest_path: "{to}"', older))
    assert {each.kind for each in well.reindex().problems} == {"BrokenLink"}
    noted = well.remember("Prefer tea over coffee in the harbour office.", everywhere=True)
    assert well.forget(memory=noted.id, reason="private").memories == [noted.id]
    clock.advance(60)
    report = well.doctor(fix=True)
    assert {str(each.kind) for each in report.problems} == {Fault.BROKEN_LINK} and report.remaining == 0
    assert report.kept == [f"memory/{file.name}.changed"]
    assert well.doctor().problems == [] and statements(well) == before


def test_a_folder_in_the_place_of_a_file_stops_nothing(well: Memory, clock: Clock) -> None:
    stranger = well.settings.home / f"memory/2026-03-02T11-00-00.000Z--{'a' * 16}--summary.md"
    stranger.mkdir(mode=0o700)
    clock.advance(60)
    spoiled = newest(well, Kind.SUMMARY)
    spoiled.unlink()
    spoiled.mkdir(mode=0o700)
    assert Fault.TAMPERED in {each.kind for each in well.reindex().problems}
    assert {each.path for each in well.doctor(fix=True).problems if not each.fixed} == {f"memory/{stranger.name}"}
    assert well.export(well.settings.home.parent / "a.tar.zst").artifacts > 3
    assert well.open(SESSION, Kind.SUMMARY).problem == ""


def test_a_file_that_is_gone_is_written_again(well: Memory, clock: Clock) -> None:
    before = statements(well)
    for kind in (Kind.SUMMARY, Kind.TRANSCRIPT, Kind.MANIFEST):
        clock.advance(60)
        newest(well, kind).unlink()
        assert Fault.MISSING in found(well)
        report = well.doctor(fix=True)
        assert report.remaining == 0 and well.doctor().problems == [] and report.kept == []
        assert well.open(SESSION, kind).problem == "" and statements(well) == before


def test_a_set_that_no_manifest_points_at_gets_one(well: Memory, root: Path, clock: Clock, tmp_path: Path) -> None:
    manifest = newest(well, Kind.MANIFEST)
    older = manifest.read_bytes()
    clock.advance(60)
    append(root / "-code-tides" / f"{SESSION}.jsonl", session("We deploy on Tuesdays only.", "Ok.", first=8))
    well.ingest(folder=root)
    well.process(now=True)
    wanted = well.open(SESSION).path
    manifest.write_bytes(older)  # as if the last write had not happened
    for each in well.settings.home.glob(f"memory/*--{TOKEN}--transcript.md"):
        assert each == newest(well, Kind.TRANSCRIPT)
    assert Fault.UNCOMMITTED in found(well)
    report = well.doctor(fix=True)
    assert report.remaining == 0 and well.doctor().problems == [] and well.open(SESSION).path == wanted
    newest(well, Kind.MANIFEST).unlink()
    before = {name: data for name, data in tree(well).items() if not name.endswith("manifest.md")}
    home = tmp_path / "other"
    home.mkdir(mode=0o700)
    (well.settings.home / "memory").rename(home / "memory")
    with open_memory(home, clock=clock) as opened:
        assert Fault.NO_MANIFEST in found(opened), "and it is mended without any row"
        assert opened.doctor(fix=True).remaining == 0 and opened.open(SESSION).path == wanted
        assert {name: data for name, data in tree(opened).items() if not name.endswith("manifest.md")} == before


def test_a_conversation_whose_files_are_all_gone_comes_back_from_the_rows(well: Memory, clock: Clock) -> None:
    clock.advance(60)
    for file in well.settings.home.glob(f"memory/*--{TOKEN}--*.md"):
        file.unlink()
    mended(well, Fault.MISSING)
    assert RULE in well.open(SESSION).text and FACT in well.open(SESSION, "transcript").text


def test_small_talk_stays_without_memories_when_it_is_written_anew(well: Memory, clock: Clock) -> None:
    clock.advance(60)
    edited(path(well, Kind.TRANSCRIPT, names.session_token("default", f"{OTHER}@{stamp(60)}", "")))
    assert well.doctor(fix=True).remaining == 0
    assert well.open(OTHER).kind is Kind.SUMMARY and len(statements(well)) == 2


def test_a_file_under_a_wrong_name_is_out_of_the_way(well: Memory, clock: Clock) -> None:
    clock.advance(60)
    file = path(well, Kind.SUMMARY)
    file.rename(file.with_name(file.name.replace("2026-", "2025-")))
    assert Fault.WRONG_NAME in found(well)
    assert well.doctor(fix=True).remaining == 0 and well.doctor().problems == []


def test_what_the_rows_do_not_hold_stays_as_it_is_and_is_told(well: Memory, clock: Clock, tmp_path: Path) -> None:
    edited(path(well, Kind.SUMMARY))
    before = tree(well)
    home = tmp_path / "other"
    home.mkdir(mode=0o700)
    (well.settings.home / "memory").rename(home / "memory")
    with open_memory(home, clock=clock) as opened:
        report = opened.doctor(fix=True)
        left = [each for each in report.problems if not each.fixed]
        assert [each.kind for each in left] == [Fault.CHECKSUM_MISMATCH] and "backup" in left[0].hint
        assert tree(opened) == before and report.kept == []


def test_a_conversation_that_changed_since_is_left_to_the_pipeline(well: Memory, root: Path, clock: Clock) -> None:
    append(root / "-code-tides" / f"{SESSION}.jsonl", session("And on Fridays nobody deploys.", "Ok.", first=8))
    well.ingest(folder=root)
    edited(path(well, Kind.SUMMARY))
    before = tree(well)
    (left,) = [each for each in well.doctor(fix=True).problems if each.kind is Fault.CHECKSUM_MISMATCH]
    assert not left.fixed and tree(well) == before


def test_what_was_erased_and_is_here_again_goes(well: Memory) -> None:
    bury(well)
    report = well.doctor(fix=True)
    assert {each.kind for each in report.problems if each.fixed} >= {Fault.ERASED}
    assert not any(RULE.encode() in data for data in tree(well).values())
    assert Fault.ERASED not in found(well)


def test_a_secret_that_older_rules_let_through_is_told_with_the_command_that_erases_it(
    well: Memory, root: Path, clock: Clock
) -> None:
    token = "ghp_" + "k3Jx9QvT7mZb2LwPd8RsYc5NhGf4AeUo1iKj"
    file = path(well, Kind.SUMMARY)
    written = parse(file.read_text())
    assert isinstance(written.head, Content)
    file.write_text(rendered(*sealed(written.head, f"{written.body}\nthe old token was {token}")))
    with open_memory(well.settings.home, database=well.settings.config.database, clock=clock, agent_id="eve") as eve:
        assert Fault.SECRET not in found(eve)
    (told,) = [each for each in well.doctor(fix=True).problems if each.kind is Fault.SECRET]
    assert not told.fixed and "github" in told.what and token not in told.what
    assert f"forget --conversation {KEY}" in told.hint
    well.forget(conversation=KEY, reason="a secret")
    assert Fault.SECRET not in found(well)
    assert not any(token.encode() in data for data in tree(well).values())


def test_a_tombstone_that_cannot_be_read_is_told_and_kept(well: Memory) -> None:
    bury(well)
    (stone,) = (well.settings.home / names.TOMBSTONES).glob("*.md")
    stone.write_text("nothing")
    for each in (stone, stone.parent):
        each.chmod(each.stat().st_mode & 0o700)
    report = well.doctor(fix=True)
    assert [(each.kind, each.fixed) for each in report.problems] == [(Fault.BAD_FRONTMATTER, False)]
    assert stone.read_text() == "nothing"


def test_files_that_the_rows_do_not_tell_of_are_indexed(well: Memory, clock: Clock, tmp_path: Path) -> None:
    home = tmp_path / "other"
    home.mkdir(mode=0o700)
    wanted = content(well)["memory_memories"]
    (well.settings.home / "memory").rename(home / "memory")
    with open_memory(home, clock=clock) as opened:
        mended(opened, Fault.NOT_INDEXED)
        assert content(opened)["memory_memories"] == wanted and (home / "MEMORY.md").is_file()


def test_leftovers_of_dead_processes_go_and_those_of_the_living_stay(well: Memory) -> None:
    home = well.settings.home
    for name in ("memory/.recollect.tmp", ".recollect-0011223344556677.tmp"):
        write(home / name, b"half").chmod(0o600)
        os.utime(home / name, (0, 0))
    write(home / "workspace" / ".recollect-8899.tmp", b"now").chmod(0o600)
    (home / "workspace").chmod(0o700)
    mended(well, Fault.LEFTOVER)
    assert (home / "workspace" / ".recollect-8899.tmp").exists()


def test_another_agents_files_are_not_our_problem(well: Memory, root: Path, clock: Clock) -> None:
    url, home = well.settings.config.database, well.settings.home
    with open_memory(home, database=url, clock=clock, agent_id="eve") as eve:
        assert [each.kind for each in eve.doctor(fix=True).problems if not each.fixed] == []
        before = tree(well)
        edited(path(well, Kind.SUMMARY))
        spoiled = tree(well)
        assert [each.what for each in eve.doctor(fix=True).problems] == []
        assert eve.export(root.parent / "eve.tar.zst").problems == []
        assert tree(well) == spoiled != before
        well.doctor(fix=True)
        append(root / "-code-tides" / f"{SESSION}.jsonl", session("We deploy on Tuesdays only.", "Ok.", first=8))
        well.ingest(folder=root)
        well.process(now=True)  # deletes a transcript that the new one holds
        assert eve.reindex().problems == []
        well.forget(conversation=KEY, reason="private")
        assert eve.doctor().problems == [] == eve.reindex().problems


# States and jobs


def test_a_conversation_that_nobody_processes_any_more_is_ready_again(well: Memory, clock: Clock) -> None:
    jobs = Jobs(well.owner, clock=clock, worker="gone")
    with well.database.write() as tx:
        (talk,) = conversations.of_key(tx, well.owner, KEY)
        conversations.set_status(tx, well.owner, [(talk, ConversationStatus.PROCESSING, "")], Timestamp(stamp(0)))
        jobs.enqueue(tx, "extract", [(KEY, "new")])
        jobs.claim(tx, "extract", limit=1, keys=[KEY])
    assert found(well) == set(), "its lease is alive"
    clock.advance(3600)
    mended(well, Fault.STUCK_CONVERSATION)
    assert [each.status for each in well.conversations() if each.session_key == KEY] == [ConversationStatus.READY]


def test_a_file_that_nobody_reads_any_more_is_rolled_back(well: Memory, clock: Clock) -> None:
    with well.database.write() as tx:
        (known, *_) = files.with_status(tx, well.owner, FileStatus.IDLE)
        files.save(tx, well.owner, [replace(known, status=FileStatus.INGESTING)])
    mended(well, Fault.STUCK_FILE)


@pytest.mark.parametrize("permanent", [True, False])
def test_a_job_that_failed_gets_a_fresh_start(well: Memory, clock: Clock, permanent: bool) -> None:
    jobs = Jobs(well.owner, clock=clock)
    with well.database.write() as tx:
        jobs.enqueue(tx, "extract", [("a b@c", "w")])
        for _ in range(1 if permanent else 5):
            (lease,) = jobs.claim(tx, "extract", limit=1, keys=["a b@c"], hurry=True)
            jobs.fail(tx, lease, "the reason", permanent=permanent)
    report = mended(well, Fault.FAILED_JOB)
    assert "the reason" in report.problems[0].what
    with well.database.read() as tx:
        assert jobs.count(tx)["extract"]["pending"] == 1


def test_a_backlog_is_told_and_left_to_its_command(well: Memory, root: Path, clock: Clock) -> None:
    append(root / "-code-tides" / f"{SESSION}.jsonl", session(*CHAT, first=300))
    clock.advance(6 * 3600)
    well.ingest(folder=root)
    assert found(well) == set(), "ready for less than a day"
    clock.advance(2 * 86400)
    (backlog,) = well.doctor(fix=True).problems
    assert (backlog.kind, backlog.fixed) == (Fault.BACKLOG, False) and "recollect process" in backlog.hint
    well.process()
    assert found(well) == set()


# MEMORY.md and surroundings


def test_a_stale_ledger_is_written_again(well: Memory, clock: Clock) -> None:
    ledger = well.settings.home / "MEMORY.md"
    wanted = ledger.read_bytes()
    for damage in (lambda: ledger.write_text("mine"), ledger.unlink):
        damage()
        mended(well, Fault.STALE_LEDGER)
        assert ledger.read_bytes() == wanted


def test_what_others_can_read_is_closed(well: Memory) -> None:
    home = well.settings.home
    home.chmod(0o755)
    path(well, Kind.SUMMARY).chmod(0o644)
    (home / "logs").mkdir(mode=0o750, exist_ok=True)
    (home / "logs").chmod(0o750)
    mended(well, Fault.TOO_OPEN)
    assert not any(stat.S_IMODE(each.stat().st_mode) & 0o077 for each in (home, *home.rglob("*")))


def test_transcripts_that_cannot_be_read_are_told(
    well: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = tmp_path / ".claude" / "projects" / "-code-tides"
    closed = write(agent / "closed.jsonl", session(*TALK, name="closed"))
    write(agent / "open.jsonl", session(*TALK, name="open"))
    strange = Path(os.fsdecode(os.fsencode(agent / "caf") + b"\xe9.jsonl"))
    write(strange, session(*TALK, name="strange"))
    access = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: path != str(closed) and access(path, mode))  # root may all
    told = well.doctor(fix=True).problems
    assert {(each.kind, Path(each.path).name, each.fixed) for each in told} == {
        (Fault.UNREADABLE, "closed.jsonl", False),
        (Fault.UNREADABLE, "caf\\xe9.jsonl", False),
    }
    assert all("make it readable" in each.hint for each in told)
    deep = [each.problem for each in well.health().problems]
    assert [Path(each.partition(":")[0]).name for each in deep] == ["caf\\xe9.jsonl", "closed.jsonl"]
    assert well.status().problems == []  # it does not look at every file


def test_low_space_is_told() -> None:
    assert doctor.of_space(LOW_SPACE) == []
    (low,) = doctor.of_space(12 << 20)
    assert low.kind is Fault.LOW_SPACE and "12 MB" in low.what and low.hint


def test_only_what_is_not_found_again_counts_as_fixed() -> None:
    one, two = (Finding(Fault.MISSING, f"{name} is gone", "", name) for name in "ab")
    new = Finding(Fault.BACKLOG, "2 conversations", "")
    told = doctor.outcome([one, two, replace(new, what="3 conversations")], [replace(two, what="still"), new])
    assert [(each.path, each.fixed) for each in told] == [("a", True), ("b", False), ("", False)]
    assert doctor.outcome([], [new]) == [new]


def test_a_name_of_a_file_that_is_kept_is_no_artifacts(well: Memory) -> None:
    files_ = Files(well.settings.home)
    file = path(well, Kind.SUMMARY)
    first = files_.set_aside(f"memory/{file.name}")
    write(file, b"again")
    assert [first, files_.set_aside(f"memory/{file.name}")] == [
        f"memory/{file.name}.changed",
        f"memory/{file.name}.changed-2",
    ]
    assert file.name not in {each.file for each in files_.names()} and names.parse(first) is None


def test_what_is_forgotten_is_forgotten_in_what_was_set_aside_too(well: Memory, clock: Clock) -> None:
    clock.advance(60)
    edited(newest(well, Kind.SUMMARY))
    well.doctor(fix=True)
    home = well.settings.home
    write(home / "recollect.db.damaged-2026-03-02T09-00-00.000Z", FACT.encode())
    own = newest(well, Kind.TRANSCRIPT)
    for copy in ("(copy).md", "sync-conflict-1.md"):
        shutil.copy(own, own.with_suffix(f".{copy}"))
    own.with_name(f"{own.name}.changed").mkdir(0o700)  # as one that stood in the place of a file, and was set aside
    holding = [each for each in home.rglob("*") if each.is_file() and b"Priya" in each.read_bytes()]
    assert any(each.name.endswith(".changed") for each in holding)
    well.forget(conversation=KEY, reason="private")
    assert [each for each in home.rglob("*") if each.is_file() and b"Priya" in each.read_bytes()] == []
    assert well.doctor().problems == []


# The command line


def answer(home: Path, *arguments: str) -> tuple[int, Any]:
    done = run(home, "doctor", *arguments, "--json")
    return done.status, done.json


@pytest.fixture
def home(tmp_path: Path) -> Path:
    with open_memory(tmp_path / "home") as memory:
        ingest(memory, tmp_path / "projects", *TALK)
        memory.process(now=True)
    return tmp_path / "home"


def test_the_command_tells_kind_what_hint_and_fixed(home: Path) -> None:
    status, told = answer(home)
    assert (status, told["problems"]) == (0, []) and told["tables"]["memory_memories"] == 2 and told["files"] == 3
    (home / "MEMORY.md").write_text("mine")
    status, told = answer(home)
    (problem,) = told["problems"]
    assert status == 1 and problem["kind"] == "StaleLedger" and problem["hint"] and problem["fixed"] is False
    status, told = answer(home, "--fix")
    assert status == 0 and [each["fixed"] for each in told["problems"]] == [True]
    assert run(home, "doctor").stdout == "3 files checked, no problems.\n"


@pytest.mark.parametrize("where", ["head", "inside"])
def test_a_damaged_database_is_set_aside_and_made_again_from_the_files(home: Path, where: str) -> None:
    database = home / "recollect.db"
    data = bytearray(database.read_bytes())
    for at in [0] if where == "head" else range(8192, len(data), 8192):
        data[at : at + 100] = b"\xff" * 100
    database.write_bytes(data)
    status, told = answer(home)
    assert (status, [each["kind"] for each in told["problems"]]) == (1, ["DamagedDatabase"])
    status, told = answer(home, "--fix")
    assert status == 0 and told["problems"][0]["fixed"] and told["tables"]["memory_memories"] == 2
    (kept,) = home.glob("recollect.db.damaged-*")
    assert kept.read_bytes() == data and kept.name in told["problems"][0]["hint"]
    assert answer(home)[0] == 0


def test_files_of_another_agent_in_the_same_home_are_no_finding(tmp_path: Path) -> None:
    for name in ("alpha", "beta"):
        with open_memory(tmp_path / "home", environ={}, embedder="none", agent_id=name) as memory:
            memory.remember(f"{name} loves figs", project=Path("/code/tides"))
    for name in ("alpha", "beta"):
        with open_memory(tmp_path / "home", environ={}, embedder="none", agent_id=name) as memory:
            assert memory.doctor().problems == []
