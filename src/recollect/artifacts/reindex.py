"""Rebuilds what the database knows of conversations from their canonical files alone.

Files that are what they were when they were last read cost one `stat`. The others are read conversation by
conversation, checked (frontmatter, checksums, names, links) and turned into rows by the same step as at the end of a
session. What only the database knows stays as it is: offsets, jobs, use, baselines, states. A conversation that is
ahead of its files, because it grew or is being processed, is left to the pipeline; a file that is not what it was
written as changes nothing and is listed. What tombstones name goes from the rows first; a set that tells it among other
things, and that no tombstone names, is taken in, and a set without it takes its place before the run ends.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import PurePath

from recollect.artifacts import bodies, changed, rows, sets, tombstones
from recollect.artifacts.document import Content, Document, Manifest
from recollect.artifacts.files import Files
from recollect.artifacts.forget import Forget
from recollect.artifacts.names import FOLDER, Kind, Name, session_token, wikilinks
from recollect.artifacts.names import parse as parse_name
from recollect.artifacts.removal import spoken, telling
from recollect.artifacts.rows import Derived
from recollect.artifacts.tombstones import Graveyard, Tombstone
from recollect.artifacts.upkeep import KIND as ARCHIVE
from recollect.artifacts.users import settle, user_of
from recollect.errors import ArtifactError
from recollect.extract.jobs import KIND as EXTRACT
from recollect.extract.jobs import UNREAD, read_by, watermark
from recollect.ingest.writer import is_named_after
from recollect.note import is_chat, is_note
from recollect.projects.paths import renewed
from recollect.store import artifacts as artifact_rows
from recollect.store import compactions, memories, projects, stage1
from recollect.store import conversations as conversation_rows
from recollect.store import entries as entry_rows
from recollect.store.artifacts import Indexed
from recollect.store.compactions import Compacted
from recollect.store.database import Transaction
from recollect.store.entries import EntryRow
from recollect.store.ground import Ground, Part
from recollect.store.projects import Project
from recollect.store.tombstones import entry_hash
from recollect.store.users import UNKNOWN
from recollect.text import one_line
from recollect.types import SETTLED, Conversation, JobStatus, Owner, timestamp

_BATCH = 200  # conversations in memory, and in a commit, at a time

_HINT = "Put the file back, or run `recollect doctor --fix`: it is made again from what the database holds."
_HINTS = {  # by the kind of the problem, where it is another
    "WrongName": "Give the file its name back, or move it away.",
    "NoManifest": "Run `recollect doctor --fix`: the manifest is written from the files that are there.",
    "Erased": "Run `recollect doctor --fix`: it deletes the file, and what rows hold of what was erased.",
    "Edited": "Put it back as it was, or run `recollect reindex`, if it is to be so.",
    "ChangedRows": "Rows that no file tells stayed as they are: `recollect show` it, and `forget` what is wrong.",
    "TooLarge": "It stays as it is, and is in no archive: copy it by hand.",
    "NotRefreshed": "Run `recollect consolidate --now`.",
}

Progress = Callable[[int, int], None]  # (files, of)


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong with a file."""

    path: str
    kind: str  # of an error, or a word of the same form
    what: str

    @property
    def hint(self) -> str:
        return _HINTS.get(self.kind, _HINT)


@dataclass(slots=True)
class Report:
    """The JSON of `recollect reindex`."""

    files: int = 0  # canonical files that there are
    read: int = 0  # of them, those that were not known as they are
    conversations: int = 0  # rebuilt
    entries: int = 0
    memories: int = 0
    skipped: int = 0  # conversations that are ahead of their files
    changed: int = 0  # conversations, memories and tombstones whose rows somebody had changed
    erased: int = 0  # conversations and messages that tombstones name, and that rows or a set still held
    seconds: float = 0.0
    problems: list[Problem] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Held:
    """The files of one conversation, as they are on disk."""

    signatures: Mapping[Name, str]
    documents: Mapping[Name, Document | ArtifactError]


@dataclass(frozen=True, slots=True)
class Assessed:
    """What the files of a conversation amount to."""

    session_key: str  # empty: they tell nothing
    derived: Derived | None
    compactions: tuple[Compacted, ...]
    snapshot: str
    files: tuple[Indexed, ...]
    problems: tuple[Problem, ...]
    tells: bool = False  # what was erased, beside the rest: rows take it in, and a set without it follows from them


# Decisions


def assess(held: Held, agent_id: str, erased: Graveyard) -> Assessed:
    """Pure: what is true of a conversation by its files, and what is wrong with them."""
    named = sorted(held.documents)
    telling_it = _telling(held, agent_id, erased)
    problems = [found for name in named if (found := _wrong(name, held.documents[name], agent_id, erased, telling_it))]
    bad = {problem.path for problem in problems}
    sound = {name: doc for name, doc in held.documents.items() if isinstance(doc, Document)}
    good = {name: doc for name, doc in sound.items() if name.path not in bad}
    usable = good | {
        name: sound[name] for name in telling_it if name in sound and _is_usable(name, sound[name], erased)
    }
    if any(doc.head.agent_id != agent_id for doc in good.values()):
        return Assessed("", None, (), "", (), tuple(problems))
    manifest = next((doc.head for doc in good.values() if isinstance(doc.head, Manifest)), None)
    if manifest is not None:
        problems += _links(manifest, held)
        chosen = [manifest.transcript_path, manifest.summary_path]
    else:
        if good:
            problems.append(Problem(min(good).path, "NoManifest", "its conversation has no manifest"))
        to = sets.newest({name: doc.head for name, doc in usable.items() if isinstance(doc.head, Content)})
        chosen = [each.path if each else None for each in (to.transcript, to.summary)]
    transcript, summary = (usable.get(name) if path and (name := parse_name(path)) else None for path in chosen)
    derived, snapshot = None, ""
    superseded = manifest is not None and manifest.superseded_by
    if transcript is not None and not superseded and not (summary is None and chosen[1]):
        try:
            derived = _unsettled(rows.derived(transcript, summary), transcript)
            snapshot = transcript.head.snapshot
        except bodies.BadBody as error:
            problems.append(Problem(chosen[0] or "", "BadBody", error.message))
    kept = list(_compacted(((name, doc) for name, doc in good.items() if name.kind is Kind.COMPACTION), problems))
    current = sets.current(manifest) if manifest else {path for path in chosen if path}
    files = [
        rows.indexed(
            name.path,
            doc.head,
            "" if problems else held.signatures[name],  # what is broken is looked at every time
            current=name.path in current,
        )
        for name, doc in good.items()
    ]
    key = next((doc.head.session_key for doc in usable.values()), "")
    tells = derived is not None and parse_name(chosen[0] or "") in telling_it
    return Assessed(key, derived, tuple(kept), snapshot, tuple(files), tuple(problems), tells)


def _unsettled(derived: Derived, transcript: Document) -> Derived:
    """A note about a memory, of a time when files did not name a user: whose it is follows from who states the memory,
    and is settled when all are read."""
    is_about = is_note(derived.conversation) and any(each.revision > 1 for each in derived.stated)
    is_named = isinstance(transcript.head, Content) and (transcript.head.user or transcript.head.is_escaped)
    return _of_user(derived, UNKNOWN) if is_about and not is_named else derived


def _of_user(derived: Derived, user: str) -> Derived:
    """A conversation of this user, with memories of which it is not known yet whose they are."""
    row = replace(derived.stage1, user=user) if derived.stage1 else None
    stated = tuple(replace(each, user=UNKNOWN) for each in derived.stated)
    return replace(derived, conversation=replace(derived.conversation, user=user), stage1=row, stated=stated)


def _compacted(kept: Iterable[tuple[Name, Document]], problems: list[Problem]) -> Iterator[Compacted]:
    for name, each in kept:
        try:
            yield rows.compacted(each)
        except bodies.BadBody as error:
            problems.append(Problem(name.path, "BadBody", error.message))


def _telling(held: Held, agent_id: str, erased: Graveyard) -> set[Name]:
    """Of ours, sets that tell a message which was erased, under whatever name."""
    if not erased.hashes:
        return set()
    mine = {name: each for name, each in held.documents.items() if isinstance(each, Document)}
    mine = {name: each for name, each in mine.items() if each.head.agent_id == agent_id}
    return telling(mine, lambda source, uuid: entry_hash(source, uuid) in erased.hashes)


def beside(held: Held, agent_id: str, erased: Graveyard) -> set[tuple[str, str]]:
    """(source, id) of the messages that sets tell beside erased ones; of sets that no tombstone names."""
    told = [held.documents[name] for name in _telling(held, agent_id, erased) if not erased.covers(name)]
    return {each for found in told for each in spoken(found) if entry_hash(*each) not in erased.hashes}


def _is_usable(name: Name, found: Document, erased: Graveyard) -> bool:
    """No tombstone names it: what else it tells stays."""
    return not erased.covers(name) and found.name == name


def _wrong(
    name: Name, found: Document | ArtifactError, agent_id: str, erased: Graveyard, telling_it: Container[Name]
) -> Problem | None:
    is_erased = name in telling_it or erased.covers(name)
    if is_erased or (isinstance(found, Document) and _is_erased(found.head, agent_id, erased)):
        return Problem(name.path, "Erased", "it was erased, and is here again")
    if isinstance(found, ArtifactError):
        return Problem(name.path, found.kind, found.message)
    if found.name != name:
        return Problem(name.path, "WrongName", f"by its frontmatter it is {found.name.file}")
    return None


def _is_erased(head: Content | Manifest, agent_id: str, erased: Graveyard) -> bool:
    """A compaction of ours goes with what it may tell, whichever conversation it stands with."""
    node = head.source_node_id if isinstance(head, Content) and head.agent_id == agent_id else None
    return node is not None and entry_hash(head.harness, node) in erased.hashes


def _links(manifest: Manifest, held: Held) -> Iterator[Problem]:
    """Links of the manifest that lead nowhere, and contents that are not what it says they are."""
    there = {name.path: doc for name, doc in held.documents.items()}
    documents = ((path, doc) for path, doc in there.items() if isinstance(doc, Document))
    own, document = next((path, doc) for path, doc in documents if doc.head is manifest)
    sums = {manifest.transcript_path: manifest.transcript_sha256, manifest.summary_path: manifest.summary_sha256}
    linked = {path for path, _ in wikilinks(document.body)} | {manifest.compaction_path}
    for path in sorted({each for each in {*sums, *linked} if each}):
        target = there.get(path)
        if target is None:
            yield Problem(own, "BrokenLink", f"{one_line(path)} is not there")
        elif isinstance(target, Document) and sums.get(path, target.head.content_sha256) != target.head.content_sha256:
            yield Problem(path, "ChecksumMismatch", f"{own} knows it with another content")
    for path, doc in there.items():
        if isinstance(doc, Document) and isinstance(doc.head, Content) and doc.head.manifest_path != own:
            yield Problem(path, "BrokenLink", f"its manifest {one_line(doc.head.manifest_path)} is not there")


def entry_rows_of(owner: Owner, derived: Derived) -> list[EntryRow]:
    """Rows of a transcript's messages. They stand before everything that is read from the agent's own file."""
    talk = derived.conversation
    owned = int(is_named_after(PurePath(talk.source_file).stem, talk.session_id))
    return [
        EntryRow(
            owner.tenant,
            owner.agent_id,
            talk.source,
            message.uuid,
            talk.session_id,
            talk.source_file,
            0,
            number,
            message.role,
            message.text,
            message.tools,
            message.timestamp,
            renewed(_or(message.cwd, talk.project)),
            renewed(_or(message.project_id, talk.project_id)),
            _or(message.branch, talk.branch),
            owned,
            talk.user,
            message.authors,
            entry_rows.told(message.events),
        )
        for number, message in enumerate(derived.messages)
    ]


def _or(own: str | None, usual: str) -> str:
    return usual if own is None else own


# The runner


class Reindex(Part):
    """`stored` is called after every commit; a test crashes there."""

    def __init__(self, ground: Ground, *, stored: Callable[[], None] = lambda: None) -> None:
        super().__init__(ground)
        self._files = Files(self._settings.root)
        self._jobs = ground.jobs()
        self._stored = stored

    def run(self, *, full: bool = False, progress: Progress = lambda files, of: None) -> Report:
        """`full` reads every file, also those that seem unchanged."""
        started = time.monotonic()
        report = Report()
        erased = self._bury(report)
        eraser = Forget(self._ground)
        if erased:
            report.erased = eraser.complete(erased)
        there = dict(self._files.scan())
        self._mend(there, erased, report)
        with self._database.read() as tx:
            known = artifact_rows.signatures(tx, self._owner)
        report.files = len(there)
        there = ours(self._files, there, known, self._owner.agent_id)
        tokens = _changed(there, {} if full else known)
        gone = {name.token for path in known if (name := parse_name(path)) and name not in there}
        held: dict[str, list[Name]] = {token: [] for token in sorted(tokens | gone)}
        for name in there:
            if name.token in held:
                held[name.token].append(name)
        of = sum(map(len, held.values()))
        tells = False
        left = iter(held.items())
        while batch := list(islice(left, _BATCH)):
            found = [self._load({name: there[name] for name in names}, erased) for _, names in batch]
            tells |= self._store([assess(each, self._owner.agent_id, erased) for each in found], known, report)
            self._stored()
            report.read += sum(len(names) for _, names in batch)
            progress(report.read, of)
        settle(self._ground, full=True)
        if tells:
            report.erased += eraser.complete(erased)
        report.problems += missing(known, there, erased)
        report.seconds = round(time.monotonic() - started, 3)
        return report

    def _mend(self, there: Mapping[Name, str], erased: Graveyard, report: Report) -> None:
        """Rows that somebody changed are made again from their files, before anything is taken for what it was."""
        noticed = changed.find(self._ground)
        tokens = {session_token(self._owner.agent_id, key, ""): key for key in noticed.conversations}
        held: dict[str, dict[Name, str]] = {key: {} for key in noticed.conversations}
        for name, signature in there.items():
            if name.token in tokens:
                held[tokens[name.token]][name] = signature
        for key, before in noticed.conversations.items():
            found = self._with_user(assess(loaded(self._files, held[key]), self._owner.agent_id, erased))
            is_whole = False
            if found.derived is not None and not found.tells:
                derived = replace(found.derived, conversation=_conversation(found.derived))
                told = entry_rows_of(self._owner, derived)
                is_whole = changed.mend(self._ground, before, derived, told, found.compactions, found.files)
            if not is_whole and not found.problems:  # which are told where they are read
                path = min((name.path for name in held[key]), default=key)
                report.problems.append(Problem(path, "ChangedRows", f"rows of {key} are not what its files say"))
        with self._database.write() as tx:
            memories.derive(tx, self._owner, noticed.memories)
        changed.take(self._ground)
        report.changed += len(noticed.conversations) + len(noticed.memories)

    def _load(self, signatures: Mapping[Name, str], erased: Graveyard) -> Held:
        """The files of a conversation; a compaction that was cut short is finished first."""
        held = loaded(self._files, signatures)
        faults = (_wrong(name, found, self._owner.agent_id, erased, ()) for name, found in held.documents.items())
        if not any(name.kind is Kind.COMPACTION for name in held.documents) or any(faults):
            return held
        token = next(iter(held.documents)).token
        if not sets.retried(lambda: self._link(token)):
            return held
        names = {name.path: name for name in self._files.names(token)}
        return loaded(self._files, {names[path]: each for path, each in self._files.signatures(names).items()})

    def _link(self, token: str) -> bool:
        """Has the manifest been written, for compactions that it did not list? A session's end without a manifest is
        for others to finish."""
        known = sets.look(self._files, token)
        loose = sets.unlisted(known)
        if not loose or (known.manifest is None and known.past):
            return False
        head = known.readable[loose[-1].path]
        name = known.name(head.started_at or head.captured_at)
        sets.link(self._files, known, name, head, head.captured_at)
        return True

    def _bury(self, report: Report) -> Graveyard:
        """What tombstones say is known to the database before anything else is read."""
        every = tombstones.read_all(self._files)
        report.problems += unreadable(every)
        tombstones.bury(self._ground, self._files, every)
        for path, stone in tombstones.untold(self._ground, every).items():
            tombstones.tell(self._ground, path, stone)
            report.changed += 1
        return tombstones.erased(every.values(), self._database, self._owner, self._files.names())

    def _store(self, found: Sequence[Assessed], known: Mapping[str, str], report: Report) -> bool:
        """Is something among it that was erased, and goes again with the set that tells it?"""
        found = [self._with_user(each) for each in found]
        keys = [each.session_key for each in found if each.session_key]
        with self._database.write() as tx:
            standing = conversation_rows.states(tx, self._owner, keys)
            indexed = artifact_rows.of_keys(tx, self._owner, keys, lock=True)
            fresh = [each for each in found if not _is_overtaken(indexed.get(each.session_key, ()), known)]
            settled = [each for each in fresh if {*SETTLED}.issuperset(standing.get(each.session_key, ()))]
            files = [row for each in fresh for row in each.files]
            told = [(each.derived, each.snapshot) for each in settled if each.derived]
            self._rebuild(tx, told, standing.keys(), report)
            compactions.save(tx, self._owner, [one for each in fresh for one in each.compactions])
            artifact_rows.replace_sessions(tx, self._owner, sorted({row.session_key for row in files}), files)
        report.skipped += len(found) - len(settled)
        tells = [each for each in settled if each.tells]
        report.problems += [problem for each in found if each not in tells for problem in each.problems]
        return bool(tells)

    def _with_user(self, each: Assessed) -> Assessed:
        """A chat of a time when files did not name its user: whose its memories are is settled when all are read."""
        talk = each.derived.conversation if each.derived else None
        if each.derived is None or talk is None or talk.user or not is_chat(talk):
            return each
        user = user_of(self._ground, talk.session_id, talk.source_file)
        return replace(each, derived=_of_user(each.derived, user))

    def _rebuild(
        self,
        tx: Transaction,
        told: Sequence[tuple[Derived, str]],  # with its snapshot
        standing: Container[str],
        report: Report,
    ) -> None:
        """Jobs before the rest, as everywhere: no two processes wait for each other."""
        owner, now = self._owner, timestamp(self._clock())
        # what was done is not done, or paid for, again
        done: dict[str, list[tuple[str, str, JobStatus]]] = {ARCHIVE: [], EXTRACT: []}
        for derived, snapshot in told:
            talk, kind, status = derived.conversation, EXTRACT, JobStatus.SUCCEEDED
            if _is_unread(derived):
                kind = ARCHIVE
            elif derived.stage1 is None:
                status = JobStatus.SUCCEEDED_NO_OUTPUT
            done[kind].append((talk.session_key, watermark(talk.last_message_at, snapshot), status))
        for kind, jobs in done.items():
            self._jobs.settle(tx, kind, jobs)
        added = [row for derived, _ in told for row in entry_rows_of(owner, derived)]
        entry_rows.restore(tx, added)
        talks = [_conversation(each) for each, _ in told]
        conversation_rows.insert(tx, owner, [talk for talk in talks if talk.session_key not in standing], now)
        places = {row.cwd: Project(row.cwd, row.project_id, "artifact") for row in added if row.cwd}
        projects.save(tx, owner, [places[cwd] for cwd in sorted(places)], now)
        stage1.delete(tx, owner, [each.conversation.session_key for each, _ in told if each.stage1 is None])
        stage1.save(tx, owner, [each.stage1 for each, _ in told if each.stage1])
        memories.replace_sessions(tx, owner, {each.conversation.session_key: each.stated for each, _ in told})
        report.conversations += len(told)
        report.entries += len(added)
        report.memories += sum(len(each.stated) for each, _ in told)


def _is_unread(derived: Derived) -> bool:
    """No strategy is named, neither by a summary nor as one that found nothing: it has a transcript, and no more."""
    return derived.stage1 is None and not read_by(derived.conversation)


def _conversation(derived: Derived) -> Conversation:
    talk = derived.conversation
    return replace(talk, status_reason=UNREAD) if _is_unread(derived) else talk


def _is_overtaken(now: Iterable[Indexed], known: Mapping[str, str]) -> bool:
    """Did the pipeline write it after we looked? Then it knows better."""
    return any(known.get(row.source_path) != row.signature for row in now)


def ours(files: Files, there: Mapping[Name, str], known: Container[str], agent_id: str) -> dict[Name, str]:
    """Without the files of other agents: all share a folder."""
    others = files.others((name.path for name in there if name.path not in known), agent_id)
    return {name: signature for name, signature in there.items() if name.path not in others}


def loaded(files: Files, signatures: Mapping[Name, str]) -> Held:
    """These files of a conversation; one that is gone by now is left out."""
    return Held(signatures, sets.read(files, signatures))


def unreadable(stones: Mapping[str, Tombstone | None]) -> list[Problem]:
    return [Problem(path, "BadFrontmatter", "no tombstone") for path, stone in stones.items() if stone is None]


def _changed(there: Mapping[Name, str], known: Mapping[str, str]) -> set[str]:
    prefix = f"{FOLDER}/"
    return {name.token for name, signature in there.items() if known.get(prefix + name.file) != signature}


def missing(known: Iterable[str], there: Mapping[Name, str], erased: Graveyard) -> Iterator[Problem]:
    for path in sorted(known):
        name = parse_name(path)
        if name is not None and name not in there:
            if erased.covers(name):
                yield Problem(path, "Erased", "it was erased, and the database still knows it")
            else:
                yield Problem(path, "Missing", "it was there, and is gone")
