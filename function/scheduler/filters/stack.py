"""The stack of a cluster must be able to express a replica: KServe says less than pods do.

A shape that it cannot express is not tried there (`placer`); a cluster that can express none of the shapes
takes no new replica. Replicas that run there are not looked at: they stay.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING

from function.api.expressible import ReplicaPods, StackEngine, obstacle
from function.api.fault import Fault, Malformed
from function.api.reasons import Reason, Rejection
from function.api.stack import STANDARD
from function.api.workload import PodTemplate, ServingSpec

if TYPE_CHECKING:
    from function.api import InferenceCluster, ModelDeployment
    from function.api.engine import Engine, ReplicaShape
    from function.scheduler.scheduling_input import SchedulingInput


class StackExpresses:
    """Rejects clusters whose stack cannot express any shape of the deployment."""

    def __init__(self, deployment: ModelDeployment, stacks: frozenset[str]) -> None:
        """Say once for every shape and stack of the fleet what is in the way."""
        self._obstacles = {
            (shape.name, stack): _obstacle(deployment, shape, stack)
            for shape in deployment.shapes
            for stack in stacks
        }
        self._first = deployment.shapes[0].name
        self._closed = {
            stack
            for stack in stacks
            if all(self._obstacles[shape.name, stack] for shape in deployment.shapes)
        }

    @classmethod
    def of(cls, inputs: SchedulingInput) -> StackExpresses | None:
        """Build it where some cluster has another stack, or the deployment brings a model."""
        stacks = frozenset(map(attrgetter("spec.stack"), inputs.fleet.clusters.values()))
        brings_model = "model" in (inputs.deployment.template.serving or {})
        return cls(inputs.deployment, stacks) if brings_model or stacks - {STANDARD} else None

    @property
    def obstacles(self) -> dict[tuple[str, str], str]:
        """What is in the way of each shape (by name) on each stack; empty texts where nothing is."""
        return self._obstacles

    @property
    def facts(self) -> tuple[str, ...]:
        """What is in the way on which stack, for the digest of the input; nothing where nothing is."""
        obstacles = sorted(self._obstacles.items())
        return tuple(f"{shape} {text}" for (shape, _), text in obstacles if text)

    def reject(self, cluster: InferenceCluster) -> Rejection | None:
        """Reject a cluster that can express no shape, with what is in the way of the first."""
        if cluster.spec.stack not in self._closed:
            return None
        detail = self._obstacles[self._first, cluster.spec.stack]
        return Rejection(Reason.StackCannotExpress, detail=detail)

    def reject_shape(self, shape: ReplicaShape, cluster: InferenceCluster) -> Rejection | None:
        """Reject one shape on a cluster that may express others."""
        detail = self._obstacles.get((shape.name, cluster.spec.stack))
        return Rejection(Reason.StackCannotExpress, detail=detail) if detail else None


def _obstacle(deployment: ModelDeployment, shape: ReplicaShape, stack: str) -> str:
    """Return what is in the way of a shape. Pods that cannot be read are the handler of replicas' to name."""
    try:
        serving = ServingSpec.parse(deployment.template.serving or {})
        engines = tuple(map(_pods, shape.engines))
    except Malformed:
        return ""
    return obstacle(stack, ReplicaPods(serving, deployment.cache, engines))


def _pods(engine: Engine) -> StackEngine:
    """Read the pods of an engine. Raises Malformed."""
    templates = {member.role: PodTemplate.parse(member.template or {}) for member in engine.members}
    follower = templates.pop("Worker", None)
    if len(templates) != 1:
        raise Malformed([Fault("members", "expected one Standalone, or a Leader and a Worker")])
    [serving] = templates.values()
    followers = sum(member.pods for member in engine.members if member.role == "Worker")
    return StackEngine(engine.name, engine.phase, 1 + followers, serving, follower)
