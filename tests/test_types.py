"""Time as text: one form, sorted as time is, whatever form it came in."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from recollect.types import Timestamp, moment, parse_timestamp, timestamp

CANONICAL = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", re.ASCII)

# a zone must not lead out of time
FIRST, Y1000, LAST = (datetime.fromisoformat(text) for text in ("0001-01-03", "1000-01-03", "9999-12-29"))

zones = st.timedeltas(min_value=timedelta(hours=-23, minutes=-59), max_value=timedelta(hours=23, minutes=59)).map(
    lambda offset: timezone(timedelta(minutes=offset // timedelta(minutes=1)))
)
moments = st.datetimes(Y1000, LAST, timezones=zones)
early_moments = st.datetimes(FIRST, Y1000 - timedelta(days=5), timezones=st.just(UTC))


@given(moments)
def test_a_moment_becomes_canonical_text(when: datetime) -> None:
    assert CANONICAL.fullmatch(timestamp(when))


@given(early_moments)
def test_a_moment_before_the_year_1000_keeps_four_digits(when: datetime) -> None:
    assert CANONICAL.fullmatch(timestamp(when))


@given(moments)
def test_a_moment_comes_back_cut_off_at_the_millisecond(when: datetime) -> None:
    came_back = moment(timestamp(when))
    assert came_back.utcoffset() == timedelta(0)
    assert timedelta(0) <= when - came_back < timedelta(milliseconds=1)


@given(moments, moments)
def test_text_sorts_as_time_does(one: datetime, other: datetime) -> None:
    if timestamp(one) < timestamp(other):
        assert one < other
    if one <= other:
        assert timestamp(one) <= timestamp(other)


@given(moments, st.sampled_from(["auto", "seconds", "milliseconds", "microseconds"]), st.sampled_from("T "))
def test_every_iso_form_of_a_moment_parses_to_the_same_text(when: datetime, precision: str, separator: str) -> None:
    text = when.isoformat(separator, precision)
    assert parse_timestamp(text) == timestamp(datetime.fromisoformat(text))


@given(moments)
def test_parsing_canonical_text_gives_it_back(when: datetime) -> None:
    text = timestamp(when)
    assert parse_timestamp(text) == text


@given(st.datetimes(Y1000, LAST))
def test_a_time_without_a_zone_is_utc(when: datetime) -> None:
    assert parse_timestamp(when.isoformat()) == timestamp(when.replace(tzinfo=UTC))


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("2026-03-02", "2026-03-02T00:00:00.000Z"),
        ("2026-03-02T09:14:07Z", "2026-03-02T09:14:07.000Z"),
        ("2026-03-02 09:14:07.5Z", "2026-03-02T09:14:07.500Z"),
        ("2026-03-02T09:14:07.123456Z", "2026-03-02T09:14:07.123Z"),
        ("2026-03-02T09:14:07.999999Z", "2026-03-02T09:14:07.999Z"),
        ("2026-03-02T09:14:07.999999999Z", "2026-03-02T09:14:07.999Z"),
        ("2026-03-02T09:14:07,25+02:00", "2026-03-02T07:14:07.250Z"),
        ("2026-01-01T00:30:00+01:00", "2025-12-31T23:30:00.000Z"),
        ("20260302T091407Z", "2026-03-02T09:14:07.000Z"),
        ("2026-03-02T09:14:07.000-23:59", "2026-03-03T09:13:07.000Z"),
        ("2026-W10-1T09:14:07.000Z", "2026-03-02T09:14:07.000Z"),
        ("2026-03-02T09:14:07.000+00:00:01.75", "2026-03-02T09:14:05.250Z"),
    ],
)
def test_these_forms_are_understood(text: str, canonical: str) -> None:
    assert parse_timestamp(text) == canonical


@given(
    st.text(max_size=40)
    | st.from_regex(r"\A[12][0-9:T.,+Z -]{1,32}\Z")
    | st.from_regex(r"\A[12][0-9]{3}-[01][0-9]-[0-3][0-9][T ][0-2][0-9]:[0-6][0-9]:[0-6][0-9][.,][0-9]{3}Z\Z")
)
@example("")
@example("yesterday")
@example("2026-02-30T00:00:00Z")
@example("0001-01-01T00:00:00+01:00")
@example("9999-12-31T23:59:59-01:00")
@example("2026-03-02T24:00:00.000Z")
@example("2026-03-02T23:59:60.000Z")
@example("٢٠٢٦-03-02T00:00:00.000Z")
@example("2026-03-02T00:00:00.000z")
@example("\ud800")
def test_whatever_is_parsed_is_canonical_or_a_value_error(text: str) -> None:
    try:
        parsed = parse_timestamp(text)
    except ValueError:
        return
    assert CANONICAL.fullmatch(parsed)
    assert timestamp(moment(Timestamp(parsed))) == parsed
