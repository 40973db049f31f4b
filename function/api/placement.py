"""spec.placement: policy for the set of replicas. Changing it never changes a replica."""

from __future__ import annotations

from functools import cached_property
from typing import Annotated, Literal

from pydantic import Field, model_validator

from function.api.cel_selector import ClusterExpression
from function.api.model import Count, Model, Name, Whole


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
        """What `cel` states, with its program."""
        return ClusterExpression(cel=self.cel)

    @model_validator(mode="after")
    def _something(self) -> Preference:
        if not self.match_labels and not self.cel:
            raise ValueError("a preference needs matchLabels or cel")
        return self


class Disruption(Model):
    """How many replicas may be missing at a time because of replacements and drains."""

    max_unavailable: Count | None = None


class Rollout(Model):
    """How many replicas may be out of service at a time because of an edit of the template."""

    max_unavailable: Count = 1


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

    def over(self, defaults: PlacementPolicy) -> PlacementPolicy:
        """Fill what this policy leaves out from the defaults."""
        return defaults.model_copy(update={name: getattr(self, name) for name in self.model_fields_set})
