"""What a selector reads of its subject: for lint, for messages, for telling two subjects alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from function.cel.scope import SUBJECT
from function.cel.syntax.nodes import Call, Literal, Name, Node, Select, children

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

    from function.cel.check import Checked
    from function.cel.environment import Environment
    from function.cel.subject import Path, Subject


@dataclass(frozen=True, slots=True, order=True)
class Reference:
    """Something a selector reads by a name that is written out.

    `kind` is driver, attribute, capacity, label, name, className or allowMultipleAllocations. For a device's
    attribute or capacity, `id` None means every one of the domain and `domain` None every one there is.
    """

    kind: str
    domain: str | None = None
    id: str | None = None

    def __str__(self) -> str:
        return "/".join(part for part in (self.domain, self.id) if part is not None) or self.kind


def paths(checked: Checked, root: Node) -> frozenset[Path]:
    """Return the longest literal paths that an expression reads; () is the whole subject."""
    found: set[Path] = set()
    todo: list[Node] = [root]
    while todo:
        path, rest = _path(checked, todo.pop())
        if path is not None:
            found.add(path)
        todo += rest
    return frozenset(found)


def _path(checked: Checked, node: Node) -> tuple[Path | None, list[Node]]:
    """Return the path that a node reads, if it is one, and the nodes still to look at."""
    keys: list[str | None] = []
    rest: list[Node] = []
    current = node
    while not isinstance(current, Name):
        step = _step(current)
        if step is None:
            return None, children(node)
        current, key, others = step
        keys.append(key)
        rest += others
    variable = checked.variables.get(current)
    if variable is None or variable.slot != SUBJECT:
        return None, children(node)
    known: list[str] = []
    for key in reversed(keys):
        if key is None:
            break
        known.append(key)
    return tuple(known[: checked.environment.fields[known[0]].depth + 1]) if known else (), rest


def _step(node: Node) -> tuple[Node, str | None, list[Node]] | None:
    """Return the operand of a selection or index, its key if it is written out, and what else it computes."""
    if isinstance(node, Select):
        return node.operand, node.field, []
    if isinstance(node, Call) and node.target is None and node.function in ("_[_]", "_[?_]", "_?._"):
        operand, key = node.args
        if isinstance(key, Literal) and isinstance(key.value, str):
            return operand, key.value, []
        return operand, None, [key]
    return None


def references(environment: Environment, found: Iterable[Path]) -> frozenset[Reference]:
    """Return the references that paths are. Reading the whole subject reads every field."""
    made: set[Reference] = set()
    for path in found:
        fields = [(path[0], path[1:])] if path else [(field, ()) for field in environment.fields]
        made.update(_reference(environment, field, keys) for field, keys in fields)
    return frozenset(made)


def _reference(environment: Environment, field: str, keys: tuple[str, ...]) -> Reference:
    known = environment.fields[field]
    if known.depth > 1:
        domain, name = (*keys, None, None)[:2]
        return Reference(known.kind, domain, name)
    return Reference(known.kind, None, keys[0] if keys else None)


_FIELDS = {"attribute": "attributes", "label": "labels"}


def published(subject: Subject, reference: Reference) -> str | None:
    """Return what the subject publishes under a reference, as text; None if it publishes nothing there."""
    names = (name for name in (reference.domain, reference.id) if name is not None)
    found = subject.content.get((_FIELDS.get(reference.kind, reference.kind), *names))
    if isinstance(found, tuple):
        _, found = found
    if isinstance(found, tuple):
        return f"[{', '.join(map(_shown, found))}]"
    return None if found is None else _shown(found)


def _shown(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


class Projection:
    """What of a subject decides the outcome. Subjects with equal projections have equal outcomes."""

    __slots__ = ("_exact", "_partial", "_whole")

    def __init__(self, environment: Environment, found: frozenset[Path]) -> None:
        full = {path for path in found if path and len(path) == environment.fields[path[0]].depth + 1}
        self._exact = tuple(sorted(full))
        self._partial = tuple(sorted(found - full))
        self._whole = () in found

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
