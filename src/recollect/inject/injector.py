"""The injector: four calls around a turn, for whoever owns the message list.

    prepared = injector.prepare(history, prompt)      the history to send; the caller's list stays as it is
    history = injector.commit(response)               the turn succeeded: the history to keep
    injector.abort()                                  it did not: nothing has happened
    injector.strip(history)                           without any block

What is visible follows from the history alone. A restart, a fork or a truncation needs no bookkeeping; what is kept of
a turn, after it succeeded, is only there to be shown.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from recollect.inject import render, window
from recollect.inject.formats import Format, Role, detect
from recollect.inject.plan import Plan, Seen, plan
from recollect.inject.select import Selection
from recollect.inject.values import Given, Prepared
from recollect.inject.window import Block
from recollect.text import estimate_tokens
from recollect.types import Remembered

EXCHANGES = 3  # before the prompt, that search may look at


@dataclass(frozen=True, slots=True)
class _Visible:
    """A block of the history, and what it may still say."""

    block: Block
    text: str  # without lines that no longer hold
    keys: frozenset[tuple[str, int]]
    gone: tuple[str, ...]  # ids of lines that left


class Injector:
    """`record` is told what was given, once the turn succeeded."""

    def __init__(self, selection: Selection, record: Callable[[Given], None], form: str = "") -> None:
        self._selection = selection
        self._record = record
        self._form = form
        self._pending: tuple[Format, list[Any], Given] | None = None

    def prepare(self, history: Sequence[Any], prompt: Any = None) -> Prepared:
        """`prompt` is a text or a message; without one it is the last message of a user in the history."""
        form = detect(history, prompt, self._form)
        whole = [*history, *([] if prompt is None else [form.prompt(prompt)])]
        self._pending = None
        asked = window.prompts(form, whole)
        if not asked or (prompt is not None and asked[-1] != len(whole) - 1):  # results of tools: the turn goes on
            return self._pend(form, Prepared(window.rewritten(form, whole, {}), None, Given()))
        at = asked[-1]
        visible, repairs = self._visible(window.blocks(form, whole, at))
        kept = [each for each in visible if each.text and each.block.age > 0]
        stale = [name for each in visible if each.block.age > 0 for name in each.gone]
        planned = self._plan(form, whole, at, kept, stale)
        left = {id(each) for each in kept[planned.dropped :]}
        texts = {each.block.place: each.text if id(each) in left else "" for each in visible}
        cleaned = window.rewritten(form, whole, texts)
        if not planned.given.lines:
            return self._pend(form, Prepared(cleaned, None, planned.given, repairs))
        made, block = form.insert(cleaned, window.prompts(form, cleaned)[-1], planned.given.text)
        return self._pend(form, Prepared(made, block, planned.given, repairs))

    def commit(self, response: Any = None) -> list[Any]:
        """The turn succeeded: gives the history to keep, with the response (a message or several) if it is given."""
        if self._pending is None:
            return []
        form, history, given = self._pending
        self._pending = None
        if given.lines:
            self._record(given)
        answers = [] if response is None else response if isinstance(response, list) else [response]
        ephemeral = self._selection.config.max_injected_blocks_in_history == 0
        return [*(window.stripped(form, history) if ephemeral else history), *answers]

    def abort(self) -> None:
        """The turn failed or was cancelled. The caller's history is what it was."""
        self._pending = None

    def strip(self, history: Sequence[Any]) -> list[Any]:
        return window.stripped(detect(history, None, self._form), history)

    def process(self, messages: list[Any]) -> list[Any]:
        """A history processor for pydantic-ai. Requests that carry results of tools belong to the turn before."""
        form = detect(messages, None, "pydantic-ai")
        if not messages or form.role(messages[-1]) is not Role.USER:
            return messages
        prepared = self.prepare(messages)
        self.commit()
        return prepared.history

    def render_for_compaction(self, history: Sequence[Any]) -> str:
        return render_for_compaction(history, self._form)

    def _pend(self, form: Format, prepared: Prepared) -> Prepared:
        self._pending = (form, prepared.history, prepared.given)
        return prepared

    def _visible(self, blocks: Sequence[Block]) -> tuple[list[_Visible], tuple[str, ...]]:
        current = self._selection.current(line.id for each in blocks for line in each.lines)
        visible = [_hold(each, current) for each in blocks]
        repairs = [f"{name} no longer holds: its line left the history" for each in visible for name in each.gone]
        repairs += ["a block was cut: what was left of it was mended" for each in blocks if not each.whole]
        return visible, tuple(repairs)

    def _plan(
        self, form: Format, whole: Sequence[Any], at: int, kept: Sequence[_Visible], stale: Sequence[str]
    ) -> Plan:
        said, before = window.words(form, whole[at]), window.exchanges(form, whole, at, EXCHANGES)
        candidates = self._selection.candidates(said, before, sum(len(each.keys) for each in kept), stale)
        seen = [Seen(each.block.age, estimate_tokens(each.text), each.keys) for each in kept]
        return plan(candidates, seen, self._selection.config)


def render_for_compaction(history: Sequence[Any], form: str = "") -> str:
    """The talk as text for whoever sums it up, with nothing in it that was injected."""
    return window.transcript(detect(history, None, form), history)


def _hold(block: Block, current: dict[str, Remembered]) -> _Visible:
    good = [each for each in block.lines if each.id in current and render.says(each, current[each.id])]
    gone = tuple(each.id for each in block.lines if each not in good)
    text = render.block((each.section, each.row) for each in good)
    return _Visible(block, text, frozenset((each.id, each.revision) for each in good), gone)
