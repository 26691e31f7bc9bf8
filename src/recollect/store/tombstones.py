"""memory_tombstones: hashes of what was erased, so that it is dropped wherever it appears again, and what is still here
of it.

A tombstone is known here by entries, texts, conversations' tokens and files' paths, each as a hash, and by one row of
its own: whichever others name the same, it is told whether it was taken in.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence, Set
from pathlib import PurePath

from recollect.store import erasing
from recollect.store.database import Transaction, rows_of
from recollect.store.erasing import Said
from recollect.text import plain
from recollect.types import Owner

JOB = KIND, KEY = "erase", "projections"  # not succeeded: a removal is unfinished


def entry_hash(source: str, uuid: str) -> str:
    return _hash("entry", source, uuid)


def text_hash(source: str, session_id: str, role: str, text: str) -> str:
    """Of what was said in a session: where a copy has another id, in a fork or a rewritten transcript."""
    return _hash("text", source, session_id, role, plain(text))


def project_hash(name: str) -> str:
    """Of a project that was erased, by its id or its folder."""
    return _hash("project", name)


def _hash(*parts: str) -> str:
    return hashlib.sha256("\x1f".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:40]


_OWN = "tenant = :tenant AND agent_id = :agent_id"


def save(
    tx: Transaction,
    owner: Owner,
    source_path: str,
    hashes: Iterable[str],
    tokens: Iterable[str] = (),
    paths: Iterable[str] = (),
) -> None:
    """What a tombstone says: hashes of entries and texts, tokens of conversations, paths of files."""
    named = told(source_path, hashes, tokens, paths)
    tx.run_many(
        "INSERT INTO memory_tombstones (tenant, agent_id, hash, source_path) VALUES (:tenant, :agent_id, :hash, :path)"
        " ON CONFLICT DO NOTHING",
        [(owner.tenant, owner.agent_id, each, source_path) for each in sorted(named)],
    )


def told(source_path: str, hashes: Iterable[str], tokens: Iterable[str], paths: Iterable[str]) -> set[str]:
    """The hashes of all that a tombstone says, and of itself."""
    named = {*hashes, *(_hash("token", each) for each in tokens), *(_hash("path", each) for each in paths)}
    return {*named, _hash("stone", source_path)}


def exist(tx: Transaction, owner: Owner) -> bool:
    """Was anything ever erased? Asked for every batch of entries, and nearly always answered with no."""
    return tx.row(f"SELECT 1 FROM memory_tombstones WHERE {_OWN} LIMIT 1", owner.names()) is not None


def hashes(tx: Transaction, owner: Owner) -> set[str]:
    """Of everything that was erased."""
    return {hash_ for (hash_,) in tx.rows(f"SELECT hash FROM memory_tombstones WHERE {_OWN}", owner.names())}


def erased(tx: Transaction, owner: Owner, hashes: Sequence[str]) -> set[str]:
    """Those of the hashes that were erased."""
    sql = f"SELECT hash FROM memory_tombstones WHERE {_OWN} AND hash IN ({{among}})"
    return {hash_ for (hash_,) in rows_of(tx, sql, owner.names(), hashes)}


def known(tx: Transaction, owner: Owner, paths: Sequence[str]) -> set[str]:
    """Those of the tombstones that were taken in."""
    found = erased(tx, owner, [_hash("stone", path) for path in paths])
    return {path for path in paths if _hash("stone", path) in found}


def covered(tx: Transaction, owner: Owner, files: Mapping[str, str]) -> set[str]:
    """Paths of those files (path → token) that were erased, with their conversation or by their name."""
    if not files or not exist(tx, owner):
        return set()
    hashes = {path: (_hash("token", token), _hash("path", path)) for path, token in files.items()}
    gone = erased(tx, owner, sorted({each for pair in hashes.values() for each in pair}))
    return {path for path, pair in hashes.items() if gone.intersection(pair)}


# What is here although it was erased


def delete_projects(tx: Transaction, owner: Owner, hashes: Set[str]) -> int:
    """Delete the rows of projects with one of these hashes, where nothing of them is left; how many rows went."""
    rows = tx.rows(f"SELECT cwd, project_id FROM memory_projects WHERE {_OWN}", owner.names())
    names = {name for cwd, project_id in rows for name in (project_id, cwd, *map(str, PurePath(cwd).parents))}
    return erasing.delete_projects(tx, owner, [each for each in names if project_hash(each) in hashes])


def standing(tx: Transaction, owner: Owner, hashes: Set[str]) -> list[Said]:
    """Entries and compactions with one of these hashes."""
    found: list[Said] = []
    for table, name, columns in (
        ("memory_transcript_entries", "entry_uuid", "session_id, role, content, source_file"),
        ("memory_compactions", "compaction_uuid", "session_id, 'compaction', summary, source_file"),
    ):
        every = tx.rows(f"SELECT source, {name} FROM {table} WHERE {_OWN}", owner.names())
        for source, uuid in every:
            if entry_hash(source, uuid) in hashes:
                sql = f"SELECT source, {name}, {columns} FROM {table} WHERE {_OWN} AND source = :source"
                rows = tx.rows(f"{sql} AND {name} = :uuid", {**owner.names(), "source": source, "uuid": uuid})
                found += [Said(*row) for row in rows]
    return found


def session_keys(tx: Transaction, owner: Owner) -> list[str]:
    """Of every conversation that any row tells something of."""
    tables = ("memory_conversations", "memory_artifacts", "memory_stage1", "memory_sources")
    rows = tx.rows(" UNION ".join(f"SELECT session_key FROM {table} WHERE {_OWN}" for table in tables), owner.names())
    return sorted(key for (key,) in rows)


def turns(tx: Transaction, owner: Owner, kind: str, **within: str) -> list[tuple[str, str, str]]:
    """(session, turn, where it stands) of the artifacts of a kind: of a `session_id`, `project`, `user_id`, or all."""
    where = "".join(
        f" AND {name} = :{name}" for name in sorted({"session_id", "project", "user_id"}.intersection(within))
    )
    sql = f"SELECT session_id, turn_id, hosted_uri FROM memory_turn_artifacts WHERE {_OWN} AND kind = :kind{where}"
    rows = tx.rows(sql, {**owner.names(), **within, "kind": kind})
    return [(session, turn, hosted) for session, turn, hosted in rows]
