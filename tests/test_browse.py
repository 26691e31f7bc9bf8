"""The verbs with which a person goes through what is kept: lists and facets, the inbox, move, undo, sessions."""

from __future__ import annotations

from pathlib import Path

import pytest

from recollect.app import Memory
from recollect.browse import VERBS
from recollect.errors import NotFound, Outdated, UsageError
from recollect.store.listing import FACETS
from recollect.surfaces import cli
from recollect.types import Remembered, Scope
from tests.command import run
from tests.conftest import Clock
from tests.transcripts import claude

RULE = "Always run the tide tables through make check before you push them."


def learn(memory: Memory, text: str = RULE, session: str = "11111111-2222-4333-8444-555555555555") -> list[Remembered]:
    """What a session leaves in which the person said this; the newest memories of it."""
    before = {each.id for each in memory.memories()}
    said = [text, "Understood, I will.", "Thanks. And now the README.", "Done.", "Good.", "You are welcome."]
    lines = [claude(n, each, role=("user", "assistant")[n % 2], session=session) for n, each in enumerate(said)]
    folder = memory.settings.home.parent / "transcripts" / "-code-tides"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{session}.jsonl").write_bytes(b"".join(lines))
    memory.ingest(folder=folder.parent, source="claude-code")
    memory.process(now=True)
    return [each for each in memory.memories() if each.id not in before]


def noted(memory: Memory, clock: Clock, *texts: str, project: str = "") -> list[Remembered]:
    found = []
    for text in texts:
        clock.advance(60)
        where = memory.settings.home.parent / project if project else None
        found.append(memory.remember(text, project=where, everywhere=not project))
    return found


def ids(found: object) -> list[str]:
    return [each.memory.id for each in found.cards]  # type: ignore[attr-defined]


# Lists


def test_pages_give_every_memory_once_newest_first(memory: Memory, clock: Clock) -> None:
    made = noted(memory, clock, *(f"Pond number {n} is deep." for n in range(7)))
    found, after = [], ""
    while True:
        page = memory.browse(after=after, limit=3)
        found += ids(page)
        assert page.total == 7
        if not (after := page.following):
            break
    assert found == [each.id for each in reversed(made)]


def test_what_is_written_meanwhile_neither_repeats_nor_hides_a_row(memory: Memory, clock: Clock) -> None:
    made = noted(memory, clock, *(f"Pond number {n} is deep." for n in range(4)))
    first = memory.browse(limit=2)
    noted(memory, clock, "A lake was added.")
    assert [*ids(first), *ids(memory.browse(after=first.following))] == [each.id for each in reversed(made)]


def test_facets_count_what_each_value_would_leave(memory: Memory, clock: Clock) -> None:
    noted(memory, clock, "Never push on a Friday.", "The pond is deep.")
    noted(memory, clock, "The lake is shallow.", project="lake")
    memory.pin(memory.browse("lake").cards[0].memory.id)
    found = memory.browse()
    assert set(found.facets) == set(FACETS)
    assert found.facets["project"]["*"] == 2 and found.facets["pinned"] == {"no": 2, "yes": 1}
    for name, values in found.facets.items():
        for value, number in values.items():
            assert memory.browse(chosen={name: value}).total == number, (name, value)
    chosen = memory.browse(chosen={"pinned": "yes"})
    assert chosen.total == 1 and chosen.facets["pinned"] == {"no": 2, "yes": 1} and "*" not in chosen.facets["project"]


def test_a_query_finds_words_and_parts_of_words_and_says_why(memory: Memory, clock: Clock) -> None:
    one, _ = noted(memory, clock, "The heron stands in the pond.", "Lakes are large.")
    for query in ("heron", "hero", "HER", "the pond"):
        found = memory.browse(query)
        assert ids(found)[0] == one.id and found.cards[0].why, query
        begin, end = found.cards[0].marks[0]
        assert one.text[begin:end].lower() in query.lower()
    assert memory.browse("zebra").total == 0


@pytest.mark.parametrize("query", ["%", "_", "!", "100%", "\\", "'", '"', "a OR b", "NEAR(", "*"])
def test_signs_of_a_query_are_signs(memory: Memory, clock: Clock, query: str) -> None:
    noted(memory, clock, "The heron stands in the pond.")
    memory.browse(query)
    assert memory.browse(f"{query}{query}").total == 0


def test_what_was_called_wrong_is_in_its_own_list_alone(memory: Memory, clock: Clock) -> None:
    one, other = noted(memory, clock, "The pond is deep.", "The lake is deep.")
    memory.feedback(one.id, "not_ok")
    assert ids(memory.browse()) == [other.id] and ids(memory.browse("pond")) == []
    assert ids(memory.browse(wrong=True)) == [one.id] == ids(memory.browse("pond", wrong=True))


def test_wrong_calls_are_told(memory: Memory) -> None:
    for call in (
        lambda: memory.browse(chosen={"colour": "red"}),
        lambda: memory.browse(limit=0),
        lambda: memory.browse(after="yesterday"),
        lambda: memory.browse("pond", after="-1"),
        lambda: memory.talks(after="2026-01-01T00:00:00.000Z~x"),
        lambda: memory.move("m-x"),
    ):
        with pytest.raises(UsageError):
            call()


# The inbox


def test_the_inbox_holds_what_was_learnt_until_it_is_seen(memory: Memory, clock: Clock) -> None:
    (learnt,) = learn(memory)
    noted(memory, clock, "The pond is deep.")  # by the person: nothing to look at
    assert ids(memory.inbox()) == [learnt.id]
    assert memory.seen([learnt.id]) == 1 and ids(memory.inbox()) == []
    assert memory.seen([learnt.id], again=True) == 1 and ids(memory.inbox()) == [learnt.id]
    assert memory.seen() == 1 and ids(memory.inbox()) == []


def test_a_revision_that_was_not_looked_at_stays_in_the_inbox(memory: Memory, clock: Clock) -> None:
    (learnt,) = learn(memory)
    assert memory.seen([f"{learnt.id}-r{learnt.revision}"]) == 1
    with memory.database.write() as tx:  # as if a later session had said it otherwise
        tx.run("UPDATE memory_memories SET revision = 2 WHERE memory_id = :id", {"id": learnt.id})
        tx.run("UPDATE memory_sources SET revision = 2 WHERE memory_id = :id", {"id": learnt.id})
    assert ids(memory.inbox()) == [learnt.id]


# One memory


def test_a_record_shows_the_message_among_its_neighbours(memory: Memory) -> None:
    (learnt,) = learn(memory)
    (evidence,) = memory.record(learnt.id).evidence
    assert [each.is_cited for each in evidence.messages] == [True, False, False]
    assert evidence.messages[0].line.content == RULE and evidence.messages[0].learnt[0].id == learnt.id
    assert evidence.origin.endswith("line 1, byte 0")


def test_a_record_tells_where_it_was_told(memory: Memory, clock: Clock, tmp_path: Path) -> None:
    (one,) = noted(memory, clock, "The heron stands in the pond.", project="lake")
    memory.pin(one.id)
    memory.give(tmp_path / "lake", "where is the heron?", "s-1")
    ((session, line),) = memory.record(one.id).told
    assert (session, line.memory_id) == ("s-1", one.id)
    assert memory.memory(one.id).id in {each.memory.id for each in memory.browse(chosen={"used": "no"}).cards}


# Move, undo, and who saw what


def test_a_memory_that_is_moved_holds_there_alone(memory: Memory, clock: Clock, tmp_path: Path) -> None:
    (one,) = noted(memory, clock, "The heron stands in the pond.", project="lake")
    noted(memory, clock, "Rivers run.", project="river")
    lake, river = memory.project(tmp_path / "lake"), memory.project(tmp_path / "river")
    moved = memory.move(one.id, project=river)
    assert (moved.id, moved.scope_id, moved.revision) == (one.id, river, 2)
    assert one.id not in {each.id for each in memory.memories(lake)}
    assert one.id in {each.id for each in memory.memories(river)}
    assert "heron" not in memory.briefing.told(lake).text and "heron" in memory.briefing.told(river).text
    wide = memory.move(one.id, everywhere=True)
    assert wide.scope is Scope.USER and "heron" in memory.briefing.told(lake).text
    back = memory.undo(one.id)
    assert back.scope_id == river and "heron" not in memory.briefing.told(lake).text


def test_a_move_survives_the_database(memory: Memory, clock: Clock, tmp_path: Path) -> None:
    (one,) = noted(memory, clock, "The heron stands in the pond.", project="lake")
    memory.move(one.id, everywhere=True)
    before = memory.memory(one.id)
    memory.reindex(full=True)
    assert memory.memory(one.id) == before


def test_undo_takes_back_a_correction_a_pin_and_a_verdict(memory: Memory, clock: Clock) -> None:
    (one,) = noted(memory, clock, "The pond is two metres deep.")
    memory.correct(one.id, "The pond is three metres deep.")
    assert memory.undo(one.id).text == one.text
    memory.pin(one.id)
    assert not memory.undo(one.id).pinned
    memory.feedback(one.id, "not_ok")
    memory.undo(one.id)
    assert ids(memory.browse()) == [one.id]


def test_what_was_never_changed_cannot_be_taken_back(memory: Memory, clock: Clock) -> None:
    (one,) = noted(memory, clock, "The pond is deep.")
    with pytest.raises(UsageError, match="never changed"):
        memory.undo(one.id)


def test_whoever_saw_another_revision_changes_nothing(memory: Memory, clock: Clock) -> None:
    (one,) = noted(memory, clock, "The pond is deep.", project="lake")
    memory.correct(one.id, "The pond is shallow.", revision=1)
    for call in (
        lambda: memory.correct(one.id, "The pond is dry.", revision=1),
        lambda: memory.move(one.id, everywhere=True, revision=1),
        lambda: memory.undo(one.id, revision=1),
    ):
        with pytest.raises(Outdated, match="at revision 2"):
            call()
    assert memory.memory(one.id).text == "The pond is shallow."


# Sessions


def test_sessions_and_their_messages_are_read_page_by_page(memory: Memory) -> None:
    for number in range(3):
        learn(memory, session=f"{number}1111111-2222-4333-8444-555555555555")
    first = memory.talks(limit=2)
    rest = memory.talks(limit=2, after=first.following)
    keys = [each.session_key for each in (*first.talks, *rest.talks)]
    assert len(keys) == len(set(keys)) == 3 and not rest.following
    said, after = [], ""
    while True:
        page = memory.read(keys[0], after=after, limit=2)
        said += page.messages
        if not (after := page.following):
            break
    assert [each.line.content for each in said][::3] == [RULE, "Done."] and len(said) == 6
    assert said[0].learnt and [each.line.content for each in memory.read(keys[0], holding="READ").messages] == [
        "Thanks. And now the README."
    ]


def test_a_conversation_that_is_not_there_is_told(memory: Memory) -> None:
    for name in ("", "nothing"):
        with pytest.raises(NotFound):
            memory.read(name)


# The command line


def test_every_verb_is_a_method_and_a_command() -> None:
    assert [each.name for each in VERBS if not callable(getattr(Memory, each.name, None))] == []
    assert {each.command for each in VERBS} <= set(cli._COMMANDS)


def test_the_commands_end_to_end(tmp_path: Path) -> None:
    home = tmp_path / "home"
    told = run(home, "remember", "The heron stands in the pond.", "--json", cwd=tmp_path).json
    assert run(home, "memories", "--counts", "--json").json["pinned"] == {"no": 1}
    assert run(home, "move", told["id"], "--everywhere", "--json").json["scope"] == "user"
    assert run(home, "undo", told["id"], "--json").json["scope"] == "project"
    assert run(home, "inbox", "--json").json == {"memories": [], "following": ""}
    assert run(home, "sessions", "--json").json == {"conversations": [], "following": ""}
    assert run(home, "sessions", "nothing").status == 2
    assert "agent may not" in run(home, "move", told["id"], "--everywhere", CLAUDECODE="1").stderr
    assert "agent may not" in run(home, "undo", told["id"], CLAUDECODE="1").stderr
    assert "agent may not" in run(home, "inbox", "--all", CLAUDECODE="1").stderr
