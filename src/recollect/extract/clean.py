"""What of an extraction may be stored: no secret, no NUL, nothing that was injected, nothing endless. Pure."""

from __future__ import annotations

from dataclasses import replace

from recollect.blocks import without_memories
from recollect.extract.values import Extraction
from recollect.occasions import occasions
from recollect.redact import redact
from recollect.types import Statement

_ACCOUNT = 60_000  # bytes; phase 2 puts the accounts of hundreds of conversations into one file
_SENTENCE = 2_000


def cleaned(extraction: Extraction) -> Extraction:
    statements: list[Statement] = [
        replace(each, text=_clean(each.text), occasions=occasions(map(_clean, each.occasions)))
        for each in extraction.statements
        if _clean(each.text).strip()
    ]
    return replace(
        extraction,
        raw_memory=_clean(extraction.raw_memory, _ACCOUNT),
        rollout_summary=_clean(extraction.rollout_summary, _ACCOUNT),
        rollout_slug=_clean(extraction.rollout_slug, _SENTENCE),
        memory_sentence=_clean(extraction.memory_sentence, _SENTENCE),
        statements=tuple(statements),
    )


def _clean(text: str, longest: int | None = None) -> str:
    text = redact(without_memories(text.replace("\0", "")))
    data = text.encode("utf-8", "replace") if longest else b""
    return text if longest is None or len(data) <= longest else data[:longest].decode("utf-8", "ignore").rstrip() + " …"
