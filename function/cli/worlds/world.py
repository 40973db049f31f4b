"""Worlds: the files as Crossplane would present them, one request per deployment.

Several deployments are planned in the order of (creation, namespace, name), each seeing what the earlier
ones took.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from function.api import replica as replica_api
from function.api.names import KEY_ANNOTATION, Identity, endpoint_key, replica_key
from function.api.ownership import Owner, turn
from function.api.replica import CLUSTER_LABEL, INDEX_LABEL
from function.boundary import PlainDocument, Request, Response
from function.cli.worlds.derive import complete_all, with_charges
from function.deployment.forecast import Forecast, declared, forecast

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from function.boundary import Requirement, Reuse
    from function.cli.worlds.derive import Assumption
    from function.cli.worlds.manifests import Manifest, Manifests


@dataclass(slots=True)
class World:
    """Everything in the files, as it stands while one deployment after the other is planned."""

    deployments: list[Manifest]
    clusters: list[dict[str, Any]]
    replicas: list[dict[str, Any]]
    endpoints: list[dict[str, Any]]
    caches: list[dict[str, Any]]
    config: dict[str, Any] | None = None
    assumptions: list[Assumption] = field(default_factory=list)
    """What had to be assumed."""
    faults: dict[tuple[str, str], str] = field(default_factory=dict)
    """What could not be completed, by manifest and field."""

    @property
    def notes(self) -> list[str]:
        """What had to be assumed, a line for each cluster."""
        return list(map(str, self.assumptions))


@dataclass(frozen=True, slots=True)
class Planned:
    """One deployment, what was asked and what was answered."""

    manifest: Manifest
    request: Request
    forecast: Forecast

    @property
    def response(self) -> Response:
        """What Crossplane would be answered."""
        return self.forecast.response

    @property
    def title(self) -> str:
        """`namespace/name` of the deployment."""
        return f"{self.manifest.namespace}/{self.manifest.name}"


def _turn(manifest: Manifest) -> tuple[str, str, str]:
    return turn(str(manifest.metadata.get("creationTimestamp") or ""), manifest.namespace, manifest.name)


def world_of(manifests: Manifests) -> World:
    """Take the files as the state of a control plane. Raises BadInput."""
    completed = complete_all(manifests)
    configs = manifests["SchedulerConfig"]
    return World(
        deployments=sorted(manifests["ModelDeployment"], key=_turn),
        clusters=completed.clusters,
        replicas=[manifest.content for manifest in manifests["ModelReplica"]],
        endpoints=[manifest.content for manifest in manifests["ModelEndpoint"]],
        caches=[manifest.content for manifest in manifests["ModelCache"]],
        config=configs[0].content if configs else None,
        assumptions=completed.assumptions,
        faults=completed.faults,
    )


def _map(content: object, key: str) -> dict[str, Any]:
    value = content.get(key) if isinstance(content, dict) else None
    return value if isinstance(value, dict) else {}


def _owned_by(
    objects: Iterable[dict[str, Any]], deployment: Manifest, reuse: Reuse
) -> Iterator[dict[str, Any]]:
    owner = Owner(deployment.namespace, deployment.name, str(deployment.metadata.get("uid") or ""))
    for content in objects:
        if owner.owns(reuse.parsed(PlainDocument(content), replica_api.parse)):
            yield content


def _key(content: dict[str, Any]) -> str | None:
    """The key of an observed resource: as Crossplane noted it, else from the labels."""
    metadata = _map(content, "metadata")
    noted = _map(metadata, "annotations").get(KEY_ANNOTATION)
    if isinstance(noted, str):
        return noted
    labels = _map(metadata, "labels")
    cluster = labels.get(CLUSTER_LABEL) or _map(content, "spec").get("clusterName")
    index = str(labels.get(INDEX_LABEL, ""))
    if not isinstance(cluster, str) or not index.isdigit():
        return None
    of = replica_key if content.get("kind") == "ModelReplica" else endpoint_key
    return of(Identity(cluster, int(index)))


def _observed(world: World, deployment: Manifest, reuse: Reuse) -> dict[str, PlainDocument]:
    """The deployment's own replicas and endpoints; one being deleted has left Crossplane's sight."""
    observed = {}
    for content in _owned_by((*world.replicas, *world.endpoints), deployment, reuse):
        key = _key(content)
        if key is not None and not is_deleting(content):
            observed[key] = PlainDocument(content)
    return observed


def _delivered(world: World, requirement: Requirement) -> tuple[PlainDocument, ...]:
    """What Crossplane would fetch for a requirement: all objects of a kind, or the one of a name."""
    by_charges = (world.config or {}).get("capacity") == "Published"
    clusters = with_charges(world.clusters, world.replicas) if by_charges else world.clusters
    held = {
        "InferenceCluster": clusters,
        "ModelReplica": world.replicas,
        "ModelDeployment": [manifest.content for manifest in world.deployments],
        "ModelCache": world.caches,
    }[requirement.kind]
    if requirement.match_name is not None:
        wanted = (requirement.namespace or "", requirement.match_name)
        held = [content for content in held if identity_of(content) == wanted]
    if requirement.match_labels:
        held = [content for content in held if _carries(content, requirement)]
    return tuple(PlainDocument(content) for content in held)


def _carries(content: dict[str, Any], requirement: Requirement) -> bool:
    """Whether an object carries the labels that a requirement selects by."""
    labels = _map(_map(content, "metadata"), "labels")
    return all(labels.get(key) == value for key, value in requirement.match_labels)


def identity_of(content: dict[str, Any]) -> tuple[str, str]:
    """Namespace and name of an object: among those of its kind, no other has both."""
    metadata = _map(content, "metadata")
    return str(metadata.get("namespace") or ""), str(metadata.get("name") or "")


def is_deleting(content: dict[str, Any]) -> bool:
    """Whether an object is being deleted."""
    return bool(_map(content, "metadata").get("deletionTimestamp"))


def request_for(world: World, deployment: Manifest, reuse: Reuse) -> Request:
    """The last request that Crossplane would send for one deployment: all it requires is delivered."""
    observed = _observed(world, deployment, reuse)
    first = Request(PlainDocument(deployment.content), observed, input=world.config)
    required = {requirement.name: _delivered(world, requirement) for requirement in declared(first)}
    return replace(first, required=required)


def _take(world: World, deployment: Manifest, made: Forecast) -> None:
    """Let the later deployments see what this one placed."""
    for row in made.placed:
        resource = made.response.desired[row.key].resource
        owner = {"controller": True, "uid": str(deployment.metadata.get("uid") or deployment.title)}
        world.replicas.append({**resource, "metadata": {**resource["metadata"], "ownerReferences": [owner]}})


def plan_all(world: World, *, reuse: Reuse) -> Iterator[Planned]:
    """Plan every deployment, the oldest first."""
    for deployment in world.deployments:
        request = request_for(world, deployment, reuse)
        made = forecast(request, reuse=reuse)
        _take(world, deployment, made)
        yield Planned(deployment, request, made)
