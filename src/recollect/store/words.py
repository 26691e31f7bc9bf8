"""What stands in SQLite's full-text index for a text, and how entries enter it.

A text is indexed with the parts of names in camelCase, with pairs of characters where words have no space between
them, and with two words for its scope (owner or user of a chat, and project), so that a search inside one project or
for one user never walks through the postings of another. A rule that changes here needs a migration that empties the
index; it fills itself again.
"""

from __future__ import annotations

import json
import re
import weakref
from functools import lru_cache
from hashlib import md5
from typing import Any

import apsw

from recollect.store.database import Database, Transaction
from recollect.text import pairs, spaced

_BATCH = 5_000  # entries that enter the index in one transaction
_INNER_CAPITAL = re.compile(r"[A-Z](?:(?<=[a-z0-9][A-Z])|(?<=[A-Z][A-Z])(?=[a-z]))")  # three times as fast as two pairs
_REST = re.compile(r"[^\W_]*")
_EDGE = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def parts(name: str) -> list[str]:
    """`parseHTTPHeader2` → parse, HTTP, Header2; 用SQL数据库 → SQL, 用, 数据, 据库; what is one piece has no parts."""
    unspaced = pairs(name)
    found = [part for each in (spaced(name).split() if unspaced else [name]) for part in _EDGE.split(each)] + unspaced
    return found if len(found) > 1 else []


@lru_cache(maxsize=4096)
def scope_word(tenant: str, agent_id: str, project_id: str | None = None, user: str = "") -> str:
    """Names an owner or a user of a chat, or a project of theirs, by a word that no text contains."""
    whose = f"{agent_id}\x1e{user}" if user else agent_id
    key = "\x1f".join((tenant, whose) if project_id is None else (tenant, whose, project_id))
    return "xq" + md5(key.encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest()


def search_text(content: str, tenant: str, agent_id: str, project_id: str, user: str = "") -> str:
    scope = f"{scope_word(tenant, agent_id, None, user)} {scope_word(tenant, agent_id, project_id, user)}"
    unspaced = pairs(content)
    rest = spaced(content) if unspaced else ""
    names = [part for name in _names(rest or content) for part in parts(name)]
    return "\n".join((content, rest, " ".join(unspaced), " ".join(names), scope))


def _names(content: str) -> list[str]:
    """The words with an inner capital, from the capital: a pattern for whole words would try every letter of a text."""
    names, end = [], 0
    for found in _INNER_CAPITAL.finditer(content):
        start = found.start()
        if start < end:
            continue
        while start > end and content[start - 1].isalnum():
            start -= 1
        rest = _REST.match(content, found.end())
        end = rest.end() if rest else found.end()
        names.append(content[start:end])
    return names


def register(connection: Any) -> None:
    """`search_text` for the index, `search_stems` (a JSON list of lists) for queries."""
    opened = weakref.ref(connection)  # a function that held its connection would keep it open for ever

    def stems(words: str) -> str:
        held = opened()
        assert held is not None
        tokenizer = held.fts5_tokenizer("porter", ["unicode61", "remove_diacritics", "2"])
        return json.dumps([_tokens(tokenizer, word) for word in json.loads(words)])

    connection.create_scalar_function("search_text", search_text, -1, deterministic=True)  # older schemas know no user
    connection.create_scalar_function("search_stems", stems, 1, deterministic=True)


def _tokens(tokenizer: Any, word: str) -> list[str]:
    found = tokenizer(
        word.encode("utf-8", "replace"), apsw.FTS5_TOKENIZE_QUERY, None, include_offsets=False, include_colocated=False
    )
    return list(dict.fromkeys(found))


def index_entries(database: Database, *, batch: int = _BATCH) -> int:
    """Brings the full text of entries up to date, some rows at a time; how many entered it.

    PostgreSQL keeps its column itself. On SQLite the ids of rows only ever grow above what is indexed, since a writer
    is alone; a row that was indexed and goes, goes from the index by trigger.
    """
    if database.dialect.name == "postgres":
        return 0
    entered = 0
    while True:
        with database.read() as tx:
            if not _left(tx, 1):  # the usual case: no writer has to wait for this
                return entered
        with database.write() as tx:
            entered += _left(tx, batch)
            tx.run(
                "INSERT INTO memory_entry_words (rowid, content)"
                " SELECT id, search_text(content, tenant, agent_id, project_id, user_id) FROM memory_transcript_entries"
                " WHERE id > (SELECT COALESCE(MAX(id), 0) FROM memory_entry_words_docsize) ORDER BY id LIMIT :batch",
                {"batch": batch},
            )


def _left(tx: Transaction, limit: int) -> int:
    """Entries that are not in the index yet, as far as the limit."""
    found = tx.row(
        "SELECT COUNT(*) FROM (SELECT 1 FROM memory_transcript_entries"
        " WHERE id > (SELECT COALESCE(MAX(id), 0) FROM memory_entry_words_docsize) LIMIT :limit)",
        {"limit": limit},
    )
    return int(found[0]) if found else 0
