"""Where the end of a session may have stopped: the specification's six partial-failure states, told from what is there.

`detect` is pure: files with their checksums, the stored answer, MEMORY.md and the rows in, states out, in the order of
the flow. `Recovery` resumes each; doing so twice is doing it once. While there is an answer, phase 1 writes what is
missing: it finds the answer stored and asks nobody again. Rows alone are made by a re-index.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from recollect.artifacts import sets
from recollect.artifacts.document import Content
from recollect.artifacts.files import Files
from recollect.artifacts.ledger import DAYS
from recollect.artifacts.names import Kind, session_token
from recollect.artifacts.projection import Projection
from recollect.artifacts.reindex import Reindex
from recollect.artifacts.sentence import Quality
from recollect.artifacts.session_end import idempotency_key
from recollect.artifacts.sets import Known
from recollect.extract.run import Extract
from recollect.store import artifacts
from recollect.store.ground import Ground, Part
from recollect.types import timestamp


class State(StrEnum):
    NOT_WRITTEN = "sentence generated, artifact write failed"
    TRANSCRIPT_ONLY = "transcript written, summary failed"
    NO_MANIFEST = "summary/transcript written, manifest failed"
    FALLBACK = "sentence generation failed, fallback path engaged"  # told, and nothing is left to do
    NOT_INDEXED = "canonical writes done, DB index update failed"
    NOT_PROJECTED = "artifacts+manifest written, MEMORY.md update failed"


BY_EXTRACTION = (State.NOT_WRITTEN, State.TRANSCRIPT_ONLY)  # resumed from the stored answer


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known of one conversation."""

    known: Known  # its files
    answer: str | None  # idempotency key of an answer that is stored and not used up
    belongs: bool  # its summary belongs into MEMORY.md: in the window, and no test
    is_listed: bool  # MEMORY.md names its manifest
    rows: Mapping[str, str]  # path → checksum, as the rows of its files have it


def detect(evidence: Evidence) -> tuple[State, ...]:
    """None of them: the conversation is whole."""
    known = evidence.known
    if evidence.answer is not None:
        kinds = {name.kind for name, head in known.contents.items() if head and head.idempotency_key == evidence.answer}
        if Kind.TRANSCRIPT not in kinds:
            return (State.NOT_WRITTEN,)
        if Kind.SUMMARY not in kinds:
            return (State.TRANSCRIPT_ONLY,)
    if not _is_committed(known):
        return (State.NO_MANIFEST,)
    if known.manifest is None:
        return ()
    found = []
    summary = known.readable.get(known.manifest.summary_path or "")
    if summary and summary.memory_sentence_quality == Quality.FALLBACK:
        found.append(State.FALLBACK)
    if any(evidence.rows.get(path) != sha256 for path, sha256 in _expected(known).items()):
        found.append(State.NOT_INDEXED)
    if evidence.is_listed != (evidence.belongs and summary is not None):
        found.append(State.NOT_PROJECTED)
    return tuple(found)


def _is_committed(known: Known) -> bool:
    """Does the manifest point at the newest set, and list every compaction?"""
    if known.manifest is None:
        return not known.readable
    if sets.unlisted(known):
        return False
    if known.manifest.superseded_by:
        return True
    there, said = sets.newest(known.contents).transcript, known.manifest.transcript_path
    return there is None or (said is not None and there.path <= said)


def _expected(known: Known) -> dict[str, str]:
    """The files that rows must know, with their checksums."""
    assert known.manifest is not None and known.manifest_name is not None
    to = sets.points(known.manifest)
    current = [each for each in (to.transcript, to.summary, *known.manifest.compactions) if each]
    return {each.path: each.sha256 for each in current} | {known.manifest_name.path: known.manifest.content_sha256}


class Recovery(Part):
    def __init__(self, ground: Ground, files: Files, projection: Projection, extract: Extract) -> None:
        super().__init__(ground)
        self._files = files
        self._projection = projection
        self._extract = extract

    def inspect(self, session_key: str) -> Evidence:
        """Tampered when its manifest was changed by hand."""
        known = sets.look(self._files, session_token(self._owner.agent_id, session_key, ""))
        pending = self._extract.stored(session_key)
        with self._database.read() as tx:
            indexed = artifacts.of_session(tx, self._owner, session_key)
        summary = known.readable.get(known.manifest.summary_path or "") if known.manifest else None
        key = None
        if pending is not None:
            agent = self._owner.agent_id
            key = idempotency_key(agent, session_key, pending.snapshot, pending.strategy, pending.answered_at)
        return Evidence(
            known,
            key,
            summary is not None and self._belongs(summary),
            known.manifest_name is not None and self._projection.lists(known.manifest_name.path),
            {each.source_path: each.source_sha256 for each in indexed},
        )

    def recover(self, session_key: str) -> tuple[State, ...]:
        """Resumes what was interrupted; the states that were found. Safe beside other workers: their leases hold."""
        found: list[State] = []
        while True:
            seen = self.inspect(session_key)
            state = next((each for each in detect(seen) if each not in (*found, State.FALLBACK)), None)
            if state is None:
                return tuple(found)
            found.append(state)
            if state in BY_EXTRACTION or (state is State.NOT_INDEXED and seen.answer):
                self._extract.run(now=True, keys=[session_key])
            elif state is State.NO_MANIFEST:
                sets.retried(lambda: self._commit(session_key))
            elif state is State.NOT_PROJECTED:
                self._projection.update()
            else:
                Reindex(self._ground).run()

    def _belongs(self, summary: Content) -> bool:
        first, last = timestamp(self._clock() - timedelta(days=DAYS)), timestamp(self._clock())
        at = summary.ended_at or summary.captured_at
        return first <= at <= last and not self._ground.is_unlisted(summary.session_id)

    def _commit(self, session_key: str) -> None:
        """The manifest from what the contents say of themselves."""
        known = sets.look(self._files, session_token(self._owner.agent_id, session_key, ""))
        head = max(known.readable.values(), key=lambda each: each.captured_at)
        name = known.name(head.started_at or head.captured_at)
        to = sets.points(known.manifest)
        if (there := sets.newest(known.contents)).transcript and not (known.manifest and known.manifest.superseded_by):
            to = there
        by = known.manifest.superseded_by if known.manifest else None
        sets.commit(self._files, known, name, sets.composed(known, name, head, to, head.captured_at, by))
