"""Nobody sees anything of another tenant, project, user or conversation, in whatever call."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from typing import Any
from unittest.mock import ANY

import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recollect import note
from recollect.app import Memory, open_memory
from recollect.artifacts import document
from recollect.artifacts.reindex import Reindex
from recollect.consolidate.render import project_path
from recollect.errors import UsageError
from recollect.extract.resolve import memory_id
from recollect.search.values import ALL_PROJECTS
from recollect.store import memories
from recollect.store.database import Transaction
from recollect.store.migrate import migrate
from recollect.turns.turn import ChatTurn
from recollect.turns.values import BUCKET, FINGERPRINT, REACTION, TURN_LOG, assertion, fact
from recollect.types import Remembered, Scope
from tests.conftest import Clock, Place
from tests.test_migrations import unmigrated

NAMES = st.sampled_from(["a", "b", "A", "a b", "a/b", "../a", "a%", "'; --", "ä", "a.b", "default", "*"])
TENANTS = st.sampled_from(["acme", "zeta"])
SCOPES = ("user", "project", "conversation")
SPEC = {"promo": "promo word"}


class World:
    """Everything that was said, by whom; every word names its owner."""

    def __init__(self, place: Place) -> None:
        self.clock = Clock()
        self.place = place
        self.said = 0
        self.opened: dict[str, Memory] = {}

    def memory(self, tenant: str) -> Memory:
        if tenant not in self.opened:
            flags: dict[str, Any] = {"tenant": tenant, "database": self.place.url, "memory_reconcile_turns": 1}
            self.opened[tenant] = open_memory(self.place.home, clock=self.clock, **flags)
        return self.opened[tenant]

    def close(self) -> None:
        for each in self.opened.values():
            each.close()


Who = tuple[str, str, str, str]  # tenant, project, user, conversation


def word(who: Who, scope: str, number: int) -> str:
    return "w" + "".join(f"{ord(letter):04x}" for letter in "|".join(who)) + f"z{scope}{number}"


def words_in(text: str) -> set[tuple[Who, str]]:
    found = set()
    for each in text.replace("·", " ").split():
        each = each.strip(".,:;()[]“”\"'`|{}")
        if each.startswith("w") and "z" in each:
            code, _, rest = each[1:].partition("z")
            try:
                who = "".join(chr(int(code[n : n + 4], 16)) for n in range(0, len(code), 4)).split("|")
            except ValueError:
                continue
            if len(who) == 4:
                found.add(((who[0], who[1], who[2], who[3]), rest.rstrip("0123456789")))
    return found


def everything_of(turn: ChatTurn, memory: Memory, who: Who) -> str:
    """Whatever the calls hand out."""
    turns = memory.turns(project=who[1], user=who[2], conversation=who[3])
    state = turn.preload()
    found = turn.reconcile("Always tell me about the common thing, promo and bread.")
    views = [turn.view(role).text for role in ("gate", "reconciler", "downstream", "final")]
    rows = [str(turns.artifacts(kind, 1000)) for kind in (TURN_LOG, FINGERPRINT, REACTION, BUCKET)]
    recalled = [str(each) for each in turns.recall("common thing bread")]
    buckets = [json.dumps(str(each)) for each in turns.buckets()]
    return "\n".join([str(state), str(found), *views, *rows, *recalled, *buckets, turns.title()])


@settings(max_examples=12)
@given(st.lists(st.tuples(TENANTS, NAMES, NAMES, NAMES), min_size=2, max_size=6, unique=True))
def test_no_call_leaks_between_tenants_projects_users_and_conversations(database_url: Place, people: list[Who]) -> None:
    world = World(database_url)
    try:
        for number, who in enumerate(people):
            told = [
                assertion(f"k{scope}", f"common thing {word(who, scope, number)} with bread.", "must", scope=scope)
                for scope in SCOPES
            ]
            turns = world.memory(who[0]).turns(project=who[1], user=who[2], conversation=who[3])
            with turns.turn(
                f"t{number}-{world.said}", f"A common thing: {word(who, 'text', number)} and bread."
            ) as turn:
                turn.update_fingerprint(assertions=told, facts=[fact("x", f"a {word(who, 'user', number)} b.")])
                turn.persist(f"The promo word is {word(who, 'signal', number)}.", SPEC)
            turns.react(turn.turn_id, "ok", f"thing {word(who, 'feedback', number)} it is")
            turns.reconcile_buckets()
            world.said += 1
            world.clock.advance(60)
        for who in people:
            memory = world.memory(who[0])
            turn = memory.turns(project=who[1], user=who[2], conversation=who[3]).turn("look")
            seen = words_in(everything_of(turn, memory, who))
            assert any(other == who for other, _ in seen), "one's own is there"
            for other, scope in seen:
                assert other[:3] == who[:3], "another tenant, project or user"
                if other != who:
                    assert scope in ("user", "project", "signal"), "only what holds beyond it"
            final = words_in(turn.view("final").text)
            assert {scope for other, scope in final if other != who} <= {"user", "project", "signal"}
            gate = words_in(turn.view("gate").text)
            assert {scope for other, scope in gate if other != who} <= {"user", "project"}
    finally:
        world.close()
        shutil_home(database_url)


def shutil_home(place: Place) -> None:
    """The next example begins with nothing."""
    import shutil

    wiped(place)
    shutil.rmtree(place.home, ignore_errors=True)


def test_a_search_for_turns_never_leaves_its_user(database_url: Place, clock: Clock) -> None:
    names = ["harbour", "north", "island", "fishing", "rocky", "old", "tall", "village", "sandy", "windy"]
    with open_memory(database_url.home, database=database_url.url, clock=clock) as memory:
        for number in range(100):
            turns = memory.turns(project="shop", user=f"user-{number}", conversation="c")
            about = f"{names[number % 10]} {names[number // 10]} {number}"
            text = f"Red lighthouse {about}." if number != 7 else "Somewhere in the fog I once saw a lighthouse."
            with turns.turn("t1", text) as turn:
                turn.update_fingerprint(facts=[fact("lighthouse", f"of {number}")])
        memory.ingest()
        mine = memory.turns(project="shop", user="user-7", conversation="new").recall("red lighthouse")
        assert [each.fingerprint.facts[0].value for each in mine] == ["of 7"], "though all others say it better"
        assert memory.turns(project="other", user="user-7", conversation="new").recall("red lighthouse") == []


PEANUTS = "I'm allergic to peanuts."
WORDS = ("I'm allergic to peanuts.", "I prefer short answers.", "In all my projects, never use emoji.")


def said_by(memory: Memory, clock: Clock, user: str, text: str, project: str = "shop") -> None:
    """A turn, as it becomes memory."""
    with memory.turns(project=project, user=user, conversation="c1").turn(f"t{clock():%d%H%M}", text) as turn:
        turn.reconcile()
        turn.persist("Noted.")
    clock.advance(7200)
    memory.ingest()
    memory.process(now=True)


def of_user(memory: Memory, user: str) -> list[Remembered]:
    with memory.database.read() as tx:
        return memories.current(memories.all_of(tx, memory.owner, user=user))


def told(memory: Memory, user: str, project: str = "shop") -> dict[str, Any]:
    """All that the calls hand out to one user, in words."""
    turns = memory.turns(project=project, user=user, conversation="c1")
    turn = turns.turn("look")
    turn.preload()
    found = turn.reconcile("What about peanuts, answers and emoji in general?")
    return {
        "views": [turn.view(role).text for role in ("gate", "reconciler", "downstream", "final")],
        "found": str(found),
        "recalled": sorted(str(each) for each in turns.recall("peanuts answers emoji")),
        "buckets": [json.dumps(str(each)) for each in turns.buckets()],
        "context": memory.context(project, user=user).text,
        "prompts": [memory.context(project, text, user=user).text for text in ("allergic to peanuts?", "use emoji?")],
        "hits": [
            (each.id, each.text, each.score)
            for text in ("peanuts", "short answers", "emoji")
            for each in memory.search(text, scope=project, user=user)
            if not note.is_session(each.session_id)  # whose ids are drawn by lot
        ],
        "memories": [replace(each, sources=()) for each in of_user(memory, user)],
    }


def files_of(memory: Memory, user: str) -> dict[str, bytes]:
    """The user's logs, buckets and canonical files, but for manifests, which name a line of MEMORY.md."""
    logs = [each for each in memory.settings.turns.rglob("*") if each.is_file() and user in each.parts]
    kept = [each for each in (memory.settings.root / "memory").glob("*.md") if f'user: "{user}"' in each.read_text()]
    return {str(each): each.read_bytes() for each in (*logs, *kept)}


def test_the_same_words_of_two_users_are_two_memories(database_url: Place, clock: Clock) -> None:
    """Whatever one does to theirs leaves the other's turn, memory and files as they are."""
    with open_memory(database_url.home, database=database_url.url, clock=clock) as memory:
        for user in ("anna", "ben"):
            said_by(memory, clock, user, PEANUTS)
        (annas,), (bens,) = of_user(memory, "anna"), of_user(memory, "ben")
        assert (annas.text, bens.text) == (PEANUTS, PEANUTS) and annas.id != bens.id
        assert {uuid.partition(":")[0] for _, uuid in annas.sources}.isdisjoint(
            uuid.partition(":")[0] for _, uuid in bens.sources
        )
        before, files = told(memory, "ben"), files_of(memory, "ben")
        assert PEANUTS in str(before["views"]) and PEANUTS in before["prompts"][0] and len(files) > 2
        actions: list[Callable[[], object]] = [
            lambda: memory.feedback(annas.id, "not_ok", "no more"),
            lambda: memory.correct(annas.id, "I'm allergic to cashews."),
            lambda: memory.pin(annas.id),
            lambda: memory.reindex(full=True),
            lambda: memory.forget(memory=annas.id, reason="test"),
        ]
        for act in actions:
            act()
            clock.advance(60)
            assert told(memory, "ben") == before
            assert files_of(memory, "ben") == files
        assert of_user(memory, "anna") == [] and PEANUTS not in str(told(memory, "anna"))
        assert "cashews" not in str(files_of(memory, "anna"))


def test_what_one_user_wants_everywhere_holds_for_nobody_else(database_url: Place, clock: Clock) -> None:
    with open_memory(database_url.home, database=database_url.url, clock=clock) as memory:
        own = memory.remember("The till prints receipts in metric units.", project=database_url.home.parent)
        place = own.scope_id
        said_by(memory, clock, "anna", "In all my projects, never use emoji.", place)
        said_by(memory, clock, "anna", PEANUTS, place)
        memory.consolidate(now=True)
        (wide,) = [each for each in of_user(memory, "anna") if each.scope is Scope.USER]
        memory.pin(wide.id)
        assert "never use emoji" in memory.context("elsewhere", user="anna").text, "in all of her projects"
        assert "metric units" in memory.context(place, "units of receipts?", user="anna").text, "what is the project's"
        assert "metric units" not in memory.context("elsewhere", "units of receipts?", user="anna").text
        known = memory.search("metric units receipts", scope=place, user="anna")
        assert [(each.id, each.kind) for each in known] == [(own.id, "memory")], "no message of the operator's"
        for project in (place, "elsewhere"):
            others = [
                memory.context(project).text,
                memory.context(project, "May I use emoji or peanuts?").text,
                memory.context(project, "May I use emoji or peanuts?", user="ben").text,
                memory.briefing.orientation(project),
                *map(str, memory.search("emoji peanuts", scope=project)),
                *map(str, memory.search("emoji peanuts", scope=project, user="ben")),
                *map(str, memory.search("emoji peanuts", scope=ALL_PROJECTS)),
                str(memory.injector(project).prepare([], "emoji? peanuts?").given),
            ]
            assert not [each for each in others if "emoji" in each or "peanuts" in each]
        made = [memory.settings.root / "MEMORY.md", *memory.settings.workspace.rglob("*.md")]
        made += memory.settings.home.glob("context/*.md")
        assert len(made) > 2
        assert not [each for each in made if "emoji" in each.read_text() or "peanuts" in each.read_text()]
        with pytest.raises(UsageError):
            memory.search("emoji", scope=place, user=" ")


SCRIPT = st.lists(
    st.tuples(
        st.sampled_from(["anna", "ben", "cleo"]),
        st.sampled_from(["shop", "bank"]),
        st.sampled_from(["say", "say", "react", "correct", "wrong", "pin", "forget"]),
        st.integers(0, len(WORDS) - 1),
    ),
    min_size=3,
    max_size=9,
)


def run(memory: Memory, clock: Clock, script: list[tuple[str, str, str, int]], only: str = "") -> None:
    """Every step of the script in its order; with `only` the other users never existed."""
    for number, (user, project, verb, which) in enumerate(script):
        clock.advance(7200)
        if only and user != only:
            continue
        turns = memory.turns(project=project, user=user, conversation=f"c{which}")
        if verb == "say":
            with turns.turn(f"t{number}", WORDS[which]) as turn:
                turn.reconcile()
                turn.persist("Noted.")
            memory.ingest()
            clock.advance(3600)
            memory.process(now=True)
            clock.advance(-3600)
            continue
        held = [each for each in of_user(memory, user) if each.scope_id in (project, "")]
        if verb == "react" and (rows := turns.artifacts(TURN_LOG)):
            turns.react(rows[0].turn_id, "not_ok", "no")
        elif held and verb == "correct":
            memory.correct(held[-1].id, f"{WORDS[which][:-1]} on Mondays.")
        elif held and verb in ("wrong", "pin"):
            memory.feedback(held[0].id, "not_ok") if verb == "wrong" else memory.pin(held[0].id)
        elif held and verb == "forget":
            memory.forget(memory=held[0].id, reason="test")


@settings(max_examples=6)
@given(SCRIPT)
def test_a_user_sees_what_they_would_see_if_the_others_never_existed(database_url: Place, script: list[Any]) -> None:
    only, views = script[0][0], []
    for alone in ("", only):
        clock = Clock()
        with open_memory(database_url.home, database=database_url.url, clock=clock) as memory:
            run(memory, clock, script, alone)
            views.append([told(memory, only, project) for project in ("shop", "bank")])
        shutil_home(database_url)
    assert views[0] == views[1]


USERS = ("", "anna", "ben@example.com")
BEFORE_USERS = 18  # the schema that did not know whose a row is
MOVED = "conversations transcript_entries stage1 memories sources turn_artifacts artifacts jobs".split()


def aged(place: Place, ids: dict[str, str]) -> None:
    """The home as an earlier version left it: files and rows do not name a user, and users share a memory's id."""
    for path in sorted((place.home / "memory").glob("*.md"), key=lambda each: "manifest" in each.name):
        text = re.sub("|".join(ids), lambda found: ids[found[0]], path.read_text())
        values, body = document.unframed(re.sub(r'(user|frontmatter_sha256): ".*"\n', "", text))
        if "manifest" in path.name:
            for kind in ("summary", "transcript"):
                if values[f"{kind}_path"]:
                    told, _ = document.unframed((place.home / values[f"{kind}_path"]).read_text())
                    values[f"{kind}_sha256"] = told["content_sha256"]
        if "sanitizer_version" in values:
            values["sanitizer_version"] = "sanitize_transcript_v1"
        values["content_sha256"] = document.sha256(body)
        path.write_text(document.framed(values, body))
    for log in (place.home / "turns").rglob("*.jsonl"):
        text = re.sub(r',"memory_of":"\w*"', "", log.read_text())
        log.write_text(re.sub("|".join(ids), lambda found: ids[found[0]], text))
    with closing(place.open()) as database, database.read() as tx:
        held = {name: tx.rows(f"SELECT * FROM memory_{name}") for name in MOVED}
        columns = {name: columns_of(tx, f"memory_{name}") for name in MOVED}
    wiped(place)
    with unmigrated(place) as database:
        migrate(database, Clock(), target=BEFORE_USERS)
        with database.write() as tx:
            for name, rows in held.items():
                left = [each for each in columns_of(tx, f"memory_{name}") if each not in ("id", "words")]
                sql = f"INSERT INTO memory_{name} ({', '.join(left)}) VALUES ({', '.join(':' + each for each in left)})"
                for row in rows:
                    told = dict(zip(columns[name], row, strict=True))
                    told |= {"memory_id": ids.get(told["memory_id"], told["memory_id"])} if "memory_id" in told else {}
                    tx.run(f"{sql} ON CONFLICT DO NOTHING", {each: told[each] for each in left})


def columns_of(tx: Transaction, table: str) -> list[str]:
    if tx.dialect.name == "sqlite":
        return [row[1] for row in tx.rows(f"PRAGMA table_info({table})")]
    sql = "SELECT column_name FROM information_schema.columns WHERE table_name = :table ORDER BY ordinal_position"
    return [name for (name,) in tx.rows(sql, {"table": table})]


def wiped(place: Place) -> None:
    """Without its database."""
    for path in place.home.glob("recollect.db*"):
        path.unlink()
    if place.url:
        with psycopg.connect(place.url, autocommit=True) as connection:
            connection.execute("DROP SCHEMA public CASCADE")
            connection.execute("CREATE SCHEMA public")


def test_what_users_shared_before_is_told_apart(database_url: Place, clock: Clock) -> None:
    """From rows and from files alone, with the same result; until then nobody is told of it."""

    def opened() -> Memory:
        return open_memory(database_url.home, database=database_url.url, clock=clock)

    def crash() -> None:
        raise KeyboardInterrupt

    def seen(memory: Memory) -> dict[str, list[tuple[str, str, int]]]:
        return {user: [(each.id, each.text, each.revision) for each in of_user(memory, user)] for user in USERS}

    with opened() as memory:
        for user in ("anna", "ben@example.com"):
            said_by(memory, clock, user, PEANUTS)
        (annas,), (bens,) = of_user(memory, "anna"), of_user(memory, "ben@example.com")
        clock.advance(60)
        memory.correct(annas.id, "I'm allergic to cashews.")
        note_id = memory.remember("The tills print metric units.", everywhere=True).id
        memory.correct(note_id, "The tills print inches.")
    own = (note_id, "The tills print inches.", 2)
    shared = memory_id(Scope.PROJECT, "shop", PEANUTS)
    aged(database_url, {annas.id: shared, bens.id: shared})
    with opened() as memory:
        spoiled = memory.settings.workspace / project_path("shop")
        spoiled.parent.mkdir(parents=True, exist_ok=True)
        spoiled.write_text(PEANUTS)
        assert seen(memory) == {user: [] for user in USERS} | {"": [own]}
        assert not memory.search("allergic peanuts cashews", scope=ALL_PROJECTS)
        assert [each for each in memory.status().problems if "not known yet whose" in each.problem]
        memory.process()
        told_apart = seen(memory)
        assert told_apart == {"": [own], "anna": [(shared, "I'm allergic to cashews.", 2)], "ben@example.com": ANY}
        assert [text for _, text, _ in told_apart["ben@example.com"]] == [PEANUTS]
        assert not memory.search("allergic peanuts cashews", scope=ALL_PROJECTS)
        assert "allergic" not in memory.context("shop", "allergic to peanuts or cashews?").text
        assert "allergic" not in memory.briefing.orientation("shop") and not spoiled.exists()
        assert not [each for each in memory.status().problems if "not known yet whose" in each.problem]
    wiped(database_url)
    with opened() as memory:
        with pytest.raises(KeyboardInterrupt):
            Reindex(memory.ground, stored=crash).run()
        assert "cashews" not in str(seen(memory)) and not [each for user in USERS[1:] for each in of_user(memory, user)]
        assert not memory.search("allergic peanuts cashews", scope=ALL_PROJECTS)
        memory.reindex()
        assert seen(memory) == told_apart
        assert not memory.search("allergic peanuts cashews", scope=ALL_PROJECTS)
