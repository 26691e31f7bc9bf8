"""Whose a home is. What lies in a home is trusted: settings, sockets, files to write to. So nobody else may be able to
put anything there.

A home belongs to the user who runs recollect, and others cannot write to it. One that is open by mistake is closed, as
long as all in it is ours; anything else is an error. Folders above it are not judged: who owns those can take the home
away, but whatever takes its place has another owner.
"""

from __future__ import annotations

import errno
import os
import stat
from fnmatch import fnmatch
from pathlib import Path

from recollect.errors import RecollectError

OWN_NAMES = (
    "config.toml",
    "hook",
    "recollect.db*",
    "daemon.*",
    "mcp.token",
    "MEMORY.md*",
    "memory",
    "workspace*",
    "agents",
    "tenants",
    "context",
    "spool",
    "paused",
    "turns",
    "models",
    "logs",
    "page",
    "index",
    "agent-cli",
    ".recollect*",
)  # what lies in a home

_FOR_OTHERS = stat.S_IWGRP | stat.S_IWOTH


class UnsafeHome(RecollectError):
    """Somebody else could have put files there."""


def strangers(home: Path) -> list[str]:
    """Return the names in a home that recollect does not make."""
    return sorted(each.name for each in home.iterdir() if not any(fnmatch(each.name, name) for name in OWN_NAMES))


def require_own(home: Path) -> None:
    """Raise UnsafeHome unless the home is this user's alone. One that does not exist yet is."""
    for place in (home, *home.parents):
        if place.is_symlink() and place.lstat().st_uid not in (0, os.geteuid()):
            raise UnsafeHome(f"{place} is a link that {_owner(place.lstat())} made", hint=_ELSEWHERE)
    try:
        found = home.stat()
    except OSError:  # whoever needs it says so
        return
    if found.st_uid != os.geteuid():
        raise UnsafeHome(f"{home} belongs to {_owner(found)}, not to you", hint=_ELSEWHERE)
    if stat.S_ISDIR(found.st_mode) and found.st_mode & _FOR_OTHERS:
        _close(home, stat.S_IMODE(found.st_mode))


def _close(home: Path, mode: int) -> None:
    """Take a home away from others."""
    import logging

    for each in sorted(home.iterdir()):
        if each.lstat().st_uid != os.geteuid():
            hint = f"Look at it and remove it, then run `chmod 700 {home}`."
            raise UnsafeHome(
                f"others can write to {home}, and {_owner(each.lstat())} put {each.name!r} there", hint=hint
            )
    if strange := strangers(home):
        hint = f"Run `chmod go-w {home}`, or set RECOLLECT_HOME to a folder that holds nothing else."
        raise UnsafeHome(f"others can write to {home}, which also holds {', '.join(strange[:5])}", hint=hint)
    home.chmod(0o700)
    if home.stat().st_mode & _FOR_OTHERS:
        raise UnsafeHome(f"others can write to {home}: its file system keeps no permissions", hint=_ELSEWHERE)
    logging.getLogger(__name__).warning("others could write to %s (mode %o); it is yours alone now", home, mode)


def open_own(path: Path, flags: int) -> int:
    """Open a file of ours, or make it: no link is followed, and no file of somebody else's is touched."""
    try:
        descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
    except OSError as error:
        if error.errno not in (errno.ELOOP, errno.EMLINK, errno.ENXIO):
            raise
        raise UnsafeHome(f"{path} is a link or a device, not a file", hint=_REMOVE) from None
    found = os.fstat(descriptor)
    if stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid() and found.st_nlink <= 1:
        return descriptor
    os.close(descriptor)
    raise UnsafeHome(f"{path} is not a file that recollect made", hint=_REMOVE)


def require_folder(path: Path) -> None:
    """Raise UnsafeHome unless this is a folder of ours and no link to one."""
    found = path.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        raise UnsafeHome(f"{path} is not a folder that recollect made", hint=_REMOVE)


def _owner(found: os.stat_result) -> str:
    import pwd

    try:
        return pwd.getpwuid(found.st_uid).pw_name
    except KeyError:
        return f"user {found.st_uid}"


_ELSEWHERE = "Set RECOLLECT_HOME to a folder of your own."
_REMOVE = "Look at it, remove it, and try again."
