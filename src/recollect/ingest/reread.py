"""Tells the authors and events of messages that an older version stored without them. No conversation reopens by it.

A job whose input is the version of this reading: done once. The agent's file is read again where it is still there;
else the authors follow from the form of what is stored. A run that was cut short begins anew: what is known stays.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePath

from recollect.authors import by_form
from recollect.errors import UnknownSource
from recollect.ingest.fold import Batch, fold_lines
from recollect.ingest.sources import get_source
from recollect.ingest.tail import Transcript
from recollect.store import entries, files, sums
from recollect.store.database import Database
from recollect.store.entries import Unread
from recollect.store.files import FileState
from recollect.store.jobs import Jobs
from recollect.types import Entry, Owner, Role

KIND = "authors"
_VERSION = "1"
_BATCH = 1000


def reread(database: Database, owner: Owner, jobs: Jobs) -> int:
    """How many messages have authors now that had none."""
    with database.write() as tx:
        jobs.reap(tx, KIND)
        jobs.enqueue(tx, KIND, [("stored messages", _VERSION)])
        leases = jobs.claim(tx, KIND, limit=1, hurry=True)
    told = 0
    for lease in leases:
        with database.write() as tx:
            silent = entries.files_without_authors(tx, owner)
            if silent:
                sums.drop_all(tx, owner)  # the rows become others
            states = [state for source, path in silent if (state := files.load(tx, owner, source, path))]
        for state in states:
            found = list(_folded(state))
            for at in range(0, len(found), _BATCH):
                with database.write() as tx:
                    told += entries.tell_authors(tx, owner, state.source, found[at : at + _BATCH])
                    jobs.heartbeat(tx, [lease], progress=True)
        for rows in _pages(database, owner):
            with database.write() as tx:
                told += entries.tell_authors_of(tx, owner, [(each, _by_form(each)) for each in rows])
                jobs.heartbeat(tx, [lease], progress=True)
        with database.write() as tx:
            sums.drop_all(tx, owner)  # what was summed meanwhile, also where a run that was cut short told them
            jobs.complete(tx, lease)
    return told


def _by_form(row: Unread) -> str:
    return by_form(row.content, Role(row.role))


def _folded(state: FileState) -> Iterator[Entry]:
    """The entries of a file, as it is read today; none where it is gone or nobody can read it."""
    path = Path(state.root) / state.file_path
    batch = Batch(0, 0)
    try:
        source = get_source(state.source)
        fold = source.begin(PurePath(state.file_path))
        with Transcript(path) as transcript:
            for lines in transcript.lines(0, min(state.last_processed_offset, transcript.status().st_size)):
                fold_lines(source, fold, lines, batch, lambda entry: entry)
    except (OSError, UnknownSource):
        return
    yield from batch.entries.values()


def _pages(database: Database, owner: Owner) -> Iterator[list[Unread]]:
    """Messages whose authors are not known, some at a time."""
    last = ("", "")
    while True:
        with database.read() as tx:
            rows = entries.without_authors(tx, owner, last, _BATCH)
        if not rows:
            return
        yield rows
        last = rows[-1].source, rows[-1].uuid
