"""Which overload runs: known when the types are, found out from the values when they were dyn."""

from __future__ import annotations

from typing import TYPE_CHECKING

from function.cel import types
from function.cel.library.named_formats import Format
from function.cel.library.network import Cidr, Ip
from function.cel.library.urls import Url
from function.cel.quantity import Quantity
from function.cel.semver import Semver
from function.cel.values import Duration, Map, Optional, Timestamp, TypeValue, UInt, Value

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from function.cel.declarations import Overload
    from function.cel.types import Type

CLASSES: dict[str, type] = {
    "bool": bool,
    "int": int,
    "uint": UInt,
    "double": float,
    "string": str,
    "bytes": bytes,
    "null": type(None),
    "timestamp": Timestamp,
    "duration": Duration,
    "list": list,
    "map": Map,
    "optional": Optional,
    "type": TypeValue,
    types.QUANTITY.name: Quantity,
    types.SEMVER.name: Semver,
    types.IP.name: Ip,
    types.CIDR.name: Cidr,
    types.URL.name: Url,
    types.FORMAT.name: Format,
}


UNCERTAIN = frozenset({"dyn", "wrapper", "null"})


def runtime_class(kind: Type) -> type | None:
    """Return the class that values of a type have; None if any may come."""
    return CLASSES.get(kind.name)


def direct(overloads: tuple[Overload, ...], kinds: Sequence[Type | None]) -> Overload | None:
    """Return the overload that will run whatever the values turn out to be, or None.

    A kind is None where the type is known and the value may be null all the same.
    """
    if len(overloads) > 1:
        return None
    for parameter, kind in zip(overloads[0].parameters, kinds, strict=True):
        if runtime_class(parameter) is not None and (kind is None or kind.name in UNCERTAIN):
            return None
    return overloads[0]


def admission(parameters: tuple[Type, ...]) -> Callable[[list[Value]], bool]:
    """Return the test whether values may be given for these parameters."""
    wanted = [(at, cls) for at, cls in enumerate(map(runtime_class, parameters)) if cls is not None]

    def admits(values: list[Value]) -> bool:
        return all(type(values[at]) is cls for at, cls in wanted)

    return admits
