"""`recollect bench lineage`: one session's end, MEMORY.md, and re-indexing beside the floor of reading and hashing.

The store is made of real artifacts, 1,500 sessions of them in the last 30 days. Re-indexing runs in child processes,
so that memory is its own. Targets: a session's end under 50 ms without the model, 20,000 unchanged files under 1 s,
a full re-index over 2,000 files a second and under 200 MB.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import resource
import statistics
import tempfile
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

from recollect.app import Memory, open_memory
from recollect.artifacts.files import Files
from recollect.artifacts.names import FOLDER, Name
from recollect.artifacts.projection import Projection
from recollect.artifacts.session_end import SessionEnd
from recollect.extract.run import Extract, Step
from recollect.extract.values import Extraction, Transcript
from recollect.models.paid import Paid
from recollect.surfaces.bench.home import answer
from recollect.surfaces.bench.transcripts import prose
from recollect.types import (
    Conversation,
    ConversationStatus,
    MemoryKind,
    Message,
    Remembered,
    Role,
    Scope,
    Severity,
    Statement,
    timestamp,
    utc_now,
)

_IN_WINDOW = 1_500
_ENDS = 15


def run(artifacts: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="recollect-bench-") as name:
        home = Path(name) / "home"
        with open_memory(home, environ={"HOME": name}) as memory:
            sessions = artifacts // 3
            _fill(memory, sessions)
        result = _reindexes(home)
        with open_memory(home, environ={"HOME": name}) as memory:
            result |= _ledger(memory)
            result |= _ends(memory, Path(name) / "tree")
    return {"sessions": sessions, "sessions_in_window": min(_IN_WINDOW, sessions)} | result


class _Unsynced(Files):
    """Makes a store quickly: nobody else is there, and nothing is worth an fsync."""

    def names(self, token: str = "", within: str = FOLDER) -> list[Name]:
        return []

    def _put(self, path: str, folder: int, text: str) -> None:
        (self._home / path).write_text(text, encoding="utf-8")


def _fill(memory: Memory, sessions: int) -> None:
    chance, now = random.Random(7), utc_now()
    end = SessionEnd(_Unsynced(memory.settings.home), memory.owner.agent_id)
    for number in range(sessions):
        recent = number < _IN_WINDOW
        days = number * 29.5 / _IN_WINDOW if recent else 31 + (number - _IN_WINDOW) * 300 / sessions
        started = now - timedelta(days=days, hours=3)
        talk = _talk(number, chance, started)
        fact = _stated(talk, prose(chance, 14))
        extraction = Extraction(prose(chance, 60), prose(chance, 40), "tide-tables", prose(chance, 20))
        end.write(talk, extraction, [fact], timestamp(started + timedelta(hours=2)), "bench")


def _talk(number: int, chance: random.Random, started: Any) -> Transcript:
    times = [timestamp(started + timedelta(minutes=each)) for each in range(6)]
    roles = (Role.USER, Role.ASSISTANT)
    messages = [Message(f"e{number}-{n}", roles[n % 2], prose(chance, 40), at) for n, at in enumerate(times)]
    session, project = f"s-{number:06d}", f"/code/project-{number % 20}"
    return Transcript(
        Conversation(
            id=0,
            session_id=session,
            session_key=f"{session}@{times[0]}",
            source="claude-code",
            source_file=f"-code/{session}.jsonl",
            project=project,
            project_id=project,
            branch="main",
            first_message_at=times[0],
            last_message_at=times[-1],
            entry_count=len(messages),
            status=ConversationStatus.PROCESSING,
            status_reason="",
        ),
        messages,
    )


def _stated(talk: Transcript, text: str) -> Remembered:
    conversation = talk.conversation
    return Remembered(
        id=f"m-{hashlib.sha256(text.encode()).hexdigest()[:16]}",
        revision=1,
        kind=MemoryKind.DECISION,
        text=text,
        severity=Severity.NONE,
        scope=Scope.PROJECT,
        scope_id=conversation.project_id,
        created_at=conversation.last_message_at,
        valid_from=conversation.last_message_at,
        sources=((conversation.session_key, talk.messages[0].uuid),),
    )


def _reindexes(home: Path) -> dict[str, Any]:
    started = time.perf_counter()
    hashed = [hashlib.sha256(path.read_bytes()).digest() for path in (home / FOLDER).glob("*.md")]
    floor = time.perf_counter() - started
    full = answer(home, "reindex")
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    again = statistics.median(answer(home, "reindex")["seconds"] for _ in range(3))
    started = time.perf_counter()
    stats = sum(1 for each in os.scandir(home / FOLDER) if each.stat().st_size)
    listing = time.perf_counter() - started
    assert stats >= full["files"] == len(hashed) == full["read"], (stats, full["files"], len(hashed), full["read"])
    return {
        "artifacts": full["files"],
        "read_and_hash_floor_seconds": round(floor, 3),
        "full_reindex_seconds": full["seconds"],
        "full_reindex_files_per_s": round(full["files"] / full["seconds"]),
        "full_reindex_peak_memory_mb": round(peak, 1),
        "incremental_reindex_seconds": again,
        "stat_floor_seconds": round(listing, 3),
    }


def _ledger(memory: Memory) -> dict[str, Any]:
    projection = Projection(memory.ground)
    seconds = []
    for _ in range(5):
        started = time.perf_counter()
        projection.update()
        seconds.append(time.perf_counter() - started)
    size = (memory.settings.home / "MEMORY.md").stat().st_size
    return {"memory_md_ms": round(statistics.median(seconds) * 1000, 1), "memory_md_bytes": size}


class _Ready:
    """A model that has its answer ready: what is measured is everything else."""

    id = "bench"
    asks_model = False

    def should_process(self, transcript: Transcript) -> bool:
        return True

    def process(self, transcript: Transcript, paid: Paid) -> Extraction:
        said = transcript.messages[0]
        fact = Statement(MemoryKind.DECISION, said.text[:120], entries=(said.uuid,))
        return Extraction("Raw.", "Summary.", "slug", "", (fact,))


def _ends(memory: Memory, tree: Path) -> dict[str, Any]:
    """Sessions that end one at a time: claim, files, MEMORY.md, rows."""
    chance, now = random.Random(8), utc_now()
    tree.mkdir()
    for number in range(_ENDS):
        talk = _talk(900_000 + number, chance, now - timedelta(days=1))
        lines = [_line(talk, each) for each in talk.messages]
        (tree / f"{talk.conversation.session_id}.jsonl").write_text("".join(lines), encoding="utf-8")
    memory.ingest(folder=tree)
    projection = Projection(memory.ground)
    files = SessionEnd(Files(memory.settings.root), memory.owner.agent_id, projection)
    runs, ends, marks = [], [], dict.fromkeys(Step, 0.0)

    def reached(step: Step) -> None:
        marks[step] = time.perf_counter()

    for _ in range(_ENDS):
        started = time.perf_counter()
        extract = Extract(memory.ground, _Ready(), files, reached=reached)
        report = extract.run(limit=1, now=True)
        stored = time.perf_counter()
        projection.update()
        done = time.perf_counter()
        ends.append(marks[Step.STORED] - marks[Step.RESOLVED] + done - stored)
        runs.append(done - started)
        assert report.succeeded == 1, report
    return {
        "session_end_ms": round(statistics.median(ends) * 1000, 1),  # files, MEMORY.md, rows, MEMORY.md's head
        "session_end_worst_ms": round(max(ends) * 1000, 1),
        "fsync_floor_ms": round(_fsyncs(memory.settings.home) * 1000, 1),  # as many as it makes
        "whole_run_ms": round(statistics.median(runs) * 1000, 1),  # with claim, load and resolution
    }


def _fsyncs(folder: Path) -> float:
    """Seconds for a file and a folder, five times."""
    started = time.perf_counter()
    for each in range(5):
        with (folder / f"floor-{each}").open("wb") as file:
            file.write(b"x" * 4096)
            file.flush()
            os.fsync(file.fileno())
        opened = os.open(folder, os.O_RDONLY)
        os.fsync(opened)
        os.close(opened)
    return time.perf_counter() - started


def _line(talk: Transcript, message: Message) -> str:
    record = {
        "type": str(message.role),
        "uuid": message.uuid,
        "sessionId": talk.conversation.session_id,
        "timestamp": message.timestamp,
        "cwd": talk.conversation.project,
        "message": {"role": str(message.role), "content": message.text},
    }
    return json.dumps(record) + "\n"
