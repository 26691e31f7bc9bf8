"""Which of the assistant's proposals the user took up, and what the assistant found out.

A proposal that the user did not take up is no decision; an offer to do a single thing is none either.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from recollect.extract.offline.units import TOOL, own_words
from recollect.text import content_words
from recollect.types import MemoryKind, Message, Role


@dataclass(frozen=True, slots=True)
class Found:
    message: int
    text: str
    kind: MemoryKind
    score: float


_LONGEST_REPLY = 30  # words in which somebody says yes; more is a message of its own
_MOST_OPTIONS = 5

_ACCEPTS = re.compile(
    r"^\W*(?:oo+h\W+|ah\W+|hm+\W+|nice\W+|great\W+|good\W+|lovely\W+)*(?:yes|yep|yeah|yup|ya|ok(?:ay)?|sure|"
    r"sounds? (?:good|great|perfect|right|fine)|agreed|perfect|exactly|do (?:it|that|this)|go (?:with|for|ahead)|"
    r"let'?s (?:do|go(?! back)|use|take|try|switch|add|build|proceed)|please do|fine|definitely|absolutely|deal|"
    r"makes sense|good idea|good plan|love it|works for me|that works|(?:oh )?i like (?:that|it|the)|done(?!\s+\w)|"
    r"convinced|take (?:the|that|it)|the (?:first|second|third|last|former|latter))\b|"
    r"\b(?:go with (?:that|it|the|this|option)|sounds perfect|keep it|put it in|do it like (?:that|this)|"
    r"exactly like that|(?:first|second|third|last|that) one\b|let'?s do that|go for it|"
    r"that'?s (?:the one|safer|better))|^\W*(?:works|sounds all right|let'?s(?!\s*\w)|will do|fine by me|"
    r"ok(?:ay)? to|ok go|go(?!\s*\w)|that'?s (?:good|fine)|👍|[\w-]+(?: [\w-]+){0,3},? yes\b|yes\b)",
    re.IGNORECASE,
)
_REFUSES = re.compile(
    r"^\W*(?:no|nope|nah|not|don'?t|never|hm+\W+no|rather not|definitely not|certainly not|too |skip|leave|"
    r"i'?d rather not|please don'?t)\b|\b(?:no thanks|rather not|not (?:now|yet|today|needed|necessary)|"
    r"never ?mind|i'?ll sleep on it|just the|only the)\b",
    re.IGNORECASE,
)
_OPPOSES = re.compile(  # whatever else is said with it
    r"^\W*(?:(?:ok(?:ay)?|yes|yeah|sure|fine|hm+|ah+|oh+)\W+)*(?:wait|hold on|hang on|stop)\b|"
    r"\blet'?s (?:not|wait|hold|skip|leave|think|talk|discuss|postpone)\b|"
    r"(?:\b(?:but|well|so|ok(?:ay)?|yes|yeah|sure|fine|hm+)\W+|[.!?]\s+)no(?!\s*\w)|\b(?:don'?t|do not)(?!\s*\w)|"
    r"\b(?:don'?t|do not) (?:do|want|like|need|use|try|change|touch|switch|make|build|add) (?:it|that|this)\b|"
    r"\b(?:bad|terrible|awful|horrible|stupid) idea\b|\bnot (?:a |so |such a )?(?:good|great|sure|convinced|fan)\b|"
    r"\b(?:it|that|this)(?: one)?(?:'s| is| was| looks| sounds| seems) (?!not )(?:\w+ ){0,2}?(?:too |(?:wrong|bad|"
    r"awful|terrible|horrible)\b)",
    re.IGNORECASE,
)
_GOES_ON = re.compile(r"^\W*(?:ok(?:ay)?\W*)?(?:go on|continue|next|try|try it|proceed)\W*$", re.IGNORECASE)
_PROPOSES = re.compile(
    r"\b(?:i'?d|i would|we could|we should|we can|let'?s) (?:also )?(?:suggest|propose|recommend|build|use|go|make|"
    r"keep|put|start|lean|split|store|switch|move|add|cap|set|run|take|plan|separate|treat|write|have|model|pick|"
    r"choose|drop|base|stick|limit|group|cache|wrap|let|schedule|serve|do|replace|swap)|\bi (?:suggest|propose|"
    r"recommend)\b|\bi could (?!also)|\bhow about\b|\bmy (?:suggestion|recommendation|proposal)\b|^(?:then|"
    r"so)\b.*\binstead\b|\bproposal:|\brecommendation:|\bplan:",
    re.IGNORECASE,
)
_OFFERS = re.compile(
    r"^(?:shall|should|want|would you like|do you want|may|can) (?:i|me|us)\b|\b(?:shall i|want me to|should i|"
    r"do you want me)\b",
    re.IGNORECASE,
)
_OFFER = re.compile(r"^(?:so )?(?:should|shall) (?:i|we) (?:also )?|^(?:do you )?want me to (?:also )?", re.IGNORECASE)
_LEAD = re.compile(
    r"^(?:(?:then|so|ok(?:ay)?|great|fair enough|in that case|understood|got it|makes sense)[,.:]?\s+)*(?:(?:i'?d|"
    r"i would|we could|we should|i) (?:also )?(?:suggest|propose|recommend|lean towards?|go with|"
    r"say)(?: that)?(?: we| you)?(?: to)?|(?:my )?(?:suggestion|recommendation|proposal|plan)(?: is| would be)?:?|"
    r"how about|(?:i'?d|i would|we could|we should)(?= ))\s*",
    re.IGNORECASE,
)
_OPTION = re.compile(
    r"^\s*(?:#{1,4}\s+|[-*•]\s+)?(?:\*\*)?(?:option\s+)?(?:([A-F])|(\d))(?:\*\*)?\s*(?:[.):]|"
    r"[–—-](?=\s))\s*(?:\*\*)?\s*(.+)$",
    re.IGNORECASE,
)
_INLINE = re.compile(r"\s\(?([1-5])\)\s")
_OPTION_HEAD = re.compile(r"^\s*(?:#{1,4}\s*|\*\*)(?:option\s+)?(?:[A-F]|\d)(?:\*\*)?:?\s*$", re.IGNORECASE)
_OFFERS_CHOICE = re.compile(
    r"\b(?:options?|possibilit\w+|ways|alternatives?|one of these|either|ideas?|could|which (?:one|of)|"
    r"approach(?:es)?|choices?|variants?|candidates|lean towards|i'd (?:go|take|try|pick))\b",
    re.IGNORECASE,
)
_BULLET = re.compile(r"^\s*[-*•]\s+(.+)$")
_ORDINALS = {
    "first": 0,
    "one": 0,
    "former": 0,
    "middle": 1,
    "second": 1,
    "two": 1,
    "latter": 1,
    "third": 2,
    "three": 2,
    "four": 3,
    "fourth": 3,
}
_LETTER = re.compile(
    r"(?:\b(?:option|with|take|do|pick|choose|go for|want)\s+|[.!,]\s*|^\w+\s+)([A-F])(?=[.,!]|\s*$| please)"
)
_ORDINAL = re.compile(
    r"^\W*(?:let'?s |yes,? |ok,? |do |go |with |for |take |the |option |number )*(first|second|third|fourth|one|"
    r"two|three|four|former|latter|middle)\b",
    re.IGNORECASE,
)
_CAUSE = re.compile(
    r"\b(?:came from|comes? from|caused?|because|turn(?:s|ed) out|the (?:problem|issue|culprit|bug|reason|"
    r"trick) (?:was|is)|due to|root cause|finding|confirmed|had no effect|was (?:configured|missing|wrong|stale)|"
    r"drops?|strips?|where the|wasn'?t|didn'?t|doesn'?t|so the)\b|;|\b(?:which is why|that'?s why|explains|"
    r"gives it away|there we have it|it was (?:the|a)|nothing to do with|never ran|no longer|only (?:when|for|"
    r"starts|if)|while the|had no|has no|is missing|wrong on)\b",
    re.IGNORECASE,
)
_FIX = re.compile(
    r"\b(?:fix(?:ed|es)|solv(?:ed|es)|cur(?:ed|es)|resolv(?:ed|es)|eliminat\w+|disappear\w*|(?:is|are|were|"
    r"was) gone|went away|did the trick|makes? (?:it|all|them|the)\b.*\b(?:work|pass|finish|green)|no longer|"
    r"works? (?:now|again)|brought it back|stopped the|got rid of|cleared (?:it|the)|the fix (?:is|was)|(?:spikes|"
    r"errors?|crash\w*|failures?) (?:are|is) gone)\b|\b(?:what worked|sorted it|sorts it|brings? (?:it|"
    r"the \w+) down|(?:succeed|work|pass|build|load|run)s? again|goes through|empty again|green again|mended)\b",
    re.IGNORECASE,
)
_CAUSE_FOUND = re.compile(
    r"\broot cause\b|\bthe (?:real |actual |underlying )?(?:cause|culprit|problem|bug|reason) (?:is|was)\b|"
    r"^(?:so )?(?:there were|it turns? out|turns out)\b|^\W*(?:confirmed|finding|(?:root )?cause|diagnosis)\W*:",
    re.IGNORECASE,
)
_RECOMMENDS = re.compile(
    r"\b(?:recommend|suggest|propose|lean towards?|i'?d (?:go|take|pick|choose|start)|my (?:pick|choice|suggestion|"
    r"recommendation|proposal)|then let'?s|let'?s)\b|\b(?:seems? (?:best|right)|for next time|option (?:\d|[a-f]|"
    r"one|two|three)\b|plan:|what about|how about)",
    re.IGNORECASE,
)
_PROGRESS = re.compile(
    r"^\W*(?:i(?:'ve| have)? (?:\w+ed|ran|wrote|made|put|set|built)|done|all (?:\d+ )?(?:tests|green|set)|added|"
    r"fixed|updated|implemented|created|removed|renamed|moved|changed|replaced|wrote|ran|here(?:'s| is| are)|"
    r"understood|got it|noted|sure|of course|thanks)\b",
    re.IGNORECASE,
)
_FOUND = re.compile(
    r"^\W*(?:found (?:it|the (?:cause|bug|problem|culprit|reason))|got it: |that was it)\W*$",
    re.IGNORECASE,
)
_FIX_LABEL = re.compile(r"^\W*(?:fix|solution|remedy|resolution)\W*:", re.IGNORECASE)
_SHORTEST_FINDING = 7  # words
_UNSURE = re.compile(r"\b(?:would|could|might|may|should|i'?ll|let me|trying|let's|if you)\b|\?\s*$", re.IGNORECASE)


def found(messages: Sequence[Message]) -> list[Found]:
    """Decisions and lessons in the assistant's words."""
    kept: list[Found] = []
    for index, (message, reply) in enumerate(zip(messages, _replies(messages), strict=True)):
        if message.role is Role.ASSISTANT:
            kept += _judged(index, message.text, reply)
    return kept


def refused(messages: Sequence[Message]) -> set[int]:
    """The assistant's messages, by number, that the user's reply turned down."""
    replies = enumerate(_replies(messages))
    return {index for index, reply in replies if messages[index].role is Role.ASSISTANT and _is_no(_first(reply))}


def is_proposal(text: str) -> bool:
    return any(pattern.search(text) for pattern in (_PROPOSES, _RECOMMENDS, _OFFERS))


def _first(reply: str) -> str:
    """What it begins with."""
    answer = own_words(reply, Role.USER)
    return (" ".join(each for _, each in answer[:2]) or reply.strip()[:200]).replace("’", "'")


def _is_no(first: str) -> bool:
    return bool(_OPPOSES.search(first) or _REFUSES.search(first))


def _replies(messages: Sequence[Message]) -> list[str]:
    """To each message the user's next one; none where the assistant worked on, for then it waited for no answer."""
    replies: list[str] = []
    reply, ends = "", True
    for message in reversed(messages):
        replies.append(reply if ends or not TOOL.search(message.text) else "")
        ends = message.role is Role.USER
        reply = message.text if ends else reply
    return replies[::-1]


def _judged(index: int, text: str, reply: str) -> Iterator[Found]:
    views = views_of(text, reply)
    scored = [(score(view), view) for view in views]
    decision = [
        pair for pair in scored if {"accepted", "progress"} & pair[1].features == {"accepted"} and not pair[1].finds
    ]
    best = max(decision, key=lambda pair: pair[0], default=None)
    for each in scored:
        worth, view = each
        if worth > 0 and (view.tells if view.finds else each is best):
            kind = MemoryKind.LESSON if view.finds else MemoryKind.DECISION
            yield Found(index, _phrase(view.whole), kind, worth)


@dataclass(frozen=True, slots=True)
class View:
    """A sentence of the assistant in its surroundings."""

    text: str
    whole: str  # with the sentence before it where that names the cause
    features: frozenset[str]

    @property
    def finds(self) -> bool:
        """A finding rather than a proposal."""
        return self.features.isdisjoint(("proposes", "recommends", "choice", "asks", "offers"))

    @property
    def tells(self) -> bool:
        """It names a cause or a cure, or the user saw the light."""
        return not self.features.isdisjoint(("fix", "found", "cause", "aha")) and "heads" not in self.features


def views_of(text: str, reply: str) -> list[View]:
    said = [(form, each) for form, each in own_words(text, Role.ASSISTANT) if form != "heading"]
    answer = own_words(reply, Role.USER)
    first = _first(reply)
    opposed, declined = bool(_OPPOSES.search(first)), _is_no(first)
    may_agree = bool(reply) and not opposed and not (answer and answer[0][1].endswith("?"))
    accepted = may_agree and not declined and bool(_ACCEPTS.search(first)) and not _GOES_ON.match(first)
    options = _options(text)
    pick = _pick(options, reply.strip()[:200]) if may_agree and 1 < len(options) <= _MOST_OPTIONS else None
    lines = [each for _, each in said]
    if pick is not None:  # an option may be several lines long
        said, lines = [*said, ("choice", options[pick])], [*lines, options[pick]]
    general = _seen(first, accepted or pick is not None, declined)
    views = []
    for place, (form, line) in enumerate(said):
        before = lines[place - 1] if place else ""
        after = lines[place + 1] if place + 1 < len(lines) else ""
        marks = _marks(form, line, before, after) | general
        if pick is not None and form != "choice":
            marks.add("passed-over")
        if len(content_words(line) & content_words(first)) > 1:
            marks.add("shared")
        joined = "fix" in marks and "cause" not in marks and before and "cause" in _marks("", before, "", "")
        if joined or ("fix" in marks and "cause" in marks):
            marks.add("cause-fix")
        views.append(View(line, f"{before} {line}" if joined else line, frozenset(marks)))
    return views


def _seen(first: str, accepted: bool, refused: bool) -> set[str]:
    """What the reply tells about everything that was said before it."""
    tests = {
        "accepted": accepted,
        "refused": refused,
        "long-reply": len(first.split()) > _LONGEST_REPLY,
        "aha": bool(_AHA.search(first)),
    }
    return {name for name, true in tests.items() if true}


_WORDS = re.compile(r"\w+")


def _marks(form: str, line: str, before: str, after: str) -> set[str]:
    count = len(_WORDS.findall(line))
    tests = {
        "choice": form == "choice",
        "item": form == "item",
        "proposes": bool(_PROPOSES.search(line)),
        "recommends": bool(_RECOMMENDS.search(line)),
        "offers": bool(_OFFERS.search(line)),
        "asks": line.rstrip().endswith("?"),
        "before-question": after.rstrip().endswith("?") and not line.rstrip().endswith("?"),
        "last": not after,
        "cause": bool(_CAUSE.search(line)),
        "found": bool(_CAUSE_FOUND.search(line)) or bool(_FOUND.match(before)),
        "fix": bool(_FIX.search(line)) or bool(_FIX_LABEL.match(line)),
        "unsure": bool(_UNSURE.search(line)),
        "progress": bool(_PROGRESS.match(line)),
        "code": "`" in line,
        "negates": bool(_NEGATES.search(line)),
        "so": bool(_SO.search(line)),
        "precise": bool(_PRECISE.search(line)),
        "opens": not before,
        "heads": line.rstrip().endswith(":"),
        "short": count < _SHORTEST_FINDING,
        "long": count > 18,
    }
    return {name for name, true in tests.items() if true}


_AHA = re.compile(
    r"^\W*(?:a+h+a?|o+h+|huh|wow|ugh|phew|i see|of course|typical)\b|\b(?:nice|good|great) (?:catch|find|one|work)|"
    r"\b(?:makes sense|that explains|so obvious|well spotted|that was it)\b",
    re.IGNORECASE,
)
_NEGATES = re.compile(
    r"\b(?:never|no longer|not|doesn'?t|didn'?t|isn'?t|wasn'?t|without|only|still|wrong|missing|instead|nothing)\b",
    re.IGNORECASE,
)
_SO = re.compile(r"[,;:] |\bso\b|\bwhich\b|\bbecause\b|\bsince\b|\bwhile\b", re.IGNORECASE)
_PRECISE = re.compile(r"\d|\b(?-i:[A-Z]{2,}|[a-z]+[A-Z]\w+)\b|\w_\w", re.IGNORECASE)


def score(view: View) -> float:
    """Above zero: worth keeping."""
    marks = view.features
    pairs = {f"{one}+{other}" for one, other in PAIRS if one in marks and other in marks}
    return round(BIAS + math.fsum(WEIGHTS.get(name, 0.0) for name in marks | pairs), 6)  # in whatever order sets have


PAIRS = (
    ("accepted", "proposes"),
    ("accepted", "recommends"),
    ("accepted", "choice"),
    ("accepted", "before-question"),
    ("accepted", "shared"),
    ("accepted", "last"),
    ("accepted", "offers"),
    ("accepted", "progress"),
    ("fix", "unsure"),
    ("found", "unsure"),
    ("aha", "code"),
    ("aha", "long"),
    ("aha", "so"),
    ("accepted", "precise"),
    ("accepted", "item"),
)
WEIGHTS: dict[str, float] = {
    "accepted": 0.8,
    "accepted+before-question": 1.2,
    "accepted+choice": 1.2,
    "accepted+item": 0.6,
    "accepted+last": 0.8,
    "accepted+offers": -0.3,
    "accepted+precise": 0.3,
    "accepted+progress": -1.2,
    "accepted+proposes": 1.4,
    "accepted+recommends": 0.5,
    "accepted+shared": 0.3,
    "aha": 0.4,
    "aha+code": 0.7,
    "aha+long": 0.7,
    "aha+so": 0.2,
    "asks": -0.6,
    "before-question": 0.3,
    "cause": 0.7,
    "cause-fix": 3.0,
    "choice": 1.6,
    "code": 0.9,
    "fix": 0.9,
    "found": 1.1,
    "last": -0.4,
    "long": 1.4,
    "long-reply": -0.4,
    "negates": 0.3,
    "offers": -0.4,
    "opens": -0.5,
    "passed-over": -1.5,
    "precise": 0.7,
    "progress": -0.3,
    "proposes": 0.5,
    "recommends": 0.4,
    "refused": -1.1,
    "shared": 0.2,
    "short": -1.1,
    "so": 0.5,
    "unsure": -0.3,
    "heads": -1.5,
    "fix+unsure": -0.6,
    "found+unsure": -0.6,
}
BIAS = -3.8


def _options(text: str) -> list[str]:
    """Alternatives that were laid out for a choice, in order; the label is given by their place."""
    lines = _INLINE.sub(r"\n\1. ", text).splitlines() if len(_INLINE.findall(text)) > 1 else text.splitlines()
    lettered = [found[3] for line in lines if (found := _OPTION.match(line)) and found[1]]
    if len(lettered) > 1:
        return lettered
    if not _OFFERS_CHOICE.search(text):
        return []
    headed: list[list[str]] = []
    for line in lines:
        if _OPTION_HEAD.match(line):
            headed.append([])
        elif headed and (found := _BULLET.match(line)):
            headed[-1].append(found[1])
    if len(headed) > 1 and all(headed):
        return ["; ".join(items) for items in headed]
    labelled = [found[3] for line in lines if (found := _OPTION.match(line))]
    return labelled if len(labelled) > 1 else [found[1] for line in lines if (found := _BULLET.match(line))]


def _pick(options: Sequence[str], said: str) -> int | None:
    if letter := re.match(r"^\W*([A-Fa-f])(?:[.,!)]|\s*$)", said) or _LETTER.search(said):
        place = ord(letter[1].upper()) - 65
        if place < len(options) and (letter[1].isupper() or len(said.split()) < 4):
            return place
    if number := re.match(r"^\W*(?:option |number |#|no\. )?(\d)\b", said, re.IGNORECASE):
        return int(number[1]) - 1 if 0 < int(number[1]) <= len(options) else None
    if ordinal := _ORDINAL.search(said.split("\n")[0][:80]):
        place = _ORDINALS[ordinal[1].lower()]
        if place < len(options):
            return place
    if _REFUSES.search(said):
        return None
    meant = content_words(said)
    shared = [len(content_words(option) & meant) for option in options]
    best = max(shared)
    echoes = len(said.split(".")[0].split()) <= 4
    sure = _ACCEPTS.search(said) or best > 1 or echoes
    return shared.index(best) if best and shared.count(best) == 1 and sure else None


def _phrase(text: str) -> str:
    text = re.sub(r"\*\*|__", "", text).strip()
    rest = _LEAD.sub("", _OFFER.sub("", text).rstrip("?") + "." if _OFFER.match(text) else text)
    return rest[:1].upper() + rest[1:] if rest else text
