"""What an injected memory block looks like, so that whoever writes one and whoever must not read one agree.

A block is a message, or a part of one, that starts with PREFIX. It ends at END when that follows, else with the
message. Each of its lines ends with a day, an id and a revision, so that a line is known where the rest of its block
was cut off. Ingest drops both: injected memory that came back as if the user had said it would be extracted again.
"""

from __future__ import annotations

import re

PREFIX = "[Context from memory]"
END = "[End of context from memory]"

_QUOTE = r"[ \t>*`]*"  # an agent that quotes a block indents it, or marks it as a quotation
_BLOCK = re.compile(
    rf"^(?:{_QUOTE}{re.escape(PREFIX)}.*?(?:{re.escape(END)}[ \t]*(?:\r?\n)?|\Z))+",  # one after another: at once
    re.DOTALL | re.MULTILINE,
)


_LINE = re.compile(r"^[^\n]*\(\d{4}-\d\d-\d\d, m-[0-9A-Za-z-]+ r\d+\)[ \t*`]*(?:\r?\n|\Z)", re.MULTILINE)
_MARKS = re.compile(r"\[(\s*(?:end\s+of\s+)?context\s+from\s+memory\s*)\]", re.IGNORECASE)


def strip_blocks(text: str) -> str:
    """The text without its injected blocks and lines; the same object when there is none."""
    stripped = _BLOCK.sub("", text) if PREFIX in text else text
    if ", m-" in stripped:
        stripped = _LINE.sub("", stripped)
    return text if stripped == text else stripped


def escape(text: str) -> str:
    """The text of somebody else: nothing in it begins or ends a block. The same object when nothing did."""
    return _MARKS.sub(r"(\1)", text) if "[" in text else text
