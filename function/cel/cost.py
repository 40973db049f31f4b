"""Costs in the units of Kubernetes: charged while a selector runs, estimated before it is stored."""

from __future__ import annotations

import math
from collections.abc import Generator
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from function.cel.library.charges import CREATE_LIST, CREATE_MAP, CREATE_MESSAGE
from function.cel.syntax import nodes
from function.cel.syntax.nodes import Node, operands
from function.cel.syntax.parser import collect, descend

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from function.cel.checker.state import Checked


# Estimate the cost of a call and the size of its result from the sizes of its arguments.

if TYPE_CHECKING:
    Estimator: TypeAlias = "Callable[[Sequence[str], Sequence[Estimate]], Units]"

MAX_SIZE = UNKNOWN = 2**64 - 1
"""A size that nothing bounds; costs end there as well."""
SCALARS = frozenset({"bool", "int", "uint", "double", "duration", "timestamp", "null"})
OPAQUE = frozenset(
    {"kubernetes.Quantity", "kubernetes.Semver", "kubernetes.URL"}
    | {"kubernetes.NamedFormat", "net.IP", "net.CIDR"}
)
TEXTS = frozenset({"string", "bytes", "dyn"})


FORMAT = 32
"""Characters of a named format's expression, by four, that Kubernetes reckons with."""


class Estimate(NamedTuple):
    """The most a node costs, the most elements or characters it has, and those of the levels below."""

    cost: int
    size: int
    element: tuple[int, ...] = ()
    literal: Any = None
    items: int = UNKNOWN

    @property
    def least(self) -> int:
        """The fewest characters it has."""
        return len(self.literal) if isinstance(self.literal, str | bytes) else 0


Units: TypeAlias = tuple[int, int]
"""The units of a call, and the size of its result."""


def inside(one: Estimate) -> tuple[int, tuple[int, ...]]:
    """Return the sizes of an element: its own, and those of the levels below."""
    return (one.element[0], one.element[1:]) if one.element else (UNKNOWN, ())


def part(size: int, factor: float) -> int:
    """Return a share of a size, rounded up, in doubles as cel-go computes it."""
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
    units, size = CALLS.get(name, _plain)(kinds, given)
    return spent + min(units, MAX_SIZE), min(size, MAX_SIZE), ()


def _plain(_kinds: Sequence[str], _given: Sequence[Estimate]) -> Units:
    return 1, UNKNOWN


def _add(kinds: Sequence[str], given: Sequence[Estimate]) -> Units:
    size = sum(estimate.size for estimate in given)
    return max(1, part(size, 0.1)) if all(kind in TEXTS for kind in kinds) else 1, size


def _compare(_kinds: Sequence[str], given: Sequence[Estimate]) -> Units:
    return part(min(estimate.size for estimate in given), 0.1), 1


def _equal(kinds: Sequence[str], given: Sequence[Estimate]) -> Units:
    return (1, 1) if kinds[0] in OPAQUE and kinds[0] == kinds[1] else _compare(kinds, given)


def _order(kinds: Sequence[str], given: Sequence[Estimate]) -> Units:
    return _compare(kinds, given) if kinds[0] in TEXTS else (1, 1)


def _in(kinds: Sequence[str], given: Sequence[Estimate]) -> Units:
    return (1 if kinds[1] == "map" else given[1].size), 1


def _prefix(_kinds: Sequence[str], given: Sequence[Estimate]) -> Units:
    return part(given[1].size, 0.1), 1


def _contains(kinds: Sequence[str], given: Sequence[Estimate]) -> Units:
    if "list" in kinds:
        return 1 + given[0].size * given[1].size, 1
    return part(given[0].size, 0.1) * part(given[1].size, 0.1), 1


def _equivalent(_kinds: Sequence[str], given: Sequence[Estimate]) -> Units:
    return 1 + 2 * given[0].size * given[1].size, 1


def _matches(_kinds: Sequence[str], given: Sequence[Estimate]) -> Units:
    return part(given[0].size + 1, 0.1) * part(given[1].size, 0.25), given[0].size


def _traverse(kinds: Sequence[str], given: Sequence[Estimate]) -> Units:
    if kinds[0] != "list":
        return part(given[0].size, 0.1), UNKNOWN
    texts = given[0].literal == "texts"
    return given[0].size * (1 + (part(inside(given[0])[0], 0.1) if texts else 0)), UNKNOWN


def _walk(_kinds: Sequence[str], given: Sequence[Estimate]) -> Units:
    return part(given[0].size, 0.1), given[0].size


def _parse(kinds: Sequence[str], given: Sequence[Estimate]) -> Units:
    if kinds[0] not in TEXTS:
        return 1, UNKNOWN
    return part(given[0].size, 0.1), UNKNOWN


def _convert(kinds: Sequence[str], given: Sequence[Estimate]) -> Units:
    return _walk(kinds, given) if kinds[0] in TEXTS else (1, UNKNOWN)


def _same(_kinds: Sequence[str], given: Sequence[Estimate]) -> Units:
    return 1, given[0].size


def _split(_kinds: Sequence[str], given: Sequence[Estimate]) -> Units:
    return part(given[0].size, 0.2), given[0].size


def _replace(_kinds: Sequence[str], given: Sequence[Estimate]) -> Units:
    text, old, new = given[0].size, given[1].least, given[2].size
    if old == 0:
        size = (text + 1) * new + text
    elif new <= old:
        size = text
    else:
        size = -(-text // old) * new
    return part(text, 0.2), size


def _join(_kinds: Sequence[str], given: Sequence[Estimate]) -> Units:
    count = given[0].size
    size = count * inside(given[0])[0]
    if len(given) > 1:
        size += max(count - 1, 0) * given[1].size
    return part(min(size, MAX_SIZE), 0.1), size


def _sort(kinds: Sequence[str], given: Sequence[Estimate]) -> Units:
    pairs = given[0].size ** 2
    texts = kinds[0] == "dyn" or given[0].literal == "texts"
    return 1 + CREATE_LIST + 2 * pairs + (part(pairs, 0.1) if texts else 0), given[0].size


def _distinct(_kinds: Sequence[str], given: Sequence[Estimate]) -> Units:
    return 1 + CREATE_LIST + 2 * given[0].size ** 2, given[0].size


def _quote(_kinds: Sequence[str], given: Sequence[Estimate]) -> Units:
    return part(given[0].size, 0.1), 2 * given[0].size + 2


def _validate(_kinds: Sequence[str], given: Sequence[Estimate]) -> Units:
    return part(given[1].size + 1, 0.1) * FORMAT, UNKNOWN


def _holds(block: int) -> Estimator:
    return lambda kinds, given: (block + (part(given[1].size, 0.1) if kinds[1] == "string" else 0), 1)


def _copy(_kinds: Sequence[str], given: Sequence[Estimate]) -> Units:
    return 1 + CREATE_LIST + given[0].size, given[0].size


def _slice(_kinds: Sequence[str], given: Sequence[Estimate]) -> Units:
    start, end = given[1].literal, given[2].literal
    size = max(end - start, 0) if isinstance(start, int) and isinstance(end, int) else given[0].size
    return 1 + CREATE_LIST + size, size


def _range(_kinds: Sequence[str], given: Sequence[Estimate]) -> Units:
    count = given[0].literal
    size = max(count, 0) if isinstance(count, int) else UNKNOWN
    return 1 + CREATE_LIST + size, size


def _includes(_kinds: Sequence[str], _given: Sequence[Estimate]) -> Units:
    return 48, 1


def _canonical(_kinds: Sequence[str], given: Sequence[Estimate]) -> Units:
    return part(2 * given[0].size, 0.1), 1


def _names(estimator: Estimator, names: str) -> dict[str, Estimator]:
    return dict.fromkeys(names.split(), estimator)


CALLS: dict[str, Estimator] = {
    "_==_": _equal,
    "_!=_": _compare,
    **_names(_order, "_<_ _<=_ _>_ _>=_"),
    **_names(_prefix, "startsWith endsWith"),
    **_names(_contains, "contains intersects sets.contains sets.intersects"),
    **_names(_equivalent, "equivalent sets.equivalent"),
    **_names(_matches, "matches find findAll"),
    **_names(_traverse, "isSorted sum min max indexOf lastIndexOf"),
    **_names(_walk, "lowerAscii upperAscii trim substring"),
    **_names(_parse, "quantity isQuantity semver isSemver ip isIP cidr isCIDR url isURL"),
    **_names(_convert, "string bytes"),
    **_names(_quote, "quote strings.quote"),
    **_names(_same, "dyn of optional.of"),
    **_names(_copy, "reverse flatten"),
    **_names(_parse, "format"),
    "validate": _validate,
    "containsIP": _holds(4),
    "containsCIDR": _holds(7),
    "sort": _sort,
    "distinct": _distinct,
    **_names(_canonical, "isCanonical ip.isCanonical"),
    **_names(_range, "range lists.range"),
    "_+_": _add,
    "@in": _in,
    "split": _split,
    "replace": _replace,
    "join": _join,
    "slice": _slice,
    "includes": _includes,
}
"""How a function is estimated; every other costs one."""


# Estimate the most that a selector may cost, as Kubernetes does before it has seen a device.
#
# The API server refuses a selector above the limit when a claim or class is written. The estimate follows
# cel-go's rules as far as they are known; it is advice for a lint and never refuses a selector by itself.

BOUNDED: dict[str, tuple[int, ...]] = {"driver": (63,), "attributes": (32, 32, 64), "capacity": (32, 32)}
"""Most characters of a driver; most domains of a device, names of a domain, characters of a value."""
SORTED_BY = 34
"""What sorting by a key costs besides its loop and the sorting."""
STEPS = {"all": 3, "exists": 4, "exists_one": 2, "transformMap": 3, "transformMapEntry": 2}
"""What a step of a loop costs besides what stands in it; the others make a list."""
MADE = {"transformMap": CREATE_MAP, "transformMapEntry": CREATE_MAP, "all": 0, "exists": 0, "exists_one": 1}


class SizedNode(NamedTuple):
    """A node and the sizes of the names it sees."""

    node: Node
    names: dict[str, Estimate]


EstimateSteps: TypeAlias = Generator[SizedNode, Estimate, Estimate]


def estimate(checked: Checked) -> int:
    """Return the most units that Kubernetes expects the selector to cost; at most 2**64 - 1."""
    estimator = _Estimator(checked)
    estimated: Estimate = descend(estimator.rule, SizedNode(checked.root, {}))
    return min(estimated.cost, MAX_SIZE)


class _Estimator:
    def __init__(self, checked: Checked) -> None:
        self.types = checked.types
        self.checked = checked

    def rule(self, wanted: SizedNode) -> Any:
        return RULES[type(wanted.node)](self, wanted.node, wanted.names)

    def sized(self, node: Node, cost: int, size: int = UNKNOWN, element: tuple[int, ...] = ()) -> Estimate:
        scalar = self.types[node].name in SCALARS
        return Estimate(min(cost, MAX_SIZE), 1 if scalar else min(size, MAX_SIZE), element)

    def marked(self, node: Node, one: Estimate) -> Estimate:
        """Mark a list of texts, which costs more to walk through."""
        kind = self.types[node]
        texts = kind.name == "list" and kind.args[0].name in ("string", "bytes")
        return one._replace(literal="texts") if texts else one

    def literal(self, node: nodes.Literal, _names: dict[str, Estimate]) -> Estimate:
        text = isinstance(node.value, str | bytes)
        size = len(node.value) if text else UNKNOWN
        return self.sized(node, 0, size)._replace(literal=node.value)

    def name(self, node: nodes.Identifier, names: dict[str, Estimate]) -> Estimate:
        variable = names.get(node.name)
        return self.sized(node, 1, variable.size, variable.element) if variable else self.sized(node, 1)

    def select(self, node: nodes.Select, names: dict[str, Estimate]) -> EstimateSteps:
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
        args = node.args if node in self.checked.global_calls else operands(node)
        given = yield from collect(SizedNode(arg, names) for arg in args)
        kinds = [self.types[arg].name for arg in args]
        given = [self.marked(arg, estimate) for arg, estimate in zip(args, given, strict=True)]
        cost, size, element = call(node.function, kinds, given)
        return self.sized(node, cost, size, element)

    def items(self, node: nodes.ListLiteral, names: dict[str, Estimate]) -> EstimateSteps:
        given = yield from collect(SizedNode(item.value, names) for item in node.items)
        items = max((estimate.size for estimate in given), default=0)
        made = self.sized(node, CREATE_LIST + sum(estimate.cost for estimate in given), len(given))
        return made._replace(items=items)

    def entries(self, node: nodes.MapLiteral, names: dict[str, Estimate]) -> EstimateSteps:
        both = [part for entry in node.entries for part in (entry.key, entry.value)]
        given = yield from collect(SizedNode(part, names) for part in both)
        items = max((estimate.size for estimate in given), default=0)
        made = self.sized(node, CREATE_MAP + sum(estimate.cost for estimate in given), len(node.entries))
        return made._replace(items=items)

    def message(self, node: nodes.MessageLiteral, names: dict[str, Estimate]) -> EstimateSteps:
        given = yield from collect(SizedNode(value, names) for _, value, _ in node.fields)
        return self.sized(node, CREATE_MESSAGE + sum(estimate.cost for estimate in given))

    def bind(self, node: nodes.Bind, names: dict[str, Estimate]) -> EstimateSteps:
        value = yield SizedNode(node.value, names)
        body = yield SizedNode(node.body, {**names, node.name: value})
        return self.sized(node, CREATE_LIST + value.cost + body.cost, body.size, body.element)

    def optional_map(self, node: nodes.OptionalMap, names: dict[str, Estimate]) -> EstimateSteps:
        given = yield SizedNode(node.optional, names)
        body = yield SizedNode(node.body, {**names, node.name: Estimate(0, *inside(given))})
        bound = CREATE_LIST + given.cost + 1 + body.cost + (0 if node.flat else 1)
        return self.sized(node, given.cost + 1 + max(bound, 1))

    def loop(self, node: nodes.Loop, names: dict[str, Estimate]) -> EstimateSteps:
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
