"""memory_sums: what the rows of a settled conversation were when they were stored, as one sum.

`artifacts.replace_sessions` keeps it, in the transaction that stores the rows. Whatever else may change the rows drops
the sum: then it is not known what they were, until `take` sums them again, as they are. Rows that differ from their sum
were changed by somebody else. A sum is kept under a lock on its conversations, so that no rows change in between.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from recollect.store import memories, stage1
from recollect.store.checksum import SAID, TALK, Rows, checksum, normal
from recollect.store.database import Row, Transaction, keys_of, rows_of, run_of
from recollect.types import SETTLED, Owner

_OWN = "tenant = :tenant AND agent_id = :agent_id"
_C = "FROM memory_conversations c"
_OF_KEYS = "WHERE c.tenant = :tenant AND c.agent_id = :agent_id AND c.session_key IN ({among})"
COLUMNS = {"user": "user_id", "uuid": "entry_uuid"}  # by field, where they differ
_TALK = ", ".join(f"c.{COLUMNS.get(name, name)}" for name in TALK)
_SAID = ", ".join(f"e.{COLUMNS.get(name, name)}" for name in SAID)
_FILE = (
    "source_path, source_sha256, source_kind, session_token, session_key, session_id, harness, project, project_id,"
    " captured_at, ended_at, manifest_path, memory_sentence, source_node_id, is_current"
)
_SELECTS = (  # each row behind its session key
    (
        f"SELECT c.session_key, {_SAID} {_C} JOIN memory_transcript_entries e ON e.tenant = c.tenant"
        " AND e.agent_id = c.agent_id AND e.source_file = c.source_file AND e.timestamp >= c.first_message_at"
        f" AND e.timestamp <= c.last_message_at AND e.session_id = c.session_id AND e.source || '' = c.source"
        f" {_OF_KEYS} AND e.withdrawn = 0"
    ),
    f"SELECT session_key, {', '.join(stage1.COLUMNS)} FROM memory_stage1 c {_OF_KEYS}",
    f"SELECT session_key, entry_uuid, {memories.COLUMNS} FROM memory_sources c {_OF_KEYS}",
    (
        "SELECT c.session_key, k.source, k.compaction_uuid, k.session_id, k.timestamp, k.source_file, k.summary"
        " FROM memory_artifacts c JOIN memory_compactions k ON k.tenant = c.tenant AND k.agent_id = c.agent_id"
        f" AND k.source = c.harness AND k.compaction_uuid = c.source_node_id {_OF_KEYS} AND c.source_node_id <> ''"
    ),
    f"SELECT session_key, {_FILE} FROM memory_artifacts c {_OF_KEYS}",
)


def load(tx: Transaction, owner: Owner, session_keys: Sequence[str]) -> dict[str, Rows]:
    """session key → the rows of its conversation. One that stands in several files counts as one, as in its files:
    that with the last message says the rest, and it has settled when all have."""
    talks: dict[str, list[Row]] = defaultdict(list)
    sql = f"SELECT c.session_key, c.source_file, {_TALK} {_C} {_OF_KEYS} ORDER BY c.last_message_at DESC, c.id"
    for key, *talk in rows_of(tx, sql, owner.names(), session_keys):
        talks[key].append(tuple(talk))
    parts = []
    for select in _SELECTS:
        found: dict[str, list[Row]] = defaultdict(list)
        for key, *row in rows_of(tx, select, owner.names(), session_keys):
            found[key].append(tuple(row))
        parts.append(found)
    made = {}
    for key, group in talks.items():
        messages, extracted, stated, compactions, files = (part[key] for part in parts)
        file, *talk = group[0]
        if len(group) > 1:
            talk[TALK.index("entry_count")] = len(messages)
            talk[TALK.index("status")] = next((row[9] for row in group if row[9] not in SETTLED), group[0][9])
        compactions = [(*row[:4], row[4] == file, row[5]) for row in compactions]
        made[key] = normal(tuple(talk), messages, extracted, stated, compactions, files)
    return made


def _lock(tx: Transaction, owner: Owner, session_keys: Sequence[str]) -> None:
    """Nobody else sums these conversations, or changes what is summed, until the transaction ends."""
    if tx.dialect.for_update:
        rows_of(tx, f"SELECT c.id {_C} {_OF_KEYS} ORDER BY c.id {tx.dialect.for_update}", owner.names(), session_keys)


def keep(tx: Transaction, owner: Owner, session_keys: Sequence[str]) -> None:
    """The rows of these conversations are what they are to be: sum those that have settled and have files."""
    drop(tx, owner, session_keys)
    found = load(tx, owner, session_keys).items()
    settled = [(key, rows) for key, rows in found if rows.files and rows.talk[TALK.index("status")] in SETTLED]
    if settled:
        tx.run_many(
            "INSERT INTO memory_sums (tenant, agent_id, session_key, checksum)"
            " VALUES (:tenant, :agent_id, :key, :checksum) ON CONFLICT DO NOTHING",
            [{**owner.names(), "key": key, "checksum": checksum(rows)} for key, rows in settled],
        )


def unknown(tx: Transaction, owner: Owner, most: int) -> list[str]:
    """Session keys of settled conversations with files and without a sum."""
    states = f"({', '.join(map(repr, map(str, SETTLED)))})"
    mine = "x.tenant = c.tenant AND x.agent_id = c.agent_id AND x.session_key = c.session_key"
    rows = tx.rows(
        f"SELECT DISTINCT c.session_key {_C} WHERE c.tenant = :tenant AND c.agent_id = :agent_id"
        f" AND c.status IN {states} AND NOT EXISTS (SELECT 1 FROM memory_sums x WHERE {mine})"
        f" AND EXISTS (SELECT 1 FROM memory_artifacts x WHERE {mine})"
        f" AND NOT EXISTS (SELECT 1 FROM memory_conversations x WHERE {mine} AND x.status NOT IN {states}) LIMIT :most",
        {**owner.names(), "most": most},
    )
    return sorted(key for (key,) in rows)


def take(tx: Transaction, owner: Owner, session_keys: Sequence[str]) -> None:
    """Sum these conversations as they are now; what they state is in line with it from now on, too."""
    _lock(tx, owner, session_keys)  # before the memories, as where they are stored
    sql = f"SELECT DISTINCT memory_id FROM memory_sources c {_OF_KEYS}"
    memories.derive(tx, owner, sorted({name for (name,) in rows_of(tx, sql, owner.names(), session_keys)}))
    keep(tx, owner, session_keys)


def known(tx: Transaction, owner: Owner) -> dict[str, str]:
    """session key → sum."""
    return dict(tx.rows(f"SELECT session_key, checksum FROM memory_sums WHERE {_OWN}", owner.names()))


def changed(tx: Transaction, owner: Owner, session_keys: Sequence[str], *, lock: bool = False) -> dict[str, str]:
    """Of these, session key → sum of the conversations whose rows are others, or gone. Where their files are not known
    either, they are read as new ones. With `lock` nobody else changes them until the transaction ends."""
    if lock:
        _lock(tx, owner, session_keys)
    sql = f"SELECT session_key, checksum FROM memory_sums c {_OF_KEYS}"
    kept: dict[str, str] = dict(rows_of(tx, sql, owner.names(), session_keys))
    found = load(tx, owner, list(kept))
    sql = f"SELECT DISTINCT session_key FROM memory_artifacts c {_OF_KEYS}"
    gone = {key for (key,) in rows_of(tx, sql, owner.names(), sorted(kept.keys() - found.keys()))}
    others = {key for key, rows in found.items() if checksum(rows) != kept[key]}
    return {key: before for key, before in kept.items() if key in others | gone}


def drop(tx: Transaction, owner: Owner, session_keys: Iterable[str]) -> None:
    """The rows of these conversations may be others from now on."""
    session_keys = sorted({*session_keys})
    _lock(tx, owner, session_keys)
    run_of(tx, f"DELETE FROM memory_sums WHERE {_OWN} AND session_key IN ({{among}})", owner.names(), session_keys)


def drop_sessions(tx: Transaction, owner: Owner, session_ids: Iterable[str]) -> None:
    """The same for all conversations of sessions."""
    for session_id in sorted({*session_ids}):
        where, names = keys_of(session_id)
        found = tx.rows(f"SELECT session_key FROM memory_conversations WHERE {_OWN} AND {where}", owner.names() | names)
        drop(tx, owner, [key for (key,) in found])
        tx.run(f"DELETE FROM memory_sums WHERE {_OWN} AND {where}", owner.names() | names)


def drop_all(tx: Transaction, owner: Owner) -> None:
    """The same for all of them."""
    tx.run(f"DELETE FROM memory_sums WHERE {_OWN}", owner.names())
