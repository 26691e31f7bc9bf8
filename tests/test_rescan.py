"""A newer version of the redaction rules reaches what is stored already."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from recollect.app import Memory, open_memory
from recollect.artifacts.document import parse, rendered, sealed
from recollect.ingest.rescan import rescan
from recollect.projects.paths import digest, renamed
from recollect.redact import VERSION
from recollect.store.entries import events_of
from recollect.store.jobs import Jobs
from recollect.types import Author, Message, Role
from tests.transcripts import SESSION, claude, texts, write


def newer(text: str) -> str:
    return text.replace("swordfish", "[redacted:fish]")


def test_a_newer_version_rescans_everything_once(database_url: tuple[str, str, Path], tmp_path: Path) -> None:
    _, url, home = database_url
    lines = [claude(n, f"swordfish {n}", role="user" if n % 2 else "assistant") for n in range(1, 2502)]
    lines.append(claude(2600, "a summary with swordfish", isCompactSummary=True))
    lines.append(claude(2601, "the open message says swordfish", role="assistant"))
    write(tmp_path / "t" / "-p" / f"{SESSION}.jsonl", b"".join(lines))
    with open_memory(home, database=url) as memory:
        memory.ingest(folder=tmp_path / "t")
        jobs = Jobs(memory.owner)
        assert rescan(memory.database, memory.owner, jobs, VERSION, newer) == 0, "the version has not changed"
        assert rescan(memory.database, memory.owner, jobs, VERSION + 1, newer) == 2502 + 1 + 1
        assert rescan(memory.database, memory.owner, jobs, VERSION + 1, newer) == 0
        assert not any("swordfish" in text for text in texts(memory))
        with memory.database.read() as tx:
            rest = repr(tx.rows("SELECT summary FROM memory_compactions")) + repr(
                tx.rows("SELECT parser_state FROM memory_file_states")
            )
        assert "swordfish" not in rest
        assert "[redacted:fish]" in rest


def test_names_that_an_older_version_stored_are_judged_again(
    database_url: tuple[str, str, Path], tmp_path: Path
) -> None:
    _, url, home = database_url
    write(tmp_path / "t" / "-p" / f"{SESSION}.jsonl", claude(1, "m1", gitBranch="main") + claude(2, "m2"))
    with open_memory(home, database=url) as memory:
        memory.ingest(folder=tmp_path / "t")
        with memory.database.write() as tx:  # as an earlier build left it
            tx.run("UPDATE memory_transcript_entries SET branch = 'fix/swordfish', tool_names = 'Bash,swordfish'")
            tx.run("UPDATE memory_conversations SET branch = 'fix/swordfish'")
        assert rescan(memory.database, memory.owner, Jobs(memory.owner), VERSION + 1, newer) == 2 + 2 + 1
        with memory.database.read() as tx:
            columns = tx.rows("SELECT branch, tool_names FROM memory_transcript_entries")
            columns += tx.rows("SELECT branch FROM memory_conversations")
        assert "swordfish" not in str(columns) and "fix/[redacted:fish]" in str(columns)


def test_authors_and_events_go_through_newer_rules_too(database_url: tuple[str, str, Path], tmp_path: Path) -> None:
    _, url, home = database_url
    call = {"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": "git commit -m 'feed the swordfish'"}}
    lines = claude(1, "can you feed the swordfish?\n\n> swordfish\n\nthanks") + claude(
        2, "", role="assistant", message={"id": "m", "content": [{"type": "text", "text": "swordfish"}, call]}
    )
    write(tmp_path / "t" / "-p" / f"{SESSION}.jsonl", lines + claude(3, "ok"))
    with open_memory(home, database=url) as memory:
        memory.ingest(folder=tmp_path / "t")
        assert rescan(memory.database, memory.owner, Jobs(memory.owner), VERSION + 1, newer) >= 3
        with memory.database.read() as tx:
            rows = tx.rows(
                "SELECT role, content, authors, events FROM memory_transcript_entries ORDER BY timestamp LIMIT 2"
            )
        assert "swordfish" not in str(rows)
        asked, done = (
            Message("", Role(role), text, authors=authors, events=events_of(events))
            for role, text, authors, events in rows
        )
        assert asked.said(Author.TYPED) == "can you feed the [redacted:fish]?\n\nthanks"
        assert asked.said(Author.PASTED) == "> [redacted:fish]" and done.said(Author.AGENT) == "[redacted:fish]"
        assert [each.text for each in done.events] == ["feed the [redacted:fish]"]


FOLDERS = {  # table → columns that name a folder or a project
    "memory_transcript_entries": ("cwd", "project_id"),
    "memory_conversations": ("project", "project_id"),
    "memory_projects": ("cwd", "project_id"),
    "memory_repositories": ("project_id",),
    "memory_stage1": ("project", "project_id"),
    "memory_artifacts": ("project", "project_id"),
    "memory_memories": ("scope_id",),
    "memory_sources": ("scope_id",),
    "memory_search_texts": ("project_id",),
    "memory_vectors": ("project_id",),
}


def named(memory: Memory) -> str:
    """Every name of a folder or a project that is stored."""
    with memory.database.read() as tx:
        return repr(
            [tx.rows(f"SELECT DISTINCT {', '.join(columns)} FROM {table}") for table, columns in FOLDERS.items()]
        )


def test_folders_that_an_older_version_named_are_renamed_everywhere_at_once(
    database_url: tuple[str, str, Path], tmp_path: Path
) -> None:
    _, url, home = database_url
    folder = tmp_path / "code" / f"ghp_{'aB3dE5' * 6}"
    folder.mkdir(parents=True)
    lines = ["please always run make lint before you commit", "Ok.", "Remember: we keep tides in PostgreSQL.", "Ok."]
    write(
        tmp_path / "t" / "-p" / f"{SESSION}.jsonl",
        b"".join(claude(n, text, role=("user", "assistant")[n % 2], cwd=str(folder)) for n, text in enumerate(lines)),
    )
    with open_memory(home, database=url) as memory:
        memory.ingest(folder=tmp_path / "t")
        memory.process(now=True)
        memory.embed()
        (name,) = {each.project_id for each in memory.conversations()}
        before, kinds = named(memory), {table: columns for table, columns in FOLDERS.items() if "search" not in table}
        assert folder.name not in before and "[redacted:" in name
        with memory.database.write() as tx:  # as an earlier build left it
            for table, columns in kinds.items():
                for column in columns:
                    sql = f"UPDATE {table} SET {column} = :raw WHERE {column} = :name"
                    tx.run(sql, {"raw": str(folder), "name": name})
            tx.run(
                "UPDATE memory_jobs SET input_watermark = :old, success_watermark = :old WHERE kind = 'redact'",
                {"old": "1"},
            )
        assert folder.name in named(memory)
        for path in home.glob("memory/*.md"):
            read = parse(path.read_text())
            path.write_text(
                rendered(*sealed(replace(read.head, project=str(folder), project_id=str(folder)), read.body))
            )
        memory.ingest(folder=tmp_path / "t")
        memory.reindex(full=True)
        memory.embed()
        assert named(memory) == before and {each.project_id for each in memory.conversations()} == {name}
        assert memory.project(folder) == name, "the folder is that project still"
        assert memory.search("make lint", scope=folder, kinds=["memory"]) and memory.search("PostgreSQL", scope=folder)


@pytest.mark.parametrize(
    ("name", "after"),
    [
        ("/code/tides", "/code/tides"),
        ("/code/swordfish", "/code/[redacted:fish]#{hash}"),
        ("/code/swordfish@0123456789ab", "/code/[redacted:fish]#{hash}@0123456789ab"),
        ("/a/[redacted:key]/swordfish#0123456789ab", "/a/[redacted:key]/[redacted:fish]#0123456789ab"),
        ("/a/[redacted:key]/tides#0123456789ab", "/a/[redacted:key]/tides#0123456789ab"),
        ("github.com/me/swordfish", "github.com/me/[redacted:fish]#{hash}"),
    ],
)
def test_a_name_keeps_what_tells_it_from_others(name: str, after: str) -> None:
    assert renamed(name, newer) == after.format(hash=digest(name.partition("@")[0]))
    assert renamed(renamed(name, newer), newer) == renamed(name, newer)


def test_text_that_an_older_version_judged_is_judged_again(database_url: tuple[str, str, Path], tmp_path: Path) -> None:
    _, url, home = database_url
    write(tmp_path / "t" / "-p" / f"{SESSION}.jsonl", claude(1, "swordfish"))
    with open_memory(home, database=url) as memory:
        memory.ingest(folder=tmp_path / "t")
        with memory.database.write() as tx:  # as an earlier build left it
            tx.run("UPDATE memory_jobs SET input_watermark = :old, success_watermark = :old", {"old": "redact_v1#0"})
            tx.run("UPDATE memory_transcript_entries SET content = 'login: bob pass: Zk29dkQ7pw'")
        memory.ingest(folder=tmp_path / "t")
        assert "Zk29dkQ7pw" not in str(texts(memory))


def test_another_agents_texts_are_not_touched(database_url: tuple[str, str, Path], tmp_path: Path) -> None:
    _, url, home = database_url
    write(tmp_path / "t" / "-p" / f"{SESSION}.jsonl", claude(1, "swordfish"))
    with open_memory(home, database=url, agent_id="a") as a, open_memory(home, database=url, agent_id="b") as b:
        a.ingest(folder=tmp_path / "t")
        b.ingest(folder=tmp_path / "t")
        rescan(a.database, a.owner, Jobs(a.owner), VERSION + 1, newer)
        assert (texts(a), texts(b)) == (["[redacted:fish]"], ["swordfish"])


def test_a_rescan_whose_process_was_killed_is_taken_up_at_once(
    database_url: tuple[str, str, Path], tmp_path: Path
) -> None:
    _, url, home = database_url
    write(tmp_path / "t" / "-p" / f"{SESSION}.jsonl", claude(1, "swordfish"))
    program = "from recollect.store.workers import this_worker; print(this_worker())"
    dead = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, text=True).stdout.strip()
    with open_memory(home, database=url) as memory:
        memory.ingest(folder=tmp_path / "t")
        killed = Jobs(memory.owner, worker=dead)
        with memory.database.write() as tx:
            killed.enqueue(tx, "redact", [("stored text", str(VERSION + 1))])
            assert killed.claim(tx, "redact", limit=1)
        assert rescan(memory.database, memory.owner, Jobs(memory.owner), VERSION + 1, newer) == 1
