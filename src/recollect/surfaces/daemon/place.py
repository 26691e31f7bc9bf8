"""Where the daemon of a home is found: a lock that dies with it, and a socket that only its owner may use.

The lock file tells four lines: process id, start time, address, agent. Whoever holds the lock is the daemon; what a
dead one left in the file, or its socket, means nothing.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from recollect.home import UnsafeHome, open_own
from recollect.surfaces.hooks import client
from recollect.types import Timestamp

_PATIENCE = 0.5  # seconds: somebody who only looks holds the lock for a moment


@dataclass(frozen=True, slots=True)
class Running:
    """A daemon that is alive."""

    pid: int
    since: Timestamp
    agent: str = ""  # whose memory it serves, where it was told so at its start


class Lock:
    """Held until `release`, or the end of the process."""

    def __init__(self, descriptor: int, path: Path, agent: str = "") -> None:
        self._descriptor = descriptor
        self._path = path
        self.agent = agent

    def tell(self, since: Timestamp, address: str) -> None:
        text = f"{os.getpid()}\n{since}\n{address}\n{self.agent}\n".encode()
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, text, 0)

    def is_valid(self) -> bool:
        """Is it still the file of this home? Not when somebody removed it, or the home."""
        try:
            there, mine = self._path.stat(), os.fstat(self._descriptor)
        except OSError:
            return False
        return (there.st_dev, there.st_ino) == (mine.st_dev, mine.st_ino)

    def release(self) -> None:
        os.ftruncate(self._descriptor, 0)
        os.close(self._descriptor)


def acquire(home: Path, agent: str = "") -> Lock | None:
    """None: there is a daemon already."""
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = home / client.LOCK
    deadline = time.monotonic() + _PATIENCE
    while True:
        descriptor = open_own(path, os.O_RDWR | os.O_CREAT)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(descriptor)
            if time.monotonic() > deadline:
                return None
            time.sleep(0.02)
            continue
        lock = Lock(descriptor, path, agent)
        if lock.is_valid():
            lock.tell(Timestamp(""), "")  # at once: what stands there is another process's
            return lock
        os.close(descriptor)  # removed between the two


def running(home: Path) -> Running | None:
    """The daemon of this home, if one lives."""
    try:
        descriptor = open_own(home / client.LOCK, os.O_RDONLY)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return None
    except OSError:
        told = os.pread(descriptor, 4096, 0).decode("utf-8", "replace").splitlines()
        pid, since, _, agent, *_ = [*told, "", "", "", ""]
        return Running(int(pid) if pid.isdigit() else 0, Timestamp(since), agent)
    finally:
        os.close(descriptor)


def came_up(home: Path, *, refused: bool = False) -> None:
    """Tells hooks whether to start a daemon that they do not find. After one refused they leave it for a while, as long
    as its configuration is the same."""
    with suppress(OSError, UnsafeHome):  # it is there, if a hook ever started one
        descriptor = open_own(home / client.STARTING, os.O_WRONLY)
        with os.fdopen(descriptor, "wb") as file:
            file.truncate(0)
            file.write(client.situation(str(home), os.environ).encode() if refused else b"")


def listen(home: Path, *, unix: bool = hasattr(socket, "AF_UNIX")) -> tuple[socket.socket, str, str]:
    """(socket, address, token). Only by the holder of the lock: a socket that lies there is a dead one's."""
    if not unix:
        listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        token = secrets.token_hex(16)
        return listener, f"tcp:{listener.getsockname()[1]}:{token}", token
    path = home / client.SOCKET
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    with suppress(FileNotFoundError):
        path.unlink()
    before = os.umask(0o177)
    try:
        with _inside(home):  # so that a long path is no obstacle
            listener.bind(client.SOCKET)
    finally:
        os.umask(before)
    listener.listen(128)
    return listener, f"unix:{client.SOCKET}", ""


@contextmanager
def _inside(folder: Path) -> Iterator[None]:
    before = os.open(".", os.O_RDONLY)
    try:
        os.chdir(folder)
        yield
    finally:
        os.fchdir(before)
        os.close(before)
