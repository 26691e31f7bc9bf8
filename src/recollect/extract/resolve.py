"""What is new among the statements of a conversation, beside the memories of its scope. Pure.

A statement is the same as a current memory (one more source of it), a newer revision of one, or new. It is a revision
only where it clearly says something else about the same thing: another number, day or month, the contrary, that it has
ended, or a correction in so many words. When in doubt both stand: a wrong revision would hide what still holds. So a
number that names a thing ("shard 2 lives on …") is no value, unless so much of it is required ("node 20 is required");
nor is the day on which something happened.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from recollect.near import NEGATIONS, Near, weigh
from recollect.note import hand
from recollect.occasions import occasions
from recollect.store.memories import current
from recollect.text import COMMON, content_words, normalised, overlap, stem, words
from recollect.types import MAY_BIND, STRICT, Hand, MemoryKind, Remembered, Scope, Severity, Statement, Timestamp

_SAME = 0.8
_RELATED = 0.5
_WEEKDAY = "(?:mon|tues|wednes|thurs|fri|satur|sun)day"
_MONTH = "(?:january|february|march|april|may|june|july|august|september|october|november|december)"
_VALUE = re.compile(rf"(?<!\w)\d[\d.,:/x-]*|\b{_WEEKDAY}s?\b|\b{_MONTH}\b", re.IGNORECASE)
_COUNTING = "|".join(  # a number behind these is a value
    COMMON
    | set(
        "max maximum min minimum limit timeout exactly least first last next top another version release schema".split()
    )
)
_SO_MANY = (
    r"\s+(?:is|are|must be)\s+(?:required|needed|supported|live|enough|current|installed|our|the (?:minimum|maximum))"
)
_SAYS = (  # what follows the name of a thing
    "is|isn't|are|aren't|was|wasn't|were|weren't|has|hasn't|have|had|must|(?-i:may)|can|can't|will|won't|should|shouldn't|needs|"
    "runs|belongs|does|doesn't|uses|takes|serves|holds|stays|goes|gets|lives|lies|sits|stands|pays|ends|starts|begins|"
    "requires|affects|plays|owns|contains|covers|means|fails|works|handles|stores|comes|sends|listens|points|costs|"
    "returns|supports|includes|depends|waits|makes|opens|closes|leaves"
)
_CODE = r"(?:[a-z][\w-]*-\d[\w-]*|\d+(?:\.\d+){3})(?![\w.])"  # web-1, 10.0.0.5
_NUMBERED = re.compile(  # a name: of a ticket, "room 2 has …" or "step 2: …", "web-1 …" at the beginning, "number 2"
    r"\W*(?:(?:\w+\s+){0,2}([A-Z][A-Z0-9]+-\d+|#\d+)\b"
    rf"|(?i:(?:\w+\s+){{0,4}}?(?!(?:{_COUNTING})\b)([a-z]\w+\s+\d[\w-]*|{_CODE})(?!{_SO_MANY})"
    rf"(?:\s+(?:{_SAYS})\b|'s\b|[:)]\s))"
    rf"|(?i:(?:(?:the|my|our)\s+)?({_CODE})(?!{_SO_MANY}))"
    r"|(?i:.*?\b((?:number|id)\s+#?\d+)\b))"
)
_DATE = rf"\d{{4}}-\d\d-\d\d|\d\d?\.? {_MONTH}(?: \d{{4}})?|{_MONTH} \d+|\d\d?[./]\d\d?[./](?:\d{{4}})?"
_ON = rf".*?\b(?:on|in|of)\s+({_DATE}|{_WEEKDAY}|{_MONTH})\b"
_PAST = r"(?!.*\b(?:is|are|be|will)\b)(?=.*(?:\b(?:was|were|had|did)\b|\b(?-i:[a-z]+[^\We]ed)\b))"
_EVENT = re.compile(  # the day tells which: "on 3 May we …", "the market on Friday is …", "the pump failed on Monday"
    rf"(?!.*\b(?:actually|correction|instead)\b)(?:\W*(?:on\s+)?({_DATE})\b|{_ON}\s+(?:{_SAYS})\b|{_PAST}{_ON})",
    re.IGNORECASE,
)
_ADDS = re.compile(r"(?<=\w )also\b|\b(?:too|as well)(?=[.,;!]|$)|\bin addition\b|\badditionally\b", re.IGNORECASE)
_ENDS = re.compile(r"\b(?:no longer|any ?more|any longer|stopped|quit)\b", re.IGNORECASE)
_CLAUSES = re.compile(r"[,;:.!?]\s+|\s+(?:[–—-]+|but|because)\s+", re.IGNORECASE)
_LEAVES = re.compile(
    r"\b(?:(?:switched|moved|changed|migrated)\b[^,;]*?\sfrom\s+(.+?)\s+to|replaced\s+(.+?)\s+(?:with|by))\s",
    re.IGNORECASE,
)
_CORRECTS = re.compile(
    r"\b(?:instead|rather than|switched|moved (?:to|from)|changed|replaced?|actually|from now on|(?:i|we) now|"
    r"now(?=[.!]?$)|used to|correction|not \w+ but|as of)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Place:
    """Where and when a conversation's statements were said."""

    session_key: str
    project_id: str
    said_at: Callable[[str], Timestamp]  # entry uuid → when
    now: Timestamp
    user: str = ""  # of a chat, whose words they are


def memory_id(scope: Scope, scope_id: str, text: str, user: str = "") -> str:
    """The id of a new memory. The same words of two users are two memories."""
    whose = ("chat", user) if user else ()
    told = "\x1f".join((*whose, scope, scope_id, normalised(text)))
    digest = hashlib.sha256(told.encode("utf-8", "surrogatepass")).digest()
    return "m-" + base64.b32encode(digest).decode().lower()[:16]


def resolve(statements: Iterable[Statement], existing: Sequence[Remembered], place: Place) -> list[Remembered]:
    """The revisions that the conversation states, each in the conversation's own words, with its own dates, sources and
    occasions."""
    mine = _Pool(each for each in existing if any(key == place.session_key for key, _ in each.sources))
    others = _Pool(each for each in existing if any(key != place.session_key for key, _ in each.sources))
    stated: dict[tuple[str, int], Remembered] = {}
    for statement in statements:
        fresh = _fresh(statement, place)
        found = _told(fresh, statement, mine, others) if statement.target else _match(fresh, mine, others, statement)
        for known in mine.revisions(found.id):  # what this conversation stated before: when it was first seen stays
            if known.revision == found.revision:
                found = replace(found, created_at=known.created_at, pinned=found.pinned or known.pinned)
        before = stated.get((found.id, found.revision))
        sources = tuple(dict.fromkeys([*(before.sources if before else ()), *found.sources]))
        when = occasions([*(before.occasions if before else ()), *found.occasions])
        stated[found.id, found.revision] = replace(before or found, sources=sources, occasions=when)
        others.add(found)
    return list(stated.values())


def retire(before: Sequence[Remembered], stated: Sequence[Remembered], valued: Container[str]) -> list[Remembered]:
    """What a conversation stated before and does not state now, but for what a person or an agent found of value: that
    it goes on to state."""
    now = {each.id for each in stated}
    return [each for each in before if each.id not in now and each.id not in valued]


class _Pool:
    """Revisions that can be asked for what is near a text, without comparing everything with everything."""

    def __init__(self, revisions: Iterable[Remembered]) -> None:
        self._of: dict[str, list[Remembered]] = {}  # id → its revisions
        known = list(revisions)
        self._near: Near[str] = Near(weigh(_about(each.text) for each in known), _RELATED)
        self._spelt: dict[str, list[str]] = {}  # normalised text → ids
        for each in known:
            self.add(each)

    def add(self, revision: Remembered) -> None:
        self._of.setdefault(revision.id, []).append(revision)
        self._near.add(_about(revision.text), revision.id)
        self._spelt.setdefault(normalised(revision.text), []).append(revision.id)

    def revisions(self, memory_id: str) -> list[Remembered]:
        return self._of.get(memory_id, [])

    def near(self, fresh: Remembered) -> list[Remembered]:
        """Every revision of memories of the same scope that may be the same or related, by id."""
        ids = {fresh.id, *self._spelt.get(normalised(fresh.text), ())}
        ids |= {memory_id for _, memory_id in self._near.within(_about(fresh.text))}
        found = [each for memory_id in sorted(ids) for each in self.revisions(memory_id)]
        return [each for each in found if (each.scope, each.scope_id) == (fresh.scope, fresh.scope_id)]


@lru_cache(maxsize=32768)  # the same memories are compared again with every conversation
def _about(text: str) -> frozenset[str]:
    """What a statement is about: its words without values, and without what is for or against it."""
    return frozenset(map(_root, content_words(_VALUE.sub("", text)))) - _HOW


def _root(word: str) -> str:
    """Of a verb's stems: smoke and smok(ing), stop and stopp(ed)."""
    return _DOUBLED.sub(r"\1", word).rstrip("e")


_DOUBLED = re.compile(r"([^\W\d])\1$")
_PLAIN = "always never avoid stop quit longer anymore actually instead taking making giving"  # say nothing of it
_HOW = frozenset(_root(stem(each)) for each in _PLAIN.split())


def _fresh(statement: Statement, place: Place) -> Remembered:
    """The statement as if nothing were known."""
    scope_id = statement.scope.id(place.project_id, place.session_key)
    return Remembered(
        id=memory_id(statement.scope, scope_id, statement.text, place.user),
        revision=1,
        kind=statement.kind,
        text=statement.text,
        severity=statement.severity,
        scope=statement.scope,
        scope_id=scope_id,
        created_at=place.now,
        pinned=statement.pinned,
        occasions=statement.occasions,
        valid_from=max((place.said_at(uuid) for uuid in statement.entries), default=place.now),
        sources=tuple((place.session_key, uuid) for uuid in statement.entries) or ((place.session_key, ""),),
        user=place.user,
        trust=statement.trust,
    )


def _told(fresh: Remembered, statement: Statement, mine: _Pool, others: _Pool) -> Remembered:
    """A person named the memory and the revision; the next one if somebody else took that in the meantime. What holds
    in one conversation holds there still: the note is another."""
    known = [*others.revisions(statement.target), *mine.revisions(statement.target)]
    if fresh.scope is Scope.CONVERSATION:
        held = next((each.scope_id for each in current(known) if each.scope is fresh.scope), fresh.scope_id)
        fresh = replace(fresh, scope_id=held)
    taken = {each.revision for each in others.revisions(statement.target)}
    revision = statement.revision if statement.revision not in taken else max(taken) + 1
    return replace(fresh, id=statement.target, revision=revision)


def _match(fresh: Remembered, mine: _Pool, others: _Pool, statement: Statement) -> Remembered:
    near = others.near(fresh)
    held = current(near)
    same = _sameness(statement)
    if statement.near and (named := _named(fresh, statement, others)):
        return named
    if found := next((each for each in held if same(fresh, each)), None):
        return _again(fresh, found)
    # stated by this conversation before: identity stays, also where words changed a little
    if kept := next((each for each in mine.near(fresh) if same(fresh, each)), None):
        return _again(fresh, kept)
    # said before it was superseded, and only read now: it does not come back under another name
    past = next((each for each in near if same(fresh, each)), None)
    now = next((each for each in held if past and each.id == past.id), None)
    if past and now and fresh.valid_from < now.valid_from:
        return _again(fresh, past)
    older = now or next((each for each in held if each.id == fresh.id), None)
    if older and not _may_revise(statement, older, others.revisions(older.id)):
        past = past or min(others.revisions(older.id), key=lambda each: (each.valid_from, each.revision))
        return _again(fresh, past)
    open_to_it = [each for each in held if _may_revise(statement, each, others.revisions(each.id))]
    older = older or replaced(fresh.text, open_to_it, exact=statement.exact)
    if older is None or _is_first(fresh, others.revisions(fresh.id)):
        return fresh
    return _revision(fresh, older, statement, max(each.revision for each in others.revisions(older.id)) + 1)


def _named(fresh: Remembered, statement: Statement, others: _Pool) -> Remembered | None:
    """Whoever read both says which memory it repeats or replaces. Nothing is replaced that was said later, or that only
    a person may change."""
    revisions = others.revisions(statement.near)
    held = next((each for each in current(revisions) if each.scope_id == fresh.scope_id), None)
    if held is None or held.scope is not fresh.scope:
        return None
    if not statement.replaces:
        return _again(fresh, held)
    if fresh.valid_from < held.valid_from or not _may_revise(statement, held, revisions):
        return None
    return _revision(fresh, held, statement, max(each.revision for each in revisions) + 1)


def _again(fresh: Remembered, held: Remembered) -> Remembered:
    """One more source of what is known."""
    return replace(fresh, id=held.id, revision=held.revision)


def _revision(fresh: Remembered, older: Remembered, statement: Statement, revision: int) -> Remembered:
    kind, severity = fresh.kind, fresh.severity
    if not statement.exact:
        kind, severity = inherited(fresh.text, kind, severity, older)
    return replace(
        fresh,
        id=older.id,
        revision=revision,
        kind=kind,
        severity=severity,
        pinned=fresh.pinned or older.pinned,
    )


def _is_first(fresh: Remembered, known: Sequence[Remembered]) -> bool:
    """The statement that the memory has its id from, read only after its revisions were."""
    return bool(known) and all(each.revision > 1 and fresh.valid_from < each.valid_from for each in known)


def _sameness(statement: Statement) -> Callable[[Remembered, Remembered], bool]:
    """What makes the statement one more source of a memory. An agent that repeats what others said adds nothing to it,
    however strict it calls that."""

    def repeats(fresh: Remembered, held: Remembered) -> bool:
        return _is_equal(fresh, held) or (
            hand(held) is not Hand.AGENT and normalised(fresh.text) == normalised(held.text)
        )

    if statement.hand is Hand.AGENT:
        return repeats
    return _is_equal if statement.exact else _is_alike


def _may_revise(statement: Statement, older: Remembered, revisions: Iterable[Remembered]) -> bool:
    """Agents change what only agents noted. What binds or is pinned is changed by nothing whose author is not known."""
    if statement.hand is Hand.AGENT:
        return all(hand(each) is Hand.AGENT for each in revisions)
    is_known = statement.trust in MAY_BIND and statement.may_overrule
    return is_known or not (older.pinned or older.severity in STRICT)


def _is_alike(fresh: Remembered, held: Remembered) -> bool:
    return is_same(fresh.text, held.text)


def _is_equal(fresh: Remembered, held: Remembered) -> bool:
    told = (normalised(fresh.text), fresh.kind, fresh.severity)
    return told == (normalised(held.text), held.kind, held.severity)


def replaced(text: str, held: Iterable[Remembered], *, exact: bool) -> Remembered | None:
    """The memory that a text takes the place of; `exact` is a person's note, which has nearly the same words."""
    return next((each for each in held if is_revision(text, each.text, _SAME if exact else _RELATED)), None)


def inherited(text: str, kind: MemoryKind, severity: Severity, older: Remembered) -> tuple[MemoryKind, Severity]:
    """What a revision is whose words do not tell how strict it is: a rule with another value is that rule still. The
    contrary is not."""
    plain = severity is Severity.NONE and (kind is MemoryKind.FACT or older.severity is not Severity.NONE)
    _, contrary = _differ(text, older.text)
    return (older.kind, older.severity) if plain and not contrary else (kind, severity)


def is_same(one: str, other: str) -> bool:
    """Do two texts state the same?"""
    if normalised(one) == normalised(other):
        return True
    if _are_apart(one, other):
        return False
    return overlap(content_words(one), content_words(other)) >= _SAME and not any(_differ(one, other))


def is_revision(newer: str, older: str, share: float = _RELATED) -> bool:
    """Does the newer text say something else about what the older is about? `share` is what they have in common. Where
    each has a word of its own (staging, production) they are about two things, unless the newer says it corrects."""
    if _about(newer).isdisjoint(_about(older)) or _are_apart(newer, older):  # most are told apart by that alone
        return False
    ends = _ends(newer)
    if any(_about(older) <= _about(each) and _is_contrary(each, older, share) for each in ends):
        return True
    if _ADDS.search(newer):
        return False
    corrects = overlap(_about(newer), _about(older)) >= share and bool(_CORRECTS.search(newer))
    return corrects or _is_left(older, newer) or (not ends and _is_contrary(newer, older, share))


def _ends(text: str) -> list[str]:
    """Where it tells that something has ended: the whole, and the clauses that say so, as another may tell what came
    after it."""
    return [each for each in (text, *_CLAUSES.split(text)) if _ENDS.search(each)] if _ENDS.search(text) else []


def _is_left(older: str, newer: str) -> bool:
    """The newer names it, and what came after it."""
    if not _about(older) <= _about(newer) or not (left := _LEAVES.search(newer)):
        return False
    return content_words(left[1] or left[2]) <= content_words(older)


def _is_contrary(newer: str, older: str, share: float) -> bool:
    """Another value, or the contrary. That it is not so on Friday is not contrary to what is so on Monday."""
    new, old = _about(newer), _about(older)
    if overlap(new, old) < share or (new - old and old - new):
        return False
    value, contrary = _differ(newer, older)
    return value != contrary


def _are_apart(one: str, other: str) -> bool:
    """Two numbered things, or two days' events: what is said of one is not said of the other."""
    return any(a and b and a != b for a, b in zip(_names(one), _names(other), strict=True))


@lru_cache(maxsize=32768)
def _names(text: str) -> tuple[str, str]:
    """The numbered thing, and the day of the event, that a text is about; empty: none."""
    thing, event = _NUMBERED.match(text), _EVENT.match(text)
    return (thing[thing.lastindex or 0].lower() if thing else "", event[event.lastindex or 0].lower() if event else "")


def _differ(one: str, other: str) -> tuple[bool, bool]:
    """In a value, and in being for or against."""
    values = [frozenset(found.lower().rstrip(".,:/-s") for found in _VALUE.findall(text)) for text in (one, other)]
    negated = [bool(NEGATIONS & set(words(text.replace("’", "'")))) for text in (one, other)]
    return bool(values[0] and values[1]) and values[0] != values[1], negated[0] != negated[1]
