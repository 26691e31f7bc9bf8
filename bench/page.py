"""`python -m bench page`: how long the page takes with 1,000 memories and with 10,000, in one run.

Its own process is asked over loopback, one request after the other. Each number is the median; lists, a
keystroke's answer and one memory may take at most twice as long with ten times as many.
"""

from __future__ import annotations

import gzip
import http.client
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

from recollect.app import Memory, open_memory
from recollect.store import conversations, entries, memories
from recollect.store.entries import FileKey
from recollect.surfaces.http import place
from recollect.types import (
    Conversation,
    ConversationStatus,
    Entry,
    MemoryKind,
    Remembered,
    Role,
    Scope,
    Severity,
    Timestamp,
    Trust,
    timestamp,
)

SIZES = (1_000, 10_000)
TIMES = 9
FLOOR = 2.0  # times as long with ten times as many
JUDGED = ("list, ms", "list of a project, ms", "a keystroke, ms", "one memory, ms")
WIRE = 60_000  # bytes of the first view
ROOM = 200  # MB
_WORDS = (
    "deploy staging database port token cache release branch migration index worker queue review test lint tide pond"
    " heron invoice cents parser schema socket daemon session memory project agent prompt budget lease retry timeout"
).split()


def run() -> int:
    """Prints a line per view, and what is above its floor."""
    print(f"{'':24}" + "".join(f"{size:>12,}" for size in SIZES) + f"{'times':>8}")
    found = [_measured(size) for size in SIZES]
    missed = []
    for name in found[0]:
        few, many = (each[name] for each in found)
        print(f"{name:24}{few:12.1f}{many:12.1f}{many / few:8.2f}")
        if name in JUDGED and many > FLOOR * few:
            missed.append(name)
    missed += ["bytes"] if found[-1]["first view, bytes"] > WIRE else []
    missed += ["memory"] if found[-1]["process, MB"] > ROOM else []
    print(f"above the floor: {', '.join(missed) or 'nothing'}")
    return 1 if missed else 0


def fill(memory: Memory, size: int) -> None:
    """Memories of ten projects, with a conversation for every ten and the messages that they came from."""
    chance, owner = random.Random(7), memory.owner
    now = datetime.now(UTC)
    with memory.database.write() as tx:
        for number in range(size // 10):
            began = now - timedelta(minutes=5 * (size // 10 - number))
            first, session = timestamp(began), f"{number:08d}-1111-4111-8111-111111111111"
            key, project = FileKey(owner, "claude-code", f"{session}.jsonl"), f"example.com/ada/p{number % 10}"
            made, said = [], []
            for place_ in range(10):
                text = f"{' '.join(chance.choices(_WORDS, k=12)).capitalize()}, number {number * 10 + place_}."
                at, uuid = timestamp(began + timedelta(seconds=place_)), f"{session[:8]}-{place_}"
                said.append(Entry(uuid, session, Role.USER, text, at, place_ * 500, authors=f"typed:{len(text)}"))
                made.append(_remembered(f"m-{number:08d}{place_:02d}", text, project, at, f"{session}@{first}", uuid))
            last = said[-1].timestamp
            talk = Conversation(
                0, session, f"{session}@{first}", "claude-code", key.source_file, "/code/p", project, "main",
                first, last, 10, ConversationStatus.ARCHIVED, "",
            )  # fmt: skip
            conversations.insert(tx, owner, [talk], first)
            entries.insert(tx, [entries.row(key, 1, each, project, True) for each in said])
            memories.replace_sessions(tx, owner, {talk.session_key: made})
    memory.index()


def _remembered(name: str, text: str, project: str, at: Timestamp, key: str, uuid: str) -> Remembered:
    kind = list(MemoryKind)[len(text) % len(MemoryKind)]
    return Remembered(
        name, 1, kind, text, Severity.NONE, Scope.PROJECT, project, at, at, ((key, uuid),), trust=Trust.SAID
    )


def _measured(size: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory(prefix="recollect-page-") as folder:
        home = Path(folder)
        with open_memory(home, environ={}, embedder="none") as memory:
            fill(memory, size)
        environ = {**os.environ, "RECOLLECT_HOME": folder, "RECOLLECT_EMBEDDER": "none"}
        process = subprocess.Popen([sys.executable, "-P", "-m", "recollect.surfaces.http.serve"], env=environ)
        try:
            while place.running(home) is None:
                time.sleep(0.02)
            return _asked(home, process.pid)
        finally:
            process.terminate()
            process.wait()


def _asked(home: Path, pid: int) -> dict[str, float]:
    state = place.load(home)
    connection = http.client.HTTPConnection("127.0.0.1", state.port)

    def get(path: str, cookie: str = "", **more: str) -> http.client.HTTPResponse:
        connection.request("GET", path, headers={"Host": state.host, "Cookie": f"recollect_page={cookie}", **more})
        return connection.getresponse()

    entered = get(f"/enter?token={place.mint(home)}")
    entered.read()
    cookie = (entered.getheader("set-cookie") or "").partition("=")[2].partition(";")[0]

    def took(path: str, **more: str) -> float:
        times = []
        for _ in range(TIMES):
            began = time.perf_counter()
            answer = get(path, cookie, **more)
            answer.read()
            assert answer.status == 200, (path, answer.status)
            times.append(1000 * (time.perf_counter() - began))
        return statistics.median(times)

    first = get("/memories", cookie).read()
    wire = len(first)
    for path in set(re.findall(r'(?:src|href)="(/static/[^"]+)"', first.decode())):
        wire += len(gzip.compress(get(path, cookie).read()))
    one = re.findall(r'href="(/m/[^"]+)"', first.decode())[0]
    found = {
        "list, ms": took("/memories"),
        "list of a project, ms": took("/memories?project=example.com%2Fada%2Fp3"),
        "a keystroke, ms": took("/memories?q=hero", **{"HX-Request": "true"}),
        "a query, ms": took("/memories?q=staging+database+port", **{"HX-Request": "true"}),
        "one memory, ms": took(one),
        "inbox, ms": took("/inbox"),
        "today, ms": took("/"),
        "sessions, ms": took("/sessions"),
        "first view, bytes": float(wire),
    }
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    peak = re.search(r"VmHWM:\s+(\d+)", status)
    found["process, MB"] = int(peak[1]) / 1024 if peak else 0.0
    return found
