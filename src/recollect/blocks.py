"""What an injected memory block looks like, so that whoever writes one and whoever must not read one agree.

A block is a message, or a part of one, that starts with PREFIX. It ends at END when that follows, else with the
message. Behind a number or a heading it is known by its end, in the middle of a line also by how we begin one. Each of
its lines ends with a day, an id and a revision, so that a line is known where the rest of its block was cut off, also
where an agent adds to it, decorates or breaks it. Ingest drops all of it: injected memory that came back as if the user
had said it would be extracted again. Every step takes linear time, whatever the text is.
"""

from __future__ import annotations

import re

from recollect.text import HIDDEN
from recollect.types import MemoryKind

PREFIX = "[Context from memory]"
END = "[End of context from memory]"

_QUOTE = r"[ \t>*`]*"  # an agent that quotes a block indents it, or marks it as a quotation
_BLOCK = re.compile(
    rf"^(?:{_QUOTE}{re.escape(PREFIX)}.*?(?:{re.escape(END)}[ \t]*(?:\r?\n)?|\Z))+",  # one after another: at once
    re.DOTALL | re.MULTILINE,
)
_LISTED = re.compile(  # up to the last end, so that each has one
    rf"^(?:[ \t>*`#+\-\d.)]*{re.escape(PREFIX)}.*?{re.escape(END)}[ \t]*(?:\r?\n)?)+", re.DOTALL | re.MULTILINE
)
_AFTER = re.compile(r"[ \t]*(?:\r?\n)?")
OPENINGS = (f"{PREFIX} Notes from earlier", f"{PREFIX} What is known from earlier")
_ROW = re.compile(r"[^\n]*\n|[^\n]+\Z")
_NEAR = tuple(f"{each}m-" for each in " \n\t`|*>")  # an id stands behind one of these
_DAY, _ID = r"\d{4}-\d\d-\d\d", r"`?m-[0-9A-Za-z-]+`?"
_REF = re.compile(rf"[(（]{_DAY},[\s>]+{_ID},?[\s>]+r\d+[)）]")
_CELLS = [  # of a table that an agent made of it: the day and the id stand alone, wherever
    re.compile(rf"(?:^|\|)[\s*`]*{each}[\s*`]*(?:\||$)") for each in (_DAY, rf"{_ID}(?:,?[\s`]+r\d+)?")
]
_CLOSING = re.compile(r"[\s*`.,;:!?\"')_|}\]›‹»«”“’]*")
_LABEL = re.compile(rf"\[(?:{'|'.join(MemoryKind)})(?:, ?\w+)?\]")
_FIRST = re.compile(rf"[\W\d]*?{_LABEL.pattern}")
_BULLET = re.compile(r"[ \t>]*(?:[-*+•|]|\d+[.)])[ \t]")
_BROKEN = 12  # rows before the one with the reference, for the longest line in a narrow window


def _loosely(phrase: str) -> str:
    """However it is spaced, and whatever stands in it that nobody sees."""
    gap = rf"[\s{HIDDEN}]"
    return rf"{gap}+".join(f"[{HIDDEN}]*".join(word) for word in phrase.split())


_MARKS = re.compile(
    rf"[\[［]([\s{HIDDEN}]*(?:{_loosely('end of')}[\s{HIDDEN}]+)?{_loosely('context from memory')}[\s{HIDDEN}]*)[\]］]",
    re.IGNORECASE,
)


def strip_blocks(text: str) -> str:
    """The text without its injected blocks and lines; the same object when there is none."""
    stripped = _without_quoted(_BLOCK.sub("", _without_listed(text))) if PREFIX in text else text
    if "m-" in stripped and (stripped.startswith("m-") or any(each in stripped for each in _NEAR)):
        stripped = _without_lines(stripped)
    return text if stripped == text else stripped


def escape(text: str) -> str:
    """The text of somebody else: nothing in it begins or ends a block. The same object when nothing did."""
    if text.isascii() and ("[" not in text or "context" not in text.lower()):
        return text
    return _MARKS.sub(r"(\1)", text) if "[" in text or "［" in text else text


def _without_listed(text: str) -> str:
    last = text.rfind(END)
    if last < 0:
        return text
    after = _AFTER.match(text, last + len(END))
    end = after.end() if after else len(text)
    return _LISTED.sub("", text[:end]) + text[end:]


def _without_lines(text: str) -> str:
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
    for back in range(1, min(_BROKEN, len(kept)) + 1):
        if _BULLET.match(row) or not row.strip():
            break
        row = kept[-back]
        if _FIRST.match(row):
            return len(kept) - back
    return len(kept)


def _without_quoted(text: str) -> str:
    for opening in OPENINGS:
        kept, at = [], 0
        while (start := text.find(opening, at)) >= 0 and (end := text.find(END, start)) >= 0:
            kept.append(text[at:start])
            at = end + len(END)
        text = "".join((*kept, text[at:]))
    return text
