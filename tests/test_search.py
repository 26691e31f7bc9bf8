"""Search on both databases: what is found, in which order, within which scope; and what follows when rows change."""

from __future__ import annotations

import os
import string
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from recollect import ALL_PROJECTS
from recollect.app import Memory, open_memory
from recollect.errors import UsageError
from recollect.search.memories import Clue
from recollect.search.values import Hit
from recollect.store import entries, memories, stage1
from recollect.store import search as rows
from recollect.store import words as store
from recollect.store.entries import FileKey
from recollect.store.search import Reach
from recollect.types import Entry, MemoryKind, Remembered, Role, Scope, Severity, Stage1, Timestamp
from tests.conftest import Clock, Place
from tests.embedders import installed
from tests.test_watch import watching
from tests.transcripts import SESSION, append, talk, write

NOW = datetime(2026, 3, 28, 12, 0, tzinfo=UTC)
GARDEN, API = "example.com/ada/garden", "example.com/ada/api"

number = count(1)


@pytest.fixture
def memory(database_url: Place) -> Iterator[Memory]:
    flags: dict[str, Any] = {"database": database_url.url, "embedder": "none"}
    with open_memory(database_url.home, environ={}, clock=Clock(NOW), **flags) as opened:
        yield opened


def say(memory: Memory, *texts: str, project: str = GARDEN, session: str = "s1", **changes: Any) -> list[str]:
    """Stores messages as ingest would; returns their ids."""
    made = []
    for text in texts:
        turn = next(number)
        entry = Entry(
            uuid=f"e{turn}",
            session_id=session,
            role=changes.get("role", Role.USER),
            content=text,
            timestamp=Timestamp(changes.get("at", "2026-03-20T10:00:00.000Z")),
            line_offset=turn,
        )
        made.append(entries.row(key_of(memory, session), 1, entry, project, True))
    with memory.database.write() as tx:
        entries.insert(tx, made)
    return [row.uuid for row in made]


def key_of(memory: Memory, session: str = "s1") -> FileKey:
    return FileKey(memory.owner, changes_source(session), f"{session}.jsonl")


def changes_source(session: str) -> str:
    return "codex" if session.startswith("codex") else "claude-code"


def remember(memory: Memory, text: str, id: str = "m-one", revision: int = 1, **changes: Any) -> None:
    made = Remembered(
        id=id,
        revision=revision,
        kind=MemoryKind.FACT,
        text=text,
        severity=Severity.NONE,
        scope=Scope.PROJECT,
        scope_id=GARDEN,
        created_at=Timestamp("2026-03-01T00:00:00.000Z"),
        valid_from=Timestamp(f"2026-03-0{revision}T00:00:00.000Z"),
        sources=((f"s@{revision}", "e"),),
    )
    with memory.database.write() as tx:
        memories.replace_sessions(tx, memory.owner, {f"s@{revision}": [replace(made, **changes)]})


def summarise(memory: Memory, text: str, key: str = "s@1", project: str = GARDEN) -> None:
    at = Timestamp("2026-03-10T00:00:00.000Z")
    row = Stage1(
        session_key=key,
        source="claude-code",
        session_id="s",
        project="/garden",
        project_id=project,
        first_message_at=at,
        source_updated_at=at,
        entry_count=3,
        snapshot="x",
        generated_at=at,
        strategy="test",
        parts=1,
        raw_memory="",
        rollout_summary=text,
        rollout_slug="a-slug",
        memory_sentence="",
    )
    with memory.database.write() as tx:
        stage1.save(tx, memory.owner, [row])


def find(memory: Memory, query: str, scope: Any = GARDEN, **more: Any) -> list[str]:
    return [hit.id for hit in memory.search(query, scope=scope, **more)]


# What is found


def test_the_message_that_answers_stands_first_and_others_are_left_out(memory: Memory) -> None:
    (pump,) = say(memory, "The pond pump needs a new filter every spring.")
    say(memory, "Roses are pruned in February.", "Fine.", session="s2")
    assert find(memory, "when does the pond pump need a filter?") == [pump]


def test_a_question_about_something_unknown_finds_nothing(memory: Memory) -> None:
    say(memory, "The pond pump needs a new filter every spring.", "Roses are pruned in February.", "Fine.")
    assert find(memory, "What is the half-life of polonium-210?") == []
    assert find(memory, "") == find(memory, " ?!… ") == []


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("the handler calls getUserName and returns", "user name"),
        ("the handler calls getUserName and returns", "getusername"),
        ("the handler calls getUserName and returns", "GetUserName()"),
        ("a bug in parse_http_header again", "http header"),
        ("a bug in parse_http_header again", "parse_http_header"),
        ("edit src/recollect/store/sqlite.py first", "store/sqlite.py"),
        ("edit src/recollect/store/sqlite.py first", "sqlite"),
        ("pinned numpy to 2.4.6 for now", "numpy 2.4.6"),
        ("it says Error: ENOENT, open '/etc/foo.conf'", "ENOENT: no such file, open '/etc/foo.conf'"),
        ("the naïve café approach", "naive cafe"),
        ("houses, purchases and exercises", "house purchase exercise"),
        ("über die Brücke", "brücke"),
    ],
)
def test_code_is_found_by_its_parts_and_as_it_is_written(memory: Memory, text: str, query: str) -> None:
    (wanted,) = say(memory, text)
    say(memory, "nothing of that kind stands here", "and nothing here either", session="s2")
    assert find(memory, query)[:1] == [wanted]


def test_nothing_in_a_query_is_syntax(memory: Memory) -> None:
    (wanted,) = say(memory, "foo-bar and baz are the two branches")
    say(memory, "a message about lunch", session="s2")
    for query in ('foo-bar "baz', "foo AND (baz OR", "baz*", "foo:baz", "NEAR(foo baz)", "'baz' & foo | !", "foo\\bar"):
        assert find(memory, query) == [wanted], query


def test_an_exact_name_stands_above_its_parts(memory: Memory) -> None:
    parts, exact = say(memory, "retry the count, then count the max and retry", "set max_retry_count to five")
    assert find(memory, "max_retry_count")[0] == exact
    assert parts != exact


def test_a_turn_is_found_by_the_question_it_answers(memory: Memory) -> None:
    question, answer = say(memory, "Which port does the staging database listen on?", "On 6543.")
    say(memory, "Lunch was good.", "So was dinner.", session="s2")
    assert find(memory, "staging database port") == [question, answer]


def test_what_others_say_meanwhile_takes_no_message_from_its_neighbours(memory: Memory) -> None:
    talk = ["Which tree?", "A quince by the gate.", "When do we plant it?", "In autumn.", "And who waters the quince?"]
    times = [f"2026-03-20T10:0{minute}:00.000Z" for minute in range(len(talk))]
    for text, at in zip(talk, times, strict=True):
        say(memory, text, at=at)
    for text, at in zip(talk, times, strict=True):
        say(memory, text, session="s2", project=API, at=at)
        say(memory, "Something", "else", session="s3", project="elsewhere", at=at)

    def scores(project: str) -> list[tuple[str, float]]:
        return [(hit.text, hit.score) for hit in memory.search("plant the quince", scope=project)]

    assert len(scores(GARDEN)) > 2
    assert scores(API) == scores(GARDEN)


def test_a_time_in_the_query_lifts_what_was_said_then(memory: Memory) -> None:
    old = say(memory, "We went through the release checklist.", at="2026-02-02T10:00:00.000Z", session="a")
    new = say(memory, "We went through a release checklist.", at="2026-03-18T10:00:00.000Z", session="b")
    march = memory.search("release checklist last week", scope=GARDEN)
    february = memory.search("release checklist in February", scope=GARDEN)
    assert [hit.id for hit in february] == old or february[0].id == old[0]
    assert march[0].id == new[0]
    assert february[0].why.boosts["time"] > 0


def test_near_duplicates_are_folded_into_the_best(memory: Memory) -> None:
    said = say(memory, *["Please run the deploy script on the staging server now."] * 4)
    (hit,) = memory.search("deploy script staging server", scope=GARDEN)
    assert {hit.id, *hit.also} == set(said)


def test_copies_of_one_line_leave_room_for_others_however_many_they_are(memory: Memory) -> None:
    copies = say(memory, *["run the tests", "Run the tests"] * 100)
    others = [say(memory, f"The {name} tests take an hour on staging.", session=name)[0] for name in ("slow", "old")]
    best, *rest = memory.search("run the tests", scope=GARDEN)
    assert {best.id, *best.also} == set(copies)
    assert {hit.id for hit in rest} == set(others)


def test_memories_summaries_and_entries_are_found_together_and_by_kind(memory: Memory) -> None:
    remember(memory, "The pond pump needs a new filter every spring.")
    summarise(memory, "They repaired the pond pump and ordered a filter for spring.")
    (entry,) = say(memory, "I bought a filter for the pond pump, it is spring after all")
    assert find(memory, "pond pump filter spring") == ["m-one", "s@1", entry]
    for kind, wanted in (("memory", "m-one"), ("summary", "s@1"), ("entry", entry)):
        assert find(memory, "pond pump filter spring", kinds=[kind]) == [wanted]


def test_filters_by_role_source_and_time(memory: Memory) -> None:
    (asked,) = say(memory, "is the barometer rising", at="2026-03-01T00:00:00.000Z")
    (told,) = say(
        memory, "the barometer is falling", role=Role.ASSISTANT, at="2026-03-10T00:00:00.000Z", session="codex"
    )
    assert find(memory, "barometer", role="user") == [asked]
    assert find(memory, "barometer", role="assistant") == [told]
    assert find(memory, "barometer", source="codex") == [told]
    assert find(memory, "barometer", since="2026-03-05") == [told]
    assert find(memory, "barometer", until="2026-03-09") == [asked]
    assert set(find(memory, "barometer", until="2026-03-10")) == {asked, told}, "a day is seen as a whole"
    assert find(memory, "barometer", until="2026-03-10T00:00") == [asked]
    for wrong in ({"role": "nobody"}, {"kinds": ["thought"]}, {"since": "soon"}):
        with pytest.raises(UsageError):
            find(memory, "barometer", **wrong)


def test_a_filter_is_heard_before_the_best_are_chosen(memory: Memory) -> None:
    for number in range(1, 61):
        said = {"id": f"m-{number}", "revision": number, "valid_from": "2026-03-01T00:00:00.000Z"}
        remember(memory, f"Deploy the api cluster, step {number}", **said)
    remember(memory, "Deploy the api cluster", id="m-new", revision=61, valid_from="2026-03-20T00:00:00.000Z")
    assert find(memory, "deploy api cluster", since="2026-03-15", kinds=["memory"]) == ["m-new"]


def test_a_hit_says_where_it_comes_from_and_why(memory: Memory) -> None:
    (uuid,) = say(memory, "noise " * 200 + "the pond pump hums at night " + "noise " * 200)
    (hit,) = memory.search("why does the pond pump hum?", scope=GARDEN)
    assert (hit.entry_uuid, hit.source_file, hit.session_id, hit.project_id) == (uuid, "s1.jsonl", "s1", GARDEN)
    assert {hit.snippet[start:stop] for start, stop in hit.marks} == {"pond", "pump", "hums"}
    assert set(hit.why.matched) == {"pond", "pump", "hum"}
    assert not hit.why.known
    assert hit.score == pytest.approx(hit.why.relevance + sum(hit.why.boosts.values()), abs=1e-3)


def test_the_same_question_gets_the_same_answer(memory: Memory) -> None:
    say(memory, *(f"note {each % 7} about the tide table and harbour {each}" for each in range(60)))
    first = memory.search("tide table harbour note", scope=GARDEN, limit=20)
    assert [hit.id for hit in first] == find(memory, "tide table harbour note", limit=20)
    assert len(first) > 5


# Rows change


def test_withdrawn_messages_are_not_found_until_they_are_back(memory: Memory) -> None:
    (uuid,) = say(memory, "the barometer is falling")
    assert find(memory, "barometer") == [uuid]
    for withdrawn in (True, False):
        with memory.database.write() as tx:
            entries.set_withdrawn(tx, key_of(memory), [uuid], withdrawn)
        assert find(memory, "barometer") == ([] if withdrawn else [uuid])


def test_the_index_follows_changed_and_deleted_messages(memory: Memory) -> None:
    (first,) = say(memory, "the barometer is falling")
    (second,) = say(memory, "the hygrometer is broken", session="s2")
    memory.index()
    changed = Entry(first, "s1", Role.USER, "the thermometer is rising", Timestamp("2026-03-20T10:00:00.000Z"), 0)
    with memory.database.write() as tx:
        entries.amend(tx, key_of(memory), [changed])
    assert find(memory, "barometer") == []
    assert find(memory, "thermometer") == [first]
    with memory.database.write() as tx:
        entries.delete_from(tx, key_of(memory), 1, 0)
        entries.delete_from(tx, key_of(memory, "s2"), 1, 0)
    assert find(memory, "hygrometer") == find(memory, "thermometer") == []
    (third,) = say(memory, "the hygrometer works again")  # takes the number of a row that is gone
    assert find(memory, "hygrometer") == [third]
    assert second != third


def test_what_was_stored_before_the_index_existed_is_found(memory: Memory) -> None:
    uuids = say(memory, *(f"barometer reading {each} is {each * 7}" for each in range(30)))
    assert store.index_entries(memory.database, batch=7) == (30 if memory.database.dialect.name == "sqlite" else 0)
    assert store.index_entries(memory.database) == 0
    assert set(find(memory, "barometer reading", limit=30)) <= set(uuids)


def test_erased_words_leave_the_index(memory: Memory, database_url: Place) -> None:
    if database_url.kind == "postgres":
        pytest.skip("there the words are a column of the row itself")
    say(memory, "keep the heliotrope", "the zanzibarite is secret")
    remember(memory, "The quetzalcoatlus is secret too.")
    memory.index()
    with memory.database.write() as tx:
        tx.run("DELETE FROM memory_transcript_entries WHERE content LIKE '%secret%'")
        tx.run("DELETE FROM memory_memories")
    with memory.database.write() as tx:
        for table in ("memory_entry_words_data", "memory_text_words_data"):
            for (block,) in tx.rows(f"SELECT block FROM {table}"):
                assert b"anzibarit" not in block and b"uetzalcoatl" not in block
        terms = {term for (term,) in tx.rows("SELECT term FROM memory_entry_vocabulary")}
        tx.run("INSERT INTO memory_entry_words (memory_entry_words, rank) VALUES ('integrity-check', 0)")
    assert "heliotrop" in terms and "secret" not in terms


@pytest.mark.parametrize(
    ("text", "queries"),
    [
        ("我们决定使用PostgreSQL数据库连接池来提高性能。", ["数据库", "连接池", "postgresql", "提高性能"]),
        ("昨日東京に行って、魚を食べました。データベースは遅い。", ["東京", "データベース"]),
        ("ฉันชอบกินข้าวผัดกระเพราที่ตลาด", ["ข้าวผัด", "ตลาด"]),
        ("데이터베이스가 느립니다", ["데이터베이스", "데이터베이스가"]),
        ("The café in Zürich serves crème bru\u0302le\u0301e", ["cafe zurich", "café", "crème brûlée"]),
        ("हम ने यह हिन्दी में लिखा।", ["हिन्दी", "लिखा"]),
        ("தமிழ் மொழியில் எழுதப்பட்டது", ["மொழியில்"]),
        ("We saw The Who at Leeds, and Will was with us", ["who", "will"]),
        ("To be or not to be", ["to be or not to be"]),
        ("I don't", ["don't"]),
        ("مرحبا، كيف الحال؟ €100→200 ✓ok🎉", ["مرحبا", "الحال", "100", "200", "ok"]),
        ("HTTPServer and XMLHttpRequest are in the list", ["server", "xml request", "HTTPServer"]),
    ],
)
def test_a_text_is_found_by_the_words_in_it_whatever_the_script(memory: Memory, text: str, queries: list[str]) -> None:
    """Also without spaces between them, without accents, and inside a name."""
    (found,) = say(memory, text)
    say(memory, "今天天气很好，我想去公园散步。", "The heron stands in the pond.", session="s2")
    for query in queries:
        assert [hit.id for hit in memory.search(query, scope=GARDEN)] == [found], query


def test_only_the_revision_that_holds_is_found(memory: Memory) -> None:
    remember(memory, "The server listens on port 8080.", revision=1)
    remember(memory, "The server listens on port 9090.", revision=2)
    (hit,) = memory.search("which port does the server listen on", scope=GARDEN)
    assert (hit.revision, "9090" in hit.text) == (2, True)
    with memory.database.write() as tx:
        memories.replace_sessions(tx, memory.owner, {"s@2": []})
    (hit,) = memory.search("which port does the server listen on", scope=GARDEN)
    assert (hit.revision, "8080" in hit.text) == (1, True)


def test_what_a_memory_said_before_it_was_corrected_makes_nothing_similar(database_url: Place) -> None:
    """Neither what it says now, nor another revision, whichever of them was embedded last."""
    flags: dict[str, Any] = {"database": database_url.url, "embedder": "static"}
    with open_memory(database_url.home, environ={}, clock=Clock(NOW), **flags) as memory:
        remember(memory, "The pond pump is cleaned on Mondays.", revision=2, valid_from="2026-03-01T00:00:00.000Z")
        remember(memory, "Herons nest in May.", revision=1, valid_from="2026-03-02T00:00:00.000Z")
        memory.embed()
        assert memory.search("cleaning the pump of the pond", scope=GARDEN) == []
        assert not any(clue.similar[0] and clue.similar[0] > 0.5 for clue in evidence(memory, "cleaning the pond pump"))
        (hit,) = memory.search("herons and their nests", scope=GARDEN)
        assert hit.why.known and hit.revision == 1


def evidence(memory: Memory, prompt: str) -> list[Clue]:
    """What speaks for each memory, as the injector asks."""
    return memory._search.memories.clues([prompt], {"nest": 1.0}, Reach(memory.owner, (GARDEN,))).each


def test_a_backlog_is_embedded_by_a_model_that_is_loaded_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However often the clock is looked at in between."""
    from tokenizers import Tokenizer

    loaded = []

    class Counted:
        @staticmethod
        def from_file(path: str) -> Tokenizer:
            loaded.append(path)
            return Tokenizer.from_file(path)

    monkeypatch.setattr("tokenizers.Tokenizer", Counted)
    with open_memory(tmp_path / "home", environ={}, clock=Clock(NOW), embedder="static") as memory:
        say(memory, *(f"Pump number {each} stands by the gate." for each in range(600)))
        assert memory.embed(seconds=600) == 600
    assert len(loaded) == 1


def test_of_what_was_said_over_and_over_the_newest_is_found(memory: Memory) -> None:
    for place in range(300):
        say(memory, "The pond pump hums.", session=f"s{place}", at=f"2026-03-{1 + place // 30:02}T10:00:00.000Z")
    (hit,) = memory.search("pond pump hums", scope=GARDEN)
    assert hit.timestamp.startswith("2026-03-10")


def test_a_summary_that_is_replaced_is_found_by_its_new_words(memory: Memory) -> None:
    summarise(memory, "They repaired the pump.")
    summarise(memory, "They repaired the windmill.")
    assert find(memory, "repaired windmill") == ["s@1"]
    assert "pump" not in memory.search("repaired", scope=GARDEN)[0].text
    with memory.database.write() as tx:
        stage1.delete(tx, memory.owner, ["s@1"])
    assert find(memory, "repaired windmill") == []


def test_what_was_used_stands_above_what_was_not(memory: Memory) -> None:
    remember(memory, "The pond pump hums when it is cold.", id="m-a")
    remember(memory, "The pond pump hums when it is dirty.", id="m-b", revision=2)
    before = find(memory, "pond pump hums")
    memory.cite([before[-1]])
    assert find(memory, "pond pump hums")[0] == before[-1]


def test_what_a_person_thought_of_a_memory_moves_it(memory: Memory) -> None:
    for name, number in (("m-one", 1), ("m-two", 2)):
        remember(memory, f"The pond pump number {number} stands by the gate.", id=name, revision=number)

    def found() -> list[str]:
        return [hit.id for hit in memory.search("pond pump by the gate", scope=GARDEN, kinds=["memory"])]

    first, second = found()
    memory.feedback(first, "not_ok")
    memory.feedback(second, "ok")
    assert found() == [second, first]


def test_a_verdict_counts_until_the_memory_is_put_right(memory: Memory) -> None:
    told = memory.remember("The pond pump is cleaned on Mondays.", everywhere=True)
    memory.feedback(told.id, "not_ok")

    def thought() -> float | None:
        (hit,) = memory.search("pond pump cleaned", scope=GARDEN, kinds=["memory"])
        return hit.why.boosts.get("feedback")

    assert (thought() or 0) < 0
    memory.clock.advance(60)  # type: ignore[attr-defined]
    memory.correct(told.id, "The pond pump is cleaned on Fridays.")
    assert thought() is None


# Scope


def test_a_missing_scope_is_an_error(memory: Memory) -> None:
    with pytest.raises(TypeError):
        memory.search("pump")  # type: ignore[call-arg]
    for nothing in ("", " ", None, (), [""], 5, [5]):
        with pytest.raises(UsageError):
            memory.search("pump", scope=nothing)  # type: ignore[arg-type]


def test_a_project_sees_its_own_and_what_holds_everywhere(memory: Memory) -> None:
    (mine,) = say(memory, "the barometer is falling", project=GARDEN)
    (other,) = say(memory, "the barometer is rising", project=API, session="s2")
    remember(memory, "Read the barometer daily.", id="m-user", scope=Scope.USER, scope_id="")
    remember(memory, "The barometer hangs in the hall.", id="m-api", revision=2, scope_id=API)
    assert set(find(memory, "barometer")) == {mine, "m-user"}
    assert set(find(memory, "barometer", [API])) == {other, "m-user", "m-api"}
    assert set(find(memory, "barometer", [API, GARDEN])) == {mine, other, "m-user", "m-api"}
    assert set(find(memory, "barometer", ALL_PROJECTS)) == {mine, other, "m-user", "m-api"}
    assert find(memory, "barometer", "*") == ["m-user"]


def test_another_owner_is_never_seen(memory: Memory, database_url: Place) -> None:
    say(memory, "the barometer is falling")
    flags: dict[str, Any] = {"database": database_url.url, "embedder": "none", "agent_id": "eve"}
    with open_memory(database_url.home, environ={}, clock=Clock(NOW), **flags) as other:
        assert find(other, "barometer", ALL_PROJECTS) == find(other, "barometer") == []


WORDS = "barometer pump tide lantern harbour gull rope anchor".split()
PROJECTS = ("p/one", "p/two", "p/three", "")
some_text = st.lists(st.sampled_from(WORDS), min_size=1, max_size=6).map(" ".join)
documents = st.lists(st.tuples(st.sampled_from(PROJECTS), some_text), max_size=12)


@pytest.mark.parametrize("database_url", ["postgres"], indirect=True)
def test_words_that_others_use_all_the_time_are_looked_up_among_our_own(
    memory: Memory, database_url: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rows, "_COUNTED", 3)
    say(memory, "a plum tree", "plum jam", "plum tart", "a tree house")
    with open_memory(database_url.home, environ={}, database=database_url.url, agent_id="other") as other:
        say(other, *["a plum tree"] * 20)
    with memory.database.read() as tx:
        matched = rows.matches(tx, Reach(memory.owner, None), rows.ENTRIES, ["plum", "tree"], budget=5)
    assert {word: len(ids) for word, ids in matched.found.items()} == {"tree": 2, "plum": 3}


def test_a_question_without_words_knows_how_much_it_searches(memory: Memory) -> None:
    say(memory, "a plum tree", "plum jam")
    memory.index()
    with memory.database.read() as tx:
        assert rows.matches(tx, Reach(memory.owner, None), rows.ENTRIES, [], budget=5).total == 2


@settings(max_examples=15, suppress_health_check=list(HealthCheck))
@given(documents, st.sets(st.sampled_from(PROJECTS[:3]), min_size=1), some_text)
def test_no_scope_leaks_into_another(memory: Memory, made: list[tuple[str, str]], scope: set[str], query: str) -> None:
    with memory.database.write() as tx:
        tx.run("DELETE FROM memory_transcript_entries")
        tx.run("DELETE FROM memory_memories")
    for place, (project, text) in enumerate(made):
        say(memory, text, project=project, session=f"s{place % 3}")
        remember(memory, text, id=f"m-{place}", scope_id=project, revision=place % 9 + 1)
    hits = memory.search(query, scope=sorted(scope), limit=100)
    assert {hit.project_id for hit in hits} <= scope
    everything = memory.search(query, scope=ALL_PROJECTS, limit=100)
    assert {hit.project_id for hit in everything} <= set(PROJECTS)
    asked = set(query.split())
    assert all(asked & set(hit.text.split()) or hit.why.around for hit in everything)


@settings(max_examples=60, suppress_health_check=list(HealthCheck))
@given(st.text() | st.text(alphabet=string.punctuation + " aéß中🙂\x00\ud800", max_size=40) | some_text)
def test_no_query_raises_and_results_are_stable(memory: Memory, query: str) -> None:
    if not _unindexed(memory):
        say(memory, "the barometer is falling", "pump & anchor", "中文 text and emoji 🙂")
    first = memory.search(query, scope=ALL_PROJECTS)
    assert memory.search(query, scope=ALL_PROJECTS) == first


# With meaning


def test_meaning_finds_what_shares_no_word(database_url: Place) -> None:
    flags: dict[str, Any] = {"database": database_url.url, "embedder": "arctic", "models_folder": str(installed())}
    with open_memory(database_url.home, environ={}, clock=Clock(NOW), **flags) as memory:
        (cat,) = say(memory, "My kitten sleeps on the sofa all day.")
        say(memory, "The invoice was paid in euros.", "Compile it with optimisation.", session="s2")
        assert find(memory, "where does the young cat nap?") == []
        memory.vectors.update()
        hits: list[Hit] = memory.search("where does the young cat nap?", scope=GARDEN)
        assert [hit.id for hit in hits] == [cat]
        assert hits[0].why.known
        assert find(memory, "where does the young cat nap?", [API]) == []
        assert find(memory, "How is tungsten carbide sintered with cobalt?") == []


# While transcripts are followed


def test_a_message_is_findable_within_a_second_of_being_ingested(database_url: Place, tmp_path: Path) -> None:
    path = write(tmp_path / ".claude" / "projects" / "-work-tides" / f"{SESSION}.jsonl", talk(1, 3))
    flags: dict[str, Any] = {"database": database_url.url, "embedder": "none"}
    with open_memory(database_url.home, **flags) as memory, watching(database_url, tmp_path):
        for extra in (None, talk(4, 4)):
            if extra:
                append(path, extra)
            stored, indexed = _moments(memory, 3 if extra is None else 4)
            assert indexed - stored < 1.0


def _unindexed(memory: Memory) -> int:
    with memory.database.read() as tx:
        return store._left(tx, -1) if tx.dialect.name == "sqlite" else 0


def _moments(memory: Memory, wanted: int) -> tuple[float, float]:
    """When so many entries were stored, and when all of them were in the index: by looking, without indexing here."""
    deadline = time.monotonic() + 20
    stored = 0.0
    while time.monotonic() < deadline:
        with memory.database.read() as tx:
            (entry_count,) = tx.row("SELECT COUNT(*) FROM memory_transcript_entries") or (0,)
        if not stored and entry_count == wanted:
            stored = time.monotonic()
        if stored and _unindexed(memory) == 0:
            return stored, time.monotonic()
        time.sleep(0.01)
    raise AssertionError(f"not in the index after 20 s (pid {os.getpid()})")
