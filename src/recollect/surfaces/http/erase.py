"""Erasing on the page, in two steps: first what would go, then a word that is typed. Texts stand in no address."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from starlette.responses import RedirectResponse, Response

from recollect.artifacts.mentions import wanted
from recollect.artifacts.removal import Plan
from recollect.errors import NotFound, RecollectError, UsageError
from recollect.hand import Author
from recollect.surfaces.http.app import Ask, View, status_of
from recollect.types import Hand

WORD = "erase"
_KINDS = ("memory", "text", "session", "conversation", "project")
_MOST = 60  # of each sort that is named
_PERSON = Author(Hand.PERSON)


def form(ask: Ask) -> Response:
    """What is to be erased? A link may have named it."""
    named = {kind: ask.query[kind] for kind in _KINDS if kind != "text" and ask.query.get(kind)}
    return _form(ask, typed=_typed(*next(iter(named.items()), ("memory", ""))))


def plan(ask: Ask) -> Response:
    """The first step: everything that would go. Changes nothing."""
    try:
        target = _target(ask)
        found = ask.memory.forgetting(**target, author=_PERSON)
    except RecollectError as error:
        return _form(ask, status_of(error), error)
    return _plan(ask, found)


def confirm(ask: Ask) -> Response:
    """The second: nothing goes unless the word is typed, and it is what the plan told."""
    target = _target(ask)
    found = ask.memory.forgetting(**target, author=_PERSON)
    if ask.form.get("word", "").strip().lower() != WORD:
        return _plan(ask, found, 422, UsageError(f"type “{WORD}” to go on", hint="Nothing was erased."))
    if found.digest != ask.form.get("digest", ""):
        changed = UsageError("something else would go by now", hint="Nothing was erased. This is what would go now.")
        return _plan(ask, found, 409, changed)
    return RedirectResponse(f"/erase/{ask.work.start(target, found.digest, found)}", 303)


def progress(ask: Ask) -> Response:
    found = ask.work.receipt(ask.path("job"))
    if found is None:
        raise NotFound("there is no such receipt")
    return ask.show("erasing.html", receipt=found)


def receipt(ask: Ask) -> Response:
    """To download. It holds counts and hashes, and nothing that was said."""
    found = ask.work.receipt(ask.path("job"))
    if found is None:
        raise NotFound("there is no such receipt")
    name = f'attachment; filename="recollect-receipt-{found.id}.json"'
    return Response(
        msgspec.json.format(msgspec.json.encode(found), indent=2),
        media_type="application/json",
        headers={"Content-Disposition": name},
    )


def _typed(kind: str, name: str, also: str = "", reason: str = "") -> dict[str, str]:
    return {"kind": kind, "name": name, "also": also, "reason": reason}


def _form(
    ask: Ask, status: int = 200, error: RecollectError | None = None, typed: Mapping[str, str] | None = None
) -> Response:
    shown = typed or _typed(*(ask.form.get(name, "") for name in ("kind", "name", "also", "reason")))
    return ask.show("erase.html", status, error=error, typed=shown, kinds=_KINDS, receipts=ask.work.receipts())


def _plan(ask: Ask, found: Plan, status: int = 200, error: RecollectError | None = None) -> Response:
    talks = [(key, ask.memory.opening(found.talks[key][0]) if found.talks.get(key) else "") for key in found.keys]
    typed = _typed(*(ask.form.get(name, "") for name in ("kind", "name", "also", "reason")))
    return ask.show("plan.html", status, plan=found, talks=talks, most=_MOST, typed=typed, word=WORD, error=error)


def _target(ask: Ask) -> dict[str, Any]:
    """As `forget` takes it."""
    if unknown := sorted(set(ask.form) - {"kind", "name", "also", "reason", "word", "digest"}):
        raise UsageError(f"this form has no field `{unknown[0][:40]}`")
    kind, name = ask.form.get("kind", ""), ask.form.get("name", "").strip()
    if kind not in _KINDS:
        raise UsageError("it does not say what is to be erased", hint=f"There are: {', '.join(_KINDS)}.")
    if not name:
        raise UsageError("nothing is named", hint="Say which one, or which text.")
    if kind == "text":
        wanted(name)
    if kind == "session":
        name = ask.memory.session(name)
    if kind == "conversation":
        name = ask.memory.conversation(name)
    return {kind: name, "also": ask.form.get("also") == "yes", "reason": ask.form.get("reason", "").strip()}


ROUTES: Mapping[str, View] = {"/erase": form, "/erase/{job}": progress, "/erase/{job}/receipt": receipt}
POSTS: Mapping[str, View] = {"/erase/plan": plan, "/erase/confirm": confirm}
