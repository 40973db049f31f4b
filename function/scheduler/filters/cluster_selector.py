"""clusterSelector: labels by equality and expression, and CEL over the cluster. All of it must match."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from function.api.reasons import DeferredGap, Reason, Rejection
from function.cel import bind_cluster

if TYPE_CHECKING:
    from function.api import InferenceCluster
    from function.api.cluster_selector import ClusterSelector, LabelRequirement
    from function.scheduler.scheduling_input import SchedulingInput
    from function.scheduler.selectors.evaluations import Evaluations


class ClusterSelectorFilter:
    """Rejects clusters that the deployment's clusterSelector does not match."""

    def __init__(self, selector: ClusterSelector, evaluations: Evaluations) -> None:
        """Take the selector, and what evaluates its CEL."""
        self._selector, self._evaluations = selector, evaluations

    @classmethod
    def of(cls, inputs: SchedulingInput) -> ClusterSelectorFilter | None:
        """Build it where something is selected; unset matches every cluster."""
        selector = inputs.deployment.template.cluster_selector
        if not (selector.match_labels or selector.match_expressions or selector.cel):
            return None
        return cls(selector, inputs.evaluations)

    def reject(self, cluster: InferenceCluster) -> Rejection | None:
        """Reject a cluster whose labels or attributes do not match."""
        labels = cluster.labels
        for key, value in sorted(self._selector.match_labels.items()):
            if labels.get(key) != value:
                return _mismatch(f"{key}={value}", labels, key)
        for expression in self._selector.match_expressions:
            if not expression.matches(labels):
                return _mismatch(_written(expression), labels, expression.key)
        return self._reject_by_cel(cluster)

    def _reject_by_cel(self, cluster: InferenceCluster) -> Rejection | None:
        if not self._selector.cel:
            return None
        subject = bind_cluster(name=cluster.name, labels=cluster.labels, attributes=cluster.attributes)
        for index, expression in enumerate(self._selector.expressions):
            program = self._evaluations.program(expression)
            outcome = self._evaluations.outcome(program, subject)
            if outcome.kind == "nomatch":
                gap = DeferredGap(partial(self._evaluations.gap, program, subject))
                return Rejection(Reason.ClusterSelectorMismatch, gap=gap, selector=index)
            if outcome.kind != "match":
                return Rejection(Reason.ClusterSelectorError, detail=outcome.message, selector=index)
        return None


def _mismatch(wanted: str, labels: dict[str, str], key: str) -> Rejection:
    has = f"has {key}={labels[key]}" if key in labels else f"has no {key}"
    return Rejection(Reason.ClusterSelectorMismatch, detail=f"wants {wanted}, {has}")


def _written(requirement: LabelRequirement) -> str:
    if requirement.operator == "Exists":
        return requirement.key
    if requirement.operator == "DoesNotExist":
        return f"!{requirement.key}"
    word = "in" if requirement.operator == "In" else "notin"
    return f"{requirement.key} {word} ({', '.join(requirement.values)})"
