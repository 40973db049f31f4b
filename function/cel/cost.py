"""Estimate the most that a selector may cost, as the API server does before it has seen a device.

Why: the API server refuses a selector whose estimate is above the limit when a claim or class is written. The
estimate here is advice for a lint and never refuses a selector by itself. What an evaluation really costs is
charged while it runs (`library/charges`), and is far below: real selectors cost at most 67 units.

It is cel-go's `checker/cost.go` (`costCall`, `costComprehension`, `functionCost`) with the API server's
`EstimateCallCost` in `pkg/cel/library/cost.go`, of which only the upper bounds matter. Each node has an
`Estimate`: what it may cost, and how large its value may be, because texts and lists are charged by their
size. Sizes begin at what the API allows a device to publish (`BOUNDED`) and at literals; where nothing bounds
one, costs saturate at 2^64 - 1, as in Go.

Two parts: what a call costs by the sizes of its arguments (`CALLS`), and a rule for each kind of node
(`RULES`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Sequence
from typing import Any, NamedTuple, TypeAlias

from function.cel.checker.state import Checked
from function.cel.library.charges import CREATE_LIST, CREATE_MAP, CREATE_MESSAGE
from function.cel.syntax import nodes
from function.cel.syntax.nodes import Node, operands
from function.cel.syntax.parser import collect, descend

MAX_SIZE = UNKNOWN = 2**64 - 1
"""A size that nothing bounds; costs end there as well."""
SCALARS = frozenset({"bool", "int", "uint", "double", "duration", "timestamp", "null"})
OPAQUE = frozenset(
    {"kubernetes.Quantity", "kubernetes.Semver", "kubernetes.URL"}
    | {"kubernetes.NamedFormat", "net.IP", "net.CIDR"}
)
"""Kubernetes' own types: comparing two values of one costs a unit, whatever they hold."""
TEXTS = frozenset({"string", "bytes", "dyn"})
FORMAT = 32
"""Characters of a named format's expression, by four, that Kubernetes reckons with."""


class Estimate(NamedTuple):
    """The most a node costs, the most elements or characters it has, and those of the levels below.

    `literal` is the value of a literal, or "texts" for a list of them; `items` the largest element of a list
    that is written out.
    """

    cost: int
    size: int
    element: tuple[int, ...] = ()
    literal: Any = None
    items: int = UNKNOWN


Units: TypeAlias = tuple[int, int]
"""The units of a call, and the size of its result."""
Estimator: TypeAlias = "Callable[[Sequence[str], Sequence[Estimate]], Units]"
"""From the names of the types of a call's arguments, and their estimates, to its units."""


def inside(one: Estimate) -> tuple[int, tuple[int, ...]]:
    """Return the sizes of an element: its own, and those of the levels below."""
    return (one.element[0], one.element[1:]) if one.element else (UNKNOWN, ())


def part(size: int, factor: float) -> int:
    """Return a share of a size, rounded up, in doubles as cel-go computes it (`multiplyByCostFactor`)."""
    return min(math.ceil(size * factor), MAX_SIZE)


def call(name: str, kinds: Sequence[str], given: Sequence[Estimate]) -> tuple[int, int, tuple[int, ...]]:
    """Return the cost of a call with its arguments, and the sizes of its result and its elements."""
    spent = sum(estimate.cost for estimate in given)
    if name in ("_&&_", "_||_"):
        return spent, 1, ()
    if name == "_?_:_":
        longest = max(given[1:], key=lambda estimate: estimate.size)
        return given[0].cost + max(given[1].cost, given[2].cost), longest.size, longest.element
    if name in ("_[_]", "_[?_]", "_?._"):
        return spent + 1, *inside(given[0])
    units, size = CALLS[name](kinds, given) if name in CALLS else (1, UNKNOWN)
    return spent + min(units, MAX_SIZE), min(size, MAX_SIZE), ()


# The rules of functions that need more than a line. A tenth is what walking through a text costs a character.


def _add(kinds: Sequence[str], given: Sequence[Estimate]) -> Units:
    """Estimate `+`: joining texts costs a tenth of both, everything else one; the sizes add up."""
    size = sum(estimate.size for estimate in given)
    return max(1, part(size, 0.1)) if all(kind in TEXTS for kind in kinds) else 1, size


def _compare(_kinds: Sequence[str], given: Sequence[Estimate]) -> Units:
    """Estimate a comparison: no more than a tenth of the smaller side can be compared."""
    return part(min(estimate.size for estimate in given), 0.1), 1


def _contains(kinds: Sequence[str], given: Sequence[Estimate]) -> Units:
    """Estimate looking for a part in a text, or whether sets have elements in common."""
    if "list" in kinds:  # Of sets: each element meets each.
        return 1 + given[0].size * given[1].size, 1
    return part(given[0].size, 0.1) * part(given[1].size, 0.1), 1


def _traverse(kinds: Sequence[str], given: Sequence[Estimate]) -> Units:
    """Estimate walking through a list, element by element, or through a text.

    A list of texts costs a tenth of each text besides, where the sizes of its elements are known.
    """
    if kinds[0] != "list":
        return part(given[0].size, 0.1), UNKNOWN
    texts = given[0].literal == "texts"
    return given[0].size * (1 + (part(inside(given[0])[0], 0.1) if texts else 0)), UNKNOWN


def _walk(_kinds: Sequence[str], given: Sequence[Estimate]) -> Units:
    """Estimate a function that reads a text and returns one at most as long."""
    return part(given[0].size, 0.1), given[0].size


def _replace(_kinds: Sequence[str], given: Sequence[Estimate]) -> Units:
    """Estimate the longest result of a replacement, and the walk through the text."""
    # The fewest characters that are replaced give the longest result: those of a literal, or none.
    text, old, new = given[0].size, given[1].literal, given[2].size
    fewest = len(old) if isinstance(old, str | bytes) else 0
    if fewest == 0:
        size = (text + 1) * new + text
    elif new <= fewest:
        size = text
    else:
        size = -(-text // fewest) * new
    return part(text, 0.2), size


def _join(_kinds: Sequence[str], given: Sequence[Estimate]) -> Units:
    """Estimate joining a list of texts: a tenth of the longest result that there may be."""
    count = given[0].size
    size = count * inside(given[0])[0]
    if len(given) > 1:
        size += max(count - 1, 0) * given[1].size
    return part(min(size, MAX_SIZE), 0.1), size


def _sort(kinds: Sequence[str], given: Sequence[Estimate]) -> Units:
    """Estimate sorting: each element meets each, and texts are compared by a tenth of themselves."""
    pairs = given[0].size ** 2
    texts = kinds[0] == "dyn" or given[0].literal == "texts"
    return 1 + CREATE_LIST + 2 * pairs + (part(pairs, 0.1) if texts else 0), given[0].size


def _holds(block: int) -> Estimator:
    """Estimate a look-up in a block of addresses: the block's own units, and parsing a text."""
    return lambda kinds, given: (block + (part(given[1].size, 0.1) if kinds[1] == "string" else 0), 1)


def _slice(_kinds: Sequence[str], given: Sequence[Estimate]) -> Units:
    """Estimate a slice, which is as long as its literal bounds say, or as the whole list."""
    start, end = given[1].literal, given[2].literal
    size = max(end - start, 0) if isinstance(start, int) and isinstance(end, int) else given[0].size
    return 1 + CREATE_LIST + size, size


def _range(_kinds: Sequence[str], given: Sequence[Estimate]) -> Units:
    """Estimate `lists.range`, whose literal argument says how long it is; else nothing bounds it."""
    count = given[0].literal
    size = max(count, 0) if isinstance(count, int) else UNKNOWN
    return 1 + CREATE_LIST + size, size


_ROWS: tuple[tuple[str, Estimator], ...] = (
    (
        "_==_",
        lambda kinds, args: (1, 1) if kinds[0] in OPAQUE and kinds[0] == kinds[1] else _compare(kinds, args),
    ),
    ("_!=_", _compare),
    ("_<_ _<=_ _>_ _>=_", lambda kinds, args: _compare(kinds, args) if kinds[0] in TEXTS else (1, 1)),
    ("_+_", _add),
    ("@in", lambda kinds, args: (1 if kinds[1] == "map" else args[1].size, 1)),
    # Texts.
    ("startsWith endsWith", lambda _, args: (part(args[1].size, 0.1), 1)),
    (
        "matches find findAll",
        lambda _, args: (part(args[0].size + 1, 0.1) * part(args[1].size, 0.25), args[0].size),
    ),
    ("lowerAscii upperAscii trim substring", _walk),
    ("split", lambda _, args: (part(args[0].size, 0.2), args[0].size)),
    ("replace", _replace),
    ("join", _join),
    ("quote strings.quote", lambda _, args: (part(args[0].size, 0.1), 2 * args[0].size + 2)),
    # What is parsed already, as in `string(quantity)`, costs one.
    (
        "format quantity isQuantity semver isSemver ip isIP cidr isCIDR url isURL",
        lambda kinds, args: (part(args[0].size, 0.1) if kinds[0] in TEXTS else 1, UNKNOWN),
    ),
    ("string bytes", lambda kinds, args: _walk(kinds, args) if kinds[0] in TEXTS else (1, UNKNOWN)),
    ("validate", lambda _, args: (part(args[1].size + 1, 0.1) * FORMAT, UNKNOWN)),
    ("isCanonical ip.isCanonical", lambda _, args: (part(2 * args[0].size, 0.1), 1)),
    ("containsIP", _holds(4)),
    ("containsCIDR", _holds(7)),
    # Lists, and texts by the same names.
    ("contains intersects sets.contains sets.intersects", _contains),
    ("equivalent sets.equivalent", lambda _, args: (1 + 2 * args[0].size * args[1].size, 1)),
    ("isSorted sum min max indexOf lastIndexOf", _traverse),
    ("reverse flatten", lambda _, args: (1 + CREATE_LIST + args[0].size, args[0].size)),
    ("sort", _sort),
    ("distinct", lambda _, args: (1 + CREATE_LIST + 2 * args[0].size ** 2, args[0].size)),
    ("range lists.range", _range),
    ("slice", _slice),
    ("includes", lambda _kinds, _args: (48, 1)),
    ("dyn of optional.of", lambda _, args: (1, args[0].size)),
)
CALLS: dict[str, Estimator] = {name: rule for names, rule in _ROWS for name in names.split()}
"""How a function is estimated; every other costs one, and its result may have any size."""


# A rule for each kind of node.

BOUNDED: dict[str, tuple[int, ...]] = {"driver": (63,), "attributes": (32, 32, 64), "capacity": (32, 32)}
"""Most characters of a driver; most domains of a device, names of a domain, characters of a value."""
SORTED_BY = 34
"""Units of sorting by a key besides its loop and the sorting."""
STEPS = {"all": 3, "exists": 4, "exists_one": 2, "transformMap": 3, "transformMapEntry": 2}
"""Units of a step of a loop besides those of its parts; loops that are not listed make a list."""
MADE = {"transformMap": CREATE_MAP, "transformMapEntry": CREATE_MAP, "all": 0, "exists": 0, "exists_one": 1}


class SizedNode(NamedTuple):
    """A node and the sizes of the names it sees."""

    node: Node
    names: dict[str, Estimate]


EstimateSteps: TypeAlias = Generator[SizedNode, Estimate, Estimate]


def estimate(checked: Checked) -> int:
    """Return the most units that Kubernetes expects the selector to cost; at most 2**64 - 1."""
    estimator = _Estimator(checked)
    estimated: Estimate = descend(
        lambda wanted: RULES[type(wanted.node)](estimator, wanted.node, wanted.names),
        SizedNode(checked.root, {}),
    )
    return min(estimated.cost, MAX_SIZE)


class _Estimator:
    """The rules, one method for each kind of node; a rule is asked with the sizes of the names in scope."""

    def __init__(self, checked: Checked) -> None:
        """Take what the check found out: estimates depend on the static types only."""
        self.types = checked.types
        self.checked = checked

    def sized(self, node: Node, cost: int, size: int = UNKNOWN, element: tuple[int, ...] = ()) -> Estimate:
        """Return the estimate of a node, cut at the largest cost; a scalar has size one whatever is said."""
        scalar = self.types[node].name in SCALARS
        return Estimate(min(cost, MAX_SIZE), 1 if scalar else min(size, MAX_SIZE), element)

    def marked(self, node: Node, one: Estimate) -> Estimate:
        """Mark a list of texts, which costs more to walk through."""
        kind = self.types[node]
        texts = kind.name == "list" and kind.args[0].name in ("string", "bytes")
        return one._replace(literal="texts") if texts else one

    def literal(self, node: nodes.Literal, _names: dict[str, Estimate]) -> Estimate:
        """Estimate a constant, which costs nothing and whose size is known."""
        text = isinstance(node.value, str | bytes)
        size = len(node.value) if text else UNKNOWN
        return self.sized(node, 0, size)._replace(literal=node.value)

    def name(self, node: nodes.Identifier, names: dict[str, Estimate]) -> Estimate:
        """Estimate a name, which costs a unit; one that a macro bound has the size of what it stands for."""
        variable = names.get(node.name)
        return self.sized(node, 1, variable.size, variable.element) if variable else self.sized(node, 1)

    def select(self, node: nodes.Select, names: dict[str, Estimate]) -> EstimateSteps:
        """Estimate a selection: a unit, but for a field of a message and for `has()`, which cost nothing."""
        if node in self.checked.type_values:
            return self.sized(node, 1)
        operand = yield SizedNode(node.operand, names)
        if node.test:
            return self.sized(node, operand.cost)
        kind = self.types[node.operand]
        step = int(kind.name == "map" or "." in kind.name)
        if kind == self.checked.environment.type:
            size, *levels = BOUNDED.get(node.field, (UNKNOWN,))
            return self.sized(node, operand.cost + step, size, tuple(levels))
        return self.sized(node, operand.cost + step, *inside(operand))

    def call(self, node: nodes.Call, names: dict[str, Estimate]) -> EstimateSteps:
        """Estimate a call by its function, the types of its arguments and their estimates."""
        args = node.args if node in self.checked.global_calls else operands(node)
        given = yield from collect(SizedNode(arg, names) for arg in args)
        kinds = [self.types[arg].name for arg in args]
        given = [self.marked(arg, estimate) for arg, estimate in zip(args, given, strict=True)]
        cost, size, element = call(node.function, kinds, given)
        return self.sized(node, cost, size, element)

    def items(self, node: nodes.ListLiteral, names: dict[str, Estimate]) -> EstimateSteps:
        """Estimate a list literal: its elements, and making it."""
        given = yield from collect(SizedNode(item.value, names) for item in node.items)
        items = max((estimate.size for estimate in given), default=0)
        made = self.sized(node, CREATE_LIST + sum(estimate.cost for estimate in given), len(given))
        return made._replace(items=items)

    def entries(self, node: nodes.MapLiteral, names: dict[str, Estimate]) -> EstimateSteps:
        """Estimate a map literal: keys, values, and making it."""
        both = [part for entry in node.entries for part in (entry.key, entry.value)]
        given = yield from collect(SizedNode(part, names) for part in both)
        items = max((estimate.size for estimate in given), default=0)
        made = self.sized(node, CREATE_MAP + sum(estimate.cost for estimate in given), len(node.entries))
        return made._replace(items=items)

    def message(self, node: nodes.MessageLiteral, names: dict[str, Estimate]) -> EstimateSteps:
        """Estimate a message literal: its fields, and making it."""
        given = yield from collect(SizedNode(value, names) for _, value, _ in node.fields)
        return self.sized(node, CREATE_MESSAGE + sum(estimate.cost for estimate in given))

    def bind(self, node: nodes.Bind, names: dict[str, Estimate]) -> EstimateSteps:
        """Estimate cel.bind, which cel-go writes as a fold over an empty list."""
        value = yield SizedNode(node.value, names)
        body = yield SizedNode(node.body, {**names, node.name: value})
        return self.sized(node, CREATE_LIST + value.cost + body.cost, body.size, body.element)

    def optional_map(self, node: nodes.OptionalMap, names: dict[str, Estimate]) -> EstimateSteps:
        """Estimate optMap, which cel-go writes as a conditional around a fold that binds the name."""
        given = yield SizedNode(node.optional, names)
        body = yield SizedNode(node.body, {**names, node.name: Estimate(0, *inside(given))})
        bound = CREATE_LIST + given.cost + 1 + body.cost + (0 if node.flat else 1)
        return self.sized(node, given.cost + 1 + max(bound, 1))

    def loop(self, node: nodes.Loop, names: dict[str, Estimate]) -> EstimateSteps:
        """Estimate a loop as the fold that cel-go makes of it.

        Each step, for as many elements as there may be.
        """
        over = yield SizedNode(node.range, names)
        size, below = inside(over) if over.element else (over.items, ())
        inner = {**names, **dict.fromkeys(node.names, Estimate(0, size, below))}
        steps = yield from collect(SizedNode(step, inner) for step in node.steps)
        step_cost = STEPS.get(node.kind, 2 + CREATE_LIST) + sum(step.cost for step in steps)
        step_cost += node.kind == "filter"
        total = over.cost + MADE.get(node.kind, CREATE_LIST) + 1 + over.size * step_cost
        if node.kind == "sortBy":
            total += SORTED_BY - CREATE_LIST - 1 + 2 * over.size**2
        return self.sized(node, total, over.size)


RULES: dict[type, Callable[[_Estimator, Any, dict[str, Estimate]], Any]] = {
    nodes.Literal: _Estimator.literal,
    nodes.Identifier: _Estimator.name,
    nodes.Select: _Estimator.select,
    nodes.Call: _Estimator.call,
    nodes.ListLiteral: _Estimator.items,
    nodes.MapLiteral: _Estimator.entries,
    nodes.MessageLiteral: _Estimator.message,
    nodes.Bind: _Estimator.bind,
    nodes.OptionalMap: _Estimator.optional_map,
    nodes.Loop: _Estimator.loop,
}
