"""The record: what files and agents' transcripts tell comes back, whatever happened to the database."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from recollect.app import Memory
from recollect.artifacts.document import Manifest, parse, rendered, sealed
from recollect.authors import by_form
from recollect.types import Role
from tests.conftest import Clock
from tests.test_extract import TALK, ingest
from tests.test_reindex import content, empty
from tests.transcripts import START, append, claude

ASKED = "Which branch, please?\n\nTraceback (most recent call last):\n  File \"tides.py\", line 3\nKeyError: 'tide'"


@pytest.fixture
def clock() -> Clock:
    return Clock(START + timedelta(days=1))


def aged(home: Path) -> None:
    """Make the canonical files those of the last release: without authors, events and trust."""
    sums: dict[str, str] = {}
    documents = {path: parse(path.read_text()) for path in sorted((home / "memory").glob("*--*.md"))}
    for path, found in documents.items():
        if not isinstance(found.head, Manifest):
            body = re.sub(r"(?m)(^### .*) · events=\d+$\n\n(?:^> .*\n)+", r"\1\n", found.body)
            body = re.sub(r"(?m)^(### .*?) · authors=\S*$", r"\1", body)
            body = re.sub(r"(?m)^(- \*\*\w+\*\* \([^)]*?), (?:said|chosen|found|noted|passed_on)\b", r"\1", body)
            head, body = sealed(found.head, body)
            path.write_text(rendered(head, body))
            sums[f"memory/{path.name}"] = head.content_sha256
    for path, found in documents.items():
        if isinstance(found.head, Manifest):
            told = found.head
            links = {
                name: tuple(replace(each, sha256=sums.get(each.path, each.sha256)) for each in getattr(told, name))
                for name in ("superseded", "compactions")
            }
            summed: Any = {
                f"{name}_sha256": sums.get(getattr(told, f"{name}_path") or "") for name in ("summary", "transcript")
            }
            path.write_text(rendered(*sealed(replace(told, **links, **summed), found.body)))


def said(memory: Memory) -> list[tuple[Any, ...]]:
    """What is known of who wrote each message, and of what it tells by its structure."""
    found = content(memory, {"memory_transcript_entries": "entry_uuid, role, content, authors, events"})
    return found["memory_transcript_entries"]


def answered(root: Path, memory: Memory) -> None:
    """A conversation with a paste, and with a question that the agent asked and the person answered."""
    path = ingest(memory, root, *TALK)
    append(path, claude(7, ASKED))
    question = {"question": "Which database?", "header": "Store", "options": [{"label": "PostgreSQL"}]}
    call = {"type": "tool_use", "id": "t1", "name": "AskUserQuestion", "input": {"questions": [question]}}
    told = 'User has answered your questions: "Which database?"="PostgreSQL". You can now continue.'
    result = {"type": "tool_result", "tool_use_id": "t1", "content": told}
    answers = {"questions": [question], "answers": {"Which database?": "PostgreSQL"}}
    append(path, claude(8, [call], role="assistant"))
    append(path, claude(9, [result], toolUseResult=answers) + claude(10, "Done.", role="assistant"))
    memory.ingest(folder=root)
    memory.process(now=True)


# Files of the last release


def test_files_that_tell_no_authors_take_none_away(memory: Memory, root: Path) -> None:
    answered(root, memory)
    before = said(memory)
    assert any(row[-1] for row in before) and all(row[-2] for row in before)
    aged(memory.settings.home)
    assert memory.reindex(full=True).problems == []
    assert said(memory) == before


def test_messages_of_such_files_alone_have_the_authors_of_their_form(memory: Memory, root: Path) -> None:
    answered(root, memory)
    aged(memory.settings.home)
    empty(memory)
    assert memory.reindex().problems == []
    rows = said(memory)
    assert [row[3] for row in rows] == [by_form(row[2], Role(row[1])) for row in rows]
    assert {row[4] for row in rows} == {""} and "pasted" in str(rows)
    assert memory.reindex(full=True).problems == [] and said(memory) == rows
    with memory.database.write() as tx:  # somebody changes a message: its authors fit the text of the file again
        tx.run("UPDATE memory_transcript_entries SET content = 'wrong', authors = 'typed:5'")
    memory.reindex(full=True)
    assert said(memory) == rows
