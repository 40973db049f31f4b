"""`x-kubernetes-validations`, evaluated by our own CEL: `self` and `oldSelf` in place of `device`."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from function.cel.checker.environment import Environment, VariableField
from function.cel.selector import Outcome, Selector, compiled
from function.cel.subject import Subject
from function.cel.syntax import types
from function.cel.syntax.types import Type
from function.cel.values import Map

if TYPE_CHECKING:
    from collections.abc import Mapping

    from function.cel.subject import ReadPath
    from function.cel.values import Value

FIELDS = {name: VariableField(types.DYN, "value") for name in ("self", "oldSelf")}
BOTH = Environment("both", Type("schema.Both"), FIELDS)
"""One variable of an unknown type that holds the two: the dialect has one variable only."""


def holds(rule: str, value: Any, old: Any = None) -> bool:
    """Whether the rule is true of the value. One that has no value does not hold, as for the API server."""
    return outcome(rule, value, old).matched


def outcome(rule: str, value: Any, old: Any = None) -> Outcome:
    """Evaluate a rule on a value, and on the one that it replaces."""
    values: dict[ReadPath, Value] = {("self",): _value(value), ("oldSelf",): _value(old)}
    return _program(rule).evaluate(Subject("both", _fields, values, {}, ""))


def _fields(values: Mapping[ReadPath, Value]) -> dict[str, Value]:
    return {path[0]: value for path, value in values.items()}


@lru_cache
def _program(rule: str) -> Selector:
    return compiled(re.sub(r"\b(self|oldSelf)\b", r"both.\1", rule), BOTH)


def _value(plain: Any) -> Any:
    if isinstance(plain, dict):
        return Map.of({key: _value(value) for key, value in plain.items() if value is not None})
    return [_value(item) for item in plain] if isinstance(plain, list) else plain
