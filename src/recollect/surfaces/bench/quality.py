"""`recollect bench quality`: does extraction keep what must be kept, and nothing else?

The set lies in `quality/`: made-up conversations, labelled before anything was fitted. A statement counts as kept when
one memory contains all of its terms; a memory is right when it states something that must be kept and nothing that must
not, and its kind when a statement that it contains was labelled so. Weights were fitted on the `fit` halves; the
figures to look at are those of the `held` ones. What is `long` are working sessions of 50 to 80 messages, in which
hardly one sentence in ten lasts; in `reports` people tell at length what they see and did; `short` are chats of a few
messages. The peer is a list of every sentence of the user: what one gets without judging.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from importlib import resources
from typing import Any

from recollect.extract.offline.statements import statements
from recollect.extract.offline.units import units
from recollect.types import Message, Role

Case = dict[str, Any]
Extractor = Callable[[Sequence[Message]], list[tuple[str, str]]]  # text, kind
HALVES = ("fit", "held", "long-fit", "long-held", "reports-fit", "reports-held", "short-fit", "short-held")


def run(show: str = "") -> dict[str, Any]:
    """`show` is a half whose misses and wrong memories are listed."""
    result: dict[str, Any] = {}
    for half in HALVES:
        cases, name = load(half), half.replace("-", "_")
        ours, peer = measure(cases, _ours), measure(cases, _everything)
        result |= {
            f"{name}_conversations": len(cases),
            f"{name}_keep": sum(len(case["keep"]) for case in cases),
            f"{name}_drop": sum(len(case["drop"]) for case in cases),
            f"{name}_recall": ours["recall"],
            f"{name}_precision": ours["precision"],
            f"{name}_kinds": ours["kinds"],
            f"{name}_recall_of_every_sentence": peer["recall"],
            f"{name}_precision_of_every_sentence": peer["precision"],
        }
        if half == show:
            result |= {"missed": ours["missed"], "wrong": ours["wrong"]}
    return result


def load(half: str) -> list[Case]:
    folder = resources.files("recollect.surfaces.bench").joinpath("quality")
    files = sorted((file for file in folder.iterdir() if file.name.startswith(f"{half}-")), key=lambda file: file.name)
    return [json.loads(file.read_text(encoding="utf-8")) for file in files]


def measure(cases: Sequence[Case], extractor: Extractor) -> dict[str, Any]:
    kept = expected = right = given = stated = alike = 0
    missed, wrong = [], []
    for case in cases:
        memories = extractor([Message(str(n), Role(m["role"]), m["text"]) for n, m in enumerate(case["messages"])])
        for item in case["keep"]:
            expected += 1
            if any(_states(text, item) for text, _ in memories):
                kept += 1
            else:
                missed.append(f"{case['id']}: {item['text']}")
        for text, kind in memories:
            given += 1
            good = {item["kind"] for item in case["keep"] if _states(text, item)}
            stated += bool(good)
            alike += kind in good
            if good and not any(_states(text, item) for item in case["drop"]):
                right += 1
            else:
                wrong.append(f"{case['id']}: {text}")
    return {
        "recall": round(kept / max(expected, 1), 3),
        "precision": round(right / max(given, 1), 3),
        "kinds": round(alike / max(stated, 1), 3),
        "missed": missed,
        "wrong": wrong,
    }


def _states(text: str, item: dict[str, Any]) -> bool:
    return all(term.lower() in text.lower() for term in item["terms"])


def _ours(messages: Sequence[Message]) -> list[tuple[str, str]]:
    return [(each.text, each.kind) for each in statements(messages)]


def _everything(messages: Sequence[Message]) -> list[tuple[str, str]]:
    return [(unit.text, "") for unit in units(messages) if unit.role is Role.USER]
