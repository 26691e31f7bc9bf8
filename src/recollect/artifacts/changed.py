"""Rows that do not follow from their files any more: somebody changed them in the database. No file is read here.

The sum of a conversation tells it. While newer rules of redaction are half done, nothing is known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice

from recollect.artifacts.rows import Derived
from recollect.ingest import rescan
from recollect.redact import redact
from recollect.store import artifacts, entries, memories, mending, stage1, sums
from recollect.store.artifacts import Indexed
from recollect.store.checksum import checksum, follows
from recollect.store.compactions import Compacted
from recollect.store.entries import EntryRow
from recollect.store.ground import Ground
from recollect.types import Event, Message, Role, timestamp

_BATCH = 100  # conversations in memory at a time


@dataclass(frozen=True, slots=True)
class Changed:
    conversations: dict[str, str]  # session key → sum of what its rows were
    memories: list[str]  # ids of those whose rows do not follow from what conversations state


def find(ground: Ground) -> Changed:
    """What was changed, of all that is known."""
    with ground.database.read() as tx:
        if not rescan.is_done(tx, ground.jobs()):
            return Changed({}, [])
        known = sums.known(tx, ground.owner)
    keys = iter(sorted(known))
    changed: dict[str, str] = {}
    while batch := list(islice(keys, _BATCH)):
        with ground.database.read() as tx:
            changed |= sums.changed(tx, ground.owner, batch)
    with ground.database.read() as tx:
        ids = memories.unlike(tx, ground.owner, known.keys() - changed.keys())
    return Changed(changed, ids)


def take(ground: Ground) -> None:
    """Sum all of which nothing is known, as it is now."""
    unknown = [""]
    while unknown:
        with ground.database.read() as tx:
            unknown = sums.unknown(tx, ground.owner, _BATCH) if rescan.is_done(tx, ground.jobs()) else []
        if unknown:
            with ground.database.write() as tx:
                sums.take(tx, ground.owner, unknown)


def _redacted(row: EntryRow) -> EntryRow:
    message = Message("", Role(row.role), row.content, authors=row.authors).rewritten(redact)
    events = entries.told([Event(each.kind, redact(each.text)) for each in entries.events_of(row.events)])
    row = row._replace(tool_names=redact(row.tool_names), branch=redact(row.branch))
    return row._replace(content=message.text, authors=message.authors, events=events)


def mend(
    ground: Ground,
    before: str,
    derived: Derived,
    said: Sequence[EntryRow],
    compacted: Sequence[Compacted],
    files: Sequence[Indexed],
) -> bool:
    """Make the rows of a conversation what its files say, by today's rules of redaction. False: the files do not say
    what was stored, and rows that they do not tell were left as they are."""
    owner, row, stated = ground.owner, derived.stage1, derived.stated
    talk = replace(derived.conversation, branch=redact(derived.conversation.branch))
    with ground.database.read() as tx:
        said = entries.with_authors(tx, [*map(_redacted, said)])
    compacted = [replace(each, summary=redact(each.summary)) for each in compacted]
    exact = checksum(follows(talk, said, row, stated, compacted, files)) == before
    key, statements = talk.session_key, sum(len(each.sources) for each in stated)
    with ground.database.write() as tx:
        if sums.changed(tx, owner, [key], lock=True) != {key: before}:
            return True  # it was stored anew meanwhile
        held = sums.load(tx, owner, [key]).get(key)
        mending.put(tx, owner, talk, said, compacted, timestamp(ground.clock()), exact=exact)
        if row:
            stage1.save(tx, owner, [row])
            if held is None or not held.stage1 or len(held.stated) < statements:
                mending.drop_strays(tx, owner, row, stated)
        elif exact:
            stage1.delete(tx, owner, [key])
        if exact:
            memories.replace_sessions(tx, owner, {key: stated})
        else:
            memories.restate(tx, owner, stated)
        artifacts.replace_sessions(tx, owner, [key], files)
        return exact and checksum(sums.load(tx, owner, [key])[key]) == before
