"""What a person types to be kept: "remember …", and rules that stand. Told by words, in several languages. Pure.

Extraction without a model keeps such sentences, and a conversation that holds one is never too short to be processed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from recollect.text import sentences
from recollect.types import Author, Happened, Message, Role

_REMEMBER = re.compile(
    r"^(?:(?:please|bitte|and|also|oh|ok),? |请)*(?:remember|note|keep in mind|don'?t forget|merke? dir|souviens-toi|"
    r"recuerda|lembre-se|запомни|记住|覚えて(?:おいて)?)\b"
    r"(?:,? (?:that|this(?=[:,])|dass|(?:de )?que|что|for (?:later|next time)|,))*(?:[：，、]\s*|[:,]?\s+)(?!to\b)",
    re.IGNORECASE,
)
_ADVERB = r"(?:niemals|toujours(?! pas)|jamais|siempre|nunca|sempre|всегда|никогда)\b"
_TELLS = (  # what a sentence begins with that reports: articles, pronouns
    "(?:der|die|das|es|er|sie|ich|l|le|la|les|ça|ce|c|il|elle|ils|elles|je|j|el|los|las|esto|eso|él|ella|yo|o|a|os|as|"
    "isso|isto|ele|ela|eu|это|он|она|оно|они|я)"
)
_STANDING = re.compile(
    r"^(?:please |and |but |so |also )*(?:always|never(?! mind))\b|"
    r"\b(?:from now on|going forward|in (?:the )?future|as a rule|"
    r"every time (?:you|we|i)|whenever (?:you|we|i)|we (?:always|never)|(?:must|do|please) (?:always|never)|"
    r"don'?t ever)\b|"
    r"\b(?:ab sofort|grundsätzlich|désormais)\b|"
    rf"^(?!{_TELLS}[ '’])(?:\S+ ){{0,2}}{_ADVERB}|\b(?:wir|nous|on|nosotros|nós|мы) (?:\S+ ){{0,3}}{_ADVERB}|"
    r"以后|永远不要|今后|必ず|絶対に",
    re.IGNORECASE,
)
_PASSING = re.compile(
    r"[?？]|\b(?:for now|this time|right now|just (?:this|here|now)|in this (?:case|session|branch|pr|commit)|"
    r"it (?:is|was|has|seems|looks)|i (?:always|never)|why|seems?|today|was|were|did|currently|"
    r"läuft|échoue|marche|falla|falha|funciona|работает|падает)\b",
    re.IGNORECASE,
)


_EVER = re.compile(rf"\b(?:(?:always|never(?! mind))\b|{_ADVERB})", re.IGNORECASE)


def typed_sentences(message: Message) -> list[str]:
    """Return what the person typed of a message."""
    return sentences(" ".join(message.said(Author.TYPED).split()))


def to_remember(sentence: str) -> str:
    """Return what a sentence asks to remember; empty: it asks for nothing of the kind."""
    asked = _REMEMBER.match(sentence)
    return sentence[asked.end() :] if asked else ""


def is_standing(text: str) -> bool:
    """Does it have the words of a rule?"""
    return bool(_STANDING.search(text))


def is_rule(sentence: str) -> bool:
    """Does it lay down a rule, rather than ask for one, or tell what is or was?"""
    return is_standing(sentence) and not _PASSING.search(sentence)


def asks_to_keep(messages: Iterable[Message]) -> bool:
    """Did the person answer or correct the agent, ask to remember something, or say "always" or "never"? What may be a
    rule is enough: whether it is one, extraction decides."""
    return any(each.role is Role.USER and (_is_told(each) or _may_lay_down(each)) for each in messages)


def _is_told(message: Message) -> bool:
    """Does the transcript say so without a sentence?"""
    kept = (Happened.ANSWER, Happened.REJECTED)
    return any(event.kind in kept and event.text for event in message.events)


def _may_lay_down(message: Message) -> bool:
    """What stands alone on one line may be typed, whatever its form tells."""
    text = message.text.strip()
    is_line = "\n" not in text and all(part.author is not Author.CLIENT for part in message.parts)
    said = sentences(text) if is_line else typed_sentences(message)
    return any(to_remember(each) or is_standing(each) or _EVER.search(each) for each in said)
