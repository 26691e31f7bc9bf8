"""The parts of search that decide: times, queries, ranking, snippets, folding. No database, no model."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.search import ranking
from recollect.search.fold import folded
from recollect.search.query import parse
from recollect.search.ranking import WEIGHTS, Weights, above_floor, neighbourhood, rarity, relevance
from recollect.search.snippet import recogniser, snippet
from recollect.search.when import spans
from recollect.store.words import parts, scope_word, search_text
from recollect.surfaces.bench.retrieval import by_best_turns
from recollect.types import Role

NOW = datetime(2026, 3, 18, 15, 30, tzinfo=UTC)  # a Wednesday


@pytest.mark.parametrize(
    ("query", "first", "last"),
    [
        ("what did I do yesterday", "2026-03-17", "2026-03-18"),
        ("the day before yesterday", "2026-03-16", "2026-03-17"),
        ("tasks for today?", "2026-03-18", "2026-03-19"),
        ("two days ago", "2026-03-16", "2026-03-17"),
        ("a week ago", "2026-03-08", "2026-03-15"),
        ("what happened last week", "2026-03-09", "2026-03-16"),
        ("last month's invoices", "2026-02-01", "2026-03-01"),
        ("in the past three months", "2025-12-18", "2026-03-19"),
        ("this year", "2026-01-01", "2027-01-01"),
        ("last weekend", "2026-03-14", "2026-03-16"),
        ("on Monday", "2026-03-16", "2026-03-17"),
        ("last Wednesday", "2026-03-11", "2026-03-12"),
        ("in March", "2026-03-01", "2026-04-01"),
        ("in December", "2025-12-01", "2026-01-01"),
        ("in July 2024", "2024-07-01", "2024-08-01"),
        ("from July to October", "2025-07-01", "2025-11-01"),
        ("between November and January", "2025-11-01", "2026-02-01"),
        ("on 3 February, 2026", "2026-02-03", "2026-02-04"),
        ("on Aug 15th", "2025-08-15", "2025-08-16"),
        ("2026-01-31 release", "2026-01-31", "2026-02-01"),
        ("in 2024", "2024-01-01", "2025-01-01"),
        ("since January", "2026-01-01", "2026-03-19"),
    ],
)
def test_times_in_a_query_mean_days(query: str, first: str, last: str) -> None:
    (span,) = spans(query, NOW)
    assert (span.first.date().isoformat(), span.last.date().isoformat()) == (first, last)
    assert span.words in query


@pytest.mark.parametrize(
    "query", ["how may I march on", "the second-last day", "31 June", "weekday", "a day at sea", ""]
)
def test_what_names_no_time_gives_none(query: str) -> None:
    assert spans(query, NOW) == []


@given(st.text() | st.from_regex(r"(in|last|\d+|may|march|ago|days?|2026-\d\d-\d\d| )+"), st.datetimes())
def test_no_text_and_no_clock_upsets_the_parser_of_times(query: str, now: datetime) -> None:
    for span in spans(query, now.replace(tzinfo=UTC)):
        assert span.first < span.last
        assert span.words in query


def test_a_moment_is_near_a_span_by_the_spans_own_length() -> None:
    (week,) = spans("last week", NOW)
    assert week.distance(datetime(2026, 3, 10, tzinfo=UTC)) == 0
    assert week.distance(datetime(2026, 3, 2, tzinfo=UTC)) == pytest.approx(1.0)
    assert week.distance(datetime(2026, 3, 23, tzinfo=UTC)) == pytest.approx(0.5)  # told later


def test_a_query_is_words_names_and_times() -> None:
    query = parse('Which port did parseHttpHeader in src/http.py:42 use last week, "the blue one"?', NOW)
    assert query.words["parsehttpheader"] == 1.0
    assert query.words["header"] < 1.0 > query.words["week"]  # parts, and words of a time, count less
    assert {"which", "did", "in", "the"}.isdisjoint(query.words)
    assert set(query.names) >= {"parsehttpheader", "src/http.py:42", "the blue one"}
    assert [span.words for span in query.spans] == ["last week"]


def test_a_query_of_common_words_alone_keeps_them() -> None:
    assert set(parse("the who", NOW).words) == {"the", "who"}


def test_whose_words_are_asked_for() -> None:
    assert parse("what did I say about the pump", NOW).asked is Role.USER
    assert parse("which pump did you recommend", NOW).asked is Role.ASSISTANT


def test_names_have_parts_and_texts_their_scope() -> None:
    assert parts("parseHTTPHeader2") == ["parse", "HTTP", "Header2"]
    assert parts("plain") == parts("数据") == []
    assert parts("用SQL数据库") == ["SQL", "用", "数据", "据库"]
    text = search_text("call getUserName", "t", "a", "p")
    assert "User Name" in text and scope_word("t", "a") in text and scope_word("t", "a", "p") in text
    assert scope_word("t", "a", "p") != scope_word("t", "a\x1fp")[:-1]


@given(st.text(alphabet="aZb9É_ -ßÜ中文", max_size=40) | st.text(st.characters(max_codepoint=0x2FF), max_size=40))
def test_the_parts_of_every_name_are_indexed(content: str) -> None:
    added, names = (
        re.findall(r"[^\W_]+", text) for text in (search_text(content, "t", "a", "p").removeprefix(content), content)
    )
    assert {part for name in names for part in parts(name)} <= set(added)
    assert not content.isascii() or re.search("[A-Z]", content) or len(added) == 2, "nothing but the scope"


def test_rare_words_tell_more_than_common_ones() -> None:
    rarities = rarity(10_000, np.array([0.0, 10.0, 5_000.0]), np.ones(3))
    assert rarities[0] > rarities[1] > rarities[2] > 0


def test_neighbours_are_those_of_the_same_session() -> None:
    assert neighbourhood(["a", "b", "a", "a"]).tolist() == [
        [-1, -1, 2, 3],
        [-1, -1, -1, -1],
        [0, -1, 3, -1],
        [2, 0, -1, -1],
    ]


def test_a_neighbour_with_the_missing_word_helps() -> None:
    rarities, sizes, unknown = np.ones(2), np.full(3, 50.0), np.full(3, np.nan)
    present = np.array([[True, False, True], [False, True, False]])
    alone = relevance(rarities, present, sizes, unknown, np.full((3, 4), -1)).total(WEIGHTS)
    together = relevance(rarities, present, sizes, unknown, neighbourhood(["a", "a", "b"])).total(WEIGHTS)
    assert together[0] > alone[0] and together[1] > alone[1]
    assert together[2] == pytest.approx(alone[2])


@given(
    st.integers(1, 5).flatmap(
        lambda n: st.tuples(
            st.lists(st.lists(st.booleans(), min_size=n, max_size=n), min_size=1, max_size=4),
            st.lists(st.floats(0, 1e6), min_size=n, max_size=n),
            st.lists(st.floats(-1, 1) | st.just(float("nan")), min_size=n, max_size=n),
            st.lists(st.sampled_from("ab"), min_size=n, max_size=n),
        )
    )
)
def test_relevance_is_a_share_whatever_goes_in(
    made: tuple[list[list[bool]], list[float], list[float], list[str]],
) -> None:
    present, sizes, similarity, sessions = made
    places = neighbourhood(sessions)
    found = relevance(np.ones(len(present)), np.array(present), np.array(sizes), np.array(similarity), places)
    total = found.total(WEIGHTS)
    assert ((total >= 0) & (total <= 1 + 1e-9)).all()


def test_below_the_gate_there_is_no_answer_and_below_the_floor_no_hit() -> None:
    assert above_floor(np.array([WEIGHTS.gate - 0.01, WEIGHTS.floor]), WEIGHTS, 9).tolist() == [False, False]
    assert above_floor(np.array([WEIGHTS.gate, WEIGHTS.floor, WEIGHTS.floor - 0.01]), WEIGHTS, 9).tolist() == [
        True,
        True,
        False,
    ]
    assert above_floor(np.array([]), WEIGHTS, 9).tolist() == []


def test_the_more_documents_the_more_relevant_the_best_has_to_be() -> None:
    by = Weights(gate=0.2, tenfold=0.05, floor=0.2)
    best = np.array([0.32])
    assert [bool(above_floor(best, by, number).any()) for number in (0, 1, 100, 1000, 100_000)] == [
        True,
        True,
        True,
        False,
        False,
    ]


def test_use_counts_while_it_is_fresh() -> None:
    assert ranking.usefulness(0, 0) == 0 < ranking.usefulness(1, 100) < ranking.usefulness(1, 0) < 1
    assert ranking.usefulness(10_000, 0) == 1


def test_a_snippet_shows_the_words_where_they_stand_together() -> None:
    text = "pump " + "filler " * 100 + "the pond\npump hums\x1b[2J at night " + "filler " * 100
    shown, marked = snippet(text, recogniser(["pond", "pump", "hum"]))
    assert [shown[start:stop] for start, stop in marked] == ["pond", "pump", "hums"]
    assert "\x1b" not in shown and "\n" not in shown and len(shown) < 260


@given(st.text(max_size=2000), st.lists(st.text(min_size=1, max_size=8), max_size=4))
def test_a_snippet_of_anything_is_short_and_its_marks_lie_in_it(text: str, words: list[str]) -> None:
    shown, marked = snippet(text, recogniser(words))
    assert len(shown) <= 260
    assert all(0 <= start < stop <= len(shown) for start, stop in marked)


def test_what_says_nearly_the_same_is_folded() -> None:
    texts = [
        "run the deploy script on staging now please",
        "Run the deploy script on staging, now please!",
        "other words",
    ]
    assert folded(texts, str, 5) == [(texts[0], [texts[1]]), (texts[2], [])]
    assert folded(texts, str, 1) == [(texts[0], [texts[1]])]


def test_what_says_something_else_is_not_compared_one_by_one() -> None:
    looks = 0

    class Text(str):
        def __len__(self) -> int:
            nonlocal looks
            looks += 1
            return super().__len__()

    texts = [Text(f"deploy the {word * 3} service to staging host") for word in map("{:05}".format, range(400))]
    assert len(folded([*texts, *texts], lambda text: text, 1000)) == 400 and looks < 20 * len(texts)


def test_a_rule_is_not_folded_into_its_opposite() -> None:
    texts = [f"{do} push hotfixes directly to the release branch during the freeze" for do in ("Do", "Do not")]
    assert folded(texts, str, 5) == [(texts[0], []), (texts[1], [])]


@pytest.mark.parametrize("text", ["." * 200_000, "$@" * 100_000, "today " * 50_000, "a.b" * 50_000 + "..."])
def test_a_query_of_any_length_is_taken_apart_in_linear_time(text: str) -> None:
    assert len(parse(text, NOW).spans) <= 32


def test_a_session_ranks_by_its_best_turn_and_a_little_by_the_next() -> None:
    turns = [("a1", 0.60), ("b1", 0.59), ("b2", 0.58), ("c1", 0.5), ("c2", 0.5), ("c3", 0.5)]
    assert by_best_turns(turns, {turn: turn[0] for turn, _ in turns}) == ["b", "a", "c"]
