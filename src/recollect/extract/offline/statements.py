"""The typed statements of a conversation: the user's own words first, then what the user agreed to, then findings."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import log

from recollect.extract.offline import abroad, cues, proposals
from recollect.extract.offline.amends import amended
from recollect.extract.offline.units import TOOL, Unit, own_words, units
from recollect.extract.resolve import is_revision, is_same
from recollect.occasions import occasions
from recollect.text import COMMON, content_words, ended, overlap
from recollect.types import BINDING, MemoryKind, Message, Role, Severity, Statement

LONGEST = 400  # characters of sentences that are joined
_MOST_CHARACTERS = 800  # of a statement; some people write without full stops
MOST = 24  # statements of a conversation
_THRESHOLD = 0.0
_USUAL = 18  # sentences of one side of a conversation: weights are for such
_SENTENCE = 4  # words: "ok, next" makes no conversation long
_CROWDED = 0.4  # how much higher the bar is where there are e times as many
_NEIGHBOUR = -0.7  # a weaker sentence that explains a kept one
_STRONG = 0.4  # a statement that speaks for its neighbours too
_COMPANY = 0.9
_CLOSE = 240  # characters of statements that belong to one thought
_SAME = 0.6  # shared words that make two statements one
_BACK = 3  # of the user's messages, the last ones, in which the request before a statement is looked for
_TELLING = 3  # words of a request that tells what was asked for


@dataclass(slots=True)
class Candidate:
    message: int
    text: str
    score: float
    kind: MemoryKind | None = None
    asked: str = ""  # what it answers, without which nobody knows what was chosen
    corrects: Candidate | None = None  # what the user said before, and takes back by it


def statements(messages: Sequence[Message]) -> list[Statement]:
    """Every statement once, in the order of the conversation; the best ones when there are too many."""
    every = units(messages)
    mine = [unit for unit in every if unit.role is Role.USER]
    found = _amended(mine, [*_said(messages, mine)])
    bar = _bar(unit for unit in every if unit.role is not Role.USER)
    found += [Candidate(each.message, each.text, each.score - bar, each.kind) for each in proposals.found(messages)]
    best = sorted((each for each in _distinct(found) if each.score > 0), key=lambda each: -each.score)[:MOST]
    said = [content_words(each.text) for each in best]
    return [
        _statement(each, messages, _asked(each.message, messages, said))
        for each in sorted(best, key=lambda each: (each.message, -each.score))
    ]


def _bar(said: Iterable[Unit]) -> float:
    """A long session is mostly talk about the work at hand, and says hardly more that lasts than a short one does."""
    sentences = sum(len(unit.text.split()) >= _SENTENCE for unit in said)
    return _CROWDED * max(log(max(sentences, 1) / _USUAL), 0.0) ** 2


def _said(messages: Sequence[Message], mine: Sequence[Unit]) -> Iterable[Candidate]:
    """The user's own statements; a sentence that explains its neighbour joins it."""
    bar, settings = _bar(mine), settings_of(messages, mine)
    scores = _in_context(mine, [cues.score(unit, each) - bar for unit, each in zip(mine, settings, strict=True)])
    chosen = {unit: each.chosen or _put_off(messages, unit) for unit, each in zip(mine, settings, strict=True)}
    group: list[tuple[Unit, float]] = []
    for unit, score in zip(mine, scores, strict=True):
        if group and _continues(group, unit, score):
            group.append((unit, score))
            continue
        yield from _candidate(group, chosen)
        group = [(unit, score)] if score > _NEIGHBOUR else []
    yield from _candidate(group, chosen)


def _amended(mine: Sequence[Unit], said: Sequence[Candidate]) -> list[Candidate]:
    """What was taken back stands with its correction, and nowhere without it."""
    found = list(said)
    for each in amended(mine, [(candidate.message, candidate.text) for candidate in said]):
        earlier = [candidate for candidate in found if candidate.message == each.earlier][-1:]
        later = [candidate for candidate in found if candidate.message == each.message]
        if (
            not earlier
            or _has(each.text, "you-did")
            or any(is_revision(candidate.text, earlier[0].text) for candidate in later)
        ):
            continue
        told = [candidate for candidate in later if content_words(candidate.text) <= content_words(each.text)]
        found = [candidate for candidate in found if candidate not in (*earlier, *told)]
        if each.text:
            score = max(candidate.score for candidate in (*earlier, *told))
            found.append(Candidate(each.message, each.text, score, corrects=earlier[0]))
    return sorted(found, key=lambda candidate: candidate.message)


def settings_of(messages: Sequence[Message], mine: Sequence[Unit]) -> list[cues.Setting]:
    """What surrounds each of the user's sentences."""
    working = any(TOOL.search(message.text) for message in messages if message.role is Role.ASSISTANT)
    asked = [False, *(message.role is Role.ASSISTANT and _asks(message.text) for message in messages)]
    return [cues.Setting(asked[unit.message], working, _chosen(messages, unit)) for unit in mine]


def _chosen(messages: Sequence[Message], unit: Unit) -> str:
    """What is answered by a message that begins with one of several things: the question that left the choice or, where
    that is only "which one?", the sentence before it that names what was chosen. Empty: nothing that lasts."""
    before = messages[unit.message - 1] if unit.message else unit
    if unit.position or before.role is Role.USER or len(unit.text.split()) > _ANSWER or _TURNS_DOWN.search(unit.text):
        return ""
    lines = [text for _, text in own_words(before.text, Role.ASSISTANT)]
    if not lines or not _CHOICE.search(lines[-1]) or _has(lines[-1], "now"):
        return ""
    shared = [len(content_words(line) & content_words(unit.text)) for line in lines]
    named = lines[shared.index(max(shared))] if any(shared) else ""
    asked = lines[-1] if named and len(content_words(lines[-1]) - _CHOOSING) > 1 else named
    return asked if len(asked) <= _CLOSE else ""


def _put_off(messages: Sequence[Message], unit: Unit) -> str:
    """What "skip that for now, remind me next week" is said of: the agent's last sentence. Empty: it says so itself."""
    before = messages[unit.message - 1] if unit.message else unit
    short = len(unit.text.split()) <= _ANSWER and not unit.position
    if not short or before.role is Role.USER or not _has(unit.text, "open") or not _POINTS.search(unit.text):
        return ""
    lines = [text for _, text in own_words(before.text, Role.ASSISTANT)]
    return lines[-1].rstrip(".") if lines and len(lines[-1]) <= _CLOSE else ""


_POINTS = re.compile(
    r"\b(?:that|this|it|them)(?! \w+ing\b)(?=[,.;!]| (?:for|until|till|to|later|next|tomorrow)\b|$)", re.I
)
_ANSWER = 14  # words
_TURNS_DOWN = re.compile(r"^\W*(?:no|not|nope|nah|neither)\b|\bbut not\b|\.\.\.|…", re.IGNORECASE)
_CHOICE = re.compile(r"\b(?:which|either|or|prefer|oder|welche\w*|ou|quel\w*|o(?!')|cuál)\b.*\?$", re.IGNORECASE)
_CHOOSING = content_words("which one of the two would you like, prefer, want, rather take, use")


def _asks(text: str) -> bool:
    """Does it end with a question, tool lines aside?"""
    lines = (line.strip(" \t\"')*_") for line in reversed(text.splitlines()))
    return next((line.endswith("?") for line in lines if line and not TOOL.match(line)), False)


def _in_context(mine: Sequence[Unit], scores: Sequence[float]) -> list[float]:
    """Who says one thing that lasts is likely to say another in the same breath."""
    best: dict[int, float] = {}
    for unit, score in zip(mine, scores, strict=True):
        best[unit.message] = max(score, best.get(unit.message, score))
    return [
        score + _COMPANY if score < best[unit.message] and best[unit.message] > _STRONG else score
        for unit, score in zip(mine, scores, strict=True)
    ]


def _continues(group: Sequence[tuple[Unit, float]], unit: Unit, score: float) -> bool:
    last = group[-1][0]
    if unit.message != last.message or unit.position != last.position + 1 or unit.form != "prose" or len(group) == 3:
        return False
    if score <= _NEIGHBOUR or sum(len(each.text) for each, _ in group) + len(unit.text) > LONGEST:
        return False
    close = len(last.text) + len(unit.text) <= _CLOSE and min(score, group[-1][1]) > _THRESHOLD
    return close or bool(_EXPLAINS.match(unit.text)) or bool(content_words(unit.text) & content_words(last.text))


def _candidate(group: Sequence[tuple[Unit, float]], chosen: Mapping[Unit, str]) -> Iterable[Candidate]:
    """The sentences of a group from the first kept one to the last kept one or its explanation."""
    kept = [index for index, (_, score) in enumerate(group) if score > _THRESHOLD]
    if kept:
        text = " ".join(ended(unit.text) for unit, _ in group[kept[0] :])
        first = group[kept[0]][0]
        yield Candidate(first.message, text, max(score for _, score in group), asked=chosen[first])


_EXPLAINS = re.compile(
    r"(?:because|since|so|otherwise|that|this|it|they|he|she|those|these|which|then|and|but|else|reason|as|if not)\b",
    re.IGNORECASE,
)


def _distinct(found: Sequence[Candidate]) -> list[Candidate]:
    """What says the same folds into the first, the user's own; another value that the user names later replaces the one
    before. What the assistant says is told by somebody else's words already where it is only like them."""
    kept: list[Candidate] = []
    for each in found:
        mine = content_words(each.text)
        if each.kind is None:
            kept = [other for other in kept if not is_revision(each.text, other.text)]
            told = any(is_same(each.text, other.text) or mine <= content_words(other.text) for other in kept)
        else:
            told = any(overlap(mine, theirs) >= _SAME or mine <= theirs for theirs in map(_words_of, kept))
            told = told or any(_denies(other, each.message) & mine or _answers(other, each) for other in kept)
        if mine and not told:
            kept.append(each)
    return kept


def _denies(said: Candidate, before: int) -> frozenset[str]:
    """What the user says it is not, after that message: "we use hisat2, not STAR"."""
    return content_words(" ".join(_NOT.findall(said.text)) if said.kind is None and said.message > before else "")


def _answers(said: Candidate, found: Candidate) -> bool:
    """The user's own words tell what of the proposals was chosen."""
    return bool(said.asked) and said.message == found.message + 1 and found.kind is MemoryKind.DECISION


_NOT = re.compile(r"\b(?:not|instead of|rather than) (?:the |an? |with |on |in )?([\w.+#-]+)", re.IGNORECASE)


def _words_of(candidate: Candidate) -> frozenset[str]:
    return content_words(candidate.text)


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
_REQUEST = re.compile(
    r"(?:please|pls|now|then|can|could|would|will|let'?s|let me|how|why|what|where|which|who|help|"
    r"(?:i|we)(?:'d| would)? (?:want|need|like) (?:to|you|a|an|the|some)|i'?m (?:getting|trying|going)|"
    r"answer|book|calculate|call|cancel|configure|connect|count|debug|design|document|draw|enable|disable|estimate|"
    r"export|extend|figure|get|handle|hook|import|log|mail|email|measure|migrate|order|outline|parse|plan|port|prepare|"
    r"profile|render|reply|research|schedule|split|support|swap|switch|trace|upgrade|wire|work)\b",
    re.IGNORECASE,
)
_ORDERS = re.compile(abroad.ORDERS, re.IGNORECASE)
_LESSON = re.compile(r"(?:\w+ )?lesson\b[^:]{0,20}:", re.IGNORECASE)


def _statement(candidate: Candidate, messages: Sequence[Message], asked: str) -> Statement:
    entry = messages[candidate.message].uuid
    if candidate.corrects:
        return _corrected(_statement(candidate.corrects, messages, asked), _spaced(candidate.text), entry)
    text = labelled = _spaced(candidate.text)
    text = _OPENING.sub("", text) or text
    text = _TAIL.sub("", _HEAD.sub("", text)) or text
    if len(text) > _MOST_CHARACTERS:
        text = text[:_MOST_CHARACTERS].rsplit(" ", 1)[0] + "…"
    first = text.split(" ", 1)[0]
    if first.lower() in COMMON or cues.is_verb(first):  # a name like `pnpm` stays as it is written
        text = text[:1].upper() + text[1:]
    text = ended(text)
    kind, severity = typed(text, candidate.kind or (MemoryKind.LESSON if _LESSON.match(labelled) else None))
    if candidate.asked and kind is MemoryKind.FACT:
        kind = MemoryKind.DECISION
    return Statement(
        kind=kind,
        text=f"{candidate.asked} – {text}" if candidate.asked else text,
        severity=severity,
        entries=(entry,),
        occasions=occasions([asked]),
    )


def _corrected(before: Statement, text: str, entry: str) -> Statement:
    """A rule whose correction does not tell how strict it is, is that rule still."""
    kind, severity = typed(text)
    if severity is Severity.NONE:
        kind, severity = before.kind, before.severity
    joined = f"{before.text.rstrip('. ')} – {ended(text)}"
    return replace(before, text=joined, kind=kind, severity=severity, entries=(*before.entries, entry))


def _spaced(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()


def _asked(message: int, messages: Sequence[Message], said: Sequence[frozenset[str]]) -> str:
    """The request in whose course it was said, without what was stated along with it; empty: none that tells anything.

    The next request of that kind is one to which the statement matters.
    """
    mine = [each for each in messages[: message + 1] if each.role is Role.USER]
    for each in reversed(mine[-_BACK:]):
        own = [text for _, text in own_words(each.text, each.role) if is_request(text)]
        asked = " ".join(text for text in own if not any(content_words(text) <= known for known in said))
        if len(asked.split()) >= _TELLING and content_words(asked):
            return asked
    return ""


def is_request(text: str) -> bool:
    opened = _OPENING.sub("", text)
    first = opened.partition(" ")[0]
    return text.endswith("?") or bool(_REQUEST.match(opened) or _ORDERS.match(opened)) or cues.is_verb(first)


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
