"""Text as budgets, extraction and comparison see it: tokens, words, sentences. Pure, and the same everywhere."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from functools import lru_cache
from typing import Any


def estimate_tokens(text: str) -> int:
    """The one estimate that every budget uses: a token is 3.5 bytes."""
    return -(-len(text.encode("utf-8", "surrogatepass")) * 2 // 7)


# What a message and its copy in a file have in common

_ANSI = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # colours and cursor movements
    r"|(?:\x1b\]|\x9d)[^\x07\x1b\x9c\n]*(?:\x07|\x1b\\|\x9c)?"  # titles and links
    r"|\x1b[PX^_][^\x1b\x9c\n]*(?:\x1b\\|\x9c)?"
    r"|\x1b[ -/]*[0-Z\\^_`a-~]"
)
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_TURNING = re.compile(r"[\u202a-\u202e\u2066-\u2069]")  # what follows is shown in another order than it is written

# Characters that nobody sees, for a class of a pattern: joiners, directions, fillers, selectors of variants, tags.
HIDDEN = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U000e0000-\U000e0fff"
)


def unix_lines(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def one_line(text: str, most: int = 200) -> str:
    """Return a text of somebody else's as a message may hold it: on one line, and not long."""
    line = " ".join(text[: 4 * most].split())
    return line if len(line) <= most and len(text) <= 4 * most else f"{line[: most - 1]}…"


def printable(text: str) -> str:
    """No terminal sequences, no control characters but line feed and tab, no half characters."""
    return _SURROGATE.sub("\ufffd", _CONTROL.sub("", _ANSI.sub("", text)))


def readable(text: str) -> str:
    """The same for a person's eyes, in the order it is written. What is stored keeps its directions."""
    return _TURNING.sub("", printable(text))


# Signs that turn or hide what is written.
UNSEEN = re.compile(f"{_TURNING.pattern}|[\U000e0000-\U000e0fff]")


def trimmed(text: str) -> str:
    """LF line endings, no spaces or tabs at the end of a line, no blank lines at the end."""
    return "\n".join(line.rstrip(" \t") for line in unix_lines(text).split("\n")).rstrip("\n")


def plain(text: str) -> str:
    """All of that, until nothing changes any more."""
    while True:
        before = text
        text = trimmed(printable(unix_lines(text)))
        if text == before:
            return text


# Words

RUNS = re.compile(r"(?:[^\W_]|[\u0900-\u0963\u0966-\u0dff])+")  # of letters; signs of Indic scripts are none, but parts
_WORD = re.compile(r"[^\W_](?:[\w.+#/@:'-]*[\w+#])?")
COMMON = frozenset(  # English words that carry no meaning of their own
    """a about after again all also am an and any are as at be because been before being both but by can could did do
    does doing done down each either else even ever every few for from further get gets getting give go goes going gone
    got had has have having he her here hers him his how i if in into is it its itself just kind let like make made
    makes many may me might mine more most much must my myself no nor not now of off on once one only onto or other our
    ours out over own please quite rather really right same say says see shall she should since so some still such sure
    take than that the their theirs them then there these they thing things this those though through to too under until
    up upon us use used uses using very via want wants was way we well were what when where whether which while who whom
    why will with within without would yes yet you your yours yourself okay ok hey hi hello thanks thank
    i'm i've i'd i'll you're you've we're we've we'll it's that's there's let's don't doesn't didn't isn't aren't wasn't
    can't cannot won't wouldn't shouldn't couldn't haven't hasn't""".split()
)
_SUFFIXES = ("ingly", "edly", "ings", "ing", "ies", "ied", "ed", "es", "ly", "s")


@lru_cache(maxsize=65536)
def stem(word: str) -> str:
    """Word forms that mean the same thing fall together; identifiers stay as they are."""
    if len(word) < 5 or not word.isalpha():
        return word
    for suffix in _SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) >= 3:
            return word[: -len(suffix)] + ("y" if suffix in ("ies", "ied") else "")
    return word


def words(text: str) -> list[str]:
    """Every word, lower-cased, in order."""
    return [found.group().lower() for found in _WORD.finditer(text)]


@lru_cache(maxsize=32768)
def content_words(text: str) -> frozenset[str]:
    """The words that carry meaning, stemmed."""
    return frozenset(stem(word) for word in words(text.replace("’", "'")) if word not in COMMON)


# Scripts that put no space between words, and one whose words change with every particle.
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uac00-\ud7af\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff]+"
)
_SIGNS = re.compile("[\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u0eb1\u0eb4-\u0ebc\u0ec8-\u0ecd]")  # above and below the line


def pairs(text: str) -> list[str]:
    """Of what is written without spaces, every two characters that stand together."""
    if text.isascii() or not _UNSPACED.search(text):
        return []
    runs = _UNSPACED.findall(_SIGNS.sub("", text))
    return [run[at : at + 2] for run in runs for at in range(max(1, len(run) - 1))]


def apart(text: str) -> str:
    """The text with spaces around each character of a script that puts none between words."""
    return text if text.isascii() else _UNSPACED.sub(lambda run: f" {' '.join(run[0])} ", text)


def spaced(text: str) -> str:
    """The rest."""
    return _UNSPACED.sub(" ", text)


def marks_of(text: str) -> frozenset[str]:
    """What a text is recognised by in another one: words that carry meaning; without spaces, pairs of characters."""
    return content_words(spaced(text)) | frozenset(pairs(text))


def overlap(one: frozenset[str], other: frozenset[str]) -> float:
    """Shared words as a share of all: 0 to 1."""
    return len(one & other) / len(one | other) if one and other else 0.0


@lru_cache(maxsize=32768)
def normalised(text: str) -> str:
    """What two spellings of one statement have in common; identity is taken from it."""
    return " ".join(words(text.replace("’", "'")))


# Sentences

_FENCE = re.compile(r"^\s*(?:```|~~~)")
_BULLET = re.compile(r"^\s*(?:[-*+•]|\d{1,3}[.)])\s+(?:\[[ xX]\]\s+)?")
_HEADING = re.compile(r"^\s*#{1,6}\s+")
_QUOTE = re.compile(r"^\s*>")
_END = re.compile(
    r"(?<=[.!?…])[\"')\]*_”’]*\s+(?=[\"'(\[*_`“‘]*[A-Z0-9À-Þ`])|(?<=[.!?])\s+(?=[a-z])|(?<=[。！？])(?![。！？」』”’)）])\s*"
)
_ENDED = re.compile(r"[.!?…。！？؟।][\"')\]”’»」』）]*$")
_NARROWEST, _WIDEST = 50, 120  # characters of lines that are wrapped
_SHORT = re.compile(r"(?:\b(?:e\.g|i\.e|etc|vs|cf|approx|Dr|Mr|Mrs|Ms|St|No|Fig|incl|resp|p|pp|v)|\b[A-Z])\.$")


def blocks(text: str) -> Iterator[tuple[str, str]]:
    """Paragraphs, list items and headings as (kind, one line of text); fenced code and quotes are their own kinds."""
    fenced = False
    run: list[str] = []

    def paragraph() -> Iterator[tuple[str, str]]:
        for piece in _unwrapped(run):
            yield "prose", piece
        run.clear()

    for line in text.splitlines():
        if _FENCE.match(line):
            yield from paragraph()
            fenced = not fenced
        elif fenced:
            yield "code", line
        elif not line.strip():
            yield from paragraph()
        elif _HEADING.match(line):
            yield from paragraph()
            yield "heading", _HEADING.sub("", line).strip()
        elif _QUOTE.match(line):
            yield from paragraph()
            yield "quote", line.lstrip("> \t")
        elif found := _BULLET.match(line):
            yield from paragraph()
            yield "item", line[found.end() :].strip()
        else:
            run.append(line.strip())
    yield from paragraph()


def _unwrapped(lines: Sequence[str]) -> Iterator[str]:
    """A line break ends what was said, unless the line was wrapped: the next word did not fit, or the sentence goes on
    as it would in the middle of a line."""
    width = max(map(len, lines), default=0)
    run: list[str] = []
    for line in lines:
        if run:
            full = len(run[-1]) + 1 + len(line.split(" ", 1)[0]) > width and _NARROWEST <= width <= _WIDEST
            if not (full or run[-1].endswith(",") or (run[-1][:1].isupper() and line[:1].islower())):
                yield " ".join(run)
                run = []
        run.append(line)
    if run:
        yield " ".join(run)


def sentences(paragraph: str) -> list[str]:
    """Sentences of one paragraph; abbreviations, versions and paths do not end one."""
    found: list[str] = []
    start = 0
    for end in _END.finditer(paragraph):
        if _SHORT.search(paragraph[max(start, end.start() - 12) : end.start()].rstrip()):
            continue
        found.append(paragraph[start : end.start()].strip())
        start = end.end()
    found.append(paragraph[start:].strip())
    return [each for each in found if each]


def ended(text: str) -> str:
    """The text as a sentence: with a full stop, unless something ends it already."""
    return text if _ENDED.search(text) else f"{text}."


def unique(texts: Iterable[str], threshold: float = 0.8) -> list[str]:
    """The first of every group of near-duplicates, in order."""
    kept: list[tuple[str, frozenset[str]]] = []
    for text in texts:
        mine = content_words(text)
        if all(overlap(mine, theirs) < threshold for _, theirs in kept):
            kept.append((text, mine))
    return [text for text, _ in kept]


def in_texts(value: Any, change: Callable[[str], str]) -> Any:
    """A value as JSON, pydantic or a dataclass has it, with other texts in it: a copy; the same object when they are
    the same."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list | tuple):
        items = [in_texts(each, change) for each in value]
        return value if all(new is old for new, old in zip(items, value, strict=True)) else items
    changed = {key: new for key, each in _held(value).items() if (new := in_texts(each, change)) is not each}
    if not changed:
        return value
    if isinstance(value, Mapping):
        return {**value, **changed}
    return value.model_copy(update=changed) if hasattr(value, "model_copy") else replace(value, **changed)


def _held(value: Any) -> Mapping[str, Any]:
    if isinstance(value, Mapping):
        return value
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: getattr(value, each.name) for each in fields(value) if each.init}
    return {name: getattr(value, name) for name in getattr(type(value), "model_fields", ())}


def is_utf8(name: str) -> bool:
    """No other name can be stored, or told to a process: it holds lone surrogates."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
