"""What one pass is asked: the deployment, its policy and selectors, and the fleet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from function.api.placement import PlacementPolicy
from function.peers import Peers
from function.scheduler.selectors import Selectors, compile_selectors

if TYPE_CHECKING:
    from function.api import ModelDeployment, SchedulerConfig
    from function.fleet import Fleet

NOBODY = Peers()


@dataclass(frozen=True, slots=True)
class Question:
    """Everything a decision depends on."""

    deployment: ModelDeployment
    policy: PlacementPolicy
    selectors: Selectors
    config: SchedulerConfig
    fleet: Fleet
    config_fault: str = ""
    """What is wrong with the function's input; then the defaults apply and nothing new is placed."""
    peers: Peers = NOBODY
    """The deployments that place before this one, where placing is coordinated."""

    @property
    def reads_nodes(self) -> bool:
        """Whether some selector reads the pool itself, so that its name and attributes decide a match."""
        return bool(self.selectors.node)


def ask(
    deployment: ModelDeployment,
    fleet: Fleet,
    config: SchedulerConfig,
    config_fault: str = "",
    peers: Peers = NOBODY,
) -> Question:
    """Put the question together; selectors are compiled here."""
    policy = (deployment.spec.placement or PlacementPolicy()).over(config.defaults.placement)
    selectors = compile_selectors(deployment, policy)
    return Question(deployment, policy, selectors, config, fleet, config_fault, peers)
