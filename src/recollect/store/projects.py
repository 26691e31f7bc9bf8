"""memory_projects: which project a working directory belongs to."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field

from recollect.store.database import Transaction
from recollect.types import Owner, Timestamp


@dataclass(frozen=True, slots=True)
class Project:
    cwd: str
    project_id: str
    resolved_by: str  # remote | git | path | artifact
    resolved_at: str = field(default="", compare=False)  # empty: just now


def load_all(tx: Transaction, owner: Owner) -> dict[str, Project]:
    sql = "SELECT cwd, project_id, resolved_by, resolved_at FROM memory_projects"
    found = tx.rows(f"{sql} WHERE tenant = :tenant AND agent_id = :agent_id", owner.names())
    return {row[0]: Project(*row) for row in found}


def save(tx: Transaction, owner: Owner, projects: Iterable[Project], now: Timestamp) -> None:
    """The first resolution of a folder stays, so that entries of one folder agree."""
    tx.run_many(
        "INSERT INTO memory_projects (tenant, agent_id, cwd, project_id, resolved_by, resolved_at)"
        " VALUES (:tenant, :agent_id, :cwd, :project_id, :resolved_by, :now) ON CONFLICT DO NOTHING",
        [{**owner.names(), **asdict(project), "now": now} for project in projects],
    )


def move(tx: Transaction, owner: Owner, projects: Iterable[Project], now: Timestamp) -> None:
    """Another repository is in these folders: from now on they are its."""
    tx.run_many(
        "UPDATE memory_projects SET project_id = :project_id, resolved_by = :resolved_by, resolved_at = :now"
        " WHERE tenant = :tenant AND agent_id = :agent_id AND cwd = :cwd",
        [{**owner.names(), **asdict(project), "now": now} for project in projects],
    )
