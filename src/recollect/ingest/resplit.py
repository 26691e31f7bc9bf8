"""When the gap between conversations is not that of last time, what is stored is split anew.

A job whose input is the gap: the same gap, nothing to do. A run that was cut short, or met a file that another process
reads, begins anew with the next one, which is harmless: a session that is split already stays as it is.
"""

from __future__ import annotations

from datetime import timedelta

from recollect.ingest.run import KIND as INGEST
from recollect.ingest.writer import Touched, Writer
from recollect.store import conversations
from recollect.store.database import Database
from recollect.store.entries import FileKey
from recollect.store.files import FileState
from recollect.store.jobs import Jobs
from recollect.types import JobStatus, Owner

KIND = "split"
_KEY = "conversations"


def resplit(database: Database, owner: Owner, jobs: Jobs, writer: Writer, gap: timedelta) -> set[tuple[str, str]]:
    """(file, session key) of the conversations that changed."""
    touched: set[tuple[str, str]] = set()
    mark = f"{gap.total_seconds():.0f}"
    with database.write() as tx:
        jobs.settle(tx, KIND, [(_KEY, mark, JobStatus.SUCCEEDED)])  # where nothing is known: it was split with this one
        jobs.reap(tx, KIND)
        jobs.enqueue(tx, KIND, [(_KEY, mark)])
        leases = jobs.claim(tx, KIND, limit=1, hurry=True)
    for lease in leases:
        with database.read() as tx:
            sessions = {(each.source, each.source_file, each.session_id) for each in conversations.search(tx, owner)}
        busy = False
        for source, file, session in sorted(sessions):
            with database.write() as tx:
                if jobs.is_held(tx, INGEST, f"{source}/{file}", lock=True):
                    busy = True
                    continue
                found = Touched(FileState(source, file, ""))
                writer.rebuild(tx, FileKey(owner, source, file), session, found)
                jobs.heartbeat(tx, [lease], progress=True)
            touched |= {(file, key) for key in found.session_keys}
        with database.write() as tx:
            if busy:
                jobs.release(tx, lease)
            else:
                jobs.complete(tx, lease)
    return touched
