"""Which memories go into a block, and which blocks leave the history for it. Pure.

- A memory is held back while the same revision of it is visible and at most `context_window_depth` turns old. A block
  that leaves frees its memories, in the same turn.
- The cap counts blocks, the budgets count tokens, and all hold. Blocks leave oldest first, and only for another one.
- What replaces a line that was shown comes first, then a `must` or `do_not`: it is rather shortened than left out.
- What says nearly the same as a better line of the same block is left out; across blocks only id and revision count.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from recollect.inject import render
from recollect.inject.values import Given, Held, InjectorConfig, Line, Section
from recollect.near import sense
from recollect.text import content_words, estimate_tokens, overlap
from recollect.types import Remembered, Severity

BINDING = (Severity.MUST, Severity.DO_NOT)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A memory that may be given. Candidates come best first."""

    memory: Remembered
    section: Section
    score: float
    reason: str
    replaces: bool = False  # a line that was shown, and would else be gone without a word


@dataclass(frozen=True, slots=True)
class Seen:
    """A block that is in the history."""

    age: int  # turns
    tokens: int
    keys: frozenset[tuple[str, int]]  # id and revision of its lines


@dataclass(frozen=True, slots=True)
class Plan:
    given: Given
    dropped: int  # blocks that leave, from the oldest


def plan(candidates: Sequence[Candidate], seen: Sequence[Seen], config: InjectorConfig) -> Plan:
    """For a history that we write: `seen` from the oldest."""
    cap, most = config.max_injected_blocks_in_history, config.max_tokens_total
    room = min(config.max_tokens_per_block, most)
    dropped = max(0, len(seen) - cap)
    while True:
        given = choose(candidates, visible(seen[dropped:], config), config, room)
        needed = dropped
        while needed < len(seen) and (
            len(seen) - needed + bool(given.lines) > max(cap, 1)
            or sum(each.tokens for each in seen[needed:]) + given.tokens > most
        ):
            needed += 1
        if needed == dropped:
            return Plan(given, dropped)
        dropped = needed


def visible(seen: Iterable[Seen], config: InjectorConfig) -> dict[tuple[str, int], int]:
    """What is held back → how many turns ago it was given."""
    ages: dict[tuple[str, int], int] = {}
    for each in seen:
        if each.age <= config.context_window_depth:
            ages |= {key: min(each.age, ages.get(key, each.age)) for key in each.keys}
    return ages


def choose(
    candidates: Sequence[Candidate], held_back: dict[tuple[str, int], int], config: InjectorConfig, room: int
) -> Given:
    """The best that fit into `room` tokens."""
    first: dict[str, Candidate] = {}
    for each in candidates:
        first.setdefault(each.memory.id, each)
    held, free = [], []
    for each in first.values():
        age = held_back.get((each.memory.id, each.memory.revision))
        if age is None:
            free.append(each)
        else:
            held.append(_held(each, f"visible: given {_turns(age)} ago"))
    must = [each for each in free if each.replaces or each.memory.severity in BINDING]
    must.sort(key=lambda each: not each.replaces)
    length = _share(must[: config.max_total], room)
    chosen: list[Line] = []
    for each in [*must, *(each for each in free if each not in must)]:
        made = _line(each, length if each in must else render.LONGEST)
        if reason := _refused(made, chosen, config, room):
            held.append(_held(each, reason))
        else:
            chosen.append(made)
    text = render.rendered(chosen)
    return Given(text, estimate_tokens(text), tuple(chosen), tuple(held))


def _share(must: Sequence[Candidate], room: int) -> int:
    """So long may the texts be, for all of them to fit."""
    for tokens in render.LENGTHS:
        text = render.block((each.section, render.line(each.memory, tokens)) for each in must)
        if estimate_tokens(text) <= room:
            return tokens
    return render.LENGTHS[-1]


def _refused(made: Line, chosen: Sequence[Line], config: InjectorConfig, room: int) -> str:
    """Why a line cannot be added; empty if it can."""
    if not made.text:
        return "nothing in it can be shown"
    if len(chosen) >= config.max_total:
        return f"{config.max_total} memories are the most for a block"
    if estimate_tokens(render.rendered([*chosen, made])) > room:
        return f"no room: {made.tokens} tokens"
    mine = content_words(made.text)
    for other in chosen:
        near = overlap(mine, content_words(other.text))
        if near >= config.semantic_threshold and sense(made.text) == sense(other.text):
            return f"says nearly the same as {other.id}"
    return ""


def _line(each: Candidate, tokens: int) -> Line:
    return replace(
        render.made(each.memory, tokens), section=each.section, score=round(each.score, 3), reason=each.reason
    )


def _held(each: Candidate, reason: str) -> Held:
    return Held(each.memory.id, each.memory.revision, reason)


def _turns(number: int) -> str:
    return "1 turn" if number == 1 else f"{number} turns"
