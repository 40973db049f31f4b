"""Relax: a selector that differs in one literal, or in one name, and matches a device that is there."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from function.cel import CompileError, compile_device

if TYPE_CHECKING:
    from function.cel import Comparison, Selector, Subject
    from function.deployment.explain.catalogue import Catalogue

_FIELDS = {"attribute": "attributes", "capacity": "capacity"}
_SIZED = frozenset({"quantity", "semver", "int", "uint", "double"})


class Relaxed(NamedTuple):
    """A selector as it stands and as it would match."""

    another: bool
    """Whether it asks for another thing (a name), not for less of the same (a number)."""
    old: str
    new: str


def relaxed(selector: Selector, subject: Subject) -> Relaxed | None:
    """The selector with the literal of one comparison replaced by the value the subject has."""
    for each in selector.comparisons():
        value = _published(subject, each)
        new = each.relaxed(value) if value else ""
        if new and _matches(new, subject):
            return Relaxed(each.kind not in _SIZED, selector.source, new)
    return None


def respelt(selector: Selector, subject: Subject, catalogue: Catalogue) -> Relaxed | None:
    """The selector with one name that nobody publishes replaced by the nearest that somebody does."""
    for read in sorted(selector.reads, key=str):
        instead = catalogue.alike(read)
        new = selector.source.replace(read.id or "", instead) if instead else ""
        if new and _matches(new, subject):
            return Relaxed(another=False, old=selector.source, new=new)
    return None


def _published(subject: Subject, comparison: Comparison) -> str:
    """The value the subject has where a comparison reads; empty when there is none, or none of that type."""
    read = comparison.reference
    content = subject.content.get((_FIELDS.get(read.kind, ""), read.domain or "", read.id or ""))
    value = content[1] if isinstance(content, tuple) else content
    if isinstance(value, bool) or not isinstance(value, str | int):
        return ""
    return str(value)


def _matches(source: str, subject: Subject) -> bool:
    try:
        return compile_device(source).evaluate(subject).matched
    except CompileError:
        return False
