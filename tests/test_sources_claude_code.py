"""Claude Code, rule by rule. What whole transcripts come to stands in `golden/`."""

from __future__ import annotations

import time
from pathlib import PurePath

import pytest

from recollect.ingest.sources import claude_code
from recollect.types import Entry
from tests.transcripts import claude


def said(*lines: bytes) -> list[str]:
    """What entries come of these lines, in their last form."""
    state, offset = claude_code.begin(PurePath("p/s.jsonl")), 0
    found: dict[str, str] = {}
    for line in lines:
        for change in claude_code.fold(state, line, offset):
            assert isinstance(change, Entry)
            found[change.uuid] = change.content
        offset += len(line)
    return list(found.values())


def answer(number: int, text: str, identity: str = "msg_1") -> bytes:
    message = {"id": identity, "role": "assistant", "content": [{"type": "text", "text": text}]}
    return claude(number, "", role="assistant", message=message)


def test_a_line_that_stands_in_the_file_twice_is_said_once() -> None:
    one, two = answer(1, "I found the bug."), answer(2, "It is in the parser.")
    assert said(one, one, two, one, two) == ["I found the bug.\n\nIt is in the parser."]


def test_what_a_message_says_twice_stays() -> None:
    assert said(answer(1, "Done."), answer(2, "Done.")) == ["Done.\n\nDone."]
    assert said(answer(1, "Done."), answer(2, "Done.", "msg_2")) == ["Done.", "Done."]


@pytest.mark.parametrize(
    ("text", "own"),
    [
        ("<command-name>/clear</command-name>\n<command-args></command-args>", "/clear"),
        ("<command-message>x</command-message><command-name> review </command-name>", "/review"),
        ("<command-name>/fix</command-name><command-args>\n a < b && <x> \n</command-args>", "/fix a < b && <x>"),
        ("<command-name>/fix</command-name><command-args>never closed", "/fix"),
        ("<command-name>never closed", "<command-name>never closed"),
        ("<bash-input> cat < a.txt\n</bash-input>", "! cat < a.txt"),
        (
            "<bash-input>ls</bash-input> and <bash-input>pwd</bash-input> and <bash-input>",
            "! ls and ! pwd and <bash-input>",
        ),
        ("</bash-input> I ask about a tag", "</bash-input> I ask about a tag"),
    ],
)
def test_a_command_is_what_was_typed(text: str, own: str) -> None:
    assert said(claude(1, text)) == [own]


@pytest.mark.parametrize(
    "text",
    [
        "<command-name>" + " " * 6_000,
        "<command-name>x</command-name><command-args>" + " " * 6_000,
        "<bash-input>" + " " * 6_000 + "x",
        "<command-name>" * 40_000,
        "</bash-input>" + "<bash-input>" * 40_000,
    ],
    ids=lambda text: text[:24],
)
def test_a_hostile_text_costs_no_more_than_its_length(text: str) -> None:
    started = time.process_time()
    claude_code._own_words(text)
    assert time.process_time() - started < 0.5
