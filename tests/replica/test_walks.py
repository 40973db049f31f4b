"""Random walks of one replica: edits that follow each other while what they changed is still under way.

At every step an Object of what is desired advances by itself, lags behind its latest manifest, or is where it
was; the cluster goes missing now and then. What must hold at each step:

- no two Objects write one remote object, and none becomes another under its key;
- every claim template that wanted or running pods refer to is desired;
- an engine that takes requests, and that the spec still has, keeps a workload that does;
- once nothing is edited any more, the answer settles.
"""

from __future__ import annotations

import copy
import json
import random
import re
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from function.api.model import condition_of, mapping
from function.fail_static import base_of
from function.objects import identity_of
from function.replica import names
from tests.replica import build, generate
from tests.replica.provider import STAGES, observed
from tests.support.scale import BATCHES, batch

if TYPE_CHECKING:
    from tests.replica.build import Scene
    from tests.support.drive import Answer

Plain = dict[str, Any]

STEPS, CALM = 9, 6
"""Steps with edits and lags, and steps without."""


@pytest.mark.parametrize("stack", ["Standard", "KServe"])
@pytest.mark.parametrize("number", range(BATCHES))
def test_edits_that_overtake_each_other_lose_nothing(number: int, stack: str) -> None:
    for seed in batch(number, quick=64, gate=4_000):
        draw = random.Random(seed)
        scene = generate.scene(seed) if stack == "Standard" else generate.kserve_scene(seed)
        for step in range(STEPS):
            scene = disturbed(draw, scene)
            asked = scene.but(absent=True) if draw.random() < 0.1 else scene
            answer = build.run(asked)
            complaints = list(wrong(asked, answer))
            assert not complaints, (seed, step, complaints)
            scene = scene.but(observed=followed(draw, scene, answer))
        for _ in range(CALM):
            answer = build.run(scene)
            scene = scene.but(observed=followed(None, scene, answer))
        assert build.run(scene).desired == answer.desired, seed


def disturbed(draw: random.Random, scene: Scene) -> Scene:
    """Return a scene with one edit of its spec or its input, or as it is."""
    if draw.random() < 0.15:
        scene = scene.but(input=generate.config(draw))
    if draw.random() < 0.4:
        return scene
    engines = copy.deepcopy(scene.replica["spec"]["engines"])
    chosen = draw.choice(engines)
    what = draw.choice(["kind", "kind", "claim", "claim", "unclaim", "image", "image", "copies", "rename"])
    match what:
        case "kind":
            other = build.gang() if len(chosen["members"]) == 1 else build.engine()
            chosen["members"] = other["members"]
        case "claim":
            draw.choice(chosen["members"])["deviceRequests"] = [build.claim(count=draw.choice((1, 2, 3)))]
        case "unclaim":
            draw.choice(chosen["members"]).pop("deviceRequests", None)
        case "image":
            container = draw.choice(chosen["members"])["template"]["spec"]["containers"][0]
            container["image"] = draw.choice("xyz")
        case "copies":
            chosen["copies"] = draw.choice((1, 2, 11))
        case _:
            free = {"one", "two", "three"} - {engine["name"] for engine in engines}
            chosen["name"] = draw.choice(sorted(free))
    return scene.edited(engines=engines)


def followed(draw: random.Random | None, scene: Scene, answer: Answer) -> dict[str, Plain]:
    """Return what is observed next. Without `draw` everything arrives, else each Object gets some way."""
    made = {}
    for key, desired in answer.desired.items():
        before = scene.observed.get(key)
        generation = 1
        if before is not None:
            generation = before["metadata"]["generation"] + (before["spec"] != desired["spec"])
        if before is not None and draw is not None and draw.random() < 0.4:
            composed = {**copy.deepcopy(desired), "metadata": before["metadata"], "status": before["status"]}
        else:
            composed = observed(key, desired, "available" if draw is None else draw.choice(STAGES))
            composed["status"]["conditions"][0]["observedGeneration"] = generation
        made[key] = {**composed, "metadata": {**composed["metadata"], "generation": generation}}
    return made


def wrong(scene: Scene, answer: Answer) -> list[str]:
    """Return what an answer breaks of the module's list."""
    applied = {key: manifest_of(composed) for key, composed in objects(answer.desired).items()}
    written = Counter(
        identity_of(manifest)
        for key, manifest in applied.items()
        if answer.desired[key]["spec"].get("managementPolicies") != ["Observe"]
    )
    moved = [
        key
        for key, composed in objects(dict(scene.observed)).items()
        if key in applied and identity_of(manifest_of(composed)) != identity_of(applied[key])
    ]
    claims = {
        manifest["metadata"]["name"]
        for manifest in applied.values()
        if manifest["kind"] == "ResourceClaimTemplate"
    }
    pods = [*applied.values(), *(seen_of(scene.observed[key]) for key in applied if key in scene.observed)]
    return [
        *(f"two Objects write {identity}" for identity, count in written.items() if count > 1),
        *(f"{key} became another remote object" for key in moved),
        *(f"no template {name}" for manifest in pods for name in referred(manifest) if name not in claims),
        *(f"{engine} lost what served" for engine in unserved(scene, answer)),
    ]


def unserved(scene: Scene, answer: Answer) -> list[str]:
    """Return the engines of the spec none of whose serving workloads is desired any more."""
    lost = []
    for engine in scene.replica["spec"]["engines"]:
        family = (names.Key(names.WORKLOAD, engine["name"]), names.Key(names.SERVICE))
        serving = [
            key
            for key, composed in scene.observed.items()
            if names.read_key(base_of(key)) in family and condition_of(composed["status"], "Ready")[0]
        ]
        if serving and not any(key in answer.desired for key in serving):
            lost.append(engine["name"])
    return lost


def objects(composed: Any) -> dict[str, Plain]:
    """Return the Objects among composed resources."""
    return {key: resource for key, resource in composed.items() if resource["kind"] == "Object"}


def manifest_of(composed: Plain) -> Plain:
    """Return the manifest of an Object."""
    manifest: Plain = composed["spec"]["forProvider"]["manifest"]
    return manifest


def seen_of(composed: Plain) -> Plain:
    """Return what was last seen of an Object's remote object."""
    return mapping(mapping(composed["status"].get("atProvider")).get("manifest"))


def referred(manifest: Plain) -> list[str]:
    """Return the claim templates that the pods of a manifest refer to."""
    return re.findall(r'"resourceClaimTemplateName": "([^"]+)"', json.dumps(manifest))
