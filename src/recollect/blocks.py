"""What an injected memory block looks like, so that whoever writes one and whoever must not read one agree.

A block is a message, or a part of one, that starts with PREFIX. It ends at END when that follows, else with the
message. Quoted in the middle of a line, it is known by how we begin one, and by its end. Each of its lines ends with a
day, an id and a revision, so that a line is known where the rest of its block was cut off. Ingest drops all of it:
injected memory that came back as if the user had said it would be extracted again.
"""

from __future__ import annotations

import re

from recollect.text import HIDDEN

PREFIX = "[Context from memory]"
END = "[End of context from memory]"

_QUOTE = r"[ \t>*`]*"  # an agent that quotes a block indents it, or marks it as a quotation
_BLOCK = re.compile(
    rf"^(?:{_QUOTE}{re.escape(PREFIX)}.*?(?:{re.escape(END)}[ \t]*(?:\r?\n)?|\Z))+",  # one after another: at once
    re.DOTALL | re.MULTILINE,
)
OPENINGS = (f"{PREFIX} Notes from earlier", f"{PREFIX} What is known from earlier")
_REF = r"\(\d{4}-\d\d-\d\d, m-[0-9A-Za-z-]+ r\d+\)"
_LINE = re.compile(  # what ends like one of ours, or begins and goes on like one
    rf"^(?:[^\n]*{_REF}[ \t*`.,;:!?\"')]*|{_QUOTE}[-*]? ?\[[a-z_]+(?:, [a-z_]+)?\] [^\n]*{_REF}[^\n]*)(?:\r?\n|\Z)",
    re.MULTILINE,
)


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
    stripped = _without_quoted(_BLOCK.sub("", text)) if PREFIX in text else text
    if ", m-" in stripped:
        stripped = _LINE.sub("", stripped)
    return text if stripped == text else stripped


def escape(text: str) -> str:
    """The text of somebody else: nothing in it begins or ends a block. The same object when nothing did."""
    return _MARKS.sub(r"(\1)", text) if "[" in text or "［" in text else text


def _without_quoted(text: str) -> str:
    for opening in OPENINGS:
        kept, at = [], 0
        while (start := text.find(opening, at)) >= 0 and (end := text.find(END, start)) >= 0:
            kept.append(text[at:start])
            at = end + len(END)
        text = "".join((*kept, text[at:]))
    return text
