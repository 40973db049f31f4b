"""ModelReplica: one placed replica, read as leniently as it must be.

A replica exists and holds nodes whether or not every field of it can be read, so this reader never
refuses: it reads what it can, charges for that, and says `whole=False` where something could not be read.
It is written by hand, not with pydantic, because a fleet has tens of thousands of replicas and a foreign
one is only ever charged.

`parse` reads a replica of the deployment at hand, `parse_charge` what it takes to charge any other. What a
replica was stamped with counts, and not what its deployment says today: its claims exist downstream.
`api.workload` reads the same kind strictly, to make pods of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from function.api.model import Reader, mappings, string
from function.boundary import Document, Shape, frozen

NOTHING: Mapping[str, int] = MappingProxyType({})

DEPLOYMENT_LABEL = "modelplane.ai/deployment"
"""With its namespace and its controller, whose a replica is (`api.ownership`)."""
CLUSTER_LABEL = "modelplane.ai/cluster"
INDEX_LABEL = "modelplane.ai/replica-index"
"""With the cluster of its spec, its identity in a list, where no key tells it."""
ALTERNATIVE_LABEL = "modelplane.ai/alternative"
"""The shape that a replica was placed as; missing on one of the primary engines."""
PREEMPTING_LABEL = "modelplane.ai/preempting"
"""On a replica that was placed where others give way to it, until it is Ready."""
WAS_READY_ANNOTATION = "modelplane.ai/was-ready"
"""On a replica that was Ready once: it does not yield in an overcommitted pool any more (Law 2, 6).

The value is its uid. Crossplane applies to the name: where the replica was deleted after the snapshot, the
note reaches an object that takes its place and never served.
"""
WAS_READY_OF_OLD = "true"
"""The value that versions without the uid wrote. It counts on whatever object carries it, as it did."""
LEAVING_ANNOTATION = "modelplane.ai/leaving"
"""Why a replica with room for adapters is about to leave, so that they move before it does."""
PRIORITY_CLASS_ANNOTATION = "modelplane.ai/priority-class"
PRIORITY_ANNOTATION = "modelplane.ai/priority"
"""The class of its deployment, and the value of that: clusters and other deployments read them here."""
SPARE_ANNOTATION = "modelplane.ai/spare"
"""How many replicas its deployment can spare now, written by that: a number, or `all`."""
SPARE_ALL, MANY = "all", 1_000_000
"""The value where nothing limits it, and the number that it counts as."""
GUARANTEE_ANNOTATION = "modelplane.ai/guarantee"
"""How it stands to the guarantees of its namespace: a word and the names of the quotas."""
WITHIN, RECLAIMS, BORROWED = "Within", "Reclaims", "Borrowed"
"""Within what is guaranteed; the same, and others give way to it for that alone; beyond it."""
BORROWED_VALUE = -1
"""Borrowed capacity ranks below every class, and below none."""
DIGITS = 10
"""Digits of the value of a class at most."""

SHAPE: Shape = {
    "metadata": {
        "name": None,
        "namespace": None,
        "uid": None,
        "labels": {
            DEPLOYMENT_LABEL: None,
            CLUSTER_LABEL: None,
            INDEX_LABEL: None,
            ALTERNATIVE_LABEL: None,
            PREEMPTING_LABEL: None,
        },
        "annotations": {
            WAS_READY_ANNOTATION: None,
            PRIORITY_CLASS_ANNOTATION: None,
            PRIORITY_ANNOTATION: None,
            SPARE_ANNOTATION: None,
            GUARANTEE_ANNOTATION: None,
        },
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
                "deviceRequests": {
                    "name": None,
                    "deviceClassName": None,
                    "count": None,
                    "selectors": {"cel": None},
                },
                "deviceConstraints": {"requests": None, "matchAttribute": None},
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


@frozen
class StampedRequest:
    """A device request as it was stamped on a member: the claim that exists downstream."""

    name: str
    device_class: str
    count: int
    selectors: tuple[str, ...] = ()
    """The selectors of its devices; a text that is none in place of one that cannot be read."""


@frozen
class StampedConstraint:
    """An attribute that the devices of some requests must have in common, as stamped on a member."""

    attribute: str
    requests: tuple[str, ...] = ()
    """Their names; none means all of them."""


@frozen
class StampedMember:
    """One member as stamped: its role, the pool it is pinned to, what it claims."""

    role: str
    pool: str
    pods: int
    requests: tuple[StampedRequest, ...] = ()
    constraints: tuple[StampedConstraint, ...] = ()


@frozen
class StampedEngine:
    """One engine as stamped."""

    name: str
    copies: int
    members: tuple[StampedMember, ...]


class GuaranteeShare(NamedTuple):
    """How a replica stands to what the quotas of its namespace guarantee."""

    quotas: frozenset[str]
    """Names of all quotas of its namespace that guarantee something: its team."""
    borrowed: bool = False
    """Whether it is held beyond the guarantee."""
    reclaims: bool = False
    """Whether others give way to it for the guarantee alone, whatever its class."""

    def __str__(self) -> str:
        """`Borrowed team-a,team-a-dev`."""
        word = BORROWED if self.borrowed else RECLAIMS if self.reclaims else WITHIN
        return f"{word} {','.join(sorted(self.quotas))}"


class PriorityNotes(NamedTuple):
    """The standing of a replica among others: the texts of its annotations, empty where one is missing."""

    class_name: str = ""
    priority: str = ""
    spare: str = ""
    guarantee: str = ""

    @property
    def value(self) -> int | None:
        """The value of its class; None where that cannot be read, which is doubt."""
        return _number(self.priority)

    @property
    def share(self) -> GuaranteeShare | None:
        """How it stands to guarantees; None where it stands to none, or that cannot be read."""
        word, _, names = self.guarantee.partition(" ")
        readable = word in (WITHIN, RECLAIMS, BORROWED) and names
        return (
            GuaranteeShare(frozenset(names.split(",")), word == BORROWED, word == RECLAIMS)
            if readable
            else None
        )

    @property
    def rank(self) -> int | None:
        """Where it ranks among others: by its class, or below all of them; None is doubt."""
        share = self.share
        if self.value is None or (self.guarantee and share is None):
            return None
        return BORROWED_VALUE if share is not None and share.borrowed else self.value

    @property
    def spared(self) -> int:
        """How many replicas its deployment can spare; none where that cannot be read (Law 2)."""
        return MANY if self.spare == SPARE_ALL else _number(self.spare) or 0

    @property
    def annotations(self) -> dict[str, str]:
        """The annotations as they are written."""
        stated = (
            (PRIORITY_CLASS_ANNOTATION, self.class_name),
            (PRIORITY_ANNOTATION, self.priority),
            (SPARE_ANNOTATION, self.spare),
            (GUARANTEE_ANNOTATION, self.guarantee),
        )
        return {name: text for name, text in stated if text}


class ModelReplica(NamedTuple):
    """One existing replica: where it is, what it holds, how it is doing.

    A tuple, because a fleet has tens of thousands and those are made in a third of the time.
    """

    name: str
    namespace: str = ""
    uid: str = ""
    deployment: str = ""
    cluster: str = ""
    index: int | None = None  # type: ignore[assignment] # Hides the method of tuples, which nobody needs.
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
    nodes: Mapping[str, int] = NOTHING
    """Nodes held, by pool."""
    preempting: bool = False
    notes: PriorityNotes | None = None
    """The annotations about its priority as they stand; None where it has none, as most have not."""

    @property
    def priority(self) -> int | None:
        """Where it ranks, as its deployment noted it: the value of its class, or below all where borrowed.

        None where that is not known.
        """
        return self.notes.rank if self.notes else None

    @property
    def share(self) -> GuaranteeShare | None:
        """How it stands to guarantees, as its deployment noted it."""
        return self.notes.share if self.notes else None

    @property
    def holder(self) -> str:
        """Its holder, for people: `namespace/deployment`, or itself where it names no deployment."""
        return f"{self.namespace}/{self.deployment or self.name}"


def _constraint(plain: Mapping[str, Any]) -> StampedConstraint:
    """Read a constraint. One whose requests cannot be read covers all of them, which is stricter."""
    named = plain.get("requests")
    names = named if isinstance(named, list) else ()
    return StampedConstraint(string(plain.get("matchAttribute")), tuple(map(string, names)))


def _member(read: Reader, plain: Mapping[str, Any]) -> StampedMember:
    """Read one member: its role, its pool, its pods, and what each of them claims."""
    return StampedMember(
        role=read.role(plain),
        pool=read.given(plain, "nodePoolName"),
        pods=_pods(read, plain),
        requests=tuple(
            StampedRequest(
                name=read.text(entry, "name"),
                device_class=read.text(entry, "deviceClassName"),
                count=read.number(entry, "count"),
                selectors=tuple(string(item.get("cel")) for item in mappings(entry.get("selectors"))),
            )
            for entry in read.maps(plain, "deviceRequests")
        ),
        constraints=tuple(map(_constraint, mappings(plain.get("deviceConstraints")))),
    )


def nodes_by_pool(engines: tuple[StampedEngine, ...]) -> dict[str, int]:
    """Nodes that stamped engines hold, by pool: pods x copies of the members that claim a device."""
    held: dict[str, int] = {}
    for engine in engines:
        for member in engine.members:
            if member.requests:
                held[member.pool] = held.get(member.pool, 0) + member.pods * engine.copies
    return held


def read_index(text: str) -> int | None:
    """Read an index in its one spelling: `01` would be the same replica as `1`."""
    canonical = text.isascii() and text.isdigit() and (text == "0" or text[0] != "0")
    return int(text) if canonical and len(text) < 10 else None  # noqa: PLR2004 - far above any real index


def _number(text: str) -> int | None:
    """Read a whole number that we wrote; None for anything else, which is doubt."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= DIGITS else None


def owner_of(references: list[Mapping[str, Any]]) -> str | None:
    """Return the uid of the controller among owner references; None without one."""
    for reference in references:
        if reference.get("controller") is True:
            return str(reference.get("uid") or "")
    return None


def parse_charge(document: Document) -> ModelReplica:
    """Read what it takes to charge a replica: who it is, where it is, the nodes it holds."""
    replica = document.opened().charge(ModelReplica, DEPLOYMENT_LABEL)
    return charge(document.project(CHARGE_SHAPE)) if replica is None else replica


def charge(plain: Mapping[str, Any]) -> ModelReplica:
    """Read the same leniently from plain values."""
    read = Reader()
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
        whole=not read.fault,
        fault=read.fault,
        nodes=held,
    )


def _pods(read: Reader, member: Mapping[str, Any]) -> int:
    """Return the pods of one copy: only a Worker has several."""
    is_worker = member.get("role") == "Worker"
    return read.number(read.map(member, "worker"), "nodes") if is_worker else 1


def parse(document: Document) -> ModelReplica:
    """Read one ModelReplica. Raises nothing but what decoding the document raises."""
    plain = document.project(SHAPE)
    read = Reader()
    metadata, spec = read.map(plain, "metadata"), read.map(plain, "spec")
    labels, annotations = read.map(metadata, "labels"), read.map(metadata, "annotations")
    engines = tuple(
        StampedEngine(
            name=read.given(engine, "name"),
            copies=read.number(engine, "copies"),
            members=tuple(_member(read, member) for member in read.listed(engine, "members")),
        )
        for engine in read.listed(spec, "engines")
    )
    index, uid = read.text(labels, INDEX_LABEL), read.text(metadata, "uid")
    owner = owner_of(read.maps(metadata, "ownerReferences"))
    was_ready = read.text(annotations, WAS_READY_ANNOTATION)
    # What Crossplane creates has a controller. Without one it may be restored, with pods that go on serving.
    doubtful = uid == "" or owner is None
    return ModelReplica(
        name=read.text(metadata, "name"),
        namespace=read.text(metadata, "namespace"),
        uid=uid,
        deployment=read.text(labels, DEPLOYMENT_LABEL),
        cluster=read.text(spec, "clusterName"),
        index=read_index(index),
        created=read.text(metadata, "creationTimestamp"),
        deleting=metadata.get("deletionTimestamp") not in (None, ""),
        ready=read.ready(plain),
        owner=owner,
        was_ready=was_ready != "" and (doubtful or was_ready in (uid, WAS_READY_OF_OLD)),
        alternative=read.text(labels, ALTERNATIVE_LABEL),
        cache=read.text(read.map(spec, "modelCacheRef"), "name"),
        engines=engines,
        whole=not read.fault,
        fault=read.fault,
        nodes=nodes_by_pool(engines),
        preempting=labels.get(PREEMPTING_LABEL) == "true",
        notes=_notes(annotations) if PRIORITY_ANNOTATION in annotations else None,
    )


def _notes(annotations: Mapping[str, Any]) -> PriorityNotes:
    """Read what is noted of its priority. A text that is none is no fault of the replica."""
    names = (PRIORITY_CLASS_ANNOTATION, PRIORITY_ANNOTATION, SPARE_ANNOTATION, GUARANTEE_ANNOTATION)
    return PriorityNotes(*(string(annotations.get(name)) for name in names))
