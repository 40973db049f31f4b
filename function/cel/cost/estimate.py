"""Estimate the most that a selector may cost, as Kubernetes does before it has seen a device.

The API server refuses a selector above the limit when a claim or class is written. The estimate follows
cel-go's rules as far as they are known; it is advice for a lint and never refuses a selector by itself.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from function.cel.cost import estimate_calls as calls
from function.cel.cost.estimate_calls import MAX_SIZE, UNKNOWN, Estimate
from function.cel.library.charges import CREATE_LIST, CREATE_MAP, CREATE_MESSAGE
from function.cel.syntax import nodes
from function.cel.syntax.descent import collect, descend
from function.cel.syntax.nodes import Node, operands

if TYPE_CHECKING:
    from collections.abc import Callable

    from function.cel.checker.state import Checked

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
        scalar = self.types[node].name in calls.SCALARS
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
        return self.sized(node, operand.cost + step, *calls.inside(operand))

    def call(self, node: nodes.Call, names: dict[str, Estimate]) -> EstimateSteps:
        args = node.args if node in self.checked.global_calls else operands(node)
        given = yield from collect(SizedNode(arg, names) for arg in args)
        kinds = [self.types[arg].name for arg in args]
        given = [self.marked(arg, estimate) for arg, estimate in zip(args, given, strict=True)]
        cost, size, element = calls.call(node.function, kinds, given)
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
        body = yield SizedNode(node.body, {**names, node.name: Estimate(0, *calls.inside(given))})
        bound = CREATE_LIST + given.cost + 1 + body.cost + (0 if node.flat else 1)
        return self.sized(node, given.cost + 1 + max(bound, 1))

    def loop(self, node: nodes.Loop, names: dict[str, Estimate]) -> EstimateSteps:
        over = yield SizedNode(node.range, names)
        size, below = calls.inside(over) if over.element else (over.items, ())
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
