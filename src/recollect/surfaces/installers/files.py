"""The hand of the installers: reads settings, plans, shows, backs up, writes. All is planned before a byte is written.

A file is replaced as a whole or not at all, keeps its mode, and a link stays a link. Before the first byte changes,
what was there is copied beside it, for its owner alone. Somebody who wrote in the meantime is never overwritten.
"""

from __future__ import annotations

import difflib
import json
import os
import secrets
import stat
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from recollect.surfaces.hooks.launcher import direct
from recollect.surfaces.installers.values import Agent, Refused, Texts

_BACKUP = ".recollect-backup"


@dataclass(frozen=True, slots=True)
class Change:
    """What one file was and will be."""

    agent: Agent
    file: Path  # as the agent names it; may be a link
    before: str | None  # None: there is no such file
    after: str | None  # None: it goes


def installing(agents: Iterable[Agent]) -> list[Change]:
    """What it takes to plug in; nothing where all is as it should be."""
    changes = []
    for agent in agents:
        texts = read(agent)
        merged = agent.merged(texts)
        changes += [Change(agent, file, texts[file], text) for file, text in merged.items() if text != texts[file]]
    return changes


def renewing(agent: Agent) -> list[Change]:
    """What it takes so that no hook of ours can block; nothing where a file belongs to another user."""
    texts = read(agent)
    if not any(direct(each.command) for each in agent.entries(texts)):
        return []
    changed = {file: text for file, text in agent.renewed(texts).items() if text != (texts[file] or text)}
    if any(file.stat().st_uid != os.geteuid() for file in changed):  # whoever replaces a file becomes its owner
        return []
    return [Change(agent, file, texts[file], text) for file, text in changed.items()]


def obstacles(agents: Iterable[Agent]) -> list[str]:
    """What in the users' settings keeps our hooks from running."""
    return [f"{agent.title}: {reason}" for agent in agents if (reason := agent.switched_off(read(agent)))]


def uninstalling(agents: Iterable[Agent]) -> list[Change]:
    """What it takes to leave no trace: the bytes of before where nothing else changed, else without our entries."""
    changes = []
    for agent in agents:
        texts = read(agent)
        for file, text in agent.stripped(texts).items():
            if texts[file] is not None and text != texts[file]:
                changes.append(Change(agent, file, texts[file], _restored(agent, file, texts, text)))
    return changes


def diff(change: Change) -> str:
    """As `diff -u` shows it."""
    name = str(change.file)
    before, after = ((text or "").splitlines(keepends=True) for text in (change.before, change.after))
    lines = difflib.unified_diff(
        before,
        after,
        "/dev/null" if change.before is None else name,
        "/dev/null" if change.after is None else name,
    )
    return "".join(line if line.endswith("\n") else line + "\n\\ No newline at end of file\n" for line in lines)


def apply(changes: Sequence[Change], now: datetime) -> list[Path]:
    """Writes them; the backups that were made."""
    backups = [_back_up(change, now) for change in changes if change.before is not None]
    for change in changes:
        if change.after is None:
            _require(change.file, change.before)
            change.file.resolve().unlink()  # a link stays one
        else:
            write(change.file, change.before, change.after)
    return backups


def read(agent: Agent) -> dict[Path, str | None]:
    return {file: _text(file) for file in agent.files}


def _text(file: Path) -> str | None:
    try:
        return file.read_bytes().decode()
    except FileNotFoundError:
        return None
    except UnicodeDecodeError as error:
        raise Refused(f"{file} is not UTF-8") from error


def _back_up(change: Change, now: datetime) -> Path:
    stamp = now.strftime("%Y%m%dT%H%M%S")
    for number in range(1000):
        copy = change.file.with_name(f"{change.file.name}.{stamp}{f'-{number}' if number else ''}{_BACKUP}")
        with suppress(FileExistsError):
            _create(copy, change.before or "")
            return copy
    raise Refused(f"{change.file}: there are too many backups of this second")


def copies(file: Path) -> list[Path]:
    """What was backed up of it, oldest first."""
    return sorted(file.parent.glob(f"{file.name}.*{_BACKUP}"))


def _originals(agent: Agent, file: Path, texts: Texts) -> Iterator[str]:
    """What was backed up of it and has nothing of ours in it, newest first."""
    for copy in reversed(copies(file)):
        with suppress(OSError, UnicodeDecodeError, Refused):
            backup = copy.read_bytes().decode()
            if not backup.strip() or agent.stripped({**texts, file: backup})[file] == backup:
                yield backup


def _restored(agent: Agent, file: Path, texts: Texts, bare: str) -> str | None:
    """What the file was before us, if a backup tells. A file without one is made by us: it goes when it is empty."""
    existed = False
    for backup in _originals(agent, file, texts):
        existed = True
        again = agent.merged({**texts, file: backup}).get(file)
        if again == texts[file] or _says_the_same(backup, bare):
            return backup
    return bare if existed or bare.strip().strip("{}").strip() else None


def _says_the_same(one: str, other: str) -> bool:
    """But for white space between words."""
    if one.split() != other.split():
        return False
    for parse in (json.loads, tomllib.loads):
        with suppress(ValueError):
            return bool(parse(one) == parse(other))
    return False


def write(named: Path, before: str | None, after: str) -> None:
    """Replaces a file that still says what it said before."""
    file = named.resolve()  # a link stays one
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    mode = stat.S_IMODE(file.stat().st_mode) if file.exists() else 0o600
    temporary = file.with_name(f".{file.name}.{secrets.token_hex(4)}.tmp")
    try:
        _create(temporary, after)
        temporary.chmod(mode)
        _require(named, before)
        temporary.replace(file)
    finally:
        temporary.unlink(missing_ok=True)


def _require(file: Path, before: str | None) -> None:
    """It still says what it said when all was planned: a question may have stood open since."""
    if _text(file) != before:
        raise Refused(f"{file} was changed by somebody else just now", hint="Run it again.")


def _create(file: Path, text: str) -> None:
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as out:
        out.write(text.encode())
        out.flush()
        os.fsync(out.fileno())
