"""Memories that have to do with a prompt, best first; usually none. The judgement is in `relevance.py`."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from recollect.inject import relevance
from recollect.inject.appetite import appetite
from recollect.inject.asks import subject
from recollect.inject.relevance import Calibration, Features, Question, Weights
from recollect.inject.values import Exchange, InjectorConfig, Line, Section
from recollect.search.memories import Clue, MemorySearch
from recollect.store.search import Found, Reach
from recollect.types import MemoryKind, Severity

_NAMED = 4  # words that a reason names
_NAMES = 0.6  # share of a subject's words, by their rarity, that a memory holds which names it
_TOUCHES = 0.35  # the same of one that is near by its meaning: as similar as this share of what is nearest
_NEAR = 0.7
_AND = re.compile(r",\s+|\s+(?:and|or)\s+")  # between subjects: each counts by itself
_LOOKED_BACK = 3  # exchanges


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

    def find(
        self,
        prompt: str,
        exchanges: Sequence[Exchange],
        scope: Reach,
        limit: int,
        now: datetime,
        visible: Collection[str] = (),
    ) -> list[Line]:
        """At most so many; the ids that are `visible` already are judged apart, and raise no floor for the others."""
        if limit < 1:
            return []
        if (named := subject(prompt)) and (listed := self._known_of(named, scope, now)):
            return listed[:limit]
        said = [each for each in exchanges if relevance.question(each.user, (), now, enrich=False)]
        for far, before in enumerate(_windows(prompt, said) if self._enrich else [()]):
            asked = relevance.question(prompt, before, now, enrich=self._enrich)
            found = self._relevant(asked, before, scope, visible, far=far > 0) if asked else []
            if found or asked is None or not asked.context:
                return found[:limit]
        return []

    def _relevant(
        self, asked: Question, exchanges: Sequence[Exchange], scope: Reach, visible: Collection[str], *, far: bool
    ) -> list[Line]:
        """`far`: the talk that the prompt leans on is not the last one."""
        leaning = bool(asked.context)
        judged = self.judge(asked, scope, visible)
        good = [each for each in judged if each.passes(self._floor, leaning=leaning, first=not far)]
        texts = self._memories.read([each.clue.row for each in good], scope) if good else {}
        new = [
            each
            for each in good
            if (memory := texts.get(each.clue.row)) is not None
            and not (leaning and relevance.just_said(memory.text, exchanges))
        ]
        told, is_first = [], not far
        for each in new:
            if each.passes(self._floor, leaning=leaning, first=is_first):
                told.append(each)
                is_first &= each.clue.ref in visible
        return [_line(texts[each.clue.row], asked, each) for each in told]

    def _known_of(self, named: str, scope: Reach, now: datetime) -> list[Line]:
        """All that is known of a subject: what names it, and what names a part of it and is near by its meaning."""
        asked = relevance.question(named, (), now, enrich=False)
        if asked is None or not asked.words:
            return []
        asked = replace(asked, ours=True, general=False)
        clues = self._memories.clues(asked.texts, asked.words, scope)
        nearest = max((clue.similar[0] or 0.0 for clue in clues.each), default=0.0)
        subjects = [_weighed(each, asked.words, clues.rarity) for each in _AND.split(named.lower())]
        good = []
        for clue in clues.each:
            features = relevance.features(asked, clue, clues.rarity)
            by = relevance.calibration(clues.model, features)
            share = max(sum(each.get(word, 0.0) for word in clue.words) for each in subjects)
            score = max(relevance.probability(relevance.strength(features, by.plain)), share)
            near = (clue.similar[0] or 0.0) >= _NEAR * nearest > 0
            if share >= (_TOUCHES if near else _NAMES) or score >= by.floor:
                good.append(Judged(clue, features, by, min(1.0, score)))
        good.sort(key=lambda each: (-each.score, -(each.features.similar or 0.0), each.clue.row))
        texts = self._memories.read([each.clue.row for each in good], scope) if good else {}
        return [_line(texts[each.clue.row], asked, each) for each in good if each.clue.row in texts]

    def judge(self, asked: Question, reach: Reach, visible: Collection[str] = ()) -> list[Judged]:
        """Every candidate, best first."""
        clues = self._memories.clues(asked.texts, {**asked.context_words, **asked.words}, reach)
        seen = [each.ref in visible for each in clues.each]
        wants = appetite(clues.model, clues.vector)
        features = [relevance.features(asked, clue, clues.rarity, wants) for clue in clues.each]
        calibrations = [relevance.calibration(clues.model, each) for each in features]
        scores = _scores(features, [each.plain for each in calibrations], seen)
        if asked.context:  # what the prompt wants by itself it wants behind any exchange
            alone = zip(scores, calibrations, strict=True)
            leaning = _scores(features, [each.leaning for each in calibrations], seen)
            scores = [
                max(own, each) if own >= by.floor else each for (own, by), each in zip(alone, leaning, strict=True)
            ]
        found = map(Judged, clues.each, features, calibrations, scores)
        return sorted(found, key=lambda each: (-each.score, each.clue.row))


def _weighed(subject: str, words: Mapping[str, float], rarity: Mapping[str, float]) -> dict[str, float]:
    """The words of a subject, each with its share of all of them. The last one says what it is: it counts in full."""
    own = [word for word in words if word in subject]
    weights = {word: (1.0 if word == own[-1] else words[word]) * rarity.get(word, 1.0) for word in own}
    whole = sum(weights.values())
    return {word: weight / whole for word, weight in weights.items()} if whole else {}


def _windows(prompt: str, exchanges: Sequence[Exchange]) -> list[Sequence[Exchange]]:
    """The talk up to each of the last exchanges that a prompt may lean on: those of who speaks first, then the last."""
    named = relevance.SPEAKER.match(prompt)
    places = list(range(len(exchanges) - 1, -1, -1))[:_LOOKED_BACK]
    if named:
        places.sort(key=lambda place: not exchanges[place].user.startswith(named[0]))
    return [exchanges[: place + 1] for place in places] or [()]


def _scores(features: Sequence[Features], weights: Sequence[Weights], seen: Sequence[bool]) -> list[float]:
    """What is seen already is no competition for the others."""
    strengths = [relevance.strength(each, by) for each, by in zip(features, weights, strict=True)]
    nothing = min((by.bias for by in weights), default=0.0)
    crowds = relevance.crowds(strengths, nothing)
    if any(seen):
        new = iter(
            relevance.crowds([each for each, is_seen in zip(strengths, seen, strict=True) if not is_seen], nothing)
        )
        crowds = [crowd if is_seen else next(new) for crowd, is_seen in zip(crowds, seen, strict=True)]
    return [
        relevance.probability(strength + by.crowd * crowd)
        for strength, by, crowd in zip(strengths, weights, crowds, strict=True)
    ]


def _line(memory: Found, asked: Question, by: Judged) -> Line:
    """Whole, as it is stored; a block shows it inert."""
    kind, severity, day = MemoryKind(memory.memory_kind), Severity(memory.severity), memory.timestamp[:10]
    why, score = _reason(asked, by), round(by.score, 3)
    return Line(memory.ref, memory.revision, kind, severity, memory.text, day, Section.RELEVANT, score, why, 0)


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
