"""Typed attribute values and capacities, checked for form only.

An attribute holds exactly one of string, int, bool, version, or a list of one of them; a capacity is
`{value: <quantity>}`. Anything else is a fault of the object it stands in. Whether a version is a semver
or a quantity parses is for the selector that reads it to say (the CEL dialect).
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator

from function.api.fault import shown
from function.api.model import whole

_PLURAL = {"strings": "string", "ints": "int", "bools": "bool", "versions": "version"}


def _scalar(kind: str, value: object) -> object:
    if kind == "int":
        return whole(value)
    expected = bool if kind == "bool" else str
    if not isinstance(value, expected):
        raise ValueError(f"expected a {kind}, found {shown(value)}")
    return value


def _items(kind: str, value: object) -> list[object]:
    if not isinstance(value, list):
        raise ValueError(f"expected a list of {kind}, found {shown(value)}")
    return [_scalar(kind, item) for item in value]


def _one(holder: object) -> tuple[str, object]:
    if not isinstance(holder, dict):
        raise ValueError(f"expected a map, found {shown(holder)}")
    entries = [(key, value) for key, value in holder.items() if value is not None]
    if len(entries) != 1:
        raise ValueError(
            f"expected exactly one of string, int, bool, version, list, found {len(entries)} fields"
        )
    return entries[0]


def attribute(holder: object) -> dict[str, Any]:
    """Check one attribute and give it in its one form: `{"string": x}` or `{"list": {"string": [x]}}`."""
    kind, value = _one(holder)
    if kind == "list":
        kind, value = _one(value)
        if kind not in _PLURAL.values():
            raise ValueError(f"a list has no type {kind}")
        return {"list": {kind: _items(kind, value)}}
    if kind in _PLURAL:
        return {"list": {_PLURAL[kind]: _items(_PLURAL[kind], value)}}
    if kind not in _PLURAL.values():
        raise ValueError(f"an attribute has no type {kind}")
    return {kind: _scalar(kind, value)}


def quantity(holder: object) -> dict[str, str]:
    """Check one capacity: `{value: <quantity>}`. A bare number is a quantity too."""
    value = holder.get("value") if isinstance(holder, dict) else None
    if isinstance(value, bool) or not isinstance(value, str | int | float) or value != value:  # noqa: PLR0124
        raise ValueError(
            "expected {value: <quantity>}, found " + shown(value if isinstance(holder, dict) else holder)
        )
    return {"value": str(value)}


def _every_value(check: Any) -> Any:
    def run(holders: dict[str, Any]) -> dict[str, Any]:
        checked = {}
        for name in sorted(holders):
            try:
                checked[name] = check(holders[name])
            except ValueError as error:
                raise ValueError(f"{name}: {error}") from None
        return checked

    return run


Attributes = Annotated[dict[str, Any], AfterValidator(_every_value(attribute))]
Capacity = Annotated[dict[str, Any], AfterValidator(_every_value(quantity))]
