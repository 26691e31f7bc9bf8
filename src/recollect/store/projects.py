"""memory_projects: which project a folder is. memory_repositories: which git directories of this machine are known."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from recollect.store import sums
from recollect.store.database import Transaction
from recollect.types import Owner, Timestamp


class Resolved(StrEnum):
    """What told the project of a folder."""

    REMOTE = "remote"  # the repository's remote
    GIT = "git"  # the git directory of a repository without a remote
    PATH = "path"  # the folder's path: it is in no repository
    ARTIFACT = "artifact"  # a canonical file
    CONFIRMED = "confirmed"  # a person
    WAITING = "waiting"  # nobody yet: it says that it is a known project, and has a project of its own until then


@dataclass(frozen=True, slots=True)
class Project:
    """A folder and its project. Both are as they may be stored."""

    cwd: str
    project_id: str
    resolved_by: str
    resolved_at: str = field(default="", compare=False)  # empty: just now
    claim: str = field(default="", compare=False)  # the project that a waiting folder says it is


@dataclass(frozen=True, slots=True)
class Repository:
    """A git directory of this machine, or a folder without one."""

    identity: str
    project_id: str
    is_confirmed: bool = False  # by a person


@dataclass(frozen=True, slots=True)
class Recorded:
    """Everything that is known of folders."""

    folders: Mapping[str, Project] = field(default_factory=dict)
    repositories: Mapping[str, Repository] = field(default_factory=dict)


def load(tx: Transaction, owner: Owner) -> Recorded:
    repositories = tx.rows(
        "SELECT identity, project_id, confirmed FROM memory_repositories"
        " WHERE tenant = :tenant AND agent_id = :agent_id",
        owner.names(),
    )
    known = {row[0]: Repository(row[0], row[1], bool(row[2])) for row in repositories}
    return Recorded(load_all(tx, owner), known)


def load_all(tx: Transaction, owner: Owner) -> dict[str, Project]:
    sql = "SELECT cwd, project_id, resolved_by, resolved_at FROM memory_projects"
    found = tx.rows(f"{sql} WHERE tenant = :tenant AND agent_id = :agent_id", owner.names())
    return {row[0]: Project(*row) for row in found}


def save(tx: Transaction, owner: Owner, projects: Iterable[Project], now: Timestamp) -> None:
    """The first resolution of a folder stays, so that entries of one folder agree."""
    tx.run_many(
        "INSERT INTO memory_projects (tenant, agent_id, cwd, project_id, resolved_by, resolved_at)"
        " VALUES (:tenant, :agent_id, :cwd, :project_id, :resolved_by, :now) ON CONFLICT DO NOTHING",
        [_row(owner, project, now) for project in projects],
    )


def move(tx: Transaction, owner: Owner, projects: Iterable[Project], now: Timestamp) -> None:
    """Another repository is in these folders: from now on they are its."""
    tx.run_many(
        "UPDATE memory_projects SET project_id = :project_id, resolved_by = :resolved_by, resolved_at = :now"
        " WHERE tenant = :tenant AND agent_id = :agent_id AND cwd = :cwd",
        [_row(owner, project, now) for project in projects],
    )


def record(tx: Transaction, owner: Owner, repositories: Iterable[Repository], now: Timestamp) -> None:
    """Say whose project these git directories are. What a person confirmed goes before what was seen first."""
    tx.run_many(
        "INSERT INTO memory_repositories (tenant, agent_id, identity, project_id, confirmed, recorded_at)"
        " VALUES (:tenant, :agent_id, :identity, :project_id, :confirmed, :now)"
        " ON CONFLICT (tenant, agent_id, identity) DO UPDATE SET project_id = excluded.project_id, confirmed = 1"
        " WHERE excluded.confirmed = 1",
        [
            {
                **owner.names(),
                "identity": each.identity,
                "project_id": each.project_id,
                "confirmed": int(each.is_confirmed),
                "now": now,
            }
            for each in repositories
        ],
    )


_FOLDERS = (  # (table, column with the name of a folder or a project, condition)
    ("memory_transcript_entries", "cwd", ""),
    ("memory_transcript_entries", "project_id", ""),
    ("memory_conversations", "project", ""),
    ("memory_conversations", "project_id", ""),
    ("memory_stage1", "project", ""),
    ("memory_stage1", "project_id", ""),
    ("memory_artifacts", "project", ""),
    ("memory_artifacts", "project_id", ""),
    ("memory_memories", "scope_id", " AND scope = 'project'"),
    ("memory_sources", "scope_id", " AND scope = 'project'"),
    ("memory_repositories", "project_id", ""),
    ("memory_projects", "project_id", ""),
    ("memory_projects", "cwd", ""),
)


def names(tx: Transaction, owner: Owner) -> list[str]:
    """What folders and projects are called, wherever it stands. What a chat calls its project is no folder."""
    own = "WHERE tenant = :tenant AND agent_id = :agent_id"
    found: set[str] = set()
    for table, column, condition in _FOLDERS:
        found |= {name for (name,) in tx.rows(f"SELECT DISTINCT {column} FROM {table} {own}{condition}", owner.names())}
    chats = tx.rows(f"SELECT DISTINCT project FROM memory_turn_artifacts {own}", owner.names())
    return sorted(found - {name for (name,) in chats} - {""})


def rename(tx: Transaction, owner: Owner, changes: Mapping[str, str]) -> int:
    """Folders and projects, from one name to another, everywhere; how many rows that were."""
    if not changes:
        return 0
    sums.drop_all(tx, owner)
    own = "WHERE tenant = :tenant AND agent_id = :agent_id"
    rows = [{**owner.names(), "before": before, "after": after} for before, after in sorted(changes.items())]
    known = "SELECT 1 FROM memory_projects k WHERE k.tenant = :tenant AND k.agent_id = :agent_id AND k.cwd = :after"
    tx.run_many(f"DELETE FROM memory_projects {own} AND cwd = :before AND EXISTS ({known})", rows)
    return sum(
        tx.run_many(f"UPDATE {table} SET {column} = :after {own} AND {column} = :before{condition}", rows)
        for table, column, condition in _FOLDERS
    )


def _row(owner: Owner, project: Project, now: Timestamp) -> dict[str, str]:
    row = {"cwd": project.cwd, "project_id": project.project_id, "resolved_by": str(project.resolved_by), "now": now}
    return {**owner.names(), **row}
