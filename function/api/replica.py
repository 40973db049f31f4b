"""ModelReplica: one placed replica, read as leniently as it must be.

A replica exists and holds nodes whether or not every field of it can be read, so this reader never
refuses: it reads what it can, charges for that, and says `whole=False` where something could not be read.
It is written by hand, not with pydantic, because a fleet has tens of thousands of replicas and a foreign
one is only ever charged.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from function.api.fault import Fault, shown
from function.api.model import ConditionStatus, condition, whole

if TYPE_CHECKING:
    from function.exchange import Document, Shape

DEPLOYMENT_LABEL = "modelplane.ai/deployment"
CLUSTER_LABEL = "modelplane.ai/cluster"
INDEX_LABEL = "modelplane.ai/replica-index"
ALTERNATIVE_LABEL = "modelplane.ai/alternative"
WAS_READY_ANNOTATION = "modelplane.ai/was-ready"

ROLES = ("Standalone", "Leader", "Worker")

SHAPE: Shape = {
    "metadata": {
        "name": None,
        "namespace": None,
        "uid": None,
        "labels": {DEPLOYMENT_LABEL: None, CLUSTER_LABEL: None, INDEX_LABEL: None, ALTERNATIVE_LABEL: None},
        "annotations": {WAS_READY_ANNOTATION: None},
        "creationTimestamp": None,
        "deletionTimestamp": None,
        "ownerReferences": {"uid": None, "controller": None},
    },
    "spec": {
        "clusterName": None,
        "modelCacheRef": {"name": None},
        "engines": {
            "name": None,
            "copies": None,
            "members": {
                "role": None,
                "nodePoolName": None,
                "worker": {"nodes": None},
                "deviceRequests": {"name": None, "deviceClassName": None, "count": None},
            },
        },
    },
    "status": {"conditions": {"type": None, "status": None}},
}
"""The fields scheduling reads of a ModelReplica of the deployment it schedules."""

CHARGE_SHAPE: Shape = {
    "metadata": {
        "name": None,
        "namespace": None,
        "labels": {DEPLOYMENT_LABEL: None},
        "deletionTimestamp": None,
    },
    "spec": {
        "clusterName": None,
        "engines": {
            "copies": None,
            "members": {"role": None, "nodePoolName": None, "worker": {"nodes": None}, "deviceRequests": {}},
        },
    },
}
"""The fields it reads of anybody else's: what it takes to charge it."""


@dataclass(frozen=True, slots=True)
class StampedRequest:
    """A device request as it was stamped on a member: the claim that exists downstream."""

    name: str
    device_class: str
    count: int


@dataclass(frozen=True, slots=True)
class StampedMember:
    """One member as stamped: its role, the pool it is pinned to, what it claims."""

    role: str
    pool: str
    pods: int
    requests: tuple[StampedRequest, ...] = ()

    @property
    def nodes(self) -> int:
        """Nodes per copy: its pods when it claims a device, else 0."""
        return self.pods if self.requests else 0


@dataclass(frozen=True, slots=True)
class StampedEngine:
    """One engine as stamped."""

    name: str
    copies: int
    members: tuple[StampedMember, ...]


@dataclass(frozen=True, slots=True)
class ModelReplica:
    """One existing replica: where it is, what it holds, how it is doing."""

    name: str
    namespace: str = ""
    uid: str = ""
    deployment: str = ""
    cluster: str = ""
    index: int | None = None
    created: str = ""
    deleting: bool = False
    ready: bool | None = None
    owner: str | None = None
    """The uid of the controller; None when no controller owns it."""
    was_ready: bool = False
    alternative: str = ""
    cache: str = ""
    engines: tuple[StampedEngine, ...] = ()
    whole: bool = True
    """False when some part of it could not be read."""
    fault: str = ""
    """The first field that could not be read, and what was found there."""
    nodes: Mapping[str, int] = field(default_factory=dict)
    """Nodes held, by pool."""


class _Reader:
    """Reads fields of plain values and notes the first that was not what it should be."""

    __slots__ = ("fault",)

    def __init__(self) -> None:
        self.fault = ""

    @property
    def whole(self) -> bool:
        """Whether everything could be read."""
        return not self.fault

    def _odd(self, key: str, expected: str, value: object) -> None:
        if self.fault:
            return
        missing = value in (None, "", [])
        self.fault = str(
            Fault(key, "required, but missing or empty") if missing else Fault(key, expected, shown(value))
        )

    def text(self, holder: Mapping[str, Any], key: str) -> str:
        value = holder.get(key)
        if value is None or isinstance(value, str):
            return value or ""
        self._odd(key, "expected a string", value)
        return ""

    def map(self, holder: Mapping[str, Any], key: str) -> Mapping[str, Any]:
        value = holder.get(key)
        if value is None or isinstance(value, Mapping):
            return value or {}
        self._odd(key, "expected a map", value)
        return {}

    def maps(self, holder: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
        value = holder.get(key)
        if value is None:
            return []
        if not isinstance(value, list):
            self._odd(key, "expected a list", value)
            return []
        if all(isinstance(item, Mapping) for item in value):
            return value
        self._odd(key, "expected a list of maps", value)
        return [item for item in value if isinstance(item, Mapping)]

    def given(self, holder: Mapping[str, Any], key: str) -> str:
        """A text that must be there."""
        value = self.text(holder, key)
        if not value:
            self._odd(key, "expected a string", holder.get(key))
        return value

    def listed(self, holder: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
        """A list that must not be empty."""
        value = self.maps(holder, key)
        if not value:
            self._odd(key, "expected a list of maps", holder.get(key))
        return value

    def role(self, holder: Mapping[str, Any]) -> str:
        """A member's role; Standalone is the default."""
        value = self.text(holder, "role") or ROLES[0]
        if value not in ROLES:
            self._odd("role", f"expected one of {', '.join(ROLES)}", value)
        return value

    def number(self, holder: Mapping[str, Any], key: str) -> int:
        """A count of at least 1, which is also the default."""
        value = holder.get(key)
        if value is None:
            return 1
        try:
            read = whole(value)
        except ValueError:
            read = 0
        if read < 1:
            self._odd(key, "expected a whole number of at least 1", value)
            return 1
        return read


def _request(read: _Reader, plain: Mapping[str, Any]) -> StampedRequest:
    return StampedRequest(
        name=read.text(plain, "name"),
        device_class=read.text(plain, "deviceClassName"),
        count=read.number(plain, "count"),
    )


def _member(read: _Reader, plain: Mapping[str, Any]) -> StampedMember:
    role = read.role(plain)
    return StampedMember(
        role=role,
        pool=read.given(plain, "nodePoolName"),
        pods=_pods(read, plain),
        requests=tuple(_request(read, each) for each in read.maps(plain, "deviceRequests")),
    )


def _engine(read: _Reader, plain: Mapping[str, Any]) -> StampedEngine:
    return StampedEngine(
        name=read.given(plain, "name"),
        copies=read.number(plain, "copies"),
        members=tuple(_member(read, each) for each in read.listed(plain, "members")),
    )


def nodes_by_pool(engines: tuple[StampedEngine, ...]) -> dict[str, int]:
    """Nodes that stamped engines hold, by pool: pods x copies of the members that claim a device."""
    held: dict[str, int] = {}
    for engine in engines:
        for member in engine.members:
            if member.requests:
                held[member.pool] = held.get(member.pool, 0) + member.pods * engine.copies
    return held


def _index(text: str) -> int | None:
    canonical = text.isascii() and text.isdigit() and (text == "0" or text[0] != "0")
    return int(text) if canonical and len(text) < 10 else None  # noqa: PLR2004 - far above any real index


def _owner(references: list[Mapping[str, Any]]) -> str | None:
    for reference in references:
        if reference.get("controller") is True:
            return str(reference.get("uid") or "")
    return None


def _ready(read: _Reader, plain: Mapping[str, Any]) -> bool | None:
    told = tuple(
        ConditionStatus.model_construct(type=read.text(each, "type"), status=read.text(each, "status"))
        for each in read.maps(read.map(plain, "status"), "conditions")
        if each.get("type") == "Ready"
    )
    return condition(told, "Ready")


def parse_charge(document: Document) -> ModelReplica:
    """Read what it takes to charge a replica: who it is, where it is, the nodes it holds."""
    plain = document.project(CHARGE_SHAPE)
    read = _Reader()
    metadata, spec = read.map(plain, "metadata"), read.map(plain, "spec")
    held: dict[str, int] = {}
    for engine in read.maps(spec, "engines"):
        copies = read.number(engine, "copies")
        for member in read.maps(engine, "members"):
            if read.maps(member, "deviceRequests"):
                pool = read.text(member, "nodePoolName")
                held[pool] = held.get(pool, 0) + _pods(read, member) * copies
    return ModelReplica(
        name=read.text(metadata, "name"),
        namespace=read.text(metadata, "namespace"),
        deployment=read.text(read.map(metadata, "labels"), DEPLOYMENT_LABEL),
        cluster=read.text(spec, "clusterName"),
        deleting=metadata.get("deletionTimestamp") not in (None, ""),
        whole=read.whole,
        fault=read.fault,
        nodes=held,
    )


def _pods(read: _Reader, member: Mapping[str, Any]) -> int:
    is_worker = member.get("role") == "Worker"
    return read.number(read.map(member, "worker"), "nodes") if is_worker else 1


def parse(document: Document) -> ModelReplica:
    """Read one ModelReplica. Raises nothing but what decoding the document raises."""
    plain = document.project(SHAPE)
    read = _Reader()
    metadata, spec = read.map(plain, "metadata"), read.map(plain, "spec")
    labels = read.map(metadata, "labels")
    engines = tuple(_engine(read, each) for each in read.listed(spec, "engines"))
    index = read.text(labels, INDEX_LABEL)
    return ModelReplica(
        name=read.text(metadata, "name"),
        namespace=read.text(metadata, "namespace"),
        uid=read.text(metadata, "uid"),
        deployment=read.text(labels, DEPLOYMENT_LABEL),
        cluster=read.text(spec, "clusterName"),
        index=_index(index) if index else None,
        created=read.text(metadata, "creationTimestamp"),
        deleting=metadata.get("deletionTimestamp") not in (None, ""),
        ready=_ready(read, plain),
        owner=_owner(read.maps(metadata, "ownerReferences")),
        was_ready=read.text(read.map(metadata, "annotations"), WAS_READY_ANNOTATION) != "",
        alternative=read.text(labels, ALTERNATIVE_LABEL),
        cache=read.text(read.map(spec, "modelCacheRef"), "name"),
        engines=engines,
        whole=read.whole,
        fault=read.fault,
        nodes=nodes_by_pool(engines),
    )
