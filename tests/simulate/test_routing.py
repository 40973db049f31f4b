"""From a ModelDeployment to one address, and everything that happens to it: the loop is closed.

On every path the route stays, and once all is at rest every request for the address reaches a replica that
serves, in the proportion that the service asks for.
"""

from __future__ import annotations

import random
from fractions import Fraction
from typing import Any

import pytest

from tests.simulate import gateway
from tests.simulate.chain import ClosedLoop
from tests.simulate.workers import Cluster, condition
from tests.support import build
from tests.support.crossplane import VERSIONS, Name, name_of
from tests.support.scale import seeds

Plain = dict[str, Any]

NAMES = ("use1", "euw4")
NAMESPACE = build.deployment("chat", 1)["metadata"]["namespace"]
ELSEWHERE = "models.example.com/"
HALF = Fraction(1, 2)


def cluster(name: str) -> Plain:
    """Return an InferenceCluster of one node."""
    made = build.cluster(name, [build.pool("h100", 1)])
    made["status"] |= {"providerConfigRef": {"name": name}, "gateway": {"address": address(name)}}
    return made


def address(name: str) -> str:
    """Return the address of a cluster's gateway."""
    return f"203.0.113.{NAMES.index(name) + 1}"


def service(*groups: Plain) -> Plain:
    """Return the ModelService: the deployment first, then whatever else."""
    first = {"selector": {"matchLabels": {"modelplane.ai/deployment": "chat"}}, "weight": 1}
    metadata = {"name": "chat", "namespace": NAMESPACE}
    spec = {"endpoints": [first, *groups]}
    return {
        "apiVersion": "modelplane.ai/v1alpha1",
        "kind": "ModelService",
        "metadata": metadata,
        "spec": spec,
    }


def elsewhere(**group: Any) -> tuple[Plain, Plain]:
    """Return a group for a model that runs elsewhere, and its endpoint."""
    labels = {"fallback": "chat"}
    metadata = {"name": "elsewhere", "namespace": NAMESPACE, "labels": labels}
    spec = {"url": "https://models.example.com/v1"}
    endpoint = {
        "apiVersion": "modelplane.ai/v1alpha1",
        "kind": "ModelEndpoint",
        "metadata": metadata,
        "spec": spec,
    }
    return {"selector": {"matchLabels": labels}, **group}, endpoint


def plane(*groups_and_endpoints: tuple[Plain, Plain], **how: Any) -> ClosedLoop:
    """Return a control plane: two clusters of a node each, a deployment of two replicas, one address."""
    clusters = {name: Cluster({f"{name}-0": {"modelplane.ai/pool": "h100"}}) for name in NAMES}
    made = ClosedLoop(clusters, {"ModelService": {"gatewayAddress": "198.51.100.9"}}, **how)
    for name in NAMES:
        made.plane.write(cluster(name))
    engine = build.engine(members=[build.member(devices=[build.request("gpu", 8)])])
    made.plane.write(build.deployment("chat", 2, [engine]))
    for _, endpoint in groups_and_endpoints:
        made.plane.write(endpoint)
    made.plane.write(service(*(group for group, _ in groups_and_endpoints)))
    return made


def route(made: ClosedLoop) -> Plain | None:
    """Return the route, None while there is none."""
    routes = made.of_kind("HTTPRoute")
    assert len(routes) <= 1
    return routes[0] if routes else None


def shares(made: ClosedLoop) -> dict[str, Fraction]:
    """Return which part of the requests goes to which cluster, or elsewhere."""
    held = route(made)
    assert held is not None
    counts = gateway.shares(made.plane.objects, held)
    return {
        next((name for name in NAMES if where.startswith(address(name))), where): counts[where]
        for where in counts
    }


def of_service(made: ClosedLoop) -> Plain:
    (plain,) = made.of_kind("ModelService")
    return plain


def reason(made: ClosedLoop, kind: str) -> str:
    rows = of_service(made)["status"]["conditions"]
    return str(next(row["reason"] for row in rows if row["type"] == kind))


def keeps_backends(made: ClosedLoop) -> None:
    """From the first with backends on every version of the route has some; and nobody ever deletes it."""
    held = route(made)

    def hear(plain: Plain) -> None:
        assert plain["kind"] != "HTTPRoute" or gateway.backends(plain)

    if held is not None and gateway.backends(held):
        made.hearer = hear
    assert "HTTPRoute" not in {name.kind for name in made.deleted}, "the route was deleted"


def never_empty(made: ClosedLoop) -> None:
    """Run rounds until nothing changes: a route that has backends keeps some whatever is written."""
    for _ in range(60):
        keeps_backends(made)
        if not made.round():
            keeps_backends(made)
            return
    raise AssertionError("still changing")


def lose(made: ClosedLoop, *names: str) -> dict[str, Plain]:
    """Take the nodes of clusters away; return them."""
    return {name: made.clusters[name].lose(f"{name}-0") for name in names}


def bring_back(made: ClosedLoop, nodes: dict[str, Plain]) -> None:
    for name, labels in nodes.items():
        made.clusters[name].nodes[f"{name}-0"] = labels


def test_a_deployment_becomes_one_address() -> None:
    made = plane()
    never_empty(made)
    assert shares(made) == dict.fromkeys(NAMES, HALF)
    assert of_service(made)["status"]["address"] == f"http://198.51.100.9/{NAMESPACE}/chat"
    assert condition(of_service(made), "Ready") == "True"
    for plain in (*made.of_kind("ModelEndpoint"), *made.of_kind("ModelDeployment")):
        assert condition(plain, "Ready") == "True", plain["metadata"]["name"]


def test_a_route_that_leaves_is_noticed() -> None:
    made = plane(elsewhere(priority=1))
    never_empty(made)
    made.plane.delete(name_of(of_service(made)), by_hand=True)
    with pytest.raises(AssertionError, match="the route was deleted"):
        never_empty(made)


def test_a_replica_that_fails_gives_its_share_away_and_gets_it_back() -> None:
    made = plane()
    never_empty(made)
    lost = lose(made, "use1")
    never_empty(made)
    assert shares(made) == {"euw4": Fraction(1)}
    assert reason(made, "RoutingReady") == "RouteAccepted"
    bring_back(made, lost)
    never_empty(made)
    assert shares(made) == dict.fromkeys(NAMES, HALF)


def test_when_all_fail_requests_go_elsewhere_and_back() -> None:
    made = plane(elsewhere(priority=1))
    never_empty(made)
    assert shares(made) == dict.fromkeys(NAMES, HALF), "the model elsewhere takes none"
    lost = lose(made, *NAMES)
    never_empty(made)
    assert shares(made) == {ELSEWHERE: Fraction(1)}
    assert reason(made, "EndpointsResolved") == "FailedOver"
    bring_back(made, {"use1": lost["use1"]})
    never_empty(made)
    assert shares(made) == {"use1": Fraction(1)}
    assert reason(made, "EndpointsResolved") == "Resolved"


def test_weights_are_of_groups_whatever_fails_in_them() -> None:
    made = plane(elsewhere(weight=3))
    never_empty(made)
    eighth = Fraction(1, 8)
    assert shares(made) == {"use1": eighth, "euw4": eighth, ELSEWHERE: Fraction(3, 4)}
    lose(made, "use1")
    never_empty(made)
    assert shares(made) == {"euw4": Fraction(1, 4), ELSEWHERE: Fraction(3, 4)}


def test_without_anything_else_the_route_stays_while_nothing_serves() -> None:
    made = plane()
    never_empty(made)
    before = gateway.backends(route(made) or {})
    lost = lose(made, *NAMES)
    never_empty(made)
    assert gateway.backends(route(made) or {}) == before
    assert reason(made, "EndpointsResolved") == "NoEndpoints"
    assert reason(made, "RoutingReady") == "RouteRejected", "the gateway's own words: the Services are gone"
    bring_back(made, lost)
    never_empty(made)
    assert shares(made) == dict.fromkeys(NAMES, HALF)


def test_a_selection_that_does_not_arrive_changes_nothing() -> None:
    made = plane(elsewhere(priority=1))
    never_empty(made)
    before = route(made)
    made.plane.withheld = {"endpoints-0"}
    lose(made, "use1")
    never_empty(made)
    assert gateway.backends(route(made) or {}) == gateway.backends(before or {})
    assert reason(made, "EndpointsResolved") == "WaitingForEndpoints"
    made.plane.withheld = ()
    never_empty(made)
    assert shares(made) == {"euw4": Fraction(1)}


def point(made: ClosedLoop, url: str) -> None:
    """Let the endpoint that is elsewhere lead to a URL."""
    name = Name("ModelEndpoint", NAMESPACE, "elsewhere")
    made.plane.patch(name, spec={**made.plane.objects[name]["spec"], "url": url})


def weigh(made: ClosedLoop, weight: int) -> None:
    """Give a weight to the group that is elsewhere."""
    with made.editing("ModelService") as plain:
        plain["spec"]["endpoints"][1]["weight"] = weight


LAGS, QUEUES = ((0.0, 0.0), (0.0, 0.1), (0.0, 2.0)), ((0.0, 0.0), (0.0, 5.0))
EVENTS = ("lose", "return", "cut", "join", "withhold", "deliver", "url", "weight")


def happen(made: ClosedLoop, draw: random.Random, lost: dict[str, Plain]) -> str:
    """Let something happen; return what."""
    what, name = draw.choice(EVENTS), draw.choice(NAMES)
    if what == "lose" and name not in lost:
        lost |= lose(made, name)
    elif what == "return" and name in lost:
        bring_back(made, {name: lost.pop(name)})
    elif what in ("cut", "join"):
        made.clusters[name].reachable = what == "join"
    elif what in ("withhold", "deliver"):
        made.plane.withheld = {f"endpoints-{draw.randint(0, 1)}"} if what == "withhold" else ()
    elif what == "url":
        host = draw.choice(("models.example.com", "203.0.113.99", "vllm"))
        point(made, f"https://{host}/v1")
    elif what == "weight":
        weigh(made, draw.choice((0, 1, 9)))
    return what


@pytest.mark.parametrize("priority", [0, 1])
def test_whatever_happens_the_address_ends_at_what_serves(priority: int) -> None:
    for seed in seeds(quick=6, gate=200):
        draw, lost, happened = random.Random(seed), dict[str, Plain](), []
        late = {"lag": draw.choice(LAGS), "queue": draw.choice(QUEUES)}
        made = plane(elsewhere(priority=priority, weight=1), version=draw.choice(VERSIONS), **late)
        never_empty(made)
        for _ in range(10):
            happened.append(happen(made, draw, lost))
            for _ in range(draw.randint(1, 3)):
                made.round()
                held = route(made)
                assert held is not None, (seed, happened)
                assert gateway.backends(held), (seed, happened)
        bring_back(made, lost)
        made.plane.withheld = ()
        point(made, "https://models.example.com/v1")
        weigh(made, 2)
        for name in NAMES:
            made.clusters[name].reachable = True
        never_empty(made)
        sixth = Fraction(1, 6)
        mixed = {"use1": sixth, "euw4": sixth, ELSEWHERE: Fraction(2, 3)}
        assert shares(made) == (dict.fromkeys(NAMES, HALF) if priority else mixed), (seed, happened)
        assert condition(of_service(made), "Ready") == "True", (seed, happened)
