"""What work costs, in the units of Kubernetes: about one for each step, a tenth of the length for each text.

We charge what Kubernetes charges, or less, so that all it admits passes here. The exception is work that
it does lazily and we do at once (joining long lists, comparing deep ones): a fraction of a unit for each
element.
"""

from __future__ import annotations

from function.cel.errors import CostExceeded
from function.cel.scope import BUDGET
from function.cel.values import Map, Optional, Value

LIMIT = 1_000_000
"""Units that one evaluation may cost: Kubernetes' limit for device selectors."""
CREATE_LIST = 10
CREATE_MAP = 30
CREATE_MESSAGE = 40
LAZY = 5
"""Joining and looking through cost one unit for each 2**LAZY elements more."""
DEEP = 4
"""Comparing lists in lists costs one unit for each so many elements more."""


def size(value: Value) -> int:
    """Return the length of a text, list or map; 1 for anything else."""
    kind = type(value)
    if kind is str or kind is bytes or kind is list or kind is Map:
        return len(value)
    if kind is Optional and value.present:
        return size(value.value)
    return 1


def tenth(length: int) -> int:
    """Return a tenth, rounded up: the cost of walking through a text."""
    return -(-length // 10)


def walk(_result: Value, text: Value, *_others: Value) -> int:
    """Cost of walking through the first argument."""
    return tenth(size(text))


def walk_both(_result: Value, one: Value, two: Value) -> int:
    """Cost of copying two texts."""
    return tenth(size(one) + size(two))


def compare(_result: Value, one: Value, two: Value) -> int:
    """Cost of comparing: the shorter of the two, and for deep values what lies below."""
    length = min(size(one), size(two))
    if length and type(one) is list and type(two) is list:
        return tenth(length) + deep(one) // DEEP
    return tenth(length)


def deep(values: list[Value]) -> int:
    """Return how many elements lie below the first level."""
    below = 0
    todo = [value for value in values if type(value) is list]
    while todo:
        inner = todo.pop()
        below += len(inner)
        todo += [value for value in inner if type(value) is list]
    return below


def search(_result: Value, _value: Value, container: Value) -> int:
    """Cost of `in`: every element of a list, one step in a map."""
    if type(container) is list:
        return len(container) + deep(container) // DEEP
    return 1


def product(_result: Value, text: Value, part: Value) -> int:
    """Cost of looking for a part in a text."""
    return tenth(size(text)) * tenth(size(part))


def regex(_result: Value, text: Value, pattern: Value, *_limit: Value) -> int:
    """Cost of matching: the text times a quarter of the pattern."""
    return tenth(1 + size(text)) * -(-size(pattern) // 4)


def join_lists(_result: Value, one: Value, two: Value) -> int:
    """Cost of `list + list`."""
    return 1 + (len(one) + len(two) >> LAZY) if type(one) is list and type(two) is list else 1


def spend(frame: list[Value], units: int) -> None:
    """Charge an evaluation. Raises CostExceeded when it has nothing left."""
    frame[BUDGET] -= units
    if frame[BUDGET] < 0:
        raise CostExceeded


def allocate(result: Value, *_args: Value) -> int:
    """Cost of making a list: its elements."""
    return 1 + CREATE_LIST + len(result)


def sorting(values: list[Value]) -> int:
    """Cost of sorting, or of telling doubles: every element meets every other, twice."""
    return 1 + CREATE_LIST + 2 * len(values) ** 2


def pairwise(_result: Value, values: list[Value]) -> int:
    """Cost of sorting, as the cost of a call."""
    return sorting(values)


def traverse(value: Value) -> int:
    """Cost of walking through a value: a tenth of a text, rounded down, each element of a list."""
    kind = type(value)
    if kind is str or kind is bytes:
        return len(value) // 10
    return sum(map(traverse, value)) if kind is list else 1


def elements(_result: Value, values: Value, *_others: Value) -> int:
    """Cost of walking through a list or text."""
    return traverse(values) + (len(values) >> LAZY)


def copy(_result: Value, text: str, *_others: Value) -> int:
    """Cost of walking through a text and writing another."""
    return tenth(2 * len(text))


def dispatched(_result: Value, *values: Value) -> int:
    """Cost of an operator whose overload only shows at run time: one, whatever the length."""
    return 1 + (sum(map(size, values)) >> LAZY)
