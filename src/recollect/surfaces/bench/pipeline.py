"""`recollect bench pipeline`: conversations per minute offline, and the share of time that is not the model's.

The floor is the offline model alone: the same conversations, already in memory, through `statements` and `summary`.
Then what `consolidate` costs, as a command, where thousands of conversations are too old to be selected, beside the
same without them.
"""

from __future__ import annotations

import random
import statistics
import tempfile
import time
import tracemalloc
from collections.abc import Iterator
from datetime import timedelta
from itertools import chain, islice
from pathlib import Path
from typing import Any

from recollect.app import open_memory
from recollect.artifacts.files import Files
from recollect.artifacts.session_end import SessionEnd
from recollect.extract.offline.strategy import Offline
from recollect.extract.run import Extract
from recollect.extract.values import Extraction, Transcript
from recollect.models.paid import Paid
from recollect.store import stage1
from recollect.surfaces.bench.home import answer
from recollect.surfaces.bench.transcripts import copy_samples, prose, write_tree
from recollect.types import Stage1, timestamp, utc_now

_RECENT, _OLD = 200, 20_000  # conversations that may be selected, and that may not


class _Timed(Offline):
    """The offline model with a stop-watch."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def process(self, transcript: Transcript, paid: Paid) -> Extraction:
        started = time.perf_counter()
        try:
            return super().process(transcript, paid)
        finally:
            self.seconds += time.perf_counter() - started


def run(megabytes: int, samples: Path | None) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="recollect-bench-") as name:
        base = Path(name)
        tree = base / "tree"
        copy_samples(samples, tree, megabytes) if samples else write_tree(tree, megabytes)
        with open_memory(base / "home", environ={"HOME": name}) as memory:
            memory.ingest(folder=tree)
            strategy = _Timed()
            artifacts = SessionEnd(Files(memory.settings.root), memory.owner.agent_id)
            extract = Extract(memory.ground, strategy, artifacts)
            started = time.perf_counter()
            report = extract.run(now=True)
            seconds = time.perf_counter() - started
            started = time.perf_counter()
            consolidated = memory.consolidate(now=True)
            consolidating = time.perf_counter() - started
            started = time.perf_counter()
            again = memory.consolidate(now=True)
            unchanged = time.perf_counter() - started
    return {
        "conversations": report.claimed,
        "with_output": report.succeeded,
        "memories": report.memories,
        "conversations_per_minute": round(report.claimed / seconds * 60),
        "seconds": round(seconds, 2),
        "model_seconds": round(strategy.seconds, 2),
        "share_outside_the_model": round(1 - strategy.seconds / seconds, 3),
        "consolidation": consolidated.outcome,
        "consolidation_seconds": round(consolidating, 2),
        "second_consolidation": again.outcome,
        "second_consolidation_seconds": round(unchanged, 3),
    } | _beside_old()


def _beside_old() -> dict[str, Any]:
    """Seconds of the command, and what is allocated for it, without old conversations and with them."""
    found: dict[str, Any] = {}
    for name, old in (("without_old", 0), (f"with_{_OLD}_old", _OLD)):
        with tempfile.TemporaryDirectory(prefix="recollect-bench-") as folder:
            home = Path(folder) / "home"
            with open_memory(home, environ={"HOME": folder}) as memory, memory.database.write() as tx:
                rows = chain(_extracted(_RECENT, 0), _extracted(old, 100))
                while some := list(islice(rows, 500)):
                    stage1.save(tx, memory.owner, some)
            with open_memory(home, environ={"HOME": folder}) as memory:
                tracemalloc.start()
                memory.consolidate(now=True)
                peak = tracemalloc.get_traced_memory()[1]
                tracemalloc.stop()
            times = []
            for _ in range(5):
                started = time.perf_counter()
                answer(home, "consolidate", "--now")
                times.append(time.perf_counter() - started)
        found[f"consolidate_{name}_seconds"] = round(statistics.median(times), 3)
        found[f"consolidate_{name}_peak_mb"] = round(peak / 1e6, 2)
    return found


def _extracted(number: int, days: int) -> Iterator[Stage1]:
    """Outputs of phase 1 that are so many days old and more."""
    chance, now = random.Random(days), utc_now()
    text = prose(chance, 1000)
    for each in range(number):
        at = timestamp(now - timedelta(days=days, minutes=each))
        name = f"{days:03d}{each:05d}-2222-4333-8444-555555555555"
        yield Stage1(
            session_key=f"{name}@{at}",
            source="claude-code",
            session_id=name,
            project="/code/ship",
            project_id="/code/ship",
            first_message_at=at,
            source_updated_at=at,
            entry_count=8,
            snapshot="s",
            generated_at=at,
            strategy="offline",
            parts=1,
            raw_memory=text,
            rollout_summary=prose(chance, 60),
            rollout_slug="ship",
            memory_sentence="They worked on the ship.",
        )
