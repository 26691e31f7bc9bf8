"""Phase 1 with a language model: a long conversation in parts, then one answer that merges them.

What comes back is held against the transcript: a statement must name messages that exist, and its words must occur in
what their authors said themselves. So text that was pasted or injected cannot become a memory, whatever the model
made of it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from recollect.extract import prompt
from recollect.extract.offline.units import own_words
from recollect.extract.parts import split
from recollect.extract.schema import ExtractionOut, MemoryOut
from recollect.extract.values import Extraction, Transcript
from recollect.models.base import Failure, LanguageModel, ModelFailed
from recollect.models.paid import Paid
from recollect.occasions import occasions
from recollect.text import content_words
from recollect.types import Message, Role, Statement

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
        budget = self._part_tokens
        while True:
            try:
                return self._process(transcript.messages, paid, budget)
            except ModelFailed as failed:
                if failed.failure is not Failure.TOO_LONG or budget <= _SMALLEST_PART:
                    raise
                budget = max(budget // 2, _SMALLEST_PART)  # what fitted before is in store and not asked again

    def _process(self, messages: Sequence[Message], paid: Paid, budget: int) -> Extraction:
        numbers = {message.uuid: number for number, message in enumerate(messages, 1)}
        parts = split(messages, budget)
        answers = []
        for part in parts:
            content = prompt.transcript(part, [numbers[message.uuid] for message in part])
            answers.append(self._ask(paid, prompt.EXTRACT, content))
        answer = answers[0]
        if len(answers) > 1:
            said = [each.model_dump_json() for each in answers]
            answer = self._ask(paid, prompt.MERGE, prompt.parts(said))
        return _extraction(answer, messages, len(parts))

    def _ask(self, paid: Paid, name: str, content: str) -> ExtractionOut:
        return paid.answer(self._model, prompt.load(name), content, ExtractionOut, seconds=self._seconds)


def _extraction(answer: ExtractionOut, messages: Sequence[Message], parts: int) -> Extraction:
    statements = [each for memory in answer.memories[:_MOST] if (each := _statement(memory, messages))]
    if not statements and not answer.raw_memory.strip():
        return Extraction(parts=parts)
    slug = re.sub(r"[^a-z0-9]+", "-", answer.rollout_slug.lower()).strip("-")[:60]
    return Extraction(
        raw_memory=answer.raw_memory.strip(),
        rollout_summary=answer.rollout_summary.strip(),
        rollout_slug=slug,
        memory_sentence=" ".join(answer.memory_sentence.split()),
        statements=tuple(statements),
        parts=parts,
    )


def _statement(memory: MemoryOut, messages: Sequence[Message]) -> Statement | None:
    text = " ".join(memory.text.split())
    cited = [messages[number - 1] for number in memory.messages if 0 < number <= len(messages)]
    said = " ".join(sentence for message in cited for _, sentence in own_words(message.text, message.role))
    mine = content_words(text)
    if not mine or len(mine & content_words(said)) < _GROUNDED * len(mine):
        return None
    entries = tuple(dict.fromkeys(message.uuid for message in cited))
    return Statement(memory.kind, text, memory.severity, memory.scope, entries, occasions=occasions(memory.occasions))
