"""Made transcripts, true to life in what matters for speed: kinds of lines, their sizes, the share that is kept.

Measured on real Claude Code trees: most lines are progress records and tool results, few are messages, and most bytes
are tool output. The same on every call.
"""

from __future__ import annotations

import json
import random
import re
import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

_WORDS = (
    "the a to of and in is that for with this on it as we can be by not from are have use file test error function "
    "module config value return list data state user session message parser offset commit branch request response "
    "database index query cache token retry timeout worker queue lease schema column migration path folder line byte "
    "build deploy staging release version package import export class method argument default option flag command "
    "should would could because therefore after before while when where which also only again already never always"
).split()
_START = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)


def prose(chance: random.Random, words: int) -> str:
    return " ".join(chance.choices(_WORDS, k=words)).capitalize() + "."


def _identity(chance: random.Random) -> str:
    return str(uuid.UUID(int=chance.getrandbits(128), version=4))


class _Session:
    """Records of one Claude Code session, each linked to the one before."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._session = _identity(chance)
        self._cwd = f"/home/dev/code/{chance.choice(('api', 'web', 'cli', 'infra'))}"
        self.at = _START + timedelta(seconds=chance.randrange(200 * 86400))
        self.last: str | None = None

    def record(self, kind: str, **more: Any) -> dict[str, Any]:
        self.at += timedelta(milliseconds=self._chance.randrange(200, 40_000))
        stamp = self.at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        made = {"parentUuid": self.last, "isSidechain": False, "userType": "external", "cwd": self._cwd}
        made |= {"sessionId": self._session, "version": "2.1.90", "gitBranch": "main", "type": kind, **more}
        self.last = _identity(self._chance)
        return {**made, "uuid": self.last, "timestamp": stamp}

    def message(self, role: str, content: Any, **more: Any) -> dict[str, Any]:
        message = {
            "id": "msg_" + _identity(self._chance)[:24],
            "role": role,
            "model": "m",
            "usage": {"input_tokens": 9},
        }
        return self.record(role, message={**message, "content": content}, **more)


def claude_session(chance: random.Random, turns: int) -> Iterator[dict[str, Any]]:
    """A session of user turns, each with a few tool calls and their output."""
    session = _Session(chance)
    for _ in range(turns):
        if chance.random() < 0.1:
            session.at += timedelta(hours=chance.randrange(2, 20))
        yield session.message("user", prose(chance, chance.randrange(5, 60)))
        yield {"type": "file-history-snapshot", "messageId": session.last, "snapshot": {"trackedFileBackups": {}}}
        for _ in range(chance.randrange(1, 7)):
            yield from _tool_use(session, chance)
        text = "\n\n".join(prose(chance, chance.randrange(20, 120)) for _ in range(chance.randrange(1, 4)))
        yield session.message("assistant", [{"type": "text", "text": text}])


def _tool_use(session: _Session, chance: random.Random) -> Iterator[dict[str, Any]]:
    """One assistant message on one or two lines, progress, and the result as a user record."""
    name, given, output = _tool(chance)
    use = {"type": "tool_use", "id": "toolu_" + _identity(chance)[:22], "name": name, "input": given}
    first = session.message("assistant", [use])
    if chance.random() < 0.5:
        text = [{"type": "text", "text": prose(chance, chance.randrange(8, 80))}]
        said = session.record("assistant", message={**first["message"], "content": text})
        yield {**said, "uuid": _identity(chance)}
    yield first
    for _ in range(chance.randrange(0, 4)):
        progress = {"type": "bash_progress", "output": output[:400], "elapsed": 3}
        yield session.record("progress", data=progress, toolUseID=use["id"])
    result = {"type": "tool_result", "tool_use_id": use["id"], "content": output, "is_error": chance.random() < 0.06}
    yield session.message("user", [result], toolUseResult={"stdout": output, "stderr": "", "interrupted": False})


def _tool(chance: random.Random) -> tuple[str, dict[str, Any], str]:
    kind = chance.random()
    path = f"src/{chance.choice(_WORDS)}/{chance.choice(_WORDS)}.py"
    if kind < 0.45:
        return (
            "Bash",
            {"command": f"pytest {path} -q", "description": "Run tests"},
            prose(chance, chance.randrange(5, 400)),
        )
    if kind < 0.8:
        code = "\n".join(f"{n}\t    {prose(chance, 8)}" for n in range(chance.randrange(20, 300)))
        return "Read", {"file_path": path}, code
    old, new = prose(chance, 40), prose(chance, 45)
    return (
        "Edit",
        {"file_path": path, "old_string": old, "new_string": new},
        "The file has been updated. " + new,
    )


def write_tree(folder: Path, megabytes: float) -> int:
    """Claude Code sessions in project folders; returns the bytes written."""
    chance, written, number = random.Random(1), 0, 0
    while written < megabytes * 1e6:
        project = folder / f"-home-dev-work-{number % 7}"
        project.mkdir(parents=True, exist_ok=True)
        records = list(claude_session(chance, chance.randrange(2, 40)))
        data = "".join(json.dumps(each, separators=(",", ":")) + "\n" for each in records).encode()
        (project / f"{records[0]['sessionId']}.jsonl").write_bytes(data)
        written += len(data)
        number += 1
    return written


def copy_samples(samples: Path, folder: Path, megabytes: float) -> int:
    """Real transcripts copied under new ids until the size is reached; returns the bytes written."""
    originals = [(path.relative_to(samples), path.read_bytes()) for path in sorted(samples.rglob("*.jsonl"))]
    replacers = [(key, data, _ids(data)) for key, data in originals]
    written, number = 0, 0
    while written < megabytes * 1e6:
        for key, data, pattern in replacers:
            mark = f"{number:06x}".encode()
            copy = pattern.sub(_marked(mark), data) if pattern else data
            stem = pattern.sub(_marked(mark), key.stem.encode()).decode() if pattern else key.stem
            target = folder / f"copy-{number}" / key.parent / f"{stem}.jsonl"
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(copy)
            written += len(copy)
        number += 1
    return written


def _marked(mark: bytes) -> Callable[[re.Match[bytes]], bytes]:
    return lambda match: match[0][:-6] + mark


def _ids(data: bytes) -> re.Pattern[bytes] | None:
    """Every id by which records know themselves, each other or their session."""
    found: set[bytes] = set()
    for line in data.splitlines():
        try:
            record = json.loads(line)
        except ValueError:
            continue
        if not isinstance(record, dict):
            continue
        inner = record.get("payload") if isinstance(record.get("payload"), dict) else {}
        for value in (record.get("uuid"), record.get("sessionId"), record.get("id"), (inner or {}).get("id")):
            if isinstance(value, str) and len(value) >= 6:
                found.add(value.encode())
    if not found:
        return None
    return re.compile(b"|".join(re.escape(each) for each in sorted(found, key=len, reverse=True)))
