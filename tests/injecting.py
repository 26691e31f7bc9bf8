"""What the tests of injection share: memories put into a real store, and messages in every format."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from pydantic_ai.messages import (
    ModelRequest,
    ModelResponse,
    TextContent,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from recollect.app import Memory
from recollect.blocks import PREFIX
from recollect.store import memories
from recollect.types import MemoryKind, Remembered, Scope, Severity, Timestamp

PROJECT = "example.com/ada/api"
FORMS = ("openai", "responses", "anthropic", "pydantic-ai")
REF = re.compile(r"\((\d{4}-\d\d-\d\d), (m-[0-9A-Za-z-]+) r(\d+)\)$")


def day(number: int) -> Timestamp:
    return Timestamp(f"2026-02-{number:02d}T09:00:00.000Z")


def a_memory(name: str, text: str, **changes: Any) -> Remembered:
    """A fact of the project; its id is the name."""
    made = Remembered(
        id=f"m-{name}",
        revision=1,
        kind=MemoryKind.FACT,
        text=text,
        severity=Severity.NONE,
        scope=Scope.PROJECT,
        scope_id=PROJECT,
        created_at=day(1),
        valid_from=day(1),
    )
    return replace(made, **changes)


def put(memory: Memory, *made: Remembered) -> None:
    """As a conversation of their own each would have stated them; another revision of one is one more."""
    stated = {
        f"s-{each.id}-{each.revision}@1": [replace(each, sources=((f"s-{each.id}-{each.revision}@1", "e"),))]
        for each in made
    }
    with memory.database.write() as tx:
        memories.replace_sessions(tx, memory.owner, stated)


def drop(memory: Memory, *gone: Remembered) -> None:
    with memory.database.write() as tx:
        memories.replace_sessions(tx, memory.owner, {f"s-{each.id}-{each.revision}@1": () for each in gone})


def user(form: str, text: str) -> Any:
    if form == "pydantic-ai":
        return ModelRequest(parts=[UserPromptPart(text)])
    if form == "responses":
        return {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}
    if form == "anthropic":
        content = [{"type": "text", "text": text, "cache_control": {"type": "ephemeral"}}]
        return {"role": "user", "content": content}
    return {"role": "user", "content": text}


def answer(form: str, text: str) -> Any:
    if form == "pydantic-ai":
        return ModelResponse(parts=[TextPart(text)])
    if form == "responses":
        return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}
    if form == "anthropic":
        return {
            "role": "assistant",
            "content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": text}],
        }
    return {"role": "assistant", "content": text}


def tool_use(form: str, call: str) -> list[Any]:
    """A call and its result."""
    if form == "pydantic-ai":
        return [
            ModelResponse(parts=[ToolCallPart("look", {"at": "it"}, tool_call_id=call)]),
            ModelRequest(parts=[ToolReturnPart("look", "seen", tool_call_id=call)]),
        ]
    if form == "responses":
        return [
            {"type": "function_call", "call_id": call, "name": "look", "arguments": "{}"},
            {"type": "function_call_output", "call_id": call, "output": "seen"},
        ]
    if form == "anthropic":
        return [
            {"role": "assistant", "content": [{"type": "tool_use", "id": call, "name": "look", "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call, "content": "seen"}]},
        ]
    function = {"name": "look", "arguments": "{}"}
    return [
        {"role": "assistant", "content": None, "tool_calls": [{"id": call, "type": "function", "function": function}]},
        {"role": "tool", "tool_call_id": call, "content": "seen"},
    ]


def texts(message: Any) -> list[str]:
    """What stands in a user's message, read by other means than ours."""
    if isinstance(message, ModelRequest):
        items = [part.content for part in message.parts if isinstance(part, UserPromptPart)]
        flat = [each for item in items for each in ([item] if isinstance(item, str) else item)]
        return [each.content if isinstance(each, TextContent) else str(each) for each in flat]
    if not isinstance(message, dict) or message.get("role") != "user":
        return []
    content = message["content"]
    return [content] if isinstance(content, str) else [part["text"] for part in content if "text" in part]


class Row(NamedTuple):
    """A line of a block, as a stranger reads it."""

    id: str
    revision: int
    text: str


def shown(history: Sequence[Any]) -> list[tuple[str, list[Row]]]:
    """Every block of a history with its lines, from the oldest."""
    found = []
    for message in history:
        for text in texts(message):
            if text.startswith(PREFIX):
                rows = [(line, REF.search(line)) for line in text.splitlines() if line.startswith("- ")]
                found.append((text, [Row(ref[2], int(ref[3]), line) for line, ref in rows if ref]))
    return found


def names(lines: Sequence[Any]) -> list[str]:
    return [line.id.removeprefix("m-") for line in lines]
