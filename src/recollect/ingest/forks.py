"""A forked session repeats its parent's history, stamped anew: the leading run that equals the parent's is dropped."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from recollect.types import Entry


class ForkState(msgspec.Struct):
    """How far a fork was compared with its parent; saved with the file's offset."""

    matched: int = 0  # leading entries that equal the parent's
    done: bool = False  # the first difference was seen: everything from there on is the fork's own
    dropped: list[str] = []  # the last of them: a later line may amend one, which does not make it the fork's own


def drop_copied(
    entries: Sequence[Entry], parent: Sequence[tuple[str, str]], state: ForkState
) -> tuple[list[Entry], ForkState]:
    """The entries that are the fork's own, and the state after them."""
    matched, done, dropped, own = state.matched, state.done, list(state.dropped), []
    for entry in entries:
        if entry.uuid in dropped:
            continue
        if not done and matched < len(parent) and parent[matched] == (entry.role, entry.content):
            matched += 1
            dropped.append(entry.uuid)
        else:
            done = True
            own.append(entry)
    return own, ForkState(matched, done, dropped[-8:])
