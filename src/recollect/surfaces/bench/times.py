"""How long calls take: by the clock, which is what a user waits, and of the processor, whoever else was using it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import TypeVar

import numpy as np

_Asked = TypeVar("_Asked")
_Given = TypeVar("_Given")


def timed(
    call: Callable[[_Asked], _Given], questions: Iterable[_Asked]
) -> tuple[list[_Given], list[float], list[float]]:
    """What each call gave, its seconds, and those of the processor."""
    given, wall, cpu = [], [], []
    for each in questions:
        started, worked = time.perf_counter(), time.process_time()
        given.append(call(each))
        wall.append(time.perf_counter() - started)
        cpu.append(time.process_time() - worked)
    return given, wall, cpu


def latency(name: str, wall: list[float], cpu: list[float]) -> dict[str, float]:
    result = {f"{name}_p{share}_ms": _ms(wall, share) for share in (50, 95, 99)}
    return result | {f"{name}_p95_cpu_ms": _ms(cpu, 95)}


def _ms(seconds: list[float], share: int) -> float:
    return round(float(np.percentile(seconds, share)) * 1000, 1)
