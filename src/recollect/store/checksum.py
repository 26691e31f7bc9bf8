"""What is summed of a conversation: the rows that follow from its files, in one form whoever made them. Pure.

Left out is what files do not say: where an entry stands in the agent's file, how a conversation came to its state, and
the signs of a terminal, which the agent's file may hold and canonical files never do.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from operator import itemgetter
from typing import NamedTuple

import msgspec

from recollect.store import memories, stage1
from recollect.store.compactions import Compacted
from recollect.store.database import Row
from recollect.store.entries import EntryRow
from recollect.text import plain
from recollect.types import Conversation, Message, Remembered, Role, Stage1

TALK = (  # columns of a conversation, by field
    *("source", "session_id", "project", "project_id", "branch", "first_message_at", "last_message_at"),
    *("entry_count", "status", "status_reason", "user"),
)
SAID = (  # of an entry
    *("uuid", "role", "content", "tool_names", "timestamp", "cwd", "project_id", "branch", "user", "authors", "events"),
)
_CONTENT, _AUTHORS, _REASON = SAID.index("content"), SAID.index("authors"), TALK.index("status_reason")
_OF_THE_PIPELINE = ("too short", "nobody has read it", "unchanged since")  # reasons that no file knows


class Rows(NamedTuple):
    """The rows of a conversation, each as a tuple."""

    talk: Row
    messages: list[Row]
    stage1: list[Row]  # none or one
    stated: list[Row]
    compactions: list[Row]
    files: list[Row]


def normal(
    talk: Row,
    messages: Iterable[Row],
    stage1: Iterable[Row],
    stated: Iterable[Row],
    compactions: Iterable[Row],
    files: Iterable[Row],
) -> Rows:
    """Return the rows in the form that is summed; columns as `SAID`, `TALK` and `follows` have them."""
    return Rows(
        (*talk[:_REASON], reason(talk[_REASON]), *talk[_REASON + 1 :]),
        sorted(map(_said, messages), key=itemgetter(0)),
        list(stage1),
        sorted(stated, key=repr),
        sorted(((*row[:-1], clean(row[-1])) for row in compactions), key=repr),
        sorted(files, key=itemgetter(0)),
    )


def _said(row: Row) -> Row:
    content, authors = as_written(row[_CONTENT], row[_AUTHORS])
    return (*row[:_CONTENT], content, *row[_CONTENT + 1 : _AUTHORS], authors, *row[_AUTHORS + 1 :])


def as_written(content: str, authors: str) -> tuple[str, str]:
    """Return a text and its authors as a canonical file would hold them."""
    if clean(content) == content:
        return content, authors
    message = Message("", Role.USER, content, authors=authors).rewritten(clean)
    return message.text, message.authors


def follows(
    talk: Conversation,
    entries: Iterable[EntryRow],
    row: Stage1 | None,
    stated: Iterable[Remembered],
    compacted: Iterable[Compacted],
    files: Iterable[Row],
) -> Rows:
    """Return the rows that follow from the files of a conversation. `files` end with their signature."""
    return normal(
        tuple(getattr(talk, name) for name in TALK),
        [tuple(getattr(each, name) for name in SAID) for each in entries],
        [tuple(getattr(row, name) for name in stage1.FIELDS)] if row else [],
        [(uuid, *memories.row_of(each).values()) for each in stated for _, uuid in each.sources],
        [
            (
                each.source,
                each.uuid,
                each.session_id,
                each.timestamp,
                each.source_file == talk.source_file,
                each.summary,
            )
            for each in compacted
        ],
        [each[:-1] for each in files],
    )


def checksum(rows: Rows) -> str:
    return hashlib.blake2b(msgspec.msgpack.encode(rows), digest_size=16).hexdigest()


def reason(text: str) -> str:
    """Return why a conversation came to its state, as far as its files know it."""
    return "" if str(text).startswith(_OF_THE_PIPELINE) else text


def clean(text: str) -> str:
    """Return the text as a canonical file would hold it; nearly always it is as it is."""
    is_clean = text.replace("\n", "").isprintable() and " \n" not in text and text[-1:] not in (" ", "\n")
    return text if is_clean else plain(text)
