"""What a prompt asks of memory itself: what is known of a subject, or what the last sessions came to. Pure."""

from __future__ import annotations

import re

_WHO = r"(?:we|you|i|us)"
_KNOW = (
    r"(?:already |actually |currently |ever )?(?:know|knew|known|remember|recall|have|had|got|note|noted|write down|"
    r"wrote down|decide|decided|agree|agreed|learn|learned|learnt|say|said|settle|settled|establish|"
    r"established|figure out|figured out|find out|found out)"
)
_ON = r"(?:about|on|for|of|regarding|concerning|with regard to|with|around|when it comes to|re)"
_THINGS = (
    r"(?:rules?|conventions?|policy|policies|decisions?|notes?|facts?|constraints?|preferences?|agreements?|guidelines?|"
    r"lessons?|gotchas?|pitfalls?|quirks?|approach|setup|set-up|story|status|background|context|details?)"
)
_HOW = r"^(?:remind (?:me|us) |explain(?: to (?:me|us))? |tell (?:me|us) |describe |walk me through |so )?"
_OWN = r"(?:our|my|the) "  # how something works in the world is no question to memory
_RUNS = r"(?:works?|working|set up|organi[sz]ed|done|handled|wired|structured|put together)"
_HERE = (
    r"(?: here| for us| with us| again| now| currently| today| around here| on our side"
    r"| in (?:this|our|the) (?:project|repo|repository|code|codebase|app|team|company|system))"
)
_ASKS = [
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"^what(?: all| else| exactly)? (?:do|did|have|has|had) {_WHO} {_KNOW}"
        rf"(?: down| so far| here)? {_ON} (?P<x>.+)",
        rf"^what(?:'s| is| was| has been|'s been) (?:already |currently )?{_KNOW} {_ON} (?P<x>.+)",
        rf"^what (?:should|must|do|would) {_WHO} (?:need to |have to |want to )?know (?:{_ON}|before|to) (?P<x>.+)",
        rf"^(?:is there |do {_WHO} (?:know|have|remember|recall) )?(?:anything|something|any {_THINGS})"
        rf"(?: else)?(?: (?:that )?{_WHO} (?:should |need to |have to )?{_KNOW})?(?: to {_KNOW})? {_ON} (?P<x>.+)",
        rf"^(?:do|did|can) {_WHO} (?:know|have|remember|recall) (?:of |about )?(?:anything|something|any {_THINGS})"
        rf" {_ON} (?P<x>.+)",
        rf"^(?:what|which)(?:'s| is| are| were|'re)? (?:all )?(?:the |our |my )?(?:main |current |existing |known )*"
        rf"{_THINGS}(?: (?:do|did|have) {_WHO} \w+)? {_ON} (?P<x>.+)",
        rf"^(?:tell|show|give|list)(?: (?:me|us))? (?:everything|all|anything|what(?:ever)?)"
        rf"(?: (?:that )?(?:{_WHO} {_KNOW}|is known|there is(?: to know)?))? {_ON} (?P<x>.+)",
        r"^(?:tell (?:me|us)(?: more)? about|brief (?:me|us) on|catch (?:me|us) up on|fill (?:me|us) in on|"
        r"remind (?:me|us) (?:about|of)|refresh my memory (?:on|about|of)|"
        r"bring (?:me|us) up to (?:speed|date) on|recap|sum up|"
        r"summari[sz]e(?: (?:what|everything) (?:we|you) know (?:about|of|on))?|overview of|"
        r"(?:give (?:me|us) )?(?:an? )?(?:quick |short |brief )?(?:overview|summary|rundown|recap) (?:of|on))"
        r" (?:what (?:we|you) know about )?(?P<x>.+)",
        rf"^(?:list|show(?: me)?)(?: all)?(?: the| our| my)? {_THINGS} {_ON} (?P<x>.+)",
        rf"{_HOW}how (?:do|does|is|are|did) (?P<x>{_OWN}.+?) {_RUNS}{_HERE}?$",
        rf"{_HOW}how (?:do|does|is|are|did) (?P<x>.+?) {_RUNS}{_HERE}$",
        rf"^(?:remind (?:me|us)(?: of)?|walk me through) how (?P<x>.+?) (?:(?:is|are) )?{_RUNS}{_HERE}?$",
        rf"{_HOW}how (?P<x>{_OWN}.+?) (?:(?:is|are) )?{_RUNS}{_HERE}?$",
        r"^(?:walk me through|explain(?: to me)?|describe) (?P<x>(?:our|my) .+)",
        r"^(?:everything|all) (?:we|you) (?:know|have|noted) (?:about|on|of) (?P<x>.+)",
    )
]
_LEAD = re.compile(
    r"^(?:(?:hey|hi|ok|okay|so|and|well|please|right|first|quick question|before (?:we|i) \w+|just)\b[,:]?\s+"
    r"|(?:can|could|would|will) you (?:please )?(?=tell|show|remind|give|list|explain|summ|brief|catch|fill|recap|walk"
    r"|describe|bring|refresh|sum))+",
    re.IGNORECASE,
)
_TAIL = re.compile(
    r"(?:\s*,)?\s+(?:again|here|so far|please|already|right now|at the moment|currently|in general|these days|now|"
    r"around here|for us|by the way|btw|"
    r"in (?:this|our|the) (?:project|repo|repository|codebase|code base|team|system)|"
    r"(?:the )?last (?:time|session|week)|yesterday|previously|earlier|before)$",
    re.IGNORECASE,
)
_HEADS = re.compile(  # nouns that say of a subject that it is one
    r"^(?:(?:our|the|my|your|this|that|these|those|a|an|how|all|touching|changing|editing|working (?:on|with)|using|"
    r"deploying|starting(?: (?:on|with))?)\s+)+"
    r"|\s+(?:system|stuff|thing|things|part|parts|topic|subject|area|side|setup|situation|story|process|question|matter|"
    r"works?|in general|overall)$",
    re.IGNORECASE,
)

_ASIDE = re.compile(  # what somebody says behind the subject, of what they want to hear
    r"\s*[,;:(–—]\s*(?:like|so|i|i'm|we|you|do|does|did|is|are|was|can|could|should|what|how|why|which|where|who|if|when|"
    r"because|since|especially|e\.?g|for example|in particular|before|there|they|it|that|"
    r"and (?:what|how|why|which|where|who|do|does|did|is|are|can|should|if))\b.*",
    re.IGNORECASE,
)

_US = r"(?:we|i|you|us|me)"
_THEN = (
    r"(?:(?:the\ )?last\ (?:time|session|week|sessions)|(?:the\ )?previous(?:ly|\ session|\ time)?|yesterday"
    r"|(?:on\ )?(?:mon|tues|wednes|thurs|fri|satur|sun)day)"
)
_LAST = re.compile(
    rf"""^(?:so\ )?where\ (?:(?:were|was|are)\ {_US}(?:$|\ (?:with|on|at|in|up\ to|again|{_THEN})\b)
     |(?:did|do|had|have)\ {_US}\ (?:leave|left|stop|stopped|get\ to|end\ up|pause|break|finish))
    |^how\ far\ (?:did|have|had|were|are)\ {_US}\b
    |\bwhere\ {_US}\ (?:left\ off|left\ it|left\ things|stopped|were|was|got\ to)\b
    |^what\ (?:did|do|have|had|was|were)\ {_US}\b.*\b(?:leave|left)\b
     .*\b(?:open|undone|unfinished|off|over|behind|out|{_THEN})
    |^(?:what|which|anything|is\ (?:there\ )?anything|are\ there\ any|list)
     (?:'s|\ is|\ are|\ was|\ were|\ things|\ tasks|\ work|\ items)*(?:\ still|\ currently|\ yet)*
     \ (?:left|open|pending|unfinished|outstanding|remaining|undone|to\ be\ done|not\ done)
     (?:\ (?:to\ do|open|over|undone|work|tasks|items|threads|ends|from|since|after|{_THEN}|then|yet|now|here|today
     |for\ us|for\ me))*$
    |^what\ (?:still\ )?(?:remains|needs)\ (?:to\ be\ done|open|doing|finishing)
    |^(?:(?:what|which|any|the|our|list|show)\ |are\ there\ |do\ {_US}\ have\ |me\ |all\ |still\ )*
     (?:open|loose|unfinished|pending)\ (?:threads|ends|tasks|items|work|things|points)\b
    |\bwhat\ (?:did|have|had|were|was)\ {_US}\ (?:\w+\ ){{0,4}}?(?:in\ |during\ |at\ |on\ )?(?:{_THEN})
    |^(?:did|have)\ {_US}\ (?:finish|complete|get\ done|leave)\b.*{_THEN}$
    |^(?:anything|something|nothing)\ (?:left\ )?(?:open|unfinished|undone|left|pending)\ (?:from|since)\b
    |^what\ (?:were|was)\ {_US}\ (?:just\ |last\ )?(?:doing|working\ on|up\ to|busy\ with|on|about\ to\ do)$
    |\bwhat\ (?:happened|got\ done|was\ done|came\ out|came\ of\ it|changed|was\ left|did\ \w+\ come\ to)
     \ (?:in\ |during\ |at\ )?(?:{_THEN})
    |\b(?:recap|summary|summari[sz]e|outcome|results?|status)\ (?:of\ |from\ )?(?:the\ |our\ )?
     (?:last|previous|latest|most\ recent)\ (?:\w+\ )?(?:session|time|conversation|chat)s?
    |^(?:let'?s\ |please\ |can\ (?:we|you)\ )*
     (?:pick\ (?:it\ |this\ |things\ )?up|continue|carry\ on|resume|go\ on|keep\ going)
     \ (?:from\ |at\ |with\ )?(?:where|what)\ {_US}\b
    |^(?:let'?s\ |please\ )*(?:continue|carry\ on|resume|pick\ up)
     \ (?:from\ |with\ )?(?:{_THEN}|(?:the\ )?last\ (?:session|work|task))
    |^what(?:'s|\ is)\ next$""",
    re.IGNORECASE | re.VERBOSE,
)
_SESSION = re.compile(r"(?:(?:the|our|my) )?(?:last|previous|latest) (?:\w+ )?(?:session|time|chat)s?", re.IGNORECASE)
_BEFORE = re.compile(  # who speaks, or why they ask
    r"^(?:[\w.'-]{1,30}:\s|[^:]{1,80}:\s+(?=(?:what|which|how|where|anything|any|tell|remind|explain|do|did|is)\b))",
    re.IGNORECASE,
)
_LONGEST = 300  # characters of a prompt that asks memory something


def subject(prompt: str) -> str:
    """The subject of which a prompt asks all that is known; empty where it asks for no such thing."""
    text = _plain(prompt)
    found = next((match for each in _ASKS if (match := each.match(text))), None)
    if not text or found is None or _SESSION.fullmatch(found["x"]):
        return ""
    told = _ASIDE.sub("", found["x"])
    while (shorter := _HEADS.sub("", _TAIL.sub("", told.strip(" ,;:'\"`")))) != told:
        told = shorter
    return told


def of_last_time(prompt: str) -> bool:
    """Does it ask what was done or left in the last sessions?"""
    text = _plain(prompt)
    return bool(text) and not subject(prompt) and bool(_LAST.search(text))


def _plain(prompt: str) -> str:
    """The question alone; empty where there is more than one."""
    text = " ".join(prompt.replace("’", "'").split())
    if len(text) > _LONGEST:
        return ""
    sentences = [each for each in re.split(r"(?<=[?!.])\s+", text) if each.strip(" ?!.")]
    asked = [each for each in sentences if each.endswith("?")] or sentences
    return _LEAD.sub("", _BEFORE.sub("", asked[0])).strip(" ?!.") if len(asked) == 1 else ""
