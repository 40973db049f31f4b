"""Every way in which the service handler answers otherwise than v0.3: rows of docs/compatibility.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.deviation import Deviation

if TYPE_CHECKING:
    from tests.chain.difference import Difference
    from tests.chain.pair import Pair


def _unready(pair: Pair, difference: Difference) -> bool:
    return difference.what == "readiness" and difference.ours is True and not pair.ours.desired


def _conditions(pair: Pair, difference: Difference) -> bool:
    routeless = not pair.theirs.desired and difference.theirs is None
    return (difference.what, difference.key) == ("condition", "RoutingReady") and routeless


def _own_namespace(pair: Pair, difference: Difference) -> bool:
    ours = pair.request.observed.composite.resource["metadata"]["namespace"]
    is_scope = difference.path.startswith(".endpoints-") and difference.path.endswith(".namespace")
    return difference.what == "requirement" and is_scope and difference.ours == ours


DEVIATIONS: tuple[Deviation[Pair, Difference], ...] = (
    Deviation("NoRouteIsNotReady", "a service without a route is not ready", _unready),
    Deviation("OwnNamespace", "endpoints of the service's own namespace are required", _own_namespace),
    Deviation("ServiceConditions", "both conditions are returned on every path", _conditions),
)
