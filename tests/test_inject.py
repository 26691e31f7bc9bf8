"""The injector: what is given and held back, what happens to blocks, and the specification's checklist by item."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai.messages import ModelResponse

from recollect import ALL_PROJECTS, InjectorConfig, open_memory, render_for_compaction
from recollect.app import Memory
from recollect.blocks import END, PREFIX, escape
from recollect.errors import UsageError
from recollect.inject import render
from recollect.inject.plan import Seen, choose, plan, visible
from recollect.inject.select import importance
from recollect.inject.values import Given, Line, Section, configured
from recollect.store import memories
from recollect.store.memories import Use
from recollect.text import estimate_tokens
from recollect.types import MemoryKind, Remembered, Scope, Severity
from tests.conftest import Clock, Place
from tests.injecting import FORMS, PROJECT, a_memory, answer, day, drop, names, put, shown, tool_use, user
from tests.transcripts import SESSION, claude, texts, write

AUTH = [
    a_memory("jwt", "Auth uses JWT tokens signed with Ed25519"),
    a_memory("rotate", "Auth signing keys rotate every ninety days"),
]
DATABASE = [
    a_memory("pg", "The database is PostgreSQL sixteen behind pgbouncer"),
    a_memory("vacuum", "The database vacuum runs at night on the replica"),
]
ABOUT_AUTH = "How are auth tokens signed with JWT, and when do the auth signing keys rotate?"
ABOUT_DATABASE = (
    "Is the database PostgreSQL behind pgbouncer, and does the database vacuum run at night on the replica?"
)
ANSWER = {"role": "assistant", "content": "So it is."}


def candidate(memory: Remembered, score: float) -> Line:
    return render.made(memory, render.WHOLE, score=score)


@pytest.fixture
def memory(tmp_path: Path, clock: Clock) -> Iterator[Memory]:
    with open_memory(tmp_path / ".recollect", clock=clock) as opened:
        put(opened, *AUTH, *DATABASE)
        yield opened


@pytest.fixture
def either(database_url: Place, clock: Clock) -> Iterator[Memory]:
    """On both databases."""
    with open_memory(database_url.home, database=database_url.url, clock=clock) as opened:
        put(opened, *AUTH, *DATABASE)
        yield opened


def turns(memory: Memory, *prompts: str, history: list[Any] | None = None, **settings: Any) -> list[Any]:
    """The history after so many turns."""
    injector = memory.injector(PROJECT, **settings)
    history = history or []
    for prompt in prompts:
        injector.prepare(history, prompt)
        history = injector.commit(ANSWER)
    return history


def given(memory: Memory, prompt: str, history: list[Any] | None = None, **settings: Any) -> Given:
    return memory.injector(PROJECT, **settings).prepare(history or [], prompt).given


def ids(history: list[Any]) -> list[list[str]]:
    """Of each block, sorted."""
    return [sorted(row.id.removeprefix("m-") for row in rows) for _, rows in shown(history)]


# The specification's checklist, by item


@pytest.mark.parametrize("cap", [1, 2, 3, 5])
def test_checklist_1_there_are_never_more_blocks_than_the_cap(memory: Memory, cap: int) -> None:
    injector, history = memory.injector(PROJECT, max_injected_blocks_in_history=cap, context_window_depth=0), []
    for number in range(12):
        prepared = injector.prepare(history, [ABOUT_AUTH, ABOUT_DATABASE][number % 2])
        assert len(shown(prepared.history)) == min(number + 1, cap)
        history = injector.commit(ANSWER)
    assert len(shown(history)) == cap


def test_checklist_2_a_cap_of_zero_is_ephemeral(memory: Memory) -> None:
    injector = memory.injector(PROJECT, max_injected_blocks_in_history=0)
    prepared = injector.prepare(turns(memory, ABOUT_AUTH), ABOUT_DATABASE)
    assert ids(prepared.history) == [["pg", "vacuum"]], "only this turn's"
    history = injector.commit(ANSWER)
    assert shown(history) == [] and history[-2:] == [{"role": "user", "content": ABOUT_DATABASE}, ANSWER]
    assert sorted(names(injector.prepare(history, ABOUT_DATABASE).given.lines)) == ["pg", "vacuum"], (
        "nothing is held back"
    )


def test_checklist_3_a_compaction_has_nothing_in_it_that_was_injected(memory: Memory) -> None:
    history = turns(memory, ABOUT_AUTH, ABOUT_DATABASE, "Thanks!")
    quoted = "> " + shown(history)[0][0].replace("\n", "\n> ")
    history += [{"role": "user", "content": "Quote it."}, {"role": "assistant", "content": f"Here:\n{quoted}\nDone."}]
    told = render_for_compaction(history)
    assert PREFIX not in told and END not in told and "m-" not in told
    assert not any(each.text in told for each in (*AUTH, *DATABASE))
    assert told.startswith(f"User: {ABOUT_AUTH}\n\nAssistant: So it is.") and told.endswith("Here:\nDone.")


def test_checklist_4_follow_ups_on_a_topic_keep_its_block_visible(memory: Memory) -> None:
    history = turns(memory, ABOUT_AUTH, "Why that?", "And that?")
    assert ids(history)[0] == ["jwt", "rotate"]


def test_checklist_5_another_topic_evicts_the_oldest_block(memory: Memory) -> None:
    put(
        memory,
        a_memory("pump", "The pond pump is in the garden shed"),
        a_memory("cat", "The cat food is in the cellar"),
    )
    prompts = [ABOUT_AUTH, ABOUT_DATABASE, "Where is the pond pump?", "Where is the cat food?"]
    assert ids(turns(memory, *prompts)) == [["pg", "vacuum"], ["pump"], ["cat"]]


def test_checklist_6_a_visible_memory_is_not_given_again_within_the_depth(memory: Memory) -> None:
    history = turns(memory, ABOUT_AUTH)
    for age in range(1, 13):
        block = given(memory, ABOUT_AUTH, history)
        if age <= 10:
            assert block.lines == () and block.held[0].reason == f"visible: given {age} turn{'s' * (age > 1)} ago"
        else:
            assert sorted(names(block.lines)) == ["jwt", "rotate"]
        history += [{"role": "user", "content": "Thanks!"}, ANSWER]


def test_checklist_7_what_was_injected_is_not_saved_as_a_memory_again(memory: Memory, tmp_path: Path) -> None:
    block = given(memory, ABOUT_AUTH).text
    before = [each.text for each in memory.memories()]
    said = [f"{block}\n\n{ABOUT_AUTH}", f"As memory says:\n\n{block}", f"{block}", "```\n" + block + "\n```"]
    lines = [claude(n, text, role=("user", "assistant")[n % 2]) for n, text in enumerate([*said, "And thanks."])]
    write(tmp_path / "projects" / "-code-tides" / f"{SESSION}.jsonl", b"".join(lines))
    memory.ingest(folder=tmp_path / "projects", source="claude-code")
    memory.process(now=True)
    assert sorted([each.text for each in memory.memories()]) == sorted(before)
    assert texts(memory) and not any(PREFIX in text or "m-" in text for text in texts(memory))


def test_checklist_8_a_branch_that_is_forked_sees_the_block(memory: Memory) -> None:
    history = turns(memory, ABOUT_AUTH)
    branch = list(history)
    assert given(memory, ABOUT_AUTH, branch).lines == (), "another injector knows from the history alone"
    assert sorted(names(given(memory, ABOUT_AUTH, branch[1:]).lines)) == ["jwt", "rotate"], (
        "a branch without it gets it"
    )


def test_checklist_9_truncation_by_the_caller_is_noticed_and_mended(memory: Memory) -> None:
    history = turns(memory, ABOUT_AUTH, ABOUT_DATABASE)
    tool = {"role": "tool", "tool_call_id": "c1", "content": "seen"}
    for first in range(len(history) + 1):
        prepared = memory.injector(PROJECT).prepare([tool, *history[first:]], ABOUT_AUTH)
        assert ("jwt" in str(prepared.history)) and prepared.history[0] == tool
    injector = memory.injector(PROJECT)
    injector.prepare([], ABOUT_AUTH)
    assert injector.prepare(injector.commit(ANSWER)[1:], "Thanks!").repairs == (
        "of the blocks in the history 1 went or changed: what left is free again",
    )
    text = history[0]["content"]
    for at, notice in itertools.product(range(len(PREFIX), len(text), 7), ("", "…", " ...")):
        cut = [{"role": "user", "content": text[:at] + notice}, *history[1:]]
        assert memory.injector(PROJECT).strip(cut) == memory.injector(PROJECT).strip(history), f"cut at {at}"
        prepared = memory.injector(PROJECT).prepare(cut, ABOUT_AUTH)
        assert prepared.repairs == ("a block was cut: what is left of it was mended or taken out",)
        there = [name for block in ids(prepared.history) for name in block]
        assert sorted(there) == ["jwt", "pg", "rotate", "vacuum"], "each once: held back, or given again"
        assert all(each.endswith(END) for each, _ in shown(prepared.history))
    for at in [n + 1 for n, letter in enumerate(text) if letter == "\n"]:
        prepared = memory.injector(PROJECT).prepare([{"role": "user", "content": text[at:]}, *history[1:]], ABOUT_AUTH)
        assert sorted(name for block in ids(prepared.history) for name in block) == ["jwt", "pg", "rotate", "vacuum"]
        assert {"role": "user", "content": text[at:]} not in prepared.history


@pytest.mark.parametrize("behind", ["", f"\n\n{ABOUT_AUTH}"])
def test_what_is_left_of_a_block_without_its_beginning_is_a_block(memory: Memory, behind: str) -> None:
    history = turns(memory, ABOUT_AUTH)
    drop(memory, AUTH[0])
    text, said = history[0]["content"], behind.strip()
    for at in range(1, text.index(END) + 1):
        for notice in ("", "..."):
            cut = [{"role": "user", "content": notice + text[at:] + behind}, *history[1:]]
            injector = memory.injector(PROJECT)
            assert "m-jwt" not in str(injector.prepare(cut, "Thanks!").history), f"erased, and cut at {at}"
            assert injector.strip(cut) == [*([{"role": "user", "content": said}] if said else []), *history[1:]]


def test_words_of_a_user_are_no_rest_of_a_block(memory: Memory) -> None:
    line = render.row(render.made(AUTH[0]))
    for words in (
        f"Is this right?\n{line}\n{END}",
        f"followed.\n{line}\nOr not?\n{END}",
        f"It ended with\n{END}",
        line,
    ):
        history = [{"role": "user", "content": words}, ANSWER]
        assert memory.injector(PROJECT).strip(history) == [{"role": "user", "content": escape(words)}, ANSWER]


# Decision 10: visible means visible


def test_a_superseding_revision_passes_and_displaces_the_stale_line_and_nothing_else(memory: Memory) -> None:
    history = turns(memory, ABOUT_AUTH)
    (kept,) = [row.text for row in shown(history)[0][1] if row.id == "m-rotate"]
    put(memory, replace(AUTH[0], revision=2, text="Auth uses opaque tokens", valid_from=day(5)))
    prepared = memory.injector(PROJECT).prepare(history, "Thanks!")  # whatever the prompt is
    (old, old_rows), (_, new_rows) = shown(prepared.history)
    assert [row.text for row in old_rows] == [kept] and old == "\n".join(
        line for line in history[0]["content"].split("\n") if "m-jwt" not in line
    )
    assert [(row.id, row.revision) for row in new_rows] == [("m-jwt", 2)]
    assert prepared.given.lines[0].reason == "replaces an earlier revision that was shown"
    assert prepared.repairs == ("m-jwt no longer says that: its line left the history",)
    assert prepared.history[1:3] == history[1:3], "messages that did not change are the same"


def test_a_block_whose_lines_end_otherwise_is_visible_and_corrected_too(memory: Memory) -> None:
    history = turns(memory, ABOUT_AUTH)
    history[0] = {**history[0], "content": history[0]["content"].replace("\n", "\r\n")}
    assert given(memory, ABOUT_AUTH, history).lines == ()
    put(memory, replace(AUTH[0], revision=2, text="Auth uses opaque tokens", valid_from=day(5)))
    assert ids(memory.injector(PROJECT).prepare(history, "Thanks!").history) == [["rotate"], ["jwt"]]


@pytest.mark.parametrize("form", FORMS)
def test_a_correction_stays_while_tools_are_asked(memory: Memory, form: str) -> None:
    injector = memory.injector(PROJECT, form=form)
    injector.prepare([], user(form, ABOUT_AUTH))
    history = injector.commit(answer(form, "So it is."))
    put(memory, replace(AUTH[0], revision=2, text="Session cookies replaced all of it", valid_from=day(5)))
    injector.prepare(history, user(form, "Write a haiku about cats"))
    history = injector.commit(tool_use(form, "c1"))
    assert ("m-jwt", 2) in keys(injector.prepare(history).history)


@pytest.mark.parametrize("form", FORMS)
def test_a_correction_that_comes_while_tools_are_asked_is_given(memory: Memory, form: str) -> None:
    injector = memory.injector(PROJECT, form=form)
    injector.prepare([], user(form, ABOUT_AUTH))
    call, result = tool_use(form, "c1")
    history = injector.commit(call)
    put(memory, replace(AUTH[0], revision=2, text="Session cookies replaced all of it", valid_from=day(5)))
    assert ("m-jwt", 2) in keys(injector.prepare(history, result).history)
    history = injector.commit(answer(form, "So it is."))
    assert ("m-jwt", 2) in keys(injector.prepare(history, user(form, "Write a haiku about cats")).history)


def test_a_correction_has_its_place_before_everything_else(memory: Memory) -> None:
    history = turns(memory, ABOUT_AUTH)
    rules = [
        a_memory(str(number), f"Rule {word} of the house", pinned=True, severity=Severity.MUST)
        for number, word in enumerate("one two three four five six seven eight nine ten eleven twelve".split())
    ]
    put(memory, *rules, replace(AUTH[0], revision=2, text="Session cookies replaced all of it", valid_from=day(5)))
    assert ("m-jwt", 2) in keys(memory.injector(PROJECT).prepare(history, "Thanks!").history)


@pytest.mark.parametrize("most", [1, 10])
def test_all_corrections_are_given_at_once_however_many_and_however_alike(memory: Memory, most: int) -> None:
    history = turns(memory, ABOUT_AUTH)
    said = "Since the last audit the {} team in Kiel keeps these secrets in its own locked vault downstairs"
    for held, team in zip(AUTH, ("billing", "search"), strict=True):
        put(memory, replace(held, revision=2, text=said.format(team), valid_from=day(5)))
    sent = memory.injector(PROJECT, max_total=most).prepare(history, "Thanks!").history
    assert sorted(keys(sent)) == [("m-jwt", 2), ("m-rotate", 2)]
    put(memory, replace(AUTH[1], revision=3, text=said.format("search") + " now", valid_from=day(6)))
    assert sorted(keys(memory.injector(PROJECT, max_total=most).prepare(sent).history)) == [
        ("m-jwt", 2),
        ("m-rotate", 3),
    ], "and what this turn was given stays"


def keys(history: list[Any]) -> list[tuple[str, int]]:
    return [(row.id, row.revision) for _, rows in shown(history) for row in rows]


def test_an_erased_memory_leaves_the_visible_blocks(memory: Memory) -> None:
    history = turns(memory, ABOUT_AUTH)
    drop(memory, AUTH[0])
    prepared = memory.injector(PROJECT).prepare(history, "Thanks!")
    assert ids(prepared.history) == [["rotate"]]
    assert prepared.repairs == ("m-jwt is not in this memory: its line left the history",)
    drop(memory, AUTH[1])
    sent = memory.injector(PROJECT).prepare(history, "Thanks!").history
    assert shown(sent) == [] and len(sent) == 3, "an empty block leaves as a whole"


def test_a_memory_that_a_person_calls_wrong_leaves_too_and_is_not_given(memory: Memory) -> None:
    real = memory.remember("The changelog is written in prose", project=_folder(memory))
    scope = str(_folder(memory))
    history = memory.injector(scope)
    prompt = "How is the changelog written?"
    assert [line.id for line in history.prepare([], prompt).given.lines] == [real.id]
    kept = history.commit(ANSWER)
    memory.feedback(real.id, "not_ok")
    prepared = memory.injector(scope).prepare(kept, prompt)
    assert shown(prepared.history) == []
    assert prepared.repairs == (f"{real.id} was called wrong: its line left the history",)


def test_what_another_scope_was_given_leaves_and_the_reason_is_the_scope(memory: Memory) -> None:
    put(memory, a_memory("day", "Auth tokens expire after a day", scope=Scope.USER, scope_id=""))
    history = turns(memory, "How are auth tokens signed, and when do auth tokens expire?")
    assert {"jwt", "day"} <= set(ids(history)[0])
    prepared = memory.injector("example.com/ada/web").prepare(history, "Thanks!")
    assert ids(prepared.history) == [["day"]], "which holds everywhere"
    left = [f"m-{name} is not of this scope: its line left the history" for name in ids(history)[0] if name != "day"]
    assert list(prepared.repairs) == left


def test_a_purged_block_frees_its_memories_in_the_same_turn(memory: Memory) -> None:
    history = turns(memory, ABOUT_AUTH, max_injected_blocks_in_history=1)
    both = "The auth signing keys rotate, auth tokens are signed with JWT, the database vacuum runs on the replica"
    prepared = memory.injector(PROJECT, max_injected_blocks_in_history=1).prepare(history, both)
    assert {"jwt", "rotate", "vacuum"} <= set(names(prepared.given.lines))
    assert len(shown(prepared.history)) == 1


def test_nothing_is_purged_for_a_turn_that_gets_no_block(memory: Memory) -> None:
    history = turns(memory, ABOUT_AUTH, ABOUT_DATABASE, max_injected_blocks_in_history=2)
    sent = memory.injector(PROJECT, max_injected_blocks_in_history=2).prepare(history, "Thanks!").history
    assert sent[: len(history)] == history


def test_the_semantic_threshold_works_within_one_pass_only(memory: Memory) -> None:
    twin = a_memory("twin", "Auth uses JWT tokens, signed with Ed25519")
    put(memory, twin)
    same = [candidate(each, 0.5) for each in (AUTH[0], twin)]
    config = InjectorConfig()
    block = choose(same, {}, config, 999)
    assert names(block.lines) == ["jwt"] and block.held[0].reason == "says nearly the same as m-jwt"
    assert names(choose(same, {("m-jwt", 1): 1}, config, 999).lines) == ["twin"], "not across blocks"
    opposite = a_memory("not", "Auth uses no JWT tokens signed with Ed25519")
    third = [*same[:1], candidate(opposite, 0.5)]
    assert names(choose(third, {}, config, 999).lines) == ["jwt", "not"], "what negates is something else"
    assert len(choose(same, {}, replace(config, semantic_threshold=1.0), 999).lines) <= 2


def test_rules_that_read_alike_are_all_given() -> None:
    said = "Never deploy the {} service to production on a Friday afternoon without approval from Dana"
    rules = [a_memory(name, said.format(name), severity=Severity.DO_NOT) for name in ("billing", "search")]
    again = replace(rules[0], id="m-again")
    block = choose([candidate(each, 0.5) for each in (*rules, again)], {}, InjectorConfig(), 999)
    assert names(block.lines) == ["billing", "search"]
    assert block.held[0].reason == "says nearly the same as m-billing", "but the very same only once"


# Budgets


def test_the_budget_of_a_block_and_of_all_blocks_hold(memory: Memory) -> None:
    put(memory, *(a_memory(f"a{n}", f"Auth signing tokens rule {'x' * n} {'word ' * 40}{n}") for n in range(12)))
    injector = memory.injector(PROJECT, max_tokens_per_block=300, max_tokens_total=700, context_window_depth=1)
    history: list[Any] = []
    for prompt in [ABOUT_AUTH, ABOUT_DATABASE] * 6:
        prepared = injector.prepare(history, prompt)
        sizes = [estimate_tokens(text) for text, _ in shown(prepared.history)]
        assert max(sizes) <= 300 and sum(sizes) <= 700
        assert prepared.given.tokens == estimate_tokens(prepared.given.text)
        history = injector.commit(ANSWER)


def test_the_smallest_block_has_room_for_a_rule(memory: Memory) -> None:
    with pytest.raises(UsageError, match="`max_tokens_per_block`: Expected `int` >= 100"):
        memory.injector(PROJECT, max_tokens_per_block=99)
    long = a_memory("2jnmbjxz24jczwar", "Never push to main, " * 900, severity=Severity.DO_NOT, pinned=True)
    put(memory, replace(long, kind=MemoryKind.CONSTRAINT, revision=10))
    smallest = memory.injector(PROJECT, max_tokens_per_block=100, max_tokens_total=100)
    (line,) = smallest.prepare([], "Thanks!").given.lines
    assert line.text.startswith("Never push to main") and "[cut: " in line.text


@pytest.mark.parametrize("severity", [Severity.MUST, Severity.DO_NOT])
def test_a_rule_has_a_guaranteed_place_and_is_rather_shortened_than_left_out(severity: Severity) -> None:
    others = [candidate(a_memory(f"o{n}", f"other {n} {'abc ' * 60}"), 0.9) for n in range(9)]
    rules = [candidate(a_memory(f"r{n}", f"rule {n}: {chr(97 + n) * 3000}", severity=severity), 0.1) for n in range(4)]
    block = choose([*others, *rules], {}, InjectorConfig(max_total=5), 300)
    assert names(block.lines)[:4] == ["r0", "r1", "r2", "r3"] and block.tokens <= 300
    assert all("… [cut: 3,008 characters]" in line.text for line in block.lines[:4])
    assert names(choose([*others, *rules], {}, InjectorConfig(max_total=3), 900).lines) == ["r0", "r1", "r2"]


def test_what_does_not_fit_gives_way_to_what_does_and_says_so() -> None:
    large = candidate(a_memory("large", "word " * 200), 0.9)
    small = candidate(a_memory("small", "short"), 0.2)
    block = choose([large, small], {}, InjectorConfig(), 120)
    assert names(block.lines) == ["small"] and block.held[0].reason.startswith("no room: ")


def test_blocks_leave_oldest_first_for_tokens_too() -> None:
    seen = [Seen(3, 300, frozenset()), Seen(2, 300, frozenset()), Seen(1, 300, frozenset())]
    one = [candidate(a_memory("one", "short"), 0.5)]
    config = InjectorConfig(max_injected_blocks_in_history=9, max_tokens_total=750)
    assert plan(one, seen, config).dropped == 1
    assert plan([], seen, config).dropped == 1, "more than the budget, whoever put it there"
    assert plan([], seen[1:], config).dropped == 0
    assert visible(seen, replace(config, context_window_depth=0)) == {}


# The turn


def test_the_callers_list_is_never_changed(memory: Memory) -> None:
    history = turns(memory, ABOUT_AUTH)
    put(memory, replace(AUTH[0], revision=2, text="Auth uses opaque tokens", valid_from=day(5)))
    before = [dict(each) for each in history]
    prepared = memory.injector(PROJECT, max_injected_blocks_in_history=1).prepare(history, ABOUT_DATABASE)
    assert history == before and prepared.history is not history


@pytest.mark.parametrize("end", ["abort", "nothing"])
def test_a_turn_that_failed_or_was_cancelled_leaves_no_bookkeeping(memory: Memory, end: str) -> None:
    injector = memory.injector(PROJECT, session="chat")
    prepared = injector.prepare([], ABOUT_AUTH)
    if end == "abort":
        injector.abort()
        with pytest.raises(UsageError, match="no turn is prepared"):
            injector.commit(ANSWER)
    assert memory.given_last() == []
    assert injector.prepare([], ABOUT_AUTH) == prepared, "the next one is as if nothing had happened"


def test_what_was_given_is_kept_when_the_turn_succeeded_and_never_counts_as_use(memory: Memory) -> None:
    injector = memory.injector(PROJECT, session="chat")
    block = injector.prepare([], ABOUT_AUTH).given
    injector.commit(ANSWER)
    (told,) = memory.given_last()
    assert (told.session, told.given.lines, told.given.text) == ("chat", block.lines, block.text)
    with memory.database.read() as tx:
        assert tx.rows("SELECT * FROM memory_use") == []


def test_preparing_the_same_turn_again_gives_the_same_bytes(memory: Memory) -> None:
    injector = memory.injector(PROJECT)
    once = injector.prepare([], ABOUT_AUTH).history
    again = memory.injector(PROJECT).prepare(once)
    assert again.history == once and again.given.text == once[0]["content"]
    orphan = memory.injector(PROJECT).prepare(once[:1], ABOUT_AUTH)  # the prompt was taken back, its block was not
    assert orphan.history == once


@pytest.mark.parametrize("form", FORMS)
def test_while_tools_are_asked_the_block_stays_byte_for_byte(memory: Memory, form: str) -> None:
    put(memory, a_memory("ask", "Auth signing keys rotate only after Dana was asked", severity=Severity.MUST))
    injector = memory.injector(PROJECT, form=form, max_tokens_per_block=270)
    injector.prepare([], user(form, ABOUT_DATABASE))
    history = injector.commit(answer(form, "So it is."))
    put(memory, replace(DATABASE[1], revision=2, text="The vacuum is over. " * 60, valid_from=day(5)))
    first = injector.prepare(history, user(form, ABOUT_AUTH))
    assert names(first.given.lines)[:2] == ["vacuum", "ask"] and "jwt" in names(first.given.lines)
    assert "… [cut: " in first.given.text
    history = first.history
    for number in range(2):
        history = injector.prepare([*history, *tool_use(form, f"c{number}")]).history
        assert shown(history)[-1][0] == first.given.text


def test_a_block_stays_as_it_is_when_tools_tell_the_format_or_more_is_remembered(memory: Memory) -> None:
    injector = memory.injector(PROJECT)
    first = injector.prepare([], ABOUT_AUTH)
    put(memory, a_memory("new", "Auth tokens are signed with JWT, and the auth signing keys rotate when asked"))
    for form in ("openai", "responses"):
        again = injector.prepare([*first.history, *tool_use(form, "c1")])
        assert again.history[:2] == first.history and again.block is again.history[0]
    cached = [{**first.history[0], "cache_control": {"type": "ephemeral"}}, *first.history[1:]]
    assert injector.prepare([*cached, ANSWER]).history == [*cached, ANSWER], "a caller's own keys stay"
    assert "new" in names(injector.prepare([], ABOUT_AUTH).given.lines), "the next turn has it"


def test_state_survives_a_restart_because_it_is_the_history(memory: Memory, tmp_path: Path, clock: Clock) -> None:
    history = turns(memory, ABOUT_AUTH)
    with open_memory(memory.settings.home, clock=clock) as again:
        assert given(again, ABOUT_AUTH, history).lines == ()


def test_several_people_in_a_channel_share_a_window(memory: Memory) -> None:
    history = turns(memory, f"Alice: {ABOUT_AUTH}", "Bob: Did you see the game?")
    assert ids(history) == [["jwt", "rotate"]]
    assert given(memory, f"Alice: {ABOUT_AUTH}", history).held[0].reason == "visible: given 2 turns ago"


def test_nothing_is_given_for_small_talk_and_the_history_is_as_it_was(memory: Memory) -> None:
    prepared = memory.injector(PROJECT).prepare([], "Good morning, how are you?")
    assert prepared.given == Given() and prepared.block is None
    assert prepared.history == [{"role": "user", "content": "Good morning, how are you?"}]


@pytest.mark.parametrize("prompt", [" \n", [{"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}]])
def test_a_prompt_without_words_is_no_start_of_a_session(memory: Memory, prompt: Any) -> None:
    put(memory, a_memory("rule", "Never push to main", severity=Severity.DO_NOT))
    assert memory.injector(PROJECT).prepare(turns(memory, "Thanks!"), prompt).given.lines == ()


def test_a_turn_is_not_ended_with_the_answer_to_another(memory: Memory) -> None:
    injector = memory.injector(PROJECT)
    one, other = injector.prepare([], ABOUT_AUTH), injector.prepare([], ABOUT_DATABASE)
    with pytest.raises(UsageError, match="another turn was prepared"):
        injector.commit(ANSWER, one)
    assert injector.commit(ANSWER, other) == [*other.history, ANSWER], "which is still there"


@pytest.mark.parametrize(
    "wrong", ["the answer", 5, ["the answer"], [ANSWER, [ANSWER]], {**ANSWER, "content": 5}, ModelResponse(parts=[])]
)
def test_what_is_no_answer_is_an_error_and_the_turn_goes_on(memory: Memory, wrong: Any) -> None:
    injector = memory.injector(PROJECT)
    prepared = injector.prepare([], ABOUT_AUTH)
    with pytest.raises(UsageError, match="`commit` takes a message or a list of them"):
        injector.commit(wrong)
    assert memory.given_last() == []
    assert injector.commit((ANSWER, ANSWER)) == [*prepared.history, ANSWER, ANSWER]


# Selection


def test_lines_tell_kind_severity_text_day_and_id_by_section(memory: Memory) -> None:
    put(
        memory,
        a_memory(
            "rule",
            "Feed the octopus every evening",
            kind=MemoryKind.CONSTRAINT,
            severity=Severity.MUST,
            valid_from=day(7),
        ),
        a_memory("pin", "Answer in British English", kind=MemoryKind.PREFERENCE, pinned=True),
    )
    assert given(memory, "Who must feed the octopus?").text.split("\n")[1:-1] == [
        "Pinned:",
        "- [preference] Answer in British English (2026-02-01, m-pin r1)",
        "Relevant:",
        "- [constraint, must] Feed the octopus every evening (2026-02-07, m-rule r1)",
    ]


def test_pinned_kinds_are_given_up_to_their_limit_and_rules_first(either: Memory) -> None:
    put(
        either,
        *(
            a_memory(f"l{n}", f"lesson {n} about things", kind=MemoryKind.LESSON, valid_from=day(n))
            for n in range(1, 9)
        ),
        a_memory("rule", "a lesson that binds", kind=MemoryKind.LESSON, severity=Severity.DO_NOT),
        a_memory("pin", "pinned by hand", pinned=True),
    )
    asked: dict[str, Any] = {"pinned_kinds": ["lesson"], "per_kind_limit": 3}
    assert given(either, "hello").lines[0].reason == "pinned by a person"
    newest = given(either, "hello", ambient_sort="recency", **asked)
    assert names(newest.lines) == ["rule", "l8", "l7", "pin"], "the rule counts, too"
    assert all(line.section is Section.PINNED for line in newest.lines)
    assert given(either, "hello", ambient_enabled=False, **asked).lines == ()
    with either.database.write() as tx:
        for _ in range(30):
            memories.cite(tx, either.owner, ["m-l1"], day(20))
    assert "l1" in names(given(either, "hello", **asked).lines), "what is used is important"


def test_importance_follows_kind_severity_and_use_and_fades_when_it_is_read() -> None:
    now, fact = Clock()(), a_memory("a", "x", valid_from=day(20))
    rule = replace(fact, kind=MemoryKind.CONSTRAINT, severity=Severity.MUST)
    assert importance(rule, None, now) > importance(fact, None, now)
    assert importance(fact, Use(5, day(21)), now) > importance(fact, Use(1, day(21)), now) > importance(fact, None, now)
    old = replace(fact, valid_from=day(1))
    assert importance(old, None, now) < importance(fact, None, now)
    assert importance(old, Use(1, day(28)), now) > importance(fact, None, now), "use makes it young again"


def test_a_superseded_revision_is_never_given(either: Memory) -> None:
    put(either, replace(AUTH[0], revision=2, text="Auth uses opaque tokens", valid_from=day(5)))
    lines = given(either, "Does auth use opaque tokens?").lines
    assert [(line.id, line.revision) for line in lines if line.id == "m-jwt"] == [("m-jwt", 2)]


def test_only_this_project_and_what_holds_everywhere_is_given(either: Memory) -> None:
    put(
        either,
        a_memory("other", "Auth signing tokens elsewhere", scope_id="example.com/ada/other", pinned=True),
        a_memory("user", "Auth signing tokens for the user", scope=Scope.USER, scope_id="", pinned=True),
        a_memory("talk", "Auth signing tokens in that talk", scope=Scope.CONVERSATION, scope_id="s9@1", pinned=True),
    )
    assert set(names(given(either, ABOUT_AUTH).lines)) == {"user", "jwt", "rotate"}
    everywhere = either.injector(ALL_PROJECTS).prepare([], ABOUT_AUTH).given
    assert set(names(everywhere.lines)) == {"user", "jwt", "rotate", "other"}


def test_nothing_is_given_of_a_project_that_is_switched_off(tmp_path: Path, clock: Clock) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    for folder in (here, there):
        folder.mkdir()
    with open_memory(tmp_path / "home", clock=clock, embedder="none") as memory:
        memory.remember("Auth tokens here are signed with JWT", project=here)
        memory.remember("Auth tokens there are signed with PASETO", project=there)
        memory.remember("Always explain auth tokens and signing in short", everywhere=True)

    def told(scope: Any) -> set[str]:
        with open_memory(tmp_path / "home", clock=clock, embedder="none", disabled_projects=[str(here)]) as memory:
            taken = memory.injector(scope).prepare([], ABOUT_AUTH).given.lines
            assert taken == memory.context(scope, ABOUT_AUTH).lines
        return {word for line in taken for word in ("JWT", "PASETO", "explain") if word in line.text}

    assert told(here) == told(str(here)) == told([here]) == set(), "nor what holds everywhere, as with hooks"
    assert told(there) == told([here, there]) == told(ALL_PROJECTS) == {"PASETO", "explain"}


@pytest.mark.parametrize("scope", ["", "  ", [], None, [""]])
def test_without_a_scope_there_is_no_injector(memory: Memory, scope: Any) -> None:
    for call in (memory.injector, memory.context):
        with pytest.raises(UsageError):
            call(scope)


def test_a_path_is_a_scope_as_its_text_is(memory: Memory, tmp_path: Path) -> None:
    memory.remember("Auth tokens are signed with JWT", project=tmp_path)
    for scope in (tmp_path, [tmp_path], str(tmp_path)):
        lines = memory.injector(scope).prepare([], ABOUT_AUTH).given.lines
        assert [each.text for each in lines] == ["Auth tokens are signed with JWT"]
        assert memory.context(scope, ABOUT_AUTH).text == memory.give(scope, ABOUT_AUTH, "").text != ""
        assert [hit.text for hit in memory.search(ABOUT_AUTH, scope=scope)] == ["Auth tokens are signed with JWT"]


def test_settings_come_from_the_configuration_an_object_or_by_name(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("[memory_injection]\nmax_total = 1\n")
    with open_memory(tmp_path) as memory:
        put(memory, *AUTH)
        assert len(given(memory, ABOUT_AUTH).lines) == 1
        assert len(given(memory, ABOUT_AUTH, max_total=2).lines) == 2
        assert len(memory.injector(PROJECT, InjectorConfig()).prepare([], ABOUT_AUTH).given.lines) == 2
        assert configured(memory.settings.config, {}) == InjectorConfig(max_total=1), "one set of defaults"
    wrong: dict[str, Any]
    for wrong in (
        {"max_totl": 1},
        {"pinned_kinds": ["rule"]},
        {"pinned_kinds": None},
        {"ambient_sort": "size"},
        {"max_total": -1},
        {"max_total": 0},
        {"max_tokens_per_block": 99},
        {"max_tokens_total": 99},
        {"semantic_threshold": 0},
        {"max_total": "3"},
        {"max_total": None},
        {"max_tokens_per_block": 99.5},
        {"max_tokens_total": True},
        {"semantic_threshold": "0.8"},
        {"enrich": 1},
    ):
        with pytest.raises(UsageError):
            configured(InjectorConfig(), wrong)


def _folder(memory: Memory) -> Path:
    folder = memory.settings.home.parent / "code"
    folder.mkdir(exist_ok=True)
    return folder


def test_a_turn_is_kept_where_what_it_was_given_cannot_be_noted(tmp_path: Path) -> None:
    with open_memory(tmp_path / "home", environ={}, embedder="none", busy_timeout_seconds=0.2) as memory:
        put(memory, a_memory("jwt", "Auth uses JWT tokens"))
        injector = memory.injector(PROJECT)
        assert injector.prepare([], "How do auth tokens work?").given.lines
        with open_memory(tmp_path / "home", environ={}, embedder="none") as other, other.database.write():
            history = injector.commit(answer("openai", "With JWT."))
        assert len(history) == 3
        with pytest.raises(UsageError, match="half a character"):
            memory.injector(PROJECT, session="a\ud83d")
