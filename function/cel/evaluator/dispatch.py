"""Choose the overload that runs: at compile time from the types, at run time from the values of dyn."""

from __future__ import annotations

from typing import TYPE_CHECKING

from function.cel.library.named_formats import Format
from function.cel.library.network import Cidr, Ip
from function.cel.library.quantity import Quantity
from function.cel.library.semver import Semver
from function.cel.library.urls import Url
from function.cel.syntax import types
from function.cel.values import Duration, Map, Optional, Timestamp, TypeValue, UInt, Value

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from function.cel.library.declarations import Overload
    from function.cel.syntax.types import Type

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


def runtime_class(kind: Type) -> type | None:
    """Return the class that values of a type have; None if any may come."""
    return CLASSES.get(kind.name)


def direct(overloads: tuple[Overload, ...], kinds: Sequence[Type]) -> Overload | None:
    """Return the overload that surely admits values of these types, or None.

    A type says only what is certain of the value, whatever the check inferred: dyn where nothing is.
    """
    if len(overloads) > 1:
        return None
    only = overloads[0]
    return only if not only.guarded or all(map(_covers, only.parameters, kinds)) else None


def _covers(parameter: Type, certain: Type) -> bool:
    if runtime_class(parameter) is None:
        return True
    if parameter.name not in ELEMENTS:
        return parameter.name == certain.name
    return parameter.name == certain.name and all(map(_covers, parameter.args, certain.args))


ELEMENTS = frozenset({"list", "map"})
"""Types whose elements cel-go looks at, but at the first only, before it runs an overload."""


def admission(parameters: tuple[Type, ...]) -> Callable[[list[Value]], bool]:
    """Return the test whether values may be given for these parameters."""
    wanted = [(at, test) for at, test in enumerate(map(_test, parameters)) if test is not None]
    if len(wanted) == 1:
        ((position, only),) = wanted
        return lambda values: only(values[position])

    def admits(values: list[Value]) -> bool:
        return all(test(values[at]) for at, test in wanted)

    return admits


def _test(kind: Type) -> Callable[[Value], bool] | None:
    """Return the test whether a value may be given for a type; None if every value may."""
    cls = runtime_class(kind)
    if cls is None:
        return None
    if cls is list and (element := _test(kind.args[0])) is not None:
        return lambda value: type(value) is list and (not value or element(value[0]))
    if cls is Map and any(key_and_value := [_test(arg) for arg in kind.args]):
        return lambda value: type(value) is Map and _first_fits(value, key_and_value)
    return lambda value: type(value) is cls


def _first_fits(value: Map, tests: list[Callable[[Value], bool] | None]) -> bool:
    first = next(iter(value.entries.values()), None)
    return first is None or all(test is None or test(part) for test, part in zip(tests, first, strict=True))
