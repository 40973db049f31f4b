"""Estimate the cost of a call and the size of its result from the sizes of its arguments."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from function.cel.library.charges import CREATE_LIST

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

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
    units, size = RULES.get(name, _plain)(kinds, given)
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


RULES: dict[str, Estimator] = {
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
