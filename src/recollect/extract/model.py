"""Phase 1 with a language model: a long conversation in parts, then answers that merge those of neighbours, up to one.

Every part is read once. A part or a merge that the model cannot take or cannot end is split; two answers that no third
can hold stand one behind the other.

What comes back is held against the transcript: a statement must quote what it rests on, and who wrote the quoted words
tells how far it is trusted. So text that was pasted or injected cannot become a memory, whatever the model made of it.
It binds only by words that a person typed or chose, and holds in every project only where those say so; and not where a
sentence of others says it and what is quoted does not.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace

from recollect.everywhere import holds_everywhere
from recollect.extract import prompt
from recollect.extract.parts import split, tokens
from recollect.extract.schema import ExtractionOut, MemoryOut, Relation
from recollect.extract.values import Backlog, Extraction, Transcript, outcome
from recollect.models.base import Failure, LanguageModel, ModelFailed
from recollect.models.paid import Paid
from recollect.occasions import occasions
from recollect.redact import redact
from recollect.text import apart, blocks, estimate_tokens, marks_of, sentences
from recollect.types import (
    MAY_BIND,
    PERSON,
    STRICT,
    Author,
    Event,
    Message,
    Remembered,
    Role,
    Scope,
    Severity,
    Statement,
    Trust,
)

_MOST = 60
_SHORTEST_QUOTE = 2  # characters: "ok" was said, too
_WORDS = re.compile(r"\w+")
_CARRIED = 0.5  # of a statement's words, from which another's sentence says it
_NEAR_TOKENS, _ANSWER_TOKENS = 500, 1_700  # of near memories with the project's rules, and of an answer, on average
_SMALLEST_PART = 500  # tokens; a model that cannot take this is not split for

Rendered = Callable[[str, str, type[ExtractionOut]], str]  # instructions, content and schema → all that is sent
_Foreign = tuple[Author, frozenset[str]]  # whose sentence, and its words


class ByModel:
    def __init__(self, model: LanguageModel, *, part_tokens: int, seconds: float) -> None:
        self._model = model
        self._part_tokens = part_tokens
        self._seconds = seconds
        self.asks_model = True
        self.id = f"{prompt.EXTRACT}+{prompt.MERGE}/{model.name}"

    def should_process(self, transcript: Transcript) -> bool:
        return any(message.role is Role.USER for message in transcript.messages)

    def process(self, transcript: Transcript, paid: Paid) -> Extraction:
        asked = _Asked(transcript)
        budget = self._part_tokens
        answers: list[ExtractionOut] = []
        waiting = split(asked.messages, budget)
        while waiting:
            part, *waiting = waiting
            try:
                answers.append(self._ask(paid, prompt.EXTRACT, asked.content(part)))
            except ModelFailed as failed:
                if failed.failure not in (Failure.TOO_LONG, Failure.CUT_OFF) or tokens(part) <= _SMALLEST_PART:
                    raise
                budget = max(tokens(part) // 2, _SMALLEST_PART)  # of what was not read yet
                waiting = split([message for each in (part, *waiting) for message in each], budget)
        parts = len(answers)
        while len(answers) > 1:
            answers = [each for group in _groups(answers, budget) for each in self._merge(group, paid)]
        return extraction(answers[0], asked.messages, transcript.known, parts)

    def _merge(self, group: Sequence[ExtractionOut], paid: Paid) -> list[ExtractionOut]:
        """Fewer answers that say the same; one where the model can."""
        if len(group) == 1:
            return [*group]
        try:
            return [self._ask(paid, prompt.MERGE, prompt.parts([each.model_dump_json() for each in group]))]
        except ModelFailed as failed:
            if failed.failure not in (Failure.TOO_LONG, Failure.CUT_OFF, Failure.INVALID):
                raise
        if len(group) == 2:
            return [_joined(*group)]
        half = len(group) // 2
        return [*self._merge(group[:half], paid), *self._merge(group[half:], paid)]

    def _ask(self, paid: Paid, name: str, content: str) -> ExtractionOut:
        return paid.answer(self._model, prompt.load(name), content, ExtractionOut, seconds=self._seconds)


class _Asked:
    """A conversation as a model is asked about it. What was stored under older rules is redacted anew, in whole
    messages, since a part may end inside a secret."""

    def __init__(self, transcript: Transcript) -> None:
        self.messages = [_redacted(each) for each in transcript.messages]
        self._about = redact(prompt.known(transcript.known, transcript.rules))
        self._numbers = {message.uuid: number for number, message in enumerate(self.messages, 1)}

    def content(self, part: Sequence[Message]) -> str:
        """The question about a part of the conversation, without the instructions."""
        return self._about + prompt.transcript(part, [self._numbers[message.uuid] for message in part])


def _redacted(message: Message) -> Message:
    events = tuple(Event(each.kind, redact(each.text)) for each in message.events)
    return replace(message.rewritten(redact), events=events)


def questions(transcript: Transcript, part_tokens: int, rendered: Rendered) -> list[str]:
    """What a model would be sent about a conversation at first, a text for each part."""
    asked, instructions = _Asked(transcript), prompt.load(prompt.EXTRACT)
    return [rendered(instructions, asked.content(part), ExtractionOut) for part in split(asked.messages, part_tokens)]


def backlog(transcripts: Iterable[Transcript], part_tokens: int) -> Backlog:
    """What it would take to read these conversations, by their prompts as they are rendered, but neither redacted nor
    with what is near them: that is too slow for a year of history."""
    fixed = estimate_tokens(prompt.load(prompt.EXTRACT)) + estimate_tokens(str(ExtractionOut.model_json_schema()))
    talks = tokens_in = answers = 0
    for each in transcripts:
        parts = split(each.messages, part_tokens)
        numbers = {message.uuid: number for number, message in enumerate(each.messages, 1)}
        sizes = [estimate_tokens(prompt.transcript(part, [numbers[one.uuid] for one in part])) for part in parts]
        tokens_in += sum(sizes) + len(parts) * (fixed + _NEAR_TOKENS)
        if len(parts) > 1:
            tokens_in += len(parts) * _ANSWER_TOKENS  # to be merged
        talks, answers = talks + 1, answers + len(parts) + (len(parts) > 1)
    return Backlog(talks, tokens_in, answers * _ANSWER_TOKENS, answers)


def _groups(answers: Sequence[ExtractionOut], budget: int) -> Iterator[list[ExtractionOut]]:
    """Neighbours that fit into the budget together; two at least, but for one that is left over."""
    group: list[ExtractionOut] = []
    used = 0
    for each in answers:
        size = estimate_tokens(each.model_dump_json())
        if len(group) > 1 and used + size > budget:
            yield group
            group, used = [], 0
        group.append(each)
        used += size
    yield group


def _joined(one: ExtractionOut, other: ExtractionOut) -> ExtractionOut:
    """What both say, the later part behind the earlier; it gives the names, and says what is left."""
    return ExtractionOut(
        memories=[*one.memories, *other.memories],
        done=" ".join(filter(None, (one.done, other.done))),
        left=other.left,
        memory_sentence=other.memory_sentence or one.memory_sentence,
        rollout_slug=other.rollout_slug or one.rollout_slug,
        raw_memory="\n\n".join(filter(None, (one.raw_memory, other.raw_memory))),
    )


def extraction(
    answer: ExtractionOut, messages: Sequence[Message], known: Sequence[Remembered], parts: int
) -> Extraction:
    told = answer.memories[:_MOST]
    others = [*_others(messages)] if told else []
    statements = [each for memory in told if (each := _statement(memory, messages, known, others))]
    slug = re.sub(r"[^a-z0-9]+", "-", answer.rollout_slug.lower()).strip("-")[:60]
    return Extraction(
        raw_memory=answer.raw_memory.strip(),
        rollout_summary=outcome(answer.done, answer.left),
        rollout_slug=slug,
        memory_sentence=" ".join(answer.memory_sentence.split()),
        statements=tuple(statements),
        parts=parts,
        ungrounded=len(told) - len(statements),
    )


def _statement(
    memory: MemoryOut, messages: Sequence[Message], known: Sequence[Remembered], others: Sequence[_Foreign]
) -> Statement | None:
    """None where nothing that it quotes was written by somebody who may say it."""
    text = " ".join(memory.text.split())
    quoted = [
        (messages[each.message - 1], author)
        for each in memory.evidence
        if 0 < each.message <= len(messages)
        for author in _authors(each.quote, messages[each.message - 1])
    ]
    authors = [author for _, author in quoted]
    trust = trusted(authors)
    if trust in MAY_BIND:
        trust = trusted([*authors, *_behind(text, quoted, others)])
    if not text or trust is None:
        return None
    scope, severity = memory.scope, memory.severity
    own = "\n\n".join(message.said(*PERSON) for message, author in quoted if author in PERSON)
    if scope is Scope.USER and not (trust in MAY_BIND and holds_everywhere(own)):
        scope = Scope.PROJECT
    if severity in STRICT and trust not in MAY_BIND:
        severity = Severity.NONE
    entries = tuple(dict.fromkeys(message.uuid for message, _ in quoted))
    held = known[memory.memory - 1] if 0 < memory.memory <= len(known) and memory.relation is not Relation.NEW else None
    return Statement(
        memory.kind,
        text,
        severity,
        scope,
        entries,
        occasions=occasions(memory.occasions),
        trust=trust,
        near=held.id if held else "",
        replaces=memory.relation is Relation.REPLACES,
    )


def _others(messages: Sequence[Message]) -> Iterator[_Foreign]:
    """The sentences that stand in a conversation and are not its own, by their words."""
    for message in messages:
        for part in message.parts:
            if part.author in (Author.PASTED, Author.CLIENT):
                for _, piece in blocks(part.text):
                    yield from ((part.author, marks_of(each)) for each in sentences(piece))


def _behind(text: str, quoted: Sequence[tuple[Message, Author]], others: Sequence[_Foreign]) -> set[Author]:
    """Who else says it, more so than those who are quoted for it. A model that does what a page tells it to quotes the
    person for what they never said."""
    mine = marks_of(text)
    own = len(mine & marks_of("\n".join(message.said(author) for message, author in quoted)))
    return {author for author, marks in others if len(mine & marks) > max(own, _CARRIED * len(mine))}


def _authors(quote: str, message: Message) -> list[Author]:
    """Who wrote these words of a message; nobody, if they do not stand there."""
    wanted = _bare(quote)
    if len(wanted) < _SHORTEST_QUOTE:
        return []
    return [part.author for part in message.parts if f" {wanted} " in f" {_bare(part.text)} "][:1]


def _bare(text: str) -> str:
    """The words alone: marks and line breaks are told in many ways. Where no space parts words, the characters."""
    return " ".join(_WORDS.findall(apart(text.casefold())))


def trusted(authors: Collection[Author]) -> Trust | None:
    """How far a statement is trusted that rests on words of these authors. None: nobody may say it."""
    by_person = [each for each in authors if each in PERSON]
    if Author.PASTED in authors:  # by itself it is anybody's
        return Trust.PASSED_ON if any(each is not Author.PASTED for each in authors) else None
    if Author.CLIENT in authors:  # a plan: it is approved, its words are not
        return Trust.FOUND
    if any(each not in PERSON for each in authors):
        return Trust.CHOSEN if by_person else Trust.FOUND
    if not by_person:
        return None
    return Trust.SAID if Author.CHOSEN not in by_person else Trust.CHOSEN
