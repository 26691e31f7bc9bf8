"""`make picture`: docs/page.png, memories as the bundled samples give them, under a clock that stands still."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

from playwright.sync_api import sync_playwright

from recollect.app import open_memory
from recollect.surfaces.http import place
from recollect.surfaces.start import write_samples

NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
FILE = Path(__file__).parent.parent / "docs" / "page.png"
NOTED = (
    ("Run make check and make test before every commit.", "shop"),
    ("The staging database runs PostgreSQL 16 on port 5433.", "shop"),
    ("Answer in English, also where the ticket is in German.", ""),
    ("No service mesh: two services do not need one.", "billing"),
)
MOST = 80_000  # bytes


def main() -> None:
    program = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    if program is None:
        sys.exit("no browser: install the package `chromium`, or name one with CHROMIUM")
    with tempfile.TemporaryDirectory(prefix="recollect-picture-") as folder:
        home = Path(folder) / "home"
        fill(home)
        environ = {**os.environ, "RECOLLECT_HOME": str(home), "RECOLLECT_EMBEDDER": "none"}
        process = subprocess.Popen([sys.executable, "-P", "-m", "recollect.surfaces.http.serve"], env=environ)
        try:
            while place.running(home) is None:
                time.sleep(0.05)
            take(home, program)
        finally:
            process.terminate()
            process.wait()
    if FILE.stat().st_size > MOST:
        sys.exit(f"{FILE} has {FILE.stat().st_size:,} bytes, and {MOST:,} are the most")


def fill(home: Path) -> None:
    """What the samples teach, and a few notes."""
    with open_memory(home, environ={}, clock=lambda: NOW, embedder="none") as memory:
        with tempfile.TemporaryDirectory(prefix="recollect-samples-") as folder:
            write_samples(Path(folder), NOW)
            memory.ingest(folder=Path(folder))
        memory.process(now=True)
        for text, project in NOTED:
            where = Path("/home/you", project) if project else None
            made = memory.remember(text, project=where, everywhere=not project)
            if "port" in text:
                memory.pin(made.id)


def take(home: Path, program: str) -> None:
    """The list for one query, in the light scheme."""
    state = place.load(home)
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=program, args=["--no-sandbox"])
        tab = browser.new_page(viewport={"width": 940, "height": 640}, color_scheme="light")
        tab.goto(f"{state.origin}/enter?token={place.mint(home)}")
        tab.wait_for_url(f"{state.origin}/")
        tab.goto(f"{state.origin}/memories")
        tab.screenshot(path=FILE, animations="disabled", caret="hide")
        browser.close()


if __name__ == "__main__":
    main()
