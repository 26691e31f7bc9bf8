"""`recollect search` as a stranger meets it: one JSON document, the current folder's project, a real terminal."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import struct
import subprocess
import sys
import termios
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from recollect.app import open_memory
from tests.command import Done
from tests.command import run as run_here
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


def run(tmp_path: Path, *arguments: str, cwd: Path | None = None) -> Done:
    return run_here(tmp_path / "home", *arguments, cwd=cwd)


def hits(tmp_path: Path, *arguments: str, cwd: Path | None = None) -> list[dict[str, Any]]:
    done = run(tmp_path, "search", *arguments, "--json", cwd=cwd)
    assert (done.status, done.stderr) == (0, "")
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
    assert nothing.status == 0 and nothing.stdout.startswith("Nothing relevant.")
    assert "why" in hits(tmp_path, "lighthouse lamp", "--explain", cwd=project)[0]


@pytest.mark.parametrize(
    "wrong",
    [
        ("--kind", "thought"),
        ("--since", "soon"),
        ("--limit", "0"),
        ("--project", "x", "--all-projects"),
        ("--project", "nosuch"),
        ("--project", "~nobody-of-that-name/x"),
        ("--source", "claude"),
        ("--role", "user", "--kind", "memory"),
    ],
)
def test_a_wrong_call_of_search_is_an_error(tmp_path: Path, wrong: tuple[str, ...]) -> None:
    done = run(tmp_path, "search", "lamp", *wrong, "--json")
    assert done.status == 2
    assert json.loads(done.stdout)["error"]["message"]


def test_an_empty_query_is_an_error(tmp_path: Path) -> None:
    assert run(tmp_path, "search", " ").status == 2


def test_a_project_is_named_by_any_path_to_it_and_by_no_path_beside_it(tmp_path: Path, project: Path) -> None:
    """A link leads to it; what is not there does not stand for the repository around it."""
    (project / ".git").mkdir()
    (tmp_path / "link").symlink_to(project)
    told = run(tmp_path, "remember", "The lamp is cleaned on Mondays.", "--project", str(tmp_path / "link"))
    assert told.status == 0, told.stderr
    for place in (project, tmp_path / "link", Path("../tides")):
        found = hits(tmp_path, "lamp cleaned", "--project", str(place), cwd=project)
        assert [each["text"] for each in found if each["kind"] == "memory"] == ["The lamp is cleaned on Mondays."], (
            place
        )
    assert run(tmp_path, "search", "lamp", "--project", "./nosuch", cwd=project).status == 2


def test_every_score_is_a_number(tmp_path: Path, project: Path) -> None:
    run(tmp_path, "process", "--now")
    run(tmp_path, "remember", "The lighthouse lamp is cleaned on Mondays.", cwd=project)
    found = hits(tmp_path, "lighthouse lamp", cwd=project)
    assert {each["kind"] for each in found} >= {"entry", "memory"}
    assert all(isinstance(each["score"], float) for each in found)


def test_forget_takes_a_folder_and_conversations_the_project_that_it_is_in(tmp_path: Path) -> None:
    """Sessions in two folders of one repository are of one project, whichever folder names it."""
    folder = tmp_path / "tides"
    (folder / ".git").mkdir(parents=True)
    (folder / "sub").mkdir()
    for number, (cwd, session) in enumerate([(folder, SESSION), (folder / "sub", "9" + SESSION[1:])]):
        lines = b"".join(
            claude(10 * number + each, f"Lamp {number} says {each}.", cwd=str(cwd), session=session)
            for each in (1, 2, 3)
        )
        write(tmp_path / "tree" / "-tides" / f"{session}.jsonl", lines)
    run(tmp_path, "ingest", "--dir", str(tmp_path / "tree"))
    for place in (".", "sub", str(folder)):
        listed = run(tmp_path, "conversations", "--project", place, "--json", cwd=folder)
        assert len(json.loads(listed.stdout)) == 2, place
    for place, left in (("sub", [str(folder)]), (".", [])):  # nothing but a folder and what is below it is erased
        gone = run(tmp_path, "forget", "--project", place, "--yes", "--reason", "x", "--json", cwd=folder)
        assert gone.status == 0, gone.stderr
        assert [each["project"] for each in json.loads(run(tmp_path, "conversations", "--json").stdout)] == left


def test_the_last_day_is_seen_as_a_whole(tmp_path: Path, project: Path) -> None:
    for until in ("2026-03-02", "20260302", "9999-12-31"):
        assert hits(tmp_path, "lighthouse lamp", "--until", until, cwd=project)
        assert run(tmp_path, "timeline", "--until", until, cwd=project).stdout.startswith("2026-03-02")
    for until in ("2026-03-01", "2026-03-02T00:00"):
        assert hits(tmp_path, "lighthouse lamp", "--until", until, cwd=project) == []


SEQUENCES = "\x1b]52;c;cHduZWQ=\x07\x1b[2J\x9b31m\u202e\u2066"  # the last two turn the order of what follows


def test_nothing_that_a_transcript_says_is_a_command_to_the_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def plainly(*arguments: str, cwd: Path | None = None) -> None:
        done = run(tmp_path, *arguments, cwd=cwd)
        shown = done.stdout + done.stderr
        assert "Traceback" not in shown and ("s1" in shown or "u1" in shown or "m-" in shown)
        assert not set(shown) & set("\x1b\x07\x9b\u202e\u2066"), arguments

    said = (
        f"please always run make lint{SEQUENCES} before you commit.",
        f"The lighthouse lamp{SEQUENCES} turns every nine seconds.",
        "Good.",
    )
    session, more = f"s1{SEQUENCES}", {"cwd": f"/code{SEQUENCES}/tides"}
    lines = (
        claude(number, text, session=session, **more, uuid=f"u{number}{SEQUENCES}")
        for number, text in enumerate(said, 1)
    )
    write(tmp_path / "tree" / "-tides" / "s1.jsonl", b"".join(lines))
    run(tmp_path, "ingest", "--dir", str(tmp_path / "tree"))
    with monkeypatch.context() as unreachable:
        unreachable.setenv("RECOLLECT_MODEL", "openai:any")
        unreachable.setenv("RECOLLECT_MODEL_URL", "http://127.0.0.1:9/v1")
        plainly("process", "--now")
        plainly("status")
    run(tmp_path, "process", "--now")
    (memory,) = hits(tmp_path, "make lint", "--all-projects", "--kind", "memory")
    plainly("conversations")
    plainly("timeline", "--all-projects")
    for query in ("lighthouse lamp", "make lint"):
        plainly("search", query, "--all-projects")
    for name in ("s1", "u2", "u", memory["id"]):
        plainly("show", name)
    plainly("pin", memory["id"])
    (folder := tmp_path / f"u1{SEQUENCES}").mkdir()
    plainly("timeline", cwd=folder)
    write(tmp_path / "home" / "memory" / f"u1{SEQUENCES}.md", b"")
    plainly("doctor")
    (found,) = hits(tmp_path, "lighthouse lamp", "--all-projects", "--role", "user", "--limit", "1")
    assert "\u202e\u2066" in found["text"], "a program is told what is stored"


@pytest.mark.parametrize(("columns", "kind"), [(40, "xterm"), (60, "dumb")])
def test_on_a_narrow_terminal_an_id_stays_in_one_piece(tmp_path: Path, project: Path, columns: int, kind: str) -> None:
    run(tmp_path, "remember", "The lighthouse lamp is cleaned on Mondays, on Wednesdays and on Fridays.", cwd=project)
    (memory,) = hits(tmp_path, "lamp", "--kind", "memory", cwd=project)
    ours, theirs = pty.openpty()
    with os.fdopen(ours, "rb", buffering=0) as terminal:
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        command = [sys.executable, "-m", "recollect", "context", "--prompt", "When is the lighthouse lamp cleaned?"]
        env = {**os.environ, "RECOLLECT_HOME": str(tmp_path / "home"), "TERM": kind}
        env = {name: value for name, value in env.items() if name != "COLUMNS"}
        with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=env, cwd=project):
            os.close(theirs)
            shown = b""
            with suppress(OSError):  # that is how a terminal ends
                while some := terminal.read(4096):
                    shown += some
    row = shown.decode().split("section")[1]  # below the head of the table
    assert memory["id"] in row and "relevant" in row, shown.decode()
    assert (b"\x1b[" in shown) == (kind == "xterm"), shown


@pytest.mark.parametrize(
    "arguments",
    [["search", "lamp"], ["context"], ["timeline"], ["remember", "Use tabs."], ["conversations", "--project", "."]],
)
def test_a_folder_whose_name_is_not_utf_8_is_a_wrong_call(tmp_path: Path, arguments: list[str]) -> None:
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9"))
    folder.mkdir()
    done = run(tmp_path, *arguments, cwd=folder)
    assert done.status == 2 and "is not UTF-8" in done.stderr and "Traceback" not in done.stderr
    assert run(tmp_path, "remember", "Use tabs.", "--everywhere", cwd=folder).status == 0


def test_a_query_is_never_an_option_or_syntax(tmp_path: Path, project: Path) -> None:
    for query in ('light-house "lamp', "lamp:", "lamp AND (", "'"):
        assert run(tmp_path, "search", "--", query, cwd=project).status == 0


def test_a_memory_stands_for_the_notes_that_made_it(tmp_path: Path, project: Path) -> None:
    said = "The clock in the lighthouse runs slow by {} seconds."
    with open_memory(tmp_path / "home", embedder="none") as memory:
        first = memory.remember(said.format("nine"), project=project).id
        memory.correct(first, said.format("ten"))
        memory.pin(first)
        memory.unpin(first)
        other = memory.remember("The clock on the pier is broken.", project=project).id
        assert {each.id for each in memory.search("clock", scope=str(project))} == {first, other}
        only = memory.search("clock", scope=str(project), kinds=["summary"])
        assert len(only) >= 4, "unless it is not asked for"
