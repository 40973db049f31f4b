"""Random small fleets with several deployments, by seed; and a control plane around `plan`."""

from __future__ import annotations

import copy
import os
import random
from typing import TYPE_CHECKING, Any

import yaml

from tests.cli.command import run, write
from tests.support import build

if TYPE_CHECKING:
    from pathlib import Path

Plain = dict[str, Any]

SEEDS = range({"quick": 10, "gate": 300, "soak": 5_000}[os.environ.get("FLEET_SCALE", "quick")])
"""How many fleets a property is tried on."""
POOLS = ("h100", "h200", "l4")
ARCHITECTURES = {"h100": "Hopper", "h200": "Hopper", "l4": "Ada"}


def _pool(draw: random.Random, name: str) -> Plain:
    device = build.gpu(draw.choice((4, 8)), architecture=ARCHITECTURES[name])
    return build.pool(name, draw.randint(0, 4), [device])


def _cluster(draw: random.Random, name: str) -> Plain:
    pools = [_pool(draw, item) for item in draw.sample(POOLS, draw.randint(1, 2))]
    taints = (
        [build.taint("maintenance", draw.choice(("NoSchedule", "NoExecute")))] if draw.random() < 0.15 else []
    )
    ready = draw.random() < 0.9
    return build.cluster(
        name, pools, ready=ready, taints=taints, labels={"region": draw.choice(("eu", "us"))}
    )


def _deployment(draw: random.Random, name: str) -> Plain:
    selector = build.HOPPER if draw.random() < 0.7 else build.GPUS
    if draw.random() < 0.3:
        engines = [build.gang(nodes=draw.randint(1, 2), gpus=draw.choice((4, 8)))]
    else:
        asked = [build.request("gpu", draw.choice((1, 4, 8)), selector)]
        engines = [build.engine(members=[build.member(devices=asked)], copies=draw.choice((1, 1, 2)))]
    match = {"region": draw.choice(("eu", "us"))} if draw.random() < 0.2 else None
    return build.deployment(name, draw.randint(0, 4), engines, match=match)


def fleet(seed: int) -> list[Plain]:
    """Return a fleet: clusters and deployments, some of whose replicas run already."""
    draw = random.Random(seed)
    clusters = [_cluster(draw, f"cluster-{letter}") for letter in "abcd"[: draw.randint(2, 4)]]
    deployments = [_deployment(draw, f"model-{number}") for number in range(draw.randint(1, 3))]
    objects = [*clusters, *deployments]
    for parent in deployments:
        for index in range(draw.randint(0, 2)):
            on = draw.choice(clusters)
            pool = draw.choice(on["status"]["gpuPools"])["name"]
            ready = draw.random() < 0.8
            dying = draw.random() < 0.1
            name = on["metadata"]["name"]
            objects.append(build.replica(parent, name, index, pools=pool, ready=ready, terminating=dying))
    return objects


def key(manifest: Plain) -> tuple[str, str, str]:
    """Kind, namespace and name."""
    return manifest["kind"], manifest["metadata"].get("namespace", ""), manifest["metadata"]["name"]


def planned(path: Path, objects: list[Plain]) -> dict[tuple[str, str, str], Plain]:
    """Write the objects, run `plan -o yaml` on them, and return what is desired."""
    ran = run("plan", write(path, objects), "-o", "yaml")
    assert ran.code in (0, 2), ran.err
    return {key(document): document for document in yaml.safe_load_all(ran.out) if document}


def pass_of(path: Path, objects: list[Plain]) -> list[Plain]:
    """Return the objects after one pass of the control plane over the plan."""
    desired = planned(path, objects)
    uids = {
        manifest["metadata"]["uid"]: manifest for manifest in objects if manifest["kind"] == "ModelDeployment"
    }
    standing = []
    for manifest in objects:
        composed = manifest["kind"] in ("ModelReplica", "ModelEndpoint")
        if composed and (manifest["metadata"].get("deletionTimestamp") or key(manifest) not in desired):
            continue
        standing.append({**manifest, "spec": desired[key(manifest)]["spec"]} if composed else manifest)
    present = {key(manifest) for manifest in objects}
    for manifest in (absent for name, absent in desired.items() if name not in present):
        labels = manifest["metadata"]["labels"]
        parent = next(
            one for one in uids.values() if one["metadata"]["name"] == labels["modelplane.ai/deployment"]
        )
        made = copy.deepcopy(manifest)
        made["metadata"]["ownerReferences"] = [build.owner(parent)]
        standing.append({**made, "status": {"conditions": [build.condition("Ready", status=True)]}})
    return standing


def settled(path: Path, objects: list[Plain]) -> tuple[list[Plain], dict[tuple[str, str, str], Plain]]:
    """Return the objects once nothing changes any more, and what is desired then."""
    for _ in range(20):
        following = pass_of(path, objects)
        if following == objects:
            return objects, planned(path, objects)
        objects = following
    raise AssertionError("the fleet does not settle")
