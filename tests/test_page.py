"""The page without a browser: its process and logins, reading, correcting, erasing, and what it must not load."""

from __future__ import annotations

import contextlib
import os
import re
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import quote

import pytest

from recollect.app import open_memory
from recollect.surfaces.http import place, shapes
from recollect.types import Remembered
from tests.command import run
from tests.conftest import Place
from tests.daemons import home as daemon_home
from tests.pages import Browser, eventually, page
from tests.test_browse import learn

WEB = "{'starlette', 'uvicorn', 'jinja2', 'h11'}"


def remembered(home: Path, text: str = "The pond is two metres deep.", **more: str) -> Remembered:
    with open_memory(home, **more) as memory:
        return memory.remember(text, project=home.parent)


def path(memory: Remembered) -> str:
    return f"/m/{memory.id}"


# Getting in, and coming back


def test_a_token_opens_the_page_once_and_the_cookie_stays(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with page(home) as browser:
        token = place.mint(home)
        first = browser.ask("GET", f"/enter?token={token}", without=["Cookie"])
        again = browser.ask("GET", f"/enter?token={token}", without=["Cookie"])
        assert (first.status, again.status) == (200, 401)
        told = first.headers["set-cookie"]
        assert "HttpOnly" in told and "SameSite=Strict" in told and token not in told
        assert browser.get("/").status == 200
        assert browser.ask("GET", "/", without=["Cookie"]).status == 401
        assert browser.cookie not in (home / "page" / "state.json").read_text()


def test_of_many_who_come_with_one_token_one_is_let_in(tmp_path: Path) -> None:
    with page(tmp_path / "home") as browser, ThreadPoolExecutor(12) as pool:
        token = place.mint(browser.home)
        asked = [pool.submit(browser.ask, "GET", f"/enter?token={token}", without=["Cookie"]) for _ in range(12)]
        assert sorted(each.result().status for each in asked) == [200, *[401] * 11]


def test_a_token_is_good_for_a_minute(tmp_path: Path) -> None:
    with page(tmp_path / "home") as browser:
        token = place.mint(browser.home)
        (file,) = (browser.home / "page").glob("token-*")
        os.utime(file, (time.time() - 61, time.time() - 61))
        assert browser.ask("GET", f"/enter?token={token}").status == 401
        assert token not in " ".join(str(each) for each in (browser.home / "page").iterdir())


def test_after_a_kill_the_same_address_and_login_are_good(tmp_path: Path) -> None:
    with page(tmp_path / "home") as browser:
        before = browser.state
        browser.kill()
        assert place.was_killed(browser.home)
        browser.start()
        assert browser.state == before and browser.get("/").status == 200


def test_where_somebody_took_the_port_everything_is_new(tmp_path: Path) -> None:
    with page(tmp_path / "home") as browser:
        before = browser.state
        browser.stop()
        with socket.create_server(("127.0.0.1", before.port)):
            browser.start()
            after = browser.state
            assert after.port != before.port and after.name != before.name and after.logins == ()


def test_a_replaced_database_and_a_changed_configuration_are_seen(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with page(home) as browser:
        remembered(home)
        assert "two metres" in browser.get("/memories").text
        for each in home.glob("recollect.db*"):
            each.unlink()
        with open_memory(home):
            pass
        assert "two metres" not in browser.get("/memories").text
        (home / "config.toml").write_text("enabled = false\n")
        assert "switched off" in browser.get("/memories").text


def test_it_leaves_when_nobody_looks(tmp_path: Path) -> None:
    with page(tmp_path / "home", idle=0.5) as browser:
        assert eventually(lambda: browser.process.poll() is not None)
        assert browser.process.returncode == 0 and not place.was_killed(browser.home)


def test_one_page_serves_a_home(tmp_path: Path) -> None:
    with page(tmp_path / "home") as browser:
        assert browser.state.port
        environ = {**os.environ, "RECOLLECT_HOME": str(browser.home)}
        command = [sys.executable, "-P", "-m", "recollect.surfaces.http.serve"]
        done = subprocess.run(command, env=environ, timeout=20, check=False)
        assert done.returncode == 0 and browser.get("/").status == 200


def test_the_command_prints_an_address_that_opens_the_page(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with page(home) as browser:
        told = run(home, "ui", "--json").json
        assert told["url"].startswith(f"{browser.state.origin}/enter?token=") and told["seconds"] == 60
        assert browser.ask("GET", told["url"].partition(browser.state.host)[2]).status == 200


def test_an_agent_is_not_given_an_address(tmp_path: Path) -> None:
    done = run(tmp_path / "home", "ui", "--print", CLAUDECODE="1")
    assert done.status == 2 and "agent may not" in done.stderr and done.stdout == ""


def test_the_daemon_starts_the_page_and_starts_it_again_after_a_kill(tmp_path: Path) -> None:
    with daemon_home(tmp_path, RECOLLECT_POLL_INTERVAL_SECONDS="0.3") as home:
        home.start()
        home.run("ui", "--print")
        first = place.running(home.path)
        assert first
        os.kill(first[0], 9)
        assert eventually(lambda: (now := place.running(home.path)) and now[0] != first[0], 20)
        now = place.running(home.path)
        assert now and now[1] == first[1]
    assert eventually(lambda: place.running(tmp_path / ".recollect") is None)


# What a person does


@pytest.fixture
def browser(database_url: Place) -> Browser:
    with page(database_url) as opened:
        yield opened


def test_a_memory_is_found_read_corrected_and_taken_back(database_url: Place, browser: Browser) -> None:
    one = remembered(database_url.home, database=database_url.url)
    assert "two metres deep" in browser.get("/memories", q="pond").text
    assert re.search("<mark>pond</mark>", browser.get("/memories", q="pond").text, re.IGNORECASE)
    shown = browser.get(path(one)).text
    assert "Remember (" in shown and "revision 1" in shown  # the message it came from
    done = browser.post(f"{path(one)}/correct", text="The pond is three metres deep.", revision="1")
    assert (done.status, done.headers["location"]) == (303, f"{path(one)}?done=correct")
    shown = browser.get(path(one)).text
    assert "<ins> three</ins>" in shown and "<del> two</del>" in shown
    assert browser.post(f"{path(one)}/undo", revision="2").status == 303
    assert "The pond is two metres deep." in browser.get(path(one)).text


def test_whoever_saw_another_revision_changes_nothing_and_keeps_what_was_typed(tmp_path: Path) -> None:
    one = remembered(tmp_path / "home")
    with page(tmp_path / "home") as browser:
        assert browser.post(f"{path(one)}/correct", text="It is three metres deep.", revision="1").status == 303
        late = browser.post(f"{path(one)}/correct", text="It is a puddle now.", revision="1")
        assert late.status == 409 and "It is a puddle now." in late.text and "three metres" in late.text
        assert "puddle" not in browser.get("/memories").text


def test_every_revision_has_one_winner(database_url: Place, browser: Browser) -> None:
    one = remembered(database_url.home, database=database_url.url)
    told, lock = [], threading.Lock()

    def go(who: str) -> None:
        for number in range(4):
            with open_memory(database_url.home, database=database_url.url) as memory:
                revision = memory.memory(one.id).revision
            text = f"The pond is {who}{number} metres deep."
            done = browser.post(f"{path(one)}/correct", text=text, revision=str(revision))
            with lock:
                told.append((done.status, revision))

    with ThreadPoolExecutor(2) as pool:
        for each in [pool.submit(go, who) for who in "ab"]:
            each.result()
    won = [revision for status, revision in told if status == 303]
    assert {status for status, _ in told} <= {303, 409} and len(won) == len(set(won))
    with open_memory(database_url.home, database=database_url.url) as memory:
        assert memory.memory(one.id).revision == len(won) + 1


def test_pin_wrong_move_and_seen_do_what_they_say(tmp_path: Path) -> None:
    home = tmp_path / "home"
    one = remembered(home)
    with page(home) as browser, open_memory(home) as memory:
        for verb, form in (("pin", {}), ("unpin", {}), ("feedback", {"opinion": "not_ok"})):
            assert browser.post(f"{path(one)}/{verb}", **form).status == 303, verb
        assert "two metres" not in browser.get("/memories").text
        assert "two metres" in browser.get("/memories", wrong="yes").text
        assert browser.post(f"{path(one)}/feedback", opinion="ok").status == 303
        revision = str(memory.memory(one.id).revision)
        assert browser.post(f"{path(one)}/move", project="*", revision=revision).status == 303
        assert memory.memory(one.id).scope == "user"


def test_the_inbox_shows_the_message_and_empties(database_url: Place, browser: Browser) -> None:
    with open_memory(database_url.home, database=database_url.url) as memory:
        (one,) = learn(memory)
    shown = browser.get("/inbox").text
    assert one.text in shown and "Always" in shown
    assert browser.post("/inbox/seen", ids=f"{one.id}-r{one.revision}", back="/inbox").status == 303
    assert "Nothing is new" in browser.get("/inbox").text


@pytest.mark.parametrize(
    ("form", "status", "told"),
    [
        ({"text": "", "revision": "1"}, 422, "the field text is empty"),
        ({"text": "x" * 5000, "revision": "1"}, 422, "4,000 are the most"),
        ({"text": "It is deep.", "revision": "one"}, 422, "which revision"),
        ({"text": "It is deep.", "revision": "1", "kind": "poem"}, 422, "not a kind"),
        ({"text": "It is deep.", "revision": "1", "model_url": "http://evil.example"}, 422, "no field `model_url`"),
    ],
)
def test_bad_input_is_told_beside_the_form_and_changes_nothing(
    tmp_path: Path, form: dict[str, str], status: int, told: str
) -> None:
    one = remembered(tmp_path / "home")
    with page(tmp_path / "home") as browser:
        done = browser.post(f"{path(one)}/correct", **form)
        assert done.status == status and told in done.text and form["text"] in done.text
        assert "revision 2" not in browser.get(path(one)).text


@pytest.mark.parametrize("cursor", ["x", "2026~", "2026-01-01T00:00:00.000Z~m-1~2", "~", "%00", "2026" * 9])
def test_a_foreign_cursor_is_told(tmp_path: Path, cursor: str) -> None:
    with page(tmp_path / "home") as browser:
        for view in ("/memories", "/inbox", "/sessions"):
            assert browser.ask("GET", f"{view}?after={quote(cursor, safe='%')}").status == 422, view


def test_a_switch_and_a_cap_are_all_that_can_be_set(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with open_memory(home) as memory:
        learn(memory)
        project = memory.projects()[0][0]
    config = home / "config.toml"
    config.write_text('# mine\nlog_level = "error"  # quiet\n')
    with page(home) as browser:
        assert browser.post("/workings/switch", project=project, on="no").status == 303
        assert browser.post("/workings/cap", max_tokens_per_day="1,000").status == 303
        written = config.read_text()
        assert written.startswith('# mine\nlog_level = "error"  # quiet\n') and "max_tokens_per_day = 1000" in written
        assert "Switch on" in browser.get("/workings").text
        for path_, form in (
            ("cap", {"max_tokens_per_day": "many"}),
            ("cap", {"max_tokens_per_day": "1", "model_url": "http://evil.example"}),
            ("switch", {"project": "/nowhere", "on": "no"}),
            ("switch", {"project": project}),
        ):
            answer = browser.post(f"/workings/{path_}", **form)
            assert answer.status == 422 and config.read_text() == written, form
        assert "many" in browser.post("/workings/cap", max_tokens_per_day="many").text
        assert browser.post("/workings/switch", project=project, on="yes").status == 303
        assert f"{project}" not in config.read_text()


# Erasing


def test_nothing_is_erased_before_the_word_is_typed(database_url: Place, browser: Browser) -> None:
    one = remembered(database_url.home, "The launch word is hummingbird.", database=database_url.url)
    plan = browser.post("/erase/plan", kind="memory", name=one.id)
    assert plan.status == 200 and "The launch word is hummingbird." in plan.text
    digest = re.search(r'name="digest" value="(\w+)"', plan.text)
    assert digest
    named = {"kind": "memory", "name": one.id, "digest": digest[1]}
    refused = browser.post("/erase/confirm", **named, word="yes")
    assert refused.status == 422 and "Nothing was erased" in refused.text
    done = browser.post("/erase/confirm", **named, word="erase")
    assert done.status == 303
    where = done.headers["location"]
    assert eventually(lambda: "running" not in browser.get(f"{where}/receipt").text, 20)
    receipt = browser.get(f"{where}/receipt").text
    assert '"state": "done"' in receipt and "hummingbird" not in receipt
    assert re.search(r'"remains": \{\s*"messages": 0,\s*"memories": 0,\s*"files": 0', receipt), receipt
    assert browser.get(path(one)).status == 404 and "hummingbird" not in browser.get("/memories").text
    files = [each for each in database_url.home.rglob("*") if each.is_file()]
    assert [each.name for each in files if b"hummingbird" in each.read_bytes()] == []


def test_nothing_goes_when_something_else_would_go_by_now(tmp_path: Path) -> None:
    home = tmp_path / "home"
    remembered(home, "The launch word is hummingbird.")
    with page(home) as browser:
        named = {"kind": "text", "name": "hummingbird"}
        digest = re.search(r'name="digest" value="(\w+)"', browser.post("/erase/plan", **named).text)
        assert digest
        remembered(home, "A hummingbird weighs five grams.")
        late = browser.post("/erase/confirm", **named, digest=digest[1], word="erase")
        assert late.status == 409 and "something else would go by now" in late.text
        assert "five grams" in late.text and "launch word" in browser.get("/memories").text


def test_the_verb_itself_refuses_another_plan(tmp_path: Path) -> None:
    home = tmp_path / "home"
    remembered(home, "The launch word is hummingbird.")
    told = run(home, "forget", "--text", "hummingbird", "--dry-run", "--json").json
    remembered(home, "A hummingbird weighs five grams.")
    asked = ("forget", "--text", "hummingbird", "--yes", "--json", "--digest")
    done = run(home, *asked, told["digest"])
    assert done.status == 2 and done.json["error"]["kind"] == "Outdated"
    told = run(home, "forget", "--text", "hummingbird", "--dry-run", "--json").json
    assert run(home, *asked, told["digest"]).status == 0


def test_reading_and_erasing_work_while_memory_is_switched_off(tmp_path: Path) -> None:
    home = tmp_path / "home"
    one = remembered(home, "The launch word is hummingbird.")
    (home / "config.toml").write_text("enabled = false\n")
    with page(home) as browser:
        for view in ("/", "/memories", path(one), "/inbox", "/sessions", "/context", "/workings"):
            assert browser.get(view).status == 200, view
        assert browser.post(f"{path(one)}/pin").status == 500  # nothing is learnt
        digest = re.search(r'name="digest" value="(\w+)"', browser.post("/erase/plan", kind="memory", name=one.id).text)
        assert digest
        form = {"kind": "memory", "name": one.id, "digest": digest[1], "word": "erase"}
        where = browser.post("/erase/confirm", **form).headers["location"]
        assert eventually(lambda: '"done"' in browser.get(f"{where}/receipt").text, 20)


# Live, and what it costs others


def test_what_a_shell_remembers_is_told_to_an_open_page_within_two_seconds(
    database_url: Place, browser: Browser
) -> None:
    browser.get("/")
    request = f"GET /live HTTP/1.1\r\nHost: {browser.state.host}\r\nCookie: recollect_page={browser.cookie}\r\n\r\n"
    heard = bytearray()

    def hear() -> bool:
        with contextlib.suppress(TimeoutError):
            heard.extend(listener.recv(4096))
        return b"event: changed" in heard

    with socket.create_connection(("127.0.0.1", browser.state.port)) as listener:
        listener.sendall(request.encode())
        listener.settimeout(0.2)
        is_quiet = not eventually(hear, 1.5)
        assert is_quiet or database_url.url  # other tests write to the same server
        heard.clear()
        remembered(database_url.home, database=database_url.url)
        assert eventually(hear, 2.0), bytes(heard)
        assert b"metres" not in heard


@pytest.mark.parametrize(
    "command", ["status", "search pond", "memories", "inbox", "sessions", "show last", "ui --help"]
)
def test_reading_commands_load_no_web_server(tmp_path: Path, command: str) -> None:
    code = f"import sys; from recollect.surfaces.cli import run; run('{command}'.split());"
    assert loaded(tmp_path, code) == "[]"


@pytest.mark.parametrize("module", ["surfaces.hooks.client", "surfaces.hooks.answer", "surfaces.daemon.daemon"])
def test_hook_and_daemon_load_no_web_server(tmp_path: Path, module: str) -> None:
    assert loaded(tmp_path, f"import sys, recollect.{module};") == "[]"


def loaded(tmp_path: Path, code: str) -> str:
    environ = {**os.environ, "RECOLLECT_HOME": str(tmp_path / "home")}
    command = [sys.executable, "-P", "-c", f"{code} print(sorted({WEB} & set(sys.modules)), file=sys.stderr)"]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
    return done.stderr.strip().splitlines()[-1]


# Pure


def test_a_diff_gives_back_both_texts() -> None:
    before, now = "Run make check  before every commit.", "Run make check and\nmake test before a commit."
    runs = shapes.diff(before, now)
    assert "".join(each.text for each in runs if each.what != "added") == before
    assert "".join(each.text for each in runs if each.what != "removed") == now


def test_marks_split_a_text_and_lose_none_of_it() -> None:
    runs = shapes.pieces("a pond, a pond", [(2, 6), (3, 5), (10, 14)])
    assert "".join(each.text for each in runs) == "a pond, a pond"
    assert [each.text for each in runs if each.what == "marked"] == ["pond", "pond"]


def test_vendored_files_are_what_was_recorded() -> None:
    from hashlib import sha256

    folder = Path(place.__file__).parent / "static"
    told = dict(re.findall(r"(\S+\.js) ([0-9a-f]{64})", (folder / "VENDORED.md").read_text()))
    assert set(told) == {"htmx.min.js", "hx-csp.min.js"}
    assert {name: sha256((folder / name).read_bytes()).hexdigest() for name in told} == told


def test_the_page_stays_small() -> None:
    folder = Path(place.__file__).parent
    own = [*folder.glob("*.py"), *(folder / "templates").iterdir(), folder / "static" / "page.css"]
    own.append(folder / "static" / "page.js")
    assert sum(len(each.read_text().splitlines()) for each in own) <= 2_500
