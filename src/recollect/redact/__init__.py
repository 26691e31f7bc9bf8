"""Secrets out of text, before anything of a transcript is stored or sent.

`scan` says where secrets stand, `redact` puts `[redacted:<rule>]` in their place. Three tables hold every rule: KEYS
(secrets that have a shape, found bare), PLACES (a secret is what stands there: the password of a URL, a header, a flag)
and WORDS (names that tell; a value beside or below one is judged by how odd it looks).

It parses no language, asks no provider whether a key is alive, and lets a secret without a shape pass when nothing
beside it tells. One RE2 pass over the bytes finds the landmarks where a rule could apply; Python looks only there, at a
bounded stretch of text, so that the time stays linear whatever the input.

Invariant: scan(redact(text)) is empty for every text, hence redact is idempotent; no text raises.
"""

import bisect
import functools
from typing import Any

from recollect.redact import cards, encoded, prose
from recollect.redact.below import BELOW, HERE, MANIFEST, VALUES, judge_below
from recollect.redact.encoded import find_encoded
from recollect.redact.judge import META, Finding, judge_key, judge_place, judge_split, judge_word
from recollect.redact.near import CUES, cue, find_near
from recollect.redact.rules import KEYS, PLACES, SHAPED, WORDS, rx

VERSION = 2  # of the rules: what was stored under another one is judged again

_FOLLOW_KEY = r"s?(?:[_.\-0-9][\w.\-]{0,24})?[\\\"'`*\]]{0,6}(?:\s*[:=,>]{1,2}|\s+value:)\s*[\\\"'`]{0,4}[\w+/\-]{6}"
_FOLLOW = (  # what has to follow a telling word before Python looks; `_FORM` and `_LINK` say it more exactly
    r"s?(?:(?:[_.\-0-9]|(?-i:[A-Z]))[\w.\-]{0,24})?(?:(?:[\\\"'`*\])\[?!0-9]|&quot;|%22){0,6}(?:[ \t][0-9]{1,2})?[ \t]*"
    r"(?:[:=|]|\?\?|or[ \t]+[\"']|<-|!=|->|→|—|–|-[ \t]|：|是|为|為|は|を|が|는|「|『|«|%3[AD]"
    r"|(?:str|char|text)\w*[ \t]+=)"
    r"|[\\\"'`]{1,4}(?:\s*,|\)\s?(?:\{|\?|\|\||or)|(?:[\r\n]|\\[rn]){2})|\"?(?:[,;\t][\w\"]|\x20{2,}\w)"
    rf"|[\\\"'`]{{0,4}},?(?:[\s{{-]|\\[nrt]|{META})*[\\\"']{{0,4}}(?:value|default)"
    r"|\(\s*[@$rbfuN]?\\?[\"'`]|(?:</\w+>\s*<\w+|[\\\"']{0,2}(?:\s\w+=[\"'][^\"'<>\n]*[\"'])?)>|(?:'|’)s[ \t]|[\"'`)*]{0,3}[ \t]+(?:[\"'`(]"
    r"|(?:is|was|to|as|be|are|for|of|on|in|at|from|i|we|you|that|ist|lautet|heißt|auf|für|est|es|c['’]est|du|del?|от|är|è|é"
    r"|(?:re)?set|changed)[\s:]"
    r"|[a-z]+-[a-z]+-[a-z]+-[a-z]|\S{0,32}(?:[0-9@$!#%&*^]|\S(?-i:[A-Z]))))"
)


@functools.cache
def _landmarks() -> list[Any]:
    """Return the searches for all marks. Two automata are faster than one that holds both their states."""
    import re2

    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1  # bytes are bytes, whatever they encode
    options.never_capture, options.log_errors, options.max_mem = True, False, 192 << 20
    plain = "|".join(row.mark for row in KEYS if not row.back and " " not in row.mark)
    words = "|".join(word.words for word in WORDS if word.rule != "key")
    keys = "|".join(word.words for word in WORDS if word.rule == "key")
    setting = r"(?:PASSWORD|PASSPHRASE|PASSWD|PASS|PWD|SECRET|TOKEN|KEY)[ \t]+[\w+/\-\"']{4}"
    groups = (
        [
            *(row.mark for row in KEYS if row.back or " " in row.mark),
            *(row.mark for row in PLACES),
            rf"(?:{plain})(?:[\w.+/=%~$-]{{10}}|[\w.+/=%~-]{{0,9}}(?:\\?\r?\n|[\"'`]|\*\*))",
            f"(?i:(?:{words}){_FOLLOW}|(?:{keys}){_FOLLOW_KEY})",
            rf"(?i:{'|'.join(word.words for word in WORDS[:3])})[ \t\"*`]*\r?\n",
            f"(?i:{prose.MARKS})",
            f"(?i:{CUES})",
            *(MANIFEST, VALUES, HERE, setting, cards.MARK),
        ],
        encoded.MARKS,
    )
    return [re2.compile("|".join(dict.fromkeys(group)).encode(), options).search for group in groups]


_NONE = 1 << 62  # after every mark


def _next(hits: list[int], data: bytes, at: int) -> int:
    """Return where the next mark at or after `at` begins; `hits` keeps what each search found."""
    for number, search in enumerate(_landmarks()):
        if hits[number] < at:
            hit = search(data, at)
            hits[number] = hit.start() if hit else _NONE
    return min(hits)


_NARROW = {0xFF00 + sign: 0x20 + sign for sign in range(1, 95)} | {0xA0: " "}  # signs as wide as Chinese ones
_UNSEEN = "\xa0\xad\u200b\u200c\u200d\u2060\ufeff"
_NOISE = rf"(?:\x1b|\\u001b)\[[0-9;]*[mK]|[{_UNSEEN[1:]}]"  # colours, and signs without a width


def scan(text: str) -> list[Finding]:
    """The secrets in a text, sorted, none overlapping another."""
    found = _find(text)
    wide = not text.isascii() and rx(r"[\uff10-\uff5a]{4}", 0).search(text) is not None
    escaped = wide or "\x1b" in text or ("\\" in text and "\\u001b[" in text)
    if escaped or (not text.isascii() and any(map(text.__contains__, _UNSEEN))):
        found += _find_below(text)
    if not found:
        return found
    merged: list[Finding] = []
    for finding in sorted(found, key=lambda one: one.start):
        if merged and finding.start < merged[-1].end:
            finding = Finding(merged[-1].rule, merged[-1].start, max(merged.pop().end, finding.end))
        merged.append(finding)
    return merged


def _find_below(text: str) -> list[Finding]:
    """What is found once the signs are gone that nobody sees."""
    parts, starts, gone, at = [], [0], [0], 0
    for noise in [*rx(_NOISE).finditer(text)]:
        parts.append(text[at : noise.start()])
        at = noise.end()
        gone.append(gone[-1] + at - noise.start())
        starts.append(at - gone[-1])
    plain = ("".join(parts) + text[at:]).translate(_NARROW)
    found = []
    for one in _find(plain):
        start, last = (pos + gone[bisect.bisect_right(starts, pos) - 1] for pos in (one.start, one.end - 1))
        found.append(Finding(one.rule, start, last + 1))
    return found


_DEEPEST = 3  # how often text is decoded
ENCODED = "|".join(encoded.MARKS)


def _find(text: str, depth: int = 0) -> list[Finding]:
    """The findings of one reading; a later one may overlap an earlier."""
    data = text.encode("utf-8", "surrogatepass")
    hits = [-1] * len(_landmarks())
    start = _next(hits, data, 0)
    if start == _NONE:
        return []
    narrow = len(data) == len(text)  # ASCII: a byte is a character
    found: list[Finding] = []
    below: list[Finding] = []
    byte = char = done = decoded = 0
    while start < _NONE:
        while data[start] & 0xC0 == 0x80:
            start -= 1  # a mark may begin with any byte: back to where its character begins
        char += start - byte if narrow else len(data[byte:start].decode("utf-8", "surrogatepass"))
        opened = text.rfind("[redacted:", max(0, char - 30), char + 1)
        marker = rx(r"\[redacted:[a-z0-9-]{1,18}\]").match(text, opened) if opened >= 0 else None
        if marker and marker.end() > char:
            resume = marker.end()
        elif found and found[-1].start <= char < found[-1].end:
            resume = found[-1].end
        else:
            floor = found[-1].end if found else 0
            finding, resume = None, char + 1
            if rx(SHAPED).match(text, char):
                finding, resume = judge_key(text, char, floor)
                if not finding:
                    finding = judge_split(text, char, floor)
                if not finding and resume == char + 1:
                    finding = judge_place(text, char, floor)
            if not finding and resume == char + 1:
                finding, resume = judge_word(text, char, floor)
            if not finding and char >= done and rx(BELOW).match(text, char):
                cells, done = judge_below(text, char, done)
                below += [cell for cell in cells if cell]
            if not finding and rx(cards.MARK).match(text, char):
                payment = [Finding("card", *span) for span in cards.find_card(text, char)]
                below += payment
                resume = max(resume, payment[0].end) if payment else resume
            at = char + (not text[char].isalpha())  # the mark begins with the sign before the word
            near = not finding and (at != char or char == 0 or text[char] > "\x7f") and text[at : at + 1].isalpha()
            word = cue(text, at) if near else None
            below += [Finding("password", *span) for span in find_near(text, at, word, floor)] if word else []
            fresh = not finding and resume == char + 1 and char >= decoded and depth < _DEEPEST
            if fresh and rx(ENCODED, 0).match(text, char):
                spans, decoded = find_encoded(text, char, floor, functools.partial(_find, depth=depth + 1))
                below += [Finding(span.rule, span.start, span.end) for span in spans]
                resume = max(resume, decoded) if spans else resume
            if finding and found and finding.start < found[-1].end and finding.end > found[-1].start:
                last = found.pop()  # one run, which is left behind as a whole
                rule = last.rule if last.start <= finding.start else finding.rule
                finding = Finding(rule, min(last.start, finding.start), max(last.end, finding.end))
            found += [finding] if finding else []
        byte = start + (resume - char if narrow else len(text[char:resume].encode("utf-8", "surrogatepass")))
        char = resume
        start = _next(hits, data, byte)
    return found + below


_PASSES = 6  # no text that a person wrote has needed more than three


def redact(text: str) -> str:
    """The text with a marker in place of every secret; the same object if there is none.

    A marker may bring to light what stands beside it. Text made to do so over and over loses more in every pass, so
    that the number of passes grows only with the logarithm of its length.
    """
    passes = 0
    while found := scan(text):  # ends: every pass turns text into markers, and no finding lies in a marker
        passes += 1
        more = 1 << passes if passes > _PASSES else 0
        parts, at = [], 0
        for finding in found:
            parts += [text[at : max(at, finding.start - more)], f"[redacted:{finding.rule}]"]
            at = max(at, finding.end + more)
        text = "".join(parts) + text[at:]
    return text
