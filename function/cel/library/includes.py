"""`includes`: whether an attribute has a value, be it a list or a single one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from function.cel.errors import EvaluationError
from function.cel.library import charges as cost
from function.cel.library.declarations import method
from function.cel.library.relations import is_equal

if TYPE_CHECKING:
    from function.cel.values import Value

LONGEST = 48
"""Elements that a list may have; Kubernetes looks no further and fails instead."""


def includes(value: Value, wanted: Value) -> bool:
    """Whether a list contains, or a single value is, what is wanted."""
    if type(value) is not list:
        return is_equal(value, wanted)
    for at, element in enumerate(value):
        if at >= LONGEST:
            raise EvaluationError(
                f"'includes' function cannot be applied to lists longer than {LONGEST} values"
            )
        if is_equal(element, wanted):
            return True
    return False


def held(value: Value, wanted: Value) -> bool:
    """Whether a list contains, or a single value is, what is wanted; however long the list is."""
    return (
        any(is_equal(element, wanted) for element in value)
        if type(value) is list
        else is_equal(value, wanted)
    )


LATER = (method("includes", "dyn, dyn -> bool", held, cost=cost.searched, since="1.36"),)
"""What Kubernetes 1.37 has in its place: charged for each element, and without a limit of its own."""

DECLARATIONS = (method("includes", "dyn, dyn -> bool", includes, cost=cost.held, since="1.36"),)
