"""Nearest vectors by pgvector, where the server has it. An index per model, made while the model has no vectors yet."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recollect.errors import StoreError
from recollect.store.database import Database, Transaction, marks
from recollect.store.vectors import Filter, Model
from recollect.types import Owner

Matrix = NDArray[np.float32]

FEW = 5_000  # vectors: so many are compared one by one, which is exact
_MOST = 1_000  # what pgvector lets a search look at
_LONGEST = 4_000  # dimensions that it can index; longer vectors are compared one by one

_IS_THERE = """
SELECT 1 FROM pg_extension WHERE extname = 'vector' AND to_regtype('halfvec') IS NOT NULL
  AND CAST(string_to_array(extversion, '.') AS INTEGER[]) >= ARRAY[0, 8]
"""


def is_there(tx: Transaction) -> bool:
    """In a schema that we see, and with the settings that `nearest` makes."""
    return tx.dialect.name == "postgres" and tx.row(_IS_THERE) is not None


def create(database: Database) -> bool:
    """Whether the server has it now. It may not have it to offer, or not to us."""
    with database.read() as tx:
        if tx.dialect.name != "postgres" or is_there(tx):
            return tx.dialect.name == "postgres"
        if tx.row("SELECT 1 FROM pg_available_extensions WHERE name = 'vector'") is None:
            return False
        allowed = tx.row(
            "SELECT has_database_privilege(current_database(), 'CREATE')"
            " AND (rolsuper OR (SELECT bool_or(trusted) FROM pg_available_extension_versions WHERE name = 'vector'))"
            " FROM pg_roles WHERE rolname = current_user"
        )
    if not allowed or not allowed[0]:
        return False
    try:
        with database.write() as tx:
            tx.script("CREATE EXTENSION IF NOT EXISTS vector")
    except StoreError:  # another process was faster
        pass
    with database.read() as tx:
        return is_there(tx)


def create_index(tx: Transaction, model: Model) -> None:
    """Names and numbers of ours only: a definition takes no parameters."""
    if model.dimensions > _LONGEST:
        return
    name = hashlib.sha256(model.name.encode()).hexdigest()[:12]
    literal = model.name.replace("'", "''")
    tx.script(
        f"CREATE INDEX IF NOT EXISTS memory_vectors_hnsw_{name} ON memory_vectors USING hnsw"
        f" ((vector::halfvec({model.dimensions:d})) halfvec_cosine_ops) WHERE model = '{literal}'"
    )


def analyze(tx: Transaction) -> None:
    """After many new vectors PostgreSQL has to look at them before it plans well. SQLite's plans need no statistics."""
    if tx.dialect.name == "postgres":
        tx.script("ANALYZE memory_vectors")


def nearest(
    tx: Transaction, owner: Owner, model: Model, query: Matrix, number: int, scope: Filter
) -> tuple[NDArray[np.int64], Matrix]:
    """Ids and similarities, best first: all within the scope where these are few, else what the index finds."""
    kinds, names = marks("kind", sorted(scope.kinds))
    where = f"v.tenant = :tenant AND v.agent_id = :agent_id AND v.model = :model AND v.kind IN ({kinds})"
    values: dict[str, Any] = {**owner.names(), "model": model.name, **names, "query": query.tolist()}
    if scope.projects is not None:
        where += " AND v.project_id = ANY(:projects)"
        values["projects"] = sorted(scope.projects)
    else:
        where += " AND split_part(v.project_id, chr(30), 2) = :user"
        values["user"] = scope.user
    few = tx.row(f"SELECT COUNT(*) FROM (SELECT 1 FROM memory_vectors v WHERE {where} LIMIT {FEW + 1}) AS few", values)
    exact = few is None or few[0] <= FEW
    size = f"halfvec({model.dimensions:d})"
    distance = f"(v.vector::{size}) <=> (:query)::real[]::{size}"
    if not exact:  # the values decide which index fits: the plan is made for them
        tx.rows(f"SELECT set_config('hnsw.ef_search', '{min(_MOST, max(200, number))}', true)")
        for key, value in (("hnsw.iterative_scan", "strict_order"), ("plan_cache_mode", "force_custom_plan")):
            tx.rows(f"SELECT set_config('{key}', '{value}', true)")
    rows = tx.rows(
        f"SELECT v.id, 1 - ({distance}) FROM memory_vectors v WHERE {where} ORDER BY"
        f" {f'({distance}) + 0' if exact else distance} LIMIT :number",
        {**values, "number": FEW if exact else number},
    )
    found = [(id, similarity) for id, similarity in rows if similarity == similarity]  # zeros are near nothing: NaN
    ids = np.array([id for id, _ in found], np.int64)
    return ids, np.array([similarity for _, similarity in found], np.float32)
