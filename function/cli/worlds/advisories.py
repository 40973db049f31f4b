"""Advise on objects that are allowed and will not work, by rules of the documentation.

What a schema can say is in the XRDs and checked from there (`admission`). These are the rules about several
objects at once, or about what the schema cannot see: each is a function below, and its code has a row in
docs/ci.md. An advisory is a warning: the API server takes the object.

An object that refers to another is only doubted where the files hold any of that kind: who keeps deployments
in one repository and the fleet in another hears nothing. A rule that could be wrong about a working fleet is
no rule here, for `lint` runs in pipelines that it would stop.
"""

from __future__ import annotations

import re
from itertools import takewhile
from typing import TYPE_CHECKING

from function.api import InferenceCluster, SchedulerConfig
from function.api.expressible import DECODE_PORT, PORT
from function.api.fault import Malformed
from function.api.model import mapping, mappings, number as whole_number
from function.api.names import POOL_LABEL
from function.cli.bad_input import BadInput, nearest
from function.cli.worlds.derive import complete_all
from function.cluster.drift import LiveRules, of_classes
from function.deployment.forecast import over_guaranteed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from function.cli.admission.finding import FieldPath
    from function.cli.worlds.manifest import Manifest, Manifests

Advisory = tuple["Manifest", str, "FieldPath", str]
"""The object, the code, the field and the message."""

DEFAULT_RANK = 16
"""The rank of an adapter, and the largest that an engine takes, where nothing is said."""
_PORT = re.compile(r"--port(?:[= ](\S+))?")


def advisories(manifests: Manifests) -> Iterator[Advisory]:
    """Yield every advisory on the objects, in the order of kinds."""
    for manifest in manifests["ModelDeployment"]:
        yield from _cache(manifest, manifests["ModelCache"])
        yield from _limit(manifest, manifests["InferenceCluster"])
        yield from _decode_port(manifest)
        yield from _volumes(manifest)
    for manifest in manifests["ModelAdapter"]:
        yield from _base(manifest, manifests["ModelDeployment"])
    for manifest in manifests["InferenceCluster"]:
        yield from _nodes_of_two_pools(manifest)
        yield from _across_nodes(manifest, manifests["WorkloadConfig"])
    rules = LiveRules(classes=[one.content for one in manifests["DeviceClass"]])
    for manifest in manifests["InferenceClass"]:
        entries = mappings(manifest.spec.get("devices"))
        for code, message in of_classes(entries, rules):
            yield manifest, code, ("spec", "devices"), message
    for manifest in manifests["SchedulerConfig"]:
        yield from _over_guaranteed(manifest, manifests)
    clusters = {cluster.name for cluster in manifests["InferenceCluster"]}
    for manifest in manifests["ModelReplica"]:
        name = manifest.spec.get("clusterName")
        if clusters and isinstance(name, str) and name not in clusters:
            message = f'no InferenceCluster "{name}" in the files'
            yield manifest, "UnknownCluster", ("spec", "clusterName"), message


def _cache(manifest: Manifest, caches: list[Manifest]) -> Iterator[Advisory]:
    """A ModelCache is looked for in the deployment's namespace; without it nothing new is placed."""
    name = mapping(manifest.replica_template.get("modelCacheRef")).get("name")
    identities = {cache.identity for cache in caches}
    if not caches or not isinstance(name, str) or (manifest.namespace, name) in identities:
        return
    elsewhere = [cache.namespace for cache in caches if cache.name == name]
    near = nearest(name, [cache.name for cache in caches if cache.namespace == manifest.namespace], most=1)
    meant = f"; did you mean {near[0]}?" if near else ""
    where = f"; there is one in namespace {elsewhere[0]}" if elsewhere else meant
    message = f'no ModelCache "{name}" in namespace {manifest.namespace} in the files{where}'
    yield manifest, "UnknownCache", ("spec", "template", "spec", "modelCacheRef", "name"), message


def _nodes_of_two_pools(manifest: Manifest) -> Iterator[Advisory]:
    """Nodes that two pools select are counted twice, and take the pods of one (docs/clusters.md)."""
    pools = mappings(manifest.spec.get("nodePools"))
    selectors = [mapping(pool.get("nodeSelector")) or {POOL_LABEL: pool.get("name")} for pool in pools]
    for at, selector in enumerate(selectors):
        for before, other in enumerate(selectors[:at]):
            if selector.items() >= other.items() or other.items() >= selector.items():
                wider = selector if other.items() >= selector.items() else other
                labels = ",".join(f"{key}={value}" for key, value in sorted(wider.items()))
                names = f"{pools[before].get('name')} and {pools[at].get('name')}"
                message = f"pools {names} select the same nodes ({labels}): each counts them as its own"
                yield manifest, "SharedNodes", ("spec", "nodePools", at, "nodeSelector"), message


def _over_guaranteed(manifest: Manifest, manifests: Manifests) -> Iterator[Advisory]:
    """More nodes are guaranteed than the pools have on which they are: not all can be had at once."""
    try:
        quotas = SchedulerConfig.parse(manifest.content).quotas
        read = [InferenceCluster.parse(cluster) for cluster in complete_all(manifests).clusters]
    except (Malformed, BadInput):
        return  # It was said already.
    for at, message in over_guaranteed(quotas, read) if read else ():
        yield manifest, "OverGuaranteed", ("quotas", at, "guaranteed", "nodes"), message


def _across_nodes(manifest: Manifest, configs: list[Manifest]) -> Iterator[Advisory]:
    """Yield wishes in WorkloadConfig that the scheduler cannot count (docs/api.md, acrossNodes)."""
    wishes = ("podsAcrossNodes", "replicasAcrossNodes")
    stated = [wish for config in configs for wish in wishes if config.content.get(wish) == "Required"]
    for at, pool in enumerate(mappings(manifest.spec.get("nodePools"))):
        if stated and pool.get("accounting") == "Device" and not pool.get("acrossNodes"):
            text = f"{stated[0]}: Required of WorkloadConfig is not counted on a pool that charges devices"
            yield manifest, "AcrossNodes", ("spec", "nodePools", at), f"{text}: say acrossNodes here"


def _limit(manifest: Manifest, clusters: list[Manifest]) -> Iterator[Advisory]:
    """So many replicas on so few clusters can never be placed (docs/api.md, maxReplicasPerCluster)."""
    spec = manifest.spec
    most, wanted = mapping(spec.get("placement")).get("maxReplicasPerCluster"), spec.get("replicas")
    if not clusters or not isinstance(most, int) or not isinstance(wanted, int):
        return
    if most * len(clusters) < wanted:
        path = ("spec", "placement", "maxReplicasPerCluster")
        message = f"{wanted} replicas are wanted, and {len(clusters)} clusters take {most} each at most"
        yield manifest, "NeverPlaced", path, message


def _decode_port(manifest: Manifest) -> Iterator[Advisory]:
    """A Decode engine has a sidecar on the serving port, so it listens elsewhere (docs/workloads.md)."""
    for at, engine in enumerate(mappings(manifest.replica_template.get("engines"))):
        if engine.get("phase") != "Decode":
            continue
        for number, member in enumerate(mappings(engine.get("members"))):
            pod = mapping(mapping(member.get("template")).get("spec"))
            for place, container in enumerate(mappings(pod.get("containers"))):
                words = [container.get(field) for field in ("command", "args")]
                command = " ".join(str(word) for part in words if isinstance(part, list) for word in part)
                ports = _PORT.findall(command)
                if member.get("role") != "Worker" and (not ports or str(PORT) in ports):
                    steps = ("engines", at, "members", number, "template", "spec", "containers", place)
                    message = f"a Decode engine must listen elsewhere than on {PORT}: --port={DECODE_PORT}"
                    yield manifest, "DecodePort", ("spec", "template", "spec", *steps), message


def _volumes(manifest: Manifest) -> Iterator[Advisory]:
    """A mount names a volume of its pod, or the replica composes nothing (docs/workloads.md)."""
    for at, engine in enumerate(mappings(manifest.replica_template.get("engines"))):
        for number, member in enumerate(mappings(engine.get("members"))):
            pod = mapping(mapping(member.get("template")).get("spec"))
            names = [str(volume.get("name")) for volume in mappings(pod.get("volumes"))]
            for place, container in enumerate(mappings(pod.get("containers"))):
                for index, mount in enumerate(mappings(container.get("volumeMounts"))):
                    name = str(mount.get("name"))
                    if name not in names:
                        near = nearest(name, names, most=1)
                        meant = f"; did you mean {near[0]}?" if near else ""
                        steps = ("members", number, "template", "spec", "containers", place)
                        path = ("engines", at, *steps, "volumeMounts", index, "name")
                        message = f'no volume "{name}" in the template{meant}'
                        yield manifest, "UnknownVolume", ("spec", "template", "spec", *path), message


def _base(manifest: Manifest, deployments: list[Manifest]) -> Iterator[Advisory]:
    """An adapter is placed on replicas of its base that have room for it (docs/adapters.md)."""
    name = mapping(manifest.spec.get("base")).get("deploymentName")
    if not deployments or not isinstance(name, str):
        return
    field = ("spec", "base", "deploymentName")
    bases = [one for one in deployments if one.identity == (manifest.namespace, name)]
    if not bases:
        near = nearest(name, [one.name for one in deployments if one.namespace == manifest.namespace], most=1)
        meant = f"; did you mean {near[0]}?" if near else ""
        message = f'no ModelDeployment "{name}" in namespace {manifest.namespace} in the files{meant}'
        yield manifest, "UnknownBase", field, message
        return
    engines = mappings(bases[0].replica_template.get("engines"))
    rooms = [mapping(engine.get("adapters")) for engine in engines if engine.get("adapters")]
    if not rooms:
        yield manifest, "NeverPlaced", field, f"no engine of {name} has room for adapters"
        return
    least = min(whole_number(room.get("maxRank"), DEFAULT_RANK) for room in rooms)
    rank = whole_number(manifest.spec.get("rank"), DEFAULT_RANK)
    if rank > least:
        message = f"rank {rank}, and {name} takes adapters up to rank {least}: set adapters.maxRank there"
        yield manifest, "NeverPlaced", ("spec", "rank") if "rank" in manifest.spec else field, message
    for engine in engines:
        for member in mappings(engine.get("members")):
            pod = mapping(mapping(member.get("template")).get("spec"))
            for container in mappings(pod.get("containers")):
                words = [
                    word
                    for key in ("command", "args")
                    for text in (container.get(key) or ())
                    if isinstance(text, str)
                    for word in text.split()
                ]
                if manifest.name in _served_names(words):
                    message = f"{name} serves its base model by this name, and requests would reach that"
                    yield manifest, "NameTaken", ("metadata", "name"), message


def _served_names(words: list[str]) -> list[str]:
    """Return the names that an engine answers to: one word or several after the flag."""
    names: list[str] = []
    for at, word in enumerate(words):
        if word.startswith("--served-model-name="):
            names.append(word.partition("=")[2])
        elif word == "--served-model-name":
            names += takewhile(lambda other: not other.startswith("-"), words[at + 1 :])
    return names
