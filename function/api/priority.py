"""Priority: whose turn comes first where several deployments wait for a place.

A platform engineer names classes in the function's input, and a deployment names one of them in
`placement.priorityClassName`. A class that does not exist, or that is not for its namespace, counts as none,
which is the lowest value of all; a condition says so. It never makes anything of what runs uncertain.
"""

from __future__ import annotations

from typing import NamedTuple

from function.api.deployment import ModelDeployment
from function.api.inputs import SchedulerConfig
from function.api.ownership import turn

LOWEST = 0
"""The value of a deployment without a class. Those of classes are above."""


class Priority(NamedTuple):
    """The priority of one deployment."""

    name: str = ""
    """The class that it names; empty where it names none."""
    value: int = LOWEST
    exists: bool = True
    """Whether there is such a class."""
    allowed: bool = True
    """Whether the deployment's namespace may use it."""
    preempts: bool = False
    """Whether a waiting replica may make those of lower classes give way."""

    @classmethod
    def of(cls, config: SchedulerConfig, namespace: str, stated: str | None) -> Priority:
        """Look up the class that a deployment of a namespace states, or that the input has for it."""
        name = config.defaults.placement.priority_class_name if stated is None else stated
        if not name:
            return cls()
        named = next((listed for listed in config.priority_classes if listed.name == name), None)
        if named is None:
            return cls(name, exists=False)
        if named.namespaces is not None and namespace not in named.namespaces:
            return cls(name, allowed=False)
        return cls(name, named.value, preempts=named.preempts)

    @classmethod
    def of_deployment(cls, config: SchedulerConfig, deployment: ModelDeployment) -> Priority:
        """Look up the class of a deployment."""
        placement = deployment.spec.placement
        stated = placement.priority_class_name if placement is not None else None
        return cls.of(config, deployment.namespace, stated)


def turn_of(config: SchedulerConfig, deployment: ModelDeployment) -> tuple[int, str, str, str]:
    """Return the place of a deployment in the canonical order: the highest value first, then `turn`."""
    order = turn(deployment.metadata.creation_timestamp or "", deployment.namespace, deployment.name)
    return (-Priority.of_deployment(config, deployment).value, *order)
