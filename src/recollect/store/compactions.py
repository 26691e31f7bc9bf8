"""memory_compactions: summaries by which agents replaced their own history; which of them have no file yet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from recollect.store.database import Transaction
from recollect.types import Owner, Timestamp


@dataclass(frozen=True, slots=True)
class Compacted:
    """A compaction as its agent reported it; the columns that follow from its file."""

    uuid: str
    source: str
    session_id: str
    source_file: str
    timestamp: Timestamp
    summary: str  # redacted


INSERT = (
    "INSERT INTO memory_compactions (tenant, agent_id, source, compaction_uuid, session_id, source_file, generation,"
    " line_offset, timestamp, summary) VALUES (:tenant, :agent_id, :source, :uuid, :session_id, :source_file,"
    " :generation, :line_offset, :timestamp, :summary)"
)


def unwritten(tx: Transaction, owner: Owner, limit: int) -> list[Compacted]:
    """Those that say something, belong to a session that is known, and have no file; oldest first."""
    rows = tx.rows(
        "SELECT k.compaction_uuid, k.source, k.session_id, k.source_file, k.timestamp, k.summary"
        " FROM memory_compactions k WHERE k.tenant = :tenant AND k.agent_id = :agent_id AND k.summary <> ''"
        " AND NOT EXISTS (SELECT 1 FROM memory_artifacts a WHERE a.tenant = :tenant AND a.agent_id = :agent_id"
        " AND a.source_node_id = k.compaction_uuid AND a.source_node_id <> '' AND a.harness = k.source)"
        " AND EXISTS (SELECT 1 FROM memory_conversations c WHERE c.tenant = :tenant AND c.agent_id = :agent_id"
        " AND c.session_key >= k.session_id || '@' AND c.session_key < k.session_id || 'A' AND c.source = k.source)"
        " ORDER BY k.timestamp, k.compaction_uuid LIMIT :limit",
        {**owner.names(), "limit": limit},
    )
    return [Compacted(*row) for row in rows]


def of_session(tx: Transaction, owner: Owner, source: str, session_id: str) -> list[Compacted]:
    """Oldest first."""
    rows = tx.rows(
        "SELECT compaction_uuid, source, session_id, source_file, timestamp, summary FROM memory_compactions"
        " WHERE tenant = :tenant AND agent_id = :agent_id AND source = :source AND session_id = :session_id"
        " ORDER BY timestamp, compaction_uuid",
        {**owner.names(), "source": source, "session_id": session_id},
    )
    return [Compacted(*row) for row in rows]


def save(tx: Transaction, owner: Owner, rows: Sequence[Compacted]) -> None:
    """Of files, or of an agent that told us itself: no line of a transcript stands behind them."""
    if rows:
        none = {"generation": 0, "line_offset": 0}
        tx.run_many(f"{INSERT} ON CONFLICT DO NOTHING", [{**owner.names(), **asdict(row), **none} for row in rows])
