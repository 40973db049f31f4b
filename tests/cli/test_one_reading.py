"""A run over many deployments reads and charges the fleet once, and answers as if each had read it alone."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from function.api import replica as replica_api
from function.cli.worlds import derive, world as world_room
from function.cluster import publish
from function.scheduler.ledger import Ledger
from tests.cli import fleets
from tests.cli.command import run, write
from tests.support import build
from tests.support.optins import INPUT

if TYPE_CHECKING:
    from pathlib import Path

    from function.boundary import PlainDocument

Plain = dict[str, Any]

WORDS = (
    ("map",),
    ("plan", "-o", "yaml"),
    ("advise", "-o", "json"),
    ("verify", "-o", "json"),
    ("whatif", "--drain", "cluster-a", "-o", "json"),
)
SETTINGS: tuple[Plain, ...] = (
    {},
    {"overcommit": "Yield"},
    {"capacity": "Published"},
    {"capacity": "Published", "overcommit": "Yield"},
    {"coordination": "GlobalOrder"},
)


def _odd(seed: int) -> list[Plain]:
    """A fleet with what sharing could mix up: strangers, doubles, unreadable replicas, pools of devices."""
    draw, objects = random.Random(seed), fleets.fleet(seed)
    clusters = [manifest for manifest in objects if manifest["kind"] == "InferenceCluster"]
    parents = [manifest for manifest in objects if manifest["kind"] == "ModelDeployment"]
    for pool in (pool for manifest in clusters for pool in manifest["status"]["gpuPools"]):
        if draw.random() < 0.3:
            pool["accounting"] = "Device"
    for number in range(draw.randint(0, 6)):
        parent, on = draw.choice(parents), draw.choice(clusters)
        pools = draw.choice(on["status"]["gpuPools"])["name"]
        made = build.replica(parent, on["metadata"]["name"], draw.randint(0, 2), pools=pools, ready=None)
        made["metadata"]["name"] = f"odd-{number}"
        if draw.random() < 0.4:
            made["metadata"]["ownerReferences"] = []
        if draw.random() < 0.2:
            made["spec"]["engines"][0]["members"][0]["nodePoolName"] = 7
        if draw.random() < 0.2:
            made["metadata"]["namespace"] = "elsewhere"
        if draw.random() < 0.2:
            made["spec"]["clusterName"] = "gone"
        objects.append(made)
    return [*objects, {**INPUT, **draw.choice(SETTINGS)}]


def _alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every deployment read, charge and publish the fleet for itself."""
    forecast = world_room.forecast  # type: ignore[attr-defined]
    monkeypatch.setattr(world_room, "forecast", lambda request, reuse, shared: forecast(request))

    class Anew(derive.ChargedClusters):
        def __init__(self, clusters: list[Plain]) -> None:
            super().__init__(clusters)
            self._all: list[Any] = []

        def add(self, replica: Any) -> None:
            self._all.append(replica)

        @property
        def documents(self) -> tuple[PlainDocument, ...]:
            charged = derive.ChargedClusters(self._clusters)
            for replica in self._all:
                charged.add(replica)
            return charged.documents

    monkeypatch.setattr(world_room, "ChargedClusters", Anew)


@pytest.mark.parametrize("seed", fleets.SEEDS)
@pytest.mark.parametrize("words", WORDS)
def test_every_answer_is_the_same_as_if_each_read_the_fleet_alone(
    words: tuple[str, ...], seed: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = write(tmp_path / "fleet.yaml", _odd(seed))
    shared = run(*words, path)
    _alone(monkeypatch)
    assert run(*words, path) == shared


def _running(deployments: int, **settings: str) -> list[Plain]:
    """A fleet at rest, but for one replica that is missing: 4 replicas of each deployment on 8 clusters."""
    clusters = [build.cluster(f"c{number}", [build.pool("h100", 4 * deployments)]) for number in range(8)]
    parents = [build.deployment(f"model-{at:02}", 5 if at == 0 else 4) for at in range(deployments)]
    replicas = [
        build.replica(parent, f"c{(at + index) % 8}", 0, ready=True)
        for at, parent in enumerate(parents)
        for index in range(4)
    ]
    return [*clusters, *parents, *replicas, {**INPUT, **settings}]


@pytest.mark.parametrize("words", [("map",), ("plan",), ("headroom",)])
def test_a_replica_is_charged_for_the_list_and_twice_for_its_own_deployment(
    words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Twice as many deployments with as many replicas each charge twice as often, not four times.

    Its own deployment is answered on what it stands on, as for Crossplane, and explained on the fleet.
    """
    charged: list[str] = []
    real = Ledger.open
    monkeypatch.setattr(
        Ledger, "open", lambda ledger, replica, on: charged.append(replica.name) or real(ledger, replica, on)
    )
    counts = []
    for deployments in (10, 20):
        charged.clear()
        run(*words, write(tmp_path / "fleet.yaml", _running(deployments)))
        counts.append(len(charged))
    few, many = counts
    passes = {"map": 3, "plan": 1, "headroom": 3}[words[0]]
    assert many <= passes * (3 * 80 + 2), "once for all, and twice for its own deployment, in each pass"
    assert many <= 2.1 * few


def test_a_cluster_publishes_anew_only_where_a_replica_was_added(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    published: list[str] = []
    real = publish.charge
    monkeypatch.setattr(publish, "charge", lambda name, *of: published.append(name) or real(name, *of))
    for deployments in (10, 20):
        published.clear()
        run("plan", write(tmp_path / "fleet.yaml", _running(deployments, capacity="Published")))
        assert len(published) == 8 + 1, "each cluster once, and the one that got a replica once more"


def test_only_the_replicas_of_its_name_are_looked_through_for_a_deployment(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    looked: list[object] = []
    real = world_room._carries
    monkeypatch.setattr(
        world_room, "_carries", lambda content, of: looked.append(content) or real(content, of)
    )
    run("plan", write(tmp_path / "fleet.yaml", _running(10, capacity="Published")))
    assert len(looked) == 2 * 40, "each once as an own replica, and once as one that may have its name"


def test_a_replica_is_parsed_once_in_each_way_it_is_read(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    parsed: list[object] = []

    def parse_charge(document: Any) -> Any:
        parsed.append(document)
        return replica_api.parse_charge(document)

    monkeypatch.setattr(
        "function.deployment.snapshot.fleet.replica_api",
        SimpleNamespace(parse=replica_api.parse, parse_charge=parse_charge),
    )
    run("plan", write(tmp_path / "fleet.yaml", _running(10)))
    assert len(parsed) == 40 + 1
