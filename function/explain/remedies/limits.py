"""Remedies for the deployment's own limits: move the one that stands in the way, by as little as it takes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from function.explain.change import Change, Plain, changed, edited
from function.scheduler.reason import Reason

if TYPE_CHECKING:
    from collections.abc import Iterator

    from function.explain.remedies.seen import Seen
    from function.scheduler.question import Question


def limits(seen: Seen) -> Iterator[Change]:
    """Raise the deployment's own limit by as little as it takes."""
    policy, least = seen.question.policy, seen.question.deployment.spec.min_replicas
    if seen.decision.withheld and least is not None:
        reach = seen.decision.total + seen.decision.withheld
        yield _limit("minReplicas", f"lower minReplicas from {least} to {reach}", ("minReplicas",), reach)
    if policy.max_replicas_per_cluster and seen.headed(Reason.MaxReplicasPerCluster):
        new = policy.max_replicas_per_cluster + 1
        text = f"raise placement.maxReplicasPerCluster to {new}"
        yield _limit("maxReplicasPerCluster", text, ("placement", "maxReplicasPerCluster"), new)
    if seen.headed(Reason.SearchBudgetExceeded):
        steps = seen.question.config.search_budget * 10
        text = f"raise searchBudget in the function's input to {steps}"
        yield Change("RaiseLimit", text, lambda question: _budgeted(question, steps), {"searchBudget": steps})


def _budgeted(question: Question, steps: int) -> Question:
    return replace(question, config=changed(question.config, search_budget=steps))


def _limit(name: str, text: str, path: tuple[str, ...], value: int) -> Change:
    def edit(plain: Plain) -> None:
        at = plain["spec"]
        for key in path[:-1]:
            at = at.setdefault(key, {})
        at[path[-1]] = value

    return Change("RaiseLimit", text, lambda question: edited(question, edit), {name: value}, group=name)
