"""The life of a conversation's files: write order, states and recovery, compactions, new splits, crashes, crowds."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from recollect.app import Memory, open_memory
from recollect.artifacts import bodies, compaction, document, names, rows, sets
from recollect.artifacts.files import Files
from recollect.artifacts.ledger import FILE
from recollect.artifacts.names import Kind, wikilinks
from recollect.artifacts.projection import Projection
from recollect.artifacts.session_end import SessionEnd, idempotency_key
from recollect.artifacts.states import Evidence, Recovery, State, detect
from recollect.artifacts.upkeep import Upkeep, successor
from recollect.doctor import Fault
from recollect.extract.offline.strategy import Offline
from recollect.extract.run import Extract, Step
from recollect.extract.threads import Threads
from recollect.extract.values import Extraction, Strategy, Transcript
from recollect.models.base import Failure, ModelFailed
from recollect.models.paid import Paid
from recollect.store import artifacts, compactions, memories, stage1
from recollect.store.database import Database, Transaction
from recollect.types import ConversationStatus, JobStatus, Timestamp
from tests.conftest import Clock, Place, extracted
from tests.test_artifacts import CAPTURED, EXTRACTED, KEY, at, conversation, transcript
from tests.test_extract import (
    CHAT,
    OTHER,
    RULE,
    TALK,
    TOLD,
    Scripted,
    by,
    current,
    extract,
    ingest,
    one_memory,
    session,
    status,
)
from tests.transcripts import SESSION, START, append, claude, write

SO_FAR = "The tides project keeps its clock in src/tides/clock.py and the user asked for make lint before every commit."


@pytest.fixture
def clock() -> Clock:
    return Clock(START + timedelta(days=1))


def heads(memory: Memory, kind: Kind) -> list[Any]:
    """Frontmatter of the files of a kind, oldest first."""
    held = Files(memory.settings.home)
    return [document.parse(held.read(name.path) or "").head for name in held.names() if name.kind is kind]


def shown(memory: Memory) -> str:
    file = memory.settings.workspace.parent / FILE
    return file.read_text() if file.exists() else ""


def ledger_rows(memory: Memory) -> list[str]:
    return [line for line in shown(memory).splitlines() if " | session=" in line]


def indexed(memory: Memory) -> dict[str, int]:
    """path → is it current? as the rows say."""
    with memory.database.read() as tx:
        return dict(tx.rows("SELECT source_path, is_current FROM memory_artifacts ORDER BY source_path", {}))


def compacted(number: int, text: str = SO_FAR, name: str = SESSION, at: float | None = None) -> bytes:
    return claude(number, text, session=name, at=at, isCompactSummary=True)


# Write order


def test_files_come_before_rows_and_those_before_memory_md(memory: Memory, root: Path) -> None:
    """Every conversation commits by itself; MEMORY.md is due from then on, and is written once for a batch."""
    for name in (SESSION, OTHER):
        ingest(memory, root, *TALK, name=name)
    happened: list[str] = []

    def wrote(path: str) -> None:
        happened.append(path.rpartition("--")[2].removesuffix(".md"))

    def reached(step: Step) -> None:
        if step in (Step.PROJECTED, Step.STORED):
            happened.append(step)
        if step is Step.STORED:
            assert ledger_rows(memory) == [] and memory._projection.is_due()
        if step is Step.PROJECTED:
            assert len(ledger_rows(memory)) == 2 and not memory._projection.is_due()

    projection = Projection(memory.ground, wrote=wrote)
    end = SessionEnd(Files(memory.settings.home, wrote=wrote), memory.owner.agent_id, projection)
    assert extract(memory, artifacts=end, reached=reached).run().succeeded == 2
    files = ["transcript", "summary", "manifest"]
    assert happened == [*files, "stored", *files, "stored", "MEMORY", "projected"]


def test_conversations_of_one_batch_know_what_the_others_state(memory: Memory, root: Path) -> None:
    """A correction is a revision."""
    older = "The deploy window is Tuesday between 9 and 11 for our team."
    newer = "The deploy window is Thursday between 9 and 11 for our team."
    for told, name, first in ((older, SESSION, 1), (newer, OTHER, 200)):
        said = session(f"Remember: {told}", "Ok.", *CHAT[:4], name=name, first=first)
        write(root / "-code-tides" / f"{name}.jsonl", said)
    memory.ingest(folder=root)
    assert memory.process(now=True).succeeded == 2
    with memory.database.read() as tx:
        found = memories.all_of(tx, memory.owner)
    assert len({each.id for each in found}) == 1 and sorted(each.revision for each in found) == [1, 2]
    assert current(memory) == [newer]


def test_the_second_ctrl_c_stores_what_was_written(memory: Memory, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (SESSION, OTHER):
        ingest(memory, root, *TALK, name=name)
    asked, answered, pressed = threading.Event(), threading.Event(), iter(range(2))

    class Slow(Offline):
        def process(self, transcript: Transcript, paid: Paid) -> Extraction:
            if transcript.conversation.session_id == OTHER:
                asked.set()
                answered.wait(30)
            return super().process(transcript, paid)

    take = Threads.take

    def take_or_press(threads: Threads[Any, Any], timeout: float) -> Any:
        taken = take(threads, 0.2)
        if taken is None and asked.is_set() and next(pressed, None) is not None:
            raise KeyboardInterrupt
        return taken

    monkeypatch.setattr(Threads, "take", take_or_press)
    with pytest.raises(KeyboardInterrupt):
        extract(memory, Slow(), workers=2).run()
    answered.set()
    assert sorted(status(memory)) == [ConversationStatus.ARCHIVED, ConversationStatus.READY]
    assert len(current(memory)) == 2


def test_a_rerun_is_known_by_its_key() -> None:
    same = idempotency_key("ada", KEY, "s", "offline", CAPTURED)
    assert same == idempotency_key("ada", KEY, "s", "offline", CAPTURED) and same.startswith("session-end:")
    others = [("bob", KEY, "s"), ("ada", "k", "s"), ("ada", KEY, "t")]
    assert same not in [idempotency_key(*each, "offline", CAPTURED) for each in others]
    assert compaction.idempotency_key("ada", KEY, "u1") != compaction.idempotency_key("ada", KEY, "u2")


# Settled conversations


def test_a_conversation_too_short_to_extract_has_its_files_and_its_row(memory: Memory, root: Path) -> None:
    ingest(memory, root, "We owe this to you: our pier is green.", "The pier light is green in docs/pier.md now.")
    assert memory.process().claimed == 0
    ((said,), (head,)) = heads(memory, Kind.TRANSCRIPT), heads(memory, Kind.MANIFEST)
    assert head.transcript_path == said_path(memory)
    assert head.summary_path == said_path(memory).replace("transcript", "summary") and said.ended_at is not None
    assert len(heads(memory, Kind.SUMMARY)) == len(ledger_rows(memory)) == 1 and not current(memory)
    before = indexed(memory)
    memory.process()
    assert indexed(memory) == before and len(before) == 3
    assert memory.process(now=True).succeeded == 1, "a person may still ask for it"
    assert len(ledger_rows(memory)) == 1 and not current(memory)
    (head,) = heads(memory, Kind.MANIFEST)
    assert head.revision == 2 and len(heads(memory, Kind.TRANSCRIPT)) == 1


def said_path(memory: Memory) -> str:
    (name,) = [name for name in Files(memory.settings.home).names() if name.kind is Kind.TRANSCRIPT]
    return name.path


def test_one_that_was_skipped_grew_and_was_skipped_again_keeps_everything(memory: Memory, root: Path) -> None:
    path = ingest(memory, root, "hello there", "Hello.")
    memory.process()
    append(path, session("and bye", first=5))
    memory.ingest(folder=root)
    memory.process()
    (said,) = heads(memory, Kind.TRANSCRIPT)
    text = (memory.settings.home / said_path(memory)).read_text()
    assert "and bye" in text and "hello there" in text and said.snapshot == heads(memory, Kind.MANIFEST)[0].snapshot


def test_what_was_extracted_before_there_were_files_gets_them_without_a_model(memory: Memory, root: Path) -> None:
    ingest(memory, root, *TALK)
    model = Scripted(lambda content: {**one_memory(content), "memory_sentence": SO_FAR})
    extract(memory, by(model)).run()
    before = {path.name: path.read_text() for path in (memory.settings.home / "memory").glob("*.md")}
    for path in (memory.settings.home / "memory").glob("*.md"):
        path.unlink()
    with memory.database.write() as tx:
        tx.run("DELETE FROM memory_artifacts", {})
        kept = (stage1.inputs(tx, memory.owner, extracted(tx)), memories.all_of(tx, memory.owner))
    assert memory.process().claimed == 0 and len(model.calls) == 1
    assert {path.name: path.read_text() for path in (memory.settings.home / "memory").glob("*.md")} == before
    with memory.database.read() as tx:
        assert (stage1.inputs(tx, memory.owner, extracted(tx)), memories.all_of(tx, memory.owner)) == kept
    assert len(indexed(memory)) == 3 and len(ledger_rows(memory)) == 1


def test_one_that_is_too_old_to_be_extracted_has_its_files(memory: Memory, root: Path, clock: Clock) -> None:
    ingest(memory, root, *TALK)
    clock.now = START + timedelta(days=40)
    assert memory.process().claimed == 0
    assert len(heads(memory, Kind.SUMMARY)) == len(heads(memory, Kind.TRANSCRIPT)) == 1
    assert status(memory) == [ConversationStatus.READY] and memory.process(now=True).succeeded == 1
    assert len(heads(memory, Kind.TRANSCRIPT)) == 1
    (manifest,) = heads(memory, Kind.MANIFEST)
    assert [each.path for each in manifest.superseded if each.path.endswith("summary.md")] and current(memory)


def test_a_transcript_that_is_gone_is_written_again_and_one_that_was_edited_is_told(
    memory: Memory, root: Path, clock: Clock
) -> None:
    ingest(memory, root, "hi", "Hello.")
    memory.process()
    file = memory.settings.home / said_path(memory)

    def forget_rows() -> None:
        clock.advance(60)
        with memory.database.write() as tx:
            tx.run("DELETE FROM memory_artifacts", {})

    forget_rows()
    file.unlink()
    assert memory.process().failed == 0
    file = memory.settings.home / said_path(memory)
    forget_rows()
    file.write_text(file.read_text() + "by hand\n")
    report = memory.process()
    assert report.failed == 1 and "Tampered" in report.problems[0][1]


def test_idle_means_idle(memory: Memory, root: Path) -> None:
    ingest(memory, root, *TALK)
    ingest(memory, root, "hi", "Hello.", name=OTHER)
    memory.process()
    jobs = "SELECT kind, job_key, attempts, fencing_token, updated_at FROM memory_jobs ORDER BY kind, job_key"
    with memory.database.read() as tx:
        before = tx.rows(jobs, {})
    memory.process()
    with memory.database.read() as tx:
        assert tx.rows(jobs, {}) == before


def test_a_file_in_the_way_is_a_job_that_backs_off(memory: Memory, root: Path) -> None:
    ingest(memory, root, "hi", "Hello.")
    folder = memory.settings.home / "memory"
    folder.mkdir(mode=0o700, parents=True)
    token = names.session_token("default", memory.conversations()[0].session_key, "")
    stands = folder / f"2026-03-02T09-01-00.000Z--{token}--manifest.md"
    stands.write_text("mine")
    report = memory.process()
    assert report.failed == 1 and "Tampered" in report.problems[0][1]
    assert memory.status().kinds["archive"] == {"backing_off": 1} and stands.read_text() == "mine"
    stands.unlink()
    memory.retry()
    assert memory.process().failed == 0 and len(indexed(memory)) == 3


# Compactions


def test_a_compaction_becomes_a_file_and_lands_in_the_manifest_alone(memory: Memory, root: Path) -> None:
    """Validation test 5: late links stand in the manifest; nothing else changes."""
    path = ingest(memory, root, *TALK)
    memory.process()
    before = {each.name: each.read_text() for each in (memory.settings.home / "memory").glob("*.md")}
    listed = shown(memory)
    append(path, compacted(7))
    memory.ingest(folder=root)
    memory.process()
    after = {each.name: each.read_text() for each in (memory.settings.home / "memory").glob("*.md")}
    changed = {name.rpartition("--")[2] for name in after if after[name] != before.get(name)}
    assert changed == {"compaction.md", "manifest.md"} and set(before) < set(after)
    ((found,), (head,)) = heads(memory, Kind.COMPACTION), heads(memory, Kind.MANIFEST)
    assert (found.source_node_id, found.memory_sentence_quality) == (f"{SESSION[:8]}-000007", "ok")
    assert head.compaction_path is not None and (head.revision, head.compactions[0].path) == (2, head.compaction_path)
    assert (memory.settings.home / head.compaction_path).is_file() and shown(memory) == listed
    assert head.memory_md_refs == ("MEMORY.md#2026-03-02",)
    assert indexed(memory)[head.compaction_path] == 1
    (body,) = [document.parse(text) for name, text in after.items() if name.endswith("--compaction.md")]
    with memory.database.read() as tx:
        ((uuid, when, text),) = tx.rows("SELECT compaction_uuid, timestamp, summary FROM memory_compactions", {})
    row = rows.compacted(body)
    assert (row.uuid, row.timestamp, row.summary, row.session_id) == (uuid, when, text, SESSION)
    assert row.source_file.endswith(f"{SESSION}.jsonl")


def test_a_compaction_may_come_first_and_the_end_of_the_session_keeps_it(
    memory: Memory, root: Path, clock: Clock
) -> None:
    clock.now = START + timedelta(minutes=12)
    path = write(root / "-code-tides" / f"{SESSION}.jsonl", session(*TALK[:2]) + compacted(3) + compacted(4, "Second."))
    memory.ingest(folder=root)
    memory.process()
    (head,) = heads(memory, Kind.MANIFEST)
    assert (head.transcript_path, head.summary_path) == (None, None) and len(head.compactions) == 2
    append(path, session(*TALK[2:], first=5))
    clock.now = START + timedelta(days=1)
    memory.ingest(folder=root)
    assert memory.process().succeeded == 1
    (after,) = heads(memory, Kind.MANIFEST)
    assert after.compactions == head.compactions and after.compaction_path == head.compaction_path
    assert after.transcript_path and after.summary_path and after.captured_at == head.captured_at
    (manifest,) = [path for path in indexed(memory) if path.endswith("--manifest.md")]
    links = [target for target, _ in wikilinks((memory.settings.home / manifest).read_text())]
    assert links == [after.summary_path, after.transcript_path, *(each.path for each in reversed(after.compactions))]
    assert heads(memory, Kind.COMPACTION)[1].memory_sentence_quality == "fallback"
    assert len(ledger_rows(memory)) == 1 and "--compaction" not in shown(memory)


def test_a_compaction_belongs_to_the_conversation_it_falls_into() -> None:
    first = conversation(5)
    second = replace(conversation(30), first_message_at=at(20), session_key="s1@later")
    for minute, owner in ((3, first), (5, first), (10, first), (20, second), (59, second)):
        assert compaction.owner_of([second, first], at(minute)) is owner
    early = Timestamp("2026-03-01T00:00:00.000Z")
    assert compaction.owner_of([second, first], early) is first and compaction.owner_of([], early) is None


def test_a_running_agent_can_hand_in_a_compaction(memory: Memory, root: Path, clock: Clock) -> None:
    clock.now = START + timedelta(minutes=8)
    ingest(memory, root, *TALK[:2])
    key = memory.conversations()[0].session_key
    upkeep = World(memory).upkeep
    for _ in range(2):
        assert upkeep.record(key, SO_FAR, at(8), "live-1")
    assert not upkeep.record("nobody@never", SO_FAR, at(8), "live-1")
    assert [each.source_node_id for each in heads(memory, Kind.COMPACTION)] == ["live-1"]
    assert len(indexed(memory)) == 2
    with memory.database.read() as tx:
        assert compactions.unwritten(tx, memory.owner, 9) == []
        assert tx.rows("SELECT summary FROM memory_compactions", {}) == [(SO_FAR,)]


def test_a_compaction_that_is_cut_short_is_told_and_finished_by_whoever_runs_next(
    memory: Memory, root: Path, clock: Clock
) -> None:
    """Between its file and the manifest, with and without a manifest, and a row, of before."""
    clock.now = START + timedelta(minutes=8)
    ingest(memory, root, *TALK[:2])
    world, key = World(memory), key_of(memory)

    def die(path: str) -> None:
        if path.endswith("--compaction.md"):
            raise Crash

    finishing: dict[str, Callable[[], Any]] = {
        "process": memory.process,
        "reindex": memory.reindex,
        "full": lambda: memory.reindex(full=True),
        "mended": lambda: memory.doctor(fix=True),
        "told again": lambda: memory.record_compaction(key, SO_FAR, at(8), "told again"),
    }
    for number, (name, finish) in enumerate(finishing.items(), 1):
        with pytest.raises(Crash):
            Upkeep(memory.ground, Files(memory.settings.home, wrote=die), world.projection).record(
                key, SO_FAR, at(8), name
            )
        told = [each for each in memory.doctor().problems if each.path.endswith("--compaction.md")]
        assert [each.kind for each in told] == [Fault.NO_MANIFEST if number == 1 else Fault.UNCOMMITTED]
        if name in ("reindex", "full"):
            with memory.database.write() as tx:
                tx.run("DELETE FROM memory_compactions")
        finish()
        (head,) = heads(memory, Kind.MANIFEST)
        assert len(head.compactions) == len(heads(memory, Kind.COMPACTION)) == number
        assert memory.doctor().problems == [] and memory.reindex(full=True).problems == []
        with memory.database.read() as tx:
            assert compactions.unwritten(tx, memory.owner, 9) == []
            assert name in {uuid for (uuid,) in tx.rows("SELECT compaction_uuid FROM memory_compactions")}


def test_a_compaction_has_the_sentence_of_the_model_where_one_is_configured(
    memory: Memory, root: Path, clock: Clock
) -> None:
    clock.now = START + timedelta(minutes=8)
    ingest(memory, root, *TALK[:2])
    world, key, secret = World(memory), key_of(memory), "sk-proj-" + "A1b2C3d4E5f6" * 4
    answer = "They settled that the tides project reads src/tides/clock.py and that make lint runs before every commit."
    model = Scripted(lambda content: {"memory_sentence": said})

    def die(path: str) -> None:
        if path.startswith("memory/"):
            raise Crash

    def upkeep(most: int = 10_000, **more: Any) -> Upkeep:
        config = msgspec.structs.replace(memory.settings.config, max_tokens_per_day=most)
        ground = replace(memory.ground, settings=replace(memory.settings, config=config))
        return Upkeep(ground, Files(memory.settings.home, **more), world.projection, model=lambda: model)

    def told() -> list[tuple[str, str]]:
        return [(each.memory_sentence, each.memory_sentence_quality) for each in heads(memory, Kind.COMPACTION)]

    said = answer
    assert upkeep().record(key, f"{SO_FAR} The key is {secret}.", at(8), "c1") and told() == [(answer, "ok")]
    assert len(model.calls) == 1 and secret not in model.calls[0]
    assert [each.input_tokens for each in memory.status().tokens] == [100]
    assert upkeep().record(key, SO_FAR, at(8), "c1") and len(model.calls) == 1, "it is there"
    with pytest.raises(Crash):
        upkeep(wrote=die).record(key, SO_FAR, at(8), "c2")
    with memory.database.write() as tx:  # as if the process had ended before the file
        assert tx.rows("SELECT kind, job_key FROM memory_answers") == [("archive", key)]
    next(path for path in (memory.settings.home / "memory").glob("*compaction*") if "c2" in path.read_text()).unlink()
    assert upkeep().run().written == 1 and len(model.calls) == 2, "what was paid for is used"
    assert told()[1] == (answer, "ok")
    for number, wrong in enumerate(
        ("Worked on task.", f"The key of the tides project in src/tides/clock.py is {secret}")
    ):
        said = wrong
        assert upkeep().record(key, f"{SO_FAR} Again.", at(8), f"d{number}")
    model.failure = ModelFailed(Failure.UNAVAILABLE, "away")
    assert upkeep().record(key, SO_FAR, at(8), "e1")
    assert told()[2:] == [(SO_FAR, "ok")] * 3
    asked, model.failure = len(model.calls), None
    assert upkeep(most=1).record(key, SO_FAR, at(8), "e2") and len(model.calls) == asked, "a cap was reached"
    clock.advance(2 * 86_400)
    append(root / "-code-tides" / f"{SESSION}.jsonl", compacted(9))
    memory.ingest(folder=root)
    assert upkeep().run().written == 1 and len(model.calls) == asked, "an old one is sent to nobody"
    with memory.database.read() as tx:
        assert tx.rows("SELECT 1 FROM memory_answers") == []


def test_two_compactions_at_one_moment_have_two_files(tmp_path: Path, clock: Clock) -> None:
    writer = compaction.Compactions(Files(tmp_path), "ada", clock)
    for uuid in ("c1", "c2", "c1"):
        row = compactions.Compacted(uuid, "claude-code", "s1", "f", at(1), f"Text of {uuid}.\n### compaction · x")
        writer.write(conversation(), row)
    held = Files(tmp_path)
    found = [name for name in held.names() if name.kind is Kind.COMPACTION]
    read = [bodies.parse_compaction(document.parse(held.read(name.path) or "").body) for name in found]
    assert [(when, uuid) for when, uuid, _ in read] == [(at(1), "c1"), (at(1), "c2")]
    assert read[0][2] == "Text of c1.\n### compaction · x"


def test_a_crowd_on_one_manifest_loses_no_compaction(tmp_path: Path, clock: Clock) -> None:
    """The revision is compared where it is written, and whoever comes second reads again."""

    def compact(number: int) -> None:
        row = compactions.Compacted(f"c{number}", "claude-code", "s1", "f", at(number), f"Text {number}.")
        compaction.Compactions(Files(tmp_path), "ada", clock).write(conversation(), row)

    def end() -> None:
        SessionEnd(Files(tmp_path), "ada").write(transcript(), EXTRACTED, [], CAPTURED)

    threads = [threading.Thread(target=compact, args=(number,)) for number in range(4)]
    threads.append(threading.Thread(target=end))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    known = sets.look(Files(tmp_path), names.session_token("ada", KEY, ""))
    assert known.manifest is not None
    assert len(known.manifest.compactions) == 4 and known.manifest.summary_path and len(known.contents) == 6


# References


def test_a_manifest_names_the_row_that_is_there_however_the_conversation_goes_on(
    memory: Memory, root: Path, clock: Clock
) -> None:
    """The first write names it, and one that grows past midnight moves with its row."""
    path = ingest(memory, root, *TALK)
    memory.process()
    for said in ("And the day after?", "And then?"):
        (head,), day = heads(memory, Kind.MANIFEST), [line for line in shown(memory).splitlines() if "### " in line]
        assert head.memory_md_refs == tuple(f"MEMORY.md#{each.removeprefix('### ')}" for each in day) and len(day) == 1
        clock.advance(86_400)
        append(path, session(said, "Ok.", first=len(path.read_text().splitlines()) + 26))
        memory.ingest(folder=root)
        memory.process(now=True)


# Test sessions


def test_marked_sessions_are_kept_and_not_shown(memory: Memory, database_url: Place, clock: Clock, root: Path) -> None:
    ingest(memory, root, *TALK, name="test-4711")
    ingest(memory, root, "The tide gauge is called brass-seven, Priya reads it.", *TALK[1:], name=OTHER)
    assert memory.process().succeeded == 2
    assert len(ledger_rows(memory)) == 1 and "test-4711" not in shown(memory)
    assert len(heads(memory, Kind.SUMMARY)) == 2
    with open_memory(database_url.home, database=database_url.url, clock=clock, test_sessions=[]) as opened:
        World(opened).projection.update()
        assert len(ledger_rows(opened)) == 2
    with open_memory(database_url.home, database=database_url.url, clock=clock, test_sessions=["*"]) as opened:
        World(opened).projection.update()
        assert ledger_rows(opened) == [] and RULE not in shown(opened)


# Six states


class Crash(BaseException):
    """The process is gone."""


class Effects:
    """Counts what is written, and ends the process after a given one."""

    def __init__(self, last: int = 0) -> None:
        self.seen: list[str] = []
        self.last = last  # 0: none
        self.dead = False

    def __call__(self, what: str) -> None:
        self.seen.append(what)
        if len(self.seen) == self.last:
            self.dead = True
            raise Crash


class Counted:
    """A database that counts commits, and that a dead process cannot use any more."""

    def __init__(self, database: Database, effects: Effects) -> None:
        self._database = database
        self._effects = effects
        self.dialect = database.dialect

    @contextmanager
    def write(self) -> Iterator[Transaction]:
        if self._effects.dead:
            raise Crash
        with self._database.write() as tx:
            yield tx
        self._effects("commit")

    @contextmanager
    def read(self) -> Iterator[Transaction]:
        if self._effects.dead:
            raise Crash
        with self._database.read() as tx:
            yield tx

    def size(self) -> int:
        return self._database.size()

    def close(self) -> None:
        self._database.close()


class World:
    """Everything that `process` runs, with every write counted."""

    def __init__(self, memory: Memory, strategy: Strategy | None = None, effects: Effects | None = None) -> None:
        self.memory, self.effects = memory, effects or Effects()
        ground = replace(memory.ground, database=Counted(memory.database, self.effects))
        files = Files(memory.settings.home, wrote=self.effects)
        self.projection = Projection(ground, wrote=self.effects)
        end = SessionEnd(files, memory.owner.agent_id, self.projection)
        self.extract = Extract(ground, strategy or Offline(), end)
        self.upkeep = Upkeep(ground, files, self.projection)
        self.recovery = Recovery(ground, files, self.projection, self.extract)

    def process(self) -> None:
        self.memory.intake.mark_ready()
        self.extract.run()
        self.upkeep.run()
        self.projection.update()


def restart(memory: Memory) -> None:
    """The leases of the dead process have run out."""
    with memory.database.write() as tx:
        tx.run("UPDATE memory_jobs SET lease_expires_at = '' WHERE status = 'running'", {})


def key_of(memory: Memory) -> str:
    return memory.conversations()[0].session_key


STATES = {  # after which file, or at which step, the process ended → what is found
    "resolved": (State.NOT_WRITTEN,),
    "transcript": (State.TRANSCRIPT_ONLY,),
    "summary": (State.NO_MANIFEST,),
    "manifest": (State.NOT_INDEXED, State.NOT_PROJECTED),
    "stored": (State.NOT_PROJECTED,),
}


@pytest.mark.parametrize("last", STATES)
def test_every_state_is_found_and_resumed(memory: Memory, root: Path, last: str) -> None:
    """Validation test 8, with a real end after every step."""
    ingest(memory, root, *TALK)
    model = Scripted(lambda content: {**by_hand(), "memory_sentence": SO_FAR})

    def die(what: str) -> None:
        if what.rpartition("--")[2].removesuffix(".md") == last:
            raise Crash

    world = World(memory, by(model))
    files = Files(memory.settings.home, wrote=die)
    end = SessionEnd(files, memory.owner.agent_id, world.projection)
    with pytest.raises(Crash):
        extract(memory, by(model), artifacts=end, reached=lambda step: die(f"--{step}")).run()
    restart(memory)
    key = key_of(memory)
    assert detect(world.recovery.inspect(key)) == STATES[last]
    assert STATES[last][0] in world.recovery.recover(key)
    assert detect(world.recovery.inspect(key)) == () and world.recovery.recover(key) == ()
    assert len(model.calls) == 1 and len(ledger_rows(memory)) == 1
    before = {each.name: each.read_text() for each in (memory.settings.home / "memory").glob("*.md")}
    memory_md = shown(memory)
    world.process()
    assert {each.name: each.read_text() for each in (memory.settings.home / "memory").glob("*.md")} == before
    assert RULE not in memory_md and status(memory) == [ConversationStatus.ARCHIVED] and len(model.calls) == 1


def by_hand() -> dict[str, Any]:
    return {
        "raw_memory": "They agreed on make lint.",
        "done": "About make lint.",
        "left": "",
        "rollout_slug": "make-lint",
        "memory_sentence": "Worked on task.",
        "memories": [],
    }


def test_a_sentence_below_the_floor_is_the_state_of_the_fallback(memory: Memory, root: Path) -> None:
    """Validation test 8: sentence generation failed, fallback path engaged."""
    ingest(memory, root, *TALK)
    world = World(memory, by(Scripted(lambda content: by_hand())))
    world.process()
    assert heads(memory, Kind.SUMMARY)[0].memory_sentence_quality == "fallback"
    assert detect(world.recovery.inspect(key_of(memory))) == (State.FALLBACK,)
    assert world.recovery.recover(key_of(memory)) == (), "it was dealt with: nothing is left to do"


def test_rows_that_are_gone_are_made_from_the_files_again(memory: Memory, root: Path) -> None:
    """Nothing is left of the answer: a re-index makes them."""
    ingest(memory, root, *TALK)
    memory.process(now=True)
    before, key = indexed(memory), key_of(memory)
    with memory.database.write() as tx:
        tx.run("DELETE FROM memory_artifacts")
    assert memory.recover(key) == [State.NOT_INDEXED] and indexed(memory) == before
    assert memory.recover(key) == []


def test_rows_of_a_compaction_come_back_while_its_conversation_runs(memory: Memory, root: Path) -> None:
    ingest(memory, root, *TALK)
    assert memory.record_compaction(SESSION, SO_FAR)
    with memory.database.write() as tx:
        tx.run("DELETE FROM memory_artifacts")
        tx.run("DELETE FROM memory_compactions")
    assert memory.recover(key_of(memory)) == [State.NOT_INDEXED]
    with memory.database.read() as tx:
        assert tx.rows("SELECT summary FROM memory_compactions") == [(SO_FAR,)]


def test_states_are_told_from_the_evidence_alone(tmp_path: Path, clock: Clock) -> None:
    """Validation test 8, as a pure function."""
    SessionEnd(Files(tmp_path), "ada").write(transcript(), EXTRACTED, [], CAPTURED, "offline")
    known = sets.look(Files(tmp_path), names.session_token("ada", KEY, ""))
    assert known.manifest is not None and known.manifest_name is not None
    shas = {path: head.content_sha256 for path, head in known.readable.items()}
    shas[known.manifest_name.path] = known.manifest.content_sha256
    whole = Evidence(known, None, belongs=True, is_listed=True, rows=shas)
    answer = idempotency_key("ada", KEY, transcript().snapshot, "offline", CAPTURED)

    def less(*kinds: Kind, **changes: Any) -> Evidence:
        left = {name: head for name, head in known.contents.items() if name.kind not in kinds}
        without = Kind.MANIFEST in kinds
        fewer = replace(
            known,
            contents=left,
            manifest=None if without else known.manifest,
            manifest_name=None if without else known.manifest_name,
        )
        return replace(whole, known=fewer, **changes)

    asked = {"answer": answer}
    assert detect(whole) == () and detect(replace(whole, **asked)) == ()
    assert detect(less(Kind.TRANSCRIPT, Kind.SUMMARY, Kind.MANIFEST, **asked)) == (State.NOT_WRITTEN,)
    assert detect(less(Kind.SUMMARY, Kind.MANIFEST, **asked)) == (State.TRANSCRIPT_ONLY,)
    assert detect(less(Kind.MANIFEST)) == (State.NO_MANIFEST,)
    assert detect(replace(whole, is_listed=False)) == (State.NOT_PROJECTED,)
    assert detect(replace(whole, belongs=False)) == (State.NOT_PROJECTED,), "listed, and out of the window"
    assert detect(replace(whole, rows={})) == (State.NOT_INDEXED,)
    assert detect(replace(whole, rows={**shas, known.manifest_name.path: "other"})) == (State.NOT_INDEXED,)
    assert detect(less(*Kind, answer=None)) == (), "nothing at all is no state"


# Splits


def keys(memory: Memory) -> set[str]:
    return {each.session_key for each in memory.conversations()}


def test_a_conversation_that_a_longer_gap_swallowed_names_its_successor(
    memory: Memory, database_url: Place, clock: Clock, root: Path
) -> None:
    path = root / "-code-tides" / f"{SESSION}.jsonl"
    write(
        path, session(*TALK) + session(TOLD, "Yes.", "The pier light is green.", "Ok.", "And so on.", "Ok.", first=90)
    )
    memory.ingest(folder=root)
    assert memory.process().succeeded == 2
    swallowed = max(keys(memory))
    compare = [each.uuid for each in said(memory, swallowed)]
    with open_memory(database_url.home, database=database_url.url, clock=clock, conversation_gap_minutes=300) as opened:
        opened.ingest(folder=root, reimport=True)
        assert len(keys(opened)) == 1 and swallowed not in keys(opened)
        (left,) = keys(opened)
        with opened.database.read() as tx:
            assert set(extracted(tx)) == {left, swallowed}
        opened.process()
        gone = next(each for each in heads(opened, Kind.MANIFEST) if each.session_key == swallowed)
        assert (gone.superseded_by, gone.transcript_path, gone.summary_path) == (left, None, None)
        assert {names.parse(each.path).kind for each in gone.superseded} == {Kind.SUMMARY, Kind.TRANSCRIPT}  # type: ignore[union-attr]
        (one,) = heads(opened, Kind.TRANSCRIPT)
        assert one.session_key == left and {each.uuid for each in said(opened, left)} >= set(compare)
        assert len(ledger_rows(opened)) == 1
        with opened.database.read() as tx:
            assert extracted(tx) == [left]
            assert {key for each in memories.all_of(tx, opened.owner) for key, _ in each.sources} == {left}
            assert artifacts.vanished(tx, opened.owner, 9) == []
        before = indexed(opened)
        opened.process()
        assert indexed(opened) == before


def said(memory: Memory, session_key: str) -> list[Any]:
    held = Files(memory.settings.home)
    token = names.session_token(memory.owner.agent_id, session_key, "")
    (name,) = [name for name in held.names(token) if name.kind is Kind.TRANSCRIPT]
    return bodies.parse_transcript(document.parse(held.read(name.path) or "").body)


def test_a_late_earlier_entry_moves_the_conversation_to_another_key(memory: Memory, root: Path, clock: Clock) -> None:
    path = ingest(memory, root, *TALK)
    memory.process()
    (old,) = keys(memory)
    append(path, claude(50, "An hour before: the pier closes at ten.", at=-600))
    memory.ingest(folder=root)
    (new,) = keys(memory)
    assert new < old
    memory.process()
    by_key = {each.session_key: each for each in heads(memory, Kind.MANIFEST)}
    assert by_key[old].superseded_by == new and by_key[new].superseded_by is None
    assert [each.session_key for each in heads(memory, Kind.TRANSCRIPT)] == [new]
    assert len(ledger_rows(memory)) == 1 and len(said(memory, new)) == 7


def test_the_successor_is_who_has_most_of_the_entries() -> None:
    assert successor({"a", "b", "c"}, {"x": {"a"}, "y": {"b", "c"}, "z": set()}) == "y"
    assert successor({"a", "b"}, {"y": {"b"}, "x": {"a"}}) == "x"
    assert successor({"a"}, {"x": {"b"}}) is None and successor(set(), {"x": {"b"}}) is None


# Crashes


def stages(root: Path) -> list[Callable[[Memory], None]]:
    """What happens in the world between two runs: a session with a compaction beside a short one; it goes on and is
    compacted again; an entry from before its beginning, which moves it to another key."""
    path = root / "-code-tides" / f"{SESSION}.jsonl"

    def begin(memory: Memory) -> None:
        write(path, session(*TALK) + compacted(7))
        write(root / "-code-tides" / f"{OTHER}.jsonl", session("hi there", "Hello!", name=OTHER))
        memory.ingest(folder=root)

    def more(data: bytes) -> Callable[[Memory], None]:
        def grow(memory: Memory) -> None:
            append(path, data)
            memory.ingest(folder=root)

        return grow

    late = session("From now on the deploy window is Tuesday, nothing else.", "All right.", first=20)
    return [begin, more(late + compacted(30, "Second.")), more(claude(50, "The pier closes at ten.", at=-600))]


def everything(memory: Memory) -> dict[str, Any]:
    """Canonical and derived state, and of the operational all but attempts, leases and times."""
    home = memory.settings.home
    tables = {
        "conversations": "session_key, status, status_reason, entry_count, last_message_at FROM memory_conversations",
        "entries": "entry_uuid, session_id, timestamp, content FROM memory_transcript_entries",
        "compactions": "compaction_uuid, session_id, timestamp, summary FROM memory_compactions",
        "stage1": "* FROM memory_stage1",
        "memories": "* FROM memory_memories",
        "sources": "* FROM memory_sources",
        "artifacts": "source_path, source_sha256, source_kind, session_key, is_current, ended_at, manifest_path,"
        " memory_sentence, source_node_id FROM memory_artifacts",
        "answers": "job_key FROM memory_answers",
        "jobs": "kind, job_key, status, success_watermark FROM memory_jobs",
    }
    found: dict[str, Any] = {each.name: each.read_text() for each in sorted((home / "memory").glob("*.md"))} | {
        FILE: shown(memory)
    }
    with memory.database.read() as tx:
        for name, columns in tables.items():
            sql = f"SELECT {columns} WHERE tenant = :tenant AND agent_id = :agent_id"
            read = [
                [value for value in row if value != memory.owner.tenant] for row in tx.rows(sql, asdict(memory.owner))
            ]
            # the inputs of these two are a random name and a file's time
            found[name] = sorted(row[:3] if row[0] in ("ledger", "ingest") else row for row in read)
    return found


def live(place: Place, folder: Path, clock: Clock, last: int = 0) -> Iterator[tuple[dict[str, Any], list[str]]]:
    """A life in which the process ends after the `last` write of each stage: what is left then, what was written."""
    home, root = folder / "home", folder / "projects"
    with open_memory(home, database=place.url, clock=clock, tenant=f"t{last}") as memory:
        for happen in stages(root):
            happen(memory)
            effects = Effects(last)
            try:
                World(memory, effects=effects).process()
            except Crash:
                effects.dead = False
                restart(memory)
                World(memory, effects=effects).process()
            clock.advance(3600)
            yield everything(memory), effects.seen


SHARDS = 2


@pytest.mark.parametrize("shard", range(SHARDS))
def test_an_end_after_any_write_leaves_the_same_in_the_end(
    database_url: Place, tmp_path: Path, shard: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both flows, a superseded set and a new split: after every file, every MEMORY.md and every commit."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)  # processes end here, machines do not
    straight = list(live(database_url, tmp_path / "straight", Clock(START + timedelta(days=1))))
    assert {each.rpartition("--")[2] for _, effects in straight for each in effects} == {
        "transcript.md",
        "summary.md",
        "manifest.md",
        "compaction.md",
        FILE,
        "commit",
    }
    for left, _ in straight:
        assert left["answers"] == []
        assert {row[2] for row in left["jobs"]} <= {JobStatus.SUCCEEDED, JobStatus.SUCCEEDED_NO_OUTPUT}
    for last in range(shard + 1, max(len(effects) for _, effects in straight) + 1, SHARDS):
        crashed = live(database_url, tmp_path / str(last), Clock(START + timedelta(days=1)), last)
        for stage, ((left, effects), (found, _)) in enumerate(zip(straight, crashed, strict=True)):
            for part, value in left.items():
                assert found[part] == value, f"{part}, after write {last} of stage {stage}: {effects[last - 1 : last]}"
            assert found.keys() == left.keys()


# Crowds


def test_ten_processes_end_sessions_of_two_agents_at_once(database_url: Place, clock: Clock, root: Path) -> None:
    """No lost row, no line of another agent; validation test 12."""
    place, agents = database_url, ("default", "ada")
    for agent in agents:
        with open_memory(place.home, database=place.url, clock=clock, agent_id=agent) as opened:
            for number in range(10):
                ingest(opened, root / agent, *TALK, name=f"{number:08d}-{agent}{SESSION[8:]}")
    call = [sys.executable, "-m", "tests.lifecycle_child", str(place.home), place.url]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    children = [
        subprocess.Popen([*call, agent, clock.now.isoformat()], cwd=Path(__file__).parent.parent, **pipes)  # type: ignore[call-overload]
        for agent in agents * 5
    ]
    for child in children:
        assert child.stdout.readline() == "ready\n"
    for child in children:
        child.stdin.write("\n")
        child.stdin.flush()
    for child in children:
        assert child.communicate(timeout=60)[0] == "0\n" and child.returncode == 0
    for agent in agents:
        with open_memory(place.home, database=place.url, clock=clock, agent_id=agent) as opened:
            listed = ledger_rows(opened)
            assert len(listed) == 10 and all(f"-{agent}-" in line for line in listed)
            assert len(indexed_of(opened)) == 30


def indexed_of(memory: Memory) -> dict[str, str]:
    with memory.database.read() as tx:
        return artifacts.signatures(tx, memory.owner)
