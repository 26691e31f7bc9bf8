"""The jobs of phase 1: what they are called, what they have seen, and what a worker that died leaves behind."""

from __future__ import annotations

from recollect.extract.values import NOTHING, nothing
from recollect.models.base import Failure
from recollect.store import conversations
from recollect.store.database import Transaction
from recollect.store.jobs import Job, Jobs
from recollect.types import Conversation, ConversationStatus, JobStatus, Owner, Stage1, Timestamp, timestamp

KIND = "extract"
GIVEN_UP = (JobStatus.FAILED, JobStatus.DEAD)
UNREAD = "nobody has read it yet"  # of one that has a transcript, and of which no strategy ever said a word


def watermark(last_message_at: Timestamp, snapshot: str) -> str:
    """Newest message first, so that watermarks grow with time; then what exactly was said."""
    return f"{last_message_at}#{snapshot}"


def is_due(known: tuple[JobStatus, str, str] | None, watermark: str) -> bool:
    """Not what was done already, and not what failed for good on the same input."""
    if known is None:
        return True
    status, newest, done = known
    return done != watermark and not (status in GIVEN_UP and newest == watermark)


def plan_limit(tx: Transaction, jobs: Jobs) -> Job | None:
    """The job that waits longest for a plan's limit to reset; None: none is known to hold."""
    now = timestamp(jobs.clock())
    waiting = [each for each in jobs.list(tx, (JobStatus.PAUSED,)) if each.kind == KIND and each.not_before > now]
    limited = [each for each in waiting if each.last_error.startswith(Failure.PLAN_LIMIT)]
    return max(limited, key=lambda each: each.not_before, default=None)


def reads_anew(strategy: str, talk: Conversation, row: Stage1 | None) -> bool:
    """Was it read by another strategy than this, the one of today? Rules do not read again what a model has read."""
    if row is None and not talk.status_reason.startswith(NOTHING):
        return False
    before = row.strategy if row else talk.status_reason
    same = before in (strategy, nothing(strategy))
    return not same and (not by_rules(strategy) or by_rules(before))


def read_by(talk: Conversation) -> str:
    """The strategy that found nothing worth keeping in it; empty: none has read it."""
    said = talk.status_reason
    return said[len(NOTHING) + 2 : -1] if said.startswith(f"{NOTHING} (") else ""


def by_rules(strategy: str) -> bool:
    """Its id says so before the name of a model, if there is one."""
    return "offline" in strategy.partition("/")[0]


def abandoned(tx: Transaction, owner: Owner, jobs: Jobs) -> list[Conversation]:
    """Conversations in process that nobody who is alive works on."""
    found = conversations.search(tx, owner, statuses=[ConversationStatus.PROCESSING])
    return [each for each in found if not jobs.is_held(tx, KIND, each.session_key)]


def resume(tx: Transaction, owner: Owner, jobs: Jobs) -> None:
    """They are ready again."""
    changes = [(each, ConversationStatus.READY, "its worker died") for each in abandoned(tx, owner, jobs)]
    conversations.set_status(tx, owner, changes, timestamp(jobs.clock()))
