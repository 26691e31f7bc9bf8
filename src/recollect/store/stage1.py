"""memory_stage1 and memory_stage1_use: outputs of phase 1, their use, and the baseline of phase 2.

A row that is replaced keeps its use and its baseline: those are operational and stand in a table of their own.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from recollect.store.database import Transaction, outside, rows_of
from recollect.types import Owner, Stage1, Timestamp

FIELDS = tuple(Stage1.__dataclass_fields__)
COLUMNS = tuple("user_id" if name == "user" else name for name in FIELDS)
_OWN = "tenant = :tenant AND agent_id = :agent_id"


@dataclass(frozen=True, slots=True)
class Input:
    """A stage-1 row as phase 2 sees it."""

    row: Stage1
    usage_count: int
    last_usage: str  # empty: never
    selected: str  # generated_at of the snapshot that the last consolidation consumed; empty: none


def save(tx: Transaction, owner: Owner, rows: Sequence[Stage1]) -> None:
    changes = ", ".join(f"{name} = excluded.{name}" for name in COLUMNS if name != "session_key")
    tx.run_many(
        f"INSERT INTO memory_stage1 (tenant, agent_id, {', '.join(COLUMNS)})"
        f" VALUES (:tenant, :agent_id, {', '.join(':' + name for name in FIELDS)})"
        f" ON CONFLICT (tenant, agent_id, session_key) DO UPDATE SET {changes}",
        [(owner.tenant, owner.agent_id, *(getattr(row, name) for name in FIELDS)) for row in rows],
    )


def delete(tx: Transaction, owner: Owner, session_keys: Sequence[str]) -> None:
    """A conversation without output has no row; its use and baseline stay until phase 2 has seen that it is gone."""
    tx.run_many(
        f"DELETE FROM memory_stage1 WHERE {_OWN} AND session_key = :key",
        [{**owner.names(), "key": key} for key in session_keys],
    )


def load(tx: Transaction, owner: Owner, session_key: str) -> Stage1 | None:
    row = tx.row(
        f"SELECT {', '.join(COLUMNS)} FROM memory_stage1 WHERE {_OWN} AND session_key = :key",
        {**owner.names(), "key": session_key},
    )
    return Stage1(*row) if row else None


_USED = (
    " FROM memory_stage1 s LEFT JOIN memory_stage1_use u"
    " ON u.tenant = s.tenant AND u.agent_id = s.agent_id AND u.session_key = s.session_key"
    " WHERE s.tenant = :tenant AND s.agent_id = :agent_id AND s.user_id || '' = ''"  # by key, not by user
)


def kept_by_older(tx: Transaction, owner: Owner, family: str, current: str) -> int:
    """How many memories conversations state that were read by other strategies of this family than the current one."""
    row = tx.row(
        "SELECT COUNT(DISTINCT s.memory_id) FROM memory_stage1 t JOIN memory_sources s ON s.tenant = t.tenant"
        " AND s.agent_id = t.agent_id AND s.session_key = t.session_key WHERE t.tenant = :tenant"
        " AND t.agent_id = :agent_id AND t.strategy LIKE :family AND t.strategy <> :current",
        {**owner.names(), "family": f"{family}-v%", "current": current},
    )
    return int(row[0]) if row else 0


def strategies(tx: Transaction, owner: Owner) -> dict[str, str]:
    """Session key → who read that conversation; nothing of those in which nothing was kept."""
    return dict(tx.rows(f"SELECT session_key, strategy FROM memory_stage1 WHERE {_OWN}", owner.names()))


def summaries(tx: Transaction, owner: Owner, session_keys: Sequence[str]) -> dict[str, str]:
    """What these conversations' summaries tell; nothing of those in which nothing was kept."""
    sql = (
        "SELECT session_key, rollout_summary FROM memory_stage1 WHERE tenant = :tenant AND agent_id = :agent_id"
        " AND session_key IN ({among})"
    )
    return dict(rows_of(tx, sql, owner.names(), session_keys))


def inputs(tx: Transaction, owner: Owner, keys: Sequence[str]) -> list[Input]:
    """The rows of these conversations with their use, newest first. What users of chats said is theirs."""
    columns = ", ".join(f"s.{name}" for name in COLUMNS)
    sql = (
        f"SELECT {columns}, COALESCE(u.usage_count, 0), COALESCE(u.last_usage, ''),"
        f" CASE WHEN u.selected_for_phase2 = 1 THEN u.selected_for_phase2_generated_at ELSE '' END{_USED}"
        " AND s.session_key IN ({among})"
    )
    rows = rows_of(tx, sql, owner.names(), keys)
    found = sorted((Input(Stage1(*row[:-3]), row[-3], row[-2], row[-1] or "") for row in rows), key=_key)
    return sorted(found, key=lambda each: each.row.source_updated_at, reverse=True)


def _key(each: Input) -> str:
    return each.row.session_key


def candidates(tx: Transaction, owner: Owner, since: Timestamp, most: int, without: Collection[str] = ()) -> list[str]:
    """Session keys of what phase 2 may select: the `most` best of those that were used, or else generated, `since` a
    time, but `without` these conversations; and what the last consolidation consumed. No text is read."""
    listed, names = outside(tx.dialect, "s.session_key", without)
    recent = (
        f"SELECT session_key FROM memory_stage1 WHERE {_OWN} AND user_id = '' AND generated_at >= :since"
        f" UNION SELECT session_key FROM memory_stage1_use WHERE {_OWN} AND last_usage >= :since"
    )
    touched = "COALESCE(NULLIF(u.last_usage, ''), s.generated_at)"
    best = tx.rows(
        f"SELECT s.session_key{_USED} AND s.session_key IN ({recent}) AND {touched} >= :since{listed}"
        f" ORDER BY COALESCE(u.usage_count, 0) DESC, {touched} DESC, s.source_updated_at DESC, s.session_key"
        " LIMIT :most",
        {**owner.names(), **names, "since": since, "most": most},
    )
    before = tx.rows(
        f"SELECT session_key FROM memory_stage1_use WHERE {_OWN} AND selected_for_phase2 = 1", owner.names()
    )
    return list(dict.fromkeys(key for (key,) in (*best, *before)))


def newest(tx: Transaction, owner: Owner, since: Timestamp) -> str:
    """The newest `source_updated_at` of what was generated `since` a time; empty when nothing was."""
    row = tx.row(
        f"SELECT MAX(source_updated_at) FROM memory_stage1 WHERE {_OWN} AND user_id = '' AND generated_at >= :since",
        {**owner.names(), "since": since},
    )
    return (row and row[0]) or ""


def vanished(tx: Transaction, owner: Owner) -> list[str]:
    """Session keys that the last consolidation consumed and that are none of its inputs any more."""
    rows = tx.rows(
        f"SELECT session_key FROM memory_stage1_use WHERE {_OWN} AND selected_for_phase2 = 1"
        " AND NOT EXISTS (SELECT 1 FROM memory_stage1 s WHERE s.tenant = :tenant AND s.agent_id = :agent_id"
        " AND s.session_key = memory_stage1_use.session_key AND s.user_id = '') ORDER BY session_key",
        owner.names(),
    )
    return [key for (key,) in rows]


def used(tx: Transaction, owner: Owner) -> list[str]:
    """Session keys whose use or baseline is known."""
    rows = tx.rows(f"SELECT session_key FROM memory_stage1_use WHERE {_OWN} ORDER BY session_key", owner.names())
    return [key for (key,) in rows]


def mark_selected(tx: Transaction, owner: Owner, snapshots: Iterable[Stage1]) -> None:
    """Exactly these are the baseline from now on."""
    tx.run(
        "UPDATE memory_stage1_use SET selected_for_phase2 = 0, selected_for_phase2_source_updated_at = '',"
        f" selected_for_phase2_generated_at = '' WHERE {_OWN} AND selected_for_phase2 = 1",
        owner.names(),
    )
    rows = [
        {**owner.names(), "key": each.session_key, "updated": each.source_updated_at, "generated": each.generated_at}
        for each in snapshots
    ]
    if rows:
        tx.run_many(
            "INSERT INTO memory_stage1_use (tenant, agent_id, session_key, usage_count, last_usage,"
            " selected_for_phase2, selected_for_phase2_source_updated_at, selected_for_phase2_generated_at)"
            " VALUES (:tenant, :agent_id, :key, 0, '', 1, :updated, :generated)"
            " ON CONFLICT (tenant, agent_id, session_key) DO UPDATE SET selected_for_phase2 = 1,"
            " selected_for_phase2_source_updated_at = excluded.selected_for_phase2_source_updated_at,"
            " selected_for_phase2_generated_at = excluded.selected_for_phase2_generated_at",
            rows,
        )


def cite(tx: Transaction, owner: Owner, session_keys: Sequence[str], now: Timestamp) -> None:
    """One more use of each."""
    if session_keys:
        tx.run_many(
            "INSERT INTO memory_stage1_use (tenant, agent_id, session_key, usage_count, last_usage,"
            " selected_for_phase2, selected_for_phase2_source_updated_at)"
            " VALUES (:tenant, :agent_id, :key, 1, :now, 0, '')"
            " ON CONFLICT (tenant, agent_id, session_key) DO UPDATE SET"
            " usage_count = memory_stage1_use.usage_count + 1, last_usage = excluded.last_usage",
            [{**owner.names(), "key": key, "now": now} for key in session_keys],
        )
