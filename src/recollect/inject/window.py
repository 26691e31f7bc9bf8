"""The blocks of a history, found and taken out again. Pure; a history is never changed, only copied.

A block is a user's text that begins as we begin one; one that stands behind other words of the same text is only ever
taken out. Whatever else a user's or a tool's text says about itself is escaped. What a caller's truncation left of a
block (its beginning, its end, a prompt's block without the prompt) is known, too.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from recollect.blocks import END, PREFIX, escape, strip_blocks, without_lines, without_memories
from recollect.inject import render
from recollect.inject.formats import Format, Role, Slot
from recollect.inject.values import Exchange, Line

Place = tuple[int, int]  # of a message in the history, of a text in the message

_LINE_END = re.compile(  # of a line that was cut before its id, or in what stands there
    r"(?:.* )?\(\d{4}-\d\d-\d\d, m-[0-9A-Za-z-]+ r\d+\)|(?:(?:[\d-]*, )?[0-9A-Za-z-]* )?r?\d*\)"
)
_QUOTE = r"[ \t>*`]*"
_ROW = rf"\r?\n{_QUOTE}(?:Pinned:|Relevant:|- \[[^\n]*)"
_JOINED = re.compile(
    rf"(?P<behind>(?<=[^\n]))?{re.escape(render.HEAD)}(?:{_ROW})*(?:\r?\n{_QUOTE}{re.escape(END)})?[\r\n]*"
)
_NAMES = {Role.USER: "User", Role.ASSISTANT: "Assistant", Role.TOOL: "Tool"}


@dataclass(frozen=True, slots=True)
class Block:
    """A block in a history."""

    place: Place
    text: str  # without what somebody joined to it
    lines: tuple[Line, ...]
    age: int  # turns since; 0: it belongs to the prompt

    @property
    def whole(self) -> bool:
        """Nothing of it was cut off."""
        return self.text == render.rendered(self.lines)


def is_block(slot: Slot) -> bool:
    if slot.text.startswith(render.HEAD) or (slot.marked and slot.text.startswith(PREFIX)):
        return True
    return _is_head(slot.text) or _remains(slot.text)


def own(slot: Slot) -> str:
    """What somebody said in a text, whatever blocks stand before it or in it."""
    said = _rest(slot)
    if not is_joined(slot):
        return said
    return _JOINED.sub(lambda found: "" if found["behind"] is None else "\n", said).strip()


def is_joined(slot: Slot) -> bool:
    """A block stands behind other words."""
    return render.HEAD in _rest(slot)


def prompts(form: Format, history: Sequence[Any]) -> list[int]:
    """Messages in which a person says something."""
    return [n for n, message in enumerate(history) if form.role(message) is Role.USER and _said(form, message)]


def blocks(form: Format, history: Sequence[Any], prompt: int | None) -> list[Block]:
    """From the oldest; `prompt` is the message that is to be answered now."""
    asked = [each for each in prompts(form, history) if each != prompt]
    found = []
    for number, message in enumerate(history):
        for slot, each in enumerate(form.slots(message)):
            if is_block(each):
                text = render.split(each.text)[0]
                age = sum(other >= number for other in asked)
                found.append(Block((number, slot), text, render.parse(text), age))
    return found


def rewritten(form: Format, history: Sequence[Any], texts: Mapping[Place, str]) -> list[Any]:
    """With other texts for some blocks (an empty one takes the block out), and with users' and tools' texts escaped."""
    made = []
    for number, each in enumerate(history):
        message = form.told(each, escape)
        slots = form.slots(message)
        new = [_text(slot, texts.get((number, place))) for place, slot in enumerate(slots)]
        same = all(text == slot.text for text, slot in zip(new, slots, strict=True))
        if (kept := message if same else form.replaced(message, new)) is not None:
            made.append(kept)
    return made


def outline(form: Format, history: Sequence[Any]) -> list[tuple[Role, list[str]]]:
    """What stands where, whatever else a message carries."""
    return [(form.role(each), [slot.text for slot in form.slots(each)]) for each in history]


def escaped(form: Format, message: Any) -> Any:
    """The words of somebody, none of which is a block, whatever it looks like."""
    message = form.told(message, escape)
    before = [slot.text for slot in form.slots(message)]
    after = [escape(text) for text in before]
    return message if before == after else form.replaced(message, after)


def stripped(form: Format, history: Sequence[Any]) -> list[Any]:
    """Without any block."""
    return rewritten(form, history, {each.place: "" for each in blocks(form, history, None)})


def words(form: Format, message: Any) -> str:
    """What a person says in a message."""
    said = [own(slot) for slot in form.slots(message)]
    return strip_blocks("\n".join(each for each in said if each))


def exchanges(form: Format, history: Sequence[Any], prompt: int, most: int) -> tuple[Exchange, ...]:
    """The last ones before a prompt, from the oldest."""
    asked = prompts(form, history[:prompt])[-most:]
    ends = [*asked, prompt][1:]
    return tuple(
        Exchange(words(form, history[start]), _answer(form, history[start + 1 : end]))
        for start, end in zip(asked, ends, strict=True)
    )


def goes_on(form: Format, answers: Sequence[Any]) -> bool:
    """Does the turn, after these? A tool was asked, or told what nobody answered yet."""
    given = [n for n, each in enumerate(answers, start=1) if form.role(each) is Role.TOOL]
    since = answers[given[-1] :] if given else answers
    return any(map(form.calls, since)) or bool(given and not since)


def transcript(form: Format, history: Sequence[Any]) -> str:
    """The talk alone, for whoever sums it up: without blocks, and without lines of one that somebody quotes."""
    said = []
    for message in history:
        role = form.role(message)
        if role is Role.OTHER:
            continue
        is_user = role is Role.USER
        text = without_lines(words(form, message)) if is_user else without_memories(form.spoken(message))
        if is_user and (given := without_memories(form.results(message)).strip()):
            said.append(f"{_NAMES[Role.TOOL]}: {given}")
        if text.strip():
            name = escape(form.speaker(message)) if is_user else ""
            said.append(f"{_NAMES[role]}{f' ({name})' if name else ''}: {text.strip()}")
    return "\n\n".join(said)


def _answer(form: Format, messages: Sequence[Any]) -> str:
    said = [form.spoken(each) for each in messages if form.role(each) is Role.ASSISTANT]
    return without_memories("\n".join(each for each in said if each))


def _said(form: Format, message: Any) -> bool:
    return any(map(own, form.slots(message))) or form.shows(message)


def _text(slot: Slot, block: str | None) -> str | None:
    """A slot's text with another block in it; None when nothing is left of it."""
    said = escape(own(slot))
    if not is_block(slot):
        return said if said or not slot.text else None
    text = render.split(slot.text)[0] if block is None else block
    return "\n\n".join(each for each in (text, said) if each) or None


def _rest(slot: Slot) -> str:
    return render.split(slot.text)[1] if is_block(slot) else slot.text


def _is_head(text: str) -> bool:
    """Not even the first sentence of a block is whole."""
    return text.startswith(PREFIX) and render.HEAD.startswith(text.rstrip(" .…"))


def _remains(text: str) -> bool:
    """Only the end of a block is left, from anywhere in one of its rows on; nothing else stands before its end mark."""
    if END not in text:
        return False
    first, *rows = [each.strip() for each in text.partition(END)[0].strip().split("\n")]
    frame, cut = render.FRAME.split("\n"), first.lstrip(" .…")
    begins = any(each.endswith(cut) for each in frame) or _LINE_END.fullmatch(cut) is not None
    return begins and all(not each or each in frame or render.parse(each) for each in rows)
