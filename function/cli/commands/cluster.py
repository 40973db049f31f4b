"""`cluster`: the InferenceCluster of a cluster that is there, and the classes of its nodes.

Devices are described from ResourceSlices, as `class` does, node by node. Nodes that have the same devices and
the same value of a label are a pool; the label is the first of `POOL_LABELS` that every such node has, and
becomes the pool's `nodeSelector`. Where no label tells the nodes apart, the commands that label them are
printed. Taints that all nodes of a pool have become its tolerations, but those of a node's own condition.
"""

from __future__ import annotations

import json
from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

import click

from function.api.declared_cluster import DeclaredCluster
from function.api.fault import Malformed
from function.api.model import mapping, mappings
from function.api.names import API_VERSION
from function.cli.admission.kinds import writable
from function.cli.bad_input import BadInput
from function.cli.commands.machine_class import doubt
from function.cli.live import NODES, ControlPlane, Target, read_device_classes, read_slices
from function.cli.options import Command, end, lenient, reads_devices
from function.cli.patience import waiting
from function.cli.text import as_yaml, complain, listed, note, slug
from function.cli.worlds.derive import slices_of
from function.cli.worlds.inputs import read_manifests
from function.cluster.classes import NothingPublished, describe

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from function.boundary import JsonObject

POOL = "modelplane.ai/pool"
POOL_LABELS = (
    POOL,
    "eks.amazonaws.com/nodegroup",
    "cloud.google.com/gke-nodepool",
    "kubernetes.azure.com/agentpool",
    "karpenter.sh/nodepool",
    "node.kubernetes.io/instance-type",
)
"""Labels that tell pools apart, the one that we use where there is no other first."""
CONDITION_TAINTS = "node.kubernetes.io/"
"""Taints that say how a node does now: they come and go."""


class NodeGroup(NamedTuple):
    """Nodes that are alike."""

    name: str
    nodes: tuple[str, ...]
    selector: dict[str, str]
    tolerations: list[JsonObject]
    devices: str
    """The spec of their class, as JSON."""


@click.command(name="cluster", cls=Command)
@click.argument("name")
@click.argument("files", nargs=-1, metavar="[FILE|DIR...]", type=click.Path(allow_dash=True))
@lenient
@reads_devices
@click.option(
    "--secret",
    default="",
    metavar="NAME[/KEY]",
    help="The Secret in modelplane-system with its kubeconfig. [default: NAME/kubeconfig]",
)
@click.option("--gateway", default="", metavar="ADDRESS", help="The address of its gateway; else observed.")
def describe_cluster(
    name: str, files: tuple[str, ...], devices_of: Target | None, secret: str, gateway: str
) -> None:
    r"""Write the InferenceCluster NAME of a cluster that is there, with a class for each kind of node.

    ResourceSlices, Nodes and DeviceClasses are read of the cluster, of --context or --kubeconfig, or stand in
    files (kubectl get resourceslices,nodes,deviceclasses -o yaml). Claims name a DeviceClass that selects the
    devices. Nodes without a device of a driver are left out. What is printed is applied to the control plane;
    nothing is changed, here or there.

    Exit codes: 0 written, 2 written, and some nodes need a label first, 1 bad input.

    \b
    Examples:
      fleet-scheduler cluster gpu-east --context gpu-east | kubectl --context production apply -f -
      kubectl get resourceslices,nodes,deviceclasses -o yaml | fleet-scheduler cluster gpu-east -
    """
    slices, nodes, device_classes, errors = _read(files, devices_of)
    doubt(slices)
    try:
        pools = pools_of(slices, nodes, device_classes)
    except NothingPublished as error:
        raise BadInput(str(error)) from None
    manifests = list(map(writable, manifests_of(name, pools, secret, gateway)))
    try:
        DeclaredCluster.parse(manifests[-1])
    except Malformed as error:
        raise BadInput(f"InferenceCluster {name}: {error}") from None
    click.echo(as_yaml(*manifests), nl=False)
    metadata = [mapping(node.get("metadata")) for node in nodes]
    labels = {stated.get("name"): mapping(stated.get("labels")).get(POOL) for stated in metadata}
    without = [
        pool
        for pool in pools
        if pool.selector == {POOL: pool.name} and any(labels.get(node) != pool.name for node in pool.nodes)
    ]
    if without:
        complain(["no label tells these nodes apart; label them first:"], "note")
    for pool in without:
        # kubectl changes no label that is there without being told to.
        flag = " --overwrite" if any(labels.get(node) for node in pool.nodes) else ""
        click.echo(f"kubectl label nodes {' '.join(pool.nodes)} {POOL}={pool.name}{flag}", err=True)
    end(errors, findings=bool(without))


def _read(
    files: tuple[str, ...], target: Target | None
) -> tuple[list[JsonObject], list[JsonObject], list[JsonObject], tuple[str, ...]]:
    """Read ResourceSlices, Nodes and DeviceClasses, of the cluster or of files. Raises BadInput.

    Returns the three and what is wrong with the files. Nodes are read for their labels and taints.
    """
    if target is not None:
        if files:
            raise BadInput("--context and --kubeconfig read ResourceSlices and Nodes: leave the files out")
        cluster = ControlPlane(target)
        with waiting("Reading"):
            return read_slices(cluster), cluster.objects(NODES), read_device_classes(cluster), ()
    if not files:
        raise BadInput("name a cluster with --context, or files with its ResourceSlices and Nodes")
    manifests, errors = read_manifests(files)
    slices = slices_of(manifests)
    if not slices:
        raise BadInput(
            "there is no ResourceSlice in the files: kubectl get resourceslices,nodes,deviceclasses -o yaml"
        )
    nodes, device_classes = (
        [manifest.content for manifest in manifests[kind]] for kind in ("Node", "DeviceClass")
    )
    return slices, nodes, device_classes, errors


def pools_of(
    slices: Iterable[JsonObject], nodes: Iterable[JsonObject], device_classes: Sequence[JsonObject] = ()
) -> list[NodeGroup]:
    """Group the nodes that have devices into pools. Raises NothingPublished where none has.

    A pool is what the scheduler counts: nodes with equal devices, which one selector tells from all others.
    A node whose slices are not all there yet is left out with a note, since its devices are not known.
    """
    by_node: dict[str, list[JsonObject]] = defaultdict(list)
    for content in slices:
        node = mapping(content.get("spec")).get("nodeName")
        if isinstance(node, str):
            by_node[node].append(content)
    devices, incomplete = {}, []
    for node, those in sorted(by_node.items()):
        try:
            devices[node] = json.dumps(describe(those, device_classes).spec)
        except NothingPublished:
            incomplete.append(node)
    if not devices:
        raise NothingPublished("no node has a complete set of ResourceSlices")
    if incomplete:
        note(f"left out, as not all of their slices are there: {listed(incomplete)}")
    contents = {str(mapping(node.get("metadata")).get("name")): node for node in nodes}
    labels = {name: mapping(node, "metadata", "labels") for name, node in contents.items()}
    label = _telling(devices, labels)
    grouped: dict[tuple[str, str], list[str]] = defaultdict(list)
    for node, kind in devices.items():
        value = str(labels[node][label]) if label else ""
        grouped[value, kind].append(node)
    pools = []
    for number, ((value, kind), members) in enumerate(sorted(grouped.items()), 1):
        pool = slug(value, "pool") if label else "pool" if len(grouped) == 1 else f"pool-{number}"
        selector = {label: value} if label else {POOL: pool}
        pools.append(NodeGroup(pool, tuple(members), selector, _tolerations(members, contents), kind))
    return pools


def _telling(devices: Mapping[str, str], labels: Mapping[str, JsonObject]) -> str:
    """The first label that every node with devices has, and no value of which has nodes of two kinds.

    Names of pools are made from its values. Two values that would give the same name rule a label out.
    """
    for label in POOL_LABELS:
        kinds: dict[object, set[str]] = defaultdict(set)
        for node, kind in devices.items():
            kinds[labels.get(node, {}).get(label)].add(kind)
        names = {slug(str(value), "pool") for value in kinds}
        if None not in kinds and len(names) == len(kinds) and all(len(of) == 1 for of in kinds.values()):
            return label
    return ""


def _tolerations(members: Sequence[str], contents: Mapping[str, JsonObject]) -> list[JsonObject]:
    """Tolerate the taints that all nodes of a pool have.

    A taint that only some nodes have is none of the pool: a pod that tolerates it could still not count on
    the others.
    """
    of_nodes = [
        [
            {"key": taint["key"], "operator": "Exists", "effect": taint["effect"]}
            for taint in mappings(mapping(contents.get(node, {}).get("spec")).get("taints"))
            if not str(taint.get("key")).startswith(CONDITION_TAINTS) and taint.get("effect")
        ]
        for node in members
    ]
    return [toleration for toleration in of_nodes[0] if all(toleration in others for others in of_nodes)]


def manifests_of(name: str, pools: Sequence[NodeGroup], secret: str, gateway: str) -> list[JsonObject]:
    """The classes, each once, and the cluster.

    Pools with equal devices share a class. A selector that is the default of its pool is left out, so that
    what is printed is what somebody would have written.
    """
    classes: dict[str, str] = {}
    for pool in pools:
        classes.setdefault(pool.devices, f"{name}-{pool.name}")
    reference, _, key = (secret or name).partition("/")
    existing: JsonObject = {"secretRef": {"name": reference, "key": key or "kubeconfig"}}
    if gateway:
        existing["gateway"] = {"address": gateway}
    node_pools = [
        {
            "name": pool.name,
            "className": classes[pool.devices],
            "nodeCount": len(pool.nodes),
            **({} if pool.selector == {POOL: pool.name} else {"nodeSelector": pool.selector}),
            **({"tolerations": pool.tolerations} if pool.tolerations else {}),
        }
        for pool in pools
    ]
    spec = {"cluster": {"source": "Existing", "existing": existing}, "nodePools": node_pools}
    stated = [("InferenceClass", named, json.loads(devices)) for devices, named in classes.items()]
    return [
        {"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": named}, "spec": content}
        for kind, named, content in (*stated, ("InferenceCluster", name, spec))
    ]
