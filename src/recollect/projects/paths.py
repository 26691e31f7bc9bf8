"""The name of a folder or a session as it may be stored: without secrets, and still different for different ones.

A name without a secret is stored as it is. In one with a secret the secret gives way to a marker, and a hash of the
whole name follows. Switches, and the search for a repository, go by the raw name, which is kept in memory only.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from functools import lru_cache

_HASH = re.compile(r"#[0-9a-f]{12}$")
_ENDS = re.compile(r"(.*?)((?<=.)#[0-9a-f]{12})?(@[0-9a-f]{12})?", re.DOTALL)
_PLAIN = re.compile(r"(?:rollout-|agent-)?[0-9a-fTZ_.-]{0,128}")  # times and UUIDs: no secret is looked for


@lru_cache(maxsize=4096)
def stored(path: str) -> str:
    """The path as it may be stored. What is stored already stays as it is."""
    if _PLAIN.fullmatch(path) or shown(path) != path or (clean := redacted(path)) == path:
        return path
    return f"{clean}#{digest(path)}"


def renamed(name: str, redact: Callable[[str], str]) -> str:
    """A name that is stored already, by newer rules: what the same folder is called when it is seen again. The hash of
    a name that had one stays, as does what tells a project that waits from others."""
    found = _ENDS.fullmatch(name)
    assert found is not None
    before, hashed, waiting = found[1], found[2] or "", found[3] or ""
    clean = before if _PLAIN.fullmatch(before) else _without_secrets(before, redact)
    return name if clean == before else f"{clean}{hashed or '#' + digest(before)}{waiting}"


@lru_cache(maxsize=4096)
def renewed(name: str) -> str:
    """The same by the rules of today: a file keeps the name that it was written with."""
    from recollect.redact import redact

    return renamed(name, redact)


@lru_cache(maxsize=4096)
def redacted(path: str) -> str:
    """The path without secrets."""
    from recollect.redact import redact  # commands that only read do without it

    return _without_secrets(path, redact)


def _without_secrets(path: str, redact: Callable[[str], str]) -> str:
    """Each name by itself first, so that a folder's path begins with that of its parent."""
    return redact("/".join(map(redact, path.split("/"))))


def shown(path: str) -> str:
    """A stored path without its hash: folders below each other are told by it."""
    return _HASH.sub("", path) if is_redacted(path) else path


def is_redacted(path: str) -> bool:
    """Is it a stored name that leads to no file, as its secret is left out?"""
    return "[redacted:" in path


def digest(text: str) -> str:
    """Twelve letters that stand for a text."""
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:12]
