"""Print the manifests of workload clusters as they would be applied, and why a replica does not serve."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from function.cli.text import as_yaml, complain, console, escape, printable
from function.cli.worlds.derive import folded
from function.cli.worlds.settling import plain_conditions
from function.cli.worlds.workloads import ReplicaWorkloads, replicas_of, workloads_of

if TYPE_CHECKING:
    from collections.abc import Iterable

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
        out.print(f"  {escape(workloads.name)} on {escape(workloads.cluster)}", soft_wrap=True)
        for condition in workloads.response.conditions:
            mark = "[green]✓[/green]" if condition.status else "[yellow]…[/yellow]"
            text = f"{condition.type}: {condition.reason}"
            out.print(f"    {mark} {escape(text)}{escape(_after(condition.message))}", soft_wrap=True)
        for name, reason in workloads.pending_pods():
            out.print(f"    pod {escape(name)} waits: {escape(reason)}", soft_wrap=True)


def _observed(inputs: Inputs, planned: Planned) -> list[ReplicaWorkloads]:
    return [workloads for workloads in workloads_of(inputs, replicas_of(planned)) if workloads.is_observed]


def _after(message: str) -> str:
    return f": {message}" if message else ""


def _as_data(workloads: ReplicaWorkloads) -> dict[str, Any]:
    pods = [{"name": name, "waits": reason} for name, reason in workloads.pending_pods()]
    return {
        "replica": workloads.name,
        "cluster": workloads.cluster,
        "conditions": plain_conditions(workloads.response),
        "pendingPods": pods,
    }
