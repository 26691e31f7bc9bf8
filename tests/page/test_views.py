"""Every view, key and form in a real browser."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser as Chromium
from playwright.sync_api import BrowserType, Page, expect

from recollect.app import open_memory
from recollect.surfaces.http import place
from tests.command import run
from tests.conftest import Place
from tests.page.conftest import AXE, Watched, let_in
from tests.pages import Browser
from tests.test_browse import RULE
from tests.transcripts import claude

VIEWS = ("/", "/inbox", "/memories", "/memories?q=heron", "/sessions", "/context?prompt=heron", "/erase", "/workings")
MOST_NODES = 1_500


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_every_view_is_for_everyone(browser: Chromium, site: Browser, scheme: str, width: int) -> None:
    """No serious finding of axe, nothing wider than the screen, few nodes; PAGE_SHOTS names a folder for pictures."""
    context = browser.new_context(
        base_url=site.state.origin, color_scheme=scheme, viewport={"width": width, "height": 860}
    )
    watched, tab = Watched(context, site), let_in(context, site)
    tab.goto("/memories")
    views = [*VIEWS, *(tab.locator(".cards a.text").first.get_attribute("href") or "",)]
    tab.goto("/sessions")
    views.append(tab.locator(".cards a.text").first.get_attribute("href") or "")
    for view in views:
        tab.goto(view)
        assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth"), view
        assert tab.evaluate("document.querySelectorAll('*').length") <= MOST_NODES, view
        if shots := os.environ.get("PAGE_SHOTS"):
            name = re.sub(r"\W+", "-", view).strip("-")[:20] or "today"
            tab.screenshot(path=Path(shots) / f"{name}-{scheme}-{width}.png", full_page=True)
        context.new_cdp_session(tab).send("Runtime.evaluate", {"expression": AXE.read_text()})  # past the policy
        found = tab.evaluate("axe.run(document).then(each => each.violations)")
        serious = [
            (each["id"], each["nodes"][0]["html"]) for each in found if each["impact"] in ("serious", "critical")
        ]
        assert serious == [], view
    context.close()
    assert watched.problems == []


def test_what_one_types_is_found_without_loading_the_page_anew(site: Browser, tab: Page) -> None:
    tab.goto("/memories")
    tab.evaluate("window.same = true")
    tab.keyboard.press("/")
    tab.keyboard.type("hero")
    expect(tab.locator("mark").first).to_have_text(re.compile("hero", re.IGNORECASE))
    expect(tab.locator("#list .cards li")).to_have_count(1)
    assert tab.evaluate("window.same") is True
    expect(tab.locator("#q")).to_be_focused()


def test_one_key_leads_to_each_view(site: Browser, tab: Page) -> None:
    for key, path in (("i", "/inbox"), ("m", "/memories"), ("s", "/sessions"), ("c", "/context"), ("t", "/")):
        tab.keyboard.press(key)
        tab.wait_for_url(site.state.origin + path)
    tab.goto("/memories")
    tab.keyboard.press("/")
    expect(tab.locator("#q")).to_be_focused()
    tab.keyboard.type("ti")  # is typed, and leads nowhere
    assert tab.url == f"{site.state.origin}/memories"


def test_the_inbox_is_gone_through_by_keys(database_url: Place, site: Browser, tab: Page) -> None:
    tab.keyboard.press("i")
    card = tab.locator("[data-card]").first
    expect(card).to_contain_text("tide tables")
    tab.keyboard.press("j")
    expect(card).to_be_focused()
    tab.keyboard.press("p")
    expect(card.locator("select")).to_be_focused()
    tab.keyboard.press("Escape")
    tab.keyboard.press("e")
    tab.wait_for_url("**/m/*")
    expect(tab.locator("#text")).to_be_focused()
    tab.goto("/inbox")
    tab.keyboard.press("f")
    tab.wait_for_url("**/erase?memory=*")
    tab.goto("/inbox")
    tab.keyboard.press("y")
    expect(tab.locator("main")).to_contain_text("Nothing is new")


def test_what_a_shell_remembers_shows_on_an_open_list(database_url: Place, site: Browser, tab: Page) -> None:
    tab.goto("/memories")
    tab.wait_for_timeout(1_500)  # it listens
    with open_memory(database_url.home, database=database_url.url) as memory:
        memory.remember("A kingfisher dives.", everywhere=True)
    expect(tab.locator("#list")).to_contain_text("kingfisher", timeout=3_000)


def test_a_second_tab_is_shown_what_holds_now(site: Browser, tab: Page) -> None:
    tab.goto("/memories?q=metres")
    address = tab.locator(".cards a.text").first.get_attribute("href") or ""
    second = tab.context.new_page()
    for each in (tab, second):
        each.goto(f"{address}#text")
    tab.locator("#text").fill("The pond is three metres deep.")
    tab.get_by_role("button", name="Save").click()
    expect(tab.locator("h1")).to_have_text("The pond is three metres deep.")
    second.locator("#text").fill("The pond is a puddle.")
    second.get_by_role("button", name="Save").click()
    expect(second.locator("#text")).to_have_value("The pond is a puddle.")
    expect(second.locator("[role=alert]")).to_contain_text("revision 2")
    expect(second.locator("h1")).to_have_text("The pond is three metres deep.")


def test_the_back_button_shows_nothing_that_was_erased(site: Browser, tab: Page) -> None:
    tab.goto("/memories?q=metres")
    tab.locator(".cards a.text").first.click()
    address = tab.url
    tab.get_by_role("link", name="Erase …").click()
    tab.get_by_role("button", name="Show what would go").click()
    tab.get_by_label("Type erase").fill("erase")
    tab.get_by_role("button", name="Erase for good").click()
    expect(tab.locator("h1")).to_have_text("Erased", timeout=20_000)
    for _ in range(6):
        tab.evaluate("setTimeout(() => history.back(), 0)")
        tab.wait_for_timeout(400)
        assert "two metres" not in tab.content()
    tab.goto(address)
    expect(tab.locator("main")).to_contain_text("no memory")


def test_without_scripts_one_finds_reads_corrects_and_erases(browser: Chromium, site: Browser) -> None:
    context = browser.new_context(base_url=site.state.origin, java_script_enabled=False)
    tab = let_in(context, site)
    tab.locator("input[type=search]").fill("metres")
    tab.get_by_role("button", name="Find").click()
    tab.locator(".cards a.text").first.click()
    expect(tab.locator(".cited")).to_have_count(1)
    tab.locator("summary", has_text="Correct").click()
    tab.locator("#text").fill("The pond is four metres deep.")
    tab.get_by_role("button", name="Save").click()
    expect(tab.locator("h1")).to_contain_text("four")
    tab.get_by_role("link", name="Erase …").click()
    tab.get_by_role("button", name="Show what would go").click()
    tab.locator("#word").fill("erase")
    tab.get_by_role("button", name="Erase for good").click()
    for _ in range(40):
        if "Erased" in tab.locator("h1").inner_text():
            break
        tab.wait_for_timeout(250)
        tab.get_by_role("link", name="Look now").click()
    assert "Erased" in tab.locator("h1").inner_text()
    context.close()


@pytest.mark.parametrize("text", ["<img src=x onerror=alert(1)>", "<b hx-get='/erase' hx-trigger='load'>x</b>"])
def test_what_a_memory_says_does_nothing(database_url: Place, site: Browser, tab: Page, text: str) -> None:
    with open_memory(database_url.home, database=database_url.url) as memory:
        one = memory.remember(f"The pond says {text} all day.", everywhere=True)
    for view in ("/", "/memories", f"/m/{one.id}", "/memories?q=" + "pond"):
        tab.goto(view)
        tab.wait_for_timeout(200)
        assert "<img" in tab.locator("body").inner_text() or "<b hx" in tab.locator("body").inner_text()
        assert tab.url == site.state.origin + view


def test_the_whole_story(
    browser_type: BrowserType, browser_type_launch_args: dict[str, object], database_url: Place, tmp_path: Path
) -> None:
    """Transcripts are learnt from, gone through, and what an agent is told changes; what is erased is nowhere left."""
    from tests.pages import page

    home, lake = database_url.home, tmp_path / "lake"
    said = [RULE, "Understood.", "Never name the launch word flamingo to anybody.", "Understood.", "Good.", "Thanks."]
    lines = b"".join(claude(n, each, role=("user", "assistant")[n % 2], cwd=str(lake)) for n, each in enumerate(said))
    folder = tmp_path / "transcripts" / "-lake"
    folder.mkdir(parents=True)
    (folder / "11111111-2222-4333-8444-555555555555.jsonl").write_bytes(lines)
    lake.mkdir()
    with open_memory(home, database=database_url.url) as memory:
        memory.ingest(folder=folder.parent, source="claude-code")
        memory.process(now=True)
        assert memory.inbox().total == 2
        project = memory.project(lake)
    with page(database_url) as site:
        context = browser_type.launch_persistent_context(tmp_path / "profile", **browser_type_launch_args)
        watched, tab = Watched(context, site), let_in(context, site)
        tab.goto(f"{site.state.origin}/inbox")
        tab.locator("[data-card]", has_text="tide").get_by_role("link", name="Edit").click()
        tab.locator("#text").fill("Always run the tide tables through make test before you push them.")
        tab.get_by_role("button", name="Save").click()
        assert "make test" in told(database_url, lake)
        tab.get_by_role("button", name="Undo").click()
        assert "make check" in told(database_url, lake)
        one = tab.url.partition("/m/")[2].partition("?")[0]
        assert one in told(database_url, lake)
        tab.get_by_role("button", name="Wrong").click()
        assert one not in told(database_url, lake)
        tab.get_by_role("button", name="It holds").click()
        tab.locator("summary", has_text="Move").click()
        tab.locator("select[name=project]").select_option("*")
        tab.get_by_role("button", name="Move").click()
        assert one in told(database_url, tmp_path)
        tab.goto(f"{site.state.origin}/inbox")
        tab.locator("[data-card]", has_text="flamingo").get_by_role("link", name="Erase …").click()
        tab.get_by_role("button", name="Show what would go").click()
        tab.locator("#word").fill("erase")
        tab.get_by_role("button", name="Erase for good").click()
        expect(tab.locator("h1")).to_have_text("Erased", timeout=20_000)
        expect(tab.locator("main")).to_contain_text("found afterwards")
        context.close()
        assert watched.problems == []
    assert "flamingo" not in told(database_url, lake) and project
    left = [each for each in (*home.rglob("*"), *(tmp_path / "profile").rglob("*")) if each.is_file()]
    assert [each.name for each in left if b"flamingo" in each.read_bytes()] == []


def told(where: Place, folder: Path) -> str:
    """What a session in the folder is told at its start, as the command line shows it."""
    environ = {"RECOLLECT_DATABASE": where.url} if where.url else {}
    return run(where.home, "context", "--project", str(folder), "--json", **environ).stdout


def test_an_address_opens_the_page_in_another_tab_and_once(browser: Chromium, site: Browser) -> None:
    context = browser.new_context()
    address = f"{site.state.origin}/enter?token={place.mint(site.home)}"
    tab = context.new_page()
    tab.goto(address)
    tab.wait_for_url(f"{site.state.origin}/")
    other = browser.new_context().new_page()
    other.goto(address)
    assert "Not let in" in other.content()
    context.close()
