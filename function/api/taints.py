"""Taints and tolerations: the Kubernetes rule, for clusters and for devices.

A taint keeps replicas away from a cluster (NoSchedule: new ones; NoExecute: all) unless tolerated. NoExecute
is one of the few causes for which a running replica leaves (docs/how-it-schedules.md, Law 2), so the rule is
taken over exactly, and what it does not know (`tolerationSeconds` of a cluster) does not exist here.

Taints of devices gate new placements only, whatever their effect: the claim's allocator on the workload
cluster takes no such device. What runs has its devices; evicting it for NoExecute is that cluster's business.
"""

from collections.abc import Sequence
from typing import Literal, Self

from pydantic import model_validator

from function.api.model import Effect, Model, Name, Whole, mappings

GPU_TOLERATION = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
"""The taint of a node that every pod of ours tolerates: the mark that keeps other pods off GPUs."""

MAX_READ_TAINTS = 40
"""Taints that are read of one node or device, where it has more. A pod tolerates 17 keys of a node, each with
two effects, and a class states 16 taints of a device: where each has its own key, one is left in any case."""


class Taint(Model):
    """A mark on a cluster that repels replicas."""

    key: Name
    value: str = ""
    effect: Effect

    def __str__(self) -> str:
        """`maintenance=yes:NoSchedule`, as kubectl writes it."""
        return f"{self.key}={self.value}:{self.effect}" if self.value else f"{self.key}:{self.effect}"


class Toleration(Model):
    """A tolerated taint. No effect means both; Exists without a key tolerates everything."""

    key: str = ""
    operator: Literal["Equal", "Exists"] = "Equal"
    value: str = ""
    effect: Effect | None = None

    @model_validator(mode="after")
    def _whole_rule(self) -> Self:
        """Refuse what the API server refuses of a toleration."""
        if self.operator == "Equal" and not self.key:
            raise ValueError("operator Equal needs a key")
        if self.operator == "Exists" and self.value:
            raise ValueError("operator Exists must not have a value")
        return self

    def tolerates(self, taint: Taint) -> bool:
        """Tell whether this toleration covers the taint."""
        if self.effect not in (None, taint.effect):
            return False
        if self.operator == "Exists":
            return self.key in ("", taint.key)
        return self.key == taint.key and self.value == taint.value


class DeviceToleration(Toleration):
    """A tolerated taint of a device, as a claim has it."""

    toleration_seconds: Whole | None = None


def read_taints(stated: object) -> tuple[Taint, ...]:
    """Read the taints that somebody else published, sorted. One whose effect is another keeps nobody off."""
    read = {
        (taint["key"], value if isinstance(value, str) else "", taint["effect"])
        for taint in mappings(stated)
        if taint.get("effect") in ("NoSchedule", "NoExecute")
        and isinstance(taint.get("key"), str)
        and taint["key"]
        for value in (taint.get("value"),)
    }
    first = (
        Taint(key=key, value=value, effect=effect) for key, value, effect in sorted(read)[:MAX_READ_TAINTS]
    )
    return tuple(sorted(first, key=str))


def untolerated(taints: Sequence[Taint], tolerations: Sequence[Toleration]) -> tuple[Taint, ...]:
    """The taints that no toleration covers, in a fixed order."""
    left = [taint for taint in taints if not any(toleration.tolerates(taint) for toleration in tolerations)]
    return tuple(sorted(left, key=str))
