"""Read what is charged, to a replica or to a pool, straight from the bytes of its object.

Why: a call about one deployment reads what every other deployment holds, and reads nothing else of it.

- `charge` reads one ModelReplica. A fleet has tens of thousands, nearly all somebody else's. It is most of
  the work on a large request that was never seen before.
- `pool_charges` reads what an InferenceCluster publishes. With `capacity: Published` that stands for all
  replicas of others: a cluster of eight pools and ten replicas takes 0.1 ms, leniently read 0.3.

Both understand one way of writing, the one that everybody's serialiser produces. Anything else raises
`Unusual`: a field of another type, a null, a number that is a text, an empty object, shares that claim
devices. The caller then asks the lenient reader (`api.replica.parse_charge`, `api.charge.Charged`).

The limit that makes this safe: where these readers answer, the lenient readers give the same answer. They
may give up too often, which costs time; they must never guess. `tests/wire` compares both on damaged bytes.

The two stand on different parses, so they share no helper. A replica is opened level by level, because most
of its bytes are templates that nobody reads. A pool is parsed to the bottom, because all of it is read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from struct import Struct as Layout
from typing import Any, TypeVar

from google.protobuf.message import DecodeError

from function.boundary import Unreadable
from function.wire import messages
from function.wire.fast import Unusual
from function.wire.fast.read import inner_level

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
_parse_whole = messages.Deep.FromString

# One ModelReplica, level by level: the values of a level are bytes until they are wanted.


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


# The pools of an InferenceCluster, each parsed to the bottom.

_DEVICES, _LEAVING = "engines", ("givesWay", "gives_way")
"""Fields that are read leniently, in every spelling that is taken there."""


def pool_charges(top: Any, make: Callable[..., T | None]) -> dict[str, T]:
    """Return `make` of the charge of each published pool, by the pool's name, from the cluster's levels.

    `make` gets `nodes`, `named` (deployment, replica, share) and `others` (digests, share); a share is
    replicas, nodes of all of them, and whether they are being deleted. It returns None for what does not add
    up. A pool that is missing here is unusual in some way.
    """
    try:
        status = inner_level(top["status"]) if "status" in top else None
        pools = _parse(status["gpuPools"]).list.values[:] if status and "gpuPools" in status else ()
    except (Unreadable, DecodeError):
        return {}
    charges: dict[str, T] = {}
    for pool in pools:
        try:
            fields = pool.struct.fields
            name = _whole_text(_parse_whole(fields["name"]))
            made = make(**_published(_parse_whole(fields["charged"]).struct_value.fields))
        except (Unusual, DecodeError):
            continue
        if made is not None:
            charges[name] = made
    return charges


def _published(fields: Any) -> dict[str, Any]:
    """Return what one charge says."""
    if any(name in fields for name in _LEAVING) or "nodes" not in fields:
        raise Unusual
    return {
        "nodes": _whole_number(fields["nodes"]),
        "named": [
            (
                _whole_text(share["deployment"]) if "deployment" in share else "",
                _whole_text(share["replica"]) if "replica" in share else "",
                _share(share),
            )
            for share in _shares(fields, "by")
        ],
        "others": [(_whole_text(share["digests"]), _share(share)) for share in _shares(fields, "others")],
    }


def _share(fields: Any) -> tuple[int, int, bool]:
    """Return the replicas of a share, the nodes of all of them, and whether they are being deleted."""
    if _DEVICES in fields:
        raise Unusual
    replicas = _whole_number(fields["replicas"]) if "replicas" in fields else 1
    leaving = False
    if "leaving" in fields:
        if fields["leaving"].WhichOneof("kind") != "bool_value":
            raise Unusual
        leaving = fields["leaving"].bool_value
    return replicas, _whole_number(fields["nodes"]), leaving


def _shares(fields: Any, key: str) -> list[Any]:
    """Return the levels of a list of objects, none of them empty; none where there is no list."""
    if key not in fields:
        return []
    objects = [value.struct_value.fields for value in fields[key].list_value.values[:]]
    if not objects or not all(objects):
        raise Unusual
    return objects


def _whole_number(value: Any) -> int:
    """Return a whole number; the rules of the charge bound it."""
    number: float = value.number_value  # 0 where it is something else.
    if number.is_integer() and (number or value.WhichOneof("kind") == "number_value"):
        return int(number)
    raise Unusual


def _whole_text(value: Any) -> str:
    """Return a text that is not empty."""
    text: str = value.string_value
    if not text:
        raise Unusual
    return text
