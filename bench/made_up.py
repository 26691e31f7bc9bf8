"""What is kept of made-up conversations, without a model.

The sets lie in `data/` (see its README). A memory is right if it holds all terms of a statement that must be kept, and
of none that must not. Beside it, in the same run: the judge of sentences that chats' turns are read with, as sessions
were before, and every sentence of the person.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from recollect.authors import written
from recollect.extract.offline.statements import statements
from recollect.extract.offline.strategy import told
from recollect.extract.offline.units import units
from recollect.types import Message, Role

SETS = ("fit", "held", "long-fit", "long-held", "reports-fit", "reports-held", "short-fit", "short-held")
_HERE = Path(__file__).parent / "data"

Reader = Callable[[Sequence[Message]], list[str]]
_READERS: Mapping[str, Reader] = {
    "sessions": lambda messages: [each.text for each in told(messages, "made-up").statements],
    "chats": lambda messages: [each.text for text in _persons(messages) for each in statements(text)],
    "every sentence": lambda messages: [each.text for text in _persons(messages) for each in units(text)],
}


def _persons(messages: Sequence[Message]) -> list[str]:
    return [each.text for each in messages if each.role is Role.USER]


def table() -> str:
    head = (
        "| made up, without a model | of | " + " | ".join(f"{name}: kept | right | recall" for name in _READERS) + " |"
    )
    lines = [head, "| --- " * (2 + 3 * len(_READERS)) + "|"]
    for name in SETS:
        cases = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(_HERE.glob(f"{name}-[0-9]*.json"))]
        lines.append(
            f"| {name} | {len(cases)} | " + " | ".join(_figures(cases, read) for read in _READERS.values()) + " |"
        )
    return "\n".join(lines)


def _figures(cases: Sequence[dict[str, Any]], read: Reader) -> str:
    given = right = kept = expected = 0
    for case in cases:
        found = read([_message(number, each) for number, each in enumerate(case["messages"])])
        expected += len(case["keep"])
        kept += sum(any(_states(text, item) for text in found) for item in case["keep"])
        given += len(found)
        right += sum(
            any(_states(text, item) for item in case["keep"]) and not any(_states(text, item) for item in case["drop"])
            for text in found
        )
    return f"{given} | {f'{right / given:.2f}' if given else '–'} | {kept / max(expected, 1):.2f}"


def _message(number: int, told: Mapping[str, str]) -> Message:
    role = Role(told["role"])
    return Message(str(number), role, told["text"], authors=written(told["text"], role))


def _states(text: str, item: Mapping[str, Any]) -> bool:
    return all(term.lower() in text.lower() for term in item["terms"])
