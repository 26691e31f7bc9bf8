"""From lines to a batch: runs a source's fold and sorts what comes of it. Pure; the runner stores the result."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from msgspec.structs import replace

from recollect.ingest.sources.base import Change, Compaction, Malformed, Source, State, Withdrawn, bounded
from recollect.ingest.tail import LONGEST_LINE, Lines
from recollect.types import Entry

Allowed = Callable[[Entry], bool]


@dataclass(slots=True)
class Batch:
    """What a run of complete lines came to."""

    start: int  # offset of the first line
    end: int  # offset behind the last
    lines: int = 0
    entries: dict[str, Entry] = field(default_factory=dict)  # new in this batch
    amended: dict[str, Entry] = field(default_factory=dict)  # given in an earlier batch, with another text now
    withdrawn: dict[str, bool] = field(default_factory=dict)  # uuid → withdrawn (true) or restored (false)
    compactions: list[Compaction] = field(default_factory=list)
    malformed: list[tuple[int, int, str]] = field(default_factory=list)  # (line in the batch from 1, offset, reason)
    text: int = 0  # characters kept

    def put(self, change: Change, allowed: Allowed) -> None:
        if isinstance(change, Entry):
            if len(change.uuid) > 128 or len(change.session_id) > 128:
                change = replace(change, uuid=bounded(change.uuid), session_id=bounded(change.session_id))
            target = self.entries if change.line_offset >= self.start else self.amended
            before = target.get(change.uuid)
            if before is not None:
                if before.line_offset != change.line_offset:
                    return  # the record stands in the file twice
                self.text -= len(before.content)
            elif not allowed(change):
                return
            self.text += len(change.content)
            target[change.uuid] = change
        elif isinstance(change, Compaction):
            identity, session = bounded(change.uuid), bounded(change.session_id)
            self.compactions.append(dataclasses.replace(change, uuid=identity, session_id=session))
        else:
            self.withdrawn[bounded(change.uuid)] = isinstance(change, Withdrawn)


def fold_lines(source: Source, state: State, lines: Lines, batch: Batch, allowed: Allowed) -> None:
    """Adds to a batch. The state is updated in place; a line that cannot be understood leaves it alone."""
    fold, put, offset, number = source.fold, batch.put, lines.start, batch.lines
    for line in lines.lines:
        number += 1
        if line is None or len(line) > LONGEST_LINE:
            batch.malformed.append((number, offset, f"longer than {LONGEST_LINE // 2**20} MB, passed over"))
            offset += (lines.skipped if line is None else len(line)) + 1
            continue
        try:
            changes = fold(state, line, offset)
        except Malformed as error:
            changes, reason = _second_look(source, state, line, offset, str(error))
            if reason:
                batch.malformed.append((number, offset, reason))
        for change in changes:
            put(change, allowed)
        offset += len(line) + 1
    batch.lines, batch.end = number, lines.end


def _second_look(source: Source, state: State, line: bytes, offset: int, reason: str) -> tuple[Sequence[Change], str]:
    """Bad UTF-8, NUL bytes or half a surrogate pair do not make a message worthless: it is kept, and reported."""
    if not line or line.isspace():
        return (), ""
    mended = mend(line)
    if mended is None:
        return (), reason
    try:
        return source.fold(state, mended, offset), f"kept with replacement characters: {reason}"
    except Malformed as error:
        return (), str(error)


def mend(line: bytes) -> bytes | None:
    """The line with its broken characters replaced; None when that is not what is wrong with it."""
    try:
        value = json.loads(line.replace(b"\0", b"").decode(errors="replace"))
    except (ValueError, RecursionError):
        return None
    return json.dumps(value, ensure_ascii=False).encode(errors="replace") if isinstance(value, dict) else None
