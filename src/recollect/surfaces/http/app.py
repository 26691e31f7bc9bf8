"""The application: which address shows what. Everything runs behind the guard, and in few threads."""

from __future__ import annotations

import asyncio
import gzip
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote

import jinja2
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from recollect.app import Memory
from recollect.errors import NotFound, Outdated, RecollectError, StoreBusy, UsageError
from recollect.surfaces.http import place, shapes
from recollect.surfaces.http.guard import ENTER, Door, Guard, entered
from recollect.surfaces.http.session import Session
from recollect.surfaces.http.work import Work
from recollect.text import readable

log = logging.getLogger(__name__)

THREADS = 4  # each has a connection to the database
_STREAMS = 20
_BEAT = 0.7  # seconds between two looks for what changed
_HERE = Path(__file__).parent
_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
DONE = {
    "correct": "Corrected.",
    "pin": "Pinned: it stands first, and stays.",
    "unpin": "No longer pinned.",
    "wrong": "Told to no agent from now on.",
    "ok": "It holds.",
    "move": "Moved.",
    "undo": "Taken back.",
    "seen": "Seen.",
    "unseen": "Put back.",
    "set": "Set. It holds from now on.",
}


@dataclass(frozen=True, slots=True)
class Ask:
    """A request that came through, with what it may use."""

    request: Request
    memory: Memory
    work: Work
    query: Mapping[str, str]
    form: Mapping[str, str]

    @property
    def is_part(self) -> bool:
        """Does a script ask, that replaces a part of the page?"""
        return self.request.headers.get("hx-request") == "true"

    def path(self, name: str) -> str:
        return readable(str(self.request.path_params[name]))

    def show(self, template: str, status: int = 200, **values: Any) -> Response:
        """The template with these values."""
        state = self.request.scope["state"]
        shared = {
            "csrf": state["csrf"],
            "nonce": state["nonce"],
            "here": self.request.url.path,
            "address": self.request.url.path + (f"?{self.request.url.query}" if self.request.url.query else ""),
            "done": DONE.get(self.query.get("done", ""), ""),
            "enabled": self.memory.settings.config.enabled,
            "error": None,
            "typed": {},
        }
        return HTMLResponse(templates().get_template(template).render({**shared, **values}), status)

    def back(self, default: str, done: str) -> Response:
        """To the view that the form stood in, or to the default; it says what was done."""
        target = self.form.get("back", "") or default
        if not target.startswith("/") or target.startswith(("//", "/\\")) or any(each < " " for each in target):
            target = default
        target, _, query = target.partition("?")
        kept = [(name, value) for name, value in parse_qsl(query) if name != "done"]
        told = "&".join(f"{quote(name)}={quote(value)}" for name, value in [*kept, ("done", done)])
        return RedirectResponse(f"{quote(target, safe='/@:~%')}?{told}", 303)


View = Callable[[Ask], Response]


def build(door: Door, session: Session, work: Work) -> ASGIApp:
    """The whole page."""
    from recollect.surfaces.http import actions, erase, settings, views

    pool = ThreadPoolExecutor(THREADS, thread_name_prefix="page")
    pulse = ThreadPoolExecutor(1, thread_name_prefix="pulse")  # what changed is told by connection

    def route(path: str, view: View, method: str = "GET") -> Route:
        return Route(path, _endpoint(view, session, work, pool), methods=[method])

    async def enter(request: Request) -> Response:
        if not place.redeem(session.home, request.query_params.get("token", "")):
            return HTMLResponse(templates().get_template("entered.html").render(ok=False), 401)
        door.state, _, header = entered(door.state)
        place.save(session.home, door.state)
        # not by a redirect: it would count as coming from wherever the address was opened, without the cookie
        return HTMLResponse(templates().get_template("entered.html").render(ok=True), headers=dict(header))

    async def live(request: Request) -> Response:
        if door.streams >= _STREAMS:
            return Response("Too many tabs listen.\n", 503)
        return StreamingResponse(_changes(door, session, pulse), media_type="text/event-stream")

    routes = [
        Route(ENTER, enter),
        Route("/static/{name}", static),
        Route("/live", live),
        *(route(path, view) for path, view in {**views.ROUTES, **erase.ROUTES}.items()),
        *(route(path, view, "POST") for path, view in {**actions.ROUTES, **erase.POSTS, **settings.ROUTES}.items()),
    ]
    return Guard(Starlette(routes=routes, exception_handlers={404: _nothing, 405: _nothing, 500: _failed}), door)


def _endpoint(
    view: View, session: Session, work: Work, pool: ThreadPoolExecutor
) -> Callable[[Request], Awaitable[Response]]:
    def answer(request: Request) -> Response:
        try:
            with session.memory() as memory:
                query = _query(request)
                ask = Ask(request, memory, work, query, request.scope["state"]["form"])
                try:
                    return view(ask)
                except RecollectError as error:
                    return ask.show("error.html", status_of(error), failed=error)
        except RecollectError as error:  # the memory cannot be opened
            return HTMLResponse(templates().get_template("closed.html").render(failed=error), status_of(error))

    async def endpoint(request: Request) -> Response:
        return await asyncio.get_running_loop().run_in_executor(pool, answer, request)

    return endpoint


def status_of(error: RecollectError) -> int:
    """As HTTP says it."""
    kinds = ((Outdated, 409), (NotFound, 404), (UsageError, 422), (StoreBusy, 503))
    return next((status for kind, status in kinds if isinstance(error, kind)), 500)


def _query(request: Request) -> dict[str, str]:
    """The fields of the address, each once; UsageError for what is no text."""
    try:
        pairs = parse_qsl(request.scope["query_string"].decode("ascii"), keep_blank_values=True, errors="strict")
    except (UnicodeDecodeError, ValueError):
        raise UsageError("the address cannot be read") from None
    if any("\0" in name or "\0" in value for name, value in pairs):
        raise UsageError("the address holds a NUL character")
    return dict(pairs)


async def _changes(door: Door, session: Session, pulse: ThreadPoolExecutor) -> AsyncIterator[bytes]:
    """An event for each change of the database: that something changed, and nothing of it."""

    def look() -> object:
        with session.memory() as memory:
            return memory.database.pulse()

    loop = asyncio.get_running_loop()
    door.streams += 1
    try:
        yield b"retry: 2000\n\n"
        before, quiet = await loop.run_in_executor(pulse, look), 0.0
        while True:
            await asyncio.sleep(_BEAT)
            now, quiet = await loop.run_in_executor(pulse, look), quiet + _BEAT
            if now != before:
                before, quiet = now, 0.0
                yield b"event: changed\ndata: memory\n\n"
            elif quiet > 15:
                quiet = 0.0
                yield b": still here\n\n"
    finally:
        door.streams -= 1
        door.touched = loop.time()


async def static(request: Request) -> Response:
    """A file of ours, by its name alone."""
    name = request.path_params["name"]
    if name not in assets():
        return Response("There is nothing here.\n", 404)
    kind = _TYPES[Path(name).suffix]
    if "gzip" not in request.headers.get("accept-encoding", ""):
        return Response(assets()[name], media_type=kind, headers={"Vary": "Accept-Encoding"})
    told = {"Vary": "Accept-Encoding", "Content-Encoding": "gzip"}
    return Response(_packed(name), media_type=kind, headers=told)


@cache
def _packed(name: str) -> bytes:
    """Only what holds no secret is packed: how well a page packs would tell of what stands in it."""
    return gzip.compress(assets()[name], mtime=0)


@cache
def assets() -> dict[str, bytes]:
    return {each.name: each.read_bytes() for each in (_HERE / "static").iterdir() if each.suffix in _TYPES}


def _address(name: str) -> str:
    """Of a static file; another one once it changed."""
    return f"/static/{name}?{sha256(assets()[name]).hexdigest()[:12]}"


def _without(values: Mapping[str, str], name: str) -> dict[str, str]:
    return {each: value for each, value in values.items() if each != name}


@cache
def templates() -> jinja2.Environment:
    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_HERE / "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals |= {"static": _address, "diff": shapes.diff, "pieces": shapes.pieces, "without": _without}
    made.filters |= {
        "place": shapes.place_name,
        "short": shapes.one_line,
        "plain": lambda text: str(text).replace("_", " "),
        "moment": lambda text: text[:16].replace("T", " "),
        "day": lambda text: text[:10],
        "key": lambda text: quote(text, safe="@:"),
        "readable": readable,
    }
    return made


async def _nothing(request: Request, error: Exception) -> Response:
    return HTMLResponse(templates().get_template("closed.html").render(failed=NotFound("there is nothing here")), 404)


async def _failed(request: Request, error: Exception) -> Response:
    """Where it broke goes to the log, and nothing of what was read or typed."""
    trace, where = error.__traceback__, ""
    while trace is not None:
        where, trace = f"{Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}", trace.tb_next
    log.error("%s at %s", type(error).__name__, where)
    broken = RecollectError("the page broke", hint="Where it broke stands in logs/page.log.")
    return HTMLResponse(templates().get_template("closed.html").render(failed=broken), 500)
