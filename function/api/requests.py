"""Walk over what a deployment asks for: every member, and every way to satisfy each of its device requests.

Each comes with the path of its field, in the order in which it is written: the primary engines, then those of
the alternatives.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from function.api.engine import DeviceRequest, Engine, Member, ReplicaShape, SubRequest


class MemberReference(NamedTuple):
    """One member of one engine, and where it is written."""

    path: str
    shape: ReplicaShape
    engine: Engine
    member: Member


class RequestReference(NamedTuple):
    """One way to satisfy one device request, and where it is written."""

    path: str
    of: MemberReference
    request: DeviceRequest
    rank: int
    """Its place in a prioritized list; 0 where there is only one way."""
    sub: SubRequest


def members_of(shapes: Iterable[ReplicaShape]) -> Iterator[MemberReference]:
    """Every member of every engine of every shape."""
    for number, shape in enumerate(shapes):
        base = f"alternatives[{number - 1}].engines" if number else "engines"
        for at, engine in enumerate(shape.engines):
            for place, member in enumerate(engine.members):
                yield MemberReference(f"{base}[{at}].members[{place}]", shape, engine, member)


def requests_of(members: Iterable[MemberReference]) -> Iterator[RequestReference]:
    """Every way to satisfy every device request of members."""
    for reference in members:
        for number, request in enumerate(reference.member.requests):
            path = f"{reference.path}.nodeSelector.devices[{number}]"
            for rank, sub in enumerate(request.ranked):
                where = f"{path}.firstAvailable[{rank}]" if request.first_available else path
                yield RequestReference(where, reference, request, rank, sub)
