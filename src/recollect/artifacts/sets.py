"""The files of one conversation as they are on disk, and the manifest and the rows that follow from them.

The manifest is the commit: a set of files counts once it points at them. Its name follows from the conversation alone,
so that the end of a session and a compaction, whichever comes first, name the same file.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TypeVar

from recollect.artifacts import files, ledger, rows
from recollect.artifacts.document import Content, Document, Listed, Manifest, parse, rendered, sealed
from recollect.artifacts.files import Files, RevisionChanged
from recollect.artifacts.names import Kind, Name, wikilink
from recollect.artifacts.names import parse as parse_name
from recollect.artifacts.sanitize import line
from recollect.artifacts.sentence import unlinked
from recollect.errors import ArtifactError
from recollect.markdown import code, escape_markdown
from recollect.store.artifacts import Indexed
from recollect.types import Timestamp, moment, timestamp

SET = (Kind.TRANSCRIPT, Kind.SUMMARY)
_ATTEMPTS = 8  # of a manifest that others write at the same time

_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class Known:
    """What is on disk for a conversation. Files that cannot be read count by their name alone."""

    token: str
    manifest: Manifest | None
    manifest_name: Name | None
    contents: Mapping[Name, Content | None]

    @property
    def past(self) -> set[Name]:
        """Every transcript and summary that there is or was."""
        listed = self.manifest.paths if self.manifest else ()
        names = {name for path in listed if (name := parse_name(path))} | set(self.contents)
        return {name for name in names if name.kind in SET}

    @property
    def readable(self) -> dict[str, Content]:
        return {name.path: head for name, head in self.contents.items() if head}

    def name(self, started_at: Timestamp) -> Name:
        """The manifest's: what it is, else what the contents say that it is, else when the conversation began."""
        declared = {parse_name(head.manifest_path) for head in self.readable.values()}
        said = sorted(name for name in declared if name and (name.token, name.kind) == (self.token, Kind.MANIFEST))
        return self.manifest_name or next(iter(said), None) or Name(started_at, self.token, Kind.MANIFEST)


@dataclass(frozen=True, slots=True)
class Points:
    """What a manifest points at."""

    transcript: Listed | None = None
    summary: Listed | None = None
    snapshot: str = ""


def points(before: Manifest | None) -> Points:
    if before is None:
        return Points()
    return Points(
        _listed(before.transcript_path, before.transcript_sha256),
        _listed(before.summary_path, before.summary_sha256),
        before.snapshot,
    )


def newest(contents: Mapping[Name, Content | None]) -> Points:
    """The newest set whose transcript can be read."""
    readable = {name: head for name, head in contents.items() if head}
    said = max((name for name in readable if name.kind is Kind.TRANSCRIPT), default=None)
    if said is None:
        return Points()
    told = replace(said, kind=Kind.SUMMARY)
    summary = Listed(told.path, readable[told].content_sha256) if told in readable else None
    return Points(Listed(said.path, readable[said].content_sha256), summary, readable[said].snapshot)


def current(head: Manifest) -> set[str]:
    """The contents that a conversation consists of; those of one that has a successor are history."""
    if head.superseded_by:
        return set()
    to = points(head)
    return {each.path for each in (to.transcript, to.summary, *head.compactions) if each}


def idempotency_key(flow: str, *parts: str) -> str:
    hashed = hashlib.sha256("\x1f".join((flow, *parts)).encode("utf-8", "surrogatepass"))
    return f"{flow}:{hashed.hexdigest()[:32]}"


def composed(
    known: Known,
    name: Name,
    head: Content | Manifest,
    to: Points,
    updated_at: Timestamp,
    superseded_by: str | None = None,
) -> Manifest:
    """What the manifest says now: what it points at, every compaction that is there, and what was superseded. `head`
    says whose it is. The one of before when it says the same."""
    before = known.manifest
    there = {name.path for name in known.contents}
    linked = [each for each in before.compactions if each.path in there] if before else []
    hashes = {each.path: each.sha256 for each in (*(before.superseded if before else ()), *linked)}
    hashes |= {path: each.content_sha256 for path, each in known.readable.items()}
    was = points(before)
    hashes |= {each.path: each.sha256 for each in (was.transcript, was.summary) if each}
    compactions = [path for path in sorted(hashes) if _kind(path) is Kind.COMPACTION]
    current = {each.path for each in (to.transcript, to.summary) if each} | set(compactions)
    now = Manifest(
        kind=Kind.MANIFEST,
        agent_id=head.agent_id,
        session_id=head.session_id,
        session_key=head.session_key,
        project=head.project,
        harness=head.harness,
        captured_at=name.captured_at,
        summary_path=to.summary.path if to.summary else None,
        transcript_path=to.transcript.path if to.transcript else None,
        compaction_path=compactions[-1] if compactions else None,
        memory_md_refs=_refs(known.readable.get(to.summary.path)) if to.summary and not superseded_by else (),
        updated_at=updated_at,
        project_id=head.project_id,
        snapshot=to.snapshot,
        revision=before.revision + 1 if before else 1,
        summary_sha256=to.summary.sha256 if to.summary else None,
        transcript_sha256=to.transcript.sha256 if to.transcript else None,
        superseded=tuple(Listed(path, hashes[path]) for path in sorted(hashes) if path not in current),
        compactions=tuple(Listed(path, hashes[path]) for path in compactions),
        superseded_by=superseded_by,
    )
    now, _ = sealed(now, manifest_body(now))
    if before and before == replace(now, **{key: getattr(before, key) for key in _OF_THE_WRITE}):
        return before
    return now


_OF_THE_WRITE = ("revision", "updated_at", "frontmatter_sha256")  # no reason to write


def _refs(summary: Content | None) -> tuple[str, ...]:
    """Where MEMORY.md lists a conversation while it lies in its window: the file, and the heading of its day."""
    if summary is None:
        return ()
    return (f"{ledger.path(summary.agent_id)}#{ledger.listed_at(summary.ended_at, summary.captured_at)[:10]}",)


def title(project: str, harness: str, started_at: str) -> str:
    place = unlinked(line(project)).rstrip("/").rpartition("/")[2] or harness
    return f"Conversation of {started_at[:10]} in {place}"


def manifest_body(head: Manifest) -> str:
    paths = [("summary", head.summary_path), ("transcript", head.transcript_path)]
    paths += [("compaction", each.path) for each in reversed(head.compactions)]
    lines = [f"- {wikilink(path, label)}" for label, path in paths if path]
    lines += [f"- superseded by {code(unlinked(line(head.superseded_by)))}"] if head.superseded_by else []
    return f"# {escape_markdown(title(head.project, head.harness, head.captured_at))}\n\n" + "\n".join(lines)


def _listed(path: str | None, sha256: str | None) -> Listed | None:
    return Listed(path, sha256) if path and sha256 else None


def _kind(path: str) -> Kind | None:
    name = parse_name(path)
    return name.kind if name else None


def after(at: Timestamp) -> Timestamp:
    return timestamp(moment(at) + timedelta(milliseconds=1))


# On disk


def look(held: Files, token: str) -> Known:
    names = held.names(token)
    first = next((name for name in names if name.kind is Kind.MANIFEST), None)
    contents: dict[Name, Content | None] = {}
    for name in names:
        if name.kind is not Kind.MANIFEST:
            found = load(held, name.path)
            contents[name] = found.head if found and isinstance(found.head, Content) else None
    before = files.manifest(first.path, held.read(first.path) or "") if first else None
    return Known(token, before, first, contents)


def load(held: Files, path: str) -> Document | None:
    """None when it is gone, is not what was written, or has no name."""
    try:
        text = held.read(path)
        return None if text is None else parse(text)
    except ArtifactError:
        return None


def read(held: Files, names: Iterable[Name]) -> dict[Name, Document | ArtifactError]:
    """What each file says, or what is wrong with it; one that is gone by now is left out."""
    found: dict[Name, Document | ArtifactError] = {}
    for name in names:
        try:
            text = held.read(name.path)
            if text is not None:
                found[name] = parse(text)
        except ArtifactError as error:
            found[name] = error
    return found


def retried(write: Callable[[], _Result]) -> _Result:
    """Again from what is there now, when somebody else wrote the manifest meanwhile."""
    for _ in range(_ATTEMPTS - 1):
        try:
            return write()
        except RevisionChanged:
            continue
    return write()


def commit(held: Files, known: Known, name: Name, head: Manifest) -> None:
    """Writes the manifest if it says something new. RevisionChanged when somebody else was faster."""
    if head != known.manifest:
        before = known.manifest.revision if known.manifest else 0
        held.replace(name.path, rendered(head, manifest_body(head)), before)


def unlisted(known: Known) -> list[Name]:
    """Compactions that the manifest does not list: whoever wrote them ended before it did."""
    listed = {each.path for each in known.manifest.compactions} if known.manifest else set()
    names = (name for name, head in known.contents.items() if head and name.kind is Kind.COMPACTION)
    return sorted(name for name in names if name.path not in listed)


def link(held: Files, known: Known, name: Name, head: Content, now: Timestamp) -> tuple[Indexed, ...]:
    """Commit a manifest that lists every compaction that is there, and is otherwise as it was; the rows of all files.
    `head` says whose it is where there is none yet."""
    before = known.manifest
    updated = max(before.updated_at, now) if before else now
    manifest = composed(known, name, before or head, points(before), updated, before.superseded_by if before else None)
    commit(held, known, name, manifest)
    return index(held, known, name, manifest)


def index(held: Files, known: Known, name: Name, head: Manifest, gone: Collection[str] = ()) -> tuple[Indexed, ...]:
    """The rows of a conversation's files, but for those that are gone by now."""
    heads: dict[str, Content | Manifest] = {**known.readable, name.path: head}
    heads = {path: each for path, each in heads.items() if path not in gone}
    signatures, now = held.signatures(heads), current(head)
    return tuple(
        rows.indexed(path, each, signatures.get(path, ""), current=path in now) for path, each in sorted(heads.items())
    )
