"""The injector: four calls around a turn, for whoever owns the message list.

    prepared = injector.prepare(history, prompt)      the history to send; the caller's list stays as it is
    history = injector.commit(response)               the turn succeeded: the history to keep
    injector.abort()                                  it did not: nothing has happened
    injector.strip(history)                           without any block

What is visible follows from the history alone. A restart, a fork or a truncation needs no bookkeeping; what is kept of
a turn, after it succeeded, is only there to be shown.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from recollect.blocks import escape
from recollect.errors import RecollectError, UsageError
from recollect.inject import render, window
from recollect.inject.formats import Format, Role, detect, sendable
from recollect.inject.plan import Plan, Seen, plan
from recollect.inject.select import Selection
from recollect.inject.values import Given, Line, Prepared
from recollect.inject.window import Block
from recollect.text import estimate_tokens
from recollect.types import Remembered

log = logging.getLogger(__name__)

EXCHANGES = 3  # before the prompt, that search may look at


@dataclass(frozen=True, slots=True)
class _Visible:
    """A block of the history, and what it may still say."""

    block: Block
    lines: tuple[Line, ...]  # those that hold
    text: str  # of them alone
    gone: tuple[str, ...]  # ids of lines that left

    @property
    def keys(self) -> frozenset[tuple[str, int]]:
        return frozenset((each.id, each.revision) for each in self.lines)


class Injector:
    """For one conversation. `record` is told what was given, once the turn succeeded."""

    def __init__(self, selection: Selection, record: Callable[[Given], None], form: str = "") -> None:
        self._selection = selection
        self._record = record
        self._form = form
        self._pending: tuple[Format, Prepared] | None = None
        self._noted = ""  # the block of a turn that goes on: it is recorded once
        self._kept: set[str] = set()  # blocks that were in the history when it was last committed: to notice, no more

    def prepare(self, history: Sequence[Any], prompt: Any = None) -> Prepared:
        """`prompt` is a text, a message or several of them (results of tools, say); without one it is the last message
        of a user in the history."""
        self._pending = None
        form = detect(history, prompt, self._form)
        whole, first, at = _asked(form, history, prompt)
        blocks = window.blocks(form, whole, at)
        current = self._selection.current(line.id for each in blocks for line in each.lines)
        visible = [_hold(each, current) for each in blocks]
        kept = [each for each in visible if each.text and (each.block.age > 0 or at is None)]
        told = prompt is not None and form.role(whole[-1]) is Role.TOOL
        planned = self._plan(form, whole, (first, at), told, visible, kept)
        left = {each.block.place for each in kept[planned.dropped :]}
        texts = {each.block.place: each.text if each.block.place in left else "" for each in visible}
        cleaned, block = window.rewritten(form, whole, texts), None
        if text := planned.given.text:
            cleaned, block = form.insert(cleaned, window.prompts(form, cleaned)[-1], text)
            again = {each.block.place: text for each in visible if each.block.age == 0 and each.text == text}
            before = window.rewritten(form, whole, texts | again) if again else []
            if again and window.outline(form, before) == window.outline(form, cleaned):  # it is there: the bytes stay
                block = next((old for old, new in zip(before, cleaned, strict=True) if new is block), block)
                cleaned = before
        hidden = self._selection.hidden(name for each in visible for name in each.gone)
        repairs = list(_repairs(form, history, prompt, visible, hidden))
        if lost := len(self._kept - {each.text for each in blocks}):
            repairs.append(f"of the blocks in the history {lost} went or changed: what left is free again")
        made = Prepared(cleaned, block, planned.given, tuple(repairs))
        self._pending = (form, made)
        return made

    def commit(self, response: Any = None, prepared: Prepared | None = None) -> list[Any]:
        """The turn succeeded: gives the history to keep, with the response (a message or several) if it is given. One
        that asks for tools leaves the block where it is: the results are the next prompt, and go on with the turn.
        `prepared` is the turn that is meant: an error, if another one was prepared since."""
        if self._pending is None:
            raise UsageError("no turn is prepared", hint="Call `prepare` first; a turn is committed once.")
        form, last = self._pending
        if prepared is not None and prepared is not last:
            raise UsageError("another turn was prepared since", hint="An injector has one turn at a time.")
        history, given = last.history, last.given
        answers = [] if response is None else [*response] if isinstance(response, list | tuple) else [response]
        self._check(history, answers)
        self._pending = None
        if given.lines and given.text != self._noted:
            try:
                self._record(given)
            except RecollectError as error:  # the history is worth more
                log.warning("what this turn was given is not noted: %s", error)
        self._noted = given.text if (going_on := window.goes_on(form, answers)) else ""
        if not going_on and self._selection.config.max_injected_blocks_in_history == 0:
            history = window.stripped(form, history)
        self._kept = {each.text for each in window.blocks(form, history, None)}
        return [*history, *map(sendable, answers)]

    def abort(self) -> None:
        """The turn failed or was cancelled. The caller's history is what it was."""
        self._pending = None

    def strip(self, history: Sequence[Any]) -> list[Any]:
        """The history without any block."""
        return window.stripped(detect(history, None, self._form), history)

    def process(self, messages: list[Any]) -> list[Any]:
        """A history processor for pydantic-ai. Requests with results of tools go on with the turn before them."""
        return self.prepare(messages).history

    def render_for_compaction(self, history: Sequence[Any]) -> str:
        """The talk as text for whoever sums it up, with nothing in it that was injected."""
        return render_for_compaction(history, self._form)

    def _check(self, history: Sequence[Any], answers: Sequence[Any]) -> None:
        """The next turn can read them."""
        try:
            whole = [*history, *answers]
            form = detect(whole, None, self._form)
            window.prompts(form, whole)
            window.transcript(form, answers)
        except UsageError as error:
            raise UsageError(f"`commit` takes a message or a list of them: {error}", hint=error.hint) from error

    def _plan(
        self,
        form: Format,
        whole: Sequence[Any],
        asked: tuple[int, int | None],
        told: bool,
        visible: Sequence[_Visible],
        kept: Sequence[_Visible],
    ) -> Plan:
        """`asked`: where the prompt begins and ends; `told`: it is only what a tool gave."""
        first, at = asked
        seen = [Seen(each.block.age, estimate_tokens(each.text), each.keys) for each in kept]
        stale = [name for each in visible for name in each.gone]
        if at is None:  # there is no place for more where nobody ever asked
            corrected = self._selection.replacements(stale) if window.prompts(form, whole) else []
            return plan(corrected, seen, self._selection.config)
        said = "\n".join(filter(None, (window.words(form, each) for each in whole[first : at + 1])))
        before = window.exchanges(form, whole, first, EXCHANGES)
        own = [each for each in visible if each.block.age == 0]
        given = [line for each in own for line in each.lines]
        held = {name for each in kept for name, _ in each.keys}
        candidates = self._selection.candidates(said, before, held, stale, given)
        going_on = given and at < len(whole) - 1 and all(each.block.whole for each in own)
        if told or going_on:  # tools were asked: it gets no more
            candidates = [each for each in candidates if each.place or each.replaces]
        return plan(candidates, seen, self._selection.config)


def render_for_compaction(history: Sequence[Any], form: str = "") -> str:
    """The talk as text for whoever sums it up, with nothing in it that was injected."""
    return window.transcript(detect(history, None, form), history)


def _asked(form: Format, history: Sequence[Any], prompt: Any) -> tuple[list[Any], int, int | None]:
    """The history with the prompt, where that begins, and its last message that asks: with results of tools, the one
    that they belong to. None: nothing is asked."""
    if prompt is not None:
        whole = [*history, *(window.escaped(form, each) for each in form.prompt(prompt))]
        if form.role(whole[-1]) is not Role.TOOL:
            return whole, len(history), len(whole) - 1 if window.prompts(form, whole[-1:]) else None
    else:
        whole = list(history)
        if whole and form.role(whole[-1]) is Role.USER and not window.prompts(form, whole[-1:]):
            whole[-1] = window.escaped(form, whole[-1])  # a block is never what is asked: somebody wrote like one
    last = max(window.prompts(form, whole), default=None)
    return whole, last or 0, last


def _hold(block: Block, current: dict[str, Remembered]) -> _Visible:
    good = tuple(each for each in block.lines if each.id in current and render.says(each, current[each.id]))
    gone = tuple(each.id for each in block.lines if each not in good)
    return _Visible(block, good, render.rendered(good), gone)


def _repairs(
    form: Format, history: Sequence[Any], prompt: Any, visible: Sequence[_Visible], hidden: Mapping[str, str]
) -> Iterator[str]:
    for name in (name for each in visible for name in each.gone):
        yield f"{name} {hidden.get(name, 'no longer says that')}: its line left the history"
    for each in visible:
        if not each.block.whole:
            yield "a block was cut: what is left of it was mended or taken out"
    slots = [slot for each in history for slot in form.slots(each)]
    if any(map(window.is_joined, slots)):
        yield "a block behind other words was taken out"
    asked = [] if prompt is None else form.prompt(prompt)
    said = [window.own(slot) for slot in slots] + [slot.text for each in asked for slot in form.slots(each)]
    told = any(form.told(each, escape) is not each for each in (*history, *asked))
    if told or any(escape(text) != text for text in said):
        yield "a text that looks like a block was escaped"
