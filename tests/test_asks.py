"""What a prompt asks of memory itself."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.inject.asks import of_last_time, subject


@pytest.mark.parametrize(
    ("prompt", "named"),
    [
        ("What do we know about the auth system?", "auth"),
        ("how does auth work here?", "auth"),
        ("Alice: how does our rate limiting work?", "rate limiting"),
        ("ok, tell me about our deployment setup", "deployment"),
        ("what are the rules for releases?", "releases"),
        ("Hi! Anything I should know about the billing worker?", "billing worker"),
        ("what did we decide about Redis last time?", "Redis"),
        ("what should I know before touching the payments code?", "payments code"),
        ("any gotchas with the importer", "importer"),
        ("can you summarise what we know about testing?", "testing"),
        ("remind me how deploys work", "deploys"),
        ("what conventions do we have for migrations?", "migrations"),
        ("give me an overview of the API", "API"),
        ("what do we know about rebases, like what do they all break for us?", "rebases"),
        ("what do we know about windows, does it run there at all?", "windows"),
        ("what do we know about tokens, keys and seals?", "tokens, keys and seals"),
        ("I'm new on the team: how does the harbour login work here?", "harbour login"),
    ],
)
def test_a_prompt_that_asks_what_is_known_names_its_subject(prompt: str, named: str) -> None:
    assert subject(prompt) == named and not of_last_time(prompt)


@pytest.mark.parametrize(
    "prompt",
    [
        "what did we leave open last time?",
        "Where were we?",
        "hey, where did we leave off",
        "what's left to do?",
        "what is still open",
        "let's continue where we left off",
        "pick up where we stopped",
        "what did we do yesterday?",
        "what were we working on?",
        "what was I doing in the last session",
        "what happened last time?",
        "any open threads?",
        "recap the last session",
        "did we finish the invoices last time?",
        "how far did we get?",
    ],
)
def test_a_prompt_that_asks_for_the_last_sessions_is_understood(prompt: str) -> None:
    assert of_last_time(prompt)


@pytest.mark.parametrize(
    "prompt",
    [
        "How do I add a column?",
        "write a summary of the release notes",
        "what is the capital of France?",
        "where do we store the keys?",
        "where are we deploying to?",
        "what's left of the list after slicing it?",
        "explain recursion",
        "how do bloom filters work?",
        "explain how mortgages work",
        "what did we use before that?",
        "what do we store about players?",
        "fix the last test",
        "what does `tide doctor` print if I'm not in a folder?",
        "can we also track how long a ship was in the harbour since we last looked?",
        "can we also know how old a ship is?",
        "what does our login print if nobody is there?",
        "open the file",
        "good morning",
        "",
    ],
)
def test_other_prompts_ask_neither(prompt: str) -> None:
    assert subject(prompt) == "" and not of_last_time(prompt)


@given(st.text(max_size=400))
def test_any_text_is_read(prompt: str) -> None:
    assert len(subject(prompt)) <= 300 and of_last_time(prompt) in (True, False)


@pytest.mark.parametrize("piece", ["what do we know about ", "the ", "where were ", "a" * 9 + " ", "so, "])
def test_long_prompts_are_read_in_no_time(piece: str) -> None:
    started = time.perf_counter()
    for text in (piece * 40_000, (piece * 60)[:299]):
        subject(text), of_last_time(text)
    assert time.perf_counter() - started < 1.0
