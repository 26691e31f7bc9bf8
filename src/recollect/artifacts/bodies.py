"""Bodies of transcripts, summaries and compactions: Markdown for a person, and read back into the same values. Pure.

A body is a title, a line of links, and sections under headings that we know. A line of text that looks like such a
heading gets a backslash in front, and loses it when it is read. Text is expected as `sanitize` leaves it; then nothing
of it is lost.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from urllib.parse import quote, unquote

from recollect.artifacts.names import wikilink
from recollect.errors import ArtifactError
from recollect.note import is_session
from recollect.occasions import joined, parted
from recollect.types import MemoryKind, Message, Remembered, Role, Scope, Severity, Timestamp

_MESSAGE = re.compile(r"### (user|assistant) · (\S*) · (\S+)((?: · (?:tools|cwd|project_id|branch)=\S*)*)")
_MESSAGE_LIKE = re.compile(r"\\*### (?:user|assistant) · ")
_COMPACTION = re.compile(r"### compaction · (\S+) · (\S+)")
_COMPACTION_LIKE = re.compile(r"\\*### compaction · ")
_SECTIONS = ("Summary", "Memories", "Raw memory")
_SECTION = re.compile(rf"## ({'|'.join(_SECTIONS)})")
_SECTION_LIKE = re.compile(rf"\\*## (?:{'|'.join(_SECTIONS)})$")
_MEMORY = re.compile(
    r"- \*\*(\w+)\*\* \((\w+), (\w+)(?: of ([^\s,)]+))?(, pinned)?\) "
    r"(.*) — said (\S+), first seen (\S+), from (\S*) \^(\S+)-r(\d+)"
)
_OCCASIONS = "  matters when: "  # on a line of its own, behind its memory
_SAFE = ":@/+=-_.~"  # in an entry's id; never a space, a comma or a question mark
_UNKNOWN = "?"  # a source without an entry


class BadBody(ArtifactError):
    """The body is not what an artifact of its kind has."""


@dataclass(frozen=True, slots=True)
class Summary:
    title: str  # one line
    summary: str
    memories: tuple[Remembered, ...]
    raw_memory: str


# Transcripts


def transcript(title: str, links: Sequence[tuple[str, str]], messages: Sequence[Message]) -> str:
    """Each message under a heading: role, time, entry's id, tools, and its place where that is another."""
    parts = [_opening(title, links)]
    for each in messages:
        told = [(name, getattr(each, name)) for name in ("cwd", "project_id", "branch")]
        told = [("tools", each.tools or None), *told]
        extra = "".join(f" · {name}={_quoted(value, ',')}" for name, value in told if value is not None)
        heading = f"### {each.role} · {each.timestamp} · {_quoted(each.uuid)}{extra}"
        parts.append(f"{heading}\n\n{_escaped(each.text, _MESSAGE_LIKE)}")
    return "\n\n".join(parts)


def parse_transcript(body: str) -> list[Message]:
    """BadBody when a heading cannot be read."""
    messages = []
    for found, text in _sections(body, _MESSAGE, _MESSAGE_LIKE):
        told = (each.split("=", 1) for each in found[4].split(" · ")[1:])
        extra = {name: _unquoted(value) for name, value in told}
        messages.append(Message(_unquoted(found[3]), Role(found[1]), text, found[2], **extra))
    return messages


def places(text: str) -> dict[str, int]:
    """Entry's id → the number of its heading's line in a transcript's file; a heading without an id has no place."""
    found: dict[str, int] = {}
    for number, line in enumerate(text.split("\n"), 1):
        if heading := _MESSAGE.fullmatch(line):
            with suppress(BadBody):
                found[_unquoted(heading[3])] = number
    return found


# Summaries


def summary(value: Summary, links: Sequence[tuple[str, str]]) -> str:
    memories = "\n".join(_memory(each) for each in value.memories)
    texts = (_escaped(value.summary, _SECTION_LIKE), memories, _escaped(value.raw_memory, _SECTION_LIKE))
    sections = [f"## {name}\n\n{text}" for name, text in zip(_SECTIONS, texts, strict=True)]
    return "\n\n".join([_opening(value.title, links), *sections])


def parse_summary(body: str, session_key: str, project_id: str, user: str = "") -> Summary:
    """The memories of a summary are those of its own conversation: the frontmatter says which, where and whose."""
    sections = {found[1]: text for found, text in _sections(body, _SECTION, _SECTION_LIKE)}
    if list(sections) != list(_SECTIONS):
        raise BadBody("a summary has the sections Summary, Memories and Raw memory")
    title = body.partition("\n")[0].removeprefix("#").removeprefix(" ")
    memories: list[Remembered] = []
    for line in filter(None, sections["Memories"].split("\n")):
        if line.startswith(_OCCASIONS) and memories:
            memories[-1] = replace(memories[-1], occasions=parted(line.removeprefix(_OCCASIONS)))
        else:
            memories.append(replace(_parse_memory(line, session_key, project_id), user=user))
    return Summary(title, sections["Summary"], tuple(memories), sections["Raw memory"])


def _memory(each: Remembered) -> str:
    text = each.text.replace("\\", "\\\\").replace("\n", "\\n")
    sources = ",".join(_quoted(uuid) or _UNKNOWN for _, uuid in each.sources)
    pinned = ", pinned" if each.pinned else ""
    when = f"\n{_OCCASIONS}{joined(each.occasions)}" if each.occasions else ""
    return (
        f"- **{each.kind}** ({each.severity}, {each.scope}{_elsewhere(each)}{pinned}) {text} — said {each.valid_from},"
        f" first seen {each.created_at}, from {sources} ^{each.id}-r{each.revision}{when}"
    )


def _elsewhere(each: Remembered) -> str:
    """The conversation that it holds in, where a note says so and not the conversation itself."""
    told = each.scope is Scope.CONVERSATION and any(is_session(key.rpartition("@")[0]) for key, _ in each.sources)
    return f" of {_quoted(each.scope_id)}" if told else ""


def _parse_memory(line: str, session_key: str, project_id: str) -> Remembered:
    found = _MEMORY.fullmatch(line)
    if found is None:
        raise BadBody(f"no memory: {line[:80]}")
    kind, severity, scope, within, pinned, text, said, seen, sources, name, revision = found.groups()
    try:
        ranges = Scope(scope)
        return Remembered(
            id=name,
            revision=int(revision),
            kind=MemoryKind(kind),
            text=re.sub(r"\\(.)", lambda each: "\n" if each[1] == "n" else each[1], text),
            severity=Severity(severity),
            scope=ranges,
            scope_id=ranges.id(project_id, _unquoted(within or "") or session_key),
            created_at=Timestamp(seen),
            valid_from=Timestamp(said),
            sources=tuple((session_key, _entry(source)) for source in sources.split(",") if source),
            pinned=bool(pinned),
        )
    except ValueError as error:
        raise BadBody(f"{error}: {line[:80]}") from None


def _entry(source: str) -> str:
    return "" if source == _UNKNOWN else _unquoted(source)


# Compactions


def compaction(title: str, links: Sequence[tuple[str, str]], at: Timestamp, uuid: str, text: str) -> str:
    """What an agent put in the place of its history, under its time and id."""
    heading = f"### compaction · {at} · {_quoted(uuid)}"
    return f"{_opening(title, links)}\n\n{heading}\n\n{_escaped(text, _COMPACTION_LIKE)}"


def parse_compaction(body: str) -> tuple[Timestamp, str, str]:
    """Its time, its id and its text. BadBody when it has not each of them once."""
    found = list(_sections(body, _COMPACTION, _COMPACTION_LIKE))
    if len(found) != 1:
        raise BadBody("a compaction has one heading with its time and its id")
    ((heading, text),) = found
    return Timestamp(heading[1]), _unquoted(heading[2]), text


# All of them


def _opening(title: str, links: Sequence[tuple[str, str]]) -> str:
    return f"# {title}\n\n" + " ".join(wikilink(path, label) for path, label in links)


def _quoted(text: str, more: str = "") -> str:
    return quote(text, safe=_SAFE + more, errors="surrogatepass")


def _unquoted(text: str) -> str:
    try:
        return unquote(text, errors="surrogatepass")
    except UnicodeDecodeError:
        raise BadBody(f"not as it was quoted: {text[:80]}") from None


def _escaped(text: str, like: re.Pattern[str]) -> str:
    return "\n".join(f"\\{line}" if like.match(line) else line for line in text.split("\n"))


def _sections(body: str, heading: re.Pattern[str], like: re.Pattern[str]) -> Iterator[tuple[re.Match[str], str]]:
    """Each heading with the text below it: without the blank line after the one and that before the next."""
    lines = body.split("\n")
    starts = [(at, found) for at, line in enumerate(lines) if (found := heading.fullmatch(line))]
    for number, (at, found) in enumerate(starts):
        end = starts[number + 1][0] - 1 if number + 1 < len(starts) else len(lines)
        text = (line[1:] if line.startswith("\\") and like.match(line) else line for line in lines[at + 2 : end])
        yield found, "\n".join(text)
