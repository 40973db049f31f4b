"""What the fleet costs: `plan`, `whatif`, `headroom` and the map sum up the prices of pools."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.cli.answers import held
from tests.cli.command import run, write
from tests.support import build

if TYPE_CHECKING:
    from pathlib import Path

Plain = dict[str, Any]
CENTS = "modelplane.ai/centsPerNodeHour"


def _fleet(tmp_path: Path) -> Path:
    """Two clusters of a class with a price, one without; two deployments that fill most of it."""
    kind = {
        "apiVersion": build.API,
        "kind": "InferenceClass",
        "metadata": {"name": "h100"},
        "spec": {"devices": [build.gpu()], "attributes": {CENTS: {"int": 3_120}}},
    }
    objects = [kind, *(build.deployment(name, 2, match={"tier": "paid"}) for name in ("chat", "search"))]
    for name, price in (("east", None), ("west", {CENTS: {"int": 5_000}})):
        made = build.cluster(name, [build.pool("h100", 3)], labels={"tier": "paid"})
        made.pop("status")
        stated = {} if price is None else {"attributes": price}
        made["spec"]["nodePools"] = [{"name": "h100", "className": "h100", "nodeCount": 3, **stated}]
        objects.append(made)
    free = build.cluster("free", [build.pool("h100", 1)])
    return write(tmp_path / "fleet.yaml", [*objects, free])


def test_a_plan_says_what_it_costs_and_a_pool_wins_over_its_class(tmp_path: Path) -> None:
    ran = run("plan", _fleet(tmp_path))
    assert ran.out.count("costs 81.20 an hour") == 2
    assert "Together 162.40 an hour" in ran.out
    data = run("plan", _fleet(tmp_path), "-o", "json").data
    held(data)
    assert [entry["centsPerHour"] for entry in data["deployments"]] == [8_120, 8_120]


def test_whatif_says_the_difference(tmp_path: Path) -> None:
    path = _fleet(tmp_path)
    more = run("whatif", path, "--replicas", f"{build.NAMESPACE}/chat=3")
    assert "settles in 3 passes; +31.20 an hour." in more.out
    less = run("whatif", path, "--replicas", f"{build.NAMESPACE}/chat=1", "-o", "json").data
    held(less)
    chat = next(entry for entry in less["deployments"] if entry["deployment"].endswith("/chat"))
    assert (chat["before"]["centsPerHour"], chat["after"]["centsPerHour"]) == (8_120, 3_120)


def test_headroom_says_what_another_would_cost_where(tmp_path: Path) -> None:
    ran = run("headroom", _fleet(tmp_path), "-d", f"{build.NAMESPACE}/chat")
    assert "EACH AN HOUR" in ran.out
    assert "31.20" in ran.out
    data = run("headroom", _fleet(tmp_path), "-o", "json").data
    held(data)
    clusters = {entry["cluster"]: entry.get("centsPerHour") for entry in data["deployments"][0]["clusters"]}
    assert clusters == {"east": 3_120, "west": 5_000, "free": None}


def test_the_map_sums_up(tmp_path: Path) -> None:
    text = run("map", _fleet(tmp_path), "-o", "html").out
    assert "162.40 an hour" in text
    assert text.count("81.20 an hour") == 2


def test_without_prices_nothing_is_said_of_them(tmp_path: Path) -> None:
    objects = [build.cluster("east", [build.pool("h100", 3)]), build.deployment("chat", 2)]
    path = write(tmp_path / "fleet.yaml", objects)
    for verb in (("plan",), ("headroom",), ("whatif", "--drain", "east")):
        assert "hour" not in run(verb[0], path, *verb[1:]).out.lower()
