"""Timestamps and durations: their parts. No device publishes a time; the dialect has them all the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

from function.cel.declarations import Overload, method
from function.cel.times import Date, date_of, part_of, zone_offset
from function.cel.values import NANO, Duration, Timestamp

if TYPE_CHECKING:
    from collections.abc import Callable

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


def _part(read: Callable[[Date], int]) -> Callable[..., int]:
    return lambda time, zone="UTC": read(date_of(time.nanos, zone_offset(zone)))


def _milliseconds(time: Timestamp, zone: str = "UTC") -> int:
    zone_offset(zone)
    return time.nanos % NANO // MILLI


def _calendar() -> list[Overload]:
    parts = {name: _part(read) for name, read in PARTS.items()} | {"getMilliseconds": _milliseconds}
    return [
        method(name, signature, run)
        for name, run in parts.items()
        for signature in ("timestamp -> int", "timestamp, string -> int")
    ]


def _spans() -> list[Overload]:
    units = (("getHours", 3600 * NANO), ("getMinutes", 60 * NANO), ("getSeconds", NANO))
    return [
        method(name, "duration -> int", lambda duration, unit=unit: int(part_of(duration, unit)))
        for name, unit in units
    ]


DECLARATIONS = (
    *_calendar(),
    *_spans(),
    method("getMilliseconds", "duration -> int", _milliseconds_of),
)
