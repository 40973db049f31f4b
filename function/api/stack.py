"""Stacks: what runs the replicas of a cluster, and what deployments say for their sake."""

from __future__ import annotations

from typing import Final, Literal

from function.api.model import Count, Flag, Model, Name

Stack = Literal["Standard", "KServe"]
STANDARD: Final = "Standard"
KSERVE: Final = "KServe"

HUGGING_FACE = "hf://"
"""The scheme of a model that an engine can load by its name."""


class ServedModel(Model):
    """The model, where no ModelCache brings it."""

    uri: Name


class Parallelism(Model):
    """How an engine is spread over devices and pods, where its arguments do not say it."""

    tensor: Count | None = None
    pipeline: Count | None = None
    data: Count | None = None
    data_local: Count | None = None
    expert: Flag | None = None

    @property
    def fault(self) -> str:
        """What contradicts itself in it; empty for nothing."""
        if (self.data is None) != (self.data_local is None):
            return "data and dataLocal are set together"
        return "pipeline and data exclude each other" if self.pipeline and self.data else ""

    @property
    def size(self) -> int | None:
        """Pods of one copy; None where it does not say."""
        if self.data is not None and self.data_local is not None:
            return max(self.data // self.data_local, 1)
        return self.pipeline
