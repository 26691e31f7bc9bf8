"""A forked session repeats its parent's history, stamped anew: the leading run that equals the parent's is dropped.

The parent may be a fork itself. It holds its own entries only, so its history is what it dropped of its own parent's,
and then those.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

import msgspec

from recollect.ingest.sources.base import State, bounded
from recollect.store import entries as entry_rows
from recollect.store import files
from recollect.store.database import Transaction
from recollect.store.files import FileState
from recollect.types import Entry, FileStatus, Owner

_MOST_ANCESTORS = 100  # sessions: each is looked up, and asked for what was erased there


class ForkState(msgspec.Struct):
    """How far a fork was compared with its parent; saved with the file's offset."""

    matched: int = 0  # how many of the parent's entries it begins with
    others: list[int] = []  # or how many, where what was taken back there was said again
    whole: bool = False  # what was taken back there is counted; earlier versions left it out
    done: bool = False  # the first difference was seen: everything from there on is the fork's own
    dropped: list[str] = []  # the last of them: a later line may amend one, which does not make it the fork's own

    def place(self, parent: Sequence[Heard]) -> int:
        if self.whole or not self.matched:
            return self.matched
        live = [number for number, (_, _, withdrawn) in enumerate(parent, 1) if not withdrawn]
        return live[min(self.matched, len(live)) - 1] if live else self.matched


class Saved(msgspec.Struct):
    """What parser_state holds."""

    fold: msgspec.Raw
    fork: ForkState


Heard = tuple[str, str, bool]
"""Role and content of what was said, and whether it was taken back."""


class Ancestry(NamedTuple):
    """What a fork may repeat."""

    sessions: Sequence[str] = ()  # its parent, the parent's parent, …
    said: Sequence[Heard] = ()  # the parent's whole history, in order
    is_read: bool = True  # false while a file of theirs is being read: there may be more


def ancestry(tx: Transaction, owner: Owner, source: str, fork: State) -> Ancestry:
    """A session is never its own ancestor, whatever the files say."""
    copied: dict[str, ForkState] = {}  # session → how much of its parent's it begins with
    own, session = bounded(fork.session_id), bounded(fork.fork_of)
    is_read = True
    while session and session != own and session not in copied and len(copied) < _MOST_ANCESTORS:
        paths = entry_rows.files_of_session(tx, owner, source, session)
        states = [state for path in paths if (state := files.load(tx, owner, source, path))]
        is_read = is_read and all(state.status is FileStatus.IDLE for state in states)
        parent, copied[session] = _forked(states, session)
        session = parent
    said: list[Heard] = []
    for each, fork_state in reversed(copied.items()):
        said = said[: fork_state.place(said)] + entry_rows.of_session(tx, owner, source, each)
    return Ancestry(list(copied), said, is_read)


def _forked(states: Sequence[FileState], session: str) -> tuple[str, ForkState]:
    """The session that this one was forked from, if any, and how much of it it begins with."""
    found = []
    for state in states:
        try:
            saved = msgspec.json.decode(state.parser_state, type=Saved)
            fold = msgspec.json.decode(saved.fold, type=State)
        except msgspec.DecodeError:
            continue  # nothing of it was read yet, or by another version
        if bounded(fold.session_id) == session and fold.fork_of:
            found.append((bounded(fold.fork_of), saved.fork))
    return max(found, key=lambda each: each[1].matched, default=("", ForkState()))


def drop_copied(
    entries: Sequence[Entry], parent: Sequence[Heard], state: ForkState, erased: Collection[str] = ()
) -> tuple[list[Entry], ForkState]:
    """The entries that are the fork's own, and the state after them. What was erased of the parent is not. A copy of
    what the parent took back is: the fork may go on with it."""
    if not entries:
        return [], state
    places, done, dropped, own = {state.place(parent), *state.others}, state.done, list(state.dropped), []
    for entry in entries:
        if entry.uuid in dropped:
            continue
        if not done and entry.uuid in erased:
            dropped.append(entry.uuid)
            continue
        found = {} if done else _places(parent, places, entry)
        if any(found.values()):
            dropped.append(entry.uuid)
        else:
            own.append(entry)
        done = not found
        places = set(found) or places
    matched = max(places)
    return own, ForkState(matched, sorted(places - {matched}), True, done, dropped[-8:])


def _places(parent: Sequence[Heard], places: Collection[int], entry: Entry) -> dict[int, bool]:
    """Where in the parent's history the fork may be behind this entry, and does what it repeats stand there? What was
    taken back there may be missing here."""
    found: dict[int, bool] = {}
    seen = 0
    for place in sorted(places):
        if place < seen:
            continue  # an earlier one went this way
        for number in range(place, len(parent)):
            seen = number + 1
            role, content, withdrawn = parent[number]
            if (role, content) == (entry.role, entry.content):
                found[number + 1] = not withdrawn
            if not withdrawn:
                break
    return found
