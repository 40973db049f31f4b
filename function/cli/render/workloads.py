"""Print manifests of workload clusters and routes as they would be applied, and why one does not serve.

`plan --workloads` prints everything that would be applied, as YAML with a comment that says where.
`why` shows the conditions of a replica's workloads and its pending pods. Routes are composed here, one
request for each ModelService, once all plans are applied.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from function.api.model import mapping
from function.boundary import PlainDocument, Request
from function.cli.text import as_yaml, complain, console, escape, note, printable
from function.cli.worlds.derive import folded
from function.cli.worlds.settling import plain_conditions
from function.cli.worlds.workloads import ReplicaWorkloads, replicas_of, workloads_of
from function.dispatch import run
from function.routing.service import declared

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from function.boundary import JsonObject, Requirement, Response
    from function.cli.worlds.inputs import Inputs
    from function.cli.worlds.world import Planned


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
    if not observed:
        return {}
    return {"workloads": [_as_data(workloads) for workloads in observed]}


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


def _as_data(workloads: ReplicaWorkloads) -> dict[str, Any]:
    pods = [{"name": name, "waits": reason} for name, reason in workloads.pending_pods()]
    return {
        "replica": workloads.name,
        "cluster": workloads.cluster,
        "conditions": plain_conditions(workloads.response),
        "pendingPods": pods,
    }


# Print the route of each service, as it would be on the control plane.

# Compose services as the control plane would see them: one request for each ModelService.
#
# Its endpoints are those that the plan desires and those that the files hold. One without a Service gets a
# placeholder for it, so that the route can be looked at before anything is installed.

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
    endpoints = {
        _name(endpoint): endpoint for endpoint in inputs.world.endpoints if _name(endpoint) not in dropped
    } | {
        _name(desired.resource): desired.resource | _status(inputs, desired.resource)
        for planned in plans
        for desired in planned.response.desired.values()
        if desired.resource.get("kind") == KIND
    }
    return [
        _composed(inputs, manifest.content, [endpoints[name] for name in sorted(endpoints)])
        for manifest in inputs.manifests["ModelService"]
    ]


def _name(plain: JsonObject) -> tuple[str, str]:
    metadata = plain["metadata"]
    return str(metadata.get("namespace")), str(metadata.get("name"))


def _status(inputs: Inputs, endpoint: JsonObject) -> JsonObject:
    """Return the status of a desired endpoint, where the files hold it."""
    held = (other for other in inputs.world.endpoints if _name(other) == _name(endpoint))
    return {"status": mapping(next(held, {}).get("status"))}


def _composed(inputs: Inputs, service: JsonObject, endpoints: list[JsonObject]) -> ServiceRoute:
    configs = inputs.manifests["RoutingConfig"]
    request = Request(PlainDocument(service), input=configs[0].content if configs else None)
    required, assumed = {}, []
    for requirement in declared(request):
        selected = [endpoint for endpoint in endpoints if _selects(requirement, endpoint)]
        required[requirement.name] = tuple(PlainDocument(_with_backend(endpoint)) for endpoint in selected)
        assumed += [_name(endpoint)[1] for endpoint in selected if not _backend(endpoint)]
    response = run(Request(request.composite, required=required, input=request.input))
    return ServiceRoute(service, response, tuple(dict.fromkeys(assumed)))


def _selects(requirement: Requirement, endpoint: JsonObject) -> bool:
    labels = mapping(endpoint["metadata"].get("labels"))
    matches = all(labels.get(key) == value for key, value in requirement.match_labels)
    return requirement.kind == KIND and matches


def _backend(endpoint: JsonObject) -> str:
    return str(mapping(mapping(endpoint.get("status")).get("routing")).get("backendName") or "")


def _with_backend(endpoint: JsonObject) -> JsonObject:
    """Return an endpoint that has a Service, if only one of its own name."""
    name = _backend(endpoint) or endpoint["metadata"]["name"]
    status = {**mapping(endpoint.get("status")), "routing": {"backendName": name}}
    return {**endpoint, "status": status}


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
