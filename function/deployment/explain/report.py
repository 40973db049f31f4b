"""The report: the whole decision as plain data, for status.placement and for `-o json`.

Sorted and bounded, without a clock: the same decision on the same input is the same report.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from function.deployment.explain.clusters import OTHERS, Survey, entries
from function.deployment.explain.digest import decision_digest, input_digest
from function.deployment.explain.hints import hints
from function.deployment.explain.lint import lint
from function.deployment.explain.message import around, placed_of
from function.deployment.explain.replicas import leaving, standing

if TYPE_CHECKING:
    from function.boundary import JsonObject
    from function.deployment.explain.replicas import ReplicaRow
    from function.scheduler.decision import Decision


LIMIT = 64 * 1024
"""Bytes of a report in a status."""
SUMMARY_RESERVE = 200
"""Bytes kept for what the summary adds when lists are cut."""


def report(
    decision: Decision, summary: str = "", *, others: int = OTHERS, limit: int | None = LIMIT
) -> JsonObject:
    """Everything about a decision. `others` and `limit` (None: no limit) bound what is listed."""
    survey = Survey.of(decision)
    placement: JsonObject = {
        "summary": summary or summary_of(decision),
        "replicas": replicas(decision),
        "dropped": dropped(decision),
        "hints": [hint.plain for hint in hints(decision, survey.rejections)],
        "lint": [finding.plain for finding in lint(decision.inputs)],
        "inputDigest": input_digest(decision.inputs),
        "decisionDigest": decision_digest(decision),
    }
    for size, pools in ((others, True), (others, False), (0, False)):
        names = survey.shown(size)
        placement["clusters"] = entries(survey, names, pools=pools)
        placement["clustersOmitted"] = len(survey.names()) - len(names)
        if limit is None or size_of(placement) <= limit:
            return dict(sorted(placement.items()))
    _cut(placement, limit or LIMIT)
    return dict(sorted(placement.items()))


def summary_of(decision: Decision) -> str:
    """The decision in one line."""
    return around(placed_of(decision), decision) if decision.rejections else placed_of(decision)


def size_of(placement: JsonObject) -> int:
    """Bytes of a report as JSON."""
    return len(json.dumps(placement).encode())


def _cut(placement: JsonObject, limit: int) -> None:
    """Leave out the last entries of the longest list until the report fits; the summary says how many."""
    left_out = dict.fromkeys(("clusters", "replicas", "dropped"), 0)
    summary, target = placement["summary"], limit - SUMMARY_RESERVE
    while size_of(placement) > target:
        longest = max(left_out, key=lambda key: len(json.dumps(placement[key])))
        tenth = max(1, len(placement[longest]) // 10)
        left_out[longest] += tenth
        placement[longest] = placement[longest][:-tenth]
    placement["clustersOmitted"] += left_out.pop("clusters")
    omitted = ", ".join(f"{count} {name}" for name, count in left_out.items() if count)
    placement["summary"] = f"{summary} (not listed: {omitted})" if omitted else summary


def replicas(decision: Decision) -> list[JsonObject]:
    """Every replica that is placed, by cluster and index: what was done with it, its pools, and why."""
    return [_standing(row) for row in standing(decision)]


def _standing(row: ReplicaRow) -> JsonObject:
    entry: JsonObject = {"name": row.name, "cluster": row.cluster}
    if row.index is not None:
        entry["index"] = row.index
    pools = {engine: "+".join(names) for engine, names in row.pools.items()}
    entry |= {"action": row.action, "pools": pools, "because": row.phrase}
    return entry | ({"runnerUp": row.runner_up} if row.runner_up else {})


def dropped(decision: Decision) -> list[JsonObject]:
    """Every replica that leaves, with the reason on record."""
    entries = [
        {"name": row.name, "cluster": row.cluster, "reason": row.cause, "message": row.phrase}
        for row in leaving(decision)
    ]
    return sorted(entries, key=lambda entry: (entry["cluster"], entry["name"]))
