"""Which conversations a session's entries form, and which state changes are allowed. Pure.

A conversation is a run of entries of one session in one file in which no pause is longer than the gap. It reopens
when it gains or loses entries, whatever became of it before.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from recollect.errors import InvalidTransition
from recollect.store.entries import Mark
from recollect.types import Conversation, ConversationStatus, Timestamp, moment

_ALLOWED = {
    ConversationStatus.ACTIVE: {
        ConversationStatus.READY,
        ConversationStatus.PROCESSING,  # a person asks before it fell silent
    },
    ConversationStatus.READY: {
        ConversationStatus.ACTIVE,
        ConversationStatus.PROCESSING,
        ConversationStatus.ARCHIVED,  # reopened, and yet the same
        ConversationStatus.SKIPPED,
    },
    ConversationStatus.PROCESSING: {
        ConversationStatus.ACTIVE,  # gained entries while it was processed
        ConversationStatus.READY,  # the job failed or was released
        ConversationStatus.ARCHIVED,
        ConversationStatus.SKIPPED,
    },
    ConversationStatus.ARCHIVED: {
        ConversationStatus.ACTIVE,
        ConversationStatus.PROCESSING,  # a person has it read again
    },
    ConversationStatus.SKIPPED: {ConversationStatus.ACTIVE, ConversationStatus.PROCESSING},
}

_HOUR = timedelta(hours=1)


def check_transition(before: ConversationStatus, after: ConversationStatus) -> None:
    if after not in _ALLOWED[before]:
        raise InvalidTransition(f"a conversation cannot go from {before} to {after}")


@dataclass(frozen=True, slots=True)
class Span:
    """A conversation before it has a row."""

    first: Timestamp
    last: Timestamp
    count: int
    project: str
    project_id: str
    branch: str
    user: str


@dataclass(frozen=True, slots=True)
class Plan:
    """What must happen to a session's rows."""

    insert: tuple[Conversation, ...] = ()
    update: tuple[Conversation, ...] = ()
    delete: tuple[Conversation, ...] = ()


def group(marks: Iterable[Mark], gap: timedelta) -> list[Span]:
    """Marks in order of time → conversations. The place is that of the first mark that names one."""
    spans: list[Span] = []
    first, last, count, project, project_id, branch, user = None, Timestamp(""), 0, "", "", "", ""
    for at, cwd, in_project, on_branch, of_user in marks:
        if first is not None and _pause(last, at, gap):
            spans.append(Span(first, last, count, project, project_id, branch, user))
            first = None
        if first is None:
            first, count, project, project_id, branch, user = at, 0, "", "", "", ""
        last = at
        count += 1
        project, project_id = project or cwd, project_id or in_project
        branch, user = branch or on_branch, user or of_user
    if first is not None:
        spans.append(Span(first, last, count, project, project_id, branch, user))
    return spans


def append(latest: Conversation | None, spans: Sequence[Span], blank: Conversation, gap: timedelta) -> Plan:
    """New entries, all at or after the end of the session's latest conversation: only that one is touched."""
    if latest is None or not spans or _pause(latest.last_message_at, spans[0].first, gap):
        return Plan(insert=tuple(_fresh(blank, span) for span in spans))
    merged = Span(
        latest.first_message_at,
        spans[0].last,
        latest.entry_count + spans[0].count,
        latest.project or spans[0].project,
        latest.project_id or spans[0].project_id,
        latest.branch or spans[0].branch,
        latest.user or spans[0].user,
    )
    return Plan(insert=tuple(_fresh(blank, span) for span in spans[1:]), update=(_changed(latest, merged),))


def rebuild(
    existing: Sequence[Conversation],
    spans: Sequence[Span],
    blank: Conversation,
    touched: Iterable[Timestamp] = (),
) -> Plan:
    """All of a session's entries anew. A row stays with the span its start falls into, and keeps its state if that
    span is what it was and none of its entries (`touched`) came, went or changed."""
    touched = sorted(touched)
    unmatched = list(existing)
    insert, update = [], []
    for span in spans:
        row = next((each for each in unmatched if span.first <= each.first_message_at <= span.last), None)
        row = row or next(
            (each for each in unmatched if each.first_message_at <= span.first <= each.last_message_at), None
        )
        if row is None:
            insert.append(_fresh(blank, span))
            continue
        unmatched.remove(row)
        same = (row.first_message_at, row.last_message_at, row.entry_count) == (
            span.first,
            span.last,
            span.count,
        )
        if not same or any(span.first <= at <= span.last for at in touched):
            update.append(_changed(row, span))
    return Plan(tuple(insert), tuple(update), tuple(unmatched))


def reopened(conversation: Conversation) -> Conversation:
    """Active again, with the reason."""
    if conversation.status is ConversationStatus.ACTIVE:
        return conversation
    check_transition(conversation.status, ConversationStatus.ACTIVE)
    return replace(conversation, status=ConversationStatus.ACTIVE, status_reason=f"reopened ({conversation.status})")


def _pause(earlier: Timestamp, later: Timestamp, gap: timedelta) -> bool:
    if earlier[:13] == later[:13] and gap >= _HOUR:  # the same hour: no need to compute
        return False
    return moment(later) - moment(earlier) > gap


def _fresh(blank: Conversation, span: Span) -> Conversation:
    return replace(
        blank,
        session_key=f"{blank.session_id}@{span.first}",
        project=span.project,
        project_id=span.project_id,
        branch=span.branch,
        user=span.user,
        first_message_at=span.first,
        last_message_at=span.last,
        entry_count=span.count,
    )


def _changed(conversation: Conversation, span: Span) -> Conversation:
    return _fresh(reopened(conversation), span)
