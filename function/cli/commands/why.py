"""`why`: where the replicas of one deployment are, and why every other cluster takes none."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from function.cli.commands.plan import _WORST, _code, decision_of
from function.cli.common import FILES, Command, closest, complain, deployments_named, emit, read
from function.cli.group import BAD_INPUT
from function.cli.render.tree import View, show_why
from function.cli.worlds.parsing import BadInput
from function.cli.worlds.world import plan_all
from function.deployment.explain.clusters import pools_of
from function.deployment.explain.report import report

if TYPE_CHECKING:
    from function.cli.worlds.world import Planned, World
    from function.scheduler.decision import Decision


def _planned(world: World, deployment: str) -> Planned:
    """The plan of one deployment, after those that are older took theirs. Raises BadInput."""
    if not world.deployments:
        raise BadInput("there is no ModelDeployment in the files")
    [name] = deployments_named(world, [deployment])
    return next(each for each in plan_all(world) if f"{each.manifest.namespace}/{each.manifest.name}" == name)


def _checked(decision: Decision, cluster: str | None, pool: str | None) -> None:
    """Refuse a cluster or a pool that is not there. Raises BadInput."""
    fleet = decision.inputs.fleet
    if cluster is not None and cluster not in fleet.clusters and cluster not in fleet.unreadable:
        raise BadInput(f'no InferenceCluster "{cluster}" in the files; {closest(cluster, fleet.clusters)}')
    looked_at = [each for name, each in fleet.clusters.items() if cluster in (None, name)]
    pools = {each.name for one in looked_at for each in one.pools}
    if pool is not None and pool not in pools:
        raise BadInput(f'no node pool "{pool}"; {closest(pool, pools)}')


def _as_data(planned: Planned, decision: Decision, cluster: str | None, pool: str | None) -> dict[str, Any]:
    """Everything that is told, as data; of all clusters, or of the one asked about."""
    told = decision_of(planned)
    everything = report(decision, others=len(decision.inputs.fleet.clusters), limit=None)
    told["placement"] = everything
    if cluster is not None:
        everything["clusters"] = [each for each in everything["clusters"] if each["name"] == cluster]
        known = decision.inputs.fleet.clusters.get(cluster)
        if known is not None:
            everything["clusters"][0]["pools"] = pools_of(decision, known)
    if pool is not None:
        for each in everything["clusters"]:
            each["pools"] = [found for found in each.get("pools", ()) if found["name"] == pool]
    return told


@click.command(cls=Command)
@click.argument("deployment")
@FILES
@click.option("--cluster", metavar="NAME", help="Only this cluster: why not there?")
@click.option("--pool", metavar="NAME", help="Only node pools of this name.")
@click.option(
    "-o",
    "--output",
    type=click.Choice(["tree", "yaml", "json"]),
    default="tree",
    show_default=True,
    help="tree for people; yaml and json hold the same answer as data.",
)
def why(deployment: str, files: tuple[str, ...], cluster: str | None, pool: str | None, output: str) -> None:
    r"""Explain the placement of DEPLOYMENT (NAMESPACE/NAME, or NAME where it is the only one).

    The line that matters comes first; then what would help (each hint was tried out on the
    scheduler), the replicas, and the clusters with their pools, the nearest miss first.

    \b
    Exit codes: 0 everything is placed, 2 something has no place, 1 bad input.

    \b
    Example:
      kubectl get icl,ic,md,mr,mc -A -o yaml | fleet-scheduler why ml-team/llama --cluster use1 -
    """
    found = read(files)
    planned = _planned(found.world, deployment)
    decision = planned.decision
    if decision is None:
        complain(each.message for each in planned.response.conditions[:1] if not found.faults)
        sys.exit(BAD_INPUT)
    _checked(decision, cluster, pool)
    if output == "tree":
        show_why(planned, decision, View(cluster, pool))
    else:
        emit(output, _as_data(planned, decision, cluster, pool))
    sys.exit(max([_code(planned), BAD_INPUT if found.faults else 0], key=_WORST.index))
