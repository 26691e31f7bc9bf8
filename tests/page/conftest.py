"""A real browser for tests of the page: `make test-page`. Without one the run fails and names the package."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser as Chromium
from playwright.sync_api import BrowserContext, Page

from recollect.app import open_memory
from recollect.surfaces.http import place
from tests.conftest import Place
from tests.pages import Browser, page
from tests.test_browse import learn

AXE = Path(__file__).parents[2] / ".venv" / "page" / "node_modules" / "axe-core" / "axe.min.js"
_PROGRAMS = ("chromium", "google-chrome")


def chromium() -> str | None:
    named = os.environ.get("CHROMIUM")
    return named or next((found for each in _PROGRAMS if (found := shutil.which(each))), None)


def pytest_sessionstart(session: pytest.Session) -> None:
    if not chromium():
        pytest.exit("no browser: install the package `chromium`, or name one with CHROMIUM", returncode=1)


@pytest.fixture(scope="session")
def browser_type_launch_args() -> dict[str, Any]:
    return {"executable_path": chromium(), "args": ["--no-sandbox", "--disable-dev-shm-usage"]}


@pytest.fixture
def site(database_url: Place) -> Iterator[Browser]:
    """A page with something learnt, something noted, and a session that was told something."""
    home = database_url.home
    with open_memory(home, database=database_url.url) as memory:
        learn(memory)
        lake = home.parent / "lake"
        one = memory.remember("The heron stands in the pond.", project=lake)
        memory.remember("The pond is two metres deep.", project=lake)
        memory.pin(one.id)
        memory.correct(one.id, "The heron stands beside the pond.")
        memory.remember("Answer in English.", everywhere=True)
        memory.give(lake, "where is the heron?", "s-1")
    with page(database_url) as made:
        yield made


class Watched:
    """What a tab asked for and complained about, that it should not have."""

    def __init__(self, context: BrowserContext, site: Browser) -> None:
        self.problems: list[str] = []
        self._site = site
        context.on("request", lambda request: self._asked(request.url))
        context.on("console", lambda said: self._said(said.type, said.text))
        context.on("weberror", lambda error: self.problems.append(str(error.error)))
        context.on("dialog", lambda dialog: self.problems.append(f"dialog {dialog.message}"))
        context.add_init_script(
            "addEventListener('securitypolicyviolation', e => console.error('policy', e.violatedDirective))"
        )

    def _asked(self, url: str) -> None:
        if not url.startswith((self._site.state.origin, "about:", "data:")):
            self.problems.append(f"request {url}")

    def _said(self, kind: str, text: str) -> None:
        if kind in ("error", "warning") and "status of 4" not in text:
            self.problems.append(f"{kind}: {text}")


def let_in(context: BrowserContext, site: Browser) -> Page:
    tab = context.new_page()
    tab.goto(f"{site.state.origin}/enter?token={place.mint(site.home)}")
    tab.wait_for_url(f"{site.state.origin}/")
    return tab


@pytest.fixture
def tab(browser: Chromium, site: Browser) -> Iterator[Page]:
    """A tab that was let in. Whatever it should not have done fails the test."""
    context = browser.new_context(base_url=site.state.origin, viewport={"width": 1280, "height": 860})
    watched = Watched(context, site)
    yield let_in(context, site)
    context.close()
    assert watched.problems == []
