"""Keep the observed report unless something changed that a person would notice.

Every write of a composite's status is an event on it: it costs two tokens of the composite's circuit breaker,
and another reconcile. The report tells of the whole fleet, so it would change whenever any other deployment
moves, in the free nodes of clusters that this one has nothing to do with, and in its digests. So the report
that the composite has stays, word for word, as long as it says the same about this deployment. It is read out
of the request like everything else: the same request still gets the same answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from function.api.reasons import Reason

if TYPE_CHECKING:
    from collections.abc import Mapping

    from function.boundary import JsonObject


DIGESTS = frozenset({"inputDigest", "decisionDigest"})
"""They change with anything at all."""
_FULL = frozenset({None, *(reason.name for reason in Reason if reason.capacity)})
REPORT_PARTS = ("summary", "replicas", "dropped", "hints", "lint")
"""What is said of the deployment itself. Where it lacks nothing, it is all that matters."""


def steady(report: JsonObject, composite: Mapping[str, Any], *, at_rest: bool) -> JsonObject:
    """Return the report that the composite has, if it tells the same; else the new one.

    Of a deployment that is `at_rest` (nothing is missing, held or under way) the report tells the same while
    its own part is equal, and what is said of the clusters it runs on. Of any other it does while nothing but
    the digests differs: who waits for a node wants to know what is free now.
    """
    before = _observed(composite)
    if before is None or before.keys() != report.keys():
        return report
    tells = _own_part if at_rest else _all_of_it
    return before if tells(before) == tells(report) else report


def _observed(composite: Mapping[str, Any]) -> JsonObject | None:
    status = composite.get("status")
    placement = status.get("placement") if isinstance(status, dict) else None
    return placement if isinstance(placement, dict) else None


def _all_of_it(report: JsonObject) -> object:
    return {key: value for key, value in report.items() if key not in DIGESTS}


def _own_part(report: JsonObject) -> object:
    """What is said of the deployment, and what is wrong with the clusters of its replicas, fullness aside."""
    hosts = {replica.get("cluster") for replica in _objects(report["replicas"])}
    wrong = [
        (cluster.get("name"), cluster.get("reason"))
        for cluster in _objects(report["clusters"])
        if cluster.get("name") in hosts and cluster.get("reason") not in _FULL
    ]
    return [report[key] for key in REPORT_PARTS], wrong


def _objects(listed: object) -> list[JsonObject]:
    return [item for item in (listed if isinstance(listed, list) else []) if isinstance(item, dict)]
