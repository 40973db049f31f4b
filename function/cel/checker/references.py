"""List what a selector reads of its subject: for lint, for messages, and to tell two subjects apart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

    from function.cel.checker.environment import Environment
    from function.cel.subject import ReadPath, Subject


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


def references(environment: Environment, read: Iterable[ReadPath]) -> frozenset[Reference]:
    """Return the references that paths are. Reading the whole subject reads every field."""
    made: set[Reference] = set()
    for path in read:
        fields = [(path[0], path[1:])] if path else [(field, ()) for field in environment.fields]
        made.update(_reference(environment, field, keys) for field, keys in fields)
    return frozenset(made)


def _reference(environment: Environment, field: str, keys: tuple[str, ...]) -> Reference:
    declared = environment.fields[field]
    if declared.depth > 1:
        domain, name = (*keys, None, None)[:2]
        return Reference(declared.kind, domain, name)
    return Reference(declared.kind, None, keys[0] if keys else None)


_FIELDS = {"attribute": "attributes", "label": "labels"}


def published(subject: Subject, reference: Reference) -> str | None:
    """Return what the subject publishes under a reference, as text; None if it publishes nothing there."""
    names = (name for name in (reference.domain, reference.id) if name is not None)
    content = subject.content.get((_FIELDS.get(reference.kind, reference.kind), *names))
    if isinstance(content, tuple):
        _, content = content
    if isinstance(content, tuple):
        return f"[{', '.join(map(_shown, content))}]"
    return None if content is None else _shown(content)


def _shown(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


class Projection:
    """What of a subject decides the outcome. Subjects with equal projections have equal outcomes."""

    __slots__ = ("_exact", "_partial", "_whole")

    def __init__(self, environment: Environment, read: frozenset[ReadPath]) -> None:
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
