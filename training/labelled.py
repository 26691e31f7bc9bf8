"""The labelled set beside this file, by writer."""

from __future__ import annotations

import json
import lzma
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
HELD_OUT = ("07", "15", *map(str, range(77, 87)))  # writers whose projects no weight of the encoder has seen

Row = dict[str, Any]


def read(name: str) -> dict[str, list[Row]]:
    by_writer: dict[str, list[Row]] = {}
    for line in lzma.decompress((HERE / f"{name}.jsonl.xz").read_bytes()).decode().splitlines():
        row = json.loads(line)
        by_writer.setdefault(row["writer"], []).append(row)
    return by_writer
