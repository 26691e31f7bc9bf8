"""The command line as a stranger meets it: exit statuses, one JSON document; real processes where it is about those:
pipes, terminals, signals, streams."""

from __future__ import annotations

import json
import os
import pty
import resource
import select
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from recollect.app import open_memory
from recollect.surfaces.cli.common import table
from tests.command import Done
from tests.command import run as run_here
from tests.transcripts import SESSION, append, claude, talk, write

RECOLLECT = [sys.executable, "-m", "recollect"]


def run(tmp_path: Path, *arguments: str, **environ: str) -> Done:
    return run_here(tmp_path / "home", *arguments, **environ)


def start(tmp_path: Path, *arguments: str, **environ: str) -> Done:
    """The same as a process."""
    env = {**os.environ, "HOME": str(tmp_path), "RECOLLECT_HOME": str(tmp_path / "home"), **environ}
    done = subprocess.run([*RECOLLECT, *arguments], env=env, capture_output=True, text=True, timeout=60, check=False)
    return Done(done.returncode, done.stdout, done.stderr)


def answer(tmp_path: Path, *arguments: str, **environ: str) -> Any:
    done = run(tmp_path, *arguments, "--json", **environ)
    assert done.stderr == ""
    return json.loads(done.stdout)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    write(tmp_path / "tree" / "-work-tides" / f"{SESSION}.jsonl", talk(1, 6) + b"broken\n")
    return tmp_path / "tree"


def test_ingest_reports_what_the_contract_names(tmp_path: Path, tree: Path) -> None:
    report = answer(tmp_path, "ingest", "--dir", str(tree))
    assert report.keys() >= {
        "files", "skipped", "entries", "conversations", "malformed", "malformed_lines", "bytes", "seconds"
    }  # fmt: skip
    assert (report["files"], report["entries"], report["conversations"], report["malformed"]) == (1, 6, 1, 1)
    assert report["malformed_lines"][0]["line"] == 7


def test_a_path_is_a_file_or_a_folder(tmp_path: Path, tree: Path) -> None:
    (file,) = tree.rglob("*.jsonl")
    assert answer(tmp_path, "ingest", str(file))["entries"] == 6
    append(file, talk(7, 8))
    assert answer(tmp_path, "ingest", str(tree))["entries"] == 2
    assert "exclude" in run(tmp_path, "ingest", str(tree), "--dir", str(tree)).stderr
    assert run(tmp_path, "ingest", str(tmp_path / "missing")).status == 2


def test_conversations_are_listed_with_the_contracts_keys(tmp_path: Path, tree: Path) -> None:
    run(tmp_path, "ingest", "--dir", str(tree))
    (found,) = answer(tmp_path, "conversations", "--status", "ready")
    assert found.keys() >= {
        "id", "session_id", "session_key", "source", "source_file", "project", "first_message_at",
        "last_message_at", "entry_count", "status",
    }  # fmt: skip
    assert answer(tmp_path, "conversations", "--project", "/code/tides") == [found]
    assert answer(tmp_path, "conversations", "--project", str(tmp_path)) == []
    assert answer(tmp_path, "conversations", "--agent-id", "other") == []
    assert SESSION[:8] in run(tmp_path, "conversations").stdout


def test_conversations_by_the_thousand_do_not_flood_a_person(tmp_path: Path) -> None:
    talks = (talk(number, number, f"session-{number:03}") for number in range(1, 204))
    for number, lines in enumerate(talks, 1):
        write(tmp_path / "tree" / "-work-tides" / f"session-{number:03}.jsonl", lines)
    run(tmp_path, "ingest", "--dir", str(tmp_path / "tree"))
    shown = run(tmp_path, "conversations").stdout
    assert shown.count("session-") == 200 and "and 3 older ones; --limit shows more" in shown
    assert run(tmp_path, "conversations", "--limit", "203").stdout.count("session-") == 203
    assert len(answer(tmp_path, "conversations")) == 203


@pytest.mark.parametrize("command", ["status", "health"])
def test_status_and_health_tell_tables_jobs_and_problems(tmp_path: Path, tree: Path, command: str) -> None:
    run(tmp_path, "ingest", "--dir", str(tree))
    result = answer(tmp_path, command)
    assert result["tables"]["memory_transcript_entries"] == 6
    assert result["jobs"]["succeeded"] >= 1
    assert all(problem["hint"] for problem in result["problems"])
    assert "could not be understood" in run(tmp_path, "status").stdout


RULE = "We always run make lint before we commit, the pipeline rejects everything else."


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    """A conversation with a rule in it, and one of small talk."""
    folder = tmp_path / "rules" / "-code-tides"
    write(folder / f"{SESSION}.jsonl", claude(1, RULE) + claude(2, "Understood.", role="assistant"))
    other = "9" * 8 + SESSION[8:]
    write(folder / f"{other}.jsonl", claude(1, "hi", session=other) + claude(2, "Hi!", role="assistant", session=other))
    return tmp_path / "rules"


def test_process_and_consolidate_report_what_the_contract_names(tmp_path: Path, rules: Path) -> None:
    run(tmp_path, "ingest", "--dir", str(rules))
    done = answer(tmp_path, "process", "--now")
    assert done.keys() >= {"claimed", "succeeded", "succeeded_no_output", "failed", "skipped", "tokens"}
    assert (done["claimed"], done["succeeded"], done["succeeded_no_output"], done["tokens"]) == (2, 1, 1, 0)
    made = answer(tmp_path, "consolidate")
    assert made.keys() >= {"outcome", "added", "retained", "removed", "watermark"}
    assert made["outcome"] == "succeeded" and len(made["added"]) == 1 and made["watermark"]
    assert answer(tmp_path, "consolidate", "--now")["outcome"] == "unchanged"
    assert answer(tmp_path, "process", "--now")["claimed"] == 0
    files = [path for path in (tmp_path / "home" / "workspace").rglob("*") if path.is_file()]
    assert RULE in (tmp_path / "home" / "workspace" / "handbook.md").read_text()
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}
    status = answer(tmp_path, "status")
    assert status["memories"] == {"preference": 1} and status["kinds"]["consolidate"] == {"cooling_down": 1}


def test_process_tells_how_many_wait_for_the_next_run(tmp_path: Path, rules: Path) -> None:
    run(tmp_path, "ingest", "--dir", str(rules))
    done = run(tmp_path, "process", "--now", "--limit", "1").stdout
    assert "1 more to do: run it again, or with `--now` for all of them." in done
    assert "more to do" not in run(tmp_path, "process", "--now").stdout


def test_people_are_told_in_words(tmp_path: Path, rules: Path) -> None:
    assert "Nothing to consolidate yet" in start(tmp_path, "consolidate").stdout
    start(tmp_path, "ingest", "--dir", str(rules))
    assert "2 conversations processed: 1 with 1 memory" in start(tmp_path, "process", "--now").stdout
    assert "1 conversation added" in start(tmp_path, "consolidate", "--now").stdout
    assert "up to date" in start(tmp_path, "consolidate", "--now").stdout
    assert "0 jobs will be tried again" in start(tmp_path, "retry").stdout
    assert "memories: 1 preference" in start(tmp_path, "status").stdout


def test_wrong_calls_of_the_pipeline_change_nothing(tmp_path: Path) -> None:
    for arguments in (["process", "--limit", "0"], ["process", "extra"], ["consolidate", "--later"], ["retry", "x"]):
        done = run(tmp_path, *arguments)
        assert done.status == 2 and "--help" in done.stderr
    assert run(tmp_path, "process", RECOLLECT_MODEL="gpt").status == 2
    done = run(tmp_path, "process", RECOLLECT_ENABLED="false")
    assert done.status == 1 and "switched off" in done.stderr


def test_a_model_that_cannot_be_reached_is_a_failure_with_a_next_try(tmp_path: Path, rules: Path) -> None:
    model = {"RECOLLECT_MODEL": "openai:any", "RECOLLECT_MODEL_URL": "http://127.0.0.1:9/v1"}
    run(tmp_path, "ingest", "--dir", str(rules))
    done = run(tmp_path, "process", "--now", **model)
    assert done.status == 1 and "unavailable" in done.stderr
    status = run(tmp_path, "status", **model).stdout
    assert "backing_off" in status and "next try 20" in status
    assert "2 jobs" in run(tmp_path, "retry").stdout
    assert run(tmp_path, "process", "--now").status == 0, "and offline it works"


UNREACHABLE = {
    "RECOLLECT_EMBEDDER": "openai:any",
    "RECOLLECT_EMBEDDER_URL": "http://me:s3cr3tpw@127.0.0.1:9/v1?key=s3cr3tpw",
}


def test_an_embedding_endpoint_that_cannot_be_reached_hides_no_report(tmp_path: Path, rules: Path) -> None:
    taken = start(tmp_path, "ingest", "--dir", str(rules), **UNREACHABLE)
    assert taken.status == 0 and "4 new entries" in taken.stdout
    assert "vectors wait: openai:any" in taken.stderr and "127.0.0.1:9/v1" in taken.stderr
    done = start(tmp_path, "process", "--now", "--json", **UNREACHABLE)
    report = json.loads(done.stdout)
    assert (done.status, report["claimed"], report["failed"]) == (0, 2, 0)
    (problem,) = report["problems"]
    assert problem["key"] == "" and problem["reason"].startswith("vectors wait: ")
    again = start(tmp_path, "ingest", "--dir", str(rules), "--json", **UNREACHABLE)
    (problem,) = json.loads(again.stdout)["problems"]
    assert problem["path"] == "" and problem["reason"].startswith("vectors wait: ")
    shown = [each for told in (taken, done, again) for each in (told.stdout, told.stderr)]
    assert "s3cr3tpw" not in " ".join(shown)


@pytest.mark.parametrize(
    "url",
    [
        "https://me:pw1@llm.example/v1",
        "https://pw1@llm.example/v1",
        "https://me:a/pw1@llm.example/v1",
        "https://llm.example/v1?api_key=pw1&x=y",
    ],
)
def test_config_shows_addresses_without_credentials(tmp_path: Path, url: str) -> None:
    environ = {"RECOLLECT_MODEL_URL": url, "RECOLLECT_EMBEDDER_URL": url}
    for shown in (run(tmp_path, "config", **environ).stdout, json.dumps(answer(tmp_path, "config", **environ))):
        assert shown.count("llm.example/v1") == 2 and "pw1" not in shown
    database = "postgresql:///db?user=me&password=pw1pw1&host=/run"
    assert answer(tmp_path, "config", RECOLLECT_DATABASE=database)["keys"]["database"]["value"] == (
        "postgresql:///db?user=me&password=[redacted]&host=/run"
    )
    assert "pw1" not in run(tmp_path, "config", RECOLLECT_DATABASE="host=db user=me password=pw1pw1").stdout


def test_config_shows_each_value_and_its_origin_without_the_password(tmp_path: Path) -> None:
    write(tmp_path / "home" / "config.toml", b"conversation_gap_minutes = 5\n")
    url = "postgresql://me:verysecret1@db/x"
    keys = answer(tmp_path, "config", RECOLLECT_DATABASE=url)["keys"]
    assert keys["conversation_gap_minutes"] == {"value": 5, "from": "config.toml"}
    assert keys["database"]["from"] == "RECOLLECT_DATABASE"
    assert keys["enabled"] == {"value": True, "from": "default"}
    assert "verysecret1" not in run(tmp_path, "config", RECOLLECT_DATABASE=url).stdout
    assert "verysecret1" not in json.dumps(keys)


@pytest.mark.parametrize(
    ("arguments", "environ", "words"),
    [
        (["nonsense"], {}, "nonsense"),
        (["ingest", "--fil", "x"], {}, "--fil"),
        (["ingest", "--file", "missing"], {}, "no such file"),
        (["ingest", "--file", "a", "--dir", "b"], {}, "exclude"),
        (["ingest", "--source", "cluade"], {}, "claude-code"),
        (["ingest", "--dir", ""], {}, "empty path"),
        (["remember", "Use tabs.", "--everywhere", "--project", "."], {}, "exclude"),
        (["ingest", ""], {}, "empty path"),
        (["conversations", "--project", ""], {}, "no project"),
        (["search", "x", "--project", ""], {}, "Name a project"),
        (["context", "--project", ""], {}, "no project"),
        (["context", "--project", "", "--prompt", "x"], {}, "Name a project"),
        (["timeline", "--project", ""], {}, "no project"),
        (["remember", "Use tabs.", "--project", ""], {}, "no project"),
        (["conversations", "--status", "done"], {}, "active"),
        (["conversations", "--limit", "0"], {}, "0"),
        (["status"], {"RECOLLECT_CONVERSATION_GAP": "3"}, "conversation_gap_minutes"),
        (["status"], {"RECOLLECT_DATABASE": "mysql://x"}, "postgresql://"),
        (["status", "--agent-id", "../x"], {}, "agent_id"),
        (["conversations", "--limit", "9" * 23], {}, "9" * 23),
        (["timeline", "--limit", "9" * 23], {}, "9" * 23),
        (["forget", "--session", "a\udcffb", "--reason", "x", "--yes"], {}, "not UTF-8"),
    ],
)
def test_a_wrong_call_is_status_2_and_says_what_is_wrong(
    tmp_path: Path, arguments: list[str], environ: dict[str, str], words: str
) -> None:
    done = run(tmp_path, *arguments, **environ)
    assert (done.status, done.stdout) == (2, "")
    assert words in done.stderr
    as_json = run(tmp_path, *arguments, "--json", **environ)
    assert as_json.status == 2
    error = json.loads(as_json.stdout)["error"]
    assert error.keys() == {"kind", "message", "hint"}
    assert words in error["message"] + error["hint"]
    assert "Traceback" not in done.stderr + as_json.stderr


def test_a_damaged_database_is_status_1_with_a_hint(tmp_path: Path, tree: Path) -> None:
    write(tmp_path / "home" / "recollect.db", b"this is no database" * 1000)
    done = run(tmp_path, "status", "--json")
    assert done.status == 1
    assert json.loads(done.stdout)["error"]["kind"] == "StoreDamaged"


def test_switched_off_is_status_1_and_stores_nothing(tmp_path: Path, tree: Path) -> None:
    done = run(tmp_path, "ingest", "--dir", str(tree), RECOLLECT_ENABLED="false")
    assert done.status == 1
    assert "switched off" in done.stderr
    assert answer(tmp_path, "conversations") == []


def test_a_problem_with_one_file_is_status_1_and_the_others_are_taken(tmp_path: Path, tree: Path) -> None:
    (tree / "broken.jsonl").symlink_to(tree / "missing")
    done = run(tmp_path, "ingest", "--dir", str(tree))
    assert done.status == 1
    assert "broken.jsonl" in done.stderr
    assert "6 new entries" in done.stdout


def test_a_pipe_that_closes_early_is_no_error(tmp_path: Path, tree: Path) -> None:
    for number in range(300):
        session = f"{number:08d}-0000-4000-8000-000000000000"
        write(tree / "-p" / f"{session}.jsonl", claude(1, "x", session=session))
    run(tmp_path, "ingest", "--dir", str(tree))
    env = {**os.environ, "HOME": str(tmp_path), "RECOLLECT_HOME": str(tmp_path / "home")}
    for arguments in (["conversations"], ["conversations", "--json"], ["--help"]):
        child = subprocess.Popen([*RECOLLECT, *arguments], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert child.stdout is not None and child.stderr is not None
        child.stdout.close()
        assert child.stderr.read() == b""
        child.stderr.close()
        assert child.wait() == 0


@pytest.mark.parametrize("arguments", [["status"], ["status", "--json"], ["search", "x"], ["nonsense", "--json"]])
def test_closed_streams_are_no_reason_to_fail(tmp_path: Path, arguments: list[str]) -> None:
    env = {**os.environ, "HOME": str(tmp_path), "RECOLLECT_HOME": str(tmp_path / "home")}
    for closed, silent in ((">&-", False), ("<&- >&-", False), (">&- 2>&-", True)):
        command = ["sh", "-c", f'"$@" {closed}', "sh", *RECOLLECT, *arguments]
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == (2 if "nonsense" in arguments else 0) and done.stderr == ""
        assert done.stdout == "" or not silent


def test_an_error_that_standard_output_does_not_take_is_said_in_words(tmp_path: Path) -> None:
    env = {**os.environ, "HOME": str(tmp_path), "RECOLLECT_HOME": str(tmp_path / "home")}
    reader, writer = os.pipe()
    os.close(reader)
    with Path("/dev/full").open("wb") as full:
        for out, arguments, status, words in (
            (full, ["nonsense", "--json"], 2, "nonsense"),
            (writer, ["nonsense", "--json"], 2, "nonsense"),
            (full, ["status", "--json"], 1, "No space left"),
            (full, ["status"], 1, "No space left"),
        ):
            done = subprocess.run(
                [*RECOLLECT, *arguments],
                env=env,
                stdout=out,
                stderr=subprocess.PIPE,
                text=True,
                timeout=60,
                check=False,
            )
            assert done.returncode == status and words in done.stderr
            assert "Traceback" not in done.stderr and "ignored" not in done.stderr
    os.close(writer)


@pytest.mark.parametrize("arguments", [["conversations"], ["remember", "Use tabs."]])
def test_a_home_that_is_nobodys_is_a_wrong_call(tmp_path: Path, arguments: list[str]) -> None:
    done = run(tmp_path, *arguments, "--project", "~nobody-of-that-name/x")
    assert done.status == 2 and "Traceback" not in done.stderr
    assert "no such user" in done.stderr or "Set HOME" in done.stderr


def test_nobodys_machine_is_a_wrong_call(tmp_path: Path) -> None:
    code = (
        "import pwd, sys\n"
        "def nobody(number): raise KeyError(number)\n"
        "pwd.getpwuid = nobody\n"
        "from recollect.surfaces.cli import run\n"
        "sys.exit(run(sys.argv[1:]))\n"
    )
    env = {name: value for name, value in os.environ.items() if name not in ("HOME", "RECOLLECT_HOME")}
    for arguments in (["status"], ["ingest", "--json"]):
        command = [sys.executable, "-c", code, *arguments]
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 2 and "Set HOME" in done.stdout + done.stderr and "Traceback" not in done.stderr


def test_a_full_disk_is_a_clear_error_and_loses_nothing(tmp_path: Path, tree: Path) -> None:
    lines = b"".join(claude(n, f"m{n} " + os.urandom(300).hex()) for n in range(10, 4000))
    append(tree / "-work-tides" / f"{SESSION}.jsonl", lines)

    def small_files() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, 400_000))

    env = {**os.environ, "HOME": str(tmp_path), "RECOLLECT_HOME": str(tmp_path / "home")}
    command = [*RECOLLECT, "ingest", "--dir", str(tree), "--json"]
    done = subprocess.run(command, env=env, capture_output=True, text=True, preexec_fn=small_files, check=False)
    assert done.returncode == 1
    assert json.loads(done.stdout)["error"]["kind"] in {"StoreFull", "StoreError"}
    assert "Traceback" not in done.stderr
    assert answer(tmp_path, "ingest", "--dir", str(tree))["entries"] == 6 + 3990


def test_everything_under_home_is_for_its_owner_only(tmp_path: Path, tree: Path) -> None:
    run(tmp_path, "ingest", "--dir", str(tree))
    (tree / "-work-tides" / f"{SESSION}.jsonl").write_bytes(talk(1, 2))
    run(tmp_path, "ingest", "--dir", str(tree), RECOLLECT_LOG_LEVEL="debug")
    assert "cut off or replaced" in (tmp_path / "home" / "logs" / "recollect.log").read_text()
    for path in [tmp_path / "home", *(tmp_path / "home").rglob("*")]:
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path


def test_without_arguments_every_agents_folder_is_read(tmp_path: Path) -> None:
    write(tmp_path / ".claude" / "projects" / "-work-tides" / f"{SESSION}.jsonl", talk(1, 6))
    write(tmp_path / "elsewhere" / "projects" / "-p" / f"{SESSION}.jsonl", talk(1, 8))
    assert answer(tmp_path, "ingest")["entries"] == 6
    assert answer(tmp_path, "ingest", CLAUDE_CONFIG_DIR=str(tmp_path / "elsewhere"))["entries"] == 2
    assert answer(tmp_path, "ingest", "--source", "codex")["files"] == 0


def test_nothing_found_says_where_it_looked(tmp_path: Path) -> None:
    done = run(tmp_path, "ingest")
    assert done.status == 0
    assert ".claude/projects" in done.stdout
    told = run(tmp_path, "ingest", "--source", "pi").stdout
    assert ".pi/agent/sessions" in told and ".claude" not in told


def test_a_terminal_gets_a_progress_bar_and_a_pipe_does_not(tmp_path: Path, tree: Path) -> None:
    assert start(tmp_path, "ingest", "--dir", str(tree)).stderr == ""
    ours, theirs = pty.openpty()
    env = {**os.environ, "HOME": str(tmp_path), "RECOLLECT_HOME": str(tmp_path / "home"), "TERM": "xterm"}
    command = [*RECOLLECT, "ingest", "--dir", str(tree), "--reimport"]
    child = subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=theirs)
    os.close(theirs)
    shown = b""
    while select.select([ours], [], [], 20)[0]:
        try:
            shown += os.read(ours, 4096)
        except OSError:
            break
    child.wait()
    os.close(ours)
    assert b"reading" in shown


@pytest.mark.parametrize("columns", [40, 80])
def test_no_column_is_lost_on_a_narrow_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], columns: int
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", str(columns))
    row = ("2", "2026-11-15 13:49", "5", "archived", "claude-code", "example.com/you/billing", "bd172035")
    table(("id", "last message", "messages", "status", "source", "project", "session"), [row])
    shown = capsys.readouterr().out
    assert "session" in shown and all(cell in shown for cell in row if cell != "example.com/you/billing"), shown


@pytest.mark.parametrize("command", ["status", "conversations", "timeline", "open nothing", "show nothing"])
def test_reading_commands_are_quick(tmp_path: Path, tree: Path, command: str) -> None:
    """Not a timed test of the machine: only that no command imports what it does not need."""
    run(tmp_path, "ingest", "--dir", str(tree))
    probe = (
        "import sys\n"
        "from recollect.surfaces.cli import run\n"
        f"run([*'{command}'.split(), '--json'])\n"
        "heavy = {'psycopg', 'rich', 'pydantic', 'watchfiles', 'zstandard', 're2', 'asyncio', 'numpy', 'onnxruntime'}\n"
        f"heavy |= {{'recollect.redact'}} if '{command}' == 'status' else set()\n"
        "print(sorted(heavy & set(sys.modules)), file=sys.stderr)\n"
    )
    env = {**os.environ, "HOME": str(tmp_path), "RECOLLECT_HOME": str(tmp_path / "home")}
    done = subprocess.run([sys.executable, "-c", probe], env=env, capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[]"


def test_to_name_a_scope_no_vectors_are_needed() -> None:
    code = "import sys; from recollect import ALL_PROJECTS; sys.exit('numpy' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_folder_that_is_gone_is_told(tmp_path: Path) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    env = {**os.environ, "HOME": str(tmp_path), "RECOLLECT_HOME": str(tmp_path / "home")}
    command = ["sh", "-c", f'cd {folder} && rmdir {folder} && "$@"', "sh", *RECOLLECT, "remember", "Use tabs."]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1 and "the current folder is gone" in done.stderr


def test_a_database_that_is_gone_is_not_taken_for_a_new_home(tmp_path: Path, rules: Path) -> None:
    assert "run `recollect ingest`" in run(tmp_path, "status").stdout
    run(tmp_path, "ingest", "--dir", str(rules))
    run(tmp_path, "process", "--now")
    for file in (tmp_path / "home").glob("recollect.db*"):
        file.unlink()
    told = run(tmp_path, "status").stdout
    assert "run `recollect reindex`" in told and "run `recollect ingest`" not in told


def test_a_question_that_is_answered_with_no_changes_nothing(tmp_path: Path, tree: Path) -> None:
    run(tmp_path, "ingest", "--dir", str(tree))
    env = {**os.environ, "HOME": str(tmp_path), "RECOLLECT_HOME": str(tmp_path / "home")}
    ours, theirs = pty.openpty()
    command = [*RECOLLECT, "forget", "--session", SESSION, "--reason", "x"]
    os.write(ours, b"n\n")
    child = subprocess.Popen(command, env=env, stdin=theirs, stdout=subprocess.DEVNULL, stderr=theirs)
    os.close(theirs)
    child.wait(60)
    told = os.read(ours, 4096).decode()
    os.close(ours)
    assert child.returncode == 1 and "nothing more was done" in told and "Run it again" not in told
    assert len(answer(tmp_path, "conversations")) == 1


def test_a_server_that_does_not_run_is_told_once_with_the_reason(tmp_path: Path) -> None:
    environ = {"RECOLLECT_DATABASE": "postgresql://me:s3cr3tpw@127.0.0.1:9/x", "RECOLLECT_BUSY_TIMEOUT_SECONDS": "1"}
    done = start(tmp_path, "status", **environ)
    assert done.status == 1 and "refused" in done.stderr and "s3cr3tpw" not in done.stderr
    assert "pool-1" not in done.stderr and len(done.stderr.splitlines()) == 2


def test_names_of_files_are_no_commands_to_the_terminal(tmp_path: Path, tree: Path) -> None:
    (tree / "bro\x07ken.jsonl").symlink_to(tree / "missing")
    done = run(tmp_path, "ingest", "--dir", str(tree))
    assert "could not read" in done.stderr and "\x07" not in done.stderr


def test_help_shows_examples_line_by_line(tmp_path: Path) -> None:
    for command in ("init", "serve"):
        shown = run(tmp_path, command, "--help").stdout
        assert "\\b" not in shown and "Examples:\n" in shown and f"\n    recollect {command} " in shown


def test_ctrl_c_is_status_130_without_a_traceback(tmp_path: Path) -> None:
    for number in range(100):
        session = f"{number:08d}-0000-4000-8000-000000000000"
        write(tmp_path / "big" / "-p" / f"{session}.jsonl", talk(1, 500, session))
    env = {
        **os.environ,
        "HOME": str(tmp_path),
        "RECOLLECT_HOME": str(tmp_path / "home"),
        "RECOLLECT_INGEST_WORKERS": "1",
    }
    command = [*RECOLLECT, "ingest", "--dir", str(tmp_path / "big")]
    with open_memory(tmp_path / "home") as memory:
        streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        child = subprocess.Popen(command, env=env, start_new_session=True, **streams)
        while child.poll() is None:  # until it is at work
            time.sleep(0.002)
            with memory.database.read() as tx:
                if tx.row("SELECT 1 FROM memory_file_states WHERE status = 'ingesting'"):
                    break
    os.killpg(child.pid, signal.SIGINT)
    _, err = child.communicate(timeout=30)
    assert b"Traceback" not in err
    assert child.returncode == 130
    assert b"Run it again" in err
    assert answer(tmp_path, "status")["jobs"].get("running", 0) == 0


def test_a_session_is_known_by_the_beginning_that_the_table_shows(tmp_path: Path) -> None:
    other = f"{SESSION[:8]}-9999-4333-8444-555555555555"
    folder = tmp_path / "tree" / "-work-tides"
    write(folder / f"{SESSION}.jsonl", talk(1, 6))
    run(tmp_path, "ingest", "--dir", str(tmp_path / "tree"))
    assert answer(tmp_path, "pause", "--session", SESSION[:8])["id"] == SESSION
    assert answer(tmp_path, "pause", "--session", "not-taken-in-yet")["id"] == "not-taken-in-yet"
    write(folder / f"{other}.jsonl", claude(50, "hi", session=other))
    run(tmp_path, "ingest", "--dir", str(tmp_path / "tree"))
    done = run(tmp_path, "forget", "--session", SESSION[:8], "--yes")
    assert done.status == 2 and other in done.stderr and SESSION in done.stderr
    done = run(tmp_path, "forget", "--conversation", SESSION[:8], "--yes")
    assert done.status == 2 and f"{other}@" in done.stderr and f"{SESSION}@" in done.stderr
    assert answer(tmp_path, "forget", "--conversation", other[:18], "--yes")["entries"] == 1
    assert answer(tmp_path, "forget", "--session", SESSION[:18], "--yes")["entries"] == 6


def test_process_says_that_what_is_ready_is_too_old(tmp_path: Path) -> None:
    write(tmp_path / "tree" / "-work-tides" / f"{SESSION}.jsonl", talk(1, 8))
    run(tmp_path, "ingest", "--dir", str(tmp_path / "tree"))
    assert answer(tmp_path, "conversations")[0]["status"] == "ready"
    assert "older than 30 days" in run(tmp_path, "process").stdout
    run(tmp_path, "process", "--now")
    assert "no conversation fell silent" in run(tmp_path, "process").stdout


@pytest.mark.parametrize("arguments", [["search", "x"], ["timeline"], ["conversations"], ["context"]])
def test_an_unknown_project_is_a_mistake_in_every_command(tmp_path: Path, arguments: list[str]) -> None:
    for name in ("~/nonexistent", "/nope", "github.com/acme/nope"):
        done = run(tmp_path, *arguments, "--project", name, "--json")
        assert done.status == 2 and f"no project `{name}`" in done.stdout, (name, done)
    (tmp_path / "new").mkdir()
    assert run(tmp_path, *arguments, "--project", str(tmp_path / "new"), "--json").status == 0


def test_what_is_no_regular_file_is_called_so(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for arguments in (["ingest", "--file", str(tmp_path / "pipe")], ["ingest", "--file", "/dev/zero"]):
        done = run(tmp_path, *arguments)
        assert done.status == 2 and "not a regular file" in done.stderr, done
    assert "not a regular file" in run(tmp_path, "import", str(tmp_path)).stderr
    assert "no such file" in run(tmp_path, "import", str(tmp_path / "missing")).stderr


def test_status_lists_paused_sessions(tmp_path: Path) -> None:
    assert answer(tmp_path, "status")["paused"] == []
    run(tmp_path, "pause", "--session", "typo-id")
    assert answer(tmp_path, "status")["paused"] == ["typo-id"]
    assert "session typo-id: paused" in run(tmp_path, "status").stdout
    run(tmp_path, "pause", "--session", "typo-id", "--resume")
    assert answer(tmp_path, "status")["paused"] == []


def test_commands_work_where_the_locale_is_not_utf8(tmp_path: Path) -> None:
    ascii_only = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
    environ = {**os.environ, **ascii_only, "HOME": str(tmp_path), "RECOLLECT_HOME": str(tmp_path / "home")}
    for arguments, wanted in (
        (["status", "--json"], b'"tables"'),
        (["remember", "Jürgen lives in Zürich → by the lake."], b"rgen lives in Z"),
        (["search", "Zürich", "--all-projects"], b"rgen lives in Z"),
        (["doctor"], b"no problems"),
    ):
        command = [sys.executable, "-m", "recollect", *arguments]
        done = subprocess.run(command, env=environ, cwd=tmp_path, capture_output=True, check=False)
        assert done.returncode == 0 and wanted in done.stdout, (arguments, done)
