"""Nobody sees anything of another tenant, project, user or conversation, in whatever call."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from recollect.app import Memory, open_memory
from recollect.turns.turn import ChatTurn
from recollect.turns.values import BUCKET, FINGERPRINT, REACTION, TURN_LOG, assertion, fact
from tests.conftest import Clock, Place

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

    shutil.rmtree(place.home, ignore_errors=True)
    if place.url:
        import psycopg

        with psycopg.connect(place.url, autocommit=True) as connection:
            connection.execute("DROP SCHEMA public CASCADE")
            connection.execute("CREATE SCHEMA public")


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
