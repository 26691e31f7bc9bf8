"""Threads that work on items and hand back what came of them, in the order in which they finish.

They are daemons: a process that must end does not wait for a model.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import Generic, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


class Threads(Generic[Item, Result]):
    def __init__(self, number: int, work: Callable[[Item], Result], items: Iterable[Item]) -> None:
        self._work = work
        self._waiting: SimpleQueue[Item] = SimpleQueue()
        self._done: SimpleQueue[tuple[Item, Future[Result]]] = SimpleQueue()
        self.left = 0  # items that were not taken back yet
        for item in items:
            self._waiting.put(item)
            self.left += 1
        self._threads = [threading.Thread(target=self._run, daemon=True) for _ in range(min(number, self.left))]

    def __enter__(self) -> Threads[Item, Result]:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.cancel()
        if error is None:
            for thread in self._threads:
                thread.join()

    def take(self, timeout: float) -> tuple[Item, Future[Result]] | None:
        """One that is done; None when there was none for so long."""
        try:
            taken = self._done.get(timeout=timeout)
        except Empty:
            return None
        self.left -= 1
        return taken

    def cancel(self) -> None:
        """Nothing new is begun."""
        while True:
            try:
                self._waiting.get_nowait()
            except Empty:
                return
            self.left -= 1

    def _run(self) -> None:
        while True:
            try:
                item = self._waiting.get_nowait()
            except Empty:
                return
            future: Future[Result] = Future()
            try:
                future.set_result(self._work(item))
            except BaseException as error:  # reason: whatever it was, the caller's thread decides
                future.set_exception(error)
            self._done.put((item, future))
