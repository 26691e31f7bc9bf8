"""The jobs of phase 1: what they are called, what they have seen, and what a worker that died leaves behind."""

from __future__ import annotations

from recollect.store import conversations
from recollect.store.database import Transaction
from recollect.store.jobs import Jobs
from recollect.types import Conversation, ConversationStatus, Owner, Timestamp, timestamp

KIND = "extract"


def watermark(last_message_at: Timestamp, snapshot: str) -> str:
    """Newest message first, so that watermarks grow with time; then what exactly was said."""
    return f"{last_message_at}#{snapshot}"


def abandoned(tx: Transaction, owner: Owner, jobs: Jobs) -> list[Conversation]:
    """Conversations in process that nobody who is alive works on."""
    found = conversations.for_extraction(tx, owner, [ConversationStatus.PROCESSING])
    return [each for each in found if not jobs.is_held(tx, KIND, each.session_key)]


def resume(tx: Transaction, owner: Owner, jobs: Jobs) -> None:
    """They are ready again."""
    changes = [(each, ConversationStatus.READY, "its worker died") for each in abandoned(tx, owner, jobs)]
    conversations.set_status(tx, owner, changes, timestamp(jobs.clock()))
