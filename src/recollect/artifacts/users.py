"""Tells apart what users of chats said before a user was a scope: their conversations, and memories that they shared.

Files of that time do not name the user. The rows of the turns do, and the turn log; else the folder of the log does.
"""

from __future__ import annotations

from itertools import islice
from pathlib import PurePath

from recollect.ingest.sources.recollect import session
from recollect.store import turns, users
from recollect.store.ground import Ground
from recollect.turns.log import TurnLog

_BATCH = 200  # memories in a commit


def user_of(ground: Ground, session_id: str, source_file: str) -> str:
    """Whose the session of a chat is."""
    with ground.database.read() as tx:
        if named := turns.user_of(tx, ground.owner, session_id):
            return named
    for turn in TurnLog(ground.settings.turns).turns_in(source_file):
        if session(turn.project, turn.user, turn.conversation) == session_id and turn.user:
            return turn.user
    return PurePath(source_file).parent.name or users.UNKNOWN


def settle(ground: Ground, *, full: bool = False) -> bool:
    """Finds out whose everything is that is nobody's yet; was there any? With `full`, when all files are read, memories
    are looked at, too, whose revisions are of several users, as files of that time leave them."""
    with ground.database.read() as tx:
        if not full and not users.waiting(tx, ground.owner):
            return False
        chats = users.unknown(tx, ground.owner)
    for session_id, source_file in chats:
        user = user_of(ground, session_id, source_file)
        with ground.database.write() as tx:
            users.assign(tx, ground.owner, session_id, source_file, user)
    with ground.database.read() as tx:
        left = iter(users.mixed(tx, ground.owner))
    while batch := list(islice(left, _BATCH)):
        with ground.database.write() as tx:
            users.part(tx, ground.owner, batch, full=full)
    return True
