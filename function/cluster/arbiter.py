"""The arbiter: a cluster says which of its replicas give way to those of a higher class that preempt.

A cluster sees every replica on it, so it can say it where no deployment can. It names as few as its
overcommitted pools need (`scheduler.preemption`, which their deployments compute too), one of a deployment
at a time: what that can spare is judged anew after each.

Law 2, reason 8: a name here removes nothing by itself. The deployment of the one that is named lets it go,
within its own budgets, and only where it sees the same.
"""

from __future__ import annotations

from function.boundary import JsonObject
from function.scheduler.ledger import Ledger
from function.scheduler.preemption import arbitrate

GIVES_WAY = "givesWay"
MOST = 100
"""Replicas that are named at a time, the cheapest."""


def gives_way(ledger: Ledger, cluster: str) -> list[JsonObject]:
    """Return the replicas that give way on a cluster, the lowest class first, then the youngest."""
    named: dict[str, JsonObject] = {}
    for victim, to in arbitrate(ledger, {cluster}).victims:
        returns = to.share is not None and to.share.reclaims
        named.setdefault(
            victim.holder,
            {
                "replica": f"{victim.namespace}/{victim.name}",
                "uid": victim.uid,
                "to": to.holder,
                "priorityClassName": to.notes.class_name if to.notes else "",
                **({"quota": ",".join(sorted(to.share.quotas))} if returns and to.share else {}),
            },
        )
    return [*named.values()][:MOST]
