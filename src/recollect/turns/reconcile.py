"""The reconciler: what the current turn says, and which earlier turns' memories matter for it.

In go the current turn, earlier turns in short, the table of candidates, feedback and memories; out come objective,
assertions, exceptions, facts and `local_memories_turn_ids`. Ids count only if they were offered: a unique beginning is
completed, anything else is dropped. An item must be grounded in the user's own words, whoever found it. With a model or
by rules the contract is the same; a model that fails is replaced by the rules, and the result says why.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from recollect.errors import UsageError
from recollect.everywhere import holds_everywhere
from recollect.extract.offline.statements import statements, typed
from recollect.extract.offline.units import own_words
from recollect.extract.resolve import is_revision, is_same
from recollect.models.base import ModelFailed
from recollect.models.paid import CapReached
from recollect.near import NEGATIONS
from recollect.text import COMMON, content_words, ended, overlap, sentences, words
from recollect.turns.present import View
from recollect.turns.values import (
    By,
    Feedback,
    Item,
    Kind,
    Limit,
    Opinion,
    Origin,
    TurnMemory,
    Weight,
    Wish,
    is_sentence,
    item,
    normalise_key,
    settled,
    shown,
)
from recollect.types import MemoryKind, Role, Scope, Severity, Statement, Timestamp

_GROUNDED = 0.34  # of an item's words that the user must have used
_RELATED = 0.12  # shared words that make an earlier turn relevant
_FRESH = 2  # newest turns that matter without sharing a word
_MOST_ITEMS = 12
_MOST_CHOSEN = 12


@dataclass(frozen=True, slots=True)
class Offer:
    """The reconciler's input."""

    turn_id: str
    user_text: str
    view: View  # journal: current turn, prior turns, candidates, feedback, memories
    candidates: tuple[TurnMemory, ...]  # the pool; ids outside of it do not count
    feedback: tuple[Feedback, ...] = ()
    last_turn: str = ""  # the turn before this one, which feedback is about
    recalled: tuple[str, ...] = ()  # refs that search found for this text, or that matter to it by their meaning


@dataclass(frozen=True, slots=True)
class Reconciled:
    """The reconciler's output."""

    objective: str = ""
    topics: tuple[str, ...] = ()
    assertions: tuple[Item, ...] = ()
    exceptions: tuple[Item, ...] = ()
    facts: tuple[Item, ...] = ()
    local_memories_turn_ids: tuple[str, ...] = ()
    kept_turn_ids: tuple[str, ...] = ()  # not chosen, but they hold what binds
    unknown_turn_ids: tuple[str, ...] = ()  # asked for, and never offered: dropped
    feedback: Feedback | None = None  # what the user said about an earlier answer
    picked_bucket_ids: tuple[str, ...] = ()
    by: By = By.RULES
    failure: str = ""  # why the model gave no answer

    def json(self) -> dict[str, Any]:
        """The output contract."""
        lists = {name: [each.json() for each in getattr(self, name)] for name in ("assertions", "exceptions", "facts")}
        chosen = list(self.local_memories_turn_ids)
        return {"objective": self.objective, "topics": list(self.topics), **lists, "local_memories_turn_ids": chosen}


Ask = Callable[[str], Mapping[str, Any]]  # journal → the model's answer


def reconcile(offer: Offer, ask: Ask | None) -> Reconciled:
    failure = ""
    if ask is not None:
        try:
            return finished(_by_model(offer, ask(offer.view.text)), offer)
        except (ModelFailed, CapReached) as error:
            failure = f"{getattr(error, 'failure', error.kind)}: {error.message}"
    return finished(replace(by_rules(offer), failure=failure), offer)


def finished(found: Reconciled, offer: Offer) -> Reconciled:
    """Ids as they were offered; what binds is kept, chosen or not."""
    chosen, unknown = chosen_ids(found.local_memories_turn_ids, [each.ref for each in offer.candidates])
    binding = [
        each.ref
        for each in settled(offer.candidates)
        if each.ref not in chosen and any(one.is_binding for one in each.fingerprint.items)
    ]
    return replace(found, local_memories_turn_ids=chosen, kept_turn_ids=tuple(binding), unknown_turn_ids=unknown)


def chosen_ids(asked: Iterable[str], offered: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Those that were offered, in the order asked for, and those that were not."""
    pool = set(offered)
    chosen: dict[str, None] = {}
    unknown: list[str] = []
    for each in asked:
        each = each.strip()
        beginning = [one for one in pool if each and one.startswith(each)]
        if each in pool:
            chosen[each] = None
        elif len(beginning) == 1:
            chosen[beginning[0]] = None
        elif each:
            unknown.append(each)
    return tuple(chosen), tuple(unknown)


def is_grounded(one: Item, said: str) -> bool:
    mine = content_words(f"{one.key.replace('_', ' ')} {shown(one.value)}")
    return bool(mine) and len(mine & content_words(said)) >= _GROUNDED * len(mine)


# With a model


def _by_model(offer: Offer, told: Mapping[str, Any]) -> Reconciled:
    said = " ".join(text for _, text in own_words(offer.user_text, Role.USER))
    lists: dict[str, Any] = {
        name: tuple(_usable(kind, told.get(name) or (), said))[:_MOST_ITEMS]
        for name, kind in (("assertions", Kind.ASSERTION), ("exceptions", Kind.EXCEPTION), ("facts", Kind.FACT))
    }
    return Reconciled(
        objective=str(told.get("objective") or "")[:400],
        topics=tuple(str(each)[:60] for each in told.get("topics") or ())[:4],
        local_memories_turn_ids=tuple(map(str, told.get("local_memories_turn_ids") or ()))[:_MOST_CHOSEN],
        feedback=_judged(offer, told.get("feedback")),
        by=By.MODEL,
        **lists,
    )


def _usable(kind: Kind, told: Iterable[Mapping[str, Any]], said: str) -> Iterable[Item]:
    for each in told:
        severity, scope = str(each.get("severity") or ""), str(each.get("scope") or Scope.PROJECT)
        value = each.get("value", "")
        try:
            places = each.get("applies_to") or ()
            key, quote = str(each.get("key", "")), said[:200]
            made = item(kind, key, value, severity, scope=scope, applies_to=places, quote=quote, by=By.MODEL)
        except UsageError:
            continue
        if is_grounded(made, said):
            yield made


def _judged(offer: Offer, told: Any) -> Feedback | None:
    if not isinstance(told, Mapping):
        return None
    known = [offer.last_turn, *(each.turn_id for each in offer.candidates if not each.conversation)]
    turns, _ = chosen_ids([str(told.get("turn_id"))], [each for each in known if each])
    if not turns:
        return None
    try:
        sure, said = float(told["confidence"]), str(told.get("text", ""))[:400]
        made = Feedback(turns[0], Opinion(str(told.get("reaction"))), said, sure, Origin.MACHINE)  # fmt: skip
    except (ValueError, UsageError, TypeError, KeyError):
        return None
    return made if made.counts else None


# By rules


def by_rules(offer: Offer) -> Reconciled:
    found = [part for each in statements(offer.user_text) for part in _sentences(each)]
    found += _told(offer.user_text, " ".join(each.text for each in found), offer.candidates)
    items = [one for each in found for one in _items(each, offer.candidates)][:_MOST_ITEMS]
    of = {kind: tuple(each for each in items if each.kind is kind) for kind in Kind}
    objective = objective_of(offer.user_text)
    return Reconciled(
        objective=objective,
        topics=topics_of(objective or offer.user_text, items),
        assertions=of[Kind.ASSERTION],
        exceptions=of[Kind.EXCEPTION],
        facts=of[Kind.FACT],
        local_memories_turn_ids=relevant(offer),
        feedback=opinion_on(offer),
    )


def objective_of(text: str) -> str:
    """The user's question or request, else the beginning."""
    said = [sentence for _, sentence in own_words(text, Role.USER)]
    asks = [each for each in said if each.endswith("?") or _ASKS.match(each)]
    rest = [each for each in said if not _DISLIKES.search(each) and not _LIKES.search(each)]
    chosen = next(iter([*asks, *rest, *said]), "")
    return chosen if len(chosen) <= 200 else chosen[:200].rsplit(" ", 1)[0] + "…"


_ASKS = re.compile(
    r"(?:please |can you |could you |now |then )*(?:find|plan|book|write|show|give|help|suggest|recommend|make|explain|"
    r"compare|list|draft|translate|fix|add|check|tell|create|summari[sz]e|look|order|send)\b",
    re.IGNORECASE,
)


def topics_of(text: str, items: Sequence[Item]) -> tuple[str, ...]:
    told = [word for word in _telling(text) if word.isalpha()]
    return tuple(dict.fromkeys([*told[:3], *(each.key.split("_")[0] for each in items)]))[:4]


_CUES = frozenset(
    """except prefer always never please must should avoid actually instead remember need needs keep note want rather
    stop time today now answer say said dont don't can't anymore longer current mean meant wrong correction""".split()
)


def _telling(text: str) -> list[str]:
    """Words that name things, in order."""
    return [
        word
        for word in words(text.replace("’", "'"))
        if word not in COMMON
        and word not in NEGATIONS
        and word not in _CUES
        and len(word) > 1
        and not word[0].isdigit()
    ]


def _sentences(found: Statement) -> list[Statement]:
    """One statement each; a sentence that only explains stays with what it explains."""
    parts: list[str] = []
    for each in sentences(found.text):
        if parts and _EXPLAINS.match(each):
            parts[-1] += f" {each}"
        else:
            parts.append(each)
    told = [typed(each, found.kind if len(parts) == 1 else None) for each in parts]
    return [
        replace(found, text=each, kind=kind, severity=severe) for each, (kind, severe) in zip(parts, told, strict=True)
    ]


def _told(text: str, known: str, pool: Sequence[TurnMemory]) -> list[Statement]:
    """What people tell about themselves, ask for or take back in a chat, and a transcript's rules leave out as
    passing."""
    had = set(_telling(known))
    said = [each for _, each in own_words(text, Role.USER) if not each.endswith("?")]
    said = [each for each in said if not had.issuperset(_telling(each))]
    kept = (_SELF, _STYLE, _WISHES)
    new = [each for each in said if any(one.search(each) for one in kept) or _takes_back(each, pool)]
    told = [ended(each) for each in new]
    return [Statement(kind, each, severity) for each in told for kind, severity in [typed(each)]]


def _takes_back(text: str, pool: Sequence[TurnMemory]) -> bool:
    """Does it say that something is not as it was said before?"""
    values = (shown(one.value) for each in pool for one in each.fingerprint.items)
    return bool(_CHANGED.search(text)) and any(is_revision(text, each) for each in values)


_CHANGED = re.compile(r"\b(?:any ?more|no longer|again|instead|now|actually|after all)\b", re.IGNORECASE)
_SELF = re.compile(
    r"\b(?:my|our) [\w' -]{2,40} (?:is|are|was|were|has|have)\b|\bi(?:'m| am) (?:(?:not |no longer )?(?:an?|allergic|"
    r"vegan|vegetarian)|from|based|in|on a|using|working|travel\w+)\b|\b(?:i|we) (?:have|own|live|work|use|run|moved|"
    r"was born|speak|drive|don't have)\b",
    re.IGNORECASE,
)
_STYLE = re.compile(
    r"\b(?:keep|make) (?:your |the )?(?:answers?|repl(?:y|ies)|it|them|responses?)\b|\b(?:answer|reply|respond|write)"
    r" (?:in|with|as)\b|\bno [\w -]{2,40} please\b|\bcall me\b",
    re.IGNORECASE,
)
_WISHES = re.compile(  # of something in general; what is pointed at is meant once
    r"(?:^(?:please )?(?:use|stop \w+ing|avoid \w+ing|(?:don'?t|do not) (?:use|send|ask|call|mention|suggest|recommend|"
    r"include|show|contact|e?mail|remind|offer))|\bi (?:really |just )?(?:hate|dislike|can'?t stand|(?:don'?t|do not|"
    r"never|can'?t|cannot) (?:eat|drink|like|wear|fly|drive|smoke)))(?: (?:me|us))?(?= )(?! (?:it|its|this|that|the|"
    r"these|those|him|her|them|my|your|you|yet|now|anything|when|how)\b)",
    re.IGNORECASE,
)
_WEIGHTY = re.compile(r"\b(?:allerg\w+|diabet\w+|medication|pregnant|emergency|intoleran\w+|disab\w+)\b", re.IGNORECASE)


def _items(found: Statement, pool: Sequence[TurnMemory]) -> list[Item]:
    """The rule, and beside it the special case that it names."""
    scope = Scope.USER if holds_everywhere(found.text) else Scope.PROJECT
    if scope is Scope.PROJECT and _FOR_NOW.search(found.text):
        scope = Scope.CONVERSATION
    special = _EXCEPT.search(found.text)
    rule = found.text[: special.start()].rstrip(" ,;-") + "." if special else found.text
    kind, severity = _kind(found)
    key = _known_key(rule, pool) or "_".join(_telling(rule)[:3]) or "note"
    limited = tuple(each.group(1).strip() for each in _ONLY.finditer(rule))
    more: dict[str, Any] = {"scope": scope, "quote": found.text[:200], "by": By.RULES}
    made = [item(kind, key, rule, severity, applies_to=limited, **more)]
    if special and kind is Kind.ASSERTION:
        where = special.group(2).strip()
        made.append(item(Kind.EXCEPTION, key, special.group().strip(" ,;."), Limit.AVOID, applies_to=where, **more))
    return made


_EXPLAINS = re.compile(r"(?:because|since|so|otherwise|that|this|it|they|he|she|those|these|which|reason)\b", re.I)
_FOR_NOW = re.compile(
    r"\b(?:for now|this time|just (?:this|today)|today|in this (?:chat|conversation)|right now)\b", re.I
)
_EXCEPT = re.compile(r",? ?\b(?:except|but not|unless)(?: (for|in|on|when|at|with|during))? ([^.,;!?]{2,80})", re.I)
_ONLY = re.compile(r"\bonly (?:for|in|on|when|at|with|during) ([^.,;!?]{2,60})", re.I)


def _kind(found: Statement) -> tuple[Kind, str]:
    if found.severity is Severity.DO_NOT:
        return Kind.EXCEPTION, Limit.DO_NOT
    if found.severity is Severity.AVOID:
        return Kind.EXCEPTION, Limit.AVOID
    if found.severity is not Severity.NONE:
        return Kind.ASSERTION, Wish(found.severity)
    if _SELF.search(found.text) and not re.search(r"\bprefer", found.text, re.IGNORECASE):
        return Kind.FACT, Weight.HIGH if _WEIGHTY.search(found.text) else Weight.MEDIUM
    if _STYLE.search(found.text):
        return Kind.ASSERTION, Wish.PREFER
    if found.kind in (MemoryKind.PREFERENCE, MemoryKind.DECISION, MemoryKind.CONSTRAINT, MemoryKind.PROCEDURE):
        return Kind.ASSERTION, Wish.PREFER
    return Kind.FACT, Weight.MEDIUM


def _known_key(text: str, pool: Sequence[TurnMemory]) -> str:
    """The key of what it says again, or says otherwise: the newest one."""
    for memory in sorted(pool, key=lambda each: each.at, reverse=True):
        for each in memory.fingerprint.items:
            older = shown(each.value)
            named = not is_sentence(older) and normalise_key(each.key) in content_words(text)
            if is_same(text, older) or is_revision(text, older) or named:
                return each.key
    return ""


def relevant(offer: Offer) -> tuple[str, ...]:
    """Turns that share words with what is asked now, those that search found, and the freshest."""
    wanted = content_words(offer.user_text)
    scored = []
    for place, each in enumerate(sorted(offer.candidates, key=lambda one: (one.at, one.turn_id), reverse=True)):
        if not each.fingerprint.items:
            continue
        told = " ".join([each.fingerprint.objective, *(one.text for one in each.fingerprint.items)])
        share = overlap(wanted, content_words(told))
        found = each.ref in offer.recalled
        if share >= _RELATED or found or (place < _FRESH and not each.conversation):
            scored.append((-share - (0.2 if found else 0.0), place, each.ref))
    return tuple(ref for _, _, ref in sorted(scored)[:_MOST_CHOSEN])


_LIKES = re.compile(
    r"^\W*(?:(?:thanks?|thank you|that (?:works|worked|helped)|well done)\b|(?:perfect|great|exactly|awesome|excellent|"
    r"nice)(?:\W*$|\s*[^\w\s]| (?:thanks?|thank|thx|answers?|reply|work|job|idea|plan|list|one|stuff|help|suggestions?|"
    r"that|this|what|it|you|i|so|and|now)\b))",
    re.IGNORECASE,
)
_DISLIKES = re.compile(
    r"\b(?:that|this|it|your (?:answer|reply))(?:'s| is| was)(?: still| just| all)? (?:wrong|incorrect|"
    r"not (?:right|true|correct|what i|helpful))|\byou(?:'re| are| got it| were) wrong\b|"
    r"\bnot what i (?:asked|meant|wanted)\b|\byou (?:misunderstood|ignored|forgot|missed)\b|^\W*(?:no|nope|wrong)[,.!]"
    r"(?! (?:thanks?|thank you|no (?:need|problem|worries))\b)",
    re.IGNORECASE,
)


def opinion_on(offer: Offer) -> Feedback | None:
    """What the user says about the answer before this turn."""
    said = next((text for _, text in own_words(offer.user_text, Role.USER)), "")
    if not said or not offer.last_turn:
        return None
    for pattern, reaction, sure in ((_DISLIKES, Opinion.NOT_OK, 0.85), (_LIKES, Opinion.OK, 0.75)):
        if pattern.search(said):
            return Feedback(offer.last_turn, reaction, said[:400], sure, Origin.MACHINE, Timestamp(""))
    return None
