"""memory_vectors and memory_vector_models: vectors of documents, and whose answer queries.

A document is an entry, a summary or a memory. Its vector goes with it, or when its text, project or occasions change:
triggers see to that, so that no writer has to think of it. Vectors are written by one transaction at a time per owner
and model, so ids grow in the order of commits: whoever read up to an id has everything below it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from recollect.occasions import parted
from recollect.store.database import Transaction
from recollect.types import Owner, Timestamp

if TYPE_CHECKING:  # `status` counts vectors and does not wait for numpy
    import numpy as np
    from numpy.typing import NDArray

    Matrix = NDArray[np.float32]

_OWN = "v.tenant = :tenant AND v.agent_id = :agent_id AND v.model = :model"
# The same, but of no use to an index: rows are to be found by their ids, or by their documents. Without statistics
# SQLite would think that owner and model name a handful of rows.
_BY_ID = "v.tenant || '' = :tenant AND v.agent_id || '' = :agent_id AND v.model || '' = :model"
_BY_DOCUMENT = "v.tenant = :tenant AND v.agent_id = :agent_id AND v.model || '' = :model"
# What a memory said before is not what it is about.
_HOLDS = (
    "(v.kind <> 'memory' OR v.number = (SELECT m.revision FROM memory_memories m WHERE m.tenant = v.tenant"
    " AND m.agent_id = v.agent_id AND m.memory_id = v.ref ORDER BY m.valid_from DESC, m.revision DESC LIMIT 1))"
)


class Kind(StrEnum):
    ENTRY = "entry"
    SUMMARY = "summary"
    MEMORY = "memory"


class Ref(NamedTuple):
    """A document."""

    kind: Kind
    key: str  # the entry's id, the summary's session_key, the memory's id
    revision: int = 0  # of the memory


class Status(StrEnum):
    SERVING = "serving"  # its vectors answer queries
    STAGED = "staged"  # its vectors are being made; it serves when there is one for every document


@dataclass(frozen=True, slots=True)
class Model:
    name: str  # id of the embedder
    dimensions: int
    status: Status
    cache: str  # name of the folder with its codes: another one whenever the vectors begin anew


_OF_USER = "\x1e"  # stands between a project and the user of a chat


def room(project_id: str, user: str) -> str:
    """What a vector is filed under: its project, and the user of a chat whose document it is."""
    return f"{project_id}{_OF_USER}{user}" if user else project_id


@dataclass(frozen=True, slots=True)
class Filter:
    """What a query may see of its owner's documents. An empty filter lets nothing through."""

    projects: frozenset[str] | None = frozenset()  # or rooms; "": of memories that hold everywhere; None: every project
    kinds: frozenset[Kind] = field(default=frozenset(Kind))
    user: str = ""  # of a chat, whose rooms are seen where no project is named

    def allows(self, kind: Kind, project_id: str) -> bool:
        return kind in self.kinds and self.sees(project_id)

    def sees(self, project_id: str) -> bool:
        if self.projects is None:
            return project_id.partition(_OF_USER)[2] == self.user
        return project_id in self.projects


EVERYTHING = Filter(projects=None)


@dataclass(frozen=True, slots=True)
class Document:
    ref: Ref
    project_id: str
    text: str
    whole: bool  # what is said in the middle of it matters less: it gets no passages
    occasions: tuple[str, ...] = ()  # of a memory: when it matters


@dataclass(frozen=True, slots=True)
class Vectors:
    """Rows of vectors, as many as ids. A document may have several: of its whole text, and of its passages."""

    ids: list[int]
    refs: list[Ref]
    projects: list[str]
    rows: Matrix


class Part(NamedTuple):
    """What a vector is of."""

    document: Document
    number: int  # 0: the whole text; from 1: a passage


# Where each kind of document lives: its columns, its table, and what makes it visible.
@dataclass(frozen=True, slots=True)
class _Place:
    table: str
    ref: str
    number: str
    project: str
    text: str
    newest: str  # what orders documents by age
    visible: str
    whole: str  # true where passages are not worth it
    occasions: str = "''"


_SCOPE_PROJECT = (  # a memory of a conversation belongs to that conversation's project, or to none that has a name
    "CASE d.scope WHEN 'user' THEN '' WHEN 'project' THEN d.scope_id ELSE COALESCE((SELECT s.project_id"
    " FROM memory_stage1 s WHERE s.tenant = d.tenant AND s.agent_id = d.agent_id AND s.session_key = d.scope_id),"
    " d.scope_id) END"
)
_USER = f" || CASE d.user_id WHEN '' THEN '' ELSE '{_OF_USER}' || d.user_id END"
_PLACES = {
    Kind.ENTRY: _Place(
        "memory_transcript_entries",
        "''",
        "d.id",
        f"d.project_id{_USER}",
        "d.content",
        "d.id",
        "d.withdrawn = 0",
        "d.role <> 'user'",
    ),
    Kind.SUMMARY: _Place(
        "memory_stage1",
        "d.session_key",
        "0",
        f"d.project_id{_USER}",
        "d.memory_sentence || ' ' || d.rollout_summary",
        "d.source_updated_at",
        "1 = 1",
        "1 = 0",
    ),
    Kind.MEMORY: _Place(
        "memory_memories",
        "d.memory_id",
        "d.revision",
        f"{_SCOPE_PROJECT}{_USER}",
        "d.text",
        "d.valid_from",
        "1 = 1",
        "1 = 0",
        "d.occasions",
    ),
}


# Models


def models(tx: Transaction, owner: Owner) -> list[Model]:
    rows = tx.rows(
        "SELECT model, dimensions, status, cache FROM memory_vector_models"
        " WHERE tenant = :tenant AND agent_id = :agent_id ORDER BY created_at, model",
        owner.names(),
    )
    return [Model(name, dimensions, Status(status), cache) for name, dimensions, status, cache in rows]


def save_model(tx: Transaction, owner: Owner, model: Model, now: Timestamp) -> None:
    """A model that comes to serve takes the place of the one that served."""
    names = {**owner.names(), **asdict(model), "now": now}
    if model.status is Status.SERVING:
        tx.run(
            "UPDATE memory_vector_models SET status = 'staged' WHERE tenant = :tenant AND agent_id = :agent_id"
            " AND model <> :name",
            names,
        )
    tx.run(
        "INSERT INTO memory_vector_models (tenant, agent_id, model, dimensions, status, cache, created_at)"
        " VALUES (:tenant, :agent_id, :name, :dimensions, :status, :cache, :now)"
        " ON CONFLICT (tenant, agent_id, model) DO UPDATE SET dimensions = excluded.dimensions,"
        " status = excluded.status",
        names,
    )


def delete_model(tx: Transaction, owner: Owner, model: str, *, limit: int = 20_000) -> int:
    """Some of its vectors; the model itself when none is left. How many went."""
    names = {**owner.names(), "model": model, "limit": limit}
    gone = tx.run(
        f"DELETE FROM memory_vectors WHERE id IN (SELECT v.id FROM memory_vectors v WHERE {_OWN} LIMIT :limit)", names
    )
    if gone < limit:
        tx.run(
            "DELETE FROM memory_vector_models WHERE tenant = :tenant AND agent_id = :agent_id AND model = :model",
            names,
        )
    return gone


# Documents


def backlog(tx: Transaction, owner: Owner, model: str) -> dict[Kind, int]:
    """How many have no vector of the model."""
    names = {**owner.names(), "model": model}
    sql = f"SELECT v.kind, COUNT(*) FROM memory_vectors v WHERE {_OWN} AND v.part = 0 GROUP BY v.kind"
    done: dict[str, int] = dict(tx.rows(sql, names))
    found = {}
    for kind, place in _PLACES.items():
        row = tx.row(f"SELECT COUNT(*) FROM {place.table} d WHERE {_owned()}", owner.names())
        found[kind] = max(0, int(row[0] if row else 0) - int(done.get(kind, 0)))
    return found


def count(tx: Transaction, owner: Owner, model: str, last: int) -> int:
    """How many vectors of the model have an id of at most `last`."""
    names = {**owner.names(), "model": model, "last": last}
    row = tx.row(f"SELECT COUNT(*) FROM memory_vectors v WHERE {_OWN} AND v.id <= :last", names)
    return int(row[0]) if row else 0


def missing(tx: Transaction, owner: Owner, model: str, kind: Kind, limit: int) -> list[Ref]:
    """Documents without a vector of the model, newest first."""
    place = _PLACES[kind]
    rows = tx.rows(
        f"SELECT {place.ref}, {place.number} FROM {place.table} d WHERE {_owned()} AND NOT EXISTS (SELECT 1"
        " FROM memory_vectors v WHERE v.tenant = :tenant AND v.agent_id = :agent_id AND v.kind = :kind"
        f" AND v.ref = {place.ref} AND v.number = {place.number} AND v.model = :model AND v.part = 0)"
        f" ORDER BY {place.newest} DESC LIMIT :limit",
        {**owner.names(), "model": model, "kind": kind, "limit": limit},
    )
    return [_ref(kind, *row) for row in rows]


def load(tx: Transaction, owner: Owner, refs: Sequence[Ref]) -> list[Document]:
    """Those of the documents that exist, as they are now."""
    found = []
    for kind, group in _by_kind(refs):
        place = _PLACES[kind]
        columns = f"{place.project}, {place.text}, CASE WHEN {place.whole} THEN 1 ELSE 0 END, {place.occasions}"
        for ref, project, text, whole, told in _documents(tx, owner, kind, group, columns):
            found.append(Document(ref, project, text, bool(whole), parted(told)))
    return found


# Vectors


def insert(tx: Transaction, owner: Owner, model: str, made: Sequence[Part], rows: Matrix) -> int:
    """How many were new. The model's row is locked first: ids grow in the order of commits."""
    names = {**owner.names(), "model": model}
    known = tx.row(
        "SELECT model FROM memory_vector_models WHERE tenant = :tenant AND agent_id = :agent_id AND model = :model "
        + tx.dialect.for_update,
        names,
    )
    if known is None or not made:
        return 0
    return tx.run_many(
        "INSERT INTO memory_vectors (tenant, agent_id, kind, ref, number, model, part, project_id, vector)"
        " VALUES (:tenant, :agent_id, :kind, :ref, :number, :model, :part, :project_id, :vector)"
        " ON CONFLICT DO NOTHING",
        [
            (owner.tenant, owner.agent_id, each.ref.kind, *_key(each.ref), model, part, each.project_id, vector)
            for (each, part), vector in zip(made, _stored(tx, rows), strict=True)
        ],
    )


def after(tx: Transaction, owner: Owner, model: Model, id: int, limit: int) -> Vectors:
    """Vectors with a greater id, in the order of ids."""
    rows = tx.rows(
        f"SELECT {_columns(tx)} FROM memory_vectors v WHERE v.id > :last AND {_BY_ID} ORDER BY v.id LIMIT :limit",
        {**owner.names(), "model": model.name, "last": id, "limit": limit},
    )
    return _vectors(tx, rows, model.dimensions)


def ids(tx: Transaction, owner: Owner, model: str) -> list[int]:
    """Of all its vectors, in order."""
    rows = tx.rows(f"SELECT v.id FROM memory_vectors v WHERE {_OWN} ORDER BY v.id", {**owner.names(), "model": model})
    return [id for (id,) in rows]


def visible(tx: Transaction, owner: Owner, model: Model, scope: Filter, ids: Sequence[int]) -> Vectors:
    """Those of the vectors whose document exists, holds, is not withdrawn, and is within the scope as it stands now."""
    return _allowed(tx, owner, scope, of_ids(tx, owner, model, ids, f" AND {_HOLDS}"))


def of_documents(tx: Transaction, owner: Owner, model: Model, refs: Sequence[Ref]) -> Vectors:
    """The vectors of these documents, as far as they have some."""
    asked = dict(locate(tx, owner, model.name, refs))
    found = of_ids(tx, owner, model, list(asked))
    return replace(found, refs=[asked[id] for id in found.ids])


def locate(tx: Transaction, owner: Owner, model: str, refs: Iterable[Ref]) -> list[tuple[int, Ref]]:
    """Ids of the vectors of these documents, in order. A memory without a revision is the one that holds."""
    found: list[tuple[int, Ref]] = []
    names = {**owner.names(), "model": model}
    own = f"FROM memory_vectors v WHERE {_BY_DOCUMENT} AND v.kind = :kind"
    for kind, group in _by_kind(refs):
        if kind is Kind.ENTRY:  # hundreds at a time
            numbers = {int(ref.key): ref for ref in group}
            sql = f"SELECT v.id, v.number {own} AND v.ref = '' AND v.number {_among(tx)}"
            rows = tx.rows(sql, {**names, "kind": kind, "among": _list(tx, numbers)})
            found += [(id, numbers[number]) for id, number in rows]
            continue
        keys = {_key(ref): ref for ref in group}
        sql = f"SELECT v.id, v.ref, v.number, CASE WHEN {_HOLDS} THEN 1 ELSE 0 END {own} AND v.ref {_among(tx)}"
        for id, ref, number, holds in tx.rows(
            sql, {**names, "kind": kind, "among": _list(tx, [ref.key for ref in group])}
        ):
            asked = keys.get((ref, number)) or (keys.get((ref, 0)) if holds else None)
            if asked is not None:
                found.append((id, asked))
    return sorted(found, key=itemgetter(0))


def refs_of(tx: Transaction, owner: Owner, model: str, ids: Sequence[int]) -> dict[int, Ref]:
    """The documents of vectors that are still there; of a memory the revision that holds."""
    kinds = {str(kind): kind for kind in Kind}
    rows = tx.rows(
        f"SELECT v.id, v.kind, v.ref, v.number FROM memory_vectors v WHERE {_BY_ID} AND v.id {_among(tx)} AND {_HOLDS}",
        {**owner.names(), "model": model, "among": _list(tx, ids)},
    )
    return {id: _ref(kinds[kind], ref, number) for id, kind, ref, number in rows}


def of_ids(tx: Transaction, owner: Owner, model: Model, ids: Sequence[int], where: str = "") -> Vectors:
    """Vectors by their ids, whoever may see their documents."""
    rows = tx.rows(
        f"SELECT {_columns(tx)} FROM memory_vectors v WHERE {_BY_ID} AND v.id {_among(tx)}{where}",
        {**owner.names(), "model": model.name, "among": _list(tx, ids)},
    )
    return _vectors(tx, rows, model.dimensions)


def delete(tx: Transaction, owner: Owner, refs: Sequence[Ref]) -> int:
    """The vectors of these documents, of every model. How many there were."""
    return sum(
        tx.run(
            "DELETE FROM memory_vectors WHERE tenant = :tenant AND agent_id = :agent_id AND kind = :kind"
            " AND ref = :ref AND number = :number",
            {**owner.names(), "kind": ref.kind, **dict(zip(("ref", "number"), _key(ref), strict=True))},
        )
        for ref in dict.fromkeys(refs)
    )


def _allowed(tx: Transaction, owner: Owner, scope: Filter, found: Vectors) -> Vectors:
    """Those whose document may be seen, with the project that it belongs to now."""
    projects: dict[Ref, str] = {}
    for kind, group in _by_kind(ref for ref in found.refs if ref.kind in scope.kinds):
        place = _PLACES[kind]
        for ref, project in _documents(tx, owner, kind, group, place.project, f" AND {place.visible}"):
            if scope.allows(kind, project):
                projects[ref] = project
    places = [place for place, ref in enumerate(found.refs) if ref in projects]
    refs = [found.refs[place] for place in places]
    return Vectors([found.ids[place] for place in places], refs, [projects[ref] for ref in refs], found.rows[places])


def _documents(
    tx: Transaction, owner: Owner, kind: Kind, refs: Sequence[Ref], columns: str, where: str = ""
) -> Iterator[tuple[Any, ...]]:
    """Ref and columns of these documents: an entry is found by its id, a summary or memory by its whole key."""
    place, wanted = _PLACES[kind], set(refs)
    own = "d.tenant || '' = :tenant AND d.agent_id || '' = :agent_id" if kind is Kind.ENTRY else _owned()
    key = place.number if kind is Kind.ENTRY else place.ref
    values = [int(ref.key) if kind is Kind.ENTRY else ref.key for ref in refs]
    sql = (
        f"SELECT {place.ref}, {place.number}, {columns} FROM {place.table} d WHERE {own} AND {key} {_among(tx)}{where}"
    )
    for ref, number, *rest in tx.rows(sql, {**owner.names(), "among": _list(tx, values)}):
        if (found := _ref(kind, ref, number)) in wanted:
            yield found, *rest


def _owned() -> str:
    return "d.tenant = :tenant AND d.agent_id = :agent_id"


def _key(ref: Ref) -> tuple[str, int]:
    """As it is stored."""
    return ("", int(ref.key)) if ref.kind is Kind.ENTRY else (ref.key, ref.revision)


def _ref(kind: Kind, ref: str, number: int) -> Ref:
    return Ref(kind, str(number)) if kind is Kind.ENTRY else Ref(kind, ref, number)


def _by_kind(refs: Iterable[Ref]) -> Iterable[tuple[Kind, list[Ref]]]:
    groups: dict[Kind, list[Ref]] = {}
    for ref in dict.fromkeys(refs):
        groups.setdefault(ref.kind, []).append(ref)
    return groups.items()


def _among(tx: Transaction) -> str:
    """`IN` a list of any length that is bound as one parameter, :among."""
    return "IN (SELECT value FROM json_each(:among))" if tx.dialect.name == "sqlite" else "= ANY(:among)"


def _list(tx: Transaction, values: Iterable[Any]) -> Any:
    every = list(dict.fromkeys(values))
    return msgspec.json.encode(every).decode() if tx.dialect.name == "sqlite" else every


# How a database keeps a row of numbers: SQLite as 16-bit floats, PostgreSQL as an array that pgvector can index.

_ELEMENT = [("length", ">i4"), ("value", ">f4")]
_HEADER = 20  # of an array in PostgreSQL's binary form


def _stored(tx: Transaction, rows: Matrix) -> list[Any]:
    if tx.dialect.name == "sqlite":
        return [row.tobytes() for row in rows.astype("<f2")]
    same = rows.astype("<f2").astype("<f4")  # the same numbers in both databases
    return [f"{{{','.join(map(str, row))}}}" for row in same.tolist()]  # five times faster than psycopg's own arrays


def _columns(tx: Transaction) -> str:
    vector = "v.vector" if tx.dialect.name == "sqlite" else "array_send(v.vector)"
    return f"v.id, v.kind, v.ref, v.number, v.project_id, {vector}"


def _vectors(tx: Transaction, found: Sequence[Any], dimensions: int) -> Vectors:
    """Rows that have other dimensions than the model are none of its."""
    import numpy as np

    if tx.dialect.name == "sqlite":
        size = dimensions * 2
        good = [row for row in found if len(row[5]) == size]
        data = np.frombuffer(b"".join(row[5] for row in good), "<f2")
    else:
        size = _HEADER + dimensions * 8
        good = [row for row in found if len(row[5]) == size]
        data = np.frombuffer(b"".join(bytes(row[5])[_HEADER:] for row in good), _ELEMENT)["value"]
    kinds = {str(kind): kind for kind in Kind}
    return Vectors(
        [row[0] for row in good],
        [_ref(kinds[row[1]], row[2], row[3]) for row in good],
        [row[4] for row in good],
        data.astype(np.float32).reshape(len(good), dimensions),
    )
