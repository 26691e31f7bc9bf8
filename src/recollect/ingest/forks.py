"""A forked session repeats its parent's history, stamped anew: the leading run that equals the parent's is dropped.

The parent may be a fork itself. It holds its own entries only, so its history is what it dropped of its own parent's,
and then those.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from operator import itemgetter
from typing import NamedTuple

import msgspec

from recollect.ingest.sources.base import State, bounded
from recollect.store import entries as entry_rows
from recollect.store import files
from recollect.store.database import Transaction
from recollect.types import Entry, Owner

_MOST_ANCESTORS = 100  # sessions: each is looked up, and asked for what was erased there


class ForkState(msgspec.Struct):
    """How far a fork was compared with its parent; saved with the file's offset."""

    matched: int = 0  # leading entries that equal the parent's
    done: bool = False  # the first difference was seen: everything from there on is the fork's own
    dropped: list[str] = []  # the last of them: a later line may amend one, which does not make it the fork's own


class Saved(msgspec.Struct):
    """What parser_state holds."""

    fold: msgspec.Raw
    fork: ForkState


class Ancestry(NamedTuple):
    """What a fork may repeat."""

    sessions: Sequence[str] = ()  # its parent, the parent's parent, …
    said: Sequence[tuple[str, str]] = ()  # (role, content) of the parent's whole history, in order


def ancestry(tx: Transaction, owner: Owner, source: str, fork: State) -> Ancestry:
    """A session is never its own ancestor, whatever the files say."""
    copied: dict[str, int] = {}  # session → how many entries of its parent it begins with
    own, session = bounded(fork.session_id), bounded(fork.fork_of)
    while session and session != own and session not in copied and len(copied) < _MOST_ANCESTORS:
        parent, copied[session] = _forked(tx, owner, source, session)
        session = parent
    said: list[tuple[str, str]] = []
    for each, matched in reversed(copied.items()):
        said = said[:matched] + entry_rows.of_session(tx, owner, source, each)
    return Ancestry(list(copied), said)


def _forked(tx: Transaction, owner: Owner, source: str, session: str) -> tuple[str, int]:
    """The session that this one was forked from, if any, and how many of its entries it begins with."""
    found = []
    for path in entry_rows.files_of_session(tx, owner, source, session):
        state = files.load(tx, owner, source, path)
        try:
            saved = msgspec.json.decode(state.parser_state if state else "", type=Saved)
            fold = msgspec.json.decode(saved.fold, type=State)
        except msgspec.DecodeError:
            continue  # nothing of it was read yet, or by another version
        if bounded(fold.session_id) == session and fold.fork_of:
            found.append((bounded(fold.fork_of), saved.fork.matched))
    return max(found, key=itemgetter(1), default=("", 0))


def drop_copied(
    entries: Sequence[Entry], parent: Sequence[tuple[str, str]], state: ForkState, erased: Collection[str] = ()
) -> tuple[list[Entry], ForkState]:
    """The entries that are the fork's own, and the state after them. What was erased of the parent is not."""
    matched, done, dropped, own = state.matched, state.done, list(state.dropped), []
    for entry in entries:
        if entry.uuid in dropped:
            continue
        if not done and entry.uuid in erased:
            dropped.append(entry.uuid)
        elif not done and matched < len(parent) and parent[matched] == (entry.role, entry.content):
            matched += 1
            dropped.append(entry.uuid)
        else:
            done = True
            own.append(entry)
    return own, ForkState(matched, done, dropped[-8:])
