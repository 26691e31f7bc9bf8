"""Message lists as people have them, seen as roles and texts; and a block as a message of the same list.

Trusted are the shapes that the APIs document: OpenAI chat messages, OpenAI Responses items, Anthropic messages, as
dictionaries or as the objects of their SDKs; pydantic-ai's are in `pydantic_messages`. Nothing here changes a message:
what differs is a copy. A shape that is not known is an error, never guessed at.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

from recollect.errors import UsageError
from recollect.text import in_texts

MARK = "recollect_memory"  # the structural marker, where a format has a place for one
_HINT = (
    "Known are OpenAI chat messages, OpenAI Responses items, Anthropic messages and pydantic-ai messages. "
    "Messages of pydantic-ai that were dumped go through ModelMessagesTypeAdapter first."
)


class Role(StrEnum):
    """Who speaks, whatever the format calls it."""

    USER = "user"  # a person's words
    ASSISTANT = "assistant"  # words and tool calls
    TOOL = "tool"  # results of tool calls
    OTHER = "other"  # instructions, reasoning: no part of the talk


@dataclass(frozen=True, slots=True)
class Slot:
    """A text that stands in a user's message."""

    text: str
    marked: bool  # carries our marker


class Format(Protocol):
    """How one kind of list is read and written."""

    @property
    def name(self) -> str: ...

    def role(self, message: Any) -> Role: ...

    def slots(self, message: Any) -> list[Slot]:
        """The texts of a user's message; none for all others."""
        ...

    def shows(self, message: Any) -> bool:
        """A user's message carries something besides text: a picture, a file."""
        ...

    def replaced(self, message: Any, texts: Sequence[str | None]) -> Any | None:
        """The message with other texts in its slots, without those that are None; None when nothing is left."""
        ...

    def told(self, message: Any, change: Callable[[str], str]) -> Any:
        """The message with `change` applied to what tools gave, and to what somebody calls himself; the same object
        when that changes nothing."""
        ...

    def results(self, message: Any) -> str:
        """What tools gave in a user's message, for a transcript."""
        ...

    def calls(self, message: Any) -> bool:
        """The caller owes it what a tool gives."""
        ...

    def prompt(self, value: Any) -> list[Any]:
        """A text, its parts, or messages of this format, as messages."""
        ...

    def insert(self, history: list[Any], place: int, text: str) -> tuple[list[Any], Any]:
        """A history with the block directly before the words of a user's message; and the block."""
        ...

    def spoken(self, message: Any) -> str:
        """All text and tool calls of a message, for a transcript."""
        ...

    def speaker(self, message: Any) -> str:
        """The display name, where one is given."""
        ...


def detect(history: Sequence[Any], prompt: Any = None, name: str = "") -> Format:
    """The format of a list; `name` settles what its messages leave open."""
    if isinstance(history, str | bytes) or not isinstance(history, Sequence):
        raise UsageError(f"a history is a list of messages, not {type(history).__name__}", hint=_HINT)
    if isinstance(prompt, list) and not prompt:
        raise UsageError("the prompt is an empty list", hint="Without one, it is the last message of a user.")
    known = [*history, *several(prompt)]
    if name == "pydantic-ai" or any(type(each).__module__.startswith("pydantic_ai") for each in known):
        from recollect.inject.pydantic_messages import PydanticMessages

        return PydanticMessages(known)
    if name and name not in _FORMATS:
        raise UsageError(f"no message format `{name}`", hint=f"There are {', '.join([*_FORMATS, 'pydantic-ai'])}.")
    told = {each for message in known for each in _evidence(message)}
    if len(told) > 1 and not name:
        raise UsageError(
            f"the messages are of different formats: {' and '.join(sorted(told))}", hint=f"`form` names one. {_HINT}"
        )
    cached = "anthropic" if any(map(_is_cached, known)) else "plain"  # proxies take the mark in other formats, too
    return Messages(name or next(iter(told), cached))


def several(prompt: Any) -> list[Any]:
    """The messages of a prompt; none where it is a text or parts of one."""
    if isinstance(prompt, list):
        return prompt if prompt and all(map(_is_message, prompt)) else []
    return [] if prompt is None or isinstance(prompt, str) else [prompt]


def _is_message(value: Any) -> bool:
    return _get(value, "role") is not None or _is_item(_get(value, "type")) or hasattr(value, "parts")


_FORMATS = ("plain", "openai", "responses", "anthropic")
_TEXTS = ("text", "input_text")
_ITEMS = ("reasoning", "item_reference", "compaction", "compaction_trigger", "configuration_update", "program")
_GIVEN = ("output", "outputs", "results")  # where an item has what a tool gave
_FOREIGN = {  # parts of a user's message, and where they have what is not the user's words
    "tool_result": ("content",),
    "document": ("source", "title", "context"),
    "search_result": ("source", "title", "content"),
}
_PARTS = {
    **dict.fromkeys(("input_text", "output_text", "input_image", "input_file", "summary_text"), "responses"),
    **dict.fromkeys(("image_url", "file", "refusal"), "openai"),
    **dict.fromkeys(("thinking", "redacted_thinking", "image", "document", "search_result"), "anthropic"),
}


def _evidence(message: Any) -> set[str]:
    """Formats that a message can only be of; none, if it would do in all of them."""
    if not _copies(message):
        raise _unknown(message)
    role, kind, content = _get(message, "role"), _get(message, "type"), _get(message, "content")
    parts = [_get(part, "type") for part in content] if isinstance(content, list | tuple) else []
    found = {_format(part) for part in parts if isinstance(part, str)} - {""}
    if kind == "message":  # an answer of Anthropic's is of that type, too, and has texts that no item has
        answer = "text" in parts or "anthropic" in found or _get(message, "stop_reason") is not None
        return {"anthropic" if answer else "responses"}
    if role is None:
        if _is_item(kind):
            return {"responses"}
        raise _unknown(message)
    if role in ("tool", "function") or _calls(message) or any(_get(message, key) for key in ("name", "tool_call_id")):
        found.add("openai")
    return found


def sendable(answer: Any) -> Any:
    """As it may be sent again: no request may have the other keys of an answer of Anthropic's."""
    if _get(answer, "type") == "message" and _evidence(answer) == {"anthropic"}:
        return {"role": _get(answer, "role"), "content": _get(answer, "content")}
    return answer


def _is_item(kind: Any) -> bool:
    if not isinstance(kind, str):
        return False
    return kind in _ITEMS or kind.endswith(("_call", "_output")) or kind.startswith("mcp_")


def _format(part: str) -> str:
    """The only one that has such parts; empty, if several have."""
    return "anthropic" if part.endswith(("tool_use", "tool_result")) else _PARTS.get(part, "")


def _is_cached(message: Any) -> bool:
    content = _get(message, "content")
    return isinstance(content, list) and any(_get(part, "cache_control") for part in content)


@dataclass(frozen=True, slots=True)
class Messages:
    """Dictionaries with a role and a content. `plain` is what OpenAI, Responses and Anthropic all take."""

    name: str

    def role(self, message: Any) -> Role:
        role, kind = _get(message, "role"), _get(message, "type")
        if role == "user":
            return Role.USER if not _results(message) or any(map(_text, _parts(message))) else Role.TOOL
        if role == "assistant":
            return Role.ASSISTANT
        if role in ("tool", "function"):
            return Role.TOOL
        if role in ("system", "developer"):
            return Role.OTHER
        if role is None and isinstance(kind, str):
            if kind.endswith(("_output", "_response")):
                return Role.TOOL
            return Role.ASSISTANT if kind.endswith(("_call", "_request")) else Role.OTHER
        raise _unknown(message)

    def slots(self, message: Any) -> list[Slot]:
        if self.role(message) is not Role.USER:
            return []
        marked = _get(message, "name") == MARK
        return [Slot(text, marked) for text in map(_text, _parts(message)) if text is not None]

    def shows(self, message: Any) -> bool:
        return any(_text(part) is None and _get(part, "type") != "tool_result" for part in _parts(message))

    def replaced(self, message: Any, texts: Sequence[str | None]) -> Any | None:
        content, new = _get(message, "content"), iter(texts)
        if isinstance(content, str):
            text = next(new)
            return None if text is None else _with(message, "content", text)
        parts = []
        for part in _parts(message):
            if _text(part) is None:
                parts.append(part)
            elif (text := next(new)) is not None:
                parts.append(part if _text(part) == text else _with(part, "text", text))
        return _with(message, "content", parts) if parts else None

    def told(self, message: Any, change: Callable[[str], str]) -> Any:
        role = _get(message, "role")
        if role is None:
            return _in_keys(message, _GIVEN, change)
        if role in ("tool", "function"):
            return _in_keys(message, ("content",), change)
        if role != "user":
            return message
        message = message if _get(message, "name") is None else _in_keys(message, ("name",), change)
        parts = [] if isinstance(_get(message, "content"), str) else _parts(message)
        new = [_in_keys(part, _FOREIGN.get(_get(part, "type"), ()), change) for part in parts]
        return message if _same(parts, new) else _with(message, "content", new)

    def results(self, message: Any) -> str:
        return "\n".join(_call(part) for part in _parts(message) if _get(part, "type") == "tool_result")

    def calls(self, message: Any) -> bool:
        if _get(message, "role") is None:  # a tool of the API's own has no such id, and may wait for an approval
            asked = _get(message, "call_id") is not None or str(_get(message, "type")).endswith("_request")
            return asked and self.role(message) is Role.ASSISTANT
        called = _calls(message) or _get(message, "function_call")
        return bool(called) or any(_get(part, "type") == "tool_use" for part in _parts(message))

    def prompt(self, value: Any) -> list[Any]:
        messages = several(value) or [{"role": "user", "content": value}]
        if not {self.role(each) for each in messages} <= {Role.USER, Role.TOOL}:
            raise UsageError("the prompt is no message of a user", hint="Pass a text, or a message with the role user.")
        return messages

    def insert(self, history: list[Any], place: int, text: str) -> tuple[list[Any], Any]:
        if _results(history[place]):  # which must follow their calls at once: the block stands behind them
            parts, part = _parts(history[place]), {"type": "text", "text": text}
            first = next(n for n, each in enumerate(parts) if _text(each))
            joined = _with(history[place], "content", [*parts[:first], part, *parts[first:]])
            return [*history[:place], joined, *history[place + 1 :]], part
        made: dict[str, Any] = {"role": "user", "content": text}
        if self.name == "openai":
            made["name"] = MARK
        if self.name == "responses":
            made = {"type": "message", **made}
        return [*history[:place], made, *history[place:]], made

    def spoken(self, message: Any) -> str:
        said = []
        for part in _parts(message):
            text = _get(part, "text") or _get(part, "refusal")
            said.append(text if isinstance(text, str) else _call(part))
        said += [_get(message, "refusal"), _get(_get(message, "audio"), "transcript")]
        calls = [*_calls(message), _get(message, "function_call")]
        said += [_call(_get(call, "function") or _get(call, "custom") or call) for call in calls]
        if _get(message, "role") is None:
            said.append(_call(message))
        return "\n".join(each for each in said if isinstance(each, str) and each)

    def speaker(self, message: Any) -> str:
        name = _get(message, "name")
        return name if isinstance(name, str) and name != MARK else ""


def _parts(message: Any) -> list[Any]:
    content = _get(message, "content")
    if content is None and _get(message, "role") != "user":
        return []
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    if isinstance(content, list | tuple) and all(
        _copies(part) and isinstance(_get(part, "type"), str) for part in content
    ):
        return list(content)
    raise _unknown(message)


def _calls(message: Any) -> Sequence[Any]:
    calls = _get(message, "tool_calls") or ()
    if not isinstance(calls, list | tuple):
        raise _unknown(message)
    return calls


def _results(message: Any) -> bool:
    if isinstance(_get(message, "content"), str):
        return False
    return any(_get(part, "type") == "tool_result" for part in _parts(message))


def _text(part: Any) -> str | None:
    text = _get(part, "text")
    return text if _get(part, "type") in _TEXTS and isinstance(text, str) else None


def _in_keys(value: Any, keys: Sequence[str], change: Callable[[str], str]) -> Any:
    """With other texts under some keys, however deep they lie there."""
    for key in keys:
        held = _get(value, key)
        if (new := in_texts(held, change)) is not held:
            value = _with(value, key, new)
    return value


def _same(before: Sequence[Any], after: Sequence[Any]) -> bool:
    return all(one is other for one, other in zip(before, after, strict=True))


def _call(part: Any) -> str:
    """A tool call or its result in one line each; empty for anything else."""
    name, kind = _get(part, "name"), str(_get(part, "type") or "")
    if kind == "tool_result" or kind.endswith("_output"):
        result = _get(part, "content") if kind == "tool_result" else _get(part, "output")
        inner = result if isinstance(result, list) else []
        texts = [result] if isinstance(result, str) else [_get(each, "text") for each in inner]
        return "\n".join(text for text in texts if isinstance(text, str))
    if not isinstance(name, str):
        return ""
    arguments = _get(part, "arguments")
    return f"[calls {name}: {_get(part, 'input') if arguments is None else arguments}]"


def _get(value: Any, key: str) -> Any:
    if isinstance(value, dict):
        return value.get(key)
    return value.get(key) if isinstance(value, Mapping) else getattr(value, key, None)


def _copies(value: Any) -> bool:
    """What cannot be copied is no message: it would be changed in the caller's own list, or not at all."""
    return isinstance(value, Mapping) or hasattr(value, "model_copy")


def _with(value: Any, key: str, new: Any) -> Any:
    """A copy of a dictionary, or of an object of an SDK, that differs in one place."""
    if isinstance(value, Mapping):
        return {**value, key: new}
    return value.model_copy(update={key: new})


def _unknown(message: Any) -> UsageError:
    keys = f" with the keys {', '.join(map(str, message))}" if isinstance(message, Mapping) else ""
    return UsageError(f"a message of an unknown shape: {type(message).__name__}{keys}", hint=_HINT)
