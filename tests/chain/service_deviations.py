"""Every way in which the service handler answers otherwise than v0.3: rows of docs/compatibility.md."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.chain.difference import Difference
    from tests.chain.pair import Pair


class Deviation(Enum):
    """The deviations that recorded answers can show, named as in docs/compatibility.md."""

    NoRouteIsNotReady = "a service without a route is not ready"
    ServiceConditions = "both conditions are returned on every path"


def explanations(pair: Pair, difference: Difference) -> list[Deviation]:
    """Return the deviations that explain a difference, none when it is unexplained."""
    return [deviation for deviation in Deviation if _EXPLAINS[deviation](pair, difference)]


def _unready(pair: Pair, difference: Difference) -> bool:
    return difference.what == "readiness" and difference.ours is True and not pair.ours.desired


def _conditions(pair: Pair, difference: Difference) -> bool:
    routeless = not pair.theirs.desired and difference.theirs is None
    return (difference.what, difference.key) == ("condition", "RoutingReady") and routeless


_EXPLAINS: dict[Deviation, Callable[[Pair, Difference], bool]] = {
    Deviation.NoRouteIsNotReady: _unready,
    Deviation.ServiceConditions: _conditions,
}
