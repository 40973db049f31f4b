"""Describe what is wrong with an object: the field, the value that it has, and what was expected.

A `Fault` is one field; `Malformed` carries every fault of one object, sorted, so that equal objects give
equal messages. pydantic's findings are said in our words (`faults_of`), since they end up in conditions that
ML engineers read. Values are shown short and containers only by their kind: one may be a secret.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pydantic import ValidationError

from function.boundary import frozen

SHOWN = 60
"""How many characters of an offending value are shown. Values may be secrets; long ones may be absurd."""


@frozen(order=True)
class Fault:
    """One field that cannot be read."""

    path: str
    message: str
    value: str = ""

    def __str__(self) -> str:
        """`spec.engines[1].copies: expected a whole number, found "two"`."""
        value_text = f", found {self.value}" if self.value else ""
        return f"{self.path or 'object'}: {self.message}{value_text}"


class Malformed(ValueError):
    """An object that cannot be read, with every fault found in it."""

    def __init__(self, faults: Iterable[Fault]) -> None:
        """Keep the faults in the order of their paths, so that the same object reads the same."""
        self.faults = tuple(sorted(set(faults)))
        super().__init__("; ".join(str(fault) for fault in self.faults))


def path_of(location: Iterable[int | str]) -> str:
    """Write a location as users do: `spec.engines[1].copies`."""
    text = ""
    for part in location:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            text += f".{part}" if text else str(part)
    return text


def shown(value: object) -> str:
    """Render a value for an error message: scalars as they are, containers by their kind."""
    if isinstance(value, dict):
        return "a map"
    if isinstance(value, list):
        return "a list"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    text = f'"{value}"' if isinstance(value, str) else str(value)
    return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"


def shown_type(value: object) -> str:
    """Render what stands where a map or a list is expected: its type tells enough, the rest may be secret."""
    if isinstance(value, str) and value:
        return "a string"
    return "a number" if isinstance(value, int | float) and not isinstance(value, bool) else shown(value)


_CONTAINERS = frozenset({"tuple_type", "list_type", "dict_type", "mapping_type", "model_type"})
_EXPECTED = {
    "missing": "required, but missing",
    "string_type": "expected a string",
    "bool_type": "expected true or false",
    "tuple_type": "expected a list",
    "list_type": "expected a list",
    "dict_type": "expected a map",
    "mapping_type": "expected a map",
    "model_type": "expected a map",
    "extra_forbidden": "no such field",
}


_BOUNDED = {
    "too_short": "must not be empty",
    "string_too_short": "must not be empty",
    "too_long": "must have at most {max_length} items",
    "greater_than": "must be more than {gt}",
    "greater_than_equal": "must be at least {ge}",
    "less_than_equal": "must be at most {le}",
    "literal_error": "expected {expected}",
}


def _message(kind: str, text: str, context: dict[str, Any]) -> str:
    """A finding in our words; one of our own validators speaks for itself."""
    if kind in _BOUNDED:
        return _BOUNDED[kind].format(**context)
    return _EXPECTED.get(kind, text.removeprefix("Value error, "))


def _value(kind: str, value: object) -> str:
    """The offending value, where showing it helps: not what is missing, not the whole of an object."""
    if kind == "too_long":
        return ""
    if kind in _CONTAINERS:
        return shown_type(value)
    whole = kind in {"value_error", "too_short"} and isinstance(value, dict | list)
    return "" if whole or kind in {"missing", "extra_forbidden"} else shown(value)


def faults_of(error: ValidationError) -> tuple[Fault, ...]:
    """Turn pydantic's findings into faults, one per field, without those that follow from one below."""
    errors = error.errors(include_url=False)
    above = {detail["loc"][:length] for detail in errors for length in range(len(detail["loc"]))}
    return tuple(
        Fault(
            path=path_of(detail["loc"]),
            message=_message(detail["type"], detail["msg"], detail.get("ctx", {})),
            value=_value(detail["type"], detail["input"]),
        )
        for detail in errors
        if detail["loc"] not in above
    )
