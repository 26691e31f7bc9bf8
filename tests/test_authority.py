"""Guardrails: history has one owner, the canonical files. These fail when a second place starts to own it."""

from __future__ import annotations

import re
from pathlib import Path

from recollect.store.migrate import migrations

SOURCE = Path(__file__).parent.parent / "src" / "recollect"
SQL = "".join(migration.sql for migration in migrations())

DERIVED = {  # table → who makes it again from the files, or from tables that were
    "memory_transcript_entries": "reindex",
    "memory_conversations": "reindex",
    "memory_compactions": "reindex",
    "memory_projects": "reindex",
    "memory_stage1": "reindex",
    "memory_memories": "reindex",
    "memory_sources": "reindex",
    "memory_artifacts": "reindex",
    "memory_tombstones": "reindex",
    "memory_sums": "reindex, process, and whoever stores a conversation",
    "memory_turn_artifacts": "ingest and reindex, from turn logs and bucket files",
    "memory_turn_tags": "the same",
    "memory_turn_files": "the same",
    "memory_search_texts": "triggers on memories and summaries",
    "memory_vectors": "an embedder",
}
WRITERS = {  # modules that may write files at all, and what
    "artifacts/files.py": "canonical files",
    "workspace.py": "the workspace and MEMORY.md",
    "turns/log.py": "our own turn logs, a transcript source like any agent's",
    "models/agent_cli.py": "the working folder of the user's own agent",
    "store/sqlite.py": "the database",
    "models/embed/install.py": "an embedding model",
    "search/vectors/index.py": "a cache of vectors' codes",
    "inject/briefing.py": "the lock of context/, whose files the workspace writes",
}


def tables() -> dict[str, str]:
    found = re.findall(r"(?:^-- (\w+):.*\n)?(?:^--.*\n)*^CREATE TABLE (\w+)", SQL, re.MULTILINE)
    return {table: kind for kind, table in found}


def test_every_table_says_what_it_is_and_none_is_canonical() -> None:
    assert {table: kind for table, kind in tables().items() if kind not in ("derived", "operational")} == {}


def test_every_derived_table_can_be_made_again() -> None:
    assert {table for table, kind in tables().items() if kind == "derived"} == set(DERIVED)


def test_only_one_module_writes_canonical_files() -> None:
    """Whoever opens a file to write it is named here; whoever knows the folder's name does not write by itself."""
    writing = re.compile(r"\.write_text\(|\.write_bytes\(|os\.rename|os\.replace|O_CREAT|\.open\(\"[wax]")
    found = {
        path.relative_to(SOURCE).as_posix()
        for path in SOURCE.rglob("*.py")
        if writing.search(path.read_text()) and not path.is_relative_to(SOURCE / "surfaces")
    }
    assert found == set(WRITERS)


def test_rows_of_history_are_written_by_the_store_alone() -> None:
    told = "|".join(DERIVED)
    statement = re.compile(rf"(?:INSERT INTO|UPDATE|DELETE FROM) (?:{told})\b")
    outside = {
        path.relative_to(SOURCE).as_posix()
        for path in SOURCE.rglob("*.py")
        if statement.search(path.read_text()) and not path.is_relative_to(SOURCE / "store")
    }
    assert outside == set()


def test_the_thirteen_validation_tests_of_the_lineage_specification_are_there() -> None:
    """Each says its number."""
    told = "".join(path.read_text() for path in Path(__file__).parent.glob("test_*.py"))
    numbers = {int(found) for found in re.findall(r"[Vv]alidation test (\d+)", told)}
    assert numbers == set(range(1, 14))
