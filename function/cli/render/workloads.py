"""Compose what stands below a plan: workloads on their clusters and routes of services, and print them.

A plan ends at ModelReplicas and ModelEndpoints. Below these stand two more handlers, whose answers people
want to see before anything is applied: what runs on a cluster, and where requests go.

- `plan --workloads` prints everything that would be applied, as YAML with a comment that says where.
- `why` shows the conditions of a replica's workloads and its pending pods.

One request is made for each replica, with the Objects in the files that Crossplane labelled as its own, and
one for each ModelService, once all plans are applied. A cluster without a ProviderConfig and an endpoint
without a Service get a placeholder, so that both can be looked at before there is a platform.

Each handler is asked through `dispatch`, as a server would ask it: nothing is composed a second way.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from function.api.model import condition_of, mapping
from function.api.names import KEY_ANNOTATION
from function.boundary import JsonObject, PlainDocument, Request, Requirement, Response, frozen
from function.cli.text import as_yaml, complain, console, escape, note, printable
from function.cli.worlds.derive import Assumption, folded
from function.cli.worlds.world import Planned, identity_of, replicas_of
from function.dispatch import run
from function.objects import COLLECTION, KIND, OBSERVE, read_object
from function.replica.handler import declared
from function.replica.snapshot import CLUSTER
from function.routing import service

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from function.cli.worlds.inputs import Inputs
    from function.cli.worlds.manifest import Manifest


# What runs on a cluster: one request for each replica, with what the files hold of it.

COMPOSITE_LABEL = "crossplane.io/composite"


@frozen
class ReplicaWorkloads:
    """One replica, and what the handler of replicas answers about it."""

    name: str
    cluster: str
    request: Request
    response: Response
    assumed: tuple[Assumption, ...] = ()
    """Facts that its cluster does not state, with the values that were assumed."""

    def manifests(self) -> Iterator[tuple[str, JsonObject]]:
        """Yield key and manifest of everything that would be applied on its cluster."""
        for key, desired in self.response.desired.items():
            if mapping(desired.resource.get("spec")).get("managementPolicies") == list(OBSERVE):
                continue
            manifest = mapping(desired.resource, "spec", "forProvider").get("manifest")
            if isinstance(manifest, dict):
                yield key, manifest

    def pending_pods(self) -> Iterator[tuple[str, str]]:
        """Yield name and reason of every pod that could not be scheduled, by name."""
        members = (document for name in self.request.required for document in self.request.required[name])
        pods = sorted((read_object(document) for document in members), key=lambda pod: pod.identity.name)
        for pod in pods:
            scheduled, message = condition_of(pod.remote_status, "PodScheduled")
            if pod.identity.kind == "Pod" and scheduled is False:
                yield pod.identity.name, message


def workloads_of(inputs: Inputs, replicas: Iterable[JsonObject]) -> list[ReplicaWorkloads]:
    """Ask the handler of replicas about each, with the pods it would be told of (`diagnose: Pods`).

    Pods are asked for although the fleet may not have switched that on: what a pod waits for is what people
    want to know.
    """
    configs = inputs.manifests["WorkloadConfig"]
    config = {**(configs[0].content if configs else {}), "diagnose": "Pods"}
    answers = []
    for replica in replicas:
        first = Request(PlainDocument(replica), _observed(inputs, replica), input=config)
        clusters, assumed = _cluster(inputs, replica)
        required = {
            requirement.name: tuple(map(PlainDocument, _delivered(inputs, requirement, clusters)))
            for requirement in declared(first)
        }
        request = replace(first, required=required)
        _, name = identity_of(replica)
        where = str(mapping(replica.get("spec")).get("clusterName"))
        answers.append(ReplicaWorkloads(name, where, request, run(request), assumed))
    return answers


def _observed(inputs: Inputs, replica: JsonObject) -> dict[str, PlainDocument]:
    """Return the composed resources of a replica that the files hold, by their keys."""
    observed = {}
    for kind in (KIND, COLLECTION):
        for manifest in inputs.manifests[kind]:
            labels, annotations = (
                mapping(manifest.metadata.get(field_name)) for field_name in ("labels", "annotations")
            )
            key = annotations.get(KEY_ANNOTATION)
            is_own = labels.get(COMPOSITE_LABEL) == replica["metadata"]["name"]
            if is_own and isinstance(key, str) and manifest.namespace == replica["metadata"].get("namespace"):
                observed[key] = PlainDocument(manifest.content)
    return observed


def _cluster(inputs: Inputs, replica: JsonObject) -> tuple[list[JsonObject], tuple[Assumption, ...]]:
    """Return the replica's cluster, and what had to be assumed of it."""
    name = mapping(replica.get("spec")).get("clusterName")
    objects = [
        cluster for cluster in inputs.world.clusters if mapping(cluster.get("metadata")).get("name") == name
    ]
    if not objects or mapping(objects[0], "status", "providerConfigRef").get("name"):
        return objects, ()
    status = {**mapping(objects[0].get("status")), "providerConfigRef": {"name": name}}
    assumption = Assumption(str(name), ("has", "have"), "no providerConfigRef: assumed one of its name")
    return [{**objects[0], "status": status}], (assumption,)


def _delivered(inputs: Inputs, requirement: Requirement, clusters: list[JsonObject]) -> list[JsonObject]:
    """Return what Crossplane would fetch: the cluster, the members of a collection, or namesakes."""
    if requirement.name == CLUSTER:
        return clusters
    wanted = dict(requirement.match_labels or ())
    return [
        manifest.content
        for manifest in inputs.manifests[requirement.kind]
        if wanted.items() <= mapping(manifest.metadata.get("labels")).items()
        and requirement.namespace in (None, manifest.namespace)
        and requirement.match_name in (None, manifest.name)
    ]


def show_workloads(inputs: Inputs, results: Iterable[Planned]) -> None:
    """Print every manifest that would be applied, with the cluster it is for."""
    listed = [workloads for planned in results for workloads in workloads_of(inputs, replicas_of(planned))]
    assumptions = dict.fromkeys(assumption for workloads in listed for assumption in workloads.assumed)
    complain(folded(assumptions), "note")
    for workloads in listed:
        if not workloads.response.desired:
            complain([f"{workloads.name}: {workloads.response.conditions[0].message}"])
        for key, manifest in workloads.manifests():
            click.echo(f"---\n# {printable(f'{workloads.cluster}: {workloads.name}: {key}')}")
            click.echo(as_yaml(manifest), nl=False)


def below(inputs: Inputs, planned: Planned) -> dict[str, Any]:
    """Return what the files hold of a deployment's replicas below their clusters, as data; {} without any."""
    observed = _with_objects(inputs, planned)
    data = [
        {
            "replica": workloads.name,
            "cluster": workloads.cluster,
            "conditions": [condition.plain for condition in workloads.response.conditions],
            "pendingPods": [{"name": name, "waits": reason} for name, reason in workloads.pending_pods()],
        }
        for workloads in observed
    ]
    return {"workloads": data} if data else {}


def show_below(inputs: Inputs, planned: Planned) -> None:
    """Print how far the workloads are, and what pods wait for, where the files hold them."""
    observed = _with_objects(inputs, planned)
    out = console()
    if observed:
        out.print("\n[bold]Below the cluster[/bold]")
    for workloads in observed:
        out.say(f"  {escape(workloads.name)} on {escape(workloads.cluster)}")
        for condition in workloads.response.conditions:
            mark = "[green]✓[/green]" if condition.status else "[yellow]…[/yellow]"
            text = f"{condition.type}: {condition.reason}"
            out.say(
                f"    {mark} {escape(text)}{escape(f': {condition.message}' if condition.message else '')}",
            )
        for name, reason in workloads.pending_pods():
            out.say(f"    pod {escape(name)} waits: {escape(reason)}")


def _with_objects(inputs: Inputs, planned: Planned) -> list[ReplicaWorkloads]:
    """The workloads of a deployment's replicas of which the files hold something."""
    every = workloads_of(inputs, replicas_of(planned))
    return [workloads for workloads in every if workloads.request.observed]


# Where requests go: one request for each ModelService.

ENDPOINT = "ModelEndpoint"


@frozen
class ServiceRoute:
    """One service, and what the handler of services answers about it."""

    title: str
    """`namespace/name` of the service."""
    response: Response
    assumed: tuple[str, ...]
    """Endpoints without a Service: each was given one of its own name."""


def routes_of(inputs: Inputs, plans: list[Planned]) -> list[ServiceRoute]:
    """Ask the handler of services about each ModelService of the files, once all plans are applied.

    The endpoints are those that stand after the plans: those of the files without what is dropped, and what
    the plans desire.
    """
    dropped = {
        identity_of(document.plain())
        for planned in plans
        for key, document in planned.request.observed.items()
        if key not in planned.response.desired
    }
    held = {identity_of(endpoint): endpoint for endpoint in inputs.world.endpoints}
    endpoints = {name: endpoint for name, endpoint in held.items() if name not in dropped}
    for planned in plans:
        for desired in planned.response.desired.values():
            if desired.resource.get("kind") == ENDPOINT:
                # What is desired has no status: that which the files hold says if it has a Service.
                name = identity_of(desired.resource)
                status = mapping(held.get(name, {}).get("status"))
                endpoints[name] = desired.resource | {"status": status}
    return [
        _composed(inputs, manifest, [endpoints[name] for name in sorted(endpoints)])
        for manifest in inputs.manifests["ModelService"]
    ]


def _composed(inputs: Inputs, of: Manifest, endpoints: list[JsonObject]) -> ServiceRoute:
    """Ask the handler of services about one, with the endpoints that it selects delivered.

    An endpoint is selected by its labels and its namespace, as Crossplane would deliver it.
    """
    configs = inputs.manifests["RoutingConfig"]
    request = Request(PlainDocument(of.content), input=configs[0].content if configs else {})
    required: dict[str, tuple[PlainDocument, ...]] = {}
    assumed = []
    for requirement in service.declared(request):
        selected = []
        for endpoint in endpoints:
            labels = mapping(endpoint["metadata"].get("labels"))
            matches = all(labels.get(key) == value for key, value in requirement.match_labels)
            namespace, name = identity_of(endpoint)
            if requirement.kind != ENDPOINT or not matches or requirement.namespace not in (None, namespace):
                continue
            status = mapping(endpoint.get("status"))
            backend = str(mapping(status.get("routing")).get("backendName") or "")
            if not backend:
                assumed.append(name)
            routing = {"backendName": backend or name}
            selected.append(PlainDocument({**endpoint, "status": {**status, "routing": routing}}))
        required[requirement.name] = tuple(selected)
    response = run(Request(request.composite, required=required, input=request.input))
    return ServiceRoute("/".join(of.identity), response, tuple(dict.fromkeys(assumed)))


def show_routes(inputs: Inputs, planned: list[Planned]) -> bool:
    """Print the route of every ModelService, with its address; return whether each has endpoints.

    A service without a route is a warning and counts for the exit code; an endpoint without a Service is
    only a note, since it gets one when it is applied.
    """
    all_routed = True
    for route in routes_of(inputs, planned):
        resolved = route.response.conditions[0]
        if route.assumed:
            text = f"{route.title}: no Service yet of {', '.join(route.assumed)}: assumed one of that name"
            note(text)
        if not route.response.desired:
            why = f"{resolved.message}; a replica has its endpoint once it is Ready"
            complain([f"ModelService {route.title}: no route: {why}"], "warning")
            all_routed = False
        address = route.response.status.get("address")
        where = f", {address}" if address else ""
        for key, desired in route.response.desired.items():
            click.echo(f"---\n# {printable(f'control plane: {route.title}: {key}{where}')}")
            click.echo(f"# {printable(resolved.message)}")
            click.echo(as_yaml(desired.resource), nl=False)
    return all_routed
