"""`plan`: where the replicas of the deployments would go, and why."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import click
import yaml

from function.cli.common import Command, complain
from function.cli.progress import track
from function.cli.render.table import show
from function.cli.worlds.faults import faults_of
from function.cli.worlds.manifests import load
from function.cli.worlds.memory import Memory
from function.cli.worlds.parsing import BadInput
from function.cli.worlds.world import Planned, plan_all, world_of

if TYPE_CHECKING:
    from collections.abc import Iterator

PLACED, BAD_INPUT, SHORTFALL = 0, 1, 2
_WORST = (PLACED, SHORTFALL, BAD_INPUT)


def _code(planned: Planned) -> int:
    """Exit code of one deployment."""
    decision = planned.decision
    if decision is None or decision.inputs.selectors.invalid or decision.inputs.config_fault:
        return BAD_INPUT
    required = decision.wanted
    return PLACED if decision.total >= required and not decision.held else SHORTFALL


def _desired(results: list[Planned]) -> Iterator[dict[str, Any]]:
    for planned in results:
        for _, desired in sorted(planned.response.desired.items()):
            yield desired.resource


def decision_of(planned: Planned) -> dict[str, Any]:
    """One deployment's decision as plain data."""
    from function.deployment.explain.report import report  # noqa: PLC0415 - only -o json needs it

    response = planned.response
    told = {"namespace": planned.manifest.namespace, "name": planned.manifest.name}
    conditions = [
        {"type": each.type, "status": str(each.status), "reason": each.reason, "message": each.message}
        for each in response.conditions
    ]
    placement = report(planned.decision) if planned.decision else {}
    return {**told, **response.status, "conditions": conditions, "placement": placement}


@click.command(cls=Command)
@click.argument("files", nargs=-1, required=True, metavar="FILE|DIR...")
@click.option(
    "-o",
    "--output",
    type=click.Choice(["table", "yaml", "json"]),
    default="table",
    show_default=True,
    help="table for people; yaml: the desired resources; json: the decision.",
)
def plan(files: tuple[str, ...], output: str) -> None:
    r"""Show where the replicas of every ModelDeployment in FILEs would go, and why.

    Runs the pipeline of the composition function on plain YAML: ModelDeployments,
    InferenceClusters, InferenceClasses, ModelReplicas and ModelCaches, mixed in any files. Several
    deployments are planned from the oldest to the youngest, each seeing what the earlier ones took.

    \b
    Exit codes: 0 everything is placed, 2 something has no place, 1 bad input; the worst of several.

    \b
    Example:
      kubectl get icl,ic,md,mr,mc -A -o yaml | fleet-scheduler plan -
    """
    try:
        manifests = load(files)
        world = world_of(manifests)
    except BadInput as error:
        complain([str(error)])
        sys.exit(BAD_INPUT)
    faults = faults_of(manifests, world)
    complain(faults)
    planning = plan_all(world, reuse=Memory())
    results = list(track(planning, "Planning", total=len(world.deployments)))
    if output == "yaml":
        click.echo(yaml.safe_dump_all(_desired(results), sort_keys=False, width=1_000), nl=False)
    elif output == "json":
        told = {"deployments": [decision_of(each) for each in results], "assumptions": world.notes}
        click.echo(json.dumps(told, indent=2, sort_keys=False))
    else:
        show(results, world)
    codes = [_code(each) for each in results] + [BAD_INPUT] * bool(faults)
    sys.exit(max(codes, key=_WORST.index))
