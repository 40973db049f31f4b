"""The report: the whole decision as plain data, for status.placement and for `-o json`.

Sorted and bounded, without a clock: the same decision on the same input is the same report.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from function.deployment.explain.clusters import OTHERS, Survey, entries
from function.deployment.explain.digest import decision_digest, input_digest
from function.deployment.explain.hints import hints
from function.deployment.explain.line import because_line, dropped_line, kept_line
from function.deployment.explain.lint import lint
from function.deployment.explain.message import around, placed_of

if TYPE_CHECKING:
    from function.scheduler.decision import Decision, Kept, Placed

Plain = dict[str, Any]

LIMIT = 64 * 1024
"""Bytes of a report in a status."""


def report(
    decision: Decision, summary: str = "", *, others: int = OTHERS, limit: int | None = LIMIT
) -> Plain:
    """Everything about a decision. `others` and `limit` (None: no limit) bound what is told."""
    survey = Survey.of(decision)
    found: Plain = {
        "summary": summary or summary_of(decision),
        "replicas": replicas(decision),
        "dropped": dropped(decision),
        "hints": [each.plain for each in hints(decision, survey.rejections)],
        "lint": [each.plain for each in lint(decision.inputs)],
        "inputDigest": input_digest(decision.inputs),
        "decisionDigest": decision_digest(decision),
    }
    for size, pools in ((others, True), (others, False), (0, False)):
        names = survey.shown(size)
        found["clusters"] = entries(survey, names, pools=pools)
        found["clustersOmitted"] = len(survey.names()) - len(names)
        if limit is None or size_of(found) <= limit:
            return dict(sorted(found.items()))
    _cut(found, limit or LIMIT)
    return dict(sorted(found.items()))


def summary_of(decision: Decision) -> str:
    """The decision in one line."""
    return around(placed_of(decision), decision) if decision.rejections else placed_of(decision)


def size_of(found: Plain) -> int:
    """Bytes of a report as JSON."""
    return len(json.dumps(found).encode())


def _cut(found: Plain, limit: int) -> None:
    """Leave out the last entries of the longest list until the report fits; the summary says how many."""
    left_out = dict.fromkeys(("clusters", "replicas", "dropped"), 0)
    stated, target = found["summary"], limit - 200
    while size_of(found) > target:
        longest = max(left_out, key=lambda key: len(json.dumps(found[key])))
        left_out[longest] += max(1, len(found[longest]) // 10)
        found[longest] = found[longest][: -max(1, len(found[longest]) // 10)]
    found["clustersOmitted"] += left_out.pop("clusters")
    told = ", ".join(f"{count} {name}" for name, count in left_out.items() if count)
    found["summary"] = f"{stated} (not listed: {told})" if told else stated


def replicas(decision: Decision) -> list[Plain]:
    """Every replica that is placed, by cluster and index: what was done with it, its pools, and why."""
    found = [*map(_kept, decision.kept), *map(_placed, decision.placed)]
    return sorted(found, key=lambda each: (each["cluster"], each.get("index", -1), each["name"]))


def _kept(kept: Kept) -> Plain:
    own = kept.own
    found: Plain = {"name": own.replica.name, "cluster": own.cluster}
    if own.identity:
        found["index"] = own.identity.index
    engines = ((each.name, [member.pool for member in each.members]) for each in own.replica.engines)
    return found | {
        "action": "Held" if kept.mismatch or kept.waits else "Retained",
        "pools": {name: joined(pools) for name, pools in engines},
        "because": kept_line(kept),
    }


def _placed(placed: Placed) -> Plain:
    candidate = placed.candidate
    found: Plain = {
        "name": placed.name,
        "cluster": placed.identity.cluster,
        "index": placed.identity.index,
        "action": "Replaced" if placed.replaces else "Placed",
        "pools": {
            engine.name: joined([candidate.pool(option, at) for at in range(len(engine.members))])
            for engine, option in candidate.engines
        },
        "because": because_line(placed),
    }
    return found | ({"runnerUp": placed.runner_up} if placed.runner_up else {})


def joined(pools: list[str]) -> str:
    """The pools of one engine: nearly always one."""
    return "+".join(dict.fromkeys(pools))


def dropped(decision: Decision) -> list[Plain]:
    """Every replica that leaves, with the reason on record."""
    found = [
        {
            "name": each.own.replica.name,
            "cluster": each.own.cluster,
            "reason": each.cause.name,
            "message": dropped_line(each),
        }
        for each in decision.dropped
    ]
    return sorted(found, key=lambda each: (each["cluster"], each["name"]))
