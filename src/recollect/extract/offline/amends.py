"""What the user takes back of what they said a moment ago: "no wait, round to 50 cents", "sorry, I meant spaces".

Such a sentence seldom says enough by itself, and what it corrects is wrong without it. So the two become one statement.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from recollect.extract.offline.cues import ANSWERED
from recollect.extract.offline.units import Unit
from recollect.text import content_words

_BACK = 3  # of the user's messages, the last ones, in which the statement is looked for
_MOST = 2  # sentences of a correction
_LONGEST = 240  # characters of one
_OPENS = (
    r"^(?:(?:ok(?:ay)?|well|hm+|uh+|oh|ah|ach|äh+|oops|ups|but|and|aber|mais|pero|ja|yes|yeah|pardon|perdón|"
    r"sorry(?!,? \S*\d\S*[.!]?$))[,.!…]* +)*"
)
_NO = (  # "no harm done" and "wait for it" answer nothing
    r"(?:(?:(?:no )*no|nope|nah|wait|hold on|nein|nee|moment|halt|stopp|warte|non|attends|espera)"
    rf"(?=[,.;:!…]|$| (?:{ANSWERED})\b)|actually\b|en fait\b|en realidad\b)"
)
_MEANT = (  # nobody says this of anything but their own words
    r"(?:i (?:actually )?meant?\b|scratch that|strike that|on second thoughts?|(?:i(?:'ve| have)? )?changed my mind|"
    r"i take (?:that|it) back|my (?:mistake|bad)\b|make that \S*\d|correction\b|(?:forget|ignore) (?:that|what i said)|"
    r"(?:ich )?meinte?\b|korrektur\b|quatsch\b|(?:dann )?doch (?:lieber|nicht)\b|vergiss das|"
    r"sorry,? \S*\d\S*[.!]?$|je voulais dire|(?:non )?finalement\b|oublie ça|quise decir|"
    r"mejor dicho|corrección\b|olvida eso)"
)
_CORRECTS = re.compile(
    rf"{_OPENS}(?:(?:{_NO}[,.!…]* +)*({_MEANT})|{_NO}|(?:forget|drop|vergiss|oublie|olvida)\b)", re.I
)
_EMPTY = content_words(
    "no wait actually sorry scratch strike mean meant mind changed forget ignore drop rule said second thought mistake"
)


@dataclass(frozen=True, slots=True)
class Amended:
    """A statement of the user and, said later, what it should have been."""

    earlier: int  # the statement's message
    message: int  # the correction's
    text: str  # the correction's; empty: the statement was only taken back


def amended(mine: Sequence[Unit], said: Sequence[tuple[int, str]]) -> list[Amended]:
    """Which statements (message, text) the user took back, at most one by each message."""
    order = list(dict.fromkeys(unit.message for unit in mine))
    told = dict(said)
    found = []
    for unit in mine:
        if unit.position or unit.text.endswith("?") or not (opening := _CORRECTS.match(unit.text.replace("’", "'"))):
            continue
        text = _first(mine, unit)
        words = content_words(text) - _EMPTY
        place = order.index(unit.message)
        for back, message in enumerate(reversed(order[max(place - _BACK, 0) : place])):
            shared = len(words & content_words(told.get(message, "")))
            if message in told and (shared > bool(back) or (opening[1] and not back)):
                found.append(Amended(message, unit.message, text if words else ""))
                told[unit.message] = f"{told.pop(message)} {text}"
                break
    return found


def _first(mine: Sequence[Unit], unit: Unit) -> str:
    """The correction as far as it goes: what follows it is often another matter."""
    said = [each.text for each in mine if each.message == unit.message and each.form == "prose"][:_MOST]
    while len(said) > 1 and sum(map(len, said)) > _LONGEST:
        said.pop()
    return " ".join(said or [unit.text])
