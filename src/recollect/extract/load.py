"""A conversation's entries as a transcript. Read only."""

from __future__ import annotations

from collections.abc import Sequence

from recollect.extract.values import Transcript
from recollect.store import entries
from recollect.store.database import Database
from recollect.store.entries import FileKey
from recollect.types import Conversation, Message, Owner, Role


def load(database: Database, owner: Owner, group: Sequence[Conversation]) -> Transcript:
    """Up to the last message it had when it was listed. A group is one conversation, from each file that holds it."""
    messages: dict[str, Message] = {}
    with database.read() as tx:
        for each in group:
            key = FileKey(owner, each.source, each.source_file)
            rows = entries.of_conversation(tx, key, each.session_id, each.first_message_at, each.last_message_at)
            messages |= {row[0]: _message(each, *row) for row in rows}
    newest = max(group, key=lambda each: each.last_message_at)
    return Transcript(newest, sorted(messages.values(), key=lambda message: message.timestamp))


def _message(talk: Conversation, uuid: str, role: str, text: str, at: str, tools: str, *place: str) -> Message:
    """Its place (folder, project, branch) only where it is not the conversation's."""
    usual = (talk.project, talk.project_id, talk.branch)
    other = (None if own == known else own for own, known in zip(place, usual, strict=True))
    return Message(uuid, Role(role), text, at, tools, *other)
