"""A long conversation in parts: split between turns, never inside a message. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from recollect.text import estimate_tokens
from recollect.types import Message, Role

_OVERHEAD = 12  # tokens of a message's own head


def split(messages: Sequence[Message], budget: int) -> list[list[Message]]:
    """Parts within the budget that start with a user's message where possible.

    A turn that is larger than the budget is split between its messages; a message that is larger by itself is a part
    of its own, continued in further parts at line ends. Every character is in exactly one part.
    """
    parts: list[list[Message]] = [[]]
    used = 0
    for turn in _turns(messages):
        size = tokens(turn)
        if parts[-1] and used + size > budget:
            parts.append([])
            used = 0
        if size <= budget:
            parts[-1] += turn
            used += size
            continue
        for message in turn:
            for piece in _pieces(message, budget):
                cost = _tokens(piece)
                if parts[-1] and used + cost > budget:
                    parts.append([])
                    used = 0
                parts[-1].append(piece)
                used += cost
    return [part for part in parts if part]


def tokens(messages: Sequence[Message]) -> int:
    """What they take of a budget."""
    return sum(map(_tokens, messages))


def _turns(messages: Sequence[Message]) -> list[list[Message]]:
    """A user's message with everything up to the next one."""
    turns: list[list[Message]] = []
    for message in messages:
        if message.role is Role.USER or not turns:
            turns.append([])
        turns[-1].append(message)
    return turns


def _tokens(message: Message) -> int:
    return estimate_tokens(message.text) + _OVERHEAD


def _pieces(message: Message, budget: int) -> list[Message]:
    if _tokens(message) <= budget:
        return [message]
    most = max(1, int((budget - _OVERHEAD) * 3.5 / 4))  # characters: none has more than four bytes
    pieces, start, text = [], 0, message.text
    while start < len(text):
        end = min(len(text), start + most)
        if end < len(text):
            end = max(text.rfind("\n", start + 1, end), text.rfind(" ", start + most // 2, end)) + 1 or end
        pieces.append(message.between(start, end))
        start = end
    return pieces
