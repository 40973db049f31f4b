"""Find out what a selector reads, compares and needs, from its checked tree, without running it.

Five questions have their answers here:

- which values of a subject decide the outcome (`paths`, `Projection`)? A fleet has thousands of devices that
  differ only in an identifier that no selector reads; subjects with equal projections are evaluated once;
- which names does it read (`references`)? Lint asks if anything publishes them, and `suggest` proposes the
  nearest one that is published;
- which of its terms compare a published value with a literal (`comparison`)? A hint can say which value
  would have to be relaxed to what;
- which Kubernetes release does it need (`requirements`)? It can be too new for the oldest cluster;
- which operator of another language was meant (`respelt_operators`)?

All of it is about names that are written out. A key that is computed reads everything that it could reach, so
a projection may be too large, which costs an evaluation, and is never too small.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Iterator

from function.boundary import frozen
from function.cel.checker.state import Checked, Environment
from function.cel.library.declarations import ALWAYS
from function.cel.subject import ReadPath, Subject
from function.cel.syntax import nodes
from function.cel.syntax.nodes import Call, Identifier, Literal, Loop, Node, Select, children, operands
from function.cel.values import SUBJECT

_LITERALS = re.compile(r"""("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')""")
_SLIPS = (
    (re.compile(r"(?<!&)&(?!&)"), "&&", "&"),
    (re.compile(r"(?<!\|)\|(?!\|)"), "||", "|"),
    (re.compile(r"(?<![=!<>])=(?!=)"), "==", "="),
    (re.compile(r"\band\b"), "&&", "and"),
    (re.compile(r"\bor\b"), "||", "or"),
    (re.compile(r"\bnot\b\s*"), "!", "not"),
    (re.compile(r"\bTrue\b"), "true", "True"),
    (re.compile(r"\bFalse\b"), "false", "False"),
)
"""Operators as other languages write them, outside of literals, and as CEL does."""
_CURLY = str.maketrans("\u201c\u201d\u201e\u2018\u2019", '"""\'\'')
"""Quotes that editors of prose put in the place of straight ones."""


def distance(one: str, two: str) -> int:
    """Return how many edits lead from one name to the other: insert, delete, replace, swap neighbours."""
    older: list[int] = []
    above = list(range(len(two) + 1))
    for i, left in enumerate(one, 1):
        row = [i]
        for j, right in enumerate(two, 1):
            edits = min(above[j] + 1, row[-1] + 1, above[j - 1] + (left != right))
            if i > 1 and j > 1 and left == two[j - 2] and right == one[i - 2]:
                edits = min(edits, older[j - 2] + 1)
            row.append(edits)
        older, above = above, row
    return above[-1]


def suggest(name: str, candidates: Iterable[str]) -> str:
    """Return the candidate nearest to `name`, ignoring case; empty if none is near. Ties go by name.

    Near is at most a third of its length in edits, and at least one edit.
    """
    wanted = name.lower()
    limit = max(1, len(wanted) // 3)
    near = {other for other in candidates if abs(len(other) - len(wanted)) <= limit and other != name}
    ranked = sorted((distance(wanted, other.lower()), other) for other in near)
    return ranked[0][1] if ranked and ranked[0][0] <= limit else ""


def respelt_operators(source: str) -> tuple[str, str]:
    """Return a selector with the operators and quotes of CEL, and what was changed: `write && for &`.

    Both are empty where there is nothing to change. Whether it compiles, the caller finds out.
    """
    straight = source.translate(_CURLY)
    advice = ["straight quotes for curly ones"] if straight != source else []
    parts = _LITERALS.split(straight)
    for pattern, right, wrong in _SLIPS:
        mended = [part if at % 2 else pattern.sub(right, part) for at, part in enumerate(parts)]
        if mended != parts:
            advice.append(f"{right} for {wrong}")
        parts = mended
    return ("".join(parts), f"write {', '.join(advice)}") if advice else ("", "")


# Find the keys by which an expression reads its variable: `device.attributes["d"].x` is attributes, d, x.


def paths(checked: Checked, root: Node) -> frozenset[ReadPath]:
    """Return the longest literal paths that an expression reads; () is the whole subject."""
    read: set[ReadPath] = set()
    todo: list[Node] = [root]
    while todo:
        path, rest = _path(checked, todo.pop())
        if path is not None:
            read.add(path)
        todo += rest
    return frozenset(read)


def _path(checked: Checked, node: Node) -> tuple[ReadPath | None, list[Node]]:
    """Return the path that a node reads, if it is one, and the nodes still to look at."""
    keys: list[str | None] = []
    rest: list[Node] = []
    current = node
    while not isinstance(current, Identifier):
        step = nodes.step(current)
        if step is None:
            return None, children(node)
        current, key, others = step
        keys.append(key)
        rest += others
    variable = checked.variables.get(current)
    if variable is None or variable.slot != SUBJECT:
        return None, children(node)
    written: list[str] = []
    for key in reversed(keys):
        if key is None:
            break
        written.append(key)
    return tuple(written[: checked.environment.fields[written[0]].depth + 1]) if written else (), rest


@frozen(order=True)
class Reference:
    """Something a selector reads by a name that is written out.

    `kind` is driver, attribute, capacity, label, name, className or allowMultipleAllocations. For a device's
    attribute or capacity, `id` None means every one of the domain and `domain` None every one there is.
    """

    kind: str
    domain: str | None = None
    id: str | None = None

    def __str__(self) -> str:
        """`gpu.nvidia.com/memory`; what has no name of its own is told by its kind."""
        return "/".join(part for part in (self.domain, self.id) if part is not None) or self.kind


def references(environment: Environment, read: Iterable[ReadPath]) -> frozenset[Reference]:
    """Return the references that paths are. Reading the whole subject reads every field."""
    made: set[Reference] = set()
    for path in read:
        fields = [(path[0], path[1:])] if path else [(field, ()) for field in environment.fields]
        for field, keys in fields:
            declared = environment.fields[field]
            domain, name = (*keys, None, None)[:2]
            if declared.depth <= 1:  # A field of one level has no domain.
                domain, name = None, domain
            made.add(Reference(declared.kind, domain, name))
    return frozenset(made)


_FIELDS = {"attribute": "attributes", "label": "labels"}


def published(subject: Subject, reference: Reference) -> str | None:
    """Return what the subject publishes under a reference, as text; None if it publishes nothing there.

    An attribute's content is its kind with its value, and a list's value is a tuple (`subject`).
    """
    names = (name for name in (reference.domain, reference.id) if name is not None)
    content = subject.content.get((_FIELDS.get(reference.kind, reference.kind), *names))
    if isinstance(content, tuple):
        _, content = content
    if isinstance(content, tuple):
        return f"[{', '.join(map(_shown, content))}]"
    return None if content is None else _shown(content)


def _shown(value: object) -> str:
    """Write a literal as CEL does: booleans in lower case."""
    return str(value).lower() if isinstance(value, bool) else str(value)


class Projection:
    """The part of a subject that decides the outcome. Subjects with equal projections have equal outcomes.

    `_exact` are paths to single values, which cost one look-up each; `_partial` are paths to a map of several
    (a computed key, `size(device.attributes["d"])`), of which everything below counts. A subject whose values
    cannot be converted is an error to every selector, so it is its own projection.
    """

    __slots__ = ("_exact", "_partial", "_whole")

    def __init__(self, environment: Environment, read: frozenset[ReadPath]) -> None:
        """Sort the paths into single values, parts of a variable, and the whole subject.

        A path is a single value where it is as long as its field is deep.
        """
        full = {path for path in read if path and len(path) == environment.fields[path[0]].depth + 1}
        self._exact = tuple(sorted(full))
        self._partial = tuple(sorted(read - full))
        self._whole = () in read

    def of(self, subject: Subject) -> Hashable:
        """Return the part of the subject's content that is read, hashable."""
        if self._whole or subject.problem:
            return subject
        content = subject.content
        exact = tuple(map(content.get, self._exact))
        if not self._partial:
            return exact
        below = [
            frozenset(item for item in content.items() if item[0][: len(path)] == path)
            for path in self._partial
        ]
        return (exact, *below)


# Find the terms that compare something published with a literal: a hint can propose to relax those.
#
# `device.capacity["d"].memory.compareTo(quantity("80Gi")) >= 0` compares the capacity d/memory, by >=, with
# 80Gi.

SYMBOLS = {"_==_": "==", "_!=_": "!=", "_<_": "<", "_<=_": "<=", "_>_": ">", "_>=_": ">="}
MIRRORED = {"==": "==", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
METHODS = {"isGreaterThan": ">", "isLessThan": "<"}
CONSTRUCTORS = frozenset({"quantity", "semver"})
ESCAPED = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"})


@frozen
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
    # `a.compareTo(b) >= 0` is how the dialect writes `a >= b` of quantities and versions.
    for call, operator, zero in ((one, symbol, two), (two, MIRRORED[symbol], one)):
        if not (isinstance(call, Call) and call.function == "compareTo" and call.target is not None):
            continue
        if isinstance(zero, Literal) and zero.value == 0:
            left, right = operands(call)
            return _between(checked, left, operator, right, source)
    return _between(checked, one, symbol, two, source)


def _between(checked: Checked, one: Node, symbol: str, two: Node, source: str) -> Comparison | None:
    """Return the comparison of a reference with a literal, whichever side each is on."""
    for left, operator, right in ((one, symbol, two), (two, MIRRORED[symbol], one)):
        path, literal = checked.value_path(left), _literal(right)
        if path and literal is not None:
            (reference,) = references(checked.environment, [path])
            node, kind = literal
            text, span = _shown(node.value), node.span
            return Comparison(reference, operator, text, kind, source, span.start, span.end)
    return None


def _literal(node: Node) -> tuple[Literal, str] | None:
    """Return a literal, or the one inside of quantity() or semver(), and its kind."""
    if isinstance(node, Literal):
        return (node, node.type.name) if node.value is not None else None
    if isinstance(node, Call) and node.function in CONSTRUCTORS and isinstance(node.args[0], Literal):
        return node.args[0], node.function
    return None


# Find the Kubernetes release that a selector needs: it can be too new for the oldest cluster.

TWO_VARIABLES = "1.32"
LIST_EXTENSIONS = "1.34"
LISTS = "1.36"
"""Before, a single attribute could not be iterated over at all."""
TWO_VARIABLE_ONLY = frozenset({"transformList", "transformMap", "transformMapEntry"})


@frozen
class ReleaseRequirement:
    """A word of a selector, and the Kubernetes release (as major.minor) whose API server first knows it."""

    name: str
    since: str


def requirements(checked: Checked) -> tuple[ReleaseRequirement, ...]:
    """Return the words that not every release knows, newest first, then by name."""
    needed: set[ReleaseRequirement] = set()
    todo: list[Node] = [checked.root]
    while todo:
        node = todo.pop()
        needed.update(word for word in _of(checked, node) if word.since != ALWAYS)
        todo += children(node)
    return tuple(sorted(needed, key=lambda word: (-_minor(word.since), word.name)))


def _of(checked: Checked, node: Node) -> Iterator[ReleaseRequirement]:
    """Yield the words of one node, also those that every release knows.

    Of several overloads the oldest counts: the check cannot tell which one runs, and no lint may be wrong.
    """
    if isinstance(node, Call) and node in checked.overloads:
        since = min((overload.since for overload in checked.overloads[node]), key=_minor)
        yield ReleaseRequirement(f"{checked.overloads[node][0].name}()", since)
    elif isinstance(node, Loop):
        if checked.value_path(node.range) is not None:
            yield ReleaseRequirement("lists as attributes", LISTS)
        if node.kind in TWO_VARIABLE_ONLY or len(node.names) > 1:
            yield ReleaseRequirement(f"{node.kind}() with two variables", TWO_VARIABLES)
        elif node.kind == "sortBy":
            yield ReleaseRequirement("sortBy()", LIST_EXTENSIONS)
    elif isinstance(node, Select) and isinstance(node.operand, Identifier):
        variable, field = checked.variables.get(node.operand), checked.environment.fields.get(node.field)
        if variable is not None and variable.slot == SUBJECT and field is not None:
            yield ReleaseRequirement(f"{checked.environment.variable}.{node.field}", field.since)


def _minor(release: str) -> int:
    """Return the number that releases are compared by: the major version is 1 throughout."""
    return int(release.partition(".")[2])
