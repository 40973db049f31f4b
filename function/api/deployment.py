"""ModelDeployment: how many replicas of a model are wanted, and what each of them needs."""

from __future__ import annotations

from functools import cached_property
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationInfo, field_validator, model_validator

from function.api.engine import (
    ClusterExpression,
    ClusterSelector,
    Engine,
    MemberReference,
    ReplicaShape,
    RequestReference,
    members_of,
    requests_of,
)
from function.api.model import CacheHolder, Count, Model, Name, Whole, refuse_twice
from function.api.taints import Toleration

# spec.placement: policy for the set of replicas. Changing it never changes a replica.

DisruptionCount = Annotated[Whole, Field(ge=0, le=1_000_000)]


class TopologySpread(Model):
    """PodTopologySpread over clusters: domains are the values of a label."""

    topology_key: Name
    max_skew: Count = 1
    min_domains: Count | None = None
    when_unsatisfiable: Literal["DoNotSchedule", "ScheduleAnyway"] = "DoNotSchedule"


class Preference(Model):
    """A soft wish: a cluster that matches earns the weight."""

    weight: Annotated[Whole, Field(ge=1, le=100)]
    match_labels: dict[str, str] = {}
    cel: str = ""

    @cached_property
    def expression(self) -> ClusterExpression:
        """The text in `cel`, with its program."""
        return ClusterExpression(cel=self.cel)

    @model_validator(mode="after")
    def _something(self) -> Preference:
        if not self.match_labels and not self.cel:
            raise ValueError("a preference needs matchLabels or cel")
        return self


class Disruption(Model):
    """How many replicas may be missing at a time because of replacements and drains, how many too many."""

    max_surge: DisruptionCount = 0
    max_unavailable: DisruptionCount | None = None

    @field_validator("max_unavailable")
    @classmethod
    def _possible(cls, value: int | None, info: ValidationInfo) -> int | None:
        if value == 0 and not info.data.get("max_surge", 1):
            raise ValueError("must be at least 1 where maxSurge is 0: nothing could ever be replaced")
        return value

    @property
    def allowed(self) -> int | None:
        """How many may be missing. Left out: none where there is surge, else any number (None)."""
        return 0 if self.max_unavailable is None and self.max_surge else self.max_unavailable


class Rollout(Model):
    """How many replicas may be out of service at a time because of an edit of the template."""

    max_unavailable: DisruptionCount = 1


class Evacuate(Model):
    """Replacing what has been lost or degraded for a long time, by observed time."""

    after_seconds: Annotated[Whole, Field(ge=1_800, le=2_592_000)]


class PlacementPolicy(Model):
    """How the set of replicas is spread. Every field left out takes the function's default."""

    strategy: Literal["Spread", "BinPack"] | None = None
    tie_break: Literal["Name", "MostFree", "Hash"] | None = None
    topology_spread: tuple[TopologySpread, ...] | None = None
    max_replicas_per_cluster: Count | None = None
    preferences: tuple[Preference, ...] | None = None
    disruption: Disruption | None = None
    rollout: Rollout | None = None
    alternative_policy: Literal["PreferFirst", "ClusterFirst"] | None = None
    cache: Literal["Footprint", "Prefer", "Require"] | None = None
    evacuate: Evacuate | None = None

    @field_validator("rollout")
    @classmethod
    def _possible(cls, value: Rollout | None, info: ValidationInfo) -> Rollout | None:
        disruption = info.data.get("disruption")
        surge = "disruption" not in info.data or (disruption is not None and disruption.max_surge)
        if value is not None and value.max_unavailable == 0 and not surge:
            raise ValueError("maxUnavailable 0 needs disruption.maxSurge of at least 1")
        return value

    def over(self, defaults: PlacementPolicy) -> PlacementPolicy:
        """Fill what this policy leaves out from the defaults."""
        return defaults.model_copy(update={name: getattr(self, name) for name in self.model_fields_set})


ReplicaCount = Annotated[Whole, Field(ge=0, le=200)]


class Alternative(Model):
    """Another shape of the same replica."""

    name: Name
    engines: Annotated[tuple[Engine, ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _unique(self) -> Alternative:
        refuse_twice("engines", [engine.name for engine in self.engines])
        return self


class CacheRef(Model):
    """The ModelCache whose weights a replica mounts."""

    name: Name


class ReplicaSpec(Model):
    """The template of one replica."""

    cluster_selector: ClusterSelector = ClusterSelector()
    model_cache_ref: CacheRef | None = None
    serving: dict[str, Any] | None = None
    tolerations: tuple[Toleration, ...] = ()
    engines: Annotated[tuple[Engine, ...], Field(min_length=1)]
    alternatives: tuple[Alternative, ...] = ()

    @model_validator(mode="after")
    def _unique(self) -> ReplicaSpec:
        refuse_twice("engines", [engine.name for engine in self.engines])
        names = [alternative.name for alternative in self.alternatives]
        if len(set(names)) < len(names):
            raise ValueError(f'alternatives: the name "{max(names, key=names.count)}" is used twice')
        return self


class TemplateMetadata(Model):
    """Labels for every replica."""

    labels: dict[str, str] = {}


class ReplicaTemplate(Model):
    """The replica to run, so many times."""

    metadata: TemplateMetadata = TemplateMetadata()
    spec: ReplicaSpec


class DeploymentSpec(Model):
    """The spec of a deployment."""

    replicas: ReplicaCount
    min_replicas: ReplicaCount | None = None
    placement: PlacementPolicy | None = None
    template: ReplicaTemplate


class ModelDeployment(CacheHolder):
    """The deployment whose replicas are placed."""

    spec: DeploymentSpec

    @property
    def wanted(self) -> int:
        """How many replicas are wanted."""
        return self.spec.replicas

    @property
    def required(self) -> int:
        """How many must be placed for the deployment to count as placed."""
        return self.spec.replicas if self.least is None else self.least

    @property
    def least(self) -> int | None:
        """minReplicas, never more than are wanted; None when not set."""
        least = self.spec.min_replicas
        return None if least is None else min(least, self.spec.replicas)

    @property
    def template(self) -> ReplicaSpec:
        """The template of one replica."""
        return self.spec.template.spec

    @property
    def cache(self) -> str:
        """The name of the ModelCache it references; empty without one."""
        reference = self.template.model_cache_ref
        return reference.name if reference else ""

    @cached_property
    def members(self) -> tuple[MemberReference, ...]:
        """Every member with its path, those of the alternatives too."""
        return tuple(members_of(self.shapes))

    @cached_property
    def requests(self) -> tuple[RequestReference, ...]:
        """Every way to satisfy every device request, with its path."""
        return tuple(requests_of(self.members))

    @cached_property
    def shapes(self) -> tuple[ReplicaShape, ...]:
        """The shapes a replica may take, best first."""
        primary = ReplicaShape(name="", engines=self.template.engines)
        others = (
            ReplicaShape(name=alternative.name, engines=alternative.engines)
            for alternative in self.template.alternatives
        )
        return (primary, *others)
