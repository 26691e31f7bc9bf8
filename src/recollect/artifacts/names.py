"""Names of artifacts and links between them. Pure.

A name says when the artifact was captured, whose conversation it belongs to and what it is; nothing else is encoded in
it. Paths are relative to RECOLLECT_HOME, with forward slashes, in links as in frontmatter.
"""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import dataclass
from enum import StrEnum

from recollect.types import Timestamp

FOLDER = "memory"
TOMBSTONES = f"{FOLDER}/tombstones"

_NAME = re.compile(r"(\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\.\d{3}Z)--([a-z2-7]{16})--([a-z]+)\.md", re.ASCII)
_LINK = re.compile(r"\[\[([^\[\]|\n]+)(?:\|([^\[\]\n]*))?\]\]")


class Kind(StrEnum):
    SUMMARY = "summary"
    TRANSCRIPT = "transcript"
    COMPACTION = "compaction"
    MANIFEST = "manifest"
    TOMBSTONE = "tombstone"  # what was removed: hashes and paths, never text


_KINDS = frozenset(str(kind) for kind in Kind)


@dataclass(frozen=True, slots=True, order=True)
class Name:
    """Ordered by time, as a folder lists them."""

    captured_at: Timestamp
    token: str
    kind: Kind

    @property
    def file(self) -> str:
        return f"{self.captured_at.replace(':', '-')}--{self.token}--{self.kind}.md"

    @property
    def folder(self) -> str:
        return TOMBSTONES if self.kind is Kind.TOMBSTONE else FOLDER

    @property
    def path(self) -> str:
        return f"{self.folder}/{self.file}"


def session_token(agent_id: str, session_key: str, session_id: str) -> str:
    """Names a conversation in file names: the same for ever, and for nobody else."""
    digest = hashlib.sha256(f"{agent_id}:{session_key or session_id}".encode("utf-8", "surrogatepass")).digest()
    return base64.b32encode(digest).decode().lower()[:16]


def parse(path: str) -> Name | None:
    """A file name, or a path relative to the home; None when it is no artifact's."""
    found = _NAME.fullmatch(path.removeprefix(f"{TOMBSTONES}/").removeprefix(f"{FOLDER}/"))
    if found is None or found[3] not in _KINDS:
        return None
    day, _, time = found[1].partition("T")
    return Name(Timestamp(f"{day}T{time.replace('-', ':')}"), found[2], Kind(found[3]))


def wikilink(path: str, label: str = "") -> str:
    return f"[[{path}|{label}]]" if label else f"[[{path}]]"


def wikilinks(text: str) -> list[tuple[str, str]]:
    """(path, label) of every link in a text."""
    return [(found[1], found[2] or "") for found in _LINK.finditer(text)]
