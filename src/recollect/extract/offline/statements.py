"""The typed statements of a message: what its author says that lasts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from math import log

from recollect.extract.offline import abroad, cues
from recollect.extract.offline.units import Unit, units
from recollect.extract.resolve import is_revision, is_same
from recollect.text import COMMON, content_words, ended
from recollect.types import BINDING, MemoryKind, Severity, Statement

LONGEST = 400  # characters of sentences that are joined
_MOST_CHARACTERS = 800  # of a statement; some people write without full stops
MOST = 24  # statements of a message
_THRESHOLD = 0.0
_USUAL = 18  # sentences of a message: weights are for such
_SENTENCE = 4  # words: "ok, next" makes nothing long
_CROWDED = 0.4  # how much higher the bar is where there are e times as many
_NEIGHBOUR = -0.7  # a weaker sentence that explains a kept one
_STRONG = 0.4  # a statement that speaks for its neighbours too
_COMPANY = 0.9
_CLOSE = 240  # characters of statements that belong to one thought


def statements(text: str) -> list[Statement]:
    """Every statement of a user's message once, the best ones first."""
    said = units(text)
    found = _distinct(_candidates(said, _scores(said)))
    return [_statement(each) for each, _ in sorted(found, key=lambda one: -one[1])[:MOST]]


def _scores(said: Sequence[Unit]) -> list[float]:
    """What each sentence is worth. Who says one thing that lasts is likely to say another in the same breath."""
    bar = _bar(said)
    scores = [cues.score(unit) - bar for unit in said]
    best = max(scores, default=0.0)
    return [score + _COMPANY if score < best and best > _STRONG else score for score in scores]


def _bar(said: Sequence[Unit]) -> float:
    """A long message is mostly talk about the work at hand, and says hardly more that lasts than a short one does."""
    sentences = sum(len(unit.text.split()) >= _SENTENCE for unit in said)
    return _CROWDED * max(log(max(sentences, 1) / _USUAL), 0.0) ** 2


def _candidates(said: Sequence[Unit], scores: Sequence[float]) -> Iterable[tuple[str, float]]:
    """Yield what is worth keeping, with its score. A sentence that explains its neighbour joins it."""
    group: list[tuple[Unit, float]] = []
    for unit, score in zip(said, scores, strict=True):
        if group and _continues(group, unit, score):
            group.append((unit, score))
            continue
        yield from _candidate(group)
        group = [(unit, score)] if score > _NEIGHBOUR else []
    yield from _candidate(group)


def _continues(group: Sequence[tuple[Unit, float]], unit: Unit, score: float) -> bool:
    last = group[-1][0]
    if unit.form != "prose" or score <= _NEIGHBOUR or len(group) == 3:
        return False
    if sum(len(each.text) for each, _ in group) + len(unit.text) > LONGEST:
        return False
    close = len(last.text) + len(unit.text) <= _CLOSE and min(score, group[-1][1]) > _THRESHOLD
    return close or bool(_EXPLAINS.match(unit.text)) or bool(content_words(unit.text) & content_words(last.text))


def _candidate(group: Sequence[tuple[Unit, float]]) -> Iterable[tuple[str, float]]:
    """The sentences of a group from the first kept one to the last kept one or its explanation."""
    kept = [index for index, (_, score) in enumerate(group) if score > _THRESHOLD]
    if kept:
        text = " ".join(ended(unit.text) for unit, _ in group[kept[0] :])
        yield text, max(score for _, score in group)


_EXPLAINS = re.compile(
    r"(?:because|since|so|otherwise|that|this|it|they|he|she|those|these|which|then|and|but|else|reason|as|if not)\b",
    re.IGNORECASE,
)


def _distinct(found: Iterable[tuple[str, float]]) -> list[tuple[str, float]]:
    """What says the same folds into the first; another value that is named later replaces the one before."""
    kept: list[tuple[str, float]] = []
    for text, score in found:
        mine = content_words(text)
        kept = [other for other in kept if not is_revision(text, other[0])]
        if mine and not any(is_same(text, other) or mine <= content_words(other) for other, _ in kept):
            kept.append((text, score))
    return kept


_OPENING = re.compile(
    r"^(?:(?:ok(?:ay)?|alright|all right|then|so|and|also|but|well|oh|ah|hm+|right|yes|yep|yeah|nope|nah|btw|"
    r"by the way|anyway|fine|good|great|perfect|nice|cool|sweet|agreed|exactly|one (?:more )?thing|two things|"
    r"last thing|before i forget|fyi|note for next time|(?:one )?note(?: that)?|(?:please )?remember(?: that)?|"
    r"keep in mind(?: that)?|just so you know|finally|(?:hello|hi|hey)(?: there| all| everyone)?|thanks|thank you|"
    r"may i remind you that|"
    r"kindly note that|for the record)(?:\b[\s,.:;!-]+|$)|(?:(?:no )*no|wait|hold on)(?:[,.;:!]+\s+|\s+but\s+)|"
    rf"no +(?=(?:don'?t|do not|never|always|we)\b)|{cues.LABEL})+",
    re.IGNORECASE,
)
_HEAD = re.compile(  # what is asked for once, before a rule
    r"^(?:please |can you |could you )*(?:find out|figure out|check|fix|look (?:at|into|for)|investigate|debug|explain|"
    r"tell me|show me|have a look|see)\b[^.!?;]{0,80}?,? and (?=(?:please )?(?:always|never|from now on)\b)",
    re.IGNORECASE,
)
_TAIL = re.compile(  # what is asked along with it, and what is said by the way
    r"(?:[,;] (?:and |so |then |but )*(?:can|could|would|will|did|have) you\b[^.!?;]*[.?]?|"
    r",? (?:btw|by the way|lol|tho)[.!]?)$",
    re.IGNORECASE,
)
_LESSON = re.compile(r"(?:\w+ )?lesson\b[^:]{0,20}:", re.IGNORECASE)


def _statement(candidate: str) -> Statement:
    text = labelled = re.sub(r"\s+", " ", candidate).strip()
    text = _OPENING.sub("", text) or text
    text = _TAIL.sub("", _HEAD.sub("", text)) or text
    if len(text) > _MOST_CHARACTERS:
        text = text[:_MOST_CHARACTERS].rsplit(" ", 1)[0] + "…"
    first = text.split(" ", 1)[0]
    if first.lower() in COMMON or cues.is_verb(first):  # a name like `pnpm` stays as it is written
        text = text[:1].upper() + text[1:]
    text = ended(text)
    kind, severity = typed(text, MemoryKind.LESSON if _LESSON.match(labelled) else None)
    return Statement(kind, text, severity)


def typed(text: str, kind: MemoryKind | None = None) -> tuple[MemoryKind, Severity]:
    """Kind, if it is not known, and severity, as the words tell."""
    rules = cues.binding(text)
    severity = _severity(rules)
    kind = kind or _kind(rules, severity)
    return kind, severity if kind in _RULES else Severity.NONE


def _has(text: str, *names: str) -> bool:
    return any(name in names and pattern.search(text) for name, pattern in cues.compiled())


_SEVERITIES = (
    (Severity.DO_NOT, r"\b(?:never|must not|mustn'?t|shall not|not allowed|not permitted|forbidden|under no|nowhere|"
     r"nobody may|no new)\b|^no (?!no\b|thank|worries|problem|idea|doubt|rush|need\b)|^(?:please )?stop \w+ing\b|"
     r"(?:^|[^\w' ]\s*|\b(?:i|you|we|one|please|pls|kindly|and|but|so|or|also|just|then|ok|really|rather|better) )"
     r"(?:don'?t|do not|dont|can'?t)\b|"  # what others do not do is no rule
     + abroad.NEVER + "|" + abroad.NOT),
    (Severity.AVOID, r"\b(?:avoid|rather not|try not to|stay away|i (?:really )?(?:hate|dislike))\b"),
    (Severity.MUST, r"\b(?:must|always|shall|has to|have to|required|mandatory|needs? to|only|every time|"
     r"at (?:the )?most|at least)\b|" + abroad.ALWAYS + "|" + abroad.MUST),
    (Severity.PREFER, r"\b(?:prefer|i'?d like|i like|i want|rather|please|should|favou?r)\b|" + abroad.PREFER),
    (Severity.ALLOW, r"(?<!\bin )(?<!\bby )(?<!\bof )(?<!\d )\b(?-i:may)\b(?! \d)|"  # no month
     r"\b(?:allowed|is fine|are fine|it'?s ok(?:ay)?|feel free)\b"),
)  # fmt: skip


_RULES = (MemoryKind.CONSTRAINT, MemoryKind.PREFERENCE, MemoryKind.PROCEDURE)  # what can be strict


def _severity(text: str) -> Severity:
    return next((each for each, words in _SEVERITIES if re.search(words, text, re.IGNORECASE)), Severity.NONE)


def _kind(text: str, severity: Severity) -> MemoryKind:
    if _has(text, "open"):
        return MemoryKind.OPEN_THREAD
    if _has(text, "always") and severity in BINDING:
        return MemoryKind.CONSTRAINT
    if _has(text, "procedure"):
        return MemoryKind.PROCEDURE
    if _has(text, "lesson"):
        return MemoryKind.LESSON
    if _has(text, "decision"):
        return MemoryKind.DECISION
    if _has(text, "prefer", "from-now-on", "keep-x") or (_has(text, "x-not-y") and not _has(text, "is-x")):
        return MemoryKind.PREFERENCE
    if _has(text, "must", "pinned", "no-thing") or severity in BINDING:
        return MemoryKind.CONSTRAINT
    return MemoryKind.PREFERENCE if severity is not Severity.NONE else MemoryKind.FACT
