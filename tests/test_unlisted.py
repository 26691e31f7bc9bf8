"""Sessions that match `test_sessions` are kept on disk, and shown and told nowhere."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from recollect.app import Memory, open_memory
from recollect.search.values import ALL_PROJECTS
from recollect.surfaces.mcp.scope import Launch
from recollect.surfaces.mcp.server import build
from tests.command import run
from tests.conftest import Clock, Place
from tests.test_extract import OTHER, Scripted, by, extract, ingest, one_memory
from tests.test_mcp import call
from tests.transcripts import START

TEST = "test-4711"
PROJECT = "/code/tides"
WORD = "Zanzibarquelle"  # stands in the test's session alone
RULE = f"Please always run make {WORD} before you commit, the pipeline rejects everything else."
FACT = "Remember: Our staging server is tide-stg-2 and Priya owns it."
REST = ("Understood.", f"Remember: the {WORD} gauge is read by Priya.", "Noted.", "Show me the table.", "Here it is.")
PROMPT = f"what do I run before I commit, make {WORD}?"


@pytest.fixture
def clock() -> Clock:
    return Clock(START + timedelta(days=1))


def opened(place: Place, clock: Clock, **flags: Any) -> Memory:
    return open_memory(place.home, database=place.url, clock=clock, **flags)


@pytest.fixture
def kept(memory: Memory, root: Path, clock: Clock) -> Iterator[Memory]:
    """A session of a test beside another one, extracted and consolidated."""
    ingest(memory, root, RULE, *REST, name=TEST)
    ingest(
        memory, root, FACT, "Noted.", "We deploy on Mondays.", "Good.", "Show me the table.", "Here it is.", name=OTHER
    )
    assert memory.process(now=True).succeeded == 2
    memory.consolidate(now=True)
    memory.embed()
    yield memory


def below(memory: Memory, pattern: str) -> str:
    return "".join(each.read_text() for each in sorted(memory.settings.home.glob(pattern)) if each.is_file())


def by_mcp(memory: Memory, tool: str, **arguments: Any) -> str:
    return repr(call(build(memory, Launch()), tool, project=PROJECT, **arguments).content)


SURFACES: dict[str, Callable[[Memory], str]] = {
    "MEMORY.md": lambda memory: below(memory, "MEMORY.md"),
    "workspace": lambda memory: below(memory, "workspace/**/*"),
    "context": lambda memory: below(memory, "context/*"),
    "search": lambda memory: repr(memory.search(f"make {WORD}", scope=ALL_PROJECTS)),
    "search for memories": lambda memory: repr(memory.search(PROMPT, scope=PROJECT, kinds=["memory"])),
    "search for summaries": lambda memory: repr(memory.search(PROMPT, scope=PROJECT, kinds=["summary"])),
    "search for messages": lambda memory: repr(memory.search(PROMPT, scope=PROJECT, kinds=["entry"])),
    "timeline": lambda memory: repr(memory.timeline(project=None)),
    "briefing": lambda memory: memory.briefing.orientation(PROJECT),
    "a prompt's block": lambda memory: memory.context(PROJECT, PROMPT).text,
    "an injector's block": lambda memory: memory.injector(PROJECT).prepare([], PROMPT).given.text,
    "MCP search": lambda memory: by_mcp(memory, "search_memory", query=PROMPT),
    "MCP sessions": lambda memory: by_mcp(memory, "recent_sessions"),
    "MCP context": lambda memory: by_mcp(memory, "memory_context", prompt=PROMPT),
}


@pytest.mark.parametrize("surface", SURFACES)
def test_a_session_of_a_test_is_told_nowhere(kept: Memory, database_url: Place, clock: Clock, surface: str) -> None:
    told = SURFACES[surface](kept)
    assert WORD not in told and TEST not in told
    with opened(database_url, clock, test_sessions=[]) as every:
        every.consolidate(now=True)
        every.briefing.refresh()
        every.process(now=True)
        every._projection.update()
        told = SURFACES[surface](every)
        assert WORD in told or TEST in told, "the setting alone hides it"


def test_it_is_kept_and_read_by_its_name(kept: Memory, database_url: Place) -> None:
    assert {each.session_id for each in kept.conversations()} == {TEST, OTHER}
    assert WORD in kept.open(TEST).text and WORD in repr(kept.show(TEST))
    with kept.database.read() as tx:
        ((name,),) = tx.rows("SELECT memory_id FROM memory_memories WHERE text LIKE :word", {"word": f"%make {WORD}%"})
    assert WORD in repr(kept.show(name)) and WORD in repr(kept.timeline(project=None, memory=name))
    done = run(database_url.home, "conversations", "--json", RECOLLECT_DATABASE=database_url.url)
    assert TEST in {each["session_id"] for each in json.loads(done.stdout)}


def test_what_another_session_says_too_is_told(kept: Memory, root: Path) -> None:
    ingest(kept, root, RULE, *REST, name="33333333-2222-4333-8444-555555555555")
    assert kept.process(now=True).succeeded == 1
    assert WORD in repr(kept.search(PROMPT, scope=PROJECT)) and WORD in kept.briefing.orientation(PROJECT)
    told = (kept.timeline(project=None), kept.search(PROMPT, scope=PROJECT), kept.briefing.orientation(PROJECT))
    assert TEST not in repr(told)


@pytest.mark.parametrize(("name", "holds"), [(TEST, True), ("33333333-2222-4333-8444-555555555555", False)])
def test_a_test_changes_nothing_that_others_say(memory: Memory, root: Path, name: str, holds: bool) -> None:
    rule = "please always run make lint before you commit"
    for text, session in ((rule, OTHER), (rule.replace("always", "never"), name)):
        ingest(memory, root, text, *REST, name=session)
        extract(memory, by(Scripted(partial(one_memory, text=text)))).run(now=True)
    hits = memory.search("lint before a commit", scope=PROJECT, kinds=["memory"])
    assert (rule in {hit.text for hit in hits}) == holds and len(hits) == 1
