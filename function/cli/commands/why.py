"""`why`: where the replicas of one deployment are, and why every other cluster takes none."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from function.cli.bad_input import BadInput, closest
from function.cli.group import BAD_INPUT
from function.cli.options import Command, Names, output_option, reads_fleet
from function.cli.render.tree import View, show_why
from function.cli.render.workloads import below, show_below
from function.cli.text import answered, complain, emit
from function.cli.worlds.inputs import Inputs, read
from function.cli.worlds.memo import ParseMemo
from function.cli.worlds.source import add_workloads
from function.cli.worlds.verdict import summary_of, worst_code
from function.cli.worlds.world import plan_all

if TYPE_CHECKING:
    from function.cli.worlds.source import Source
    from function.cli.worlds.world import Planned
    from function.deployment.forecast import Forecast


def _planned(inputs: Inputs, deployment: str) -> Planned:
    """The plan of one deployment, after those that are older took theirs. Raises BadInput."""
    [title] = inputs.titles([deployment])
    planning = plan_all(inputs.world, reuse=ParseMemo())
    return next(planned for planned in planning if planned.title == title)


def _check(forecast: Forecast, view: View, where: str) -> None:
    """Refuse a cluster or a pool that is not there. Raises BadInput."""
    clusters, cluster, pool = forecast.clusters, view.cluster, view.pool
    if cluster is not None and cluster not in {*clusters, *forecast.unreadable_clusters}:
        raise BadInput(f'no InferenceCluster "{cluster}" in {where}; {closest(cluster, clusters)}')
    pools = {pool for name, pools in clusters.items() if cluster in (None, name) for pool in pools}
    if pool is not None and pool not in pools:
        raise BadInput(f'no node pool "{pool}"; {closest(pool, pools)}')


def _as_data(planned: Planned, view: View) -> dict[str, Any]:
    """The whole explanation as data; of all clusters, or of the one asked about."""
    placement = planned.forecast.full_report(view.cluster)
    if view.pool is not None:
        for cluster in placement["clusters"]:
            cluster["pools"] = [pool for pool in cluster.get("pools", ()) if pool["name"] == view.pool]
    return {**summary_of(planned), "placement": placement}


@click.command(cls=Command)
@click.argument("deployment", shell_complete=Names("ModelDeployment"))
@reads_fleet
@click.option("--cluster", metavar="NAME", help="Only this cluster: why not there?")
@click.option("--pool", metavar="NAME", help="Only node pools of this name.")
@output_option("tree", "yaml", "json", text="tree for people; yaml and json hold the same answer as data.")
def why(deployment: str, source: Source, cluster: str | None, pool: str | None, output: str) -> None:
    r"""Explain the placement of DEPLOYMENT (NAMESPACE/NAME, or NAME where it is the only one).

    The line that matters comes first; then what would help (each hint was tried out on the
    scheduler), selectors that could never match, the replicas, and the clusters with their pools,
    the nearest miss first. With the Objects of its replicas (kubectl get
    objects,observedobjectcollections -A) it goes on below the cluster: which workload is not
    serving, and what its first pending pod waits for.

    \b
    Exit codes: 0 everything is placed, 2 something has no place, 1 bad input.

    \b
    Examples:
      kubectl fleet why llama
      kubectl get icl,ic,md,mr,mc -A -o yaml | fleet-scheduler why ml-team/llama --cluster use1 -
    """
    inputs, view = read(source), View(cluster, pool)
    planned = _planned(inputs, deployment)
    add_workloads(inputs.manifests, inputs.origin, planned.manifest.namespace)
    if not planned.forecast.readable:
        complain([] if inputs.faults else [planned.response.conditions[0].message])
        sys.exit(BAD_INPUT)
    _check(planned.forecast, view, inputs.origin.where)
    if output == "tree":
        show_why(planned, view)
        show_below(inputs, planned)
    else:
        emit(output, answered("Why", {**_as_data(planned, view), **below(inputs, planned)}))
    sys.exit(worst_code([planned], inputs.faults))
