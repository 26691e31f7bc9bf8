"""Golden pairs: `golden/<source>/<name>.jsonl` is a transcript true to life, `<name>.json` what must come of it.

`python -m tests.test_golden` rewrites the expectations; read the difference before committing it.
"""

from __future__ import annotations

import dataclasses
import json
import random
from pathlib import Path, PurePath
from typing import Any

import msgspec
import pytest

from recollect.ingest.sources import all_sources, detect, get_source
from recollect.ingest.sources.base import Compaction, Malformed, Restored, Source, Withdrawn

GOLDEN = Path(__file__).parent / "golden"
TRANSCRIPTS = sorted(GOLDEN.glob("*/*.jsonl"))


def outcome(source: Source, key: PurePath, data: bytes, stops: frozenset[int] = frozenset()) -> dict[str, Any]:
    """Folds a file; at the line numbers in `stops` the state is saved and loaded as a restart would."""
    state = source.begin(key)
    entries: dict[str, dict[str, Any]] = {}
    withdrawn: list[str] = []
    compactions: list[dict[str, Any]] = []
    malformed: list[int] = []
    offset = 0
    for number, line in enumerate(data.split(b"\n")[:-1], 1):
        if number in stops:
            state = msgspec.json.decode(msgspec.json.encode(state), type=source.state_type)
        try:
            changes = source.fold(state, line, offset) if line.strip() else ()
        except Malformed:
            malformed.append(number)
            changes = ()
        for change in changes:
            if isinstance(change, Withdrawn):
                withdrawn.append(change.uuid)
            elif isinstance(change, Restored):
                withdrawn.remove(change.uuid)
            elif isinstance(change, Compaction):
                compactions.append(dataclasses.asdict(change))
            else:
                first = entries.get(change.uuid)
                if first is None or first["line_offset"] == change.line_offset:  # else the record stands there twice
                    told = json.loads(msgspec.json.encode(change))
                    entries[change.uuid] = {name: value for name, value in told.items() if name != "project" or value}
        offset += len(line) + 1
    return {
        "entries": [entry for uuid, entry in entries.items() if uuid not in withdrawn],
        "withdrawn": withdrawn,
        "compactions": compactions,
        "malformed": malformed,
        "excluded": state.excluded,
        "fork_of": state.fork_of,
    }


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_golden_pair(path: Path) -> None:
    source = get_source(path.parent.name)
    got = outcome(source, PurePath(path.parent.name, path.name), path.read_bytes())
    assert got == json.loads(path.with_suffix(".json").read_text())


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_reading_may_stop_after_any_line(path: Path) -> None:
    source, key = get_source(path.parent.name), PurePath(path.parent.name, path.name)
    data = path.read_bytes()
    lines = data.count(b"\n")
    straight = outcome(source, key, data)
    assert outcome(source, key, data, frozenset(range(1, lines + 1))) == straight
    chance = random.Random(7)
    for _ in range(5):
        assert outcome(source, key, data, frozenset(chance.sample(range(1, lines + 1), lines // 3))) == straight


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_format_is_detected_from_content(path: Path) -> None:
    found = detect(path.read_bytes().split(b"\n")[:20])
    assert found is not None
    assert found.name == path.parent.name


def test_every_source_has_a_golden_pair() -> None:
    assert {path.parent.name for path in TRANSCRIPTS} >= set(all_sources())


if __name__ == "__main__":
    for each in TRANSCRIPTS:
        result = outcome(get_source(each.parent.name), PurePath(each.parent.name, each.name), each.read_bytes())
        each.with_suffix(".json").write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n")
