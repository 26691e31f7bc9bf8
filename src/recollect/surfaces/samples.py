"""A few short sessions to try recollect with, written as the agents would have, dated relative to now."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from recollect.types import timestamp

Turn = tuple[str, str]  # (role, text); role "run" is a shell command of the assistant

_CLAUDE: Sequence[Turn] = (
    (
        "user",
        "The checkout tests are flaky again. Please find out why, and always run them with `pytest -x` here.",
    ),
    ("run", "pytest -x tests/checkout"),
    (
        "assistant",
        "test_refund fails about one time in five: it compares timestamps taken before and after the call.",
    ),
    ("user", "No, don't add a sleep. Freeze the clock instead."),
    ("run", "pytest -x tests/checkout"),
    ("assistant", "Done: the clock is passed into `Checkout`, tests use a fixed one. 50 runs, no failure."),
)
_CODEX: Sequence[Turn] = (
    (
        "user",
        "We decided to use PostgreSQL instead of MySQL for the new billing service. Set up the migrations.",
    ),
    ("run", "alembic init migrations"),
    (
        "assistant",
        "Migrations are set up against PostgreSQL 16. The first one creates `invoices` and `payments`.",
    ),
    ("user", "Amounts must be integers in cents, never floats."),
    ("assistant", "Changed: `amount_cents BIGINT NOT NULL` in both tables."),
)
_PI: Sequence[Turn] = (
    ("user", "How do I deploy the docs?"),
    ("run", "make -C docs publish"),
    ("assistant", "`make -C docs publish` builds and uploads them. It needs DOCS_HOST in the environment."),
    ("user", "Thanks. Remember: never deploy docs on a Friday."),
    ("assistant", "Understood."),
)


def write_samples(folder: Path, now: datetime) -> list[Path]:
    """One session per agent, in the folders that the agents would use."""
    sessions = (
        ("claude-code/-home-you-shop", _claude, _CLAUDE, timedelta(days=3)),
        ("codex", _codex, _CODEX, timedelta(days=2)),
        ("pi/--home-you-docs--", _pi, _PI, timedelta(days=1)),
    )
    written = []
    for place, build, turns, ago in sessions:
        session = str(uuid5(NAMESPACE_URL, f"recollect-sample-{place}"))
        stamps = [timestamp(now - ago + timedelta(seconds=40 * number)) for number in range(len(turns) + 1)]
        path = (
            folder
            / place
            / (
                f"rollout-{stamps[0][:19].replace(':', '-')}-{session}.jsonl"
                if place == "codex"
                else f"{session}.jsonl"
            )
        )
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = build(session, turns, stamps)
        path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
        written.append(path)
    return written


def _claude(session: str, turns: Sequence[Turn], stamps: Sequence[str]) -> list[dict[str, Any]]:
    lines = []
    for number, ((role, text), stamp) in enumerate(zip(turns, stamps, strict=False)):
        content: Any = [{"type": "text", "text": text}]
        if role == "run":
            content = [{"type": "tool_use", "id": f"toolu_{number}", "name": "Bash", "input": {"command": text}}]
        kind = "user" if role == "user" else "assistant"
        record = {
            "type": kind,
            "uuid": str(uuid5(NAMESPACE_URL, f"{session}-{number}")),
            "sessionId": session,
        }
        record |= {"timestamp": stamp, "cwd": "/home/you/shop", "gitBranch": "main"}
        lines.append({**record, "message": {"role": kind, "content": content}})
    return lines


def _codex(session: str, turns: Sequence[Turn], stamps: Sequence[str]) -> list[dict[str, Any]]:
    git = {"branch": "main", "repository_url": "https://example.com/you/billing.git"}
    meta = {"id": session, "timestamp": stamps[0], "cwd": "/home/you/billing", "source": "cli", "git": git}
    lines: list[dict[str, Any]] = [{"timestamp": stamps[0], "type": "session_meta", "payload": meta}]
    for number, ((role, text), stamp) in enumerate(zip(turns, stamps, strict=False)):
        kind = "input_text" if role == "user" else "output_text"
        payload: dict[str, Any] = {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}
        if role == "run":
            payload = {"type": "function_call", "name": "shell", "call_id": f"call_{number}"}
            payload["arguments"] = json.dumps({"command": ["bash", "-lc", text]})
        lines.append({"timestamp": stamp, "type": "response_item", "payload": payload})
    return lines


def _pi(session: str, turns: Sequence[Turn], stamps: Sequence[str]) -> list[dict[str, Any]]:
    lines: list[dict[str, Any]] = [
        {"type": "session", "version": 3, "id": session, "timestamp": stamps[0], "cwd": "/home/you/docs"}
    ]
    for number, ((role, text), stamp) in enumerate(zip(turns, stamps, strict=False)):
        content: Any = [{"type": "text", "text": text}]
        if role == "run":
            content = [{"type": "toolCall", "id": f"call_{number}", "name": "bash", "arguments": {"command": text}}]
        parent = f"{number:08x}" if number else None
        message = {"role": "user" if role == "user" else "assistant", "content": content}
        record = {"type": "message", "id": f"{number + 1:08x}", "parentId": parent, "timestamp": stamp}
        lines.append({**record, "message": message})
    return lines
