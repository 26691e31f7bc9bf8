"""Tombstones: what was erased, as files that survive the database. They hold hashes, paths and a reason, never text.

An entry is recognised by its id wherever its copy turns up, and by its session, role and text where a copy has another
id: in a fork, or in a transcript that was rewritten.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from recollect.artifacts.document import (
    HASH_SCOPE,
    BadFrontmatter,
    ChecksumMismatch,
    framed,
    normalised,
    sha256,
    unframed,
)
from recollect.artifacts.files import Files
from recollect.artifacts.names import TOMBSTONES, Kind, Name
from recollect.errors import ArtifactError
from recollect.ingest.erasure import stones
from recollect.store import tombstones as rows
from recollect.store.database import Database, Transaction
from recollect.store.ground import Ground, Part
from recollect.text import one_line
from recollect.types import JobStatus, Owner, Timestamp, timestamp

_TEXT = "# Removed\n\nWhat this page speaks of was erased, and stays erased: it is known by hashes alone."


@dataclass(frozen=True, slots=True)
class Tombstone:
    """The frontmatter: the specification's fields, then ours."""

    kind: str
    agent_id: str
    session_token: str  # of the first conversation
    removed_at: Timestamp
    reason: str
    removed_paths: tuple[str, ...]
    whole_tokens: tuple[str, ...]  # conversations of which nothing stays
    hashes: tuple[str, ...]

    @property
    def path(self) -> str:
        return Name(self.removed_at, self.session_token, Kind.TOMBSTONE).path


def rendered(stone: Tombstone) -> str:
    values = asdict(stone) | {"content_sha256": "", "hash_scope": HASH_SCOPE}
    body = normalised("\n".join([_TEXT, "", *(f"- {each}" for each in stone.hashes)]))
    return framed(values | {"content_sha256": sha256(body)}, body)


def parse(text: str) -> Tombstone:
    """BadFrontmatter and ChecksumMismatch when it is not what `rendered` wrote."""
    values, body = unframed(text)
    if values.get("kind") != Kind.TOMBSTONE or not {field.name for field in fields(Tombstone)} <= values.keys():
        raise BadFrontmatter("no tombstone")
    if values.get("content_sha256") != sha256(body):
        raise ChecksumMismatch("the body is not what content_sha256 says")
    lists = {name: _texts(name, values[name]) for name in ("removed_paths", "whole_tokens", "hashes")}
    texts = {name: str(values[name]) for name in ("kind", "agent_id", "session_token", "removed_at", "reason")}
    return Tombstone(**texts, **lists)  # type: ignore[arg-type]


def _texts(name: str, value: Any) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise BadFrontmatter(f"{name} is {one_line(repr(value))}")
    return tuple(map(str, value))


@dataclass(frozen=True, slots=True)
class Graveyard:
    """What all tombstones of an agent say together."""

    tokens: frozenset[str]  # conversations of which nothing stays
    paths: frozenset[str]
    hashes: frozenset[str]

    def __bool__(self) -> bool:
        return bool(self.paths or self.hashes or self.tokens)

    def covers(self, name: Name) -> bool:
        return name.token in self.tokens or name.path in self.paths


def read_all(files: Files) -> dict[str, Tombstone | None]:
    """Every tombstone by its path; None when it cannot be read."""
    return {name.path: _read(files, name.path) for name in files.names(within=TOMBSTONES)}


def _read(files: Files, path: str) -> Tombstone | None:
    try:
        return parse(files.read(path) or "")
    except (ArtifactError, OSError):
        return None


def demand(tx: Transaction, ground: Ground) -> None:
    """Mark a removal as unfinished, until the job is done."""
    ground.jobs().enqueue(tx, rows.KIND, [(rows.KEY, f"{timestamp(ground.clock())}#{secrets.token_hex(8)}")])


def bury(ground: Ground, files: Files, paths: Collection[str]) -> None:
    """Make these tombstones known to the database. Rows may hold what a new one names, so a removal is unfinished then.
    One that cannot be read waits until it can."""
    with ground.database.read() as tx:
        known = rows.known(tx, ground.owner, sorted(paths))
    for path in sorted({*paths} - known):
        stone = _read(files, path)
        if stone and stone.agent_id == ground.owner.agent_id:
            tell(ground, path, stone)


def tell(ground: Ground, path: str, stone: Tombstone) -> None:
    """Make all that a tombstone says known to the database; until what it names is gone, a removal is unfinished."""
    with ground.database.write() as tx:
        demand(tx, ground)
        rows.save(tx, ground.owner, path, stone.hashes, stone.whole_tokens, stone.removed_paths)


def untold(ground: Ground, stones: Mapping[str, Tombstone | None]) -> dict[str, Tombstone]:
    """Those of ours of which the database does not know all that it knew: somebody changed its rows."""
    with ground.database.read() as tx:
        known, taken_in = rows.hashes(tx, ground.owner), rows.known(tx, ground.owner, sorted(stones))
    ours = {path: each for path, each in stones.items() if each and each.agent_id == ground.owner.agent_id}
    return {
        path: each
        for path, each in ours.items()
        if path in taken_in and not rows.told(path, each.hashes, each.whole_tokens, each.removed_paths) <= known
    }


class Unfinished(Part):
    """Tells whether a removal is unfinished: one look at a folder and at a row, and nothing heavy is imported."""

    def __init__(self, ground: Ground, files: Files) -> None:
        super().__init__(ground)
        self._files = files
        self._seen: frozenset[str] = frozenset()  # tombstones that the database was told of

    def is_there(self, *, hurry: bool = False) -> bool:
        """Was a removal cut short, or is one going on? One whose last steps failed waits for its time, unless in a
        `hurry`: rows tell nothing of it any more."""
        there = stones(self._settings.root)
        if new := there - self._seen:
            bury(self._ground, self._files, new)
            self._seen = there
        with self._database.read() as tx:
            job = self._ground.jobs().find(tx, *rows.JOB)
        if job is None or job.status is JobStatus.SUCCEEDED:
            return False
        if job.status in (JobStatus.PENDING, JobStatus.RUNNING) or hurry:
            return True
        return job.status is JobStatus.BACKING_OFF and job.not_before <= timestamp(self._clock())


def graveyard(stones: Iterable[Tombstone | None], agent_id: str) -> Graveyard:
    own = [each for each in stones if each is not None and each.agent_id == agent_id]
    return Graveyard(
        frozenset(token for each in own for token in each.whole_tokens),
        frozenset(path for each in own for path in each.removed_paths),
        frozenset(each_hash for each in own for each_hash in each.hashes),
    )


def erased(stones: Iterable[Tombstone | None], database: Database, owner: Owner, names: Iterable[Name]) -> Graveyard:
    """What tombstones name, and what the database knows as erased, of these files too: its tombstone may be
    elsewhere, or was deleted."""
    graves = graveyard(stones, owner.agent_id)
    with database.read() as tx:
        if not rows.exist(tx, owner):
            return graves
        gone = rows.covered(tx, owner, {name.path: name.token for name in names})
        return replace(graves, paths=graves.paths | gone, hashes=graves.hashes | rows.hashes(tx, owner))
