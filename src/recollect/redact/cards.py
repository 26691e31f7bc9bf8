"""Numbers of payment cards, and the codes and dates beside them.

A number is a card's by its issuer's prefix, its length and its check digit; one in ten of all numbers has the right
digit, so that something beside it has to speak of cards, too.
"""

from recollect.redact.rules import rx

_SPOKEN = (  # digits as words
    r"zero|oh|one|two|three|four|five|six|seven|eight|nine|double|triple|null|eins|zwei|zwo|drei|vier|fünf|sechs|sieben|acht|neun"
    r"|zéro|un|deux|trois|quatre|cinq|sept|huit|neuf|cero|uno|dos|tres|cuatro|cinco|seis|siete|ocho|nueve|um|dois|três|quatro|sete|oito|nove"
)
MARK = (
    r"[2-6][0-9]{3}[ ./_\n-]?[0-9]{4}[ ./_\n-]?[0-9]{2}|3[0-9]{3}[ .-][0-9]{6}[ .-]|(?:%B|;)[0-9]{13}"
    rf"|(?i:\b(?:{_SPOKEN})[ ,-]{{1,2}}(?:{_SPOKEN})[ ,-]{{1,2}}(?:{_SPOKEN})[ ,-])"
    r"|(?i:(?:\b|_)(?:cv[vcn]2?|ccv)(?:\b|_| ?code)|cv[vc]码|\bcsc\b|(?:security|card|verification) (?:code|number|value)|(?:three|four|3|4)[ -]digits?\b|on the back\b)"
    r"|Prüfziffer|Kartenprüfnummer|Sicherheitscode|cryptogramme|(?:code de sécurité|c[oó]digo de segur)|код безопасности|обратной стороны|安全码|セキュリティコード|背面|裏面|सीवीवी"
)
_NUMBER = r"(?<![\w.+/-])(?P<v>[2-6]\d{3}(?:[ ./_\n-]?\d){8,15})(?![\w-]|[.]\d)"
_CARD = (  # before a number whose check digit is wrong
    r"(?i)(?<![a-z])(?:card|visa|master ?card|amex|american express|discover|debit|credit|maestro|pan|kreditkarte|karte|carte(?: bleue)?|tarjeta|cartão|карт[аыуе]|卡号?|クレカ|カード(?:番号)?|कार्ड|البطاقة|بطاقة)"
    r"(?: ?(?:number|num|no\.?|#|nummer|número|numéro|n°|番号)|[ _-]?num(?:ber)?)?(?:[\"'\s:=(>—–-]|\w{1,9}\s){0,12}\Z"
)
_ISSUERS = (  # prefixes and lengths: Visa, Mastercard, American Express, Discover and RuPay, Diners, JCB, UnionPay, Maestro, Mir
    (r"4", (13, 16, 19)),
    (r"5[1-5]|222[1-9]|22[3-9]|2[3-6]|27[01]|2720", (16,)),
    (r"3[47]", (15,)),
    (r"6011|64[4-9]|65|60|81|82|508", (16, 19)),
    (r"3(?:0[0-5]|095|6|[89])", (14, 16)),
    (r"35(?:2[89]|[3-8])", (16, 19)),
    (r"62", (16, 17, 18, 19)),
    (r"5(?:0|[6-9])|6(?:3|7)", (16, 18, 19)),
    (r"220[0-4]", (16,)),
)
_ABOUT = (
    r"(?i)(?<![a-z])(?:card|cards|visa|master ?card|amex|american express|discover|diners|jcb|unionpay|maestro|rupay|mir|elo|cvv2?|cvc2?|csc|cid|pan|ccn"
    r"|expir\w*|exp|exp_?(?:month|year|date)|valid thru|payments?|checkout|billing|kredit\w*|karte\w*|carte|tarjeta|cartão|cartao|credit|debit|debito|débito"
    r"|track ?[12]|stripe|cc[-_ ]?(?:num\w*|exp|csc)|card_?num\w*|cardno)(?![a-z])|(?:card|cc)[-_]?num|card\[|карт|卡|カード|कार्ड|بطاق|银联|信用|\b(?:0[1-9]|1[0-2]) ?/ ?(?:20)?[23]\d\b"
)
_DATED = (  # behind a number whose check digit is wrong
    r"(?i)[\s\S]{0,24}?(?:\b(?:0[1-9]|1[0-2]) ?[/-] ?(?:20)?[23]\d\b)|[\s\S]{0,40}?(?<![a-z])(?:cv[vc]2?|ccv|cid)(?![a-z])"
)
_FILL = r"(?:\W{0,3}(?:on (?:it|the back|my card)|visuel|code|number|num|for (?:it|my card|the card)|of (?:my|the) card|do cartão|de (?:la )?tarjeta|de (?:la )?carte|der karte|карты|is|ist|est|es|é|el|le|la|o|число|это|の(?:3桁|数字)?は?|は|是|है|هو)(?![a-z])){0,4}"
_GROUPS = r"\d{4}([ .-])\d{4}\1\d{4}\1\d{1,7}|\d{4}([ .-])\d{6}\2\d{4,5}"
_SECURITY = (
    r"(?:_?ccv|(?<![a-z])crypto(?=[ :])|_?cvv2?(?:[_ ]?(?:code|number|num|码))?|_?cvc2?(?:[_ ]?code)?|csc|cid|cvn|security code|card code|prüfziffer\w*|kartenprüfnummer|sicherheitscode|cryptogramme|code de sécurité|c[oó]digo de seguridad"
    r"|código de segurança|код безопасности|проверочный код|安全码|验证码|セキュリティコード|सीवीवी|رمز الأمان|رمز التحقق"
    r"|\b(?:[34]|three|four|drei|vier|trois|quatre|tres|cuatro|três|quatro) ?-?(?:digits?|ziffern|chiffres|dígitos|cifras|números)[^\d\n]{0,36}?"
    r"|\bback(?: side)?(?: says| reads)?|hinten(?: drauf)?(?: steht)?|rückseite|derrière|au dos|verso|atrás|detrás|reverso|(?:на обороте|сзади|с обратной стороны)|背面|裏面?|पीछे|الخلف|(?:三|四|3|4)位(?:数|數)?|3桁)"
)
_BESIDE = rf"(?i){_SECURITY}{_FILL}\W{{0,3}}(?:[\"'\]]{{0,3}}\s?(?::|=|是|は|is|ist|est|es|é|—|</?\w{{1,12}}>|:)?\s?[\"'（(]?)?(?P<v>\d{{3,4}})(?![\d/])"


def is_card(digits: str) -> bool:
    """Whether digits are a card's number: prefix, length, check digit."""
    known = any(len(digits) in sizes and rx(prefix).match(digits) for prefix, sizes in _ISSUERS)
    doubled = (int(digit) * (1 + n % 2) for n, digit in enumerate(reversed(digits)))
    return known and len(set(digits)) > 2 and sum(n // 10 + n % 10 for n in doubled) % 10 == 0


def find_card(text: str, pos: int) -> list[tuple[int, int]]:
    """Where the number of a card at pos stands, and the code beside it."""
    if track := rx(r"(?:%B(?P<v>\d{13,19})\^|;(?P<w>\d{13,19})=\d{4})").match(text, pos):
        return [track.span(track.lastgroup or 0)]
    if spoken := rx(rf"(?i)(?:(?:{_SPOKEN})(?![^\W_])[ ,.;-]{{0,3}}){{4,24}}", 0).match(text, pos):
        return _find_spoken(text, pos, pos + len(spoken.group().rstrip(" ,.;-")))
    number = rx(_NUMBER).match(text, pos)
    if number is None:
        return _find_beside(text, pos)
    value = number["v"]
    while value and not is_card("".join(filter(str.isdigit, value))):
        shorter = value.rpartition(" ")[0]  # what follows may be a date
        value = shorter if len(shorter) > 12 else ""
    listed = rx(r"\d{13,19}\|\d\d\|(?:20)?\d\d\|(?P<v>\d{3,4})(?!\d)").match(text, pos)
    if listed and value:
        return [(pos, listed.end())]
    named = None if value else rx(_CARD, 0).search(text, max(0, pos - 40), pos)
    if not value and (named or rx(_DATED).match(text, number.end())):
        four = rx(r"\d{4}([ .-]?)\d{4}\1\d{4}\1\d{4}(?:\1\d{2,3})?(?!\d)|3\d{3}([ .-])\d{6}\2\d{5}(?!\d)").match(
            text, pos
        )
        value = four[0] if four and (named or four[1]) else ""
    if not value:
        return []
    end = pos + len(value)
    low, high = max(0, pos - 160), end + 120
    alone = not rx(r"[0-9A-Fa-f]{2}[\s.-]\Z").search(text, low, pos) and not rx(r"[\s.-][0-9A-F]{3}").match(text, end)
    grouped = alone and rx(_GROUPS).fullmatch(value)
    if not grouped and not rx(_ABOUT, 0).search(text, low, high):
        return []
    found = [(pos, end)]
    if track := rx(r"[=D]\d{7,24}").match(text, end):
        return [(pos, track.end())]
    for code in rx(_BESIDE, 0).finditer(text, low, high):
        found.append(code.span("v"))
    row = rx(r"([\"']?\s?[,;\t|]\s?[\"']?)(?:\d{1,2}[-/]\d{2,4}|20\d\d-\d\d|\d{4})\1(?P<v>\d{3,4})(?!\d)").match(
        text, end
    )
    row = row or rx(
        r"[\s,;|/]+(?i:exp\w*[ :.]*|valid thru )?(?:0[1-9]|1[0-2]) ?[-/] ?(?:20)?\d\d[\s,;|/]+(?P<v>\d{3,4})(?![\w/:-]|\.\d)"
    ).match(text, end)
    return [*found, row.span("v")] if row else found


def _find_spoken(text: str, pos: int, end: int) -> list[tuple[int, int]]:
    """Digits that are spelled out, near what tells of a card or a code."""
    near = text[max(0, pos - 80) : pos] + " " + text[end : end + 40]
    told = rx(_ABOUT, 0).search(near) or rx(
        r"(?i)(?<![a-z])(?:pin|pass ?code|code|combination|geheimzahl|clave|senha|puk|otp)(?![a-z])"
    ).search(near)
    return [(pos, end)] if told else []


def _find_beside(text: str, pos: int) -> list[tuple[int, int]]:
    """The security code at pos without the number of its card."""
    other = rx(r"(?i)(?:last|first|ending|final|other|only|just) (?:in |with )?\Z").search(text, max(0, pos - 16), pos)
    spoken = text[pos] in "34tfTF" and not rx(_ABOUT, 0).search(text, max(0, pos - 100), pos + 120)
    code = None if other or spoken else rx(_BESIDE, 0).match(text, pos)
    return [code.span("v")] if code else []
