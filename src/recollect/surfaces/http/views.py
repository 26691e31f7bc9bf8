"""Views that only look: Today, Inbox, Memories, one memory, Sessions, What the agent gets, Workings."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from starlette.responses import Response

from recollect.config import describe
from recollect.errors import RecollectError, UsageError
from recollect.inject.values import Given
from recollect.store.listing import FACETS
from recollect.surfaces.http.app import Ask, View, status_of
from recollect.surfaces.http.shapes import calendar
from recollect.types import MemoryKind, Severity, timestamp

_ROWS = 40  # of a list
_CARDS = 8  # of the inbox: each brings the message it came from
_MESSAGES = 40
_RECENT = timedelta(days=7)
_HALF_YEAR = timedelta(days=190)
LONGEST_QUERY = 400


def today(ask: Ask) -> Response:
    memory = ask.memory
    now = memory.clock()
    since = timestamp(now - _RECENT)
    state = memory.status()
    spent = sum(each.input_tokens + each.output_tokens for each in state.tokens if each.day == timestamp(now)[:10])
    return ask.show(
        "today.html",
        told=memory.given_last()[:8],
        learnt=memory.browse(limit=8),
        waiting=memory.inbox(limit=1).total,
        talks=memory.talks(limit=6),
        state=state,
        spent=spent,
        cap=memory.settings.config.max_tokens_per_day,
        squares=calendar(memory.activity(timestamp(now - _HALF_YEAR)), now.date()),
        since=since,
    )


def inbox(ask: Ask) -> Response:
    found = ask.memory.inbox(after=ask.query.get("after", ""), limit=_CARDS)
    records = [ask.memory.record(each.memory.id) for each in found.cards]
    return ask.show("inbox.html", found=found, records=records, projects=ask.memory.projects())


def memories(ask: Ask) -> Response:
    """The list, or with a script the list alone."""
    query, wrong = ask.query.get("q", ""), ask.query.get("wrong") == "yes"
    chosen = {name: ask.query[name] for name in FACETS if ask.query.get(name)}
    error: RecollectError | None = None
    try:
        if len(query) > LONGEST_QUERY:
            raise UsageError(f"{len(query)} characters, and {LONGEST_QUERY} are the most")
        found = ask.memory.browse(query, chosen, wrong=wrong, after=ask.query.get("after", ""), limit=_ROWS)
    except UsageError as failed:
        error, found = failed, ask.memory.browse(limit=_ROWS)
    template = "list.html" if ask.is_part else "memories.html"
    status = status_of(error) if error else 200
    kept = {"q": query, **chosen, **({"wrong": "yes"} if wrong else {})}
    return ask.show(template, status, found=found, query=query, chosen=chosen, wrong=wrong, error=error, kept=kept)


def memory(ask: Ask) -> Response:
    return show_memory(ask, ask.path("id"))


def show_memory(
    ask: Ask, name: str, status: int = 200, error: RecollectError | None = None, typed: Mapping[str, str] | None = None
) -> Response:
    """One memory; with an error of a form, and what was typed there."""
    return ask.show(
        "memory.html",
        status,
        one=ask.memory.record(name),
        projects=ask.memory.projects(),
        kinds=list(MemoryKind),
        severities=list(Severity),
        error=error,
        typed=typed or {},
    )


def sessions(ask: Ask) -> Response:
    project = ask.query.get("project") or None
    found = ask.memory.talks(project, after=ask.query.get("after", ""), limit=_ROWS)
    now = ask.memory.clock()
    squares = calendar(ask.memory.activity(timestamp(now - _HALF_YEAR)), now.date())
    return ask.show("sessions.html", found=found, projects=ask.memory.projects(), project=project, squares=squares)


def session(ask: Ask) -> Response:
    holding = ask.query.get("holding", "")[:LONGEST_QUERY]
    read = ask.memory.read(ask.path("key"), after=ask.query.get("after", ""), limit=_MESSAGES, holding=holding)
    return ask.show("session.html", read=read, holding=holding, after=ask.query.get("after", ""))


def context(ask: Ask) -> Response:
    """What the agent gets, in a project, at its start and for a prompt."""
    projects = ask.memory.projects()
    project, prompt = ask.query.get("project", ""), ask.query.get("prompt", "")[:LONGEST_QUERY]
    if not project and projects:
        project = projects[0][0]
    off = ask.memory.untold(project) if project else None
    start = given(ask, project, "") if project and off is None else Given()
    answer = given(ask, project, prompt) if project and off is None and prompt.strip() else None
    return ask.show(
        "context.html", projects=projects, project=project, prompt=prompt, off=off, start=start, answer=answer
    )


def given(ask: Ask, project: str, prompt: str) -> Given:
    """The very bytes: of a session's start where there is no prompt. Changes nothing."""
    if prompt.strip():
        return ask.memory.context(project, prompt)
    return ask.memory.briefing.told(project)


def workings(ask: Ask) -> Response:
    return show_workings(ask)


def show_workings(
    ask: Ask, status: int = 200, error: RecollectError | None = None, typed: Mapping[str, str] | None = None
) -> Response:
    """Jobs, sources and settings, as lists; with an error of a form, and what was typed there."""
    settings = ask.memory.settings
    keys: list[dict[str, Any]] = [
        {"name": each.name, "value": _shown(getattr(settings.config, each.name)), "from": settings.origins[each.name]}
        for each in describe()
    ]
    off = list(settings.config.disabled_projects)
    named = [*ask.memory.projects(), *((each, 0) for each in off)]
    return ask.show(
        "workings.html",
        status,
        state=ask.memory.status(),
        keys=keys,
        projects=dict(named),
        off=off,
        cap=settings.config.max_tokens_per_day,
        error=error,
        typed=typed or {},
    )


def _shown(value: object) -> str:
    """A setting for a person. A database's address may hold a password."""
    text = str(value)
    return "postgresql://…" if text.startswith(("postgres://", "postgresql://")) else text


ROUTES: Mapping[str, View] = {
    "/": today,
    "/inbox": inbox,
    "/memories": memories,
    "/m/{id}": memory,
    "/sessions": sessions,
    "/s/{key:path}": session,
    "/context": context,
    "/workings": workings,
}
