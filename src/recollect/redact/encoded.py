"""Secrets in another writing: base64, hex, escapes, lists of numbers, pieces that a program joins, words of a wallet.

Each is found by a mark of its own, turned back into text within bounds, and the text is searched as any other. What
stands for a secret then goes as a whole.
"""

import base64
import binascii
import codecs
import contextlib
import itertools
import re
import zlib
from collections.abc import Callable
from typing import Any, NamedTuple
from urllib.parse import unquote

from recollect.redact.rules import rx
from recollect.redact.values import TELLING, oddness, rank


class Span(NamedTuple):
    """Where something stands that has to go."""

    start: int
    end: int
    rule: str = "encoded"


Find = Callable[[str], list[Any]]  # where the secrets of a text stand

_QUAD = r"[CDI-Za-f][A-HQ-Xg-nw-z0-3][ABEFIJMNQRUVYZcdghklopstwx014589][A-Za-z0-9+/_-]"  # base64 of three letters
_WIDE = r"[I-Za-f][AQgw][AB][\w+/]A[C-H][AEIMQUYcgkosw048]A"  # the same, of UTF-16
_HEX = r"(?:[2-7][0-9a-fA-F]|0[9aAdD])"
_BYTE = rf"(?:\\\\?x|0x|%|&#x|\\u00|\\\\u00){_HEX}[;,]?\s?"
_BASE64 = rf"(?:{_QUAD}){{5}}|(?:{_WIDE}){{3}}"
_DUMP = rf"\b[0-9a-f]{{4,8}}:? +(?:{_HEX} ?){{8}}"
_NUMBERS = r"(?:(?:&#)?[0-9]{2,3}[;,]\s?){8}"
_PAIRS = rf"\b(?:{_HEX}[ :]){{12}}"
_OCTAL = r"(?:\\[01][0-7]{2}){8}"
_SPACED = r"(?:[!-~] ){12}[!-~]"
_ESCAPED = r"%(?:25)*(?:3[aA]|2[fFdD]|5[fF]|3[dD]|40|26)"
_JOINT = r"[\w+/=.~-]\\?[\"'`](?:\s*[+.&]\s*|\s*\\\s*|\s*\n\s*|\)?\.(?:append|concat|add)\(\s*)\\?[\"'`][\w+/=.~-]"
_JOINED = r"[\"'`]\s*\]\s*\.join\(|(?:join|concat\w*)\(\[?[\"'`]|[\"'`]\.join\(\s*[\[(]"
_REVERSED = (
    r"[\"']\s*(?:\[::-1\]|\.split\([\"']{2}\)\.reverse|\.reverse\(|\)\.reverse|\|\s*rev\b)|\b(?:strrev|reverse)\([\"']"
)
_SEED = (
    r"(?i:mnemonic|\bseed\b[\"']?\s*(?:[:=]|is\b)|seed[ _-]?(?:phrase|words?|\.txt)|wallet (?:seed|words|backup)|metamask|ledger|trezor|phantom|yoroi|exodus|electrum|bip-?39|(?:recovery|backup|secret) (?:phrase|words|card)"
    r"|\b(?:12|15|18|21|24|twelve|fifteen|eighteen|twenty-?four)[ -]words?|\bwords\s*[:=]|write (?:these|them|it) down|semilla|frase de recuperaci|phrase de r|wiederherstellungs(?:phrase|w))"
    r"|助记词|助記詞|シード|リカバリーフレーズ|сид-?фраз|мнемо|العبارة|सीड|\bwords(?:\.txt)?:?\n|\bmy (?:\d+ )?words\b|\b1[ .|):]+[a-z]{3,8}[ ,;|\n]+(?:2|5|7|9|13)[ .|):]+[a-z]{3,8}\b|solana-keygen"
)
_MEMBERS = r"\\?[\"']?kty\\?[\"']?\s*:|\\?[\"']ciphertext\\?[\"']\s*:\s*\\?[\"'][0-9a-f]{32}"
_ARRAY = r"[\[{(]\s*(?:(?:0x[0-9a-fA-F]{2}|[0-9]{1,3}),\s*){12}"
_LETTERS = r"(?:'[!-&(-~]'\s{0,2},\s{0,4}){6}|(?:\"[!#-~]\"\s{0,2},\s{0,4}){6}"
_TURNED = r"(?i:\brevers(?:ed|al)\b|\bbackwards?\b|\|\s?rev\b|\brot-?13\b|n-za-m|\bbase-?32\b|\bb32)"
MARKS = (
    _LETTERS,
    _TURNED,
    _MEMBERS,
    _ARRAY,
    _BASE64,
    rf"\b(?:{_HEX}){{10}}",
    rf"\\x(?:{_HEX}){{10}}",
    "H4sIA",
    r"\b[A-Z2-7]{32}",
    rf"(?:{_BYTE}){{6}}",
    _DUMP,
    _NUMBERS,
    _PAIRS,
    _OCTAL,
    _SPACED,
    _ESCAPED,
    _JOINT,
    _JOINED,
    _REVERSED,
    _SEED,
)
_LONGEST = 20_000  # of what is decoded
_STRING = r"\\?([\"'`])(?P<v>[^\"'`\n\\]{1,200})\\?\1"


def find_encoded(text: str, pos: int, floor: int, find: Find) -> tuple[list[Span], int]:
    """The secrets of what begins at pos in another writing, and where to go on looking."""
    floor = min(floor, pos)
    if rx(f"{_JOINED}|{_JOINT}").match(text, pos):
        return _find_joined(text, pos, floor, find)
    if rx(_LETTERS).match(text, pos):
        return _find_letters(text, pos, floor, find)
    if rx(_TURNED).match(text, pos):
        return _find_turned(text, pos, floor, find)
    if rx(_MEMBERS).match(text, pos):
        return _find_members(text, pos, floor)
    if rx(_ARRAY).match(text, pos):
        return _find_array(text, pos)
    if rx(_REVERSED).match(text, pos):
        return _find_reversed(text, pos, floor, find)
    if rx(_SEED, 0).match(text, pos):
        return _find_seed(text, pos, floor)
    if rx(_ESCAPED).match(text, pos):
        return _find_escaped(text, pos, floor, find)
    for pattern, reads in (
        (rf"(?:{_BYTE})+", _read_bytes),
        (rf"(?:{_DUMP}[^\n]*\n?)(?:[0-9a-f]{{4,8}}:? [^\n]{{0,120}}\n?)*", _read_dump),
        (
            rf"(?:{_HEX}[ :]){{12,}}{_HEX}(?![0-9a-f])",
            lambda run: bytes.fromhex(run.replace(":", " ")).decode("latin-1"),
        ),
        (r"(?:\\[01][0-7]{2})+", lambda run: bytes(int(sign, 8) for sign in run.split("\\")[1:]).decode("latin-1")),
        (r"(?:(?:&#)?\d{2,3}[;,]?\s?){8,}", _read_numbers),
        (r"(?:[!-~] )+[!-~](?!\S)", lambda run: run.replace(" ", "")),
        (rf"(?:\\x)?(?:{_HEX})+(?![0-9a-fA-F])", lambda run: bytes.fromhex(run.removeprefix("\\x")).decode("latin-1")),
    ):
        run = rx(pattern).match(text, pos, pos + _LONGEST)
        if run and run.end() - pos >= 12:
            return _judge(text, pos, run.end(), reads(run.group()), find), run.end()
    return _find_base64(text, pos, floor, find)


def _judge(text: str, start: int, end: int, plain: str, find: Find) -> list[Span]:
    """The run as a whole, if what it says is a secret, or stands behind a telling name."""
    if not plain.isprintable() and not all(sign.isprintable() or sign in "\r\n\t" for sign in plain.rstrip("\0")):
        return []
    before = text[max(0, start - 60) : start].rpartition("\n")[2]
    behind = text[end : end + 60].partition("\n")[0]
    near = before + (behind if "//" in behind or "#" in behind else "")
    tied = re.search(rf"{TELLING}|\b[Pp][Ww]\b", near) and 5 < len(plain) < 200 and not re.search(r"\s", plain)
    if find(plain) or (tied and oddness(plain) > 1) or find(before + plain.strip("\0")):
        return [Span(start, end)]
    return []


def _read_bytes(run: str) -> str:
    return bytes.fromhex("".join(re.findall(rf"(?:x|%|u00)({_HEX})", run))).decode("latin-1")


def _read_dump(run: str) -> str:
    rows = (
        re.split(r"  [^\s0-9a-f]|  \|| {2,}(?=\S+\Z)", re.sub(r"\A[0-9a-f]{4,8}:? +", "", line))[0]
        for line in run.split("\n")
    )
    digits = "".join(re.findall(r"[0-9a-f]{2}", " ".join(rows)))
    return bytes.fromhex(digits).decode("latin-1").rstrip("\0\n")


def _read_numbers(run: str) -> str:
    numbers = [int(number) for number in re.findall(r"\d+", run)]
    return "".join(map(chr, numbers)) if all(31 < number < 127 for number in numbers) else "\1"


def _find_base64(text: str, pos: int, floor: int, find: Find) -> tuple[list[Span], int]:
    """A run of base64, in lines or not; decoded twice, if need be."""
    start = pos
    back = len(rx(r"[\w+/-]*\Z").search(text, max(floor, pos - 4000), pos).group())  # type: ignore[union-attr]
    start -= back // 4 * 4
    run = rx(r"(?:[\w+/-]+(?:\\?\n\s{0,12}(?=[\w+/-]{16}))?)+={0,2}|(?:[\w+/-]|%2[BbFf]|%3[Dd])+").match(
        text, start, start + _LONGEST
    )
    if run is None or run.end() - start < 16:
        return [], pos + 1
    body = re.sub(r"\s|\\", "", unquote(run.group())).rstrip("=").translate(str.maketrans("-_", "+/"))
    try:
        if rx(r"[A-Z2-7]{32}").match(text, pos):
            start, run = pos, rx(r"[A-Z2-7]+={0,6}").match(text, pos) or run
            if rx(r"S[A-Z2-7]{55}(?![A-Z2-7=])").match(text, pos):  # of Stellar
                return [Span(pos, run.end(), "wallet")], run.end()
            code = run.group().rstrip("=")
            code = code[: len(code) - (len(code) % 8 in (1, 3, 6))]
            raw = base64.b32decode(code + "=" * (-len(code) % 8))
        else:
            raw = base64.b64decode(body[: len(body) // 4 * 4 if len(body) % 4 == 1 else None] + "=" * (-len(body) % 4))
    except (binascii.Error, ValueError):
        return [], run.end()
    if raw[:2] == b"\x1f\x8b":
        line = text[max(0, start - 80) : start + 0] + text[run.end() : run.end() + 60].partition("\n")[0]
        try:
            raw = zlib.decompressobj(31).decompress(raw, _LONGEST * 4)
        except zlib.error:
            return [Span(start, run.end())] if rx(TELLING).search(line) else [], run.end()
    plain = raw.decode("utf-16-le", "replace") if raw[1:2] == b"\0" else raw.decode("utf-8", "replace")
    if sum(map(str.isprintable, plain)) < 0.9 * len(plain):
        return [], run.end()
    if (
        plain.isascii()
        and plain.isprintable()
        and len(plain) < 60
        and oddness(plain) > 1
        and rx(r"(?i)passw|pwd|secret|token|credential|\bpw\b").search(
            text, max(0, start - 60), min(len(text), run.end() + 60)
        )
    ):
        return _judge(text, start, run.end(), plain.rstrip("\n"), find), run.end()
    return ([Span(start, run.end())] if find(plain) else []), run.end()


def _find_letters(text: str, pos: int, floor: int, find: Find) -> tuple[list[Span], int]:
    """A string as a list of its letters."""
    run = rx(r"(?:[\"'](?P<v>[!-~])[\"'][\s,]*){7,400}").match(text, pos)
    if run is None:
        return [], pos + 1
    plain = "".join(rx(r"[\"']([!-~])[\"']").findall(run.group()))
    odd = oddness(plain) > 2 and len(plain) > 15
    return ([Span(pos, run.end())] if odd else _judge(text, pos, run.end(), plain, find)), run.end()


def _find_turned(text: str, pos: int, floor: int, find: Find) -> tuple[list[Span], int]:
    """What stands in the line of a mention that it is written backwards, in rot13 or in base32."""
    low = max(floor, text.rfind("\n", max(0, pos - 200), pos) + 1, pos - 200)
    high = text.find("\n", pos, pos + 200)
    high = high if high >= 0 else min(len(text), pos + 200)
    tied, spans = rx(TELLING).search(text, low, high), []
    for run in rx(r"(?<![\w/+.-])[\w+/=.~!@#$%^&*-]{8,400}").finditer(text, low, high):
        word = run.group().rstrip(".")
        if not rx(r"(?=.*\d)(?=.*[A-Za-z])|[A-Z2-7]{16}").match(word) or "." in word:
            continue
        for plain in _turns(word, text[pos : pos + 7].lower()):
            if find(plain) or (oddness(plain) > 3 or (tied and rank(word, word) > 2 and re.search(r"\d", word))):
                spans.append(Span(run.start(), run.start() + len(word)))
                break
    return spans, high if spans else pos + 4


def _turns(word: str, how: str) -> list[str]:
    """A word as it was before."""
    if how[0] in "rb|" and "3" not in how:
        return [word[::-1]]
    if "32" in how:
        body = word.rstrip("=")
        if not rx(r"[A-Z2-7]{12,}").fullmatch(body):
            return []
        with contextlib.suppress(binascii.Error, ValueError):
            raw = base64.b32decode(body + "=" * (-len(body) % 8))
            return [raw.decode("ascii")] if raw.isascii() and raw.decode("ascii").isprintable() else []
        return []
    return [codecs.decode(word, "rot13")] if rx(r"[0-9]").search(word) else []


def _mapped(spans: list[Any], starts: list[int]) -> list[Span]:
    """The same places in the text that was turned: starts[i] is where sign i of the turned one begins."""
    return [Span(starts[span.start], starts[span.end - 1] + 1, span.rule) for span in spans]


def _find_escaped(text: str, pos: int, floor: int, find: Find) -> tuple[list[Span], int]:
    """The secrets of a run of percent-encoding."""
    low = rx(r"[^\s\"'<>`]*\Z").search(text, max(floor, pos - 400), pos).start()  # type: ignore[union-attr]
    run = rx(r"[^\s\"'<>`]+").match(text, low, pos + 3000)
    end = run.end() if run else pos + 1
    parts, starts = [], []
    for sign in rx(r"(?:%(?:25)*[0-9a-fA-F]{2})+|.", re.DOTALL).finditer(text, low, end):
        plain = unquote(re.sub(r"%(?:25)+", "%", sign.group()))
        parts.append(plain)
        starts += [sign.start()] * len(plain)
    starts.append(end)
    return [Span(starts[span.start], starts[span.end], span.rule) for span in find("".join(parts))], end


def _find_joined(text: str, pos: int, floor: int, find: Find) -> tuple[list[Span], int]:
    """The secrets of a chain of strings that are joined."""
    low = max(floor, text[max(0, pos - 200) : pos].rfind("\n") + max(0, pos - 200) + 1)
    high = pos + 900
    strings = list(itertools.islice(rx(_STRING).finditer(text, low, high), 40))
    between = r"\s*(?:[+.,&\\]\s*|\)?\.(?:append|concat|add)\(\s*)?\n?\s*\Z"
    chain: list[re.Match[str]] = []
    for string in strings:
        if chain and not rx(between).match(text, chain[-1].end(), string.start()):
            if chain[-1].end() > pos and len(chain) > 1:
                break
            chain = []
        chain.append(string)
    if len(chain) < 2:
        return [], pos + 1
    head = text[low : chain[0].start("v")]
    starts = [*range(low, low + len(head)), *(at for string in chain for at in range(*string.span("v")))]
    spans = find(head + "".join(string["v"] for string in chain) + text[chain[-1].end("v") : chain[-1].end() + 1])
    inside = [span for span in spans if span.start >= len(head) and span.end <= len(starts)]
    return _mapped(inside, starts), max(pos + 40, chain[-1].end())


def _find_reversed(text: str, pos: int, floor: int, find: Find) -> tuple[list[Span], int]:
    """The secret of a string that is turned around."""
    near = list(rx(_STRING).finditer(text, max(floor, pos - 300), pos + 300))
    for string in near:
        if string.start() <= pos + 16 and string.end() >= pos - 4 and (spans := find(string["v"][::-1])):
            return [Span(*string.span("v"))] if spans else [], string.end()
    return [], pos + 1


_BETWEEN = r"[,;|.)\"'`:•·-]*"  # what may stand between two words, besides numbers and white space
_SIZES = (24, 21, 18, 15, 12)


def _find_seed(text: str, pos: int, floor: int) -> tuple[list[Span], int]:
    """The words of a wallet, near what tells of them."""
    low, high = max(floor, pos - 260), min(len(text), pos + 700)
    if not rx(r"(?:(?<![A-Za-z])[A-Za-z]{3,8}(?![A-Za-z])[^A-Za-z]{1,16}){11}").search(text, low, high):
        return [], pos + 1
    words = list(rx(r"[A-Za-z]+").finditer(text, low, high))
    run: list[re.Match[str]] = []
    gap = ""
    best: list[re.Match[str]] = []
    for word in (*words, None):
        fits = word is not None and 3 <= len(word.group()) <= 8 and (word.group().islower() or word.group().isupper())
        fits = fits and word is not None and word.group().lower() not in _NOT
        between = re.sub(r"[\d\s]+|(?<=\d)[.):]", "", text[run[-1].end() : word.start()]) if run and word else ""
        between = "".join(dict.fromkeys(re.sub(r"\\[nrt]", "", between)))
        if run and (not fits or (len(run) > 1 and between != gap) or not re.fullmatch(_BETWEEN, between)):
            best = max(best, run, key=len)
            run = run[-1:] if fits and re.fullmatch(_BETWEEN, between) else []
        if fits and word is not None:
            gap = between if len(run) == 1 else gap
            run.append(word)
    size = next((size for size in _SIZES if 0 <= len(best) - size <= 2), 0)  # a heading may stand before them
    if not size:
        return [], pos + 250
    start = best[0].start() if best[0].start() > pos else best[-size].start()
    return [Span(start, best[-1].end() if start == best[-size].start() else best[size - 1].end())], max(
        pos + 1, best[-1].end()
    )


_NOT = frozenset(
    """
    the and for with was were are but not his her has had from have been our its did does mnemonic recovery backup wallet
    metamask ledger trezor words
""".split()
)  # no words of a wallet


def _find_members(text: str, pos: int, floor: int) -> tuple[list[Span], int]:
    """The private members of a key in JSON, near what says that it is one: a JWK, a wallet's file."""
    low, high = max(floor, pos - 3000), pos + 3000
    low = max(low, text.rfind("{", low, pos))
    other = text.find("}", pos, high)
    names = r"(?:d|p|q|dp|dq|qi|k)"
    if text[pos : pos + 9].lstrip("\"'\\").startswith("c"):
        other, names = high, r"(?:ciphertext|mac|iv|salt)"
    members = rx(rf"(?<![\w-])\\?[\"']?{names}\\?[\"']?\s*:\s*\\?[\"'](?P<v>[\w+/=-]{{20,2000}})").finditer(
        text, low, other if other > 0 else high
    )
    spans = [Span(*member.span("v")) for member in members]
    return spans, max(pos + 1, other if other > 0 else high)


def _find_array(text: str, pos: int) -> tuple[list[Span], int]:
    """A key of 64 bytes, or of 32 behind a telling name, as a list of numbers."""
    run = rx(r"[\[{(]\s*(?:(?:0x[0-9a-fA-F]{2}|\d{1,3})\s*,\s*){15,127}(?:0x[0-9a-fA-F]{2}|\d{1,3}),?\s*[\]})]").match(
        text, pos
    )
    if run is None:
        return [], pos + 1
    numbers = [int(number, 0) for number in re.findall(r"0x\w+|[1-9]\d*|0", run.group())]
    before = text[max(0, pos - 60) : pos] + text[run.end() : run.end() + 40]
    random = (
        max(numbers) < 256
        and len(set(numbers)) > len(numbers) // 2
        and sum(map(int.__gt__, numbers[1:], numbers)) < 0.8 * len(numbers)
    )
    secret = len(numbers) == 64 or (len(numbers) in (16, 24, 32) and re.search(TELLING, before))
    return ([Span(pos, run.end())], run.end()) if random and secret else ([], pos + 1)
