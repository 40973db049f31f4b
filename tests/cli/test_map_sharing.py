"""Deployments that ask for the same are answered once for the map, and each as if it had been asked alone."""

from __future__ import annotations

import copy
import itertools
import random
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from function.api.ownership import Owner
from function.cli.worlds import world as world_room
from function.deployment.forecast import Forecast, Shared
from function.scheduler import headroom, placer as placer_room
from tests.cli import fleets
from tests.cli.command import run, write
from tests.support import build

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from function.scheduler.decision import Decision

Plain = dict[str, Any]


def _spec(manifest: Plain) -> Plain:
    spec: Plain = manifest["spec"]["template"]["spec"]
    return spec


def _image(manifest: Plain) -> None:
    for engine in _spec(manifest)["engines"]:
        for member in engine["members"]:
            member["template"] = build.template("example.invalid/other:1")


def _count(manifest: Plain) -> None:
    _spec(manifest)["engines"][0]["members"][0]["nodeSelector"]["devices"][0]["count"] = 5


def _copies(manifest: Plain) -> None:
    _spec(manifest)["engines"][0]["copies"] = 3


TOLERATION = {"key": "maintenance", "operator": "Exists"}
SPREAD = {"topologyKey": "region", "maxSkew": 1}
EDITS: tuple[tuple[Callable[[Plain], object], bool, str], ...] = (
    (lambda _: None, True, "nothing but the name is another"),
    (_image, True, "no cluster looks at an image, unless its stack does"),
    (lambda manifest: manifest["spec"]["template"].update(metadata={"labels": {"a": "b"}}), True, "labels"),
    (_count, False, "another count"),
    (_copies, False, "more nodes"),
    (lambda manifest: _spec(manifest).update(tolerations=[TOLERATION]), False, "it tolerates more"),
    (
        lambda manifest: _spec(manifest).update(clusterSelector={"matchLabels": {"region": "us"}}),
        False,
        "other clusters",
    ),
    (lambda manifest: manifest["spec"].update(placement={"maxReplicasPerCluster": 1}), False, "a policy"),
    (lambda manifest: manifest["spec"].update(placement={"topologySpread": [SPREAD]}), False, "a policy"),
    (lambda manifest: manifest["spec"].update(placement={"strategy": "BinPack"}), False, "another search"),
    (
        lambda manifest: _spec(manifest).update(serving={"model": {"uri": "https://example.invalid/m"}}),
        False,
        "a model that no stack can take from there",
    ),
)


def _twins(objects: list[Plain], draw: random.Random) -> list[Plain]:
    """The fleet, with edited copies of its deployments, and a cluster whose stack reads templates."""
    twins: list[Plain] = []
    for manifest in objects:
        if manifest["kind"] == "ModelDeployment":
            for number, (edit, _, _) in enumerate(draw.sample(EDITS, 4)):
                twin = copy.deepcopy(manifest)
                name = f"{twin['metadata']['name']}-{number}"
                twin["metadata"] |= {"name": name, "uid": build.uid(name)}
                edit(twin)
                twins.append(twin)
    if draw.random() < 0.5:
        twins.append(build.cluster("kserve", [build.pool("h100", 2)], labels={"region": "eu"}))
        twins[-1]["spec"]["stack"] = "KServe"
    return [*objects, *twins]


@pytest.mark.parametrize("seed", fleets.SEEDS)
def test_the_map_is_the_same_as_if_everybody_were_asked_alone(
    seed: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = write(tmp_path / "fleet.yaml", _twins(fleets.fleet(seed), random.Random(seed)))
    shared = run("map", path, "-o", "html")
    different = itertools.count()
    monkeypatch.setattr(Forecast, "question", property(lambda _: next(different)))
    assert run("map", path, "-o", "html").out == shared.out


WORDS = (
    ("map",),
    ("plan", "-o", "json"),
    ("headroom", "-o", "json"),
    ("advise", "-o", "json"),
    ("whatif", "--drain", "cluster-a", "-o", "json"),
)


def _invalid(manifest: Plain) -> None:
    """One selector more, which does not compile: what is read of devices is not known."""
    selectors = _spec(manifest)["engines"][0]["members"][0]["nodeSelector"]["devices"][0]["selectors"]
    selectors.append({"cel": "device.driver =="})


@pytest.mark.parametrize("seed", fleets.SEEDS)
@pytest.mark.parametrize("words", WORDS)
def test_every_answer_is_the_same_as_if_nobody_shared_what_fits(
    words: tuple[str, ...], seed: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    draw = random.Random(seed)
    objects = _twins(fleets.fleet(seed), draw)
    _invalid(draw.choice([manifest for manifest in objects if manifest["kind"] == "ModelDeployment"]))
    path = write(tmp_path / "fleet.yaml", objects)
    shared = run(*words, path)
    monkeypatch.setattr(Shared, "join", lambda *_: None)
    assert run(*words, path) == shared


def test_who_asks_for_the_same_searches_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A cluster is searched again where somebody was placed, and not for everybody who asks."""
    searched: list[object] = []
    real = placer_room.search  # type: ignore[attr-defined]
    monkeypatch.setattr(placer_room, "search", lambda *of, **more: searched.append(of) or real(*of, **more))
    clusters = [build.cluster(f"c{number}", [build.pool("h100", 9 + number)]) for number in range(8)]
    counts = []
    for number in (1, 6):
        searched.clear()
        deployments = [build.deployment(f"model-{at}", 1) for at in range(number)]
        _image(deployments[-1])
        run("plan", write(tmp_path / "fleet.yaml", [*clusters, *deployments]))
        counts.append(len(searched))
    alone, together = counts
    assert alone == len(clusters)
    assert together <= alone + 6, "once more for each placement, at most"


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Decision]:
    """The decisions of which it was asked why clusters take no other replica."""
    decisions: list[Decision] = []
    real = headroom.rejections_of_another
    monkeypatch.setattr(
        headroom, "rejections_of_another", lambda decision: decisions.append(decision) or real(decision)
    )
    return decisions


@pytest.mark.parametrize(("edit", "same", "reason"), EDITS)
def test_who_asks_for_the_same_is_answered_once(
    edit: Callable[[Plain], object], *, same: bool, reason: str, asked: list[Decision], tmp_path: Path
) -> None:
    deployments = [build.deployment(f"model-{at}", 1) for at in range(4)]
    edit(deployments[-1])
    clusters = [
        build.cluster(name, [build.pool("h100", 3)], labels={"region": name}) for name in ("eu", "us")
    ]
    run("map", write(tmp_path / "fleet.yaml", [*clusters, *deployments]), "-o", "svg")
    assert len(asked) == (1 if same else 2), reason


def test_a_stack_that_reads_templates_tells_them_apart(asked: list[Decision], tmp_path: Path) -> None:
    kserve = build.cluster("kserve", [build.pool("h100", 3)])
    kserve["spec"]["stack"] = "KServe"
    cached, other = (build.deployment(name, 1) for name in ("cached", "other"))
    _spec(cached)["serving"] = {"model": {"uri": "hf://example/model"}}
    run("map", write(tmp_path / "fleet.yaml", [kserve, cached, other]), "-o", "svg")
    assert len(asked) == 2


def test_a_replica_is_looked_at_for_its_own_deployment_and_not_for_every_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    looked: Counter[str] = Counter()
    real = Owner.owns
    monkeypatch.setattr(
        world_room.Owner,  # type: ignore[attr-defined]
        "owns",
        lambda owner, replica: looked.update([replica.name]) or real(owner, replica),
    )
    parents = [build.deployment(f"model-{at}", 1) for at in range(6)]
    replicas = [build.replica(parent, "only", 0, ready=True) for parent in parents]
    cluster = build.cluster("only", [build.pool("h100", 9)])
    run("plan", write(tmp_path / "fleet.yaml", [cluster, *parents, *replicas]))
    assert set(looked.values()) == {1}, "once, to present it"
