"""`recollect bench turns`: what a chat pays for its memory, beside an fsynced append and a commit from the same run.

A conversation of 1,000 turns among 100,000 turns of 1,000 users. The rows are made by the same step as always, the
measured turns go the whole way: preload and view, then persist. Targets on SQLite: preload plus view p95 under 10 ms,
persist p95 under 5 ms.
"""

from __future__ import annotations

import os
import random
import statistics
import tempfile
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec

from recollect.app import Memory, open_memory
from recollect.ingest.sources.recollect import TYPE, Turn
from recollect.store import turns as rows
from recollect.surfaces.bench.times import timed
from recollect.surfaces.bench.transcripts import prose
from recollect.turns.log import VERSION, TurnLog
from recollect.turns.rows import artifacts, keep_for
from recollect.turns.values import Fingerprint, assertion, exception, fact, signal
from recollect.types import timestamp, utc_now

_PROJECT, _USER, _CONVERSATION = "shop", "user-0", "long"
_SPEC = {"plus_plan": "the Plus plan", "newsletter": "the newsletter"}
_BATCH = 2_000


def run(turns: int, users: int, own: int, measured: int, database: str) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="recollect-bench-") as name:
        home = Path(name) / "home"
        with open_memory(home, environ={"HOME": name}, database=database, embedder="none") as memory:
            started = time.perf_counter()
            _fill(memory, turns, users, own)
            filled = time.perf_counter() - started
            result = _measure(memory, measured)
            result |= _floors(memory, measured)
    sizes = {"turns": turns, "users": users, "turns_of_the_conversation": own, "measured": measured}
    return sizes | {"fill_seconds": round(filled, 1)} | result


def _measure(memory: Memory, number: int) -> dict[str, Any]:
    chance = random.Random(3)
    scope = memory.turns(project=_PROJECT, user=_USER, conversation=_CONVERSATION)
    looked, at_work, written, wrote = [], [], [], []
    for each in range(number):
        turn = scope.turn(f"measured-{each}", prose(chance, 30))
        started, worked = time.perf_counter(), time.thread_time()
        turn.preload()
        turn.view("gate")
        looked.append(time.perf_counter() - started)
        at_work.append(time.thread_time() - worked)
        told = _fingerprint(chance)
        turn.update_fingerprint(
            objective=told.objective,
            topics=told.topics,
            assertions=told.assertions,
            exceptions=told.exceptions,
            facts=told.facts,
        )
        answer = prose(chance, 60) + " You could try the Plus plan."
        started, worked = time.perf_counter(), time.thread_time()
        turn.persist(answer, _SPEC)
        written.append(time.perf_counter() - started)
        wrote.append(time.thread_time() - worked)
    seen = _told("preload_and_view", looked) | _told("preload_and_view_cpu", at_work)
    return seen | _told("persist", written) | _told("persist_cpu", wrote)


def _told(name: str, seconds: list[float]) -> dict[str, float]:
    ordered = sorted(seconds)
    return {
        f"{name}_ms": round(statistics.median(ordered) * 1000, 2),
        f"{name}_p95_ms": round(ordered[int(len(ordered) * 0.95)] * 1000, 2),
    }


def _floors(memory: Memory, number: int) -> dict[str, float]:
    """The same bytes appended and synced; one row committed; both in turn: a sync waits for whatever is written."""
    line = b"x" * 2_500 + b"\n"
    with memory.database.write() as tx:
        tx.script("CREATE TABLE bench_floor (id BIGINT, text TEXT)")
    with (memory.settings.home / "floor").open("ab") as file:

        def append(_: int) -> None:
            file.write(line)
            file.flush()
            os.fsync(file.fileno())

        def commit(_: int) -> None:
            with memory.database.write() as tx:
                tx.run("INSERT INTO bench_floor (id, text) VALUES (:id, :text)", {"id": 1, "text": line.decode()})

        def both(each: int) -> None:
            commit(each)
            append(each)

        floors: dict[str, float] = {}
        for name, call in (("append", append), ("commit", commit), ("append_and_commit", both)):
            floors |= _told(f"{name}_floor", timed(call, range(number))[1])
    with memory.database.write() as tx:
        tx.script("DROP TABLE bench_floor")
    return floors


def _fill(memory: Memory, turns: int, users: int, own: int) -> None:
    log = TurnLog(memory.settings.turns)
    path = log.path(_PROJECT, _USER, _CONVERSATION)
    path.parent.mkdir(parents=True, mode=0o700)
    memory.settings.turns.parent.chmod(0o700)
    keep, batch = keep_for(memory.settings), list[rows.Artifact]()
    with path.open("wb") as file:
        for line, is_own in _lines(turns, users, own):
            if is_own:
                file.write(line)
            batch += artifacts(line, "turns/x.jsonl", keep)
            if len(batch) >= _BATCH:
                _save(memory, batch)
                batch = []
    _save(memory, batch)


def _save(memory: Memory, batch: list[rows.Artifact]) -> None:
    with memory.database.write() as tx:
        rows.save(tx, memory.owner, batch)


def _lines(turns: int, users: int, own: int) -> Iterator[tuple[bytes, bool]]:
    chance, now = random.Random(5), utc_now()
    for number in range(turns):
        is_own = number < own
        user = 0 if is_own else number % users
        talk = _CONVERSATION if is_own else f"c{number // users % 10}"
        at = timestamp(now - timedelta(minutes=turns - number))
        turn = Turn(
            id=f"t{number}",
            at=at,
            project=_PROJECT,
            user=f"user-{user}",
            conversation=talk,
            user_text=prose(chance, 30),
            assistant_text=prose(chance, 60),
        )
        told = {"turn_log": {"state": {"fingerprint": _fingerprint(chance).json()}}}
        record = {"type": TYPE, "v": VERSION, **told, **msgspec.to_builtins(turn)}
        yield msgspec.json.encode(record) + b"\n", is_own


def _fingerprint(chance: random.Random) -> Fingerprint:
    key = f"k{chance.randrange(200)}"
    promoted = (signal("plus_plan", "The Plus plan would suit you.", "recommend"),) if chance.random() < 0.2 else ()
    return Fingerprint(
        objective=prose(chance, 10),
        topics=("tides", key),
        assertions=(assertion(key, prose(chance, 8), chance.choice(("must", "prefer", "allow"))),),
        exceptions=(exception(f"x{key}", prose(chance, 8)),) if chance.random() < 0.3 else (),
        facts=(fact(f"f{key}", prose(chance, 8)),),
        assistant_signals=promoted,
    )
