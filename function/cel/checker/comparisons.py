"""Find the terms that compare something published with a literal: a hint can propose to relax those.

`device.capacity["d"].memory.compareTo(quantity("80Gi")) >= 0` compares the capacity d/memory, by >=, with
80Gi.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from function.cel.checker.paths import literal_path
from function.cel.checker.references import Reference, references
from function.cel.syntax.nodes import Call, Literal, Node, operands

if TYPE_CHECKING:
    from function.cel.checker.state import Checked

SYMBOLS = {"_==_": "==", "_!=_": "!=", "_<_": "<", "_<=_": "<=", "_>_": ">", "_>=_": ">="}
MIRRORED = {"==": "==", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
METHODS = {"isGreaterThan": ">", "isLessThan": "<"}
CONSTRUCTORS = frozenset({"quantity", "semver"})
ESCAPED = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"})


@dataclass(frozen=True, slots=True)
class Comparison:
    """One term of a selector: `reference operator literal`, read with the reference on the left.

    `kind` is quantity, semver, string, int, double, uint or bool; `literal` is the text inside of the quotes
    for the first three. `start` and `end` are where the literal stands in `source`, the whole selector.
    """

    reference: Reference
    operator: str
    literal: str
    kind: str
    source: str
    start: int
    end: int

    def relaxed(self, literal: str) -> str:
        """Return the whole selector with another literal in this place, quoted if this one is."""
        quoted = self.kind in ("quantity", "semver", "string")
        text = f'"{literal.translate(ESCAPED)}"' if quoted else literal
        return self.source[: self.start] + text + self.source[self.end :]


def comparison(checked: Checked, term: Node, source: str) -> Comparison | None:
    """Return the comparison that a term is, or None."""
    if not isinstance(term, Call):
        return None
    if term.function in METHODS and term.target is not None:
        return _between(checked, term.target, METHODS[term.function], term.args[0], source)
    if term.function not in SYMBOLS:
        return None
    symbol = SYMBOLS[term.function]
    one, two = term.args
    if _is_compare_to(one) and isinstance(two, Literal) and two.value == 0:
        return _between(checked, *_sides(one, symbol), source)
    if _is_compare_to(two) and isinstance(one, Literal) and one.value == 0:
        return _between(checked, *_sides(two, MIRRORED[symbol]), source)
    return _between(checked, one, symbol, two, source)


def _is_compare_to(node: Node) -> bool:
    return isinstance(node, Call) and node.function == "compareTo" and node.target is not None


def _sides(node: Node, symbol: str) -> tuple[Node, str, Node]:
    """Return the two sides of `a.compareTo(b)` with the operator between them."""
    if not isinstance(node, Call):
        raise TypeError("compareTo is a call")
    one, two = operands(node)
    return one, symbol, two


def _between(checked: Checked, one: Node, symbol: str, two: Node, source: str) -> Comparison | None:
    """Return the comparison of a reference with a literal, whichever side each is on."""
    for left, operator, right in ((one, symbol, two), (two, MIRRORED[symbol], one)):
        reference, literal = _reference(checked, left), _literal(right)
        if reference is not None and literal is not None:
            node, kind = literal
            return Comparison(reference, operator, _text(node), kind, source, node.span.start, node.span.end)
    return None


def _reference(checked: Checked, node: Node) -> Reference | None:
    path = literal_path(checked, node)
    if not path or len(path) != checked.environment.fields[path[0]].depth + 1:
        return None
    (reference,) = references(checked.environment, [path])
    return reference


def _literal(node: Node) -> tuple[Literal, str] | None:
    """Return a literal, or the one inside of quantity() or semver(), and its kind."""
    if isinstance(node, Literal):
        return (node, node.type.name) if node.value is not None else None
    if isinstance(node, Call) and node.function in CONSTRUCTORS and isinstance(node.args[0], Literal):
        return node.args[0], node.function
    return None


def _text(node: Literal) -> str:
    if isinstance(node.value, bool):
        return "true" if node.value else "false"
    return str(node.value)
