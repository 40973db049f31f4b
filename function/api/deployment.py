"""ModelDeployment: how many replicas of a model are wanted, and what each of them needs.

Bottom up: selectors, device requests, members, engines, the shapes a replica may take, then the policy for
the set of replicas (`spec.placement`), then the deployment. Fields that are only passed on to replicas (pod
templates, `serving`) stay plain maps.

A selector holds its compiled programs, one for each Kubernetes release that reads it. One that does not
compile is no fault of the object: the deployment is read, and a condition names the selector
(InvalidNodeSelector, InvalidClusterSelector). `members` and `requests` are the one walk over a deployment's
engines, with the path of each field for messages.
"""

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Self

from pydantic import Field, ValidationInfo, field_validator, model_validator

from function.api.adapter import AdapterRoom
from function.api.devices import MAX_DEVICES
from function.api.model import Count, Keyed, MemoHolder, Model, Name, Role, Whole, refuse_twice
from function.api.taints import DeviceToleration, Toleration
from function.cel.selector import Selector, compile_selector
from function.cel.values import CompileError

# The parts of a replica: engines, their members, and the devices that each member requests.
#
# A CEL selector as a field of an object: it holds its program, so that nobody looks one up by its text.


class CelSelector(Keyed):
    """One CEL expression; over what, each kind of it says."""

    variable: ClassVar[str]
    cel: str

    @cached_property
    def by_release(self) -> dict[str, Selector | CompileError]:
        """Its programs, and what is wrong with it, as Kubernetes releases read it."""
        return {}

    def compiled(self, release: str) -> Selector | CompileError:
        """Its program as a Kubernetes release reads it, or what is wrong with it."""
        outcome = self.by_release.get(release)
        if outcome is None:
            try:
                outcome = compile_selector(self.variable, self.cel, release)
            except CompileError as error:
                # They hold this call's frames, and with them the request, until the collector comes by.
                error.__traceback__ = error.__context__ = None
                outcome = error
            self.by_release[release] = outcome
        return outcome

    def program(self, release: str) -> Selector:
        """Its program. Raises CompileError where it has none (`scheduler.selectors` asks first, once)."""
        outcome = self.compiled(release)
        if isinstance(outcome, CompileError):
            raise outcome
        return outcome


class DeviceSelector(CelSelector):
    """An expression over `device`."""

    variable = "device"


class PoolSelector(CelSelector):
    """An expression over `node`, which is the pool. No release has another reading of it."""

    variable = "node"


class ClusterExpression(CelSelector):
    """An expression over `cluster`. No release has another reading of it."""

    variable = "cluster"


# clusterSelector: which clusters a new replica may use.


class LabelRequirement(Model):
    """A Kubernetes LabelSelectorRequirement."""

    key: Name
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    values: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _values_fit(self) -> Self:
        """Refuse values where the operator takes none, and none where it needs some (Kubernetes)."""
        listed = self.operator in ("In", "NotIn")
        if listed and not self.values:
            raise ValueError(f"operator {self.operator} needs values")
        if not listed and self.values:
            raise ValueError(f"operator {self.operator} must not have values")
        return self

    def matches(self, labels: dict[str, str]) -> bool:
        """Tell whether the labels meet the requirement. NotIn holds where the key is missing."""
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
        """The texts in `cel`, with their programs."""
        return tuple(ClusterExpression(cel=source) for source in self.cel)


MAX_TOLERATIONS = 16
"""Of a request of a claim (Kubernetes)."""


class SubRequest(Keyed):
    """One way to satisfy a device request: so many devices that every selector matches."""

    name: str = ""
    count: Count = 1
    selectors: tuple[DeviceSelector, ...] = ()
    claim_selectors: tuple[DeviceSelector, ...] = ()
    """They are about the device of a node (its uuid), which no class publishes: only the claim has them."""
    tolerations: Annotated[tuple[DeviceToleration, ...], Field(max_length=MAX_TOLERATIONS)] = ()
    """Taints of devices that its claim puts up with."""

    @cached_property
    def claimed_by(self) -> tuple[str, ...]:
        """The claim's selectors: those matched against the fleet first, then those of the claim alone."""
        return tuple(selector.cel for selector in (*self.selectors, *self.claim_selectors))


class DeviceRequest(SubRequest):
    """A DRA request: one set of devices, or the first available of several."""

    name: Name
    first_available: tuple[SubRequest, ...] = ()

    @model_validator(mode="after")
    def _of_one_way(self) -> Self:
        """Refuse on the request itself what every way of `firstAvailable` states for itself."""
        if self.first_available and self.claim_selectors:
            raise ValueError("claimSelectors: not beside firstAvailable; every way has its own")
        if self.first_available and self.tolerations:
            raise ValueError("tolerations: not beside firstAvailable; every way has its own")
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
    def _unique(self) -> Self:
        """Refuse a request name twice: constraints and the claim refer to requests by name."""
        refuse_twice("devices", [request.name for request in self.devices])
        return self


class Worker(Model):
    """How many pods a Worker member has."""

    nodes: Count | None = None


class Member(Model):
    """One role of an engine and the pods that play it."""

    role: Role = "Standalone"
    worker: Worker | None = None
    node_selector: NodeSelector = NodeSelector.model_construct()
    template: dict[str, Any] | None = None

    @property
    def pods(self) -> int:
        """Pods per copy of the engine: `worker.nodes` for a Worker, else 1."""
        return (self.worker.nodes or 1) if self.role == "Worker" and self.worker else 1

    @property
    def requests(self) -> tuple[DeviceRequest, ...]:
        """The device requests; none for a member without a nodeSelector."""
        return self.node_selector.devices

    @property
    def constraints(self) -> tuple[MatchConstraint, ...]:
        """The attributes that devices of its requests must share; none without a nodeSelector."""
        return self.node_selector.constraints


class Engine(Model):
    """A part of a replica: a gang of members that talk over one pool's fabric."""

    name: Name
    copies: Count = 1
    phase: Literal["Prefill", "Decode"] | None = None
    pool_policy: Literal["SinglePool", "SameFabric"] = "SinglePool"
    adapters: AdapterRoom | None = None
    """Room for ModelAdapters; left out, it has none and its pods are as they always were."""
    members: Annotated[tuple[Member, ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _roles(self) -> Self:
        """Refuse a role twice: a member is told from the others by its role."""
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
        """Tell whether some engine may stand on several pools of one fabric."""
        return any(engine.pool_policy == "SameFabric" for engine in self.engines)


# Walk over what a deployment asks for: every member, and every way to satisfy each of its device requests.
#
# Each comes with the path of its field, in the order in which it is written: the primary engines, then
# those of the alternatives.


class MemberReference(NamedTuple):
    """One member of one engine, and where it is written."""

    path: str
    shape: ReplicaShape
    engine: Engine
    member: Member


class RequestReference(NamedTuple):
    """One way to satisfy one device request, and where it is written."""

    path: str
    of: MemberReference
    request: DeviceRequest
    rank: int
    """Its place in a prioritized list; 0 where there is only one way."""
    sub: SubRequest


def requests_of(members: Iterable[MemberReference]) -> Iterator[RequestReference]:
    """Every way to satisfy every device request of members."""
    for reference in members:
        for number, request in enumerate(reference.member.requests):
            path = f"{reference.path}.nodeSelector.devices[{number}]"
            for rank, sub in enumerate(request.ranked):
                where = f"{path}.firstAvailable[{rank}]" if request.first_available else path
                yield RequestReference(where, reference, request, rank, sub)


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
    max_cents_per_hour: Annotated[Whole, Field(ge=0, le=100_000_000)] | None = None
    """The most that a replica may cost there; a price that is not known is more."""

    @cached_property
    def expression(self) -> ClusterExpression:
        """The text in `cel`, with its program."""
        return ClusterExpression(cel=self.cel)

    @model_validator(mode="after")
    def _something(self) -> Self:
        """Refuse a preference that matches every cluster: its weight would decide nothing."""
        if not self.match_labels and not self.cel and self.max_cents_per_hour is None:
            raise ValueError("a preference needs matchLabels, cel or maxCentsPerHour")
        return self


class Disruption(Model):
    """How many replicas may be missing at a time because of replacements and drains, how many too many."""

    max_surge: DisruptionCount = 0
    max_unavailable: DisruptionCount | None = None

    @field_validator("max_unavailable")
    @classmethod
    def _possible(cls, value: int | None, info: ValidationInfo) -> int | None:
        """Refuse a budget of none without surge.

        Where `maxSurge` is itself a fault it is missing from `info.data`; that fault is reported alone.
        """
        if value == 0 and not info.data.get("max_surge", 1):
            raise ValueError("must be at least 1 where maxSurge is 0: nothing could ever be replaced")
        return value


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
    priority_class_name: str | None = None

    @field_validator("rollout")
    @classmethod
    def _possible(cls, value: Rollout | None, info: ValidationInfo) -> Rollout | None:
        """Refuse a rollout that may take nothing out and put nothing beside it, and so never ends."""
        disruption = info.data.get("disruption")
        surge = "disruption" not in info.data or (disruption is not None and disruption.max_surge)
        if value is not None and value.max_unavailable == 0 and not surge:
            raise ValueError("maxUnavailable 0 needs disruption.maxSurge of at least 1")
        return value

    def over(self, defaults: Self) -> Self:
        """Fill what this policy leaves out from the defaults."""
        return defaults.model_copy(update={name: getattr(self, name) for name in self.model_fields_set})


MAX_REPLICAS = 200
"""Replicas that a deployment may have."""
ReplicaCount = Annotated[Whole, Field(ge=0, le=MAX_REPLICAS)]


class Alternative(Model):
    """Another shape of the same replica."""

    name: Name
    engines: Annotated[tuple[Engine, ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _unique(self) -> Self:
        """Refuse an engine name twice: stamped engines are found by name."""
        refuse_twice("engines", [engine.name for engine in self.engines])
        return self


class CacheRef(Model):
    """The ModelCache whose weights a replica mounts."""

    name: Name


class ReplicaSpec(Model):
    """The template of one replica."""

    cluster_selector: ClusterSelector = ClusterSelector.model_construct()
    model_cache_ref: CacheRef | None = None
    serving: dict[str, Any] | None = None
    tolerations: tuple[Toleration, ...] = ()
    engines: Annotated[tuple[Engine, ...], Field(min_length=1)]
    alternatives: tuple[Alternative, ...] = ()

    @model_validator(mode="after")
    def _unique(self) -> Self:
        """Refuse a name twice: a replica notes which alternative it was placed as."""
        refuse_twice("engines", [engine.name for engine in self.engines])
        refuse_twice("alternatives", [alternative.name for alternative in self.alternatives])
        return self


class TemplateMetadata(Model):
    """Labels for every replica."""

    labels: dict[str, str] = {}


class ReplicaTemplate(Model):
    """The replica to run, so many times."""

    metadata: TemplateMetadata = TemplateMetadata.model_construct()
    spec: ReplicaSpec


class DeploymentSpec(Model):
    """The spec of a deployment."""

    replicas: ReplicaCount
    min_replicas: ReplicaCount | None = None
    placement: PlacementPolicy | None = None
    """Policy for the set of replicas; a change of it changes no replica."""
    template: ReplicaTemplate


class ModelDeployment(MemoHolder):
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
        listed = []
        for number, shape in enumerate(self.shapes):
            base = f"alternatives[{number - 1}].engines" if number else "engines"
            for at, engine in enumerate(shape.engines):
                for place, member in enumerate(engine.members):
                    listed.append(MemberReference(f"{base}[{at}].members[{place}]", shape, engine, member))
        return tuple(listed)

    @cached_property
    def requests(self) -> tuple[RequestReference, ...]:
        """Every way to satisfy every device request, with its path."""
        return tuple(requests_of(self.members))

    @cached_property
    def shapes(self) -> tuple[ReplicaShape, ...]:
        """The shapes a replica may take, best first. Their parts were checked as those of the deployment."""
        primary = ReplicaShape.model_construct(name="", engines=self.template.engines)
        others = (
            ReplicaShape.model_construct(name=alternative.name, engines=alternative.engines)
            for alternative in self.template.alternatives
        )
        return (primary, *others)
