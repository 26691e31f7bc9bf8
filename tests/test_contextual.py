"""Which memories have to do with a prompt: none for small talk and other subjects, and what "that" means."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from training import fit

from recollect.app import Memory, open_memory
from recollect.inject import relevance
from recollect.inject.appetite import appetite
from recollect.inject.contextual import Contextual
from recollect.inject.relevance import CALIBRATIONS, WORDS_ONLY, Calibration, Features, Weights
from recollect.inject.values import Exchange, InjectorConfig, Line
from recollect.models.embed.catalog import ARCTIC, STATIC
from recollect.models.embed.static import Static
from recollect.models.embed.transformer import Arctic
from recollect.search.memories import Clue, MemorySearch
from recollect.store import memories
from recollect.store.search import Reach
from recollect.surfaces.bench import inject, inject_speed
from recollect.types import MemoryKind, Owner, Remembered, Scope, Severity, Timestamp
from tests.command import Done, run
from tests.conftest import Clock, Place
from tests.embedders import installed

NOW = datetime(2026, 3, 28, 12, 0, tzinfo=UTC)
GARDEN, API = "example.com/ada/garden", "example.com/ada/api"
PUMP = Exchange("Which pump do we have in the pond?", "A solar pump with 10 W, bought in April.")


@pytest.fixture
def memory(database_url: Place) -> Iterator[Memory]:
    with opened(database_url, "none") as found:
        yield found


def opened(place: Place, embedder: str) -> Memory:
    return open_memory(place.home, environ={}, clock=Clock(NOW), database=place.url, embedder=embedder)


def remember(memory: Memory, *texts: str, project: str = GARDEN, revision: int = 1, owner: Owner | None = None) -> None:
    """Memories m-0, m-1, … of the project; u-0, … of every project, if it has no name."""
    made = [
        Remembered(
            id=f"{'m' if project else 'u'}-{number}",
            revision=revision,
            kind=MemoryKind.LESSON,
            text=text,
            severity=Severity.PREFER,
            scope=Scope.PROJECT if project else Scope.USER,
            scope_id=project,
            created_at=Timestamp("2026-01-01T00:00:00.000Z"),
            valid_from=Timestamp(f"2026-01-0{revision}T00:00:00.000Z"),
            sources=((f"{project}@{revision}", f"e{number}"),),
        )
        for number, text in enumerate(texts)
    ]
    with memory.database.write() as tx:
        memories.replace_sessions(tx, owner or memory.owner, {f"{project}@{revision}": made})


def find(memory: Memory, prompt: str, *exchanges: Exchange, project: str = GARDEN, **settings: Any) -> list[Line]:
    limit = settings.pop("limit", 10)
    found = Contextual(memory._search.memories, InjectorConfig(**settings))
    return found.find(prompt, exchanges, Reach(memory.owner, (project,)), limit, NOW)


# What is asked


@pytest.mark.parametrize(
    "prompt",
    ["", "  \n", "thanks!", "ok", "Great, thank you so much", "continue", "yes please do", "hmm wait a moment",
     "good morning", "perfect :)", "that's all for today, bye", "go ahead", "never mind", "👍", "no"],
)  # fmt: skip
def test_small_talk_asks_for_nothing(prompt: str) -> None:
    assert relevance.question(prompt, [PUMP], NOW) is None


def test_small_talk_does_not_even_search() -> None:
    blind = Contextual(cast(MemorySearch, None), InjectorConfig())
    assert blind.find("thanks, looks good", [PUMP], Reach(Owner(), (GARDEN,)), 10, NOW) == []
    with pytest.raises(AttributeError):
        blind.find("which pump is in the pond?", [PUMP], Reach(Owner(), (GARDEN,)), 10, NOW)


@pytest.mark.parametrize(
    "prompt",
    ["why that?", "and the other one?", "why not?", "how much does it cost?", "do it the same way there",
     "what did we use before that?", "what about in winter?", "did they ever break?", "is there a cheaper one?"],
)  # fmt: skip
def test_a_prompt_that_only_points_leans_on_the_last_exchange(prompt: str) -> None:
    asked = relevance.question(prompt, [PUMP], NOW)
    assert asked is not None
    assert "solar pump" in asked.context
    assert {"pump", "pond", "solar"} <= asked.context_words.keys()


@pytest.mark.parametrize(
    "prompt",
    ["how do I centre a div?", "write a haiku about rain", "what about the database?", "perfect, ship it",
     "which compiler flags enable link time optimisation",
     "explain the difference between a stack and a queue", "let us plan the wedding of my sister in June",
     "add a function that parses RFC 3339 timestamps and test it"],
)  # fmt: skip
def test_a_prompt_that_names_its_subject_does_not_lean(prompt: str) -> None:
    asked = relevance.question(prompt, [PUMP], NOW)
    assert asked is not None
    assert not asked.context
    assert not asked.context_words


def test_enrichment_can_be_switched_off() -> None:
    asked = relevance.question("how much does it cost?", [PUMP], NOW, enrich=False)
    assert asked is not None
    assert not asked.context


def test_follow_ups_of_follow_ups_reach_back_to_what_they_are_about() -> None:
    chain = [
        Exchange("the router in the hall", "blue"),
        PUMP,
        Exchange("how old is it?", "One year."),
        Exchange("and?", "No."),
    ]
    asked = relevance.question("why not?", chain, NOW)
    assert asked is not None
    assert "pond" in asked.context_words
    assert "router" not in asked.context_words


def test_pasted_code_and_quotes_are_no_part_of_a_request() -> None:
    text = "Why does this fail?\n\n```\nTraceback: pond.pump.Error\n```\n> quoted words\n\nIt worked yesterday."
    assert relevance.condensed(text) == "Why does this fail? It worked yesterday."


def test_who_speaks_in_a_channel_is_no_part_of_the_request() -> None:
    named, bare = (relevance.question(each, [], NOW) for each in ("Alice: where is the pump?", "where is the pump?"))
    assert named == bare


@pytest.mark.parametrize("name", ["ReservationService", "reservation_service", "reservationService"])
def test_the_words_of_a_name_are_looked_up(name: str) -> None:
    found = relevance.question(f"fix the timeout in {name}", [], NOW)
    assert found is not None and {"reservation", "service", "timeout"} <= found.words.keys()


def test_of_a_long_text_both_ends_are_looked_at() -> None:
    middle = " ".join(f"w{number}" for number in range(500))
    found = relevance.condensed(f"first of all {middle} at the very end").split()
    assert len(found) == 60
    assert found[:3] == ["first", "of", "all"]
    assert found[-2:] == ["very", "end"]


def test_of_a_paste_without_spaces_both_ends_are_looked_at() -> None:
    pasted = '{"port":8080,"hosts":["a","b"]},' * 30_000
    started = time.process_time()
    asked = relevance.question(f"Which tokens? {pasted} Where is nginx?", (), NOW)
    assert time.process_time() - started < 0.3
    assert asked is not None and {"tokens", "nginx"} <= set(asked.words) and len(asked.text) < 2_100


def test_a_word_in_common_says_less_where_there_are_many_words() -> None:
    clue = Clue(1, False, (None,), frozenset({"pump"}))
    short = relevance.question("the pump", [], NOW)
    long = relevance.question("the pump " + " ".join(f"word{number}x" for number in range(50)), [], NOW)
    assert short is not None and long is not None
    rarity = dict.fromkeys([*short.words, *long.words], 0.9)
    few, many = (relevance.features(asked, clue, rarity) for asked in (short, long))
    assert many.words < few.words / 2
    assert many.share < few.share / 2


def test_a_memory_that_was_just_told_is_not_told_again() -> None:
    assert relevance.just_said("The solar pump has 10 W", [PUMP])
    assert not relevance.just_said("The solar pump broke twice in frost; take it out in November", [PUMP])
    assert not relevance.just_said("anything", [])


# The model

EVERY = [WORDS_ONLY, *CALIBRATIONS.values()]
shares = st.floats(0, 1)
evidence = st.builds(Features, shares, st.floats(0, 4), shares, shares, st.floats(0, 2), *[st.booleans()] * 3)


def chance(found: Features, by: Weights, crowd: float = 0.0) -> float:
    return relevance.probability(relevance.strength(found, by) + by.crowd * crowd)


@given(evidence, st.sampled_from([each for by in EVERY for each in (by.plain, by.leaning)]))
def test_a_score_is_a_probability(found: Features, by: Weights) -> None:
    assert 0 < chance(found, by) < 1


@pytest.mark.parametrize("name", ["similar", "words", "share", "context", "context_words"])
@given(
    found=evidence, more=st.floats(0, 1), by=st.sampled_from([each for by in EVERY for each in (by.plain, by.leaning)])
)
def test_more_evidence_never_lowers_a_score(name: str, found: Features, more: float, by: Weights) -> None:
    better = {**{each: getattr(found, each) for each in Features.__slots__}, name: getattr(found, name) + more}
    assert chance(Features(**better), by) >= chance(found, by)


@given(st.lists(st.floats(-10, 5), max_size=20))
def test_a_crowd_is_the_eight_best_others(strengths: list[float]) -> None:
    padded = [*strengths, *[-10.0] * 8]
    for place, found in enumerate(relevance.crowds(strengths, -10.0)):
        others = sorted(padded[:place] + padded[place + 1 :], reverse=True)[:8]
        assert found == pytest.approx(sum(others) / 8)


@pytest.mark.parametrize("by", [each.plain for each in EVERY])
def test_a_crowd_and_a_question_about_the_world_speak_against_a_memory(by: Weights) -> None:
    alone = Features(0.5, 1.0, 0.5, None, 0.0, False, True)
    assert chance(alone, by, crowd=1.0) < chance(alone, by, crowd=-6.0)
    assert chance(replace(alone, general=True), by) < chance(alone, by)


@pytest.mark.parametrize(
    ("prompt", "general"),
    [
        ("what is a heat pump?", True),
        ("How long is the Nile", True),
        ("explain the pump of a pond", True),
        ("what is our heat pump?", False),
        ("what do you know about heat pumps?", False),
        ("do you know how heat pumps work", True),
        ("how do I start the pump", False),
        ("fix the pump", False),
    ],
)
def test_a_question_that_speaks_of_nobody_here_is_about_the_world(prompt: str, general: bool) -> None:
    asked = relevance.question(prompt, [], NOW)
    assert asked is not None and asked.general is general


@pytest.mark.parametrize("name", ["arctic", "static"])
def test_a_request_for_work_wants_more_than_a_question_about_the_world(name: str) -> None:
    embedder = Arctic(installed()).of_memories if name == "arctic" else Static()
    work, world, thanks = (
        appetite(embedder.id, row)
        for row in embedder.embed(
            ["write the release notes and deploy it on Friday", "in what year was the telephone invented?", "thank you"]
        )
    )
    assert work > world + 0.3 and work > thanks + 0.3


def test_a_subject_is_named_by_its_rarer_words_together(database_url: Place) -> None:
    jargon = [
        f"The harbour {each} is checked by the harbour crew" for each in ("crane", "gate", "lamp", "pier", "quay")
    ]
    said = [
        "harbour list shows every ship",
        "In harbour list, open tells its crew",
        "The list is sorted by tide",
        *jargon,
    ]
    with opened(database_url, "none") as memory:
        remember(memory, *said)

        def listed(prompt: str) -> set[str]:
            return {line.text for line in find(memory, prompt)}

        assert listed("how does `harbour list` work again?") == set(said[:2])
        assert listed("what do we know about the crane and the pier?") == {jargon[0], jargon[3]}
        assert listed("what do we know about submarines, does the harbour have them?") == set()


def test_of_an_embedder_that_nobody_taught_it_no_appetite_is_known() -> None:
    assert appetite("openai:some-model", np.ones(384, np.float32)) == appetite(ARCTIC, None) == 0.0


def test_each_embedder_has_its_own_calibration_and_an_unknown_one_goes_by_words() -> None:
    known = Features(0.5, 1.0, 0.5, None, 0.0, False, False)
    fresh = Features(None, 1.0, 0.5, None, 0.0, False, False)
    assert len({id(relevance.calibration(model, known)) for model in CALIBRATIONS}) == len(CALIBRATIONS)
    assert relevance.calibration("openai:some-model", known) is WORDS_ONLY
    assert all(relevance.calibration(model, fresh) is WORDS_ONLY for model in CALIBRATIONS)


# What is found


def test_what_the_prompt_is_about_is_found_with_its_reason(memory: Memory) -> None:
    remember(memory, "Take the solar pump out of the pond before the first frost", "The compost is turned in April")
    (found,) = find(memory, "when do we take the pump out of the pond?")
    assert (found.id, found.revision, found.kind, found.severity) == ("m-0", 1, MemoryKind.LESSON, Severity.PREFER)
    assert found.text == "Take the solar pump out of the pond before the first frost"
    assert found.date == "2026-01-01"
    assert 0.5 <= found.score < 1
    assert found.reason.startswith(f"relevance {found.score:.2f}; names ")
    assert "pump" in found.reason and "pond" in found.reason


@pytest.mark.parametrize(
    "prompt",
    ["what is the capital of Mongolia?", "write a python function that reverses a string", "fix the typo in the readme",
     "who wrote Ulysses?", "is it going to rain in Lisbon tomorrow?"],
)  # fmt: skip
def test_another_subject_finds_nothing(memory: Memory, prompt: str) -> None:
    remember(memory, "Take the solar pump out of the pond before the first frost", "The compost is turned in April")
    assert find(memory, prompt) == []


def test_only_the_project_and_what_holds_everywhere_is_found(memory: Memory) -> None:
    text = "Take the solar pump out of the pond before the first frost"
    remember(memory, text, project=API)
    remember(memory, text, owner=Owner("other", "ada"))
    remember(memory, text, owner=Owner(memory.owner.tenant, "bob"))
    assert find(memory, "when do we take the pump out of the pond?") == []
    assert [each.id for each in find(memory, "when do we take the pump out of the pond?", project=API)] == ["m-0"]
    remember(memory, text, project="")
    assert [each.id for each in find(memory, "when do we take the solar pump out of the pond?")] == ["u-0"]


def test_what_holds_everywhere_needs_more_evidence(memory: Memory) -> None:
    text = "Take the solar pump out of the pond before the first frost"
    remember(memory, text)
    remember(memory, text, project="")
    here, everywhere = find(memory, "when do we take the solar pump out of the pond?")
    assert (here.id, everywhere.id) == ("m-0", "u-0")
    assert everywhere.score < here.score


def test_the_revision_that_holds_is_found(memory: Memory) -> None:
    remember(memory, "The pump in the pond has 10 W")
    remember(memory, "The pump in the pond has 25 W", revision=2)
    (found,) = find(memory, "how strong is the pump in the pond?")
    assert (found.revision, found.text, found.date) == (2, "The pump in the pond has 25 W", "2026-01-02")


def test_the_best_come_first_and_no_more_than_wanted(memory: Memory) -> None:
    remember(memory, *(f"The pump in the pond, note {number}: {'frost ' * (number == 3)}" for number in range(6)))
    found = find(memory, "the pump in the pond and frost", limit=4, contextual_min_score=0.05)
    assert len(found) == 4
    assert found[0].id == "m-3"
    assert all(one.score >= other.score for one, other in pairwise(found))
    assert find(memory, "the pump in the pond and frost", limit=0) == []


def test_a_floor_of_ones_own_replaces_the_fitted_one(memory: Memory) -> None:
    remember(memory, "The pump in the pond has 10 W", "The filter of the pond is cleaned on Sundays")
    prompt = "the pump in the pond"
    assert [each.id for each in find(memory, prompt)] == ["m-0"]
    assert [each.id for each in find(memory, prompt, contextual_min_score=0.05)] == ["m-0", "m-1"]
    assert find(memory, prompt, contextual_min_score=0.999) == []


def test_summaries_are_no_memories(memory: Memory) -> None:
    remember(memory, "The pump in the pond has 10 W")
    clues = memory._search.memories.clues(["the pump"], {"pump": 1.0, "pond": 1.0}, Reach(memory.owner, (GARDEN,)))
    assert [each.words for each in clues.each] == [frozenset({"pump", "pond"})]
    assert all(0 < each <= 1 for each in clues.rarity.values())


# Follow-ups


def test_that_means_what_was_just_spoken_of(memory: Memory) -> None:
    remember(
        memory,
        "JWT tokens for auth instead of sessions, because the pods of the API keep no state",
        "The auth tokens live for 15 minutes",
        "The compost is turned in April",
    )
    before = Exchange("How does auth work?", "With JWT tokens that live for 15 minutes.")
    assert [each.id for each in find(memory, "why that and nothing else?", before)] == ["m-0"]
    assert find(memory, "why that and nothing else?", before, enrich=False) == []


def test_the_other_one_is_found_and_what_was_said_is_not_told_again(memory: Memory) -> None:
    remember(memory, "The pump in the pond is a solar pump, 10 W", "The old pump of the pond broke in the frost")
    (found,) = find(memory, "what happened to the other one?", PUMP)
    assert found.id == "m-1"
    assert "the talk was about pump, pond" in found.reason


@pytest.mark.parametrize("prompt", ["how do I centre a div?", "thanks, that was it", "write a limerick about cats"])
def test_a_new_subject_does_not_bring_the_old_one_along(memory: Memory, prompt: str) -> None:
    remember(memory, "The pump in the pond is a solar pump, 10 W", "The old pump of the pond broke in the frost")
    assert find(memory, prompt, PUMP) == []


# With vectors


def test_a_memory_that_has_no_vector_yet_goes_by_its_words(database_url: Place) -> None:
    with opened(database_url, "static") as memory:
        remember(memory, "The compost is turned in April and October")
        memory.embed()
        remember(memory, "The compost is turned in April and October", "Take the pump out of the pond before the frost")
        found = find(memory, "when do we take the pump out of the pond?")
        assert [(each.id, "similarity" in each.reason) for each in found] == [("m-1", False)]
        memory.embed()
        found = find(memory, "when do we take the pump out of the pond?")
        assert [(each.id, "similarity" in each.reason) for each in found] == [("m-1", True)]


def test_a_candidate_by_its_words_is_compared_in_meaning_too(database_url: Place) -> None:
    with opened(database_url, "static") as memory:
        remember(memory, *(f"Pond plants, lily number {number}" for number in range(80)), "zebra crossing")
        memory.embed()
        reach = Reach(memory.owner, (GARDEN,))
        clues = memory._search.memories.clues(["lilies in the pond"], {"zebra": 1.0}, reach)
        assert [each.words for each in clues.each if each.words] == [frozenset({"zebra"})]
        assert 50 < len(clues.each) < 81, "the nearest, and the one by its words"
        assert all(isinstance(each.similar[0], float) for each in clues.each)


# The set, and what it measures


def test_the_set_is_large_and_its_labels_are_within_reach() -> None:
    for person in inject.people():
        held = {each.id: each for each in person.memories}
        assert len(held) == len(person.memories) >= 320
        assert len(person.prompts) >= 160
        assert all(len(each.occasions) == 1 for each in person.asked) and all(each.occasions for each in person.told)
        on_topic = [case for case in person.prompts if case.on_topic]
        assert abs(len(on_topic) - len(person.prompts) / 2) < 10
        assert all(bool(case.wanted) is case.on_topic for case in person.prompts)
        for case in (*person.prompts, *person.followups):
            assert all(held[each].scope_id in ("", case.project) for each in case.wanted)
    assert sum(case.kind == "leans" for person in inject.people() for case in person.followups) == 40


def test_the_halves_alternate_within_each_kind() -> None:
    for cases in (cases for person in inject.people() for cases in (person.prompts, person.followups)):
        for kind in {case.kind for case in cases}:
            halves = [case.half for case in cases if case.kind == kind]
            assert halves == (["fit", "test"] * len(halves))[: len(halves)]


def test_the_bench_prints_relevance_beside_its_peers(tmp_path: Path) -> None:
    result = run(tmp_path, "bench", "inject", "--size", "0", "--embedder", "none", "--show", "fit", "--json").json
    ours, peer = result["test"]["ours"], result["test"]["full_text_top_5"]
    assert ours["precision"] > 0.85 > peer["precision"]
    assert ours["off_topic_empty"] >= 0.95 > peer["off_topic_empty"]
    asked, told = result["test"]["ours_knowing_requests"], result["test"]["ours_told_when"]
    assert told["recall"] - 0.04 > asked["recall"] > ours["recall"] + 0.02
    assert min(told["off_topic_empty"], asked["off_topic_empty"]) >= 0.95
    assert result["test"]["off_topic_empty_after_an_exchange"] >= 0.95
    bare = result["test"]["follow_ups_without_enrichment"]
    assert result["test"]["follow_ups"]["hit_rate"] > bare["hit_rate"] + 0.15
    assert any("missing" in line for line in result["listed"])


def test_the_bench_takes_a_set_of_ones_own(tmp_path: Path) -> None:
    wanted: dict[str, Any] = {"project": "shop", "text": "how are our invoices numbered by year?", "wanted": ["a"]}
    memories = [
        {"id": "a", "project": "shop", "text": "Invoices are numbered by the year and a counter."},
        {"id": "b", "text": "Commit messages are written in English."},
    ]

    def measured(first: dict[str, Any], *rows: dict[str, Any]) -> Done:
        for name, lines in (("memories", memories), ("prompts", [first, *rows])):
            (tmp_path / f"{name}.jsonl").write_text("\n".join(json.dumps(row) for row in lines))
        return run(tmp_path / "home", "bench", "inject", "--set", str(tmp_path), "--embedder", "none", "--size", "0")

    done = measured(wanted, {"project": "shop", "text": "thanks, that is all", "wanted": []})
    assert "none, 2 prompts, 2 memories" in done.stdout and "fit half" not in done.stdout
    assert [line.split()[1:4] for line in done.stdout.splitlines() if line.startswith("ours ")] == [["1.0"] * 3]
    assert "z, which is no memory" in measured({**wanted, "wanted": ["z"]}).stderr
    bad = measured({"text": "no label"})
    assert bad.status == 2 and "prompts.jsonl, line 1: KeyError('wanted')" in bad.stderr
    (tmp_path / "occasions.jsonl").write_text(json.dumps({"id": "a", "request": "send the bill", "occasions": []}))
    (tmp_path / "followups.jsonl").write_text(json.dumps({**wanted, "kind": "shift", "user": "Hi", "assistant": "Ho"}))
    assert "ours_told_when" in measured(wanted).stdout, "as much as is there"
    (tmp_path / "home").mkdir(exist_ok=True)
    assert "no memories.jsonl" in run(tmp_path, "bench", "inject", "--set", str(tmp_path / "home")).stderr


@pytest.mark.parametrize(("embedder", "by"), [("none", WORDS_ONLY), ("static", CALIBRATIONS[STATIC])])
def test_the_weights_are_those_that_the_fit_half_gives(embedder: str, by: Calibration) -> None:
    fitted = fit.weights(embedder)
    for name, weights in (("plain", by.plain), ("leaning", by.leaning)):
        for feature, value in fitted[name]["weights"].items():
            assert getattr(weights, feature) == pytest.approx(value, abs=0.1)


def test_prompts_beside_the_fit_half_count_as_much_as_it_and_are_not_judged() -> None:
    rows, _ = fit.examples_of_everybody("none")
    opposite = [(number, found, not right) for number, found, right in rows]
    alone, doubled, reversed_ = (
        fit.fitted(["words", "share", "everywhere", "ours", "general"], rows, beside, crowded=True)
        for beside in ((), rows, opposite)
    )
    assert doubled["examples"] == 2 * alone["examples"]
    assert doubled["weights"]["words"] == pytest.approx(alone["weights"]["words"], rel=0.15)
    assert abs(reversed_["weights"]["words"]) < 0.1, "one half says the opposite of the other"
    right, wrong = (each["cross_validated"]["average_precision"] for each in (alone, reversed_))
    assert right > 0.5 > 5 * wrong


def test_the_latency_bench_runs_at_any_size() -> None:
    result = inject_speed.run(300, "static", 20)
    assert result["memories"] == 300
    assert {"find_p95_ms", "prepare_p95_ms", "search_p95_ms", "embedding_p95_ms"} <= result.keys()
