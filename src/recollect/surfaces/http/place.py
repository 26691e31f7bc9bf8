"""Where the page of a home is found: a lock that dies with it, its port and logins, and tokens that open it once.

Everything lies in `page/` under RECOLLECT_HOME, where only its owner reads and writes. A token lies there by its hash,
and whoever removes that file has used it: so of two that come with the same token one is let in.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import time
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import msgspec

from recollect.home import open_own, require_folder

FOLDER = "page"
TOKEN_SECONDS = 60.0
_LOCK, _STATE, _OPEN = "lock", "state.json", "on"
_LOGINS = 20  # that are kept, the newest
_LOGIN_SECONDS = 90 * 86400.0
_SHARED = 4096  # bytes of the lock file


class Login(msgspec.Struct, frozen=True):
    """A browser that may come back: the hash of its cookie, and since when."""

    hash: str
    since: float


class State(msgspec.Struct, frozen=True):
    """What outlives the process, so that an address stays good."""

    port: int = 0
    name: str = ""  # before `.localhost`: no other page of this machine has a cookie for it
    logins: tuple[Login, ...] = ()

    @property
    def host(self) -> str:
        return f"{self.name}.localhost:{self.port}"

    @property
    def origin(self) -> str:
        return f"http://{self.host}"

    def knows(self, cookie: str, now: float) -> bool:
        """Is it the cookie of a login that is still good?"""
        given = hashed(cookie)
        return any(
            secrets.compare_digest(each.hash, given) and now - each.since < _LOGIN_SECONDS for each in self.logins
        )

    def with_login(self, cookie: str, now: float) -> State:
        return msgspec.structs.replace(self, logins=(*self.logins, Login(hashed(cookie), now))[-_LOGINS:])


@dataclass(frozen=True, slots=True)
class Lock:
    """Held by the process of the page until its end."""

    descriptor: int

    def release(self) -> None:
        os.close(self.descriptor)


def hashed(secret: str) -> str:
    return sha256(secret.encode("utf-8", "replace")).hexdigest()


def folder(home: Path) -> Path:
    """The folder of the page's own files; made when it is not there."""
    found = home / FOLDER
    found.mkdir(mode=0o700, parents=True, exist_ok=True)
    require_folder(found)
    return found


def acquire(home: Path) -> Lock | None:
    """None: the page of this home is served already."""
    descriptor = open_own(folder(home) / _LOCK, os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    os.ftruncate(descriptor, 0)
    return Lock(descriptor)


def tell(lock: Lock, state: State) -> None:
    """The page answers from now on: under this process and address."""
    os.pwrite(lock.descriptor, f"{os.getpid()}\n{state.host}\n".encode(), 0)


def running(home: Path) -> tuple[int, str] | None:
    """Process and host of the page that is served; None where none answers yet."""
    try:
        descriptor = open_own(home / FOLDER / _LOCK, os.O_RDONLY)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return None
    except OSError:
        pid, host, *_ = [*os.pread(descriptor, _SHARED, 0).decode("ascii", "replace").splitlines(), "", ""]
        return (int(pid), host) if pid.isdigit() and host else None
    finally:
        os.close(descriptor)


def set_open(home: Path, is_open: bool) -> None:
    """Whether the page is to be there: a process that was killed leaves this behind."""
    if is_open:
        os.close(open_own(folder(home) / _OPEN, os.O_WRONLY | os.O_CREAT))
    else:
        (home / FOLDER / _OPEN).unlink(missing_ok=True)


def was_killed(home: Path) -> bool:
    """Is there no page although nobody ended it?"""
    return (home / FOLDER / _OPEN).is_file() and running(home) is None


def load(home: Path) -> State:
    """What was saved last; a fresh state where nothing readable was."""
    try:
        with os.fdopen(open_own(home / FOLDER / _STATE, os.O_RDONLY), "rb") as file:
            return msgspec.json.decode(file.read(), type=State)
    except (OSError, msgspec.DecodeError):
        return State()


def save(home: Path, state: State) -> None:
    write(home, _STATE, msgspec.json.encode(state))


def write(home: Path, name: str, content: bytes) -> Path:
    """A file of the page's own, whole or not at all."""
    path = folder(home) / name
    draft = path.with_name(f".{secrets.token_hex(8)}.part")
    with os.fdopen(open_own(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
    return path


def fresh_name() -> str:
    return f"r{secrets.token_hex(8)}"


def mint(home: Path) -> str:
    """A token that opens the page once, within a minute."""
    token = secrets.token_urlsafe(32)
    for each in folder(home).glob("token-*"):
        with suppress(OSError):
            if time.time() - each.stat().st_mtime > TOKEN_SECONDS:
                each.unlink()
    os.close(open_own(folder(home) / f"token-{hashed(token)}", os.O_WRONLY | os.O_CREAT | os.O_EXCL))
    return token


def redeem(home: Path, token: str) -> bool:
    """Was it minted within the last minute, and is this its first use?"""
    path = home / FOLDER / f"token-{hashed(token)}"
    try:
        age = time.time() - path.lstat().st_mtime
        path.unlink()
    except OSError:
        return False
    for each in path.parent.glob("open-*.html"):
        with suppress(OSError):
            each.unlink()
    return -TOKEN_SECONDS < age < TOKEN_SECONDS
