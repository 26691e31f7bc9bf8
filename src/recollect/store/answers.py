"""memory_answers and memory_token_accounts: answers that were paid for, and what they cost.

An answer is stored, with its price, before anything is done with it, and goes when the job that asked is done.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from recollect.store.database import Transaction
from recollect.types import Owner, Timestamp

_JOB = "tenant = :tenant AND agent_id = :agent_id AND kind = :kind AND job_key = :key"


@dataclass(frozen=True, slots=True)
class Stored:
    answer: str  # JSON
    answered_at: Timestamp


@dataclass(frozen=True, slots=True)
class Spent:
    """Tokens and cost of a day."""

    day: str
    model: str
    requests: int
    input_tokens: int
    output_tokens: int
    cost_micros: int


def load(tx: Transaction, owner: Owner, kind: str, key: str, input_hash: str) -> Stored | None:
    names = {**owner.names(), "kind": kind, "key": key, "hash": input_hash}
    row = tx.row(f"SELECT answer, answered_at FROM memory_answers WHERE {_JOB} AND input_hash = :hash", names)
    return Stored(*row) if row else None


def keys(tx: Transaction, owner: Owner, kind: str) -> set[str]:
    """Keys of the jobs of a kind that have an answer which is not used up."""
    names = {**owner.names(), "kind": kind}
    where = "WHERE tenant = :tenant AND agent_id = :agent_id AND kind = :kind"
    return {key for (key,) in tx.rows(f"SELECT DISTINCT job_key FROM memory_answers {where}", names)}


def save(tx: Transaction, owner: Owner, kind: str, key: str, input_hash: str, answer: str, now: Timestamp) -> None:
    """The first answer to a question stays."""
    names = {**owner.names(), "kind": kind, "key": key, "hash": input_hash, "answer": answer, "now": now}
    tx.run(
        "INSERT INTO memory_answers (tenant, agent_id, kind, job_key, input_hash, answer, answered_at)"
        " VALUES (:tenant, :agent_id, :kind, :key, :hash, :answer, :now) ON CONFLICT DO NOTHING",
        names,
    )


def delete(tx: Transaction, owner: Owner, kind: str, key: str) -> int:
    return tx.run(f"DELETE FROM memory_answers WHERE {_JOB}", {**owner.names(), "kind": kind, "key": key})


def delete_all(tx: Transaction, owner: Owner, keys: Sequence[str]) -> int:
    """Answers to jobs of any kind with these keys, and those that were given about everything at once."""
    removed = tx.run(
        "DELETE FROM memory_answers WHERE tenant = :tenant AND agent_id = :agent_id AND kind = 'consolidate'",
        owner.names(),
    )
    rows = [{**owner.names(), "key": key} for key in keys]
    sql = "DELETE FROM memory_answers WHERE tenant = :tenant AND agent_id = :agent_id AND job_key = :key"
    return removed + (tx.run_many(sql, rows) if rows else 0)


def charge(tx: Transaction, owner: Owner, kind: str, key: str, spent: Spent) -> None:
    """Adds to the account of a day, job and model."""
    tx.run(
        "INSERT INTO memory_token_accounts (tenant, agent_id, day, kind, job_key, model, requests, input_tokens,"
        " output_tokens, cost_micros) VALUES (:tenant, :agent_id, :day, :kind, :key, :model, :requests, :input_tokens,"
        " :output_tokens, :cost_micros) ON CONFLICT (tenant, agent_id, day, kind, job_key, model) DO UPDATE SET"
        " requests = memory_token_accounts.requests + excluded.requests,"
        " input_tokens = memory_token_accounts.input_tokens + excluded.input_tokens,"
        " output_tokens = memory_token_accounts.output_tokens + excluded.output_tokens,"
        " cost_micros = memory_token_accounts.cost_micros + excluded.cost_micros",
        {**owner.names(), "kind": kind, "key": key, **asdict(spent)},
    )


def tokens_on(tx: Transaction, owner: Owner, day: str) -> int:
    """Tokens of all kinds of jobs and all models."""
    row = tx.row(
        "SELECT COALESCE(SUM(input_tokens + output_tokens), 0) FROM memory_token_accounts"
        " WHERE tenant = :tenant AND agent_id = :agent_id AND day = :day",
        {**owner.names(), "day": day},
    )
    return int(row[0]) if row else 0


def spent(tx: Transaction, owner: Owner, since: str = "") -> list[Spent]:
    """Per day and model, newest first."""
    rows = tx.rows(
        "SELECT day, model, SUM(requests), SUM(input_tokens), SUM(output_tokens), SUM(cost_micros)"
        " FROM memory_token_accounts WHERE tenant = :tenant AND agent_id = :agent_id AND day >= :since"
        " GROUP BY day, model ORDER BY day DESC, model",
        {**owner.names(), "since": since},
    )
    return [Spent(row[0], row[1], *(int(each) for each in row[2:])) for row in rows]
