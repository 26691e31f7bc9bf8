"""What is new among the statements of a conversation, beside the memories of its scope. Pure.

A statement is the same as a current memory (one more source of it), a newer revision of one, or new. It is a revision
only where it clearly says something else about the same thing: another number, day or month, the contrary, or a
correction in so many words. When in doubt both stand: a wrong revision would hide a memory that still holds.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from recollect.store.memories import current
from recollect.text import content_words, normalised, overlap, words
from recollect.types import Remembered, Scope, Statement, Timestamp

_SAME = 0.8
_RELATED = 0.5
_NOT = frozenset(
    "not no never don't dont doesn't isn't aren't won't can't cannot without neither nor avoid stop".split()
)
_VALUE = re.compile(
    r"\d[\d.,:/x-]*|\b(?:mon|tues|wednes|thurs|fri|satur|sun)days?\b|\b(?:january|february|march|april|may|june|july|"
    r"august|"
    r"september|october|november|december)\b",
    re.IGNORECASE,
)
_CORRECTS = re.compile(
    r"\b(?:no longer|not any ?more|anymore|instead of|rather than|switched|moved (?:to|from)|changed|replaced?|"
    r"actually|from now on|"
    r"used to|correction|not \w+ but|as of)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Place:
    """Where and when a conversation's statements were said."""

    session_key: str
    project_id: str
    said_at: Callable[[str], Timestamp]  # entry uuid → when
    now: Timestamp

    def scope_id(self, scope: Scope) -> str:
        return {Scope.USER: "", Scope.PROJECT: self.project_id, Scope.CONVERSATION: self.session_key}[scope]


def memory_id(scope: Scope, scope_id: str, text: str) -> str:
    digest = hashlib.sha256("\x1f".join((scope, scope_id, normalised(text))).encode("utf-8", "surrogatepass")).digest()
    return "m-" + base64.b32encode(digest).decode().lower()[:16]


def resolve(statements: Iterable[Statement], existing: Sequence[Remembered], place: Place) -> list[Remembered]:
    """The revisions that the conversation states, each with the conversation's own sources only."""
    mine = [each for each in existing if any(key == place.session_key for key, _ in each.sources)]
    pool = [each for each in existing if any(key != place.session_key for key, _ in each.sources)]
    stated: dict[tuple[str, int], Remembered] = {}
    for statement in statements:
        found = _match(statement, mine, pool, place)
        before = stated.get((found.id, found.revision))
        sources = tuple(dict.fromkeys([*(before.sources if before else ()), *found.sources]))
        stated[found.id, found.revision] = replace(before or found, sources=sources)
        pool.append(found)
    return list(stated.values())


def _match(statement: Statement, mine: Sequence[Remembered], pool: Sequence[Remembered], place: Place) -> Remembered:
    scope_id = place.scope_id(statement.scope)
    said = max((place.said_at(uuid) for uuid in statement.entries), default=place.now)
    fresh = Remembered(
        id=memory_id(statement.scope, scope_id, statement.text),
        revision=1,
        kind=statement.kind,
        text=statement.text,
        severity=statement.severity,
        scope=statement.scope,
        scope_id=scope_id,
        created_at=place.now,
        valid_from=said,
        sources=tuple((place.session_key, uuid) for uuid in statement.entries) or ((place.session_key, ""),),
    )
    near = [each for each in pool if (each.scope, each.scope_id) == (fresh.scope, scope_id)]
    if same := _same(fresh, current(near)):
        return replace(same, sources=fresh.sources)
    own = [each for each in mine if (each.scope, each.scope_id) == (fresh.scope, scope_id)]
    if kept := _same(
        fresh, own
    ):  # stated by this conversation before: identity stays, also where words changed a little
        return replace(fresh, id=kept.id, revision=kept.revision, created_at=kept.created_at)
    older = next((each for each in current(near) if each.id == fresh.id or is_revision(fresh.text, each.text)), None)
    if older is None:
        return fresh
    revision = max(each.revision for each in near if each.id == older.id) + 1
    return replace(fresh, id=older.id, revision=revision, created_at=older.created_at)


def _same(fresh: Remembered, among: Iterable[Remembered]) -> Remembered | None:
    return next((each for each in among if is_same(fresh.text, each.text)), None)


def is_same(one: str, other: str) -> bool:
    """Do two texts state the same?"""
    if normalised(one) == normalised(other):
        return True
    return overlap(content_words(one), content_words(other)) >= _SAME and not _contradicts(one, other)


def is_revision(newer: str, older: str) -> bool:
    """Does the newer text say something else about what the older is about?"""
    about = overlap(content_words(_VALUE.sub("", newer)), content_words(_VALUE.sub("", older)))
    return about >= _RELATED and (_contradicts(newer, older) or bool(_CORRECTS.search(newer)))


def _contradicts(one: str, other: str) -> bool:
    values = [frozenset(found.lower() for found in _VALUE.findall(text)) for text in (one, other)]
    negated = [bool(_NOT & set(words(text.replace("’", "'")))) for text in (one, other)]
    return (bool(values[0] and values[1]) and values[0] != values[1]) or negated[0] != negated[1]
