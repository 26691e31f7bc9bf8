"""The MCP server: tools (`tools.py`) and pages of the project, as clients see them.

Every failure is a tool error that says what to do. Nothing is ever written to standard output but the protocol: logs
go to the file of all commands.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable
from importlib.metadata import version
from typing import Any, TypeVar

import anyio.to_thread
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ResourceError, ToolError
from mcp.server.mcpserver.resources import ResourceSecurity
from mcp.server.session import ServerSession
from mcp_types import InputRequiredResult, ListRootsRequest, ListRootsResult, ToolAnnotations
from mcp_types import Resource as ListedResource

from recollect.app import Memory
from recollect.errors import RecollectError
from recollect.surfaces.mcp.scope import Launch
from recollect.surfaces.mcp.tools import Tools

log = logging.getLogger(__name__)

_INSTRUCTIONS = (
    "Long-term memory of this user and project. search_memory before you ask what may have been said before;"
    " remember what is worth knowing in later sessions; cite a memory by its id when you rely on it."
)
_READ = ToolAnnotations(read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False)
_ADD = ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=True, open_world_hint=False)
_ERASE = ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=True, open_world_hint=False)
_PATHS = ResourceSecurity(exempt_params={"project"})  # a path names a project; nothing is opened by it
_ROOTS = "roots"  # the key of our one question to a client
_ASKING_BACK = "2025-11-25"  # the last protocol in which a server sends requests of its own

_Function = TypeVar("_Function", bound=Callable[..., Any])


class Resources:
    """Pages of the project, to read or to attach."""

    def __init__(self, tools: Tools) -> None:
        self._tools = tools

    async def context(self, ctx: Context, project: str = "") -> str | InputRequiredResult:
        """What a new session in this project would be given."""
        return await self._page(ctx, project, lambda here: self._tools.context("", here).text)

    async def ledger(self, ctx: Context, project: str = "") -> str | InputRequiredResult:
        """This project's rows of MEMORY.md: a sentence per session, with its files."""
        return await self._page(ctx, project, self._tools.ledger)

    async def sessions(self, ctx: Context, project: str = "") -> str | InputRequiredResult:
        """This project's sessions, newest first, with the names that open_session takes."""

        def page(here: str) -> str:
            listed = self._tools.sessions(here, 50).sessions
            rows = [f"- {each.ended[:16]} `{each.session}` ({each.messages} messages) {each.about}" for each in listed]
            return "\n".join(rows) or "No session yet."

        return await self._page(ctx, project, page)

    async def _page(self, ctx: Context, project: str, render: Callable[[str], str]) -> str | InputRequiredResult:
        roots = ListRootsResult(roots=[]) if project else await _ask_for_roots(ctx)
        if isinstance(roots, InputRequiredResult):
            return roots
        try:
            return await anyio.to_thread.run_sync(lambda: render(self._tools.here(project or None, roots)))
        except RecollectError as error:
            raise ResourceError(_said(error)) from error


async def _ask_for_roots(ctx: Context) -> ListRootsResult | InputRequiredResult:
    """As the client's protocol has it: with the answer to its request, or by a request of ours."""
    if ctx.client_capabilities is None or ctx.client_capabilities.roots is None:
        return ListRootsResult(roots=[])
    if (ctx.protocol_version or "") <= _ASKING_BACK:
        session: ServerSession = ctx.session
        return await session.send_request(ListRootsRequest(), ListRootsResult, request_read_timeout_seconds=10)
    answer = (ctx.input_responses or {}).get(_ROOTS)
    if isinstance(answer, ListRootsResult):
        return answer
    return InputRequiredResult(input_requests={_ROOTS: ListRootsRequest()})


class _Server(MCPServer[Any]):
    """Lists the pages of the project at hand, which are read through templates: those know who asks."""

    async def list_resources(self) -> list[ListedResource]:
        return [
            ListedResource(uri=f"recollect://{name}", name=name, description=about, mime_type="text/markdown")
            for name, about in (
                ("context", "What a new session in this project would be given."),
                ("ledger", "This project's rows of MEMORY.md."),
                ("sessions", "This project's sessions, newest first."),
            )
        ]


def build(memory: Memory, launch: Launch) -> MCPServer[Any]:
    """The server, ready to be run on a transport."""
    _log_to_our_file()
    server = _Server("recollect", instructions=_INSTRUCTIONS, version=version("recollect"), log_level="WARNING")
    tools = Tools(memory, launch)
    pages = Resources(tools)
    for tool, hints in (
        (tools.search_memory, _READ),
        (tools.get_memory, _READ),
        (tools.open_session, _READ),
        (tools.recent_sessions, _READ),
        (tools.memory_context, _READ),
        (tools.remember, _ADD),
        (tools.correct_memory, _ADD),
        (tools.memory_feedback, _ADD),
        (tools.forget_memory, _ERASE),
    ):
        server.add_tool(_guarded(tool), annotations=hints, structured_output=True)
    for page in (pages.context, pages.ledger, pages.sessions):
        named = f"recollect://{page.__name__}{{?project}}"
        server.resource(named, mime_type="text/markdown", security=_PATHS)(page)
    return server


def _guarded(tool: _Function) -> _Function:
    """What a person can act on is told; what is a bug of ours is logged, and said to be one."""

    @functools.wraps(tool)
    def call(*args: Any, **named: Any) -> Any:
        try:
            return tool(*args, **named)
        except RecollectError as error:
            raise ToolError(_said(error)) from error
        except Exception as error:  # reason: a client must get an answer that it can show, whatever went wrong
            log.exception("%s failed", tool.__name__)
            raise ToolError(
                f"{tool.__name__} failed ({type(error).__name__}). The reason is in logs/recollect.log under"
                " RECOLLECT_HOME; `recollect doctor` finds what is wrong."
            ) from error

    return call  # type: ignore[return-value]


def _said(error: RecollectError) -> str:
    return f"{error.message.rstrip('.')}. {error.hint}" if error.hint else error.message


def _log_to_our_file() -> None:
    """The SDK's and the web server's, too; a root logger that has a handler is not given one that prints."""
    if not logging.getLogger().handlers:
        logging.getLogger().addHandler(logging.NullHandler())
    for name in ("mcp", "uvicorn"):
        logger = logging.getLogger(name)
        logger.handlers = logging.getLogger("recollect").handlers or [logging.NullHandler()]
        logger.propagate = False
