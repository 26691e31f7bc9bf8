"""`memory_sentence_v1`: one sentence that tells a conversation from the others. Pure.

A sentence passes when it has 12 to 48 words, ends with a full stop, exclamation or question mark, names something that
the conversation was really about (an anchor), and says more than a template does. What does not pass is replaced by a
sentence made of the project, the day and the user's first words, so that a row of the ledger is never empty talk.

Anchors are taken from the conversation, not from a list: the project's name, paths and their parts, identifiers,
numbers of issues, what stands in code marks or on a tool's line, names inside a sentence; and what somebody said, where
the sentence quotes it behind a colon. In scripts without capitals any three characters in a row that the conversation
has, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain, islice

from recollect.artifacts.sanitize import line
from recollect.text import COMMON, sentences, words

VERSION = "memory_sentence_v1"
FEWEST, MOST = 12, 48

_LONGEST = 1_000  # characters of a sentence, and of a token, that are looked at
_TOPICS = 8  # sentences that a fallback may be made of
_UNREADABLE = "nothing readable"


class Quality(StrEnum):
    OK = "ok"
    FALLBACK = "fallback"


class Fault(StrEnum):
    """Why a sentence does not pass."""

    LENGTH = "length"
    END = "no terminal punctuation"
    SEVERAL = "more than one sentence"
    NO_ANCHOR = "no anchor"
    LOW_SIGNAL = "low signal"


@dataclass(frozen=True, slots=True)
class Anchors:
    names: frozenset[str]  # case-folded
    text: str  # what was said, for quotes and for scripts without capitals


@dataclass(frozen=True, slots=True)
class Sentence:
    text: str
    quality: Quality


_EMPTY = frozenset(  # words that name nothing, whatever project it is
    """session sessions task tasks issue issues ticket tickets pr prs pull request requests bug bugs code codebase file
    files folder test tests testing project projects user users assistant agent conversation conversations chat work
    problem problems feature features change changes changed fix fixes fixed fixing update updates updated improvement
    improvements question questions answer answers help helped thing stuff various several some asked ask discussed
    discussion investigated investigate investigation worked working reviewed review reviewing looked looking continued
    implemented implement completed complete finished done made different multiple many new old general related details
    src lib app main index home tmp var usr opt etc bin docs doc readme true false none null todo
    monday tuesday wednesday thursday friday saturday sunday january february march april june july august september
    october november december today yesterday tomorrow""".split()
)
_TEMPLATES = frozenset(("investigated issue", "worked on task", "reviewed code"))
_IDENTIFIER = re.compile(r"(?<![\w#])(?:#\d+|[A-Z][A-Z0-9]+-\d+)\b")
_NUMBERED = re.compile(r"\b(?:issue|pr|pull request|task|ticket|mr|bug)\s+#?(\d+)\b", re.IGNORECASE)
_CODE = re.compile(r"`([^`\n]{1,200})`")
_TOOL = re.compile(r"^\[[A-Za-z_][\w .:-]{0,40}\] (.{1,300})$", re.MULTILINE)
_TOKEN = re.compile(r"[^\s\"'`()\[\]{}<>,;|*“”‘’«»]+")
_SHAPED = re.compile(r"[^\W_][./\\_:@+-]+\w|[/~.]\w|[a-zà-þ0-9][A-ZÀ-Þ]|[A-ZÀ-Þ]{2}|[^\W\d_]\d|\d[^\W\d_]")
_NAME = re.compile(r"(?<=[\w,;:)][ ])[A-ZÀ-ÞΑ-ΩА-Я][^\W_]+")  # not the first word of a sentence
_UNCASED = re.compile(r"[\u0590-\u109f\u1100-\u11ff\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+")
_SPACELESS = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]+")
_PIECES = re.compile(r"[^\W_]+")
_OPENING = re.compile(r"\[(?=\[)")
_STOPS = str.maketrans("。．।…！？؟", "....!??")  # the same signs in other scripts


def count(text: str) -> int:
    """Words. Where a script sets no spaces, two characters are a word."""
    runs = _SPACELESS.findall(text)
    rest = _SPACELESS.sub(" ", text).split()
    return sum(any(sign.isalnum() for sign in word) for word in rest) + sum(-(-len(run) // 2) for run in runs)


def anchors(project: str, texts: Sequence[str]) -> Anchors:
    """What a sentence about this conversation may name."""
    names = set(_parts(project.rstrip("/\\").replace("\\", "/").rpartition("/")[2]))
    for text in texts:
        names.update(found.casefold() for found in _IDENTIFIER.findall(text))
        names.update(f"#{number}" for number in _NUMBERED.findall(text))
        for code in (*_CODE.findall(text), *_TOOL.findall(text)):
            names.update(part for token in _TOKEN.findall(code) for part in _parts(token))
        shaped = (token for token in _TOKEN.findall(text) if len(token) <= _LONGEST and _SHAPED.search(token))
        names.update(part for token in shaped for part in _parts(token))
        names.update(found.casefold() for found in _NAME.findall(text))
    kept = frozenset(name for name in names if _is_name(name))
    return Anchors(kept, "\n".join(texts))


def faults(sentence: str, known: Anchors) -> list[Fault]:
    """Every check that the sentence fails; none: it passes."""
    found = []
    if not FEWEST <= count(sentence) <= MOST:
        found.append(Fault.LENGTH)
    if sentence[-1:] not in (".", "!", "?"):
        found.append(Fault.END)
    if len(sentences(sentence)) != 1:
        found.append(Fault.SEVERAL)
    if not _is_anchored(sentence, known):
        found.append(Fault.NO_ANCHOR)
    if _is_low_signal(sentence):
        found.append(Fault.LOW_SIGNAL)
    return found


def gated(proposed: str, project: str, harness: str, day: str, said: Sequence[tuple[bool, str]]) -> Sentence:
    """The proposed sentence if it passes, else one made of what was said: (by the user?, text), sanitised. So is the
    sentence."""
    known = anchors(project, [text for _, text in said])
    text = tidy(proposed)
    if text and len(text) <= _LONGEST and not faults(text, known) and line(text) == text:
        return Sentence(text, Quality.OK)
    return Sentence(_fallback(project, harness, day, said), Quality.FALLBACK)


def tidy(text: str) -> str:
    """On one line, without what would be read as a link."""
    text = unlinked(" ".join(text.split()))
    return text[:-1] + text[-1:].translate(_STOPS)


def unlinked(text: str) -> str:
    """No two opening brackets stand together."""
    return _OPENING.sub("[ ", text)


def _fallback(project: str, harness: str, day: str, said: Sequence[tuple[bool, str]]) -> str:
    """The first that a sanitizer leaves as it is; the last one always is."""
    place = tidy(project.rstrip("/\\").replace("\\", "/").rpartition("/")[2]).replace(" ", "-") or harness
    number = f"{len(said)} message{'' if len(said) == 1 else 's'}"
    leads = (f"Conversation of {day}{where} with {number} that began with the words:" for where in (f" in {place}", ""))
    topics = _topics(said)
    made = (f"{lead} {_clipped(topic, MOST - count(lead))}." for lead in leads for topic in topics)
    return next(each for each in made if line(each) == each)


def _topics(said: Iterable[tuple[bool, str]]) -> list[str]:
    """The first sentences of the user that mean something, else the first of anybody."""
    spoken = [(user, sentence) for user, text in said for sentence in _lines(text)]
    mine = [sentence for user, sentence in spoken if user]
    telling = (each for each in mine if len(_telling(each)) >= 2 or _UNCASED.search(each))
    found = chain(telling, mine, (sentence for _, sentence in spoken))
    return [*islice(found, _TOPICS), _UNREADABLE]


def _lines(text: str) -> list[str]:
    found = [tidy(re.sub(r"^[#>*+\-\s]+|[`*]", "", row)) for row in text[:4000].split("\n")]
    return [sentence for row in found for sentence in sentences(row) if count(sentence)]


def _clipped(text: str, most: int) -> str:
    text = re.sub(r"[.!?…。！？]+(?=\s|$)", "", text[:_LONGEST])
    kept = ""
    for word in text.split(" "):
        longer = f"{kept} {word}".strip()
        room = most - count(kept)
        if count(longer) > most:
            kept = f"{kept} {word[:room]}".strip() if room > most // 2 else kept  # a script without spaces
            break
        kept = longer
    return kept.rstrip(" ,;:-") or _UNREADABLE


def _parts(token: str) -> Iterable[str]:
    """The token itself and the words that it is made of: a path, its folders, its file."""
    token = token.casefold().strip(".,:!?…。")
    return {token, *token.replace("\\", "/").split("/"), *_PIECES.findall(token)}


def _is_name(name: str) -> bool:
    return name.startswith("#") or (
        len(name) > 2 and name not in _EMPTY and name not in COMMON and any(sign.isalpha() for sign in name)
    )


def _is_anchored(sentence: str, known: Anchors) -> bool:
    if any(part in known.names for token in _TOKEN.findall(sentence) for part in _parts(token) if _is_name(part)):
        return True
    if any(f"#{number}" in known.names for number in _NUMBERED.findall(sentence)):
        return True
    quote = sentence.partition(": ")[2].partition("; ")[0].rstrip(".!?… ")
    if " " in quote and quote in " ".join(known.text.split()):
        return True
    grams = {run[at : at + 3] for run in _UNCASED.findall(sentence) for at in range(len(run) - 2)}
    return any(gram in known.text for gram in grams)


def _telling(sentence: str) -> set[str]:
    return {word for word in words(sentence) if word not in COMMON and word not in _EMPTY}


def _is_low_signal(sentence: str) -> bool:
    """A template, or one with padding: nothing beyond empty words."""
    plain = " ".join(words(sentence))
    return plain in _TEMPLATES or (len(_telling(sentence)) < 3 and not _UNCASED.search(sentence))
