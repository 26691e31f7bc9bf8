"""Models over real HTTP, in all three dialects, and as programs: what they are sent, what comes back, what fails."""

from __future__ import annotations

import gc
import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from recollect import config
from recollect.config import Settings
from recollect.models.agent_cli import AgentCli
from recollect.models.base import Failure, LanguageModel, Limits, ModelFailed, ToolRefused, Usage
from recollect.models.choose import language_model
from recollect.models.plan_limit import is_plan_limit, resets_at
from recollect.models.providers import Provider
from tests.model_server import (
    Answer,
    Drop,
    HalfJson,
    ModelServer,
    Nonsense,
    RateLimit,
    Refusal,
    Reply,
    Request,
    Script,
    Spent,
    Stall,
    Status,
    ToolCall,
    Trickle,
    Truncated,
)

pytestmark = pytest.mark.usefixtures("plain_http")
CHAT, RESPONSES, ANTHROPIC = "openai:gpt-4o-mini", "openai-responses:gpt-4o-mini", "anthropic:claude-haiku-4-5"
LOCAL = "openai:llama3.2"
DIALECTS = pytest.mark.parametrize("name", [CHAT, RESPONSES, ANTHROPIC])
TOKEN = "ghp_" + "k3V9qLz0TtR7mYb2XwN8aHc5PdJ1fGs6UeQ4"
KEY = "gateway-word-of-ada"  # without a shape that would give it away
WAYS = {"OPENAI_API_KEY": KEY, "ANTHROPIC_API_KEY": KEY}
TEA = {"title": "Tea", "count": 5}
DEADLINE = 2.0  # seconds: long enough for a busy machine to send a request,
LATE = 10.0  # and this is not the deadline, but less than any server here stalls for


class Note(BaseModel):
    title: str
    count: int


def settings(home: Path, environ: dict[str, str] | None = None, **flags: Any) -> Settings:
    environ = WAYS if environ is None else environ
    return config.load({"HOME": str(home), **environ}, home=home / ".recollect", flags=flags)


def provider(server: ModelServer, name: str, environ: dict[str, str] | None = None, **flags: Any) -> Provider:
    flags = {"model_url": server.url_for(name), **flags}
    return Provider(settings(Path("/nowhere"), environ, **flags), name)


def ask(model: LanguageModel, *, seconds: float = 10.0) -> Any:
    return model.answer("Be brief.", "Tea at five.", Note, seconds=seconds)


def fail(model: LanguageModel, *, seconds: float = 10.0) -> ModelFailed:
    with pytest.raises(ModelFailed) as caught:
        ask(model, seconds=seconds)
    return caught.value


def fail_at(name: str, script: Script, **flags: Any) -> tuple[ModelFailed, list[Request]]:
    with ModelServer(script) as server:
        return fail(provider(server, name, **flags)), server.requests


# ---- Answers ---------------------------------------------------------------------------------------------------------


@DIALECTS
def test_an_answer_is_validated_and_paid_for(name: str) -> None:
    with ModelServer(Answer(TEA, Spent(1_000, 200))) as server:
        answer = ask(provider(server, name))
    assert answer.value == Note(title="Tea", count=5)
    assert (answer.usage.requests, answer.usage.input_tokens, answer.usage.output_tokens) == (1, 1_000, 200)
    assert answer.usage.cost > 0  # the offline table knows these models


@DIALECTS
def test_instructions_content_and_schema_travel_apart(name: str) -> None:
    with ModelServer(Answer(TEA)) as server:
        ask(provider(server, name, model_output_tokens=777))
    (request,) = server.requests
    assert "Be brief." in request.system and "Tea at five." not in request.system
    assert request.user == "Tea at five."
    assert request.schema is not None and set(request.schema["properties"]) == {"title", "count"}
    assert request.key == KEY
    assert request.body["temperature"] == 0
    assert 777 in request.body.values()


@DIALECTS
def test_text_that_is_no_unicode_is_sent_all_the_same(name: str) -> None:
    with ModelServer(Answer(TEA)) as server:
        provider(server, name).answer("Be brief.", "Tea \ud83d at five.", Note, seconds=10)
    assert server.requests[0].user == "Tea ? at five."


def test_the_limit_of_tokens_has_the_name_that_the_server_knows() -> None:
    with ModelServer(Answer(TEA)) as server:
        ask(provider(server, LOCAL))
        ask(provider(server, "openai:gpt-5-mini"))
    local, reasoning = server.requests
    assert "max_tokens" in local.body and "max_completion_tokens" not in local.body
    assert "max_completion_tokens" in reasoning.body and "temperature" not in reasoning.body


def test_openai_is_asked_to_store_nothing() -> None:
    with ModelServer(Answer(TEA)) as server:
        ask(provider(server, RESPONSES))
    assert server.requests[0].body["store"] is False


@pytest.mark.parametrize("name", [LOCAL, RESPONSES])
def test_a_server_without_response_formats_is_asked_in_words_from_then_on(name: str) -> None:
    def script(request: Request) -> Reply:
        return Status(400, body="'response_format' is not supported") if request.schema else Answer(f"```\n{text}\n```")

    text = json.dumps(TEA)
    with ModelServer(script) as server:
        first = ask(provider(server, name))
        second = ask(provider(server, name))
    assert first.value == second.value == Note(title="Tea", count=5)
    assert (first.usage.requests, second.usage.requests) == (2, 1)
    assert '"count"' in server.requests[-1].system and server.requests[-1].user == "Tea at five."


@DIALECTS
def test_an_answer_that_does_not_fit_may_be_corrected_once(name: str) -> None:
    with ModelServer([Answer({"title": "Tea"}), Answer(TEA)]) as server:
        answer = ask(provider(server, name))
    assert answer.value.count == 5
    assert (answer.usage.requests, answer.usage.tokens) == (2, 240)


@DIALECTS
def test_configured_prices_come_before_the_table(name: str) -> None:
    with ModelServer(Answer(TEA, Spent(1_000_000, 100_000))) as server:
        known = ask(provider(server, name)).usage.cost
        both = ask(provider(server, name, model_input_price=3.0, model_output_price=20.0)).usage.cost
        one = ask(provider(server, name, model_input_price=3.0)).usage.cost
    assert both == pytest.approx(5.0)
    assert 3.0 < one < 3.0 + known


def test_a_model_without_a_known_price_costs_nothing() -> None:
    with ModelServer(Answer(TEA)) as server:
        assert ask(provider(server, LOCAL)).usage == Usage(1, 100, 20, 0.0)


@DIALECTS
@pytest.mark.parametrize("told", [None, Spent(0, 0), Spent(10**30, 10**30)])
def test_tokens_are_estimated_where_the_server_does_not_count(name: str, told: Spent | None) -> None:
    with ModelServer(Answer(TEA, usage=told)) as server:
        usage = ask(provider(server, name)).usage
    assert 5 <= usage.input_tokens <= 120
    assert 5 <= usage.output_tokens <= 20 and usage.cost < 0.01


@DIALECTS
def test_many_threads_share_one_model(name: str) -> None:
    def script(request: Request) -> Reply:
        meeting.wait(5)  # all are on their way at the same time
        return Answer({"title": request.user, "count": 1})

    meeting = threading.Barrier(8)
    with ModelServer(script) as server, ThreadPoolExecutor(8) as pool:
        model = provider(server, name)
        texts = [f"text {n}" for n in range(8)]
        answers = list(pool.map(lambda text: model.answer("Copy.", text, Note, seconds=10), texts))
    assert [answer.value.title for answer in answers] == texts
    assert all(answer.usage.requests == 1 for answer in answers)


# ---- Failures --------------------------------------------------------------------------------------------------------


@DIALECTS
@pytest.mark.parametrize("reply", [Stall(), Stall(where="body"), Trickle()], ids=["headers", "body", "trickle"])
def test_the_deadline_holds_wherever_the_server_stalls(name: str, reply: Reply) -> None:
    with ModelServer(reply) as server:
        model = provider(server, name)
        began = time.monotonic()
        error = fail(model, seconds=DEADLINE)
        took = time.monotonic() - began
    assert error.failure is Failure.TIMEOUT and f"{DEADLINE:g} s" in error.message
    assert DEADLINE - 0.05 < took < LATE
    assert len(server.requests) == error.usage.requests == 1


def test_the_deadline_holds_when_a_second_request_is_needed() -> None:
    with ModelServer([Answer("no JSON"), Stall()]) as server:
        began = time.monotonic()
        error = fail(provider(server, CHAT), seconds=DEADLINE)
    assert time.monotonic() - began < LATE
    assert error.failure is Failure.TIMEOUT
    assert (error.usage.requests, error.usage.tokens) == (2, 120)


@DIALECTS
def test_the_deadline_holds_when_encryption_is_never_agreed(name: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"https://127.0.0.1:{silent.getsockname()[1]}/v1"
        model = Provider(settings(Path("/nowhere"), model_url=url), name)
        began = time.monotonic()
        error = fail(model, seconds=0.5)
        assert time.monotonic() - began < LATE
    gc.collect()  # a connection that was left open would be found now
    assert error.failure is Failure.TIMEOUT


def test_the_deadline_holds_when_the_name_of_the_host_is_not_found_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    over = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: over.wait(30))
    model = Provider(settings(Path("/nowhere"), model_url="http://models.example/v1"), CHAT)
    began = time.monotonic()
    assert fail(model, seconds=0.5).failure is Failure.TIMEOUT
    assert time.monotonic() - began < LATE
    over.set()


@DIALECTS
@pytest.mark.parametrize(
    "reply, failure",
    [
        (Status(400), Failure.REJECTED),
        (Status(401), Failure.REJECTED),
        (Status(403), Failure.REJECTED),
        (Status(404), Failure.REJECTED),
        (Status(302, {"Location": "http://127.0.0.1:1/"}, body={}), Failure.REJECTED),
        (Status(400, body="This model's maximum context length is 8192 tokens."), Failure.TOO_LONG),
        (Status(400, body="prompt is too long: 210000 tokens > 200000 maximum"), Failure.TOO_LONG),
        (Status(400, body="the request exceeds the available context size"), Failure.TOO_LONG),
        (Status(413, body="too many tokens"), Failure.TOO_LONG),
        (
            Status(400, body="The input token count (9) exceeds the maximum number of tokens allowed (8)."),
            Failure.TOO_LONG,
        ),
        (Status(400, body="This model's maximum prompt length is 8 but the request contains 9."), Failure.TOO_LONG),
        (Status(400, body={"error": {"message": "No.", "code": "context_length_exceeded"}}), Failure.TOO_LONG),
        (Status(429, body="Request too large: Limit 30000, Requested 50000."), Failure.TOO_LONG),
        (Status(400, body="max_tokens is too large: 9"), Failure.REJECTED),
        (Status(500), Failure.UNAVAILABLE),
        (Status(503), Failure.UNAVAILABLE),
        (Status(529), Failure.UNAVAILABLE),
        (Drop(), Failure.UNAVAILABLE),
        (Drop("body"), Failure.UNAVAILABLE),
        (RateLimit(), Failure.RATE_LIMITED),
        (Nonsense(), Failure.INVALID),
        (Status(200, body={"surprise": True}), Failure.INVALID),
        (Status(200, body={"choices": [], "content": 7, "output": None}), Failure.INVALID),
        (Truncated(), Failure.CUT_OFF),
        (Refusal(), Failure.INVALID),
    ],
    ids=str,
)
def test_a_failure_has_its_kind_and_costs_one_request(name: str, reply: Reply, failure: Failure) -> None:
    error, requests = fail_at(name, reply)
    assert error.failure is failure
    assert error.permanent is (failure in (Failure.REJECTED, Failure.CUT_OFF))
    assert len(requests) == error.usage.requests == 1
    assert error.message.startswith(f"{name}: ")


@DIALECTS
@pytest.mark.parametrize("reply", [Answer("no JSON"), Answer(""), HalfJson(), Answer({"title": [1]})], ids=str)
def test_an_answer_that_never_fits_is_invalid_and_paid_for(name: str, reply: Reply) -> None:
    error, requests = fail_at(name, reply)
    assert error.failure is Failure.INVALID
    assert len(requests) == error.usage.requests == 2
    assert error.usage.tokens == 240 and error.usage.cost > 0


@DIALECTS
def test_an_answer_that_the_server_does_not_want_back_is_invalid(name: str) -> None:
    error, _ = fail_at(name, [Answer("no JSON"), Status(400, body="Cannot determine type of 'item'")])
    assert error.failure is Failure.INVALID  # not REJECTED: another text may do
    assert (error.usage.requests, error.usage.tokens) == (2, 120)


@DIALECTS
def test_a_truncated_answer_says_where_it_was_cut_off(name: str) -> None:
    error, _ = fail_at(name, Truncated(), model_output_tokens=333)
    assert "cut off at 333 tokens" in error.message
    assert error.usage.tokens == 120


@DIALECTS
def test_a_mismatch_is_named_but_not_quoted(name: str) -> None:
    error, _ = fail_at(name, Answer({"title": "my diary", "count": "many-of-them"}))
    assert "count: " in error.message and "many-of-them" not in error.message


@DIALECTS
@pytest.mark.parametrize("as_date", [False, True], ids=["seconds", "date"])
def test_a_rate_limit_says_how_long_to_wait(name: str, as_date: bool) -> None:
    error, _ = fail_at(name, RateLimit(90, as_date))
    assert error.failure is Failure.RATE_LIMITED
    assert error.retry_after is not None and 85 <= error.retry_after <= 90


@DIALECTS
def test_a_reply_that_does_not_end_is_not_read_to_its_end(name: str) -> None:
    error, _ = fail_at(name, Nonsense(" " * 33 * 1024 * 1024))
    assert error.failure is Failure.UNAVAILABLE and "the reply has more than" in error.message


def test_nobody_listens() -> None:
    with ModelServer([]) as server:
        model = provider(server, CHAT)
    error = fail(model)
    assert error.failure is Failure.UNAVAILABLE
    assert server.url in error.hint


@DIALECTS
def test_a_key_never_gets_into_a_message(name: str) -> None:
    error, requests = fail_at(name, Status(401, body=f"Refused {KEY} and {TOKEN} " + "x" * 900))
    assert requests[0].key == KEY
    shown = f"{error} {error.hint} {error!r} {error.__cause__!r}"
    assert KEY not in shown and TOKEN not in shown
    assert len(error.message) <= 300


def test_a_password_in_the_url_never_gets_into_a_hint() -> None:
    with ModelServer(Status(404)) as server:
        url = server.url_for(CHAT).replace("http://", "http://ada:Hunter2secret@")
        error = fail(provider(server, CHAT, model_url=url))
    assert error.failure is Failure.REJECTED
    assert "Hunter2secret" not in f"{error} {error.hint}"


@pytest.mark.parametrize(
    "name, flags, variable",
    [
        (CHAT, {}, "OPENAI_API_KEY"),
        (RESPONSES, {}, "OPENAI_API_KEY"),
        (ANTHROPIC, {}, "ANTHROPIC_API_KEY"),
        (CHAT, {"model_key_variable": "WORK_KEY"}, "WORK_KEY"),
    ],
)
def test_without_a_key_nothing_is_sent_to_the_provider(name: str, flags: dict[str, Any], variable: str) -> None:
    error = fail(Provider(settings(Path("/nowhere"), {}, **flags), name))
    assert error.failure is Failure.REJECTED
    assert error.usage == Usage()
    assert variable in error.hint


@DIALECTS
def test_a_refused_key_names_its_variable(name: str) -> None:
    with ModelServer(Status(401)) as server:
        error = fail(provider(server, name, {"WORK_KEY": KEY}, model_key_variable="WORK_KEY"))
    assert server.requests[0].key == KEY
    assert "WORK_KEY" in error.hint


@DIALECTS
def test_a_server_of_ones_own_needs_no_key(name: str) -> None:
    with ModelServer(Answer(TEA)) as server:
        assert ask(provider(server, name, {})).value.count == 5
    assert server.requests[0].key == "none"


@pytest.mark.parametrize("environ", [{"OPENAI_API_KEY": "sk\n12"}, {"OPENAI_API_KEY": "schlüssel"}], ids=str)
def test_a_key_that_cannot_be_one_is_not_sent(environ: dict[str, str]) -> None:
    error = fail(Provider(settings(Path("/nowhere"), environ), CHAT))
    assert error.failure is Failure.REJECTED and "OPENAI_API_KEY" in error.hint


@pytest.mark.parametrize("url", ["127.0.0.1:11434", "ftp://models.example", "http://", "http://[::1", "http://a:port"])
def test_an_address_that_is_none_is_refused(url: str) -> None:
    error = fail(Provider(settings(Path("/nowhere"), model_url=url), CHAT))
    assert error.failure is Failure.REJECTED and "model_url" in error.hint


def test_proxies_of_the_environment_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("HTTP_PROXY", "ALL_PROXY", "http_proxy"):
        monkeypatch.setenv(variable, "http://127.0.0.1:9")
    with ModelServer(Answer(TEA)) as server:
        assert ask(provider(server, CHAT)).value.count == 5


@pytest.mark.parametrize(
    "url, paid",
    [
        ("", True),
        ("https://models.example/v1", True),
        ("http://127.0.0.1:11434/v1", False),
        ("http://localhost:8000/v1/", False),
        ("http://[::1]:8000/v1", False),
    ],
)
def test_only_a_model_on_this_machine_is_free(url: str, paid: bool) -> None:
    assert Provider(settings(Path("/nowhere"), model_url=url), CHAT).paid is paid


# ---- Agents ----------------------------------------------------------------------------------------------------------


class Shelf:
    """Something that a model may look at, but only in part."""

    def __init__(self) -> None:
        self.threads: list[str] = []

    def read(self, name: str, lines: int = 10) -> str:
        """Reads a note.

        Args:
            name: Which note.
            lines: How many lines of it.
        """
        self.threads.append(threading.current_thread().name)
        if name.startswith(".."):
            raise ToolRefused(f"{name} is outside")
        return f"{name}: {lines} lines"


LIMITS = Limits(seconds=10, requests=6, tokens=10_000)


@DIALECTS
def test_an_agent_uses_tools_until_it_is_done(name: str) -> None:
    shelf = Shelf()
    script: list[Reply] = [
        ToolCall("read", {"name": "tea"}),
        ToolCall("read", {"name": "cake", "lines": 2}),
        Answer("Done."),
    ]
    with ModelServer(script) as server:
        answer = provider(server, name).work("Look around.", "Shelf 3.", [shelf.read], LIMITS)
    assert answer.value == "Done."
    assert answer.usage.requests == 3 and answer.usage.tokens == 360
    assert server.requests[2].tool_results == ["tea: 10 lines", "cake: 2 lines"]
    assert server.requests[0].user == "Shelf 3."
    schema = server.requests[0].tools["read"]
    assert schema["properties"]["name"]["description"] == "Which note." and schema["required"] == ["name"]
    assert set(shelf.threads) == {threading.current_thread().name}


@DIALECTS
def test_an_agent_is_told_what_was_refused(name: str) -> None:
    script: list[Reply] = [ToolCall("read", {"name": "../etc"}), ToolCall("read", {"lines": 2}), Answer("Sorry.")]
    with ModelServer(script) as server:
        answer = provider(server, name).work("Look.", "Shelf 3.", [Shelf().read], LIMITS)
    refused, mistaken = server.requests[2].tool_results
    assert "../etc is outside" in refused
    assert "name" in mistaken
    assert answer.value == "Sorry."


@DIALECTS
@pytest.mark.parametrize("limits", [Limits(10, requests=3), Limits(10, tokens=300)], ids=["requests", "tokens"])
def test_an_agent_stops_at_its_caps(name: str, limits: Limits) -> None:
    with ModelServer(ToolCall("read", {"name": "../etc"})) as server, pytest.raises(ModelFailed) as caught:
        provider(server, name).work("Look.", "Shelf 3.", [Shelf().read], limits)
    assert caught.value.failure is Failure.EXHAUSTED
    assert len(server.requests) == caught.value.usage.requests == 3
    assert caught.value.usage.tokens == 360


@DIALECTS
def test_an_agent_stops_at_its_deadline(name: str) -> None:
    script: list[Reply] = [ToolCall("read", {"name": "tea"}), Stall()]
    with ModelServer(script) as server, pytest.raises(ModelFailed) as caught:
        model = provider(server, name)
        began = time.monotonic()
        model.work("Look.", "Shelf 3.", [Shelf().read], Limits(seconds=2))
    assert time.monotonic() - began < LATE
    assert caught.value.failure is Failure.TIMEOUT
    assert caught.value.usage.tokens == 120


def test_a_mistake_in_a_tool_is_not_taken_for_one_of_the_model() -> None:
    def broken(name: str) -> str:
        raise KeyError(name)

    with ModelServer(ToolCall("broken", {"name": "tea"})) as server, pytest.raises(KeyError):
        provider(server, CHAT).work("Look.", "Shelf 3.", [broken], LIMITS)


# ---- Programs --------------------------------------------------------------------------------------------------------

CLAUDE = """\
import json, os, sys
seen = {"arguments": sys.argv[1:], "prompt": sys.stdin.read(), "bypass": os.environ.get("RECOLLECT_BYPASS"),
        "cwd": os.getcwd(), "leader": os.getpid() == os.getpgid(0), "mine": os.environ.get("MINE"),
        "inside": os.environ.get("CLAUDECODE")}
open(os.environ["SEEN"], "w").write(json.dumps(seen))
"""
REPLY = """\
print(json.dumps({"type": "result", "is_error": False, "result": RESULT, "total_cost_usd": 0.25, "usage":
    {"input_tokens": 10, "cache_creation_input_tokens": 20, "cache_read_input_tokens": 70, "output_tokens": 5}}))
"""
CODEX = "open(sys.argv[sys.argv.index('--output-last-message') + 1], 'w').write(RESULT)\n"
FENCED = "Here it is:\n```json\n" + json.dumps(TEA) + "\n```\nAnything {else}?"


@pytest.fixture
def install(tmp_path: Path) -> Callable[[str, str], AgentCli]:
    """Puts a program of that name on the PATH of a model."""

    def write(name: str, source: str) -> AgentCli:
        program = tmp_path / "bin" / name
        program.parent.mkdir(exist_ok=True)
        program.write_text(f"#!{sys.executable}\n{CLAUDE}{source}")
        program.chmod(0o755)
        environ = {"PATH": str(program.parent), "SEEN": str(tmp_path / "seen"), "MINE": "yes", "CLAUDECODE": "1"}
        return AgentCli(settings(tmp_path, environ), f"cli:{name}")

    return write


def seen(tmp_path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((tmp_path / "seen").read_text())
    return found


SKETCH = f'A sketch: {{"title": "Coffee", "count": 1}}, no: {json.dumps(TEA)} {{"no": 1}}'


@pytest.mark.parametrize("result", [json.dumps(TEA), FENCED, SKETCH])
def test_claude_answers(install: Callable[[str, str], AgentCli], tmp_path: Path, result: str) -> None:
    model = install("claude", f"RESULT = {result!r}\n{REPLY}")
    answer = ask(model)
    assert answer.value == Note(title="Tea", count=5)
    assert answer.usage == Usage(1, 100, 5, 0.25)
    told = seen(tmp_path)
    assert told["bypass"] == "1" and told["mine"] == "yes" and told["leader"]
    assert told["inside"] is None  # an agent refuses to start where it believes to be in another's session
    assert told["cwd"] == str(tmp_path / ".recollect" / "agent-cli")
    assert "Tea at five." in told["prompt"] and "Be brief." in told["prompt"] and '"count"' in told["prompt"]
    assert "Tea at five." not in " ".join(told["arguments"])
    arguments = told["arguments"]
    assert arguments[arguments.index("--tools") + 1] == "" == arguments[arguments.index("--setting-sources") + 1]
    assert "--strict-mcp-config" in arguments and "--no-session-persistence" in arguments
    folder = tmp_path / ".recollect" / "agent-cli"
    assert folder.stat().st_mode & 0o777 == 0o700 and list(folder.iterdir()) == []
    assert model.paid and not model.has_tools


@pytest.mark.parametrize("told", ["0", "10**30", "-7", "'many'", "True"])
def test_numbers_that_cannot_be_are_not_believed(install: Callable[[str, str], AgentCli], told: str) -> None:
    source = f"""usage = dict.fromkeys(("input_tokens", "output_tokens"), {told})
print(json.dumps({{"result": {json.dumps(TEA)!r}, "total_cost_usd": float("nan"), "usage": usage}}))
"""
    usage = ask(install("claude", source)).usage
    assert 50 < usage.input_tokens < 200 and 5 <= usage.output_tokens <= 20 and usage.cost == 0


def test_codex_answers(install: Callable[[str, str], AgentCli], tmp_path: Path) -> None:
    answer = ask(install("codex", f"RESULT = {FENCED!r}\n{CODEX}"))
    assert answer.value == Note(title="Tea", count=5)
    told = seen(tmp_path)
    assert told["arguments"][:3] == ["exec", "--sandbox", "read-only"] and told["arguments"][-1] == "-"
    assert "features.shell_tool=false" in told["arguments"] and "--ephemeral" in told["arguments"]
    assert told["bypass"] == "1"
    assert answer.usage.requests == 1
    assert answer.usage.input_tokens == -(-len(told["prompt"].encode()) * 2 // 7)
    assert answer.usage.output_tokens == -(-len(FENCED.encode()) * 2 // 7)
    assert list((tmp_path / ".recollect" / "agent-cli").iterdir()) == []


@pytest.mark.parametrize(
    "result, status, failure",
    [
        ("Not logged in · Please run /login", 1, Failure.REJECTED),
        ("Claude usage limit reached", 1, Failure.PLAN_LIMIT),
        ("You've hit your session limit · resets 3pm (Europe/Paris)", 0, Failure.PLAN_LIMIT),
        ("429 too many requests", 1, Failure.RATE_LIMITED),
        ("Prompt is too long", 1, Failure.TOO_LONG),
        ("API Error: 529 overloaded, request 14010", 1, Failure.UNAVAILABLE),
        ("There is no JSON here", 0, Failure.INVALID),
        ('{"title": "Tea"}', 0, Failure.INVALID),
        ('{"title": "Te', 0, Failure.INVALID),
        ("", 0, Failure.INVALID),
    ],
)
@pytest.mark.parametrize("name", ["claude", "codex"])
def test_a_program_fails(
    install: Callable[[str, str], AgentCli], name: str, result: str, status: int, failure: Failure
) -> None:
    if name == "codex" and (status or not result):
        source = f"print('user: secret plans', file=sys.stderr); print('ERROR: ' + {result!r}, file=sys.stderr)\n"
        failure = failure if status else Failure.UNAVAILABLE  # it said nothing at all
    else:
        source = f"RESULT = {result!r}\n" + (CODEX if name == "codex" else REPLY)
    error = fail(install(name, f"{source}sys.exit({status})"))
    assert error.failure is failure
    assert error.usage.requests == 1 and "secret plans" not in error.message
    if name == "claude":
        assert error.usage.tokens == 105


NOW = datetime(2026, 7, 4, 15, 20, tzinfo=UTC)


@pytest.mark.parametrize(
    ("said", "reset"),
    [
        ("Claude AI usage limit reached|1783194000", "2026-07-04T19:40"),
        ("You've hit your session limit · resets 7:50pm (Europe/Paris)", "2026-07-04T17:50"),
        ("You've hit your limit · resets 3am (America/Los_Angeles)", "2026-07-05T10:00"),
        ("You've hit your weekly limit · resets Jul 11 at 12pm (Asia/Singapore)", "2026-07-11T04:00"),
        ("You've hit your Opus limit · resets Mon 9am (UTC)", "2026-07-06T09:00"),
        ("You've hit your weekly limit · resets Jan 2, 9am (UTC)", "2027-01-02T09:00"),
        ("Claude usage limit reached. Your limit will reset at 5pm (Asia/Riyadh).", "2026-07-05T14:00"),
        ("You've hit your limit · resets 6:10pm (Asia/Riyadh)", ""),
        ("You've hit your limit · resets 25pm (Nowhere/Else)", ""),
        ("You've hit your usage limit.", ""),
        ("You've hit your usage limit. Upgrade to Plus, or try again at Jul 5th, 2026 8:19 PM.", "2026-07-05T20:19"),
        (
            "You've hit your usage limit. Visit the page to purchase credits or try again at 3:28 PM.",
            "2026-07-04T15:28",
        ),
        ("You've hit your usage limit. Try again in 3 days 6 hours 8 minutes.", "2026-07-07T21:28"),
    ],
)
def test_a_plans_limit_tells_when_it_resets(said: str, reset: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As Claude Code and Codex were seen to say it. What has passed, or is no time, is not told."""
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    found = resets_at(said, NOW)
    assert is_plan_limit(said) and (found.isoformat()[:16] if found else "") == reset


@pytest.mark.parametrize("said", ["Rate limit exceeded", "Prompt is too long", "the limit of the array was reached"])
def test_other_limits_are_no_plans_limit(said: str) -> None:
    assert not is_plan_limit(said)


def test_a_plans_limit_says_how_long_to_wait(install: Callable[[str, str], AgentCli]) -> None:
    told = int(time.time()) + 1800
    model = install("claude", f"RESULT = 'Claude AI usage limit reached|{told}'\n{REPLY}sys.exit(1)")
    assert 1790 < (fail(model).retry_after or 0) <= 1800
    model = install("claude", f"RESULT = 'You have hit your session limit'\n{REPLY}sys.exit(1)")
    assert fail(model).retry_after == 3600


def test_a_program_that_does_not_know_our_flags_is_told_apart(install: Callable[[str, str], AgentCli]) -> None:
    error = fail(install("claude", """sys.exit("error: unknown option '--tools'")"""))
    assert error.failure is Failure.REJECTED and "--tools" in error.message and "claude" in error.hint


def test_a_missing_program_is_named(tmp_path: Path) -> None:
    error = fail(AgentCli(settings(tmp_path, {"PATH": str(tmp_path)}), "cli:codex"))
    assert error.failure is Failure.REJECTED and "codex" in error.hint
    assert not (tmp_path / ".recollect").exists()


def test_a_program_says_no_secret(install: Callable[[str, str], AgentCli]) -> None:
    error = fail(install("claude", f"sys.exit('no way with {TOKEN} ' + 'x' * 900)"))
    assert TOKEN not in f"{error} {error.hint}" and len(error.message) <= 300


def test_a_program_is_ended_with_its_children_at_the_deadline(
    install: Callable[[str, str], AgentCli], tmp_path: Path
) -> None:
    source = f"""
import subprocess, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
open({str(tmp_path / "pids")!r}, "w").write(f"{{os.getpid()}} {{child.pid}}")
time.sleep(60)
"""
    model = install("claude", source)
    began = time.monotonic()
    error = fail(model, seconds=DEADLINE)
    assert time.monotonic() - began < LATE
    assert error.failure is Failure.TIMEOUT
    for pid in map(int, (tmp_path / "pids").read_text().split()):
        assert is_gone(pid)
    assert list((tmp_path / ".recollect" / "agent-cli").iterdir()) == []


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_a_program_that_talks_without_end_does_not_fill_the_disk(
    install: Callable[[str, str], AgentCli], stream: str
) -> None:
    began = time.monotonic()
    error = fail(install("claude", f"while True: sys.{stream}.write('x' * 2**20)"), seconds=60.0)
    assert time.monotonic() - began < 30 and error.failure is Failure.INVALID and error.usage.requests == 1


def test_a_program_leaves_no_child_behind_when_it_ends_by_itself(
    install: Callable[[str, str], AgentCli], tmp_path: Path
) -> None:
    source = f"""
import subprocess
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
open({str(tmp_path / "pids")!r}, "w").write(str(child.pid))
RESULT = {json.dumps(TEA)!r}
{REPLY}"""
    assert ask(install("claude", source)).value.title == "Tea"
    assert is_gone(int((tmp_path / "pids").read_text()))


def test_a_program_ends_when_we_are_killed(tmp_path: Path) -> None:
    program, pids = tmp_path / "bin" / "claude", tmp_path / "pids"
    program.parent.mkdir()
    program.write_text(f"""#!{sys.executable}
import os, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
with open({str(pids)!r} + ".new", "w") as file:
    file.write(f"{{os.getpid()}} {{child.pid}} {{len(sys.stdin.read())}}")
os.rename(file.name, {str(pids)!r})
time.sleep(60)
""")
    program.chmod(0o755)
    asking = """
from tests.test_models import AgentCli, Path, ask, settings, sys
ask(AgentCli(settings(Path(sys.argv[1]), {"PATH": sys.argv[1] + "/bin"}), "cli:claude"), seconds=60.0)
"""
    with subprocess.Popen([sys.executable, "-c", asking, str(tmp_path)], cwd=Path(__file__).parent.parent) as asker:
        for _ in range(1000):
            if pids.exists() or asker.poll() is not None:
                break
            time.sleep(0.02)
        *running, length = map(int, pids.read_text().split())
        assert length > 100 and not any(has_ended(pid) for pid in running)
        asker.kill()
    assert all(is_gone(pid) for pid in running)


@pytest.mark.parametrize("text", ["#!/nowhere/python\n", "\0\0"])
def test_a_program_that_does_not_start_is_told_apart(
    install: Callable[[str, str], AgentCli], tmp_path: Path, text: str
) -> None:
    model = install("claude", "")
    (tmp_path / "bin" / "claude").write_text(text)
    error = fail(model)
    assert error.failure is Failure.REJECTED and "does not start" in error.message


def is_gone(pid: int) -> bool:
    """Ended, though nobody may have collected it yet: an orphan waits for the first process of the machine."""
    for _ in range(100):
        if has_ended(pid):
            return True
        time.sleep(0.01)
    return False


def has_ended(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (ProcessLookupError, FileNotFoundError):
        return True


def test_a_program_gets_no_tools_of_ours(tmp_path: Path) -> None:
    with pytest.raises(ModelFailed) as caught:
        AgentCli(settings(tmp_path), "cli:claude").work("Look.", "Shelf 3.", [Shelf().read], LIMITS)
    assert caught.value.failure is Failure.REJECTED and "consolidation_model" in caught.value.hint


# ---- The choice ------------------------------------------------------------------------------------------------------


def test_a_name_leads_to_its_model(tmp_path: Path) -> None:
    chosen = settings(tmp_path)
    assert language_model(chosen, "offline") is None
    assert isinstance(language_model(chosen, "cli:codex"), AgentCli)
    model = language_model(chosen, ANTHROPIC)
    assert isinstance(model, Provider) and model.name == ANTHROPIC and model.has_tools


def test_choosing_imports_no_client_before_it_is_needed() -> None:
    program = (
        "import sys, recollect.models.choose\n"
        "slow = {'pydantic', 'pydantic_ai', 'openai', 'anthropic', 'httpx2', 'genai_prices'} & set(sys.modules)\n"
        "sys.exit(str(slow) if slow else 0)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
