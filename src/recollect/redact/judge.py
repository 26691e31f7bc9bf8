"""From a landmark to a finding: whether a secret stands where a rule could apply."""

import re
import string
from dataclasses import dataclass

from recollect.redact.prose import ENGLISH, NOUN, told, told_before
from recollect.redact.rules import (
    ABOUT,
    ANY_KEY,
    ANY_WORD,
    AT,
    INNER,
    KEYS,
    MARKS,
    NEUTRAL,
    NEVER,
    PLACES,
    PUBLIC,
    STANDS,
    WHICH,
    WORDS,
    Place,
    Word,
    rx,
)
from recollect.redact.values import BARE, PIECES, TELLING, Value, is_basic, oddness, rank, read, solid


@dataclass(frozen=True, slots=True)
class Finding:
    """One secret: text[start:end] in characters, and the rule that found it."""

    rule: str
    start: int
    end: int


_ESCAPED = r"(?:\\[nrtbf]|\\u[0-9a-fA-F]{4}|(?:\\x|%)[0-9a-fA-F]{2}|=3D|\x1b\[[0-9;]*m)\Z"
_TYPE = r"(?:&(?:'\w+ )?\w+|[A-Za-z_][\w.]{0,30}(?:[\[<][\w\[\]<>, .|?]{0,40}[\]>])?(?: ?\| ?\w{1,20}){0,3}\??)"
META = r"(?:type|description|sensitive)[ \t]{1,20}=[^\n]{0,200}\n"  # of a variable, before its default
_FORM = (  # how a value is tied to a name; what is not one of these is prose
    rf"(?P<pair>(?=[\\\"'\s,{{-])\\{{0,3}}[\"']?,?(?:[\s{{-]|\\[nrt]|{META}){{0,40}}\\{{0,3}}[\"']?(?i:value|default)\\{{0,3}}[\"']?\s{{0,3}}[:=]\s{{0,4}}"
    r"|\\?[\"'](?:\r?\n|(?:\\r)?\\n){2})"
    r"|(?P<args>\\{0,3}[\"'`]\s{0,4}(?:,|\)\s{0,4}(?:\{|\?:|\|\||\?\?|or\b))\s{0,40}(?=[rbfu]?\\{0,3}[\"'`]))"
    r"|(?P<call>\(\s{0,40}(?=[@$rbfuN]?\\{0,3}[\"'`]))"
    r"|(?P<assign>(?:\\{0,3}[\"'`]|&quot;|%22|\*\*|\]|\)|\[\d*\]|[?!]){0,4}(?: \d\d?(?=:))?[ \t]{0,10}"
    r"(?:(?::[ \t]*" + _TYPE + r"|(?i:\w{0,12}str(?:ing)?|char|text))(?=[ \t]*=[ \t]*\\?[\"'`]))?"
    r"(?P<op>[ \t]*(?:<-|:=|=>|===?|!==?|=|:(?!:)|[：是为為はをが는]|(?=[「『«])|%3[AD]"
    r"|(?<=[ \t])(?:->|[→—–-])(?=[ \t])|(?<=[\w)][ \t])(?:\|\||\?\?|or)(?=[ \t]+[\"'])))"
    r"(?:\*\*|__|</\w+>)?[ \t]{0,10}(?:<(?:b|code|strong|em|i|kbd|tt|pre|span)>)?"
    r"(?:(?:<%= ?)?[\w.$]{2,40}(?:\([\"'\w]{0,40}\)|\[[\"'\w]{0,40}\])? (?:\?\?|\|\||or|\{|by lazy \{) (?=[\"'`]))?)"
    r"|(?P<xml>(?:</\w{1,20}>\s{0,40}<\w{1,20}|\\?[\"']?(?:\s[^<>\n]{0,80})?)>\s{0,40}(?:<value>\s{0,40}|<!\[CDATA\[)?(?=[^<\s]))"
    r"|(?P<table>[ \t*`]{0,6}\|[ \t]{0,20})"
)
_GAP = r"(?:['’]s|[\"'`)*]{0,3})[ \t]+(?:\((?=\S))?"
_NEXT = r"(?:[|>][+-]?)?[ \t]*(?:\r?\n|\\n)(?:[\s>]|- |\\n|```\w{0,12}){0,40}"  # on to the next line
_BEHIND = {
    "xml": r"[.,;:)\]}>]{0,4}\s{0,40}<",
    "call": r"\\?[\"'`]\s{0,40}[,)]",
    "table": r"[^\w|\n]{0,6}(?:\||\n|$)",
}  # what has to stand behind the value
_ALONE = r"[\"'`]{0,3}[ \t]*(?:\r?\n|\\n|\\?\"|$)"
_PLURAL, _OPENLY = "s(?![a-z])|S(?![A-Z])", "(?i)pub(?:lic|[_-]?key)"
_UUID = r"\W{1,8}[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b"
_NESTED = r"[\w-]{0,20}(?i:passw|pwd|secret|token|key|auth)[\w-]{0,20}=(?=[\w\"'\[])"
_MIXED = r"(?!.*-[0-9a-f]{32,}$)(?=.*[A-Z])(?=.*[a-z])(?=.*\d)[\w+/-]+={0,2}$"
_SETS = (  # what takes a secret by its name; others look one up, compare or hash it
    r"(?:[sS]et|[wW]ith|[uU]sing|[nN]ew|[cC]hange)_?\w*|(?i:pass(?:word|wd|phrase)|pwd|api_?key|(?:client_?)?secret|token)"
)
_MORE = r"[\"'],\s{0,24}[\"'](?P<v>[^\"'\s]{6,200})(?=[\"'])"  # of a list
_WRAP = (  # the rest of a secret, alone in the next line
    r"(?:\\\r?\n(?P<c>)|[ \t│|\\\"'+=]{0,8}(?:\r?\n|\\n)(?:[ \t│|>\"'+#*-]{0,24}|\s{0,12}\$?(?:[a-z]|part|key|rest|tail|half|suffix)_?[0-9b]?\s?=\s?[\"']?))"
    r"(?P<v>(?=[\w.+/-]{0,200}[A-Z])(?=[\w.+/-]{0,200}[a-z])[\w+/-][\w.+/-]{7,200}={0,2})"
    r"(?=(?(c)[\"'\s]|[ \t│|\\\"'+,;)]{0,8}(?:[\r\n]|\\n|$)))"
)
_JOINED = r"\\?[\"'`]\s{0,4}(?:[+.&,]|\|\|)?\s{0,4}(?:_\s{1,20}|\s{0,40})\\?[\"'`](?P<v>[\w+/=.~-]{4,200})(?=\\?[\"'`])"  # another string of a program
_NAME_CHARS = string.ascii_letters + string.digits + "_-."


def _glued(text: str, pos: int) -> bool:
    """The character before pos belongs to the same word; an escape sequence does not."""
    before = text[pos - 1 : pos] if pos else ""
    if before in ("+", "/"):  # in the middle of base64
        return rx(r"[A-Za-z0-9+/]{40}").match(text, max(0, pos - 40), pos) is not None
    return before.isascii() and before.isalnum() and not rx(_ESCAPED).search(text, max(0, pos - 8), pos)


def judge_key(text: str, pos: int, floor: int) -> tuple[Finding | None, int]:
    """A secret with a shape at pos, and where to go on looking. `floor` is where the secret before it ends."""
    begun = rx(MARKS).match(text, pos) and (pos == floor or not _glued(text, pos))
    match = rx(ANY_KEY).match(text, pos) if begun else None
    if match:
        row, body = KEYS[int(str(match.lastgroup)[1:])], match.group((match.lastindex or 0) + 1)
    elif inner := rx(INNER).match(text, pos):
        row = KEYS[int(str(inner.lastgroup)[1:])]
        matches = rx(row.back + row.mark + row.body).finditer(text, max(floor, pos - 100), pos + 400)
        match = next((one for one in matches if one.start() <= pos < one.end()), None)
        body = match.group() if match and (match.start() == floor or not _glued(text, match.start())) else ""
    if match is None or not body:
        return None, pos + 1
    start, end = match.span()
    if row.rule == "private-key":
        if "END " in row.mark:
            return _judge_end(text, pos, floor), end
        real = 2 * sum(map(len, re.findall(r"[A-Za-z0-9+/=]{16,}", body))) > len(body)
        return (Finding(row.rule, start, end), end) if real else (None, pos + 1)
    whole, body = match.group()[:100], body[:100]
    firm = solid(whole)
    if (
        len(set(body)) < 6
        or (firm != whole and rank(firm, firm) < 4)
        or (row.mixed and max(rank(body, body), rank(whole, whole)) < 3)
    ):
        return None, end
    rest = rx(r"(?:[\w-]|\.(?=\w\w))*").match(text, end)
    end = _wrapped(text, rest.end() if rest else end)
    return Finding(row.rule, start, end), end


def _judge_end(text: str, pos: int, floor: int) -> Finding | None:
    """The lines of a private key before its END at pos, where no BEGIN is left."""
    begin, low = pos, max(floor, pos - 16000)
    other = text.rfind("----", low, pos)
    low = other + 4 if other >= 0 else low
    for line in reversed(list(rx(r"(?:[^\n\\]|\\(?!n))+").finditer(text, low, pos))):
        size = 40 if begin < pos else 4  # the last one may be short
        row = rx(rf"(?<![A-Za-z0-9+/])[A-Za-z0-9+/]{{{size},}}={{0,2}}\W*\Z").search(text, line.start(), line.end())
        if row is None and line.end() < pos and re.search(r"\w", line.group()):
            break
        begin = row.start() if row else begin
    return Finding("private-key", begin, pos) if pos - begin > 40 else None


_SPLIT = (  # between two parts of one key: a break of the line, of a string, of a mark
    r"[=-]?\\?\r?\n(?:[ \t]{0,24}[>|#*+-]{0,2}[ \t]{0,12})[\"'`]?|\\?[\"'`]\s{0,4}(?:[+.&,]|\|\|)?\s{0,4}(?:_\s{1,20})?[rbf]?\\?[\"'`]"
    r"|\*\*|\$\{[\"']"
)


def judge_split(text: str, pos: int, floor: int) -> Finding | None:
    """A secret with a shape that is split before its sixteenth letter."""
    if not rx(MARKS).match(text, pos) or (pos != floor and _glued(text, pos)):
        return None
    whole, ends, at = "", [pos], pos
    while len(whole) < 300 and len(ends) < 300:
        run = rx(r"[\w.+/%~-]{0,80}").match(text, at)
        part = run.group() if run else ""
        if whole and (not part or (part.isalpha() and (part.islower() or part.istitle()))):
            break
        whole += part
        ends += range(at + 1, at + len(part) + 1)
        more = rx(_SPLIT).match(text, at + len(part))
        if more is None:
            break
        at = more.end()
    finding = judge_key(whole, 0, 0)[0] if at > pos else None
    return Finding(finding.rule, pos, ends[finding.end]) if finding else None


def _wrapped(text: str, end: int) -> int:
    """Where a secret ends that goes on in the next lines, or in another string."""
    while (more := rx(_JOINED).match(text, end)) and rank(more["v"], more["v"]) > 2:
        end = more.end("v")
    while (more := rx(_WRAP).match(text, end)) and rank(more["v"], more["v"]) > 2:
        end = more.end("v")
    return end


def accept(
    text: str, rule: str, value: Value | None, need: int, short: int = 3, literal: bool = False
) -> Finding | None:
    """The value as a finding, if it is odd enough; a key inside gives it the better name."""
    if value is None or value.end - value.start < short:
        return None
    start, end = value.start, value.end
    found = text[start : min(end, start + 100)]
    number = rule == "password" and found.isdigit() and len(found) > 5
    named_again = rx(ANY_WORD).match(found)  # as the names of fields are translated
    if named_again and named_again.end() == len(found.rstrip("?!")):
        return None
    if rule == "pin" and not rx(r"\d{4,10}|\d{1,4}(?:-\d{1,4}){2,3}").fullmatch(found):
        return None
    if oddness(found, bare=not value.quoted, literal=literal) < need - number or (
        rule == "key" and not rx(_MIXED).match(found)
    ):
        return None
    while not value.quoted and end - start >= 200 and (more := rx(BARE, 0).match(text, end)):
        end = more.end()
    end = _wrapped(text, end) if end - start > 15 else end
    while value.quoted and (more := rx(_JOINED).match(text, end)) and rank(more["v"], more["v"]) > 1:
        end = more.end("v")
    key, key_end = judge_key(text, start, start)
    return Finding(key.rule, start, max(end, key_end)) if key else Finding(rule, start, end)


def _lines(before: str, pattern: str) -> str:
    """What stands before a place on its line, and on the line before for a pattern that goes on there."""
    return "\n".join(before.split("\n")[-2 if r"\n" in pattern else -1 :])


def _standing(text: str, pos: int) -> list[Place]:
    """The places whose marks stand at pos."""
    stands = rx(WHICH).match(text, pos) if rx(STANDS).match(text, pos) else None
    return [place for place, mark in zip(PLACES, stands.groups(), strict=True) if mark == ""] if stands else []


def judge_place(text: str, pos: int, floor: int) -> Finding | None:
    """What stands in a place for secrets."""
    low = max(0, pos - 300)
    begin = max(floor, low)
    if rx(AT).match(text, pos):  # of many signs in one stretch of text only the first few can end a password
        space = rx(r"(?s).*[\s\"'<>`]").match(text, begin, pos + 1)
        begin = space.end() if space else begin
        if text.find(":", begin, pos) < 0 or text.count("@", begin, pos) > 4:
            return None
    for place in _standing(text, pos):
        leads = rx(place.lead).finditer(text, begin, pos + 1) if place.lead else ()
        starts = [lead.start() for lead in leads] if place.lead else [pos]
        matches = (rx(place.find).match(text, start) for start in starts)
        match = next((one for one in matches if one and one.end() > pos), None)
        if match is None or (place.line and not re.search(place.line, _lines(text[low:pos], place.line))):
            continue
        start, end = match.span("v")
        if place.need < 0:
            finding = Finding(place.rule, start, end) if is_basic(match["v"]) else None
        else:
            value = Value(start, end, True) if end > start else read(text, start)
            finding = accept(text, place.rule, value, place.need, literal=place.need == 1)
        if finding:
            return finding
    return None


def named(text: str, pos: int) -> tuple[Word, int, int, int] | None:
    """The telling word at pos, where its name begins and ends, and how much odder the value of such a name has to be;
    None if it tells of something else: tokenizer, next_token, password_hint."""
    match = rx(ANY_WORD).match(text, pos)
    if match is None:
        return None
    word = WORDS[int(str(match.lastgroup)[1:])]
    begin, end = match.span()
    begin += not text[begin].isalnum()
    low = max(0, begin - 40)
    start = low + len(text[low:begin].rstrip(_NAME_CHARS))
    if start < begin and text[start - 1 : start] == "\\":
        start += 1  # the letter of an escape: \nTOKEN=
    before, tail = text[start:begin], text[end : end + 40]
    tail = tail[: len(tail) - len(tail.lstrip(_NAME_CHARS))].rstrip("-.")
    extra = 0
    if tail:
        longer = tail[0].isalpha() and not (tail[0].isupper() and text[end - 1].islower())
        if (longer and not rx(_PLURAL).match(tail)) or tail[:2] == "--" or rx(TELLING).search(tail):
            return None
        after = [piece.lower() for piece in rx(PIECES).findall(tail)]
        if not ABOUT.isdisjoint(after):
            return None
        extra = 0 if all(piece.isdigit() or piece in NEUTRAL for piece in after) else 1
    if text[max(0, start - 2) : start] == "::":
        return None
    if word.rule != "password" and match.group()[-6:].lower() != "secret":  # which are never public
        previous = rx(PIECES).findall(before)
        if not previous and text[start] != "-":
            previous = text[max(0, start - 16) : start].rpartition("\n")[2].split()
        last = previous[-1].lower() if previous else ""
        public = last in PUBLIC or before.strip("_-.").lower() in PUBLIC  # S3Key is S, 3 and Key
        if last in ("client", "request", "change", "lock") and rx(_UUID).match(text, end):
            return None  # made up for one call
        if rx(_OPENLY).search(text, start, end) or (public and not text[start:end].isupper()):
            return None
        extra += 4 - word.tight if public else 0  # SYNC_TOKEN=, of a configuration
    return word, start, end + len(tail), extra


_SETTING = r"(?:.*[;&|] ?)?(?:ENV|ARG|setx|setenv|set -g?x\w*|-e|#define|.*(?:config(?:ure)? set|config:?set|git config|npm config)(?: --\w+)*)\Z"
_SAID = r"(?i)\b(?:the|my|your|our|his|her|new|old|wi-?fi|login|admin|root|its)[ \t]\Z"  # before a noun of a sentence


def judge_word(text: str, pos: int, floor: int) -> tuple[Finding | None, int]:
    """What a telling name or noun at pos is tied to, and where to go on looking."""
    name = named(text, pos)
    if name and (finding := _judge_tie(text, *name)):
        return finding, name[2]
    english = rx(ENGLISH).match(text, pos) if name else rx(ANY_WORD).match(text, pos)  # found as names are
    noun = None if english else rx(NOUN, 0).match(text, pos)
    if noun:
        kind, start, end = noun.lastgroup or "", pos, noun.end()
    elif name and name[0].loose < NEVER and text[max(0, name[1] - 1) : name[1]] not in ("{", "$"):
        kind, start, end = "password" if name[0].rule == "password" else "token", name[1], name[2]
    else:
        return None, name[2] if name and text[pos].isalnum() else pos + 1
    resume = end if text[pos].isalnum() else pos + 1
    label = text[start:end]
    if (
        name
        and rx(ENGLISH).match(label)
        and rx(_FORM).match(text, end)
        and not rx(_SAID).search(text, max(0, start - 8), start)
    ):
        return None, resume
    if name and ("_" in label or rx("[a-z][A-Z]").search(label)):
        kind = "token"
    rule = {"recovery": "recovery-code", "token": "secret"}.get(kind, "password")
    for value, need, literal in (*told(text, kind, start, end), *told_before(text, kind, start, floor)):
        short = 8 if kind == "token" else 3
        if need == 0:
            return Finding(rule, value.start, value.end), resume
        if finding := accept(text, rule, value, need + (name[3] if name else 0), short, literal):
            return finding, resume
    return None, resume


def _judge_tie(text: str, word: Word, start: int, end: int, extra: int) -> Finding | None:
    """name = value and its like; what is tied in no such way is prose."""
    form = rx(_FORM).match(text, end)
    kind, lead = form.lastgroup if form else "", text[max(0, start - 6) : start]
    if form is None or (kind == "xml" and not lead.endswith(("<", ":", "/", ">", '"', "'"))):
        return _judge_label(text, word, start, end, extra)
    at, tie, op = form.end(), text[end : form.end()], form["op"] or ""
    fold = rx(_NEXT).match(text, at) if op == ":" and word.loose < NEVER else None
    if kind == "call" and not rx(_SETS).fullmatch(text[start:end].rpartition(".")[2]):
        return None
    nested = text.find("=", at, at + 44) >= 0 and rx(_NESTED).match(text, at)
    value = None if nested else read(text, fold.end() if fold else at)
    if value is None or tie == " :" or (lead.endswith((":", "/", "${")) and tie == ":"):  # arn:aws:secret:name
        return None
    literal = text[start:end].isupper() if value.quoted else not fold and _is_literal(text, start, tie, value)
    need = word.quoted if value.quoted else word.bare
    if (
        word.rule == "password"
        and value.quoted
        and rx(r"(?i)user|login|e-?mail").search(text, max(0, start - 80), start)
    ):
        need = 1
    if (
        kind == "xml"
        or (tie == "=" and (text[start].isupper() or text[start] == "-" or lead.endswith((";", "&", "?"))))
        or (literal and not value.quoted)
    ):
        need = word.tight
    elif kind == "call" and word.rule == "password":
        need = 2 if text[start:end].islower() and text[start - 1 : start] != "." and "." not in text[start:end] else 1
    elif kind == "args":
        called = lead.rstrip("\"'`\\ #.")[-1:] == "(" or text[start] == "-"
        sure = text[start] == "-" or text[start:end].isupper()
        need = max(word.quoted, 1 if sure else 2) if called else NEVER
    elif (fold and fold.group()[0] not in "|>") or "==" in op or "!=" in op or text[at] in "([":
        need = max(need, 3)
    if kind == "xml" and (words := rx(r"[^<>\n]{3,100}?(?=\s*</)").match(text, value.start)):
        value = Value(value.start, max(value.end, words.end()), True)
    if kind in _BEHIND or fold:
        behind = rx(_BEHIND.get(str(kind), _ALONE)).match(text, value.end)
        first = not lead.rpartition("\n")[2].strip(" *`")  # of its line
        if not behind or (kind == "table" and (not (first or lead.rstrip(" *`")[-1:] == "|") or heads(text, at))):
            return None
    finding = accept(text, word.rule, value, need + extra, word.short, literal)
    while finding and text[at] == "[" and (more := rx(_MORE).match(text, finding.end)):
        if oddness(more["v"][:100]) < need:
            break
        finding = Finding(finding.rule, finding.start, more.end("v"))
    return finding


def _is_literal(text: str, start: int, tie: str, value: Value) -> bool:
    """Whether a bare value cannot be an expression: in a shell, a configuration file, an answer to a prompt."""
    line = re.split(r"\n|\\n", text[max(0, start - 300) : start])[-1]
    line = rx(r"[\w./-]{1,80}:\d{1,5}[:-]|.*[:,\[]\s?\\{0,3}\"").sub("", line, count=1)  # of a file, of a string
    if tie == "=":
        behind = rx(r"[\s;&\"'`|\\}]|,\S|\Z").match(text, value.end)
        return behind is not None and (text[start].isupper() or line.count("(") <= line.count(")"))
    typed = text.startswith("passwd", start) or (
        not text[start].isupper() and rx(r"[A-Z][A-Za-z]*\Z").match(text, value.start, value.end)
    )
    alone = not line.strip(" \t>*-\"'+") and rx(r"[ \t]*(?:#[^\n]*)?(?:\\?[\r\n]|\\n|\Z)").match(text, value.end)
    return tie.endswith(" ") and tie.strip(" \"'*") == ":" and alone is not None and bool(alone) and not typed


def _judge_label(text: str, word: Word, start: int, end: int, extra: int) -> Finding | None:
    """--name value, NAME value, and a value directly behind a name."""
    label = text[start:end]
    flag = label.startswith("-") or ("_" in label and label.isupper())
    if (word.loose == NEVER and not flag) or text[start - 1 : start] in ("$", "{"):
        return None
    gap = rx(_GAP).match(text, end)
    if gap is None:
        return None
    value, short = read(text, gap.end()), max(6, word.short)
    if value and value.quoted:
        need = word.quoted if flag else max(2, word.quoted)
    else:
        need = word.tight if flag else word.loose + 1
    line = text[max(0, start - 60) : start].rpartition("\n")[2].strip()
    literal = (flag and label[0] == "-") or rx(_SETTING).match(line) is not None
    if not flag and rx("_|[a-z][A-Z]").search(label):
        setting = value and value.quoted and not line and rx(r"\W?[ \t]*(?:[\r\n]|\Z)").match(text, value.end)
        need = word.quoted if setting else max(need, 4)
    return accept(text, word.rule, value, need + extra + (flag and not literal and need < 2), short, literal)


RULED = r"[-=:+| \t]*[-=]{2}[-=:+| \t]*\r?"  # the line between the head of a table and its rows


def next_line(text: str, pos: int) -> tuple[int, int]:
    """Where the line after the one at pos begins and ends."""
    start = text.find("\n", pos, pos + 600) + 1 or len(text)
    end = text.find("\n", start)
    return start, end if end >= 0 else len(text)


def heads(text: str, pos: int) -> bool:
    """Whether the line at pos is the head of a table: the next one is ruled."""
    return rx(RULED).fullmatch(text, *next_line(text, pos)) is not None
