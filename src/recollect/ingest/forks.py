"""A forked session repeats its parent's history, stamped anew: the leading run that equals the parent's is dropped."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from recollect.types import Entry


class ForkState(msgspec.Struct):
    """How far a fork was compared with its parent; saved with the file's offset."""

    matched: int = 0  # leading entries that equal the parent's
    done: bool = False  # the first difference was seen: everything from there on is the fork's own


def drop_copied(
    entries: Sequence[Entry], parent: Sequence[tuple[str, str]], state: ForkState
) -> tuple[list[Entry], ForkState]:
    """The entries that are the fork's own, and the state after them."""
    matched, done, own = state.matched, state.done, []
    for entry in entries:
        if not done and matched < len(parent) and parent[matched] == (entry.role, entry.content):
            matched += 1
        else:
            done = True
            own.append(entry)
    return own, ForkState(matched, done)
