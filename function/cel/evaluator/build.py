"""What closures are generated from: a checked expression, and whether its quantities need copies."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from function.cel.checker.state import Checked
    from function.cel.library.declarations import Overload
    from function.cel.values import Value


class Build(NamedTuple):
    """One expression to generate."""

    checked: Checked
    forms: bool
    """Whether it can tell the forms of a quantity apart, so that every evaluation needs its own copies."""

    def owning(self, overload: Overload) -> Callable[..., Value]:
        """Return what runs an overload; where forms matter a parsed quantity is the evaluation's own."""
        run = overload.run
        if self.forms and overload.name == "quantity":
            return lambda text: run(text).copy()
        return run
