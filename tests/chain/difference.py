"""Where two answers differ, field by field: a difference has a path, so that a deviation can be narrow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.drive import Answer

MISSING = "(missing)"


@dataclass(frozen=True)
class Difference:
    """One difference. `what` is desired, ready, condition, status, readiness or requirement."""

    what: str
    key: str
    path: str
    ours: Any
    theirs: Any

    def __str__(self) -> str:
        """Return the difference on one line."""
        return f"{self.what} {self.key}{self.path}: ours {self.ours!r:.120}, theirs {self.theirs!r:.120}"


def differences(ours: Answer, theirs: Answer) -> Iterator[Difference]:
    """Yield every difference between our answer and the recorded one. Wording is not compared."""
    for key in sorted(ours.desired.keys() | theirs.desired.keys()):
        mine, other = ours.desired.get(key, MISSING), theirs.desired.get(key, MISSING)
        for path, left, right in fields(mine, other):
            yield Difference("desired", key, path, left, right)
        if (key in ours.ready) != (key in theirs.ready):
            yield Difference("ready", key, "", key in ours.ready, key in theirs.ready)
    for kind in sorted(ours.conditions.keys() | theirs.conditions.keys()):
        mine, other = ours.conditions.get(kind), theirs.conditions.get(kind)
        if (mine and mine[:2]) != (other and other[:2]):
            yield Difference("condition", kind, "", mine and mine[:2], other and other[:2])
    for path, left, right in fields(ours.status, theirs.status):
        yield Difference("status", "", path, left, right)
    if ours.unready != theirs.unready:
        yield Difference("readiness", "", "", ours.unready, theirs.unready)
    mine, other = (
        {requirement["name"]: requirement for requirement in answer.requirements} for answer in (ours, theirs)
    )
    for path, left, right in fields(mine, other):
        yield Difference("requirement", "", path, left, right)


def fields(ours: Any, theirs: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Yield path and values of every field that differs."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for key in sorted(ours.keys() | theirs.keys()):
            yield from fields(ours.get(key, MISSING), theirs.get(key, MISSING), f"{path}.{key}")
    elif isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        for index, (left, right) in enumerate(zip(ours, theirs, strict=True)):
            yield from fields(left, right, f"{path}[{index}]")
    elif ours != theirs:
        yield path, ours, theirs
