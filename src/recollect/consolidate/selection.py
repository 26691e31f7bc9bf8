"""Which outputs of phase 1 a consolidation works with, and how that differs from the last one. Pure.

The baseline is what the last successful consolidation consumed: exact snapshots, told apart by `generated_at`, which
changes also when nothing but the reader did. A row that was refreshed since then is `added` until its newer snapshot
has been consumed.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from recollect.store.memories import current
from recollect.store.stage1 import Input
from recollect.types import Remembered, timestamp


@dataclass(frozen=True, slots=True)
class Selection:
    """Session keys in `added` and `retained` are in the order of rank; `removed` is sorted."""

    chosen: tuple[Input, ...]  # by rank
    added: tuple[str, ...]
    retained: tuple[str, ...]
    removed: tuple[str, ...]  # consumed last time and not chosen now, whether or not a row is left
    union: tuple[Input, ...]  # chosen now or last time, as far as there are rows; latest first

    @property
    def keys(self) -> frozenset[str]:
        return frozenset(each.row.session_key for each in self.chosen)

    @property
    def newest(self) -> str:
        """The newest `source_updated_at` among the chosen; empty when there are none."""
        return max((each.row.source_updated_at for each in self.chosen), default="")

    @property
    def is_news(self) -> bool:
        return bool(self.added or self.removed)


def select(
    inputs: Sequence[Input],
    vanished: Iterable[str],
    now: datetime,
    *,
    max_unused_days: int,
    most: int,
    pinned: Collection[str] = (),
    unlisted: Collection[str] = (),
) -> Selection:
    """The `most` best of those used, or else generated, within the window: use counts first, then its recency. Before
    them, at any age, those that state what a person `pinned`. Those that are `unlisted` are never chosen."""
    oldest = timestamp(now - timedelta(days=max_unused_days))
    listed = [each for each in inputs if each.row.session_key not in unlisted]
    eligible = [each for each in listed if _touched(each) >= oldest or each.row.session_key in pinned]

    def rank(each: Input) -> tuple[bool, int, str, str]:
        return each.row.session_key in pinned, each.usage_count, _touched(each), each.row.source_updated_at

    eligible.sort(key=lambda each: each.row.session_key)
    eligible.sort(key=rank, reverse=True)
    chosen = tuple(eligible[:most])
    keys = {each.row.session_key for each in chosen}
    before = [each for each in inputs if each.selected and each.row.session_key not in keys]
    removed = {each.row.session_key for each in before} | set(vanished)
    return Selection(
        chosen=chosen,
        added=tuple(each.row.session_key for each in chosen if each.selected != each.row.generated_at),
        retained=tuple(each.row.session_key for each in chosen if each.selected == each.row.generated_at),
        removed=tuple(sorted(removed)),
        union=latest_first([*chosen, *before]),
    )


def amended(inputs: Iterable[Input], revisions: Sequence[Remembered], wrong: Collection[str] = ()) -> list[Input]:
    """The rows as they read now: where one repeats a statement word by word that was superseded since, what holds now
    stands there instead, and nothing for those that a person called `wrong`. The files of the conversation stay as
    they are: that is history, this is what one is told."""
    held = {each.id: each for each in current(revisions)}
    gone: dict[str, list[tuple[str, str]]] = {}
    for each in revisions:
        now = held[each.id]
        is_gone = each.id in wrong or _bare(each.text) not in now.text
        if len(each.text.split()) > 1 and is_gone:  # one word may stand for anything
            instead = "(since called wrong)" if each.id in wrong else f"(since corrected: {_bare(now.text)})"
            for key in {key for key, _ in each.sources}:
                gone.setdefault(key, []).append((_bare(each.text), instead))
    return [_without(each, gone[each.row.session_key]) if each.row.session_key in gone else each for each in inputs]


def _without(each: Input, gone: Sequence[tuple[str, str]]) -> Input:
    texts = {name: getattr(each.row, name) for name in ("raw_memory", "rollout_summary", "memory_sentence")}
    for old, new in gone:
        pattern = re.compile(rf"(?<!\w){re.escape(old)}(?!\w)", re.IGNORECASE)
        stands = new.replace("\\", "\\\\")
        texts = {name: pattern.sub(stands, text) for name, text in texts.items()}
    return replace(each, row=replace(each.row, **texts))


def _bare(text: str) -> str:
    return text.rstrip(".!?… ")


def latest_first(inputs: Iterable[Input]) -> tuple[Input, ...]:
    by_key = sorted(inputs, key=lambda each: each.row.session_key)
    return tuple(sorted(by_key, key=lambda each: each.row.source_updated_at, reverse=True))


def statements(revisions: Iterable[Remembered], keys: Collection[str]) -> list[Remembered]:
    """Current memories that these conversations state, with only their sources among them. Sorted by id.

    A revision that a conversation outside of the selection superseded is superseded all the same.
    """
    found = []
    for memory in current(revisions):
        sources = tuple(source for source in memory.sources if source[0] in keys)
        if sources:
            found.append(replace(memory, sources=sources))
    return found


def _touched(each: Input) -> str:
    return each.last_usage or each.row.generated_at
