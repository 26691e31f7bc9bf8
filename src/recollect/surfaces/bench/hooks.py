"""`recollect bench hooks`: what a hook costs an agent, and what the daemon costs when nobody needs it.

Every figure is wall-clock time of a whole process, its interpreter's start included; the floor, an interpreter that
does nothing, is measured in the same minute. The home is a temporary one, with a daemon of its own.
"""

from __future__ import annotations

import json
import os
import signal
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from recollect import processes
from recollect.app import open_memory
from recollect.surfaces.bench.home import installed_models
from recollect.surfaces.bench.transcripts import write_tree
from recollect.surfaces.daemon import place
from recollect.surfaces.hooks import client, launcher

_CALLS = 100
_DOWN = 40  # each of them starts a daemon
_NOTES = 40
_PROMPT = "how do we deploy the billing service on Tuesdays?"
_FLOOR = [launcher.own().python, "-I", "-S", "-c", "pass"]


@dataclass(slots=True)
class Stand:
    """A home to measure in."""

    folder: Path
    environ: dict[str, str]
    figures: dict[str, dict[str, Any]] = field(default_factory=dict)

    @property
    def home(self) -> Path:
        return self.folder / "home"

    def call(self, command: Sequence[str], session: str = "s") -> tuple[float, bool]:
        """(milliseconds, did it say something?)"""
        told = {
            "session_id": session,
            "cwd": str(self.folder),
            "prompt": _PROMPT,
            "source": "startup",
            "transcript_path": str(self.folder / ".claude" / "projects" / "-bench" / f"{session}.jsonl"),
        }
        started = time.perf_counter()
        done = processes.run(command, self.environ, input=json.dumps(told).encode(), capture_output=True, timeout=30)
        return (time.perf_counter() - started) * 1000, bool(done.stdout)

    def measure(self, name: str, command: Sequence[str], calls: int = _CALLS) -> None:
        self.keep(name, [self.call(command, session=f"s{len(self.figures)}-{number % 10}") for number in range(calls)])

    def keep(self, name: str, found: Sequence[tuple[float, bool]]) -> None:
        times = sorted(each for each, _ in found)
        self.figures[name] = {
            **{f"p{share}": round(times[min(len(times) - 1, len(times) * share // 100)], 1) for share in (50, 95, 99)},
            "calls": len(times),
            "answered": sum(said for _, said in found),
        }

    def start(self) -> None:
        call = processes.python("recollect", "serve", "--background", "--json")
        processes.run(call, self.environ, capture_output=True, timeout=60).check_returncode()

    def stop(self, how: int = signal.SIGTERM) -> None:
        while (there := place.running(self.home)) is not None:
            if there.pid:  # 0 would be all of us
                with suppress(ProcessLookupError):
                    os.kill(there.pid, how)
            time.sleep(0.02)

    def state(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(client.ask(str(self.home), ["status"], b"", time.monotonic() + 5))
        return found

    def is_idle(self) -> bool:
        state = self.state()
        return not state["doing"] and not state["waiting"]


def _hook(event: str) -> list[str]:
    """As an agent starts it."""
    return ["/bin/sh", "-c", launcher.Call(event, "claude-code").line]


def run(megabytes: int, sessions: int, idle_seconds: float) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="recollect-bench-") as folder:
        stand = Stand(Path(folder), _environ(Path(folder)))
        try:
            _fill(stand)
            _up(stand)
            _down(stand)
            _together(stand, sessions)
            idle = _idle(stand, idle_seconds)
            imported = _busy(stand, megabytes)
        finally:
            time.sleep(1)  # a daemon that a hook just started
            stand.stop()
    return {"latency_ms": stand.figures, "import": imported, "idle": idle}


def _environ(folder: Path) -> dict[str, str]:
    """A user of its own, with the models that are installed."""
    others = ("RECOLLECT_", "CLAUDE_", "CODEX_")
    kept = {k: v for k, v in os.environ.items() if k == "RECOLLECT_EMBEDDER" or not k.startswith(others)}
    home = {"HOME": str(folder), "RECOLLECT_HOME": str(folder / "home"), "RECOLLECT_MODELS_FOLDER": installed_models()}
    return {**kept, **home}


def _fill(stand: Stand) -> None:
    write_tree(stand.folder / ".claude" / "projects", 2)
    with open_memory(stand.home, environ=stand.environ) as memory:
        memory.ingest()
        memory.process(limit=20, now=True)
        for number in range(_NOTES):
            memory.remember(f"The billing service number {number} is deployed on Tuesdays.", project=stand.folder)
        memory.consolidate(now=True)
        memory.embed()
    launcher.install(stand.home, launcher.own())


def _up(stand: Stand) -> None:
    stand.start()
    _wait(stand.is_idle)
    stand.measure("floor: python -I -S -c pass", _FLOOR)
    for event in client.EVENTS:
        stand.measure(f"{event}, daemon up", _hook(event), 60)
    client_alone = [*launcher.own().command, "UserPromptSubmit", "--agent", "claude-code"]
    stand.measure("UserPromptSubmit, daemon up, without the launcher", client_alone, 60)
    script = [str(processes.script("recollect")), "hook", "UserPromptSubmit"]
    if Path(script[0]).exists():
        stand.measure("UserPromptSubmit, daemon up, as `recollect hook`", script, 60)
    stand.measure("floor again", _FLOOR)


def _down(stand: Stand) -> None:
    """Every call finds no daemon, starts one and answers from context/."""
    stand.stop()
    for event in ("SessionStart", "UserPromptSubmit"):
        found = []
        for _ in range(_DOWN):
            found.append(stand.call(_hook(event)))
            _wait(lambda: (stand.home / client.SOCKET).exists() and place.running(stand.home) is not None)
            stand.stop(signal.SIGKILL)
        stand.keep(f"{event}, daemon down", found)


def _together(stand: Stand, sessions: int) -> None:
    """All at once: on few cores their interpreters wait for each other, and so does the floor."""
    stand.start()
    _wait(stand.is_idle)
    with ThreadPoolExecutor(sessions) as pool:
        for name, command in (("floor", _FLOOR), ("UserPromptSubmit", _hook("UserPromptSubmit"))):
            found = list(
                pool.map(
                    lambda number, line=command: stand.call(line, f"at-once-{number % sessions}"), range(4 * sessions)
                )
            )
            stand.keep(f"{name}, {sessions} at once", found)


def _busy(stand: Stand, megabytes: int) -> dict[str, Any]:
    """While the daemon takes in a large history."""
    stand.stop()
    size = write_tree(stand.folder / ".claude" / "projects" / "large", megabytes)
    stand.start()
    started = time.monotonic()
    found: dict[str, list[tuple[float, bool]]] = {"SessionStart": [], "UserPromptSubmit": [], "floor": []}
    _wait(lambda: _is_scanning(stand))
    while _is_scanning(stand):
        for name, calls in found.items():
            command = _FLOOR if name == "floor" else _hook(name)
            calls.append(stand.call(command, f"busy-{name}-{len(calls)}"))
    for name, calls in found.items():
        if calls:
            stand.keep(f"{name}, busy with an import", calls)
    return {"megabytes": megabytes, "bytes": size, "seconds": round(time.monotonic() - started, 1)}


def _is_scanning(stand: Stand) -> bool:
    state = stand.state()
    return "scan" in (*state["doing"], *state["waiting"])


def _idle(stand: Stand, seconds: float) -> dict[str, Any]:
    _wait(stand.is_idle)
    there = place.running(stand.home)
    assert there is not None
    _wait(lambda: len(_family(there.pid)) == 1)
    stand.call(_hook("UserPromptSubmit"))  # with everything loaded that a prompt needs
    before = _cpu(there.pid)
    time.sleep(seconds)
    return {
        "seconds": seconds,
        "cpu_seconds": round(_cpu(there.pid) - before, 3),
        "memory_mb": round(sum(_memory(pid) for pid in _family(there.pid)), 1),
    }


def _family(pid: int) -> list[int]:
    """A process and all below it."""
    found = [pid]
    with suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text(encoding="utf-8").split():
                found += _family(int(child))
    return found


def _cpu(pid: int) -> float:
    ticks = 0
    for each in _family(pid):
        with suppress(OSError):
            ticks += sum(
                int(text)
                for text in Path(f"/proc/{each}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[11:13]
            )
    return ticks / os.sysconf("SC_CLK_TCK")


def _memory(pid: int) -> float:
    """Megabytes that are its own or shared."""
    for line in Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1000
    return 0.0


def _wait(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 600
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError("the daemon did not come to rest")
        time.sleep(0.05)


def rows(result: Mapping[str, Any]) -> list[tuple[object, ...]]:
    return [(name, *figures.values()) for name, figures in result["latency_ms"].items()]
