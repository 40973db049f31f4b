"""ModelAdapter, a small fine-tune on a base model, and ModelAdapterPlacement, its place on one replica.

An engine says how much room it has for adapters (`AdapterRoom`, in the template of a ModelDeployment). A
ModelAdapter says on how many replicas of its base it is wanted. One ModelAdapterPlacement stands for each
replica that it is on: the next pass retains it, the replica's handler lists it by label, and it holds the
slot (`holders`).

The source, the rank and the base of an adapter are immutable. An engine that has an adapter by a name does
not load other weights under it, so other weights are another ModelAdapter.
"""

from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Annotated, Any, Self

from pydantic import Field, model_validator

from function.api import model
from function.api.fault import Malformed, shown
from function.api.model import Keyed, Model, Name, Named, Reader, Whole, mapping, mappings, string
from function.api.names import DNS_LABEL, NAME_LENGTH
from function.api.replica import LEAVING_ANNOTATION, owner_of
from function.boundary import Document, Reuse, Shape, Unreadable, frozen

ADAPTER_LABEL = "modelplane.ai/adapter"
REPLICA_LABEL = "modelplane.ai/replica"
PLACEMENT_KIND = "ModelAdapterPlacement"

NAME_DIGEST = 8
"""Hex digits that keep the placements of many pairs of adapter and replica apart in one namespace."""
MAX_SLOTS, MAX_RANK, MAX_OVERCOMMIT = 512, 512, 16
Capabilities = tuple[Name, ...]


class AdapterRoom(Keyed):
    """The room that an engine has for adapters."""

    slots: Annotated[Whole, Field(ge=1, le=MAX_SLOTS)]
    """Adapters that one batch of the engine can use."""
    max_rank: Annotated[Whole, Field(ge=1, le=MAX_RANK)] = 16
    capabilities: Capabilities = ()
    overcommit: Annotated[Whole, Field(ge=1, le=MAX_OVERCOMMIT)] = 1
    """Adapters for each slot: those beyond the slots wait in the memory of the host (opt-in)."""

    @property
    def adapters(self) -> int:
        """How many adapters the engine holds."""
        return self.slots * self.overcommit


def common_room(rooms: Iterable[AdapterRoom]) -> AdapterRoom | None:
    """Return the room of a replica: what all of its engines with room have. None where no engine has any.

    An adapter is loaded into every engine with room, so the least of them decides.
    """
    declared = tuple(rooms)
    if not declared:
        return None
    offered = set[str].intersection(*(set(room.capabilities) for room in declared))
    return AdapterRoom.model_construct(
        slots=min(room.adapters for room in declared),
        max_rank=min(room.max_rank for room in declared),
        capabilities=tuple(sorted(offered)),
    )


class Base(Model):
    """The replicas that an adapter can be on: those of a deployment, or those that have the labels."""

    deployment_name: str = ""
    match_labels: dict[str, str] = {}

    @model_validator(mode="after")
    def _one_of(self) -> Self:
        """Refuse both and neither: with both, which replicas are meant would depend on who reads it."""
        if bool(self.deployment_name) == bool(self.match_labels):
            raise ValueError("expected either deploymentName or matchLabels")
        return self


class _Spec(Model):
    """The spec of a ModelAdapter; which of its fields are immutable is a rule of the XRD."""

    base: Base
    source: Name
    replicas: Annotated[Whole, Field(ge=0, le=200)] = 1
    min_replicas: Annotated[Whole, Field(ge=0, le=200)] | None = None
    rank: Annotated[Whole, Field(ge=1, le=MAX_RANK)] = 16
    requirements: Capabilities = ()


class ModelAdapter(Named):
    """One adapter. Its name is a label's value, and the model that requests name."""

    spec: _Spec

    @model_validator(mode="after")
    def _labelled(self) -> Self:
        """Refuse a name that no label can hold: placements are listed by it."""
        if not DNS_LABEL.fullmatch(self.name):
            raise ValueError(
                f"expected a DNS label of at most 63 characters as its name, found {shown(self.name)}"
            )
        return self


_METADATA = dict.fromkeys(("name", "namespace", "uid"))
ADAPTER_SHAPE: Shape = model.shape_of(ModelAdapter) | {"metadata": _METADATA}
read_adapter = model.reader_of(ModelAdapter, ADAPTER_SHAPE)

PLACEMENT_SHAPE: Shape = {
    "metadata": {
        "name": None,
        "namespace": None,
        "labels": {ADAPTER_LABEL: None, REPLICA_LABEL: None},
        "creationTimestamp": None,
        "deletionTimestamp": None,
        "ownerReferences": {"uid": None, "controller": None},
    },
    "spec": {"adapter": None, "replica": None, "source": None},
}


@frozen
class AdapterPlacement:
    """An adapter on one replica, as an object that exists. A placement holds its slot until it is gone."""

    name: str
    adapter: str
    replica: str
    source: str
    created: str = ""
    terminating: bool = False
    owner: str | None = None
    """The uid of its controller; None without one."""


def read_placement(document: Document) -> AdapterPlacement:
    """Read one ModelAdapterPlacement, leniently: it holds a slot whether or not all of it can be read.

    Its labels stand in for what its spec does not say. Raises Unreadable for what cannot be decoded.
    """
    plain = document.project(PLACEMENT_SHAPE)
    metadata, spec = mapping(plain.get("metadata")), mapping(plain.get("spec"))
    labels = mapping(metadata.get("labels"))
    return AdapterPlacement(
        name=string(metadata.get("name")),
        adapter=string(spec.get("adapter")) or string(labels.get(ADAPTER_LABEL)),
        replica=string(spec.get("replica")) or string(labels.get(REPLICA_LABEL)),
        source=string(spec.get("source")),
        created=string(metadata.get("creationTimestamp")),
        terminating=bool(metadata.get("deletionTimestamp")),
        owner=owner_of(Reader().maps(metadata, "ownerReferences")),
    )


def read_placements(documents: Iterable[Document], reuse: Reuse) -> tuple[AdapterPlacement, ...]:
    """Read placements, by name. One that cannot be decoded is nobody's, and left out."""
    placements = []
    for document in documents:
        try:
            placements.append(reuse.parsed(document, read_placement))
        except Unreadable:
            continue
    return tuple(sorted(placements, key=lambda placement: placement.name))


def placement_name(adapter: str, replica: str) -> str:
    """Return the name of a placement, and of its endpoint: a DNS label, apart from that of any other pair."""
    digest = sha256(f"{adapter}/{replica}".encode()).hexdigest()[:NAME_DIGEST]
    return f"{f'{adapter}-{replica}'[: NAME_LENGTH - NAME_DIGEST - 1].rstrip('-')}-{digest}"


def holders(placements: Iterable[AdapterPlacement], room: int) -> tuple[AdapterPlacement, ...]:
    """Return the placements on one replica that have a slot, in the order of their turn.

    Two adapters that are placed at once from cached reads can take the same slot. Whoever looks computes the
    same holders: the adapter's handler gives the others' places up, the replica's loads only these.
    """
    staying = (placement for placement in placements if not placement.terminating)
    # By creation, then by name. What is not stored yet has no time, and comes last.
    return tuple(sorted(staying, key=lambda placed: (placed.created or "~", placed.name))[:room])


@frozen
class BaseReplica:
    """A replica of the base, as far as adapters are concerned."""

    name: str
    cluster: str
    room: AdapterRoom | None
    """The room that all of its engines with room have; None where it has none."""
    ready: bool | None
    terminating: bool
    configured: frozenset[str]
    """Adapters that its handler says are configured."""
    leaving: str = ""
    """Why its deployment is about to give it up; empty where it is not."""
    fault: str = ""
    """Why it cannot be read: then it takes no new adapter and keeps those that it has."""


BASE_SHAPE: Shape = {
    "metadata": {
        "name": None,
        "namespace": None,
        "annotations": {LEAVING_ANNOTATION: None},
        "deletionTimestamp": None,
    },
    "spec": {"clusterName": None, "engines": {"adapters": None}},
    "status": {"conditions": {"type": None, "status": None}, "adapters": {"name": None}},
}


def read_base(document: Document) -> BaseReplica:
    """Read one ModelReplica as a base, leniently. Raises Unreadable for what cannot be decoded."""
    plain = document.project(BASE_SHAPE)
    metadata, spec = mapping(plain.get("metadata")), mapping(plain.get("spec"))
    room, fault = None, ""
    try:
        room = room_of(spec)
    except Malformed as error:
        fault = str(error)
    reader = Reader()
    ready = reader.ready(plain)
    return BaseReplica(
        name=string(metadata.get("name")),
        cluster=string(spec.get("clusterName")),
        room=room,
        ready=ready,
        terminating=bool(metadata.get("deletionTimestamp")),
        configured=frozenset(
            string(entry.get("name")) for entry in mappings(mapping(plain.get("status")).get("adapters"))
        ),
        leaving=string(mapping(metadata.get("annotations")).get(LEAVING_ANNOTATION)),
        fault=fault or reader.fault,
    )


def room_of(spec: Mapping[str, Any]) -> AdapterRoom | None:
    """Return the room that the spec of a ModelReplica declares. Raises Malformed."""
    declared = [engine["adapters"] for engine in mappings(spec.get("engines")) if engine.get("adapters")]
    return common_room(AdapterRoom.parse(room) for room in declared)
