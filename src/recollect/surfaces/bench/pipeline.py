"""`recollect bench pipeline`: conversations per minute offline, and the share of time that is not the model's.

The floor is the offline model alone: the same conversations, already in memory, through `statements` and `summary`.
"""

from __future__ import annotations

import tempfile
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

from recollect.app import open_memory
from recollect.artifacts.files import Files
from recollect.artifacts.session_end import SessionEnd
from recollect.extract.offline.strategy import Offline
from recollect.extract.run import Extract
from recollect.extract.values import Extraction, Transcript
from recollect.models.paid import Paid
from recollect.surfaces.bench.transcripts import copy_samples, write_tree


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
            artifacts = SessionEnd(Files(memory.settings.root), memory.owner.agent_id, timedelta(hours=1))
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
    }
