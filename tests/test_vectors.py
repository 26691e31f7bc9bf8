"""Search by meaning: what is found, what must never be, and what survives crashes, races and damage. Both databases."""

from __future__ import annotations

import functools
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recollect.errors import StoreError
from recollect.models.base import ModelFailed
from recollect.models.embed import catalog
from recollect.models.embed.base import Matrix, unit
from recollect.models.embed.static import Static
from recollect.models.embed.transformer import Arctic
from recollect.search import meaning
from recollect.search.vectors import cache, codes, index, update
from recollect.search.vectors import vectors as module
from recollect.search.vectors.index import Index, Rows, Writer, writing
from recollect.search.vectors.passages import LONGEST, MOST, passages
from recollect.search.vectors.vectors import Vectors
from recollect.store import entries, memories, pgvector, stage1
from recollect.store import vectors as store
from recollect.store.database import Database
from recollect.store.ground import Ground
from recollect.store.search import Reach
from recollect.store.vectors import EVERYTHING, Document, Filter, Kind, Model, Part, Ref, Status
from recollect.types import Owner, Role, Scope
from tests.conftest import Clock, Place
from tests.embedders import Hashed, installed
from tests.test_embed import Server
from tests.test_embed import vectors as reply
from tests.test_store import A_MEMORY, A_ROW, NOW, an_entry, key_of, needs_mount, run_on_a_small_disk

OWNERS = (Owner("acme", "ada"), Owner("acme", "bob"), Owner("zeta", "ada"))
PROJECTS = ("garden", "kitchen", "cellar")
DIMENSIONS = 24
MODEL = Model("made/1", DIMENSIONS, Status.SERVING, "made")


BACKENDS = pytest.mark.parametrize(
    ("database_url", "open_vectors"),
    [("sqlite", "codes"), ("postgres", "codes"), ("postgres", "server")],
    indirect=True,
)


@pytest.fixture
def open_vectors(
    request: pytest.FixtureRequest, database_url: Place, database: Database, clock: Clock
) -> Callable[..., Vectors]:
    """Vectors over the test's database: by the cache of codes, and by the server where that can do it itself."""

    def opened(owner: Owner = OWNERS[0], **flags: Any) -> Vectors:
        found = database_url.settings(**{"embedder": "static", **flags})
        return ready(Vectors(Ground(database, found, owner, clock), extension=request.param == "server"))

    return opened


@functools.cache
def static() -> Static:
    return Static()


def ready(vectors: Vectors) -> Vectors:
    """The static model is the same for everybody, and loads slowly."""
    vectors._embedders[catalog.STATIC] = static()
    return vectors


def say(
    database: Database, owner: Owner, texts: Sequence[str], project: str = "garden", role: Role = Role.USER
) -> None:
    with database.write() as tx:
        known = tx.row("SELECT COUNT(*) FROM memory_transcript_entries") or (0,)
        rows = [
            entries.row(key_of(owner), 1, an_entry(f"e{known[0] + number}", content=text, role=role), project, True)
            for number, text in enumerate(texts)
        ]
        entries.insert(tx, rows)


def ask(vectors: Vectors, text: str, limit: int = 5, scope: Filter = EVERYTHING) -> list[str]:
    """The texts that are nearest."""
    query = vectors.query(text)
    if query is None:
        return []
    found = [near.ref for near in vectors.nearest(query, limit, scope)]
    with vectors.database.read() as tx:
        texts = {each.ref: each.text for each in store.load(tx, vectors.owner, found)}
    return [texts[ref] for ref in found]


SAID = (
    "The tomatoes need water every morning.",
    "We paid the electricity bill by bank transfer.",
    "The database runs on port 5432.",
    "My sister plays the violin in an orchestra.",
    "The train to Hamburg leaves at nine.",
)


def test_a_model_is_loaded_once_however_often_there_is_something_to_embed(
    cached: Callable[..., Vectors], database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded: list[Static] = []
    load = Static.__init__

    def counted(self: Static) -> None:
        loaded.append(self)
        load(self)

    vectors = cached()
    vectors._embedders.clear()
    monkeypatch.setattr(Static, "__init__", counted)
    for text in SAID:
        say(database, OWNERS[0], [text])
        assert vectors.update().made[Kind.ENTRY] and ask(vectors, text)[0] == text
    assert len(loaded) == 1


# What is found


class World:
    """Documents of several owners, and what brute force finds among them."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.rows: list[tuple[Owner, Ref, str, bool, Matrix]] = []  # owner, document, project, visible, vectors
        with database.write() as tx:
            for table in ("memory_vectors", "memory_vector_models", "memory_transcript_entries", "memory_stage1"):
                tx.run(f"DELETE FROM {table}")
            for table in ("memory_sources", "memory_memories"):
                tx.run(f"DELETE FROM {table}")
            for owner in OWNERS:
                store.save_model(tx, owner, MODEL, NOW)

    def add(self, owner: Owner, kind: Kind, project: str, made: Matrix, *, withdrawn: bool, number: int) -> None:
        with self.database.write() as tx:
            ref = _document(tx, owner, kind, project, number, withdrawn)
            document = Document(ref, project, "", False)
            store.insert(tx, owner, MODEL.name, [Part(document, place) for place in range(len(made))], made)
        exact = made.astype(np.float16).astype(np.float32)
        self.rows.append((owner, ref, project, not withdrawn, exact))

    def expected(self, owner: Owner, query: Matrix, scope: Filter, *, withdrawn: bool = False) -> dict[Ref, float]:
        return {
            ref: max(float(row @ query) for row in rows if row.any())
            for whose, ref, project, visible, rows in self.rows
            if whose == owner and (visible or withdrawn) and scope.allows(ref.kind, project) and rows.any()
        }


def _document(tx: Any, owner: Owner, kind: Kind, project: str, number: int, withdrawn: bool) -> Ref:
    if kind is Kind.ENTRY:
        uuid = f"e{number}"
        entries.insert(tx, [entries.row(key_of(owner), 1, an_entry(uuid), project, True)])
        if withdrawn:
            entries.set_withdrawn(tx, key_of(owner), [uuid], True)
        ((id,),) = tx.rows(
            "SELECT id FROM memory_transcript_entries WHERE tenant = :t AND agent_id = :a AND entry_uuid = :u",
            {"t": owner.tenant, "a": owner.agent_id, "u": uuid},
        )
        return Ref(kind, str(id))
    if kind is Kind.SUMMARY:
        stage1.save(tx, owner, [replace(A_ROW, session_key=f"s{number}", project_id=project)])
        return Ref(kind, f"s{number}")
    memory = replace(A_MEMORY, id=f"m{number}", revision=number, scope=Scope.PROJECT, scope_id=project)
    memories.replace_sessions(tx, owner, {f"of{number}": [replace(memory, sources=((f"of{number}", "e"),))]})
    return Ref(kind, f"m{number}", number)


DOCUMENTS = st.lists(
    st.tuples(
        st.sampled_from((OWNERS[0], OWNERS[0], *OWNERS)),
        st.sampled_from((Kind.ENTRY, *Kind)),
        st.sampled_from(PROJECTS),
        st.lists(st.integers(0, 40), min_size=1, max_size=3),  # seeds of its vectors; 0 is a vector of zeros
        st.booleans(),
    ),
    min_size=3,
    max_size=25,
)
SCOPES = st.just(EVERYTHING) | st.builds(
    Filter,
    st.none() | st.frozensets(st.sampled_from((*PROJECTS, "", "nowhere"))),
    st.just(frozenset(Kind)) | st.frozensets(st.sampled_from(list(Kind))),
)


def direction(seed: int) -> Matrix:
    row = np.random.default_rng(seed).standard_normal((1, DIMENSIONS)).astype(np.float32)
    return unit(row * bool(seed))[0]


@BACKENDS
@settings(max_examples=50)
@given(DOCUMENTS, SCOPES, st.sampled_from((OWNERS[0], *OWNERS)), st.integers(1, 40), st.integers(1, 12))
def test_the_nearest_are_those_that_brute_force_finds_within_the_scope(
    open_vectors: Callable[..., Vectors],
    database: Database,
    monkeypatch: pytest.MonkeyPatch,
    made: list[tuple[Owner, Kind, str, list[int], bool]],
    scope: Filter,
    owner: Owner,
    seed: int,
    limit: int,
) -> None:
    monkeypatch.setattr(index, "BLOCK", 8)
    world = World(database)
    for number, (whose, kind, project, seeds, withdrawn) in enumerate(made, 1):
        rows = np.array([direction(each) for each in seeds])
        world.add(whose, kind, project, rows, withdrawn=withdrawn and kind is Kind.ENTRY, number=number)
        if number == len(made) // 2 and not open_vectors().extension:  # some through the cache, some behind it
            shutil.rmtree(open_vectors(owner).folder_of_owner, ignore_errors=True)
            cache.catch_up(database, owner, open_vectors(owner).folder(MODEL), MODEL)
    query = direction(seed)
    expected = world.expected(owner, query, scope)
    vectors = open_vectors(owner)
    found = vectors.nearest(query, limit, scope)
    assert [near.similarity for near in found] == pytest.approx(
        sorted(expected.values(), reverse=True)[:limit], abs=1e-4
    )
    assert all(near.similarity == pytest.approx(expected[near.ref], abs=1e-4) for near in found)
    everything = [ref for whose, ref, *_ in world.rows if whose == owner]
    foreign = [ref for whose, ref, *_ in world.rows if whose != owner]
    known = world.expected(owner, query, EVERYTHING, withdrawn=True)
    assert vectors.similarities(query, everything) == pytest.approx(known, abs=1e-4)
    assert set(vectors.similarities(query, [*everything, *foreign])) <= set(everything)
    assert vectors.similarities(query, everything, exact=False) == pytest.approx(known, abs=0.02)
    roughly = vectors.nearest(query, 999, scope, exact=False)
    within = world.expected(owner, query, scope, withdrawn=True)
    assert {near.ref: near.similarity for near in roughly} == pytest.approx(within, abs=0.02)
    assert [near.similarity for near in roughly] == sorted((near.similarity for near in roughly), reverse=True)


@BACKENDS
@pytest.mark.parametrize("scope", [Filter(), Filter(projects=frozenset({"nowhere"})), Filter(None, frozenset())])
def test_without_a_scope_nothing_is_found(
    open_vectors: Callable[..., Vectors], database: Database, scope: Filter
) -> None:
    vectors = open_vectors()
    say(database, vectors.owner, SAID)
    vectors.update()
    query = vectors.query("water the tomatoes")
    assert query is not None
    assert vectors.nearest(query, 5, scope) == []
    assert vectors.nearest(query, 0, EVERYTHING) == []
    assert vectors.nearest(query, 5, scope, exact=False) == []


@BACKENDS
def test_a_small_project_among_many_rows_is_searched_exactly(
    open_vectors: Callable[..., Vectors], database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(codes, "enough", lambda rows: 20)
    world = World(database)
    chance = np.random.default_rng(5)
    for number in range(1, 400):
        project = "cellar" if number % 40 == 0 else "garden"
        rows = unit(chance.standard_normal((1, DIMENSIONS)).astype(np.float32))
        world.add(OWNERS[0], Kind.ENTRY, project, rows, withdrawn=False, number=number)
    vectors, scope = open_vectors(), Filter(frozenset({"cellar"}))
    if not vectors.extension:
        cache.catch_up(database, OWNERS[0], vectors.folder(MODEL), MODEL)
    for seed in range(1, 20):
        expected = world.expected(OWNERS[0], direction(seed), scope)
        found = {near.ref: near.similarity for near in vectors.nearest(direction(seed), 9, scope)}
        assert found == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("database_url", ["postgres"], indirect=True)
@pytest.mark.parametrize(
    "so",
    [
        "ALTER EXTENSION vector SET SCHEMA elsewhere",  # not in our search path
        "UPDATE pg_extension SET extversion = '0.7.4' WHERE extname = 'vector'",
    ],
)
def test_a_pgvector_that_we_cannot_use_is_left_alone(
    database: Database, database_url: Place, clock: Clock, so: str
) -> None:
    with database.write() as tx:
        tx.script("CREATE SCHEMA elsewhere; CREATE EXTENSION vector")
        tx.script(so)
    say(database, OWNERS[0], SAID)
    vectors = Vectors(Ground(database, database_url.settings(embedder="static"), OWNERS[0], clock))
    vectors.update()
    assert ask(vectors, "which port does the database use?", 1) == [SAID[2]]
    assert not vectors.pgvector and not pgvector.create(database)


@pytest.mark.parametrize("database_url", ["postgres"], indirect=True)
def test_vectors_too_long_for_an_index_of_the_server_need_none(database: Database) -> None:
    assert pgvector.create(database)
    with database.write() as tx:
        pgvector.create_index(tx, Model("made/long", 4096, Status.SERVING, "long"))


@pytest.mark.parametrize("database_url", ["postgres"], indirect=True)
def test_the_server_finds_the_nearest_of_many_by_its_index(
    database: Database, database_url: Place, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pgvector, "FEW", 50)
    assert pgvector.create(database) and pgvector.create(database)
    world = World(database)
    with database.write() as tx:
        pgvector.create_index(tx, MODEL)
        pgvector.create_index(tx, MODEL)
    chance = np.random.default_rng(5)
    for number in range(1, 501):
        project, owner = ("cellar", "garden", "kitchen")[number % 3], OWNERS[number % 5 == 0]
        rows = unit(chance.standard_normal((1, DIMENSIONS)).astype(np.float32))
        world.add(owner, Kind.ENTRY, project, rows, withdrawn=number % 7 == 0, number=number)
    vectors = Vectors(Ground(database, database_url.settings(), OWNERS[0], clock))
    with database.read() as tx:
        tx.rows("SELECT set_config('enable_seqscan', 'off', true), set_config('enable_sort', 'off', true)")
        sql = f"EXPLAIN SELECT id FROM memory_vectors WHERE model = '{MODEL.name}' ORDER BY"
        plan = str(tx.rows(f"{sql} (vector::halfvec({DIMENSIONS})) <=> (SELECT '[{'1,' * 23}1]'::halfvec(24)) LIMIT 5"))
    assert "memory_vectors_hnsw" in plan
    hits, scope = 0, Filter(frozenset({"cellar", "garden"}))
    for seed in range(1, 21):
        expected = world.expected(OWNERS[0], direction(seed), scope)
        best = sorted(expected.values(), reverse=True)[:10]
        found = vectors.nearest(direction(seed), 10, scope)
        assert all(near.similarity == pytest.approx(expected[near.ref], abs=1e-3) for near in found)
        hits += sum(near.similarity >= best[-1] - 1e-3 for near in found)
    assert hits / 200 >= 0.97


def test_the_ten_nearest_of_many_are_found_by_their_codes(tmp_path: Path) -> None:
    chance = np.random.default_rng(3)
    centres = chance.standard_normal((300, 128))
    made = unit((centres[chance.integers(0, 300, 20_000)] + 0.7 * chance.standard_normal((20_000, 128))).astype("f4"))
    with writing(tmp_path):
        writer = Writer(tmp_path, 128)
        for start in range(0, 20_000, 7_000):
            part = made[start : start + 7_000]
            writer.add(Rows(range(start + 1, start + len(part) + 1), [0] * len(part), ["p"] * len(part), part))
    opened, hits = Index(tmp_path, 128), 0
    for query in unit(made[:50] + 0.05 * chance.standard_normal((50, 128)).astype("f4")):
        best = set((np.argsort(-(made @ query))[:10] + 1).tolist())
        hits += len(best & set(opened.candidates(query, 10, None, None)[0][:64].tolist()))
    assert hits / 500 >= 0.97


@BACKENDS
def test_a_query_of_other_dimensions_is_refused(open_vectors: Callable[..., Vectors], database: Database) -> None:
    vectors = open_vectors()
    say(database, vectors.owner, SAID)
    vectors.update()
    with pytest.raises(ValueError, match="dimensions"):
        vectors.nearest(np.ones(3, np.float32), 5, EVERYTHING)


# Documents come, change and go


@BACKENDS
def test_every_kind_of_document_gets_vectors_and_is_found(
    open_vectors: Callable[..., Vectors], database: Database
) -> None:
    vectors = open_vectors()
    say(database, vectors.owner, SAID)
    with database.write() as tx:
        row = replace(A_ROW, memory_sentence="Planned a trip.", rollout_summary="The ferry to Oslo was booked.")
        stage1.save(tx, vectors.owner, [row])
        memories.replace_sessions(tx, vectors.owner, {"s@1": [replace(A_MEMORY, text="The pond is deep and cold.")]})
    assert vectors.backlog() == {Kind.ENTRY: 5, Kind.SUMMARY: 1, Kind.MEMORY: 1}
    report = vectors.update()
    assert report.made == {Kind.ENTRY: 5, Kind.SUMMARY: 1, Kind.MEMORY: 1}
    assert not any(report.left.values()) and not any(vectors.backlog().values())
    assert ask(vectors, "watering tomatoes", 1) == [SAID[0]]
    assert "ferry to Oslo" in ask(vectors, "booking a ferry", 1)[0]
    assert ask(vectors, "how deep is the pond?", 1) == ["The pond is deep and cold."]
    assert ask(vectors, "how deep is the pond?", 1, Filter(None, frozenset({Kind.ENTRY})))[0] in SAID
    query = vectors.query("a deep pond")
    assert query is not None
    assert vectors.similarities(query, [Ref(Kind.MEMORY, "m-one")]).keys() == {Ref(Kind.MEMORY, "m-one")}
    assert not vectors.similarities(query, [Ref(Kind.MEMORY, "m-one", 7), Ref(Kind.SUMMARY, "s@1", 1)])
    known = vectors.similarities(query, [Ref(Kind.SUMMARY, "s@1"), Ref(Kind.SUMMARY, "unknown")])
    assert known.keys() == {Ref(Kind.SUMMARY, "s@1")}


@BACKENDS
def test_what_is_withdrawn_deleted_or_changed_is_not_found_as_it_was(
    open_vectors: Callable[..., Vectors], database: Database
) -> None:
    vectors = open_vectors()
    say(database, vectors.owner, SAID)
    vectors.update()
    key = key_of(vectors.owner)
    with database.write() as tx:
        entries.set_withdrawn(tx, key, ["e0"], True)
        entries.amend(tx, key, [an_entry("e2", content="The kettle whistles when the water boils.")])
        tx.run("DELETE FROM memory_transcript_entries WHERE entry_uuid = 'e3'")
    assert sorted(ask(vectors, "tomatoes, database port, violin", 9)) == sorted([SAID[1], SAID[4]])
    assert vectors.backlog()[Kind.ENTRY] == 1
    vectors.update()
    assert ask(vectors, "whistling kettle", 1) == ["The kettle whistles when the water boils."]
    with database.write() as tx:
        entries.set_withdrawn(tx, key, ["e0"], False)
    assert ask(vectors, "watering tomatoes", 1) == [SAID[0]]


@BACKENDS
def test_a_memory_lies_between_what_it_says_and_when_it_matters(
    open_vectors: Callable[..., Vectors], database: Database
) -> None:
    vectors = open_vectors()
    near = []
    for told in ((), ("a loan from the bank", "how much interest do we pay")):
        with database.write() as tx:
            memories.replace_sessions(tx, vectors.owner, {"s@1": [replace(A_MEMORY, occasions=told)]})
        assert vectors.backlog()[Kind.MEMORY] == 1, "what is said of it counts like its text"
        vectors.update()
        served = vectors.serving()
        assert served is not None
        with database.read() as tx:
            (row,) = store.of_documents(tx, vectors.owner, served, [Ref(Kind.MEMORY, "m-one", 1)]).rows
        asked = [Static().embed([text])[0] for text in ("a deep pond", "interest on a loan")]
        assert np.linalg.norm(row.astype(np.float32)) == pytest.approx(1, abs=0.01)
        near.append([float(row @ each) for each in asked])
    assert near[1][1] > near[0][1] + 0.2 and near[1][0] > 0.2


@BACKENDS
def test_a_summary_or_memory_that_changed_gets_a_new_vector(
    open_vectors: Callable[..., Vectors], database: Database
) -> None:
    vectors = open_vectors()
    with database.write() as tx:
        stage1.save(tx, vectors.owner, [replace(A_ROW, memory_sentence="", rollout_summary="All about tulips.")])
        memories.replace_sessions(tx, vectors.owner, {"s@1": [A_MEMORY]})
    vectors.update()
    with database.write() as tx:
        stage1.save(tx, vectors.owner, [replace(A_ROW, memory_sentence="", rollout_summary="All about tulips.")])
    assert not any(vectors.backlog().values())  # saved again as it was
    with database.write() as tx:
        stage1.save(tx, vectors.owner, [replace(A_ROW, memory_sentence="", rollout_summary="All about engines.")])
        memories.replace_sessions(tx, vectors.owner, {"s@1": []})
    assert vectors.backlog() == {Kind.ENTRY: 0, Kind.SUMMARY: 1, Kind.MEMORY: 0}
    assert ask(vectors, "tulips") == []
    vectors.update()
    assert ask(vectors, "an engine") == [" All about engines."]


@BACKENDS
def test_a_memory_is_compared_in_the_view_that_the_model_has_of_memories(
    open_vectors: Callable[..., Vectors], database: Database
) -> None:
    vectors = open_vectors(embedder="arctic", models_folder=str(installed()))
    text, prompt = "Nothing is deployed after Thursday noon.", "is it ok to ship this today?"
    say(database, vectors.owner, [text])
    with database.write() as tx:
        memories.replace_sessions(tx, vectors.owner, {"s@1": [replace(A_MEMORY, text=text)]})
    vectors.update()
    vectors = open_vectors(embedder="arctic", models_folder=str(installed()))
    asked = meaning.ask(vectors, prompt, Reach(vectors.owner, None))
    assert asked is not None and asked.nearest(frozenset({Kind.ENTRY}), 5)
    assert "of_memories" not in vars(vectors.embedder(catalog.ARCTIC)), "not loaded where only talk is searched"
    other = open_vectors(embedder="arctic", models_folder=str(installed()))
    assert meaning.ask(other, prompt, Reach(other.owner, None)).nearest(frozenset({Kind.MEMORY}), 5)
    assert "_talk" not in vars(other.embedder(catalog.ARCTIC)), "nor the one of talk where only memories are"
    near = asked.nearest(frozenset(Kind), 5)
    known = asked.similarities(list(near))
    model = Arctic(installed())
    similarities = []
    for kind, by in ((Kind.ENTRY, model), (Kind.MEMORY, model.of_memories)):
        (ref,) = [each for each in near if each.kind is kind]
        unrelated = meaning._UNRELATED[catalog.ARCTIC] if kind is Kind.ENTRY else 0.0
        likeness = (float(by.embed_question(prompt) @ by.embed([text])[0]) - unrelated) / (1 - unrelated)
        similarities.append(likeness)
        assert near[ref] == pytest.approx(similarities[-1], abs=0.02)
        assert known[ref] == pytest.approx(similarities[-1], abs=0.02)
    assert abs(similarities[0] - similarities[1]) > 0.05


@BACKENDS
def test_a_memory_belongs_to_its_scope(open_vectors: Callable[..., Vectors], database: Database) -> None:
    vectors = open_vectors()
    of = {Scope.USER: "", Scope.PROJECT: "kitchen", Scope.CONVERSATION: "s@1"}
    with database.write() as tx:
        stage1.save(tx, vectors.owner, [replace(A_ROW, session_key="s@1", project_id="garden")])
        stated = [replace(A_MEMORY, id=f"m-{scope}", scope=scope, scope_id=id) for scope, id in of.items()]
        lost = replace(A_MEMORY, id="m-lost", scope=Scope.CONVERSATION, scope_id="gone@1")
        held = [replace(m, sources=(("s@1", "e"),)) for m in [*stated, lost]]
        memories.replace_sessions(tx, vectors.owner, {"s@1": held})
    vectors.update()
    query = vectors.query("a deep pond")
    assert query is not None

    def seen(*projects: str) -> set[str]:
        scope = Filter(frozenset(projects), frozenset({Kind.MEMORY}))
        return {near.ref.key for near in vectors.nearest(query, 9, scope)}

    assert seen("") == {"m-user"}
    assert seen("kitchen") == {"m-project"}
    assert seen("", "garden") == {"m-user", "m-conversation"}
    assert seen("garden", "kitchen", "cellar") == {"m-conversation", "m-project"}
    with database.write() as tx:  # the conversation turns out to belong elsewhere
        stage1.save(tx, vectors.owner, [replace(A_ROW, session_key="s@1", project_id="cellar")])
    assert seen("", "garden") == {"m-user"}


@BACKENDS
def test_a_text_with_nothing_in_it_is_done_and_near_nothing(
    open_vectors: Callable[..., Vectors], database: Database
) -> None:
    vectors = open_vectors()
    say(database, vectors.owner, ["", " \n ", SAID[0]])
    assert vectors.update().made[Kind.ENTRY] == 3
    assert not any(vectors.backlog().values())
    assert ask(vectors, "anything", 9) == [SAID[0]]
    assert vectors.query("  ") is None
    assert vectors.update().made[Kind.ENTRY] == 0


@BACKENDS
def test_the_newest_come_first_and_a_limit_holds(open_vectors: Callable[..., Vectors], database: Database) -> None:
    vectors = open_vectors()
    say(database, vectors.owner, SAID)
    told: list[tuple[int, int]] = []
    report = vectors.update(2, lambda done, of: told.append((done, of)))
    assert (report.made[Kind.ENTRY], report.left[Kind.ENTRY]) == (2, 3)
    assert sorted(ask(vectors, "anything at all", 9)) == sorted(SAID[3:])
    assert told[0] == (0, 5) and told[-1] == (2, 5)
    vectors.update(2)
    assert vectors.update(2).left[Kind.ENTRY] == 0


@BACKENDS
def test_embedding_can_be_switched_off(open_vectors: Callable[..., Vectors], database: Database) -> None:
    vectors = open_vectors(embedder="none")
    say(database, vectors.owner, SAID)
    report = vectors.update()
    assert (report.model, report.serving, sum(report.made.values())) == ("", "", 0)
    assert not any(vectors.backlog().values())
    assert vectors.query("tomatoes") is None
    assert open_vectors().update().serving and open_vectors().serving() is not None
    vectors = open_vectors(embedder="none")
    assert vectors.serving() is None and vectors.query("tomatoes") is None, "also when there are some from before"


# Passages


def test_passages_are_sentences_joined_up_to_a_length() -> None:
    assert passages("One sentence only.") == []
    assert passages("Short. Also short.") == []
    long = "word " * 25 + "end."
    assert passages(f"{long} {long}\n\nShort. {long}") == [long, f"{long} Short.", long]
    assert len(passages((long + "\n") * 50)) == MOST


@given(st.text(alphabet="ab .!?\n", max_size=900))
def test_passages_hold_what_the_text_holds(text: str) -> None:
    found = passages(text)
    assert len(found) != 1
    assert all(part.strip() == part and part for part in found)
    if found and len(found) < MOST:
        assert "".join("".join(found).split()) == "".join(text.split())
    assert all(len(part) < LONGEST or "\n" not in part for part in found)


@BACKENDS
def test_one_sentence_of_a_long_message_is_found_by_itself(
    open_vectors: Callable[..., Vectors], database: Database
) -> None:
    vectors = open_vectors()
    filler = (
        "Let me tell you about the weather and the roads and the many meetings that we had in all these weeks. " * 6
    )
    long = f"{filler}My sister plays the violin. {filler}"
    say(database, vectors.owner, [filler, long, SAID[1]])
    say(database, vectors.owner, [long.replace("sister", "brother")], role=Role.ASSISTANT)
    vectors.update()
    query = vectors.query("who plays the violin?")
    assert query is not None
    (first, second) = vectors.nearest(query, 2, EVERYTHING)
    assert first.similarity > float(Static().embed([long])[0] @ query) + 0.1  # by its passage, not by the whole
    assert first.similarity > second.similarity + 0.1  # what the assistant says at length gets one vector
    assert vectors.similarities(query, [first.ref])[first.ref] == pytest.approx(first.similarity, abs=1e-5)


# Crashes, races, damage


@pytest.fixture
def cached(database_url: Place, database: Database, clock: Clock) -> Callable[..., Vectors]:
    """Vectors that use the cache of codes, on both databases."""

    def opened(**flags: Any) -> Vectors:
        found = database_url.settings(**{"embedder": "static", **flags})
        return ready(Vectors(Ground(database, found, OWNERS[0], clock), extension=False))

    return opened


def everything_near(vectors: Vectors) -> list[tuple[Ref, float]]:
    query = vectors.query("the morning train to the orchestra")
    assert query is not None
    return [(ref, round(similarity, 5)) for ref, similarity in vectors.nearest(query, 1000, EVERYTHING)]


def codes_file(vectors: Vectors) -> Path:
    model = vectors.serving()
    assert model is not None
    (file,) = vectors.folder(model).glob("*.codes")
    return file


def test_a_crash_between_data_and_state_loses_nothing(
    cached: Callable[..., Vectors], database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    say(database, OWNERS[0], SAID[:2])
    cached().update()

    def crash(self: Writer, state: object) -> None:
        raise KeyboardInterrupt

    say(database, OWNERS[0], SAID[2:])
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(Writer, "_save", crash)
        cached().update()
    half = everything_near(cached())
    assert len(half) == 5
    cached().update()
    assert everything_near(cached()) == half
    shutil.rmtree(cached().folder_of_owner)
    assert everything_near(cached()) == half


DAMAGES: dict[str, Callable[[Path], object]] = {
    "truncated": lambda file: os.truncate(file, 100),
    "empty": lambda file: os.truncate(file, 0),
    "garbage": lambda file: file.write_bytes(os.urandom(file.stat().st_size)),
    "zeros": lambda file: file.write_bytes(bytes(file.stat().st_size)),
    "gone": lambda file: file.unlink(),
    "state gone": lambda file: (file.parent / "state.json").unlink(),
    "state garbage": lambda file: (file.parent / "state.json").write_bytes(b"\xff{}"),
    "state of another": lambda file: (file.parent / "state.json").write_text(
        (file.parent / "state.json").read_text().replace('"rows":', '"rows":9')
    ),
    "folder gone": lambda file: shutil.rmtree(file.parent),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_cache_is_made_again(cached: Callable[..., Vectors], database: Database, damage: str) -> None:
    say(database, OWNERS[0], SAID)
    cached().update()
    before = everything_near(cached())
    DAMAGES[damage](codes_file(cached()))
    assert everything_near(cached()) == before
    cached().update()
    assert everything_near(cached()) == before
    vectors = cached()
    model = vectors.serving()
    assert model is not None and Index(vectors.folder(model), model.dimensions).state.rows >= 5


def test_a_cache_of_another_database_is_not_mistaken_for_this_ones(
    cached: Callable[..., Vectors], database: Database
) -> None:
    say(database, OWNERS[0], [*SAID, *SAID])
    cached().update()
    with database.write() as tx:  # as if the database had been lost and filled again
        for table in ("memory_vectors", "memory_vector_models", "memory_transcript_entries"):
            tx.run(f"DELETE FROM {table}")
    say(database, OWNERS[0], ["The owl sleeps in the barn.", *SAID])
    cached().update()
    assert ask(cached(), "an owl in a barn", 1) == ["The owl sleeps in the barn."]
    assert len(list(cached().folder_of_owner.glob("*/"))) == 1


def test_rows_of_vectors_that_are_gone_are_overwritten_and_many_make_a_new_file(
    cached: Callable[..., Vectors], database: Database
) -> None:
    say(database, OWNERS[0], [f"note number {number} about {SAID[number % 5]}" for number in range(200)])
    cached().update()
    first = codes_file(cached())
    with database.write() as tx:
        tx.run("DELETE FROM memory_transcript_entries WHERE entry_uuid IN ('e3', 'e4')")
    cached().update()
    vectors = cached()
    model = vectors.serving()
    assert model is not None
    state = Index(vectors.folder(model), model.dimensions).state
    assert codes_file(vectors) == first
    assert (state.rows - state.dropped, state.dropped) == (198, 2)
    with database.write() as tx:
        tx.run("DELETE FROM memory_transcript_entries WHERE entry_uuid LIKE 'e1%'")
    cached().update()
    assert codes_file(cached()) != first
    assert len(everything_near(cached())) == 198 - 111


PROGRAM = """
import json, sys
from pathlib import Path
from recollect import config
from recollect.search.vectors.vectors import Vectors
from recollect.store.ground import Ground
from recollect.store.open import open_database
from recollect.types import Owner, utc_now
home, url = sys.argv[1:3]
settings = config.load({"HOME": home}, home=Path(home), flags={"database": url, "embedder": "static"})
ground = Ground(open_database(settings, utc_now), settings, Owner("acme", "ada"), utc_now)
vectors = Vectors(ground, extension=False)
print("ready", flush=True)
report = vectors.update(progress=lambda done, of: print(done, flush=True))
print(json.dumps({"made": sum(report.made.values()), "busy": report.busy}))
"""


def start(place: Place) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", PROGRAM, str(place.home), place.url]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    return process


def finish(process: subprocess.Popen[str]) -> dict[str, Any]:
    assert process.stdout is not None
    with process.stdout as stream:  # not communicate(): a line was read already, and what came with it is in here
        out = stream.read()
    assert process.wait(60) == 0
    result: dict[str, Any] = json.loads(out.splitlines()[-1])
    return result


def many(number: int) -> list[str]:
    return [f"note {each}: {SAID[each % 5]} {SAID[each % 3]}" for each in range(number)]


def test_a_process_that_is_killed_leaves_what_another_goes_on_from(
    cached: Callable[..., Vectors], database: Database, database_url: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    say(database, OWNERS[0], many(1_000))
    left = [1_000]
    for steps in (2, 5, 1):
        process = start(database_url)
        assert process.stdout is not None
        for _ in range(steps):
            process.stdout.readline()
        process.send_signal(signal.SIGKILL)
        process.communicate()
        left.append(cached().backlog()[Kind.ENTRY])
        cached().query("tea")
    assert left == sorted(left, reverse=True) and left[-1] < 1_000
    cached().update()
    assert not any(cached().backlog().values())
    grown = everything_near(cached())
    shutil.rmtree(cached().folder_of_owner)
    assert everything_near(cached()) == grown
    with database.read() as tx:
        assert tx.row("SELECT COUNT(*) FROM memory_vectors WHERE part = 0") == (1_000,)


def test_two_processes_at_once_make_every_vector_once(
    cached: Callable[..., Vectors], database: Database, database_url: Place
) -> None:
    say(database, OWNERS[0], many(800))
    reports = [finish(process) for process in [start(database_url), start(database_url)]]
    assert sum(report["made"] for report in reports) == 800
    assert sorted(report["busy"] for report in reports) == [False, True] or all(
        not report["busy"] for report in reports
    )
    with database.read() as tx:
        assert tx.row("SELECT COUNT(*) FROM memory_vectors WHERE part = 0") == (800,)
    assert len(everything_near(cached())) == 800


def test_a_cache_that_cannot_be_written_is_told_and_search_goes_on(
    cached: Callable[..., Vectors], database: Database, database_url: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    say(database, OWNERS[0], SAID)
    cached().update()
    before = everything_near(cached())
    shutil.rmtree(database_url.home / "index")
    (database_url.home / "index").write_text("in the way")
    monkeypatch.setattr(module, "_TAIL", 2)
    with pytest.raises(StoreError) as caught:
        cached().update()
    assert "nothing is lost" in caught.value.hint
    assert everything_near(cached()) == before


ON_A_FULL_DISK = """
import sys
from pathlib import Path
from recollect.errors import StoreFull
from tests.conftest import Clock, Place
from tests.test_vectors import OWNERS, SAID, EVERYTHING, Ground, Vectors, many, say

disk = Path(sys.argv[1])
place = Place("sqlite", "", disk / "home")
database = place.open()
vectors = Vectors(Ground(database, place.settings(embedder="static"), OWNERS[0], Clock()))
say(database, OWNERS[0], many(500))
vectors.update()
say(database, OWNERS[0], many(500))
held = []
try:
    with (disk / "more").open("wb") as file:
        while True:
            file.write(bytes(4096))
            file.flush()
except OSError:
    pass
try:
    vectors.update()
    raise SystemExit("updated")
except StoreFull as error:
    assert error.hint
(disk / "ballast").unlink()
(disk / "more").unlink()
vectors.update()
query = vectors.query("tomatoes")
assert len(vectors.nearest(query, 1000, EVERYTHING)) == 1000
"""


@needs_mount
def test_a_full_disk_is_told_and_loses_nothing(tmp_path: Path) -> None:
    done = run_on_a_small_disk(ON_A_FULL_DISK, tmp_path / "disk", 24)
    assert done.returncode == 0, done.stderr


def test_the_cache_reports_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from recollect.errors import StoreFull

    def full(*arguments: object) -> int:
        raise OSError(28, "No space left on device")

    with writing(tmp_path):
        writer = Writer(tmp_path, 8)
        monkeypatch.setattr(os, "pwrite", full)
        with pytest.raises(StoreFull):
            writer.add(Rows([1], [0], ["p"], np.ones((1, 8), np.float32)))
    assert Index(tmp_path, 8).state.rows == 0


def test_a_document_that_changes_while_it_is_embedded_gets_no_stale_vector(
    cached: Callable[..., Vectors], database: Database
) -> None:
    say(database, OWNERS[0], SAID)
    changed: list[str] = []

    def answer(body: dict[str, Any]) -> tuple[int, Any]:
        if SAID[0] in body["input"] and not changed:
            changed.append("once")
            with database.write() as tx:
                entries.amend(tx, key_of(OWNERS[0]), [an_entry("e0", content="An owl sat there instead.")])
        return reply(body)

    with Server(answer).running() as server:
        vectors = cached(embedder="openai:any", embedder_url=server.url)
        report = vectors.update()
        assert (report.made[Kind.ENTRY], report.left[Kind.ENTRY]) == (4, 1)
        assert vectors.update().left[Kind.ENTRY] == 0
        assert ask(vectors, "An owl sat there instead.", 1) == ["An owl sat there instead."]


def test_equal_texts_are_embedded_once(cached: Callable[..., Vectors], database: Database) -> None:
    say(database, OWNERS[0], ["Go on.", "Yes."] * 150)
    with Server(reply).running() as server:
        assert cached(embedder="openai:any", embedder_url=server.url).update().made[Kind.ENTRY] == 300
    sent = [text for body in server.bodies for text in body["input"] if text in ("Go on.", "Yes.")]
    assert sorted(sent) == ["Go on.", "Yes."]
    assert cached(embedder="openai:any", embedder_url="http://127.0.0.1:1/v1").update().serving  # nothing to ask for


def test_an_endpoint_that_fails_stops_the_run_and_keeps_what_was_made(
    cached: Callable[..., Vectors], database: Database
) -> None:
    say(database, OWNERS[0], many(200))

    def answer(body: dict[str, Any]) -> tuple[int, Any]:
        return reply(body) if len(server.bodies) < 4 else (503, {})

    server = Server(answer)
    with server.running():
        vectors = cached(embedder="openai:any", embedder_url=server.url)
        with pytest.raises(ModelFailed):
            vectors.update()
    assert 0 < vectors.backlog()[Kind.ENTRY] < 200


# Another model


@BACKENDS
def test_another_model_serves_when_it_has_everything(open_vectors: Callable[..., Vectors], database: Database) -> None:
    say(database, OWNERS[0], many(60))
    open_vectors().update()
    before = open_vectors().serving()
    assert before is not None and before.name == catalog.STATIC
    models = {"embedder": "arctic", "models_folder": str(installed())}
    report = open_vectors(**models).update(20)
    assert (report.model, report.serving, report.left[Kind.ENTRY]) == (catalog.ARCTIC, catalog.STATIC, 40)
    say(database, OWNERS[0], ["The owl sleeps in the barn."])  # meanwhile the old one keeps up
    assert open_vectors(**models).update(1).serving == catalog.STATIC
    assert ask(open_vectors(**models), "an owl in a barn", 1) == ["The owl sleeps in the barn."]
    report = open_vectors(**models).update()
    assert report.serving == catalog.ARCTIC and not any(report.left.values())
    assert ask(open_vectors(**models), "a sleepy bird of the night", 1) == ["The owl sleeps in the barn."]
    with database.read() as tx:
        assert tx.rows("SELECT DISTINCT model FROM memory_vectors") == [(catalog.ARCTIC,)]
        assert [each.name for each in store.models(tx, OWNERS[0])] == [catalog.ARCTIC]
    assert not open_vectors().folder(before).exists()


@BACKENDS
def test_a_long_first_backlog_begins_with_the_static_model(
    open_vectors: Callable[..., Vectors], database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(update, "LONG", 10)
    say(database, OWNERS[0], many(30))
    flags = {"embedder": "auto", "models_folder": str(installed())}
    report = open_vectors(**flags).update(35)
    assert (report.serving, report.left[Kind.ENTRY]) == (catalog.STATIC, 25)
    assert len(ask(open_vectors(**flags), "tomatoes", 99)) == 30
    vectors = open_vectors(**flags)
    assert vectors.update().serving == catalog.wanted(vectors.settings) != catalog.STATIC


@BACKENDS
def test_a_model_that_is_no_longer_there_is_replaced_at_once(
    open_vectors: Callable[..., Vectors], database: Database
) -> None:
    say(database, OWNERS[0], SAID)
    with Server(reply).running() as server:
        open_vectors(embedder="openai:any", embedder_url=server.url).update()
    later = open_vectors()
    assert later.query("tomatoes") is None  # nobody can ask it
    assert later.update(3).serving == catalog.STATIC
    assert len(ask(later, "tomatoes")) == 3


# Erasing


def holds(folder: Path, needle: bytes) -> list[str]:
    return [str(path) for path in folder.rglob("*") if path.is_file() and needle in path.read_bytes()]


def test_nothing_of_an_erased_vector_is_left(
    cached: Callable[..., Vectors], database: Database, database_url: Place
) -> None:
    say(database, OWNERS[0], [*many(50), "My secret garden lies behind the old mill."])
    vectors = cached()
    vectors.update()
    query = vectors.query("My secret garden lies behind the old mill.")
    assert query is not None
    (near,) = vectors.nearest(query, 1, EVERYTHING)
    model = vectors.serving()
    assert model is not None
    with database.read() as tx:
        rows = store.of_documents(tx, vectors.owner, model, [near.ref]).rows
    stored, (components, _) = rows.astype("<f2").tobytes(), codes.rounded(rows)
    assert holds(database_url.home, components.tobytes())
    if database_url.kind == "sqlite":
        assert holds(database_url.home, stored)
    with database.write() as tx:
        tx.run("DELETE FROM memory_transcript_entries WHERE entry_uuid = 'e50'")
    assert vectors.erase([near.ref]) == ""  # its row went with the entry, and now the rest
    assert near.ref not in [each.ref for each in vectors.nearest(query, 99, EVERYTHING)]
    for needle in (stored, components.tobytes(), components.tobytes()[:64]):
        assert holds(database_url.home, needle) == []


def test_erasing_takes_passages_and_every_model_with_it(cached: Callable[..., Vectors], database: Database) -> None:
    long = "The owl sleeps in the barn by day. " * 4 + "It hunts mice at night by the river. " * 4
    say(database, OWNERS[0], [long, *many(20)])
    cached().update()
    vectors = cached(embedder="arctic", models_folder=str(installed()))
    vectors.update(21)
    ref = next(near.ref for near in vectors.nearest(vectors.query("an owl in a barn"), 1, EVERYTHING))  # type: ignore[arg-type]
    vectors.erase([ref])
    with database.read() as tx:
        assert tx.rows("SELECT 1 FROM memory_vectors WHERE number = :id", {"id": int(ref.key)}) == []


class Turned(Hashed):
    """Sees memories in a way of its own."""

    has_two_views = True

    @property
    def of_memories(self) -> Turned:
        return self


def test_texts_are_compared_by_one_model_though_another_serves_meanwhile(
    cached: Callable[..., Vectors],
) -> None:
    vectors, by_name = cached(), {"one/1": Turned("one/1", 64), "two/1": Turned("two/1", 32)}
    vectors._embedders.update(by_name)
    for name, embedder in by_name.items():
        with vectors.database.write() as tx:
            store.save_model(tx, vectors.owner, Model(name, embedder.dimensions, Status.SERVING, "0" * 16), NOW)
        near, far = vectors.likeness("green tea", ["green tea", "a red boat"])
        assert near == pytest.approx(1.0, abs=1e-5) and far < near
        vectors.likeness("green tea", ["green tea"])
        assert embedder.texts == ["green tea", "a red boat"], "each is embedded once"
        with vectors.database.write() as tx:
            store.save_model(tx, vectors.owner, Model(name, embedder.dimensions, Status.STAGED, "0" * 16), NOW)
