"""Phase 1 of notes: the statement is what the person said. Asks nobody, whatever model is configured."""

from __future__ import annotations

import re
from pathlib import PurePath

from recollect import note
from recollect.extract.values import Extraction, Transcript
from recollect.models.paid import Paid
from recollect.note import Verb
from recollect.text import sentences, words
from recollect.types import STRICT, Hand, Scope, Severity, Statement, Trust

_VERSION = "notes-v1"
_MOST = 34  # words of a note that a row of the ledger tells
_BY_AGENTS = {
    Verb.REMEMBER: "An agent noted this {kind} for {place}",
    Verb.CORRECT: "An agent corrected this {kind} that agents noted for {place}",
}
_SAID = {  # each long enough for a row of the ledger, however short the statement is
    Verb.REMEMBER: "The user asked to remember this {kind} for {place}",
    Verb.CORRECT: "The user corrected this {kind} of what was remembered for {place}",
    Verb.PIN: "The user pinned this {kind} for every session in {place}",
    Verb.UNPIN: "The user no longer wants this {kind} pinned in {place}",
}


class Notes:
    """One statement of one entry; nothing where the entry is no note that this version reads."""

    id = _VERSION
    asks_model = False

    def should_process(self, transcript: Transcript) -> bool:
        return note.is_note(transcript.conversation)

    def process(self, transcript: Transcript, paid: Paid) -> Extraction:
        if note.is_retirement(transcript.conversation.session_id):
            return _retirement(transcript)
        entry = next(iter(transcript.messages), None)
        told = note.parse(entry.text) if entry else None
        if entry is None or told is None:
            return Extraction()
        is_bound = told.severity in STRICT and note.is_signed(transcript.conversation.session_id)
        hand = note.hand_of(transcript.conversation.session_id)
        statement = Statement(
            told.kind,
            told.text,
            told.severity if is_bound or told.severity not in STRICT else Severity.NONE,
            told.scope,
            (entry.uuid,),
            exact=True,
            target=told.target,
            revision=told.revision,
            pinned=told.pinned,
            occasions=told.occasions,
            hand=hand,
            trust=Trust.NOTED if hand is Hand.AGENT else Trust.SAID,
        )
        folder = PurePath(transcript.conversation.project).name
        place = f"the project {folder}" if folder else "no project in particular"
        if told.scope is Scope.USER:
            place = "all of their projects"
        by_agent = statement.hand is Hand.AGENT
        lead = (_BY_AGENTS if by_agent else _SAID)[told.verb].format(kind=told.kind.replace("_", " "), place=place)
        line = " ".join(told.text.split())
        return Extraction(
            raw_memory=told.text,
            rollout_summary=f"{lead}: {line}",
            rollout_slug=_slug(told.text),
            memory_sentence=f"{lead}: {_sentence(line)}",
            statements=(statement,),
        )


def _retirement(transcript: Transcript) -> Extraction:
    """What was retired or holds again, by its number: a retirement states nothing."""
    told = [found for each in transcript.messages if (found := note.parse_retirement(each.text))]
    restored = {name for each in told if each.is_undone for name in each.memories}
    retired = {name for each in told if not each.is_undone for name in each.memories}
    parts = [(len(retired), "retired, and told to no agent"), (len(restored), "restored")]
    said = "; ".join(f"{number:,} {'memory' if number == 1 else 'memories'} {what}" for number, what in parts if number)
    if not said:
        return Extraction()
    why = "; ".join(dict.fromkeys(each.why for each in told))
    return Extraction(rollout_summary=f"{said}: {why}", rollout_slug="retirement", memory_sentence=f"{said}: {why}.")


def _sentence(line: str) -> str:
    """All that was said, as one."""
    said = [each.rstrip(".!?… ") for each in sentences(line)]
    asks = len(said) == 1 and line.endswith("?")
    return " ".join("; ".join(said).split()[:_MOST]).rstrip(",;: ") + ("?" if asks else ".")


def _slug(text: str) -> str:
    telling = [word for word in words(text[:400]) if re.fullmatch(r"[a-z0-9][a-z0-9-]{0,20}", word)]
    return "-".join(["note", *telling[:6]])[:60].strip("-")
