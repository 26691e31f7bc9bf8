"""Who wrote which part of what stands in a person's message, told by its form: what was typed, what was pasted.

Structure decides first, in the folds of the sources: what they know to be another's words is a quotation in the text.
Here the rest is decided, paragraph by paragraph, by a judge over features that a reader can follow: how a line looks,
whether it speaks to somebody, whether something announced it. It was fitted on messages of developers, whose
paragraphs readers labelled; in doubt a paragraph is pasted, for then no word of it binds.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from recollect.types import Author, Role

_MOST_RUNS = 60
_LOOKED_AT = 4000  # characters of a paragraph
_REMARK = 16  # words
_PLAN = "Implement the following plan:"
_BREAK = re.compile(r"\n[ \t]*(?:\n[ \t]*)+")
_FENCE = re.compile(r"^[ \t]*(`{3,}|~{3,})([^\n]*)", re.MULTILINE)


def _any(*words: str) -> re.Pattern[str]:
    """Any of these in a text; in scripts without spaces anywhere, else as whole words."""
    latin = "|".join(each for each in words if each.isascii() or each[0] in "éäöüíóáñçеиямнтпдсв")
    other = "|".join(each for each in words if not (each.isascii() or each[0] in "éäöüíóáñçеиямнтпдсв"))
    return re.compile(rf"\b(?:{latin})\b" + (f"|{other}" if other else ""), re.IGNORECASE)


# The words by which somebody who types at a prompt is known, in ten languages.
_I = _any(
    *("i", "i'm", "i'd", "i've", "i'll", "im", "ive", "we", "we're", "we've", "we'd", "our", "my", "me", "us"),
    *("let's", "lets", "ich", "wir", "mir", "mich", "uns", "unsere?[nrm]?", "mein\\w*", "je", "nous", "mon", "notre"),
    *("yo", "nosotros", "nuestr[oa]s?", "mi", "mis", "eu", "nós", "meu", "minha", "nosso", "nossa", "я", "мы", "мне"),
    *("нам", "мой", "наш\\w*", "我", "私", "俺", "僕", "मैं", "मुझे", "हम"),
)
_ASKS = _any(
    *(
        "(?:can|could|would|will|shall) (?:you|we|i)",
        "please",
        "pls",
        "plz",
        "let['’]?s",
        "what (?:about|if)",
        "how about",
    ),
    *(
        "do (?:you|we)",
        "should (?:we|i)",
        "kannst",
        "könntest",
        "bitte",
        "lass uns",
        "sollen wir",
        "peux-tu",
        "stp",
        "svp",
    ),
    *("pouvez-vous", "tu peux", "s['’]il te", "puedes", "podrías", "por favor", "você pode", "podemos", "пожалуйста"),
    *(
        "можешь",
        "давай",
        "сделай",
        "почему",
        "请",
        "帮我",
        "能不能",
        "可以",
        "ください",
        "お願い",
        "してほしい",
        "कृपया",
        "करो",
    ),
)
_TO_YOU = _any(
    *("you", "your", "you're", "du", "dein\\w*", "dir", "tu", "ton", "ta", "usted", "tú", "você", "ты", "тебя", "твой"),
    *("你", "あなた", "आप", "तुम"),
)
_OPENS = (  # what a quick remark begins with
    "ok|okay|yes|yeah|yep|no|nope|nah|hm+|so|and|but|also|now|then|actually|sorry|thanks|thx|nice|cool|great|perfect|sure|"
    "right|wait|oh|ah|well|fine|ja|nein|gut|oui|non|sí|да|нет|好|不|はい"
)
_LOOSE = re.compile(
    rf"(?:^|[.!?]\s+)(?:{_OPENS})\b|\b(?:dont|cant|doesnt|didnt|isnt|wasnt|wont|thats|im|ive|youre|gonna|wanna|btw|imo|"
    r"afaik|tbh|idk|kinda|maybe|probably|i think|i guess|not sure|wondering|wonder)\b|\.\.\.|[!?]{2}",
    re.IGNORECASE,
)
_MACHINE = re.compile(
    r"^\s*(?:\d{4}-\d\d-\d\d[T ]|\[?\d\d:\d\d:\d\d|\[?(?:ERROR|WARN(?:ING)?|INFO|DEBUG|FATAL|TRACE)\b|Traceback |"
    r"File \"|at \S+ ?\(|\$ |>>> |❯|➜|%\s|npm (?:ERR|error|warn)|[\d.]+ npm |(?:\w*(?:Error|Exception|Warning)|"
    r"error(?:\[\w+\])?|warning|fatal|panic|note|help): |E  |[+-]{3} [ab/]|@@ |diff --git|"
    r"=>|\|.*\|\s*$|\d+ ?[-+│|:] |[#*=_~-]{4,}|"
    r"[\w.-]+@[\w.-]+[:~$]|(?:GET|POST|PUT|DELETE|PATCH|HEAD) /\S* |---? (?:FAIL|PASS|SKIP)|={3} |"
    r"(?:From|To|Cc|Date|Sent|Subject|Author|commit): ?\S|[\]})]+[,;]?$|[\"'\w.]+\s*[:=]\s*[\[{\"'(]|"
    r"(?:import|from|def|func|class|const|let|var|return|if|for|public|private|package|type|export|async|await)\b.*[\W]$)"
)
_GLYPH = re.compile(r"[─-▟❯➜✗✓✔✘⎿●⏺→←│┃]|=>|::|&&|\|\||[;{]\s*$|</?\w+>|:\d+:\d+")
_ODD = re.compile(r"[^\w\s,.'’\"?!-]|[\d_]")
_NAMED = re.compile(r"\b(?:[a-z]+(?:[A-Z][a-z0-9]+)+|[A-Z][a-z0-9]+(?:[A-Z][a-z0-9]+)+|[a-z]+_[a-z_]+|\w+\(\))")
_REVIEW = _any(  # how reviewers speak of code
    *(
        "consider(?:ing)?",
        "should be",
        "instead of",
        "rather than",
        "ensure",
        "however",
        "this (?:means|could|can|may|is)",
    ),
    "the (?:function|method|code|comment|test|current|new|regex|check|logic|implementation|docs?)",
    *(
        "recommend(?:ed|ation)?",
        "suggest(?:ed|ion)?",
        "potential",
        "inconsisten\\w+",
        "e\\.g",
        "i\\.e",
        "severity",
        "nit",
    ),
)
_DOCUMENT = re.compile(r"^\s*(?:#{1,6} |\*\*[^*]+\*\*|[-*•] \*\*|\d+[.)] \*\*|> |_[^_]+_$)", re.MULTILINE)
_ITEM = re.compile(r"^\s*(?:[-*•]|\d+[.)]) ", re.MULTILINE)
_ANNOUNCES = re.compile(  # that what follows is somebody else's
    r"\b(?:wrote|writes|says?|said|sent|told|posted|replied|answered|e-?mail\w*|mail|message|slack|chat|thread|readme|docs?|"
    r"documentation|page|article|post|review\w*|comments?|feedback|findings?|ticket|issue|logs?|output|error|trace\w*|stack|"
    r"response|got|getting|gets?|this|these|following|below|here|paste[ds]?|pasting|quote|letter|transcript|result|notes?|plan|"
    r"fehler|meldung|siehe|folgende\w*|erreur|voici|suivant\w*|siguiente\w*|aquí|seguinte\w*|aqui|вот|ошибк\w+|следующ\w+)\b"
    r"[^.!?\n]{0,60}[:…]\s*$|(?:报错|如下|以下|日志|エラー|यह)[^.!?\n]{0,20}[::]\s*$",
    re.IGNORECASE,
)
_HEADER = re.compile(  # of a message, a mail, a review that somebody else wrote
    r"^\s*(?:[\w .@-]{2,40}\s+(?:\[?\d\d?:\d\d(?:\s?[AP]M)?\]?|"
    r"(?:commented|reviewed|requested changes|wrote|said|approved)\b[^\n]*(?:ago|:))|"
    r"(?:From|To|Cc|Sent|Date|Subject|Von|An|Betreff|De|Objet|Asunto|Assunto)\s*: ?\S|"
    r"\w+ (?:said|wrote|says|writes):\s*$|[\w-]+(?:\[bot\]| bot)\b|"
    r"(?:Severity|Priority|Reporter|Assignee|Status|Labels?|Comments?|Present|Attendees|Minutes|Agenda)\s*:|"
    r"[\w./-]+\.\w{1,5}:\d+|(?:High|Medium|Low|Critical) (?:Severity|Priority)|"
    r"(?:nit|question|blocking|suggestion|issue|praise|todo)(?: \([^)]*\))?: )",
    re.IGNORECASE | re.MULTILINE,
)
_GREETING = re.compile(
    r"^(?:hi|hello|hallo|hey|dear|bonjour|hola|olá|liebe[rs]?|sehr geehrte|guten tag|good (?:morning|afternoon))\b"
    r"[^\n.?]{0,30}[,!]?\s*$|"
    r"^(?:best|regards|cheers|kind regards|best regards|thanks|viele grüße|gruß|lg|mfg|cordialement|saludos|abraços|"
    r"sincerely)[,!]?\s*(?:\n|$)",
    re.IGNORECASE | re.MULTILINE,
)
_TO_AI = re.compile(
    r"\b(?:hey|note to|attention|dear|hello|hi|to all)[^.\n]{0,14}\b"
    r"(?:claude|codex|ai|llms?|assistants?|agents?|copilot|chatbots?)\b|"
    r"^\W*(?:claude|codex)\b[,:]|\b(?:ai|language model|llm|coding) (?:assistants?|agents?|models?)\b|"
    r"\b(?:ignore|disregard|forget)\b[^.\n]{0,30}\b(?:instruction|prompt|rule)|\bsystem (?:prompt|message)\b|"
    r"\bas an ai\b",
    re.IGNORECASE | re.MULTILINE,
)
_ABOUT_CODE = re.compile(
    r"^(?:the|this|when|in|after|if|since|for|both|all|any|no|user|missing|unused|potential)?\s*[`*\"']?[\w.]*(?:[a-z][A-Z]|_|\(\)|\.\w{2,4}\b|`)|"
    r"^(?:the|this|missing|unused|potential|when|after|since)\b(?![^\n]*\?)",
    re.IGNORECASE,
)


def written(text: str, role: Role = Role.USER) -> str:
    """The authors of a text, as `Message.parts` reads them."""
    if role is not Role.USER:
        return f"{Author.AGENT}:{len(text)}" if text else ""
    return coded(judged(text)) if text else ""


# A line about a call of a tool: its name, what it was aimed at, whether it failed.
TOOL_LINE = re.compile(r"\[([A-Za-z_][^\[\]\n]{0,119})\](?: ([^\n]*?))?( \(failed\))?")


def by_form(text: str, role: Role) -> str:
    """The authors of a text of which nothing but the text is known."""
    if role is Role.USER:
        return written(text)
    lines = text.split("\n")
    calls = next((n for n in range(len(lines), 0, -1) if not TOOL_LINE.fullmatch(lines[n - 1])), 0)
    said = len("\n".join(lines[:calls])) + (1 if 0 < calls < len(lines) else 0)
    return coded([(Author.AGENT, said), (Author.TOOL, len(text) - said)])


def coded(runs: Sequence[tuple[Author, int]]) -> str:
    """Authors and how many characters each wrote, neighbours joined. Too many of them: nobody is known."""
    joined = [(author, sum(length for _, length in own)) for author, own in groupby(runs, key=lambda run: run[0])]
    if len(joined) > _MOST_RUNS:
        return f"{Author.PASTED}:{sum(length for _, length in joined)}"
    return ",".join(f"{author}:{length}" for author, length in joined if length)


# fmt: off
WEIGHTS = {
    "one": 0.46, "machine": -1.45, "glyphs": -0.8, "odd": -1.76, "i": 1.47, "asks": 0.25, "question": 2.17,
    "you": -0.21, "loose": 2.46, "lower": 2.07, "unended": 1.06, "colon": 0.82, "names": -1.09, "code": -0.04,
    "review": -1.01, "document": -0.83, "items": 1.03, "indented": -1.83, "wrapped": -1.03, "long": -0.89,
    "lines": -5, "short": -0.71, "header": -2.33, "greeting": -1.5, "to an AI": -0.34, "about code": 0.05,
    "points": 0.47, "foreign": 1.96, "nobody": -0.28, "tagged": -1.03,
}
CONTEXT = {
    "one": -1.25, "own": 1.18, "before": -1.03, "behind": -0.83, "alone": -0.53, "first": 1.98, "last": 2.28,
    "announced": 0.32, "announced before": -0.02, "announces": 1.48, "colon": -0.21, "many": -0.96, "pasted": -0.81,
    "header before": -0.97, "mail": -0.68, "listed": 2.08, "asked": -0.22,
}
# fmt: on


@dataclass(frozen=True, slots=True)
class Paragraph:
    text: str
    length: int  # with the white space behind it
    quoted: bool = False
    fenced: bool = False


def paragraphs(text: str) -> Iterator[Paragraph]:
    """Blank lines part them; a code fence is one."""
    start, ends = 0, [*_ends(text)]
    for end, fenced in ends:
        piece = text[start:end]
        if piece:
            lines = piece.strip().split("\n")
            yield Paragraph(piece.strip(), len(piece), all(line.lstrip().startswith(">") for line in lines), fenced)
        start = end


def _ends(text: str) -> Iterator[tuple[int, bool]]:
    at = 0
    for start, end in [*_fences(text), (len(text), len(text))]:
        for found in _BREAK.finditer(text, at, start):
            yield found.end(), False
        yield max(start, at), False  # the white space behind a fence may be the indentation of the next one
        if end > start:
            behind = re.compile(r"\s*").match(text, end)
            end = behind.end() if behind else end
            yield end, True
        at = end


def _fences(text: str) -> Iterator[tuple[int, int]]:
    """Where fenced code begins and ends. Only its own sign ends it; what nobody ends goes on to the end."""
    opened: re.Match[str] | None = None
    for found in _FENCE.finditer(text):
        if opened is None:
            opened = found if found[1][0] not in found[2] else None  # ```x``` is no fence
        elif found[1].startswith(opened[1]) and not found[2].strip():
            yield opened.start(), min(found.end() + 1, len(text))
            opened = None
    if opened is not None:
        yield opened.start(), len(text)


def features(text: str) -> dict[str, float]:
    """What the form of a paragraph tells."""
    lines = text.split("\n")
    letters = max(len(text), 1)
    count = max(len(text.split()), 1)
    machine = sum(bool(_MACHINE.match(line)) or len(_GLYPH.findall(line)) > 1 for line in lines) / len(lines)
    wrapped = sum(60 <= len(line) <= 125 for line in lines[:-1]) / len(lines)
    return {
        "one": 1.0,
        "machine": machine,
        "glyphs": min(len(_GLYPH.findall(text)) / len(lines), 2.0),
        "odd": min(len(_ODD.findall(text)) / letters, 0.5),
        "i": min(len(_I.findall(text)), 3) / 3,
        "asks": float(bool(_ASKS.search(text))),
        "question": float(text.rstrip().endswith(("?", "？"))),
        "you": float(bool(_TO_YOU.search(text))),
        "loose": min(len(_LOOSE.findall(text)), 2) / 2,
        "lower": float(text[:1].islower()),
        "unended": float(text[-1:].isalnum()),
        "colon": float(text.endswith((":", "："))),
        "names": min(len(_NAMED.findall(text)) / count, 0.4),
        "code": min(text.count("`") / 2, 4) / 4,
        "review": min(len(_REVIEW.findall(text)), 3) / 3,
        "document": float(bool(_DOCUMENT.search(text))),
        "items": float(bool(_ITEM.match(text))),
        "indented": float(text[:1].isspace() or any(line.startswith(("   ", "\t")) for line in lines)),
        "wrapped": wrapped,
        "long": math.log1p(letters) / 6,
        "lines": math.log1p(len(lines) - 1) / 3,
        "short": float(count <= 8),
        "header": float(bool(_HEADER.search(text))),
        "greeting": float(bool(_GREETING.search(text))),
        "to an AI": float(bool(_TO_AI.search(text))),
        "about code": float(bool(_ABOUT_CODE.match(text))) * float(count > 6),
        "points": float(text.startswith("^")),
        "foreign": min(sum(letter.isalpha() and not letter.isascii() for letter in text) / letters * 4, 1.0),
        "nobody": float(count > 12 and not _I.search(text) and not _ASKS.search(text) and not _TO_YOU.search(text)),
        "tagged": float(text[:1] in "<[({|+-=#@$" and not _ITEM.match(text)),
    }


def may_be_typed(paragraph: Paragraph) -> bool:
    return bool(paragraph.text) and not paragraph.quoted and not paragraph.fenced


_FOREIGN = ("machine", "glyphs", "header", "greeting", "to an AI", "document", "tagged", "indented")


def _is_remark(paragraph: Paragraph) -> bool:
    """A message of one short line, in which nothing speaks of another author, is nearly always typed."""
    if not may_be_typed(paragraph) or "\n" in paragraph.text or len(paragraph.text.split()) > _REMARK:
        return False
    told = features(paragraph.text)
    return not any(told[name] for name in _FOREIGN)


def alone(paragraph: Paragraph) -> float:
    """How likely it was typed, whatever stands around it. 0: it was not."""
    if not may_be_typed(paragraph):
        return 0.0
    return _near(_dot(WEIGHTS, features(paragraph.text[:_LOOKED_AT])))


def _dot(weights: dict[str, float], values: dict[str, float]) -> float:
    return math.fsum(weights.get(name, 0.0) * value for name, value in values.items())


def _near(value: float) -> float:
    return 1 / (1 + math.exp(-max(-30.0, min(30.0, value))))


class Around:
    """The paragraphs of a text, as each of them stands among the others."""

    def __init__(self, paragraphs: Sequence[Paragraph], own: Sequence[float]) -> None:
        self._own = own
        self._texts = [each.text for each in paragraphs]
        self._announces = [bool(_ANNOUNCES.search(text[-_LOOKED_AT:])) for text in self._texts]
        told = [n for n, announces in enumerate(self._announces) if announces and own[n] >= 0.5]
        greeted = [n for n, text in enumerate(self._texts) if _GREETING.search(text[:_LOOKED_AT])]
        heads = [n for n, text in enumerate(self._texts) if _HEADER.search(text[:_LOOKED_AT])]
        self._told, self._first_told = set(told), min(told, default=len(own))
        self._is_mail = bool(greeted)
        self._first_head = min([*greeted, *heads], default=len(own))
        self._pasted = sum(each < 0.5 for each in own) / len(own)

    def features(self, number: int) -> dict[str, float]:
        own, text = self._own, self._texts[number]
        is_told = number - 1 in self._told
        before = own[number - 1] if number else 0.5
        return {
            "one": 1.0,
            "own": math.log(max(own[number], 1e-6) / max(1 - own[number], 1e-6)),
            "before": before,
            "behind": own[number + 1] if number + 1 < len(own) else 0.5,
            "alone": float(len(own) == 1),
            "first": float(number == 0),
            "last": float(number == len(own) - 1),
            "announced": float(is_told),
            "announced before": float(self._first_told < number - 1 and not is_told),
            "announces": float(number + 1 < len(own) and self._announces[number]),
            "colon": float(number > 0 and self._texts[number - 1].endswith((":", "："))),
            "many": math.log(len(own)),
            "pasted": self._pasted,
            "header before": float(self._first_head < number),
            "mail": float(self._is_mail),
            "listed": float(number > 0 and before >= 0.5 and bool(_ITEM.match(text))),
            "asked": float(bool(_ASKS.search(text[:_LOOKED_AT])) or text.endswith("?")),
        }


def judged(text: str) -> list[tuple[Author, int]]:
    """The authors of a text that the person sent, run by run, with the length of each."""
    if text.startswith(_PLAN):
        return [(Author.CLIENT, len(text))]
    return judged_paragraphs([*paragraphs(text)])


def judged_paragraphs(found: Sequence[Paragraph]) -> list[tuple[Author, int]]:
    """The author and the length of each paragraph."""
    if len(found) == 1 and _is_remark(found[0]):
        return [(Author.TYPED, found[0].length)]
    own = [*map(alone, found)]
    around = Around(found, own)
    return [
        (Author.TYPED if own[n] and _dot(CONTEXT, around.features(n)) >= 0 else Author.PASTED, each.length)
        for n, each in enumerate(found)
    ]
