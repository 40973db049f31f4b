"""The answer to one call, in plain values; a door writes it in its own encoding."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

    from function.boundary.document import Plain
    from function.boundary.request import Request


@dataclass(frozen=True, slots=True)
class Requirement:
    """Something Crossplane must fetch before it calls again.

    Without a name and without labels: every object of the kind.
    """

    name: str
    api_version: str
    kind: str
    match_name: str | None = None
    namespace: str | None = None
    match_labels: tuple[tuple[str, str], ...] = ()
    """Labels that all must be equal, sorted by key."""
    served_by: str | None = None
    """The requirement whose objects include this one's: where it is delivered, this one is."""

    def delivered(self, request: Request) -> bool:
        """Whether a request holds what is required, perhaps as an empty list."""
        return self.name in request.required or self.served_by in request.required


@dataclass(slots=True)
class Desired:
    """One desired composed resource. `ready` True marks it ready; False says nothing."""

    resource: dict[str, Plain]
    ready: bool = False
    written: bytes | None = field(default=None, compare=False, repr=False)
    """The resource as a door has written it, noted by that door: desired again, it is not written again."""


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition of the composite: one line of message, no time."""

    type: str
    status: bool
    reason: str
    message: str = ""


@dataclass(frozen=True, slots=True)
class Result:
    """One event on the composite. Severity is NORMAL, WARNING or FATAL."""

    severity: str
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Response:
    """The whole answer to one request."""

    requirements: tuple[Requirement, ...]
    desired: Mapping[str, Desired] = field(default_factory=dict)
    status: Mapping[str, Plain] = field(default_factory=dict)
    """Fields of the composite's status to set, merged into what earlier steps desire."""
    unready: bool = False
    """True marks the composite not ready; False leaves readiness to Crossplane."""
    conditions: tuple[Condition, ...] = ()
    results: tuple[Result, ...] = ()
    settled: bool = False
    """True when nothing is pending: the door picks the long time to live."""
    ttl: tuple[float | None, float | None] = (None, None)
    """Seconds (pending, settled) asked for by the function's input; None leaves it to the door's flags."""
    counts: Mapping[str, int] = field(default_factory=dict)
    """Work and outcome in numbers, for the log line and the metrics."""
    rejections: Mapping[str, int] = field(default_factory=dict)
    """How many clusters were rejected, by headline reason."""
    written: dict[Hashable, bytes] = field(init=False, default_factory=dict, compare=False, repr=False)
    """The answer as a door has written it, noted by that door: given again, it is not written again. A copy
    with something replaced starts without."""
