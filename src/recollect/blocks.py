"""What an injected memory block looks like, so that whoever writes one and whoever must not read one agree.

A block is whole or it is none: a line that begins with PREFIX, then lines of ours (titles and list items), then END.
`strip_blocks` takes whole blocks out of a text and nothing else: what somebody quotes or pastes of one is their text.
`without_memories` is for whoever learns from a text: it also takes out quoted and broken blocks and every line that
ends like one of ours, with a day, an id and a revision, however an agent decorates or breaks it. Memory that came back
as if the user had said it would be learnt again. Every step takes linear time, whatever the text is.
"""

from __future__ import annotations

import re

from recollect.text import HIDDEN
from recollect.types import MemoryKind

PREFIX = "[Context from memory]"
END = "[End of context from memory]"
OPENINGS = (f"{PREFIX} Notes from earlier", f"{PREFIX} What is known from earlier")
TITLES = (
    "Pinned",
    "Relevant",
    "Rules and limits",
    "Open threads",
    "In every project",
    "In this project",
    "Last sessions",
    "Also known",
    "Rules",
    "Notes",
    "Earlier sessions",
)

_REST = rf"(?![^\n]*?{re.escape(PREFIX)})[^\n]*"  # of a line in which no other block begins
_LINES = rf"(?:\r?\n(?:- {_REST}|(?:{'|'.join(TITLES)}):[ \t]*(?=\r?\n)))+"
_BODY = rf"{_REST}{_LINES}\r?\n{re.escape(END)}"
_BLOCK = re.compile(  # within a line it is known by how we begin one
    rf"^{re.escape(PREFIX)}{_BODY}[ \t]*(?:\r?\n)?|(?:{'|'.join(map(re.escape, OPENINGS))}){_BODY}", re.MULTILINE
)

_MARKED = r"[ \t>*`#+\-\d.)]*"  # how somebody begins the lines of what they quote or list
_QUOTED = re.compile(  # up to the last end, so that each has one
    rf"^(?:{_MARKED}{re.escape(PREFIX)}.*?{re.escape(END)}[ \t]*(?:\r?\n)?)+", re.DOTALL | re.MULTILINE
)
_BROKEN = re.compile(  # without an end: its first line, and what looks like ours below it
    rf"^{_MARKED}{re.escape(PREFIX)}[^\n]*(?:\n[ \t>]*(?:- |(?:{'|'.join(TITLES)}):)[^\n]*)*(?:\n|\Z)", re.MULTILINE
)
_OPENED = re.compile(rf"(?:{'|'.join(map(re.escape, OPENINGS))})[^\n]*")
_AFTER = re.compile(r"[ \t]*(?:\r?\n)?")
_ROW = re.compile(r"[^\n]*\n|[^\n]+\Z")
_NEAR = tuple(f"{each}m-" for each in " \n\t`|*>(（")  # an id stands behind one of these
_DAY, _ID = r"\d{4}-\d\d-\d\d", r"`?m-[0-9A-Za-z-]+`?"
_REF = re.compile(rf"[(（](?:{_DAY},[\s>]+{_ID},?[\s>]+r\d+|`?m-[0-9A-Za-z-]+`?[\s>]+r\d+,[\s>]+\d\d-\d\d)[)）]")
_CELLS = [  # of a table that an agent made of it: the day and the id stand alone, wherever
    re.compile(rf"(?:^|\|)[\s*`]*{each}[\s*`]*(?:\||$)") for each in (_DAY, rf"{_ID}(?:,?[\s`]+r\d+)?")
]
_CLOSING = re.compile(r"[\s*`.,;:!?\"')_|}\]›‹»«”“’]*")
_LABEL = re.compile(rf"\[(?:{'|'.join(MemoryKind)})(?:, ?\w+)?\]")
_FIRST = re.compile(rf"[\W\d]*?{_LABEL.pattern}")
_BULLET = re.compile(r"[ \t>]*(?:[-*+•|]|\d+[.)])[ \t]")
_MOST_ROWS = 12  # rows before the one with the reference, for the longest line in a narrow window


def _loosely(phrase: str) -> str:
    """However it is spaced, and whatever stands in it that nobody sees."""
    gap = rf"[\s{HIDDEN}]"
    return rf"{gap}+".join(f"[{HIDDEN}]*".join(word) for word in phrase.split())


_MARKS = re.compile(
    rf"[\[［]([\s{HIDDEN}]*(?:{_loosely('end of')}[\s{HIDDEN}]+)?{_loosely('context from memory')}[\s{HIDDEN}]*)[\]］]",
    re.IGNORECASE,
)


def strip_blocks(text: str) -> str:
    """The text without whole injected blocks; the same object when there is none."""
    if PREFIX not in text or END not in text:
        return text
    stripped = _BLOCK.sub("", text)
    return text if stripped == text else stripped


def without_memories(text: str) -> str:
    """The text without anything that repeats an injected memory; the same object when nothing does."""
    stripped = text
    if PREFIX in text:
        stripped = _without_opened(_without_quoted(strip_blocks(text)))
        stripped = _OPENED.sub("", _BROKEN.sub("", stripped))
    return without_lines(text if stripped == text else stripped)


def without_lines(text: str) -> str:
    """The text without lines of ours, wherever somebody quotes them; the same object when there is none."""
    if "m-" not in text or not (text.startswith("m-") or any(each in text for each in _NEAR)):
        return text
    stripped = _without_rows(text)
    return text if stripped == text else stripped


def escape(text: str) -> str:
    """The text of somebody else: nothing in it begins or ends a block. The same object when nothing did."""
    if text.isascii() and ("[" not in text or "context" not in text.lower()):
        return text
    return _MARKS.sub(r"(\1)", text) if "[" in text or "［" in text else text


def _without_quoted(text: str) -> str:
    """Without whole blocks behind marks of a quotation, a list or a heading."""
    last = text.rfind(END)
    if last < 0:
        return text
    after = _AFTER.match(text, last + len(END))
    end = after.end() if after else len(text)
    return _QUOTED.sub("", text[:end]) + text[end:]


def _without_rows(text: str) -> str:
    """Without rows that begin or end like a line of ours. Of a row that only has one in it, that goes."""
    kept: list[str] = []
    text = _REF.sub(lambda ref: " ".join(ref.group().replace(">", " ").split()), text)  # on one row
    for row in _ROW.findall(text):
        if "|" in row and all(cell.search(row) for cell in _CELLS):
            continue
        refs = [each.span() for each in _REF.finditer(row)] if "m-" in row else []
        label = _LABEL.search(row, 0, refs[-1][0]) if refs else None
        ends = bool(refs) and _CLOSING.fullmatch(row, refs[-1][1]) is not None
        if not label and not ends:
            kept.append(row)
        elif label and not ends and not _FIRST.match(row):
            start = min([label.start(), *(at for each in OPENINGS if (at := row.find(each)) >= 0)])
            kept.append(row[:start] + row[refs[-1][1] :])
        elif not label:
            del kept[_beginning(kept, row) :]
    return "".join(kept)


def _beginning(kept: list[str], row: str) -> int:
    """Where the line begins whose last row this is."""
    for back in range(1, min(_MOST_ROWS, len(kept)) + 1):
        if _BULLET.match(row) or not row.strip():
            break
        row = kept[-back]
        if _FIRST.match(row):
            return len(kept) - back
    return len(kept)


def _without_opened(text: str) -> str:
    """Without blocks that begin in the middle of a line, whatever their lines look like."""
    for opening in OPENINGS:
        kept, at = [], 0
        while (start := text.find(opening, at)) >= 0 and (end := text.find(END, start)) >= 0:
            kept.append(text[at:start])
            at = end + len(END)
        text = "".join((*kept, text[at:]))
    return text
