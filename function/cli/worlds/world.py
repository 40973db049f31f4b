"""Worlds: the files as Crossplane would present them, one request per deployment.

`world_of` takes manifests for the state of a control plane: clusters are completed as the platform would,
everything else stands as written. `Presented` builds the request of one deployment, with its observed
resources and every requirement delivered. `plan_all` asks for each deployment in turn.

Several deployments are planned in the order of (creation, namespace, name), each seeing what the earlier
ones took. A control plane has no such order: there each deployment sees what stands when it is reconciled.
The order is that of `coordination: GlobalOrder`, and the same every time.
"""

from __future__ import annotations

from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeVar

from function.api import Malformed, ModelReplica, SchedulerConfig, replica as replica_api
from function.api.model import mapping, number, string
from function.api.names import KEY_ANNOTATION, Identity, desired_key
from function.api.ownership import Owner, turn
from function.api.priority import Priority
from function.api.replica import CLUSTER_LABEL, DEPLOYMENT_LABEL, INDEX_LABEL, read_index
from function.boundary import Document, JsonObject, PlainDocument, Request, Requirement, Reuse
from function.cli.worlds.derive import Assumption, ChargedClusters, complete_all
from function.deployment.forecast import Forecast, Shared, everything, forecast

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from function.adapter.forecast import AdapterForecast
    from function.cli.worlds.manifest import Manifest, Manifests

T = TypeVar("T")


class ParseMemo(Reuse):
    """The objects that one run of the command line has parsed, by the content it was parsed from.

    Nothing here changes an answer. What files hold has no version, and contents are never changed in place,
    so the object itself is the key. The server's memory (`boundary.memory`) recognises objects by their bytes
    and is bounded; this one ends with the command and needs no bound.
    """

    def __init__(self) -> None:
        """Remember nothing yet."""
        self.shared = Shared()
        """Answers about the fleet that deployments with equal needs have in common."""
        self._parsed: dict[tuple[int, object], tuple[dict[str, Any], Any]] = {}

    def parsed(self, document: Document, parse: Callable[[Document], T]) -> T:
        """Return `parse(document)`, from an earlier call with the same content if there was one."""
        if not isinstance(document, PlainDocument):
            return parse(document)
        key = (id(document.content), parse)
        entry = self._parsed.get(key)
        if entry is None:  # The content is kept along, so that its id stays its own.
            entry = self._parsed[key] = (document.content, parse(document))
        value: T = entry[1]
        return value


@dataclass(slots=True)
class World:
    """Everything in the files, as it stands while one deployment after the other is planned."""

    deployments: list[Manifest]
    clusters: list[dict[str, Any]]
    replicas: list[dict[str, Any]]
    endpoints: list[dict[str, Any]]
    caches: list[dict[str, Any]]
    config: dict[str, Any] = field(default_factory=dict)
    settings: SchedulerConfig | None = None
    """The config as it was read; None where it cannot be read, and is said to be wrong elsewhere."""
    assumptions: list[Assumption] = field(default_factory=list)
    """Facts that the files do not state, with the values that were assumed."""
    faults: dict[tuple[str, str], str] = field(default_factory=dict)
    """Pools and classes that could not be completed, by object and field."""
    memo: ParseMemo = field(default_factory=ParseMemo)
    """Objects of it that were parsed."""


class Planned:
    """One deployment, what was asked and what was answered."""

    def __init__(self, manifest: Manifest, request: Request, forecast: Forecast) -> None:
        self.manifest, self.request, self.forecast = manifest, request, forecast
        self.response = forecast.response
        """The response that Crossplane would get."""
        self.title = "/".join(manifest.identity)
        """`namespace/name` of the deployment."""


class PlannedAdapter:
    """One adapter, and what its handler answers."""

    def __init__(
        self,
        manifest: Manifest,
        forecast: AdapterForecast,
        placements: list[JsonObject],
        places: Iterable[tuple[str, str, str]],
    ) -> None:
        self.manifest, self.forecast, self.placements = manifest, forecast, placements
        """The placements are those that are desired."""
        self.places = tuple(places)
        """Replica, cluster, and `new` or `retained`."""
        self.title = "/".join(manifest.identity)
        """`namespace/name`."""
        self.wanted = number(manifest.spec.get("replicas"), 1)
        """How many replicas it is wanted on."""
        self.placed = number(mapping(forecast.response.status.get("replicas")).get("total"), 0)
        """How many replicas it is on, without those that are to be replaced."""
        self.message = forecast.response.conditions[0].message
        """Why it is on fewer than are wanted."""

    @property
    def plain(self) -> dict[str, Any]:
        """The answer as plain data."""
        replicas = [
            {"name": name, "cluster": cluster, "action": "Placed" if action == "new" else "Retained"}
            for name, cluster, action in self.places
        ]
        head = {"namespace": self.manifest.namespace, "name": self.manifest.name}
        conditions = [condition.plain for condition in self.forecast.response.conditions]
        return {**head, "conditions": conditions, "replicas": replicas}

    @property
    def explained(self) -> dict[str, Any]:
        """Why it is where it is, as plain data for `why` and the live page."""
        return {
            "namespace": self.manifest.namespace,
            "name": self.manifest.name,
            "wanted": self.wanted,
            "placed": self.placed,
            "conditions": [condition.plain for condition in self.forecast.response.conditions],
            "replicas": [row.plain for row in self.forecast.verdicts],
            "hints": [{"change": text, "unlocks": more} for text, more in self.forecast.hints],
        }

    @property
    def outcome(self) -> dict[str, Any]:
        """Where it ends, as plain data for `whatif`."""
        return {
            "wanted": self.wanted,
            "placed": self.placed,
            "reason": self.forecast.response.conditions[0].reason,
            "message": self.message,
            "replicas": [{"name": name, "cluster": cluster} for name, cluster, _ in self.places],
        }


class Simulation:
    """All rounds, and the world as it stands after the last."""

    def __init__(self, rounds: Sequence[tuple[Planned, ...]], world: World, *, settled: bool) -> None:
        self.rounds, self.world, self.settled = rounds, world, settled
        self.last = rounds[-1]
        """The round in which nothing changed any more."""
        self.plans = tuple(chain.from_iterable(rounds))
        """Every plan of every round."""


def replicas_of(planned: Planned) -> list[JsonObject]:
    """Return the ModelReplicas that a plan desires; one that exists has its uid and its conditions.

    They are shown to the handlers below as Crossplane would store them, under the name and the uid that
    they already have.
    """
    workloads = []
    for key, desired in sorted(planned.response.desired.items()):
        if desired.resource.get("kind") != "ModelReplica":
            continue
        held = planned.request.observed.get(key)
        existing = held.plain() if held is not None else {}
        stored = mapping(existing.get("metadata"))
        identity = {key: stored[key] for key in ("name", "uid", "creationTimestamp") if stored.get(key)}
        metadata = {**desired.resource["metadata"], **identity}
        workloads.append(
            {**desired.resource, "metadata": metadata, "status": mapping(existing.get("status"))}
        )
    return workloads


def world_of(manifests: Manifests) -> World:
    """Take the files as the state of a control plane. Raises BadInput."""
    completed = complete_all(manifests)
    configs = manifests["SchedulerConfig"]
    settings = None
    with suppress(Malformed):
        settings = SchedulerConfig.parse(configs[0].content) if configs else SchedulerConfig.model_construct()
    return World(
        deployments=_in_turn(manifests["ModelDeployment"], settings or SchedulerConfig()),
        clusters=completed.clusters,
        replicas=[manifest.content for manifest in manifests["ModelReplica"]],
        endpoints=[manifest.content for manifest in manifests["ModelEndpoint"]],
        caches=[manifest.content for manifest in manifests["ModelCache"]],
        config=configs[0].content if configs else {},
        settings=settings,
        assumptions=completed.assumptions,
        faults=completed.faults,
    )


def _in_turn(deployments: Iterable[Manifest], settings: SchedulerConfig) -> list[Manifest]:
    """Sort deployments as they take their turn: by the value of their class, then the oldest first.

    The settings of a config that cannot be read are the defaults: all deployments are in one class.
    """

    def order(manifest: Manifest) -> tuple[int, str, str, str]:
        stated = mapping(manifest.spec, "placement").get("priorityClassName")
        priority = Priority.of(settings, manifest.namespace, string(stated) or None)
        return (
            -priority.value,
            *turn(string(manifest.metadata.get("creationTimestamp")), *manifest.identity),
        )

    return sorted(deployments, key=order)


def _key(content: dict[str, Any]) -> str | None:
    """The key of an observed resource: as Crossplane noted it, else from the labels."""
    metadata = mapping(content, "metadata")
    noted = mapping(metadata, "annotations").get(KEY_ANNOTATION)
    if isinstance(noted, str):
        return noted
    labels = mapping(metadata, "labels")
    cluster = labels.get(CLUSTER_LABEL) or mapping(content, "spec").get("clusterName")
    index = read_index(str(labels.get(INDEX_LABEL, "")))
    if not isinstance(cluster, str) or index is None:
        return None
    identity = Identity(cluster, index)
    return desired_key("replica" if content.get("kind") == "ModelReplica" else "endpoint", identity)


def _carries(content: dict[str, Any], requirement: Requirement) -> bool:
    """Tell whether an object carries the labels that a requirement selects by."""
    labels = mapping(content, "metadata", "labels")
    return all(labels.get(key) == value for key, value in requirement.match_labels)


def _deployment_label(content: dict[str, Any]) -> str:
    """The deployment that a replica says it is of; "" where it says none."""
    label = mapping(content, "metadata", "labels").get(DEPLOYMENT_LABEL)
    return label if isinstance(label, str) else ""


def identity_of(content: dict[str, Any]) -> tuple[str, str]:
    """Namespace and name of an object: among those of its kind, no other has both."""
    metadata = mapping(content, "metadata")
    return str(metadata.get("namespace") or ""), str(metadata.get("name") or "")


class Presented:
    """A world as Crossplane would present it to one deployment after the other.

    What does not depend on the deployment is put together once, and not for each of hundreds.
    """

    def __init__(self, world: World) -> None:
        """Take a world; `add` lets it grow, and with it the world's own list of replicas."""
        self._world = world
        self._clusters = tuple(map(PlainDocument, world.clusters))
        by_charges = world.config.get("capacity") == "Published"
        self._charged = ChargedClusters(world.clusters) if by_charges else None
        self._replicas = list(map(PlainDocument, world.replicas))
        self._by_label: dict[str, list[PlainDocument]] = defaultdict(list)
        self._by_owner: dict[tuple[str, str], list[tuple[ModelReplica, PlainDocument]]] = defaultdict(list)
        for document in self._replicas:
            self._note_replica(document)
        for document in map(PlainDocument, world.endpoints):
            self._note_owner(document)

    def _note_replica(self, document: PlainDocument) -> None:
        """Let later requests find one replica: by its deployment, and on its cluster."""
        read = self._note_owner(document)
        self._by_label[_deployment_label(document.content)].append(document)
        if self._charged is not None:
            self._charged.add(read)

    def _note_owner(self, document: PlainDocument) -> ModelReplica:
        """Note who says that it owns a replica or an endpoint; return it as it was parsed."""
        read = self._world.memo.parsed(document, replica_api.parse)
        self._by_owner[read.namespace, read.deployment].append((read, document))
        return read

    def add(self, content: dict[str, Any]) -> None:
        """Let the later deployments see one more replica."""
        document = PlainDocument(content)
        self._world.replicas.append(content)
        self._replicas.append(document)
        self._note_replica(document)

    def request(self, deployment: Manifest) -> Request:
        """The last request that Crossplane would send for one deployment: all it requires is delivered.

        Crossplane asks until nothing more is required. Here everything that may be required is delivered at
        once.
        """
        first = Request(
            PlainDocument(deployment.content), self._observed(deployment), input=self._world.config
        )
        required = {requirement.name: self._delivered(requirement) for requirement in everything(first)}
        return replace(first, required=required)

    def _observed(self, deployment: Manifest) -> dict[str, PlainDocument]:
        """The deployment's own replicas and endpoints; one being deleted has left Crossplane's sight."""
        owner = Owner(deployment.namespace, deployment.name, str(deployment.metadata.get("uid") or ""))
        observed = {}
        for read, document in self._by_owner.get((owner.namespace, owner.name), ()):
            key = _key(document.content) if owner.owns(read) else None
            if key is not None and not mapping(document.content, "metadata").get("deletionTimestamp"):
                observed[key] = document
        return observed

    def _delivered(self, requirement: Requirement) -> tuple[PlainDocument, ...]:
        """Return the objects that Crossplane would fetch: all of a kind, or the one of a name."""
        documents = self._of_kind(requirement)
        if requirement.match_name is not None:
            wanted = (requirement.namespace or "", requirement.match_name)
            documents = (document for document in documents if identity_of(document.content) == wanted)
        if requirement.match_labels:
            documents = (document for document in documents if _carries(document.content, requirement))
        return tuple(documents)

    def _of_kind(self, requirement: Requirement) -> Iterable[PlainDocument]:
        """The objects of a kind; of replicas, only those of the deployment that is selected."""
        world, kind = self._world, requirement.kind
        if kind == "InferenceCluster":
            return self._clusters if self._charged is None else self._charged.documents
        if kind == "ModelReplica":
            deployment = dict(requirement.match_labels).get(DEPLOYMENT_LABEL)
            return self._replicas if deployment is None else self._by_label.get(deployment, ())
        held = {
            "ModelDeployment": [manifest.content for manifest in world.deployments],
            "ModelCache": world.caches,
        }
        return map(PlainDocument, held[kind])


def plan_all(world: World, *, reuse: ParseMemo | None = None) -> Iterator[Planned]:
    """Plan every deployment, the oldest first. `reuse`: another memory than the world's own.

    A deployment that is planned changes the world for the next: what it places is added before that one is
    asked.
    """
    presented, memo = Presented(world), reuse or world.memo
    for deployment in world.deployments:
        request = presented.request(deployment)
        made = forecast(request, reuse=memo, shared=memo.shared)
        # The later deployments see what was placed as the API server would store it, with its owner.
        owner = {"controller": True, "uid": str(deployment.metadata.get("uid") or deployment.title)}
        for row in made.placed:
            resource = made.response.desired[row.key].resource
            presented.add({**resource, "metadata": {**resource["metadata"], "ownerReferences": [owner]}})
        yield Planned(deployment, request, made)
