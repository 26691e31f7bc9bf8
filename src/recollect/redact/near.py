"""A secret near a word that tells of one, where no grammar ties the two: an answer in the next line, "it's …" a sentence
later, "log in as … with …".

Of such a stretch only what looks like a password is a candidate, and only where people write sentences: no path, no
identifier, no line of code. The less it looks like one, the more has to tell.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from recollect.redact.languages import LANGUAGES
from recollect.redact.prose import plain
from recollect.redact.rules import ABOUT, PLAIN, rx
from recollect.redact.values import PIECES, TELLING, oddness

_EDGE = r"[^\W_]"  # a letter or digit
_BEFORE, _BEHIND = 170, 230  # how far from its cue a secret may stand
_SIGN = "\u2e80-\ud7ff\uf900-\ufaff\uff00-\uffef"  # of scripts without spaces


def _cues(*parts: str) -> str:
    spaced = "|".join(getattr(row, part) for row in LANGUAGES for part in parts if not row.dense)
    dense = "|".join(getattr(row, part) for row in LANGUAGES for part in parts if row.dense)
    return rf"(?<!{_EDGE})(?:{spaced})(?!{_EDGE})|{dense}"


def _rest(dense: bool) -> str:
    return "|".join(row.rest for row in LANGUAGES if row.dense == dense)


_GAP = r"[^A-Za-z0-9/._=&?$%@#\\<{-]"  # before a word that is no part of a path, of a name
_MORE = r"|(?<![^\W_])(?:pw|(?:my|our|his|her|your|the|admin|root|db|guest|old|new|wi-?fi) pass|pas+(?:wo?r?d|worde?))(?![^\W_])"
CUE = (
    f"(?P<noun>(?!pwd){_cues('password')}{_MORE})|(?P<number>{_cues('number')}|(?<!\\w)pins?(?!\\w))"
    f"|(?P<act>(?!cred)(?:(?P<lock>{_cues('lock')})|{_cues('act')}))|creds"
)
CUES = "|".join(  # what the landmarks look for: a word of a sentence and the sign before it
    rf"(?:^|{_GAP})(?:{words.replace('|pwd|', '|')})(?:[\s,.:;?!'’”»)*]|$)" if row.latin else f"(?:{words})"
    for row in LANGUAGES
    for words in (row.password, row.act, row.lock, *((row.number,) if row.latin else ()))
)
_TOKEN = (
    rf"(?:(?<=[\s\"'“«„‘(:：，,、。;—–*`/{_SIGN}])|\A)(?P<v>[^\s\"'“”«»„‘’(),;:<>{{}}\[\]`\\|=/{_SIGN}…—–،؛]{{4,60}})"
    rf"(?=[\s\"'”»“’),;:.*`{_SIGN}…—–،؛]|\Z)"
)
_SYMBOL = r"[!#$%&*?@+^~]"
_NO_NAME = (  # an identifier, an address, a number
    r"(?:[a-z]+(?:[A-Z][a-z]*)+\d*|adler32|crc32|[A-Z]+[a-z]?\d+|[\w.]+\+\d+|.*\.html?#.*|(?:PKCS|C|F)#\d*|[A-Z0-9]+(?:[-_.][A-Z0-9]+)*|[a-z]{1,3}-?\d+|[0-9a-f]{7,}"
    r"|[\w.+-]+@[\w-]+(?:\.[\w-]+)+|[a-z][\w.-]*@[a-z]+-?\d*|[\d.,:%x+-]+\w?|[A-Za-z]+#\d+|[A-Z]{2}\$\d+|.*%[0-9A-F]{2}.*|.*&[a-z]+)\Z"
)
_TIED = (  # before a candidate
    r"(?i)(?:(?<![^\W_])(?:is|was|be|now|use|used|type|enter|try|tried|with|then|and|to|paste|put|es|ist|est|lautet|gilt"
    r"|mit|pon|depois|com|con|avec|utilise|mets|mettre|это|теперь|ab|auf|one,|\w+['’]s|é|guessed|want|typed|entered|or"
    r"|still has|wants|needs|ever use|opens with|هو|هي)\s+|[:：=—–]\s*|->\s*|,\s+|، ?|[?？]\s+"
    r"|\n(?:[-—–•]\s*|\[?[\d:]{4,8}\]?\s*|\w{1,12}:\s*){1,3})[\"'“«„‘「*]{0,2}\s?\Z|[\"“«„「*]\s?\Z"
    rf"|\s[\w.@-]{{2,30}} ?/ ?\Z|[{_SIGN}]\s?\Z"
)
_ROLE = (  # behind a candidate
    r"(?i)[\"'”»“’*]{0,2},?\s+(?:is (?:my|the|our|your|his|her|still|now|what)|for (?:the|my)|as (?:the|my)"
    r"|was (?:the|my|our)|worked|works|chalega|mot de passe|kommst|लिखो|है|для|के साथ|to (?:log|sign)|als|como|comme"
    r"|(?:で|です|是|就行|作为))"
)
_FIRM = (  # words and digits as people put them together
    r"[A-Za-z]{4,}\d{2,5}\Z|[A-Za-z]+(?:[-_.][A-Za-z]+)+\d{2,4}\Z|[A-Z][a-z]+(?:[-_.][A-Z]?[a-z]+)+\d{1,4}\Z"
    r"|[A-Za-z]{3,}(?:[-_.][A-Za-z0-9]+)+[-_.]\d{2,4}\Z|[A-Za-z]{3,}\d{1,2}[A-Za-z]{2}[A-Za-z0-9-]*\Z"
    r"|[A-Z]?[a-z]{2}\d[a-z]{2}[\w-]*\Z|[A-Z][a-z]+[-_.]\d{2,4}\Z|[a-z]{5,}[-_.]\d{4}\Z"
)
_CODE = (
    r"[{}\\|`]|</?\w|\$[({A-Z_]|\w\(|::|=>|(?<!:)//|&&|==|;\s*$|^\s*[-+#@]{2,}|[\"'],\s*[\"']|^\s*['\"] ['\"],?\s*$|:param|\w_\w+\s?[:=]"
    r"|=\s?(?:None|True|False)|^\s*(?:if|def|import|return|else)\b"
)
_NO_LINE = r"[{}\\|]|\w\(|::|=>|&&|==|</?\w|\$[({A-Z_]"  # of a program, beside the word itself


class Candidate(NamedTuple):
    """A word that may be a password."""

    start: int
    end: int
    grade: int  # how much it looks like one
    ties: int  # on how many sides it stands where one is told


def grade(word: str) -> int:
    """How much a word looks like a password: 3 signs among letters, 2 words and digits, 1 words that are joined."""
    if rx(_NO_NAME).match(word) or not (odd := oddness(word, bare=True, literal=True)):
        return 0
    letters, digits = sum(map(str.isalpha, word)), sum(map(str.isdigit, word))
    signs = len(rx(rf"(?<=\w){_SYMBOL}(?=[\w!?#$%&])|(?<=\d)[!#*$&%+]\Z").findall(word))
    if letters > 1 and len(word) > 6 and signs and (digits or rx("[A-Z]").search(word)):
        return 3
    if digits and letters > 3 and odd > 1:
        firm = rx(_FIRM).match(word)
        return 2 if firm else 1
    return 1 if rx(r"(?=.*[A-Z].*[A-Z]|[A-Za-z]+-[a-z]+-)[A-Za-z]{2,}(?:[-_.][A-Za-z]{2,})+").fullmatch(word) else 0


def candidates(text: str, low: int, high: int) -> Iterator[Candidate]:
    """The words of a stretch of text that may be passwords."""
    for token in rx(_TOKEN, 0).finditer(text, low, high):
        if token["v"].isalpha():
            continue
        word = token["v"].rstrip(".?")
        word = word.strip("*") if word.startswith("*") else word
        word = word if rx(r"\d!\Z").search(word) else word.rstrip("!")
        if worth := grade(word):
            start = token.start("v") + token["v"].find(word)
            end = start + len(word)
            told = rx(_TIED, 0).search(text, max(low, start - 16), start)
            said = rx(_ROLE, 0).match(text, end)
            if not told and text[start - 1 : start] == "/":
                continue
            quoted = told and told.group().strip()[-1:] in "\"'“«„「*"
            if worth > 1 or not word.islower() or quoted or word[-1].isdigit():
                yield Candidate(start, end, worth, (told is not None) + (said is not None))


def _is_prose(text: str) -> bool:
    """Whether people wrote this: words, and none of the signs of programs."""
    words = text.split()
    plain = sum(word.strip(".,:;!?()\"'“”«»„—–-…*¿¡").replace("'", "").replace("’", "").isalpha() for word in words)
    spaced = plain > 2 and plain >= 0.6 * len(words)
    return spaced or len(rx(f"[{_SIGN}]", 0).findall(text)) > 5


_DIGITS = (  # no year, no amount
    r"(?<![\w.,:/#$€£+%-])(?<![#$€£+%] )(?P<v>(?!(?:19|20)\d\d(?!\d))\d{4,8}[#*]?|\d{3}[ -]\d{3}(?: \d#)?"
    r"|\d{2}-\d{1,2}-\d{1,2}|\d(?:-\d){3,7}|\d{1,3}[A-Z]\d{1,3})(?![\w%/°$€£]|[.,:-]\d)"
)
_AFTER = rf"\s?(?:[,;.!?)—–、。，；！？،\n#]|\Z|\s-)|\sو|\s(?:after|worked|works|before|then|{_rest(False)})\b|\s?(?:{_rest(True)})"
_NO_CODE = (
    r"(?i)(?:colou?r|zip|area|error|exit|status|source|post\w*|country|sort|product|discount|promo|http|return|response"
    r"|machine|fehler) ?-?code|(?:version|order|invoice|issue|ticket|port|line|room|page|year|since|in|call|RFC|ISO) $"
)


def _digits(text: str, pos: int, size: int, low: int, high: int) -> Iterator[tuple[int, int]]:
    """The digits near what they open."""
    for run in rx(_DIGITS, 0).finditer(text, low, high):
        start, end = run.span("v")
        if rx(_AFTER, 0).match(text, end) and not rx(_NO_CODE).search(text, max(low, start - 40), start):
            told = pos < start < pos + max(9, size + 2) or rx(_TIED, 0).search(text, max(low, start - 16), start)
            if told or rx(r" (?:worked|works|opens)").match(text, end):
                yield start, end


def cue(text: str, pos: int) -> re.Match[str] | None:
    """The word at pos that tells of a secret; its groups say how."""
    return rx(CUE, 0).match(text[max(0, pos - 1) : pos + 48].lower(), min(pos, 1))


_BOND = (  # the words that alone may stand between a noun and its value
    r"(?:is|was|be|been|to|from|now|still|probably|just|currently|always|set|changed|got|has|should|will|might|may|used|reads|equals|remains|stays|goes|being"
    r"|it['’]s|that['’]s|which|same|as|ist|war|lautet|jetzt|noch|wohl|ist's|es|est|era|ahora|é|agora|это|теперь|был)"
)
_AFTER_NOUN = rf"['’]?s?(?:[\s,:=(>\"'`*“«„‘—–-]|(?<![^\W_]){_BOND}(?![^\W_])){{1,16}}"
_BEFORE_NOUN = (
    r"(?i)[\"'`*”»]{0,3}(?:\s?\(|\s?=\s?|,\s|\s)(?:(?:is|was|as|for|that['’]s|this is|the|my|our|your|its|their|his|her|a|what|i|we|they|you|use|used|still|now|when|if|it|asks"
    r"|prompts|wants|ist|das|mein|als|für|es|la|mi|como|para|est|le|mon|comme|é|minha|a|это|мой|admin|root|db|login|wifi|new|old) ){0,6}\Z"
)
_ENDS = rf"[\"'`*”»“’]{{0,3}}(?:\s*(?:[,;.!?)—–…،؛]|\n|\Z|\s-\s)|\s+(?:{_rest(False)}|there|here|works?|worked|leaked|i|again|now|btw|to|when|everywhere)(?![^\W_]))"


def _is_joined(word: str) -> bool:
    """Whether lower-case words are joined as in a password, and say nothing of one."""
    if rx(r"[a-z]{2,}(?:_[a-z]{2,})+\d*\Z|[a-z]{2,}(?:[A-Z][a-z]+)+\d*\Z").match(word) is None or plain(word):
        return False
    return rx(TELLING).search(word) is None and not {piece.lower() for piece in rx(PIECES).findall(word)} & (
        PLAIN | ABOUT
    )


def _bound(text: str, pos: int, end: int, low: int) -> Iterator[tuple[int, int]]:
    """What only words of a closed list tie to the noun between pos and end, before or behind it."""
    bond = rx(_AFTER_NOUN, re.IGNORECASE).match(text, end, end + 60)
    token = rx(_TOKEN, 0).match(text, bond.end()) if bond else None
    if bond and token:
        word = token["v"].rstrip(".?!") if not rx(r".*\d!\Z").match(token["v"]) else token["v"]
        stop = token.start("v") + len(word)
        told = plain(word) or rx(TELLING).search(word)
        linked = rx(r"\w|[:=]", 0).search(bond.group()) is not None
        if not told and (grade(word) or (linked and _is_joined(word))) and rx(_ENDS, re.IGNORECASE).match(text, stop):
            yield token.start("v"), stop
    if not rx(_ENDS, re.IGNORECASE).match(text, end):
        return
    head = text[low:pos].rpartition("\n")[2]
    for found in rx(_TOKEN, 0).finditer(head, max(0, len(head) - 70)):
        word = found["v"].rstrip(".,?")
        if (grade(word) or _is_joined(word)) and rx(_BEFORE_NOUN).match(head, found.start("v") + len(word)):
            begin = pos - len(head) + found.start("v")
            yield begin, begin + len(word)


def _places(text: str, pos: int, word: re.Match[str], low: int, high: int) -> Iterator[tuple[int, int]]:
    """What may be a secret in the words around pos."""
    if word["lock"] or word["number"] or "code" in word.group():
        yield from _digits(text, pos, len(word.group()), max(low, pos - 20), min(high, pos + 110))
    for each in candidates(text, low, high):
        if each.grade >= ((1 if each.ties else 2) if word["noun"] else max(1, 3 - each.ties)):
            yield each.start, each.end


def find_near(text: str, pos: int, word: re.Match[str], floor: int) -> list[tuple[int, int]]:
    """Where the secrets stand near what tells of them at pos."""
    if rx(_NO_LINE).search(text[max(0, pos - 40) : pos].rpartition("\n")[2] + text[pos : pos + 50].partition("\n")[0]):
        return []
    low, high = max(floor, pos - _BEFORE), pos + _BEHIND
    low = max(low, text.rfind("\n\n", low, pos) + 1)
    end = text.find("\n\n", pos, high)
    high = min(end if end >= 0 else high, len(text))
    found: list[tuple[int, int]] = []
    first, last = text.rfind("\n", low, pos) + 1, text.find("\n", pos, high)
    line = text[max(low, first) : pos] + text[pos : last if last >= 0 else high]
    if word["noun"] and not rx(_CODE).search(line.replace("`", "")):
        found += _bound(text, pos, pos + word.end() - word.start(), max(low, first))
    for start, stop in _places(text, pos, word, low, high):
        first = max(low, text.rfind("\n", low, min(pos, start)) + 1)
        last = text.find("\n", max(pos, stop), high)
        around = text[first:start] + " " + text[stop : last if last >= 0 else high]
        if not rx(_CODE, re.MULTILINE).search(around) and _is_prose(around):
            found.append((start, stop))
    return found
