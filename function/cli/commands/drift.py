"""`drift`: where the devices of a cluster's nodes are not what the cluster publishes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from function.cli.bad_input import BadInput
from function.cli.options import FILES, OUTPUT, Command, end
from function.cli.text import answered, complain, console, emit, escape
from function.cli.worlds.derive import complete_all
from function.cli.worlds.inputs import read_manifests
from function.cluster.drift import PoolDrift, drift

if TYPE_CHECKING:
    from function.boundary import JsonObject
    from function.cli.worlds.manifests import Manifests


@click.command(name="drift", cls=Command)
@FILES
@OUTPUT
def show_drift(files: tuple[str, ...], output: str) -> None:
    r"""Hold what a cluster publishes against what its drivers publish, node by node.

    The files hold one InferenceCluster (with its InferenceClasses where it publishes nothing yet), the
    ResourceSlices of the cluster and its Nodes. Drift changes no placement; it says which pods would wait.

    \b
    Exit codes: 0 nothing drifts, 2 something does, 1 bad input.

    \b
    Example:
      kubectl --context gpu-1 get resourceslices,nodes -o yaml > seen.yaml
      fleet-scheduler drift cluster.yaml classes/ seen.yaml
    """
    manifests, errors = read_manifests(files)
    cluster, faults = _cluster(manifests, errors)
    slices = [manifest.content for manifest in manifests["ResourceSlice"]]
    if not slices:
        raise BadInput("there is no ResourceSlice in the files: kubectl get resourceslices,nodes -o yaml")
    drifts = drift(cluster, slices, [manifest.content for manifest in manifests["Node"]])
    if output == "table":
        _print(drifts)
    else:
        emit(output, answered("Drift", {"pools": [_data(pool) for pool in drifts]}))
    end(faults, findings=any(pool.drifts for pool in drifts))


def _cluster(manifests: Manifests, errors: tuple[str, ...]) -> tuple[JsonObject, tuple[str, ...]]:
    """The only cluster of the files, and everything that is wrong with them. Raises BadInput."""
    completed = complete_all(manifests)
    if len(completed.clusters) != 1:
        raise BadInput(f"expected one InferenceCluster in the files, found {len(completed.clusters)}")
    complain(completed.faults.values())
    return completed.clusters[0], (*errors, *completed.faults.values())


def _print(drifts: tuple[PoolDrift, ...]) -> None:
    out = console()
    for pool in drifts:
        mark, style = ("✗", "red") if pool.drifts else ("✓", "green")
        out.print(f"{mark} {escape(pool.phrase())}", style=style, soft_wrap=True)
        undeclared = [finding.detail for finding in pool.findings if finding.kind == "Undeclared"]
        if undeclared:
            out.print(f"  could also publish: {escape(', '.join(undeclared))}", soft_wrap=True)


def _data(pool: PoolDrift) -> JsonObject:
    findings = [{"kind": finding.kind, "detail": finding.detail} for finding in pool.findings]
    return {"name": pool.name, "nodes": pool.declared, "seen": pool.complete, "findings": findings}
