"""What was erased does not come in again: not by its id, and not as a copy with another id in the same session or a
fork of it. A file's saved state forgets it, too.

Tombstones on disk say what was erased. A database that does not know one of them takes it in before anything else.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from recollect import note
from recollect.ingest.sources.base import Compaction
from recollect.store import tombstones
from recollect.store.database import Database, Transaction
from recollect.store.tombstones import entry_hash, text_hash
from recollect.text import trimmed
from recollect.types import Entry, Owner

COMPACTION = "compaction"  # the role of a summary that an agent made of its own history

_FOLDER = "memory/tombstones"
_END = "--tombstone.md"
_QUOTED = r'"[^"\\\n]*"'
_OURS = re.compile(rf"([a-z_0-9]+):(?: ({_QUOTED}|\[\])|((?:\n- {_QUOTED})+))\n")
_TEXTS = ("kind", "agent_id", "session_token", "removed_at", "reason", "content_sha256")
_LISTS = ("whole_tokens", "removed_paths", "hashes")


class Stone(NamedTuple):
    """What of a tombstone the database knows."""

    agent_id: str
    tokens: tuple[str, ...]
    paths: tuple[str, ...]
    hashes: tuple[str, ...]


def parsed(text: str) -> Stone | None:
    """A tombstone as `artifacts.tombstones` reads it, also one whose frontmatter an editor wrote anew; None when it is
    none, or its body is not what its checksum says."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    front, _, body = text.removeprefix("---\n").partition("\n---\n")
    values = _ours(f"{front}\n") or _yaml(front)
    checksum = hashlib.sha256(trimmed(body.removeprefix("\n")).encode("utf-8", "replace")).hexdigest()
    if values.get("kind") != "tombstone" or values.get("content_sha256") != checksum:
        return None
    if any(name not in values for name in _TEXTS) or any(type(values.get(name)) is not list for name in _LISTS):
        return None
    return Stone(str(values["agent_id"]), *(tuple(map(str, values[name])) for name in _LISTS))


def _ours(front: str) -> dict[str, Any]:
    """Frontmatter just as we write it, without a library; nothing when a line is not."""
    values: dict[str, Any] = {}
    end = 0
    while end < len(front):
        found = _OURS.match(front, end)
        if found is None:
            return {}
        name, text, lines = found.groups()
        values[name] = text[1:-1] if text and text != "[]" else re.findall(r'"(.*)"', lines or "")
        end = found.end()
    return values


def _yaml(front: str) -> dict[Any, Any]:
    import yaml

    try:
        values = yaml.load(front, Loader=yaml.BaseLoader)  # every value as the text that it is
    except (yaml.YAMLError, ValueError, RecursionError):
        return {}
    return values if isinstance(values, dict) else {}


def stones(home: Path) -> frozenset[str]:
    """Paths of the tombstones below the home: one look into a folder that is nearly always missing or small."""
    try:
        return frozenset(f"{_FOLDER}/{name}" for name in os.listdir(home / _FOLDER) if name.endswith(_END))  # noqa: PTH208
    except (FileNotFoundError, NotADirectoryError):
        return frozenset()


def bury(database: Database, owner: Owner, home: Path, paths: Collection[str]) -> int:
    """The database knows these tombstones from now on; how many it did not. One that cannot be read waits until it
    can."""
    if not paths:
        return 0
    with database.read() as tx:
        known = tombstones.known(tx, owner, sorted(paths))
    taken = 0
    for path in sorted({*paths} - known):
        try:
            stone = parsed((home / path).read_bytes().decode("utf-8", "replace"))
        except OSError:
            continue
        if stone is not None and stone.agent_id == owner.agent_id:
            with database.write() as tx:
                tombstones.save(tx, owner, path, stone.hashes, stone.tokens, stone.paths)
            taken += 1
    return taken


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
    """The state without the text of messages that may still grow."""
    if not uuids or not any(uuid in parser_state for uuid in uuids):
        return parser_state

    def walk(value: Any) -> Any:
        if isinstance(value, list):
            return [walk(each) for each in value]
        if isinstance(value, dict):
            if value.get("uuid") in uuids and "texts" in value:
                return value | {"texts": [], "tools": []}
            return {key: walk(each) for key, each in value.items()}
        return value

    return msgspec.json.encode(walk(msgspec.json.decode(parser_state))).decode()
