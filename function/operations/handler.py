"""Ask the deployments that a change of the fleet concerns to reconcile now: the step of a WatchOperation.

Crossplane does not watch required resources, so a deployment learns of a change of a cluster when its ttl
runs out. A WatchOperation runs this step for every change of an InferenceCluster. What is desired here is
the annotation `crossplane.io/reconcile-requested-at` on deployments; a new value of it makes Crossplane
reconcile them at once.

    requirements ▶ state of the fleet ▶ deployments concerned ▶ a token for each

Concerned are deployments with a replica on the changed cluster or on one that does not exist, and those
short of replicas. A token is a digest of what concerns the deployment, no time: a change that no placement
depends on asks nobody, however often it happens.

A change of a ModelEndpoint asks the ModelServices that route to it, likewise (`services`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from function.api.model import condition_of, mapping, string
from function.api.names import API_VERSION, RECONCILE_ANNOTATION
from function.api.replica import DEPLOYMENT_LABEL
from function.api.routing import read_endpoint
from function.api.text import one_line
from function.boundary import (
    Desired,
    Document,
    NoReuse,
    Request,
    Requirement,
    Response,
    Result,
    Reuse,
    Shape,
    Unreadable,
    text_at,
)
from function.deployment.explain.clusters import digest
from function.deployment.snapshot.charges import read_cluster
from function.scheduler.scheduling_input import UnreadableCluster

# Read the fleet for an Operation: clusters as placement reads them, replicas by cluster, and shortfalls.
#
# An object that cannot be read counts as far as it can: asking a deployment once too often costs a call.


WATCHED = "ops.crossplane.io/watched-resource"
"""The requirement under which Crossplane delivers the object that changed; empty when it was deleted."""
CLUSTERS, REPLICAS, DEPLOYMENTS = "clusters", "all-replicas", "all-deployments"
FLEET: Mapping[str, str] = {
    CLUSTERS: "InferenceCluster",
    REPLICAS: "ModelReplica",
    DEPLOYMENTS: "ModelDeployment",
}
"""What must be delivered besides: requirement name and kind."""

_DEPLOYMENT: Shape = {
    "metadata": {
        "namespace": None,
        "name": None,
        "uid": None,
        "resourceVersion": None,
        "deletionTimestamp": None,
        "annotations": {RECONCILE_ANNOTATION: None},
    },
    "spec": {"replicas": None},
    "status": {"replicas": {"total": None}, "conditions": {"type": None, "status": None}},
}
_REPLICA: Shape = {
    "metadata": {"namespace": None, "name": None, "uid": None, "labels": {DEPLOYMENT_LABEL: None}},
    "spec": {"clusterName": None},
}


@dataclass(frozen=True, slots=True)
class Deployment:
    """The facts that decide whether a deployment is concerned."""

    namespace: str
    name: str
    uid: str
    deleting: bool
    version: str
    """Its resource version."""
    requested: str
    """The token it was last asked with."""
    short: bool
    """Whether it wants something from the fleet: not everything is placed, or it has a problem."""
    clusters: frozenset[str] = frozenset()
    """Clusters its replicas are on."""


@dataclass(frozen=True, slots=True)
class OwnedReplica:
    """Whose a replica is, and where."""

    namespace: str
    name: str
    uid: str
    deployment: str
    cluster: str


@dataclass(frozen=True, slots=True)
class FleetState:
    """The fleet as one Operation sees it."""

    changed: str
    """The name of the cluster that changed, "" when it is gone."""
    clusters: Mapping[str, str]
    """What placements read of each cluster, as a text."""
    replicas: tuple[str, ...]
    """Every replica by namespace, name and uid, sorted."""
    deployments: tuple[Deployment, ...]
    """By namespace and name."""

    def concerned(self) -> tuple[Deployment, ...]:
        """Those with a replica on the changed cluster or on one that does not exist, and the short ones."""
        return tuple(
            deployment
            for deployment in self.deployments
            if not deployment.deleting
            and (
                deployment.short
                or self.changed in deployment.clusters
                or deployment.clusters - self.clusters.keys()
            )
        )


def read_state(request: Request, reuse: Reuse) -> FleetState:
    """Read what was delivered."""
    clusters = _clusters(request, reuse)
    replicas = [reuse.parsed(document, _replica) for document in request.required[REPLICAS]]
    on: dict[tuple[str, str], set[str]] = defaultdict(set)
    for replica in replicas:
        on[replica.namespace, replica.deployment].add(replica.cluster)
    parsed = (reuse.parsed(document, _deployment) for document in request.required[DEPLOYMENTS])
    deployments = [
        replace(deployment, clusters=frozenset(on[deployment.namespace, deployment.name]))
        for deployment in parsed
        if deployment.uid
    ]
    return FleetState(
        changed=next((text_at(watched, "metadata", "name") for watched in request.required[WATCHED]), ""),
        clusters=clusters,
        replicas=tuple(sorted(f"{replica.namespace}/{replica.name} {replica.uid}" for replica in replicas)),
        deployments=tuple(
            sorted(deployments, key=lambda deployment: (deployment.namespace, deployment.name))
        ),
    )


def _clusters(request: Request, reuse: Reuse) -> dict[str, str]:
    texts: dict[str, list[str]] = defaultdict(list)
    for document in request.required[CLUSTERS]:
        cluster = reuse.parsed(document, read_cluster)
        texts[cluster.name].append(
            cluster.fault if isinstance(cluster, UnreadableCluster) else cluster.canonical
        )
    return {name: "\n".join(sorted(texts[name])) for name in texts}


def _deployment(document: Document) -> Deployment:
    plain = _projected(document, _DEPLOYMENT)
    metadata, status = mapping(plain.get("metadata")), mapping(plain.get("status"))
    wanted, total = mapping(plain.get("spec")).get("replicas"), mapping(status.get("replicas")).get("total")
    scheduled, _ = condition_of(status, "ReplicasScheduled")
    return Deployment(
        namespace=string(metadata.get("namespace")),
        name=string(metadata.get("name")),
        uid=string(metadata.get("uid")),
        deleting=bool(metadata.get("deletionTimestamp")),
        version=string(metadata.get("resourceVersion")),
        requested=string(mapping(metadata.get("annotations")).get(RECONCILE_ANNOTATION)),
        short=not scheduled or wanted != total,
    )


def _replica(document: Document) -> OwnedReplica:
    plain = _projected(document, _REPLICA)
    metadata = mapping(plain.get("metadata"))
    return OwnedReplica(
        namespace=string(metadata.get("namespace")),
        name=string(metadata.get("name")),
        uid=string(metadata.get("uid")),
        deployment=string(mapping(metadata.get("labels")).get(DEPLOYMENT_LABEL)),
        cluster=string(mapping(plain.get("spec")).get("clusterName")),
    )


def _projected(document: Document, shape: Shape) -> dict[str, Any]:
    try:
        return document.project(shape)
    except Unreadable:
        return {}


# Read services for an Operation: what each would route to, as a token.
#
# A service follows its endpoints when its ttl runs out. Asked at once, it takes a failed replica out of its
# route within a second. The token is a digest of all endpoints that its selectors match: a change of what
# no route says, such as a condition, asks nobody.

SERVICES, ENDPOINTS = "services", "endpoints"
ROUTED: Mapping[str, str] = {SERVICES: "ModelService", ENDPOINTS: "ModelEndpoint"}
"""What must be delivered: requirement name and kind."""

_LABELS: Shape = {"metadata": {"labels": None}}
_SELECTORS: Shape = {"spec": {"endpoints": None}}


@dataclass(frozen=True, slots=True)
class Service:
    """A service, as far as it is asked."""

    namespace: str
    name: str
    uid: str
    requested: str
    """The token it was last asked with."""


def service_tokens(request: Request, reuse: Reuse) -> dict[Service, str]:
    """Return the token of every service that is not being deleted, by namespace and name."""
    facts = [(_labels(document), _fact(document, reuse)) for document in request.required[ENDPOINTS]]
    tokens = {}
    for document in request.required[SERVICES]:
        namespace, name, uid = (text_at(document, "metadata", key) for key in ("namespace", "name", "uid"))
        requested = text_at(document, "metadata", "annotations", RECONCILE_ANNOTATION)
        if uid and not text_at(document, "metadata", "deletionTimestamp"):
            tokens[Service(namespace, name, uid, requested)] = digest(
                sorted(
                    f"{number} {fact}"
                    for number, selector in enumerate(_selectors(document))
                    for labels, fact in facts
                    if selector and selector.items() <= labels.items()
                )
            )
    return {service: tokens[service] for service in sorted(tokens, key=lambda one: (one.namespace, one.name))}


def _fact(document: Document, reuse: Reuse) -> str:
    """Return what a route may say of an endpoint; of one that cannot be read, its version."""
    where = "/".join(text_at(document, "metadata", key) for key in ("namespace", "name"))
    try:
        endpoint = reuse.parsed(document, read_endpoint)
    except ValueError:
        return f"{where} unreadable {text_at(document, 'metadata', 'resourceVersion')}"
    return f"{where} {endpoint.backend} {endpoint.spec.url} {endpoint.spec.rewrite_path}"


def _labels(document: Document) -> dict[str, str]:
    try:
        return mapping(mapping(document.project(_LABELS).get("metadata")).get("labels"))
    except Unreadable:
        return {}


def _selectors(service: Document) -> list[dict[str, str]]:
    """Return the labels that each group selects by, in whatever namespace: asking in vain costs a call."""
    try:
        groups = mapping(service.project(_SELECTORS).get("spec")).get("endpoints")
    except Unreadable:
        return []
    return [
        mapping(mapping(mapping(group).get("selector")).get("matchLabels"))
        for group in (groups if isinstance(groups, list) else ())
    ]


LENGTH = 16
"""Hex digits of a token."""
NO_REUSE = NoReuse()

Concerned = TypeVar("Concerned", Deployment, Service)


def is_operation(request: Request) -> bool:
    """Tell whether the call is a step of an Operation: it has no composite, but a watched resource.

    A composite that cannot be read may have composed something, which an Operation never has (Law 2: doubt).
    """
    if WATCHED not in request.required:
        return False
    return not text_at(request.composite, "kind") and not request.observed


def declared(request: Request) -> tuple[Requirement, ...]:
    """Declare the requirements of a changed object by its kind; none for a replica."""
    match _changed_kind(request):
        case "ModelReplica":
            return ()
        case "ModelEndpoint":
            return _requirements(ROUTED)
    return _requirements(FLEET)


def condition_types(_: Request) -> tuple[str, ...]:
    """None: an Operation has no composite that could have conditions."""
    return ()


def run(request: Request, *, reuse: Reuse = NO_REUSE) -> Response:
    """Answer one call of a WatchOperation on InferenceClusters, ModelReplicas, or ModelEndpoints."""
    kind, requirements = _changed_kind(request), declared(request)
    if kind == "ModelReplica":
        # Only one that is gone frees nodes for others; of one that is there its own deployment hears.
        return Response(requirements=requirements, settled=True)
    if any(requirement.name not in request.required for requirement in requirements):
        return Response(requirements=requirements)
    if kind == "ModelEndpoint":
        return _ask_services(request, requirements, reuse)
    state = read_state(request, reuse)
    tokens = {deployment: _token(deployment, state) for deployment in state.concerned()}
    return _requesting(requirements, "ModelDeployment", "deployments", tokens, len(state.deployments))


def _ask_services(request: Request, requirements: tuple[Requirement, ...], reuse: Reuse) -> Response:
    """Ask the services whose endpoints are not what they were when they were asked last."""
    tokens = {service: token[:LENGTH] for service, token in service_tokens(request, reuse).items()}
    return _requesting(requirements, "ModelService", "services", tokens, len(tokens))


def _requesting(
    requirements: tuple[Requirement, ...], kind: str, plural: str, tokens: Mapping[Concerned, str], total: int
) -> Response:
    """Ask those whose token is another than when they were asked last. `total`: how many there are."""
    # Every Operation is a field manager of its own: an equal value would be one more owner, and a write.
    news = {concerned: token for concerned, token in tokens.items() if token != concerned.requested}
    return Response(
        requirements=requirements,
        desired=_requests(kind, news),
        results=_results(kind, news),
        settled=True,
        counts={plural: total, f"{plural}_asked": len(news)},
    )


def _requirements(kinds: Mapping[str, str]) -> tuple[Requirement, ...]:
    return tuple(Requirement(name, API_VERSION, kind) for name, kind in kinds.items())


def _changed_kind(request: Request) -> str:
    """The kind of the object that changed, "" when it is gone: then Crossplane delivers nothing."""
    return next((text_at(document, "kind") for document in request.required[WATCHED]), "")


def _requests(kind: str, tokens: Mapping[Concerned, str]) -> dict[str, Desired]:
    """Desire the annotation and nothing else: what is applied server-side is owned.

    The uid keeps an apply from creating an object anew when it was deleted a moment ago.
    """
    return {
        f"{concerned.namespace}/{concerned.name}": Desired(
            {
                "apiVersion": API_VERSION,
                "kind": kind,
                "metadata": {
                    "name": concerned.name,
                    "namespace": concerned.namespace,
                    "uid": concerned.uid,
                    "annotations": {RECONCILE_ANNOTATION: token},
                },
            }
        )
        for concerned, token in tokens.items()
    }


def _token(deployment: Deployment, state: FleetState) -> str:
    """Return the same text for the same state of what concerns the deployment.

    For one that is short that is the whole fleet: its clusters and who takes up room on them.
    """
    if deployment.short:
        return digest((*(state.clusters[name] for name in sorted(state.clusters)), *state.replicas))[:LENGTH]
    return digest(f"{name} {state.clusters.get(name, 'gone')}" for name in sorted(deployment.clusters))[
        :LENGTH
    ]


def _results(kind: str, tokens: Mapping[Concerned, str]) -> tuple[Result, ...]:
    if not tokens:
        return ()
    names = ", ".join(f"{concerned.namespace}/{concerned.name}" for concerned in tokens)
    text = one_line(f"Asked {len(tokens)} {kind}s to reconcile: {names}")
    return (Result("NORMAL", "ReconcileRequested", text),)
