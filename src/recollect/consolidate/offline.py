"""Consolidation without a model: the files that an agent would keep, made from the typed memories. Pure.

Only current revisions, each once: near-duplicates within a scope become one line with the sources of all. Pinned ones
first, then ranked by use and by recency. Same input, same bytes; no clock. A summary holds statements of its own scope
only and stays within its budget; what does not fit is counted, and stands in the handbook.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from recollect import note
from recollect.consolidate import render
from recollect.consolidate.selection import Selection, latest_first
from recollect.consolidate.topics import TOPICS, topic
from recollect.markdown import displayed
from recollect.near import Near, sense, weigh
from recollect.store.memories import Use
from recollect.text import content_words, estimate_tokens, overlap, sentences
from recollect.types import BINDING, MemoryKind, Remembered, Scope, Stage1

SUMMARY_TOKENS = 2500
HANDBOOK_TOKENS = 60_000  # within the workspace's limit on a file

_SAME = 0.8
_UNUSED = Use(0, "")
_CITED = 3  # sources that a line names: the newest
_RECENT = 8  # conversations under "Recent work"
_LONGEST = 280
_GAP = 1  # token between two lines, or two parts

_SECTIONS = (  # heading, kinds, share of the budget
    ("Rules and preferences", (MemoryKind.CONSTRAINT, MemoryKind.PREFERENCE), 0.4),
    ("Decisions", (MemoryKind.DECISION,), 0.15),
    ("Facts", (MemoryKind.FACT,), 0.15),
    ("How to", (MemoryKind.PROCEDURE,), 0.1),
    ("Lessons", (MemoryKind.LESSON,), 0.1),
    ("Open threads", (MemoryKind.OPEN_THREAD,), 0.05),
)
_WORK = "Recent work"


@dataclass(frozen=True, slots=True)
class Line:
    """A statement with all conversations that make it."""

    memory: Remembered
    sources: tuple[str, ...]  # session keys, the newest first

    def text(self, *, kind: bool, cited: int = _CITED) -> str:
        cites = " ".join(render.cite_source(key) for key in self.sources[:cited])
        said = render.one_line(self.memory.text)
        return f"- {said} ({render.label(self.memory, kind=kind)}) {cites} {render.cite_memory(self.memory.id)}"


def keep(selection: Selection, memories: Sequence[Remembered], uses: Mapping[str, Use]) -> dict[str, str]:
    """path → text of handbook.md, summary.md and every project's summary.md."""
    rows = {each.row.session_key: each.row for each in selection.chosen}
    scopes: dict[tuple[Scope, str], list[Remembered]] = {}
    for memory in memories:
        scopes.setdefault((memory.scope, memory.scope_id), []).append(memory)
    lines = {scope: merged(_ranked(found, uses), rows) for scope, found in scopes.items()}
    everywhere = lines.get((Scope.USER, ""), [])
    paths = render.project_paths(selection, memories)
    files = {render.HANDBOOK: handbook(everywhere, lines, [*paths, ""]), render.SUMMARY: user_summary(everywhere)}
    for project_id, path in paths.items():
        own = [each.row for each in latest_first(selection.chosen) if each.row.project_id == project_id]
        work = [row for row in own if not note.is_session(row.session_id)]  # what a note says stands above
        files[path] = project_summary(project_id, lines.get((Scope.PROJECT, project_id), []), work)
    return files


def merged(ranked: Iterable[Remembered], rows: Mapping[str, Stage1]) -> list[Line]:
    """The first of every group of near-duplicates, with the sources of the group, in order."""
    memories = list(ranked)
    said = [content_words(memory.text) for memory in memories]
    near: Near[int] = Near(weigh(said), _SAME)
    groups: list[list[Remembered]] = []
    for memory, mine in zip(memories, said, strict=True):
        likes = [
            number
            for words, number in near.within(mine)
            if overlap(words, mine) >= _SAME and _same(groups[number][0], memory)
        ]
        if likes:
            groups[min(likes)].append(memory)
            continue
        near.add(mine, len(groups))
        groups.append([memory])
    return [Line(group[0], _sources(group, rows)) for group in groups]


def handbook(
    everywhere: Sequence[Line], lines: Mapping[tuple[Scope, str], Sequence[Line]], projects: Sequence[str]
) -> str:
    """Everything that is known, by project and topic."""
    parts = ["# Handbook\n\nWhat is known, by project and topic. Every line names where it was said."]
    room = HANDBOOK_TOKENS - estimate_tokens(parts[0])
    chapters = [("Everywhere", everywhere)]
    for project_id in projects:
        title = render.title(project_id) or "Outside of any project"
        chapters.append((title, lines.get((Scope.PROJECT, project_id), ())))
    chapters = [(title, found) for title, found in chapters if found]
    left_out = 0
    for number, (title, found) in enumerate(chapters):
        share = room // (len(chapters) - number)  # what a chapter does not need goes to the next
        chapter, left = _chapter(title, found, share)
        if left < 0:  # not even its heading fits
            left_out += 1
            continue
        parts.append(chapter)
        room -= share - left
    if left_out:
        parts.append(f"_{left_out} more projects are not shown._")
    if len(parts) == 1:
        parts.append("Nothing is known yet.")
    return "\n\n".join(parts) + "\n"


def user_summary(lines: Sequence[Line]) -> str:
    intro = "# In every project"
    if not lines:
        return f"{intro}\n\nNothing yet that holds in every project.\n"
    return _summary(intro, _sections(lines), ())


def project_summary(project_id: str, lines: Sequence[Line], rows: Sequence[Stage1]) -> str:
    """What a new session in the project should know."""
    intro = f"# {render.title(project_id)}"
    recent = [work for row in rows[:_RECENT] if (work := _work(row))]
    if not lines and not recent:
        return f"{intro}\n\nNothing is known about this project yet.\n"
    return _summary(intro, _sections(lines), recent)


# Ranking and merging


def _ranked(memories: Iterable[Remembered], uses: Mapping[str, Use]) -> list[Remembered]:
    ordered = sorted(memories, key=lambda memory: memory.id)

    def rank(memory: Remembered) -> tuple[bool, int, str, str]:
        use = uses.get(memory.id, _UNUSED)
        return memory.pinned, use.count, use.last, memory.valid_from

    return sorted(ordered, key=rank, reverse=True)


def _same(one: Remembered, other: Remembered) -> bool:
    return (one.kind, one.severity, sense(one.text)) == (other.kind, other.severity, sense(other.text))


def _sources(group: Iterable[Remembered], rows: Mapping[str, Stage1]) -> tuple[str, ...]:
    keys = {key for memory in group for key, _ in memory.sources if key in rows}
    return tuple(sorted(sorted(keys), key=lambda key: rows[key].source_updated_at, reverse=True))


# Layout


def _chapter(title: str, lines: Sequence[Line], room: int) -> tuple[str, int]:
    """The chapter and what it leaves of the room, headings included; lines are taken by rank and set by topic."""
    topics: dict[str, list[str]] = {}
    left_out = 0
    room -= estimate_tokens(f"## {title}") + estimate_tokens(_more(len(lines))) + 2 * _GAP
    for line in lines:
        text, name = line.text(kind=True), topic(line.memory.text)
        cost = estimate_tokens(text) + _GAP
        if name not in topics:
            cost += estimate_tokens(_heading(name)) + _GAP
        if cost > room:
            left_out += 1
            continue
        room -= cost
        topics.setdefault(name, []).append(text)
    parts = [f"## {title}"]
    parts += [_heading(name) + "\n".join(topics[name]) for name in TOPICS if name in topics]
    if left_out:
        parts.append(_more(left_out))
    return "\n\n".join(parts), room


def _heading(name: str) -> str:
    return f"### {name}\n\n"


def _more(left_out: int) -> str:
    return f"_{left_out} more, less used, are not shown._"


def _sections(lines: Sequence[Line]) -> list[tuple[str, list[Line], float]]:
    sections = []
    for heading, kinds, share in _SECTIONS:
        found = [line for line in lines if line.memory.kind in kinds]
        found.sort(key=lambda line: not line.memory.pinned and line.memory.severity not in BINDING)  # stable: by rank
        if found:
            sections.append((heading, found, share))
    return sections


def _summary(intro: str, sections: Sequence[tuple[str, list[Line], float]], recent: Sequence[str]) -> str:
    """Every section gets its share; what it does not need goes to the others, in order."""
    offered = [
        (heading, [line.text(kind=False, cited=1) for line in found], share) for heading, found, share in sections
    ]
    if recent:
        offered.append((_WORK, list(recent), 0.1))
    frame = [f"## {heading}\n\n_{len(texts)} more in handbook.md_" for heading, texts, _ in offered]
    room = SUMMARY_TOKENS - estimate_tokens("\n\n".join([intro, *frame])) - len(frame)
    taken: list[set[int]] = [set() for _ in offered]
    for shares in ([share for _, _, share in offered], [1.0] * len(offered)):
        whole = room
        for (_, texts, _), mine, share in zip(offered, taken, shares, strict=True):
            limit = min(room, int(whole * share))
            for number, text in enumerate(texts):
                cost = estimate_tokens(text) + 1
                if number not in mine and cost <= limit:
                    limit, room = limit - cost, room - cost
                    mine.add(number)
    return _set(intro, offered, taken)


def _set(intro: str, offered: Sequence[tuple[str, list[str], float]], taken: Sequence[set[int]]) -> str:
    parts = [intro]
    for (heading, texts, _), mine in zip(offered, taken, strict=True):
        lines = "\n".join(texts[number] for number in sorted(mine))
        left_out = len(texts) - len(mine)
        more = f"_{left_out} more in handbook.md_" if left_out and heading != _WORK else ""
        if lines or more:
            parts.append("\n\n".join(part for part in (f"## {heading}", lines, more) if part))
    return "\n\n".join(parts) + "\n"


def _work(row: Stage1) -> str:
    """One line about a conversation; empty when there is nothing to tell."""
    told = render.flat(row.rollout_summary)
    first = ""
    for sentence in sentences(told):
        if first and len(first) + len(sentence) > _LONGEST:
            break
        first = f"{first} {sentence}".strip()
    text = displayed((first or render.flat(row.memory_sentence))[:_LONGEST].strip())
    return f"- {row.source_updated_at[:10]}: {text} {render.cite_source(row.session_key)}" if text else ""
