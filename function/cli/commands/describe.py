"""`class` and `drift`: the devices of a kind of node, and where they are not what a cluster publishes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from function.catalogue import UnknownMachineType, entry, machine_types
from function.cli.bad_input import BadInput
from function.cli.options import FILES, OUTPUT, Command, end, lenient, output_option
from function.cli.text import answered, complain, console, emit, escape
from function.cli.worlds.derive import complete_all
from function.cli.worlds.inputs import read_manifests
from function.cluster.describe import NothingPublished, describe
from function.cluster.drift import PoolDrift, drift

if TYPE_CHECKING:
    from function.cli.worlds.manifests import Manifests

Plain = dict[str, Any]


def _class(name: str, spec: Plain) -> Plain:
    metadata = {"name": name}
    return {
        "apiVersion": "modelplane.ai/v1alpha1",
        "kind": "InferenceClass",
        "metadata": metadata,
        "spec": spec,
    }


@click.command(name="class", cls=Command)
@click.argument("what", nargs=-1, metavar="[PROVIDER/MACHINETYPE | FILE|DIR...]")
@lenient
@click.option("--name", default="", help="The name of the class; default: made from the machine type.")
@click.option("--list", "listed", is_flag=True, help="Name every machine type of the catalogue.")
@output_option("yaml", "json", text="The form of the class.")
def describe_class(what: tuple[str, ...], name: str, output: str, *, listed: bool) -> None:
    r"""Write an InferenceClass: of a machine type of the catalogue, or of what drivers publish.

    A machine type prints what the catalogue has of it, memory as its driver reports it. Files hold
    ResourceSlices (kubectl get resourceslices -o yaml): the class describes the devices of their nodes.

    \b
    Exit codes: 0 written, 2 written, and some nodes have other devices, 1 bad input.

    \b
    Examples:
      fleet-scheduler class --list
      fleet-scheduler class aws/p5en.48xlarge
      kubectl --context gpu-1 get resourceslices -o yaml | fleet-scheduler class - --name h200
    """
    if listed:
        for machine_type in machine_types():
            click.echo(f"{machine_type}  {entry(machine_type)['spec']['description']}")
        end((), findings=False)
    if not what:
        raise BadInput("name a machine type or files with ResourceSlices; --list names the machine types")
    if len(what) == 1 and "/" in what[0] and what[0] in machine_types():
        content = entry(what[0])
        emit(output, _class(name or _named(what[0]), content["spec"]))
        click.echo(f"revision {content['revision']}; {content['source']}", err=True)
        end((), findings=False)
    manifests, errors = read_manifests(what)
    slices = [manifest.content for manifest in manifests["ResourceSlice"]]
    if not slices:
        raise BadInput(_nothing(what))
    try:
        made = describe(slices)
    except NothingPublished as error:
        raise BadInput(str(error)) from None
    emit(output, _class(name or "from-slices", made.spec))
    if made.others:
        complain([f"{made.others} of {made.nodes + made.others} nodes have other devices than this class"])
    end(errors, findings=made.others > 0)


def _named(machine_type: str) -> str:
    return machine_type.replace("/", "-").replace(".", "-").replace("_", "-").lower()


def _nothing(what: tuple[str, ...]) -> str:
    try:
        entry(what[0])
    except UnknownMachineType as error:
        return f"there is no ResourceSlice in the files, and {error}"
    return "there is no ResourceSlice in the files"


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


def _cluster(manifests: Manifests, errors: tuple[str, ...]) -> tuple[Plain, tuple[str, ...]]:
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
        out.print(f"{mark} {escape(pool.line())}", style=style, soft_wrap=True)
        undeclared = [finding.detail for finding in pool.findings if finding.kind == "Undeclared"]
        if undeclared:
            out.print(f"  could also publish: {escape(', '.join(undeclared))}", soft_wrap=True)


def _data(pool: PoolDrift) -> Plain:
    findings = [{"kind": finding.kind, "detail": finding.detail} for finding in pool.findings]
    return {"name": pool.name, "nodes": pool.declared, "seen": pool.complete, "findings": findings}
