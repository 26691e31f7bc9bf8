"""pydantic-ai's messages. Imported only where they are used.

A block is a part of the request that holds the prompt, directly before it: pydantic-ai joins requests that follow each
other, and only what stands in a part survives that. The part's text carries our marker as metadata.

Words beside results of tools are what a tool had to add, if the run that called it sent them. Else a person says them:
with results that were deferred, or joined to the end of an earlier run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from pydantic_ai.messages import (
    CachePoint,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    SpeechPart,
    TextContent,
    UserPromptPart,
)

from recollect.errors import UsageError
from recollect.inject.formats import MARK, Role, Slot, several
from recollect.text import in_texts

_METADATA = {"recollect": MARK}
_ASKED = (UserPromptPart, SpeechPart)  # what was said in a realtime session stands in its transcript
_PROMPT = "Pass a text, or a ModelRequest."
_RESULTS = {"tool-return", "retry-prompt", "retry-feedback"}


class PydanticMessages:
    name = "pydantic-ai"

    def __init__(self, history: Sequence[Any]) -> None:
        answers = [each for each in history if isinstance(each, ModelResponse)]
        self._called = {(each.run_id, call.tool_call_id) for each in answers if each.run_id for call in each.tool_calls}

    def role(self, message: Any) -> Role:
        if isinstance(message, ModelResponse):
            return Role.ASSISTANT
        if not isinstance(message, ModelRequest):
            raise UsageError(
                f"a message of an unknown shape: {type(message).__name__}", hint="Mixed with pydantic-ai's."
            )
        asks = any(isinstance(part, _ASKED) for part in message.parts)
        calls = [getattr(part, "tool_call_id", "") for part in message.parts if part.part_kind in _RESULTS]
        if calls and (not asks or any((message.run_id, each) in self._called for each in calls)):
            return Role.TOOL
        return Role.USER if asks else Role.OTHER

    def slots(self, message: Any) -> list[Slot]:
        found = []
        for part in _prompts(message):
            for item in [part.content] if isinstance(part.content, str) else part.content:
                if isinstance(item, str):
                    found.append(Slot(item, False))
                elif isinstance(item, TextContent):
                    found.append(Slot(item.content, item.metadata == _METADATA))
        return found

    def shows(self, message: Any) -> bool:
        texts = (str, TextContent, CachePoint)
        return any(not isinstance(item, texts) for part in _prompts(message) for item in part.content)

    def replaced(self, message: Any, texts: Sequence[str | None]) -> Any | None:
        new, parts = iter(texts), list[Any]()
        for part in message.parts:
            if isinstance(part, SpeechPart):
                if (text := next(new)) is not None:
                    parts.append(part if text == part.content else replace(part, transcript=text))
            elif not isinstance(part, UserPromptPart):
                parts.append(part)
            elif isinstance(part.content, str):
                if (text := next(new)) is not None:
                    parts.append(part if text == part.content else replace(part, content=text))
            else:
                items: list[Any] = []
                for item in part.content:
                    if not isinstance(item, str | TextContent):
                        items.append(item)
                    elif (text := next(new)) is not None:
                        items.append(text if isinstance(item, str) else replace(item, content=text))
                if items:
                    parts.append(replace(part, content=items))
        return replace(message, parts=parts) if parts else None

    def told(self, message: Any, change: Callable[[str], str]) -> Any:
        if not isinstance(message, ModelRequest):
            return message
        parts = [_told(part, change) for part in message.parts]
        same = all(one is other for one, other in zip(message.parts, parts, strict=True))
        return message if same else replace(message, parts=parts)

    def results(self, message: Any) -> str:
        return "\n".join(part.model_response_str() for part in message.parts if part.part_kind == "tool-return")

    def calls(self, message: Any) -> bool:
        return isinstance(message, ModelResponse) and bool(message.tool_calls)

    def prompt(self, value: Any) -> list[Any]:
        try:
            messages = several(value) or [ModelRequest(parts=[UserPromptPart(content=value)])]
        except ValueError as error:  # parts that are none
            raise UsageError(f"the prompt is no request: {error}", hint=_PROMPT) from None
        if not all(isinstance(each, ModelRequest) for each in messages):
            raise UsageError("the prompt is no request", hint=_PROMPT)
        return messages

    def insert(self, history: list[Any], place: int, text: str) -> tuple[list[Any], Any]:
        message: ModelRequest = history[place]
        first = next(n for n, part in enumerate(message.parts) if isinstance(part, _ASKED))
        at = getattr(message.parts[first], "timestamp", message.timestamp)  # the same block is the same bytes
        block = UserPromptPart(content=[TextContent(content=text, metadata=dict(_METADATA))])
        made = replace(block, timestamp=at or block.timestamp)
        joined = replace(message, parts=[*message.parts[:first], made, *message.parts[first:]])
        return [*history[:place], joined, *history[place + 1 :]], made

    def spoken(self, message: ModelMessage) -> str:
        said = []
        for part in message.parts:
            if part.part_kind == "text" or (part.part_kind == "speech" and part.speaker == "assistant"):
                said.append(part.content)
            elif part.part_kind == "tool-call":
                said.append(f"[calls {part.tool_name}: {part.args}]")
            elif part.part_kind == "tool-return":
                said.append(part.model_response_str())
        return "\n".join([*(slot.text for slot in self.slots(message)), *said])

    def speaker(self, message: Any) -> str:
        return ""


def _prompts(message: Any) -> list[UserPromptPart | SpeechPart]:
    parts = message.parts if isinstance(message, ModelRequest) else ()
    return [part for part in parts if isinstance(part, _ASKED)]


def _told(part: Any, change: Callable[[str], str]) -> Any:
    if part.part_kind not in _RESULTS:
        return part
    new = in_texts(part.content, change)
    return part if new is part.content else replace(part, content=new)
