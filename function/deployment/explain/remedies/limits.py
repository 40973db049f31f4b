"""Remedies for the deployment's own limits: move the one that stands in the way, by as little as it takes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from function.api.reasons import Reason
from function.deployment.explain.change import Effort, InputChange, changed, edited

if TYPE_CHECKING:
    from collections.abc import Iterator

    from function.api.placement import TopologySpread
    from function.boundary import JsonObject
    from function.deployment.explain.remedies.context import ProposalContext
    from function.scheduler.scheduling_input import SchedulingInput


def limits(context: ProposalContext) -> Iterator[InputChange]:
    """Raise the deployment's own limit by as little as it takes."""
    policy, least = context.inputs.policy, context.inputs.deployment.spec.min_replicas
    if context.decision.withheld and least is not None:
        reach = context.decision.total + context.decision.withheld
        yield _limit("minReplicas", f"lower minReplicas from {least} to {reach}", ("minReplicas",), reach)
    if policy.max_replicas_per_cluster and context.headed(Reason.MaxReplicasPerCluster):
        new = policy.max_replicas_per_cluster + 1
        text = f"raise placement.maxReplicasPerCluster to {new}"
        yield _limit("maxReplicasPerCluster", text, ("placement", "maxReplicasPerCluster"), new)
    yield from _skews(context)
    if context.headed(Reason.SearchBudgetExceeded):
        steps = context.inputs.config.search_budget * 10
        text = f"raise searchBudget in the function's input to {steps}"
        yield InputChange(
            "RaiseLimit",
            Effort.ALTERNATIVE,
            text,
            lambda inputs: _budgeted(inputs, steps),
            {"searchBudget": steps},
        )


def _skews(context: ProposalContext) -> Iterator[InputChange]:
    """Allow as much more skew as the nearest of the clusters needs that are too far ahead."""
    needed = {rejection.needs for _, rejection in context.headed(Reason.TopologySpread) if rejection.needs}
    stated = context.inputs.policy.topology_spread or ()
    for at, constraint in enumerate(stated):
        more = [skew for skew in sorted(needed) if skew > constraint.max_skew]
        if constraint.when_unsatisfiable == "DoNotSchedule" and more:
            yield _skewed(stated, at, more[0])


def _skewed(stated: tuple[TopologySpread, ...], at: int, skew: int) -> InputChange:
    key, old = stated[at].topology_key, stated[at].max_skew
    raised = (*stated[:at], changed(stated[at], max_skew=skew), *stated[at + 1 :])
    spread = [constraint.model_dump(mode="json", by_alias=True, exclude_none=True) for constraint in raised]

    def edit(plain: JsonObject) -> None:
        plain["spec"].setdefault("placement", {})["topologySpread"] = spread

    text = f"raise maxSkew of the topologySpread over {key} from {old} to {skew}"
    facts = {"topologyKey": key, "from": old, "maxSkew": skew}
    return InputChange(
        "RaiseLimit",
        Effort.ALTERNATIVE,
        text,
        lambda inputs: edited(inputs, edit),
        facts,
        group=f"skew {key}",
    )


def _budgeted(inputs: SchedulingInput, steps: int) -> SchedulingInput:
    return replace(inputs, config=changed(inputs.config, search_budget=steps))


def _limit(name: str, text: str, path: tuple[str, ...], value: int) -> InputChange:
    def edit(plain: JsonObject) -> None:
        at = plain["spec"]
        for key in path[:-1]:
            at = at.setdefault(key, {})
        at[path[-1]] = value

    return InputChange(
        "RaiseLimit", Effort.ALTERNATIVE, text, lambda inputs: edited(inputs, edit), {name: value}, group=name
    )
