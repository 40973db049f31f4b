"""`plan`: where the replicas of the deployments would go, and why.

Every deployment is asked about once, the oldest first, as `worlds.world.plan_all` says. Nothing is settled
over several passes: the answer is that of the next reconcile. `whatif` and `headroom` settle the fleet.

-o yaml prints the desired resources and nothing else, so that `verify --decision` can read them back.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from function.cli.options import FINDINGS, FINE, Command, output_option, reads_fleet
from function.cli.render.table import show, show_adapters
from function.cli.sizing.manifest import misfits
from function.cli.text import answered, as_yaml, complain, emit, note, track
from function.cli.worlds.inputs import FLEET, Source, capped, read
from function.cli.worlds.settling import summary_of, worst_code
from function.cli.worlds.world import Planned, plan_all

if TYPE_CHECKING:
    from function.cli.worlds.world import PlannedAdapter


def _as_data(planned: Planned) -> dict[str, Any]:
    """One deployment's decision as plain data."""
    forecast = planned.forecast
    held = [pool.plain for pool in forecast.partly_held]
    priced = {"centsPerHour": forecast.price.cents} if forecast.price.priced else {}
    return {**summary_of(planned), "placement": forecast.report(), "partlyHeld": held, **priced}


@click.command(cls=Command)
@reads_fleet
@output_option(
    "table", "yaml", "json", text="table for people; yaml: the desired resources; json: the decision."
)
@click.option(
    "--workloads",
    is_flag=True,
    help="Print what would be applied instead, as YAML: on the clusters, and for ModelServices.",
)
def plan(source: Source, output: str, *, workloads: bool) -> None:
    r"""Show where the replicas of every ModelDeployment in FILEs would go, and why.

    Runs the pipeline of the composition function on plain YAML: ModelDeployments,
    InferenceClusters, InferenceClasses, ModelReplicas and ModelCaches, mixed in any files. Several
    deployments are planned from the oldest to the youngest, each seeing what the earlier ones took;
    then ModelAdapters, on the replicas that are planned.

    Exit codes: 0 everything is placed, 2 something has no place (or, with --workloads, a service no
    endpoint), 1 bad input; the worst of several.

    \b
    Examples:
      kubectl get icl,ic,md,mr,mc -A -o yaml | fleet-scheduler plan -
      fleet-scheduler plan --workloads fleet.yaml deployment.yaml
    """
    inputs = read(source, FLEET)
    if not inputs.world.deployments:
        note(f"there is no ModelDeployment in {inputs.origin.where}: nothing is to be placed")
    planning = plan_all(inputs.world)
    planned = list(track(planning, "Planning", total=len(inputs.world.deployments)))
    chosen = inputs.titles(())
    results = [result for result in planned if not chosen or result.title in chosen]
    code = worst_code(results, inputs.faults)
    estimates = [
        f"{manifest.place(path)}: {manifest.short_title}: {message}"
        for result in results
        if not result.manifest.stored  # One that a control plane holds runs, or says itself why not.
        for manifest, _, path, message in misfits(result)
    ]
    adapters: list[PlannedAdapter] = []
    if inputs.manifests["ModelAdapter"]:
        from function.cli.worlds.adapters import adapters_of  # noqa: PLC0415 - all handlers are needed

        adapters = adapters_of(inputs.manifests, inputs.world.endpoints, planned, inputs.origin.only)
        if code == FINE and not all(adapter.forecast.response.conditions[0].status for adapter in adapters):
            code = FINDINGS
    if workloads:
        # Only then all handlers are needed.
        from function.cli.render.workloads import show_routes, show_workloads  # noqa: PLC0415

        show_workloads(inputs, results)
        if not show_routes(inputs, planned) and code == FINE:
            code = FINDINGS
    elif output == "yaml":
        responses = [answer.response for answer in results] + [
            answer.forecast.response for answer in adapters
        ]
        resources = (
            desired.resource for response in responses for _, desired in sorted(response.desired.items())
        )
        click.echo(as_yaml(*resources), nl=False)
    elif output == "json":
        deployments = [_as_data(planned) for planned in results]
        data = {"deployments": deployments, "assumptions": list(map(str, inputs.world.assumptions))}
        if adapters:
            data["adapters"] = [adapter.plain for adapter in adapters]
        emit(output, answered("Plan", data))
    else:
        show(results, inputs.origin.words)
        if adapters:
            show_adapters(adapters)
    complain(capped(estimates), "warning")
    sys.exit(FINDINGS if estimates and code == FINE else code)
