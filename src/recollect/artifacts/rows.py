"""The rows that follow from canonical files. Pure; the end of a session and a re-index both go through here, so that
what the database says of a conversation is what its files say, whoever wrote it there.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from recollect import note
from recollect.artifacts import bodies
from recollect.artifacts.document import Content, Document, Manifest
from recollect.artifacts.names import session_token
from recollect.extract import WITHOUT_MODEL
from recollect.extract.values import Extraction, nothing
from recollect.projects.paths import renewed
from recollect.store.artifacts import Indexed
from recollect.store.compactions import Compacted
from recollect.types import (
    STRICT,
    Conversation,
    ConversationStatus,
    Hand,
    Message,
    Remembered,
    Scope,
    Severity,
    Stage1,
    Timestamp,
)

_OLD_CHAT = re.compile(r"turns-v1\+offline-v[1-8]")  # what its user asserted, and what was read without a model


@dataclass(frozen=True, slots=True)
class Derived:
    """A conversation as its newest artifacts tell it."""

    conversation: Conversation  # without an id
    messages: tuple[Message, ...]
    stage1: Stage1 | None
    stated: tuple[Remembered, ...]


def derived(transcript: Document, summary: Document | None) -> Derived:
    """BadBody when a body is not what its kind has."""
    head = transcript.head
    assert isinstance(head, Content)
    messages = tuple(messages_of(transcript))
    times = [Timestamp(each.timestamp) for each in messages] or [head.started_at or head.captured_at]
    told = parsed_summary(summary) if summary else None
    is_kept = told is not None and bool(told.raw_memory or told.memories)
    conversation = Conversation(
        id=0,
        session_id=head.session_id,
        session_key=head.session_key,
        source=head.harness,
        source_file=head.source_file,
        project=renewed(head.project),
        project_id=renewed(head.project_id),
        branch=head.branch,
        first_message_at=head.started_at or times[0],
        last_message_at=max(times),
        entry_count=len(messages),
        status=ConversationStatus.ARCHIVED if is_kept else ConversationStatus.SKIPPED,
        status_reason="" if is_kept else nothing(head.strategy or ""),
        user=head.user,
    )
    if summary is None or told is None or not is_kept:
        return Derived(conversation, messages, None, ())
    row = _stage1(conversation, summary, told)
    return Derived(conversation, messages, row, tuple(_allowed(each, row) for each in told.memories))


def _allowed(stated: Remembered, row: Stage1) -> Remembered:
    """Files never change: what older ones call binding or user-wide loses that where they are read.

    Nothing binds or is user-wide that was read without a model, whose authors are not known, or that an agent noted.
    Nothing binds that an earlier version noted without saying whose hand it was, or read without a model in a chat.
    Such a chat's statements are its user's alone, and such a note has no other place than everywhere."""
    if row.strategy.startswith(WITHOUT_MODEL) or note.hand_of(row.session_id) is Hand.AGENT:
        if stated.scope is Scope.USER:
            stated = replace(stated, scope=Scope.PROJECT, scope_id=row.project_id, loosened=True)
    elif note.is_signed(row.session_id) and not _OLD_CHAT.fullmatch(row.strategy):
        return stated
    return replace(stated, severity=Severity.NONE, loosened=True) if stated.severity in STRICT else stated


def parsed_summary(document: Document) -> bodies.Summary:
    """What the body of a summary says. BadBody when it is none."""
    head = document.head
    assert isinstance(head, Content)
    return bodies.parse_summary(
        document.body, head.session_key, renewed(head.project_id), head.user, is_escaped=head.is_escaped
    )


def messages_of(document: Document) -> list[Message]:
    """The messages of a transcript. BadBody when it is none."""
    head = document.head
    return bodies.parse_transcript(document.body, is_escaped=isinstance(head, Content) and head.is_escaped)


def _stage1(conversation: Conversation, summary: Document, told: bodies.Summary) -> Stage1:
    head = summary.head
    assert isinstance(head, Content)
    return Stage1(
        session_key=conversation.session_key,
        source=conversation.source,
        session_id=conversation.session_id,
        project=conversation.project,
        project_id=conversation.project_id,
        first_message_at=conversation.first_message_at,
        source_updated_at=conversation.last_message_at,
        entry_count=conversation.entry_count,
        snapshot=head.snapshot,
        generated_at=head.memory_sentence_generated_at,
        strategy=head.strategy or "",
        parts=head.parts or 1,
        raw_memory=told.raw_memory,
        rollout_summary=told.summary,
        rollout_slug=head.rollout_slug or "",
        memory_sentence=head.memory_sentence,
        user=conversation.user,
    )


def compacted(document: Document) -> Compacted:
    """The row of a compaction. BadBody when the body is not what a compaction has."""
    head = document.head
    assert isinstance(head, Content)
    at, uuid, text = bodies.parse_compaction(document.body, is_escaped=head.is_escaped)
    return Compacted(uuid, head.harness, head.session_id, head.source_file, at, text)


def retold(row: Stage1) -> Extraction:
    """What was made of a conversation, from its row: a new set of files needs no model."""
    return Extraction(row.raw_memory, row.rollout_summary, row.rollout_slug, row.memory_sentence, parts=row.parts)


def indexed(path: str, head: Content | Manifest, signature: str, *, current: bool) -> Indexed:
    content = head if isinstance(head, Content) else None
    return Indexed(
        source_path=path,
        source_sha256=head.content_sha256,
        source_kind=str(head.kind),
        session_token=session_token(head.agent_id, head.session_key, head.session_id),
        session_key=head.session_key,
        session_id=head.session_id,
        harness=head.harness,
        project=renewed(head.project),
        project_id=renewed(head.project_id),
        captured_at=head.captured_at,
        ended_at=content.ended_at or "" if content else "",
        manifest_path=content.manifest_path if content else path,
        memory_sentence=content.memory_sentence if content else "",
        source_node_id=content.source_node_id or "" if content else "",
        is_current=int(current or (isinstance(head, Manifest) and not head.superseded_by)),
        signature=signature,
    )
