"""What Claude Code writes into the result of a tool in the person's name: their answers, and why they refused a call.

The harness writes these results, no tool does. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import Raw

from recollect.ingest.sources.base import decode


class _Text(msgspec.Struct):
    text: Any = None


class _Answers(msgspec.Struct):
    """What the harness notes of the questions that it put to the user."""

    answers: Any = None  # question → the answer, or a list
    annotations: Any = None  # question → an object with `notes`


_contents = msgspec.json.Decoder(
    str | list[_Text | list[Raw] | str | float | bool | None] | _Text | float | bool | None
)
_answers = msgspec.json.Decoder(_Answers | list[Raw] | str | float | bool | None)
_ANSWERED = "User has answered your questions: "
_REFUSED = "The user doesn't want to proceed with this tool use."
_CLARIFY = "The user wants to clarify these questions."  # and all that the client writes below it
_BEHIND_REFUSAL = "\n\nNote: The user's next message may contain "


def _texts(content: Raw) -> Iterator[str]:
    told = decode(_contents, content) if content else None
    for item in told if isinstance(told, list) else [told]:
        text = item.text if isinstance(item, _Text) else item
        if isinstance(text, str):
            yield text


def refusal(result: Raw) -> str | None:
    """What the user typed when a call was refused: empty without a word. None: no refusal."""
    for text in _texts(result):
        if text.startswith(_REFUSED):
            said = text.partition(" the user said:\n")[2].partition(_BEHIND_REFUSAL)[0]
            return "" if said.startswith(_CLARIFY) else said
    return None


def answers(content: Raw, result: Raw) -> Iterator[tuple[str, list[str]]]:
    """Questions with what was answered: as the harness notes them, else as it tells the model."""
    noted = decode(_answers, result) if result else None
    if not isinstance(noted, _Answers) or not isinstance(noted.answers, dict):
        for text in _texts(content):
            if text.startswith(_ANSWERED):
                yield from _answers_in(text.removeprefix(_ANSWERED).rpartition(". You can now ")[0])
        return
    notes = noted.annotations if isinstance(noted.annotations, dict) else {}
    for question, answer in noted.answers.items():
        note = notes.get(question)
        told = [*(answer if isinstance(answer, list) else [answer])]
        told += [note.get("notes")] if isinstance(note, dict) else []
        if own := [word for word in told if isinstance(word, str) and word]:
            yield question, own


def _answers_in(text: str) -> Iterator[tuple[str, list[str]]]:
    """`"one?"="yes" user notes: not yet, "two?"="no"`."""
    question, *pieces = text.removeprefix('"').split('"="')
    for number, piece in enumerate(pieces, 1):
        answer, is_noted, note = piece.partition('" user notes: ')
        following = ""
        if number < len(pieces) and is_noted:
            note, _, following = note.rpartition(', "')
        elif number < len(pieces):
            answer, _, following = answer.rpartition('", "')
        yield question, [each for each in (answer.removesuffix('"').strip(), note.strip()) if each]
        question = following
