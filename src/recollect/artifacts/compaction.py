"""A compaction as a canonical file: what an agent put in the place of its own history.

It may come before its conversation ends or long after. It is never a row of the ledger and changes no other file but
the manifest, where the newest stands in `compaction_path` and all are linked. Its id makes it one: written once,
whoever reports it again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache

from recollect.artifacts import bodies, sentence, sets
from recollect.artifacts.document import Content, rendered, sealed
from recollect.artifacts.files import Files
from recollect.artifacts.names import Kind, Name, session_token
from recollect.artifacts.sanitize import VERSION, line, sanitized
from recollect.artifacts.sentence import Quality
from recollect.artifacts.sets import Known
from recollect.store.artifacts import Indexed
from recollect.store.compactions import Compacted
from recollect.text import sentences
from recollect.types import Clock, Conversation, Timestamp, timestamp

_FLOW = "compaction"
_READ = 4_000  # characters in which a sentence is looked for


# Decisions


def idempotency_key(agent_id: str, session_key: str, uuid: str) -> str:
    """Names a compaction: whatever its text says the second time."""
    return sets.idempotency_key(_FLOW, agent_id, session_key, uuid)


def owner_of(conversations: Sequence[Conversation], at: Timestamp) -> Conversation | None:
    """The conversation of a session that a moment falls into, else the last that began before it, else the first."""
    ordered = sorted(conversations, key=lambda each: each.first_message_at)
    inside = [each for each in ordered if each.first_message_at <= at <= each.last_message_at]
    before = [each for each in ordered if each.first_message_at <= at]
    return next(iter([*inside, *before[-1:], *ordered]), None)


def captured(known: Known, at: Timestamp) -> Timestamp:
    """When it was reported; a moment later where another compaction has that name."""
    while Name(at, known.token, Kind.COMPACTION) in known.contents:
        at = sets.after(at)
    return at


def proposed(project: str, text: str) -> str:
    """Steps 1 and 2 without a model: the first sentence that passes the floor, else nothing."""
    known = sentence.anchors(project, [text])
    spoken = (sentence.tidy(each) for row in text[:_READ].split("\n") for each in sentences(row.lstrip("#>*-+ ")))
    return next((each for each in spoken if not sentence.faults(each, known)), "")


def document(
    agent_id: str,
    conversation: Conversation,
    compacted: Compacted,
    at: Timestamp,
    manifest: Name,
    now: Timestamp,
    answered: str = "",
) -> tuple[Content, str]:
    """The artifact as it was captured at a time. `answered` is a model's sentence, which counts where it passes."""
    text = sanitized(compacted.summary)
    project, said = line(conversation.project), [(False, text)]
    gated = sentence.gated(answered, project, conversation.source, compacted.timestamp[:10], said)
    if gated.quality is not Quality.OK:
        gated = sentence.gated(proposed(project, text), project, conversation.source, compacted.timestamp[:10], said)
    title = sets.title(conversation.project, conversation.source, compacted.timestamp).replace("Conv", "Compacted conv")
    head = Content(
        kind=Kind.COMPACTION,
        agent_id=agent_id,
        session_id=conversation.session_id,
        session_key=conversation.session_key,
        project=conversation.project,
        harness=conversation.source,
        captured_at=at,
        started_at=conversation.first_message_at,
        manifest_path=manifest.path,
        source_node_id=compacted.uuid,
        sanitizer_version=VERSION,
        memory_sentence=gated.text,
        memory_sentence_version=sentence.VERSION,
        memory_sentence_quality=str(gated.quality),
        memory_sentence_generated_at=now,
        project_id=conversation.project_id,
        source_file=compacted.source_file,
        branch=conversation.branch,
        idempotency_key=idempotency_key(agent_id, conversation.session_key, compacted.uuid),
        user=conversation.user,
    )
    links = [(manifest.path, "manifest")]
    return sealed(head, bodies.compaction(title, links, compacted.timestamp, compacted.uuid, text))


# The runner


class Compactions:
    """Steps 1 to 4 of compaction-complete; 5 to 7 are the caller's: MEMORY.md, rows, live buffers."""

    def __init__(self, files: Files, agent_id: str, clock: Clock) -> None:
        self._files = files
        self._agent_id = agent_id
        self._clock = clock

    def write(
        self, conversation: Conversation, compacted: Compacted, ask: Callable[[], str] = lambda: ""
    ) -> tuple[Indexed, ...]:
        """The rows of the conversation's files once it is among them. `ask` gives a model's sentence, or nothing."""
        once = cache(ask)  # however often it is tried
        return sets.retried(lambda: self._write(conversation, compacted, once))

    def _write(self, conversation: Conversation, compacted: Compacted, ask: Callable[[], str]) -> tuple[Indexed, ...]:
        answered = "" if self._look(conversation, compacted)[1] else ask()
        known, head = self._look(
            conversation, compacted
        )  # a model takes its time: others may have written it meanwhile
        name, now = known.name(conversation.first_message_at), timestamp(self._clock())
        if head is None:
            at = captured(known, compacted.timestamp)
            head, body = document(self._agent_id, conversation, compacted, at, name, now, answered)
            own = Name(at, known.token, Kind.COMPACTION)
            self._files.create(own.path, rendered(head, body))
            known = replace(known, contents={**known.contents, own: head})
        return sets.link(self._files, known, name, head, now)

    def _look(self, conversation: Conversation, compacted: Compacted) -> tuple[Known, Content | None]:
        """The files of the conversation, and that of this compaction among them."""
        known = sets.look(self._files, session_token(self._agent_id, conversation.session_key, conversation.session_id))
        key = idempotency_key(self._agent_id, conversation.session_key, compacted.uuid)
        return known, next((each for each in known.readable.values() if each.idempotency_key == key), None)
