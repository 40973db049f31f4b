"""Events of a cluster: a new problem, and a cluster that starts to run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from function.cluster.conditions import CLUSTER_READY, PROBLEMS
from function.transitions import transitions

if TYPE_CHECKING:
    from collections.abc import Mapping

    from function.boundary import Condition, Plain, Result

_MILESTONES = {(CLUSTER_READY, "ClusterRunning"): "The cluster is published"}


def results(conditions: tuple[Condition, ...], before: Mapping[str, Plain]) -> tuple[Result, ...]:
    """Return the events of this call. `before`: the composite's status."""
    return tuple(transitions(conditions, before, problems=PROBLEMS, milestones=_MILESTONES))
