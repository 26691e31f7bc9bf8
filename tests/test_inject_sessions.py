"""Harnesses that own their history: what a session has is kept, until it compacts; `recollect context` shows it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from recollect import open_memory
from recollect.app import Memory
from recollect.blocks import PREFIX
from recollect.errors import UsageError
from recollect.inject.values import Exchange, Section
from recollect.store import conversations, injections, stage1
from recollect.store.injections import KEPT, KEPT_BLOCKS
from recollect.surfaces.daemon.work import Task, Work
from recollect.surfaces.daemon.worker import Worker
from recollect.types import Conversation, ConversationStatus, Severity, Timestamp
from tests import command
from tests.conftest import Clock, Place
from tests.injecting import PROJECT, a_memory, day, drop, names, put
from tests.transcripts import SESSION, START, claude, stamp, write

JWT = a_memory("jwt", "Auth uses JWT tokens signed with Ed25519")
RULE = a_memory("rule", "Never push to the main branch", severity=Severity.DO_NOT)
PROMPT = "How are auth tokens signed?"


@pytest.fixture
def memory(database_url: Place, clock: Clock) -> Iterator[Memory]:
    with open_memory(database_url.home, database=database_url.url, clock=clock) as opened:
        put(opened, JWT, RULE)
        yield opened


def test_looking_changes_nothing_and_giving_is_kept_per_session(memory: Memory) -> None:
    looked = memory.context(PROJECT, PROMPT, "s1")
    assert names(looked.lines) == ["jwt"] and memory.given_last() == []
    assert memory.give(PROJECT, PROMPT, "s1") == looked
    held = memory.context(PROJECT, PROMPT, "s1")
    assert held.text == "" and held.held[0].reason == "visible: given 1 turn ago"
    assert names(memory.context(PROJECT, PROMPT, "s2").lines) == ["jwt"], "another session has not seen it"
    assert names(memory.context(PROJECT, PROMPT).lines) == ["jwt"]


def test_a_block_that_somebody_pasted_is_not_what_is_asked(memory: Memory) -> None:
    pasted = memory.context(PROJECT, PROMPT).text
    for prompt in (pasted, f"{pasted}\n\nThanks!"):
        assert pasted and memory.context(PROJECT, prompt).lines == ()


def test_a_session_that_is_no_text_is_an_error_before_anything_is_given(memory: Memory) -> None:
    nothing: Any = None
    with pytest.raises(UsageError, match="a session is a text, not NoneType"):
        memory.injector(PROJECT, session=nothing)
    with pytest.raises(UsageError, match="a session is a text, not NoneType"):
        memory.give(PROJECT, PROMPT, nothing)


def test_a_session_begins_with_the_rules_that_bind_and_small_talk_gets_nothing(memory: Memory) -> None:
    start = memory.give(PROJECT, "", "s1")
    assert names(start.lines) == ["rule"] and start.lines[0].section is Section.PINNED
    assert start.lines[0].reason == "a rule that binds: do_not"
    assert memory.give(PROJECT, "Good morning!", "s1").lines == ()


def test_a_prompt_is_a_turn_and_the_depth_counts_them(memory: Memory) -> None:
    memory.give(PROJECT, PROMPT, "s1")
    for _ in range(10):
        assert memory.give(PROJECT, PROMPT, "s1").lines == ()
        memory.give(PROJECT, "", "s1")  # no prompt, no turn
    assert names(memory.give(PROJECT, PROMPT, "s1").lines) == ["jwt"]


def test_a_compaction_frees_what_was_given(memory: Memory) -> None:
    memory.give(PROJECT, PROMPT, "s1")
    memory.give(PROJECT, PROMPT, "s2")
    assert memory.compacted("s1") == 1 and memory.compacted("s1") == 0
    assert names(memory.give(PROJECT, PROMPT, "s1").lines) == ["jwt"]
    assert memory.give(PROJECT, PROMPT, "s2").lines == ()


def test_a_superseding_revision_passes_whatever_the_prompt_and_once(memory: Memory) -> None:
    memory.give(PROJECT, PROMPT, "s1")
    put(memory, replace(JWT, revision=2, text="Auth uses opaque tokens", valid_from=day(5)))
    again = memory.give(PROJECT, "Thanks!", "s1")
    assert [(line.id, line.revision) for line in again.lines] == [("m-jwt", 2)]
    assert memory.give(PROJECT, "Thanks!", "s1").lines == ()
    assert memory.give(PROJECT, PROMPT, "s1").lines == ()


def test_the_budget_counts_what_the_session_still_sees(database_url: Place, clock: Clock) -> None:
    flags = {"memory_injection_max_tokens_total": 170, "memory_injection_context_window_depth": 2}
    with open_memory(database_url.home, database=database_url.url, clock=clock, **flags) as memory:
        put(memory, JWT, a_memory("pond", "The garden pond pump stands under the bridge " * 6))
        first = memory.give(PROJECT, PROMPT, "s1")
        second = memory.give(PROJECT, "Where is the garden pond pump?", "s1")
        assert first.lines and second.lines == () and second.held[0].reason.startswith("no room")
        memory.compacted("s1")
        assert names(memory.give(PROJECT, "Where is the garden pond pump?", "s1").lines) == ["pond"]


def test_a_session_begins_with_all_rules_however_many_there_are(memory: Memory) -> None:
    rules = [
        a_memory(f"r{n}", f"Never touch pier {n} before {n + 9} o'clock", severity=Severity.DO_NOT) for n in range(15)
    ]
    put(memory, *rules)
    given = memory.give(PROJECT, "", "s9").lines
    assert {each.id for each in rules} <= {line.id for line in given}
    assert memory.give(PROJECT, "Hello.", "s9").lines == ()


def test_a_part_of_the_budget_is_kept_for_corrections_and_rules(database_url: Place, clock: Clock) -> None:
    most = 2_000
    with open_memory(
        database_url.home, database=database_url.url, clock=clock, memory_injection_max_tokens_total=most
    ) as memory:
        put(memory, JWT)
        tokens = memory.give(PROJECT, PROMPT, "s1").tokens
        put(memory, *(a_memory(f"p{n}", " ".join(f"word{n}x{m}" for m in range(60)), pinned=True) for n in range(30)))
        while more := memory.give(PROJECT, "Thanks!", "s1").tokens:
            tokens += more
        put(memory, replace(JWT, revision=2, text="Auth uses opaque tokens", valid_from=day(5)))
        put(memory, a_memory("friday", "Deploy the lighthouse on no Friday", severity=Severity.MUST))
        last = memory.give(PROJECT, "Shall we deploy the lighthouse on Friday?", "s1")
        assert names(last.lines) == ["jwt", "friday"] and tokens + last.tokens <= most


def test_what_a_session_was_told_at_its_start_counts_as_tokens(memory: Memory) -> None:
    put(memory, *(a_memory(f"n{n}", " ".join(f"word{n}x{m}" for m in range(30))) for n in range(60)))
    given = memory.briefing.start(PROJECT, "s1", lambda keep: keep())
    (block,) = memory._injection._seen("s1", asked=True)
    assert abs(given.tokens - block.tokens) < 200 and block.start
    (told,) = memory.given_last("s1")
    assert told.given.text == given.text and len(given.lines) > 30


def test_a_briefing_leaves_prompts_their_budget_and_a_correction_passes_on_resume(memory: Memory) -> None:
    put(memory, *(a_memory(f"n{n}", f"The crane {n} lifts {n + 3} tons in basin {n * 7}") for n in range(60)))
    kept: list[Callable[[], object]] = []

    def start(**how: bool) -> str:
        text = memory.briefing.start(PROJECT, "s1", kept.append, **how).text
        while kept:
            kept.pop()()
        return text

    first = start()
    assert first and memory.context(PROJECT, PROMPT, "s1").held[0].reason == "visible: given 1 turn ago"
    assert start(fresh=False) == "", "all of it is visible"
    put(memory, replace(JWT, revision=2, text="Auth uses opaque tokens", valid_from=day(5)))
    again = start(fresh=False)
    assert "opaque" in again and "crane" not in again
    for n in range(40):
        put(memory, a_memory(f"late{n}", f"The harbour bell {n} of Hamble rings at {n} past", valid_from=day(9)))
        memory.give(PROJECT, f"When does the harbour bell {n} of Hamble ring?", "s1")
    blocks = memory._injection._seen("s1", asked=True)
    spent = sum(each.tokens for each in blocks if not each.start)
    assert 1_000 < spent <= memory.settings.config.memory_injection_max_tokens_total, "whatever their age"


def test_a_prompt_that_asks_what_is_known_gets_all_of_it(memory: Memory) -> None:
    texts = ["Auth fails closed in the gate", "Login and auth share one audit trail", "Auth secrets rotate monthly"]
    put(memory, *(a_memory(f"a{n}", text) for n, text in enumerate(texts)), a_memory("db", "The database is SQLite"))
    for prompt in ("What do we know about the auth system?", "how does auth work here?"):
        assert sorted(names(memory.context(PROJECT, prompt).lines)) == ["a0", "a1", "a2", "jwt"]
    put(memory, *(a_memory(f"b{n}", f"Auth rule number {n} is about door {n}") for n in range(40)))
    many = memory.context(PROJECT, "What do we know about auth?")
    assert 20 < len(many.lines) <= 30 and many.tokens <= memory.settings.config.memory_injection_max_tokens_per_block
    assert memory.context(PROJECT, "What do we know about kubernetes?").lines == ()


def test_a_prompt_is_told_a_line_whole_or_not_at_all(memory: Memory) -> None:
    long = "The lighthouse lamp is checked " + "by two keepers who sign the book " * 30
    put(memory, a_memory("lamp", long), a_memory("huge", long * 8, severity=Severity.MUST))
    given = memory.give(PROJECT, "When is the lighthouse lamp checked?", "s1")
    assert [line.text for line in given.lines] == [" ".join(long.split())]
    assert memory.given_last("s1")[0].given.text == given.text


def test_a_prompt_leans_on_what_its_speaker_said_before_an_aside(memory: Memory) -> None:
    put(memory, a_memory("bucket", "Rate limiting uses a token bucket in Redis"), a_memory("tea", "Tea is at five"))
    talk = [
        Exchange("Alice: How does rate limiting work?", "It is a token bucket."),
        Exchange("Bob: Did you see the game?", "I did not."),
    ]
    assert names(memory.context(PROJECT, "Alice: What about Redis for that?", "", talk).lines) == ["bucket"]
    asides = [Exchange("How does rate limiting work?", "It is capped."), Exchange("nice, thanks!", "You're welcome.")]
    assert names(memory.context(PROJECT, "And where is that kept?", "", asides).lines) == ["bucket"]


def test_what_the_briefing_told_in_part_is_told_whole_when_it_is_asked_for(memory: Memory, tmp_path: Path) -> None:
    lines = [claude(0, "Please fix the harbour page."), claude(1, "The harbour page is fixed.", role="assistant")]
    write(tmp_path / "root" / "-code-tides" / f"{SESSION}.jsonl", b"".join(lines))
    memory.ingest(folder=tmp_path / "root")
    memory.process(now=True)
    (talk,) = memory.conversations()
    where = talk.project_id
    pages = ("pier", "quay", "lamp")
    said = " ".join(f"The {each} page is fixed and its tests are green{', twice' * 15}." for each in pages)
    with memory.database.write() as tx:
        kept = stage1.load(tx, memory.owner, talk.session_key)
        assert kept
        stage1.save(tx, memory.owner, [replace(kept, rollout_summary=said)])
    begun = memory.briefing.start(where, "s1", lambda keep: keep()).lines[-1]
    assert begun.id.startswith(SESSION) and "lamp" not in begun.text
    given = memory.give(where, "where were we?", "s1")
    assert given.lines[0].id == begun.id and "lamp" in given.lines[0].text
    assert memory.given_last("s1")[0].given.text == given.text
    assert memory.context(where, "where were we?", "s1").lines == (), "now it is visible"


def test_a_prompt_that_asks_for_last_time_gets_what_sessions_came_to(memory: Memory, tmp_path: Path) -> None:
    lines = [
        claude(0, "Please fix the harbour page."),
        claude(1, "The harbour page is fixed and its tests are green. The pier test still fails.", role="assistant"),
    ]
    write(tmp_path / "root" / "-code-tides" / f"{SESSION}.jsonl", b"".join(lines))
    memory.ingest(folder=tmp_path / "root")
    memory.process(now=True)
    where = memory.conversations()[0].project_id
    for prompt in ("what did we leave open last time?", "Where were we?"):
        (line,) = memory.context(where, prompt).lines
        assert "harbour page is fixed" in line.text and line.section is Section.OUTCOME and line.id.startswith(SESSION)
    given = memory.give(where, "where were we?", "s1")
    assert memory.given_last("s1")[0].given.text == given.text
    assert memory.context(where, "where were we?", "s1").lines == (), "it is visible"
    memory.briefing.start(where, "s2", lambda keep: keep())
    assert memory.context(where, "where were we?", "s2").lines == (), "the briefing told it"
    memory.forget(session=SESSION, reason="test")
    assert memory.given_last("s1") == [] and memory.context(where, "where were we?").lines == ()


def test_the_last_exchanges_of_a_session_come_from_its_transcript(memory: Memory, tmp_path: Path) -> None:
    said = ["One?", "1", "Two?", "2a", "Three?", "3", "Four?", "4", "Why that?"]
    lines = [claude(n, text, role=("user", "assistant")[n % 2]) for n, text in enumerate(said)]
    lines.insert(4, claude(99, "2b", role="assistant", at=200))
    write(tmp_path / "root" / "-code-tides" / f"{SESSION}.jsonl", b"".join(lines))
    memory.ingest(folder=tmp_path / "root")
    last = (Exchange("Two?", "2a\n2b"), Exchange("Three?", "3"), Exchange("Four?", "4"))
    assert memory._injection.exchanges(SESSION, "Why that?") == last
    assert memory._injection.exchanges(SESSION, "Else?") == (*last[1:], Exchange("Why that?", ""))
    assert memory._injection.exchanges("other", "Why that?") == memory._injection.exchanges("", "Why that?") == ()


def test_what_is_switched_off_gives_nothing(tmp_path: Path, clock: Clock) -> None:
    with open_memory(tmp_path / "home", clock=clock, enabled=False) as memory:
        put(memory, JWT, replace(RULE, pinned=True))
        assert memory.context(PROJECT, PROMPT).lines == memory.injector(PROJECT).prepare([], PROMPT).given.lines == ()


def test_what_was_given_last_is_shown_with_its_reasons_and_without_what_was_erased(memory: Memory) -> None:
    memory.give(PROJECT, "", "s1")
    given = memory.give(PROJECT, PROMPT, "s1")
    other = memory.give(PROJECT, PROMPT, "s2")
    assert [(told.session, told.given.lines) for told in memory.given_last()] == [
        ("s1", given.lines),
        ("s2", other.lines),
    ]
    (told,) = memory.given_last("s2")
    assert (told.given.text, told.turn, told.visible) == (other.text, 1, True)
    drop(memory, JWT)
    assert memory.given_last("s2")[0].given.text == ""
    assert memory.given_last("unknown") == []


def test_bookkeeping_is_bounded(memory: Memory, clock: Clock) -> None:
    memory.give(PROJECT, PROMPT, "old")
    clock.advance(KEPT.total_seconds() + 60)
    for _ in range(KEPT_BLOCKS + 5):
        memory.give(PROJECT, PROMPT, "s1")
        memory.compacted("s1")
    with memory.database.read() as tx:
        assert injections.sessions(tx, memory.owner, 9) == ["s1"] and injections.lines(tx, memory.owner, "old") == []
        assert len(injections.lines(tx, memory.owner, "s1")) == KEPT_BLOCKS


def test_erasing_a_memory_or_a_session_erases_that_it_was_given(memory: Memory, tmp_path: Path) -> None:
    folder = tmp_path / "code"
    folder.mkdir()
    real = memory.remember("The changelog is written in prose", project=folder)
    memory.give(str(folder), "How is the changelog written?", "s1")
    assert memory.given_last("s1")[0].given.lines[0].id == real.id
    memory.forget(memory=real.id, reason="test")
    assert memory.given_last("s1") == []
    write(
        tmp_path / "root" / "-code-tides" / f"{SESSION}.jsonl", claude(0, "Hello.") + claude(1, "Hi.", role="assistant")
    )
    memory.ingest(folder=tmp_path / "root")
    memory.give(PROJECT, PROMPT, SESSION)
    memory.forget(session=SESSION, reason="test")
    assert memory.given_last(SESSION) == []


def test_buffers_are_reset_only_after_the_compaction_is_committed(memory: Memory, tmp_path: Path) -> None:
    block = memory.give(PROJECT, PROMPT, SESSION).text
    summary = f"We talked about tides.\n{block}\nThe table is done."
    assert not memory.record_compaction(SESSION, summary), "no conversation yet"
    assert memory.give(PROJECT, PROMPT, SESSION).lines == (), "so nothing is reset"
    write(
        tmp_path / "root" / "-code-tides" / f"{SESSION}.jsonl", claude(0, "Hello.") + claude(1, "Hi.", role="assistant")
    )
    memory.ingest(folder=tmp_path / "root")
    assert memory.record_compaction(SESSION, summary, Timestamp(stamp(90)))
    assert memory.record_compaction(f"{SESSION}@{stamp(0)}", summary, Timestamp(stamp(95))), "told twice, kept once"
    kept = memory.open(SESSION, "compaction").text
    assert "The table is done." in kept and PREFIX not in kept and "JWT" not in kept
    with memory.database.read() as tx:
        stored = tx.rows("SELECT summary FROM memory_compactions")
    assert stored == [("We talked about tides.\nThe table is done.",)]
    assert names(memory.give(PROJECT, PROMPT, SESSION).lines) == ["jwt"]


def test_a_chat_is_compacted_by_the_name_of_its_conversation(memory: Memory) -> None:
    def say(user: str) -> None:
        with memory.turns(project=PROJECT, user=user, conversation="c1").turn("t1", "Is the table done?") as turn:
            turn.persist("It is.")

    say("ada")
    assert memory.give(PROJECT, PROMPT, "c1").lines
    assert memory.record_compaction("c1", "The table is done.")
    assert "The table is done." in memory.open(memory.conversations()[0].session_id, "compaction").text
    assert not memory.given_last("c1")[0].visible
    say("bob")
    with pytest.raises(UsageError, match="several chats are called c1") as caught:
        memory.record_compaction("c1", "The table is done.")
    assert memory.conversations()[0].session_id in caught.value.hint
    for nothing in ("", " ", None):
        with pytest.raises(UsageError, match="which session"):
            memory.record_compaction(nothing, "The table is done.")  # type: ignore[arg-type]
        with pytest.raises(UsageError):
            memory.record_compaction("c1", nothing)  # type: ignore[arg-type]


def test_what_a_session_was_told_after_its_compaction_stays_visible(memory: Memory, tmp_path: Path) -> None:
    """The worker records later what a hook told of; the session's start after the compaction was the reset."""
    file = write(
        tmp_path / "root" / "-code-tides" / f"{SESSION}.jsonl", claude(0, "Hello.") + claude(1, "Hi.", role="assistant")
    )
    memory.ingest(folder=tmp_path / "root")
    memory.compacted(SESSION)
    memory.briefing.start(PROJECT, SESSION, lambda keep: keep())
    summary = "They talked about nothing but tides."
    told = Work(task=Task.TAKE, path=str(file), source="claude-code", session=SESSION, compaction=summary)
    assert not Worker(memory).do(told).error
    assert summary in memory.open(SESSION, "compaction").text
    assert memory.give(PROJECT, PROMPT, SESSION).lines == ()


def test_what_cannot_name_a_session_or_a_compaction_is_a_wrong_call(memory: Memory, tmp_path: Path) -> None:
    write(tmp_path / "root" / "-code-tides" / f"{SESSION}.jsonl", claude(0, "Hello."))
    memory.ingest(folder=tmp_path / "root")
    half: Any = "\ud800"
    calls: list[Callable[[], object]] = [
        lambda: memory.give(PROJECT, PROMPT, half),
        lambda: memory.context(PROJECT, PROMPT, half),
        lambda: memory.context(PROJECT, None),  # type: ignore[arg-type]
        lambda: memory.compacted(half),
        lambda: memory.given_last(half),
        lambda: memory.injector(PROJECT, {"max_total": 5}),  # type: ignore[arg-type]
        lambda: memory.record_compaction(half, "We talked."),
        lambda: memory.record_compaction(SESSION, "We talked.", uuid=half),
        lambda: memory.record_compaction(SESSION, "We talked.", Timestamp("yesterday")),
        lambda: memory.record_compaction(SESSION, "We talked.", memory.clock()),  # type: ignore[arg-type]
    ]
    for call in calls:
        with pytest.raises(UsageError) as raised:
            call()
        assert raised.value.hint
    with memory.database.read() as tx:
        assert tx.rows("SELECT summary FROM memory_compactions") == []
    assert memory.record_compaction(SESSION, f"We talked {half}."), "a summary that was cut in two is kept"
    assert "We talked \ufffd." in memory.open(SESSION, "compaction").text


def test_a_compaction_that_fails_resets_nothing(memory: Memory, tmp_path: Path) -> None:
    write(
        tmp_path / "root" / "-code-tides" / f"{SESSION}.jsonl", claude(0, "Hello.") + claude(1, "Hi.", role="assistant")
    )
    memory.ingest(folder=tmp_path / "root")
    memory.give(PROJECT, PROMPT, SESSION)
    write(memory.settings.home / "memory", b"in the way of the folder")
    with pytest.raises(OSError):
        memory.record_compaction(SESSION, "We talked.")
    assert memory.give(PROJECT, PROMPT, SESSION).lines == ()


# The command


@pytest.fixture
def home(tmp_path: Path) -> Path:
    with open_memory(tmp_path / "home", clock=Clock(START + timedelta(days=1))) as opened:
        put(opened, JWT, RULE)
        state = ConversationStatus.ARCHIVED
        talk = Conversation(0, "s", "s@1", "codex", "s.jsonl", "/code/api", PROJECT, "", day(1), day(1), 2, state, "")
        with opened.database.write() as tx:
            conversations.insert(tx, opened.owner, [talk], day(1))
    return tmp_path / "home"


def test_the_command_shows_the_block_exactly_and_why(home: Path) -> None:
    done = command.run(home, "context", "--project", PROJECT, "--prompt", PROMPT)
    assert done.status == 0 and done.stdout.startswith(f"{PREFIX} ")
    assert "- [fact] Auth uses JWT tokens signed with Ed25519 (2026-02-01, m-jwt r1)\n" in done.stdout
    assert "tokens" in done.stdout and "why" in done.stdout
    told = command.run(home, "context", "--project", PROJECT, "--prompt", PROMPT, "--json").json
    (block,) = told["blocks"]
    assert told["tokens"] == block["tokens"] and done.stdout.startswith(block["text"])
    assert set(block["lines"][0]) >= {"id", "revision", "kind", "text", "date", "section", "score", "reason"}
    assert block["lines"][0]["id"] == "m-jwt" and block["lines"][0]["reason"]


def test_the_command_says_clearly_when_there_is_nothing(home: Path, tmp_path: Path) -> None:
    nothing = {"blocks": [], "tokens": 0, "held": []}
    assert command.run(home, "context", "--project", str(tmp_path), "--json").json == nothing
    assert command.run(home, "context", cwd=tmp_path).stdout.startswith("Nothing: no memory of this project")
    assert "is about that" in command.run(home, "context", "--project", PROJECT, "--prompt", "hello").stdout
    assert command.run(home, "context", "--last").stdout == "Nothing was given to any session yet.\n"
    assert command.run(home, "context", "--last", "--session", "s9").stdout == "Nothing was given to session s9.\n"
    assert command.run(home, "context", "--last", "--prompt", "x").status == 2


def test_without_a_prompt_the_command_shows_what_a_session_is_told_at_its_start(home: Path) -> None:
    with open_memory(home) as opened:
        told = opened.briefing.orientation(PROJECT)
    shown = command.run(home, "context", "--project", PROJECT).stdout
    assert shown.startswith(told) and JWT.text in told and "0.00" not in shown, "nothing was judged"
    (block,) = command.run(home, "context", "--project", PROJECT, "--json").json["blocks"]
    assert block["text"] == told and {line["id"] for line in block["lines"]} == {"m-jwt", "m-rule"}
    assert block["lines"][0] | {"tokens": 0} == {
        "id": "m-rule",
        "revision": 1,
        "kind": "fact",
        "severity": "do_not",
        "text": RULE.text,
        "date": "2026-02-01",
        "section": "rule",
        "score": 0.0,
        "reason": "a rule that binds: do_not",
        "by_agent": False,
        "ref": "m-rule",
        "tokens": 0,
    }


@pytest.mark.parametrize("asked", [[], ["--prompt", "How is the changelog written?"]])
def test_the_command_shows_nothing_where_a_hook_gives_nothing(tmp_path: Path, asked: list[str]) -> None:
    folder = tmp_path / "code"
    folder.mkdir()
    with open_memory(tmp_path / "home") as opened:
        opened.remember("The changelog is written in prose", project=folder)
    assert "in prose" in command.run(tmp_path / "home", "context", *asked, cwd=folder).stdout
    for setting, reason in ((f'disabled_projects = ["{folder}"]', "is switched off"), ("enabled = false", "enabled")):
        (tmp_path / "home" / "config.toml").write_text(setting + "\n")
        done = command.run(tmp_path / "home", "context", *asked, cwd=folder)
        assert done.stdout.startswith("Nothing: ") and reason in done.stdout
        done = command.run(tmp_path / "home", "context", "--project", str(folder), "--json", *asked)
        assert done.json["blocks"] == done.json["held"] == [] and reason in done.json["off"]


def test_the_command_shows_what_was_given_last(home: Path) -> None:
    with open_memory(home, clock=Clock()) as opened:
        opened.give(PROJECT, PROMPT, "s1")
        opened.give(PROJECT, "", "s2")
    both = command.run(home, "context", "--last", "--json").json
    assert {block["session"] for block in both["blocks"]} == {"s1", "s2"}
    one = command.run(home, "context", "--last", "--session", "s1")
    assert one.stdout.startswith("session s1, 2026-03-02 09:00\n") and "m-jwt r1" in one.stdout
    held = command.run(home, "context", "--project", PROJECT, "--prompt", PROMPT, "--session", "s1")
    assert "Not given:" in held.stdout and "visible: given 1 turn ago" in held.stdout
