"""Inputs of the function's steps: version, strictness and times to live, then each input.

A step's input is written into the Composition by a platform engineer. Every field is optional, and one that
is left out changes no answer. Unlike an object of the API, an input belongs to this build: an unknown field
is an error, at any depth, since a typo would silently switch nothing on (`StepInput`).

An input that cannot be read is reported by the condition of each handler (`invalid_input`); running replicas
are kept as they are observed. package/input/ has the schemas, docs/api.md the meaning of each field.
"""

import re
from functools import cached_property
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, field_validator, model_validator

from function.api.deployment import Disruption, PlacementPolicy
from function.api.fault import Malformed, shown
from function.api.model import CelVersion, Flag, Model, Name, Whole, refuse_twice
from function.api.names import CLUSTER_GATEWAY, DEFAULT_PORTS, SYSTEM_NAMESPACE
from function.boundary import Request, text_at
from function.cel.selector import Selector, compile_node
from function.cel.values import CompileError

API_VERSION: Literal["fleet-scheduler.fn.modelplane.ai/v1alpha1"] = (
    "fleet-scheduler.fn.modelplane.ai/v1alpha1"
)
UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


def invalid_input(request: Request, error: Malformed) -> str:
    """Say that the function's input cannot be read: which object, of which Composition, and its faults.

    A request does not name the step. The Composition is the one that Crossplane has chosen for the composite.
    """
    composition = text_at(request.composite, "spec", "crossplane", "compositionRef", "name")
    kind = request.input.get("kind")
    where = f" of Composition {shown(composition)}" if composition else ""
    return f"The function's input is invalid: {kind if isinstance(kind, str) else 'input'}{where}: {error}"


def _seconds(value: object) -> object:
    """Read a duration: a number of seconds or a text such as 15s, 1m."""
    if isinstance(value, str):
        for unit in sorted(UNITS, key=len, reverse=True):
            number = value.removesuffix(unit)
            if number != value and number.replace(".", "", 1).isdigit():
                return float(number) * UNITS[unit]
        raise ValueError("expected a duration such as 15s or 1m")
    return value


Seconds = Annotated[float, BeforeValidator(_seconds), Field(gt=0, le=86_400, allow_inf_nan=False)]


class StepInput(Model):
    """An input, or a part of one: it belongs to this build, so an unknown field is an error."""

    model_config = ConfigDict(extra="forbid")


class TtlConfig(StepInput):
    """How long Crossplane may use an answer, while something is pending and once settled.

    `waiting` is for what only a change of the fleet ends; where it is not set, that is pending too.
    """

    waiting: Seconds | None = None
    pending: Seconds | None = None
    settled: Seconds | None = None


# SchedulerConfig: the input of the step that places a ModelDeployment.

KIND: Literal["SchedulerConfig"] = "SchedulerConfig"


class Defaults(StepInput):
    """The values that apply where a deployment sets nothing."""

    placement: PlacementPolicy = PlacementPolicy.model_construct()


UNKNOWN_BUDGETS = Defaults.model_construct(
    placement=PlacementPolicy.model_construct(
        disruption=Disruption.model_construct(max_unavailable=0, max_surge=200)
    )
)
"""The defaults of an input that states some and cannot be read. Law 2: what they may pace waits."""


class PriorityClass(StepInput):
    """A class of deployments: whose turn comes first where several wait."""

    name: Name
    value: Annotated[Whole, Field(ge=1, le=1_000_000_000)]
    namespaces: tuple[Name, ...] | None = None
    """The namespaces whose deployments may name it; every one where it is not set."""
    preempts: Flag = False
    """Whether its waiting replicas may make those of lower classes give way."""


QUOTA_TEXT = 32 * 1024
"""Characters that the expressions of all quotas may have together, as those of a deployment do: every server
compiles them before it answers."""
Amount = Annotated[Whole, Field(ge=0, le=1_000_000_000)]


class QuotaAmounts(StepInput):
    """The bounds of a quota. What is left out is not limited."""

    nodes: Amount | None = None
    devices: Amount | None = None
    replicas: Amount | None = None
    cents_per_hour: Amount | None = None

    @model_validator(mode="after")
    def _something(self) -> Self:
        """Refuse a quota that bounds nothing: an empty one is a slip, not a wish."""
        if not self.model_fields_set:
            raise ValueError("expected nodes, devices, replicas or centsPerHour")
        return self


class Quota(StepInput):
    """How much the deployments of some namespaces may hold together."""

    name: Name
    namespaces: Annotated[tuple[Name, ...], Field(min_length=1)]
    device_class_name: Name | None = None
    """The pools that publish this device class; every one where it is not set."""
    cel: str | None = None
    """Of those, the pools for which an expression over `node` holds."""
    at_most: QuotaAmounts | None = None
    guaranteed: QuotaAmounts | None = None
    """How much of it others give back; what is held beyond that is borrowed."""

    @model_validator(mode="after")
    def _limits(self) -> Self:
        """Refuse a guarantee above the limit: it could never be met."""
        if self.at_most is None and self.guaranteed is None:
            raise ValueError("expected atMost or guaranteed")
        for unit in QuotaAmounts.model_fields if self.at_most and self.guaranteed else ():
            most, least = getattr(self.at_most, unit), getattr(self.guaranteed, unit)
            if most is not None and least is not None and least > most:
                name = QuotaAmounts.model_fields[unit].alias
                raise ValueError(f"guaranteed.{name}: {least} is more than atMost.{name}: {most}")
        return self

    @cached_property
    def program(self) -> Selector | None:
        """The text in `cel`, compiled; None where there is none."""
        return None if self.cel is None else compile_node(self.cel)

    @field_validator("cel")
    @classmethod
    def _compiles(cls, cel: str | None) -> str | None:
        """Refuse an expression that does not compile: the input is at fault, and says so."""
        try:
            _ = None if cel is None else compile_node(cel)
        except CompileError as error:
            raise ValueError(str(error)) from None
        return cel


def _not_too_long(quotas: object) -> object:
    """Refuse more text than is compiled for one input, before any of it is."""
    stated = (
        [quota.get("cel") for quota in quotas if isinstance(quota, dict)] if isinstance(quotas, list) else ()
    )
    length = sum(len(text) for text in stated if isinstance(text, str))
    if length > QUOTA_TEXT:
        raise ValueError(f"the expressions of all quotas have {length} characters, more than {QUOTA_TEXT}")
    return quotas


class SchedulerConfig(StepInput):
    """The function's input; every field is optional."""

    api_version: Literal["fleet-scheduler.fn.modelplane.ai/v1alpha1"] = API_VERSION
    kind: Literal["SchedulerConfig"] = KIND
    metadata: dict[str, Any] = {}
    explain: Literal["Conditions", "Status"] = "Conditions"
    defaults: Defaults = Defaults.model_construct()
    overcommit: Literal["Report", "Yield"] = "Report"
    coordination: Literal["None", "GlobalOrder"] = "None"
    capacity: Literal["Replicas", "Published"] = "Replicas"
    """Where the capacity that is taken is read: from every replica, or from what the clusters publish."""
    search_budget: Annotated[Whole, Field(ge=1, le=100_000_000)] = 100_000
    ttl: TtlConfig = TtlConfig.model_construct()
    cel_version: CelVersion = "1.36"
    """The Kubernetes release whose reading of selectors applies where a cluster does not say its own."""
    scale_selector: Literal["None", "Status"] = "None"
    """Whether `status.replicas.selector` is written: the label selector that the scale subresource serves."""
    priority_classes: tuple[PriorityClass, ...] = ()
    quotas: Annotated[tuple[Quota, ...], BeforeValidator(_not_too_long)] = ()

    @model_validator(mode="after")
    def _order_needs_replicas(self) -> Self:
        """Refuse a global order from sums: it places peers, and needs their replicas."""
        if self.capacity == "Published" and self.coordination == "GlobalOrder":
            raise ValueError(
                "capacity: Published cannot be combined with coordination: GlobalOrder, which places the"
                " deployments of the fleet from all its replicas"
            )
        return self

    @model_validator(mode="after")
    def _unique(self) -> Self:
        """Refuse names twice, and quotas where no replica of others is read to count them."""
        refuse_twice("priorityClasses", [priority_class.name for priority_class in self.priority_classes])
        refuse_twice("quotas", [quota.name for quota in self.quotas])
        if self.quotas and self.capacity == "Published":
            raise ValueError(
                "quotas cannot be combined with capacity: Published, which reads no replica of others"
            )
        return self

    @model_validator(mode="after")
    def _preemption_yields(self) -> Self:
        """Refuse preemption where nothing would give way.

        A victim leaves because its pool is overcommitted, which only `overcommit: Yield` answers.
        """
        classes = (f'priorityClasses: "{of.name}" preempts' for of in self.priority_classes if of.preempts)
        shares = (f'quotas: "{of.name}" has guaranteed' for of in self.quotas if of.guaranteed is not None)
        asked = next(iter([*classes, *shares]), "")
        if asked and (self.overcommit != "Yield" or self.capacity != "Replicas"):
            raise ValueError(
                f"{asked}, which needs overcommit: Yield and capacity: Replicas,"
                f" found overcommit: {self.overcommit} and capacity: {self.capacity}"
            )
        return self

    @property
    def preempts(self) -> bool:
        """Tell whether some class preempts or some quota is guaranteed: then replicas note how they stand."""
        return self.guarantees or any(priority_class.preempts for priority_class in self.priority_classes)

    @property
    def guarantees(self) -> bool:
        """Tell whether some quota is guaranteed: what is held beyond it is borrowed, and given back."""
        return any(quota.guaranteed is not None for quota in self.quotas)


# WorkloadConfig: the input of the step that turns a ModelReplica into pods. Every field is optional.

WholeSeconds = Annotated[Whole, Field(ge=1, le=604_800)]
DEADLINE_SECONDS = 7200
"""Loading weights takes longer than the ten minutes of Kubernetes."""


_IMAGE = re.compile(
    r"[A-Za-z0-9][A-Za-z0-9.-]*(:[0-9]+)?(/[a-z0-9]+([._-]+[a-z0-9]+)*)+"
    r"(:[A-Za-z0-9_][A-Za-z0-9_.-]*(@sha256:[0-9a-f]{64})?|@sha256:[0-9a-f]{64})",
    re.ASCII,
)


def _image(value: str) -> str:
    """Refuse what a kubelet could not pull, or would pull anew as `latest`."""
    if not _IMAGE.fullmatch(value):
        raise ValueError(
            "expected an image as registry.example.com/name:tag, or with @sha256: and its digest"
        )
    return value


ImageReference = Annotated[str, Field(max_length=512), AfterValidator(_image)]


class Images(StepInput):
    """The images that are ours to choose, each the one of the release where it is not set."""

    picker: ImageReference | None = None
    """The endpoint picker of every replica."""
    sidecar: ImageReference | None = None
    """The sidecar before a Decode engine."""
    loader: ImageReference | None = None
    """The loader of adapters beside an engine with room for some."""
    pull_secrets: Annotated[tuple[Name, ...], Field(max_length=8)] = ()
    """The Secrets that the image of the endpoint picker is pulled with."""


class WorkloadConfig(StepInput):
    """The choices of a platform engineer for all workloads of a Composition.

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
    """The evidence of a ready Deployment: its condition Available, or that and an available copy."""
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
    images: Images = Images.model_construct()
    """Where clusters pull what stands beside engines, for those that reach no public registry."""
    diagnose: Literal["Pods"] | None = None
    status: Literal["Engines"] | None = None
    ttl: TtlConfig = TtlConfig.model_construct()


# ClusterConfig: the input of the step that publishes an InferenceCluster. Every field is optional.


class RemoteName(StepInput):
    """An object on the cluster."""

    namespace: Name
    name: Name


class ClusterConfig(StepInput):
    """The choices of a platform engineer for all clusters of a Composition."""

    api_version: Literal["fleet-scheduler.fn.modelplane.ai/v1alpha1"] = API_VERSION
    kind: Literal["ClusterConfig"] = "ClusterConfig"
    metadata: dict[str, Any] = {}
    stack: Literal["Modelplane", "None"] | None = None
    """The ServingStack of Modelplane: composed, withdrawn, or (not set) kept where one is observed."""
    publish: Literal["Pools", "Attributes"] = "Pools"
    """Whether `status` gets what only our XRD declares: attributes of pools, charges, capabilities."""
    charges: Literal["Detailed", "Overcommitted"] = "Detailed"
    """The published charges: all that replicas hold of each pool, or only which hold more than they have."""
    accounting: Literal["Node", "Device"] | None = None
    """The accounting of pools that do not say how they are charged; needs `publish: Attributes`."""
    capacity: Literal["Declared", "Usable"] = "Declared"
    """Whether pools publish how many of their nodes can be used; needs `publish: Attributes`."""
    preemption: Literal["None", "Arbitrate"] = "None"
    """Whether the cluster says which replicas give way to one that preempts; needs `publish: Attributes`."""
    tenants: Literal["Ignore", "Charge"] = "Ignore"
    """Whether nodes with devices that others claim count; needs `capacity: Usable`."""
    gateway: RemoteName = RemoteName.model_construct(namespace=SYSTEM_NAMESPACE, name=CLUSTER_GATEWAY)
    leader_worker_set: RemoteName = RemoteName.model_construct(
        namespace="lws-system", name="lws-controller-manager"
    )
    heartbeat: RemoteName | None = None
    """The Lease whose `renewTime` is published as `status.heartbeat`; none where it is not set."""
    ttl: TtlConfig = TtlConfig.model_construct()

    @model_validator(mode="after")
    def _published(self) -> Self:
        """Refuse fields that would be published nowhere, naming what each needs."""
        if self.accounting is not None and self.publish != "Attributes":
            raise ValueError("accounting: published only with publish: Attributes")
        if self.capacity == "Usable" and self.publish != "Attributes":
            raise ValueError("capacity: Usable is published only with publish: Attributes")
        if self.preemption == "Arbitrate" and self.publish != "Attributes":
            raise ValueError("preemption: Arbitrate is published only with publish: Attributes")
        if self.tenants == "Charge" and self.capacity != "Usable":
            raise ValueError("tenants: Charge needs capacity: Usable")
        return self


# RoutingConfig: the input of the steps that route requests to endpoints. Every field is optional.

ANY_NAMESPACE = "*"
_DURATION = re.compile(r"([0-9]{1,5}(h|m|s|ms)){1,4}", re.ASCII)


class GatewayName(StepInput):
    """The Gateway of the control plane that serves the routes."""

    namespace: Name = SYSTEM_NAMESPACE
    name: Name = "modelplane"


def _address(value: str) -> str:
    """Refuse a path, a slash at the end and spaces: the address is the beginning of every URL."""
    scheme, separator, _ = value.partition("://")
    if (separator and scheme not in DEFAULT_PORTS) or value != value.strip() or value.endswith("/"):
        raise ValueError("expected a host, or a URL with http:// or https:// and without a / at its end")
    return value


def _duration(value: str) -> str:
    """Refuse what the Gateway API would refuse on the route, where nobody would look."""
    if not _DURATION.fullmatch(value):
        raise ValueError("expected a duration of Gateway API such as 30s or 1h30m, 0s for none")
    return value


class RoutingConfig(StepInput):
    """The choices of a platform engineer for all services of a Composition.

    Left out, everything is as Modelplane v0.3 makes it, but for the rows of docs/compatibility.md.
    """

    api_version: Literal["fleet-scheduler.fn.modelplane.ai/v1alpha1"] = API_VERSION
    kind: Literal["RoutingConfig"] = "RoutingConfig"
    metadata: dict[str, Any] = {}
    gateway: GatewayName = GatewayName.model_construct()
    gateway_address: Annotated[str, Field(max_length=253), AfterValidator(_address)] = ""
    """Where services are reached, said by hand: a host, or a URL. Then nobody else is asked."""
    address_from: Literal["InferenceGateway", "Gateway"] = "InferenceGateway"
    """Which object says where services are reached: the InferenceGateway `default`, or the Gateway."""
    allow_namespaces: tuple[Name, ...] = ()
    """Namespaces whose endpoints services of other namespaces may use; `*` for every one."""
    request_timeout: Annotated[str, AfterValidator(_duration)] = ""
    """The timeout of a request, as Gateway API has it; `0s` for none. Empty leaves it to the gateway."""
    rewrite_host: Flag = False
    """Whether requests to an endpoint that is a DNS name carry that name instead of the gateway's."""
    ttl: TtlConfig = TtlConfig.model_construct()
