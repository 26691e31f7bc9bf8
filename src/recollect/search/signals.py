"""What moves a relevant document up or down: time, role, speaker, names as typed, recency, use, kind. Pure.

Each signal is a number in the unit of relevance, and every hit carries those it got: `--explain` prints them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from math import exp

from recollect.search.query import Query
from recollect.search.ranking import Weights, recency, usefulness
from recollect.store.search import Found
from recollect.store.vectors import Kind
from recollect.text import RUNS
from recollect.types import Timestamp, moment

_LABEL = re.compile(r"\s*([^\W\d_][\w .'-]{0,30}?):\s")  # "Ada: …": a message that names its speaker


def about_time(query: Query, timestamp: str) -> float:
    """1 inside a time that the query names, less with the distance from it."""
    if not query.spans or not timestamp:
        return 0.0
    said = moment(Timestamp(timestamp))
    return max(exp(-span.distance(said)) for span in query.spans)


def in_time(query: Query, timestamp: str, by: Weights) -> float:
    """What the time it was said at adds: known before the text is read."""
    return by.time * about_time(query, timestamp) / by.full


def boosts(query: Query, found: Sequence[Found], now: datetime, by: Weights) -> list[dict[str, float]]:
    """For each document the signals it has."""
    speakers = [_speaker(each.text) for each in found]
    asked = _named(query, speakers)
    rows = []
    for each, speaker in zip(found, speakers, strict=True):
        signals = {
            "time": by.time * about_time(query, each.timestamp),
            "recency": by.recency * recency(_age(each.timestamp, now)) if each.timestamp else 0.0,
            "role": by.role * (each.role == query.asked),
            "kind": {Kind.MEMORY: by.memory, Kind.SUMMARY: by.summary}.get(each.kind, 0.0),
            "speaker": by.speaker * bool(asked and speaker == asked),
            "exact": by.exact * _exact(query, each.text),
            "use": by.use * usefulness(each.uses, _age(each.last_use, now)),
            "feedback": by.feedback * each.feedback,
        }
        rows.append({name: value / by.full for name, value in signals.items() if value})
    return rows


def _age(timestamp: str, now: datetime) -> float:
    return (now - moment(Timestamp(timestamp))).total_seconds() / 86400 if timestamp else 0.0


def _speaker(text: str) -> str:
    found = _LABEL.match(text)
    return found[1].lower() if found else ""


def _named(query: Query, speakers: Sequence[str]) -> str:
    """The one speaker that the query names; none when it names several, or when only one ever speaks."""
    known = {each for each in speakers if each}
    words = set(RUNS.findall(query.text.lower()))
    named = {each for each in known if words & set(RUNS.findall(each))}
    return named.pop() if len(named) == 1 and len(known) > 1 else ""


def _exact(query: Query, text: str) -> float:
    """The share of names, paths, versions and quotations that stand in the text as they were typed."""
    if not query.names:
        return 0.0
    lower = text.lower()
    return sum(name in lower for name in query.names) / len(query.names)
