"""What erasing leaves of chat turns: nothing of what went, whatever crashes or writes meanwhile; and all that stays."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest

from recollect.app import Memory
from recollect.errors import UsageError
from recollect.store import memories
from recollect.store.erasing import Said
from recollect.turns import buckets as bucket_rules
from recollect.turns import rows as turn_rows
from recollect.turns.chat import TurnConflict, Turns
from recollect.turns.erasing import erase_buckets
from recollect.turns.log import TurnLog
from recollect.turns.values import BUCKET, FINGERPRINT, assertion, fact
from tests.conftest import Clock
from tests.test_turns import TURN_TABLES, chat, everything, lines, say


def processed(memory: Memory, clock: Clock) -> dict[str, str]:
    """Text → id of what is remembered once everybody has fallen silent."""
    clock.advance(7200)
    memory.ingest()
    memory.process()
    with memory.database.read() as tx:
        return {each.text: each.id for each in memories.current(memories.all_of(tx, memory.owner))}


def said_by(turns: Turns, turn_id: str) -> list[Said]:
    """The user's words of a turn, as a plan of what goes has them."""
    uuid = f"{turns.session_id}:{turn_id}:user"
    return [Said("recollect", uuid, turns.session_id, "user", "", "shop/alice/c1.jsonl")]


@pytest.mark.parametrize("again", [{}, {"severity": "low"}, {"scope": "conversation"}])
def test_a_memory_that_several_turns_state_is_forgotten_with_all_of_them(
    memory: Memory, clock: Clock, again: dict[str, str]
) -> None:
    turns = chat(memory)
    say(turns, "t1", "I am vegan by the way.", "Noted.", facts=[fact("diet", "vegan", **again)])
    say(turns, "t2", "Dinner as always, you know what.", "Sure thing.", facts=[fact("diet", "vegan")])
    say(turns, "t3", "Something about trains.", "Right.", facts=[fact("train", "night")])
    memory.forget(memory=processed(memory, clock)["diet: vegan"], reason="asked to")
    assert [each.turn_id for each in turns.artifacts(FINGERPRINT)] == ["t3"]
    say(turns, "t4", "Something about ships.", "Right you are.", facts=[fact("ship", "big")])
    assert set(processed(memory, clock)) == {"train: night", "ship: big"}


@pytest.mark.parametrize("words", ["My blood type is AB.", "I prefer aisle seats."])
def test_a_turn_that_was_erased_is_not_persisted_again(memory: Memory, words: str) -> None:
    turns = chat(memory)
    say(turns, "t1", "My blood type is AB.", facts=[fact("blood", "AB")])
    turns.forget("asked to")
    with pytest.raises(TurnConflict, match="erased"):
        say(turns, "t1", words, facts=[fact("blood", "AB")])
    assert lines(memory) == [] and turns.artifacts(FINGERPRINT) == []
    with pytest.raises(TurnConflict, match="erased") as refused:
        turns.turn("t1", words).preload()
    assert "begin a conversation with another id" in (refused.value.hint or ""), "before anybody answers"
    say(turns, "t2", "The tea is green.", facts=[fact("tea", "green")])
    assert [each.turn_id for each in turns.artifacts(FINGERPRINT)] == ["t2"]


def test_a_line_that_a_crash_tore_goes_with_what_it_was_to_say(memory: Memory) -> None:
    turns = chat(memory)
    say(turns, "t1", "Hello there.")
    (path,) = memory.settings.turns.rglob("*.jsonl")
    with path.open("ab") as file:
        file.write(b'{"type":"recollect","v":1,"line":"turn","id":"t2","user_text":"The word is Xylophone')
    say(turns, "t2", "The word is Xylophone.")
    turns.forget("asked to")
    assert not path.exists()


def test_a_turn_without_words_of_its_own_has_its_ids_all_the_same(memory: Memory) -> None:
    turns = chat(memory)
    block = "[Context from memory]\n- x\n[End of context from memory]"
    assert turns.turn("t0", block).reconcile().local_memories_turn_ids == ()
    say(turns, "t1", block, " ", facts=[fact("word", "Xylophone")])
    TurnLog(memory.settings.turns).erase("shop/alice/c1.jsonl", lambda ids: said_by(turns, "t1")[0].uuid in ids)
    assert lines(memory) == []


def test_the_same_words_in_another_turn_come_back_from_the_log(memory: Memory, clock: Clock) -> None:
    turns = chat(memory)
    say(turns, "t1", "I am vegan by the way.", "Noted.", facts=[fact("diet", "vegan")])
    processed(memory, clock)
    (first,) = memory.conversations()
    say(turns, "t2", "I sit at the aisle.", "Noted.", assertions=[assertion("seat", "aisle", "must")])
    processed(memory, clock)
    (path,) = memory.settings.turns.rglob("*.jsonl")
    backup = path.read_bytes()
    memory.forget(conversation=first.session_key, reason="asked to")
    path.write_bytes(backup)
    with memory.database.write() as tx:
        for table in TURN_TABLES:
            tx.run(f"DELETE FROM {table}")
    memory.reindex(full=True)
    assert [each.turn_id for each in turns.artifacts(FINGERPRINT)] == ["t2"], "what was erased stays away"


def test_erasing_that_was_cut_short_leaves_no_row_of_a_bucket(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    turns = chat(memory)
    say(turns, "t1", "I am vegan.", topics=["food"], facts=[fact("diet", "vegan")])
    turns.reconcile_buckets()
    delete = TurnLog.delete

    def deleted_and_killed(self: TurnLog, *which: Any) -> None:
        delete(self, *which)
        raise KeyboardInterrupt

    monkeypatch.setattr(TurnLog, "delete", deleted_and_killed)
    with pytest.raises(KeyboardInterrupt):
        turns.forget("asked to")
    monkeypatch.undo()
    turns.forget("asked to")
    memory.reindex(full=True)
    assert turns.buckets() == [] and turns.artifacts(BUCKET) == [] and "vegan" not in str(everything(memory))


@pytest.mark.parametrize("emptied", [True, False])
def test_erasing_evidence_that_somebody_else_adds_to_meanwhile(
    memory: Memory, monkeypatch: pytest.MonkeyPatch, emptied: bool
) -> None:
    """Their evidence stays, whether the bucket was to go or to be written again."""
    turns, other = chat(memory), chat(memory, "c2")
    say(turns, "t1", "I am vegan.", topics=["food"], facts=[fact("diet", "vegan")])
    turns.reconcile_buckets()
    without, drinks, waiting = bucket_rules.without, ["tea", "rum", "gin"], list[threading.Thread]()

    def drunk() -> None:
        drink = drinks.pop(0)
        say(other, drink, f"I like {drink}.", topics=["food"], facts=[fact("drink", drink)])
        waiting.append(threading.Thread(target=other.reconcile_buckets))
        waiting[-1].start()

    def overtaken(bucket: bucket_rules.Bucket, gone: set[tuple[str, str]]) -> bucket_rules.Bucket | None:
        left = without(bucket, gone)
        if drinks and (left is None) is emptied:
            drunk()
        return left

    if not emptied:
        drunk()
        waiting[-1].join()
    monkeypatch.setattr(bucket_rules, "without", overtaken)
    erase_buckets(memory.ground, said_by(turns, "t1"))
    monkeypatch.undo()
    for each in waiting:
        each.join()
    other.reconcile_buckets()
    (bucket,) = turns.buckets()
    (about,) = bucket.entries
    assert about.key == "drink" and len(about.values) == 3 - len(drinks)
    (row,) = turns.artifacts(BUCKET)
    assert json.loads(row.text)["revision"] == bucket.revision


def test_a_bucket_that_is_being_written_is_erased_after_that(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    turns, other = chat(memory), chat(memory, "c2")
    say(turns, "t1", "I am vegan.", topics=["food"], facts=[fact("diet", "vegan")])
    turns.reconcile_buckets()
    say(other, "t1", "I like tea.", topics=["food"], facts=[fact("drink", "tea")])
    said = said_by(turns, "t1")
    erasing = threading.Thread(target=erase_buckets, args=(memory.ground, said))

    def saved(files: Any, *told: Any) -> Any:
        done = reconcile(files, *told)
        erasing.start()
        erasing.join(0.5)  # it waits, or has erased what is written as a row next
        return done

    reconcile = bucket_rules.BucketFiles.reconcile
    monkeypatch.setattr(bucket_rules.BucketFiles, "reconcile", saved)
    other.reconcile_buckets()
    erasing.join()
    (row,) = turns.artifacts(BUCKET)
    assert "vegan" not in row.text and "tea" in row.text


def test_a_turn_that_is_erased_while_it_is_written_leaves_no_row(memory: Memory) -> None:
    turns = chat(memory)
    turns._reached = lambda: turns.forget("asked to")  # type: ignore[method-assign, assignment]
    with pytest.raises(TurnConflict, match="erased"):
        say(turns, "t1", "My blood type is AB.", facts=[fact("blood", "AB")])
    assert lines(memory) == [] and "blood" not in str(everything(memory))


def test_what_is_erased_while_rows_are_made_of_it_leaves_none(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    turns = chat(memory)
    say(turns, "t1", "I am vegan.", topics=["food"], facts=[fact("diet", "vegan")])
    with turns.turn("t2", "That's wrong.") as turn:
        turn.reconcile()
    turns.reconcile_buckets()
    read, forgetting = TurnLog.read, threading.Thread(target=turns.forget, args=("asked to",))

    def overtaken(self: TurnLog, path: str) -> bytes | None:
        data = read(self, path)
        if forgetting.ident is None and path.endswith(".json"):
            forgetting.start()
            forgetting.join(1.0)  # it waits, or has erased what is written as a row next
        return data

    monkeypatch.setattr(TurnLog, "read", overtaken)
    memory.reindex(full=True)
    forgetting.join()
    assert turns.buckets() == [] and not any(everything(memory).values())


def test_a_log_that_is_erased_while_rows_are_made_of_it_leaves_none(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns = chat(memory)
    say(turns, "t1", "I am vegan.", facts=[fact("diet", "vegan")])
    with turns.turn("t2", "That's wrong.") as turn:
        turn.reconcile()
    gone: list[bytes] = []
    parsed = turn_rows.artifacts

    def overtaken(line: bytes, *more: Any) -> Any:
        if not gone:
            gone.append(line)
            turns.forget("asked to")
        return parsed(line, *more)

    monkeypatch.setattr(turn_rows, "artifacts", overtaken)
    memory.reindex(full=True)
    assert gone and not any(everything(memory).values())


def test_what_a_killed_process_left_half_written_goes_with_what_it_was_to_say(memory: Memory) -> None:
    turns = chat(memory)
    say(turns, "t1", "I am vegan.", topics=["food"], facts=[fact("diet", "vegan")])
    turns.reconcile_buckets()
    (bucket,) = memory.settings.turns.rglob("b-*.json")
    for path, name in ((bucket, bucket.name), (bucket, "b-1.json"), (memory.settings.turns / "shop/alice", "c1.jsonl")):
        (path if path.is_dir() else path.parent).joinpath(f".recollect-{name}.tmp").write_text("vegan")
    turns.forget("asked to")
    assert [path for path in memory.settings.turns.rglob("*") if path.is_file() and path.name != ".lock"] == []


def test_a_bucket_loses_the_name_that_an_erased_turn_may_have_given_it(memory: Memory) -> None:
    turns, other = chat(memory), chat(memory, "c2")
    say(turns, "t1", "Find a lawyer.", topics=["Divorce lawyer"], facts=[fact("city", "Lisbon")])
    turns.reconcile_buckets()
    say(other, "t1", "How is the weather?", topics=["weather"], facts=[fact("city", "Porto")])
    other.reconcile_buckets()
    turns.forget("asked to")
    (bucket,) = other.buckets()
    assert (bucket.name, bucket.entries[0].values[0].value) == ("city", "Porto")
    assert "divorce" not in str(everything(memory))
    say(other, "t2", "Find a lawyer.", topics=["Divorce lawyer"], facts=[fact("fee", 300)])
    other.reconcile_buckets()
    assert {about.key for each in other.buckets() for about in each.entries} == {"city", "fee"}


def test_a_chat_that_is_named_like_a_memory_stays_when_that_is_forgotten(memory: Memory, tmp_path: Path) -> None:
    told = memory.remember("Never push to main.", project=tmp_path)
    memory.feedback(told.id, "ok", "that memory is right")
    turns = chat(memory, conversation=told.id, user="default")
    say(turns, "t1", "What is that about?", facts=[fact("city", "Lisbon")])
    memory.forget(memory=told.id, reason="asked to")
    assert turns.payload("t1") is not None
    assert "that memory is right" not in str(lines(memory))


def test_everything_of_a_user_goes_and_nothing_of_another(memory: Memory, clock: Clock) -> None:
    """Turns that were taken in, and turns that were not; notes, verdicts, buckets and what was promoted."""
    for user in ("anna@example.com", "ben"):
        for project in ("shop", "bank"):
            turns = chat(memory, "c1", user, project)
            with turns.turn("t1", f"{user} hums in the {project}.") as turn:
                turn.update_fingerprint(facts=[fact(f"{user}-{project}", "hums"), fact("voice", f"of {user}")])
                turn.persist(f"The {user} plan is offered.", {"plan": f"the {user} plan is offered"})
            turns.react("t1", "not_ok", f"{user} said no")
            turns.reconcile_buckets()
    own = memory.remember("Ben is the name of a bell.", project=memory.settings.home.parent)
    held = processed(memory, clock)
    memory.correct(held["voice: of anna@example.com"], "voice: the alto of anna@example.com")
    memory.feedback(held["anna@example.com-bank: hums"], "not_ok", "anna@example.com does not")
    backup = {path: path.read_bytes() for path in memory.settings.turns.rglob("*.jsonl")}
    late = chat(memory, "c2", "anna@example.com")
    say(late, "t9", "A late word of anna@example.com.")
    with memory.database.write() as tx:
        tx.run("DELETE FROM memory_turn_artifacts WHERE turn_id = 't9'")  # as if its process had died before its rows
    torn = late._log.path("shop", "anna@example.com", "c3")
    torn.write_bytes(b'{"type":"recollect","v":1,"line":"turn","user_text":"A torn word of anna@example.com')

    def left() -> set[str]:
        made = {str(path) for path in memory.settings.home.rglob("*") if b"anna@example.com" in read(path)}
        with memory.database.read() as tx:
            told = [
                *TURN_TABLES,
                "memory_memories",
                "memory_conversations",
                "memory_transcript_entries",
                "memory_stage1",
            ]
            return made | {table for table in told for row in tx.rows(f"SELECT * FROM {table}") if "anna" in str(row)}

    memory.forget(user="anna@example.com", project="bank", reason="asked to")
    assert processed(memory, clock).keys() >= {"voice: the alto of anna@example.com", "ben-bank: hums"}
    assert "anna@example.com-bank: hums" not in processed(memory, clock)
    report = memory.forget(user="anna@example.com", reason="asked to")
    assert not report.problems and left() == set()
    for path, data in backup.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    memory.ingest()
    memory.reindex(full=True)
    assert set(processed(memory, clock)) == {"ben-shop: hums", "ben-bank: hums", "voice: of ben", own.text}
    assert [each.turn_id for each in chat(memory, "c1", "ben").artifacts(FINGERPRINT)] == ["t1"]
    with pytest.raises(UsageError, match="no user cleo"):
        memory.forget(user="cleo", reason="asked to")


def read(path: Path) -> bytes:
    return path.read_bytes() if path.is_file() else b""
