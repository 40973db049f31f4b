"""Retain: every existing replica keeps its cluster, index and pools unless Law 2 lists a reason not to.

Doubt never removes a running replica. Everything that can make one leave in this step is in `_leaves`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from function.api.taints import untolerated
from function.scheduler.decision import Cause, Dropped, Kept
from function.scheduler.disruption import leaving_now
from function.scheduler.mismatch import examine
from function.scheduler.overcommit import overcommitted_pools, yielding

if TYPE_CHECKING:
    from function.own import Own
    from function.scheduler.fit import Fits
    from function.scheduler.ledger import Ledger
    from function.scheduler.question import Question


@dataclass(frozen=True, slots=True)
class Retained:
    """Who stays and who leaves before anything is scaled or placed."""

    kept: tuple[Kept, ...]
    dropped: tuple[Dropped, ...]


def _drained(question: Question, own: Own) -> str:
    """The NoExecute taint that drains the replica's cluster; empty when there is none."""
    cluster = question.fleet.clusters.get(own.cluster)
    taints = cluster.spec.taints if cluster else ()
    left = untolerated(taints, question.deployment.template.tolerations)
    return next((str(taint) for taint in left if taint.effect == "NoExecute"), "")


def _leaves(question: Question, own: Own) -> Dropped | None:
    """The reason, of those that need no replacement, for which a replica leaves."""
    if own.terminating:
        return Dropped(own, Cause.Terminating)
    if own.identity is None or not question.fleet.inputs_told or own.holds != own.cluster:
        return None
    if question.fleet.gone(own.cluster):
        return Dropped(own, Cause.ClusterGone, f"cluster {own.cluster}")
    taint = _drained(question, own)
    return Dropped(own, Cause.Drained, taint) if taint else None


def _stays(question: Question, fits: Fits, ledger: Ledger, own: Own) -> Kept:
    if own.identity is None:
        return Kept(own, doubt=f"the key {own.key} cannot be read")
    if not question.fleet.inputs_told:
        return Kept(own, doubt="required resources are not delivered yet")
    if not own.readable:
        return Kept(own, doubt="the replica cannot be read")
    if question.selectors.invalid:
        return Kept(own, doubt="a selector does not compile")
    return examine(question, fits, ledger, own, question.fleet.clusters.get(own.cluster))


def _yields(question: Question, ledger: Ledger) -> dict[str, Dropped]:
    """Own replicas that give way in an overcommitted pool, by key; nobody does unless asked to."""
    if question.config.overcommit != "Yield" or not question.fleet.inputs_told:
        return {}
    asked = yielding(ledger, overcommitted_pools(question.fleet.own, ledger))
    return {
        own.key: Dropped(own, Cause.Yielded, f"pool {pool.pool}")
        for replica, pool in asked
        for own in question.fleet.own
        if own.replica == replica and own.identity is not None
    }


def retain(question: Question, fits: Fits, ledger: Ledger) -> Retained:
    """Go through the existing replicas in the order of cluster and index."""
    yields = _yields(question, ledger)
    leaving = {own.key: _leaves(question, own) or yields.get(own.key) for own in question.fleet.own}
    drains = {key: each for key, each in leaving.items() if each and each.cause is Cause.Drained}
    staying = [own for own in question.fleet.own if leaving[own.key] is None or own.key in drains]
    now = leaving_now(question, staying, [each.own for each in drains.values()])
    kept: list[Kept] = []
    dropped: list[Dropped] = []
    for own in question.fleet.own:
        gone = leaving[own.key]
        if gone is None:
            kept.append(_stays(question, fits, ledger, own))
        elif own.key in drains and own.key not in now:
            kept.append(replace(_stays(question, fits, ledger, own), waits=f"drain ({gone.detail})"))
        else:
            dropped.append(gone)
    return Retained(tuple(kept), tuple(dropped))
