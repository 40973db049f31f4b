"""What a deployment asks of devices, request by request, each with the path of its field."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from function.api import ModelDeployment
    from function.api.deployment import Engine, SubRequest


class Asked(NamedTuple):
    """One way to satisfy one request, and where it is written."""

    path: str
    engine: str
    member: str
    request: str
    rank: int
    sub: SubRequest


def asked(deployment: ModelDeployment) -> Iterator[Asked]:
    """Every request of every engine, of the alternatives too, in the order in which they are written."""
    for number, shape in enumerate(deployment.shapes):
        base = f"alternatives[{number - 1}].engines" if number else "engines"
        for at, engine in enumerate(shape.engines):
            yield from _of_engine(f"{base}[{at}]", engine)


def _of_engine(path: str, engine: Engine) -> Iterator[Asked]:
    for place, member in enumerate(engine.members):
        for number, request in enumerate(member.requests):
            base = f"{path}.members[{place}].nodeSelector.devices[{number}]"
            for rank, sub in enumerate(request.ranked):
                where = f"{base}.firstAvailable[{rank}]" if request.first_available else base
                yield Asked(where, engine.name, member.role, request.name, rank, sub)
