"""Before a scan: files that a crashed process left `ingesting` are rolled back to their last committed offset.

Only files that no living lease covers are touched. A roll-back that fails is logged, that file is left out, and the
others go on: memory may lag, the transcript stays.
"""

from __future__ import annotations

import logging
from dataclasses import replace

from recollect.ingest.run import KIND
from recollect.ingest.writer import Touched, Writer
from recollect.store import entries as entry_rows
from recollect.store import files
from recollect.store.database import Database, Transaction
from recollect.store.entries import FileKey
from recollect.store.files import FileState
from recollect.store.jobs import Jobs
from recollect.types import FileStatus, Owner

log = logging.getLogger(__name__)


def recover(database: Database, owner: Owner, jobs: Jobs, writer: Writer) -> tuple[int, list[FileState]]:
    """How many files were rolled back, and those for which that failed."""
    with database.write() as tx:
        jobs.reap(tx, KIND)
    with database.read() as tx:
        stuck = files.with_status(tx, owner, FileStatus.INGESTING)
    done, failed = 0, []
    for state in stuck:
        try:
            with database.write() as tx:
                done += roll_back(tx, owner, jobs, writer, state)
        except Exception:  # reason: one file that cannot be rolled back must not keep the others from being read
            log.exception("could not roll back %s; it is left out", state.file_path)
            failed.append(state)
    return done, failed


def roll_back(tx: Transaction, owner: Owner, jobs: Jobs, writer: Writer, seen: FileState) -> bool:
    if jobs.is_held(tx, KIND, f"{seen.source}/{seen.file_path}", lock=True):
        return False
    state = files.load(tx, owner, seen.source, seen.file_path)
    if state is None or state.status is not FileStatus.INGESTING:
        return False
    key = FileKey(owner, state.source, state.file_path)
    if entry_rows.delete_from(tx, key, state.generation, state.last_processed_offset):
        for session in entry_rows.sessions_of_file(tx, key):
            writer.rebuild(tx, key, session, Touched(state))
    files.save(tx, owner, [replace(state, status=FileStatus.IDLE)])
    return True
