"""Re-indexing: the database comes back from canonical files, and what only it knows stays."""

from __future__ import annotations

import re
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from recollect.app import Memory, open_memory
from recollect.artifacts import tombstones
from recollect.artifacts.document import parse, rendered, sealed
from recollect.artifacts.files import Files
from recollect.artifacts.ledger import FILE
from recollect.artifacts.names import session_token
from recollect.artifacts.reindex import Reindex, Report
from recollect.artifacts.tombstones import Tombstone
from recollect.store.tombstones import entry_hash
from recollect.types import ConversationStatus, timestamp
from tests.conftest import Clock, Place
from tests.test_extract import CHAT, OTHER, RULE, TALK, TOLD, Scripted, by, extract, ingest, session
from tests.transcripts import SESSION, START, append, claude, write

DERIVED = {
    "memory_transcript_entries": "source, entry_uuid, session_id, source_file, role, content, tool_names, timestamp,"
    " cwd, project_id, branch, owned, withdrawn",
    "memory_conversations": "source, session_id, source_file, session_key, project, project_id, branch,"
    " first_message_at, last_message_at, entry_count, status, status_reason",
    "memory_stage1": "*",
    "memory_memories": "*",
    "memory_sources": "*",
    "memory_artifacts": "*",
    "memory_projects": "cwd, project_id",
}
OPERATIONAL = ("memory_use", "memory_stage1_use", "memory_jobs", "memory_file_states", "memory_token_accounts")
THIRD = "77777777-2222-4333-8444-555555555555"


@pytest.fixture
def clock() -> Clock:
    return Clock(START + timedelta(days=1))


def content(memory: Memory, tables: dict[str, str] = DERIVED) -> dict[str, list[Any]]:
    with memory.database.read() as tx:
        return {table: sorted(tx.rows(f"SELECT {columns} FROM {table}"), key=repr) for table, columns in tables.items()}


def operational(memory: Memory) -> dict[str, list[Any]]:
    """But for the job that writes MEMORY.md."""
    found = content(memory, dict.fromkeys(OPERATIONAL, "*"))
    return found | {"memory_jobs": [row for row in found["memory_jobs"] if "ledger" not in row]}


def empty(memory: Memory) -> None:
    """As if the database had been deleted."""
    with memory.database.write() as tx:
        for table in (*DERIVED, *OPERATIONAL, "memory_compactions", "memory_answers"):
            tx.run(f"DELETE FROM {table}")


def fill(memory: Memory, root: Path) -> None:
    """Three conversations, one of them without anything worth keeping, one with odd places and tools."""
    ingest(memory, root, *TALK)
    ingest(memory, root, *CHAT, name=OTHER)
    odd = [
        claude(1, "We decided to keep the tide tables in PostgreSQL.", session=THIRD, gitBranch="topic one"),
        claude(2, "Agreed, PostgreSQL it is.\x1b[0m \n", role="assistant", session=THIRD, cwd="/code/else where"),
        claude(3, "Never use SQLite for the tide tables.", session=THIRD),
    ]
    write(root / "-code-tides" / f"{THIRD}.jsonl", b"".join(odd))
    memory.ingest(folder=root)
    memory.process(now=True)


def files(memory: Memory, kind: str = "") -> list[Path]:
    return sorted((memory.settings.home / "memory").glob(f"*{kind}.md"))


def kinds(report: Report) -> set[str]:
    return {problem.kind for problem in report.problems}


# 9, 10: parity, and what only the database knows


def test_09_an_empty_database_comes_back_from_the_files(memory: Memory, root: Path) -> None:
    """Validation test 9: content-linked rows are rebuilt from Markdown."""
    fill(memory, root)
    before, ledger = content(memory), (memory.settings.home / FILE).read_bytes()
    empty(memory)
    (memory.settings.home / FILE).unlink()
    report = memory.reindex()
    assert (report.conversations, report.problems) == (3, [])
    after = content(memory)
    assert [row for row in after["memory_transcript_entries"] if "\x1b" in row[5]] == []
    for found in (before, after):  # ingest keeps what a terminal showed; a file does not
        found["memory_transcript_entries"] = [
            tuple(each.replace("\x1b[0m", "").rstrip() if isinstance(each, str) else each for each in row)
            for row in found["memory_transcript_entries"]
        ]
    assert after == before
    assert (memory.settings.home / FILE).read_bytes() == ledger


def test_a_compaction_comes_back_too(memory: Memory, root: Path) -> None:
    path = ingest(memory, root, *TALK)
    memory.process(now=True)
    append(path, claude(7, "They agreed on make lint in tides, and Priya owns tide-stg-2.", isCompactSummary=True))
    memory.ingest(folder=root)
    memory.process(now=True)
    tables = DERIVED | {"memory_compactions": "source, compaction_uuid, session_id, source_file, timestamp, summary"}
    before = content(memory, tables)
    assert len(before["memory_compactions"]) == 1 and files(memory, "compaction")
    empty(memory)
    assert memory.reindex().problems == []
    assert content(memory, tables) == before


def test_a_compaction_without_its_heading_is_named_and_not_its_manifest(memory: Memory, root: Path) -> None:
    path = ingest(memory, root, *TALK)
    append(path, claude(7, "They agreed on make lint in tides, and Priya owns tide-stg-2.", isCompactSummary=True))
    memory.ingest(folder=root)
    memory.process(now=True)
    (file,) = files(memory, "compaction")
    written = parse(file.read_text())
    file.write_text(rendered(*sealed(written.head, written.body.replace("### compaction", "#### compaction"))))
    found = {(each.path, each.kind) for each in memory.reindex().problems}
    assert (f"memory/{file.name}", "BadBody") in found
    assert not any(path.endswith("manifest.md") for path, _ in found)


def test_a_compaction_that_a_tombstone_knows_by_its_id_alone_is_erased_and_another_agents_is_not(
    memory: Memory, root: Path, clock: Clock, database_url: Place
) -> None:
    path = ingest(memory, root, *TALK)
    append(path, claude(7, "They agreed on make lint in tides, and Priya owns tide-stg-2.", isCompactSummary=True))
    with open_memory(database_url.home, environ={}, clock=clock, database=database_url.url, agent_id="bob") as bob:
        for each in (memory, bob):
            each.ingest(folder=root)
            each.process(now=True)
    ours, theirs = sorted(files(memory, "compaction"), key=lambda each: 'agent_id: "bob"' in each.read_text())
    known = content(memory, {"memory_compactions": "DISTINCT source, compaction_uuid"})["memory_compactions"]
    gone = tuple(entry_hash(*each) for each in known)
    token = session_token(memory.owner.agent_id, "", "")
    stone = Tombstone("tombstone", memory.owner.agent_id, token, timestamp(clock()), "private", (), (), gone)
    Files(memory.settings.home).create(stone.path, tombstones.rendered(stone))
    with memory.database.write() as tx:
        tx.run("DELETE FROM memory_compactions")
    assert [(each.path, each.kind) for each in memory.reindex(full=True).problems] == [
        (f"memory/{ours.name}", "Erased")
    ]
    assert content(memory, {"memory_compactions": "*"})["memory_compactions"] == []
    memory.doctor(fix=True)  # the file
    memory.doctor(fix=True)  # the manifest that named it
    assert memory.doctor().problems == [] and files(memory, "compaction") == [theirs]


def test_a_following_ingest_of_the_same_transcripts_pays_no_model_again(memory: Memory, root: Path) -> None:
    model = Scripted()
    fill(memory, root)
    before = {path: path.read_bytes() for path in files(memory)}
    empty(memory)
    memory.reindex()
    for _ in range(2):  # once from the files alone, once with the agents' transcripts
        report = extract(memory, by(model)).run(now=True)
        assert (report.claimed, model.calls) == (0, [])
        memory.ingest(folder=root)
    assert {path: path.read_bytes() for path in files(memory)} == before
    assert {each.status for each in memory.conversations()} == {ConversationStatus.ARCHIVED, ConversationStatus.SKIPPED}


def test_10_what_only_the_database_knows_stays(memory: Memory, root: Path, clock: Clock) -> None:
    """Validation test 10: use, offsets, jobs and baselines are not touched."""
    fill(memory, root)
    memory.consolidate(now=True)
    with memory.database.read() as tx:
        ids = [name for (name,) in tx.rows("SELECT DISTINCT memory_id FROM memory_memories")]
    memory.cite(ids)
    before, rows = operational(memory), content(memory)
    clock.advance(60)
    memory.reindex(full=True)
    assert operational(memory) == before
    assert {name: found for name, found in content(memory).items() if name != "memory_transcript_entries"} == {
        name: found for name, found in rows.items() if name != "memory_transcript_entries"
    }


def test_markdown_wins_over_rows_that_say_something_else(memory: Memory, root: Path) -> None:
    fill(memory, root)
    memory.reindex(full=True)
    before = content(memory)
    with memory.database.write() as tx:
        tx.run("UPDATE memory_memories SET text = 'wrong'")
        tx.run("UPDATE memory_stage1 SET raw_memory = 'wrong'")
        tx.run("UPDATE memory_transcript_entries SET content = 'wrong'")
        tx.run("DELETE FROM memory_sources")
    memory.reindex(full=True)
    assert content(memory) == before


def test_unchanged_files_are_not_read(memory: Memory, root: Path) -> None:
    fill(memory, root)
    assert memory.reindex().read == 0
    files(memory, "manifest")[0].touch()
    assert memory.reindex().read == 3  # its conversation
    assert memory.reindex().read == 0


# Beside a running pipeline


def test_a_conversation_that_grew_is_left_to_the_pipeline(memory: Memory, root: Path) -> None:
    fill(memory, root)
    append(root / "-code-tides" / f"{SESSION}.jsonl", session("And Omar owns tide-prod-1.", "Noted.", first=7))
    memory.ingest(folder=root)
    with memory.database.write() as tx:
        tx.run("UPDATE memory_transcript_entries SET content = 'newer' WHERE content = :was", {"was": TOLD})
    report = memory.reindex(full=True)
    assert report.skipped == 1
    with memory.database.read() as tx:
        assert tx.row("SELECT 1 FROM memory_transcript_entries WHERE content = 'newer'")


def test_what_the_pipeline_wrote_meanwhile_stands(
    memory: Memory, root: Path, database_url: Place, clock: Clock
) -> None:
    fill(memory, root)
    talk = root / "-code-tides" / f"{SESSION}.jsonl"
    ran = []

    class Late(Reindex):
        def _store(self, *found: Any) -> bool:
            if not ran:
                ran.append(True)
                append(talk, session("remember: Omar owns the host tide-prod-1.", "Noted.", first=7))
                with open_memory(database_url.home, environ={}, clock=clock, database=database_url.url) as other:
                    other.ingest(folder=root)
                    other.process(now=True)
            return super()._store(*found)

    clock.advance(3600)
    Late(memory.ground).run(full=True)
    with memory.database.read() as tx:
        assert tx.row("SELECT 1 FROM memory_transcript_entries WHERE content LIKE '%Omar%'")
        rows = tx.rows("SELECT text FROM memory_memories WHERE text LIKE '%Omar%'")
    assert rows
    assert memory.reindex().problems == []


def test_a_crash_after_any_commit_ends_in_the_same_rows(
    memory: Memory, root: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(memory, root)
    memory.reindex(full=True)
    before = content(memory)
    monkeypatch.setattr("recollect.artifacts.reindex._BATCH", 1)

    def crash() -> None:
        raise KeyboardInterrupt

    empty(memory)
    for _ in range(3):
        with pytest.raises(KeyboardInterrupt):
            Reindex(memory.ground, stored=crash).run()
    assert Reindex(memory.ground).run().problems == []
    assert content(memory) == before


# What is wrong


def test_damage_is_listed_every_time_and_changes_nothing(memory: Memory, root: Path) -> None:
    fill(memory, root)
    before = content(memory)
    summary = files(memory, "summary")[0]
    summary.write_text(summary.read_text().replace("## Summary", "## Summary\n\nForged."))
    for _ in range(2):
        assert kinds(memory.reindex()) == {"ChecksumMismatch"}
    rows = content(memory)
    assert [rows[name] for name in ("memory_memories", "memory_stage1")] == [
        before[name] for name in ("memory_memories", "memory_stage1")
    ]


@pytest.mark.parametrize("key", ["project", "ended_at", "memory_sentence_quality", "project_id"])
def test_frontmatter_that_is_not_what_was_written_is_told_and_mended(memory: Memory, root: Path, key: str) -> None:
    ingest(memory, root, *TALK)
    memory.process(now=True)
    before, ledger = content(memory), (memory.settings.home / FILE).read_text()
    summary = files(memory, "summary")[0]
    text = summary.read_text()
    summary.write_text(re.sub(rf'(?m)^{key}: ".*"$', f'{key}: "2026-01-01T00:00:00.000Z"', text))
    told = [memory.reindex().problems, memory.reindex().problems, memory.doctor().problems]
    assert [{(each.kind, each.path) for each in found} for found in told[:2]] == [
        {("ChecksumMismatch", f"memory/{summary.name}")}
    ] * 2
    assert "frontmatter_sha256" in str(told[2])
    assert "2026-01-01T" not in (memory.settings.home / FILE).read_text()
    memory.doctor(fix=True)
    assert memory.doctor().problems == [] and memory.reindex().problems == []
    rows = content(memory)
    assert {name: rows[name] for name in rows if name != "memory_artifacts"} == {
        name: before[name] for name in before if name != "memory_artifacts"
    }
    lines = [each.partition(" [[")[0] for each in ledger.split("\n")]
    assert [each.partition(" [[")[0] for each in (memory.settings.home / FILE).read_text().split("\n")] == lines


@pytest.mark.parametrize(
    ("kind", "damage", "found"),
    [
        ("transcript", lambda path: path.unlink(), {"BrokenLink", "Missing"}),
        ("transcript", lambda path: path.write_text("no frontmatter"), {"BadFrontmatter"}),
        ("summary", lambda path: path.rename(path.with_name("2020-01-01" + path.name[10:])), None),
        ("manifest", lambda path: path.unlink(), {"NoManifest", "Missing"}),
        ("manifest", lambda path: path.write_text("---\nkind: [\n---\n\n"), {"BadFrontmatter", "NoManifest"}),
        ("summary", lambda path: (path.unlink(), path.symlink_to("/etc/hostname")), {"Tampered"}),
    ],
)
def test_every_damage_has_a_name_and_a_hint(
    memory: Memory, root: Path, kind: str, damage: Any, found: set[str] | None
) -> None:
    ingest(memory, root, *TALK)
    memory.process(now=True)
    damage(files(memory, kind)[0])
    report = memory.reindex()
    assert kinds(report) == (found or {"WrongName", "BrokenLink", "Missing"})
    assert all(problem.hint for problem in report.problems)


def test_without_a_manifest_the_newest_set_is_still_found(memory: Memory, root: Path) -> None:
    ingest(memory, root, *TALK)
    memory.process(now=True)
    before = content(memory, {name: DERIVED[name] for name in ("memory_memories", "memory_stage1")})
    files(memory, "manifest")[0].unlink()
    empty(memory)
    assert kinds(memory.reindex()) == {"NoManifest"}
    assert content(memory, {name: DERIVED[name] for name in ("memory_memories", "memory_stage1")}) == before


def test_12_files_of_another_agent_are_not_ours_and_are_read_once(
    memory: Memory, database_url: Place, clock: Clock, root: Path
) -> None:
    """Validation test 12: no cross-agent bleed."""
    ingest(memory, root, *TALK)
    memory.process(now=True)
    with open_memory(database_url.home, environ={}, clock=clock, database=database_url.url, agent_id="bob") as bob:
        ingest(bob, root.with_name("bobs"), RULE, "Yes.", "Bob's own: never push on Fridays.", name=OTHER)
        bob.process(now=True)
        before = content(bob)
        empty(bob)
        assert bob.reindex().conversations == 1
        assert bob.reindex().read == 0
        with bob.database.read() as tx:
            assert tx.rows("SELECT DISTINCT agent_id FROM memory_memories") == [("bob",)]
        assert memory.reindex().conversations == 1
        assert content(bob) == before


def test_another_tenant_in_the_same_home_has_its_files_elsewhere(
    memory: Memory, database_url: Place, clock: Clock, root: Path
) -> None:
    opened = partial(open_memory, database_url.home, environ={}, clock=clock, database=database_url.url, tenant="acme")
    ingest(memory, root, *TALK)
    with opened() as acme, opened(agent_id="bob") as bob:
        for each in (memory, acme, bob):
            each.ingest(folder=root)  # one conversation: its files would have the same names
            each.process(now=True)
            each.consolidate(now=True)
            said = each.remember(f"{each.owner.tenant} and {each.owner.agent_id} love figs.", everywhere=True)
            if each is acme:
                each.forget(memory=said.id, reason="wrong")
        for each in (memory, acme, bob):
            empty(each)
            assert each.reindex().problems == [] and each.doctor().problems == []
            told = (each.settings.workspace.parent / FILE).read_text()
            figs = {who for who in ("default and default", "acme and default", "acme and bob") if f"{who} love" in told}
            ours = {f"{each.owner.tenant} and {each.owner.agent_id}"}
            assert RULE in told and figs == (set() if each is acme else ours)


def test_nothing_is_there_and_nothing_happens(memory: Memory) -> None:
    report = memory.reindex()
    assert (report.files, report.problems) == (0, [])


def test_frontmatter_reads_the_same_by_either_reader(memory: Memory, root: Path) -> None:
    from recollect.artifacts import document

    fill(memory, root)
    for path in files(memory):
        front = re.split(r"^---\n", path.read_text(), maxsplit=2, flags=re.MULTILINE)[1].rstrip("\n")
        assert document._simple(front) == document._yaml(front)
        found = parse(path.read_text())
        assert rendered(found.head, found.body) == path.read_text()


@pytest.mark.parametrize("front", ["kind: " + "[" * 32_000, "kind: " + "{a: " * 32_000, "kind: " + "x" * 3_000_000])
def test_a_hostile_file_is_a_problem_of_its_own(memory: Memory, root: Path, front: str) -> None:
    fill(memory, root)
    path = "memory/2026-03-02T09-00-00.000Z--aaaaaaaaaaaaaaaa--summary.md"
    for each in (path, path.replace("memory/", "memory/tombstones/").replace("summary", "tombstone")):
        write(memory.settings.home / each, f"---\n{front}\n---\n\nx\n".encode())
    for problems in (memory.reindex().problems, memory.doctor().problems):
        assert path in str(problems) and len(str(problems)) < 4_000
