"""A forked session repeats its parent's history, stamped anew: the leading run that equals the parent's is dropped."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import msgspec

from recollect.types import Entry


class ForkState(msgspec.Struct):
    """How far a fork was compared with its parent; saved with the file's offset."""

    matched: int = 0  # leading entries that equal the parent's
    done: bool = False  # the first difference was seen: everything from there on is the fork's own
    dropped: list[str] = []  # the last of them: a later line may amend one, which does not make it the fork's own


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
