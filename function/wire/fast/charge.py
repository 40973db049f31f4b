"""Read what a ModelReplica is charged for straight from its bytes, where it is written in the usual order.

A fleet has tens of thousands of replicas and most are somebody else's: this is most of the work on a large
request that was never seen before. Whatever is not written in the usual way (a field of another type, a
null, a count that is none) is left to the lenient reader, `api.replica.parse_charge`; where this reader gives
an answer, both give the same.
"""

from __future__ import annotations

from struct import Struct as Layout
from typing import TYPE_CHECKING, Any, TypeVar

from google.protobuf.message import DecodeError

from function.wire import messages
from function.wire.fast import Unusual

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

_SHORT = 0x80  # A length below this is one byte on the wire.
_ITEM, _NUMBER, _STRING, _STRUCT, _LIST = 0x0A, 0x11, 0x1A, 0x2A, 0x32
_NUMBER_SIZE = 9
_MAX_EXACT = 1 << 53

_double = Layout("<d").unpack_from
_parse = messages.Struct.FromString


def charge(top: Any, metadata: Any, make: Callable[..., T], deployment_label: str) -> T | None:
    """Return `make` of what a replica is charged for from its levels; None where something is unusual."""
    try:
        spec = _object(top, "spec")
        return make(
            name=_text(metadata, "name"),
            namespace=_text(metadata, "namespace"),
            deployment=_text(_object(metadata, "labels"), deployment_label),
            cluster=_text(spec, "clusterName"),
            deleting=_text(metadata, "deletionTimestamp") != "",
            nodes=_nodes(spec),
        )
    except (Unusual, IndexError, DecodeError, UnicodeDecodeError):
        return None


def _nodes(spec: Any) -> dict[str, int]:
    """Return the nodes held, by pool: pods x copies of the members that claim a device."""
    held: dict[str, int] = {}
    for engine in _objects(spec, "engines"):
        copies = _count(engine, "copies")
        for member in _objects(engine, "members"):
            pool, role = _text(member, "nodePoolName"), _text(member, "role")
            nodes = _count(_object(member, "worker"), "nodes")
            if "deviceRequests" in member and _structs(member["deviceRequests"]):
                held[pool] = held.get(pool, 0) + (nodes if role == "Worker" else 1) * copies
    return held


def _text(fields: Any, key: str) -> str:
    """Return a short text, or "" where there is none."""
    if key not in fields:
        return ""
    held: bytes = fields[key]
    if len(held) > 1 and held[0] == _STRING and held[1] == len(held) - 2 < _SHORT:
        return held[2:].decode()
    raise Unusual


def _count(fields: Any, key: str) -> int:
    """Return a whole number of at least 1, or 1 where there is none."""
    if key not in fields:
        return 1
    held: bytes = fields[key]
    if len(held) == _NUMBER_SIZE and held[0] == _NUMBER:
        number: float = _double(held, 1)[0]
        if 1 <= number < _MAX_EXACT and number.is_integer():
            return int(number)
    raise Unusual


def _object(fields: Any, key: str) -> Any:
    """Return the level of an object, or an empty one where there is none."""
    if key not in fields:
        return ()
    held: bytes = fields[key]
    return _parse(held[_payload(held, 0, len(held), _STRUCT) :]).fields


def _objects(fields: Any, key: str) -> list[Any]:
    """Return the levels of a list of objects, or none where there is no list."""
    if key not in fields:
        return []
    held: bytes = fields[key]
    return [_parse(held[start:end]).fields for start, end in _structs(held)]


def _structs(held: bytes) -> list[tuple[int, int]]:
    """Return where the objects of a list stand, from the bytes of its value."""
    entries, end = [], len(held)
    at = _payload(held, 0, end, _LIST)
    while at < end:
        start, close = _delimited(held, at, _ITEM)
        if close > end:
            raise Unusual
        entries.append((_payload(held, start, close, _STRUCT), close))
        at = close
    return entries


def _payload(held: bytes, at: int, end: int, tag: int) -> int:
    """Return where the payload of the one field that stands in these bytes starts."""
    start, close = _delimited(held, at, tag)
    if close != end:
        raise Unusual
    return start


def _delimited(held: bytes, at: int, tag: int) -> tuple[int, int]:
    """Return where the payload of a field starts and ends; its length takes at most three bytes."""
    if held[at] != tag:
        raise Unusual
    size, start = held[at + 1], at + 2
    if size >= _SHORT:
        more, start = held[at + 2], at + 3
        size = size & 0x7F | (more & 0x7F) << 7
        if more >= _SHORT:
            most, start = held[at + 3], at + 4
            size |= most << 14
            if most >= _SHORT:
                raise Unusual
    return start, start + size
