"""Time expressions in a query: "yesterday", "two weeks ago", "in March", "from July to October". Pure.

A span is what the words mean, in whole days of the asker's clock. Text that is no time expression gives no span.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

_MONTHS = "january february march april may june july august september october november december".split()
_DAYS = "monday tuesday wednesday thursday friday saturday sunday".split()
_NUMBERS = {
    word: number
    for number, words in enumerate(
        ("a an one", "two couple", "three few", "four several", "five", "six", "seven", "eight", "nine", "ten",
         "eleven", "twelve"), start=1
    )
    for word in words.split()
}  # fmt: skip
_UNITS = {"day": 1, "week": 7, "weekend": 7, "month": 30, "year": 365}

_NUMBER = rf"(?P<number>\d{{1,3}}|{'|'.join(_NUMBERS)}|(?:a )?(?:couple(?: of)?|few))"
_UNIT = r"(?P<unit>day|week|weekend|month|year)s?"
_MONTH = "(?P<month>" + "|".join(f"{name[:3]}(?:{name[3:]})?" for name in _MONTHS) + "|sept)"
_UNTIL_MONTH = _MONTH.replace("<month>", "<second>")
_WEEKDAY = r"(?P<weekday>monday|tuesday|wednesday|thursday|friday|saturday|sunday)"
_YEAR = r"(?P<year>(?:19|20)\d\d)"
_DAY = r"(?P<day>[0-3]?\d)(?:st|nd|rd|th)?"

_MOST = 32  # stretches of time of one query
_LATER = 0.5  # of a distance, where it is behind the time that is meant


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of time that the query speaks of."""

    first: datetime  # inclusive
    last: datetime  # exclusive
    words: str  # of the query

    def distance(self, moment: datetime) -> float:
        """0 inside; outside the distance to the nearer edge, in lengths of the span (a day at least).

        Afterwards counts half: what happened then may be told later, hardly before.
        """
        if self.first <= moment < self.last:
            return 0.0
        away = self.first - moment if moment < self.first else (moment - self.last) * _LATER
        return away / max(self.last - self.first, timedelta(days=1))


def spans(query: str, now: datetime) -> list[Span]:
    """Every stretch of time that the query names, in the order of the text; words are used once."""
    found: list[tuple[int, int, Span]] = []
    text = query.lower()
    for pattern, meaning in _RULES:
        for match in pattern.finditer(text):
            if len(found) >= _MOST:
                break
            if any(start < match.end() and match.start() < end for start, end, _ in found):
                continue
            try:
                meant = meaning(match, now)
            except (ValueError, OverflowError):  # the 31st of June, the year 1
                continue
            if meant is not None:
                found.append((match.start(), match.end(), Span(*meant, query[match.start() : match.end()])))
    return [span for _, _, span in sorted(found, key=lambda each: each[0])]


_Meant = tuple[datetime, datetime] | None


def _midnight(moment: datetime) -> datetime:
    return moment.replace(hour=0, minute=0, second=0, microsecond=0)


def _days(start: datetime, count: int = 1) -> tuple[datetime, datetime]:
    return start, start + timedelta(days=count)


def _month_number(name: str) -> int:
    return next(number for number, month in enumerate(_MONTHS, 1) if month.startswith(name[:3]))


def _month_start(year: int, month: int, now: datetime) -> datetime:
    return _midnight(now).replace(year=year + (month - 1) // 12, month=(month - 1) % 12 + 1, day=1)


def _number(match: re.Match[str]) -> int:
    words = [word for word in match["number"].split() if word != "of"]
    return int(words[-1]) if words[-1].isdigit() else _NUMBERS[words[-1]]


def _ago(match: re.Match[str], now: datetime) -> _Meant:
    """Counted from today; the coarser the unit, the wider what may be meant."""
    unit = _UNITS[match["unit"]]
    middle = _midnight(now) - timedelta(days=_number(match) * unit)
    slack = {1: 0, 7: 3, 30: 10, 365: 90}[unit]
    return middle - timedelta(days=slack), middle + timedelta(days=slack + 1)


def _past(match: re.Match[str], now: datetime) -> _Meant:
    """ "in the past three months": up to now."""
    count = _number(match) if match["number"] else 1
    end = _midnight(now) + timedelta(days=1)
    return end - timedelta(days=count * _UNITS[match["unit"]] + 1), end


def _near_day(match: re.Match[str], now: datetime) -> _Meant:
    back = {"today": 0, "tonight": 0, "this": 0, "yesterday": 1, "last": 1, "the": 2}[match[0].split()[0]]
    return _days(_midnight(now) - timedelta(days=back))


def _named_unit(match: re.Match[str], now: datetime) -> _Meant:
    """ "last week", "this month": calendar units, except that "last week" may also be the last seven days."""
    today, back = _midnight(now), 0 if match["which"] in ("this", "current") else 1
    if match["unit"] == "day":
        return _days(today - timedelta(days=back))
    if match["unit"] == "week":
        monday = today - timedelta(days=today.weekday() + 7 * back)
        return monday, min(monday + timedelta(days=7), today) if back else today + timedelta(days=1)
    if match["unit"] == "weekend":
        saturday = today - timedelta(days=(today.weekday() - 5) % 7)
        if back and today.weekday() >= 5 and match["which"] == "last":
            saturday -= timedelta(days=7)
        return _days(saturday, 2)
    if match["unit"] == "month":
        first = _month_start(now.year, now.month - back, now)
        return first, _month_start(first.year, first.month + 1, now)
    first = _month_start(now.year - back, 1, now)
    return first, _month_start(first.year + 1, 1, now)


def _weekday(match: re.Match[str], now: datetime) -> _Meant:
    """The latest such day before today."""
    today = _midnight(now)
    back = (today.weekday() - _DAYS.index(match["weekday"]) - 1) % 7 + 1
    return _days(today - timedelta(days=back))


def _year_of(month: int, named: str | None, now: datetime) -> int:
    """A month without a year is the latest one that has begun."""
    return int(named) if named else now.year - (month > now.month)


def _month(match: re.Match[str], now: datetime) -> datetime:
    month = _month_number(match["month"])
    return _month_start(_year_of(month, match["year"], now), month, now)


def _in_month(match: re.Match[str], now: datetime) -> _Meant:
    first = _month(match, now)
    return first, _month_start(first.year, first.month + 1, now)


def _on_date(match: re.Match[str], now: datetime) -> _Meant:
    return _days(_month(match, now).replace(day=int(match["day"])))


def _months(match: re.Match[str], now: datetime) -> _Meant:
    """ "from July to October", "between July and October"."""
    begin, end = _month_number(match["month"]), _month_number(match["second"])
    year = _year_of(begin, match["year"], now)
    if match["year"] and begin > end:  # the year stands behind the second month
        year -= 1
    return _month_start(year, begin, now), _month_start(year, end + 1 + (12 if begin > end else 0), now)


def _iso(match: re.Match[str], now: datetime) -> _Meant:
    day = _midnight(now).replace(year=int(match["y"]), month=int(match["m"]), day=int(match["d"]))
    return _days(day)


def _in_year(match: re.Match[str], now: datetime) -> _Meant:
    first = _month_start(int(match["year"]), 1, now)
    return first, _month_start(first.year + 1, 1, now)


def _since(match: re.Match[str], now: datetime) -> _Meant:
    return _month(match, now), _midnight(now) + timedelta(days=1)


def _rules() -> Iterator[tuple[re.Pattern[str], Callable[[re.Match[str], datetime], _Meant]]]:
    year = rf"(?:,? ?(?:of )?{_YEAR})"
    opt_year = year + "?"
    for text, meaning in (
        (r"(?P<y>(?:19|20)\d\d)-(?P<m>[01]\d)-(?P<d>[0-3]\d)", _iso),
        (r"the day before yesterday|yesterday|today|tonight|this (?:morning|afternoon|evening)|last night", _near_day),
        (rf"{_NUMBER} {_UNIT} ago", _ago),
        (rf"(?:past|last|previous) (?:{_NUMBER} )(?P<unit>day|week|month|year)s?", _past),
        (r"(?:the )?past (?P<number>)(?P<unit>day|week|month|year)", _past),
        (r"(?P<which>last|past|previous|this|current) (?P<unit>day|weekend|week|month|year)", _named_unit),
        (rf"(?:last|past|previous|this|on) {_WEEKDAY}", _weekday),
        (rf"(?:from|between) {_MONTH} (?:to|until|till|through|and) {_UNTIL_MONTH}{opt_year}", _months),
        (rf"{_MONTH} {_DAY}{opt_year}", _on_date),
        (rf"{_DAY} (?:of )?{_MONTH}{opt_year}", _on_date),
        (rf"since {_MONTH}{opt_year}", _since),
        (rf"{_MONTH}{year}", _in_month),
        (rf"(?:in|during|last|this|of|for|early|mid|late) {_MONTH}{opt_year}", _in_month),
        (rf"(?:in|during|of) {_YEAR}", _in_year),
    ):  # fmt: skip
        yield re.compile(rf"(?<![\w-])(?:{text})(?![\w-])"), meaning


_RULES = tuple(_rules())
