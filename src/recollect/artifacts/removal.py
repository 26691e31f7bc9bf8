"""What goes when something is forgotten: the messages, the conversations they are of, and every file that tells them.
Pure; `planner` reads what is decided upon.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from hashlib import sha256

from recollect import note as notes
from recollect.artifacts import bodies, rows
from recollect.artifacts.document import Document, Manifest
from recollect.artifacts.mentions import Mention
from recollect.artifacts.names import Kind, Name, session_token
from recollect.artifacts.names import parse as parse_name
from recollect.artifacts.sanitize import line
from recollect.artifacts.tombstones import Tombstone
from recollect.errors import ArtifactError
from recollect.extract.offline.strategy import told
from recollect.extract.values import Extraction, Transcript
from recollect.ingest.erasure import COMPACTION
from recollect.store.erasing import Said
from recollect.store.tombstones import entry_hash, project_hash, text_hash
from recollect.text import COMMON, content_words, sentences
from recollect.types import Conversation, Message, Owner, Remembered, Timestamp

_SAME = 0.6  # of a statement's words in one sentence: it says the same
_FEW = 4  # messages that use a name
_NAME = re.compile(r"\b\w*(?:\w[-_.@/:]\w|\d)[\w\-.@/:]*\w|(?<=[^.!?\s] )[^\W\d_a-z]\w+|\b\w+[^\W\d_a-z]\w*\b")
_PARTLY = "Some of what was said in this conversation was removed."

Read = Document | ArtifactError | None  # None: it is there, and was not read


@dataclass(frozen=True, slots=True)
class Target:
    """What is to be erased: exactly one of them, but that a project may narrow a user."""

    session: str = ""
    conversation: str = ""  # session key
    memory: str = ""  # id
    project: str = ""  # path or project id
    user: str = ""  # of chats: everything that is theirs
    text: str = ""  # everything that says it
    also: bool = False  # what is only told otherwise goes, too: quotes, and what is near the text


@dataclass(frozen=True, slots=True)
class Plan:
    """What goes."""

    whole: tuple[str, ...]  # session keys of which nothing stays
    partly: Mapping[str, frozenset[str]]  # session key → ids of the entries that go
    said: tuple[Said, ...]  # every entry and compaction that goes
    talks: Mapping[str, Sequence[Conversation]]
    kept: Mapping[str, str]  # session key of a conversation that loses a part → its key without that part
    beside: tuple[tuple[str, Name], ...] = ()  # files of others that tell it, with the keys of those
    vanished: frozenset[str] = frozenset()  # of those, the keys of conversations that are others' by now
    logs: frozenset[str] = frozenset()  # log files of a user who goes: what a crash tore in them goes, too
    memories: tuple[Remembered, ...] = ()  # that nothing states afterwards, as they are now
    also: tuple[Mention, ...] = ()  # what stays although it quotes, or is near, what goes

    @property
    def keys(self) -> list[str]:
        return sorted({*self.whole, *self.partly})

    @property
    def digest(self) -> str:
        """Tells this plan from one by which anything else goes."""
        going = [
            *sorted(self.whole),
            *sorted(f"{key} {uuid}" for key, gone in self.partly.items() for uuid in gone),
            *sorted(f"{each.source} {each.session_id} {each.uuid}" for each in self.said),
            *sorted(f"{each.id} r{each.revision}" for each in self.memories),
            *sorted(f"{key} {name.path}" for key, name in self.beside),
            *sorted(self.logs),
        ]
        return sha256("\n".join(going).encode("utf-8", "surrogatepass")).hexdigest()[:16]

    @property
    def lost(self) -> list[str]:
        """Session keys that there are no more."""
        return [*self.whole, *(key for key, left in self.kept.items() if left != key)]


# Decisions


def repeats(text: str, statement: str) -> bool:
    """Does a sentence of the text say what the statement says? Then it goes with it."""
    wanted = set(content_words(statement))
    if not wanted:
        return False
    return any(len(wanted & set(content_words(each))) >= _SAME * len(wanted) for each in sentences(text))


def names_in(text: str) -> set[str]:
    """Words of a statement that name something: with a digit or a sign in them, or with a capital inside it."""
    return {word.casefold() for word in _NAME.findall(text) if len(word) > 3 and word.casefold() not in COMMON}


def said_again(
    messages: Sequence[Message], sources: Set[str], texts: Sequence[str], withdrawn: Sequence[Said] = ()
) -> set[str]:
    """Ids of the messages that go with a memory: those it came from, those that say the same, and the few others that
    use a name of it. A name that is used all over is not what the memory is about. What was `withdrawn` goes alike, and
    does not count."""
    every: list[Message | Said] = [*messages, *withdrawn]
    told = {each.uuid: each.told for each in every}
    gone = {uuid for uuid, said in told.items() if uuid in sources or any(repeats(said, text) for text in texts)}
    standing = {each.uuid for each in messages}
    for name in sorted({name for text in texts for name in names_in(text)}):
        using = {uuid for uuid, said in told.items() if name in said.casefold()} - gone
        gone |= using if len(using & standing) <= _FEW else set()
    return gone


def remaining(stated: Iterable[Remembered], gone: Set[str]) -> list[Remembered]:
    """What a conversation still states: memories none of whose sources in it is erased."""
    return [each for each in stated if not any(uuid in gone for _, uuid in each.sources)]


def retold(transcript: Transcript, kept: Sequence[Remembered]) -> Extraction:
    """Prose about what is left, without a model."""
    if not transcript.messages:
        return Extraction()
    found = told(transcript.messages, "")
    if not kept and found.is_empty:
        return Extraction()
    return Extraction(
        raw_memory=found.raw_memory,
        rollout_summary=found.rollout_summary or _PARTLY,
        rollout_slug=found.rollout_slug,
    )


def stone(owner: Owner, plan: Plan, paths: Iterable[str], reason: str, now: Timestamp, project: str = "") -> Tombstone:
    """What is known of the plan for good; of a `project` that goes, its name as a hash."""
    tokens = [session_token(owner.agent_id, key, "") for key in plan.keys]
    tokens += [session_token(owner.agent_id, "", each.session_id) for each in plan.said[:1]]  # of no conversation
    hashes = {entry_hash(each.source, each.uuid) for each in plan.said}
    texts = (each for each in plan.said if each.source != notes.SOURCE)  # whose ids are for good
    hashes |= {text_hash(each.source, each.session_id, each.role, each.text) for each in texts}
    hashes |= {project_hash(project)} if project else set()
    return Tombstone(
        kind=str(Kind.TOMBSTONE),
        agent_id=owner.agent_id,
        session_token=tokens[0],
        removed_at=now,
        reason=line(reason),
        removed_paths=tuple(sorted(paths)),
        whole_tokens=tuple(sorted(session_token(owner.agent_id, key, "") for key in plan.lost)),
        hashes=tuple(sorted(hashes)),
    )


def shortened(talk: Conversation, left: Sequence[Message]) -> Conversation:
    """The conversation of the messages that are left; there is at least one."""
    first, last = Timestamp(left[0].timestamp), Timestamp(left[-1].timestamp)
    key = f"{talk.session_id}@{first}"
    return replace(talk, session_key=key, first_message_at=first, last_message_at=last, entry_count=len(left))


def telling(documents: Mapping[Name, Read], gone: Callable[[str, str], bool]) -> set[Name]:
    """Of the files of one conversation, those that tell a message which is gone by its source and id: transcripts, and
    summaries, by their names, that go with one, or that stand alone and are no newer."""
    told = {name: found for name, found in documents.items() if name.kind is Kind.TRANSCRIPT}
    hit = {name for name, found in told.items() if any(gone(*each) for each in spoken(found))}
    newest = max(hit, default=None)
    if newest is None:
        return set()
    clean = {name.captured_at for name in told.keys() - hit}
    summaries = {name for name in documents if name.kind is Kind.SUMMARY and name.captured_at <= newest.captured_at}
    return hit | {name for name in summaries if name.captured_at not in clean}


def spoken(found: Read) -> list[tuple[str, str]]:
    """(source, id) of the messages of a transcript; nothing of one that cannot be read."""
    if not isinstance(found, Document):
        return []
    try:
        return [(found.head.harness, each.uuid) for each in rows.messages_of(found)]
    except bodies.BadBody:
        return []


def swallowed_by(manifests: Mapping[str, Manifest | None], going: Set[str]) -> set[str]:
    """Keys of conversations whose messages are, by now, those of some that go."""
    found: set[str] = set()
    while more := {
        key
        for key, head in manifests.items()
        if key not in found and head and head.superseded_by and head.superseded_by in going | found
    }:
        found |= more
    return found


def listed(head: Manifest, token: str) -> set[str]:
    """Files of its conversation that a manifest names, there or not."""
    return {path for path in head.paths if (name := parse_name(path)) and name.token == token and name.path == path}


def goes(each: Said, gone: Set[str]) -> bool:
    """A summary that the agent made of its history may say it in other words: it goes, too."""
    return each.uuid in gone or each.role == COMPACTION
