"""Writes that an answer does not wait for: in order, by one thread, and never more of them than fit.

The database has one writer at a time, and an import holds it often. What a session was given is written after it has
its answer; the next answer to the same session waits a moment for it.
"""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable
from contextlib import suppress

from recollect.errors import RecollectError

log = logging.getLogger(__name__)

_MOST = 256
_PATIENCE = 0.3  # seconds


class Keeper:
    def __init__(self) -> None:
        self._waiting: queue.Queue[tuple[str, Callable[[], object]] | None] = queue.Queue(_MOST)
        self._sessions: dict[str, int] = {}  # writes that are not done yet
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._work, name="keeper", daemon=True)
        self._thread.start()

    def later(self, session: str, write: Callable[[], object]) -> None:
        with self._changed:
            self._sessions[session] = self._sessions.get(session, 0) + 1
        try:
            self._waiting.put_nowait((session, write))
        except queue.Full:  # then it may be given once more
            self._done(session)
            log.warning("too many writes wait; one was left out")

    def settle(self, session: str) -> None:
        """Waits for what this session was given before, if that is soon."""
        with self._changed:
            self._changed.wait_for(lambda: session not in self._sessions, _PATIENCE)

    def close(self) -> None:
        """Waits for what is left, if that is soon."""
        with suppress(queue.Full):
            self._waiting.put(None, timeout=_PATIENCE)
        self._thread.join(2.0)

    def _work(self) -> None:
        while (waiting := self._waiting.get()) is not None:
            session, write = waiting
            try:
                write()
            except RecollectError as error:
                log.warning("%s", error)
            except Exception:  # reason: the next write may be another matter; the log tells of this one
                log.exception("what a session was given could not be kept")
            finally:
                self._done(session)

    def _done(self, session: str) -> None:
        with self._changed:
            self._sessions[session] -= 1
            if not self._sessions[session]:
                del self._sessions[session]
            self._changed.notify_all()
