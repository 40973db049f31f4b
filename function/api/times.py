"""Times as objects state them, in whole seconds since 1970. There is no clock here: all time is observed.

Whatever is not an RFC 3339 time after 1970 is no time: doubt, never a very old one. Zones and fractions of
seconds are understood, the latter cut off.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from function.cel.errors import EvaluationError
from function.cel.library.times import format_timestamp, parse_timestamp
from function.cel.values import NANO, Timestamp

if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_LENGTH = 64
"""Characters of the longest text that is taken for a time."""


def seconds_of(stated: object) -> int | None:
    """Return the seconds since 1970 of a stated time; None where it is no time."""
    if not isinstance(stated, str) or len(stated) > MAX_LENGTH:
        return None
    try:
        seconds = parse_timestamp(stated).nanos // NANO
    except EvaluationError:
        return None
    return seconds if seconds > 0 else None


def text_of(seconds: int) -> str:
    """Return the RFC 3339 text, in UTC."""
    return format_timestamp(Timestamp(seconds * NANO, 0))


def latest(stated: Iterable[object]) -> int | None:
    """Return the latest of times; None where there is none, or one of them is no time."""
    times = [seconds_of(item) for item in stated]
    instants = [time for time in times if time is not None]
    return max(instants) if instants and len(instants) == len(times) else None
