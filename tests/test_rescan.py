"""A newer version of the redaction rules reaches what is stored already."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from recollect.app import open_memory
from recollect.ingest.rescan import rescan
from recollect.redact import VERSION
from recollect.store.jobs import Jobs
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
