"""When the rules of redaction are not those of last time, what is stored goes through them once.

A job whose input is their version: the same rules, nothing to do. A run that was cut short
begins anew, which is harmless: text that is clean stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import msgspec

from recollect.projects.paths import renamed
from recollect.store import entries, projects, sums
from recollect.store.database import Database, Row, Transaction
from recollect.store.jobs import Jobs
from recollect.text import in_texts
from recollect.types import JobStatus, Owner

KIND = "redact"
_KEY = "stored text"
_BATCH = 1000

_NAMES = ("branch", "tool_names")  # the same ones stand in many rows
_JSON = ("events", "parser_state")
_PLACES = (  # (table, columns of its key, column with text)
    ("memory_transcript_entries", ("entry_uuid", "source"), "content"),
    ("memory_transcript_entries", ("entry_uuid", "source"), "events"),
    ("memory_transcript_entries", ("entry_uuid", "source"), "branch"),
    ("memory_transcript_entries", ("entry_uuid", "source"), "tool_names"),
    ("memory_conversations", ("session_key", "source"), "branch"),
    ("memory_compactions", ("compaction_uuid", "source"), "summary"),
    ("memory_file_states", ("file_path", "source"), "parser_state"),
)


def rescan(database: Database, owner: Owner, jobs: Jobs, version: int, redact: Callable[[str], str]) -> int:
    """How many texts changed; nothing is read when these rules were here before, or another process is at it."""
    with database.write() as tx:
        jobs.reap(tx, KIND)
        jobs.enqueue(tx, KIND, [(_KEY, str(version))])
        leases = jobs.claim(tx, KIND, limit=1, hurry=True)
    changed, names = 0, lru_cache(maxsize=4096)(redact)
    for lease in leases:
        for table, key, column in _PLACES:
            clean = _clean_json(redact) if column in _JSON else names if column in _NAMES else redact
            for rows in _pages(database, owner, table, key, column):
                changes = [(row, clean(row[-1])) for row in rows]
                with database.write() as tx:
                    for (*values, before), after in changes:
                        if after != before:
                            place = {**owner.names(), **dict(zip(key, values, strict=True)), "before": before}
                            if column == "content":
                                entries.keep_authors(tx, place, redact)
                            changed += tx.run(_update(table, key, column), {**place, "after": after})
                    jobs.heartbeat(tx, [lease], progress=True)
        with database.write() as tx:
            changed += _rename(tx, owner, redact)
            sums.drop_all(tx, owner)  # nobody compares rows with them before the job is done
            jobs.complete(tx, lease)
    return changed


def is_done(tx: Transaction, jobs: Jobs) -> bool:
    """False while newer rules have not reached everything that is stored."""
    job = jobs.find(tx, KIND, _KEY)
    return job is None or job.status is JobStatus.SUCCEEDED


def _rename(tx: Transaction, owner: Owner, redact: Callable[[str], str]) -> int:
    """Folders and projects, wherever they are named, at once: no project is in two parts meanwhile."""
    names = ((name, renamed(name, redact)) for name in projects.names(tx, owner))
    return projects.rename(tx, owner, {before: after for before, after in names if after != before})


def _pages(database: Database, owner: Owner, table: str, key: tuple[str, ...], column: str) -> Iterator[list[Row]]:
    """The table in the order of its key, some rows at a time."""
    last: dict[str, Any] = dict.fromkeys(key, "")
    while True:
        sql = (
            f"SELECT {', '.join(key)}, {column} FROM {table} WHERE tenant = :tenant AND agent_id = :agent_id"
            f" AND ({key[1]}, {key[0]}) > (:{key[1]}, :{key[0]}) ORDER BY {key[1]}, {key[0]} LIMIT :limit"
        )
        with database.read() as tx:
            rows = tx.rows(sql, {**owner.names(), **last, "limit": _BATCH})
        if not rows:
            return
        yield rows
        last = dict(zip(key, rows[-1], strict=False))


def _update(table: str, key: tuple[str, ...], column: str) -> str:
    """Only what is still the text that was redacted."""
    where = " AND ".join(f"{name} = :{name}" for name in key)
    return (
        f"UPDATE {table} SET {column} = :after WHERE tenant = :tenant AND agent_id = :agent_id AND {where}"
        f" AND {column} = :before"
    )


def _clean_json(redact: Callable[[str], str]) -> Callable[[str], str]:
    """Every text inside a JSON document; the document's own words stay."""

    def clean(document: str) -> str:
        before = msgspec.json.decode(document) if document else None
        after = in_texts(before, redact)
        return document if after == before else msgspec.json.encode(after).decode()

    return clean
