"""Timestamps and durations as text and as calendar fields, in whole nanoseconds since 1970."""

from __future__ import annotations

import re
from typing import NamedTuple

from function.cel.errors import EvaluationError
from function.cel.values import INT64_MAX, NANO, Duration, Timestamp

DAY = 86_400
HOURS, SIXTY = 24, 60
_UNITS = {
    "ns": 1,
    "us": 10**3,
    "\u00b5s": 10**3,
    "\u03bcs": 10**3,
    "ms": 10**6,
    "s": NANO,
    "m": 60 * NANO,
    "h": 3600 * NANO,
}
_AMOUNT = re.compile(r"([0-9]*)(?:\.([0-9]*))?(ns|us|\u00b5s|\u03bcs|ms|s|m|h)")
_TIMESTAMP = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:[.,](\d+))?(?:Z|([+-])(\d\d):(\d\d))", re.ASCII
)
_OFFSET = re.compile(r"([+-]?\d{1,9}):([+-]?\d{1,9})", re.ASCII)
_LONGEST = 64
_LENGTHS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


class Date(NamedTuple):
    """A day and a time of day. Month and day count from 1, weekday (Sunday) and day of the year from 0."""

    year: int
    month: int
    day: int
    hour: int
    minute: int
    second: int
    weekday: int
    day_of_year: int


def is_leap(year: int) -> bool:
    """Whether the year has a 29th of February."""
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


def days_in(year: int, month: int) -> int:
    """Return the number of days of a month."""
    return _LENGTHS[month - 1] + (month == 2 and is_leap(year))  # noqa: PLR2004 - February


def days_before(year: int) -> int:
    """Return the days from 1970-01-01 to January 1st of a year."""
    past = year - 1
    return past * 365 + past // 4 - past // 100 + past // 400 - 719_162


def date_of(nanos: int, offset: int = 0) -> Date:
    """Return the calendar fields of a point in time, `offset` seconds east of UTC."""
    days, second = divmod(nanos // NANO + offset, DAY)
    year = 1970 + days * 400 // 146_097
    while days_before(year) > days:
        year -= 1
    while days_before(year + 1) <= days:
        year += 1
    day_of_year = rest = days - days_before(year)
    month = 1
    while rest >= days_in(year, month):
        rest -= days_in(year, month)
        month += 1
    hour, second = divmod(second, 3600)
    return Date(year, month, rest + 1, hour, second // 60, second % 60, (days + 4) % 7, day_of_year)


def parse_timestamp(text: str) -> Timestamp:
    """Return the timestamp that an RFC 3339 text is. Raises EvaluationError."""
    match = _TIMESTAMP.fullmatch(text) if len(text) <= _LONGEST else None
    if match is None:
        raise EvaluationError(f"{text!r} is not an RFC 3339 timestamp")
    year, month, day, hour, minute, second = map(int, match.groups()[:6])
    if not 1 <= month <= len(_LENGTHS) or not 1 <= day <= days_in(year, month):
        raise EvaluationError(f"{text!r} is not a day that exists")
    if hour >= HOURS or minute >= SIXTY or second >= SIXTY:
        raise EvaluationError(f"{text!r} is not a time that exists")
    days = days_before(year) + sum(days_in(year, past) for past in range(1, month)) + day - 1
    seconds = days * DAY + hour * 3600 + minute * 60 + second
    if match[8]:
        seconds -= (int(match[9]) * 3600 + int(match[10]) * 60) * (1 if match[8] == "+" else -1)
    return Timestamp(seconds * NANO + int((match[7] or "")[:9].ljust(9, "0")))


def format_timestamp(time: Timestamp) -> str:
    """Return the RFC 3339 text of a timestamp."""
    date = date_of(time.nanos)
    day = f"{date.year:04}-{date.month:02}-{date.day:02}"
    return f"{day}T{date.hour:02}:{date.minute:02}:{date.second:02}{_fraction(time.nanos % NANO)}Z"


def _fraction(nanos: int) -> str:
    return f".{nanos:09}".rstrip("0") if nanos else ""


def parse_duration(text: str) -> Duration:
    """Return the duration that a text such as 1h30m is. Raises EvaluationError."""
    bare = text[1:] if text[:1] in ("+", "-") else text
    nanos = 0 if bare == "0" else _nanos(bare)
    if nanos is None or nanos > INT64_MAX:
        raise EvaluationError(f"{text!r} is not a duration")
    return Duration(-nanos if text[0] == "-" else nanos)


def _nanos(text: str) -> int | None:
    """Return the sum of amounts with units; None if anything else is in the text."""
    total = position = 0
    if not text or len(text) > _LONGEST * 4:
        return None
    while position < len(text):
        match = _AMOUNT.match(text, position)
        if match is None or not (match[1] or match[2]):
            return None
        unit, fraction = _UNITS[match[3]], match[2] or "0"
        total += int(match[1] or 0) * unit + int(fraction) * unit // 10 ** len(fraction)
        position = match.end()
    return total


def format_duration(duration: Duration) -> str:
    """Return a duration in seconds, such as 90.5s."""
    seconds, nanos = divmod(abs(duration.nanos), NANO)
    return f"{'-' if duration.nanos < 0 else ''}{seconds}{_fraction(nanos)}s"


def zone_offset(zone: str) -> int:
    """Return how many seconds a zone is east of UTC. Raises EvaluationError for names other than UTC.

    A named zone needs a database of zones, which the core does not read; no device publishes a time.
    """
    if zone in ("", "UTC"):
        return 0
    match = _OFFSET.fullmatch(zone)
    if match is None:
        raise EvaluationError(f"unknown time zone {zone!r}: write an offset such as +02:00")
    hours, minutes = int(match[1]), int(match[2])
    return (hours * 60 + (-minutes if zone[0] == "-" else minutes)) * 60
