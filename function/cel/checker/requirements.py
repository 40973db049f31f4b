"""Find the Kubernetes release that a selector needs: it can be too new for the oldest cluster."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from function.cel.checker.references import value_path
from function.cel.library.declarations import ALWAYS
from function.cel.syntax.nodes import Call, Identifier, Loop, Node, Select, children
from function.cel.values import SUBJECT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from function.cel.checker.state import Checked

TWO_VARIABLES = "1.32"
LIST_EXTENSIONS = "1.34"
LISTS = "1.36"
"""Before, a single attribute could not be iterated over at all."""
TWO_VARIABLE_ONLY = frozenset({"transformList", "transformMap", "transformMapEntry"})


@dataclass(frozen=True, slots=True)
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
    if isinstance(node, Call) and node in checked.overloads:
        since = min((overload.since for overload in checked.overloads[node]), key=_minor)
        yield ReleaseRequirement(f"{checked.overloads[node][0].name}()", since)
    elif isinstance(node, Loop):
        if value_path(checked, node.range) is not None:
            yield ReleaseRequirement("lists as attributes", LISTS)
        if node.kind in TWO_VARIABLE_ONLY or len(node.names) > 1:
            yield ReleaseRequirement(f"{node.kind}() with two variables", TWO_VARIABLES)
        elif node.kind == "sortBy":
            yield ReleaseRequirement("sortBy()", LIST_EXTENSIONS)
    elif isinstance(node, Select) and _is_variable(checked, node.operand):
        field = checked.environment.fields.get(node.field)
        if field is not None:
            yield ReleaseRequirement(f"{checked.environment.variable}.{node.field}", field.since)


def _minor(release: str) -> int:
    return int(release.partition(".")[2])


def _is_variable(checked: Checked, node: Node) -> bool:
    return (
        isinstance(node, Identifier) and node in checked.variables and checked.variables[node].slot == SUBJECT
    )
