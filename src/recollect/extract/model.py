"""Phase 1 with a language model: a long conversation in parts, then answers that merge those of neighbours, up to one.

Every part is read once. A part or a merge that the model cannot take or cannot end is split; two answers that no third
can hold stand one behind the other.

What comes back is held against the transcript: a statement must name messages that exist, and its words must occur in
what their authors said themselves. So text that was pasted or injected cannot become a memory, whatever the model
made of it. It binds only where it names a message of the user's, and holds in every project only where that says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from recollect.everywhere import holds_everywhere
from recollect.extract import prompt
from recollect.extract.offline.units import own_words
from recollect.extract.parts import split, tokens
from recollect.extract.schema import ExtractionOut, MemoryOut
from recollect.extract.values import Extraction, Transcript
from recollect.models.base import Failure, LanguageModel, ModelFailed
from recollect.models.paid import Paid
from recollect.occasions import occasions
from recollect.redact import redact
from recollect.text import estimate_tokens, marks_of
from recollect.types import STRICT, Message, Role, Scope, Severity, Statement

_GROUNDED = 0.34  # of a statement's words that its messages must contain
_MOST = 60
_SMALLEST_PART = 500  # tokens; a model that cannot take this is not split for


class ByModel:
    def __init__(self, model: LanguageModel, *, part_tokens: int, seconds: float) -> None:
        self._model = model
        self._part_tokens = part_tokens
        self._seconds = seconds
        self.id = f"{prompt.EXTRACT}+{prompt.MERGE}/{model.name}"

    def should_process(self, transcript: Transcript) -> bool:
        return any(message.role is Role.USER for message in transcript.messages)

    def process(self, transcript: Transcript, paid: Paid) -> Extraction:
        # what was stored under older rules is not sent; whole messages, since a part may end inside a secret
        messages = [replace(each, text=redact(each.text)) for each in transcript.messages]
        numbers = {message.uuid: number for number, message in enumerate(messages, 1)}
        budget = self._part_tokens
        answers: list[ExtractionOut] = []
        waiting = split(messages, budget)
        while waiting:
            part, *waiting = waiting
            try:
                content = prompt.transcript(part, [numbers[message.uuid] for message in part])
                answers.append(self._ask(paid, prompt.EXTRACT, content))
            except ModelFailed as failed:
                if failed.failure not in (Failure.TOO_LONG, Failure.CUT_OFF) or tokens(part) <= _SMALLEST_PART:
                    raise
                budget = max(tokens(part) // 2, _SMALLEST_PART)  # of what was not read yet
                waiting = split([message for each in (part, *waiting) for message in each], budget)
        parts = len(answers)
        while len(answers) > 1:
            answers = [each for group in _groups(answers, budget) for each in self._merge(group, paid)]
        return _extraction(answers[0], messages, parts)

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
    """What both say, the later part behind the earlier; it gives the names."""
    return ExtractionOut(
        raw_memory="\n\n".join(filter(None, (one.raw_memory, other.raw_memory))),
        rollout_summary="\n\n".join(filter(None, (one.rollout_summary, other.rollout_summary))),
        rollout_slug=other.rollout_slug or one.rollout_slug,
        memory_sentence=other.memory_sentence or one.memory_sentence,
        memories=[*one.memories, *other.memories],
    )


def _extraction(answer: ExtractionOut, messages: Sequence[Message], parts: int) -> Extraction:
    told = answer.memories[:_MOST]
    statements = [each for memory in told if (each := _statement(memory, messages))]
    ungrounded = len(told) - len(statements)
    if not statements and not answer.raw_memory.strip():
        return Extraction(parts=parts, ungrounded=ungrounded)
    slug = re.sub(r"[^a-z0-9]+", "-", answer.rollout_slug.lower()).strip("-")[:60]
    return Extraction(
        raw_memory=answer.raw_memory.strip(),
        rollout_summary=answer.rollout_summary.strip(),
        rollout_slug=slug,
        memory_sentence=" ".join(answer.memory_sentence.split()),
        statements=tuple(statements),
        parts=parts,
        ungrounded=ungrounded,
    )


def _statement(memory: MemoryOut, messages: Sequence[Message]) -> Statement | None:
    text = " ".join(memory.text.split())
    cited = [messages[number - 1] for number in memory.messages if 0 < number <= len(messages)]
    mine = marks_of(text)
    if not mine or len(mine & marks_of(_said(cited))) < _GROUNDED * len(mine):
        return None
    scope = memory.scope
    typed = _said([message for message in cited if message.role is Role.USER])
    if scope is Scope.USER and not holds_everywhere(typed):
        scope = Scope.PROJECT
    severity = memory.severity if typed or memory.severity not in STRICT else Severity.NONE
    entries = tuple(dict.fromkeys(message.uuid for message in cited))
    return Statement(memory.kind, text, severity, scope, entries, occasions=occasions(memory.occasions))


def _said(messages: Sequence[Message]) -> str:
    """By their authors themselves."""
    return " ".join(sentence for message in messages for _, sentence in own_words(message.text, message.role))
