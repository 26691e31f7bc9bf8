"""`show`, `open` and `timeline`: from a memory down to the line of the agent's transcript, and only the owner's own."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.app import Memory, open_memory
from recollect.artifacts import names
from recollect.artifacts.document import Content
from recollect.artifacts.lineage import Shown, Type
from recollect.artifacts.names import Kind
from recollect.artifacts.reading import line_numbers
from recollect.errors import NotFound
from recollect.store import memories
from recollect.types import Remembered, Timestamp
from tests.command import run
from tests.conftest import Clock
from tests.test_extract import CHAT, FACT, OTHER, RULE, TALK, TOLD, ingest, session
from tests.transcripts import SESSION, START, append, stamp, write

RECOLLECT = [sys.executable, "-m", "recollect"]
KEY, OTHER_KEY = f"{SESSION}@{stamp(60)}", f"{OTHER}@{stamp(60)}"


@pytest.fixture
def clock() -> Clock:
    return Clock(START + timedelta(days=1))


@pytest.fixture
def transcript(memory: Memory, root: Path) -> Path:
    """The agent's transcript; two conversations are processed."""
    ingest(memory, root, *CHAT, name=OTHER)
    path = ingest(memory, root, *TALK)
    memory.process(now=True)
    return path


def rule(memory: Memory, text: str = RULE) -> Remembered:
    with memory.database.read() as tx:
        (found,) = [each for each in memories.all_of(tx, memory.owner) if each.text == text]
    return found


def paths(memory: Memory, token: str = "") -> dict[Kind, str]:
    token = token or names.session_token(memory.owner.agent_id, KEY, "")
    found = [names.parse(each.name) for each in (memory.settings.home / "memory").iterdir()]
    return {each.kind: each.path for each in found if each and each.token == token}


def correct(memory: Memory, was: Remembered, text: str, at: Timestamp) -> None:
    """As a later conversation would."""
    newer = Remembered(
        was.id, was.revision + 1, was.kind, text, was.severity, was.scope, was.scope_id, was.created_at, at,
        ((OTHER_KEY, f"{OTHER[:8]}-000003"),),
    )  # fmt: skip
    with memory.database.write() as tx:
        memories.replace_sessions(tx, memory.owner, {OTHER_KEY: [newer]})


# show


def test_a_memory_is_shown_down_to_the_line_of_the_transcript(memory: Memory, transcript: Path) -> None:
    held = rule(memory, FACT)
    shown = memory.show(held.id)
    assert (shown.type, shown.id, shown.record["text"], shown.record["revision"]) == (Type.MEMORY, held.id, FACT, 1)
    (revision,), (talk,) = shown.revisions, shown.conversations
    assert revision.current and revision.sources == ({"session_key": KEY, "entry_uuid": f"{SESSION[:8]}-000003"},)
    assert (talk.session_key, talk.project, talk.messages) == (KEY, "/code/tides", 6)
    assert {each.kind: each.path for each in talk.files if each.current} == paths(memory)
    (entry,) = talk.entries
    assert (entry.role, entry.text, entry.timestamp) == ("user", TOLD, stamp(180))
    lines = (memory.settings.home / entry.path).read_text().split("\n")
    assert entry.line and entry.uuid in lines[entry.line - 1] and lines[entry.line + 1] == TOLD
    assert entry.origin.file == str(transcript) and entry.origin.line == 3
    record = json.loads(transcript.read_bytes()[entry.origin.offset :].splitlines()[0])
    assert record["uuid"] == entry.uuid


def test_every_revision_is_shown_and_the_one_that_was_asked_for_is_the_record(memory: Memory, transcript: Path) -> None:
    held = rule(memory)
    correct(memory, held, "Run make check before you commit.", Timestamp(stamp(240)))
    shown = memory.show(held.id)
    assert [(each.revision, each.current) for each in shown.revisions] == [(2, True), (1, False)]
    assert shown.record["text"] == "Run make check before you commit."
    assert {each.session_key for each in shown.conversations} == {KEY, OTHER_KEY}
    older = memory.show(f"{held.id}-r1")
    assert (older.record["text"], older.record["current"]) == (RULE, False)
    with pytest.raises(NotFound, match="no revision 7") as error:
        memory.show(f"{held.id}-r7")
    assert error.value.hint == "It has 2, 1."


def test_what_a_person_said_is_shown_down_to_its_log(memory: Memory, tmp_path: Path, clock: Clock) -> None:
    made = memory.remember("Releases are cut on Mondays.", everywhere=True)
    clock.advance(60)
    memory.correct(made.id, "Releases are cut on Tuesdays.")
    clock.advance(60)
    memory.pin(made.id)
    memory.feedback(made.id, "ok")
    shown = memory.show(made.id)
    assert (shown.record["pinned"], shown.record["ok"], len(shown.revisions)) == (True, 1, 3)
    for talk in shown.conversations:
        (entry,) = talk.entries
        line = Path(entry.origin.file).read_text().splitlines()[(entry.origin.line or 0) - 1]
        assert json.loads(line)["at"] == entry.timestamp and entry.path
    (day,) = memory.timeline(project=None)
    assert [each.what for each in day.learnt] == ["pinned", "corrected", "learnt"]


def test_looking_is_no_use(memory: Memory, transcript: Path) -> None:
    held = rule(memory)
    for name in (KEY, f"{SESSION[:8]}-000001", paths(memory)[Kind.SUMMARY], held.id, held.id[:8]):
        memory.show(name)
    memory.open(SESSION)
    memory.timeline(project=None, memory=held.id)
    assert memory.show(held.id).record["uses"] == 0
    with memory.database.read() as tx:
        assert tx.rows("SELECT usage_count FROM memory_stage1_use WHERE usage_count > 0") == []
    memory.feedback(held.id, "ok")
    assert memory.show(held.id).record["uses"] == 1


NAMES = {
    "{memory}": Type.MEMORY,
    "{memory:.6}": Type.MEMORY,
    "{memory}-r1": Type.MEMORY,
    "^{memory}-r1": Type.MEMORY,
    "[[{summary}#^{memory}-r1|2026-03-02]]": Type.MEMORY,
    "{summary}": Type.ARTIFACT,
    "{home}/{summary}": Type.ARTIFACT,
    "[[{summary}|summary]]": Type.ARTIFACT,
    "{token}": Type.CONVERSATION,
    "{session}": Type.CONVERSATION,
    "{session:.5}": Type.CONVERSATION,
    "{key}": Type.CONVERSATION,
    "{key:.40}": Type.CONVERSATION,
    "{number}": Type.CONVERSATION,
    "{session:.8}-000003": Type.ENTRY,
}


def test_a_record_is_found_by_whatever_names_it(memory: Memory, transcript: Path) -> None:
    token = names.session_token(memory.owner.agent_id, KEY, "")
    (number,) = [each.id for each in memory.conversations() if each.session_key == KEY]
    known = {"memory": rule(memory).id, "summary": paths(memory)[Kind.SUMMARY], "home": memory.settings.home}
    for name, wanted in NAMES.items():
        shown = memory.show(name.format(**known, token=token, session=SESSION, key=KEY, number=number))
        assert (shown.type, [each.session_key for each in shown.conversations]) == (wanted, [KEY]), name
        assert RULE in {each.text for each in shown.revisions} or wanted is Type.ENTRY


def test_a_session_of_several_conversations_is_shown_as_a_whole(memory: Memory, transcript: Path, root: Path) -> None:
    append(transcript, session("What was it again?", "make lint.", first=200))
    memory.ingest(folder=root)
    shown = memory.show(SESSION)
    assert shown.type is Type.SESSION and len(shown.conversations) == 2
    assert [len(each.entries) for each in shown.conversations] == [6, 2]
    assert shown.record["first_message_at"] < shown.record["last_message_at"]
    assert memory.show(KEY).type is Type.CONVERSATION
    assert memory.show("last").id == shown.conversations[1].session_key


def test_what_names_nothing_is_an_error_with_a_hint(memory: Memory, transcript: Path) -> None:
    for name in ("nothing", "m-zzzz", "", " ", "\0", "\udcff", "%", "_", "a" * 16, "12345", "/etc/passwd", "../x"):
        for call in (memory.show, memory.open):
            with pytest.raises(NotFound) as error:
                call(name)
            assert error.value.hint


def test_a_name_that_fits_several_says_which(memory: Memory, transcript: Path) -> None:
    ids = sorted(rule(memory, text).id for text in (RULE, FACT))
    with pytest.raises(NotFound, match=", ".join(ids)):
        memory.show("m-", "/code/tides")
    with pytest.raises(NotFound, match="may be any of several memories") as elsewhere:
        memory.show("m-", "/code/other")
    assert not any(each in str(elsewhere.value) for each in ids)
    with pytest.raises(NotFound, match="may be any of these messages"):
        memory.show(f"{SESSION[:8]}-00000")


def test_nobody_sees_what_is_not_theirs(memory: Memory, transcript: Path, clock: Clock) -> None:
    names_ = [rule(memory).id, KEY, SESSION, f"{SESSION[:8]}-000001", *paths(memory).values(), "last"]
    names_.append(names.session_token(memory.owner.agent_id, KEY, ""))
    url, home = memory.settings.config.database, memory.settings.home
    for other in ({"agent_id": "eve"}, {"agent_id": "eve"}, {"agent_id": "eve", "tenant": "else"}):
        with open_memory(home, database=url, clock=clock, **other) as stranger:
            for name in names_:
                for call in (stranger.show, stranger.open):
                    with pytest.raises(NotFound):
                        call(name)
            assert stranger.timeline(project=None) == []
            if "tenant" not in other:
                stranger.reindex()  # learns the names of files, and no more


def origin(shown: Shown) -> tuple[int, int | None]:
    (entry,) = shown.conversations[0].entries
    return entry.origin.offset, entry.origin.line


def test_a_line_number_is_told_only_while_the_file_is_the_same(memory: Memory, transcript: Path, root: Path) -> None:
    held, data = rule(memory, FACT), transcript.read_bytes()
    offset, line = origin(memory.show(held.id))
    assert line == 3
    transcript.unlink()
    assert origin(memory.show(held.id)) == (offset, None)
    transcript.write_bytes(session("other", "words", "entirely", name=OTHER) + data)
    memory.ingest(folder=root)  # a new generation: the offset is another's by now
    shown = memory.show(held.id)
    where = origin(shown)
    text = transcript.read_bytes()
    assert where[1] is None or shown.conversations[0].entries[0].uuid.encode() in text.split(b"\n")[where[1] - 1]


@given(st.lists(st.binary(max_size=5).filter(lambda each: b"\n" not in each), max_size=8), st.integers(0, 50))
def test_line_numbers_are_those_of_an_editor(lines: list[bytes], between: int) -> None:
    path = Path(os.environ["HOME"]) / "lines"
    path.write_bytes(b"".join(each + b"\n" for each in lines))
    starts = [sum(len(each) + 1 for each in lines[:number]) for number in range(len(lines))]
    assert line_numbers(path, starts) == {start: number for number, start in enumerate(starts, 1)}
    if between not in {*starts, path.stat().st_size}:
        assert line_numbers(path, [between]) == {}


# open


def test_open_gives_the_current_file_of_each_kind(memory: Memory, transcript: Path, root: Path, clock: Clock) -> None:
    assert memory.open(SESSION).kind is Kind.SUMMARY
    opened = memory.open(OTHER)
    assert opened.kind is Kind.SUMMARY and isinstance(opened.head, Content)
    assert opened.head.memory_sentence in opened.text.rpartition("\n---\n")[2]
    append(transcript, session("From now on deploys happen on Tuesdays only, Priya decides.", "Ok.", first=20))
    memory.ingest(folder=root)
    clock.advance(3600)
    memory.process(now=True)
    for kind in (Kind.SUMMARY, Kind.TRANSCRIPT):
        found = memory.open(SESSION, kind)
        assert "Tuesdays" in found.text and (memory.settings.home / found.path).read_text() == found.text
    manifest = memory.open(KEY, "manifest")
    assert found.path in manifest.text and found.path in manifest.siblings
    with pytest.raises(NotFound, match="it has manifest, summary, transcript"):
        memory.open(OTHER, "compaction")


def test_open_works_without_a_database(memory: Memory, transcript: Path, clock: Clock, tmp_path: Path) -> None:
    token = names.session_token(memory.owner.agent_id, KEY, "")
    summary = paths(memory)[Kind.SUMMARY]
    empty = tmp_path / "elsewhere"
    empty.mkdir()
    (memory.settings.home / "memory").rename(empty / "memory")
    with open_memory(empty, clock=clock) as opened:
        for name in (KEY, SESSION, SESSION[:6], token, summary, Path(summary).name):
            assert opened.open(name).path == summary
        assert opened.open("last").kind in (Kind.SUMMARY, Kind.TRANSCRIPT)
        with pytest.raises(NotFound):
            opened.show(SESSION)


def test_a_file_that_was_changed_by_hand_is_shown_as_such(memory: Memory, transcript: Path) -> None:
    path = paths(memory)[Kind.SUMMARY]
    file = memory.settings.home / path
    file.write_text(file.read_text().replace("make lint", "make love"))
    found = memory.open(SESSION)
    assert "make love" in found.text and found.head is None and "content_sha256" in found.problem


# timeline


def test_the_timeline_tells_by_day_what_was_said_and_learnt(memory: Memory, transcript: Path) -> None:
    correct(memory, rule(memory), "Run make check before you commit.", Timestamp(stamp(240)))
    (day,) = memory.timeline(project=None)
    assert day.day == "2026-03-02" and {each.session_key for each in day.conversations} == {KEY, OTHER_KEY}
    told = {(each.what, each.revision.text, each.session_key) for each in day.learnt}
    assert told == {
        ("learnt", RULE, KEY),
        ("learnt", FACT, KEY),
        ("corrected", "Run make check before you commit.", OTHER_KEY),
    }
    (talk,) = [each for each in day.conversations if each.session_key == KEY]
    assert talk.sentence and talk.path(Kind.SUMMARY) == paths(memory)[Kind.SUMMARY]


def test_the_timeline_is_newest_first_and_bounded(memory: Memory, root: Path, clock: Clock) -> None:
    lines = b"".join(session(f"Question {n}?", "Answer.", first=n * 1000) for n in range(1, 6))
    write(root / "-code-tides" / f"{SESSION}.jsonl", lines)
    memory.ingest(folder=root)
    days = memory.timeline(project=None)
    times = [each.last_message_at for day in days for each in day.conversations]
    assert len(times) == 5 and times == sorted(times, reverse=True) and len(days) == len({t[:10] for t in times})
    assert [
        each.last_message_at for day in memory.timeline(project=None, limit=2) for each in day.conversations
    ] == times[:2]
    middle = memory.timeline(project=None, since=times[3], until=times[1])
    assert [each.last_message_at for day in middle for each in day.conversations] == times[2:4]
    assert memory.timeline(project="/code/other") == []
    assert sum(len(day.conversations) for day in memory.timeline(project="/code/tides")) == 5


def test_the_timeline_of_a_memory_is_its_history(memory: Memory, transcript: Path) -> None:
    held = rule(memory)
    correct(memory, held, "Run make check before you commit.", Timestamp(stamp(240)))
    (day,) = memory.timeline(project=None, memory=held.id[:7])
    assert [each.what for each in day.learnt] == ["corrected", "learnt"]
    assert memory.timeline(project="/code/other", memory=held.id) == []
    with pytest.raises(NotFound, match="is no memory"):
        memory.timeline(project=None, memory=SESSION)


def test_a_project_is_named_by_a_folder_or_its_id(memory: Memory, transcript: Path, tmp_path: Path) -> None:
    write(tmp_path / "repo" / ".git" / "config", b'[remote "origin"]\n  url = git@example.com:ada/tides.git\n')
    (tmp_path / "repo" / "src").mkdir()
    assert memory.project("/code/tides") == "/code/tides"
    assert memory.project(tmp_path / "repo" / "src") == "example.com/ada/tides"
    assert memory.project("example.com/ada/tides") == "example.com/ada/tides"


# The command line


def answer(home: Path, *arguments: str, **more: Any) -> Any:
    done = run(home, *arguments, "--json", **more)
    assert done.status == 0, done.stderr
    return done.json


@pytest.fixture
def home(tmp_path: Path, clock: Clock, root: Path) -> Path:
    folder = tmp_path / "code"
    folder.mkdir()
    here = tmp_path / ".recollect"
    lines = session(*TALK).replace(b"/code/tides", str(folder).encode())
    write(root / "-code" / f"{SESSION}.jsonl", lines)
    with open_memory(here, clock=clock) as memory:
        memory.ingest(folder=root)
        memory.process(now=True)
    return here


def test_the_commands_print_what_the_contract_names(home: Path, tmp_path: Path) -> None:
    told = answer(home, "timeline", cwd=tmp_path / "code")
    (day,) = told["days"]
    assert told["project"] == str(tmp_path / "code") and len(day["conversations"]) == 1 and len(day["learnt"]) == 2
    name = day["learnt"][0]["id"]
    shown = answer(home, "show", name)
    assert shown["id"] == name and shown["lineage"]["conversations"][0]["entries"][0]["origin"]["line"]
    opened = answer(home, "open", "last")
    assert opened["path"] == day["conversations"][0]["links"]["summary"] and opened["text"].startswith("---\n")
    assert run(home, "open", "last", "--path").stdout == f"{opened['path']}\n"
    assert run(home, "open", SESSION).stdout == (home / opened["path"]).read_text()


def test_people_get_lines_they_can_follow(home: Path, tmp_path: Path) -> None:
    assert "Nothing happened in" in run(home, "timeline", cwd=tmp_path).stdout
    told = run(home, "timeline", "--all-projects").stdout
    assert "2026-03-02" in told and f"learnt: {RULE}" in told
    name = re.findall(r"(m-\w+)-r1", told)[0]
    shown = run(home, "show", name).stdout
    assert "holds now" in shown and ".jsonl:" in shown and "--transcript.md:" in shown
    assert RULE in run(home, "show", SESSION).stdout
    assert run(home, "timeline", "--memory", name, "--since", "99w").stdout.count("learnt:") == 1
    assert "Nothing" in run(home, "timeline", "--all-projects", "--until", "2026-03-01").stdout
    assert RULE in run(home, "timeline", "--all-projects", "--until", "2026-03-02").stdout


def test_notes_do_not_bury_the_talks_in_what_people_read(home: Path, tmp_path: Path) -> None:
    project = tmp_path / "code"
    for text in ("Use tabs.", "Deploy on Fridays only."):
        assert run(home, "remember", text, cwd=project).status == 0
    listed = run(home, "conversations", "--limit", "1").stdout
    assert SESSION[:8] in listed and not re.search(r"\bn-", listed) and "2 notes beside them" in listed
    assert len(answer(home, "conversations")) == 3 and len(answer(home, "conversations", "--limit", "1")) == 1
    told = run(home, "timeline", cwd=project).stdout
    assert told.count("Use tabs.") == told.count("Deploy on Fridays only.") == 1 and SESSION[:8] in told
    wide = run(home, "timeline", "--all-projects").stdout
    assert re.search(rf"learnt: Use tabs\. .*\]  {project}\n", wide) and not re.search(r"\bn-", wide)
    (day, _) = answer(home, "timeline", cwd=project)["days"]
    assert len(day["conversations"]) == len(day["learnt"]) == 2


@pytest.mark.parametrize(
    "arguments",
    [
        ["show"],
        ["show", "nothing"],
        ["open", "nothing"],
        ["open", ""],
        ["open", SESSION, "--compaction"],
        ["timeline", "--since", "yesterday"],
        ["timeline", "--until", "2026-13-01"],
        ["timeline", "--limit", "0"],
        ["timeline", "--project", "x", "--all-projects"],
        ["timeline", "--memory", "nothing"],
    ],
)
def test_a_wrong_call_is_status_2_with_a_hint(home: Path, arguments: list[str]) -> None:
    done = run(home, *arguments, "--json")
    assert done.status == 2 and done.json["error"]["hint"] and "Traceback" not in done.stderr


def test_a_terminal_gets_the_pager_and_a_pipe_the_markdown(home: Path) -> None:
    ours, theirs = pty.openpty()
    env = {
        **os.environ,
        "HOME": str(home.parent),
        "RECOLLECT_HOME": str(home),
        "TERM": "xterm",
        "PAGER": "sed s/^/paged:/",
    }
    child = subprocess.Popen([*RECOLLECT, "open", "last"], env=env, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    shown = b""
    while True:
        try:
            block = os.read(ours, 4096)
        except OSError:
            break
        if not block:
            break
        shown += block
    assert child.wait() == 0
    os.close(ours)
    assert b"paged:---" in shown and b"paged:## Memories" in shown
    assert "paged:" not in run(home, "open", "last").stdout
