"""Who holds a lease, and whether that process can still be alive.

A worker's name tells host, boot, process namespace, process id and start time, so that a lease left by a killed
process on this machine is recognised at once instead of after its time. A worker elsewhere is always taken for alive:
its lease must run out.
"""

from __future__ import annotations

import os
import uuid
from functools import cache
from pathlib import Path

_PROC = Path("/proc")


def this_worker() -> str:
    """Unique per call, so that two threads of one process are two workers."""
    return "|".join((_place(), str(os.getpid()), _start_time(os.getpid()), uuid.uuid4().hex[:8]))


def certainly_dead(worker: str) -> bool:
    """True only if the worker's process was here and is gone."""
    place, _, rest = worker.partition("|")
    parts = rest.split("|")
    if place != _place() or len(parts) != 3 or not parts[0].isdigit():
        return False
    pid, started = int(parts[0]), parts[1]
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return _start_time(pid) != started  # nobody's any more, or given to another process


@cache
def _place() -> str:
    return "/".join((os.uname().nodename, _read(_PROC / "sys/kernel/random/boot_id"), _namespace()))


def _namespace() -> str:
    try:
        return str((_PROC / "self/ns/pid").readlink())
    except OSError:
        return ""


def _start_time(pid: int) -> str:
    """Clock ticks since boot; empty where there is no /proc, and then equal for every process."""
    fields = _read(_PROC / str(pid) / "stat").rpartition(")")[2].split()
    if not fields:
        return ""
    return "dead" if fields[0] in "ZX" else fields[19]  # a killed process stays until its parent has waited for it


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except OSError:
        return ""
