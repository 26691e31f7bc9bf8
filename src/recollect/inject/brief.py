"""The briefing: what a new session is told about its project. Pure.

Memories come first, whole, the most useful first: what is pinned or binds, what the person laid down, then traps,
decisions and procedures before states, and of these what was used, said lately, or speaks of the branch. No two of them
say the same. What the last sessions came to follows, without what a memory told already. A line that does not fit is
left out, and prompts may get it from the first one on.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from textwrap import shorten

from recollect import note
from recollect.inject import render
from recollect.inject.plan import repeats
from recollect.inject.values import ALL, PART, Line, Outcome, Section
from recollect.store.memories import Use
from recollect.text import content_words, sentences
from recollect.types import (
    BINDING,
    Hand,
    MemoryKind,
    Remembered,
    Scope,
    Severity,
    Timestamp,
    Trust,
    moment,
    project_name,
)

ROOM = 9_990  # bytes: below 10,000 characters (Claude Code) and 2,500 tokens of four bytes (Codex)
SESSIONS = 5
_OUTCOMES = 800  # bytes that memories leave to what the last sessions came to
_LONGEST = 300  # bytes of what a session did, and of what it left
_MORE = " …"
_CONSIDERED = 400  # memories, the most useful ones: fewer fit
_ALIKE = 0.8  # share of words in common from which two lines say the same
_TRUSTED = (Trust.SAID, Trust.CHOSEN)
_KINDS = {  # how likely a memory is needed, by what it is
    MemoryKind.CONSTRAINT: 1.0,
    MemoryKind.LESSON: 1.0,
    MemoryKind.DECISION: 0.8,
    MemoryKind.PROCEDURE: 0.8,
    MemoryKind.PREFERENCE: 0.6,
}
_STATE = 0.5
_PREFERRED, _SAID, _NEAR = 0.3, 0.1, 0.5  # what a severity adds, that the person said it, that it is of the branch
_HALF = 365.0  # days after which a memory that nobody uses counts half
_SIGN = 90  # characters of what the last session came to
_ASKED = re.compile(r"^Asked: [^.]*\. (?=\S)")
_FEWEST, _ENOUGH = 3, 40  # words or characters that a line needs to tell by itself what it is about
_BESIDE = 20  # bytes that a line has at least beside its text
_TRUNKS = frozenset({"main", "master", "trunk", "develop", "feature", "feat", "fix", "release"})


@dataclass(frozen=True, slots=True)
class Known:
    """All that a session may be told; nothing of another project."""

    project_id: str  # empty: no project
    memories: Sequence[Remembered]  # current ones of the user and of the project
    uses: Mapping[str, Use] = field(default_factory=dict)
    outcomes: Sequence[Outcome] = ()  # of the project's last sessions, the newest first
    branch: str = ""


def brief(known: Known, now: datetime, visible: Collection[tuple[str, int]] = frozenset()) -> tuple[Line, ...]:
    """The lines, in order. What is `visible` in the session is not told again."""
    room = ROOM - render.size(render.START_FRAME)
    seen = {name for name, _ in visible}
    outcomes = [each for each in known.outcomes if each.session_key not in seen][:SESSIONS]
    reserved = min(_OUTCOMES, sum(render.size(render.row(outcome_line(each, ()))) + 1 for each in outcomes))
    chosen: list[Line] = []
    refs = render.short({each.id for each in known.memories})
    near = content_words(known.branch.replace("/", " ").replace("-", " ").replace("_", " ")) - _TRUNKS
    for memory in _ranked(known, near, now):
        if len(memory.text) + _BESIDE > room - reserved:  # no line is made of what cannot fit
            continue
        line = line_of(memory, _reason(memory, known.uses.get(memory.id), near), refs[memory.id])
        cost = render.size(render.row(line)) + 1
        if cost > room - reserved or not line.text or _is_repeated(line, chosen):
            continue
        if (line.id, line.revision) not in visible:
            room -= cost
        chosen.append(line)
    chosen = [each for each in chosen if (each.id, each.revision) not in visible]
    for number, outcome in enumerate(outcomes):
        line = outcome_line(outcome, [each.text for each in chosen])
        if not number and not line.text:  # the last session is always told
            line = outcome_line(outcome, ())
        cost = render.size(render.row(line)) + 1
        if line.text and cost <= room:
            room -= cost
            chosen.append(line)
    return tuple(sorted(chosen, key=lambda each: render.STARTS.index(each.section)))


def _ranked(known: Known, near: frozenset[str], now: datetime) -> list[Remembered]:
    """The most useful first; `near` are words of the branch."""

    def worth(memory: Remembered) -> tuple[int, float, str]:
        tier = 3 if memory.pinned else 2 if memory.severity in BINDING else int(_is_rule(memory))
        return tier, _worth(memory, known.uses.get(memory.id), near, now), memory.id

    own = [each for each in known.memories if _belongs(each, known.project_id)]
    return sorted(own, key=worth, reverse=True)[:_CONSIDERED]


def _worth(memory: Remembered, use: Use | None, near: frozenset[str], now: datetime) -> float:
    """How likely it is needed: what goes wrong, was decided or asked for before how things are."""
    value = _KINDS.get(memory.kind, _STATE) + _PREFERRED * (memory.severity is not Severity.NONE)
    value += _SAID * (memory.trust in _TRUSTED) + (math.log1p(use.count) / 4 if use else 0.0)
    value += _NEAR * bool(near and near & content_words(memory.text))
    last = Timestamp(max(memory.valid_from, use.last if use else ""))
    days = max(0.0, (now - moment(last)).total_seconds() / 86400)
    return value * math.exp2(-days / _HALF) * (1.0 if _tells(memory.text) else 0.3)


def _tells(text: str) -> bool:
    """Does it tell by itself what it is about?"""
    return len(text) > _ENOUGH or len(content_words(text)) >= _FEWEST


def line_of(memory: Remembered, reason: str, ref: str) -> Line:
    """A memory as a line of the briefing, whole."""
    section = Section.RULE if _is_rule(memory) else Section.NOTE
    return render.made(memory, render.WHOLE, section, reason=reason, ref=ref)


def _belongs(memory: Remembered, project_id: str) -> bool:
    if memory.scope is Scope.PROJECT:
        return bool(project_id) and memory.scope_id == project_id
    return memory.scope is Scope.USER


def _is_rule(memory: Remembered) -> bool:
    laid_down = memory.kind is MemoryKind.CONSTRAINT and note.hand(memory) is Hand.PERSON
    return memory.pinned or memory.severity in BINDING or laid_down


def _reason(memory: Remembered, use: Use | None, near: frozenset[str]) -> str:
    """Why it is told at the start of a session."""
    if memory.pinned:
        return "pinned by a person"
    if memory.severity in BINDING:
        return f"a rule that binds: {memory.severity}"
    if _is_rule(memory):
        return "a rule that a person noted"
    if use and use.count:
        return f"an agent relied on it {'once' if use.count == 1 else f'{use.count} times'}"
    if near and near & content_words(memory.text):
        return "speaks of this branch"
    return "said by the person" if memory.trust in _TRUSTED else f"learnt on {memory.valid_from[:10]}"


def sign(project_id: str, lines: Sequence[Line], now: datetime) -> str:
    """What a person is shown of a briefing, on one line; empty where it tells nothing."""
    notes = sum(each.kind is not None for each in lines)
    about = render.inert(project_name(project_id).rpartition("/")[2]) or "you"
    told = [f"{notes} note{'s' * (notes != 1)} about {about}"] if notes else []
    last = next((each for each in lines if each.section is Section.SESSION), None)
    if last:
        days = (now.date() - date.fromisoformat(last.date)).days
        ago = "today" if days < 1 else "yesterday" if days == 1 else f"{days} days ago"
        told.append(f"last session {ago}: {shorten(_ASKED.sub('', last.text), _SIGN, placeholder=' …')}")
    return f"recollect: {', '.join(told)}" if told else ""


def _is_repeated(line: Line, chosen: Sequence[Line]) -> bool:
    """Of what binds, only the very same words say the same."""
    if line.section is Section.RULE:
        return any(line.text == other.text and line.severity is other.severity for other in chosen)
    return any(repeats(line, other, _ALIKE) for other in chosen)


def outcome_line(
    outcome: Outcome, told: Sequence[str], section: Section = Section.SESSION, longest: int = _LONGEST
) -> Line:
    """What a session came to, without what was told already; what it did and what it left have so many bytes each."""
    done, left = (_unsaid(text, told) for text in (outcome.done, outcome.left))
    shown = [cut(done, longest), cut(left, longest)]
    text = " ".join([*filter(None, shown[:1]), *(f"Left: {each}" for each in shown[1:] if each)])
    revision = ALL if shown == [done, left] else PART
    return render.of_session(outcome, text, section, "what an earlier session came to", revision)


def _unsaid(text: str, told: Iterable[str]) -> str:
    """The sentences that say what no line says yet."""
    known = [content_words(each) for each in told]
    return " ".join(
        render.inert(sentence)
        for sentence in sentences(text)
        if not any(_is_within(content_words(sentence), each) for each in known)
    )


def _is_within(one: frozenset[str], other: frozenset[str]) -> bool:
    return len(one & other) >= _ALIKE * len(one)


def cut(text: str, longest: int) -> str:
    """The sentences from the beginning that fit into so many bytes; of a first one that does not, its clauses, or its
    words."""
    if render.size(text) <= longest:
        return text
    kept = ""
    for sentence in sentences(text):
        if render.size(f"{kept} {sentence}".strip()) > longest:
            break
        kept = f"{kept} {sentence}".strip()
    if kept:
        return kept
    begun = text.encode()[: longest - render.size(_MORE)].decode(errors="ignore")
    ends = (begun.rfind("; "), begun.rfind(", "), begun.rfind(" "), len(begun))
    return begun[: next(each for each in ends if each > len(begun) // 2)].rstrip(" ,;") + _MORE
