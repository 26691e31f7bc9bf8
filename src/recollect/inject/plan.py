"""Which memories go into a block, and which blocks leave the history for it. Pure.

- A memory is held back while the same revision of it is visible and at most `context_window_depth` turns old. A block
  that leaves frees its memories, in the same turn.
- The cap counts blocks, the budgets count tokens, and all hold. Blocks leave oldest first, and only for another one.
- What replaces a line that was shown comes first, whatever the most for a block is, then a `must` or `do_not`: both are
  rather shortened than left out.
- A turn that goes on gets the same bytes: what it was given already stays, in its place and at its length.
- What says nearly the same as a better line of the same block is left out, of all these only what says the very same;
  across blocks only id and revision count.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from recollect.inject import render
from recollect.inject.values import Given, Held, InjectorConfig, Line
from recollect.near import alike
from recollect.text import estimate_tokens


@dataclass(frozen=True, slots=True)
class Seen:
    """A block that is in the history."""

    age: int  # turns
    tokens: int
    keys: frozenset[tuple[str, int]]  # id and revision of its lines
    start: bool = False  # it was given before the first prompt


@dataclass(frozen=True, slots=True)
class Plan:
    given: Given
    dropped: int  # blocks that leave, from the oldest


def plan(candidates: Sequence[Line], seen: Sequence[Seen], config: InjectorConfig) -> Plan:
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
    candidates: Sequence[Line],
    held_back: dict[tuple[str, int], int],
    config: InjectorConfig,
    room: int,
    reserve: int = 0,
    *,
    whole: bool = False,
) -> Given:
    """Of whole lines, best first, those that fit into `room` tokens, the last `reserve` of which are for what is firm;
    `whole`: no line is cut, and one that does not fit is left out."""
    first: dict[str, Line] = {}
    for each in candidates:
        first.setdefault(each.id, each)
    held, free = [], []
    for each in first.values():
        age = held_back.get((each.id, each.revision))
        if age is None:
            free.append(each)
        else:
            held.append(_held(each, f"visible: given {_turns(age)} ago"))
    free.sort(key=lambda each: (not each.replaces, not each.place, not each.firm))
    most = max(config.max_total, sum(each.replaces or each.place > 0 for each in free))
    length = render.WHOLE if whole else _share([each for each in free if each.firm][:most], room)
    longest = render.WHOLE if whole else render.LONGEST
    chosen: list[tuple[Line, Line]] = []
    for each in free:
        made = render.shown(each, each.length or (length if each.firm else longest))
        if len(chosen) >= most:
            held.append(_held(each, f"{most} memories are the most for a block"))
        elif reason := _refused(each, made, [line for _, line in chosen], config, room - reserve * (not each.firm)):
            held.append(_held(each, reason))
        else:
            chosen.append((each, made))
    chosen.sort(key=lambda pair: pair[0].place or len(free) + 1)
    lines = tuple(line for _, line in chosen)
    text = render.rendered(lines)
    return Given(text, estimate_tokens(text), lines, tuple(held))


def _share(must: Sequence[Line], room: int) -> int:
    """So long may the texts be, for all of them to fit."""
    for tokens in render.LENGTHS:
        text = render.rendered([render.shown(each, each.length or tokens) for each in must])
        if estimate_tokens(text) <= room:
            return tokens
    return render.LENGTHS[-1]


def _refused(each: Line, made: Line, chosen: Sequence[Line], config: InjectorConfig, room: int) -> str:
    """Why a line cannot be added; empty if it can."""
    if not made.text:
        return "nothing in it can be shown"
    if estimate_tokens(render.rendered([*chosen, made])) > room:
        return f"no room: {made.tokens} tokens"
    share = 2.0 if each.firm else config.semantic_threshold
    return next((f"says nearly the same as {other.id}" for other in chosen if repeats(made, other, share)), "")


def repeats(one: Line, other: Line, share: float) -> bool:
    """Does a line say what another one says: the very same, or nearly, by this share of their words?"""
    return (one.text, one.severity) == (other.text, other.severity) or alike(one.text, other.text, share)


def _held(each: Line, reason: str) -> Held:
    return Held(each.id, each.revision, reason)


def _turns(number: int) -> str:
    return "1 turn" if number == 1 else f"{number} turns"
