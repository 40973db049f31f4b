"""`drift`: where the devices of a cluster's nodes are not what the cluster publishes.

The comparison is `function.cluster.drift`, which the handler of clusters uses for the condition Verified.
Here it runs on ResourceSlices read from the cluster or a file, without Crossplane in between.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from function.api.model import mapping
from function.cli.bad_input import BadInput, closest
from function.cli.live import NODES, RULES, ControlPlane, Target, newest, read_slices
from function.cli.options import FILES, OUTPUT, Command, end, lenient, reads_devices
from function.cli.patience import waiting
from function.cli.text import answered, complain, console, emit, escape, listed
from function.cli.worlds.derive import complete_all, slices_of
from function.cli.worlds.inputs import read_manifests
from function.cluster.drift import LiveRules, PoolDrift, drift

if TYPE_CHECKING:
    from function.boundary import JsonObject
    from function.cli.worlds.manifest import Manifests


@click.command(name="drift", cls=Command)
@FILES
@lenient
@reads_devices
@click.option("--cluster", "name", default="", help="Which InferenceCluster of the files, if there are more.")
@OUTPUT
def show_drift(files: tuple[str, ...], devices_of: Target | None, name: str, output: str) -> None:
    r"""Hold what a cluster publishes against what its drivers publish, node by node.

    The files hold the InferenceCluster (with its InferenceClasses where it publishes nothing yet). The
    ResourceSlices and Nodes are read of the cluster itself, of --context or --kubeconfig, or stand in the
    files too; so are ResourceClaimTemplates, DeviceClasses and DeviceTaintRules, which say on what selectors
    err and which devices nobody gets. Drift changes no placement; it says which pods would wait.

    Exit codes: 0 nothing drifts, 2 something does, 1 bad input.

    \b
    Examples:
      fleet-scheduler drift cluster.yaml classes/ --context gpu-1
      kubectl get inferencecluster gpu-1 -o yaml | fleet-scheduler drift - --context gpu-1
      kubectl --context gpu-1 get resourceslices,nodes,deviceclasses -o yaml > seen.yaml
      fleet-scheduler drift cluster.yaml classes/ seen.yaml
    """
    manifests, errors = read_manifests(files)
    cluster, faults = _cluster(manifests, name)
    slices, nodes, rules = _in_files(manifests) if devices_of is None else _live(manifests, devices_of)
    drifts = drift(cluster, slices, nodes, rules)
    if output == "table":
        _print(drifts)
    else:
        emit(output, answered("Drift", {"pools": [_data(pool) for pool in drifts]}))
    end((*errors, *faults), findings=any(pool.drifts for pool in drifts))


LiveDevices = tuple[list["JsonObject"], list["JsonObject"], LiveRules]
"""ResourceSlices, Nodes, and what else decides who gets the devices."""


def _in_files(manifests: Manifests) -> LiveDevices:
    """Read slices and nodes from the files. Raises BadInput where there is no slice."""
    slices, nodes = slices_of(manifests), [manifest.content for manifest in manifests["Node"]]
    if not slices:
        raise BadInput(
            "there is no ResourceSlice in the files: name the cluster with --context, or add what "
            "kubectl get resourceslices,nodes -o yaml prints there"
        )
    return slices, nodes, LiveRules(*([one.content for one in manifests[kind.kind]] for kind, *_ in RULES))


def _live(manifests: Manifests, target: Target) -> LiveDevices:
    """Read slices and nodes from a cluster. Raises BadInput, also where the files have some too."""
    if manifests["ResourceSlice"]:
        file = manifests["ResourceSlice"][0].file
        raise BadInput(
            f"{file} has ResourceSlices, and --context or --kubeconfig read them: give one of both"
        )
    connection = ControlPlane(target)
    with waiting("Reading"):
        slices, nodes = read_slices(connection), connection.objects(NODES)
        return slices, nodes, LiveRules(*(newest(connection, versions) or [] for versions in RULES))


def _cluster(manifests: Manifests, name: str) -> tuple[JsonObject, tuple[str, ...]]:
    """The InferenceCluster that is meant, and everything that is wrong with it. Raises BadInput.

    Faults of other clusters in the same files are nobody's concern here, and are left out.
    """
    completed = complete_all(manifests)
    by_name = {str(mapping(plain.get("metadata")).get("name")): plain for plain in completed.clusters}
    if name and name not in by_name:
        raise BadInput(f'no InferenceCluster "{name}" in the files; {closest(name, by_name)}')
    if not name and len(by_name) != 1:
        which = f": choose one with --cluster ({listed(sorted(by_name))})" if by_name else ""
        raise BadInput(f"expected one InferenceCluster in the files, found {len(by_name)}{which}")
    chosen = name or next(iter(by_name))
    others = {f"InferenceCluster {other}" for other in by_name if other != chosen}
    faults = tuple(text for (title, _), text in completed.faults.items() if title not in others)
    complain(faults)
    return by_name[chosen], faults


def _print(drifts: tuple[PoolDrift, ...]) -> None:
    """Print a line for each pool, and below it what the class could publish besides."""
    out = console()
    for pool in drifts:
        mark, style = ("✗", "red") if pool.drifts else ("✓", "green")
        out.say(f"{mark} {escape(pool.phrase())}", style=style)
        undeclared = [finding.detail for finding in pool.findings if finding.kind == "Undeclared"]
        if undeclared:
            out.say(f"  could also publish: {escape(', '.join(undeclared))}")


def _data(pool: PoolDrift) -> JsonObject:
    """One pool as plain data: the nodes that are declared, and those seen with all slices."""
    findings = [{"kind": finding.kind, "detail": finding.detail} for finding in pool.findings]
    return {"name": pool.name, "nodes": pool.declared, "seen": pool.complete, "findings": findings}
