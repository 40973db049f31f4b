"""clusterSelector: which clusters a new replica may use."""

from __future__ import annotations

from functools import cached_property
from typing import Literal

from pydantic import model_validator

from function.api.cel_selector import ClusterExpression
from function.api.model import Model, Name


class LabelRequirement(Model):
    """A Kubernetes LabelSelectorRequirement."""

    key: Name
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    values: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _values_fit(self) -> LabelRequirement:
        listed = self.operator in ("In", "NotIn")
        if listed and not self.values:
            raise ValueError(f"operator {self.operator} needs values")
        if not listed and self.values:
            raise ValueError(f"operator {self.operator} must not have values")
        return self

    def matches(self, labels: dict[str, str]) -> bool:
        """Whether the labels meet the requirement. NotIn holds where the key is missing."""
        if self.operator in ("Exists", "DoesNotExist"):
            return (self.key in labels) == (self.operator == "Exists")
        return (labels.get(self.key) in self.values) == (self.operator == "In")


class ClusterSelector(Model):
    """All of it must match; nothing set matches every cluster."""

    match_labels: dict[str, str] = {}
    match_expressions: tuple[LabelRequirement, ...] = ()
    cel: tuple[str, ...] = ()

    @cached_property
    def expressions(self) -> tuple[ClusterExpression, ...]:
        """What `cel` states, with the programs."""
        return tuple(ClusterExpression(cel=source) for source in self.cel)
