"""WorkloadConfig: the input of the step that turns a ModelReplica into pods. Every field is optional."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from function.api.model import Flag, Whole
from function.api.step_input import API_VERSION, StepInput, TtlConfig

WholeSeconds = Annotated[Whole, Field(ge=1, le=604_800)]
DEADLINE_SECONDS = 7200
"""Loading weights takes longer than the ten minutes of Kubernetes."""


class WorkloadConfig(StepInput):
    """What a platform engineer chooses for all workloads of a Composition.

    Left out, everything is as Modelplane v0.3 makes it, but for the rows of docs/compatibility.md.
    """

    api_version: Literal["fleet-scheduler.fn.modelplane.ai/v1alpha1"] = API_VERSION
    kind: Literal["WorkloadConfig"] = "WorkloadConfig"
    metadata: dict[str, Any] = {}
    remote_namespace: Literal["Default", "Same"] = "Default"
    """Where workloads go on their cluster: the namespace `default`, or the one of the replica."""
    namesakes: Literal["Ignore", "Refuse"] = "Ignore"
    """Whether replicas are composed whose objects a namesake in another namespace would share."""
    rollout: Literal["NoSurge", "Surge"] = "NoSurge"
    """Whether an update of claiming pods may take devices beyond those that the scheduler charged."""
    progress_deadline_seconds: WholeSeconds = DEADLINE_SECONDS
    readiness: Literal["Available", "AvailableCopies"] = "Available"
    """What makes a Deployment ready: its condition Available, or that and at least one available copy."""
    pods_across_nodes: Literal["Required", "Preferred"] | None = None
    """Whether pods of an engine, or of one group of a gang, are kept on different nodes."""
    replicas_across_nodes: Literal["Required", "Preferred"] | None = None
    """Whether copies of an engine are: of a gang, pods of different groups."""
    drain_seconds: Annotated[Whole, Field(ge=1, le=86_400)] | None = None
    budget: Flag = False
    """Whether engines of several copies get a PodDisruptionBudget."""
    watch: Flag = False
    """Whether the provider watches workloads instead of polling them."""
    secrets: Literal["Mirror"] | None = None
    diagnose: Literal["Pods"] | None = None
    status: Literal["Engines"] | None = None
    ttl: TtlConfig = TtlConfig()
