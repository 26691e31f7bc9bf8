"""What stands inside of a Codex payload: the texts of a message and the person's part of them, the files of a patch,
the outcome of a call.

Pure functions over raw JSON for `codex.py`; no state, and nothing here decides what is kept.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec
from msgspec import Raw, field

from recollect.ingest.sources.base import decode
from recollect.ingest.sources.tags import Wrappers, quoted


class _Part(msgspec.Struct):
    type: Any = None
    text: Any = None


class Result(msgspec.Struct):
    """What a tool's output says about itself; what the tool said is never looked at. A question's has the answers."""

    answers: Any = None  # the user's: question → an object with a list of them
    metadata: Any = None
    exit_code: Any = None
    success: Any = None
    is_error: Any = None
    camel_is_error: Any = field(default=None, name="isError")
    right: Raw = field(default=Raw(), name="Ok")
    wrong: Any = field(default=None, name="Err")


_contents = msgspec.json.Decoder(str | list[_Part | list[Raw] | str | float | bool | None] | None)
_results = msgspec.json.Decoder(Result)
_strings = msgspec.json.Decoder(str)
_TEXTS = ("input_text", "output_text", "text", "Text", None)
_IMAGES = ("input_image", "image", "local_image", "Image", "LocalImage")
_PATCHED = re.compile(r"\*\*\* (?:Add|Update|Delete) File: (.+?)(?=\\n(?:@@|\*\*\*|[+\- ])|$)", re.MULTILINE)
_EXIT = re.compile(r"^(?:Process exited with code|Exit code:) (-?\d{1,10})", re.MULTILINE)
_ERRORS = ("apply_patch verification failed", "exec_command failed", "execution error", "Script failed")


def parts(content: Raw) -> tuple[list[str], bool]:
    """The texts of a message, and whether it has pictures. A part of another kind is passed over."""
    value = decode(_contents, bytes(content))
    if not isinstance(value, list):
        return ([value] if value else []), False
    found = [part if isinstance(part, _Part) else _Part(text=part) for part in value]
    texts = [part.text for part in found if part.type in _TEXTS and isinstance(part.text, str)]
    return texts, any(part.type in _IMAGES for part in found)


def string(raw: Raw) -> str:
    """The value of a JSON string; other JSON as it is."""
    data = bytes(raw)
    return decode(_strings, data) if data.startswith(b'"') else data.decode(errors="replace")


def patched(text: str) -> list[str]:
    """The files that a patch touches, wherever in the arguments it stands."""
    try:
        values = list(msgspec.json.decode(text, type=dict[str, Any]).values())
    except msgspec.DecodeError:
        values = [text]
    words = [word for value in values for word in (value if isinstance(value, list) else [value])]
    return [found.rstrip() for word in words if isinstance(word, str) for found in _PATCHED.findall(word)]


def answers(output: str) -> list[str]:
    """What the user answered, by the output of a question; nothing, if it was not answered."""
    try:
        given = _results.decode(output).answers
    except ValueError:
        return []
    lists = (
        [each.get("answers") for each in given.values() if isinstance(each, dict)] if isinstance(given, dict) else []
    )
    words = [word for each in lists if isinstance(each, list) for word in each if isinstance(word, str)]
    return [word.removeprefix("user_note: ") for word in words if word]


def tells_failure(output: str) -> bool:
    try:
        if output.startswith("["):
            output = "\n".join(parts(Raw(output.encode()))[0])
        if output.startswith("{"):
            return is_ill(_results.decode(output))
    except ValueError:
        pass  # text that only begins like JSON
    head = output[:600].partition("\nOutput:")[0]
    if found := _EXIT.search(head):
        return found[1].strip("-0") != ""
    return head.startswith(_ERRORS)


def is_ill(result: Result) -> bool:
    code = result.metadata.get("exit_code") if isinstance(result.metadata, dict) else result.exit_code
    if result.wrong is not None or result.success is False or (isinstance(code, int) and code != 0):
        return True
    return result.is_error is True or result.camel_is_error is True or tells_failure(string(result.right))


# Whose words

_FRAGMENTS = Wrappers(
    "INSTRUCTIONS|(?i:environment_context(?:_delta)?|user_instructions|"
    "permissions instructions|turn_aborted|skill|user_shell_command|user_action|subagent_notification|hook_prompt|"
    "collaboration_mode|multi_agent_mode|realtime_conversation|model_switch|personality_spec|apps_instructions|"
    "skills_instructions|plugins_instructions|recommended_plugins|extension_context|goal_context|app-context|"
    r"codex_internal_context|browser_snapshot|external_\w+|context_window(?:_guidance)?|token_budget(?:_reminder)?|"
    "rollout_budget|in-app-browser-context|agent_message_board_notification|next_prompt_suggestion)",
    leading=True,
    header=r"# AGENTS\.md instructions[^\n]*\n\s*",
)
HANDED_ON = "Another language model started to solve this problem and produced a summary"
_BRIDGES = (  # what Codex says in the user's name, without a tag around it
    HANDED_ON,
    "You were originally given instructions from a user over one or more turns",
    "You are performing a CONTEXT CHECKPOINT COMPACTION",
    "Warning: The maximum number of unified exec processes you can keep open is",
    "Warning: apply_patch was requested via ",
    "Warning: Your account was flagged for potentially high-risk cyber activity",
)
_EDITOR = re.compile(  # what an editor puts before the request
    r"#{1,2} (?:Context from my IDE setup|Selected text|(?:Files|Applications) mentioned by the user|MCP app context|"
    r"Response annotations|(?:Diff|Browser) comments|Failing PR checks|Pull request [a-z ]{1,20}|Auto resolve merge|"
    r"Chrome tabs|In app browser|Prior conversation with Codex|Referenced (?:chats with Codex|ChatGPT conversation)|"
    r"Code review guidelines|My request(?: for Codex)?):"
)
_REQUEST = re.compile(r"^#{1,3} My request(?: for [^\n:]{1,40})?:[ \t]*", re.MULTILINE)
_IN_EDITOR = re.compile(r"^## (?:Active (?:file|selection)|Open tabs)\b[^\n]*:", re.MULTILINE)


def own_words(text: str) -> str:
    """The person's part of a text: without fragments, bridges and what an editor put before the request."""
    text = _FRAGMENTS.without(text.strip())
    if text.startswith(_BRIDGES):
        return ""
    return _requested(text) if _EDITOR.match(text) else text


def _requested(text: str) -> str:
    """What stands behind the editor's context. Selected text may hold the heading of a request, too: the last one is
    the editor's, unless the text begins with one. A passage between two may be anybody's."""
    headings = list(_REQUEST.finditer(text))
    if not headings:
        return quoted(text).strip()
    first, last = headings[0], headings[-1]
    if first.start() == 0:
        return text[first.end() :].strip()
    between = text[first.end() : last.start()] if first is not last else ""
    unclear = "" if _IN_EDITOR.search(between) else quoted(between)
    return (unclear + text[last.end() :].lstrip()).strip()
