"""What a tool call tells by its structure: tasks, commits, pull requests, plans, edits of the files with rules.

Shared by the sources, as the line about a call is. Of a call nothing but its arguments is read.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import msgspec

from recollect.ingest.sources.base import UNDECODABLE, clean
from recollect.types import Event, Happened

_LONGEST = 2000  # characters of a commit's message that are kept
_MOST_TASKS = 40
_MOST_COMMITS = 20  # of one call
_RULES = re.compile(
    r"(?:^|[/\s\"'])(?:CLAUDE(?:\.local)?|AGENTS|GEMINI|MEMORY|copilot-instructions)\.md\b|\.cursorrules\b"
)
_EDITS = re.compile(r"edit|write|patch|create|update", re.IGNORECASE)
_LOOKED_AT = 20_000  # characters of a command
_HERE = re.compile(r"(?<!<)<<-?[ \t]*[\"'\\]?(\w+)[\"']?([^\n]*)\n")
_TOKEN = re.compile(r"([;&|\n()]+)|((?:\"(?:[^\"\\]|\\.)*(?:\"|$)|'[^']*(?:'|$)|\\.|[^\s;&|()\"'\\])+)", re.DOTALL)
_QUOTED = re.compile(r"\"((?:[^\"\\]|\\.)*)(?:\"|$)|'([^']*)(?:'|$)|\\(.)", re.DOTALL)
_ESCAPED = re.compile(r"\\([\"$`\\])")
_BODY = re.compile(r"\0(\d+)\0")  # where a here-document stood
_BEFORE = re.compile(r"\w+=.*|if|then|do|else|while|!|\{|sudo|time|env|command", re.DOTALL)
_WRAPPER = re.compile(r"(?!(?:echo|printf|grep|rg|man|which|type|cat)$)[a-z][\w-]*")  # what runs the command behind it
_ELSEWHERE = re.compile(r"\bcd [\"']?(?:/private)?/(?:tmp|var/tmp|var/folders)\b|\bmktemp\b")  # for a trial
_SAYS = {
    Happened.COMMIT: re.compile(r"-[aqvsnpe]*m(.*)|--message(?:=(.*))?", re.DOTALL),
    Happened.PULL_REQUEST: re.compile(r"-t(.*)|--title(?:=(.*))?", re.DOTALL),
}
_TRAILER = re.compile(
    r"^(?:Co-authored-by|Signed-off-by|[\w-]+-(?:Checkpoint|Session|By)): .*$|^.*Generated with .*$", re.M | re.I
)


IN_COMMANDS = (Happened.COMMIT, Happened.PULL_REQUEST, Happened.RULES)  # whatever the agent, shells and edits tell them


class _Task(msgspec.Struct):
    content: Any = None
    step: Any = None
    status: Any = None


class _Call(msgspec.Struct):
    todos: Any = None
    plan: Any = None
    subject: Any = None
    task_id: Any = msgspec.field(default=None, name="taskId")
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
    if b"*** Begin Patch" in raw:  # by itself, in JSON, or in a command
        return tuple(_rules(_patched(raw)))
    if is_shell and b"commit" not in raw and b"gh " not in raw:
        return ()
    try:
        call = _calls.decode(raw)
    except UNDECODABLE:
        return ()
    if is_task:
        return tuple(_tasks(name, call))
    if name == "ExitPlanMode":
        return (Event(Happened.PLAN, _title(call.plan)),)
    if is_shell:
        command = _command(call)
        is_trial = "git init" in command and _ELSEWHERE.search(command[:_LOOKED_AT])
        return () if is_trial else tuple(islice(_committed(command), _MOST_COMMITS))
    target = call.file_path or call.path
    return tuple(_rules(target if isinstance(target, str) else ""))


def _rules(files: str) -> Iterator[Event]:
    """A file with rules among those that were edited."""
    if found := _RULES.search(files):
        yield Event(Happened.RULES, clean(found[0].strip(" \"'/\n")))


def _patched(raw: bytes) -> str:
    """The lines of a patch that name its files."""
    text = raw.decode(errors="replace").replace("\\n", "\n")
    return "\n".join(line for line in text.split("\n") if line.startswith("*** "))


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
        words = [each for each in found if isinstance(each, str)]
        is_shell = len(words) == 3 and words[0].endswith("sh") and words[1].startswith("-")
        return words[2] if is_shell else shlex.join(words)
    return found if isinstance(found, str) else ""


def _committed(command: str) -> Iterator[Event]:
    """Commits and pull requests of a command line, with what they are called."""
    plain, bodies = _without_bodies(command[:_LOOKED_AT].replace("\0", ""))
    for words in _commands(plain):
        kind = _kind(words)
        if kind is None:
            continue
        said = [*_said(words, _SAYS[kind])]
        if not said and kind is Happened.COMMIT:  # git commit -F - <<EOF
            said = [word for word in words if _BODY.fullmatch(word)]
        paragraphs = [bodies[int(held[1])] if (held := _BODY.search(each)) else each for each in said]
        text = clean(_TRAILER.sub("", "\n\n".join(paragraphs if kind is Happened.COMMIT else paragraphs[:1])))
        if text:
            yield Event(kind, re.sub(r"\n{3,}", "\n\n", text)[:_LONGEST].strip())


def _without_bodies(command: str) -> tuple[str, list[str]]:
    """A command line with marks in the place of its here-documents, and these."""
    plain: list[str] = []
    bodies: list[str] = []
    at = 0
    while found := _HERE.search(command, at):
        end = re.compile(rf"^[ \t]*{found[1]}\b|\Z", re.MULTILINE).search(command, found.end())
        plain += [command[at : found.start()], f"\0{len(bodies)}\0", found[2]]
        bodies.append(command[found.end() : end.start() if end else None].rstrip("\n"))
        at = end.end() if end else len(command)
    return "".join([*plain, command[at:]]), bodies


def _commands(line: str) -> Iterator[list[str]]:
    """The words of each command, as they are written."""
    words: list[str] = []
    for end, word in _TOKEN.findall(line):
        if end:
            yield words
            words = []
        else:
            words.append(word)
    yield words


def _kind(words: list[str]) -> Happened | None:
    """Whether a command commits, or opens a pull request. Takes away what stands before its options."""
    while words and _BEFORE.fullmatch(words[0]):
        del words[0]
    if words[1:2] in (["git"], ["gh"]) and _WRAPPER.fullmatch(words[0]):
        del words[0]
    if words[:3] == ["gh", "pr", "create"]:
        del words[:3]
        return Happened.PULL_REQUEST
    if words[:1] != ["git"]:
        return None
    del words[0]
    while words and words[0].startswith("-"):
        del words[: 2 if words[0] in ("-C", "-c") else 1]
    is_commit = words[:1] == ["commit"]
    del words[:1]
    return Happened.COMMIT if is_commit else None


def _said(words: Sequence[str], option: re.Pattern[str]) -> Iterator[str]:
    """What an option is given, each time."""
    waiting = iter(words)
    for word in waiting:
        if found := option.fullmatch(word):
            value = next(filter(None, found.groups()), "") or next(waiting, "")
            yield _QUOTED.sub(_unquoted, value)


def _unquoted(found: re.Match[str]) -> str:
    return _ESCAPED.sub(r"\1", found[1]) if found[1] is not None else found[2] or found[3] or ""


def _title(plan: object) -> str:
    lines = plan.strip().splitlines() if isinstance(plan, str) else []
    return _line(lines[0].lstrip("# ")) if lines else ""


def _line(text: str) -> str:
    return clean(" ".join(text.split())[:200])
