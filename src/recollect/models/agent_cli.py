"""The user's own agent as a model: Claude Code or Codex, asked one question and given no tools.

It runs in an empty folder of ours, without the user's settings, hooks and MCP servers as far as it can be told so, and
with the bypass variable, by which our own hooks know that nobody is talking to it. The prompt goes in on standard
input: a command line can be seen by others. Files stand in for pipes, so that nothing has to be read in time.

Invariant: after a call neither the agent nor anything in its process group is running, also where this process was
killed during the call.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from pydantic import ValidationError

from recollect import processes
from recollect.config import BYPASS_VARIABLE, Settings
from recollect.models.base import SAYS_TOO_LONG, Answer, Failure, Limits, ModelFailed, Tool, Usage, shown_message
from recollect.models.paid import MOST_COUNTED, is_count
from recollect.models.plan_limit import is_plan_limit, resets_at
from recollect.text import estimate_tokens
from recollect.types import Clock, utc_now

if TYPE_CHECKING:
    from pydantic import BaseModel

    Schema = TypeVar("Schema", bound=BaseModel)

_LONGEST_OUTPUT = 32 * 1024 * 1024  # bytes of each of its streams; answers have a few thousand
_LONGEST_COMPLAINT = 400  # characters; longer texts are answers
_UNTIL_TRIED = 3600.0  # seconds to wait where a plan's limit does not tell when it resets
_LOOK = 0.1  # seconds between two looks at how much it has said
# By these an agent knows that it was started inside another session, and refuses or reports to it; what the user set
# for every session stays.
_OF_A_SESSION = ("CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_SESSION_ID", "CLAUDE_CODE_SSE_PORT")
# Becomes the agent. A shell beside it, in its process group, waits for the end of a pipe that this process alone holds
# open, and then kills the group. Words after it: the file of the prompt, the program, its arguments.
_GUARDED = 'exec 3<&0; (read _ <&3; kill -9 0) & exec "$@" <"$0" 3<&-'
_NOT_STARTED = (126, 127)  # status of a shell that could not become the program
_ROLE = "You answer one question about a text, with one JSON object and nothing else. You have no tools."
_CLAUDE = (
    *("--print", "--output-format", "json", "--system-prompt", _ROLE, "--tools", "", "--setting-sources", ""),
    *("--strict-mcp-config", "--disable-slash-commands", "--no-session-persistence"),
)
_CODEX = (
    *("exec", "--sandbox", "read-only", "--skip-git-repo-check", "--ephemeral", "--color", "never"),
    *("--ignore-user-config", "--ignore-rules"),
    *("-c", "features.shell_tool=false", "-c", "features.hooks=false", "-c", "features.apps=false"),
    *("-c", "features.multi_agent=false", "-c", 'web_search="disabled"'),
)
_PROMPT = """{instructions}

Answer with one JSON object that follows this JSON schema, and with nothing else:

{schema}

The text:

{content}
"""
_SIGNS = (  # what agents say when they fail, in this order
    (Failure.TOO_LONG, SAYS_TOO_LONG.pattern),
    (Failure.RATE_LIMITED, r"rate limit|limit reached|too many requests|\b429\b"),
    (Failure.REJECTED, r"log ?in|logged in|api key|unauthorized|authenticat|\b40[134]\b"),
    (Failure.REJECTED, r"unknown option|unexpected argument|invalid value"),
)


def rendered(instructions: str, content: str, schema: type[BaseModel]) -> str:
    """The whole prompt, as the agent is given it."""
    return _PROMPT.format(instructions=instructions, schema=json.dumps(schema.model_json_schema()), content=content)


@dataclass(frozen=True, slots=True)
class _Said:
    """What an agent left behind."""

    status: int  # of the process
    text: str  # its answer, or its complaint
    usage: Usage


class AgentCli:
    """A coding agent that is installed on this machine."""

    paid = True
    has_tools = False

    def __init__(self, settings: Settings, name: str, clock: Clock = utc_now) -> None:
        self.name = name
        self._clock = clock
        self._program, _, self._model = name.removeprefix("cli:").partition(":")
        self._folder = settings.home / "agent-cli"
        own = {name: value for name, value in settings.environ.items() if name not in _OF_A_SESSION}
        self._environ = {**own, BYPASS_VARIABLE: "1"}

    def price(self, input_tokens: int, output_tokens: int) -> float:
        """Not known: a subscription, perhaps."""
        return 0.0

    def answer(self, instructions: str, content: str, schema: type[Schema], *, seconds: float) -> Answer[Schema]:
        """One answer. The schema is part of the prompt, and what comes back is looked through for an object."""
        said = self._ask(rendered(instructions, content, schema), seconds)
        if said.status != 0:
            self._complain(said)
        complaint = ""
        for found in reversed([*_objects(said.text)]):  # agents think aloud: the last one that fits is meant
            try:
                return Answer(schema.model_validate(found), said.usage)
            except ValidationError as error:
                wrong = error.errors(include_url=False, include_input=False)
                complaint = complaint or "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in wrong)
        if not complaint and len(said.text) < _LONGEST_COMPLAINT and is_plan_limit(said.text):
            self._complain(said)  # told as if it were an answer
        complaint = complaint or "there is no JSON object in the answer"
        raise self._failed(Failure.INVALID, f"the answer does not fit: {complaint}", usage=said.usage)

    def work(self, instructions: str, content: str, tools: Sequence[Tool], limits: Limits) -> NoReturn:
        """Not possible: the agent would use tools of its own."""
        raise self._failed(Failure.REJECTED, "has no tools of ours", hint="Set `consolidation_model` to another model.")

    def _ask(self, prompt: str, seconds: float) -> _Said:
        program = processes.program(self._program, self._environ)
        if program is None:
            hint = f"Install `{self._program}`, or set `model` to another one."
            raise self._failed(Failure.REJECTED, f"`{self._program}` is not on the PATH", hint=hint)
        for folder in (self._folder.parent, self._folder):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=self._folder, ignore_cleanup_errors=True) as own:
            last, given, output, errors = (Path(own) / name for name in ("last", "prompt", "output", "errors"))
            given.write_text(prompt, encoding="utf-8", errors="replace")
            status = self._run([program, *self._arguments(last)], seconds, given, output, errors)
            if self._program == "claude":
                return _claude(status, _read(output), _read(errors), prompt)
            return _codex(status, _read(last), _read(errors), prompt)

    def _arguments(self, last: Path) -> tuple[str, ...]:
        model = ("--model", self._model) if self._model else ()
        if self._program == "claude":
            return (*_CLAUDE, *model)
        return (*_CODEX, *model, "--output-last-message", str(last), "-")

    def _run(self, command: list[str], seconds: float, given: Path, output: Path, errors: Path) -> int:
        watched, held = os.pipe()  # `held` is inherited by nobody, so it closes when this process ends, however it ends
        try:
            with output.open("wb") as stdout, errors.open("wb") as stderr:
                process = processes.start(
                    ["/bin/sh", "-c", _GUARDED, str(given), *command],
                    self._environ,
                    cwd=self._folder,
                    stdin=watched,
                    stdout=stdout,
                    stderr=stderr,
                    start_new_session=True,  # a process group of its own, to be ended as one
                )
            return self._status(process, seconds, output, errors)
        except OSError as error:
            raise self._failed(Failure.REJECTED, f"`{command[0]}` does not start: {error.strerror}") from None
        finally:
            os.close(watched)
            os.close(held)

    def _status(self, process: subprocess.Popen[bytes], seconds: float, output: Path, errors: Path) -> int:
        """Wait for its end; end it and its process group where it takes too long or says too much."""
        deadline = time.monotonic() + seconds
        try:
            while True:
                try:
                    status = process.wait(timeout=_LOOK)
                except subprocess.TimeoutExpired:
                    status = None
                if max(file.stat().st_size for file in (output, errors)) > _LONGEST_OUTPUT:
                    raise self._failed(Failure.INVALID, "it does not stop talking", usage=Usage(1))
                if status in _NOT_STARTED:
                    raise self._failed(Failure.REJECTED, f"it does not start: {_read(errors)}")
                if status is not None:
                    return status
                if time.monotonic() > deadline:
                    raise self._failed(Failure.TIMEOUT, f"no answer within {seconds:g} s", usage=Usage(1))
        finally:
            with suppress(ProcessLookupError, PermissionError):  # nobody is left
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def _complain(self, said: _Said) -> NoReturn:
        text = said.text.lower()
        if is_plan_limit(text):
            now = self._clock()
            reset = resets_at(said.text, now)
            wait = (reset - now).total_seconds() if reset else _UNTIL_TRIED
            raise self._failed(Failure.PLAN_LIMIT, said.text, usage=said.usage, retry_after=wait)
        failure = next((kind for kind, signs in _SIGNS if re.search(signs, text)), Failure.UNAVAILABLE)
        hint = f"Does `{self._program}` work when you start it yourself?" if failure is Failure.REJECTED else ""
        message = said.text or f"ended with status {said.status}"
        raise self._failed(failure, message, usage=said.usage, hint=hint)

    def _failed(
        self,
        failure: Failure,
        message: str,
        *,
        usage: Usage | None = None,
        hint: str = "",
        retry_after: float | None = None,
    ) -> ModelFailed:
        told = shown_message(f"{self.name}: {message}")
        return ModelFailed(failure, told, usage=usage or Usage(), retry_after=retry_after, hint=hint)


def _claude(status: int, output: str, errors: str, prompt: str) -> _Said:
    """One JSON object: `result`, `is_error`, `api_error_status`, `usage`, `total_cost_usd`. Cached input is input; what
    it counts as none is estimated."""
    result = next(_objects(output), None)
    if result is None:
        return _Said(status or 1, errors or output, Usage(1))
    counts = result.get("usage")
    used = {key: n for key, n in counts.items() if is_count(n)} if isinstance(counts, dict) else {}
    cost, failed = result.get("total_cost_usd"), bool(status or result.get("is_error"))
    told = sum(used.get(f"{kind}input_tokens", 0) for kind in ("", "cache_creation_", "cache_read_"))
    written = used.get("output_tokens", 0)
    if not told and not failed:
        told, written = estimate_tokens(prompt), estimate_tokens(str(result.get("result") or ""))
    dollars = float(cost) if isinstance(cost, int | float) and 0 <= cost < MOST_COUNTED else 0.0
    usage = Usage(1, told, written, dollars)
    if failed:
        return _Said(status or 1, f"{result.get('api_error_status') or ''} {result.get('result') or errors}", usage)
    return _Said(0, str(result.get("result") or ""), usage)


def _codex(status: int, answer: str, errors: str, prompt: str) -> _Said:
    """Its standard error repeats the prompt, so only the lines that begin with ERROR are a complaint."""
    usage = Usage(1, estimate_tokens(prompt), estimate_tokens(answer)) if answer else Usage(1)
    complaints = [line for line in errors.splitlines() if line.lower().startswith("error")]
    failed = status or int(not answer)
    return _Said(failed, "\n".join(complaints[-3:]) if failed else answer, usage)


def _read(file: Path) -> str:
    if not file.exists():
        return ""
    with file.open(encoding="utf-8", errors="replace") as text:
        return text.read(_LONGEST_OUTPUT)


def _objects(text: str) -> Iterator[dict[str, Any]]:
    """The JSON objects in a text, one after the other, whatever stands around them."""
    decoder = json.JSONDecoder()
    at = text.find("{")
    while at >= 0:
        try:
            found, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            end = at + 1
        else:
            yield found
        at = text.find("{", end)
