"""Turn memory as the blocks that agents read. Pure: the same values give the same bytes, relative ages only on request.

Whatever people or models wrote stands on one line behind a mark of ours, without control characters: it can neither
begin a block nor end one. What does not fit a budget is left out from the oldest on, what binds comes last to go, and
a line says that something is missing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import partial
from typing import Any

from recollect.blocks import PREFIX, escape, strip_blocks
from recollect.errors import UsageError
from recollect.text import estimate_tokens, plain
from recollect.turns.values import (
    Feedback,
    Fingerprint,
    Item,
    Opinion,
    Origin,
    PriorTurn,
    SaidSignal,
    TurnMemory,
    settled,
    shown,
    signal,
)
from recollect.types import Timestamp, moment, parse_timestamp

NEWEST_FIRST = "newest->oldest"
NOTHING = "(none)"
_LONGEST = 320  # characters of one text in a line
_TABLE = ("| turn_id | when | objective | items | feedback |", "| --- | --- | --- | --- | --- |")
_UNREAD = "(older rules were not read: there are too many turns that hold some)"
_BIDI = re.compile("[\u202a-\u202e\u2066-\u2069\u200e\u200f\ufeff]")


Group = tuple[list[str], Callable[[], list[str]]]  # lines of one turn; those of them that bind


class ViewRole(StrEnum):
    """Who reads a view."""

    GATE = "gate"
    RECONCILER = "reconciler"
    DOWNSTREAM = "downstream"
    FINAL = "final"  # the final answer generator: alone in seeing assistant signals


@dataclass(frozen=True, slots=True)
class Block:
    heading: str
    lines: tuple[str, ...]
    left_out: int = 0  # turns, reactions or signals that did not fit

    @property
    def text(self) -> str:
        return "\n".join((self.heading, *(self.lines or (NOTHING,))))

    @property
    def tokens(self) -> int:
        return estimate_tokens(self.text)


@dataclass(frozen=True, slots=True)
class View:
    """What one agent is given."""

    role: ViewRole
    blocks: tuple[Block, ...]

    @property
    def text(self) -> str:
        return "\n\n".join(block.text for block in self.blocks)

    @property
    def tokens(self) -> int:
        return estimate_tokens(self.text)


def inert(text: str, longest: int = _LONGEST) -> str:
    """One line of plain text, whatever it was."""
    if not text.isprintable() or PREFIX in text:
        text = _BIDI.sub("", plain(escape(strip_blocks(text))))
    flat = " ".join(text.split())
    return flat if len(flat) <= longest else flat[: longest - 1].rstrip() + "…"


def heading(name: str, *labels: str) -> str:
    told = "; ".join(label for label in labels if label)
    return f"[{name} — CHRONOLOGICAL ({told})]" if told else f"[{name} — CHRONOLOGICAL]"


def _scope(label: str) -> str:
    return f"scope={label}" if label else ""


def when(at: Timestamp, now: datetime | None) -> str:
    if now is None or not at:
        return f"{at[:10]} {at[11:16]}" if at else "?"
    minutes = max(int((now - moment(at)).total_seconds() // 60), 0)
    for unit, size in (("d", 1440), ("h", 60)):
        if minutes >= size:
            return f"{minutes // size}{unit} ago"
    return f"{minutes}m ago"


def _is_oldest_first(order_label: str) -> bool:
    return order_label.strip().lower().startswith("oldest")


# The three blocks of memory


def format_turn_memories_block(
    turn_memories: Sequence[TurnMemory | Mapping[str, Any]],
    *,
    order_label: str = NEWEST_FIRST,
    scope_label: str = "conversation",
    now: datetime | None = None,
    budget: int | None = None,
) -> str:
    """What the user asserted. Contradictions are resolved: the newest stands and says what it replaced.

    Takes turn memories or their JSON (`turn_id`, `at` or `made_at`, and the fingerprint's keys). With `now`, ages.
    """
    given = [each if isinstance(each, TurnMemory) else _memory(each) for each in turn_memories]
    return memories_block(given, order_label=order_label, scope_label=scope_label, now=now, budget=budget).text


def memories_block(
    memories: Sequence[TurnMemory],
    *,
    current: TurnMemory | None = None,
    order_label: str = NEWEST_FIRST,
    scope_label: str = "conversation",
    now: datetime | None = None,
    budget: int | None = None,
    unread: bool = False,
) -> Block:
    """`current` is not shown; where it says otherwise than the others, it replaces them and a line says so. `unread`:
    there may be more that binds, and a line says that, too."""
    every = settled([*memories, *((current,) if current else ())])
    ordered = [each for each in every if each.fingerprint.items and (current is None or each.turn != current.turn)]
    head = heading("TURN MEMORIES", order_label, _scope(scope_label))
    groups: list[Group] = [
        (_memory_lines(each, now), partial(_memory_lines, each, now, binding=True)) for each in ordered
    ]
    for each in every if current else ():
        if current is not None and each.turn == current.turn and each.replaced:
            told = [f"  - {inert(said)} [newest; {inert(note)}]" for said, note in each.replaced.items()]
            lines = [f"- {inert(each.ref, 120)} (current turn)", *told]
            groups.insert(0, (lines, partial(list, lines)))
    return _fitted(head, groups, order_label, budget, "turns", after=(_UNREAD,) if unread else ())


def _memory(told: Mapping[str, Any]) -> TurnMemory:
    inside = told.get("fingerprint")
    made = Fingerprint.of(inside if isinstance(inside, Mapping) else told)
    return TurnMemory(str(told.get("turn_id") or told.get("turn") or "?"), _at(told), made)


def _at(told: Mapping[str, Any]) -> Timestamp:
    """As times are compared everywhere: the newest holds."""
    at = told.get("at") or told.get("ts") or told.get("made_at")
    try:
        return parse_timestamp(str(at)) if at else Timestamp("")
    except ValueError as error:
        raise UsageError(f"no time: {error}", hint="Times are ISO-8601; one without a zone is UTC.") from None


def _memory_lines(memory: TurnMemory, now: datetime | None, *, binding: bool = False) -> list[str]:
    items = [each for each in memory.fingerprint.items if each.is_binding or not binding]
    if binding and not items:
        return []
    told = memory.fingerprint
    topics = f" · topics: {inert(', '.join(told.topics), 120)}" if told.topics and not binding else ""
    aim = f" · objective: {inert(told.objective)}" if told.objective and not binding else ""
    lines = [f"- {inert(memory.ref, 120)} · {when(memory.at, now)}{aim}{topics}"]
    return lines + [f"  - {_item(each)}{_note(memory, each)}" for each in items]


def _item(each: Item) -> str:
    places = f"; applies_to={inert(', '.join(each.applies_to), 120)}" if each.applies_to else ""
    said = f"{inert(each.key, 80)}: {inert(shown(each.value))}"
    return f"{each.kind} · {each.severity} · {said} (scope={each.scope}{places})"


def _note(memory: TurnMemory, each: Item) -> str:
    note = memory.replaced.get(each.text, "")
    return f" [newest; {inert(note, 200)}]" if note else ""


def format_feedback_block(
    feedback: Sequence[Feedback | Mapping[str, Any]],
    *,
    order_label: str = NEWEST_FIRST,
    scope_label: str = "conversation",
    now: datetime | None = None,
    budget: int | None = None,
) -> str:
    """What the user thought of earlier answers, and what machines are sure enough of."""
    given = [each if isinstance(each, Feedback) else _feedback(each) for each in feedback]
    return feedback_block(given, order_label=order_label, scope_label=scope_label, now=now, budget=budget).text


def feedback_block(
    feedback: Sequence[Feedback],
    *,
    order_label: str = NEWEST_FIRST,
    scope_label: str = "conversation",
    now: datetime | None = None,
    budget: int | None = None,
) -> Block:
    counted = sorted((each for each in feedback if each.counts), key=lambda each: (each.at, each.turn_id), reverse=True)
    head = heading("USER FEEDBACK", order_label, _scope(scope_label))
    groups: list[Group] = []
    for each in counted:
        said = f": {inert(each.text)}" if each.text.strip() else ""
        sure = f" (confidence {each.confidence:.2f})" if each.origin is Origin.MACHINE else ""
        lines = [f"- {inert(each.turn_id, 120)} · {when(each.at, now)} · {each.origin} · {each.reaction}{sure}{said}"]
        groups.append((lines, list))
    return _fitted(head, groups, order_label, budget, "reactions")


def _feedback(told: Mapping[str, Any]) -> Feedback:
    try:
        return Feedback(
            turn_id=str(told.get("turn_id", "?")),
            reaction=Opinion(told.get("reaction", "neutral")),
            text=str(told.get("text") or ""),
            confidence=float(told.get("confidence", 1.0)),
            origin=Origin(told.get("origin", "user")),
            at=_at(told),
        )
    except (TypeError, ValueError) as error:
        raise UsageError(f"no reaction: {error}", hint=f"`reaction` is one of {', '.join(Opinion)}.") from None


def format_assistant_signals_block(
    signals: Sequence[SaidSignal | Mapping[str, Any]],
    *,
    order_label: str = NEWEST_FIRST,
    scope_label: str = "user_cross_conversation",
    now: datetime | None = None,
    budget: int | None = None,
) -> str:
    """What the assistant already promoted or claimed to this user, so that it does not do so again."""
    given = [each if isinstance(each, SaidSignal) else _signal(each) for each in signals]
    return signals_block(given, order_label=order_label, scope_label=scope_label, now=now, budget=budget).text


def signals_block(
    signals: Sequence[SaidSignal],
    *,
    order_label: str = NEWEST_FIRST,
    scope_label: str = "user_cross_conversation",
    now: datetime | None = None,
    budget: int | None = None,
) -> Block:
    ordered = sorted(signals, key=lambda each: (each.at, each.conversation, each.turn_id), reverse=True)
    head = heading("ASSISTANT SIGNALS", order_label, _scope(scope_label))
    groups: list[Group] = []
    for each in ordered:
        where = inert(f"{each.conversation}/{each.turn_id}" if each.conversation else each.turn_id, 120)
        said = f"{inert(each.signal.key, 80)}: {inert(shown(each.signal.value))}"
        groups.append(([f"- {where} · {when(each.at, now)} · {each.signal.severity} · {said}"], list))
    return _fitted(head, groups, order_label, budget, "signals")


def _signal(told: Mapping[str, Any]) -> SaidSignal:
    inside = {name: told[name] for name in ("severity", "scope", "applies_to") if told.get(name) is not None}
    said = signal(str(told.get("key") or ""), told.get("value", ""), **inside)
    return SaidSignal(said, str(told.get("turn_id") or "?"), str(told.get("conversation") or ""), _at(told))


# The blocks around them


def current_block(turn_id: str, user_text: str, *, budget: int | None = None) -> Block:
    """What is too long for the budget ends with `…`."""
    head, name, said = "[CURRENT TURN]", f"- {inert(turn_id, 120)} · user: ", inert(user_text, 4_000) or NOTHING
    if budget is not None and estimate_tokens(f"{head}\n{name}{said}") > budget:
        left = max(budget - estimate_tokens(f"{head}\n{name}…"), 0)
        said = said.encode()[: left * 7 // 2].decode(errors="ignore").rstrip() + "…"
    return Block(head, (f"{name}{said}",))


def prior_block(prior: Sequence[PriorTurn], *, now: datetime | None = None, budget: int | None = None) -> Block:
    head = "[PRIOR TURNS (newest->oldest) - COMPRESSED VIEWS]"
    groups: list[Group] = [
        (
            [
                f"- {inert(each.turn_id, 120)} · {when(each.at, now)}",
                f"  - user: {inert(each.user) or NOTHING}",
                f"  - assistant: {inert(each.assistant) or NOTHING}",
            ],
            list,
        )
        for each in prior
    ]
    return _fitted(head, groups, NEWEST_FIRST, budget, "turns")


def candidates_block(
    memories: Sequence[TurnMemory],
    feedback: Sequence[Feedback],
    *,
    now: datetime | None = None,
    budget: int | None = None,
) -> Block:
    """The turns whose memories may be chosen: their ids are the only ones that count."""
    thought = {each.turn_id: each.reaction for each in reversed(feedback) if each.counts}
    groups: list[Group] = []
    for each in memories:
        told = each.fingerprint
        keys = ", ".join(dict.fromkeys(one.key for one in told.items))
        liked = "" if each.conversation else str(thought.get(each.turn_id, ""))
        cells = (each.ref, when(each.at, now), told.objective, keys, liked)
        row = " | ".join(inert(cell, 160).replace("|", "¦") for cell in cells)
        groups.append(([f"| {row} |"], list))
    return _fitted("[TURNS CANDIDATES TABLE]", groups, NEWEST_FIRST, budget, "turns", before=_TABLE if groups else ())


def _fitted(
    head: str,
    groups: Sequence[Group],
    order_label: str,
    budget: int | None,
    what: str,
    *,
    before: Sequence[str] = (),
    after: Sequence[str] = (),
) -> Block:
    """What binds first, line by line, then the newest as long as nothing that binds is missing; in the order asked
    for. `before` heads what is shown, `after` is always there."""
    every = [line for full, _ in groups for line in full]
    if budget is None or estimate_tokens("\n".join((head, *before, *every, *after))) <= budget:
        chosen = [full for full, _ in groups]
        lines = [line for each in (reversed(chosen) if _is_oldest_first(order_label) else chosen) for line in each]
        return Block(head, (*before, *lines, *after))
    notice = f"(… {what} left out: the budget is {budget} tokens, and they are the oldest)"
    left = budget - estimate_tokens("\n".join((head, *before, notice, *after, "0000")))
    kept: list[list[str]] = [[] for _ in groups]
    full_up = False
    for place, (_, bind) in enumerate(groups):  # newest first
        binding = bind()
        for line in binding[1:]:
            more = [line] if kept[place] else [binding[0], line]
            if _cost(more) <= left:
                kept[place], left = [*kept[place], *more], left - _cost(more)
            else:
                full_up = True
    missing = 0
    for place, (full, _) in enumerate(groups):
        if kept[place] == full:
            continue
        cost = _cost(full) - _cost(kept[place])
        if not full_up and cost <= left:
            kept[place], left = full, left - cost
        else:
            full_up, missing = True, missing + 1
    ordered = reversed(kept) if _is_oldest_first(order_label) else kept
    lines = [line for each in ordered for line in each]
    before = before if lines else ()
    return Block(head, (*before, *lines, notice.replace("…", str(missing), 1), *after), missing)


def _cost(lines: Sequence[str]) -> int:
    return sum(estimate_tokens(line + "\n") for line in lines)
