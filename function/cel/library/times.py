"""Timestamps and durations as text and as calendar fields, in whole nanoseconds since 1970.

No device publishes a time, but the API server admits them, so they mean the same here. The rules are cel-go's
`common/types/timestamp.go` and `duration.go`, and of Go's `time` package what these call: `time.Parse` with
RFC 3339, which takes an hour of one digit and a comma before the fraction, and `time.ParseDuration`, which
takes `1h30m`, `1.5h` and `-0`. Python's `datetime` has microseconds and no year 0, so the calendar is
computed here.

Limit: a named time zone (`Europe/Berlin`) needs a database that the core does not read; it is an error.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from decimal import Decimal
from typing import NamedTuple

from function.cel.library.declarations import method
from function.cel.values import NANO, Duration, EvaluationError, Timestamp

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
_AMOUNT = re.compile(r"([0-9]*+)(?:\.([0-9]*+))?+([^.0-9]++)")
_TIMESTAMP = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)T(\d\d?):(\d\d):(\d\d)(?:[.,](\d+))?(?:Z|([+-])(\d\d):(\d\d))", re.ASCII
)
_OFFSET = re.compile(r"([+-]?\d{1,9}):([+-]?\d{1,9})", re.ASCII)
_MAX_NANOSECONDS = 2**63
"""Nanoseconds of the longest duration, which only a negative one may have."""
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


def days_in(year: int, month: int) -> int:
    """Return the number of days of a month."""
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    return _LENGTHS[month - 1] + (leap and month == 2)  # noqa: PLR2004 - February


def days_before(year: int) -> int:
    """Return the days from 1970-01-01 to January 1st of a year.

    The calendar of today, reckoned backwards beyond its beginning (proleptic Gregorian), as Go has it.
    """
    past = year - 1
    return past * 365 + past // 4 - past // 100 + past // 400 - 719_162


def date_of(nanos: int, offset: int = 0) -> Date:
    """Return the calendar fields of a point in time, `offset` seconds east of UTC.

    The year is guessed from the mean length of one and corrected, by one year at most.
    """
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
    """Return the timestamp that an RFC 3339 text is. Raises EvaluationError.

    Go's `time.Parse` is looser than the RFC: an hour may have one digit, and a comma may begin the fraction,
    of which digits beyond the ninth are dropped. A leap second does not exist. The offset is kept, for the
    text of the timestamp shows it.
    """
    match = _TIMESTAMP.fullmatch(text)
    if match is None:
        raise EvaluationError(f"{text!r} is not an RFC 3339 timestamp")
    year, month, day, hour, minute, second = map(int, match.groups()[:6])
    if not 1 <= month <= len(_LENGTHS) or not 1 <= day <= days_in(year, month):
        raise EvaluationError(f"{text!r} is not a day that exists")
    if hour >= HOURS or minute >= SIXTY or second >= SIXTY:
        raise EvaluationError(f"{text!r} is not a time that exists")
    days = days_before(year) + sum(days_in(year, past) for past in range(1, month)) + day - 1
    seconds = days * DAY + hour * 3600 + minute * 60 + second
    offset = 0
    if match[8]:
        hours, minutes = int(match[9]), int(match[10])
        if hours > HOURS or minutes > SIXTY:  # Go lets 24 hours and 60 minutes pass.
            raise EvaluationError(f"{text!r} is not in a zone that exists")
        offset = (hours * 3600 + minutes * 60) * (1 if match[8] == "+" else -1)
    return Timestamp((seconds - offset) * NANO + int((match[7] or "")[:9].ljust(9, "0")), offset)


def format_timestamp(time: Timestamp) -> str:
    """Return the RFC 3339 text of a timestamp, in the zone it was written in."""
    date = date_of(time.nanos, time.offset)
    day = f"{date.year:04}-{date.month:02}-{date.day:02}"
    clock = f"{date.hour:02}:{date.minute:02}:{date.second:02}"
    nanos, offset, zone = time.nanos % NANO, time.offset, "Z"
    if nanos:
        clock += f".{nanos:09}".rstrip("0")
    if offset:
        minutes = abs(offset) // 60
        zone = f"{'-' if offset < 0 else '+'}{minutes // 60:02}:{minutes % 60:02}"
    return f"{day}T{clock}{zone}"


def parse_duration(text: str) -> Duration:
    """Return the duration that a text such as 1h30m is, by the rules of Go. Raises EvaluationError.

    Amounts with units follow each other in any order. "0" needs no unit. Only a negative duration may have
    the full 2^63 nanoseconds.
    """
    bare = text[1:] if text[:1] in ("+", "-") else text
    nanos = 0 if bare == "0" else _nanos(bare)
    negative = text[:1] == "-"
    if nanos is None or nanos > _MAX_NANOSECONDS - (not negative):
        raise EvaluationError(f"{text[:80]!r} is not a duration")
    return Duration(-nanos if negative else nanos)


def _nanos(text: str) -> int | None:
    """Return the sum of amounts with units; None if anything else is in the text, or too much."""
    total = position = 0
    if not text:
        return None
    while position < len(text):
        match = _AMOUNT.match(text, position)
        if match is None or not (match[1] or match[2]) or match[3] not in _UNITS:
            return None
        unit, whole = _UNITS[match[3]], match[1].lstrip("0")
        if len(whole) > len(str(_MAX_NANOSECONDS)) or int(whole or 0) > _MAX_NANOSECONDS // unit:
            return None
        total += int(whole or 0) * unit + _fraction_of(match[2] or "", unit)
        if total > _MAX_NANOSECONDS:
            return None
        position = match.end()
    return total


def _fraction_of(fraction: str, unit: int) -> int:
    """Return the nanoseconds of a fraction of a unit, as Go computes them with doubles.

    Digits beyond 64 bits are dropped. The multiplication rounds as Go's does, which can be off by a
    nanosecond from the exact fraction; the same one is wanted.
    """
    digits, scale = 0, 1.0
    for digit in fraction:
        if digits > (_MAX_NANOSECONDS - 1) // 10 or digits * 10 + int(digit) > _MAX_NANOSECONDS:
            break
        digits, scale = digits * 10 + int(digit), scale * 10
    return int(float(digits) * (unit / scale))


def format_duration(duration: Duration) -> str:
    """Return a duration in seconds, such as 90.5s: the shortest text of the double that Go makes of it."""
    return f"{plain_double(part_of(duration, NANO))}s"


def part_of(duration: Duration, unit: int) -> float:
    """Return how many of a unit a duration is, as the double that Go makes of it.

    Whole units and the rest are divided apart, as `Duration.Seconds` does, so that large durations keep their
    digits.
    """
    whole, rest = divmod(abs(duration.nanos), unit)
    return math.copysign(whole + rest / unit, duration.nanos or 1)


def plain_double(number: float) -> str:
    """Return the shortest text that reads back as the number, without an exponent."""
    text = f"{Decimal(repr(number)):f}"
    return text.removesuffix(".0")


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


MILLI = 10**6

PARTS: dict[str, Callable[[Date], int]] = {
    "getFullYear": lambda date: date.year,
    "getMonth": lambda date: date.month - 1,
    "getDayOfYear": lambda date: date.day_of_year,
    "getDayOfMonth": lambda date: date.day - 1,
    "getDate": lambda date: date.day,
    "getDayOfWeek": lambda date: date.weekday,
    "getHours": lambda date: date.hour,
    "getMinutes": lambda date: date.minute,
    "getSeconds": lambda date: date.second,
}


def _milliseconds_of(duration: Duration) -> int:
    """Return all milliseconds of a duration, not only those beyond its seconds."""
    count = abs(duration.nanos) // MILLI
    return -count if duration.nanos < 0 else count


def _milliseconds(time: Timestamp, zone: str = "UTC") -> int:
    """Return a timestamp's milliseconds beyond its seconds. A zone changes nothing, but must be one."""
    zone_offset(zone)
    return time.nanos % NANO // MILLI


_CALENDAR: dict[str, Callable[..., int]] = {
    **{
        name: lambda time, zone="UTC", read=read: read(date_of(time.nanos, zone_offset(zone)))
        for name, read in PARTS.items()
    },
    "getMilliseconds": _milliseconds,
}
_SPANS = {"getHours": 3600 * NANO, "getMinutes": 60 * NANO, "getSeconds": NANO}

DECLARATIONS = (
    *(
        method(name, signature, run)
        for name, run in _CALENDAR.items()
        for signature in ("timestamp -> int", "timestamp, string -> int")
    ),
    *(
        method(name, "duration -> int", lambda duration, unit=unit: int(part_of(duration, unit)))
        for name, unit in _SPANS.items()
    ),
    method("getMilliseconds", "duration -> int", _milliseconds_of),
)
