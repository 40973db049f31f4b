"""Systems that run as this tree makes them: what is recorded of a release.

Every example, and random objects of every kind from seeds, are composed, applied and composed again. A
replica is at rest, starts, or is in the middle of an edit.
"""

from __future__ import annotations

import copy
import random
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import yaml

from example.caller import HERE as EXAMPLES, ROOT
from function.cli.worlds.inputs import taken
from function.cli.worlds.manifests import load
from function.cli.worlds.world import ParseMemo, plan_all, replicas_of
from tests.cluster import build as clusters
from tests.replica import generate, provider
from tests.routing import build as routes, generate as routing
from tests.support import drive, generate as worlds
from tests.support.any_request import AnyRequest
from tests.support.apply import apply
from tests.support.world import World
from tests.upgrade.recorded import Case

if TYPE_CHECKING:
    from collections.abc import Iterator

Plain = dict[str, Any]

REPLICAS, ON_KSERVE, DEPLOYMENTS, ROUTES, CLUSTERS = 240, 80, 120, 100, 30
TASTES = (worlds.TASTE, worlds.CALM, replace(worlds.CALM, opted=True))
ROUNDS = 6
PUBLISHED = {"providerConfigRef": {"name": "a-kubeconfig"}}


def running() -> Iterator[Case]:
    """Yield everything that is recorded, with what this tree answers."""
    for part in (_examples, _replicas, _deployments, _routes, _clusters):
        for case in part():
            yield case.answered(case.asked.answer())


def _case(name: str, asked: AnyRequest) -> Case:
    required = {key: list(items) for key, items in asked.required.items()}
    return Case(name, asked.composite, dict(asked.observed), required, asked.input)


def _input(kind: str) -> Plain:
    """Return the input of the step in the Composition that we ship."""
    composition = yaml.safe_load((ROOT / "apis" / kind / "composition.yaml").read_text())
    return dict(composition["spec"]["pipeline"][0]["input"])


def _examples() -> Iterator[Case]:
    """Yield every deployment of the examples on its fleet, running, and every replica of it."""
    fleet = str(EXAMPLES / "fleet")
    folders = [(str(path.parent), fleet) for path in sorted(EXAMPLES.glob("*/xr.yaml"))]
    folders += [(str(EXAMPLES / name),) for name in ("bring-your-own", "kserve")]
    for files in folders:
        inputs = taken(load(files), quietly=True)
        held = {cluster["metadata"]["name"]: cluster for cluster in inputs.world.clusters}
        for planned in plan_all(inputs.world, reuse=ParseMemo()):
            request = planned.request
            required = {name: [one.plain() for one in items] for name, items in request.required.items()}
            deployment = copy.deepcopy(planned.manifest.content)
            deployment["metadata"].setdefault("uid", f"uid-of-{planned.title}")
            world = World(
                deployment,
                required["fleet-clusters"],
                required["fleet-replicas"],
                {key: one.plain() for key, one in request.observed.items()},
                next((items for name, items in required.items() if name.startswith("cache/")), None),
                {**_input("modeldeployments"), "coordination": "None"},
            )
            title = f"example {planned.title}"
            yield _case(title, _running(world).asked)
            for replica in replicas_of(planned):
                on = held[replica["spec"]["clusterName"]]
                on = {**on, "status": {**on.get("status", {}), **PUBLISHED}}
                name = f"{title} {replica['metadata']['name']}"
                for given in (None, _input("modelreplicas")):
                    yield from _stages(name, _about(replica, on, given))


def _about(replica: Plain, cluster: Plain, given: Plain | None) -> AnyRequest:
    required: dict[str, list[Plain]] = {"cluster": [cluster]}
    if (given or {}).get("namesakes") == "Refuse":
        required["namesakes"] = [replica]
    return AnyRequest(replica, required=required, input=given)


def _stages(name: str, asked: AnyRequest, stages: tuple[str, ...] = ("available",)) -> Iterator[Case]:
    """Yield a replica as it is once everything is applied, by how far its pods are."""
    for stage in stages:
        running = asked
        for _ in range(ROUNDS):
            answer = running.answer()
            running = running.but(observed=provider.applied(answer, stage))
        yield _case(f"{name}, {stage}", running)


def _replicas() -> Iterator[Case]:
    """Yield random replicas with random inputs, on either stack."""
    for seed in range(REPLICAS + ON_KSERVE):
        draw = random.Random(f"release {seed}")
        scene = generate.scene(seed) if seed < REPLICAS else generate.kserve_scene(seed)
        assert scene.cluster is not None
        asked = _about(scene.replica, scene.cluster, scene.input)
        stage = draw.choice(("available", "available", "started", "created", "nothing"))
        if draw.random() < 0.3:
            edited = _edited(draw, scene.replica)
            before = list(_stages("", asked))[-1]
            during = before.asked.but(composite=edited)
            yield _case(f"replica {seed}, edited", during)
            observed = provider.applied(during.answer(), "started")
            yield _case(f"replica {seed}, in the middle of an edit", during.but(observed=observed))
        else:
            yield from _stages(f"replica {seed}", asked, (stage,))


def _edited(draw: random.Random, replica: Plain) -> Plain:
    """Return a replica after an edit of some of its engines."""
    made = copy.deepcopy(replica)
    for engine in made["spec"]["engines"][: draw.choice((1, 1, 3))]:
        for member in engine["members"]:
            match draw.choice(("image", "claim", "copies", "image")):
                case "image":
                    member["template"]["spec"]["containers"][0]["image"] = "registry.example.com/next:1"
                case "claim":
                    for request in member.get("deviceRequests", ()):
                        request["count"] = 3
                case _:
                    engine["copies"] = 5
    return made


def _deployments() -> Iterator[Case]:
    """Yield random fleets on which everything stands as this tree placed it."""
    number = seed = 0
    while number < DEPLOYMENTS:
        seed += 1
        taste = TASTES[seed % len(TASTES)]
        world = worlds.world(seed, taste)
        if not world.clusters or world.replicas is None:
            continue
        world = _running(world)
        assert world.replicas is not None
        if any(one["kind"] == "ModelReplica" for one in world.observed.values()):
            number += 1
            yield _case(f"deployment {seed}", world.asked)


def _running(world: World) -> World:
    """Return a world after its answers were applied until nothing changes, with all of its replicas Ready."""
    for _ in range(ROUNDS):
        world = apply(world, drive.run(world))
        for made in world.observed.values():
            if made["kind"] == "ModelReplica":
                made["status"] = {"conditions": [{"type": "Ready", "status": "True"}]}
    return world


def _routes() -> Iterator[Case]:
    """Yield random endpoints and services that are routed."""
    for seed in range(ROUTES):
        yield _case(f"route {seed}", routes.settled(routing.random_request(seed)))


def _clusters() -> Iterator[Case]:
    """Yield random clusters that are published."""
    for seed in range(CLUSTERS):
        yield _case(f"cluster {seed}", clusters.running(random.Random(seed)).asked)
