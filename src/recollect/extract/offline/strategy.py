"""Phase 1 without a model."""

from __future__ import annotations

from dataclasses import replace
from pathlib import PurePath

from recollect.extract.offline import summary
from recollect.extract.offline.statements import statements
from recollect.extract.values import WITHOUT_MODEL, Extraction, Transcript
from recollect.models.paid import Paid
from recollect.types import STRICT, Role, Severity, Statement

_VERSION = f"{WITHOUT_MODEL}-v9"
_BUSY = 6  # tool calls from which a session without statements is worth a summary


class Offline:
    """Extracts with `statements` and `summary`; asks nobody.

    It cannot tell what a person typed from what they pasted, so nothing that it finds binds or holds everywhere.
    """

    id = _VERSION

    def should_process(self, transcript: Transcript) -> bool:
        return any(message.role is Role.USER for message in transcript.messages)

    def process(self, transcript: Transcript, paid: Paid) -> Extraction:
        found = [_loose(each) for each in statements(transcript.messages)]
        told = summary.story(transcript.messages)
        if not found and not (told.activity.changed and told.activity.calls >= _BUSY):
            return Extraction()
        return Extraction(
            raw_memory=summary.raw_memory(told, found),
            rollout_summary=summary.rollout_summary(told, found),
            rollout_slug=summary.slug(told, found),
            memory_sentence=summary.memory_sentence(told, found, PurePath(transcript.conversation.project).name),
            statements=tuple(found),
        )


def _loose(statement: Statement) -> Statement:
    severity = Severity.NONE if statement.severity in STRICT else statement.severity
    return replace(statement, severity=severity, may_bind=False)
