"""MEMORY.md: where to begin, then a row per conversation of the last 30 days. A projection, never a source. Pure.

Rows come from frontmatter and are rendered without a model. The text depends on nothing but its content and on which
rows lie in the window, so that it stays byte for byte the same until one of them changes. The head stays whole; where
the budget does not hold every row, the oldest are left out, and a line says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

from recollect.artifacts.names import wikilink
from recollect.artifacts.sanitize import line
from recollect.artifacts.sentence import tidy, unlinked
from recollect.markdown import displayed
from recollect.note import hand
from recollect.types import BINDING, Hand, MemoryKind, Remembered, Scope, Timestamp, project_name, timestamp

FILE = "MEMORY.md"
DAYS = 30
BUDGET = 30_000  # tokens
ENOUGH = 420  # rows that no budget holds: one takes 250 bytes at least
HEADING = f"## Session Ledger (Last {DAYS} Days)"

_TITLE = "# Memory"
_MOST = 12  # memories of a section of the head
_LONGEST = 240  # characters of a memory in the head
_LEFT = 160  # of what a conversation left
_SECTIONS = ("Pinned", "Rules and limits", "Open threads", "Learnt last")
_DAY = "### "
OF_A_CHAT = "A conversation of a user of a chat, whose words are theirs."  # agents of the owner may read the file
_EMPTY = "No conversation in this time."
_CLIPPED = "conversations: the oldest were clipped to the budget."


class Row(NamedTuple):
    """A conversation in the ledger. A tuple: there are thousands, and only what fits is rendered."""

    at: Timestamp  # when it ended, else when it was captured
    session_id: str
    project: str
    sentence: str
    summary_path: str
    transcript_path: str
    manifest_path: str
    left: str = ""  # at its end

    @property
    def text(self) -> str:
        links = (self.summary_path, "summary"), (self.transcript_path, "transcript"), (self.manifest_path, "manifest")
        left = [f"Left: {shortened(self.left, _LEFT)}"] if self.left else []
        sentence = displayed(" ".join([tidy(self.sentence), *left])).replace("|", "\\|")
        told = " ".join([sentence, *(wikilink(path, label) for path, label in links)])
        return f"- {self.at} | session={_plain(self.session_id)} | project={_plain(self.project)} | {told}"


@dataclass(frozen=True, slots=True)
class Placed:
    """A current memory and the summary that states it."""

    memory: Remembered
    summary_path: str

    @property
    def text(self) -> str:
        said = displayed(shortened(self.memory.text, _LONGEST))
        block = f"{self.summary_path}#^{self.memory.id}-r{self.memory.revision}"
        where = f" ({_plain(project_name(self.memory.scope_id))})" if self.memory.scope is Scope.PROJECT else ""
        where += " (noted by an agent)" if hand(self.memory) is Hand.AGENT else ""
        return f"- {said}{where} {wikilink(block, self.memory.valid_from[:10])}"


def within(rows: Iterable[Row], now: datetime) -> list[Row]:
    """Those in [now - 30 days, now], newest first."""
    first, last = timestamp(now - timedelta(days=DAYS)), timestamp(now)
    inside = (each for each in rows if first <= each.at <= last)
    return sorted(inside, key=lambda each: (each.at, each.manifest_path), reverse=True)


def render(
    rows: Iterable[Row], placed: Iterable[Placed], now: datetime, budget: int = BUDGET, *, older: int = 0
) -> str:
    """The whole file, within the budget unless the head alone is longer. `older` rows lie in the window behind those
    that are given, which are more than fit."""
    found = within(rows, now)
    of = len(found) + older
    head = "\n".join([_TITLE, "", *orientation(placed), HEADING, ""])
    return f"{head}\n{_body(_fitting(head, found, of, budget), of)}\n"


def may_be_past(text: str, now: datetime) -> bool:
    """Does a file show a row that the window has left behind? It may count some, where its oldest were clipped."""
    rows = text.rpartition(f"\n{HEADING}\n")[2]
    _, mark, oldest = rows.rpartition("\n- ")
    return _CLIPPED in rows or bool(mark and oldest < timestamp(now - timedelta(days=DAYS)))


def orientation(placed: Iterable[Placed]) -> list[str]:
    """What to know first: what a person pinned, rules, what is open, and what was learnt last; each with a link to
    where it was said."""
    newest = sorted(placed, key=lambda each: (each.memory.valid_from, each.memory.id), reverse=True)
    sections: dict[str, list[Placed]] = {title: [] for title in _SECTIONS}
    for each in newest:
        sections[_section(each.memory)].append(each)
    found: list[str] = []
    for title, members in sections.items():
        if members:
            more = [f"\nThe newest {_MOST}; `recollect search` finds the others."] if len(members) > _MOST else []
            found += [f"## {title}", "", *(each.text for each in members[:_MOST]), *more, ""]
    return found


def _section(memory: Remembered) -> str:
    pinned, rules, threads, others = _SECTIONS
    if memory.pinned:
        return pinned
    is_rule = memory.kind is MemoryKind.CONSTRAINT and hand(memory) is not Hand.AGENT
    if is_rule or memory.severity in BINDING:
        return rules
    return threads if memory.kind is MemoryKind.OPEN_THREAD else others


def path(agent_id: str) -> str:
    """Where an agent's file lies below the home."""
    return FILE if agent_id == "default" else f"agents/{agent_id}/{FILE}"


def listed_at(ended_at: str | None, captured_at: Timestamp) -> Timestamp:
    """The time of a conversation's row."""
    return Timestamp(ended_at or captured_at)


def lists(text: str, manifest_path: str) -> bool:
    """Whether a MEMORY.md has a row of the conversation with this manifest."""
    return wikilink(manifest_path, "manifest") in text


def _fitting(head: str, rows: Sequence[Row], of: int, budget: int) -> Sequence[tuple[str, str]]:
    """(day, text) of the newest rows that fit, the notice included where some do not. The others are not rendered."""
    whole = budget * 7 // 2 - len(head.encode())  # bytes
    clipped = whole - len(f"\n{_notice(of, of)}\n\n\n".encode())
    texts: list[tuple[str, str]] = []
    kept, day = 0, ""
    for each in rows:
        text = each.text
        size = len(text.encode()) + 1 + (len(f"\n{_DAY}2026-03-28\n\n") if each.at[:10] != day else 0)
        whole, clipped, day = whole - size, clipped - size, each.at[:10]
        if whole < 0:
            return texts[:kept]
        texts.append((day, text))
        kept += clipped >= 0
    return texts


def _body(texts: Sequence[tuple[str, str]], of: int) -> str:
    parts = [_notice(len(texts), of)] if len(texts) < of else []
    for day, members in groupby(texts, key=itemgetter(0)):
        parts.append("\n".join([f"{_DAY}{day}", "", *(text for _, text in members)]))
    return "\n\n".join(parts) or _EMPTY


@lru_cache(maxsize=1024)  # a few projects, many rows
def _plain(field: str) -> str:
    """On one line, without what would be read as a link or as the border of a field."""
    return displayed(unlinked(line(field))).replace("|", "/")


def shortened(text: str, most: int) -> str:
    said = tidy(line(text))
    return said if len(said) <= most else said[: most - 1].rstrip() + "…"


def _notice(kept: int, of: int) -> str:
    return f"Kept {kept} of {of} {_CLIPPED} Their files are in `memory/`."
