"""The input of one pass: the deployment, its policy and selectors, and the fleet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from function.api.placement import PlacementPolicy
from function.scheduler.fleet import Peers
from function.scheduler.selectors.compiled import (
    OF_DEPLOYMENT,
    OF_INPUT,
    HeldPrograms,
    Selectors,
    check_selectors,
)
from function.scheduler.selectors.evaluations import Evaluations
from function.scheduler.serving import Serving

if TYPE_CHECKING:
    from function.api import ModelDeployment, SchedulerConfig
    from function.scheduler.fleet import Fleet

NO_PEERS = Peers()
NO_ROLLOUT = Serving(by_template=False)


@dataclass(frozen=True, slots=True)
class SchedulingInput:
    """Everything a decision depends on."""

    deployment: ModelDeployment
    policy: PlacementPolicy
    selectors: Selectors
    config: SchedulerConfig
    fleet: Fleet
    evaluations: Evaluations
    """What selectors say in this pass."""
    config_fault: str = ""
    """That the function's input is invalid, and how; then the defaults apply and nothing new is placed."""
    peers: Peers = NO_PEERS
    """The deployments that place before this one, where placing is coordinated."""
    serving: Serving = NO_ROLLOUT
    """Which of the own replicas count as in service."""


def scheduling_input(
    deployment: ModelDeployment,
    fleet: Fleet,
    config: SchedulerConfig,
    config_fault: str = "",
    peers: Peers = NO_PEERS,
) -> SchedulingInput:
    """Put the input of one pass together; selectors are gone through here."""
    stated = deployment.spec.placement or PlacementPolicy()
    policy = stated.over(config.defaults.placement)
    origin = OF_DEPLOYMENT if "preferences" in stated.model_fields_set else OF_INPUT
    selectors = check_selectors(deployment, policy.preferences or (), config.cel_version, origin)
    deployment.cache_of(HeldPrograms).programs = selectors.programs
    evaluations = Evaluations(config.cel_version)
    surges = policy.disruption is not None and policy.disruption.max_surge > 0
    serving = Serving(by_template=policy.rollout is not None or surges)
    return SchedulingInput(
        deployment, policy, selectors, config, fleet, evaluations, config_fault, peers, serving
    )
