"""A plan's limit, as Claude Code and Codex tell it: whether a text is one, and when the limit resets. Pure."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo

# "You've hit your session limit · resets 3pm (Europe/Paris)", "Claude AI usage limit reached|1766502000",
# "You've hit your usage limit. … or try again at Jul 5th, 2026 8:19 PM.", "You're out of Codex messages."
_LIMIT = re.compile(
    r"(?:hit|reached) your (?:\S+ ){0,2}limit|\b(?:usage|session|weekly|5-hour|opus|sonnet) limit reached"
    r"|out of (?:extra usage|codex messages)|usage_limit_reached",
    re.IGNORECASE,
)
_SECONDS = re.compile(r"limit reached\|(\d{10})\b")
_IN = re.compile(r"try again in ((?:\d+ (?:day|hour|minute|second)s?[, ]*(?:and )?)+)", re.IGNORECASE)
_SPAN = re.compile(r"(\d+) (day|hour|minute|second)", re.IGNORECASE)
_DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_AT = re.compile(
    r"(?:resets?|try again)(?: on| at)? "
    rf"(?:(?P<weekday>{'|'.join(_DAYS)})[a-z]*,? (?:at )?)?"
    rf"(?:(?P<month>{'|'.join(_MONTHS)})[a-z]* (?P<day>\d\d?)(?:st|nd|rd|th)?(?:, (?P<year>\d{{4}}))?,? (?:at )?)?"
    r"(?P<hour>\d\d?)(?::(?P<minute>\d\d))? ?(?P<half>[ap]m)?\b(?: \((?P<zone>[\w/+-]+)\))?",
    re.IGNORECASE,
)
_JUST_PASSED = timedelta(hours=1)


def is_plan_limit(text: str) -> bool:
    return _LIMIT.search(text) is not None


def resets_at(text: str, now: datetime) -> datetime | None:
    """When the limit resets, by what the agent says; None where it does not tell, or tells a time that has passed."""
    if told := _SECONDS.search(text):
        return _future(datetime.fromtimestamp(int(told[1]), UTC), now)
    if told := _IN.search(text):
        spans = {f"{unit.lower()}s": int(number) for number, unit in _SPAN.findall(told[1])}
        return now + timedelta(**spans)
    told = _AT.search(text)
    try:
        return told and _clock_time(told, now)
    except ValueError:  # no such hour, no such day
        return None


def _clock_time(told: re.Match[str], now: datetime) -> datetime | None:
    here = now.astimezone(_zone(told["zone"]))
    hour = int(told["hour"])
    if half := (told["half"] or "").lower():
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if half == "pm" else 0)
    at = here.replace(hour=hour, minute=int(told["minute"] or 0), second=0, microsecond=0)
    if told["month"]:
        month = _MONTHS.index(told["month"].lower()) + 1
        at = at.replace(year=int(told["year"] or here.year), month=month, day=int(told["day"]))
        if not told["year"] and at < here - timedelta(days=1):  # it is December, and January is meant
            at = at.replace(year=here.year + 1)
        return _future(at, now)
    if told["weekday"]:
        at += timedelta(days=(_DAYS.index(told["weekday"].lower()) - here.weekday()) % 7)
        return _future(at if at > here else at + timedelta(days=7), now)
    if here - _JUST_PASSED < at <= here:  # agents go on to tell the time for a while
        return None
    return _future(at if at > here else at + timedelta(days=1), now)


def _future(at: datetime, now: datetime) -> datetime | None:
    return at.astimezone(UTC) if at > now else None


def _zone(name: str | None) -> tzinfo | None:
    """None: that of this machine."""
    try:
        return ZoneInfo(name) if name else None
    except (KeyError, ValueError, OSError):  # not known here
        return None
