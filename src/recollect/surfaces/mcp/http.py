"""The MCP server over streamable HTTP: on loopback alone, for whoever has the token, off unless a port is configured.

A web page in the user's browser can reach loopback, too: the Host and Origin of every request are checked, and nothing
is answered without the token, which lies in a file that only its owner can read.
"""

from __future__ import annotations

import hmac
import logging
import os
import secrets
import socket
import threading
from contextlib import suppress
from pathlib import Path

import uvicorn
from mcp.server.transport_security import TransportSecuritySettings
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from recollect.app import Memory
from recollect.config import Settings
from recollect.errors import RecollectError
from recollect.surfaces.mcp.scope import Launch
from recollect.surfaces.mcp.server import build

log = logging.getLogger(__name__)

TOKEN_FILE = "mcp.token"
_HOST = "127.0.0.1"
_PATIENCE = 10.0  # seconds to start or stop


class PortTaken(RecollectError):
    """The port of the MCP server cannot be had."""

    hint = "Choose another mcp_http_port in config.toml, or 0 to switch it off."


class Serving:
    """A server in a thread of its own, until it is closed."""

    def __init__(self, memory: Memory, server: uvicorn.Server, listener: socket.socket) -> None:
        self.port: int = listener.getsockname()[1]
        self._memory = memory
        self._server = server
        self._thread = threading.Thread(target=server.run, args=([listener],), name="mcp-http", daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://{_HOST}:{self.port}/mcp"

    def close(self) -> None:
        """Open streams have a second to end."""
        self._server.should_exit = True
        self._thread.join(_PATIENCE)
        self._memory.close()


def start(settings: Settings) -> Serving | None:
    """As it is configured, for the daemon; a port that cannot be had is told in the log and stops nobody."""
    try:
        return serve_http(settings, settings.config.mcp_http_port, token(settings))
    except (PortTaken, OSError) as error:
        log.warning("no MCP over HTTP: %s", error)
        return None


def serve_http(settings: Settings, port: int, token: str) -> Serving:
    """Serves until it is closed. Port 0: any that is free. `PortTaken` when the port is somebody else's."""
    try:
        listener = socket.create_server((_HOST, port))
    except OSError as error:
        raise PortTaken(f"port {port}: {error.strerror}") from error
    port = listener.getsockname()[1]
    memory = Memory(settings)
    hosts = [f"{name}:{port}" for name in (_HOST, "localhost")]
    security = TransportSecuritySettings(allowed_hosts=hosts, allowed_origins=[f"http://{each}" for each in hosts])
    app = build(memory, Launch()).streamable_http_app(transport_security=security, host=_HOST)
    config = uvicorn.Config(
        _WithToken(app, token), log_config=None, access_log=False, timeout_graceful_shutdown=1, lifespan="on"
    )
    return Serving(memory, uvicorn.Server(config), listener)


def token(settings: Settings) -> str:
    """The token of this home; made when there is none, or an empty one: the disk was full."""
    file: Path = settings.home / TOKEN_FILE
    settings.home.mkdir(mode=0o700, parents=True, exist_ok=True)
    with suppress(FileNotFoundError):
        if not file.read_text(encoding="utf-8").strip():
            file.unlink()
    with suppress(FileExistsError):
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as out:
            out.write(secrets.token_urlsafe(32) + "\n")
    return file.read_text(encoding="utf-8").strip()


class _WithToken:
    """Lets through what carries the token."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        if not token:
            raise ValueError("an empty token protects nothing")
        self._app = app
        self._wanted = f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            given = Headers(scope=scope).get("authorization", "").encode("utf-8", "replace")
            if not hmac.compare_digest(given, self._wanted):
                refusal = PlainTextResponse(
                    f"The token in {TOKEN_FILE} under RECOLLECT_HOME is needed.",
                    status_code=401,
                    headers={"WWW-Authenticate": "Bearer"},
                )
                await refusal(scope, receive, send)
                return
        await self._app(scope, receive, send)
