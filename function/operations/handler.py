"""Ask the deployments that a change of the fleet concerns to reconcile now: the step of a WatchOperation.

Up to 2.3 Crossplane watches no required resource, so a deployment learns of a change of a cluster when its
ttl runs out. A WatchOperation runs this step for every change of an InferenceCluster; from 2.4 on it brings
nothing sooner. What is desired here is the annotation `crossplane.io/reconcile-requested-at` on deployments;
a new value of it makes Crossplane reconcile them at once.

    requirements ▶ state of the fleet ▶ deployments concerned ▶ a token for each

Concerned are deployments with a replica on the changed cluster or on one that does not exist, and those
short of replicas. A token is a digest of what concerns the deployment, no time: a change that no placement
depends on asks nobody, however often it happens.

A change of a ModelEndpoint asks the ModelServices that route to it, likewise. A service follows its endpoints
when its ttl runs out; asked at once, it takes a failed replica out of its route within a second.

Nothing here decides a placement: whoever is asked in vain answers as before, which costs a call or two. So an
object that cannot be read counts as far as it can. Limits: WatchOperations are an alpha feature of
Crossplane, and without one everything happens a ttl later.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from functools import reduce
from operator import and_, itemgetter
from typing import Any, TypeVar

from function import boundary
from function.api.model import condition_of, mapping, plain_of, string
from function.api.names import API_VERSION, RECONCILE_ANNOTATION
from function.api.replica import DEPLOYMENT_LABEL
from function.api.routing import read_endpoint
from function.api.text import digest, one_line
from function.boundary import Desired, Document, Request, Requirement, Response, Result, Reuse, Shape, text_at
from function.deployment.snapshot.charges import read_cluster
from function.scheduler.scheduling_input import UnreadableCluster

WATCHED = "ops.crossplane.io/watched-resource"
"""The requirement under which Crossplane delivers the object that changed; empty when it was deleted."""
CLUSTERS, REPLICAS, DEPLOYMENTS = "clusters", "all-replicas", "all-deployments"
FLEET: Mapping[str, str] = {
    CLUSTERS: "InferenceCluster",
    REPLICAS: "ModelReplica",
    DEPLOYMENTS: "ModelDeployment",
}
"""The objects that must be delivered besides: requirement name and kind."""

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


@boundary.frozen
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


@boundary.frozen
class OwnedReplica:
    """A replica with its deployment and its cluster."""

    namespace: str
    name: str
    uid: str
    deployment: str
    cluster: str


@boundary.frozen
class FleetState:
    """The fleet as one Operation sees it."""

    changed: str
    """The name of the cluster that changed, "" when it is gone."""
    clusters: Mapping[str, str]
    """The fields that placements read of each cluster, as a text."""
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
    """Read what was delivered: clusters as placement reads them, replicas by cluster, and shortfalls."""
    clusters: dict[str, list[str]] = defaultdict(list)
    for document in request.required[CLUSTERS]:
        cluster = reuse.parsed(document, read_cluster)
        clusters[cluster.name].append(
            cluster.fault if isinstance(cluster, UnreadableCluster) else cluster.canonical
        )
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
        clusters={name: "\n".join(sorted(texts)) for name, texts in clusters.items()},
        replicas=tuple(sorted(f"{replica.namespace}/{replica.name} {replica.uid}" for replica in replicas)),
        deployments=tuple(
            sorted(deployments, key=lambda deployment: (deployment.namespace, deployment.name))
        ),
    )


def _deployment(document: Document) -> Deployment:
    """Read what decides whether a deployment is concerned; one that says nothing counts as short."""
    plain = plain_of(document, _DEPLOYMENT)
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
    """Read whose a replica is, and where."""
    plain = plain_of(document, _REPLICA)
    metadata = mapping(plain.get("metadata"))
    return OwnedReplica(
        namespace=string(metadata.get("namespace")),
        name=string(metadata.get("name")),
        uid=string(metadata.get("uid")),
        deployment=string(mapping(metadata.get("labels")).get(DEPLOYMENT_LABEL)),
        cluster=string(mapping(plain.get("spec")).get("clusterName")),
    )


SERVICES, ENDPOINTS = "services", "endpoints"
ROUTED: Mapping[str, str] = {SERVICES: "ModelService", ENDPOINTS: "ModelEndpoint"}
"""The objects that must be delivered: requirement name and kind."""

_LABELS: Shape = {"metadata": {"labels": None}}
_SELECTORS: Shape = {"spec": {"endpoints": None}}


@boundary.frozen
class Service:
    """A service, as far as it is asked."""

    namespace: str
    name: str
    uid: str
    requested: str
    """The token it was last asked with."""


class _EndpointFacts:
    """The facts of endpoints that a route may contain, digested once for selectors that match the same."""

    def __init__(self, facts: list[tuple[dict[str, Any], str]]) -> None:
        """Take the labels of every endpoint, and what a route may say of it."""
        self._facts = sorted((fact for _, fact in facts))
        # Endpoints by label, as bits: a selector is held against all of them at once.
        self._labelled: dict[tuple[str, object], int] = defaultdict(int)
        for at, (labels, _) in enumerate(sorted(facts, key=itemgetter(1))):
            for label in labels.items():
                if isinstance(label[1], str):
                    self._labelled[label] |= 1 << at
        self._digests: dict[int, str] = {}

    def of(self, selector: Mapping[str, Any]) -> str:
        """Return the digest for the endpoints that a selector matches, "" where it matches none."""
        if not selector or not all(isinstance(value, str) for value in selector.values()):
            return ""
        endpoints = reduce(and_, (self._labelled.get(label, 0) for label in selector.items()))
        if endpoints not in self._digests:
            bits = reversed(f"{endpoints:b}")
            matched = (fact for bit, fact in zip(bits, self._facts, strict=False) if bit == "1")
            self._digests[endpoints] = digest(matched) if endpoints else ""
        return self._digests[endpoints]


def service_tokens(request: Request, reuse: Reuse) -> dict[Service, str]:
    """Return the token of every service that is not being deleted, by namespace and name.

    It is a digest of what a route may say of the endpoints that the selectors match: a change of anything
    else, such as a condition, asks nobody.
    """
    facts: list[tuple[dict[str, str], str]] = []
    for document in request.required[ENDPOINTS]:
        fact = "/".join(text_at(document, "metadata", key) for key in ("namespace", "name"))
        try:
            endpoint = reuse.parsed(document, read_endpoint)
            fact += f" {endpoint.backend} {endpoint.spec.url} {endpoint.spec.rewrite_path}"
        except ValueError:
            # Nothing is known of it but that it changed: its version stands for what a route may say.
            fact += f" unreadable {text_at(document, 'metadata', 'resourceVersion')}"
        labels = mapping(plain_of(document, _LABELS), "metadata", "labels")
        facts.append((labels, fact))
    endpoint_facts = _EndpointFacts(facts)
    tokens = {}
    for document in request.required[SERVICES]:
        namespace, name, uid = (text_at(document, "metadata", key) for key in ("namespace", "name", "uid"))
        requested = text_at(document, "metadata", "annotations", RECONCILE_ANNOTATION)
        if not uid or text_at(document, "metadata", "deletionTimestamp"):
            continue
        groups = mapping(plain_of(document, _SELECTORS).get("spec")).get("endpoints")
        selected = []
        for number, group in enumerate(groups if isinstance(groups, list) else ()):
            # Of whatever namespace the endpoint is: a service that is asked in vain costs a call.
            selector = mapping(group, "selector", "matchLabels")
            digested = endpoint_facts.of(selector)
            selected += [f"{number} {digested}"] if digested else []
        tokens[Service(namespace, name, uid, requested)] = digest(sorted(selected))
    return {service: tokens[service] for service in sorted(tokens, key=lambda one: (one.namespace, one.name))}


LENGTH = 16
"""Hex digits of a token."""

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
    kind = _changed_kind(request)
    if kind == "ModelReplica":
        return ()
    kinds = ROUTED if kind == "ModelEndpoint" else FLEET
    return tuple(Requirement(name, API_VERSION, of) for name, of in kinds.items())


def run(request: Request, *, reuse: Reuse = boundary.NO_REUSE) -> Response:
    """Answer one call of a WatchOperation on InferenceClusters, ModelReplicas, or ModelEndpoints."""
    kind, requirements = _changed_kind(request), declared(request)
    if kind == "ModelReplica":
        # A replica that is still there changed for its own deployment, which Crossplane wakes. Only one that
        # is gone frees nodes for others, and of that Crossplane delivers nothing: its kind is "" then.
        return Response(requirements=requirements, settled=True)
    if any(requirement.name not in request.required for requirement in requirements):
        # Law 2: a part of the fleet would look like one on which clusters are gone.
        return Response(requirements=requirements)
    if kind == "ModelEndpoint":
        tokens = {service: token[:LENGTH] for service, token in service_tokens(request, reuse).items()}
        return _requesting(requirements, "ModelService", "services", tokens, len(tokens))
    state = read_state(request, reuse)
    fleet = digest((*(state.clusters[name] for name in sorted(state.clusters)), *state.replicas))
    asked = {}
    for deployment in state.concerned():
        # One that is short may be placed anywhere: its token is of all clusters, and of who takes room there.
        clusters = sorted(deployment.clusters)
        facts = (f"{at} {state.clusters.get(at, 'gone')}" for at in clusters)
        asked[deployment] = (fleet if deployment.short else digest(facts))[:LENGTH]
    return _requesting(requirements, "ModelDeployment", "deployments", asked, len(state.deployments))


def _requesting(
    requirements: tuple[Requirement, ...], kind: str, plural: str, tokens: Mapping[Concerned, str], total: int
) -> Response:
    """Ask those whose token is another than when they were asked last. `total`: how many there are.

    The annotation is desired and nothing else, because what is applied server-side is owned. The uid keeps an
    apply from creating an object anew when it was deleted a moment ago.
    """
    # Every Operation is a field manager of its own: an equal value would be one more owner, and a write.
    news = {concerned: token for concerned, token in tokens.items() if token != concerned.requested}
    desired: dict[str, Desired] = {}
    results: tuple[Result, ...] = ()
    for concerned, token in news.items():
        metadata = {
            "name": concerned.name,
            "namespace": concerned.namespace,
            "uid": concerned.uid,
            "annotations": {RECONCILE_ANNOTATION: token},
        }
        desired[f"{concerned.namespace}/{concerned.name}"] = Desired(
            {"apiVersion": API_VERSION, "kind": kind, "metadata": metadata}
        )
    if news:
        text = one_line(f"Asked {len(news)} {kind}s to reconcile: {', '.join(desired)}")
        results = (Result("NORMAL", "ReconcileRequested", text),)
    return Response(
        requirements=requirements,
        desired=desired,
        results=results,
        settled=True,
        counts={plural: total, f"{plural}_asked": len(news)},
    )


def _changed_kind(request: Request) -> str:
    """Return the kind of the object that changed, "" when it is gone: then Crossplane delivers nothing."""
    return next((text_at(document, "kind") for document in request.required[WATCHED]), "")
