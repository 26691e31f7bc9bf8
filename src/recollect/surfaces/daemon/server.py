"""Answers on the socket: a few threads, a short line of those who wait, and `busy` for whoever comes beyond it.

Nothing is queued without bound: a request is read within a time and a size, one that waited so long that nobody can
still be there is dropped, and a client that does not take its answer is left.
"""

from __future__ import annotations

import logging
import queue
import selectors
import socket
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from hmac import compare_digest

from recollect.surfaces.hooks.client import LONGEST

log = logging.getLogger(__name__)

THREADS = 3
WAITING = 32  # connections beyond those that are being answered
_SECONDS = 1.0  # to send a request, and to take the answer
_LATE = 2.0  # nobody waits so long
_HEAD = 20_000

Answer = Callable[[Sequence[str], bytes], bytes]  # (fields, event) → what to print


class Server:
    def __init__(self, listener: socket.socket, token: str, answer: Answer) -> None:
        self._listener = listener
        self._token = token
        self._answer = answer
        self._waiting: queue.Queue[tuple[socket.socket, float] | None] = queue.Queue(WAITING)
        self._woken, self._wake = socket.socketpair()
        self._threads = [threading.Thread(target=self._accept, name="accept", daemon=True)]
        self._threads += [threading.Thread(target=self._work, name="answer", daemon=True) for _ in range(THREADS)]
        self.turned_away = 0  # for `status`

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Nobody new; those who wait are answered."""
        self._wake.send(b"x")
        for _ in range(THREADS):
            with suppress(queue.Full):
                self._waiting.put(None, timeout=_SECONDS)
        for thread in self._threads:
            thread.join(2 * _SECONDS)
        for each in (self._listener, self._woken, self._wake):
            each.close()

    def _accept(self) -> None:
        self._listener.setblocking(False)
        with selectors.DefaultSelector() as selector:
            selector.register(self._listener, selectors.EVENT_READ)
            selector.register(self._woken, selectors.EVENT_READ)
            while True:
                if any(key.fileobj is self._woken for key, _ in selector.select()):
                    return
                with suppress(OSError):  # it went away again, or there are no descriptors left for the moment
                    self._take(self._listener.accept()[0])

    def _take(self, connection: socket.socket) -> None:
        connection.settimeout(_SECONDS)
        try:
            self._waiting.put_nowait((connection, time.monotonic()))
        except queue.Full:
            self.turned_away += 1
            with connection:
                connection.send(b"busy\n")

    def _work(self) -> None:
        while (waiting := self._waiting.get()) is not None:
            connection, since = waiting
            with connection:
                if time.monotonic() - since > _LATE:
                    continue
                try:
                    self._serve(connection)
                except OSError as error:  # the client's trouble
                    log.debug("a client left: %s", error)
                except Exception:  # reason: one request must not end the daemon: the client reads it as a failure
                    log.exception("a request failed")

    def _serve(self, connection: socket.socket) -> None:
        head, _, payload = _received(connection).partition(b"\n")
        kind, _, rest = head.decode("utf-8", "surrogateescape").partition("\t")
        token, *fields = rest.split("\t")
        if self._token and not compare_digest(token.encode("utf-8", "replace"), self._token.encode()):
            return
        printed = self._answer([kind, *fields], payload)
        connection.sendall(b"ok\n" + (printed + b"\n" if printed else b""))


def _received(connection: socket.socket) -> bytes:
    data, deadline = bytearray(), time.monotonic() + _SECONDS
    while part := connection.recv(65536):
        data += part
        if len(data) > LONGEST + _HEAD:
            raise OSError("a request that is too long")
        connection.settimeout(max(0.001, deadline - time.monotonic()))
    return bytes(data)
