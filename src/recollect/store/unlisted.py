"""Sessions that are tests, by the setting `test_sessions`: kept on disk, and shown and told nowhere.

`is_unlisted` is the decision. `unlisted` applies it to what is stored, for statements that leave those out. Whoever
asks for a session, a conversation or a memory by its name reads what is kept.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fnmatch import translate
from functools import lru_cache

from recollect.store import memories
from recollect.store.database import Transaction, beginning
from recollect.types import Owner, Remembered

_OWN = "tenant = :tenant AND agent_id = :agent_id"


@dataclass(frozen=True, slots=True)
class Unlisted:
    """What is stored of such sessions."""

    sessions: frozenset[str] = frozenset()
    conversations: frozenset[str] = frozenset()  # by their keys
    memories: frozenset[str] = frozenset()  # that no other session states as they are now, by their ids

    def __bool__(self) -> bool:
        return bool(self.conversations or self.memories)

    @property
    def texts(self) -> frozenset[str]:
        """Names of summaries and memories."""
        return self.conversations | self.memories

    def without(self, memory: Remembered) -> Remembered:
        """The memory as the others state it."""
        return replace(memory, sources=tuple(each for each in memory.sources if each[0] not in self.conversations))


NOTHING = Unlisted()


def is_unlisted(patterns: Sequence[str], session_id: str) -> bool:
    return any(_matcher(each).match(session_id) for each in patterns)


def unlisted(tx: Transaction, owner: Owner, patterns: Sequence[str]) -> Unlisted:
    """Read by the beginnings of the patterns: where no session begins so, nothing else is looked at."""
    keys: set[str] = set()
    stated: set[str] = set()
    for pattern in patterns:
        where, names = beginning("session_key", re.split(r"[*?\[]", pattern, maxsplit=1)[0])
        names = {**owner.names(), **names}
        rows = tx.rows(f"SELECT DISTINCT session_key FROM memory_conversations WHERE {_OWN} AND {where}", names)
        keys |= {key for (key,) in rows if _matcher(pattern).match(_session(key))}
        said = tx.rows(f"SELECT DISTINCT session_key, memory_id FROM memory_sources WHERE {_OWN} AND {where}", names)
        stated |= {name for key, name in said if _matcher(pattern).match(_session(key))}
    held = memories.current(memories.find(tx, owner, sorted(stated)))
    alone = {each.id for each in held if all(is_unlisted(patterns, _session(key)) for key, _ in each.sources)}
    return Unlisted(frozenset(map(_session, keys)), frozenset(keys), frozenset(alone))


@lru_cache(maxsize=256)
def _matcher(pattern: str) -> re.Pattern[str]:
    return re.compile(translate(pattern))


def _session(session_key: str) -> str:
    return session_key.rpartition("@")[0]
