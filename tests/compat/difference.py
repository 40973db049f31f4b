"""Where two answers to one request differ: desired resources, conditions, status and readiness."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.compat.pair import Pair

Plain = dict[str, Any]


@dataclass(frozen=True)
class Difference:
    """One difference. `what` is desired, ready, condition, status, readiness, calls or requirement."""

    what: str
    key: str
    ours: Any
    theirs: Any

    def __str__(self) -> str:
        """Return the difference on one line."""
        return f"{self.what} {self.key}: ours {_brief(self.ours)}, theirs {_brief(self.theirs)}"


def _brief(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 160 else f"{text[:160]}..."


def differences(pair: Pair) -> Iterator[Difference]:
    """Yield every difference between our answer and the recorded one. Wording is not compared."""
    ours, theirs = pair.ours, pair.theirs
    for key in sorted(ours.desired.keys() | theirs.desired.keys()):
        mine, other = ours.desired.get(key), theirs.desired.get(key)
        if mine != other:
            yield Difference("desired", key, mine, other)
        elif (key in ours.ready) != (key in theirs.ready):
            yield Difference("ready", key, key in ours.ready, key in theirs.ready)
    for kind in sorted(ours.conditions.keys() | theirs.conditions.keys()):
        if _said(ours.conditions, kind) != _said(theirs.conditions, kind):
            yield Difference("condition", kind, _said(ours.conditions, kind), _said(theirs.conditions, kind))
    if ours.status != theirs.status:
        yield Difference("status", "", ours.status, theirs.status)
    if ours.unready != theirs.unready:
        yield Difference("readiness", "", ours.unready, theirs.unready)
    yield from _requirements(pair)


def _requirements(pair: Pair) -> Iterator[Difference]:
    """Yield whether requirements are stated at once, and how they differ where they are."""
    at_once, theirs = bool(pair.ours.requirements), pair.theirs.requirements
    if at_once != bool(theirs):
        yield Difference("calls", "", at_once, bool(theirs))
    stated = pair.later.requirements
    for name in sorted({entry["name"] for entry in (*stated, *theirs)}):
        mine, other = _requirement(stated, name), _requirement(theirs, name)
        if mine != other:
            yield Difference("requirement", name, mine, other)


def _said(conditions: Any, kind: str) -> tuple[bool, str] | None:
    """Return status and reason of a condition."""
    condition = conditions.get(kind)
    return None if condition is None else (condition[0], condition[1])


def _requirement(requirements: tuple[Plain, ...], name: str) -> Plain | None:
    return next((requirement for requirement in requirements if requirement["name"] == name), None)
