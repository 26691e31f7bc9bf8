"""The full-text indexes, and what search reads of entries, summaries and memories. Rows in, rows out; no ranking.

Every function takes a `Reach` and returns nothing outside it. Ids come first, as numbers; text is read only of rows
that the same statement finds within reach. An index knows which documents contain a word, and nothing else about it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from recollect.store import feedback
from recollect.store.database import Transaction, marks, outside
from recollect.store.memories import CURRENT
from recollect.store.unlisted import NOTHING, Unlisted
from recollect.store.vectors import Kind, Ref
from recollect.store.words import scope_word
from recollect.types import Owner

if TYPE_CHECKING:  # who looks into memory without a query does not load it
    import numpy as np
    from numpy.typing import NDArray

    Ids = NDArray[np.int64]

EVERYWHERE = "*"  # the project of a memory that holds in every project
_NEARLY_ALL = 0.9  # share of the documents that a scope has
_NEARLY_NEW = 1.02
_COUNTED = 50_000  # PostgreSQL: more rows than this are estimated


@dataclass(frozen=True, slots=True)
class Reach:
    """What a query may see."""

    owner: Owner
    projects: tuple[str, ...] | None  # None: every project of the owner; empty: nothing
    user: str = ""  # of a chat: what is theirs, and the memories of the projects that are nobody's; empty: the owner
    unlisted: Unlisted = NOTHING  # what is kept and not told

    def names(self) -> dict[str, Any]:
        return {"tenant": self.owner.tenant, "agent_id": self.owner.agent_id, "user": self.user}


@dataclass(frozen=True, slots=True)
class _Index:
    """A table with a full-text index over it."""

    table: str
    words: str  # SQLite: the FTS5 table
    vocabulary: str
    everywhere: bool  # rows may belong to every project


ENTRIES = _Index("memory_transcript_entries", "memory_entry_words", "memory_entry_vocabulary", everywhere=False)
TEXTS = _Index("memory_search_texts", "memory_text_words", "memory_text_vocabulary", everywhere=True)


@dataclass(frozen=True, slots=True)
class Matches:
    """Which documents contain which word."""

    total: int  # documents within reach
    found: dict[str, Ids]  # word → ascending ids; words that nobody uses are there with none
    skipped: tuple[str, ...]  # too common to be looked up beside the others


class Mark(NamedTuple):
    """What ranking needs to know of an entry before anybody reads it. A tuple: a query makes hundreds."""

    id: int
    session_id: str
    source_file: str
    source: str
    role: str
    timestamp: str
    size: int  # bytes


class TextMark(NamedTuple):
    """A memory, before anybody reads it."""

    id: int  # of the row that is indexed
    ref: str
    project_id: str
    told: int  # 1: somebody said when it matters


@dataclass(frozen=True, slots=True)
class Found:
    """A document with its text."""

    kind: Kind
    id: int  # of the row that is indexed
    ref: str  # the entry's uuid, the summary's session_key, the memory's id
    text: str
    timestamp: str  # when it was said; of a summary: its last message
    project_id: str
    source: str = ""
    session_id: str = ""
    session_key: str = ""
    source_file: str = ""
    role: str = ""
    memory_kind: str = ""
    severity: str = ""
    revision: int = 0
    path: str = ""  # the file to look into
    uses: int = 0
    last_use: str = ""
    feedback: float = 0.0  # -1 to 1: what people thought of it


# Words


Counts = dict[tuple[str, ...], tuple[int, int]]
"""Scope → the last row when it was counted, and how many documents it had then."""


def matches(
    tx: Transaction, reach: Reach, index: _Index, words: Sequence[str], budget: int, counts: Counts | None = None
) -> Matches:
    """Documents that may contain each word: ids for the caller to look up within reach.

    The rarest words come first, as many as `budget` postings allow; of a word that is beyond it all by itself, the
    newest documents. Where nearly all documents are within the owner's reach, postings are read as they are, which is
    ten times quicker: ids of others may be among them, and find nothing.
    """
    scope = _scope_words(reach, index)
    last = _last(tx, index)
    if not scope or not last:
        return Matches(0, {}, ())
    total = _counted(tx, index, scope, reach, last, {} if counts is None else counts)
    if not total or not words:
        return Matches(total, {}, ())
    known = {word: stem for word, stem in _stems(tx, words).items() if stem}
    within = scope if reach.user or total < _NEARLY_ALL * last else ()
    frequencies = {word: _frequency(tx, index, stem, within, budget) for word, stem in known.items()}
    found: dict[str, Ids] = {}
    skipped: list[str] = []
    left = budget
    for word in sorted(known, key=lambda each: (frequencies[each], each)):
        if frequencies[word] > left and any(len(ids) for ids in found.values()):
            skipped.append(word)
            continue
        found[word] = _postings(tx, index, word, known[word], within, budget if frequencies[word] else 0)
        left -= frequencies[word]
    return Matches(total, found, tuple(skipped))


def _last(tx: Transaction, index: _Index) -> int:
    table = f"{index.words}_docsize" if tx.dialect.name == "sqlite" else index.table
    row = tx.row(f"SELECT MAX(id) FROM {table}")
    return int(row[0] or 0) if row else 0


def _counted(tx: Transaction, index: _Index, scope: Sequence[str], reach: Reach, last: int, counts: Counts) -> int:
    """Documents within reach. Counting walks through all of them; a count that is nearly new will do."""
    key = (index.table, *scope)
    then, counted = counts.get(key, (0, 0))
    if not counted or not then <= last <= then * _NEARLY_NEW:
        counted = _count(tx, index, scope, reach)
        counts[key] = last, counted
    return counted


def _scope_words(reach: Reach, index: _Index) -> list[str]:
    owner = (reach.owner.tenant, reach.owner.agent_id)
    if reach.projects is None:
        return [scope_word(*owner, None, reach.user)]
    wide = (EVERYWHERE,) if index.everywhere and reach.projects else ()
    own = [scope_word(*owner, project, reach.user) for project in dict.fromkeys((*reach.projects, *wide))]
    shared = reach.projects if reach.user and index.everywhere else ()
    return own + [scope_word(*owner, project) for project in dict.fromkeys(shared)]


def _stems(tx: Transaction, words: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """What stands in the index for each word; nothing for a word that is not indexed at all."""
    if tx.dialect.name == "sqlite":
        row = tx.row("SELECT search_stems(:words)", {"words": json.dumps(list(words))})
        assert row is not None
        return {word: tuple(stems) for word, stems in zip(words, json.loads(row[0]), strict=True)}
    rows = tx.rows(
        "SELECT each.word, tsvector_to_array(memory_search_words(each.word, '', '', ''))"
        " FROM unnest(CAST(:words AS TEXT[])) AS each(word)",
        {"words": list(words)},
    )
    own = {scope_word("", ""), scope_word("", "", "")}
    return {word: tuple(stem for stem in stems if stem not in own) for word, stems in rows}


def _frequency(tx: Transaction, index: _Index, stems: Sequence[str], scope: Sequence[str], enough: int) -> int:
    """Documents with all of these stems at the most. Where counting costs, it ends a little above `enough`, and passes
    over what is out of scope: there, others may have a thousand times as much."""
    if tx.dialect.name == "sqlite":
        sql = f"SELECT doc FROM {index.vocabulary} WHERE term = :term"
        rows = [tx.row(sql, {"term": stem}) for stem in stems]
        return min(int(row[0]) if row else 0 for row in rows)
    row = tx.row(
        f"SELECT COUNT(*) FROM (SELECT 1 FROM {index.table} WHERE words @@ CAST(:query AS tsquery) LIMIT :limit) AS f",
        {"query": _tsquery(stems, scope), "limit": enough + 1},
    )
    return int(row[0]) if row else 0


def _postings(tx: Transaction, index: _Index, word: str, stems: Sequence[str], scope: Sequence[str], limit: int) -> Ids:
    """Ascending ids; the newest, where there are more than `limit`."""
    import numpy as np

    if not limit:
        return np.empty(0, np.int64)
    if tx.dialect.name == "sqlite":  # FTS5 stems what it is asked for: a stem must not be stemmed again
        terms = [word] if len(stems) == 1 else stems
        query = " AND ".join(f'"{term}"' for term in terms) + (f" AND ({' OR '.join(scope)})" if scope else "")
        sql = f"SELECT rowid FROM {index.words} WHERE {index.words} MATCH :query ORDER BY rowid DESC LIMIT :limit"
        rows = tx.rows(sql, {"query": query, "limit": limit})
    else:
        rows = tx.rows(
            f"SELECT id FROM {index.table} WHERE words @@ CAST(:query AS tsquery) ORDER BY id DESC LIMIT :limit",
            {"query": _tsquery(stems, scope), "limit": limit},
        )
    return np.fromiter((row[0] for row in reversed(rows)), np.int64, len(rows))


def _tsquery(every: Sequence[str], one: Sequence[str]) -> str:
    """All stems of the first; and one of the second, if there are any."""
    quoted = [
        sign.join("'" + each.replace("\\", "\\\\").replace("'", "''") + "'" for each in group)
        for sign, group in ((" & ", every), (" | ", one))
        if group
    ]
    return " & ".join(f"({each})" for each in quoted)


def _count(tx: Transaction, index: _Index, scope: Sequence[str], reach: Reach) -> int:
    if tx.dialect.name == "sqlite":
        return sum(_frequency(tx, index, stems, (), 0) for stems in _stems(tx, scope).values())
    own, names = _within(tx, reach, index)
    if reach.projects is not None:  # no other index tells projects apart
        own, names = "words @@ CAST(:query AS tsquery)", {"query": _tsquery((), scope)}
    row = tx.row(f"SELECT COUNT(*) FROM (SELECT 1 FROM {index.table} d WHERE {own} LIMIT {_COUNTED}) AS found", names)
    counted = int(row[0]) if row else 0
    if counted < _COUNTED:
        return counted
    plan = tx.row(
        f"EXPLAIN (FORMAT JSON) SELECT 1 FROM {index.table} WHERE words @@ CAST(:query AS tsquery)",
        {"query": _tsquery((), scope)},
    )
    return max(counted, int(plan[0][0]["Plan"]["Plan Rows"]) if plan else 0)


# Rows


def marks_of(tx: Transaction, reach: Reach, ids: Iterable[int]) -> list[Mark]:
    """Entries within reach, in the order of their ids. No text is read."""
    own, names = _within(tx, reach, ENTRIES)
    rows = tx.rows(
        "SELECT d.id, d.session_id, d.source_file, d.source, d.role, d.timestamp, octet_length(d.content)"
        f" FROM {_listed(tx, ENTRIES)} WHERE {own} AND d.withdrawn = 0 ORDER BY d.id",
        {**names, "ids": _ids(tx, ids)},
    )
    return list(map(Mark._make, rows))


def around(tx: Transaction, reach: Reach, ids: Iterable[int], window: int) -> set[int]:
    """Entries within reach, and as many before and behind each in its file. By their numbers they need not stand
    together: what several agents say at once is stored as it comes."""
    own, names = _within(tx, reach, ENTRIES)
    neighbours = [
        f"(SELECT p.id FROM {ENTRIES.table} p WHERE p.tenant = d.tenant AND p.agent_id = d.agent_id"
        f" AND p.source_file = d.source_file AND (p.timestamp, p.id) {sign} (d.timestamp, d.id)"
        f" ORDER BY p.timestamp {order}, p.id {order} LIMIT 1 OFFSET {further})"
        for sign, order in (("<", "DESC"), (">", "ASC"))
        for further in range(window)
    ]
    found = tx.rows(
        f"SELECT d.id, {', '.join(neighbours)} FROM {_listed(tx, ENTRIES)} WHERE {own}",
        {**names, "ids": _ids(tx, ids)},
    )
    return {number for row in found for number in row if number is not None}


_ENTRY = {  # field → column
    "id": "d.id",
    "ref": "d.entry_uuid",
    "text": "d.content",
    "timestamp": "d.timestamp",
    "project_id": "d.project_id",
    "source": "d.source",
    "session_id": "d.session_id",
    "source_file": "d.source_file",
    "role": "d.role",
    "path": "COALESCE(f.root || '/' || f.file_path, '')",
}
_TEXT = {
    "kind": "d.kind",
    "id": "d.id",
    "ref": "d.ref",
    "text": "CASE d.kind WHEN 'memory' THEN m.text ELSE s.memory_sentence || ' ' || s.rollout_summary END",
    "timestamp": "COALESCE(m.valid_from, s.source_updated_at, '')",
    "project_id": "d.project_id",
    "source": "COALESCE(s.source, '')",
    "session_id": "COALESCE(s.session_id, '')",
    "session_key": "COALESCE(s.session_key, '')",
    "memory_kind": "COALESCE(m.kind, '')",
    "severity": "COALESCE(m.severity, '')",
    "revision": "COALESCE(m.revision, 0)",
    # || '': for the greatest path as it is, or for the kind, SQLite would not take the few files of the conversation
    "path": "COALESCE((SELECT MAX(a.source_path || '') FROM memory_artifacts a WHERE a.tenant = s.tenant"
    " AND a.agent_id = s.agent_id AND a.session_key = s.session_key AND a.source_kind || '' = 'summary'"
    " AND a.is_current = 1), '')",
    "uses": "COALESCE(u.usage_count, p.usage_count, 0)",
    "last_use": "COALESCE(u.last_usage, p.last_usage, '')",
    "feedback": "COALESCE(CAST(b.ok - b.not_ok AS DOUBLE PRECISION) / (1 + b.ok + b.not_ok), 0.0)",
}
_OF_TEXTS = """
LEFT JOIN memory_memories m ON d.kind = 'memory' AND m.tenant = d.tenant AND m.agent_id = d.agent_id
  AND m.memory_id = d.ref AND {current}
LEFT JOIN memory_stage1 s ON s.tenant = d.tenant AND s.agent_id = d.agent_id AND s.session_key =
  CASE d.kind WHEN 'summary' THEN d.ref ELSE (SELECT o.session_key FROM memory_sources o
    WHERE o.tenant = m.tenant AND o.agent_id = m.agent_id AND o.memory_id = m.memory_id
    AND o.revision = m.revision{listed}
    ORDER BY o.loosened, o.created_at, o.valid_from, o.session_key LIMIT 1) END
LEFT JOIN memory_use u ON d.kind = 'memory' AND u.tenant = d.tenant AND u.agent_id = d.agent_id
  AND u.memory_id = d.ref
LEFT JOIN memory_feedback b ON d.kind = 'memory' AND b.tenant = d.tenant AND b.agent_id = d.agent_id
  AND b.memory_id = d.ref
LEFT JOIN memory_stage1_use p ON d.kind = 'summary' AND p.tenant = d.tenant AND p.agent_id = d.agent_id
  AND p.session_key = d.ref
"""


def entries(tx: Transaction, reach: Reach, ids: Iterable[int]) -> list[Found]:
    own, names = _within(tx, reach, ENTRIES)
    rows = tx.rows(
        f"SELECT {', '.join(_ENTRY.values())} FROM {_listed(tx, ENTRIES)} LEFT JOIN memory_file_states f"
        " ON f.tenant = d.tenant AND f.agent_id = d.agent_id AND f.source = d.source AND f.file_path = d.source_file"
        f" WHERE {own} AND d.withdrawn = 0 ORDER BY d.id",
        {**names, "ids": _ids(tx, ids)},
    )
    return [Found(kind=Kind.ENTRY, **dict(zip(_ENTRY, row, strict=True))) for row in rows]


def texts(tx: Transaction, reach: Reach, ids: Iterable[int], kinds: Sequence[Kind]) -> list[Found]:
    """Summaries and memories within reach, with their use, and what people think of them as they are."""
    own, names = _within(tx, reach, TEXTS)
    chosen, kind_names = marks("kind", [str(kind) for kind in kinds if kind is not Kind.ENTRY])
    if not chosen:
        return []
    rows = tx.rows(
        f"SELECT {', '.join(_TEXT.values())} FROM {_listed(tx, TEXTS)} {_of_texts(tx, reach)}"
        f" WHERE {own} AND d.kind IN ({chosen}) ORDER BY d.id",
        {**names, **kind_names, "ids": _ids(tx, ids)},
    )
    found = [Found(**{**dict(zip(_TEXT, row, strict=True)), "kind": Kind(row[0])}) for row in rows]
    blamed = {each.ref for each in found if each.feedback < 0}
    righted = blamed - feedback.called_wrong(tx, reach.owner, sorted(blamed))
    retired = feedback.retired(tx, reach.owner, [each.ref for each in found if each.kind is Kind.MEMORY])
    judged = {**dict.fromkeys(righted, 0.0), **dict.fromkeys(retired, -1.0)}
    return [replace(each, feedback=judged[each.ref]) if each.ref in judged else each for each in found]


def text_times(tx: Transaction, reach: Reach, ids: Iterable[int]) -> list[tuple[int, str, str]]:
    """When and from which agent summaries and memories within reach come. No text is read."""
    own, names = _within(tx, reach, TEXTS)
    columns = ", ".join(("d.id", _TEXT["timestamp"], _TEXT["source"]))
    rows = tx.rows(
        f"SELECT {columns} FROM {_listed(tx, TEXTS)} {_of_texts(tx, reach)} WHERE {own}",
        {**names, "ids": _ids(tx, ids)},
    )
    return [(number, when, source) for number, when, source in rows]


def memory_marks(tx: Transaction, reach: Reach, ids: Iterable[int]) -> list[TextMark]:
    """Those of the rows that are memories within reach, in the order of their ids. No text is read."""
    own, names = _within(tx, reach, TEXTS)
    rows = tx.rows(
        "SELECT d.id, d.ref, d.project_id, (SELECT CASE m.occasions WHEN '' THEN 0 ELSE 1 END FROM memory_memories m"
        " WHERE m.tenant = d.tenant AND m.agent_id = d.agent_id AND m.memory_id = d.ref"
        " ORDER BY m.valid_from DESC, m.revision DESC LIMIT 1)"
        f" FROM {_listed(tx, TEXTS)} WHERE {own} AND d.kind = 'memory' ORDER BY d.id",
        {**names, "ids": _ids(tx, ids)},
    )
    return list(map(TextMark._make, rows))


def text_ids(tx: Transaction, reach: Reach, refs: Iterable[Ref]) -> dict[Ref, int]:
    """The numbers of summaries and memories, whatever their revision."""
    found: dict[Ref, int] = {}
    own, names = _within(tx, reach, TEXTS)
    wanted = sorted(set(refs))
    for start in range(0, len(wanted), 200):
        chosen, parameters = marks("ref", [ref.key for ref in wanted[start : start + 200]])
        sql = f"SELECT d.kind, d.ref, d.id FROM {TEXTS.table} d WHERE {own} AND d.kind IN ('memory', 'summary')"
        rows = tx.rows(f"{sql} AND d.ref IN ({chosen})", {**names, **parameters})
        found |= {Ref(Kind(kind), ref): number for kind, ref, number in rows}
    return {key: found[key] for key in wanted if key in found}


def _of_texts(tx: Transaction, reach: Reach) -> str:
    """What belongs to a summary or a memory; a memory comes from the first conversation that is listed. The parameters
    are those of `_within`."""
    return _OF_TEXTS.format(current=CURRENT, listed=outside(tx.dialect, "o.session_key", reach.unlisted.texts)[0])


def _within(tx: Transaction, reach: Reach, index: _Index) -> tuple[str, dict[str, Any]]:
    """The condition that every statement of this module carries."""
    name, hidden = ("d.ref", reach.unlisted.texts) if index is TEXTS else ("d.session_id", reach.unlisted.sessions)
    listed, more = outside(tx.dialect, name, hidden)
    own, reached = f"d.tenant = :tenant AND d.agent_id = :agent_id{listed}", reach.names() | more
    if reach.projects is None:
        return f"{own} AND d.user_id = :user", reached
    wide = (EVERYWHERE,) if index.everywhere and reach.projects else ()
    chosen, names = marks("project", [*reach.projects, *wide])
    where = f"d.user_id = :user AND d.project_id IN ({chosen or 'NULL'})"
    if reach.user and index.everywhere:
        shared, more = marks("shared", list(reach.projects))
        where = f"({where} OR d.user_id = '' AND d.kind = 'memory' AND d.project_id IN ({shared or 'NULL'}))"
        names |= more
    return f"{own} AND {where}", {**reached, **names}


def _listed(tx: Transaction, index: _Index) -> str:
    """The rows with the ids of `:ids`: one parameter, however many they are."""
    if tx.dialect.name == "sqlite":  # CROSS: begin with the ids, whatever the planner thinks of the other conditions
        return f"json_each(:ids) AS listed CROSS JOIN {index.table} d ON d.id = listed.value"
    return f"unnest(CAST(:ids AS BIGINT[])) AS listed(value) JOIN {index.table} d ON d.id = listed.value"


def _ids(tx: Transaction, ids: Iterable[int]) -> Any:
    plain = [int(each) for each in ids]
    return json.dumps(plain) if tx.dialect.name == "sqlite" else plain
