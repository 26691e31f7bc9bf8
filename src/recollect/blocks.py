"""What an injected memory block looks like, so that whoever writes one and whoever must not read one agree.

A block is a message, or a part of one, that starts with PREFIX. It ends at END when that follows, else with the
message. Ingest drops blocks: injected memory that came back as if the user had said it would be extracted again.
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


def contains_block(text: str) -> bool:
    return PREFIX in text and _BLOCK.search(text) is not None


def strip_blocks(text: str) -> str:
    """The text without its injected blocks; the same object when there is none."""
    if PREFIX not in text:
        return text
    return _BLOCK.sub("", text)
