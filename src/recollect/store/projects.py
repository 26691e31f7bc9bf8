"""memory_projects: which project a folder is. memory_repositories: which git directories of this machine are known."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

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


def _row(owner: Owner, project: Project, now: Timestamp) -> dict[str, str]:
    row = {"cwd": project.cwd, "project_id": project.project_id, "resolved_by": str(project.resolved_by), "now": now}
    return {**owner.names(), **row}
