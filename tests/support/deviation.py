"""A deviation: one way in which we answer otherwise than Modelplane v0.3 on purpose.

It says of one difference whether it explains it, and is as narrow as it can be: what no deviation explains is
a defect of one side, or a row that docs/compatibility.md lacks.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

Pair = TypeVar("Pair")
Difference = TypeVar("Difference")

PAGE = Path(__file__).parents[2] / "docs" / "compatibility.md"


@dataclass(frozen=True)
class Deviation(Generic[Pair, Difference]):
    """A deviation that recorded answers can show, named as in docs/compatibility.md."""

    name: str
    meaning: str
    explains: Callable[[Pair, Difference], bool]

    @property
    def documented(self) -> bool:
        """Whether it is a row of the page."""
        return f"| `{self.name}` |" in PAGE.read_text()


def explaining(
    deviations: Iterable[Deviation[Pair, Difference]], pair: Pair, difference: Difference
) -> list[Deviation[Pair, Difference]]:
    """Return the deviations that explain a difference, none where it is unexplained."""
    return [deviation for deviation in deviations if deviation.explains(pair, difference)]
