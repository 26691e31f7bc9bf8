"""What a tool call tells by its structure: tasks, commits, pull requests, plans, edits of the files with rules.

Shared by the sources, as the line about a call is. Of a call nothing but its arguments is read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from recollect.ingest.sources.base import UNDECODABLE, clean
from recollect.types import Event, Happened

_LONGEST = 2000  # characters of a commit's message that are kept
_MOST_TASKS = 40
_RULES = re.compile(
    r"(?:^|[/\s\"'])(?:CLAUDE(?:\.local)?|AGENTS|GEMINI|MEMORY|copilot-instructions)\.md\b|\.cursorrules\b"
)
_EDITS = re.compile(r"edit|write|patch|create|update", re.IGNORECASE)
_TOLD = re.compile(  # what a command must hold to be read at all
    r"\bgit\b[^\n|;&]*?\bcommit\b|\bgh\s+pr\s+create\b"
)
_HEREDOC = re.compile(r"<<-?\s*[\"'\\]?(\w+)[\"']?[^\n]*\n(.*?)\n\s*\1\b", re.DOTALL)
_MESSAGE = re.compile(
    r"(?:^|\s)(?:-[a-zA-Z]*m|--message|--title|-t)(?:\s+|=)?(?:\"((?:[^\"\\]|\\.)*)\"|'([^']*)'|(\S+))", re.DOTALL
)
_TRAILER = re.compile(
    r"^(?:Co-authored-by|Signed-off-by|[\w-]+-(?:Checkpoint|Session|By)): .*$|^.*Generated with .*$", re.M | re.I
)


IN_COMMANDS = (Happened.COMMIT, Happened.PULL_REQUEST, Happened.RULES)  # whatever the agent, shells and edits tell them


class _Task(msgspec.Struct):
    content: Any = None
    step: Any = None
    status: Any = None


class _Call(msgspec.Struct, rename="camel"):
    todos: Any = None
    plan: Any = None
    subject: Any = None
    task_id: Any = None
    status: Any = None
    command: Any = None
    cmd: Any = None
    file_path: Any = None
    path: Any = None
    input: Any = None


_calls = msgspec.json.Decoder(_Call)
_TASKS = frozenset({"TodoWrite", "TaskCreate", "TaskUpdate", "update_plan", "todo"})
_SHELLS = frozenset({"bash", "shell", "exec_command", "shell_command", "local_shell", "run_command", "container.exec"})


def told(name: str, arguments: bytes | msgspec.Raw | str | None) -> tuple[Event, ...]:
    """What a call says has happened, if it did not fail."""
    is_task, is_shell = name in _TASKS, name.casefold() in _SHELLS
    if not arguments or not (is_task or is_shell or name == "ExitPlanMode" or _EDITS.search(name)):
        return ()
    raw = arguments.encode(errors="replace") if isinstance(arguments, str) else bytes(arguments)
    if is_shell and b"commit" not in raw and b"gh pr" not in raw:
        return ()
    try:
        call = _calls.decode(raw)
    except UNDECODABLE:
        return (Event(Happened.RULES, found[0].strip(" \"'/")),) if (found := _edited(raw)) else ()
    if is_task:
        return tuple(_tasks(name, call))
    if name == "ExitPlanMode":
        return (Event(Happened.PLAN, _title(call.plan)),)
    if is_shell:
        return tuple(_committed(_command(call)))
    target = call.file_path or call.path
    found = _RULES.search(target) if isinstance(target, str) else _edited(raw)
    return (Event(Happened.RULES, clean(found[0].strip(" \"'/"))),) if found else ()


def _edited(raw: bytes) -> re.Match[str] | None:
    """A patch names its files at the beginnings of lines."""
    text = raw.decode(errors="replace")
    head = "\n".join(line for line in text.replace("\\n", "\n").split("\n") if line.startswith("*** "))
    return _RULES.search(head)


def _tasks(name: str, call: _Call) -> Iterator[Event]:
    if name == "TaskCreate" and isinstance(call.subject, str):
        yield Event(Happened.TASK, _line(call.subject))
    elif name == "TaskUpdate" and isinstance(call.task_id, str | int):
        if call.status in ("completed", "deleted"):
            yield Event(Happened.DONE, f"#{call.task_id}"[:20])
    else:
        listed = next((each for each in (call.todos, call.plan) if isinstance(each, list)), [])
        for each in listed[:_MOST_TASKS]:
            task = msgspec.convert(each, _Task) if isinstance(each, dict) else _Task(each)
            text = task.content if isinstance(task.content, str) else task.step
            if isinstance(text, str) and text.strip():
                is_done = task.status in ("completed", "cancelled", "done")
                yield Event(Happened.DONE if is_done else Happened.TASK, _line(text))


def _command(call: _Call) -> str:
    found = call.command if call.command is not None else call.cmd
    if isinstance(found, list):
        return " ".join(each for each in found if isinstance(each, str))
    return found if isinstance(found, str) else ""


def _committed(command: str) -> Iterator[Event]:
    for found in _TOLD.finditer(command):
        rest = command[found.end() :]
        here = _HEREDOC.search(rest)
        words = [next(filter(None, each.groups()), "") for each in _MESSAGE.finditer(rest.partition("\ngit ")[0])]
        is_commit = "commit" in found[0]
        if here and (not words or "<<" in words[0]):
            words = [here[2]]
        elif here and not is_commit:
            words = [words[0], here[2]]
        text = clean(_TRAILER.sub("", "\n\n".join(words if is_commit else words[:1]).replace('\\"', '"')))
        if text:
            kind = Happened.COMMIT if is_commit else Happened.PULL_REQUEST
            yield Event(kind, re.sub(r"\n{3,}", "\n\n", text)[:_LONGEST].strip())


def _title(plan: object) -> str:
    lines = plan.strip().splitlines() if isinstance(plan, str) else []
    return _line(lines[0].lstrip("# ")) if lines else ""


def _line(text: str) -> str:
    return clean(" ".join(text.split())[:200])
