"""The end of a conversation as canonical files: transcript, summary, manifest, in this order.

What the files hold is decided in pure functions of the conversation, its extraction and the time of the answer; a rerun
after a crash at any step finds its own files by the snapshot and that time, writes what is missing and ends in the same
bytes. A conversation that changed gets a new set under the same token: the manifest keeps its name, points at the
newest set and lists what it superseded. A superseded transcript goes only after that was written, and only if every
entry of it stands in the newer one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from recollect.artifacts import bodies, files, rows, sentence
from recollect.artifacts.document import (
    HASH_SCOPE,
    BadFrontmatter,
    ChecksumMismatch,
    Content,
    Document,
    Manifest,
    Superseded,
    parse,
    rendered,
    sealed,
)
from recollect.artifacts.files import Files, RevisionChanged
from recollect.artifacts.names import Kind, Name, session_token, wikilink
from recollect.artifacts.names import parse as parse_name
from recollect.artifacts.sanitize import CURRENT, line, sanitized
from recollect.extract.values import Extraction, Transcript, Written
from recollect.types import Message, Remembered, Role, Timestamp, moment, timestamp

_ATTEMPTS = 8  # of a manifest that others write at the same time


@dataclass(frozen=True, slots=True)
class Ended:
    """A conversation that ended, sanitised, and what was made of it."""

    agent_id: str
    transcript: Transcript
    extraction: Extraction
    stated: tuple[Remembered, ...]
    sentence: sentence.Sentence
    answered_at: Timestamp
    ended_at: Timestamp | None

    @property
    def title(self) -> str:
        conversation = self.transcript.conversation
        place = line(conversation.project).rstrip("/").rpartition("/")[2] or conversation.source
        return f"Conversation of {conversation.first_message_at[:10]} in {place}"

    @property
    def messages(self) -> Sequence[Message]:
        return self.transcript.messages


@dataclass(frozen=True, slots=True)
class Artifact:
    path: str
    head: Content
    body: str

    @property
    def document(self) -> Document:
        return Document(self.head, self.body)


@dataclass(frozen=True, slots=True)
class Known:
    """What is on disk for a conversation. Files that cannot be read count by their name alone."""

    manifest: Manifest | None
    manifest_name: Name | None
    contents: dict[Name, Content | None]

    @property
    def past(self) -> set[Name]:
        """Every content artifact that there is or was."""
        listed = {each.path for each in self.manifest.superseded} if self.manifest else set()
        if self.manifest:
            listed |= {path for path in (self.manifest.transcript_path, self.manifest.summary_path) if path}
        return {name for path in listed if (name := parse_name(path))} | set(self.contents)


# Decisions


def ended(
    agent_id: str,
    transcript: Transcript,
    extraction: Extraction,
    stated: Sequence[Remembered],
    answered_at: Timestamp,
    gap: timedelta,
) -> Ended:
    """Steps 1 to 3: sanitise, take the proposed sentence, hold it against the floor."""
    conversation = transcript.conversation
    messages = [replace(each, text=sanitized(each.text)) for each in transcript.messages]
    said = [(each.role is Role.USER, each.text) for each in messages]
    day = conversation.first_message_at[:10]
    project = line(conversation.project)
    gated = sentence.gated(line(extraction.memory_sentence), project, conversation.source, day, said)
    silent = moment(answered_at) - moment(conversation.last_message_at)
    return Ended(
        agent_id,
        Transcript(conversation, messages),
        extraction,
        tuple(replace(each, text=sanitized(each.text)) for each in stated),
        replace(gated, text=line(gated.text)),
        answered_at,
        conversation.last_message_at if silent >= gap else None,
    )


def place(known: Known, token: str, snapshot: str, answered_at: Timestamp) -> tuple[Timestamp, Name]:
    """When the set was captured, and the manifest's name. Time goes on with every set, whatever the clock does."""
    times = [name.captured_at for name in known.past]
    newest = max(times, default=None)
    own = any(  # a rerun
        name.captured_at == newest and (head.snapshot, head.memory_sentence_generated_at) == (snapshot, answered_at)
        for name, head in known.contents.items()
        if head
    )
    captured = answered_at
    if newest is not None:
        captured = newest if own else max(answered_at, _after(newest))
    first = min([captured, *times])
    return captured, known.manifest_name or Name(first, token, Kind.MANIFEST)


def artifacts(
    end: Ended, snapshot: str, strategy: str, captured: Timestamp, manifest: Name
) -> tuple[Artifact, Artifact | None]:
    """Transcript and summary; no summary where nothing was worth keeping."""
    links = [(manifest.path, "manifest")]
    head = _content(end, snapshot, captured, manifest.path)
    body = bodies.transcript(end.title, links, end.messages)
    name = Name(captured, manifest.token, Kind.TRANSCRIPT)
    transcript = _artifact(name, replace(head, kind=name.kind, sanitizer_version=CURRENT), body)
    if end.extraction.is_empty:
        return transcript, None
    slug = line(end.extraction.rollout_slug)
    value = bodies.Summary(
        slug.replace("-", " ").capitalize() or end.title,
        sanitized(end.extraction.rollout_summary),
        end.stated,
        sanitized(end.extraction.raw_memory),
    )
    name = replace(name, kind=Kind.SUMMARY)
    head = replace(head, rollout_slug=slug, parts=end.extraction.parts, strategy=strategy)
    return transcript, _artifact(name, head, bodies.summary(value, links))


def manifest(
    known: Known, name: Name, end: Ended, snapshot: str, transcript: Artifact, summary: Artifact | None
) -> Manifest:
    """What the manifest says now; its revision is that of before when it says the same."""
    before, conversation = known.manifest, end.transcript.conversation
    current = {transcript.path, *([summary.path] if summary else [])}
    hashes = {each.path: each.sha256 for each in before.superseded} if before else {}
    hashes |= {each.path: head.content_sha256 for each, head in known.contents.items() if head}
    if before:
        hashes |= {before.transcript_path: before.transcript_sha256}
        hashes |= {before.summary_path: before.summary_sha256} if before.summary_path and before.summary_sha256 else {}
    now = Manifest(
        kind=Kind.MANIFEST,
        agent_id=end.agent_id,
        session_id=conversation.session_id,
        session_key=conversation.session_key,
        project=conversation.project,
        harness=conversation.source,
        captured_at=name.captured_at,
        summary_path=summary.path if summary else None,
        transcript_path=transcript.path,
        compaction_path=before.compaction_path if before else None,
        memory_md_refs=before.memory_md_refs if before else (),
        updated_at=transcript.head.captured_at,
        project_id=conversation.project_id,
        snapshot=snapshot,
        revision=before.revision if before else 0,
        summary_sha256=summary.head.content_sha256 if summary else None,
        transcript_sha256=transcript.head.content_sha256,
        superseded=tuple(Superseded(path, hashes[path]) for path in sorted(hashes) if path not in current),
        content_sha256="",
        hash_scope=HASH_SCOPE,
    )
    now, _ = sealed(now, manifest_body(now, end.title))
    return now if now == before else replace(now, revision=now.revision + 1)


def manifest_body(head: Manifest, title: str) -> str:
    paths = (("summary", head.summary_path), ("transcript", head.transcript_path), ("compaction", head.compaction_path))
    return f"# {title}\n\n" + "\n".join(f"- {wikilink(path, label)}" for label, path in paths if path)


def _content(end: Ended, snapshot: str, captured: Timestamp, manifest_path: str) -> Content:
    conversation = end.transcript.conversation
    return Content(
        kind=Kind.SUMMARY,
        agent_id=end.agent_id,
        session_id=conversation.session_id,
        session_key=conversation.session_key,
        project=conversation.project,
        harness=conversation.source,
        captured_at=captured,
        started_at=conversation.first_message_at,
        ended_at=end.ended_at,
        manifest_path=manifest_path,
        source_node_id=None,
        content_sha256="",
        hash_scope=HASH_SCOPE,
        sanitizer_version=None,
        memory_sentence=end.sentence.text,
        memory_sentence_version=sentence.VERSION,
        memory_sentence_quality=str(end.sentence.quality),
        memory_sentence_generated_at=end.answered_at,
        memory_sentence_sha256="",
        project_id=conversation.project_id,
        snapshot=snapshot,
        source_file=conversation.source_file,
        branch=conversation.branch,
        rollout_slug=None,
        parts=None,
        strategy=None,
    )


def _artifact(name: Name, head: Content, body: str) -> Artifact:
    return Artifact(name.path, *sealed(head, body))


def _after(moment_: Timestamp) -> Timestamp:
    return timestamp(moment(moment_) + timedelta(milliseconds=1))


# The runner


class SessionEnd:
    """`extract.run.Artifacts`: steps 1 to 6 of the session's end."""

    def __init__(self, files: Files, agent_id: str, gap: timedelta) -> None:
        self._files = files
        self._agent_id = agent_id
        self._gap = gap  # of silence, after which a conversation has ended

    def write(
        self,
        transcript: Transcript,
        extraction: Extraction,
        stated: Sequence[Remembered],
        captured_at: Timestamp,
        strategy: str = "",
    ) -> Written:
        end = ended(self._agent_id, transcript, extraction, stated, captured_at, self._gap)
        attempt = 1
        while True:
            try:
                return self._write(end, transcript.snapshot, strategy)
            except RevisionChanged:
                if attempt == _ATTEMPTS:
                    raise
                attempt += 1

    def _write(self, end: Ended, snapshot: str, strategy: str) -> Written:
        conversation = end.transcript.conversation
        token = session_token(self._agent_id, conversation.session_key, conversation.session_id)
        known = self._known(token)
        captured, name = place(known, token, snapshot, end.answered_at)
        transcript, summary = artifacts(end, snapshot, strategy, captured, name)
        current = [transcript, *([summary] if summary else [])]
        for each in current:
            self._files.create(each.path, rendered(each.head, each.body))
        head = manifest(known, name, end, snapshot, transcript, summary)
        if head != known.manifest:
            before = known.manifest.revision if known.manifest else 0
            self._files.replace(name.path, rendered(head, manifest_body(head, end.title)), before)
        gone = self._drop(head, {each.uuid for each in end.messages})
        past = {each.path: held for each, held in known.contents.items() if held and each.path not in gone}
        heads = past | {each.path: each.head for each in current} | {name.path: head}
        told = rows.derived(transcript.document, summary.document if summary else None)
        paths = {each.path for each in current}
        signatures = self._files.signatures(heads)
        found = [
            rows.indexed(path, each, signatures.get(path, ""), current=path in paths)
            for path, each in sorted(heads.items())
        ]
        return Written(told.stage1, told.stated, tuple(found))

    def _drop(self, head: Manifest, entries: set[str]) -> set[str]:
        """Deletes superseded transcripts that the newest one holds as a whole; what was tampered with stays."""
        gone = set()
        for each in head.superseded:
            name = parse_name(each.path)
            if name is None or name.kind is not Kind.TRANSCRIPT:
                continue
            found = self._load(each.path)
            if found and all(message.uuid in entries for message in bodies.parse_transcript(found.body)):
                self._files.delete(each.path)
                gone.add(each.path)
        return gone

    def _known(self, token: str) -> Known:
        names = self._files.names(token)
        first = next((name for name in names if name.kind is Kind.MANIFEST), None)
        contents: dict[Name, Content | None] = {}
        for name in names:
            if name.kind in (Kind.TRANSCRIPT, Kind.SUMMARY):
                found = self._load(name.path)
                contents[name] = found.head if found and isinstance(found.head, Content) else None
        before = files.manifest(first.path, self._files.read(first.path) or "") if first else None
        return Known(before, first, contents)

    def _load(self, path: str) -> Document | None:
        """None when it is gone, or is not what its checksum says."""
        text = self._files.read(path)
        try:
            return None if text is None else parse(text)
        except (BadFrontmatter, ChecksumMismatch):
            return None
