"""Memories that have to do with a prompt, best first; usually none. The judgement is in `relevance.py`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from recollect.inject import relevance
from recollect.inject.appetite import appetite
from recollect.inject.relevance import Calibration, Features, Question, Weights
from recollect.inject.values import Exchange, Found, InjectorConfig
from recollect.search.memories import Clue, MemorySearch
from recollect.store.search import Found as Stored
from recollect.store.search import Reach
from recollect.types import MemoryKind, Severity

_NAMED = 4  # words that a reason names


@dataclass(frozen=True, slots=True)
class Judged:
    clue: Clue
    features: Features
    by: Calibration
    score: float  # the probability that it is relevant

    def passes(self, floor: float, *, leaning: bool, first: bool) -> bool:
        """`floor` 0: the one that was fitted."""
        fitted = (self.by.first_floor if first else self.by.leaning_floor) if leaning else self.by.floor
        return self.score >= (floor or fitted)


class Contextual:
    def __init__(self, memories: MemorySearch, config: InjectorConfig) -> None:
        self._memories = memories
        self._floor = config.contextual_min_score
        self._enrich = config.enrich

    def find(self, prompt: str, exchanges: Sequence[Exchange], scope: Reach, limit: int, now: datetime) -> list[Found]:
        asked = relevance.question(prompt, exchanges, now, enrich=self._enrich)
        if asked is None or limit < 1:
            return []
        leaning = bool(asked.context)
        good = [each for each in self.judge(asked, scope) if each.passes(self._floor, leaning=leaning, first=True)]
        texts = self._memories.read([each.clue.row for each in good], scope) if good else {}
        new = [
            each
            for each in good
            if (memory := texts.get(each.clue.row)) is not None
            and not (leaning and relevance.just_said(memory.text, exchanges))
        ]
        told = [each for place, each in enumerate(new) if each.passes(self._floor, leaning=leaning, first=not place)]
        return [_found(texts[each.clue.row], asked, each) for each in told[:limit]]

    def judge(self, asked: Question, reach: Reach) -> list[Judged]:
        """Every candidate, best first."""
        clues = self._memories.clues(asked.texts, {**asked.context_words, **asked.words}, reach)
        wants = appetite(clues.model, clues.vector)
        features = [relevance.features(asked, clue, clues.rarity, wants) for clue in clues.each]
        calibrations = [relevance.calibration(clues.model, each) for each in features]
        scores = _scores(features, [each.plain for each in calibrations])
        if asked.context:  # what the prompt wants by itself it wants behind any exchange
            alone = zip(scores, calibrations, strict=True)
            leaning = _scores(features, [each.leaning for each in calibrations])
            scores = [
                max(own, each) if own >= by.floor else each for (own, by), each in zip(alone, leaning, strict=True)
            ]
        found = map(Judged, clues.each, features, calibrations, scores)
        return sorted(found, key=lambda each: (-each.score, each.clue.row))


def _scores(features: Sequence[Features], weights: Sequence[Weights]) -> list[float]:
    strengths = [relevance.strength(each, by) for each, by in zip(features, weights, strict=True)]
    crowds = relevance.crowds(strengths, min((by.bias for by in weights), default=0.0))
    return [
        relevance.probability(strength + by.crowd * crowd)
        for strength, by, crowd in zip(strengths, weights, crowds, strict=True)
    ]


def _found(memory: Stored, asked: Question, by: Judged) -> Found:
    return Found(
        id=memory.ref,
        revision=memory.revision,
        kind=MemoryKind(memory.memory_kind),
        severity=Severity(memory.severity),
        text=memory.text,
        date=memory.timestamp[:10],
        score=round(by.score, 3),
        why=_reason(asked, by),
    )


def _reason(asked: Question, by: Judged) -> str:
    named = [word for word in asked.words if word in by.clue.words]
    around = [word for word in asked.context_words if word in by.clue.words]
    similar = max(by.features.similar or 0.0, by.features.context or 0.0)
    parts = [f"relevance {round(by.score, 3):.2f}"]
    if named:
        parts.append("names " + ", ".join(named[:_NAMED]))
    if around:
        parts.append("the talk was about " + ", ".join(around[:_NAMED]))
    if by.features.similar is not None:
        parts.append(f"similarity {similar:.2f}")
    return "; ".join(parts)
