"""Erasing as a job: one at a time, in a thread of its own, told in a file that outlives the process.

A removal that was cut short is finished by whatever opens the memory next; its receipt says so. No receipt holds text.
"""

from __future__ import annotations

import os
import secrets
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from recollect.app import Memory
from recollect.artifacts.removal import Plan
from recollect.errors import RecollectError, UsageError
from recollect.hand import Author
from recollect.home import open_own
from recollect.store import entries, memories
from recollect.surfaces.http import place
from recollect.surfaces.http.session import Session
from recollect.types import Hand, timestamp

_KEPT = 50  # receipts, the newest


class Receipt(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a removal: counts and hashes, and what was looked for afterwards."""

    id: str
    state: str  # running | done | failed | cut short
    digest: str
    began: str
    ended: str = ""
    messages: int = 0
    conversations: int = 0
    memories: int = 0
    files: int = 0
    rows: int = 0
    tombstone: str = ""
    looked_for: dict[str, int] = {}  # what → how many were planned
    remains: dict[str, int] = {}  # what → how many of those are still there
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Going:
    """Names of what a plan erases, to look for afterwards."""

    messages: Mapping[str, Sequence[str]]  # source → uuids
    memories: Sequence[str]

    @staticmethod
    def of(plan: Plan) -> Going:
        found: dict[str, list[str]] = {}
        for each in plan.said:
            found.setdefault(each.source, []).append(each.uuid)
        return Going(found, [each.id for each in plan.memories])


class Work:
    """Removals of this process, and receipts of every one."""

    def __init__(self, home: Path, session: Session) -> None:
        self._home = home
        self._session = session
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    @property
    def is_busy(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def start(self, target: Mapping[str, Any], digest: str, plan: Plan) -> str:
        """Erase what the plan told; the id of its receipt."""
        with self._lock:
            if self.is_busy:
                raise UsageError("something is being erased already", hint="Wait until that is done.")
            receipt = Receipt(
                id=secrets.token_hex(8),
                state="running",
                digest=digest,
                began=self._now(),
                looked_for={"messages": len(plan.said), "memories": len(plan.memories)},
            )
            self._save(receipt)
            self._thread = threading.Thread(
                target=self._run, args=(receipt, dict(target), Going.of(plan)), name="erase", daemon=True
            )
            self._thread.start()
            return receipt.id

    def receipt(self, name: str) -> Receipt | None:
        """As far as it is done. One that runs, and that nobody runs any more, was cut short."""
        found = self._load(self._home / place.FOLDER / f"receipt-{name}.json") if name.isalnum() else None
        if found is not None and found.state == "running" and not self.is_busy:
            again = self._load(self._home / place.FOLDER / f"receipt-{name}.json")
            if again is not None and again.state == "running":
                return msgspec.structs.replace(again, state="cut short")
            return again
        return found

    def receipts(self) -> list[Receipt]:
        """The newest first."""
        names = [each.stem.removeprefix("receipt-") for each in (self._home / place.FOLDER).glob("receipt-*.json")]
        found = [one for each in names if (one := self.receipt(each)) is not None]
        return sorted(found, key=lambda each: each.began, reverse=True)[:_KEPT]

    def close(self) -> None:
        """Waits for what is being erased: half erased helps nobody."""
        if self._thread is not None:
            self._thread.join()

    def _run(self, receipt: Receipt, target: Mapping[str, Any], going: Going) -> None:
        try:
            with self._session.memory() as memory:
                done = memory.forget(**target, digest=receipt.digest, author=Author(Hand.PERSON))
                receipt = msgspec.structs.replace(
                    receipt,
                    state="done" if not done.problems else "failed",
                    messages=done.entries,
                    conversations=done.conversations,
                    memories=len(done.memories),
                    files=len(done.removed_paths),
                    rows=done.removed_rows,
                    tombstone=done.tombstone,
                    remains=remains(memory, going, done.removed_paths),
                    problems=tuple(done.problems),
                )
        except (RecollectError, OSError) as error:
            kind = error.kind if isinstance(error, RecollectError) else "OSError"
            told = f"{kind}: {error.hint}" if isinstance(error, RecollectError) else f"{kind} {error.errno}"
            receipt = msgspec.structs.replace(receipt, state="failed", problems=(told,))
        self._save(msgspec.structs.replace(receipt, ended=self._now()))

    def _now(self) -> str:
        with self._session.memory() as memory:
            return timestamp(memory.clock())

    def _save(self, receipt: Receipt) -> None:
        place.write(self._home, f"receipt-{receipt.id}.json", msgspec.json.encode(receipt))

    def _load(self, path: Path) -> Receipt | None:
        try:
            with os.fdopen(open_own(path, os.O_RDONLY), "rb") as file:
                return msgspec.json.decode(file.read(), type=Receipt)
        except (OSError, msgspec.DecodeError):
            return None


def remains(memory: Memory, going: Going, paths: Sequence[str]) -> dict[str, int]:
    """How much of it is still there: messages and memories by their ids, files by their names."""
    with memory.database.read() as tx:
        said = sum(len(entries.lines(tx, memory.owner, source, uuids)) for source, uuids in going.messages.items())
        held = len({each.id for each in memories.find(tx, memory.owner, going.memories)})
    files = sum((memory.settings.root / each).exists() for each in paths)
    return {"messages": said, "memories": held, "files": files}
