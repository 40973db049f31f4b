"""Print manifests of workload clusters and routes as they would be applied, and why one does not serve.

A plan ends at ModelReplicas and ModelEndpoints. Below these stand two more handlers, whose answers people
want to see before anything is applied: what runs on a cluster, and where requests go.

- `plan --workloads` prints everything that would be applied, as YAML with a comment that says where.
- `why` shows the conditions of a replica's workloads and its pending pods.
- Routes are composed here, one request for each ModelService, once all plans are applied. Their endpoints are
  those that the plan desires and those that the files hold. One without a Service gets a placeholder for it,
  so that the route can be looked at before anything is installed.

Each handler is asked through `dispatch`, as a server would ask it: nothing is composed a second way.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from function.api.model import mapping
from function.boundary import JsonObject, PlainDocument, Request, Response
from function.cli.text import as_yaml, complain, console, escape, note, printable
from function.cli.worlds.derive import folded
from function.cli.worlds.workloads import ReplicaWorkloads, workloads_of
from function.cli.worlds.world import Planned, replicas_of
from function.dispatch import run
from function.routing.service import declared

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from function.cli.worlds.inputs import Inputs


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
    observed = _observed(inputs, planned)
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
    observed = _observed(inputs, planned)
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


def _observed(inputs: Inputs, planned: Planned) -> list[ReplicaWorkloads]:
    every = workloads_of(inputs, replicas_of(planned))
    return [workloads for workloads in every if workloads.request.observed]


KIND = "ModelEndpoint"


@dataclass(frozen=True, slots=True)
class ServiceRoute:
    """One service, and what the handler of services answers about it."""

    service: JsonObject
    response: Response
    assumed: tuple[str, ...]
    """Endpoints without a Service: each was given one of its own name."""

    @property
    def title(self) -> str:
        """`namespace/name`."""
        return "/".join(str(self.service["metadata"].get(key)) for key in ("namespace", "name"))

    @property
    def address(self) -> str:
        """Where requests go; empty while nobody says it."""
        return str(self.response.status.get("address", ""))

    def manifests(self) -> Iterator[tuple[str, JsonObject]]:
        """Yield key and manifest of everything that would be applied on the control plane."""
        for key, desired in self.response.desired.items():
            yield key, desired.resource


def routes_of(inputs: Inputs, plans: list[Planned]) -> list[ServiceRoute]:
    """Ask the handler of services about each ModelService of the files, once all plans are applied."""
    dropped = {
        _name(document.plain())
        for planned in plans
        for key, document in planned.request.observed.items()
        if key not in planned.response.desired
    }
    held = {_name(endpoint): endpoint for endpoint in inputs.world.endpoints}
    endpoints = {name: endpoint for name, endpoint in held.items() if name not in dropped}
    for planned in plans:
        for desired in planned.response.desired.values():
            if desired.resource.get("kind") == KIND:
                # What is desired has no status: that which the files hold says if it has a Service.
                name = _name(desired.resource)
                status = mapping(held.get(name, {}).get("status"))
                endpoints[name] = desired.resource | {"status": status}
    return [
        _composed(inputs, manifest.content, [endpoints[name] for name in sorted(endpoints)])
        for manifest in inputs.manifests["ModelService"]
    ]


def _name(plain: JsonObject) -> tuple[str, str]:
    metadata = plain["metadata"]
    return str(metadata.get("namespace")), str(metadata.get("name"))


def _composed(inputs: Inputs, service: JsonObject, endpoints: list[JsonObject]) -> ServiceRoute:
    configs = inputs.manifests["RoutingConfig"]
    request = Request(PlainDocument(service), input=configs[0].content if configs else None)
    required: dict[str, tuple[PlainDocument, ...]] = {}
    assumed = []
    for requirement in declared(request):
        selected = []
        for endpoint in endpoints:
            labels = mapping(endpoint["metadata"].get("labels"))
            matches = all(labels.get(key) == value for key, value in requirement.match_labels)
            if requirement.kind != KIND or not matches:
                continue
            status = mapping(endpoint.get("status"))
            backend = str(mapping(status.get("routing")).get("backendName") or "")
            name = _name(endpoint)[1]
            if not backend:
                assumed.append(name)
            routing = {"backendName": backend or endpoint["metadata"]["name"]}
            selected.append(PlainDocument({**endpoint, "status": {**status, "routing": routing}}))
        required[requirement.name] = tuple(selected)
    response = run(Request(request.composite, required=required, input=request.input))
    return ServiceRoute(service, response, tuple(dict.fromkeys(assumed)))


def show_routes(inputs: Inputs, planned: list[Planned]) -> bool:
    """Print the route of every ModelService, with its address; return whether each has endpoints."""
    all_routed = True
    for route in routes_of(inputs, planned):
        resolved = route.response.conditions[0]
        if route.assumed:
            text = f"{route.title}: no Service yet of {', '.join(route.assumed)}: assumed one of that name"
            note(text)
        if not route.response.desired:
            complain([f"ModelService {route.title}: no route: {resolved.message}"], "warning")
            all_routed = False
        for key, manifest in route.manifests():
            where = f", {route.address}" if route.address else ""
            click.echo(f"---\n# {printable(f'control plane: {route.title}: {key}{where}')}")
            click.echo(f"# {printable(resolved.message)}")
            click.echo(as_yaml(manifest), nl=False)
    return all_routed
