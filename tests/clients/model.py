"""A scripted model server on loopback, as real agents want one: Anthropic's Messages and OpenAI's Responses, streamed.

It keeps every request that reached it, so that a test can look at what the model was really given.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self


@dataclass(frozen=True)
class Asked:
    """One request of an agent to its model."""

    path: str
    body: dict[str, Any]
    at: float  # by the clock that never goes back

    @property
    def text(self) -> str:
        """Everything the model is given, as one text; what stands in it as JSON text stands in it as it is."""
        return "\n".join(_texts({key: self.body.get(key) for key in ("system", "instructions", "messages", "input")}))

    @property
    def tools(self) -> list[str]:
        """The names of the tools the model may call."""
        return [tool.get("name", "") for tool in self.body.get("tools") or []]


@dataclass(frozen=True)
class Call:
    """The model calls a tool."""

    name: str
    arguments: dict[str, Any]
    namespace: str = ""  # Codex groups the tools of an MCP server


Script = Callable[[Asked], str | Call]


class Model:
    """Serves from a thread of its own as long as the `with` block lasts. `script` may be changed between sessions."""

    def __init__(self, script: Script = lambda asked: "Understood.") -> None:
        self.asked: list[Asked] = []
        self.script = script
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), type("_Handler", (_Handler,), {"model": self}))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05})

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def since(self, first: int) -> str:
        """What models were given from this request on."""
        return "\n".join(asked.text for asked in self.asked[first:])


class _Handler(BaseHTTPRequestHandler):
    model: Model
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("content-length", 0)))
        path = self.path.split("?")[0]
        events = {"/v1/messages": _messages, "/v1/responses": _responses}.get(path)
        if events is None:
            return self._whole(404, {"error": {"type": "not_found_error", "message": path}})
        asked = Asked(path, json.loads(raw), time.monotonic())
        self.model.asked.append(asked)
        return self._stream(events(asked, self.model.script(asked)))

    def do_GET(self) -> None:
        self._whole(404, {"error": {"type": "not_found_error", "message": self.path}})

    do_HEAD = do_GET

    def _whole(self, status: int, body: dict[str, Any]) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def _stream(self, events: Iterator[dict[str, Any]]) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        with suppress(BrokenPipeError, ConnectionResetError):
            for event in events:
                self.wfile.write(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())

    def log_message(self, format: str, *args: Any) -> None:
        pass


def _messages(asked: Asked, reply: str | Call) -> Iterator[dict[str, Any]]:
    """Anthropic's Messages API."""
    usage = {"input_tokens": 10, "output_tokens": 5, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": asked.body.get("model", "")}
    start = {"content": [], "stop_reason": None, "stop_sequence": None, "usage": usage}
    yield {"type": "message_start", "message": {**message, **start}}
    if isinstance(reply, Call):
        block: dict[str, Any] = {"type": "tool_use", "id": "toolu_1", "name": reply.name, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(reply.arguments)}
    else:
        block, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": reply}
    yield {"type": "content_block_start", "index": 0, "content_block": block}
    yield {"type": "content_block_delta", "index": 0, "delta": delta}
    yield {"type": "content_block_stop", "index": 0}
    reason = "tool_use" if isinstance(reply, Call) else "end_turn"
    ended = {"stop_reason": reason, "stop_sequence": None}
    yield {"type": "message_delta", "delta": ended, "usage": {"output_tokens": 5}}
    yield {"type": "message_stop"}


def _responses(asked: Asked, reply: str | Call) -> Iterator[dict[str, Any]]:
    """OpenAI's Responses API."""
    if isinstance(reply, Call):
        item: dict[str, Any] = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": reply.name}
        item["arguments"] = json.dumps(reply.arguments)
        if reply.namespace:
            item["namespace"] = reply.namespace
    else:
        part = {"type": "output_text", "text": reply, "annotations": []}
        item = {"type": "message", "id": "m_1", "role": "assistant", "status": "completed", "content": [part]}
    usage = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}
    details = {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    yield {"type": "response.created", "response": {"id": "resp_1"}}
    yield {"type": "response.output_item.done", "output_index": 0, "item": item}
    yield {"type": "response.completed", "response": {"id": "resp_1", "usage": {**usage, **details}}}


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from _texts(each)
    elif isinstance(value, list):
        for each in value:
            yield from _texts(each)
