"""When a memory matters: prompts that somebody may type and that it would change the answer to. Pure.

A prompt often shares no word with what it wants: "add istio?" and "no service mesh here". Whoever states a memory and
knows more than its words, a model or a person, may say when it matters; so may the request in whose course it was said.
That is searched with it. Wherever several are kept, they stand on one line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

MOST = 6
_BETWEEN = "; "
_LONGEST = 120  # characters
_SIGNS = re.compile(r"[;()\s]+")  # they part occasions where they are kept


def occasions(given: Iterable[str]) -> tuple[str, ...]:
    """As they are kept."""
    told = (_short(_SIGNS.sub(" ", each).strip()) for each in given)
    return tuple(dict.fromkeys(filter(None, told)))[:MOST]


def joined(told: Iterable[str]) -> str:
    return _BETWEEN.join(told)


def parted(kept: str) -> tuple[str, ...]:
    return occasions(kept.split(_BETWEEN)) if kept else ()


def _short(text: str) -> str:
    """Its first words."""
    return text if len(text) <= _LONGEST else text[: _LONGEST + 1].rpartition(" ")[0] or text[:_LONGEST]
