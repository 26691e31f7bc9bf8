"""What a caller asked for, checked: a scope that is missing or empty is an error, never everything. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path

from recollect.errors import UsageError
from recollect.search.values import AllProjects, Scope, Wanted
from recollect.store.search import Reach
from recollect.store.unlisted import NOTHING, Unlisted
from recollect.store.vectors import Kind
from recollect.types import Owner, Role, Timestamp, parse_timestamp, timestamp

_HINT = "Name a project (a path or a project id), or pass ALL_PROJECTS."


def reach(
    owner: Owner,
    scope: Scope,
    project_of: Callable[[str | Path], str],
    user: str = "",
    unlisted: Unlisted = NOTHING,
) -> Reach:
    """What the query may see. `project_of` turns a path into a project id; `user` is that of a chat; what is `unlisted`
    is not told."""
    if not isinstance(user, str) or (user and not user.strip()):
        raise UsageError(f"{user!r} is no user of a chat", hint="Pass the user as the chat's turns name them.")
    if isinstance(scope, AllProjects):
        return Reach(owner, None, user, unlisted)
    named = [scope] if isinstance(scope, str) or not isinstance(scope, Iterable) else list(scope)
    if not named or not all(isinstance(each, str | Path) and str(each).strip() for each in named):
        raise UsageError("a search needs a scope", hint=_HINT)
    return Reach(owner, tuple(dict.fromkeys(project_of(each) for each in named)), user, unlisted)


def wanted(kinds: Iterable[str], *, role: str = "", source: str = "", since: str = "", until: str = "") -> Wanted:
    try:
        chosen = frozenset(Kind(each) for each in ([kinds] if isinstance(kinds, str) else kinds))
    except ValueError as error:
        raise UsageError(f"{error}: a kind is one of {', '.join(Kind)}") from error
    if role and role not in list(Role):
        raise UsageError(f"`{role}`: a role is one of {', '.join(Role)}")
    found = Wanted(role=role, source=source, since=_time(since), until=day_end(until) or _time(until))
    if role and chosen and Kind.ENTRY not in chosen:
        raise UsageError(f"only entries have a role, not what is of the kind {', '.join(sorted(chosen))}")
    if role:
        chosen = chosen & {Kind.ENTRY} if chosen else frozenset({Kind.ENTRY})
    return replace(found, kinds=chosen) if chosen or role else found


def day_end(text: str) -> Timestamp | None:
    """The end of the day that `until` names: a day counts as a whole. None where it names a time, or nothing."""
    try:
        return timestamp(datetime.combine(date.fromisoformat(text.strip()), time.min, UTC) + timedelta(days=1))
    except (ValueError, OverflowError):
        return None


def _time(text: str) -> str:
    try:
        return parse_timestamp(text) if text else ""
    except ValueError as error:
        raise UsageError(f"`{text}` is no time", hint="Write 2026-03-28, or 2026-03-28T09:30Z.") from error
