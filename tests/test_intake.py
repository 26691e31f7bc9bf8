"""Which files are read, and what is kept of records that are not as they should be; from files to the store."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Any

import pytest
import zstandard

from recollect.app import Memory, open_memory
from recollect.errors import UsageError
from recollect.ingest import tail
from recollect.ingest.scan import Ignore, scan
from tests.conftest import Place
from tests.transcripts import SESSION, append, claude, conversations, entries, stamp, talk, texts, write

BOM = b"\xef\xbb\xbf"
THREAD = "0199aaaa-bbbb-7ccc-8ddd-eeeeffff0001"
LONG = [{"type": "image", "source": {"data": "A" * 100_000}}, {"type": "text", "text": "See."}]
DAY = Path("2026/03/02")


def line(value: Any) -> bytes:
    return json.dumps(value).encode() + b"\n"


def meta(**more: Any) -> bytes:
    payload = {"id": THREAD, "cwd": "/code/x", "source": "cli"} | more
    return line({"timestamp": stamp(0), "type": "session_meta", "payload": payload})


def item(number: int, text: str, **more: Any) -> bytes:
    payload = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}
    return line({"timestamp": stamp(number), "type": "response_item", "payload": payload} | more)


def pi(number: int, text: str, at: object = None, **more: Any) -> bytes:
    message = {"role": "user", "content": text, "timestamp": 1_772_442_000_000 + number * 1000} | more
    record = {"type": "message", "id": f"n{number}", "parentId": f"n{number - 1}" if number > 1 else None}
    return line(record | {"timestamp": at or stamp(number), "message": message})


def header() -> bytes:
    return line({"type": "session", "version": 3, "id": "s1", "timestamp": stamp(0), "cwd": "/code/x"})


@pytest.mark.parametrize(
    ("head", "rest"),
    [
        (claude(1, "", message={"role": "user", "content": LONG}), talk(2, 3)),
        (line({"type": "of-tomorrow"}) + claude(1, "", message={"role": "user", "content": LONG}), talk(2, 3)),
        (meta(base_instructions={"text": "x" * 90_000}), item(1, "See.") + item(2, "message 2")),
        (meta(base_instructions={"text": "x" * (17 << 20)}), item(1, "See.") + item(2, "message 2")),
    ],
    ids=["a picture", "a picture behind an unknown record", "instructions", "instructions too long to hold"],
)
@pytest.mark.parametrize("suffix", [".jsonl", ".jsonl.zst"])
def test_a_file_that_begins_with_a_long_line_is_read(
    memory: Memory, root: Path, suffix: str, head: bytes, rest: bytes
) -> None:
    data = head + rest
    write(root / "-p" / f"{SESSION}{suffix}", zstandard.compress(data) if suffix.endswith("zst") else data)
    assert memory.ingest(folder=root).files == 1
    assert texts(memory)[:2] == ["See.", "message 2"]


def test_a_line_too_long_to_hold_tells_nothing_of_the_format(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tail, "LONGEST_LINE", 50)
    monkeypatch.setattr(tail, "CHUNK", 30)
    path = write(tmp_path / "x.jsonl", BOM + b"a\n \n" + b"x" * 200 + b"\nb\n")
    with tail.Transcript(path) as transcript:
        assert list(transcript.head(7)) == [[b"a"]]
        assert [each for run in transcript.head(100) for each in run] == [b"a", b"b"]


def test_a_first_line_that_is_not_finished_is_looked_at_once_until_the_file_grows(memory: Memory, root: Path) -> None:
    data = claude(1, "", message={"role": "user", "content": LONG})
    path = write(root / "-p" / f"{SESSION}.jsonl", data[:-50])
    memory.ingest(folder=root)
    with memory.database.read() as tx:
        assert tx.rows("SELECT source FROM memory_file_states") == [("unknown",)]
    append(path, data[-50:])
    assert memory.ingest(folder=root).entries == 1


@pytest.mark.parametrize("mark", [b"", BOM])
def test_a_file_of_one_record_without_a_newline_is_read(memory: Memory, root: Path, mark: bytes) -> None:
    path = write(root / "-p" / f"{SESSION}.jsonl", mark + claude(1, "message 1").rstrip())
    assert memory.ingest(folder=root).entries == 1
    append(path, b"\n" + talk(2, 2))
    assert memory.ingest(folder=root).entries == 1
    assert texts(memory) == ["message 1", "message 2"]


def test_a_byte_order_mark_costs_nothing(memory: Memory, root: Path) -> None:
    data = BOM + (meta(source={"subagent": "review"}) + item(1, "not the user")).replace(b"\n", b"\r\n")
    write(root / DAY / f"rollout-2026-03-02T09-00-00-{THREAD}.jsonl", data)
    report = memory.ingest(folder=root)
    assert (report.files, report.malformed, texts(memory)) == (1, 0, [])


HALF = claude(2, "half of it")[:60]


@pytest.mark.parametrize(
    ("broken", "kept", "told"),
    [
        (talk(2, 2).rstrip() + talk(3, 3), [2, 3], 0),
        (talk(2, 2).rstrip() + b" " + talk(3, 3).rstrip() + talk(4, 4), [2, 3, 4], 0),
        (HALF + talk(3, 3), [3], 1),
        (HALF + talk(3, 3).rstrip() + talk(4, 4), [3, 4], 1),
        (claude(2, "", message={"content": [{"type": "text", "text": "x"}]})[:-3] + talk(3, 3), [3], 1),
        (b"\xff" + HALF + talk(3, 3), [3], 1),
        (talk(2, 2).rstrip() + b"trash\n", [2], 1),
        (talk(2, 2).rstrip() + b"{}\n", [2], 1),
        (HALF + b"\n", [], 1),
    ],
)
def test_whole_records_on_a_broken_line_are_kept(
    memory: Memory, root: Path, broken: bytes, kept: list[int], told: int
) -> None:
    path = write(root / "-p" / f"{SESSION}.jsonl", talk(1, 1) + broken + talk(9, 9))
    report = memory.ingest(folder=root)
    assert texts(memory) == [f"message {number}" for number in (1, *kept, 9)]
    assert [each.line_number for each in report.malformed_lines] == [2] * told
    data = path.read_bytes()
    for row in entries(memory):
        assert data[row[9] :].startswith(b'{"type"'), "each has the place where its own record stands"


def test_a_hostile_line_costs_no_more_than_its_length(memory: Memory, root: Path) -> None:
    nested = b'{"type":[' * 400 + b"1," * 500_000 + b"\n"
    write(root / "-p" / f"{SESSION}.jsonl", talk(1, 1) + nested + b'{"type":' * 500_000 + b"\n" + talk(2, 2))
    started = time.process_time()
    assert memory.ingest(folder=root).entries == 2
    assert time.process_time() - started < 3


@pytest.mark.parametrize(
    ("name", "before", "bad", "at"),
    [
        (f"-p/{SESSION}.jsonl", talk(1, 1), claude(2, "kept", timestamp="Thu Jan 1"), 60),
        (
            f"{DAY}/rollout-2026-03-02T09-00-00-{THREAD}.jsonl",
            meta() + item(60, "a"),
            item(9, "kept", timestamp="x"),
            60,
        ),
        ("-p/x_s1.jsonl", header() + pi(1, "a"), pi(2, "kept", at="yesterday"), 2),
        ("-p/x_s1.jsonl", header() + pi(1, "a"), pi(2, "kept", at="yesterday", timestamp="noon"), 1),
    ],
    ids=["claude-code", "codex", "pi", "pi, both times"],
)
def test_a_message_whose_time_cannot_be_read_is_kept_and_told(
    memory: Memory, root: Path, name: str, before: bytes, bad: bytes, at: int
) -> None:
    write(root / name, before + bad)
    report = memory.ingest(folder=root)
    told = {row[4]: row[6] for row in entries(memory)}
    assert told["kept"] == stamp(at)
    assert [each.reason.partition(":")[0] for each in report.malformed_lines] == ["kept with another time"]


def test_a_compressed_file_that_is_damaged_is_reported_and_tried_again(memory: Memory, root: Path) -> None:
    whole = zstandard.ZstdCompressor(write_checksum=True).compress(
        b"".join(claude(n, f"message {n} {hash((n, 'x')):x}" * 9) for n in range(1, 300))
    )
    bad = bytearray(whole)
    bad[len(bad) // 2] ^= 0xFF
    damaged = write(root / "-p" / f"{SESSION}.jsonl.zst", bytes(bad))
    other = write(root / "-q" / "other.jsonl.zst", b"not compressed at all" * 100)
    for _ in range(2):
        report = memory.ingest(folder=root)
        assert {problem.path for problem in report.problems} == {str(damaged), str(other)}
    damaged.write_bytes(whole)
    other.unlink()
    assert memory.ingest(folder=root).problems == []
    assert len(texts(memory)) == 299


def test_what_stands_before_the_damage_is_kept(memory: Memory, root: Path) -> None:
    said = [
        b"".join(claude(10 * n + each, f"m{each} " * 50_000) for each in range(10)) for n in range(4)
    ]  # 1.5 MB each
    frames = [zstandard.ZstdCompressor(write_checksum=True).compress(each) for each in said]
    bad = bytearray(frames[2])
    bad[len(bad) // 2] ^= 0xFF
    file = write(root / "-p" / f"{SESSION}.jsonl.zst", b"".join([*frames[:2], bytes(bad), frames[3]]))
    assert [problem.path for problem in memory.ingest(folder=root).problems] == [str(file)]
    assert 0 < len(texts(memory)) <= 20
    file.write_bytes(b"".join(frames))
    assert memory.ingest(folder=root).problems == []
    assert len(texts(memory)) == 40


def test_a_compressed_file_may_end_anywhere(tmp_path: Path) -> None:
    data = zstandard.compress(talk(1, 3)) + zstandard.compress(talk(4, 6))
    path = tmp_path / "x.jsonl.zst"
    for size in range(len(data) + 1):
        path.write_bytes(data[:size])
        with tail.Transcript(path) as transcript:
            found = [each for run in transcript.lines(0, size) for each in run.lines]
        assert found == talk(1, 6).splitlines()[: len(found)]
    assert len(found) == 6


def test_a_folder_of_many_files_is_scanned_in_no_more_time_than_they_take(tmp_path: Path) -> None:
    for number in range(12_000):
        (tmp_path / f"{number}.jsonl").touch()
    write(tmp_path / "1.jsonl.zst", b"")
    write(tmp_path / "x.jsonl.zst", b"")
    started = time.process_time()
    found = [each.path for each in scan(tmp_path, Ignore([], ""), None, [])]
    assert time.process_time() - started < 0.5
    assert len(found) == 12_001 and str(tmp_path / "x.jsonl.zst") in found


@pytest.mark.parametrize(
    ("cwd", "read"),
    [("/home/u/my.app", False), ("/home/u/my.app/deep", False), ("/home/u/my-app", True), (None, False)],
)
def test_a_project_that_is_off_does_not_silence_another_whose_folder_has_the_same_name(
    database_url: Place, root: Path, cwd: str | None, read: bool
) -> None:
    title = line({"type": "custom-title", "customTitle": "x", "sessionId": SESSION})
    write(root / "-home-u-my-app" / f"{SESSION}.jsonl", title + claude(1, "hi", cwd=cwd))
    with open_memory(database_url.home, database=database_url.url, disabled_projects=["/home/u/my.app"]) as memory:
        memory.ingest(folder=root)
        assert texts(memory) == ["hi"] * read


def test_what_recollect_started_is_known_where_its_home_lies_behind_a_link(
    database_url: Place, root: Path, tmp_path: Path
) -> None:
    real = tmp_path / "real"
    real.mkdir()
    database_url.home.symlink_to(real)
    write(root / "-p" / f"{SESSION}.jsonl", claude(1, "own", cwd=str(real / "run")))
    with open_memory(database_url.home, database=database_url.url) as memory:
        memory.ingest(folder=root)
        assert texts(memory) == []


def test_a_folder_above_an_agent_s_own_gives_its_files_the_same_names(memory: Memory, tmp_path: Path) -> None:
    path = write(tmp_path / ".claude" / "projects" / "-p" / f"{SESSION}.jsonl", talk(1, 5))
    memory.ingest()
    append(path, talk(6, 6))
    assert memory.ingest(folder=tmp_path / ".claude").entries == 1
    append(path, talk(7, 7))
    assert memory.ingest(folder=path.parent).entries == 1
    assert memory.ingest().files == 0
    assert [(row[0], row[3]) for row in conversations(memory)] == [(f"-p/{SESSION}.jsonl", 7)]


@pytest.mark.parametrize("first", ["projects", "projects-backup"])
def test_of_a_file_and_its_backup_that_are_both_read_the_longer_counts(
    database_url: Place, tmp_path: Path, first: str
) -> None:
    _, url, home = database_url
    for name, last in (("projects", 6), ("projects-backup", 3)):
        write(tmp_path / name / "-p" / f"{SESSION}.jsonl", talk(1, last))
    folders = sorted(("projects", "projects-backup"), key=lambda name: name != first)
    roots = {"claude-code": [str(tmp_path / name) for name in folders]}
    with open_memory(home, database=url, roots=roots) as memory:
        assert memory.ingest().entries == 6
        assert memory.ingest().files == memory.ingest().files == 0


def test_files_named_from_below_have_the_names_they_have_from_above(
    memory: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    below = tmp_path / "deep" / "er"
    below.mkdir(parents=True)
    monkeypatch.chdir(below)
    for name in ("p1", "p2"):
        write(tmp_path / "deep" / f"{name}.jsonl", claude(1, name, session=name, uuid=name))
        memory.ingest(file=Path(f"../{name}.jsonl"))
    memory.ingest(file=Path("../p1.jsonl"), reimport=True)
    assert memory.ingest(file=tmp_path / "deep" / "p1.jsonl").files == 0
    assert sorted(texts(memory)) == ["p1", "p2"]


@pytest.mark.parametrize("below", ["", "/deep"])
def test_a_project_that_is_off_is_off_by_the_name_behind_a_link_too(
    database_url: Place, root: Path, tmp_path: Path, below: str
) -> None:
    real = tmp_path / "real"
    real.mkdir()
    (tmp_path / "link").symlink_to(real)
    write(root / "-p" / f"{SESSION}.jsonl", claude(1, "off", cwd=f"{real}{below}"))
    off = [str(tmp_path / "link")]
    with open_memory(database_url.home, database=database_url.url, disabled_projects=off) as memory:
        memory.ingest(folder=root)
        assert texts(memory) == []


def test_a_project_that_is_off_by_its_id_is_off_however_its_remote_is_written(
    database_url: Place, root: Path, tmp_path: Path
) -> None:
    write(tmp_path / "api/.git/config", b'[remote "origin"]\n\turl = git@GitHub.com:Acme/API.git\n')
    write(root / "-p" / f"{SESSION}.jsonl", claude(1, "off", cwd=str(tmp_path / "api")))
    off = ["github.com/acme/api"]
    with open_memory(database_url.home, database=database_url.url, disabled_projects=off) as memory:
        memory.ingest(folder=root)
        assert texts(memory) == []


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"disabled_projects": ["~nobody-of-that-name/x"]}, "no such user"),
        ({"ignore": ["~nobody-of-that-name/**"]}, "no such user"),
        ({"roots": {"claude_code": ["/x"]}}, "did you mean `claude-code`?"),
    ],
)
def test_a_setting_that_would_silently_switch_nothing_is_refused(
    tmp_path: Path, settings: dict[str, Any], told: str
) -> None:
    with open_memory(tmp_path / "home", **settings) as memory, pytest.raises(UsageError, match=re.escape(told)):
        memory.ingest()


def test_a_single_file_that_is_no_transcript_is_told_and_one_that_is_unchanged_is_not(
    memory: Memory, tmp_path: Path
) -> None:
    path = write(tmp_path / "settings.json", b'{"model": "x"}\n')
    good = write(tmp_path / f"{SESSION}.jsonl", talk(1, 3))
    for _ in range(2):
        (problem,) = memory.ingest(file=path).problems
        assert (problem.path, problem.reason) == (str(path), "no transcript of a known agent")
        assert memory.ingest(file=good).problems == []
    assert memory.ingest(file=write(tmp_path / "empty.jsonl", b"")).problems == []
