"""Lines of transcripts for tests, and what the store holds after them."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from recollect.app import Memory

START = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
SESSION = "11111111-2222-4333-8444-555555555555"


def stamp(seconds: float) -> str:
    return (START + timedelta(seconds=seconds)).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def claude(
    number: int, text: object, *, role: str = "user", session: str = SESSION, at: float | None = None, **more: Any
) -> bytes:
    """One Claude Code record; a minute apart by number unless `at` (seconds) says otherwise."""
    record = {
        "type": role,
        "uuid": f"{session[:8]}-{number:06d}",
        "sessionId": session,
        "timestamp": stamp(number * 60 if at is None else at),
        "cwd": "/code/tides",
        "message": {"role": role, "content": text},
    }
    return json.dumps(record | more).encode() + b"\n"


def talk(first: int, last: int, session: str = SESSION) -> bytes:
    """Messages by turns."""
    roles = ("assistant", "user")
    return b"".join(claude(n, f"message {n}", role=roles[n % 2], session=session) for n in range(first, last + 1))


def write(path: Path, data: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def append(path: Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data)


def entries(memory: Memory) -> list[tuple[Any, ...]]:
    """Everything that makes an entry what it is, but for the row's number."""
    with memory.database.read() as tx:
        return tx.rows(
            "SELECT entry_uuid, session_id, source_file, role, content, tool_names, timestamp, cwd, project_id,"
            " line_offset, withdrawn FROM memory_transcript_entries"
            " WHERE tenant = :tenant AND agent_id = :agent_id ORDER BY source, source_file, timestamp, line_offset",
            {"tenant": memory.owner.tenant, "agent_id": memory.owner.agent_id},
        )


def texts(memory: Memory) -> list[str]:
    return [row[4] for row in entries(memory) if not row[10]]


def conversations(memory: Memory) -> list[tuple[Any, ...]]:
    return sorted(
        (c.source_file, c.session_key, c.last_message_at, c.entry_count, str(c.status), c.project, c.project_id)
        for c in memory.conversations()
    )


def file_states(memory: Memory) -> list[tuple[Any, ...]]:
    with memory.database.read() as tx:
        return tx.rows(
            "SELECT source, file_path, status, last_processed_offset, line_count, malformed_count, generation"
            " FROM memory_file_states WHERE tenant = :tenant AND agent_id = :agent_id ORDER BY source, file_path",
            {"tenant": memory.owner.tenant, "agent_id": memory.owner.agent_id},
        )
