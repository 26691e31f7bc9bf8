"""`recollect bench ingest`: a full ingest beside the floor of reading every line and decoding it.

Every figure comes from a child process with a home of its own, so that memory is the ingest's alone. Target: at most
1.5 times the floor plus the kept text at 25 MB/s.
"""

from __future__ import annotations

import os
import random
import resource
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

from recollect.surfaces.bench.home import answer
from recollect.surfaces.bench.transcripts import claude_session, copy_samples, prose, write_tree

_ROUNDS = 3


def run(megabytes: int, samples: Path | None, scan_files: int, database: str = "") -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="recollect-bench-") as name:
        base = Path(name)
        tree = base / "tree"
        written = copy_samples(samples, tree, megabytes) if samples else write_tree(tree, megabytes)
        result = _rates(base, tree, written, database)
        result |= _scan(base, scan_files)
        result |= _append(base)
    return result


def _rates(base: Path, tree: Path, written: int, database: str) -> dict[str, Any]:
    floors, ingests, indexes = [], [], []
    report: dict[str, Any] = {}
    for number in range(_ROUNDS):
        os.sync()  # else the disk is still busy with the tree, or with the round before
        floors.append(_floor(tree))
        report = _ingested(base / f"home-{number}", "--dir", tree, database)
        ingests.append(report["seconds"])
        indexes.append(report["index_seconds"])
    floor, alone = (statistics.median(each) for each in zip(*floors, strict=True))
    ingest = statistics.median(ingests)
    kept = report["text_bytes"]
    allowed = 1.5 * floor + kept / 25e6
    return {
        "tree_mb": round(written / 1e6, 1),
        "files": report["files"],
        "entries": report["entries"],
        "kept_share": round(kept / written, 4),
        "floor_mb_per_s": round(written / floor / 1e6, 1),
        "ingest_mb_per_s": round(written / ingest / 1e6, 1),
        "floor_seconds": round(floor, 3),
        "floor_cpu_seconds": round(alone, 3),
        "ingest_seconds": round(ingest, 3),
        "ratio_to_floor": round(ingest / floor, 2),
        "allowed_seconds": round(allowed, 3),
        "share_of_allowed": round(ingest / allowed, 3),
        "entries_per_s": round(report["entries"] / ingest),
        "indexed_per_s": round(report["entries"] / max(statistics.median(indexes), 0.001)),
        "peak_memory_mb": round(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024, 1),
    }


def _floor(tree: Path) -> tuple[float, float]:
    """Seconds to read every line and decode it, and of them the processor's: where those are fewer, others were at the
    machine, and the share of what is allowed says too much."""
    started, used = time.perf_counter(), time.process_time()
    for path in sorted(tree.rglob("*.jsonl")):
        with path.open("rb") as file:
            for line in file:
                try:
                    orjson.loads(line)
                except orjson.JSONDecodeError:
                    continue
    return time.perf_counter() - started, time.process_time() - used


def _ingested(home: Path, option: str, path: Path, database: str = "") -> dict[str, Any]:
    shared = {"RECOLLECT_DATABASE": database, "RECOLLECT_AGENT_ID": home.name} if database else {}
    shared["PYTHONDONTWRITEBYTECODE"] = ""  # compiled, as an installed package is
    return answer(home, "ingest", option, str(path), RECOLLECT_EMBEDDER="none", **shared)


def _scan(base: Path, number: int) -> dict[str, Any]:
    """A second look at many files that did not change."""
    tree, home = base / "many", base / "home-many"
    for index, line in zip(range(number), _endless_lines(), strict=False):
        folder = tree / f"-p-{index % 200}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{index:08x}.jsonl").write_bytes(line)
    _ingested(home, "--dir", tree)
    report = _ingested(home, "--dir", tree)
    started = time.perf_counter()
    stats = sum(1 for path in tree.rglob("*.jsonl") if path.stat().st_size)
    return {
        "scan_files": stats,
        "scan_seconds": report["seconds"],
        "scan_floor_seconds": round(time.perf_counter() - started, 3),
    }


def _endless_lines() -> Iterator[bytes]:
    chance = random.Random(5)
    while True:
        yield from (orjson.dumps(each) + b"\n" for each in claude_session(chance, 3) if each["type"] == "user")


def _append(base: Path) -> dict[str, Any]:
    """Ten lines appended to a small and to a large file."""
    chance = random.Random(3)
    seconds = {}
    for megabytes in (5, 500):
        path, home = base / "-append" / f"{megabytes:08d}.jsonl", base / f"home-append-{megabytes}"
        path.parent.mkdir(exist_ok=True)
        lines = [orjson.dumps(each) for each in claude_session(chance, 40)]
        block = b"\n".join(lines) + b"\n"
        with path.open("wb") as file:
            while file.tell() < megabytes * 1e6:
                file.write(block)
        _ingested(home, "--file", path)
        times = []
        for number in range(_ROUNDS):
            with path.open("ab") as file:
                for index in range(10):
                    stamp = f"2026-09-01T10:00:{number}{index}.000Z"
                    message = {"role": "user", "content": prose(chance, 20)}
                    one = {
                        "type": "user",
                        "uuid": f"a{number}-{index}",
                        "sessionId": "s",
                        "timestamp": stamp,
                        "message": message,
                    }
                    file.write(orjson.dumps(one) + b"\n")
            report = _ingested(home, "--file", path)
            assert report["entries"] == 10, report
            times.append(report["seconds"])
        seconds[megabytes] = statistics.median(times)
        path.unlink()
    return {"append_to_5_mb_seconds": seconds[5], "append_to_500_mb_seconds": seconds[500]}
