"""Where a text stands, and where what is erased is quoted.

Pure functions compare; `Mentions` looks through every text that the database and the logs hold. Case, white space,
signs that nobody sees and the ways in which Unicode writes the same are no difference.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import msgspec

from recollect.errors import UsageError
from recollect.ingest.sources.base import UNDECODABLE
from recollect.ingest.sources.recollect import Reaction, reaction_id
from recollect.store import erasing
from recollect.store.database import Database
from recollect.store.erasing import Place, Standing
from recollect.text import COMMON, HIDDEN, RUNS, content_words, marks_of, sentences
from recollect.types import Owner

_WORDS = 5  # that carry meaning: a sentence of fewer is said by chance
_NEAR = 0.8  # of a sentence's words in another one: it repeats it
_SHORT = 3  # characters of a name that may be written in another way
_AROUND = 60  # characters beside what was found
_FIXED = frozenset("version kind severity scope by origin status reaction at made_at turn turn_id id".split())
_UNSEEN = re.compile(f"[{HIDDEN}]")
_ACCENTS = re.compile("[\u0300-\u036f]")
_SIGNS = re.compile(r"(?:(?![\u0900-\u0dff])[\W_])+")  # but those that belong to letters of Indic scripts
_LATIN = 0x2E80  # below it, scripts put spaces between words


class Why(StrEnum):
    """What a text has to do with what is erased."""

    SAYS = "says it"
    INSIDE = "has it inside a longer word"
    WRITTEN = "says it in another writing"  # other accents, or signs between the words
    REPEATS = "repeats what is erased"
    SIMILAR = "may say it in other words"
    NAME = "has it in its name"


@dataclass(frozen=True, slots=True)
class Mention:
    """A text that has to do with what is erased."""

    at: Standing
    snippet: str
    why: Why

    @property
    def is_name(self) -> bool:
        """Is it what something is called? That stays; what is called so can be erased."""
        return self.why is Why.NAME

    def told(self) -> dict[str, str]:
        """For JSON."""
        where = {"kind": str(self.at.place), "id": self.at.id, "conversation": self.at.session_key}
        return {**where, "text": self.snippet, "why": str(self.why)}


def folded(text: str) -> str:
    """The text without the differences that do not count."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", _UNSEEN.sub("", text)).replace("\u2019", "'")
    return " ".join(text.casefold().split())


def loosened(text: str) -> str:
    """A folded text without accents, and with a space in the place of every sign."""
    if not text.isascii():
        text = _ACCENTS.sub("", unicodedata.normalize("NFD", text))
    return " ".join(_SIGNS.sub(" ", text).split())


def wanted(text: str) -> str:
    """A text that somebody looks for, folded. UsageError when it stands everywhere."""
    found = folded(text)
    letters = sum(each.isalnum() for each in found)
    if letters < 2 or found in COMMON:
        raise UsageError(
            f"`{text.strip()}` may stand anywhere" if letters else "the text to erase is empty",
            hint="Give a name in full, or more of the text.",
        )
    return found


def found_in(text: str, name: str) -> tuple[Why, str] | None:
    """How a text holds a folded name, best first, and what stands around it."""
    text = folded(text)
    start, whole = _position(text, name)
    if start >= 0:
        return (Why.SAYS if whole else Why.INSIDE), _around(text, start, len(name))
    name = loosened(name)
    if len(name) < _SHORT or (text.isascii() and name.split()[0] not in text):
        return None
    text = loosened(text)
    start, whole = _position(text, name)
    return (Why.WRITTEN, _around(text, start, len(name))) if whole else None


def says(text: str, name: str) -> bool:
    """Does a text hold the other one, in whichever writing?"""
    return found_in(text, wanted(name)) is not None


def _position(text: str, name: str) -> tuple[int, bool]:
    """Where a name stands in a text, and whether it is no part of a longer word there; -1: nowhere."""
    inside = -1
    start = text.find(name)
    while start >= 0:
        if not (_joined(text[:start][-1:], name[0]) or _joined(name[-1], text[start + len(name) :][:1])):
            return start, True
        inside = start
        start = text.find(name, start + 1)
    return inside, False


def _joined(left: str, right: str) -> bool:
    """Do the two characters belong to one word?"""
    return all(unicodedata.category(each)[0] in "LMN" and ord(each) < _LATIN for each in (left or " ", right or " "))


def _around(text: str, start: int, size: int) -> str:
    begin, end = max(start - _AROUND, 0), start + size + _AROUND
    return f"{'…' if begin else ''}{text[begin:end]}{'…' if end < len(text) else ''}"


def is_only_named(summary: str, name: str, projects: Iterable[str]) -> bool:
    """Does a summary hold a folded name only where it tells which project it is of?"""
    for folder in {part.rpartition("/")[2] for each in projects for part in each.split()}:
        summary = summary.replace(f" in {folder}", "") if folder else summary
    return found_in(summary, name) is None


class Quotes:
    """What goes, to be recognised elsewhere: sentences of `texts`, told nearly so; `statements`, short ones too."""

    def __init__(self, texts: Iterable[str], statements: Iterable[str] = ()) -> None:
        self._by_word: dict[str, list[frozenset[str]]] = {}
        for sentence in {each for text in texts for each in _sentences(text)}:
            meant = content_words(sentence)
            if len(meant) >= _WORDS:
                longest = sorted({word for word in _words(sentence) if word not in COMMON}, key=lambda word: -len(word))
                for word in longest[:2]:
                    self._by_word.setdefault(word, []).append(meant)
        self._statements = {loosened(folded(each)) for each in statements if len(marks_of(each)) > 1}

    def __bool__(self) -> bool:
        return bool(self._by_word or self._statements)

    def find(self, text: str) -> str | None:
        """The sentence of a text that repeats one of them."""
        near = [each for word in self._by_word.keys() & _words(text) for each in self._by_word[word]]
        for sentence in _sentences(text) if near else ():
            said = content_words(sentence)
            if any(len(meant & said) >= _NEAR * len(meant) for meant in near):
                return _around(sentence, 0, _AROUND)
        plain = loosened(folded(text)) if self._statements else ""
        for statement in self._statements:
            start, whole = _position(plain, statement)
            if whole:
                return _around(plain, start, len(statement))
        return None


def _words(text: str) -> set[str]:
    return set(RUNS.findall(text.casefold()))


def _sentences(text: str) -> list[str]:
    return [sentence for paragraph in text.splitlines() for sentence in sentences(paragraph)]


def _words_of(turn: str) -> str:
    """Return what is said in a stored turn, without the names and fixed values of its fields."""

    def walk(value: Any) -> Iterator[str]:
        if isinstance(value, dict):
            for field, each in value.items():
                yield from walk(each) if field not in _FIXED else ()
        elif isinstance(value, list):
            for each in value:
                yield from walk(each)
        elif isinstance(value, str):
            yield value

    with suppress(*UNDECODABLE):
        return " | ".join(walk(msgspec.json.decode(turn)))
    return turn


class Mentions:
    """`turns` is the folder of our own logs."""

    def __init__(self, database: Database, owner: Owner, turns: Path) -> None:
        self._database = database
        self._owner = owner
        self._turns = turns

    def of(self, name: str) -> list[Mention]:
        """Where a folded name stands."""
        return self._found(lambda text: found_in(text, name))

    def quotes(
        self, texts: Sequence[str], statements: Sequence[str], but: Collection[tuple[Place, str]]
    ) -> list[Mention]:
        """Where sentences of these texts, or the statements, are repeated, other than in what goes itself."""
        known = Quotes(texts, statements)
        if not known:
            return []
        found = self._found(lambda text: (Why.REPEATS, said) if (said := known.find(text)) else None)
        return [each for each in found if (each.at.place, each.at.id) not in but]

    def names(self, name: str) -> list[Mention]:
        """The projects, branches, users and chats in whose names a folded text stands."""
        with self._database.read() as tx:
            every = erasing.names(tx, self._owner)
        return [Mention(each, each.text, Why.NAME) for each in every if name in folded(each.text)]

    def _found(self, look: Callable[[str], tuple[Why, str] | None]) -> list[Mention]:
        found = []
        with self._database.read() as tx:
            for each in erasing.texts(tx, self._owner):
                text = _words_of(each.text) if each.place is Place.TURN else each.text
                if hit := look(text):
                    key = each.session_key or erasing.key_at(tx, self._owner, each)
                    found.append(Mention(each._replace(session_key=key), hit[1], hit[0]))
        return found + [Mention(each, hit[1], hit[0]) for each in self._reactions() if (hit := look(each.text))]

    def _reactions(self) -> Iterator[Standing]:
        """What people wrote about memories stands in logs alone."""
        for path in sorted(self._turns.glob("*/*/m-*.jsonl")):
            for line in path.read_bytes().splitlines():
                with suppress(*UNDECODABLE):
                    told = msgspec.json.decode(line, type=Reaction)
                    if told.memory and told.text:
                        file = path.relative_to(self._turns).as_posix()
                        yield Standing(Place.FEEDBACK, reaction_id(told), told.text, source_file=file)
