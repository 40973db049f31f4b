"""Charge work in the units of Kubernetes: about one for each step, a tenth of the length for each text.

Why: the API server's allocator ends an evaluation after a million units (`LIMIT`), and so must we, or a
selector would match here that aborts there. And a selector comes from a user: it must not run for long.

We charge what Kubernetes charges, or less, so that all it admits passes here. Its rules stand in two places:
cel-go's `interpreter/runtimecost.go` (operators, texts, literals) and `CallCost` in the API server's
`pkg/cel/library/cost.go` (its own functions). Each cost below is one branch of theirs. A cost is charged
before the work is done, unless only the result tells it (`AFTER`).

We charge more where Kubernetes works lazily or does not count, because here the work is done:

- comparing, joining and searching what has more than `SHORT` elements. A device attribute has at most 48, so
  no selector over what is published can notice;
- steps of loops that cost it nothing, and errors that `&&` or `||` absorbs: they are counted apart (`STEPS`).

A cost is called with the result, None where it is charged before, and the arguments.
"""

from __future__ import annotations

from function.cel.values import BUDGET, WORK, CostExceeded, Map, Optional, Value

LIMIT = 1_000_000
"""Units that one evaluation may cost: `CELSelectorExpressionMaxCost` of Kubernetes' resource API."""
STEPS = 500_000
"""Steps of loops that one evaluation may take, also where Kubernetes charges nothing for one."""
ERROR = 10
"""Steps that an absorbed error stands for: raising and catching one takes longer than a step."""
# `common.ListCreateBaseCost` of cel-go and its neighbours: making a list, a map, a message.
CREATE_LIST = 10
CREATE_MAP = 30
CREATE_MESSAGE = 40
SHORT = 64
"""Elements that cost nothing beyond what Kubernetes charges: more than an attribute has."""
JOINED = 8
"""Elements that one unit copies."""
MATCH_EXCESS = 40
"""Units for each match that a text may have."""
MET = 4
"""Units for each element that is compared with another, where Kubernetes charges less."""


NESTING = frozenset({list, Map, Optional})


def size(value: Value) -> int:
    """Return the length of a text, list or map; 1 for anything else (`actualSize` in cel-go).

    An optional is as large as what it holds, even if that is an error to whoever reads it.
    """
    kind = type(value)
    if kind is str or kind is bytes or kind is list or kind is Map:
        return len(value)
    if kind is Optional and value.present:
        return size(value.unread)
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


def excess(count: int, units: int = 1) -> int:
    """Return what many elements cost that Kubernetes handles for nothing, or nearly."""
    return (count - SHORT) * units if count > SHORT else 0


def weight(value: Value) -> int:
    """Return how many elements lie in a value, however deep. Raises CostExceeded before it takes long.

    A list of lists can be small to hold and large to compare: `[x, x, x]` of such an x, and so on, doubles
    its weight with each level while Python holds one x. So weighing itself is bounded by what it would cost.
    """
    count = 0
    todo: list[Value] = [value]
    while todo:
        inner = todo.pop()
        if type(inner) is Optional:
            todo.append(inner.unread)
        elif type(inner) is list or type(inner) is Map:
            count += 1 + len(inner)
            if count * MET > LIMIT:
                raise CostExceeded
            within = inner if isinstance(inner, list) else [entry for _, entry in inner.entries.values()]
            todo += [element for element in within if type(element) in NESTING]
    return count - 1


def compare(_result: Value, one: Value, two: Value) -> int:
    """Cost of comparing: a tenth of the shorter of the two, and for what holds much every element."""
    units = tenth(min(size(one), size(two)))
    if type(one) in NESTING and type(two) is type(one) and units:
        return units + excess(weight(one), MET)
    return units


def search(_result: Value, value: Value, container: Value) -> int:
    """Cost of `in`: every element of a list, one step in a map."""
    if type(container) is not list:
        return 1
    if type(value) in NESTING:
        return len(container) + excess(weight(container), MET)
    return len(container) + (0 if type(value) is str else excess(len(container), MET))


def held(_result: Value, value: Value, wanted: Value) -> int:
    """Cost of `includes`: one, and what nests in a list."""
    return 1 + (excess(weight(value), MET) if type(wanted) in NESTING else 0)


def searched(_result: Value, value: Value, wanted: Value) -> int:
    """Cost of `includes` from Kubernetes 1.37 on: every element of a list."""
    return traverse(value) + (excess(weight(value), MET) if type(wanted) in NESTING else 0)


def product(_result: Value, text: Value, part: Value) -> int:
    """Cost of looking for a part in a text."""
    return tenth(size(text)) * tenth(size(part))


def regex(_result: Value, text: Value, pattern: Value, *_limit: Value) -> int:
    """Cost of matching: the text times a quarter of the pattern."""
    return tenth(1 + size(text)) * -(-size(pattern) // 4)


def matches(_result: Value, text: Value, pattern: Value, *_limit: Value) -> int:
    """Cost of finding all matches: as for one, and each that may be found in a long text."""
    return regex(_result, text, pattern) + excess(len(text), MATCH_EXCESS)


def join_lists(_result: Value, one: Value, two: Value) -> int:
    """Cost of `list + list`."""
    return 1 + excess(len(one) + len(two)) // JOINED if type(one) is list and type(two) is list else 1


def absorbed(frame: list[Value]) -> None:
    """Count an error that something absorbs: Kubernetes charges nothing, and here it is slow.

    Without this `[...].all(x, x.nosuch || true)` could run a million errors for a few units.
    """
    frame[WORK] -= ERROR
    if frame[WORK] < 0:
        raise CostExceeded


def spend(frame: list[Value], units: int) -> None:
    """Charge an evaluation. Raises CostExceeded when it has nothing left."""
    frame[BUDGET] -= units
    if frame[BUDGET] < 0:
        raise CostExceeded


def allocate(result: Value, *_args: Value) -> int:
    """Cost of making a list: its elements."""
    return 1 + CREATE_LIST + len(result)


def pairwise(_result: Value, values: list[Value]) -> int:
    """Cost of sorting, or of telling doubles: every element meets every other, twice."""
    return 1 + CREATE_LIST + 2 * len(values) ** 2 if type(values) is list else 1


def traverse(value: Value) -> int:
    """Cost of walking through a value: a tenth of a text, rounded down, each element of a list.

    `traversalCost` of the API server, which looks into nested lists; its division is Go's, without rounding
    up.
    """
    if type(value) is not list:
        return len(value) // 10 if type(value) is str or type(value) is bytes else 1
    total, todo, visited = 0, [value], 0
    while todo:
        inner = todo.pop()
        visited += len(inner)
        if visited > LIMIT:
            raise CostExceeded
        for element in inner:
            if type(element) is list:
                todo.append(element)
            else:
                total += len(element) // 10 if type(element) is str or type(element) is bytes else 1
    return total


def elements(_result: Value, values: Value, *others: Value) -> int:
    """Cost of walking through a list or text."""
    nested = bool(others) and type(others[0]) in NESTING
    length = weight(values) * MET if nested else len(values)
    return traverse(values) + excess(length) // (1 if type(values) is list else JOINED)


def copy(_result: Value, text: str, *_others: Value) -> int:
    """Cost of walking through a text and writing another."""
    return tenth(2 * len(text))


def joined(_result: Value, parts: list[Value], separator: str = "") -> int:
    """Cost of joining: the result, twice, and the number of parts."""
    length = sum(len(part) for part in parts if type(part) is str)
    length += len(separator) * max(len(parts) - 1, 0)
    return tenth(2 * length) + excess(len(parts))


def unwrapped(_result: Value, values: list[Value]) -> int:
    """Cost of unwrapping optionals."""
    return 1 + excess(len(values))


def dispatched(_result: Value, *values: Value) -> int:
    """Cost of an operator whose overload only shows at run time: one, whatever the length."""
    return 1 + excess(sum(map(size, values))) // JOINED


def looked(_result: Value, value: Value, container: Value) -> int:
    """Cost of `in` where the overload only shows at run time: one, until it is much."""
    return 1 + excess(search(None, value, container))


def flattened(result: Value, values: Value, levels: int = 1) -> int:
    """Cost of flattening: the elements for each level, and what comes out of it if that is much more."""
    before = size(values)
    return 1 + CREATE_LIST + before * levels + excess(len(result) - before)


AFTER = frozenset({allocate, flattened})
"""Costs that only the result tells; every other is charged before the work is done."""
