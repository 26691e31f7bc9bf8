"""Assistant signals: what the final answer promoted or claimed, as the caller's specification names it.

A specification says for every key what it means and, if the caller likes, the words to look for. By rules a sentence
that holds such words shows the signal; with a model its answer is held against the specification and the answer's own
words.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from recollect.errors import UsageError
from recollect.extract.offline.units import own_words
from recollect.models.base import ModelFailed
from recollect.models.paid import CapReached
from recollect.text import content_words
from recollect.turns.values import By, Item, Push, normalise_key, several, signal
from recollect.types import Role

_MOST = 12  # signals of one answer
_ALIKE = 0.5  # of a description's words in one sentence, where no words were given
_STRONG = re.compile(
    r"\b(?:highly|strongly|definitely|absolutely|best|must[- ]|unbeatable|don'?t miss|you should really|limited)\b",
    re.I,
)
_RECOMMENDS = re.compile(
    r"\b(?:recommend|suggest|consider|try|worth|would suit|go (?:for|with)|upgrade|have a look|check out|could use)",
    re.I,
)


@dataclass(frozen=True, slots=True)
class SignalRule:
    """What to look for."""

    description: str
    patterns: tuple[str, ...] = ()  # words, or regular expressions; case does not matter
    severity: str = ""  # fixed; empty: as the sentence tells


SignalSpec = Mapping[str, SignalRule | str]
"""Key → a rule, or just its description."""

Ask = Callable[[str], Mapping[str, Any]]


def checked(spec: SignalSpec | None) -> dict[str, SignalRule]:
    if not isinstance(spec, Mapping | None):
        raise UsageError("signals are a mapping", hint="Key → a description, or a SignalRule.")
    found = {}
    for key, rule in (spec or {}).items():
        made = SignalRule(rule) if isinstance(rule, str) else rule
        if not normalise_key(key) or not isinstance(made, SignalRule) or not (made.description or made.patterns):
            raise UsageError(f"the signal `{key}` needs a key, and a description or patterns")
        made = replace(made, patterns=tuple(several(made.patterns)))
        for pattern in made.patterns:
            try:
                re.compile(pattern)
            except re.error as error:
                raise UsageError(f"the signal `{key}` has a pattern that is none: {error}") from error
        if made.severity:
            signal(key, "?", made.severity)
        found[key] = made
    return found


def extract(answer: str, spec: SignalSpec | None, ask: Ask | None = None) -> tuple[Item, ...]:
    """The signals of an answer; none without a specification."""
    rules = checked(spec)
    if not rules or not answer.strip():
        return ()
    if ask is not None:
        try:
            return _by_model(answer, rules, ask)
        except (ModelFailed, CapReached):
            pass  # the rules see less, but they see something
    return _by_rules(answer, rules)


def _by_rules(answer: str, rules: Mapping[str, SignalRule]) -> tuple[Item, ...]:
    found = []
    sentences = [text for _, text in own_words(answer, Role.ASSISTANT)]
    for key, rule in rules.items():
        shown = [each for each in sentences if _shows(key, rule, each)]
        if shown:
            strongest = max(shown, key=lambda each: _ORDER.index(_severity(each)))
            severity = rule.severity or _severity(strongest)
            found.append(signal(key, strongest[:240], severity, quote=strongest[:240], by=By.RULES))
    return tuple(found[:_MOST])


_ORDER = (Push.MENTION, Push.RECOMMEND, Push.STRONG_PROMOTE)


def _severity(sentence: str) -> Push:
    if _STRONG.search(sentence):
        return Push.STRONG_PROMOTE
    return Push.RECOMMEND if _RECOMMENDS.search(sentence) else Push.MENTION


def _shows(key: str, rule: SignalRule, sentence: str) -> bool:
    if rule.patterns:
        return any(re.search(pattern, sentence, re.IGNORECASE) for pattern in rule.patterns)
    said = content_words(sentence)
    named = content_words(normalise_key(key).replace("_", " "))
    meant = content_words(rule.description)
    return bool(named) and (named <= said or len(meant & said) >= max(_ALIKE * len(meant), 2))


def journal(answer: str, rules: Mapping[str, SignalRule]) -> str:
    listed = "\n".join(f"- {key}: {rule.description}" for key, rule in rules.items())
    inside = re.sub(r"<(/?)(?=(?:answer|signals)\b)", r"‹\1", answer, flags=re.IGNORECASE)
    return f"<signals>\n{listed}\n</signals>\n<answer>\n{inside}\n</answer>"


def _by_model(answer: str, rules: Mapping[str, SignalRule], ask: Ask) -> tuple[Item, ...]:
    told = ask(journal(answer, rules)).get("assistant_signals") or ()
    said, found = content_words(answer), {}
    for each in told:
        key, value = str(each.get("key", "")), str(each.get("value", ""))[:240]
        mine = content_words(value)
        if key not in rules or key in found or not mine or len(mine & said) < 0.5 * len(mine):
            continue
        severity = rules[key].severity or str(each.get("severity") or "")
        found[key] = signal(key, value, severity if severity in list(Push) else "mention", quote=value, by=By.MODEL)
    return tuple(found.values())[:_MOST]
