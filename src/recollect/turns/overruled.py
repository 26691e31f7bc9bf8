"""What a person made of a chat's items since: a correction stands for what it corrects, and what was called wrong is
not shown any more, nor what it had replaced. A corrected item keeps its key and its place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from recollect.note import is_session
from recollect.store import feedback
from recollect.store import memories as rows
from recollect.store.database import Transaction
from recollect.text import normalised
from recollect.turns.values import Item, TurnMemory
from recollect.types import Owner, Remembered


def as_held(
    tx: Transaction, owner: Owner, said: Iterable[TurnMemory], entries: Callable[[TurnMemory], list[str]]
) -> list[TurnMemory]:
    """In the same order; `entries` are the ids of a turn's messages."""
    every = [(each, entries(each)) for each in said]
    found = rows.judged(tx, owner, [uuid for _, uuids in every for uuid in uuids])
    wrong = feedback.wrong(tx, owner, sorted({each.id for each in found}))
    now = {each.id: each for each in rows.current(found)}
    made = {(uuid, normalised(each.text)): now[each.id] for each in found for _, uuid in each.sources}

    def held(one: Item, uuids: list[str]) -> Remembered | None:
        """The memory that it became, as it is now."""
        return next(filter(None, (made.get((uuid, normalised(one.text))) for uuid in uuids)), None)

    gone: dict[object, str] = {}  # what was called wrong → when it was said last
    for each, uuids in every if wrong else ():
        for one in each.fingerprint.items:
            if (memory := held(one, uuids)) and memory.id in wrong:
                gone[one.kind, one.about] = max(each.at, gone.get((one.kind, one.about), ""))

    def heard(each: TurnMemory, uuids: list[str]) -> TurnMemory:
        def change(one: Item) -> Item | None:
            memory = held(one, uuids)
            if (memory and memory.id in wrong) or each.at < gone.get((one.kind, one.about), ""):
                return None
            noted = memory and any(is_session(uuid) for _, uuid in memory.sources)
            return one.corrected(memory.text, memory.severity) if memory and noted else one

        told = each.fingerprint.changed(change)
        same = told == each.fingerprint
        return each if same else replace(each, fingerprint=replace(told, objective=""))  # which has the old words

    return [heard(*each) for each in every] if found else [each for each, _ in every]
