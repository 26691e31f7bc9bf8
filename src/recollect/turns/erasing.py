"""What erasing takes out of turn memory beside the log's lines: rows of the turns, and their evidence in buckets."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import nullcontext
from pathlib import PurePath

from recollect import note
from recollect.ingest.sources.recollect import turn_of
from recollect.store import turns as rows
from recollect.store.erasing import Said
from recollect.store.ground import Ground
from recollect.store.turns import Person
from recollect.turns import buckets
from recollect.turns.log import TurnLog
from recollect.turns.rows import expiry, hosted_uri, keep_for
from recollect.turns.values import BUCKET
from recollect.types import Timestamp, timestamp


def turns_of(said: Iterable[Said]) -> set[tuple[str, str]]:
    """(session, turn) of the entries that are turns of a chat."""
    found = ((each.session_id, turn_of(each.uuid, each.session_id, each.role)) for each in said if _is_ours(each))
    return {each for each in found if each[1]}


def erase_buckets(ground: Ground, said: Iterable[Said]) -> None:
    """Evidence of these turns leaves the buckets of their users: rows, then files, then the rows of what is left. A run
    that was cut short leaves no row without its file, so that the next one finds it."""
    told = [each for each in said if _is_ours(each)]
    gone = turns_of(told)
    settings, log = ground.settings, TurnLog(ground.settings.turns)
    folders = sorted({PurePath(each.source_file).parent.as_posix() for each in told})
    with log.alone() if folders else nullcontext():  # whoever takes turns in writes files and rows before or after this
        for folder in folders:
            log.sweep(f"{folder}/{buckets.FOLDER}")
        for held in (each for folder in folders for each in buckets.holding(log, folder, gone)):
            person = Person(ground.owner, held.project, held.user)
            with ground.database.write() as tx:
                rows.delete_bucket(tx, person, held.id, BUCKET)
            left = buckets.erase(log, held.path, gone, timestamp(ground.clock()))
            if left is not None:
                end = expiry(Timestamp(left.updated_at), keep_for(settings))
                with ground.database.write() as tx:
                    rows.save(tx, ground.owner, [left.artifact(hosted_uri(settings, left.path), end)])


def _is_ours(each: Said) -> bool:
    return each.source == note.SOURCE
