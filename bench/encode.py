"""Write requests as Crossplane does: the same objects, every time with their map entries in another order.

Crossplane's marshaller does not sort map entries, so the bytes of an unchanged object differ from call to
call. Each object is written in a few orders once; a request takes one of them at random, items shuffled.
"""

from __future__ import annotations

import random
import struct
from typing import TYPE_CHECKING, Any

from crossplane.function.proto.v1 import run_function_pb2 as pb

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from bench.fleets import Fleet

Plain = dict[str, Any]

ORDERS = 2
_STRING, _LENGTH, _FIXED = 2, 2, 1
_NULL, _NUMBER, _TEXT, _BOOL, _STRUCT, _LIST = 1, 2, 3, 4, 5, 6
"""The fields of google.protobuf.Value."""


def varint(number: int) -> bytes:
    """Return a number as protobuf writes lengths."""
    made = bytearray()
    while number > 127:
        made.append(number & 127 | 128)
        number >>= 7
    made.append(number)
    return bytes(made)


def field(number: int, content: bytes) -> bytes:
    """Return a length-delimited field."""
    return varint(number << 3 | _LENGTH) + varint(len(content)) + content


def value(draw: random.Random, plain: Any) -> bytes:
    """Return a google.protobuf.Value."""
    if isinstance(plain, dict):
        return field(_STRUCT, struct_of(draw, plain))
    if isinstance(plain, list):
        return field(_LIST, b"".join(field(1, value(draw, item)) for item in plain))
    if isinstance(plain, bool):
        return bytes((_BOOL << 3, plain))
    if plain is None:
        return bytes((_NULL << 3, 0))
    if isinstance(plain, str):
        return field(_TEXT, plain.encode())
    return bytes((_NUMBER << 3 | _FIXED,)) + struct.pack("<d", plain)


def struct_of(draw: random.Random, plain: Plain) -> bytes:
    """Return a google.protobuf.Struct, its entries in a random order."""
    keys = draw.sample(list(plain), len(plain))
    return b"".join(field(1, field(1, key.encode()) + field(2, value(draw, plain[key]))) for key in keys)


class Requests:
    """Requests for one fleet: the same content, other bytes each time."""

    def __init__(self, fleet: Fleet, seed: int = 1) -> None:
        """Write every object of the fleet in its orders."""
        self.fleet = fleet
        self.draw = random.Random(seed)
        self.written: dict[int, tuple[bytes, ...]] = {}
        self.refresh([*fleet.clusters, *fleet.replicas, fleet.deployment])

    def refresh(self, changed: Iterable[Plain]) -> None:
        """Write objects again that have changed."""
        for document in changed:
            self.written[id(document)] = tuple(
                field(_number(pb.Resource, "resource"), struct_of(self.draw, document)) for _ in range(ORDERS)
            )

    def one(self, document: Plain) -> bytes:
        """Return one object in one of its orders."""
        return self.draw.choice(self.written[id(document)])

    def next(self, required: Mapping[str, list[Plain]] | None = None, context: bytes = b"") -> bytes:
        """Return the next request: with the fleet as a bootstrap block delivers it, or with what is given."""
        fleet = self.fleet
        if required is None:
            required = {"clusters": fleet.clusters, fleet.listed: fleet.replicas}
        observed = [
            field(_number(pb.State, "resources"), field(1, key.encode()) + field(2, self.one(document)))
            for key, document in self.draw.sample(list(fleet.observed.items()), len(fleet.observed))
        ]
        state = field(_number(pb.State, "composite"), self.one(fleet.deployment)) + b"".join(observed)
        settings = [
            field(_number(pb.RunFunctionRequest, "input"), struct_of(self.draw, plain))
            for plain in (fleet.input,)
            if plain is not None
        ]
        return b"".join(
            (
                field(_number(pb.RunFunctionRequest, "meta"), field(1, b"bench")),
                field(_number(pb.RunFunctionRequest, "observed"), state),
                *settings,
                *(self._required(name, items) for name, items in required.items()),
                *((field(_number(pb.RunFunctionRequest, "context"), context),) if context else ()),
            )
        )

    def _required(self, name: str, items: list[Plain]) -> bytes:
        shuffled = self.draw.sample(items, len(items))
        content = b"".join(field(_number(pb.Resources, "items"), self.one(document)) for document in shuffled)
        entry = field(1, name.encode()) + field(2, content)
        return field(_number(pb.RunFunctionRequest, "required_resources"), entry)


def _number(message: Any, name: str) -> int:
    """Return the number of a field of a message."""
    return int(message.DESCRIPTOR.fields_by_name[name].number)
