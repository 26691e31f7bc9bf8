"""What was erased does not come in again: not by its id, and not as a copy with another id in the same session or a
fork of it. A file's saved state forgets it, too.

Tombstones on disk say what was erased. A database that does not know one of them is told before anything else comes in.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

import msgspec

from recollect import note
from recollect.ingest.sources.base import Compaction
from recollect.store import tombstones
from recollect.store.database import Transaction
from recollect.store.tombstones import entry_hash, text_hash
from recollect.types import Entry, Owner

COMPACTION = "compaction"  # the role of a summary that an agent made of its own history

_FOLDER = "memory/tombstones"
_END = "--tombstone.md"
_PLACES = {"cwd", "branch", "remote"}


def stones(home: Path) -> frozenset[str]:
    """Paths of the tombstones below the home: one look into a folder that is nearly always missing or small."""
    try:
        return frozenset(f"{_FOLDER}/{name}" for name in os.listdir(home / _FOLDER) if name.endswith(_END))  # noqa: PTH208
    except (FileNotFoundError, NotADirectoryError):
        return frozenset()


def erased(
    tx: Transaction, owner: Owner, source: str, said: Iterable[Entry | Compaction], session: str | None = None
) -> set[str]:
    """Ids of what was erased, in its own session or as a copy of another one. Nearly always nothing ever was. Our own
    logs give every turn an id for good: there the same words may be said again."""
    if not tombstones.exist(tx, owner):
        return set()
    names: dict[str, str] = {}
    for each in said:
        names[entry_hash(source, each.uuid)] = each.uuid
        if source != note.SOURCE:
            role, text = (each.role, each.content) if isinstance(each, Entry) else (COMPACTION, each.summary)
            names[text_hash(source, each.session_id if session is None else session, role, text)] = each.uuid
    return {names[found] for found in tombstones.erased(tx, owner, list(names))}


def blanked(parser_state: str, uuids: Collection[str]) -> str:
    """The state without the text of messages that may still grow, and without where they were said."""
    if not uuids or not any(uuid in parser_state for uuid in uuids):
        return parser_state

    def walk(value: Any) -> Any:
        if isinstance(value, list):
            return [walk(each) for each in value]
        if isinstance(value, dict):
            if value.get("uuid") in uuids and "texts" in value:
                return value | {"texts": [], "tools": [], "events": []} | dict.fromkeys(_PLACES & value.keys(), "")
            return {key: walk(each) for key, each in value.items()}
        return value

    return msgspec.json.encode(walk(msgspec.json.decode(parser_state))).decode()
