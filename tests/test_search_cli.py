"""`recollect search` as a stranger meets it: real processes, one JSON document, the current folder's project."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.transcripts import SESSION, claude, write

KEYS = {
    "id",
    "kind",
    "memory_kind",
    "score",
    "text",
    "session_id",
    "source_file",
    "timestamp",
    "path",
    "entry_uuid",
}


def run(tmp_path: Path, *arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "RECOLLECT_HOME": str(tmp_path / "home"), "RECOLLECT_EMBEDDER": "none"}
    command = [sys.executable, "-m", "recollect", *arguments]
    return subprocess.run(command, env=env, cwd=cwd, capture_output=True, text=True, timeout=60, check=False)


def hits(tmp_path: Path, *arguments: str, cwd: Path | None = None) -> list[dict[str, Any]]:
    done = run(tmp_path, "search", *arguments, "--json", cwd=cwd)
    assert (done.returncode, done.stderr) == (0, "")
    found: list[dict[str, Any]] = json.loads(done.stdout)["hits"]
    return found


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder whose agent said something about a lighthouse."""
    folder = tmp_path / "tides"
    folder.mkdir()
    lines = b"".join(
        claude(number, text, cwd=str(folder))
        for number, text in enumerate(("The lighthouse lamp turns every nine seconds.", "Noted.", "Good."), 1)
    )
    write(tmp_path / "tree" / "-tides" / f"{SESSION}.jsonl", lines)
    done = run(tmp_path, "ingest", "--dir", str(tmp_path / "tree"), "--json")
    assert json.loads(done.stdout)["entries"] == 3
    return folder


def test_search_takes_the_current_folders_project(tmp_path: Path, project: Path) -> None:
    (found, *_) = hits(tmp_path, "lighthouse lamp", cwd=project)
    assert set(found) >= KEYS
    assert "nine seconds" in found["text"]
    assert (found["kind"], found["session_id"]) == ("entry", SESSION)
    assert hits(tmp_path, "lighthouse lamp", cwd=tmp_path) == []
    assert hits(tmp_path, "lighthouse lamp", "--all-projects", cwd=tmp_path)[0]["id"] == found["id"]
    assert hits(tmp_path, "lighthouse lamp", "--project", str(project), cwd=tmp_path)[0]["id"] == found["id"]


def test_search_explains_and_says_when_there_is_nothing(tmp_path: Path, project: Path) -> None:
    shown = run(tmp_path, "search", "lighthouse", "lamp", "--explain", cwd=project)
    assert "relevance" in shown.stdout and "2 words: lamp, lighthouse" in shown.stdout
    nothing = run(tmp_path, "search", "polonium half-life", cwd=project)
    assert nothing.returncode == 0 and nothing.stdout.startswith("Nothing relevant.")
    assert "why" in hits(tmp_path, "lighthouse lamp", "--explain", cwd=project)[0]


@pytest.mark.parametrize(
    "wrong", [("--kind", "thought"), ("--since", "soon"), ("--limit", "0"), ("--project", "x", "--all-projects")]
)
def test_a_wrong_call_of_search_is_an_error(tmp_path: Path, wrong: tuple[str, ...]) -> None:
    done = run(tmp_path, "search", "lamp", *wrong, "--json")
    assert done.returncode == 2
    assert json.loads(done.stdout)["error"]["message"]


def test_a_query_is_never_an_option_or_syntax(tmp_path: Path, project: Path) -> None:
    for query in ('light-house "lamp', "lamp:", "lamp AND (", "'"):
        assert run(tmp_path, "search", "--", query, cwd=project).returncode == 0
