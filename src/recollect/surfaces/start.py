"""`make start`: takes in what the agents on this machine wrote, and shows what came of it."""

from __future__ import annotations

import re
import sys
import tempfile
from datetime import datetime, timedelta
from pathlib import Path
from textwrap import shorten

from recollect import processes
from recollect.app import Memory, open_memory
from recollect.surfaces.cli import guarded
from recollect.surfaces.cli.common import count, counting, day_and_time, echo, table
from recollect.surfaces.cli.ingest import describe, progress
from recollect.types import project_name, timestamp

_NEWEST = 10  # conversations that are shown


def start() -> int:
    with open_memory() as memory:
        echo("recollect takes in the transcripts of the agents on this machine:")
        for name, roots in memory.intake.roots().items():
            for root in [each for each in roots if each != memory.settings.turns]:
                echo(f"  {name:12} {root}{'' if root.is_dir() else '  (not there)'}")
        with progress(quiet=False) as report_to:
            report = memory.ingest(**report_to)
        if not report.files and not memory.conversations(limit=1):
            echo("\nThere are none yet, so here is a bundled set of samples.")
            with tempfile.TemporaryDirectory(prefix="recollect-samples-") as folder:
                write_samples(Path(folder), memory.clock())
                report = memory.ingest(folder=Path(folder))
        echo("")
        describe(memory, report, everything=False)
        newest = memory.conversations(limit=_NEWEST)
        echo(f"\nThe newest of {count(sum(memory.status().conversations.values()), 'conversation')}:")
        table(
            ("last message", "source", "project", "messages", "it began with"),
            [
                (
                    day_and_time(each.last_message_at),
                    each.source,
                    project_name(each.project_id),
                    each.entry_count,
                    shorten(memory.opening(each), 60, placeholder=" …"),
                )
                for each in newest
            ],
            right=("messages",),
        )
        _learn(memory)
        with counting("embedding", quiet=False) as bar:
            memory.embed(seconds=60, progress=bar)
        echo(f"\nEverything lies in {memory.settings.home}, readable by you alone.")
        program = processes.script("recollect")
        echo(f"Next: {program} init  (your agents remember)")
        echo(f"      {program} search, context, timeline, status, --help")
    return 1 if report.problems else 0


def write_samples(folder: Path, now: datetime) -> None:
    """A few short sessions to try recollect with, as the agents would have written them: "@90" is 90 seconds ago."""
    samples = Path(__file__).with_name("samples")
    for file in samples.rglob("*.jsonl"):
        path = folder / file.relative_to(samples)
        path.parent.mkdir(parents=True, exist_ok=True)
        text = file.read_text(encoding="utf-8")
        dated = re.sub(r"(?<=\")@(\d+)(?=\")", lambda ago: timestamp(now - timedelta(seconds=int(ago[1]))), text)
        path.write_text(dated, encoding="utf-8")


def _learn(memory: Memory) -> None:
    """Phases 1 and 2, as far as no paid model is asked."""
    if memory.settings.config.model != "offline":
        echo("\nA model is configured: `recollect process` asks it, and `recollect consolidate` comes after.")
        return
    with counting("extracting", quiet=False) as progress:
        processed = memory.process(now=True, progress=progress)
    memory.consolidate(now=True)
    kept = sum(memory.status().memories.values())
    echo(
        f"\nLearnt without a model: {count(kept, 'memory', 'memories')},"
        f" {processed.memories:,} of them from {count(processed.claimed, 'conversation')} just now."
    )
    for held in memory.memories()[:5]:
        echo(f"  - {shorten(held.text, 150, placeholder=' …')}")
    days = memory.timeline(project=None, limit=_NEWEST)
    left = [(each, each.left) for day in days for each in day.conversations if each.left]
    if left:
        echo("What was left at the end:")
    for each, told in left[:3]:
        echo(f"  - {project_name(each.project_id) or each.project}: {shorten(told, 150, placeholder=' …')}")
    echo(f"What a new session is told: {memory.settings.workspace}")


if __name__ == "__main__":
    sys.exit(guarded(start, as_json=False))
