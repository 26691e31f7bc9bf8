"""Whole injected blocks are taken out, and nothing but them; nothing that repeats a memory is learnt again."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.blocks import END, PREFIX, TITLES, strip_blocks, without_memories
from recollect.inject import render
from recollect.inject.brief import Known, brief
from recollect.inject.values import Outcome, Section
from tests.injecting import a_memory

NOW = datetime(2026, 3, 10, 9, tzinfo=UTC)
MEMORIES = [a_memory("jwt", "Auth uses JWT tokens"), a_memory("tabs", "Indent by tabs", scope_id="p")]
BLOCKS = [
    render.rendered([render.made(each) for each in MEMORIES]),
    render.rendered([render.made(MEMORIES[0], section=Section.PINNED), render.made(MEMORIES[1])]),
    render.rendered(brief(Known("p", MEMORIES, outcomes=[Outcome("s@1", "2026-02-01", "Fixed it.", "")]), NOW)),
    f"{PREFIX}\n- likes tea\n{END}",
]
FORGED = (  # what no block is
    f"{PREFIX} quoted …",
    BLOCKS[0].removesuffix(END),
    BLOCKS[0].split("\n", 1)[1],
    "> " + BLOCKS[0].replace("\n", "\n> "),
    f"{PREFIX}\nMy question is this.\n{END}",
    f"{PREFIX}\n\n- one\n{END}",
    f"What is {PREFIX} for?",
    END,
)

words = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r[]"), max_size=40)
passages = st.lists(st.one_of(words, st.sampled_from(FORGED)), max_size=3).map("\n".join)


@given(words)
def test_text_without_a_block_is_the_same_object(text: str) -> None:
    assert strip_blocks(text) is text


@given(
    st.lists(st.tuples(st.sampled_from(BLOCKS), words), min_size=1, max_size=3), words, st.sampled_from(["\n", "\r\n"])
)
def test_what_stands_around_whole_blocks_survives_exactly(parts: list[tuple[str, str]], before: str, end: str) -> None:
    text = before + end + "".join(block.replace("\n", end) + end + after + end for block, after in parts)
    assert strip_blocks(text) == before + end + "".join(after + end for _, after in parts)


@given(passages, passages)
def test_words_survive_whatever_is_quoted_beside_a_whole_block(before: str, after: str) -> None:
    text = f"{before}\nMy first question.\n{BLOCKS[1]}\nMy second question.\n{after}"
    stripped = strip_blocks(text)
    assert stripped == f"{before}\nMy first question.\nMy second question.\n{after}"
    assert strip_blocks(stripped) is stripped


@pytest.mark.parametrize("forged", FORGED)
def test_a_quoted_or_half_block_is_the_persons_text(forged: str) -> None:
    text = f"hello\n{forged}\nMy question is this."
    assert strip_blocks(text) is text
    left = without_memories(text)
    assert left.startswith("hello") and left.endswith("My question is this.") and "JWT" not in left


@pytest.mark.parametrize("block", BLOCKS[:3])
def test_a_block_within_a_line_is_known_by_how_it_begins(block: str) -> None:
    assert strip_blocks(f"Hook says: {block} Why?") == "Hook says:  Why?"


def test_titles_are_those_of_the_blocks_that_are_written() -> None:
    rows = [row.removesuffix(":") for block in BLOCKS for row in block.split("\n") if row.endswith(":")]
    assert rows and set(rows) <= set(TITLES)


@pytest.mark.parametrize(
    "text",
    [
        f"{PREFIX}\n" + (" > `" * 50 + "\n") * 5_000,
        f"{PREFIX}\n" * 60_000 + END,
        f"{PREFIX} Notes from earlier" * 20_000 + END,
        f"- {PREFIX} Notes from earlier\n" * 20_000 + END,
        f"{PREFIX}\n" + "- a\n" * 50_000 + f"b\n{END}",
    ],
    ids=lambda text: text[:40],
)
def test_hostile_text_is_stripped_in_linear_time(text: str) -> None:
    assert strip_blocks("kept\n" * 100_000 + text) == "kept\n" * 100_000 + text
