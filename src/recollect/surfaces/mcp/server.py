"""The MCP server: tools and resources as clients see them. What they do is in `calls.py`.

Every failure is a tool error that says what to do. Nothing is ever written to standard output but the protocol: logs
go to the file of all commands.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Sequence
from importlib.metadata import version
from typing import Annotated, Any, Literal, TypeVar

import anyio.to_thread
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ResourceError, ToolError
from mcp.server.mcpserver.resolve import ListRoots, Resolve
from mcp.server.mcpserver.resources import ResourceSecurity
from mcp.server.session import ServerSession
from mcp_types import InputRequiredResult, ListRootsRequest, ListRootsResult, ToolAnnotations
from mcp_types import Resource as ListedResource
from pydantic import Field

from recollect.errors import RecollectError
from recollect.occasions import MOST
from recollect.store.vectors import Kind
from recollect.surfaces.mcp import answers
from recollect.surfaces.mcp.calls import Calls, OpenKind
from recollect.surfaces.mcp.scope import Launch, place
from recollect.types import MemoryKind, Severity

log = logging.getLogger(__name__)

_INSTRUCTIONS = (
    "Long-term memory of this user and project. search_memory before you ask what may have been said before;"
    " remember what the user wants kept; cite a memory by its id when you rely on it."
)
_READ = ToolAnnotations(read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False)
_ADD = ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=True, open_world_hint=False)
_ERASE = ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=True, open_world_hint=False)
_PATHS = ResourceSecurity(exempt_params={"project"})  # a path names a project; nothing is opened by it
_ROOTS = "roots"  # the key of our one question to a client
_ASKING_BACK = "2025-11-25"  # the last protocol in which a server sends requests of its own

_Function = TypeVar("_Function", bound=Callable[..., Any])


def client_roots(ctx: Context, project: str | None = None) -> ListRootsResult | ListRoots:
    """The client is asked for its roots only when the call does not name a project, and when it has any."""
    able = ctx.client_capabilities is not None and ctx.client_capabilities.roots is not None
    return ListRoots() if able and project is None else ListRootsResult(roots=[])


Roots = Annotated[ListRootsResult, Resolve(client_roots)]
Project = Annotated[
    str | None,
    Field(description="Path or id of the project. Leave it out for the project you are working in."),
]
Everywhere = Annotated[bool, Field(description="Look into every project. Only when the user asks for that.")]
MemoryId = Annotated[str, Field(description="As in search results: m-…", min_length=1)]
When = Annotated[
    Sequence[str],
    Field(
        description="Up to six short prompts that the user may type later and that this would change the answer to, in"
        " words that it does not have itself (other names, tools, tasks, symptoms). It is found by them, too.",
        max_length=MOST,
    ),
]
Day = Annotated[str, Field(description="A day or time, e.g. 2026-03-28.")]


class Tools:
    """The tools; their parameters and docstrings are what a model reads."""

    def __init__(self, calls: Calls, launch: Launch) -> None:
        self._calls = calls
        self._launch = launch

    def search_memory(
        self,
        query: Annotated[str, Field(description="Plain words: a question, a name, a path, an error.", min_length=1)],
        roots: Roots,
        project: Project = None,
        all_projects: Everywhere = False,
        limit: Annotated[int, Field(ge=1, le=50)] = 8,
        kinds: Annotated[list[Kind] | None, Field(description="Only these. Default: all.")] = None,
        since: Day = "",
        until: Day = "",
    ) -> answers.Search:
        """Finds memories, summaries and messages of earlier sessions; nothing when nothing is relevant."""
        where = None if all_projects else self._project(project, roots)
        return self._calls.search(query, where, limit, [str(each) for each in kinds or ()], since, until)

    def get_memory(self, id: MemoryId, roots: Roots, project: Project = None) -> answers.Memory:
        """A memory in full, with what it came from. Counts as use of it."""
        return self._calls.get(id, self._project(project, roots))

    def open_session(
        self,
        session: Annotated[str, Field(description="As in search results or recent_sessions.", min_length=1)],
        roots: Roots,
        kind: Annotated[OpenKind | None, Field(description="Default: the summary.")] = None,
        offset: Annotated[int, Field(ge=0, description="next_offset of the part before.")] = 0,
        project: Project = None,
    ) -> answers.Page:
        """What is kept of an earlier session, part by part."""
        return self._calls.open(session, kind, offset, self._project(project, roots))

    def recent_sessions(
        self,
        roots: Roots,
        project: Project = None,
        all_projects: Everywhere = False,
        limit: Annotated[int, Field(ge=1, le=50)] = 10,
    ) -> answers.Sessions:
        """What was done lately, a sentence per session."""
        return self._calls.sessions(None if all_projects else self._project(project, roots), limit)

    def remember(
        self,
        text: Annotated[str, Field(description="One statement that is understood without its context.", min_length=1)],
        roots: Roots,
        everywhere: Annotated[bool, Field(description="It holds in every project, not only in this one.")] = False,
        kind: Annotated[MemoryKind | None, Field(description="Default: as the words tell.")] = None,
        severity: Annotated[Severity | None, Field(description="Default: as the words tell.")] = None,
        when: When = (),
        project: Project = None,
    ) -> answers.Noted:
        """Keeps what the user wants remembered. The same words again are the same memory."""
        where = None if everywhere else self._place(project, roots)
        return self._calls.remember(text, where, everywhere, kind, severity, when)

    def correct_memory(
        self,
        id: MemoryId,
        text: Annotated[str, Field(description="What it should say, in full.", min_length=1)],
        roots: Roots,
        when: When = (),
        project: Project = None,
    ) -> answers.Noted:
        """Makes a memory say something else from now on; what it said stays in its history."""
        return self._calls.correct(id, text, when, self._project(project, roots))

    def forget_memory(
        self,
        id: MemoryId,
        reason: Annotated[str, Field(description="Why; it is kept, the text is not.", min_length=1)],
        roots: Roots,
        project: Project = None,
    ) -> answers.Forgotten:
        """Erases a memory and the messages it came from, for good. Only when the user asks for it."""
        return self._calls.forget(id, reason, self._project(project, roots))

    def memory_feedback(
        self,
        id: MemoryId,
        opinion: Literal["ok", "not_ok"],
        roots: Roots,
        text: Annotated[str, Field(description="What is wrong with it.")] = "",
        project: Project = None,
    ) -> answers.Noted:
        """Says whether a memory turned out right; what is not is no longer injected."""
        return self._calls.feedback(id, opinion, text, self._project(project, roots))

    def memory_context(
        self,
        roots: Roots,
        prompt: Annotated[str, Field(description="What you are about to do; empty: in general.")] = "",
        project: Project = None,
    ) -> answers.Context:
        """What matters from memory for a task in this project."""
        return self._calls.context(prompt, self._project(project, roots))

    def _place(self, project: str | None, roots: ListRootsResult) -> str:
        return place(project, self._launch, [str(root.uri) for root in roots.roots])

    def _project(self, project: str | None, roots: ListRootsResult) -> str:
        return self._calls.project(self._place(project, roots), named=project is not None)


class Resources:
    """Pages of the project, to read or to attach."""

    def __init__(self, calls: Calls, launch: Launch) -> None:
        self._calls = calls
        self._launch = launch

    async def context(self, ctx: Context, project: str = "") -> str | InputRequiredResult:
        """What a new session in this project would be given."""
        return await self._page(ctx, project, lambda found: self._calls.context("", found).text)

    async def ledger(self, ctx: Context, project: str = "") -> str | InputRequiredResult:
        """This project's rows of MEMORY.md: a sentence per session, with its files."""
        return await self._page(ctx, project, self._calls.ledger)

    async def sessions(self, ctx: Context, project: str = "") -> str | InputRequiredResult:
        """This project's sessions, newest first, with the names that open_session takes."""

        def page(found: str) -> str:
            listed = self._calls.sessions(found, 50).sessions
            rows = [f"- {each.ended[:16]} `{each.session}` ({each.messages} messages) {each.about}" for each in listed]
            return "\n".join(rows) or "No session yet."

        return await self._page(ctx, project, page)

    async def _page(self, ctx: Context, project: str, render: Callable[[str], str]) -> str | InputRequiredResult:
        roots = ListRootsResult(roots=[]) if project else await _ask_for_roots(ctx)
        if isinstance(roots, InputRequiredResult):
            return roots
        uris = [str(root.uri) for root in roots.roots]

        def read() -> str:
            found = place(project or None, self._launch, uris)
            return render(self._calls.project(found, named=bool(project)))

        try:
            return await anyio.to_thread.run_sync(read)
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


def build(calls: Calls, launch: Launch) -> MCPServer[Any]:
    """The server, ready to be run on a transport."""
    _log_to_our_file()
    server = _Server("recollect", instructions=_INSTRUCTIONS, version=version("recollect"), log_level="WARNING")
    tools, pages = Tools(calls, launch), Resources(calls, launch)
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
