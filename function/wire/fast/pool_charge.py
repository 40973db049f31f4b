"""Read what an InferenceCluster publishes as charged to its pools straight from its bytes.

With `capacity: Published` that is all that a call reads of other deployments' replicas, on every cluster of
the fleet: 0.1 ms for a cluster of eight pools and ten replicas instead of 0.3 ms. A charge that is not
written in the usual way (a number that is a text, a null, shares that claim devices) is left to the lenient
reader, `api.charge.Charged`; where this reader gives an answer, both give the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from google.protobuf.message import DecodeError

from function.boundary import Unreadable
from function.wire import messages
from function.wire.fast import Unusual
from function.wire.fast.read import inner_level

T = TypeVar("T")

_DEVICES, _LEAVING = "engines", ("givesWay", "gives_way")
"""Fields that are read leniently, in every spelling that is taken there."""
_parse = messages.Deep.FromString
_parse_list = messages.Holder.FromString


def pool_charges(top: Any, make: Callable[..., T | None]) -> dict[str, T]:
    """Return `make` of the charge of each published pool, by the pool's name, from the cluster's levels.

    `make` gets `nodes`, `named` (deployment, replica, share) and `others` (digests, share); a share is
    replicas, nodes of all of them, and whether they are being deleted. It returns None for what does not add
    up. A pool that is missing here is unusual in some way.
    """
    charges: dict[str, T] = {}
    for pool in _pools(top):
        try:
            fields = pool.struct.fields
            name = _text(_parse(fields["name"]))
            made = make(**_charge(_parse(fields["charged"]).struct_value.fields))
        except (Unusual, DecodeError):
            continue
        if made is not None:
            charges[name] = made
    return charges


def _pools(top: Any) -> Iterable[Any]:
    """Return the published pools; none where they are no list of objects."""
    try:
        status = inner_level(top["status"]) if "status" in top else None
        return _parse_list(status["gpuPools"]).list.values[:] if status and "gpuPools" in status else ()
    except (Unreadable, DecodeError):
        return ()


def _charge(fields: Any) -> dict[str, Any]:
    """Return what one charge says."""
    if any(name in fields for name in _LEAVING) or "nodes" not in fields:
        raise Unusual
    return {
        "nodes": _count(fields["nodes"]),
        "named": [
            (_optional(share, "deployment"), _optional(share, "replica"), _share(share))
            for share in _objects(fields, "by")
        ],
        "others": [(_text(share["digests"]), _share(share)) for share in _objects(fields, "others")],
    }


def _share(fields: Any) -> tuple[int, int, bool]:
    """Return the replicas of a share, the nodes of all of them, and whether they are being deleted."""
    if _DEVICES in fields:
        raise Unusual
    replicas = _count(fields["replicas"]) if "replicas" in fields else 1
    leaving = False
    if "leaving" in fields:
        if fields["leaving"].WhichOneof("kind") != "bool_value":
            raise Unusual
        leaving = fields["leaving"].bool_value
    return replicas, _count(fields["nodes"]), leaving


def _objects(fields: Any, key: str) -> list[Any]:
    """Return the levels of a list of objects, none of them empty; none where there is no list."""
    if key not in fields:
        return []
    objects = [value.struct_value.fields for value in fields[key].list_value.values[:]]
    if not objects or not all(objects):
        raise Unusual
    return objects


def _count(value: Any) -> int:
    """Return a whole number; the rules of the charge bound it."""
    number: float = value.number_value  # 0 where it is something else.
    if number.is_integer() and (number or value.WhichOneof("kind") == "number_value"):
        return int(number)
    raise Unusual


def _optional(fields: Any, key: str) -> str:
    return _text(fields[key]) if key in fields else ""


def _text(value: Any) -> str:
    """Return a text that is not empty."""
    text: str = value.string_value
    if not text:
        raise Unusual
    return text
