"""What a value looks like, and where it begins and ends."""

import binascii
import functools
import re
import string
from typing import NamedTuple

from recollect.redact.rules import BIGRAMS, NEUTRAL, PLAIN, PROSE, SMALL, UNSET, rx

_FAKE = (  # stands for a secret: placeholders, regular expressions
    r"\[redacted|(?<![A-Za-z0-9])(?:your|Your|YOUR)|(?<![A-Za-z0-9_])example(?![a-z_])|EXAMPLE|placeholder|PLACEHOLDER|redacted|REDACTED|dummy|DUMMY"
    r"|(?:^|please.)[cC]hange.?me[!\d]{0,4}$|^CHANGE.?ME|replace.?(?:me|with|this)|REPLACE.?(?:ME|WITH|THIS)|[_-](?:here|HERE)$"
    r"|abcdefghijk|ABCDEFGHIJK|^--[a-z]|^![A-Za-z]{2,12}$|^:[a-z_]\w*$|^&(?:lt|#)|^<[\w\s:-]*>?$"
    r"|^%(?:[sd]|[a-z_]\w*%)$|^\[[\w\s-]*\]?$|^\{(?![a-z_]\w*\})|\(\?|\[\^|\[0-9|\[[aA]-|\[\\x|\\[sSwWdD]"
    r"|^(?:\\x[0-9a-f]{2})+$|^[\w\s./:=-]*%[sd](?![\w%])|[a-z]\|[a-z]+\||\]\|\w"
)
_SIGNS = "\u0e00-\u0e7f\u2e80-\ud7ff\uf900-\uffef"  # of scripts that put no space between words: never a password's
_GAPS = (  # stands for a part of one: expansions, templates, what was left out
    r"[$#]\{[^{}]*\}?|\{\{[^{}]*\}{0,2}|[$%]\([^()]*\)?[sd]?|\{[a-z_][\w.\[\]()]*(?:[:!][\w.<>^,]*)?\}"
    r"|\(\)|\.{3,}|…|\*{3,}|•|x{5,}|X{5,}|(.)\1{6,}|[" + _SIGNS + "]+"
)
_ID = (  # has digits and is no secret: versions, dates, sizes, digests, addresses, ids of providers
    r"(?i)(?-i:Ag[A-D][\w+/]{60,}={0,2}$)|(?-i:[A-Z]{1,5}-?\d+(?:[.-]\d+)+$|[A-Z]{2,6}-\d+$)|v?\d+\.\d[\w.+-]{0,40}$|\d{4}-\d\d-\d\d|\d\d?:\d\d|data:|ssh-|ecdsa-"
    r"|(?:sha\d+|md5)[-:]|[a-z][a-z0-9+.-]*://|#[0-9a-f]{3,8}$|0x[0-9a-f]{1,16}(?:u?ll?)?$|[\w.+-]+@[\w.-]+\.[a-z]{2,}$"
    r"|(?=\d+\D)(?:\d+(?:\.\d+)?(?:px|r?em|[kmgt]i?b?|ms|s|h|d|min|x|%)?[/x~+-]?){1,3}$|(?:msg|toolu|srvtoolu|req|call"
    r"|chatcmpl|resp|run|thread|asst|file|price|cus|evt|sub|prod|acct|pk_test|pk_live|pi|ch)[_-]\w{10,}$"
    r"|arn:aws|(?:us|eu|ap|sa|ca|me|af|il)-(?:gov-)?[a-z]+-\d[a-f]?$|[a-z]+(?:-[a-z]+)*-v?\d+(?:\.\d+)+$|\$\d+\.\d+(?:/\w+)?$"
    r"|[a-z][a-z0-9./-]*:\d+(?:\.\d+)+(?:-\w+)?$|(?-i:[A-Z][A-Z0-9]+(?:_[A-Z]{2,})+$)|argon2\w{0,2}\$[mtpv=\d,$]*$"
)
_TECH = (  # digits that belong to a term
    r"(?i)sha-?\d+|base-?(?:16|32|58|64)|utf-?(?:8|16)|oauth-?2(?:\.0)?|x\.?509|[ial]\d\d?[nty]\b|k8s|s3|ec2|md5|b64|\dfa"
    r"|http[23]|ipv[46]|u?int\d+|float\d+|aes-?\d*|[hrep]s(?:256|384|512)|ed25519|p2p|m2m|e2e|win32|x86|(?:amd|arm)64|p12"
    r"|pbkdf2|argon2(?:id?|d)?|pkcs\d+|gpt-?\d\w?|v\d+(?:alpha|beta)\d*|(?-i:V\d+(?=[A-Z]))|es\d|py3|web3|log4j|n8n|mp[34]"
)
_PATH = (
    r"(?:[~.]{0,2}/|[A-Za-z]:[\\/]|\$\w+/|[\w.@-]+[/\\][\w.@+-]+[/\\]|[A-Za-z_.@-]+[/\\](?=[^0-9/\\]*$))"
    r"[\w.@+-]*(?:[/\\][\w.@+-]*)*$|[\w.-]+\.(?:asc|c|cc|cer|cfg|com|conf|cpp|crt|css|csv|db|de|dev|env|exe|go|gpg|gz|h|html?"
    r"|ini|io|java|jks|jpg|js|json5?|jsx|jwt|key|kt|local|log|md|mjs|net|org|p12|pdf|pem|pfx|php|png|pub|py|rb|rs|sh|so|sql|svg"
    r"|svelte|swift|tar|toml|tsx?|txt|vue|xml|ya?ml|zip)$"
)
_CODE = (
    r"(?:Get|New|Read|Set|ConvertTo|ConvertFrom)-[A-Z][A-Za-z]+$|(?:await|new|lambda|function|async|not|self|this|return|typeof|yield)\b|[({\[<]|(?P<head>[&*!.@-]?[A-Za-z_$][\w$]*)"
    r"(?P<rest>(?:(?:\?\.|\.|->|::)(?!\d)[\w$]*)+(?:(?:[(\[{]|<.*>).*)?|(?:[(\[{]|<.*>).*)?$"
)
_OBJECT = (  # what has attributes, or is one of them
    r"(?i)(?:[&*!.@_-]|(?:self|this|os|env|conf|cfg|sett|opt|arg|param|prop|req|res|ctx|context|data|db|user|val|var|local|module|each|input|event|state|body|form|app|account|client|server|process|import|meta|std|sys|flask|django|spring|node|item|row|obj|model|session|store|auth|cred|db|http|url|www|my|test|example)\w*\.)"
    r"|.*\.(?:get|value|name|id|length|to\w+|string|default|\w*data|text|com|net|org|io|local|internal|example|properties|bak|old|dat|crt|example)\Z|.*(?:passw|pwd|secret|token|credential|key|auth)|(?-i:.*[a-z][A-Z])"
)
PIECES = r"[A-Z]?[a-z]+|[A-Z]+|[0-9]+|[^\x00-\x7f]+"
_DIGITS, _SYMBOLS = frozenset(string.digits), frozenset("!@#$%^&*?~")
TELLING = r"(?i)passw|pwd|secret|token|credential|key|auth"


@functools.lru_cache(maxsize=1024)  # text that repeats itself asks the same thousands of times
def oddness(value: str, bare: bool = False, literal: bool = False) -> int:
    """Rate how unlike words, code and placeholders a value is: 0 no secret, 1 words, 2 words and digits, 3 odd, 4 random.

    A bare value may be an expression. A literal one may not, and may be a name made of words.
    """
    if len(value) < 3 or value.lower() in PLAIN or (bare and _is_code(value, _mean(value), literal)):
        return 0
    if (rest := solid(value)) != value:
        odd = oddness(rest, bare, literal)
        return odd if odd >= (4 if bare else 3) else 0
    if rx(_ID).match(value):
        return 0
    if " " in value:
        salt = len(value) > 30 and len(set(value) - set(string.ascii_letters + string.digits)) > 8
        return 4 if salt and not _DIGITS.isdisjoint(value) and not rx("[a-z]{4}").search(value) else _rate_phrase(value)
    digits = not _DIGITS.isdisjoint(value)
    core = rx(_TECH).sub("", value) if digits else value
    mean = _mean(core)
    path = mean >= (2.3 if value[0] in "./~" else 2.9) and rx(_PATH).match(value) and not _gibberish(core)
    variable = value[0] == "$" and re.fullmatch(r"\$\w+" if mean >= 2.5 else r"\$[A-Z_]+", value)
    about = mean >= 2.9 and rx(TELLING).search(core) and not (digits and any(c.isdigit() for c in core))
    if about and literal:  # a name is made of such words alone: db_password
        pieces = [piece.lower() for piece in rx(PIECES).findall(core)]
        about = all(one in PLAIN or one in NEUTRAL or rx(TELLING).fullmatch(one) for one in pieces)
    return 0 if path or variable or about else rank(core, value)


def _rate_phrase(value: str) -> int:
    """Rate several words: a pass phrase is no sentence, and does not speak of passwords."""
    words = value.lower().split()
    telling = any(rx(rf"(?i:{TELLING[4:]})\w{{0,3}}\Z").match(piece) for piece in rx(PIECES).findall(value))
    plain = sum(word in PLAIN for word in words)
    small = len(SMALL.intersection(words))
    if (
        not 1 < len(words) <= 10
        or telling
        or 2 * plain >= len(words)
        or 2 * small > len(words)
        or not (PROSE - SMALL).isdisjoint(words)
    ):
        return 0
    if small:  # words of a phrase as much as of a sentence
        return 0 if rx(r"[.:,]\s|[.:(?]\Z|[<>{}=|/]|\w\(").search(value) else 1
    if len(words) <= 4 and not all(map(str.isalpha, words)) and oddness("".join(words)) >= 3:
        return 2
    if not plain and all(word.isalnum() and word.islower() for word in words) and value.islower():
        return 3 if len(words) > 3 else 2
    return 0 if rx(r"[.:]\s|[.:(]\Z|[<>{}=|]|\w\(").search(value) else 1


def solid(value: str) -> str:
    """What stands in it beside placeholders: all of it, if there is none, and nothing, if it is one as a whole."""
    return "" if rx(_FAKE).search(value) else rx(_GAPS).sub("", value)


def rank(core: str, value: str) -> int:
    """The same by the characters alone; `core` is the value without the digits of known terms."""
    mean, size = _mean(core), sum(map(str.isalnum, core))
    symbol, digit = not _SYMBOLS.isdisjoint(core), not _DIGITS.isdisjoint(core)
    if not any(map(str.isalpha, core)):
        return 1 if digit and (symbol or core.isdigit()) else 0
    if re.fullmatch(r"[0-9a-fA-F-]{24,}", value) and len(set(value)) > 7:
        return 4
    if digit and rx(r"[A-Z0-9]{4,8}(?:-[A-Z0-9]{4,8}){3,}\Z").match(value):
        return 3  # a licence
    noise = size >= 8 and (mean <= 2 or (mean < 2.8 and size >= 16))
    noise |= (size >= 10 or mean < 3) and re.search("[A-Z]|[a-z]{8}", core) is not None and _gibberish(core)
    if not digit and not noise:  # words; with a symbol, very many or a very long one they are a pass phrase
        return 2 if symbol or re.fullmatch(r"[a-z]{18,}|[a-z]+(?:-[a-z]+){3,}", core) else 1
    if not (noise or symbol or mean < 2.9 or re.search(r"[A-Za-z]\+?[0-9]+[A-Za-z]", core)) or len(value) < 8:
        return 2
    random = mean < 2.8 or (digit and (noise or mean < (3.3 if len(value) < 32 else 4.5)))
    return 4 if random and len(value) >= 16 and len(set(value)) > 7 else 3


def _mean(core: str) -> float:
    """The mean length of its runs of capitals, of letters and of digits: about 2 if random, 4 and more in words."""
    pieces = rx(PIECES).findall(core)
    return sum(map(len, pieces)) / len(pieces) if pieces else 0.0


def _gibberish(value: str) -> bool:
    """Letters that no language puts side by side so often."""
    low = value.lower()
    pairs = [run[i : i + 2] for run in re.findall(r"[a-z]{2,}", low) for i in range(len(run) - 1)]
    rare = sum(pair not in BIGRAMS for pair in pairs) > 0.45 * len(pairs)
    return len(pairs) >= 4 and (rare or re.search(r"[b-df-hj-np-tv-xz]{6}", low) is not None)


def _is_code(value: str, mean: float, literal: bool = False) -> bool:
    """Whether a value is an expression: a call, an attribute, a name made of words."""
    match = rx(_CODE).match(value)
    if match is None or match["head"] is None:
        return match is not None
    head, rest = match["head"], match["rest"]
    if rx(r"[A-Z][a-z]+_\d{3,}\Z").match(value):
        return False
    if rest and "(" not in rest and "[" not in rest:
        plain = literal and re.fullmatch(r"(?:\.\w+)+", rest) and not rx(_OBJECT).match(value)
        return mean >= 2.9 and not plain
    if rest:
        return mean >= 2.9 or rest == "(" or "_" in head or head.islower() or (head.isalpha() and len(head) > 3)
    return not literal and mean >= 2.9 and len(head) < 36 and ("_" in head or rx(TELLING).search(head) is not None)


def is_basic(value: str) -> bool:
    """Base64 of user:password."""
    raw = binascii.a2b_base64(value[: len(value) // 4 * 4])
    return b":" in raw and raw.isascii() and raw.decode("ascii").isprintable()


class Value(NamedTuple):
    """Where a value stands in the text, without its quotes."""

    start: int
    end: int
    quoted: bool


_OPEN = (
    r"(?:(?:\w{0,20}Secret(?:Str|String)?|[Ss]tr(?:ing)?(?:::from)?|Some|bytes|(?i:md5|sha\d{1,3}|crypt|encrypt|password|hash))\(|[(\[]\s{0,24})?[rRbBfFuU@$&]{0,2}(?P<esc>\\{0,7})"
    r"(?P<q>\"{3}|'{3}|[\"'`“‘„«「『]|&quot;|%22)"
)
_CLOSER = {"“": "”", "‘": "’", "„": "“", "«": "»", "「": "」", "『": "』"}
_SCHEME = r"(?i)(?:bearer|basic|token|digest|api-?key|key|bot|oauth|ssws|aws4-hmac-sha256)(?:[ \t]+|%20|=(?=\w))"
BARE = (  # ends at white space; at a quote, an escape or a separator only where something else begins
    rf"(?:[^\s\"'`\\<,;&|\[{_SIGNS}]|\\(?![nrt\"'`\\]|u00(?:0|2[027]|3[ce]))|<(?!/)|\[(?!redacted:)|(?<=\w)[\"'`](?=\w)"
    r"|[,;&|](?![\s\"'`\\,;|]|$|quot;|[A-Za-z_][\w.-]{0,40}[=:])){1,200}"
)


def read(text: str, pos: int) -> Value | None:
    """The value that begins at pos: a string without its quotes, or a bare word without trailing punctuation."""
    opened = rx(_OPEN).match(text, pos)
    start, end = (opened.end() if opened else pos), -1
    if opened:
        close = opened["esc"] + _CLOSER.get(opened["q"], opened["q"])  # escaped as often as the opening quote
        end = text.find(close, start, start + 8000)
        while end > start and (text[end - 1] == "\\" or (close == "'" and rx(r"''\w").match(text, end))):
            end = text.find(close, end + (1 if text[end - 1] == "\\" else 2), start + 8000)
        if end > start and opened["q"] == "«" and text[start] == text[end - 1] == " ":
            start, end = start + 1, end - 1
        if end >= 0 and opened["q"] in "\"'“‘„«「『" and text.find("\n", start, end) >= 0:
            end = -1  # not closed on its line
    quoted, unset = end >= 0, text.startswith("${", start) and rx(UNSET).match(text, start)
    start = unset.end() if unset else start
    if scheme := rx(_SCHEME).match(text, start):
        start = scheme.end()
    if not quoted:
        bare = rx(BARE, 0).match(text, start)
        end = start + len(bare.group().rstrip(".,;:)]}>")) if bare else start
    else:
        marker = text.find("[redacted:", start, end)
        end = marker if marker >= 0 else end
    if unset and (brace := text.find("}", start, end)) >= 0:
        end = brace
    return Value(start, end, quoted) if end > start else None
