"""History says what was said: a summary holds its own conversation's words; what is one memory is known to the rows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from recollect.app import Memory
from recollect.artifacts import rows, sets
from recollect.artifacts.document import Content, Manifest, parse, rendered, sealed
from recollect.search.values import ALL_PROJECTS
from recollect.store import memories
from recollect.types import Remembered, moment
from tests.conftest import Clock
from tests.test_reindex import DERIVED, content, empty
from tests.transcripts import START, claude, write

NAMES = tuple("clamp midnight harbour lantern quartz saffron thistle umber velvet willow yarrow zephyr".split())
DAY = 24 * 60 * 60


def spoken(number: int) -> tuple[str, ...]:
    """What the user says on a day, between the agent's answers: nearly the same on each."""
    name = NAMES[number]
    return (
        f"Always run the whole billing suite with a frozen clock before you merge a change, say for {name}.",
        f"The nightly export of the ledger starts at {number + 1}:15 and must be done at {number + 2}:30.",
        f'We decided on 2026-03-{number + 2:02d} to call the release branch "rel-{name}" from now on.',
        f"Our contact for the invoices of the printing house is {name.capitalize()}, call them first.",
        f"Never deploy the billing service on a day on which {name.capitalize()} is on call.",
    )


def session(number: int) -> str:
    return f"{number:08d}-2222-4333-8444-555555555555"


def say(root: Path, number: int) -> None:
    texts = [text for said in spoken(number) for text in (f"please remember: {said}", "Understood, I will.")]
    lines = [
        claude(n, text, role=("user", "assistant")[n % 2], session=session(number), at=number * DAY + 60 * n)
        for n, text in enumerate(texts)
    ]
    write(root / "-code-tides" / f"{session(number)}.jsonl", b"".join(lines))


@pytest.fixture
def clock() -> Clock:
    return Clock(START)


def of_each(memory: Memory) -> Iterator[tuple[str, str, str]]:
    """(session key, summary, transcript) of each conversation."""
    folder = memory.settings.home / "memory"
    for path in sorted(folder.glob("*--summary.md")):
        text = path.read_text()
        said = path.with_name(path.name.replace("--summary", "--transcript")).read_text()
        yield parse(text).head.session_key, text, said


def told(text: str) -> set[str]:
    """Every name, number, date and quotation; links, checksums and the names of memories and versions aside."""
    text = re.sub(r"\[\[.*?\]\]|\^m-\w+-r\d+|(?m:^(?:\w+_sha256|strategy|parts): .*$)", "", text).replace("\\", "")
    names = {name for name in NAMES if name in text.lower()}
    return names | set(re.findall(r"\d[\d.,:/TZ-]*\d|\d", text)) | set(re.findall(r'"rel-[^"]*"', text))


def held(memory: Memory) -> list[Remembered]:
    with memory.database.read() as tx:
        return memories.all_of(tx, memory.owner)


def check(memory: Memory) -> None:
    """No summary says what its transcript does not; the rows say what the summaries do."""
    by_key = {}
    for key, summary, transcript in of_each(memory):
        strange = told(summary) - told(re.sub("(?m)^memory_sentence: .*$", "", transcript))
        assert not strange, f"{key} holds {strange}:\n{summary}"
        by_key[key] = rows.parsed_summary(parse(summary)).memories
    assert len(by_key) == len(NAMES)
    revisions = {(each.id, each.revision): each for each in held(memory)}
    stated = {(each.id, each.revision): each.sources for several in by_key.values() for each in several}
    assert revisions.keys() == stated.keys()
    for (memory_id, revision), each in revisions.items():
        states = [
            one for several in by_key.values() for one in several if (one.id, one.revision) == (memory_id, revision)
        ]
        assert {source for one in states for source in one.sources} == set(each.sources)
        first = min(states, key=lambda one: (one.created_at, one.valid_from))
        assert (each.text, each.valid_from) == (first.text, first.valid_from), "of who told it first"
        assert each.sources[0] in first.sources, "and that one is named first"
    for hit in memory.search("run the billing suite with a frozen clock", scope=ALL_PROJECTS, kinds=["memory"]):
        assert hit.text in (memory.settings.home / hit.path).read_text(), "what a hit says stands where it leads"


@pytest.mark.parametrize("at_once", [True, False], ids=["at once", "day by day"])
def test_history_says_what_was_said(memory: Memory, root: Path, clock: Clock, at_once: bool) -> None:
    for number in range(len(NAMES)):
        say(root, number)
        clock.now = START + timedelta(days=number, hours=3)
        if not at_once:
            memory.ingest(folder=root)
            memory.process()
    memory.ingest(folder=root)
    memory.process()
    check(memory)
    found = held(memory)
    shared = [each for each in found if len({key for key, _ in each.sources}) > 1]
    assert shared and max(each.revision for each in found) > 1, "what is one memory is one, though it is told apart"
    for each in found:
        assert moment(each.created_at) == min(moment(one.created_at) for one in found if one.id == each.id)
    before = content(memory, {name: DERIVED[name] for name in ("memory_memories", "memory_sources")})
    empty(memory)
    memory.reindex()
    assert content(memory, {name: DERIVED[name] for name in ("memory_memories", "memory_sources")}) == before


def test_every_session_has_its_summary_and_its_row(memory: Memory, root: Path, clock: Clock) -> None:
    asked = ("Why is the lock gate at the old harbour slow today?", "Show me the log of the tide gauge.", "thanks, bye")
    for number, question in enumerate(asked):
        lines = [
            claude(n, text, role=("user", "assistant")[n % 2], session=session(number), at=number * DAY + 60 * n)
            for n, text in enumerate((question, "Here it is.") * 3)
        ]
        write(root / "-code-tides" / f"{session(number)}.jsonl", b"".join(lines))
    clock.now = START + timedelta(days=len(asked), hours=3)
    memory.ingest(folder=root)
    report = memory.process()
    assert (report.succeeded, report.succeeded_no_output + report.skipped) == (0, len(asked))
    assert not held(memory) and len(list(of_each(memory))) == len(asked)
    for _, summary, _ in of_each(memory):
        head, told = parse(summary).head, rows.parsed_summary(parse(summary))
        assert (
            isinstance(head, Content)
            and head.memory_sentence in told.summary
            and not told.memories
            and not told.raw_memory
        )
    listed = (memory.settings.home / "MEMORY.md").read_text()
    assert "lock gate" in listed and "tide gauge" in listed and "No conversation in this time" not in listed
    assert [listed.count(f"session={session(number)}") for number in range(len(asked))] == [1] * len(asked)
    assert {str(each.status) for each in memory.conversations()} == {"skipped"}
    assert memory.consolidate().outcome == "no_input" and not memory.health().problems
    columns = {name: what for name, what in DERIVED.items() if name != "memory_artifacts"}
    before, written = content(memory, columns), sorted(text for _, text, _ in of_each(memory))
    for path in sorted((memory.settings.home / "memory").glob("*--summary.md")):
        path.unlink()
    for path in sorted((memory.settings.home / "memory").glob("*--manifest.md")):
        head = parse(path.read_text()).head
        assert isinstance(head, Manifest)
        was, _ = sealed(older := replace(head, summary_path=None, summary_sha256=None), sets.manifest_body(older))
        path.write_text(rendered(was, sets.manifest_body(older)))  # as versions before left it
    empty(memory)
    memory.reindex()
    memory.process()
    assert sorted(text for _, text, _ in of_each(memory)) == written
    empty(memory)
    memory.reindex()
    assert content(memory, columns) == before
