"""Bodies of transcripts, summaries and compactions: Markdown for a person, and read back into the same values. Pure.

A body is a title, a line of links, and sections under headings that we know. Text is inert in it: `markdown` puts a
backslash before whatever a reader would act on, and a line that looks like one of our headings gets one in front; both
go when it is read. Bodies of the first version hold text as it was. Text is expected as `sanitize` leaves it; then
nothing of it is lost.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from urllib.parse import quote, unquote

from recollect.artifacts.names import wikilink
from recollect.errors import ArtifactError
from recollect.markdown import escape_line, escape_markdown, unescape_line, unescape_markdown
from recollect.note import hand_of, is_session
from recollect.occasions import joined, parted
from recollect.types import (
    Author,
    Event,
    Hand,
    Happened,
    MemoryKind,
    Message,
    Remembered,
    Role,
    Scope,
    Severity,
    Timestamp,
    Trust,
)

_MESSAGE = re.compile(
    r"### (user|assistant) · (\S*) · (\S+)((?: · (?:tools|cwd|project_id|branch|authors|events)=\S*)*)"
)
_MESSAGE_LIKE = re.compile(r"\\*### (?:user|assistant) · ")
_COUNT = re.compile(r"\d{1,6}")
_AUTHOR = rf"(?:{'|'.join(Author)}):\d{{1,9}}"
_AUTHORS = re.compile(rf"(?:{_AUTHOR}(?:,{_AUTHOR})*)?")
_EVENT = re.compile(r"> \*\*(\w+)\*\* ?(.*)")
_COMPACTION = re.compile(r"### compaction · (\S+) · (\S+)")
_COMPACTION_LIKE = re.compile(r"\\*### compaction · ")
_SECTIONS = ("Summary", "Memories", "Raw memory")
_SECTION = re.compile(rf"## ({'|'.join(_SECTIONS)})")
_SECTION_LIKE = re.compile(rf"\\*## (?:{'|'.join(_SECTIONS)})$")
_MEMORY = re.compile(
    r"- \*\*(\w+)\*\* \((\w+), (\w+)(?: of ([^\s,)]+))?(?:, (said|chosen|found|noted|passed_on))?(, pinned)?\) "
    r"(.*) — said (\S+), first seen (\S+), from (\S*) \^(\S+)-r(\d+)"
)
_OCCASIONS = "  matters when: "  # on a line of its own, behind its memory
_BLOCK_ID = re.compile(r" \^\S+-r\d+")  # at the end of a memory's last line
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
    """Each message under a heading: role, time, entry's id, tools, its place where that is another, and who wrote how
    much of it; then what it tells by its structure."""
    parts = [_opening(title, links)]
    for each in messages:
        told = [(name, getattr(each, name)) for name in ("cwd", "project_id", "branch")]
        told = [("tools", each.tools or None), *told, ("authors", each.authors or None)]
        told += [("events", str(len(each.events)))] if each.events else []
        extra = "".join(f" · {name}={_quoted(value, ',')}" for name, value in told if value is not None)
        heading = f"### {each.role} · {each.timestamp} · {_quoted(each.uuid)}{extra}"
        events = "\n".join(f"> **{event.kind}** {escape_line(event.text)}" for event in each.events)
        parts.append("\n\n".join([heading, *filter(None, [events]), _escaped(each.text, _MESSAGE_LIKE)]))
    return "\n\n".join(parts)


def parse_transcript(body: str, *, is_escaped: bool = True) -> list[Message]:
    """BadBody when a heading cannot be read."""
    messages = []
    for found, text in _sections(body, _MESSAGE, _MESSAGE_LIKE, is_escaped=False):
        told = (each.split("=", 1) for each in found[4].split(" · ")[1:])
        extra = {name: _unquoted(value) for name, value in told}
        lines = text.split("\n")
        count = extra.pop("events", "0")
        if not (_COUNT.fullmatch(count) and _AUTHORS.fullmatch(extra.get("authors", ""))):
            raise BadBody(f"no message: {found[0][:80]}")
        number = int(count)
        events = tuple(map(_event, lines[:number]))
        text = "\n".join(lines[number + 1 :]) if number else text
        text = unescape_markdown(text) if is_escaped else text
        messages.append(Message(_unquoted(found[3]), Role(found[1]), text, found[2], **extra, events=events))
    return messages


def _event(line: str) -> Event:
    found = _EVENT.fullmatch(line)
    if found is None or found[1] not in [*map(str, Happened)]:
        raise BadBody(f"no event: {line[:80]}")
    return Event(Happened(found[1]), unescape_line(found[2]))


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


def parse_summary(body: str, session_key: str, project_id: str, user: str = "", *, is_escaped: bool = True) -> Summary:
    """The memories of a summary are those of its own conversation: the frontmatter says which, where and whose."""
    sections = {found[1]: text for found, text in _sections(body, _SECTION, _SECTION_LIKE, is_escaped=False)}
    if list(sections) != list(_SECTIONS):
        raise BadBody("a summary has the sections Summary, Memories and Raw memory")
    title = body.partition("\n")[0].removeprefix("#").removeprefix(" ")
    told, raw = sections["Summary"], sections["Raw memory"]
    memories: list[Remembered] = []
    lines = list(filter(None, sections["Memories"].split("\n")))
    for number, line in enumerate(lines):
        if line.startswith(_OCCASIONS) and memories:
            continue
        below = lines[number + 1] if lines[number + 1 :] and lines[number + 1].startswith(_OCCASIONS) else ""
        memories.append(replace(_parse_memory(line, below, (session_key, project_id), is_escaped), user=user))
    if is_escaped:
        title, told, raw = unescape_markdown(title), unescape_markdown(told), unescape_markdown(raw)
    return Summary(title, told, tuple(memories), raw)


def _memory(each: Remembered) -> str:
    text = escape_line(each.text)
    sources = ",".join(_quoted(uuid) or _UNKNOWN for _, uuid in each.sources)
    pinned = ", pinned" if each.pinned else ""
    when = f"\n{_OCCASIONS}{escape_line(joined(each.occasions))}" if each.occasions else ""
    return (
        f"- **{each.kind}** ({each.severity}, {each.scope}{_elsewhere(each)}, {each.trust}{pinned}) {text}"
        f" — said {each.valid_from}, first seen {each.created_at}, from {sources}{when} ^{each.id}-r{each.revision}"
    )


def _elsewhere(each: Remembered) -> str:
    """The conversation that it holds in, where a note says so and not the conversation itself."""
    told = each.scope is Scope.CONVERSATION and any(is_session(key.rpartition("@")[0]) for key, _ in each.sources)
    return f" of {_quoted(each.scope_id)}" if told else ""


def _parse_memory(line: str, below: str, owner: tuple[str, str], is_escaped: bool) -> Remembered:
    """A memory and the line below it, if that tells its occasions. In a body of the first version the block id stands
    before that line."""
    session_key, project_id = owner
    when = below.removeprefix(_OCCASIONS)
    if is_escaped and below:
        when, block_id = when[: when.rfind(" ^")], when[when.rfind(" ^") :]
        line += block_id if _BLOCK_ID.fullmatch(block_id) else ""
        when = unescape_line(when)
    found = _MEMORY.fullmatch(line)
    if found is None:
        raise BadBody(f"no memory: {line[:80]}")
    kind, severity, scope, within, trust, pinned, text, said, seen, sources, name, revision = found.groups()
    try:
        ranges = Scope(scope)
        return Remembered(
            id=name,
            revision=int(revision),
            kind=MemoryKind(kind),
            text=unescape_line(text) if is_escaped else _LINE_BREAK.sub(_unbroken, text),
            severity=Severity(severity),
            scope=ranges,
            scope_id=ranges.id(project_id, _unquoted(within or "") or session_key),
            created_at=Timestamp(seen),
            valid_from=Timestamp(said),
            sources=tuple((session_key, _entry(source)) for source in sources.split(",") if source),
            pinned=bool(pinned),
            occasions=parted(when),
            trust=Trust(trust or _trust_of_old(session_key)),
        )
    except ValueError as error:
        raise BadBody(f"{error}: {line[:80]}") from None


def _trust_of_old(session_key: str) -> Trust:
    """The trust of a memory whose file names none: said in a person's note, noted in an agent's, else found."""
    by = hand_of(session_key.rpartition("@")[0]) if is_session(session_key.rpartition("@")[0]) else Hand.PIPELINE
    return {Hand.PERSON: Trust.SAID, Hand.AGENT: Trust.NOTED}.get(by, Trust.FOUND)


_LINE_BREAK = re.compile(r"\\(.)")  # in a body of the first version


def _unbroken(found: re.Match[str]) -> str:
    return "\n" if found[1] == "n" else found[1]


def _entry(source: str) -> str:
    return "" if source == _UNKNOWN else _unquoted(source)


# Compactions


def compaction(title: str, links: Sequence[tuple[str, str]], at: Timestamp, uuid: str, text: str) -> str:
    """What an agent put in the place of its history, under its time and id."""
    heading = f"### compaction · {at} · {_quoted(uuid)}"
    return f"{_opening(title, links)}\n\n{heading}\n\n{_escaped(text, _COMPACTION_LIKE)}"


def parse_compaction(body: str, *, is_escaped: bool = True) -> tuple[Timestamp, str, str]:
    """Its time, its id and its text. BadBody when it has not each of them once."""
    found = list(_sections(body, _COMPACTION, _COMPACTION_LIKE, is_escaped))
    if len(found) != 1:
        raise BadBody("a compaction has one heading with its time and its id")
    ((heading, text),) = found
    return Timestamp(heading[1]), _unquoted(heading[2]), text


# All of them


def _opening(title: str, links: Sequence[tuple[str, str]]) -> str:
    return f"# {escape_markdown(title)}\n\n" + " ".join(wikilink(path, label) for path, label in links)


def _quoted(text: str, more: str = "") -> str:
    return quote(text, safe=_SAFE + more, errors="surrogatepass")


def _unquoted(text: str) -> str:
    try:
        return unquote(text, errors="surrogatepass")
    except UnicodeDecodeError:
        raise BadBody(f"not as it was quoted: {text[:80]}") from None


def _escaped(text: str, like: re.Pattern[str]) -> str:
    lines = escape_markdown(text).split("\n")
    return "\n".join(f"\\{line}" if like.match(line) else line for line in lines)


def _sections(
    body: str, heading: re.Pattern[str], like: re.Pattern[str], is_escaped: bool
) -> Iterator[tuple[re.Match[str], str]]:
    """Each heading with the text below it: without the blank line after the one and that before the next."""
    lines = body.split("\n")
    starts = [(at, found) for at, line in enumerate(lines) if (found := heading.fullmatch(line))]
    for number, (at, found) in enumerate(starts):
        end = starts[number + 1][0] - 1 if number + 1 < len(starts) else len(lines)
        text = (line[1:] if line.startswith("\\") and like.match(line) else line for line in lines[at + 2 : end])
        yield found, unescape_markdown("\n".join(text)) if is_escaped else "\n".join(text)
