"""memory_tombstones: hashes of what was erased, so that it is dropped wherever it appears again."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

from recollect.store.database import Transaction, marks
from recollect.text import plain
from recollect.types import Owner


def entry_hash(source: str, uuid: str) -> str:
    return _hash("entry", source, uuid)


def text_hash(source: str, session_id: str, role: str, text: str) -> str:
    """Of what was said in a session: where a copy has another id, in a fork or a rewritten transcript."""
    return _hash("text", source, session_id, role, plain(text))


def _hash(*parts: str) -> str:
    return hashlib.sha256("\x1f".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:40]


_OWN = "tenant = :tenant AND agent_id = :agent_id"
_CHUNK = 400


def save(tx: Transaction, owner: Owner, source_path: str, hashes: Iterable[str]) -> None:
    tx.run_many(
        "INSERT INTO memory_tombstones (tenant, agent_id, hash, source_path) VALUES (:tenant, :agent_id, :hash, :path)"
        " ON CONFLICT DO NOTHING",
        [(owner.tenant, owner.agent_id, each, source_path) for each in sorted(set(hashes))],
    )


def exist(tx: Transaction, owner: Owner) -> bool:
    """Was anything ever erased? Asked for every batch of entries, and nearly always answered with no."""
    return tx.row(f"SELECT 1 FROM memory_tombstones WHERE {_OWN} LIMIT 1", owner.names()) is not None


def erased(tx: Transaction, owner: Owner, hashes: Sequence[str]) -> set[str]:
    """Those of the hashes that were erased."""
    found: set[str] = set()
    for start in range(0, len(hashes), _CHUNK):
        placeholders, chosen = marks("h", hashes[start : start + _CHUNK])
        rows = tx.rows(
            f"SELECT hash FROM memory_tombstones WHERE {_OWN} AND hash IN ({placeholders})",
            {**owner.names(), **chosen},
        )
        found |= {hash_ for (hash_,) in rows}
    return found


def paths(tx: Transaction, owner: Owner) -> set[str]:
    """Tombstones whose hashes are here."""
    return {
        path for (path,) in tx.rows(f"SELECT DISTINCT source_path FROM memory_tombstones WHERE {_OWN}", owner.names())
    }
