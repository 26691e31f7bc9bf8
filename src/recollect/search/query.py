"""What a person typed, taken apart: words with their weights, names as typed, times, whose words are meant. Pure.

Nothing in a query is syntax: quotes, dashes, colons and brackets only separate words.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime

from recollect.search.when import Span, spans
from recollect.store.words import parts
from recollect.text import COMMON, RUNS
from recollect.types import Role

_NAME = re.compile(r"[\w$@.][\w$@.:/\\+#-]*+\)?")  # a run that may be an identifier, a path or a version
_QUOTED = re.compile(r"\"([^\"\n]{3,200})\"|`([^`\n]{2,200})`|“([^”\n]{3,200})”")
_INNER = re.compile(r"[a-z0-9][A-Z]|\w[_./:\\#@+-]\w|[A-Za-z]\d|\d[A-Za-z]")
_TO_THE_ASSISTANT = re.compile(
    r"\b(?:did|have|had|were|would|could) you\b|\byou(?:r| (?:said|told|gave|suggest|recommend|mention|list|provid))",
    re.I,
)
_PIECES = frozenset(
    "s t d m ll re ve don didn doesn isn aren wasn weren couldn wouldn shouldn haven hasn hadn won ain".split()
)
# Words by which questions are made: they say what kind of answer is wanted, hardly ever what it is about.
_WEAK = frozenset(
    """ago amount any current currently day days earlier first happen happened last late lately latest long mention
    mentioned month months name named number order past people previous previously recent recently recommend remind
    second suggest tell time times tip tips told total type types week weeks year years""".split()
)
_WEAK_WEIGHT = 0.3
_PART_WEIGHT = 0.5
_MOST_WORDS = 64


@dataclass(frozen=True, slots=True)
class Query:
    text: str
    words: dict[str, float]  # word → how much it counts beside its rarity
    names: tuple[str, ...] = ()  # identifiers, paths, versions and quotations, lower-cased as typed
    spans: tuple[Span, ...] = ()
    asked: Role | None = None  # whose words are asked for, where the query tells


def parse(text: str, now: datetime) -> Query:
    times = tuple(spans(text, now))
    dated = {word.lower() for span in times for word in RUNS.findall(span.words)}  # they tell when, not what
    found = {word.lower(): word for word in reversed(RUNS.findall(text))}
    words: dict[str, float] = {}
    for word, typed in reversed(found.items()):
        if word in COMMON or word in _PIECES or (len(word) == 1 and not word.isdigit()):
            continue
        words[word] = _WEAK_WEIGHT if word in _WEAK or word in dated else 1.0
        for part in parts(typed):
            words.setdefault(part.lower(), _PART_WEIGHT)
    if not words:  # "The Who": better than nothing
        words = dict.fromkeys(found, _WEAK_WEIGHT)
    return Query(
        text,
        dict(list(words.items())[:_MOST_WORDS]),
        _names(text),
        times,
        Role.ASSISTANT if _TO_THE_ASSISTANT.search(text) else Role.USER,
    )


def _names(text: str) -> tuple[str, ...]:
    quoted = [next(filter(None, found.groups())) for found in _QUOTED.finditer(text)]
    typed = [found.group().rstrip("$@.:/\\+#-") for found in _NAME.finditer(text) if _INNER.search(found.group())]
    return tuple(dict.fromkeys(each.lower() for each in (*quoted, *typed) if len(each) >= 3))
