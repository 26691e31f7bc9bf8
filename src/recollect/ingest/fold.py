"""From lines to a batch: runs a source's fold and sorts what comes of it. Pure; the runner stores the result."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from msgspec.structs import replace

from recollect.ingest.gate import Refused
from recollect.ingest.sources.base import (
    Change,
    Compaction,
    Malformed,
    Source,
    State,
    Withdrawn,
    bounded,
    bounded_folder,
)
from recollect.ingest.tail import LONGEST_LINE, Lines
from recollect.types import Entry

Admit = Callable[[Entry], Entry | Refused]


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
    refused: bool = False  # something may not be stored
    unplaced: set[str] = field(default_factory=set)  # uuids of what was refused because it names no folder

    def put(self, change: Change, admit: Admit) -> None:
        if isinstance(change, Entry):
            if len(change.uuid) > 128 or len(change.session_id) > 128 or len(change.cwd) > 512:
                names = {"uuid": bounded(change.uuid), "session_id": bounded(change.session_id)}
                change = replace(change, cwd=bounded_folder(change.cwd), **names)
            target = self.entries if change.line_offset >= self.start else self.amended
            before = target.get(change.uuid)
            if before is not None:
                if before.line_offset != change.line_offset:
                    return  # the record stands in the file twice
                self.text -= len(before.content)
            admitted = admit(change)
            if isinstance(admitted, Refused):
                self.refused = True
                if admitted is Refused.NO_FOLDER:
                    self.unplaced.add(change.uuid)
                return
            self.text += len(admitted.content)
            target[change.uuid] = admitted
        elif isinstance(change, Compaction):
            if self.refused:
                return  # it may sum up what is not stored
            identity, session = bounded(change.uuid), bounded(change.session_id)
            self.compactions.append(dataclasses.replace(change, uuid=identity, session_id=session))
        else:
            self.withdrawn[bounded(change.uuid)] = isinstance(change, Withdrawn)


def fold_lines(source: Source, state: State, lines: Lines, batch: Batch, admit: Admit) -> None:
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
            put(change, admit)
        offset += len(line) + 1
    batch.lines, batch.end = number, lines.end


def _second_look(source: Source, state: State, line: bytes, offset: int, reason: str) -> tuple[Sequence[Change], str]:
    """What is a record after all is kept, and what is wrong with it is told; of several on one line, each."""
    if not line or line.isspace():
        return (), ""
    text = line.replace(b"\0", b"").decode(errors="surrogateescape")
    records, is_whole = _records(text)
    if not records:
        return (), reason
    changes: list[Change] = []
    told = [] if is_whole else [f"kept what is whole of it: {reason}"]
    place, at = offset, 0
    for start, end, value in records:
        place, at = place + len(text[at:start].encode(errors="surrogateescape")), start
        raw = text[start:end].encode(errors="surrogateescape")
        more, trouble = _kept(source, state, raw, value, place)
        changes += more
        told += [trouble] if trouble else []
    if not told and b"\0" in line:
        told = [f"{_REPLACED}: {reason}"]
    return changes, "; ".join(told)


def _kept(source: Source, state: State, raw: bytes, value: dict[str, Any], offset: int) -> tuple[Sequence[Change], str]:
    reasons: list[str] = []
    for form, told in _forms(raw, value):
        try:
            return source.fold(state, form, offset), told and f"{told}: {reasons[-1]}"
        except Malformed as error:
            reasons.append(str(error))
    return (), reasons[1]


_REPLACED = "kept with replacement characters"
_BROKEN = re.compile("[\ud800-\udfff]")  # a byte that is no UTF-8, or half a surrogate pair


def _forms(raw: bytes, value: dict[str, Any]) -> Iterator[tuple[bytes, str]]:
    """A record as it stands, with its broken characters replaced, and without times that cannot be read."""
    yield raw, ""
    yield _encoded(value), _REPLACED
    for part in (value, value.get("message")):
        if isinstance(part, dict) and part.pop("timestamp", None) is not None:
            yield _encoded(value), "kept with another time"


def _encoded(value: dict[str, Any]) -> bytes:
    return _BROKEN.sub("\ufffd", json.dumps(value, ensure_ascii=False)).encode()


_MOST_TRIED = 16  # places in a broken line where a whole record may begin
_OPENING = re.compile(r'\{\s*"(?:type|parentUuid|timestamp)"')
_WORD = re.compile(r"[^\s\ufeff]")
_Found = tuple[int, int, dict[str, Any]]  # start, end, value
_decoder = json.JSONDecoder()


def _records(text: str) -> tuple[list[_Found], bool]:
    """The records that a line begins with, and those that it ends in behind half of one; and is that all of it?

    An agent that was killed leaves half a record, behind which the next one writes whole ones. What is whole within
    the half is a part of a record, and none.
    """
    first, end = _run(text, 0)
    if end == len(text):
        return first, True
    for opening in islice(_OPENING.finditer(text, end + 1), _MOST_TRIED):
        last, behind = _run(text, opening.start())
        if behind == len(text):
            return first + last, False
    return first, False


def _run(text: str, start: int) -> tuple[list[_Found], int]:
    """Whole records one behind another, and where that ends."""
    found: list[_Found] = []
    while begun := _WORD.search(text, start):
        try:
            value, start = _decoder.raw_decode(text, begun.start())
        except (ValueError, RecursionError):
            return found, begun.start()
        if not isinstance(value, dict):
            return found, begun.start()
        found.append((begun.start(), start, value))
    return found, len(text)
