"""Reading lines from an offset: any content, any growth, plain and compressed."""

from __future__ import annotations

from pathlib import Path

import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from recollect.ingest import tail
from recollect.ingest.tail import Transcript

LINES = st.lists(st.binary(max_size=60).map(lambda line: line.replace(b"\n", b"").replace(b"}", b")")), max_size=30)


def read(path: Path, start: int) -> tuple[list[tuple[int, bytes | None]], int]:
    """(offset, line) pairs, and where reading ended."""
    got: list[tuple[int, bytes | None]] = []
    end = start
    with Transcript(path) as transcript:
        for lines in transcript.lines(start, path.stat().st_size):
            offset = lines.start
            for line in lines.lines:
                got.append((offset, line))
                offset += (lines.skipped if line is None else len(line)) + 1
            end = lines.end
            assert offset == end
    return got, end


@pytest.mark.parametrize("suffix", [".jsonl", ".jsonl.zst"])
@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    lines=LINES, rest=st.binary(max_size=20), cuts=st.lists(st.integers(0, 2000), max_size=6), chunk=st.integers(1, 70)
)
def test_every_complete_line_comes_once_with_its_offset(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    suffix: str,
    lines: list[bytes],
    rest: bytes,
    cuts: list[int],
    chunk: int,
) -> None:
    monkeypatch.setattr(tail, "CHUNK", chunk)
    data = b"".join(line + b"\n" for line in lines) + rest.replace(b"\n", b"").replace(b"}", b")")
    expected, offset = [], 0
    for line in lines:
        expected.append((offset, line))
        offset += len(line) + 1
    path = tmp_path / f"x{suffix}"
    got: list[tuple[int, bytes | None]] = []
    end = 0
    for cut in [*sorted(min(cut, len(data)) for cut in cuts), len(data)]:
        path.write_bytes(zstandard.compress(data[:cut]) if suffix.endswith("zst") else data[:cut])
        more, end = read(path, end)
        got += more
    assert got == expected
    assert end == offset


@pytest.mark.parametrize("suffix", [".jsonl", ".jsonl.zst"])
def test_probes_tell_a_grown_file_from_a_replaced_one(tmp_path: Path, suffix: str) -> None:
    def put(data: bytes) -> Path:
        path = tmp_path / f"x{suffix}"
        path.write_bytes(zstandard.compress(data) if suffix.endswith("zst") else data)
        return path

    first = b"".join(b"%06d\n" % n for n in range(3000))
    for offset in (7, 700, 7000, 21_000):
        with Transcript(put(first)) as transcript:
            before = transcript.probes(offset)
            assert before is not None
        for data, same in (
            (first + b"more\n", True),
            (first[:offset], True),
            (first[: offset - 1], False),
            (b"X" + first[1:], False),
            (first[: offset - 2] + b"X" + first[offset - 1 :], False),
        ):
            with Transcript(put(data)) as transcript:
                assert (transcript.probes(offset) == before) is same


@pytest.mark.parametrize("suffix", [".jsonl", ".jsonl.zst"])
def test_probes_may_be_asked_while_lines_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str) -> None:
    monkeypatch.setattr(tail, "CHUNK", 1000)
    lines = [b"%06d" % n for n in range(5000)]
    data = b"".join(line + b"\n" for line in lines)
    path = tmp_path / f"x{suffix}"
    path.write_bytes(zstandard.compress(data) if suffix.endswith("zst") else data)
    got: list[bytes | None] = []
    with Transcript(path) as transcript:
        for run in transcript.lines(0, path.stat().st_size):
            got += run.lines
            assert transcript.probes(run.end) is not None
    assert got == lines


def test_a_line_too_long_is_passed_over_wherever_the_chunks_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tail, "LONGEST_LINE", 50)
    for chunk in (7, 10, 64, 4096):
        monkeypatch.setattr(tail, "CHUNK", chunk)
        path = tmp_path / "x.jsonl"
        path.write_bytes(b"a\n" + b"x" * 200 + b"\nb\n" + b"y" * 120 + b"\nc\n")
        got, end = read(path, 0)
        short = [line for line in got if line[1] is not None and len(line[1]) <= 50]
        assert short == [(0, b"a"), (203, b"b"), (326, b"c")]
        assert (len(got), end) == (5, 328)
