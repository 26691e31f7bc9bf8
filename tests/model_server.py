"""A model server that does what a test tells it: real HTTP on 127.0.0.1, three dialects, no intelligence.

    with ModelServer(Answer({"title": "Tea"})) as server:
        ...                       # point `model_url` at server.url_for("openai:any")
    assert server.requests[0].user == "the text that was sent"

A script is one reply for every request, a list of replies (a request too many gets status 599), or a function from
Request to Reply; it may be called from several threads at once. The dialect is told by the path: OpenAI chat
completions, OpenAI responses, Anthropic messages. Nothing is streamed; a client that asks for it gets status 400.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar, Literal, Self

OUTPUT_TOOL = "final_result"  # the tool by which a model that has no response format hands in its answer
Dialect = Literal["chat", "responses", "messages"]
PATHS: dict[str, Dialect] = {
    "/v1/chat/completions": "chat",
    "/v1/responses": "responses",
    "/v1/messages": "messages",
}


# ---- What the client sent --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Request:
    """One request as it arrived."""

    path: str
    headers: dict[str, str]  # names in lower case
    body: dict[str, Any]

    @property
    def dialect(self) -> Dialect:
        return PATHS[self.path]

    @property
    def key(self) -> str:
        """The API key that came with it."""
        return self.headers.get("x-api-key") or self.headers.get("authorization", "").removeprefix("Bearer ")

    @property
    def system(self) -> str:
        """Instructions."""
        if self.dialect == "messages":
            return _text(self.body.get("system", ""))
        spoken = [m for m in self._messages if m.get("role") in ("system", "developer")]
        return "\n".join([self.body.get("instructions") or "", *(_text(m["content"]) for m in spoken)]).strip()

    @property
    def user(self) -> str:
        """What the user said first: the content the model was asked about."""
        return next(_text(m["content"]) for m in self._messages if m.get("role") == "user")

    @property
    def schema(self) -> dict[str, Any] | None:
        """The JSON schema the answer must follow, wherever the dialect puts it; None if it is only in the prompt."""
        if self.dialect == "chat":
            asked = self.body.get("response_format") or {}
            found = asked.get("json_schema", {}).get("schema")
        else:
            asked = (self.body.get("text") or {}).get("format") or {}
            found = asked.get("schema")
        return found or self._tools.get(OUTPUT_TOOL)

    @property
    def tools(self) -> dict[str, dict[str, Any]]:
        """The tools the model may call, with the schema of their parameters."""
        return {name: schema for name, schema in self._tools.items() if name != OUTPUT_TOOL}

    @property
    def tool_results(self) -> list[str]:
        """What tools answered so far."""
        found = []
        for message in self._messages:
            if message.get("role") == "tool":
                found.append(_text(message["content"]))
            elif message.get("type") == "function_call_output":
                found.append(_text(message["output"]))
            elif isinstance(message.get("content"), list):
                found += [_text(p.get("content", "")) for p in message["content"] if p.get("type") == "tool_result"]
        return found

    @property
    def _messages(self) -> list[dict[str, Any]]:
        found = self.body.get("input" if self.dialect == "responses" else "messages", [])
        return [{"role": "user", "content": found}] if isinstance(found, str) else found

    @property
    def _tools(self) -> dict[str, dict[str, Any]]:
        listed = [tool.get("function", tool) for tool in self.body.get("tools") or []]
        return {tool["name"]: tool.get("parameters") or tool.get("input_schema") or {} for tool in listed}


def _text(content: Any) -> str:
    """Content is a text or a list of parts that have one."""
    if isinstance(content, str):
        return content
    return "".join(part if isinstance(part, str) else part.get("text", "") for part in content or [])


# ---- What it gets back -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Spent:
    """Tokens that a reply says it cost."""

    input_tokens: int = 100
    output_tokens: int = 20


@dataclass(frozen=True)
class Answer:
    """An answer: an object becomes JSON, or the call of the output tool where the client offers one."""

    value: dict[str, Any] | str
    usage: Spent | None = field(default_factory=Spent)  # None: the server does not say


@dataclass(frozen=True)
class ToolCall:
    """The model calls a tool."""

    name: str
    arguments: dict[str, Any] | str
    usage: Spent | None = field(default_factory=Spent)


@dataclass(frozen=True)
class HalfJson:
    """The answer breaks off in the middle of an object, though the model says that it is complete."""

    usage: Spent = field(default_factory=Spent)


@dataclass(frozen=True)
class Truncated:
    """The answer was cut off at the most tokens it may have."""

    usage: Spent = field(default_factory=Spent)


@dataclass(frozen=True)
class Refusal:
    """The model declines."""

    text: str = "I cannot help with that."
    usage: Spent = field(default_factory=Spent)


@dataclass(frozen=True)
class Nonsense:
    """Status 200, and a body that is no model's reply at all."""

    body: str = "<html><body>It works!</body></html>"


@dataclass(frozen=True)
class Status:
    """An error."""

    code: int
    headers: dict[str, str] = field(default_factory=dict)
    body: dict[str, Any] | str = ""  # a text becomes the error's message


@dataclass(frozen=True)
class RateLimit:
    """Status 429. Seconds, or as_date for the moment as an HTTP date; None: it does not say."""

    retry_after: int | None = None
    as_date: bool = False


@dataclass(frozen=True)
class Stall:
    """Silence before the headers or in the middle of the body; then the connection is closed."""

    seconds: float = 30
    where: Literal["headers", "body"] = "headers"


@dataclass(frozen=True)
class Trickle:
    """A good answer that arrives byte by byte."""

    value: dict[str, Any] | str = "slow"
    pause: float = 0.1  # between two bytes


@dataclass(frozen=True)
class Drop:
    """The connection is closed before the headers or in the middle of the body."""

    where: Literal["headers", "body"] = "headers"


Said = Answer | ToolCall | HalfJson | Truncated | Refusal
Reply = Said | Nonsense | Status | RateLimit | Stall | Trickle | Drop
Script = Reply | Sequence[Reply] | Callable[[Request], Reply]


# ---- The server ------------------------------------------------------------------------------------------------------


class ModelServer:
    """Serves a script from a thread of its own for as long as the `with` block lasts."""

    def __init__(self, script: Script) -> None:
        self.requests: list[Request] = []
        self._script = script
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._http = _Server(self)
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02})

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()

    @property
    def url(self) -> str:
        """Where it listens, without a path."""
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    def url_for(self, model: str) -> str:
        """The `model_url` for a model as it is configured: OpenAI's begins with /v1, Anthropic's does not."""
        return self.url if model.startswith("anthropic:") else f"{self.url}/v1"

    def reply(self, request: Request) -> Reply:
        with self._lock:
            self.requests.append(request)
            number = len(self.requests)
        if request.body.get("stream"):
            return Status(400, body="this server does not stream")
        if callable(self._script):
            return self._script(request)
        if isinstance(self._script, Sequence):
            ended = Status(599, body=f"the script has no reply to request {number}")
            return self._script[number - 1] if number <= len(self._script) else ended
        return self._script

    def wait(self, seconds: float) -> bool:
        """Whether the server is stopping."""
        return self._closing.wait(seconds)


class _Server(ThreadingHTTPServer):
    daemon_threads = False  # stopping waits for every reply, so that no thread outlives a test

    def __init__(self, owner: ModelServer) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.owner = owner


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"
    statuses: ClassVar[dict[int, str]] = {599: "Script Ended", 529: "Overloaded"}

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("content-length", 0)))
        self.close_connection = True
        if self.path not in PATHS:
            return self._send(404, json.dumps({"error": {"message": f"no such path: {self.path}"}}))
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = Request(self.path, headers, json.loads(raw))
        with suppress(BrokenPipeError, ConnectionResetError):  # the client may hang up on us: that is what is tested
            self._play(request, self.server.owner.reply(request))
        return None

    def _play(self, request: Request, reply: Reply) -> None:
        match reply:
            case Status(code, headers, body):
                error = body if isinstance(body, dict) else _error(request.dialect, code, body)
                self._send(code, json.dumps(error), headers)
            case RateLimit(after, as_date):
                value = formatdate(time.time() + (after or 0), usegmt=True) if as_date else str(after)
                headers = {} if after is None else {"Retry-After": value}
                self._send(429, json.dumps(_error(request.dialect, 429, "slow down")), headers)
            case Nonsense(body):
                self._send(200, body, {"Content-Type": "text/html"})
            case Stall(seconds, "headers"):
                self.server.owner.wait(seconds)
            case Stall(seconds):
                self._send_half(said(request, Answer("never complete")))
                self.server.owner.wait(seconds)
            case Trickle(value, pause):
                self._trickle(said(request, Answer(value)), pause)
            case Drop("headers"):
                pass
            case Drop():
                self._send_half(said(request, Answer("never complete")))
            case _:
                self._send(200, json.dumps(said(request, reply)))

    def _send(self, code: int, body: str, headers: dict[str, str] | None = None) -> None:
        self._begin(code, len(body.encode()), headers)
        self.wfile.write(body.encode())

    def _send_half(self, body: dict[str, Any]) -> None:
        data = json.dumps(body).encode()
        self._begin(200, len(data))
        self.wfile.write(data[: len(data) // 2])

    def _trickle(self, body: dict[str, Any], pause: float) -> None:
        data = json.dumps(body).encode()
        self._begin(200, len(data))
        for byte in data:
            self.wfile.write(bytes([byte]))
            if self.server.owner.wait(pause):
                return

    def _begin(self, code: int, length: int, headers: dict[str, str] | None = None) -> None:
        self.send_response(code, self.statuses.get(code))
        headers = {"Content-Type": "application/json", "Connection": "close", **(headers or {})}
        for name, value in {**headers, "Content-Length": str(length)}.items():
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        pass


# ---- The three dialects ----------------------------------------------------------------------------------------------

HALF = '{"title": "Te'


def said(request: Request, reply: Said) -> dict[str, Any]:
    """The body of a reply in the dialect of the request."""
    name, arguments, text, end = "", "", "", "stop"
    match reply:
        case Answer(dict() as value) if OUTPUT_TOOL in request._tools:
            name, arguments = OUTPUT_TOOL, json.dumps(value)
        case Answer(value):
            text = value if isinstance(value, str) else json.dumps(value)
        case ToolCall(called, value):
            name, arguments = called, value if isinstance(value, str) else json.dumps(value)
        case HalfJson() | Truncated():
            text, end = HALF, "cut" if isinstance(reply, Truncated) else "stop"
        case Refusal(refused):
            text, end = refused, "refusal"
    write = {"chat": _chat, "responses": _responses, "messages": _anthropic}[request.dialect]
    return write(request.body.get("model", ""), reply.usage, name, arguments, text, end)


def _chat(model: str, usage: Spent | None, name: str, arguments: str, text: str, end: str) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": text}
    if name:
        call = {"id": "call_1", "type": "function", "function": {"name": name, "arguments": arguments}}
        message = {"role": "assistant", "content": None, "tool_calls": [call]}
    if end == "refusal":
        message = {"role": "assistant", "content": None, "refusal": text}
    reason = "length" if end == "cut" else "tool_calls" if name else "stop"
    reply = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": model}
    reply["choices"] = [{"index": 0, "message": message, "finish_reason": reason}]
    if usage:
        total = usage.input_tokens + usage.output_tokens
        tokens = {"prompt_tokens": usage.input_tokens, "completion_tokens": usage.output_tokens}
        reply["usage"] = {**tokens, "total_tokens": total}
    return reply


def _responses(model: str, usage: Spent | None, name: str, arguments: str, text: str, end: str) -> dict[str, Any]:
    part: dict[str, Any] = {"type": "output_text", "text": text, "annotations": []}
    if end == "refusal":
        part = {"type": "refusal", "refusal": text}
    item: dict[str, Any] = {
        "type": "message",
        "id": "m1",
        "role": "assistant",
        "status": "completed",
        "content": [part],
    }
    if name:
        item = {"type": "function_call", "id": "f1", "call_id": "call_1", "name": name, "arguments": arguments}
    cut = end == "cut"
    reply = {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "model": model,
        "status": "incomplete" if cut else "completed",
        "incomplete_details": {"reason": "max_output_tokens"} if cut else None,
        "output": [item],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
    }
    if usage:
        total = usage.input_tokens + usage.output_tokens
        tokens = {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens, "total_tokens": total}
        details = {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
        reply["usage"] = {**tokens, **details}
    return reply


def _anthropic(model: str, usage: Spent | None, name: str, arguments: str, text: str, end: str) -> dict[str, Any]:
    part: dict[str, Any] = {"type": "text", "text": text}
    if name:
        part = {"type": "tool_use", "id": "call_1", "name": name, "input": json.loads(arguments)}
    reason = {"cut": "max_tokens", "refusal": "refusal"}.get(end, "tool_use" if name else "end_turn")
    content = [] if end == "refusal" else [part]
    reply = {"id": "msg_1", "type": "message", "role": "assistant", "model": model, "content": content}
    spent = usage or Spent(0, 0)  # this dialect cannot leave it out
    tokens = {"input_tokens": spent.input_tokens, "output_tokens": spent.output_tokens}
    return {**reply, "stop_reason": reason, "stop_sequence": None, "usage": tokens}


def _error(dialect: Dialect, code: int, message: str) -> dict[str, Any]:
    kind = {400: "invalid_request_error", 401: "authentication_error", 429: "rate_limit_error"}.get(code, "api_error")
    error = {"type": kind, "message": message or f"status {code}"}
    return {"type": "error", "error": error} if dialect == "messages" else {"error": {**error, "code": None}}
