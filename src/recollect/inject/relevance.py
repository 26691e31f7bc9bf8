"""Whether a memory has to do with a prompt: a probability from a few features, and when none is asked for. Pure.

Four things speak for a memory: its similarity to the prompt, the words that it shares with it (by their rarity), that
the prompt speaks of something of the user's own ("our", "the"), and that it belongs to this project; what holds in
every project needs more. Two speak against it: a crowd of others for which as much speaks, and that the prompt asks
about the world and nobody in it. A memory of which it is known when it matters agrees with more by chance, and needs a
little more. How many memories such prompts want (`appetite.py`) raises or lowers all of them. A prompt that leans on
what was said before ("why not?", "and the other one?") is also judged together with the last exchange, by weights of
its own. Weights are a logistic model, fitted per embedder on labelled prompts (docs/benchmarks.md): a
cosine of one embedder means nothing for another.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from math import exp

from recollect.inject.values import Exchange
from recollect.models.embed.catalog import ARCTIC, STATIC
from recollect.search.memories import Clue
from recollect.search.query import parse
from recollect.store.words import parts
from recollect.text import COMMON, blocks, words

# What people say without saying anything that could be looked up.
_TALK = frozenset(
    """agreed ahead alright appreciated awesome bye cheers continue cool correct done enough evening exactly excellent
    fine good goodbye gotcha great haha hm hmm hold keep lol look looks mind minute minutes moment morning nah
    never nice night nope oh oops perfect ping proceed ready resume sec second sorry sound sounds stop test thx
    tired today tomorrow tonight true ty understood wait welcome window work worked works wow wrong yeah yep
    yup""".split()
)
# Words by which requests are made: they say what to do, hardly ever about what.
_GENERIC = frozenset(
    """add added adding again answer anything ask asked back best better build building builds built call called
    case change changed changes changing check checking choose chose chosen code come comes create created
    creating current day days decide decided difference different doing enough everything example examples
    explain file files find first fix fixed fixing follow format function generate generated getting give
    given gives good great handle handles handling happen happened happens help idea ideas implement
    implemented implementing improve improved improving issue keep know last later left line lines list load
    long look looking looks made makes mean means method move moved moving name names need needed needing
    needs new next nice number numbers old open part people person pick picked place plan point possible
    problem problems put question questions read reason recommend redo refactor remove rename replace return
    review run running runs save second seem send set several short show showing shows simple small somebody
    someone something sort start started state stop stuff suggest suggested support sure table tell test
    tests text think thinking three time times today told tomorrow tonight tried try trying turn two type
    understand undo update user users uses value values wanted wants week work working works write writing
    written wrong year years yesterday""".split()
)
_LEANS = re.compile(
    r"""^\W*(?:and|or|but|also|what\ else|which\ one|why\ not|why\ so|then|so)\b
    |^\W*(?:what|how)\ about\b(?!\s+(?:the|our|my|an?)\b)
    |^\W*why\W*$
    |\b(?:others?|neither)\b
    |\bones?\b(?!\s+(?:of|moment|second|minute|hour|day|week|month|year|more|thing|per)\b)
    |\bsame\b(?=\s*(?:[?!.,;]|$|way|here|there|thing|for|with|as))
    |\b(?:that|those|this|these|there|then)(?=\s*(?:[?!.,;]|$))
    |\b(?:why|how|with|of|for|to|on|in|from|like|than|after|before|about|is|was|does|did|do|by|at|use|used|without)
     \s+(?:that|those|these)\b
    |\b(?:that|those)\s+(?:instead|too|again|also|is|was|were|works?|happen)\b""",
    re.IGNORECASE | re.VERBOSE,
)
_PRONOUN = re.compile(r"\b(?:it|its|they|them|their|he|him|his|she|her|else|both)\b", re.IGNORECASE)  # in a question
_ASKS = re.compile(
    r"\?|^\W*(?:and|or|but|why|what|how|which|who|when|where|do|does|did|is|are|was|were|can|could|should)\b", re.I
)
_OURS = re.compile(r"\b(?:we|our|ours|us|my|mine|i|i'm|i'd|i've|me|the|this|that|these|those)\b", re.IGNORECASE)

_SELF = re.compile(
    r"\b(?:we|our|ours|us|my|mine|i|i'm|im|i'd|i've|ive|me|you\ (?:know\ (?:about|of)|remember|recall))\b",
    re.IGNORECASE,
)
_WORLD = re.compile(
    r"^\W*(?!(?:what|how)\ about\b)(?:what|what's|whats|who|when|where|which|how|why|is|are|was|were|does|do|did|"
    r"explain|define|translate|convert)\b",
    re.IGNORECASE,
)

SPEAKER = re.compile(r"\s*[^\W\d_][\w.'-]{0,30}:\s")  # "Ada: …" in a channel of several people

_GENERIC_WEIGHT = 0.35
_OWN_WORDS = 2  # a prompt that says more of its own needs no help
_LONGEST = 60  # words of a text that are looked at: half from its beginning, half from its end
_WIDEST = 2_000  # letters of them, likewise: what is pasted may have no spaces
_MANY = 8.0  # more words than this agree with something by chance
_ANSWER_WEIGHT = 0.45  # of a word that only the assistant said
_MOST_CONTEXT = 2.0  # words of the last exchange that count
_CROWD = 8  # others that are looked at
_SAID = 0.6  # a memory of which so much was just said is not told again


@dataclass(frozen=True, slots=True)
class Weights:
    """Of a logistic model."""

    bias: float
    similar: float = 0.0  # to the prompt
    words: float = 0.0  # that it shares with the prompt, each by its rarity
    share: float = 0.0  # of all that the prompt has
    context: float = 0.0  # similarity to the last exchange
    context_words: float = 0.0
    everywhere: float = 0.0  # it holds in every project
    ours: float = 0.0  # the prompt speaks of something of the user's own
    general: float = 0.0  # the prompt asks about the world
    appetite: float = 0.0  # how many memories such prompts want
    told: float = 0.0  # somebody said when the memory matters: more of it can agree with a prompt
    crowd: float = 0.0  # how much speaks for others


@dataclass(frozen=True, slots=True)
class Calibration:
    """Of one embedder. Below the floor nothing is told; what continues a talk does less harm."""

    plain: Weights
    leaning: Weights
    floor: float
    leaning_floor: float = 0.35
    first_floor: float = 0.15  # of the best one: it is usually what "that" means


WORDS_ONLY = Calibration(
    Weights(-5.65, words=2.15, share=2.8, everywhere=-1.0, ours=0.75, general=-1.05, told=-0.45, crowd=-0.32),
    Weights(-3.15, words=3.4, context_words=1.3, everywhere=-1.6),
    floor=0.64,
)
CALIBRATIONS = {
    ARCTIC: Calibration(
        Weights(
            -9.25,
            similar=12.75,
            words=1.45,
            share=1.35,
            everywhere=-1.35,
            ours=0.4,
            general=-1.2,
            appetite=1.0,
            told=-0.55,
            crowd=-0.54,
        ),
        Weights(-7.1, similar=8.05, words=4.05, context=4.05, context_words=1.85, everywhere=-1.1),
        floor=0.72,
    ),
    STATIC: Calibration(
        Weights(
            -7.1,
            similar=7.3,
            words=1.75,
            share=2.15,
            everywhere=-1.1,
            ours=0.75,
            general=-1.45,
            appetite=0.95,
            told=-0.5,
            crowd=-0.25,
        ),
        Weights(-5.8, similar=5.8, words=4.0, context=4.7, context_words=1.35, everywhere=-1.3),
        floor=0.76,
    ),
}


@dataclass(frozen=True, slots=True)
class Question:
    """What is looked for."""

    text: str
    words: dict[str, float]  # word → how much it counts beside its rarity
    ours: bool
    general: bool = False
    context: str = ""  # the last exchange, where the prompt leans on it
    context_words: Mapping[str, float] = field(default_factory=dict)

    @property
    def texts(self) -> list[str]:
        return [self.text, self.context] if self.context else [self.text]


@dataclass(frozen=True, slots=True)
class Features:
    similar: float | None  # None: nobody knows
    words: float
    share: float
    context: float | None
    context_words: float
    everywhere: bool
    ours: bool
    general: bool = False
    appetite: float = 0.0
    told: bool = False


def question(prompt: str, exchanges: Sequence[Exchange], now: datetime, *, enrich: bool = True) -> Question | None:
    """None: there is nothing in it that could be looked up."""
    text = condensed(SPEAKER.sub("", prompt, count=1) if SPEAKER.match(prompt) else prompt)
    own = _weighed(text, now, names=True)
    distinct = [word for word, weight in own.items() if weight == 1.0 and word not in _TALK]
    if enrich and exchanges and _leans(text, distinct):
        return _enriched(text, own, exchanges, now)
    if all(word in _TALK for word in own):
        return None
    return Question(text, own, bool(_OURS.search(text)), general=bool(_WORLD.match(text)) and not _SELF.search(text))


def features(asked: Question, clue: Clue, rarity: Mapping[str, float], appetite: float = 0.0) -> Features:
    shared = around = share = 0.0
    if clue.words:
        shared = sum(weight * rarity[word] for word, weight in asked.words.items() if word in clue.words)
        around = sum(weight * rarity[word] for word, weight in asked.context_words.items() if word in clue.words)
        share = shared / max(sum(weight * rarity.get(word, 0.0) for word, weight in asked.words.items()), 1e-9)
    return Features(
        similar=clue.similar[0],
        words=shared * min(1.0, (_MANY / max(sum(asked.words.values()), 1e-9)) ** 0.5),
        share=share,
        context=clue.similar[1] if asked.context else None,
        context_words=min(around, _MOST_CONTEXT),
        everywhere=clue.everywhere,
        ours=asked.ours,
        general=asked.general,
        appetite=appetite,
        told=clue.told,
    )


def strength(found: Features, by: Weights) -> float:
    """What speaks for it, whatever there is beside it: a logit."""
    return (
        by.bias
        + by.similar * (found.similar or 0.0)
        + by.words * found.words
        + by.share * found.share
        + by.context * (found.context or 0.0)
        + by.context_words * found.context_words
        + by.everywhere * found.everywhere
        + by.ours * found.ours
        + by.general * found.general
        + by.appetite * found.appetite
        + by.told * found.told
    )


def crowds(strengths: Sequence[float], nothing: float) -> list[float]:
    """For each the mean of the best others; where there are few, `nothing` speaks for the rest."""
    best = sorted((*strengths, *[nothing] * (_CROWD + 1)), reverse=True)[: _CROWD + 1]
    whole = sum(best)
    return [(whole - max(each, best[-1])) / _CROWD for each in strengths]


def probability(logit: float) -> float:
    return 1.0 / (1.0 + exp(-max(-30.0, min(30.0, logit))))


def calibration(model: str, found: Features) -> Calibration:
    """Words alone decide where the meaning of a memory is not known yet, or nothing is known about the embedder."""
    return CALIBRATIONS.get(model, WORDS_ONLY) if found.similar is not None else WORDS_ONLY


def just_said(text: str, exchanges: Sequence[Exchange]) -> bool:
    """Nearly all of it was said in the last exchange: nobody needs to be told."""
    if not exchanges:
        return False
    told = set(words(f"{exchanges[-1].user} {exchanges[-1].assistant}"))
    own = {word for word in words(text) if word not in COMMON}
    return bool(own) and len(own & told) >= _SAID * len(own)


def condensed(text: str) -> str:
    """Prose only, and not too much of it: a request stands before or behind what is pasted."""
    prose = " ".join(line for kind, line in blocks(text) if kind not in ("code", "quote")) or text
    every = prose.split()
    if len(every) > _LONGEST:
        prose = " ".join([*every[: _LONGEST // 2], *every[-_LONGEST // 2 :]])
    half = _WIDEST // 2
    return prose if len(prose) <= _WIDEST else f"{prose[:half]} {prose[-half:]}"


def _weighed(text: str, now: datetime, *, names: bool = False) -> dict[str, float]:
    """The words that may be looked up, of `names` also those that they are made of. A text of common words only has
    none."""
    bare = re.sub(r"[^\w\s]|_", " ", text)  # parts of a name count with the name
    typed = {*words(bare), *(part.lower() for name in bare.split() if names for part in parts(name))}
    kept = {word: each for word, each in parse(text, now).words.items() if word in typed and word not in COMMON}
    return {word: min(weight, _GENERIC_WEIGHT) if word in _GENERIC else weight for word, weight in kept.items()}


def _leans(text: str, distinct: Sequence[str]) -> bool:
    asks = bool(_ASKS.search(text))
    points = bool(_LEANS.search(text)) or (asks and bool(_PRONOUN.search(text)))
    return points and len(distinct) <= _OWN_WORDS and (asks or bool(distinct))


def _enriched(text: str, own: dict[str, float], exchanges: Sequence[Exchange], now: datetime) -> Question:
    """Together with the last exchange, and with those before it as long as they lean themselves."""
    last = [exchanges[-1]]
    for each in reversed(exchanges[:-1]):
        before = condensed(last[0].user)
        if not _leans(before, [word for word, weight in _weighed(before, now).items() if weight == 1.0]):
            break
        last.insert(0, each)
    said = " ".join(condensed(each.user) for each in last)
    answered = " ".join(condensed(each.assistant) for each in last)
    around = {word: weight * _ANSWER_WEIGHT for word, weight in _weighed(answered, now).items()}
    around |= _weighed(said, now)
    return Question(
        text,
        own,
        ours=True,
        context=f"{said} {answered}",
        context_words={word: weight for word, weight in around.items() if word not in own},
    )
