"""The end of a conversation as canonical files: transcript, summary, manifest, in this order.

What the files hold is decided in pure functions of the conversation, its extraction and the time of the answer; a rerun
after a crash at any step finds its own files by their idempotency key, writes what is missing and ends in the same
bytes. A conversation that changed gets a new set under the same token: the manifest keeps its name, points at the
newest set and lists what it superseded. A superseded transcript goes only after that was written, and only if every
entry of it stands in the newer one.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from recollect.artifacts import bodies, rows, sentence, sets
from recollect.artifacts.document import Content, Document, Listed, rendered, sealed
from recollect.artifacts.files import Files, Tampered
from recollect.artifacts.names import Kind, Name, session_token
from recollect.artifacts.names import parse as parse_name
from recollect.artifacts.projection import Projection
from recollect.artifacts.sanitize import VERSION, line, sanitized
from recollect.artifacts.sets import Known
from recollect.extract.values import Extraction, Transcript, Written
from recollect.occasions import occasions
from recollect.store.artifacts import Indexed
from recollect.store.database import Transaction
from recollect.types import Conversation, Event, Message, Remembered, Role, Timestamp

_FLOW = "session-end"


@dataclass(frozen=True, slots=True)
class Ended:
    """A conversation that ended, sanitised, and what was made of it."""

    agent_id: str
    conversation: Conversation
    messages: Sequence[Message]
    snapshot: str  # of the messages as they were said
    extraction: Extraction
    strategy: str
    stated: tuple[Remembered, ...]
    sentence: sentence.Sentence
    answered_at: Timestamp

    @property
    def key(self) -> str:
        talk = self.conversation
        return idempotency_key(self.agent_id, talk.session_key, self.snapshot, self.strategy, self.answered_at)


# Decisions


def ended(
    agent_id: str,
    transcript: Transcript,
    extraction: Extraction,
    stated: Sequence[Remembered],
    answered_at: Timestamp,
    strategy: str,
) -> Ended:
    """Steps 1 to 3: sanitise, take the proposed sentence, hold it against the floor. Memories stand in the order in
    which they were said, whether an answer tells them or rows do."""
    conversation = transcript.conversation
    if extraction.is_empty and not stated:
        extraction = Extraction()  # whoever writes it again knows of no sentence either
    messages = [_sanitized(each) for each in transcript.messages]
    said = [(each.role is Role.USER, each.text) for each in messages]
    day = conversation.first_message_at[:10]
    project = line(conversation.project)
    gated = sentence.gated(line(extraction.memory_sentence), project, conversation.source, day, said)
    return Ended(
        agent_id,
        conversation,
        messages,
        transcript.snapshot,
        extraction,
        strategy,
        tuple(sorted(map(_clean, stated), key=lambda each: (each.valid_from, each.id, each.revision))),
        gated,
        answered_at,
    )


def _sanitized(message: Message) -> Message:
    events = tuple(Event(each.kind, sanitized(each.text)) for each in message.events)
    return replace(message.rewritten(sanitized), events=events)


def _clean(stated: Remembered) -> Remembered:
    return replace(stated, text=sanitized(stated.text), occasions=occasions(map(line, stated.occasions)))


def idempotency_key(agent_id: str, session_key: str, snapshot: str, strategy: str, answered_at: Timestamp) -> str:
    """Names the end of a session: the same conversation, said the same, with the same answer."""
    return sets.idempotency_key(_FLOW, agent_id, session_key, snapshot, strategy, answered_at)


def place(known: Known, key: str, answered_at: Timestamp) -> Timestamp:
    """When the set was captured. Time goes on with every set, whatever the clock does."""
    newest = max((name.captured_at for name in known.past), default=None)
    if newest is None:
        return answered_at
    heads = ((name, head) for name, head in known.contents.items() if head and head.idempotency_key == key)
    is_ours = (VERSION, True)  # other rules would write other bytes, and so did other versions
    mine = [name for name, head in heads if (head.sanitizer_version, bool(head.frontmatter_sha256)) == is_ours]
    is_rerun = any(name.captured_at == newest for name in mine)
    return newest if is_rerun else max(answered_at, sets.after(newest))


def artifacts(end: Ended, captured: Timestamp, manifest_path: str) -> tuple[tuple[Content, str], tuple[Content, str]]:
    """Transcript and summary, each as head and body. Where nothing was worth keeping, the summary has its sentence
    alone, and the transcript tells who found nothing, too."""
    talk, links = end.conversation, [(manifest_path, "manifest")]
    title = sets.title(talk.project, talk.source, talk.first_message_at)
    head = _content(end, captured, manifest_path)
    body = bodies.transcript(title, links, end.messages)
    said = replace(head, kind=Kind.TRANSCRIPT)
    strategy = end.strategy or None
    if not (end.extraction.raw_memory or end.stated):  # no row tells it
        said = replace(said, strategy=strategy)
    slug = line(end.extraction.rollout_slug)
    value = bodies.Summary(
        slug.replace("-", " ").capitalize() or title,
        sanitized(end.extraction.rollout_summary) or end.sentence.text,
        end.stated,
        sanitized(end.extraction.raw_memory),
    )
    head = replace(head, rollout_slug=slug, parts=end.extraction.parts, strategy=strategy)
    return sealed(said, body), sealed(head, bodies.summary(value, links))


def _content(end: Ended, captured: Timestamp, manifest_path: str) -> Content:
    conversation = end.conversation
    return Content(
        kind=Kind.SUMMARY,
        agent_id=end.agent_id,
        session_id=conversation.session_id,
        session_key=conversation.session_key,
        project=conversation.project,
        harness=conversation.source,
        captured_at=captured,
        started_at=conversation.first_message_at,
        ended_at=conversation.last_message_at,
        manifest_path=manifest_path,
        sanitizer_version=VERSION,
        memory_sentence=end.sentence.text,
        memory_sentence_version=sentence.VERSION,
        memory_sentence_quality=str(end.sentence.quality),
        memory_sentence_generated_at=end.answered_at,
        project_id=conversation.project_id,
        snapshot=end.snapshot,
        source_file=conversation.source_file,
        branch=conversation.branch,
        idempotency_key=end.key,
        user=conversation.user,
    )


# The runner


class SessionEnd:
    """`extract.run.Artifacts`: steps 1 to 7 of the session's end."""

    def __init__(self, files: Files, agent_id: str, ledger: Projection | None = None) -> None:
        self._files = files
        self._agent_id = agent_id
        self._ledger = ledger

    def write(
        self,
        transcript: Transcript,
        extraction: Extraction,
        stated: Sequence[Remembered],
        captured_at: Timestamp,
        strategy: str = "",
    ) -> Written:
        """Steps 1 to 6."""
        end = ended(self._agent_id, transcript, extraction, stated, captured_at, strategy)
        return sets.retried(lambda: self._write(end))

    def settle(
        self,
        transcript: Transcript,
        extraction: Extraction,
        stated: Sequence[Remembered],
        captured_at: Timestamp,
        strategy: str = "",
    ) -> tuple[Indexed, ...]:
        """The same for a conversation that nobody extracts. A set of the same messages that is there stays as it is;
        one that was begun, or has no summary, is finished."""
        known = self._look(transcript.conversation)
        begun = [head for head in known.readable.values() if head.snapshot == transcript.snapshot]
        answered_at = max((head.memory_sentence_generated_at for head in begun), default=captured_at)
        read_by = strategy or next((head.strategy for head in begun if head.strategy), "")
        end = ended(self._agent_id, transcript, extraction, stated, answered_at, read_by)

        def write() -> tuple[Indexed, ...]:
            there = self._look(transcript.conversation)
            head, name = there.manifest, there.manifest_name
            if head and name and head.transcript_path and head.snapshot == transcript.snapshot:
                if head.transcript_path in there.readable and head.summary_path:
                    return sets.index(self._files, there, name, head)
                if head.transcript_path not in there.readable and self._files.read(head.transcript_path) is not None:
                    raise Tampered(f"{head.transcript_path}: it was changed by hand")
            return self._write(end).files

        return sets.retried(write)

    def due(self, tx: Transaction) -> None:
        """Says that MEMORY.md has to be brought up to date."""
        if self._ledger:
            self._ledger.due(tx)

    def project(self) -> None:
        """Brings MEMORY.md up to date."""
        if self._ledger:
            self._ledger.update()

    def _write(self, end: Ended) -> Written:
        known = self._look(end.conversation)
        name = known.name(end.conversation.first_message_at)
        captured = place(known, end.key, end.answered_at)
        transcript, summary = artifacts(end, captured, name.path)
        made: dict[Name, Content] = {}
        for head, body in (transcript, summary):
            own = Name(captured, known.token, head.kind)
            self._files.create(own.path, rendered(head, body))
            made[own] = head
        known = replace(known, contents={**known.contents, **made})
        to = sets.newest(made)
        manifest = sets.composed(known, name, transcript[0], to, captured)
        sets.commit(self._files, known, name, manifest)
        gone = self.drop(manifest.superseded, {each.uuid for each in end.messages})
        files = sets.index(self._files, known, name, manifest, gone)
        told = rows.derived(Document(*transcript), Document(*summary))
        return Written(told.stage1, told.stated, files)

    def _look(self, talk: Conversation) -> Known:
        return sets.look(self._files, session_token(self._agent_id, talk.session_key, talk.session_id))

    def drop(self, superseded: Sequence[Listed], entries: Collection[str]) -> set[str]:
        """Deletes superseded transcripts whose every entry is among these; what was tampered with stays."""
        gone = set()
        for each in superseded:
            name = parse_name(each.path)
            if name is None or name.kind is not Kind.TRANSCRIPT:
                continue
            found = sets.load(self._files, each.path)
            if found and all(message.uuid in entries for message in rows.messages_of(found)):
                self._files.delete(each.path)
                gone.add(each.path)
        return gone
