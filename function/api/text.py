"""Text that people read, one line at most as long as a condition's message; and times as objects state them.

No time is ever taken from a clock: every one is read from an object, so that equal requests give equal
answers (docs/how-it-schedules.md, Law 1).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import sha256

from function.cel.library.times import format_timestamp, parse_timestamp
from function.cel.values import NANO, EvaluationError, Timestamp

LIMIT = 512
"""Characters of a condition's message."""
STRIPPED = "(stripped)"
"""What stands in a recording or a snapshot for a text that it leaves out."""


def one_line(text: str, limit: int = LIMIT) -> str:
    """Fold white space and cut to the limit, so that every text stays one readable line."""
    folded = " ".join(text.split())
    return folded if len(folded) <= limit else folded[: limit - 1].rstrip() + "…"


def joined(*parts: str, by: str = "; ") -> str:
    """The parts of a message that are not empty: `Scheduled 2 of 3 replicas; ...; ...`."""
    return by.join(filter(None, parts))


def listed(names: Sequence[str], most: int) -> str:
    """The first names, and how many more there are: `a, b and 2 more`."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"{', '.join(names[:most])}{more}"


def counted(number: int, noun: str) -> str:
    """`1 node`, `2 nodes`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


QUOTED = "; replicas say: "
"""Comes before the words of replicas in a deployment's message. No recording keeps what follows."""


DIGEST_LENGTH = 32
"""Hex digits of a digest: enough to tell two apart, short enough to read out."""


def digest(parts: Iterable[str]) -> str:
    """Return one short text for many, in their order: equal texts have equal digests."""
    running = sha256()
    for part in parts:
        running.update(part.encode())
        running.update(b"\n")
    return running.hexdigest()[:DIGEST_LENGTH]


# Times as objects state them, in whole seconds since 1970. There is no clock here: all time is observed.
#
# Whatever is not an RFC 3339 time after 1970 is no time: doubt, never a very old one. Zones and fractions
# of seconds are understood, the latter cut off.

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


VERSION_DOTS = 2


def full_version(text: str) -> str:
    """Return a version with the parts that it lacks of three: `9.0` is `9.0.0`."""
    return text + ".0" * (VERSION_DOTS - text.count("."))
