"""Where a sentence tells a secret: "the password is …", "use … as the password". One grammar, over the words of
`languages.py`; it says what stands there, and `judge.py` whether that is a secret.

A noun is followed by its value within one sentence, mostly behind a link ("is", ":"), or the value precedes it ("… as
the password"). What a value may look like depends on the noun: digits of a PIN, groups of a recovery code, a clause of
an answer, any word of a password.
"""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from recollect.redact.languages import LANGUAGES, Language
from recollect.redact.rules import ABOUT, PLAIN, PROSE, rx
from recollect.redact.values import Value


class Told(NamedTuple):
    """A value that a sentence may tell."""

    value: Value
    need: int  # the least `oddness` of it
    literal: bool = True  # cannot be an expression


KINDS = ("number", "recovery", "answer", "password", "token")  # in the order in which they are tried
_SPACED = [each for each in LANGUAGES if not each.dense]


def _nouns(kind: str) -> str:
    spaced = "|".join(getattr(each, kind) for each in _SPACED)
    dense = "|".join(getattr(each, kind) for each in LANGUAGES if each.dense)
    return rf"(?<![^\W_ء-ي])(?:{spaced})(?![A-Za-z0-9_À-ɏЀ-ӿऀ-ॣ])|{dense}"


def _sided(part: str, languages: Iterable[Language] = LANGUAGES) -> str:
    """The words of a part: of spaced languages as whole words, of the others anywhere."""
    dense = "|".join(getattr(each, part) for each in languages if each.dense)
    spaced = "|".join(getattr(each, part) for each in languages if not each.dense)
    return rf"(?:(?<![^\W_])(?:{spaced})(?![^\W_]){'|' if dense else ''}{dense})"


NOUN = "(?i)" + "|".join(f"(?P<{kind}>{_nouns(kind)})" for kind in KINDS)
ENGLISH = "(?i)" + "|".join((LANGUAGES[0].password, LANGUAGES[0].token, r"(?:\w+_)?(?:password|token|secret|key)"))
MARKS = "|".join(  # what the landmarks look for; the passwords and tokens of English are looked for as names are
    (r"\b" if row.latin else "") + f"(?:{words})"
    for row in LANGUAGES
    for words in (row.number, row.recovery, row.answer, *(() if row is LANGUAGES[0] else (row.password, row.token)))
)
_REACH = 90  # how far a value may stand from its noun
_OPENED, _CLOSED = r"[\"“„«「『`][^\"“”„«»「」『』`\n]*\Z", r"[^\"“”„«»「」『』`\n]{0,150}[\"”“»」』`]"
_STOP = r"[.!?](?:[\"'”»」』](?=[\s.]|$)|(?=\s|$))|[。！？।؟\n]|\\n|\[redacted:"  # the end of a sentence
_OTHER = r"[\u0370-\u1fff\u2e80-\uffef]"  # a letter of no Latin script
_QUOTED = r"[\"`“„«「『](?P<q>[^\"`“”„«»「」『』\n]{2,200})[\"`”“»」』]|(?<!\w)['‘](?P<s>[^'‘’\n]{2,200})['’](?!\w)"
_SIGN = "\u2e80-\ud7ff\uf900-\ufaff\uff00-\uffef"  # of scripts without spaces
_WORD = rf"(?P<w>(?![:=*.!?])[^\s\"`“”„«»「」『』<>,;{_SIGN}،؛؟।…—–()]{{2,120}})"
_TO = r"|(?<!\w)(?:to|as|à|till|är|è|er|pra|para|por|auf|zu|en|на)(?!\w)|[:=：—–]|\s-(?=\s))[\s:*：、，,]*"
_FIRM = rf"(?:{_sided('link')}|[:=：—–])[\s:*：、，,]*"
_LINK, _LINK_ENGLISH = (rf"(?:{_sided('link', rows)}{_TO}" for rows in (LANGUAGES, LANGUAGES[:1]))
_THERE = r"(?:\s+(?:in|den|das|le|la|el|o|a|just|simply|only))?[\s:]*"
_USE, _USE_ENGLISH = (_sided("use", rows) + _THERE for rows in (LANGUAGES, LANGUAGES[:1]))
_END = rf"[.!?]*(?:\s*(?:[,;.!?)\]…—–。、，；！？।؟،]|$|\s-\s)|\s*\([a-z]|\s+(?:{'|'.join(e.rest for e in _SPACED)})(?![^\W_])|\s*(?:{'|'.join(e.rest for e in LANGUAGES if e.dense)}))"
_AFTER = (  # a verb behind the value
    r"[\"'`”»」』]?\s*(?:hai\b|है|रखा|genommen|gesetzt|gewählt|vergeben|eingestellt|benutzt|verwendet|hinterlegt|にし|に設定|です|だよ|でした)"
)
_OF = (  # how a noun may go on before its link: for the server, der Datenbank, от почты
    r"(?i)[\s*_\"'`’)]*(?:\Z|[,(:=：—–]|(?:for|of|on|to|in|at|from|we|i|you|he|she|they|there|that|für|vom|von|zum|zur|der|des|dem|im|am"
    r"|de|du|des|d['’]|della?|da|do|das|dos|para|del|pour|sur|au|en|от|для|к|на|из|в|у|का|के|की|में|ل|لل|ال|de la|no|na)\b|[^\x00-\u036f])"
)
_ING = r"(?i)\w*(?:ed|ing|able|ible|ally|less|ive|ée?s?|ad[oa]s?|id[oa]s?|iert|[уаяе]ет|ого|ен|ена|ено|ны|ый|ая|ое|ть|ся)\Z|(?:ge|ver|be|ent)[a-zä-ü]+t\Z"
_DIGITS = r"(?<![A-Za-z0-9_.,:/#$€£+-])(?:[A-Z]-)?(?:\d{4,9}|\d{3}[ -]\d{3}|\d{2} \d{2}(?: \d{2})?|\d{4}[ -]\d{4}|(?:\d[ -]){3,7}\d)(?![A-Za-z0-9_%/°]|[.,:-]\d)"
_CODE = r"(?=[0-9A-Za-z-]*\d)[0-9A-Za-z]{3,12}(?:-[0-9A-Za-z]{3,12}){1,9}|(?<![\w-])\d{8,12}|(?=[A-Za-z]*\d)[0-9A-Za-z]{8,16}|\d{4} \d{4}"
_JOIN = r"(?:[\s,;、，;/|]|(?<![^\W_])(?:and|und|et|y|e|и|و|और|or)(?![^\W_])|和|と){1,6}"
_DETERMINER = (
    r"(?:the|my|your|our|his|her|a|an|das|mein|dein|unser|ein|le|la|mon|ma|ton|notre|une?|el|mi|tu|nuestra|uma?|o|a|minha|meu|sua"
    r"|мой|моя|твой|наш|我的|你的|मेरा|मेरे)"
)
_OPENING, _CLOSING = r"[\"'`”»」』]?[,.]?\s*(?:[—–-]\s*)?", r"(?:\s*的|\s+[\w-]{2,12})?\s*[*_\"'`]?\Z"
_ROLE, _ROLE_ENGLISH = (
    rf"{_OPENING}{_sided('role', rows)}(?:\s+{_DETERMINER})?{_CLOSING}" for rows in (LANGUAGES, LANGUAGES[:1])
)


def _part(text: str, end: int) -> str:
    """Return the rest of the sentence behind `end`, or the next line if the sentence goes on there. A quotation that
    begins in it is whole."""
    part = text[end : end + _REACH]
    if rx(_OPENED, 0).search(part) and (rest := rx(_CLOSED, 0).match(text, end + _REACH)):
        part += rest.group()
    stop = rx(_STOP, 0).search(part)
    fold = rx(r"[^\n\\]{0,90}[:：]\s*(?:\n|\\n)(?:[\s>]|- |\\n|```\w{0,12})*", 0).match(part) if stop else None
    if stop and fold and fold.end() > stop.start() >= fold.end() - 40:
        after = rx(_STOP, 0).search(part, fold.end())
        if " " in part[fold.end() : after.start() if after else None].strip():
            return part[: stop.start()]
        stop = after if after else None
    return part[: stop.end() if stop.group()[0] in ".!?" else stop.start()] if stop else part


def plain(value: str) -> bool:
    """Whether a value only speaks of secrets: required, «обязательное поле»."""
    words = re.split(r"[\s_-]+", value.casefold().strip(" .!?*"))
    return 2 * sum(word in PLAIN for word in words) >= len(words) or rx(NOUN, 0).search(value) is not None


def told(text: str, kind: str, begin: int, end: int) -> Iterator[Told]:
    """The values that may follow the noun between `begin` and `end`."""
    part = _part(text, end)
    if kind == "number":
        if rx(r" ?\d{1,2}\b").match(part):  # one of a board
            return
        if found := rx(_DIGITS, 0).search(part[:70]):
            gap = part[: found.start()]
            year = rx(r"(?:19|20)\d\d\Z").match(found.group()) and not rx(_LINK + r"\Z", 0).search(gap)
            if not year and not rx(
                r"(?i)\d|\b(?:error|line|port|http|status|in|since|page|issue|expires?)\s*\Z"
            ).search(gap):
                yield Told(Value(end + found.start(), end + found.end(), True), 0)
        kind = "code"
    if kind == "recovery":
        yield from _codes(text, end)
        kind = "code"
    if kind == "answer":
        yield from _clause(part, end)
        return
    yield from _words(text, begin, part, end, kind)


def _is_english(text: str, begin: int, end: int) -> bool:
    """Whether a noun is an English one, whose values right behind it are found as those of names are."""
    return bool(rx(ENGLISH).fullmatch(text, begin, end) or not rx(NOUN, 0).match(text, begin))


def _codes(text: str, end: int) -> Iterator[Told]:
    """A list of codes, as one value."""
    first = rx(rf"[^\n]{{0,60}}?(?:\n[^\n]{{0,4}})?(?<![\w-])(?P<v>{_CODE})(?![\w-])", 0).match(text, end, end + 120)
    if first is None:
        return
    last = first.end("v")
    while more := rx(rf"{_JOIN}(?:{_CODE})(?![\w-])", 0).match(text, last):
        last = more.end()
    yield Told(Value(first.start("v"), last, True), 0)


def _clause(part: str, end: int) -> Iterator[Told]:
    """The rest of the clause behind a link."""
    ends = [link.end() for link in rx(_FIRM, re.IGNORECASE).finditer(part)]
    if rx(r".*(?:है|हैं|था|です|だ)\s*\Z", 0).match(part):  # the verb stands at the end
        ends.insert(0, len(part) - len(part.lstrip()))
    if part.lstrip()[:1] in "\"'“«„「『":
        ends.insert(0, len(part) - len(part.lstrip()))
    for behind in ends:
        clause = rx(rf"{_QUOTED}|(?P<w>[^\s,;.!?。，、।؟،()…—–][^,;.!?。，、।؟،()\n…—–]{{1,50}})", 0).match(
            part, behind
        )
        if clause is None:
            continue
        group = clause.lastgroup or "w"
        value = rx(rf"(?:\s+|(?<=[{_SIGN}]))(?:है|था|हैं|です|だ|吧|के लिए)\Z", 0).sub("", clause[group].rstrip())
        words = value.casefold().split()
        if len(words) <= 6 and not plain(value) and PROSE.isdisjoint(words) and not rx(_ING, 0).match(words[0]):
            yield Told(Value(end + clause.start(group), end + clause.start(group) + len(value), True), 0)
            return


def _own_script(part: str, end: int) -> Iterator[Told]:
    """A value behind a colon in the letters of a noun that is not written in Latin ones."""
    for pattern in (
        rf"\s*[:：]\s*(?P<v>[{_SIGN}]{{2,8}}?)\s*(?:[，,。、；;！!]|\Z)",
        rf"\s*[:：]\s*(?P<v>(?![{_SIGN}]){_OTHER}+(?:\s(?![{_SIGN}]){_OTHER}+){{0,2}})\s*\Z",
    ):
        own = rx(pattern, 0).match(part)
        said = own and rx(f"[{_SIGN}]", 0).match(own["v"]) and any(word in own["v"] for word in PLAIN)
        if own and not said and not plain(own["v"]):
            yield Told(Value(end + own.start("v"), end + own.end("v"), True), 0)


def _may_tell(text: str, begin: int, part: str, kind: str) -> bool:
    """Whether a noun may be followed by its value: it stands in a sentence, and not for something about a secret."""
    head = part.split(None, 1)[0].lower() if part[:1].isspace() and part.strip() else ""
    if head in ABOUT and not rx(r"(?i)\s*(?:re)?set to\b").match(part):
        return False
    if kind == "token" and not rx(r"(?=\S{8})\S*(?:\d|[a-z][A-Z]|[A-Z]{2}[a-z])").search(part):
        return False
    inside = text[begin - 1 : begin] in ("/", ".", "#", "-", "=", "&", "?")  # of a path or an identifier
    return not inside and rx(r"[\s,:：='’\"*`)_（(]|[^\x00-\x7f]|\Z", 0).match(part) is not None


def _is_plain_word(word: str) -> bool:
    """Whether a word without digits or signs may be a password: no adjective, and nothing that is said of one."""
    return len(word) > 3 and not plain(word) and not rx(_ING, 0).match(word)


def _words(text: str, begin: int, part: str, end: int, kind: str) -> Iterator[Told]:
    """Words of the sentence, by what ties them to the noun: a link, quotes, their looks."""
    if not _may_tell(text, begin, part, kind):
        return
    fits = rx(_OF, 0).match(part)
    english = _is_english(text, begin, end)
    own_words = rx(ENGLISH).fullmatch(text, begin, end) and part.isascii()
    link, use = (_LINK_ENGLISH, _USE_ENGLISH) if own_words else (_LINK, _USE)
    links = {each.end(): each.start() for each in rx(link, re.IGNORECASE).finditer(part)}
    if own_words and (short := rx(r"['’]s(?: now| still| just| simply)?\s+").match(part)):
        links[short.end()] = 0
    uses = {each.end() for each in rx(use, re.IGNORECASE).finditer(part)}
    if kind == "password" and rx(_OTHER, 0).match(text, begin):
        yield from _own_script(part, end)
    for count, found in enumerate(rx(f"{_QUOTED}|{_WORD}", 0).finditer(part)):
        group = found.lastgroup or "w"
        gap, word = part[: found.start()], found[group]
        foreign = rx(_OTHER, 0).search(text, begin, end + found.start()) is not None
        at = links.get(found.start(), -1)
        after = rx(_AFTER, 0).match(part, found.end()) if count < 4 else None
        linked = after is not None or (
            at >= 0
            and not (english and gap.rstrip()[-1:] == "=")
            and bool(fits or group != "w" or len(gap[:at].split()) < 3)
        )
        start = end + found.start(group)
        used = found.start() in uses
        if not (linked or used or foreign or (count == 0 and not english)) or count > 12:
            continue
        if group != "w":
            if kind == "token":
                yield Told(Value(start, start + len(word), True), 3)
            elif kind == "password" and not plain(word) and PROSE.isdisjoint(word.lower().split()):
                near = linked or (foreign and count < 5) or count == 0
                yield Told(Value(start, start + len(word), True), 0 if near and not english else 1 if linked else 2)
            continue
        word = re.sub(r"\.?&[a-z]+\Z|[.,:;?)\]}*'’]+\Z", "", word)
        if not word:
            continue
        value = Value(start, start + len(word), False)
        if rx(NOUN, 0).fullmatch(word):
            return
        latin = foreign and word.isascii() and word.islower()
        firm = linked and not rx(r"(?i)\b(?:to|as|are|pra|para|por|auf|zu|en|на)\s*\Z", 0).search(gap)
        final = rx(_END, re.IGNORECASE).match(part, found.start(group) + len(word))
        if kind == "code":
            if rx(r"(?=[A-Z]*\d)[A-Z0-9]{5,10}").fullmatch(word):
                yield Told(value, 0)
        elif kind == "token":
            yield Told(value, 3, False)
        elif final and (firm or used or latin) and _is_plain_word(word):
            yield Told(value, 1)
        else:
            words = rx(_OTHER, 0).match(word) and not linked
            yield Told(value, 2 if (linked or used or count == 0) and not words else 3, False)


def told_before(text: str, kind: str, start: int, floor: int) -> Iterator[Told]:
    """The values that may precede a noun that starts at `start`."""
    low = max(floor, text.rfind("\n", max(0, start - 100), start) + 1, start - 100)
    part = text[low:start]
    if not part.strip():
        return
    english = part.isascii() and rx(ENGLISH).match(text, start)
    role = rx(_ROLE_ENGLISH if english else _ROLE, re.IGNORECASE).search(part, max(0, len(part) - 40))
    if role is None:
        return
    part = part[: role.start()]
    closed = role.group()[:1] in tuple("\"'`”“»」』’") or part.endswith(tuple("\"'`”“»」』’"))
    if closed and (quoted := list(rx(_QUOTED, 0).finditer(text[low:start]))):
        last = quoted[-1]
        group = last.lastgroup or "q"
        if not plain(last[group]):
            yield Told(Value(low + last.start(group), low + last.end(group), True), 3 if kind == "token" else 1)
        return
    if kind == "number":
        if found := rx(_DIGITS + r"\W*\Z", 0).search(part):
            end = low + found.start() + len(found.group().rstrip(" ,;:—–-"))
            yield Told(Value(low + found.start(), end, True), 0)
        return
    words = list(rx(_WORD, 0).finditer(part))
    if not words or part[words[-1].end() :].strip():
        return
    word = words[-1]["w"].rstrip(".,:;!?")
    begun = words[-1].start()
    value = Value(low + begun, low + begun + len(word), False)
    used = rx(_USE + r"\Z", re.IGNORECASE).search(part[:begun]) or rx(
        r"(?i)\b(?:mis|metti|set|put|puse|coloquei|将|把|用|поставил[аи]?|habe|gesetzt)\s*\Z", 0
    ).search(part[:begun])
    if kind not in ("token", "recovery") and used and len(word) > 3 and not plain(word):
        yield Told(value, 1)
    else:
        yield Told(value, 3, False)
