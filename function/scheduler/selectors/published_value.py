"""Explain a failing selector: what a subject publishes where its first failing term reads.

`memory 40Gi`, and `at least 80Gi`. A term that reads no name of its own (`"x" in device.attributes`) has
nothing to show: it is what is asked for, as it stands.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from function.api.reasons import Gap

if TYPE_CHECKING:
    from collections.abc import Iterator

    from function.cel import Comparison, Reference, Selector, Subject
    from function.cel.selector import Conjunct

MAX_WANTED = 60
"""Characters of a term that is shown as it stands."""

_DOMAIN = re.compile(r'\bdevice\.(?:attributes|capacity)\[(?:"[^"]*"|\'[^\']*\')\]\.(?=\w)')
_MAPS = {"attribute", "capacity", "label"}
_FIELDS = {"attribute": "attributes", "label": "labels"}
_PHRASES = {
    "==": "{}",
    "!=": "other than {}",
    ">=": "at least {}",
    ">": "more than {}",
    "<=": "at most {}",
    "<": "less than {}",
}


def gap(selector: Selector, subject: Subject) -> Gap:
    """The gap at the first failing term; empty when no term fails."""
    for term, compared in _terms(selector):
        if term.evaluate(subject).kind != "match":
            read = (name for name in term.named if name.id or name.kind not in _MAPS)
            has = ", ".join(_published(subject, reference) for reference in read)
            return Gap(has, _PHRASES[compared.operator].format(compared.literal) if compared else _cut(term))
    return Gap()


def _terms(selector: Selector) -> Iterator[tuple[Conjunct, Comparison | None]]:
    """Every term of a selector with the comparison it is, if it is one: the one that stands inside of it."""
    end = 0
    comparisons = selector.comparisons()
    for term in selector.conjuncts():
        start = selector.source.index(term.source, end)
        end = start + len(term.source)
        inside = (compared for compared in comparisons if start <= compared.start < end)
        yield term, next(inside, None)


def _cut(term: Conjunct) -> str:
    """A term on one line, without the domains of what it reads, and cut where it is long."""
    text = _DOMAIN.sub("", " ".join(term.source.split()))
    return text if len(text) <= MAX_WANTED else f"{text[: MAX_WANTED - 1]}…"


def _published(subject: Subject, reference: Reference) -> str:
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
    for key, content in subject.content.items():
        if key[: len(path)] == path:
            yield key[-1], _text(content)


def _text(content: object) -> str:
    """A value as it was published: an attribute is kept with its kind."""
    value = content[1] if isinstance(content, tuple) else content
    if isinstance(value, tuple):
        return f"[{', '.join(_text(item) for item in value)}]"
    return str(value).lower() if isinstance(value, bool) else str(value)
