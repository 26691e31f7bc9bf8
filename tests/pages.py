"""The page of a home, for tests: its process, and requests to it as a browser would make them, or as nobody should."""

from __future__ import annotations

import http.client
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from html import unescape
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote, urlencode

from recollect.surfaces.http import place
from tests.conftest import Place
from tests.daemons import wait


class Answer(NamedTuple):
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return unescape(self.body.decode())


class Browser:
    """The process of a page, and one browser that was let in."""

    def __init__(self, home: Path, idle: float = 60.0, **environ: str) -> None:
        self.home = home
        self._environ = {**os.environ, "RECOLLECT_HOME": str(home), **environ}
        self._idle = idle
        self.cookie = ""
        self.process = self.start()

    def start(self) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-P", "-m", "recollect.surfaces.http.serve", "--idle", str(self._idle)]
        self.home.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.process = subprocess.Popen(command, env=self._environ, start_new_session=True)
        wait(lambda: place.running(self.home) or self.process.poll() is not None)
        return self.process

    @property
    def state(self) -> place.State:
        return place.load(self.home)

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.terminate()
        self.process.wait(10)

    def ask(
        self,
        method: str,
        path: str,
        body: bytes = b"",
        headers: Sequence[tuple[str, str]] = (),
        without: Sequence[str] = (),
    ) -> Answer:
        """As a browser asks that was let in, but for what `headers` say otherwise, and without those named."""
        own = {"Host": self.state.host, "Cookie": f"recollect_page={self.cookie}"}
        if method == "POST":
            kind = "application/x-www-form-urlencoded"
            own |= {"Origin": self.state.origin, "Sec-Fetch-Site": "same-origin", "Content-Type": kind}
            own["Content-Length"] = str(len(body))
        given = {name.lower() for name, _ in headers} | {name.lower() for name in without}
        connection = http.client.HTTPConnection("127.0.0.1", self.state.port, timeout=30)
        try:
            connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            for name, value in [*((n, v) for n, v in own.items() if n.lower() not in given), *headers]:
                connection.putheader(name, value)
            connection.endheaders(body or None)
            found = connection.getresponse()
            return Answer(found.status, {n.lower(): v for n, v in found.getheaders()}, found.read())
        finally:
            connection.close()

    def get(self, path: str, **query: str) -> Answer:
        return self.ask("GET", path + (f"?{urlencode(query)}" if query else ""))

    def post(self, path: str, *, csrf: str | None = None, **form: str) -> Answer:
        form = {"csrf": self.csrf if csrf is None else csrf, **form}
        return self.ask("POST", path, urlencode(form).encode())

    @property
    def csrf(self) -> str:
        found = re.search(r'name="csrf" value="([0-9a-f]+)"', self.get("/erase").text)
        assert found
        return found[1]

    def enter(self) -> str:
        """Lets this browser in by a new token; its cookie."""
        answer = self.ask("GET", f"/enter?token={quote(place.mint(self.home))}", without=["Cookie"])
        assert answer.status == 200, answer.text
        self.cookie = answer.headers["set-cookie"].partition("=")[2].partition(";")[0]
        return self.cookie


@contextmanager
def page(where: Place | Path, idle: float = 60.0, **environ: str) -> Iterator[Browser]:
    """The page of that home, with a browser that was let in."""
    home = where if isinstance(where, Path) else where.home
    if not isinstance(where, Path) and where.url:
        environ |= {"RECOLLECT_DATABASE": where.url}
    browser = Browser(home, idle, **environ)
    try:
        browser.enter()
        yield browser
    finally:
        browser.stop()


def eventually(condition: object, seconds: float = 10.0) -> bool:
    """Does it come true in time?"""
    assert callable(condition)
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True
