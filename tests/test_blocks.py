"""Injected blocks are taken out whole, and nothing but them."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from recollect.blocks import END, PREFIX, strip_blocks

QUOTES = ["", "  ", "\t", "> ", ">> ", "> > ", "* ", "    ", "`", "** "]
REMEMBERED = "remembered"

words = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r[]"), max_size=40)
lines = st.lists(words.map(lambda text: text.replace("\n", " ")), max_size=4)


def block(inside: list[str], quote: str = "", end: str = END + "\n") -> str:
    """A block as an agent may quote it."""
    return f"{quote}{PREFIX}\n" + "".join(f"{quote}{REMEMBERED} {line}\n" for line in inside) + (end and quote + end)


def text_of(parts: list[str]) -> str:
    return "".join(part + "\n" for part in parts)


@given(words)
def test_text_without_a_block_is_the_same_object(text: str) -> None:
    assert strip_blocks(text) is text


@given(lines, st.sampled_from(QUOTES), lines, st.sampled_from(QUOTES), lines)
def test_what_stands_around_blocks_survives_and_nothing_of_them(
    before: list[str], quote: str, inside: list[str], other: str, after: list[str]
) -> None:
    text = text_of(before) + block(inside, quote) + text_of(after) + block(inside, other) + text_of(before)
    assert strip_blocks(text) == text_of(before) + text_of(after) + text_of(before)


@given(lines, st.sampled_from(QUOTES), lines)
def test_a_block_without_an_end_goes_to_the_end_of_the_message(
    before: list[str], quote: str, inside: list[str]
) -> None:
    text = text_of(before) + block(inside, quote, end="")
    assert strip_blocks(text) == text_of(before)


@given(
    st.lists(
        st.sampled_from([PREFIX, END, "\n", " ", "> ", "`", "1. ", "said", PREFIX[:9], "\r\n", "\x85"]), max_size=24
    )
)
def test_stripping_twice_is_stripping_once(parts: list[str]) -> None:
    once = strip_blocks("".join(parts))
    assert strip_blocks(once) == once


@given(lines, lines)
def test_a_text_that_only_mentions_the_words_keeps_them(before: list[str], after: list[str]) -> None:
    assume(not any(line.strip(" \t>*`") == "" for line in before[-1:]))
    text = text_of(before) + f"What is {PREFIX} for?\n" + text_of(after)
    assert strip_blocks(text) == text


def test_an_end_without_a_beginning_is_kept() -> None:
    assert strip_blocks(f"one\n{END}\ntwo") == f"one\n{END}\ntwo"


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_a_block_with_either_newline_goes(newline: str) -> None:
    text = newline.join(["before", PREFIX, REMEMBERED, END, "after"])
    assert strip_blocks(text) == newline.join(["before", "after"])


def test_the_text_after_the_end_of_a_block_in_the_middle_of_a_message_survives() -> None:
    assert strip_blocks(f"{PREFIX}\n- likes tea\n{END}\nWhat do I like?") == "What do I like?"


@pytest.mark.parametrize("middle", ["\n- likes tea\n", " likes tea "])
def test_the_text_after_the_end_of_a_block_on_the_same_line_survives(middle: str) -> None:
    assert "What do I like?" in strip_blocks(f"{PREFIX}{middle}{END} What do I like?")


def test_a_long_text_without_an_end_is_stripped_in_linear_time() -> None:
    text = f"{PREFIX}\n" + (" > `" * 50 + "\n") * 5_000
    assert strip_blocks(text) == ""
    assert strip_blocks("kept\n" * 200_000 + text) == "kept\n" * 200_000
