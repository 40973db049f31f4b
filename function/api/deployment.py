"""ModelDeployment: how many replicas of a model are wanted, and what each of them needs."""

from __future__ import annotations

from functools import cached_property
from typing import Annotated, Any

from pydantic import Field, model_validator

from function.api.cluster_selector import ClusterSelector
from function.api.engine import Engine, ReplicaShape
from function.api.model import CacheHolder, Model, Name, Whole, refuse_twice
from function.api.placement import PlacementPolicy
from function.api.requests import MemberReference, RequestReference, members_of, requests_of
from function.api.taints import Toleration

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
    """What one replica needs."""

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
    """What is wanted."""

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
        """What one replica needs."""
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
