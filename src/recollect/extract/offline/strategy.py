"""The strategy that asks no model: structure first, and little beyond it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import PurePath

from recollect.extract import OFFLINE, structure
from recollect.extract.session import read
from recollect.extract.values import Extraction, Transcript, outcome
from recollect.models.paid import Paid
from recollect.types import Message, Role


class Offline:
    """Keeps what `structure` tells: what was done and left, what was chosen and laid down; asks nobody.

    It cannot be sure of what a person typed, so nothing that it finds binds, holds everywhere or overrules what binds.
    """

    id = OFFLINE
    asks_model = False

    def should_process(self, transcript: Transcript) -> bool:
        return any(message.role is Role.USER for message in transcript.messages)

    def process(self, transcript: Transcript, paid: Paid) -> Extraction:
        return told(transcript.messages, PurePath(transcript.conversation.project).name)


def told(messages: Sequence[Message], project: str) -> Extraction:
    """What the messages tell by their structure. Pure."""
    session = read(messages)
    done, left = structure.outcome(session)
    return Extraction(
        raw_memory=structure.account(session),
        rollout_summary=outcome(done, left),
        rollout_slug=structure.slug(session),
        memory_sentence=structure.sentence(session, project),
        statements=tuple(replace(each, may_overrule=False) for each in structure.statements(messages)),
    )
