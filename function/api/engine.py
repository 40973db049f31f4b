"""Engines: the parts of a replica, their members, and the devices that each member requests."""

from __future__ import annotations

from functools import cached_property
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from function.api.cel_selector import DeviceSelector, PoolSelector
from function.api.devices import MAX_DEVICES
from function.api.model import Count, Keyed, Model, Name, Role, refuse_twice


class SubRequest(Keyed):
    """One way to satisfy a device request: so many devices that every selector matches."""

    name: str = ""
    count: Count = 1
    selectors: tuple[DeviceSelector, ...] = ()
    claim_selectors: tuple[DeviceSelector, ...] = ()
    """They are about the device of a node (its uuid), which no class publishes: only the claim has them."""

    @cached_property
    def claimed_by(self) -> tuple[str, ...]:
        """What the claim selects with: what the fleet is matched with, then what only the claim has."""
        return tuple(selector.cel for selector in (*self.selectors, *self.claim_selectors))


class DeviceRequest(SubRequest):
    """A DRA request: one set of devices, or the first available of several."""

    name: Name
    first_available: tuple[SubRequest, ...] = ()

    @model_validator(mode="after")
    def _of_one_way(self) -> DeviceRequest:
        if self.first_available and self.claim_selectors:
            raise ValueError("claimSelectors: not beside firstAvailable; every way has its own")
        return self

    @property
    def ranked(self) -> tuple[SubRequest, ...]:
        """The ways to satisfy the request, best first; itself where there is no list of them."""
        return self.first_available or (self,)


class MatchConstraint(Keyed):
    """All named requests must share one value of the attribute."""

    requests: tuple[str, ...] = ()
    match_attribute: Name


class NodeSelector(Keyed):
    """The devices each pod of a member needs, and what its nodes must be like."""

    devices: Annotated[tuple[DeviceRequest, ...], Field(max_length=MAX_DEVICES)] = ()
    selectors: tuple[PoolSelector, ...] = ()
    constraints: tuple[MatchConstraint, ...] = ()

    @model_validator(mode="after")
    def _unique(self) -> NodeSelector:
        refuse_twice("devices", [request.name for request in self.devices])
        return self


class Worker(Model):
    """How many pods a Worker member has."""

    nodes: Count | None = None


class Member(Model):
    """One role of an engine and the pods that play it."""

    role: Role = "Standalone"
    worker: Worker | None = None
    node_selector: NodeSelector | None = None
    template: dict[str, Any] | None = None

    @property
    def pods(self) -> int:
        """Pods per copy of the engine: `worker.nodes` for a Worker, else 1."""
        return (self.worker.nodes or 1) if self.role == "Worker" and self.worker else 1

    @property
    def requests(self) -> tuple[DeviceRequest, ...]:
        """The device requests; none for a member without a nodeSelector."""
        return self.node_selector.devices if self.node_selector else ()


class Engine(Model):
    """A part of a replica: a gang of members that talk over one pool's fabric."""

    name: Name
    copies: Count = 1
    phase: Literal["Prefill", "Decode"] | None = None
    pool_policy: Literal["SinglePool", "SameFabric"] = "SinglePool"
    members: Annotated[tuple[Member, ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _roles(self) -> Engine:
        roles = [member.role for member in self.members]
        if len(set(roles)) < len(roles):
            raise ValueError(f"members: the role {max(roles, key=roles.count)} is used twice")
        return self


class ReplicaShape(Model):
    """One shape a replica may take: the primary engines (no name) or an alternative."""

    name: str
    engines: tuple[Engine, ...]

    @cached_property
    def spreads(self) -> bool:
        """Whether some engine may stand on several pools of one fabric."""
        return any(engine.pool_policy == "SameFabric" for engine in self.engines)
