"""The actual values where a selector's first failing term reads: `memory 80Gi`.

A term that reads no name of its own (`"x" in device.attributes`) is told as it stands.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from function.cel import Reference, Selector, Subject

_MAPS = {"attribute", "capacity", "label"}
_FIELDS = {"attribute": "attributes", "label": "labels"}


def actual(selector: Selector, subject: Subject) -> str:
    """What the subject publishes where the first failing term reads; empty when it reads nothing."""
    for term in selector.conjuncts():
        if term.evaluate(subject).kind != "match":
            told = [_told(subject, each) for each in term.named if each.id or each.kind not in _MAPS]
            return ", ".join(told) or f"{term.source} is false"
    return ""


def _told(subject: Subject, reference: Reference) -> str:
    """`memory 80Gi`, or `no memory`; every value where the name is not written out."""
    path = tuple(part for part in _path(reference) if part is not None)
    values = sorted(_under(subject, path))
    return ", ".join(f"{name} {value}" for name, value in values) or f"no {reference.id or reference}"


def _path(reference: Reference) -> tuple[str | None, ...]:
    return (_FIELDS.get(reference.kind, reference.kind), reference.domain, reference.id)


def _under(subject: Subject, path: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    if path in subject.content:
        yield path[-1], _text(subject.content[path])
        return
    for found, content in subject.content.items():
        if found[: len(path)] == path:
            yield found[-1], _text(content)


def _text(content: object) -> str:
    """A value as it was published: an attribute is kept with its kind."""
    value = content[1] if isinstance(content, tuple) else content
    if isinstance(value, tuple):
        return f"[{', '.join(_text(each) for each in value)}]"
    return str(value).lower() if isinstance(value, bool) else str(value)
