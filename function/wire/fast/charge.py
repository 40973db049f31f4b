"""Read what is charged to a replica straight from the bytes of its object.

Why: a call about one deployment reads what every other deployment holds, and reads nothing else of it. A
fleet has tens of thousands of replicas, nearly all somebody else's. They are most of the work on a large
request that was never seen before.

It understands one way of writing, the one that everybody's serialiser produces. Anything else raises
`Unusual`: a field of another type, a null, a number that is a text, an empty object. The caller then asks the
lenient reader (`api.replica.parse_charge`).

The limit that makes this safe: where this reader answers, the lenient one gives the same answer. It may give
up too often, which costs time; it must never guess. `tests/wire` compares both on damaged bytes.

A replica is opened level by level, because most of its bytes are templates that nobody reads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from struct import Struct as Layout
from typing import Any, TypeVar

from google.protobuf.message import DecodeError

from function.wire import messages
from function.wire.fast import Unusual

T = TypeVar("T")

_SHORT = 0x80  # A length below this is one byte on the wire.
_NUMBER, _STRING = 0x11, 0x1A
_OBJECTS = {b"\x2a"}
"""First bytes of the items of a list of objects."""
_NUMBER_SIZE = 9
_MAX_EXACT = 1 << 53
"""From here on a double no longer holds every integer: the lenient reader decides what such a count means."""

_double = Layout("<d").unpack_from
_parse = messages.Holder.FromString
_parse_list = messages.Lister.FromString


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
    except (Unusual, DecodeError, UnicodeDecodeError):
        return None


def _nodes(spec: Any) -> dict[str, int]:
    """Return the nodes held, by pool: pods x copies of the members that claim a device."""
    held: dict[str, int] = {}
    for engine in _objects(spec, "engines"):
        copies = _count(engine, "copies")
        for member in _objects(engine, "members"):
            pool, role = _text(member, "nodePoolName"), _text(member, "role")
            nodes = _count(_object(member, "worker"), "nodes")
            if "deviceRequests" not in member:
                continue
            # Only whether the list holds objects matters, so no item of it is opened.
            requests = _parse_list(member["deviceRequests"])
            kinds = {item[:1] for item in requests.list.values[:]}
            if kinds != _OBJECTS and (kinds or requests.WhichOneof("choice") != "list"):
                raise Unusual
            if kinds:
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
    """Return the level of an object that is not empty, or an empty one where there is none."""
    if key not in fields:
        return ()
    level = _parse(fields[key]).struct.fields
    if not level:
        raise Unusual
    return level


def _objects(fields: Any, key: str) -> Sequence[Any]:
    """Return the levels of a list of objects that are not empty, or none where there is no list."""
    if key not in fields:
        return ()
    held = _parse(fields[key])
    levels = [item.struct.fields for item in held.list.values[:]]
    if not (all(levels) if levels else held.WhichOneof("choice") == "list"):
        raise Unusual
    return levels
