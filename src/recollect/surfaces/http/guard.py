"""What stands before every request: who may ask, from where, and how much. What failed here goes no further.

Another page in the same browser can reach loopback, and a cookie of one port of 127.0.0.1 goes to every other port.
So the page answers under a name of its own alone, and looks at Host, Origin and Sec-Fetch-Site of each request.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qsl

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from recollect.surfaces.http.place import State, hashed

COOKIE = "recollect_page"
ENTER = "/enter"
LONGEST = 64 * 1024  # bytes of a form
_FIELDS = 200  # of a form
_QUERY = 4096  # bytes
_FORM = "application/x-www-form-urlencoded"
_STATIC = "/static/"
_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",  # `no-referrer` would make the Origin of a form `null`
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
}


@dataclass(frozen=True, slots=True)
class Refused(Exception):
    """A request that goes no further."""

    status: int
    why: str


class Door:
    """State of the page as the guard needs it; `touched` is the time of the last request."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.touched = time.monotonic()
        self.streams = 0


def csrf(cookie: str) -> str:
    """What a form of this login carries. Nobody who cannot read the cookie can know it."""
    return hashed(f"form:{cookie}")


class Guard:
    """Lets through what the owner's browser asks from the page itself."""

    def __init__(self, app: ASGIApp, door: Door) -> None:
        self._app = app
        self._door = door

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        nonce = secrets.token_urlsafe(16)
        scope.setdefault("state", {})
        scope["state"] |= {"nonce": nonce, "form": {}, "cookie": "", "csrf": ""}
        send = _with_headers(send, nonce, is_static=scope["path"].startswith(_STATIC))
        try:
            await self._check(scope, receive)
        except Refused as error:
            await _refusal(error)(scope, receive, send)
            return
        self._door.touched = time.monotonic()
        await self._app(scope, receive, send)

    async def _check(self, scope: Scope, receive: Receive) -> None:
        headers = Headers(scope=scope)
        check_origin(scope["method"], scope["path"], headers, self._door.state)
        if len(scope["query_string"]) > _QUERY:
            raise Refused(414, "The address is too long.")
        if scope["path"] == ENTER or scope["path"].startswith(_STATIC):
            if scope["method"] == "POST":
                raise Refused(405, "That cannot be posted to.")
            return
        cookie = cookie_of(headers)
        if not cookie or not self._door.state.knows(cookie, time.time()):
            raise Refused(401, "This browser is not let in.")
        scope["state"] |= {"cookie": cookie, "csrf": csrf(cookie)}
        if scope["method"] == "POST":
            form = parsed(await _body(headers, receive))
            if not secrets.compare_digest(form.pop("csrf", "").encode("utf-8", "replace"), csrf(cookie).encode()):
                raise Refused(403, "The form is not of this page. Reload it and try again.")
            scope["state"]["form"] = form


def check_origin(method: str, path: str, headers: Headers, state: State) -> None:
    """Raise Refused unless the request is one of the page itself, or of somebody who typed its address."""
    if headers.getlist("host") != [state.host]:
        raise Refused(421, "There is no such page here.")
    if method not in ("GET", "HEAD", "POST"):
        raise Refused(405, "That method is not known.")
    origins = headers.getlist("origin")
    if origins and origins != [state.origin]:
        raise Refused(403, "The request comes from another page.")
    if method == "POST" and not origins:
        raise Refused(403, "The request does not say where it comes from.")
    site = headers.get("sec-fetch-site", "same-origin" if method == "POST" else "none")
    if site == "same-origin" or (site == "none" and method != "POST"):
        return
    opened = (headers.get("sec-fetch-mode"), headers.get("sec-fetch-dest")) == ("navigate", "document")
    if path != ENTER or method != "GET" or not opened:
        raise Refused(403, "The request comes from another page.")


def cookie_of(headers: Headers) -> str:
    """The cookie of a login; empty where there is none, or more than one."""
    found = []
    for header in headers.getlist("cookie"):
        try:
            jar = SimpleCookie(header)
        except CookieError:
            return ""
        found += [jar[COOKIE].value] if COOKIE in jar else []
        if header.count(f"{COOKIE}=") > 1:
            return ""
    return found[0] if len(found) == 1 else ""


async def _body(headers: Headers, receive: Receive) -> bytes:
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != _FORM:
        raise Refused(415, "Only a form can be posted.")
    length = headers.get("content-length", "")
    if length and (not length.isdigit() or int(length) > LONGEST):
        raise Refused(413, "That is too long.")
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Refused(400, "The request broke off.")
        body += message.get("body", b"")
        if len(body) > LONGEST:
            raise Refused(413, "That is too long.")
        if not message.get("more_body", False):
            return bytes(body)


def parsed(body: bytes) -> dict[str, str]:
    """The fields of a form, each once. What is no UTF-8, or holds NUL, is refused."""
    try:
        pairs = parse_qsl(
            body.decode("ascii"),
            keep_blank_values=True,
            strict_parsing=bool(body),
            errors="strict",
            max_num_fields=_FIELDS,
        )
    except (ValueError, UnicodeDecodeError):
        raise Refused(400, "The form cannot be read.") from None
    found = dict(pairs)
    if len(found) != len(pairs):
        raise Refused(400, "A field stands twice in the form.")
    if any("\0" in name or "\0" in value for name, value in pairs):
        raise Refused(400, "A field holds a NUL character.")
    return found


def _with_headers(send: Send, nonce: str, *, is_static: bool) -> Send:
    policy = (
        f"default-src 'none'; script-src 'nonce-{nonce}'; style-src 'self'; img-src 'self'; connect-src 'self';"
        " form-action 'self'; base-uri 'none'; frame-ancestors 'none';"
        " require-trusted-types-for 'script'; trusted-types htmx"
    )

    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in _HEADERS.items():
                headers[name] = value
            headers["Content-Security-Policy"] = policy
            headers["Cache-Control"] = "private, max-age=31536000, immutable" if is_static else "no-store"
        await send(message)

    return sent


_LOCKED = """<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>recollect</title><link rel="icon" href="/static/mark.svg">
<link rel="stylesheet" href="/static/page.css"><main class="locked"><h1>Not let in</h1>
<p>Run <code>recollect ui</code> in a terminal: it opens this page for your browser.</p></main></html>"""


def _refusal(error: Refused) -> Response:
    if error.status == 401:
        return Response(_LOCKED, 401, media_type="text/html")
    return PlainTextResponse(error.why + "\n", error.status)


def entered(state: State) -> tuple[State, str, Mapping[str, str]]:
    """A new login: the state that knows it, its cookie, and the header that hands it over."""
    cookie = secrets.token_urlsafe(32)
    header = f"{COOKIE}={cookie}; HttpOnly; SameSite=Strict; Path=/; Max-Age=7776000"
    return state.with_login(cookie, time.time()), cookie, {"Set-Cookie": header}
